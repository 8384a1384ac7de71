/* topo_graph.c - graphs: whole ones that every member knows, and distributed ones of which each knows its own edges.
 *
 * A distributed graph whose edges are told by anybody is brought to the ranks they touch by two exchanges among all: how
 * many, then the edges. They arrive ordered by the rank that told them, at both ends of an edge, so that edges between
 * the same two ranks are in the same order at both.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

/* Whole graphs */

/* How many edges there are, -1: it makes no sense or has more than @most nodes. */
static int graph_edges(int nnodes, const int indx[], const int edges[], int most)
{
	if (nnodes < 0 || nnodes > most || (nnodes && !indx))
		return -1;
	for (int i = 0; i < nnodes; i++)
		if (indx[i] < (i ? indx[i - 1] : 0))
			return -1;
	if (!nnodes || !indx[nnodes - 1])
		return 0;
	for (int i = 0; i < indx[nnodes - 1]; i++)
		if (!edges || edges[i] < 0 || edges[i] >= nnodes)
			return -1;
	return indx[nnodes - 1];
}

int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder, MPI_Comm *comm_graph)
{
	struct MPI_ABI_Comm *old = wm_comm(comm_old);
	struct wm_topo *t;
	int nedges;

	(void)reorder;
	if (!old || old->inter)
		return wm_error(old, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (!comm_graph)
		return wm_error(old, __func__, MPI_ERR_ARG, "no place for the communicator");
	nedges = graph_edges(nnodes, indx, edges, old->size);
	if (nedges < 0)
		return wm_error(old, __func__, MPI_ERR_ARG, "no graph for %d processes", old->size);
	t = wm_topo_new(MPI_GRAPH, nnodes, nedges);
	if (t && nnodes)
		memcpy(wm_graph_index(t), indx, (size_t)nnodes * sizeof(int));
	if (t && nedges)
		memcpy(wm_graph_edges(t), edges, (size_t)nedges * sizeof(int));
	return wm_topo_make(old, __func__, nnodes, t, comm_graph);
}
MPI_DONE(Graph_create);

int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c || c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (!newrank || graph_edges(nnodes, indx, edges, c->size) < 0)
		return wm_error(c, __func__, MPI_ERR_ARG, "no graph for %d processes, or no place for the rank", c->size);
	*newrank = c->rank < nnodes ? c->rank : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
MPI_DONE(Graph_map);

int PMPI_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_GRAPH, &r);
	if (!c)
		return r;
	if (!nnodes || !nedges)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the numbers");
	*nnodes = c->topo->n[0];
	*nedges = c->topo->n[1];
	return MPI_SUCCESS;
}
MPI_DONE(Graphdims_get);

/* As many as fit. */
static void numbers_copy(int *to, const int *from, int count, int room)
{
	if (room < count)
		count = room;
	if (count > 0)
		memcpy(to, from, (size_t)count * sizeof(int));
}

int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_GRAPH, &r);
	if (!c)
		return r;
	if (maxindex < 0 || maxedges < 0 || (maxindex && !indx) || (maxedges && !edges))
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the graph");
	numbers_copy(indx, wm_graph_index(c->topo), c->topo->n[0], maxindex);
	numbers_copy(edges, wm_graph_edges(c->topo), c->topo->n[1], maxedges);
	return MPI_SUCCESS;
}
MPI_DONE(Graph_get);

/* The graph's communicator and a rank of it, or NULL: *ret_err was raised. */
static struct MPI_ABI_Comm *graph_and_rank(const char *function, MPI_Comm comm, int rank, int *ret_err)
{
	struct MPI_ABI_Comm *c = wm_topo_comm(function, comm, MPI_GRAPH, ret_err);

	if (!c || (rank >= 0 && rank < c->size))
		return c;
	*ret_err = wm_error(c, function, MPI_ERR_RANK, "rank %d of %d", rank, c->size);
	return NULL;
}

int wm_graph_neighbors(struct wm_topo *graph, int rank, const int **ret_ranks)
{
	const int *index = wm_graph_index(graph);
	int from = rank ? index[rank - 1] : 0;

	*ret_ranks = wm_graph_edges(graph) + from;
	return index[rank] - from;
}

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
	struct MPI_ABI_Comm *c;
	const int *ranks;
	int r;

	c = graph_and_rank(__func__, comm, rank, &r);
	if (!c)
		return r;
	if (!nneighbors)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the number");
	*nneighbors = wm_graph_neighbors(c->topo, rank, &ranks);
	return MPI_SUCCESS;
}
MPI_DONE(Graph_neighbors_count);

int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[])
{
	struct MPI_ABI_Comm *c;
	const int *ranks;
	int r;

	c = graph_and_rank(__func__, comm, rank, &r);
	if (!c)
		return r;
	if (maxneighbors < 0 || (maxneighbors && !neighbors))
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the neighbours");
	r = wm_graph_neighbors(c->topo, rank, &ranks);
	numbers_copy(neighbors, ranks, r, maxneighbors);
	return MPI_SUCCESS;
}
MPI_DONE(Graph_neighbors);

