/* test_conform_tcp.c - what only the TCP driver has: strangers at its listener, limits, interfaces, socket options. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "conform.h"
#include "net/tcp/tcp.h"

#ifndef SO_RESERVE_MEM
#define SO_RESERVE_MEM 73
#endif

static struct weft_rail_stat stat_of(struct side *s)
{
	struct weft_rail_stat stat = { .size = sizeof(stat) };

	MUST_OK(wf_rail_stat(s->rail, &stat));
	return stat;
}

/* Somebody who is not weft connects to a rail on IPv4. */
static int stranger(struct side *s)
{
	const unsigned char *b = s->rail->info.addr.bytes;
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(b[2] | b[3] << 8)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(&sa.sin_addr, b + 4, 4);
	MUST(fd >= 0);
	MUST(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno == EINPROGRESS);
	return fd;
}

static bool is_shut(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

TEST(garbage_at_the_listener_is_counted_and_closed_and_hurts_nobody)
{
	static const char *const words[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "SSH-2.0-x\r\n", "", "\xff", "a",
	};
	int before = descriptors();
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	b.refuse_bytes = -EBADMSG;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		int fd = stranger(&b), was = b.incomings;
		uint64_t refused = stat_of(&b).refused;

		PUMP_UNTIL(&a, &b, stat_of(&b).lanes >= 2);
		if (*words[i]) {
			CHECK(send(fd, words[i], strlen(words[i]), MSG_NOSIGNAL) > 0);
			PUMP_UNTIL(&a, &b, is_shut(fd));
			CHECK_EQ(b.incomings, was + 1);
		} else {                        /* a port scan: comes and goes */
			close(fd);
			fd = -1;
			PUMP_UNTIL(&a, &b, stat_of(&b).refused == refused + 1);
			CHECK_EQ(b.incomings, was);
		}
		PUMP_UNTIL(&a, &b, stat_of(&b).lanes == 1);
		if (fd >= 0)
			close(fd);
		carry(e, 1000, 100);
	}
	side_close(&a);
	side_close(&b);
	CHECK_EQ(descriptors(), before);
}

TEST(who_says_nothing_is_sent_away_after_a_while)
{
	struct side b;
	int fd;

	side_open_with(&b, "tcp.silent_ms=100");
	b.other = &b;
	fd = stranger(&b);
	PUMP_UNTIL(&b, NULL, stat_of(&b).lanes == 1);
	CHECK(!is_shut(fd));
	while (stat_of(&b).lanes) {     /* asleep, as a thread of the core would be: the descriptor tells when the time has come */
		MUST_EQ(poll(&(struct pollfd){ .fd = b.rail->fd, .events = POLLIN }, 1, 20000), 1);
		pump(&b, NULL);
	}
	CHECK(is_shut(fd));
	CHECK_EQ(b.incomings, 0);
	CHECK_EQ(stat_of(&b).refused, 1);
	close(fd);
	side_close(&b);
}

TEST(of_too_many_strangers_the_oldest_goes)
{
	struct side a, b;
	int fd[20];

	side_open(&a);
	side_open_with(&b, "tcp.strangers=8");
	a.other = &b;
	b.other = &a;
	for (int i = 0; i < 20; i++) {
		fd[i] = stranger(&b);
		PUMP_UNTIL(&b, NULL, stat_of(&b).lanes == (i < 8 ? (uint32_t)i + 1 : 8) && stat_of(&b).refused == (i < 8 ? 0u : (unsigned)i - 7));
	}
	for (int i = 0; i < 20; i++)
		CHECK_EQ(is_shut(fd[i]), i < 12);
	carry(cable(&a, &b, WEFT_LANE_HEAD), 1000, 100);        /* who has something to say gets in */
	for (int i = 0; i < 20; i++)
		close(fd[i]);
	side_close(&a);
	side_close(&b);
}

