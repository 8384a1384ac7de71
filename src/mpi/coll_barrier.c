/* coll_barrier.c - MPI_Barrier. */
#include "coll.h"

/* After step k everybody has heard, directly or not, of the 2^k ranks before it. */
static void dissemination(struct wm_coll *c)
{
	const int rank = c->comm->rank, size = c->comm->size;
	wm_token mine = 0, theirs;

	for (int away = 1; away < size; away *= 2)
		wm_coll_exchange(c, (rank + away) % size, wm_token_block(&mine), (rank - away + size) % size, wm_token_block(&theirs));
}

void wm_barrier(struct wm_coll *c)
{
	if (c->comm->inter)
		wm_inter_barrier(c);
	else if (wm_crowded(c->comm))
		wm_crowd_barrier(c);
	else
		dissemination(c);
}

int PMPI_Barrier(MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;

	if (!m)
		return wm_coll_wrong(NULL, __func__, MPI_ERR_COMM);
	c = wm_coll_begin(m);
	wm_barrier(&c);
	return wm_coll_end(&c, __func__);
}
MPI_DONE(Barrier);
