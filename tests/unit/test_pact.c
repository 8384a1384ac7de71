/* test_pact.c - what processes of a launcher's job tell each other to agree on a key. */
#include "job/pact.h"
#include "job/pmi_space.h"
#include "test.h"

static const struct wf_random kernel;

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

TEST(the_texts_fit_into_a_launchers_space)
{
	CHECK(WF_PACT_HOST <= WF_SPACE_VALUE && WF_PACT_MAP <= WF_SPACE_VALUE && WF_PACT_CARD <= WF_SPACE_VALUE && WF_PACT_SEALED <= WF_SPACE_VALUE);
}

TEST(this_host_has_an_identity_that_stays)
{
	char a[WF_PACT_HOST], b[WF_PACT_HOST], user[16];

	MUST_OK(wf_pact_host_here(a));
	MUST_OK(wf_pact_host_here(b));
	CHECK(strcmp(a, b) == 0);
	CHECK_OK(wf_pact_host_check(a));
	snprintf(user, sizeof(user), ".%u", (unsigned)geteuid());
	CHECK(strcmp(strrchr(a, '.'), user) == 0);
}

TEST(what_is_no_host_is_refused)
{
	static const char *const bad[] = {
		"", "x", BOOT, BOOT ".", BOOT ".1", BOOT ".1.", BOOT "..1", BOOT ".1.2.", BOOT ".1.2 ", BOOT ".01.2", BOOT ".1.02", BOOT ".1.-2", BOOT ".a.2",
		BOOT ".123456789012345678901.2", BOOT ".1.12345678901", "01234567-89AB-cdef-0123-456789abcdef.1.2", "0123456789ab-cdef-0123-456789abcdef00.1.2",
		" " BOOT ".1.2", BOOT ";1.2",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(wf_pact_host_check(bad[i]), -EPROTO);
	CHECK_OK(wf_pact_host_check(BOOT ".4026531840.0"));
	CHECK_OK(wf_pact_host_check(BOOT ".12345678901234567890.1234567890"));
}

static void host_make(char *text, unsigned n)
{
	snprintf(text, WF_PACT_HOST, "%08x-89ab-cdef-0123-456789abcdef.%u.%u", n * 2654435761u, n % 3, n % 5);
}

TEST(ranks_are_grouped_by_host)
{
	enum { RANKS = 500, HOSTS = 17 };
	static char hosts[RANKS][WF_PACT_HOST];
	static struct wf_pact_place places[RANKS];
	uint32_t count[HOSTS] = { 0 }, first[HOSTS], number[HOSTS], met = 0, of[RANKS];
	uint64_t seed = test_seed;

	memset(first, 0xff, sizeof(first));
	for (uint32_t i = 0; i < RANKS; i++) {
		of[i] = (uint32_t)(test_random(&seed) % HOSTS);
		host_make(hosts[i], of[i]);
	}
	CHECK_EQ(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, RANKS, places), HOSTS);
	for (uint32_t i = 0; i < RANKS; i++) {
		if (first[of[i]] == UINT32_MAX) {
			first[of[i]] = i;
			number[of[i]] = met++;
		}
		CHECK_EQ(places[i].first, first[of[i]]);
		CHECK_EQ(places[i].host, number[of[i]]);
		CHECK_EQ(places[i].index, count[of[i]]++);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK_EQ(places[i].count, count[of[i]]);
	CHECK_EQ(places[0].first, 0);
	CHECK_EQ(places[0].host, 0);
}

TEST(a_group_of_one_and_of_nonsense)
{
	char hosts[3][WF_PACT_HOST] = { BOOT ".1.2", BOOT ".1.3", BOOT ".2.2" };
	struct wf_pact_place places[3];

	CHECK_EQ(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, 1, places), 1);
	CHECK(places[0].first == 0 && places[0].count == 1 && places[0].index == 0);
	CHECK_EQ(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, 3, places), 3);     /* another user or namespace is another host */
	memset(hosts[1], '1', sizeof(hosts[1]));                                        /* no end */
	CHECK_EQ(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, 3, places), -EPROTO);
	strcpy(hosts[1], "somewhere");
	CHECK_EQ(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, 3, places), -EPROTO);
	CHECK(strstr(weft_last_error(), "process 1"));
}

