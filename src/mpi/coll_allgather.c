/* coll_allgather.c - MPI_Allgather and MPI_Allgatherv. */
#include <stdlib.h>

#include "coll.h"

#define DOUBLING_TO 4096        /* bytes of all blocks up to which few steps beat few bytes */

/* Every block goes once round. */
static void ring(struct wm_coll *c, const struct wm_blocks *all)
{
	const int rank = c->comm->rank, size = c->comm->size;
	const int right = (rank + 1) % size, left = (rank - 1 + size) % size;

	for (int i = 0; i < size - 1; i++)
		wm_coll_exchange(c, right, wm_block_of(all, (rank - i + size) % size),
				 left, wm_block_of(all, (rank - i - 1 + size) % size));
}

/* With each step everybody has twice as many blocks together, of itself and of those after it. Blocks are equal. */
static void doubling(struct wm_coll *c, const struct wm_blocks *all)
{
	const int rank = c->comm->rank, size = c->comm->size;
	const size_t len = wm_block_len(wm_block_of(all, rank));
	void *memory;
	char *bytes = wm_coll_scratch(c, (MPI_Count)(len * (size_t)size), wm_byte, &memory);

	wm_coll_copy(c, wm_bytes(bytes, len), wm_block_of(all, rank));
	for (int have = 1; have < size; have *= 2) {
		int blocks = have < size - have ? have : size - have;

		wm_coll_exchange(c, (rank - have + size) % size, wm_bytes(bytes, len * (size_t)blocks),
				 (rank + have) % size, wm_bytes(bytes + len * (size_t)have, len * (size_t)blocks));
	}
	for (int i = 1; i < size; i++)
		wm_coll_copy(c, wm_block_of(all, (rank + i) % size), wm_bytes(bytes + len * (size_t)i, len));
	free(memory);
}

void wm_allgather(struct wm_coll *c, struct wm_block mine, const struct wm_blocks *all)
{
	const struct MPI_ABI_Comm *comm = c->comm;
	size_t len;

	if (comm->inter) {
		wm_inter_allgather(c, mine, all);
		return;
	}
	if (mine.buf != MPI_IN_PLACE)
		wm_coll_copy(c, wm_block_of(all, comm->rank), mine);
	len = wm_block_len(wm_block_of(all, comm->rank));
	if (wm_crowded(comm))
		wm_crowd_allgather(c, all);
	else if (!all->vary && len * (size_t)comm->size <= DOUBLING_TO)
		doubling(c, all);
	else
		ring(c, all);
}

int wm_allgather_check(const struct MPI_ABI_Comm *m, struct wm_block mine, const struct wm_blocks *all)
{
	int r = wm_check_blocks(all, m->peers);

	if (!r && mine.buf == MPI_IN_PLACE)
		r = m->inter ? MPI_ERR_BUFFER : 0;
	else if (!r)
		r = wm_check_data(mine.buf, mine.count, mine.type);
	if (!r && (all->buf == MPI_IN_PLACE || (!all->vary && all->count && mine.buf && mine.buf == all->buf)))
		r = MPI_ERR_BUFFER;
	return r;
}

static int allgather(const char *function, struct wm_block mine, const struct wm_blocks *all, MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_allgather_check(m, mine, all);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_allgather(&c, mine, all);
	return wm_coll_end(&c, function);
}

int PMPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks all = { .buf = recvbuf, .type = wm_type(recvtype), .count = recvcount };

	return allgather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, comm);
}
MPI_DONE(Allgather_c);

int PMPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
		    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts = recvcounts, .displs = displs
	};

	return allgather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, comm);
}
MPI_DONE(Allgatherv);

int PMPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		      const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks all = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts_c = recvcounts, .displs_c = displs
	};

	return allgather(__func__, wm_block(sendbuf, sendcount, sendtype), &all, comm);
}
MPI_DONE(Allgatherv_c);
