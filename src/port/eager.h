/* eager.h - what goes to another process at once, with its cell. */
#ifndef WF_PORT_EAGER_H
#define WF_PORT_EAGER_H

#include "mem/share.h"
#include "port/port.h"

struct outgoing;

/* [any] Writes @o at once if it can go eagerly: 0; -EAGAIN: full; -ENOBUFS: not this way (announce it); -ESRCH; -EINVAL: a layout failed. A buffer
 * of @o has left with 0. */
int wf_far_eager(struct outgoing *o, uint64_t allow);

/* [any] Is a message copied to another process at once, if there is room? Not if that one can read it where it lies, @data (NULL: in pieces), and it is worth it. */
bool wf_far_may_eager(const void *data, size_t len);

/* What flies for a buffer: itself, or a copy where it cannot (a view of another process's buffer). */
struct wf_take_off {
	struct wf_flight flight;
	struct weft_buf *carry;
};

/* @b of @kind is about to be published to process @to; taken_off: it was, or will be with no way back. 0, or an error: nothing happened. */
int wf_take_off(struct weft_buf *b, uint16_t kind, uint32_t to, struct wf_take_off *f);
void wf_taken_off(struct weft_buf *b, struct wf_take_off *f);

#endif
