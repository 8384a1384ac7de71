/* test_peer_landings.c - where long messages of another host land: chunks, their acknowledgement, invitations. */
#include "alone.h"
#include "rig.h"

/* ---- landings ---- */

TEST(chunks_lost_with_their_lane_are_cut_again)
{
	struct world *w = rig_new((struct sim_conf){ .rails = 2 });
	struct mail *m = rig_send(w, 1 << 20, 0);
	struct post *post = rig_post(w);

	for (int i = 0; i < 12 && !m->ended; i++) {
		struct wire *wire = rig_wire(w, i & 1 ? 2 : 4);

		if (wire)
			wire_break(w, wire);
		rig_run(w, 1);
	}
	rig_run(w, 1000);
	CHECK(m->ended && !m->err && post->over && !post->err);
	CHECK(rig_remote(w, 1, 2)->counted_chunks_again > 0);
	rig_free(w);
}

TEST(a_landing_with_a_thread_in_it_is_closed_when_that_has_left)
{
	struct world *w = rig_new((struct sim_conf){ 0 });
	struct mail *m = rig_send(w, 1 << 20, 0);
	struct post *post = rig_post(w);

	while (!post->landing.readers && !w->failed && w->nheap)
		sim_run(w, w->heap[0].at);
	MUST(post->landing.readers == 1);
	upper_close(&w->proc[2], 1);
	CHECK(!post->over);                             /* somebody still writes there */
	rig_run(w, 1);
	CHECK(post->over && post->err == -ECONNRESET);
	rig_run(w, 200);
	CHECK(m->ended && m->err == -ECONNRESET);
	rig_free(w);                                    /* looks whether its memory changed since */
}

TEST(chunks_for_unknown_or_closed_tokens_are_read_and_dropped)
{
	struct wf_remote r;
	struct wf_lane *lane[3];
	struct wf_acts acts = { 0 };
	unsigned char frame[24] = { 0 };
	struct iovec iov[4];

	alone(&r, lane);
	wf_wire_head(frame, WF_WIRE_CHUNK, 0, 24);
	wf_put64(frame + 8, UINT64_C(0x100000003));
	CHECK_OK(wf_remote_record(&r, lane[2], frame, 24, 4096, WEFT_S, &acts));
	CHECK_EQ(wf_remote_place(&r, lane[2], iov, 4), 0);
	wf_remote_body(&r, lane[2], true, WEFT_S);
	CHECK_EQ(lane[2]->chunk_got, 4096);
	wf_remote_fini(&r);
}

static unsigned char ground[100000];

static int ground_pieces(const struct wf_landing *l, uint64_t at, struct iovec *iov, int max)
{
	(void)max;
	iov[0] = (struct iovec){ ground + at, (size_t)(l->len - at) };
	return 1;
}

/* A chunk [from, from + n) begins on @lane. */
static int begin_chunk(struct wf_remote *r, struct wf_lane *lane, const struct wf_landing *l, uint64_t from, uint32_t n)
{
	unsigned char frame[24] = { 0 };
	struct wf_acts acts = { 0 };
	struct iovec iov[4];

	wf_wire_head(frame, WF_WIRE_CHUNK, 0, 24);
	wf_put64(frame + 8, l->token);
	wf_put64(frame + 16, from);
	MUST_OK(wf_remote_record(r, lane, frame, 24, n, WEFT_S, &acts));
	return wf_remote_place(r, lane, iov, 4);
}

TEST(what_is_filled_is_never_written_again_and_of_two_that_bring_the_same_one_writes)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
	struct wf_landing l = { .len = 100 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	r.conf.ops = &ops;
	MUST_OK(wf_remote_take(&r, UINT64_C(0x100000000), &l));
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 1);
	CHECK_EQ(begin_chunk(&r, lane[1], &l, 0, 50), 0);       /* the other one has it */
	wf_remote_placed(&r, lane[2], 50);
	wf_remote_body(&r, lane[2], true, WEFT_S);
	wf_remote_body(&r, lane[1], true, WEFT_S);
	CHECK_EQ(l.nfilled, 1);
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 0);       /* filled */
	wf_remote_body(&r, lane[2], true, WEFT_S);
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 49, 51), 0);      /* in part */
	wf_remote_body(&r, lane[2], true, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 0);
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 50, 50), 1);
	wf_remote_placed(&r, lane[2], 50);
	wf_remote_body(&r, lane[2], true, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 1);
	CHECK_OK(wf_landing_close(&r, &l, 0));
	wf_remote_fini(&r);
}

