/* test_topo.c - topologies and the collectives among neighbours; for 6 ranks. */
#include <string.h>

#include "mpitest.h"

#define RANKS 6

static int world_rank;
int *unweighted = MPI_UNWEIGHTED;       /* a variable: GCC warns of an array at address 10 where it sees the constant */

static void dims_good(int nodes, int ndims, const int *want)
{
	int dims[8] = { 0 };

	EXPECT_INT(MPI_Dims_create(nodes, ndims, dims), MPI_SUCCESS);
	for (int i = 0; i < ndims; i++)
		EXPECT_INT(dims[i], want[i]);
}

static void dims(void)
{
	int some[3] = { 0, 3, 0 }, wrong[2] = { 4, 0 }, full[2] = { 3, 2 }, negative[1] = { -1 };

	dims_good(6, 2, (int[]){ 3, 2 });
	dims_good(7, 1, (int[]){ 7 });
	dims_good(7, 3, (int[]){ 7, 1, 1 });
	dims_good(24, 3, (int[]){ 4, 3, 2 });
	dims_good(72, 3, (int[]){ 6, 4, 3 });
	dims_good(60, 3, (int[]){ 5, 4, 3 });
	dims_good(42, 4, (int[]){ 7, 3, 2, 1 });
	dims_good(1, 2, (int[]){ 1, 1 });
	dims_good(2147483647, 2, (int[]){ 2147483647, 1 });
	dims_good(1000000000, 3, (int[]){ 1000, 1000, 1000 });
	dims_good(2095133040, 4, (int[]){ 221, 216, 210, 209 });
	EXPECT_INT(MPI_Dims_create(24, 3, some), MPI_SUCCESS);
	EXPECT(some[0] == 4 && some[1] == 3 && some[2] == 2);
	EXPECT_INT(MPI_Dims_create(6, 2, full), MPI_SUCCESS);
	EXPECT_INT(MPI_Dims_create(6, 2, wrong), MPI_ERR_DIMS);
	EXPECT_INT(MPI_Dims_create(6, 1, negative), MPI_ERR_DIMS);
	EXPECT_INT(MPI_Dims_create(0, 1, (int[]){ 0 }), MPI_ERR_ARG);
	case_end("MPI_Dims_create finds the factors that lie closest together");
}

static MPI_Comm grid_3x2(int period0, int period1)
{
	MPI_Comm comm = MPI_COMM_NULL;

	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){ 3, 2 }, (int[]){ period0, period1 }, 1, &comm), MPI_SUCCESS);
	return comm;
}

static void cart(void)
{
	int n, d[2], p[2], at[2], r, rank;
	MPI_Comm comm = grid_3x2(1, 0), copy;

	MPI_Comm_rank(comm, &rank);
	EXPECT_INT(MPI_Topo_test(comm, &n), MPI_SUCCESS);
	EXPECT_INT(n, MPI_CART);
	MPI_Topo_test(MPI_COMM_WORLD, &n);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_free(&comm);
	comm = copy;
	EXPECT_INT(MPI_Cartdim_get(comm, &n), MPI_SUCCESS);
	EXPECT_INT(n, 2);
	EXPECT_INT(MPI_Cart_get(comm, 2, d, p, at), MPI_SUCCESS);
	EXPECT(d[0] == 3 && d[1] == 2 && p[0] && !p[1]);
	EXPECT(at[0] == rank / 2 && at[1] == rank % 2);
	for (int i = 0; i < RANKS; i++) {
		EXPECT_INT(MPI_Cart_coords(comm, i, 2, at), MPI_SUCCESS);
		EXPECT(at[0] == i / 2 && at[1] == i % 2);
		at[0] -= 9;
		EXPECT_INT(MPI_Cart_rank(comm, at, &r), MPI_SUCCESS);
		EXPECT_INT(r, i);
	}
	EXPECT_INT(MPI_Cart_rank(comm, (int[]){ 0, 2 }, &r), MPI_ERR_ARG);
	EXPECT_INT(MPI_Cart_coords(comm, RANKS, 2, at), MPI_ERR_RANK);
	EXPECT_INT(MPI_Cart_coords(MPI_COMM_WORLD, 0, 2, at), MPI_ERR_TOPOLOGY);
	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){ 4, 2 }, (int[]){ 0, 0 }, 0, &copy), MPI_ERR_DIMS);
	EXPECT_INT(MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){ 4 }, (int[]){ 0 }, &r), MPI_SUCCESS);
	EXPECT_INT(r, world_rank < 4 ? world_rank : MPI_UNDEFINED);
	MPI_Comm_free(&comm);
	case_end("a grid knows its coordinates and ranks, and a duplicate has it too");
}

