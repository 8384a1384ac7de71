/* space.h - where buffers and their handles lie in the address space.
 *
 * Data is in chunks of 32 MiB, aligned to their size, cut into units of 1 MiB. One unit holds
 * buffers of one class up to 1 MiB; a larger class takes 2 .. 32 units, aligned. Handles (struct
 * wf_buf: class, state, what the user sees) are in private memory of their own, in areas of 32 MiB
 * aligned likewise; a quarter of an area serves one chunk, 4096 handles per unit:
 *
 *   chunk   |unit 0|unit 1| ...                  |unit 31|     buffer i of unit u
 *   quarter |4096 handles|4096 handles| ...                    handle u * 4096 + i
 *
 * Where memory is shared (segment.h) a chunk is a segment that others map: nothing weft relies on is in it, and a
 * buffer's index follows from its place. Others' chunks have their handles likewise. Classes beyond a chunk have a
 * mapping each, and their handle, like a view's, comes from a quarter that serves no chunk.
 *
 * Neither chunks nor handles are ever unmapped (their pages are given back): any pointer that was
 * once a handle may be read for ever, and its state word tells whether it means something.
 *
 * Shape   One table from address >> 25 to what lies there, two levels, written under the space
 *         lock, read by anyone.
 * Edges   T1  release store of an entry (and of a leaf in the root) -> acquire load: the leaf's
 *             zeroes, the chunk, and that the handles of open quarters are mapped.
 * Tested  tests/unit/test_buf.c (wild pointers, classes, weft_buf_of), tests/stress/stress_pool.c.
 */
#ifndef WF_MEM_SPACE_H
#define WF_MEM_SPACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/buf.h>

#include "base/cpu.h"
#include "base/fence.h"
#include "mem/depot.h"

enum {
	WF_CLASS_MIN = 8,               /* log2 of the bytes */
	WF_CLASS_WIDE = 10,             /* from here on a buffer has the places of WF_WIDE entries, that is a line */
	WF_CLASS_WAITS = 16,            /* up to here a buffer on its way home may wait for many others */
	WF_CLASS_UNIT = 20,             /* up to here many in a unit; above, one in several */
	WF_CLASS_HUGE = 21,             /* 2 MiB: from here on huge pages pay */
	WF_CLASS_CHUNK = 25,            /* up to here in a chunk; above, a mapping each */
	WF_CLASS_MAX = 30,
	WF_CLASS_FAR = 64,              /* in a handle: another process's; the class beside it, 0: a view of its */

	WF_UNITS = 1 << (WF_CLASS_CHUNK - WF_CLASS_UNIT),
	WF_UNIT_HANDLES = 1 << (WF_CLASS_UNIT - WF_CLASS_MIN),
	WF_AREA_QUARTERS = 4,
	WF_WIDE = 4
};

struct wf_buf {                         /* a handle: one cache line */
	struct weft_buf pub;            /* its holder's */
	_Atomic uint64_t word;          /* any thread: state and how it is lent, buf.c */
	union {
		struct wf_link link;    /* in the pool */
		struct {                /* a view, in hands or under way */
			struct wf_buf *of;
			size_t room;    /* what cap must be */
		} view;
		struct {                /* another process's */
			struct wf_big *big;     /* a big one, or a view of it; else NULL */
			uint32_t maker;
			union {
				uint32_t room;  /* of a view */
				uint32_t brief; /* of one in a chunk, if it may go home by strip: its brief link (ledger.h); else 0 */
			};
		} far;
	};
	void *home;                     /* what data must be */
	uint8_t class;                  /* 0: a view; with WF_CLASS_FAR: not ours */
	uint8_t phase;                  /* of a view: as what its buffer counts it; else whether it is weft's own (bury.c) */
	uint32_t slot;                  /* of one in no chunk: its entry in its maker's ledger, 0: none; else how often it came back to him (word.h) */
};
_Static_assert(sizeof(struct wf_buf) == WF_LINE, "a handle is one cache line");
_Static_assert(sizeof(struct wf_buf) * WF_UNITS * WF_UNIT_HANDLES * WF_AREA_QUARTERS == 1u << WF_CLASS_CHUNK,
	       "handles of four chunks fill an area");