TEST(bytes_two_lanes_brought_are_asked_for_again_if_the_one_that_wrote_them_breaks)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
	struct wf_landing l = { .len = 100 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint64_t tail;

	alone(&r, lane);
	r.conf.ops = &ops;
	MUST_OK(wf_remote_take(&r, UINT64_C(0x100000000), &l));
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 1);
	wf_remote_placed(&r, lane[2], 20);
	CHECK_EQ(begin_chunk(&r, lane[1], &l, 0, 50), 0);
	wf_remote_body(&r, lane[1], true, WEFT_S);
	tail = r.out[0]->rt.tail;
	wf_remote_lane_down(&r, lane[2], WEFT_S);
	CHECK_EQ(r.out[0]->rt.tail, tail + 32);
	CHECK_EQ(wf_retain_head(&r.out[0]->rt, tail)[0], WF_WIRE_AGAIN);
	wf_landing_close(&r, &l, -ECANCELED);
	wf_remote_fini(&r);
}

/* What a lane that is silent had begun goes to who brings it, too. */
TEST(a_silent_lane_loses_its_bytes_to_another_once_it_has_left)
{
	for (int breaks = 0; breaks < 3; breaks++) {
		struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
		struct wf_landing l = { .len = 100 };
		struct iovec into[4];
		struct wf_lane *lane[3];
		struct wf_remote r;
		uint64_t tail;

		alone(&r, lane);
		r.conf.ops = &ops;
		MUST_OK(wf_remote_take(&r, UINT64_C(0x100000000), &l));
		CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 1);       /* in a slice, and there it stays */
		lane[2]->heard -= WEFT_S;
		CHECK(!wf_remote_leaves(lane[2]));
		CHECK_EQ(begin_chunk(&r, lane[1], &l, 0, 50), -EAGAIN);
		CHECK(wf_remote_leaves(lane[2]));
		wf_remote_placed(&r, lane[2], 0);                       /* made to */
		CHECK(!wf_remote_leaves(lane[2]));
		CHECK_EQ(wf_remote_place(&r, lane[1], into, 4), 1);
		wf_remote_placed(&r, lane[1], 50);
		wf_remote_placed(&r, lane[2], 50);                      /* it comes too late */
		CHECK_EQ(l.readers, 0);
		tail = r.out[0]->rt.tail;
		if (breaks == 1)                                        /* who has it breaks, and the other ends: counted, and not there */
			wf_remote_lane_down(&r, lane[1], WEFT_S);
		CHECK_EQ(r.out[0]->rt.tail, tail);
		wf_remote_body(&r, lane[2], true, WEFT_S);
		CHECK_EQ(l.nfilled, 0);
		if (breaks == 2)                                        /* or the other way round */
			wf_remote_lane_down(&r, lane[1], WEFT_S);
		CHECK_EQ(r.out[0]->rt.tail, tail + (breaks ? 32 : 0));
		if (breaks) {
			CHECK_EQ(wf_retain_head(&r.out[0]->rt, tail)[0], WF_WIRE_AGAIN);
		} else {
			wf_remote_body(&r, lane[1], true, WEFT_S);
			CHECK_EQ(l.nfilled, 1);
			CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 0);       /* filled: dropped */
		}
		wf_landing_close(&r, &l, -ECANCELED);
		wf_remote_fini(&r);
	}
}

TEST(spans_merge_in_any_order_and_are_bounded)
{
	uint64_t x = test_seed;

	for (uint64_t round = 0; round < test_scaled(200); round++) {
		struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
		struct wf_landing l = { .len = 3000 };
		struct wf_lane *lane[3];
		struct wf_remote r;
		bool done[30] = { false };
		int left = 30;

		alone(&r, lane);
		r.conf.ops = &ops;
		MUST_OK(wf_remote_take(&r, UINT64_C(0x100000000), &l));
		while (left) {
			uint64_t i = test_random(&x) % 30;
			int n = begin_chunk(&r, lane[2], &l, i * 100, 100);

			CHECK_EQ(n, !done[i]);
			if (n)
				wf_remote_placed(&r, lane[2], 100);
			wf_remote_body(&r, lane[2], true, WEFT_S);
			left -= !done[i];
			done[i] = true;
			CHECK(l.nfilled <= WF_SPANS);
		}
		CHECK_EQ(l.nfilled, 1);
		CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 1);
		CHECK_OK(wf_landing_close(&r, &l, 0));
		wf_remote_fini(&r);
	}
}

