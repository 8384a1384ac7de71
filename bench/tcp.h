/* tcp.h - two processes of two hosts that measure together: raw TCP between them, and the proof that weft used TCP, too.
 *
 * Their programs are started by bench/hosts. The raw socket lies between the very processes and the very addresses that weft's own
 * connections lie between, which are asked where they are. BENCH_PATH names the network in the series: tcp (loopback, without it) or veth-tcp.
 *
 *   raw TCP   TCP_NODELAY and nothing else; spins with MSG_DONTWAIT, or blocks
 *   packed    a window of messages with one send and received with as few recv as it takes
 *   rail      what weft brought, counted here, must have gone over its TCP connections, as the kernel counts them
 */
#ifndef BENCH_TCP_H
#define BENCH_TCP_H
#include "proc.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <sys/socket.h>

struct tcp_link {
	struct link l;
	int fd;
	int flags; /* MSG_DONTWAIT: spins */
};

struct series {
	char name[48];
};

/* "raw" or "weft", then the network, then what it is. */
static inline struct series tcp_series(const char *whose, const char *what)
{
	const char *path = getenv("BENCH_PATH");
	struct series s;

	snprintf(s.name, sizeof(s.name), "%s/%s%s", whose, path && *path ? path : "tcp", what);
	return s;
}

/* True: too few cores for mark @what of this network ("-lat-8"), and that was told. */
static inline bool tcp_skip(struct procs *p, const char *const *what, size_t count)
{
	if (cpu_count() >= 2)
		return false;
	for (size_t i = 0; p->rank == 0 && i < count; i++)
		printf("skip %s fewer than 2 cores\n", tcp_series("", what[i]).name + 1);
	procs_end(p);
	return true;
}

/* ---- raw ---- */

static inline size_t tcp_moved(ssize_t r, const char *call)
{
	if (r > 0)
		return (size_t)r;
	if (r == 0)
		die("raw TCP, %s: the other side has ended", call);
	if (errno != EAGAIN && errno != EINTR)
		die("raw TCP, %s: %s", call, strerror(errno));
	return 0;
}

static inline void tcp_send(struct link *l, void *mem, size_t n)
{
	struct tcp_link *k = (struct tcp_link *)l;

	for (size_t at = 0; at < n;)
		at += tcp_moved(send(k->fd, (char *)mem + at, n - at, k->flags | MSG_NOSIGNAL), "send");
}

static inline void tcp_recv(struct link *l, void *mem, size_t n)
{
	struct tcp_link *k = (struct tcp_link *)l;

	for (size_t at = 0; at < n;)
		at += tcp_moved(recv(k->fd, (char *)mem + at, n - at, k->flags), "recv");
}

static inline void packed_send_window(struct link *l, void *mem, size_t n)
{
	tcp_send(l, mem, WINDOW * n);
}

static inline void packed_recv_window(struct link *l, void *mem, size_t n)
{
	tcp_recv(l, mem, WINDOW * n);
}

/* ---- weft's own connections, from outside of it ---- */

struct tcp_ends {
	struct sockaddr_storage here, there;
	socklen_t len;
};

static inline void port_clear(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = 0;
	else
		((struct sockaddr_in6 *)a)->sin6_port = 0;
}

/* An established connection that @fd is: its addresses, without ports, and what went over it. */
static inline bool connection(int fd, struct tcp_ends *e, struct carried *ret)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info), len = sizeof(e->there);

	e->len = sizeof(e->here);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) || info.tcpi_state != 1 /* established */ ||
	    getsockname(fd, (struct sockaddr *)&e->here, &e->len) || getpeername(fd, (struct sockaddr *)&e->there, &len))
		return false;
	port_clear(&e->here);
	port_clear(&e->there);
	ret->in = info.tcpi_bytes_received;
	ret->out = info.tcpi_bytes_sent;
	return true;
}

/* All of this process but @own, added up; how many there are. @ret_ends: of one of them. */
static inline int rail_look(int own, struct carried *ret, struct tcp_ends *ret_ends)
{
	DIR *all = opendir("/proc/self/fd");
	int count = 0;

	if (!all)
		die("/proc/self/fd: %s", strerror(errno));
	*ret = (struct carried){ 0 };
	for (struct dirent *d; (d = readdir(all)) != NULL;) {
		struct carried one;
		int fd = atoi(d->d_name);

		if (fd == own || fd == dirfd(all) || d->d_name[0] == '.' || !connection(fd, ret_ends, &one))
			continue;
		ret->in += one.in;
		ret->out += one.out;
		count++;
	}
	closedir(all);
	return count;
}

