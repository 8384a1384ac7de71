/* home.c - buffers on their way home: chains, the return list, strips, and what the dead had. See share.h.
 *
 *   holder   chain of this thread, per maker     brief links, up to 15; and  o-o-o  up to 7 entries (private but for their next)
 *   maker    a strip for each holder (strip.h)   line, line, ...             15 brief links each
 *            head in his ledger --> entry --> entry --> ...                  links, through the entries' next
 *                                   slip                                     beside the link of a wide one: up to 6 others
 *
 * Shape   What its holder got straight from its maker goes by strip: one line is written there and read here for 15 of them, and the maker looks at nothing else that
 *         is shared. It takes home what its private word says is AWAY to that very holder, and leaves the entry alone: it says 0, as nobody but who gives a buffer on
 *         writes there. A holder that returns by strip what it has given on lies, as one does that returns it by the list at that time, and the word
 *         that then stands in the entry of the next life he could have written there at any time: it can delay the return after the next holder's death.
 *         Everything else goes by the list: what was given on, whose entry has to be cleared; what is smaller than a line's worth, or large; views; and what finds no strip or no room.
 * List    A stack that anybody pushes whole chains onto (one CAS) and whose maker takes it whole (one exchange): no
 *         node is ever taken singly, so an old head that comes back means the same list or one whose next is written
 *         anew before the CAS. The maker follows links only into his own entries, and takes home only what his
 *         private words say is away. Who runs short takes a few home and leaves the rest of what was taken off the list for the next time (rest).
 *         What others may have written can make a walk end early, never long: it ends
 *         after STRANGE_MOST links that led to nothing.
 * Slip    Each line that a holder writes has to be fetched by the maker, one after another where a link is read out of the last. So of those with brief
 *         links that must go by the list only one in seven has its line written: the others stand in it. A slip is written whole
 *         whenever a wide buffer is linked, before the push (W2): the maker never reads an old one.
 * Death   A chain, a slip, or a line of a strip that a dying process did not publish is never read; what stood there is found by its words.
 *         A buffer that is away and HELD(dead), or was given to the dead and its word says 0, is taken back after the list and the strips
 *         were emptied: what he had returned is then off them. Walks and scans exclude one another by home_lock; otherwise a scan could take back what a
 *         walk has yet to reach, and the walk take back its next life.
 * Word    Whatever the entry said, it says 0 before the buffer is in the pool: its next life begins with that.
 * Edges   W1  see share.c.
 *         W2  release CAS of head (each push reads the one before: a release sequence) -> acquire exchange: the
 *             entries' next, and all that holders did to the memory, before its next life.
 *         W3  see strip.c: the same by strip.
 * Locks   home_lock; under it everything that a buffer's way into the pool takes.
 * Tested  tests/unit/test_share.c, tests/unit/test_strip.c, tests/stress/stress_share.c.
 */
#include <errno.h>
#include <limits.h>

#include "base/life.h"
#include "base/lock.h"
#include "mem/atlas.h"
#include "mem/depot.h"
#include "mem/ledger.h"
#include "mem/pool.h"
#include "mem/share.h"
#include "mem/straight.h"
#include "mem/strip.h"
#include "mem/word.h"

#define SLIP 6                          /* brief links beside a link */
#define CHAIN_MOST (1 + SLIP)
#define STRANGE_MOST 64
#define SOME (4 * CHAIN_MOST)           /* come home at a time: each has its line asked for while those before it go home */
#define SOME_LINES 2                    /* of a strip, likewise */
#define ASKS_PER_SCAN 256
#define PUSH_TRIES 100000               /* only a maker who writes his head without end makes a push fail so often */

enum { ALIVE, DEAD, SETTLED };

static struct wf_lock home_lock;
static _Atomic uint8_t fate[WF_PROCESSES];
static atomic_bool any_dead;
static _Atomic uint64_t rest;           /* written under home_lock: of a list that was taken, the link where its walk goes on; 0: nowhere */
static _Atomic size_t views_here;       /* of other processes' buffers */

void wf_share_views(int more)
{
	atomic_fetch_add_explicit(&views_here, (size_t)more, memory_order_relaxed);     /* a figure */
}

