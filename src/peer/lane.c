/* lane.c - lanes: up, down, silent, suspected, made again.
 *
 * Slots   One per lane there should be: control, and head and bulk of each rail; and the heads of all rails, while one of those is in doubt. What is needed and not there is opened: the first try at once,
 *         then with a back-off of 10 ms to 1 s and jitter. Every try has a higher generation. Both ends may try at once: the higher generation
 *         stays, of equal ones the one begun by the smaller process number; the other is closed, and what rode there moves as from any lane.
 * Silence While something is out on a lane an answer is expected within 4 times the predicted time, at least 200 ms. At half of that all lanes are
 *         probed. A lane that is late while another has answered since is suspected: streams and chunks leave it, and come back when it speaks;
 *         after a second of suspicion it is closed and made anew. When all are silent nothing moves: the other end may be stopped. A fresh
 *         control lane is tried at half the deadline, for old connections may hang longer than the network does. Past the deadline the session
 *         is over.
 * Rest    With nothing expected of the other end a lane is probed every 30 s.
 * Sleep   Who is called much later than asked was itself stopped, and gives the others the time it lost.
 */
#include <errno.h>
#include <string.h>

#include "peer/inner.h"

#define LATE_LEAST (200 * WEFT_MS)
#define SUSPECT_MOST WEFT_S
#define REST_PROBE (30 * WEFT_S)
#define BACKOFF_LEAST (10 * WEFT_MS)
#define BACKOFF_MOST WEFT_S
#define OPEN_LATE (100 * WEFT_MS)       /* a lane that is not up by then: other rails are asked */
#define OWN_PAUSE (100 * WEFT_MS)
#define LAST_WORDS (500 * WEFT_MS)      /* of a dead process, to arrive */

bool wf_lane_good(const struct wf_lane *lane)
{
	return lane && lane->up && !lane->closing && !lane->suspect;
}

static uint32_t lane_bit(const struct wf_remote *r, const struct wf_lane *lane)
{
	return UINT32_C(1) << (lane - r->lanes);
}

void wf_lane_wake(struct wf_remote *r, struct wf_lane *lane)
{
	if (lane->active || lane->closing || !lane->up)
		return;
	lane->active = true;
	r->write_due |= lane_bit(r, lane);
}

void wf_remote_write(struct wf_remote *r, struct wf_lane *lane)
{
	if (lane->up && !lane->closing)
		r->write_due |= lane_bit(r, lane);
}

/* No stream is sent on @lane any more. Idle ones only: @idle. */
static void detach(struct wf_remote *r, struct wf_lane *lane, bool idle)
{
	for (unsigned i = 0; i < WF_STREAMS; i++) {
		struct wf_out *out = r->out[i];

		if (out && out->lane == lane && (!idle || out->rt.acked == out->rt.tail))
			wf_out_move(r, out, NULL);
	}
}

void wf_lane_drop(struct wf_remote *r, struct wf_lane *lane)
{
	if (!lane->up || lane->closing)
		return;
	lane->closing = true;
	r->close_due |= lane_bit(r, lane);
	r->write_due &= ~lane_bit(r, lane);
	if (r->slots[lane->slot].lane == lane)
		r->slots[lane->slot].lane = NULL;
	detach(r, lane, false);
	wf_bulk_again(r, lane);
	wf_credit_lost(r);
	r->dirty = true;
}

/* Streams at home on @lane come back with their next frame, those that are busy now. */
void wf_lane_home(struct wf_remote *r, struct wf_lane *lane)
{
	for (unsigned i = 0; i < WF_STREAMS; i++) {
		struct wf_out *out = r->out[i];

		if (out && out->lane && out->lane != lane && out->rt.acked == out->rt.tail && wf_stream_home(r, i) == lane->slot)
			wf_out_move(r, out, NULL);
	}
	r->dirty = true;
}

void wf_lane_speaks(struct wf_remote *r, struct wf_lane *lane, weft_time now)
{
	r->now = now;
	lane->suspect = false;
	wf_lane_moved(r, lane);
	wf_lane_home(r, lane);
}

