/* stress_park.c - threads that sleep whenever there is nothing, and are woken by who publishes: a lost wake-up is
 * a thread that sleeps for ever, which TEST_LIMIT tells.
 *
 * First the parker alone, with membarrier and with plain fences; then the public calls with spin_ns 0.
 */
#include "test.h"

#include <sched.h>
#include <weft/weft.h>

#include "base/fence.h"
#include "base/park.h"

enum { PAIRS = 2, WAKERS = 3 };

/* A box one thread waits at: how much was published, and who sleeps for it. */
struct box {
	_Alignas(WF_PAIR) _Atomic uint64_t published;
	_Atomic(struct wf_parker *) sleeper;
	struct wf_parker parker;
	uint64_t data;                          /* plain: ordered by published */
};

static _Atomic uint64_t slept, timed_out;

static void dawdle(uint64_t *random)
{
	uint64_t r = test_random(random);

	if (r % 32 == 0)
		sched_yield();
	for (uint64_t n = r % 16 ? 0 : (r >> 8) % 500; n > 0; n--)
		wf_relax();
}

static void box_publish(struct box *b, uint64_t data)
{
	struct wf_parker *sleeper;

	b->data = data;
	atomic_fetch_add_explicit(&b->published, 1, memory_order_release);
	wf_fence_light();
	sleeper = atomic_load_explicit(&b->sleeper, memory_order_relaxed);
	if (sleeper)
		wf_wake(sleeper);
}

static void undo(void *arg)
{
	(void)arg;
}

/* Sleeps until more than @seen is published: at once, without lingering. */
static void box_await(struct box *b, uint64_t seen, uint64_t *random, bool deadlines)
{
	while (atomic_load_explicit(&b->published, memory_order_acquire) == seen) {
		weft_time until = WEFT_FOREVER;

		if (deadlines && test_random(random) % 4 == 0)
			until = weft_in((int64_t)(test_random(random) % 20000));
		wf_park_begin(&b->parker);
		atomic_store_explicit(&b->sleeper, &b->parker, memory_order_relaxed);
		wf_fence_heavy();
		if (atomic_load_explicit(&b->published, memory_order_relaxed) == seen) {
			if (wf_park(&b->parker, until, undo, NULL) == -ETIMEDOUT)
				atomic_fetch_add_explicit(&timed_out, 1, memory_order_relaxed);
			else
				atomic_fetch_add_explicit(&slept, 1, memory_order_relaxed);
		} else {
			wf_park_end(&b->parker);
		}
		atomic_store_explicit(&b->sleeper, NULL, memory_order_relaxed);
	}
}

static struct box boxes[PAIRS][2];
static uint64_t rounds;
static bool with_deadlines;

static void *player_main(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	struct box *mine = &boxes[me / 2][me % 2], *other = &boxes[me / 2][1 - me % 2];
	uint64_t random = test_seed + me;

	for (uint64_t i = 0; i < rounds; i++) {
		if (me % 2) {
			box_await(mine, i, &random, with_deadlines);
			MUST_EQ(mine->data, i * 3);
		}
		dawdle(&random);
		box_publish(other, i * 3);
		if (!(me % 2)) {
			box_await(mine, i, &random, with_deadlines);
			MUST_EQ(mine->data, i * 3);
		}
	}
	return NULL;
}

static void play(bool membarrier, bool deadlines)
{
	pthread_t t[2 * PAIRS];

	wf_fence_init(membarrier);
	memset(boxes, 0, sizeof(boxes));
	atomic_store(&slept, 0);
	atomic_store(&timed_out, 0);
	rounds = test_scaled(10000);
	with_deadlines = deadlines;
	for (uintptr_t i = 0; i < 2 * PAIRS; i++)
		MUST_OK(pthread_create(&t[i], NULL, player_main, (void *)i));
	for (int i = 0; i < 2 * PAIRS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	CHECK_EQ(atomic_load(&wf_parked), 0);
	printf("# %llu rounds, woken %llu times, timed out %llu times, the free fence: %s\n", (unsigned long long)rounds,
	       (unsigned long long)atomic_load(&slept), (unsigned long long)atomic_load(&timed_out),
	       wf_fence_free ? "yes" : "no");
}

TEST(no_wake_up_is_lost_between_pairs_that_park_at_once)
{
	play(true, false);
}

TEST(no_wake_up_is_lost_with_plain_fences)
{
	play(false, false);
}

TEST(no_wake_up_is_lost_when_deadlines_come_at_the_same_moment)
{
	play(true, true);
}

static struct box crowd_box;

static void *waker_main(void *arg)
{
	uint64_t random = test_seed ^ (uintptr_t)arg;

	for (uint64_t i = 0; i < rounds; i++) {
		struct wf_parker *sleeper;

		dawdle(&random);
		atomic_fetch_add_explicit(&crowd_box.published, 1, memory_order_release);
		wf_fence_light();
		sleeper = atomic_load_explicit(&crowd_box.sleeper, memory_order_relaxed);
		if (sleeper)
			wf_wake(sleeper);
	}
	return NULL;
}

TEST(of_many_wakers_at_least_one_wakes)
{
	uint64_t random = test_seed, seen = 0;
	pthread_t t[WAKERS];

	wf_fence_init(true);
	memset(&crowd_box, 0, sizeof(crowd_box));
	rounds = test_scaled(20000);
	for (uintptr_t i = 0; i < WAKERS; i++)
		MUST_OK(pthread_create(&t[i], NULL, waker_main, (void *)(i + 1)));
	while (seen < WAKERS * rounds) {
		box_await(&crowd_box, seen, &random, false);
		seen = atomic_load_explicit(&crowd_box.published, memory_order_acquire);
	}
	CHECK_EQ(seen, WAKERS * rounds);
	for (int i = 0; i < WAKERS; i++)
		MUST_OK(pthread_join(t[i], NULL));
}

static weft_id ids[2 * PAIRS];
static pthread_barrier_t met;

static void *talker_main(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t random = test_seed + me, got;

	ids[me] = weft_self();
	MUST(ids[me] != 0);
	pthread_barrier_wait(&met);
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t word = i;

		dawdle(&random);
		/* Both send, then both receive: sometimes the one sleeps first, sometimes the other. */
		MUST_OK(weft_send(NULL, ids[me ^ 1], 1, &word, sizeof(word), WEFT_FOREVER));
		MUST_OK(weft_recv(NULL, ids[me ^ 1], 1, &got, sizeof(got), WEFT_FOREVER, NULL));
		MUST_EQ(got, i);
	}
	pthread_barrier_wait(&met);
	return NULL;
}

TEST(threads_that_sleep_at_once_get_every_message_by_the_public_calls)
{
	pthread_t t[2 * PAIRS];

	MUST_OK(weft_init(NULL));
	MUST_OK(weft_knob_set("spin_ns", "0"));
	rounds = test_scaled(5000);
	MUST_OK(pthread_barrier_init(&met, NULL, 2 * PAIRS));
	for (uintptr_t i = 0; i < 2 * PAIRS; i++)
		MUST_OK(pthread_create(&t[i], NULL, talker_main, (void *)i));
	for (int i = 0; i < 2 * PAIRS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	pthread_barrier_destroy(&met);
	CHECK_OK(weft_fini(WEFT_FOREVER));
}

TEST_MAIN