/* Connections that say nothing, or a byte now and then, one behind the other, beside a lane that works. */
TEST(a_flood_of_half_open_connections_leaves_a_lane_alone)
{
	enum { OPEN = 200 };
	int fd[OPEN], n = (int)test_scaled(2000);
	struct side a, b;
	struct end *e;

	memset(fd, -1, sizeof(fd));
	side_open(&a);
	side_open_with(&b, "tcp.strangers=64");
	a.other = &b;
	b.other = &a;
	e = cable(&a, &b, WEFT_LANE_HEAD);
	b.refuse_bytes = -EBADMSG;
	for (int i = 0; i < n; i++) {
		if (fd[i % OPEN] >= 0)
			close(fd[i % OPEN]);
		fd[i % OPEN] = stranger(&b);
		if (i % 10 == 9)
			carry(e, 500, 500);
		if (i % 16 == 15)
			CHECK(send(fd[i % OPEN], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 || errno == EAGAIN || errno == ENOTCONN || errno == EPIPE ||
			      errno == ECONNRESET);
		CHECK(stat_of(&b).lanes <= 64 + 8);
	}
	CHECK_EQ(e->other->in, (uint64_t)(n / 10) * 500);
	for (int i = 0; i < OPEN; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	side_close(&a);
	side_close(&b);
}

/* The descriptor limit is reached while somebody is at the door: sleeping on wait_fd wakes up now and then, not all the time. */
static void run_out(bool spare)
{
	struct rlimit was, less;
	struct side a, b;
	struct end *e;
	int fd[8], wakes = 0, *kept;
	weft_time until;

	pair_open(&a, &b);
	kept = &((struct tcp_rail *)b.rail->state)->spare;
	e = cable(&a, &b, WEFT_LANE_HEAD);
	for (int i = 0; i < 8; i++)
		fd[i] = stranger(&b);
	if (!spare) {                           /* none to let the one at the door in and out with: he stays there */
		close(*kept);
		*kept = -1;
	}
	MUST_OK(getrlimit(RLIMIT_NOFILE, &was));
	less = was;
	less.rlim_cur = spare ? (rlim_t)fd[7] + 1 : 3;  /* all below are in use */
	MUST_OK(setrlimit(RLIMIT_NOFILE, &less));
	until = weft_now() + 500 * WEFT_MS;
	while (weft_now() < until) {
		poll(&(struct pollfd){ .fd = b.rail->fd, .events = POLLIN }, 1, 100);
		pump(&b, NULL);
		wakes++;
	}
	printf("# %d rounds in 500 ms, %llu sent away\n", wakes, (unsigned long long)stat_of(&b).refused);
	CHECK(wakes < 60);                      /* a pause is 50 ms: two rounds for each, and some */
	CHECK(stat_of(&b).refused > 0 || !spare);
	carry(e, 1000, 100);                    /* and what is there works */
	MUST_OK(setrlimit(RLIMIT_NOFILE, &was));
	carry(cable(&a, &b, WEFT_LANE_HEAD), 1000, 100);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	side_close(&a);
	side_close(&b);
}

TEST(without_descriptors_the_listener_pauses_and_does_not_spin)
{
	run_out(true);
	run_out(false);
}

TEST(a_connect_that_nobody_answers_ends_in_time)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd[8];
	socklen_t len = sizeof(sa);
	struct weft_addr to;
	char text[64];
	struct side a;
	struct end *e;

	MUST(full >= 0 && bind(full, (struct sockaddr *)&sa, len) == 0 && listen(full, 0) == 0);        /* takes nobody in */
	MUST_OK(getsockname(full, (struct sockaddr *)&sa, &len));
	for (int i = 0; i < 8; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		MUST(connect(fd[i], (struct sockaddr *)&sa, len) == 0 || errno == EINPROGRESS);
	}
	side_open_with(&a, "tcp.connect_ms=150");
	a.other = &a;
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(sa.sin_port));
	MUST_OK(a.rail->driver->slots.addr_parse(text, &to));
	e = end_new(&a);
	MUST_OK(wf_lane_open(a.rail, &to, WEFT_LANE_HEAD, e, &e->lane));
	while (!e->downs) {
		MUST_EQ(poll(&(struct pollfd){ .fd = a.rail->fd, .events = POLLIN }, 1, 20000), 1);
		pump(&a, NULL);
	}
	CHECK_EQ(e->err, -ETIMEDOUT);
	CHECK_EQ(e->ups, 0);
	side_close(&a);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	close(full);
}

