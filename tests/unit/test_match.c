/* test_match.c - the matcher of weft/match.h against the reference matcher, for several header types, by
 * hash and by less-than, at compile time and at run time; what it costs and what memory it takes.
 */
#include "test.h"

/* Memory as the matchers here get it: counted, and refused when a test says so. */
static long alloc_live, alloc_calls, alloc_bytes, alloc_fail_at, alloc_fail_every;

static void *alloc_counted(size_t n)
{
	alloc_calls++;
	if (alloc_calls == alloc_fail_at || (alloc_fail_every && alloc_calls % alloc_fail_every == 0))
		return NULL;
	alloc_live++;
	alloc_bytes += (long)n;
	return malloc(n);
}

static void free_counted(void *p)
{
	alloc_live -= p != NULL;
	free(p);
}

static void alloc_reset(void)
{
	alloc_live = alloc_calls = alloc_bytes = alloc_fail_at = alloc_fail_every = 0;
}

#define WEFT_MATCH_ALLOC(n) alloc_counted(n)
#define WEFT_MATCH_FREE(p) free_counted(p)
#include "port/proto.h"
#include "refmatch.h"

#define ANY UINT64_MAX

/* A head like weft's own: source, tag, and in a want the bits of the tag that do not matter. */
struct plain_head {
	uint64_t src, tag, ignore;
};

static long compared, hashed, ordered;  /* by plain heads, in all */

static int plain_equal(const void *want, const void *got)
{
	const struct plain_head *w = want, *g = got;

	compared++;
	return (w->src == ANY || w->src == g->src) && !((w->tag ^ g->tag) & ~w->ignore);
}

static uint32_t plain_shape(const void *want)
{
	const struct plain_head *w = want;

	return (w->src == ANY) | (uint32_t)(w->ignore != 0) << 1;
}

static uint64_t plain_hash(const void *head, uint32_t shape)
{
	const struct plain_head *h = head;

	hashed++;
	return (shape & 1 ? 0 : h->src) + (shape & 2 ? 0 : h->tag);
}

static int plain_less(const void *a, const void *b)
{
	const struct plain_head *x = a, *y = b;

	ordered++;
	return x->tag != y->tag ? x->tag < y->tag : x->src < y->src;
}

#define WEFT_MATCH plain
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_HASH(head, shape) plain_hash(head, shape)
#include <weft/match.h>

#define WEFT_MATCH sorted
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_LESS(a, b) plain_less(a, b)
#include <weft/match.h>

/* The poorest hash. */
#define WEFT_MATCH same_hash
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_HASH(head, shape) ((void)(head), (void)(shape), UINT64_C(7))
#include <weft/match.h>

/* The odd number that undoes a multiplication by the odd number @k. */
static uint64_t inverse(uint64_t k)
{
	uint64_t x = k;

	for (int i = 0; i < 6; i++)
		x *= 2 - k * x;
	return x;
}

/* What an adversary sends: hashes that, once mixed, differ only in low bits and so share one bucket. */
static uint64_t unmix(uint64_t h)
{
	h *= inverse(UINT64_C(0x9e3779b97f4a7c15));
	return h ^ h >> 32;
}

static uint64_t crowd_hash(const struct plain_head *h, uint32_t shape)
{
	return unmix((shape & 1 ? 0 : h->src << 24) + (shape & 2 ? 0 : h->tag));
}

#define WEFT_MATCH same_bucket
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_HASH(head, shape) crowd_hash(head, shape)
#include <weft/match.h>

/* A head that is not weft's: 32 bytes, four fields that may be open: 16 shapes, twice what is indexed. */
struct wide_head {
	uint64_t job, key;
	uint32_t row, column, open, zero;       /* open: in a want, a bit per field that does not matter */
};

static int wide_equal(const void *want, const void *got)
{
	const struct wide_head *w = want, *g = got;

	return (w->open & 1 || w->job == g->job) && (w->open & 2 || w->key == g->key) &&
	       (w->open & 4 || w->row == g->row) && (w->open & 8 || w->column == g->column);
}

