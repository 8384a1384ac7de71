/* test_peer_credit.c - the limit that goes along with a record (LIMIT) beside the one that is told by itself (CREDIT). */
#include "alone.h"

#include "base/bytes.h"

enum { WINDOW = 1 << 20 };

/* The value of the last frame of @type that leaves on @lane now; 0: none does. */
static uint64_t leaves(struct wf_remote *r, struct wf_lane *lane, uint8_t type)
{
	const struct wf_wire_shape *shape;
	unsigned char bytes[4096];
	struct wf_acts acts = { 0 };
	uint64_t value = 0;
	size_t n;

	wf_remote_acts(r, WEFT_S, &acts);
	while ((n = general(r, lane, bytes)) > 0)
		for (size_t at = 0; at < n; at += (size_t)wf_wire_next(bytes + at, n - at, &shape))
			if (bytes[at] == type)
				value = wf_get64(bytes + at + 8);
	return value;
}

static void say_something(struct wf_remote *r)
{
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8, .flags = WF_SEND_NOW };

	MUST(wf_remote_send(r, &s, WEFT_S) == WEFT_DONE);
}

/* Its window is told. */
static void ready(struct wf_remote *r, struct wf_lane *lane[3])
{
	alone(r, lane);
	wf_remote_window(r, WINDOW);
	MUST(leaves(r, lane[0], WF_WIRE_CREDIT) == WINDOW);
}

/* Messages of that cost came and were received. */
static void came(struct wf_remote *r, uint64_t cost)
{
	r->arrived += cost;
	wf_remote_freed(r, cost);
}

TEST(a_record_that_leaves_takes_the_limit_along_and_nothing_is_left_to_be_told)
{
	struct wf_remote r;
	struct wf_lane *lane[3];

	ready(&r, lane);
	for (uint64_t freed = 200000; freed < 20 * WINDOW; freed += 200000) {
		came(&r, 200000);
		CHECK_EQ(leaves(&r, lane[0], WF_WIRE_CREDIT), 0);
		say_something(&r);
		CHECK_EQ(leaves(&r, lane[1], WF_WIRE_LIMIT), freed + WINDOW);
	}
	came(&r, 1000);
	say_something(&r);
	CHECK_EQ(leaves(&r, lane[1], WF_WIRE_LIMIT), 0);        /* that little waits */
	wf_remote_fini(&r);
}

TEST(without_anything_to_go_along_with_the_limit_is_told_by_itself)
{
	struct wf_remote r;
	struct wf_lane *lane[3];

	ready(&r, lane);
	for (int i = 0; i < 2; i++) {
		came(&r, WINDOW / 4);
		CHECK_EQ(leaves(&r, lane[0], WF_WIRE_CREDIT), 0);       /* half is left */
	}
	came(&r, 8);
	CHECK_EQ(leaves(&r, lane[1], WF_WIRE_LIMIT), 0);
	CHECK_EQ(leaves(&r, lane[0], WF_WIRE_CREDIT), WINDOW + WINDOW / 2 + 8);
	say_something(&r);
	CHECK_EQ(leaves(&r, lane[1], WF_WIRE_LIMIT), 0);        /* it is known */
	wf_remote_fini(&r);
}

TEST(a_limit_that_may_be_lost_with_its_lane_is_told_again_and_holds_nevertheless)
{
	struct wf_remote r;
	struct wf_lane *lane[3];

	ready(&r, lane);
	for (int i = 0; i < 2; i++) {
		came(&r, 300000);
		say_something(&r);
		CHECK(leaves(&r, lane[1], WF_WIRE_LIMIT));
	}
	CHECK_EQ(r.told, WINDOW);
	wf_remote_lane_down(&r, lane[1], WEFT_S);
	CHECK_EQ(r.told, WINDOW + 600000);
	CHECK_EQ(leaves(&r, lane[0], WF_WIRE_CREDIT), WINDOW + 600000);
	wf_remote_window(&r, WF_CREDIT_FLOOR);          /* what was promised is not taken back */
	CHECK_EQ(r.promised, WINDOW + 600000);
	wf_remote_fini(&r);
}

