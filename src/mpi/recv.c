/* recv.c - receiving: blocking, immediate, persistent; both ways at once.
 *
 * What is longer than the memory for it is cut off, consumed and an error, as MPI has it; weft_recv would leave it
 * in the queue, so that the common path tries that and takes the rest off when it is told.
 */
#include <errno.h>
#include <stdlib.h>

#include "request.h"

/* Blocking, with every kind of memory and wildcard. */
static int recv_now(struct MPI_ABI_Comm *c, const char *function, void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, int source,
		    int tag, MPI_Status *status)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_TRUNCATE };
	struct weft_status st = { .err = 0 };
	struct weft_req *req = NULL;
	struct wm_layout room;
	int r;

	wm_want(&op, source, tag);
	wm_place(&op, &room, buf, count, type);
	r = weft_recv_post(c->talk, &op, &req, &st);
	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, &st);
	if (WM_LIKELY(r >= 0)) {
		wm_status_set(status, &st);
		return MPI_SUCCESS;
	}
	if (r == -EMSGSIZE) {
		wm_status_set(status, &st);
		return wm_error(c, function, MPI_ERR_TRUNCATE, "a message of %zu bytes from rank %d does not fit into %zu", st.len, (int)st.index,
				(size_t)(count * type->size));
	}
	return wm_weft_error(c, function, r);
}

int PMPI_Recv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	struct MPI_ABI_Comm *c = wm_comm(comm);
	int r;

	if (wm_is_plain(buf, count, t, source, tag, c)) {
		struct weft_status st;

		r = weft_recv(c->talk, weft_at((uint32_t)source), (uint64_t)tag, buf, (size_t)(count * t->size), WEFT_FOREVER, &st);
		if (WM_LIKELY(r == 0)) {
			if (status) {
				status->MPI_SOURCE = source;
				status->MPI_TAG = tag;
				wm_status_put_bytes(status, (MPI_Count)st.len);
				status->MPI_internal[2] = 0;
			}
			return MPI_SUCCESS;
		}
		return r == -EMSGSIZE ? recv_now(c, __func__, buf, count, t, source, tag, status) : wm_weft_error(c, __func__, r);
	}
	r = wm_check_recv(buf, count, datatype, source, tag, comm);
	if (r)
		return wm_refuse(comm, __func__, r, count, source, tag);
	if (source == MPI_PROC_NULL) {
		wm_status_proc_null(status);
		return MPI_SUCCESS;
	}
	return recv_now(c, __func__, buf, count, t, source, tag, status);
}
MPI_DONE(Recv_c);

/* Immediate and persistent */

int wm_recv_start(struct MPI_ABI_Request *r)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_TRUNCATE };
	int err;

	r->active = true;
	r->cancelled = false;
	r->req = NULL;
	r->done = (struct weft_status){ .index = WEFT_NOBODY, .tag = (uint64_t)MPI_ANY_TAG };
	if (r->rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	wm_want(&op, r->rank, r->tag);
	wm_place(&op, &r->layout, (void *)(uintptr_t)r->buf, r->count, r->type);
	err = weft_recv_post(r->comm->talk, &op, &r->req, &r->done);
	if (err == -EMSGSIZE) {
		r->done.err = err;
		err = 0;
	}
	if (err < 0)
		r->active = false;
	return wm_class(err);
}

/* A receive of plain memory, whose request needs none of the arguments, did not begin: weft answered @err. */
static int start_failed(const char *function, MPI_Request *request, int err)
{
	struct MPI_ABI_Request *r = *request;
	struct MPI_ABI_Comm *c = r->comm;

	if (err == -EMSGSIZE) {         /* there already, and too long: whoever waits is told */
		r->done.err = err;
		return MPI_SUCCESS;
	}
	*request = MPI_REQUEST_NULL;
	err = wm_weft_error(c, function, err);
	wm_request_drop(r);
	return err;
}

/* All but what PMPI_Irecv_c does itself. */
static int recv_start(const char *function, void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	int err = request ? wm_check_recv(buf, count, datatype, source, tag, comm) : MPI_ERR_ARG;
	struct MPI_ABI_Datatype *type = wm_type(datatype);
	struct MPI_ABI_Request *r;

	if (err)
		return wm_refuse(comm, function, err, count, source, tag);
	if (type->plain && source != MPI_PROC_NULL) {
		r = *request = wm_request_bare(WM_RECV, wm_comm(comm));
		if (r) {
			err = weft_recv_start(r->comm->talk, wm_source(source), wm_tag_wanted(tag), wm_tag_ignored(tag), buf, (size_t)(count * type->size),
					      WEFT_TRUNCATE, &r->req, &r->done);
			return err < 0 ? start_failed(function, request, err) : MPI_SUCCESS;
		}
	} else {
		r = wm_described(WM_RECV, buf, count, datatype, source, tag, comm, WM_STANDARD);
	}
	err = r ? wm_recv_start(r) : MPI_ERR_NO_MEM;
	if (err && r)
		wm_request_drop(r);
	*request = err ? MPI_REQUEST_NULL : r;
	return err ? wm_error(wm_comm(comm), function, err, "%s", r ? weft_last_error() : "no memory for a request") : MPI_SUCCESS;
}

int PMPI_Irecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	const struct MPI_ABI_Datatype *t = wm_type(datatype);
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Request *r;
	int err;

	if (WM_UNLIKELY(!wm_is_plain(buf, count, t, source, tag, c) || !request || !(r = wm_request_bare(WM_RECV, c))))
		return recv_start(__func__, buf, count, datatype, source, tag, comm, request);
	*request = r;
	err = weft_recv_start(c->talk, weft_at((uint32_t)source), (uint64_t)tag, 0, buf, (size_t)(count * t->size), WEFT_TRUNCATE, &r->req, &r->done);
	return WM_LIKELY(err >= 0) ? MPI_SUCCESS : start_failed(__func__, request, err);
}
MPI_DONE(Irecv_c);

int PMPI_Recv_init_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	int err = wm_check_recv(buf, count, datatype, source, tag, comm);

	if (!request || err)
		return wm_refuse(comm, __func__, request ? err : MPI_ERR_ARG, count, source, tag);
	return wm_keep(__func__, wm_described(WM_RECV, buf, count, datatype, source, tag, comm, WM_STANDARD), comm, request);
}
MPI_DONE(Recv_init_c);
