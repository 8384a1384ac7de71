/* way.h - from this process to a port of another one: a ring of its own, in this process's shared memory.
 *
 *     private to the sender        shared (in buffers of the sender's pool)             private to the reader
 *     struct wf_way: tail, seen    struct wf_box: head, starved, rung                   struct wf_inway: pos, arena_at
 *     backlog                      256 cells; an arena of 256 KiB when first needed
 *
 * Shape   As the ring of ring.h, with what differs: all its writers are threads of one process. They live and die together, so a cell that was
 *         claimed and not published when they died never will be, and nobody needs to know: the reader reads up to it and stops. A
 *         stopped process stalls its own rings only. The tail is nobody else's business and lies in private memory:
 *
 *         tail  63 shut | 62 waits | 61 backlog | 59..48 incarnation | 47..32 arena position | 31..0 cell position
 *
 *         One CAS takes a cell and, for 97 bytes to 16 KiB, a place in the arena. Both ends compute that place from the lengths that went before
 *         (wf_arena_place), so the reader knows it before the cell arrives.
 *         What the port says to its senders (open, no budget, who sleeps) it says once, on its face (net/local/board.h), for all rings.
 * Edges   R1, R2, F1 as in ring.h; the fence of F1 is wf_fence_heavy_far.
 *         Two threads that write the same cell, or the same bytes of the arena, laps apart are ordered by R1 and R2 together, by way of the reader:
 *         what the first wrote is published (seq, R1), the reader acquires it, reads it and tells (head, R2), and the second has acquired that
 *         head, or `seen` of a third who had. Nothing else orders them. A ThreadSanitizer of the sending process sees neither what the reader
 *         loads nor what it stores: wf_way_publish tells it (wf_far_hands_on), before the reader can act.
 *         face, gate and arena are read without order behind the tail: one that is not yet seen is the blind face (its gate never fits) or NULL, and the
 *         slow way looks again with acquire.
 * Solo    S1  A way that one thread uses, as most are, is its: it claims by a plain store of the tail between in = 1 and in = 0. Whoever else wants to
 *             write the tail (a second user, who has to find the way first; the listener, to set a flag) first takes solo away: solo = NULL, heavy
 *             fence, waits until in is 0, heavy fence. By F1 either the user finds solo gone or the other finds it in; the second fence makes the
 *             user's last store of the tail visible. Given back by the user itself, while it is the only one. Without membarrier, here or at the
 *             reader's: never solo, so that the solo user's own fences are always the light ones.
 * Life    made on first use; WAITS until the other process has attached it to its port; what is sent meanwhile is the backlog. Closing goes
 *         CLOSED (reader) -> SHUT with the last position (sender) -> GONE (reader): then its memory is free. Ways are never unmapped.
 * Trust   The reader trusts nothing but that memory stays mapped: wf_cell_read. The sender trusts head and face as far as a lie harms only the
 *         liar: positions are masked, names are looked up.
 */
#ifndef WF_PORT_WAY_H
#define WF_PORT_WAY_H

#include "base/roots.h"
#include "base/tsan.h"
#include "net/local/peer.h"
#include "port/port.h"
#include "port/self.h"

#define WF_WAY_SHUT (UINT64_C(1) << 63)
#define WF_WAY_WAITS (UINT64_C(1) << 62)
#define WF_WAY_BACKLOG (UINT64_C(1) << 61)
#define WF_WAY_STOPS (WF_WAY_SHUT | WF_WAY_WAITS | WF_WAY_BACKLOG)
#define WF_ALLOW_TIGHT UINT64_C(1)              /* for wf_way_claim: an announcement */
#define WF_WAY_INCARNATION(t) ((uint16_t)((t) >> 48 & 0xfff))

#define WF_WAYS_MOST 65536u                     /* of a process; their keys are below */
#define WF_WAY_CELLS WF_CELLS_BIG
#define WF_ARENA_MOST 16384u                    /* bytes of one message in it */
#define WF_READABLE_LEAST 8192u                 /* memory that the reader can read where it lies is copied there only up to this */

