/* close.c - a port's end, in this order:
 *
 *   1  its own sends drain until the deadline, then are taken back
 *   2  the tail is marked closed: nothing enters; its name is taken out of the tables, and its id cleared
 *   3  what is in the mailbox is taken out; pending receives end with -ECANCELED, announced sends with
 *      -ECONNRESET, messages done at their sender are lost and counted, and told to a port that asked
 *   4  whoever is inside (waiting, copying, in a callback of its) leaves
 *   5  those who wait for this id in particular are told
 *   6  the page goes back, for another incarnation
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/budget.h"
#include "port/cancel.h"
#include "port/context.h"
#include "port/deliver.h"
#include "port/host.h"
#include "port/inway.h"
#include "port/listener.h"
#include "port/open.h"
#include "port/push.h"
#include "port/request.h"
#include "port/route.h"
#include "port/tell.h"

#define EVENTS_MOST 16384               /* told one by one */

bool wf_sends_pending(struct weft_port *p)
{
	bool pending;

	wf_lock(&p->sends_lock);
	pending = !wf_list_empty(&p->sends);
	wf_unlock(&p->sends_lock);
	return pending;
}

/* The first pending send and where it waits. It may end as soon as the lock is free. */
static struct weft_req *first_send(struct weft_port *p, struct weft_port **ret_at)
{
	struct weft_req *r = NULL;

	wf_lock(&p->sends_lock);
	if (!wf_list_empty(&p->sends)) {
		r = wf_of(p->sends.next, struct weft_req, mine);
		*ret_at = r->at;
	}
	wf_unlock(&p->sends_lock);
	return r;
}

static bool still_first(struct weft_port *p, const struct weft_req *r)
{
	bool still;

	wf_lock(&p->sends_lock);
	still = p->sends.next == &r->mine;
	wf_unlock(&p->sends_lock);
	return still;
}

static uint32_t count_sends(struct weft_port *p)
{
	uint32_t n = 0;

	wf_lock(&p->sends_lock);
	for (struct wf_node *at = p->sends.next; at && at != &p->sends; at = at->next)
		n++;
	wf_unlock(&p->sends_lock);
	return n;
}

/* Still the first: it is the last now. */
static bool turn(struct weft_port *p, struct weft_req *r)
{
	bool still;

	wf_lock(&p->sends_lock);
	still = p->sends.next == &r->mine;
	if (still) {
		wf_list_del(&r->mine);
		wf_list_add(&p->sends, &r->mine);
	}
	wf_unlock(&p->sends_lock);
	return still;
}

/* All that are pending now are asked for, before any answer is waited for: those of other hosts take their time. How many could be. */
static int ask_all(struct weft_port *p, int err)
{
	struct weft_port *at = NULL;
	struct weft_req *r;
	int n = 0;

	for (uint32_t left = count_sends(p); left && (r = first_send(p, &at)) != NULL; left--) {
		wf_cover_enter(at);
		/* In the list means pending, and at's lock keeps it so. */
		if (turn(p, r) && r->at == at && r->where != WF_COPYING && !r->cancel)
			n += wf_cancel_locked(r, err) >= 0;
		wf_req_leave(at);
	}
	return n;
}

int wf_sends_cancel(struct weft_port *p, int err)
{
	struct weft_port *at = NULL;
	struct weft_req *r;
	unsigned pauses = 0;
	int n = ask_all(p, err);

	while ((r = first_send(p, &at)) != NULL) {
		wf_cover_enter(at);
		if (still_first(p, r) && r->at == at && r->where != WF_COPYING && !r->cancel)
			n += wf_cancel_locked(r, err) >= 0;
		wf_req_leave(at);
		if (at)
			wf_port_progress(at);
		else
			wf_pushes_step();
		if (first_send(p, &at) == r)
			wf_pause_for(&pauses);
	}
	return n;
}

void wf_sends_break(struct weft_port *p, int err)
{
	struct weft_port *at = NULL;
	struct weft_req *r;

	wf_fence_heavy();                                               /* F1 with broke_meanwhile */
	for (uint32_t n = count_sends(p); n && atomic_load_explicit(&p->broken, memory_order_relaxed) && (r = first_send(p, &at)) != NULL;) {
		struct wf_work work = { NULL };

		wf_cover_enter(at);
		/* Each has its turn once: no further ones come, and where another thread is at it, too, the turns are shared. */
		if (turn(p, r)) {
			n--;
			if (r->at == at && r->where != WF_COPYING && (r->cancel || wf_cancel_locked(r, err) == 1) && at)
				wf_drain_ended_locked(at, &work);       /* the mark is found */
		}
		wf_req_leave(at);
		if (at)
			wf_work_do(at, &work);
	}
}

