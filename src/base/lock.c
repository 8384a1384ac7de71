/* lock.c - when the lock is not free: spin a little, then sleep on it. See lock.h. */
#include "base/lock.h"

#include <weft/base.h>

#include "base/futex.h"

#define SPINS 64

void wf_lock_slow(struct wf_lock *l)
{
	for (int i = 0; i < SPINS; i++) {
		wf_relax();
		if (wf_trylock(l))
			return;
	}
	/* relaxed: ordered by the fence below. */
	atomic_fetch_add_explicit(&l->wanted, 1, memory_order_relaxed);
	wf_fence_heavy();                                               /* F1 */
	while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire) != 0) {      /* L1 */
		wf_step("lock sleep");
		wf_futex_wait(&l->held, 1, WEFT_FOREVER);
	}
	atomic_fetch_sub_explicit(&l->wanted, 1, memory_order_relaxed);
}

void wf_unlock_slow(struct wf_lock *l)
{
	wf_futex_wake(&l->held, 1);
}
