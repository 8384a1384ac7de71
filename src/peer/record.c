/* record.c - a record that has come: its frames, one by one.
 *
 * The bytes are authenticated and may still say anything. Every frame has the length its type wants and lies in the record; numbers and tokens
 * are looked up; offsets and counts must be possible. What is wrong is -EPROTO, and nothing of that frame has happened. Frames behind a STREAM
 * of an old epoch, or on another lane than the stream's, are skipped: they come again elsewhere.
 */
#include <errno.h>

#include "peer/inner.h"

#define ACK_DELAY (8 * WEFT_MS)         /* nobody waits for it: who sends has its memory back before */
#define ACK_SOON (20 * WEFT_MS / 1000)  /* much is kept for it: but an answer that is being made may take it along */
#define CHUNK_DELAY (WEFT_MS / 4)       /* small beside what a lane may be given ahead (bulk.c): it need not wait for this */
#define CHUNKS_UNTOLD (WF_CHUNKS_OUT / 3)       /* who sends one long message has no more than that under way */
#define ERRORS_MOST 8

static struct wf_act *add_act(struct wf_acts *acts, uint8_t kind)
{
	struct wf_act *a = &acts->a[acts->n++];

	a->kind = kind;
	a->err = 0;
	return a;
}

void wf_ack_now(struct wf_remote *r, struct wf_lane *lane)
{
	lane->ack_now = true;
	wf_lane_wake(r, lane);
}

WF_HOT void wf_ack_by(struct wf_remote *r, struct wf_lane *lane, weft_time at)
{
	if (lane->ack_at && lane->ack_at <= at)
		return;
	lane->ack_at = at;
	wf_arm(r, at);
}

WF_HOT void wf_ack_later(struct wf_remote *r, struct wf_lane *lane, bool much)
{
	wf_ack_by(r, lane, r->now + (much ? ACK_SOON : ACK_DELAY));
}

void wf_ack_chunk(struct wf_remote *r, struct wf_lane *lane)
{
	lane->chunk_at = r->now;
	if (++lane->chunks_untold >= CHUNKS_UNTOLD)
		wf_ack_now(r, lane);
	else
		wf_ack_by(r, lane, r->now + CHUNK_DELAY);
}

/* ---- frames about the lane ---- */

static void pong(struct wf_remote *r, struct wf_lane *lane, weft_time sent)
{
	weft_time t;

	if (!lane->pinged || sent != lane->ping_at)
		return;
	t = r->now - sent;
	lane->pinged = false;
	lane->rtt = lane->rtt ? lane->rtt + (t - lane->rtt) / 4 : t;
	if (!lane->rtt_least || t < lane->rtt_least)
		lane->rtt_least = t > 0 ? t : 1;
	wf_lane_moved(r, lane);
	wf_ping_answered(r, lane, sent);
}

static int move(struct wf_remote *r, struct wf_lane *lane, unsigned stream, uint32_t epoch)
{
	struct wf_in *in = &r->in[stream];

	if (epoch <= in->epoch)
		return 0;
	in->epoch = epoch;
	in->lane = lane;
	lane->resumes |= wf_bit(stream);
	wf_lane_wake(r, lane);
	return 0;
}

static int stream(struct wf_remote *r, struct wf_lane *lane, unsigned id, uint32_t epoch, uint64_t offset)
{
	struct wf_in *in = &r->in[id];

	lane->stream = -2;
	if (epoch < in->epoch || (epoch == in->epoch && in->lane != lane))
		return 0;
	if (epoch > in->epoch || offset != in->next)
		return -EPROTO;
	lane->stream = (int)id;
	return 0;
}

