/* type_array.c - datatypes for parts of arrays: a box of one, and what a process has of a distributed one.
 *
 * The type grows from the dimension whose elements are neighbours outwards; its extent is the whole array.
 */
#include "type.h"

/* The array while the type grows. */
struct grow {
	struct wm_draft draft;          /* of the dimensions done */
	MPI_Count extent;               /* of the whole array in those */
};

static void grow_begin(struct grow *g, const struct MPI_ABI_Datatype *old)
{
	wm_draft_of(&g->draft, old);
	g->extent = old->extent;
}

/* Of the next dimension @count from @start on. */
static int grow_span(struct grow *g, MPI_Count start, MPI_Count count)
{
	struct wm_draft more;
	MPI_Count shift;
	int r = wm_draft_run(&more, count, g->extent, &g->draft);

	if (r)
		return r;
	wm_draft_put(&g->draft);
	g->draft = more;
	return __builtin_mul_overflow(start, g->extent, &shift) ? MPI_ERR_COUNT : wm_draft_shift(&g->draft, shift);
}

/* @block from @first on, then from every @step on, up to @size. */
static int grow_cyclic(struct grow *g, MPI_Count first, MPI_Count block, MPI_Count step, MPI_Count size)
{
	MPI_Count left = first < size ? size - first : 0, whole = left / step, over = left % step;
	MPI_Count begin, bytes, end;
	struct wm_draft one, blocks = { 0 }, rest = { 0 };
	struct wm_join join;
	int r;

	whole += over >= block;
	over = over >= block ? 0 : over;
	if (__builtin_mul_overflow(step, g->extent, &bytes) || __builtin_mul_overflow(first, g->extent, &begin) ||
	    __builtin_mul_overflow(first + whole * step, g->extent, &end))
		return MPI_ERR_COUNT;
	r = wm_draft_run(&one, block, g->extent, &g->draft);
	if (!r) {
		r = wm_draft_run(&blocks, whole, bytes, &one);
		wm_draft_put(&one);
	}
	if (!r)
		r = wm_draft_run(&rest, over, g->extent, &g->draft);
	if (!r)
		r = wm_join_begin(&join, 2);
	if (!r) {
		r = wm_join_add(&join, begin, &blocks);
		if (!r)
			r = wm_join_add(&join, end, &rest);
		wm_draft_put(&g->draft);
		r = wm_join_end(&join, r, &g->draft);
	}
	wm_draft_put(&blocks);
	wm_draft_put(&rest);
	return r;
}

static int grow_on(struct grow *g, MPI_Count size)
{
	return __builtin_mul_overflow(g->extent, size, &g->extent) ? MPI_ERR_COUNT : 0;
}

/* Which dimension is the @i-th from within. */
static int inner_dim(int order, int ndims, int i)
{
	return order == MPI_ORDER_C ? ndims - 1 - i : i;
}

/* A box */

struct box {
	int ndims, order;
	struct wm_numbers sizes, subsizes, starts;
	bool wide;
};

static struct wm_made *box_made(const struct box *b, struct MPI_ABI_Datatype *old)
{
	struct wm_made *made = wm_made_new(MPI_COMBINER_SUBARRAY, b->wide, 3 * (MPI_Count)b->ndims + 2, 0, 1);

	if (!made)
		return NULL;
	wm_made_int(made, b->ndims);
	for (int i = 0; i < b->ndims; i++)
		wm_made_count(made, wm_number(&b->sizes, i));
	for (int i = 0; i < b->ndims; i++)
		wm_made_count(made, wm_number(&b->subsizes, i));
	for (int i = 0; i < b->ndims; i++)
		wm_made_count(made, wm_number(&b->starts, i));
	wm_made_int(made, b->order);
	wm_made_type(made, old);
	return made;
}

