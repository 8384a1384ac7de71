/* private.c - the table for the extension library. */
#include "private.h"

#include "comm.h"

static struct MPI_ABI_Comm *comm_of(MPI_Comm comm)
{
	return wm_comm(comm);
}

const struct wm_inner_calls wm_inner_1 = {
	.world = &wm_world,
	.sent = &wm_sent,
	.comm = comm_of,
	.comm_open = wm_comm_open,
	.comm_put = wm_comm_put,
	.split = wm_split,
	.allgather = wm_coll_allgather,
	.group_new = wm_group_new,
	.group_put = wm_group_put,
	.object_new = wm_object_new,
	.object_free = wm_object_free,
	.error = wm_error,
	.weft_error = wm_weft_error,
	.class = wm_class,
	.check_send = wm_check_send,
	.check_recv = wm_check_recv,
	.refuse = wm_refuse,
	.request_new = wm_request_new,
	.status_set = wm_status_set,
	.status_proc_null = wm_status_proc_null,
};
