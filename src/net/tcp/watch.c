/* watch.c - which lanes epoll looks at, and for what.
 *
 * A lane is in the set for reading, for writing too while a send of it waits for room. The one lane that a spinning thread looks at all the
 * time is taken out after a while: a socket that nobody waits for is cheaper to deliver to (8 B to and fro over lo: 1.11 of bare sockets
 * with it, 1.03 to 1.10 without; aarch64), and put back before anybody sleeps, or when another lane becomes the busy one.
 *
 * epoll tells the state of a socket, not its changes, so nothing is missed between a call that found it full, or empty, and these.
 * Any thread; the lane's lock keeps the set and `blocked`, `watched` the same.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "net/tcp/tcp.h"

static int set_locked(struct tcp_lane *lane, int how)
{
	struct epoll_event ev = { .events = lane->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.u64 = wf_tcp_lane_event(lane) };

	wf_assert_held(&lane->lock);
	return epoll_ctl(lane->rail->epoll, how, lane->fd, &ev) < 0 ? -errno : 0;
}

void wf_tcp_block(struct tcp_lane *lane)
{
	wf_lock(&lane->lock);
	if (!lane->blocked) {
		lane->blocked = true;
		if (set_locked(lane, lane->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD) == 0)
			lane->watched = true;
	}
	wf_unlock(&lane->lock);
}

bool wf_tcp_writable(struct tcp_lane *lane)
{
	bool blocked;

	wf_lock(&lane->lock);
	blocked = lane->blocked;
	lane->blocked = false;
	if (blocked)
		set_locked(lane, EPOLL_CTL_MOD);
	wf_unlock(&lane->lock);
	return blocked;
}

void wf_tcp_unwatch(struct tcp_lane *lane)
{
	wf_lock(&lane->lock);
	if (lane->watched && !lane->blocked && set_locked(lane, EPOLL_CTL_DEL) == 0)
		lane->watched = false;
	wf_unlock(&lane->lock);
}

int wf_tcp_watch(struct tcp_lane *lane)
{
	int r = 0;

	wf_lock(&lane->lock);
	if (!lane->watched)
		r = set_locked(lane, EPOLL_CTL_ADD);
	if (r == 0)
		lane->watched = true;
	wf_unlock(&lane->lock);
	return r;
}
