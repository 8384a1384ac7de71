/* test_peer_body.c - the short way of a message with a body (peer/brisk_body.c) does what the others do: the same frames, the same state; or nothing. */
#include "body.h"

TEST(a_message_with_a_body_has_the_same_frames_by_either_way_and_always_as_many_bytes)
{
	static const size_t lens[] = { WF_INLINE_MOST + 1, 5000, LONG, WF_EAGER - 1000 };

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (unsigned how = 0; how < 8; how++) {
			struct wf_rsend s = mail(how & 1 ? 0x55 : 0, lens[i]), t = s;
			unsigned char a[ROOM], b[ROOM];
			struct wf_lane *la[3], *lb[3];
			struct wf_remote ra, rb;
			bool more = true;
			size_t na, nb;

			warm(&ra, la);
			warm(&rb, lb);
			if (how & 2)            /* acknowledgements ride along */
				la[1]->acks = lb[1]->acks = wf_bit(WF_STREAM_PLAIN);
			if (how & 4)            /* and a limit */
				ra.freed = rb.freed = ra.conf.window;
			CHECK_EQ(wf_remote_send(&ra, &s, WEFT_S), 0);
			na = next_frames(&ra, la[1], a);
			MUST(wf_remote_keep(&s));
			wf_remote_wrote(&ra, la[1], WEFT_S);
			CHECK(!next_frames(&ra, la[1], a + na));
			nb = wf_remote_body_flat(&rb, lb[1], &t, b, sizeof(b), WEFT_S, &more);
			CHECK_EQ(nb, FRAMES);
			CHECK(!more);
			nb = without(b, nb, WF_WIRE_PADDING);
			if (!(how & 4))         /* this way has it always */
				nb = without(b, nb, WF_WIRE_LIMIT);
			CHECK_EQ(na, nb);
			CHECK_EQ(memcmp(a, b, na), 0);
			rb.write_due = ra.write_due;
			alike(&ra, la[1], &s, &rb, lb[1], &t);
			wf_remote_gone(&ra, -ECONNRESET, WEFT_S);
			wf_remote_gone(&rb, -ECONNRESET, WEFT_S);
			wf_remote_kept(&ra, &s);
			wf_remote_kept(&rb, &t);
			wf_remote_fini(&ra);
			wf_remote_fini(&rb);
		}
}

