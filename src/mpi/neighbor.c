/* neighbor.c - collectives among the neighbours of a topology: each rank receives a block from every neighbour that it
 * has an edge from, and sends one to every neighbour that it has an edge to.
 *
 * Receives are posted first, then sends, all with the collective's tag. Between the same two ranks, if there are several
 * edges, blocks are matched in order: that of the lists in a graph. In a grid the neighbours of a dimension are the one
 * before and the one behind, and what was sent to the one before is received from the one behind; where the two are
 * the same rank (a ring of two, or of one: myself) the order of sending tells which is which, so each sends forwards first.
 */
#include <stdlib.h>

#include "coll.h"
#include "topo.h"

struct neighbors {
	struct wm_topo *topo;
	int rank;                       /* mine */
	int in, out;                    /* how many */
	bool each;                      /* a block for every one is sent, not one to all */
};

static struct neighbors neighbors_of(struct MPI_ABI_Comm *comm, bool each)
{
	struct neighbors n = { .topo = comm->topo, .rank = comm->rank, .each = each };
	const int *ranks;

	if (n.topo->kind == MPI_CART) {
		n.in = n.out = 2 * n.topo->n[0];
	} else if (n.topo->kind == MPI_GRAPH) {
		n.in = n.out = wm_graph_neighbors(n.topo, n.rank, &ranks);
	} else {
		n.in = n.topo->n[0];
		n.out = n.topo->n[1];
	}
	return n;
}

/* The rank of neighbour @i, of those that send or of those that receive. */
static int neighbor(const struct neighbors *n, int i, bool out)
{
	const int *ranks;
	int before, behind;

	if (n->topo->kind == MPI_CART) {
		wm_cart_shift(n->topo, i / 2, 1, &before, &behind);
		return i % 2 ? behind : before;
	}
	if (n->topo->kind == MPI_GRAPH)
		wm_graph_neighbors(n->topo, n->rank, &ranks);
	else
		ranks = out ? wm_dist_destinations(n->topo) : wm_dist_sources(n->topo);
	return ranks[i];
}

/* The i-th to be sent: its place. */
static int sending_order(const struct neighbors *n, int i)
{
	return n->topo->kind == MPI_CART ? i ^ 1 : i;
}

/* Like wm_block_of, and with counts as int and places in bytes too. */
static struct wm_block block_of(const struct wm_blocks *b, int i)
{
	if (b->counts && b->displs_c)
		return (struct wm_block){ (char *)b->buf + b->displs_c[i], b->counts[i], wm_type(b->types[i]) };
	return wm_block_of(b, i);
}

/* With memory to post everything at once; without (c failed then), the others are served all the same. */
static void exchange(struct wm_coll *c, const struct neighbors *n, struct wm_pending *p, const struct wm_blocks *send,
		     const struct wm_blocks *recv)
{
	int peer, at;

	for (int i = 0; p && i < n->in; i++) {
		peer = neighbor(n, i, false);
		if (peer != MPI_PROC_NULL)
			wm_coll_recv_post(c, &p[i], peer, block_of(recv, i));
	}
	for (int i = 0; i < n->out; i++) {
		at = sending_order(n, i);
		peer = neighbor(n, at, true);
		if (peer == MPI_PROC_NULL)
			continue;
		if (p)
			wm_coll_send_post(c, &p[n->in + i], peer, block_of(send, n->each ? at : 0));
		else
			wm_coll_send(c, peer, wm_bytes(NULL, 0));
	}
	for (int i = 0; !p && i < n->in; i++) {
		peer = neighbor(n, i, false);
		if (peer != MPI_PROC_NULL)
			wm_coll_recv(c, peer, wm_bytes(NULL, 0));
	}
	if (p)
		wm_coll_wait_all(c, p, n->in + n->out);
}

