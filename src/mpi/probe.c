/* probe.c - looking at a message before receiving it, and taking it out of matching. */
#include <errno.h>

#include "request.h"

struct MPI_ABI_Message {
	struct wm_object obj;
	struct weft_msg *msg;
	struct MPI_ABI_Comm *comm;      /* referenced */
};

static struct MPI_ABI_Message *message_of(const MPI_Message *message)
{
	return message && wm_object_is(*message, WM_MESSAGE) ? *message : NULL;
}

/* MPI_SUCCESS with *ret_there, or an error that was raised. PROC_NULL always has an empty one. */
static int look(const char *function, int source, int tag, MPI_Comm comm, weft_time until, struct weft_msg **ret_msg, int *ret_there,
		MPI_Status *status)
{
	struct weft_op op = { .size = sizeof(op) };
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct weft_status st = { .err = 0 };
	int r = wm_check_recv(NULL, 0, MPI_BYTE, source, tag, comm);

	if (r)
		return wm_refuse(comm, function, r, 0, source, tag);
	if (source == MPI_PROC_NULL) {
		*ret_there = 1;
		wm_status_proc_null(status);
		return MPI_SUCCESS;
	}
	wm_want(&op, source, tag);
	r = weft_probe(c->talk, &op, until, ret_msg, &st);
	*ret_there = r == 0;
	if (r == 0)
		wm_status_set(status, &st);
	return r == 0 || r == -EAGAIN ? MPI_SUCCESS : wm_weft_error(c, function, r);
}

int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	int there;

	return look(__func__, source, tag, comm, WEFT_FOREVER, NULL, &there, status);
}
MPI_DONE(Probe);

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	if (!flag)
		return wm_refuse(comm, __func__, MPI_ERR_ARG, 0, source, tag);
	return look(__func__, source, tag, comm, WEFT_NOW, NULL, flag, status);
}
MPI_DONE(Iprobe);

static int take(const char *function, int source, int tag, MPI_Comm comm, weft_time until, int *ret_there, MPI_Message *message,
		MPI_Status *status)
{
	struct weft_msg *msg = NULL;
	struct MPI_ABI_Message *m;
	int err;

	if (!message || !ret_there)
		return wm_refuse(comm, function, MPI_ERR_ARG, 0, source, tag);
	m = wm_object_new(WM_MESSAGE, sizeof(*m));
	if (!m)
		return wm_error(wm_comm(comm), function, MPI_ERR_NO_MEM, "no memory for a message");
	err = look(function, source, tag, comm, until, &msg, ret_there, status);
	if (err || !msg) {
		*message = !err && *ret_there ? MPI_MESSAGE_NO_PROC : MPI_MESSAGE_NULL;
		wm_object_free(m);
		return err;
	}
	m->msg = msg;
	m->comm = wm_comm(comm);
	wm_object_get(&m->comm->obj);
	*message = m;
	return MPI_SUCCESS;
}

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	int there;

	return take(__func__, source, tag, comm, WEFT_FOREVER, &there, message, status);
}
MPI_DONE(Mprobe);

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	return take(__func__, source, tag, comm, WEFT_NOW, flag, message, status);
}
MPI_DONE(Improbe);

int PMPI_Imrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
	struct MPI_ABI_Message *m = message_of(message);
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_TRUNCATE };
	struct MPI_ABI_Request *r;
	MPI_Comm comm;
	int err;

	if (!m && !(message && *message == MPI_MESSAGE_NO_PROC))
		return wm_error(NULL, __func__, MPI_ERR_REQUEST, "not a message");
	comm = m ? wm_comm_handle(m->comm) : MPI_COMM_SELF;
	err = wm_check_data(buf, count, wm_type(datatype));
	if (!request || err)
		return wm_refuse(comm, __func__, request ? err : MPI_ERR_ARG, count, 0, 0);
	r = wm_described(WM_RECV, buf, count, datatype, MPI_PROC_NULL, 0, comm, WM_STANDARD);
	if (!r)
		return wm_error(m ? m->comm : NULL, __func__, MPI_ERR_NO_MEM, "no memory for a request");
	if (!m) {
		wm_recv_start(r);       /* from nobody: over */
		*message = MPI_MESSAGE_NULL;
		*request = r;
		return MPI_SUCCESS;
	}
	op.msg = m->msg;
	wm_place(&op, &r->layout, buf, count, r->type);
	err = weft_recv_post(m->comm->talk, &op, &r->req, &r->done);
	if (err < 0 && err != -EMSGSIZE) {
		wm_request_drop(r);
		return wm_weft_error(m->comm, __func__, err);
	}
	if (err < 0)
		r->done.err = err;
	wm_comm_put(m->comm);
	wm_object_free(m);
	*message = MPI_MESSAGE_NULL;
	*request = r;
	return MPI_SUCCESS;
}
MPI_DONE(Imrecv_c);

int PMPI_Mrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
	MPI_Request request;
	int err = PMPI_Imrecv_c(buf, count, datatype, message, &request);

	return err ? err : PMPI_Wait(&request, status);
}
MPI_DONE(Mrecv_c);
