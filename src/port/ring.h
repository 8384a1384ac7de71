/* ring.h - a mailbox: many threads write cells, whoever holds the port's lock reads them.
 *
 * Shape   2^n cells of two cache lines. A sender takes the next position by a CAS on the tail word,
 *         which only senders touch, fills the cell with plain stores and publishes it by one release
 *         store of its sequence: position + 1, so that the lap is in it and the reader never writes a
 *         cell. The reader publishes its head now and then; senders keep the head they last saw beside
 *         the tail, and fetch it again only when the ring seems full.
 *
 *         tail  63..52 flags | 51..32 incarnation | 31..0 position
 *
 *         A set flag makes the CAS of a sender that did not expect it fail, so one word decides: a closed
 *         port is not written to, and a message cannot overtake one that spilled. Ports are never
 *         unmapped and a reused one has another incarnation: a stale pointer to it loses the CAS. Positions
 *         run on through incarnations and changes of cells, so an old cell never looks new.
 * Edges   R1  seq release -> seq acquire (reader): the cell's content.
 *         R2  head release -> head acquire (sender) -> seen release -> seen acquire (another sender): the
 *             reader is done with the cells below head.
 *         R3  tail release (open, thaw) -> tail acquire (sender): who the port is, its cells and mask.
 *         F1  (fence.h) seq store, look for a sleeper / name the sleeper, look at seq.
 * Laws    (docs/performance.md) The sender never waits for its own stores and never reads a cell; the
 *         payload's place is known before the cell arrives.
 * Progress  claiming is lock-free; a reader may wait for a claimed cell whose sender is preempted.
 * Tested  tests/models/ring.pml, tests/unit/test_steps.c, tests/stress/stress_ring.c.
 */
#ifndef WF_PORT_RING_H
#define WF_PORT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/id.h>

#include "base/cpu.h"
#include "base/fence.h"
#include "base/park.h"

#define WF_CELLS_SMALL 16u
#define WF_CELLS_BIG 256u
#define WF_BODY 96u

#define WF_TAIL_CLOSED (UINT64_C(1) << 63)      /* nothing enters any more */
#define WF_TAIL_SPILLED (UINT64_C(1) << 62)     /* it was full: what comes queues behind what spilled */
#define WF_TAIL_FROZEN (UINT64_C(1) << 61)      /* its cells are being changed: a moment */
#define WF_TAIL_TIGHT (UINT64_C(1) << 60)       /* no budget: only announcements enter */
#define WF_TAIL_FOREIGN (UINT64_C(1) << 59)     /* its protocol is not the native one: senders must know it */
#define WF_TAIL_FLAGS (UINT64_C(0xfff) << 52)
#define WF_TAIL_INCARNATION (UINT64_C(1) << 32)

struct wf_cell {
	_Alignas(WF_PAIR) _Atomic uint32_t seq; /* position + 1 when published */
	uint16_t kind, flags;                   /* enum wf_kind */
	uint32_t len, index;                    /* payload bytes; sender's index among the members */
	uint64_t src, tag;
	unsigned char body[WF_BODY];            /* payload; or a pointer; behind a foreign header */
};

struct wf_ring {
	/* senders */
	_Alignas(WF_PAIR) _Atomic uint64_t tail;
	_Atomic uint32_t seen;                  /* the head some sender last saw */
	_Atomic uint32_t mask;                  /* changed only while frozen or closed */
	_Atomic(struct wf_cell *) cells;
	_Atomic(weft_id) id;                    /* whose; 0: nobody's. With context: constant while open */
	_Atomic uint64_t context;
	/* the reader, under the port's lock; pos is also read by the owner while it spins */
	_Alignas(WF_PAIR) _Atomic uint32_t head;
	_Atomic uint32_t pos;
	/* written when somebody goes to sleep or wakes up, read by each sender */
	_Alignas(WF_LINE) _Atomic(struct wf_parker *) sleeper;
};

enum wf_claim { WF_CLAIMED, WF_CLAIM_FULL, WF_CLAIM_FLAGS, WF_CLAIM_OTHER };

/* [any] Takes a position in @r for a message to (@id, @context). With a flag set that is not in
 * @allow: WF_CLAIM_FLAGS. *ret_pos and *ret_cell are set when claimed: fill the cell, then publish. */
static inline enum wf_claim wf_ring_claim(struct wf_ring *r, weft_id id, uint64_t context, uint64_t allow,
					  uint32_t *ret_pos, struct wf_cell **ret_cell)
{
	for (;;) {
		uint64_t t = atomic_load_explicit(&r->tail, memory_order_acquire);      /* R3 */
		struct wf_cell *cells;
		uint32_t pos = (uint32_t)t, mask;

		if (wf_unlikely(t & WF_TAIL_FLAGS & ~allow))
			return WF_CLAIM_FLAGS;
		/* relaxed, all four: if they belong to another incarnation than t, the CAS fails. */
		if (wf_unlikely(atomic_load_explicit(&r->id, memory_order_relaxed) != id ||
				atomic_load_explicit(&r->context, memory_order_relaxed) != context))
			return WF_CLAIM_OTHER;
		mask = atomic_load_explicit(&r->mask, memory_order_relaxed);
		cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
		if (wf_unlikely(pos - atomic_load_explicit(&r->seen, memory_order_acquire) > mask)) {  /* R2 */
			uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);   /* R2 */

			atomic_store_explicit(&r->seen, head, memory_order_release);            /* R2 */
			if (pos - head > mask)
				return WF_CLAIM_FULL;
		}
		wf_step("claim");
		if (atomic_compare_exchange_weak_explicit(&r->tail, &t, (t & ~UINT64_C(0xffffffff)) | (uint32_t)(pos + 1),
							  memory_order_relaxed,         /* nothing is published yet */
							  memory_order_relaxed)) {      /* loaded again below */
			wf_want_line(&cells[(pos + 2) & mask]);
			*ret_pos = pos;
			*ret_cell = &cells[pos & mask];
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
static inline struct wf_cell *wf_ring_next(struct wf_ring *r)
{
	/* relaxed: the reader's own words. */
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];

	wf_step("next");
	return atomic_load_explicit(&c->seq, memory_order_acquire) == pos + 1 ? c : NULL;       /* R1 */
}

/* [reader] Done with the cell wf_ring_next gave. Senders are told every 16th time (4th, if small). */
static inline void wf_ring_advance(struct wf_ring *r)
{
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed) + 1;
	uint32_t every = atomic_load_explicit(&r->mask, memory_order_relaxed) >= WF_CELLS_BIG - 1 ? 15 : 3;

	atomic_store_explicit(&r->pos, pos, memory_order_relaxed);
	if ((pos & every) == 0) {
		wf_step("head");
		atomic_store_explicit(&r->head, pos, memory_order_release);     /* R2 */
	}
}

/* [any] Has the reader something to do here? A hint for spinning; exact behind a heavy fence. */
static inline bool wf_ring_waiting(struct wf_ring *r)
{
	/* relaxed: wf_ring_next acquires before anything is read. */
	return wf_ring_next(r) || atomic_load_explicit(&r->tail, memory_order_relaxed) & WF_TAIL_SPILLED;
}

/* [reader] Every position given out has been read. */
static inline bool wf_ring_drained(struct wf_ring *r)
{
	/* acquire: pairs with nothing but the flag just set; positions only grow. */
	return (uint32_t)atomic_load_explicit(&r->tail, memory_order_acquire) ==
	       atomic_load_explicit(&r->pos, memory_order_relaxed);
}

#endif
