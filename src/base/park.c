/* park.c - lingering and the futex. See park.h. */
#include "base/park.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/knob.h"

#define CROWD_NS 300            /* a sched_yield that took so much longer than twice the shortest let another thread run */
#define CROWD_SKIPS 15          /* waits that do not spin after a crowd was met */
#define FAR_SLEEP (250 * WEFT_MS)       /* at most, where other processes write the word, and may be stopped before they wake */
#define PATIENCE_NS 1000        /* between two such questions when alone */

_Atomic unsigned wf_spins = 16;
_Atomic uint32_t wf_parked;
bool wf_park_far;
void (*wf_park_ring)(void);
_Thread_local unsigned wf_spin_skip;
static _Thread_local unsigned crowds;   /* waits in a row that met one */
static _Atomic unsigned spins_per_us = 16;
static _Atomic uint64_t crowd_ticks = 500;

void wf_park_init(void)
{
	int64_t best = INT64_MAX;
	uint64_t yield = UINT64_MAX;

	for (int i = 0; i < 5; i++) {           /* the fastest: a preempted batch says nothing */
		weft_time t = wf_now();

		for (int k = 0; k < 64; k++)
			wf_relax();
		t = wf_now() - t;
		best = t < best ? t : best;
	}
	for (int i = 0; i < 20; i++) {
		uint64_t t = wf_ticks();

		sched_yield();
		t = wf_ticks() - t;
		yield = t < yield ? t : yield;
	}
	atomic_store_explicit(&crowd_ticks, 2 * yield + CROWD_NS * wf_ticks_us() / 1000, memory_order_relaxed);
	/* relaxed, here and where they are read: a stale count is a spin a little longer or shorter. */
	atomic_store_explicit(&spins_per_us, (unsigned)(64 * PATIENCE_NS / (best > 0 ? best : 1)) + 1, memory_order_relaxed);
	wf_park_tune(wf_knob(WF_KNOB_SPIN_NS));
}

void wf_park_tune(int64_t spin_ns)
{
	int64_t per_us = atomic_load_explicit(&spins_per_us, memory_order_relaxed);

	atomic_store_explicit(&wf_spins, (unsigned)(spin_ns * per_us / 1000), memory_order_relaxed);
}

bool wf_linger_more(struct wf_linger *w)
{
	uint64_t ticks;
	weft_time now;

	if (wf_knob(WF_KNOB_SPIN_NS) == 0)
		return false;
	ticks = wf_ticks();             /* not the clock: in a crowd this is done for each message, of whose time two looks at it were a fifteenth */
	sched_yield();
	if (wf_ticks() - ticks > atomic_load_explicit(&crowd_ticks, memory_order_relaxed)) {
		if (w->yields == 0 && ++crowds >= 2)    /* once may be chance */
			wf_spin_skip = CROWD_SKIPS;
		return ++w->yields <= wf_knob(WF_KNOB_YIELDS);
	}
	crowds = wf_spin_skip = 0;
	w->spins = atomic_load_explicit(&spins_per_us, memory_order_relaxed);
	now = wf_now();
	if (!w->began)
		w->began = now;
	return now - w->began < wf_knob(WF_KNOB_ALONE_NS);
}

static int sleep_far(struct wf_parker *p, weft_time until)
{
	weft_time bound = wf_now() + FAR_SLEEP;
	int r = wf_futex_wait_far(&p->word, 1, until < bound ? until : bound);

	return until < bound ? r : 0;
}

/* The loop stands apart from the cleanup's setjmp, which may clobber locals beside it. */
static int sleep_on(struct wf_parker *p, weft_time until)
{
	int r = 0;

	/* acquire: what the waker published before it woke us. */
	while (r != -ETIMEDOUT && atomic_load_explicit(&p->word, memory_order_acquire) == 1) {
		int old;

		wf_step("park sleep");
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
		if (wf_park_far)
			r = sleep_far(p, until);
		else
			r = wf_futex_wait(&p->word, 1, until);
		pthread_setcanceltype(old, NULL);
		if (wf_park_far)
			break;          /* whatever the word says, look: it may have been written by who should not */
	}
	wf_park_end(p);
	return r;
}

struct undo {
	void (*cleanup)(void *);
	void *arg;
};

static void cancelled(void *arg)
{
	struct undo *u = arg;

	atomic_fetch_sub_explicit(&wf_parked, 1, memory_order_relaxed);
	u->cleanup(u->arg);
}

int wf_park(struct wf_parker *p, weft_time until, void (*cleanup)(void *), void *arg)
{
	struct undo u = { cleanup, arg };
	int r;

	atomic_fetch_add_explicit(&wf_parked, 1, memory_order_relaxed);         /* a count */
	pthread_cleanup_push(cancelled, &u);
	r = sleep_on(p, until);
	pthread_cleanup_pop(0);
	atomic_fetch_sub_explicit(&wf_parked, 1, memory_order_relaxed);
	return r;
}

uint32_t wf_wake_word(struct wf_parker *p)
{
	uint32_t word;

	wf_fence_slow();                /* what we published before what we look at: see Cold in park.h */
	/* Looking first keeps a crowd of wakers from taking the line in turns. */
	if (atomic_load_explicit(&p->word, memory_order_relaxed) == 0)
		return 0;
	word = atomic_exchange_explicit(&p->word, 0, memory_order_acq_rel);
	if (word != 1)
		return word;
	if (wf_park_far)
		wf_futex_wake_far(&p->word, 1);
	else
		wf_futex_wake(&p->word, 1);
	return word;
}

bool wf_wake(struct wf_parker *p)
{
	uint32_t word = wf_wake_word(p);

	if (wf_unlikely(word > 1) && wf_park_ring)
		wf_park_ring();
	return word;
}
