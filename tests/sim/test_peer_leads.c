/* test_peer_leads.c - beginnings of long messages that go unasked, behind their announcements: met by a receive, missed, broken off. */
#include "alone.h"
#include "rig.h"

enum { LONG = 1000000, LEAST = 64 << 10, MOMENTS = 20 };       /* of a second: lanes here carry more than LEAST in one */

static struct wf_remote *sender(struct world *w)
{
	return rig_remote(w, 1, 2);
}

static struct wf_remote *receiver(struct world *w)
{
	return rig_remote(w, 2, 1);
}

/* A long message to a receive that is posted, and what became of it. */
static bool goes_well(struct world *w)
{
	struct post *post = rig_post(w);
	struct mail *m = rig_send(w, LONG, 0);

	rig_run(w, 500);
	return m->ended && !m->err && post->over && !post->err;
}

/* Two processes whose lanes have carried a long message: how fast they are is known, and the first went alone. */
static struct world *rig_fast(void)
{
	struct world *w = rig_new((struct sim_conf){ .moments = MOMENTS });

	CHECK(goes_well(w));
	CHECK_EQ(sender(w)->counted_led, 0);
	return w;
}

TEST(who_waits_for_a_long_message_gets_its_beginning_with_its_announcement)
{
	struct world *w = rig_fast();

	for (uint32_t i = 1; i <= 5; i++) {
		CHECK(goes_well(w));
		CHECK_EQ(sender(w)->counted_led, i);
		CHECK(!sender(w)->lead_misses && sender(w)->lead_len >= 2 * LEAST && sender(w)->lead_len <= 512 << 10);
	}
	CHECK_EQ(sender(w)->lead_len, 512 << 10);
	CHECK_EQ(receiver(w)->counted_dropped, 0);
	CHECK_EQ(sender(w)->counted_chunks_again, 0);
	rig_free(w);
}

TEST(where_nobody_waits_the_beginning_is_dropped_and_sent_again_and_the_next_ones_are_not_sent)
{
	struct world *w = rig_fast();
	uint64_t led = 0, announced = 0;

	for (uint32_t misses = 1; misses <= 4; misses++)
		for (uint32_t rest = 0; rest < 1u << misses; rest++) {
			struct mail *m = rig_send(w, LONG, 0);
			struct post *post;

			rig_run(w, 100);
			led += rest == 0;
			announced++;
			CHECK_EQ(sender(w)->counted_led, led);
			CHECK_EQ(m->s.state, rest == 0 ? WF_S_INVITED : WF_S_ANNOUNCED);
			post = rig_post(w);
			rig_run(w, 500);
			CHECK(m->ended && !m->err && post->over && !post->err);
			CHECK_EQ(sender(w)->lead_misses, misses);
			CHECK_EQ(sender(w)->lead_rest, (1u << misses) - 1 - rest);
		}
	CHECK_EQ(receiver(w)->counted_dropped, led);
	CHECK(announced > 6 * led);
	CHECK(goes_well(w));                                    /* the next one is met: all is as it was */
	CHECK(!sender(w)->lead_misses && sender(w)->counted_led == led + 1);
	rig_free(w);
}

TEST(a_receive_that_has_no_room_for_the_beginning_gets_as_much_as_it_wants)
{
	struct world *w = rig_fast();
	struct post *post = upper_post(&w->proc[2], 1, -1, -1, LEAST - 1);
	struct mail *m = rig_send(w, LONG, 0);

	rig_run(w, 500);
	CHECK(m->ended && post->over && sender(w)->counted_led == 1 && sender(w)->lead_misses == 1);
	rig_free(w);
}

/* Less than the beginning, as much, or more: what is wanted comes, once. */
TEST(a_receive_gets_as_much_as_it_wants_whatever_led)
{
	for (uint64_t room = 1 << 10; room <= LONG; room += 7777) {
		struct world *w = rig_fast();
		struct post *post;
		struct mail *m;

		CHECK(goes_well(w));
		post = upper_post(&w->proc[2], 1, -1, -1, room);
		m = rig_send(w, LONG, 0);
		rig_run(w, 500);
		CHECK(m->ended && post->over && sender(w)->counted_led == 2);
		rig_free(w);
	}
}

TEST(who_asked_for_a_rendezvous_sends_nothing_before)
{
	struct world *w = rig_fast();
	struct post *post = rig_post(w);
	struct mail *m = rig_send(w, LONG, WF_SEND_RENDEZVOUS);

	rig_run(w, 500);
	CHECK(m->ended && !m->err && post->over && !sender(w)->counted_led);
	rig_free(w);
}

/* Its lane breaks at some byte of it, or before, or behind: posted or not. */
TEST(a_beginning_that_is_broken_off_loses_nothing)
{
	for (int posted = 0; posted < 2; posted++)
		for (int64_t us = 0; us < 600; us += 7) {
			struct world *w = rig_new((struct sim_conf){ .seed = 7 + (uint64_t)us, .moments = MOMENTS });
			struct post *post = NULL;
			struct mail *m;
			struct wire *wire;

			CHECK(goes_well(w));                    /* the lanes are there */
			if (posted)
				post = rig_post(w);
			m = rig_send(w, LONG, 0);
			sim_run(w, w->now + us * 1000);
			wire = rig_wire(w, 1);
			if (wire)
				wire_break(w, wire);
			rig_run(w, 20);
			if (!posted)
				post = rig_post(w);
			rig_run(w, 3000);
			CHECK(m->ended && !m->err && post->over && !post->err);
			rig_free(w);
		}
}