/* @token: of its landing; or the number of its send, of which @lead bytes go unasked: then it is for whom the first of them was for. */
static int chunk(struct wf_remote *r, struct wf_lane *lane, uint64_t token, uint64_t from, bool leads, uint32_t lead)
{
	struct wf_landing *l = !leads ? wf_landing_find(r, token) : from ? wf_landing_find(r, lane->led) : NULL;

	if (!lane->body_len || lane->at + 24 != lane->len || (leads ? !token || lead < lane->body_len || from > lead - lane->body_len : lead))
		return -EPROTO;
	if (leads && l && l->send != token)
		l = NULL;
	if (l && (from > l->len || lane->body_len > l->len - from))
		return -EPROTO;
	lane->body.from = from;
	lane->body.doubled = lane->body.turned = false;
	lane->body.lead = leads && !from ? token : 0;
	lane->body.lead_len = lead;
	lane->body.landing = l ? wf_landing_claim(r, lane, l, from, from + lane->body_len) : NULL;
	lane->body.token = lane->body.landing ? l->token : 0;
	lane->body.kind = WF_BODY_CHUNK;
	return 0;
}

static int lane_frame(struct wf_remote *r, struct wf_lane *lane, const unsigned char *p)
{
	uint32_t epoch = wf_get32(p + 4);
	uint64_t value = wf_get64(p + 8);
	bool named = p[0] <= WF_WIRE_RESUME;            /* flags name a stream */
	struct wf_out *out = named && p[1] < WF_STREAMS ? r->out[p[1]] : NULL;

	if (named && p[1] >= WF_STREAMS)
		return -EPROTO;
	switch (p[0]) {
	case WF_WIRE_STREAM:
		return stream(r, lane, p[1], epoch, value);
	case WF_WIRE_MOVE:
		return move(r, lane, p[1], epoch);
	case WF_WIRE_ACK:
	case WF_WIRE_RESUME:
		if (!out || epoch > out->epoch)
			return -EPROTO;
		if (epoch < out->epoch || out->lane != lane)
			return 0;
		if (value < out->rt.acked && !out->waits)
			return 0;       /* since it was written a match was told, by another lane */
		return p[0] == WF_WIRE_ACK ? wf_out_acked(r, out, value) : wf_out_resume(r, out, value);
	case WF_WIRE_CHUNKS:
		return wf_bulk_acked(r, lane, value, (weft_time)epoch * 1000);
	case WF_WIRE_LIMIT:
		return wf_credit_got(r, value);
	case WF_WIRE_PING:
		lane->pong = value;
		lane->pong_due = true;
		wf_lane_wake(r, lane);
		return 0;
	case WF_WIRE_PONG:
		pong(r, lane, (weft_time)value);
		return 0;
	case WF_WIRE_DONE:
		return wf_send_done(r, value);
	case WF_WIRE_CHUNK:
		return chunk(r, lane, value, wf_get64(p + 16), p[1] & WF_WIRE_LED, epoch);
	default:
		return -EPROTO;
	}
}

/* ---- frames of streams ---- */

static int control_frame(struct wf_remote *r, const unsigned char *p, struct wf_acts *acts)
{
	uint32_t a = wf_get32(p + 4);
	struct wf_act *act;
	uint64_t b;

	if (p[0] == WF_WIRE_BYE) {
		r->bye_in = true;
		wf_remote_end(r, -ECONNRESET);
		return 0;
	}
	b = wf_get64(p + 8);
	switch (p[0]) {
	case WF_WIRE_GRANT:
		return wf_bulk_grant(r, b, wf_get64(p + 16), wf_get64(p + 24), p[1] & WF_WIRE_LED);
	case WF_WIRE_AGAIN:
		return wf_bulk_asked(r, b, wf_get64(p + 16), wf_get64(p + 24));
	case WF_WIRE_ENDED:
		return a < 4096 ? wf_send_ended(r, b, -(int)a) : -EPROTO;
	case WF_WIRE_LATE:
		wf_send_late(r, b);
		return 0;
	case WF_WIRE_CREDIT:
		return wf_credit_got(r, b);
	case WF_WIRE_CLOG:
		return wf_dest_clog(r, a, b, p[1]);
	case WF_WIRE_INVITE:
		return wf_invite_got(r, p);
	case WF_WIRE_REVOKE:
		wf_invite_revoked(r, b);
		return 0;
	case WF_WIRE_WATCH:
	case WF_WIRE_GONE:
		if (b || (p[0] == WF_WIRE_WATCH && !a))
			return -EPROTO;
		add_act(acts, p[0] == WF_WIRE_WATCH ? WF_ACT_WATCH : WF_ACT_GONE)->number = a;
		return 0;
	case WF_WIRE_BACKLOG:
	case WF_WIRE_CLEAR:
	case WF_WIRE_SEEK:
		act = add_act(acts, p[0] == WF_WIRE_SEEK ? WF_ACT_SEEK : p[0] == WF_WIRE_CLEAR ? WF_ACT_CLEAR : WF_ACT_BACKLOG);
		act->to = a;
		act->context = b;
		if (p[0] != WF_WIRE_SEEK)
			return 0;
		act->name = wf_get64(p + 16);
		act->want = p + 24;
		act->want_len = wf_get16(p + 2) - 24u;
		return 0;
	default:
		return -EPROTO;
	}
}

