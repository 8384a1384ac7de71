/* test_peer_lanes.c - lanes break, fall silent and come back; streams go on. */
#include "rig.h"

TEST(a_lane_may_break_at_any_byte_and_nothing_is_lost_doubled_or_reordered)
{
	for (int side = 0; side < 2; side++)
		for (int64_t cut = 0; cut < 700 && !atomic_load(&test_failures); cut += test_scale() < 1 ? 13 : 1) {
			struct world *w = rig_new((struct sim_conf){ .seed = 11 });
			struct mail *m[8];

			rig_send(w, 8, 0);
			rig_post(w);
			rig_run(w, 20);
			MUST(rig_wire(w, 1));
			for (struct wire *wire = w->wires; wire; wire = wire->next)
				wire->way[side].cut = cut;
			for (uint64_t i = 0; i < 8; i++)
				m[i] = rig_send(w, i * i * 120, i % 3 ? 0 : WF_SEND_SYNC);
			for (int i = 0; i < 8; i++)
				rig_post(w);
			rig_run(w, 1000);               /* the bound */
			for (int i = 0; i < 8; i++)
				CHECK(m[i]->matched && m[i]->ended && !m[i]->err);
			rig_free(w);
		}
}

TEST(a_body_broken_off_goes_on_into_the_same_receive)
{
	for (int64_t cut = 100; cut < 60000 && !atomic_load(&test_failures); cut += 5003) {
		struct world *w = rig_new((struct sim_conf){ 0 });
		struct post *first, *second;
		struct mail *a, *b;

		rig_send(w, 8, 0);
		rig_post(w);
		rig_run(w, 20);
		first = rig_post(w);
		second = rig_post(w);
		for (int i = 0; i < 2; i++)
			rig_wire(w, 1)->way[i].cut = rig_wire(w, 1)->end[i].p->number == 1 ? cut : -1;
		a = rig_send(w, 50000, 0);
		b = rig_send(w, 10, 0);
		rig_run(w, 1000);
		CHECK(first->over && first->mail == a && !first->err);
		CHECK(second->over && second->mail == b && !second->err);
		rig_free(w);
	}
}

TEST(a_stream_moves_at_once_if_all_is_acknowledged_and_else_waits_for_resume)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_out *out;

	for (int i = 0; i < 2; i++) {                   /* the second one finds all lanes up */
		rig_send(w, 8, 0);
		rig_run(w, 50);
	}
	out = rig_remote(w, 1, 2)->out[4];
	MUST(out && out->rt.acked == out->rt.tail && out->lane);
	wire_break(w, rig_wire(w, 1));
	rig_run(w, 50);
	rig_send(w, 8, 0);                              /* nothing was out: it goes at once */
	CHECK(out->lane && !out->waits);
	rig_run(w, 50);
	rig_send(w, 8, 0);
	MUST(out->rt.sent > out->rt.acked);
	wire_break(w, rig_wire(w, out->lane->slot));
	while (!w->failed && out->lane && !out->waits && out->rt.sent > out->rt.acked)
		sim_run(w, w->heap[0].at);
	rig_run(w, 300);
	CHECK(out->rt.acked == out->rt.tail && !out->waits);
	CHECK(out->epoch >= 2);
	for (int i = 0; i < 4; i++)
		CHECK(rig_post(w)->over);
	rig_free(w);
}

/* @len bytes that process 2 would write, given to process 1 by hand. */
static int by_hand(struct world *w, struct wf_lane *lane, const void *bytes, uint32_t len)
{
	struct wf_acts acts = { 0 };
	int rc = wf_remote_record(rig_remote(w, 1, 2), lane, bytes, len, 0, w->now, &acts);

	CHECK_EQ(acts.n, 0);
	return rc;
}

