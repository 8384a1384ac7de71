/* lend.c - buffers lent to another host are given back, though their receiver is stopped. usage: weft run --hosts A:1,B:1 ... lend ROUNDS
 *
 * They have talked for a while, so that all connections are there. Process 0 stops process 1, lends it buffers of up to 64 KiB, waits until each is idle and writes something else into it; only then process 1 goes on, and must receive what was lent. Says "lend: ok"
 * and exits 0.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { MOST = 64 << 10, AT_ONCE = 64 << 10, TAG = 7, PATIENCE = 2 };    /* s, less than a silent process has */

static unsigned char mem[MOST], bytes[MOST];
static weft_id other;

static uint32_t random_next(void)
{
	static uint32_t x = 12345;

	x = x * 1664525 + 1013904223;
	return x >> 8;
}

/* 1 B to 64 KiB, each order of size as likely. */
static size_t length_next(void)
{
	return 1 + random_next() % (MOST >> random_next() % 17);
}

static void fill(unsigned char *to, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static void lend(struct weft_buf *buf, size_t len, uint32_t seed)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_KEEP, .peer = other, .tag = TAG, .buf = buf };
	weft_time until = weft_in(PATIENCE * WEFT_S);
	struct weft_req *req = NULL;
	int r;

	buf->len = len;
	fill(buf->data, len, seed);
	r = weft_send_post(weft_port_world(), &op, &req);
	EXPECT(r == 0 || r == WEFT_DONE, 1);
	while (weft_buf_state(buf) != WEFT_BUF_IDLE && weft_now() < until)
		weft_poll(weft_in(WEFT_MS));
	EXPECT(weft_buf_state(buf), WEFT_BUF_IDLE);
	memset(buf->data, 0xee, len);
	EXPECT(weft_req_wait(&req, SOON, NULL), 0);
}

static void take(size_t len, uint32_t seed)
{
	struct weft_status st;

	EXPECT(weft_recv(weft_port_world(), other, TAG, mem, MOST, SOON, &st), 0);
	EXPECT(st.len, len);
	fill(bytes, len, seed);
	EXPECT(memcmp(mem, bytes, len), 0);
}

/* There and back until process 0 has had enough. */
static void talk(bool first)
{
	weft_time until = weft_in(WEFT_S / 4);
	uint32_t on = 1;

	while (on && !faults) {
		if (first) {
			on = weft_now() < until;
			EXPECT(weft_send(weft_port_world(), other, TAG, &on, sizeof(on), SOON), 0);
			EXPECT(weft_recv(weft_port_world(), other, TAG, mem, MOST, SOON, NULL), 0);
		} else {
			EXPECT(weft_recv(weft_port_world(), other, TAG, &on, sizeof(on), SOON, NULL), 0);
			EXPECT(weft_send(weft_port_world(), other, TAG, bytes, MOST, SOON), 0);
		}
	}
}

/* As much as the network takes while nobody reads; both know the lengths. */
static void round_of(bool first, uint32_t round, struct weft_buf *buf, pid_t receiver)
{
	size_t len, all = 0;

	if (first)
		EXPECT(kill(receiver, SIGSTOP), 0);
	for (uint32_t i = 0; !faults && all + (len = length_next()) <= AT_ONCE; i++, all += len) {
		if (first)
			lend(buf, len, round + i);
		else
			take(len, round + i);
	}
	if (first)
		EXPECT(kill(receiver, SIGCONT), 0);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	pid_t pid = getpid(), receiver = 0;
	struct weft_buf *buf = NULL;
	bool first;

	if (!rounds || weft_init(NULL) < 0) {
		fprintf(stderr, "lend: %s\n", rounds ? weft_last_error() : "usage: lend ROUNDS");
		return 1;
	}
	first = getenv("WEFT_RANK")[0] == '0';
	other = weft_at(first);
	EXPECT(weft_buf_get(MOST, WEFT_RAIL_ANY, &buf), 0);
	talk(first);
	for (uint32_t i = 0; i < rounds && !faults; i++) {
		/* Its pid says that it is where the last round has left it, and in weft's hands. */
		if (first)
			EXPECT(weft_recv(weft_port_world(), other, TAG, &receiver, sizeof(receiver), SOON, NULL), 0);
		else
			EXPECT(weft_send(weft_port_world(), other, TAG, &pid, sizeof(pid), SOON), 0);
		round_of(first, i, buf, receiver);
	}
	EXPECT(weft_buf_put(buf), 0);
	if (first)
		printf("lend: %s\n", faults ? "failed" : "ok");
	return faults || weft_fini(SOON) < 0;
}
