/* mpix.h - what the files of the extension library have in common: the inside of the MPI layer, through its table. */
#ifndef WX_MPIX_H
#define WX_MPIX_H

#include "private.h"

#include "mpix_weft.h"

#define WX (&wm_inner_1)

/* Opens this thread's part of a communicator of the @size threads @ids. 0 or an error class. */
static inline int wx_open(struct MPI_ABI_Comm *parent, const weft_id *ids, int size, const weft_ctx ctx[2], MPI_Comm *ret_comm)
{
	struct MPI_ABI_Group *group = WX->group_new(ids, size);
	struct MPI_ABI_Comm *made;
	int r;

	if (!group)
		return MPI_ERR_NO_MEM;
	r = WX->class(WX->comm_open(parent, group, NULL, ctx, &made));
	WX->group_put(group);
	if (!r)
		*ret_comm = made;
	return r;
}

static inline int wx_no_comm(const char *function)
{
	return WX->error(NULL, function, MPI_ERR_COMM, "not a communicator");
}

#endif
