/* test_op.c - reductions: every collective that computes, with operations that commute and one that does not, and every
 * predefined operation on every type that it is for.
 */
#include <complex.h>
#include <limits.h>

#include "coll_kinds.h"

#define START                                      \
	int me, n;                                 \
	MPI_Comm_rank(comm, &me);                  \
	MPI_Comm_size(comm, &n);                   \
	(void)root

/* Maps x -> a x + b modulo a prime, one after the other: does not commute. There are holes between and after the numbers. */

#define PRIME 10007

struct map {
	int a, hole, b, end;
};

static MPI_Datatype map_type;
static MPI_Op then_op, then_large_op, max_op;

static struct map then(struct map f, struct map g)
{
	struct map h = g;

	h.a = f.a * g.a % PRIME;
	h.b = (g.a * f.b + g.b) % PRIME;
	return h;
}

static void then_call(void *in, void *inout, int *len, MPI_Datatype *type)
{
	struct map *f = in, *g = inout;

	if (*type != map_type)
		abort();
	for (int i = 0; i < *len; i++)
		g[i] = then(f[i], g[i]);
}

static void then_large_call(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
	int n = (int)*len;

	then_call(in, inout, &n, type);
}

/* A user operation on doubles that commutes. */
static void max_call(void *in, void *inout, int *len, MPI_Datatype *type)
{
	double *x = in, *y = inout;

	(void)type;
	for (int i = 0; i < *len; i++)
		y[i] = x[i] > y[i] ? x[i] : y[i];
}

/* Three ways to reduce: ints that are added, doubles of which the largest is sought by a user's operation, and maps. */

struct way {
	MPI_Datatype type;
	MPI_Op op;
	int extent;
};

static struct way ways[4];

static void value(int way, char *p, unsigned seed, int who, long i)
{
	unsigned v = mixed(seed, (unsigned)who, (unsigned)i);
	int x = (int)(v % 1000);
	double d = (int)v;

	switch (way) {
	case 0:
		memcpy(p, &x, sizeof(x));
		break;
	case 1:
		memcpy(p, &d, sizeof(d));
		break;
	default:
		((struct map *)p)->a = 1 + (int)(v % (PRIME - 1));
		((struct map *)p)->b = (int)(v >> 8) % PRIME;
	}
}

static void combine(int way, char *acc, const char *right)
{
	struct map f, g;
	double d, e;
	int x, y;

	switch (way) {
	case 0:
		memcpy(&x, acc, sizeof(x));
		memcpy(&y, right, sizeof(y));
		x += y;
		memcpy(acc, &x, sizeof(x));
		break;
	case 1:
		memcpy(&d, acc, sizeof(d));
		memcpy(&e, right, sizeof(e));
		d = d > e ? d : e;
		memcpy(acc, &d, sizeof(d));
		break;
	default:
		memcpy(&f, acc, sizeof(f));
		memcpy(&g, right, sizeof(g));
		f = then(f, g);
		((struct map *)acc)->a = f.a;
		((struct map *)acc)->b = f.b;
	}
}

static char *ways_room(int way, long count)
{
	char *p = malloc((size_t)(count * ways[way].extent) + 64);

	if (!p)
		abort();
	memset(p, 0xa5, (size_t)(count * ways[way].extent) + 64);
	return p;
}

static void fill(int way, char *p, long count, unsigned seed, int who)
{
	for (long i = 0; i < count; i++)
		value(way, p + i * ways[way].extent, seed, who, i);
}

/* What ranks [0, n) reduce to, of elements [@from, @from + @count). */
static void expect(int way, char *q, long from, long count, unsigned seed, int n)
{
	char one[64];

	for (long i = 0; i < count; i++) {
		value(way, q + i * ways[way].extent, seed, 0, from + i);
		for (int r = 1; r < n; r++) {
			memset(one, 0xa5, sizeof(one));
			value(way, one, seed, r, from + i);
			combine(way, q + i * ways[way].extent, one);
		}
	}
}