/* A chain that cannot be pushed stays out until this process ends: its entries say HELD(me). */
static void push(uint32_t maker, uint64_t first, struct wf_entry *last)
{
	struct wf_ledger *l;
	uint64_t head;

	if (wf_atlas_ledger(maker, &l) < 0)
		return;
	head = atomic_load_explicit(l->head, memory_order_relaxed);             /* the CAS decides */
	for (int tries = 0; tries < PUSH_TRIES; tries++) {
		atomic_store_explicit(&last->next, head, memory_order_relaxed);
		if (atomic_compare_exchange_weak_explicit(l->head, &head, first, memory_order_release,  /* W2 */
							  memory_order_relaxed))
			return;
	}
}

/* Who stands on the slip of @wide, in the line that has the link. All of it, as it may say something old. */
static void slip_write(struct wf_entry *wide, const uint32_t *brief, unsigned n)
{
	for (unsigned i = 0; i < SLIP; i += 2) {
		uint64_t two = (i < n ? brief[i] : 0) | (uint64_t)(i + 1 < n ? brief[i + 1] : 0) << 32;

		atomic_store_explicit(&wide[1 + i / 2].next, two, memory_order_relaxed);        /* W2 publishes it */
	}
}

/* By the list, seven to a line. */
static void briefs_push(uint32_t maker, const uint32_t *brief, unsigned n)
{
	for (unsigned some; n > 0; n -= some, brief += some) {
		uint32_t segment = *brief >> WF_BRIEF_BITS, index = *brief & ((1u << WF_BRIEF_BITS) - 1);
		struct wf_entry *e = wf_space_entry(wf_atlas_chunk_mapped(maker, segment), WF_CLASS_WIDE, index);       /* mapped since it landed */

		some = n < CHAIN_MOST ? n : CHAIN_MOST;
		slip_write(e, brief + 1, some - 1);
		push(maker, wf_link_to(segment, index), e);
	}
}

static void briefs_home(uint32_t maker, uint32_t brief[WF_BRIEFS], unsigned n)
{
	for (unsigned i = n; i < WF_BRIEFS; i++)
		brief[i] = 0;
	if (wf_unlikely(!wf_strip_put(maker, brief)))
		briefs_push(maker, brief, n);
}

static bool chain_any(const struct wf_chain *chain)
{
	return chain->links | chain->briefs;
}

static void chain_push(struct wf_chain *chain)
{
	if (chain->briefs)
		briefs_home(chain->maker, chain->brief, chain->briefs);
	if (chain->links)
		push(chain->maker, chain->first, chain->last);
	chain->links = chain->briefs = 0;
}

int wf_chain_full(struct wf_chain *chain)
{
	if (wf_is_child())
		chain->links = chain->briefs = 0;
	else
		chain_push(chain);
	return 0;
}

/* The chain for @maker's: his, or one that is empty, made so if need be. NULL: this thread may have none any more. */
static struct wf_chain *chain_for(uint32_t maker)
{
	struct wf_cache *c = wf_cache;
	struct wf_chain *empty = NULL;

	if (!c && !(c = wf_depot_cache()))
		return NULL;
	for (int i = 0; i < WF_CHAINS; i++) {
		if (chain_any(&c->chain[i]) && c->chain[i].maker == maker)
			return &c->chain[i];
		if (!chain_any(&c->chain[i]) && !empty)
			empty = &c->chain[i];
	}
	if (!empty) {
		empty = &c->chain[maker % WF_CHAINS];
		chain_push(empty);
	}
	empty->maker = maker;
	return empty;
}

/* One more of @maker's, by the list. */
static void link_home(uint32_t maker, struct wf_entry *entry, uint64_t link)
{
	struct wf_chain *chain = chain_for(maker);

	if (wf_unlikely(!chain)) {
		push(maker, link, entry);
		return;
	}
	if (!chain->links)
		chain->last = entry;
	else
		atomic_store_explicit(&entry->next, chain->first, memory_order_relaxed);        /* W2 publishes it */
	chain->first = link;
	if (++chain->links == CHAIN_MOST)
		chain_push(chain);
}

/* And by strip. */
static void brief_home(uint32_t maker, unsigned class, uint32_t brief)
{
	struct wf_chain *chain = chain_for(maker);

	if (wf_unlikely(!chain)) {
		uint32_t alone[WF_BRIEFS] = { brief };

		briefs_home(maker, alone, 1);
		return;
	}
	chain->brief[chain->briefs++] = brief;
	if (chain->briefs >= wf_briefs_most(class))
		chain_push(chain);
}

