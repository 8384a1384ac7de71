/* mpi.c - MPI point to point, measured as bench/measure.h says.
 * usage, under mpiexec: mpi SERIES procs      two ranks, one on each of two cores
 *                       mpi SERIES threads    one rank, two of its threads, messages to itself
 */
#include "../mpi/link.h"

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
	struct mpi_link k = mpi_link_self(side);

	side_measure(&k.l, side, series);
}

int main(int argc, char **argv)
{
	bool threads = argc > 2 && !strcmp(argv[2], "threads");
	int rank;

	if (argc != 3)
		die("usage: mpi SERIES procs|threads");
	rank = mpi_start(&argc, &argv, threads);
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