static int ways_same(int way, const char *p, const char *q, long count)
{
	return !memcmp(p, q, (size_t)(count * ways[way].extent) + 64);
}

static int way_of(const struct kind *k)
{
	return (int)(k - kinds);
}

static void reduce(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = me == root && seed % 2;
	char *in = ways_room(way, count), *p = ways_room(way, count), *q = ways_room(way, count);

	fill(way, here ? p : in, count, seed, me);
	if (me == root)
		expect(way, q, 0, count, seed, n);
	EXPECT_INT(MPI_Reduce(here ? MPI_IN_PLACE : in, me == root ? p : NULL, count, ways[way].type, ways[way].op, root, comm),
		   MPI_SUCCESS);
	EXPECT(ways_same(way, p, q, count));
	free(in);
	free(p);
	free(q);
}

static void allreduce(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = seed % 2;
	char *in = ways_room(way, count), *p = ways_room(way, count), *q = ways_room(way, count);

	fill(way, here ? p : in, count, seed, me);
	expect(way, q, 0, count, seed, n);
	EXPECT_INT(MPI_Allreduce(here ? MPI_IN_PLACE : in, p, count, ways[way].type, ways[way].op, comm), MPI_SUCCESS);
	EXPECT(ways_same(way, p, q, count));
	free(in);
	free(p);
	free(q);
}

static void scan(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = seed % 2;
	char *in = ways_room(way, count), *p = ways_room(way, count), *q = ways_room(way, count);

	fill(way, here ? p : in, count, seed, me);
	expect(way, q, 0, count, seed, me + 1);
	EXPECT_INT(MPI_Scan(here ? MPI_IN_PLACE : in, p, count, ways[way].type, ways[way].op, comm), MPI_SUCCESS);
	EXPECT(ways_same(way, p, q, count));
	free(in);
	free(p);
	free(q);
}

static void exscan(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = seed % 2;
	char *in = ways_room(way, count), *p = ways_room(way, count), *q = ways_room(way, count);

	fill(way, here ? p : in, count, seed, me);
	if (me)
		expect(way, q, 0, count, seed, me);
	else if (here)
		fill(way, q, count, seed, me);
	EXPECT_INT(MPI_Exscan(here ? MPI_IN_PLACE : in, p, count, ways[way].type, ways[way].op, comm), MPI_SUCCESS);
	EXPECT(ways_same(way, p, q, count));
	free(in);
	free(p);
	free(q);
}

static void reduce_scatter_block(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = seed % 2, each = count > 1000 ? count / n : count;
	char *in = ways_room(way, (long)each * n), *p = ways_room(way, (long)each * n), *q = ways_room(way, each);

	fill(way, here ? p : in, (long)each * n, seed, me);
	expect(way, q, (long)me * each, each, seed, n);
	EXPECT_INT(MPI_Reduce_scatter_block(here ? MPI_IN_PLACE : in, p, each, ways[way].type, ways[way].op, comm), MPI_SUCCESS);
	EXPECT(!memcmp(p, q, (size_t)each * (size_t)ways[way].extent) || (here && way > 1));
	for (int i = 0; i < each && here && way > 1; i++)       /* holes there may be those of another element */
		EXPECT(((struct map *)p)[i].a == ((struct map *)q)[i].a && ((struct map *)p)[i].b == ((struct map *)q)[i].b);
	free(in);
	free(p);
	free(q);
}

