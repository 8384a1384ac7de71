/* atlas.h - the segments of every process as they are mapped here, this one's own among them.
 *
 * Numbers of a process's segments: 0 its board (not in here), 1 its ledger (ledger.h), then chunks of buffers, far up
 * those that hold one big buffer each. A chunk's memfd is its 32 MiB of data and, behind them, the chunk's entries:
 * the shared words of each of its buffers, mapped apart.
 *
 *   (process, segment) --+-- ledger  head of the return list, entries of lendings and of big buffers, strips
 *                        +-- chunk   data 32 MiB, handles (private), entries
 *                        +-- big     data (one's own are found by their entry in the ledger)
 *
 * Shape   An array of processes, each with an array of chunks: written under atlas_lock (one's own chunks: under the
 *         space lock), read by anyone. Chunks and ledgers stay mapped; of the dead, blank memory in the end (bury.h). Big ones
 *         are in a list under the lock; one that nobody here uses is unmapped when too many of its process are kept.
 * Locks   atlas_lock; a landing in a dead process's chunk takes it, too.
 * Edges   A1  release store of a process, of its ledger or chunk -> loads that depend on the pointer: what it points to.
 */
#ifndef WF_MEM_ATLAS_H
#define WF_MEM_ATLAS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/roots.h"
#include "base/cpu.h"
#include "base/fence.h"
#include "mem/segment.h"
#include "mem/space.h"

#if WF_TSAN
#define WF_ATLAS_LOAD memory_order_acquire      /* it does not know dependencies */
#else
#define WF_ATLAS_LOAD memory_order_relaxed
#endif

enum {
	WF_SEGMENT_LEDGER = 1,
	WF_SEGMENT_CHUNK = 2,           /* the first of them */
	WF_SEGMENT_CHUNKS = 4096,               /* of a process: 128 GiB */
	WF_SEGMENT_BIG = 1 << 16        /* the first of them; never used again */
};

#define WF_ENTRIES ((size_t)WF_UNITS * WF_UNIT_HANDLES)         /* of a chunk */
#define WF_CHUNK_BYTES ((size_t)1 << WF_CLASS_CHUNK)
#define WF_CHUNK_SEGMENT (WF_CHUNK_BYTES + WF_ENTRIES * sizeof(struct wf_entry))

extern struct wf_segments {             /* set by wf_segments_share, then constant */
	uint32_t process;               /* this one's number; 0: memory is not shared */
	struct wf_segment_hooks hooks;
} wf_segments;

/* segment.c: part of a memfd mapped, pages given back (best effort). */
void *wf_segment_map_part(int fd, size_t from, size_t bytes, void *at, int prot);
void wf_segment_drop(int fd, size_t from, size_t bytes);
void wf_segment_close(int fd);          /* no cancellation point */
bool wf_segment_huge(void);             /* pages of a segment should be asked for through its mapping before they are reserved */

struct wf_big {                         /* under atlas_lock, except what is constant */
	uint32_t process, segment;      /* constant */
	unsigned class;                 /* constant: log2 of its bytes */
	char *data;                     /* constant */
	struct wf_buf *buf;             /* constant: its handle; in whose hands, its word says */
	unsigned users;                 /* views of it here, and the buffer itself */
	bool pinned;                    /* a place in it was asked for: never unmapped */
	struct wf_big *next;            /* of its process, the last used first */
};

struct wf_maps {                        /* of one process; never freed */
	_Atomic(struct wf_ledger *) ledger;
	struct wf_big *bigs;            /* under atlas_lock */
	bool blank;                     /* under atlas_lock: see bury.h */
	unsigned nbigs;                 /* under atlas_lock */
	_Atomic(struct wf_chunk *) chunk[WF_SEGMENT_CHUNKS];
};
extern _Atomic(struct wf_maps *) wf_atlas[WF_PROCESSES];

void wf_atlas_begin(uint32_t process);                  /* by wf_segments_share */
void wf_atlas_own_chunk(struct wf_chunk *c);            /* [space lock] others may be told of it from now on */
void wf_atlas_own_ledger(struct wf_ledger *l);

