/* mini_mpi_comm.c - communicators and collectives of mini_mpi.h.
 *
 * A communicator's two context numbers are made by its rank 0 and told to the others over the
 * communicator it comes from. Every member then opens its ports when it comes to it: what faster
 * members send before that is held by weft and comes first.
 *
 * Collectives are trees and rings of plain sends and receives on the second port. Each receive
 * names its source and the number of the collective, so that a member that runs ahead into the
 * next one confuses nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mini_mpi.h"

int mm_comm_open(struct weft_port_opts *opts, const weft_ctx *ctx, struct mm_comm **ret_comm)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct mm_comm *comm = calloc(1, sizeof(*comm));
	int r;

	if (!comm || !ctx[0] || !ctx[1]) {
		free(comm);
		return weft_fail(-ENOMEM, "mini_mpi: no memory or no context for a communicator");
	}
	opts->context = ctx[0];
	opts->flags = WEFT_PORT_OWNED;
	r = weft_port_open(opts, &comm->talk);
	if (r < 0)
		goto undo;
	/* A dead member would leave the others waiting for each other in a collective. */
	opts->context = ctx[1];
	opts->flags = WEFT_PORT_OWNED | WEFT_PORT_FRAGILE;
	r = weft_port_open(opts, &comm->coll);
	if (r < 0)
		goto undo_talk;
	r = weft_port_stat(comm->talk, &info);
	if (r < 0)
		goto undo_coll;
	comm->rank = (int)info.index;
	comm->size = (int)info.count;
	*ret_comm = comm;
	return 0;

undo_coll:
	weft_port_close(comm->coll, WEFT_NOW);
undo_talk:
	weft_port_close(comm->talk, WEFT_NOW);
undo:
	free(comm);
	return r;
}

int mm_comm_dup(struct mm_comm *comm, struct mm_comm **ret_comm)
{
	weft_ctx ctx[2] = { 0 };
	int r;

	if (comm->rank == 0)
		ctx[0] = weft_ctx_new(), ctx[1] = weft_ctx_new();
	r = mm_bcast(ctx, sizeof(ctx), MM_BYTE, 0, comm);
	return r < 0 ? r : mm_comm_open(WEFT(port_opts, .like = comm->talk), ctx, ret_comm);
}

struct seat { /* what a member of a split says, and which contexts rank 0 gives it */
	int color, key, rank;
	weft_ctx ctx[2];
};

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank - y->rank;
}

/* Rank 0 sorts the seats, so that each color lies together in the order of its new ranks. */
static void seats_assign(struct seat *seats, int n)
{
	qsort(seats, (size_t)n, sizeof(*seats), seat_compare);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			seats[i].ctx[k] = i && seats[i].color == seats[i - 1].color ? seats[i - 1].ctx[k] :
										      weft_ctx_new();
}

int mm_comm_split(struct mm_comm *comm, int color, int key, struct mm_comm **ret_comm)
{
	struct seat mine = { .color = color, .key = key, .rank = comm->rank };
	struct seat *seats = calloc((size_t)comm->size, sizeof(*seats));
	weft_id *members = calloc((size_t)comm->size, sizeof(*members));
	uint32_t count = 0, index = 0;
	int r = seats && members ? 0 : weft_fail(-ENOMEM, "mini_mpi: no memory for a split");

	if (r == 0)
		r = mm_gather(&mine, sizeof(mine), MM_BYTE, seats, 0, comm);
	if (r == 0 && comm->rank == 0)
		seats_assign(seats, comm->size);
	if (r == 0)
		r = mm_bcast(seats, comm->size * (int)sizeof(*seats), MM_BYTE, 0, comm);
	for (int i = 0; r == 0 && i < comm->size; i++) {
		if (seats[i].color != color)
			continue;
		if (seats[i].rank == comm->rank) {
			index = count;
			mine = seats[i];
		}
		members[count++] = weft_port_member(comm->talk, (uint32_t)seats[i].rank);
	}
	if (r == 0 && color == MM_UNDEFINED)
		*ret_comm = NULL;
	else if (r == 0)
		r = mm_comm_open(WEFT(port_opts, .members = members, .count = count, .index = index),
				 mine.ctx, ret_comm);
	free(members);
	free(seats);
	return r;
}

int mm_comm_free(struct mm_comm *comm)
{
	int r, s;

	if (!comm)
		return 0;
	r = weft_port_close(comm->talk, WEFT_FOREVER);
	s = weft_port_close(comm->coll, WEFT_FOREVER);
	free(comm);
	return r < 0 ? r : s;
}

