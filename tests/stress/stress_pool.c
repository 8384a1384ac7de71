/* stress_pool.c - threads throw buffers, views and slab objects at one another; none is lost, none is
 * had by two.
 *
 * Things change hands through a small array of slots, by exchange. Each carries a stamp, written by
 * a holder at both ends and in the middle: a second holder would break it. At the end the whole limit
 * must be to be had again.
 */
#include "throw.h"

#include <sched.h>

#include "mem/buf.h"
#include "mem/slab.h"

enum { THREADS = 4, SLOTS = 16 };

#define LIMIT ((size_t)32 << 20)

static _Atomic(struct weft_buf *) slots[SLOTS];
static uint64_t rounds;
static _Atomic size_t in_use;           /* bytes by the count of those who use them */

/* Any length that keeps the three stamps apart; small ones more often. */
static size_t some_len(uint64_t *seed)
{
	uint64_t r = test_random(seed);

	return 32 + (r >> 8) % ((size_t)64 << r % 12);
}

/* Has @b delivered and looks at it; what comes of it is the next thing to throw, or NULL. */
static struct weft_buf *caught(struct weft_buf *b, uint64_t *seed)
{
	wf_buf_delivered(b);
	stamp_check(b);
	switch (test_random(seed) % 4) {
	case 0:
		if (!wf_buf_is_shared(b))
			stamp(b, test_random(seed));
		return b;
	default:
		CHECK_OK(weft_buf_put(b));
		return NULL;
	}
}

static void throw(struct weft_buf *b, bool keep, uint64_t *seed)
{
	struct weft_buf *carry;

	while (b) {
		MUST_OK(wf_buf_send_begin(b, keep, &carry));
		if (test_random(seed) % 16 == 0) {
			wf_buf_send_undo(carry);
			MUST_OK(wf_buf_send_begin(b, keep, &carry));
		}
		wf_buf_sent(carry);
		if (keep)
			CHECK_OK(weft_buf_put(b));
		b = atomic_exchange_explicit(&slots[test_random(seed) % SLOTS], carry, memory_order_acq_rel);
		if (!b)
			return;
		b = caught(b, seed);
		keep = false;
	}
}

static void *throw_buffers(void *arg)
{
	uint64_t seed = test_seed + (uintptr_t)arg;

	for (uint64_t i = 0; i < rounds; i++) {
		struct weft_buf *b = NULL;
		int r = weft_buf_get(some_len(&seed), WEFT_RAIL_ANY, &b);

		if (r == -EAGAIN) {
			for (int k = 0; k < SLOTS; k++) {
				b = atomic_exchange_explicit(&slots[k], NULL, memory_order_acq_rel);
				if (b) {
					wf_buf_delivered(b);
					stamp_check(b);
					CHECK_OK(weft_buf_put(b));
				}
			}
			sched_yield();
			continue;
		}
		MUST_OK(r);
		stamp(b, test_random(&seed));
		throw(b, test_random(&seed) % 4 == 0, &seed);
	}
	return NULL;
}

static void run(void *(*fn)(void *))
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		MUST_OK(pthread_create(&t[i], NULL, fn, (void *)i));
	for (int i = 0; i < THREADS; i++)
		MUST_OK(pthread_join(t[i], NULL));
}

TEST(buffers_and_views_thrown_between_threads_are_neither_lost_nor_had_twice)
{
	MUST_OK(wf_pool_init(LIMIT));
	rounds = test_scaled(100000);
	run(throw_buffers);
	for (int i = 0; i < SLOTS; i++) {
		struct weft_buf *b = atomic_exchange(&slots[i], NULL);

		if (b) {
			wf_buf_delivered(b);
			stamp_check(b);
			CHECK_OK(weft_buf_put(b));
		}
	}
	check_whole(LIMIT);
	wf_pool_fini();
}

/* The threads meet before each round and after it, spinning, so that they leave together. */
static _Atomic uint64_t arrivals;
static struct weft_buf *prey, *views[THREADS];
static _Atomic int wins;

static void meet(uint64_t *meetings)
{
	uint64_t all = ++*meetings * THREADS;

	atomic_fetch_add_explicit(&arrivals, 1, memory_order_acq_rel);
	for (int spins = 0; atomic_load_explicit(&arrivals, memory_order_acquire) < all; spins++)
		if (spins > 1000)
			sched_yield();
}

static void dawdle(uint64_t *seed, unsigned most)
{
	for (volatile unsigned n = test_random(seed) % most; n > 0; n--)
		;
}

static void *put_the_same(void *arg)
{
	uint64_t seed = test_seed + (uintptr_t)arg, meetings = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		int r;

		if (!arg) {
			MUST_OK(weft_buf_get(some_len(&seed), WEFT_RAIL_ANY, &prey));
			atomic_store(&wins, 0);
		}
		meet(&meetings);
		dawdle(&seed, 30);
		r = weft_buf_put(prey);
		if (r == 0)
			atomic_fetch_add(&wins, 1);
		else
			CHECK_EQ(r, -EINVAL);
		meet(&meetings);
		if (!arg)
			CHECK_EQ(atomic_load(&wins), 1);
	}
	return NULL;
}

TEST(of_several_puts_of_one_buffer_at_once_exactly_one_succeeds)
{
	MUST_OK(wf_pool_init(LIMIT));
	atomic_store(&arrivals, 0);
	rounds = test_scaled(20000);
	run(put_the_same);
	check_whole(LIMIT);
	wf_pool_fini();
}

static void get_write_put(uint64_t value)
{
	struct weft_buf *b;

	MUST_OK(weft_buf_get(100, WEFT_RAIL_ANY, &b));
	stamp(b, value);
	CHECK_OK(weft_buf_put(b));
}

