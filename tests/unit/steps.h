/* steps.h - a scheduler for code with step points: of a few threads exactly one runs, and at each step point,
 * sleep and wake-up a seed decides who goes on.
 *
 * The library's wf_step, wf_futex_wait, wf_futex_wake, sched_yield, nanosleep and clock_gettime are this file's in a
 * step test. Time is a count: each look at the clock takes 10 us, and when everybody sleeps it jumps to the next
 * deadline. So a run is its seed: the same seed in the same state gives the same trace, of which a hash is
 * kept.
 *
 * A run ends when every body has returned. If all that are left sleep without a deadline a wake-up was lost: the run is
 * stuck. A seed also says how eagerly threads are switched, and in half of the runs one thread is stopped at some
 * step for a long time while the others go on.
 *
 * Passing the turn is a full fence: what is seen here is sequentially consistent. What store buffers do is shown
 * by tests/models, what the machine does by tests/stress.
 */
#ifndef STEPS_H
#define STEPS_H
#include "test.h"

#include <linux/futex.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <weft/base.h>

#include "base/futex.h"
#include "base/step.h"

enum { STEPS_THREADS = 4, STEPS_TRACE = 100, STEPS_PER_LOOK = 10000 /* ns */ };
#define STEPS_ENDLESS 2000000u          /* a run of so many steps goes nowhere */

enum steps_end { STEPS_GOES_ON, STEPS_ALL_RETURNED, STEPS_STUCK, STEPS_IN_CIRCLES };

struct steps_thread {
	sem_t turn;
	pthread_t thread;
	void (*body)(int me);
	_Atomic uint32_t *word;         /* sleeps on it; NULL: can run */
	weft_time until;
	bool late, returned;
	const char *where;
};

static struct {
	struct steps_thread at[STEPS_THREADS];
	int threads;
	sem_t over;
	uint64_t seed, random, hash;
	uint32_t steps, switches, stays;        /* stays: of 32 */
	int stopped;                            /* who; -1: nobody */
	uint32_t stop_from, stop_to;
	enum steps_end end;
	bool free;                              /* stuck: the bodies run on unscheduled, and are to return */
	struct {
		int who;
		const char *where;
	} trace[STEPS_TRACE];
} steps;
static _Thread_local int steps_me = -1;         /* -1: not a thread of a run */
static weft_time steps_now = WEFT_S;

/* What must hold in a run tells the run before it ends the program. */
static inline void steps_die(void);

#undef MUST
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!test_check(!!(cond), __FILE__, __LINE__, #cond, 0, 0, false))                 \
			steps_die();                                                               \
	} while (0)