TEST(an_eager_body_waits_for_the_thread_of_the_lane_it_came_on_before)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
	struct wf_landing l = { .len = 5000 };
	struct wf_lane *lane[3];
	struct wf_acts acts = { 0 };
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .flags = WF_WIRE_SEND | WF_WIRE_LENGTH | WF_WIRE_BODY, .to = 1, .send = 1, .len = 5000 };
	unsigned char bytes[128];
	struct iovec iov[4];
	struct wf_remote r;
	uint32_t len;

	alone(&r, lane);
	r.conf.ops = &ops;
	wf_wire_put(bytes, WF_WIRE_MOVE, 4, 1, 0);
	wf_wire_put(bytes + 16, WF_WIRE_STREAM, 4, 1, 0);
	len = 32 + (uint32_t)wf_wire_put_msg(bytes + 32, &m, 0);
	MUST_OK(wf_remote_record(&r, lane[1], bytes, len, 5000, WEFT_S, &acts));
	MUST_EQ(acts.n, 1);
	wf_remote_body_into(&r, lane[1], &l);
	CHECK_EQ(wf_remote_place(&r, lane[1], iov, 4), 1);
	wf_put32(bytes + 4, 2);                         /* the same on another lane, epoch 2, while a thread is in it */
	wf_put32(bytes + 16 + 4, 2);
	MUST_OK(wf_remote_record(&r, lane[0], bytes, len, 5000, WEFT_S, &acts));
	CHECK_EQ(acts.n, 1);                            /* it is not shown twice */
	CHECK_EQ(wf_remote_place(&r, lane[0], iov, 4), -EAGAIN);
	wf_remote_placed(&r, lane[1], 5000);
	CHECK_EQ(wf_remote_place(&r, lane[0], iov, 4), 1);
	wf_remote_body(&r, lane[1], true, WEFT_S);      /* of an old epoch: counts nothing */
	CHECK_EQ(r.in[4].next, 0);
	wf_remote_placed(&r, lane[0], 5000);
	wf_remote_body(&r, lane[0], true, WEFT_S);
	CHECK_EQ(r.in[4].next, len - 32);
	CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 1);
	CHECK_OK(wf_landing_close(&r, &l, 0));
	wf_remote_fini(&r);
}

/* ---- acknowledgements of chunks ---- */

/* All of a chunk of 100 bytes has come by @lane, at @now. */
static void chunk_comes(struct wf_remote *r, struct wf_lane *lane, weft_time now)
{
	struct wf_landing unknown = { .token = UINT64_C(0x100000003) };

	CHECK_EQ(begin_chunk(r, lane, &unknown, 0, 100), 0);
	wf_remote_body(r, lane, true, now);
}

/* The next record of @lane, at @now: how many bytes of chunks it acknowledges, and how many us ago the last had come. -1: no word of that; -2: no record. */
static int64_t acknowledges(struct wf_remote *r, struct wf_lane *lane, weft_time now, uint32_t *ret_waited)
{
	struct wf_fill f;
	int64_t count = -1;

	if (!wf_remote_fill(r, lane, &f, now))
		return -2;
	for (int i = 0; i < f.nsmall; i++)
		for (size_t at = 0; at < f.small[i].iov_len;) {
			const unsigned char *p = (const unsigned char *)f.small[i].iov_base + at;

			if (p[0] == WF_WIRE_CHUNKS) {
				count = (int64_t)wf_get64(p + 8);
				*ret_waited = wf_get32(p + 4);
			}
			at += WF_WIRE_PAD(wf_get16(p + 2));
		}
	wf_remote_wrote(r, lane, now);
	return count;
}

