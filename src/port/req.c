/* req.c - the calls on requests. request.c has their life, cancel.c the taking back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "port/drain.h"
#include "port/listener.h"
#include "port/request.h"
#include "port/tell.h"
#include "port/wait.h"

static inline bool hot(weft_time until)
{
	return until != WEFT_NOW && !wf_self.in_callback;
}

int weft_req_wait(struct weft_req **req, weft_time until, struct weft_status *ret_st)
{
	struct weft_req *r;
	int err = wf_enter();

	if (wf_unlikely(err < 0))
		return err;
	if (wf_unlikely(!req))
		return weft_fail(-EINVAL, "req is NULL");
	r = *req;
	if (!r)
		return 0;
	if (!wf_req_over(r) && !(hot(until) && wf_await_hot(req, 1))) {
		err = wf_await(req, 1, 1, until);
		if (err == -EAGAIN || err == -ETIMEDOUT)
			return wf_late(until);
		if (err < 0)
			return err;
	}
	*req = NULL;
	return wf_req_collect(r, ret_st);
}

int weft_req_wait_some(struct weft_req **reqs, int n, int min, int max, weft_time until, int *ret_which,
		       struct weft_status *ret_st)
{
	int there = 0, taken = 0, err = wf_enter();

	if (err < 0)
		return err;
	if (n < 0 || min < 0 || max < min || (max < 1 && n > 0) || (!reqs && n > 0))
		return weft_fail(-EINVAL, "wait_some: n %d, min %d, max %d", n, min, max);
	for (int i = 0; i < n; i++)
		there += reqs[i] != NULL;
	min = min < there ? min : there;
	if (there == 0)
		return 0;
	if (min != there || !hot(until) || !wf_await_hot(reqs, n))
		err = wf_await(reqs, n, min, until);
	if (err < 0)
		return err == -EAGAIN || err == -ETIMEDOUT ? wf_late(until) : err;
	for (int i = 0; i < n && taken < max; i++) {
		struct weft_req *r = reqs[i];

		if (!r || !wf_req_over(r))
			continue;
		if (ret_which)
			ret_which[taken] = i;
		wf_req_collect(r, ret_st ? &ret_st[taken] : NULL);
		reqs[i] = NULL;
		taken++;
	}
	return taken;
}

int weft_req_peek(struct weft_req *req, struct weft_status *ret_st)
{
	int err = wf_enter();

	if (err < 0)
		return err;
	if (!req)
		return weft_fail(-EINVAL, "req is NULL");
	if (!wf_req_over(req))
		wf_await(&req, 1, 1, WEFT_NOW);
	if (!wf_req_over(req))
		return weft_fail(-EAGAIN, "not over yet");
	if (ret_st)
		*ret_st = req->st;
	return WEFT_DONE;
}

int weft_req_free(struct weft_req *req)
{
	bool over;

	if (!req)
		return 0;
	if (!wf_req_over(req)) {
		/* A request that is not over keeps its port open; one that ended meanwhile is found over. */
		struct weft_port *inside = wf_req_enter(req);

		over = wf_req_over(req);
		if (!over)
			req->detached = req->dirty = true;
		wf_req_leave(inside);
		if (!over)
			return 0;
	}
	wf_req_collect(req, NULL);
	return 0;
}

int weft_req_new(weft_done_fn done, struct weft_queue *queue, void *user, struct weft_req **ret_req)
{
	struct weft_req *r;
	int err = wf_enter();

	if (err < 0)
		return err;
	if (!ret_req || (done && queue))
		return weft_fail(-EINVAL, ret_req ? "done and queue" : "ret_req is NULL");
	if (done) {
		err = wf_listener_start();
		if (err < 0)
			return err;
	}
	r = wf_req_new(WF_USER);
	if (!r)
		return -ENOMEM;
	if (done || queue) {
		r->carrier = wf_req_new(WF_USER);
		if (!r->carrier) {
			wf_req_put(r);
			return -ENOMEM;
		}
		r->told = true;
		r->done = done;
		r->queue = queue;
		if (queue)
			wf_queue_name(queue);
	}
	r->st.user = user;
	*ret_req = r;
	return 0;
}

int weft_req_complete(struct weft_req *req, const struct weft_status *st)
{
	struct weft_status own;
	int err = wf_enter();

	if (err < 0)
		return err;
	if (!req || req->what != WF_USER)
		return weft_fail(-EINVAL, req ? "not a request of weft_req_new" : "req is NULL");
	wf_lock(&wf_user_lock);
	if (wf_req_over(req)) {
		wf_unlock(&wf_user_lock);
		return weft_fail(-EALREADY, "it was ended before");
	}
	if (st) {
		own = *st;
		own.user = req->st.user;
		req->st = own;
	}
	wf_req_end_locked(req, req->st.err);
	wf_unlock(&wf_user_lock);
	return 0;
}