static int drain_sends(struct weft_port *p, weft_time until)
{
	struct weft_port *at = NULL;
	unsigned pauses = 0;

	while (first_send(p, &at)) {
		if (wf_past(until))
			return wf_sends_cancel(p, -ECANCELED) ? wf_late(until) : 0;
		if (at)
			wf_port_help(at);
		else
			wf_pushes_step();
		wf_pause_for(&pauses);
	}
	return 0;
}

static void empty_ring_locked(struct weft_port *p, struct wf_work *work)
{
	unsigned pauses = 0;

	while (!wf_ring_drained(&p->ring)) {
		wf_drain_locked(p, work);
		if (!wf_ring_drained(&p->ring))
			wf_pause_for(&pauses);  /* a sender has claimed and not yet published */
	}
}

static void end_spilled_locked(struct weft_port *p)
{
	for (int i = 0; i < WF_PRIOS; i++)
		for (;;) {
			struct wf_node *n;

			wf_lock(&p->spill_lock);
			n = wf_list_pop(&p->spill[i]);
			wf_unlock(&p->spill_lock);
			if (!n)
				break;
			wf_end_send_locked(wf_of(n, struct weft_req, spill), -ECONNRESET);
		}
	p->spilled = 0;
}

static void end_wants_locked(struct weft_port *p, int err)
{
	struct weft_match_entry *e;

	while ((e = wf_first(p, WEFT_MATCH_WANTS)) != NULL) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);

		wf_unmatch(p, e);
		p->told_wants -= r->told;
		wf_req_end_locked(r, err);
	}
}

void wf_tell_lost(weft_id src, weft_ctx context, weft_id by, size_t len, uint64_t times)
{
	struct weft_status st = { .from = by, .tag = WEFT_LOST, .len = len, .index = WEFT_NOBODY };
	struct weft_port *from = wf_port_by_id(src);
	weft_done_fn event = NULL;
	uint16_t who;

	if (src >> 32 != wf_process_id >> 32) {
		wf_host_tell_lost(src, context, by, len);
		return;
	}
	if (context && wf_context_known(src, context) && wf_route(src, context, NULL, &from, &who) < 0)
		return;
	if (!from)
		return;
	wf_port_enter(from);
	if (atomic_load_explicit(&from->id, memory_order_relaxed) == src) {
		atomic_fetch_add_explicit(&from->sent_lost, times, memory_order_relaxed);
		event = from->event;
		st.user = from->user;
	}
	wf_port_leave(from);
	/* More at a time come only from one that added them up, or that lies. */
	for (uint64_t i = 0; event && i < times && i < EVENTS_MOST; i++)
		wf_tell_event(event, &st);
}

static void drop_arrivals(struct weft_port *p, weft_id id, weft_ctx context)
{
	for (;;) {
		struct weft_match_entry *e;
		struct wf_arrival *a;
		bool lost = false;
		weft_id src = 0;
		size_t len = 0;

		wf_port_enter(p);
		e = wf_first(p, WEFT_MATCH_ARRIVALS);
		if (e) {
			a = wf_of(e, struct wf_arrival, entry);
			src = a->src;
			len = a->len;
			wf_unmatch(p, e);
			lost = wf_drop_arrival_locked(p, a);
			atomic_fetch_add_explicit(&p->lost, lost, memory_order_relaxed);
		}
		wf_port_leave(p);
		if (!e)
			return;
		if (lost)
			wf_tell_lost(src, context, id, len, 1);
	}
}

static void wake_all_locked(struct weft_port *p)
{
	for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next)
		wf_wake(wf_of(n, struct wf_waiter, link)->parker);
}

static void wait_until_left(struct weft_port *p)
{
	unsigned pauses = 0;
	bool left;

	for (;;) {
		wf_port_enter(p);
		left = wf_list_empty(&p->waiters) && !p->copying && !p->pins;
		if (!left)
			wake_all_locked(p);
		wf_port_leave(p);
		/* Nor may the listener still have it in its list. */
		if (left && !atomic_load_explicit(&p->rung, memory_order_acquire))
			return;
		if (atomic_load_explicit(&p->rung, memory_order_relaxed))
			wf_listener_attend();
		if (!wf_self.in_callback)
			wf_callbacks_run();     /* a receive of ours may wait for its callback */
		wf_pause_for(&pauses);
	}
}

