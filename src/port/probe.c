/* probe.c - looking at a message without receiving it, and taking it out of matching. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "port/deliver.h"
#include "port/lead.h"
#include "port/op.h"
#include "port/recv.h"
#include "port/request.h"
#include "port/tell.h"
#include "port/wait.h"

_Atomic uint64_t wf_taken;

struct probe {
	struct weft_port *port;
	unsigned char want[WEFT_MATCH_HEAD_MAX];
	struct weft_msg **ret_msg;
	struct weft_status st;
	uint32_t told;                  /* WARY: ends of members that somebody was told of when it began */
};

/* The first for @b, claimed if it is to be taken out; NULL: none. */
static struct wf_arrival *find_locked(struct probe *b)
{
	struct weft_port *p = b->port;
	struct weft_match_entry *e;
	struct weft_req *send;
	struct wf_arrival *a;

	while ((e = wf_look(p, b->want)) != NULL) {
		a = wf_of(e, struct wf_arrival, entry);
		send = wf_of(a, struct weft_req, a);
		if (!(a->flags & WF_MSG_SENDS) || (b->ret_msg ? wf_claim_send_locked(send) : wf_far_offered(send)))
			return a;
		wf_unmatch(p, e);               /* taken back by its sender, in another process */
		p->unrequested--;
		wf_far_forget(send);
	}
	return NULL;
}

/* From now on it is @ret_msg's: nobody else is matched with it, its sender can no longer take it back. */
static void take_out_locked(struct probe *b, struct wf_arrival *a)
{
	wf_unmatch(b->port, &a->entry);
	a->at = b->port;
	a->flags |= WF_MSG_TAKEN;
	b->port->taken++;
	if (a->flags & WF_MSG_SENDS) {
		b->port->unrequested--;
		wf_of(a, struct weft_req, a)->where = WF_TAKEN;
		atomic_fetch_add_explicit(&wf_taken, 1, memory_order_relaxed);
	} else {
		b->port->held -= wf_record_size(wf_of(a, struct wf_record, a));
	}
	*b->ret_msg = (struct weft_msg *)(void *)a;
}

/* Drains and looks: 1 found, 0 not (then @w, if given, waits at the port), or an error. @ended: the one it names has, and what he has left comes first. */
static int look(struct probe *b, struct wf_waiter *w, bool ended)
{
	struct weft_port *p = b->port;
	struct wf_work work = { NULL };
	struct wf_arrival *a;
	int r = 0;

	wf_port_enter(p);
	if (ended)
		wf_drain_ended_locked(p, &work);
	else
		wf_drain_locked(p, &work);
	if (p->closing) {
		r = weft_fail(-ECANCELED, "the port is being closed");
	} else if ((a = find_locked(b)) != NULL) {
		wf_user_acquires(&p->ring);
		wf_status_of(p, a, &b->st);
		if (b->ret_msg)
			take_out_locked(b, a);
		r = 1;
	} else if (w) {
		wf_wait_at_locked(p, w);
	}
	wf_port_leave(p);
	wf_work_do(p, &work);
	return r;
}

static int source_gone(const struct probe *b)
{
	struct wf_head h;

	memcpy(&h, b->want, sizeof(h));
	if (!b->port->proto && h.src == WEFT_ANY)
		return wf_wary(b->port, b->told);
	if (b->port->proto || wf_watch(b->port, h.src) == 0)
		return 0;
	return weft_fail(-ESRCH, "nobody of that id lives, and it has left nothing");
}

static int sleep_once(struct probe *b, weft_time until)
{
	struct wf_waiter w = { .parker = &wf_self.port->face->parker, .probes = b->want };
	int r;

	wf_park_begin(w.parker);
	r = look(b, &w, false);
	if (r) {
		wf_park_end(w.parker);
		return r;
	}
	wf_fence_heavy_far();                                               /* F1 */
	if (!wf_port_waiting(b->port) && !wf_callbacks_pending() && source_gone(b) == 0)
		wf_lead_park(w.parker, until, wf_get_up, &w);
	wf_get_up(&w);
	wf_self.waiting = true;
	return 0;
}

static int probe_wait(struct probe *b, weft_time until)
{
	struct wf_linger w;
	int r;

	wf_linger_init(&w);
	for (bool lived = false;; lived = true) {
		if (wf_unlikely(wf_hosts != NULL))
			wf_lead_look();
		r = look(b, NULL, false);
		if (r)
			return r;
		r = source_gone(b);
		if (r < 0) {
			int last = look(b, NULL, true);

			return last ? last : lived && r == -ESRCH ? weft_fail(-ECONNRESET, "the one it named has ended") : r;
		}
		if (wf_callbacks_pending())
			wf_callbacks_run();
		if (wf_linger(&w))
			continue;
		if (wf_past(until))
			return wf_late(until);
		r = sleep_once(b, until);
		if (r)
			return r;
	}
}

int weft_probe(struct weft_port *at, const struct weft_op *what, weft_time until, struct weft_msg **ret_msg,
	       struct weft_status *ret_st)
{
	struct probe b = { .ret_msg = ret_msg };
	struct weft_op op;
	int r = wf_enter(), gone = 0;

	if (r < 0)
		return r;
	b.port = at = at ? at : wf_self.port;
	r = wf_may_receive(at);
	if (r == 0)
		r = wf_op_read_recv(at, what, &op);
	if (r == 0)
		r = wf_want_of(at, &op, b.want);
	if (r < 0)
		return r;
	if (wf_self.in_callback && until != WEFT_NOW)
		return weft_fail(-EDEADLK, "weft_probe inside a callback");
	if (atomic_load_explicit(&at->broken, memory_order_relaxed))
		return weft_fail(-ECONNRESET, "a member of the port has ended");
	b.told = atomic_load_explicit(&at->dead_told, memory_order_relaxed);    /* our own view: somebody else may be told meanwhile */
	if (until == WEFT_NOW) {
		if (wf_unlikely(wf_hosts != NULL))
			wf_lead_look();
		r = look(&b, NULL, false);
		if (r == 0)
			gone = source_gone(&b);
		if (gone < 0)
			r = look(&b, NULL, true);
		if (r == 0)
			r = gone < 0 ? gone : wf_late(until);
	} else {
		wf_self.waiting = true;
		r = probe_wait(&b, until);
		wf_self.waiting = false;
	}
	if (r < 0)
		return r;
	if (ret_st)
		*ret_st = b.st;
	return 0;
}
