/* stress_door.c - an owner and its visitors at one door: one at a time inside, what one did is seen by the next, and
 * nobody waits for ever; with membarrier and with plain fences.
 *
 * The door is made new every so often, as for another incarnation of its port: after many visits it becomes plain.
 */
#include "test.h"

#include <sched.h>

#include "base/park.h"
#include "port/door.h"

enum { VISITORS = 2, OWNER_PER_VISIT = 40 };

static struct wf_door door;
static uint64_t first, second;          /* inside; equal when nobody is */
static _Atomic int inside;
static uint64_t visits;
static _Atomic int arrived;

static void work(uint64_t r)
{
	MUST_EQ(atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed), 0);
	MUST_EQ(first, second);
	first++;
	if (r % 128 == 0)
		sched_yield();
	for (uint64_t n = r % 16 ? 0 : (r >> 8) % 200; n > 0; n--)
		wf_relax();
	second++;
	MUST_EQ(atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed), 1);
}

static void meet(void)
{
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&arrived) <= VISITORS)
		sched_yield();
}

static void *owner_main(void *arg)
{
	uint64_t random = test_seed;

	meet();
	for (uint64_t i = 0; i < visits * OWNER_PER_VISIT; i++) {
		wf_door_enter_owner(&door);
		work(test_random(&random));
		wf_door_leave_owner(&door);
	}
	return arg;
}

static void *visitor_main(void *arg)
{
	uint64_t random = test_seed + (uintptr_t)arg;

	meet();
	for (uint64_t i = 0; i < visits; i++) {
		uint64_t r = test_random(&random);

		wf_door_enter_other(&door);
		work(r);
		wf_door_leave_other(&door);
		for (uint64_t n = r % 1000; n > 0; n--)
			wf_relax();
	}
	return NULL;
}

/* After how many visits a door is plain. */
static uint64_t visits_to_plain(void)
{
	uint64_t n = 0;

	for (wf_door_reset(&door, true); !(atomic_load(&door.word) & WF_DOOR_PLAIN); n++) {
		wf_door_enter_other(&door);
		wf_door_leave_other(&door);
	}
	return n;
}

/* @before: visits each door has had. */
static uint64_t come_and_go(bool membarrier, uint64_t doors, uint64_t each, uint64_t before)
{
	pthread_t t[1 + VISITORS];
	uint64_t plain = 0;

	wf_fence_init(membarrier);
	visits = each;
	for (uint64_t d = 0; d < doors; d++) {
		first = second = 0;
		atomic_store(&arrived, 0);
		wf_door_reset(&door, true);
		atomic_store(&door.word, before * WF_DOOR_VISIT);
		MUST_OK(pthread_create(&t[0], NULL, owner_main, NULL));
		for (uintptr_t i = 1; i <= VISITORS; i++)
			MUST_OK(pthread_create(&t[i], NULL, visitor_main, (void *)i));
		for (int i = 0; i <= VISITORS; i++)
			MUST_OK(pthread_join(t[i], NULL));
		CHECK_EQ(first, visits * (OWNER_PER_VISIT + VISITORS));
		CHECK_EQ(first, second);
		plain += (atomic_load(&door.word) & WF_DOOR_PLAIN) != 0;
	}
	printf("# %llu doors, %llu of them plain in the end, the free fence: %s\n", (unsigned long long)doors,
	       (unsigned long long)plain, wf_fence_free ? "yes" : "no");
	return plain;
}

TEST(owner_and_visitors_take_turns)
{
	CHECK_EQ(come_and_go(true, test_scaled(500), 30, 0), 0);
}

TEST(owner_and_visitors_take_turns_with_plain_fences)
{
	CHECK_EQ(come_and_go(false, test_scaled(500), 30, 0), 0);
}

TEST(owner_and_visitors_take_turns_while_the_door_becomes_plain)
{
	uint64_t doors = test_scaled(500);

	CHECK_EQ(come_and_go(true, doors, 30, visits_to_plain() - 30), doors);
}

/* Memory of a port that one thread opened, and that another then opens for itself: both take themselves for the owner. */

static _Atomic bool stop;

static void *keeper_main(void *arg)
{
	uint64_t id = (uintptr_t)arg, n = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		bool mine = atomic_load_explicit(&door.keeper, memory_order_relaxed) == id;

		if (mine)
			wf_door_enter_owner(&door);
		else
			wf_door_enter_other(&door);
		work(n++);
		if (mine)
			wf_door_leave_owner(&door);
		else
			wf_door_leave_other(&door);
	}
	return (void *)(uintptr_t)n;
}

TEST(whoever_opens_a_port_where_another_was_keeper_shares_a_plain_door)
{
	uint64_t rounds = test_scaled(300);

	wf_fence_init(true);
	for (uint64_t i = 0; i < rounds; i++) {
		pthread_t t[3];
		uint64_t sum = 0;

		first = second = 0;
		atomic_store(&stop, false);
		atomic_store(&door.keeper, 0);
		wf_door_reset(&door, false);
		wf_door_keep(&door, 1);
		for (uintptr_t k = 0; k < 3; k++)
			MUST_OK(pthread_create(&t[k], NULL, keeper_main, (void *)(k + 1)));
		for (int k = 0; k < 20; k++)
			wf_relax();
		wf_door_keep(&door, 2);                 /* another's: nothing changes */
		CHECK_EQ(atomic_load(&door.keeper), 1);
		for (int k = 0; k < 2000; k++)
			wf_relax();
		atomic_store(&stop, true);
		for (int k = 0; k < 3; k++) {
			void *n;

			MUST_OK(pthread_join(t[k], &n));
			sum += (uintptr_t)n;
		}
		CHECK_EQ(first, sum);
		CHECK_EQ(first, second);
		wf_door_reset(&door, true);             /* as for a thread of its own: never biased to it */
		CHECK(atomic_load(&door.word) & WF_DOOR_PLAIN);
	}
	atomic_store(&door.keeper, 0);
}

TEST_MAIN
