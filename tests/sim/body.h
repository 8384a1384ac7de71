/* body.h - messages with bodies, for remotes to whom the same happens by one way and by another. */
#ifndef BODY_H
#define BODY_H

#include "alone.h"

#include "base/bytes.h"
#include "peer/brief_body.h"

enum { ROOM = 4096, FRAMES = WF_BODY_FRAMES, LONG = 16 << 10 };

static inline struct wf_rsend mail(uint64_t context, size_t len)
{
	return (struct wf_rsend){ .to = 7, .from = 9, .index = 11, .tag = 0x123456789, .context = context, .len = len };
}

static inline void write_all(struct wf_remote *r, struct wf_lane *lane)
{
	unsigned char bytes[ROOM];

	while (general(r, lane, bytes))
		;
}

static inline void acknowledge_on(struct wf_remote *r, struct wf_lane *lane, unsigned stream)
{
	struct wf_acts acts = { 0 };
	unsigned char ack[16];

	wf_wire_put(ack, WF_WIRE_ACK, (uint8_t)stream, r->out[stream]->epoch, r->out[stream]->rt.sent);
	MUST_OK(wf_remote_record(r, lane, ack, sizeof(ack), 0, WEFT_S, &acts));
}

static inline void acknowledge(struct wf_remote *r, struct wf_lane *lane)
{
	acknowledge_on(r, lane, WF_STREAM_PLAIN);
}

/* A remote whose plain stream has carried something, both ways: nothing is in the way, and nothing is expected. */
static inline void warm(struct wf_remote *r, struct wf_lane *lane[3])
{
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8, .flags = WF_SEND_NOW };
	unsigned char bytes[32];
	struct wf_acts acts = { 0 };

	alone(r, lane);
	MUST(wf_remote_send(r, &s, WEFT_S) == WEFT_DONE);
	wf_remote_acts(r, WEFT_S, &acts);
	write_all(r, lane[1]);
	acts.n = 0;
	wf_wire_put(bytes, WF_WIRE_MOVE, WF_STREAM_PLAIN, 1, 0);
	wf_wire_put(bytes + 16, WF_WIRE_ACK, WF_STREAM_PLAIN, r->out[WF_STREAM_PLAIN]->epoch, r->out[WF_STREAM_PLAIN]->rt.sent);
	MUST_OK(wf_remote_record(r, lane[1], bytes, 32, 0, WEFT_S, &acts));
	acts.n = 0;
	wf_remote_acts(r, WEFT_S, &acts);
	write_all(r, lane[1]);
	if (r->unacked & 1) {
		write_all(r, r->out[0]->lane);
		acknowledge_on(r, r->out[0]->lane, 0);
	}
	if (lane[1]->pinged) {
		acts.n = 0;
		wf_wire_put(bytes, WF_WIRE_PONG, 0, 0, (uint64_t)lane[1]->ping_at);
		MUST_OK(wf_remote_record(r, lane[1], bytes, 16, 0, WEFT_S, &acts));
	}
	MUST(!r->unacked && !lane[1]->pinged);
}

/* Without its first frame of @type: how long it is then. */
static inline size_t without(unsigned char *p, size_t n, unsigned char type)
{
	for (size_t at = 0; at < n; at += WF_WIRE_PAD(wf_get16(p + at + 2)))
		if (p[at] == type) {
			size_t len = WF_WIRE_PAD(wf_get16(p + at + 2));

			memmove(p + at, p + at + len, n - at - len);
			return n - len;
		}
	return n;
}

static inline void alike(const struct wf_remote *a, const struct wf_lane *la, const struct wf_rsend *s, const struct wf_remote *b, const struct wf_lane *lb, const struct wf_rsend *t)
{
	const struct wf_out *x = a->out[WF_STREAM_PLAIN], *y = b->out[WF_STREAM_PLAIN];

	CHECK(a->used == b->used && a->unacked == b->unacked && a->live == b->live && a->wake == b->wake && a->busy_since == b->busy_since && a->now == b->now && a->sends.used == b->sends.used);
	CHECK(x->rt.sent == y->rt.sent && x->rt.tail == y->rt.tail && x->rt.acked == y->rt.acked && x->used == y->used);
	CHECK((x->body == &x->bodies) == (y->body == &y->bodies) && wf_list_empty(&x->bodies) == wf_list_empty(&y->bodies));
	CHECK(la->ready == lb->ready && la->acks == lb->acks && la->ack_at == lb->ack_at && la->since == lb->since && la->bodies == lb->bodies);
	CHECK(s->state == t->state && s->number == t->number && s->start == t->start && s->end == t->end && s->shown == t->shown && s->acked == t->acked && s->pins == t->pins);
	CHECK_EQ(memcmp(a->last_to, b->last_to, sizeof(a->last_to)), 0);
	for (uint64_t at = x->rt.acked; at < x->rt.tail; at += 8)
		CHECK_EQ(memcmp(wf_retain_head(&x->rt, at), wf_retain_head(&y->rt, at), 8), 0);
}

/* A record with one message and its body, as the short way has it. */
static inline uint32_t record(const struct wf_remote *r, unsigned char *to, uint64_t context, uint32_t body)
{
	const struct wf_in *in = &r->in[WF_STREAM_PLAIN];
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .send = 1, .len = body, .context = context,
			     .flags = (uint8_t)(WF_WIRE_BODY | WF_WIRE_LENGTH | WF_WIRE_SEND | (context ? WF_WIRE_CONTEXT : 0)) };

	memset(to, 0, FRAMES);
	wf_wire_put(to, WF_WIRE_ACK, WF_STREAM_PLAIN, r->out[WF_STREAM_PLAIN]->epoch, r->out[WF_STREAM_PLAIN]->rt.sent);
	wf_wire_put(to + 16, WF_WIRE_LIMIT, 0, 0, 1 << 20);
	wf_wire_head(to + 32, WF_WIRE_PADDING, 0, context ? 16 : 24);
	to += context ? 48 : 56;
	wf_wire_put(to, WF_WIRE_STREAM, WF_STREAM_PLAIN, in->epoch, in->next);
	wf_wire_put_msg(to + 16, &m, 0);
	return FRAMES;
}

#endif