static void reduce_scatter(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed)
{
	START;
	int way = way_of(k), here = seed % 2, counts[8];
	long all = 0, before = 0;
	char *in, *p, *q;

	for (int i = 0; i < n; i++) {
		counts[i] = i % 3 == 1 ? 0 : count / (i + 1);
		before += i < me ? counts[i] : 0;
		all += counts[i];
	}
	in = ways_room(way, all), p = ways_room(way, all), q = ways_room(way, counts[me]);
	fill(way, here ? p : in, all, seed, me);
	expect(way, q, before, counts[me], seed, n);
	EXPECT_INT(MPI_Reduce_scatter(here ? MPI_IN_PLACE : in, p, counts, ways[way].type, ways[way].op, comm), MPI_SUCCESS);
	EXPECT(!memcmp(p, q, (size_t)counts[me] * (size_t)ways[way].extent));
	free(in);
	free(p);
	free(q);
}

/* Predefined operations: MPI_Reduce_local on two elements, against a plain computation */

#define LOCAL(T, type, op, x, y, result)                                                                    \
	do {                                                                                                \
		T in_[3] = { (T)(x), (T)(x), (T)(x) }, io_[3] = { (T)(y), (T)(y), (T)(y) };                    \
		EXPECT_INT(MPI_Reduce_local(in_, io_, 2, type, op), MPI_SUCCESS);                             \
		EXPECT(io_[0] == (T)(result) && io_[1] == (T)(result) && io_[2] == (T)(y));                    \
	} while (0)

#define ORDERED(T, type)                                                                                    \
	do {                                                                                                \
		LOCAL(T, type, MPI_MIN, 5, 9, 5);                                                           \
		LOCAL(T, type, MPI_MAX, 5, 9, 9);                                                           \
		LOCAL(T, type, MPI_MAX, 9, 5, 9);                                                           \
	} while (0)

#define ARITHMETIC(T, type)                                                                                 \
	do {                                                                                                \
		LOCAL(T, type, MPI_SUM, 5, 9, 14);                                                          \
		LOCAL(T, type, MPI_PROD, 5, 9, 45);                                                         \
	} while (0)

#define LOGIC(T, type)                                                                                      \
	do {                                                                                                \
		LOCAL(T, type, MPI_LAND, 5, 9, 1);                                                          \
		LOCAL(T, type, MPI_LAND, 5, 0, 0);                                                          \
		LOCAL(T, type, MPI_LOR, 0, 9, 1);                                                           \
		LOCAL(T, type, MPI_LOR, 0, 0, 0);                                                           \
		LOCAL(T, type, MPI_LXOR, 5, 9, 0);                                                          \
		LOCAL(T, type, MPI_LXOR, 5, 0, 1);                                                          \
	} while (0)

#define BITS(T, type)                                                                                       \
	do {                                                                                                \
		LOCAL(T, type, MPI_BAND, 5, 9, 1);                                                          \
		LOCAL(T, type, MPI_BOR, 5, 9, 13);                                                          \
		LOCAL(T, type, MPI_BXOR, 5, 9, 12);                                                         \
	} while (0)

#define INTEGER(T, type)                                                                                    \
	do {                                                                                                \
		ORDERED(T, type);                                                                           \
		ARITHMETIC(T, type);                                                                        \
		BITS(T, type);                                                                              \
		LOCAL(T, type, MPI_REPLACE, 5, 9, 5);                                                       \
		LOCAL(T, type, MPI_NO_OP, 5, 9, 9);                                                         \
	} while (0)

#define PAIR(V, I, type)                                                                                    \
	do {                                                                                                \
		struct pair {                                                                               \
			V value;                                                                            \
			I place;                                                                            \
		} in_[2] = { { 3, 7 }, { 4, 2 } }, io_[2] = { { 3, 5 }, { 9, 1 } };                           \
		EXPECT_INT(MPI_Reduce_local(in_, io_, 2, type, MPI_MINLOC), MPI_SUCCESS);                     \
		EXPECT(io_[0].value == 3 && io_[0].place == 5 && io_[1].value == 4 && io_[1].place == 2);       \
		io_[1] = (struct pair){ 3, 1 };                                                              \
		EXPECT_INT(MPI_Reduce_local(in_, io_, 2, type, MPI_MAXLOC), MPI_SUCCESS);                     \
		EXPECT(io_[0].value == 3 && io_[0].place == 5 && io_[1].value == 4 && io_[1].place == 2);       \
	} while (0)