TEST(chunks_are_acknowledged_several_at_a_time_or_after_a_while)
{
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint32_t waited = 0;
	weft_time now = WEFT_S;

	alone(&r, lane);
	acts_of(&r, WF_ACT_WRITE);
	for (unsigned i = 1; i < WF_CHUNKS_OUT / 3; i++) {
		chunk_comes(&r, lane[2], now);
		CHECK_EQ(acts_of(&r, WF_ACT_WRITE), 0);
	}
	CHECK(r.wake <= now + WEFT_MS / 4);                     /* somebody looks then */
	chunk_comes(&r, lane[2], now);
	CHECK_EQ(acts_of(&r, WF_ACT_WRITE), 1);
	CHECK_EQ(acknowledges(&r, lane[2], now, &waited), 100 * (WF_CHUNKS_OUT / 3));
	CHECK_EQ(waited, 0);
	CHECK_EQ(acknowledges(&r, lane[2], now, &waited), -2);

	chunk_comes(&r, lane[2], now);                          /* one alone */
	for (now += WEFT_MS / 4 - 1; now <= WEFT_S + WEFT_MS / 4; now++) {
		struct wf_acts acts = { 0 };

		wf_remote_acts(&r, now, &acts);
		CHECK_EQ(acts.n, now == WEFT_S + WEFT_MS / 4);
	}
	CHECK_EQ(acknowledges(&r, lane[2], now, &waited), 100 * (WF_CHUNKS_OUT / 3 + 1));
	CHECK_EQ(waited, 250);                                  /* so that its way can be measured without */
	wf_remote_fini(&r);
}

/* @s, of any length, may send its chunks. */
static void granted(struct wf_remote *r, struct wf_lane *lane[3], struct wf_rsend *s)
{
	unsigned char grant[32] = { 0 };
	struct wf_fill f;

	s->flags = WF_SEND_RENDEZVOUS;
	MUST_EQ(wf_remote_send(r, s, WEFT_S), 0);
	while (wf_remote_fill(r, lane[1], &f, WEFT_S))
		wf_remote_wrote(r, lane[1], WEFT_S);
	wf_wire_head(grant, WF_WIRE_GRANT, 0, sizeof(grant));
	wf_put64(grant + 8, s->number);
	wf_put64(grant + 16, 1);
	wf_put64(grant + 24, s->len);
	MUST_OK(control(r, lane[0], grant, sizeof(grant)));
}

