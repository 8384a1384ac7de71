/* space.c - reserving address space for buffers and handles, and finding what lies where. See space.h.
 *
 * Locks: space_lock guards the chunks' unit maps, the areas and all writing of the table. System
 * calls that only change how space is used (populate, dropping pages) run outside it.
 */
#include "mem/space.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/poison.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CHUNK_BYTES ((size_t)1 << WF_CLASS_CHUNK)
#define UNIT_BYTES ((size_t)1 << WF_CLASS_UNIT)
#define QUARTER_BYTES (CHUNK_BYTES / WF_AREA_QUARTERS)

struct wf_chunk {
	char *data;                             /* constant */
	struct wf_buf *handles;                 /* constant */
	_Atomic uint8_t class[WF_UNITS];        /* set when a piece is made, read by anyone */
	struct wf_piece piece[WF_UNITS];        /* by first unit */
	uint32_t used;                          /* under space_lock: one bit per unit */
	bool listed;                            /* under space_lock */
	struct wf_chunk *next;                  /* under space_lock: chunks that are not full */
};

struct area {                                   /* under space_lock; chunk[] of open quarters is constant */
	alignas(WF_LINE) char *handles;
	unsigned open;                          /* quarters whose memory is there */
	struct wf_chunk *chunk[WF_AREA_QUARTERS];       /* NULL: handles for views and big ones */
	struct area *next;                      /* older; a leak checker finds all from the newest */
};

_Atomic(struct wf_leaf *) wf_space_root[1 << WF_ROOT_BITS];

static pthread_mutex_t space_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_chunk *chunks;                 /* not full */
static struct area *area;                       /* the newest */
static struct wf_buf *spare, *spare_end;        /* handles not yet made of the newest quarter without chunk */

/* Address space aligned to a chunk, not accessible yet; NULL: none. */
static void *space_reserve(size_t bytes)
{
	size_t all = bytes + CHUNK_BYTES, before;
	char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (CHUNK_BYTES - 1);
	if (before)
		munmap(p, before);
	if (before < CHUNK_BYTES)
		munmap(p + before + bytes, CHUNK_BYTES - before);
	return p + before;
}

/* The table says @what of the @bytes at @mem from now on; all of them or, on failure, none. It cannot fail
 * where it has succeeded before: leaves stay. */
static int table_set_locked(const void *mem, size_t bytes, uintptr_t what)
{
	uintptr_t first = (uintptr_t)mem >> WF_CLASS_CHUNK, n = bytes >> WF_CLASS_CHUNK;

	if ((first + n) >> (WF_ADDR_BITS - WF_CLASS_CHUNK))
		return -ENOMEM;
	for (uintptr_t i = first; i < first + n; i++) {
		_Atomic(struct wf_leaf *) *slot = &wf_space_root[i >> WF_LEAF_BITS];

		/* relaxed: only the holder of the lock writes it. */
		if (!atomic_load_explicit(slot, memory_order_relaxed)) {
			struct wf_leaf *leaf = calloc(1, sizeof(*leaf));

			if (!leaf)
				return -ENOMEM;
			atomic_store_explicit(slot, leaf, memory_order_release);        /* T1 */
		}
	}
	for (uintptr_t i = first; i < first + n; i++) {
		_Atomic(struct wf_leaf *) *slot = &wf_space_root[i >> WF_LEAF_BITS];
		struct wf_leaf *leaf = atomic_load_explicit(slot, memory_order_relaxed);

		atomic_store_explicit(&leaf->at[i % WF_LEAF_ENTRIES], what, memory_order_release); /* T1 */
	}
	return 0;
}

static int area_new_locked(void)
{
	struct area *a = aligned_alloc(alignof(struct area), sizeof(*a));

	if (!a)
		return -ENOMEM;
	memset(a, 0, sizeof(*a));
	a->handles = space_reserve(CHUNK_BYTES);
	if (!a->handles) {
		free(a);
		return -ENOMEM;
	}
	a->next = area;
	area = a;
	return 0;
}

/* A quarter of an area, for @chunk or for nobody in particular. An area that never got an open
 * quarter stays the newest, so a failure here loses nothing. */
