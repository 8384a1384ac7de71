/* fill.c - the next record of a lane.
 *
 * First what concerns the lane itself (RESUME, MOVE, ACK, CHUNKS, PONG, PING) and LIMIT, then the streams that ride there, the most urgent first, as many
 * whole frames as fit; a frame whose payload lies elsewhere ends the record, and the payload is its body. Without one the body may be a chunk.
 * So a busy lane carries many messages per record, and an idle one is never kept waiting. Frames are not copied: the caller writes them from the
 * streams' rings.
 */
#include <assert.h>
#include <errno.h>

#include "peer/inner.h"

static unsigned char *lane_frame(unsigned char *p, uint8_t type, unsigned stream, uint32_t a, uint64_t b)
{
	wf_wire_put(p, type, (uint8_t)stream, a, b);
	return p + 16;
}

WF_HOT unsigned char *wf_put_acks(struct wf_remote *r, struct wf_lane *lane, unsigned char *to)
{
	for (uint64_t m = lane->resumes; m; m &= m - 1) {
		struct wf_in *in = &r->in[__builtin_ctzll(m)];

		if (in->lane == lane)
			to = lane_frame(to, WF_WIRE_RESUME, (unsigned)(in - r->in), in->epoch, in->next);
		in->told = in->next;
	}
	for (uint64_t m = lane->acks & ~lane->resumes; m; m &= m - 1) {
		struct wf_in *in = &r->in[__builtin_ctzll(m)];

		if (in->lane == lane)
			to = lane_frame(to, WF_WIRE_ACK, (unsigned)(in - r->in), in->epoch, in->next);
		in->told = in->next;
	}
	if (lane->chunk_told != lane->chunk_got) {
		weft_time waited = (r->now - lane->chunk_at) / 1000;

		to = lane_frame(to, WF_WIRE_CHUNKS, 0, waited < 0 ? 0 : waited > UINT32_MAX ? UINT32_MAX : (uint32_t)waited, lane->chunk_got);
	}
	wf_acks_put(lane);
	return to;
}

/* What the lane has to say of itself. */
static unsigned char *put_lane(struct wf_remote *r, struct wf_lane *lane, unsigned char *to)
{
	to = wf_put_acks(r, lane, to);
	for (uint64_t m = lane->moves; m; m &= m - 1) {
		struct wf_out *out = r->out[__builtin_ctzll(m)];

		to = lane_frame(to, WF_WIRE_MOVE, out->id, out->epoch, out->rt.acked);
		if (out->waits)
			wf_lane_expect(r, lane);
	}
	lane->moves = 0;
	if (lane->pong_due)
		to = lane_frame(to, WF_WIRE_PONG, 0, 0, lane->pong);
	lane->pong_due = false;
	if (lane->ping_due) {
		to = lane_frame(to, WF_WIRE_PING, 0, 0, (uint64_t)r->now);
		lane->ping_due = false;
		lane->pinged = true;
		lane->ping_at = r->now;
		wf_lane_expect(r, lane);
	}
	to = wf_done_along(r, lane, to);
	return wf_credit_along(r, to);
}

/* Whole frames of @out from its sent position on, at most @most bytes: the offset behind them. *ret_body: the last has its payload elsewhere. */
static uint64_t frames_end(const struct wf_out *out, uint64_t most, bool *ret_body)
{
	uint64_t at = out->rt.sent;

	*ret_body = false;
	while (at < out->rt.tail) {
		const unsigned char *head = wf_retain_head(&out->rt, at);
		uint64_t n = WF_WIRE_PAD(wf_get16(head + 2));

		if (n > most)
			break;
		at += n;
		most -= n;
		if (head[0] == WF_WIRE_MSG && head[1] & WF_WIRE_BODY) {
			*ret_body = true;
			break;
		}
	}
	return at;
}

static void add_piece(struct wf_fill *f, const void *base, size_t len)
{
	if (!len)
		return;
	f->small[f->nsmall].iov_base = (void *)(uintptr_t)base;
	f->small[f->nsmall++].iov_len = len;
	f->small_len += (uint32_t)len;
}

static void put_body(struct wf_lane *lane, struct wf_fill *f, struct wf_rsend *s, uint64_t at, uint64_t len)
{
	f->send = lane->pinned = s;
	f->body_at = at;
	f->body_len = (uint32_t)len;
	s->pins++;
}

