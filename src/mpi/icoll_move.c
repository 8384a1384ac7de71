/* icoll_move.c - nonblocking and persistent collectives that move elements, and the barrier. See icoll.h. */
#include "icoll.h"

/* MPI_Ibarrier */

static int barrier_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	(void)comm;
	(void)call;
	return 0;
}

static void barrier_run(struct wm_coll *c, const struct wm_call *call)
{
	(void)call;
	wm_barrier(c);
}

static struct wm_call barrier(void)
{
	return (struct wm_call){ .check = barrier_check, .run = barrier_run };
}

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, barrier(), comm, request);
}
MPI_DONE(Ibarrier);

int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, barrier(), comm, info, request);
}
MPI_DONE(Barrier_init);

/* MPI_Ibcast */

static int bcast_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_bcast_check(comm, call->root, call->one);
}

static void bcast_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_bcast(c, call->root, call->one);
}

static struct wm_call bcast(struct wm_block b, int root)
{
	return (struct wm_call){ .check = bcast_check, .run = bcast_run, .root = root, .one = b };
}

int PMPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, bcast(wm_block(buffer, count, datatype), root), comm, request);
}
MPI_DONE(Ibcast_c);

int PMPI_Bcast_init_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
		      MPI_Request *request)
{
	return wm_icoll_init(__func__, bcast(wm_block(buffer, count, datatype), root), comm, info, request);
}
MPI_DONE(Bcast_init_c);

/* MPI_Igather */

static int gather_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_gather_check(comm, call->root, call->one, &call->in);
}

static void gather_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_gather(c, call->root, call->one, &call->in);
}

static struct wm_call gather(struct wm_block mine, struct wm_blocks all, int root)
{
	return (struct wm_call){ .check = gather_check, .run = gather_run, .root = root, .one = mine, .in = all };
}

int PMPI_Igather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype), root),
			comm, request);
}
MPI_DONE(Igather_c);

int PMPI_Gather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype), root), comm,
			     info, request);
}
MPI_DONE(Gather_init_c);

int PMPI_Igatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
		  const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype), root),
			comm, request);
}
MPI_DONE(Igatherv);

int PMPI_Gatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
		      const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype), root),
			     comm, info, request);
}
MPI_DONE(Gatherv_init);

int PMPI_Igatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
		    const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype), root),
			comm, request);
}
MPI_DONE(Igatherv_c);

int PMPI_Gatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
			MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     gather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype), root),
			     comm, info, request);
}
MPI_DONE(Gatherv_init_c);

/* MPI_Iscatter */

static int scatter_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_scatter_check(comm, call->root, &call->out, call->one);
}

static void scatter_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_scatter(c, call->root, &call->out, call->one);
}

static struct wm_call scatter(struct wm_blocks all, struct wm_block mine, int root)
{
	return (struct wm_call){ .check = scatter_check, .run = scatter_run, .root = root, .one = mine, .out = all };
}

int PMPI_Iscatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, scatter(wm_blocks(sendbuf, sendcount, sendtype), wm_block(recvbuf, recvcount, recvtype), root),
			comm, request);
}
MPI_DONE(Iscatter_c);

int PMPI_Scatter_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     scatter(wm_blocks(sendbuf, sendcount, sendtype), wm_block(recvbuf, recvcount, recvtype), root), comm,
			     info, request);
}
MPI_DONE(Scatter_init_c);

int PMPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
		   int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			scatter(wm_blocks_v(sendbuf, sendcounts, displs, sendtype), wm_block(recvbuf, recvcount, recvtype), root),
			comm, request);
}
MPI_DONE(Iscatterv);

int PMPI_Scatterv_init(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
		       int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     scatter(wm_blocks_v(sendbuf, sendcounts, displs, sendtype), wm_block(recvbuf, recvcount, recvtype), root),
			     comm, info, request);
}
MPI_DONE(Scatterv_init);

int PMPI_Iscatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
		     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			scatter(wm_blocks_v_c(sendbuf, sendcounts, displs, sendtype), wm_block(recvbuf, recvcount, recvtype), root),
			comm, request);
}
MPI_DONE(Iscatterv_c);