/* What others see and write of one buffer, beside the data of its segment (share.h); no user's data shares its line. Beside that of a wide one nothing else is
 * in its line but its slip: more links, in the next words of the places that are left (home.c). */
struct wf_entry {
	_Atomic uint64_t holder;        /* in whose hands */
	_Atomic uint64_t next;          /* on its way home: a link (ledger.h) */
};
_Static_assert(sizeof(struct wf_entry) * WF_WIDE == WF_LINE, "the places of a wide buffer are a line");

struct wf_piece {                       /* the unit or units of one class; under that class's lock */
	struct wf_chunk *chunk;         /* constant */
	unsigned unit;                  /* constant: the first */
	unsigned class;
	unsigned n, carved;             /* buffers that fit, that have been made */
	size_t populated;               /* bytes from its start that have pages */
	unsigned pass, idle;            /* while looking for pieces all of whose buffers are free */
	struct wf_piece *next;
};

struct wf_chunk {
	char *data;                             /* constant, this and the next four */
	struct wf_buf *handles;
	struct wf_entry *entries;               /* NULL: not shared */
	uint32_t process, segment;              /* whose; 0: not shared */
	int fd;                                 /* ours, shared: its segment; -1 after leaving */
	atomic_bool dead;                       /* its maker is: buffers of it land under the atlas's lock */
	bool blank;                             /* under the atlas's lock: there is nothing any more (bury.h) */
	_Atomic uint32_t views;                 /* another's: views in it that are here */
	_Atomic uint8_t class[WF_UNITS];        /* set when a piece is made (another's: when a buffer landed), read by anyone */
	struct wf_piece piece[WF_UNITS];        /* by first unit */
	uint32_t used;                          /* under the space lock: one bit per unit */
	bool listed;                            /* under the space lock */
	struct wf_chunk *next;                  /* under the space lock: chunks that are not full */
};

/* Entries of the table: an address of 64-byte aligned memory and these bits. */
enum {
	WF_AT_AREA = 1, WF_AT_CHUNK = 2, WF_AT_BIG = 3,
	WF_AT_WHAT = 3,                 /* mask of the above */
	WF_AT_OPEN_SHIFT = 2,           /* an area: how many quarters are open */
	WF_AT_OPEN = 7,
	WF_AT_BITS = 63                 /* all that is not address */
};

enum {
	WF_ADDR_BITS = 48,
	WF_LEAF_BITS = 11,
	WF_LEAF_ENTRIES = 1 << WF_LEAF_BITS,
	WF_ROOT_BITS = WF_ADDR_BITS - WF_CLASS_CHUNK - WF_LEAF_BITS
};

struct wf_leaf {
	_Atomic uintptr_t at[WF_LEAF_ENTRIES];
};
extern _Atomic(struct wf_leaf *) wf_space_root[1 << WF_ROOT_BITS];

/* T1 by dependency: the leaf's content by its address; what an entry names by that. Who asks with a handle that was given to him has its memory from
 * there; for any other pointer old memory of ours says that it is none. No acquire: on aarch64 it would wait for this thread's release stores. */
#if WF_TSAN
#define WF_SPACE_LOAD memory_order_acquire
#else
#define WF_SPACE_LOAD memory_order_relaxed
#endif

/* [any] What lies at @addr, any address at all; 0: nothing of ours. */
static inline uintptr_t wf_space_at(uintptr_t addr)
{
	struct wf_leaf *leaf;

	if (wf_unlikely(addr >> WF_ADDR_BITS))
		return 0;
	leaf = atomic_load_explicit(&wf_space_root[addr >> (WF_CLASS_CHUNK + WF_LEAF_BITS)], WF_SPACE_LOAD);      /* T1 */
	if (wf_unlikely(!leaf))
		return 0;
	return atomic_load_explicit(&leaf->at[(addr >> WF_CLASS_CHUNK) % WF_LEAF_ENTRIES], WF_SPACE_LOAD);       /* T1 */
}

