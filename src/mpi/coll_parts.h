/* coll_parts.h - what MPI_Reduce_scatter reduces: a part for each rank of the local group, one after the other. */
#ifndef WM_COLL_PARTS_H
#define WM_COLL_PARTS_H

#include "coll.h"

static inline MPI_Count wm_part_count(const struct wm_blocks *parts, int rank)
{
	if (parts->counts)
		return parts->counts[rank];
	return parts->counts_c ? parts->counts_c[rank] : parts->count;
}

/* Elements of the parts of all ranks before @rank. */
static inline MPI_Count wm_parts_before(const struct wm_blocks *parts, int rank)
{
	MPI_Count n = 0;

	if (!parts->vary)
		return parts->count * rank;
	for (int i = 0; i < rank; i++)
		n += wm_part_count(parts, i);
	return n;
}

/* The part of @rank in what lies at @base. */
static inline struct wm_block wm_part(const struct wm_blocks *parts, const void *base, int rank)
{
	const struct wm_block all = { (void *)(uintptr_t)base, 0, parts->type };

	return wm_block_part(all, wm_parts_before(parts, rank), wm_part_count(parts, rank));
}

/* Rank 0 has the result at @all and gives each its part. */
void wm_parts_give(struct wm_coll *c, const void *all, const struct wm_blocks *parts);

#endif