static uint64_t wide_hash(const struct wide_head *h, uint32_t shape)
{
	return (shape & 1 ? 0 : h->job * 31) + (shape & 2 ? 0 : h->key * 37) + (shape & 4 ? 0 : h->row * 41) +
	       (shape & 8 ? 0 : h->column * 43);
}

#define WEFT_MATCH wide
#define WEFT_MATCH_HEAD struct wide_head
#define WEFT_MATCH_EQ(want, got) wide_equal(want, got)
#define WEFT_MATCH_SHAPE(want) ((want)->open)
#define WEFT_MATCH_HASH(head, shape) wide_hash(head, shape)
#include <weft/match.h>

/* Heads at random; @spread: how many values a field has. */
static void plain_got(uint64_t *seed, unsigned spread, void *head)
{
	struct plain_head h = { test_random(seed) % (spread / 2 + 1), test_random(seed) % spread, 0 };

	memcpy(head, &h, sizeof(h));
}

static void plain_want(uint64_t *seed, unsigned spread, void *head)
{
	static const uint64_t ignore[] = { 1, 6, UINT64_C(0xf0), ~UINT64_C(1) };
	struct plain_head h = { test_random(seed) % (spread / 2 + 1), test_random(seed) % spread, 0 };
	uint64_t r = test_random(seed) % 16;

	if (r & 1 && r < 10)
		h.src = ANY;
	if (r & 2 && r < 10)
		h.ignore = ANY;
	if (r >= 14)
		h.ignore = ignore[test_random(seed) % 4];
	memcpy(head, &h, sizeof(h));
}

static void wide_got(uint64_t *seed, unsigned spread, void *head)
{
	struct wide_head h = { .job = test_random(seed) % 3, .key = test_random(seed) % spread,
			       .row = (uint32_t)(test_random(seed) % 3),
			       .column = (uint32_t)(test_random(seed) % 3) };

	memcpy(head, &h, sizeof(h));
}

static void wide_want(uint64_t *seed, unsigned spread, void *head)
{
	struct wide_head h;

	wide_got(seed, spread, &h);
	h.open = test_random(seed) % 2 ? (uint32_t)(test_random(seed) % 16) : 0;
	memcpy(head, &h, sizeof(h));
}

struct kind {
	const struct weft_proto *proto;
	int (*equal)(const void *want, const void *got);
	void (*got)(uint64_t *seed, unsigned spread, void *head);
	void (*want)(uint64_t *seed, unsigned spread, void *head);
};

static const struct kind plain = { &plain_proto, plain_equal, plain_got, plain_want };
static const struct kind sorted = { &sorted_proto, plain_equal, plain_got, plain_want };
static const struct kind same_hash = { &same_hash_proto, plain_equal, plain_got, plain_want };
static const struct kind same_bucket = { &same_bucket_proto, plain_equal, plain_got, plain_want };
static const struct kind wide = { &wide_proto, wide_equal, wide_got, wide_want };

/* A random program in both matchers at once. */
#define ITEMS_MAX 20000

struct run {
	const struct weft_proto *proto;
	void *m;
	struct refmatch ref;
	struct item {
		struct weft_match_entry entry;
		bool held;
	} *items, *spare[ITEMS_MAX];
	size_t nitems, nspare;
};

static void run_init(struct run *run, const struct kind *k, size_t nitems)
{
	run->proto = k->proto;
	run->m = malloc(k->proto->match_size);
	run->items = calloc(nitems, sizeof(*run->items));
	MUST(run->m && run->items);
	memset(run->m, 0xa5, k->proto->match_size);
	k->proto->init(run->m, k->proto->ctx);
	refmatch_init(&run->ref, k->equal, k->proto->head_len);
	run->nitems = run->nspare = nitems;
	for (size_t i = 0; i < nitems; i++)
		run->spare[i] = &run->items[i];
}

static void run_fini(struct run *run)
{
	run->proto->fini(run->m);
	refmatch_fini(&run->ref);
	free(run->items);
	free(run->m);
}

static void run_release(struct run *run, struct item *item)
{
	item->held = false;
	run->spare[run->nspare++] = item;
}

