/* mpix_weft.h - what weft can do and MPI has no call for. See man 3 mpix_weft.
 *
 * Communicators whose members are threads, of any processes: each thread has a handle of its own and is a rank of its own, and
 * uses it with all of MPI's calls. Members come and go between collectives.
 *
 * Memory that changes hands: a receive that gives the memory, and a send that takes it along.
 *
 * Link with -lmpix_weft. Every call answers MPI_SUCCESS or an error class, through the error handler as MPI's own do.
 */
#ifndef MPIX_WEFT_H
#define MPIX_WEFT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Communicators of threads */

typedef struct MPIX_Weft_meeting *MPIX_Weft_threads;    /* used up when the last of its threads has joined */
#define MPIX_WEFT_THREADS_NULL ((MPIX_Weft_threads)0)

typedef struct {                        /* plain bytes: it may be copied, and sent as 32 of MPI_BYTE */
	unsigned char bytes[32];
} MPIX_Weft_ticket;

/* Collective over the processes of @comm: @nthreads threads of this one are going to take part (0: *@threads is the null handle). */
int MPIX_Weft_threads_create(MPI_Comm comm, int nthreads, MPIX_Weft_threads *threads);

/* By each of these threads. Returns when all threads of all processes have joined: *@newcomm is this thread's handle, to be freed
 * by it. Ranks follow the ranks of the processes, in a process the order of joining. */
int MPIX_Weft_threads_join(MPIX_Weft_threads threads, MPI_Comm *newcomm);

/* Local: a ticket for @nthreads threads of any processes, which come in when this thread calls MPIX_Weft_comm_change with it. */
int MPIX_Weft_invite(int nthreads, MPIX_Weft_ticket *ticket);

/* By each of the threads invited. Returns when the change has happened. */
int MPIX_Weft_join(const MPIX_Weft_ticket *ticket, MPI_Comm *newcomm);

/* Collective over the threads of @comm: a new communicator of those that have @stays set, in their order, and behind them those
 * that the members have invited (@ticket NULL: nobody), by the inviter's rank and the order of joining. Waits for the invited.
 * Who does not stay gets MPI_COMM_NULL. @comm goes on. */
int MPIX_Weft_comm_change(MPI_Comm comm, int stays, const MPIX_Weft_ticket *ticket, MPI_Comm *newcomm);

/* Memory that changes hands */

/* Receives a message of any length into memory that is given: *@buf, for MPIX_Weft_free or MPIX_Weft_give_send. */
int MPIX_Weft_alloc_recv(void **buf, MPI_Count *bytes, int source, int tag, MPI_Comm comm, MPI_Status *status);

/* Sends the first @bytes at @buf, which comes from MPI_Alloc_mem or MPIX_Weft_alloc_recv, and gives it away: it is the receiver's, or freed where
 * that receives by other means. On error it is still the caller's. */
int MPIX_Weft_give_send(void *buf, MPI_Count bytes, int dest, int tag, MPI_Comm comm);
int MPIX_Weft_igive_send(void *buf, MPI_Count bytes, int dest, int tag, MPI_Comm comm, MPI_Request *request);

/* NULL is fine. Memory from MPI_Alloc_mem too; MPI_Free_mem does the same. */
int MPIX_Weft_free(void *buf);

#ifdef __cplusplus
}
#endif
#endif
