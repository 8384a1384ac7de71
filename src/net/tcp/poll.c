/* poll.c - one round over a rail: the lane that spoke last by a look at its socket, the others by epoll, deadlines by a timer in the set.
 *
 * A thread that spins pays one system call per look: the hot lane's. epoll is asked every `stride` looks: the more often the hot lane alone
 * had something the larger, 1 as soon as another one had. Where a huge need came last what follows mostly comes on another lane: there epoll is asked whenever the hot one has nothing. A
 * thread that does not spin gets an answer about all lanes.
 * A lane that stays hot leaves the epoll set (watch.c) until arm(). Only who spins takes it out: beside one who does not, another may sleep
 * on the set, armed before.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shield.h"
#include "net/tcp/tcp.h"

#define EVENT_LISTENER UINT64_MAX
#define EVENT_TIMER (UINT64_MAX - 1)

/* Into a lane: true if it is still the one meant. Out again by leave(). */
static bool enter(struct tcp_rail *rail, struct tcp_ref ref)
{
	atomic_store_explicit(&rail->in, ref.lane, memory_order_relaxed);
	wf_fence_light();                                                                               /* T1 */
	return (atomic_load_explicit(&ref.lane->word, memory_order_acquire) & ~TCP_DROP) == ref.word;   /* T2 */
}

static void leave(struct tcp_rail *rail)
{
	atomic_store_explicit(&rail->in, NULL, memory_order_release);
}

/* relaxed: the poller is who writes it, once a lane is up. */
static bool is(const struct tcp_lane *lane, enum tcp_state state)
{
	return atomic_load_explicit(&lane->state, memory_order_relaxed) == (uint32_t)state;
}

static void watch_reads(struct tcp_lane *lane)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = wf_tcp_lane_event(lane) };

	epoll_ctl(lane->rail->epoll, EPOLL_CTL_MOD, lane->fd, &ev);
}

/* A connect has an outcome. */
static void connected(struct tcp_ref ref)
{
	struct tcp_lane *lane = ref.lane;
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(lane->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		wf_tcp_fail(ref, -err);
		return;
	}
	wf_tcp_lane_settle(lane);
	watch_reads(lane);
	atomic_store_explicit(&lane->state, TCP_UP, memory_order_release);
	lane->rail->up->up(lane->cookie);
}

