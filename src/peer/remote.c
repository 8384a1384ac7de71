/* remote.c - a remote's beginning and end, and what is to be done. */
#include "peer/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "peer/inner.h"

#define HELD_LEAST 64u
#define NO_MEMORY_WAIT (10 * WEFT_MS)
#define RING_REST WEFT_S                /* an empty ring's memory is kept as long */

int wf_remote_init(struct wf_remote *r, const struct wf_remote_conf *conf, weft_time now)
{
	memset(r, 0, sizeof(*r));
	r->conf = *conf;
	if (!r->conf.cap)
		r->conf.cap = 256;
	if (!r->conf.eager)
		r->conf.eager = WF_EAGER;
	if (!r->conf.moments)
		r->conf.moments = WF_MOMENTS;
	if (!r->conf.chunk)
		r->conf.chunk = WF_CHUNK_MOST;
	if (r->conf.eager > WF_WIRE_BODY_MOST)
		r->conf.eager = WF_WIRE_BODY_MOST;
	if (r->conf.eager_most > WF_WIRE_BODY_MOST)
		r->conf.eager_most = WF_WIRE_BODY_MOST;
	if (!r->conf.retain)
		r->conf.retain = WF_RETAIN_MOST;
	if (!r->conf.deadline)
		r->conf.deadline = 5 * WEFT_S;
	r->held = calloc(HELD_LEAST, sizeof(*r->held));
	if (!r->held)
		return -ENOMEM;
	r->held_size = HELD_LEAST;
	r->random = r->conf.seed ^ (uint64_t)conf->me << 32 ^ conf->them;
	r->now = r->heard = now;
	r->wake = WEFT_FOREVER;
	r->limit = r->told = r->promised = WF_CREDIT_FLOOR;
	wf_list_init(&r->granted);
	wf_list_init(&r->leading);
	wf_list_init(&r->ended);
	wf_list_init(&r->spent);
	wf_list_init(&r->backlogs);
	wf_list_init(&r->landings);
	wf_list_init(&r->landed);
	wf_list_init(&r->land_closed);
	if (r->conf.window < WF_CREDIT_FLOOR)
		r->conf.window = WF_CREDIT_FLOOR;
	return 0;
}

void wf_remote_fini(struct wf_remote *r)
{
	for (unsigned i = 0; i < WF_STREAMS; i++) {
		if (!r->out[i])
			continue;
		wf_retain_fini(&r->out[i]->rt);
		free(r->out[i]);
	}
	wf_bulk_fini(r);
	wf_dests_fini(r);
	wf_numbers_fini(&r->sends);
	wf_numbers_fini(&r->tokens);
	free(r->ping);
	free(r->gone);
	free(r->held);
}

/* ---- its end ---- */

void wf_remote_end(struct wf_remote *r, int err)
{
	if (r->err)
		return;
	r->err = err;
	r->dead_due = true;
	wf_sends_fail(r, err);
	wf_landings_fail(r, err);
	r->unacked = r->stuck = 0;
	r->open_due = 0;
	if (r->closing)
		r->closed_due = !r->closed;
	/* After BYE the lanes stay until the other end closes them: it waits for the acknowledgement. */
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++) {
		lane->ready = lane->moves = 0;
		if (!r->bye_in)
			wf_lane_drop(r, lane);
	}
}

void wf_remote_gone(struct wf_remote *r, int err, weft_time now)
{
	r->now = now;
	wf_remote_end(r, err);
}

void wf_remote_close(struct wf_remote *r, weft_time now)
{
	r->now = now;
	if (r->closing)
		return;
	wf_expect(r);
	r->closing = r->dirty = true;
	if (r->err)
		r->closed_due = true;
}

void wf_remote_alive(struct wf_remote *r, weft_time now)
{
	r->heard = now;
}

void wf_remote_care(struct wf_remote *r, int more)
{
	if (more > 0)
		wf_expect(r);
	r->cares += (uint32_t)more;
	r->dirty = true;
}

/* All was said, and BYE. */
static void closed(struct wf_remote *r)
{
	r->closed = r->closed_due = true;
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		wf_lane_drop(r, lane);
	r->err = -ESHUTDOWN;
}

void wf_remote_left(struct wf_remote *r, weft_time now)
{
	r->now = now;
	if (r->bye_out && !r->closed && !r->err)
		closed(r);
}

/* All has left that is not acknowledged; the other end has no reason to be quick, unless it is asked. */
static void hurry(struct wf_remote *r)
{
	for (uint64_t m = r->unacked; m; m &= m - 1) {
		struct wf_out *out = r->out[__builtin_ctzll(m)];

		if (out->lane && out->rt.sent == out->rt.tail && out->rt.acked < out->rt.tail)
			wf_lane_probe(r, out->lane);
	}
}