static int coll_send(struct mm_comm *comm, int to, const void *data, size_t len)
{
	return weft_send(comm->coll, weft_at((uint32_t)to), comm->round, data, len, WEFT_FOREVER);
}

static int coll_recv(struct mm_comm *comm, int from, void *data, size_t len)
{
	return weft_recv(comm->coll, weft_at((uint32_t)from), comm->round, data, len, WEFT_FOREVER, NULL);
}

/* After step k everybody has heard, directly or not, of the 2^k ranks below. */
int mm_barrier(struct mm_comm *comm)
{
	comm->round++;
	for (int step = 1; step < comm->size; step *= 2) {
		int r = coll_send(comm, (comm->rank + step) % comm->size, NULL, 0);

		if (r == 0)
			r = coll_recv(comm, (comm->rank - step + comm->size) % comm->size, NULL, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The binomial tree, seen from the root: rank v hears from v without its lowest bit, and passes
 * it on to v plus each smaller power of two. */
static int tree_down(struct mm_comm *comm, void *data, size_t len, int root)
{
	int v = (comm->rank - root + comm->size) % comm->size, step = 1, r = 0;

	while (step < comm->size && !(v & step))
		step *= 2;
	if (v)
		r = coll_recv(comm, (v - step + root) % comm->size, data, len);
	for (step /= 2; r == 0 && step; step /= 2)
		if (v + step < comm->size)
			r = coll_send(comm, (v + step + root) % comm->size, data, len);
	return r;
}

int mm_bcast(void *data, int count, enum mm_type type, int root, struct mm_comm *comm)
{
	if (count < 0 || root < 0 || root >= comm->size)
		return weft_fail(-EINVAL, "mini_mpi: count %d, root %d", count, root);
	comm->round++;
	return tree_down(comm, data, (size_t)count * mm_type_size(type), root);
}

int mm_gather(const void *out, int count, enum mm_type type, void *in, int root, struct mm_comm *comm)
{
	size_t len = (size_t)count * mm_type_size(type);
	int r = 0;

	if (count < 0 || root < 0 || root >= comm->size)
		return weft_fail(-EINVAL, "mini_mpi: count %d, root %d", count, root);
	comm->round++;
	if (comm->rank != root)
		return coll_send(comm, root, out, len);
	for (int i = 0; r == 0 && i < comm->size; i++) {
		if (i == root)
			memcpy((char *)in + (size_t)i * len, out, len);
		else
			r = coll_recv(comm, i, (char *)in + (size_t)i * len, len);
	}
	return r;
}

#define COMBINE(type)                                                                              \
	static void combine_##type(type *into, const type *with, int count, enum mm_op op)         \
	{                                                                                          \
		for (int i = 0; i < count; i++) {                                                  \
			if (op == MM_SUM)                                                          \
				into[i] += with[i];                                                \
			else if (op == MM_MIN ? with[i] < into[i] : with[i] > into[i])             \
				into[i] = with[i];                                                 \
		}                                                                                  \
	}
COMBINE(int)
COMBINE(long)
COMBINE(double)
#undef COMBINE

static void combine(void *into, const void *with, int count, enum mm_type type, enum mm_op op)
{
	if (type == MM_INT)
		combine_int(into, with, count, op);
	else if (type == MM_LONG)
		combine_long(into, with, count, op);
	else
		combine_double(into, with, count, op);
}

/* Up the tree, combining, then down again: everybody gets the very same bits. */
int mm_allreduce(const void *out, void *in, int count, enum mm_type type, enum mm_op op, struct mm_comm *comm)
{
	size_t len = (size_t)count * mm_type_size(type);
	void *other;
	int r = 0;

	if (count < 0 || type == MM_BYTE)
		return weft_fail(-EINVAL, "mini_mpi: cannot reduce %d elements of type %d", count, (int)type);
	other = malloc(len + 1);
	if (!other)
		return weft_fail(-ENOMEM, "mini_mpi: no memory to reduce %zu bytes", len);
	comm->round++;
	memcpy(in, out, len);
	for (int step = 1; r == 0 && step < comm->size; step *= 2) {
		if (comm->rank & step) {
			r = coll_send(comm, comm->rank - step, in, len);
			break;
		}
		if (comm->rank + step >= comm->size)
			continue;
		r = coll_recv(comm, comm->rank + step, other, len);
		if (r == 0)
			combine(in, other, count, type, op);
	}
	free(other);
	return r == 0 ? tree_down(comm, in, len, 0) : r;
}