struct wf_box {
	_Alignas(WF_PAIR) _Atomic uint64_t head;        /* reader: arena << 32 | cells */
	_Alignas(WF_PAIR) _Atomic uint32_t starved;     /* sender: tell me of room; reader takes it */
	_Atomic uint32_t rung;                          /* sender: a BELL is under way; reader takes it */
	_Atomic uint32_t clogged;                       /* reader: announce no more; what is wanted will be asked for (seek.h) */
};

struct wf_way {
	/* senders */
	_Alignas(WF_PAIR) _Atomic uint64_t tail;
	_Atomic uint64_t seen;                          /* the head some sender last saw; above it the incarnation it is of */
	_Atomic uint32_t in;                            /* the solo user claims */
	struct wf_self *_Atomic solo;                   /* S1: whose claims need no CAS; NULL: nobody's */
	/* constant while the incarnation lasts; face and gate from the end of WAITS on */
	_Alignas(WF_LINE) struct wf_cell *cells;
	char *_Atomic arena;
	struct wf_box *box;
	_Atomic(struct wf_face *) face;
	_Atomic uint64_t gate;                          /* what the face says while all is well */
	struct wf_peer *peer;
	_Atomic(weft_id) id;                            /* 0: nobody's */
	_Atomic uint64_t context;
	uint32_t key;                                   /* what the other process calls it */
	uint16_t who;                                   /* incarnation, as in the tail */
	_Atomic int why;                                /* once shut: -ESRCH, or -EPROTO: the port there speaks another protocol */
	bool strong;                                    /* F1 by full fences */
	const struct weft_proto *proto;
	struct weft_buf *box_buf, *cells_buf, *arena_buf;
	/* under wf_ways_lock */
	struct wf_self *user;                           /* who has found it; SHARED: several */
	/* under wf_user_lock */
	struct wf_node backlog[WF_PRIOS];
	uint32_t backlogged;
	bool told;                                      /* RING was sent */
	struct wf_node owing;                           /* in the list of ways with a backlog */
	/* under wf_ways_lock */
	bool gone;                                      /* its reader says so, and a thread still writes to it */
	bool cut;                                       /* its reader died: what it has not read is lost */
	weft_id was;                                    /* once shut: whose it was */
	uint32_t let;                                   /* cells before it are not waited for: somebody has written over them */
	struct wf_way *next;
};

/* Where @len bytes lie in an arena whose running position is @at, in grains from its beginning; *ret_next: the position behind them. */
static inline uint32_t wf_arena_place(uint32_t at, size_t len, uint32_t *ret_next)
{
	uint32_t n = (uint32_t)((len + WF_GRAIN - 1) / WF_GRAIN), off = at % WF_ARENA_GRAINS;

	if (off + n > WF_ARENA_GRAINS) {                /* not across the end */
		at += WF_ARENA_GRAINS - off;
		off = 0;
	}
	*ret_next = at + n;
	return off;
}

struct wf_claimed {
	struct wf_cell *cell;
	char *bytes;                                    /* in the arena */
	uint32_t pos;
};

/* More than the answers of wf_ring_claim: the port's face says something else; there is no arena yet. */
enum { WF_CLAIM_GATE = WF_CLAIM_OTHER + 1, WF_CLAIM_BARE };

