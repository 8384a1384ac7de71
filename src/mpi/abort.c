/* abort.c - MPI_Abort: the whole job ends, whichever communicator was named.
 *
 * What the program has printed goes out first, by a thread of its own: another thread may hold a stream for ever, waiting
 * for input or for a reader. Standard output is what is missed if it does not come, so that it is waited for once more, and longer: on a busy
 * machine that thread may not have run yet. Still the job ends within a second.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "inner.h"

#define FLUSH_NS 200000000L     /* so long at most, */
#define OUTPUT_NS 400000000L    /* and so long again for standard output */

static _Atomic bool printed;            /* standard output is; who sees it needs nothing else of the thread: relaxed */

static void *flush(void *unused)
{
	(void)unused;
	fflush(stdout);
	atomic_store_explicit(&printed, true, memory_order_relaxed);
	fflush(NULL);
	return NULL;
}

static bool ended_in_time(pthread_t thread, long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static void flush_for_a_moment(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, flush, NULL) != 0)
		return;
	if (!ended_in_time(thread, FLUSH_NS) && !atomic_load_explicit(&printed, memory_order_relaxed))
		ended_in_time(thread, OUTPUT_NS);
}

int PMPI_Abort(MPI_Comm comm, int errorcode)
{
	char why[80] = "MPI_Abort";

	(void)comm;
	if (errorcode & ~0xff || !errorcode)
		snprintf(why, sizeof(why), "MPI_Abort with error code %d", errorcode);
	flush_for_a_moment();
	/* It comes back only where there is no job: before MPI_Init, after MPI_Finalize, in a forked child. */
	weft_job_abort(errorcode, why);
	fprintf(stderr, "%s outside of MPI\n", why);
	_exit(errorcode & 0xff ? errorcode & 0xff : 1);
}
MPI_DONE(Abort);
