/* later.h - jobs for threads of the layer's own, while the program goes on: what nonblocking collectives are made of.
 *
 * Every job has a thread to itself, so that jobs may wait for each other, and for those of other ranks, in any order. Only where the
 * system gives no more threads do the rest wait for one of those that are there, in the order in which they came. Threads that
 * have nothing to do are kept for the next jobs, a few; all are gone when MPI_Finalize returns.
 */
#ifndef WM_LATER_H
#define WM_LATER_H

struct wm_job {
	void (*run)(struct wm_job *job);
	void (*end)(struct wm_job *job);        /* tells that it is over; what comes after that does not touch the job */
	struct wm_job *next;                    /* later.c's */
};

/* Runs both in another thread. 0, or weft's answer if there is none at all to be had: then neither is called. */
int wm_later(struct wm_job *job);

void wm_later_end(void);        /* waits for the jobs that are left, and for the threads */

#endif