/* What the holder of the lent buffer does while the others end their views: wait until it is idle, or put it
 * whatever it is, or try to hand it over. In each case it is then written, by whoever has it next: a race
 * with those who read their views if the order were not kept. */
static void holder_round(uint64_t i, uint64_t *seed)
{
	struct weft_buf *carry;
	int r;

	switch (i % 3) {
	case 0:
		while (weft_buf_state(prey) != WEFT_BUF_IDLE)
			sched_yield();
		stamp(prey, i);
		break;
	case 1:
		stamp_check(prey);
		dawdle(seed, 3000);
		CHECK_OK(weft_buf_put(prey));
		get_write_put(i);
		break;
	case 2:
		while ((r = wf_buf_send_begin(prey, false, &carry)) == -EBUSY)
			sched_yield();
		CHECK_OK(r);
		wf_buf_delivered(carry);
		stamp(carry, i);
		break;
	}
}

static void *put_base_and_views(void *arg)
{
	uint64_t seed = test_seed + (uintptr_t)arg, meetings = 0;
	uintptr_t me = (uintptr_t)arg;

	for (uint64_t i = 0; i < rounds; i++) {
		if (me == 0) {
			MUST_OK(weft_buf_get(100, WEFT_RAIL_ANY, &prey));
			stamp(prey, i);
			for (int k = 1; k < THREADS; k++) {
				MUST_OK(wf_buf_send_begin(prey, true, &views[k]));
				wf_buf_sent(views[k]);
			}
		}
		meet(&meetings);
		if (me == 0) {
			holder_round(i, &seed);
		} else {
			wf_buf_delivered(views[me]);
			stamp_check(views[me]);
			dawdle(&seed, 300);
			CHECK_OK(weft_buf_put(views[me]));
			get_write_put(i);       /* perhaps that very buffer, put before */
		}
		meet(&meetings);
		if (me == 0)
			CHECK_EQ(weft_buf_put(prey), i % 3 == 1 ? -EINVAL : 0);
	}
	return NULL;
}

TEST(a_lent_buffer_is_idle_or_home_exactly_when_its_last_view_has_ended)
{
	MUST_OK(wf_pool_init(LIMIT));
	atomic_store(&arrivals, 0);
	rounds = test_scaled(10000);
	run(put_base_and_views);
	check_whole(LIMIT);
	wf_pool_fini();
}

static void *press_the_limit(void *arg)
{
	enum { MINE = 300 };
	struct weft_buf *b[MINE];
	uint64_t seed = test_seed + (uintptr_t)arg;
	size_t n = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		if (n < MINE && test_random(&seed) % 3) {
			int r = weft_buf_get((size_t)256 << test_random(&seed) % 15, WEFT_RAIL_ANY, &b[n]);

			if (r == 0) {
				CHECK(atomic_fetch_add(&in_use, b[n]->cap) + b[n]->cap <= LIMIT);
				n++;
			} else {
				CHECK_EQ(r, -EAGAIN);
			}
		} else if (n) {
			size_t k = test_random(&seed) % n;

			atomic_fetch_sub(&in_use, b[k]->cap);
			CHECK_OK(weft_buf_put(b[k]));
			b[k] = b[--n];
		}
	}
	while (n) {
		atomic_fetch_sub(&in_use, b[--n]->cap);
		CHECK_OK(weft_buf_put(b[n]));
	}
	return NULL;
}

TEST(threads_pressing_against_the_limit_never_have_more_and_leave_all_of_it)
{
	MUST_OK(wf_pool_init(LIMIT));
	rounds = test_scaled(30000);
	run(press_the_limit);
	CHECK_EQ(atomic_load(&in_use), 0);
	check_whole(LIMIT);
	wf_pool_fini();
}

struct thing {
	uint64_t slab[2];               /* the slab's while it is free */
	_Atomic uint64_t owner;         /* 0: nobody */
};
static _Atomic(struct thing *) things[SLOTS];

static void thing_put(struct thing *t, uint64_t owner)
{
	uint64_t old = owner;

	CHECK(atomic_compare_exchange_strong(&t->owner, &old, 0));
	wf_slab_put(WF_SLAB_RECORD, t);
}

static void *throw_things(void *arg)
{
	uint64_t seed = test_seed + (uintptr_t)arg, me = 1 + (uintptr_t)arg;
	struct thing *hand[100] = { NULL };

	for (uint64_t i = 0; i < rounds; i++) {
		size_t k = test_random(&seed) % 100;
		struct thing *t = hand[k];

		if (!t) {
			t = wf_slab_get(WF_SLAB_RECORD);
			MUST(t);
			t->slab[0] = t->slab[1] = me;
			CHECK_EQ(atomic_exchange(&t->owner, me), 0);
			hand[k] = t;
		} else if (i % 2) {
			thing_put(t, me);
			hand[k] = NULL;
		} else {
			CHECK_EQ(atomic_exchange(&t->owner, 99), me);
			t = atomic_exchange(&things[test_random(&seed) % SLOTS], t);
			if (t)
				CHECK_EQ(atomic_exchange(&t->owner, me), 99);
			hand[k] = t;
		}
	}
	for (int k = 0; k < 100; k++)
		if (hand[k])
			thing_put(hand[k], me);
	return NULL;
}

TEST(slab_objects_thrown_between_threads_have_one_owner_at_a_time)
{
	MUST_OK(wf_slab_setup(WF_SLAB_RECORD, sizeof(struct thing)));
	rounds = test_scaled(300000);
	run(throw_things);
	for (int i = 0; i < SLOTS; i++) {
		struct thing *t = atomic_exchange(&things[i], NULL);

		if (t)
			thing_put(t, 99);
	}
}

TEST_MAIN
