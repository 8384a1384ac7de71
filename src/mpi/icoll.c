/* icoll.c - from a collective's arguments to a request, and to the thread that runs it. See icoll.h. */
#include "icoll.h"

#include <stdio.h>
#include <stdlib.h>

struct wm_icoll {                       /* of a request; owned by it */
	struct wm_job job;

	/* set when it is made, then constant */
	struct wm_call call;
	struct MPI_ABI_Comm *comm;      /* the request's reference */
	uint64_t round, local_round;
	bool persistent;
	int outs, ins;                  /* types kept for call.out and call.in */

	/* set when it is started */
	uint32_t start;                 /* of a persistent one: which */
	struct weft_req *req;

	/* how it ended, for whoever has seen req end */
	int err, class;

	MPI_Datatype types[];
};

/* The port */

static int port_open(struct MPI_ABI_Comm *comm, struct weft_port **ret_port)
{
	struct weft_port_opts opts = { .size = sizeof(opts), .like = comm->coll, .flags = WEFT_PORT_FRAGILE, .name = "mpi later" };
	struct weft_port_info info = { .size = sizeof(info) };
	char channel[48];
	int r = weft_port_stat(comm->coll, &info);

	if (r < 0)
		return r;
	/* Every member works it out alone; what comes before it is open waits. */
	snprintf(channel, sizeof(channel), "mpi/later/%016llx", (unsigned long long)info.context);
	opts.channel = channel;
	return weft_port_open(&opts, ret_port);
}

/* Opened by the thread that needs it first: it is biased to that one. NULL: c has failed. */
static struct weft_port *later_port(struct wm_coll *c, struct MPI_ABI_Comm *comm)
{
	struct weft_port *port = atomic_load_explicit(&comm->later, memory_order_acquire);      /* an open one: with the release below */
	int r;

	if (port)
		return port;
	pthread_mutex_lock(&comm->lock);
	port = atomic_load_explicit(&comm->later, memory_order_relaxed);       /* written under the lock */
	if (!port) {
		r = port_open(comm, &port);
		if (r == 0)
			atomic_store_explicit(&comm->later, port, memory_order_release);
		else
			wm_coll_fail(c, r);
	}
	pthread_mutex_unlock(&comm->lock);
	return port;
}

/* The job */

/* Beside the rounds of those that are not persistent. */
static uint64_t started_tag(uint64_t round, uint32_t start)
{
	return UINT64_C(1) << 63 | (round & 0x3fffffff) << 32 | start;
}

static void run(struct wm_job *job)
{
	struct wm_icoll *ic = (struct wm_icoll *)job;
	struct wm_coll c = { .comm = ic->comm, .tag = ic->round, .local_tag = ic->local_round };

	if (ic->persistent) {
		c.tag = started_tag(ic->round, ic->start);
		c.local_tag = started_tag(ic->local_round, ic->start);
	}
	c.port = later_port(&c, c.comm);
	if (c.comm->inter)
		later_port(&c, c.comm->local);
	if (!c.err)
		ic->call.run(&c, &ic->call);
	ic->class = wm_coll_class(&c);
	ic->err = c.err;
}

static void end(struct wm_job *job)
{
	struct wm_icoll *ic = (struct wm_icoll *)job;
	const struct weft_status st = { .err = ic->err, .index = WEFT_NOBODY };

	weft_req_complete(ic->req, &st);
}

/* The request */

static int kept_types(const struct wm_blocks *b, int n)
{
	return b->types && b->buf != MPI_IN_PLACE ? n : 0;
}

/* Copies the types of blocks, and holds them. Of no elements the type may be none, but among neighbours (@all). */
static void keep_types(struct wm_blocks *b, MPI_Datatype *kept, int n, bool all)
{
	for (int i = 0; i < n; i++) {
		kept[i] = all || (b->counts ? b->counts[i] : b->counts_c[i]) ? b->types[i] : MPI_DATATYPE_NULL;
		if (wm_type(kept[i]))
			wm_type_get(wm_type(kept[i]));
	}
	if (n)
		b->types = kept;
}

static void keep(struct wm_icoll *ic)
{
	struct MPI_ABI_Datatype *types[] = { ic->call.one.type, ic->call.out.type, ic->call.in.type };

	for (int i = 0; i < 3; i++)
		if (types[i])
			wm_type_get(types[i]);
	keep_types(&ic->call.out, ic->types, ic->outs, ic->call.count != NULL);
	keep_types(&ic->call.in, ic->types + ic->outs, ic->ins, ic->call.count != NULL);
	if (ic->call.op && !ic->call.op->predefined)
		wm_object_get(&ic->call.op->obj);
}

