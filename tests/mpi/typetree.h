/* typetree.h - random datatypes, each with its type map expanded the slow and obvious way.
 *
 * A tree is a datatype made by MPI beside a list of every basic element in it, in order, with its place and size. The
 * list is made by loops over the arguments alone; whatever MPI says of the type can be held against it.
 */
#ifndef TYPETREE_H
#define TYPETREE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

#define TREE_MOST 4000          /* elements in a tree; larger ones are thrown away while they grow */

struct element {
	MPI_Aint at;
	int size;
	MPI_Datatype type;
};

struct tree {
	MPI_Datatype type;
	int n;
	struct element *map;
	MPI_Aint lb, ub;
	int bounds;             /* 0: it has none, being empty; 1: they follow from the map; 2: they were said */
	int align;
	int fresh;              /* the type must be freed */
};

static uint64_t tree_seed = 1;

static int pick(int low, int high)      /* both included */
{
	uint64_t z = tree_seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return low + (int)((z ^ z >> 31) % (uint64_t)(high - low + 1));
}

static MPI_Aint tree_extent(const struct tree *t)
{
	return t->bounds ? t->ub - t->lb : 0;
}

/* One copy of @of at @disp. */
static void tree_add(struct tree *t, MPI_Aint disp, const struct tree *of)
{
	if (t->n + of->n > TREE_MOST)
		abort();
	t->map = realloc(t->map, (size_t)(t->n + of->n + 1) * sizeof(*t->map));
	for (int i = 0; i < of->n; i++) {
		t->map[t->n] = of->map[i];
		t->map[t->n++].at += disp;
	}
	if (of->bounds > t->bounds || (of->bounds && of->bounds == t->bounds && of->lb + disp < t->lb))
		t->lb = of->lb + disp;
	if (of->bounds > t->bounds || (of->bounds && of->bounds == t->bounds && of->ub + disp > t->ub))
		t->ub = of->ub + disp;
	if (of->bounds > t->bounds)
		t->bounds = of->bounds;
	if (of->bounds && of->align > t->align)
		t->align = of->align;
}

static void tree_block(struct tree *t, MPI_Aint disp, int len, const struct tree *of)
{
	for (int i = 0; i < len; i++)
		tree_add(t, disp + i * tree_extent(of), of);
}

static void tree_said(struct tree *t, MPI_Aint lb, MPI_Aint extent)
{
	t->lb = lb;
	t->ub = lb + extent;
	t->bounds = 2;
}

static void tree_pad(struct tree *t)
{
	while (t->bounds == 1 && (t->ub - t->lb) % t->align)
		t->ub++;
}

static void tree_free(struct tree *t)
{
	if (t->fresh)
		MPI_Type_free(&t->type);
	free(t->map);
}

struct tree_basic {
	MPI_Datatype type, first, second;       /* second: MPI_DATATYPE_NULL, or of a pair */
	int size, index_at, index_size, extent, align;
};

static const struct tree_basic tree_basics[] = {
	{ MPI_CHAR, MPI_CHAR, MPI_DATATYPE_NULL, 1, 0, 0, 1, 1 },
	{ MPI_SHORT, MPI_SHORT, MPI_DATATYPE_NULL, 2, 0, 0, 2, 2 },
	{ MPI_INT, MPI_INT, MPI_DATATYPE_NULL, 4, 0, 0, 4, 4 },
	{ MPI_DOUBLE, MPI_DOUBLE, MPI_DATATYPE_NULL, 8, 0, 0, 8, 8 },
	{ MPI_C_DOUBLE_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_DATATYPE_NULL, 16, 0, 0, 16, 8 },
	{ MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT, 8, 8, 4, 16, 8 },
	{ MPI_FLOAT_INT, MPI_FLOAT, MPI_INT, 4, 4, 4, 8, 4 },
	{ MPI_SHORT_INT, MPI_SHORT, MPI_INT, 2, 4, 4, 8, 4 },
};

