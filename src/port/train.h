/* train.h - the sending end of what goes to another process by a pipe, and is done when it is written.
 *
 * More than 16 KiB does not fit beside the mailbox. To be announced (push.h) such a message needs a request, a ticket and a pipe of its own, which at 64 KiB
 * took a fifth of its time (aarch64). What has no more bytes than a pipe has room for, and whose sender need not know when it is received, needs none of them: it takes
 * one of two pipes that the process keeps for each other one, if that is empty, says so in a cell and writes. Nothing is waited for: the message cannot be taken back,
 * and its receiver says only when the pipe is empty again. He begins with the first chunk while the next is written.
 * If there is no such pipe, or no cell, it is announced like any other.
 *
 * At its receiver it is an announcement (far.h) that has no ticket.
 *
 * Edges   K3  as in ticket.h: a chunk's bytes.
 *         K4  read, once for all of the message: the pipe is empty.
 *         F1  between the last chunk's seq and the name of who sleeps for it (reader, in the pipe's head).
 * Locks   a train's `busy`, held while it is written; only tried, but for a death.
 * Tested  tests/far/test_far_train.c.
 */
#ifndef WF_PORT_TRAIN_H
#define WF_PORT_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

struct wf_way;

/* [any] Plain memory through @w, as it is cached. False: not this way, and nothing happened. */
bool wf_train_send(struct wf_way *w, uint16_t who, weft_id src, uint32_t index, uint64_t tag, const void *data, size_t len);

void wf_train_ahead(uint32_t process);  /* [any] something may go to @process soon: whether the pipe is empty is asked for before it has to be known */
void wf_trains_insist(void);            /* [listener, now and then] as wf_pushes_insist */
void wf_trains_dead(uint32_t process);  /* [listener] */

#endif
