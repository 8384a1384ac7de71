/* mini_mpi.h - a slice of MPI whose ranks are threads of one process, on weft's public calls alone.
 *
 * A communicator is two ports of each member: one for point-to-point messages, one for
 * collectives, each in a context of its own, so that neither ever sees the other's traffic. A
 * port's members are the ranks' thread ids; weft_at(rank) addresses one and status.index names
 * one. All of it is an ordinary user of weft, and was written to find out where that hurts.
 *
 * Calls answer 0 or a negative errno (-EMSGSIZE where MPI says "truncated"). A communicator and
 * its requests belong to the rank that made them: each rank has its own handles.
 */
#ifndef MINI_MPI_H
#define MINI_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/weft.h>

enum { MM_ANY_SOURCE = -1, MM_ANY_TAG = -1, MM_PROC_NULL = -2, MM_UNDEFINED = -3 };

enum mm_type { MM_BYTE, MM_INT, MM_LONG, MM_DOUBLE };
enum mm_op { MM_SUM, MM_MIN, MM_MAX };

struct mm_comm {
	struct weft_port *talk;         /* point to point */
	struct weft_port *coll;         /* collectives */
	int rank, size;
	uint64_t round;                 /* collectives begun: every member counts the same */
};

struct mm_status {
	int source, tag, error;
	bool cancelled;
	size_t bytes;
};

/* weft ends some operations on the spot and then gives no request: what it said is kept here. */
struct mm_request {
	bool active;                    /* began and was not waited for */
	struct weft_req *req;           /* NULL: over, see done */
	struct weft_status done;
};

struct mm_message {                     /* taken out of matching by mm_mprobe */
	struct weft_msg *msg;
	struct mm_comm *comm;
};

typedef int (*mm_main_fn)(struct mm_comm *world, void *arg);

/* Runs @fn in @ranks threads and waits for all. Answers the first answer that was not 0. */
int mm_run(int ranks, mm_main_fn fn, void *arg);

size_t mm_type_size(enum mm_type type);
int mm_get_count(const struct mm_status *st, enum mm_type type);       /* MM_UNDEFINED: not whole elements */

int mm_send(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm);
int mm_ssend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm);
int mm_recv(void *data, int count, enum mm_type type, int source, int tag, struct mm_comm *comm,
	    struct mm_status *ret_st);
int mm_sendrecv(const void *out, int out_count, int dest, int out_tag, void *in, int in_count, int source,
		int in_tag, enum mm_type type, struct mm_comm *comm, struct mm_status *ret_st);

int mm_isend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm,
	     struct mm_request *ret_req);
int mm_issend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm,
	      struct mm_request *ret_req);
int mm_irecv(void *data, int count, enum mm_type type, int source, int tag, struct mm_comm *comm,
	     struct mm_request *ret_req);

/* Waiting for a request that is not active ends at once, with an empty status. */
int mm_wait(struct mm_request *req, struct mm_status *ret_st);
int mm_test(struct mm_request *req, bool *ret_flag, struct mm_status *ret_st);
int mm_waitall(int n, struct mm_request *reqs, struct mm_status *ret_sts);      /* the first error, if any */
int mm_waitany(int n, struct mm_request *reqs, int *ret_index, struct mm_status *ret_st);
/* How many ended, which and how; MM_UNDEFINED if none was active. */
int mm_waitsome(int n, struct mm_request *reqs, int *ret_count, int *ret_which, struct mm_status *ret_sts);
int mm_cancel(struct mm_request *req);          /* status.cancelled tells whether it did */

int mm_probe(int source, int tag, struct mm_comm *comm, struct mm_status *ret_st);
int mm_iprobe(int source, int tag, struct mm_comm *comm, bool *ret_flag, struct mm_status *ret_st);
int mm_mprobe(int source, int tag, struct mm_comm *comm, struct mm_message *ret_msg,
	      struct mm_status *ret_st);
int mm_improbe(int source, int tag, struct mm_comm *comm, bool *ret_flag, struct mm_message *ret_msg,
	       struct mm_status *ret_st);
int mm_mrecv(void *data, int count, enum mm_type type, struct mm_message *msg, struct mm_status *ret_st);

/* The ports of one communicator, with the members that @opts names, in contexts @ctx[0] and
 * @ctx[1]. What all the other ways to make one come down to. */
int mm_comm_open(struct weft_port_opts *opts, const weft_ctx *ctx, struct mm_comm **ret_comm);

/* Collective: every member calls them, in the same order. */
int mm_comm_dup(struct mm_comm *comm, struct mm_comm **ret_comm);
int mm_comm_split(struct mm_comm *comm, int color, int key,
		  struct mm_comm **ret_comm); /* MM_UNDEFINED: gives NULL */
int mm_comm_free(struct mm_comm *comm);
int mm_barrier(struct mm_comm *comm);
int mm_bcast(void *data, int count, enum mm_type type, int root, struct mm_comm *comm);
int mm_gather(const void *out, int count, enum mm_type type, void *in, int root, struct mm_comm *comm);
int mm_allreduce(const void *out, void *in, int count, enum mm_type type, enum mm_op op,
		 struct mm_comm *comm);

#endif
