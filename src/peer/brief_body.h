/* brief_body.h - as brief.h for one message with a body, like the one before. All of it runs under the remote's lock.
 *
 * Such a record has frames that differ in five words from those of the last one: what it acknowledges, the limit, its place in the stream, its number, its checksum. LIMIT is always there,
 * with news or without: one that comes now and then would move the others.
 *
 *     ACK 16 | LIMIT 16 | PADDING | STREAM 16 | message: 40, or 48 with a context      WF_BODY_FRAMES in all
 */
#ifndef WF_PEER_BRIEF_BODY_H
#define WF_PEER_BRIEF_BODY_H

#include "peer/brief.h"

#define WF_BODY_FLAGS (WF_WIRE_BODY | WF_WIRE_LENGTH | WF_WIRE_SEND)
#define WF_BODY_LEAST (WF_WIRE_MSG_LEAST + 16u)
#define WF_BODY_FRAMES 112u             /* bytes of frames, always. With what is around them in auth (secure/record.h) they are two lines */

/* Bytes of its frame. */
static inline size_t wf_body_step(uint64_t context)
{
	return WF_BODY_LEAST + (context ? 8 : 0);
}

/* Where STREAM is; the message is behind it. */
static inline size_t wf_body_stream(size_t step)
{
	return WF_BODY_FRAMES - step - 16;
}

/* Are these frames such ones, by their types and streams? @step: of their message. */
static inline bool wf_body_like(const unsigned char *frames, size_t step)
{
	const unsigned char *stream = frames + wf_body_stream(step);

	return frames[0] == WF_WIRE_ACK && frames[1] == WF_STREAM_PLAIN && frames[16] == WF_WIRE_LIMIT && frames[32] == WF_WIRE_PADDING &&
	       32 + WF_WIRE_PAD(wf_get16(frames + 34)) == wf_body_stream(step) && stream[0] == WF_WIRE_STREAM && stream[1] == WF_STREAM_PLAIN && stream[16] == WF_WIRE_MSG && wf_get16(stream + 18) == step;
}

/* @s is in the stream, and on its way. */
static inline void wf_body_begins(struct wf_rsend *s, struct wf_out *out, size_t step)
{
	s->state = WF_S_EAGER;
	s->pins = 1;
	s->acked = s->ended = s->asked = s->cancel_due = s->offer_due = false;
	s->shown = true;
	s->err = 0;
	s->ask.next = NULL;
	s->dest = NULL;
	s->bulk = NULL;
	s->start = out->rt.tail;
	s->end = s->start + step;
	wf_list_add(&out->bodies, &s->node);
}

/* @s is as the one in @frames, as they left by this lane the last time: they become its own, and all is as by wf_remote_body_flat, which would answer that there is no more.
 * @last_to: wf_invite_at of its destination. False: nothing happened. */
static inline bool wf_body_again(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s, unsigned char *frames, uint64_t *last_to, weft_time now)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	struct wf_in *in = &r->in[WF_STREAM_PLAIN];
	size_t step = wf_body_step(s->context);
	unsigned char *stream = frames + wf_body_stream(step);

	if (wf_unlikely(r->done_at || r->done || !wf_may_append(r, out, s->len) || !wf_lane_free(r, lane, out, step)))
		return false;
	if (wf_unlikely(lane->acks != wf_bit(WF_STREAM_PLAIN) || in->lane != lane || wf_get32(frames + 4) != in->epoch || wf_get32(stream + 4) != out->epoch))
		return false;
	if (wf_unlikely(!wf_list_empty(&r->granted) || wf_numbers_add(&r->sends, s, &s->number)))
		return false;
	r->now = now;
	wf_put64(frames + 8, in->next);
	wf_put64(frames + 24, wf_credit_hinted(r));
	wf_put64(stream + 8, out->rt.tail);
	wf_put64(frames + WF_BODY_FRAMES - 16, s->number);
	wf_acks_put(lane);
	in->told = in->next;
	wf_copy_words(wf_retain_head(&out->rt, out->rt.tail), stream + 16, step);
	wf_body_begins(s, out, step);
	r->used += wf_credit_cost(s->len);
	wf_put_and_sent(r, lane, out, step, last_to);
	r->live++;
	return true;
}

/* An ACK that ends one send which nobody waits for, and nothing else. False: it does more, or less; nothing happened. */
static inline bool wf_acked_body(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out, uint64_t upto)
{
	struct wf_rsend *s = wf_of(out->bodies.next, struct wf_rsend, node);

	if (wf_unlikely(upto != out->rt.tail || wf_list_empty(&out->bodies) || out->bodies.prev != &s->node || !wf_ack_is_all(r, lane, out)))
		return false;
	if (wf_unlikely(s->flags != WF_SEND_IDLE || s->pins || s->asked || wf_list_has(&s->ask) || r->lead == s || out->body != &out->bodies))
		return false;
	wf_list_del(&s->node);
	wf_numbers_del(&r->sends, s->number);
	s->number = 0;
	s->acked = true;
	s->state = WF_S_OVER;
	wf_list_add(&r->spent, &s->node);
	r->live--;
	wf_ack_was_all(r, lane, out);
	return true;
}

/* A message with a body of @body_len bytes, in @frames as above (wf_body_like), and nothing else: as by wf_remote_body_looked and _told. False: nothing happened. */
static inline bool wf_body_one(struct wf_remote *r, struct wf_lane *lane, const unsigned char *frames, size_t step, uint32_t body_len, weft_time now)
{
	const unsigned char *stream = frames + wf_body_stream(step);
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	struct wf_brief b = { .in = &r->in[WF_STREAM_PLAIN], .id = WF_STREAM_PLAIN, .step = step, .cost = wf_credit_cost(body_len) };
	uint64_t upto = wf_get64(frames + 8), limit = wf_get64(frames + 24);

	if (wf_unlikely(!wf_brief_may(r, lane) || !out || out->lane != lane || wf_get32(frames + 4) != out->epoch || upto < out->rt.acked || upto > out->rt.sent))
		return false;
	if (wf_unlikely(b.in->lane != lane || b.in->begun || b.in->epoch != wf_get32(stream + 4) || b.in->next != wf_get64(stream + 8) || b.cost > r->promised - r->arrived))
		return false;
	if (wf_unlikely(!wf_acked_body(r, lane, out, upto))) {
		b.acked = out;
		b.upto = upto;
	}
	if (wf_unlikely(!wf_list_empty(&r->backlogs)))
		b.limit = limit;
	else if (limit > r->limit)
		r->limit = limit;
	wf_brief_done(r, lane, &b, body_len, now);
	return true;
}

#endif
