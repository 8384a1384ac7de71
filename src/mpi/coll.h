/* coll.h - what collectives are written with: blocks of elements, and messages of one collective.
 *
 * A collective has a number, its round, that every member of the communicator counts the same; it is the tag of its
 * messages on the communicator's port for collectives. Steps need no number: messages from one member to another with one tag arrive in the order in
 * which they were sent, and every algorithm receives them in that order. Nothing else is kept between calls: a
 * collective is its struct wm_coll and what is on the stack of the thread that runs it.
 *
 * A step that fails does not end an algorithm, because others count on the messages that are still to come. The first
 * failure is kept in err; from then on messages go out empty, so that whoever would have used what they carry fails
 * too, instead of computing with it or waiting for it. On a port that has lost a member every step fails at once.
 *
 * No algorithm relies on a send being buffered: where two members send to each other, or many in a ring, each has
 * posted its receive first. Memory is taken before the first message; a member that gets none says so by wm_coll_fail and
 * goes through the steps like the others.
 */
#ifndef WM_COLL_H
#define WM_COLL_H

#include <errno.h>

#include "inner.h"

struct wm_coll {                        /* one collective under way */
	struct MPI_ABI_Comm *comm;
	uint64_t tag;                   /* its round */
	uint64_t local_tag;             /* of an intercommunicator's: the round of what it does in the local group */
	struct weft_port *port;         /* for its messages: comm->coll, or comm->later (icoll.h) */
	int err;                        /* the first failure, as weft answers; 0: none */
};

struct wm_block {                       /* elements at an address */
	void *buf;
	MPI_Count count;
	struct MPI_ABI_Datatype *type;
};

struct wm_blocks {                      /* a buffer with a block for each rank */
	void *buf;
	struct MPI_ABI_Datatype *type;
	MPI_Count count;                /* of each block, one after the other; or */
	const int *counts, *displs;     /* of each, and where it begins in extents of the type; or */
	const MPI_Count *counts_c;
	const MPI_Aint *displs_c;
	const MPI_Datatype *types;      /* with those: of each, and where it begins is in bytes */
	bool same;                      /* each block is the first one */
	bool vary;                      /* blocks need not be equal; every member says so, also one that has no such buffer */
};

struct wm_pending {                     /* a message posted; lives until it was waited for */
	struct weft_req *req;           /* NULL: is over */
	size_t want;                    /* received: how long it must be; SIZE_MAX: sent */
	struct wm_layout room;
};

#define WM_WINDOW 32    /* messages that one member has posted at most */

#define wm_byte (&wm_types[(uintptr_t)MPI_BYTE & 0xff])

static inline struct wm_coll wm_coll_begin(struct MPI_ABI_Comm *comm)
{
	struct wm_coll c = { .comm = comm, .port = comm->coll };

	/* relaxed: members meet by messages; the number only has to be another one each time. */
	c.tag = atomic_fetch_add_explicit(&comm->round, 1, memory_order_relaxed);
	if (WM_UNLIKELY(comm->inter))
		c.local_tag = atomic_fetch_add_explicit(&comm->local->round, 1, memory_order_relaxed);
	return c;
}

static inline struct wm_block wm_bytes(const void *data, size_t len)
{
	return (struct wm_block){ (void *)(uintptr_t)data, (MPI_Count)len, wm_byte };
}

/* What is sent where only the coming of a message matters: not empty, so that an empty one tells of a failure. */
typedef uint64_t wm_token;

static inline struct wm_block wm_token_block(wm_token *token)
{
	return wm_bytes(token, sizeof(*token));
}

static inline struct wm_block wm_block(const void *buf, MPI_Count count, MPI_Datatype type)
{
	return (struct wm_block){ (void *)(uintptr_t)buf, count, wm_type(type) };
}

static inline size_t wm_block_len(struct wm_block b)
{
	return (size_t)(b.count * b.type->size);
}

