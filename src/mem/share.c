/* share.c - giving buffers to other processes and taking theirs. See share.h; the way home is in home.c.
 *
 * Shape   A giver stores FLYING(me to q) in the buffer's entry, then lets go of the handle: one of ours becomes AWAY,
 *         another's FREE. Both before the message is published: a moment later the buffer may be home, or here again.
 *         A taker computes everything from the numbers in the flight, looks whether the entry says that this buffer
 *         flies from that sender to this process, and stores HELD(me). Numbers that do not fit together are -EBADMSG.
 *         A sender that lies about what is his can hand over memory that somebody else uses, which he could have
 *         written to anyway.
 *         Straight from its maker, one in a chunk: the entry is neither written nor read. It says 0, as it has since the
 *         buffer came home, and beside AWAY stands the taker.
 *         That one, the usual, is also in straight.h, in line.
 * Edges   W1  release store of AWAY -> acquire load or swap of it (here, home.c): the entry says FLYING or 0, or what later holders
 *             said, not what it said before. Who gives straight has it by the fence of wf_entry_clear.
 *         Shared words are stored and loaded relaxed. The mailbox orders the giver's store before the taker's load;
 *         what a holder did to the memory is ordered by the mailbox, or by the return list (W2, home.c).
 * Tested  tests/unit/test_share.c, tests/stress/stress_share.c.
 */
#include "mem/share.h"

#include <errno.h>
#include <sys/mman.h>
#include <weft/base.h>

#include "base/cpu.h"
#include "base/tsan.h"
#include "mem/atlas.h"
#include "mem/buf.h"
#include "mem/ledger.h"
#include "mem/poison.h"
#include "mem/pool.h"
#include "mem/straight.h"
#include "mem/word.h"

static struct wf_buf *inner(struct weft_buf *buf)
{
	return (struct wf_buf *)(void *)buf;
}

static void holder_set(struct wf_entry *e, uint64_t holder)
{
	atomic_store_explicit(&e->holder, holder, memory_order_relaxed);
}

static bool flies_here(struct wf_entry *e, uint32_t from)
{
	return atomic_load_explicit(&e->holder, memory_order_relaxed) == wf_flying(from, wf_segments.process);
}

static int nonsense(const struct wf_flight *f)
{
	return weft_fail(-EBADMSG, "a buffer that is none: segment %u of process %u, offset %llu, class %u", f->segment, f->maker,
			 (unsigned long long)f->offset, f->class);
}

/* One of ours lets go, given to @to; 0: its entry says so. */
static void own_leave(struct wf_buf *b, uint32_t to)
{
	wf_user_releases(b);
	if (b->class)
		wf_poison(b->home, (size_t)1 << b->class);
	atomic_store_explicit(&b->word, wf_away(to), memory_order_release);             /* W1 */
}

/* The holder's handle lets go of the buffer. W1: after the entry says where it goes. */
static void handle_leave(struct wf_buf *b)
{
	if (wf_buf_far(b))
		wf_far_leaves(b);
	else
		own_leave(b, 0);
}

/* What a view shows is a buffer of ours in shared memory, or it cannot be seen from elsewhere. */
static const struct wf_buf *view_root(const struct wf_buf *v)
{
	while (!v->class)
		v = v->view.of;
	return v;
}

static int fly_view(struct wf_buf *v, uint32_t to, struct wf_flight *ret_flight)
{
	const struct wf_buf *root = view_root(v);
	struct wf_place place;
	int r;

	if (wf_buf_far(root) || !wf_place_of(v->home, &place))
		return -EXDEV;
	r = wf_ledger_new(v, &v->slot);
	if (r < 0)
		return r == -ENOSPC ? -EXDEV : -ENOMEM;
	*ret_flight = (struct wf_flight){
		.maker = place.process,
		.segment = place.segment,
		.offset = place.offset,
		.index = v->slot,
		.class = root->class,
		.view = 1,
	};
	if (v->phase == WF_PHASE_SENDING)
		wf_view_move(v, WF_PHASE_SENT);
	holder_set(&wf_ledger_mine()->entry[v->slot], wf_flying(wf_segments.process, to));
	handle_leave(v);
	return 0;
}

/* A buffer with a segment of its own. */
static int fly_big(struct wf_buf *b, uint32_t to, struct wf_flight *ret_flight)
{
	bool far = wf_buf_far(b);
	struct wf_ledger *l = wf_ledger_mine();

	if (!b->slot || (far && wf_atlas_ledger(b->far.maker, &l) < 0))
		return -EXDEV;
	*ret_flight = (struct wf_flight){
		.maker = far ? b->far.maker : wf_segments.process,
		.segment = far ? b->far.big->segment : wf_ledger_segment(b->slot),
		.index = b->slot,
		.class = wf_buf_class(b),
	};
	holder_set(&l->entry[b->slot], wf_flying(wf_segments.process, to));
	handle_leave(b);
	return 0;
}