/* Through as many texts as it takes; returns how many. */
static int map_through(const struct wf_pact_place *places, uint32_t n, struct wf_pact_place *ret)
{
	char text[WF_PACT_MAP];
	uint32_t next = 0, end;
	int texts = 0;

	for (; next < n; next = end, texts++) {
		end = wf_pact_map_write(places, n, next, text);
		MUST(end > next);
		MUST_EQ(wf_pact_map_read(text, n, next, ret), end);
	}
	return texts;
}

TEST(a_map_comes_back_as_it_was_written)
{
	enum { RANKS = 3000 };
	static char hosts[RANKS][WF_PACT_HOST];
	static struct wf_pact_place places[RANKS], back[RANKS];
	uint64_t seed = test_seed;

	for (uint32_t many = 1; many <= RANKS; many *= 7)
		for (int way = 0; way < 3; way++) {
			for (uint32_t i = 0; i < RANKS; i++)
				host_make(hosts[i], way == 0 ? i * many / RANKS : way == 1 ? i % many : (uint32_t)(test_random(&seed) % many));
			MUST(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, RANKS, places) > 0);
			memset(back, 0xee, sizeof(back));
			int texts = map_through(places, RANKS, back);

			CHECK(memcmp(places, back, sizeof(places)) == 0);
			CHECK(texts >= 1 && (many > 1 || texts == 1));
		}
}

TEST(what_is_no_map_is_refused)
{
	static const char *const bad[] = {
		"", ",", "1", "0,2", "0:", "0:0", "0:6", "0:5,0", "0:5,", "0,,0", ":2", "0:-1", "0:2x", "00", "0:01", "0 ", "0:4294967297", "0,4294967296", "a", "0:2:2",
	};
	struct wf_pact_place places[5];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(wf_pact_map_read(bad[i], 5, 0, places), -EPROTO);
	CHECK_EQ(wf_pact_map_read("0", 5, 5, places), -EPROTO);
	CHECK_EQ(wf_pact_map_read("0:2,1", 5, 0, places), 3);
	CHECK_EQ(wf_pact_map_read("3", 5, 3, places), -EPROTO);         /* not the next */
	CHECK_EQ(wf_pact_map_read("2,0", 5, 3, places), 5);
	CHECK(places[4].host == 0 && places[4].first == 0 && places[4].index == 2 && places[4].count == 3);
	CHECK(places[3].host == 2 && places[3].first == 3 && places[3].index == 0 && places[3].count == 1);
}

static struct wf_pact_card card_of(const struct wf_pact_keys *keys, const char *address)
{
	struct wf_pact_card card = { .door = "weft-1000-7" };

	memcpy(card.public, keys->public, sizeof(card.public));
	strcpy(card.address, address);
	return card;
}

TEST(cards_come_back_as_they_were_written)
{
	struct wf_pact_card card = { .door = "" }, back;
	char text[WF_PACT_CARD];

	memset(card.public, 0xa5, sizeof(card.public));
	strcpy(card.address, "10.0.0.1:7000,[fd00::1]:7000");
	CHECK_OK(wf_pact_card_write(&card, text));
	CHECK_OK(wf_pact_card_read(text, &back));
	CHECK(memcmp(&card, &back, sizeof(card)) == 0);
	memset(card.address, 'a', sizeof(card.address) - 1);
	memset(card.door, 'd', sizeof(card.door) - 1);
	CHECK_OK(wf_pact_card_write(&card, text));
	CHECK_EQ(strlen(text), WF_PACT_CARD - 1);
	CHECK_OK(wf_pact_card_read(text, &back));
	CHECK(memcmp(&card, &back, sizeof(card)) == 0);
}

TEST(cards_that_cannot_be_put_are_not_written)
{
	struct wf_pact_card card = { .address = "" };
	char text[WF_PACT_CARD];

	CHECK_EQ(wf_pact_card_write(&card, text), -EINVAL);
	strcpy(card.address, "a b");
	CHECK_EQ(wf_pact_card_write(&card, text), -EINVAL);
	strcpy(card.address, "a");
	strcpy(card.door, "\n");
	CHECK_EQ(wf_pact_card_write(&card, text), -EINVAL);
	memset(card.door, 'd', sizeof(card.door));
	CHECK_EQ(wf_pact_card_write(&card, text), -EINVAL);
	card.door[0] = '\0';
	memset(card.address, 'a', sizeof(card.address));
	CHECK_EQ(wf_pact_card_write(&card, text), -EINVAL);
}