/* Everything that was the port's goes; the page keeps the ring's positions. */
static void undress(struct weft_port *p, weft_id id)
{
	struct wf_ring *ring = &p->ring;
	struct wf_cell *cells = atomic_load_explicit(&ring->reader.cells, memory_order_relaxed);
	uint32_t pos = atomic_load_explicit(&ring->reader.pos, memory_order_relaxed);

	if (p->proto) {
		p->proto->fini(p->match);
		free(p->match);
		wf_proto_unref(p->proto);
	} else {
		wf_native_match_fini(&p->native);
	}
	if (p->members && (id != wf_process_id || atomic_load_explicit(&p->context, memory_order_relaxed)))      /* the world's are not counted (life.c) */
		atomic_fetch_sub_explicit(&wf_ports_with_members, 1, memory_order_relaxed);
	wf_members_put(p->members);
	p->members = NULL;
	for (uint32_t i = 0; i < WF_CELLS_SMALL; i++)
		atomic_store_explicit(&p->cells[i].seq, pos, memory_order_relaxed);     /* looks old */
	atomic_store_explicit(&ring->head, pos, memory_order_relaxed);
	atomic_store_explicit(&ring->seen, pos, memory_order_relaxed);
	atomic_store_explicit(&ring->sleeper, NULL, memory_order_relaxed);
	atomic_store_explicit(&ring->spilled, false, memory_order_relaxed);
	if (cells != p->cells)
		wf_big_cells_put(cells);
}

/* @id has ended, and nobody finds it any more: no further port is made for what is sent to a context of it. One was, perhaps, since its thread closed those it had (self.c). */
static void end_orphans(weft_id id)
{
	struct weft_port *p;

	while ((p = wf_context_orphan(id)) != NULL)
		wf_port_end(p, WEFT_NOW);
}

int wf_port_end(struct weft_port *p, weft_time until)
{
	weft_id id = atomic_load_explicit(&p->id, memory_order_relaxed);
	weft_ctx context = atomic_load_explicit(&p->context, memory_order_relaxed);
	struct wf_work work = { NULL };
	int r = drain_sends(p, until);
	bool last;

	if (wf_peers_on())
		wf_ways_settle();       /* before anybody may see that it has ended */
	/* acq_rel: no claim after it; those before it are drained below. */
	atomic_fetch_or_explicit(&p->ring.tail, WF_TAIL_CLOSED, memory_order_acq_rel);
	atomic_store_explicit(&p->face->gate, (uint64_t)p->serial << 32, memory_order_release);
	if (context)
		wf_context_remove(p);
	else
		wf_slot_hide(id);
	atomic_store_explicit(&p->id, 0, memory_order_release);
	wf_fence_heavy_far();                                           /* F1 with wf_watch, wf_far_watch */
	wf_port_enter(p);
	p->closing = true;
	end_spilled_locked(p);
	empty_ring_locked(p, &work);
	end_wants_locked(p, -ECANCELED);
	wake_all_locked(p);
	wf_port_leave(p);
	wf_work_do(p, &work);
	if (wf_hosts)
		wf_hosts->abort(p);
	if (wf_peers_on()) {
		wf_fars_abort(p);
		wf_inways_closed(p);
	}
	drop_arrivals(p, id, context);
	wait_until_left(p);
	if (!context && id != wf_process_id)
		end_orphans(id);
	if (!context && wf_peers_on())
		wf_inways_ended(id);
	if (!context) {
		if (wf_peers_on() && atomic_exchange_explicit(&p->face->watched, 0, memory_order_relaxed))
			wf_host_tell_ended(id);
		if (wf_hosts)
			wf_hosts->ended(id);
		wf_id_ended(id, atomic_load_explicit(&p->watcher, memory_order_relaxed));
	}
	wf_port_listed(p, false);
	if (!context && (uint32_t)id & ((1u << WF_LOCAL_BITS) - 1))
		wf_slot_drop(id);
	wf_port_enter(p);
	p->open = false;
	p->ended = id;
	last = p->taken == 0;
	wf_port_leave(p);
	if (last)
		wf_port_finish(p);
	return r;
}

void wf_port_finish(struct weft_port *p)
{
	undress(p, p->ended);
	wf_port_recycle(p);
}

int weft_port_close(struct weft_port *port, weft_time until)
{
	int cancel, r;

	if (!port)
		return 0;
	r = wf_enter();
	if (r < 0)
		return r;
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_port_close inside a callback");
	if (!atomic_load_explicit(&port->id, memory_order_relaxed))
		return weft_fail(-EINVAL, "the port is closed already");
	if (port->thread_port || port == weft_port_world())
		return weft_fail(-EPERM, "a thread's own port and the process's end with them");
	if (!port->shared && port->owner != wf_self.id)
		return weft_fail(-EPERM, "only its own thread closes that port");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);        /* half closed is worse than late */
	r = wf_port_end(port, until);
	pthread_setcancelstate(cancel, NULL);
	return r;
}