static inline __attribute__((always_inline)) int wf_way_claim_as(struct wf_way *w, uint16_t who, size_t arena, uint64_t allow,
									 bool solo, struct wf_claimed *ret)
{
	uint64_t t = atomic_load_explicit(&w->tail, WF_DEPENDS);

	for (;;) {
		uint32_t pos = (uint32_t)t, at = (uint32_t)(t >> 32) & 0xffff, next = at, off = 0;
		uint64_t seen, to, gate;
		char *bytes = NULL;

		if (wf_unlikely(WF_WAY_INCARNATION(t) != who))
			return WF_CLAIM_OTHER;
		if (wf_unlikely(t & WF_WAY_STOPS & ~allow))
			return WF_CLAIM_FLAGS;
		if (arena && !(bytes = atomic_load_explicit(&w->arena, WF_DEPENDS)))
			return WF_CLAIM_BARE;
		gate = atomic_load_explicit(&atomic_load_explicit(&w->face, WF_DEPENDS)->gate, memory_order_relaxed);
		if (wf_unlikely(gate != atomic_load_explicit(&w->gate, memory_order_relaxed)) &&
		    (!(allow & WF_ALLOW_TIGHT) || (gate & ~(uint64_t)WF_GATE_TIGHT) != atomic_load_explicit(&w->gate, memory_order_relaxed)))
			return WF_CLAIM_GATE;
		if (arena)
			off = wf_arena_place(at, arena, &next);
		seen = atomic_load_explicit(&w->seen, WF_DEPENDS);                                      /* R2 */
		if (wf_unlikely(seen >> 48 != who || pos - (uint32_t)seen >= WF_WAY_CELLS ||
				((next - (uint32_t)(seen >> 32)) & 0xffff) > WF_ARENA_GRAINS)) {
			seen = atomic_load_explicit(&w->box->head, memory_order_acquire);               /* R2 */
			seen = (seen & UINT64_C(0xffffffffffff)) | (uint64_t)who << 48;                 /* of this incarnation */
			atomic_store_explicit(&w->seen, seen, memory_order_release);                    /* R2 */
			if (pos - (uint32_t)seen >= WF_WAY_CELLS || ((next - (uint32_t)(seen >> 32)) & 0xffff) > WF_ARENA_GRAINS) {
				if (t == atomic_load_explicit(&w->tail, WF_DEPENDS))
					return WF_CLAIM_FULL;
				t = atomic_load_explicit(&w->tail, WF_DEPENDS);         /* older than that head */
				continue;
			}
		}
		to = (t & ~UINT64_C(0xffffffffffff)) | (uint64_t)(next & 0xffff) << 32 | (uint32_t)(pos + 1);
		wf_step("way claim");
		if (solo)
			atomic_store_explicit(&w->tail, to, memory_order_relaxed);      /* nobody else writes it: S1 */
		if (solo || wf_cas64(&w->tail, &t, to)) {
			ret->pos = pos;
			ret->cell = &w->cells[pos % WF_WAY_CELLS];
			ret->bytes = arena ? bytes + (size_t)off * WF_GRAIN : NULL;
			wf_want_cell(&w->cells[(pos + 2) % WF_WAY_CELLS]);
			return WF_CLAIMED;
		}
	}
}

/* [any] Takes a cell of @w, incarnation @who, and @arena bytes (0: none). Flags in @allow do not stop it. */
static inline __attribute__((always_inline)) int wf_way_claim(struct wf_way *w, uint16_t who, size_t arena, uint64_t allow, struct wf_claimed *ret)
{
	int r;

	if (wf_likely(atomic_load_explicit(&w->solo, memory_order_relaxed) == &wf_self)) {
		atomic_store_explicit(&w->in, 1, memory_order_relaxed);                 /* ordered by the fence */
		wf_fence_light();                                                       /* F1 with wf_way_share */
		r = WF_CLAIM_OTHER;
		if (wf_likely(atomic_load_explicit(&w->solo, memory_order_relaxed) == &wf_self))
			r = wf_way_claim_as(w, who, arena, allow, true, ret);
		/* relaxed: wf_way_share passes a second fence before it looks at the tail. */
		atomic_store_explicit(&w->in, 0, WF_TSAN ? memory_order_release : memory_order_relaxed);
		if (wf_likely(r != WF_CLAIM_OTHER))
			return r;
	}
	return wf_way_claim_as(w, who, arena, allow, false, ret);
}

/* [any] The same for a cell and nothing else, where the way is this thread's and nothing stops it: NULL, if that is not so or the ring seems full. To be
 * published by wf_way_publish_solo. */