static void shift(void)
{
	MPI_Comm comm = grid_3x2(1, 0);
	int rank, from, to;

	MPI_Comm_rank(comm, &rank);
	EXPECT_INT(MPI_Cart_shift(comm, 0, 1, &from, &to), MPI_SUCCESS);
	EXPECT_INT(from, (rank + 4) % 6);
	EXPECT_INT(to, (rank + 2) % 6);
	EXPECT_INT(MPI_Cart_shift(comm, 0, -7, &from, &to), MPI_SUCCESS);
	EXPECT_INT(from, (rank + 2) % 6);
	EXPECT_INT(to, (rank + 4) % 6);
	EXPECT_INT(MPI_Cart_shift(comm, 1, 1, &from, &to), MPI_SUCCESS);
	EXPECT_INT(from, rank % 2 ? rank - 1 : MPI_PROC_NULL);
	EXPECT_INT(to, rank % 2 ? MPI_PROC_NULL : rank + 1);
	EXPECT_INT(MPI_Cart_shift(comm, 1, 2147483647, &from, &to), MPI_SUCCESS);
	EXPECT(from == MPI_PROC_NULL && to == MPI_PROC_NULL);
	EXPECT_INT(MPI_Cart_shift(comm, 2, 1, &from, &to), MPI_ERR_ARG);
	MPI_Comm_free(&comm);
	case_end("a shift wraps where the grid does");
}

static void parts(void)
{
	MPI_Comm comm = grid_3x2(1, 0), sub, none;
	int rank, sub_rank, size, n, d[2], p[2], at[2];

	MPI_Comm_rank(comm, &rank);
	EXPECT_INT(MPI_Cart_sub(comm, (int[]){ 1, 0 }, &sub), MPI_SUCCESS);
	MPI_Comm_size(sub, &size);
	MPI_Comm_rank(sub, &sub_rank);
	EXPECT_INT(size, 3);
	EXPECT_INT(sub_rank, rank / 2);
	EXPECT_INT(MPI_Cart_get(sub, 1, d, p, at), MPI_SUCCESS);
	EXPECT(d[0] == 3 && p[0] && at[0] == rank / 2);
	MPI_Comm_free(&sub);
	EXPECT_INT(MPI_Cart_sub(comm, (int[]){ 0, 0 }, &sub), MPI_SUCCESS);
	MPI_Comm_size(sub, &size);
	MPI_Cartdim_get(sub, &n);
	EXPECT(size == 1 && n == 0);
	MPI_Comm_free(&sub);
	MPI_Comm_free(&comm);
	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ 4 }, (int[]){ 0 }, 0, &none), MPI_SUCCESS);
	EXPECT((none == MPI_COMM_NULL) == (world_rank >= 4));
	if (none != MPI_COMM_NULL)
		MPI_Comm_free(&none);
	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none), MPI_SUCCESS);
	EXPECT((none == MPI_COMM_NULL) == (world_rank > 0));
	if (none != MPI_COMM_NULL)
		MPI_Comm_free(&none);
	case_end("a grid's parts are grids, and ranks outside of one get no communicator");
}

/* Rank i's neighbours: all below it, and itself twice if it is 5. */
static MPI_Comm graph_make(void)
{
	const int index[RANKS] = { 0, 1, 3, 6, 10, 17 };
	const int edges[17] = { 0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 5 };
	MPI_Comm comm = MPI_COMM_NULL;

	EXPECT_INT(MPI_Graph_create(MPI_COMM_WORLD, RANKS, index, edges, 0, &comm), MPI_SUCCESS);
	return comm;
}

