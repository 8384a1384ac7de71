/* listener.c - see listener.h.
 *
 * A sender that finds the listener named in a mailbox puts the port into a list (once: port.rung) and
 * wakes it. The list is a stack by CAS, taken whole by exchange: L1 publishes next_rung.
 */
#include "port/listener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/cancel.h"
#include "port/context.h"
#include "port/drain.h"
#include "port/host.h"
#include "port/lead.h"
#include "port/self.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/timer.h"
#include "port/way.h"

#define STARVED_EVERY (10 * WEFT_MS)

struct wf_parker wf_listener_parker;

static struct wf_lock start_lock;
static _Atomic bool running, stopping;
static pthread_t thread;
static _Atomic(struct weft_port *) rung;
static atomic_bool starved;             /* somewhere a message stays in the mailbox until there is memory; a hint */
static weft_time next_feed;             /* the listener's */

/* With other processes: it sleeps in poll, rung by its descriptor, whoever rings. Set once, before it starts. */
static struct {
	bool on;
	int event_fd, notices_fd;
	void (*notices)(void);
} far;

void wf_listener_wake(void)
{
	uint64_t one = 1;

	if (!far.on) {
		wf_wake(&wf_listener_parker);                           /* F1: it begins with a full fence */
		return;
	}
	wf_fence_slow();                                                /* F1 */
	if (atomic_load_explicit(&wf_board->bell.word, memory_order_relaxed) == 1 &&
	    atomic_exchange_explicit(&wf_board->bell.word, 0, memory_order_relaxed) == 1)
		syscall(SYS_write, far.event_fd, &one, sizeof(one));    /* fails only at its maximum: readable it is */
}

int wf_listener_far(int event_fd, int notices_fd, void (*notices)(void))
{
	far.event_fd = event_fd;
	far.notices_fd = notices_fd;
	far.notices = notices;
	far.on = true;
	wf_roots.event_fd = (uint32_t)(event_fd + 1);
	return wf_listener_start();
}

void wf_listener_unnoticed(void)
{
	far.notices_fd = -1;
}

