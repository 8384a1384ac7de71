/* test_peer_full.c - a control stream that has no room left, as the other end makes us answer and acknowledges nothing: that ends the session, wherever it is found out. */
#include "alone.h"

#include "base/bytes.h"

enum { CAP = 256, SENDS = CAP + 1 };

static struct wf_rsend sends[SENDS];
static struct wf_remote r;
static struct wf_lane *lane[3];

static void write_all(void)
{
	struct wf_fill f;

	acts_of(&r, 0);
	for (int i = 0; i < 3; i++)
		while (wf_remote_fill(&r, lane[i], &f, WEFT_S))
			wf_remote_wrote(&r, lane[i], WEFT_S);
}

/* As many are announced as may be, one waits, and the control stream is full to the byte. */
static void fill_up(void)
{
	alone(&r, lane);
	for (int i = 0; i < SENDS; i++) {
		sends[i] = (struct wf_rsend){ .to = 7, .from = 9, .len = 100000, .tag = (uint64_t)i, .flags = WF_SEND_RENDEZVOUS };
		MUST_OK(wf_remote_send(&r, &sends[i], WEFT_S));
	}
	write_all();
	MUST(r.announced == CAP && r.held_back == 1);
	/* Questions about a port for which nothing waits. */
	while (r.out[0]->rt.tail - r.out[0]->rt.acked < WF_RETAIN_MOST)
		wf_remote_sought(&r, 1234, 5);
	MUST(!r.err);
}

/* The session is over, and every send was told so once, but for @other, which ended with @err. */
static void all_told(const struct wf_rsend *other, int err)
{
	int sent = 0, dead = 0, right = 0;
	struct wf_acts acts;

	CHECK(wf_remote_due(&r, WEFT_S));
	do {
		acts = (struct wf_acts){ 0 };
		wf_remote_acts(&r, WEFT_S, &acts);
		for (int i = 0; i < acts.n; i++) {
			const struct wf_act *a = &acts.a[i];

			sent += a->kind == WF_ACT_SENT;
			right += a->kind == WF_ACT_SENT && a->err == (a->send == other ? err : -EPROTO);
			dead += a->kind == WF_ACT_DEAD && a->err == -EPROTO;
		}
	} while (acts.n);
	CHECK_EQ(r.err, -EPROTO);
	CHECK_EQ(sent, SENDS);
	CHECK_EQ(right, SENDS);
	CHECK_EQ(dead, 1);
	CHECK_EQ(r.live, 0);
	CHECK_EQ(r.announced, 0);
	CHECK_EQ(r.held_back, 0);
	CHECK_EQ(r.ndests, 0);
	wf_remote_fini(&r);
}

/* The last of its backlog is announced, and CLEAR finds no room. */
TEST(an_answer_to_an_announcement_may_find_it_out)
{
	unsigned char frame[16];

	fill_up();
	wf_wire_put(frame, WF_WIRE_ENDED, 0, 0, sends[0].number);
	CHECK_OK(control(&r, lane[0], frame, sizeof(frame)));
	all_told(&sends[0], 0);
}

TEST(a_grant_may_find_it_out)
{
	unsigned char frame[32];

	fill_up();
	wf_wire_head(frame, WF_WIRE_GRANT, 0, sizeof(frame));
	wf_put32(frame + 4, 0);
	wf_put64(frame + 8, sends[0].number);
	wf_put64(frame + 16, 77);
	wf_put64(frame + 24, 100);
	CHECK_OK(control(&r, lane[0], frame, sizeof(frame)));
	all_told(NULL, 0);
}

TEST(a_send_that_is_taken_back_may_find_it_out)
{
	fill_up();
	CHECK_OK(wf_remote_cancel(&r, &sends[CAP], WEFT_S));
	all_told(&sends[CAP], -ECANCELED);
}

/* One more, behind one that is on offer and was asked for again. */
TEST(an_offer_that_is_taken_may_find_it_out)
{
	struct wf_rsend more = { .to = 7, .from = 9, .len = 100000, .flags = WF_SEND_RENDEZVOUS };
	unsigned char frame[16];

	fill_up();
	MUST_OK(wf_remote_send(&r, &more, WEFT_S));
	wf_remote_offer(&r, &sends[CAP], 5, WEFT_S);
	wf_remote_sought(&r, 7, 0);
	MUST(sends[CAP].state == WF_S_OFFERED && sends[CAP].number);
	wf_wire_put(frame, WF_WIRE_ENDED, 0, 0, sends[CAP].number);
	CHECK_OK(control(&r, lane[0], frame, sizeof(frame)));
	CHECK(r.broken);
	acts_of(&r, 0);
	CHECK_EQ(more.err, -EPROTO);
	CHECK_EQ(sends[CAP].err, 0);
	CHECK_EQ(r.live, 0);
	CHECK_EQ(r.ndests, 0);
	wf_remote_fini(&r);
}

/* What follows in the same record is not looked at, and nothing new begins. */
TEST(nothing_begins_once_it_was_found_out)
{
	struct wf_rsend more = { .to = 8, .from = 9, .len = 100000, .flags = WF_SEND_RENDEZVOUS };
	struct wf_acts acts = { 0 };
	unsigned char frames[48];

	fill_up();
	wf_wire_put(frames, WF_WIRE_ENDED, 0, 0, sends[0].number);
	wf_wire_put(frames + 16, WF_WIRE_WATCH, 0, 3, 0);
	CHECK_OK(control(&r, lane[0], frames, 32));
	CHECK_EQ(r.in[0].next, 16);
	CHECK_EQ(wf_remote_send(&r, &more, WEFT_S), -EPROTO);
	CHECK_EQ(wf_remote_seek(&r, 1, 0, 1, frames, 8), -EPROTO);
	wf_wire_put(frames, WF_WIRE_STREAM, 0, 1, 16);
	CHECK_OK(wf_remote_record(&r, lane[0], frames, 32, 0, WEFT_S, &acts));
	CHECK_EQ(acts.n, 0);
	all_told(&sends[0], 0);
}

TEST_MAIN
