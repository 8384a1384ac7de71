/* arrive.c - what comes from processes of other hosts, to the ports.
 *
 * A message whose payload is in its record goes through the port's matcher as a cell's does. One whose payload follows is matched before that comes and lands where
 * the receive wants it. If none is posted it lands in a buffer, and goes the way of the others when it is there: its place in the order is kept, as nothing else
 * of its stream is read before. An announced one becomes a request that stands for it (struct wf_standin); matched, its bytes land where the receive wants them.
 *
 * Credit  What a message costs is given back as soon as this process's budget has room, whether it was received or not: the budget counts what waits here.
 *         Without room it is owed (trunk.owed), and the sender, out of credit, announces.
 * Threads one reader of a trunk at a time (trunk.reading); ends of landings in whatever thread carries out the act.
 * Locks   landings: landings_lock, above the trunk's.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/shield.h"
#include "port/budget.h"
#include "port/context.h"
#include "port/deliver.h"
#include "port/recv.h"
#include "port/seek.h"
#include "port/wait.h"
#include "wire/wire.h"

struct wf_standin {
	struct wf_held held;
	struct wf_trunk *trunk;
	struct weft_req *send;
	uint64_t offer;                 /* the name of what was asked for; 0: it is none */
	bool holds;                     /* under trunk.lock: in the remote's table */
};

/* Where a payload goes. */
struct landing {
	struct wf_landing l;
	struct wf_node node;            /* under landings_lock */
	struct wf_trunk *trunk;
	struct weft_port *port;
	char *data;                     /* plain memory, or of buf */
	struct weft_buf *buf;           /* WEFT_ALLOC's, a bounce, or an eager message's */
	size_t len;
	struct weft_req *into;          /* the posted receive */
	struct weft_req *waits;         /* or the request of a call that waits */
	struct weft_req *send;          /* the stand-in */
	bool eager;                     /* nobody has it yet: matched when it is there */
	bool aborted;                   /* under landings_lock */
	int err;                        /* under trunk.lock until it has landed */
	/* of one whose payload followed its frame */
	uint64_t cost;
	struct wf_rmsg msg;
	unsigned char head[WF_WIRE_HEAD_MOST];
};

static struct wf_lock landings_lock;
static struct wf_node landings;         /* of stand-ins */

int wf_arrive_pieces(const struct wf_landing *l, uint64_t at, struct iovec *ret_iov, int max)
{
	const struct landing *x = l->user;

	(void)max;
	ret_iov->iov_base = x->data + at;
	ret_iov->iov_len = l->len - at;
	return 1;
}

/* ---- to whom ---- */

static weft_id mine(uint32_t local)
{
	return (wf_process_id >> 32) << 32 | local;
}

/* The port that @m is for, entered; NULL: none. */
static struct weft_port *enter(const struct wf_rmsg *m)
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

/* What matching sees of @m at @p. False: the two ports speak different protocols. */
static bool incoming_of(const struct weft_port *p, uint32_t process, const struct wf_rmsg *m, struct wf_incoming *in)
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

static void answer(struct wf_trunk *t, uint64_t send, int err)
{
	wf_lock(&t->lock);
	wf_remote_answer(&t->remote, send, err);
	wf_unlock(&t->lock);
}

static void refuse(struct wf_trunk *t, const struct wf_rmsg *m, int err)
{
	if (m->send)
		answer(t, m->send, err);
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

static void give_credit(struct wf_trunk *t, uint64_t cost)
{
	wf_lock(&t->lock);
	wf_arrive_credit_locked(t, cost);
	wf_unlock(&t->lock);
}

/* @in, whose payload is here, to @p, which is left. False: no memory. */
static bool deliver(struct weft_port *p, struct wf_incoming *in)
{
	struct wf_work work = { NULL };
	bool kept;

	wf_drain_locked(p, &work);
	kept = wf_arrive_locked(p, in, &work);
	if (wf_self.port != p)
		atomic_fetch_add_explicit(&p->drains, 1, memory_order_relaxed);         /* its owner may look for it */
	wf_port_leave(p);
	wf_work_do(p, &work);
	return kept;
}

/* ---- stand-ins, made ---- */

/* [inside @p, which is left] A request that stands for @m, to whoever wants it. Its payload is @buf, or in.payload, or stays with its sender. */
static void stand(struct wf_trunk *t, struct weft_port *p, struct wf_incoming *in, const struct wf_rmsg *m, struct weft_buf *buf)
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
		answer(t, m->send, -ENOMEM);
		return;
	}
	s->trunk = t;
	s->held.send = m->send;
	s->send = r;
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
	wf_lock(&t->lock);
	wf_remote_hold(&t->remote, &s->held);
	s->holds = true;
	wf_unlock(&t->lock);
	wf_drain_locked(p, &work);
	wf_arrive_locked(p, in, &work);
	wf_port_leave(p);
	wf_work_do(p, &work);
}

