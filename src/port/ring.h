/* ring.h - a mailbox: many threads write cells, whoever holds the port's lock reads them.
 *
 * Shape   2^n cells of two cache lines. A sender takes the next position by a CAS on the tail word,
 *         which only senders touch, fills the cell with plain stores and publishes it by one release
 *         store of its sequence: position + 1, so that the lap is in it and the reader never writes a
 *         cell. The reader publishes its head now and then; senders keep the head they last saw beside
 *         the tail, and fetch it again only when the ring seems full.
 *
 *         tail  63..52 flags | 48 big | 42..32 incarnation | 31..0 position
 *
 *         One word decides: a sender knows the incarnation it means (from the table of ids, or its
 *         route), and its CAS succeeds only on a tail of that incarnation without unexpected flags. So a
 *         closed port is not written to, a message cannot overtake one that spilled, and a stale
 *         pointer to a port that was reused loses. Ports are never unmapped. Positions run on through
 *         incarnations and changes of cells, so an old cell never looks new.
 * Edges   R1  seq release -> seq acquire (reader): the cell's content.
 *         R2  head release -> head acquire (sender) -> seen -> a store into a cell that depends on the
 *             comparison with it: the reader is done with the cells below head. (Load to dependent store
 *             is kept by both CPU families; ThreadSanitizer gets release and acquire.)
 *         R3  tail release (thaw) -> cells[BIG flag of tail]: the address depends on the word loaded.
 *         F1  (fence.h) seq store, look for a sleeper / name the sleeper, look at seq.
 * Laws    (docs/performance.md) The sender never waits for its own stores and never reads a cell; the
 *         payload's place is known before the cell arrives. On aarch64 a load-acquire (ldar) waits for
 *         every earlier store-release, that is for the last cell to reach the reader's core: one of them
 *         took 40 % of a send. Hence no acquire on a sender's way, and wf_acquire32 for the reader.
 * Progress  claiming is lock-free; a reader may wait for a claimed cell whose sender is preempted. What others published behind it cannot be seen
 *         until then: who needs to know that there is nothing more of somebody waits for it (wf_drain_ended_locked).
 * Tested  tests/models/ring.pml, tests/unit/test_steps.c, tests/stress/stress_ring.c.
 */
#ifndef WF_PORT_RING_H
#define WF_PORT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/fence.h"
#include "base/park.h"

#define WF_CELLS_SMALL 16u
#define WF_CELLS_BIG 256u
#define WF_BODY 96u
#define WF_BODY_NEAR 32u                /* bytes of it in the line that holds seq */
#define WF_GRAIN 64u                    /* bytes: what is taken from an arena at a time (way.h) */
#define WF_ARENA_BYTES (256u << 10)
#define WF_ARENA_GRAINS (WF_ARENA_BYTES / WF_GRAIN)

#define WF_TAIL_CLOSED (UINT64_C(1) << 63)      /* nothing enters any more */
#define WF_TAIL_SPILLED (UINT64_C(1) << 62)     /* it was full: what comes queues behind what spilled */
#define WF_TAIL_FROZEN (UINT64_C(1) << 61)      /* its cells are being changed: a moment */
#define WF_TAIL_TIGHT (UINT64_C(1) << 60)       /* no budget: only announcements enter */
#define WF_TAIL_FOREIGN (UINT64_C(1) << 59)     /* its protocol is not the native one: senders must know it */
#define WF_TAIL_BIG (UINT64_C(1) << 48)         /* which cells; not a flag: every sender looks */
#define WF_TAIL_FLAGS (UINT64_C(0xfff) << 52)
#define WF_INCARNATIONS 0x7ffu
#define WF_TAIL_INCARNATION(t) ((uint16_t)((t) >> 32 & WF_INCARNATIONS))

struct wf_cell {
	_Alignas(WF_PAIR) _Atomic uint32_t seq; /* position + 1 when published */
	uint16_t kind, flags;                   /* enum wf_kind */
	uint32_t len, index;                    /* payload bytes; sender's index among the members */
	uint64_t src, tag;
	unsigned char body[WF_BODY];            /* payload; or a pointer; behind a foreign header */
};
_Static_assert(offsetof(struct wf_cell, body) + WF_BODY_NEAR == WF_LINE, "WF_BODY_NEAR");

