/* send.c - bytes into the socket. One thread at a time per lane; beside the poller.
 *
 * Not by the C library, here and where the poller looks: its calls mark the thread as cancellable around each, two compare-and-swaps, which nobody wants here.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/call.h"
#include "net/tcp/tcp.h"

#define SPLIT_LEAST ((size_t)48 << 10)  /* bytes that go in two calls: more than these, */
#define SPLIT_MOST ((size_t)80 << 10)   /* ... and less: more are several of the kernel's packets anyway */
#define SPLIT_AT (((size_t)36 << 10) + 128)
#define SPLIT_PIECES 8u

/* As wf_call. */
static inline ssize_t send_one(const struct tcp_lane *lane, const struct iovec *piece, int flags)
{
	return wf_call(SYS_sendto, lane->fd, (intptr_t)piece->iov_base, (intptr_t)piece->iov_len, flags, 0, 0);
}

static ssize_t send_several(const struct tcp_lane *lane, const struct iovec *piece, size_t pieces, int flags)
{
	union { const struct iovec *borrowed; struct iovec *unconst; } u = { .borrowed = piece };      /* the kernel only reads them */
	struct msghdr m = { .msg_iov = u.unconst, .msg_iovlen = pieces };

	return wf_call(SYS_sendmsg, lane->fd, (intptr_t)&m, flags, 0, 0, 0);
}

/* About one of the kernel's packets becomes two: who reads has the first in hand while the second is copied. 64 KiB to and fro between bare sockets over lo: 0.93 of the time (aarch64). */
static ssize_t send_in_two(struct tcp_lane *lane, const struct iovec *piece, uint32_t pieces, int flags)
{
	struct iovec front[SPLIT_PIECES], back[SPLIT_PIECES];
	uint32_t nf = 0, nb = 0;
	size_t left = SPLIT_AT;
	ssize_t n, m;

	for (uint32_t i = 0; i < pieces; i++) {
		size_t k = piece[i].iov_len < left ? piece[i].iov_len : left;

		if (k)
			front[nf++] = (struct iovec){ piece[i].iov_base, k };
		if (k < piece[i].iov_len)
			back[nb++] = (struct iovec){ (char *)piece[i].iov_base + k, piece[i].iov_len - k };
		left -= k;
	}
	n = send_several(lane, front, nf, flags);
	if (n != (ssize_t)SPLIT_AT)
		return n;
	m = nb == 1 ? send_one(lane, back, flags) : send_several(lane, back, nb, flags);
	return m < 0 ? n : n + m;
}

WF_HOT ssize_t wf_tcp_send(void *state, const struct weft_out *out)
{
	struct tcp_lane *lane = state;
	uint32_t how = wf_acquire32(&lane->state);
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	size_t all = out->pieces ? out->piece->iov_len : 0;
	ssize_t n;

	if (wf_unlikely(how != TCP_UP))
		return how == TCP_DEAD ? -EPIPE : -EAGAIN;      /* up() comes */
	for (uint32_t i = 1; wf_unlikely(i < out->pieces); i++)
		all += out->piece[i].iov_len;
	if (all == 0)
		return 0;
	if (out->flags & WEFT_SEND_MORE)
		flags |= MSG_MORE;
	do {
		if (wf_likely(out->pieces == 1))
			n = send_one(lane, out->piece, flags);
		else if (all > SPLIT_LEAST && all < SPLIT_MOST && out->pieces <= SPLIT_PIECES)
			n = send_in_two(lane, out->piece, out->pieces, flags);
		else
			n = send_several(lane, out->piece, out->pieces, flags);
	} while (wf_unlikely(n == -EINTR));
	if (n >= 0) {
		if (wf_unlikely((size_t)n > TCP_HUGE))
			atomic_store_explicit(&lane->rail->elsewhere, true, memory_order_relaxed);
		wf_tcp_count(lane, &lane->sent, n);
		if ((size_t)n < all)
			wf_tcp_block(lane);
		return n;
	}
	if (n == -EAGAIN || n == -ENOBUFS || n == -ENOMEM) {
		wf_tcp_block(lane);
		return -EAGAIN;
	}
	atomic_store_explicit(&lane->broken, (int)n, memory_order_relaxed);
	return n;
}
