/* test_refused.c - every way a handshake is refused, by name, and that nothing but the truth gets through. */
#include "two.h"

#include "base/bytes.h"

static struct two t;

static bool says(const struct wf_handshake *h, int err, const char *words)
{
	int r = wf_handshake_fail(h);

	if (r == err && strstr(weft_last_error(), words))
		return true;
	printf("# %d \"%s\" is not %d \"%s\"\n", r, weft_last_error(), err, words);
	return false;
}

TEST(a_wrong_key_gets_no_answer)
{
	struct wf_key key;
	uint8_t job[WF_JOB_BYTES];

	two_make(&t, WF_MODE_FULL);
	memset(&key, 8, sizeof(key));
	memset(job, 9, sizeof(job));
	MUST_OK(wf_credentials_init(&t.a.credentials, &key, job));
	two_begin(&t, NULL);
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	CHECK_REFUSED(t.hb, WF_REFUSED_KEY);
	CHECK_EQ(t.hb.out_n, 0);
	CHECK(!t.hb.told);
	CHECK(says(&t.hb, -EACCES, "another job key"));
}

TEST(another_job_gets_no_answer_even_with_the_same_key)
{
	struct wf_key key;
	uint8_t job[WF_JOB_BYTES];

	for (int same = 0; same < 2; same++) {
		two_make(&t, WF_MODE_FULL);
		memset(&key, same ? 7 : 8, sizeof(key));
		memset(job, 10, sizeof(job));
		MUST_OK(wf_credentials_init(&t.a.credentials, &key, job));
		two_begin(&t, NULL);
		two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
		CHECK_REFUSED(t.hb, WF_REFUSED_JOB);
		CHECK_EQ(t.hb.out_n, 0);
		CHECK(says(&t.hb, -EACCES, "another job"));
		two_make(&t, WF_MODE_FULL);     /* and one who only writes down our job's tag */
		memset(&key, same ? 7 : 8, sizeof(key));
		MUST_OK(wf_credentials_init(&t.a.credentials, &key, job));
		memcpy(t.a.credentials.tag, t.b.credentials.tag, WF_JOB_BYTES);
		two_begin(&t, NULL);
		two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
		CHECK_REFUSED(t.hb, WF_REFUSED_KEY);
	}
}

TEST(what_is_no_weft_is_refused_at_the_first_byte_that_differs)
{
	static const char *const texts[] = { "GET / HTTP/1.1\r\n", "\x16\x03\x01\x02\x00\x01", "SSH-2.0-x", "\r\n", "wef\n", "weft\r\n\232c" };
	uint64_t random = test_seed;

	two_make(&t, WF_MODE_FULL);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		two_begin(&t, NULL);
		wf_handshake_input(&t.hb, texts[i], strlen(texts[i]));
		CHECK_REFUSED(t.hb, WF_REFUSED_MAGIC);
		CHECK_EQ(t.hb.out_n, 0);
		CHECK(says(&t.hb, -EPROTO, "does not speak weft"));
		two_begin(&t, NULL);
		wf_handshake_input(&t.ha, texts[i], strlen(texts[i]));
		CHECK(t.ha.state == (i == 5 ? WF_HS_CALLS : WF_HS_REFUSED));   /* the last is what a caller waits for */
	}
	for (uint64_t i = 0; i < test_scaled(20000); i++) {
		uint8_t junk[WF_HS_FRAME_MAX];

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)test_random(&random);
		two_begin(&t, NULL);
		if (i % 2)
			memcpy(junk, wf_hs_hello_magic, WF_HS_MAGIC);
		wf_handshake_input(&t.hb, junk, sizeof(junk));
		CHECK_REFUSED(t.hb, i % 2 ? WF_REFUSED_JOB : WF_REFUSED_MAGIC);
		CHECK_EQ(t.hb.out_n, 0);
	}
}

