/* brief.h - what the short ways of brisk.c and brisk_body.c have in common. All of it runs under the remote's lock. */
#ifndef WF_PEER_BRIEF_H
#define WF_PEER_BRIEF_H

#include <string.h>

#include "base/cpu.h"
#include "peer/inner.h"

/* How many bytes are in the way of what comes at the tail. */
static inline uint64_t wf_used_before_tail(const struct wf_retain *rt)
{
	return rt->tail - (rt->lent && rt->lent_low < rt->acked ? rt->lent_low : rt->acked);
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
	if (wf_likely(n <= 64))
		for (size_t i = 0; i < n; i += 8)
			memcpy(to + i, from + i, 8);
	else
		memcpy(to, from, n);
}

/* Bytes of its frame before the payload. */
static inline size_t wf_brisk_head(const struct wf_brisk *b)
{
	return WF_WIRE_MSG_LEAST + (b->context ? 8 : 0);
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
	r->row.left--;
	wf_put32(wf_retain_head(rt, r->row.at), r->row.head += (uint32_t)b.len << 16);
	rt->tail = r->row.end += b.len;
	r->used += wf_credit_cost(b.len);
	*r->row.last = rt->tail;
	return true;
}

/* A frame of @step bytes was put at the tail of @out, and into the record of @lane that leaves now. */
static inline __attribute__((always_inline)) void wf_put_and_sent(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out, size_t step, uint32_t to, uint64_t context)
{
	wf_expect(r);
	out->rt.sent = out->rt.tail += step;
	out->used = r->now;
	r->unacked |= wf_bit(out->id);
	wf_invite_last(r, to, context, out->rt.tail);
	wf_lane_expect(r, lane);
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
	if (len >= 32 && p[0] == WF_WIRE_LIMIT && wf_get16(p + 2) == 16) {
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
	b->in = &r->in[p[1]];
	if (b->in->lane != lane || b->in->begun || wf_get32(p + 4) != b->in->epoch || wf_get64(p + 8) != b->in->next)
		return NULL;
	return p + 16;
}

/* An ACK where it ends no send, and nothing waits for it. False: it does. */
static inline bool wf_acked_quickly(struct wf_remote *r, struct wf_lane *lane, struct wf_out *out, uint64_t upto)
{
	uint64_t bit = wf_bit(out->id);

	if (upto != out->rt.tail || !wf_list_empty(&out->bodies) || r->stuck & bit || r->unacked != bit || r->closing || r->seek_refused)
		return false;
	if (lane->chunk_sent != lane->chunk_acked || lane->pinged || out->waits)
		return false;
	out->rt.acked = upto;
	r->unacked = 0;
	lane->since = 0;
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
	wf_credit_tell(r);
	lane->acks |= wf_bit((unsigned)(b->in - r->in));
	lane->bodies += body_len;
	wf_ack_later(r, lane, b->in->next - b->in->told >= WF_ACK_BYTES || lane->bodies >= WF_BODIES_MOST);
}

/* Frames that can be read the short way? */
static inline bool wf_brief_may(const struct wf_remote *r, const struct wf_lane *lane)
{
	return wf_likely(!r->err && !lane->bytes && !lane->suspect);
}

#endif
