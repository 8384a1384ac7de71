/* brisk.c - what happens most, in one go: a short message put at the end of its stream, a short record filled, a record of short messages read.
 *
 * They do what send.c, fill.c and record.c would, and only where nothing is in the way: else they answer no, nothing has happened, and those see to it.
 */
#include "peer/brief.h"

#define PAYLOAD_LONG 256u       /* shorter ones cost less than to tell them from the rest */

/* A message of @step bytes that begins with @head goes round the end of the ring. */
static void put_in_two(struct wf_retain *rt, const unsigned char *head, size_t head_len, const struct wf_brisk *b, size_t step)
{
	static const unsigned char none[8];

	wf_retain_put(rt, rt->tail + step - 8, none, 8);
	wf_retain_put(rt, rt->tail, head, head_len);
	wf_retain_put(rt, rt->tail + head_len, b->payload, b->len);
}

/* The frame of @b but for its payload, at @p. */
static inline void put_head(unsigned char *p, const struct wf_brisk *b, size_t head)
{
	wf_wire_head(p, WF_WIRE_MSG, b->context ? WF_WIRE_CONTEXT : 0, head + b->len);
	wf_put32(p + 4, b->to);
	wf_put32(p + 8, b->from);
	wf_put32(p + 12, b->index);
	wf_put64(p + 16, b->tag);
	if (b->context)
		wf_put64(p + WF_WIRE_MSG_LEAST, b->context);
}

/* All of it: @step bytes. */
static inline void put_frame(unsigned char *p, const struct wf_brisk *b, size_t head, size_t step)
{
	wf_put64(p + step - 8, 0);      /* padding */
	put_head(p, b, head);
	if (wf_likely(b->len == 8))
		memcpy(p + head, b->payload, 8);
	else if (b->len)
		memcpy(p + head, b->payload, b->len);
}

/* How many of the length of @b may follow one frame with it at the tail: as far as the ring goes without a turn, and without growing. (If it grows it goes further, not less far.) */
static uint32_t row_room(const struct wf_retain *rt, const struct wf_brisk *b, size_t step)
{
	uint64_t used = wf_used_before_tail(rt) + step, turn = rt->size - (rt->tail & (rt->size - 1)), room = rt->most - WF_SPARE - used, n;

	if (!b->len || b->len > WF_WIRE_ROW_EACH || b->len % 8 || step > turn)
		return 0;
	room = room < rt->size - used ? room : rt->size - used;
	n = (room < turn - step ? room : turn - step) / b->len;
	return n < WF_WIRE_ROW_MOST ? (uint32_t)n : WF_WIRE_ROW_MOST - 1;
}

/* A frame of its own for @b is about to be put at the tail, @step bytes, for which there is room: others may join it. */
static inline void row_begins(struct wf_remote *r, const struct wf_out *out, const struct wf_brisk *b, size_t step)
{
	unsigned char head[4];

	wf_wire_head(head, WF_WIRE_ROW, (uint8_t)((b->context ? WF_WIRE_CONTEXT : 0) | b->len / 8 << WF_WIRE_ROW_SHIFT), wf_brisk_head(b) + b->len);
	r->row.head = wf_get32(head);
	r->row.left = row_room(&out->rt, b, step);
	r->row.at = out->rt.tail;
	r->row.end = out->rt.tail + step;
	r->row.tag = b->tag;
	r->row.context = b->context;
	r->row.to = b->to;
	r->row.from = b->from;
	r->row.index = b->index;
	r->row.len = (uint32_t)b->len;
	r->row.last = wf_invite_at(r, b->to, b->context);
}

WF_HOT bool wf_remote_brisk(struct wf_remote *r, const struct wf_brisk *b)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	unsigned char head_at[WF_WIRE_MSG_LEAST + 8], *p;
	size_t head, step;

	if (wf_likely(wf_row_joined(r, *b)))
		return true;
	if (!wf_may_append(r, out, b->len) || wf_unlikely(r->done_at))
		return false;
	head = wf_brisk_head(b);
	step = WF_WIRE_PAD(head + b->len);
	if (!wf_room_at_tail(&out->rt, step))
		return false;
	r->used += wf_credit_cost(b->len);
	p = wf_retain_head(&out->rt, out->rt.tail);
	row_begins(r, out, b, step);
	if (wf_unlikely(step > out->rt.size - (size_t)(p - out->rt.mem))) {
		put_head(head_at, b, head);
		put_in_two(&out->rt, head_at, head, b, step);
	} else {
		put_frame(p, b, head, step);
	}
	*r->row.last = out->rt.tail + step;
	wf_out_appended(r, out, step);
	return true;
}

/* How many there are. One mostly, or none: counting more is a call where the CPU may lack the instruction. */
static unsigned bits(uint64_t word)
{
	return word & (word - 1) ? (unsigned)__builtin_popcountll(word) : word != 0;
}

