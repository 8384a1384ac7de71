/* segment.h - memory that other processes can map: memfds, numbered by the process that made them.
 *
 * Number 0 is the board (net/local/board.h), 1 the ledger (ledger.h); the others hold buffers, 32 MiB of address space
 * each, or one big buffer. The size of a segment is set and sealed when it is made; its pages are reserved piece by
 * piece (fallocate) before a piece is first named to anybody, so that lack of memory is an error here and never a
 * signal there. Segments are kept out of core dumps and of forked children.
 *
 * Until wf_segments_share was called (a job of one) memory is anonymous and nothing has a number.
 */
#ifndef WF_MEM_SEGMENT_H
#define WF_MEM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_PROCESSES 1281u                      /* numbers of a job's processes are 1 .. 1024, of its agents WF_AGENTS + host */
#define WF_AGENTS 1025u

/* How segments get to others and others' to us: set once, before the first is made. Both may be called under any lock. */
struct wf_segment_hooks {
	int (*tell)(uint32_t segment, int fd);                  /* mine may be asked for; 0 or a negative errno */
	int (*untell)(uint32_t segment);
	int (*give)(uint32_t process, uint32_t segment);        /* a descriptor, the caller's, or a negative errno */
};

/* From now on buffers lie in segments. @process: this one's number. [one thread, before the pool is first used] */
void wf_segments_share(uint32_t process, const struct wf_segment_hooks *hooks);
bool wf_segments_shared(void);

/* [any] A memfd of @bytes, sealed against change of size; the descriptor or a negative errno (words said). */
int wf_segment_make(const char *name, size_t bytes);

/* [any] Reserves pages: 0, -ENOMEM, -ENOSPC. What is reserved stays so. */
int wf_segment_reserve(int fd, size_t from, size_t bytes);

/* [any] Maps all of it shared, at @at if that is not NULL (over a reservation of ours), not in dumps nor in children.
 * NULL: no memory. */
void *wf_segment_map(int fd, size_t bytes, void *at);

/* [any] A stranger's descriptor: is it a memfd that can be written, sealed against shrinking, of at least @least bytes? Its
 * size, or -EBADMSG. */
int64_t wf_segment_check(int fd, size_t least);

/* A place in a segment: what can be said to others. */
struct wf_place {
	uint32_t process, segment;
	uint64_t offset;
};

/* [any] Where @mem, in a buffer of this process's own pool, lies for others. False: memory is not shared, or not ours. */
bool wf_place_of(const void *mem, struct wf_place *ret_place);

/* [any] @bytes at @place as this process sees them: own or another's, mapped when first asked for. Any numbers at all
 * may be passed. NULL: there is no such place, or it cannot be mapped. What was mapped once stays so.
 * (One's own big buffers cannot be had this way: nothing would keep them mapped.) */
void *wf_place_map(const struct wf_place *place, size_t bytes);

#endif
