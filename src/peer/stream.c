/* stream.c - streams: from this process to the other, surviving lanes.
 *
 * A stream's frames lie in a ring until they are acknowledged (retain.h). It rides on one lane at a time. Riding on another begins with
 * MOVE(stream, epoch + 1) there. If nothing is unacknowledged, frames follow at once; else the sender waits for RESUME with the offset the
 * receiver expects and goes on there. The receiver takes frames only from the lane and epoch of the last MOVE, and only at the offset it
 * expects: what an old lane brings late is neither doubled nor out of order, and no buffer for reordering exists.
 *
 * Stream 0 is control. The others are one per (priority, rail asked for), the urgent first; urgent ones ride on the control lane, the rest on the
 * head lane of their rail, each on another one while that is away.
 */
#include <errno.h>
#include <stdlib.h>

#include "peer/inner.h"

unsigned wf_stream_of(const struct wf_rsend *s)
{
	return 1 + (unsigned)(3 - s->prio) + WF_CLASSES * s->rail;
}

unsigned wf_stream_home(const struct wf_remote *r, unsigned stream)
{
	unsigned rail = stream ? (stream - 1) / WF_CLASSES : 0;

	if (!stream || (!rail && (stream - 1) % WF_CLASSES < 3))
		return 0;
	return rail && rail <= r->conf.rails ? 1 + 2 * (rail - 1) : 1;
}

struct wf_out *wf_out_get(struct wf_remote *r, unsigned stream)
{
	struct wf_out *out = r->out[stream];

	if (out)
		return out;
	out = calloc(1, sizeof(*out));
	if (!out)
		return NULL;
	out->rt.most = stream ? r->conf.retain : WF_RETAIN_MOST;
	out->id = (uint8_t)stream;
	wf_list_init(&out->bodies);
	wf_list_init(&out->waiting);
	wf_list_init(&out->asks);
	out->body = &out->bodies;
	return r->out[stream] = out;
}

/* The lane goes on to where this stream is next to be sent from. */
static void ready(struct wf_remote *r, struct wf_out *out)
{
	if (!out->lane || out->waits || out->rt.sent == out->rt.tail)
		return;
	out->lane->ready |= wf_bit(out->id);
	wf_lane_wake(r, out->lane);
}

/* @n bytes more are in its ring. */
static void append(struct wf_remote *r, struct wf_out *out, size_t n)
{
	wf_expect(r);
	out->rt.tail += n;
	out->used = r->now;
	r->unacked |= wf_bit(out->id);
}

WF_HOT void wf_out_appended(struct wf_remote *r, struct wf_out *out, size_t n)
{
	append(r, out, n);
	if (out->lane)
		ready(r, out);
	else
		r->dirty = true;
}

/* In the ring of the control stream; NULL: the session is over, or about to be. */
static struct wf_out *control_write(struct wf_remote *r, const unsigned char *frame, size_t len)
{
	struct wf_out *out = wf_ends(r) ? NULL : wf_out_get(r, 0);

	if (wf_ends(r))
		return NULL;
	/* Control frames answer what the other end has sent, or are bounded by it: a ring full of them is not honest. All sends end with the session, and one of them may be about to
	 * end further up, or its destination be in use there: so not here. */
	if (!out || !wf_retain_room(&out->rt, WF_WIRE_PAD(len), 0)) {
		r->broken = out ? -EPROTO : -ENOMEM;
		r->dirty = true;
		return NULL;
	}
	wf_retain_put(&out->rt, out->rt.tail, frame, len);
	return out;
}

void wf_control_put(struct wf_remote *r, const unsigned char *frame, size_t len)
{
	struct wf_out *out = control_write(r, frame, len);

	if (out)
		wf_out_appended(r, out, WF_WIRE_PAD(len));
}

void wf_control(struct wf_remote *r, uint8_t type, uint32_t a, uint64_t b)
{
	unsigned char frame[16];

	wf_wire_put(frame, type, 0, a, b);
	wf_control_put(r, frame, sizeof(frame));
}

bool wf_control_may_wait(const struct wf_remote *r)
{
	const struct wf_out *out = r->out[0];

	return out && out->lane && !out->waits && out->lane != r->slots[1].lane && !r->closing;
}

void wf_control_later(struct wf_remote *r, const unsigned char *frame, size_t len)
{
	struct wf_out *out = control_write(r, frame, len);

	if (!out)
		return;
	append(r, out, WF_WIRE_PAD(len));
	out->lane->ready |= wf_bit(0);
	wf_ack_by(r, out->lane, r->now + WF_CONTROL_HELD);
}

void wf_out_move(struct wf_remote *r, struct wf_out *out, struct wf_lane *lane)
{
	uint64_t bit = wf_bit(out->id);

	if (out->lane) {
		out->lane->ready &= ~bit;
		out->lane->moves &= ~bit;
		wf_lane_moved(r, out->lane);
	}
	out->lane = lane;
	if (!lane)
		return;
	out->epoch++;
	out->waits = out->rt.sent > out->rt.acked;
	lane->moves |= bit;
	r->counted_moves++;
	wf_lane_wake(r, lane);
	ready(r, out);
}

WF_HOT int wf_out_acked(struct wf_remote *r, struct wf_out *out, uint64_t next)
{
	if (next < out->rt.acked || next > out->rt.sent)
		return -EPROTO;
	if (next == out->rt.acked)
		return 0;
	out->rt.acked = next;
	while (!wf_list_empty(&out->bodies)) {
		struct wf_rsend *s = wf_of(out->bodies.next, struct wf_rsend, node);

		if (s->end > next)
			break;
		wf_list_del(&s->node);
		s->acked = true;
		wf_send_check(r, s);
	}
	if (out->rt.acked == out->rt.tail) {
		r->unacked &= ~wf_bit(out->id);
		r->dirty |= r->closing || r->seek_refused;
	}
	if (out->lane)
		wf_lane_moved(r, out->lane);
	if (r->stuck & wf_bit(out->id))
		wf_send_retry(r, out);
	return 0;
}

int wf_out_resume(struct wf_remote *r, struct wf_out *out, uint64_t next)
{
	int rc = wf_out_acked(r, out, next);

	if (rc || !out->waits)
		return rc;
	out->waits = false;
	r->counted_resent += out->rt.sent - next;
	out->rt.sent = next;
	out->body = out->bodies.next;
	wf_lane_moved(r, out->lane);
	ready(r, out);
	return 0;
}

/* Where stream @i rides best now; NULL: nowhere. */
static struct wf_lane *best(struct wf_remote *r, unsigned i)
{
	struct wf_lane *lane = r->slots[wf_stream_home(r, i)].lane;

	if (wf_lane_good(lane))
		return lane;
	for (unsigned slot = 1; slot < 1 + 2 * r->conf.rails; slot += 2)
		if (wf_lane_good(r->slots[slot].lane))
			return r->slots[slot].lane;
	if (wf_lane_good(r->slots[0].lane))
		return r->slots[0].lane;
	/* None is beyond doubt: not a reason to leave one that is up. */
	if (r->out[i]->lane)
		return r->out[i]->lane;
	if (lane)
		return lane;
	return r->slots[0].lane ? r->slots[0].lane : r->slots[1].lane;
}

void wf_streams_place(struct wf_remote *r)
{
	for (uint64_t m = r->unacked; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctzll(m);
		struct wf_lane *lane = best(r, i);

		if (lane && lane != r->out[i]->lane)
			wf_out_move(r, r->out[i], lane);
	}
}
