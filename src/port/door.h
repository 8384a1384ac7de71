/* door.h - a port's lock, biased to the thread that owns the port: the thread whose own port it is, else the one that opened it (its keeper).
 *
 * The owner goes in and out by plain stores and loads; the others, who come seldom (to match for an owner that
 * computes, to cancel, to look), pay for it with a heavy fence.
 *
 *     owner                                     another (one at a time, under door.others)
 *     in = 1                                    word += WANTED
 *     light fence                               heavy fence
 *     word as I left it? inside                 wait until in == 0: inside
 *     else in = 0, wait until not wanted, again
 *     ...                                       ...
 *     in = 0 (D1)                               word += VISIT - WANTED (D2)
 *     light fence; wanted? wake                 wake the owner if he waits
 *
 * Shape   word  63..32 visits | 1 plain | 0 wanted. The owner remembers the word he last saw: as long as it has not
 *         changed nobody was here, and there is nothing to acquire.
 * Edges   F1 (fence.h): of an owner going in and another one coming, at least one sees the other.
 *         D1  in release -> in acquire: what the owner did, to the next visitor.
 *         D2  word release -> word acquire (only when it has changed): what visitors did, to the owner.
 * Plain   A port without an owner, or one that is visited much (VISITS_TO_PLAIN), is for everybody the lock of
 *         lock.h: the plain bit makes the owner's fast way fail for good.
 * Keeper  Once set it stays for all incarnations of the memory: if another thread opens a port there the door is plain.
 *         So a thread that comes late, by a pointer to what was its port, and takes itself for the owner, finds it plain or is.
 * Tested  tests/models/door.pml, tests/unit/test_steps.c, tests/stress/stress_door.c.
 */
#ifndef WF_PORT_DOOR_H
#define WF_PORT_DOOR_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"

#define WF_DOOR_WANTED UINT64_C(1)
#define WF_DOOR_PLAIN UINT64_C(2)
#define WF_DOOR_VISIT (UINT64_C(1) << 32)

struct wf_door {
	_Atomic uint32_t in;            /* the owner is inside */
	_Atomic uint32_t owner_waits;   /* asleep on it while wanted */
	_Atomic uint64_t word;
	uint64_t last;                  /* owner only: the word as he last saw it; never a plain one */
	bool locked;                    /* owner only: came in by others, as the door is plain */
	_Atomic uint32_t keeper;        /* local part, with its generation, of the id of the thread for which it is biased, where it is not that thread's own port; 0: none yet */
	struct wf_lock others;
};

/* For another incarnation: nobody is inside but perhaps a late visitor, who is waited for. */
void wf_door_reset(struct wf_door *d, bool owned);

/* [thread @id] Of a port that this thread opens: biased to it from now on, unless it was another's. */
void wf_door_keep(struct wf_door *d, uint32_t id);

void wf_door_enter_owner_slow(struct wf_door *d);
void wf_door_leave_owner_slow(struct wf_door *d);
void wf_door_enter_other(struct wf_door *d);
void wf_door_leave_other(struct wf_door *d);

/* [owner] */
static inline void wf_door_enter_owner(struct wf_door *d)
{
	wf_step("door in");
	atomic_store_explicit(&d->in, 1, memory_order_relaxed);         /* ordered by the fence */
	wf_fence_light();                                               /* F1 */
	/* relaxed: unchanged means there is nothing to acquire. */
	if (wf_unlikely(atomic_load_explicit(&d->word, memory_order_relaxed) != d->last))
		wf_door_enter_owner_slow(d);
}

/* [owner, inside] Somebody waits to come in. */
static inline bool wf_door_wanted(struct wf_door *d)
{
	if (wf_unlikely(d->locked))
		return atomic_load_explicit(&d->others.wanted, memory_order_relaxed) != 0;
	return atomic_load_explicit(&d->word, memory_order_relaxed) != d->last;
}

/* [owner] */
static inline void wf_door_leave_owner(struct wf_door *d)
{
	wf_step("door out");
	atomic_store_explicit(&d->in, 0, memory_order_release);         /* D1 */
	wf_fence_light();                                               /* F1 */
	if (wf_unlikely(atomic_load_explicit(&d->word, memory_order_relaxed) != d->last))
		wf_door_leave_owner_slow(d);
}

#endif
