/* brisk.h - remotes to whom the same happens by one way and by another. */
#ifndef BRISK_H
#define BRISK_H

#include "alone.h"

enum { ROOM = 4096 };


/* A remote whose plain stream has carried something: nothing is in the way. */
static inline void warm(struct wf_remote *r, struct wf_lane *lane[3])
{
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8, .flags = WF_SEND_NOW };
	unsigned char bytes[ROOM];
	struct wf_acts acts = { 0 };

	alone(r, lane);
	MUST(wf_remote_send(r, &s, WEFT_S) == WEFT_DONE);
	wf_remote_acts(r, WEFT_S, &acts);
	MUST(general(r, lane[1], bytes));
	MUST(!general(r, lane[1], bytes));
	acts.n = 0;
	wf_wire_put(bytes, WF_WIRE_MOVE, WF_STREAM_PLAIN, 1, 0);
	MUST_OK(wf_remote_record(r, lane[1], bytes, 16, 0, WEFT_S, &acts));
	while (general(r, lane[1], bytes))
		;
}

static inline struct wf_brisk mail(size_t len)
{
	return (struct wf_brisk){ .to = 7, .from = 9, .index = 11, .tag = 0x123456789, .context = len % 2 ? 0x55 : 0, .payload = some_bytes(), .len = len };
}

/* Two that have done the same. */
static inline void alike(const struct wf_remote *a, const struct wf_lane *la, const struct wf_remote *b, const struct wf_lane *lb)
{
	const struct wf_out *x = a->out[WF_STREAM_PLAIN], *y = b->out[WF_STREAM_PLAIN];

	CHECK(a->used == b->used && a->unacked == b->unacked && a->wake == b->wake && a->busy_since == b->busy_since && a->now == b->now && a->write_due == b->write_due);
	CHECK(x->rt.sent == y->rt.sent && x->rt.tail == y->rt.tail && x->rt.acked == y->rt.acked && x->rt.size == y->rt.size && x->used == y->used);
	CHECK(la->ready == lb->ready && la->active == lb->active && la->acks == lb->acks && la->ack_at == lb->ack_at && la->since == lb->since);
	CHECK_EQ(memcmp(a->last_to, b->last_to, sizeof(a->last_to)), 0);
	for (uint64_t at = x->rt.acked; at < x->rt.tail && x->rt.size; at += 8)
		CHECK_EQ(memcmp(wf_retain_head(&x->rt, at), wf_retain_head(&y->rt, at), 8), 0);
}

static inline void acknowledge(struct wf_remote *r, struct wf_lane *lane)
{
	struct wf_acts acts = { 0 };
	unsigned char ack[16];

	wf_wire_put(ack, WF_WIRE_ACK, WF_STREAM_PLAIN, r->out[WF_STREAM_PLAIN]->epoch, r->out[WF_STREAM_PLAIN]->rt.sent);
	MUST_OK(wf_remote_record(r, lane, ack, sizeof(ack), 0, WEFT_S, &acts));
}

#endif
