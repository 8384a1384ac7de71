/* instead.h - put before a test of blocking collectives: it runs with nonblocking ones that are waited for at once, or, with
 * PERSISTENT, with ones that are made, started, waited for and freed.
 */
#ifndef INSTEAD_H
#define INSTEAD_H

#include <mpi.h>

static _Thread_local MPI_Request instead_request;

static inline int instead_wait(int err)
{
#ifdef PERSISTENT
	int freed;

	if (!err)
		err = MPI_Start(&instead_request);
	else
		return err;
	if (!err)
		err = MPI_Wait(&instead_request, MPI_STATUS_IGNORE);
	freed = MPI_Request_free(&instead_request);
	return err ? err : freed;
#else
	return err ? err : MPI_Wait(&instead_request, MPI_STATUS_IGNORE);
#endif
}

#ifdef PERSISTENT
#define INSTEAD(immediate, persistent, ...) instead_wait(persistent(__VA_ARGS__, MPI_INFO_NULL, &instead_request))
#else
#define INSTEAD(immediate, persistent, ...) instead_wait(immediate(__VA_ARGS__, &instead_request))
#endif

#define MPI_Barrier(...) INSTEAD(MPI_Ibarrier, MPI_Barrier_init, __VA_ARGS__)
#define MPI_Bcast(...) INSTEAD(MPI_Ibcast, MPI_Bcast_init, __VA_ARGS__)
#define MPI_Gather(...) INSTEAD(MPI_Igather, MPI_Gather_init, __VA_ARGS__)
#define MPI_Gatherv(...) INSTEAD(MPI_Igatherv, MPI_Gatherv_init, __VA_ARGS__)
#define MPI_Gatherv_c(...) INSTEAD(MPI_Igatherv_c, MPI_Gatherv_init_c, __VA_ARGS__)
#define MPI_Scatter(...) INSTEAD(MPI_Iscatter, MPI_Scatter_init, __VA_ARGS__)
#define MPI_Scatterv(...) INSTEAD(MPI_Iscatterv, MPI_Scatterv_init, __VA_ARGS__)
#define MPI_Scatterv_c(...) INSTEAD(MPI_Iscatterv_c, MPI_Scatterv_init_c, __VA_ARGS__)
#define MPI_Allgather(...) INSTEAD(MPI_Iallgather, MPI_Allgather_init, __VA_ARGS__)
#define MPI_Allgatherv(...) INSTEAD(MPI_Iallgatherv, MPI_Allgatherv_init, __VA_ARGS__)
#define MPI_Allgatherv_c(...) INSTEAD(MPI_Iallgatherv_c, MPI_Allgatherv_init_c, __VA_ARGS__)
#define MPI_Alltoall(...) INSTEAD(MPI_Ialltoall, MPI_Alltoall_init, __VA_ARGS__)
#define MPI_Alltoallv(...) INSTEAD(MPI_Ialltoallv, MPI_Alltoallv_init, __VA_ARGS__)
#define MPI_Alltoallv_c(...) INSTEAD(MPI_Ialltoallv_c, MPI_Alltoallv_init_c, __VA_ARGS__)
#define MPI_Alltoallw(...) INSTEAD(MPI_Ialltoallw, MPI_Alltoallw_init, __VA_ARGS__)
#define MPI_Alltoallw_c(...) INSTEAD(MPI_Ialltoallw_c, MPI_Alltoallw_init_c, __VA_ARGS__)
#define MPI_Reduce(...) INSTEAD(MPI_Ireduce, MPI_Reduce_init, __VA_ARGS__)
#define MPI_Allreduce(...) INSTEAD(MPI_Iallreduce, MPI_Allreduce_init, __VA_ARGS__)
#define MPI_Scan(...) INSTEAD(MPI_Iscan, MPI_Scan_init, __VA_ARGS__)
#define MPI_Exscan(...) INSTEAD(MPI_Iexscan, MPI_Exscan_init, __VA_ARGS__)
#define MPI_Reduce_scatter(...) INSTEAD(MPI_Ireduce_scatter, MPI_Reduce_scatter_init, __VA_ARGS__)
#define MPI_Reduce_scatter_c(...) INSTEAD(MPI_Ireduce_scatter_c, MPI_Reduce_scatter_init_c, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...) INSTEAD(MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, __VA_ARGS__)
#define MPI_Neighbor_allgather(...) INSTEAD(MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init, __VA_ARGS__)
#define MPI_Neighbor_allgatherv(...) INSTEAD(MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init, __VA_ARGS__)
#define MPI_Neighbor_allgatherv_c(...) INSTEAD(MPI_Ineighbor_allgatherv_c, MPI_Neighbor_allgatherv_init_c, __VA_ARGS__)
#define MPI_Neighbor_alltoall(...) INSTEAD(MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init, __VA_ARGS__)
#define MPI_Neighbor_alltoallv(...) INSTEAD(MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init, __VA_ARGS__)
#define MPI_Neighbor_alltoallv_c(...) INSTEAD(MPI_Ineighbor_alltoallv_c, MPI_Neighbor_alltoallv_init_c, __VA_ARGS__)
#define MPI_Neighbor_alltoallw(...) INSTEAD(MPI_Ineighbor_alltoallw, MPI_Neighbor_alltoallw_init, __VA_ARGS__)
#define MPI_Neighbor_alltoallw_c(...) INSTEAD(MPI_Ineighbor_alltoallw_c, MPI_Neighbor_alltoallw_init_c, __VA_ARGS__)

#endif
