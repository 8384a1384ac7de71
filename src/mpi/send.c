/* send.c - sending: four modes, which differ in a flag of weft's, blocking and immediate.
 *
 * Standard and plain is the path everybody takes: three looks at the arguments and weft_send. Everything else goes through
 * a weft_op.
 */
#include "request.h"

static const uint32_t mode_flags[] = {
	[WM_STANDARD] = 0,
	[WM_SYNC] = WEFT_SYNC,
	[WM_READY] = WEFT_READY,
};

/* Blocking. The op and a layout live here until weft is done with them. */
static int send_now(struct MPI_ABI_Comm *c, const char *function, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type,
		    int dest, int tag, enum wm_mode mode)
{
	struct weft_op op = { .size = sizeof(op), .flags = mode_flags[mode], .peer = weft_at((uint32_t)dest), .tag = (uint64_t)tag };
	struct weft_req *req = NULL;
	struct wm_layout room;
	int r;

	wm_place(&op, &room, buf, count, type);
	r = weft_send_post(c->talk, &op, &req);
	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, NULL);
	return r < 0 ? wm_weft_error(c, function, r) : MPI_SUCCESS;
}

static int send_any(const char *function, const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
		    enum wm_mode mode)
{
	int r = wm_check_send(buf, count, datatype, dest, tag, comm);

	if (WM_UNLIKELY(r))
		return wm_refuse(comm, function, r, count, dest, tag);
	if (dest == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (mode == WM_BUFFERED) {
		r = wm_bsend(wm_comm(comm), buf, count, wm_type(datatype), dest, tag);
		return r ? wm_error(wm_comm(comm), function, r, "%s", weft_last_error()) : MPI_SUCCESS;
	}
	return send_now(wm_comm(comm), function, buf, count, wm_type(datatype), dest, tag, mode);
}

int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	const struct MPI_ABI_Datatype *t = wm_type(datatype);
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (wm_is_plain(buf, count, t, dest, tag, c)) {
		int r = weft_send(c->talk, weft_at((uint32_t)dest), (uint64_t)tag, buf, (size_t)(count * t->size), WEFT_FOREVER);

		return WM_LIKELY(r == 0) ? MPI_SUCCESS : wm_weft_error(c, __func__, r);
	}
	return send_any(__func__, buf, count, datatype, dest, tag, comm, WM_STANDARD);
}
MPI_DONE(Send_c);

int PMPI_Ssend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	return send_any(__func__, buf, count, datatype, dest, tag, comm, WM_SYNC);
}
MPI_DONE(Ssend_c);

int PMPI_Rsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	return send_any(__func__, buf, count, datatype, dest, tag, comm, WM_READY);
}
MPI_DONE(Rsend_c);

int PMPI_Bsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	return send_any(__func__, buf, count, datatype, dest, tag, comm, WM_BUFFERED);
}
MPI_DONE(Bsend_c);

/* Immediate */