static void graph(void)
{
	MPI_Comm comm = graph_make(), other;
	int n, m, index[RANKS], edges[17], near[8];

	EXPECT_INT(MPI_Topo_test(comm, &n), MPI_SUCCESS);
	EXPECT_INT(n, MPI_GRAPH);
	EXPECT_INT(MPI_Graphdims_get(comm, &n, &m), MPI_SUCCESS);
	EXPECT(n == RANKS && m == 17);
	EXPECT_INT(MPI_Graph_get(comm, RANKS, 17, index, edges), MPI_SUCCESS);
	EXPECT(index[5] == 17 && edges[9] == 3);
	for (int i = 0; i < RANKS; i++) {
		EXPECT_INT(MPI_Graph_neighbors_count(comm, i, &n), MPI_SUCCESS);
		EXPECT_INT(n, i == 5 ? 7 : i);
		EXPECT_INT(MPI_Graph_neighbors(comm, i, 8, near), MPI_SUCCESS);
		for (int j = 0; j < i; j++)
			EXPECT_INT(near[j], j);
	}
	EXPECT_INT(MPI_Graph_neighbors_count(comm, RANKS, &n), MPI_ERR_RANK);
	EXPECT_INT(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){ 1 }, (int[]){ 1 }, 0, &other), MPI_ERR_ARG);
	EXPECT_INT(MPI_Graph_create(MPI_COMM_WORLD, 7, index, edges, 0, &other), MPI_ERR_ARG);
	EXPECT_INT(MPI_Graph_map(MPI_COMM_WORLD, 1, (int[]){ 1 }, (int[]){ 0 }, &n), MPI_SUCCESS);
	EXPECT_INT(n, world_rank ? MPI_UNDEFINED : 0);
	MPI_Comm_free(&comm);
	EXPECT_INT(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm), MPI_SUCCESS);
	EXPECT(comm == MPI_COMM_NULL);
	case_end("a graph tells every rank's neighbours");
}

/* Everybody tells edges of somebody else: of rank + 1, to itself twice, and to rank + 3. */
static void dist_graph(void)
{
	int source = (world_rank + 1) % RANKS, degree = 3, in, out, weighted, from[4], to[4], fw[4], tw[4], sum = 0;
	int targets[3] = { source, source, (source + 2) % RANKS }, weights[3] = { 1, 2, 10 + source };
	MPI_Comm comm, plain;

	EXPECT_INT(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, targets, weights, MPI_INFO_NULL, 0, &comm),
		   MPI_SUCCESS);
	EXPECT_INT(MPI_Topo_test(comm, &in), MPI_SUCCESS);
	EXPECT_INT(in, MPI_DIST_GRAPH);
	EXPECT_INT(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted), MPI_SUCCESS);
	EXPECT(in == 3 && out == 3 && weighted);
	EXPECT_INT(MPI_Dist_graph_neighbors(comm, 3, from, fw, 3, to, tw), MPI_SUCCESS);
	for (int i = 0; i < 3; i++) {
		EXPECT(to[i] == world_rank ? tw[i] == 1 || tw[i] == 2 : tw[i] == 10 + world_rank);
		EXPECT(from[i] == world_rank ? fw[i] == 1 || fw[i] == 2 : fw[i] == 10 + from[i]);
		sum += to[i] == world_rank ? 0 : to[i];
	}
	EXPECT_INT(sum, (world_rank + 2) % RANKS);
	from[1] = -7;
	EXPECT_INT(MPI_Dist_graph_neighbors(comm, 1, from, fw, 0, NULL, NULL), MPI_SUCCESS);
	EXPECT_INT(from[1], -7);
	MPI_Comm_free(&comm);
	EXPECT_INT(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, unweighted, 0, NULL, unweighted,
						  MPI_INFO_NULL, 0, &plain), MPI_SUCCESS);
	EXPECT_INT(MPI_Dist_graph_neighbors_count(plain, &in, &out, &weighted), MPI_SUCCESS);
	EXPECT(in == 0 && out == 0 && !weighted);
	EXPECT_INT(MPI_Neighbor_allgather(&in, 1, MPI_INT, &out, 1, MPI_INT, plain), MPI_SUCCESS);
	MPI_Comm_free(&plain);
	source = RANKS;
	EXPECT_INT(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &source, unweighted, 0, NULL, unweighted,
						  MPI_INFO_NULL, 0, &plain), MPI_ERR_ARG);
	case_end("a distributed graph's edges reach the ranks they touch, whoever told them");
}

