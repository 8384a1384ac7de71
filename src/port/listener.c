/* listener.c - see listener.h.
 *
 * A sender that finds the listener named in a mailbox puts the port into a list (once: port.rung) and
 * wakes it. The list is a stack by CAS, taken whole by exchange: L1 publishes next_rung.
 */
#include "port/listener.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/cancel.h"
#include "port/drain.h"
#include "port/self.h"
#include "port/tell.h"
#include "port/timer.h"

struct wf_parker wf_listener_parker;

static struct wf_lock start_lock;
static _Atomic bool running, stopping;
static pthread_t thread;
static _Atomic(struct weft_port *) rung;

void wf_listener_wake(void)
{
	wf_fence_light();                                               /* F1 */
	wf_wake(&wf_listener_parker);
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

static void nothing(void *arg)
{
	(void)arg;
}

static void *listen(void *arg)
{
	wf_self.waiting = true;
	while (!atomic_load_explicit(&stopping, memory_order_acquire)) {
		weft_time next;
		int n = wf_listener_attend() + wf_callbacks_run();

		next = wf_timers_run();
		if (n)
			continue;
		wf_park_begin(&wf_listener_parker);
		wf_fence_heavy();                                       /* F1 */
		if (atomic_load_explicit(&rung, memory_order_relaxed) || wf_callbacks_pending() || wf_timers_next() < next ||
		    atomic_load_explicit(&stopping, memory_order_relaxed)) {
			wf_park_end(&wf_listener_parker);
			continue;
		}
		wf_park(&wf_listener_parker, next, nothing, NULL);
	}
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