TEST(an_address_out_of_reach_is_an_error_soon)
{
	static const char *const out[] = { "192.0.2.1:9", "240.0.0.1:9", "255.255.255.255:9" };
	struct side a;

	side_open_with(&a, "tcp.connect_ms=300");
	a.other = &a;
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
		struct end *e = end_new(&a);
		struct weft_addr to;
		int r;

		MUST_OK(a.rail->driver->slots.addr_parse(out[i], &to));
		r = wf_lane_open(a.rail, &to, WEFT_LANE_HEAD, e, &e->lane);
		if (r < 0) {
			e->closing = true;
			CHECK(*weft_last_error());
			continue;
		}
		PUMP_UNTIL(&a, NULL, e->downs);
		CHECK(e->err < 0);
	}
	side_close(&a);
}

TEST(addresses_are_printed_and_parsed)
{
	static const char *const good[] = { "127.0.0.1:80", "10.1.2.3:65535", "[::1]:4000", "[fe80::1]:1" };
	static const char *const bad[] = {
		"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3:4", "::1:80", "[::1]", "[::1:80", "x:1", "[]:1", "1.2.3.4:8x",
	};
	const struct weft_driver *d = &wf_tcp_driver;
	struct weft_addr addr;
	char text[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		MUST_OK(d->addr_parse(good[i], &addr));
		CHECK_EQ(d->addr_print(&addr, text, sizeof(text)), strlen(good[i]));
		CHECK(!strcmp(text, good[i]));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(d->addr_parse(bad[i], &addr), -EINVAL);
		CHECK(*weft_last_error());
	}
	for (uint32_t len = 0; len <= WEFT_ADDR_BYTES; len++) {         /* of nonsense nothing is read beyond its length */
		memset(&addr, (int)(len * 7), sizeof(addr));
		addr.len = len;
		CHECK(d->addr_print(&addr, text, sizeof(text)) == -EINVAL || len == 8 || len == 20);
	}
}

TEST(a_rail_is_named_by_interface_or_by_subnet)
{
	static const struct { const char *name; int err; } cases[] = {
		{ "tcp:lo", 0 }, { "tcp:127.0.0.0/8", 0 }, { "tcp:127.0.0.1", 0 }, { "tcp:126.0.0.0/7", 0 }, { "tcp:203.0.113.0/24", -ENODEV },
		{ "tcp:nosuch", -ENODEV }, { "tcp:127.0.0.0/33", -ENODEV }, { "tcp:127.0.0.0/x", -ENODEV },
	};
	struct side a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int r = wf_rail_open(cases[i].name, NULL, &conform_upcalls, conform_retry, &a, &a.rail);

		CHECK_EQ(r, cases[i].err);
		if (r == 0)
			wf_rail_close(a.rail);
	}
}

TEST(ports_come_from_the_range_and_run_out)
{
	struct wf_rail *rail[3];
	char options[64];
	int r = -1;

	for (unsigned base = 20000 + (unsigned)getpid() % 20000, i = 0; i < 50 && r != 0; base += 2, i++) {     /* somebody else may have them */
		snprintf(options, sizeof(options), "tcp.ports=%u-%u", base, base + 1);
		r = wf_rail_open("tcp:lo", options, &conform_upcalls, conform_retry, NULL, &rail[0]);
		if (r == 0 && (r = wf_rail_open("tcp:lo", options, &conform_upcalls, conform_retry, NULL, &rail[1])) < 0)
			wf_rail_close(rail[0]);
	}
	MUST_OK(r);
	CHECK_EQ(wf_rail_open("tcp:lo", options, &conform_upcalls, conform_retry, NULL, &rail[2]), -EADDRINUSE);
	wf_rail_close(rail[0]);
	CHECK_OK(wf_rail_open("tcp:lo", options, &conform_upcalls, conform_retry, NULL, &rail[0]));     /* free again at once */
	wf_rail_close(rail[0]);
	wf_rail_close(rail[1]);
	for (size_t i = 0; i < 7; i++)
		CHECK_EQ(wf_rail_open("tcp:lo", (const char *const[]){ "tcp.ports=0", "tcp.ports=9-8", "tcp.ports=1-", "tcp.ports=70000", "tcp.ports=",
			 "tcp.ports", "tcp.family=5" }[i], &conform_upcalls, conform_retry, NULL, &rail[2]), -EINVAL);
}

