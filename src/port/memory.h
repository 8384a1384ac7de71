/* memory.h - a message's memory: one block, a list of blocks, or a layout that generates them. */
#ifndef WF_PORT_MEMORY_H
#define WF_PORT_MEMORY_H

#include <stdbool.h>
#include <weft/msg.h>

enum { WF_MEM_PLAIN, WF_MEM_LIST, WF_MEM_LAYOUT };

struct wf_mem {
	size_t len;                             /* in all */
	union {
		void *plain;
		const struct iovec *list;
		const struct weft_layout *layout;
	};
	uint32_t count;                         /* of the list */
	uint32_t kind;
};

/* From the memory fields of an op; -EINVAL if they contradict each other or make no sense. */
int wf_mem_of(const struct weft_op *op, struct wf_mem *ret_mem);

/* @n bytes (at most both lengths) from the beginning of @from to the beginning of @to. False: a
 * layout gave no pieces where it should; what was moved up to there is moved. */
bool wf_mem_copy(const struct wf_mem *to, const struct wf_mem *from, size_t n);

/* Where a walk through a memory stands: the piece at hand, and what follows it. */
#define WF_WALK_AHEAD 16                /* pieces a layout is asked for at a time */
struct wf_walk {
	const struct wf_mem *mem;
	size_t at;                              /* of the piece at hand, from the beginning */
	char *piece;                            /* NULL with len: only movable */
	size_t len;
	uint32_t next, have;                    /* of the list; of ahead */
	struct iovec ahead[WF_WALK_AHEAD];
};

/* Part by part, from the beginning on: the next @n bytes of it out to @bytes, or in from there. False: as wf_mem_copy. */
void wf_walk_begin(struct wf_walk *w, const struct wf_mem *mem);
bool wf_walk_out(struct wf_walk *w, void *bytes, size_t n);
bool wf_walk_in(struct wf_walk *w, const void *bytes, size_t n);

static inline struct wf_mem wf_mem_plain(void *p, size_t len)
{
	return (struct wf_mem){ .len = len, .plain = p, .kind = WF_MEM_PLAIN };
}

#endif