TEST(an_acknowledgement_of_chunks_goes_along_with_a_chunk)
{
	struct wf_rsend s = { .to = 1, .len = 1000 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint32_t waited = 0;

	alone(&r, lane);
	chunk_comes(&r, lane[2], WEFT_S);
	CHECK_EQ(acknowledges(&r, lane[2], WEFT_S, &waited), -2);       /* by itself it waits */
	granted(&r, lane, &s);
	CHECK_EQ(acknowledges(&r, lane[2], WEFT_S + 7000, &waited), 100);
	CHECK_EQ(waited, 7);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

/* The next chunk leaves by @lane. */
static void leaves(struct wf_remote *r, struct wf_lane *lane, weft_time now)
{
	uint32_t waited;

	CHECK_EQ(acknowledges(r, lane, now, &waited), -1);
}

/* The first chunk of @s has left: its length. */
static uint64_t begun(struct wf_remote *r, struct wf_lane *lane[3], struct wf_rsend *s)
{
	alone(r, lane);
	granted(r, lane, s);
	leaves(r, lane[2], WEFT_S);
	MUST(lane[2]->chunk_sent);
	return lane[2]->chunk_sent;
}

/* Those up to @count are there, and the last was @later us before. */
static void acknowledge(struct wf_remote *r, struct wf_lane *lane, uint64_t count, uint32_t later, weft_time now)
{
	struct wf_acts acts = { 0 };
	unsigned char frame[16];

	wf_wire_put(frame, WF_WIRE_CHUNKS, 0, later, count);
	MUST_OK(wf_remote_record(r, lane, frame, sizeof(frame), 0, now, &acts));
}

/* A chunk took 1 ms, and was acknowledged @later, in us, which was told: what its lane is held to carry in 1 ms, in hundredths of that chunk. */
static uint64_t measured(uint32_t later)
{
	struct wf_rsend s = { .to = 1, .len = 100000 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint64_t chunk = begun(&r, lane, &s), rate;

	acknowledge(&r, lane[2], chunk, later, WEFT_S + WEFT_MS + later * 1000);
	rate = lane[2]->rate / 10 / chunk;
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
	return rate;
}

TEST(an_acknowledgement_that_waited_does_not_make_a_lane_slow)
{
	CHECK_EQ(measured(0), 100);
	CHECK_EQ(measured(250), 100);
}

/* Two leave, at once or 1 ms apart, and are acknowledged together when the second is there; behind a pause another one: each of them took 1 ms. */
TEST(an_acknowledgement_of_several_chunks_does_not_make_a_lane_fast)
{
	for (weft_time apart = 0; apart <= WEFT_MS; apart += WEFT_MS) {
		struct wf_rsend s = { .to = 1, .len = 64 << 10 }, other = { .to = 1, .len = 32 << 10 };
		weft_time now = WEFT_S + 2 * WEFT_MS;
		struct wf_lane *lane[3];
		struct wf_remote r;
		uint64_t chunk = begun(&r, lane, &s);

		leaves(&r, lane[2], WEFT_S + apart);
		MUST_EQ(lane[2]->chunk_sent, 2 * chunk);
		acknowledge(&r, lane[2], 2 * chunk, 0, now);
		CHECK_EQ(lane[2]->rate, chunk * 1000);
		granted(&r, lane, &other);
		leaves(&r, lane[2], now + WEFT_S);
		MUST_EQ(lane[2]->chunk_sent, 3 * chunk);
		acknowledge(&r, lane[2], 3 * chunk, 0, now + WEFT_S + WEFT_MS);
		CHECK_EQ(lane[2]->rate, chunk * 1000);
		wf_remote_gone(&r, -ECONNRESET, now + 2 * WEFT_S);
		wf_remote_fini(&r);
	}
}

/* One is always under way: each took 1 ms from the one before. */
TEST(chunks_that_follow_one_another_are_measured_from_one_to_the_next)
{
	struct wf_rsend s = { .to = 1, .len = 320 << 10 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint64_t chunk = begun(&r, lane, &s);

	for (uint64_t i = 1; i < 8; i++) {
		weft_time now = WEFT_S + (weft_time)i * WEFT_MS;

		leaves(&r, lane[2], now - WEFT_MS / 2);
		acknowledge(&r, lane[2], i * chunk, 0, now);
		CHECK_EQ(lane[2]->rate, chunk * 1000);
	}
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
}

/* ---- invitations ---- */

static struct post *invited(struct world *w)
{
	return upper_post(&w->proc[2], 1, 1, -1, 1 << 20);
}

TEST(an_invited_message_sends_its_chunks_with_its_header)
{
	struct world *w = rig_new((struct sim_conf){ .invites = true });
	struct post *post;
	struct mail *m;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	post = invited(w);
	MUST(post->invite_open);
	rig_run(w, 50);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 1);
	m = rig_send(w, 500000, 0);
	CHECK_EQ(m->s.state, WF_S_INVITED);
	rig_run(w, 500);
	CHECK(m->ended && !m->err && post->over && !post->err && post->by_invite);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 0);
	rig_free(w);
}

static bool fits_all(const struct wf_rsend *s, const void *want, size_t len)
{
	(void)s, (void)want, (void)len;
	return true;
}

TEST(an_invitation_that_names_an_older_place_than_the_last_message_is_not_kept)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = no_pieces, .fits = fits_all };
	struct wf_rsend s = { .to = 1, .from = 1, .len = 8 };
	unsigned char frame[48] = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	r.conf.ops = &ops;
	CHECK_EQ(wf_remote_send(&r, &s, WEFT_S), WEFT_DONE);
	wf_wire_head(frame, WF_WIRE_INVITE, 0, 48);
	wf_put64(frame + 16, 1);                        /* token */
	wf_put64(frame + 24, 1 << 20);
	wf_put32(frame + 40, 1);                        /* the port */
	CHECK_OK(control(&r, lane[0], frame, 48));
	CHECK_EQ(r.ninvites, 0);
	wf_put64(frame + 8, r.out[4]->rt.tail);
	CHECK_OK(control(&r, lane[0], frame, 48));
	CHECK_EQ(r.ninvites, 1);
	wf_wire_put(frame, WF_WIRE_REVOKE, 0, 0, 1);
	CHECK_OK(control(&r, lane[0], frame, 16));
	CHECK_EQ(r.ninvites, 0);
	wf_remote_fini(&r);
}

