/* lead.c - see lead.h. */
#include "port/lead.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weft/driver.h>

#include "base/clock.h"
#include "base/lock.h"
#include "mem/share.h"
#include "port/listener.h"
#include "port/self.h"

#define TICK_LEAST (WEFT_MS / 8)
#define TICK_MOST WEFT_MS
#define TICK_LONG (8 * WEFT_MS)         /* where somebody is there whenever it comes by, and has been for */
#define TICK_SHARE 4                    /* ... so many times as long */
#define MISSES 8u                       /* errands in a row that were in vain, beyond which no more are not given: 255 */

static struct wf_lock leading;                          /* only tried */
_Atomic(struct wf_parker *) wf_leader;
_Atomic bool wf_lead_attended;
static _Atomic bool errand;                             /* the listener is to do what is due, whoever looks at the rails */
static _Atomic int listener_core = -1;                  /* a hint: where it went to sleep */
static _Atomic uint32_t spared;                         /* a hint: how many errands it is not given, as the last were in vain */
static uint32_t misses;                                 /* the listener's: those in a row */
static _Atomic bool dozing;                             /* the listener does not come by every tick: it watches itself, or another leads */
static int lead_fd = -1;
static int alarm_fd = -1;                               /* a timer that wakes who sleeps there */
static bool lies_in;                                    /* both are in the rails' epoll set. Constant while there are rails */
static _Atomic bool rung;                               /* a hint: lead_fd may be readable */
static weft_time alarm_at;                              /* [leading] when the alarm goes off; 0: it is not set */
static bool watches;                                    /* the listener's: nobody else looks */
static int64_t tick = TICK_LEAST;                       /* the listener's: until it comes by again */
static int64_t attendance;                              /* the listener's: for how long it has found somebody there each time */
static weft_time came_by;                               /* the listener's: when it asked that */
static bool strays;                                     /* the listener's: it stays away for longer than TICK_MOST */
static _Atomic bool seldom;                             /* the same, a hint. Who takes it back wakes the listener */
static _Atomic weft_time attended_at;                   /* a hint: when somebody looked for the first time since it came by */
static _Atomic weft_time leader_due, listener_due;      /* when who sleeps on the rails looks again by itself; 0: nobody does */

void wf_lead_ring(void)
{
	uint64_t one = 1;

	syscall(SYS_write, lead_fd, &one, sizeof(one)); /* fails only at its maximum: readable it is */
	atomic_store_explicit(&rung, true, memory_order_relaxed);       /* behind it: who hushes clears it first */
}

/* [leading] Whoever was rung has heard it, or is gone. */
static void hush(void)
{
	uint64_t n;

	atomic_store_explicit(&rung, false, memory_order_relaxed);
	syscall(SYS_read, lead_fd, &n, sizeof(n));
}

/* [leading] Wakes who sleeps on the rails' set, by @due. It is left as it is where it goes off before that: what is due moves on with every message, and to be woken once in vain is nothing beside
 * a timer that is set and taken back for each sleep. (8 B to and fro between threads that sleep, over lo, with epoll's own time limit and without: 1.30 and 1.13 of raw TCP on a virtual x86-64,
 * where a timer is likely the dearer for it.) */
static void alarm_by(weft_time due)
{
	struct itimerspec t = { .it_value = { .tv_sec = due / WEFT_S, .tv_nsec = due % WEFT_S } };

	if (due == WEFT_FOREVER || (alarm_at && alarm_at <= due))
		return;
	timerfd_settime(alarm_fd, TFD_TIMER_ABSTIME, &t, NULL);
	alarm_at = due;
}

/* [leading] It went off: or the set would be readable for ever. One whose time has come and whose interrupt has not is not forgotten: it goes off yet. */
static void alarm_heard(void)
{
	uint64_t n;

	if (alarm_at && wf_now() >= alarm_at && syscall(SYS_read, alarm_fd, &n, sizeof(n)) == sizeof(n))
		alarm_at = 0;
}

int wf_lead_init(int set)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = WEFT_EVENT_CORE };

	lead_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	alarm_fd = lead_fd < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm_fd < 0) {
		int r = weft_fail(-errno, "no descriptor to be woken by");

		wf_lead_fini();
		return r;
	}
	alarm_at = 0;
	lies_in = set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, lead_fd, &ev) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, alarm_fd, &ev) == 0;
	wf_park_ring = wf_lead_ring;
	return 0;
}

void wf_lead_fini(void)
{
	if (lead_fd >= 0)
		close(lead_fd);
	if (alarm_fd >= 0)
		close(alarm_fd);
	lead_fd = alarm_fd = -1;
}

/* Somebody looks: the first since the listener came by. */
static inline void note_attendance(void)
{
	atomic_store_explicit(&attended_at, wf_now(), memory_order_relaxed);
	atomic_store_explicit(&wf_lead_attended, true, memory_order_relaxed);
}

