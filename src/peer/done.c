/* done.c - the end of a long message, told along with the answer to it.
 *
 * Who sends a long message waits for ENDED, and who receives one often answers at once: then ENDED, which takes a record of its own on the control lane, comes just before the
 * answer, and the answer is later by what that costs. Where the last ones were answered so, ENDED lies in its stream and waits for company there, HELD_MOST at most; the first record
 * of another lane says DONE. Lanes break, and DONE with them; ENDED comes in any case, and names nothing if DONE was there before.
 *
 * Habit   Two ends in a row that a send followed within ANSWERED make a third likely. Only the last counts of several messages that are received at once. One that waited in vain costs its sender HELD_MOST: then some are told at once, twice
 *         as many each time.
 */
#include "base/cpu.h"
#include "peer/inner.h"

#define ANSWERED (30 * WEFT_MS / 1000)
#define HELD_MOST (WEFT_MS / 4)         /* as chunks are acknowledged at the latest: no further timer */
#define HABIT 2u
#define MISSES 8u                       /* in a row, beyond which no more are told at once: 255 */

/* Is the next end to wait? One at a time: the end of another is company enough. */
static bool waits(struct wf_remote *r)
{
	const struct wf_out *out = r->out[0];

	if (r->done_at)
		r->done_habit = 0;              /* nothing followed the last one */
	if (r->done_rest) {
		r->done_rest--;
		return false;
	}
	return r->done_habit >= HABIT && !r->done && out && out->lane && !out->waits && out->lane != r->slots[1].lane && !r->closing;
}

void wf_done_tell(struct wf_remote *r, uint64_t send, bool last)
{
	bool wait;

	if (!last) {
		wf_remote_answer(r, send, 0);
		return;
	}
	wait = waits(r);
	r->done_at = r->now;
	if (!wait) {
		wf_remote_answer(r, send, 0);
		return;
	}
	r->done = send;
	wf_control_later(r, WF_WIRE_ENDED, 0, send, r->now + HELD_MOST);
}

void wf_done_answered(struct wf_remote *r)
{
	if (!r->done_at)
		return;
	r->done_habit = r->now - r->done_at > ANSWERED ? 0 : r->done_habit < HABIT ? r->done_habit + 1 : HABIT;
	r->done_at = 0;
}

unsigned char *wf_done_along(struct wf_remote *r, const struct wf_lane *lane, unsigned char *to)
{
	uint64_t send = r->done;

	if (wf_likely(!send))
		return to;
	r->done = 0;
	if (r->out[0]->lane == lane) {          /* ENDED itself leaves */
		if (r->done_at && r->now - r->done_at >= HELD_MOST) {
			r->done_misses += r->done_misses < MISSES;
			r->done_rest = (1u << r->done_misses) - 1;
		}
		return to;
	}
	r->done_misses = 0;
	r->counted_done++;
	wf_wire_put(to, WF_WIRE_DONE, 0, 0, send);
	return to + 16;
}
