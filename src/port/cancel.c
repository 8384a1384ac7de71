/* cancel.c - one function knows where a request may be, and what can be done there.
 *
 *   posted              out of the matcher: cancelled
 *   queued              the announcement out of the receiver's queue: cancelled
 *   in the ring, spilled   marked: whoever takes it from there ends it, and that is done here if it can be reached
 *   matched, taken by a probe, being copied, being told: too late
 */
#include "port/cancel.h"

#include <errno.h>

#include "port/deliver.h"
#include "port/push.h"
#include "port/request.h"
#include "port/route.h"
#include "port/wait.h"

static int cancel_posted(struct weft_req *r, int err)
{
	wf_unmatch(r->at, &r->a.entry);
	if (r->told) {
		r->at->told_wants--;
		wf_attend_locked(r->at);
	}
	wf_req_end_locked(r, err);
	return 0;
}

static int cancel_queued(struct weft_req *r, int err)
{
	wf_unmatch(r->at, &r->a.entry);
	r->at->unrequested--;
	wf_end_send_locked(r, err);
	return 0;
}

/* Of those that did not fit it can be taken at once; one in the ring is marked. */
static int cancel_entering(struct weft_req *r, int err)
{
	struct weft_port *p = r->at;
	bool spilled;

	wf_lock(&p->spill_lock);
	spilled = wf_list_has(&r->spill);
	if (spilled) {
		wf_list_del(&r->spill);
		p->spilled--;
	}
	wf_unlock(&p->spill_lock);
	if (spilled)
		wf_end_send_locked(r, err);
	else if (!r->cancel)
		r->cancel = err;
	return !spilled;
}

int wf_cancel_locked(struct weft_req *r, int err)
{
	if (r->what == WF_SEND && r->a.flags & WF_MSG_WIRE && !r->at)
		return r->away ? wf_hosts->cancel_locked(r, err) : -EALREADY;
	if (r->what == WF_SEND && !r->at)       /* to another process */
		return r->push ? wf_push_cancel_locked(r, err) : -EALREADY;
	switch (r->where) {
	case WF_POSTED:
		return cancel_posted(r, err);
	case WF_QUEUED:
		return cancel_queued(r, err);
	case WF_IN_RING:
		return cancel_entering(r, err);
	case WF_COPYING:                /* by and by, from another process: one message more */
	case WF_TELLING:
		if (r->what != WF_RECV || !(r->flags & WEFT_REPEAT))
			return -EALREADY;
		r->cancel = err;        /* its callback runs; it is not posted again */
		return 1;
	default:
		return -EALREADY;
	}
}

/* The mark is found when the announcement leaves the ring: see to it that it does. */
static void flush_mark(struct weft_port *p)
{
	struct wf_work work = { NULL };

	wf_port_enter(p);
	wf_drain_locked(p, &work);
	wf_port_leave(p);
	wf_work_do(p, &work);
}

int weft_req_cancel(struct weft_req *req)
{
	struct weft_port *at = NULL;
	int r = -EALREADY;

	if (!req)
		return weft_fail(-EINVAL, "req is NULL");
	if (wf_enter() < 0)
		return wf_not_in();
	/* F1 with wf_req_collect: it finds us at work and waits, or we find the request over. */
	atomic_fetch_add_explicit(&wf_cancelling, 1, memory_order_relaxed);
	wf_fence_heavy();
	wf_lock(&wf_cancel_lock);
	if (!wf_req_over(req)) {
		struct weft_port *inside = wf_req_enter(req);

		if (wf_req_over(req)) {
			r = -EALREADY;
		} else if (req->what == WF_USER) {
			if (req->where == WF_NOWHERE) {
				wf_req_end_locked(req, -ECANCELED);
				r = 0;
			}
		} else {
			at = req->what == WF_SEND ? req->at : NULL;
			r = wf_cancel_locked(req, -ECANCELED);
		}
		wf_req_leave(inside);
	}
	wf_unlock(&wf_cancel_lock);
	atomic_fetch_sub_explicit(&wf_cancelling, 1, memory_order_relaxed);
	if (r == 1 && at)
		flush_mark(at);
	return r < 0 ? weft_fail(r, "it is over, or about to be") : 0;
}
