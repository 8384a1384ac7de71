/* coll_halves.h - see coll_halves.c. */
#ifndef WM_COLL_HALVES_H
#define WM_COLL_HALVES_H

#include "coll.h"

struct wm_halves {
	int members, extra;     /* places; pairs that fold into one */
	int place;              /* mine, or -1 */
};

static inline int wm_place_rank(const struct wm_halves *h, int place)
{
	return place < h->extra ? 2 * place + 1 : place + h->extra;
}

/* acc holds a member's own, then what its place begins with. Both may change their memory; got's is only room. */
struct wm_halves wm_fold(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block *acc, struct wm_block *got);
void wm_unfold(struct wm_coll *c, const struct wm_halves *h, struct wm_block b);        /* the result to those without a place */

/* What is left of a block for a place after the steps of all bits below @bits. */
struct wm_block wm_half(struct wm_block b, int place, int bits);

/* After this wm_half(*acc, place, members) is reduced. */
void wm_halves_reduce(struct wm_coll *c, const struct wm_halves *h, struct MPI_ABI_Op *op, struct wm_block *acc,
		      struct wm_block *got);

#endif
