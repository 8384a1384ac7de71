/* coll_halves.c - reducing between pairs at growing distance.
 *
 * Takes a power of two of members: of the first ones, as many pairs as are needed fold into one each. Those left have a place.
 * In the step of bit b the places p and p ^ b meet; each stands for a run of neighbouring ranks, so that operations
 * need not commute. By halves: each keeps the half of its elements that its bit says, of what both have, until place p has
 * a range of its own, all members reduced.
 *
 *   ranks   0 1 2 3 4 5 6        extra = 3 pairs fold: 0 into 1, 2 into 3, 4 into 5
 *   places    0   1   2 3        members = 4
 */
#include "coll_halves.h"

struct wm_halves wm_fold(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block *acc, struct wm_block *got)
{
	const int rank = c->comm->rank, size = c->comm->size;
	struct wm_halves h = { .members = 1 };

	while (h.members * 2 <= size)
		h.members *= 2;
	h.extra = size - h.members;
	if (rank >= 2 * h.extra) {
		h.place = rank - h.extra;
	} else if (rank % 2 == 0) {
		h.place = -1;
		wm_coll_send(c, rank + 1, *acc);
	} else {
		h.place = rank / 2;
		wm_coll_recv(c, rank - 1, *got);
		wm_coll_combine(c, op, acc, got, false);
	}
	return h;
}

void wm_unfold(struct wm_coll *c, const struct wm_halves *h, struct wm_block b)
{
	if (h->place < 0)
		wm_coll_recv(c, c->comm->rank + 1, b);
	else if (h->place < h->extra)
		wm_coll_send(c, c->comm->rank - 1, b);
}

struct wm_block wm_half(struct wm_block b, int place, int bits)
{
	MPI_Count from = 0, count = b.count, low;

	for (int bit = 1; bit < bits; bit *= 2) {
		low = count / 2;
		if (place & bit)
			from += low;
		count = place & bit ? count - low : low;
	}
	return wm_block_part(b, from, count);
}

void wm_halves_reduce(struct wm_coll *c, const struct wm_halves *h, struct MPI_ABI_Op *op, struct wm_block *acc,
		      struct wm_block *got)
{
	struct wm_block a, g;

	for (int bit = 1; bit < h->members && h->place >= 0; bit *= 2) {
		int other = wm_place_rank(h, h->place ^ bit);

		a = wm_half(*acc, h->place, 2 * bit);
		g = wm_half(*got, h->place, 2 * bit);
		wm_coll_exchange(c, other, wm_half(*acc, h->place ^ bit, 2 * bit), other, g);
		wm_coll_combine(c, op, &a, &g, !(h->place & bit));
		/* What was combined in the other's memory stays there: from now on only that matters. */
		if (a.buf != wm_half(*acc, h->place, 2 * bit).buf) {
			g = *acc;
			*acc = *got;
			*got = g;
		}
	}
}