/* Nobody has looked for a while. */
void wf_lead_attend(void)
{
	note_attendance();
	wf_fence_slow();                                        /* F1 with wf_lead_watch */
	if (atomic_load_explicit(&dozing, memory_order_relaxed))
		wf_listener_wake();             /* it is to come by again, for when we stop looking */
}

void wf_lead_hurry(weft_time when)
{
	wf_fence_slow();                                                /* F1 with plan */
	if (atomic_load_explicit(&leader_due, memory_order_relaxed) > when)
		wf_lead_ring();
	if (atomic_load_explicit(&listener_due, memory_order_relaxed) > when)
		wf_listener_wake();
}

/* Who posts and waits at once is first, and the listener has taken somebody's core for nothing: then it is spared some errands, twice as many each time. */
bool wf_lead_helps(void)
{
	uint32_t rest = atomic_load_explicit(&spared, memory_order_relaxed);
	int core = atomic_load_explicit(&listener_core, memory_order_relaxed);

	if (rest)
		atomic_store_explicit(&spared, rest - 1, memory_order_relaxed);
	return !rest && core >= 0 && core != sched_getcpu();
}

void wf_lead_errand(void)
{
	atomic_store_explicit(&errand, true, memory_order_release);     /* -> wf_lead_sent_for: the work */
	wf_listener_wake();                                             /* begins with a fence: F1 with who is about to sleep */
}

