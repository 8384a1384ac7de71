/* alone.h - a remote whose other end is the test itself. */
#ifndef ALONE_H
#define ALONE_H

#include "peer/remote.h"

#include "test.h"

static inline int no_pieces(const struct wf_landing *l, uint64_t at, struct iovec *iov, int max)
{
	(void)l, (void)at, (void)iov, (void)max;
	return 0;
}

/* What is sent: bytes that tell where they belong. */
static inline unsigned char *some_bytes(void)
{
	static unsigned char bytes[1 << 20];

	for (uint32_t i = 0; !bytes[0] && i < sizeof(bytes); i++)
		bytes[sizeof(bytes) - 1 - i] = (unsigned char)(1 + (i ^ i >> 8 ^ i >> 16) % 255);
	return bytes;
}

static inline int some_pieces(const struct wf_rsend *s, uint64_t at, struct iovec *iov, int max)
{
	(void)max;
	iov[0] = (struct iovec){ some_bytes() + at, (size_t)(s->len - at) };
	return 1;
}

static const struct wf_remote_ops plain_ops = { .send_pieces = some_pieces, .land_pieces = no_pieces };

/* A remote whose lanes are up and whose other end is this test. */
static inline void alone(struct wf_remote *r, struct wf_lane *lane[3])
{
	struct wf_remote_conf conf = { .me = 1, .them = 2, .rails = 1, .ops = &plain_ops };
	struct wf_fill f;

	MUST_OK(wf_remote_init(r, &conf, WEFT_S));
	for (uint32_t i = 0; i < 3; i++) {
		lane[i] = wf_remote_lane_up(r, i, 1, true, WEFT_S);
		MUST(lane[i]);
		while (wf_remote_fill(r, lane[i], &f, WEFT_S))
			wf_remote_wrote(r, lane[i], WEFT_S);
	}
}

/* The frames of the next record of @lane, at @to: how many bytes; 0: there is none. */
static inline size_t next_frames(struct wf_remote *r, struct wf_lane *lane, unsigned char *to)
{
	struct wf_fill f;
	size_t n = 0;

	if (!wf_remote_fill(r, lane, &f, WEFT_S))
		return 0;
	for (int i = 0; i < f.nsmall; i++) {
		memcpy(to + n, f.small[i].iov_base, f.small[i].iov_len);
		n += f.small[i].iov_len;
	}
	return n;
}

/* The same, and it is written. */
static inline size_t general(struct wf_remote *r, struct wf_lane *lane, unsigned char *to)
{
	size_t n = next_frames(r, lane, to);

	if (n)
		wf_remote_wrote(r, lane, WEFT_S);
	return n;
}

/* How many acts of that kind it wants now. */
static inline int acts_of(struct wf_remote *r, uint8_t kind)
{
	struct wf_acts acts = { 0 };
	int n = 0;

	wf_remote_acts(r, WEFT_S, &acts);
	for (int i = 0; i < acts.n; i++)
		n += acts.a[i].kind == kind;
	return n;
}

/* One control frame from the other end, by hand. */
static inline int control(struct wf_remote *r, struct wf_lane *lane, const unsigned char *frame, uint32_t len)
{
	unsigned char bytes[600];
	struct wf_acts acts = { 0 };

	if (!r->in[0].epoch) {
		wf_wire_put(bytes, WF_WIRE_MOVE, 0, 1, 0);
		MUST_OK(wf_remote_record(r, lane, bytes, 16, 0, WEFT_S, &acts));
	}
	wf_wire_put(bytes, WF_WIRE_STREAM, 0, 1, r->in[0].next);
	memcpy(bytes + 16, frame, len);
	return wf_remote_record(r, lane, bytes, 16 + len, 0, WEFT_S, &acts);
}

/* What is in the way of a record that is read the short way, on lane @l as the next of stream @in: OTHERWISE(set, back) for each. */
#define NOT_THE_NEXT(OTHERWISE) do { \
	OTHERWISE(r.err = -ECONNRESET, r.err = 0); \
	OTHERWISE(l->suspect = true, l->suspect = false); \
	OTHERWISE(l->bytes = bytes, l->bytes = NULL); \
	OTHERWISE(in->lane = lane[0], in->lane = l); \
	OTHERWISE(in->begun = true, in->begun = false); \
	OTHERWISE(in->epoch++, in->epoch--); \
	OTHERWISE(in->next += 8, in->next -= 8); \
} while (0)

/* What keeps a message, with a body or without, from a record of its own, one thing after the other: @each(set, back). For a remote @r, its lane @l of @lane[3], the plain stream @out and a send @other. */
#define IN_ITS_WAY(each) do { \
	each(l->ready = 1, l->ready = 0); \
	each(l->resumes = 1, l->resumes = 0); \
	each(l->moves = 1, l->moves = 0); \
	each(l->active = true, l->active = false); \
	each(l->closing = true, l->closing = false); \
	each(l->up = false, l->up = true); \
	each(l->pong_due = true, l->pong_due = false); \
	each(l->ping_due = true, l->ping_due = false); \
	each(l->chunk_got++, l->chunk_got--); \
	each(r.lead = &other, r.lead = NULL); \
	each(r.ndests = 1, r.ndests = 0); \
	each(r.ninvites = 1, r.ninvites = 0); \
	each(r.closing = true, r.closing = false); \
	each(out->waits = true, out->waits = false); \
	each(out->lane = lane[0], out->lane = l); \
	each(out->body = &other.node, out->body = &out->bodies); \
} while (0)

#endif