/* Wherever it was refused: in mid-frame, or by a frame's MAC. */
TEST(who_has_refused_takes_nothing_more)
{
	static uint8_t more[1000];

	two_make(&t, WF_MODE_FULL);
	for (size_t n = 1; n <= WF_HS_HELLO_BYTES; n += n < WF_HS_MAGIC ? 1 : WF_HS_HELLO_BYTES - WF_HS_MAGIC) {
		struct wf_handshake before;

		two_begin(&t, NULL);
		memcpy(more, t.ha.out, n);
		more[n - 1] ^= 1;
		CHECK_EQ(wf_handshake_input(&t.hb, more, n), n);
		MUST_EQ(t.hb.state, WF_HS_REFUSED);
		before = t.hb;
		for (int i = 0; i < 10; i++)
			CHECK_EQ(wf_handshake_input(&t.hb, more, sizeof(more)), 0);
		CHECK(memcmp(&before, &t.hb, sizeof(before)) == 0);
	}
}

TEST(a_replayed_first_frame_gains_a_challenge_and_a_replayed_third_nothing)
{
	static const struct wf_hs_claim nobody;
	struct wf_handshake again;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	wf_handshake_listen(&again, &t.b);
	wf_handshake_input(&again, t.sent[WF_HS_FRAME_HELLO], WF_HS_HELLO_BYTES);
	CHECK_EQ(again.state, WF_HS_CHALLENGED);
	CHECK_EQ(again.out_n, WF_HS_HELLO_BYTES);          /* no more than it cost */
	CHECK(memcmp(again.out, t.sent[WF_HS_FRAME_CHALLENGE], WF_HS_CHALLENGE_BYTES) != 0);
	CHECK(memcmp(&again.claim, &nobody, sizeof(nobody)) == 0);      /* nothing is known of anybody */
	wf_handshake_input(&again, t.sent[WF_HS_FRAME_CLAIM], WF_HS_CLAIM_BYTES);
	CHECK_REFUSED(again, WF_REFUSED_FORGED);
	CHECK_EQ(again.out_n, 0);
	CHECK(memcmp(&again.claim, &nobody, sizeof(nobody)) == 0);
}

TEST(replayed_answers_mean_nothing_to_a_caller)
{
	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	two_begin(&t, NULL);
	wf_handshake_input(&t.ha, t.sent[WF_HS_FRAME_CHALLENGE], WF_HS_CHALLENGE_BYTES);
	CHECK_REFUSED(t.ha, WF_REFUSED_FORGED);
	two_begin(&t, NULL);
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
	wf_handshake_input(&t.ha, t.sent[WF_HS_FRAME_VERDICT], WF_HS_VERDICT_BYTES);
	CHECK_REFUSED(t.ha, WF_REFUSED_FORGED);
	CHECK(says(&t.ha, -EACCES, "changed, replayed"));
}

/* Whoever sends our own frames back to us, also under another frame's magic, gets nowhere. */
TEST(reflected_frames_are_refused)
{
	uint8_t frame[WF_HS_FRAME_MAX];

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	memcpy(frame, t.ha.out, WF_HS_HELLO_BYTES);
	wf_handshake_input(&t.ha, frame, WF_HS_HELLO_BYTES);
	CHECK_REFUSED(t.ha, WF_REFUSED_MAGIC);
	two_begin(&t, NULL);
	memcpy(frame, t.ha.out, WF_HS_HELLO_BYTES);
	memcpy(frame, wf_hs_challenge_magic, WF_HS_MAGIC);
	wf_handshake_input(&t.ha, frame, WF_HS_HELLO_BYTES);
	CHECK_REFUSED(t.ha, WF_REFUSED_FORGED);
	two_begin(&t, NULL);
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	memcpy(frame, t.hb.out, WF_HS_CHALLENGE_BYTES);
	memset(frame + WF_HS_CHALLENGE_BYTES, 0, sizeof(frame) - WF_HS_CHALLENGE_BYTES);
	wf_handshake_input(&t.hb, frame, WF_HS_CLAIM_BYTES);
	CHECK_REFUSED(t.hb, WF_REFUSED_FORGED);
	two_begin(&t, NULL);
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
	memcpy(frame, t.ha.out, WF_HS_VERDICT_BYTES);
	wf_handshake_input(&t.ha, frame, WF_HS_VERDICT_BYTES);
	CHECK_REFUSED(t.ha, WF_REFUSED_FORGED);
}

