/* retain.h - the bytes of one outgoing stream: queue of what is to go, and copy of what may have to go again.
 *
 *        acked            sent              tail
 *     ----|----- retained --|--- not yet sent -|----  free
 *
 * Positions are the stream's byte offsets; a byte lies at its offset modulo the size, a power of two. Frames are multiples of 8 bytes, so a
 * frame's head never wraps; its rest may. Sending again is sent = acked. The memory grows by doubling up to a limit; while a lane writes
 * straight from it (lent), what it reads stays where it is: growing keeps the old block until the last is given back, and nothing behind the lent
 * range is overwritten. Runs under the remote's lock.
 */
#ifndef WF_PEER_RETAIN_H
#define WF_PEER_RETAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define WF_RETAIN_LEAST (16u << 10)
#define WF_RETAIN_MOST (1u << 20)

struct wf_retain {
	unsigned char *mem, *old;       /* old: lent before the last growth */
	uint32_t size, most;
	uint32_t lent;                  /* ranges a lane writes from */
	uint64_t lent_low;              /* the lowest of them began here */
	uint64_t acked, sent, tail;
};

void wf_retain_fini(struct wf_retain *rt);

/* Room for @n bytes more, growing up to the limit, @spare bytes of which stay free. False: none. */
bool wf_retain_room(struct wf_retain *rt, size_t n, size_t spare);

/* Copies to offset @at and on; room was made. */
void wf_retain_put(struct wf_retain *rt, uint64_t at, const void *from, size_t n);

/* The head of the frame at @at; and where [from, to) lies: 1 or 2 pieces, lent until wf_retain_back. */
static inline unsigned char *wf_retain_head(const struct wf_retain *rt, uint64_t at)
{
	return rt->mem + (at & (rt->size - 1));
}
int wf_retain_lend(struct wf_retain *rt, uint64_t from, uint64_t to, struct iovec ret_iov[2]);
void wf_retain_back(struct wf_retain *rt);

/* Nothing is in it: it costs nothing. */
void wf_retain_rest(struct wf_retain *rt);

#endif
