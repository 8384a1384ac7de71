/* abort.c - MPI_Abort: the whole job ends, whichever communicator was named.
 *
 * What the program has printed goes out first, by a thread of its own: another thread may hold a stream for ever, waiting
 * for input or for a reader.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "inner.h"

#define FLUSH_NS 200000000L     /* so long at most */

static void *flush(void *unused)
{
	(void)unused;
	fflush(NULL);
	return NULL;
}

static void flush_for_a_moment(void)
{
	struct timespec until;
	pthread_t thread;

	if (pthread_create(&thread, NULL, flush, NULL) != 0)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FLUSH_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_timedjoin_np(thread, NULL, &until);
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
