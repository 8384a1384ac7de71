/* wayend.c - the end of ways: shut, read to their end by the other process or cut by its death, their memory used again. See way.h, Life.
 *
 * Run by the listener, and by senders that find a port closed.
 */
#include <errno.h>

#include "port/frames.h"
#include "port/inway.h"
#include "port/push.h"
#include "port/request.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/ways.h"

static _Atomic bool dying;                      /* there may be ways to bury; a hint */

/* Out of what can be found; its backlog ends with @err. Its memory waits for GONE. [no lock] */
static void shut(struct wf_way *w, uint16_t who, int err)
{
	struct weft_req *r;
	uint64_t t;

	wf_lock(&wf_ways_lock);
	t = atomic_load_explicit(&w->tail, memory_order_relaxed);
	if (WF_WAY_INCARNATION(t) != who || t & WF_WAY_SHUT) {
		wf_unlock(&wf_ways_lock);
		return;
	}
	atomic_store_explicit(&w->why, err == -EPROTO ? err : -ESRCH, memory_order_relaxed);
	wf_way_share(w);
	atomic_store_explicit(&w->solo, NULL, memory_order_relaxed);
	/* acq_rel: no claim after it. */
	atomic_fetch_or_explicit(&w->tail, WF_WAY_SHUT, memory_order_acq_rel);
	wf_way_unlist_locked(w);
	w->was = atomic_load_explicit(&w->id, memory_order_relaxed);
	w->cut = wf_peer_died(w->peer->process);
	atomic_store_explicit(&w->id, 0, memory_order_relaxed);
	wf_unlock(&wf_ways_lock);
	wf_lock(&wf_user_lock);
	for (int i = 0; i < WF_PRIOS; i++)
		while (!wf_list_empty(&w->backlog[i])) {
			r = wf_of(w->backlog[i].next, struct weft_req, spill);
			wf_way_unqueue_locked(w, r);
			wf_push_end_locked(r, err);
		}
	wf_unlock(&wf_user_lock);
}

void wf_way_stale(struct wf_way *w, uint16_t who)
{
	shut(w, who, -ECONNRESET);
}

/* So many messages of one length from one port that were done and will not be received. */
struct lost {
	weft_id src;
	uint64_t len, times;
};

/* [wf_ways_lock] What the dead reader of @w did not say to have read; it says so before it sleeps (wait.c), else every 16th time (wf_ring_advance).
 * Announced ones are not among it: push.c and train.c know of each what became of it. */
static uint32_t unread_locked(const struct wf_way *w, struct lost *ret)
{
	uint32_t end = (uint32_t)atomic_load_explicit(&w->tail, memory_order_relaxed), n = 0;
	uint32_t pos = (uint32_t)atomic_load_explicit(&w->box->head, memory_order_relaxed);

	if (end - pos > WF_WAY_CELLS)   /* written by who should not */
		return 0;
	for (; pos != end; pos++) {
		const struct wf_cell *c = &w->cells[pos % WF_WAY_CELLS];

		if ((c->kind != WF_INLINE && c->kind != WF_ARENA && c->kind != WF_FLOWN) || c->src >> 32 != wf_process_id >> 32)
			continue;
		if (!n || ret[n - 1].src != c->src || ret[n - 1].len != c->len)
			ret[n++] = (struct lost){ .src = c->src, .len = c->len };
		ret[n - 1].times++;
	}
	return n;
}

/* [wf_ways_lock] Shut, and its memory not given back yet. */
static bool is_shut_locked(const struct wf_way *w)
{
	return w->box_buf && atomic_load_explicit(&w->tail, memory_order_relaxed) & WF_WAY_SHUT;
}

static void recycle(struct wf_way *w, uint32_t who)
{
	struct lost lost[WF_WAY_CELLS];
	uint64_t context;
	uint32_t n = 0;
	weft_id by;

	wf_lock(&wf_user_lock);         /* who looks at its box under this lock has looked at its incarnation before */
	wf_lock(&wf_ways_lock);
	context = atomic_load_explicit(&w->context, memory_order_relaxed);
	by = w->was;
	if (w->who == who && is_shut_locked(w)) {       /* else by another: it was told to be gone, and then its process died */
		n = w->cut ? unread_locked(w, lost) : 0;
		wf_way_put_locked(w);
	}
	wf_unlock(&wf_ways_lock);
	wf_unlock(&wf_user_lock);
	for (uint32_t i = 0; i < n; i++)
		wf_tell_lost(lost[i].src, context, by, lost[i].len, lost[i].times);
}

/* Every cell of a shut way that was claimed has been published: no thread of ours writes there any more. */
static bool is_quiet(struct wf_way *w)
{
	uint32_t end = (uint32_t)atomic_load_explicit(&w->tail, memory_order_acquire);

	for (uint32_t pos = end - WF_WAY_CELLS; pos != end; pos++) {
		uint32_t seq = atomic_load_explicit(&w->cells[pos % WF_WAY_CELLS].seq, memory_order_acquire);

		if (seq != pos + 1 && (seq || pos < end))       /* 0 in one never used: its position lies before the first */
			return false;
	}
	return true;
}