/* Elements [@from, @from + @count) of a block. */
static inline struct wm_block wm_block_part(struct wm_block b, MPI_Count from, MPI_Count count)
{
	return (struct wm_block){ (char *)b.buf + from * b.type->extent, count, b.type };
}

static inline struct wm_block wm_block_of(const struct wm_blocks *b, int rank)
{
	MPI_Count count, at;

	if (b->counts) {
		count = b->counts[rank];
		at = b->displs[rank];
	} else if (b->counts_c) {
		count = b->counts_c[rank];
		at = b->displs_c[rank];
	} else {
		count = b->count;
		at = b->same ? 0 : count * rank;
	}
	if (b->types)           /* of no elements the type may be none */
		return (struct wm_block){ (char *)b->buf + at, count, count ? wm_type(b->types[rank]) : wm_byte };
	return (struct wm_block){ (char *)b->buf + at * b->type->extent, count, b->type };
}

static inline void wm_coll_fail(struct wm_coll *c, int err)
{
	if (!c->err)
		c->err = err;
}

/* Copies a block into another of as many bytes; both may have holes. Nothing after a failure. */
void wm_coll_copy(struct wm_coll *c, struct wm_block to, struct wm_block from);

/* Memory for @count elements of a type; answers the address of the first one, *@ret_memory is what to free. A failure
 * if there is none: the address may then only be used in steps of this collective. */
void *wm_coll_scratch(struct wm_coll *c, MPI_Count count, const struct MPI_ABI_Datatype *type, void **ret_memory);

/* To or from rank @peer. After a failure an empty message is sent, and what comes is dropped. */
void wm_coll_send(struct wm_coll *c, int peer, struct wm_block b);
void wm_coll_recv(struct wm_coll *c, int peer, struct wm_block b);
void wm_coll_send_post(struct wm_coll *c, struct wm_pending *p, int peer, struct wm_block b);
void wm_coll_recv_post(struct wm_coll *c, struct wm_pending *p, int peer, struct wm_block b);
void wm_coll_wait(struct wm_coll *c, struct wm_pending *p);
void wm_coll_wait_all(struct wm_coll *c, struct wm_pending *p, int n);

/* Sends one and receives another, neither waiting for the other. */
void wm_coll_exchange(struct wm_coll *c, int to, struct wm_block out, int from, struct wm_block in);

/* Buffers instead of memory, which change hands without a copy (weft/buf.h). */

/* One with a copy of a block in it; NULL: there is none, so the block itself is to be sent. */
struct weft_buf *wm_coll_buf(struct wm_coll *c, struct wm_block b);
/* To @peer: the buffer, if there is one, else the block. Given, it is the receiver's; lent, it stays mine and others may have it too. */
void wm_coll_give(struct wm_coll *c, int peer, struct weft_buf *buf WEFT_TAKES, struct wm_block b);
void wm_coll_lend(struct wm_coll *c, int peer, struct weft_buf *buf, struct wm_block b);
/* From @peer what is @len long, however it was sent; mine then. NULL after a failure. */
struct weft_buf *wm_coll_take(struct wm_coll *c, int peer, size_t len);

/* acc = acc op got if what was got is of higher ranks, else got op acc. May make each the other's memory. */
void wm_coll_combine(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block *acc, struct wm_block *got, bool higher);

/* The end: MPI_SUCCESS, or raises what failed as an error of the communicator. */
int wm_coll_end(struct wm_coll *c, const char *function);
int wm_coll_class(struct wm_coll *c);   /* the same, raising nothing: the error class */

/* Arguments: 0 or the class of what is wrong; and the error for that class. */
int wm_check_root(const struct MPI_ABI_Comm *comm, int root);
int wm_check_blocks(const struct wm_blocks *b, int n);         /* of @n ranks */
int wm_check_reduce(const struct MPI_ABI_Op *op, const void *in, struct wm_block out);
int wm_coll_wrong(struct MPI_ABI_Comm *comm, const char *function, int class) __attribute__((cold));

/* All arguments of a collective, as those of its function below: likewise. Hidden: blocking calls
 * go through them, and not through a table. */