void wm_icoll_free(struct wm_icoll *ic)
{
	struct MPI_ABI_Datatype *types[] = { ic->call.one.type, ic->call.out.type, ic->call.in.type };

	for (int i = 0; i < 3; i++)
		if (types[i])
			wm_type_put(types[i]);
	for (int i = 0; i < ic->outs + ic->ins; i++)
		if (wm_type(ic->types[i]))
			wm_type_put(wm_type(ic->types[i]));
	if (ic->call.op)
		wm_op_put(ic->call.op);
	free(ic);
}

/* A request that is not started. NULL: no memory. */
static struct MPI_ABI_Request *described(struct MPI_ABI_Comm *comm, const struct wm_call *call, bool persistent)
{
	struct MPI_ABI_Request *r = wm_request_new(WM_COLL, comm);
	int in = comm->peers, out = comm->peers;
	struct wm_icoll *ic;

	if (!r)
		return NULL;
	if (call->count)
		call->count(comm, &in, &out);
	out = kept_types(&call->out, out);
	in = kept_types(&call->in, in);
	ic = calloc(1, sizeof(*ic) + (size_t)(in + out) * sizeof(*ic->types));
	if (!ic) {
		wm_request_drop(r);
		return NULL;
	}
	ic->job = (struct wm_job){ .run = run, .end = end };
	ic->call = *call;
	ic->comm = comm;
	ic->persistent = persistent;
	ic->outs = out;
	ic->ins = in;
	keep(ic);
	r->copy = ic;
	r->active = false;
	r->persistent = persistent;
	return r;
}

int wm_icoll_start(struct MPI_ABI_Request *r)
{
	struct wm_icoll *ic = r->copy;
	int err = weft_req_new(NULL, NULL, NULL, &r->req);

	if (err < 0)
		return wm_class(err);
	ic->req = r->req;
	ic->start++;
	r->done = (struct weft_status){ .index = WEFT_NOBODY };
	r->active = true;
	err = wm_later(&ic->job);
	if (err < 0) {
		weft_req_complete(r->req, NULL);
		weft_req_free(r->req);
		r->req = NULL;
		r->active = false;
	}
	return wm_class(err);
}

void wm_icoll_help(struct MPI_ABI_Request *r)
{
	struct wm_icoll *ic = r->copy;

	if (wm_later_take(&ic->job)) {
		run(&ic->job);
		end(&ic->job);
	}
}

int wm_icoll_class(const struct MPI_ABI_Request *r)
{
	return ((const struct wm_icoll *)r->copy)->class;
}

/* The call: what is wrong was told, or *@ret_request is one that is not started, with its round. */
static int prepare(const char *function, const struct wm_call *call, MPI_Comm comm, bool persistent, MPI_Request *place,
		   struct MPI_ABI_Request **ret_request)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct MPI_ABI_Request *r;
	struct wm_icoll *ic;
	int class;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	class = call->check(m, call);
	if (class || !place)
		return wm_coll_wrong(m, function, class ? class : MPI_ERR_ARG);
	if (m->owner)           /* only their thread receives at its ports */
		return wm_error(m, function, MPI_ERR_UNSUPPORTED_OPERATION, "not on a communicator of threads");
	r = described(m, call, persistent);
	if (!r)
		return wm_error(m, function, MPI_ERR_NO_MEM, "no memory for a request");
	ic = r->copy;
	/* relaxed: as in wm_coll_begin. */
	ic->round = atomic_fetch_add_explicit(&m->later_round, 1, memory_order_relaxed);
	if (m->inter)
		ic->local_round = atomic_fetch_add_explicit(&m->local->later_round, 1, memory_order_relaxed);
	*ret_request = r;
	return MPI_SUCCESS;
}

int wm_icoll(const char *function, struct wm_call call, MPI_Comm comm, MPI_Request *request)
{
	struct MPI_ABI_Request *r;
	int err = prepare(function, &call, comm, false, request, &r);

	if (err)
		return err;
	err = wm_icoll_start(r);
	if (err) {
		wm_request_drop(r);
		return wm_error(wm_comm(comm), function, err, "%s", weft_last_error());
	}
	*request = r;
	return MPI_SUCCESS;
}

int wm_icoll_init(const char *function, struct wm_call call, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct MPI_ABI_Request *r;
	int err;

	if (wm_comm(comm) && info != MPI_INFO_NULL && !wm_info(info))
		return wm_error(wm_comm(comm), function, MPI_ERR_INFO, "not an info");
	err = prepare(function, &call, comm, true, request, &r);
	if (!err)
		*request = r;
	return err;
}
