/* unix.c - a network driver outside of weft: frames between processes of one host over Unix sockets.
 *
 *     cc -shared -fPIC unix.c $(pkg-config --cflags weft) -o weft_unix.so       then weft_driver_load("./weft_unix.so")
 *
 * It shows the smallest driver that keeps the whole contract of weft/driver.h: message lanes, one caller at a time, everything told from poll.
 * A rail listens on an abstract name of random digits, which is its address. It is not linked with libweft: weft_fail comes from the
 * process that loads it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* accept4 */
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <weft/driver.h>

#define FRAME ((size_t)32 << 10)
#define ROOMS 64
#define STRANGERS 64
#define NAME 16                 /* digits of an address */

enum state { CONNECTING, STRANGER, UP, DEAD };

struct lane {
	struct rail *rail;
	struct lane *next;              /* strangers, oldest first */
	void *cookie;
	enum state state;
	bool blocked;
	int fd;
};

struct rail {
	const struct weft_upcalls *up;
	void *cookie;
	int epoll, listener;
	bool deaf;                      /* no descriptors for whoever connects: not before a lane is closed */
	struct lane *strangers;
	int stranger_count;
	struct lane *current;           /* whose upcall runs; NULL when it was closed in there */
	struct weft_room *rooms[ROOMS];
	int room_count;
};

static int sockaddr_of(const unsigned char *name, struct sockaddr_un *ret_sa)
{
	memset(ret_sa, 0, sizeof(*ret_sa));
	ret_sa->sun_family = AF_UNIX;
	memcpy(ret_sa->sun_path + 1, name, NAME);       /* behind a 0: no file */
	return (int)offsetof(struct sockaddr_un, sun_path) + 1 + NAME;
}

static int watch(struct rail *rail, int how, int fd, unsigned events, void *what)
{
	struct epoll_event ev = { .events = events };

	ev.data.ptr = what;
	return epoll_ctl(rail->epoll, how, fd, &ev);
}

/* ---- lanes ---- */

static void stranger_remove(struct lane *lane)
{
	for (struct lane **at = &lane->rail->strangers; *at; at = &(*at)->next)
		if (*at == lane) {
			*at = lane->next;
			lane->rail->stranger_count--;
			return;
		}
}

static void lane_close(void *state)
{
	struct lane *lane = state;
	struct rail *rail = lane->rail;

	if (lane->state == STRANGER)
		stranger_remove(lane);
	if (rail->current == lane)
		rail->current = NULL;
	watch(rail, EPOLL_CTL_DEL, lane->fd, 0, NULL);
	close(lane->fd);
	free(lane);
	if (rail->deaf)
		rail->deaf = watch(rail, EPOLL_CTL_MOD, rail->listener, EPOLLIN, NULL) < 0;
}

static struct lane *lane_new(struct rail *rail, int fd, enum state state, unsigned events)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane || watch(rail, EPOLL_CTL_ADD, fd, events, lane) < 0) {
		free(lane);
		return NULL;
	}
	lane->rail = rail;
	lane->fd = fd;
	lane->state = state;
	return lane;
}

static int lane_open(void *state, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	struct rail *rail = state;
	struct sockaddr_un sa;
	struct lane *lane;
	int fd, r, len;

	(void)klass;
	if (to->len != NAME)
		return weft_fail(-EINVAL, "unix: not an address of this driver");
	len = sockaddr_of(to->bytes, &sa);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return weft_fail(-errno, "unix: no socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&sa, (socklen_t)len) < 0) {  /* never in progress: done, refused, or the listener is busy */
		r = weft_fail(errno == EAGAIN ? -ECONNREFUSED : -errno, "unix: cannot connect: %s", strerror(errno));
		close(fd);
		return r;
	}
	lane = lane_new(rail, fd, CONNECTING, EPOLLOUT);
	if (!lane) {
		close(fd);
		return weft_fail(-ENOMEM, "unix: no memory for a lane");
	}
	lane->cookie = cookie;
	*ret_lane = lane;
	return 0;
}

static void lane_fail(struct lane *lane, int err)
{
	lane->state = DEAD;
	watch(lane->rail, EPOLL_CTL_DEL, lane->fd, 0, NULL);
	lane->rail->up->down(lane->cookie, err);
}

