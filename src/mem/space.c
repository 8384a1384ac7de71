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
#include <weft/base.h>

#include "mem/atlas.h"
#include "mem/ledger.h"
#include "mem/poison.h"
#include "mem/straight.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define UNIT_BYTES ((size_t)1 << WF_CLASS_UNIT)
#define QUARTER_BYTES (WF_CHUNK_BYTES / WF_AREA_QUARTERS)

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
static uint32_t nsegments;                      /* under space_lock: chunks that have a number */
static _Atomic uint32_t nbigs;                  /* big segments that have had a number */

/* Address space aligned to a chunk, not accessible yet; NULL: none. */
static void *space_reserve(size_t bytes)
{
	size_t all = bytes + WF_CHUNK_BYTES, before;
	char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (WF_CHUNK_BYTES - 1);
	if (before)
		munmap(p, before);
	if (before < WF_CHUNK_BYTES)
		munmap(p + before + bytes, WF_CHUNK_BYTES - before);
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
	a->handles = space_reserve(WF_CHUNK_BYTES);
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
	r = table_set_locked(area->handles, WF_CHUNK_BYTES,
			     (uintptr_t)area | WF_AT_AREA | (uintptr_t)(area->open + 1) << WF_AT_OPEN_SHIFT);
	if (r < 0)
		return r;
	area->open++;
	*ret_handles = (struct wf_buf *)(void *)at;
	return 0;
}

static struct wf_chunk *chunk_alloc(uint32_t process, uint32_t segment)
{
	struct wf_chunk *c = aligned_alloc(WF_LINE, (sizeof(*c) + WF_LINE - 1) & ~(size_t)(WF_LINE - 1));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->process = process;
	c->segment = segment;
	c->fd = -1;
	for (unsigned u = 0; u < WF_UNITS; u++) {
		c->piece[u].chunk = c;
		c->piece[u].unit = u;
	}
	return c;
}

/* Data and entries of a chunk that is a segment, mapped; @prot of the data. */
static int chunk_map(struct wf_chunk *c, int fd, int prot)
{
	size_t bytes = WF_ENTRIES * sizeof(*c->entries);

	if (!wf_segment_map_part(fd, 0, WF_CHUNK_BYTES, c->data, prot))
		return -ENOMEM;
	c->entries = wf_segment_map_part(fd, WF_CHUNK_BYTES, bytes, NULL, PROT_READ | PROT_WRITE);
	return c->entries ? 0 : -ENOMEM;
}

static void chunk_unmap(struct wf_chunk *c)
{
	if (c->entries)
		munmap(c->entries, WF_ENTRIES * sizeof(*c->entries));
	munmap(c->data, WF_CHUNK_BYTES);
}

/* @c, made here, becomes a segment: others may ask for it. Undone by chunk_unshare. */
static int chunk_share_locked(struct wf_chunk *c)
{
	int r = wf_ledger_begin();      /* whoever gets a buffer of it must find where to return it */

	if (r < 0)
		return r;
	if (nsegments == WF_SEGMENT_CHUNKS)
		return weft_fail(-ENOMEM, "%u segments of buffers are the most", WF_SEGMENT_CHUNKS);
	c->process = wf_segments.process;
	c->segment = WF_SEGMENT_CHUNK + nsegments;
	c->fd = wf_segment_make("weft-buffers", WF_CHUNK_SEGMENT);
	if (c->fd < 0)
		return c->fd;
	r = chunk_map(c, c->fd, PROT_NONE);
	if (r == 0)
		r = wf_segments.hooks.tell(c->segment, c->fd);
	if (r < 0)
		wf_segment_close(c->fd);
	return r;
}

static void chunk_unshare(struct wf_chunk *c)
{
	wf_segments.hooks.untell(c->segment);
	wf_segment_close(c->fd);
}

