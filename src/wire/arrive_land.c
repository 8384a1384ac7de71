/* arrive_land.c - payloads that come behind their frames: where they land, and what becomes of them then.
 *
 * A message whose payload follows is matched before that comes and lands where the receive wants it. If none is posted it lands in a buffer, and goes the way of the others when it is
 * there: its place in the order is kept, as nothing else of its stream is read before. One that was announced lands when a receive has matched its stand-in.
 *
 * Locks   landings: landings_lock, above the trunk's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/shield.h"
#include "port/recv.h"
#include "port/wait.h"
#include "wire/arrive.h"

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
	struct weft_port *p = wf_arrive_enter(&x->msg);
	struct wf_work work = { NULL };
	struct wf_incoming in;

	if (!p)
		return false;
	wf_drain_claimed_locked(p, &work);
	if (wf_arrive_facts(p, x->trunk->process, &x->msg, &in)) {
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

void wf_arrive_body(struct wf_trunk *t, const struct wf_act *a, struct wf_line *line)
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
		wf_arrive_refuse(t, &a->msg, -ENOMEM);
		wf_arrive_credit(t, a->cost);
	}
	wf_trunk_lock(t);
	wf_remote_body_into(&t->remote, line->of, x ? &x->l : NULL);
	wf_unlock(&t->lock);
}

/* It is all there, and goes on as any other. */
static void body_landed(struct landing *x)
{
	struct wf_trunk *t = x->trunk;
	struct weft_port *p = x->err ? NULL : wf_arrive_enter(&x->msg);
	struct wf_incoming in;

	if (!p) {
		if (!x->err)
			wf_arrive_refuse(t, &x->msg, -ESRCH);
		wf_buf_release(x->buf);
	} else if (!wf_arrive_facts(p, t->process, &x->msg, &in)) {
		wf_port_leave(p);
		wf_arrive_refuse(t, &x->msg, -EPROTO);
		wf_buf_release(x->buf);
	} else {
		in.kind = WF_POOLED;
		in.buf = x->buf;
		x->buf->len = x->len;
		if (x->msg.flags & WF_WIRE_SYNC) {
			wf_arrive_stand(t, p, &in, &x->msg, x->buf);
		} else if (!wf_arrive_deliver(p, &in)) {
			wf_arrive_refuse(t, &x->msg, -ENOMEM);
			wf_buf_release(x->buf);
		}
	}
	wf_arrive_credit(t, x->cost);
	free(x);
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
	wf_trunk_lock(t);
	wf_standin_release(s);
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
			wf_arrive_say(x->trunk, x->msg.send, err);
		wf_arrive_credit(x->trunk, x->cost);
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

void wf_arrive_landed(struct wf_trunk *t, struct wf_landing *l, int err)
{
	struct landing *x = wf_of(l, struct landing, l);
	int r;

	wf_trunk_lock(t);
	if (err && !x->err)
		x->err = err;
	r = wf_landing_close(&t->remote, &x->l, err);
	wf_unlock(&t->lock);
	if (r == 0)
		landed(x);
}

void wf_arrive_closed(struct wf_landing *l)
{
	landed(wf_of(l, struct landing, l));
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
			wf_trunk_lock(t);
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
