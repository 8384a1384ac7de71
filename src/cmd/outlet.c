/* outlet.c - see outlet.h.
 *
 * The agent must not wait for whoever reads, and the descriptor is shared with the process that gave it, so that it cannot be made one that does not block. A socket is written with
 * MSG_DONTWAIT, a pipe is opened a second time. What is neither is written when poll says that there is room, and little at a time; of files that is the truth as
 * far as their file system keeps nobody waiting.
 */
#include "outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "mesh.h"
#include "relay.h"

#define OVER UINT32_MAX

/* What came and is not written. */
struct scrap {
	struct scrap *next;
	uint32_t process, host;
	size_t at, n;                   /* n 0: that was all of this process */
	uint8_t bytes[];
};

struct outlet {
	struct outlet *next;
	int fd;                         /* -1: what comes is thrown away */
	enum { PLAIN, SOCKET, CAREFUL } how;
	bool watched;                   /* the loop waits for room */
	struct scrap *scraps, **end;
	size_t bytes;                   /* of them */
	uint32_t first, count, open;    /* open: of so many something may still come */
	uint32_t hosts[];               /* of each; OVER: nothing comes any more */
};

static struct outlet *outlets;

static struct outlet *outlet_of(uint32_t process)
{
	struct outlet *o = outlets;

	while (o && (process < o->first || process - o->first >= o->count))
		o = o->next;
	return o;
}

/* Writing */

static void choose_how(struct outlet *o)
{
	int type, flags = fcntl(o->fd, F_GETFL), again = -1;
	socklen_t len = sizeof(type);
	char path[64];
	struct stat st;

	if (getsockopt(o->fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0) {
		o->how = SOCKET;
		return;
	}
	o->how = CAREFUL;
	if (flags < 0 || fstat(o->fd, &st) < 0)
		return;
	if (S_ISFIFO(st.st_mode) && !(flags & O_NONBLOCK)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
		again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	}
	if (again >= 0) {
		close(o->fd);
		o->fd = again;
	}
	if (again >= 0 || flags & O_NONBLOCK || S_ISREG(st.st_mode))
		o->how = PLAIN;
}

static ssize_t write_some(const struct outlet *o, const uint8_t *bytes, size_t n)
{
	struct pollfd p = { .fd = o->fd, .events = POLLOUT };
	ssize_t r;

	if (o->how == SOCKET)
		r = send(o->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (o->how == PLAIN)
		r = write(o->fd, bytes, n);
	else if (poll(&p, 1, 0) == 0)
		return -EAGAIN;
	else
		r = write(o->fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
	return r < 0 ? -errno : r;
}

static void unwatch(struct agent *a, struct outlet *o)
{
	if (o->watched)
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, o->fd, NULL);
	o->watched = false;
}

static void break_off(struct agent *a, struct outlet *o)
{
	unwatch(a, o);
	fd_close(&o->fd);
}

/* False: there is no room now. */
static bool scrap_write(struct agent *a, struct outlet *o, struct scrap *s)
{
	struct epoll_event e = { .events = EPOLLOUT, .data.u64 = (uint64_t)FROM_OUTLET << 32 | o->first };

	while (o->fd >= 0 && s->at < s->n) {
		ssize_t n = write_some(o, s->bytes + s->at, s->n - s->at);

		if (n > 0) {
			s->at += (size_t)n;
		} else if (n == -EAGAIN || n == -ENOBUFS) {
			if (!o->watched && epoll_ctl(a->epoll, EPOLL_CTL_ADD, o->fd, &e) == 0)
				o->watched = true;
			if (o->watched)
				return false;
			break_off(a, o);
		} else if (n != -EINTR) {
			break_off(a, o);
		}
	}
	return true;
}

/* Its relay may send more. */
static void written(struct agent *a, uint32_t process, uint32_t host, size_t n)
{
	uint8_t room[8];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, process);
	wf_body_u32(&b, (uint32_t)n);
	mesh_launch(a, host, MESH_LAUNCH_WRITTEN, room, b.at);
}

static void close_outlet(struct agent *a, struct outlet *o)
{
	struct outlet **at = &outlets;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	break_off(a, o);
	free(o);
}

static void flush(struct agent *a, struct outlet *o)
{
	while (o->scraps) {
		struct scrap *s = o->scraps;

		if (!scrap_write(a, o, s))
			return;
		if (s->n)
			written(a, s->process, s->host, s->n);
		else
			o->open--;
		o->scraps = s->next;
		if (!o->scraps)
			o->end = &o->scraps;
		o->bytes -= s->n;
		free(s);
	}
	unwatch(a, o);
	if (!o->open)
		close_outlet(a, o);
}

void outlet_ready(struct agent *a, uint32_t first)
{
	struct outlet *o = outlet_of(first);

	if (o && o->watched)
		flush(a, o);
}

/* What comes */

void outlet_open(struct agent *a, int fd, uint32_t first, const uint32_t *hosts, uint32_t count)
{
	struct outlet *o = calloc(1, sizeof(*o) + count * sizeof(o->hosts[0]));

	if (!o) {
		close(fd);
		return;
	}
	*o = (struct outlet){ .fd = fd, .first = first, .count = count, .end = &o->scraps };
	for (uint32_t i = 0; i < count; i++) {
		bool far = hosts[i] != a->run->host && mesh_name(a, hosts[i]);

		o->hosts[i] = far ? hosts[i] : OVER;
		o->open += far;
	}
	o->next = outlets;
	outlets = o;
	if (o->open)
		choose_how(o);
	else
		close_outlet(a, o);
}

static void take(struct agent *a, struct outlet *o, uint32_t process, uint32_t host, const void *bytes, size_t n)
{
	struct scrap *s = malloc(sizeof(*s) + n);

	if (n == 0)
		o->hosts[process - o->first] = OVER;
	if (!s) {
		break_off(a, o);        /* with something missing in it, it is of no use */
		if (n)
			written(a, process, host, n);
		else
			o->open--;
		return;
	}
	*s = (struct scrap){ .process = process, .host = host, .n = n };
	if (n)
		memcpy(s->bytes, bytes, n);
	*o->end = s;
	o->end = &s->next;
	o->bytes += n;
}

void outlet_heard(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t process = wf_body_get32(b);
	size_t n = b->n - b->at;
	struct outlet *o = b->bad ? NULL : outlet_of(process);

	if (!o && n)
		written(a, process, host, n);   /* there was no memory for it: nobody is to wait */
	if (!o || o->hosts[process - o->first] != host || o->bytes + n > (size_t)o->open * RELAY_WAY)
		return;
	take(a, o, process, host, b->bytes + b->at, n);
	flush(a, o);
}

void outlet_host_gone(struct agent *a, uint32_t host)
{
	for (struct outlet *o = outlets, *next; o; o = next) {
		next = o->next;
		for (uint32_t i = 0; i < o->count; i++)
			if (o->hosts[i] == host)
				take(a, o, o->first + i, host, NULL, 0);
		flush(a, o);
	}
}