/* Both sides hold the same in the same order. */
static void run_compare(struct run *run)
{
	const struct refmatch_item *lists[] = { run->ref.wants, run->ref.arrivals };
	struct weft_match_entry *e;

	MUST_EQ(run->proto->count(run->m, WEFT_MATCH_WANTS), run->ref.nwants);
	MUST_EQ(run->proto->count(run->m, WEFT_MATCH_ARRIVALS), run->ref.narrivals);
	for (int side = 0; side < 2; side++) {
		e = run->proto->first(run->m, WEFT_MATCH_WANTS + side);
		for (const struct refmatch_item *i = lists[side]; i; i = i->next) {
			MUST(e == &((struct item *)i->what)->entry);
			MUST(!memcmp(e->head, i->head, run->ref.len));
			e = run->proto->next(run->m, e);
		}
		MUST(!e);
	}
}

static void run_meet(struct run *run, bool want, const void *head)
{
	struct item *item = run->spare[--run->nspare], *partner;
	struct weft_match_entry *e;

	if (want) {
		partner = refmatch_want(&run->ref, head, item);
		e = run->proto->want(run->m, head, &item->entry);
	} else {
		partner = refmatch_arrive(&run->ref, head, item);
		e = run->proto->arrive(run->m, head, &item->entry);
	}
	MUST(e == (partner ? &partner->entry : NULL));
	if (partner) {
		run_release(run, item);
		run_release(run, partner);
	} else {
		item->held = true;
	}
}

static void run_look(struct run *run, bool want, const void *head)
{
	struct item *partner = want ? refmatch_look(&run->ref, head) : refmatch_find_want(&run->ref, head);
	struct weft_match_entry *e;

	e = want ? run->proto->look(run->m, head) : run->proto->find_want(run->m, head);
	MUST(e == (partner ? &partner->entry : NULL));
}

static void run_add(struct run *run, bool want, const void *head)
{
	struct item *item = run->spare[--run->nspare];

	item->held = true;
	if (run->nspare % 2)    /* a head may be in its place already */
		head = memcpy(item->entry.head, head, run->ref.len);
	if (want) {
		refmatch_add_want(&run->ref, head, item);
		run->proto->add_want(run->m, head, &item->entry);
	} else {
		refmatch_add_arrival(&run->ref, head, item);
		run->proto->add_arrival(run->m, head, &item->entry);
	}
}

static void run_remove(struct run *run, struct item *item)
{
	MUST_EQ(refmatch_remove(&run->ref, item), item->held);
	MUST_EQ(run->proto->remove(run->m, &item->entry), item->held);
	if (item->held)
		run_release(run, item);
}

/* @steps steps over @nitems items. The program leans now to one side, now to the other, now to taking out,
 * so that both grow long and run empty. */
static void program(const struct kind *k, uint64_t seed, uint64_t steps, size_t nitems, unsigned spread)
{
	static struct run run;
	uint64_t head[WEFT_MATCH_HEAD_MAX / 8] = { 0 };
	unsigned lean = 0;

	run_init(&run, k, nitems);
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t r = test_random(&seed);
		bool want = lean == 1 ? r % 8 != 0 : lean == 2 ? r % 8 == 0 : r % 2;

		if (i % nitems == 0)
			lean = (unsigned)(test_random(&seed) % 4);
		if (i % 4096 == 0)
			run_compare(&run);
		(want ? k->want : k->got)(&seed, spread, head);
		if (!run.nspare || (r >> 32) % 16 == 0 || (lean == 3 && (r >> 16) % 2))
			run_remove(&run, &run.items[test_random(&seed) % nitems]);
		else if ((r >> 36) % 8 == 0)
			run_look(&run, want, head);
		else if ((r >> 40) % 32 == 0)
			run_add(&run, want, head);
		else
			run_meet(&run, want, head);
	}
	run_compare(&run);
	run_fini(&run);
}

/* Short and long queues, few and many different heads. */
static void programs(const struct kind *k, uint64_t steps)
{
	uint64_t seed = test_seed;

	for (int i = 0; i < 10; i++) {
		program(k, test_random(&seed), steps / 20, 8, 4);
		program(k, test_random(&seed), steps / 40, 100, 2);
		program(k, test_random(&seed), steps / 40, 300, 400);
	}
	program(k, test_random(&seed), steps / 200, 3000, 100000);
}