/* Where the payload of the one message in @n bytes at @p begins, if it is a long one, or the payloads of a long row; else their end. */
static size_t payload_at(const unsigned char *p, size_t n)
{
	size_t head = WF_WIRE_MSG_LEAST + (p[1] & WF_WIRE_CONTEXT ? 8 : 0);

	if (n < PAYLOAD_LONG || WF_WIRE_PAD(wf_get16(p + 2)) != n)
		return n;
	return p[0] == WF_WIRE_ROW || (p[0] == WF_WIRE_MSG && !(p[1] & ~(unsigned)WF_WIRE_CONTEXT)) ? head : n;
}

size_t wf_remote_fill_flat(struct wf_remote *r, struct wf_lane *lane, unsigned char *to, size_t room, weft_time now, size_t *ret_heads, bool *ret_more)
{
	struct wf_out *out;
	unsigned char *p = to;
	uint64_t n, first;

	if (!lane->ready || lane->ready & (lane->ready - 1) || lane->closing || !lane->up || r->err)
		return 0;
	if (r->lead || r->done || lane->resumes || lane->moves || lane->pong_due || lane->ping_due || lane->chunk_told != lane->chunk_got)
		return 0;
	out = r->out[__builtin_ctzll(lane->ready)];
	n = out->rt.tail - out->rt.sent;
	if (out->body != &out->bodies || n + 32 + 16 * bits(lane->acks) > room)
		return 0;
	r->now = now;
	p = wf_credit_along(r, wf_put_acks(r, lane, p));
	wf_wire_put(p, WF_WIRE_STREAM, out->id, out->epoch, out->rt.sent);
	first = out->rt.size - (out->rt.sent & (out->rt.size - 1));
	if (wf_unlikely(n > first))
		memcpy(p + 16 + first, out->rt.mem, (size_t)(n - first));
	memcpy(p + 16, wf_retain_head(&out->rt, out->rt.sent), (size_t)(n < first ? n : first));
	*ret_heads = (size_t)(p + 16 - to) + payload_at(p + 16, (size_t)n);
	out->rt.sent = out->rt.tail;
	lane->ready = 0;
	wf_lane_expect(r, lane);
	lane->active = *ret_more = wf_bulk_wanted(r);
	return (size_t)(p + 16 - to) + (size_t)n;
}

WF_HOT size_t wf_remote_brisk_flat(struct wf_remote *r, struct wf_lane *lane, const struct wf_brisk *b, unsigned char *to, size_t room, weft_time now, size_t *ret_heads, bool *ret_more)
{
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	uint64_t cost = wf_credit_cost(b->len);
	size_t head = wf_brisk_head(b), step = WF_WIRE_PAD(head + b->len);
	unsigned char *ring, *p = to;

	if (wf_unlikely(r->done_at)) {
		r->now = now;
		wf_done_answered(r);
	}
	if (!wf_may_append(r, out, b->len) || !wf_lane_free(r, lane, out, step) || wf_unlikely(step + 48 + 16 * bits(lane->acks) > room))
		return 0;
	ring = wf_retain_head(&out->rt, out->rt.tail);
	r->now = now;
	if (!wf_acks_can_wait(lane, now))
		p = wf_put_acks(r, lane, p);
	if (wf_unlikely(r->done))
		p = wf_done_along(r, lane, p);
	p = wf_credit_along(r, p);
	wf_wire_put(p, WF_WIRE_STREAM, out->id, out->epoch, out->rt.tail);
	p += 16;
	put_frame(p, b, head, step);
	wf_copy_words(ring, p, step);
	r->used += cost;
	wf_put_and_sent(r, lane, out, step, wf_invite_at(r, b->to, b->context));
	lane->active = *ret_more = wf_bulk_wanted(r);
	*ret_heads = (size_t)(p - to) + (step < PAYLOAD_LONG ? step : head);
	return (size_t)(p - to) + step;
}

/* A message whose payload is the record's body, and the last of its frames; what is @left of it is at @p. */
static bool brief_body(const unsigned char *p, size_t left, unsigned flags, const struct wf_whole *w, struct wf_rmsg *m)
{
	if (left != 16 || flags != (WF_WIRE_BODY | WF_WIRE_LENGTH | WF_WIRE_SEND) || !w->body)
		return false;
	m->send = wf_get64(p);
	m->len = wf_get64(p + 8);
	m->payload = w->body;
	return m->send && m->len && m->len == w->body_len;
}