static void c_types(void)
{
	INTEGER(signed char, MPI_SIGNED_CHAR);
	INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
	INTEGER(short, MPI_SHORT);
	INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
	INTEGER(int, MPI_INT);
	INTEGER(unsigned, MPI_UNSIGNED);
	INTEGER(long, MPI_LONG);
	INTEGER(unsigned long, MPI_UNSIGNED_LONG);
	INTEGER(long long, MPI_LONG_LONG);
	INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
	INTEGER(int8_t, MPI_INT8_T);
	INTEGER(uint8_t, MPI_UINT8_T);
	INTEGER(int16_t, MPI_INT16_T);
	INTEGER(uint16_t, MPI_UINT16_T);
	INTEGER(int32_t, MPI_INT32_T);
	INTEGER(uint32_t, MPI_UINT32_T);
	INTEGER(int64_t, MPI_INT64_T);
	INTEGER(uint64_t, MPI_UINT64_T);
	INTEGER(MPI_Aint, MPI_AINT);
	INTEGER(MPI_Count, MPI_COUNT);
	INTEGER(MPI_Offset, MPI_OFFSET);
	LOGIC(signed char, MPI_SIGNED_CHAR);
	LOGIC(unsigned char, MPI_UNSIGNED_CHAR);
	LOGIC(short, MPI_SHORT);
	LOGIC(int, MPI_INT);
	LOGIC(unsigned, MPI_UNSIGNED);
	LOGIC(long, MPI_LONG);
	LOGIC(unsigned long long, MPI_UNSIGNED_LONG_LONG);
	LOGIC(_Bool, MPI_C_BOOL);
	LOGIC(_Bool, MPI_CXX_BOOL);
	BITS(unsigned char, MPI_BYTE);
	ORDERED(float, MPI_FLOAT);
	ARITHMETIC(float, MPI_FLOAT);
	ORDERED(double, MPI_DOUBLE);
	ARITHMETIC(double, MPI_DOUBLE);
	ORDERED(long double, MPI_LONG_DOUBLE);
	ARITHMETIC(long double, MPI_LONG_DOUBLE);
	LOCAL(float complex, MPI_C_FLOAT_COMPLEX, MPI_PROD, 1 + 2 * I, 3 + I, 1 + 7 * I);
	LOCAL(double complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, 1 + 2 * I, 3 + I, 1 + 7 * I);
	LOCAL(double complex, MPI_CXX_DOUBLE_COMPLEX, MPI_SUM, 1 + 2 * I, 3 + I, 4 + 3 * I);
	LOCAL(long double complex, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, 1 + 2 * I, 3 + I, 4 + 3 * I);
	PAIR(float, int, MPI_FLOAT_INT);
	PAIR(double, int, MPI_DOUBLE_INT);
	PAIR(long, int, MPI_LONG_INT);
	PAIR(int, int, MPI_2INT);
	PAIR(short, int, MPI_SHORT_INT);
	PAIR(long double, int, MPI_LONG_DOUBLE_INT);
	LOCAL(int, MPI_INT, MPI_MIN, INT_MIN, INT_MAX, INT_MIN);
	LOCAL(int, MPI_INT, MPI_SUM, INT_MAX, 1, INT_MIN);
	LOCAL(unsigned, MPI_UNSIGNED, MPI_MAX, UINT_MAX, 1, UINT_MAX);
	LOCAL(short, MPI_SHORT, MPI_PROD, -300, 300, (short)-90000);
	case_end("every predefined operation computes on the types of C that it is for");
}

