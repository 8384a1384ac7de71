/* mourn.c - a process of a job on several hosts: everybody says a word to everybody now and then, and tells of each that is gone.
 *
 * usage: weft run --hosts ... mourn
 * Prints `RANK ready` when it has heard everybody; `RANK lost PEER ERROR at NS` when an operation with a peer ends with an error, once for each; and when it gets a SIGUSR1
 * `RANK heard PEER:COUNT ...`, what came since the last time. A SIGTERM ends it, with 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#define MOST 256
#define EVERY (20 * WEFT_MS)

static uint32_t rank, size;
static struct weft_queue *queue;
static bool lost[MOST], ready;
static unsigned heard[MOST], since[MOST];
static volatile sig_atomic_t asked, over;

static void on_signal(int sig)
{
	*(sig == SIGTERM ? &over : &asked) = 1;
}

static void mourn(uint32_t peer, int err)
{
	if (lost[peer] || over)
		return;
	lost[peer] = true;
	printf("%u lost %u %d at %" PRId64 "\n", rank, peer, err, (int64_t)weft_now());
	fflush(stdout);
}

static void listen_to(uint32_t peer)
{
	struct weft_op op = { .size = sizeof(op), .peer = weft_at(peer), .tag = 1, .flags = WEFT_ALLOC | WEFT_REPEAT, .queue = queue, .user = &lost[peer] };
	struct weft_req *req = NULL;
	int r = weft_recv_post(weft_port_world(), &op, &req, NULL);

	if (r < 0)
		mourn(peer, r);
}

static void speak(void)
{
	static const uint64_t word = 1;

	for (uint32_t p = 0; p < size; p++) {
		struct weft_op op = { .size = sizeof(op), .peer = weft_at(p), .tag = 1, .data = (void *)(uintptr_t)&word, .len = sizeof(word), .flags = WEFT_COPY };
		int r = p == rank || lost[p] ? 0 : weft_send_post(weft_port_world(), &op, NULL);

		if (r < 0 && r != -EAGAIN)
			mourn(p, r);
	}
}

static void take(weft_time until)
{
	struct weft_status st[16];
	int n = weft_queue_next(queue, until, st, 16);

	for (int i = 0; i < n; i++) {
		uint32_t peer = (uint32_t)((bool *)st[i].user - lost);

		if (st[i].err)
			mourn(peer, st[i].err);
		else
			heard[peer]++;
		if (st[i].buf)
			weft_buf_put(st[i].buf);
	}
}

static void report(void)
{
	printf("%u heard", rank);
	for (uint32_t p = 0; p < size; p++) {
		if (p != rank)
			printf(" %u:%u", p, heard[p] - since[p]);
		since[p] = heard[p];
	}
	puts("");
	fflush(stdout);
	asked = 0;
}

static void look_ready(void)
{
	for (uint32_t p = 0; p < size; p++)
		if (p != rank && !heard[p])
			return;
	printf("%u ready\n", rank);
	fflush(stdout);
	ready = true;
}

int main(void)
{
	rank = (uint32_t)atoi(getenv("WEFT_RANK") ? getenv("WEFT_RANK") : "0");
	size = (uint32_t)atoi(getenv("WEFT_SIZE") ? getenv("WEFT_SIZE") : "1");
	if (size > MOST || weft_init(NULL) < 0 || weft_queue_open(&queue) < 0) {
		fprintf(stderr, "mourn: %s\n", weft_last_error());
		return 1;
	}
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	for (uint32_t p = 0; p < size; p++)
		if (p != rank)
			listen_to(p);
	for (weft_time next = weft_now(); !over; next += EVERY) {
		speak();
		while (weft_now() < next + EVERY && !over)
			take(next + EVERY);
		if (asked)
			report();
		if (!ready)
			look_ready();
	}
	take(weft_in(100 * WEFT_MS));           /* the others have been told, too */
	return 0;
}
