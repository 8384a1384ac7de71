/* atlas.c - mapping segments of other processes, and finding what is mapped. See atlas.h.
 *
 * Locks: atlas_lock; under it a depot's and the space lock. A process is asked for only when it has given something.
 */
#include "mem/atlas.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <weft/base.h>

#include "mem/bury.h"
#include "mem/ledger.h"
#include "mem/poison.h"
#include "mem/pool.h"
#include "mem/share.h"
#include "mem/word.h"

#define BIGS_KEPT 16                    /* of a process, mapped though nobody here uses them */

_Atomic(struct wf_maps *) wf_atlas[WF_PROCESSES];

static pthread_mutex_t atlas_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_maps mine;
static bool dead[WF_PROCESSES];         /* under the lock */

void wf_atlas_begin(uint32_t process)
{
	atomic_store_explicit(&wf_atlas[process], &mine, memory_order_release);         /* A1 */
}

void wf_atlas_own_chunk(struct wf_chunk *c)
{
	atomic_store_explicit(&mine.chunk[c->segment - WF_SEGMENT_CHUNK], c, memory_order_release);     /* A1 */
}

void wf_atlas_own_ledger(struct wf_ledger *l)
{
	atomic_store_explicit(&mine.ledger, l, memory_order_release);                   /* A1 */
}

void wf_atlas_hold(void)
{
	pthread_mutex_lock(&atlas_lock);
}

void wf_atlas_release(void)
{
	pthread_mutex_unlock(&atlas_lock);
}

static void big_add_locked(struct wf_maps *m, struct wf_big *big)
{
	big->next = m->bigs;
	m->bigs = big;
	m->nbigs++;
}

/* Out of its list; NULL: not there. */
static struct wf_big *big_find_locked(struct wf_maps *m, uint32_t segment)
{
	for (struct wf_big **p = &m->bigs, *big; (big = *p); p = &big->next)
		if (big->segment == segment) {
			*p = big->next;
			m->nbigs--;
			return big;
		}
	return NULL;
}

/* Another's segment, checked: its descriptor and size. Ours is never asked for: all of it is mapped.
 * -EBADMSG: there is none; -ENOMEM: not now. */
static int descriptor_get(uint32_t process, uint32_t segment, size_t least, int64_t *ret_bytes)
{
	int64_t bytes;
	int fd;

	if (!wf_segments_shared() || process == wf_segments.process)
		return weft_fail(-EBADMSG, "segment %u of process %u: there is none", segment, process);
	fd = wf_segments.hooks.give(process, segment);
	if (fd < 0)
		return weft_fail(fd == -ESRCH ? -EBADMSG : -ENOMEM, "segment %u of process %u is not given: %s", segment, process,
				 strerror(-fd));
	bytes = wf_segment_check(fd, least);
	if (bytes < 0) {
		wf_segment_close(fd);
		return (int)bytes;
	}
	*ret_bytes = bytes;
	return fd;
}

/* Made when the first segment of that process was given. */
static struct wf_maps *maps_make_locked(uint32_t process)
{
	struct wf_maps *m = atomic_load_explicit(&wf_atlas[process], memory_order_relaxed);     /* written under this lock */

	if (m)
		return m;
	/* Mostly never touched: pages of zeroes on demand, not the heap. */
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	wf_poison_root(m, sizeof(*m));
	atomic_store_explicit(&wf_atlas[process], m, memory_order_release);             /* A1 */
	return m;
}

static struct wf_maps *maps_now(uint32_t process)
{
	return atomic_load_explicit(&wf_atlas[process], memory_order_acquire);          /* A1 */
}

static int cannot_map(uint32_t process, uint32_t segment)
{
	return weft_fail(-ENOMEM, "no memory to map segment %u of process %u", segment, process);
}

static int ledger_map_locked(uint32_t process, struct wf_ledger **ret_ledger)
{
	struct wf_maps *m = maps_now(process);
	struct wf_ledger *l = m ? atomic_load_explicit(&m->ledger, memory_order_acquire) : NULL;        /* A1 */
	void *mem = NULL;
	int64_t bytes;
	int fd;

	*ret_ledger = l;
	if (l)                          /* another thread was first */
		return 0;
	fd = descriptor_get(process, WF_SEGMENT_LEDGER, WF_LEDGER_BYTES, &bytes);
	if (fd < 0)
		return fd;
	m = maps_make_locked(process);
	l = m ? malloc(sizeof(*l)) : NULL;
	if (l)
		mem = wf_segment_map(fd, WF_LEDGER_BYTES, NULL);
	wf_segment_close(fd);
	if (!mem) {
		free(l);
		return cannot_map(process, WF_SEGMENT_LEDGER);
	}
	wf_ledger_at(l, mem);
	atomic_store_explicit(&m->ledger, l, memory_order_release);                     /* A1 */
	*ret_ledger = l;
	return 0;
}