void wf_share_send_home(const struct wf_chunk *c, unsigned class, uint32_t index, bool straight)
{
	struct wf_entry *entry;

	if (wf_is_child())
		return;
	if (wf_likely(straight && wf_class_brief(class))) {
		brief_home(c->process, class, wf_brief_to(c->segment, index));
		return;
	}
	entry = wf_space_entry(c, class, index);
	if (wf_class_wide(class))
		slip_write(entry, NULL, 0);
	link_home(c->process, entry, wf_link_to(c->segment, index));
}

void wf_share_send_home_odd(uint32_t maker, struct wf_ledger *l, uint32_t slot)
{
	if (!wf_is_child())
		link_home(maker, &l->entry[slot], wf_link_to(WF_SEGMENT_LEDGER, slot));
}

/* A view, or a buffer with a segment of its own. The handle of the latter stays with the segment. */
static void return_odd(struct wf_buf *b)
{
	struct wf_big *big = b->far.big;
	uint32_t maker = b->far.maker, slot = b->slot;
	struct wf_ledger *l;

	if (b->class == WF_CLASS_FAR) {
		wf_share_views(-1);
		wf_far_view_leaves(b);
		if (!big)
			atomic_fetch_sub_explicit(&wf_space_chunk_of(b)->views, 1, memory_order_relaxed);
		wf_depot_put(WF_DEPOT_HANDLE, &b->link);
	} else {
		wf_far_leaves(b);
	}
	if (wf_is_child())
		return;
	/* At once: a lender looks whether it is back, and large ones are worth a push. */
	if (wf_atlas_ledger(maker, &l) == 0) {
		wf_share_send_home_odd(maker, l, slot);
		wf_share_flush();
	}
	if (big)
		wf_big_put(big);
}

void wf_share_return(struct wf_buf *b)
{
	unsigned class = wf_buf_class(b);       /* before it leaves */
	struct wf_chunk *c;
	uint32_t index;
	bool straight;

	if (wf_unlikely(!wf_class_in_chunk(class))) {
		return_odd(b);
		return;
	}
	c = wf_space_chunk_of(b);
	index = wf_space_index_of(b);
	straight = b->far.brief;
	wf_far_leaves(b);
	wf_share_send_home(c, class, index, straight);
}

void wf_share_flush(void)
{
	struct wf_cache *c = wf_cache;

	if (!c || wf_is_child())
		return;
	for (int i = 0; i < WF_CHAINS; i++)
		if (chain_any(&c->chain[i]))
			chain_push(&c->chain[i]);
}

/* @b, away until this moment, is ours again. */
static inline void came(struct wf_buf *b, struct wf_entry *e)
{
	wf_user_acquires(b);
	/* relaxed: who has put it writes here no more, and its next life begins behind this. Mostly it is 0: then the line is not taken from anybody. */
	if (wf_unlikely(atomic_load_explicit(&e->holder, memory_order_relaxed)))
		wf_entry_clear(e);
	if (wf_likely(b->class - 1u < WF_CLASS_CHUNK)) {
		wf_comes_back(b);
		wf_pool_home(b);
		return;
	}
	if (!b->class)
		wf_ledger_end(b->slot);
	wf_buf_home(b);
}

static void came_locked(struct wf_buf *b, struct wf_entry *e)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);   /* the swap decides */

	wf_assert_held(&home_lock);
	if (wf_is_away(word) && wf_word_swap(b, &word, WF_BUF_FREE, memory_order_acquire))      /* W1 */
		came(b, e);
}

void wf_share_refused(struct wf_buf *b, struct wf_entry *e)
{
	wf_lock_hot(&home_lock);
	came_locked(b, e);
	wf_unlock(&home_lock);
}

bool wf_share_landed(const struct wf_buf *b, uint64_t word, uint32_t times)
{
	bool same;

	wf_fence_light();                                               /* F1: with wf_strip_open */
	if (wf_likely(!wf_strip_opened(wf_away_to(word))))
		return true;
	wf_lock_hot(&home_lock);
	same = wf_came_back(b) == times;
	wf_unlock(&home_lock);
	return same;
}