TEST(plain_heads_meet_the_partners_of_the_reference_matcher)
{
	alloc_reset();
	programs(&plain, test_scaled(1000000));
	CHECK_EQ(alloc_live, 0);
	CHECK(alloc_calls > 0);
}

TEST(wide_heads_with_more_shapes_than_indexes_meet_the_partners_of_the_reference_matcher)
{
	alloc_reset();
	programs(&wide, test_scaled(1000000));
	CHECK_EQ(alloc_live, 0);
}

TEST(heads_in_an_order_meet_the_partners_of_the_reference_matcher)
{
	alloc_reset();
	programs(&sorted, test_scaled(1000000));
	CHECK_EQ(alloc_calls, 0);
}

TEST(a_hash_that_is_always_the_same_only_costs_time)
{
	programs(&same_hash, test_scaled(300000));
}

TEST(hashes_that_share_a_bucket_only_cost_time)
{
	CHECK_EQ(weft_match_mix(unmix(12345)), 12345);
	programs(&same_bucket, test_scaled(300000));
}

TEST(functions_at_run_time_meet_the_partners_of_the_reference_matcher)
{
	struct weft_match_fns fns = { .size = sizeof(fns), .head_len = sizeof(struct plain_head),
				      .equal = plain_equal, .shape = plain_shape, .hash = plain_hash };
	struct kind k = plain;

	MUST_OK(weft_proto_new("plain", &fns, &k.proto));
	programs(&k, test_scaled(300000));
	MUST_OK(weft_proto_free(k.proto));
	fns.hash = NULL;
	fns.less = plain_less;
	MUST_OK(weft_proto_new("plain", &fns, &k.proto));
	programs(&k, test_scaled(300000));
	MUST_OK(weft_proto_free(k.proto));
}

TEST(memory_refused_at_any_call_changes_no_partner)
{
	uint64_t seed = test_seed;

	for (long at = 1; at <= 60; at++) {
		alloc_reset();
		alloc_fail_at = at;
		program(&plain, test_random(&seed), test_scaled(20000), 400, 300);
		program(&wide, test_random(&seed), test_scaled(20000), 400, 100);
		CHECK_EQ(alloc_live, 0);
	}
}

TEST(memory_refused_again_and_again_changes_no_partner)
{
	uint64_t seed = test_seed;

	for (long every = 1; every <= 10; every++) {
		alloc_reset();
		alloc_fail_every = every;
		program(&plain, test_random(&seed), test_scaled(30000), 400, 300);
		program(&wide, test_random(&seed), test_scaled(30000), 400, 100);
		CHECK_EQ(alloc_live, 0);
	}
	alloc_reset();
}

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

/* Less than or equal: a likely mistake. What is found then is up to chance, but nothing breaks. */
static int wrong_less(const void *a, const void *b)
{
	return !plain_less(b, a);
}

TEST(a_wrong_less_than_loses_matches_but_breaks_nothing)
{
	struct weft_match_fns fns = { .size = sizeof(fns), .head_len = sizeof(struct plain_head),
				      .equal = plain_equal, .shape = plain_shape, .less = wrong_less };
	struct weft_match_entry entries[200], spare = { 0 }, *e;
	const struct weft_proto *proto;
	uint64_t seed = test_seed, held = 0;
	struct plain_head want;
	void *m;

	memset(entries, 0, sizeof(entries));
	MUST_OK(weft_proto_new("wrong", &fns, &proto));
	m = malloc(proto->match_size);
	MUST(m);
	proto->init(m, proto->ctx);
	for (uint64_t i = 0; i < test_scaled(20000); i++) {
		e = &entries[test_random(&seed) % 200];
		plain_got(&seed, 20, &want);
		if (proto->look(m, &want) && proto->want(m, &want, &spare))
			held--;
		if (proto->remove(m, e)) {
			held--;
		} else {
			proto->add_arrival(m, &want, e);
			held++;
		}
		MUST_EQ(proto->count(m, WEFT_MATCH_ARRIVALS), held);
	}
	proto->fini(m);
	free(m);
	MUST_OK(weft_proto_free(proto));
}

