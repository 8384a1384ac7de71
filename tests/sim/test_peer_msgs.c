/* test_peer_msgs.c - messages between processes of two hosts: records, credit, announcements, backlog, cancel. */
#include "alone.h"
#include "rig.h"

/* ---- records ---- */

TEST(small_messages_leave_at_once_on_an_idle_lane_and_together_on_a_busy_one)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8, .flags = WF_SEND_NOW };
	struct wf_fill f;
	uint32_t more = WF_CREDIT_FLOOR / (8 + WF_COST) - 1;

	alone(&r, lane);
	acts_of(&r, WF_ACT_WRITE);
	CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), WEFT_DONE);
	CHECK_EQ(acts_of(&r, WF_ACT_WRITE), 1);
	CHECK_EQ(wf_remote_fill(&r, lane[1], &f, WEFT_S), 1);
	CHECK_EQ(f.small_len, 16 + 16 + 32);            /* MOVE, STREAM, MSG */
	for (uint32_t i = 0; i < more; i++)             /* while that is being written */
		CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), WEFT_DONE);
	CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), -EAGAIN);      /* no credit, and it was not to wait */
	CHECK_EQ(acts_of(&r, WF_ACT_WRITE), 0);
	wf_remote_wrote(&r, lane[1], WEFT_S);
	CHECK_EQ(wf_remote_fill(&r, lane[1], &f, WEFT_S), 1);
	CHECK_EQ(f.small_len, 16 + 32 * more);
	wf_remote_wrote(&r, lane[1], WEFT_S);
	CHECK_EQ(wf_remote_fill(&r, lane[1], &f, WEFT_S), 0);
	wf_remote_fini(&r);
}

TEST(a_payload_up_to_4_KiB_is_done_at_once_and_a_larger_one_when_acknowledged)
{
	struct world *w = rig_new((struct sim_conf){ 0 });

	CHECK(rig_send(w, WF_INLINE_MOST, 0)->ended);
	struct mail *m = rig_send(w, WF_INLINE_MOST + 1, 0);

	CHECK(!m->ended);
	rig_run(w, 100);
	CHECK(m->ended && !m->err && !m->matched);      /* it is there, and nobody has received it */
	rig_post(w);
	rig_post(w);
	CHECK(m->matched);
	rig_free(w);
}

TEST(who_waits_for_a_match_does_not_wait_for_an_acknowledgement_that_has_no_hurry)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *first = rig_send(w, 8, 0), *before, *m;

	rig_post(w);
	rig_run(w, 100);
	CHECK(first->matched);
	before = rig_send(w, WF_INLINE_MOST + 1, 0);
	m = rig_send(w, WF_INLINE_MOST + 1, WF_SEND_SYNC);
	rig_post(w);
	rig_post(w);
	rig_run(w, 2);
	CHECK(m->matched && m->ended && !m->err);
	CHECK(before->ended && !before->err);           /* all of its stream up to there has come */
	rig_run(w, 100);
	rig_free(w);
}

TEST(a_match_of_what_has_not_left_is_refused)
{
	for (int left = 0; left < 2; left++) {
		struct wf_remote r;
		struct wf_lane *lane[3];
		struct wf_rsend s = { .to = 1, .from = 1, .len = 20000, .flags = WF_SEND_SYNC };
		unsigned char bytes[600], ended[16];

		alone(&r, lane);
		CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), 0);
		if (left)
			CHECK(acts_of(&r, WF_ACT_WRITE) > 0 && general(&r, lane[1], bytes) > 0);
		wf_wire_put(ended, WF_WIRE_ENDED, 0, 0, s.number);
		CHECK_EQ(control(&r, lane[0], ended, sizeof(ended)), left ? 0 : -EPROTO);
		CHECK_EQ(s.state, left ? WF_S_OVER : WF_S_EAGER);
		wf_remote_fini(&r);
	}
}

