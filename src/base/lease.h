/* lease.h - what a lock guards, lent to one thread: that goes in and out by plain stores and loads, as long as nobody takes the lock.
 *
 * For who comes again and again, each time for so short a while that the lock's exchange is most of it. Whoever takes the lock takes the lease back before he touches anything.
 *
 *     lessee                                    another, who has the lock
 *     inside = 1                                name = 0
 *     light fence                               heavy fence
 *     still lent to me? he is in                wait until the lessee's inside == 0
 *     else inside = 0: by the lock, then        ...
 *     ...
 *     inside = 0 (V1)
 *
 * Shape   name: whose it is, 0: nobody's; changed under the lock. No two threads ever have the same name, also after one another: who finds his own has lent it to himself, and nobody has had the
 *         lock since. inside is a word of the thread's, one for all leases, whose memory stays: who finds that a lease is not his any more has written nothing but that.
 * Edges   F1 (fence.h): of a lessee who goes in and another who takes back at least one sees the other.
 *         V1  inside release -> inside acquire: what the lessee did there, to who takes back. What others did comes to the lessee with the lock, before it is lent to him again.
 *         The lessee's fence is the free one: where membarrier is refused (fence.h) nothing is lent, but under ThreadSanitizer.
 * Waits   Who takes back waits for a lessee who is inside, for whatever lease; he waits for nobody there, but may have lost his core.
 * Tested  tests/models/lease.pml, tests/unit/test_steps.c, tests/stress/stress_lease.c.
 */
#ifndef WF_BASE_LEASE_H
#define WF_BASE_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fence.h"
#include "base/step.h"

struct wf_lease {
	_Atomic uint64_t name;          /* 0: nobody's */
	_Atomic uint32_t *inside;       /* the lessee's; under the lock */
};

/* [lock held] To this thread, called @name, if fences are free; it is nobody's. */
static inline void wf_lease_lend(struct wf_lease *l, uint64_t name, _Atomic uint32_t *inside)
{
	if (wf_unlikely(!wf_fence_free && !WF_TSAN))
		return;
	l->inside = inside;
	atomic_store_explicit(&l->name, name, memory_order_relaxed);    /* only we look for it */
}

/* relaxed: who has the lock knows; to others it is a hint. */
static inline uint64_t wf_lease_name(const struct wf_lease *l)
{
	return atomic_load_explicit(&l->name, memory_order_relaxed);
}

/* [thread @name] True: inside. False: it is not ours, or not any more. */
static inline bool wf_lease_enter(struct wf_lease *l, uint64_t name, _Atomic uint32_t *inside)
{
	wf_step("lease in");
	atomic_store_explicit(inside, 1, memory_order_relaxed);         /* ordered by the fence */
	wf_fence_lighter();                                             /* F1 */
	wf_step("lease mine");
	/* relaxed: if it is ours we have acquired all there is with the lock. */
	if (wf_likely(wf_lease_name(l) == name))
		return true;
	atomic_store_explicit(inside, 0, memory_order_relaxed);         /* nothing was done */
	return false;
}

/* [lessee, inside] */
static inline void wf_lease_leave(_Atomic uint32_t *inside)
{
	wf_step("lease out");
	atomic_store_explicit(inside, 0, memory_order_release);         /* V1 */
}

/* [lock held] It is nobody's any more, and nobody is inside. @mine: this thread's own word. True: it was lent to this thread. */
bool wf_lease_take_back(struct wf_lease *l, const _Atomic uint32_t *mine);

#endif
