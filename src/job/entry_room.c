/* entry_room.c - see entry_room.h. */
#include "job/entry_room.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "job/entry.h"
#include "port/context.h"
#include "port/self.h"
#include "port/table.h"
#include "port/tell.h"

#define LOOK_AGAIN (1 * WEFT_MS)        /* callbacks may be anybody's to run */
#define OUTLAST (200 * WEFT_MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;

/* All under lock. */
static struct weft_port *port;          /* NULL: not open */
static unsigned busy;
static uint64_t life = 1;
static bool leaving;
static pthread_t last;                  /* the thread that ended last, to be joined, */
static bool any_last;                   /* if there is one */

void wf_entry_lock(void)
{
	pthread_mutex_lock(&lock);
}

void wf_entry_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

uint64_t wf_entry_life_locked(void)
{
	return life;
}

/* Somebody opened it while this process was leaving, and it was closed with all others: a port is never unmapped, so that this can be seen. */
static bool stale_locked(void)
{
	return port && (atomic_load_explicit(&port->id, memory_order_relaxed) != wf_process_id ||
			atomic_load_explicit(&port->context, memory_order_relaxed) != wf_ctx_of_text(WF_ENTRY_CHANNEL));
}

int wf_entry_port_locked(struct weft_port **ret_port)
{
	int r = 0;

	if (leaving)
		return weft_fail(-ECANCELED, "this process is leaving the job");
	if (stale_locked()) {
		port = NULL;
		wf_entries_forget_locked();
		life++;
	}
	if (!port)
		r = weft_port_open(WEFT(port_opts, .name = "entries", .channel = WF_ENTRY_CHANNEL), &port);
	if (r == 0)
		*ret_port = port;
	return r;
}

void wf_entry_busy_locked(void)
{
	busy++;
}

void wf_entry_idle_locked(void)
{
	if (--busy == 0 && leaving)
		pthread_cond_broadcast(&quiet);
}

static void sent(const struct weft_status *st)
{
	free(st->user);
}

int wf_entry_tell_locked(weft_id to, uint64_t tag, const void *bytes, size_t n)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_COPY, .peer = to, .tag = tag, .data = (void *)(uintptr_t)bytes, .len = n };
	struct weft_port *from;
	int r = wf_entry_port_locked(&from);

	if (r < 0)
		return r;
	r = weft_send_post(from, &op, NULL);
	if (r != -EAGAIN)
		return r < 0 ? r : 0;
	op.flags = 0;                   /* no room for a copy there: one that waits here */
	op.data = op.user = malloc(n + 1);
	op.done = sent;
	if (!op.data)
		return weft_fail(-ENOMEM, "no memory for a message about a spawned thread");
	memcpy(op.data, bytes, n);
	r = weft_send_post(from, &op, NULL);
	if (r < 0)
		free(op.data);
	return r;
}

void wf_entry_thread_over(void)
{
	pthread_t before;
	bool any;

	pthread_mutex_lock(&lock);
	before = last;
	any = any_last;
	last = pthread_self();
	any_last = true;
	wf_entry_idle_locked();
	pthread_mutex_unlock(&lock);
	if (any)
		pthread_join(before, NULL);
}

void wf_entry_outlast(void)
{
	weft_time until = weft_in(OUTLAST);

	while (atomic_load_explicit(&wf_life, memory_order_acquire) == WF_IN && wf_self.port &&
	       atomic_load_explicit(&wf_self.port->id, memory_order_relaxed) == wf_self.id && !wf_past(until))
		wf_nap(LOOK_AGAIN / 10);
}

static bool at_rest_locked(void)
{
	struct timespec t;

	if (!busy)
		return true;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += LOOK_AGAIN;
	t.tv_sec += t.tv_nsec / WEFT_S;
	t.tv_nsec %= WEFT_S;
	pthread_cond_timedwait(&quiet, &lock, &t);
	return !busy;
}

void wf_entries_close(void)
{
	struct weft_port *closing;
	pthread_t ended;
	bool rest, any;

	pthread_mutex_lock(&lock);
	leaving = true;
	life++;
	closing = stale_locked() ? NULL : port;
	port = NULL;
	wf_entries_forget_locked();
	pthread_mutex_unlock(&lock);
	weft_port_close(closing, WEFT_NOW);     /* whoever waits for something there is told */
	do {
		wf_callbacks_run();
		pthread_mutex_lock(&lock);
		rest = at_rest_locked();
		any = rest && any_last;
		ended = last;
		if (rest)
			leaving = any_last = false;
		pthread_mutex_unlock(&lock);
	} while (!rest);
	if (any)
		pthread_join(ended, NULL);
}
