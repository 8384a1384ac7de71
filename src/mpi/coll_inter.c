/* coll_inter.c - collectives between the two groups of an intercommunicator.
 *
 * What a group does within itself it does over the communicator of its own that the intercommunicator holds; ranks there are
 * the same. The first of each group speaks for it. A failure in one group reaches the other as an empty message.
 */
#include <stdlib.h>

#include "coll_parts.h"

static struct wm_coll within(const struct wm_coll *c)
{
	struct MPI_ABI_Comm *local = c->comm->local;

	return (struct wm_coll){
		.comm = local, .tag = c->local_tag, .port = c->port == c->comm->coll ? local->coll : local->later, .err = c->err
	};
}

void wm_inter_barrier(struct wm_coll *c)
{
	struct wm_coll l = within(c);
	wm_token mine = 0, theirs;

	wm_barrier(&l);
	wm_coll_fail(c, l.err);
	if (c->comm->rank == 0)
		wm_coll_exchange(c, 0, wm_token_block(&mine), 0, wm_token_block(&theirs));
	wm_coll_fail(&l, c->err);
	wm_barrier(&l);
	wm_coll_fail(c, l.err);
}

/* What the first of this group received, to all of it. */
static void pass_on(struct wm_coll *c, struct wm_block b)
{
	struct wm_coll l = within(c);

	wm_bcast(&l, 0, b);
	wm_coll_fail(c, l.err);
}

/* What this group reduces to, to its first. */
static void reduce_within(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block result)
{
	struct wm_coll l = within(c);

	wm_reduce(&l, 0, op, in, result);
	wm_coll_fail(c, l.err);
}

void wm_inter_bcast(struct wm_coll *c, int root, struct wm_block b)
{
	if (root == MPI_PROC_NULL)
		return;
	if (root == MPI_ROOT) {
		wm_coll_send(c, 0, b);
		return;
	}
	if (c->comm->rank == 0)
		wm_coll_recv(c, root, b);
	pass_on(c, b);
}

/* Everybody to everybody of the other group. */
void wm_inter_allgather(struct wm_coll *c, struct wm_block mine, const struct wm_blocks *all)
{
	struct wm_blocks out = { .buf = mine.buf, .type = mine.type, .count = mine.count, .same = true };

	wm_alltoall(c, &out, all);
}

void wm_inter_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	struct wm_block result = out;
	void *memory = NULL;

	if (root == MPI_ROOT) {
		wm_coll_recv(c, 0, out);
		return;
	}
	if (c->comm->rank == 0)
		result.buf = wm_coll_scratch(c, out.count, out.type, &memory);
	reduce_within(c, op, in, result);
	if (c->comm->rank == 0)
		wm_coll_send(c, root, result);
	free(memory);
}

/* Each group gets what the other reduces to. */
void wm_inter_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	struct wm_block result = out;
	void *memory = NULL;

	if (c->comm->rank == 0)
		result.buf = wm_coll_scratch(c, out.count, out.type, &memory);
	reduce_within(c, op, in, result);
	if (c->comm->rank == 0)
		wm_coll_exchange(c, 0, result, 0, out);
	pass_on(c, out);
	free(memory);
}

/* Both groups reduce as many elements; each divides among its members what the other's come to. */
void wm_inter_reduce_scatter(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out)
{
	struct wm_block result = { NULL, wm_parts_before(out, c->comm->size), out->type }, theirs = result;
	void *memory[2] = { NULL, NULL };
	struct wm_coll l;

	if (c->comm->rank == 0) {
		result.buf = wm_coll_scratch(c, result.count, result.type, &memory[0]);
		theirs.buf = wm_coll_scratch(c, result.count, result.type, &memory[1]);
	}
	reduce_within(c, op, in, result);
	if (c->comm->rank == 0)
		wm_coll_exchange(c, 0, result, 0, theirs);
	l = within(c);
	wm_parts_give(&l, theirs.buf, out);
	wm_coll_fail(c, l.err);
	free(memory[0]);
	free(memory[1]);
}