TEST(frames_of_an_older_epoch_or_of_another_lane_are_skipped)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	unsigned char frames[16 + 32] = { 0 };
	uint64_t next;

	for (int i = 0; i < 2; i++) {
		mail_send(&w->proc[2], 1, 1, 1, 8, 0, 0, 0);
		upper_post(&w->proc[1], 1, -1, -1, 100);
		rig_run(w, 50);
	}
	next = r->in[4].next;
	MUST(next && r->slots[0].lane && r->in[4].lane == r->slots[1].lane);
	wf_wire_put(frames, WF_WIRE_STREAM, 4, r->in[4].epoch - 1, next);
	wf_wire_head(frames + 16, WF_WIRE_MSG, 0, 32);
	CHECK_OK(by_hand(w, r->slots[1].lane, frames, sizeof(frames)));
	wf_wire_put(frames, WF_WIRE_STREAM, 4, r->in[4].epoch, next);
	CHECK_OK(by_hand(w, r->slots[0].lane, frames, sizeof(frames)));
	CHECK_EQ(r->in[4].next, next);
	wf_wire_put(frames, WF_WIRE_STREAM, 4, r->in[4].epoch, next + 8);
	CHECK_EQ(by_hand(w, r->slots[1].lane, frames, sizeof(frames)), -EPROTO);
	CHECK_EQ(r->in[4].next, next);
	rig_free(w);
}

TEST(a_lane_that_is_late_while_another_answers_is_suspected_and_its_streams_leave_it)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *m;

	rig_send(w, 8, 0);
	rig_run(w, 100);
	MUST(rig_wire(w, 1) && rig_wire(w, 0));
	rig_wire(w, 1)->way[0].stall = rig_wire(w, 1)->way[1].stall = w->now + 700 * WEFT_MS;
	m = rig_send(w, 8, WF_SEND_SYNC);
	rig_post(w);
	rig_post(w);
	rig_run(w, 150);
	CHECK(!m->ended);
	rig_run(w, 350);
	CHECK(m->ended && !m->err);
	CHECK_EQ(r->counted_suspects, 1);
	CHECK(r->out[4]->lane == r->slots[0].lane);
	rig_run(w, 1000);                               /* it speaks again */
	CHECK(r->slots[1].lane && !r->slots[1].lane->suspect);
	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 50);
	CHECK(r->out[4]->lane == r->slots[1].lane);
	rig_free(w);
}

/* Of one that had all there was: the other's lanes are made before it is known that they are needed. */
TEST(when_all_lanes_of_a_rail_are_silent_another_rail_takes_over)
{
	struct world *w = rig_new((struct sim_conf){ .rails = 2 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *m;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	MUST(rig_wire(w, 0) && rig_wire(w, 1) && !rig_wire(w, 3));
	for (uint32_t slot = 0; slot < 2; slot++)
		rig_wire(w, slot)->way[0].stall = rig_wire(w, slot)->way[1].stall = w->now + 3000 * WEFT_MS;
	m = rig_send(w, 8, WF_SEND_SYNC);
	rig_post(w);
	rig_run(w, 600);                                /* both ends find out, one behind the other */
	CHECK(m->ended && !m->err);
	CHECK(r->slots[3].lane && r->out[4]->lane == r->slots[3].lane);
	rig_run(w, 4000);                               /* and back */
	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	CHECK(r->out[4]->lane == r->slots[1].lane && !r->slots[1].lane->suspect);
	rig_free(w);
}

static int one_piece(const struct wf_rsend *s, uint64_t at, struct iovec *ret_iov, int max)
{
	static unsigned char bytes[8];

	(void)max;
	*ret_iov = (struct iovec){ bytes + at, (size_t)(s->len - at) };
	return 1;
}

TEST(while_a_lane_takes_long_to_come_up_other_rails_are_asked)
{
	static const struct wf_remote_ops ops = { .send_pieces = one_piece };
	struct wf_remote_conf conf = { .me = 1, .them = 2, .rails = 2, .ops = &ops };
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8 };
	struct wf_acts acts;
	struct wf_remote r;
	uint32_t asked = 0;

	MUST_OK(wf_remote_init(&r, &conf, WEFT_S));
	CHECK(wf_remote_send(&r, &s, WEFT_S) >= 0);
	for (weft_time now = WEFT_S; now < WEFT_S + 150 * WEFT_MS; now = r.wake > now ? r.wake : now + WEFT_MS) {
		acts.n = 0;
		wf_remote_acts(&r, now, &acts);
		for (int i = 0; i < acts.n; i++)
			asked |= acts.a[i].kind == WF_ACT_OPEN ? UINT32_C(1) << acts.a[i].slot : 0;
		CHECK(now - WEFT_S >= 100 * WEFT_MS || !(asked & 8));
	}
	CHECK_EQ(asked, 1 | 2 | 8);                     /* control, and heads */
	wf_remote_gone(&r, -ECONNRESET, 2 * WEFT_S);
	wf_remote_fini(&r);
}

TEST(when_all_are_silent_nothing_moves_and_only_probes_go)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *m;
	uint64_t moves;

	for (int i = 0; i < 2; i++) {
		rig_send(w, 8, 0);
		rig_post(w);
		rig_run(w, 100);
	}
	moves = r->counted_moves;
	rig_silence(w, 2000, true);
	m = rig_send(w, 8, WF_SEND_SYNC);
	rig_post(w);
	rig_run(w, 1900);
	CHECK(!m->ended);
	CHECK_EQ(r->counted_moves, moves);
	CHECK_EQ(r->counted_suspects, 0);
	CHECK_OK(r->err);
	rig_run(w, 500);
	CHECK(m->ended && !m->err);
	rig_free(w);
}

