/* coll_kinds.h - elements of several kinds for tests of collectives: values that every rank can compute for every other, and
 * memory around them in which nothing may change.
 */
#ifndef COLL_KINDS_H
#define COLL_KINDS_H

#include <stddef.h>
#include <string.h>

#include "mpitest.h"

#define KINDS 4
#define UNITS_MAX 6

struct kind {
	const char *name;
	MPI_Datatype type;
	int units;                      /* ints in one element, and where they lie: a double is two */
	int at[UNITS_MAX];
	int extent;
};

static struct kind kinds[KINDS];
static MPI_Comm comms[9];               /* of the first n ranks, in reverse; MPI_COMM_NULL elsewhere */

static inline void kinds_init(void)
{
	MPI_Datatype t;

	kinds[0] = (struct kind){ "int", MPI_INT, 1, { 0 }, 4 };
	kinds[1] = (struct kind){ "double", MPI_DOUBLE, 2, { 0, 4 }, 8 };
	MPI_Type_vector(3, 2, 4, MPI_INT, &t);
	MPI_Type_commit(&t);
	kinds[2] = (struct kind){ "vector", t, 6, { 0, 4, 16, 20, 32, 36 }, 40 };
	MPI_Type_create_resized(MPI_INT, 0, 12, &t);
	MPI_Type_commit(&t);
	kinds[3] = (struct kind){ "resized", t, 1, { 0 }, 12 };
}

static inline void kinds_fini(void)
{
	MPI_Type_free(&kinds[2].type);
	MPI_Type_free(&kinds[3].type);
}

static inline void comms_init(void)
{
	int rank, size;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int n = 1; n <= 8; n++) {
		comms[n] = MPI_COMM_NULL;
		if (n <= size)
			MPI_Comm_split(MPI_COMM_WORLD, rank < n ? 0 : MPI_UNDEFINED, -rank, &comms[n]);
	}
}

static inline void comms_fini(void)
{
	for (int n = 1; n <= 8; n++)
		if (comms[n] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[n]);
}

static inline unsigned mixed(unsigned a, unsigned b, unsigned c)
{
	unsigned x = a * 0x9e3779b9u ^ (b + 1) * 0x85ebca6bu ^ (c + 7) * 0xc2b2ae35u;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return x ^ x >> 13;
}

/* Memory for elements and a bit more, all of it marked. */
static inline char *room(const struct kind *k, long count)
{
	size_t n = (size_t)(count * k->extent) + 64;
	char *p = malloc(n);

	if (!p)
		abort();
	memset(p, 0xa5, n);
	return p;
}

/* What rank @who has for whom, in elements [@from, @from + @count) at @p. */
static inline void put(const struct kind *k, char *p, long from, long count, unsigned seed, int who)
{
	for (long i = from; i < from + count; i++)
		for (int u = 0; u < k->units; u++) {
			unsigned v = mixed(seed, (unsigned)who, (unsigned)((i - from) * k->units + u));

			memcpy(p + i * k->extent + k->at[u], &v, 4);
		}
}

static inline int same(const struct kind *k, const char *p, const char *q, long count)
{
	return !memcmp(p, q, (size_t)(count * k->extent) + 64);
}

typedef void (*test_fn)(MPI_Comm comm, const struct kind *k, int count, int root, unsigned seed);

/* For every size of communicator, kind, count and root (of many elements: for one), a test. */
static inline void everywhere(test_fn test, int kinds_n, int all_roots, const char *sentence)
{
	static const int counts[] = { 0, 1, 7, 1000, 100000 };
	int runs = 0;

	for (int n = 1; n <= 8; n++) {
		for (int k = 0; k < kinds_n && comms[n] != MPI_COMM_NULL; k++)
			for (int i = 0; i < 5; i++) {
				unsigned seed = mixed((unsigned)n, (unsigned)k, (unsigned)i);
				int few = counts[i] > 1000, only = (int)(seed % (unsigned)n);

				if (few && k > 1 && n != 3 && n != 8)
					continue;
				for (int root = 0; root < n; root++)
					if (all_roots && !few ? 1 : root == only) {
						test(comms[n], &kinds[k], counts[i] / (few ? kinds[k].units : 1), root,
						     seed + (unsigned)root);
						runs++;
					}
			}
	}
	EXPECT(runs || comms[8] == MPI_COMM_NULL);
	case_end(sentence);
}

#endif
