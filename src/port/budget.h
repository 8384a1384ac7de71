/* budget.h - how many bytes of messages nobody asked for yet this process may hold.
 *
 * Charged when a message becomes unexpected (a large buffer already when it is sent, so that a mailbox
 * full of them cannot burst it), given back when it is received. Taking fails above three quarters: the
 * last quarter is for what is in a mailbox when its port finds out. The port is then marked TIGHT, and what
 * comes to it is announced: it stays with its sender.
 */
#ifndef WF_PORT_BUDGET_H
#define WF_PORT_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cpu.h"

struct wf_budget {
	_Atomic size_t used;            /* any thread; relaxed: a count, it publishes nothing */
	size_t limit, soft, large;      /* set at init, then constant */
	size_t eager;                   /* up to this a send is copied and done */
	size_t eager_far;               /* the same to another process of this host: what is asked for first waits for that one to look */
	bool big;                       /* a big ring's worth fits into the last quarter */
};

extern struct wf_budget wf_budget WF_HERE;

void wf_budget_init(size_t limit, size_t eager);

static inline bool wf_budget_full(size_t n)
{
	return atomic_load_explicit(&wf_budget.used, memory_order_relaxed) + n > wf_budget.soft;
}

static inline void wf_budget_take(size_t n)
{
	atomic_fetch_add_explicit(&wf_budget.used, n, memory_order_relaxed);
}

static inline void wf_budget_give(size_t n)
{
	atomic_fetch_sub_explicit(&wf_budget.used, n, memory_order_relaxed);
}

#endif
