/* test_peer_done.c - ends of long messages that are told along with the answer to them: by habit, in vain, with a lane that breaks. */
#include "alone.h"
#include "rig.h"

enum { LONG = 300000 };

static struct wf_remote *sender(struct world *w)
{
	return rig_remote(w, 1, 2);
}

static struct wf_remote *receiver(struct world *w)
{
	return rig_remote(w, 2, 1);
}

static void run_until(struct world *w, const bool *what)
{
	while (!*what && !w->failed && w->nheap)
		sim_run(w, w->heap[0].at);
}

static struct mail *answer(struct world *w)
{
	return mail_send(&w->proc[2], 1, 1, 1, LONG, 0, 0, 0);
}

/* There and, @us after it has come, back. */
static void exchange(struct world *w, int64_t us)
{
	struct post *there = rig_post(w), *here = upper_post(&w->proc[1], 1, -1, -1, 1 << 20);
	struct mail *m = rig_send(w, LONG, 0), *n;

	run_until(w, &there->over);
	sim_run(w, w->now + us * 1000);
	n = answer(w);
	rig_run(w, 100);
	CHECK(m->ended && !m->err && there->over && !there->err);
	CHECK(n->ended && !n->err && here->over && !here->err);
}

static struct world *rig_with_habit(void)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	exchange(w, 0);
	exchange(w, 0);
	CHECK_EQ(receiver(w)->done_habit, 2);
	CHECK_EQ(receiver(w)->counted_done, 0);
	return w;
}

TEST(after_two_that_were_answered_at_once_the_end_waits_for_the_answer)
{
	struct world *w = rig_with_habit();

	for (uint32_t i = 1; i <= 5; i++) {
		exchange(w, 0);
		CHECK_EQ(receiver(w)->counted_done, i);
		CHECK(!receiver(w)->done && !receiver(w)->done_misses && !receiver(w)->done_rest);
	}
	CHECK_EQ(sender(w)->counted_done, 0);           /* nothing followed what came there */
	rig_free(w);
}

TEST(who_answers_after_a_while_has_no_habit)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	for (int i = 0; i < 5; i++)
		exchange(w, 100);
	CHECK(!receiver(w)->done_habit && !receiver(w)->counted_done);
	for (int i = 0; i < 2; i++)
		exchange(w, 0);
	exchange(w, 20);
	CHECK_EQ(receiver(w)->counted_done, 1);
	rig_free(w);
}

/* The sender has its end a quarter of a millisecond later at most, and the next ones at once. */
TEST(an_end_that_waits_in_vain_is_told_and_the_next_ones_do_not_wait)
{
	struct world *w = rig_with_habit();

	for (uint32_t misses = 1; misses <= 4; misses++) {
		struct post *post = rig_post(w);
		struct mail *m = rig_send(w, LONG, 0);
		weft_time landed;

		run_until(w, &post->over);
		landed = w->now;
		CHECK(receiver(w)->done);
		run_until(w, &m->ended);
		CHECK(!m->err && w->now - landed >= WEFT_MS / 4 && w->now - landed < 2 * WEFT_MS);
		CHECK(!receiver(w)->done);
		CHECK_EQ(receiver(w)->done_misses, misses);
		CHECK_EQ(receiver(w)->done_rest, (1u << misses) - 1);
		for (uint32_t rest = (1u << misses) - 1; rest > 0; rest--)
			exchange(w, 0);
		CHECK(!receiver(w)->done_rest && receiver(w)->done_habit == (misses == 1 ? 1 : 2));
		if (misses == 1)
			exchange(w, 0);
		CHECK_EQ(receiver(w)->counted_done, 0);
	}
	exchange(w, 0);
	CHECK(receiver(w)->counted_done == 1 && !receiver(w)->done_misses);
	rig_free(w);
}

TEST(the_end_of_another_message_is_company_enough)
{
	struct world *w = rig_with_habit();
	struct post *post[2] = { rig_post(w), rig_post(w) };
	struct mail *m[2] = { rig_send(w, LONG, 0), rig_send(w, LONG, 0) };

	rig_run(w, 100);
	for (int i = 0; i < 2; i++)
		CHECK(post[i]->over && m[i]->ended && !m[i]->err);
	CHECK(!receiver(w)->done && !receiver(w)->counted_done);
	rig_free(w);
}

/* Two at once, and when both have come a short answer. */
static void window(struct world *w)
{
	struct post *there[2] = { rig_post(w), rig_post(w) }, *here = upper_post(&w->proc[1], 1, -1, -1, 1 << 20);
	struct mail *m[2] = { rig_send(w, LONG, 0), rig_send(w, LONG, 0) };

	run_until(w, &there[0]->over);
	run_until(w, &there[1]->over);
	mail_send(&w->proc[2], 1, 1, 1, 8, 0, 0, 0);
	rig_run(w, 100);
	for (int i = 0; i < 2; i++)
		CHECK(there[i]->over && !there[i]->err && m[i]->ended && !m[i]->err);
	CHECK(here->over && !here->err);
}

