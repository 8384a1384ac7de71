/* lead.c - see lead.h. */
#include "port/lead.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "port/listener.h"
#include "port/self.h"

#define TICK_LEAST (WEFT_MS / 8)
#define TICK_MOST WEFT_MS
#define ABROAD 64

static struct wf_lock leading;                          /* only tried */
static _Atomic(struct wf_parker *) leader;              /* asleep on the rails */
static _Atomic bool attended;                           /* somebody has looked since the listener did */
static _Atomic bool dozing;                             /* the listener does not come by every tick: it watches itself, or another leads */
static int lead_fd = -1;
static bool watches;                                    /* the listener's: nobody else looks */
static int64_t tick = TICK_LEAST;                       /* the listener's: until it comes by again */
static _Atomic weft_time leader_due, listener_due;      /* when who sleeps on the rails looks again by itself; 0: nobody does */

static void ring(void)
{
	uint64_t one = 1;

	syscall(SYS_write, lead_fd, &one, sizeof(one)); /* fails only at its maximum: readable it is */
}

int wf_lead_init(void)
{
	lead_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lead_fd < 0)
		return weft_fail(-errno, "no descriptor to be woken by");
	wf_park_ring = ring;
	return 0;
}

void wf_lead_fini(void)
{
	if (lead_fd >= 0)
		close(lead_fd);
	lead_fd = -1;
}

int wf_lead_look(void)
{
	bool spins = !atomic_load_explicit(&leader, memory_order_relaxed);
	int n;

	if (!atomic_load_explicit(&attended, memory_order_relaxed)) {
		atomic_store_explicit(&attended, true, memory_order_relaxed);
		wf_fence_slow();                                        /* F1 with wf_lead_watch */
		if (atomic_load_explicit(&dozing, memory_order_relaxed))
			wf_listener_wake();             /* it is to come by again, for when we stop looking */
	}
	n = wf_hosts->poll(spins);
	if (n > 0)
		wf_self.abroad = ABROAD;
	if (spins) {
		wf_fence_slow();                                        /* F1 with wf_lead_park */
		if (wf_unlikely(atomic_load_explicit(&leader, memory_order_relaxed) != NULL))
			ring();
	}
	return n;
}

void wf_lead_hurry(weft_time when)
{
	wf_fence_slow();                                                /* F1 with plan */
	if (atomic_load_explicit(&leader_due, memory_order_relaxed) > when)
		ring();
	if (atomic_load_explicit(&listener_due, memory_order_relaxed) > when)
		wf_listener_wake();
}