TEST(a_message_with_a_body_takes_the_long_way_where_something_is_in_the_way)
{
	static unsigned char bytes[ROOM];
	struct wf_rsend other = { .to = 1 }, s = mail(0, LONG), t;
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	struct wf_out *out, kept;
	bool more;

#define IN_THE_WAY(set, back) do { \
	set; \
	before = r; \
	kept = *out; \
	t = s; \
	CHECK_EQ(wf_remote_body_flat(&r, l, &t, bytes, sizeof(bytes), WEFT_S, &more), 0); \
	CHECK(memcmp(&before, &r, sizeof(r)) == 0 && memcmp(&kept, out, sizeof(kept)) == 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	out = r.out[WF_STREAM_PLAIN];
	IN_ITS_WAY(IN_THE_WAY);
	IN_THE_WAY(l->acks = wf_bit(9), l->acks = 0);           /* of another stream */
	IN_THE_WAY(r.used = r.limit, r.used = 0);
	IN_THE_WAY(s.len = r.conf.eager + 1, s.len = LONG);
	IN_THE_WAY(s.len = WF_INLINE_MOST, s.len = LONG);
	t = s;
	CHECK_EQ(wf_remote_body_flat(&r, l, &t, bytes, FRAMES - 1, WEFT_S, &more), 0);
	CHECK_EQ(wf_remote_body_flat(&r, l, &t, bytes, FRAMES, WEFT_S, &more), FRAMES);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_kept(&r, &t);
	wf_remote_fini(&r);
#undef IN_THE_WAY
}

/* Nobody waits for its end, but it has one: asked for, or told along with others. */
TEST(the_end_of_an_idle_one_is_not_urgent_and_waits_for_who_writes_from_it)
{
	static unsigned char bytes[ROOM];
	struct wf_acts acts = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	bool more;

	warm(&r, lane);
	for (int how = 0; how < 4; how++) {
		struct wf_rsend s = mail(0, 5000);

		s.flags = WF_SEND_IDLE;
		MUST(wf_remote_body_flat(&r, lane[1], &s, bytes, sizeof(bytes), WEFT_S, &more) == FRAMES);
		CHECK(s.pins == 1 && wf_remote_spent(&r) == NULL);
		if (how & 1)
			wf_remote_body_rest(&r, lane[1], &s);           /* written later, by the lane */
		acknowledge(&r, lane[1]);                               /* a liar does that early */
		CHECK(s.state == WF_S_OVER && wf_remote_spent(&r) == NULL);
		if (how & 1)
			wf_remote_wrote(&r, lane[1], WEFT_S);
		else
			CHECK(!wf_remote_kept(&r, &s));
		lane[1]->active = false;
		r.dirty = false;
		CHECK(!wf_remote_due(&r, WEFT_S));
		if (how & 2) {
			CHECK(wf_remote_spent(&r) == &s);
		} else {
			acts.n = 0;
			wf_remote_acts(&r, WEFT_S, &acts);
			CHECK(acts.n == 1 && acts.a[0].kind == WF_ACT_SENT && acts.a[0].send == &s && acts.a[0].err == 0);
		}
		CHECK(s.state == WF_S_NONE && wf_remote_spent(&r) == NULL && !r.live);
	}
	wf_remote_fini(&r);
}

TEST(a_limit_that_went_along_is_not_taken_back)
{
	static unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint64_t hinted;
	bool more;

	warm(&r, lane);
	wf_remote_window(&r, 4 * r.conf.window);
	for (int i = 0; i < 2; i++) {
		struct wf_rsend s = mail(0, 5000);

		s.flags = WF_SEND_IDLE;
		MUST(wf_remote_body_flat(&r, lane[1], &s, bytes, sizeof(bytes), WEFT_S, &more) == FRAMES);
		wf_remote_kept(&r, &s);
		acknowledge(&r, lane[1]);
		CHECK(wf_remote_spent(&r) == &s);
		if (i == 0)
			hinted = r.hinted;
		CHECK_EQ(r.hinted, hinted);
		CHECK(r.promised >= hinted);
		wf_remote_window(&r, r.conf.window / 4);
	}
	wf_remote_fini(&r);
}

/* Not acknowledged when its lane is over: it goes again. */
TEST(what_went_the_short_way_goes_again_when_its_lane_breaks)
{
	static unsigned char bytes[ROOM];
	struct wf_rsend s = mail(0, 5000);
	struct wf_acts acts = { 0 };
	struct wf_lane *lane[3], *next;
	struct wf_remote r;
	struct wf_fill f;
	bool more;

	warm(&r, lane);
	MUST(wf_remote_body_flat(&r, lane[1], &s, bytes, sizeof(bytes), WEFT_S, &more) == FRAMES);
	CHECK(wf_remote_kept(&r, &s));
	wf_remote_lane_down(&r, lane[1], WEFT_S);
	next = wf_remote_lane_up(&r, 1, 5, true, WEFT_S);
	MUST(next);
	wf_remote_acts(&r, WEFT_S, &acts);
	write_all(&r, next);
	wf_wire_put(bytes, WF_WIRE_RESUME, WF_STREAM_PLAIN, r.out[WF_STREAM_PLAIN]->epoch, r.out[WF_STREAM_PLAIN]->rt.acked);
	acts.n = 0;
	MUST_OK(wf_remote_record(&r, next, bytes, 16, 0, WEFT_S, &acts));
	MUST(wf_remote_fill(&r, next, &f, WEFT_S) == 1);
	CHECK(f.send == &s && f.body_len == 5000);
	wf_remote_wrote(&r, next, WEFT_S);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

/* To two remotes that are alike, to one by the short way if that takes it. True: it did. */
static bool both(const unsigned char *bytes, uint32_t len, uint32_t body_len)
{
	static const unsigned char body[WF_EAGER];
	struct wf_whole w = { .frames = bytes, .len = len, .body_len = body_len, .body = body };
	struct wf_acts aa = { 0 };
	struct wf_lane *la[3], *lb[3];
	const unsigned char *where;
	struct wf_remote a, b;
	struct wf_brief brief;
	struct wf_brisk m;
	bool taken;

	warm(&a, la);
	warm(&b, lb);
	where = wf_remote_body_where(&w, &m);
	taken = where && wf_remote_body_looked(&b, lb[1], &w, where, &brief);
	if (taken) {
		struct wf_acts ac = { 0 };
		struct wf_lane *lc[3];
		struct wf_remote c;

		warm(&c, lc);
		CHECK_OK(wf_remote_record(&c, lc[1], bytes, len, body_len, 2 * WEFT_S, &ac));   /* nobody takes what others would not */
		CHECK(ac.n == 1 && ac.a[0].kind == WF_ACT_BODY && ac.a[0].msg.to == m.to && ac.a[0].msg.tag == m.tag && ac.a[0].msg.len == m.len);
		wf_remote_fini(&c);
		MUST(wf_remote_record_brisk(&a, la[1], &w, 2 * WEFT_S, &aa, false));
		wf_remote_body_told(&b, lb[1], &brief, body_len, 2 * WEFT_S);
		CHECK(aa.n == 1 && aa.a[0].kind == WF_ACT_MSG && aa.a[0].cost == brief.cost);
		CHECK(m.to == aa.a[0].msg.to && m.from == aa.a[0].msg.from && m.index == aa.a[0].msg.index && m.tag == aa.a[0].msg.tag && m.context == aa.a[0].msg.context);
		CHECK(m.len == aa.a[0].msg.len && m.payload == body && aa.a[0].msg.payload == body);
		CHECK(a.arrived == b.arrived && a.limit == b.limit && a.in[WF_STREAM_PLAIN].next == b.in[WF_STREAM_PLAIN].next && a.unacked == b.unacked && a.wake == b.wake);
		CHECK(la[1]->acks == lb[1]->acks && la[1]->bodies == lb[1]->bodies && la[1]->ack_at == lb[1]->ack_at && la[1]->ack_now == lb[1]->ack_now && la[1]->heard == lb[1]->heard);
		CHECK(a.out[WF_STREAM_PLAIN]->rt.acked == b.out[WF_STREAM_PLAIN]->rt.acked);
	}
	wf_remote_fini(&a);
	wf_remote_fini(&b);
	return taken;
}

TEST(a_record_with_a_body_is_read_the_same_by_either_way)
{
	static unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;

	warm(&r, lane);
	for (uint64_t context = 0; context < 2; context++) {
		CHECK(both(bytes, record(&r, bytes, context, LONG), LONG));
		CHECK(both(bytes, record(&r, bytes, context, 1), 1));
		CHECK(!both(bytes, record(&r, bytes, context, LONG), LONG - 1));
		CHECK(!both(bytes, record(&r, bytes, context, WF_EAGER), WF_EAGER));    /* more than was promised */
		record(&r, bytes, context, LONG);
		CHECK(both(bytes + 16, FRAMES - 16, LONG));             /* without the acknowledgement */
		CHECK(both(bytes + 32, FRAMES - 32, LONG));             /* and the limit */
		CHECK(both(bytes + (context ? 48 : 56), FRAMES - (context ? 48 : 56), LONG));           /* and the padding */
		CHECK(!both(bytes + (context ? 64 : 72), FRAMES - (context ? 64 : 72), LONG));          /* and the stream */
	}
	record(&r, bytes, 0, LONG);
	wf_wire_head(bytes + 48, WF_WIRE_PADDING, 0, 8);
	CHECK(both(bytes + 48, FRAMES - 48, LONG));
	wf_wire_head(bytes + 48, WF_WIRE_PADDING, 0, 7);                /* no frame is that short */
	CHECK(!both(bytes + 48, FRAMES - 48, LONG));
	wf_remote_fini(&r);
}

TEST(a_record_with_a_body_that_is_wrong_anywhere_is_not_read_otherwise_by_the_short_way)
{
	static unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;

	warm(&r, lane);
	for (uint64_t context = 0; context < 2; context++) {
		record(&r, bytes, context, LONG);
		for (uint32_t cut = 0; cut < FRAMES; cut += 8)
			CHECK(!both(bytes, cut, LONG));
		for (uint32_t at = 0; at < FRAMES; at++)
			for (int bit = 0; bit < 8; bit++) {
				bytes[at] ^= (unsigned char)(1 << bit);
				both(bytes, FRAMES, LONG);
				bytes[at] ^= (unsigned char)(1 << bit);
			}
	}
	wf_remote_fini(&r);
}

TEST_MAIN
