/* env.c - the layer's life: init, finalize, time, versions.
 *
 * MPI_Init joins the job that the environment names (weft run, mpiexec), or is a job of one. Every thread level is
 * the same to weft: MULTIPLE is the normal mode.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "request.h"

#define FINI_WAIT (60 * WEFT_S) /* for what is under way when a rank leaves */

static struct {
	pthread_mutex_t lock;
	_Atomic int state;              /* enum below */
	int provided;
	pthread_t main;
} life = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { BEFORE, ALIVE, ENDED };

bool wm_alive(void)
{
	return atomic_load_explicit(&life.state, memory_order_acquire) == ALIVE;
}

static int life_begin(void)
{
	int r;

	if (life.state != BEFORE)
		return wm_error(NULL, "PMPI_Init", MPI_ERR_OTHER, "called %s",
				life.state == ALIVE ? "twice" : "after MPI_Finalize");
	r = weft_init(NULL);
	if (r < 0)
		return wm_error(NULL, "PMPI_Init", MPI_ERR_OTHER, "%s", weft_last_error());
	r = wm_comms_open();
	if (r < 0) {
		weft_fini(WEFT_NOW);
		return wm_error(NULL, "PMPI_Init", MPI_ERR_OTHER, "%s", weft_last_error());
	}
	life.provided = MPI_THREAD_MULTIPLE;
	life.main = pthread_self();
	atomic_store_explicit(&life.state, ALIVE, memory_order_release);
	return MPI_SUCCESS;
}

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int r;

	(void)argc;
	(void)argv;
	(void)required; /* MULTIPLE is what there is, and what all others are */
	pthread_mutex_lock(&life.lock);
	r = life_begin();
	pthread_mutex_unlock(&life.lock);
	if (r == MPI_SUCCESS && provided)
		*provided = life.provided;
	return r;
}
MPI_DONE(Init_thread);

int PMPI_Init(int *argc, char ***argv)
{
	return PMPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, NULL);
}
MPI_DONE(Init);

int PMPI_Initialized(int *flag)
{
	*flag = atomic_load(&life.state) != BEFORE;
	return MPI_SUCCESS;
}
MPI_DONE(Initialized);

int PMPI_Finalized(int *flag)
{
	*flag = atomic_load(&life.state) == ENDED;
	return MPI_SUCCESS;
}
MPI_DONE(Finalized);

int PMPI_Query_thread(int *provided)
{
	if (!wm_alive())
		return wm_error(NULL, __func__, MPI_ERR_OTHER, "called before MPI_Init or after MPI_Finalize");
	*provided = life.provided;
	return MPI_SUCCESS;
}
MPI_DONE(Query_thread);

int PMPI_Is_thread_main(int *flag)
{
	*flag = wm_alive() && pthread_equal(life.main, pthread_self());
	return MPI_SUCCESS;
}
MPI_DONE(Is_thread_main);

double PMPI_Wtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
MPI_DONE(Wtime);

double PMPI_Wtick(void)
{
	return 1e-9;
}
MPI_DONE(Wtick);

int PMPI_Get_version(int *version, int *subversion)
{
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}
MPI_DONE(Get_version);

int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}
MPI_DONE(Abi_get_version);

int PMPI_Get_library_version(char *version, int *resultlen)
{
	*resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "weft %s", weft_version());
	return MPI_SUCCESS;
}
MPI_DONE(Get_library_version);

int PMPI_Get_processor_name(char *name, int *resultlen)
{
	char text[MPI_MAX_PROCESSOR_NAME];

	if (gethostname(text, sizeof(text)) < 0)
		strcpy(text, "localhost");
	text[sizeof(text) - 1] = 0;
	*resultlen = (int)strlen(text);
	memcpy(name, text, (size_t)*resultlen + 1);
	return MPI_SUCCESS;
}
MPI_DONE(Get_processor_name);

int PMPI_Pcontrol(const int level, ...)
{
	(void)level;
	return MPI_SUCCESS;
}
MPI_DONE(Pcontrol);

int PMPI_Get_address(const void *location, MPI_Aint *address)
{
	*address = (MPI_Aint)location;
	return MPI_SUCCESS;
}
MPI_DONE(Get_address);

MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
	return base + disp;
}
MPI_DONE(Aint_add);

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
	return addr1 - addr2;
}
MPI_DONE(Aint_diff);

/* Collective: every rank's messages have left and none waits for another one here any more; see wm_comms_close. */
int PMPI_Finalize(void)
{
	pthread_mutex_lock(&life.lock);
	if (!wm_alive()) {
		pthread_mutex_unlock(&life.lock);
		return wm_error(NULL, __func__, MPI_ERR_OTHER, "called before MPI_Init, or twice");
	}
	pthread_mutex_unlock(&life.lock);
	PMPI_Buffer_flush();
	wm_orphans_end();
	wm_comms_close();
	atomic_store_explicit(&life.state, ENDED, memory_order_release);
	weft_fini(weft_in(FINI_WAIT));
	return MPI_SUCCESS;
}
MPI_DONE(Finalize);