WF_SLOW int wf_atlas_ledger_map(uint32_t process, struct wf_ledger **ret_ledger)
{
	int r;

	pthread_mutex_lock(&atlas_lock);
	r = ledger_map_locked(process, ret_ledger);
	pthread_mutex_unlock(&atlas_lock);
	return r;
}

static int chunk_map_locked(uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk)
{
	uint32_t i = segment - WF_SEGMENT_CHUNK;
	struct wf_ledger *l;
	struct wf_chunk *c;
	int64_t bytes;
	int fd, r;

	r = ledger_map_locked(process, &l);     /* what is taken must be able to go home */
	if (r < 0)
		return r;
	c = atomic_load_explicit(&maps_now(process)->chunk[i], memory_order_acquire);   /* A1 */
	if (!c) {
		fd = descriptor_get(process, segment, WF_CHUNK_SEGMENT, &bytes);
		if (fd < 0)
			return fd;
		r = wf_space_far_chunk(fd, process, segment, &c);
		wf_segment_close(fd);
		if (r < 0)
			return cannot_map(process, segment);
		atomic_store_explicit(&c->dead, dead[process], memory_order_relaxed);
		atomic_store_explicit(&maps_now(process)->chunk[i], c, memory_order_release);   /* A1 */
	}
	*ret_chunk = c;
	return 0;
}

WF_SLOW int wf_atlas_chunk_map(uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk)
{
	int r;

	if (process >= WF_PROCESSES || segment - WF_SEGMENT_CHUNK >= WF_SEGMENT_CHUNKS)
		return -EBADMSG;
	pthread_mutex_lock(&atlas_lock);
	r = chunk_map_locked(process, segment, ret_chunk);
	pthread_mutex_unlock(&atlas_lock);
	return r;
}

/* The largest class that fits. */
static unsigned big_class(int64_t bytes)
{
	unsigned class = WF_CLASS_CHUNK + 1;

	while (class < WF_CLASS_MAX && (int64_t)2 << class <= bytes)
		class++;
	return class;
}

static int big_map_locked(uint32_t process, uint32_t segment, struct wf_big **ret_big)
{
	struct wf_big *big = NULL;
	struct wf_link *handle;
	struct wf_ledger *l;
	int64_t bytes;
	int fd, r = ledger_map_locked(process, &l);

	if (r < 0)
		return r;
	fd = descriptor_get(process, segment, (size_t)2 << WF_CLASS_CHUNK, &bytes);
	if (fd < 0)
		return fd;
	r = wf_depot_get(WF_DEPOT_HANDLE, &handle);
	if (r < 0)
		goto undo_fd;
	big = calloc(1, sizeof(*big));
	if (!big)
		goto undo_handle;
	big->process = process;
	big->segment = segment;
	big->class = big_class(bytes);
	big->buf = wf_pool_buf(handle);
	if (wf_space_far_big(fd, big->buf, big->class) < 0)
		goto undo_handle;
	big->buf->far.big = big;
	big->buf->far.maker = process;
	big->data = big->buf->home;
	wf_segment_close(fd);
	*ret_big = big;
	return 0;

undo_handle:
	free(big);
	wf_depot_put(WF_DEPOT_HANDLE, handle);
undo_fd:
	wf_segment_close(fd);
	return cannot_map(process, segment);
}

/* Found or mapped now, and first in its list. */
static int big_get_locked(uint32_t process, uint32_t segment, struct wf_big **ret_big)
{
	struct wf_maps *m = maps_now(process);
	struct wf_big *big = m ? big_find_locked(m, segment) : NULL;
	int r = big ? 0 : big_map_locked(process, segment, &big);

	if (r < 0)
		return r;
	big_add_locked(maps_now(process), big);
	*ret_big = big;
	return 0;
}

int wf_big_get(uint32_t process, uint32_t segment, struct wf_big **ret_big)
{
	int r;

	if (process >= WF_PROCESSES || segment < WF_SEGMENT_BIG)
		return -EBADMSG;
	pthread_mutex_lock(&atlas_lock);
	r = big_get_locked(process, segment, ret_big);
	if (r == 0)
		(*ret_big)->users++;
	pthread_mutex_unlock(&atlas_lock);
	return r;
}

static void big_unmap_locked(struct wf_maps *m, struct wf_big *big)
{
	big_find_locked(m, big->segment);
	wf_space_big_unmap(big->buf);
	wf_depot_put(WF_DEPOT_HANDLE, &big->buf->link);
	free(big);
}

