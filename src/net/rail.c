/* rail.c - an opened rail as the core uses it. See rail.h.
 *
 * Edges   M1  seq_cst on `polling` and `missed`: a sender stores missed and loads polling, the poller stores polling and exchanges missed; one
 *             of them sees the other. So a send answered -EAGAIN is followed by retry, and one that is not waits for a call that makes
 *             no upcalls.
 */
#include "net/rail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local char wf_rail_myself;

/* Relaxed: only our own name matters, and that nobody else writes. */
static bool am_inside(struct wf_rail *rail)
{
	return atomic_load_explicit(&rail->inside, memory_order_relaxed) == &wf_rail_myself;
}

/* True: the lock was taken and must be left again. False: it is not needed, or this thread has it. */
static bool enter(struct wf_rail *rail)
{
	if (!rail->serial || am_inside(rail))
		return false;
	wf_lock(&rail->lock);
	wf_rail_entered(rail);
	return true;
}

int wf_rail_open(const char *name, const char *options, const struct weft_upcalls *up, void (*retry)(void *cookie), void *cookie,
		 struct wf_rail **ret_rail)
{
	struct wf_choice choice;
	struct weft_rail_conf conf = { .size = sizeof(conf), .options = options };
	struct wf_rail *rail;
	int r = wf_rails_choose(name, &choice, 1);

	if (r != 1)
		return r < 0 ? r : weft_fail(-EINVAL, "'%.60s' names %d rails, one is wanted", name, r);
	rail = calloc(1, sizeof(*rail));
	if (!rail)
		return weft_fail(-ENOMEM, "rail %s: out of memory", name);
	rail->driver = choice.driver;
	rail->serial = !(choice.driver->slots.caps & WEFT_DRIVER_THREADS);
	rail->retry = retry;
	rail->cookie = cookie;
	rail->info.size = sizeof(rail->info);
	conf.adapter = choice.adapter;
	snprintf(rail->name, sizeof(rail->name), "%s:%s", choice.driver->name, choice.adapter);
	r = choice.driver->slots.rail_open(choice.driver->self, &conf, up, cookie, &rail->info, &rail->state);
	if (r < 0) {
		free(rail);
		return r;
	}
	rail->fd = choice.driver->slots.wait_fd ? choice.driver->slots.wait_fd(rail->state) : -1;
	*ret_rail = rail;
	return 0;
}

void wf_rail_close(struct wf_rail *rail)
{
	if (!rail)
		return;
	rail->driver->slots.rail_close(rail->state);
	free(rail);
}

int wf_lane_open(struct wf_rail *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	bool in = enter(rail);
	int r = rail->driver->slots.lane_open(rail->state, to, klass, cookie, ret_lane);

	if (in)
		wf_rail_leave(rail);
	return r;
}

void wf_lane_close(struct wf_rail *rail, void *lane)
{
	bool in = enter(rail);

	rail->driver->slots.lane_close(lane);
	if (in)
		wf_rail_leave(rail);
}

void wf_lane_tune(struct wf_rail *rail, void *lane, int klass, size_t unsent)
{
	bool in = enter(rail);

	if (rail->driver->slots.lane_tune)
		rail->driver->slots.lane_tune(lane, klass, unsent);
	if (in)
		wf_rail_leave(rail);
}

void wf_lane_need_drop(struct wf_rail *rail, void *lane)
{
	bool in = enter(rail);

	rail->driver->slots.need_drop(lane);
	if (in)
		wf_rail_leave(rail);
}

ssize_t wf_lane_send_serial(struct wf_rail *rail, void *lane, const struct weft_out *out)
{
	ssize_t r;

	if (am_inside(rail))
		return rail->driver->slots.send(lane, out);
	while (!wf_trylock(&rail->lock)) {
		if (atomic_load(&rail->polling)) {
			atomic_store(&rail->missed, true);
			if (atomic_load(&rail->polling))        /* M1 */
				return -EAGAIN;
		}
		wf_relax();
	}
	wf_rail_entered(rail);
	r = rail->driver->slots.send(lane, out);
	wf_rail_leave(rail);
	return r;
}

int wf_rail_provide(struct wf_rail *rail, struct weft_room *const *rooms, int n)
{
	bool in = enter(rail);
	int r = rail->driver->slots.provide ? rail->driver->slots.provide(rail->state, rooms, n) : -EOPNOTSUPP;

	if (in)
		wf_rail_leave(rail);
	return r;
}

int wf_rail_stat(struct wf_rail *rail, struct weft_rail_stat *ret_stat)
{
	if (!rail->driver->slots.stat)
		return weft_fail(-EOPNOTSUPP, "rail %s has no counters", rail->name);
	return rail->driver->slots.stat(rail->state, ret_stat);
}

int wf_rail_arm(struct wf_rail *rail)
{
	int r = 0;

	if (!wf_trylock(&rail->lock))
		return 1;
	wf_rail_entered(rail);
	if (rail->driver->slots.arm)
		r = rail->driver->slots.arm(rail->state);
	wf_rail_leave(rail);
	return r;
}