static inline __attribute__((always_inline)) struct wf_cell *wf_way_claim_solo(struct wf_way *w, uint16_t who, uint32_t *ret_pos)
{
	struct wf_cell *c = NULL;
	uint64_t t, seen, gate;

	if (wf_unlikely(atomic_load_explicit(&w->solo, memory_order_relaxed) != &wf_self))
		return NULL;
	atomic_store_explicit(&w->in, 1, memory_order_relaxed);                         /* ordered by the fence */
	wf_fence_lighter();                                                             /* F1 with wf_way_share */
	t = atomic_load_explicit(&w->tail, WF_DEPENDS);
	seen = atomic_load_explicit(&w->seen, WF_DEPENDS);                              /* R2 */
	gate = atomic_load_explicit(&atomic_load_explicit(&w->face, WF_DEPENDS)->gate, memory_order_relaxed);
	if (wf_likely(atomic_load_explicit(&w->solo, memory_order_relaxed) == &wf_self && t >> 48 == who /* and no flag */ && seen >> 48 == who &&
		      (uint32_t)t - (uint32_t)seen < WF_WAY_CELLS && gate == atomic_load_explicit(&w->gate, memory_order_relaxed))) {
		*ret_pos = (uint32_t)t;
		c = &w->cells[t % WF_WAY_CELLS];
		wf_want_cell(&w->cells[(t + 2) % WF_WAY_CELLS]);
		wf_step("way claim");
		atomic_store_explicit(&w->tail, (t & ~UINT64_C(0xffffffff)) | (uint32_t)(t + 1), memory_order_relaxed);         /* S1 */
	}
	/* relaxed: as in wf_way_claim. */
	atomic_store_explicit(&w->in, 0, WF_TSAN ? memory_order_release : memory_order_relaxed);
	return c;
}

/* [the only user, now and then] From now on its claims need no CAS, if nobody else is about. */
void wf_way_solo(struct wf_way *w);

void wf_way_bell(struct wf_way *w, uint32_t sleeper);

/* [any] The filled cell to its reader, who is woken if he sleeps. */
static inline void wf_way_publish(struct wf_way *w, const struct wf_claimed *c)
{
	uint32_t sleeper;

	wf_far_hands_on(&w->box->head);                                                 /* R2, for ThreadSanitizer */
	atomic_store_explicit(&c->cell->seq, c->pos + 1, memory_order_release);         /* R1 */
	if (wf_unlikely(w->strong))
		wf_fence_slow();                                                        /* F1 */
	else
		wf_fence_light();                                                       /* F1 */
	sleeper = atomic_load_explicit(&atomic_load_explicit(&w->face, memory_order_relaxed)->sleeper, memory_order_relaxed);
	if (wf_unlikely(sleeper))
		wf_way_bell(w, sleeper);
}

/* The same where it is solo; whom the caller has to ring for is told, by wf_way_bell; 0: nobody. */
static inline uint32_t wf_way_published_solo(struct wf_way *w, struct wf_cell *c, uint32_t pos)
{
	wf_far_hands_on(&w->box->head);                                                 /* R2, for ThreadSanitizer */
	atomic_store_explicit(&c->seq, pos + 1, memory_order_release);                  /* R1 */
	wf_fence_lighter();                                                             /* F1: a solo way is not strong */
	return atomic_load_explicit(&atomic_load_explicit(&w->face, memory_order_relaxed)->sleeper, memory_order_relaxed);
}

static inline void wf_way_publish_solo(struct wf_way *w, struct wf_cell *c, uint32_t pos)
{
	uint32_t sleeper = wf_way_published_solo(w, c, pos);

	if (wf_unlikely(sleeper))
		wf_way_bell(w, sleeper);
}

