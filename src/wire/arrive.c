/* arrive.c - what comes from processes of other hosts, to the ports.
 *
 * A message whose payload is in its record goes through the port's matcher as a cell's does. One whose payload follows lands first (arrive_land.c). An announced one becomes a request
 * that stands for it (struct wf_standin); matched, its bytes land where the receive wants them. What the other end keeps is asked for (arrive_kept.c).
 *
 * Credit  What a message costs is given back as soon as this process's budget has room, whether it was received or not: the budget counts what waits here, with what it is kept in, and
 *         what stands for it. Up to a sixteenth of the window it can wait for what comes next.
 *         Without room it is owed (trunk.owed), and the sender, out of credit, announces.
 * Threads one reader of a trunk at a time (trunk.reading); ends of landings in whatever thread carries out the act.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/shield.h"
#include "port/budget.h"
#include "port/context.h"
#include "port/drop.h"
#include "port/expect.h"
#include "wire/arrive.h"

_Static_assert(WF_EXPECT_MOST == WF_INLINE_MOST, "who expects a message is to get all that come with their heads");

/* ---- to whom ---- */

static weft_id mine(uint32_t local)
{
	return (wf_process_id >> 32) << 32 | local;
}

struct weft_port *wf_arrive_enter(const struct wf_rmsg *m)
{
	weft_id id = mine(m->to);
	struct weft_port *p = NULL;
	uint16_t who;

	if (!m->context)
		p = wf_port_find(id, &who);
	else if ((m->head_len && !wf_context_known(id, m->context)) || wf_route(id, m->context, NULL, &p, &who) < 0)
		p = NULL;               /* early messages of a foreign protocol: nobody here can match them */
	if (!p)
		return NULL;
	wf_port_enter(p);
	if (!p->closing && atomic_load_explicit(&p->id, memory_order_relaxed) == id &&
	    atomic_load_explicit(&p->context, memory_order_relaxed) == m->context)
		return p;
	wf_port_leave(p);
	return NULL;
}

bool wf_arrive_facts(const struct weft_port *p, uint32_t process, const struct wf_rmsg *m, struct wf_incoming *in)
{
	memset(in, 0, sizeof(*in));
	in->src = (weft_id)process << 32 | m->from;
	in->tag = m->tag;
	in->index = m->index;
	in->len = (size_t)m->len;
	if (p->proto) {
		uint64_t proto = wf_ctx_of_text(p->proto->name);

		if (m->head_len != WF_WIRE_PROTO + p->proto->head_len || memcmp(m->head, &proto, WF_WIRE_PROTO))
			return false;
		memcpy(in->head, (const char *)m->head + WF_WIRE_PROTO, p->proto->head_len);
	} else {
		struct wf_head native = { .src = in->src, .tag = in->tag };

		if (m->head_len)
			return false;
		memcpy(in->head, &native, sizeof(native));
	}
	return true;
}

void wf_arrive_say(struct wf_trunk *t, uint64_t send, int err)
{
	wf_trunk_lock(t);
	wf_remote_answer(&t->remote, send, err);
	wf_unlock(&t->lock);
}

void wf_arrive_refuse(struct wf_trunk *t, const struct wf_rmsg *m, int err)
{
	if (m->send)
		wf_arrive_say(t, m->send, err);
	else
		wf_gone_lost();
}

/* The budget has room for what it let in: the sender may send as much again. */
void wf_arrive_credit_locked(struct wf_trunk *t, uint64_t cost)
{
	t->owed += cost;
	if (wf_budget_full(0))
		return;
	wf_remote_freed(&t->remote, t->owed);
	t->owed = 0;
}

void wf_arrive_credit(struct wf_trunk *t, uint64_t cost)
{
	wf_trunk_lock(t);
	wf_arrive_credit_locked(t, cost);
	wf_unlock(&t->lock);
}

bool wf_arrive_deliver(struct weft_port *p, struct wf_incoming *in)
{
	struct wf_work work = { NULL };
	bool kept;

	wf_drain_claimed_locked(p, &work);
	kept = wf_arrive_locked(p, in, &work);
	if (wf_self.port != p)
		atomic_fetch_add_explicit(&p->drains, 1, memory_order_relaxed);         /* its owner may look for it */
	wf_port_leave(p);
	wf_work_do(p, &work);
	return kept;
}

/* ---- stand-ins, made ---- */

