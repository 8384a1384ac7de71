/* shape.h - where the bytes of a datatype are, as a tree of runs and lists.
 *
 *   run    count units of len bytes, stride apart: a block, a vector of blocks, or of shapes
 *   list   entries in order, each a block or a shape at an offset of its own
 *
 * The tree follows the order of the type map, so that byte n of it is found from the top: in a run by a division, in
 * a list by a search among the sums of what precedes. It is kept small while it is built: what touches is joined,
 * runs of runs become one where the strides agree, lists at even distances become runs.
 * A shape is constant once made, and shared by the shapes and types that contain it.
 */
#ifndef WM_SHAPE_H
#define WM_SHAPE_H

#include "inner.h"

struct wm_run {
	MPI_Count off;                  /* of the first unit */
	MPI_Count count, stride;
	MPI_Count len;                  /* bytes in a unit */
	struct wm_shape *child;         /* a unit; NULL: a block */
};

struct wm_entry {
	MPI_Count off;
	MPI_Count at;                   /* bytes before it */
	MPI_Count len;
	struct wm_shape *child;         /* NULL: a block */
};

struct wm_shape {
	_Atomic uint32_t refs;
	MPI_Count size;                 /* bytes in all; never 0 */
	MPI_Count pieces;               /* blocks in all, not counting that some may touch */
	MPI_Count entries;              /* of a list; 0: a run */
	MPI_Count like;                 /* of a list: the length of every entry, all being blocks; 0: they are not so */
	union {
		struct wm_run run;
		struct wm_entry *list;  /* behind this struct */
	};
};

/* A block or a shape somewhere: what shapes are made of. A part owns a reference to its shape. */
struct wm_part {
	MPI_Count off, len;             /* len 0: nothing */
	struct wm_shape *shape;         /* NULL: a block */
};

/* The answers of these are 0 or MPI_ERR_NO_MEM. */

/* @count times @unit, @stride apart. */
int wm_part_run(struct wm_part *ret, MPI_Count count, MPI_Count stride, const struct wm_part *unit);

/* @parts one after the other. They are changed, and let go of in any case. */
int wm_part_list(struct wm_part *ret, struct wm_part *parts, MPI_Count n);

struct wm_part wm_part_get(const struct wm_part *part);         /* one more reference */
void wm_part_put(struct wm_part *part);

/* As a shape of its own, which takes over the part's reference, in any case; and back, with a reference of its own. */
int wm_part_shape(struct wm_part *part, struct wm_shape **ret_shape);
struct wm_part wm_part_of(const struct MPI_ABI_Datatype *type);

void wm_shape_put(struct wm_shape *shape);                      /* NULL is fine */

#endif