TEST(a_send_that_is_answered_twice_ends_once)
{
	struct wf_rsend s = { .to = 1, .from = 1, .len = 20000, .flags = WF_SEND_SYNC };
	unsigned char bytes[600], ended[16];
	struct wf_acts acts = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), 0);
	CHECK(acts_of(&r, WF_ACT_WRITE) > 0 && general(&r, lane[1], bytes) > 0);
	wf_wire_put(ended, WF_WIRE_ENDED, 0, ESRCH, s.number);
	CHECK_OK(control(&r, lane[0], ended, sizeof(ended)));
	CHECK_EQ(s.state, WF_S_EAGER);          /* its memory is not free: nothing is acknowledged */
	wf_put32(ended + 4, 0);
	CHECK_OK(control(&r, lane[0], ended, sizeof(ended)));
	MUST_EQ(s.state, WF_S_EAGER);           /* and the first answer counts */
	wf_wire_put(bytes, WF_WIRE_ACK, WF_STREAM_PLAIN, r.out[WF_STREAM_PLAIN]->epoch, r.out[WF_STREAM_PLAIN]->rt.sent);
	CHECK_OK(wf_remote_record(&r, lane[1], bytes, 16, 0, WEFT_S, &acts));
	CHECK_EQ(r.live, 0);
	CHECK_EQ(s.err, -ESRCH);
	CHECK_EQ(acts_of(&r, WF_ACT_SENT), 1);
	wf_remote_fini(&r);
}

TEST(what_finds_its_stream_full_goes_in_its_turn_when_something_is_acknowledged)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_rsend s[4];
	struct wf_acts acts = { 0 };
	unsigned char frame[16];
	struct wf_fill f;

	alone(&r, lane);
	r.conf.retain = WF_RETAIN_LEAST;
	for (int i = 0; i < 4; i++) {
		s[i] = (struct wf_rsend){ .to = 1, .from = 1, .len = WF_INLINE_MOST };
		CHECK_EQ(wf_remote_send(&r, &s[i], WEFT_S), i < 2 ? WEFT_DONE : 0);
	}
	CHECK(s[2].state == WF_S_WAITS && s[3].state == WF_S_WAITS);
	acts_of(&r, WF_ACT_WRITE);
	CHECK_EQ(wf_remote_fill(&r, lane[1], &f, WEFT_S), 1);
	wf_remote_wrote(&r, lane[1], WEFT_S);
	CHECK_EQ(s[2].state, WF_S_WAITS);
	wf_wire_put(frame, WF_WIRE_ACK, 4, r.out[4]->epoch, r.out[4]->rt.sent / 2);
	MUST_OK(wf_remote_record(&r, lane[1], frame, 16, 0, WEFT_S, &acts));
	CHECK_EQ(s[2].state, WF_S_OVER);
	CHECK_EQ(s[3].state, WF_S_WAITS);
	CHECK_EQ(acts_of(&r, WF_ACT_SENT), 1);
	CHECK_OK(wf_remote_cancel(&r, &s[3], WEFT_S));          /* in its own queue */
	CHECK_EQ(acts_of(&r, WF_ACT_SENT), 1);
	CHECK_EQ(s[3].err, -ECANCELED);
	wf_remote_fini(&r);
}

TEST(an_urgent_message_overtakes_bulk)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *bulk[8], *urgent;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	for (int i = 0; i < 8; i++) {
		bulk[i] = rig_send(w, 1 << 20, 0);
		rig_post(w);
	}
	rig_run(w, 2);
	urgent = mail_send(&w->proc[1], 1, 2, 2, 8, 0, 3, 0);
	upper_post(&w->proc[2], 2, -1, -1, 8);
	rig_run(w, 1);
	CHECK(urgent->matched);
	CHECK(!bulk[7]->ended);
	CHECK_EQ(rig_remote(w, 1, 2)->out[1]->lane->kind, WF_LANE_CONTROL);
	rig_run(w, 1000);
	CHECK(bulk[7]->ended && !bulk[7]->err);
	rig_free(w);
}

/* ---- credit ---- */

