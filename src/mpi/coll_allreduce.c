/* coll_allreduce.c - MPI_Allreduce. What is of lower ranks is always the left operand (see coll_reduce.c). */
#include <stdlib.h>

#include "coll_halves.h"

#define HALVES_FROM 8192        /* bytes from which on each member shall send no more than twice what there is; reckoned, not measured */

/* Pairs at growing distance give each other all they have. */
static void doubling(struct wm_coll *c, const struct wm_halves *h, struct MPI_ABI_Op *op, struct wm_block *acc,
		     struct wm_block *got)
{
	for (int bit = 1; bit < h->members && h->place >= 0; bit *= 2) {
		int other = wm_place_rank(h, h->place ^ bit);

		wm_coll_exchange(c, other, *acc, other, *got);
		wm_coll_combine(c, op, acc, got, !(h->place & bit));
	}
}

/* Each place reduces a range, then pairs at shrinking distance give each other the ranges they have. */
static void halves(struct wm_coll *c, const struct wm_halves *h, struct MPI_ABI_Op *op, struct wm_block *acc,
		   struct wm_block *got)
{
	wm_halves_reduce(c, h, op, acc, got);
	for (int bit = h->members / 2; bit && h->place >= 0; bit /= 2) {
		int other = wm_place_rank(h, h->place ^ bit);

		wm_coll_exchange(c, other, wm_half(*acc, h->place, 2 * bit), other, wm_half(*acc, h->place ^ bit, 2 * bit));
	}
}

void wm_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	const struct wm_block mine = { in == MPI_IN_PLACE ? out.buf : (void *)(uintptr_t)in, out.count, out.type };
	struct wm_block acc = out, got = out;
	struct wm_halves h;
	void *memory;

	if (c->comm->inter) {
		wm_inter_allreduce(c, op, in, out);
		return;
	}
	if (!out.count)
		return;
	if (wm_crowded(c->comm)) {
		wm_crowd_allreduce(c, op, mine, out);
		return;
	}
	got.buf = wm_coll_scratch(c, out.count, out.type, &memory);
	wm_coll_copy(c, out, mine);
	h = wm_fold(c, op, &acc, &got);
	if (wm_block_len(out) >= HALVES_FROM && out.count >= h.members)
		halves(c, &h, op, &acc, &got);
	else
		doubling(c, &h, op, &acc, &got);
	wm_unfold(c, &h, acc);
	wm_coll_copy(c, out, acc);
	free(memory);
}

int wm_allreduce_check(const struct MPI_ABI_Comm *m, const struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	int r = wm_check_reduce(op, in, out);

	return !r && m->inter && in == MPI_IN_PLACE ? MPI_ERR_BUFFER : r;
}

int PMPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	const struct wm_block out = wm_block(recvbuf, count, datatype);
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct MPI_ABI_Op *o = wm_op(op);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, __func__, MPI_ERR_COMM);
	r = wm_allreduce_check(m, o, sendbuf, out);
	if (r)
		return wm_coll_wrong(m, __func__, r);
	c = wm_coll_begin(m);
	wm_allreduce(&c, o, sendbuf, out);
	return wm_coll_end(&c, __func__);
}
MPI_DONE(Allreduce_c);
