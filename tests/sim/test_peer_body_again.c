/* test_peer_body_again.c - a message with a body like the last one (peer/brief_body.h) does what any does: the same frames, the same state; or nothing. */
#include "body.h"

enum { TURNS = 3000 };           /* the ring that keeps frames goes round several times */

/* Who talks to it: its own counts. */
struct other {
	uint64_t sent, number, limit;
};

/* A record of the other end, as it writes them by this way: everything of ours is acknowledged. */
static void answer(const struct wf_remote *r, struct other *o, unsigned char *to, uint64_t context, uint32_t body)
{
	size_t step = wf_body_step(context);
	unsigned char *stream;
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .send = ++o->number, .len = body, .context = context,
			     .flags = (uint8_t)(WF_BODY_FLAGS | (context ? WF_WIRE_CONTEXT : 0)) };

	memset(to, 0, WF_BODY_FRAMES);
	wf_wire_put(to, WF_WIRE_ACK, WF_STREAM_PLAIN, r->out[WF_STREAM_PLAIN]->epoch, r->out[WF_STREAM_PLAIN]->rt.sent);
	wf_wire_put(to + 16, WF_WIRE_LIMIT, 0, 0, o->limit += 2 * body);
	wf_wire_head(to + 32, WF_WIRE_PADDING, 0, wf_body_stream(step) - 32);
	stream = to + wf_body_stream(step);
	wf_wire_put(stream, WF_WIRE_STREAM, WF_STREAM_PLAIN, r->in[WF_STREAM_PLAIN].epoch, o->sent);
	CHECK_EQ(wf_wire_put_msg(stream + 16, &m, 0), step);
	o->sent += step;
	MUST(wf_body_like(to, step));
}

/* By the way that looks at all of it. */
static bool told_wholly(struct wf_remote *r, struct wf_lane *lane, const unsigned char *frames, uint32_t body, weft_time now)
{
	struct wf_whole w = { .frames = frames, .len = WF_BODY_FRAMES, .body_len = body, .body = frames };
	const unsigned char *where;
	struct wf_brief b;
	struct wf_brisk m;

	where = wf_remote_body_where(&w, &m);
	if (!where || !wf_remote_body_looked(r, lane, &w, where, &b))
		return false;
	wf_remote_body_told(r, lane, &b, body, now);
	return true;
}

static void same_in(const struct wf_remote *a, const struct wf_lane *la, const struct wf_remote *b, const struct wf_lane *lb)
{
	const struct wf_in *x = &a->in[WF_STREAM_PLAIN], *y = &b->in[WF_STREAM_PLAIN];

	CHECK(x->next == y->next && x->told == y->told && a->arrived == b->arrived && a->limit == b->limit && a->promised == b->promised && a->hinted == b->hinted && a->told == b->told);
	CHECK(a->heard == b->heard && la->heard == lb->heard && la->ack_now == lb->ack_now && la->chunks_untold == lb->chunks_untold && a->write_due == b->write_due);
	CHECK(wf_list_empty(&a->spent) == wf_list_empty(&b->spent) && wf_list_empty(&a->ended) == wf_list_empty(&b->ended));
}

static uint64_t by_that, refused;

/* One that both send: by the usual way, and like the last one if there was one. */
static void send_both(struct wf_remote *ra, struct wf_lane *la, struct wf_rsend *s, struct wf_remote *rb, struct wf_lane *lb, struct wf_rsend *t, unsigned char *last, bool first, weft_time now)
{
	unsigned char bytes[ROOM];
	size_t n;
	bool more, so;

	memset(bytes, 0xee, sizeof(bytes));
	n = wf_remote_body_flat(ra, la, s, bytes, sizeof(bytes), now, &more);
	if (first) {
		MUST(wf_remote_body_flat(rb, lb, t, last, ROOM, now, &more) == WF_BODY_FRAMES);
	} else {
		so = wf_body_again(rb, lb, t, last, wf_invite_at(rb, t->to, t->context), now);
		CHECK_EQ(so, n > 0);
		by_that += so;
		refused += !so;
	}
	if (n) {
		CHECK_EQ(n, WF_BODY_FRAMES);
		CHECK_EQ(memcmp(bytes, last, n), 0);
		alike(ra, la, s, rb, lb, t);
		CHECK_EQ(wf_remote_kept(ra, s), wf_remote_kept(rb, t));
	} else {                        /* round the end of the ring: by the longest way */
		s->flags = t->flags = 0;
		CHECK(wf_remote_send(ra, s, now) == 0 && wf_remote_send(rb, t, now) == 0);
		write_all(ra, la);
		write_all(rb, lb);
	}
}

