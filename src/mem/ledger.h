/* ledger.h - this process's segment 1: the head of its return list, and entries for what is in no chunk.
 *
 *   | head (a line of its own)  open | entry 0 | entry 1 | ...          | strip 0 | strip 1 | ...
 *     a page                           an entry each, to the next page    a page each
 *
 * An entry serves a view lent to another process while it is there, or a big buffer as long as it is mapped. What an
 * entry is for stands in a private record. Entry 0 is not used: a slot of 0 means none. Pages are reserved as entries
 * are first used. A strip (strip.h) is another process's short way of returning buffers, by that one's number; it is there while open says so of it.
 *
 * A link, in the head and in entries' next, names an entry of the same maker: its segment (this one, or a chunk's)
 * above 20 bits of index. No entry is 0: the end of a list. On a slip (home.c) and on a strip links are brief: a chunk's segment above 17 bits of index.
 */
#ifndef WF_MEM_LEDGER_H
#define WF_MEM_LEDGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"
#include "mem/space.h"

#define WF_LEDGER_SLOTS ((uint32_t)1 << 20)
#define WF_LEDGER_HEADER ((size_t)4096)
#define WF_LEDGER_OPEN ((size_t)1024)   /* in the header */
#define WF_LEDGER_STRIPS (WF_LEDGER_HEADER + WF_LEDGER_SLOTS * sizeof(struct wf_entry))
#define WF_STRIP_BYTES ((size_t)4096)
#define WF_LEDGER_BYTES (WF_LEDGER_STRIPS + WF_PROCESSES * WF_STRIP_BYTES)
_Static_assert(WF_LEDGER_OPEN + WF_PROCESSES <= WF_LEDGER_HEADER, "a byte for each process");
#define WF_LINK_BITS 20
#define WF_BRIEF_BITS 17
_Static_assert(WF_UNITS * WF_UNIT_HANDLES == 1 << WF_BRIEF_BITS, "a chunk's entries have brief links");

struct wf_ledger {                      /* one that is mapped, ours or another's; constant */
	_Atomic uint64_t *head;
	_Atomic uint8_t *open;          /* of each process: it has a strip */
	struct wf_entry *entry;
	struct wf_strip *strip;
};

struct wf_posting {                   /* private, of one of our own entries */
	_Atomic(struct wf_buf *) buf;   /* the view or the big buffer; NULL: not in use */
	_Atomic uint32_t segment;       /* of a big one; relaxed: set before it is told, another number is another buffer */
	int fd;
	uint32_t next;                  /* not in use: the next such */
};

static inline uint64_t wf_link_to(uint32_t segment, uint32_t index)
{
	return (uint64_t)segment << WF_LINK_BITS | index;
}

static inline uint32_t wf_brief_to(uint32_t segment, uint32_t index)
{
	return segment << WF_BRIEF_BITS | index;
}

/* @l is the one mapped at @mem. */
void wf_ledger_at(struct wf_ledger *l, void *mem);

int wf_ledger_begin(void);              /* [any] makes it if it is not there; a negative errno, words said */
struct wf_ledger *wf_ledger_mine(void); /* [any] NULL: none was made */

/* [any] An entry for @b. -ENOSPC: all are in use; else as wf_ledger_begin. */
int wf_ledger_new(struct wf_buf *b, uint32_t *ret_slot);
void wf_ledger_end(uint32_t slot);

/* [any] Reserves the strip of @process: 0 or a negative errno. And gives its page back. */
int wf_ledger_strip(uint32_t process);
void wf_ledger_unstrip(uint32_t process);

void wf_ledger_close(void);             /* [after leaving] its descriptor: no further entry is used */

struct wf_posting *wf_ledger_posting(uint32_t slot);   /* [any] of any number; NULL: there is none */
uint32_t wf_ledger_segment(uint32_t slot);              /* [its holder] of a big buffer */
uint32_t wf_ledger_used(void);          /* [any] slots from here on were never used */

#endif