/* [about to sleep] When to look again at the latest, unless hurried. */
static weft_time plan(_Atomic weft_time *ret_due)
{
	weft_time due = wf_hosts->next(), now;

	atomic_store_explicit(ret_due, due, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with wf_lead_hurry */
	now = wf_hosts->next();
	return now < due ? now : due;
}

static void sleep_on(struct wf_parker *p, weft_time until)
{
	struct pollfd fds[2] = { { .fd = wf_hosts->fd, .events = POLLIN }, { .fd = lead_fd, .events = POLLIN } };
	weft_time due = plan(&leader_due);
	int64_t left;
	uint64_t n;
	int old;

	due = until < due ? until : due;
	left = due == WEFT_FOREVER ? 3600 * WEFT_S : due - wf_now();
	if (left > 0 && atomic_load_explicit(&p->word, memory_order_acquire)) {
		struct timespec t = { .tv_sec = left / WEFT_S, .tv_nsec = left % WEFT_S };

		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
		syscall(SYS_ppoll, fds, 2, &t, NULL, 0);
		pthread_setcanceltype(old, NULL);
	}
	if (fds[1].revents)
		syscall(SYS_read, lead_fd, &n, sizeof(n));
}

static void resign(void)
{
	atomic_store_explicit(&leader_due, 0, memory_order_relaxed);
	atomic_store_explicit(&leader, NULL, memory_order_relaxed);
	wf_unlock(&leading);
	wf_fence_slow();                                                /* F1 with wf_lead_listen */
	/* Another sleeps and does not lead, or nobody looks from now on. */
	if (atomic_load_explicit(&wf_parked, memory_order_relaxed) || atomic_load_explicit(&dozing, memory_order_relaxed))
		wf_listener_wake();
}

struct undo {
	void (*cleanup)(void *);
	void *arg;
};

static void cancelled(void *arg)
{
	struct undo *u = arg;

	resign();
	u->cleanup(u->arg);
}

int wf_lead_park(struct wf_parker *p, weft_time until, void (*cleanup)(void *), void *arg)
{
	struct undo u = { cleanup, arg };
	uint32_t asleep = 1;
	weft_time soon;
	bool armed;

	if (wf_likely(!wf_hosts) || !wf_trylock(&leading))
		return wf_park(p, until, cleanup, arg);
	atomic_store_explicit(&leader, p, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with wf_lead_look */
	armed = wf_hosts->arm() == 0;
	/* acq_rel: a waker's 0 stays. */
	if (armed && atomic_compare_exchange_strong_explicit(&p->word, &asleep, 2, memory_order_acq_rel, memory_order_acquire)) {
		pthread_cleanup_push(cancelled, &u);
		sleep_on(p, until);
		pthread_cleanup_pop(0);
	}
	if (armed)
		wf_park_end(p);
	resign();
	if (wf_unlikely(!armed)) {
		/* Another is at the rails, in a long write perhaps, and wakes us if it reads what we wait for: there is nothing to be had by trying again at once. */
		soon = wf_now() + TICK_LEAST;
		wf_park(p, until < soon ? until : soon, cleanup, arg);
	}
	wf_hosts->poll(false);          /* whatever lane it was */
	return wf_past(until) ? -ETIMEDOUT : 0;
}

int wf_lead_listen(void)
{
	struct wf_parker *p = atomic_load_explicit(&leader, memory_order_relaxed);
	bool looked;
	int n = 0;

	atomic_store_explicit(&dozing, false, memory_order_relaxed);
	atomic_store_explicit(&listener_due, 0, memory_order_relaxed);
	if (p && atomic_load_explicit(&p->word, memory_order_relaxed) == 0)
		ring();                 /* woken by another process */
	looked = atomic_exchange_explicit(&attended, false, memory_order_relaxed);
	watches = !looked && wf_trylock(&leading);
	if (!looked && !watches) {
		atomic_store_explicit(&dozing, true, memory_order_relaxed);
		wf_fence_slow();                                        /* F1 with resign: it sees that we doze, or we that it is gone */
		watches = wf_trylock(&leading);
	}
	if (watches) {
		atomic_store_explicit(&dozing, false, memory_order_relaxed);
		n = wf_hosts->poll(false);
		wf_unlock(&leading);
		watches = n != -EBUSY;          /* else another is at them, and has been for so long that we took it for gone: the descriptor would wake us again and again */
	}
	return n < 0 ? 0 : n;
}

int wf_lead_watch(int64_t *patience)
{
	weft_time next;
	int64_t left;

	if (!watches) {
		/* Who has just begun to look may soon compute; who has looked for long will go on. */
		if (!atomic_load_explicit(&dozing, memory_order_relaxed)) {
			if (*patience > tick)
				*patience = tick;
			tick = 2 * tick < TICK_MOST ? 2 * tick : TICK_MOST;
		}
		return -1;
	}
	tick = TICK_LEAST;
	atomic_store_explicit(&dozing, true, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with wf_lead_look */
	next = plan(&listener_due);
	left = next == WEFT_FOREVER ? INT64_MAX : next - wf_now();
	if (left < 0 || atomic_load_explicit(&attended, memory_order_relaxed) || wf_hosts->arm())
		left = 0;
	if (left < *patience)
		*patience = left;
	return wf_hosts->fd;
}
