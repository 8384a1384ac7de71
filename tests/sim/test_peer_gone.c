/* test_peer_gone.c - the end of a thread is told to who has asked, behind everything it sent. */
#include "rig.h"

static void say_gone(struct world *w, uint32_t id)
{
	wf_remote_say_gone(rig_remote(w, 1, 2), id);
	shell_after(&w->proc[1], 2);
}

static void watch(struct world *w, uint32_t id)
{
	wf_remote_watch(rig_remote(w, 2, 1), id);
	shell_after(&w->proc[2], 1);
}

TEST(a_watch_comes_and_its_answer_goes_back)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	watch(w, 77);
	rig_run(w, 500);
	CHECK_EQ(w->proc[1].watched[2], 1);
	CHECK_EQ(w->proc[2].gone[1], 0);
	say_gone(w, 77);
	rig_run(w, 500);
	CHECK_EQ(w->proc[2].gone[1], 1);
	CHECK_EQ(w->proc[2].last_gone, 77);
	rig_free(w);
}

/* Messages of all priorities, each on a stream of its own, and lanes that break under way. */
TEST(an_end_comes_behind_everything_that_was_sent_before_it_whatever_breaks)
{
	uint64_t rounds = test_scaled(60);

	for (uint64_t k = 0; k < rounds; k++) {
		struct world *w = rig_new((struct sim_conf){ .seed = 100 + k });
		struct mail *mail[24];

		for (int i = 0; i < 24; i++)
			MUST(rig_post(w));
		for (int i = 0; i < 24; i++)
			mail[i] = mail_send(&w->proc[1], 1, 2, 1, (uint64_t)(i % 3 == 2 ? 30000 : 40 * i), 0, i % 8 - 4, 0);
		say_gone(w, 5);
		say_gone(w, 6);
		for (int step = 0; w->proc[2].gone[1] < 2 && w->now < 20 * WEFT_S && !w->failed; step++) {
			struct wire *wire = rig_wire(w, 1);

			if (wire && (uint64_t)step % 40 == k % 40 && step < 120)
				wire_break(w, wire);
			sim_run(w, w->heap[0].at);
			for (int i = 0; w->proc[2].gone[1] && i < 24; i++)
				CHECK(mail[i]->matched);
		}
		CHECK_EQ(w->proc[2].gone[1], 2);
		CHECK_EQ(w->proc[2].last_gone, 6);
		rig_run(w, 10000);
		rig_free(w);
	}
}

TEST(ends_told_while_messages_go_on_do_not_wait_for_the_later_ones)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	for (uint32_t i = 0; i < 200; i++) {
		MUST(rig_post(w));
		rig_send(w, 100, 0);
		if (i % 50 == 10)
			say_gone(w, i);
		rig_run(w, 1);
	}
	CHECK(w->proc[2].gone[1] >= 3);
	rig_run(w, 500);
	CHECK_EQ(w->proc[2].gone[1], 4);
	rig_free(w);
}

/* The other end asks and asks, and acknowledges nothing. */
TEST(one_who_asks_and_never_acknowledges_makes_nothing_grow_and_is_told_to_ask_again)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);

	MUST(rig_post(w));
	rig_send(w, 100, 0);
	rig_run(w, 0);
	for (uint32_t i = 1; i <= 100000; i++)
		wf_remote_say_gone(r, i);
	CHECK(r->ngone <= 4096 && r->gone_lost);
	shell_after(&w->proc[1], 2);
	rig_run(w, 3000);
	CHECK_EQ(w->proc[2].last_gone, 0);
	CHECK(!r->gone_lost);
	rig_free(w);
}

TEST_MAIN
