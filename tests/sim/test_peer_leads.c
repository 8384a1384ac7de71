/* test_peer_leads.c - beginnings of long messages that go unasked, behind their announcements: met by a receive, missed, broken off. */
#include "alone.h"
#include "rig.h"

enum { LONG = 1000000, LEAST = 64 << 10, CHUNK = 512 << 10, MOST = 1 << 20, MOMENTS = 20 };   /* of a second: lanes here carry more than LEAST in one */

/* How far two moments that are tried lie apart, or two sizes: further, and still an odd number, where counts are small. A world takes 60 ms under ThreadSanitizer. */
static int64_t apart(int64_t step)
{
	return test_scale() > 0.1 ? step : 3 * step;
}

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
		CHECK(!sender(w)->lead_misses && sender(w)->lead_len >= 2 * LEAST && sender(w)->lead_len <= MOST);
	}
	CHECK_EQ(sender(w)->lead_len, MOST);
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
	for (uint64_t room = 1 << 10; room <= LONG; room += (uint64_t)apart(7777)) {
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

/* Two processes between which long messages go unasked, as a whole: their lanes are that fast, and all were met. What the receiver says takes @ms from now on. */
static struct world *rig_trusting(uint64_t seed, int64_t ms)
{
	struct world *w = rig_new((struct sim_conf){ .seed = seed, .moments = 1 });

	CHECK(goes_well(w));
	sender(w)->lead_len = MOST;
	rig_silence(w, ms, false);
	return w;
}

TEST(a_message_may_go_unasked_as_a_whole_in_several_chunks)
{
	struct world *w = rig_trusting(7, 0);

	for (uint32_t i = 1; i <= 5; i++) {
		struct post *post = rig_post(w);
		struct mail *m = rig_send(w, LONG, 0);
		bool all = false;

		rig_silence(w, 20, false);
		while (!m->ended && !w->failed && w->nheap) {
			sim_run(w, w->heap[0].at);
			all |= m->s.state == WF_S_INVITED && m->s.limit == LONG && !sender(w)->lead;
		}
		rig_run(w, 100);
		CHECK(all && !m->err && post->over && !post->err);
		CHECK_EQ(sender(w)->counted_led, i);
		CHECK(!sender(w)->lead && !sender(w)->lead_on && sender(w)->lead_len == MOST && !sender(w)->lead_misses);
	}
	CHECK_EQ(receiver(w)->counted_dropped, 0);
	CHECK_EQ(sender(w)->counted_chunks_again, 0);
	rig_free(w);
}

/* Longer than that: one chunk of it. */
TEST(what_is_longer_than_goes_unasked_sends_one_chunk_ahead)
{
	struct world *w = rig_trusting(7, 20);
	struct post *post = upper_post(&w->proc[2], 1, -1, -1, 4 << 20);
	struct mail *m = rig_send(w, 3 << 20, 0);

	while (m->s.state != WF_S_INVITED && !w->failed && w->nheap)
		sim_run(w, w->heap[0].at);
	CHECK_EQ(m->s.limit, CHUNK);
	rig_run(w, 500);
	CHECK(m->ended && !m->err && post->over && !post->err && sender(w)->counted_led == 1);
	rig_free(w);
}

/* Its lane breaks at some byte of it, or before, or behind: posted or not, or while it comes. */
static void broken_off(struct world *w, int64_t us, int when)
{
	struct post *post = NULL;
	struct wire *wire;
	struct mail *m;

	if (when == 0)
		post = rig_post(w);
	m = rig_send(w, LONG, 0);
	if (when == 1) {
		sim_run(w, w->now + us * 500);
		post = rig_post(w);
		sim_run(w, w->now + us * 500);
	} else {
		sim_run(w, w->now + us * 1000);
	}
	wire = rig_wire(w, 1);
	if (wire)
		wire_break(w, wire);
	rig_run(w, 20);
	if (when == 2)
		post = rig_post(w);
	rig_run(w, 3000);
	CHECK(m->ended && !m->err && post->over && !post->err);
	CHECK(!sender(w)->lead && !sender(w)->lead_on);
	rig_free(w);
}

TEST(a_beginning_that_is_broken_off_loses_nothing)
{
	for (int when = 0; when < 3; when++)
		for (int64_t us = 0; us < 600; us += apart(7)) {
			struct world *w = rig_new((struct sim_conf){ .seed = 7 + (uint64_t)us, .moments = MOMENTS });

			CHECK(goes_well(w));                    /* the lanes are there */
			broken_off(w, us, when);
		}
}

TEST(nor_does_a_whole_message_that_went_unasked)
{
	for (int when = 0; when < 3; when++)
		for (int64_t us = 0; us < 12000; us += apart(101))
			broken_off(rig_trusting(7 + (uint64_t)us, us % 2 ? 20 : 0), us, when);
}

/* A receive is posted at any moment while it comes: its first chunk was met, and so are the others; or none is. */
TEST(what_comes_unasked_is_met_as_a_whole_or_not_at_all)
{
	uint32_t met = 0, missed = 0, twice = 0;

	for (int64_t us = 0; us < 12000; us += us < 600 ? 37 : apart(37)) {
		struct world *w = rig_trusting(7 + (uint64_t)us, us % 2 ? 20 : 0);
		struct mail *m = rig_send(w, LONG, 0);
		struct post *post;

		sim_run(w, w->now + us * 1000);
		post = rig_post(w);
		rig_run(w, 500);
		CHECK(m->ended && !m->err && post->over && !post->err);
		CHECK_EQ(sender(w)->counted_led, 1);
		CHECK(sender(w)->lead_misses ? receiver(w)->counted_dropped >= 1 && receiver(w)->counted_dropped <= 2 : !receiver(w)->counted_dropped);
		twice += receiver(w)->counted_dropped == 2;
		met += !sender(w)->lead_misses;
		missed += sender(w)->lead_misses;
		rig_free(w);
	}
	CHECK(met > 3 && missed > 3 && twice > 3);
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

/* @body bytes from @from on, of @lead that go unasked. */
static int chunk(struct wf_remote *r, struct wf_lane *lane, uint8_t flags, uint64_t name, uint64_t from, uint32_t body, uint32_t lead)
{
	unsigned char frame[24] = { 0 };
	struct wf_acts acts = { 0 };

	wf_wire_head(frame, WF_WIRE_CHUNK, flags, 24);
	wf_put32(frame + 4, lead);
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
		CHECK_OK(chunk(&r, lane[1], WF_WIRE_LED, SEND, 0, 4000, 4000));
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

/* Chunk 0 of send @first on lane 1, taken before it is read or not at all, then 1 of @then on lane @on: where that goes. */
static struct wf_landing *second(struct wf_remote *r, struct wf_lane *lane[3], struct wf_landing *l, uint64_t first, bool taken, uint64_t then, int on)
{
	CHECK_OK(chunk(r, lane[1], WF_WIRE_LED, first, 0, 4000, 5000));
	if (taken)
		MUST_OK(wf_remote_take(r, first, l));
	wf_remote_body(r, lane[1], true, WEFT_S);
	CHECK_OK(chunk(r, lane[on], WF_WIRE_LED, then, 4000, 1000, 5000));
	return lane[on]->body.landing;
}

TEST(what_comes_behind_a_beginning_is_for_whom_that_was_and_by_the_same_lane)
{
	static const struct {
		uint64_t len, then;
		bool taken, lands;
		int on;
	} t[] = {
		{ 5000, 5, true, true, 1 }, { 6000, 5, true, true, 1 }, { 4999, 5, true, false, 1 }, { 5000, 5, false, false, 1 }, { 5000, 6, true, false, 1 }, { 5000, 5, true, false, 2 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct wf_landing l = { .len = t[i].len };
		struct wf_lane *lane[3];
		struct wf_remote r;

		alone(&r, lane);
		CHECK(second(&r, lane, &l, 5, t[i].taken, t[i].then, t[i].on) == (t[i].lands ? &l : NULL));
		if (!t[i].taken) {                      /* now it is too late for either */
			MUST_OK(wf_remote_take(&r, 5, &l));
			CHECK(!lane[1]->body.landing);
		}
		wf_remote_body(&r, lane[t[i].on], true, WEFT_S);
		CHECK(l.nfilled == (t[i].taken && t[i].len >= 5000) && (!t[i].lands || l.filled[0].to == 5000));
		wf_landing_close(&r, &l, -ECANCELED);
		wf_remote_fini(&r);
	}
}

TEST(chunks_that_lead_and_make_no_sense_are_refused)
{
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 8, 100, 107), -EPROTO);     /* more than goes unasked */
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, UINT64_MAX - 8, 100, 100), -EPROTO);
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 0, 100, 99), -EPROTO);
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 0, 100, 0), -EPROTO);
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 0, 0, 100, 100), -EPROTO);     /* of nobody */
	CHECK_EQ(chunk(&r, lane[1], WF_WIRE_LED, 5, 0, 0, 100), -EPROTO);       /* nothing */
	CHECK_EQ(chunk(&r, lane[1], 0, 5, 0, 100, 100), -EPROTO);               /* of a landing that is there */
	CHECK_EQ(chunk(&r, lane[1], 2, 5, 0, 100, 100), -EPROTO);
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

