/* comm_make.c - new communicators from old ones: copies, and those of a part of the members.
 *
 * Arguments that make no sense are answered before anything is sent. From then on a member that fails takes part to
 * the end, so that nobody waits for it.
 */
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "request.h"

static int no_comm(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
}

static int no_place(struct MPI_ABI_Comm *c, const char *function)
{
	return wm_error(c, function, MPI_ERR_ARG, "NULL as place of the new communicator");
}

/* Copies */

static int dup_ports(struct MPI_ABI_Comm *c, const char *function, struct MPI_ABI_Comm **ret_comm)
{
	weft_ctx ctx[4] = { 0 };
	int r;

	if (c->inter) {
		r = wm_intercomm_agree(c, ctx);
	} else {
		if (c->rank == 0)
			wm_ctx_fill(ctx);
		r = wm_coll_bcast(c, 0, ctx, 2 * sizeof(*ctx));
	}
	if (r)
		return wm_error(c, function, r, "the members could not agree on a new communicator");
	if (c->inter)
		r = wm_intercomm_open(c, c->group, c->remote, ctx, ret_comm);
	else
		r = wm_comm_open(c, c->group, NULL, ctx, ret_comm);
	return r < 0 ? wm_weft_error(c, function, r) : MPI_SUCCESS;
}

/* What a copy has of the old one besides its members. */
static int dup_rest(struct MPI_ABI_Comm *c, const char *function, struct MPI_ABI_Info *info, struct MPI_ABI_Comm *copy)
{
	int r;

	copy->topo = wm_topo_copy(c->topo);
	copy->info = wm_info_dup(info);
	if ((c->topo && !copy->topo) || (info && !copy->info))
		return wm_error(c, function, MPI_ERR_NO_MEM, "no memory for topology or hints");
	r = wm_attrs_copy(&copy->attrs, &c->attrs, wm_comm_handle(c));
	if (r) {
		wm_attrs_delete(&copy->attrs, copy);
		return wm_error(c, function, r, "the copy function of an attribute failed");
	}
	return MPI_SUCCESS;
}

/* A copy that waits for nobody. Its contexts follow from the old one's and from how many such copies it had, which every
 * member counts alike: nothing is sent, and it is there at once. */
static int idup_ports(struct MPI_ABI_Comm *c, const char *function, struct MPI_ABI_Comm **ret_comm)
{
	/* relaxed: only how many; the calls are ordered by the program. */
	uint64_t number = atomic_fetch_add_explicit(&c->copies, 1, memory_order_relaxed);
	struct MPI_ABI_Comm *copy;
	int r = wm_comm_open_copy(c, number, &copy);

	if (r == 0 && c->inter) {
		r = wm_comm_open_copy(c->local, number, &copy->local);
		if (r < 0)
			wm_comm_put(copy);
	}
	if (r < 0)
		return wm_weft_error(c, function, r);
	*ret_comm = copy;
	return MPI_SUCCESS;
}

static int comm_dup(const char *function, MPI_Comm comm, MPI_Info info, bool at_once, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm), *copy;
	struct MPI_ABI_Info *hints = wm_info(info);
	int r;

	if (!c)
		return no_comm(function);
	if (!newcomm)
		return no_place(c, function);
	if (!hints && info != MPI_INFO_NULL)
		return wm_error(c, function, MPI_ERR_INFO, "not an info");
	*newcomm = MPI_COMM_NULL;
	r = at_once ? idup_ports(c, function, &copy) : dup_ports(c, function, &copy);
	if (r != MPI_SUCCESS)
		return r;
	r = dup_rest(c, function, hints, copy);
	if (r != MPI_SUCCESS) {
		wm_comm_put(copy);
		return r;
	}
	*newcomm = copy;
	return MPI_SUCCESS;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	return comm_dup(__func__, comm, MPI_INFO_NULL, false, newcomm);
}
MPI_DONE(Comm_dup);

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	return comm_dup(__func__, comm, info, false, newcomm);
}
MPI_DONE(Comm_dup_with_info);

static int comm_idup(const char *function, MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
	int r;

	if (!request)
		return wm_error(wm_comm(comm), function, MPI_ERR_ARG, "NULL as place of the request");
	r = comm_dup(function, comm, info, true, newcomm);
	if (r == MPI_SUCCESS)
		*request = &wm_sent;    /* which is over */
	return r;
}

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
	return comm_idup(__func__, comm, MPI_INFO_NULL, newcomm, request);
}
MPI_DONE(Comm_idup);

int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
	return comm_idup(__func__, comm, info, newcomm, request);
}
MPI_DONE(Comm_idup_with_info);

/* Parts, with all members taking part */

static int give(struct MPI_ABI_Comm *c, const char *function, int color, int key, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *made = NULL;
	int r;

	*newcomm = MPI_COMM_NULL;
	r = wm_split(c, function, color, key, &made);
	if (r == MPI_SUCCESS && made)
		*newcomm = made;
	return r;
}

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!newcomm)
		return no_place(c, __func__);
	if (color < 0 && color != MPI_UNDEFINED)
		return wm_error(c, __func__, MPI_ERR_ARG, "color %d", color);
	return give(c, __func__, color, key, newcomm);
}
MPI_DONE(Comm_split);

/* The same number at all members on this host, and at no other: that of the first process here. */
static int color_of_host(struct MPI_ABI_Comm *c)
{
	const struct MPI_ABI_Group *groups[] = { c->group, c->remote };
	uint32_t first = UINT32_MAX;

	for (int k = 0; k < 2 && groups[k]; k++)
		for (int i = 0; i < groups[k]->size; i++) {
			uint32_t process = weft_id_split(groups[k]->ids[i]).process;

			if (process < first && weft_id_distance(groups[k]->ids[i]) <= 2)
				first = process;
		}
	return (int)first;
}