static WF_SLOW int fly_odd(struct wf_buf *b, uint32_t to, struct wf_flight *ret_flight)
{
	if (!b->class)
		return fly_view(b, to, ret_flight);
	if (b->class == WF_CLASS_FAR)
		return -EXDEV;
	return fly_big(b, to, ret_flight);
}

int wf_buf_fly(struct weft_buf *carry, uint32_t to, struct wf_flight *ret_flight)
{
	struct wf_buf *b = inner(carry);
	unsigned class = wf_buf_class(b);
	const struct wf_chunk *c;
	uint32_t index;

	if (wf_unlikely(!wf_class_in_chunk(class)))
		return fly_odd(b, to, ret_flight);
	c = wf_space_chunk_of(b);
	if (wf_unlikely(!c->entries))
		return -EXDEV;
	index = wf_space_index_of(b);
	ret_flight->maker = c->process;
	ret_flight->segment = c->segment;
	ret_flight->offset = (uintptr_t)b->home & (WF_CHUNK_BYTES - 1);
	ret_flight->index = index;
	ret_flight->class = class;
	ret_flight->view = 0;
	if (wf_likely(!wf_buf_far(b))) {
		ret_flight->number = wf_flight_number(b);
		own_leave(b, to);
		return 0;
	}
	ret_flight->number = 0;
	holder_set(wf_space_entry(c, class, index), wf_flying(wf_segments.process, to));
	atomic_thread_fence(memory_order_release);      /* with wf_bury_name: free only behind that word */
	wf_far_leaves(b);
	return 0;
}

/* Its entry, of a carry that flew. */
static struct wf_entry *entry_of(const struct wf_buf *b)
{
	struct wf_ledger *l = wf_ledger_mine();
	const struct wf_chunk *c;

	if (wf_class_in_chunk(wf_buf_class(b))) {
		c = wf_space_chunk_of(b);
		return wf_space_entry(c, wf_buf_class(b), wf_space_index_of(b));
	}
	if (wf_buf_far(b))
		wf_atlas_ledger(b->far.maker, &l);      /* mapped since it landed */
	return &l->entry[b->slot];
}

void wf_buf_unfly(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	if (!b->class) {
		wf_share_unlend(b);
		return;
	}
	if (!wf_buf_far(b))
		wf_unpoison(b->home, (size_t)1 << b->class);
	wf_word_set(b, WF_BUF_SENDING);         /* first: our name on a buffer that is not in our hands would be cleared (bury.c) */
	atomic_thread_fence(memory_order_release);
	if (!wf_buf_far(b)) {
		wf_entry_clear(entry_of(b));
		return;
	}
	if (wf_class_in_chunk(wf_buf_class(b)))
		b->far.brief = 0;               /* its entry says something from now on */
	holder_set(entry_of(b), wf_held(wf_segments.process));
}

void wf_buf_flown(const struct wf_flight *flight)
{
	if (wf_unlikely(flight->class > WF_CLASS_CHUNK && !flight->view && flight->maker != wf_segments.process))
		wf_big_put_of(flight->maker, flight->segment);
}

void wf_chunk_note_class(struct wf_chunk *c, uint64_t offset, unsigned class)
{
	unsigned first = (unsigned)(offset >> WF_CLASS_UNIT), n = class <= WF_CLASS_UNIT ? 1 : 1u << (class - WF_CLASS_UNIT);

	for (unsigned u = first; u < first + n; u++)
		atomic_store_explicit(&c->class[u], (uint8_t)class, memory_order_relaxed);
}

struct wf_chunk *wf_landed_in(uint32_t process, uint32_t segment)
{
	struct wf_chunk *c = process == wf_segments.process ? NULL : wf_atlas_chunk_mapped(process, segment);
	struct wf_cache *cache = c ? wf_depot_cache() : NULL;

	if (cache) {
		cache->landed = (uint64_t)segment << 32 | process;
		cache->landed_in = c;
		cache->landed_on = c->handles;
	}
	return c;
}

struct wf_chunk *wf_given_from(const struct wf_buf *b)
{
	struct wf_chunk *c = wf_space_chunk_of(b);
	struct wf_cache *cache = c->entries ? wf_depot_cache() : NULL;

	if (cache) {
		cache->given = (uintptr_t)c->handles;
		cache->given_from = c;
	}
	return c->entries ? c : NULL;
}