void wf_arrive_stand(struct wf_trunk *t, struct weft_port *p, struct wf_incoming *in, const struct wf_rmsg *m, struct weft_buf *buf)
{
	struct wf_standin *s = calloc(1, sizeof(*s));
	struct weft_req *r = s ? wf_req_new(WF_SEND) : NULL;
	struct wf_work work = { NULL };

	if (r && in->kind == WF_ARENA) {
		if (wf_buf_alloc(in->len, &buf) == 0) {
			memcpy(buf->data, in->payload, in->len);
		} else {
			wf_req_put(r);
			r = NULL;
		}
	}
	if (!r) {
		wf_port_leave(p);
		free(s);
		if (buf)
			wf_buf_release(buf);
		wf_arrive_say(t, m->send, -ENOMEM);
		return;
	}
	s->trunk = t;
	s->held.send = m->send;
	s->send = r;
	s->charged = sizeof(*s) + sizeof(*r) + (buf ? buf->cap : 0);
	wf_budget_take(s->charged);
	s->offer = m->flags & WF_WIRE_OFFER ? m->token | 1 : 0;
	r->stands = s;
	r->detached = true;
	r->at = p;
	r->flags = WEFT_SYNC;           /* not to be copied before it is wanted */
	r->buf = buf;
	r->a.kind = buf ? WF_POOLED : WF_WIRED;
	r->a.src = in->src;
	r->a.len = in->len;
	r->a.index = in->index;
	r->a.flags = WF_MSG_SENDS | WF_MSG_STANDS;
	r->a.entry.side = 0;
	memcpy(r->a.entry.head, in->head, WF_HEAD_ROOM);
	in->kind = WF_ANNOUNCED;
	in->send = r;
	/* Before anybody can match it: CANCEL looks for it there. */
	wf_trunk_lock(t);
	wf_remote_hold(&t->remote, &s->held);
	s->holds = true;
	wf_unlock(&t->lock);
	wf_drain_claimed_locked(p, &work);
	wf_arrive_locked(p, in, &work);
	wf_port_leave(p);
	wf_work_do(p, &work);
}

static void announce(struct wf_trunk *t, const struct wf_act *a)
{
	struct weft_port *p = wf_arrive_enter(&a->msg);
	struct wf_incoming in;

	if (!p) {
		wf_arrive_say(t, a->msg.send, -ESRCH);
	} else if (!wf_arrive_facts(p, t->process, &a->msg, &in)) {
		wf_port_leave(p);
		wf_arrive_say(t, a->msg.send, -EPROTO);
	} else {
		in.kind = WF_FAR;       /* what it is is known to wf_arrive_stand() */
		wf_arrive_stand(t, p, &in, &a->msg, NULL);
	}
}

static bool dropped_in(const struct wf_trunk *t, const struct wf_rmsg *m)
{
	struct wf_guest g = { .to = mine(m->to), .src = (weft_id)t->process << 32 | m->from, .tag = m->tag, .context = m->context, .payload = m->payload, .len = (size_t)m->len, .index = m->index };

	return !(m->flags & (WF_WIRE_SYNC | WF_WIRE_HEAD)) && wf_drop_in(&g);
}

static void message(struct wf_trunk *t, const struct wf_act *a)
{
	const struct wf_rmsg *m = &a->msg;
	struct weft_port *p;
	struct wf_incoming in;

	t->costs += a->cost;
	if (wf_likely(dropped_in(t, m)))
		return;
	p = wf_arrive_enter(m);
	if (wf_likely(p && wf_arrive_facts(p, t->process, m, &in))) {
		in.kind = WF_ARENA;
		in.payload = m->payload;
		if (wf_likely(!(m->flags & WF_WIRE_SYNC))) {
			if (wf_likely(wf_arrive_deliver(p, &in)))
				return;         /* here, whoever is to have it: its sender hears nothing */
			wf_log(WF_WARN, "no memory for a message of process %s: lost", t->name);
			wf_arrive_refuse(t, m, -ENOMEM);
		} else {
			wf_arrive_stand(t, p, &in, m, NULL);
		}
	} else {
		if (p)
			wf_port_leave(p);
		wf_arrive_refuse(t, m, p ? -EPROTO : -ESRCH);
	}
	t->stirred = true;
}

/* One that takes another way. */
static WF_SLOW void message_odd(struct wf_trunk *t, const struct wf_brisk *m)
{
	struct wf_act a = { .kind = WF_ACT_MSG, .msg = wf_brisk_msg(m) };

	wf_shield();
	message(t, &a);
	wf_unshield();
}

/* The next one of @at. */
static inline void arrive_one(struct wf_trunk *t, struct wf_row_at *at)
{
	const struct wf_brisk *m = &at->m;

	wf_row_next(at);
	if (wf_unlikely(!wf_drop_in(&(struct wf_guest){ .to = mine(m->to), .src = (weft_id)t->process << 32 | m->from, .tag = m->tag, .context = m->context, .payload = m->payload,
							 .len = m->len, .index = m->index })))
		message_odd(t, m);
}

/* Those of @at, all to @to and short enough for the cells of its mailbox: up to where there is room. @left: how many. */
static void arrive_alike(const struct wf_trunk *t, weft_id to, struct wf_row_at *at, uint32_t left)
{
	weft_id them = (weft_id)t->process << 32;
	struct wf_seats seats;

	for (uint32_t n; left && (n = wf_seats_take(to, left, &seats)) > 0; left -= n) {
		for (uint32_t i = 0, few; i < n; i += few) {
			const void *first;

			wf_row_next(at);
			first = at->m.payload;
			few = wf_row_alike(at, n - i);
			wf_seats_fill(&seats, i, few, them | at->m.from, at->m.index, at->m.tag, first, at->m.len);
		}
		wf_seats_told(&seats);
	}
}

