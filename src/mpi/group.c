/* group.c - groups: processes in order, or threads, of a communicator of threads.
 *
 * A process is its weft_id, and so is a thread. What compares two groups sorts one of them first: n log n.
 */
#include <stdlib.h>
#include <string.h>

#include "inner.h"

struct MPI_ABI_Group wm_group_empty = { .obj = { .kind = WM_GROUP, .refs = 1 }, .rank = MPI_UNDEFINED };

struct MPI_ABI_Group *wm_group(MPI_Group group)
{
	if (group == MPI_GROUP_EMPTY)
		return &wm_group_empty;
	return wm_object_is(group, WM_GROUP) ? group : NULL;
}

MPI_Group wm_group_handle(struct MPI_ABI_Group *group)
{
	return group == &wm_group_empty ? MPI_GROUP_EMPTY : group;
}

struct MPI_ABI_Group *wm_group_get(struct MPI_ABI_Group *group)
{
	if (group != &wm_group_empty)
		wm_object_get(&group->obj);
	return group;
}

void wm_group_put(struct MPI_ABI_Group *group)
{
	if (!group || group == &wm_group_empty || !wm_object_put(&group->obj))
		return;
	free(group->ids);
	wm_object_free(group);
}

static int place_of(const weft_id *ids, int size, weft_id id)
{
	for (int i = 0; i < size; i++)
		if (ids[i] == id)
			return i;
	return MPI_UNDEFINED;
}

/* What the caller is called among members like @id. */
static weft_id me_like(weft_id id)
{
	return weft_id_split(id).local ? weft_self() : weft_process();
}

/* Takes @ids (from malloc), also where it fails. */
static struct MPI_ABI_Group *group_of(weft_id *ids, int size)
{
	struct MPI_ABI_Group *g;

	if (size == 0) {
		free(ids);
		return &wm_group_empty;
	}
	g = wm_object_new(WM_GROUP, sizeof(*g));
	if (!g) {
		free(ids);
		return NULL;
	}
	g->size = size;
	g->ids = ids;
	g->rank = place_of(ids, size, me_like(ids[0]));
	return g;
}

struct MPI_ABI_Group *wm_group_new(const weft_id *ids, int size)
{
	weft_id *copy = malloc((size_t)size * sizeof(*ids) + 1);

	if (!copy)
		return NULL;
	if (size)
		memcpy(copy, ids, (size_t)size * sizeof(*ids));
	return group_of(copy, size);
}

/* Ranks by id */

struct seat {
	weft_id id;
	int rank;
};

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Gives the members of @g sorted by id; free it. NULL: no memory. */
static struct seat *seats_of(const struct MPI_ABI_Group *g)
{
	struct seat *seats = malloc((size_t)g->size * sizeof(*seats) + 1);

	if (!seats)
		return NULL;
	for (int i = 0; i < g->size; i++)
		seats[i] = (struct seat){ g->ids[i], i };
	qsort(seats, (size_t)g->size, sizeof(*seats), seat_compare);
	return seats;
}

static int rank_in(const struct seat *seats, int size, weft_id id)
{
	struct seat key = { .id = id };
	const struct seat *s = bsearch(&key, seats, (size_t)size, sizeof(*seats), seat_compare);

	return s ? s->rank : MPI_UNDEFINED;
}

/* What is asked of few ids is looked for as it lies. */
#define FEW 8

int wm_group_translate(const struct MPI_ABI_Group *from, int n, const int *ranks, const struct MPI_ABI_Group *to, int *ret_ranks)
{
	struct seat *seats = n > FEW ? seats_of(to) : NULL;

	if (n > FEW && !seats)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++) {
		int r = ranks ? ranks[i] : i;

		if (r == MPI_PROC_NULL)
			ret_ranks[i] = MPI_PROC_NULL;
		else if (r < to->size && to->ids[r] == from->ids[r])
			ret_ranks[i] = r;
		else
			ret_ranks[i] = seats ? rank_in(seats, to->size, from->ids[r]) : place_of(to->ids, to->size, from->ids[r]);
	}
	free(seats);
	return 0;
}