void wf_share_unlend(struct wf_buf *v)
{
	wf_lock_hot(&home_lock);         /* wf_share_taken may be looking at it */
	wf_ledger_end(v->slot);
	if (v->phase == WF_PHASE_SENT)
		wf_view_move(v, WF_PHASE_SENDING);
	wf_word_set(v, WF_BUF_SENDING);
	wf_unlock(&home_lock);
}

struct homing {                         /* a walk along the return list, or lines of strips */
	int n, strange;                 /* came home; led to nothing that was away */
	uint32_t from;                  /* a holder who could do with a strip; 0: none */
	uint32_t segment;               /* where the last one was; 0: nowhere yet */
	struct wf_chunk *chunk;
};

/* Buffer number @index of our chunk @segment, any numbers; NULL: there can be none. */
static inline struct wf_buf *chunk_at(struct homing *h, uint32_t segment, uint32_t index)
{
	if (wf_unlikely(h->segment != segment)) {
		h->segment = segment;
		h->chunk = wf_atlas_own(segment);
	}
	return wf_likely(h->chunk && index < WF_ENTRIES) ? &h->chunk->handles[index] : NULL;
}

/* Likewise with its entry. *@ret_wide: it may have a slip. */
static inline struct wf_buf *chunk_follow(struct homing *h, uint32_t segment, uint32_t index, struct wf_entry **ret_entry, bool *ret_wide)
{
	struct wf_buf *b = chunk_at(h, segment, index);
	unsigned class;

	if (wf_unlikely(!b))
		return NULL;
	class = atomic_load_explicit(&h->chunk->class[index / WF_UNIT_HANDLES], memory_order_relaxed);  /* that of any of it that is away */
	*ret_entry = wf_space_entry(h->chunk, class, index);
	*ret_wide = wf_class_wide(class);
	return b;
}

/* What @link leads to among ours; NULL: nothing. */
static struct wf_buf *link_follow(struct homing *h, uint64_t link, struct wf_entry **ret_entry, bool *ret_wide)
{
	uint32_t segment = (uint32_t)(link >> WF_LINK_BITS), index = (uint32_t)link & ((1u << WF_LINK_BITS) - 1);
	struct wf_posting *rec;

	if (link >> (WF_LINK_BITS + 32))
		return NULL;
	if (segment != WF_SEGMENT_LEDGER)
		return chunk_follow(h, segment, index, ret_entry, ret_wide);
	rec = wf_ledger_posting(index);
	*ret_entry = &wf_ledger_mine()->entry[index];
	*ret_wide = false;
	return rec ? atomic_load_explicit(&rec->buf, memory_order_acquire) : NULL;
}

/* No acquire: what the word and the entry said before it was given away is behind W2, by way of the taker. */
static inline void home_one(struct homing *h, struct wf_buf *b, struct wf_entry *e)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);   /* the swap decides */

	do {
		if (wf_unlikely(!wf_is_away(word))) {
			h->strange++;
			return;
		}
	} while (wf_unlikely(!wf_word_swap_bare(b, &word, WF_BUF_FREE)));
	if (wf_class_brief(b->class) && !atomic_load_explicit(&e->holder, memory_order_relaxed))
		h->from = wf_away_to(word);
	came(b, e);
	h->n++;
}

static inline void home_brief(struct homing *h, uint32_t brief)
{
	struct wf_entry *e;
	struct wf_buf *b;
	bool wide;

	if (!brief)
		return;
	b = chunk_follow(h, brief >> WF_BRIEF_BITS, brief & ((1u << WF_BRIEF_BITS) - 1), &e, &wide);
	if (b)
		home_one(h, b, e);
	else
		h->strange++;
}

/* All of the line before it is anybody else's. The next link. */
static inline uint64_t line_read(struct wf_entry *e, bool wide, uint64_t *slip)
{
	for (int i = 0; i < SLIP / 2; i++)
		slip[i] = wide ? atomic_load_explicit(&e[1 + i].next, memory_order_relaxed) : 0;
	return atomic_load_explicit(&e->next, memory_order_relaxed);
}

