/* frames.c - a frame and its descriptors through a socket. Part of the library and of the weft command.
 *
 * The calls go by syscall(2): sendmsg(3) and recvmsg(3) are cancellation points, and a thread that is cancelled inside the
 * library would keep its locks.
 */
#include "job/frames.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "job/link.h"

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(WF_PARCEL_FDS * sizeof(int))];
};

int wf_parcel_send(int sock, const void *frame, size_t bytes, const int *fds, unsigned count, int flags)
{
	struct iovec piece = { .iov_len = bytes };
	union control control;
	struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1 };

	memcpy(&piece.iov_base, &frame, sizeof(frame));         /* the kernel only reads it */
	if (count) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	for (;;) {
		long r = syscall(SYS_sendmsg, sock, &m, flags | MSG_NOSIGNAL);

		if (r >= 0)
			return (size_t)r == bytes ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

static void unpack(struct msghdr *m, struct wf_parcel *parcel)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && len == sizeof(struct ucred)) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			parcel->pid = cred.pid;
			parcel->uid = cred.uid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			for (size_t i = 0; i + sizeof(int) <= len; i += sizeof(int)) {
				int fd;

				memcpy(&fd, CMSG_DATA(c) + i, sizeof(fd));
				if (parcel->count < WF_PARCEL_FDS) {
					parcel->fds[parcel->count++] = fd;
				} else {
					parcel->lost = true;
					close(fd);
				}
			}
		}
	}
}

ssize_t wf_parcel_recv(int sock, void *frame, size_t room, struct wf_parcel *ret_parcel, int flags)
{
	struct iovec piece = { .iov_base = frame, .iov_len = room };
	union control control;
	struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1 };
	long r;

	memset(&control, 0, sizeof(control));
	memset(ret_parcel, 0, sizeof(*ret_parcel));
	do {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		r = syscall(SYS_recvmsg, sock, &m, flags | MSG_CMSG_CLOEXEC);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	unpack(&m, ret_parcel);
	if (m.msg_flags & MSG_TRUNC)
		ret_parcel->cut = true;
	if (m.msg_flags & MSG_CTRUNC)
		ret_parcel->lost = true;
	return r;
}

void wf_parcel_drop(struct wf_parcel *parcel)
{
	for (unsigned i = 0; i < parcel->count; i++)
		close(parcel->fds[i]);
	parcel->count = 0;
}

int wf_letter_send(int sock, const struct wf_note *note, const void *bytes, size_t n)
{
	struct iovec iov[2] = { { .iov_base = (void *)(uintptr_t)note, .iov_len = sizeof(*note) }, { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n ? 2 : 1 };

	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
