/* topo.c - topologies: what all kinds share, and Cartesian grids. Graphs are in topo_graph.c.
 *
 * A topology hangs on a communicator of its own, made of the first members of another one. Ranks stay what they were:
 * reorder permits more than that, and weft finds the shortest way between any two anyway.
 * A grid's last coordinate runs fastest.
 */
#include <stdlib.h>
#include <string.h>

#include "topo.h"

/* What all kinds share */

struct wm_topo *wm_topo_new(int kind, int n0, int n1)
{
	size_t count = kind == MPI_CART ? 3 * (size_t)n0 : (size_t)n0 + (size_t)n1;
	struct wm_topo *t;

	if (kind == MPI_DIST_GRAPH)
		count *= 2;
	t = calloc(1, sizeof(*t) + count * sizeof(*t->numbers));
	if (!t)
		return NULL;
	t->kind = kind;
	t->n[0] = n0;
	t->n[1] = n1;
	t->count = count;
	return t;
}

struct wm_topo *wm_topo_copy(const struct wm_topo *topo)
{
	size_t size = topo ? sizeof(*topo) + topo->count * sizeof(*topo->numbers) : 0;
	struct wm_topo *copy = topo ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, topo, size);
	return copy;
}

void wm_topo_free(struct wm_topo *topo)
{
	free(topo);
}

/* Every member takes part in the split, also one that had no memory for its topology: the others wait for it there. */
static int topo_split(struct MPI_ABI_Comm *old, const char *function, int color, int key, struct wm_topo *topo,
		      MPI_Comm *ret_comm)
{
	MPI_Comm comm = MPI_COMM_NULL;
	int r = PMPI_Comm_split(wm_comm_handle(old), color, key, &comm);

	if (r == MPI_SUCCESS && comm != MPI_COMM_NULL && !topo) {
		wm_comm_put(wm_comm(comm));
		r = wm_error(old, function, MPI_ERR_NO_MEM, "no memory for a topology");
	}
	if (r != MPI_SUCCESS || comm == MPI_COMM_NULL)
		wm_topo_free(topo);
	else
		wm_comm(comm)->topo = topo;
	if (r == MPI_SUCCESS)
		*ret_comm = comm;
	return r;
}

int wm_topo_make(struct MPI_ABI_Comm *old, const char *function, int nodes, struct wm_topo *topo, MPI_Comm *ret_comm)
{
	return topo_split(old, function, old->rank < nodes ? 0 : MPI_UNDEFINED, old->rank, topo, ret_comm);
}

struct MPI_ABI_Comm *wm_topo_comm(const char *function, MPI_Comm comm, int kind, int *ret_err)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (c && c->topo && c->topo->kind == kind)
		return c;
	*ret_err = c ? wm_error(c, function, MPI_ERR_TOPOLOGY, "the communicator has no such topology") :
		       wm_error(NULL, function, MPI_ERR_COMM, "no communicator");
	return NULL;
}

int PMPI_Topo_test(MPI_Comm comm, int *status)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "no communicator");
	if (!status)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the answer");
	*status = c->topo ? c->topo->kind : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
MPI_DONE(Topo_test);

/* Grids */

/* How many nodes a grid has, -1: it makes no sense or has more than @most. */
static int grid_nodes(int ndims, const int dims[], int most)
{
	int64_t nodes = 1;

	if (ndims < 0 || (ndims && !dims))
		return -1;
	for (int i = 0; i < ndims; i++) {
		if (dims[i] <= 0 || nodes * dims[i] > most)
			return -1;
		nodes *= dims[i];
	}
	return (int)nodes;
}

static void grid_coords(struct wm_topo *cart, int rank, int coords[])
{
	for (int i = cart->n[0] - 1; i >= 0; i--) {
		coords[i] = rank % wm_cart_dims(cart)[i];
		rank /= wm_cart_dims(cart)[i];
	}
}

/* @at in dimension @i brought into the grid; -1: it is outside of one that does not wrap. */
static int grid_wrap(struct wm_topo *cart, int i, int64_t at)
{
	int size = wm_cart_dims(cart)[i];

	if (at >= 0 && at < size)
		return (int)at;
	return wm_cart_periods(cart)[i] ? (int)((at % size + size) % size) : -1;
}

/* The rank @disp steps away from mine in a dimension. */
static int grid_at(struct wm_topo *cart, int dimension, int64_t disp)
{
	int rank = 0, at;

	for (int i = 0; i < cart->n[0]; i++) {
		at = grid_wrap(cart, i, wm_cart_mine(cart)[i] + (i == dimension ? disp : 0));
		if (at < 0)
			return MPI_PROC_NULL;
		rank = rank * wm_cart_dims(cart)[i] + at;
	}
	return rank;
}

void wm_cart_shift(struct wm_topo *cart, int dimension, int disp, int *ret_source, int *ret_dest)
{
	*ret_source = grid_at(cart, dimension, -(int64_t)disp);
	*ret_dest = grid_at(cart, dimension, disp);
}

int PMPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart)
{
	struct MPI_ABI_Comm *old = wm_comm(comm_old);
	struct wm_topo *t;
	int nodes;

	(void)reorder;
	if (!old || old->inter)
		return wm_error(old, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (!comm_cart || (ndims > 0 && !periods))
		return wm_error(old, __func__, MPI_ERR_ARG, "no periods, or no place for the communicator");
	nodes = grid_nodes(ndims, dims, old->size);
	if (nodes < 0)
		return wm_error(old, __func__, MPI_ERR_DIMS, "a grid with %d dimensions that %d processes cannot fill",
				ndims, old->size);
	t = wm_topo_new(MPI_CART, ndims, 0);
	for (int i = 0; t && i < ndims; i++) {
		wm_cart_dims(t)[i] = dims[i];
		wm_cart_periods(t)[i] = periods[i] != 0;
	}
	if (t)
		grid_coords(t, old->rank, wm_cart_mine(t));
	return wm_topo_make(old, __func__, nodes, t, comm_cart);
}
MPI_DONE(Cart_create);

int PMPI_Cartdim_get(MPI_Comm comm, int *ndims)
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	if (!ndims)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the answer");
	*ndims = c->topo->n[0];
	return MPI_SUCCESS;
}
MPI_DONE(Cartdim_get);

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
	struct MPI_ABI_Comm *c;
	size_t size;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	if (maxdims < c->topo->n[0] || (c->topo->n[0] && (!dims || !periods || !coords)))
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for %d dimensions", c->topo->n[0]);
	size = (size_t)c->topo->n[0] * sizeof(int);
	if (!size)
		return MPI_SUCCESS;
	memcpy(dims, wm_cart_dims(c->topo), size);
	memcpy(periods, wm_cart_periods(c->topo), size);
	memcpy(coords, wm_cart_mine(c->topo), size);
	return MPI_SUCCESS;
}
MPI_DONE(Cart_get);

int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
	struct MPI_ABI_Comm *c;
	int r, at, sum = 0;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	if (!rank || (c->topo->n[0] && !coords))
		return wm_error(c, __func__, MPI_ERR_ARG, "no coordinates, or no place for the rank");
	for (int i = 0; i < c->topo->n[0]; i++) {
		at = grid_wrap(c->topo, i, coords[i]);
		if (at < 0)
			return wm_error(c, __func__, MPI_ERR_ARG, "coordinate %d is %d: outside of the grid", i, coords[i]);
		sum = sum * wm_cart_dims(c->topo)[i] + at;
	}
	*rank = sum;
	return MPI_SUCCESS;
}
MPI_DONE(Cart_rank);

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	if (rank < 0 || rank >= c->size)
		return wm_error(c, __func__, MPI_ERR_RANK, "rank %d of %d", rank, c->size);
	if (maxdims < c->topo->n[0] || (c->topo->n[0] && !coords))
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for %d coordinates", c->topo->n[0]);
	grid_coords(c->topo, rank, coords);
	return MPI_SUCCESS;
}
MPI_DONE(Cart_coords);

int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	if (!rank_source || !rank_dest)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the ranks");
	if (direction < 0 || direction >= c->topo->n[0])
		return wm_error(c, __func__, MPI_ERR_ARG, "direction %d of %d", direction, c->topo->n[0]);
	wm_cart_shift(c->topo, direction, disp, rank_source, rank_dest);
	return MPI_SUCCESS;
}
MPI_DONE(Cart_shift);

/* Those who agree in the dimensions that are dropped come together, in the order of the grid. */
int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c;
	struct wm_topo *t, *whole;
	int r, left = 0, color = 0, key = 0;

	c = wm_topo_comm(__func__, comm, MPI_CART, &r);
	if (!c)
		return r;
	whole = c->topo;
	if (!newcomm || (whole->n[0] && !remain_dims))
		return wm_error(c, __func__, MPI_ERR_ARG, "no dimensions, or no place for the communicator");
	for (int i = 0; i < whole->n[0]; i++)
		left += remain_dims[i] != 0;
	t = wm_topo_new(MPI_CART, left, 0);
	left = 0;
	for (int i = 0; i < whole->n[0]; i++) {
		int *which = remain_dims[i] ? &key : &color;

		*which = *which * wm_cart_dims(whole)[i] + wm_cart_mine(whole)[i];
		if (!remain_dims[i] || !t)
			continue;
		wm_cart_dims(t)[left] = wm_cart_dims(whole)[i];
		wm_cart_periods(t)[left] = wm_cart_periods(whole)[i];
		wm_cart_mine(t)[left++] = wm_cart_mine(whole)[i];
	}
	return topo_split(c, __func__, color, key, t, newcomm);
}
MPI_DONE(Cart_sub);

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	int nodes;

	(void)periods;
	if (!c || c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (!newrank)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the rank");
	nodes = grid_nodes(ndims, dims, c->size);
	if (nodes < 0)
		return wm_error(c, __func__, MPI_ERR_DIMS, "a grid with %d dimensions that %d processes cannot fill",
				ndims, c->size);
	*newrank = c->rank < nodes ? c->rank : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
MPI_DONE(Cart_map);
