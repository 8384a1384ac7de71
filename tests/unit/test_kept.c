/* test_kept.c - frames that wait: in order, what is said again once, counts added up, no more than a rule allows. */
#include "net/local/kept.h"
#include "test.h"

enum { PLAIN = 1, ROOMY, COUNTED, FEW };

static const struct wf_frame_rule rules[WF_FRAME_KINDS] = {
	[PLAIN] = { .same = 8 },
	[ROOMY] = { .same = 4 },
	[COUNTED] = { .same = 8, .add = 16 },
	[FEW] = { .same = 8, .most = 5 },
};

struct body {
	uint64_t about, value, times;
};

static bool add(struct wf_kept **k, uint32_t what, uint64_t about, uint64_t value, uint64_t times)
{
	struct body b = { about, value, times };

	return wf_kept_add(k, &rules[what], what, &b, sizeof(b));
}

static struct body first(struct wf_kept *k)
{
	struct body b = { 0 };

	if (wf_kept_first(k))
		memcpy(&b, wf_kept_first(k)->body, sizeof(b));
	return b;
}

static uint64_t drain(struct wf_kept *k)
{
	uint64_t n = 0;

	for (; wf_kept_first(k); n++)
		wf_kept_drop(k);
	return n;
}

TEST(frames_about_different_things_come_out_in_the_order_they_went_in)
{
	uint64_t n = test_scaled(20000);
	struct wf_kept *k = NULL;

	CHECK(!wf_kept_first(k));
	for (uint64_t i = 0; i < n; i++)
		CHECK(add(&k, i % 2 ? PLAIN : COUNTED, i, i * 3, 1));
	for (uint64_t i = 0; i < n; i++) {
		MUST(wf_kept_first(k));
		CHECK_EQ(wf_kept_first(k)->what, i % 2 ? PLAIN : COUNTED);
		CHECK_EQ(first(k).about, i);
		CHECK_EQ(first(k).value, i * 3);
		wf_kept_drop(k);
	}
	CHECK(!wf_kept_first(k));
	CHECK_EQ(wf_kept_free(&k), 0);
	CHECK(!k);
}

TEST(what_is_said_again_is_kept_once_with_the_later_words_at_the_earlier_place)
{
	uint64_t n = test_scaled(100000);
	struct wf_kept *k = NULL;

	add(&k, PLAIN, 1, 0, 0);
	add(&k, ROOMY, 1, 0, 0);
	for (uint64_t i = 0; i < n; i++) {
		CHECK(add(&k, PLAIN, 1, i, 0));
		CHECK(add(&k, ROOMY, 1 | i << 32, i, 0));      /* only the first four bytes say what it is about */
	}
	CHECK_EQ(wf_kept_first(k)->what, PLAIN);
	CHECK_EQ(first(k).value, n - 1);
	wf_kept_drop(k);
	CHECK_EQ(wf_kept_first(k)->what, ROOMY);
	CHECK_EQ(first(k).about, 1 | (n - 1) << 32);
	wf_kept_drop(k);
	CHECK(!wf_kept_first(k));
	/* One that was written is said anew. */
	CHECK(add(&k, PLAIN, 1, 7, 0));
	CHECK_EQ(first(k).value, 7);
	CHECK_EQ(wf_kept_free(&k), 1);
}

TEST(counts_are_added_up_and_nothing_is_lost_of_them)
{
	uint64_t n = test_scaled(100000), sum = 0, want = 0, frames = 0;
	struct wf_kept *k = NULL;

	for (uint64_t i = 0; i < n; i++) {
		CHECK(add(&k, COUNTED, i % 100, i, i % 7));
		want += i % 7;
	}
	for (; wf_kept_first(k); frames++) {
		sum += first(k).times;
		CHECK(first(k).value >= n - 100);
		wf_kept_drop(k);
	}
	CHECK_EQ(frames, n < 100 ? n : 100);
	CHECK_EQ(sum, want);
	wf_kept_free(&k);
}

TEST(of_a_kind_with_a_limit_no_more_are_kept_and_others_go_on)
{
	struct wf_kept *k = NULL;

	for (uint64_t i = 0; i < 100; i++) {
		CHECK_EQ(add(&k, FEW, i, 0, 0), i < 5);
		CHECK(add(&k, PLAIN, i, 0, 0));
	}
	CHECK(add(&k, FEW, 3, 9, 0));           /* about the same as one that is kept */
	wf_kept_drop(k);
	CHECK(add(&k, FEW, 77, 0, 0));          /* there is room again */
	CHECK(!add(&k, FEW, 78, 0, 0));
	CHECK_EQ(drain(k), 105);
	wf_kept_free(&k);
}

/* Against a list that is looked through from its beginning. */
TEST(any_mixture_is_kept_as_a_plain_list_would_keep_it)
{
	enum { MOST = 512 };
	struct { uint32_t what; struct body b; } list[MOST];
	uint64_t rounds = test_scaled(100000);
	struct wf_kept *k = NULL;
	uint64_t rng = test_seed;
	int n = 0;

	for (uint64_t r = 0; r < rounds; r++) {
		uint32_t what;
		uint64_t about;
		int i = 0;

		rng = rng * 6364136223846793005u + 1442695040888963407u;
		if (rng >> 60 < 6 || n == MOST) {
			if (n) {
				MUST(wf_kept_first(k));
				CHECK_EQ(wf_kept_first(k)->what, list[0].what);
				CHECK(!memcmp(wf_kept_first(k)->body, &list[0].b, sizeof(list[0].b)));
				wf_kept_drop(k);
				memmove(list, list + 1, (size_t)--n * sizeof(list[0]));
			}
			CHECK_EQ(wf_kept_first(k) != NULL, n > 0);
			continue;
		}
		what = rng >> 50 & 1 ? PLAIN : COUNTED;
		about = rng >> 40 & 63;
		while (i < n && (list[i].what != what || list[i].b.about != about))
			i++;
		CHECK(add(&k, what, about, r, r % 5));
		list[i].b.times = (i < n && what == COUNTED ? list[i].b.times : 0) + r % 5;
		list[i].b.about = about;
		list[i].b.value = r;
		list[i].what = what;
		n += i == n;
	}
	wf_kept_free(&k);
}

TEST_MAIN
