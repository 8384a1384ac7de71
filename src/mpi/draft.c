/* draft.c - what follows from a type map: size, bounds, and where the bytes are.
 *
 * The bounds are those of the basic types unless some were said (MPI_Type_create_resized, subarrays): said bounds
 * anywhere inside count alone.
 */
#include <stdlib.h>

#include "type.h"

static MPI_Count lesser(MPI_Count a, MPI_Count b)
{
	return a < b ? a : b;
}

static MPI_Count greater(MPI_Count a, MPI_Count b)
{
	return a > b ? a : b;
}

void wm_draft_of(struct wm_draft *ret, const struct MPI_ABI_Datatype *type)
{
	*ret = (struct wm_draft){
		.part = wm_part_of(type),
		.size = type->size,
		.elements = type->elements,
		.lb = type->lb,
		.ub = type->lb + type->extent,
		.true_lb = type->true_lb,
		.true_ub = type->true_lb + type->true_extent,
		.none = type->size == 0 && !type->marked,
		.marked = type->marked,
		.align = type->align,
	};
}

void wm_draft_put(struct wm_draft *draft)
{
	wm_part_put(&draft->part);
}

/* Moves the lower bound down or the upper bound up, as the last of several units demands. */
static int stretch(MPI_Count *lb, MPI_Count *ub, MPI_Count by)
{
	if (__builtin_add_overflow(by < 0 ? *lb : *ub, by, by < 0 ? lb : ub))
		return MPI_ERR_COUNT;
	return 0;
}

int wm_draft_run(struct wm_draft *ret, MPI_Count count, MPI_Count stride, const struct wm_draft *unit)
{
	struct wm_draft d = *unit;
	MPI_Count all, extent;
	int r;

	if (count == 0 || unit->none) {
		*ret = (struct wm_draft){ .none = true, .align = 1 };
		return 0;
	}
	if (__builtin_mul_overflow(count, stride, &all) || __builtin_mul_overflow(count, unit->size, &d.size) ||
	    __builtin_mul_overflow(count, unit->elements, &d.elements))
		return MPI_ERR_COUNT;
	r = stretch(&d.lb, &d.ub, all - stride);
	if (!r)
		r = stretch(&d.true_lb, &d.true_ub, all - stride);
	if (!r && __builtin_sub_overflow(d.ub, d.lb, &extent))
		r = MPI_ERR_COUNT;
	if (!r)
		r = wm_part_run(&d.part, count, stride, &unit->part);
	if (!r)
		*ret = d;
	return r;
}

int wm_join_begin(struct wm_join *join, MPI_Count most)
{
	*join = (struct wm_join){ .sum = { .none = true, .align = 1 } };
	join->parts = calloc(most ? (size_t)most : 1, sizeof(*join->parts));
	return join->parts ? 0 : MPI_ERR_NO_MEM;
}

int wm_join_add(struct wm_join *join, MPI_Count disp, const struct wm_draft *draft)
{
	struct wm_draft *sum = &join->sum, d = *draft;

	if (d.none)
		return 0;
	if (__builtin_add_overflow(sum->size, d.size, &sum->size) || __builtin_add_overflow(sum->elements, d.elements, &sum->elements) ||
	    __builtin_add_overflow(d.lb, disp, &d.lb) || __builtin_add_overflow(d.ub, disp, &d.ub) ||
	    __builtin_add_overflow(d.true_lb, disp, &d.true_lb) || __builtin_add_overflow(d.true_ub, disp, &d.true_ub) ||
	    __builtin_add_overflow(d.part.off, disp, &d.part.off))
		return MPI_ERR_COUNT;
	if (sum->none || (d.marked && !sum->marked)) {
		sum->lb = d.lb;
		sum->ub = d.ub;
	} else if (d.marked == sum->marked) {
		sum->lb = lesser(sum->lb, d.lb);
		sum->ub = greater(sum->ub, d.ub);
	}
	if (d.size) {
		sum->true_lb = join->n ? lesser(sum->true_lb, d.true_lb) : d.true_lb;
		sum->true_ub = join->n ? greater(sum->true_ub, d.true_ub) : d.true_ub;
		join->parts[join->n++] = wm_part_get(&d.part);
	}
	sum->align = (uint8_t)greater(sum->align, d.align);
	sum->marked |= d.marked;
	sum->none = false;
	return 0;
}

int wm_join_end(struct wm_join *join, int r, struct wm_draft *ret)
{
	struct wm_draft *sum = &join->sum;
	MPI_Count extent;

	if (!r && (__builtin_sub_overflow(sum->ub, sum->lb, &extent) || __builtin_sub_overflow(sum->true_ub, sum->true_lb, &extent)))
		r = MPI_ERR_COUNT;
	if (!r)
		r = wm_part_list(&sum->part, join->parts, join->n);
	else
		for (MPI_Count i = 0; i < join->n; i++)
			wm_part_put(&join->parts[i]);
	free(join->parts);
	if (!r)
		*ret = *sum;
	return r;
}

void wm_draft_bounds(struct wm_draft *draft, MPI_Count lb, MPI_Count extent)
{
	draft->lb = lb;
	draft->ub = lb + extent;
	draft->marked = true;
	draft->none = false;
}

int wm_draft_shift(struct wm_draft *draft, MPI_Count by)
{
	if (draft->none)
		return 0;
	if (__builtin_add_overflow(draft->lb, by, &draft->lb) || __builtin_add_overflow(draft->ub, by, &draft->ub) ||
	    __builtin_add_overflow(draft->true_lb, by, &draft->true_lb) || __builtin_add_overflow(draft->true_ub, by, &draft->true_ub))
		return MPI_ERR_COUNT;
	draft->part.off += draft->part.len ? by : 0;
	return 0;
}

void wm_draft_pad(struct wm_draft *draft)
{
	MPI_Count over = draft->align ? (draft->ub - draft->lb) % draft->align : 0;

	if (!draft->marked && over)
		draft->ub += draft->align - over;
}
