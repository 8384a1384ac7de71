/* expect.c - see expect.h. */
#include "port/expect.h"

#include "port/deliver.h"
#include "port/take.h"

/* [inside] */
static void come_locked(struct wf_expect *x, const struct wf_guest *g)
{
	const struct wf_cell_words w = { .len = (uint32_t)g->len, .index = g->index, .src = g->src, .tag = g->tag };

	if (g->len <= WF_BODY)
		wf_copy_small(x->data, g->payload, g->len);
	else
		wf_copy_large(x->data, g->payload, g->len);
	wf_told(x->st, &w);
	x->at->received++;
	x->at->received_bytes += g->len;
	x->at->copies++;
	x->came = true;
}

WF_HOT bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g)
{
	struct weft_port *p = x->at;

	if (x->came || g->len > x->room || !wf_matches(x->want, g->src, g->tag))
		return false;
	if (g->to != atomic_load_explicit(&p->id, memory_order_relaxed) || g->context != atomic_load_explicit(&p->context, memory_order_relaxed))
		return false;
	wf_door_enter_owner(&p->door);
	if (wf_likely(wf_usable_locked(p) && !(p->native.wants | p->native.arrivals) && !wf_ring_spilled(&p->ring) && !wf_ring_next(&p->ring.reader)))
		come_locked(x, g);
	wf_door_leave_owner(&p->door);
	return x->came;
}
