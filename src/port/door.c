/* door.c - when owner and visitor meet. See door.h. */
#include "port/door.h"

#include <weft/base.h>

#include "base/futex.h"

#define SPINS 64
#define VISITS_TO_PLAIN 4096    /* each has cost a heavy fence, 2 us: from here on the owner pays a little instead */

void wf_door_reset(struct wf_door *d, bool owned)
{
	owned = owned && !atomic_load_explicit(&d->keeper, memory_order_relaxed);       /* another thread's: that one's id is never used again */
	wf_lock(&d->others);
	atomic_store_explicit(&d->in, 0, memory_order_relaxed);
	atomic_store_explicit(&d->word, owned ? 0 : WF_DOOR_PLAIN, memory_order_relaxed);
	d->last = 0;
	d->locked = false;
	wf_unlock(&d->others);
}

void wf_door_keep(struct wf_door *d, uint32_t id)
{
	uint32_t keeper = atomic_load_explicit(&d->keeper, memory_order_relaxed);       /* changed by whoever opens the port */

	if (keeper && keeper != id)
		return;
	atomic_store_explicit(&d->keeper, id, memory_order_relaxed);
	wf_lock(&d->others);
	atomic_store_explicit(&d->in, 0, memory_order_relaxed);
	atomic_store_explicit(&d->word, 0, memory_order_relaxed);
	d->last = 0;
	d->locked = false;
	wf_unlock(&d->others);
}

/* The word has changed: somebody was here, is here, or the door is plain. */
void wf_door_enter_owner_slow(struct wf_door *d)
{
	for (;;) {
		uint64_t w = atomic_load_explicit(&d->word, memory_order_acquire);      /* D2 */

		if (w & WF_DOOR_PLAIN) {
			atomic_store_explicit(&d->in, 0, memory_order_release);
			wf_lock(&d->others);
			d->locked = true;
			return;
		}
		if (!(w & WF_DOOR_WANTED)) {
			d->last = w;
			return;
		}
		atomic_store_explicit(&d->in, 0, memory_order_release);                 /* D1 */
		wf_futex_wake(&d->in, 1);
		for (int i = 0; i < SPINS && atomic_load_explicit(&d->word, memory_order_relaxed) & WF_DOOR_WANTED; i++)
			wf_relax();
		while (atomic_load_explicit(&d->word, memory_order_relaxed) & WF_DOOR_WANTED) {
			atomic_store_explicit(&d->owner_waits, 1, memory_order_relaxed);
			/* Our flag before our look; the visitor clears wanted before it looks at the flag. */
			wf_fence_slow();
			if (atomic_load_explicit(&d->word, memory_order_relaxed) & WF_DOOR_WANTED)
				wf_futex_wait(&d->owner_waits, 1, WEFT_FOREVER);
		}
		atomic_store_explicit(&d->owner_waits, 0, memory_order_relaxed);
		atomic_store_explicit(&d->in, 1, memory_order_relaxed);
		wf_fence_light();                                                       /* F1 */
	}
}

void wf_door_leave_owner_slow(struct wf_door *d)
{
	if (d->locked) {
		d->locked = false;
		wf_unlock(&d->others);
	} else {
		wf_futex_wake(&d->in, 1);       /* somebody came to the door meanwhile */
	}
}

void wf_door_enter_other(struct wf_door *d)
{
	wf_lock(&d->others);
	if (atomic_load_explicit(&d->word, memory_order_relaxed) & WF_DOOR_PLAIN)
		return;
	atomic_fetch_add_explicit(&d->word, WF_DOOR_WANTED, memory_order_relaxed);
	wf_fence_heavy();                                                               /* F1 */
	for (int i = 0; i < SPINS && atomic_load_explicit(&d->in, memory_order_relaxed); i++)
		wf_relax();
	while (atomic_load_explicit(&d->in, memory_order_acquire))                      /* D1 */
		wf_futex_wait(&d->in, 1, WEFT_FOREVER);
}

void wf_door_leave_other(struct wf_door *d)
{
	uint64_t w = atomic_load_explicit(&d->word, memory_order_relaxed);

	if (!(w & WF_DOOR_PLAIN)) {
		w = w + WF_DOOR_VISIT - WF_DOOR_WANTED;
		if (w >> 32 >= VISITS_TO_PLAIN)
			w |= WF_DOOR_PLAIN;
		atomic_store_explicit(&d->word, w, memory_order_release);               /* D2; only one visitor at a time */
		wf_fence_slow();                                                        /* see owner_waits above */
		if (atomic_exchange_explicit(&d->owner_waits, 0, memory_order_relaxed))
			wf_futex_wake(&d->owner_waits, 1);
	}
	wf_unlock(&d->others);
}
