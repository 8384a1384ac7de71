/* test_later.c - threads of the MPI layer's own (src/mpi/later.h), from the inside: how many there are, and what happens where the
 * system gives none.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/weft.h>

#include "later.h"

#define JOBS 40

struct job {
	struct wm_job job;
	int number, ran_as;
	pthread_barrier_t *with;        /* all that use it are under way at once; NULL: none */
	sem_t *gate;                    /* it goes on when this is posted; NULL: none */
};

static int case_number, failed;
static _Atomic int made, allowed, order;
static sem_t over;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

static struct {                         /* a thread that does not begin before it is told so */
	sem_t *gate;                    /* NULL: others begin at once */
	void *(*start)(void *);
	void *arg;
} held;

static void *begin_late(void *unused)
{
	(void)unused;
	while (sem_wait(held.gate))
		;
	return held.start(held.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	if (made >= allowed)
		return EAGAIN;
	made++;
	if (!held.gate)
		return __real_pthread_create(thread, attr, start, arg);
	held.start = start;
	held.arg = arg;
	return __real_pthread_create(thread, attr, begin_late, NULL);
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

static _Atomic int sluggish;            /* who was woken is let run late */

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	int r = __real_pthread_cond_wait(cond, lock);

	if (sluggish) {
		pthread_mutex_unlock(lock);
		usleep(100000);
		pthread_mutex_lock(lock);
	}
	return r;
}

static void run(struct wm_job *job)
{
	struct job *j = (struct job *)job;

	j->ran_as = order++;
	if (j->with)
		pthread_barrier_wait(j->with);
	if (j->gate)
		while (sem_wait(j->gate))
			;
}

static void end(struct wm_job *job)
{
	(void)job;
	sem_post(&over);
}

static void fill(struct job *jobs, pthread_barrier_t *with, sem_t *gate)
{
	for (int i = 0; i < JOBS; i++)
		jobs[i] = (struct job){ .job = { .run = run, .end = end }, .number = i, .with = with, .gate = gate };
}

static void ends_wait(int n)
{
	while (n)
		if (!sem_wait(&over))
			n--;
}

static void expect(int ok, const char *sentence)
{
	failed += !ok;
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++case_number, sentence);
	fflush(stdout);
}

static void none_at_all(struct job *jobs)
{
	allowed = 0;
	fill(jobs, NULL, NULL);
	expect(wm_later(&jobs[0].job) == -ENOMEM && order == 0, "without any thread a job is refused");
}

/* The thread of the first job comes too late; it serves the next. */
static void taken_back(struct job *jobs)
{
	int taken[3];
	sem_t gate;

	sem_init(&gate, 0, 0);
	held.gate = &gate;
	allowed = 1;
	fill(jobs, NULL, NULL);
	wm_later(&jobs[0].job);
	taken[0] = wm_later_take(&jobs[0].job);
	taken[1] = wm_later_take(&jobs[0].job);
	sem_post(&gate);
	wm_later(&jobs[1].job);
	ends_wait(1);
	taken[2] = wm_later_take(&jobs[1].job);
	expect(taken[0] && !taken[1] && !taken[2] && order == 1 && made == 1, "a job that was not begun is taken back, once, and its thread serves another");
	held.gate = NULL;
	sem_destroy(&gate);
	order = 0;
}

static void one_after_the_other(struct job *jobs)
{
	allowed = JOBS;
	fill(jobs, NULL, NULL);
	for (int i = 0; i < JOBS; i++) {
		wm_later(&jobs[i].job);
		ends_wait(1);
	}
	expect(order == JOBS && made == 1, "jobs that follow one another have one thread");
}

/* The first holds the only thread that there is. */
static void too_few(struct job *jobs)
{
	int in_order = 1, given = 1;
	sem_t gate;

	sem_init(&gate, 0, 0);
	allowed = made;
	order = 0;
	fill(jobs, NULL, NULL);
	jobs[0].gate = &gate;
	for (int i = 0; i < JOBS; i++)
		given &= wm_later(&jobs[i].job) == 0;
	sem_post(&gate);
	ends_wait(JOBS);
	for (int i = 0; i < JOBS; i++)
		in_order &= jobs[i].ran_as == i;
	expect(given && in_order && made == 1, "where there are too few threads jobs wait for one, and run in their order");
	sem_destroy(&gate);
}

static void all_at_once(struct job *jobs)
{
	pthread_barrier_t with;

	pthread_barrier_init(&with, NULL, JOBS);
	allowed = 2 * JOBS;
	for (int round = 0; round < 3; round++) {
		fill(jobs, &with, NULL);
		for (int i = 0; i < JOBS; i++)
			wm_later(&jobs[i].job);
		ends_wait(JOBS);
		allowed += JOBS;
	}
	pthread_barrier_destroy(&with);
	expect(made >= JOBS && made < 3 * JOBS, "jobs that wait for each other have a thread each, and some are kept");
}

int main(void)
{
	static struct job jobs[JOBS];

	sem_init(&over, 0, 0);
	none_at_all(jobs);
	taken_back(jobs);
	one_after_the_other(jobs);
	too_few(jobs);
	all_at_once(jobs);
	sluggish = 1;
	expect(wm_later_end(0), "the end comes when all threads are gone, and the limit is for those that have a job");
	printf("1..%d\n", case_number);
	return failed != 0;
}
