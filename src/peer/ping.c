/* ping.c - how far the other process is: so many round trips on each lane, one lane after the other.
 *
 * A round is a PING and its PONG, as lanes send them for themselves, so the other end needs nothing new: its weft answers whatever its program
 * does. Nothing is expected of it: one that is silent costs the session nothing. A lane that is not there is opened; one that breaks is made
 * again, and goes on where it was. What was measured stays until the next time, for who reads it.
 */
#include <errno.h>
#include <stdlib.h>

#include "peer/inner.h"

#define PING_TIME (10 * WEFT_S)         /* then it is over, whatever has come */

int wf_remote_ping(struct wf_remote *r, uint32_t name, uint32_t count, weft_time now)
{
	struct wf_ping *p = r->ping;

	if (r->err)
		return r->err;
	if (!p)
		p = r->ping = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->over = false;
	p->name = name;
	p->count = count < WF_PINGS ? count : WF_PINGS;
	p->slot = 0;
	p->since = now;
	p->until = now + PING_TIME;
	for (unsigned i = 0; i < WF_LANE_SLOTS; i++)
		p->got[i] = 0;
	r->dirty = true;
	return 0;
}

uint32_t wf_ping_wants(const struct wf_remote *r)
{
	return r->ping && !r->ping->over ? UINT32_C(1) << r->ping->slot : 0;
}

void wf_ping_run(struct wf_remote *r)
{
	struct wf_ping *p = r->ping;

	if (!p || p->over)
		return;
	if (r->now >= p->until || !p->count) {
		p->over = true;
		return;
	}
	wf_arm(r, p->until);
	if (r->slots[p->slot].lane)
		wf_lane_probe(r, r->slots[p->slot].lane);
}

void wf_ping_answered(struct wf_remote *r, struct wf_lane *lane, weft_time sent)
{
	struct wf_ping *p = r->ping;
	weft_time t = r->now - sent;

	if (!p || p->over || lane->slot != p->slot)
		return;
	if (sent >= p->since)                   /* else one that the lane had sent for itself before */
		p->ns[p->slot][p->got[p->slot]++] = t < UINT32_MAX ? (uint32_t)t : UINT32_MAX;
	if (p->got[p->slot] < p->count) {
		wf_lane_probe(r, lane);
		return;
	}
	p->since = r->now;
	if (++p->slot == 1 + 2 * r->conf.rails) {
		p->slot = 0;
		p->over = true;
	}
	r->dirty = true;
}