/* The one of @m that was not used for longest goes, if too many are kept. */
static void bigs_trim_locked(struct wf_maps *m)
{
	struct wf_big *last = NULL;

	if (m->nbigs <= BIGS_KEPT)
		return;
	for (struct wf_big *b = m->bigs; b; b = b->next)
		if (!b->users && !b->pinned)
			last = b;
	if (!last)
		return;
	big_unmap_locked(m, last);
}

/* May another one who lives still send it here? */
static bool big_away(struct wf_maps *m, const struct wf_big *big)
{
	struct wf_ledger *l = atomic_load_explicit(&m->ledger, memory_order_relaxed);
	uint64_t holder = l && big->buf->slot ? atomic_load_explicit(&l->entry[big->buf->slot].holder, memory_order_relaxed) : 0;

	return holder & WF_HOLDER_KIND && holder != wf_held(wf_segments.process) && !wf_share_orphaned(holder);
}

bool wf_bigs_drop_locked(struct wf_maps *m, bool leaving)
{
	bool all = true;

	for (struct wf_big *big = m->bigs, *next; big; big = next) {
		next = big->next;
		if (big->users || (!leaving && big_away(m, big)))
			all = false;
		else if (!big->pinned)
			big_unmap_locked(m, big);
		else if (!m->blank)                     /* pointers into it may be about */
			all &= wf_blank(big->data, (size_t)1 << big->class);
	}
	return all;
}

void wf_atlas_dead_locked(uint32_t process)
{
	struct wf_maps *m = maps_now(process);

	dead[process] = true;
	for (unsigned i = 0; m && i < WF_SEGMENT_CHUNKS; i++) {
		struct wf_chunk *c = atomic_load_explicit(&m->chunk[i], memory_order_relaxed);

		if (c)
			atomic_store_explicit(&c->dead, true, memory_order_relaxed);
	}
}

void wf_big_put(struct wf_big *big)
{
	pthread_mutex_lock(&atlas_lock);
	if (!--big->users)
		bigs_trim_locked(maps_now(big->process));
	pthread_mutex_unlock(&atlas_lock);
}

void wf_big_put_of(uint32_t process, uint32_t segment)
{
	struct wf_big *big;

	pthread_mutex_lock(&atlas_lock);
	for (big = maps_now(process)->bigs; big->segment != segment; big = big->next)
		;
	if (!--big->users)
		bigs_trim_locked(maps_now(process));
	pthread_mutex_unlock(&atlas_lock);
}

void wf_chunk_each(struct wf_chunk *c, void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg)
{
	for (unsigned u = 0; u < WF_UNITS; u++) {
		unsigned class = atomic_load_explicit(&c->class[u], memory_order_relaxed), first = u * WF_UNIT_HANDLES;
		unsigned n = class > WF_CLASS_UNIT ? 1 : 1u << (WF_CLASS_UNIT - class);

		for (unsigned i = first; class && i < first + n; i++)
			see(c->handles + i, wf_space_entry(c, class, i), arg);
	}
}

struct wf_chunk *wf_atlas_own(uint32_t segment)
{
	uint32_t i = segment - WF_SEGMENT_CHUNK;

	return i < WF_SEGMENT_CHUNKS ? atomic_load_explicit(&mine.chunk[i], WF_ATLAS_LOAD) : NULL;      /* A1 */
}

void wf_atlas_each_lent(void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg)
{
	struct wf_ledger *l = wf_ledger_mine();
	struct wf_buf *b;

	for (uint32_t slot = 1; l && slot < wf_ledger_used(); slot++) {
		b = atomic_load_explicit(&wf_ledger_posting(slot)->buf, memory_order_acquire);
		if (b)
			see(b, &l->entry[slot], arg);
	}
}

void wf_atlas_each_own(void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg)
{
	struct wf_chunk *c;

	for (uint32_t segment = WF_SEGMENT_CHUNK; (c = wf_atlas_own(segment)); segment++)
		wf_chunk_each(c, see, arg);
	wf_atlas_each_lent(see, arg);
}

struct far_see {
	void (*see)(struct wf_buf *b, void *arg);
	void *arg;
};

static void far_see(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	struct far_see *f = arg;

	(void)e;
	f->see(b, f->arg);
}

void wf_atlas_each_far(void (*see)(struct wf_buf *b, void *arg), void *arg)
{
	struct far_see f = { see, arg };

	pthread_mutex_lock(&atlas_lock);
	for (uint32_t p = 0; p < WF_PROCESSES; p++) {
		struct wf_maps *m = maps_now(p);

		for (unsigned i = 0; m && m != &mine && i < WF_SEGMENT_CHUNKS; i++) {
			/* relaxed: written under this lock. */
			struct wf_chunk *c = atomic_load_explicit(&m->chunk[i], memory_order_relaxed);

			if (c)
				wf_chunk_each(c, far_see, &f);
		}
		for (struct wf_big *big = m ? m->bigs : NULL; big; big = big->next)
			see(big->buf, arg);
	}
	pthread_mutex_unlock(&atlas_lock);
}

