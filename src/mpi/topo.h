/* topo.h - the topology of a communicator, as topo.c and topo_graph.c make it and neighbor.c uses it.
 *
 * One block of numbers, so that a copy is a copy of memory. What its arrays hold, one after the other:
 *   MPI_CART        dims, periods, mine (coordinates of this rank), each n[0]
 *   MPI_GRAPH       indx, n[0]; edges, n[1]: the whole graph
 *   MPI_DIST_GRAPH  sources and their weights, each n[0]; destinations and their weights, each n[1]: this rank's alone
 */
#ifndef WM_TOPO_H
#define WM_TOPO_H

#include "inner.h"

struct wm_topo {
	int kind;
	int n[2];
	bool weighted;                  /* MPI_DIST_GRAPH: was not made MPI_UNWEIGHTED */
	size_t count;                   /* numbers in all */
	int numbers[];
};

struct wm_topo *wm_topo_new(int kind, int n0, int n1);          /* NULL: no memory */

static inline int *wm_cart_dims(struct wm_topo *t)
{
	return t->numbers;
}

static inline int *wm_cart_periods(struct wm_topo *t)
{
	return t->numbers + t->n[0];
}

static inline int *wm_cart_mine(struct wm_topo *t)
{
	return t->numbers + 2 * (size_t)t->n[0];
}

static inline int *wm_graph_index(struct wm_topo *t)
{
	return t->numbers;
}

static inline int *wm_graph_edges(struct wm_topo *t)
{
	return t->numbers + t->n[0];
}

static inline int *wm_dist_sources(struct wm_topo *t)
{
	return t->numbers;
}

static inline int *wm_dist_source_weights(struct wm_topo *t)
{
	return t->numbers + t->n[0];
}

static inline int *wm_dist_destinations(struct wm_topo *t)
{
	return t->numbers + 2 * (size_t)t->n[0];
}

static inline int *wm_dist_destination_weights(struct wm_topo *t)
{
	return t->numbers + 2 * (size_t)t->n[0] + t->n[1];
}

/* The ranks @disp steps before and behind mine in a dimension, or MPI_PROC_NULL. */
void wm_cart_shift(struct wm_topo *cart, int dimension, int disp, int *ret_source, int *ret_dest);

/* The neighbours of a rank in a whole graph: how many. */
int wm_graph_neighbors(struct wm_topo *graph, int rank, const int **ret_ranks);

/**
 * wm_topo_make - a communicator of the first @nodes of @old's members, with their ranks, and @topo (taken in any case)
 * on it. At a rank that is none of them *@ret_comm is MPI_COMM_NULL. Collective over @old. The errors are raised.
 */
int wm_topo_make(struct MPI_ABI_Comm *old, const char *function, int nodes, struct wm_topo *topo, MPI_Comm *ret_comm);

/* The communicator with a topology of @kind behind a handle, or NULL: *ret_err was raised. */
struct MPI_ABI_Comm *wm_topo_comm(const char *function, MPI_Comm comm, int kind, int *ret_err);

#endif
