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

#endif
