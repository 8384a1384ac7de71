/* weft/buf.h - memory that changes hands without being copied.
 *
 * A buffer taken from weft, filled and sent is handed to the receiver: the very same memory
 * arrives, in another process at an address of its own. Size classes are powers of two; @len is what will be sent, @cap
 * what fits. A received buffer is an ordinary one: fill it and send it on, or put it back (it goes
 * home to the process that made it).
 * Misuse is an error code: putting twice, sending one that is under way, a pointer that is
 * not a buffer's.
 */
#ifndef WEFT_BUF_H
#define WEFT_BUF_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_buf {                       /* head of a private struct; set len before sending */
	void *data;
	size_t len, cap;
};

enum { WEFT_RAIL_ANY, WEFT_RAIL_FASTEST };      /* which network a buffer is for */
enum { WEFT_BUF_IDLE, WEFT_BUF_SENDING, WEFT_BUF_SENT, WEFT_BUF_WITH_RECEIVER };

/**
 * weft_buf_get - [nb] take a buffer with room for @len bytes; its len is set to @len.
 * @rail: the network it is for: WEFT_RAIL_ANY (0) or WEFT_RAIL_FASTEST (1); others answer -EOPNOTSUPP.
 * Returns 0; -ENOBUFS: larger than the largest class or the pool may ever be; -EAGAIN: the
 * pool is at its limit now, what other processes have of it included; -ENOMEM.
 */
int weft_buf_get(size_t len, int rail, struct weft_buf **ret_buf WEFT_GIVES);

/**
 * weft_buf_put - [nb] give a buffer back to its pool, once nobody else has it. NULL is fine.
 * Returns 0; -EINVAL: not a buffer, or put before; -EBUSY: being sent, or lent by this side
 * and put by it before.
 */
int weft_buf_put(struct weft_buf *buf WEFT_TAKES);

/* [nb] Of one sent with WEFT_KEEP: SENDING, SENT (in the receiver's mailbox, not taken yet),
 * WITH_RECEIVER, and IDLE again when the receiver has put it or its process has died. -EINVAL: not a buffer. */
int weft_buf_state(const struct weft_buf *buf);

struct weft_buf *weft_buf_of(const void *mem);  /* [nb] the buffer that mem lies in, or NULL */

#ifdef __cplusplus
}
#endif
#endif
