/* brief_one.h - one short message that is told as those are that were read as the last one (peer/brief.h), but at once. */
#ifndef TESTS_SIM_BRIEF_ONE_H
#define TESTS_SIM_BRIEF_ONE_H

#include "peer/brief.h"

/* It lies at @at of stream @id, takes @step bytes there and costs @cost. False: nothing happened. */
static inline bool brief_one(struct wf_remote *r, struct wf_lane *lane, uint32_t id, uint32_t epoch, uint64_t at, uint64_t step, uint64_t cost, weft_time now)
{
	struct wf_brief_row row = { .lane = lane, .id = id, .step = step, .cost = cost };
	uint64_t next, left;

	if (!wf_brief_begins(r, lane, id, epoch, &next, &left) || at != next || cost > left)
		return false;
	wf_brief_told(r, &row, 1, now);
	return true;
}

#endif
