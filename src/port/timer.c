/* timer.c - see timer.h. The heap's lock is a leaf: a request leaves the heap when it ends, under its port's lock. */
#include "port/timer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "port/cancel.h"
#include "port/drain.h"
#include "port/listener.h"
#include "port/request.h"

static struct wf_lock heap_lock;
static struct {
	struct weft_req **of;
	uint32_t count, room;
} heap;

static void place(uint32_t i, struct weft_req *r)
{
	heap.of[i] = r;
	/* relaxed, here and below: the heap's lock orders; who reads it without holds the port, and it cannot leave 0 then. */
	atomic_store_explicit(&r->timer, i + 1, memory_order_relaxed);
}

static void rise(uint32_t i, struct weft_req *r)
{
	while (i && heap.of[(i - 1) / 2]->expires > r->expires) {
		place(i, heap.of[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(i, r);
}

static void sink(uint32_t i, struct weft_req *r)
{
	for (uint32_t k; (k = 2 * i + 1) < heap.count; i = k) {
		if (k + 1 < heap.count && heap.of[k + 1]->expires < heap.of[k]->expires)
			k++;
		if (heap.of[k]->expires >= r->expires)
			break;
		place(i, heap.of[k]);
	}
	place(i, r);
}

static void remove_locked(struct weft_req *r)
{
	uint32_t i = atomic_load_explicit(&r->timer, memory_order_relaxed) - 1;
	struct weft_req *last = heap.of[--heap.count];

	atomic_store_explicit(&r->timer, 0, memory_order_relaxed);
	if (last == r)
		return;
	if (i && heap.of[(i - 1) / 2]->expires > last->expires)
		rise(i, last);
	else
		sink(i, last);
}

int wf_timer_add(struct weft_req *r)
{
	bool first;

	wf_lock(&heap_lock);
	if (heap.count == heap.room) {
		uint32_t room = heap.room ? 2 * heap.room : 64;
		struct weft_req **of = realloc(heap.of, room * sizeof(struct weft_req *));

		if (!of) {
			wf_unlock(&heap_lock);
			return weft_fail(-ENOMEM, "no memory for a timer");
		}
		heap.of = of;
		heap.room = room;
	}
	rise(heap.count++, r);
	first = heap.of[0] == r;
	wf_unlock(&heap_lock);
	if (first)
		wf_listener_wake();
	return 0;
}

void wf_timer_remove(struct weft_req *r)
{
	wf_lock(&heap_lock);
	if (atomic_load_explicit(&r->timer, memory_order_relaxed))
		remove_locked(r);
	wf_unlock(&heap_lock);
}

weft_time wf_timers_next(void)
{
	weft_time t;

	wf_lock(&heap_lock);
	t = heap.count ? heap.of[0]->expires : WEFT_FOREVER;
	wf_unlock(&heap_lock);
	return t;
}

/* The earliest request and its port, if it has expired. It may end as soon as the lock is free. */
static struct weft_req *due(weft_time now, struct weft_port **ret_at, weft_time *ret_next)
{
	struct weft_req *r = NULL;

	wf_lock(&heap_lock);
	*ret_next = heap.count ? heap.of[0]->expires : WEFT_FOREVER;
	if (*ret_next <= now) {
		r = heap.of[0];
		*ret_at = r->at;
	}
	wf_unlock(&heap_lock);
	return r;
}

weft_time wf_timers_run(void)
{
	struct weft_port *at = NULL;
	struct weft_req *r;
	weft_time next;

	while ((r = due(wf_now(), &at, &next)) != NULL) {
		struct wf_work work = { NULL };
		bool still;

		wf_cover_enter(at);
		/* A request in the heap has not ended, and cannot while we hold its port. */
		wf_lock(&heap_lock);
		still = heap.count && heap.of[0] == r && r->at == at && r->expires <= wf_now();
		if (still)
			remove_locked(r);
		wf_unlock(&heap_lock);
		/* The mark is found when the announcement leaves the ring, which its receiver may look at much later: it leaves now, also from behind a cell that is not
		 * published yet. One that is not in the ring yet is seen to by who puts it there (announce_once). */
		if (still && wf_cancel_locked(r, -ETIMEDOUT) == 1 && at && r->what == WF_SEND) {
			wf_fence_heavy();                                       /* F1 with announce_once */
			wf_drain_ended_locked(at, &work);
		}
		wf_req_leave(at);
		if (at)
			wf_work_do(at, &work);
	}
	return next;
}
