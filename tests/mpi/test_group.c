/* test_group.c - groups: what they are made of, how they are made of others, and what makes no sense. Any number of ranks. */
#include <string.h>

#include "mpitest.h"

static MPI_Group world;
static int me, count;

/* A group of the ranks given, of a world of at least as many. */
static MPI_Group of(int n, const int *ranks)
{
	MPI_Group g;

	MPI_Group_incl(world, n, ranks, &g);
	return g;
}

/* Whether @g has exactly those ranks of the world in that order; frees it. */
static int is(MPI_Group g, int n, const int *ranks)
{
	int size = -1, all[16], mine[16] = { 0 }, same;

	MPI_Group_size(g, &size);
	for (int i = 0; i < n; i++)
		all[i] = i;
	same = size == n;
	if (same && n) {
		MPI_Group_translate_ranks(g, n, all, world, mine);
		same = !memcmp(mine, ranks, (size_t)n * sizeof(*ranks));
	}
	MPI_Group_free(&g);
	return same;
}

#define RANKS(...) (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (int[]){ __VA_ARGS__ }

static void sizes_and_ranks(void)
{
	int size = -1, rank = -1;
	MPI_Group g;

	EXPECT_INT(MPI_Group_size(world, &size), MPI_SUCCESS);
	EXPECT_INT(size, count);
	EXPECT_INT(MPI_Group_rank(world, &rank), MPI_SUCCESS);
	EXPECT_INT(rank, me);
	g = of(RANKS(3, 1));
	MPI_Group_rank(g, &rank);
	EXPECT_INT(rank, me == 3 ? 0 : me == 1 ? 1 : MPI_UNDEFINED);
	MPI_Group_free(&g);
	EXPECT(g == MPI_GROUP_NULL);
	MPI_Group_size(MPI_GROUP_EMPTY, &size);
	MPI_Group_rank(MPI_GROUP_EMPTY, &rank);
	EXPECT_INT(size, 0);
	EXPECT_INT(rank, MPI_UNDEFINED);
	case_end("a group knows its size and my rank in it");
}

