/* player.c - plays a process of a job by a script: the link to the agent alone, without the rest of weft.
 *
 *   player [WHO:]OP...      each OP is done in its order; one that begins with "N:" is done by process N only (1 .. size)
 *
 *   join                 joins with a board of its own and says as whom, or why not
 *   meet=P  give=P,S  tell=S  untell=S  acted=P  bye  close       the calls of job/link.h; each prints its result
 *   met=P                meets P, waiting for the notice that it has joined
 *   await=WHAT,P         prints notices until one of that kind (joined, meet, dead, settled) about P has come; "end" if
 *                        the agent is gone
 *   notes=MS             prints the notices of so many milliseconds
 *   bell=MS              waits so long for somebody to ring this process's event
 *   ring=P               rings P's event
 *   lost                 waits until the agent is gone
 *   sleep=MS  exit=CODE  raise=SIGNAL  exec=PROGRAM  say=TEXT      as named
 *   calls=N              N calls with numbers and descriptors by chance; only what the link could send by itself
 *   junk=WHERE,N         N frames of nonsense, with descriptors: to door, calls or notes
 *   flood=N              N calls without reading an answer
 *   misgrow=HOW          asks for hosts by what is no list of them: 0, 1 or 2
 *   files=N              descriptors this process may have from now on
 *   user=UID             becomes another user
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/base.h>

#include "job/frames.h"
#include "job/link.h"

#define BOARD_BYTES 4096

static int board = -1, event = -1, door = -1;
static unsigned self;           /* by WEFT_RANK; the agent's word must agree */
static bool seen[WF_NOTE_SETTLED + 1][1025];
static const char *const names[] = { "?", "joined", "meet", "dead", "settled" };

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One write per line: several processes share the stream. */
static void tell(const char *fmt, ...)
{
	char line[512];
	va_list args;
	int n = snprintf(line, sizeof(line), "%u ", self);

	va_start(args, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	va_end(args);
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		_exit(99);
}

static void nap(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static int memory(const char *name, uint32_t content)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, BOARD_BYTES) < 0 || pwrite(fd, &content, sizeof(content), 0) != sizeof(content) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		_exit(98);
	return fd;
}

static uint32_t content_of(int fd)
{
	uint32_t content = 0;

	return pread(fd, &content, sizeof(content), 0) == sizeof(content) ? content : 0;
}

static void do_join(void)
{
	struct wf_welcome w;
	int r;

	if (!wf_link_offered(&(uint32_t){ 0 })) {
		tell("no door");
		return;
	}
	board = memory(WF_BOARD_NAME, 1000 + self);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, board, 0) == MAP_FAILED)
		_exit(97);
	r = wf_link_join(board, BOARD_BYTES, event, &w);
	if (r == 0)
		tell("joined %u of %u", w.process, w.count);
	else
		tell("join %d: %s", r, weft_last_error());
}

static void do_meet(unsigned p)
{
	int b, e, r = wf_link_meet(p, &b, &e);

	if (r < 0) {
		tell("meet %u: %d", p, r);
		return;
	}
	tell("meet %u: board %u", p, content_of(b));
	close(b);
	close(e);
}

/* The next notice is printed and remembered. As wf_link_next. */
static int look(void)
{
	struct wf_note n;
	const void *msg;
	size_t len;
	int r = wf_link_next(&n, &msg, &len);

	if (r < 0)
		tell("end");
	if (r <= 0)
		return r;
	if (n.what < WF_NOTE_JOINED || n.what > WF_NOTE_SETTLED || n.process < 1 || n.process > 1024) {
		tell("note %u %u?", n.what, n.process);
		exit(94);
	}
	seen[n.what][n.process] = true;
	if (n.what == WF_NOTE_DEAD)
		tell("note dead %u status %d left %u", n.process, n.status, n.left);
	else
		tell("note %s %u", names[n.what], n.process);
	return r;
}