/* Of a send that goes unasked as a whole the first chunk has left, and no more. */
static void half_led(struct wf_remote *r, struct wf_lane *lane[3], struct wf_rsend *s)
{
	struct wf_fill f;

	alone(r, lane);
	lane[1]->rate = lane[2]->rate = UINT64_C(10000000000);
	r->lead_len = MOST;
	MUST_EQ(wf_remote_send(r, s, WEFT_S), 0);
	acts_of(r, WF_ACT_WRITE);
	do {
		MUST(wf_remote_fill(r, lane[1], &f, WEFT_S));
		wf_remote_wrote(r, lane[1], WEFT_S);
	} while (!f.body_len);
	MUST(s->state == WF_S_INVITED && s->limit == LONG && f.body_len == CHUNK && r->lead == s && r->lead_on == lane[1]);
}

/* How many bytes of chunks leave by @lane. */
static uint64_t leaves(struct wf_remote *r, struct wf_lane *lane)
{
	uint64_t before = lane->chunk_sent;
	struct wf_fill f;

	while (wf_remote_fill(r, lane, &f, WEFT_S))
		wf_remote_wrote(r, lane, WEFT_S);
	return lane->chunk_sent - before;
}

TEST(what_goes_unasked_goes_by_one_lane_and_stops_if_that_breaks)
{
	struct wf_rsend s = { .to = 1, .len = LONG };
	struct wf_lane *lane[3];
	struct wf_remote r;

	half_led(&r, lane, &s);
	CHECK_EQ(leaves(&r, lane[2]), 0);
	CHECK_EQ(leaves(&r, lane[1]), LONG - CHUNK);
	CHECK(!r.lead && !r.lead_on && s.state == WF_S_INVITED);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);

	half_led(&r, lane, &s);
	wf_remote_lane_down(&r, lane[1], WEFT_S);
	CHECK(!r.lead && !r.lead_on && s.state == WF_S_INVITED);
	lane[1] = wf_remote_lane_up(&r, 1, 2, true, WEFT_S);
	MUST(lane[1]);
	acts_of(&r, WF_ACT_WRITE);
	CHECK_EQ(leaves(&r, lane[1]) + leaves(&r, lane[2]), 0);
	CHECK_OK(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LONG));
	CHECK_EQ(leaves(&r, lane[2]), LONG);            /* what flew on that lane, too */
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

