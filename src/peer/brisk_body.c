/* brisk_body.c - as brisk.c for one message whose payload is its record's body: to who waits for its answer, or for it.
 *
 * The frames of such a record are always as long, whatever they say: then its reader can guess where its body begins before it is there, and have that read straight to where it goes
 * (wire/line_ahead.c). And that is where a line begins: 16 KiB to and fro over TCP, on loopback, took 2 % longer with a body 104 bytes behind the record's first (aarch64).
 */
#include "peer/brief_body.h"

/* As many bytes of padding as make the body begin at the next multiple of a line, whatever comes before. */
static inline unsigned char *put_pad(unsigned char *p, size_t n)
{
	static const unsigned char none[WF_BODY_FRAMES];

	if (n) {
		memcpy(p, none, n);
		wf_wire_head(p, WF_WIRE_PADDING, 0, n);
	}
	return p + n;
}

static inline void put_frame(unsigned char *p, const struct wf_rsend *s, size_t head)
{
	wf_wire_head(p, WF_WIRE_MSG, (uint8_t)(WF_BODY_FLAGS | (s->context ? WF_WIRE_CONTEXT : 0)), head);
	wf_put32(p + 4, s->to);
	wf_put32(p + 8, s->from);
	wf_put32(p + 12, s->index);
	wf_put64(p + 16, s->tag);
	p += WF_WIRE_MSG_LEAST;
	if (wf_unlikely(s->context != 0)) {
		wf_put64(p, s->context);
		p += 8;
	}
	wf_put64(p, s->number);
	wf_put64(p + 8, s->len);
}

WF_HOT size_t wf_remote_body_flat(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s, unsigned char *to, size_t room, weft_time now, bool *ret_more)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	size_t head = wf_body_step(s->context);
	unsigned char *p = to;

	if (wf_unlikely(r->done_at)) {
		r->now = now;
		wf_done_answered(r);
	}
	if (!wf_may_append(r, out, s->len) || !wf_lane_free(r, lane, out, head))
		return 0;
	if (wf_unlikely(lane->acks & ~wf_bit(WF_STREAM_PLAIN) || WF_BODY_FRAMES > room || s->len <= WF_INLINE_MOST || wf_numbers_add(&r->sends, s, &s->number)))
		return 0;
	r->now = now;
	if (lane->acks)
		p = wf_put_acks(r, lane, p);
	if (wf_unlikely(r->done))
		p = wf_done_along(r, lane, p);
	wf_wire_put(p, WF_WIRE_LIMIT, 0, 0, wf_credit_hinted(r));
	p = put_pad(p + 16, WF_BODY_FRAMES - head - 32 - (size_t)(p - to));
	wf_wire_put(p, WF_WIRE_STREAM, out->id, out->epoch, out->rt.tail);
	p += 16;
	put_frame(p, s, head);
	wf_copy_words(wf_retain_head(&out->rt, out->rt.tail), p, head);
	wf_body_begins(s, out, head);
	r->used += wf_credit_cost(s->len);
	wf_put_and_sent(r, lane, out, head, wf_invite_at(r, s->to, s->context));
	r->live++;
	lane->active = *ret_more = wf_bulk_wanted(r);
	return (size_t)(p - to) + head;
}

void wf_remote_body_rest(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s)
{
	(void)r;
	lane->pinned = s;
	lane->active = lane->writing = true;
}

WF_HOT struct wf_rsend *wf_remote_spent(struct wf_remote *r)
{
	struct wf_rsend *s;

	if (wf_list_empty(&r->spent))
		return NULL;
	s = wf_of(wf_list_pop(&r->spent), struct wf_rsend, node);
	s->state = WF_S_NONE;
	return s;
}

/* The last frame, by its length; it may be a lie as long as nobody has looked at those before it. */
WF_HOT const unsigned char *wf_remote_body_where(const struct wf_whole *w, struct wf_brisk *ret_msg)
{
	const unsigned char *end = (const unsigned char *)w->frames + w->len, *p = end - WF_BODY_LEAST;

	if (wf_unlikely(w->len < 16 + WF_BODY_LEAST || p[0] != WF_WIRE_MSG || wf_get16(p + 2) != WF_BODY_LEAST))
		p -= 8;
	if (wf_unlikely(p < (const unsigned char *)w->frames + 16 || p[0] != WF_WIRE_MSG || p + wf_get16(p + 2) != end))
		return NULL;
	if (wf_unlikely(p[1] != (p + WF_BODY_LEAST == end ? WF_BODY_FLAGS : WF_BODY_FLAGS | WF_WIRE_CONTEXT) || !wf_get64(end - 16) || wf_get64(end - 8) != w->body_len))
		return NULL;
	wf_msg_head(p, ret_msg);
	ret_msg->payload = w->body;
	ret_msg->len = w->body_len;
	return p;
}

WF_HOT bool wf_remote_body_looked(struct wf_remote *r, const struct wf_lane *lane, const struct wf_whole *w, const unsigned char *where, struct wf_brief *ret_b)
{
	if (!wf_brief_may(r, lane) || wf_unlikely(wf_brief_head(r, lane, w->frames, w->len, ret_b) != where))
		return false;
	ret_b->step = (uint64_t)((const unsigned char *)w->frames + w->len - where);
	ret_b->cost = wf_credit_cost(w->body_len);
	return w->body_len && ret_b->cost <= r->promised - r->arrived;
}

WF_HOT void wf_remote_body_told(struct wf_remote *r, struct wf_lane *lane, const struct wf_brief *b, uint32_t body_len, weft_time now)
{
	wf_brief_done(r, lane, b, body_len, now);
}
