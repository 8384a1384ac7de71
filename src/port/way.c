/* way.c - ways made and found, shared and attached; whether ids of other processes live. See way.h; backlog.c and wayend.c for the rest. */
#include "port/ways.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mem/bury.h"
#include "mem/segment.h"
#include "port/context.h"
#include "port/deliver.h"
#include "port/frames.h"
#include "port/inway.h"
#include "port/request.h"
#include "port/self.h"
#include "port/table.h"

#define CACHED 64               /* ways a thread remembers */
#define BUCKETS 1024u
#define SETTLE_MOST (5 * WEFT_S)        /* for cells that were claimed: whoever fills one is soon done. Longer, somebody has written over what it says */

struct wf_lock wf_ways_lock;
static struct wf_way *bucket[BUCKETS];          /* under wf_ways_lock: those that may be found */
static struct wf_way *free_ways;                /* under wf_ways_lock */
static struct spare {
	struct spare *next;
	uint32_t process;
	struct weft_buf *box, *cells, *arena;
} *spares;                                      /* under wf_ways_lock: of ways that are over */
struct wf_way *_Atomic wf_ways_by_key[WF_WAYS_MOST];
static uint32_t keys;                           /* under wf_ways_lock */

static struct wf_face blind;                    /* of a way that is not attached: its gate is 0, which fits no way */

struct wf_way_cache {
	struct {
		weft_id id;
		weft_ctx context;
		struct wf_way *way;
		uint16_t who;
	} at[CACHED];
};

#define SHARED ((struct wf_self *)(void *)&blind)

void wf_way_share(struct wf_way *w)
{
	/* acquire: a user that has given it up itself (below) has stored the tail before. */
	if (!atomic_load_explicit(&w->solo, memory_order_acquire) || atomic_load_explicit(&w->solo, memory_order_relaxed) == &wf_self)
		return;
	atomic_store_explicit(&w->solo, NULL, memory_order_relaxed);
	wf_fence_heavy();                                                       /* F1 */
	while (atomic_load_explicit(&w->in, memory_order_acquire))
		sched_yield();
	wf_fence_heavy();
}

void wf_way_solo(struct wf_way *w)
{
	if (!wf_fence_free)
		return;
	wf_lock(&wf_user_lock);         /* nobody flushes, queues or unqueues */
	wf_lock(&wf_ways_lock);            /* nobody finds, shuts or grows it */
	if (w->user == &wf_self && !w->strong && !w->backlogged && !(atomic_load_explicit(&w->tail, memory_order_relaxed) & WF_WAY_STOPS))
		atomic_store_explicit(&w->solo, &wf_self, memory_order_relaxed);
	wf_unlock(&wf_ways_lock);
	wf_unlock(&wf_user_lock);
}

static uint32_t hash(weft_id id, weft_ctx context)
{
	uint64_t h = id * UINT64_C(0x9e3779b97f4a7c15) ^ context * UINT64_C(0xd6e8feb86659fd93);

	return (uint32_t)(h >> 32);
}

static uint32_t process_of(weft_id id)
{
	return (uint32_t)(id >> 32) & 0xfffff;
}

static bool is_to(struct wf_way *w, weft_id id, weft_ctx context)
{
	return atomic_load_explicit(&w->id, memory_order_relaxed) == id &&
	       atomic_load_explicit(&w->context, memory_order_relaxed) == context;
}

struct wf_way *wf_way_recall(weft_id id, uint16_t *ret_who)
{
	struct wf_way_cache *c = wf_self.ways;
	uint32_t i = hash(id, 0) % CACHED;

	if (!c || c->at[i].id != id || c->at[i].context)
		return NULL;
	wf_self.last_to = id;
	wf_self.last_way = c->at[i].way;
	*ret_who = wf_self.last_who = c->at[i].who;
	return wf_self.last_way;
}

struct wf_way *wf_way_recall_at(const struct weft_port *from, weft_id to, uint16_t *ret_who)
{
	weft_ctx context = atomic_load_explicit(&from->context, memory_order_relaxed);
	struct wf_way_cache *c = wf_self.ways;
	uint32_t i;
	weft_id id;

