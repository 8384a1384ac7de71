/* comm.c - communicators: their ports, how they begin and how they end.
 *
 * Each has two ports (inner.h). Their contexts are texts for MPI_COMM_WORLD, so that MPI_Init needs no message; one
 * member's numbers for the others (comm_make.c). A member that is behind opens its ports later: weft holds what
 * comes before that.
 *
 * The ports of a communicator of threads (src/mpix) are their thread's own: only that thread can close them, and its end
 * does. If the last reference goes elsewhere they wait in the list of late ones until their thread looks there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "later.h"

#define TEXT 80                 /* of a context's name */
#define DRAIN (10 * WEFT_S)     /* for sends that nobody waits for, before a port closes */
#define LATER_WAIT 3            /* seconds: for collectives that nobody waits for, before MPI_Finalize ends the job */

struct MPI_ABI_Comm wm_world = { .lock = PTHREAD_MUTEX_INITIALIZER }, wm_self = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	pthread_mutex_t lock;
	struct MPI_ABI_Comm *first;     /* made by the program, with ports */
	struct MPI_ABI_Comm *late;      /* whose last reference went where its ports could not be closed: in a callback, in another thread */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

MPI_Comm wm_comm_handle(struct MPI_ABI_Comm *comm)
{
	return comm == &wm_world ? MPI_COMM_WORLD : comm == &wm_self ? MPI_COMM_SELF : comm;
}

static void link_locked(struct MPI_ABI_Comm **list, struct MPI_ABI_Comm *c)
{
	c->next = *list;
	c->link = list;
	if (c->next)
		c->next->link = &c->next;
	*list = c;
}

static void list_add(struct MPI_ABI_Comm **list, struct MPI_ABI_Comm *c)
{
	pthread_mutex_lock(&all.lock);
	link_locked(list, c);
	pthread_mutex_unlock(&all.lock);
}

/* One that MPI_Finalize closed is in no list any more when the last operation lets it go. */
static void unlink_locked(struct MPI_ABI_Comm *c)
{
	if (!c->link)
		return;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->link = NULL;
}

/* Whether this thread can close its ports. */
static bool can_close(const struct MPI_ABI_Comm *c)
{
	return !c->owner || c->owner == weft_self();
}

/* The first that this thread can close; NULL: none. */
static struct MPI_ABI_Comm *list_take(struct MPI_ABI_Comm **list)
{
	struct MPI_ABI_Comm *c;

	pthread_mutex_lock(&all.lock);
	for (c = *list; c && !can_close(c); c = c->next)
		;
	if (c)
		unlink_locked(c);
	pthread_mutex_unlock(&all.lock);
	return c;
}

/* The end */

/* 0; -EDEADLK: not here, in a callback. */
static int close_ports(struct MPI_ABI_Comm *c, weft_time until)
{
	if (c->talk && weft_port_close(c->talk, until) == -EDEADLK)
		return -EDEADLK;
	c->talk = NULL;
	weft_port_close(c->coll, until);
	c->coll = NULL;
	if (c->later)
		weft_port_close(c->later, until);
	c->later = NULL;
	return 0;
}

static void comm_free(struct MPI_ABI_Comm *c)
{
	if (c->local)
		wm_comm_put(c->local);
	wm_group_put(c->group);
	wm_group_put(c->remote);
	wm_topo_free(c->topo);
	wm_info_free(c->info);
	wm_errhandler_put(c->errhandler);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->attrs.lock);
	atomic_store_explicit(&c->obj.kind, WM_COMM, memory_order_relaxed);     /* taken from it if its thread ended first */
	wm_object_free(c);
}

static void close_late(void)
{
	struct MPI_ABI_Comm *c;

	while ((c = list_take(&all.late)) != NULL) {
		if (close_ports(c, weft_in(DRAIN)) < 0) {
			list_add(&all.late, c);
			return;
		}
		comm_free(c);
	}
}