static int box(const char *function, const struct box *b, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct grow g;
	int r = 0;

	if (b->ndims < 1)
		return wm_error(NULL, function, MPI_ERR_DIMS, "%d dimensions", b->ndims);
	if (b->order != MPI_ORDER_C && b->order != MPI_ORDER_FORTRAN)
		return wm_error(NULL, function, MPI_ERR_ARG, "not an order of dimensions");
	if (!newtype || !wm_numbers_there(&b->sizes) || !wm_numbers_there(&b->subsizes) || !wm_numbers_there(&b->starts))
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL for an array or the result");
	if (!old)
		return wm_error(NULL, function, MPI_ERR_TYPE, "not a datatype");
	for (int i = 0; i < b->ndims; i++) {
		MPI_Count size = wm_number(&b->sizes, i), sub = wm_number(&b->subsizes, i), start = wm_number(&b->starts, i);

		if (size < 1 || sub < 1 || start < 0 || sub > size || start > size - sub)
			return wm_error(NULL, function, MPI_ERR_ARG, "dimension %d: %lld from %lld on of %lld", i, (long long)sub,
					(long long)start, (long long)size);
	}
	grow_begin(&g, old);
	for (int i = 0; i < b->ndims && !r; i++) {
		int dim = inner_dim(b->order, b->ndims, i);

		r = grow_span(&g, wm_number(&b->starts, dim), wm_number(&b->subsizes, dim));
		if (!r)
			r = grow_on(&g, wm_number(&b->sizes, dim));
	}
	wm_draft_bounds(&g.draft, 0, r ? 0 : g.extent);
	return wm_type_new(function, r, &g.draft, box_made(b, old), newtype);
}

int PMPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[], const int array_of_starts[],
			      int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return box(__func__, &(struct box){ .ndims = ndims, .order = order, .sizes.narrow = array_of_sizes,
					    .subsizes.narrow = array_of_subsizes, .starts.narrow = array_of_starts },
		   oldtype, newtype);
}
MPI_DONE(Type_create_subarray);

int PMPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
				const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return box(__func__, &(struct box){ .ndims = ndims, .order = order, .wide = true, .sizes.wide = array_of_sizes,
					    .subsizes.wide = array_of_subsizes, .starts.wide = array_of_starts },
		   oldtype, newtype);
}
MPI_DONE(Type_create_subarray_c);

/* A distributed array */

struct spread {
	int size, rank, ndims, order;
	struct wm_numbers gsizes;
	const int *distribs, *dargs, *psizes;
	bool wide;
};

static struct wm_made *spread_made(const struct spread *s, struct MPI_ABI_Datatype *old)
{
	struct wm_made *made = wm_made_new(MPI_COMBINER_DARRAY, s->wide, 4 * (MPI_Count)s->ndims + 4, 0, 1);

	if (!made)
		return NULL;
	wm_made_int(made, s->size);
	wm_made_int(made, s->rank);
	wm_made_int(made, s->ndims);
	for (int i = 0; i < s->ndims; i++)
		wm_made_count(made, wm_number(&s->gsizes, i));
	for (int i = 0; i < s->ndims; i++)
		wm_made_int(made, s->distribs[i]);
	for (int i = 0; i < s->ndims; i++)
		wm_made_int(made, s->dargs[i]);
	for (int i = 0; i < s->ndims; i++)
		wm_made_int(made, s->psizes[i]);
	wm_made_int(made, s->order);
	wm_made_type(made, old);
	return made;
}

/* The block that every process has of a dimension, or MPI_UNDEFINED if that makes no sense. */
static MPI_Count spread_block(const struct spread *s, int dim)
{
	MPI_Count size = wm_number(&s->gsizes, dim), p = s->psizes[dim], arg = s->dargs[dim];

	if (size < 1 || p < 1)
		return MPI_UNDEFINED;
	switch (s->distribs[dim]) {
	case MPI_DISTRIBUTE_NONE:
		return p == 1 ? size : MPI_UNDEFINED;
	case MPI_DISTRIBUTE_BLOCK:
		if (arg == MPI_DISTRIBUTE_DFLT_DARG)
			return size / p + (size % p != 0);
		return arg > 0 && arg >= size / p + (size % p != 0) ? arg : MPI_UNDEFINED;
	case MPI_DISTRIBUTE_CYCLIC:
		if (arg == MPI_DISTRIBUTE_DFLT_DARG)
			return 1;
		return arg > 0 ? arg : MPI_UNDEFINED;
	default:
		return MPI_UNDEFINED;
	}
}