int wm_group_compare(const struct MPI_ABI_Group *a, const struct MPI_ABI_Group *b, int *ret_result)
{
	struct seat *seats;

	*ret_result = MPI_UNEQUAL;
	if (a->size != b->size)
		return 0;
	if (a == b || !a->size || !memcmp(a->ids, b->ids, (size_t)a->size * sizeof(*a->ids))) {
		*ret_result = MPI_IDENT;
		return 0;
	}
	seats = seats_of(b);
	if (!seats)
		return MPI_ERR_NO_MEM;
	*ret_result = MPI_SIMILAR;
	for (int i = 0; i < a->size && *ret_result == MPI_SIMILAR; i++)
		if (rank_in(seats, b->size, a->ids[i]) == MPI_UNDEFINED)
			*ret_result = MPI_UNEQUAL;
	free(seats);
	return 0;
}

/* Asking */

static int no_group(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_GROUP, "not a group");
}

static int no_place(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_ARG, "NULL as place of the result");
}

static int no_memory(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_NO_MEM, "no memory for a group");
}

int PMPI_Group_size(MPI_Group group, int *size)
{
	struct MPI_ABI_Group *g = wm_group(group);

	if (!g)
		return no_group(__func__);
	if (!size)
		return no_place(__func__);
	*size = g->size;
	return MPI_SUCCESS;
}
MPI_DONE(Group_size);

int PMPI_Group_rank(MPI_Group group, int *rank)
{
	struct MPI_ABI_Group *g = wm_group(group);

	if (!g)
		return no_group(__func__);
	if (!rank)
		return no_place(__func__);
	*rank = g->rank;
	return MPI_SUCCESS;
}
MPI_DONE(Group_rank);

int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])
{
	struct MPI_ABI_Group *a = wm_group(group1), *b = wm_group(group2);

	if (!a || !b)
		return no_group(__func__);
	if (n < 0 || (n > 0 && (!ranks1 || !ranks2)))
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d ranks, or NULL for them", n);
	for (int i = 0; i < n; i++)
		if ((ranks1[i] < 0 || ranks1[i] >= a->size) && ranks1[i] != MPI_PROC_NULL)
			return wm_error(NULL, __func__, MPI_ERR_RANK, "rank %d of a group of %d", ranks1[i], a->size);
	return wm_group_translate(a, n, ranks1, b, ranks2) ? no_memory(__func__) : MPI_SUCCESS;
}
MPI_DONE(Group_translate_ranks);

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
	struct MPI_ABI_Group *a = wm_group(group1), *b = wm_group(group2);

	if (!a || !b)
		return no_group(__func__);
	if (!result)
		return no_place(__func__);
	return wm_group_compare(a, b, result) ? no_memory(__func__) : MPI_SUCCESS;
}
MPI_DONE(Group_compare);

int PMPI_Group_free(MPI_Group *group)
{
	struct MPI_ABI_Group *g = group ? wm_group(*group) : NULL;

	if (!g)
		return no_group(__func__);
	wm_group_put(g);
	*group = MPI_GROUP_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Group_free);

/* Making of two */

/* @n of @a's ids, then those of @b's that are in @a, or that are not, as @in says. NULL: no memory. */
static struct MPI_ABI_Group *combine(const struct MPI_ABI_Group *a, int n, const struct MPI_ABI_Group *b, bool in)
{
	weft_id *ids = malloc(((size_t)n + (size_t)b->size) * sizeof(*ids) + 1);
	struct seat *seats = seats_of(a);

	if (!ids || !seats) {
		free(ids);
		free(seats);
		return NULL;
	}
	if (n)
		memcpy(ids, a->ids, (size_t)n * sizeof(*ids));
	for (int i = 0; i < b->size; i++)
		if ((rank_in(seats, a->size, b->ids[i]) != MPI_UNDEFINED) == in)
			ids[n++] = b->ids[i];
	free(seats);
	return group_of(ids, n);
}

static int give(const char *function, struct MPI_ABI_Group *g, MPI_Group *newgroup)
{
	if (!g)
		return no_memory(function);
	*newgroup = wm_group_handle(g);
	return MPI_SUCCESS;
}

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	struct MPI_ABI_Group *a = wm_group(group1), *b = wm_group(group2);

	if (!a || !b)
		return no_group(__func__);
	return newgroup ? give(__func__, combine(a, a->size, b, false), newgroup) : no_place(__func__);
}
MPI_DONE(Group_union);

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	struct MPI_ABI_Group *a = wm_group(group1), *b = wm_group(group2);

	if (!a || !b)
		return no_group(__func__);
	return newgroup ? give(__func__, combine(b, 0, a, true), newgroup) : no_place(__func__);
}
MPI_DONE(Group_intersection);

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	struct MPI_ABI_Group *a = wm_group(group1), *b = wm_group(group2);

	if (!a || !b)
		return no_group(__func__);
	return newgroup ? give(__func__, combine(b, 0, a, false), newgroup) : no_place(__func__);
}
MPI_DONE(Group_difference);

