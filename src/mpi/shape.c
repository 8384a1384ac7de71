/* shape.c - builds shapes: runs and lists as small as they can be said. See shape.h. */
#include <stdlib.h>

#include "shape.h"

#define FLATTEN 1024    /* a list in a list is spread out in it up to so many entries: chains of them stay shallow */

static struct wm_shape *shape_get(struct wm_shape *s)
{
	if (s)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void wm_shape_put(struct wm_shape *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (!s->entries)
		wm_shape_put(s->run.child);
	for (MPI_Count i = 0; i < s->entries; i++)
		wm_shape_put(s->list[i].child);
	free(s);
}

struct wm_part wm_part_get(const struct wm_part *part)
{
	shape_get(part->shape);
	return *part;
}

void wm_part_put(struct wm_part *part)
{
	wm_shape_put(part->shape);
	*part = (struct wm_part){ 0 };
}

static MPI_Count pieces_in(const struct wm_shape *s)
{
	return s ? s->pieces : 1;
}

static struct wm_shape *run_new(const struct wm_run *run)
{
	struct wm_shape *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->size = run->count * run->len;
	s->pieces = run->count * pieces_in(run->child);
	s->run = *run;
	shape_get(run->child);
	return s;
}

int wm_part_run(struct wm_part *ret, MPI_Count count, MPI_Count stride, const struct wm_part *unit)
{
	const struct wm_shape *s = unit->shape;
	struct wm_run run = { .count = count, .stride = stride, .len = unit->len, .child = unit->shape };
	MPI_Count off = unit->off;
	struct wm_shape *made;

	if (count == 0 || unit->len == 0) {
		*ret = (struct wm_part){ 0 };
		return 0;
	}
	if (count == 1) {
		*ret = wm_part_get(unit);
		return 0;
	}
	if (!s && stride == unit->len) {
		*ret = (struct wm_part){ .off = off, .len = count * stride };
		return 0;
	}
	if (s && !s->entries && s->run.count * s->run.stride == stride) {       /* it goes on as it went inside */
		run = s->run;
		run.count *= count;
		run.off = 0;
		off += s->run.off;
	}
	made = run_new(&run);
	if (!made)
		return MPI_ERR_NO_MEM;
	*ret = (struct wm_part){ .off = off, .len = made->size, .shape = made };
	return 0;
}

/* Lists in the list are spread out, up to FLATTEN entries each. NULL: no memory; @parts otherwise, or what replaced them. */
static struct wm_part *flatten(struct wm_part *parts, MPI_Count *n)
{
	MPI_Count more = 0, k = 0;
	struct wm_part *flat;

	for (MPI_Count i = 0; i < *n; i++)
		if (parts[i].shape && parts[i].shape->entries && parts[i].shape->entries <= FLATTEN)
			more += parts[i].shape->entries - 1;
	if (!more)
		return parts;
	flat = malloc((size_t)(*n + more) * sizeof(*flat));
	if (!flat)
		return NULL;
	for (MPI_Count i = 0; i < *n; i++) {
		struct wm_shape *s = parts[i].shape;

		if (!s || !s->entries || s->entries > FLATTEN) {
			flat[k++] = parts[i];
			continue;
		}
		for (MPI_Count j = 0; j < s->entries; j++)
			flat[k++] = (struct wm_part){ .off = parts[i].off + s->list[j].off, .len = s->list[j].len,
						      .shape = shape_get(s->list[j].child) };
		wm_shape_put(s);
	}
	*n = k;
	return flat;
}

/* Empty parts are dropped and blocks that touch joined; answers how many are left. */
static MPI_Count join(struct wm_part *parts, MPI_Count n)
{
	MPI_Count k = 0;

	for (MPI_Count i = 0; i < n; i++) {
		struct wm_part *last = k ? &parts[k - 1] : NULL;

		if (parts[i].len == 0)
			continue;
		if (last && !last->shape && !parts[i].shape && last->off + last->len == parts[i].off)
			last->len += parts[i].len;
		else
			parts[k++] = parts[i];
	}
	return k;
}

/* Whether they are like each other, at even distances. */
static bool even(const struct wm_part *parts, MPI_Count n)
{
	for (MPI_Count i = 1; i < n; i++)
		if (parts[i].shape != parts[0].shape || parts[i].len != parts[0].len ||
		    parts[i].off - parts[i - 1].off != parts[1].off - parts[0].off)
			return false;
	return true;
}

static void parts_put(struct wm_part *parts, MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++)
		wm_part_put(&parts[i]);
}

/* Takes over the references of @parts if it succeeds. */
static int list_new(struct wm_part *ret, const struct wm_part *parts, MPI_Count n)
{
	struct wm_shape *s = calloc(1, sizeof(*s) + (size_t)n * sizeof(*s->list));

	if (!s)
		return MPI_ERR_NO_MEM;
	atomic_init(&s->refs, 1);
	s->entries = n;
	s->list = (struct wm_entry *)(s + 1);
	s->like = parts[0].len;
	for (MPI_Count i = 0; i < n; i++) {
		if (parts[i].shape || parts[i].len != s->like)
			s->like = 0;
		s->list[i] = (struct wm_entry){ .off = parts[i].off - parts[0].off, .at = s->size, .len = parts[i].len,
						.child = parts[i].shape };
		s->size += parts[i].len;
		s->pieces += pieces_in(parts[i].shape);
	}
	*ret = (struct wm_part){ .off = parts[0].off, .len = s->size, .shape = s };
	return 0;
}

int wm_part_list(struct wm_part *ret, struct wm_part *parts, MPI_Count n)
{
	struct wm_part *flat = flatten(parts, &n);
	int r = 0;

	if (!flat) {
		parts_put(parts, n);
		return MPI_ERR_NO_MEM;
	}
	n = join(flat, n);
	if (n == 0) {
		*ret = (struct wm_part){ 0 };
	} else if (n == 1) {
		*ret = flat[0];
	} else if (even(flat, n)) {
		r = wm_part_run(ret, n, flat[1].off - flat[0].off, &flat[0]);
		parts_put(flat, n);
	} else {
		r = list_new(ret, flat, n);
		if (r)
			parts_put(flat, n);
	}
	if (flat != parts)
		free(flat);
	return r;
}

int wm_part_shape(struct wm_part *part, struct wm_shape **ret_shape)
{
	struct wm_shape *s = part->shape;
	struct wm_run run = { .off = part->off, .count = 1, .stride = part->len, .len = part->len, .child = s };

	if (!s || part->off) {
		if (s && !s->entries) {                 /* the offset becomes the run's own */
			run = s->run;
			run.off += part->off;
		}
		s = run_new(&run);
		wm_shape_put(part->shape);
	}
	*part = (struct wm_part){ 0 };
	*ret_shape = s;
	return s ? 0 : MPI_ERR_NO_MEM;
}

struct wm_part wm_part_of(const struct MPI_ABI_Datatype *type)
{
	struct wm_shape *s = type->shape;

	if (!s)
		return (struct wm_part){ .len = type->size };
	if (!s->entries && s->run.count == 1)
		return (struct wm_part){ .off = s->run.off, .len = s->run.len, .shape = shape_get(s->run.child) };
	return (struct wm_part){ .len = s->size, .shape = shape_get(s) };
}
