/* test_coll.c - collectives that move elements: every member has what it is to have, and nothing else has changed. */
#include <sched.h>

#include "coll_kinds.h"

#define START                                      \
	int me, n;                                 \
	MPI_Comm_rank(comm, &me);                  \
	MPI_Comm_size(comm, &n);                   \
	(void)root

/* Odd ranks see the same elements as plain ints. */
static const struct kind *mine(const struct kind *k, int me, int *count)
{
	if (me % 2 == 0 || k->type == MPI_DOUBLE)
		return k;
	*count *= k->units;
	return &kinds[0];
}

static void bcast(MPI_Comm comm, const struct kind *kind, int count, int root, unsigned seed)
{
	START;
	const struct kind *k = mine(kind, me, &count);
	char *p = room(k, count), *q = room(k, count);

	put(k, q, 0, count, seed, root);
	if (me == root)
		put(k, p, 0, count, seed, root);
	EXPECT_INT(MPI_Bcast(p, count, k->type, root, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, count));
	free(p);
	free(q);
}

static void gather(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int sends = count;
	const struct kind *s = mine(k, me, &sends);
	char *out = room(s, sends), *p = room(k, (long)count * n), *q = room(k, (long)count * n);
	int here = me == root && seed % 2;      /* in place */

	put(s, out, 0, sends, seed, me);
	if (me == root)
		for (int i = 0; i < n; i++)
			put(k, q, (long)i * count, count, seed, i);
	if (here)
		put(k, p, (long)me * count, count, seed, me);
	EXPECT_INT(MPI_Gather(here ? MPI_IN_PLACE : out, sends, s->type, p, count, k->type, root, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, (long)count * n));
	free(out);
	free(p);
	free(q);
}

static void scatter(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int takes = count;
	const struct kind *s = mine(k, me, &takes);
	char *in = room(s, takes), *q = room(s, takes), *p = room(k, (long)count * n);
	int here = me == root && seed % 2;

	for (int i = 0; i < n; i++)
		put(k, p, (long)i * count, count, seed, i);
	if (!here)
		put(s, q, 0, takes, seed, me);
	EXPECT_INT(MPI_Scatter(p, count, k->type, here ? MPI_IN_PLACE : in, takes, s->type, root, comm), MPI_SUCCESS);
	EXPECT(same(s, in, q, takes));
	free(in);
	free(p);
	free(q);
}

/* Blocks of each rank: differing lengths, with a gap between, from the last rank to the first. */
static long spread(int n, int count, int *counts, int *displs)
{
	long at = 0;

	for (int i = n - 1; i >= 0; i--) {
		counts[i] = i % 3 == 1 ? 0 : count / (i + 1);
		displs[i] = (int)at;
		at += counts[i] + 2;
	}
	return at;
}