/* Walks along @link until @most have come home: where to go on; 0: at the end. */
static uint64_t walk_locked(uint64_t link, int most, struct homing *h)
{
	struct wf_entry *e, *after;
	struct wf_buf *b;
	bool wide;

	b = link ? link_follow(h, link, &e, &wide) : NULL;
	while (b && h->n < most) {
		struct wf_buf *home = b;
		uint64_t slip[SLIP / 2];

		if (h->strange >= STRANGE_MOST)
			return 0;
		link = line_read(e, wide, slip);
		after = e;
		b = link ? link_follow(h, link, &after, &wide) : NULL;
		if (b)
			__builtin_prefetch(after);      /* it comes from the core that wrote it, while what is here goes home */
		home_one(h, home, e);
		e = after;
		for (int i = 0; i < SLIP / 2; i++) {
			home_brief(h, (uint32_t)slip[i]);
			home_brief(h, (uint32_t)(slip[i] >> 32));
		}
	}
	return b ? link : 0;
}

struct load {                           /* buffers of one class that come home together */
	struct wf_link *first, *last;
	unsigned class, n;
};

static inline void load_put(struct homing *h, struct load *load)
{
	if (load->n)
		wf_depot_put_list(WF_DEPOT_BUF + (int)load->class - WF_CLASS_MIN, load->first, load->last, load->n);
	h->n += (int)load->n;
	load->n = 0;
}

static inline void load_add(struct homing *h, struct load *load, struct wf_buf *b)
{
	if (wf_unlikely(!load->n || load->class != b->class)) {
		load_put(h, load);
		load->class = b->class;
		load->first = NULL;
		load->last = &b->link;
	}
	b->link.next = load->first;
	load->first = &b->link;
	load->n++;
}

/* A line of the strip of one to whom we have given what says @away. By load and store: nothing leaves that state but under this lock, or tells by wf_share_landed that it
 * has; fifteen swaps in a row would take three times as long. */
static inline void line_home_locked(struct homing *h, const uint32_t brief[WF_BRIEFS], uint64_t away)
{
	struct load load = { .n = 0 };

	for (int i = 0; i < WF_BRIEFS && brief[i]; i++) {
		struct wf_buf *b = chunk_at(h, brief[i] >> WF_BRIEF_BITS, brief[i] & ((1u << WF_BRIEF_BITS) - 1));

		if (wf_unlikely(!b || atomic_load_explicit(&b->word, WF_LAND) != away))
			continue;
		atomic_store_explicit(&b->word, WF_BUF_FREE, WF_LEAVE);
		wf_user_acquires(b);
		wf_comes_back(b);
		load_add(h, &load, b);
	}
	load_put(h, &load);
}

/* Up to @lines of each strip, until @most have come home. They take turns. */
static void strips_locked(struct homing *h, int lines, int most)
{
	static uint32_t slot;
	uint32_t brief[WF_BRIEFS], holder, n = wf_strips();

	for (uint32_t left = n; left > 0 && h->n < most; left--) {
		slot = slot + 1 < n ? slot + 1 : 0;
		for (int i = 0; i < lines && h->n < most && wf_strip_take(slot, &holder, brief); i++)
			line_home_locked(h, brief, wf_away(holder));
	}
}

static int list_locked(struct wf_ledger *l, int most)
{
	uint64_t link = atomic_load_explicit(&rest, memory_order_relaxed);      /* written under this lock */
	struct homing h = { .n = 0 };

	if (link)
		link = walk_locked(link, most, &h);
	if (!link && h.n < most) {
		h.strange = 0;
		link = walk_locked(atomic_exchange_explicit(l->head, 0, memory_order_acquire), most, &h);       /* W2 */
	}
	atomic_store_explicit(&rest, link, memory_order_relaxed);
	if (wf_unlikely(h.from))
		wf_strip_open(h.from);
	return h.n;
}

/* Is something on the list? relaxed: what is pushed this moment is found next time. */
static bool listed(struct wf_ledger *l)
{
	return atomic_load_explicit(&rest, memory_order_relaxed) | atomic_load_explicit(l->head, memory_order_relaxed);
}

static int collect_locked(struct wf_ledger *l, int most)
{
	struct homing h = { .n = 0 };

	strips_locked(&h, most == INT_MAX ? WF_STRIP_LINES : SOME_LINES, most);
	return h.n + (most == INT_MAX || listed(l) ? list_locked(l, most) : 0);
}

static int collect(int most)
{
	struct wf_ledger *l = wf_ledger_mine();
	int n;

	if (!l || wf_is_child() || !(wf_strips_look() || listed(l)))
		return 0;
	wf_lock_hot(&home_lock);
	n = collect_locked(l, most);
	wf_unlock(&home_lock);
	return n;
}