static void silent_for_ever(bool both)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	struct mail *m[40];

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	rig_silence(w, 100000, both);
	for (uint64_t i = 0; i < 40; i++)               /* in every state a send can be in */
		m[i] = mail_send(&w->proc[1], 1, 2, 1, i * 3000, i % 3 ? 0 : WF_SEND_SYNC, (int)(i % 8) - 4, 0);
	rig_run(w, 900);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	rig_run(w, 600);
	CHECK_EQ(rig_remote(w, 1, 2)->err, -EHOSTUNREACH);
	for (int i = 0; i < 40; i++)
		CHECK(m[i]->ended && (m[i]->err == -EHOSTUNREACH || m[i]->err == 0));
	CHECK_EQ(m[39]->err, -EHOSTUNREACH);
	CHECK_EQ(rig_send(w, 1, 0)->err, -EHOSTUNREACH);
	rig_free(w);
}

TEST(past_the_deadline_every_operation_ends_with_EHOSTUNREACH_once_and_later_ones_at_once)
{
	silent_for_ever(true);
}

TEST(one_way_silence_is_found_too)
{
	silent_for_ever(false);
}

TEST(a_half_open_peer_is_found_if_somebody_waits_for_it)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	struct post *post;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	post = upper_post(&w->proc[1], 1, 2, -1, 100);
	w->proc[2].dead = true;                         /* and no word of it */
	rig_run(w, 2000);
	CHECK(post->over && post->err == -ECONNRESET);
	CHECK_EQ(rig_remote(w, 1, 2)->err, -EHOSTUNREACH);
	rig_free(w);
}

TEST(a_peer_that_is_stopped_for_less_than_the_deadline_loses_nothing)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *m[30];

	rig_send(w, 8, 0);
	rig_run(w, 100);
	w->proc[2].paused = w->now + 4 * WEFT_S;
	for (uint64_t i = 0; i < 30; i++)
		m[i] = rig_send(w, i * 4000, 0);
	rig_run(w, 4000);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	shell_awake(w, &w->proc[2]);
	for (int i = 0; i < 31; i++)
		rig_post(w);
	rig_run(w, 1000);
	for (int i = 0; i < 30; i++)
		CHECK(m[i]->matched && m[i]->ended && !m[i]->err);
	rig_free(w);
}

TEST(who_was_stopped_itself_does_not_blame_the_others)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	struct mail *m;

	rig_send(w, 8, 0);
	rig_run(w, 100);
	m = rig_send(w, 8, WF_SEND_SYNC);
	w->proc[1].paused = w->now + 10 * WEFT_S;
	rig_run(w, 10000);
	shell_awake(w, &w->proc[1]);
	rig_post(w);
	rig_post(w);
	rig_run(w, 400);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	CHECK(m->ended && !m->err);
	rig_free(w);
}

TEST(blackouts_of_2_s_every_5_s_lose_nothing)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *m[50];

	for (int i = 0; i < 50; i++) {
		if (i % 10 == 6)
			rig_silence(w, 2000, true);
		m[i] = rig_send(w, 200000, 0);
		rig_post(w);
		rig_run(w, 500);
	}
	rig_run(w, 1000);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	for (int i = 0; i < 50; i++)
		CHECK(m[i]->ended && !m[i]->err && m[i]->matched);
	rig_free(w);
}