TEST(a_process_does_not_speak_with_itself)
{
	for (int what = 0; what < 3; what++) {
		two_make(&t, WF_MODE_FULL);
		if (what != 1)
			t.b.self.process = t.a.self.process;
		if (what != 2)
			memcpy(t.b.self.incarnation, t.a.self.incarnation, 16);
		two_begin(&t, NULL);
		two_end(&t, NULL);
		CHECK_REFUSED(t.hb, WF_REFUSED_SELF);
		CHECK_REFUSED(t.ha, WF_REFUSED_SELF);
		CHECK(t.ha.told && !t.hb.told);
		CHECK(says(&t.ha, -EACCES, "own number"));
	}
	two_make(&t, WF_MODE_FULL);             /* nor does a caller believe one who did not look */
	two_begin(&t, NULL);
	two_ask(&t);
	MUST_EQ(t.hb.state, WF_HS_ASKS);
	t.b.self = t.a.self;
	wf_handshake_accept(&t.hb, NULL);
	two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
	CHECK_REFUSED(t.ha, WF_REFUSED_SELF);
}

TEST(modes_that_differ_are_refused_and_both_are_named)
{
	static const char *const names[] = { "", "secure=full", "secure=auth", "secure=sum" };

	for (enum wf_mode a = WF_MODE_FULL; a <= WF_MODE_SUM; a++)
		for (enum wf_mode b = WF_MODE_FULL; b <= WF_MODE_SUM; b++) {
			if (a == b)
				continue;
			two_make(&t, a);
			t.b.mode = b;
			two_begin(&t, NULL);
			two_end(&t, NULL);
			CHECK_REFUSED(t.hb, WF_REFUSED_MODE);
			CHECK_REFUSED(t.ha, WF_REFUSED_MODE);
			CHECK(t.ha.told);
			CHECK(says(&t.ha, -EACCES, names[a]) && says(&t.ha, -EACCES, names[b]));
			CHECK(says(&t.hb, -EACCES, names[a]) && says(&t.hb, -EACCES, names[b]));
		}
	two_make(&t, WF_MODE_FULL);             /* a listener that says yes, and auth */
	two_begin(&t, NULL);
	two_ask(&t);
	t.b.mode = WF_MODE_AUTH;
	wf_handshake_accept(&t.hb, NULL);
	two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
	CHECK_REFUSED(t.ha, WF_REFUSED_MODE);
}

TEST(versions_without_a_common_one_are_refused_and_both_are_named)
{
	for (int newer = 0; newer < 2; newer++) {
		two_make(&t, WF_MODE_FULL);
		t.a.oldest = newer ? 3 : 1, t.a.newest = newer ? 4 : 2;
		t.b.oldest = newer ? 1 : 3, t.b.newest = newer ? 2 : 4;
		two_begin(&t, NULL);
		two_end(&t, NULL);
		CHECK_REFUSED(t.hb, WF_REFUSED_VERSION);
		CHECK_REFUSED(t.ha, WF_REFUSED_VERSION);
		CHECK(t.ha.told);
		CHECK(says(newer ? &t.ha : &t.hb, -EPROTO, "speaks versions 1 to 2 of the wire, this weft 3 to 4"));
		CHECK(says(newer ? &t.hb : &t.ha, -EPROTO, "speaks versions 3 to 4 of the wire, this weft 1 to 2"));
	}
}

