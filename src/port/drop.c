/* drop.c - see drop.h. */
#include "port/drop.h"

#include "port/context.h"
#include "port/expect.h"
#include "port/outgoing.h"
#include "port/self.h"
#include "port/table.h"

/* No room: its owner gets more cells, when it next looks. */
static void wants_more(struct weft_port *p)
{
	if (!atomic_load_explicit(&p->big_wanted, memory_order_relaxed))
		atomic_store_explicit(&p->big_wanted, true, memory_order_relaxed);
}

static uint32_t take(struct weft_port *p, uint16_t who, uint32_t most, struct wf_seats *ret_seats)
{
	ret_seats->at = p;
	switch (wf_ring_claim_row(&p->ring, who, 0, most, &ret_seats->row)) {
	case WF_CLAIMED:
		return ret_seats->row.n;
	case WF_CLAIM_FULL:
		wants_more(p);
		return 0;
	default:
		return 0;
	}
}

WF_HOT uint32_t wf_seats_take(weft_id to, uint32_t most, struct wf_seats *ret_seats)
{
	uint16_t who;
	struct weft_port *p = wf_port_find(to, &who);

	return p && p == wf_self.port ? take(p, who, most, ret_seats) : 0;
}

WF_HOT void wf_seats_told(const struct wf_seats *s)
{
	struct wf_parker *sleeper = wf_ring_sleeper(&s->at->ring);

	if (wf_unlikely(sleeper != NULL))
		wf_bell(s->at, sleeper);
}

WF_HOT bool wf_drop_in(const struct wf_guest *g)
{
	struct wf_seats seat;
	struct weft_port *p;
	uint16_t who;

	if (wf_self.expects && wf_expect_meets(wf_self.expects, g))
		return true;
	if (g->len > WF_BODY || !wf_self.port)
		return false;
	if (g->context) {
		if (wf_route(g->to, g->context, NULL, &p, &who) < 0 || !wf_port_mine(p))
			return false;
	} else {
		p = wf_port_find(g->to, &who);
		if (p != wf_self.port)
			return false;
	}
	if (!take(p, who, 1, &seat))
		return false;
	wf_seats_fill(&seat, 0, 1, g->src, g->index, g->tag, g->payload, g->len);
	wf_seats_told(&seat);
	return true;
}
