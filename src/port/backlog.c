/* backlog.c - what waits to be written to a way that is full, not attached yet, or whose reader has enough. See way.h, seek.h.
 *
 * Everything under wf_user_lock. Run by who sends, by who waits for a send, and by the listener. While a way has a backlog its tail says so, and no
 * claim that does not come from here succeeds: nothing overtakes.
 */
#include <errno.h>

#include "port/deliver.h"
#include "port/frames.h"
#include "port/push.h"
#include "port/request.h"
#include "port/seek.h"
#include "port/ways.h"

static struct wf_node owing;                    /* ways with a backlog */

int wf_way_queue_locked(struct wf_way *w, uint16_t who, struct weft_req *r)
{
	uint64_t t = atomic_load_explicit(&w->tail, memory_order_relaxed);

	wf_assert_held(&wf_user_lock);
	if (wf_way_ended(w, who, t))
		return wf_way_ended(w, who, t);
	wf_way_share(w);
	atomic_store_explicit(&w->solo, NULL, memory_order_release);    /* whoever flushes writes the tail */
	wf_list_add(&w->backlog[r->prio + WF_PRIOS / 2], &r->spill);
	if (w->backlogged++ == 0)
		wf_list_add(&owing, &w->owing);
	atomic_fetch_or_explicit(&w->tail, WF_WAY_BACKLOG, memory_order_relaxed);       /* nothing overtakes from here on */
	return 0;
}

void wf_way_unqueue_locked(struct wf_way *w, struct weft_req *r)
{
	wf_assert_held(&wf_user_lock);
	wf_list_del(&r->spill);
	if (--w->backlogged == 0) {
		wf_list_del(&w->owing);
		/* release: what follows in the ring follows what was taken from the list. */
		atomic_fetch_and_explicit(&w->tail, ~WF_WAY_BACKLOG, memory_order_release);
	}
}

static struct weft_req *first_locked(struct wf_way *w)
{
	for (int i = WF_PRIOS; i-- > 0;)
		if (!wf_list_empty(&w->backlog[i]))
			return wf_of(w->backlog[i].next, struct weft_req, spill);
	return NULL;
}

/* The reader is to say when there is room: true if there is by now. [wf_user_lock, with a backlog: it is not gone] */
static bool ask_for_room_locked(struct wf_way *w)
{
	uint64_t before = atomic_load_explicit(&w->seen, memory_order_relaxed);

	atomic_store_explicit(&w->box->starved, 1, memory_order_relaxed);
	wf_fence_heavy_far();                                                   /* F1: the reader publishes its head, then looks */
	return (atomic_load_explicit(&w->box->head, memory_order_acquire) ^ before) << 16 != 0;        /* but for its incarnation */
}

void wf_way_flush(struct wf_way *w)
{
	struct weft_req *r;
	bool asked = false, more;

	do {
		int err;

		wf_lock(&wf_user_lock);
		r = first_locked(w);
		/* What it takes to write it is in the request; its end may follow at once. */
		err = r ? wf_push_write_locked(w, r) : -ESRCH;
		more = err == 0;
		if (err == -EAGAIN && !asked && !(atomic_load_explicit(&w->tail, memory_order_relaxed) & WF_WAY_WAITS)) {
			asked = true;
			more = ask_for_room_locked(w);
		}
		wf_unlock(&wf_user_lock);
	} while (more);
}

void wf_ways_flush(void)
{
	struct wf_way *w;
	uint32_t n = 0;

	for (;; n++) {
		struct wf_node *at;
		uint32_t i = 0;

		wf_lock(&wf_user_lock);
		for (at = owing.next; at && at != &owing && i < n; at = at->next)
			i++;
		w = at && at != &owing ? wf_of(at, struct wf_way, owing) : NULL;
		wf_unlock(&wf_user_lock);
		if (!w)
			return;
		wf_way_flush(w);
	}
}

bool wf_ways_owe(void)
{
	bool owes;

	wf_lock(&wf_user_lock);
	owes = !wf_list_empty(&owing);
	wf_unlock(&wf_user_lock);
	return owes;
}

void wf_way_seek(struct wf_peer *peer, const struct wf_f_seek *f)
{
	struct wf_way *w = wf_way_of(peer, f->key, f->who);
	struct weft_req *r;

	if (!w)
		return;
	wf_lock(&wf_user_lock);
	do
		r = wf_seek(w, f->want);
	while (r && !wf_push_offer_locked(w, r, f->want));
	wf_unlock(&wf_user_lock);
}
