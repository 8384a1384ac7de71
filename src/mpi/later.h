/* later.h - jobs for threads of the layer's own, while the program goes on: what nonblocking collectives are made of.
 *
 * Every job has a thread to itself, so that jobs may wait for each other, and for those of other ranks, in any order. Only where the
 * system gives no more threads do the rest wait for one of those that are there, in the order in which they came. Threads that
 * have nothing to do are kept for the next jobs, a few; all are gone when MPI_Finalize returns. Who waits for a job that its thread has not
 * begun takes it back and runs it: that is sooner than the other wakes up.
 */
#ifndef WM_LATER_H
#define WM_LATER_H

#include <stdbool.h>

struct wm_job {
	void (*run)(struct wm_job *job);
	void (*end)(struct wm_job *job);        /* tells that it is over; what comes after that does not touch the job */

	/* later.c's */
	struct wm_job *next;
	struct wm_worker *of;                   /* has it in hand, and has not begun it; else NULL */
};

/* Runs both in another thread. 0, or weft's answer if there is none at all to be had: then neither is called. */
int wm_later(struct wm_job *job);

/* Whether nobody has begun it yet: then it is the caller's, who runs both. */
bool wm_later_take(struct wm_job *job);

/* Waits for the jobs that are left, and for the threads. False: some are not over after so many seconds. */
bool wm_later_end(int seconds);

#endif
