/* bench_tcp_floor.c - what bare sockets take for what weft has to do beside sending and receiving (tcp-floor; on another network veth-tcp-floor).
 * usage: bench/hosts [-v] BUILD_DIR bench_tcp_floor
 *
 * Half a round trip between two processes on two cores, in ns, over a connection each; no weft but to start them. Both sides spin:
 *   raw/tcp-plain   send and recv with MSG_DONTWAIT, as the marks have it
 *   raw/tcp-head    8 B are 64; else 128 bytes go before the payload, gathered by sendmsg and scattered by recvmsg
 *   raw/tcp-kept    the same, and two copies: of what was sent, as it may have to be sent again, and of what was in the memory that is received into
 *   raw/tcp-code    as tcp-head, and behind each receive 32 functions are called, once each, some 1,000 instructions
 * Both sides sleep, 8 B:
 *   raw/tcp-asleep  send and recv of a blocking socket
 *   raw/tcp-epoll   send; epoll_wait, and recv
 */
#include "tcp.h"
#include <sys/epoll.h>
#include <sys/uio.h>

#define HEAD 128
#define SHORT 56 /* bytes that go before a short one, in one piece with it */

struct floor_link {
	struct link l;
	int fd, epoll;
	bool keeps, works;
	char head[HEAD];
	char *sent, *there; /* copies */
};

static const size_t floor_sizes[] = { 8, 16384, 65536 };

/* ---- some code, none of which is run twice in a row ---- */

static uint64_t worked;

#define MIX(x, n) ((x) ^= (x) >> 7, (x) *= UINT64_C(0x9e3779b97f4a7c15), (x) += (n))
#define WORK(n) \
	static __attribute__((noinline)) uint64_t work_##n(uint64_t a) \
	{ \
		uint64_t b = a + n, c = a ^ n, d = a - n; \
		MIX(a, n); MIX(b, 2 * n); MIX(c, 3 * n); MIX(d, 5 * n); \
		MIX(a, b); MIX(b, c); MIX(c, d); MIX(d, a); \
		return a ^ b ^ c ^ d; \
	}
#define EIGHT(x, n) x(n##0) x(n##1) x(n##2) x(n##3) x(n##4) x(n##5) x(n##6) x(n##7)
#define ALL(x) EIGHT(x, 1) EIGHT(x, 2) EIGHT(x, 3) EIGHT(x, 4)

ALL(WORK)

static void work(void)
{
#define CALL(n) worked = work_##n(worked);
	ALL(CALL)
}

static void work_alone(void *none)
{
	(void)none;
	work();
}

/* ---- links ---- */

/* All that @v names. */
static void floor_move(struct floor_link *k, struct iovec v[2], bool out)
{
	for (int at = 0; at < 2;) {
		struct msghdr m = { .msg_iov = v + at, .msg_iovlen = (size_t)(2 - at) };
		size_t n = out ? tcp_moved(sendmsg(k->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL), "sendmsg") : tcp_moved(recvmsg(k->fd, &m, MSG_DONTWAIT), "recvmsg");

		while (at < 2 && n >= v[at].iov_len)
			n -= v[at++].iov_len;
		if (at < 2) {
			v[at].iov_base = (char *)v[at].iov_base + n;
			v[at].iov_len -= n;
		}
	}
}

static void floor_send(struct link *l, void *mem, size_t n)
{
	struct floor_link *k = (struct floor_link *)l;
	struct tcp_link plain = { .fd = k->fd, .flags = MSG_DONTWAIT };

	if (n <= HEAD - SHORT) {
		memcpy(k->head + SHORT, mem, n);
		tcp_send(&plain.l, k->head, SHORT + n);
	} else {
		floor_move(k, (struct iovec[]){ { k->head, HEAD }, { mem, n } }, true);
	}
	if (k->keeps)
		memcpy(k->sent, mem, n);
}

