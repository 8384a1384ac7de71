/* coll.c - how long collectives take: median of many batches, in microseconds. Compiles with any MPI.
 *
 *   mpiexec -n 8 coll [NAME...]
 *
 * A batch is as many calls as take about BATCH_US, the same number at every rank, begun together; its time is the longest that
 * a rank took. What arrives is checked once before the clock starts.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 101             /* fewer where one takes long */
#define BATCH_US 3000
#define ROW_US 1000000

static int rank, size;
static char *a, *b;

static int barrier(int n)
{
	(void)n;
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int allreduce(int n)
{
	return MPI_Allreduce(a, b, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int reduce(int n)
{
	return MPI_Reduce(a, b, n / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static int bcast(int n)
{
	return MPI_Bcast(a, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int alltoall(int n)
{
	return MPI_Alltoall(a, n, MPI_BYTE, b, n, MPI_BYTE, MPI_COMM_WORLD);
}

static int allgather(int n)
{
	return MPI_Allgather(a, n, MPI_BYTE, b, n, MPI_BYTE, MPI_COMM_WORLD);
}

static int gather(int n)
{
	return MPI_Gather(a, n, MPI_BYTE, b, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int scatter(int n)
{
	return MPI_Scatter(a, n, MPI_BYTE, b, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int scan(int n)
{
	return MPI_Scan(a, b, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct row {
	const char *name;
	int (*call)(int n);
	int n;                  /* bytes: of the whole, or to each */
} rows[] = {
	{ "barrier", barrier, 0 },
	{ "allreduce-8", allreduce, 8 },
	{ "allreduce-64k", allreduce, 64 << 10 },
	{ "allreduce-1m", allreduce, 1 << 20 },
	{ "reduce-8", reduce, 8 },
	{ "reduce-64k", reduce, 64 << 10 },
	{ "bcast-8", bcast, 8 },
	{ "bcast-64k", bcast, 64 << 10 },
	{ "bcast-1m", bcast, 1 << 20 },
	{ "alltoall-8", alltoall, 8 },
	{ "alltoall-4k", alltoall, 4 << 10 },
	{ "alltoall-64k", alltoall, 64 << 10 },
	{ "allgather-8", allgather, 8 },
	{ "allgather-4k", allgather, 4 << 10 },
	{ "gather-4k", gather, 4 << 10 },
	{ "scatter-4k", scatter, 4 << 10 },
	{ "scan-8", scan, 8 },
};

static void check(const struct row *r)
{
	double *x = (double *)a, *y = (double *)b;

	memset(a, rank == 0 ? 7 : 0, (size_t)r->n * (size_t)size);
	for (int i = 0; i < r->n / 8; i++)
		if (r->call != bcast)
			x[i] = rank + 1;
	r->call(r->n);
	if ((r->call == allreduce && y[r->n / 8 - 1] != size * (size + 1) / 2) || (r->call == bcast && a[r->n - 1] != 7) ||
	    (r->call == allgather && memcmp(b, &(double){ 1 }, 8))) {
		fprintf(stderr, "%s: wrong result at rank %d\n", r->name, rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static double batch(const struct row *r, int calls)
{
	double t, longest;

	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (int i = 0; i < calls; i++)
		r->call(r->n);
	t = MPI_Wtime() - t;
	MPI_Allreduce(&t, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return longest * 1e6 / calls;
}

static int compare(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;

	return d < 0 ? -1 : d > 0;
}

static void measure(const struct row *r)
{
	double us[BATCHES], t;
	int calls = 1, batches;

	check(r);
	batch(r, 2);
	t = batch(r, 2);
	while (t * calls < BATCH_US && calls < 1000)
		calls *= 2;
	t = batch(r, calls) * calls;            /* the same number at every rank */
	batches = t * BATCHES < ROW_US ? BATCHES : t * 5 > ROW_US ? 5 : (int)(ROW_US / t);
	for (int i = 0; i < batches; i++)
		us[i] = batch(r, calls);
	qsort(us, (size_t)batches, sizeof(*us), compare);
	if (rank == 0) {
		printf("%-16s %10.2f us   (quartiles %.2f %.2f)\n", r->name, us[batches / 2], us[batches / 4], us[batches * 3 / 4]);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	a = calloc((size_t)size, 1 << 20);
	b = calloc((size_t)size, 1 << 20);
	if (!a || !b)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int wanted = argc < 2;

		for (int k = 1; k < argc; k++)
			wanted |= !strncmp(argv[k], rows[i].name, strlen(argv[k]));
		if (wanted)
			measure(&rows[i]);
	}
	free(a);
	free(b);
	return MPI_Finalize();
}
