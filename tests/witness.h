/* witness.h - how the machine treated us while something was timed: see tests/run/witness.py, which has more of it.
 *
 *   witness_call();                    from here on it looks
 *   since = weft_now();
 *   ...
 *   WITHIN(since, WEFT_S);             in time, or the machine stood still and the test is played again, or it has failed
 *
 * What it knows is what the hypervisor kept of a core (/proc/stat), and how late naps on each core were. It looks until the process ends: a test
 * that counts threads has none of it. Not for a process that was forked later.
 */
#ifndef WITNESS_H
#define WITNESS_H
#include <sched.h>
#include "proc.h"
#include "test.h"

enum { WITNESS_CORES = 8, WITNESS_KEPT = 1024, WITNESS_SHARE = 4 };
#define WITNESS_NAP INT64_C(10000000)
#define WITNESS_LATE INT64_C(20000000)  /* the scheduler's turns are shorter */

struct witness_core {
	int number;
	struct { int64_t at, until; } late[WITNESS_KEPT];       /* the first so many, and those last long enough to be told */
	int lates;
};

static struct {
	pthread_mutex_t lock;
	bool called;
	struct witness_core core[WITNESS_CORES];
	int cores;
	struct { int64_t at, stolen[WITNESS_CORES]; } look[WITNESS_KEPT];       /* each tenth of a second; the last ones */
	unsigned looks;
} witness = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline int64_t witness_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline void witness_look(void)
{
	static char text[1 << 14];      /* the lines of the cores are the first ones */
	char name[16], *line;
	unsigned n;

	pthread_mutex_lock(&witness.lock);
	n = witness.looks++ % WITNESS_KEPT;
	if (proc_read("/proc/stat", text, sizeof(text)) <= 0)
		text[0] = 0;
	for (int i = 0; i < witness.cores; i++) {
		unsigned long long stolen = 0;

		snprintf(name, sizeof(name), "\ncpu%d ", witness.core[i].number);
		line = strstr(text, name);
		if (line)
			sscanf(line + strlen(name), "%*u %*u %*u %*u %*u %*u %*u %llu", &stolen);
		witness.look[n].stolen[i] = (int64_t)stolen * (1000000000 / sysconf(_SC_CLK_TCK));
	}
	witness.look[n].at = witness_now();
	pthread_mutex_unlock(&witness.lock);
}

static inline void *witness_nap(void *arg)
{
	struct witness_core *c = arg;
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(c->number, &only);
	sched_setaffinity(0, sizeof(only), &only);
	for (unsigned naps = 1;; naps++) {
		int64_t due = witness_now() + WITNESS_NAP, awake;

		nanosleep(&(struct timespec){ .tv_nsec = WITNESS_NAP }, NULL);
		awake = witness_now();
		pthread_mutex_lock(&witness.lock);
		if (awake > due + WITNESS_LATE && c->lates < WITNESS_KEPT) {
			c->late[c->lates].at = due;
			c->late[c->lates++].until = awake;
		}
		pthread_mutex_unlock(&witness.lock);
		if (c == witness.core && naps % 10 == 0)
			witness_look();
	}
	return NULL;
}

static inline void witness_call(void)
{
	cpu_set_t all;

	if (!witness.called) {
		witness.called = true;
		MUST_OK(sched_getaffinity(0, sizeof(all), &all));
		for (int i = 0; i < CPU_SETSIZE && witness.cores < WITNESS_CORES; i++)
			if (CPU_ISSET(i, &all))
				witness.core[witness.cores++].number = i;
		for (int i = 0; i < witness.cores; i++) {
			pthread_t t;

			MUST_OK(pthread_create(&t, NULL, witness_nap, &witness.core[i]));
			pthread_detach(t);
		}
	}
	witness_look();
}

/* What the machine took of one core between @since and @until; a nap that is under way has said what it has to say. */
static inline int64_t witness_took(int64_t since, int64_t until)
{
	int64_t most = 0;

	nanosleep(&(struct timespec){ .tv_nsec = 3 * WITNESS_NAP }, NULL);
	witness_look();
	pthread_mutex_lock(&witness.lock);
	for (int i = 0; i < witness.cores; i++) {
		struct witness_core *c = &witness.core[i];
		int64_t late = 0, before = -1, after = 0;

		for (int k = 0; k < c->lates; k++) {
			int64_t from = c->late[k].at > since ? c->late[k].at : since, to = c->late[k].until < until ? c->late[k].until : until;

			late += to > from ? to - from : 0;
		}
		for (unsigned k = witness.looks > WITNESS_KEPT ? witness.looks - WITNESS_KEPT : 0; k < witness.looks; k++) {
			if (before < 0 || witness.look[k % WITNESS_KEPT].at <= since)
				before = witness.look[k % WITNESS_KEPT].stolen[i];
			after = witness.look[k % WITNESS_KEPT].stolen[i];
			if (witness.look[k % WITNESS_KEPT].at >= until)
				break;
		}
		most = late > most ? late : most;
		most = after - before > most ? after - before : most;
	}
	pthread_mutex_unlock(&witness.lock);
	return most;
}

static inline void witness_judge(int64_t since, int64_t bound, const char *file, int line)
{
	int64_t until = witness_now(), took;

	if (until - since < bound)
		return;
	took = witness_took(since, until);
	printf("# %s%s:%d: took %lld ms of %lld, of which the machine %lld\n", took >= bound / WITNESS_SHARE ? "void: " : "", file, line,
	       (long long)(until - since) / 1000000, (long long)bound / 1000000, (long long)took / 1000000);
	if (took >= bound / WITNESS_SHARE)
		atomic_store(&test_void, true);
	else
		atomic_fetch_add(&test_failures, 1);
}

#define WITHIN(since, bound) witness_judge((since), (bound), __FILE__, __LINE__)
#endif