/* In memory of just its size, so that a sanitizer sees a byte too far. */
static int card_read(const char *text, size_t n)
{
	char *exact = malloc(n + 1);
	struct wf_pact_card card;
	int r;

	memcpy(exact, text, n);
	exact[n] = '\0';
	r = wf_pact_card_read(exact, &card);
	free(exact);
	return r;
}

TEST(a_card_cut_off_or_gone_on_with_is_none)
{
	struct wf_pact_card card = { .address = "somewhere", .door = "door" };
	char text[WF_PACT_CARD + 8];

	CHECK_OK(wf_pact_card_write(&card, text));
	for (size_t n = 0; n < strlen(text); n++)
		CHECK_EQ(card_read(text, n), -EPROTO);
	CHECK_OK(card_read(text, strlen(text)));
	strcat(text, "00");
	CHECK_EQ(card_read(text, strlen(text)), -EPROTO);
	strcpy(text + strlen(text) - 2, "0");
	CHECK_EQ(card_read(text, strlen(text)), -EPROTO);
	text[strlen(text) - 1] = '\0';
	text[0] = '2';                                  /* another version */
	CHECK_EQ(card_read(text, strlen(text)), -EPROTO);
	text[0] = '0';
	text[3] = 'A';
	text[4] = 'G';
	CHECK_EQ(card_read(text, strlen(text)), -EPROTO);
}

/* A job of five ranks with two agents, 0 and 3, and one more. */
static struct wf_pact_keys keys[3];
static struct wf_pact_card cards[3];
static struct wf_pact_job job;

static bool stage(void)
{
	if (wf_crypto_load() < 0)
		return false;
	for (int i = 0; i < 3; i++) {
		MUST_OK(wf_pact_keys_make(&kernel, &keys[i]));
		cards[i] = card_of(&keys[i], i == 1 ? "b:1" : "a:1");
	}
	MUST_OK(wf_pact_job_make(&kernel, &job));
	return true;
}

static struct wf_pact_ends ends_of(const char *name, uint32_t to)
{
	return (struct wf_pact_ends){ name, 5, 0, to, &cards[0], &cards[1] };
}

static int opens(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const char *text)
{
	struct wf_pact_job got, before;
	int r;

	memset(&got, 0x77, sizeof(got));
	before = got;
	r = wf_pact_open(ends, mine, text, &got);
	CHECK(r == 0 ? memcmp(&got, &job, sizeof(got)) == 0 : memcmp(&got, &before, sizeof(got)) == 0);
	return r;
}

TEST(what_is_sealed_for_one_is_opened_by_it)
{
	struct wf_pact_ends ends = ends_of("job", 3);
	char text[WF_PACT_SEALED], again[WF_PACT_SEALED];

	if (!stage())
		SKIP("no libcrypto");
	MUST_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, text));
	CHECK_EQ(strlen(text), WF_PACT_SEALED - 1);
	CHECK_OK(opens(&ends, &keys[1], text));
	MUST_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, again));
	CHECK(strcmp(text, again) != 0);                /* never twice under one key */
	CHECK_OK(opens(&ends, &keys[1], again));
}

TEST(nobody_else_opens_it)
{
	struct wf_pact_ends ends = ends_of("job", 3), other;
	char text[WF_PACT_SEALED];

	if (!stage())
		SKIP("no libcrypto");
	MUST_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, text));
	other = ends;
	other.to_card = &cards[2];
	CHECK_EQ(opens(&other, &keys[2], text), -EACCES);       /* somebody else's keys */
	CHECK_EQ(opens(&ends, &keys[2], text), -EINVAL);        /* not those of the card */
	other = ends_of("jo", 3);
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);       /* another job */
	other = ends_of("", 3);
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);
	other = ends_of("job", 4);
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);       /* another rank */
	other = ends;
	other.from = 1;
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);
	other = ends;
	other.size = 6;
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);
	other = ends;
	other.from_card = &cards[2];
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);       /* from somebody else */
}

TEST(a_card_that_was_changed_on_its_way_opens_nothing)
{
	struct wf_pact_ends ends = ends_of("job", 3), other = ends;
	struct wf_pact_card changed;
	char text[WF_PACT_SEALED];

	if (!stage())
		SKIP("no libcrypto");
	MUST_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, text));
	changed = cards[0];
	strcpy(changed.address, "villain:1");
	other.from_card = &changed;
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);
	changed = cards[0];
	changed.door[0] ^= 1;
	CHECK_EQ(opens(&other, &keys[1], text), -EACCES);
	changed = cards[0];
	CHECK_OK(opens(&other, &keys[1], text));
}

