/* op.h - options from outside, checked. */
#ifndef WF_PORT_OP_H
#define WF_PORT_OP_H

#include "port/port.h"

/* Copies a struct that begins with its size into the library's own, zero where the caller's is shorter.
 * -E2BIG: longer, and not zero there. -EINVAL: no size, or NULL. */
int wf_opts_read(void *ret_own, size_t own, const void *theirs, const char *what);

/* An op for sending from @p or receiving at @p: everything that can be said without looking at the peer. */
int wf_op_read_send(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *ret_op);
int wf_op_read_recv(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *ret_op);

/* The id behind @peer: itself, or the member weft_at(i) means at @p. -EINVAL: nobody, or none such;
 * -ESRCH: that member has ended. */
int wf_peer_id(const struct weft_port *p, weft_id peer, weft_id *ret_id);

/* The pattern of a receive at @p, in the form its matcher takes (32 bytes). */
int wf_want_of(const struct weft_port *p, const struct weft_op *op, void *ret_want);

/* An op that is only peer, tag and plain memory, of the size we know: the hot paths need not look further. */
static inline bool wf_op_plain(const struct weft_op *op)
{
	return op && op->size == sizeof(*op) && op->data &&
	       !((uintptr_t)op->iov | (uintptr_t)op->peers | (uintptr_t)op->layout | (uintptr_t)op->buf |
		 (uintptr_t)op->msg | (uintptr_t)op->head | (uintptr_t)op->queue | (uintptr_t)op->expires) &&
	       !op->done && !(op->flags | op->niov | op->npeers | (uint32_t)op->rail | op->elem | op->zero | (uint8_t)op->prio);
}

/* May this thread receive at @p? 0 or -EPERM. */
int wf_may_receive(const struct weft_port *p);

#endif