TEST(a_network_that_becomes_slow_under_way_is_no_death)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	struct mail *m[40];

	for (int i = 0; i < 40; i++) {
		if (i == 10)
			for (struct wire *wire = w->wires; wire; wire = wire->next) {
				wire->latency = 200 * WEFT_MS;
				wire->rate = 1250000;
			}
		m[i] = rig_send(w, 30000, 0);
		rig_post(w);
		rig_run(w, 50);
	}
	rig_run(w, 10000);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	CHECK_OK(rig_remote(w, 2, 1)->err);
	for (int i = 0; i < 40; i++)
		CHECK(m[i]->ended && !m[i]->err && m[i]->matched);
	rig_free(w);
}

TEST(a_peer_at_rest_is_looked_at_twice_a_minute)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	uint64_t events;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 5000);
	events = w->order;
	rig_run(w, 600000);
	CHECK(w->order - events < 20 * 3 * 16);         /* 3 lanes, 20 probes, a few events each */
	CHECK(w->order - events > 20);
	CHECK_OK(rig_remote(w, 1, 2)->err);
	CHECK(!rig_remote(w, 1, 2)->out[4]->rt.mem);     /* and keeps no ring */
	rig_free(w);
}

TEST(of_two_lanes_opened_at_once_the_one_of_the_smaller_process_stays)
{
	for (uint64_t seed = 1; seed <= test_scaled(50); seed++) {
		struct world *w = rig_new((struct sim_conf){ .seed = seed });
		uint32_t up = 0;

		mail_send(&w->proc[1], 1, 2, 1, 8, 0, 0, 0);
		mail_send(&w->proc[2], 1, 1, 1, 8, 0, 0, 0);
		upper_post(&w->proc[1], 1, -1, -1, 100);
		rig_post(w);
		rig_run(w, 1000);
		for (struct wire *wire = w->wires; wire; wire = wire->next) {
			CHECK_EQ(wire->end[0].up, wire->end[1].up);
			up += wire->end[0].up;
		}
		CHECK_EQ(up, 2);                        /* control and head */
		CHECK(w->mail[0]->matched && w->mail[1]->matched);
		rig_free(w);
	}
}

TEST(a_lane_of_a_lower_generation_is_refused_and_of_a_higher_one_replaces)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct wf_lane *lane;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	lane = r->slots[1].lane;
	MUST(lane);
	CHECK(!wf_remote_lane_up(r, 1, lane->gen - 1, false, w->now));
	CHECK(!wf_remote_lane_up(r, 1 + 2 * WF_RAILS, 1, false, w->now));
	struct wf_lane *newer = wf_remote_lane_up(r, 1, lane->gen + 1, false, w->now);

	CHECK(newer && newer != lane && lane->closing && r->slots[1].lane == newer);
	rig_free(w);
}

TEST(opening_is_tried_at_once_and_then_with_growing_pauses)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = 5 * WEFT_S });

	w->proc[2].dead = true;
	rig_send(w, 8, 0);
	CHECK_EQ(w->connects, 2);
	rig_run(w, 4900);
	CHECK(w->connects > 4 && w->connects < 20);
	rig_run(w, 200);
	CHECK_EQ(rig_remote(w, 1, 2)->err, -EHOSTUNREACH);
	rig_free(w);
}

TEST(closing_drains_says_bye_and_ends_what_the_other_end_still_wants)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *m = rig_send(w, 300000, 0), *back;

	wf_remote_close(rig_remote(w, 1, 2), w->now);
	shell_after(&w->proc[1], 2);
	CHECK_EQ(rig_send(w, 1, 0)->err, -ESHUTDOWN);
	rig_run(w, 200);
	CHECK(!w->proc[1].closed[2]);                   /* the message has not been received */
	back = mail_send(&w->proc[2], 1, 1, 1, 100000, 0, 0, 0);
	rig_post(w);
	rig_run(w, 500);
	CHECK(m->matched && m->ended && !m->err);
	CHECK(w->proc[1].closed[2]);
	CHECK(w->proc[2].over[1]);
	CHECK(back->ended && back->err == -ECONNRESET);
	CHECK_EQ(mail_send(&w->proc[2], 1, 1, 1, 1, 0, 0, 0)->err, -ECONNRESET);
	rig_free(w);
}

TEST_MAIN
