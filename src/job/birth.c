/* birth.c - see birth.h. */
#include "job/birth.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/clock.h"

#define LIMIT_MOST 86400

int wf_birth_say(int sock, enum wf_birth kind, const struct wf_body *body)
{
	uint8_t head[4];
	struct iovec iov[2] = { { .iov_base = head, .iov_len = sizeof(head) }, { .iov_base = NULL } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = body ? 2 : 1 };
	ssize_t n;

	if (body && body->bad)
		return weft_fail(-EMSGSIZE, "more than an agent is told at once");
	if (body)
		iov[1] = (struct iovec){ .iov_base = body->bytes, .iov_len = body->at };
	wf_put32(head, kind);
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? weft_fail(-ECONNRESET, "the agent of this host is gone") : 0;
}

/* 0: something is there. */
static int await(int sock, weft_time until)
{
	for (;;) {
		struct pollfd p = { .fd = sock, .events = POLLIN };
		int64_t left = until - wf_now();
		int n = poll(&p, 1, left <= 0 ? 0 : (int)(left / WEFT_MS < 1000 ? left / WEFT_MS + 1 : 1000));

		if (n > 0)
			return 0;
		if (wf_past(until))
			return wf_late(until);
	}
}

int wf_birth_hear(int sock, weft_time until, enum wf_birth *ret_kind, struct wf_body *ret_body, uint8_t room[WF_BIRTH_ROOM])
{
	uint8_t head[4];
	struct iovec iov[2] = { { .iov_base = head, .iov_len = sizeof(head) }, { .iov_base = room, .iov_len = WF_BIRTH_ROOM } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	int r = await(sock, until);
	ssize_t n;

	if (r < 0)
		return r;
	do
		n = recvmsg(sock, &m, 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(head) || m.msg_flags & MSG_TRUNC)
		return weft_fail(-ECONNRESET, "the agent of this host is gone");
	*ret_kind = (enum wf_birth)wf_get32(head);
	*ret_body = (struct wf_body){ .bytes = room, .n = (size_t)n - sizeof(head) };
	return 0;
}

int64_t wf_birth_limit(void)
{
	const char *text = getenv("WEFT_START_S");
	char *end;
	long v;

	if (!text || !*text)
		return WF_BIRTH_LIMIT * WEFT_S;
	v = strtol(text, &end, 10);
	if (*end || v < 1 || v > LIMIT_MOST)
		return weft_fail(-EINVAL, "WEFT_START_S=%s: seconds, 1 to %d", text, LIMIT_MOST);
	return v * WEFT_S;
}