TEST(what_is_asked_for_again_follows_the_grant)
{
	struct wf_rsend s = { .to = 1, .len = LONG };
	unsigned char again[32] = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	half_led(&r, lane, &s);
	wf_wire_head(again, WF_WIRE_AGAIN, 0, sizeof(again));
	wf_put64(again + 8, s.number);
	wf_put64(again + 16, 1000);
	wf_put64(again + 24, 3000);
	CHECK_OK(control(&r, lane[0], again, sizeof(again)));
	CHECK_EQ(leaves(&r, lane[1]) + leaves(&r, lane[2]), 0);
	CHECK_OK(grant(&r, lane[0], WF_WIRE_LED, s.number, 1, LONG));
	CHECK_EQ(leaves(&r, lane[2]), LONG - CHUNK + 2000);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

/* Its GRANT is on its way, or waits for company, when its end is told. */
TEST(an_end_without_a_grant_says_that_a_beginning_was_met)
{
	for (int err = 0; err < 2; err++) {
		struct wf_rsend s = { .to = 1, .len = LONG };
		struct wf_lane *lane[3];
		unsigned char ended[16];
		struct wf_remote r;

		half_led(&r, lane, &s);
		CHECK_EQ(leaves(&r, lane[1]), LONG - CHUNK);
		r.lead_misses = 3;
		wf_wire_put(ended, WF_WIRE_ENDED, 0, err ? ECANCELED : 0, s.number);
		CHECK_OK(control(&r, lane[0], ended, sizeof(ended)));
		CHECK(s.state == WF_S_OVER && r.lead_misses == (err ? 3 : 0));
		wf_remote_gone(&r, -ECONNRESET, WEFT_S);
		wf_remote_fini(&r);
	}
}

/* The rest of a message waits for it, or nothing does. */
TEST(a_grant_waits_for_company_if_all_that_is_wanted_has_come_unasked)
{
	for (uint64_t len = 4000; len <= 4001; len++) {
		struct wf_landing l = { .len = len };
		struct wf_lane *lane[3];
		struct wf_remote r;

		alone(&r, lane);
		wf_remote_answer(&r, 77, 0);
		acts_of(&r, WF_ACT_WRITE);
		leaves(&r, lane[0]);
		CHECK_OK(chunk(&r, lane[1], WF_WIRE_LED, 5, 0, 4000, 4000));
		MUST_OK(wf_remote_take(&r, 5, &l));
		CHECK(lane[1]->body.landing == &l);
		CHECK_EQ(acts_of(&r, WF_ACT_WRITE), len == 4000 ? 0 : 1);
		wf_landing_close(&r, &l, -ECANCELED);
		wf_remote_fini(&r);
	}
}

TEST_MAIN
