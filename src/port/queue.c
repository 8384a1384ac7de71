/* queue.c - ends that arrive in a queue, taken by any thread or announced by a descriptor.
 *
 * The descriptor is an eventfd that is readable exactly while the queue holds something: written when
 * the first end comes, read when the last is taken, both under the queue's lock, and by system calls that are no
 * cancellation points: a thread that ends there would take the lock along.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "mem/share.h"
#include "port/listener.h"
#include "port/request.h"
#include "port/tell.h"

struct weft_queue {
	/* under lock */
	struct wf_lock lock;
	struct wf_node ends, waiters;
	uint32_t count;
	int fd;                         /* -1: nobody asked */
	/* any thread, atomic */
	_Atomic uint32_t naming;        /* operations that will end here; relaxed: counts */
	/* under free_lock */
	struct weft_queue *next_free;
};

/* Closed queues are kept for the next: who has added the last end may still be letting go of the lock (lock.h). */
static struct wf_lock free_lock;
static struct weft_queue *free_queues;

void wf_queue_name(struct weft_queue *q)
{
	atomic_fetch_add_explicit(&q->naming, 1, memory_order_relaxed);
}

void wf_queue_unname(struct weft_queue *q)
{
	atomic_fetch_sub_explicit(&q->naming, 1, memory_order_relaxed);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	if (fd >= 0)
		syscall(SYS_write, fd, &one, sizeof(one));      /* fails only at its maximum: readable it is */
}

static void clear_fd(int fd)
{
	uint64_t n;

	if (fd >= 0)
		syscall(SYS_read, fd, &n, sizeof(n));   /* fails only if it was not readable */
}

static void queue_add(struct weft_queue *q, struct weft_req *r)
{
	wf_user_releases(r);
	wf_lock(&q->lock);
	wf_list_add(&q->ends, &r->mine);
	if (q->count++ == 0)
		signal_fd(q->fd);
	if (!wf_list_empty(&q->waiters))
		wf_wake(wf_of(q->waiters.next, struct wf_waiter, link)->parker);
	wf_unlock(&q->lock);
}

void wf_tell(struct weft_req *r)
{
	if (r->queue)
		queue_add(r->queue, r);
	else
		wf_callback_add(r);
}

int weft_queue_open(struct weft_queue **ret_queue)
{
	struct weft_queue *q;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!ret_queue)
		return weft_fail(-EINVAL, "ret_queue is NULL");
	wf_lock(&free_lock);
	q = free_queues;
	if (q)
		free_queues = q->next_free;
	wf_unlock(&free_lock);
	if (!q)
		q = calloc(1, sizeof(*q));
	if (!q)
		return weft_fail(-ENOMEM, "no memory for a queue");
	atomic_store_explicit(&q->naming, 0, memory_order_relaxed);     /* lists and count were left empty */
	q->fd = -1;
	*ret_queue = q;
	return 0;
}

static int take(struct weft_queue *q, struct weft_status *ret_st, int max)
{
	int n = 0;

	wf_lock(&q->lock);
	while (n < max && q->count) {
		struct weft_req *r = wf_of(wf_list_pop(&q->ends), struct weft_req, mine);

		wf_user_acquires(r);
		ret_st[n++] = r->st;
		wf_queue_unname(q);
		wf_req_put(r);
		if (--q->count == 0)
			clear_fd(q->fd);
	}
	/* Others may be waiting for what is left. */
	if (n && q->count && !wf_list_empty(&q->waiters))
		wf_wake(wf_of(q->waiters.next, struct wf_waiter, link)->parker);
	wf_unlock(&q->lock);
	return n;
}

struct sleep {
	struct weft_queue *q;
	struct wf_waiter w;
};

static void get_up(void *arg)
{
	struct sleep *s = arg;

	wf_park_end(s->w.parker);
	wf_lock(&s->q->lock);
	wf_list_del(&s->w.link);
	if (s->q->count && !wf_list_empty(&s->q->waiters))      /* the wake may have been for us alone */
		wf_wake(wf_of(s->q->waiters.next, struct wf_waiter, link)->parker);
	wf_unlock(&s->q->lock);
	wf_self.waiting = false;
}

/* False: something is there already. */
static bool lie_down(struct sleep *s)
{
	bool empty;

	wf_share_flush();               /* what we have put goes home before we sleep */
	wf_park_begin(s->w.parker);
	wf_lock(&s->q->lock);           /* who adds holds it too: no fence is needed */
	wf_list_add(&s->q->waiters, &s->w.link);
	empty = s->q->count == 0;
	wf_unlock(&s->q->lock);
	return empty;
}

int weft_queue_next(struct weft_queue *queue, weft_time until, struct weft_status *ret_st, int max)
{
	struct wf_linger w;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!queue || !ret_st || max < 1)
		return weft_fail(-EINVAL, "%s", !queue ? "queue is NULL" : !ret_st ? "ret_st is NULL" : "max is below 1");
	wf_linger_init(&w);
	for (;;) {
		wf_listener_attend();
		r = take(queue, ret_st, max);
		if (r)
			break;
		if (until == WEFT_NOW)
			return wf_late(until);
		if (wf_self.in_callback)
			return weft_fail(-EDEADLK, "weft_queue_next inside a callback");
		wf_self.waiting = true;
		wf_callbacks_run();
		if (wf_linger(&w))
			continue;
		if (wf_past(until)) {
			r = wf_late(until);
			break;
		}
		struct sleep s = { .q = queue, .w = { .parker = &wf_self.port->face->parker } };

		if (lie_down(&s))
			wf_park(s.w.parker, until, get_up, &s);
		get_up(&s);
	}
	wf_self.waiting = false;
	if (wf_callbacks_pending())
		wf_listener_wake();
	return r;
}

int weft_queue_fd(struct weft_queue *queue)
{
	int fd;

	if (!queue)
		return weft_fail(-EINVAL, "queue is NULL");
	wf_lock(&queue->lock);
	if (queue->fd < 0) {
		queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (queue->fd < 0) {
			fd = weft_fail(-errno, "no eventfd: %s", strerror(errno));
			wf_unlock(&queue->lock);
			return fd;
		}
		if (queue->count)
			signal_fd(queue->fd);
	}
	fd = queue->fd;
	wf_unlock(&queue->lock);
	return fd;
}

int weft_queue_close(struct weft_queue *queue)
{
	struct wf_node *n;
	uint32_t under_way;

	if (!queue)
		return 0;
	wf_lock(&queue->lock);
	under_way = atomic_load_explicit(&queue->naming, memory_order_relaxed) - queue->count;
	if (under_way || !wf_list_empty(&queue->waiters)) {
		wf_unlock(&queue->lock);
		return under_way ? weft_fail(-EBUSY, "%u operations will end in the queue", under_way)
				 : weft_fail(-EBUSY, "a thread is waiting at the queue");
	}
	while ((n = wf_list_pop(&queue->ends)) != NULL) {
		struct weft_req *r = wf_of(n, struct weft_req, mine);

		if (r->st.buf && r->what == WF_RECV)
			wf_buf_release(r->st.buf);
		wf_req_put(r);
	}
	queue->count = 0;
	wf_unlock(&queue->lock);
	if (queue->fd >= 0)
		syscall(SYS_close, queue->fd);
	wf_lock(&free_lock);
	queue->next_free = free_queues;
	free_queues = queue;
	wf_unlock(&free_lock);
	return 0;
}
