/* later.c - threads that run jobs. See later.h.
 *
 * A worker that has run its job is idle before it tells so: a program that begins the next one as soon as the last is over
 * gets the same thread again. The one that became idle last is taken first, as its memory is warm and ports that it
 * opened are biased to it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "inner.h"
#include "later.h"

#define IDLE_MAX 16             /* workers kept: programs seldom have more collectives under way */

struct wm_worker {
	pthread_t thread;
	pthread_cond_t wake;            /* has a job, or shall leave */

	/* under lock */
	struct wm_job *job;             /* NULL: none */
	bool leave;
	struct wm_worker *next;            /* idle, or gone */
};

static struct {
	pthread_mutex_t lock;           /* all of it */
	pthread_cond_t left;            /* one is gone */
	struct wm_worker *idle, *gone;     /* gone: ends, to be joined */
	int idle_count;
	int count, staying;             /* not gone; of those, that will look for another job */
	int busy;                       /* of those, that have a job and are not through with it */
	struct wm_job *first, **last;   /* jobs that found no thread */
	bool ending;
} workers = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER, .last = &workers.first };

static void give_locked(struct wm_worker *w, struct wm_job *job)
{
	w->job = job;
	job->of = w;
	workers.busy++;
}

/* A job that found no thread; NULL: none. */
static struct wm_job *left_take_locked(void)
{
	struct wm_job *job = workers.first;

	if (job) {
		workers.first = job->next;
		if (!workers.first)
			workers.last = &workers.first;
	}
	return job;
}

/* It has no job any more: it gets another, or is idle, or is to leave. */
static void without_job_locked(struct wm_worker *w)
{
	struct wm_job *next = left_take_locked();

	w->job = NULL;
	workers.busy--;
	if (next) {
		give_locked(w, next);
	} else if (!workers.ending && workers.idle_count < IDLE_MAX) {
		w->next = workers.idle;
		workers.idle = w;
		workers.idle_count++;
	} else {
		w->leave = true;
		workers.staying--;
	}
}

static void job_done(struct wm_worker *w)
{
	pthread_mutex_lock(&workers.lock);
	without_job_locked(w);
	pthread_mutex_unlock(&workers.lock);
}

/* The next job; NULL: it shall leave. */
static struct wm_job *job_wait(struct wm_worker *w)
{
	struct wm_job *job;

	pthread_mutex_lock(&workers.lock);
	while (!w->job && !w->leave && !workers.ending)
		pthread_cond_wait(&w->wake, &workers.lock);
	job = w->job;
	if (job)
		job->of = NULL;
	pthread_mutex_unlock(&workers.lock);
	return job;
}

static void *work(void *arg)
{
	struct wm_worker *w = arg;
	struct wm_job *job;

	while ((job = job_wait(w)) != NULL) {
		job->run(job);
		job_done(w);
		job->end(job);
	}
	pthread_mutex_lock(&workers.lock);
	w->next = workers.gone;
	workers.gone = w;
	workers.count--;
	pthread_cond_signal(&workers.left);
	pthread_mutex_unlock(&workers.lock);
	return NULL;
}

/* The program's signals are for its own threads. */
static int thread_begin(struct wm_worker *w)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static void join_gone(void)
{
	struct wm_worker *w, *gone;

	pthread_mutex_lock(&workers.lock);
	gone = workers.gone;
	workers.gone = NULL;
	pthread_mutex_unlock(&workers.lock);
	while ((w = gone) != NULL) {
		gone = w->next;
		pthread_join(w->thread, NULL);
		pthread_cond_destroy(&w->wake);
		free(w);
	}
}

/* Whether there is one more, with the job. */
static bool worker_new(struct wm_job *job)
{
	struct wm_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return false;
	pthread_cond_init(&w->wake, NULL);
	pthread_mutex_lock(&workers.lock);
	give_locked(w, job);
	r = thread_begin(w);            /* it cannot be gone before it is counted */
	workers.count += r == 0;
	workers.staying += r == 0;
	workers.busy -= r != 0;
	pthread_mutex_unlock(&workers.lock);
	if (r) {
		pthread_cond_destroy(&w->wake);
		free(w);
	}
	return r == 0;
}

/* Whether one that is idle has the job now. */
static bool idle_give_locked(struct wm_job *job)
{
	struct wm_worker *w = workers.idle;

	if (!w)
		return false;
	workers.idle = w->next;
	workers.idle_count--;
	give_locked(w, job);
	pthread_cond_signal(&w->wake);
	return true;
}

/* Leaves the job to whoever is through with another first. */
static int job_leave(struct wm_job *job)
{
	bool given;

	pthread_mutex_lock(&workers.lock);
	given = idle_give_locked(job);  /* it may have become so meanwhile, and does not look again */
	if (!given && workers.staying) {
		given = true;
		job->of = NULL;
		job->next = NULL;
		*workers.last = job;
		workers.last = &job->next;
	}
	pthread_mutex_unlock(&workers.lock);
	return given ? 0 : weft_fail(-ENOMEM, "no thread for a collective");
}

int wm_later(struct wm_job *job)
{
	bool given;

	pthread_mutex_lock(&workers.lock);
	given = idle_give_locked(job);
	pthread_mutex_unlock(&workers.lock);
	if (given)
		return 0;
	join_gone();
	return worker_new(job) ? 0 : job_leave(job);
}

bool wm_later_take(struct wm_job *job)
{
	struct wm_worker *w;

	pthread_mutex_lock(&workers.lock);
	w = job->of;
	if (w) {
		job->of = NULL;
		without_job_locked(w);
		pthread_cond_signal(&w->wake);  /* it may be asleep again, and is to leave */
	}
	pthread_mutex_unlock(&workers.lock);
	return w;
}

bool wm_later_end(int seconds)
{
	struct timespec until;
	bool over;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&workers.lock);
	workers.ending = true;
	for (struct wm_worker *w = workers.idle; w; w = w->next)
		pthread_cond_signal(&w->wake);
	workers.idle = NULL;
	while (workers.busy && pthread_cond_timedwait(&workers.left, &workers.lock, &until) == 0)
		continue;
	/* Those without a job leave, however late the system lets them run. */
	while (!workers.busy && workers.count)
		pthread_cond_wait(&workers.left, &workers.lock);
	over = !workers.count;
	pthread_mutex_unlock(&workers.lock);
	join_gone();
	return over;
}
