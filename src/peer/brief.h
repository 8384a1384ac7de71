/* brief.h - what the short ways of brisk.c and brisk_body.c have in common. All of it runs under the remote's lock. */
#ifndef WF_PEER_BRIEF_H
#define WF_PEER_BRIEF_H

#include <string.h>

#include "base/cpu.h"
#include "peer/inner.h"

#define WF_ACKS_WAIT WEFT_MS    /* before they are due by themselves */

/* How many bytes are in the way of what comes at the tail. */
static inline uint64_t wf_used_before_tail(const struct wf_retain *rt)
{
	return rt->tail - (wf_unlikely(rt->lent && rt->lent_low < rt->acked) ? rt->lent_low : rt->acked);
}

/* Is there room for @n bytes at the tail, without growing? */
static inline bool wf_room_at_tail(const struct wf_retain *rt, size_t n)
{
	uint64_t used = wf_used_before_tail(rt);

	return rt->size && n <= rt->size - used && used + n <= rt->most - WF_SPARE;
}

/* May a message of @len bytes go into @out without being looked at further? */
static inline bool wf_may_append(const struct wf_remote *r, const struct wf_out *out, uint64_t len)
{
	return wf_likely(out && !(r->err | r->closing | r->ndests | r->ninvites) && wf_list_empty(&out->waiting) && len <= r->conf.eager && wf_credit_cost(len) <= r->limit - r->used);
}

/* Nothing is in the way of a frame of @step bytes that is to leave with the next record of @lane? */
static inline __attribute__((always_inline)) bool wf_lane_free(const struct wf_remote *r, const struct wf_lane *lane, const struct wf_out *out, size_t step)
{
	if (wf_unlikely(r->lead || lane->ready | lane->resumes | lane->moves || (r->done && r->out[0]->lane == lane)))
		return false;
	if (wf_unlikely(lane->active | lane->closing | lane->pong_due | lane->ping_due || !lane->up || lane->chunk_told != lane->chunk_got))
		return false;
	if (wf_unlikely(out->lane != lane || out->waits || out->rt.sent != out->rt.tail || out->body != &out->bodies || !wf_room_at_tail(&out->rt, step)))
		return false;
	return wf_likely(step <= out->rt.size - (size_t)(wf_retain_head(&out->rt, out->rt.tail) - out->rt.mem));       /* in one piece */
}

/* Whole words. */
static inline void wf_copy_words(unsigned char *to, const unsigned char *from, size_t n)
{
	if (wf_unlikely(n >= 64)) {
		memcpy(to, from, n);
		return;
	}
	if (wf_likely(n & 32)) {
		memcpy(to, from, 32);
		to += 32;
		from += 32;
	}
	if (n & 16) {
		memcpy(to, from, 16);
		to += 16;
		from += 16;
	}
	if (n & 8)
		memcpy(to, from, 8);
}

/* Bytes of its frame before the payload. */
static inline size_t wf_brisk_head(const struct wf_brisk *b)
{
	return WF_WIRE_MSG_LEAST + (b->context ? 8 : 0);
}

/* @n more, one at least, are in the last frame. */
static inline __attribute__((always_inline)) void wf_row_has_joined(struct wf_remote *r, uint32_t n)
{
	struct wf_retain *rt = &r->out[WF_STREAM_PLAIN]->rt;
	uint32_t bytes = n * r->row.len;

	r->row.left -= n;
	wf_put32(wf_retain_head(rt, r->row.at), r->row.head += bytes << 16);
	rt->tail = r->row.end += bytes;
	r->used += n * wf_credit_cost(r->row.len);
	*r->row.last = rt->tail;
}

/* @b is as those of the last frame, which has not left yet, and there is room behind it: it joins them. All else is as it was: the stream had something to be sent, and has more. */
static inline __attribute__((always_inline)) bool wf_row_joined(struct wf_remote *r, struct wf_brisk b)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	struct wf_retain *rt;
	uint64_t other;

	if (wf_unlikely(!r->row.left || !wf_may_append(r, out, b.len) || r->done_at))
		return false;
	rt = &out->rt;
	other = (r->row.end ^ rt->tail) | (r->row.tag ^ b.tag) | (r->row.context ^ b.context) | (r->row.to ^ b.to) | (r->row.from ^ b.from) | (r->row.index ^ b.index) | (r->row.len ^ b.len);
	if (wf_unlikely(other || rt->sent > r->row.at || rt->lent))        /* lent: a lane that broke may still write it, as it was */
		return false;
	wf_copy_words(wf_retain_head(rt, rt->tail), b.payload, b.len);
	wf_row_has_joined(r, 1);
	return true;
}