TEST(two_that_talk_in_messages_like_the_last_say_the_same_as_any)
{
	for (uint64_t context = 0; context < 2; context++)
		for (uint32_t body = 5000; body <= WF_EAGER; body += 13337) {
			struct wf_lane *la[3], *lb[3];
			struct wf_remote ra, rb;
			unsigned char last[ROOM];
			struct other o = { .limit = 1 << 20 };

			warm(&ra, la);
			warm(&rb, lb);
			ra.limit = rb.limit = 1 << 20;
			la[1]->acks = lb[1]->acks = UINT64_C(1) << WF_STREAM_PLAIN;
			for (int i = 0; i < TURNS; i++) {
				weft_time now = 2 * WEFT_S + i * INT64_C(5000);
				struct wf_rsend s = mail(context, body), t;
				unsigned char bytes[ROOM];
				struct wf_acts acts = { 0 };

				s.flags = WF_SEND_IDLE;
				t = s;
				send_both(&ra, la[1], &s, &rb, lb[1], &t, last, i == 0, now);
				answer(&ra, &o, bytes, context, body);
				CHECK(told_wholly(&ra, la[1], bytes, body, now));
				CHECK(wf_body_one(&rb, lb[1], bytes, wf_body_step(context), body, now));
				CHECK(s.state == WF_S_OVER && t.state == WF_S_OVER && s.err == t.err && s.number == t.number);
				alike(&ra, la[1], &s, &rb, lb[1], &t);
				same_in(&ra, la[1], &rb, lb[1]);
				if (s.flags == WF_SEND_IDLE)
					CHECK(wf_remote_spent(&ra) == &s && wf_remote_spent(&rb) == &t);
				wf_remote_freed(&ra, wf_credit_cost(body));
				wf_remote_freed(&rb, wf_credit_cost(body));
				wf_tell_sent(&ra, &acts);
				wf_tell_sent(&rb, &acts);
			}
			wf_remote_fini(&ra);
			wf_remote_fini(&rb);
		}
	CHECK(by_that > 25000 && refused > 20 && refused < 500);
}