TEST(an_invitation_is_kept_only_if_nothing_was_sent_behind_it)
{
	struct world *w = rig_new((struct sim_conf){ .invites = true });
	struct mail *small, *big;
	struct post *post, *next;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	post = invited(w);
	small = rig_send(w, 8, 0);                      /* they cross */
	rig_run(w, 50);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 0);
	CHECK(post->over && post->mail == small);
	next = invited(w);
	rig_run(w, 50);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 1);
	rig_send(w, 9, 0);                              /* not large: drops it */
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 0);
	big = rig_send(w, 500000, 0);
	CHECK(!big->s.token);                           /* not to what was told */
	rig_post(w);
	rig_run(w, 500);
	CHECK(next->over && big->matched && !big->err);
	rig_free(w);
}

TEST(a_cancelled_receive_revokes_its_invitation_here_and_what_comes_for_it_is_dropped)
{
	struct world *w = rig_new((struct sim_conf){ .invites = true });
	struct post *post;
	struct mail *m;

	rig_send(w, 8, 0);
	rig_post(w);
	rig_run(w, 100);
	post = invited(w);
	rig_run(w, 50);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 1);
	CHECK(upper_unpost(&w->proc[2], post));
	rig_run(w, 50);
	CHECK_EQ(rig_remote(w, 1, 2)->ninvites, 0);     /* its source is told */
	post = invited(w);
	rig_run(w, 50);
	m = rig_send(w, 500000, 0);
	CHECK_EQ(m->s.state, WF_S_INVITED);
	CHECK(upper_unpost(&w->proc[2], post));         /* its chunks are on their way */
	CHECK(post->over);
	rig_run(w, 500);
	CHECK(!m->matched && !m->ended);
	rig_post(w);                                    /* another receive gets it, all of it */
	rig_run(w, 500);
	CHECK(m->matched && m->ended && !m->err);
	rig_free(w);
}

TEST(what_was_lost_ahead_of_an_invited_header_makes_it_an_announcement_like_any_other)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
	struct wf_landing l = { .len = 100 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	r.conf.ops = &ops;
	MUST_OK(wf_remote_invite(&r, &l, 0, 1, 0, "", 0));
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 50), 1);
	wf_remote_placed(&r, lane[2], 20);
	CHECK_EQ(begin_chunk(&r, lane[1], &l, 0, 50), 0);       /* the same once more: dropped */
	wf_remote_body(&r, lane[1], true, WEFT_S);
	wf_remote_lane_down(&r, lane[2], WEFT_S);
	CHECK_EQ(wf_remote_take_invited(&r, UINT64_C(0x100000000), &l, 100), -EAGAIN);
	CHECK_OK(wf_landing_close(&r, &l, 0));
	CHECK_OK(wf_remote_take(&r, UINT64_C(0x100000000), &l));
	CHECK_OK(wf_landing_close(&r, &l, -ECANCELED));
	wf_remote_fini(&r);
}

TEST(a_full_invited_landing_is_not_done_before_its_header)
{
	struct wf_remote_ops ops = { .send_pieces = some_pieces, .land_pieces = ground_pieces };
	struct wf_landing l = { .len = 100 };
	struct wf_lane *lane[3];
	struct wf_remote r;

	alone(&r, lane);
	r.conf.ops = &ops;
	MUST_OK(wf_remote_invite(&r, &l, 0, 1, 0, "", 0));
	CHECK_EQ(begin_chunk(&r, lane[2], &l, 0, 100), 1);
	wf_remote_placed(&r, lane[2], 100);
	wf_remote_body(&r, lane[2], true, WEFT_S);
	CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 0);
	CHECK_OK(wf_remote_take_invited(&r, UINT64_C(0x100000000), &l, 100));
	CHECK_EQ(acts_of(&r, WF_ACT_LANDED), 1);
	CHECK_OK(wf_landing_close(&r, &l, 0));
	wf_remote_fini(&r);
}

TEST_MAIN