	if (!c || !from->members || to >> 32 != UINT64_C(0xfff) << 20 || (uint32_t)to >= from->members->count)
		return NULL;
	id = atomic_load_explicit(&from->members->ids[(uint32_t)to], memory_order_relaxed);     /* one that is gone is in no cache */
	i = hash(id, context) % CACHED;
	if (c->at[i].id != id || c->at[i].context != context)
		return NULL;
	wf_self.last_at.from = from;
	wf_self.last_at.context = context;
	wf_self.last_at.to = to;
	wf_self.last_at.way = c->at[i].way;
	*ret_who = wf_self.last_at.who = c->at[i].who;
	return c->at[i].way;
}

static struct wf_way **place_locked(weft_id id, weft_ctx context)
{
	struct wf_way **at = &bucket[hash(id, context) % BUCKETS];

	while (*at && !is_to(*at, id, context))
		at = &(*at)->next;
	return at;
}

static uint64_t proto_hash(const struct weft_proto *proto)
{
	return proto ? wf_ctx_of_text(proto->name) : 0;
}

static bool tell_ring(struct wf_way *w)
{
	struct wf_f_ring f = {
		.key = w->key, .who = w->who,
		.id = atomic_load_explicit(&w->id, memory_order_relaxed),
		.context = atomic_load_explicit(&w->context, memory_order_relaxed),
		.box = wf_f_place_of(w->box), .cells = wf_f_place_of(w->cells),
		.proto = proto_hash(w->proto), .head_len = w->proto ? w->proto->head_len : 0,
	};

	return wf_frame_send(w->peer, WF_F_RING, &f, sizeof(f));
}

static void give_back(struct weft_buf *b)
{
	if (!b)
		return;
	wf_buf_stands(b, false);
	wf_buf_release(b);
}

/* The buffers of a way that is over stay for the next one to the same process. That was told of them and may write there while it lives, whatever it
 * says: they must not become part of what others tell each other (tests/hostile). False: they were not told of, it is dead, or there is no memory. */
static bool keep_locked(const struct wf_way *w)
{
	struct spare *s = w->told && w->box_buf && w->cells_buf && !wf_peer_died(w->peer->process) ? malloc(sizeof(*s)) : NULL;

	if (!s)
		return false;
	*s = (struct spare){ spares, w->peer->process, w->box_buf, w->cells_buf, w->arena_buf };
	spares = s;
	return true;
}

void wf_ways_drop_spares(uint32_t process)
{
	struct spare **at = &spares, *s;

	wf_lock(&wf_ways_lock);
	while ((s = *at) != NULL) {
		if (process && s->process != process) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		give_back(s->box);
		give_back(s->cells);
		give_back(s->arena);
		free(s);
	}
	wf_unlock(&wf_ways_lock);
}

void wf_way_put_locked(struct wf_way *w)
{
	if (!keep_locked(w)) {
		give_back(w->box_buf);
		give_back(w->cells_buf);
		give_back(w->arena_buf);
	}
	w->box_buf = w->cells_buf = w->arena_buf = NULL;
	w->told = false;
	atomic_store_explicit(&w->arena, NULL, memory_order_relaxed);
	w->next = free_ways;
	free_ways = w;
}

void wf_way_unlist_locked(struct wf_way *w)
{
	struct wf_way **at = place_locked(atomic_load_explicit(&w->id, memory_order_relaxed), atomic_load_explicit(&w->context, memory_order_relaxed));

	if (*at == w)
		*at = w->next;
}

static bool reuse_locked(struct wf_way *w, uint32_t process)
{
	struct spare **at = &spares, *s;

	while (*at && (*at)->process != process)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return false;
	*at = s->next;
	w->box_buf = s->box;
	w->cells_buf = s->cells;
	w->arena_buf = s->arena;
	free(s);
	return true;
}