void wm_comm_put(struct MPI_ABI_Comm *comm)
{
	bool mine, ended;

	if (!wm_object_put(&comm->obj))
		return;
	mine = can_close(comm);
	pthread_mutex_lock(&all.lock);
	unlink_locked(comm);
	ended = !comm->talk;
	if (!mine && !ended)
		link_locked(&all.late, comm);
	pthread_mutex_unlock(&all.lock);
	if (ended)
		comm_free(comm);
	if (ended || !mine)
		return;
	if (close_ports(comm, weft_in(DRAIN)) < 0) {
		list_add(&all.late, comm);
		return;
	}
	comm_free(comm);
	close_late();
}

/* The end of a thread that has ports of its own. They ended with it, or do so now, whichever of the two keys comes first: nothing of weft
 * is called here. Handles to them are none from now on; what the program still keeps stays until it lets go. */

static _Thread_local weft_id owner_here;
static pthread_key_t owner_key;
static pthread_once_t owner_once = PTHREAD_ONCE_INIT;

static void owner_ended(void *unused)
{
	struct MPI_ABI_Comm *c, *next, *dead = NULL;

	(void)unused;
	pthread_mutex_lock(&all.lock);
	for (c = all.first; c; c = c->next)
		if (c->owner == owner_here) {
			c->talk = c->coll = NULL;
			atomic_store_explicit(&c->obj.kind, 0, memory_order_relaxed);
		}
	for (c = all.late; c; c = next) {
		next = c->next;
		if (c->owner != owner_here)
			continue;
		unlink_locked(c);
		c->talk = c->coll = NULL;
		c->next = dead;
		dead = c;
	}
	pthread_mutex_unlock(&all.lock);
	while ((c = dead) != NULL) {
		dead = c->next;
		comm_free(c);
	}
}

static void owner_key_make(void)
{
	pthread_key_create(&owner_key, owner_ended);
}

/* This thread is going to have ports of its own as @owner. */
static int owner_begin(weft_id owner)
{
	if (owner != weft_self())
		return weft_fail(-EPERM, "a communicator of another thread's");
	pthread_once(&owner_once, owner_key_make);
	owner_here = owner;
	return -pthread_setspecific(owner_key, &owner_here);
}

/* The beginning */

static bool all_here(const struct MPI_ABI_Group *group)
{
	for (int i = 0; i < group->size; i++)
		if (weft_id_distance(group->ids[i]) > 2)
			return false;
	return true;
}

/* Opens both ports, for the members that @opts names, in the contexts @ctx or, where that is NULL, those of the texts
 * "@text/talk" and "@text/coll". @name is for whoever looks at the ports. */
static int open_ports(struct MPI_ABI_Comm *c, struct weft_port_opts *opts, const char *name, const weft_ctx *ctx, const char *text)
{
	const uint32_t owned = c->owner ? WEFT_PORT_OWNED : 0;
	char full[64], channel[TEXT + 8];
	int r;

	opts->name = full;
	opts->flags = owned | WEFT_PORT_WARY;   /* who waits for anyone is told when a member ends */
	opts->context = ctx ? ctx[0] : 0;
	opts->channel = ctx ? NULL : channel;
	snprintf(full, sizeof(full), "mpi %s talk", name);
	snprintf(channel, sizeof(channel), "%s/talk", text);
	r = weft_port_open(opts, &c->talk);
	if (r < 0)
		return r;
	opts->flags = owned | WEFT_PORT_FRAGILE;
	opts->context = ctx ? ctx[1] : 0;
	snprintf(full, sizeof(full), "mpi %s coll", name);
	snprintf(channel, sizeof(channel), "%s/coll", text);
	r = weft_port_open(opts, &c->coll);
	if (r < 0) {
		weft_port_close(c->talk, WEFT_NOW);
		c->talk = NULL;
	}
	return r;
}

/* Who is in it, before its ports are open. */
static void fill(struct MPI_ABI_Comm *c, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote)
{
	c->group = wm_group_get(group);
	c->remote = remote ? wm_group_get(remote) : NULL;
	c->inter = remote != NULL;
	c->rank = group->rank;
	c->size = group->size;
	c->peers = remote ? remote->size : group->size;
}