TEST(of_several_at_once_the_last_counts_and_a_short_answer_is_one)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	window(w);
	window(w);
	CHECK(receiver(w)->done_habit == 2 && !receiver(w)->counted_done);
	for (uint32_t i = 1; i <= 8; i++) {     /* by each of the ways that a short one may go */
		window(w);
		CHECK_EQ(receiver(w)->counted_done, i);
		CHECK(!receiver(w)->done && !receiver(w)->done_misses);
	}
	rig_free(w);
}

/* @n, each sent when the one before has come, and when the last has come a short answer. */
static void row(struct world *w, int n)
{
	struct post *here = upper_post(&w->proc[1], 1, -1, -1, 1 << 20);
	struct mail *m[8];

	MUST(n <= 8);
	for (int i = 0; i < n; i++) {
		struct post *there = rig_post(w);

		m[i] = rig_send(w, LONG, 0);
		run_until(w, &there->over);
		CHECK(there->over && !there->err);
	}
	mail_send(&w->proc[2], 1, 1, 1, 8, 0, 0, 0);
	rig_run(w, 100);
	for (int i = 0; i < n; i++)
		CHECK(m[i]->ended && !m[i]->err);
	CHECK(here->over && !here->err);
}

TEST(of_several_one_behind_the_other_the_last_waits_if_the_last_rows_were_as_long)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	uint64_t done = 0;

	for (int n = 4; n >= 1; n--) {
		row(w, n);
		CHECK_EQ(receiver(w)->done_habit, 1);
		row(w, n);
		CHECK_EQ(receiver(w)->done_habit, 2);
		CHECK_EQ(receiver(w)->counted_done, done);
		for (int i = 0; i < 3; i++) {
			row(w, n);
			CHECK_EQ(receiver(w)->counted_done, ++done);
			CHECK(!receiver(w)->done && !receiver(w)->done_misses);
		}
	}
	rig_free(w);
}

/* Lanes break around the moment: the end is told in any case, and once (upper.c). */
TEST(a_lane_that_breaks_loses_no_end)
{
	for (uint32_t slot = 0; slot < 3; slot++)
		for (int64_t us = 0; us < 500; us += 9) {
			struct world *w = rig_new((struct sim_conf){ .seed = 7 + (uint64_t)us });
			struct post *there, *here;
			struct mail *m, *n;
			struct wire *wire;

			exchange(w, 0);
			exchange(w, 0);
			there = rig_post(w);
			here = upper_post(&w->proc[1], 1, -1, -1, 1 << 20);
			m = rig_send(w, LONG, 0);
			run_until(w, &there->over);
			n = answer(w);
			sim_run(w, w->now + us * 1000);
			wire = rig_wire(w, slot);
			if (wire)
				wire_break(w, wire);
			rig_run(w, 3000);
			CHECK(m->ended && !m->err && there->over && n->ended && !n->err && here->over);
			rig_free(w);
		}
}

TEST(a_session_that_ends_while_an_end_waits_is_closed_in_order)
{
	struct world *w = rig_with_habit();
	struct post *post = rig_post(w);
	struct mail *m = rig_send(w, LONG, 0);

	run_until(w, &post->over);
	CHECK(receiver(w)->done);
	wf_remote_close(receiver(w), w->now);
	shell_after(&w->proc[2], 1);
	rig_run(w, 500);
	CHECK(m->ended && !m->err && w->proc[2].closed[1]);
	rig_free(w);
}

/* ---- frames by hand ---- */

static int done(struct wf_remote *r, struct wf_lane *lane, uint64_t send)
{
	unsigned char frame[16];
	struct wf_acts acts = { 0 };

	wf_wire_put(frame, WF_WIRE_DONE, 0, 0, send);
	return wf_remote_record(r, lane, frame, sizeof(frame), 0, WEFT_S, &acts);
}

TEST(done_ends_what_was_announced_and_nothing_else)
{
	struct wf_rsend announced = { .to = 1, .len = LONG, .flags = WF_SEND_RENDEZVOUS }, eager = { .to = 1, .len = 5000 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	MUST_OK(wf_remote_send(&r, &eager, WEFT_S));
	MUST_OK(wf_remote_send(&r, &announced, WEFT_S));
	CHECK_OK(done(&r, lane[1], 12345));             /* over, and its number with it */
	CHECK_EQ(done(&r, lane[1], eager.number), -EPROTO);
	CHECK_EQ(eager.state, WF_S_EAGER);
	CHECK_OK(done(&r, lane[1], announced.number));
	CHECK_EQ(acts_of(&r, WF_ACT_SENT), 1);
	CHECK(!announced.number && !announced.err);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_SENT), 1);
	wf_remote_fini(&r);
}

TEST_MAIN