/* @named: straight from its maker or not, the entry is to say who has it. */
static int land_in_chunk(struct wf_chunk *c, uint32_t index, uint32_t from, const struct wf_flight *f, size_t len, bool named, struct weft_buf **ret_buf)
{
	struct wf_entry *e = wf_space_entry(c, f->class, index);
	struct wf_buf *b = &c->handles[index];
	bool straight = from == f->maker;

	if (!wf_handle_open(b) || !(straight ? wf_flies_anew(b, index, f) : flies_here(e, from)))
		return nonsense(f);
	if (named || !straight)
		holder_set(e, wf_held(wf_segments.process));
	wf_land_at(c, b, index, f->class, f->offset, len, straight && !named, ret_buf);
	return 0;
}

static int land_far_big(uint32_t from, const struct wf_flight *f, size_t len, struct weft_buf **ret_buf)
{
	struct wf_ledger *l;
	struct wf_big *big;
	struct wf_buf *b;
	int r;

	if (f->class > WF_CLASS_MAX || f->offset || len > (size_t)1 << f->class || f->index >= WF_LEDGER_SLOTS || !f->index)
		return nonsense(f);
	r = wf_atlas_ledger(f->maker, &l);
	if (r < 0)
		return r;
	if (!flies_here(&l->entry[f->index], from))
		return nonsense(f);
	r = wf_big_get(f->maker, f->segment, &big);
	if (r < 0)
		return r;
	b = big->buf;
	if (big->class != f->class || !wf_handle_open(b)) {
		wf_big_put(big);
		return nonsense(f);
	}
	holder_set(&l->entry[f->index], wf_held(wf_segments.process));
	b->slot = f->index;
	wf_hand_over(b, len, (size_t)1 << f->class, ret_buf);
	wf_word_set(b, WF_BUF_HELD);
	return 0;
}

/* Its maker is dead, and the chunk goes when nobody has a buffer of it: bury.h. */
static WF_SLOW int land_late(struct wf_chunk *c, uint32_t index, uint32_t from, const struct wf_flight *f, size_t len,
			     struct weft_buf **ret_buf)
{
	int r;

	wf_atlas_hold();
	r = c->blank ? nonsense(f) : land_in_chunk(c, index, from, f, len, true, ret_buf);
	wf_atlas_release();
	return r;
}

static int land_far(uint32_t from, const struct wf_flight *f, size_t len, struct weft_buf **ret_buf)
{
	struct wf_chunk *c;
	uint32_t index;
	int r;

	if (wf_unlikely(!wf_chunk_index(f->offset, f->class, &index) || len > (size_t)1 << f->class))
		return nonsense(f);
	r = wf_atlas_chunk(f->maker, f->segment, &c);
	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(atomic_load_explicit(&c->dead, memory_order_relaxed)))
		return land_late(c, index, from, f, len, ret_buf);
	return land_in_chunk(c, index, from, f, len, false, ret_buf);
}

/* Where the buffer that a view shows lies here; *@ret_big has one user more, or is NULL. */
static int view_place(const struct wf_flight *f, char **ret_data, struct wf_big **ret_big)
{
	struct wf_big *big = NULL;
	struct wf_chunk *c;
	uint32_t index;
	int r;

	if (!wf_chunk_index(f->offset, f->class, &index)) {
		r = f->offset ? -EBADMSG : wf_big_get(f->maker, f->segment, &big);
		if (r < 0)
			return r;
		if (big->class != f->class) {
			wf_big_put(big);
			return nonsense(f);
		}
		*ret_data = big->data;
	} else {
		r = wf_atlas_chunk(f->maker, f->segment, &c);
		if (r < 0)
			return r;
		wf_chunk_note_class(c, f->offset, f->class);
		*ret_data = c->data + f->offset;
	}
	*ret_big = big;
	return 0;
}

static WF_SLOW int land_view(uint32_t from, const struct wf_flight *f, size_t len, struct weft_buf **ret_buf)
{
	struct wf_big *big = NULL;
	struct wf_ledger *l;
	struct wf_link *link;
	struct wf_buf *v;
	char *data = NULL;
	int r;

	if (f->maker == wf_segments.process || f->index >= WF_LEDGER_SLOTS || !f->index || f->class > WF_CLASS_MAX ||
	    len > (size_t)1 << f->class)
		return nonsense(f);
	r = wf_atlas_ledger(f->maker, &l);
	if (r < 0)
		return r;
	if (!flies_here(&l->entry[f->index], from))
		return nonsense(f);
	r = view_place(f, &data, &big);
	if (r < 0)
		return r;
	r = wf_depot_get(WF_DEPOT_HANDLE, &link);
	if (r < 0) {
		if (big)
			wf_big_put(big);
		return weft_fail(-ENOMEM, "no memory for a view of another process's buffer");
	}
	v = wf_pool_buf(link);
	holder_set(&l->entry[f->index], wf_held(wf_segments.process));
	v->class = WF_CLASS_FAR;
	v->slot = f->index;
	v->home = data;
	v->far.big = big;
	v->far.maker = f->maker;
	v->far.room = (uint32_t)len;
	wf_share_views(1);
	if (!big)
		atomic_fetch_add_explicit(&wf_space_chunk_of(v)->views, 1, memory_order_relaxed);
	wf_far_view_lands(v);
	wf_hand_over(v, len, len, ret_buf);
	wf_word_set(v, WF_BUF_HELD);
	return 0;
}