static int get_buffers_locked(struct wf_way *w, uint32_t process)
{
	int r = 0;

	if (!reuse_locked(w, process)) {
		r = wf_buf_alloc(sizeof(struct wf_box), &w->box_buf);
		if (r == 0)
			wf_buf_stands(w->box_buf, true);
		if (r == 0)
			r = wf_buf_alloc(WF_WAY_CELLS * sizeof(struct wf_cell), &w->cells_buf);
		if (r == 0)
			wf_buf_stands(w->cells_buf, true);
	}
	if (r < 0)
		return weft_fail(-ENOMEM, "no memory for a mailbox of another process");
	w->box = w->box_buf->data;
	w->cells = w->cells_buf->data;
	memset(w->box, 0, sizeof(*w->box));
	for (uint32_t i = 0; i < WF_WAY_CELLS; i++)
		atomic_store_explicit(&w->cells[i].seq, 0, memory_order_relaxed);       /* looks old: positions begin at 0 */
	return 0;
}

static struct wf_way *new_locked(void)
{
	struct wf_way *w = free_ways;

	if (w) {
		free_ways = w->next;
		return w;
	}
	if (keys == WF_WAYS_MOST)
		return NULL;
	w = aligned_alloc(WF_PAIR, (sizeof(*w) + WF_PAIR - 1) & ~(size_t)(WF_PAIR - 1));
	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->key = keys;
	atomic_store_explicit(&w->face, &blind, memory_order_relaxed);
	atomic_store_explicit(&wf_ways_by_key[keys++], w, memory_order_release);
	return w;
}

/* A way to (@id, @context) of @peer, which waits until it is attached. */
static int make_locked(struct wf_peer *peer, bool met, weft_id id, weft_ctx context, const struct weft_proto *proto,
		       struct wf_way **ret_way)
{
	struct wf_way *w = new_locked();
	int r;

	if (!w)
		return weft_fail(-ENOMEM, "no memory for the way to a port of another process");
	r = get_buffers_locked(w, peer->process);
	if (r < 0) {
		wf_way_put_locked(w);
		return r;
	}
	w->who = (uint16_t)((w->who + 1) & 0xfff);
	w->peer = peer;
	w->strong = true;               /* until it is met */
	w->proto = proto;
	w->told = w->gone = w->cut = false;
	w->let = 0;
	w->user = NULL;
	atomic_store_explicit(&w->solo, NULL, memory_order_relaxed);
	atomic_store_explicit(&w->face, &blind, memory_order_relaxed);
	atomic_store_explicit(&w->gate, 1, memory_order_relaxed);
	atomic_store_explicit(&w->seen, 0, memory_order_relaxed);
	atomic_store_explicit(&w->id, id, memory_order_relaxed);
	atomic_store_explicit(&w->context, context, memory_order_relaxed);
	/* release: all of the above, to who finds it by the cache and claims. */
	atomic_store_explicit(&w->tail, WF_WAY_WAITS | (uint64_t)w->who << 48, memory_order_release);
	if (met) {
		w->strong = peer->strong;
		w->told = tell_ring(w);
		if (!w->told) {
			atomic_store_explicit(&w->id, 0, memory_order_relaxed);
			wf_way_put_locked(w);
			if (wf_peer_died(peer->process))
				return weft_fail(-ESRCH, "process %u is gone", peer->process);
			return weft_fail(-ENOMEM, "no memory to tell process %u of a mailbox", peer->process);
		}
	}
	w->next = NULL;
	*place_locked(id, context) = w;
	*ret_way = w;
	return 0;
}

static bool slot_lives(struct wf_peer *peer, weft_id id)
{
	uint32_t local = (uint32_t)id & (WF_SLOTS - 1);
	struct wf_board *b = wf_peer_board(peer);
	uint64_t word;

	if (local >= atomic_load_explicit(&b->slots, memory_order_acquire))
		return false;
	word = atomic_load_explicit(&b->slot[local], memory_order_acquire);   /* B2 */
	return word && (word & 0xfff) == ((id >> WF_LOCAL_BITS) & 0xfff);
}

bool wf_far_lives(weft_id id)
{
	struct wf_peer *peer;
	int r = id >> 52 ? -ESRCH : wf_peer_get(process_of(id), &peer);

	return r == -EAGAIN || (r == 0 && slot_lives(peer, id));
}