/* Collectives */

static void neighbor_allgather(void)
{
	MPI_Comm comm = grid_3x2(1, 0);
	int rank, got[4] = { -1, -1, -1, -1 }, v[8], counts[4] = { 1, 1, 1, 1 }, places[4] = { 6, 4, 2, 0 };

	MPI_Comm_rank(comm, &rank);
	EXPECT_INT(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, comm), MPI_SUCCESS);
	EXPECT_INT(got[0], (rank + 4) % 6);
	EXPECT_INT(got[1], (rank + 2) % 6);
	EXPECT_INT(got[2], rank % 2 ? rank - 1 : -1);
	EXPECT_INT(got[3], rank % 2 ? -1 : rank + 1);
	memset(v, -1, sizeof(v));
	EXPECT_INT(MPI_Neighbor_allgatherv(&rank, 1, MPI_INT, v, counts, places, MPI_INT, comm), MPI_SUCCESS);
	for (int i = 0; i < 4; i++) {
		EXPECT_INT(v[places[i]], got[i]);
		EXPECT_INT(v[places[i] + 1], -1);
	}
	EXPECT_INT(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
	EXPECT_INT(MPI_Neighbor_allgather(&rank, -1, MPI_INT, got, 1, MPI_INT, comm), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Neighbor_allgather(&rank, 1, MPI_DATATYPE_NULL, got, 1, MPI_INT, comm), MPI_ERR_TYPE);
	MPI_Comm_free(&comm);
	case_end("neighbours in a grid gather from each other");
}

/* In a ring of two the ranks before and behind are one; in a ring of one they are myself. */
static void short_rings(void)
{
	MPI_Comm comm;
	int rank, out[6], in[6], other;

	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 3, (int[]){ 2, 1, 3 }, (int[]){ 1, 1, 1 }, 0, &comm), MPI_SUCCESS);
	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < 6; i++)
		out[i] = 10 * rank + i;
	EXPECT_INT(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm), MPI_SUCCESS);
	other = (rank + 3) % 6;
	EXPECT_INT(in[0], 10 * other + 1);
	EXPECT_INT(in[1], 10 * other + 0);
	EXPECT_INT(in[2], 10 * rank + 3);
	EXPECT_INT(in[3], 10 * rank + 2);
	EXPECT_INT(in[4], 10 * (rank / 3 * 3 + (rank + 2) % 3) + 5);
	EXPECT_INT(in[5], 10 * (rank / 3 * 3 + (rank + 1) % 3) + 4);
	MPI_Comm_free(&comm);
	case_end("in rings of one and two, what went backwards comes from the front");
}

static void twice(void)
{
	int next = (world_rank + 1) % RANKS, before = (world_rank + 5) % RANKS;
	int sources[4] = { before, world_rank, before, before }, targets[4] = { next, next, world_rank, next };
	int out[4], in[4], counts[4] = { 1, 1, 1, 1 }, forward[4] = { 0, 1, 2, 3 }, backward[4] = { 3, 2, 1, 0 };
	MPI_Comm comm;

	EXPECT_INT(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, unweighted, 4, targets, unweighted,
						  MPI_INFO_NULL, 0, &comm), MPI_SUCCESS);
	for (int i = 0; i < 4; i++)
		out[i] = 10 * world_rank + i;
	EXPECT_INT(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm), MPI_SUCCESS);
	EXPECT(in[0] == 10 * before && in[2] == 10 * before + 1 && in[3] == 10 * before + 3);
	EXPECT_INT(in[1], 10 * world_rank + 2);
	EXPECT_INT(MPI_Neighbor_alltoallv(out, counts, forward, MPI_INT, in, counts, backward, MPI_INT, comm), MPI_SUCCESS);
	EXPECT(in[3] == 10 * before && in[1] == 10 * before + 1 && in[0] == 10 * before + 3);
	EXPECT_INT(in[2], 10 * world_rank + 2);
	MPI_Comm_free(&comm);
	case_end("edges between the same two ranks are served in the order of the lists");
}