/* False: the agent is gone. */
static bool await(unsigned what, unsigned p)
{
	while (!seen[what][p]) {
		struct pollfd poll_for = { .fd = wf_link_fd(), .events = POLLIN };
		int r = look();

		if (r < 0)
			return false;
		if (r == 0)
			poll(&poll_for, 1, -1);
	}
	return true;
}

static void do_await(const char *what, unsigned p)
{
	for (unsigned i = WF_NOTE_JOINED; i <= WF_NOTE_SETTLED; i++)
		if (!strncmp(what, names[i], strlen(names[i])))
			await(i, p);
}

static void do_notes(int ms)
{
	nap(ms);
	while (look() > 0)
		;
}

static void do_met(unsigned p)
{
	int b, e;

	if (wf_link_meet(p, &b, &e) == -EAGAIN && !await(WF_NOTE_JOINED, p))
		return;
	do_meet(p);
}

static void do_ring(unsigned p)
{
	uint64_t one = 1;
	int b, e;

	if (wf_link_meet(p, &b, &e) == 0 && write(e, &one, sizeof(one)) == sizeof(one))
		tell("rang %u", p);
}

static void do_lost(void)
{
	struct pollfd p = { .fd = wf_link_fd(), .events = POLLIN };

	while (look() >= 0)
		poll(&p, 1, -1);
}

static int socket_of(const char *where)
{
	/* The link keeps its descriptors to itself; its calls socket is the one it opened before that of the notices. */
	if (!strncmp(where, "door", 4))
		return door;
	return !strncmp(where, "notes", 5) ? wf_link_fd() : wf_link_fd() - 2;
}

/* Frames of any length with any descriptors; some that are nearly right. */
static void do_junk(const char *where, int count)
{
	int sock = socket_of(where), r = 0;
	unsigned seed = (unsigned)getpid();

	for (int i = 0; i < count && r != -EPIPE; i++) {
		unsigned char frame[512];
		int fds[WF_PARCEL_FDS] = { 0, 1, 2, 0 };
		size_t bytes = (size_t)rand_r(&seed) % 300;

		for (size_t j = 0; j < sizeof(frame); j++)
			frame[j] = (unsigned char)rand_r(&seed);
		if (i % 3 == 0) {
			struct wf_frame_join join = {
				.magic = WF_JOIN_MAGIC, .protocol = rand_r(&seed) % 3u, .version = WF_VERSION,
				.board_bytes = (uint64_t)rand_r(&seed),
			};

			memcpy(frame, &join, sizeof(join));
			bytes = sizeof(join);
		} else if (i % 3 == 1) {
			struct wf_frame_call c = {
				.what = rand_r(&seed) % 8u, .process = rand_r(&seed) % 6u, .segment = rand_r(&seed) % 3u,
			};

			memcpy(frame, &c, sizeof(c));
			bytes = sizeof(c);
		}
		r = wf_parcel_send(sock, frame, bytes, fds, (unsigned)rand_r(&seed) % 6u, MSG_DONTWAIT);
		if (r == -EAGAIN)
			nap(1);
	}
	tell("sent junk");
}

/* What is no list of hosts: a text without an end, one with two, a word too many. */
static void do_misgrow(int how)
{
	struct wf_frame_grow frame = { .what = WF_CALL_GROW, .name = 1, .ms = 1000, .reserved = how == 2, .hosts = "127.0.0.9" };
	size_t bytes = offsetof(struct wf_frame_grow, hosts) + (how == 0 ? 4 : how == 1 ? 12 : 10);

	tell("misgrow: %d", wf_parcel_send(socket_of("calls"), &frame, bytes, NULL, 0, 0));
}

static void do_calls(int count)
{
	unsigned seed = (unsigned)getpid();

	for (int i = 0; i < count; i++) {
		uint32_t process = rand_r(&seed) % 8u + 1, segment = rand_r(&seed) % 5u + 1;
		int b, e, fd;

		switch (rand_r(&seed) % 6) {
		case 0:
			wf_link_tell(segment, rand_r(&seed) % 2 ? board : 0);
			break;
		case 1:
			wf_link_untell(segment);
			break;
		case 2:
			fd = wf_link_give(process, segment);
			if (fd >= 0)
				close(fd);
			break;
		case 3:
			if (wf_link_meet(process, &b, &e) == 0) {
				close(b);
				close(e);
			}
			break;
		case 4:
			look();
			break;
		case 5:
			if (seen[WF_NOTE_DEAD][process])
				wf_link_acted(process);
			break;
		}
	}
	tell("called");
}