int wf_far_watch(weft_id id)
{
	struct wf_peer *peer;
	struct wf_board *b;
	struct wf_face *face;
	uint32_t local = (uint32_t)id & (WF_SLOTS - 1);
	uint64_t word;
	int r = id >> 52 ? -ESRCH : wf_peer_get(process_of(id), &peer);

	if (r == -EAGAIN)
		return 0;               /* not there yet; its death will be told */
	if (r < 0 || !slot_lives(peer, id))
		return -ESRCH;
	b = wf_peer_board(peer);
	if (!local) {                   /* a process: the agent tells */
		wf_self.watch.id = id;
		wf_self.watch.peer = peer;
		wf_self.watch.board = b;
		wf_self.watch.word = atomic_load_explicit(&b->slot[0], memory_order_relaxed);
		return 0;
	}
	word = atomic_load_explicit(&b->slot[local], memory_order_acquire);
	face = wf_face_of(b, (uint32_t)(word >> 12) - 1);
	if (!face)
		return -ESRCH;
	if (!atomic_load_explicit(&face->watched, memory_order_relaxed)) {
		/* F1: the closer empties its slot, passes a heavy fence and looks at watched. Rare: a full fence. */
		atomic_store_explicit(&face->watched, 1, memory_order_relaxed);
		wf_fence_slow();
	}
	if (!slot_lives(peer, id))
		return -ESRCH;
	wf_self.watch.id = id;
	wf_self.watch.peer = peer;
	wf_self.watch.board = b;
	wf_self.watch.word = word;
	return 0;
}

static void remember(weft_id id, weft_ctx context, struct wf_way *w, uint16_t who)
{
	uint32_t i = hash(id, context) % CACHED;

	if (!wf_self.ways)
		wf_self.ways = calloc(1, sizeof(*wf_self.ways));
	if (!wf_self.ways)
		return;
	wf_self.ways->at[i].id = id;
	wf_self.ways->at[i].context = context;
	wf_self.ways->at[i].way = w;
	wf_self.ways->at[i].who = who;
	if (wf_self.last_to == id)
		wf_self.last_to = 0;
	wf_self.last_at.from = NULL;
}

int wf_way_find(weft_id id, weft_ctx context, const struct weft_proto *proto, struct wf_way **ret_way, uint16_t *ret_who)
{
	struct wf_way_cache *c = wf_self.ways;
	uint32_t i = hash(id, context) % CACHED;
	struct wf_peer *peer;
	struct wf_way *w;
	uint32_t state;
	int r, met;

	if (c && c->at[i].id == id && c->at[i].context == context && is_to(c->at[i].way, id, context) &&
	    c->at[i].who == WF_WAY_INCARNATION(atomic_load_explicit(&c->at[i].way->tail, memory_order_relaxed))) {
		*ret_way = c->at[i].way;
		*ret_who = c->at[i].who;
		return 0;
	}
	if (id >> 52)
		return wf_id_fail(-ESRCH, id);
	met = wf_peer_get(process_of(id), &peer);
	if (met < 0 && met != -EAGAIN)
		return met == -ESRCH ? wf_id_fail(met, id) : met;
	if (met == 0 && !slot_lives(peer, id))
		return wf_id_fail(-ESRCH, id);
	wf_lock(&wf_ways_lock);
	/* Again, and under the lock that wf_ways_joined and wf_ways_dead pass: they have run, or they will find this way. */
	state = atomic_load_explicit(&peer->state, memory_order_acquire);
	w = *place_locked(id, context);
	if (w)
		r = 0;
	else if (state == WF_PEER_DEAD)
		r = weft_fail(-ESRCH, "process %u is gone", peer->process);
	else
		r = make_locked(peer, state == WF_PEER_MET, id, context, proto, &w);
	if (r == 0) {
		*ret_way = w;
		*ret_who = w->who;
		if (w->user != &wf_self) {
			w->user = w->user ? SHARED : &wf_self;
			wf_way_share(w);
		}
	}
	wf_unlock(&wf_ways_lock);
	if (r == 0)
		remember(id, context, w, *ret_who);
	return r;
}