bool wf_place_of(const void *mem, struct wf_place *ret_place)
{
	uintptr_t at = wf_space_at((uintptr_t)mem), what = at & ~(uintptr_t)WF_AT_BITS;
	const struct wf_chunk *c = (const struct wf_chunk *)what;
	const struct wf_buf *b = (const struct wf_buf *)what;

	if ((at & WF_AT_WHAT) == WF_AT_CHUNK && c->segment && c->process == wf_segments.process)
		*ret_place = (struct wf_place){ c->process, c->segment, (uintptr_t)mem & (WF_CHUNK_BYTES - 1) };
	else if ((at & WF_AT_WHAT) == WF_AT_BIG && b->slot && !(b->class & WF_CLASS_FAR))
		*ret_place = (struct wf_place){ wf_segments.process, wf_ledger_segment(b->slot),
						(uintptr_t)mem - (uintptr_t)b->home };
	else
		return false;
	return true;
}

/* Is all of it accessible? One's own chunks are so unit by unit, from the first piece there on. */
static bool chunk_open(const struct wf_chunk *c, size_t from, size_t bytes)
{
	size_t last = bytes ? from + bytes - 1 : from;

	if (c->process != wf_segments.process)
		return true;
	for (size_t u = from >> WF_CLASS_UNIT; u <= last >> WF_CLASS_UNIT && u < WF_UNITS; u++)
		if (!atomic_load_explicit(&c->class[u], memory_order_relaxed))  /* never 0 again */
			return false;
	return true;
}

/* The start of another's big segment, from now on there for good; *@ret_bytes: of it. */
static char *big_place(uint32_t process, uint32_t segment, size_t *ret_bytes)
{
	struct wf_big *big = NULL;

	if (process >= WF_PROCESSES || segment < WF_SEGMENT_BIG)
		return NULL;
	pthread_mutex_lock(&atlas_lock);
	if (big_get_locked(process, segment, &big) == 0)
		big->pinned = true;
	pthread_mutex_unlock(&atlas_lock);
	if (!big)
		return NULL;
	*ret_bytes = (size_t)1 << big->class;
	return big->data;
}

/* @bytes at @offset of the @all at @data, if they are there. */
static char *part(char *data, size_t all, uint64_t offset, size_t bytes)
{
	return offset > all || bytes > all - offset ? NULL : data + offset;
}

static int chunk_place(const struct wf_place *p, size_t bytes, char **ret_mem)
{
	struct wf_chunk *c;
	int r = wf_atlas_chunk(p->process, p->segment, &c);

	if (r < 0)
		return r;
	*ret_mem = part(c->data, WF_CHUNK_BYTES, p->offset, bytes);
	return *ret_mem && chunk_open(c, p->offset, bytes) ? 0 : -EBADMSG;
}

void *wf_place_map(const struct wf_place *place, size_t bytes)
{
	struct wf_place p = *place;
	char *data;
	size_t all;

	if (p.segment < WF_SEGMENT_BIG)
		return chunk_place(&p, bytes, &data) == 0 ? data : NULL;
	data = big_place(p.process, p.segment, &all);
	return data ? part(data, all, p.offset, bytes) : NULL;
}

bool wf_place_of_all(const void *mem, size_t bytes, struct wf_place *ret_place)
{
	uintptr_t first = (uintptr_t)mem;

	return wf_place_of(mem, ret_place) && wf_space_at(first) == wf_space_at(first + bytes - 1);
}

int wf_place_hold(const struct wf_place *place, size_t bytes, const char **ret_mem, struct wf_big **ret_hold)
{
	struct wf_place p = *place;
	struct wf_big *big = NULL;
	char *mem = NULL;
	int r;

	if (p.segment < WF_SEGMENT_BIG) {
		r = chunk_place(&p, bytes, &mem);
	} else {
		r = wf_big_get(p.process, p.segment, &big);
		if (r == 0)
			mem = part(big->data, (size_t)1 << big->class, p.offset, bytes);
	}
	if (r == 0 && !mem) {
		wf_place_let(big);
		r = -EBADMSG;
	}
	if (r < 0)
		return r;
	*ret_mem = mem;
	*ret_hold = big;
	return 0;
}

void wf_place_let(struct wf_big *hold)
{
	if (hold)
		wf_big_put(hold);
}

void wf_atlas_show(struct wf_roots *roots)
{
	roots->buffers = (uintptr_t)mine.chunk;
}