/* Others like those of the last frame may join it without the remote: how many, the first of them at @ret_place and each behind the one before, as long as nothing else happens here. Of how many did
 * wf_row_has_joined is to be told, before anything else. */
static inline uint32_t wf_row_lends(const struct wf_remote *r, unsigned char **ret_place)
{
	const struct wf_out *out = r->out[WF_STREAM_PLAIN];
	uint64_t paid;

	if (!r->row.left || !wf_may_append(r, out, r->row.len) || r->done_at || r->row.end != out->rt.tail || out->rt.sent > r->row.at || out->rt.lent)
		return 0;
	*ret_place = wf_retain_head(&out->rt, out->rt.tail);
	paid = (r->limit - r->used) / wf_credit_cost(r->row.len);
	return paid < r->row.left ? (uint32_t)paid : r->row.left;
}

/* A frame of @step bytes was put at the tail of @out, and into the record of @lane that leaves now. */
static inline __attribute__((always_inline)) void wf_put_and_sent(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out, size_t step, uint64_t *last_to)
{
	wf_expect(r);
	out->rt.sent = *last_to = out->rt.tail += step;
	out->used = r->now;
	r->unacked |= wf_bit(out->id);
	if (!lane->since)
		wf_lane_expect(r, lane);
}

/* Acknowledgements of little, and not owed for long, need not go with every record: they would be a fourth of it. */
static inline bool wf_acks_can_wait(const struct wf_lane *lane, weft_time now)
{
	return !lane->acks || (!lane->resumes && !lane->ack_now && !lane->bodies && lane->ack_at - now > WF_ACKS_WAIT);
}

/* A message that is as the one in @frames, STREAM and MSG as they left by this lane the last time, but for its payload: that is put there, and all is as by wf_remote_brisk_flat, which would
 * answer as many bytes as they were, and that there is no more. @last_to: wf_invite_at of its destination. False: nothing happened. */
static inline bool wf_brief_again(struct wf_remote *r, struct wf_lane *lane, const struct wf_brisk *b, unsigned char *frames, size_t step, uint64_t *last_to, weft_time now)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	size_t head = wf_brisk_head(b);

	if (wf_unlikely(r->done_at || r->done || !wf_may_append(r, out, b->len) || !wf_lane_free(r, lane, out, step)))
		return false;
	if (wf_unlikely(!wf_acks_can_wait(lane, now) || wf_credit_risen(r, r->conf.window / 8) || !wf_list_empty(&r->granted) || wf_get32(frames + 4) != out->epoch))
		return false;
	r->now = now;
	wf_put64(frames + 8, out->rt.tail);
	if (wf_likely(b->len == 8))
		memcpy(frames + 16 + head, b->payload, 8);
	else if (b->len)
		memcpy(frames + 16 + head, b->payload, b->len);         /* the padding is there */
	wf_copy_words(wf_retain_head(&out->rt, out->rt.tail), frames + 16, step);
	r->used += wf_credit_cost(b->len);
	wf_put_and_sent(r, lane, out, step, last_to);
	return true;
}

/* The frames before the messages: where those begin; NULL: they are others. */
static inline __attribute__((always_inline)) const unsigned char *wf_brief_head(struct wf_remote *r, const struct wf_lane *lane, const unsigned char *p, uint32_t len, struct wf_brief *b)
{
	b->acked = NULL;
	b->upto = b->limit = b->step = b->cost = 0;
	if (len >= 32 && p[0] == WF_WIRE_ACK) {
		b->acked = p[1] < WF_STREAMS ? r->out[p[1]] : NULL;
		b->upto = wf_get64(p + 8);
		if (!b->acked || wf_get16(p + 2) != 16 || b->acked->lane != lane || wf_get32(p + 4) != b->acked->epoch)
			return NULL;
		if (b->upto < b->acked->rt.acked || b->upto > b->acked->rt.sent)
			return NULL;
		p += 16;
		len -= 16;
	}
	if (len >= 32 && wf_get64(p) == (WF_WIRE_LIMIT | 16u << 16)) {          /* without flags, and 0 behind its head */
		b->limit = wf_get64(p + 8);
		p += 16;
		len -= 16;
	}
	if (wf_unlikely(len >= 32 && p[0] == WF_WIRE_PADDING)) {
		uint32_t n = WF_WIRE_PAD(wf_get16(p + 2));

		if (wf_get16(p + 2) < 8 || n > len - 16)
			return NULL;
		p += n;
		len -= n;
	}
	if (len < 16 || p[0] != WF_WIRE_STREAM || !p[1] || p[1] >= WF_STREAMS || wf_get16(p + 2) != 16)
		return NULL;
	b->id = p[1];
	b->in = &r->in[b->id];
	if (b->in->lane != lane || b->in->begun || wf_get32(p + 4) != b->in->epoch || wf_get64(p + 8) != b->in->next)
		return NULL;
	return p + 16;
}

