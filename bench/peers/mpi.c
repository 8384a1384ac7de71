/* mpi.c - MPI point to point, measured as bench/measure.h says.
 * usage, under mpiexec: mpi SERIES procs      two ranks, one on each of two cores
 *                       mpi SERIES threads    one rank, two of its threads, messages to itself
 */
#include "../measure.h"
#include <mpi.h>

struct mpi_link {
	struct link l;
	MPI_Comm comm;
	int peer, tag_out, tag_in;
};

static void mpi_send(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;

	MPI_Send(mem, (int)n, MPI_BYTE, k->peer, k->tag_out, k->comm);
}

static void mpi_recv(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;

	MPI_Recv(mem, (int)n, MPI_BYTE, k->peer, k->tag_in, k->comm, MPI_STATUS_IGNORE);
}

static void mpi_send_window(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;
	MPI_Request req[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(mem, (int)n, MPI_BYTE, k->peer, k->tag_out, k->comm, &req[i]);
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
}

static void mpi_recv_window(struct link *l, void *mem, size_t n)
{
	struct mpi_link *k = (struct mpi_link *)l;
	MPI_Request req[WINDOW];
	char *to = mem;

	for (int i = 0; i < WINDOW; i++, to += n)
		MPI_Irecv(to, (int)n, MPI_BYTE, k->peer, k->tag_in, k->comm, &req[i]);
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
}

static struct mpi_link mpi_link(MPI_Comm comm, int peer, int tag_out, int tag_in)
{
	return (struct mpi_link){ .l = { .send = mpi_send,
					 .recv = mpi_recv,
					 .send_window = mpi_send_window,
					 .recv_window = mpi_recv_window },
				  .comm = comm,
				  .peer = peer,
				  .tag_out = tag_out,
				  .tag_in = tag_in };
}

static void side_measure(struct link *l, int side, const char *series)
{
	static const size_t sizes[] = { 8, 4096, 65536, 1u << 20 };
	void *mem = page_memory(1u << 20);

	for (size_t i = 0; i < COUNT(sizes); i++)
		lat_sample(l, side, mem, sizes[i], series);
	rate_sample(l, side, mem, series);
	free(mem);
}

static void thread_side(int side, void *series)
{
	struct mpi_link k = mpi_link(MPI_COMM_SELF, 0, 1 + side, 2 - side);

	side_measure(&k.l, side, series);
}

int main(int argc, char **argv)
{
	bool threads = argc > 2 && !strcmp(argv[2], "threads");
	int rank, granted;

	if (argc != 3)
		die("usage: mpi SERIES procs|threads");
	bench_start();
	MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &granted);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (threads && granted != MPI_THREAD_MULTIPLE)
		die("this MPI has no MPI_THREAD_MULTIPLE");
	if (threads) {
		pair_run(thread_side, argv[1]);
	} else {
		struct mpi_link k = mpi_link(MPI_COMM_WORLD, !rank, 1, 1);

		cpu_pin(rank);
		side_measure(&k.l, rank, argv[1]);
	}
	MPI_Finalize();
	return 0;
}
