/* request.c - see request.h. */
#include "port/request.h"

#include <errno.h>
#include <string.h>

#include "port/far.h"
#include "port/listener.h"
#include "port/route.h"
#include "port/table.h"
#include "port/tell.h"

struct wf_lock wf_user_lock;
_Atomic uint32_t wf_cancelling;
struct wf_lock wf_cancel_lock;

static struct weft_req *prepare(struct weft_req *r, enum wf_what what)
{
	r->dirty = true;
	atomic_store_explicit(&r->over, 0, memory_order_relaxed);       /* nobody else knows it yet */
	r->what = (uint8_t)what;
	memset(&r->st, 0, sizeof(r->st));
	r->st.index = WEFT_NOBODY;
	return r;
}

struct weft_req *wf_req_new(enum wf_what what)
{
	struct weft_req *r = wf_slab_get(WF_SLAB_REQ);

	if (wf_unlikely(!r)) {
		weft_fail(-ENOMEM, "no memory for a request");
		return NULL;
	}
	return prepare(r, what);
}

struct weft_req *wf_req_own(enum wf_what what)
{
	return prepare(&wf_self.port->own, what);
}

/* A limit counts what is under way on the port that was posted on. */
static struct weft_port *limiter_of(const struct weft_req *r)
{
	return !r->limited ? NULL : r->what == WF_SEND ? r->from : r->at;
}

static bool limit_take(struct weft_port *p)
{
	uint32_t n = atomic_load_explicit(&p->under_way, memory_order_relaxed);

	do {
		if (n >= p->limit)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&p->under_way, &n, n + 1, memory_order_relaxed,
							memory_order_relaxed));         /* a count */
	return true;
}

int wf_req_observe(struct weft_req *r, const struct weft_op *op, bool handle, struct weft_port *limiter)
{
	int err = 0;

	r->st.user = op->user;
	r->flags = op->flags;
	r->detached = !handle;
	if (op->done || op->queue) {
		r->told = true;
		r->done = op->done;
		r->queue = op->queue;
		if (handle || op->flags & WEFT_REPEAT) {
			r->carrier = wf_req_new(r->what);
			if (!r->carrier)
				return -ENOMEM;
		}
	}
	if (r->told || op->expires)
		err = wf_listener_start();
	if (err == 0 && limiter && limiter->limit) {
		r->limited = limit_take(limiter);
		if (!r->limited)
			err = weft_fail(-EAGAIN, "the port's limit of %u operations is reached", limiter->limit);
	}
	if (err < 0) {
		if (r->carrier)
			wf_req_put(r->carrier);
		r->carrier = NULL;
		return err;
	}
	if (r->queue)
		wf_queue_name(r->queue);
	r->expires = op->expires;
	return 0;
}

void wf_req_unobserve(struct weft_req *r)
{
	struct weft_port *limiter = limiter_of(r);

	if (r->queue)
		wf_queue_unname(r->queue);
	if (limiter)
		atomic_fetch_sub_explicit(&limiter->under_way, 1, memory_order_relaxed);
	if (atomic_load_explicit(&r->timer, memory_order_relaxed))
		wf_timer_remove(r);
	if (r->carrier)
		wf_req_put(r->carrier);
	wf_req_put(r);
}

/* The end of @r goes to done or queue: by @r itself, or by its carrier where @r lives on. */
static void tell(struct weft_req *r, const struct weft_status *st)
{
	struct weft_req *c = r->carrier ? r->carrier : r;

	if (c != r) {
		c->st = *st;
		c->done = r->done;
		c->queue = r->queue;
		c->detached = true;
		c->told = true;
		c->partner = r->rests ? r : NULL;       /* before it is theirs: they may be quick */
		r->rests = false;
		r->carrier = NULL;
	} else {
		c->partner = NULL;      /* the send it was copied from: to the callbacks' runner it would be a receive that rests */
	}
	c->where = WF_TELLING;
	wf_tell(c);
}

bool wf_req_repeat_locked(struct weft_req *r, const struct weft_status *st, bool rests)
{
	struct weft_req *next = wf_req_new(WF_RECV);

	if (!next)
		return false;
	if (r->queue)
		wf_queue_name(r->queue);        /* the carrier gives it up when it is taken */
	if (rests) {
		r->at->pins++;
		r->rests = true;
	}
	tell(r, st);
	r->carrier = next;
	return true;
}

void wf_req_say(const struct weft_req *r)
{
	if (r->st.err == -ECANCELED)
		weft_fail(r->st.err, "it was cancelled");
	else if (r->st.from && r->st.from != WEFT_ANY)
		wf_id_fail(r->st.err, r->st.from);
}

static void leave_sender(struct weft_req *r)
{
	struct weft_port *from = r->from;

	if (!from)
		return;
	wf_lock(&from->sends_lock);
	if (wf_list_has(&r->mine))
		wf_list_del(&r->mine);
	wf_unlock(&from->sends_lock);
}

void wf_req_end_locked(struct weft_req *r, int err)
{
	struct weft_port *limiter = limiter_of(r);

	if (wf_unlikely(r->what == WF_USER && r->source)) {
		r->source->ended(r->source);
		r->source = NULL;
	}
	if (wf_unlikely(r->what == WF_SEND && r->a.flags & WF_MSG_TICKET)) {
		wf_far_answer(r, err);
		return;
	}
	if (wf_unlikely(r->what == WF_SEND && r->a.flags & WF_MSG_STANDS)) {
		wf_hosts->answer(r, err);
		return;
	}
	if (r->flags & WEFT_REPEAT && r->st.flags & WEFT_ST_MORE) {     /* what the last message said is not its end's */
		r->st.flags = 0;
		r->st.len = 0;
		r->st.buf = NULL;
	}
	r->st.err = err;
	r->where = WF_NOWHERE;
	if (atomic_load_explicit(&r->timer, memory_order_relaxed))
		wf_timer_remove(r);
	if (r->what == WF_SEND)
		leave_sender(r);
	if (limiter)
		atomic_fetch_sub_explicit(&limiter->under_way, 1, memory_order_relaxed);
	if (r->told) {
		bool lives = r->carrier && !r->detached;

		if (r->carrier && r->detached) {        /* a repeating one ends: it carries its own end */
			wf_req_put(r->carrier);
			r->carrier = NULL;
		}
		tell(r, &r->st);
		if (!lives)
			return;
	} else if (r->detached) {
		if (r->st.buf && (r->what == WF_RECV || err < 0))
			wf_buf_release(r->st.buf);
		wf_req_put(r);
		return;
	}
	wf_req_over_locked(r);
}