static void gatherv(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int counts[8], displs[8];
	long all = spread(n, count, counts, displs);
	char *out = room(k, counts[me]), *p = room(k, all), *q = room(k, all);
	int here = me == root && seed % 2;

	put(k, out, 0, counts[me], seed, me);
	for (int i = 0; i < n && me == root; i++)
		put(k, q, displs[i], counts[i], seed, i);
	if (here)
		put(k, p, displs[me], counts[me], seed, me);
	EXPECT_INT(MPI_Gatherv(here ? MPI_IN_PLACE : out, counts[me], k->type, p, me == root ? counts : NULL,
			       me == root ? displs : NULL, k->type, root, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

static void scatterv(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	MPI_Count counts_c[8];
	MPI_Aint displs_c[8];
	int counts[8], displs[8];
	long all = spread(n, count, counts, displs);
	char *in = room(k, counts[me]), *q = room(k, counts[me]), *p = room(k, all);

	for (int i = 0; i < n; i++) {
		put(k, p, displs[i], counts[i], seed, i);
		counts_c[i] = counts[i];
		displs_c[i] = displs[i];
	}
	put(k, q, 0, counts[me], seed, me);
	EXPECT_INT(MPI_Scatterv_c(p, counts_c, displs_c, k->type, in, counts[me], k->type, root, comm), MPI_SUCCESS);
	EXPECT(same(k, in, q, counts[me]));
	free(in);
	free(p);
	free(q);
}

static void allgather(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int sends = count;
	const struct kind *s = mine(k, me, &sends);
	char *out = room(s, sends), *p = room(k, (long)count * n), *q = room(k, (long)count * n);
	int here = seed % 2;

	put(s, out, 0, sends, seed, me);
	for (int i = 0; i < n; i++)
		put(k, q, (long)i * count, count, seed, i);
	if (here)
		put(k, p, (long)me * count, count, seed, me);
	EXPECT_INT(MPI_Allgather(here ? MPI_IN_PLACE : out, sends, s->type, p, count, k->type, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, (long)count * n));
	free(out);
	free(p);
	free(q);
}

static void allgatherv(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int counts[8], displs[8];
	long all = spread(n, count, counts, displs);
	char *out = room(k, counts[me]), *p = room(k, all), *q = room(k, all);
	int here = seed % 2;

	put(k, out, 0, counts[me], seed, me);
	for (int i = 0; i < n; i++)
		put(k, q, displs[i], counts[i], seed, i);
	if (here)
		put(k, p, displs[me], counts[me], seed, me);
	EXPECT_INT(MPI_Allgatherv(here ? MPI_IN_PLACE : out, counts[me], k->type, p, counts, displs, k->type, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

static void alltoall(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	long all = (long)(count /= n > 2 && count > 1000 ? 4 : 1) * n;
	char *out = room(k, all), *p = room(k, all), *q = room(k, all);
	int here = seed % 2;

	for (int i = 0; i < n; i++) {
		put(k, here ? p : out, (long)i * count, count, seed + (unsigned)i, me);
		put(k, q, (long)i * count, count, seed + (unsigned)me, i);
	}
	EXPECT_INT(MPI_Alltoall(here ? MPI_IN_PLACE : out, count, k->type, p, count, k->type, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

/* Rank i sends (i + j) % 4 shares to rank j, which is as many as it receives from there. */
static void alltoallv(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int counts[8], displs[8], here = seed % 2;
	char *out, *p, *q;
	long all = 0;

	for (int i = 0; i < n; i++) {
		counts[i] = count / 4 * ((me + i) % 4);
		displs[i] = (int)all;
		all += counts[i] + 1;
	}
	out = room(k, all), p = room(k, all), q = room(k, all);
	for (int i = 0; i < n; i++) {
		put(k, here ? p : out, displs[i], counts[i], seed + (unsigned)i, me);
		put(k, q, displs[i], counts[i], seed + (unsigned)me, i);
	}
	EXPECT_INT(MPI_Alltoallv(here ? MPI_IN_PLACE : out, counts, displs, k->type, p, counts, displs, k->type, comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

/* Each pair agrees on a kind; one side of it may see plain ints. */
static void alltoallw(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int counts[8], displs[8];
	MPI_Datatype types[8];
	char *out, *p, *q;
	long bytes = 0;

	for (int i = 0; i < n; i++) {
		const struct kind *w = (me + i) % 2 ? k : &kinds[3];

		counts[i] = count / (1 + (me + i) % 3);
		displs[i] = (int)bytes;
		types[i] = counts[i] ? w->type : MPI_DATATYPE_NULL;
		bytes += (long)counts[i] * w->extent + 8;
	}
	out = room(&kinds[0], bytes / 4), p = room(&kinds[0], bytes / 4), q = room(&kinds[0], bytes / 4);
	for (int i = 0; i < n; i++) {
		const struct kind *w = (me + i) % 2 ? k : &kinds[3];

		put(w, out + displs[i], 0, counts[i], seed + (unsigned)i, me);
		put(w, q + displs[i], 0, counts[i], seed + (unsigned)me, i);
	}
	EXPECT_INT(MPI_Alltoallw(out, counts, displs, types, p, counts, displs, types, comm), MPI_SUCCESS);
	EXPECT(same(&kinds[0], p, q, bytes / 4));
	free(out);
	free(p);
	free(q);
}

static void arguments(void)
{
	int size, x[8] = { 0 }, y[8] = { 0 };
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Datatype raw;

	MPI_Comm_size(w, &size);
	MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Type_vector(2, 1, 2, MPI_INT, &raw);
	EXPECT_INT(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
	EXPECT_INT(MPI_Bcast(x, 1, MPI_INT, size, w), MPI_ERR_ROOT);
	EXPECT_INT(MPI_Bcast(x, 1, MPI_INT, -1, w), MPI_ERR_ROOT);
	EXPECT_INT(MPI_Bcast(x, -1, MPI_INT, 0, w), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Bcast(x, 1, MPI_DATATYPE_NULL, 0, w), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Bcast(x, 1, raw, 0, w), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Bcast(NULL, 1, MPI_INT, 0, w), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, w), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, MPI_ROOT, w), MPI_ERR_ROOT);
	EXPECT_INT(MPI_Gather(x, -1, MPI_INT, y, 1, MPI_INT, 0, w), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Scatter(x, 1, MPI_INT, y, -1, MPI_INT, 0, w), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Allgather(x, 1, MPI_INT, y, 1, MPI_DATATYPE_NULL, w), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Allgather(x, 1, MPI_INT, x, 1, MPI_INT, w), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Allgatherv(x, 1, MPI_INT, y, NULL, NULL, MPI_INT, w), MPI_ERR_ARG);
	EXPECT_INT(MPI_Alltoall(x, 1, MPI_INT, NULL, 1, MPI_INT, w), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Alltoallv(x, NULL, NULL, MPI_INT, y, NULL, NULL, MPI_INT, w), MPI_ERR_ARG);
	EXPECT_INT(MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, 77, w), MPI_ERR_ROOT);
	EXPECT_INT(MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, w), MPI_ERR_OP);
	EXPECT_INT(MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_BAND, w), MPI_ERR_OP);
	EXPECT_INT(MPI_Allreduce(x, x, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Scan(x, y, -1, MPI_INT, MPI_SUM, w), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Exscan(x, y, 1, MPI_INT, MPI_MINLOC, w), MPI_ERR_OP);
	EXPECT_INT(MPI_Reduce_scatter(x, y, NULL, MPI_INT, MPI_SUM, w), MPI_ERR_ARG);
	EXPECT_INT(MPI_Reduce_scatter_block(x, y, -1, MPI_INT, MPI_SUM, w), MPI_ERR_COUNT);
	MPI_Type_free(&raw);
	MPI_Comm_set_errhandler(w, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	case_end("wrong arguments are told before anything is sent, and the communicator works on");
}

static void lengths(void)
{
	int x[4] = { 0 }, r, rank;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	r = MPI_Bcast(x, rank == 0 ? 4 : 2, MPI_INT, 0, comm);
	EXPECT_INT(r, rank == 0 ? MPI_SUCCESS : r == MPI_ERR_OTHER ? r : MPI_ERR_TRUNCATE);
	r = MPI_Bcast(x, rank == 0 ? 2 : 4, MPI_INT, 0, comm);
	EXPECT_INT(r, rank == 0 ? MPI_SUCCESS : MPI_ERR_OTHER);
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	MPI_Comm_free(&comm);
	case_end("members that disagree on the length get an error, and the next collective works");
}

static void barriers(int n)
{
	for (int i = 0; i < n; i++)
		EXPECT_INT(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
}

/* All begin on one core, where some may be asked to leave it (coll_even.c); then all are bound to it. */
static void places(void)
{
	cpu_set_t all, one, after;
	int first = 0;

	EXPECT_INT(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	for (int bound = 0; bound < 2; bound++) {
		EXPECT_INT(sched_setaffinity(0, sizeof(one), &one), 0);
		barriers(10);
		if (!bound)
			EXPECT_INT(sched_setaffinity(0, sizeof(all), &all), 0);
		barriers(500);
		EXPECT_INT(sched_getaffinity(0, sizeof(after), &after), 0);
		EXPECT(CPU_EQUAL(&after, bound ? &one : &all));
		EXPECT(!bound || sched_getcpu() == first);
	}
	EXPECT_INT(sched_setaffinity(0, sizeof(all), &all), 0);
	case_end("MPI_Barrier leaves everybody the cores that it may run on");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	kinds_init();
	comms_init();
	everywhere(bcast, KINDS, 1, "MPI_Bcast gives everybody what the root has");
	everywhere(gather, KINDS, 1, "MPI_Gather gives the root everybody's block");
	everywhere(gatherv, KINDS, 1, "MPI_Gatherv gives the root blocks of differing lengths");
	everywhere(scatter, KINDS, 1, "MPI_Scatter gives everybody its block of the root's");
	everywhere(scatterv, KINDS, 1, "MPI_Scatterv gives everybody a block of its own length");
	everywhere(allgather, KINDS, 0, "MPI_Allgather gives everybody everybody's block");
	everywhere(allgatherv, KINDS, 0, "MPI_Allgatherv gives everybody blocks of differing lengths");
	everywhere(alltoall, KINDS, 0, "MPI_Alltoall gives everybody the block for it from everybody");
	everywhere(alltoallv, KINDS, 0, "MPI_Alltoallv gives everybody blocks of differing lengths from everybody");
	everywhere(alltoallw, KINDS, 0, "MPI_Alltoallw gives everybody blocks of differing types from everybody");
	arguments();
	lengths();
	places();
	comms_fini();
	kinds_fini();
	return cases_end();
}
