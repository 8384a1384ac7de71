/* park.h - how a thread waits: it looks, lingers, and then sleeps until it is woken.
 *
 * Lingering (struct wf_linger) decides between two looks. At first it spins spin_ns: a peer that runs
 * answers in 0.1 us; a thread that has found itself in a crowd skips this the next times. Then one timed sched_yield tells whether another thread wants
 * the core (longer than it takes alone: one ran). Alone it spins on up to alone_ns; in a crowd it yields
 * a few times; then it is time to sleep. (docs/performance.md)
 *
 * Sleeping (struct wf_parker, one per thread, in a line that others seldom write, never unmapped):
 *
 *     sleeper                                   waker
 *     wf_park_begin: word = 1
 *     name itself (mailbox, request)            publish (cell, state)
 *     wf_fence_heavy                            wf_fence_light
 *     look again: something? wf_park_end        load the name: somebody? wf_wake:
 *     wf_park: futex wait while word == 1         exchange word 0: was 1? futex wake
 *
 * Edges   F1 (fence.h) between "name, word" and "publish": either the sleeper's second look finds
 *         what was published, or the waker finds the name and word == 1. A name read late may be
 *         that of a thread which sleeps for something else by now: it wakes, looks, sleeps again.
 * Cold    A thread that sleeps often leaves its name in its own mailbox when it wakes. Who finds it passes a full fence and looks
 *         at word; the sleeper sets word, passes a full fence and looks again: F1 by two plain fences, without membarrier.
 *         After WF_COLD_RECEIVES receives without sleep the name is taken out: then senders pay nothing again.
 * Progress  waking never waits.
 * Tested  tests/models/park.pml, tests/unit/test_steps.c, tests/stress/stress_park.c.
 */
#ifndef WF_BASE_PARK_H
#define WF_BASE_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/base.h>

#include "base/cpu.h"
#include "base/fence.h"

struct wf_parker {
	_Atomic uint32_t word;                  /* 1: asleep or about to be; 2: asleep on a descriptor, to be rung (wf_park_ring) */
};

/* Park words lie where other processes see them (net/local/board.h), who wake as we do. Set once, before anybody sleeps. A faulty process could
 * write 1 behind a waker's 0: sleeps are then bounded. */
extern bool wf_park_far;

/* Wakes the one of this process whose word says 2. Set once. */
extern void (*wf_park_ring)(void);

#define WF_COLD_RECEIVES 32

struct wf_linger {
	unsigned spins, yields;         /* looks left before the next question; yields done */
	weft_time began;                /* of lingering alone; 0: not yet */
};

extern _Atomic unsigned wf_spins WF_HERE;       /* looks in spin_ns; set at init and by the knob */

extern _Atomic uint32_t wf_parked;      /* threads asleep here, the listener among them */

void wf_park_init(void);                /* measures how long a look takes */
void wf_park_tune(int64_t spin_ns);     /* spin_ns was changed */
bool wf_linger_more(struct wf_linger *w);

/* How often this thread will not spin, as spinning has not paid lately: in a crowd the answer comes after a yield. */
extern _Thread_local unsigned wf_spin_skip;

/* How many looks to spend on spinning now. */
static inline unsigned wf_spin_budget(void)
{
	if (wf_unlikely(wf_spin_skip)) {
		wf_spin_skip--;
		return 1;
	}
	return atomic_load_explicit(&wf_spins, memory_order_relaxed);
}

static inline void wf_linger_init(struct wf_linger *w)
{
	w->spins = wf_spin_budget();
	w->yields = 0;
	w->began = 0;
}

/* After a look that found nothing: true: look again; false: time to sleep. */
static inline bool wf_linger(struct wf_linger *w)
{
	if (wf_likely(w->spins)) {
		w->spins--;
		wf_relax();
		return true;
	}
	return wf_linger_more(w);
}

static inline void wf_park_begin(struct wf_parker *p)
{
	wf_step("park begin");
	/* relaxed: ordered by the heavy fence that follows the naming. */
	atomic_store_explicit(&p->word, 1, memory_order_relaxed);
}

static inline void wf_park_end(struct wf_parker *p)
{
	/* relaxed: a waker that still finds 1 costs a futile system call. */
	atomic_store_explicit(&p->word, 0, memory_order_relaxed);
}

/* Sleeps until woken or @until: 0 or -ETIMEDOUT. The only place in weft where a thread can be
 * cancelled; @cleanup(arg) is then run first. */
int wf_park(struct wf_parker *p, weft_time until, void (*cleanup)(void *), void *arg);

/* [any] Wakes @p, whose name was found, if it sleeps: true if it did. Begins with a full fence, so that a sleeper whose name has
 * stood since before needs no heavy one (cold, below). */
bool wf_wake(struct wf_parker *p);
uint32_t wf_wake_word(struct wf_parker *p);     /* the same for one of another process: what the word said; 2 has not been woken yet */

#endif