#pragma GCC visibility push(hidden)
int wm_bcast_check(const struct MPI_ABI_Comm *comm, int root, struct wm_block b);
int wm_gather_check(const struct MPI_ABI_Comm *comm, int root, struct wm_block mine, const struct wm_blocks *all);
int wm_scatter_check(const struct MPI_ABI_Comm *comm, int root, const struct wm_blocks *all, struct wm_block mine);
int wm_allgather_check(const struct MPI_ABI_Comm *comm, struct wm_block mine, const struct wm_blocks *all);
int wm_alltoall_check(const struct MPI_ABI_Comm *comm, const struct wm_blocks *out, const struct wm_blocks *in);
int wm_reduce_check(const struct MPI_ABI_Comm *comm, int root, const struct MPI_ABI_Op *op, const void *in, struct wm_block out);
int wm_allreduce_check(const struct MPI_ABI_Comm *comm, const struct MPI_ABI_Op *op, const void *in, struct wm_block out);
int wm_scan_check(const struct MPI_ABI_Comm *comm, const struct MPI_ABI_Op *op, const void *in, struct wm_block out, bool with_own);
int wm_reduce_scatter_check(const struct MPI_ABI_Comm *comm, const struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out);
int wm_neighbors_check(struct MPI_ABI_Comm *comm, const struct wm_blocks *send, bool each, const struct wm_blocks *recv);
#pragma GCC visibility pop

/* The collectives. MPI_IN_PLACE as the address of a block or of what is reduced means what it means to MPI. */
void wm_barrier(struct wm_coll *c);
void wm_bcast(struct wm_coll *c, int root, struct wm_block b);
void wm_gather(struct wm_coll *c, int root, struct wm_block mine, const struct wm_blocks *all);
void wm_scatter(struct wm_coll *c, int root, const struct wm_blocks *all, struct wm_block mine);
void wm_allgather(struct wm_coll *c, struct wm_block mine, const struct wm_blocks *all);
void wm_alltoall(struct wm_coll *c, const struct wm_blocks *out, const struct wm_blocks *in);
void wm_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
void wm_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
void wm_scan(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
void wm_exscan(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
/* Of @out counts and type are those of what is reduced, one block after the other; its address is where mine goes. */
void wm_reduce_scatter(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out);

/* Among the neighbours of a topology (neighbor.c): a block to each of them, or the first one to all; and how many there are. */
void wm_neighbors(struct wm_coll *c, const struct wm_blocks *send, bool each, const struct wm_blocks *recv);
void wm_neighbors_count(struct MPI_ABI_Comm *comm, int *ret_in, int *ret_out);

/* Where the members are on one host and more than its cores (coll_crowd.c). */
bool wm_crowded(const struct MPI_ABI_Comm *comm);
void wm_crowd_barrier(struct wm_coll *c);
void wm_crowd_bcast(struct wm_coll *c, int root, struct wm_block b);
void wm_crowd_allgather(struct wm_coll *c, const struct wm_blocks *all);        /* my own block is there */
void wm_crowd_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out);
void wm_crowd_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out);
void wm_crowd_scan(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out, bool with_own);
void wm_crowd_alltoall(struct wm_coll *c, const struct wm_blocks *out, const struct wm_blocks *in);

/* coll_even.c: on which core a member runs; which of @n others (-1: none) is asked to go where; it does, if it may. */
wm_token wm_even_here(void);
int wm_even_look(const wm_token *here, int n, wm_token *ret_where);
void wm_even_go(wm_token where);

/* Between the groups of an intercommunicator (coll_inter.c); gather, scatter and alltoall need nothing else there. */
void wm_inter_barrier(struct wm_coll *c);
void wm_inter_bcast(struct wm_coll *c, int root, struct wm_block b);
void wm_inter_allgather(struct wm_coll *c, struct wm_block mine, const struct wm_blocks *all);
void wm_inter_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
void wm_inter_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out);
void wm_inter_reduce_scatter(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, const struct wm_blocks *out);

#endif