static void do_flood(int count)
{
	struct wf_frame_call c = { .what = WF_CALL_MEET, .process = 1 };

	for (int i = 0; i < count; i++)
		if (wf_parcel_send(socket_of("calls"), &c, sizeof(c), NULL, 0, MSG_DONTWAIT) == -EPIPE)
			break;
	tell("flooded");
}

static void do_bell(int ms)
{
	struct pollfd p = { .fd = event, .events = POLLIN };

	tell(poll(&p, 1, ms) > 0 ? "rung" : "silence");
}

static void do_files(int n)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = (rlim_t)n, .rlim_max = (rlim_t)n });
}

static void act(const char *op)
{
	const char *value = strchr(op, '=');
	size_t len = value ? (size_t)(value - op) : strlen(op);
	int n = value ? atoi(value + 1) : 0;
	const char *comma = value ? strchr(value, ',') : NULL;
	int second = comma ? atoi(comma + 1) : 0;

#define IS(name) (len == sizeof(name) - 1 && !strncmp(op, name, len))
	if (IS("join")) {
		do_join();
	} else if (IS("meet")) {
		do_meet((unsigned)n);
	} else if (IS("met")) {
		do_met((unsigned)n);
	} else if (IS("give")) {
		int fd = wf_link_give((uint32_t)n, (uint32_t)second);

		tell("give %d,%d: %d", n, second, fd < 0 ? fd : (int)content_of(fd));
		close(fd);
	} else if (IS("tell")) {
		int fd = memory("segment", 100 * self + (unsigned)n);

		tell("tell %d: %d", n, wf_link_tell((uint32_t)n, fd));
		close(fd);
	} else if (IS("untell")) {
		tell("untell %d: %d", n, wf_link_untell((uint32_t)n));
	} else if (IS("acted")) {
		tell("acted %d: %d", n, wf_link_acted((uint32_t)n));
	} else if (IS("bye")) {
		tell("bye: %d", wf_link_bye());
	} else if (IS("close")) {
		wf_link_close();
	} else if (IS("await")) {
		do_await(value + 1, (unsigned)second);
	} else if (IS("notes")) {
		do_notes(n);
	} else if (IS("bell")) {
		do_bell(n);
	} else if (IS("ring")) {
		do_ring((unsigned)n);
	} else if (IS("lost")) {
		do_lost();
	} else if (IS("sleep")) {
		nap(n);
	} else if (IS("exit")) {
		exit(n);
	} else if (IS("raise")) {
		raise(n);
	} else if (IS("say")) {
		tell("%s", value + 1);
	} else if (IS("junk")) {
		do_junk(value + 1, second);
	} else if (IS("calls")) {
		do_calls(n);
	} else if (IS("misgrow")) {
		do_misgrow(n);
	} else if (IS("flood")) {
		do_flood(n);
	} else if (IS("files")) {
		do_files(n);
	} else if (IS("user")) {
		if (setuid((uid_t)n) < 0)
			exit(95);
	} else if (IS("exec")) {
		execlp(value + 1, value + 1, "3600", (char *)NULL);
	} else {
		tell("no such op: %s", op);
		exit(96);
	}
#undef IS
}

int main(int argc, char **argv)
{
	const char *agent = getenv(WF_AGENT_ENV), *rank = getenv("WEFT_RANK");

	self = rank ? (unsigned)atoi(rank) + 1 : 0;
	door = agent ? dup(atoi(agent)) : -1;
	for (int i = 1; i < argc; i++) {
		const char *op = argv[i];
		char *end;
		unsigned long who = strtoul(op, &end, 10);

		if (*end == ':' && end != op) {
			if (who != self)
				continue;
			op = end + 1;
		}
		act(op);
	}
	return 0;
}