static void tree_leaf(struct tree *t)
{
	const struct tree_basic *b = &tree_basics[pick(0, (int)(sizeof(tree_basics) / sizeof(*tree_basics)) - 1)];

	*t = (struct tree){ .type = b->type, .n = 1, .ub = b->extent, .bounds = 1, .align = b->align };
	t->map = calloc(2, sizeof(*t->map));
	t->map[0] = (struct element){ .size = b->size, .type = b->first };
	if (b->second != MPI_DATATYPE_NULL)
		t->map[t->n++] = (struct element){ .at = b->index_at, .size = b->index_size, .type = b->second };
}

#define TREE_BLOCKS 5

/* Arguments in every width there is. */
struct tree_args {
	int n, len[TREE_BLOCKS], disp[TREE_BLOCKS];
	MPI_Aint addr[TREE_BLOCKS];
	MPI_Count wide_len[TREE_BLOCKS], wide_disp[TREE_BLOCKS], wide_addr[TREE_BLOCKS];
	MPI_Datatype types[TREE_BLOCKS];
};

static void tree_args(struct tree_args *a, int low_len)
{
	int step = pick(0, 2) == 0 ? pick(-9, 9) : 0, len = pick(0, 1) ? pick(low_len, 3) : -1, at = pick(-9, 12);

	a->n = pick(0, 9) ? pick(1, TREE_BLOCKS) : 0;
	for (int i = 0; i < a->n; i++) {
		a->wide_len[i] = a->len[i] = len < 0 ? pick(low_len, 3) : len;
		a->wide_disp[i] = a->disp[i] = step ? at + i * step : pick(-9, 12);
		a->wide_addr[i] = a->addr[i] = step ? at + i * step : pick(-70, 100);
	}
}

static void tree_vector(struct tree *t, const struct tree *of)
{
	int count = pick(0, 5), len = pick(0, 3), stride = pick(-5, 7), bytes = pick(0, 1), wide = pick(0, 1);
	MPI_Aint step = bytes ? pick(-70, 90) : stride * tree_extent(of);

	if (bytes && pick(0, 3) == 0)
		step = len * tree_extent(of);
	for (int i = 0; i < count; i++)
		tree_block(t, i * step, len, of);
	if (bytes && wide)
		MPI_Type_create_hvector_c(count, len, step, of->type, &t->type);
	else if (bytes)
		MPI_Type_create_hvector(count, len, step, of->type, &t->type);
	else if (wide)
		MPI_Type_vector_c(count, len, stride, of->type, &t->type);
	else
		MPI_Type_vector(count, len, stride, of->type, &t->type);
}

static void tree_indexed(struct tree *t, const struct tree *of)
{
	int same = pick(0, 1), bytes = pick(0, 1), wide = pick(0, 1), each = pick(0, 3);
	struct tree_args a;

	tree_args(&a, 0);
	for (int i = 0; i < a.n; i++)
		tree_block(t, bytes ? a.addr[i] : a.disp[i] * tree_extent(of), same ? each : a.len[i], of);
	if (same && bytes && wide)
		MPI_Type_create_hindexed_block_c(a.n, each, a.wide_addr, of->type, &t->type);
	else if (same && bytes)
		MPI_Type_create_hindexed_block(a.n, each, a.addr, of->type, &t->type);
	else if (same && wide)
		MPI_Type_create_indexed_block_c(a.n, each, a.wide_disp, of->type, &t->type);
	else if (same)
		MPI_Type_create_indexed_block(a.n, each, a.disp, of->type, &t->type);
	else if (bytes && wide)
		MPI_Type_create_hindexed_c(a.n, a.wide_len, a.wide_addr, of->type, &t->type);
	else if (bytes)
		MPI_Type_create_hindexed(a.n, a.len, a.addr, of->type, &t->type);
	else if (wide)
		MPI_Type_indexed_c(a.n, a.wide_len, a.wide_disp, of->type, &t->type);
	else
		MPI_Type_indexed(a.n, a.len, a.disp, of->type, &t->type);
}

static void tree_make(struct tree *t, int depth);