TEST(without_credit_a_message_is_announced_and_memory_stays_bounded)
{
	struct world *w = rig_new((struct sim_conf){ .window = 64 << 10, .cap = 1000 });

	for (int i = 0; i < 200; i++)
		rig_send(w, 2000, 0);
	rig_run(w, 200);
	CHECK(w->proc[2].unexpected[1] <= 64 << 10);
	CHECK(w->proc[2].announcements[1] > 100);
	for (int i = 0; i < 200; i++)
		rig_post(w);
	rig_run(w, 500);
	for (int i = 0; i < 200; i++)
		CHECK(w->mail[i]->matched && !w->mail[i]->err);
	CHECK(rig_remote(w, 1, 2)->limit > 64 << 10);    /* what was freed can be used again */
	rig_free(w);
}

TEST(a_port_that_does_not_receive_leaves_credit_to_the_others)
{
	struct world *w = rig_new((struct sim_conf){ .window = 256 << 10, .cap = 16 });
	struct mail *m;

	rig_send(w, 8, 0);
	rig_run(w, 100);
	for (int i = 0; i < 300; i++) {
		rig_send(w, 2000, 0);
		if (i % 10 == 0)
			rig_run(w, 2);
	}
	rig_run(w, 100);
	CHECK(w->proc[2].clogged[1][1]);
	CHECK(w->proc[2].unexpected[1] < 128 << 10);
	for (int i = 0; i < 100; i++) {
		upper_post(&w->proc[2], 2, -1, -1, 4000);
		m = mail_send(&w->proc[1], 1, 2, 2, 4000, 0, 0, 0);
		CHECK(m->ended);                        /* on the spot: it needed no announcement */
		rig_run(w, 5);
		CHECK(m->matched);
	}
	for (int i = 0; i < 301; i++)
		rig_post(w);
	rig_run(w, 1000);
	CHECK(!w->proc[2].clogged[1][1]);
	CHECK_EQ(rig_remote(w, 1, 2)->ndests, 0);
	for (uint32_t i = 0; i < w->nmails; i++)
		CHECK(w->mail[i]->matched && w->mail[i]->ended && !w->mail[i]->err);
	rig_free(w);
}

TEST(a_credit_that_comes_twice_or_late_does_no_harm)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	unsigned char frame[16];

	alone(&r, lane);
	wf_wire_put(frame, WF_WIRE_CREDIT, 0, 0, 200000);
	CHECK_OK(control(&r, lane[0], frame, 16));
	CHECK_EQ(r.limit, 200000);
	CHECK_OK(control(&r, lane[0], frame, 16));
	wf_wire_put(frame, WF_WIRE_CREDIT, 0, 0, 150000);
	CHECK_OK(control(&r, lane[0], frame, 16));
	CHECK_EQ(r.limit, 200000);
	wf_remote_fini(&r);
}

TEST(who_sends_more_than_it_may_is_wrong)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	static unsigned char bytes[WF_WIRE_SMALL];
	struct wf_acts acts = { 0 };
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 1, .from = 1 };
	int rc = 0, n = 0;

	alone(&r, lane);
	wf_wire_put(bytes, WF_WIRE_MOVE, 4, 1, 0);
	MUST_OK(wf_remote_record(&r, lane[1], bytes, 16, 0, WEFT_S, &acts));
	for (; !rc && n < 100; n++) {
		wf_wire_put(bytes, WF_WIRE_STREAM, 4, 1, r.in[4].next);
		wf_wire_put_msg(bytes + 16, &m, 4000);
		acts.n = 0;
		rc = wf_remote_record(&r, lane[1], bytes, 16 + 24 + 4000, 0, WEFT_S, &acts);
	}
	CHECK_EQ(rc, -EPROTO);
	CHECK_EQ(n, WF_CREDIT_FLOOR / (4000 + WF_COST) + 1);
	wf_remote_fini(&r);
}

/* ---- announcements, backlog ---- */

