/* ledger.c - making this process's ledger and giving out its entries. See ledger.h.
 *
 * Locks: ledger_lock, innermost of the room.
 */
#include "mem/ledger.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <weft/base.h>

#include "mem/atlas.h"
#include "mem/strip.h"

#define STEP ((size_t)4096)             /* entries are reserved so many bytes at a time */

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_ledger mine;           /* under the lock until made, then constant */
static _Atomic(struct wf_ledger *) made;
static int ledger_fd;                   /* under the lock */
static struct wf_posting *postings;     /* constant once made */
static uint32_t unused;                 /* under the lock: the first slot not in use that was, 0: none */
static _Atomic uint32_t used;           /* written under the lock: slots below were in use once */
static size_t reserved;                 /* under the lock: bytes of entries */

void wf_ledger_at(struct wf_ledger *l, void *mem)
{
	char *start = mem;

	l->head = mem;
	l->open = (_Atomic uint8_t *)(void *)(start + WF_LEDGER_OPEN);
	l->entry = (struct wf_entry *)(void *)(start + WF_LEDGER_HEADER);
	l->strip = (struct wf_strip *)(void *)(start + WF_LEDGER_STRIPS);
}

struct wf_ledger *wf_ledger_mine(void)
{
	return atomic_load_explicit(&made, WF_ATLAS_LOAD);      /* A1 (atlas.h) */
}

static int begin_locked(void)
{
	size_t bytes = WF_LEDGER_SLOTS * sizeof(*postings);
	void *room, *mem = NULL;
	int fd, r;

	/* relaxed: set under this lock. */
	if (atomic_load_explicit(&made, memory_order_relaxed))
		return 0;
	room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return weft_fail(-ENOMEM, "no memory for a ledger");
	r = fd = wf_segment_make("weft-ledger", WF_LEDGER_BYTES);
	if (fd < 0)
		goto undo_postings;
	r = wf_segment_reserve(fd, 0, WF_LEDGER_HEADER);
	if (r < 0) {
		weft_fail(r, "no memory for a ledger");
		goto undo_fd;
	}
	mem = wf_segment_map(fd, WF_LEDGER_BYTES, NULL);
	r = mem ? wf_segments.hooks.tell(WF_SEGMENT_LEDGER, fd) : weft_fail(-ENOMEM, "cannot map a ledger");
	if (r < 0)
		goto undo_mem;
	ledger_fd = fd;
	postings = room;
	wf_ledger_at(&mine, mem);
	atomic_store_explicit(&used, 1, memory_order_relaxed);
	wf_atlas_own_ledger(&mine);
	atomic_store_explicit(&made, &mine, memory_order_release);
	return 0;

undo_mem:
	if (mem)
		munmap(mem, WF_LEDGER_BYTES);
undo_fd:
	wf_segment_close(fd);
undo_postings:
	munmap(room, bytes);
	return r;
}

int wf_ledger_begin(void)
{
	int r;

	pthread_mutex_lock(&ledger_lock);
	r = begin_locked();
	pthread_mutex_unlock(&ledger_lock);
	return r;
}

/* The first slot never used yet. */
static int slot_fresh_locked(uint32_t *ret_slot)
{
	uint32_t slot = atomic_load_explicit(&used, memory_order_relaxed);      /* written under this lock */
	int r;

	if (slot == WF_LEDGER_SLOTS)
		return weft_fail(-ENOSPC, "%u buffers are lent", WF_LEDGER_SLOTS - 1);
	if ((slot + 1) * sizeof(struct wf_entry) > reserved) {
		r = wf_segment_reserve(ledger_fd, WF_LEDGER_HEADER + reserved, STEP);
		if (r < 0)
			return weft_fail(r, "no memory to lend a buffer");
		reserved += STEP;
	}
	atomic_store_explicit(&used, slot + 1, memory_order_relaxed);
	*ret_slot = slot;
	return 0;
}

int wf_ledger_new(struct wf_buf *b, uint32_t *ret_slot)
{
	uint32_t slot;
	int r;

	pthread_mutex_lock(&ledger_lock);
	r = begin_locked();
	slot = unused;
	if (r == 0 && slot)
		unused = postings[slot].next;
	else if (r == 0)
		r = slot_fresh_locked(&slot);
	if (r == 0) {
		postings[slot].fd = -1;
		/* release: what @b is, to whoever finds it by a link. */
		atomic_store_explicit(&postings[slot].buf, b, memory_order_release);
		*ret_slot = slot;
	}
	pthread_mutex_unlock(&ledger_lock);
	return r;
}

void wf_ledger_end(uint32_t slot)
{
	pthread_mutex_lock(&ledger_lock);
	atomic_store_explicit(&postings[slot].buf, NULL, memory_order_relaxed);
	postings[slot].next = unused;
	unused = slot;
	pthread_mutex_unlock(&ledger_lock);
}

int wf_ledger_strip(uint32_t process)
{
	int r = -EBADF;

	pthread_mutex_lock(&ledger_lock);
	if (atomic_load_explicit(&made, memory_order_relaxed) && ledger_fd >= 0)
		r = wf_segment_reserve(ledger_fd, WF_LEDGER_STRIPS + process * WF_STRIP_BYTES, WF_STRIP_BYTES);
	pthread_mutex_unlock(&ledger_lock);
	return r;
}

void wf_ledger_unstrip(uint32_t process)
{
	pthread_mutex_lock(&ledger_lock);
	if (ledger_fd >= 0)
		wf_segment_drop(ledger_fd, WF_LEDGER_STRIPS + process * WF_STRIP_BYTES, WF_STRIP_BYTES);
	pthread_mutex_unlock(&ledger_lock);
}

void wf_ledger_close(void)
{
	pthread_mutex_lock(&ledger_lock);
	if (atomic_load_explicit(&made, memory_order_relaxed) && ledger_fd >= 0) {
		wf_segment_close(ledger_fd);
		ledger_fd = -1;
	}
	pthread_mutex_unlock(&ledger_lock);
}

uint32_t wf_ledger_used(void)
{
	/* relaxed: a slot taken this moment may be missed or found empty. */
	return atomic_load_explicit(&used, memory_order_relaxed);
}

struct wf_posting *wf_ledger_posting(uint32_t slot)
{
	if (slot == 0 || slot >= WF_LEDGER_SLOTS || !wf_ledger_mine())
		return NULL;
	return &postings[slot];
}

uint32_t wf_ledger_segment(uint32_t slot)
{
	return atomic_load_explicit(&postings[slot].segment, memory_order_relaxed);
}