/* Distributed graphs */

static bool weights_given(const int *weights)
{
	return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
}

/* Whether these are ranks of @size and weights, none negative. */
static bool edges_good(int n, const int ranks[], const int weights[], int size)
{
	if (n < 0 || (n && (!ranks || !weights || weights == MPI_WEIGHTS_EMPTY)))
		return false;
	for (int i = 0; i < n; i++)
		if (ranks[i] < 0 || ranks[i] >= size || (weights_given(weights) && weights[i] < 0))
			return false;
	return true;
}

static void edges_put(int *ranks, int *weights, int n, const int *from_ranks, const int *from_weights)
{
	for (int i = 0; i < n; i++) {
		ranks[i] = from_ranks[i];
		weights[i] = weights_given(from_weights) ? from_weights[i] : 1;
	}
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
				    int outdegree, const int destinations[], const int destweights[], MPI_Info info,
				    int reorder, MPI_Comm *comm_dist_graph)
{
	struct MPI_ABI_Comm *old = wm_comm(comm_old);
	struct wm_topo *t;

	(void)reorder;
	if (!old || old->inter)
		return wm_error(old, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (info != MPI_INFO_NULL && !wm_info(info))
		return wm_error(old, __func__, MPI_ERR_INFO, "no info object");
	if (!comm_dist_graph || !edges_good(indegree, sources, sourceweights, old->size) ||
	    !edges_good(outdegree, destinations, destweights, old->size))
		return wm_error(old, __func__, MPI_ERR_ARG, "no edges of %d processes, or no place for the communicator",
				old->size);
	t = wm_topo_new(MPI_DIST_GRAPH, indegree, outdegree);
	if (t) {
		t->weighted = sourceweights != MPI_UNWEIGHTED;
		edges_put(wm_dist_sources(t), wm_dist_source_weights(t), indegree, sources, sourceweights);
		edges_put(wm_dist_destinations(t), wm_dist_destination_weights(t), outdegree, destinations, destweights);
	}
	return wm_topo_make(old, __func__, old->size, t, comm_dist_graph);
}
MPI_DONE(Dist_graph_create_adjacent);

struct edge {                           /* in messages: three ints */
	int out;                        /* whether it leaves the rank that is told */
	int other, weight;
};

struct exchange {                       /* edges on their way to the ranks that they touch */
	int *send_counts, *send_at, *recv_counts, *recv_at;     /* by rank, in ints */
	struct edge *sent, *received;
	int nreceived;
};

/* Counts an edge for a rank while there is no memory for them; with it, puts the edge there. */
static void exchange_put(struct exchange *x, int rank, struct edge e)
{
	if (!x->sent) {
		x->send_counts[rank] += 3;
		return;
	}
	x->sent[x->send_at[rank] / 3] = e;
	x->send_at[rank] += 3;
}

static void exchange_fill(struct exchange *x, int n, const int sources[], const int degrees[], const int destinations[],
			  const int weights[])
{
	for (int i = 0, j = 0; i < n; i++)
		for (int end = j + degrees[i]; j < end; j++) {
			int weight = weights_given(weights) ? weights[j] : 1;

			exchange_put(x, sources[i], (struct edge){ 1, destinations[j], weight });
			exchange_put(x, destinations[j], (struct edge){ 0, sources[i], weight });
		}
}

/* Where the block of each rank begins; how many ints there are in all, -1: more than MPI can tell. */
static int exchange_places(const int *counts, int *at, int size)
{
	int64_t sum = 0;

	for (int i = 0; i < size; i++) {
		at[i] = (int)sum;
		sum += counts[i];
		if (sum > INT_MAX)
			return -1;
	}
	return (int)sum;
}

static void exchange_free(struct exchange *x)
{
	free(x->send_counts);
	free(x->sent);
	free(x->received);
}

/* Tells every rank its edges, and fills received. MPI_SUCCESS or an error class that nobody has raised (*ret_raised:
 * somebody has). */
static int exchange_run(struct exchange *x, struct MPI_ABI_Comm *c, int n, const int sources[], const int degrees[],
			const int destinations[], const int weights[], bool *ret_raised)
{
	MPI_Comm comm = wm_comm_handle(c);
	size_t size = (size_t)c->size;
	int total, r;

	x->send_counts = calloc(4 * size, sizeof(int));
	if (!x->send_counts)
		return MPI_ERR_NO_MEM;
	x->send_at = x->send_counts + size;
	x->recv_counts = x->send_counts + 2 * size;
	x->recv_at = x->send_counts + 3 * size;
	exchange_fill(x, n, sources, degrees, destinations, weights);
	total = exchange_places(x->send_counts, x->send_at, c->size);
	x->sent = total < 0 ? NULL : malloc((size_t)total * sizeof(int) + 1);
	if (!x->sent)
		return MPI_ERR_NO_MEM;
	exchange_fill(x, n, sources, degrees, destinations, weights);
	exchange_places(x->send_counts, x->send_at, c->size);

	*ret_raised = true;
	r = PMPI_Alltoall(x->send_counts, 1, MPI_INT, x->recv_counts, 1, MPI_INT, comm);
	if (r != MPI_SUCCESS)
		return r;
	total = exchange_places(x->recv_counts, x->recv_at, c->size);
	x->received = total < 0 ? NULL : malloc((size_t)total * sizeof(int) + 1);
	*ret_raised = x->received;
	if (!x->received)
		return MPI_ERR_NO_MEM;
	x->nreceived = total / 3;
	return PMPI_Alltoallv(x->sent, x->send_counts, x->send_at, MPI_INT, x->received, x->recv_counts, x->recv_at, MPI_INT,
			      comm);
}

/* NULL: no memory. */
static struct wm_topo *exchange_topo(const struct exchange *x)
{
	int out = 0, n[2] = { 0, 0 };
	struct wm_topo *t;

	for (int i = 0; i < x->nreceived; i++)
		out += x->received[i].out;
	t = wm_topo_new(MPI_DIST_GRAPH, x->nreceived - out, out);
	for (int i = 0; t && i < x->nreceived; i++) {
		const struct edge *e = &x->received[i];
		int at = n[e->out]++;

		(e->out ? wm_dist_destinations(t) : wm_dist_sources(t))[at] = e->other;
		(e->out ? wm_dist_destination_weights(t) : wm_dist_source_weights(t))[at] = e->weight;
	}
	return t;
}

/* Whether the edges are of @size processes. */
static bool told_good(int n, const int sources[], const int degrees[], const int destinations[], const int weights[],
		      int size)
{
	int64_t edges = 0;

	if (n < 0 || (n && (!sources || !degrees)))
		return false;
	for (int i = 0; i < n; i++) {
		if (sources[i] < 0 || sources[i] >= size || degrees[i] < 0)
			return false;
		edges += degrees[i];
	}
	return edges <= INT_MAX && edges_good((int)edges, destinations, weights, size);
}

int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
			   const int weights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph)
{
	struct MPI_ABI_Comm *old = wm_comm(comm_old);
	struct exchange x = { 0 };
	struct wm_topo *t;
	bool raised = false;
	int r;

	(void)reorder;
	if (!old || old->inter)
		return wm_error(old, __func__, MPI_ERR_COMM, "no intracommunicator");
	if (info != MPI_INFO_NULL && !wm_info(info))
		return wm_error(old, __func__, MPI_ERR_INFO, "no info object");
	if (!comm_dist_graph || !told_good(n, sources, degrees, destinations, weights, old->size))
		return wm_error(old, __func__, MPI_ERR_ARG, "no edges of %d processes, or no place for the communicator",
				old->size);
	r = exchange_run(&x, old, n, sources, degrees, destinations, weights, &raised);
	t = r == MPI_SUCCESS ? exchange_topo(&x) : NULL;
	exchange_free(&x);
	if (r != MPI_SUCCESS)
		return raised ? r : wm_error(old, __func__, r, "no memory for the edges");
	if (t)
		t->weighted = weights != MPI_UNWEIGHTED;
	return wm_topo_make(old, __func__, old->size, t, comm_dist_graph);
}
MPI_DONE(Dist_graph_create);

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree, int *weighted)
{
	struct MPI_ABI_Comm *c;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_DIST_GRAPH, &r);
	if (!c)
		return r;
	if (!indegree || !outdegree || !weighted)
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the numbers");
	*indegree = c->topo->n[0];
	*outdegree = c->topo->n[1];
	*weighted = c->topo->weighted;
	return MPI_SUCCESS;
}
MPI_DONE(Dist_graph_neighbors_count);

int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
			      int destinations[], int destweights[])
{
	struct MPI_ABI_Comm *c;
	struct wm_topo *t;
	int r;

	c = wm_topo_comm(__func__, comm, MPI_DIST_GRAPH, &r);
	if (!c)
		return r;
	t = c->topo;
	if (maxindegree < 0 || maxoutdegree < 0 || (maxindegree && !sources) || (maxoutdegree && !destinations))
		return wm_error(c, __func__, MPI_ERR_ARG, "no place for the neighbours");
	numbers_copy(sources, wm_dist_sources(t), t->n[0], maxindegree);
	numbers_copy(destinations, wm_dist_destinations(t), t->n[1], maxoutdegree);
	if (t->weighted && sourceweights && weights_given(sourceweights))
		numbers_copy(sourceweights, wm_dist_source_weights(t), t->n[0], maxindegree);
	if (t->weighted && destweights && weights_given(destweights))
		numbers_copy(destweights, wm_dist_destination_weights(t), t->n[1], maxoutdegree);
	return MPI_SUCCESS;
}
MPI_DONE(Dist_graph_neighbors);
