/* test_nonces.c - no key ever seals two records with one nonce: not over lanes that break, not over changes of key.
 *
 * record.c is compiled into this program with its assertions: it tells every key a sealer takes and every nonce it
 * uses. They are kept as 128-bit fingerprints in a hash set; one that is there already is a failure.
 */
#include "two.h"

#include <sys/uio.h>

#include "secure/record.h"

#define SLOTS (1u << 22)
#define SEALERS 2

static struct {
	uint64_t a, b;
} *seen;
static uint64_t pairs, twice, keys;
static struct {
	const void *sealer;
	uint8_t key[WF_SECRET];
} now[SEALERS];

static void took_key(const void *sealer, const uint8_t key[WF_SECRET])
{
	int at = 0;

	while (now[at].sealer != sealer && now[at].sealer)
		MUST(++at < SEALERS);
	now[at].sealer = sealer;
	memcpy(now[at].key, key, WF_SECRET);
	keys++;
}

static void used_nonce(const void *sealer, const uint8_t nonce[WF_AEAD_NONCE])
{
	uint8_t text[WF_SECRET + WF_AEAD_NONCE], hash[WF_SECRET];
	uint64_t a, b;
	int at = 0;

	while (now[at].sealer != sealer)
		MUST(++at < SEALERS);
	memcpy(text, now[at].key, WF_SECRET);
	memcpy(text + WF_SECRET, nonce, WF_AEAD_NONCE);
	MUST_OK(wf_sha256(text, sizeof(text), hash));
	memcpy(&a, hash, 8);
	memcpy(&b, hash + 8, 8);
	a |= 1;                                 /* 0: an empty slot */
	MUST(++pairs < SLOTS / 2);
	for (uint64_t i = a % SLOTS;; i = (i + 1) % SLOTS) {
		if (seen[i].a == a && seen[i].b == b) {
			twice++;
			return;
		}
		if (!seen[i].a) {
			seen[i].a = a;
			seen[i].b = b;
			return;
		}
	}
}

static const struct wf_seal_witness witness = { took_key, used_nonce };

static void begin(void)
{
	free(seen);
	seen = calloc(SLOTS, sizeof(*seen));
	MUST(seen);
	memset(now, 0, sizeof(now));
	pairs = twice = keys = 0;
	wf_seal_witness = &witness;
}

/* Some records each way, abandoned in mid-record now and then: the number is used up all the same. */
static void talk(struct two *t, uint64_t *random)
{
	static struct wf_sealer to_b, to_a;
	uint8_t text[64] = { 0 }, out[128];
	struct iovec piece = { text, sizeof(text) };
	struct wf_record_conf conf = { .mode = WF_MODE_FULL, .aead = t->ha.aead, .rekey_parts = 1 + test_random(random) % 9 };

	conf.secret = t->ha.send;
	MUST_OK(wf_sealer_init(&to_b, &conf));
	conf.secret = t->hb.send;
	MUST_OK(wf_sealer_init(&to_a, &conf));
	for (uint64_t i = 0, n = 1 + test_random(random) % 60; i < n; i++) {
		struct wf_sealer *s = test_random(random) % 2 ? &to_b : &to_a;

		bool body = test_random(random) % 3 == 0;

		MUST(wf_sealer_frames(s, &piece, 1, body ? sizeof(text) : 0, out) > 0);
		if (body)
			MUST(wf_sealer_piece(s, out, text, sizeof(text)) == 0 && wf_sealer_end(s, out) == 0);
	}
	MUST_OK(wf_sealer_begin(&to_b, 100, 100, out));
	wf_sealer_fini(&to_b);
	wf_sealer_fini(&to_a);
}

TEST(a_thousand_broken_lanes_and_changes_of_key_use_no_nonce_twice)
{
	uint64_t random = test_seed, lanes = 1000;
	struct wf_session of_a, of_b;
	struct two t;

	begin();
	two_make(&t, WF_MODE_FULL);
	two_begin(&t, NULL);
	two_end(&t, NULL);
	MUST(two_agree(&t));
	of_a = t.ha.session;
	of_b = t.hb.session;
	for (uint64_t i = 0; i < lanes; i++) {
		talk(&t, &random);
		two_begin(&t, &of_a);           /* the same lane and incarnation: even then its keys are new */
		two_end(&t, &of_b);
		MUST(two_agree(&t));
	}
	wf_seal_witness = NULL;
	CHECK_EQ(twice, 0);
	CHECK(keys > 3 * lanes && pairs > 20 * lanes);
	printf("# reached %llu lanes, %llu keys, %llu records\n", (unsigned long long)lanes, (unsigned long long)keys, (unsigned long long)pairs);
}

/* The search itself: a sealer that begins again with the same secret is caught. */
TEST(a_nonce_used_twice_would_be_seen)
{
	static const uint8_t secret[WF_SECRET] = { 3 };
	struct wf_record_conf conf = { .mode = WF_MODE_FULL, .aead = WF_AEAD_CHACHA, .secret = secret };
	struct wf_sealer s;
	uint8_t out[64];

	MUST_OK(wf_crypto_load());
	begin();
	for (int i = 0; i < 2; i++) {
		MUST_OK(wf_sealer_init(&s, &conf));
		MUST(wf_sealer_frames(&s, NULL, 0, 0, out) > 0);
		MUST(wf_sealer_frames(&s, NULL, 0, 0, out) > 0);
		wf_sealer_fini(&s);
	}
	wf_seal_witness = NULL;
	CHECK_EQ(pairs, 4);
	CHECK_EQ(twice, 2);
}

TEST_MAIN