static void announce(struct wf_trunk *t, const struct wf_act *a)
{
	struct weft_port *p = enter(&a->msg);
	struct wf_incoming in;

	if (!p) {
		answer(t, a->msg.send, -ESRCH);
	} else if (!incoming_of(p, t->process, &a->msg, &in)) {
		wf_port_leave(p);
		answer(t, a->msg.send, -EPROTO);
	} else {
		in.kind = WF_FAR;       /* what it is is known to stand() */
		stand(t, p, &in, &a->msg, NULL);
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
	t->stirred = true;
	p = enter(m);
	if (!p) {
		refuse(t, m, -ESRCH);
	} else if (!incoming_of(p, t->process, m, &in)) {
		wf_port_leave(p);
		refuse(t, m, -EPROTO);
	} else {
		in.kind = WF_ARENA;
		in.payload = m->payload;
		if (m->flags & WF_WIRE_SYNC) {
			stand(t, p, &in, m, NULL);
		} else if (!deliver(p, &in)) {
			wf_log(WF_WARN, "no memory for a message of process %s: lost", t->name);
			refuse(t, m, -ENOMEM);
		}
	}
}

/* ---- landings ---- */

static struct landing *landing_new(struct wf_trunk *t, size_t len)
{
	struct landing *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->trunk = t;
	x->len = len;
	x->l.len = len;
	x->l.user = x;
	return x;
}

/* To the receive that wants it, if one is posted. */
static bool body_claimed(struct landing *x)
{
	struct weft_port *p = enter(&x->msg);
	struct wf_work work = { NULL };
	struct wf_incoming in;

	if (!p)
		return false;
	wf_drain_locked(p, &work);
	if (incoming_of(p, x->trunk->process, &x->msg, &in)) {
		in.kind = WF_POOLED;
		x->into = wf_claim_want_locked(p, &in);
	}
	wf_port_leave(p);
	wf_work_do(p, &work);
	if (!x->into)
		return false;
	x->port = p;
	x->data = x->into->mem.plain;
	wf_lock(&landings_lock);
	wf_list_add(&landings, &x->node);
	wf_unlock(&landings_lock);
	return true;
}

/* A message whose payload follows its frame. */
static void body(struct wf_trunk *t, const struct wf_act *a, struct wf_line *line)
{
	struct landing *x = landing_new(t, (size_t)a->msg.len);

	if (x) {
		x->msg = a->msg;
		if (a->msg.head_len)
			memcpy(x->head, a->msg.head, a->msg.head_len);
		x->msg.head = x->head;
		x->cost = a->cost;
	}
	if (x && !body_claimed(x)) {
		x->eager = true;
		if (wf_buf_alloc(x->len, &x->buf) == 0) {
			x->data = x->buf->data;
		} else {
			free(x);
			x = NULL;
		}
	}
	if (!x) {
		wf_log(WF_WARN, "no memory for a message of process %s: lost", t->name);
		refuse(t, &a->msg, -ENOMEM);
		give_credit(t, a->cost);
	}
	wf_lock(&t->lock);
	wf_remote_body_into(&t->remote, line->of, x ? &x->l : NULL);
	wf_unlock(&t->lock);
}

/* It is all there, and goes on as any other. */
static void body_landed(struct landing *x)
{
	struct wf_trunk *t = x->trunk;
	struct weft_port *p = x->err ? NULL : enter(&x->msg);
	struct wf_incoming in;

	if (!p) {
		if (!x->err)
			refuse(t, &x->msg, -ESRCH);
		wf_buf_release(x->buf);
	} else if (!incoming_of(p, t->process, &x->msg, &in)) {
		wf_port_leave(p);
		refuse(t, &x->msg, -EPROTO);
		wf_buf_release(x->buf);
	} else {
		in.kind = WF_POOLED;
		in.buf = x->buf;
		x->buf->len = x->len;
		if (x->msg.flags & WF_WIRE_SYNC) {
			stand(t, p, &in, &x->msg, x->buf);
		} else if (!deliver(p, &in)) {
			refuse(t, &x->msg, -ENOMEM);
			wf_buf_release(x->buf);
		}
	}
	give_credit(t, x->cost);
	free(x);
}

/* ---- stand-ins ---- */

/* [trunk.lock] */
static void release(struct wf_standin *s)
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

	wf_lock(&t->lock);
	release(s);
	if (s->held.send)               /* else its landing answers */
		wf_remote_answer(&t->remote, s->held.send, err == -EMSGSIZE ? 0 : err);
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

	wf_lock(&t->lock);
	h = wf_remote_held(&t->remote, number);
	if (h) {
		s = wf_of(h, struct wf_standin, held);
		p = s->send->at;        /* pages of ports stay */
	}
	wf_unlock(&t->lock);
	if (p) {
		wf_port_enter(p);
		wf_lock(&t->lock);
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
	wf_lock(&t->lock);
	wf_remote_late(&t->remote, number);
	wf_unlock(&t->lock);
}

/* ---- fetching ---- */

/* 0: from now on it may be over, and @x gone, at any time. */
static int land_open(struct landing *x)
{
	struct wf_trunk *t = x->trunk;
	struct wf_standin *s = x->send->stands;
	int r;

	wf_lock(&landings_lock);
	wf_list_add(&landings, &x->node);
	wf_unlock(&landings_lock);
	wf_lock(&t->lock);
	release(s);
	r = x->err ? x->err : wf_remote_take(&t->remote, s->held.send, &x->l);
	if (r == 0)
		s->held.send = 0;       /* the landing's end answers */
	wf_unlock(&t->lock);
	if (r < 0) {
		x->err = r;
		wf_lock(&landings_lock);
		wf_list_del(&x->node);
		wf_unlock(&landings_lock);
	}
	return r;
}

/* Where the bytes of @x go, by what the receive said. -ENOMEM. */
static int land_where(struct landing *x, const struct wf_mem *mem, uint32_t flags)
{
	size_t room = flags & WEFT_ALLOC ? x->len : mem->len;

	x->l.len = x->len < room ? x->len : room;
	if (!(flags & WEFT_ALLOC) && mem->kind == WF_MEM_PLAIN) {
		x->data = mem->plain;
		return 0;
	}
	if (wf_buf_alloc(flags & WEFT_ALLOC ? x->len : (size_t)x->l.len, &x->buf) < 0)
		return -ENOMEM;
	x->data = x->buf->data;
	x->buf->len = (size_t)x->l.len;
	return 0;
}

/* What landed to the receive that wanted it: 0, -EMSGSIZE, -EINVAL, or why it never will. */
static int land_result(struct landing *x, const struct wf_mem *mem, uint32_t flags, struct weft_status *st)
{
	int err = x->err;

	if (x->buf && err == 0 && flags & WEFT_ALLOC) {
		st->buf = x->buf;
		x->buf = NULL;
	} else if (x->buf && err == 0) {
		struct wf_mem from = wf_mem_plain(x->data, (size_t)x->l.len);

		if (!wf_mem_copy(mem, &from, (size_t)x->l.len))
			err = weft_fail(-EINVAL, "op.layout gave no pieces");
	}
	if (x->buf)
		wf_buf_release(x->buf);
	x->buf = NULL;
	if (err == 0 && x->l.len < x->len)
		err = weft_fail(-EMSGSIZE, "the message has %zu bytes", x->len);
	return err;
}

/* The posted receive's end. */
static void land_over(struct landing *x)
{
	struct weft_req *r = x->into, *send = x->send;
	struct weft_port *p = x->port;
	int err = land_result(x, &r->mem, r->flags, &r->st);

	wf_port_enter(p);
	p->copying--;
	if (err == 0 || err == -EMSGSIZE) {
		p->received++;
		p->received_bytes += x->len;
		p->copies += send != NULL;
	}
	if (send)
		wf_req_end_locked(send, err == -ENOMEM ? -ECONNRESET : err == -EMSGSIZE ? 0 : err);
	r->partner = NULL;
	if (!(r->flags & WEFT_REPEAT)) {
		wf_req_end_locked(r, err);
		wf_port_leave(p);
	} else {
		p->pins++;
		wf_port_leave(p);
		wf_recv_landed(r, err);
	}
	if (!send) {
		if (x->msg.flags & WF_WIRE_SYNC)
			answer(x->trunk, x->msg.send, err);
		give_credit(x->trunk, x->cost);
	}
	free(x);
}

/* Nothing writes into it any more. */
static void landed(struct landing *x)
{
	if (x->eager) {
		body_landed(x);
		return;
	}
	wf_lock(&landings_lock);
	if (wf_list_has(&x->node))
		wf_list_del(&x->node);
	wf_unlock(&landings_lock);
	if (x->into) {
		land_over(x);
		return;
	}
	wf_lock(&wf_user_lock);
	wf_req_end_locked(x->waits, 0);         /* who waits has it from here on */
	wf_unlock(&wf_user_lock);
}

static void close_landing(struct wf_trunk *t, struct landing *x, int err)
{
	int r;

	wf_lock(&t->lock);
	if (err && !x->err)
		x->err = err;
	r = wf_landing_close(&t->remote, &x->l, err);
	wf_unlock(&t->lock);
	if (r == 0)
		landed(x);
}

void wf_arrive_fetch(struct weft_port *p, struct weft_req *r)
{
	struct weft_req *send = r->partner;
	struct wf_trunk *t = send->stands->trunk;
	struct landing *x = landing_new(t, send->a.len);

	if (!x) {
		wf_port_enter(p);
		p->copying--;
		wf_req_end_locked(send, -ECONNRESET);
		r->partner = NULL;
		wf_req_end_locked(r, weft_fail(-ENOMEM, "no memory to receive"));
		wf_port_leave(p);
		return;
	}
	x->port = p;
	x->into = r;
	x->send = send;
	x->err = land_where(x, &r->mem, r->flags);
	if (land_open(x) < 0)
		land_over(x);
	else
		wf_trunk_turn(t);
}

int wf_arrive_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *to)
{
	struct wf_trunk *t = send->stands->trunk;
	struct landing *x = landing_new(t, send->a.len);
	struct weft_req *waits = x ? wf_req_new(WF_USER) : NULL;
	int r;

	if (!waits) {
		free(x);
		return weft_fail(-ENOMEM, "no memory to receive");
	}
	/* Our memory is written to, whatever becomes of the thread: it is to be cancelled afterwards. */
	wf_shield();
	x->port = p;
	x->send = send;
	x->waits = waits;
	x->err = land_where(x, to->mem, to->flags);
	if (land_open(x) == 0) {
		wf_trunk_turn(t);
		wf_await(&waits, 1, 1, WEFT_FOREVER);
		wf_req_collect(waits, NULL);
	} else {
		wf_req_put(waits);
	}
	r = land_result(x, to->mem, to->flags, to->st);
	free(x);
	wf_unshield();
	return r;
}

