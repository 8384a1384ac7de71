/* coll_gather.c - MPI_Gather and MPI_Gatherv. */
#include <stdlib.h>

#include "coll.h"

#define TREE_TO 1024    /* bytes per member up to which those on the way carry what is not theirs, where the root is far */

/* Everybody sends to the root; between the groups of an intercommunicator too. */
static void flat(struct wm_coll *c, int root, struct wm_block mine, const struct wm_blocks *all)
{
	const int self = c->comm->inter ? -1 : c->comm->rank;
	struct wm_pending p[WM_WINDOW];
	int posted = 0;

	if (root != self && root != MPI_ROOT) {
		wm_coll_send(c, root, mine);
		return;
	}
	for (int i = 0; i < c->comm->peers; i++) {
		if (i == self)
			continue;
		if (posted >= WM_WINDOW)
			wm_coll_wait(c, &p[posted % WM_WINDOW]);
		wm_coll_recv_post(c, &p[posted++ % WM_WINDOW], i, wm_block_of(all, i));
	}
	if (self >= 0 && mine.buf != MPI_IN_PLACE)
		wm_coll_copy(c, wm_block_of(all, self), mine);
	wm_coll_wait_all(c, p, posted < WM_WINDOW ? posted : WM_WINDOW);
}

/* Ranks count from the root. One whose lowest bit set is b has the blocks of b members together, its own first, when it
 * sends them to the one without that bit. Blocks are equal. */
static void tree(struct wm_coll *c, int root, struct wm_block mine, const struct wm_blocks *all)
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
	wm_coll_copy(c, wm_bytes(bytes, len), own);
	for (int bit = 1; bit < have && rank + bit < size; bit *= 2) {
		int blocks = bit < size - rank - bit ? bit : size - rank - bit;

		wm_coll_recv(c, (rank + bit + root) % size, wm_bytes(bytes + len * (size_t)bit, len * (size_t)blocks));
	}
	if (rank)
		wm_coll_send(c, (rank - have + root) % size, wm_bytes(bytes, len * (size_t)(have < size - rank ? have : size - rank)));
	for (int i = mine.buf == MPI_IN_PLACE; i < size && !rank; i++)
		wm_coll_copy(c, wm_block_of(all, (i + root) % size), wm_bytes(bytes + len * (size_t)i, len));
	free(memory);
}

void wm_gather(struct wm_coll *c, int root, struct wm_block mine, const struct wm_blocks *all)
{
	const struct MPI_ABI_Comm *comm = c->comm;

	if (root == MPI_PROC_NULL)
		return;
	if (comm->inter || comm->here || comm->size < 5 || all->vary ||
	    wm_block_len(mine.buf == MPI_IN_PLACE ? wm_block_of(all, root) : mine) > TREE_TO)
		flat(c, root, mine, all);
	else
		tree(c, root, mine, all);
}

int wm_gather_check(const struct MPI_ABI_Comm *m, int root, struct wm_block mine, const struct wm_blocks *all)
{
	bool takes = m->inter ? root == MPI_ROOT : root == m->rank;
	int r = wm_check_root(m, root);

	if (!r && takes)
		r = wm_check_blocks(all, m->peers);
	if (!r && root != MPI_ROOT && root != MPI_PROC_NULL && !(takes && mine.buf == MPI_IN_PLACE))
		r = mine.buf == MPI_IN_PLACE ? MPI_ERR_BUFFER : wm_check_data(mine.buf, mine.count, mine.type);
	if (!r && takes && !m->inter && !all->vary && all->count && mine.buf && mine.buf == all->buf)
		r = MPI_ERR_BUFFER;
	return r;
}

static int gather(const char *function, struct wm_block mine, const struct wm_blocks *all, int root, MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_gather_check(m, root, mine, all);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_gather(&c, root, mine, all);
	return wm_coll_end(&c, function);
}

int PMPI_Gather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = { .buf = recvbuf, .type = wm_type(recvtype), .count = recvcount };

	return gather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, root, comm);
}
MPI_DONE(Gather_c);

int PMPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
		 const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts = recvcounts, .displs = displs
	};

	return gather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, root, comm);
}
MPI_DONE(Gatherv);

int PMPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts_c = recvcounts, .displs_c = displs
	};

	return gather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, root, comm);
}
MPI_DONE(Gatherv_c);