/* The reading end, whoever writes at the other: threads of this process (struct wf_ring) or of another (way.h). Under the port's lock; pos,
 * mask, cells and next are also read by who looks without it. */
struct wf_reader {
	_Atomic uint32_t pos;
	_Atomic uint32_t mask;                  /* the senders' line is theirs: copies */
	_Atomic(struct wf_cell *) cells;
	_Atomic uint64_t *head;                 /* where senders are told: arena << 32 | cells */
	uint32_t process;                       /* whose threads write here */
	uint32_t arena_at;                      /* next byte in units of WF_GRAIN; runs on */
	_Atomic(struct wf_reader *) next;       /* at the same port */
	_Atomic uint32_t *starved;              /* another process's: is to be told of room; NULL: its own way of waiting (spill) */
	bool strong;                            /* F1 with that one by full fences */
	const char *arena;                      /* another process's: beside its cells; NULL: none yet */
	bool arena_last;                        /* the last message lay there: the next may, too */
};

void wf_reader_room(struct wf_reader *r);       /* inway.c */

/* Both lines: a message of more than 32 bytes needs the second, too. */
static inline void wf_want_cell(const struct wf_cell *c)
{
	wf_want_line(c);
	wf_want_line((const char *)c + WF_LINE);
}

#define WF_AHEAD 3u                     /* cells */

struct wf_ring {
	/* senders */
	_Alignas(WF_PAIR) _Atomic uint64_t tail;
	_Atomic uint32_t seen;                  /* the head some sender last saw */
	_Atomic(struct wf_cell *) cells[2];     /* small, big; set before the tail says so */
	/* the reader */
	_Alignas(WF_PAIR) _Atomic uint64_t head;
	struct wf_reader reader;
	/* seldom written, read by each sender and by the reader */
	_Alignas(WF_LINE) _Atomic(struct wf_parker *) sleeper;
	_Atomic bool spilled;                   /* what WF_TAIL_SPILLED says, where the reader may look at it */
};

#if WF_TSAN
#define WF_DEPENDS memory_order_acquire         /* it does not know dependencies */
#else
#define WF_DEPENDS memory_order_relaxed
#endif

/* [reader, frozen or closed] Other cells from the present position on; the tail is to say which. */
static inline void wf_ring_use(struct wf_ring *r, struct wf_cell *cells, uint32_t count)
{
	atomic_store_explicit(&r->cells[count == WF_CELLS_BIG], cells, memory_order_relaxed);   /* R3 publishes them */
	r->reader.head = &r->head;
	atomic_store_explicit(&r->reader.cells, cells, memory_order_release);   /* the new memory, to who looks without the lock */
	atomic_store_explicit(&r->reader.mask, count - 1, memory_order_relaxed);
}

/* [any, under the port's spill lock] From now on no claim succeeds: what comes follows what spilled. */
static inline void wf_ring_spill(struct wf_ring *r)
{
	/* relaxed, both: the lock orders the list; who looks without it looks again behind a fence (F1). */
	atomic_fetch_or_explicit(&r->tail, WF_TAIL_SPILLED, memory_order_relaxed);
	atomic_store_explicit(&r->spilled, true, memory_order_relaxed);
}

/* [reader, under the port's spill lock] The list is empty: the way in is free again. */
static inline void wf_ring_unspill(struct wf_ring *r)
{
	atomic_store_explicit(&r->spilled, false, memory_order_relaxed);
	/* release: what follows in the ring follows what was taken from the list. */
	atomic_fetch_and_explicit(&r->tail, ~WF_TAIL_SPILLED, memory_order_release);
}

static inline bool wf_ring_spilled(struct wf_ring *r)
{
	return atomic_load_explicit(&r->spilled, memory_order_relaxed);
}

enum wf_claim { WF_CLAIMED, WF_CLAIM_FULL, WF_CLAIM_FLAGS, WF_CLAIM_OTHER };

static inline uint32_t wf_tail_mask(uint64_t t)
{
	return t & WF_TAIL_BIG ? WF_CELLS_BIG - 1 : WF_CELLS_SMALL - 1;
}