TEST(raw_gives_what_arrived_first_to_whoever_asks_first)
{
	const struct weft_proto *raw = &weft_proto_raw;
	struct weft_match_entry e[6];
	void *m = malloc(raw->match_size);

	MUST(m);
	memset(e, 0, sizeof(e));
	CHECK_OK(wf_proto_check(raw));
	CHECK_EQ(raw->head_len, 0);
	raw->init(m, raw->ctx);
	for (int i = 0; i < 3; i++)
		CHECK(!raw->arrive(m, NULL, &e[i]));
	CHECK(raw->look(m, NULL) == &e[0]);
	CHECK(raw->remove(m, &e[1]));
	CHECK(raw->want(m, NULL, &e[3]) == &e[0]);
	CHECK(raw->want(m, NULL, &e[3]) == &e[2]);
	for (int i = 3; i < 6; i++)
		CHECK(!raw->want(m, NULL, &e[i]));
	CHECK(raw->find_want(m, NULL) == &e[3]);
	for (int i = 3; i < 6; i++)
		CHECK(raw->arrive(m, NULL, &e[0]) == &e[i]);
	raw->fini(m);
	free(m);
}

TEST(weft_proto_new_refuses_nonsense)
{
	const struct weft_match_fns good = { .size = sizeof(good), .head_len = 24, .equal = plain_equal,
					     .shape = plain_shape, .hash = plain_hash };
	const struct weft_proto *proto = NULL;
	struct weft_match_fns fns = good;
	struct {
		struct weft_match_fns fns;
		uint64_t more;
	} newer = { good, 0 };

	CHECK_EQ(weft_proto_new(NULL, &good, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("", &good, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("x", NULL, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("x", &good, NULL), -EINVAL);
	fns.equal = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.shape = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.hash = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.less = plain_less;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.head_len = 0;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.head_len = 33;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.size = 0;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	newer.fns.size = sizeof(newer);
	newer.more = 1;
	CHECK_EQ(weft_proto_new("x", &newer.fns, &proto), -E2BIG);
	CHECK(!proto);
	newer.more = 0;
	CHECK_OK(weft_proto_new("x", &newer.fns, &proto));
	CHECK(proto && !strcmp(proto->name, "x") && proto->head_len == 24);
	CHECK_OK(wf_proto_check(proto));
	CHECK_OK(weft_proto_free(proto));
}

TEST(a_protocol_cannot_be_freed_while_a_port_speaks_it)
{
	const struct weft_match_fns fns = { .size = sizeof(fns), .head_len = 24, .equal = plain_equal,
					    .shape = plain_shape, .less = plain_less };
	const struct weft_proto *proto;

	MUST_OK(weft_proto_new("spoken", &fns, &proto));
	wf_proto_ref(proto);
	wf_proto_ref(proto);
	CHECK_EQ(weft_proto_free(proto), -EBUSY);
	wf_proto_unref(proto);
	CHECK_EQ(weft_proto_free(proto), -EBUSY);
	wf_proto_unref(proto);
	CHECK_OK(weft_proto_free(proto));
	CHECK_OK(weft_proto_free(NULL));
	wf_proto_ref(&plain_proto);
	wf_proto_unref(&plain_proto);
	CHECK_EQ(weft_proto_free(&plain_proto), -EINVAL);
	CHECK_EQ(weft_proto_free(&weft_proto_raw), -EINVAL);
}

TEST(protocols_are_the_same_by_name_and_head_length)
{
	struct weft_proto a = plain_proto, b = plain_proto;
	char name[] = "plain";

	CHECK_OK(wf_proto_check(&a));
	b.name = name;
	CHECK(wf_proto_same(&a, &b));
	b.head_len = 16;
	CHECK(!wf_proto_same(&a, &b));
	b = a, b.name = "plainer";
	CHECK(!wf_proto_same(&a, &b));
	CHECK(wf_proto_same(NULL, NULL) && !wf_proto_same(&a, NULL) && !wf_proto_same(NULL, &a));
	b = a, b.look = NULL;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
	b = a, b.entry_size++;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
	b = a, b.size = 8;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
}

TEST_MAIN