static void floor_recv(struct link *l, void *mem, size_t n)
{
	struct floor_link *k = (struct floor_link *)l;
	struct tcp_link plain = { .fd = k->fd, .flags = MSG_DONTWAIT };

	if (k->keeps)
		memcpy(k->there, mem, n);
	if (n <= HEAD - SHORT) {
		tcp_recv(&plain.l, k->head, SHORT + n);
		memcpy(mem, k->head + SHORT, n);
	} else {
		floor_move(k, (struct iovec[]){ { k->head, HEAD }, { mem, n } }, false);
	}
	if (k->works)
		work();
}

static void epoll_send(struct link *l, void *mem, size_t n)
{
	struct tcp_link plain = { .fd = ((struct floor_link *)l)->fd };

	tcp_send(&plain.l, mem, n);
}

static void epoll_recv(struct link *l, void *mem, size_t n)
{
	struct floor_link *k = (struct floor_link *)l;

	for (size_t at = 0; at < n;) {
		struct epoll_event ev;

		if (epoll_wait(k->epoll, &ev, 1, -1) < 0 && errno != EINTR)
			die("epoll_wait: %s", strerror(errno));
		at += tcp_moved(recv(k->fd, (char *)mem + at, n - at, MSG_DONTWAIT), "recv");
	}
}

static struct floor_link floor_link(struct tcp_pair *t, bool keeps, bool works)
{
	struct floor_link k = { .l = { .send = floor_send, .recv = floor_recv }, .fd = tcp_connect(t), .epoll = -1, .keeps = keeps, .works = works };

	if (keeps) {
		k.sent = page_memory(floor_sizes[COUNT(floor_sizes) - 1]);
		k.there = page_memory(floor_sizes[COUNT(floor_sizes) - 1]);
	}
	return k;
}

static struct floor_link epoll_link(struct tcp_pair *t)
{
	struct floor_link k = { .l = { .send = epoll_send, .recv = epoll_recv }, .fd = tcp_connect(t), .epoll = epoll_create1(EPOLL_CLOEXEC) };

	if (k.epoll < 0 || epoll_ctl(k.epoll, EPOLL_CTL_ADD, k.fd, &(struct epoll_event){ .events = EPOLLIN }))
		die("an epoll set: %s", strerror(errno));
	return k;
}

static void floor_end(struct floor_link *k)
{
	close(k->fd);
	if (k->epoll >= 0)
		close(k->epoll);
}

int main(void)
{
	struct tcp_pair t = tcp_start();
	struct tcp_link plain = tcp_link(&t, true), asleep = tcp_link(&t, false);
	struct floor_link head = floor_link(&t, false, false), kept = floor_link(&t, true, false), code = floor_link(&t, false, true), epoll = epoll_link(&t);
	void *mem = page_memory(floor_sizes[COUNT(floor_sizes) - 1]);

	cpu_pin(t.side);
	asleep.fd = tcp_connect(&t);
	for (size_t i = 0; i < COUNT(floor_sizes) && cpu_count() >= 2; i++)
		for (int r = 0; r < repeats(); r++) {
			lat_sample(&plain.l, t.side, mem, floor_sizes[i], tcp_series("raw", "-plain").name);
			lat_sample(&head.l, t.side, mem, floor_sizes[i], tcp_series("raw", "-head").name);
			lat_sample(&kept.l, t.side, mem, floor_sizes[i], tcp_series("raw", "-kept").name);
			lat_sample(&code.l, t.side, mem, floor_sizes[i], tcp_series("raw", "-code").name);
		}
	sleeper_priority(true);
	for (int r = 0; r < repeats() && cpu_count() >= 2; r++) {
		lat_sample(&asleep.l, t.side, mem, 8, tcp_series("raw", "-asleep").name);
		lat_sample(&epoll.l, t.side, mem, 8, tcp_series("raw", "-epoll").name);
	}
	sleeper_priority(false);
	if (t.side == 0)
		sample(tcp_series("raw", "-code").name, "alone", 8, measure_alone(work_alone, NULL));
	floor_end(&head);
	floor_end(&kept);
	floor_end(&code);
	floor_end(&epoll);
	close(asleep.fd);
	tcp_end(&t);
	return 0;
}
