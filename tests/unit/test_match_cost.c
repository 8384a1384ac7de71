/* test_match_cost.c - what the matcher of weft/match.h costs: comparisons that do not grow with what is held, memory that is
 * given back.
 */
#include "unit/heads.h"

#define WEFT_MATCH sorted
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_LESS(a, b) plain_less(a, b)
#include <weft/match.h>

/* Heads that differ in a field that @shape does not leave open, and a want of that shape for the i-th. */
static struct plain_head held_head(unsigned shape, uint64_t i)
{
	struct plain_head h = { shape == 2 ? i : 1, shape == 2 ? 1 : i, 0 };

	return h;
}

static struct plain_head open_head(unsigned shape, uint64_t i)
{
	struct plain_head h = held_head(shape, i);

	if (shape & 1)
		h.src = ANY;
	if (shape & 2)
		h.ignore = ANY;
	return h;
}

static void hold(struct plain_match *m, int side, unsigned shape, uint64_t i, struct weft_match_entry *e)
{
	struct plain_head want = open_head(shape, i), got = held_head(shape, i);

	if (side == WEFT_MATCH_WANTS)
		plain_match_add_want(m, &want, e);
	else
		plain_match_add_arrival(m, &got, e);
}

/* Comparisons and hashes that 1000 matches take with @n held on a side, each put back behind all. */
static long cost_of_matches(int side, unsigned shape, size_t n)
{
	struct weft_match_entry *entries = calloc(n, sizeof(*entries)), spare = { 0 }, *e;
	struct plain_head want, got;
	struct plain_match m;
	uint64_t seed = test_seed, i;
	long before = 0;

	MUST(entries);
	plain_match_init(&m);
	for (i = 0; i < n; i++)
		hold(&m, side, shape, i, &entries[i]);
	for (int round = 0; round <= 1000; round++) {
		i = test_random(&seed) % n;
		want = open_head(shape, i);
		got = held_head(shape, i);
		e = side == WEFT_MATCH_WANTS ? plain_match_arrive(&m, &got, &spare) :
					       plain_match_want(&m, &want, &spare);
		if (!round)
			before = compared + hashed;     /* the first one makes the index */
		MUST(e && (shape == 3 || e == &entries[i]));
		hold(&m, side, shape, i, e);
	}
	plain_match_fini(&m);
	free(entries);
	return compared + hashed - before;
}

TEST(a_match_takes_no_more_comparisons_with_a_hundred_thousand_held_than_with_ten)
{
	size_t many = test_scaled(100000) < 1000 ? 1000 : test_scaled(100000);

	for (int side = WEFT_MATCH_WANTS; side <= WEFT_MATCH_ARRIVALS; side++) {
		for (unsigned shape = 0; shape < 4; shape++) {
			long few = cost_of_matches(side, shape, 10);

			CHECK(few >= 1000 && few <= 8000);
			CHECK(cost_of_matches(side, shape, many) <= 2 * few);
		}
	}
}

/* Comparisons by less-than that a match takes with @n held, three of each head, inserted in rising order. */
static double cost_of_order(size_t n)
{
	struct weft_match_entry *entries = calloc(n, sizeof(*entries)), spare = { 0 }, *e;
	struct plain_head head = { 1, 0, 0 };
	struct sorted_match m;
	uint64_t seed = test_seed;
	long before = 0;

	MUST(entries);
	sorted_match_init(&m);
	for (size_t i = 0; i < n; i++) {
		head.tag = i / 3;
		sorted_match_add_want(&m, &head, &entries[i]);
	}
	for (size_t round = 0; round <= n; round++) {
		head.tag = test_random(&seed) % (n / 3);
		e = sorted_match_arrive(&m, &head, &spare);
		MUST(e);
		sorted_match_add_want(&m, &head, e);
		if (!round)
			before = ordered;
	}
	sorted_match_fini(&m);
	free(entries);
	return (double)(ordered - before) / (double)n;
}

TEST(a_match_by_order_takes_comparisons_like_the_logarithm_of_what_is_held)
{
	double few = cost_of_order(300), many = cost_of_order(30000);

	printf("# %.1f comparisons with 300 held, %.1f with 30000\n", few, many);
	CHECK(few > 5 && many < 3 * few);
}

TEST(a_hundred_thousand_of_one_source_do_not_hide_one_of_another)
{
	size_t many = test_scaled(100000) < 1000 ? 1000 : test_scaled(100000);
	struct weft_match_entry *entries = calloc(many + 1, sizeof(*entries)), spare = { 0 };
	struct plain_head got = { 1, 5, 0 }, want = { 2, 5, ANY };
	struct plain_match m;
	long before;

	MUST(entries);
	plain_match_init(&m);
	for (size_t i = 0; i < many; i++)
		plain_match_add_arrival(&m, &got, &entries[i]);
	got.src = 2;
	plain_match_add_arrival(&m, &got, &entries[many]);
	CHECK(plain_match_look(&m, &want) == &entries[many]);
	before = compared;
	CHECK(plain_match_want(&m, &want, &spare) == &entries[many]);
	CHECK(compared - before <= 4);
	plain_match_fini(&m);
	free(entries);
}