/* An operation of its own: persistent, or with memory that is not plain. */
int wm_send_start(struct MPI_ABI_Request *r)
{
	struct weft_op op = { .size = sizeof(op), .flags = r->mode == WM_BUFFERED ? 0 : mode_flags[r->mode],
			      .peer = weft_at((uint32_t)r->rank), .tag = (uint64_t)r->tag };
	int err;

	r->active = true;
	r->cancelled = false;
	r->req = NULL;
	r->done = (struct weft_status){ .index = WEFT_NOBODY };
	if (r->rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (r->mode == WM_BUFFERED) {
		err = wm_bsend(r->comm, r->buf, r->count, r->type, r->rank, r->tag);
	} else {
		wm_place(&op, &r->layout, r->buf, r->count, r->type);
		err = wm_class(weft_send_post(r->comm->talk, &op, &r->req));
	}
	if (err)
		r->active = false;
	return err;
}

/* weft has begun a send of plain memory and answered @r. */
static int send_begun(struct MPI_ABI_Comm *c, const char *function, int r, struct weft_req *req, MPI_Request *request)
{
	struct MPI_ABI_Request *handle = r == 0 ? wm_request_new(WM_SEND, c) : NULL;

	*request = r < 0 ? MPI_REQUEST_NULL : &wm_sent;
	if (r < 0)
		return wm_weft_error(c, function, r);
	if (handle) {
		handle->req = req;
		*request = handle;
	} else if (r == 0) {
		weft_req_wait(&req, WEFT_FOREVER, NULL);        /* no memory for the handle: it is a blocking one */
	}
	return MPI_SUCCESS;
}

static int send_start(const char *function, const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
		      enum wm_mode mode, MPI_Request *request)
{
	int err = request ? wm_check_send(buf, count, datatype, dest, tag, comm) : MPI_ERR_ARG;
	struct MPI_ABI_Datatype *type = wm_type(datatype);
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Request *r;
	struct weft_req *req = NULL;

	if (err == MPI_ERR_ARG)
		return wm_error(c, function, err, "no place for the request");
	if (err)
		return wm_refuse(comm, function, err, count, dest, tag);
	*request = &wm_sent;
	if (dest == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (mode == WM_BUFFERED) {
		err = wm_bsend(c, buf, count, type, dest, tag);
		if (err)
			*request = MPI_REQUEST_NULL;
		return err ? wm_error(c, function, err, "%s", weft_last_error()) : MPI_SUCCESS;
	}
	if (type->plain) {
		err = weft_send_start(c->talk, weft_at((uint32_t)dest), (uint64_t)tag, buf, (size_t)(count * type->size), mode_flags[mode], &req);
		return send_begun(c, function, err, req, request);
	}
	r = wm_described(WM_SEND, buf, count, datatype, dest, tag, comm, mode);
	err = r ? wm_send_start(r) : MPI_ERR_NO_MEM;
	if (err && r)
		wm_request_drop(r);
	*request = err ? MPI_REQUEST_NULL : r;
	return err ? wm_error(c, function, err, "%s", weft_last_error()) : MPI_SUCCESS;
}

int PMPI_Isend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	const struct MPI_ABI_Datatype *t = wm_type(datatype);
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct weft_req *req;
	int r;

	if (WM_UNLIKELY(!wm_is_plain(buf, count, t, dest, tag, c) || !request))
		return send_start(__func__, buf, count, datatype, dest, tag, comm, WM_STANDARD, request);
	*request = &wm_sent;
	r = weft_send_start(c->talk, weft_at((uint32_t)dest), (uint64_t)tag, buf, (size_t)(count * t->size), 0, &req);
	return WM_LIKELY(r == WEFT_DONE) ? MPI_SUCCESS : send_begun(c, __func__, r, req, request);
}
MPI_DONE(Isend_c);

int PMPI_Issend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_start(__func__, buf, count, datatype, dest, tag, comm, WM_SYNC, request);
}
MPI_DONE(Issend_c);

int PMPI_Irsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_start(__func__, buf, count, datatype, dest, tag, comm, WM_READY, request);
}
MPI_DONE(Irsend_c);

int PMPI_Ibsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_start(__func__, buf, count, datatype, dest, tag, comm, WM_BUFFERED, request);
}
MPI_DONE(Ibsend_c);

/* Persistent: described now, posted by MPI_Start. */

static int send_init(const char *function, const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
		     enum wm_mode mode, MPI_Request *request)
{
	int err = request ? wm_check_send(buf, count, datatype, dest, tag, comm) : MPI_ERR_ARG;

	if (err == MPI_ERR_ARG)
		return wm_error(wm_comm(comm), function, err, "no place for the request");
	if (err)
		return wm_refuse(comm, function, err, count, dest, tag);
	return wm_keep(function, wm_described(WM_SEND, buf, count, datatype, dest, tag, comm, mode), comm, request);
}

int PMPI_Send_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_init(__func__, buf, count, datatype, dest, tag, comm, WM_STANDARD, request);
}
MPI_DONE(Send_init_c);

int PMPI_Ssend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_init(__func__, buf, count, datatype, dest, tag, comm, WM_SYNC, request);
}
MPI_DONE(Ssend_init_c);

int PMPI_Rsend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_init(__func__, buf, count, datatype, dest, tag, comm, WM_READY, request);
}
MPI_DONE(Rsend_init_c);

int PMPI_Bsend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return send_init(__func__, buf, count, datatype, dest, tag, comm, WM_BUFFERED, request);
}
MPI_DONE(Bsend_init_c);
