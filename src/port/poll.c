/* poll.c - weft_poll: progress for threads that wait for nothing in particular. */
#include <errno.h>

#include "base/clock.h"
#include "port/drain.h"
#include "port/lead.h"
#include "port/listener.h"
#include "port/self.h"
#include "port/tell.h"
#include "port/wait.h"

/* What was handled here, or by others since @ran callbacks had been run. */
static int once(uint32_t ran)
{
	struct weft_port *world = weft_port_world();
	int n = wf_unlikely(wf_hosts != NULL) ? wf_lead_look() : 0;

	n += wf_port_progress(wf_self.port);

	if (world)
		n += wf_port_progress(world);
	n += wf_listener_attend();
	if (!wf_self.in_callback)
		n += wf_callbacks_run();
	return n ? n : (int)(atomic_load_explicit(&wf_callbacks_ran, memory_order_relaxed) - ran);
}

struct sleep {
	struct wf_waiter own, world;
	bool polls;
};

static void get_up(void *arg)
{
	struct sleep *s = arg;

	wf_park_end(s->own.parker);
	wf_unwait(&s->own);
	if (s->world.port)
		wf_unwait(&s->world);
	if (s->polls)
		atomic_store_explicit(&wf_poller, NULL, memory_order_relaxed);
	wf_self.waiting = false;
}

static void wait_at(struct weft_port *p, struct wf_waiter *w)
{
	wf_port_enter(p);
	wf_wait_at_locked(p, w);
	wf_port_leave(p);
}

static void sleep_once(uint32_t ran, weft_time until)
{
	struct wf_parker *parker = &wf_self.port->face->parker, *nobody = NULL;
	struct weft_port *world = weft_port_world();
	struct sleep s = { .own.parker = parker, .world.parker = parker };
	weft_time soon = weft_in(WEFT_MS);

	wf_park_begin(parker);
	wait_at(wf_self.port, &s.own);
	if (world)
		wait_at(world, &s.world);
	/* Only one can be the poller; another looks now and then. Relaxed: ordered by the fence. */
	s.polls = atomic_compare_exchange_strong_explicit(&wf_poller, &nobody, parker, memory_order_relaxed, memory_order_relaxed);
	wf_fence_heavy_far();                                               /* F1 */
	if (!wf_port_waiting(wf_self.port) && !(world && wf_port_waiting(world)) && !wf_callbacks_pending() &&
	    atomic_load_explicit(&wf_callbacks_ran, memory_order_relaxed) == ran)
		wf_lead_park(parker, s.polls || until < soon ? until : soon, get_up, &s);
	get_up(&s);
	wf_self.waiting = true;
}

static int poll_wait(uint32_t ran, weft_time until)
{
	struct wf_linger w;
	int n;

	wf_linger_init(&w);
	while ((n = once(ran)) == 0) {
		if (wf_linger(&w))
			continue;
		if (wf_past(until))
			return wf_late(until);
		sleep_once(ran, until);
	}
	return n;
}

int weft_poll(weft_time until)
{
	uint32_t ran = atomic_load_explicit(&wf_callbacks_ran, memory_order_relaxed);
	int n, r = wf_enter();

	if (r < 0)
		return r;
	n = once(ran);
	if (n)
		return n;
	if (until == WEFT_NOW)
		return wf_late(until);
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_poll inside a callback");
	wf_self.waiting = true;
	n = poll_wait(ran, until);
	wf_self.waiting = false;
	return n;
}