/* [wf_ways_lock] Everything of @w up to @end is published. What lies before the last head seen has even been read. */
static bool settled_locked(const struct wf_way *w, uint32_t end)
{
	uint32_t pos = (uint32_t)atomic_load_explicit(&w->seen, memory_order_relaxed);

	if (end - pos > WF_WAY_CELLS)   /* of another incarnation, or by who should not have written that */
		pos = end - WF_WAY_CELLS;
	if (w->let - pos <= end - pos)
		pos = w->let;
	for (; pos != end; pos++)
		if ((int32_t)(atomic_load_explicit(&w->cells[pos % WF_WAY_CELLS].seq, memory_order_relaxed) - (pos + 1)) < 0)
			return false;
	return true;
}

static void settle(struct wf_way *w, weft_time until)
{
	uint64_t first = 0, t;
	unsigned pauses = 0;
	bool settled, late;

	for (bool begun = false;; begun = true) {
		late = wf_past(until);
		wf_lock(&wf_ways_lock);
		t = atomic_load_explicit(&w->tail, memory_order_relaxed);
		if (!begun)
			first = t;
		settled = w->user != SHARED || t & (WF_WAY_SHUT | WF_WAY_WAITS) || WF_WAY_INCARNATION(t) != WF_WAY_INCARNATION(first) ||
			  settled_locked(w, (uint32_t)first);
		if (!settled && late)
			w->let = (uint32_t)first;       /* whoever ends next does not wait for the same */
		wf_unlock(&wf_ways_lock);
		if (settled || late)
			return;
		wf_pause_for(&pauses);
	}
}

/* The end of a thread must not be seen before what it sent, which the reader reaches only when all before it is published. */
void wf_ways_settle(void)
{
	weft_time until = weft_in(SETTLE_MOST);
	struct wf_way *w;

	for (uint32_t i = 0; i < WF_WAYS_MOST && (w = atomic_load_explicit(&wf_ways_by_key[i], memory_order_acquire)); i++)
		settle(w, until);
}

void wf_ways_forget(struct wf_way_cache *c)
{
	free(c);
}

void wf_way_bell(struct wf_way *w, uint32_t sleeper)
{
	struct wf_face *face;
	struct wf_f_word f;
	struct wf_peer *peer;
	bool ring;

	if (sleeper != WF_SLEEPS_LISTENER) {
		wf_peer_wake(w->peer, sleeper);
		return;
	}
	/* What we have published may have been read since, and the way gone: its box is there while it is not shut. One that is shut is read to
	 * its end without a bell. */
	wf_lock(&wf_ways_lock);
	peer = w->peer;
	face = atomic_load_explicit(&w->face, memory_order_relaxed);
	/* acq_rel: who takes it drains after; a message published before is seen then, or we send a frame. */
	ring = !(atomic_load_explicit(&w->tail, memory_order_relaxed) & WF_WAY_SHUT) && face != &blind &&
	       !atomic_exchange_explicit(&w->box->rung, 1, memory_order_acq_rel);
	wf_unlock(&wf_ways_lock);
	if (!ring)
		return;
	f.word = wf_face_number(wf_peer_board(peer), face);
	wf_frame_send(peer, WF_F_BELL, &f, sizeof(f));
}

static int make_arena(struct wf_way *w, uint16_t who)
{
	struct wf_claimed c = { .cell = NULL };
	struct weft_buf *b, *kept;
	struct wf_f_place at;
	int r, claim;

	if (atomic_load_explicit(&w->arena, memory_order_acquire))
		return -EINTR;
	r = wf_buf_alloc(WF_ARENA_BYTES, &b);
	if (r < 0)
		return -ENOBUFS;                /* announce instead */
	wf_lock(&wf_ways_lock);
	if (atomic_load_explicit(&w->arena, memory_order_relaxed)) {
		wf_unlock(&wf_ways_lock);
		wf_buf_release(b);
		return -EINTR;
	}
	kept = w->arena_buf;            /* of the way before this one */
	claim = wf_way_claim(w, who, 0, WF_WAY_BACKLOG, &c);
	if (claim == WF_CLAIMED && kept) {
		wf_buf_release(b);
		b = kept;
	}
	if (claim == WF_CLAIMED) {
		at = wf_f_place_of(b->data);
		c.cell->kind = WF_GROWN;
		c.cell->flags = 0;
		c.cell->len = c.cell->index = 0;
		c.cell->src = c.cell->tag = 0;
		memcpy(c.cell->body + (w->proto ? WF_HEAD_ROOM : 0), &at, sizeof(at));      /* where a payload is looked for */
		if (!kept)
			wf_buf_stands(b, true);
		w->arena_buf = b;
		/* release: that its cell comes before those of what lies in it. */
		atomic_store_explicit(&w->arena, b->data, memory_order_release);
	}
	wf_unlock(&wf_ways_lock);
	if (claim == WF_CLAIMED) {
		wf_way_publish(w, &c);
		return -EINTR;
	}
	wf_buf_release(b);
	return claim == WF_CLAIM_BARE ? -EINTR : wf_way_refused(w, who, claim);
}

