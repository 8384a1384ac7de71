/* icoll_reduce.c - nonblocking and persistent reductions. See icoll.h. */
#include "icoll.h"

/* MPI_Ireduce */

static int reduce_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_reduce_check(comm, call->root, call->op, call->input, call->one);
}

static void reduce_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_reduce(c, call->root, call->op, call->input, call->one);
}

static struct wm_call reduce(const void *input, struct wm_block result, MPI_Op op, int root)
{
	return (struct wm_call){
		.check = reduce_check, .run = reduce_run, .root = root, .op = wm_op(op), .input = input, .one = result
	};
}

int PMPI_Ireduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
		   MPI_Request *request)
{
	return wm_icoll(__func__, reduce(sendbuf, wm_block(recvbuf, count, datatype), op, root), comm, request);
}
MPI_DONE(Ireduce_c);

int PMPI_Reduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, reduce(sendbuf, wm_block(recvbuf, count, datatype), op, root), comm, info, request);
}
MPI_DONE(Reduce_init_c);

/* MPI_Iallreduce */

static int allreduce_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_allreduce_check(comm, call->op, call->input, call->one);
}

static void allreduce_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_allreduce(c, call->op, call->input, call->one);
}

static struct wm_call allreduce(const void *input, struct wm_block result, MPI_Op op)
{
	return (struct wm_call){ .check = allreduce_check, .run = allreduce_run, .op = wm_op(op), .input = input, .one = result };
}

int PMPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		      MPI_Request *request)
{
	return wm_icoll(__func__, allreduce(sendbuf, wm_block(recvbuf, count, datatype), op), comm, request);
}
MPI_DONE(Iallreduce_c);

int PMPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
			  MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, allreduce(sendbuf, wm_block(recvbuf, count, datatype), op), comm, info, request);
}
MPI_DONE(Allreduce_init_c);

/* MPI_Iscan */

static int scan_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_scan_check(comm, call->op, call->input, call->one, true);
}

static void scan_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_scan(c, call->op, call->input, call->one);
}

static struct wm_call scan(const void *input, struct wm_block result, MPI_Op op)
{
	return (struct wm_call){ .check = scan_check, .run = scan_run, .op = wm_op(op), .input = input, .one = result };
}

int PMPI_Iscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		 MPI_Request *request)
{
	return wm_icoll(__func__, scan(sendbuf, wm_block(recvbuf, count, datatype), op), comm, request);
}
MPI_DONE(Iscan_c);

int PMPI_Scan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		     MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, scan(sendbuf, wm_block(recvbuf, count, datatype), op), comm, info, request);
}
MPI_DONE(Scan_init_c);

/* MPI_Iexscan */

static int exscan_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_scan_check(comm, call->op, call->input, call->one, false);
}

static void exscan_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_exscan(c, call->op, call->input, call->one);
}

static struct wm_call exscan(const void *input, struct wm_block result, MPI_Op op)
{
	return (struct wm_call){ .check = exscan_check, .run = exscan_run, .op = wm_op(op), .input = input, .one = result };
}

int PMPI_Iexscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		   MPI_Request *request)
{
	return wm_icoll(__func__, exscan(sendbuf, wm_block(recvbuf, count, datatype), op), comm, request);
}
MPI_DONE(Iexscan_c);

int PMPI_Exscan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		       MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, exscan(sendbuf, wm_block(recvbuf, count, datatype), op), comm, info, request);
}
MPI_DONE(Exscan_init_c);

/* MPI_Ireduce_scatter */

static int reduce_scatter_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_reduce_scatter_check(comm, call->op, call->input, &call->in);
}

static void reduce_scatter_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_reduce_scatter(c, call->op, call->input, &call->in);
}

static struct wm_call reduce_scatter(const void *input, struct wm_blocks parts, MPI_Op op)
{
	return (struct wm_call){
		.check = reduce_scatter_check, .run = reduce_scatter_run, .op = wm_op(op), .input = input, .in = parts
	};
}

int PMPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
			 MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, reduce_scatter(sendbuf, wm_blocks_v(recvbuf, recvcounts, NULL, datatype), op), comm, request);
}
MPI_DONE(Ireduce_scatter);

int PMPI_Reduce_scatter_init(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
			     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, reduce_scatter(sendbuf, wm_blocks_v(recvbuf, recvcounts, NULL, datatype), op), comm, info,
			     request);
}
MPI_DONE(Reduce_scatter_init);

int PMPI_Ireduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
			   MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, reduce_scatter(sendbuf, wm_blocks_v_c(recvbuf, recvcounts, NULL, datatype), op), comm, request);
}
MPI_DONE(Ireduce_scatter_c);

int PMPI_Reduce_scatter_init_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
			       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, reduce_scatter(sendbuf, wm_blocks_v_c(recvbuf, recvcounts, NULL, datatype), op), comm, info,
			     request);
}
MPI_DONE(Reduce_scatter_init_c);

int PMPI_Ireduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
				 MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, reduce_scatter(sendbuf, wm_blocks(recvbuf, recvcount, datatype), op), comm, request);
}
MPI_DONE(Ireduce_scatter_block_c);

int PMPI_Reduce_scatter_block_init_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
				     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, reduce_scatter(sendbuf, wm_blocks(recvbuf, recvcount, datatype), op), comm, info, request);
}
MPI_DONE(Reduce_scatter_block_init_c);