/* One who has the job key, and chooses less than both can. */
static void lie_challenge(uint16_t version, uint16_t required)
{
	struct wf_hs_challenge c;
	uint8_t zero[WF_SECRET] = { 0 };

	two_begin(&t, NULL);
	two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
	wf_hs_challenge_unpack(t.hb.out, &c);
	c.version = version;
	c.required = required;
	wf_hs_challenge_pack(&c, t.hb.out);
	MUST_OK(wf_transcript_add(zero, t.sent[WF_HS_FRAME_HELLO], WF_HS_HELLO_BYTES));
	MUST_OK(wf_transcript_mac(zero, t.b.credentials.mac[WF_HS_FRAME_CHALLENGE], t.hb.out, WF_HS_CHALLENGE_BYTES - WF_HS_MAC,
				  t.hb.out + WF_HS_CHALLENGE_BYTES - WF_HS_MAC));
	two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
}

TEST(a_version_that_is_not_the_newest_common_one_is_refused)
{
	two_make(&t, WF_MODE_FULL);
	t.a.newest = t.b.newest = 5;
	lie_challenge(5, 0);
	CHECK_EQ(t.ha.state, WF_HS_AWAITS);     /* the lie is told well */
	lie_challenge(4, 0);
	CHECK_REFUSED(t.ha, WF_REFUSED_VERSION);
	lie_challenge(6, 0);
	CHECK_REFUSED(t.ha, WF_REFUSED_VERSION);
	lie_challenge(0, 0);                    /* a refusal without a reason */
	CHECK_REFUSED(t.ha, WF_REFUSED_NONSENSE);
}

/* The MAC of frame @i in @out anew, by one who has the job key. */
static void mac_again(int i, uint8_t *out, size_t n)
{
	static const size_t sizes[WF_HS_FRAMES] = { WF_HS_HELLO_BYTES, WF_HS_CHALLENGE_BYTES, WF_HS_CLAIM_BYTES, WF_HS_VERDICT_BYTES };
	uint8_t so_far[WF_SECRET] = { 0 };

	for (int k = 0; k < i; k++)
		MUST_OK(wf_transcript_add(so_far, t.sent[k], sizes[k]));
	MUST_OK(wf_transcript_mac(so_far, t.a.credentials.mac[i], out, n - WF_HS_MAC, out + n - WF_HS_MAC));
}

/* By docs/wire.md: what is zero there has no meaning yet. */
TEST(what_is_to_be_zero_in_a_claim_or_a_verdict_is_refused_otherwise)
{
	struct wf_hs_verdict v;
	uint8_t verdict[WF_HS_VERDICT_BYTES];

	two_make(&t, WF_MODE_FULL);
	for (size_t at = 6; at < WF_HS_CLAIM_BYTES - WF_HS_MAC; at = at == 7 ? WF_HS_CLAIM_PROOF : at + 1) {
		two_begin(&t, NULL);
		two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
		two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
		mac_again(WF_HS_FRAME_CLAIM, t.ha.out, WF_HS_CLAIM_BYTES);      /* the same: the lie is told well */
		two_pass(&t, WF_HS_FRAME_CLAIM, &t.ha, &t.hb);
		CHECK_EQ(t.hb.state, WF_HS_ASKS);
		two_begin(&t, NULL);
		two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
		two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
		t.ha.out[at] ^= 4;
		mac_again(WF_HS_FRAME_CLAIM, t.ha.out, WF_HS_CLAIM_BYTES);
		two_pass(&t, WF_HS_FRAME_CLAIM, &t.ha, &t.hb);
		CHECK_REFUSED(t.hb, WF_REFUSED_NONSENSE);
	}
	for (size_t at = 11; at < WF_HS_VERDICT_BYTES - WF_HS_MAC; at = at == 11 ? 32 : at == 47 ? 56 : at + 1) {
		two_begin(&t, NULL);
		two_ask(&t);
		wf_handshake_refuse(&t.hb, WF_REFUSED_LATER, 5);
		t.hb.out[at] ^= 4;
		mac_again(WF_HS_FRAME_VERDICT, t.hb.out, WF_HS_VERDICT_BYTES);
		two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
		CHECK_REFUSED(t.ha, WF_REFUSED_NONSENSE);
	}
	two_begin(&t, NULL);
	two_ask(&t);
	wf_handshake_accept(&t.hb, NULL);
	memcpy(verdict, t.hb.out, sizeof(verdict));
	CHECK(wf_hs_verdict_unpack(verdict, &v));
	for (size_t at = 48; at < 64; at++) {           /* its MAC comes behind that */
		verdict[at] = 4;
		CHECK(!wf_hs_verdict_unpack(verdict, &v));
		verdict[at] = 0;
	}
}