static void tree_struct(struct tree *t, int depth)
{
	struct tree of[TREE_BLOCKS];
	struct tree_args a;

	tree_args(&a, 0);
	for (int i = 0; i < a.n; i++) {
		tree_make(&of[i], depth - 1);
		if (t->n + a.len[i] * of[i].n > TREE_MOST)
			a.wide_len[i] = a.len[i] = 0;
		tree_block(t, a.addr[i], a.len[i], &of[i]);
		a.types[i] = of[i].type;
	}
	tree_pad(t);
	if (pick(0, 1))
		MPI_Type_create_struct_c(a.n, a.wide_len, a.wide_addr, a.types, &t->type);
	else
		MPI_Type_create_struct(a.n, a.len, a.addr, a.types, &t->type);
	for (int i = 0; i < a.n; i++)
		tree_free(&of[i]);
}

static void tree_resized(struct tree *t, const struct tree *of)
{
	MPI_Aint lb = pick(-20, 20), extent = pick(0, 2) ? pick(0, 80) : tree_extent(of);

	tree_add(t, 0, of);
	tree_said(t, lb, extent);
	if (pick(0, 1))
		MPI_Type_create_resized_c(of->type, lb, extent, &t->type);
	else
		MPI_Type_create_resized(of->type, lb, extent, &t->type);
}

#define TREE_DIMS 3

/* The array element by element, in the order of memory; those for which @mine holds are in the type. */
struct tree_grid {
	int dims, order, size[TREE_DIMS], sub[TREE_DIMS], start[TREE_DIMS];
	int procs, rank, dist[TREE_DIMS], arg[TREE_DIMS], grid[TREE_DIMS], place[TREE_DIMS];
	MPI_Count wide_size[TREE_DIMS], wide_sub[TREE_DIMS], wide_start[TREE_DIMS];
};

static int in_box(const struct tree_grid *g, int dim, int i)
{
	return i >= g->start[dim] && i < g->start[dim] + g->sub[dim];
}

static int is_mine(const struct tree_grid *g, int dim, int i)
{
	int block = g->arg[dim];

	if (g->dist[dim] == MPI_DISTRIBUTE_NONE)
		return 1;
	if (g->dist[dim] == MPI_DISTRIBUTE_BLOCK) {
		if (block == MPI_DISTRIBUTE_DFLT_DARG)
			block = (g->size[dim] + g->grid[dim] - 1) / g->grid[dim];
		return i / block == g->place[dim];
	}
	if (block == MPI_DISTRIBUTE_DFLT_DARG)
		block = 1;
	return i / block % g->grid[dim] == g->place[dim];
}

static void tree_array(struct tree *t, const struct tree_grid *g, const struct tree *of,
		       int (*mine)(const struct tree_grid *g, int dim, int i))
{
	int total = 1;

	for (int d = 0; d < g->dims; d++)
		total *= g->size[d];
	for (int k = 0; k < total; k++) {
		int rest = k, all = 1;

		for (int i = 0; i < g->dims; i++) {
			int d = g->order == MPI_ORDER_C ? g->dims - 1 - i : i;

			all &= mine(g, d, rest % g->size[d]);
			rest /= g->size[d];
		}
		if (all)
			tree_add(t, k * tree_extent(of), of);
	}
	tree_said(t, 0, total * tree_extent(of));
}

static void tree_subarray(struct tree *t, const struct tree *of)
{
	struct tree_grid g = { .dims = pick(1, TREE_DIMS), .order = pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN };

	for (int d = 0; d < g.dims; d++) {
		g.wide_size[d] = g.size[d] = pick(1, 4);
		g.wide_sub[d] = g.sub[d] = pick(1, g.size[d]);
		g.wide_start[d] = g.start[d] = pick(0, g.size[d] - g.sub[d]);
	}
	tree_array(t, &g, of, in_box);
	if (pick(0, 1))
		MPI_Type_create_subarray_c(g.dims, g.wide_size, g.wide_sub, g.wide_start, g.order, of->type, &t->type);
	else
		MPI_Type_create_subarray(g.dims, g.size, g.sub, g.start, g.order, of->type, &t->type);
}

