/* comm.h - what the files that make communicators know of each other.
 *
 * Members that agree on a new communicator use the collectives of the old one. Where not all of its members take part
 * (MPI_Comm_create_group), or where two groups do (intercommunicators), they send each other messages on the old one's
 * talk port, under tags above every tag of the program's.
 */
#ifndef WM_COMM_H
#define WM_COMM_H

#include "inner.h"

enum wm_tag { WM_TAG_GROUP = 1, WM_TAG_INTER, WM_TAG_SWAP };

static inline uint64_t wm_tag(enum wm_tag what, int tag)
{
	return (uint64_t)what << 32 | (uint32_t)tag;
}

/* Contexts made by both sides, of which each takes the same. */
static inline const weft_ctx *wm_ctx_either(const weft_ctx mine[2], const weft_ctx theirs[2])
{
	return mine[0] < theirs[0] ? mine : theirs;
}

static inline void wm_ctx_fill(weft_ctx ret_ctx[2])
{
	ret_ctx[0] = weft_ctx_new();
	ret_ctx[1] = weft_ctx_new();
}

/* Sends @len bytes to @peer on @port and receives @cap from it, which does the same. weft's answers. */
int wm_swap(struct weft_port *port, weft_id peer, uint64_t tag, const void *mine, size_t len, void *ret_theirs, size_t cap);

/* A copy of @parent in contexts that every member works out alone: those of its @number'th such copy. weft's answers. */
int wm_comm_open_copy(struct MPI_ABI_Comm *parent, uint64_t number, struct MPI_ABI_Comm **ret_comm);

/* An intercommunicator and, inside it, its local group's own, with @ctx's second pair. weft's answers. */
int wm_intercomm_open(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote,
		      const weft_ctx ctx[4], struct MPI_ABI_Comm **ret_comm);

/* The members with the same color, by key and old rank; NULL: none, or the other group has none of the color. The error was raised. */
int wm_split(struct MPI_ABI_Comm *c, const char *function, int color, int key, struct MPI_ABI_Comm **ret_comm);

/* For the one that has the same members as @c, an intercommunicator: its four contexts. 0 or an error class. */
int wm_intercomm_agree(struct MPI_ABI_Comm *c, weft_ctx ret_ctx[4]);

#endif