TEST(announcements_are_capped_and_a_port_without_any_has_one_more)
{
	struct world *w = rig_new((struct sim_conf){ .cap = 4 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *other;

	for (int i = 0; i < 20; i++)
		rig_send(w, 200000, 0);
	CHECK_EQ(r->announced, 4);
	other = mail_send(&w->proc[1], 1, 2, 2, 200000, 0, 0, 0);
	CHECK_EQ(r->announced, 5);
	mail_send(&w->proc[1], 1, 2, 2, 200000, 0, 0, 0);
	CHECK_EQ(r->announced, 5);
	rig_run(w, 100);
	CHECK_EQ(w->proc[2].announcements[1], 5);
	CHECK(w->proc[2].backlog[1][1]);
	upper_post(&w->proc[2], 2, -1, -1, 1 << 20);
	rig_run(w, 100);
	CHECK(other->matched && other->ended);          /* not behind what waits for port 1 */
	upper_post(&w->proc[2], 2, -1, -1, 1 << 20);
	for (int i = 0; i < 20; i++)
		rig_post(w);
	rig_run(w, 1000);
	for (uint32_t i = 0; i < w->nmails; i++)
		CHECK(w->mail[i]->matched && w->mail[i]->ended);
	CHECK_EQ(r->ndests, 0);
	rig_free(w);
}

TEST(small_messages_to_other_ports_pass_a_backlog)
{
	struct world *w = rig_new((struct sim_conf){ .cap = 2 });
	struct mail *m;

	for (int i = 0; i < 20; i++)
		rig_send(w, 200000, 0);
	m = mail_send(&w->proc[1], 1, 2, 2, 100, 0, 0, 0);
	upper_post(&w->proc[2], 2, -1, -1, 100);
	rig_run(w, 50);
	CHECK(m->matched);
	for (int i = 0; i < 20; i++)
		rig_post(w);
	rig_run(w, 1000);
	rig_free(w);
}

TEST(what_waits_at_its_source_is_found_by_who_wants_it)
{
	struct world *w = rig_new((struct sim_conf){ .cap = 4 });
	struct mail *wanted, *later;
	struct post *post, *early;

	for (int i = 0; i < 500; i++)
		rig_send(w, 100000, 0);
	wanted = mail_send(&w->proc[1], 1, 2, 1, 100000, 0, 0, 2);
	rig_run(w, 100);
	CHECK_EQ(w->proc[2].announcements[1], 4);
	post = upper_post(&w->proc[2], 1, -1, 2, 1 << 20);
	rig_run(w, 100);
	CHECK(post->over && post->mail == wanted && !post->err);
	/* Wanted before it is sent. */
	early = upper_post(&w->proc[2], 1, -1, 1, 1 << 20);
	rig_run(w, 100);
	CHECK(!early->over);
	later = mail_send(&w->proc[1], 1, 2, 1, 100000, 0, 0, 1);
	rig_run(w, 100);
	CHECK(early->over && early->mail == later);
	CHECK_EQ(w->proc[2].announcements[1], 4);
	for (int i = 0; i < 500; i++)
		rig_post(w);
	rig_run(w, 5000);
	for (uint32_t i = 0; i < w->nmails; i++)
		CHECK(w->mail[i]->matched && w->mail[i]->ended);
	rig_free(w);
}

TEST(an_offer_is_for_the_receive_that_asked_and_goes_back_to_its_place_if_that_is_gone)
{
	struct world *w = rig_new((struct sim_conf){ .cap = 1 });
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *m[4], *c;
	struct post *post;

	for (int i = 0; i < 3; i++)
		m[i] = rig_send(w, 100000, 0);
	c = m[3] = mail_send(&w->proc[1], 1, 2, 1, 100000, 0, 0, 2);
	rig_run(w, 100);
	post = upper_post(&w->proc[2], 1, -1, 2, 1 << 20);
	while (c->s.state != WF_S_OFFERED && !w->failed)
		sim_run(w, w->heap[0].at);
	CHECK(upper_unpost(&w->proc[2], post));
	rig_run(w, 100);
	CHECK(!c->matched && c->s.state == WF_S_BACKLOG);
	for (int i = 0; i < 4; i++)                     /* in their order: m[0] was announced all the time */
		CHECK(!rig_post(w)->err);
	rig_run(w, 500);
	for (int i = 0; i < 4; i++)
		CHECK(m[i]->matched && m[i]->ended);
	CHECK_EQ(r->ndests, 0);
	rig_free(w);
}

/* ---- cancel: a line each ---- */

/* Something that fills the stream first, so that nothing of what follows has left. */
static struct world *blocked(void)
{
	struct world *w = rig_new((struct sim_conf){ .cap = 2 });

	rig_send(w, 8, 0);
	rig_run(w, 100);
	return w;
}

TEST(a_send_in_its_own_queue_is_cancelled_here)
{
	struct world *w = blocked();
	struct mail *m[6];

	for (int i = 0; i < 6; i++)
		m[i] = rig_send(w, 200000, 0);
	CHECK_EQ(m[5]->s.state, WF_S_BACKLOG);
	upper_cancel(&w->proc[1], m[5]);
	CHECK(m[5]->ended && m[5]->err == -ECANCELED);
	for (int i = 0; i < 6; i++)
		rig_post(w);
	rig_run(w, 500);
	for (int i = 0; i < 5; i++)
		CHECK(m[i]->matched && !m[i]->err);
	rig_free(w);
}

TEST(a_send_whose_frame_has_not_left_is_cancelled_here)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *body = rig_send(w, 20000, 0), *sync = rig_send(w, 10, WF_SEND_SYNC), *big = rig_send(w, 200000, 0), *m = rig_send(w, 8, 0);
	uint64_t used = rig_remote(w, 1, 2)->used;

	upper_cancel(&w->proc[1], body);                /* no lane is up yet */
	upper_cancel(&w->proc[1], sync);
	upper_cancel(&w->proc[1], big);
	CHECK(body->err == -ECANCELED && sync->err == -ECANCELED && big->err == -ECANCELED);
	CHECK_EQ(used - rig_remote(w, 1, 2)->used, 20000 + 10 + 2 * WF_COST);      /* its credit is there again */
	rig_post(w);
	rig_run(w, 100);
	CHECK(m->matched);
	CHECK_EQ(rig_remote(w, 2, 1)->arrived, rig_remote(w, 1, 2)->used);
	rig_free(w);
}

TEST(an_announced_or_eager_send_nobody_has_matched_is_taken_back_by_asking)
{
	struct world *w = blocked();
	struct mail *m[3] = { rig_send(w, 200000, 0), rig_send(w, 30000, WF_SEND_SYNC), rig_send(w, 5, WF_SEND_SYNC) };

	rig_run(w, 100);
	for (int i = 0; i < 3; i++) {
		upper_cancel(&w->proc[1], m[i]);
		CHECK(!m[i]->ended);
	}
	rig_run(w, 100);
	for (int i = 0; i < 3; i++)
		CHECK(m[i]->ended && m[i]->err == -ECANCELED && !m[i]->matched);
	rig_post(w);
	rig_free(w);
}

/* How a message of @len leaves where lanes carry @rate bytes a second. */
static uint8_t leaves_as(struct world *w, uint64_t rate, uint64_t len)
{
	struct wf_remote *r = rig_remote(w, 1, 2);
	struct mail *m;
	uint8_t state;

	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		lane->rate = rate;
	r->lead_rest = UINT32_MAX;                      /* an announcement goes alone */
	rig_post(w);
	m = rig_send(w, len, 0);
	state = m->s.state;
	rig_run(w, 1000);
	CHECK(m->ended && m->err == 0 && m->matched);
	return state;
}

TEST(a_long_message_goes_unasked_where_lanes_are_fast)
{
	struct world *w = rig_new((struct sim_conf){ .window = 1 << 20, .eager_most = 256 << 10 });

	CHECK_EQ(leaves_as(w, 0, 60000), WF_S_EAGER);
	CHECK_EQ(leaves_as(w, 0, 70000), WF_S_ANNOUNCED);                       /* nothing is known of them yet */
	CHECK_EQ(leaves_as(w, 100000000, 70000), WF_S_ANNOUNCED);               /* 25,000 in a quarter of a millisecond */
	CHECK_EQ(leaves_as(w, 100000000, 60000), WF_S_EAGER);
	CHECK_EQ(leaves_as(w, 400000000, 100000), WF_S_EAGER);
	CHECK_EQ(leaves_as(w, 400000000, 100001), WF_S_ANNOUNCED);
	CHECK_EQ(leaves_as(w, 10000000000, 256 << 10), WF_S_EAGER);
	CHECK_EQ(leaves_as(w, 10000000000, (256 << 10) + 1), WF_S_ANNOUNCED);
	rig_free(w);
}

TEST(an_eager_send_in_flight_is_asked_for_behind_the_message)
{
	struct world *w = blocked();
	struct mail *gone = rig_send(w, 30000, 0), *had;

	MUST(gone->s.start < rig_remote(w, 1, 2)->out[4]->rt.sent);
	upper_cancel(&w->proc[1], gone);
	CHECK(!gone->ended);
	rig_run(w, 100);
	CHECK(gone->ended && gone->err == -ECANCELED);
	rig_post(w);
	rig_post(w);
	had = rig_send(w, 30000, 0);                    /* this one finds a receive */
	upper_cancel(&w->proc[1], had);
	rig_run(w, 100);
	CHECK(had->ended && !had->err && had->matched);
	rig_free(w);
}

TEST(a_body_that_has_left_in_part_is_not_taken_back_without_asking)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_rsend s = { .to = 1, .from = 1, .len = 5000 };
	struct wf_acts acts = { 0 };
	unsigned char frame[16];
	struct wf_fill f;

	alone(&r, lane);
	CHECK_OK(wf_remote_send(&r, &s, WEFT_S));
	acts_of(&r, WF_ACT_WRITE);
	CHECK_EQ(wf_remote_fill(&r, lane[1], &f, WEFT_S), 1);
	CHECK_EQ(f.body_len, 5000);
	wf_remote_lane_down(&r, lane[1], WEFT_S);
	acts_of(&r, WF_ACT_WRITE);
	MUST(r.out[4]->lane == lane[0] && r.out[4]->waits);
	CHECK_EQ(wf_remote_fill(&r, lane[0], &f, WEFT_S), 1);
	wf_remote_wrote(&r, lane[0], WEFT_S);
	wf_wire_put(frame, WF_WIRE_RESUME, 4, r.out[4]->epoch, s.start);
	MUST_OK(wf_remote_record(&r, lane[0], frame, 16, 0, WEFT_S, &acts));
	CHECK(s.start >= r.out[4]->rt.sent && !r.out[4]->waits);
	CHECK_OK(wf_remote_cancel(&r, &s, WEFT_S));             /* the receiver may have matched it */
	CHECK_EQ(s.state, WF_S_EAGER);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

TEST(matched_or_partly_written_is_too_late_to_cancel)
{
	struct world *w = blocked();
	struct mail *m = rig_send(w, 1 << 20, 0);

	rig_post(w);
	rig_post(w);
	while (m->s.state != WF_S_GRANTED && !w->failed)
		sim_run(w, w->heap[0].at);
	upper_cancel(&w->proc[1], m);
	rig_run(w, 500);
	CHECK(m->ended && !m->err && m->matched);
	rig_free(w);
}

TEST(a_cancel_crossing_a_grant_is_too_late)
{
	struct world *w = blocked();
	struct mail *m = rig_send(w, 200000, 0);

	rig_run(w, 100);
	rig_post(w);
	rig_post(w);                                    /* the grant is on its way */
	upper_cancel(&w->proc[1], m);
	rig_run(w, 500);
	CHECK(m->ended && !m->err && m->matched);
	rig_free(w);
}

TEST(on_a_broken_lane_a_cancel_goes_with_the_lanes_recovery)
{
	struct world *w = blocked();
	struct mail *m = rig_send(w, 200000, 0);

	rig_run(w, 100);
	wire_break(w, rig_wire(w, 1));
	upper_cancel(&w->proc[1], m);
	rig_run(w, 1000);
	CHECK(m->ended && m->err == -ECANCELED);
	rig_post(w);
	rig_free(w);
}

TEST(a_cancel_towards_a_dead_peer_ends_with_its_error)
{
	struct world *w = rig_new((struct sim_conf){ .deadline = WEFT_S });
	struct mail *m = rig_send(w, 200000, 0);

	rig_run(w, 100);
	w->proc[2].dead = true;
	upper_cancel(&w->proc[1], m);
	rig_run(w, 3000);
	CHECK(m->ended && m->err == -EHOSTUNREACH);
	CHECK_EQ(wf_remote_cancel(rig_remote(w, 1, 2), &m->s, w->now), -EALREADY);
	rig_free(w);
}

TEST_MAIN