static void alltoallw(void)
{
	int next = (world_rank + 1) % RANKS, before = (world_rank + 5) % RANKS;
	int counts[2] = { 1, 3 }, column[6], got[8] = { 0 };
	MPI_Aint from[2] = { 0, sizeof(int) }, to[2] = { 4 * sizeof(int), 0 };
	MPI_Count counts_c[2] = { 1, 3 };
	MPI_Datatype strided, types_out[2], types_in[2];
	MPI_Comm comm;

	MPI_Type_vector(3, 1, 2, MPI_INT, &strided);
	MPI_Type_commit(&strided);
	types_out[0] = strided;
	types_in[1] = MPI_INT;
	types_out[1] = MPI_INT;
	types_in[0] = MPI_INT;
	EXPECT_INT(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ RANKS }, (int[]){ 1 }, 0, &comm), MPI_SUCCESS);
	for (int i = 0; i < 6; i++)
		column[i] = 10 * world_rank + i;
	/* Backwards goes every other of the first six, forwards three in a row; both arrive packed. */
	EXPECT_INT(MPI_Neighbor_alltoallw(column, counts, from, types_out, got, (int[]){ 3, 3 }, to, types_in, comm),
		   MPI_SUCCESS);
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(got[4 + i], 10 * before + 1 + i);
		EXPECT_INT(got[i], 10 * next + 2 * i);
	}
	memset(got, 0, sizeof(got));
	EXPECT_INT(MPI_Neighbor_alltoallw_c(column, counts_c, from, types_out, got, (MPI_Count[]){ 3, 3 }, to, types_in,
					    comm), MPI_SUCCESS);
	for (int i = 0; i < 3; i++)
		EXPECT_INT(got[4 + i], 10 * before + 1 + i);
	MPI_Type_free(&strided);
	MPI_Comm_free(&comm);
	case_end("each neighbour may have a datatype of its own");
}

/* Rank i hears from all below it; more than any buffer takes, so that every send waits for its receive. */
static void large(void)
{
	enum { COUNT = 300000 };
	int before = (world_rank + 5) % RANKS, next = (world_rank + 1) % RANKS;
	int *out = malloc(2 * COUNT * sizeof(int)), *in = malloc(2 * COUNT * sizeof(int)), bad = 0;
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ RANKS }, (int[]){ 1 }, 0, &comm);
	for (int i = 0; i < 2 * COUNT; i++)
		out[i] = world_rank * 1000000 + i;
	EXPECT_INT(MPI_Neighbor_alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, comm), MPI_SUCCESS);
	for (int i = 0; i < COUNT; i++)
		bad += in[i] != before * 1000000 + COUNT + i || in[COUNT + i] != next * 1000000 + i;
	EXPECT_INT(bad, 0);
	MPI_Comm_free(&comm);
	free(out);
	free(in);
	case_end("large blocks around a ring do not wait for each other in a circle");
}

/* Both ends have the same edges in a graph that is symmetric. */
static void graph_allgather(void)
{
	const int index[RANKS] = { 2, 4, 6, 8, 10, 12 };
	int edges[12], in[2], from[2], rank;
	MPI_Comm comm;

	for (int i = 0; i < RANKS; i++) {
		edges[2 * i] = i;
		edges[2 * i + 1] = i ^ 1;
	}
	EXPECT_INT(MPI_Graph_create(MPI_COMM_WORLD, RANKS, index, edges, 0, &comm), MPI_SUCCESS);
	MPI_Comm_rank(comm, &rank);
	EXPECT_INT(MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, comm), MPI_SUCCESS);
	EXPECT(in[0] == rank && in[1] == (rank ^ 1));
	from[0] = 100 + rank;
	from[1] = 200 + rank;
	EXPECT_INT(MPI_Neighbor_alltoall(from, 1, MPI_INT, in, 1, MPI_INT, comm), MPI_SUCCESS);
	EXPECT(in[0] == 100 + rank && in[1] == 200 + (rank ^ 1));
	MPI_Comm_free(&comm);
	case_end("neighbours in a graph exchange, a rank with itself too");
}

int main(int argc, char **argv)
{
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != RANKS) {
		fprintf(stderr, "needs %d ranks\n", RANKS);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	dims();
	cart();
	shift();
	parts();
	graph();
	dist_graph();
	neighbor_allgather();
	short_rings();
	twice();
	alltoallw();
	graph_allgather();
	large();
	return cases_end();
}