static void fortran_types(void)
{
	INTEGER(int, MPI_INTEGER);
	INTEGER(int8_t, MPI_INTEGER1);
	INTEGER(int16_t, MPI_INTEGER2);
	INTEGER(int32_t, MPI_INTEGER4);
	INTEGER(int64_t, MPI_INTEGER8);
	ORDERED(float, MPI_REAL);
	ARITHMETIC(float, MPI_REAL4);
	ORDERED(double, MPI_DOUBLE_PRECISION);
	ARITHMETIC(double, MPI_REAL8);
	LOCAL(float complex, MPI_COMPLEX, MPI_PROD, 1 + 2 * I, 3 + I, 1 + 7 * I);
	LOCAL(double complex, MPI_DOUBLE_COMPLEX, MPI_SUM, 1 + 2 * I, 3 + I, 4 + 3 * I);
	LOCAL(float complex, MPI_COMPLEX8, MPI_SUM, 1 + 2 * I, 3 + I, 4 + 3 * I);
	LOCAL(double complex, MPI_COMPLEX16, MPI_SUM, 1 + 2 * I, 3 + I, 4 + 3 * I);
	LOGIC(int, MPI_LOGICAL);
	LOGIC(int8_t, MPI_LOGICAL1);
	LOGIC(int16_t, MPI_LOGICAL2);
	LOGIC(int32_t, MPI_LOGICAL4);
	LOGIC(int64_t, MPI_LOGICAL8);
	PAIR(float, float, MPI_2REAL);
	PAIR(double, double, MPI_2DOUBLE_PRECISION);
	PAIR(int, int, MPI_2INTEGER);
	case_end("every predefined operation computes on the types of Fortran that it is for");
}

static MPI_Datatype seen_type;

static void seeing_call(void *in, void *inout, int *n, MPI_Datatype *type)
{
	seen_type = *type;
	for (int i = 0; i < *n; i++)
		((double *)inout)[i] += ((double *)in)[i];
}

