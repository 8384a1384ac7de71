/* lane.c - the life of a lane: made, opened, closed; and how one is found again from an event.
 *
 * tcp.h tells how a lane that another thread closes stays safe to look at. Any thread, but where it says poller.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/tcp/tcp.h"

#define ORPHAN_MS 5000u         /* what a closed lane still had to say is tried for so long */
#define BULK_UNSENT 131072      /* bytes the kernel keeps unsent of a bulk lane before it says it is full */

_Thread_local char wf_tcp_myself;

/* The generation's low half and the index: 32 bits each. */
uint64_t wf_tcp_lane_event(const struct tcp_lane *lane)
{
	uint64_t word = atomic_load_explicit(&lane->word, memory_order_relaxed);        /* its maker or the poller asks: it cannot change */

	return (word >> TCP_FLAGS) << 32 | lane->index;
}

/* Poller. The lane an event is for; NULL: it has been closed since. */
struct tcp_lane *wf_tcp_lane_at(struct tcp_rail *rail, uint64_t event, struct tcp_ref *ret_ref)
{
	uint32_t index = (uint32_t)event;
	struct tcp_lane *lane = &rail->chunk[index / TCP_CHUNK][index % TCP_CHUNK];
	uint64_t word = atomic_load_explicit(&lane->word, memory_order_acquire);        /* T2 */

	if ((uint32_t)(word >> TCP_FLAGS) != (uint32_t)(event >> 32) || (word & TCP_CLOSED))
		return NULL;
	*ret_ref = (struct tcp_ref){ lane, word & ~(TCP_CLOSED | TCP_DROP) };
	return lane;
}

/* Under the rail's lock. */
static struct tcp_lane *lane_take_locked(struct tcp_rail *rail)
{
	struct wf_node *node = wf_list_pop(&rail->unused);
	uint32_t chunk = rail->made / TCP_CHUNK, index = rail->made % TCP_CHUNK;
	struct tcp_lane *lane;

	if (node)
		return wf_of(node, struct tcp_lane, waiting);
	if (chunk == TCP_CHUNKS)
		return NULL;
	if (!rail->chunk[chunk])
		rail->chunk[chunk] = calloc(TCP_CHUNK, sizeof(struct tcp_lane));
	if (!rail->chunk[chunk])
		return NULL;
	lane = &rail->chunk[chunk][index];
	lane->index = rail->made++;
	lane->rail = rail;
	return lane;
}

