/* done.c - the end of a long message, told along with the answer to it.
 *
 * Who sends a long message waits for ENDED, and who receives one often answers at once: then ENDED, which takes a record of its own on the control lane, comes just before the
 * answer, and the answer is later by what that costs. Where the last ones were answered so, ENDED lies in its stream and waits for company there, WF_CONTROL_HELD at most; the first record
 * of another lane says DONE. Lanes break, and DONE with them; ENDED comes in any case, and names nothing if DONE was there before.
 *
 * Habit   Two runs of as many ends, each of which a send followed within ANSWERED, make a third likely: the end of its last message waits, those before it are told at once. One that
 *         waited in vain costs its sender WF_CONTROL_HELD: then some are told at once, twice as many each time.
 */
#include "base/cpu.h"
#include "peer/inner.h"

#define ANSWERED (30 * WEFT_MS / 1000)
#define HABIT 2u
#define MISSES 8u                       /* in a row, beyond which no more are told at once: 255 */

/* Is this end to wait? One at a time: the end of another is company enough. */
static bool waits(struct wf_remote *r)
{
	if (r->done_rest) {
		r->done_rest--;
		return false;
	}
	return r->done_habit >= HABIT && r->done_run == r->done_len && !r->done && wf_control_may_wait(r);
}

void wf_done_tell(struct wf_remote *r, uint64_t send, bool last)
{
	unsigned char frame[16];

	r->done_run++;
	if (last)
		r->done_at = r->now;
	if (!last || !waits(r)) {
		wf_remote_answer(r, send, 0);
		return;
	}
	r->done = send;
	wf_wire_put(frame, WF_WIRE_ENDED, 0, 0, send);
	wf_control_later(r, frame, sizeof(frame));
}

void wf_done_answered(struct wf_remote *r)
{
	if (!r->done_at)
		return;
	if (r->now - r->done_at > ANSWERED)
		r->done_habit = 0;
	else if (r->done_run != r->done_len)
		r->done_habit = 1;
	else
		r->done_habit += r->done_habit < HABIT;
	r->done_len = r->done_run;
	r->done_run = 0;
	r->done_at = 0;
}

unsigned char *wf_done_along(struct wf_remote *r, const struct wf_lane *lane, unsigned char *to)
{
	uint64_t send = r->done;

	if (wf_likely(!send))
		return to;
	r->done = 0;
	if (r->out[0]->lane == lane) {          /* ENDED itself leaves */
		if (r->done_at && r->now - r->done_at >= WF_CONTROL_HELD) {
			r->done_misses += r->done_misses < MISSES;
			r->done_rest = (1u << r->done_misses) - 1;
			r->done_habit = r->done_run = 0;
		}
		return to;
	}
	r->done_misses = 0;
	r->counted_done++;
	wf_wire_put(to, WF_WIRE_DONE, 0, 0, send);
	return to + 16;
}
