/* actor.c - a process of a job of three that is swept: it does what test_sweep.c orders over a socket, and answers how that went.
 *
 * The victim (victim.c) plays one act between two marks, which its tracer stops at. The other two are the survivors (survivor.c):
 * they talk to each other, look whether what named the victim ends as it must, and count their buffers.
 */
#include "actor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mem/share.h"

extern char __executable_start, etext;

unsigned rank;
struct order now;
struct answer say;
weft_id other, victim;
struct weft_req *pending;
unsigned char bytes[LARGE], room[LARGE];
struct weft_buf *kept[BUFFERS];
atomic_int told;

static int sock;

void wrong(const char *file, int line, int result, const char *fmt, ...)
{
	const char *name = strrchr(file, '/');
	va_list args;

	if (say.line)
		return;
	snprintf(say.file, sizeof(say.file), "%s", name ? name + 1 : file);
	say.line = line;
	say.result = result;
	va_start(args, fmt);
	vsnprintf(say.said, sizeof(say.said), fmt, args);
	va_end(args);
}

int try_call(int r, const char *what, const char *file, int line)
{
	if (r < 0)
		wrong(file, line, r, "%s: %s", what, weft_last_error());
	return r;
}

void fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

void check_bytes(const unsigned char *p, size_t n, size_t want, unsigned seed, const char *file, int line)
{
	if (n != want) {
		wrong(file, line, (int)n, "%zu bytes came instead of %zu", n, want);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i * 7 + (i >> 8) + seed)) {
			wrong(file, line, (int)i, "byte %zu of %zu is wrong", i, n);
			return;
		}
}

struct weft_buf *filled(size_t n, unsigned seed)
{
	struct weft_buf *b = NULL;

	if (TRY(weft_buf_get(n, 0, &b)) < 0)
		return NULL;
	fill(b->data, n, seed);
	return b;
}

bool settles(bool (*holds)(void))
{
	weft_time until = weft_in(DEAD);

	for (;;) {
		wf_share_flush();
		wf_share_collect();
		if (holds())
			return true;
		if (weft_now() > until)
			return false;
		weft_poll(weft_in(WEFT_MS));
	}
}

bool was_told(void)
{
	return atomic_load(&told);
}

static void join(void)
{
	if (TRY(weft_init(NULL)) == 0)
		say.id = weft_self();
}

static void leave(void)
{
	int r = weft_fini(weft_in(WEDGED));

	if (r < 0 && !(r == -ENOTCONN && rank == VICTIM && now.act == ACT_fini))
		WRONG(r, "weft_fini: %s", weft_strerror(r));
	if (rank != VICTIM)
		survivor_leave();
}

static void obey(void)
{
	other = now.id[rank == FIRST ? SECOND : FIRST];
	victim = now.id[VICTIM];
	switch (now.what) {
	case DO_JOIN:
		join();
		break;
	case DO_TALK:
		survivor_talk();
		break;
	case DO_COUNT:
		survivor_count();
		break;
	case DO_SET:
		if (rank == VICTIM)
			victim_set();
		else
			survivor_set();
		break;
	case DO_ACT:
		victim_act();
		break;
	case DO_END:
		survivor_end();
		break;
	case DO_BURY:
		survivor_bury();
		break;
	default:
		leave();
	}
}

/* The next order; a survivor that waits for something makes progress meanwhile. */
static bool next(void)
{
	for (;;) {
		ssize_t n = recv(sock, &now, sizeof(now), pending ? MSG_DONTWAIT : 0);

		if (n == (ssize_t)sizeof(now))
			return true;
		if (n >= 0 || errno != EAGAIN)
			return false;
		weft_poll(weft_in(WEFT_MS));
	}
}

static void answer(void)
{
	if (send(sock, &say, sizeof(say), MSG_NOSIGNAL) != (ssize_t)sizeof(say))
		exit(90);
	say.line = 0;
	say.result = 0;
	say.said[0] = 0;
}

static int call_in(const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(name);

	if (n + 2 > sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path + 1, name, n);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -1;
	return connect(sock, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n));
}

int main(void)
{
	const char *name = getenv(SWEEP_ADDRESS), *number = getenv("WEFT_RANK");

	if (!name || !number || call_in(name) < 0)
		return 91;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	rank = (unsigned)atoi(number);
	say.rank = rank;
	say.pid = getpid();
	say.mark = (uintptr_t)sweep_mark;
	say.text = (uintptr_t)&__executable_start;
	say.text_end = (uintptr_t)&etext;
	survivor_begin();
	answer();
	while (next()) {
		obey();
		answer();
		if (now.what == DO_LEAVE)
			return 0;
	}
	return 92;
}