int wf_atlas_chunk_map(uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk);
int wf_atlas_ledger_map(uint32_t process, struct wf_ledger **ret_ledger);

/* [any] The chunk of that number, if it is mapped; any numbers. */
static inline struct wf_chunk *wf_atlas_chunk_mapped(uint32_t process, uint32_t segment)
{
	uint32_t i = segment - WF_SEGMENT_CHUNK;
	struct wf_maps *m;

	if (wf_unlikely(process >= WF_PROCESSES || i >= WF_SEGMENT_CHUNKS))
		return NULL;
	m = atomic_load_explicit(&wf_atlas[process], WF_ATLAS_LOAD);                    /* A1 */
	return wf_likely(m) ? atomic_load_explicit(&m->chunk[i], WF_ATLAS_LOAD) : NULL; /* A1 */
}

/* [any] Likewise, mapped now if need be. Whose chunk is mapped, his ledger is.
 * 0; -EBADMSG: there is none, or no segment; -ENOMEM: it cannot be mapped now (words said). */
static inline int wf_atlas_chunk(uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk)
{
	struct wf_chunk *c = wf_atlas_chunk_mapped(process, segment);

	if (wf_unlikely(!c))
		return wf_atlas_chunk_map(process, segment, ret_chunk);
	*ret_chunk = c;
	return 0;
}

/* [any] Likewise its ledger. */
static inline int wf_atlas_ledger(uint32_t process, struct wf_ledger **ret_ledger)
{
	struct wf_maps *m;
	struct wf_ledger *l;

	if (wf_unlikely(process >= WF_PROCESSES))
		return -EBADMSG;
	m = atomic_load_explicit(&wf_atlas[process], WF_ATLAS_LOAD);                    /* A1 */
	if (wf_likely(m)) {
		l = atomic_load_explicit(&m->ledger, WF_ATLAS_LOAD);                    /* A1 */
		if (wf_likely(l)) {
			*ret_ledger = l;
			return 0;
		}
	}
	return wf_atlas_ledger_map(process, ret_ledger);
}

/* [any] Another's big segment with one user more, until wf_big_put; fails likewise. */
int wf_big_get(uint32_t process, uint32_t segment, struct wf_big **ret_big);
void wf_big_put(struct wf_big *big);
void wf_big_put_of(uint32_t process, uint32_t segment);

/* [any] As wf_place_of, if all of the @bytes at @mem (more than 0) lie in one segment. */
bool wf_place_of_all(const void *mem, size_t bytes, struct wf_place *ret_place);

/* [any] As wf_place_map, until wf_place_let(*@ret_hold): others' big buffers, of which there are ever new ones, need not stay mapped for good.
 * 0; -EBADMSG: there is no such place; -ENOMEM: it cannot be mapped now. */
int wf_place_hold(const struct wf_place *place, size_t bytes, const char **ret_mem, struct wf_big **ret_hold);
void wf_place_let(struct wf_big *hold);

/* For bury.c. The lock; a process's chunks, those there are and those to come, are a dead one's; those of its big segments that nobody here uses are
 * unmapped, or blank: true if that was all; the buffers of @c that have a handle. */
void wf_atlas_hold(void);
void wf_atlas_release(void);
void wf_atlas_dead_locked(uint32_t process);
bool wf_bigs_drop_locked(struct wf_maps *m, bool leaving);
void wf_chunk_each(struct wf_chunk *c, void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg);

/* [any] Shows every buffer of others that has a handle and may be in somebody's hands to @see. */
void wf_atlas_each_far(void (*see)(struct wf_buf *b, void *arg), void *arg);
/* [any] Likewise one's own, with their entries; of those only the ones that have theirs in the ledger. */
void wf_atlas_each_own(void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg);
void wf_atlas_each_lent(void (*see)(struct wf_buf *b, struct wf_entry *e, void *arg), void *arg);
struct wf_chunk *wf_atlas_own(uint32_t segment);        /* [any] one's own chunk of any number; NULL: none */

void wf_atlas_show(struct wf_roots *roots);

#endif
