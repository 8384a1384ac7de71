/* credit.c - how much the other end may send unasked.
 *
 * Both directions count the same costs, from the beginning of the session: a message's bytes and WF_COST. The receiver tells a limit, the sender
 * keeps its sum below. Sums only grow, so a CREDIT that comes twice or late does no harm; what was promised is never taken back. Until the first
 * CREDIT the limit is WF_CREDIT_FLOOR. Memory that is free again raises the limit, in steps of a quarter of the window.
 *
 * A CREDIT costs a record of its own on the control lane, so where messages go both ways a record that leaves anyway takes the limit along (LIMIT), in
 * steps of an eighth, or always where there is room for it (brief_body.h): then there is nothing left to be told by CREDIT. While the other end has half of the window left it can wait for that. A lane that breaks may have lost it: what it said counts as promised, not as told.
 */
#include "base/cpu.h"
#include "peer/inner.h"

WF_HOT void wf_credit_tell(struct wf_remote *r)
{
	uint64_t limit = r->freed + r->conf.window;

	if (!wf_credit_risen(r, r->conf.window / 4) || r->bye_out)       /* nothing follows a BYE: nobody would acknowledge it */
		return;
	if (wf_credit_known(r) > r->arrived && wf_credit_known(r) - r->arrived >= r->conf.window / 2)
		return;
	r->told = limit;
	wf_credit_promise(r, limit);
	wf_control(r, WF_WIRE_CREDIT, 0, limit);
}

WF_HOT unsigned char *wf_credit_along(struct wf_remote *r, unsigned char *to)
{
	if (!wf_credit_risen(r, r->conf.window / 8))
		return to;
	wf_wire_put(to, WF_WIRE_LIMIT, 0, 0, wf_credit_hinted(r));
	return to + 16;
}

void wf_credit_lost(struct wf_remote *r)
{
	r->hinted = 0;
	if (!r->err)
		wf_credit_tell(r);
}

int wf_credit_got(struct wf_remote *r, uint64_t limit)
{
	if (limit <= r->limit)
		return 0;
	r->limit = limit;
	if (!wf_list_empty(&r->backlogs))
		wf_backlogs_drain(r);
	return 0;
}

void wf_remote_freed(struct wf_remote *r, uint64_t cost)
{
	r->freed += cost;
	if (!r->err)
		wf_credit_tell(r);
}

void wf_remote_window(struct wf_remote *r, uint64_t bytes)
{
	r->conf.window = bytes < WF_CREDIT_FLOOR ? WF_CREDIT_FLOOR : bytes;
	if (!r->err)
		wf_credit_tell(r);
}