/* These are predefined, but have no numbers of their own as MPI_REAL8 has. */
static void fortran_by_precision(void)
{
	int size, n = 1, sum = 0;
	double x = 1, y = 0;
	MPI_Datatype real, integer;
	MPI_Op op;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
	MPI_Type_create_f90_integer(9, &integer);
	MPI_Op_create(seeing_call, 0, &op);
	EXPECT_INT(MPI_Allreduce(&x, &y, 1, real, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	EXPECT(y == size);
	EXPECT_INT(MPI_Allreduce(&n, &sum, 1, integer, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	EXPECT_INT(sum, size);
	seen_type = real;
	EXPECT_INT(MPI_Allreduce(&x, &y, 1, real, op, MPI_COMM_WORLD), MPI_SUCCESS);
	EXPECT(y == size);
	EXPECT(seen_type == real);
	MPI_Op_free(&op);
	case_end("elements of a type made by Fortran's precision are reduced");
}

static void refused(void)
{
	static const struct {
		MPI_Op op;
		MPI_Datatype type;
	} pairs[] = {
		{ MPI_BAND, MPI_DOUBLE }, { MPI_LAND, MPI_FLOAT }, { MPI_MAX, MPI_C_DOUBLE_COMPLEX }, { MPI_SUM, MPI_BYTE },
		{ MPI_SUM, MPI_C_BOOL }, { MPI_MINLOC, MPI_INT }, { MPI_SUM, MPI_2INT }, { MPI_SUM, MPI_CHARACTER },
		{ MPI_SUM, MPI_PACKED }, { MPI_SUM, MPI_LOGICAL }, { MPI_SUM, MPI_WCHAR }
	};
	char x[64] = { 0 }, y[64] = { 0 };
	MPI_Op op = MPI_SUM;
	int commutes = -1;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		EXPECT_INT(MPI_Reduce_local(x, y, 1, pairs[i].type, pairs[i].op), MPI_ERR_OP);
	EXPECT_INT(MPI_Reduce_local(x, y, 1, map_type, MPI_SUM), MPI_ERR_OP);
	EXPECT_INT(MPI_Reduce_local(x, x, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Reduce_local(x, y, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Reduce_local(x, y, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
	EXPECT_INT(MPI_Op_free(&op), MPI_ERR_OP);
	EXPECT_INT(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
	EXPECT_INT(MPI_Op_create(max_call, 1, &op), MPI_SUCCESS);
	EXPECT_INT(MPI_Op_commutative(op, &commutes), MPI_SUCCESS);
	EXPECT_INT(commutes, 1);
	EXPECT_INT(MPI_Op_free(&op), MPI_SUCCESS);
	EXPECT(op == MPI_OP_NULL);
	EXPECT_INT(MPI_Op_free(&op), MPI_ERR_OP);
	EXPECT_INT(MPI_Op_commutative(then_op, &commutes), MPI_SUCCESS);
	EXPECT_INT(commutes, 0);
	EXPECT_INT(MPI_Op_commutative(MPI_MAXLOC, &commutes), MPI_SUCCESS);
	EXPECT_INT(commutes, 1);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	case_end("pairs of operation and type that make no sense are refused, and operations made are freed");
}

/* A pair is not plain memory: MPI_DOUBLE_INT has a hole. */
static void places(void)
{
	struct {
		double value;
		int place;
	} x[50], y[50];
	int rank, size, good = 1;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 50; i++) {
		x[i].value = (rank * 7 + i) % size;
		x[i].place = rank;
	}
	EXPECT_INT(MPI_Allreduce(x, y, 50, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD), MPI_SUCCESS);
	for (int i = 0; i < 50; i++) {
		int best = 0;

		for (int r = 1; r < size; r++)
			if ((r * 7 + i) % size > (best * 7 + i) % size)
				best = r;
		good &= y[i].value == (best * 7 + i) % size && y[i].place == best;
	}
	EXPECT(good);
	case_end("MPI_MAXLOC finds the largest and the lowest rank that has it");
}

int main(int argc, char **argv)
{
	MPI_Datatype t;

	MPI_Init(&argc, &argv);
	kinds_init();
	comms_init();
	MPI_Type_vector(2, 1, 2, MPI_INT, &t);
	MPI_Type_create_resized(t, 0, sizeof(struct map), &map_type);
	MPI_Type_commit(&map_type);
	MPI_Type_free(&t);
	MPI_Op_create(then_call, 0, &then_op);
	MPI_Op_create_c(then_large_call, 0, &then_large_op);
	MPI_Op_create(max_call, 1, &max_op);
	ways[0] = (struct way){ MPI_INT, MPI_SUM, sizeof(int) };
	ways[1] = (struct way){ MPI_DOUBLE, max_op, sizeof(double) };
	ways[2] = (struct way){ map_type, then_op, sizeof(struct map) };
	ways[3] = (struct way){ map_type, then_large_op, sizeof(struct map) };
	c_types();
	fortran_types();
	fortran_by_precision();
	refused();
	places();
	everywhere(reduce, 4, 1, "MPI_Reduce gives the root what all reduce to, in the order of ranks");
	everywhere(allreduce, 4, 0, "MPI_Allreduce gives everybody what all reduce to, in the order of ranks");
	everywhere(scan, 4, 0, "MPI_Scan gives everybody what the ranks up to it reduce to");
	everywhere(exscan, 4, 0, "MPI_Exscan gives everybody what the ranks before it reduce to");
	everywhere(reduce_scatter_block, 4, 0, "MPI_Reduce_scatter_block gives everybody its block of what all reduce to");
	everywhere(reduce_scatter, 4, 0, "MPI_Reduce_scatter gives everybody a block of its own length");
	MPI_Op_free(&then_op);
	MPI_Op_free(&then_large_op);
	MPI_Op_free(&max_op);
	MPI_Type_free(&map_type);
	comms_fini();
	kinds_fini();
	return cases_end();
}
