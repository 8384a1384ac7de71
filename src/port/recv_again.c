/* recv_again.c - repeating receives: a message is told, and they are posted again. */
#include <errno.h>
#include <string.h>

#include "port/deliver.h"
#include "port/recv.h"

/* A message went to @r: told by a carrier. False: @r has ended or waits until its memory is free again. */
static bool tell_one_locked(struct weft_req *r, int err)
{
	bool rests = wf_req_rests(r);

	r->st.err = err;
	r->st.flags |= WEFT_ST_MORE;
	if (!wf_req_repeat_locked(r, &r->st, rests)) {
		wf_req_end_locked(r, err);
		return false;
	}
	if (rests)
		return false;           /* the callback runner may have it already */
	r->st.buf = NULL;
	return true;
}

/* Takes one message for @r, or posts it. False: no more to be done here. */
static bool again_once(struct weft_port *p, struct weft_req *r)
{
	struct wf_target t = { .mem = &r->mem, .flags = r->flags, .head_out = r->head_out, .st = &r->st };
	unsigned char want[WEFT_MATCH_HEAD_MAX];
	struct wf_work work = { NULL };
	struct weft_req *send = NULL;
	bool more = false;
	int err;

	memcpy(want, r->a.entry.head, sizeof(want));
	wf_port_enter(p);
	err = r->cancel ? r->cancel : wf_post_locked(p, r, want, &work, &send);
	if (err == 1 && send && (send->a.kind == WF_FAR || send->a.kind == WF_WIRED)) {
		wf_port_leave(p);
		wf_work_do(p, &work);
		wf_recv_fetch(p, r, send);      /* goes on with wf_recv_landed */
		return false;
	}
	if (err == 1 && send) {
		p->pins++;
		wf_port_leave(p);
		err = wf_copy_send(p, send, &t);
		wf_port_enter(p);
		p->pins--;
		err = err < 0 ? err : 1;
	}
	if (err == 1 || (err == -EMSGSIZE && r->flags & WEFT_TRUNCATE))
		more = tell_one_locked(r, err == 1 ? 0 : err);
	else if (err < 0)
		wf_req_end_locked(r, err);
	wf_port_leave(p);
	wf_work_do(p, &work);
	return more;
}

void wf_recv_again(struct weft_req *r)
{
	struct weft_port *p = r->at;

	while (again_once(p, r))
		continue;
}

void wf_recv_resume(struct weft_req *r)
{
	struct weft_port *p = r->at;

	wf_recv_again(r);
	wf_port_enter(p);
	p->pins--;
	wf_port_leave(p);
}

void wf_recv_landed(struct weft_req *r, int err)
{
	struct weft_port *p = r->at;
	bool more = false;

	wf_port_enter(p);
	r->where = WF_TELLING;
	if (err == 0 || err == -EMSGSIZE)
		more = tell_one_locked(r, err);
	else
		wf_req_end_locked(r, err);
	wf_port_leave(p);
	if (more)
		wf_recv_again(r);
	wf_port_enter(p);
	p->pins--;
	wf_port_leave(p);
}
