/* test.h - a test program: sentences that hold, told in TAP.
 *
 *   TEST(what_holds_as_a_sentence) { CHECK_EQ(1 + 1, 2); }
 *   TEST_MAIN
 *
 * CHECK records a failure and goes on; MUST ends the program (threads cannot be unwound).
 * Arguments select tests by substring. TEST_SEED sets the seed, TEST_LIMIT the seconds a test
 * may take (a hang is a failure), TEST_SCALE multiplies the counts a test uses (test_scaled).
 * A test that sets test_void is played again, as one whose clock said nothing (witness.h), and has failed after TEST_TRIES.
 * Exit status: 0 all passed, 1 some failed, 77 all skipped.
 */
#ifndef TEST_H
#define TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* 1 in a program built with that sanitizer, else 0. */
#if defined(__has_feature)
#define TEST_TSAN __has_feature(thread_sanitizer)
#define TEST_ASAN __has_feature(address_sanitizer)
#else
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#endif

/* How many times as long what must come about may take here: for bounds that stand for "never". */
#define TEST_SLOW (TEST_TSAN || TEST_ASAN ? 10 : 1)

#define TEST_TRIES 10

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

struct test_case {
	const char *name;
	void (*fn)(void);
	struct test_case *next;
};
static struct test_case *test_first, **test_last = &test_first;
static const char *test_now = "";
static int test_number;
static _Atomic int test_failures;
static _Atomic bool test_void;
static const char *test_skipped;
static uint64_t test_seed;

/* Before anything is said: what stands in a buffer at a fork may be said twice. */
__attribute__((constructor)) static void test_lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#define TEST(sentence)                                                                             \
	static void sentence(void);                                                                \
	__attribute__((constructor)) static void test_add_##sentence(void)                         \
	{                                                                                          \
		static struct test_case c = { #sentence, sentence, NULL };                         \
		*test_last = &c;                                                                   \
		test_last = &c.next;                                                               \
	}                                                                                          \
	static void sentence(void)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		test_skipped = (why);                                                              \
		return;                                                                            \
	} while (0)

#define CHECK(cond) test_check(!!(cond), __FILE__, __LINE__, #cond, 0, 0, false)
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long test_a = (long long)(a), test_b = (long long)(b);                        \
		test_check(test_a == test_b, __FILE__, __LINE__, #a " == " #b, test_a, test_b, true); \
	} while (0)
#define CHECK_OK(call) CHECK_EQ(call, 0)
#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!test_check(!!(cond), __FILE__, __LINE__, #cond, 0, 0, false))                 \
			test_die();                                                                \
	} while (0)
#define MUST_EQ(a, b)                                                                              \
	do {                                                                                       \
		long long test_a = (long long)(a), test_b = (long long)(b);                        \
		if (!test_check(test_a == test_b, __FILE__, __LINE__, #a " == " #b, test_a, test_b, true)) \
			test_die();                                                                \
	} while (0)
#define MUST_OK(call) MUST_EQ(call, 0)

/* The first failures are told one by one; a loop gone wrong is not worth a million lines. */
static inline bool test_check(bool ok, const char *file, int line, const char *what, long long a, long long b,
			      bool values)
{
	if (ok)
		return true;
	int n = atomic_fetch_add(&test_failures, 1);
	if (n < 20 && values)
		printf("# %s:%d: %s: %lld and %lld\n", file, line, what, a, b);
	else if (n < 20)
		printf("# %s:%d: %s\n", file, line, what);
	fflush(stdout);
	return false;
}

static inline void test_die(void)
{
	printf("not ok %d - %s\n", test_number, test_now);
	fflush(stdout);
	_exit(1);
}

static inline void test_hung(int sig)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "# no end in the time allowed (TEST_LIMIT)\nnot ok %d - %s\n", test_number,
			 test_now);

	(void)sig;
	if (write(1, line, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

static inline long test_env(const char *name, long otherwise)
{
	const char *v = getenv(name);
	return v && *v ? atol(v) : otherwise;
}

static inline double test_scale(void)
{
	const char *v = getenv("TEST_SCALE");
	return v && *v ? atof(v) : 1;
}

/* A count for a quick run, larger or smaller by TEST_SCALE, at least 1. */
static inline uint64_t test_scaled(uint64_t count)
{
	double n = (double)count * test_scale();
	return n < 1 ? 1 : (uint64_t)n;
}

/* splitmix64: numbers from a seed, one state per thread that wants them. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline int test_main(int argc, char **argv)
{
	int count = 0, failed = 0, skipped = 0;
	unsigned limit = (unsigned)test_env("TEST_LIMIT", 120);

	test_seed = (uint64_t)test_env("TEST_SEED", 0);
	if (!test_seed)
		test_seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid();
	signal(SIGALRM, test_hung);
	printf("# seed %llu\n", (unsigned long long)test_seed);
	for (struct test_case *c = test_first; c; c = c->next) {
		bool wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= strstr(c->name, argv[i]) != NULL;
		if (!wanted)
			continue;
		test_now = c->name;
		test_number = ++count;
		atomic_store(&test_failures, 0);
		for (int tries = 1; tries == 1 || (atomic_load(&test_void) && !atomic_load(&test_failures)); tries++) {
			if (tries > TEST_TRIES) {
				printf("# the machine was never quiet enough\n");
				atomic_fetch_add(&test_failures, 1);
				break;
			}
			test_skipped = NULL;
			atomic_store(&test_void, false);
			alarm(limit);
			c->fn();
			alarm(0);
		}
		if (test_failures)
			failed++, printf("not ok %d - %s\n", count, c->name);
		else if (test_skipped)
			skipped++, printf("ok %d - %s # SKIP %s\n", count, c->name, test_skipped);
		else
			printf("ok %d - %s\n", count, c->name);
	}
	printf("1..%d\n", count);
	fflush(stdout);
	return failed ? 1 : count && skipped == count ? 77 : 0;
}

#define TEST_MAIN                                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(argc, argv);                                                      \
	}
#endif