/* [any] @p as a handle that may be read, or NULL. Its state word tells the rest. */
static inline struct wf_buf *wf_space_handle(const void *p)
{
	uintptr_t addr = (uintptr_t)p, at;
	uintptr_t quarter = (addr >> (WF_CLASS_CHUNK - 2)) & (WF_AREA_QUARTERS - 1);

	if (wf_unlikely(addr % sizeof(struct wf_buf)))
		return NULL;
	at = wf_space_at(addr);
	if (wf_unlikely((at & WF_AT_WHAT) != WF_AT_AREA || quarter >= (at >> WF_AT_OPEN_SHIFT & WF_AT_OPEN)))
		return NULL;
	return (struct wf_buf *)addr;
}

/* [its holder] The chunk of @b, a buffer in one, and its number there. Relaxed: the table said so before @b was handed
 * to anybody. */
static inline struct wf_chunk *wf_space_chunk_of(const struct wf_buf *b)
{
	uintptr_t i = (uintptr_t)b->home >> WF_CLASS_CHUNK;
	struct wf_leaf *leaf = atomic_load_explicit(&wf_space_root[i >> WF_LEAF_BITS], memory_order_relaxed);
	uintptr_t at = atomic_load_explicit(&leaf->at[i % WF_LEAF_ENTRIES], memory_order_relaxed);

	return (struct wf_chunk *)(at & ~(uintptr_t)WF_AT_BITS);
}

static inline uint32_t wf_space_index_of(const struct wf_buf *b)
{
	return (uint32_t)((uintptr_t)b / sizeof(*b) % (WF_UNITS * WF_UNIT_HANDLES));
}

static inline bool wf_class_wide(unsigned class)
{
	return class >= WF_CLASS_WIDE;
}

/* The entry of buffer number @index of @c, if buffers of @class are there; of any two numbers: some entry of that unit. */
static inline struct wf_entry *wf_space_entry(const struct wf_chunk *c, unsigned class, uint32_t index)
{
	uint32_t unit = index / WF_UNIT_HANDLES * WF_UNIT_HANDLES;

	return c->entries + (wf_class_wide(class) ? unit + index * WF_WIDE % WF_UNIT_HANDLES : index);
}

struct wf_buf *wf_space_buf_of(const void *mem);        /* [any] the handle of where @mem lies, or NULL */
struct wf_piece *wf_space_piece_of(struct wf_buf *b);   /* of a buffer in a chunk */
struct wf_buf *wf_space_buf(struct wf_piece *p, unsigned i);
void *wf_space_data(struct wf_piece *p, unsigned i);

/* [any] Address space for buffers of @class, without pages yet; -ENOMEM. */
int wf_space_piece_new(unsigned class, struct wf_piece **ret_piece);
void wf_space_piece_free(struct wf_piece *p);           /* its pages go back; nobody has a buffer of it */

/* [any] Handles that belong to no chunk: fill of WF_DEPOT_HANDLE. */
int wf_space_fill_handles(int which, unsigned max, struct wf_link **ret_list);

/* [any] A mapping for @b, of a class beyond chunks, known to the table; -ENOMEM. */
int wf_space_big_map(struct wf_buf *b, unsigned class);
void wf_space_big_unmap(struct wf_buf *b);

void wf_space_populate(void *mem, size_t bytes, bool huge);     /* best effort */

/* [class's lock] Pages for @bytes from @from on of @p and for the entries of buffers [@first, @first + @n): where
 * memory is shared it must not be short when it is first touched. 0 or a negative errno. */
int wf_space_piece_reserve(struct wf_piece *p, size_t from, size_t bytes, unsigned first, unsigned n);

/* [atlas lock] Another process's chunk (of WF_CHUNK_SEGMENT bytes) or big buffer, known to the table; -ENOMEM. */
int wf_space_far_chunk(int fd, uint32_t process, uint32_t segment, struct wf_chunk **ret_chunk);
int wf_space_far_big(int fd, struct wf_buf *b, unsigned class);

#endif
