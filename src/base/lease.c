/* lease.c - see lease.h. */
#include "base/lease.h"

#include "base/clock.h"

#define SPINS 64

bool wf_lease_take_back(struct wf_lease *l, const _Atomic uint32_t *mine)
{
	unsigned pauses = 0;

	wf_step("lease back");
	atomic_store_explicit(&l->name, 0, memory_order_relaxed);       /* ordered by the fence */
	if (l->inside == mine)
		return true;
	wf_fence_heavy();                                               /* F1 */
	for (unsigned i = 0; atomic_load_explicit(l->inside, memory_order_acquire); i++) {      /* V1 */
		wf_relax();
		if (i >= SPINS)
			wf_pause_for(&pauses);
	}
	return false;
}