/* A stranger has said something, or went. True: the core has the lane now. */
static bool introduce(struct tcp_ref ref)
{
	struct tcp_lane *lane = ref.lane;
	struct tcp_rail *rail = lane->rail;
	struct sockaddr_in6 sa;
	socklen_t len = sizeof(sa);
	struct weft_addr from;
	char byte;
	int on = 1;
	bool welcome = recv(lane->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 && getpeername(lane->fd, (struct sockaddr *)&sa, &len) == 0;

	wf_tcp_lane_settle(lane);
	if (welcome) {
		sa.sin6_port = 0;               /* says nothing of who it is */
		setsockopt(lane->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		wf_tcp_addr_of(&sa, &from);
		atomic_store_explicit(&lane->state, TCP_UP, memory_order_release);      /* the core may answer in the upcall */
		welcome = rail->up->incoming(rail->cookie, lane, &from, &lane->cookie) >= 0;
	}
	wf_lock(&rail->lock);
	rail->accepted += welcome;
	rail->refused += !welcome;
	wf_unlock(&rail->lock);
	if (!welcome)
		wf_tcp_lane_close(lane);
	return welcome && wf_tcp_same(ref);
}

/* How many upcalls there were, or so. */
static int serve(struct tcp_rail *rail, struct tcp_ref ref, uint32_t events)
{
	struct tcp_lane *lane = ref.lane;
	bool here = enter(rail, ref);
	int n = 0;

	if (here && is(lane, TCP_CONNECTING) && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		n++;
		connected(ref);
		here = wf_tcp_same(ref) && is(lane, TCP_UP);
		events = 0;             /* what else there is comes next time */
	}
	if (here && is(lane, TCP_STRANGER)) {
		n++;
		here = introduce(ref);
	}
	if (here && is(lane, TCP_UP) && (events & EPOLLOUT) && wf_tcp_writable(lane)) {
		n++;
		rail->up->writable(lane->cookie);
		here = wf_tcp_same(ref);
	}
	if (here && is(lane, TCP_UP) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		wf_tcp_read(ref, &n);
	leave(rail);
	return n;
}

/* One that waits for too long: @list's oldest if its time has come. */
static bool late(struct tcp_rail *rail, struct wf_node *list, weft_time now, struct tcp_ref *ret_ref)
{
	struct tcp_lane *lane;
	bool found = false;

	wf_lock(&rail->lock);
	if (!wf_list_empty(list)) {
		lane = wf_of(list->next, struct tcp_lane, waiting);
		found = lane->deadline <= now;
		*ret_ref = (struct tcp_ref){ lane, atomic_load_explicit(&lane->word, memory_order_relaxed) & ~(TCP_CLOSED | TCP_DROP) };
		if (found && list == &rail->connecting)
			wf_list_del(&lane->waiting);    /* or we would find it for ever while its owner is about to close it */
	}
	wf_unlock(&rail->lock);
	return found;
}

static int expire(struct tcp_rail *rail)
{
	weft_time now = wf_now();
	struct tcp_ref ref;
	uint64_t times;
	int n = 0;

	if (read(rail->timer, &times, sizeof(times)) < 0 && errno != EAGAIN)
		return 0;
	for (; late(rail, &rail->connecting, now, &ref); n++) {
		if (enter(rail, ref))
			wf_tcp_fail(ref, -ETIMEDOUT);
		leave(rail);
	}
	for (; late(rail, &rail->strangers, now, &ref); n++) {
		wf_lock(&rail->lock);
		rail->refused++;
		wf_unlock(&rail->lock);
		wf_tcp_lane_close(ref.lane);
	}
	wf_tcp_hear(rail, now);
	wf_tcp_tick(rail);
	return n;
}

/* The hot lane goes back into the epoll set, if it is not there. False: it cannot, and is over. */
static bool cool(struct tcp_rail *rail)
{
	struct tcp_ref hot = rail->hot;
	int r = 0;

	rail->hits = 0;
	if (!hot.lane)
		return true;
	if (enter(rail, hot) && is(hot.lane, TCP_UP) && (r = wf_tcp_watch(hot.lane)) < 0)
		wf_tcp_fail(hot, r);
	leave(rail);
	return r == 0;
}

/* Another lane is the busy one. */
static void heat(struct tcp_rail *rail, struct tcp_ref ref)
{
	cool(rail);
	rail->hot = ref;
}

/* What a spinning thread took out of the set is put back. Where that fails poll will say so, which may make upcalls. */
int wf_tcp_arm(void *state)
{
	struct tcp_rail *rail = state;
	int r = 0;

	rail->hits = 0;
	if (rail->hot.lane) {
		if (enter(rail, rail->hot) && is(rail->hot.lane, TCP_UP))
			r = wf_tcp_watch(rail->hot.lane);
		leave(rail);
	}
	rail->failing |= r < 0;
	return r < 0;
}

/* Asks epoll about all. How many upcalls; whether another lane than the hot one had something. */
static int sweep(struct tcp_rail *rail, int budget, bool *ret_others)
{
	struct epoll_event ev[TCP_EVENTS];
	struct tcp_ref ref, hot = rail->hot;
	int n = 0, k;

	wf_shield();
	k = epoll_wait(rail->epoll, ev, budget < TCP_EVENTS ? budget : TCP_EVENTS, 0);
	for (int i = 0; i < k; i++) {
		if (wf_unlikely(ev[i].data.u64 == WEFT_EVENT_CORE)) {
			continue;
		} else if (ev[i].data.u64 == EVENT_LISTENER) {
			n += wf_tcp_accept(rail);
		} else if (ev[i].data.u64 == EVENT_TIMER) {
			n += expire(rail);
		} else if (wf_tcp_lane_at(rail, ev[i].data.u64, &ref)) {
			int done = serve(rail, ref, ev[i].events);

			n += done;
			if (done && (ev[i].events & EPOLLIN) && ref.lane != rail->hot.lane)
				heat(rail, ref);
			*ret_others |= done && ref.lane != hot.lane;
		}
	}
	if (k < 0 && errno != EINTR)
		n = -errno;
	wf_unshield();
	return n;
}

/* Inside the hot lane. */
WF_HOT static void look(struct tcp_rail *rail, int *events, bool spins)
{
	int before = *events;

	if (wf_likely(wf_tcp_read(rail->hot, events)) && *events > before && wf_likely(spins) && wf_unlikely(++rail->hits == TCP_HITS))
		wf_tcp_unwatch(rail->hot.lane);
}

WF_HOT int wf_tcp_poll(void *state, int budget, unsigned flags)
{
	struct tcp_rail *rail = state;
	bool others = false;
	int n = 0, r;

	wf_tcp_poller_set(rail, true);
	if (wf_unlikely(rail->failing)) {
		rail->failing = false;
		n += !cool(rail);
	}
	if (rail->hot.lane) {
		if (enter(rail, rail->hot) && is(rail->hot.lane, TCP_UP))
			look(rail, &n, flags & WEFT_POLL_SPIN);
		else
			rail->hot.lane = NULL;
		leave(rail);
	}
	if (wf_unlikely(atomic_load_explicit(&rail->elsewhere, memory_order_relaxed))) {
		atomic_store_explicit(&rail->elsewhere, false, memory_order_relaxed);
		rail->stride = 1;
	}
	if (wf_unlikely(!rail->hot.lane || (n == 0 && (!(flags & WEFT_POLL_SPIN) || rail->hot.lane->huge)) || ++rail->looks >= rail->stride)) {
		rail->looks = 0;
		r = sweep(rail, budget < 1 ? 1 : budget, &others);
		if (others)
			rail->stride = 1;
		else if (rail->stride < TCP_STRIDE)
			rail->stride++;
		n = r < 0 ? r : n + r;
	}
	wf_tcp_poller_set(rail, false);
	return n;
}
