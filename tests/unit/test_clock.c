/* test_clock.c - the time that is looked at seldom (base/clock.h): close to the clock, whatever happens to the thread that looks. */
#include "test.h"

#include "base/clock.h"

enum { OFF_MOST = 3 * WEFT_MS };        /* a test may lose its core between two looks; what is wrong by more than this stays wrong */

/* How far off it is, the least of many: then nobody was in between. */
static int64_t off(void)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < 1000; i++) {
		weft_time before = wf_now(), about = wf_now_about(), after = wf_now();
		int64_t by = about < before ? before - about : about > after ? about - after : 0;

		least = by < least ? by : least;
	}
	return least;
}

/* Several rows of looks come to their end: at that of each it is looked again and again, as a test may lose its core before it, and in some of them. */
static void settle(void)
{
	for (int row = 0; row < 4; row++) {
		for (weft_time end = wf_now() + 5 * WEFT_MS / 4; wf_now() < end;)
			wf_now_about();
		for (int i = 0; i < 1000; i++)
			wf_now_about();
	}
}

TEST(it_is_close_to_the_clock_from_the_first_look_on)
{
	wf_clock_seen = (struct wf_clock_seen){ 0 };
	CHECK(off() <= 2000);
	settle();
	CHECK(wf_clock_seen.rate > 0);
	for (int i = 0; i < 20; i++) {
		CHECK(off() <= 5000);
		wf_nap(WEFT_MS / 3);
	}
}

TEST(it_is_close_after_a_long_pause)
{
	settle();
	wf_nap(1200 * WEFT_MS);
	CHECK(off() <= 5000);
	settle();
	CHECK(off() <= 5000);
}

/* A thread that was stopped between its two looks has a pair of them that do not belong together. */
TEST(looks_that_do_not_belong_together_are_forgotten)
{
	static const int64_t stopped[] = { WEFT_MS / 2, 2 * WEFT_MS, 40 * WEFT_MS, 800 * WEFT_MS, 5 * WEFT_S };

	for (size_t i = 0; i < sizeof(stopped) / sizeof(stopped[0]); i++) {
		settle();
		wf_clock_seen.first_at -= (uint64_t)stopped[i] * wf_ticks_us() / 1000;          /* before the row that tells the rate */
		settle();
		CHECK(off() <= OFF_MOST);
		settle();
		wf_clock_seen.at -= (uint64_t)stopped[i] * wf_ticks_us() / 1000;                /* in the last one */
		CHECK(off() <= OFF_MOST);
		settle();
		CHECK(off() <= 5000);
	}
}

TEST_MAIN