void wf_arrive_abort(struct weft_port *p)
{
	for (;;) {
		struct landing *x = NULL;
		struct wf_trunk *t = NULL;
		int r = -EINPROGRESS;

		/* Under the lock by which it leaves the list: so it is still there. */
		wf_lock(&landings_lock);
		for (struct wf_node *n = landings.next; n && n != &landings && !x; n = n->next)
			if (wf_of(n, struct landing, node)->port == p && !wf_of(n, struct landing, node)->aborted)
				x = wf_of(n, struct landing, node);
		if (x) {
			x->aborted = true;
			t = x->trunk;
			wf_lock(&t->lock);
			if (wf_list_has(&x->l.node)) {          /* else LANDED was given: who has that act ends it */
				x->err = -ECANCELED;
				r = wf_landing_close(&t->remote, &x->l, -ECONNRESET);
			}
			wf_unlock(&t->lock);
		}
		wf_unlock(&landings_lock);
		if (!x)
			return;
		if (r == 0)
			landed(x);
		wf_trunk_turn(t);
	}
}

/* ---- backlogs of the other end ---- */

/* @want as a process of another job is to read it, which has another name for itself: no process number is the reader's own. False: it is not from that process. */
static bool want_abroad(const struct wf_trunk *t, const void *want, unsigned char *ret)
{
	struct wf_head h;

	memcpy(ret, want, WF_HEAD_ROOM);
	memcpy(&h, want, sizeof(h));
	if (h.src == WEFT_ANY)
		return true;
	if (h.src >> 32 != t->process)
		return false;
	h.src = (uint32_t)h.src;
	memcpy(ret, &h, sizeof(h));
	return true;
}

