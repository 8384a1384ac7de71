/* expect.c - see expect.h. */
#include "port/expect.h"

#include <stdlib.h>
#include <string.h>

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

WF_HOT bool wf_expect_lends(struct wf_expect *x, size_t n)
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

WF_HOT bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g)
{
	struct weft_port *p = x->at;

	if (!wf_expect_meant(x, g))
		return false;
	wf_door_enter_owner(&p->door);
	if (wf_expect_first_locked(p))
		wf_expect_come_locked(x, g);
	wf_door_leave_owner(&p->door);
	return x->came;
}
