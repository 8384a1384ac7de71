/* link.h - MPI as a link, measured as bench/measure.h says; compiles with any MPI.
 *
 * send     MPI_Send and MPI_Recv; windows: 64 of MPI_Isend or MPI_Irecv, then one MPI_Waitall
 */
#ifndef BENCH_MPI_LINK_H
#define BENCH_MPI_LINK_H
#include "../measure.h"
#include <mpi.h>

struct mpi_link {
	struct link l;
	MPI_Comm comm;
	int peer, tag_out, tag_in;
};

static inline void mpi_link_send(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;

	MPI_Send(mem, (int)n, MPI_BYTE, k->peer, k->tag_out, k->comm);
}

static inline void mpi_link_recv(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;

	MPI_Recv(mem, (int)n, MPI_BYTE, k->peer, k->tag_in, k->comm, MPI_STATUS_IGNORE);
}

static inline void mpi_link_send_window(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;
	MPI_Request req[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(mem, (int)n, MPI_BYTE, k->peer, k->tag_out, k->comm, &req[i]);
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
}

static inline void mpi_link_recv_window(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;
	MPI_Request req[WINDOW];
	char *to = mem;

	for (int i = 0; i < WINDOW; i++, to += n)
		MPI_Irecv(to, (int)n, MPI_BYTE, k->peer, k->tag_in, k->comm, &req[i]);
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
}

static inline struct mpi_link mpi_link(MPI_Comm comm, int peer, int tag_out, int tag_in)
{
	return (struct mpi_link){ .l = { .send = mpi_link_send,
					 .recv = mpi_link_recv,
					 .send_window = mpi_link_send_window,
					 .recv_window = mpi_link_recv_window },
				  .comm = comm,
				  .peer = peer,
				  .tag_out = tag_out,
				  .tag_in = tag_in };
}

/* Two threads of one rank: what side 0 sends has tag 1, what side 1 sends tag 2. */
static inline struct mpi_link mpi_link_self(int side)
{
	return mpi_link(MPI_COMM_SELF, 0, 1 + side, 2 - side);
}

/* Returns my rank. */
static inline int mpi_start(int *argc, char ***argv, bool threads)
{
	int rank, granted;

	bench_start();
	MPI_Init_thread(argc, argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &granted);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (threads && granted != MPI_THREAD_MULTIPLE)
		die("this MPI has no MPI_THREAD_MULTIPLE");
	return rank;
}

#endif
