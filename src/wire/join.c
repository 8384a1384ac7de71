/* join.c - see join.h: when the lease begins and ends. */
#include "wire/join.h"

#define LEAST 4u                        /* messages for which it is worth it */
#define WARY_MOST 4096u                 /* messages that are sent by the lock, where others always want it */

WF_HOT void wf_join_begin_locked(struct wf_trunk *t, const struct wf_brisk *b)
{
	struct wf_join *j = &t->join;
	uint32_t room = (WF_HELD_MOST - t->held) / ((uint32_t)b->len + WF_HELD_HEAD);

	j->left = wf_row_lends(&t->remote, &j->place);
	if (j->left > room)
		j->left = room;
	if (j->left < LEAST)
		return;
	j->from = wf_self.port;
	j->tag = b->tag;
	j->to = b->to;
	j->len = (uint32_t)b->len;
	wf_lease_lend(&j->lease, wf_self.id, &wf_self.port->joins);
}

WF_HOT void wf_join_over_locked(struct wf_trunk *t)
{
	struct wf_join *j = &t->join;

	if (wf_likely(wf_lease_take_back(&j->lease, wf_self.port ? &wf_self.port->joins : NULL))) {
		j->wary /= 2;
	} else {
		j->wary = j->wary < WARY_MOST / 2 ? 2 * j->wary + 8 : WARY_MOST;
		j->rest = j->wary;
	}
	if (j->n) {
		wf_row_has_joined(&t->remote, j->n);
		t->held += j->n * (j->len + WF_HELD_HEAD);
		t->row += j->n;
		j->joined += j->n;
		j->n = 0;
	}
	t->unclocked = WF_UNCLOCKED;            /* the next one looks at the clock */
}