/* When all of @out is acknowledged nothing is expected of the other end any more, and nobody has waited for that? */
static inline bool wf_ack_is_all(const struct wf_remote *r, const struct wf_lane *lane, const struct wf_out *out)
{
	uint64_t bit = wf_bit(out->id);

	return wf_likely(!(r->stuck & bit) && r->unacked == bit && !r->closing && !r->seek_refused && lane->chunk_sent == lane->chunk_acked && !lane->pinged && !out->waits);
}

/* It is. */
static inline void wf_ack_was_all(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out)
{
	out->rt.acked = out->rt.tail;
	r->unacked = 0;
	lane->since = 0;
}

/* An ACK where it ends no send, and nothing waits for it. False: it does. */
static inline bool wf_acked_quickly(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out, uint64_t upto)
{
	if (upto != out->rt.tail || !wf_list_empty(&out->bodies) || !wf_ack_is_all(r, lane, out))
		return false;
	wf_ack_was_all(r, lane, out);
	return true;
}

/* What the frames say beside their messages. */
static inline __attribute__((always_inline)) void wf_brief_done(struct wf_remote *r, struct wf_lane *lane, const struct wf_brief *b, uint32_t body_len, weft_time now)
{
	r->now = lane->heard = r->heard = now;
	if (b->acked && !wf_acked_quickly(r, lane, b->acked, b->upto))
		wf_out_acked(r, b->acked, b->upto);
	if (wf_unlikely(b->limit != 0))
		wf_credit_got(r, b->limit);
	b->in->next += b->step;
	r->arrived += b->cost;
	if (wf_unlikely(wf_credit_risen(r, r->conf.window / 4)))
		wf_credit_tell(r);
	lane->acks |= wf_bit(b->id);
	lane->bodies += body_len;
	if (wf_unlikely(b->in->next - b->in->told >= WF_ACK_BYTES || lane->bodies >= WF_BODIES_MOST))
		wf_ack_later(r, lane, true);
	else if (wf_unlikely(!lane->ack_at))            /* else they are owed by then at the latest */
		wf_ack_later(r, lane, false);
}

/* Frames that can be read the short way? */
static inline bool wf_brief_may(const struct wf_remote *r, const struct wf_lane *lane)
{
	return wf_likely(!r->err && !lane->bytes && !lane->suspect);
}

/* May messages of stream @id, of @epoch, be read from @lane one by one, and be told of later, as a struct wf_brief_row? Then the next one lies at @ret_at, and all of them together may cost @ret_left. */
static inline bool wf_brief_begins(const struct wf_remote *r, const struct wf_lane *lane, uint32_t id, uint32_t epoch, uint64_t *ret_at, uint64_t *ret_left)
{
	const struct wf_in *in = &r->in[id];

	if (!wf_brief_may(r, lane) || in->lane != lane || in->begun || in->epoch != epoch)
		return false;
	*ret_at = in->next;
	*ret_left = r->promised - r->arrived;
	return true;
}

/* @n of them have come, the last one about now: as by wf_remote_record_row for each. The session may be over meanwhile; then they came before that. */
static inline void wf_brief_told(struct wf_remote *r, const struct wf_brief_row *row, uint32_t n, weft_time now)
{
	struct wf_brief b = { .in = &r->in[row->id], .id = row->id, .step = n * row->step, .cost = n * row->cost };

	if (wf_unlikely(r->err))
		return;
	if (wf_unlikely(row->lane->suspect))
		wf_lane_speaks(r, row->lane, now);
	wf_brief_done(r, row->lane, &b, 0, now);
}

#endif
