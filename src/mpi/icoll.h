/* icoll.h - collectives that are not waited for in their call: nonblocking ones, and persistent ones, started again and again.
 *
 * The algorithms are the blocking ones (coll.h), run by a thread of the layer's own (later.h), or by MPI_Wait or MPI_Waitall if that
 * comes first; their end ends the request. So they go on whatever the program does meanwhile, and so does the function of an
 * operation that the program has made: in that thread.
 * Their messages have a port of their own, comm->later, and their rounds a count: visits of other threads would make the port
 * of blocking collectives slower.
 *
 * Which collective is which follows from the order of calls, as always: the round is taken in the call. A persistent one takes
 * its round when it is made, and its tag is that with the number of the start, so that several may be started in any order.
 * Arguments are checked in the call. The program may free datatypes, operation and communicator at once: references are
 * held until the request goes. Arrays of counts and displacements stay the program's.
 */
#ifndef WM_ICOLL_H
#define WM_ICOLL_H

#include "coll.h"
#include "later.h"
#include "request.h"

struct wm_call {                        /* a collective, and its arguments: those that it has */
	int (*check)(struct MPI_ABI_Comm *comm, const struct wm_call *call);    /* 0 or an error class */
	void (*run)(struct wm_coll *c, const struct wm_call *call);
	int root;
	struct MPI_ABI_Op *op;
	const void *input;              /* what is reduced */
	struct wm_block one;            /* sent, received, or what a reduction comes to */
	struct wm_blocks out, in;
	void (*count)(struct MPI_ABI_Comm *comm, int *ret_in, int *ret_out);    /* blocks of neighbours; NULL: of the ranks */
};

/* Blocks as the functions of MPI name them: equal ones; differing ones; of differing types. */

static inline struct wm_blocks wm_blocks(const void *buf, MPI_Count count, MPI_Datatype type)
{
	return (struct wm_blocks){ .buf = (void *)(uintptr_t)buf, .type = wm_type(type), .count = count };
}

static inline struct wm_blocks wm_blocks_v(const void *buf, const int *counts, const int *displs, MPI_Datatype type)
{
	return (struct wm_blocks){
		.buf = (void *)(uintptr_t)buf, .type = wm_type(type), .vary = true, .counts = counts, .displs = displs
	};
}

static inline struct wm_blocks wm_blocks_v_c(const void *buf, const MPI_Count *counts, const MPI_Aint *displs, MPI_Datatype type)
{
	return (struct wm_blocks){
		.buf = (void *)(uintptr_t)buf, .type = wm_type(type), .vary = true, .counts_c = counts, .displs_c = displs
	};
}

static inline struct wm_blocks wm_blocks_w(const void *buf, const int *counts, const int *displs, const MPI_Datatype *types)
{
	return (struct wm_blocks){
		.buf = (void *)(uintptr_t)buf, .types = types, .vary = true, .counts = counts, .displs = displs
	};
}

static inline struct wm_blocks wm_blocks_w_c(const void *buf, const MPI_Count *counts, const MPI_Aint *displs, const MPI_Datatype *types)
{
	return (struct wm_blocks){
		.buf = (void *)(uintptr_t)buf, .types = types, .vary = true, .counts_c = counts, .displs_c = displs
	};
}

/* What every function is: begun at once, or kept to be started. */
int wm_icoll(const char *function, struct wm_call call, MPI_Comm comm, MPI_Request *request);
int wm_icoll_init(const char *function, struct wm_call call, MPI_Comm comm, MPI_Info info, MPI_Request *request);

#endif
