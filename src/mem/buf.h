/* buf.h - what the core does with buffers beyond the public calls: lending them, handing them over.
 *
 * A send passes a buffer through these points, in this order:
 *
 *   sender    wf_buf_send_begin     the buffer is under way, nobody may put or send it
 *             wf_buf_send_undo      (the send came to nothing: as before send_begin)
 *             wf_buf_sent           just BEFORE the message is published in the mailbox
 *   receiver  wf_buf_delivered      the carry is in the receiver's hands
 *
 * What travels is the carry. Once the message is published the carry is the receiver's, who may
 * have put it already: the sender touches it no more. A message that is dropped on its way (port
 * closed, process over) ends with wf_buf_delivered and wf_buf_release. Whoever passes the carry
 * from sender to receiver makes the first happen before the second; the calls here do not.
 */
#ifndef WF_MEM_BUF_H
#define WF_MEM_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/buf.h>

#define WF_BUF_SMALLEST 256     /* bytes of the smallest class; what asks for a message, with its header, fits (port.h) */

/* Opens the pool; it may grow to @limit bytes of buffers (0: 1 GiB). -ENOMEM. By weft_init. */
int wf_pool_init(size_t limit);

/* Closes it and gives free memory back; what users still hold stays good. By weft_fini. */
void wf_pool_fini(void);

/* [any] weft_buf_get without a rail. */
int wf_buf_alloc(size_t len, struct weft_buf **ret_buf);

/* [any] weft_buf_put for a caller that is known to hold @buf. */
void wf_buf_release(struct weft_buf *buf);

/**
 * wf_buf_send_begin - [any] @buf goes on its way; any pointer at all may be passed.
 * @keep:      lend it: what travels is a read-only view of the bytes, with a struct weft_buf of its
 *             own (len = cap = @buf->len) that the receiver holds and puts. Views may be out in any
 *             number; only a plain send finds the lent buffer busy.
 * @ret_carry: what travels: @buf itself or the view.
 * Returns 0; -EINVAL: not a buffer, one in the pool, len beyond cap, or data not where it was;
 * -EBUSY: under way already, lent (without @keep), or put while lent; -EAGAIN: lent a million times;
 * -ENOMEM.
 */
int wf_buf_send_begin(struct weft_buf *buf, bool keep, struct weft_buf **ret_carry);

/* [any] The send did not happen: as before send_begin. Also after wf_buf_sent, as long as nothing was
 * published. Returns what is its sender's again: @carry, or NULL if it was a view made for this
 * send, which is dissolved. (A view received earlier and sent on is its sender's again.) */
struct weft_buf *wf_buf_send_undo(struct weft_buf *carry);

void wf_buf_sent(struct weft_buf *carry);       /* [any] about to lie in the receiver's mailbox */
void wf_buf_delivered(struct weft_buf *carry);  /* [any] in the receiver's hands; also straight from begun */
bool wf_buf_is_shared(const struct weft_buf *carry);    /* [any] a view: WEFT_ST_SHARED */

#endif
