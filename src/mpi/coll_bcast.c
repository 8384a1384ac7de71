/* coll_bcast.c - MPI_Bcast.
 *
 * Members choose by how many bytes there are: count and type may differ between them, bytes may not.
 */
#include <stdlib.h>

#include "coll.h"

#define LEND_FROM (16 << 10)            /* bytes from which on there is one buffer for all on one host; figures in coll_crowd.c */
#define CHAIN_FROM 4096                 /* bytes per member from which on a chain sends less than the tree; reckoned, not measured */
#define CHAIN_PART ((size_t)32 << 10)

/* Ranks count from the root. One whose lowest bit set is b has its copy from the one without that bit and gives
 * it to those with one bit more below b. */
static void tree(struct wm_coll *c, int root, struct wm_block b)
{
	const int size = c->comm->size, rank = (c->comm->rank - root + size) % size;
	int bit = 1;

	while (bit < size && !(rank & bit))
		bit *= 2;
	if (rank)
		wm_coll_recv(c, (rank - bit + root) % size, b);
	for (bit /= 2; bit; bit /= 2)
		if (rank + bit < size)
			wm_coll_send(c, (rank + bit + root) % size, b);
}

static struct wm_block chain_part(char *bytes, size_t len, size_t i)
{
	size_t at = i * CHAIN_PART;

	return wm_bytes(bytes + at, len - at < CHAIN_PART ? len - at : CHAIN_PART);
}

/* From the root on each passes parts on to the next, one while it waits for another. */
static void chain(struct wm_coll *c, int root, struct wm_block b)
{
	const int size = c->comm->size, rank = c->comm->rank;
	const int next = (rank + 1) % size, before = (rank - 1 + size) % size;
	const size_t len = wm_block_len(b), parts = (len + CHAIN_PART - 1) / CHAIN_PART;
	struct wm_pending p[2];
	void *packed = NULL;
	char *bytes = b.type->plain ? b.buf : wm_coll_scratch(c, (MPI_Count)len, wm_byte, &packed);

	if (rank == root && packed)
		wm_coll_copy(c, wm_bytes(bytes, len), b);
	if (rank != root)
		wm_coll_recv_post(c, &p[0], before, chain_part(bytes, len, 0));
	for (size_t i = 0; i < parts; i++) {
		if (rank != root)
			wm_coll_wait(c, &p[i % 2]);
		if (rank != root && i + 1 < parts)
			wm_coll_recv_post(c, &p[(i + 1) % 2], before, chain_part(bytes, len, i + 1));
		if (next != root)
			wm_coll_send(c, next, chain_part(bytes, len, i));
	}
	if (rank != root && packed)
		wm_coll_copy(c, b, wm_bytes(bytes, len));
	free(packed);
}

void wm_bcast(struct wm_coll *c, int root, struct wm_block b)
{
	const size_t len = c->comm->inter ? 0 : wm_block_len(b);

	if (c->comm->inter)
		wm_inter_bcast(c, root, b);
	else if (wm_crowded(c->comm) || (c->comm->here && c->comm->size > 2 && len >= LEND_FROM))
		wm_crowd_bcast(c, root, b);
	else if (c->comm->size > 2 && len / (size_t)c->comm->size >= CHAIN_FROM)
		chain(c, root, b);
	else if (len)
		tree(c, root, b);
}

int wm_bcast_check(const struct MPI_ABI_Comm *comm, int root, struct wm_block b)
{
	int r = wm_check_root(comm, root);

	if (!r && root != MPI_PROC_NULL)
		r = b.buf == MPI_IN_PLACE ? MPI_ERR_BUFFER : wm_check_data(b.buf, b.count, b.type);
	return r;
}

int PMPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
	const struct wm_block b = { buffer, count, wm_type(datatype) };
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, __func__, MPI_ERR_COMM);
	r = wm_bcast_check(m, root, b);
	if (r)
		return wm_coll_wrong(m, __func__, r);
	c = wm_coll_begin(m);
	wm_bcast(&c, root, b);
	return wm_coll_end(&c, __func__);
}
MPI_DONE(Bcast_c);
