/* coll_scatter.c - MPI_Scatter and MPI_Scatterv: the ways of coll_gather.c, backwards. */
#include <stdlib.h>

#include "coll.h"

#define TREE_TO 1024    /* as in coll_gather.c */

static void flat(struct wm_coll *c, int root, const struct wm_blocks *all, struct wm_block mine)
{
	const int self = c->comm->inter ? -1 : c->comm->rank;
	struct wm_pending p[WM_WINDOW];
	int posted = 0;

	if (root != self && root != MPI_ROOT) {
		wm_coll_recv(c, root, mine);
		return;
	}
	for (int i = 0; i < c->comm->peers; i++) {
		if (i == self)
			continue;
		if (posted >= WM_WINDOW)
			wm_coll_wait(c, &p[posted % WM_WINDOW]);
		wm_coll_send_post(c, &p[posted++ % WM_WINDOW], i, wm_block_of(all, i));
	}
	if (self >= 0 && mine.buf != MPI_IN_PLACE)
		wm_coll_copy(c, mine, wm_block_of(all, self));
	wm_coll_wait_all(c, p, posted < WM_WINDOW ? posted : WM_WINDOW);
}

static void tree(struct wm_coll *c, int root, const struct wm_blocks *all, struct wm_block mine)
{
	const int size = c->comm->size, rank = (c->comm->rank - root + size) % size;
	const struct wm_block own = mine.buf == MPI_IN_PLACE ? wm_block_of(all, root) : mine;
	const size_t len = wm_block_len(own);
	int have = 1;
	void *memory;
	char *bytes;

	while (have < size && !(rank & have))
		have *= 2;
	bytes = wm_coll_scratch(c, (MPI_Count)(len * (size_t)(have < size - rank ? have : size - rank)), wm_byte, &memory);
	for (int i = 1; i < size && !rank; i++)
		wm_coll_copy(c, wm_bytes(bytes + len * (size_t)i, len), wm_block_of(all, (i + root) % size));
	if (rank)
		wm_coll_recv(c, (rank - have + root) % size, wm_bytes(bytes, len * (size_t)(have < size - rank ? have : size - rank)));
	for (int bit = have / 2; bit; bit /= 2) {
		int blocks = bit < size - rank - bit ? bit : size - rank - bit;

		if (blocks > 0)
			wm_coll_send(c, (rank + bit + root) % size, wm_bytes(bytes + len * (size_t)bit, len * (size_t)blocks));
	}
	if (mine.buf != MPI_IN_PLACE)
		wm_coll_copy(c, mine, rank ? wm_bytes(bytes, len) : wm_block_of(all, root));
	free(memory);
}

void wm_scatter(struct wm_coll *c, int root, const struct wm_blocks *all, struct wm_block mine)
{
	const struct MPI_ABI_Comm *comm = c->comm;

	if (root == MPI_PROC_NULL)
		return;
	if (comm->inter || comm->here || comm->size < 5 || all->vary ||
	    wm_block_len(mine.buf == MPI_IN_PLACE ? wm_block_of(all, root) : mine) > TREE_TO)
		flat(c, root, all, mine);
	else
		tree(c, root, all, mine);
}

int wm_scatter_check(const struct MPI_ABI_Comm *m, int root, const struct wm_blocks *all, struct wm_block mine)
{
	return wm_gather_check(m, root, mine, all);     /* who has them all, and who one, is the same */
}

static int scatter(const char *function, const struct wm_blocks *all, struct wm_block mine, int root, MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_scatter_check(m, root, all, mine);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_scatter(&c, root, all, mine);
	return wm_coll_end(&c, function);
}

int PMPI_Scatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		   void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };

	return scatter(__func__, &all, wm_block(recvbuf, recvcount, recvtype), root, comm);
}
MPI_DONE(Scatter_c);

int PMPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
		  void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .vary = true, .counts = sendcounts, .displs = displs
	};

	return scatter(__func__, &all, wm_block(recvbuf, recvcount, recvtype), root, comm);
}
MPI_DONE(Scatterv);

int PMPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
		    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .vary = true, .counts_c = sendcounts, .displs_c = displs
	};

	return scatter(__func__, &all, wm_block(recvbuf, recvcount, recvtype), root, comm);
}
MPI_DONE(Scatterv_c);