/* Whose ports the new ones are: 0 with *@ret_owner, or weft's answer. */
static int owner_of(const struct MPI_ABI_Group *group, weft_id *ret_owner)
{
	weft_id me = group->rank == MPI_UNDEFINED ? 0 : group->ids[group->rank];

	*ret_owner = 0;
	if (!me)
		return weft_fail(-EPERM, "a communicator without this thread");
	if (!weft_id_split(me).local)
		return 0;
	*ret_owner = me;
	return owner_begin(me);
}

static int comm_open(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote, const weft_ctx *ctx,
		     const char *text, struct MPI_ABI_Comm **ret_comm)
{
	static _Atomic unsigned numbers;
	struct MPI_ABI_Group *others = remote ? remote : group;
	bool same = parent->group == group && parent->remote == remote;
	struct weft_port_opts opts = { .size = sizeof(opts) };
	struct MPI_ABI_Comm *c;
	weft_id owner;
	char number[16];
	int r = owner_of(group, &owner);

	if (r < 0)
		return r;
	close_late();
	c = wm_object_new(WM_COMM, sizeof(*c));
	if (!c)
		return weft_fail(-ENOMEM, "no memory for a communicator");
	pthread_mutex_init(&c->lock, NULL);
	wm_attrs_init(&c->attrs);
	fill(c, group, remote);
	c->owner = owner;
	c->here = same ? parent->here : all_here(group) && (!remote || all_here(remote));
	c->errhandler = wm_errhandler_get(parent);
	if (same) {
		opts.like = parent->talk;
	} else {
		opts.members = others->ids;
		opts.count = (uint32_t)others->size;
		opts.index = (uint32_t)group->rank;
	}
	/* relaxed: only a name. */
	snprintf(number, sizeof(number), "%u", atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1);
	r = open_ports(c, &opts, number, ctx, text);
	if (r < 0) {
		comm_free(c);
		return r;
	}
	list_add(&all.first, c);
	*ret_comm = c;
	return 0;
}

int wm_comm_open(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote, const weft_ctx ctx[2],
		 struct MPI_ABI_Comm **ret_comm)
{
	if (!ctx[0] || !ctx[1])
		return weft_fail(-ENOMEM, "no context for a communicator");
	return comm_open(parent, group, remote, ctx, "", ret_comm);
}

int wm_comm_open_copy(struct MPI_ABI_Comm *parent, uint64_t number, struct MPI_ABI_Comm **ret_comm)
{
	struct weft_port_info info = { .size = sizeof(info) };
	char text[TEXT];
	int r = weft_port_stat(parent->talk, &info);

	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "mpi/copy/%016llx/%llu", (unsigned long long)info.context, (unsigned long long)number);
	return comm_open(parent, parent->group, parent->remote, NULL, text, ret_comm);
}

static int world_open(void)
{
	struct weft_port_opts opts = { .size = sizeof(opts), .like = weft_port_world() };
	struct weft_port_info info = { .size = sizeof(info) };
	struct MPI_ABI_Group *group;
	weft_id *ids;
	int r = weft_port_stat(weft_port_world(), &info);

	if (r < 0)
		return r;
	ids = malloc(info.count * sizeof(*ids));
	if (!ids)
		return weft_fail(-ENOMEM, "no memory for %u members", info.count);
	for (uint32_t i = 0; i < info.count; i++)
		ids[i] = weft_port_member(weft_port_world(), i);
	group = wm_group_new(ids, (int)info.count);
	free(ids);
	if (!group)
		return weft_fail(-ENOMEM, "no memory for %u members", info.count);
	fill(&wm_world, group, NULL);
	wm_group_put(group);
	wm_world.here = all_here(group);
	return open_ports(&wm_world, &opts, "world", NULL, "mpi/world");
}