TEST(two_that_were_exchanged_are_opened_by_none)
{
	struct wf_pact_ends to_1 = ends_of("job", 3), to_2 = ends_of("job", 4);
	char text_1[WF_PACT_SEALED], text_2[WF_PACT_SEALED];

	if (!stage())
		SKIP("no libcrypto");
	to_2.to_card = &cards[2];
	MUST_OK(wf_pact_seal(&to_1, &keys[0], &kernel, &job, text_1));
	MUST_OK(wf_pact_seal(&to_2, &keys[0], &kernel, &job, text_2));
	CHECK_EQ(opens(&to_1, &keys[1], text_2), -EACCES);
	CHECK_EQ(opens(&to_2, &keys[2], text_1), -EACCES);
	CHECK_OK(opens(&to_1, &keys[1], text_1));
	CHECK_OK(opens(&to_2, &keys[2], text_2));
}

TEST(no_digit_of_it_may_be_missing_more_or_different)
{
	struct wf_pact_ends ends = ends_of("job", 3);
	char text[WF_PACT_SEALED], changed[WF_PACT_SEALED + 2];

	if (!stage())
		SKIP("no libcrypto");
	MUST_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, text));
	for (size_t i = 0; i < strlen(text); i++) {
		int r;

		strcpy(changed, text);
		changed[i] = '\0';
		CHECK_EQ(opens(&ends, &keys[1], changed), -EPROTO);
		changed[i] = text[i] == '0' ? '1' : '0';
		r = opens(&ends, &keys[1], changed);
		CHECK(r == -EACCES || (i < 2 && r == -EPROTO) || (i < 4 && r == -EINVAL));     /* version, cipher */
		changed[i] = 'g';
		CHECK_EQ(opens(&ends, &keys[1], changed), -EPROTO);
	}
	snprintf(changed, sizeof(changed), "%s00", text);
	CHECK_EQ(opens(&ends, &keys[1], changed), -EPROTO);
}

TEST(a_public_value_of_no_use_is_refused)
{
	struct wf_pact_card zero;
	struct wf_pact_ends ends = ends_of("job", 3);
	char text[WF_PACT_SEALED] = "";

	if (!stage())
		SKIP("no libcrypto");
	zero = cards[1];
	memset(zero.public, 0, sizeof(zero.public));
	ends.to_card = &zero;
	CHECK_EQ(wf_pact_seal(&ends, &keys[0], &kernel, &job, text), -EINVAL);
	ends = ends_of("job", 3);
	CHECK_EQ(wf_pact_seal(&ends, &keys[1], &kernel, &job, text), -EINVAL);  /* not the sealer's keys */
	CHECK_EQ(text[0], '\0');
}

TEST(a_name_too_long_is_refused_and_the_longest_is_not)
{
	char name[300], text[WF_PACT_SEALED];
	struct wf_pact_ends ends = ends_of(name, 3);

	if (!stage())
		SKIP("no libcrypto");
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	CHECK_EQ(wf_pact_seal(&ends, &keys[0], &kernel, &job, text), -EINVAL);
	name[255] = '\0';
	memset(cards[0].address, 'a', sizeof(cards[0].address) - 1);
	memset(cards[1].address, 'b', sizeof(cards[1].address) - 1);
	memset(cards[0].door, 'c', sizeof(cards[0].door) - 1);
	memset(cards[1].door, 'd', sizeof(cards[1].door) - 1);
	CHECK_OK(wf_pact_seal(&ends, &keys[0], &kernel, &job, text));
	CHECK_OK(opens(&ends, &keys[1], text));
}

static int no_random(void *user, void *ret, size_t n)
{
	(void)user;
	(void)ret;
	(void)n;
	return -EIO;
}

TEST(without_random_bytes_there_are_no_keys)
{
	const struct wf_random none = { no_random, NULL };
	struct wf_pact_ends ends = ends_of("job", 3);
	struct wf_pact_keys k;
	struct wf_pact_job j;
	char text[WF_PACT_SEALED];

	if (!stage())
		SKIP("no libcrypto");
	CHECK_EQ(wf_pact_keys_make(&none, &k), -EIO);
	CHECK_EQ(wf_pact_job_make(&none, &j), -EIO);
	CHECK_EQ(wf_pact_seal(&ends, &keys[0], &none, &job, text), -EIO);
}

TEST_MAIN
