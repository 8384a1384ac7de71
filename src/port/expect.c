/* expect.c - see expect.h. */
#include "port/expect.h"

#include <stdlib.h>
#include <string.h>

#include "port/deliver.h"
#include "port/take.h"

static _Atomic size_t likely;                           /* a hint */
static _Thread_local char *kept;                        /* what was in the memory that is lent; WF_EXPECT_LONGEST bytes */

void wf_expect_likely(size_t len)
{
	if (atomic_load_explicit(&likely, memory_order_relaxed) != len)
		atomic_store_explicit(&likely, len, memory_order_relaxed);
}

bool wf_expect_may_come(size_t room)
{
	size_t len = atomic_load_explicit(&likely, memory_order_relaxed);

	return len && len <= room && room <= WF_EXPECT_LONGEST;
}

/* Not at the first look: what has come by then need not wait for this. */
static WF_SLOW bool lend(struct wf_expect *x, size_t n)
{
	if (!x->looked) {
		x->looked = true;
		return false;
	}
	if (!kept)
		kept = malloc(WF_EXPECT_LONGEST);
	if (!kept)
		return false;
	memcpy(kept, x->data, n);
	x->lent = n;
	return true;
}

bool wf_expect_lends(struct wf_expect *x, size_t n)
{
	if (n > x->room || x->came || n > WF_EXPECT_LONGEST)
		return false;
	return wf_likely(n <= x->lent) || lend(x, n);
}

void wf_expect_restores(struct wf_expect *x, size_t n)
{
	memcpy(x->data, kept, n);
}

void wf_expect_forget(void)
{
	free(kept);
	kept = NULL;
}

/* Is it for this receive, by what it says? */
static inline bool meant(const struct wf_expect *x, const struct wf_guest *g)
{
	return !x->came && g->len <= x->room && wf_matches(x->want, g->src, g->tag) && g->to == atomic_load_explicit(&x->at->id, memory_order_relaxed) &&
	       g->context == atomic_load_explicit(&x->at->context, memory_order_relaxed);
}

/* [inside] Has nothing come before it? */
static inline bool first_locked(struct weft_port *p)
{
	return wf_likely(wf_usable_locked(p) && !(p->native.wants | p->native.arrivals) && !wf_ring_spilled(&p->ring) && !wf_ring_next(&p->ring.reader));
}

/* [inside] It is in its place. */
static inline void told_locked(struct wf_expect *x, const struct wf_guest *g)
{
	const struct wf_cell_words w = { .len = (uint32_t)g->len, .index = g->index, .src = g->src, .tag = g->tag };

	wf_told(x->st, &w);
	x->at->received++;
	x->at->received_bytes += g->len;
	x->came = true;
}

/* [inside] */
static void come_locked(struct wf_expect *x, const struct wf_guest *g)
{
	if (g->len <= WF_BODY)
		wf_copy_small(x->data, g->payload, g->len);
	else
		wf_copy_large(x->data, g->payload, g->len);
	x->at->copies++;
	told_locked(x, g);
}

WF_HOT bool wf_expect_fits(const struct wf_expect *x, const struct wf_guest *g)
{
	struct weft_port *p = x->at;
	bool first;

	if (!meant(x, g))
		return false;
	wf_door_enter_owner(&p->door);
	first = first_locked(p);
	wf_door_leave_owner(&p->door);
	return first;
}

WF_HOT void wf_expect_came(struct wf_expect *x, const struct wf_guest *g)
{
	wf_door_enter_owner(&x->at->door);
	told_locked(x, g);
	wf_door_leave_owner(&x->at->door);
}

WF_HOT bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g)
{
	struct weft_port *p = x->at;

	if (!meant(x, g))
		return false;
	wf_door_enter_owner(&p->door);
	if (first_locked(p))
		come_locked(x, g);
	wf_door_leave_owner(&p->door);
	return x->came;
}