/* A message whose payload is the record's body. @step: bytes of its frame. */
static int body_message(struct wf_remote *r, struct wf_lane *lane, struct wf_rmsg *m, int step, struct wf_acts *acts)
{
	struct wf_in *in = &r->in[lane->stream];
	uint64_t cost = wf_credit_cost(m->len);

	if (m->len != lane->body_len || !m->len || lane->at + (uint32_t)step != lane->len)
		return -EPROTO;
	if (in->begun && in->begun_len != m->len)
		return -EPROTO;
	if (!in->begun && cost > r->promised - r->arrived)
		return -EPROTO;
	lane->body.kind = WF_BODY_EAGER;
	lane->body.stream = (uint8_t)lane->stream;
	lane->body.step = (uint32_t)step;
	lane->body.from = 0;
	lane->body.landing = in->landing;
	if (in->begun)
		return 0;
	in->begun = true;
	in->begun_len = m->len;
	r->arrived += cost;
	wf_credit_tell(r);
	struct wf_act *a = add_act(acts, WF_ACT_BODY);

	a->msg = *m;
	a->cost = cost;
	return 0;
}

/* Several messages. There is room for all of them among @acts. */
static int row_frame(struct wf_remote *r, const unsigned char *p, struct wf_acts *acts)
{
	size_t head = 0, each = 0;
	uint32_t n = wf_wire_row(p, wf_get16(p + 2), &head, &each);
	uint64_t cost = wf_credit_cost(each);
	struct wf_brisk m;

	if (!n || n * cost > r->promised - r->arrived)
		return -EPROTO;
	wf_msg_head(p, &m);
	m.len = each;
	for (uint32_t i = 0; i < n; i++) {
		struct wf_act *a = add_act(acts, WF_ACT_MSG);

		m.payload = p + head + i * each;
		a->msg = wf_brisk_msg(&m);
		a->cost = cost;
	}
	r->arrived += n * cost;
	wf_credit_tell(r);
	return 0;
}

static int data_frame(struct wf_remote *r, struct wf_lane *lane, const unsigned char *p, int step, struct wf_acts *acts)
{
	struct wf_act *a;
	struct wf_rmsg m;

	if (r->in[lane->stream].begun && (p[0] != WF_WIRE_MSG || !(p[1] & WF_WIRE_BODY)))
		return -EPROTO;                         /* it was shown: it cannot be another now */
	if (p[0] == WF_WIRE_VOID)
		return 0;
	if (p[0] == WF_WIRE_CANCEL) {
		add_act(acts, WF_ACT_CANCEL)->number = wf_get64(p + 8);
		return 0;
	}
	if (p[0] == WF_WIRE_ROW)
		return row_frame(r, p, acts);
	if (wf_wire_get_msg(p, &m))
		return -EPROTO;
	if (m.flags & WF_WIRE_BODY)
		return body_message(r, lane, &m, step, acts);
	if (p[0] == WF_WIRE_ANNOUNCE) {
		add_act(acts, WF_ACT_ANNOUNCE)->msg = m;
		return 0;
	}
	if (wf_credit_cost(m.len) > r->promised - r->arrived)
		return -EPROTO;
	a = add_act(acts, WF_ACT_MSG);
	a->msg = m;
	a->cost = wf_credit_cost(m.len);
	r->arrived += a->cost;
	wf_credit_tell(r);
	return 0;
}