TEST(a_matcher_is_small_and_takes_no_memory_for_what_is_met_in_order)
{
	struct weft_match_entry entries[64], *e;
	struct plain_head head = { 1, 5, 0 };
	struct plain_match m;

	CHECK(sizeof(m) <= 512);
	CHECK(sizeof(struct weft_match_entry) <= 112);
	memset(entries, 0, sizeof(entries));
	alloc_reset();
	plain_match_init(&m);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 64; i++) {
			head.tag = (uint64_t)i;
			CHECK(!plain_match_want(&m, &head, &entries[i]));
		}
		CHECK_EQ(m.wants, 64);
		for (int i = 0; i < 64; i++) {
			head.tag = (uint64_t)i;
			e = plain_match_arrive(&m, &head, NULL);
			CHECK(e == &entries[i]);
		}
		CHECK_EQ(m.wants, 0);
	}
	CHECK_EQ(alloc_calls, 0);
	plain_match_fini(&m);
}

TEST(a_matcher_that_held_much_gives_the_memory_back_when_it_is_empty)
{
	size_t many = 20000;
	struct weft_match_entry *entries = calloc(many, sizeof(*entries)), spare = { 0 };
	struct plain_head want, got;
	struct plain_match m;

	MUST(entries);
	alloc_reset();
	plain_match_init(&m);
	for (size_t i = 0; i < many; i++)
		hold(&m, WEFT_MATCH_ARRIVALS, 0, i, &entries[i]);
	for (size_t i = many; i-- > 0;) {
		want = open_head(i % 2, i);
		got = held_head(0, i);
		CHECK(!memcmp(entries[i].head, &got, sizeof(got)));
		CHECK(plain_match_want(&m, &want, &spare) == &entries[i]);
	}
	CHECK_EQ(m.arrivals, 0);
	CHECK(alloc_bytes > (long)many);
	CHECK_EQ(alloc_live, 0);
	plain_match_fini(&m);
	free(entries);
}

TEST(indexes_that_nobody_searches_are_forgotten_and_made_anew_when_somebody_does)
{
	enum { HELD = 6000, TAKEN = 4000 };
	struct weft_match_entry *e = calloc(HELD, sizeof(*e));
	struct plain_match m;
	long with_indexes;

	MUST(e);
	alloc_reset();
	plain_match_init(&m);
	for (uint64_t i = 0; i < HELD; i++)
		plain_match_add_arrival(&m, &(struct plain_head){ i % 7, i, 0 }, &e[i]);
	/* Three shapes are searched far from the beginning: three indexes. */
	CHECK(plain_match_look(&m, &(struct plain_head){ 5000 % 7, 5000, 0 }) == &e[5000]);
	CHECK(plain_match_look(&m, &(struct plain_head){ ANY, 5001, 0 }) == &e[5001]);
	CHECK(plain_match_look(&m, &(struct plain_head){ 6, 0, UINT64_MAX }) == &e[6]);
	with_indexes = alloc_live;
	/* From now on only the oldest is asked for. */
	for (uint64_t i = 0; i < TAKEN; i++) {
		MUST(plain_match_look(&m, &(struct plain_head){ ANY, 0, UINT64_MAX }) == &e[i]);
		MUST(plain_match_remove(&m, &e[i]));
	}
	CHECK(alloc_live < with_indexes / 2);
	/* And again by each shape: what is left, in its order. */
	CHECK(!plain_match_look(&m, &(struct plain_head){ 5 % 7, 5, 0 }));
	CHECK(plain_match_look(&m, &(struct plain_head){ 5000 % 7, 5000, 0 }) == &e[5000]);
	CHECK(plain_match_look(&m, &(struct plain_head){ ANY, 4321, 0 }) == &e[4321]);
	for (uint64_t src = 0; src < 7; src++) {
		uint64_t first = TAKEN + (src + 7 - TAKEN % 7) % 7;

		CHECK(plain_match_look(&m, &(struct plain_head){ src, 0, UINT64_MAX }) == &e[first]);
	}
	CHECK_EQ(m.arrivals, HELD - TAKEN);
	plain_match_fini(&m);
	CHECK_EQ(alloc_live, 0);
	free(e);
}

TEST(what_is_on_neither_side_cannot_be_removed)
{
	struct weft_match_entry a = { 0 }, b = { 0 };
	struct plain_head head = { 1, 2, 0 };
	struct plain_match m;

	plain_match_init(&m);
	CHECK(!plain_match_remove(&m, &a));
	CHECK(!plain_match_want(&m, &head, &a));
	CHECK(plain_match_remove(&m, &a));
	CHECK(!plain_match_remove(&m, &a));
	CHECK(!plain_match_want(&m, &head, &a));
	CHECK(plain_match_arrive(&m, &head, &b) == &a);
	CHECK(!plain_match_remove(&m, &a));
	CHECK(!plain_match_remove(&m, &b));
	CHECK(!plain_match_first(&m, WEFT_MATCH_WANTS) && !plain_match_first(&m, WEFT_MATCH_ARRIVALS));
	plain_match_fini(&m);
}

TEST(fini_lets_go_of_all_that_is_held)
{
	struct weft_match_entry entries[100];
	struct plain_head want = { 500, 1, 0 };
	struct plain_match m;

	memset(entries, 0, sizeof(entries));
	alloc_reset();
	plain_match_init(&m);
	for (uint64_t i = 0; i < 100; i++)
		hold(&m, WEFT_MATCH_ARRIVALS, 0, i, &entries[i]);
	for (uint64_t ignore = 0; ignore < 2; ignore++) {
		want.ignore = ignore * ANY;
		CHECK(!plain_match_look(&m, &want));
	}
	CHECK(alloc_live > 0);
	plain_match_fini(&m);
	CHECK_EQ(alloc_live, 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(entries[i].side, WEFT_MATCH_NOWHERE);
}

TEST_MAIN