int wf_share_collect(void)
{
	return collect(INT_MAX);
}

int wf_share_collect_some(void)
{
	return collect(SOME);
}

static int fate_of(uint32_t process)
{
	return process < WF_PROCESSES ? atomic_load_explicit(&fate[process], memory_order_relaxed) : ALIVE;
}

bool wf_share_orphaned(uint64_t holder)
{
	uint32_t from = wf_holder_from(holder), to = wf_holder_to(holder);

	switch (holder & WF_HOLDER_KIND) {
	case WF_HOLDER_HELD:
		return fate_of(from) != ALIVE;
	case WF_HOLDER_FLYING:
		return fate_of(from) == SETTLED || fate_of(to) == SETTLED;
	default:
		return false;
	}
}

static void take_back(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_acquire), holder;   /* W1 */

	(void)arg;
	if (!wf_is_away(word))
		return;
	holder = atomic_load_explicit(&e->holder, memory_order_relaxed);
	/* What the dead one got from us, and gave to nobody, nobody will ever read, taken or not. */
	if (holder & WF_HOLDER_KIND ? wf_share_orphaned(holder) : fate_of(wf_away_to(word)) != ALIVE)
		came_locked(b, e);
}

static void scan(void)
{
	struct wf_ledger *l = wf_ledger_mine();

	if (!l || wf_is_child())
		return;
	wf_lock_hot(&home_lock);
	collect_locked(l, INT_MAX);
	wf_atlas_each_own(take_back, NULL);
	wf_unlock(&home_lock);
}

static void fate_set(uint32_t process, uint8_t what)
{
	if (process >= WF_PROCESSES)
		return;
	/* relaxed: read under home_lock, which the scan takes next, or a moment late. */
	atomic_store_explicit(&fate[process], what, memory_order_relaxed);
	atomic_store_explicit(&any_dead, true, memory_order_relaxed);
	scan();
}

void wf_share_dead(uint32_t process)
{
	fate_set(process, DEAD);
}

void wf_share_settled(uint32_t process)
{
	fate_set(process, SETTLED);
	if (wf_is_child())
		return;
	wf_lock_hot(&home_lock);
	wf_strip_close(process);
	wf_unlock(&home_lock);
}

/* Everything the dead had was taken back when that was told. Should somebody have given a buffer to one of them later all the
 * same, it is found here; a scan looks at every buffer, so not each time. */
void wf_share_reclaim(void)
{
	static _Atomic unsigned asks;

	if (!wf_segments_shared())
		return;
	if (atomic_load_explicit(&any_dead, memory_order_relaxed) &&
	    atomic_fetch_add_explicit(&asks, 1, memory_order_relaxed) % ASKS_PER_SCAN == 0)
		scan();
	else
		wf_share_collect();
}

struct taken {
	const struct wf_buf *of;
	uint64_t n;
};

static void count_taken(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	struct taken *t = arg;

	if (wf_is_away(atomic_load_explicit(&b->word, memory_order_acquire)) && !b->class && b->view.of == t->of &&  /* W1 */
	    (atomic_load_explicit(&e->holder, memory_order_relaxed) & WF_HOLDER_KIND) == WF_HOLDER_HELD)
		t->n++;
}

uint64_t wf_share_taken(const struct wf_buf *b)
{
	struct taken t = { b, 0 };

	if (wf_is_child())
		return 0;
	wf_lock_hot(&home_lock);         /* views that are away stay so meanwhile */
	wf_atlas_each_lent(count_taken, &t);
	wf_unlock(&home_lock);
	return t.n;
}

static void count_away(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	(void)e;
	*(size_t *)arg += wf_is_away(atomic_load_explicit(&b->word, memory_order_relaxed));
}

static void count_here(struct wf_buf *b, void *arg)
{
	uint64_t state = atomic_load_explicit(&b->word, memory_order_relaxed) & WF_BUF_STATE;

	*(size_t *)arg += state != WF_BUF_NONE && state != WF_BUF_FREE;
}

void wf_share_count(size_t *ret_away, size_t *ret_here)
{
	size_t away = 0, here = atomic_load_explicit(&views_here, memory_order_relaxed);

	wf_atlas_each_own(count_away, &away);
	wf_atlas_each_far(count_here, &here);
	*ret_away = away;
	*ret_here = here;
}
