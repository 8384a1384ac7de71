/* congestion.c - which of the kernel's congestion controls a lane has.
 *
 * The one that was asked for; or the system's, but for one case. One that paces (bbr) sets a timer for what it sends, and keeps queues on the way short. A loopback address has no way and no queue, and
 * the timer costs all the same: between bare sockets over lo 1 MiB takes 0.86 of the time with reno (aarch64), which every system has and lets everybody use. So lanes there have that, from their
 * first byte: the kernel would go on pacing.
 * Not elsewhere, however near the other end is: what fills a switch's queue is in everybody's way. (200 Mbit/s that one stream fills: what comes back for another by the same link is 30 ms late with
 * reno, and its 64 KiB messages get 2 MB/s instead of 10.)
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tcp/tcp.h"

#define SYSTEM "system"         /* the system's, whatever it is */
#define UNPACED "reno"

static int set(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) < 0 ? -errno : 0;
}

static bool loops(const struct tcp_rail *rail)
{
	struct sockaddr_in here;

	if (rail->here.sin6_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&rail->here.sin6_addr);
	memcpy(&here, &rail->here, sizeof(here));
	return ntohl(here.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool paces(int fd)
{
	char name[TCP_CONGESTION_NAME] = "";
	socklen_t len = sizeof(name) - 1;

	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && !strncmp(name, "bbr", 3);
}

int wf_tcp_congestion_begin(struct tcp_rail *rail, int listener)
{
	const char *name = rail->opt.congestion;
	int r;

	if (!strcmp(name, SYSTEM))
		return 0;
	if (*name) {
		r = set(listener, name);
		if (r < 0)
			return weft_fail(-EINVAL, "tcp: congestion control '%s' cannot be used: %s", name, strerror(-r));
		rail->congestion = name;
	} else if (loops(rail) && paces(listener) && set(listener, UNPACED) == 0) {
		rail->congestion = UNPACED;
	}
	return 0;
}

void wf_tcp_congestion_set(const struct tcp_rail *rail, int fd)
{
	if (rail->congestion)
		set(fd, rail->congestion);      /* the listener has it: it can be had */
}
