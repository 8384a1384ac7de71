/* tcp.c - rails, and the driver's slots. The other files of this room: address and options (what a rail stands on), listen (strangers),
 * lane (their life), poll, read, send. tcp.h first. */
#include "net/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/descriptors.h"

static int watch(struct tcp_rail *rail, int fd, uint64_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

	if (epoll_ctl(rail->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return weft_fail(-errno, "tcp: cannot watch the listener: %s", strerror(errno));
	return 0;
}

static void rail_close(void *state)
{
	struct tcp_rail *rail = state;
	struct wf_node *node;

	while ((node = rail->strangers.next) && !wf_list_empty(&rail->strangers))
		wf_tcp_lane_close(wf_of(node, struct tcp_lane, waiting));
	for (int *fd = (int[]){ rail->listener, rail->timer, rail->spare, rail->epoll, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	for (uint32_t i = 0; i * TCP_CHUNK < rail->made; i++)
		free(rail->chunk[i]);
	free(rail->stage);
	free(rail->spare_stage);
	free(rail);
}

static int descriptors_open(struct tcp_rail *rail)
{
	int r;

	rail->epoll = epoll_create1(EPOLL_CLOEXEC);
	rail->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	rail->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (rail->epoll < 0 || rail->timer < 0 || rail->spare < 0)
		return weft_fail(-errno, "tcp: no descriptors for a rail: %s", strerror(errno));
	r = rail->listener = wf_tcp_listen(rail);
	if (r >= 0)
		r = watch(rail, rail->listener, UINT64_MAX);
	if (r >= 0)
		r = watch(rail, rail->timer, UINT64_MAX - 1);
	return r;
}

static int rail_open(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
		     struct weft_rail_info *ret_info, void **ret_rail)
{
	struct tcp_rail *rail = aligned_alloc(_Alignof(struct tcp_rail), sizeof(*rail));
	int r;

	(void)self;
	if (!rail)
		return weft_fail(-ENOMEM, "tcp: no memory for a rail");
	memset(rail, 0, sizeof(*rail));
	rail->up = up;
	rail->cookie = cookie;
	rail->stride = 1;
	rail->epoll = rail->timer = rail->spare = rail->listener = -1;
	r = wf_tcp_options(conf->options, &rail->opt);
	rail->opt.strangers = (int)wf_descriptors_part(WF_SILENT_PART, (uint32_t)rail->opt.strangers);
	if (r == 0)
		r = wf_tcp_here(rail, conf->adapter);
	if (r == 0)
		r = descriptors_open(rail);
	if (r < 0) {
		rail_close(rail);
		return r;
	}
	*ret_info = (struct weft_rail_info){
		.size = sizeof(*ret_info),
		.rate = wf_tcp_rate(rail->scope),
		.hold = TCP_HOLD,
		.pieces = IOV_MAX,
	};
	wf_tcp_addr_of(&rail->here, &ret_info->addr);
	*ret_rail = rail;
	return 0;
}

static int wait_fd(void *state)
{
	return ((struct tcp_rail *)state)->epoll;
}

static int rail_stat(void *state, struct weft_rail_stat *ret_stat)
{
	struct weft_rail_stat stat = { .size = ret_stat->size };
	struct tcp_rail *rail = state;

	if (ret_stat->size < sizeof(stat.size) || ret_stat->size > sizeof(stat))
		return weft_fail(-EINVAL, "tcp: size of the counters is %u", ret_stat->size);
	wf_lock(&rail->lock);
	stat.lanes = rail->lanes;
	stat.sent = rail->sent;
	stat.received = rail->received;
	stat.opened = rail->opened;
	stat.accepted = rail->accepted;
	stat.refused = rail->refused;
	for (uint32_t i = 0; i < rail->made; i++) {
		struct tcp_lane *lane = &rail->chunk[i / TCP_CHUNK][i % TCP_CHUNK];

		stat.sent += atomic_load_explicit(&lane->sent, memory_order_relaxed);
		stat.received += atomic_load_explicit(&lane->received, memory_order_relaxed);
	}
	wf_unlock(&rail->lock);
	memcpy(ret_stat, &stat, ret_stat->size);
	return 0;
}

const struct weft_driver wf_tcp_driver = {
	.abi = WEFT_DRIVER_ABI,
	.size = sizeof(struct weft_driver),
	.name = "tcp",
	.caps = WEFT_DRIVER_STREAM | WEFT_DRIVER_RELIABLE | WEFT_DRIVER_THREADS | WEFT_DRIVER_PROGRESS | WEFT_DRIVER_EPOLL | WEFT_DRIVER_UNCANCELLED,
	.probe = wf_tcp_probe,
	.rail_open = rail_open,
	.rail_close = rail_close,
	.lane_open = wf_tcp_lane_open,
	.lane_close = wf_tcp_lane_close,
	.lane_tune = wf_tcp_lane_tune,
	.send = wf_tcp_send,
	.poll = wf_tcp_poll,
	.wait_fd = wait_fd,
	.arm = wf_tcp_arm,
	.need_drop = wf_tcp_need_drop,
	.stat = rail_stat,
	.addr_print = wf_tcp_addr_print,
	.addr_parse = wf_tcp_addr_parse,
};