/* [any] Takes a position in @r for a message to its incarnation @who. With a flag set that is not in @allow:
 * WF_CLAIM_FLAGS. *ret_pos and *ret_cell are set when claimed: fill the cell, then publish. */
static inline enum wf_claim wf_ring_claim(struct wf_ring *r, uint16_t who, uint64_t allow, uint32_t *ret_pos,
					  struct wf_cell **ret_cell)
{
	/* relaxed: the CAS decides whether it was true; R3 is by dependency. */
	uint64_t t = atomic_load_explicit(&r->tail, WF_DEPENDS);

	for (;;) {
		uint32_t pos = (uint32_t)t, mask = wf_tail_mask(t);
		struct wf_cell *cells;

		if (wf_unlikely(WF_TAIL_INCARNATION(t) != who))
			return WF_CLAIM_OTHER;
		if (wf_unlikely(t & WF_TAIL_FLAGS & ~allow))
			return WF_CLAIM_FLAGS;
		if (wf_unlikely(pos - atomic_load_explicit(&r->seen, WF_DEPENDS) > mask)) {             /* R2 */
			uint32_t head = (uint32_t)atomic_load_explicit(&r->head, memory_order_acquire); /* R2 */

			atomic_store_explicit(&r->seen, head, memory_order_release);                    /* R2 */
			if (wf_unlikely((int32_t)(pos - head) < 0)) {   /* the tail we know is older than that head */
				t = atomic_load_explicit(&r->tail, WF_DEPENDS);
				continue;
			}
			if (pos - head > mask)
				return WF_CLAIM_FULL;
		}
		cells = atomic_load_explicit(&r->cells[(t >> 48) & 1], WF_DEPENDS);                     /* R3 */
		wf_step("claim");
		/* relaxed: nothing is published yet. */
		if (wf_cas64(&r->tail, &t, (t & ~UINT64_C(0xffffffff)) | (uint32_t)(pos + 1))) {
			wf_want_cell(&cells[(pos + 2) & mask]);
			*ret_pos = pos;
			*ret_cell = &cells[pos & mask];
			return WF_CLAIMED;
		}
	}
}

/* Positions that were taken: the first, how many, and where their cells are: cells[pos & mask]. */
struct wf_claim_row {
	struct wf_cell *cells;
	uint32_t pos, n, mask;
};

/* [any] The same for up to @most positions in a row: as if each was taken for itself, and nobody came between. @ret_row is set when claimed: fill the cells, then publish them.
 * Apart: what both have in common, as one function, took who sends one message more registers. */
static inline enum wf_claim wf_ring_claim_row(struct wf_ring *r, uint16_t who, uint64_t allow, uint32_t most, struct wf_claim_row *ret_row)
{
	/* relaxed: the CAS decides whether it was true; R3 is by dependency. */
	uint64_t t = atomic_load_explicit(&r->tail, WF_DEPENDS);

	for (;;) {
		uint32_t pos = (uint32_t)t, mask = wf_tail_mask(t), used, n = most;
		struct wf_cell *cells;

		if (wf_unlikely(WF_TAIL_INCARNATION(t) != who))
			return WF_CLAIM_OTHER;
		if (wf_unlikely(t & WF_TAIL_FLAGS & ~allow))
			return WF_CLAIM_FLAGS;
		used = pos - atomic_load_explicit(&r->seen, WF_DEPENDS);                                /* R2 */
		if (wf_unlikely(used + most - 1 > mask)) {
			uint32_t head = (uint32_t)atomic_load_explicit(&r->head, memory_order_acquire); /* R2 */

			atomic_store_explicit(&r->seen, head, memory_order_release);                    /* R2 */
			if (wf_unlikely((int32_t)(pos - head) < 0)) {   /* the tail we know is older than that head */
				t = atomic_load_explicit(&r->tail, WF_DEPENDS);
				continue;
			}
			used = pos - head;
			if (used > mask)
				return WF_CLAIM_FULL;
			if (n > mask + 1 - used)
				n = mask + 1 - used;
		}
		cells = atomic_load_explicit(&r->cells[(t >> 48) & 1], WF_DEPENDS);                     /* R3 */
		wf_step("claim");
		/* relaxed: nothing is published yet. */
		if (wf_cas64(&r->tail, &t, (t & ~UINT64_C(0xffffffff)) | (uint32_t)(pos + n))) {
			wf_want_cell(&cells[(pos + 2) & mask]);
			*ret_row = (struct wf_claim_row){ .cells = cells, .pos = pos, .n = n, .mask = mask };
			return WF_CLAIMED;
		}
	}
}