void wf_arrive_seek_locked(struct weft_port *p, const void *want)
{
	unsigned char abroad[WF_HEAD_ROOM];
	struct wf_trunk *t;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		const void *said = want;

		if (!atomic_load_explicit(&t->keeps, memory_order_relaxed))
			continue;
		if (wf_foreign(t->process) && !p->proto) {
			if (!want_abroad(t, want, abroad))
				continue;
			said = abroad;
		}
		wf_lock(&t->lock);
		wf_remote_seek(&t->remote, (uint32_t)atomic_load_explicit(&p->id, memory_order_relaxed),
			       atomic_load_explicit(&p->context, memory_order_relaxed), wf_seek_name(p, want), said, WF_HEAD_ROOM);
		wf_unlock(&t->lock);
		wf_trunk_kick(t);
	}
}

/* [a door] Does the other end keep messages for (@to, @context)? It may say the same more than once. True: that is news. */
static bool keeps(struct wf_trunk *t, uint32_t to, uint64_t context, bool more)
{
	uint64_t h = (to + (context ^ context >> 32) * UINT64_C(0xd6e8feb86659fd93)) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t key = (uint32_t)(h >> 32) | 1;
	bool news;

	wf_lock(&t->lock);
	news = (wf_ids_get(&t->keeping, key) == WF_ID_ASKED) != more;
	if (news)
		wf_ids_put(&t->keeping, key, more ? WF_ID_ASKED : WF_ID_OVER);          /* without memory it is asked for longer than need be */
	wf_unlock(&t->lock);
	return news;
}

