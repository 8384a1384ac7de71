/* type.h - what makes a datatype: a draft, which says what it will be, and the arguments it was made with. */
#ifndef WM_TYPE_H
#define WM_TYPE_H

#include <string.h>

#include "shape.h"

/* What follows from a type map (draft.c). Bounds are meaningless where there is none of them: none for lb and ub,
 * size 0 for the true ones. */
struct wm_draft {
	struct wm_part part;
	MPI_Count size, elements;
	MPI_Count lb, ub, true_lb, true_ub;
	bool none;                      /* an empty type map, without even said bounds */
	bool marked;
	uint8_t align;
};

/* The answers of these are 0, MPI_ERR_NO_MEM, or MPI_ERR_COUNT: a number that does not fit. */

void wm_draft_of(struct wm_draft *ret, const struct MPI_ABI_Datatype *type);
void wm_draft_put(struct wm_draft *draft);

/* @count times @unit, @stride bytes apart. */
int wm_draft_run(struct wm_draft *ret, MPI_Count count, MPI_Count stride, const struct wm_draft *unit);

/* Several, one after the other in the type map: begin, add, and end, which frees in any case. */
struct wm_join {
	struct wm_draft sum;
	struct wm_part *parts;
	MPI_Count n;
};
int wm_join_begin(struct wm_join *join, MPI_Count most);
int wm_join_add(struct wm_join *join, MPI_Count disp, const struct wm_draft *draft);
int wm_join_end(struct wm_join *join, int r, struct wm_draft *ret);     /* @r: of what went before; answered if not 0 */

void wm_draft_bounds(struct wm_draft *draft, MPI_Count lb, MPI_Count extent);   /* says lb and extent */
int wm_draft_shift(struct wm_draft *draft, MPI_Count by);
void wm_draft_pad(struct wm_draft *draft);                              /* extent as a C compiler has it */

/* With what it was made (type_made.c). Numbers are kept where MPI_Type_get_contents gives them. */
struct wm_made {
	int combiner;
	bool wide;                      /* made by a function _c: counts and addresses are large counts */
	MPI_Count ints, addrs, counts, types;   /* how many there are */
	int *int_of;
	MPI_Aint *addr_of;
	MPI_Count *count_of;
	struct MPI_ABI_Datatype **type_of;      /* referenced */
};

/* With room for so many; NULL: no memory. */
struct wm_made *wm_made_new(int combiner, bool wide, MPI_Count ints, MPI_Count addrs, MPI_Count types);
void wm_made_free(struct wm_made *made);                                /* NULL is fine */

static inline void wm_made_int(struct wm_made *m, MPI_Count value)      /* an int in both forms */
{
	m->int_of[m->ints++] = (int)value;
}

static inline void wm_made_count(struct wm_made *m, MPI_Count value)    /* an int, or in the wide form a count */
{
	if (m->wide)
		m->count_of[m->counts++] = value;
	else
		m->int_of[m->ints++] = (int)value;
}

static inline void wm_made_addr(struct wm_made *m, MPI_Count value)     /* an address, or in the wide form a count */
{
	if (m->wide)
		m->count_of[m->counts++] = value;
	else
		m->addr_of[m->addrs++] = (MPI_Aint)value;
}

static inline void wm_made_type(struct wm_made *m, struct MPI_ABI_Datatype *type)
{
	m->type_of[m->types++] = wm_type_get(type);
}

/* Numbers of an array whose width depends on the form of the call. */
struct wm_numbers {
	const int *narrow;              /* or */
	const MPI_Count *wide;          /* or */
	const MPI_Aint *addr;
};

static inline MPI_Count wm_number(const struct wm_numbers *n, MPI_Count i)
{
	return n->narrow ? n->narrow[i] : n->wide ? n->wide[i] : n->addr[i];
}

static inline bool wm_numbers_there(const struct wm_numbers *n)
{
	return n->narrow || n->wide || n->addr;
}

/* The basic types inside, in the order of the type map (count.c) */

static inline bool wm_basic(const struct MPI_ABI_Datatype *type)        /* nothing inside, or a pair */
{
	return !type->made || !type->made->types;
}

static inline MPI_Count wm_pair_value_size(const struct MPI_ABI_Datatype *pair)
{
	return pair->base == WM_BASE_2DOUBLE ? 8 : pair->size - 4;
}

static inline MPI_Count wm_made_block(const struct wm_made *m, MPI_Count i)     /* of a struct: the length of the i-th block */
{
	return m->wide ? m->count_of[1 + i] : m->int_of[1 + i];
}

/* Calls @each with a basic type and how many of it come next, for @count elements of @type. */
typedef void (*wm_basics_fn)(void *user, const struct MPI_ABI_Datatype *basic, MPI_Count n);
void wm_basics(const struct MPI_ABI_Datatype *type, MPI_Count count, wm_basics_fn each, void *user);

/* type.c: a datatype of @draft, if @r is 0, and the end of both; @function's answer. */
int wm_type_new(const char *function, int r, struct wm_draft *draft, struct wm_made *made, MPI_Datatype *ret_type);

#endif
