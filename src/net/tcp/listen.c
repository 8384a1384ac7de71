/* listen.c - the door for strangers: cheap, bounded, and never in a spin. Poller only, but for wf_tcp_listen.
 *
 * Who connects costs a lane's memory and a descriptor until he says something; of those who say nothing there are at most
 * opt.strangers, each for opt.silent_ms: when one more comes the oldest goes. Without a descriptor for the next one a stranger is
 * sent away, or the one at the door is (by the spare descriptor), and the door stays shut for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/tcp/tcp.h"

#define BACKLOG 1024
#define AT_ONCE 64              /* taken in before lanes are looked at again */
#define PAUSE (50 * WEFT_MS)
#define FULL_TOLD (60 * WEFT_S)         /* that there are no descriptors, once in */

static int try_port(struct tcp_rail *rail, unsigned port)
{
	struct sockaddr_in6 sa = rail->here;
	socklen_t len = rail->here_len;
	int fd = socket(sa.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP), on = 1, err;

	if (fd < 0)
		return -errno;
	sa.sin6_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&sa, &len) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	rail->here.sin6_port = sa.sin6_port;
	return fd;
}

int wf_tcp_listen(struct tcp_rail *rail)
{
	unsigned span = (unsigned)(rail->opt.port_last - rail->opt.port_first) + 1u;
	unsigned begin = (unsigned)(wf_now() / 1000) % span;    /* two processes that begin together rarely try the same ports */
	int fd = -EADDRINUSE, r;

	if (!rail->opt.port_first)
		fd = try_port(rail, 0);
	else
		for (unsigned i = 0; i < span && fd == -EADDRINUSE; i++)
			fd = try_port(rail, rail->opt.port_first + (begin + i) % span);
	if (fd < 0)
		return weft_fail(fd, "tcp: cannot listen: %s", strerror(-fd));
	r = wf_tcp_congestion_begin(rail, fd);          /* who is let in has it from here */
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

static void watch(struct tcp_rail *rail, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = UINT64_MAX };

	epoll_ctl(rail->epoll, EPOLL_CTL_MOD, rail->listener, &ev);
}

static void pause_listening(struct tcp_rail *rail)
{
	watch(rail, 0);
	wf_lock(&rail->lock);
	rail->deaf_until = wf_now() + PAUSE;
	wf_unlock(&rail->lock);
	wf_tcp_tick(rail);
}

void wf_tcp_hear(struct tcp_rail *rail, weft_time now)
{
	if (!rail->deaf_until || rail->deaf_until > now)
		return;
	wf_lock(&rail->lock);
	rail->deaf_until = 0;
	wf_unlock(&rail->lock);
	if (rail->spare < 0)
		rail->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	watch(rail, EPOLLIN);
}

/* The oldest stranger goes. False: there is none. */
static bool send_one_away(struct tcp_rail *rail)
{
	struct tcp_lane *lane = NULL;

	wf_lock(&rail->lock);
	if (!wf_list_empty(&rail->strangers)) {
		lane = wf_of(rail->strangers.next, struct tcp_lane, waiting);
		rail->refused++;
	}
	wf_unlock(&rail->lock);
	if (lane)
		wf_tcp_lane_close(lane);        /* strangers are the poller's own: nobody else can have closed it */
	return lane != NULL;
}

static void tell_full(struct tcp_rail *rail)
{
	weft_time now = wf_now();

	if (rail->full_told && now - rail->full_told < FULL_TOLD)
		return;
	rail->full_told = now;
	wf_log(WF_WARN, "tcp: no descriptors left; who connects is sent away");
}

/* No descriptor for whoever is at the door. True: try again. */
static bool make_room(struct tcp_rail *rail)
{
	int fd;

	if (send_one_away(rail))
		return true;
	tell_full(rail);
	if (rail->spare >= 0) {
		close(rail->spare);
		fd = accept4(rail->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			wf_lock(&rail->lock);
			rail->refused++;
			wf_unlock(&rail->lock);
		}
		rail->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	pause_listening(rail);
	return false;
}

static void let_in(struct tcp_rail *rail, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct tcp_lane *lane;

	if (rail->stranger_count >= (uint32_t)rail->opt.strangers)      /* poller only writes it up: no lock */
		send_one_away(rail);
	if (wf_tcp_lane_make(rail, fd, TCP_STRANGER, NULL, &lane) < 0) {
		close(fd);
		return;
	}
	ev.data.u64 = wf_tcp_lane_event(lane);
	if (epoll_ctl(rail->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		wf_tcp_lane_close(lane);
}

int wf_tcp_accept(struct tcp_rail *rail)
{
	int n = 0;

	while (n < AT_ONCE) {
		int fd = accept4(rail->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			n++;
			let_in(rail, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (!make_room(rail))
				break;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO && errno != ENETDOWN && errno != EHOSTUNREACH) {
			pause_listening(rail);  /* nothing known: not in a spin, whatever it is */
			break;
		} else {
			n++;
		}
	}
	return n;
}