/* Of both ends of lanes between rails of that family. False: there is none on this machine. */
static bool options_are_right(const char *options, int level, int name)
{
	static const int tos[] = { [WEFT_LANE_CONTROL] = IPTOS_LOWDELAY, [WEFT_LANE_HEAD] = 0, [WEFT_LANE_BULK] = IPTOS_THROUGHPUT };
	struct side a, b;

	if (side_try(&a, options) < 0)
		return false;
	side_open_with(&b, options);
	a.other = &b;
	b.other = &a;
	for (int klass = 0; klass < 3; klass++) {
		struct end *e = cable(&a, &b, klass);

		wf_lane_tune(b.rail, e->other->lane, klass, 0);
		for (int i = 0; i < 2; i++) {
			int fd = ((struct tcp_lane *)(i ? e->other : e)->lane)->fd, v = -1;
			socklen_t len = sizeof(v);

			MUST_OK(getsockopt(fd, level, name, &v, &len));
			CHECK_EQ(v, tos[klass]);
			MUST_OK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &len));
			CHECK(v);
			CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			MUST_OK(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &v, &len));
			CHECK_EQ(v, klass == WEFT_LANE_BULK ? 131072 : -1);
		}
	}
	side_close(&a);
	side_close(&b);
	return true;
}

TEST(sockets_have_the_options_their_lanes_need)
{
	CHECK(options_are_right("tcp.family=4", IPPROTO_IP, IP_TOS));
}

TEST(sockets_of_ipv6_have_them_too)
{
	if (!options_are_right("tcp.family=6", IPPROTO_IPV6, IPV6_TCLASS))
		SKIP("lo has no address of IPv6");
}

/* What both ends of a lane have, between rails that are opened so. */
static void control_of(const char *options, char ret_name[2][TCP_CONGESTION_NAME])
{
	struct side a, b;
	struct end *e;

	side_open_with(&a, options);
	side_open_with(&b, options);
	a.other = &b;
	b.other = &a;
	e = cable(&a, &b, WEFT_LANE_BULK);
	carry(e, 300000, 70000);
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &b : &a;
		void *lane = (i ? e->other : e)->lane;
		socklen_t len = TCP_CONGESTION_NAME;

		wf_lane_tune(s->rail, lane, WEFT_LANE_BULK, 0);
		memset(ret_name[i], 0, TCP_CONGESTION_NAME);
		MUST_OK(getsockopt(((struct tcp_lane *)lane)->fd, IPPROTO_TCP, TCP_CONGESTION, ret_name[i], &len));
	}
	side_close(&a);
	side_close(&b);
}

TEST(lanes_have_the_congestion_control_that_was_asked_for_or_fits)
{
	static const char *const bad[] = { "tcp.congestion=nosuch", "tcp.congestion=", "tcp.congestion=sixteen_is_a_lot" };
	char has[2][TCP_CONGESTION_NAME], usual[TCP_CONGESTION_NAME] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(usual);
	struct wf_rail *rail;
	bool paces;

	MUST(fd >= 0);
	MUST_OK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, usual, &len));
	close(fd);
	paces = !strncmp(usual, "bbr", 3);
	printf("# the system has %s\n", usual);
	control_of("tcp.congestion=reno", has);
	CHECK(!strcmp(has[0], "reno") && !strcmp(has[1], "reno"));
	control_of("tcp.congestion=system", has);
	CHECK(!strcmp(has[0], usual) && !strcmp(has[1], usual));
	control_of(NULL, has);                          /* over lo */
	for (int i = 0; i < 2; i++)
		CHECK(!strcmp(has[i], paces ? "reno" : usual));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(wf_rail_open("tcp:lo", bad[i], &conform_upcalls, conform_retry, NULL, &rail), -EINVAL);
		CHECK(*weft_last_error());
	}
}

static int reserve_of(const struct end *e)
{
	socklen_t len = sizeof(int);
	int bytes = -1;

	MUST_OK(getsockopt(((struct tcp_lane *)e->lane)->fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes, &len));
	return bytes;
}

static bool reserves_here(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = TCP_RESERVE;
	bool can;

	MUST(fd >= 0);
	can = setsockopt(fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes, sizeof(bytes)) == 0;
	close(fd);
	return can;
}