/* The message at @p, of which @left bytes are here: bytes it takes; 0: it is another. */
static inline __attribute__((always_inline)) size_t brief_message(const unsigned char *p, size_t left, const struct wf_whole *w, struct wf_act *a)
{
	size_t all = left < WF_WIRE_MSG_LEAST ? 0 : wf_get16(p + 2), head;
	unsigned flags;

	if (wf_unlikely(all < WF_WIRE_MSG_LEAST || WF_WIRE_PAD(all) > left || p[0] != WF_WIRE_MSG))
		return 0;
	flags = p[1] & ~(unsigned)WF_WIRE_CONTEXT;
	head = WF_WIRE_MSG_LEAST + (flags == p[1] ? 0 : 8);
	if (wf_unlikely(all < head))
		return 0;
	a->kind = WF_ACT_MSG;
	a->err = 0;
	a->msg = (struct wf_rmsg){ .to = wf_get32(p + 4), .from = wf_get32(p + 8), .index = wf_get32(p + 12), .tag = wf_get64(p + 16), .type = WF_WIRE_MSG,
				   .flags = p[1], .context = flags == p[1] ? 0 : wf_get64(p + WF_WIRE_MSG_LEAST), .len = all - head, .payload = p + head };
	if (wf_unlikely(flags) && !brief_body(p + head, all - head, flags, w, &a->msg))
		return 0;
	a->cost = wf_credit_cost(a->msg.len);
	return WF_WIRE_PAD(all);
}

/* The messages: how many; 0: they are others. */
static int brief_messages(const unsigned char *p, const unsigned char *end, const struct wf_whole *w, struct wf_acts *acts, struct wf_brief *b)
{
	bool body = false;
	int n = 0;

	while (p < end && n < WF_ACTS && !body) {
		struct wf_act *a = &acts->a[n++];
		size_t step = brief_message(p, (size_t)(end - p), w, a);

		if (!step)
			return 0;
		body = a->msg.flags & WF_WIRE_BODY;
		b->cost += a->cost;
		b->step += step;
		p += step;
	}
	return p == end && body == (w->body_len > 0) ? n : 0;
}

WF_HOT bool wf_remote_record_row(struct wf_remote *r, struct wf_lane *lane, const void *frames, uint32_t len, weft_time now, struct wf_row *ret_row)
{
	const unsigned char *p, *end = (const unsigned char *)frames + len;
	uint32_t count = 0, to = 0, others = 0;
	size_t longest = 0;
	struct wf_brief b;

	if (!wf_brief_may(r, lane))
		return false;
	p = wf_brief_head(r, lane, frames, len, &b);
	if (wf_unlikely(!p || p == end))
		return false;
	ret_row->first = p;
	ret_row->end = end;
	b.step = (uint64_t)(end - p);
	do {
		size_t left = (size_t)(end - p), all, head = WF_WIRE_MSG_LEAST, each;
		uint32_t n = 1;

		if (wf_unlikely(left < WF_WIRE_MSG_LEAST))
			return false;
		all = wf_get16(p + 2);
		if (wf_unlikely(p[1] & WF_WIRE_CONTEXT))
			head += 8;
		if (wf_unlikely(all < head || WF_WIRE_PAD(all) > left))
			return false;
		each = all - head;
		if (wf_unlikely(p[0] == WF_WIRE_ROW))
			n = wf_wire_row(p, all, &head, &each);
		else if (wf_unlikely(p[0] != WF_WIRE_MSG || p[1] & ~(unsigned)WF_WIRE_CONTEXT))
			return false;
		if (wf_unlikely(!n))
			return false;
		to = count ? to : wf_get32(p + 4);
		others |= (p[1] & WF_WIRE_CONTEXT) | (wf_get32(p + 4) ^ to);
		longest = each > longest ? each : longest;
		count += n;
		b.cost += n * wf_credit_cost(each);
		p += WF_WIRE_PAD(all);
	} while (wf_unlikely(p < end));
	ret_row->count = count;
	ret_row->alike = !others;
	ret_row->longest = (uint32_t)longest;
	if (wf_unlikely(b.cost > r->promised - r->arrived))
		return false;
	ret_row->cost = b.cost;
	wf_brief_done(r, lane, &b, 0, now);
	return true;
}

bool wf_remote_record_brisk(struct wf_remote *r, struct wf_lane *lane, const struct wf_whole *w, weft_time now, struct wf_acts *acts, bool only_ask)
{
	const unsigned char *p = w->frames;
	struct wf_brief b;
	int n;

	if (!wf_brief_may(r, lane))
		return false;
	p = wf_brief_head(r, lane, p, w->len, &b);
	n = p ? brief_messages(p, (const unsigned char *)w->frames + w->len, w, acts, &b) : 0;
	if (!n || b.cost > r->promised - r->arrived)
		return false;
	if (only_ask)
		return true;
	acts->n = n;
	wf_brief_done(r, lane, &b, w->body_len, now);
	wf_tell_sent(r, acts);          /* what the ACK ended: an answer mostly brings it */
	return true;
}
