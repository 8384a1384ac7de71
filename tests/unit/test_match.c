/* test_match.c - the matcher of weft/match.h against the reference matcher, for several header types, by
 * hash and by less-than, at compile time and at run time, also when memory is refused.
 */
#include "unit/heads.h"

#include "unit/refmatch.h"

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

TEST_MAIN
