/* mark.c - MPI point to point, the same program for every MPI (mpi-lat-*, mpi-rate, mpi-tcp-*, mpi-threads-self, mpi-pairs-16).
 * usage, under mpiexec: mark SERIES pair WHAT...     two ranks, one on each of two cores; WHAT is a size in bytes: half a round
 *                                                    trip out of plain memory; alloc: of 1 MiB of MPI_Alloc_mem; rate
 *                       mark SERIES self             one rank, two of its threads, messages to itself
 *                       mark SERIES pairs N          two ranks, N threads each, 8 B one way, windows of 64 and an answer
 */
#include "link.h"

#define LARGE (1u << 20)
#define MOST_PAIRS 16
#define RUN_NS 100000000u
#define RUNS 3
#define WARM_WINDOWS 8u

static void pair_what(struct link *l, int side, void *mem, const char *what, const char *series)
{
	char name[64];
	void *given;

	if (!strcmp(what, "rate")) {
		rate_sample(l, side, mem, series);
	} else if (!strcmp(what, "alloc")) {
		MPI_Alloc_mem(LARGE, MPI_INFO_NULL, &given);
		memset(given, 1, LARGE);
		snprintf(name, sizeof(name), "%s-alloc", series);
		lat_sample(l, side, given, LARGE, name);
		MPI_Free_mem(given);
	} else {
		lat_sample(l, side, mem, strtoul(what, NULL, 0), series);
	}
}

static void self_side(int side, void *series)
{
	struct mpi_link k = mpi_link_self(side);
	void *mem = page_memory(WINDOW * 8);

	lat_sample(&k.l, side, mem, 8, series);
	rate_sample(&k.l, side, mem, series);
	free(mem);
}

/* ---- pairs of threads ---- */

struct pairs_thread {
	struct mpi_link k;
	int side;
	uint64_t windows, start, end;
	pthread_barrier_t *go;
};

static void *pairs_main(void *arg)
{
	struct pairs_thread *t = arg;
	uint64_t mem[WINDOW] = { 0 };

	pthread_barrier_wait(t->go);
	t->start = clock_ns();
	window_steps(&t->k.l, t->side, mem, sizeof(mem[0]), t->windows);
	t->end = clock_ns();
	return NULL;
}

/* How long @n pairs take for @windows windows each, ns, from the first start to the last end. Each pair has a communicator of
 * its own, the kindest case for an MPI with a lock in each. */
static uint64_t pairs_ns(MPI_Comm *comm, int rank, int n, uint64_t windows)
{
	struct pairs_thread t[MOST_PAIRS];
	uint64_t start = UINT64_MAX, end = 0;
	pthread_t id[MOST_PAIRS];
	pthread_barrier_t go;

	pthread_barrier_init(&go, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		t[i] = (struct pairs_thread){ .k = mpi_link(comm[i], !rank, i, i), .side = rank, .windows = windows, .go = &go };
		id[i] = thread_start(pairs_main, &t[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	pthread_barrier_wait(&go);
	for (int i = 0; i < n; i++) {
		pthread_join(id[i], NULL);
		start = t[i].start < start ? t[i].start : start;
		end = t[i].end > end ? t[i].end : end;
	}
	pthread_barrier_destroy(&go);
	return end - start;
}

static void pairs_sample(int rank, int n, const char *series)
{
	MPI_Comm comm[MOST_PAIRS];
	uint64_t windows = WARM_WINDOWS;
	double ns[RUNS];

	if (n < 1 || n > MOST_PAIRS)
		die("pairs: 1 to %d", MOST_PAIRS);
	for (int i = 0; i < n; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < 2; i++) { /* the second, longer one plans the rest */
		uint64_t warm = pairs_ns(comm, rank, n, windows);

		windows = windows * (uint64_t)RUN_NS / warm / (i ? 1 : 4) + 1;
		MPI_Bcast(&windows, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	}
	for (int i = 0; i < RUNS; i++)
		ns[i] = (double)pairs_ns(comm, rank, n, windows);
	if (rank == 0)
		sample(series, "rate", 8, (double)windows * WINDOW * n * 1e6 / median(ns, RUNS));
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	bool pair = !strcmp(what, "pair"), self = !strcmp(what, "self"), pairs = !strcmp(what, "pairs");
	int rank;

	if (!pair && !self && !(pairs && argc == 4))
		die("usage: mark SERIES pair WHAT... | self | pairs N");
	rank = mpi_start(&argc, &argv, !pair);
	if (self) {
		pair_run(self_side, argv[1]);
	} else {
		cpu_pin(rank);
		if (pairs)
			pairs_sample(rank, atoi(argv[3]), argv[1]);
	}
	if (pair) {
		struct mpi_link k = mpi_link(MPI_COMM_WORLD, !rank, 1, 1);
		void *mem = page_memory(LARGE);

		for (int i = 3; i < argc; i++)
			pair_what(&k.l, rank, mem, argv[i], argv[1]);
		free(mem);
	}
	MPI_Finalize();
	return 0;
}