/* Drained: BYE; acknowledged: closed. */
static void run_close(struct wf_remote *r)
{
	if (!r->closing || r->closed || r->err)
		return;
	if (!r->bye_out && !r->live && wf_list_empty(&r->landings) && !r->unacked) {
		unsigned char frame[8];

		wf_wire_head(frame, WF_WIRE_BYE, 0, sizeof(frame));
		wf_put32(frame + 4, 0);
		r->bye_out = true;
		wf_control_put(r, frame, sizeof(frame));
	} else if (r->bye_out && !r->unacked) {
		closed(r);
	}
	if (r->unacked && !r->live)
		hurry(r);
}

/* What waits for room though nothing is under way found no memory. */
static void retry(struct wf_remote *r)
{
	for (uint64_t m = r->stuck & ~r->unacked; m; m &= m - 1)
		wf_send_retry(r, r->out[__builtin_ctzll(m)]);
	if (r->stuck & ~r->unacked)
		wf_arm(r, r->now + NO_MEMORY_WAIT);
}

/* Rings nothing is in give their memory back after a while. */
static void rest(struct wf_remote *r)
{
	for (unsigned i = 0; i < WF_STREAMS; i++) {
		struct wf_out *out = r->out[i];

		if (!out || !out->rt.mem || out->rt.acked != out->rt.tail)
			continue;
		if (r->now - out->used >= RING_REST)
			wf_retain_rest(&out->rt);
		else
			wf_arm(r, out->used + RING_REST);
	}
}

/* ---- what is to be done ---- */

static struct wf_act *add(struct wf_acts *acts, uint8_t kind)
{
	struct wf_act *a = &acts->a[acts->n++];

	a->kind = kind;
	a->err = 0;
	return a;
}

static void tell_landings(struct wf_acts *acts, struct wf_node *list, uint8_t kind)
{
	while (acts->n < WF_ACTS && !wf_list_empty(list)) {
		struct wf_landing *l = wf_of(wf_list_pop(list), struct wf_landing, node);
		struct wf_act *a = add(acts, kind);

		a->landing = l;
		a->err = l->err;
	}
}

void wf_tell_sent(struct wf_remote *r, struct wf_acts *acts)
{
	while (acts->n < WF_ACTS && !(wf_list_empty(&r->ended) && wf_list_empty(&r->spent))) {
		struct wf_rsend *s = wf_of(wf_list_pop(wf_list_empty(&r->ended) ? &r->spent : &r->ended), struct wf_rsend, node);
		struct wf_act *a = add(acts, WF_ACT_SENT);

		a->send = s;
		a->err = s->err;
		s->state = WF_S_NONE;
	}
}

static void tell(struct wf_remote *r, struct wf_acts *acts)
{
	wf_tell_sent(r, acts);
	tell_landings(acts, &r->landed, WF_ACT_LANDED);
	tell_landings(acts, &r->land_closed, WF_ACT_LAND_CLOSED);
	if (acts->n < WF_ACTS && r->seek_again) {
		struct wf_act *a = add(acts, WF_ACT_BACKLOG);

		a->err = -EAGAIN;
		a->to = 0;
		a->context = 0;
		r->seek_again = false;
	}
	if (acts->n < WF_ACTS && r->dead_due) {
		add(acts, WF_ACT_DEAD)->err = r->err;
		r->dead_due = false;
	}
	if (acts->n < WF_ACTS && r->closed_due) {
		add(acts, WF_ACT_CLOSED);
		r->closed_due = false;
	}
}

static void tell_lanes(struct wf_remote *r, struct wf_acts *acts)
{
	for (; r->close_due && acts->n < WF_ACTS; r->close_due &= r->close_due - 1)
		add(acts, WF_ACT_CLOSE)->lane = &r->lanes[__builtin_ctz(r->close_due)];
	for (; r->open_due && acts->n < WF_ACTS; r->open_due &= r->open_due - 1) {
		struct wf_act *a = add(acts, WF_ACT_OPEN);

		a->slot = (uint32_t)__builtin_ctz(r->open_due);
		a->gen = r->slots[a->slot].gen;
	}
	for (; r->write_due && acts->n < WF_ACTS; r->write_due &= r->write_due - 1)
		add(acts, WF_ACT_WRITE)->lane = &r->lanes[__builtin_ctz(r->write_due)];
}

void wf_remote_acts(struct wf_remote *r, weft_time now, struct wf_acts *acts)
{
	r->now = now;
	if (!r->busy_since && !r->err && wf_busy(r)) {
		r->busy_since = now;
		wf_arm(r, now + r->conf.deadline / 4);
		r->dirty |= !r->slots[0].lane;
	}
	if (wf_unlikely(r->ngone || r->gone_lost) && !r->err)
		wf_gones_run(r);
	while (!r->err && (r->dirty || now >= r->wake)) {
		r->dirty = false;
		if (r->broken) {
			wf_remote_end(r, r->broken);
			break;
		}
		if (r->seek_refused && r->out[0]->rt.acked == r->out[0]->rt.tail) {
			r->seek_refused = false;
			r->seek_again = true;
		}
		wf_lanes_run(r);
		run_close(r);
		wf_bulk_kick(r);
		if (!r->err) {
			retry(r);
			rest(r);
		}
	}
	if (r->err)
		r->wake = WEFT_FOREVER;
	tell(r, acts);
	tell_lanes(r, acts);
}