static int quarter_open_locked(struct wf_chunk *chunk, struct wf_buf **ret_handles)
{
	char *at;
	int r;

	if (!area || area->open == WF_AREA_QUARTERS) {
		r = area_new_locked();
		if (r < 0)
			return r;
	}
	at = area->handles + area->open * QUARTER_BYTES;
	if (mprotect(at, QUARTER_BYTES, PROT_READ | PROT_WRITE) < 0)
		return -ENOMEM;
	area->chunk[area->open] = chunk;
	r = table_set_locked(area->handles, CHUNK_BYTES,
			     (uintptr_t)area | WF_AT_AREA | (uintptr_t)(area->open + 1) << WF_AT_OPEN_SHIFT);
	if (r < 0)
		return r;
	area->open++;
	*ret_handles = (struct wf_buf *)(void *)at;
	return 0;
}

static int chunk_new_locked(struct wf_chunk **ret_chunk)
{
	struct wf_chunk *c = aligned_alloc(WF_LINE, (sizeof(*c) + WF_LINE - 1) & ~(size_t)(WF_LINE - 1));
	int r;

	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	for (unsigned u = 0; u < WF_UNITS; u++) {
		c->piece[u].chunk = c;
		c->piece[u].unit = u;
	}
	c->data = space_reserve(CHUNK_BYTES);
	if (!c->data) {
		r = -ENOMEM;
		goto undo_alloc;
	}
	(void)madvise(c->data, CHUNK_BYTES, MADV_DONTDUMP);
	r = table_set_locked(c->data, CHUNK_BYTES, 0);          /* so that it cannot fail later */
	if (r < 0)
		goto undo_data;
	r = quarter_open_locked(c, &c->handles);
	if (r < 0)
		goto undo_data;
	table_set_locked(c->data, CHUNK_BYTES, (uintptr_t)c | WF_AT_CHUNK);
	*ret_chunk = c;
	return 0;

undo_data:
	munmap(c->data, CHUNK_BYTES);
undo_alloc:
	free(c);
	return r;
}

/* The first free run of @n units (a power of two), aligned to @n; -1: none. */
static int units_find(const struct wf_chunk *c, unsigned n)
{
	uint32_t mask = n == WF_UNITS ? UINT32_MAX : (1u << n) - 1;

	for (unsigned u = 0; u < WF_UNITS; u += n)
		if (!(c->used & mask << u))
			return (int)u;
	return -1;
}

static void units_mark_locked(struct wf_chunk *c, unsigned u, unsigned n, bool used)
{
	uint32_t mask = (n == WF_UNITS ? UINT32_MAX : (1u << n) - 1) << u;

	if (used)
		c->used |= mask;
	else
		c->used &= ~mask;
	if (!c->listed && c->used != UINT32_MAX) {
		c->listed = true;
		c->next = chunks;
		chunks = c;
	}
}

/* Chunks found full leave the list on the way. */
static int units_take_locked(unsigned n, struct wf_chunk **ret_chunk)
{
	struct wf_chunk **p = &chunks, *c;
	int u, r;

	while ((c = *p)) {
		if (c->used == UINT32_MAX) {
			c->listed = false;
			*p = c->next;
			continue;
		}
		u = units_find(c, n);
		if (u >= 0)
			goto found;
		p = &c->next;
	}
	r = chunk_new_locked(&c);
	if (r < 0)
		return r;
	u = 0;
found:
	units_mark_locked(c, (unsigned)u, n, true);
	*ret_chunk = c;
	return u;
}

static unsigned class_units(unsigned class)
{
	return class <= WF_CLASS_UNIT ? 1 : 1u << (class - WF_CLASS_UNIT);
}

int wf_space_piece_new(unsigned class, struct wf_piece **ret_piece)
{
	unsigned n = class_units(class);
	struct wf_chunk *c;
	struct wf_piece *p;
	char *data = NULL;
	int u;

	pthread_mutex_lock(&space_lock);
	u = units_take_locked(n, &c);
	if (u >= 0)
		data = c->data + (unsigned)u * UNIT_BYTES;
	if (data && mprotect(data, n * UNIT_BYTES, PROT_READ | PROT_WRITE) < 0) {
		units_mark_locked(c, (unsigned)u, n, false);
		u = -ENOMEM;
	}
	pthread_mutex_unlock(&space_lock);
	if (u < 0)
		return u;
	p = &c->piece[u];
	p->class = class;
	p->n = class <= WF_CLASS_UNIT ? 1u << (WF_CLASS_UNIT - class) : 1;
	p->carved = 0;
	p->populated = 0;
	p->pass = p->idle = 0;
	/* relaxed: who has a buffer of this piece knows it through whoever gave it to him; for any other
	 * pointer every value leads to some handle of this unit, which may be read. */
	for (unsigned i = 0; i < n; i++)
		atomic_store_explicit(&c->class[(unsigned)u + i], (uint8_t)class, memory_order_relaxed);
	wf_poison(data, n * UNIT_BYTES);
	*ret_piece = p;
	return 0;
}