static int chunk_new_locked(struct wf_chunk **ret_chunk)
{
	struct wf_chunk *c = chunk_alloc(0, 0);
	bool shared = wf_segments_shared();
	int r = -ENOMEM;

	if (!c)
		return -ENOMEM;
	c->data = space_reserve(WF_CHUNK_BYTES);
	if (!c->data)
		goto undo_alloc;
	(void)madvise(c->data, WF_CHUNK_BYTES, MADV_DONTDUMP);
	r = table_set_locked(c->data, WF_CHUNK_BYTES, 0);       /* so that it cannot fail later */
	if (r == 0 && shared)
		r = chunk_share_locked(c);
	if (r < 0)
		goto undo_data;
	r = quarter_open_locked(c, &c->handles);
	if (r < 0)
		goto undo_share;
	table_set_locked(c->data, WF_CHUNK_BYTES, (uintptr_t)c | WF_AT_CHUNK);
	if (shared) {
		nsegments++;
		wf_atlas_own_chunk(c);
	}
	*ret_chunk = c;
	return 0;

undo_share:
	if (shared)
		chunk_unshare(c);
undo_data:
	chunk_unmap(c);
undo_alloc:
	free(c);
	return r;
}

int wf_space_far_chunk(int fd, uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk)
{
	struct wf_chunk *c = chunk_alloc(process, segment);
	int r = -ENOMEM;

	if (!c)
		return -ENOMEM;
	c->data = space_reserve(WF_CHUNK_BYTES);
	if (!c->data)
		goto undo_alloc;
	r = chunk_map(c, fd, PROT_READ | PROT_WRITE);
	if (r < 0)
		goto undo_data;
	pthread_mutex_lock(&space_lock);
	r = table_set_locked(c->data, WF_CHUNK_BYTES, 0);
	if (r == 0)
		r = quarter_open_locked(c, &c->handles);
	if (r == 0)
		table_set_locked(c->data, WF_CHUNK_BYTES, (uintptr_t)c | WF_AT_CHUNK);
	pthread_mutex_unlock(&space_lock);
	if (r < 0)
		goto undo_data;
	*ret_chunk = c;
	return 0;

undo_data:
	chunk_unmap(c);
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

int wf_space_piece_reserve(struct wf_piece *p, size_t from, size_t bytes, unsigned first, unsigned n)
{
	const struct wf_chunk *c = p->chunk;
	unsigned places = wf_class_wide(p->class) ? WF_WIDE : 1;
	size_t entry = p->unit * WF_UNIT_HANDLES + first * places;
	int r = 0;

	if (!c->entries)
		return 0;
	if (bytes && p->class >= WF_CLASS_HUGE && wf_segment_huge())
		wf_space_populate(c->data + p->unit * UNIT_BYTES + from, bytes, true);
	if (bytes)
		r = wf_segment_reserve(c->fd, p->unit * UNIT_BYTES + from, bytes);
	if (r == 0)
		r = wf_segment_reserve(c->fd, WF_CHUNK_BYTES + entry * sizeof(struct wf_entry), n * places * sizeof(struct wf_entry));
	return r;
}

/* In a segment the pages are gone only if the file has them no more. */
static void piece_drop(struct wf_piece *p, unsigned n)
{
	size_t entries = WF_UNIT_HANDLES * sizeof(struct wf_entry);

	wf_segment_drop(p->chunk->fd, p->unit * UNIT_BYTES, n * UNIT_BYTES);
	wf_segment_drop(p->chunk->fd, WF_CHUNK_BYTES + p->unit * entries, n * entries);
}

void wf_space_piece_free(struct wf_piece *p)
{
	unsigned n = class_units(p->class);

	if (p->chunk->entries)
		piece_drop(p, n);
	else
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
	size_t i = (addr & (WF_CHUNK_BYTES - 1)) / sizeof(*b);

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
		return chunk_buf_of((struct wf_chunk *)what, (uintptr_t)mem & (WF_CHUNK_BYTES - 1));
	case WF_AT_BIG:
		return (struct wf_buf *)what;
	default:
		return NULL;
	}
}

struct wf_buf *wf_buf_look(const void *p)
{
	struct wf_buf *b = wf_space_handle(p);
	struct wf_cache *c = b ? wf_depot_cache() : NULL;