static inline void wf_ring_publish(struct wf_cell *c, uint32_t pos)
{
	wf_step("publish");
	atomic_store_explicit(&c->seq, pos + 1, memory_order_release);          /* R1 */
}

/* [any] After publishing: the sleeper to be woken, or NULL. */
static inline struct wf_parker *wf_ring_sleeper(struct wf_ring *r)
{
	wf_fence_light();                                                       /* F1 */
	wf_step("look for sleeper");
	return atomic_load_explicit(&r->sleeper, memory_order_relaxed);
}

/* [reader] The next cell, or NULL if it is not published yet. */
static inline struct wf_cell *wf_ring_next(struct wf_reader *r)
{
	/* relaxed: the reader's own words. */
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];

	wf_step("next");
	return wf_acquire32(&c->seq) == pos + 1 ? c : NULL;                                     /* R1 */
}

/* [reader] The present cell was there when it was looked for, so others may be: one of them is asked for, as it takes longer to come from its sender's core than a
 * message to be delivered. Not by who had to wait: the next one is not written yet, and would have to be fetched back. */
static inline void wf_ring_ahead(const struct wf_reader *r)
{
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed) + WF_AHEAD;

	__builtin_prefetch(&cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)]);
}

/* [reader] Senders may write again what lies before the present position. */
static inline void wf_ring_told(struct wf_reader *r)
{
	atomic_store_explicit(r->head, (uint64_t)r->arena_at << 32 | atomic_load_explicit(&r->pos, memory_order_relaxed),
			      memory_order_release);                            /* R2 */
	if (r->starved) {
		if (r->strong)
			wf_fence_slow();                                /* F1 */
		else
			wf_fence_light();                               /* F1 */
		if (wf_unlikely(atomic_load_explicit(r->starved, memory_order_relaxed)))
			wf_reader_room(r);
	}
}

/* [reader] Done with the cell wf_ring_next gave, and with the arena up to @arena. Senders are told every 16th time (4th, if small), and when another quarter of the arena is free. */
static inline void wf_ring_advance_to(struct wf_reader *r, uint32_t arena)
{
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed) + 1;
	uint32_t every = atomic_load_explicit(&r->mask, memory_order_relaxed) >= WF_CELLS_BIG - 1 ? 15 : 3;
	bool quarter = (r->arena_at ^ arena) / (WF_ARENA_GRAINS / 4);

	r->arena_at = arena;
	atomic_store_explicit(&r->pos, pos, memory_order_relaxed);
	if ((pos & every) == 0 || quarter) {
		wf_step("head");
		wf_ring_told(r);
	}
}

/* [reader] The same where nothing lay in the arena. */
static inline void wf_ring_advance(struct wf_reader *r)
{
	wf_ring_advance_to(r, r->arena_at);
}

/* [any] Has the reader something to do here? A hint for spinning; exact behind a heavy fence. */
static inline bool wf_reader_waiting(struct wf_reader *r)
{
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, WF_DEPENDS);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];

	wf_step("waiting");
	/* relaxed, all: wf_ring_next acquires before anything is read. */
	return atomic_load_explicit(&c->seq, memory_order_relaxed) == pos + 1;
}

/* [reader] Nobody has claimed a cell that is not read yet: as far as this thread knows, which is what it has put there itself, and all that it was told of. relaxed: it is asked for no more than that. */
static inline bool wf_ring_unclaimed(struct wf_ring *r)
{
	return (uint32_t)atomic_load_explicit(&r->tail, memory_order_relaxed) == atomic_load_explicit(&r->reader.pos, memory_order_relaxed);
}

/* [reader] Every position given out has been read. */
static inline bool wf_ring_drained(struct wf_ring *r)
{
	/* acquire: pairs with nothing but the flag just set; positions only grow. */
	return (uint32_t)atomic_load_explicit(&r->tail, memory_order_acquire) ==
	       atomic_load_explicit(&r->reader.pos, memory_order_relaxed);
}

#endif
