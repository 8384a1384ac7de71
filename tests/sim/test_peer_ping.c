/* test_peer_ping.c - how far another process is, measured on each lane. */
#include "rig.h"

#define SLOTS 3u                        /* of one rail: control, head, bulk */

/* From process 1 to process 2. */
static const struct wf_ping *ping(struct world *w, uint32_t name, uint32_t count)
{
	CHECK_OK(wf_remote_ping(rig_remote(w, 1, 2), name, count, w->now));
	shell_after(&w->proc[1], 2);
	return rig_remote(w, 1, 2)->ping;
}

TEST(each_lane_is_opened_and_its_round_trips_are_as_long_as_its_wire)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	const struct wf_ping *p = ping(w, 5, 20);

	rig_run(w, 2000);
	CHECK(p->over && p->name == 5);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		struct wire *wire = rig_wire(w, slot);

		MUST(wire && p->got[slot] == 20);
		for (uint32_t i = 0; i < 20; i++) {
			CHECK((weft_time)p->ns[slot][i] >= 2 * wire->latency);
			CHECK((weft_time)p->ns[slot][i] < 2 * wire->latency + WEFT_MS);
		}
	}
	for (uint32_t slot = SLOTS; slot < WF_LANE_SLOTS; slot++)
		CHECK_EQ(p->got[slot], 0);
	rig_free(w);
}

TEST(one_lane_is_measured_at_a_time)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	const struct wf_ping *p = ping(w, 5, 50);

	while (!p->over && !w->failed) {
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			CHECK_EQ(p->got[slot], slot < p->slot ? 50 : slot == p->slot ? p->got[slot] : 0);
		sim_run(w, w->heap[0].at);
	}
	rig_free(w);
}

TEST(a_lane_that_breaks_is_made_again_and_goes_on)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	const struct wf_ping *p = ping(w, 5, 400);
	uint32_t before;

	while (p->got[1] < 100 && !w->failed)
		sim_run(w, w->heap[0].at);
	MUST(rig_wire(w, 1));
	wire_break(w, rig_wire(w, 1));
	before = p->got[1];
	rig_run(w, 5000);
	CHECK(before < 400 && p->over);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		CHECK_EQ(p->got[slot], 400);
	rig_free(w);
}

TEST(one_that_is_silent_ends_the_measurement_and_nothing_else)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	const struct wf_ping *p;
	struct mail *m;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	rig_silence(w, 20000, true);
	p = ping(w, 5, 10);
	rig_run(w, 9900);
	CHECK(!p->over);
	rig_run(w, 200);
	CHECK(p->over);
	CHECK_EQ(p->got[0], 0);
	CHECK_OK(rig_remote(w, 1, 2)->err);             /* nothing was expected of it */
	rig_run(w, 11000);
	m = rig_send(w, 8, WF_SEND_SYNC);
	rig_post(w);
	rig_run(w, 1000);
	CHECK(m->ended && !m->err);
	rig_free(w);
}

TEST(a_probe_that_was_out_before_is_not_counted)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	const struct wf_ping *p;
	struct wf_lane *lane;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	lane = rig_remote(w, 1, 2)->slots[0].lane;
	MUST(lane);
	rig_silence(w, 300, true);
	rig_run(w, 1);
	lane->ping_due = true;                          /* as lanes do for themselves */
	lane->active = true;
	rig_remote(w, 1, 2)->write_due |= 1u << (lane - rig_remote(w, 1, 2)->lanes);
	shell_after(&w->proc[1], 2);
	rig_run(w, 200);
	MUST(lane->pinged);
	p = ping(w, 5, 10);
	rig_run(w, 2000);
	CHECK(p->over);
	CHECK_EQ(p->got[0], 10);
	for (uint32_t i = 0; i < 10; i++)
		CHECK((weft_time)p->ns[0][i] < 200 * WEFT_MS);
	rig_free(w);
}

TEST(the_latest_question_counts_and_no_question_is_endless)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	const struct wf_ping *p = ping(w, 5, UINT32_MAX);

	CHECK_EQ(p->count, WF_PINGS);
	rig_run(w, 20);
	CHECK(!p->over);
	p = ping(w, 6, 3);
	rig_run(w, 1000);
	CHECK(p->over && p->name == 6);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		CHECK_EQ(p->got[slot], 3);
	p = ping(w, 7, 0);
	rig_run(w, 1);
	CHECK(p->over && p->name == 7);
	rig_free(w);
}

TEST(a_session_that_is_over_is_not_measured)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);

	wf_remote_gone(r, -ECONNRESET, w->now);
	CHECK_EQ(wf_remote_ping(r, 5, 10, w->now), -ECONNRESET);
	CHECK(!r->ping);
	rig_free(w);
}

TEST_MAIN
