/* budget.c - what follows from the size of the budget. See budget.h. */
#include "port/budget.h"

#include "port/port.h"

struct wf_budget wf_budget;

void wf_budget_init(size_t limit, size_t eager)
{
	size_t quarter = limit / 4, share = quarter / WF_CELLS_SMALL;

	share = share > sizeof(struct wf_record) ? share - sizeof(struct wf_record) : 0;
	wf_budget.limit = limit;
	wf_budget.soft = limit - quarter;
	wf_budget.eager = eager < share ? eager : share;
	wf_budget.eager_far = 2 * wf_budget.eager;
	wf_budget.large = quarter / WF_CELLS_BIG;
	wf_budget.big = WF_CELLS_BIG * (wf_budget.eager + sizeof(struct wf_record)) <= quarter;
	atomic_store_explicit(&wf_budget.used, 0, memory_order_relaxed);
}