TEST(so_many_lanes_that_are_busy_have_memory_of_the_kernels_set_aside)
{
	struct end *e[TCP_RESERVES + 2], *last;
	struct side a, b;

	if (!reserves_here())
		SKIP("this kernel, or this control group, sets none aside");
	pair_open(&a, &b);
	for (size_t i = 0; i < TCP_RESERVES + 2; i++) {
		bool has = i < TCP_RESERVES;

		e[i] = cable(&a, &b, WEFT_LANE_HEAD);
		CHECK_EQ(reserve_of(e[i]), 0);
		carry(e[i], 300000, 70000);
		CHECK_EQ(reserve_of(e[i]), has ? TCP_RESERVE : 0);
		CHECK_EQ(reserve_of(e[i]->other), has ? TCP_RESERVE : 0);
	}
	end_close(e[0]);                /* then another has it */
	end_close(e[0]->other);
	last = e[TCP_RESERVES + 1];
	carry(last, 300000, 70000);
	CHECK_EQ(reserve_of(last), TCP_RESERVE);
	CHECK_EQ(reserve_of(last->other), TCP_RESERVE);
	CHECK_EQ(reserve_of(e[TCP_RESERVES]), 0);
	side_close(&a);
	side_close(&b);
}

TEST(what_a_bulk_lane_has_accepted_and_not_sent_is_bounded)
{
	weft_time late = weft_now() + 20 * WEFT_S;
	struct side a, b;
	struct end *e;
	int unsent = 0, quiet = 0;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_BULK);
	while (quiet < 50 && weft_now() < late) {       /* nobody reads: the window closes, then what is sent stays unsent */
		quiet = end_send(e, 256 * KIB, 0) > 0 ? 0 : quiet + 1;
		pump(&a, NULL);
		usleep(quiet ? 1000 : 0);
	}
	MUST_OK(ioctl(((struct tcp_lane *)e->lane)->fd, SIOCOUTQNSD, &unsent));
	printf("# %d bytes unsent\n", unsent);
	CHECK(unsent <= 512 * 1024);
	CHECK(unsent > 0);
	side_close(&a);
	side_close(&b);
}

/* A child that was forked and does nothing has the sockets too; a closed lane must not stay in the epoll set by them. */
TEST(a_forked_child_does_not_keep_closed_lanes_awake)
{
	struct side a, b;
	struct end *e;
	pid_t child;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	send_byte(e);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		alarm(60);
		pause();
		_exit(0);
	}
	end_close(e->other);            /* with a byte unread, or it comes later */
	send_byte(e);
	for (int i = 0; i < 10; i++)
		pump(&b, NULL);
	CHECK_EQ(poll(&(struct pollfd){ .fd = b.rail->fd, .events = POLLIN }, 1, 20), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	side_close(&a);
	side_close(&b);
}

/* ---- other networks ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	close(fd);
	return r;
}

/* In a child: a network of its own with nothing but lo, with or without IPv6. Exit 0: a lane worked. 77: no right to. */
static int alone(bool with_v6, const char *options)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct side a, b;
	int fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 77;
	if (!with_v6 && write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1") < 0 && access("/proc/sys/net/ipv6", F_OK) == 0)
		return 77;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return 77;
	close(fd);
	if (wf_rail_open("tcp:lo", options, &conform_upcalls, conform_retry, NULL, &a.rail) < 0)
		return 2;
	wf_rail_close(a.rail);
	side_open_with(&a, options);
	side_open_with(&b, options);
	a.other = &b;
	b.other = &a;
	carry(cable(&a, &b, WEFT_LANE_HEAD), 100000, 5000);
	side_close(&a);
	side_close(&b);
	return wf_rails_choose("", NULL, 0) == 0 ? 0 : 3;       /* lo is used by name only */
}

static int in_child(bool with_v6, const char *options)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (child == 0) {
		int r = alone(with_v6, options);

		_exit(atomic_load(&test_failures) ? 1 : r);
	}
	MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(a_network_with_nothing_but_lo_is_enough)
{
	int r = in_child(true, "");

	if (r == 77)
		SKIP("no right to make a network namespace");
	CHECK_EQ(r, 0);
}

TEST(no_ipv6_is_no_obstacle)
{
	int r = in_child(false, ""), six = in_child(false, "tcp.family=6");

	if (r == 77)
		SKIP("no right to make a network namespace without IPv6");
	CHECK_EQ(r, 0);
	CHECK_EQ(six, 2);               /* and asking for it is an error, no more */
}

TEST(ipv6_alone_works)
{
	int r = in_child(true, "tcp.family=6");

	if (r == 77)
		SKIP("no right to make a network namespace");
	if (r == 2 && access("/proc/sys/net/ipv6", F_OK) < 0)
		SKIP("this kernel has no IPv6");
	CHECK_EQ(r, 0);
}

CONFORM_MAIN