TEST(a_send_that_leads_is_cancelled_as_others_are)
{
	struct world *w = rig_fast();
	struct mail *m;

	CHECK(goes_well(w));
	m = rig_send(w, LONG, 0);
	rig_run(w, 100);
	CHECK_EQ(m->s.state, WF_S_INVITED);
	upper_cancel(&w->proc[1], m);
	rig_run(w, 500);
	CHECK(m->ended && m->err == -ECANCELED);
	m = rig_send(w, LONG, 0);
	upper_cancel(&w->proc[1], m);                           /* before it has led */
	rig_run(w, 500);
	CHECK(m->ended && m->err == -ECANCELED && !sender(w)->lead);
	CHECK(goes_well(w));
	rig_free(w);
}

TEST(a_port_that_closes_while_a_beginning_comes_ends_its_send)
{
	struct world *w = rig_fast();
	struct post *post;
	struct mail *m;

	CHECK(goes_well(w));
	post = rig_post(w);
	m = rig_send(w, LONG, 0);
	while (!post->landing.readers && !w->failed && w->nheap)
		sim_run(w, w->heap[0].at);
	upper_close(&w->proc[2], 1);
	rig_run(w, 500);
	CHECK(m->ended && m->err == -ECONNRESET && post->over);
	rig_free(w);
}

TEST(slow_lanes_carry_what_was_asked_for)
{
	struct world *w = rig_new((struct sim_conf){ .moments = 100000 });

	CHECK(goes_well(w) && goes_well(w) && goes_well(w));
	CHECK_EQ(sender(w)->counted_led, 0);
	rig_free(w);
}

/* ---- frames by hand ---- */

static int chunk(struct wf_remote *r, struct wf_lane *lane, uint8_t flags, uint64_t name, uint64_t from, uint32_t body)
{
	unsigned char frame[24] = { 0 };
	struct wf_acts acts = { 0 };

	wf_wire_head(frame, WF_WIRE_CHUNK, flags, 24);
	wf_put64(frame + 8, name);
	wf_put64(frame + 16, from);
	return wf_remote_record(r, lane, frame, 24, body, WEFT_S, &acts);
}

TEST(a_beginning_is_for_who_takes_its_message_before_it_is_read)
{
	enum { SEND = 5 };

	for (int late = 0; late < 2; late++) {
		struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = no_pieces };
		struct wf_landing l = { .len = 5000 };
		struct wf_lane *lane[3];
		struct wf_remote r;
		struct iovec iov[4];

		alone(&r, lane);
		r.conf.ops = &ops;
		CHECK_OK(chunk(&r, lane[1], WF_WIRE_LED, SEND, 0, 4000));
		if (late)
			CHECK_EQ(wf_remote_place(&r, lane[1], iov, 4), 0);      /* nobody has: it is dropped from here on */
		MUST_OK(wf_remote_take(&r, SEND, &l));
		CHECK(lane[1]->body.landing == (late ? NULL : &l));
		wf_remote_body(&r, lane[1], true, WEFT_S);
		CHECK_EQ(l.nfilled, late ? 0 : 1);
		wf_landing_close(&r, &l, -ECANCELED);
		wf_remote_fini(&r);
	}
}

TEST(chunks_that_lead_and_make_no_sense_are_refused)
{
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 8, 100), -EPROTO);          /* in the middle */
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 0, 0, 100), -EPROTO);          /* of nobody */
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 0, 0), -EPROTO);            /* nothing */
	CHECK_EQ(chunk(&r, lane[1], 2, 5, 0, 100), -EPROTO);
	wf_remote_fini(&r);
}

static int grant(struct wf_remote *r, struct wf_lane *lane, uint8_t flags, uint64_t send, uint64_t token, uint64_t limit)
{
	unsigned char frame[32] = { 0 };

	wf_wire_head(frame, WF_WIRE_GRANT, flags, sizeof(frame));
	wf_put64(frame + 8, send);
	wf_put64(frame + 16, token);
	wf_put64(frame + 24, limit);
	return control(r, lane, frame, sizeof(frame));
}

TEST(grants_of_beginnings_that_were_not_sent_are_refused)
{
	struct wf_rsend s = { .to = 1, .len = LONG };
	struct wf_lane *lane[3];
	struct wf_remote r;
	struct wf_fill f;

	alone(&r, lane);
	lane[2]->rate = UINT64_C(1000000000);
	MUST_EQ(wf_remote_send(&r, &s, WEFT_S), 0);
	CHECK_EQ(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LONG), -EPROTO);  /* it has not left */
	acts_of(&r, WF_ACT_WRITE);
	while (wf_remote_fill(&r, lane[1], &f, WEFT_S))
		wf_remote_wrote(&r, lane[1], WEFT_S);
	CHECK_EQ(s.state, WF_S_INVITED);
	CHECK_EQ(grant(&r, lane[0], 2, s.number, 1, LONG), -EPROTO);
	CHECK_EQ(grant(&r, lane[0], WF_WIRE_LED, s.number, 0, LONG), -EPROTO);
	CHECK_EQ(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LEAST - 1), -EPROTO);     /* less than has come */
	CHECK_EQ(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LONG + 1), -EPROTO);
	CHECK_EQ(s.state, WF_S_INVITED);
	CHECK_OK(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LONG));
	CHECK(s.state == WF_S_GRANTED && s.token == 1);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

TEST_MAIN