/* Whether it makes sense; and the number of processes in the grid. */
static bool spread_check(const struct spread *s)
{
	MPI_Count grid = 1;

	for (int i = 0; i < s->ndims; i++)
		if (spread_block(s, i) == MPI_UNDEFINED || __builtin_mul_overflow(grid, (MPI_Count)s->psizes[i], &grid))
			return false;
	return grid == s->size;
}

/* My place in the grid of processes, of which the last dimension varies fastest. */
static int spread_place(const struct spread *s, int dim)
{
	int rank = s->rank;

	for (int i = s->ndims - 1; i > dim; i--)
		rank /= s->psizes[i];
	return rank % s->psizes[dim];
}

static int spread_grow(const struct spread *s, struct grow *g, int dim)
{
	MPI_Count size = wm_number(&s->gsizes, dim), block = spread_block(s, dim), place = spread_place(s, dim);
	MPI_Count first, step, left;
	int r;

	if (__builtin_mul_overflow(place, block, &first) || __builtin_mul_overflow(block, (MPI_Count)s->psizes[dim], &step))
		return MPI_ERR_COUNT;
	if (s->distribs[dim] == MPI_DISTRIBUTE_CYCLIC) {
		r = grow_cyclic(g, first, block, step, size);
	} else {
		left = first < size ? size - first : 0;
		r = grow_span(g, first, left < block ? left : block);
	}
	return r ? r : grow_on(g, size);
}

static int spread(const char *function, const struct spread *s, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct grow g;
	int r = 0;

	if (s->ndims < 1)
		return wm_error(NULL, function, MPI_ERR_DIMS, "%d dimensions", s->ndims);
	if (s->order != MPI_ORDER_C && s->order != MPI_ORDER_FORTRAN)
		return wm_error(NULL, function, MPI_ERR_ARG, "not an order of dimensions");
	if (!newtype || !wm_numbers_there(&s->gsizes) || !s->distribs || !s->dargs || !s->psizes)
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL for an array or the result");
	if (!old)
		return wm_error(NULL, function, MPI_ERR_TYPE, "not a datatype");
	if (s->rank < 0 || s->rank >= s->size)
		return wm_error(NULL, function, MPI_ERR_RANK, "rank %d of %d", s->rank, s->size);
	if (!spread_check(s))
		return wm_error(NULL, function, MPI_ERR_ARG, "a distribution that makes no sense");
	grow_begin(&g, old);
	for (int i = 0; i < s->ndims && !r; i++)
		r = spread_grow(s, &g, inner_dim(s->order, s->ndims, i));
	wm_draft_bounds(&g.draft, 0, r ? 0 : g.extent);
	return wm_type_new(function, r, &g.draft, spread_made(s, old), newtype);
}

int PMPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_distribs[],
			    const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
			    MPI_Datatype *newtype)
{
	return spread(__func__, &(struct spread){ .size = size, .rank = rank, .ndims = ndims, .order = order,
						  .gsizes.narrow = array_of_gsizes, .distribs = array_of_distribs,
						  .dargs = array_of_dargs, .psizes = array_of_psizes }, oldtype, newtype);
}
MPI_DONE(Type_create_darray);

int PMPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_distribs[],
			      const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
			      MPI_Datatype *newtype)
{
	return spread(__func__, &(struct spread){ .size = size, .rank = rank, .ndims = ndims, .order = order, .wide = true,
						  .gsizes.wide = array_of_gsizes, .distribs = array_of_distribs,
						  .dargs = array_of_dargs, .psizes = array_of_psizes }, oldtype, newtype);
}
MPI_DONE(Type_create_darray_c);
