/* test_peer_farewell.c - a farewell to who is there no more. */
#include "alone.h"
#include "rig.h"

TEST(a_farewell_that_was_said_needs_no_answer_of_who_has_left)
{
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	wf_remote_left(&r, WEFT_S);             /* nothing was said: who has left may be dead, which others tell */
	CHECK(!r.err && acts_of(&r, WF_ACT_CLOSED) == 0);
	wf_remote_close(&r, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_CLOSED), 0);
	CHECK(r.bye_out);
	wf_remote_left(&r, WEFT_S);
	CHECK(r.err && acts_of(&r, WF_ACT_CLOSED) == 1);
	wf_remote_left(&r, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_CLOSED), 0);        /* told once */
	wf_remote_fini(&r);
}

/* What it has not acknowledged it may not have: its death decides. */
TEST(who_has_left_before_all_was_said_is_waited_for)
{
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8, .flags = WF_SEND_NOW };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	MUST(wf_remote_send(&r, &s, WEFT_S) == WEFT_DONE);
	wf_remote_close(&r, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_CLOSED), 0);
	CHECK(!r.bye_out);
	wf_remote_left(&r, WEFT_S);
	CHECK(!r.err && acts_of(&r, WF_ACT_CLOSED) == 0);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

/* The other end acknowledges in its own time, unless it is asked: a few ways there and back, of 0.3 ms at most. */
TEST(who_closes_does_not_wait_for_the_time_of_an_acknowledgement)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world *w = rig_new((struct sim_conf){ .seed = seed });
		struct post *post = rig_post(w);
		struct mail *m = rig_send(w, 1000, 0);
		weft_time since;

		while (!post->over && !w->failed && w->nheap)
			sim_run(w, w->heap[0].at);
		MUST(!w->failed && m->ended);
		MUST(rig_remote(w, 1, 2)->unacked);
		since = w->now;
		wf_remote_close(rig_remote(w, 1, 2), w->now);
		shell_after(&w->proc[1], 2);
		while (!w->proc[1].closed[2] && w->now - since < 20 * WEFT_MS)
			sim_run(w, w->heap[0].at);
		CHECK(w->now - since <= 3 * WEFT_MS);
		rig_free(w);
	}
}

TEST_MAIN