/* Whether the @n blocks are good: 0 or an error class. */
static int blocks_check(const struct wm_blocks *b, int n)
{
	int r = b->buf == MPI_IN_PLACE ? MPI_ERR_BUFFER : 0;

	if (!n || r)
		return r;
	if ((b->counts || b->counts_c) && !b->displs && !b->displs_c)
		return MPI_ERR_ARG;
	for (int i = 0; i < n && !r; i++) {
		const struct MPI_ABI_Datatype *type = b->types ? wm_type(b->types[i]) : b->type;

		struct wm_block one;

		if (!type)
			return MPI_ERR_TYPE;
		one = block_of(b, i);
		/* Where places are in bytes, the buffer may be MPI_BOTTOM and the place an address. */
		r = wm_check_data(b->types ? one.buf : b->buf, one.count, type);
	}
	return r;
}

void wm_neighbors_count(struct MPI_ABI_Comm *comm, int *ret_in, int *ret_out)
{
	const struct neighbors n = neighbors_of(comm, true);

	*ret_in = n.in;
	*ret_out = n.out;
}

int wm_neighbors_check(struct MPI_ABI_Comm *comm, const struct wm_blocks *send, bool each, const struct wm_blocks *recv)
{
	struct neighbors n;
	int r;

	if (!comm->topo)
		return MPI_ERR_TOPOLOGY;
	n = neighbors_of(comm, each);
	r = blocks_check(send, each ? n.out : 1);
	return r ? r : blocks_check(recv, n.in);
}

void wm_neighbors(struct wm_coll *c, const struct wm_blocks *send, bool each, const struct wm_blocks *recv)
{
	const struct neighbors n = neighbors_of(c->comm, each);
	struct wm_pending *pending = calloc((size_t)n.in + (size_t)n.out + 1, sizeof(*pending));

	if (!pending)
		wm_coll_fail(c, -ENOMEM);
	exchange(c, &n, pending, send, recv);
	free(pending);
}

/* What all of them do. */
static int neighbor_exchange(const char *function, MPI_Comm comm, struct wm_blocks send, bool each, struct wm_blocks recv)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_neighbors_check(m, &send, each, &recv);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_neighbors(&c, &send, each, &recv);
	return wm_coll_end(&c, function);
}

int PMPI_Neighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .count = recvcount };

	return neighbor_exchange(__func__, comm, send, false, recv);
}
MPI_DONE(Neighbor_allgather_c);

int PMPI_Neighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
			     const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .counts = recvcounts, .displs = displs };

	return neighbor_exchange(__func__, comm, send, false, recv);
}
MPI_DONE(Neighbor_allgatherv);

int PMPI_Neighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			       const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .counts_c = recvcounts, .displs_c = displs };

	return neighbor_exchange(__func__, comm, send, false, recv);
}
MPI_DONE(Neighbor_allgatherv_c);

int PMPI_Neighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .count = recvcount };

	return neighbor_exchange(__func__, comm, send, true, recv);
}
MPI_DONE(Neighbor_alltoall_c);

int PMPI_Neighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
			    MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[],
			    MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .counts = sendcounts,
					.displs = sdispls };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .counts = recvcounts,
					.displs = rdispls };

	return neighbor_exchange(__func__, comm, send, true, recv);
}
MPI_DONE(Neighbor_alltoallv);

int PMPI_Neighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			      MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			      MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .counts_c = sendcounts,
					.displs_c = sdispls };
	const struct wm_blocks recv = { .buf = recvbuf, .type = wm_type(recvtype), .counts_c = recvcounts,
					.displs_c = rdispls };

	return neighbor_exchange(__func__, comm, send, true, recv);
}
MPI_DONE(Neighbor_alltoallv_c);

int PMPI_Neighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
			    const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
			    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .types = sendtypes, .counts = sendcounts,
					.displs_c = sdispls };
	const struct wm_blocks recv = { .buf = recvbuf, .types = recvtypes, .counts = recvcounts, .displs_c = rdispls };

	return neighbor_exchange(__func__, comm, send, true, recv);
}
MPI_DONE(Neighbor_alltoallw);

int PMPI_Neighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			      const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
			      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	const struct wm_blocks send = { .buf = (void *)(uintptr_t)sendbuf, .types = sendtypes, .counts_c = sendcounts,
					.displs_c = sdispls };
	const struct wm_blocks recv = { .buf = recvbuf, .types = recvtypes, .counts_c = recvcounts, .displs_c = rdispls };

	return neighbor_exchange(__func__, comm, send, true, recv);
}
MPI_DONE(Neighbor_alltoallw_c);