int wf_way_ended(struct wf_way *w, uint16_t who, uint64_t t)
{
	uint16_t now = WF_WAY_INCARNATION(t);

	if (t & WF_WAY_SHUT && (now == who || now == ((who + 1) & 0xfff)))
		return atomic_load_explicit(&w->why, memory_order_relaxed);
	return now == who ? 0 : -ESRCH;
}

int wf_way_refused(struct wf_way *w, uint16_t who, int claim)
{
	struct wf_face *face = atomic_load_explicit(&w->face, memory_order_acquire);
	uint64_t gate, mine = atomic_load_explicit(&w->gate, memory_order_acquire);
	uint64_t t = atomic_load_explicit(&w->tail, memory_order_acquire);

	switch (claim) {
	case WF_CLAIM_FULL:
		return -EAGAIN;
	case WF_CLAIM_BARE:
		return make_arena(w, who);
	case WF_CLAIM_OTHER:
	case WF_CLAIM_FLAGS:
		if (wf_way_ended(w, who, t))
			return wf_way_ended(w, who, t);
		return t & WF_WAY_STOPS ? -EAGAIN : -EINTR;
	default:
		break;
	}
	gate = atomic_load_explicit(&face->gate, memory_order_acquire);         /* B1 */
	if (face == &blind || gate == mine)
		return -EINTR;
	if (gate >> 32 != mine >> 32 || !(gate & WF_GATE_OPEN))
		return -ESRCH;
	return -ENOBUFS;
}

struct wf_way *wf_way_of(struct wf_peer *peer, uint32_t key, uint32_t who)
{
	struct wf_way *w = key < WF_WAYS_MOST ? atomic_load_explicit(&wf_ways_by_key[key], memory_order_acquire) : NULL;
	bool it;

	if (!w)
		return NULL;
	wf_lock(&wf_ways_lock);
	it = w->peer == peer && w->who == who;
	wf_unlock(&wf_ways_lock);
	return it ? w : NULL;
}

void wf_way_attached(struct wf_peer *peer, const struct wf_f_attached *f)
{
	struct wf_way *w = wf_way_of(peer, f->key, f->who);
	struct wf_face *face = wf_face_of(wf_peer_board(peer), f->face);

	if (!w || !face)
		return;
	wf_lock(&wf_ways_lock);            /* it does not become solo meanwhile */
	wf_way_share(w);
	atomic_store_explicit(&w->gate, f->gate, memory_order_relaxed);
	atomic_store_explicit(&w->face, face, memory_order_release);
	atomic_fetch_and_explicit(&w->tail, ~WF_WAY_WAITS, memory_order_release);
	wf_unlock(&wf_ways_lock);
	wf_way_flush(w);
}

bool wf_ways_joined(struct wf_peer *peer)
{
	bool all = true;

	wf_ways_pass_makers();
	for (uint32_t i = 0; i < WF_WAYS_MOST; i++) {
		struct wf_way *w = atomic_load_explicit(&wf_ways_by_key[i], memory_order_acquire);

		if (!w)
			break;
		wf_lock(&wf_ways_lock);
		if (w->peer == peer && !w->told && atomic_load_explicit(&w->id, memory_order_relaxed)) {
			w->strong = peer->strong;
			w->told = tell_ring(w);
			all &= w->told;
		}
		wf_unlock(&wf_ways_lock);
	}
	return all;
}

void wf_ways_show(struct wf_roots *roots)
{
	roots->ways = (uintptr_t)wf_ways_by_key;
	roots->ways_most = WF_WAYS_MOST;
}