/* ---- up and down ---- */

/* Does @lane stay beside one of the same slot, generation @gen, begun here if @mine? */
static bool stays(const struct wf_remote *r, const struct wf_lane *lane, uint32_t gen, bool mine)
{
	if (gen != lane->gen)
		return lane->gen > gen;
	return mine != lane->mine && lane->mine == (r->conf.me < r->conf.them);
}

struct wf_lane *wf_remote_lane_up(struct wf_remote *r, uint32_t slot, uint32_t gen, bool mine, weft_time now)
{
	struct wf_lane_slot *s = slot < 1 + 2 * r->conf.rails ? &r->slots[slot] : NULL;
	struct wf_lane *lane = r->lanes;

	r->now = now;
	if (!s)
		return NULL;
	if (mine)
		s->opening = false;
	r->dirty = true;
	while (lane < r->lanes + WF_LANES && lane->up)
		lane++;
	if (r->err || lane == r->lanes + WF_LANES || (s->lane && stays(r, s->lane, gen, mine)))
		return NULL;
	if (s->lane)
		wf_lane_drop(r, s->lane);
	struct wf_flying *flying = lane->flying;

	memset(lane, 0, sizeof(*lane));
	lane->flying = flying;
	lane->slot = (uint8_t)slot;
	lane->kind = !slot ? WF_LANE_CONTROL : slot & 1 ? WF_LANE_HEAD : WF_LANE_BULK;
	lane->rail = (uint8_t)(slot ? (slot - 1) / 2 : 0);
	lane->up = true;
	lane->mine = mine;
	lane->gen = gen;
	lane->stream = -1;
	lane->up_at = lane->heard = r->heard = now;
	lane->ping_due = true;          /* how far it is */
	s->lane = lane;
	wf_lane_home(r, lane);
	if (gen > s->gen)
		s->gen = gen;
	wf_lane_wake(r, lane);
	return lane;
}

static void back_off(struct wf_remote *r, struct wf_lane_slot *s)
{
	weft_time wait = BACKOFF_LEAST << (s->tries < 8 ? s->tries : 8);

	if (wait > BACKOFF_MOST)
		wait = BACKOFF_MOST;
	r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	s->retry_at = r->now + wait / 2 + (weft_time)((r->random >> 33) % (uint64_t)wait);
	s->tries++;
	r->dirty = true;
}

void wf_remote_open_failed(struct wf_remote *r, uint32_t slot, weft_time now)
{
	r->now = now;
	r->slots[slot].opening = false;
	back_off(r, &r->slots[slot]);
}

void wf_remote_lane_down(struct wf_remote *r, struct wf_lane *lane, weft_time now)
{
	struct wf_lane_slot *s = &r->slots[lane->slot];

	r->now = now;
	wf_lane_drop(r, lane);
	r->close_due &= ~lane_bit(r, lane);
	if (lane->writing)
		wf_remote_wrote(r, lane, now);
	for (unsigned i = 0; i < WF_STREAMS; i++)
		if (r->in[i].lane == lane)
			r->in[i].lane = NULL;
	wf_landing_unclaim(r, lane);
	lane->up = false;
	/* One that falls over at once is not tried at once. */
	if (now - lane->up_at >= WEFT_S) {
		s->tries = 0;
		s->retry_at = now;
	} else if (!s->lane && !s->opening) {
		if (s->tries)
			back_off(r, s);
		else
			s->retry_at = now, s->tries = 1;
	}
	r->dirty = true;
}

/* ---- silence ---- */

static uint64_t outstanding(const struct wf_remote *r, const struct wf_lane *lane)
{
	uint64_t sum = lane->chunk_sent - lane->chunk_acked + lane->pinged;

	for (uint64_t m = r->unacked; m; m &= m - 1) {
		const struct wf_out *out = r->out[__builtin_ctzll(m)];

		if (out->lane == lane)
			sum += out->rt.sent - out->rt.acked + out->waits;
	}
	return sum;
}