static int self_open(void)
{
	weft_id me = weft_process();
	weft_ctx ctx[] = { weft_ctx_new(), weft_ctx_new() };
	struct weft_port_opts opts = { .size = sizeof(opts), .members = &me, .count = 1 };
	struct MPI_ABI_Group *group = wm_group_new(&me, 1);

	if (!group || !ctx[0] || !ctx[1])
		return weft_fail(-ENOMEM, "no memory for MPI_COMM_SELF");
	fill(&wm_self, group, NULL);
	wm_group_put(group);
	wm_self.here = true;
	return open_ports(&wm_self, &opts, "self", ctx, "");
}

static void basic_close(struct MPI_ABI_Comm *c, weft_time until)
{
	close_ports(c, until);
	wm_group_put(c->group);
	wm_topo_free(c->topo);
	wm_info_free(c->info);
	c->group = NULL;
	c->topo = NULL;
	c->info = NULL;
}

static void basic_init(struct MPI_ABI_Comm *c, const char *name)
{
	atomic_store_explicit(&c->obj.kind, WM_COMM, memory_order_relaxed);
	atomic_store_explicit(&c->obj.refs, 1, memory_order_relaxed);
	wm_attrs_init(&c->attrs);
	strcpy(c->name, name);
}

int wm_comms_open(void)
{
	int r;

	basic_init(&wm_world, "MPI_COMM_WORLD");
	basic_init(&wm_self, "MPI_COMM_SELF");
	r = world_open();
	if (r == 0)
		r = self_open();
	if (r < 0) {
		basic_close(&wm_world, WEFT_NOW);
		basic_close(&wm_self, WEFT_NOW);
	}
	return r;
}

/* The attributes of MPI_COMM_SELF are the program's way to be called at the end: first, while everything still works. */
void wm_comms_close(void)
{
	weft_time until;
	struct MPI_ABI_Comm *c;

	wm_attrs_delete(&wm_self.attrs, MPI_COMM_SELF);
	wm_attrs_delete(&wm_world.attrs, MPI_COMM_WORLD);
	wm_coll_barrier(&wm_world);     /* one that died is no reason to stay */
	/* Its thread would go on at ports that are closed. */
	if (!wm_later_end(LATER_WAIT))
		weft_job_abort(1, "MPI_Finalize: a nonblocking collective has not ended, which not all of its communicator have begun");
	until = weft_in(DRAIN);
	close_late();
	while ((c = list_take(&all.first)) != NULL)
		close_ports(c, until);
	basic_close(&wm_self, until);
	basic_close(&wm_world, until);
}

/* Freeing */

static int comm_release(const char *function, MPI_Comm *comm, struct MPI_ABI_Comm **ret_c)
{
	struct MPI_ABI_Comm *c = comm ? wm_comm(*comm) : NULL;
	int r;

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
	if (c == &wm_world || c == &wm_self)
		return wm_error(c, function, MPI_ERR_COMM, "%s cannot be freed", c->name);
	r = wm_attrs_delete(&c->attrs, c);
	if (r)
		return wm_error(c, function, r, "the delete function of an attribute failed");
	*ret_c = c;
	return MPI_SUCCESS;
}

int PMPI_Comm_free(MPI_Comm *comm)
{
	struct MPI_ABI_Comm *c;
	int r = comm_release(__func__, comm, &c);

	if (r != MPI_SUCCESS)
		return r;
	if (c->owner)
		wm_coll_barrier(c);     /* a thread may end next, and its end is an error to whoever is not through with the last collective */
	wm_comm_put(c);
	*comm = MPI_COMM_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_free);

/* As freeing, and waits for the others: what was begun here is over everywhere. */
int PMPI_Comm_disconnect(MPI_Comm *comm)
{
	struct MPI_ABI_Comm *c;
	int r = comm_release(__func__, comm, &c);

	if (r != MPI_SUCCESS)
		return r;
	wm_coll_barrier(c->inter ? c->local : c);
	wm_comm_put(c);
	*comm = MPI_COMM_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_disconnect);