WF_HOT void wf_arrive_row(struct wf_trunk *t, const struct wf_row *row)
{
	struct wf_row_at at = wf_row_begin(row);

	t->costs += row->cost;
	arrive_one(t, &at);             /* it may be the one that is waited for */
	if (wf_unlikely(wf_row_more(&at)) && row->longest <= WF_BODY && row->alike)
		arrive_alike(t, mine(at.m.to), &at, row->count - 1);
	while (wf_unlikely(wf_row_more(&at)))
		arrive_one(t, &at);
}

/* ---- stand-ins ---- */

void wf_standin_release(struct wf_standin *s)
{
	if (s->holds)
		wf_remote_release(&s->trunk->remote, &s->held);
	s->holds = false;
}

uint64_t wf_arrive_offered(struct weft_req *send)
{
	return send->stands->offer;
}

void wf_arrive_answer(struct weft_req *send, int err)
{
	struct wf_standin *s = send->stands;
	struct wf_trunk *t = s->trunk;

	wf_trunk_lock(t);
	wf_standin_release(s);
	if (s->held.send)               /* else its landing answers */
		wf_remote_answer(&t->remote, s->held.send, err == -EMSGSIZE ? 0 : err);
	wf_budget_give(s->charged);
	if (t->owed)
		wf_arrive_credit_locked(t, 0);
	wf_unlock(&t->lock);
	wf_trunk_kick(t);
	free(s);
	send->stands = NULL;
	send->a.flags = 0;
	wf_req_put(send);
}

/* The other end wants a send of its own back. */
static void taken_back(struct wf_trunk *t, uint64_t number)
{
	struct wf_standin *s = NULL;
	struct wf_held *h;
	struct weft_port *p = NULL;
	bool out = false;

	wf_trunk_lock(t);
	h = wf_remote_held(&t->remote, number);
	if (h) {
		s = wf_of(h, struct wf_standin, held);
		p = s->send->at;        /* pages of ports stay */
	}
	wf_unlock(&t->lock);
	if (p) {
		wf_port_enter(p);
		wf_trunk_lock(t);
		out = wf_remote_held(&t->remote, number) == h && s->send->where == WF_QUEUED;   /* else it was matched meanwhile */
		wf_unlock(&t->lock);
		if (out) {
			wf_unmatch(p, &s->send->a.entry);
			p->unrequested--;
			wf_req_end_locked(s->send, -ECANCELED);
		}
		wf_port_leave(p);
	}
	if (out)
		return;
	wf_trunk_lock(t);
	wf_remote_late(&t->remote, number);
	wf_unlock(&t->lock);
}

/* ---- the end of a process ---- */

struct ending {
	uint32_t process;
	int err;
};

static void drop_at(struct weft_port *p, void *arg)
{
	struct ending *x = arg;
	struct weft_match_entry *e, *next;

	wf_port_enter(p);
	for (e = wf_first(p, WEFT_MATCH_ARRIVALS); e; e = next) {
		struct wf_arrival *a = wf_of(e, struct wf_arrival, entry);

		next = wf_next(p, e);
		if (!(a->flags & WF_MSG_STANDS) || a->kind != WF_WIRED || a->src >> 32 != x->process)
			continue;
		wf_unmatch(p, e);
		p->unrequested--;
		wf_req_end_locked(wf_of(a, struct weft_req, a), x->err);
	}
	wf_port_leave(p);
}

void wf_arrive_dead(uint32_t process, int err)
{
	struct ending x = { process, err };

	wf_port_each(drop_at, &x);
}

void wf_arrive_act(struct wf_trunk *t, struct wf_act *a, struct wf_line *line)
{
	switch (a->kind) {
	case WF_ACT_MSG:
		message(t, a);
		break;
	case WF_ACT_BODY:
		wf_arrive_body(t, a, line);
		break;
	case WF_ACT_ANNOUNCE:
		announce(t, a);
		break;
	case WF_ACT_CANCEL:
		taken_back(t, a->number);
		break;
	case WF_ACT_WATCH:
		wf_watch_asked(t, (uint32_t)a->number);
		break;
	case WF_ACT_GONE:
		wf_watch_gone(t, (uint32_t)a->number);
		break;
	case WF_ACT_SEEK:
		wf_depart_sought(t, a);
		break;
	case WF_ACT_BACKLOG:
	case WF_ACT_CLEAR:
		wf_arrive_backlog(t, a, a->kind == WF_ACT_BACKLOG);
		break;
	case WF_ACT_LANDED:
		wf_arrive_landed(t, a->landing, a->err);
		break;
	case WF_ACT_LAND_CLOSED:
		wf_arrive_closed(a->landing);
		break;
	default:
		break;
	}
}