/* Of the parts of a machine that a program may name, weft knows those that share memory. */
static bool names_shared_memory(MPI_Info info)
{
	char value[32] = "";
	int len = sizeof(value), found = 0;

	if (info == MPI_INFO_NULL || PMPI_Info_get_string(info, "mpi_hw_resource_type", &len, value, &found) != MPI_SUCCESS)
		return false;
	return found && !strcmp(value, "mpi_shared_memory");
}

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	bool some = false;

	if (!c)
		return no_comm(__func__);
	if (!newcomm)
		return no_place(c, __func__);
	if (!wm_info(info) && info != MPI_INFO_NULL)
		return wm_error(c, __func__, MPI_ERR_INFO, "not an info");
	switch (split_type) {
	case MPI_COMM_TYPE_SHARED:
		some = true;
		break;
	case MPI_COMM_TYPE_HW_GUIDED:
		some = names_shared_memory(info);
		break;
	case MPI_COMM_TYPE_HW_UNGUIDED:
		some = !c->here;        /* only what is less than all; below a host weft knows no parts */
		break;
	case MPI_COMM_TYPE_RESOURCE_GUIDED:
	case MPI_UNDEFINED:
		break;
	default:
		return wm_error(c, __func__, MPI_ERR_ARG, "split type %d", split_type);
	}
	return give(c, __func__, some ? color_of_host(c) : MPI_UNDEFINED, key, newcomm);
}
MPI_DONE(Comm_split_type);

/* The place of @group's first member in @old: what all of the group can work out alone. An error class where it is no part of it. */
static int first_in(const struct MPI_ABI_Group *old, const struct MPI_ABI_Group *group, int *ret_first)
{
	int *ranks = malloc((size_t)group->size * sizeof(*ranks) + 1);
	int r;

	if (!ranks)
		return MPI_ERR_NO_MEM;
	r = wm_group_translate(group, group->size, NULL, old, ranks);
	for (int i = 0; i < group->size && !r; i++)
		if (ranks[i] == MPI_UNDEFINED)
			r = MPI_ERR_GROUP;
	if (!r)
		*ret_first = group->size ? ranks[0] : MPI_UNDEFINED;
	free(ranks);
	return r;
}

/* Groups that have no member in common may be given at the same time: each is a color. The two groups of an
 * intercommunicator name one part each, and these belong together. */
int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Group *g = wm_group(group);
	int first = 0, r;

	if (!c)
		return no_comm(__func__);
	if (!g)
		return wm_error(c, __func__, MPI_ERR_GROUP, "not a group");
	if (!newcomm)
		return no_place(c, __func__);
	r = first_in(c->group, g, &first);
	if (r)
		return wm_error(c, __func__, r, r == MPI_ERR_GROUP ? "not all of the group are members" : "no memory");
	if (g->rank == MPI_UNDEFINED)
		first = MPI_UNDEFINED;
	else if (c->inter)
		first = 0;
	return give(c, __func__, first, g->rank, newcomm);
}
MPI_DONE(Comm_create);

/* Parts, with only their own members taking part */

struct told {                           /* what goes down the tree */
	int64_t err;
	weft_ctx ctx[2];
};

/* The binomial tree over the group: rank v hears from v without its lowest bit, and tells v plus each smaller power
 * of two. Who hears of no contexts tells that, too. */
static void tell_group(struct MPI_ABI_Comm *c, const struct MPI_ABI_Group *g, uint64_t tag, struct told *told)
{
	struct weft_status st = { .len = 0 };
	int step = 1, r = 0;

	while (step < g->size && !(g->rank & step))
		step *= 2;
	if (g->rank)
		r = weft_recv(c->talk, g->ids[g->rank - step], tag, told, sizeof(*told), WEFT_FOREVER, &st);
	else
		wm_ctx_fill(told->ctx);
	if (r < 0)
		told->err = wm_class(r);
	for (step /= 2; step; step /= 2) {
		if (g->rank + step >= g->size)
			continue;
		r = weft_send(c->talk, g->ids[g->rank + step], tag, told, sizeof(*told), WEFT_FOREVER);
		if (r < 0 && !told->err)
			told->err = wm_class(r);
	}
}

int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm), *made;
	struct MPI_ABI_Group *g = wm_group(group);
	struct told told = { .err = 0 };
	int first, r;

	if (!c)
		return no_comm(__func__);
	if (c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "an intercommunicator");
	if (!g)
		return wm_error(c, __func__, MPI_ERR_GROUP, "not a group");
	if (tag < 0)
		return wm_error(c, __func__, MPI_ERR_TAG, "tag %d", tag);
	if (!newcomm)
		return no_place(c, __func__);
	r = first_in(c->group, g, &first);
	if (r)
		return wm_error(c, __func__, r, r == MPI_ERR_GROUP ? "not all of the group are members" : "no memory");
	*newcomm = MPI_COMM_NULL;
	if (g->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	tell_group(c, g, wm_tag(WM_TAG_GROUP, tag), &told);
	if (told.err)
		return wm_error(c, __func__, (int)told.err, "the members of the group could not agree");
	r = wm_comm_open(c, g, NULL, told.ctx, &made);
	if (r < 0)
		return wm_weft_error(c, __func__, r);
	*newcomm = made;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_create_group);