TEST(a_required_feature_that_is_not_known_is_refused)
{
	two_make(&t, WF_MODE_FULL);
	t.a.features = t.a.required = 4;
	t.b.features = 3;
	two_begin(&t, NULL);
	two_end(&t, NULL);
	CHECK_REFUSED(t.hb, WF_REFUSED_FEATURE);
	CHECK_REFUSED(t.ha, WF_REFUSED_FEATURE);
	CHECK(t.ha.told && says(&t.ha, -EPROTO, "feature"));
	two_make(&t, WF_MODE_FULL);
	t.b.features = t.b.required = 4;
	two_begin(&t, NULL);
	two_end(&t, NULL);
	CHECK_REFUSED(t.ha, WF_REFUSED_FEATURE);
	CHECK(!t.ha.told);
}

TEST(ciphers_without_a_common_one_or_a_worse_one_are_refused)
{
	two_make(&t, WF_MODE_FULL);
	t.a.aeads = 1 << WF_AEAD_AES_GCM, t.a.best = WF_AEAD_AES_GCM;
	t.b.aeads = 1 << WF_AEAD_CHACHA, t.b.best = WF_AEAD_CHACHA;
	two_begin(&t, NULL);
	two_end(&t, NULL);
	CHECK_REFUSED(t.hb, WF_REFUSED_AEAD);
	CHECK_REFUSED(t.ha, WF_REFUSED_AEAD);
	CHECK(t.ha.told);
	for (enum wf_aead lie = WF_AEAD_NONE; lie <= WF_AEAD_CHACHA; lie++) {
		two_make(&t, WF_MODE_FULL);
		t.a.best = t.b.best = WF_AEAD_AES_GCM;
		two_begin(&t, NULL);
		two_ask(&t);
		MUST_EQ(t.hb.state, WF_HS_ASKS);
		t.hb.aead = lie;
		wf_handshake_accept(&t.hb, NULL);
		two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
		if (lie == WF_AEAD_AES_GCM)
			CHECK(two_agree(&t));
		else
			CHECK_REFUSED(t.ha, WF_REFUSED_AEAD);
	}
}

TEST(another_process_than_the_wanted_one_is_refused)
{
	struct wf_hs_call call = { .peer = { .process = 3 } };

	two_make(&t, WF_MODE_FULL);
	wf_handshake_call(&t.ha, &t.a, &call);
	wf_handshake_listen(&t.hb, &t.b);
	two_end(&t, NULL);
	CHECK_REFUSED(t.hb, WF_REFUSED_PROCESS);
	CHECK_REFUSED(t.ha, WF_REFUSED_PROCESS);
	CHECK(t.ha.told && says(&t.ha, -ESRCH, "process 3"));
	call.peer = t.b.self;
	call.peer.incarnation[15] ^= 1;         /* its number, in an earlier life */
	wf_handshake_call(&t.ha, &t.a, &call);
	wf_handshake_listen(&t.hb, &t.b);
	two_end(&t, NULL);
	CHECK_REFUSED(t.ha, WF_REFUSED_PROCESS);
	call.peer.incarnation[15] ^= 1;
	wf_handshake_call(&t.ha, &t.a, &call);
	wf_handshake_listen(&t.hb, &t.b);
	two_ask(&t);
	MUST_EQ(t.hb.state, WF_HS_ASKS);
	t.b.self.incarnation[3] ^= 1;           /* a listener that did not look */
	wf_handshake_accept(&t.hb, NULL);
	two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
	CHECK_REFUSED(t.ha, WF_REFUSED_PROCESS);
}

