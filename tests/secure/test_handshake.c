/* test_handshake.c - two processes of a job agree: on a session, on the best both have, on keys nobody else has. Refusals: test_refused.c. */
#include "two.h"

static struct two t;

TEST(two_processes_of_a_job_get_the_same_keys_in_every_mode)
{
	for (enum wf_mode mode = WF_MODE_FULL; mode <= WF_MODE_SUM; mode++) {
		two_make(&t, mode);
		two_begin(&t, NULL);
		two_end(&t, NULL);
		MUST(two_agree(&t));
		CHECK_EQ(t.ha.aead, mode == WF_MODE_FULL ? wf_crypto_best() : WF_AEAD_NONE);
		CHECK_EQ(t.ha.session.peer.process, 2);
		CHECK_EQ(t.hb.session.peer.process, 1);
		CHECK(memcmp(t.ha.session.peer.incarnation, t.b.self.incarnation, 16) == 0);
		CHECK(memcmp(t.hb.session.peer.incarnation, t.a.self.incarnation, 16) == 0);
		CHECK_EQ(t.hb.claim.lane.kind, 1);
		CHECK_EQ(t.hb.claim.lane.number, 3);
		CHECK_EQ(t.hb.claim.lane.incarnation, 5);
		CHECK_EQ(t.hb.session.mode, mode);
		CHECK_EQ(t.ha.version, WF_WIRE_NEWEST);
	}
}

TEST(one_byte_at_a_time_is_as_good)
{
	struct wf_handshake *from, *to;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	for (int i = 0; i < WF_HS_FRAMES; i++) {
		uint8_t frame[WF_HS_FRAME_MAX];
		size_t n;

		from = i % 2 ? &t.hb : &t.ha;
		to = i % 2 ? &t.ha : &t.hb;
		n = from->out_n;
		memcpy(frame, from->out, n);
		for (size_t at = 0; at < n; at++) {
			enum wf_hs_state before = to->state;

			CHECK_EQ(wf_handshake_input(to, frame + at, 1), 1);
			CHECK((to->state == before && to->out_n == 0) == (at + 1 < n));
		}
		if (to->state == WF_HS_ASKS)
			wf_handshake_accept(to, NULL);
	}
	CHECK(two_agree(&t));
}

TEST(what_comes_behind_a_frame_is_left_alone)
{
	uint8_t more[WF_HS_FRAME_MAX + 100];
	size_t n;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	memset(more, 0xee, sizeof(more));
	n = t.ha.out_n;
	memcpy(more, t.ha.out, n);
	CHECK_EQ(wf_handshake_input(&t.hb, more, sizeof(more)), n);
	CHECK_EQ(t.hb.state, WF_HS_CHALLENGED);
	two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
	two_pass(&t, WF_HS_FRAME_CLAIM, &t.ha, &t.hb);
	CHECK_EQ(wf_handshake_input(&t.hb, more, sizeof(more)), 0);     /* asks: it waits for nothing */
	wf_handshake_accept(&t.hb, NULL);
	memcpy(more, t.hb.out, t.hb.out_n);
	CHECK_EQ(wf_handshake_input(&t.ha, more, sizeof(more)), WF_HS_VERDICT_BYTES);
	CHECK_EQ(wf_handshake_input(&t.ha, more, sizeof(more)), 0);
	CHECK(two_agree(&t));
}

TEST(one_seed_makes_one_handshake)
{
	struct two other;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	two_make(&other, WF_MODE_FULL);
	two_begin(&other, NULL);
	two_end(&other, NULL);
	CHECK(memcmp(t.sent, other.sent, sizeof(t.sent)) == 0);
	CHECK(memcmp(t.ha.send, other.ha.send, WF_SECRET) == 0);
	two_begin(&other, NULL);                /* going on with the same source: all is new */
	two_end(&other, NULL);
	MUST(two_agree(&other));
	CHECK(memcmp(t.ha.send, other.ha.send, WF_SECRET) != 0);
	CHECK(memcmp(t.ha.session.id, other.ha.session.id, 16) != 0);
	CHECK(memcmp(t.ha.session.secret, other.ha.session.secret, WF_SECRET) != 0);
}

TEST(the_kernels_randomness_serves)
{
	two_make(&t, WF_MODE_FULL);
	t.a.random.fill = t.b.random.fill = NULL;
	two_begin(&t, NULL);
	two_end(&t, NULL);
	CHECK(two_agree(&t));
}

