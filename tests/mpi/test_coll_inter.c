/* test_coll_inter.c - collectives between the two groups of an intercommunicator: each gets what the other has. */
#include "coll_kinds.h"

struct inter {
	MPI_Comm comm, local;
	int low;                        /* I am of the first group */
	int me, mine, theirs;           /* rank in my group; sizes */
};

static int first;                       /* whom values are of: rank r of the first group is r, of the second first + r */

static int who(const struct inter *x, int other, int r)
{
	return x->low != other ? r : first + r;
}

static void barrier(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	(void)k;
	(void)count;
	(void)seed;
	EXPECT_INT(MPI_Barrier(x->comm), MPI_SUCCESS);
}

/* The root is a rank of each group in turn. */
static void bcast(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	for (int side = 0; side < 2; side++) {
		int gives = side == x->low, root = (int)(seed % (unsigned)(gives ? x->mine : x->theirs));
		int here = !gives ? root : x->me == root ? MPI_ROOT : MPI_PROC_NULL;
		char *p = room(k, count), *q = room(k, count);

		if (here != MPI_PROC_NULL)
			put(k, q, 0, count, seed, root);
		if (here == MPI_ROOT)
			put(k, p, 0, count, seed, root);
		EXPECT_INT(MPI_Bcast(p, count, k->type, here, x->comm), MPI_SUCCESS);
		EXPECT(same(k, p, q, count));
		free(p);
		free(q);
	}
}

static void gather(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	for (int side = 0; side < 2; side++) {
		int takes = side == x->low, root = (int)(seed % (unsigned)(takes ? x->mine : x->theirs));
		int here = !takes ? root : x->me == root ? MPI_ROOT : MPI_PROC_NULL;
		long all = (long)count * x->theirs;
		char *out = room(k, count), *p = room(k, all), *q = room(k, all);

		put(k, out, 0, count, seed, who(x, 0, x->me));
		for (int i = 0; i < x->theirs && here == MPI_ROOT; i++)
			put(k, q, (long)i * count, count, seed, who(x, 1, i));
		EXPECT_INT(MPI_Gather(out, count, k->type, p, count, k->type, here, x->comm), MPI_SUCCESS);
		EXPECT(same(k, p, q, all));
		free(out);
		free(p);
		free(q);
	}
}

static void scatter(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	for (int side = 0; side < 2; side++) {
		int gives = side == x->low, root = (int)(seed % (unsigned)(gives ? x->mine : x->theirs));
		int here = !gives ? root : x->me == root ? MPI_ROOT : MPI_PROC_NULL;
		char *in = room(k, count), *q = room(k, count), *p = room(k, (long)count * x->theirs);

		for (int i = 0; i < x->theirs && here == MPI_ROOT; i++)
			put(k, p, (long)i * count, count, seed, who(x, 1, i));
		if (!gives)
			put(k, q, 0, count, seed, who(x, 0, x->me));
		EXPECT_INT(MPI_Scatter(p, count, k->type, in, count, k->type, here, x->comm), MPI_SUCCESS);
		EXPECT(same(k, in, q, count));
		free(in);
		free(p);
		free(q);
	}
}

