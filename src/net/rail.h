/* rail.h - an opened rail as the core uses it: a driver's slots behind the threads rule of weft/driver.h.
 *
 * One thread polls at a time: whoever gets the rail's lock; others do not wait for it. Of a driver without WEFT_DRIVER_THREADS
 * every other call takes that lock too. A send would then have to wait for a poll whose upcalls may want what the sender holds, so it
 * does not: it answers -EAGAIN, and whoever polled calls `retry` behind it.
 *
 * Calls from inside an upcall find their own thread in the rail and go straight through.
 */
#ifndef WF_NET_RAIL_H
#define WF_NET_RAIL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "net/choose.h"

struct wf_rail {
	/* Set at open, then constant. */
	const struct wf_driver *driver;
	void *state;                    /* the driver's */
	struct weft_rail_info info;
	bool serial;                    /* no WEFT_DRIVER_THREADS */
	int fd;                         /* wait_fd; -1: none */
	void (*retry)(void *cookie);    /* any lane may be written to again. Only for serial rails; may be NULL for the others */
	void *cookie;
	char name[WF_RAIL_NAME];
	/* Any thread. */
	struct wf_lock lock;
	_Atomic(void *) inside;         /* which thread has the lock (an address of its own) */
	_Atomic bool polling;           /* serial rails: who has the lock may be in an upcall */
	_Atomic bool missed;            /* a send found it so */
};

/* [any] @name as in choose.h, with its adapter. @up and @cookie hold until wf_rail_close. */
int wf_rail_open(const char *name, const char *options, const struct weft_upcalls *up, void (*retry)(void *cookie), void *cookie,
		 struct wf_rail **ret_rail WEFT_GIVES);
void wf_rail_close(struct wf_rail *rail WEFT_TAKES);    /* its lanes are closed, nobody is in any call */

int wf_lane_open(struct wf_rail *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane WEFT_GIVES);
void wf_lane_close(struct wf_rail *rail, void *lane WEFT_TAKES);        /* hold nothing that an upcall takes */
void wf_lane_tune(struct wf_rail *rail, void *lane, int klass, size_t unsent);
void wf_lane_need_drop(struct wf_rail *rail, void *lane);               /* hold nothing that an upcall takes */
ssize_t wf_lane_send_serial(struct wf_rail *rail, void *lane, const struct weft_out *out);
int wf_rail_provide(struct wf_rail *rail, struct weft_room *const *rooms, int n);
int wf_rail_stat(struct wf_rail *rail, struct weft_rail_stat *ret_stat);

extern _Thread_local char wf_rail_myself WF_HERE;       /* its address is this thread's name */

static inline void wf_rail_entered(struct wf_rail *rail)
{
	atomic_store_explicit(&rail->inside, &wf_rail_myself, memory_order_relaxed);
}

static inline void wf_rail_leave(struct wf_rail *rail)
{
	atomic_store_explicit(&rail->inside, NULL, memory_order_relaxed);
	wf_unlock(&rail->lock);
}

/* As the slot. -EBUSY: another thread polls; it will see what there is. */
static inline int wf_rail_poll(struct wf_rail *rail, int budget, unsigned flags)
{
	bool missed = false;
	int r;

	if (!wf_trylock(&rail->lock))
		return -EBUSY;
	wf_rail_entered(rail);
	if (wf_unlikely(rail->serial))
		atomic_store(&rail->polling, true);
	r = rail->driver->slots.poll(rail->state, budget, flags);
	if (wf_unlikely(rail->serial)) {
		atomic_store(&rail->polling, false);
		missed = atomic_exchange(&rail->missed, false);         /* M1 */
	}
	wf_rail_leave(rail);
	if (wf_unlikely(missed))
		rail->retry(rail->cookie);      /* not under the lock: it may want what a sender holds who waits for that */
	return r;
}

int wf_rail_arm(struct wf_rail *rail);                  /* as the slot; 1 where another thread polls */

/* As the slot. */
static inline ssize_t wf_lane_send(struct wf_rail *rail, void *lane, const struct weft_out *out)
{
	return wf_likely(!rail->serial) ? rail->driver->slots.send(lane, out) : wf_lane_send_serial(rail, lane, out);
}

#endif