/* One stream's part; *begun: bytes of room that no piece names yet begin there. */
static void put_stream(struct wf_remote *r, struct wf_lane *lane, struct wf_fill *f, struct wf_out *out, size_t *room, size_t *begun)
{
	bool body;
	uint64_t end = frames_end(out, WF_WIRE_SMALL - f->small_len - (*room - *begun) - 64, &body);
	struct iovec iov[2];

	if (end == out->rt.sent)
		return;
	lane_frame(f->room + *room, WF_WIRE_STREAM, out->id, out->epoch, out->rt.sent);
	*room += 16;
	add_piece(f, f->room + *begun, *room - *begun);
	*begun = *room;
	for (int i = 0, n = wf_retain_lend(&out->rt, out->rt.sent, end, iov); i < n; i++)
		add_piece(f, iov[i].iov_base, iov[i].iov_len);
	lane->lent |= wf_bit(out->id);
	out->rt.sent = end;
	if (end == out->rt.tail)
		lane->ready &= ~wf_bit(out->id);
	wf_lane_expect(r, lane);
	if (body) {
		struct wf_rsend *s = wf_of(out->body, struct wf_rsend, node);

		assert(out->body != &out->bodies && s->end == end);
		out->body = s->node.next;
		s->shown = true;
		put_body(lane, f, s, 0, s->len);
	}
}

int wf_remote_fill(struct wf_remote *r, struct wf_lane *lane, struct wf_fill *f, weft_time now)
{
	size_t room = 0, begun = 0;
	struct wf_flying chunk;
	int pieces = (int)(sizeof(f->small) / sizeof(f->small[0]));

	r->now = now;
	f->nsmall = 0;
	f->small_len = f->body_len = 0;
	f->send = NULL;
	if (lane->closing || !lane->up || (r->err && !r->bye_in)) {
		lane->active = false;
		return 0;
	}
	if (lane->ack_now || lane->resumes || lane->moves || lane->pong_due || lane->ping_due || lane->ready)
		room = (size_t)(put_lane(r, lane, f->room) - f->room);
	for (uint64_t m = lane->ready; m && !f->body_len && f->nsmall + 4 <= pieces; m &= m - 1)
		put_stream(r, lane, f, r->out[__builtin_ctzll(m)], &room, &begun);
	if (!f->body_len && (wf_bulk_lead(r, lane, &chunk) || wf_bulk_cut(r, lane, &chunk))) {
		bool leads = !chunk.send->token;
		unsigned char *p;

		if (!room)
			room = (size_t)(put_lane(r, lane, f->room) - f->room);          /* theirs have come: told along with ours */
		p = f->room + room;
		wf_wire_head(p, WF_WIRE_CHUNK, leads ? WF_WIRE_LED : 0, 24);
		wf_put32(p + 4, leads ? (uint32_t)chunk.send->limit : 0);
		wf_put64(p + 8, leads ? chunk.send->number : chunk.send->token);
		wf_put64(p + 16, chunk.span.from);
		room += 24;
		put_body(lane, f, chunk.send, chunk.span.from, chunk.span.to - chunk.span.from);
		wf_lane_expect(r, lane);
	}
	add_piece(f, f->room + begun, room - begun);
	lane->active = lane->writing = f->nsmall > 0;
	return lane->active;
}

void wf_remote_wrote(struct wf_remote *r, struct wf_lane *lane, weft_time now)
{
	r->now = now;
	lane->writing = false;
	for (uint64_t m = lane->lent; m; m &= m - 1) {
		struct wf_out *out = r->out[__builtin_ctzll(m)];

		wf_retain_back(&out->rt);
		if (r->stuck & wf_bit(out->id) && !r->err)
			wf_send_retry(r, out);
	}
	lane->lent = 0;
	if (lane->pinned)
		wf_send_unpin(r, lane->pinned);
	lane->pinned = NULL;
}

int wf_fill_body(const struct wf_remote *r, const struct wf_fill *f, uint64_t at, struct iovec *ret_iov, int max)
{
	uint64_t left = f->body_len - at;
	int n = r->conf.ops->send_pieces(f->send, f->body_at + at, ret_iov, max);

	for (int i = 0; i < n; i++) {
		if (ret_iov[i].iov_len >= left) {
			ret_iov[i].iov_len = (size_t)left;
			return i + 1;
		}
		left -= ret_iov[i].iov_len;
	}
	return n;
}