int PMPI_Scatterv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
			 void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
			 MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     scatter(wm_blocks_v_c(sendbuf, sendcounts, displs, sendtype), wm_block(recvbuf, recvcount, recvtype), root),
			     comm, info, request);
}
MPI_DONE(Scatterv_init_c);

/* MPI_Iallgather */

static int allgather_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_allgather_check(comm, call->one, &call->in);
}

static void allgather_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_allgather(c, call->one, &call->in);
}

static struct wm_call allgather(struct wm_block mine, struct wm_blocks all)
{
	return (struct wm_call){ .check = allgather_check, .run = allgather_run, .one = mine, .in = all };
}

int PMPI_Iallgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		      MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)), comm,
			request);
}
MPI_DONE(Iallgather_c);

int PMPI_Allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)),
			     comm, info, request);
}
MPI_DONE(Allgather_init_c);

int PMPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
		     const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype)), comm,
			request);
}
MPI_DONE(Iallgatherv);

int PMPI_Allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
			 const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype)),
			     comm, info, request);
}
MPI_DONE(Allgatherv_init);

int PMPI_Iallgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
		       const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype)),
			comm, request);
}
MPI_DONE(Iallgatherv_c);

int PMPI_Allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
			   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
			   MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     allgather(wm_block(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype)),
			     comm, info, request);
}
MPI_DONE(Allgatherv_init_c);

/* MPI_Ialltoall */

static int alltoall_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_alltoall_check(comm, &call->out, &call->in);
}

static void alltoall_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_alltoall(c, &call->out, &call->in);
}

static struct wm_call alltoall(struct wm_blocks out, struct wm_blocks in)
{
	return (struct wm_call){ .check = alltoall_check, .run = alltoall_run, .out = out, .in = in };
}

int PMPI_Ialltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, alltoall(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)), comm,
			request);
}
MPI_DONE(Ialltoall_c);

int PMPI_Alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			 MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, alltoall(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)),
			     comm, info, request);
}
MPI_DONE(Alltoall_init_c);

int PMPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
		    const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			alltoall(wm_blocks_v(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v(recvbuf, recvcounts, rdispls, recvtype)),
			comm, request);
}
MPI_DONE(Ialltoallv);

int PMPI_Alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
			const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
			MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     alltoall(wm_blocks_v(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v(recvbuf, recvcounts, rdispls, recvtype)),
			     comm, info, request);
}
MPI_DONE(Alltoallv_init);

int PMPI_Ialltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
		      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
		      MPI_Request *request)
{
	return wm_icoll(__func__,
			alltoall(wm_blocks_v_c(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v_c(recvbuf, recvcounts, rdispls, recvtype)),
			comm, request);
}
MPI_DONE(Ialltoallv_c);

int PMPI_Alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
			  void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
			  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     alltoall(wm_blocks_v_c(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v_c(recvbuf, recvcounts, rdispls, recvtype)),
			     comm, info, request);
}
MPI_DONE(Alltoallv_init_c);

int PMPI_Ialltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
		    const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
		    MPI_Request *request)
{
	return wm_icoll(__func__,
			alltoall(wm_blocks_w(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w(recvbuf, recvcounts, rdispls, recvtypes)),
			comm, request);
}
MPI_DONE(Ialltoallw);

int PMPI_Alltoallw_init(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
			void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
			MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     alltoall(wm_blocks_w(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w(recvbuf, recvcounts, rdispls, recvtypes)),
			     comm, info, request);
}
MPI_DONE(Alltoallw_init);

int PMPI_Ialltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
		      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
		      MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			alltoall(wm_blocks_w_c(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w_c(recvbuf, recvcounts, rdispls, recvtypes)),
			comm, request);
}
MPI_DONE(Ialltoallw_c);

int PMPI_Alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			  const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			  const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     alltoall(wm_blocks_w_c(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w_c(recvbuf, recvcounts, rdispls, recvtypes)),
			     comm, info, request);
}
MPI_DONE(Alltoallw_init_c);