static void check_session_refused(const struct wf_session *of_a, const struct wf_session *of_b)
{
	two_begin(&t, of_a);
	two_end(&t, of_b);
	CHECK_REFUSED(t.hb, WF_REFUSED_SESSION);
	CHECK_REFUSED(t.ha, WF_REFUSED_SESSION);
	CHECK(t.ha.told && says(&t.ha, -ESTALE, "not known"));
}

TEST(a_lane_of_a_session_that_is_not_known_or_not_proved_is_refused)
{
	struct wf_session of_a, of_b, wrong;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	of_a = t.ha.session;
	of_b = t.hb.session;
	check_session_refused(&of_a, NULL);
	wrong = of_a, wrong.secret[0] ^= 1;
	check_session_refused(&wrong, &of_b);
	wrong = of_a, wrong.id[0] ^= 1;
	check_session_refused(&wrong, &of_b);
	wrong = of_b, wrong.peer.incarnation[0] ^= 1;
	check_session_refused(&of_a, &wrong);
	wrong = of_b, wrong.peer.process++;
	check_session_refused(&of_a, &wrong);
	wrong = of_b, wrong.mode = WF_MODE_AUTH;
	check_session_refused(&of_a, &wrong);
	two_begin(&t, &of_a);                   /* and the right one still goes */
	two_end(&t, &of_b);
	CHECK(two_agree(&t));
}

TEST(a_listener_without_the_sessions_secret_is_not_believed)
{
	struct wf_session of_a, of_b;

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	of_a = t.ha.session;
	of_b = t.hb.session;
	two_begin(&t, &of_a);
	two_ask(&t);
	MUST_EQ(t.hb.state, WF_HS_ASKS);
	memset(t.hb.claim.session, 0, 16);      /* it accepts as if it were a new session, and names the old one */
	wf_handshake_accept(&t.hb, NULL);
	two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
	CHECK_REFUSED(t.ha, WF_REFUSED_FORGED);
	two_begin(&t, &of_a);                   /* it has the secret, and names another session */
	two_ask(&t);
	MUST_EQ(t.hb.state, WF_HS_ASKS);
	of_b.id[5] ^= 1;
	t.hb.claim.session[5] ^= 1;
	t.hb.in[37] ^= 1;
	wf_handshake_accept(&t.hb, &of_b);
	CHECK_REFUSED(t.hb, WF_REFUSED_SESSION);        /* its own check of the proof stops that already */
}

TEST(what_the_user_refuses_is_told_with_its_detail)
{
	static const enum wf_refusal whys[] = { WF_REFUSED_LANE, WF_REFUSED_DEAD, WF_REFUSED_LATER, (enum wf_refusal)63 };
	static const int errs[] = { -EEXIST, -ECONNRESET, -EAGAIN, -EACCES };
	static const char *const words[] = { "incarnation 123456789012", "dead", "no lanes now", "reason 63" };

	for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
		two_make(&t, WF_MODE_FULL);
		two_begin(&t, NULL);
		two_ask(&t);
		wf_handshake_refuse(&t.hb, whys[i], 123456789012);
		CHECK_REFUSED(t.hb, whys[i]);
		t.hb.out[50] ^= 1;              /* changed on the way it says nothing */
		struct wf_handshake copy = t.ha;

		wf_handshake_input(&copy, t.hb.out, t.hb.out_n);
		CHECK_REFUSED(copy, WF_REFUSED_FORGED);
		CHECK(!copy.told);
		t.hb.out[50] ^= 1;
		two_pass(&t, WF_HS_FRAME_VERDICT, &t.hb, &t.ha);
		CHECK_REFUSED(t.ha, whys[i]);
		CHECK(t.ha.told && t.ha.detail == 123456789012);
		CHECK(says(&t.ha, errs[i], words[i]));
	}
}

