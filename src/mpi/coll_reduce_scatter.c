/* coll_reduce_scatter.c - MPI_Reduce_scatter and MPI_Reduce_scatter_block. */
#include <stdlib.h>

#include "coll_parts.h"

#define PAIRWISE_FROM (16 << 10)        /* bytes in all from which on the work shall be everybody's */

void wm_parts_give(struct wm_coll *c, const void *all, const struct wm_blocks *parts)
{
	const struct wm_block mine = { parts->buf, wm_part_count(parts, c->comm->rank), parts->type };

	if (c->comm->rank) {
		wm_coll_recv(c, 0, mine);
		return;
	}
	for (int i = 1; i < c->comm->size; i++)
		wm_coll_send(c, i, wm_part(parts, all, i));
	wm_coll_copy(c, mine, wm_part(parts, all, 0));
}

static void by_one(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out)
{
	struct wm_block all = { NULL, wm_parts_before(out, c->comm->size), out->type };
	void *memory = NULL;

	if (c->comm->rank == 0)
		all.buf = wm_coll_scratch(c, all.count, all.type, &memory);
	wm_reduce(c, 0, op, in == MPI_IN_PLACE ? out->buf : in, all);
	wm_parts_give(c, all.buf, out);
	free(memory);
}

/* Everybody sends each its part, and takes what comes into its own: in no order. */
static void pairwise(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out)
{
	const int rank = c->comm->rank, size = c->comm->size;
	const void *from = in == MPI_IN_PLACE ? out->buf : in;
	const struct wm_block mine = { out->buf, wm_part_count(out, rank), out->type };
	struct wm_block acc = mine, got = mine;
	void *memory[2] = { NULL, NULL };

	got.buf = wm_coll_scratch(c, mine.count, mine.type, &memory[0]);
	if (in == MPI_IN_PLACE)         /* there, what others are still to be sent may lie */
		acc.buf = wm_coll_scratch(c, mine.count, mine.type, &memory[1]);
	wm_coll_copy(c, acc, wm_part(out, from, rank));
	for (int i = 1; i < size; i++) {
		int to = (rank + i) % size, source = (rank - i + size) % size;

		wm_coll_exchange(c, to, wm_part(out, from, to), source, got);
		if (mine.count)
			wm_coll_combine(c, op, &acc, &got, false);
	}
	wm_coll_copy(c, mine, acc);
	free(memory[0]);
	free(memory[1]);
}

void wm_reduce_scatter(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out)
{
	if (c->comm->inter)
		wm_inter_reduce_scatter(c, op, in, out);
	else if (op->commutative && wm_parts_before(out, c->comm->size) * out->type->size >= PAIRWISE_FROM)
		pairwise(c, op, in, out);
	else
		by_one(c, op, in, out);
}

int wm_reduce_scatter_check(const struct MPI_ABI_Comm *m, const struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out)
{
	struct wm_block all = { out->buf, out->count, out->type };

	if (out->vary && !out->counts && !out->counts_c)
		return MPI_ERR_ARG;
	for (int i = 0; i < m->size && out->vary; i++)
		if (wm_part_count(out, i) < 0)
			return MPI_ERR_COUNT;
	if (in == MPI_IN_PLACE && m->inter)
		return MPI_ERR_BUFFER;
	all.count = wm_parts_before(out, m->size);
	/* Whose part is empty needs no room for it. */
	if (!all.buf && !wm_part_count(out, m->rank) && in != MPI_IN_PLACE && in)
		all.buf = (char *)(uintptr_t)in + 1;
	return wm_check_reduce(op, in, all);
}

static int reduce_scatter(const char *function, const void *in, const struct wm_blocks *out, MPI_Op op, MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct MPI_ABI_Op *o = wm_op(op);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_reduce_scatter_check(m, o, in, out);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_reduce_scatter(&c, o, in, out);
	return wm_coll_end(&c, function);
}

int PMPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	const struct wm_blocks out = { .buf = recvbuf, .type = wm_type(datatype), .vary = true, .counts = recvcounts };

	return reduce_scatter(__func__, sendbuf, &out, op, comm);
}
MPI_DONE(Reduce_scatter);

int PMPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
			  MPI_Comm comm)
{
	const struct wm_blocks out = { .buf = recvbuf, .type = wm_type(datatype), .vary = true, .counts_c = recvcounts };

	return reduce_scatter(__func__, sendbuf, &out, op, comm);
}
MPI_DONE(Reduce_scatter_c);

int PMPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
				MPI_Comm comm)
{
	const struct wm_blocks out = { .buf = recvbuf, .type = wm_type(datatype), .count = recvcount };

	return reduce_scatter(__func__, sendbuf, &out, op, comm);
}
MPI_DONE(Reduce_scatter_block_c);
