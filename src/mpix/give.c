/* give.c - memory that changes hands: a receive that gives it, a send that takes it along.
 *
 * Both are weft's buffers, known to the program by the address of their data. */
#include "mpix.h"

int MPIX_Weft_alloc_recv(void **buf, MPI_Count *bytes, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_ALLOC };
	struct MPI_ABI_Comm *c = WX->comm(comm);
	struct weft_status st = { .err = 0 };
	struct weft_req *req = NULL;
	int r = WX->check_recv(NULL, 0, MPI_BYTE, source, tag, comm);

	if (r)
		return WX->refuse(comm, __func__, r, 0, source, tag);
	if (!buf || !bytes)
		return WX->error(c, __func__, MPI_ERR_ARG, "NULL as place of the %s", buf ? "length" : "memory");
	if (source == MPI_PROC_NULL) {
		*buf = NULL;
		*bytes = 0;
		WX->status_proc_null(status);
		return MPI_SUCCESS;
	}
	wm_want(&op, source, tag);
	r = weft_recv_post(c->talk, &op, &req, &st);
	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, &st);
	if (r < 0)
		return WX->weft_error(c, __func__, r);
	*buf = st.buf->data;
	*bytes = (MPI_Count)st.len;
	WX->status_set(status, &st);
	return MPI_SUCCESS;
}

int MPIX_Weft_free(void *buf)
{
	return PMPI_Free_mem(buf);
}

/* The buffer of a giving send: its length set. 0 or an error class. */
static int buffer_of(void *mem, MPI_Count bytes, struct weft_buf **ret_buf)
{
	struct weft_buf *buf = mem ? weft_buf_of(mem) : NULL;

	if (!buf || buf->data != mem)
		return MPI_ERR_BUFFER;
	if (bytes < 0 || (uint64_t)bytes > buf->cap)
		return MPI_ERR_COUNT;
	buf->len = (size_t)bytes;
	*ret_buf = buf;
	return 0;
}

/* The end is told by *@request; NULL: waits for it. */
static int give(const char *function, void *mem, MPI_Count bytes, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct weft_op op = { .size = sizeof(op), .peer = weft_at((uint32_t)dest), .tag = (uint64_t)tag };
	int r = WX->check_send(NULL, 0, MPI_BYTE, dest, tag, comm);
	struct MPI_ABI_Comm *c = WX->comm(comm);
	struct weft_req *req = NULL;
	struct MPI_ABI_Request *handle;

	if (r)
		return WX->refuse(comm, function, r, bytes, dest, tag);
	r = buffer_of(mem, bytes, &op.buf);
	if (r)
		return WX->error(c, function, r, r == MPI_ERR_COUNT ? "more than the memory has, or less than nothing"
								    : "not memory that can be given away");
	if (dest == MPI_PROC_NULL) {
		r = weft_buf_put(op.buf);
		if (r == 0 && request)
			*request = WX->sent;
		return r < 0 ? WX->weft_error(c, function, r) : MPI_SUCCESS;
	}
	r = weft_send_post(c->talk, &op, &req);
	if (r < 0)
		return WX->weft_error(c, function, r);
	handle = r == 0 && request ? WX->request_new(WM_SEND, c) : NULL;
	if (handle) {
		handle->req = req;
		*request = handle;
		return MPI_SUCCESS;
	}
	r = weft_req_wait(&req, WEFT_FOREVER, NULL);    /* none: over. Or no memory for the handle: it is a blocking one */
	if (r < 0)
		return WX->weft_error(c, function, r);
	if (request)
		*request = WX->sent;
	return MPI_SUCCESS;
}

int MPIX_Weft_give_send(void *buf, MPI_Count bytes, int dest, int tag, MPI_Comm comm)
{
	return give(__func__, buf, bytes, dest, tag, comm, NULL);
}

int MPIX_Weft_igive_send(void *buf, MPI_Count bytes, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	if (!request)
		return WX->error(WX->comm(comm), __func__, MPI_ERR_ARG, "no place for the request");
	*request = MPI_REQUEST_NULL;
	return give(__func__, buf, bytes, dest, tag, comm, request);
}
