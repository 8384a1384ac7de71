/* intercomm.c - communicators of two groups: made from two, and made into one.
 *
 * The leaders of the groups send each other what theirs must know and tell it inside their own. Both offer contexts
 * and take the same (comm.h). A leader that fails tells that: its group does not wait for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "comm.h"

int wm_swap(struct weft_port *port, weft_id peer, uint64_t tag, const void *mine, size_t len, void *ret_theirs, size_t cap)
{
	struct weft_op op = { .size = sizeof(op), .peer = peer, .tag = tag, .data = (void *)(uintptr_t)mine, .len = len };
	struct weft_req *req = NULL;
	int r, s = weft_send_post(port, &op, &req);

	if (s < 0)
		return s;
	r = weft_recv(port, peer, tag, ret_theirs, cap, WEFT_FOREVER, NULL);
	if (r < 0 && req)
		weft_req_cancel(req);
	s = weft_req_wait(&req, WEFT_FOREVER, NULL);
	return r < 0 ? r : s;
}

int wm_intercomm_open(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote,
		      const weft_ctx ctx[4], struct MPI_ABI_Comm **ret_comm)
{
	struct MPI_ABI_Comm *local, *c;
	int r = wm_comm_open(parent, group, NULL, ctx + 2, &local);

	if (r < 0)
		return r;
	r = wm_comm_open(parent, group, remote, ctx, &c);
	if (r < 0) {
		wm_comm_put(local);
		return r;
	}
	c->local = local;
	*ret_comm = c;
	return 0;
}

/* What a leader tells the other, and then, as it was decided, its own group */
struct offer {
	int64_t err;                    /* an error class */
	int32_t size, high;             /* of the group; merge: whether it wants to be the second */
	weft_ctx ctx[4];                /* the new ports', then those of an intercommunicator's local group */
};

static struct offer offer_mine(int size, int high)
{
	struct offer o = { .size = size, .high = high };

	wm_ctx_fill(o.ctx);
	wm_ctx_fill(o.ctx + 2);
	return o;
}

/* Making one */

static bool disjoint(const struct MPI_ABI_Group *a, const weft_id *ids, int size)
{
	struct MPI_ABI_Group *b = wm_group_new(ids, size);
	int *ranks = malloc((size_t)a->size * sizeof(*ranks) + 1);
	bool apart = b && ranks && wm_group_translate(a, a->size, NULL, b, ranks) == 0;

	for (int i = 0; apart && i < a->size; i++)
		apart = ranks[i] == MPI_UNDEFINED;
	free(ranks);
	wm_group_put(b);
	return apart;
}

/* The leader's part: what was decided, and the other group's members (free them). */
static struct offer leader_meet(struct MPI_ABI_Comm *local, struct MPI_ABI_Comm *peer, int remote_leader, uint64_t tag,
				weft_id **ret_ids)
{
	struct offer mine = offer_mine(local->size, 0), theirs = { .err = 0 };
	weft_id at = weft_at((uint32_t)remote_leader), *ids;
	int r = wm_swap(peer->talk, at, tag, &mine, sizeof(mine), &theirs, sizeof(theirs));

	if (r < 0) {
		mine.err = wm_class(r);
		return mine;
	}
	mine.size = theirs.size;
	memcpy(mine.ctx, wm_ctx_either(mine.ctx, theirs.ctx), 2 * sizeof(*mine.ctx));
	ids = malloc((size_t)theirs.size * sizeof(*ids) + 1);
	if (!ids) {
		mine.err = MPI_ERR_NO_MEM;
		return mine;
	}
	r = wm_swap(peer->talk, at, tag, local->group->ids, (size_t)local->size * sizeof(*ids), ids, (size_t)theirs.size * sizeof(*ids));
	if (r < 0)
		mine.err = wm_class(r);
	else if (!disjoint(local->group, ids, theirs.size))
		mine.err = MPI_ERR_COMM;
	*ret_ids = ids;
	return mine;
}

/* Only the leader's arguments count here; the others learn of its mistake by its offer. */
static int leader_check(struct MPI_ABI_Comm *peer, int remote_leader)
{
	if (!peer)
		return MPI_ERR_COMM;
	return remote_leader < 0 || remote_leader >= peer->peers ? MPI_ERR_RANK : 0;
}

static int tell_local(struct MPI_ABI_Comm *local, int leader, struct offer *offer, weft_id **ids)
{
	int r = wm_coll_bcast(local, leader, offer, sizeof(*offer));

	if (!r)
		r = (int)offer->err;
	if (r)
		return r;
	if (!*ids)
		*ids = malloc((size_t)offer->size * sizeof(**ids) + 1);
	return *ids ? wm_coll_bcast(local, leader, *ids, (size_t)offer->size * sizeof(**ids)) : MPI_ERR_NO_MEM;
}

static int intercomm_create(struct MPI_ABI_Comm *local, int leader, struct MPI_ABI_Comm *peer, int remote_leader, int tag,
			    struct MPI_ABI_Comm **ret_comm)
{
	struct offer offer = { .err = 0 };
	struct MPI_ABI_Group *remote;
	weft_id *ids = NULL;
	int r;