static void tree_darray(struct tree *t, const struct tree *of)
{
	struct tree_grid g = { .dims = pick(1, TREE_DIMS), .order = pick(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, .procs = 1 };

	for (int d = 0; d < g.dims; d++) {
		g.wide_size[d] = g.size[d] = pick(1, 5);
		g.dist[d] = (int[]){ MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC }[pick(0, 2)];
		g.grid[d] = g.dist[d] == MPI_DISTRIBUTE_NONE ? 1 : pick(1, 3);
		g.place[d] = pick(0, g.grid[d] - 1);
		g.arg[d] = MPI_DISTRIBUTE_DFLT_DARG;
		if (g.dist[d] == MPI_DISTRIBUTE_BLOCK && pick(0, 1))
			g.arg[d] = (g.size[d] + g.grid[d] - 1) / g.grid[d] + pick(0, 2);
		if (g.dist[d] == MPI_DISTRIBUTE_CYCLIC && pick(0, 1))
			g.arg[d] = pick(1, 3);
		g.procs *= g.grid[d];
		g.rank = g.rank * g.grid[d] + g.place[d];
	}
	tree_array(t, &g, of, is_mine);
	if (pick(0, 1))
		MPI_Type_create_darray_c(g.procs, g.rank, g.dims, g.wide_size, g.dist, g.arg, g.grid, g.order, of->type, &t->type);
	else
		MPI_Type_create_darray(g.procs, g.rank, g.dims, g.size, g.dist, g.arg, g.grid, g.order, of->type, &t->type);
}

/* A random tree of at most @depth levels. */
static void tree_make(struct tree *t, int depth)
{
	int kind = pick(0, 8), count;
	struct tree of;

	if (depth == 0 || pick(0, 7) == 0) {
		tree_leaf(t);
		return;
	}
	*t = (struct tree){ .align = 1, .fresh = 1 };
	if (kind == 0) {
		tree_struct(t, depth);
		return;
	}
	tree_make(&of, depth - 1);
	if (of.n > TREE_MOST / 125) {
		*t = of;
		return;
	}
	if (kind == 1) {
		count = pick(0, 6);
		tree_block(t, 0, count, &of);
		if (pick(0, 1))
			MPI_Type_contiguous_c(count, of.type, &t->type);
		else
			MPI_Type_contiguous(count, of.type, &t->type);
	} else if (kind == 2) {
		tree_add(t, 0, &of);
		MPI_Type_dup(of.type, &t->type);
	} else if (kind == 3) {
		tree_resized(t, &of);
	} else if (kind == 4) {
		tree_subarray(t, &of);
	} else if (kind == 5) {
		tree_darray(t, &of);
	} else if (kind == 6) {
		tree_vector(t, &of);
	} else {
		tree_indexed(t, &of);
	}
	tree_free(&of);
}

/* Of @count elements: bytes, and the bytes that are touched: [*low, *high) from the address of the first. */
static int tree_span(const struct tree *t, int count, MPI_Aint *low, MPI_Aint *high)
{
	int bytes = 0;

	*low = *high = 0;
	for (int c = 0; c < count; c++)
		for (int i = 0; i < t->n; i++) {
			MPI_Aint at = c * tree_extent(t) + t->map[i].at;

			*low = at < *low ? at : *low;
			*high = at + t->map[i].size > *high ? at + t->map[i].size : *high;
			bytes += t->map[i].size;
		}
	return bytes;
}

/* The bytes of @count elements at @base, end to end. */
static void tree_pack(const struct tree *t, int count, const char *base, char *bytes)
{
	for (int c = 0; c < count; c++)
		for (int i = 0; i < t->n; i++) {
			memcpy(bytes, base + c * tree_extent(t) + t->map[i].at, (size_t)t->map[i].size);
			bytes += t->map[i].size;
		}
}

/* Whether some byte of @count elements is there twice: such a type may not receive. */
static int tree_overlaps(const struct tree *t, int count)
{
	MPI_Aint low, high;
	char *seen;
	int twice = 0;

	tree_span(t, count, &low, &high);
	seen = calloc((size_t)(high - low) + 1, 1);
	for (int c = 0; c < count; c++)
		for (int i = 0; i < t->n; i++)
			for (int k = 0; k < t->map[i].size; k++)
				twice |= seen[c * tree_extent(t) + t->map[i].at - low + k]++;
	free(seen);
	return twice;
}

static void tree_fill(char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)pick(0, 255);
}

#endif
