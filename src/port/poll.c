/* poll.c - weft_poll: progress for threads that wait for nothing in particular. */
#include <errno.h>

#include "base/clock.h"
#include "port/drain.h"
#include "port/listener.h"
#include "port/self.h"
#include "port/tell.h"
#include "port/wait.h"

static int once(void)
{
	struct weft_port *world = weft_port_world();
	int n = wf_port_progress(wf_self.port);

	if (world)
		n += wf_port_progress(world);
	return n + wf_listener_attend() + (wf_self.in_callback ? 0 : wf_callbacks_run());
}

static void get_up(void *arg)
{
	struct wf_waiter *w = arg;

	wf_park_end(w->parker);
	wf_unwait(w);
	wf_self.waiting = false;
}

static void sleep_once(weft_time until)
{
	struct wf_waiter w = { .parker = &wf_self.port->parker };

	wf_park_begin(w.parker);
	wf_port_enter(wf_self.port);
	wf_wait_at_locked(wf_self.port, &w);
	wf_port_leave(wf_self.port);
	wf_fence_heavy();                                               /* F1 */
	if (!wf_ring_waiting(&wf_self.port->ring) && !wf_callbacks_pending())
		wf_park(w.parker, until, get_up, &w);
	get_up(&w);
}

int weft_poll(weft_time until)
{
	struct wf_linger w;
	int n, r = wf_enter();

	if (r < 0)
		return r;
	n = once();
	if (n)
		return n;
	if (until == WEFT_NOW)
		return wf_late(until);
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_poll inside a callback");
	wf_linger_init(&w);
	while ((n = once()) == 0) {
		if (wf_linger(&w))
			continue;
		if (wf_past(until))
			return wf_late(until);
		sleep_once(until);
	}
	return n;
}