void wf_space_piece_free(struct wf_piece *p)
{
	unsigned n = class_units(p->class);

	(void)madvise(p->chunk->data + p->unit * UNIT_BYTES, n * UNIT_BYTES, MADV_DONTNEED);
	pthread_mutex_lock(&space_lock);
	units_mark_locked(p->chunk, p->unit, n, false);
	pthread_mutex_unlock(&space_lock);
}

struct wf_buf *wf_space_buf(struct wf_piece *p, unsigned i)
{
	return p->chunk->handles + p->unit * WF_UNIT_HANDLES + i;
}

void *wf_space_data(struct wf_piece *p, unsigned i)
{
	return p->chunk->data + p->unit * UNIT_BYTES + ((size_t)i << p->class);
}

struct wf_piece *wf_space_piece_of(struct wf_buf *b)
{
	uintptr_t addr = (uintptr_t)b;
	const struct area *a = (const struct area *)(wf_space_at(addr) & ~(uintptr_t)WF_AT_BITS);
	size_t i = (addr & (CHUNK_BYTES - 1)) / sizeof(*b);

	return &a->chunk[i / (WF_UNITS * WF_UNIT_HANDLES)]->piece[i / WF_UNIT_HANDLES % WF_UNITS];
}

static struct wf_buf *chunk_buf_of(struct wf_chunk *c, size_t off)
{
	unsigned u = (unsigned)(off / UNIT_BYTES);
	unsigned class = atomic_load_explicit(&c->class[u], memory_order_relaxed);      /* see piece_new */

	if (!class)
		return NULL;
	if (class > WF_CLASS_UNIT)
		return c->handles + (u & ~(class_units(class) - 1)) * WF_UNIT_HANDLES;
	return c->handles + u * WF_UNIT_HANDLES + (off % UNIT_BYTES >> class);
}

struct wf_buf *wf_space_buf_of(const void *mem)
{
	uintptr_t at = wf_space_at((uintptr_t)mem), what = at & ~(uintptr_t)WF_AT_BITS;

	switch (at & WF_AT_WHAT) {
	case WF_AT_CHUNK:
		return chunk_buf_of((struct wf_chunk *)what, (uintptr_t)mem & (CHUNK_BYTES - 1));
	case WF_AT_BIG:
		return (struct wf_buf *)what;
	default:
		return NULL;
	}
}

int wf_space_fill_handles(int which, unsigned max, struct wf_link **ret_list)
{
	struct wf_link *list = NULL;
	unsigned n = 0;
	int r = 0;

	(void)which;
	pthread_mutex_lock(&space_lock);
	if (spare == spare_end) {
		r = quarter_open_locked(NULL, &spare);
		if (r == 0)
			spare_end = spare + WF_UNITS * WF_UNIT_HANDLES;
	}
	for (; r == 0 && n < max && spare < spare_end; n++, spare++) {
		spare->link.next = list;
		list = &spare->link;
	}
	pthread_mutex_unlock(&space_lock);
	if (r < 0)
		return r;
	*ret_list = list;
	return (int)n;
}

int wf_space_big_map(struct wf_buf *b, unsigned class)
{
	size_t bytes = (size_t)1 << class;
	void *mem = space_reserve(bytes);
	int r = -ENOMEM;

	if (!mem)
		return r;
	if (mprotect(mem, bytes, PROT_READ | PROT_WRITE) < 0)
		goto undo;
	(void)madvise(mem, bytes, MADV_DONTDUMP);
	pthread_mutex_lock(&space_lock);
	r = table_set_locked(mem, bytes, (uintptr_t)b | WF_AT_BIG);
	pthread_mutex_unlock(&space_lock);
	if (r < 0)
		goto undo;
	b->home = mem;
	b->class = (uint8_t)class;
	return 0;
undo:
	munmap(mem, bytes);
	return r;
}

void wf_space_big_unmap(struct wf_buf *b)
{
	size_t bytes = (size_t)1 << b->class;

	pthread_mutex_lock(&space_lock);
	table_set_locked(b->home, bytes, 0);
	pthread_mutex_unlock(&space_lock);
	wf_unpoison(b->home, bytes);            /* whoever maps memory here next is not ours */
	munmap(b->home, bytes);
}

void wf_space_populate(void *mem, size_t bytes, bool huge)
{
	if (huge)
		(void)madvise(mem, bytes, MADV_HUGEPAGE);
	(void)madvise(mem, bytes, MADV_POPULATE_WRITE);
}