/* Sleeps until rung, noticed, or @next. */
static void sleep_far(weft_time next)
{
	struct pollfd fds[3] = { { .fd = far.event_fd, .events = POLLIN }, { .fd = far.notices_fd, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	int64_t patience = wf_host_patience(), left = next == WEFT_FOREVER ? patience : next - wf_now();
	struct timespec t;
	uint64_t n;

	left = left < 0 ? 0 : left < patience ? left : patience;
	if (wf_hosts)
		fds[2].fd = wf_lead_watch(&left);
	t = (struct timespec){ .tv_sec = left / WEFT_S, .tv_nsec = left % WEFT_S };
	syscall(SYS_ppoll, fds, wf_hosts ? 3 : 2, &t, NULL, 0);
	atomic_store_explicit(&wf_board->bell.word, 0, memory_order_relaxed);
	if (fds[0].revents)
		syscall(SYS_read, far.event_fd, &n, sizeof(n));
	if (fds[1].revents)
		far.notices();
}

void wf_listener_ring(struct weft_port *p)
{
	struct weft_port *old;

	/* acq_rel: who clears it drains after; a message published before is seen then, or we push. */
	if (atomic_exchange_explicit(&p->rung, 1, memory_order_acq_rel))
		return;
	old = atomic_load_explicit(&rung, memory_order_relaxed);
	do {
		atomic_store_explicit(&p->next_rung, old, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&rung, &old, p, memory_order_release,      /* L1 */
							memory_order_relaxed));
	wf_listener_wake();
}

void wf_bell(struct weft_port *p, struct wf_parker *sleeper)
{
	if (sleeper == &wf_listener_parker)
		wf_listener_ring(p);
	else if (wf_wake(sleeper))
		atomic_fetch_add_explicit(&p->wakes, 1, memory_order_relaxed);
}

int wf_listener_attend(void)
{
	struct weft_port *p, *next;
	int n = 0;

	if (!atomic_load_explicit(&rung, memory_order_relaxed))
		return 0;
	for (p = atomic_exchange_explicit(&rung, NULL, memory_order_acquire); p; p = next) {       /* L1 */
		next = atomic_load_explicit(&p->next_rung, memory_order_relaxed);
		atomic_exchange_explicit(&p->rung, 0, memory_order_acq_rel);
		n += wf_port_progress(p);
	}
	return n;
}

void wf_listener_starved(void)
{
	if (!atomic_exchange_explicit(&starved, true, memory_order_relaxed))
		wf_listener_wake();
}

/* Who waits there himself looks again himself; and nobody else comes by before more is sent. */
static void feed_one(struct weft_port *p, void *arg)
{
	if (atomic_load_explicit(&p->ring.sleeper, memory_order_relaxed) == &wf_listener_parker)
		*(int *)arg += wf_port_progress(p);
}

/* Memory that comes back rings for nobody. */
static int feed(void)
{
	int n = 0;

	if (wf_likely(!atomic_load_explicit(&starved, memory_order_relaxed)) || wf_now() < next_feed)
		return 0;
	next_feed = weft_in(STARVED_EVERY);
	atomic_store_explicit(&starved, false, memory_order_relaxed);
	wf_port_each(feed_one, &n);
	return n;
}

static bool is_starved_before(weft_time next)
{
	return atomic_load_explicit(&starved, memory_order_relaxed) && next_feed < next;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void *listen(void *arg)
{
	struct wf_parker *me;

	wf_self.waiting = true;
	while (!atomic_load_explicit(&stopping, memory_order_acquire)) {
		weft_time next;
		int n = wf_listener_attend() + wf_callbacks_run();

		if (far.on)
			n += wf_host_attend();
		if (wf_hosts) {
			wf_hosts->asked();
			n += wf_lead_listen();
		}

		n += feed();
		next = wf_timers_run();
		if (is_starved_before(next))
			next = next_feed;
		if (n)
			continue;
		me = far.on ? &wf_board->bell : &wf_listener_parker;
		wf_park_begin(me);
		wf_fence_slow();                /* F1, by two plain fences: who wakes it passes one, too, in this process and in others */
		if (atomic_load_explicit(&rung, memory_order_relaxed) || wf_callbacks_pending() || wf_timers_next() < next || is_starved_before(next) ||
		    (far.on && wf_host_waiting()) || (wf_hosts && (wf_lead_sent_for() || wf_lead_unrung())) || atomic_load_explicit(&stopping, memory_order_relaxed)) {
			wf_park_end(me);
			continue;
		}
		if (far.on)
			sleep_far(next);
		else
			wf_park(me, next, nothing, NULL);
	}
	/* What it has looked up; it has not joined, unless a callback did, so nobody else sees to it. */
	wf_routes_free(wf_self.routes);
	wf_self.routes = NULL;
	wf_ways_forget(wf_self.ways);
	wf_self.ways = NULL;
	return arg;
}

int wf_listener_start(void)
{
	sigset_t all, before;
	int r = 0;

	if (wf_likely(atomic_load_explicit(&running, memory_order_acquire)))
		return 0;
	wf_lock(&start_lock);
	if (!atomic_load_explicit(&running, memory_order_relaxed)) {
		atomic_store_explicit(&stopping, false, memory_order_relaxed);
		sigfillset(&all);               /* the program's signals are the program's threads' */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = pthread_create(&thread, NULL, listen, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (r == 0)
			atomic_store_explicit(&running, true, memory_order_release);
		else
			r = weft_fail(-r, "cannot start weft's own thread: %s", strerror(r));
	}
	wf_unlock(&start_lock);
	return r;
}

void wf_listener_stop(void)
{
	wf_lock(&start_lock);
	if (atomic_load_explicit(&running, memory_order_relaxed)) {
		atomic_store_explicit(&stopping, true, memory_order_release);
		wf_listener_wake();
		pthread_join(thread, NULL);
		atomic_store_explicit(&running, false, memory_order_relaxed);
	}
	wf_unlock(&start_lock);
}