/* Under the rail's lock: the timer runs while somebody has a deadline, and fires at the earliest. */
static void tick_locked(struct tcp_rail *rail)
{
	weft_time first = WEFT_FOREVER;
	struct itimerspec when = { .it_value = { 0, 0 } };

	if (!wf_list_empty(&rail->connecting))
		first = wf_of(rail->connecting.next, struct tcp_lane, waiting)->deadline;
	if (!wf_list_empty(&rail->strangers) && wf_of(rail->strangers.next, struct tcp_lane, waiting)->deadline < first)
		first = wf_of(rail->strangers.next, struct tcp_lane, waiting)->deadline;
	if (rail->deaf_until && rail->deaf_until < first)
		first = rail->deaf_until;
	if (first != WEFT_FOREVER) {
		when.it_value.tv_sec = first / WEFT_S;
		when.it_value.tv_nsec = first % WEFT_S + 1;
	}
	timerfd_settime(rail->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void wf_tcp_tick(struct tcp_rail *rail)
{
	wf_lock(&rail->lock);
	tick_locked(rail);
	wf_unlock(&rail->lock);
}

int wf_tcp_lane_make(struct tcp_rail *rail, int fd, int state, void *cookie, struct tcp_lane **ret_lane)
{
	bool stranger = state == TCP_STRANGER, first;
	struct tcp_lane *lane;
	struct wf_node *list;
	uint64_t word;

	wf_lock(&rail->lock);
	lane = lane_take_locked(rail);
	wf_unlock(&rail->lock);
	if (!lane)
		return weft_fail(-ENOMEM, "tcp: no memory for a lane");
	lane->fd = fd;
	lane->cookie = cookie;
	lane->blocked = false;
	lane->watched = true;
	lane->need.pieces = 0;
	lane->want = 0;
	lane->large = lane->huge = false;
	lane->deadline = wf_now() + (int64_t)(stranger ? rail->opt.silent_ms : rail->opt.connect_ms) * WEFT_MS;
	atomic_store_explicit(&lane->broken, 0, memory_order_relaxed);
	atomic_store_explicit(&lane->state, state, memory_order_relaxed);
	word = atomic_load_explicit(&lane->word, memory_order_relaxed) >> TCP_FLAGS;
	atomic_store_explicit(&lane->word, (word + 1) << TCP_FLAGS, memory_order_release);     /* T2 */
	wf_lock(&rail->lock);
	rail->lanes++;
	if (stranger)
		rail->stranger_count++;
	else
		rail->opened++;
	list = stranger ? &rail->strangers : &rail->connecting;
	first = wf_list_empty(list);
	wf_list_add(list, &lane->waiting);
	if (first)
		tick_locked(rail);      /* else an earlier one of the same patience has set it */
	wf_unlock(&rail->lock);
	*ret_lane = lane;
	return 0;
}

/* Under the rail's lock. */
static void unlist_locked(struct tcp_lane *lane)
{
	if (!wf_list_has(&lane->waiting))
		return;
	wf_list_del(&lane->waiting);
	if (atomic_load_explicit(&lane->state, memory_order_relaxed) == TCP_STRANGER)
		lane->rail->stranger_count--;
}

void wf_tcp_lane_settle(struct tcp_lane *lane)
{
	wf_lock(&lane->rail->lock);
	unlist_locked(lane);
	wf_unlock(&lane->rail->lock);
}

/* The poller is not, or no more, in @lane; or it is this very thread. */
static void wait_for_poller(struct tcp_lane *lane)
{
	struct tcp_rail *rail = lane->rail;

	if (wf_tcp_poller_is_me(rail))
		return;
	wf_fence_heavy();                                               /* T1 */
	for (int i = 0; atomic_load_explicit(&rail->in, memory_order_acquire) == lane; i++)
		if (i < 100)
			wf_relax();
		else
			wf_nap(20000);
}

void wf_tcp_need_drop(void *state)
{
	struct tcp_lane *lane = state;

	atomic_fetch_or_explicit(&lane->word, TCP_DROP, memory_order_release);
	wait_for_poller(lane);
}

void wf_tcp_lane_close(void *state)
{
	struct tcp_lane *lane = state;
	struct tcp_rail *rail = lane->rail;
	unsigned ms = ORPHAN_MS;
	int unsent = 0;

	atomic_fetch_or_explicit(&lane->word, TCP_CLOSED, memory_order_release);
	wait_for_poller(lane);
	if (ioctl(lane->fd, SIOCOUTQ, &unsent) == 0 && unsent)
		setsockopt(lane->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));   /* a peer that does not read cannot keep it longer */
	epoll_ctl(rail->epoll, EPOLL_CTL_DEL, lane->fd, NULL);  /* closing is not enough where a forked child has it too */
	close(lane->fd);
	lane->fd = -1;
	wf_tcp_reserve_end(lane);
	wf_tcp_unblock(lane);
	wf_lock(&rail->lock);
	unlist_locked(lane);
	rail->lanes--;
	rail->sent += atomic_exchange_explicit(&lane->sent, 0, memory_order_relaxed);
	rail->received += atomic_exchange_explicit(&lane->received, 0, memory_order_relaxed);
	wf_list_add(&rail->unused, &lane->waiting);
	wf_unlock(&rail->lock);
}

/* These fall into the bands that Linux' own queues make of them: urgent, usual, what may wait. */
void wf_tcp_lane_tune(void *state, int klass, size_t unsent)
{
	struct tcp_lane *lane = state;
	int tos = klass == WEFT_LANE_CONTROL ? IPTOS_LOWDELAY : klass == WEFT_LANE_BULK ? IPTOS_THROUGHPUT : 0;
	unsigned lowat = unsent ? (unsent > INT32_MAX ? INT32_MAX : (unsigned)unsent) : klass == WEFT_LANE_BULK ? BULK_UNSENT : UINT32_MAX;

	if (lane->rail->here.sin6_family == AF_INET)
		setsockopt(lane->fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	else
		setsockopt(lane->fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	setsockopt(lane->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

/* A socket that leaves from the rail's own address. */
static int socket_make(struct tcp_rail *rail)
{
	struct sockaddr_in6 from = rail->here;
	int fd = socket(from.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP), on = 1, r;

	if (fd < 0)
		return weft_fail(-errno, "tcp: no socket for a lane: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	wf_tcp_congestion_set(rail, fd);
	from.sin6_port = 0;
	if (bind(fd, (struct sockaddr *)&from, rail->here_len) < 0) {
		r = weft_fail(-errno, "tcp: cannot leave from the rail's address: %s", strerror(errno));
		close(fd);
		return r;
	}
	return fd;
}

int wf_tcp_lane_open(void *state, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	struct tcp_rail *rail = state;
	struct epoll_event ev = { .events = EPOLLOUT };
	struct sockaddr_in6 sa;
	struct tcp_lane *lane;
	socklen_t len;
	int fd, r = wf_tcp_addr_to(rail, to, &sa, &len);

	if (r < 0)
		return r;
	fd = socket_make(rail);
	if (fd < 0)
		return fd;
	r = connect(fd, (struct sockaddr *)&sa, len);
	if (r < 0 && errno != EINPROGRESS && errno != EINTR) {
		r = weft_fail(-errno, "tcp: cannot connect: %s", strerror(errno));
		close(fd);
		return r;
	}
	r = wf_tcp_lane_make(rail, fd, TCP_CONNECTING, cookie, &lane);
	if (r < 0) {
		close(fd);
		return r;
	}
	wf_tcp_lane_tune(lane, klass, 0);
	ev.data.u64 = wf_tcp_lane_event(lane);
	*ret_lane = lane;               /* before the poller can know of it */
	if (epoll_ctl(rail->epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		r = weft_fail(-errno, "tcp: cannot watch a lane: %s", strerror(errno));
		wf_tcp_lane_close(lane);
		return r;
	}
	return 0;
}