/* One thing after the other; each is put back. */
TEST(what_is_in_its_way_is_left_to_the_other_ways)
{
	struct wf_rsend other = { .len = 1 }, s = mail(0, LONG), t;
	unsigned char last[ROOM], before_last[ROOM];
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	struct wf_out *out, kept;
	bool more;

#define IN_THE_WAY(set, back) do { \
	set; \
	before = r; \
	kept = *out; \
	t = s; \
	memcpy(before_last, last, sizeof(last)); \
	CHECK(!wf_body_again(&r, l, &t, last, wf_invite_at(&r, t.to, t.context), WEFT_S)); \
	CHECK(memcmp(&before, &r, sizeof(r)) == 0 && memcmp(&kept, out, sizeof(kept)) == 0 && memcmp(before_last, last, sizeof(last)) == 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	out = r.out[WF_STREAM_PLAIN];
	l->acks = UINT64_C(1) << WF_STREAM_PLAIN;
	memset(last, 0, sizeof(last));
	t = s;
	MUST(wf_remote_body_flat(&r, l, &t, last, sizeof(last), WEFT_S, &more) == WF_BODY_FRAMES);
	wf_remote_kept(&r, &t);
	acknowledge(&r, l);
	IN_THE_WAY(l->acks = 0, l->acks = UINT64_C(1) << WF_STREAM_PLAIN);              /* nothing to be acknowledged: shorter frames */
	IN_ITS_WAY(IN_THE_WAY);
	IN_THE_WAY(l->acks |= UINT64_C(1) << 9, l->acks &= ~(UINT64_C(1) << 9));        /* of another stream, too */
	IN_THE_WAY(r.done = 5, r.done = 0);
	IN_THE_WAY(r.done_at = 5, r.done_at = 0);
	IN_THE_WAY(r.err = -ECONNRESET, r.err = 0);
	IN_THE_WAY(out->epoch++, out->epoch--);
	IN_THE_WAY(r.in[WF_STREAM_PLAIN].epoch++, r.in[WF_STREAM_PLAIN].epoch--);
	IN_THE_WAY(r.in[WF_STREAM_PLAIN].lane = lane[0], r.in[WF_STREAM_PLAIN].lane = l);
	IN_THE_WAY(wf_list_add(&out->waiting, &other.node), wf_list_del(&other.node));
	IN_THE_WAY(wf_list_add(&r.granted, &other.node), wf_list_del(&other.node));
	IN_THE_WAY(r.used = r.limit, r.used = 0);
	IN_THE_WAY(s.len = r.conf.eager + 1, s.len = LONG);
	wf_remote_fini(&r);
#undef IN_THE_WAY
}

/* Told by neither way, or by both with the same outcome; and what is told ends what the ACK says, no more. */
TEST(one_that_comes_is_told_only_if_it_is_the_next_and_has_been_paid_for)
{
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	unsigned char bytes[ROOM];
	struct other o = { .limit = 1 << 20 };
	struct wf_in *in;

#define OTHERWISE(set, back) do { \
	set; \
	before = r; \
	CHECK(!wf_body_one(&r, l, bytes, wf_body_step(0), LONG, 2 * WEFT_S)); \
	CHECK_EQ(memcmp(&before, &r, sizeof(r)), 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	in = &r.in[WF_STREAM_PLAIN];
	answer(&r, &o, bytes, 0, LONG);
	NOT_THE_NEXT(OTHERWISE);
	OTHERWISE(r.out[WF_STREAM_PLAIN]->lane = lane[0], r.out[WF_STREAM_PLAIN]->lane = l);
	OTHERWISE(r.out[WF_STREAM_PLAIN]->epoch++, r.out[WF_STREAM_PLAIN]->epoch--);
	OTHERWISE(wf_put64(bytes + 8, r.out[WF_STREAM_PLAIN]->rt.sent + 8), wf_put64(bytes + 8, r.out[WF_STREAM_PLAIN]->rt.sent));      /* more than was sent */
	OTHERWISE(r.arrived = r.promised - wf_credit_cost(LONG) + 1, r.arrived = 0);
	CHECK(wf_body_one(&r, l, bytes, wf_body_step(0), LONG, 2 * WEFT_S));
	CHECK(!wf_body_one(&r, l, bytes, wf_body_step(0), LONG, 2 * WEFT_S));   /* once more */
	wf_remote_fini(&r);
#undef OTHERWISE
}

/* Sends that more is to happen to than to be forgotten go the usual way: both ways have the same outcome. */
TEST(an_acknowledgement_ends_what_it_says_whatever_waits_for_that)
{
	for (int how = 0; how < 6; how++) {
		struct wf_lane *la[3], *lb[3];
		struct wf_remote ra, rb;
		struct wf_rsend s[2] = { mail(0, LONG), mail(0, 5000) }, t[2] = { mail(0, LONG), mail(0, 5000) };
		int n = how == 1 ? 2 : 1;
		unsigned char bytes[ROOM];
		struct other o = { .limit = 1 << 20 };
		bool more;

		warm(&ra, la);
		warm(&rb, lb);
		for (int i = 0; i < n; i++) {
			s[i].flags = t[i].flags = how == 2 ? 0 : how == 3 ? WF_SEND_SYNC : WF_SEND_IDLE;
			MUST(wf_remote_body_flat(&ra, la[1], &s[i], bytes, sizeof(bytes), WEFT_S, &more));
			MUST(wf_remote_body_flat(&rb, lb[1], &t[i], bytes, sizeof(bytes), WEFT_S, &more));
			if (how != 4) {
				wf_remote_kept(&ra, &s[i]);
				wf_remote_kept(&rb, &t[i]);
			}
		}
		answer(&ra, &o, bytes, 0, LONG);
		if (how == 5)           /* of the stream only what was there before */
			wf_put64(bytes + 8, ra.out[WF_STREAM_PLAIN]->rt.acked);
		CHECK(told_wholly(&ra, la[1], bytes, LONG, 2 * WEFT_S));
		CHECK(wf_body_one(&rb, lb[1], bytes, wf_body_step(0), LONG, 2 * WEFT_S));
		for (int i = 0; i < n; i++)
			alike(&ra, la[1], &s[i], &rb, lb[1], &t[i]);
		same_in(&ra, la[1], &rb, lb[1]);
		CHECK_EQ(s[0].state, how == 3 || how == 5 ? WF_S_EAGER : WF_S_OVER);
		CHECK_EQ(wf_remote_spent(&rb) == &t[0], how < 2);
		wf_remote_gone(&ra, -ECONNRESET, 2 * WEFT_S);
		wf_remote_gone(&rb, -ECONNRESET, 2 * WEFT_S);
		if (how == 4) {
			wf_remote_kept(&ra, &s[0]);
			wf_remote_kept(&rb, &t[0]);
		}
		wf_remote_fini(&ra);
		wf_remote_fini(&rb);
	}
}

TEST_MAIN