bool wf_lead_sent_for(void)
{
	return atomic_load_explicit(&errand, memory_order_acquire);
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

/* [leading] Sleeps on the rails' descriptor and on our own, where it may be cancelled. True: one of ours told. */
static bool sleep_set(void)
{
	struct epoll_event ev[2];
	int n = epoll_wait(wf_hosts->fd, ev, 2, -1);

	for (int i = 0; i < n; i++)
		if (ev[i].data.u64 == WEFT_EVENT_CORE)
			return true;
	return false;
}

static bool sleep_both(const struct timespec *t)
{
	struct pollfd fds[2] = { { .fd = wf_hosts->fd, .events = POLLIN }, { .fd = lead_fd, .events = POLLIN } };

	return ppoll(fds, 2, t, NULL) > 0 && fds[1].revents;
}

/* [leading] False: it was too late for that. */
static bool sleep_on(struct wf_parker *p, weft_time until)
{
	weft_time due = plan(&leader_due);
	int64_t left;
	bool told;

	due = until < due ? until : due;
	left = due == WEFT_FOREVER ? 3600 * WEFT_S : due - wf_now();
	if (left <= 0 || !atomic_load_explicit(&p->word, memory_order_acquire))
		return left > 0;
	if (lies_in)
		alarm_by(due);
	told = lies_in ? sleep_set() : sleep_both(&(struct timespec){ .tv_sec = left / WEFT_S, .tv_nsec = left % WEFT_S });
	if (told) {
		hush();
		alarm_heard();
	}
	return true;
}

static inline void resign(void)
{
	atomic_store_explicit(&leader_due, 0, memory_order_relaxed);
	atomic_store_explicit(&wf_leader, NULL, memory_order_relaxed);
	wf_unlock(&leading);
	wf_fence_slow();                                                /* F1 with wf_lead_listen */
	/* Another sleeps and does not lead, or nobody looks from now on. */
	if (wf_unlikely(atomic_load_explicit(&wf_parked, memory_order_relaxed) || atomic_load_explicit(&dozing, memory_order_relaxed))) {
		atomic_store_explicit(&seldom, false, memory_order_relaxed);    /* and looks again soon: that we have just looked says nothing */
		wf_listener_wake();
	}
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

WF_HOT int wf_lead_park(struct wf_parker *p, weft_time until, void (*cleanup)(void *), void *arg)
{
	struct undo u = { cleanup, arg };
	uint32_t asleep = 1;
	bool armed, slept = false;
	weft_time soon;

	wf_share_flush();               /* what we have put goes home before we sleep; last of all, as looking once more and callbacks put, too */
	if (wf_likely(!wf_hosts) || !wf_trylock(&leading))
		return wf_park(p, until, cleanup, arg);
	atomic_store_explicit(&wf_leader, p, memory_order_relaxed);
	armed = wf_hosts->arm() == 0;                                   /* under the rail's lock: see wf_lead_glance */
	/* acq_rel: a waker's 0 stays. */
	if (armed && atomic_compare_exchange_strong_explicit(&p->word, &asleep, 2, memory_order_acq_rel, memory_order_acquire)) {
		pthread_cleanup_push(cancelled, &u);
		slept = sleep_on(p, until);
		pthread_cleanup_pop(0);
	}
	if (armed)
		wf_park_end(p);
	if (!atomic_load_explicit(&wf_lead_attended, memory_order_relaxed))
		note_attendance();                                      /* by us, now */
	resign();
	if (wf_unlikely(!armed)) {
		/* Another is at the rails, in a long write perhaps, and wakes us if it reads what we wait for: there is nothing to be had by trying again at once. */
		soon = wf_now() + TICK_LEAST;
		wf_park(p, until < soon ? until : soon, cleanup, arg);
	}
	/* Mostly it is the lane that spoke last, and what we wait for: then all else can wait, and who sleeps next sees to what is due. Else whatever lane it was. */
	if (!slept || wf_lead_glance() <= 0)
		wf_hosts->poll(false);
	return wf_past(until) ? -ETIMEDOUT : 0;
}

bool wf_lead_free(void)
{
	return atomic_load_explicit(&leading.held, memory_order_relaxed) == 0;
}

/* [listener] */
static void run_errand(void)
{
	atomic_store_explicit(&errand, false, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with who sends it: we see its work, or that it has sent us again */
	if (wf_hosts->next() > 0) {
		misses += misses < MISSES;
		atomic_store_explicit(&spared, (1u << misses) - 1, memory_order_relaxed);
		return;
	}
	misses = 0;
	wf_hosts->turn();
}

void wf_lead_soon(void)
{
	if (wf_unlikely(atomic_load_explicit(&seldom, memory_order_relaxed)) && atomic_exchange_explicit(&seldom, false, memory_order_relaxed))
		wf_listener_wake();
}

/* [listener, about to sleep] Somebody of another process has woken the leader, and found us awake, who are to ring for it. */
bool wf_lead_unrung(void)
{
	struct wf_parker *p = atomic_load_explicit(&wf_leader, memory_order_relaxed);

	return p && atomic_load_explicit(&p->word, memory_order_relaxed) == 0 && !atomic_load_explicit(&rung, memory_order_relaxed);
}

/* [listener] It comes by: has anybody looked since the last time? Who did so at once was there then. One that computes in between is found out the sooner the more it does. */
static bool looked_since(void)
{
	weft_time now = wf_now(), first = atomic_load_explicit(&attended_at, memory_order_relaxed);
	bool looked = atomic_exchange_explicit(&wf_lead_attended, false, memory_order_relaxed);
	bool called = strays && !atomic_load_explicit(&seldom, memory_order_relaxed);

	if (looked && !called && first >= came_by && first - came_by <= TICK_LEAST)
		attendance += now - came_by;
	else
		attendance = 0;
	if (called)
		tick = TICK_LEAST;      /* who called it computes next, or waits at once: soon we know */
	strays = false;
	atomic_store_explicit(&seldom, false, memory_order_relaxed);
	came_by = now;
	return looked;
}

/* [listener] How long until it comes by again. Who has just begun to look may soon compute; who has looked for long will go on, and is interrupted for nothing where no core is free: 10 us and more of a message's time,
 * which every millisecond in both processes is 2 % of all (8 B to and fro on two cores, over lo 1.088 of raw TCP and 1.060, over a veth 1.092 and 1.068; virtual x86-64). */
static int64_t stay_away(void)
{
	int64_t most = attendance / TICK_SHARE, stay;

	most = most < TICK_MOST ? TICK_MOST : most < TICK_LONG ? most : TICK_LONG;
	stay = tick < most ? tick : most;
	tick = 2 * stay;
	strays = stay > TICK_MOST;
	atomic_store_explicit(&seldom, strays, memory_order_relaxed);
	return stay;
}

int wf_lead_listen(void)
{
	struct wf_parker *p = atomic_load_explicit(&wf_leader, memory_order_relaxed);
	bool looked;
	int n = 0;

	atomic_store_explicit(&dozing, false, memory_order_relaxed);
	atomic_store_explicit(&listener_due, 0, memory_order_relaxed);
	if (p && atomic_load_explicit(&p->word, memory_order_relaxed) == 0)
		wf_lead_ring();                 /* woken by another process */
	if (wf_lead_sent_for())
		run_errand();
	looked = looked_since();
	watches = !looked && wf_trylock(&leading);
	if (!looked && !watches) {
		atomic_store_explicit(&dozing, true, memory_order_relaxed);
		wf_fence_slow();                                        /* F1 with resign: it sees that we doze, or we that it is gone */
		watches = wf_trylock(&leading);
	}
	if (watches) {
		atomic_store_explicit(&dozing, false, memory_order_relaxed);
		if (lies_in && atomic_load_explicit(&rung, memory_order_relaxed))
			hush();         /* for a leader that is gone: it would wake us again and again */
		alarm_heard();          /* likewise */
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

	atomic_store_explicit(&listener_core, sched_getcpu(), memory_order_relaxed);
	if (!watches) {
		if (!atomic_load_explicit(&dozing, memory_order_relaxed)) {
			int64_t away = stay_away();

			if (*patience > away)
				*patience = away;
		}
		return -1;
	}
	tick = TICK_LEAST;
	atomic_store_explicit(&dozing, true, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with wf_lead_look */
	next = plan(&listener_due);
	left = next == WEFT_FOREVER ? INT64_MAX : next - wf_now();
	if (left < 0 || atomic_load_explicit(&wf_lead_attended, memory_order_relaxed) || wf_hosts->arm())
		left = 0;
	if (left < *patience)
		*patience = left;
	return wf_hosts->fd;
}
