/* stress_lock.c - one at a time under wf_lock, and nobody sleeps for ever: with membarrier and with plain fences.
 *
 * What the lock covers is plain memory: ThreadSanitizer sees whether L1 (lock.h) orders it.
 */
#include "test.h"

#include <sched.h>

#include "base/lock.h"
#include "base/park.h"

enum { THREADS = 4, LOCKS = 2 };

static struct {
	_Alignas(WF_PAIR) struct wf_lock lock;
	uint64_t first, second;                 /* under the lock; equal when it is free */
	_Atomic int inside;
} under[LOCKS];
static uint64_t rounds;
static _Atomic uint64_t tried;

static void work(unsigned which, uint64_t r)
{
	MUST_EQ(atomic_fetch_add_explicit(&under[which].inside, 1, memory_order_relaxed), 0);
	MUST_EQ(under[which].first, under[which].second);
	under[which].first++;
	if (r % 64 == 0)
		sched_yield();                  /* held for long: the others must sleep */
	for (uint64_t n = r % 8 ? 0 : (r >> 8) % 200; n > 0; n--)
		wf_relax();
	under[which].second++;
	MUST_EQ(atomic_fetch_sub_explicit(&under[which].inside, 1, memory_order_relaxed), 1);
}

static void *worker_main(void *arg)
{
	uint64_t random = test_seed + (uintptr_t)arg;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t r = test_random(&random);
		unsigned which = (r >> 40) % LOCKS;

		if (r % 5 == 0) {
			while (!wf_trylock(&under[which].lock)) {
				atomic_fetch_add_explicit(&tried, 1, memory_order_relaxed);
				sched_yield();
			}
		} else {
			wf_lock(&under[which].lock);
		}
		wf_assert_held(&under[which].lock);
		work(which, r);
		wf_unlock(&under[which].lock);
	}
	return NULL;
}

static void contend(bool membarrier)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;

	wf_fence_init(membarrier);
	memset(under, 0, sizeof(under));
	atomic_store(&tried, 0);
	rounds = test_scaled(100000);
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST_OK(pthread_create(&t[i], NULL, worker_main, (void *)i));
	for (int i = 0; i < THREADS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	for (int i = 0; i < LOCKS; i++) {
		sum += under[i].first;
		CHECK_EQ(under[i].first, under[i].second);
		CHECK_EQ(atomic_load(&under[i].lock.held), 0);
		CHECK_EQ(atomic_load(&under[i].lock.wanted), 0);
	}
	CHECK_EQ(sum, THREADS * rounds);
	printf("# tried in vain %llu times, the free fence: %s\n", (unsigned long long)atomic_load(&tried),
	       wf_fence_free ? "yes" : "no");
}

TEST(one_at_a_time_and_everybody_in_the_end)
{
	contend(true);
}

TEST(one_at_a_time_and_everybody_in_the_end_with_plain_fences)
{
	contend(false);
}

TEST_MAIN
