/* comm_split.c - a communicator parted by color.
 *
 * Every member tells all others its color, its key and contexts of its own making; a part takes those of its first
 * member. One allgather, and what each has to sort is its own part. In an intercommunicator the first members of the
 * two groups swap what was gathered and tell theirs.
 */
#include <stdlib.h>
#include <string.h>

#include "comm.h"

struct seat {
	int32_t color, key;
	weft_ctx ctx[4];                /* the new ports'; then, of an intercommunicator, those of its local group */
};

struct place {
	int32_t key;
	int rank;
};

static int place_compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The members of @old with @color in their new order, and the place of the first of them in the old. NULL: no memory. */
static struct MPI_ABI_Group *part_of(const struct MPI_ABI_Group *old, const struct seat *seats, int color, int *ret_first)
{
	struct place *places = malloc((size_t)old->size * sizeof(*places) + 1);
	weft_id *ids = malloc((size_t)old->size * sizeof(*ids) + 1);
	struct MPI_ABI_Group *g = NULL;
	int n = 0;

	for (int i = 0; places && i < old->size; i++)
		if (seats[i].color == color)
			places[n++] = (struct place){ seats[i].key, i };
	if (places && ids) {
		*ret_first = n ? places[0].rank : MPI_UNDEFINED;
		qsort(places, (size_t)n, sizeof(*places), place_compare);
		for (int i = 0; i < n; i++)
			ids[i] = old->ids[places[i].rank];
		g = wm_group_new(ids, n);
	}
	free(places);
	free(ids);
	return g;
}

/* What both groups of an intercommunicator gathered. @far is behind an error class of the swap: one message for both. */
struct gathered {
	int64_t err;
	struct seat seats[];
};

static int gather_far(struct MPI_ABI_Comm *c, const struct seat *mine, struct gathered *far)
{
	size_t len = (size_t)c->peers * sizeof(*mine);
	int r = 0;

	if (c->rank == 0)
		r = wm_swap(c->talk, weft_at(0), wm_tag(WM_TAG_SWAP, 0), mine, (size_t)c->size * sizeof(*mine), far->seats, len);
	far->err = wm_class(r);
	r = wm_coll_bcast(c->local, 0, far, sizeof(*far) + len);
	return r ? r : (int)far->err;
}

static int split_inter(struct MPI_ABI_Comm *c, const struct seat *seats, int color, struct MPI_ABI_Comm **ret_comm)
{
	struct gathered *far = calloc(1, sizeof(*far) + (size_t)c->peers * sizeof(*seats));
	struct MPI_ABI_Group *part = NULL, *remote = NULL;
	int first = 0, other = 0, r = MPI_ERR_NO_MEM;
	weft_ctx ctx[4];

	if (far)
		r = gather_far(c, seats, far);
	if (!r && color != MPI_UNDEFINED) {
		part = part_of(c->group, seats, color, &first);
		remote = part_of(c->remote, far->seats, color, &other);
		if (!part || !remote)
			r = MPI_ERR_NO_MEM;
	}
	if (!r && remote && remote->size) {
		memcpy(ctx, wm_ctx_either(seats[first].ctx, far->seats[other].ctx), 2 * sizeof(*ctx));
		memcpy(ctx + 2, seats[first].ctx + 2, 2 * sizeof(*ctx));
		r = wm_class(wm_intercomm_open(c, part, remote, ctx, ret_comm));
	}
	wm_group_put(part);
	wm_group_put(remote);
	free(far);
	return r;
}

static int split_intra(struct MPI_ABI_Comm *c, const struct seat *seats, int color, struct MPI_ABI_Comm **ret_comm)
{
	struct MPI_ABI_Group *part;
	int first = 0, r;

	if (color == MPI_UNDEFINED)
		return 0;
	part = part_of(c->group, seats, color, &first);
	if (!part)
		return MPI_ERR_NO_MEM;
	r = wm_class(wm_comm_open(c, part, NULL, seats[first].ctx, ret_comm));
	wm_group_put(part);
	return r;
}

static struct seat seat_mine(struct MPI_ABI_Comm *c, int color, int key)
{
	struct seat s = { .color = color, .key = key };

	if (color != MPI_UNDEFINED) {
		wm_ctx_fill(s.ctx);
		if (c->inter)
			wm_ctx_fill(s.ctx + 2);
	}
	return s;
}

int wm_split(struct MPI_ABI_Comm *c, const char *function, int color, int key, struct MPI_ABI_Comm **ret_comm)
{
	struct seat *seats = malloc((size_t)c->size * sizeof(*seats)), mine = seat_mine(c, color, key);
	int r;

	if (!seats)
		return wm_error(c, function, MPI_ERR_NO_MEM, "no memory for %d members", c->size);
	*ret_comm = NULL;
	r = wm_coll_allgather(c->inter ? c->local : c, &mine, sizeof(mine), seats);
	if (!r && c->inter)
		r = split_inter(c, seats, color, ret_comm);
	else if (!r)
		r = split_intra(c, seats, color, ret_comm);
	free(seats);
	return r ? wm_error(c, function, r, "the members could not agree on new communicators") : MPI_SUCCESS;
}