static ssize_t lane_send(void *state, const struct weft_out *out)
{
	struct lane *lane = state;
	struct msghdr msg = { .msg_iovlen = out->pieces };
	size_t all = 0;

	for (unsigned i = 0; i < out->pieces; i++)
		all += out->piece[i].iov_len;
	if (lane->state == DEAD)
		return -EPIPE;
	if (lane->state == CONNECTING)
		return -EAGAIN;
	if (all > FRAME)
		return weft_fail(-EMSGSIZE, "unix: a frame of %zu bytes", all);
	if (all == 0)
		return 0;
	memcpy(&msg.msg_iov, &out->piece, sizeof(msg.msg_iov));         /* sendmsg does not write there */
	if (sendmsg(lane->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
		return -errno;
	lane->blocked = true;
	watch(lane->rail, EPOLL_CTL_MOD, lane->fd, EPOLLIN | EPOLLOUT, lane);
	return -EAGAIN;
}

/* ---- what comes ---- */

static void accept_some(struct rail *rail)
{
	int fd = accept4(rail->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct lane **last = &rail->strangers;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			rail->deaf = watch(rail, EPOLL_CTL_MOD, rail->listener, 0, NULL) == 0;
		return;
	}
	if (rail->stranger_count == STRANGERS)
		lane_close(rail->strangers);
	while (*last)
		last = &(*last)->next;
	*last = lane_new(rail, fd, STRANGER, EPOLLIN);
	if (*last)
		rail->stranger_count++;
	else
		close(fd);
}

/* Something has come from a stranger. */
static void introduce(struct lane *lane)
{
	struct weft_addr from = { .len = NAME };        /* Unix sockets that connect have no name */
	struct rail *rail = lane->rail;

	stranger_remove(lane);
	lane->state = UP;
	if (rail->up->incoming(rail->cookie, lane, &from, &lane->cookie) < 0)
		lane_close(lane);
}

static void receive(struct lane *lane)
{
	struct rail *rail = lane->rail;
	struct weft_room *room = rail->rooms[rail->room_count - 1];
	ssize_t n = recv(lane->fd, room->data, room->len, MSG_DONTWAIT);

	if (n > 0) {
		rail->room_count--;
		rail->up->frame(rail->cookie, lane->cookie, NULL, room, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		lane_fail(lane, n == 0 ? 0 : -errno);
	}
}

static void serve(struct lane *lane, unsigned events)
{
	struct rail *rail = lane->rail;

	rail->current = lane;
	if (lane->state == CONNECTING) {
		lane->state = UP;
		watch(rail, EPOLL_CTL_MOD, lane->fd, EPOLLIN, lane);
		rail->up->up(lane->cookie);
		return;
	}
	if (lane->state == STRANGER)
		introduce(lane);
	if (rail->current && lane->blocked && (events & EPOLLOUT)) {
		lane->blocked = false;
		watch(rail, EPOLL_CTL_MOD, lane->fd, EPOLLIN, lane);
		rail->up->writable(lane->cookie);
	}
	if (rail->current && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) && rail->room_count)
		receive(lane);
}

static int rail_poll(void *state, int budget, unsigned flags)
{
	struct rail *rail = state;
	struct epoll_event ev;
	int n = 0;

	(void)flags;
	/* One event at a time: an upcall may close any lane, and what epoll told of it before would be stale. */
	for (; n < budget && epoll_wait(rail->epoll, &ev, 1, 0) == 1; n++)
		if (ev.data.ptr)
			serve(ev.data.ptr, ev.events);
		else
			accept_some(rail);
	return n;
}

static int provide(void *state, struct weft_room *const *rooms, int n)
{
	struct rail *rail = state;
	int taken = 0;

	while (taken < n && rail->room_count < ROOMS)
		rail->rooms[rail->room_count++] = rooms[taken++];
	return taken;
}

/* ---- rails ---- */

static int probe(const struct weft_driver *self, struct weft_found *ret_found, int max)
{
	(void)self;
	if (max > 0) {
		memset(ret_found, 0, sizeof(*ret_found));
		strcpy(ret_found->name, "host");
		ret_found->flags = WEFT_FOUND_LOOP;
	}
	return 1;
}

static void rail_close(void *state)
{
	struct rail *rail = state;

	while (rail->strangers)
		lane_close(rail->strangers);
	if (rail->listener >= 0)
		close(rail->listener);
	if (rail->epoll >= 0)
		close(rail->epoll);
	free(rail);
}

static int rail_start(struct rail *rail, struct weft_addr *ret_addr)
{
	struct sockaddr_un sa;
	int len;

	if (getrandom(ret_addr->bytes, NAME, 0) != NAME)
		return weft_fail(-EIO, "unix: no random name");
	for (int i = 0; i < NAME; i++)
		ret_addr->bytes[i] = (unsigned char)('a' + ret_addr->bytes[i] % 26);
	ret_addr->len = NAME;
	len = sockaddr_of(ret_addr->bytes, &sa);
	rail->epoll = epoll_create1(EPOLL_CLOEXEC);
	rail->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (rail->epoll < 0 || rail->listener < 0 || bind(rail->listener, (struct sockaddr *)&sa, (socklen_t)len) < 0 ||
	    listen(rail->listener, STRANGERS) < 0 || watch(rail, EPOLL_CTL_ADD, rail->listener, EPOLLIN, NULL) < 0)
		return weft_fail(-errno, "unix: cannot listen: %s", strerror(errno));
	return 0;
}

static int rail_open(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
		     struct weft_rail_info *ret_info, void **ret_rail)
{
	const char *ours = conf->options ? strstr(conf->options, "unix.") : NULL;
	struct weft_rail_info info = { .size = sizeof(info), .frame = FRAME, .pieces = 64, .rooms = ROOMS };
	struct rail *rail;
	int r;

	(void)self;
	if (ours)
		return weft_fail(-EINVAL, "unix: '%.40s' cannot be set", ours);
	if (*conf->adapter && strcmp(conf->adapter, "host"))
		return weft_fail(-ENODEV, "unix: the only adapter is called host");
	rail = calloc(1, sizeof(*rail));
	if (!rail)
		return weft_fail(-ENOMEM, "unix: no memory for a rail");
	rail->up = up;
	rail->cookie = cookie;
	rail->epoll = rail->listener = -1;
	r = rail_start(rail, &info.addr);
	if (r < 0) {
		rail_close(rail);
		return r;
	}
	*ret_info = info;
	*ret_rail = rail;
	return 0;
}

static int wait_fd(void *state)
{
	return ((struct rail *)state)->epoll;
}

static const struct weft_driver driver = {
	.abi = WEFT_DRIVER_ABI,
	.size = sizeof(struct weft_driver),
	.name = "unix",
	.caps = WEFT_DRIVER_RELIABLE | WEFT_DRIVER_PROGRESS,
	.probe = probe,
	.rail_open = rail_open,
	.rail_close = rail_close,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.send = lane_send,
	.poll = rail_poll,
	.wait_fd = wait_fd,
	.provide = provide,
};

const struct weft_driver *weft_driver_main(void);

const struct weft_driver *weft_driver_main(void)
{
	return &driver;
}
