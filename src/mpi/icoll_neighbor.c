/* icoll_neighbor.c - nonblocking and persistent collectives among the neighbours of a topology. See icoll.h and neighbor.c. */
#include "icoll.h"

static int to_all_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_neighbors_check(comm, &call->out, false, &call->in);
}

static void to_all_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_neighbors(c, &call->out, false, &call->in);
}

/* One block to all of them. */
static struct wm_call to_all(struct wm_blocks out, struct wm_blocks in)
{
	return (struct wm_call){ .check = to_all_check, .run = to_all_run, .out = out, .in = in, .count = wm_neighbors_count };
}

static int to_each_check(struct MPI_ABI_Comm *comm, const struct wm_call *call)
{
	return wm_neighbors_check(comm, &call->out, true, &call->in);
}

static void to_each_run(struct wm_coll *c, const struct wm_call *call)
{
	wm_neighbors(c, &call->out, true, &call->in);
}

/* A block to each of them. */
static struct wm_call to_each(struct wm_blocks out, struct wm_blocks in)
{
	return (struct wm_call){ .check = to_each_check, .run = to_each_run, .out = out, .in = in, .count = wm_neighbors_count };
}

/* With counts as int, and places in bytes. */
static struct wm_blocks blocks_w(const void *buf, const int *counts, const MPI_Aint *displs, const MPI_Datatype *types)
{
	return (struct wm_blocks){ .buf = (void *)(uintptr_t)buf, .types = types, .counts = counts, .displs_c = displs };
}

int PMPI_Ineighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)), comm,
			request);
}
MPI_DONE(Ineighbor_allgather_c);

int PMPI_Neighbor_allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_allgather_init_c);

int PMPI_Ineighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
			      const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype)), comm,
			request);
}
MPI_DONE(Ineighbor_allgatherv);

int PMPI_Neighbor_allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
				  const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks_v(recvbuf, recvcounts, displs, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_allgatherv_init);

int PMPI_Ineighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
				MPI_Request *request)
{
	return wm_icoll(__func__,
			to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype)), comm,
			request);
}
MPI_DONE(Ineighbor_allgatherv_c);

int PMPI_Neighbor_allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
				    MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_all(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks_v_c(recvbuf, recvcounts, displs, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_allgatherv_init_c);

int PMPI_Ineighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			      MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__, to_each(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)), comm,
			request);
}
MPI_DONE(Ineighbor_alltoall_c);

int PMPI_Neighbor_alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				  MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__, to_each(wm_blocks(sendbuf, sendcount, sendtype), wm_blocks(recvbuf, recvcount, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_alltoall_init_c);

int PMPI_Ineighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
			     const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
			     MPI_Request *request)
{
	return wm_icoll(__func__,
			to_each(wm_blocks_v(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v(recvbuf, recvcounts, rdispls, recvtype)),
			comm, request);
}
MPI_DONE(Ineighbor_alltoallv);

int PMPI_Neighbor_alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
				 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
				 MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_each(wm_blocks_v(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v(recvbuf, recvcounts, rdispls, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_alltoallv_init);

int PMPI_Ineighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
			       void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
			       MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			to_each(wm_blocks_v_c(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v_c(recvbuf, recvcounts, rdispls, recvtype)),
			comm, request);
}
MPI_DONE(Ineighbor_alltoallv_c);

int PMPI_Neighbor_alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
				   MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
				   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_each(wm_blocks_v_c(sendbuf, sendcounts, sdispls, sendtype), wm_blocks_v_c(recvbuf, recvcounts, rdispls, recvtype)),
			     comm, info, request);
}
MPI_DONE(Neighbor_alltoallv_init_c);

int PMPI_Ineighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
			     void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
			     MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			to_each(blocks_w(sendbuf, sendcounts, sdispls, sendtypes), blocks_w(recvbuf, recvcounts, rdispls, recvtypes)),
			comm, request);
}
MPI_DONE(Ineighbor_alltoallw);

int PMPI_Neighbor_alltoallw_init(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
				 const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
				 const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_each(blocks_w(sendbuf, sendcounts, sdispls, sendtypes), blocks_w(recvbuf, recvcounts, rdispls, recvtypes)),
			     comm, info, request);
}
MPI_DONE(Neighbor_alltoallw_init);

int PMPI_Ineighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			       const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
			       const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request)
{
	return wm_icoll(__func__,
			to_each(wm_blocks_w_c(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w_c(recvbuf, recvcounts, rdispls, recvtypes)),
			comm, request);
}
MPI_DONE(Ineighbor_alltoallw_c);

int PMPI_Neighbor_alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
				   const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
				   const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
				   MPI_Request *request)
{
	return wm_icoll_init(__func__,
			     to_each(wm_blocks_w_c(sendbuf, sendcounts, sdispls, sendtypes), wm_blocks_w_c(recvbuf, recvcounts, rdispls, recvtypes)),
			     comm, info, request);
}
MPI_DONE(Neighbor_alltoallw_init_c);
