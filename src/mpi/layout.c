/* layout.c - elements of a datatype in memory, as weft asks for them: pieces from a byte on, or bytes moved.
 *
 * Both start at any byte and go down the shape from there; neither keeps anything between calls, so that any number
 * of threads may work on one message. Addresses are numbers here: with MPI_BOTTOM they come from the type alone.
 */
#include <string.h>

#include "shape.h"

#define TINY 256        /* pieces shorter than this on average are moved rather than listed */
#define FEW 8           /* places in a unit that are each worth a loop over many units, */
#define ACROSS 64       /* so many of them at a time */

/* All @count elements as one run, as simple as it can be said. */
static struct wm_run top_run(const struct MPI_ABI_Datatype *type, MPI_Count count)
{
	struct wm_shape *s = type->shape;
	struct wm_run top = { .count = count, .stride = type->extent, .len = type->size, .child = s };

	if (s->entries)
		return top;
	if (s->run.count == 1) {
		top.off = s->run.off;
		top.child = s->run.child;
	} else if (count == 1 || s->run.count * s->run.stride == type->extent) {
		top = s->run;
		top.count *= count;
	}
	if (!top.child && top.len == top.stride) {
		top.len *= top.count;
		top.count = 1;
	}
	return top;
}

/* The entry of a list that byte @at is in. */
static MPI_Count find(const struct wm_shape *s, MPI_Count at)
{
	MPI_Count low = 0, high = s->entries;

	if (s->like)
		return at / s->like;
	while (high - low > 1) {
		MPI_Count mid = low + (high - low) / 2;

		if (s->list[mid].at <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Pieces */

struct out {
	struct iovec *iov;
	int n, max;
};

static bool out_shape(struct out *o, const struct wm_shape *s, uintptr_t base, MPI_Count at);

/* From byte @skip of a block or shape at @addr on. False: no more room. */
static bool out_unit(struct out *o, const struct wm_shape *child, uintptr_t addr, MPI_Count len, MPI_Count skip)
{
	struct iovec *last = o->n ? &o->iov[o->n - 1] : NULL;

	if (child)
		return out_shape(o, child, addr, skip);
	addr += (uintptr_t)skip;
	if (last && (uintptr_t)last->iov_base + last->iov_len == addr) {
		last->iov_len += (size_t)(len - skip);
		return true;
	}
	if (o->n == o->max)
		return false;
	o->iov[o->n++] = (struct iovec){ .iov_base = (void *)addr, .iov_len = (size_t)(len - skip) };
	return true;
}

static bool out_run(struct out *o, const struct wm_run *run, uintptr_t base, MPI_Count at)
{
	MPI_Count first = at / run->len, skip = at % run->len;

	base += (uintptr_t)run->off;
	for (MPI_Count i = first; i < run->count; i++, skip = 0)
		if (!out_unit(o, run->child, base + (uintptr_t)(i * run->stride), run->len, skip))
			return false;
	return true;
}

static bool out_shape(struct out *o, const struct wm_shape *s, uintptr_t base, MPI_Count at)
{
	if (!s->entries)
		return out_run(o, &s->run, base, at);
	for (MPI_Count i = at ? find(s, at) : 0; i < s->entries; i++) {
		const struct wm_entry *e = &s->list[i];

		if (!out_unit(o, e->child, base + (uintptr_t)e->off, e->len, at > e->at ? at - e->at : 0))
			return false;
	}
	return true;
}

static int pieces(const struct weft_layout *weft, size_t at, struct iovec *ret_iov, int max)
{
	const struct wm_layout *l = (const struct wm_layout *)weft;
	struct wm_run top = top_run(l->type, l->count);
	struct out o = { .iov = ret_iov, .max = max };

	if (at < weft->len)
		out_run(&o, &top, (uintptr_t)l->base, (MPI_Count)at);
	return o.n;
}

/* Moving */

/* One block; the two may have any alignment. A short one goes in two halves that may overlap inside it. */
static inline __attribute__((always_inline)) void copy(char *to, const char *from, size_t len)
{
	if (__builtin_constant_p(len) || len > 64) {
		memcpy(to, from, len);
	} else if (len > 32) {
		memcpy(to, from, 32);
		memcpy(to + len - 32, from + len - 32, 32);
	} else if (len >= 16) {
		memcpy(to, from, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

/* A loop of its own for each length that is common, and there tight: @loop is given the length. */
#define BY_LENGTH(len, loop)                                                                                            \
	switch (len) {                                                                                                  \
	case 1:                                                                                                         \
		loop(1);                                                                                                \
		break;                                                                                                  \
	case 2:                                                                                                         \
		loop(2);                                                                                                \
		break;                                                                                                  \
	case 4:                                                                                                         \
		loop(4);                                                                                                \
		break;                                                                                                  \
	case 8:                                                                                                         \
		loop(8);                                                                                                \
		break;                                                                                                  \
	case 12:                                                                                                        \
		loop(12);                                                                                               \
		break;                                                                                                  \
	case 16:                                                                                                        \
		loop(16);                                                                                               \
		break;                                                                                                  \
	case 24:                                                                                                        \
		loop(24);                                                                                               \
		break;                                                                                                  \
	case 32:                                                                                                        \
		loop(32);                                                                                               \
		break;                                                                                                  \
	default:                                                                                                        \
		loop((size_t)len);                                                                                      \
	}

/* @n blocks, @stride apart in memory and @step apart in @bytes. */
static void move_blocks(uintptr_t addr, MPI_Count stride, char *bytes, MPI_Count step, MPI_Count len, MPI_Count n, bool in)
{
	char *to = in ? (char *)addr : bytes;
	const char *from = in ? bytes : (const char *)addr;
	MPI_Count to_stride = in ? stride : step, from_stride = in ? step : stride;

#define LOOP(k)                                                                                                         \
	for (; n > 0; n--, to += to_stride, from += from_stride)                                                        \
		copy(to, from, k)
	BY_LENGTH(len, LOOP)
#undef LOOP
}

/* @n entries from @e on, each a block of @len bytes. */
static void move_like(const struct wm_entry *e, uintptr_t base, char *bytes, MPI_Count len, MPI_Count n, bool in)
{
#define OUT(k)                                                                                                          \
	for (; n > 0; n--, e++, bytes += (k))                                                                           \
		copy(bytes, (const char *)(base + (uintptr_t)e->off), k)
#define IN(k)                                                                                                           \
	for (; n > 0; n--, e++, bytes += (k))                                                                           \
		copy((char *)(base + (uintptr_t)e->off), bytes, k)
	if (in)
		BY_LENGTH(len, IN)
	else
		BY_LENGTH(len, OUT)
#undef OUT
#undef IN
}

static void move_shape(const struct wm_shape *s, uintptr_t base, MPI_Count at, char *bytes, MPI_Count n, bool in);

/* @n bytes from byte @skip of a block or shape at @addr on. */
static inline void move_unit(const struct wm_shape *child, uintptr_t addr, MPI_Count skip, char *bytes, MPI_Count n, bool in)
{
	if (child)
		move_shape(child, addr, skip, bytes, n, in);
	else if (in)
		copy((char *)(addr + (uintptr_t)skip), bytes, (size_t)n);
	else
		copy(bytes, (const char *)(addr + (uintptr_t)skip), (size_t)n);
}

/* @n whole units that are lists or short runs: what is at one place in each of them goes in one loop, for a few units
 * at a time, whose memory stays near. */
static void move_across(const struct wm_run *run, uintptr_t addr, char *bytes, MPI_Count n, bool in)
{
	const struct wm_shape *s = run->child;
	MPI_Count places = s->entries ? s->entries : s->run.count;

	for (MPI_Count few; n > 0; n -= few, addr += (uintptr_t)(few * run->stride), bytes += few * run->len) {
		few = n < ACROSS ? n : ACROSS;
		for (MPI_Count i = 0; i < places; i++) {
			MPI_Count off = s->entries ? s->list[i].off : s->run.off + i * s->run.stride;
			MPI_Count len = s->entries ? s->list[i].len : s->run.len, at = s->entries ? s->list[i].at : i * len;
			struct wm_shape *child = s->entries ? s->list[i].child : s->run.child;

			if (!child)
				move_blocks(addr + (uintptr_t)off, run->stride, bytes + at, run->len, len, few, in);
			else
				for (MPI_Count k = 0; k < few; k++)
					move_shape(child, addr + (uintptr_t)(off + k * run->stride), 0, bytes + at + k * run->len,
						   len, in);
		}
	}
}

/* @n whole units. */
static void move_units(const struct wm_run *run, uintptr_t addr, char *bytes, MPI_Count n, bool in)
{
	const struct wm_shape *s = run->child;

	if (!s) {
		move_blocks(addr, run->stride, bytes, run->len, run->len, n, in);
	} else if (n > 1 && (s->entries ? s->entries : s->run.count) <= FEW) {
		move_across(run, addr, bytes, n, in);
	} else if (!s->entries && !s->run.child) {
		for (addr += (uintptr_t)s->run.off; n > 0; n--, addr += (uintptr_t)run->stride, bytes += run->len)
			move_blocks(addr, s->run.stride, bytes, s->run.len, s->run.len, s->run.count, in);
	} else {
		for (; n > 0; n--, addr += (uintptr_t)run->stride, bytes += run->len)
			move_shape(s, addr, 0, bytes, run->len, in);
	}
}

static void move_run(const struct wm_run *run, uintptr_t base, MPI_Count at, char *bytes, MPI_Count n, bool in)
{
	uintptr_t addr = base + (uintptr_t)run->off;
	MPI_Count whole;

	if (at) {
		MPI_Count skip = at % run->len;
		MPI_Count part = run->len - skip < n ? run->len - skip : n;

		addr += (uintptr_t)(at / run->len * run->stride);
		if (skip) {
			move_unit(run->child, addr, skip, bytes, part, in);
			addr += (uintptr_t)run->stride;
			bytes += part;
			n -= part;
		}
	}
	whole = n == run->count * run->len ? run->count : n / run->len;
	move_units(run, addr, bytes, whole, in);
	n -= whole * run->len;
	if (n)
		move_unit(run->child, addr + (uintptr_t)(whole * run->stride), 0, bytes + whole * run->len, n, in);
}

static void move_shape(const struct wm_shape *s, uintptr_t base, MPI_Count at, char *bytes, MPI_Count n, bool in)
{
	if (!s->entries) {
		move_run(&s->run, base, at, bytes, n, in);
		return;
	}
	for (const struct wm_entry *e = &s->list[at ? find(s, at) : 0]; n > 0; e++) {
		MPI_Count skip = at > e->at ? at - e->at : 0;
		MPI_Count part = e->len - skip < n ? e->len - skip : n;

		if (s->like && !skip && n >= s->like) {
			part = n / s->like * s->like;
			move_like(e, base, bytes, s->like, n / s->like, in);
			e += n / s->like - 1;
		} else {
			move_unit(e->child, base + (uintptr_t)e->off, skip, bytes, part, in);
		}
		bytes += part;
		n -= part;
	}
}

static void move(const struct weft_layout *weft, size_t at, void *bytes, size_t n, int in)
{
	const struct wm_layout *l = (const struct wm_layout *)weft;
	struct wm_run top = top_run(l->type, l->count);

	move_run(&top, (uintptr_t)l->base, (MPI_Count)at, bytes, (MPI_Count)n, in);
}

void wm_layout_init(struct wm_layout *layout, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type)
{
	const struct wm_shape *s = type->shape;

	*layout = (struct wm_layout){
		.weft = { .len = (size_t)(count * type->size), .pieces = pieces, .move = s->size / s->pieces < TINY ? move : NULL },
		.type = type,
		.base = (char *)(uintptr_t)buf,
		.count = count,
	};
}

static void move_type(char *bytes, uintptr_t base, MPI_Count count, const struct MPI_ABI_Datatype *type, MPI_Count at, MPI_Count n,
		      bool in)
{
	struct wm_run top;

	if (n <= 0)
		return;
	if (type->plain)
		top = (struct wm_run){ .count = 1, .len = count * type->size };
	else
		top = top_run(type, count);
	move_run(&top, base, at, bytes, n, in);
}

void wm_type_pack(void *bytes, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, MPI_Count at, MPI_Count n)
{
	move_type(bytes, (uintptr_t)buf, count, type, at, n, false);
}

void wm_type_unpack(const void *bytes, void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, MPI_Count at, MPI_Count n)
{
	move_type((char *)(uintptr_t)bytes, (uintptr_t)buf, count, type, at, n, true);
}
