/* credit.c - how much the other end may send unasked.
 *
 * Both directions count the same costs, from the beginning of the session: a message's bytes and WF_COST. The receiver tells a limit, the sender
 * keeps its sum below. Sums only grow, so a CREDIT that comes twice or late does no harm; what was promised is never taken back. Until the first
 * CREDIT the limit is WF_CREDIT_FLOOR. Memory that is free again raises the limit, in steps of a quarter of the window.
 */
#include "peer/inner.h"

uint64_t wf_credit_cost(uint64_t len)
{
	return len + WF_COST;
}

void wf_credit_tell(struct wf_remote *r)
{
	uint64_t limit = r->freed + r->conf.window;

	if (limit <= r->told || limit - r->told < r->conf.window / 4)
		return;
	r->told = limit;
	wf_control(r, WF_WIRE_CREDIT, 0, limit);
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