/* Choosing by rank. @chosen: a byte for each member of the group. */

static int choose(const char *function, struct MPI_ABI_Group *g, char *chosen, int rank)
{
	if (rank < 0 || rank >= g->size)
		return wm_error(NULL, function, MPI_ERR_RANK, "rank %d of a group of %d", rank, g->size);
	if (chosen[rank]++)
		return wm_error(NULL, function, MPI_ERR_RANK, "rank %d is named twice", rank);
	return MPI_SUCCESS;
}

/* The @n ranks in their order, or with @without all others in theirs. */
static int choose_all(const char *function, MPI_Group group, int n, const int *ranks, bool without, MPI_Group *newgroup)
{
	struct MPI_ABI_Group *g = wm_group(group);
	char *chosen;
	weft_id *ids;
	int r = MPI_SUCCESS, count = 0;

	if (!g)
		return no_group(function);
	if (!newgroup || n < 0 || (n > 0 && !ranks))
		return wm_error(NULL, function, MPI_ERR_ARG, "%d ranks, or NULL for them or for the result", n);
	chosen = calloc((size_t)g->size + 1, 1);
	ids = malloc((size_t)g->size * sizeof(*ids) + 1);
	if (!chosen || !ids)
		r = no_memory(function);
	for (int i = 0; i < n && !r; i++) {
		r = choose(function, g, chosen, ranks[i]);
		if (!r && !without)
			ids[count++] = g->ids[ranks[i]];
	}
	for (int i = 0; without && i < g->size && !r; i++)
		if (!chosen[i])
			ids[count++] = g->ids[i];
	free(chosen);
	if (r) {
		free(ids);
		return r;
	}
	return give(function, group_of(ids, count), newgroup);
}

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose_all(__func__, group, n, ranks, false, newgroup);
}
MPI_DONE(Group_incl);

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose_all(__func__, group, n, ranks, true, newgroup);
}
MPI_DONE(Group_excl);

/* How many ranks (first, last, stride) names; -1: none that makes sense. A stride that leads past the last at once names the first alone. */
static int64_t range_len(const int range[3])
{
	int64_t first = range[0], last = range[1], stride = range[2];

	if (stride == 0 || (stride > 0 ? last < first : last > first))
		return -1;
	return (last - first) / stride + 1;
}

/* Gives the ranks of the @n ranges, one after the other; free it. An error was raised where the answer is not 0. */
static int unroll(const char *function, int size, int n, int ranges[][3], int **ret_ranks, int *ret_count)
{
	int64_t total = 0, len;
	int *ranks, k = 0;

	if (n < 0 || (n > 0 && !ranges))
		return wm_error(NULL, function, MPI_ERR_ARG, "%d ranges, or NULL for them", n);
	for (int i = 0; i < n; i++) {
		len = range_len(ranges[i]);
		if (len < 0)
			return wm_error(NULL, function, MPI_ERR_ARG, "range %d to %d by %d", ranges[i][0], ranges[i][1], ranges[i][2]);
		total += len;
		if (total > size)
			return wm_error(NULL, function, MPI_ERR_RANK, "more ranks than the %d of the group", size);
	}
	ranks = malloc((size_t)total * sizeof(*ranks) + 1);
	if (!ranks)
		return no_memory(function);
	for (int i = 0; i < n; i++) {
		len = range_len(ranges[i]);
		for (int64_t j = 0; j < len; j++)
			ranks[k++] = (int)(ranges[i][0] + j * ranges[i][2]);
	}
	*ret_ranks = ranks;
	*ret_count = k;
	return MPI_SUCCESS;
}

static int choose_ranges(const char *function, MPI_Group group, int n, int ranges[][3], bool without, MPI_Group *newgroup)
{
	struct MPI_ABI_Group *g = wm_group(group);
	int *ranks = NULL, count = 0, r;

	if (!g)
		return no_group(function);
	r = unroll(function, g->size, n, ranges, &ranks, &count);
	if (r)
		return r;
	r = choose_all(function, group, count, ranks, without, newgroup);
	free(ranks);
	return r;
}

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return choose_ranges(__func__, group, n, ranges, false, newgroup);
}
MPI_DONE(Group_range_incl);

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return choose_ranges(__func__, group, n, ranges, true, newgroup);
}
MPI_DONE(Group_range_excl);