	if (local->rank == leader) {
		offer.err = leader_check(peer, remote_leader);
		if (!offer.err)
			offer = leader_meet(local, peer, remote_leader, wm_tag(WM_TAG_INTER, tag), &ids);
	}
	r = tell_local(local, leader, &offer, &ids);
	if (!r) {
		remote = wm_group_new(ids, offer.size);
		r = remote ? wm_class(wm_intercomm_open(local, local->group, remote, offer.ctx, ret_comm)) : MPI_ERR_NO_MEM;
		wm_group_put(remote);
	}
	free(ids);
	return r;
}

int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
			  MPI_Comm *newintercomm)
{
	struct MPI_ABI_Comm *local = wm_comm(local_comm), *made;
	int r;

	if (!local)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "the local one is not a communicator");
	if (local->inter)
		return wm_error(local, __func__, MPI_ERR_COMM, "the local one is an intercommunicator");
	if (local_leader < 0 || local_leader >= local->size)
		return wm_error(local, __func__, MPI_ERR_RANK, "leader %d of a communicator of %d", local_leader, local->size);
	if (tag < 0)
		return wm_error(local, __func__, MPI_ERR_TAG, "tag %d", tag);
	if (!newintercomm)
		return wm_error(local, __func__, MPI_ERR_ARG, "NULL as place of the new communicator");
	*newintercomm = MPI_COMM_NULL;
	r = intercomm_create(local, local_leader, wm_comm(peer_comm), remote_leader, tag, &made);
	if (r)
		return wm_error(local, __func__, r, "the leaders could not agree");
	*newintercomm = made;
	return MPI_SUCCESS;
}
MPI_DONE(Intercomm_create);

/* Making more of one */

/* Both groups' offers at every member: @mine's is the local leader's then. 0 or an error class. */
static int both_offers(struct MPI_ABI_Comm *c, struct offer *mine, struct offer *ret_theirs)
{
	struct offer both[2] = { *mine, { .err = 0 } };
	int r = 0;

	if (c->rank == 0)
		r = wm_swap(c->talk, weft_at(0), wm_tag(WM_TAG_SWAP, 0), &both[0], sizeof(both[0]), &both[1], sizeof(both[1]));
	if (r < 0)
		both[0].err = wm_class(r);
	r = wm_coll_bcast(c->local, 0, both, sizeof(both));
	*mine = both[0];
	*ret_theirs = both[1];
	return r ? r : (int)mine->err;
}

int wm_intercomm_agree(struct MPI_ABI_Comm *c, weft_ctx ret_ctx[4])
{
	struct offer mine = offer_mine(c->size, 0), theirs;
	int r = both_offers(c, &mine, &theirs);

	if (r)
		return r;
	memcpy(ret_ctx, wm_ctx_either(mine.ctx, theirs.ctx), 2 * sizeof(*ret_ctx));
	memcpy(ret_ctx + 2, mine.ctx + 2, 2 * sizeof(*ret_ctx));
	return 0;
}

static struct MPI_ABI_Group *joined(const struct MPI_ABI_Group *first, const struct MPI_ABI_Group *second)
{
	weft_id *ids = malloc(((size_t)first->size + (size_t)second->size) * sizeof(*ids));
	struct MPI_ABI_Group *g;

	if (!ids)
		return NULL;
	memcpy(ids, first->ids, (size_t)first->size * sizeof(*ids));
	memcpy(ids + first->size, second->ids, (size_t)second->size * sizeof(*ids));
	g = wm_group_new(ids, first->size + second->size);
	free(ids);
	return g;
}

/* Groups that want the same place are put in the order of the contexts they offer. */
static int merge(struct MPI_ABI_Comm *c, int high, struct MPI_ABI_Comm **ret_comm)
{
	struct offer mine = offer_mine(c->size, high), theirs;
	struct MPI_ABI_Group *all;
	int r = both_offers(c, &mine, &theirs);
	bool first;

	if (r)
		return r;
	first = mine.high == theirs.high ? mine.ctx[0] < theirs.ctx[0] : !mine.high;
	all = joined(first ? c->group : c->remote, first ? c->remote : c->group);
	if (!all)
		return MPI_ERR_NO_MEM;
	r = wm_class(wm_comm_open(c, all, NULL, wm_ctx_either(mine.ctx, theirs.ctx), ret_comm));
	wm_group_put(all);
	return r;
}

int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
	struct MPI_ABI_Comm *c = wm_comm(intercomm), *made;
	int r;

	if (!c)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "not a communicator");
	if (!c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "not an intercommunicator");
	if (!newintracomm)
		return wm_error(c, __func__, MPI_ERR_ARG, "NULL as place of the new communicator");
	*newintracomm = MPI_COMM_NULL;
	r = merge(c, high != 0, &made);
	if (r)
		return wm_error(c, __func__, r, "the groups could not agree");
	*newintracomm = made;
	return MPI_SUCCESS;
}
MPI_DONE(Intercomm_merge);
