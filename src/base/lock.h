/* lock.h - a short lock whose release is a plain store.
 *
 * Shape   held: 0 or 1, taken by an exchange. wanted: how many sleep or are about to. Release stores
 *         0 and looks at wanted behind a light fence; who wants the lock adds itself, passes a heavy
 *         fence and tries again before it sleeps on held == 1: by F1 (fence.h) either its try
 *         finds 0 or the releaser finds it wanted and wakes one.
 * Edges   L1  release store of held -> acquire exchange: all that was done under the lock.
 * Memory  who releases looks at the lock once more after it has let go: its memory must stay (ports, closed queues, statics).
 * Progress  barging is allowed: the woken one tries again; each release wakes while somebody wants it.
 * Tested  tests/stress/stress_lock.c, tests/unit/test_steps.c.
 */
#ifndef WF_BASE_LOCK_H
#define WF_BASE_LOCK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/fence.h"

struct wf_lock {
	_Atomic uint32_t held, wanted;
};

void wf_lock_slow(struct wf_lock *l);
void wf_unlock_slow(struct wf_lock *l);

static inline bool wf_trylock(struct wf_lock *l)
{
	wf_step("trylock");
	/* relaxed: a guess that saves an exchange. */
	return wf_likely(atomic_load_explicit(&l->held, memory_order_relaxed) == 0) &&
	       wf_swap32(&l->held, 1) == 0;     /* L1 */
}

static inline void wf_lock(struct wf_lock *l)
{
	wf_step("lock");
	if (wf_unlikely(wf_swap32(&l->held, 1) != 0))  /* L1 */
		wf_lock_slow(l);
}

static inline void wf_unlock(struct wf_lock *l)
{
	wf_step("unlock");
	atomic_store_explicit(&l->held, 0, memory_order_release);       /* L1 */
	wf_fence_light();                                               /* F1 */
	if (wf_unlikely(atomic_load_explicit(&l->wanted, memory_order_relaxed)))
		wf_unlock_slow(l);
}

static inline void wf_assert_held(struct wf_lock *l)
{
	assert(atomic_load_explicit(&l->held, memory_order_relaxed));
	(void)l;
}

#endif
