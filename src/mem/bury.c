/* bury.c - see bury.h. */
#include "mem/bury.h"

#include <pthread.h>
#include <sys/mman.h>

#include "mem/atlas.h"
#include "mem/ledger.h"
#include "mem/share.h"
#include "mem/word.h"

#define PAGE ((size_t)4096)
#define ENTRY_BYTES (WF_ENTRIES * sizeof(struct wf_entry))
#define STANDS 255                      /* as the phase of a buffer of ours, which is no view */
#define PER_PAGE (PAGE / sizeof(struct wf_entry))

bool wf_blank(void *mem, size_t bytes)
{
	if (mmap(mem, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	(void)madvise(mem, bytes, MADV_DONTDUMP);
	(void)madvise(mem, bytes, MADV_NOHUGEPAGE);
	return true;
}

void wf_buf_stands(struct weft_buf *buf, bool stands)
{
	((struct wf_buf *)(void *)buf)->phase = stands ? STANDS : 0;
}

/* In the hands of this process: not free, not made yet, and (one of ours) not another's. */
static bool in_hands(const struct wf_buf *b)
{
	uint64_t state = atomic_load_explicit(&b->word, memory_order_acquire) & WF_BUF_STATE;

	return state != WF_BUF_NONE && state != WF_BUF_FREE && state != WF_BUF_AWAY;
}

static void see_hands(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	(void)e;
	*(bool *)arg |= in_hands(b) && b->phase != STANDS;
}

/* Of this process: a buffer, or a view of one. */
static bool held_here(struct wf_chunk *c)
{
	bool held = atomic_load_explicit(&c->views, memory_order_relaxed) > 0;

	wf_chunk_each(c, see_hands, &held);
	return held;
}

/* Whose entry number @i of @c is: the handle. Of the other places of a wide one (whose words say nothing): some handle. */
static struct wf_buf *handle_at(struct wf_chunk *c, size_t i)
{
	unsigned class = atomic_load_explicit(&c->class[i / WF_UNIT_HANDLES], memory_order_relaxed);     /* set before anything of the unit was in hands here */
	size_t unit = i / WF_UNIT_HANDLES * WF_UNIT_HANDLES;

	return c->handles + (wf_class_wide(class) ? unit + (i - unit) / WF_WIDE : i);
}

/* Does a page of entries name a living process? Our own name is cleared, where we have put the buffer. */
static bool page_held(struct wf_chunk *c, size_t first)
{
	bool held = false;

	for (size_t i = first; i < first + PER_PAGE; i++) {
		/* acquire: with wf_buf_unfly's fence: in hands, where our name is put back. */
		uint64_t holder = atomic_load_explicit(&c->entries[i].holder, memory_order_acquire);

		if (!(holder & WF_HOLDER_KIND))
			continue;
		if (holder == wf_held(wf_segments.process) && !in_hands(handle_at(c, i)))
			atomic_store_explicit(&c->entries[i].holder, 0, memory_order_relaxed);
		else if (!wf_share_orphaned(holder))
			held = true;
	}
	return held;
}

/* [atlas lock] Is a buffer of @c, whose maker is dead, in anybody's hands? Pages that are not there have never been written (one that was swapped
 * out may be taken for such: a buffer could be lost then, never used by two); to touch them would be to ask for memory. */
static bool held_anywhere(struct wf_chunk *c)
{
	unsigned char there[ENTRY_BYTES / PAGE];
	bool held = held_here(c);

	if (mincore(c->entries, ENTRY_BYTES, there) < 0)
		return true;
	for (size_t page = 0; page < sizeof(there); page++)
		if (there[page] & 1)
			held |= page_held(c, page * PER_PAGE);
	return held;
}

/* [atlas lock] A far chunk's handles say nothing any more either: zeroes mean that there never was a buffer. Whoever put the last one read what it needed of its handle
 * before it stored FREE there, relaxed. Those loads have found their page when that store is seen, and pages are not taken away before what has found them is done. */
static bool chunk_blank(struct wf_chunk *c, bool handles)
{
	if (c->blank)
		return true;
	if (!wf_blank(c->data, WF_CHUNK_BYTES) || !wf_blank(c->entries, ENTRY_BYTES))
		return false;
	c->blank = true;
	if (handles)
		(void)madvise(c->handles, WF_ENTRIES * sizeof(*c->handles), MADV_DONTNEED);
	return true;
}

static bool ledger_blank(struct wf_ledger *l)
{
	return !l || wf_blank(l->head, WF_LEDGER_BYTES);
}

/* [atlas lock] */
static bool bury_locked(struct wf_maps *m, bool all)
{
	bool done = true;

	for (uint32_t i = 0; i < WF_SEGMENT_CHUNKS; i++) {
		/* relaxed: written under this lock. */
		struct wf_chunk *c = atomic_load_explicit(&m->chunk[i], memory_order_relaxed);

		if (c && !c->blank && ((all ? held_here(c) : held_anywhere(c)) || !chunk_blank(c, true)))
			done = false;
	}
	if (!wf_bigs_drop_locked(m, all))
		done = false;
	if (done && !m->blank)
		m->blank = ledger_blank(atomic_load_explicit(&m->ledger, memory_order_relaxed));
	return done && m->blank;
}

void wf_bury_begin(uint32_t process)
{
	wf_atlas_hold();
	wf_atlas_dead_locked(process);
	wf_atlas_release();
}

/* Only where nothing stands: who sends it on at this moment says more, and before the handle is free (wf_buf_fly); our name on one that is put at this
 * moment is cleared like others (page_held). */
static void see_name(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	uint64_t nobody = 0;

	(void)arg;
	if (in_hands(b))
		atomic_compare_exchange_strong_explicit(&e->holder, &nobody, wf_held(wf_segments.process), memory_order_relaxed, memory_order_relaxed);
}

void wf_bury_name(uint32_t process)
{
	struct wf_maps *m;

	wf_atlas_hold();
	m = atomic_load_explicit(&wf_atlas[process], memory_order_relaxed);
	for (uint32_t i = 0; m && i < WF_SEGMENT_CHUNKS; i++) {
		struct wf_chunk *c = atomic_load_explicit(&m->chunk[i], memory_order_relaxed);

		if (c && !c->blank)
			wf_chunk_each(c, see_name, NULL);
	}
	wf_atlas_release();
}

bool wf_bury(uint32_t process)
{
	struct wf_maps *m;
	bool done;

	wf_atlas_hold();
	m = atomic_load_explicit(&wf_atlas[process], memory_order_relaxed);
	done = !m || bury_locked(m, false);
	wf_atlas_release();
	return done;
}

/* What has an entry in our ledger: nobody returns to us any more what others have. Their mappings are theirs. */
static void see_lent(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	struct wf_posting *posting = wf_ledger_posting(b->slot);

	(void)e;
	if (in_hands(b))
		*(bool *)arg = true;
	else if (b->class && !wf_blank(b->home, (size_t)1 << b->class))
		*(bool *)arg = true;
	if (posting->fd >= 0)
		wf_segment_close(posting->fd);
	posting->fd = -1;
}

static void bury_own_locked(void)
{
	struct wf_chunk *c;
	bool lent = false;

	for (uint32_t segment = WF_SEGMENT_CHUNK; (c = wf_atlas_own(segment)); segment++) {
		if (!held_here(c))
			chunk_blank(c, false);          /* the pool's lists go through them */
		if (c->fd >= 0)
			wf_segment_close(c->fd);
		c->fd = -1;
	}
	wf_atlas_each_lent(see_lent, &lent);
	wf_ledger_close();
	if (!lent)
		ledger_blank(wf_ledger_mine());
}

void wf_bury_all(void)
{
	if (!wf_segments_shared())
		return;
	wf_atlas_hold();
	for (uint32_t p = 1; p < WF_PROCESSES; p++) {
		struct wf_maps *m = atomic_load_explicit(&wf_atlas[p], memory_order_relaxed);

		if (m && p != wf_segments.process)
			bury_locked(m, true);
	}
	bury_own_locked();
	wf_atlas_release();
}
