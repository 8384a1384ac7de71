/* subject.c - processes to be looked at with `weft state`, and one that looks.
 *
 *   hang          in a job of two: each waits for a message that the other never sends
 *   send          in a job of two: rank 0 waits in a synchronous send that nobody receives
 *   cross         in a job of two: each waits in a send that the other never receives: a large one, and one behind a full mailbox
 *   probe         in a job of two: rank 0 probes for a message that the other never sends, 1 for any at all
 *   alone         a job of one with a named port, a posted receive and messages; then computes
 *   busy          in a job of two: traffic as fast as it goes, ports opened and closed, until killed
 *   fake VERSION  shows a board of another version
 *   left          has left its job
 *   look PID N    samples PID N times through the library, without having joined: how many items, 0 to 1 errors are told
 *
 * Each that stays prints "ready PID".
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/weft.h>

#define SOON weft_in(20 * WEFT_S)
#define DO(call)                                                                                   \
	do {                                                                                       \
		int r_ = (call);                                                                   \
		if (r_ < 0) {                                                                      \
			printf("line %d: %d %s\n", __LINE__, r_, weft_last_error());               \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static unsigned me;

static void ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

static weft_id meet(void)
{
	weft_id self, peer;

	DO(weft_init(NULL));
	self = weft_self();
	DO(weft_send(weft_port_world(), weft_at(1 - me), 1, &self, sizeof(self), SOON));
	DO(weft_recv(weft_port_world(), weft_at(1 - me), 1, &peer, sizeof(peer), SOON, NULL));
	return peer;
}

static int hang(void)
{
	weft_id peer = meet();
	char x[40] = { 0 };

	DO(weft_send(NULL, peer, 77, x, 33, SOON));
	ready();
	return weft_recv(NULL, peer, 500 + me, x, sizeof(x), WEFT_FOREVER, NULL);
}

static int send_to_nobody(void)
{
	weft_id peer = meet();
	struct weft_req *req = NULL;
	char x[40] = { 0 };

	ready();
	if (me == 0) {
		DO(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = 900, .data = x, .len = 40, .flags = WEFT_SYNC), &req));
		return weft_req_wait(&req, WEFT_FOREVER, NULL);
	}
	for (;;)
		pause();
}

static void *send_local(void *arg)
{
	static char x[40];
	struct weft_req *req = NULL;

	DO(weft_send_post(NULL, WEFT(op, .peer = *(weft_id *)arg, .tag = 803, .data = x, .len = 24, .flags = WEFT_SYNC), &req));
	DO(weft_req_wait(&req, WEFT_FOREVER, NULL));
	return NULL;
}

static int cross(void)
{
	static char x[1 << 20];
	struct weft_port_info info = { .size = sizeof(info) };
	weft_id peer = meet(), deaf;
	struct weft_port *port;
	pthread_t t;

	/* A port where nobody looks: who waits for a send looks after where it goes and at what comes for himself. Beside it a thread that sends to that of its own process. */
	DO(weft_port_open(WEFT(port_opts, .name = "deaf"), &port));
	DO(weft_port_stat(port, &info));
	if (pthread_create(&t, NULL, send_local, &info.id))
		return 1;
	DO(weft_send(NULL, peer, 801, &info.id, sizeof(info.id), SOON));
	DO(weft_recv(NULL, peer, 801, &deaf, sizeof(deaf), SOON, NULL));
	if (me == 1)
		DO(weft_send(NULL, deaf, 801, x, 8, SOON));     /* from now on its mailbox can be filled */
	while (me == 1 && weft_send(NULL, deaf, 801, x, 8, WEFT_NOW) == 0)
		;
	ready();
	return me == 0 ? weft_send(NULL, peer, 800, x, sizeof(x), WEFT_FOREVER) : weft_send(NULL, deaf, 802, x, 16, WEFT_FOREVER);
}

static int probe(void)
{
	weft_id peer = meet();

	ready();
	return weft_probe(NULL, me == 0 ? WEFT(op, .peer = peer, .tag = 600) : WEFT(op, .peer = WEFT_ANY, .tag = WEFT_ANY_TAG), WEFT_FOREVER, NULL, NULL);
}

static int alone(void)
{
	static char x[40];
	struct weft_port *port;
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_req *req;

	DO(weft_init(NULL));
	DO(weft_port_open(WEFT(port_opts, .name = "till"), &port));
	DO(weft_port_stat(port, &info));
	DO(weft_recv_post(port, WEFT(op, .peer = WEFT_ANY, .tag = 41, .data = x, .len = 40), &req, NULL));
	DO(weft_send(NULL, info.id, 42, x, 24, SOON));
	ready();
	for (volatile uint64_t n = 0;; n++)
		;
}

static void *churn(void *arg)
{
	struct weft_port *port;

	for (;;) {
		DO(weft_port_open(WEFT(port_opts, .name = "churn"), &port));
		DO(weft_port_close(port, SOON));
	}
	return arg;
}

static int busy(void)
{
	static char out[20000], in[20000];
	weft_id peer = meet();
	pthread_t t;

	if (pthread_create(&t, NULL, churn, NULL))
		return 1;
	ready();
	for (uint64_t n = 0;; n++) {
		struct weft_req *reqs[8];

		for (unsigned i = 0; i < 8; i++)
			DO(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = i, .data = out, .len = i * n % sizeof(out)), &reqs[i]));
		for (unsigned i = 8; i-- > 0;)
			DO(weft_recv(NULL, peer, i, in, sizeof(in), SOON, NULL));
		for (unsigned i = 0; i < 8; i++)
			DO(weft_req_wait(&reqs[i], SOON, NULL));
	}
}

/* The beginning of a board is the same in every version: a number, layout and process, the version. */
static int fake(const char *version)
{
	int fd = memfd_create("weft-board", 0);
	char *m;

	if (fd < 0 || ftruncate(fd, 65536) < 0)
		return 1;
	m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return 1;
	memset(m, 1, 16);
	snprintf(m + 16, 32, "%s", version);
	ready();
	for (;;)
		pause();
}

static int look(pid_t pid, long times)
{
	struct weft_state_item item = { .size = sizeof(item) };
	struct weft_state *state;
	long items = 0, failed = 0;
	int err = 0;

	for (long i = 0; i < times; i++) {
		int r = weft_state_open(pid, &state);

		if (r < 0) {
			err = r;
			failed++;
			continue;
		}
		while (weft_state_next(state, &item) == 0) {
			items++;
			if (!memchr(item.text, 0, sizeof(item.text)))
				return 1;
		}
		weft_state_close(state);
	}
	printf("%ld items, %ld failed %d %s\n", items, failed, err, failed ? weft_last_error() : "");
	return 0;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("WEFT_RANK"), *what = argc > 1 ? argv[1] : "";

	me = rank ? (unsigned)atoi(rank) : 0;
	if (!strcmp(what, "hang"))
		return hang();
	if (!strcmp(what, "send"))
		return send_to_nobody();
	if (!strcmp(what, "cross"))
		return cross();
	if (!strcmp(what, "probe"))
		return probe();
	if (!strcmp(what, "alone"))
		return alone();
	if (!strcmp(what, "busy"))
		return busy();
	if (!strcmp(what, "fake") && argc == 3)
		return fake(argv[2]);
	if (!strcmp(what, "look") && argc == 4)
		return look((pid_t)atoi(argv[2]), atol(argv[3]));
	if (!strcmp(what, "left")) {
		DO(weft_init(NULL));
		DO(weft_fini(SOON));
		ready();
		for (;;)
			pause();
	}
	return 2;
}
