/* stress_lease.c - threads that lend to themselves what a lock covers, and take it back from one another: one at a time inside, what one did is seen by the next, and nobody waits for ever. Without
 * membarrier nothing is lent.
 */
#include "test.h"

#include <sched.h>

#include "base/lease.h"
#include "base/lock.h"

enum { THREADS = 3, ROW = 50 };         /* of visits by the lease, at most, to each by the lock */

static struct wf_lock lock;
static struct wf_lease lease;
static _Atomic uint32_t inside_of[THREADS];
static uint64_t first, second;          /* inside; equal when nobody is */
static _Atomic int inside;
static uint64_t rounds;

struct went {
	uint64_t times, by_lease, taken_back;
};

static void work(uint64_t r)
{
	MUST_EQ(atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed), 0);
	MUST_EQ(first, second);
	first++;
	if (r % 512 == 0)
		sched_yield();
	for (uint64_t n = r % 16 ? 0 : (r >> 8) % 100; n > 0; n--)
		wf_relax();
	second++;
	MUST_EQ(atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed), 1);
}

static void *come(void *arg)
{
	_Atomic uint32_t *mine = &inside_of[(uintptr_t)arg];
	uint64_t name = (uintptr_t)arg + 1, random = test_seed + name;
	struct went *went = calloc(1, sizeof(*went));

	MUST(went);
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t r = test_random(&random);

		for (uint64_t k = r % ROW; k > 0 && wf_lease_enter(&lease, name, mine); k--) {
			work(test_random(&random));
			wf_lease_leave(mine);
			went->by_lease++;
		}
		wf_lock(&lock);
		if (wf_lease_name(&lease))
			went->taken_back += !wf_lease_take_back(&lease, mine);
		work(r);
		if (r >> 32 & 3)
			wf_lease_lend(&lease, name, mine);
		wf_unlock(&lock);
		for (uint64_t n = r >> 40 & 255; n > 0; n--)
			wf_relax();
	}
	went->times = rounds + went->by_lease;
	return went;
}

static void take_turns(bool membarrier, uint64_t times)
{
	pthread_t t[THREADS];
	uint64_t all = 0, by_lease = 0, taken_back = 0;

	wf_fence_init(membarrier);
	memset(&lease, 0, sizeof(lease));
	rounds = times;
	first = second = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST_OK(pthread_create(&t[i], NULL, come, (void *)i));
	for (int i = 0; i < THREADS; i++) {
		void *end;
		const struct went *went;

		MUST_OK(pthread_join(t[i], &end));
		went = end;
		all += went->times;
		by_lease += went->by_lease;
		taken_back += went->taken_back;
		free(end);
	}
	CHECK_EQ(first, all);
	CHECK_EQ(first, second);
	CHECK(wf_fence_free || WF_TSAN ? by_lease > 0 && taken_back > 0 : !by_lease && !taken_back);
	printf("# %llu times inside, %llu by the lease, which was taken back from another %llu times; the free fence: %s\n", (unsigned long long)all, (unsigned long long)by_lease,
	       (unsigned long long)taken_back, wf_fence_free ? "yes" : "no");
}

TEST(lessees_and_who_has_the_lock_take_turns)
{
	take_turns(true, test_scaled(100000));
}

TEST(nothing_is_lent_where_fences_are_not_free)
{
	take_turns(false, test_scaled(100000));
}

TEST_MAIN