static weft_time patience(const struct wf_remote *r, const struct wf_lane *lane)
{
	weft_time t = lane->rtt;

	if (lane->rate)
		t += (weft_time)(outstanding(r, lane) * 1000 / (lane->rate / 1000000 + 1));
	return 4 * t > LATE_LEAST ? 4 * t : LATE_LEAST;
}

WF_HOT void wf_lane_expect(struct wf_remote *r, struct wf_lane *lane)
{
	if (lane->since)
		return;
	lane->since = r->now;
	wf_arm(r, r->now + LATE_LEAST / 2);
}

WF_HOT void wf_lane_moved(struct wf_remote *r, struct wf_lane *lane)
{
	lane->since = outstanding(r, lane) ? r->now : 0;
	if (lane->since)
		wf_arm(r, r->now + LATE_LEAST / 2);
}

void wf_lane_probe(struct wf_remote *r, struct wf_lane *lane)
{
	if (lane->pinged || lane->ping_due || lane->closing)
		return;
	lane->ping_due = true;
	wf_lane_wake(r, lane);
}

static void suspect(struct wf_remote *r, struct wf_lane *lane)
{
	lane->suspect = true;
	lane->suspect_at = r->now;
	r->counted_suspects++;
	detach(r, lane, true);
	wf_bulk_again(r, lane);
}

static bool other_answers(const struct wf_remote *r, const struct wf_lane *lane)
{
	for (const struct wf_lane *o = r->lanes; o < r->lanes + WF_LANES; o++)
		if (o != lane && o->up && !o->closing && o->heard > lane->since)
			return true;
	return false;
}

static void watch(struct wf_remote *r, struct wf_lane *lane)
{
	weft_time rest = wf_busy(r) ? r->conf.deadline / 4 : REST_PROBE, limit = patience(r, lane);

	if (lane->ack_at && r->now >= lane->ack_at) {
		lane->ack_now = true;
		wf_lane_wake(r, lane);
	} else if (lane->ack_at) {
		wf_arm(r, lane->ack_at);
	}
	if (!lane->since) {
		if (r->now - lane->heard >= rest)
			wf_lane_probe(r, lane);
		else
			wf_arm(r, lane->heard + rest);
		return;
	}
	if (r->now - lane->since < limit / 2) {
		wf_arm(r, lane->since + limit / 2);
		return;
	}
	for (struct wf_lane *o = r->lanes; o < r->lanes + WF_LANES; o++)
		if (o->up)
			wf_lane_probe(r, o);
	if (lane->suspect) {
		/* Or it is in the middle of bytes that have gone another way, and whose sender waits for them to be free. */
		if (r->now - lane->suspect_at >= SUSPECT_MOST || (lane->pinned && lane->pinned->state == WF_S_OVER))
			wf_lane_drop(r, lane);
		else
			wf_arm(r, lane->suspect_at + SUSPECT_MOST);
	} else if (r->now - lane->since < limit) {
		wf_arm(r, lane->since + limit);
	} else if (other_answers(r, lane)) {
		suspect(r, lane);
		wf_arm(r, r->now + SUSPECT_MOST);
	} else {
		wf_arm(r, r->now + LATE_LEAST / 4);     /* somebody may speak */
	}
}

/* ---- what there should be ---- */

/* Is what belongs to slot @i better sent elsewhere meanwhile? */
static bool in_doubt(const struct wf_remote *r, uint32_t i)
{
	const struct wf_lane_slot *s = &r->slots[i];

	if (!s->lane)
		return s->tries || (s->opening && r->now - s->began >= OPEN_LATE);
	return s->lane->suspect || (s->lane->since && r->now - s->lane->since >= patience(r, s->lane) / 2);
}

