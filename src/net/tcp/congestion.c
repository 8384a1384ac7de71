/* congestion.c - which of the kernel's congestion controls a lane has.
 *
 * The one that was asked for; or the system's, but for one case. One that paces (bbr) sets a timer for what it sends, and probes for what a way of many milliseconds could carry. To a host
 * a few hops away that costs more than it brings: between bare sockets over lo 1 MiB takes 0.86 of the time with reno (aarch64). So lanes to near hosts have that, which every system has and
 * lets everybody use. They begin with it, and get the system's when it turns out that the other end is not near: the other way round the kernel would go on pacing.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tcp/tcp.h"

#define ESTABLISHED 1           /* as the kernel numbers states */
#define SYSTEM "system"         /* the system's, whatever it is */
#define UNPACED "reno"

static int set(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) < 0 ? -errno : 0;
}

int wf_tcp_congestion_begin(struct tcp_rail *rail, int listener)
{
	char *name = rail->opt.congestion;
	socklen_t len = sizeof(rail->paced) - 1;
	int r;

	if (!strcmp(name, SYSTEM))
		return 0;
	if (*name) {
		r = set(listener, name);
		return r < 0 ? weft_fail(-EINVAL, "tcp: congestion control '%s' cannot be used: %s", name, strerror(-r)) : 0;
	}
	if (getsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, rail->paced, &len) < 0 || strncmp(rail->paced, "bbr", 3) != 0 || set(listener, UNPACED) < 0)
		rail->paced[0] = 0;
	return 0;
}

void wf_tcp_congestion_set(const struct tcp_rail *rail, int fd)
{
	if (*rail->paced)
		set(fd, UNPACED);
	else if (*rail->opt.congestion && strcmp(rail->opt.congestion, SYSTEM) != 0)
		set(fd, rail->opt.congestion);  /* the listener has it: it can be had */
}

void wf_tcp_congestion_fit(const struct tcp_lane *lane)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!*lane->rail->paced || getsockopt(lane->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_state != ESTABLISHED)
		return;
	if (info.tcpi_min_rtt >= (uint32_t)lane->rail->opt.near_us)
		set(lane->fd, lane->rail->paced);
}