/* Runs a handshake of which frame @frame is changed at byte @at; true: nobody took it for good. */
static bool flipped_is_refused(int frame, size_t at, uint8_t bits)
{
	struct wf_handshake *to = frame % 2 ? &t.ha : &t.hb;

	two_begin(&t, NULL);
	for (int i = 0; i <= frame; i++) {
		struct wf_handshake *from = i % 2 ? &t.hb : &t.ha;

		if (i == WF_HS_FRAME_VERDICT)
			wf_handshake_accept(&t.hb, NULL);
		if (i == frame)
			from->out[at] ^= bits;
		two_pass(&t, i, from, i % 2 ? &t.ha : &t.hb);
	}
	return to->state == WF_HS_REFUSED && to->refusal >= WF_REFUSED_MAGIC && !to->told && to->out_n == 0;
}

TEST(every_changed_byte_of_every_frame_is_refused)
{
	static const size_t sizes[WF_HS_FRAMES] = { WF_HS_HELLO_BYTES, WF_HS_CHALLENGE_BYTES, WF_HS_CLAIM_BYTES, WF_HS_VERDICT_BYTES };
	uint64_t random = test_seed, rounds = test_scaled(4);

	two_make(&t, WF_MODE_FULL);
	for (int frame = 0; frame < WF_HS_FRAMES; frame++)
		for (size_t at = 0; at < sizes[frame]; at++)
			for (uint64_t i = 0; i < rounds; i++) {
				uint8_t bits = (uint8_t)(i == 0 ? 1u << at % 8 : 1 + test_random(&random) % 255);

				if (!flipped_is_refused(frame, at, bits)) {
					printf("# frame %d, byte %zu, bits %02x\n", frame + 1, at, bits);
					CHECK(false);
				}
			}
}

TEST(a_frame_cut_off_anywhere_is_waited_for_and_says_nothing)
{
	static const size_t sizes[WF_HS_FRAMES] = { WF_HS_HELLO_BYTES, WF_HS_CHALLENGE_BYTES, WF_HS_CLAIM_BYTES, WF_HS_VERDICT_BYTES };

	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	for (int i = 0; i < WF_HS_FRAMES; i++) {
		struct wf_handshake *from = i % 2 ? &t.hb : &t.ha, *to = i % 2 ? &t.ha : &t.hb;

		if (i == WF_HS_FRAME_VERDICT)
			wf_handshake_accept(&t.hb, NULL);
		for (size_t n = 0; n < sizes[i]; n++) {
			struct wf_handshake cut = *to;

			CHECK_EQ(wf_handshake_input(&cut, from->out, n), n);
			CHECK_EQ(cut.state, to->state);
			CHECK_EQ(cut.refusal, WF_REFUSED_NOT);
			CHECK(n == 0 || cut.out_n == 0);
		}
		two_pass(&t, i, from, to);
	}
	CHECK(two_agree(&t));
}

static int no_random(void *user, void *ret, size_t n)
{
	int *left = user;

	memset(ret, 5, n);
	return (*left)-- > 0 ? 0 : -EIO;
}

TEST(without_randomness_there_is_no_handshake)
{
	for (int of_a = 0; of_a < 2; of_a++)
		for (int allowed = 0; allowed < 3; allowed++) {
			int left = allowed;

			two_make(&t, WF_MODE_FULL);
			*(of_a ? &t.a.random : &t.b.random) = (struct wf_random){ no_random, &left };
			two_begin(&t, NULL);
			if (t.ha.state != WF_HS_REFUSED)
				two_pass(&t, WF_HS_FRAME_HELLO, &t.ha, &t.hb);
			if (t.hb.state == WF_HS_CHALLENGED)
				two_pass(&t, WF_HS_FRAME_CHALLENGE, &t.hb, &t.ha);
			if (t.ha.state == WF_HS_AWAITS)
				two_pass(&t, WF_HS_FRAME_CLAIM, &t.ha, &t.hb);
			if (t.hb.state == WF_HS_ASKS)
				wf_handshake_accept(&t.hb, NULL);
			if (of_a && allowed == 2)
				continue;               /* a needs two, b three */
			CHECK_REFUSED(*(of_a ? &t.ha : &t.hb), WF_REFUSED_BROKEN);
			CHECK_EQ((of_a ? &t.ha : &t.hb)->out_n, 0);
		}
}

TEST_MAIN