TEST(a_further_lane_of_a_session_has_keys_of_its_own_whoever_calls)
{
	struct wf_session of_a, of_b;
	uint8_t first[WF_SECRET];
	struct two back;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	of_a = t.ha.session;
	of_b = t.hb.session;
	memcpy(first, t.ha.send, sizeof(first));

	two_begin(&t, &of_a);
	two_end(&t, &of_b);
	MUST(two_agree(&t));
	CHECK(memcmp(first, t.ha.send, sizeof(first)) != 0);
	CHECK(memcmp(t.ha.session.id, of_a.id, 16) == 0);
	CHECK(memcmp(t.ha.session.secret, of_a.secret, WF_SECRET) == 0);
	memcpy(first, t.ha.send, sizeof(first));

	back = t;
	back.a = t.b;
	back.b = t.a;
	two_begin(&back, &of_b);
	two_end(&back, &of_a);
	MUST(two_agree(&back));
	CHECK(memcmp(first, back.ha.send, sizeof(first)) != 0 && memcmp(first, back.ha.recv, sizeof(first)) != 0);
	CHECK(memcmp(back.ha.session.secret, of_a.secret, WF_SECRET) == 0);
}

TEST(the_newest_common_version_is_spoken)
{
	static const struct {
		uint16_t a_oldest, a_newest, b_oldest, b_newest, want;
	} rows[] = { { 1, 1, 1, 1, 1 }, { 1, 3, 2, 5, 3 }, { 2, 9, 1, 4, 4 }, { 3, 3, 1, 65535, 3 }, { 4, 7, 7, 7, 7 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		two_make(&t, WF_MODE_FULL);
		t.a.oldest = rows[i].a_oldest, t.a.newest = rows[i].a_newest;
		t.b.oldest = rows[i].b_oldest, t.b.newest = rows[i].b_newest;
		two_begin(&t, NULL);
		two_end(&t, NULL);
		MUST(two_agree(&t));
		CHECK_EQ(t.ha.version, rows[i].want);
	}
}

TEST(features_only_one_end_knows_are_off)
{
	two_make(&t, WF_MODE_FULL);
	t.a.features = 0x80f1;
	t.b.features = 0x0113;
	t.a.required = 0x0011;
	t.b.required = 0x0001;
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	CHECK_EQ(t.ha.features, 0x0011);
}

TEST(the_cipher_both_do_best_is_taken_else_chacha_else_what_is_there)
{
	enum { AES = 1 << WF_AEAD_AES_GCM, CHACHA = 1 << WF_AEAD_CHACHA };
	static const struct {
		uint8_t a, b;
		enum wf_aead best_a, best_b, want;
	} rows[] = {
		{ AES | CHACHA, AES | CHACHA, WF_AEAD_AES_GCM, WF_AEAD_AES_GCM, WF_AEAD_AES_GCM },
		{ AES | CHACHA, AES | CHACHA, WF_AEAD_AES_GCM, WF_AEAD_CHACHA, WF_AEAD_CHACHA },
		{ AES | CHACHA, AES | CHACHA, WF_AEAD_CHACHA, WF_AEAD_CHACHA, WF_AEAD_CHACHA },
		{ AES, AES | CHACHA, WF_AEAD_AES_GCM, WF_AEAD_CHACHA, WF_AEAD_AES_GCM },
		{ CHACHA, AES | CHACHA, WF_AEAD_CHACHA, WF_AEAD_AES_GCM, WF_AEAD_CHACHA },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		two_make(&t, WF_MODE_FULL);
		t.a.aeads = rows[i].a, t.a.best = rows[i].best_a;
		t.b.aeads = rows[i].b, t.b.best = rows[i].best_b;
		two_begin(&t, NULL);
		two_end(&t, NULL);
		MUST(two_agree(&t));
		CHECK_EQ(t.ha.aead, rows[i].want);
	}
}

TEST(two_handshakes_at_once_have_nothing_in_common)
{
	struct two one, other;

	two_make(&one, WF_MODE_FULL);
	two_make(&other, WF_MODE_FULL);
	other.random_a += 77;
	other.random_b += 77;
	two_begin(&one, NULL);
	two_begin(&other, NULL);
	two_ask(&one);
	two_ask(&other);
	wf_handshake_accept(&other.hb, NULL);
	wf_handshake_accept(&one.hb, NULL);
	two_pass(&other, WF_HS_FRAME_VERDICT, &other.hb, &other.ha);
	two_pass(&one, WF_HS_FRAME_VERDICT, &one.hb, &one.ha);
	CHECK(two_agree(&one) && two_agree(&other));
	CHECK(memcmp(one.ha.send, other.ha.send, WF_SECRET) != 0);

	/* and a frame of one is none of the other's */
	two_begin(&one, NULL);
	two_begin(&other, NULL);
	two_ask(&one);
	two_ask(&other);
	wf_handshake_accept(&other.hb, NULL);
	wf_handshake_input(&one.ha, other.hb.out, other.hb.out_n);
	CHECK_REFUSED(one.ha, WF_REFUSED_FORGED);
}

TEST(every_frame_has_a_mac_key_of_its_own)
{
	two_make(&t, WF_MODE_FULL);
	for (int i = 0; i < WF_HS_FRAMES; i++) {
		CHECK(memcmp(t.a.credentials.mac[i], t.a.credentials.chain, WF_SECRET) != 0);
		for (int k = 0; k < i; k++)
			CHECK(memcmp(t.a.credentials.mac[i], t.a.credentials.mac[k], WF_SECRET) != 0);
	}
}

static struct wf_endpoint other;        /* b, as it is to another job */
static int others_asked;

static const struct wf_endpoint *other_of(const uint8_t tag[WF_JOB_BYTES])
{
	others_asked++;
	return memcmp(tag, other.credentials.tag, WF_JOB_BYTES) == 0 ? &other : NULL;
}

/* a calls as one of that job, with @key, and b listens, who knows it. */
static void begin_between_jobs(int key_byte, int job_byte)
{
	struct wf_key key;
	uint8_t job[WF_JOB_BYTES];

	two_make(&t, WF_MODE_FULL);
	other = t.b;
	other.self.process = 1u << 20 | 1;              /* both are process 1, of two sides */
	memset(&key, 50, sizeof(key));
	memset(job, 51, sizeof(job));
	MUST_OK(wf_credentials_init(&other.credentials, &key, job));
	memset(&key, key_byte, sizeof(key));
	memset(job, job_byte, sizeof(job));
	MUST_OK(wf_credentials_init(&t.a.credentials, &key, job));
	others_asked = 0;
	two_begin(&t, NULL);
	t.ha.claim.wanted.process = other.self.process;
	t.hb.others = other_of;
}

TEST(who_listens_and_knows_several_jobs_answers_each_under_its_key)
{
	begin_between_jobs(50, 51);
	two_end(&t, NULL);
	CHECK(two_agree(&t));
	CHECK(t.hb.me == &other);
	CHECK_EQ(t.ha.session.peer.process, 1u << 20 | 1);
	begin_between_jobs(7, 9);                       /* its own */
	t.ha.claim.wanted.process = t.b.self.process;
	two_end(&t, NULL);
	CHECK(two_agree(&t));
	CHECK(t.hb.me == &t.b);
	CHECK_EQ(others_asked, 0);
	begin_between_jobs(49, 51);                     /* the tag, and another key: no answer */
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	CHECK_REFUSED(t.hb, WF_REFUSED_KEY);
	CHECK_EQ(t.hb.out_n, 0);
	begin_between_jobs(50, 52);                     /* nobody's tag */
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	CHECK_REFUSED(t.hb, WF_REFUSED_JOB);
	CHECK_EQ(t.hb.out_n, 0);
	begin_between_jobs(7, 51);                      /* the key of one does not open the other */
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	CHECK_REFUSED(t.hb, WF_REFUSED_KEY);
	CHECK_EQ(t.hb.out_n, 0);
}

TEST(nothing_secret_is_left_behind)
{
	static const struct wf_handshake zero = { .state = WF_HS_REFUSED };

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	for (int i = 0; i < WF_SECRET; i++)
		CHECK(t.ha.secret[i] == 0 && t.hb.secret[i] == 0);      /* X25519's are gone with the keys made */
	wf_handshake_fini(&t.ha);
	CHECK(memcmp(&t.ha, &zero, sizeof(zero)) == 0);
	wf_endpoint_fini(&t.a);
	for (size_t i = 0; i < sizeof(t.a.credentials); i++)
		CHECK_EQ(((uint8_t *)&t.a.credentials)[i], 0);
}

TEST_MAIN