	if (c) {
		c->area = (uintptr_t)p & ~(WF_CHUNK_BYTES - 1);
		c->area_bytes = (wf_space_at(c->area) >> WF_AT_OPEN_SHIFT & WF_AT_OPEN) * QUARTER_BYTES;
	}
	return b;
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

/* @b is 2^@class bytes of address space known to the table: of @fd, or (-1) private. */
static int big_place(struct wf_buf *b, unsigned class, int fd)
{
	size_t bytes = (size_t)1 << class;
	void *mem = space_reserve(bytes);
	int r = -ENOMEM;

	if (!mem)
		return r;
	if (fd >= 0 ? !wf_segment_map(fd, bytes, mem) : mprotect(mem, bytes, PROT_READ | PROT_WRITE) < 0)
		goto undo;
	(void)madvise(mem, bytes, MADV_DONTDUMP);
	pthread_mutex_lock(&space_lock);
	r = table_set_locked(mem, bytes, (uintptr_t)b | WF_AT_BIG);
	pthread_mutex_unlock(&space_lock);
	if (r < 0)
		goto undo;
	b->home = mem;
	return 0;
undo:
	munmap(mem, bytes);
	return r;
}

static void big_unplace(struct wf_buf *b, unsigned class)
{
	size_t bytes = (size_t)1 << class;

	pthread_mutex_lock(&space_lock);
	table_set_locked(b->home, bytes, 0);
	pthread_mutex_unlock(&space_lock);
	wf_unpoison(b->home, bytes);            /* whoever maps memory here next is not ours */
	munmap(b->home, bytes);
}

int wf_space_far_big(int fd, struct wf_buf *b, unsigned class)
{
	int r;

	b->class = (uint8_t)(class | WF_CLASS_FAR);
	b->slot = 0;
	r = big_place(b, class, fd);
	if (r < 0)
		b->class = 0;
	return r;
}

/* A segment for @b alone, all of it reserved, an entry in the ledger, others may ask for it. */
static int big_share(struct wf_buf *b, unsigned class)
{
	size_t bytes = (size_t)1 << class;
	struct wf_posting *rec;
	uint32_t slot, segment;
	int r = wf_ledger_new(b, &slot);

	if (r < 0)
		return r;
	rec = wf_ledger_posting(slot);
	/* relaxed: a number, nothing else. */
	segment = WF_SEGMENT_BIG + atomic_fetch_add_explicit(&nbigs, 1, memory_order_relaxed);
	atomic_store_explicit(&rec->segment, segment, memory_order_relaxed);
	r = rec->fd = wf_segment_make("weft-big-buffer", bytes);
	if (r < 0)
		goto undo_slot;
	r = big_place(b, class, rec->fd);
	if (r < 0)
		goto undo_fd;
	if (wf_segment_huge())
		wf_space_populate(b->home, bytes, true);
	r = wf_segment_reserve(rec->fd, 0, bytes);
	if (r == 0)
		r = wf_segments.hooks.tell(segment, rec->fd);
	if (r < 0)
		goto undo_place;
	b->slot = slot;
	return 0;

undo_place:
	big_unplace(b, class);
undo_fd:
	wf_segment_close(rec->fd);
undo_slot:
	wf_ledger_end(slot);
	return r;
}

int wf_space_big_map(struct wf_buf *b, unsigned class)
{
	int r;

	b->class = (uint8_t)class;
	b->slot = 0;
	r = wf_segments_shared() ? big_share(b, class) : big_place(b, class, -1);
	if (r < 0)
		b->class = 0;
	return r;
}

void wf_space_big_unmap(struct wf_buf *b)
{
	unsigned class = b->class & ~(unsigned)WF_CLASS_FAR;
	struct wf_posting *rec;

	if (class == b->class && b->slot) {
		rec = wf_ledger_posting(b->slot);
		wf_segments.hooks.untell(wf_ledger_segment(b->slot));
		wf_segment_drop(rec->fd, 0, (size_t)1 << class);        /* whoever still maps it keeps no pages */
		wf_segment_close(rec->fd);
		wf_ledger_end(b->slot);
	}
	big_unplace(b, class);
}

void wf_space_populate(void *mem, size_t bytes, bool huge)
{
	if (huge)
		(void)madvise(mem, bytes, MADV_HUGEPAGE);
	(void)madvise(mem, bytes, MADV_POPULATE_WRITE);
}
