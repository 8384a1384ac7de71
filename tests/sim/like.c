/* like.c - records like the last one of an end, as the library has them (wire/line_out.c, line_like.c, line_ahead.c): by the ways of peer/brief.h and brief_body.h. No choice of a run depends
 * on whether they are taken: what happens in it must be the same.
 */
#include "sim.h"

#include "brief_one.h"
#include "peer/brief_body.h"

uint64_t like_sent[2], like_got[2];

static bool as(const struct wf_brisk *m, const struct wf_brisk *b)
{
	return m->to == b->to && m->from == b->from && m->index == b->index && m->tag == b->tag && m->context == b->context && m->len == b->len;
}

size_t like_short(struct end *e, struct wf_remote *r, const struct wf_brisk *b)
{
	size_t heads, n = e->left.n;
	bool more;

	if (n && !e->left.body && as(&e->left.msg, b) && wf_brief_again(r, e->lane, b, e->flat, n - 16, wf_invite_at(r, b->to, b->context), e->p->w->now)) {
		like_sent[0]++;
		return n;
	}
	n = wf_remote_brisk_flat(r, e->lane, b, e->flat, sizeof(e->flat), e->p->w->now, &heads, &more);
	e->left.n = n && n == heads && n <= LIKE_MOST && e->flat[0] == WF_WIRE_STREAM && e->flat[16] == WF_WIRE_MSG ? n : 0;
	e->left.body = false;
	e->left.msg = *b;
	return n;
}

size_t like_body(struct end *e, struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_brisk m = { .to = s->to, .from = s->from, .index = s->index, .tag = s->tag, .context = s->context, .len = s->len };
	size_t n;
	bool more;

	if (e->left.n && e->left.body && as(&e->left.msg, &m) && wf_body_again(r, e->lane, s, e->flat, wf_invite_at(r, s->to, s->context), e->p->w->now)) {
		like_sent[1]++;
		return WF_BODY_FRAMES;
	}
	n = wf_remote_body_flat(r, e->lane, s, e->flat, sizeof(e->flat), e->p->w->now, &more);
	e->left.n = n && wf_body_like(e->flat, wf_body_step(s->context)) ? n : 0;
	e->left.body = true;
	e->left.msg = m;
	return n;
}

/* Bytes of its message's frame, if these are frames of one with a body; else 0. */
static size_t step_of(const unsigned char *frames, uint32_t n)
{
	if (n != WF_BODY_FRAMES)
		return 0;
	return wf_body_like(frames, WF_BODY_LEAST) ? WF_BODY_LEAST : wf_body_like(frames, WF_BODY_LEAST + 8) ? WF_BODY_LEAST + 8 : 0;
}

/* What two that are alike have in common: all but where they are in their streams, what they are paid for, and a short one's payload. */
static size_t common(const unsigned char *frames, uint32_t n, uint32_t body_len, unsigned char *to)
{
	size_t step;

	memcpy(to, frames, n);
	if (!body_len) {
		size_t head = 16 + WF_WIRE_MSG_LEAST;

		if (n < head || n < (head += frames[17] & WF_WIRE_CONTEXT ? 8 : 0) || frames[0] != WF_WIRE_STREAM || frames[16] != WF_WIRE_MSG || WF_WIRE_PAD(wf_get16(frames + 18)) != n - 16)
			return 0;
		memset(to + 8, 0, 8);
		memset(to + head, 0, n - head);
		return n;
	}
	step = step_of(frames, n);
	if (!step)
		return 0;
	memset(to + 8, 0, 8);
	memset(to + 24, 0, 8);
	memset(to + wf_body_stream(step) + 8, 0, 8);
	memset(to + n - 16, 0, 8);
	return n;
}

/* Of a short one. */
static size_t payload_len(const unsigned char *frames)
{
	return wf_get16(frames + 18) - WF_WIRE_MSG_LEAST - (frames[17] & WF_WIRE_CONTEXT ? 8 : 0);
}

/* The same as wf_remote_record_row makes of it. */
static struct wf_row row_of(const struct end *e)
{
	size_t len = payload_len(e->rx);

	return (struct wf_row){ .first = e->rx + 16, .end = e->rx + e->small_len, .count = 1, .alike = !(e->rx[17] & WF_WIRE_CONTEXT), .longest = (uint32_t)len, .cost = wf_credit_cost(len) };
}

bool like_read(struct end *e)
{
	struct wf_remote *r = e->p->remote[e->other];
	unsigned char now[LIKE_MOST];
	bool so;

	if (e->small_len > sizeof(now) || !e->came.n || e->came.n != e->small_len || e->came.body_len != e->body_len || !common(e->rx, e->small_len, e->body_len, now) ||
	    memcmp(now, e->came.bytes, e->came.n) != 0)
		return false;
	if (e->body_len)
		so = wf_body_one(r, e->lane, e->rx, step_of(e->rx, e->small_len), e->body_len, e->p->w->now);
	else
		so = brief_one(r, e->lane, e->rx[1], wf_get32(e->rx + 4), wf_get64(e->rx + 8), e->small_len - 16, wf_credit_cost(payload_len(e->rx)), e->p->w->now);
	like_got[e->body_len > 0] += so;
	return so;
}

void like_came(struct end *e)
{
	e->came.n = e->small_len <= sizeof(e->came.bytes) ? common(e->rx, e->small_len, e->body_len, e->came.bytes) : 0;
	e->came.body_len = e->body_len;
}

bool like_row(struct end *e, struct wf_row *ret_row)
{
	if (like_read(e))
		*ret_row = row_of(e);
	else if (!wf_remote_record_row(e->p->remote[e->other], e->lane, e->rx, e->small_len, e->p->w->now, ret_row))
		return false;
	like_came(e);
	return true;
}
