/* control.c - see control.h. */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"

#define HEAD 8u                         /* length of the body, kind */
#define READ_ROOM (64u << 10)
#define NOISE_MOST (64u << 10)          /* bytes of a login shell */

/* Sockets */

union rights {
	char room[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

/* @fds NULL: none go with it. */
static int send_packet(int sock, enum control kind, const void *body, size_t n, const int *fds)
{
	uint8_t head[4];
	struct iovec iov[2] = { { .iov_base = head, .iov_len = sizeof(head) }, { .iov_base = (void *)(uintptr_t)body, .iov_len = n } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	union rights rights = { { 0 } };

	wf_put32(head, kind);
	if (n > CONTROL_PACKET)
		return -EMSGSIZE;
	if (fds) {
		m.msg_control = rights.room;
		m.msg_controllen = sizeof(rights.room);
		rights.align.cmsg_level = SOL_SOCKET;
		rights.align.cmsg_type = SCM_RIGHTS;
		rights.align.cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(&rights.align), fds, 2 * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int control_send(int sock, enum control kind, const void *body, size_t n)
{
	return send_packet(sock, kind, body, n, NULL);
}

int control_send32(int sock, enum control kind, uint32_t value)
{
	uint8_t body[4];

	wf_put32(body, value);
	return control_send(sock, kind, body, sizeof(body));
}

int control_send_stream(int sock, uint32_t label, const int fds[2])
{
	uint8_t body[4];

	wf_put32(body, label);
	return send_packet(sock, CONTROL_STREAM, body, sizeof(body), fds);
}

/* Both or none: of one alone nobody knows which it is. */
static void take_rights(struct msghdr *m, int ret_fds[2])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t n = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	int fds[2];

	if (n > 2)
		n = 2;
	if (n)
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	if (n == 2)
		memcpy(ret_fds, fds, sizeof(fds));
	else if (n)
		close(fds[0]);
}

static void drop_rights(int fds[2])
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

int control_recv_stream(int sock, enum control *ret_kind, uint8_t body[CONTROL_PACKET], int ret_fds[2])
{
	uint8_t head[4];
	struct iovec iov[2] = { { .iov_base = head, .iov_len = sizeof(head) }, { .iov_base = body, .iov_len = CONTROL_PACKET } };
	union rights rights;
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = rights.room, .msg_controllen = sizeof(rights.room) };
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	ret_fds[0] = ret_fds[1] = -1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n < 0)
		return -ECONNRESET;
	take_rights(&m, ret_fds);
	if (n < (ssize_t)sizeof(head) || m.msg_flags & MSG_TRUNC) {
		drop_rights(ret_fds);
		return -ECONNRESET;
	}
	*ret_kind = (enum control)wf_get32(head);
	return (int)n - (int)sizeof(head);
}

int control_recv(int sock, enum control *ret_kind, uint8_t body[CONTROL_PACKET])
{
	int fds[2];
	int n = control_recv_stream(sock, ret_kind, body, fds);

	drop_rights(fds);
	return n;
}

/* Conversations */

void talk_open(struct talk *t, int in, int out)
{
	memset(t, 0, sizeof(*t));
	t->in = in;
	t->out = out;
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void talk_close(struct talk *t)
{
	if (t->in >= 0)
		close(t->in);
	if (t->out >= 0 && t->out != t->in)
		close(t->out);
	t->in = t->out = -1;
	free(t->got);
	free(t->put);
	t->got = t->put = NULL;
	t->got_n = t->got_at = t->got_room = t->put_n = t->put_at = t->put_room = 0;
	t->broken = true;
}

/* Room for @n more behind what is there. */
static bool grow(uint8_t **bytes, size_t *at, size_t *end, size_t *room, size_t n)
{
	uint8_t *more;

	if (*at) {
		memmove(*bytes, *bytes + *at, *end - *at);
		*end -= *at;
		*at = 0;
	}
	if (*room - *end >= n)
		return true;
	more = realloc(*bytes, 2 * (*end + n));
	if (!more)
		return false;
	*bytes = more;
	*room = 2 * (*end + n);
	return true;
}

void talk_say_split(struct talk *t, enum control kind, const void *head, size_t head_n, const void *body, size_t n)
{
	uint8_t *to;

	if (t->broken || t->unheard)
		return;
	if (head_n + n > CONTROL_BODY || !grow(&t->put, &t->put_at, &t->put_n, &t->put_room, HEAD + head_n + n)) {
		t->broken = true;
		return;
	}
	to = t->put + t->put_n;
	wf_put32(to, (uint32_t)(head_n + n));
	wf_put32(to + 4, kind);
	if (head_n)
		memcpy(to + HEAD, head, head_n);
	if (n)
		memcpy(to + HEAD + head_n, body, n);
	t->put_n += HEAD + head_n + n;
	talk_write(t);
}

void talk_say(struct talk *t, enum control kind, const void *body, size_t n)
{
	talk_say_split(t, kind, NULL, 0, body, n);
}

void talk_say32(struct talk *t, enum control kind, uint32_t value)
{
	uint8_t body[4];

	wf_put32(body, value);
	talk_say(t, kind, body, sizeof(body));
}

void talk_write(struct talk *t)
{
	while (!t->broken && !t->unheard && t->put_at < t->put_n) {
		ssize_t n = write(t->out, t->put + t->put_at, t->put_n - t->put_at);

		if (n > 0)
			t->put_at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n < 0 && errno != EINTR)
			t->unheard = true;
	}
	if (t->put_at == t->put_n || t->unheard)
		t->put_at = t->put_n = 0;
}

bool talk_owes(const struct talk *t)
{
	return !t->broken && t->put_at < t->put_n;
}

void talk_read(struct talk *t)
{
	ssize_t n;

	if (t->broken)
		return;
	if (!grow(&t->got, &t->got_at, &t->got_n, &t->got_room, READ_ROOM)) {
		t->broken = true;
		return;
	}
	n = read(t->in, t->got + t->got_n, READ_ROOM);
	if (n > 0)
		t->got_n += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		t->broken = true;
}

bool talk_next(struct talk *t, enum control *ret_kind, struct wf_body *ret_body)
{
	size_t left = t->got_n - t->got_at;
	uint8_t *at;
	uint32_t n;

	if (left < HEAD)
		return false;
	at = t->got + t->got_at;
	n = wf_get32(at);
	if (n > CONTROL_BODY) {
		t->broken = true;
		t->got_at = t->got_n = 0;
		return false;
	}
	if (left - HEAD < n)
		return false;
	*ret_kind = (enum control)wf_get32(at + 4);
	*ret_body = (struct wf_body){ .bytes = at + HEAD, .n = n };
	t->got_at += HEAD + n;
	return true;
}

bool talk_begun(struct talk *t)
{
	const uint8_t *magic = t->got_n > t->got_at ? memmem(t->got + t->got_at, t->got_n - t->got_at, TALK_MAGIC, TALK_MAGIC_BYTES) : NULL;

	if (magic) {
		t->got_at = (size_t)(magic - t->got) + TALK_MAGIC_BYTES;
		return true;
	}
	if (t->got_n - t->got_at > NOISE_MOST)
		t->broken = true;
	return false;
}