/* [any] The way to (@id, @context), made if there is none; by the calling thread's cache. -ESRCH, -ENOMEM. */
int wf_way_find(weft_id id, weft_ctx context, const struct weft_proto *proto, struct wf_way **ret_way, uint16_t *ret_who);
void wf_ways_settle(void);                                      /* [any] of what threads of this process have claimed together all is published: what the calling one sent can be read. Or 5 s are over */
void wf_ways_forget(struct wf_way_cache *c);                    /* a thread's cache, with it */
struct wf_way *wf_way_recall(weft_id id, uint16_t *ret_who);

/* [any] One that this thread has used before; context 0. NULL: not that it remembers. If it is another's by now its incarnation differs. */
static inline struct wf_way *wf_way_cached(weft_id id, uint16_t *ret_who)
{
	if (wf_unlikely(wf_self.last_to != id))
		return wf_way_recall(id, ret_who);
	*ret_who = wf_self.last_who;
	return wf_self.last_way;
}

struct wf_way *wf_way_recall_at(const struct weft_port *from, weft_id to, uint16_t *ret_who);

/* The same to member @to (weft_at) of @from, in its context. */
static inline struct wf_way *wf_way_cached_at(const struct weft_port *from, weft_id to, uint16_t *ret_who)
{
	if (wf_unlikely(wf_self.last_at.to != to || wf_self.last_at.from != from ||
			wf_self.last_at.context != atomic_load_explicit(&from->context, memory_order_relaxed)))
		return wf_way_recall_at(from, to, ret_who);
	*ret_who = wf_self.last_at.who;
	return wf_self.last_at.way;
}

/* [any] What a refused claim means: -ESRCH: nobody there; -EAGAIN: full, behind a backlog, or not attached; -ENOBUFS: no budget there: announce;
 * -ENOMEM; -EINTR: try again (an arena was made, or it has changed). */
int wf_way_refused(struct wf_way *w, uint16_t who, int claim);

/* [any, no lock] The port there is closed, as -ESRCH said: who looks next makes another way, if there is one. */
void wf_way_stale(struct wf_way *w, uint16_t who);

/* [wf_user_lock] @r queues for @w. -ESRCH: it was shut. */
int wf_way_queue_locked(struct wf_way *w, uint16_t who, struct weft_req *r);
void wf_way_unqueue_locked(struct wf_way *w, struct weft_req *r);
void wf_way_flush(struct wf_way *w);            /* [any, no lock] as much of the backlog as fits */
void wf_ways_flush(void);                       /* [listener] of all */
bool wf_ways_owe(void);

/* [listener] All ways to a process that is dead or cannot be met: what is pending on them ends. */
void wf_ways_end(uint32_t process, int err);
void wf_ways_drop_spares(uint32_t process);     /* [no lock] memory kept for ways to it; 0: to anybody */
int wf_ways_bury(void);                         /* [listener] those that nobody reads, whose memory a thread may still write to: how many are left */
bool wf_ways_joined(struct wf_peer *peer);      /* it is there: tell it of the ways that wait for it. False: not of all */

/* [any] Does @id, of another process, live? A hint, as everything about others is; of one that has not joined yet: true. */
bool wf_far_lives(weft_id id);

/* A receive or a port waits for far @id in particular: its end shall be told. -ESRCH: has ended. */
int wf_far_watch(weft_id id);

/* [inside a port, or behind that] Far @id is the last this thread asked to be told of, and still lives: its slot says what it said then, so that
 * watched is set and will be looked at when the slot is emptied. Relaxed: who deals with its end or with its process's comes into every port, and
 * whoever is inside behind him sees what he saw. */
static inline bool wf_far_watched(weft_id id)
{
	if (wf_self.watch.id != id || atomic_load_explicit(&wf_self.watch.peer->state, memory_order_relaxed) != WF_PEER_MET ||
	    atomic_load_explicit(&wf_self.watch.peer->board, memory_order_relaxed) != wf_self.watch.board)
		return false;
	return atomic_load_explicit(&wf_self.watch.board->slot[id & (WF_SLOTS - 1)], memory_order_relaxed) == wf_self.watch.word;
}

void wf_ways_show(struct wf_roots *roots);

#endif