TEST(nothing_is_told_after_the_farewell)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_acts acts = { 0 };
	unsigned char bytes[4096], frame[16];
	size_t n = 0;

	ready(&r, lane);
	for (int i = 0; i < 2; i++) {
		wf_remote_freed(&r, 200000);
		say_something(&r);
		CHECK(leaves(&r, lane[1], WF_WIRE_LIMIT));
	}
	for (unsigned id = 0; id < WF_STREAMS; id++) {
		if (!r.out[id])
			continue;
		wf_wire_put(frame, WF_WIRE_ACK, (uint8_t)id, r.out[id]->epoch, r.out[id]->rt.tail);
		MUST_OK(wf_remote_record(&r, lane[id != 0], frame, 16, 0, WEFT_S, &acts));
	}
	wf_remote_close(&r, WEFT_S);
	wf_remote_acts(&r, WEFT_S, &acts);
	while ((n = general(&r, lane[0], bytes)) > 0)
		continue;
	CHECK(r.bye_out);
	wf_remote_lane_down(&r, lane[1], WEFT_S);
	wf_remote_freed(&r, 400000);
	CHECK_EQ(leaves(&r, lane[0], WF_WIRE_CREDIT), 0);
	wf_remote_fini(&r);
}

TEST(a_limit_that_comes_counts_as_a_credit_does)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_acts acts = { 0 };
	unsigned char frame[24];

	alone(&r, lane);
	wf_wire_put(frame, WF_WIRE_LIMIT, 0, 0, 200000);
	CHECK_OK(wf_remote_record(&r, lane[1], frame, 16, 0, WEFT_S, &acts));
	CHECK_EQ(r.limit, 200000);
	wf_wire_put(frame, WF_WIRE_LIMIT, 0, 0, 150000);
	CHECK_OK(wf_remote_record(&r, lane[2], frame, 16, 0, WEFT_S, &acts));
	CHECK_EQ(r.limit, 200000);
	memset(frame, 0, sizeof(frame));
	wf_wire_head(frame, WF_WIRE_LIMIT, 0, 24);
	CHECK_EQ(wf_remote_record(&r, lane[1], frame, 24, 0, WEFT_S, &acts), -EPROTO);
	wf_remote_fini(&r);
}

/* The same record by the short way and by the general one. */
TEST(a_record_of_short_messages_may_begin_with_a_limit)
{
	for (int acked = 0; acked < 2; acked++) {
		struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 1, .from = 1 };
		struct wf_acts acts = { 0 }, by_general = { 0 };
		struct wf_lane *la[3], *lb[3];
		struct wf_remote a, b;
		unsigned char bytes[128];
		size_t n = 0;

		alone(&a, la);
		alone(&b, lb);
		for (int i = 0; i < 2; i++) {
			struct wf_remote *r = i ? &b : &a;
			struct wf_lane **lane = i ? lb : la;

			say_something(r);
			leaves(r, lane[1], 0);
			wf_wire_put(bytes, WF_WIRE_MOVE, WF_STREAM_PLAIN, 1, 0);
			MUST_OK(wf_remote_record(r, lane[1], bytes, 16, 0, WEFT_S, &acts));
			leaves(r, lane[1], 0);
		}
		if (acked)
			wf_wire_put(bytes, WF_WIRE_ACK, WF_STREAM_PLAIN, a.out[WF_STREAM_PLAIN]->epoch, a.out[WF_STREAM_PLAIN]->rt.sent), n += 16;
		wf_wire_put(bytes + n, WF_WIRE_LIMIT, 0, 0, 300000);
		wf_wire_put(bytes + n + 16, WF_WIRE_STREAM, WF_STREAM_PLAIN, 1, 0);
		wf_wire_put_msg(bytes + n + 32, &m, 8);
		memset(bytes + n + 56, 0, 8);
		n += 64;
		acts.n = 0;
		CHECK(wf_remote_record_brisk(&a, la[1], &(struct wf_whole){ .frames = bytes, .len = (uint32_t)n }, WEFT_S, &acts, false));
		CHECK_OK(wf_remote_record(&b, lb[1], bytes, (uint32_t)n, 0, WEFT_S, &by_general));
		CHECK_EQ(acts.n, 1);
		CHECK_EQ(by_general.n, 1);
		CHECK(a.limit == 300000 && b.limit == 300000);
		CHECK_EQ(a.unacked, b.unacked);
		wf_remote_fini(&a);
		wf_remote_fini(&b);
	}
}

TEST_MAIN