/* The other end keeps messages for a port: what is posted there is asked for, and so will be what is posted later. */
static void backlog(struct wf_trunk *t, const struct wf_act *a, bool more)
{
	struct wf_rmsg to = { .to = a->to, .context = a->context };
	struct weft_port *p = enter(&to);
	bool news;

	if (!p)
		return;
	news = keeps(t, a->to, a->context, more);
	if (more) {
		if (news) {
			p->asks++;
			atomic_fetch_add_explicit(&t->keeps, 1, memory_order_relaxed);
		}
		for (struct weft_match_entry *e = wf_first(p, WEFT_MATCH_WANTS); e; e = wf_next(p, e))
			wf_arrive_seek_locked(p, e->head);
	} else if (news && p->asks) {
		p->asks--;
		atomic_fetch_sub_explicit(&t->keeps, 1, memory_order_relaxed);
	}
	wf_port_leave(p);
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
		body(t, a, line);
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
		backlog(t, a, a->kind == WF_ACT_BACKLOG);
		break;
	case WF_ACT_LANDED:
		close_landing(t, wf_of(a->landing, struct landing, l), a->err);
		break;
	case WF_ACT_LAND_CLOSED:
		landed(wf_of(a->landing, struct landing, l));
		break;
	default:
		break;
	}
}