static int stream_frame(struct wf_remote *r, struct wf_lane *lane, const unsigned char *p, uint8_t class, int step, struct wf_acts *acts)
{
	struct wf_in *in;
	int rc;

	if (lane->stream == -1)
		return -EPROTO;
	if (lane->stream == -2) {
		if (class == WF_WIRE_DATA && p[0] == WF_WIRE_MSG && p[1] & WF_WIRE_BODY)
			lane->body.kind = WF_BODY_DROP;
		return 0;
	}
	if ((class == WF_WIRE_CONTROL) != !lane->stream)
		return -EPROTO;
	in = &r->in[lane->stream];
	rc = class == WF_WIRE_CONTROL ? control_frame(r, p, acts) : data_frame(r, lane, p, step, acts);
	if (rc || lane->body.kind == WF_BODY_EAGER)
		return rc;
	in->next += (uint64_t)step;
	lane->acks |= wf_bit((unsigned)lane->stream);
	if (r->bye_in)
		wf_ack_now(r, lane);
	else
		wf_ack_later(r, lane, in->next - in->told >= WF_ACK_BYTES);
	return 0;
}

static int next_frame(struct wf_remote *r, struct wf_lane *lane, struct wf_acts *acts)
{
	const unsigned char *p = lane->bytes + lane->at;
	const struct wf_wire_shape *shape;
	int step = wf_wire_next(p, lane->len - lane->at, &shape), rc = 0;

	if (step < 0 || lane->body.kind)                /* a frame with a body is the last */
		return -EPROTO;
	if (!shape && lane->stream >= 0)
		r->in[lane->stream].next += (uint64_t)step;
	if (shape)
		rc = shape->class == WF_WIRE_LANE ? lane_frame(r, lane, p) : stream_frame(r, lane, p, shape->class, step, acts);
	lane->at += (uint32_t)step;
	return rc;
}

/* How many acts the next frame may become: never more than there is room for without others. */
static int most_acts(const struct wf_lane *lane)
{
	return lane->bytes[lane->at] == WF_WIRE_ROW ? (int)WF_WIRE_ROW_MOST : 1;
}
_Static_assert(WF_WIRE_ROW_MOST <= WF_ACTS, "a row fits");

int wf_remote_record(struct wf_remote *r, struct wf_lane *lane, const void *bytes, uint32_t len, uint32_t body_len, weft_time now,
		     struct wf_acts *acts)
{
	int rc = 0;

	r->now = lane->heard = r->heard = now;
	if (!lane->bytes) {
		lane->bytes = bytes;
		lane->len = len;
		lane->body_len = body_len;
		lane->at = 0;
		lane->stream = -1;
		lane->body.kind = WF_BODY_NONE;
		lane->body.at = 0;
		lane->body.in = lane->body.turned = false;
		lane->body.token = 0;
		lane->body.landing = NULL;
		lane->body.lead = 0;
	}
	if (lane->suspect)
		wf_lane_speaks(r, lane, now);
	while (!rc && lane->at < lane->len && (!wf_ends(r) || r->bye_in)) {
		if (acts->n + most_acts(lane) > WF_ACTS)
			return 1;
		rc = next_frame(r, lane, acts);
	}
	lane->bytes = NULL;
	if (!rc && body_len && !lane->body.kind)
		rc = wf_ends(r) ? 0 : -EPROTO;
	if (wf_ends(r) && !lane->body.kind)
		lane->body.kind = WF_BODY_DROP;
	if (!rc)
		return 0;
	if (++r->errors > ERRORS_MOST)
		wf_remote_end(r, -EPROTO);
	return rc;
}