#undef MUST_EQ
#define MUST_EQ(a, b)                                                                              \
	do {                                                                                       \
		long long test_a = (long long)(a), test_b = (long long)(b);                        \
		if (!test_check(test_a == test_b, __FILE__, __LINE__, #a " == " #b, test_a, test_b, true)) \
			steps_die();                                                               \
	} while (0)

static inline void steps_note(const char *where)
{
	steps.trace[steps.steps % STEPS_TRACE].who = steps_me;
	steps.trace[steps.steps % STEPS_TRACE].where = where;
	steps.at[steps_me].where = where;
	steps.steps++;
	steps.hash = (steps.hash ^ (uint64_t)steps_me) * UINT64_C(0x100000001b3);
	for (const char *c = where; *c; c++)
		steps.hash = (steps.hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
}

static inline bool steps_runs(int i)
{
	return !steps.at[i].returned && !steps.at[i].word;
}

static inline bool steps_is_stopped(int i)
{
	return i == steps.stopped && steps.steps >= steps.stop_from && steps.steps < steps.stop_to;
}

/* Everybody sleeps: the next deadline comes. -1: there is none. */
static inline int steps_next_late(void)
{
	int first = -1;

	for (int i = 0; i < steps.threads; i++)
		if (!steps.at[i].returned && steps.at[i].until != WEFT_FOREVER &&
		    (first < 0 || steps.at[i].until < steps.at[first].until))
			first = i;
	if (first >= 0) {
		steps_now = steps.at[first].until > steps_now ? steps.at[first].until : steps_now;
		steps.at[first].late = true;
		steps.at[first].word = NULL;
	}
	return first;
}

/* Who goes on; -1: nobody can. */
static inline int steps_pick(void)
{
	int can[STEPS_THREADS], n = 0;
	uint64_t r = test_random(&steps.random);

	for (int i = 0; i < steps.threads; i++)
		if (steps_runs(i) && !steps_is_stopped(i))
			can[n++] = i;
	if (!n && steps.stopped >= 0 && steps_runs(steps.stopped))
		return steps.stopped;
	if (!n)
		return steps_next_late();
	if (steps_runs(steps_me) && !steps_is_stopped(steps_me) && r % 32 < steps.stays)
		return steps_me;
	return can[(r >> 8) % (uint64_t)n];
}

static inline void steps_finish(enum steps_end end)
{
	steps.end = end;
	steps.free = end != STEPS_ALL_RETURNED;
	for (int i = 0; i < steps.threads && steps.free; i++)
		sem_post(&steps.at[i].turn);
	sem_post(&steps.over);
}

static inline bool steps_all_returned(void)
{
	for (int i = 0; i < steps.threads; i++)
		if (!steps.at[i].returned)
			return false;
	return true;
}

static inline void steps_pass(void)
{
	int next = steps_pick(), me = steps_me;

	if (next == me)
		return;
	if (next < 0) {
		steps_finish(steps_all_returned() ? STEPS_ALL_RETURNED : STEPS_STUCK);
	} else {
		steps.switches++;
		sem_post(&steps.at[next].turn);
	}
	if (!steps.at[me].returned)
		while (sem_wait(&steps.at[me].turn))
			continue;
}

void wf_step(const char *where)
{
	if (steps_me < 0 || steps.free)
		return;
	steps_note(where);
	if (steps.steps >= STEPS_ENDLESS)
		steps_finish(STEPS_IN_CIRCLES);
	else
		steps_pass();
}

int wf_futex_wait(_Atomic uint32_t *word, uint32_t while_equal, weft_time until)
{
	struct steps_thread *t = &steps.at[steps_me < 0 ? 0 : steps_me];

	if (steps_me < 0) {             /* threads of no run: none of them is to be waited for here */
		MUST(atomic_load(word) != while_equal);
		return 0;
	}
	if (steps.free || atomic_load(word) != while_equal)
		return 0;
	if (until != WEFT_FOREVER && until <= steps_now)
		return -ETIMEDOUT;
	steps_note("asleep");
	t->word = word;
	t->until = until;
	t->late = false;
	steps_pass();
	t->until = WEFT_FOREVER;
	return t->late ? -ETIMEDOUT : 0;
}

void wf_futex_wake(_Atomic uint32_t *word, int how_many)
{
	if (steps_me < 0 || steps.free)
		return;
	steps_note("wake");
	for (int i = 0; i < steps.threads && how_many > 0; i++) {
		int k = (i + (int)(steps.random % STEPS_THREADS)) % steps.threads;

		if (steps.at[k].word == word && !steps.at[k].returned) {
			steps.at[k].word = NULL;
			how_many--;
		}
	}
	steps_pass();
}

int wf_futex_wait_far(_Atomic uint32_t *word, uint32_t while_equal, weft_time until)
{
	return wf_futex_wait(word, while_equal, until);
}

void wf_futex_wake_far(_Atomic uint32_t *word, int how_many)
{
	wf_futex_wake(word, how_many);
}

int sched_yield(void)
{
	if (steps_me >= 0 && !steps.free)
		wf_step("yield");
	else
		syscall(SYS_sched_yield);
	return 0;
}

int nanosleep(const struct timespec *t, struct timespec *rest)
{
	(void)rest;
	if (steps_me >= 0 && !steps.free)
		wf_step("nap");
	steps_now += t->tv_sec * WEFT_S + t->tv_nsec;
	return 0;
}

int clock_gettime(clockid_t which, struct timespec *ret_now)
{
	(void)which;
	steps_now += STEPS_PER_LOOK;
	ret_now->tv_sec = steps_now / WEFT_S;
	ret_now->tv_nsec = steps_now % WEFT_S;
	return 0;
}

static inline void *steps_main(void *arg)
{
	int me = (int)(intptr_t)arg;

	while (sem_wait(&steps.at[me].turn))
		continue;
	steps_me = me;
	steps.at[me].body(me);
	if (!steps.free) {
		steps_note("returned");
		steps.at[me].returned = true;
		steps_pass();
	}
	steps_me = -1;
	return NULL;
}

/* How this seed schedules. */
static inline void steps_seed(uint64_t seed, int threads)
{
	static const uint32_t stays[] = { 0, 16, 28, 31 };

	memset(&steps, 0, sizeof(steps));
	steps.seed = steps.random = seed;
	steps.hash = UINT64_C(0xcbf29ce484222325);
	steps.threads = threads;
	steps.stays = stays[test_random(&steps.random) % 4];
	steps.stopped = -1;
	if (test_random(&steps.random) % 2) {
		steps.stopped = (int)(test_random(&steps.random) % (uint64_t)threads);
		steps.stop_from = (uint32_t)(test_random(&steps.random) % 400);
		steps.stop_to = steps.stop_from + (uint32_t)(test_random(&steps.random) % 4000);
	}
}

/* One run of @threads bodies by @seed. When it is stuck the bodies still must return (steps.free). */
static inline enum steps_end steps_run(uint64_t seed, int threads, void (*body)(int me))
{
	steps_seed(seed, threads);
	MUST_OK(sem_init(&steps.over, 0, 0));
	for (int i = 0; i < threads; i++) {
		steps.at[i].body = body;
		steps.at[i].until = WEFT_FOREVER;
		steps.at[i].where = "not begun";
		MUST_OK(sem_init(&steps.at[i].turn, 0, 0));
		MUST_OK(pthread_create(&steps.at[i].thread, NULL, steps_main, (void *)(intptr_t)i));
	}
	sem_post(&steps.at[test_random(&steps.random) % (uint64_t)threads].turn);
	while (sem_wait(&steps.over))
		continue;
	return steps.end;
}

static inline void steps_join(void)
{
	for (int i = 0; i < steps.threads; i++) {
		MUST_OK(pthread_join(steps.at[i].thread, NULL));
		sem_destroy(&steps.at[i].turn);
	}
	sem_destroy(&steps.over);
}

static inline void steps_tell(const char *what)
{
	uint32_t from = steps.steps > STEPS_TRACE ? steps.steps - STEPS_TRACE : 0;

	printf("# %s: seed %llu, %u steps, trace %016llx\n", what, (unsigned long long)steps.seed, steps.steps,
	       (unsigned long long)steps.hash);
	for (int i = 0; i < steps.threads; i++)
		printf("#   thread %d: %s%s\n", i, steps.at[i].where,
		       steps.at[i].returned ? "" : steps.at[i].word ? " (sleeps)" : " (could run)");
	for (uint32_t i = from; i < steps.steps; i++)
		printf("#   %u: %d %s\n", i, steps.trace[i % STEPS_TRACE].who, steps.trace[i % STEPS_TRACE].where);
}

static inline void steps_die(void)
{
	if (steps_me >= 0)
		steps_tell("a check failed");
	test_die();
}

/* A run that must come to its end: threads stuck inside the library cannot be unwound. */
static inline void steps_must_end(uint64_t seed, int threads, void (*body)(int me))
{
	enum steps_end end = steps_run(seed, threads, body);

	if (end != STEPS_ALL_RETURNED) {
		steps_tell(end == STEPS_STUCK ? "all that are left sleep" : "it goes nowhere");
		test_die();
	}
	steps_join();
	if (test_failures) {
		steps_tell("a check failed");
		test_die();
	}
}

/* @count runs; the traces of the first ones are told, and a sum over all. */
static inline void steps_many(uint64_t count, int threads, void (*begin)(void), void (*body)(int me), void (*end)(void))
{
	uint64_t sum = 0, taken = 0, passed = 0, of = test_seed;

	for (uint64_t i = 0; i < count; i++) {
		if (begin)
			begin();
		steps_must_end(test_random(&of), threads, body);
		if (end)
			end();
		if (test_failures) {
			steps_tell("a check failed");
			test_die();
		}
		sum = (sum ^ steps.hash) * UINT64_C(0x100000001b3);
		taken += steps.steps;
		passed += steps.switches;
		if (i < 3)
			printf("# seed %llu: %u steps, trace %016llx\n", (unsigned long long)steps.seed, steps.steps,
			       (unsigned long long)steps.hash);
	}
	printf("# %llu seeds, %llu steps, %llu switches, traces %016llx\n", (unsigned long long)count,
	       (unsigned long long)taken, (unsigned long long)passed, (unsigned long long)sum);
}

#endif