/* Its memory goes back, or waits for the next way to that process. What ended it is said once: said again it means no way, nor the one that is made of it next. */
static void retire(struct wf_way *w, uint32_t who)
{
	bool it;

	wf_lock(&wf_user_lock);
	wf_lock(&wf_ways_lock);
	it = w->who == who && is_shut_locked(w);
	if (it) {
		w->gone = false;
		w->who = (uint16_t)((w->who + 1) & 0xfff);
		atomic_store_explicit(&w->tail, WF_WAY_SHUT | (uint64_t)w->who << 48, memory_order_relaxed);
		wf_way_put_locked(w);
	}
	wf_unlock(&wf_ways_lock);
	wf_unlock(&wf_user_lock);
}

/* The reader says that it has read all. If a cell is still being written that is a lie: the memory stays until it is published. */
static void gone(struct wf_way *w, uint32_t who)
{
	bool shut;

	wf_lock(&wf_ways_lock);
	shut = w->who == who && is_shut_locked(w);
	if (shut)
		w->gone = true;
	wf_unlock(&wf_ways_lock);
	if (!shut)
		return;
	if (is_quiet(w))
		retire(w, who);
	else
		atomic_store_explicit(&dying, true, memory_order_relaxed);
}

static void tell_way(struct wf_way *w, uint32_t what, uint32_t pos)
{
	struct wf_f_way f = { .key = w->key, .who = w->who, .pos = pos };

	wf_frame_send(w->peer, what, &f, sizeof(f));
}

void wf_way_told(struct wf_peer *peer, uint32_t what, const struct wf_f_way *f)
{
	struct wf_way *w = wf_way_of(peer, f->key, f->who);

	if (!w)
		return;
	switch (what) {
	case WF_F_REFUSED:
		/* Only of one that waits: nobody has written into it. */
		if (atomic_load_explicit(&w->tail, memory_order_relaxed) & WF_WAY_WAITS) {
			shut(w, (uint16_t)f->who, f->err < 0 && f->err > -4096 ? f->err : -ESRCH);
			retire(w, f->who);
		}
		break;
	case WF_F_CLOSED:
		shut(w, w->who, -ECONNRESET);
		tell_way(w, WF_F_SHUT, (uint32_t)atomic_load_explicit(&w->tail, memory_order_acquire));
		break;
	case WF_F_GONE:
		gone(w, f->who);
		break;
	default:
		wf_way_flush(w);
	}
}

static bool leads_to(const struct wf_way *w, uint32_t process, uint16_t *ret_who)
{
	bool does;

	wf_lock(&wf_ways_lock);
	does = w->peer && w->peer->process == process;
	*ret_who = w->who;
	wf_unlock(&wf_ways_lock);
	return does;
}

void wf_ways_end(uint32_t process, int err)
{
	uint16_t who;

	wf_ways_pass_makers();
	for (uint32_t i = 0; i < WF_WAYS_MOST; i++) {
		struct wf_way *w = atomic_load_explicit(&wf_ways_by_key[i], memory_order_acquire);

		if (!w)
			break;
		if (leads_to(w, process, &who)) {
			shut(w, who, err);
			atomic_store_explicit(&dying, true, memory_order_relaxed);
		}
	}
	wf_ways_drop_spares(process);
	wf_ways_bury();
}

/* Nobody will say (again) that it has read @w to its end. Under the lock: a sender may just be making another way out of one given back. */
static bool is_over(const struct wf_way *w, uint32_t *ret_who, bool *ret_gone)
{
	bool is;

	wf_lock(&wf_ways_lock);
	is = is_shut_locked(w) && (!w->told || w->gone || wf_peer_died(w->peer->process));
	*ret_who = w->who;
	*ret_gone = w->gone;
	wf_unlock(&wf_ways_lock);
	return is;
}

/* Of the dead nobody reads them, and nobody will say that they are gone; and those of which that was said too early. */
int wf_ways_bury(void)
{
	int left = 0;
	uint32_t who;
	bool gone;

	if (!atomic_exchange_explicit(&dying, false, memory_order_relaxed))
		return 0;
	for (uint32_t i = 0; i < WF_WAYS_MOST; i++) {
		struct wf_way *w = atomic_load_explicit(&wf_ways_by_key[i], memory_order_acquire);

		if (!w)
			break;
		if (!is_over(w, &who, &gone))
			continue;
		if (!is_quiet(w))
			left++;
		else if (gone)
			retire(w, who);
		else
			recycle(w, who);
	}
	if (left)
		atomic_store_explicit(&dying, true, memory_order_relaxed);
	return left;
}