/* ---- weft over its connections ---- */

/* A weft link, whose bytes are counted (measure.h), and what the kernel had counted before. */
struct rail_link {
	struct weft_link w; /* first */
	struct carried before;
};

static inline struct rail_link rail_link(struct weft_link w)
{
	return (struct rail_link){ .w = w };
}

/* ---- both ---- */

struct tcp_pair {
	struct procs p;
	int side;
	weft_id peer;
	struct tcp_ends ends; /* of weft's own connections */
	int fd; /* the raw socket */
};

/* A raw socket. Side 0 listens where weft's connection ends, side 1 connects from there. */
static inline int tcp_connect(struct tcp_pair *t)
{
	struct tcp_ends e = t->ends;
	int on = 1, fd = socket(e.here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), taken = fd;
	struct sockaddr *here = (struct sockaddr *)&e.here;

	if (fd < 0 || bind(fd, here, e.len) || (t->side == 0 && listen(fd, 1)) || getsockname(fd, here, &e.len))
		die("raw TCP, a socket: %s", strerror(errno));
	if (t->side == 0) {
		procs_send(&t->p, 1, &e.here, sizeof(e.here));
		taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		close(fd);
	} else {
		procs_recv(&t->p, 0, &e.there, sizeof(e.there));
		if (connect(fd, (struct sockaddr *)&e.there, e.len))
			die("raw TCP, connect: %s", strerror(errno));
	}
	if (taken < 0 || setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("raw TCP, a connection: %s", strerror(errno));
	return taken;
}

/* weft has met the other side: it is asked where. */
static inline struct tcp_pair tcp_start(void)
{
	struct tcp_pair t = { .p = procs_start(2) };
	struct carried bytes;

	t.side = t.p.rank;
	procs_meet(&t.p);
	if (!rail_look(-1, &bytes, &t.ends))
		die("weft has no TCP connection to the other process: bench/hosts starts this program");
	t.fd = tcp_connect(&t);
	t.peer = procs_peer(&t.p, !t.side);
	return t;
}

/* As raw TCP does: however long it takes, without sleep (the knob's most, 10 ms). */
static inline void tcp_spin(void)
{
	must(weft_knob_set("alone_ns", "10000000"), "weft_knob_set alone_ns");
}

static inline void tcp_end(struct tcp_pair *t)
{
	close(t->fd);
	procs_end(&t->p);
}

static inline struct tcp_link tcp_link(const struct tcp_pair *t, bool spins)
{
	return (struct tcp_link){ .l = { .send = tcp_send, .recv = tcp_recv }, .fd = t->fd, .flags = spins ? MSG_DONTWAIT : 0 };
}

/* As tcp_link, with windows that are packed. */
static inline struct tcp_link packed_link(const struct tcp_pair *t)
{
	struct tcp_link k = tcp_link(t, true);

	k.l.send_window = packed_send_window;
	k.l.recv_window = packed_recv_window;
	return k;
}

/* Between these two what @k carries must go over weft's connections: else there is no figure. Both sides call them alike. */
static inline void rail_begin(struct tcp_pair *t, struct rail_link *k)
{
	struct tcp_ends ends;

	k->w.l.carried = (struct carried){ 0 };
	rail_look(t->fd, &k->before, &ends);
	procs_meet(&t->p); /* nobody sends before both have looked */
}

/* Returns bytes on the connections per byte carried. */
static inline double rail_end(struct tcp_pair *t, const struct rail_link *k)
{
	const struct carried *carried = &k->w.l.carried;
	struct carried now;
	struct tcp_ends ends;
	int64_t in, out;

	procs_meet(&t->p); /* all has been written */
	rail_look(t->fd, &now, &ends);
	in = (int64_t)(now.in - k->before.in);
	out = (int64_t)(now.out - k->before.out);
	if (in < (int64_t)carried->in || out < (int64_t)carried->out)
		die("weft brought %llu bytes here and took %llu away, but over its TCP connections went %lld and %lld",
		    (unsigned long long)carried->in, (unsigned long long)carried->out, (long long)in, (long long)out);
	return (double)(in + out) / (double)(carried->in + carried->out);
}

static inline void rail_lat_sample(struct tcp_pair *t, struct rail_link *k, void *mem, size_t n, const char *series)
{
	double ns, wire;

	rail_begin(t, k);
	link_check(&k->w.l, t->side, mem, n);
	ns = measure_lat(&k->w.l, t->side, mem, n);
	wire = rail_end(t, k) * (double)n;
	if (t->side == 0) {
		sample(series, "lat", n, ns);
		sample(series, "wire", n, wire);
	}
}

#endif