static void allgather(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	long all = (long)count * x->theirs;
	char *out = room(k, count), *p = room(k, all), *q = room(k, all);

	put(k, out, 0, count, seed, who(x, 0, x->me));
	for (int i = 0; i < x->theirs; i++)
		put(k, q, (long)i * count, count, seed, who(x, 1, i));
	EXPECT_INT(MPI_Allgather(out, count, k->type, p, count, k->type, x->comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

static void alltoall(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	long all = (long)count * x->theirs;
	char *out = room(k, all), *p = room(k, all), *q = room(k, all);

	for (int i = 0; i < x->theirs; i++) {
		put(k, out, (long)i * count, count, seed + (unsigned)who(x, 1, i), who(x, 0, x->me));
		put(k, q, (long)i * count, count, seed + (unsigned)who(x, 0, x->me), who(x, 1, i));
	}
	EXPECT_INT(MPI_Alltoall(out, count, k->type, p, count, k->type, x->comm), MPI_SUCCESS);
	EXPECT(same(k, p, q, all));
	free(out);
	free(p);
	free(q);
}

/* Reductions: of ints alone. What the other group's @n elements come to from @from on. */
static void sums(const struct inter *x, int *q, long from, long n, unsigned seed)
{
	for (long i = 0; i < n; i++) {
		q[i] = 0;
		for (int r = 0; r < x->theirs; r++)
			q[i] += (int)(mixed(seed, (unsigned)who(x, 1, r), (unsigned)(from + i)) % 1000);
	}
}

static void numbers(const struct inter *x, int *p, long n, unsigned seed)
{
	for (long i = 0; i < n; i++)
		p[i] = (int)(mixed(seed, (unsigned)who(x, 0, x->me), (unsigned)i) % 1000);
}

static void reduce(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	if (k != kinds)
		return;
	for (int side = 0; side < 2; side++) {
		int takes = side == x->low, root = (int)(seed % (unsigned)(takes ? x->mine : x->theirs));
		int here = !takes ? root : x->me == root ? MPI_ROOT : MPI_PROC_NULL;
		int *in = (int *)room(k, count), *p = (int *)room(k, count), *q = (int *)room(k, count);

		numbers(x, in, count, seed);
		if (here == MPI_ROOT)
			sums(x, q, 0, count, seed);
		EXPECT_INT(MPI_Reduce(in, p, count, MPI_INT, MPI_SUM, here, x->comm), MPI_SUCCESS);
		EXPECT(same(k, (char *)p, (char *)q, count));
		free(in);
		free(p);
		free(q);
	}
}

static void allreduce(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	int *in = (int *)room(k, count), *p = (int *)room(k, count), *q = (int *)room(k, count);

	if (k == kinds) {
		numbers(x, in, count, seed);
		sums(x, q, 0, count, seed);
		EXPECT_INT(MPI_Allreduce(in, p, count, MPI_INT, MPI_SUM, x->comm), MPI_SUCCESS);
		EXPECT(same(k, (char *)p, (char *)q, count));
	}
	free(in);
	free(p);
	free(q);
}

static void reduce_scatter(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	int each = count / x->mine, counts[8];
	int *in = (int *)room(k, count), *p = (int *)room(k, count), *q = (int *)room(k, count);

	if (k == kinds) {
		for (int i = 0; i < x->mine; i++)
			counts[i] = i == x->mine - 1 ? count - i * each : each;
		numbers(x, in, count, seed);
		sums(x, q, (long)x->me * each, counts[x->me], seed);
		EXPECT_INT(MPI_Reduce_scatter(in, p, counts, MPI_INT, MPI_SUM, x->comm), MPI_SUCCESS);
		EXPECT(same(k, (char *)p, (char *)q, counts[x->me]));
	}
	free(in);
	free(p);
	free(q);
}

static void refused(const struct inter *x, const struct kind *k, int count, unsigned seed)
{
	int a[16] = { 0 }, b[16];

	(void)k;
	(void)count;
	(void)seed;
	MPI_Comm_set_errhandler(x->comm, MPI_ERRORS_RETURN);
	EXPECT_INT(MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, x->comm), MPI_ERR_COMM);
	EXPECT_INT(MPI_Exscan(a, b, 1, MPI_INT, MPI_SUM, x->comm), MPI_ERR_COMM);
	EXPECT_INT(MPI_Allreduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, x->comm), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, x->comm), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, x->comm), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Bcast(a, 1, MPI_INT, x->theirs, x->comm), MPI_ERR_ROOT);
	MPI_Comm_set_errhandler(x->comm, MPI_ERRORS_ARE_FATAL);
}

static void between(void (*test)(const struct inter *x, const struct kind *k, int count, unsigned seed), const char *sentence)
{
	static const int counts[] = { 0, 1, 7, 1000, 20000 }, splits[] = { 1, 3, 4, 7 };
	int rank, size;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 4; i++) {
		struct inter x = { .low = rank < splits[i] };

		if (splits[i] >= size)
			continue;
		first = splits[i];
		MPI_Comm_split(MPI_COMM_WORLD, x.low, 0, &x.local);
		MPI_Intercomm_create(x.local, 0, MPI_COMM_WORLD, x.low ? splits[i] : 0, 5, &x.comm);
		MPI_Comm_rank(x.comm, &x.me);
		MPI_Comm_size(x.comm, &x.mine);
		MPI_Comm_remote_size(x.comm, &x.theirs);
		for (int k = 0; k < KINDS; k++)
			for (int c = 0; c < 5; c++)
				test(&x, &kinds[k], counts[c], mixed((unsigned)i, (unsigned)k, (unsigned)c));
		MPI_Comm_free(&x.comm);
		MPI_Comm_free(&x.local);
	}
	case_end(sentence);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	kinds_init();
	between(barrier, "MPI_Barrier brings two groups together");
	between(bcast, "MPI_Bcast gives the other group what the root has");
	between(gather, "MPI_Gather gives the root the blocks of the other group");
	between(scatter, "MPI_Scatter gives the other group the root's blocks");
	between(allgather, "MPI_Allgather gives each group the blocks of the other");
	between(alltoall, "MPI_Alltoall gives everybody a block from each of the other group");
	between(reduce, "MPI_Reduce gives the root what the other group reduces to");
	between(allreduce, "MPI_Allreduce gives each group what the other reduces to");
	between(reduce_scatter, "MPI_Reduce_scatter divides among each group what the other reduces to");
	between(refused, "what has no meaning between two groups is refused");
	kinds_fini();
	return cases_end();
}
