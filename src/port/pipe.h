/* pipe.h - a pipe, as its writing end has it: where the bytes of announced messages go (ticket.h).
 *
 * There are few: to one process at most 8, of which 2 may hold what nobody has taken yet. A pipe is one message's at a time, and its chunks are
 * numbered on through all of them. Which message has which is covered by wf_user_lock; filling is for the one who holds that message's `busy`.
 */
#ifndef WF_PORT_PIPE_H
#define WF_PORT_PIPE_H

#include <stdbool.h>

#include "port/ticket.h"

struct wf_pipe {
	struct wf_pipe *next;
	struct weft_buf *head_buf, *data_buf;
	struct wf_pipe_head *head;
	char *data;
	uint32_t written;               /* chunks filled so far, in all its life */
	uint32_t read;                  /* as last seen: of those, emptied */
};

/* [wf_user_lock] A pipe to @process for a message that was @taken or not; NULL: not now; *ret_never: nor later, as there is no memory and none
 * comes back. @early of put: got for one that was not taken. */
struct wf_pipe *wf_pipe_get_locked(uint32_t process, bool taken, bool *ret_never);
void wf_pipe_put_locked(struct wf_pipe *p, uint32_t process, bool early);
struct wf_pipe *wf_pipe_keep_locked(void);      /* [wf_user_lock] one to be kept for a process (train.h), not counted; NULL: no memory. drop: that one is dead */
void wf_pipe_drop_locked(struct wf_pipe *p);
void wf_pipes_dead(uint32_t process);           /* [no lock] nobody there writes any more: its pipes serve for others */

/* What the receiver is to be told: where it is, and the number of the message's first chunk. */
struct wf_pipe_place wf_pipe_place(const struct wf_pipe *p, uint32_t base);

/* [busy] The chunk to be filled next, or NULL: the receiver has not emptied it yet. And: it was filled. */
char *wf_pipe_chunk(struct wf_pipe *p);
void wf_pipe_filled(struct wf_pipe *p);
void wf_pipe_insist(struct wf_pipe *p, uint32_t base);  /* [busy] the chunks from @base on are filled, once more */

#endif
