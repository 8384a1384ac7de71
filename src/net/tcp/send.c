/* send.c - bytes into the socket. One thread at a time per lane; beside the poller.
 *
 * By syscall(2), here and where the poller looks: the C library's own calls mark the thread as cancellable around each, two compare-and-swaps, which nobody wants here.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/tcp/tcp.h"

WF_HOT ssize_t wf_tcp_send(void *state, const struct weft_out *out)
{
	struct tcp_lane *lane = state;
	int how = atomic_load_explicit(&lane->state, memory_order_acquire), flags = MSG_NOSIGNAL | MSG_DONTWAIT, err;
	struct iovec *piece;
	size_t all = 0;
	ssize_t n;

	if (wf_unlikely(how != TCP_UP))
		return how == TCP_DEAD ? -EPIPE : -EAGAIN;      /* up() comes */
	for (uint32_t i = 0; i < out->pieces; i++)
		all += out->piece[i].iov_len;
	if (all == 0)
		return 0;
	if (out->flags & WEFT_SEND_MORE)
		flags |= MSG_MORE;
	do {
		if (out->pieces == 1) {
			n = syscall(SYS_sendto, lane->fd, out->piece->iov_base, all, flags, NULL, 0);
		} else {
			union { const struct iovec *borrowed; struct iovec *unconst; } u = { .borrowed = out->piece };

			piece = u.unconst;      /* sendmsg only reads them */
			n = syscall(SYS_sendmsg, lane->fd, &(struct msghdr){ .msg_iov = piece, .msg_iovlen = out->pieces }, flags);
		}
	} while (n < 0 && errno == EINTR);
	if (n >= 0) {
		atomic_store_explicit(&lane->sent, atomic_load_explicit(&lane->sent, memory_order_relaxed) + (uint64_t)n, memory_order_relaxed);
		if ((size_t)n < all)
			wf_tcp_block(lane);
		return n;
	}
	err = errno;
	if (err == EAGAIN || err == ENOBUFS || err == ENOMEM) {
		wf_tcp_block(lane);
		return -EAGAIN;
	}
	atomic_store_explicit(&lane->broken, -err, memory_order_relaxed);
	return -err;
}