static uint32_t wanted(struct wf_remote *r)
{
	uint32_t slots = (wf_busy(r) ? 1 : 0) | wf_ping_wants(r), heads = 0;

	for (uint64_t m = r->unacked; m; m &= m - 1)
		slots |= UINT32_C(1) << wf_stream_home(r, (unsigned)__builtin_ctzll(m));
	for (uint32_t rail = 0; rail < r->conf.rails; rail++)
		heads |= UINT32_C(1) << (1 + 2 * rail);
	/* Of several rails the others stand in, before it is known whether that is needed. */
	for (uint32_t m = r->conf.rails > 1 ? slots : 0; m; m &= m - 1)
		if (in_doubt(r, (uint32_t)__builtin_ctz(m)))
			slots |= heads;
	if (wf_bulk_wanted(r))
		for (uint32_t rail = 0; rail < r->conf.rails; rail++)
			slots |= UINT32_C(1) << (2 + 2 * rail);
	return slots;
}

static void open_lanes(struct wf_remote *r, bool silent)
{
	for (uint32_t m = wanted(r); m; m &= m - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(m);
		struct wf_lane_slot *s = &r->slots[i];

		if (s->opening || (s->lane && !(silent && !i))) {
			if (s->opening && r->conf.rails > 1 && r->now - s->began < OPEN_LATE)
				wf_arm(r, s->began + OPEN_LATE);
			continue;
		}
		if (r->now < s->retry_at) {
			wf_arm(r, s->retry_at);
			continue;
		}
		s->opening = true;
		s->began = r->now;
		s->gen++;
		r->open_due |= UINT32_C(1) << i;
		if (r->conf.rails > 1)
			wf_arm(r, s->began + OPEN_LATE);
	}
}

/* We were called @late. */
static void forgive(struct wf_remote *r, weft_time late)
{
	if (r->busy_since)
		r->busy_since += late;
	r->heard += late;
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++) {
		lane->heard += late;
		if (lane->since)
			lane->since += late;
		if (lane->suspect)
			lane->suspect_at += late;
	}
}

void wf_remote_doomed(struct wf_remote *r, weft_time now)
{
	r->now = now;
	if (!r->doomed)
		r->doomed = now + LAST_WORDS;
	r->dirty = true;
}

void wf_remote_found(struct wf_remote *r, weft_time now)
{
	r->now = now;
	for (struct wf_lane_slot *s = r->slots; s < r->slots + WF_LANE_SLOTS; s++)
		if (!s->lane && !s->opening)
			s->retry_at = now, s->tries = 0;
	r->dirty = true;
}

/* The kernel of its host closes its lanes behind what it had written. True: that was all. */
static bool run_doom(struct wf_remote *r)
{
	bool up = false;

	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		up |= lane->up;
	if (!up || r->now >= r->doomed) {
		wf_remote_end(r, -ECONNRESET);
		return true;
	}
	wf_arm(r, r->doomed);
	return false;
}

void wf_lanes_run(struct wf_remote *r)
{
	weft_time quiet;

	if (r->wake != WEFT_FOREVER && r->now - r->wake > OWN_PAUSE)
		forgive(r, r->now - r->wake);
	r->wake = WEFT_FOREVER;
	if (r->doomed && run_doom(r))
		return;
	if (!wf_busy(r))
		r->busy_since = 0;
	else if (!r->busy_since)
		r->busy_since = r->now;
	quiet = r->now - (r->heard > r->busy_since ? r->heard : r->busy_since);
	if (r->busy_since && quiet >= r->conf.deadline) {
		wf_remote_end(r, -EHOSTUNREACH);
		return;
	}
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		if (lane->up && !lane->closing)
			watch(r, lane);
	if (!r->doomed)
		open_lanes(r, r->busy_since && quiet >= r->conf.deadline / 2);
	wf_streams_place(r);
	wf_ping_run(r);
	if (r->busy_since) {
		wf_arm(r, r->now + r->conf.deadline - quiet);
		if (quiet < r->conf.deadline / 2)
			wf_arm(r, r->now + r->conf.deadline / 2 - quiet);
	}
}
