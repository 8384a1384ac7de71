/* fence.h - a fence of which one side is free.
 *
 * Two threads each store a word and then load the other's (publish, look for a sleeper; name
 * myself as sleeper, look for something published). One of them must see the other's store, which
 * needs a full fence on both sides. The side that runs millions of times a second calls
 * wf_fence_light(), a compiler barrier; the side about to sleep calls wf_fence_heavy(), which by
 * membarrier(2) makes every running thread of the process pass a full barrier. A thread that does
 * not run has passed one when it was switched out.
 *
 * Edges   F1  stores before a light fence -> loads after a heavy fence that comes later, and
 *             stores before a heavy fence -> loads after a light fence that comes later.
 * Where membarrier is refused both sides are seq_cst fences. Under ThreadSanitizer, which does not
 * know fences, both are read-modify-writes of one word: those are totally ordered, and each
 * acquires what the earlier one released.
 * Tested  tests/unit/test_steps.c, tests/models/park.pml, tests/stress/stress_park.c.
 */
#ifndef WF_BASE_FENCE_H
#define WF_BASE_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"

#if defined(__SANITIZE_THREAD__)
#define WF_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WF_TSAN 1
#endif
#endif
#ifndef WF_TSAN
#define WF_TSAN 0
#endif

extern bool wf_fence_free WF_HERE;      /* set at init, then constant: membarrier works */

void wf_fence_init(bool try_membarrier);
void wf_fence_slow(void);               /* the symmetric variant */
void wf_fence_heavy(void);

/* Towards other processes: light there needs wf_fence_global at both ends (else both are slow), heavy reaches every process that has it. */
extern bool wf_fence_global;            /* set when the process joins others, then constant */
void wf_fence_init_global(void);
void wf_fence_heavy_far(void);          /* within the process, and among those of the host */

static inline void wf_fence_light(void)
{
#if WF_TSAN
	wf_fence_slow();
#else
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(!wf_fence_free, 0))
		wf_fence_slow();
#endif
}

/* The same where wf_fence_free is known to be so. */
static inline void wf_fence_lighter(void)
{
#if WF_TSAN
	wf_fence_slow();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

#endif