static void sets(void)
{
	MPI_Group a = of(RANKS(2, 0, 1)), b = of(RANKS(3, 1, 2)), g;

	MPI_Group_union(a, b, &g);
	EXPECT(is(g, RANKS(2, 0, 1, 3)));
	MPI_Group_union(b, a, &g);
	EXPECT(is(g, RANKS(3, 1, 2, 0)));
	MPI_Group_intersection(a, b, &g);
	EXPECT(is(g, RANKS(2, 1)));
	MPI_Group_intersection(b, a, &g);
	EXPECT(is(g, RANKS(1, 2)));
	MPI_Group_difference(a, b, &g);
	EXPECT(is(g, RANKS(0)));
	MPI_Group_difference(a, a, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	MPI_Group_union(MPI_GROUP_EMPTY, a, &g);
	EXPECT(is(g, RANKS(2, 0, 1)));
	MPI_Group_union(a, MPI_GROUP_EMPTY, &g);
	EXPECT(is(g, RANKS(2, 0, 1)));
	MPI_Group_intersection(a, MPI_GROUP_EMPTY, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	MPI_Group_free(&a);
	MPI_Group_free(&b);
	case_end("union, intersection and difference keep the order of the first group");
}

static void choosing(void)
{
	int down[][3] = { { 3, 0, -2 } }, two[][3] = { { 0, 1, 1 }, { 3, 3, 5 } }, far[][3] = { { 0, 3, 7 } };
	MPI_Group g;

	MPI_Group_incl(world, 0, NULL, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	MPI_Group_excl(world, 0, NULL, &g);
	EXPECT(is(g, RANKS(0, 1, 2, 3)));
	MPI_Group_excl(world, 2, (int[]){ 3, 0 }, &g);
	EXPECT(is(g, RANKS(1, 2)));
	MPI_Group_excl(world, 4, (int[]){ 3, 0, 1, 2 }, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	MPI_Group_range_incl(world, 1, down, &g);
	EXPECT(is(g, RANKS(3, 1)));
	MPI_Group_range_excl(world, 1, down, &g);
	EXPECT(is(g, RANKS(0, 2)));
	MPI_Group_range_incl(world, 2, two, &g);
	EXPECT(is(g, RANKS(0, 1, 3)));
	MPI_Group_range_incl(world, 1, far, &g);
	EXPECT(is(g, RANKS(0)));
	MPI_Group_range_incl(world, 0, NULL, &g);
	EXPECT(g == MPI_GROUP_EMPTY);
	case_end("ranks and ranges choose, or leave out, in the order that MPI says");
}

static void translating(void)
{
	MPI_Group a = of(RANKS(3, 2, 1)), b = of(RANKS(1, 0, 3));
	int from[] = { 0, MPI_PROC_NULL, 1, 2 }, to[4], many[40], all[40];

	EXPECT_INT(MPI_Group_translate_ranks(a, 4, from, b, to), MPI_SUCCESS);
	EXPECT_INT(to[0], 2);
	EXPECT_INT(to[1], MPI_PROC_NULL);
	EXPECT_INT(to[2], MPI_UNDEFINED);
	EXPECT_INT(to[3], 0);
	for (int i = 0; i < 40; i++)
		many[i] = i % 3;
	EXPECT_INT(MPI_Group_translate_ranks(a, 40, many, b, all), MPI_SUCCESS);
	for (int i = 0; i < 40; i++)
		EXPECT_INT(all[i], i % 3 == 0 ? 2 : i % 3 == 1 ? MPI_UNDEFINED : 0);
	EXPECT_INT(MPI_Group_translate_ranks(a, 1, from, MPI_GROUP_EMPTY, to), MPI_SUCCESS);
	EXPECT_INT(to[0], MPI_UNDEFINED);
	EXPECT_INT(MPI_Group_translate_ranks(a, 0, NULL, b, NULL), MPI_SUCCESS);
	MPI_Group_free(&a);
	MPI_Group_free(&b);
	case_end("few ranks and many are translated the same way");
}

static void comparing(void)
{
	MPI_Group a = of(RANKS(0, 1, 2)), b = of(RANKS(2, 0, 1)), c = of(RANKS(0, 1, 2)), d = of(RANKS(0, 1, 3)), e = of(RANKS(0, 1));
	int result;

	MPI_Group_compare(a, a, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Group_compare(a, c, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Group_compare(a, b, &result);
	EXPECT_INT(result, MPI_SIMILAR);
	MPI_Group_compare(a, d, &result);
	EXPECT_INT(result, MPI_UNEQUAL);
	MPI_Group_compare(a, e, &result);
	EXPECT_INT(result, MPI_UNEQUAL);
	MPI_Group_compare(a, MPI_GROUP_EMPTY, &result);
	EXPECT_INT(result, MPI_UNEQUAL);
	MPI_Group_compare(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &result);
	EXPECT_INT(result, MPI_IDENT);
	MPI_Group_free(&a);
	MPI_Group_free(&b);
	MPI_Group_free(&c);
	MPI_Group_free(&d);
	MPI_Group_free(&e);
	case_end("groups are identical, similar or unequal");
}

static void nonsense(void)
{
	int n = -7, bad[] = { 0, 99 }, twice[] = { 1, 1 }, minus[] = { -1 };
	int zero[][3] = { { 0, 1, 0 } }, wrong[][3] = { { 2, 0, 1 } }, over[][3] = { { 0, 2, 1 }, { 2, 3, 1 } }, huge[][3] = { { 0, 2147483647, 1 } };
	MPI_Group g = MPI_GROUP_NULL, stale = of(RANKS(0, 1));
	MPI_Group copy = stale;

	EXPECT_INT(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_size((MPI_Group)0x7, &n), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_size(world, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_rank(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_compare(world, MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_union(MPI_GROUP_NULL, world, &g), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_union(world, world, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_incl(world, 2, bad, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_incl(world, 2, twice, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_incl(world, 1, minus, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_incl(world, -1, NULL, &g), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_excl(world, 2, twice, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_range_incl(world, 1, zero, &g), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_range_incl(world, 1, wrong, &g), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_range_incl(world, 2, over, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_range_incl(world, 1, huge, &g), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_range_excl(world, -2, zero, &g), MPI_ERR_ARG);
	EXPECT_INT(MPI_Group_translate_ranks(world, 2, bad, world, twice), MPI_ERR_RANK);
	EXPECT_INT(MPI_Group_translate_ranks(world, -1, bad, world, twice), MPI_ERR_ARG);
	EXPECT_INT(n, -7);
	EXPECT(g == MPI_GROUP_NULL);
	EXPECT_INT(MPI_Group_free(&g), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_free(NULL), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Group_free(&stale), MPI_SUCCESS);
	EXPECT_INT(MPI_Group_size(copy, &n), MPI_ERR_GROUP);
	case_end("what makes no sense is answered by its class, and nothing is written");
}

static void as_ints(void)
{
	MPI_Group g = of(RANKS(1, 2));
	int n = MPI_Group_toint(g);

	EXPECT(MPI_Group_fromint(n) == g);
	EXPECT_INT(MPI_Group_toint(g), n);
	EXPECT(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
	EXPECT(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_NULL)) == MPI_GROUP_NULL);
	EXPECT(n != MPI_Group_toint(world));
	MPI_Group_free(&g);
	for (int i = 0; i < 300; i++) {
		MPI_Group many[2] = { of(RANKS(0, 1)), of(RANKS(1, 0)) };

		EXPECT(MPI_Group_fromint(MPI_Group_toint(many[0])) == many[0]);
		EXPECT(MPI_Group_fromint(MPI_Group_toint(many[1])) == many[1]);
		MPI_Group_free(&many[i % 2]);
		MPI_Group_free(&many[1 - i % 2]);
	}
	case_end("a handle goes through an int and back");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &count);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	sizes_and_ranks();
	sets();
	choosing();
	translating();
	comparing();
	nonsense();
	as_ints();
	MPI_Group_free(&world);
	return cases_end();
}