/* Our own buffer that @f speaks of, and its entry; NULL: none. Only a handle that is away tells whether it really does. */
static struct wf_buf *own_of(const struct wf_flight *f, struct wf_entry **ret_entry)
{
	struct wf_posting *rec;
	struct wf_chunk *c;
	uint32_t index;

	if (wf_chunk_index(f->offset, f->class, &index)) {
		c = wf_atlas_own(f->segment);
		/* relaxed: that of any of it that is away. Another would have its entry elsewhere. */
		if (!c || atomic_load_explicit(&c->class[index / WF_UNIT_HANDLES], memory_order_relaxed) != f->class)
			return NULL;
		*ret_entry = wf_space_entry(c, f->class, index);
		return &c->handles[index];
	}
	rec = f->offset ? NULL : wf_ledger_posting(f->index);
	if (!rec || atomic_load_explicit(&rec->segment, memory_order_relaxed) != f->segment)
		return NULL;
	*ret_entry = &wf_ledger_mine()->entry[f->index];
	return atomic_load_explicit(&rec->buf, memory_order_acquire);
}

/* It comes back as what it was: the same handle. */
static int land_own(uint32_t from, const struct wf_flight *f, size_t len, struct weft_buf **ret_buf)
{
	struct wf_entry *e;
	struct wf_buf *b = own_of(f, &e);
	uint64_t word = b ? atomic_load_explicit(&b->word, memory_order_relaxed) : WF_BUF_NONE, away = word;    /* the swap decides */
	uint32_t times = b ? wf_came_back(b) : 0;

	if (!wf_is_away(word) || !flies_here(e, from) || !wf_word_swap(b, &word, WF_BUF_SENT, memory_order_acquire) ||  /* W1 */
	    !wf_share_landed(b, away, times))
		return nonsense(f);
	if (b->class != f->class || len > (size_t)1 << b->class) {
		atomic_store_explicit(&b->word, away, memory_order_release);                    /* W1 */
		return nonsense(f);
	}
	wf_entry_clear(e);
	if (wf_class_in_chunk(b->class))
		wf_comes_back(b);
	wf_unpoison(b->home, (size_t)1 << b->class);
	wf_hand_over(b, len, (size_t)1 << b->class, ret_buf);
	wf_word_set(b, WF_BUF_HELD);
	return 0;
}

int wf_buf_land(uint32_t from, const struct wf_flight *flight, size_t len, struct weft_buf **ret_buf)
{
	if (wf_unlikely(flight->view))
		return land_view(from, flight, len, ret_buf);
	if (flight->maker == wf_segments.process)
		return land_own(from, flight, len, ret_buf);
	if (wf_unlikely(flight->class > WF_CLASS_CHUNK))
		return land_far_big(from, flight, len, ret_buf);
	return land_far(from, flight, len, ret_buf);
}

/* Of another's chunk. */
static void refuse_in_chunk(uint32_t from, const struct wf_flight *f, uint32_t index)
{
	struct wf_chunk *c;
	struct wf_entry *e;

	if (wf_atlas_chunk(f->maker, f->segment, &c) < 0)
		return;
	e = wf_space_entry(c, f->class, index);
	if (from == f->maker) {
		if (!wf_handle_open(&c->handles[index]) || !wf_flies_anew(&c->handles[index], index, f))
			return;
	} else {
		if (!flies_here(e, from))
			return;
		holder_set(e, wf_held(wf_segments.process));
	}
	wf_share_send_home(c, f->class, index, from == f->maker);
}

void wf_buf_refuse(uint32_t from, const struct wf_flight *f)
{
	struct wf_entry *e = NULL;
	struct wf_ledger *l;
	struct wf_buf *b;
	uint32_t index;

	if (f->maker == wf_segments.process) {
		b = f->view ? NULL : own_of(f, &e);
		if (b && flies_here(e, from))
			wf_share_refused(b, e);
		return;
	}
	if (!f->view && wf_chunk_index(f->offset, f->class, &index)) {
		refuse_in_chunk(from, f, index);
		return;
	}
	if (!f->index || f->index >= WF_LEDGER_SLOTS || wf_atlas_ledger(f->maker, &l) < 0 || !flies_here(&l->entry[f->index], from))
		return;
	holder_set(&l->entry[f->index], wf_held(wf_segments.process));
	wf_share_send_home_odd(f->maker, l, f->index);
}
