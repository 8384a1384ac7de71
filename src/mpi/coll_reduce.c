/* coll_reduce.c - MPI_Reduce.
 *
 * What is of lower ranks is always the left operand, so that an operation need not commute. It must be
 * associative: who is combined with whom first depends on how many members there are.
 */
#include <stdlib.h>

#include "coll_halves.h"

#define HALVES_FROM (32 << 10)  /* bytes from which on each member shall send no more than twice what there is; reckoned, not measured */

/* Members count from @top. One whose lowest bit set is b has reduced what b members have, its own first, when it sends
 * that to the one without that bit. Answers where the result is, at @top. */
static struct wm_block tree_to(struct wm_coll *c, int top, struct MPI_ABI_Op *op, const struct wm_block mine,
			       struct wm_block got, struct wm_block spare)
{
	const int size = c->comm->size, rank = (c->comm->rank - top + size) % size;
	struct wm_block acc = mine;
	int bit;

	for (bit = 1; bit < size && !(rank & bit); bit *= 2) {
		if (rank + bit >= size)
			continue;
		wm_coll_recv(c, (rank + bit + top) % size, got);
		if (acc.buf == mine.buf && !c->err) {
			wm_op_apply(op, mine.buf, got.buf, got.count, wm_type_handle(got.type));
			acc = got;
			got = spare;
		} else {
			wm_coll_combine(c, op, &acc, &got, true);
		}
	}
	if (rank)
		wm_coll_send(c, (rank - bit + top) % size, acc);
	return acc;
}

/* The tree's top is the root, but rank 0 where the operation does not commute. */
static void tree(struct wm_coll *c, int root, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out)
{
	const int size = c->comm->size, rank = c->comm->rank, top = op->commutative ? root : 0;
	struct wm_block got = out, spare = out, result;
	void *memory[2] = { NULL, NULL };

	if ((rank - top + size) % size % 2 == 0) {
		if (rank != root || mine.buf == out.buf)
			got.buf = wm_coll_scratch(c, out.count, out.type, &memory[0]);
		spare.buf = wm_coll_scratch(c, out.count, out.type, &memory[1]);
	}
	result = tree_to(c, top, op, mine, got, spare);
	if (rank == root && top == root)
		wm_coll_copy(c, out, result);
	else if (rank == top && top != root)
		wm_coll_send(c, root, result);
	else if (rank == root)
		wm_coll_recv(c, top, out);
	free(memory[0]);
	free(memory[1]);
}

/* Each place reduces a range and sends it to the root. */
static void halves(struct wm_coll *c, int root, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out)
{
	struct wm_block acc = out, got = out;
	struct wm_pending p[WM_WINDOW];
	void *memory[2] = { NULL, NULL };
	struct wm_halves h;
	int posted = 0;

	if (c->comm->rank != root)
		acc.buf = wm_coll_scratch(c, out.count, out.type, &memory[0]);
	got.buf = wm_coll_scratch(c, out.count, out.type, &memory[1]);
	wm_coll_copy(c, acc, mine);
	h = wm_fold(c, op, &acc, &got);
	wm_halves_reduce(c, &h, op, &acc, &got);
	if (c->comm->rank != root && h.place >= 0)
		wm_coll_send(c, root, wm_half(acc, h.place, h.members));
	for (int place = 0; place < h.members && c->comm->rank == root; place++) {
		if (place == h.place) {
			wm_coll_copy(c, wm_half(out, place, h.members), wm_half(acc, place, h.members));
			continue;
		}
		if (posted >= WM_WINDOW)
			wm_coll_wait(c, &p[posted % WM_WINDOW]);
		wm_coll_recv_post(c, &p[posted++ % WM_WINDOW], wm_place_rank(&h, place), wm_half(out, place, h.members));
	}
	wm_coll_wait_all(c, p, posted < WM_WINDOW ? posted : WM_WINDOW);
	free(memory[0]);
	free(memory[1]);
}

void wm_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	const struct wm_block mine = { in == MPI_IN_PLACE ? out.buf : (void *)(uintptr_t)in, out.count, out.type };

	if (root == MPI_PROC_NULL || !out.count)
		return;
	if (c->comm->inter)
		wm_inter_reduce(c, root, op, in, out);
	else if (wm_crowded(c->comm))
		wm_crowd_reduce(c, root, op, mine, out);
	else if (wm_block_len(out) >= HALVES_FROM && out.count >= c->comm->size && c->comm->size > 2)
		halves(c, root, op, mine, out);
	else
		tree(c, root, op, mine, out);
}

int wm_reduce_check(const struct MPI_ABI_Comm *m, int root, const struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	int r = wm_check_root(m, root);

	if (!r && root == MPI_ROOT)
		r = wm_check_data(out.buf, out.count, out.type);
	else if (!r && root == m->rank && !m->inter)
		r = wm_check_reduce(op, in, out);
	else if (!r && root != MPI_PROC_NULL)
		r = in == MPI_IN_PLACE ? MPI_ERR_BUFFER : wm_check_data(in, out.count, out.type);
	if (!r && root != MPI_PROC_NULL && (!op || !wm_op_takes(op, out.type)))
		r = MPI_ERR_OP;
	return r;
}

int PMPI_Reduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
	const struct wm_block out = wm_block(recvbuf, count, datatype);
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct MPI_ABI_Op *o = wm_op(op);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, __func__, MPI_ERR_COMM);
	r = wm_reduce_check(m, root, o, sendbuf, out);
	if (r)
		return wm_coll_wrong(m, __func__, r);
	c = wm_coll_begin(m);
	wm_reduce(&c, root, o, sendbuf, out);
	return wm_coll_end(&c, __func__);
}
MPI_DONE(Reduce_c);
