/* seek.c - many receives that nobody sends for, and behind them one whose message its sender keeps back. usage: weft run --hosts A:1,B:1 ... seek RECEIVES
 *
 * Process 0 posts RECEIVES receives and one more; process 1 sends more messages that fit none of them than are announced at a time, and then the one for the last. All of the receives ask for what they
 * want, which is more than there is room for at once; the last must get its message. Once with the receives posted first, once with the messages sent first.
 * Then a port is closed and opened again while messages are kept back for it. Says "seek: ok" and exits 0.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "expect.h"

enum { SENDS = 300, MANY = 4000, LEN = 100000, WANTED = 7, WORD = 8, OTHERS = 1000, NOBODYS = 1000000 };

static unsigned char mem[LEN], bytes[LEN], small[8];
static struct weft_req *reqs[1 << 20], *sends[SENDS + 1];
static weft_id other;

/* More urgent than what is kept back, and so not behind it. */
static void say(void)
{
	struct weft_op op = { .size = sizeof(op), .peer = other, .tag = WORD, .data = small, .len = 1, .prio = 1 };

	EXPECT(weft_send_post(weft_port_world(), &op, NULL) >= 0, 1);
}

static void hear(void)
{
	EXPECT(weft_recv(weft_port_world(), other, WORD, small, sizeof(small), SOON, NULL), 0);
}

/* They end unmatched. */
static void take_back(struct weft_req **them, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		EXPECT(weft_req_cancel(them[i]), 0);
	for (uint32_t i = 0; i < n; i++)
		EXPECT(weft_req_wait(&them[i], SOON, NULL), -ECANCELED);
}

static void receive(uint32_t n, bool sent)
{
	struct weft_status st = { 0 };

	if (sent)
		hear();
	for (uint32_t i = 0; i < n; i++)
		EXPECT(weft_recv_start(weft_port_world(), other, NOBODYS + i, 0, small, sizeof(small), 0, &reqs[i], &st), 0);
	mem[LEN - 1] = 0;
	EXPECT(weft_recv_start(weft_port_world(), other, WANTED, 0, mem, LEN, 0, &reqs[n], &st), 0);
	if (!sent)
		say();
	EXPECT(weft_req_wait(&reqs[n], SOON, &st), 0);
	EXPECT(st.len, LEN);
	EXPECT(mem[LEN - 1], bytes[LEN - 1]);
	if (!faults)
		take_back(reqs, n);
	say();
	hear();
}

static void send(bool first)
{
	if (!first)
		hear();
	for (uint32_t i = 0; i <= SENDS; i++)
		EXPECT(weft_send_start(weft_port_world(), other, i < SENDS ? OTHERS + i : WANTED, bytes, LEN, WEFT_RENDEZVOUS, &sends[i]), 0);
	if (first)
		say();
	hear();
	EXPECT(weft_req_wait(&sends[SENDS], SOON, NULL), 0);
	take_back(sends, SENDS);
	say();
}

/* A port of a context is closed while messages are kept back for it, and opened again: what is received there is asked for as before. */
static void reopen(bool first)
{
	struct weft_port_opts opts = { .size = sizeof(opts), .channel = "kept", .like = weft_port_world() };
	struct weft_status st = { 0 };
	struct weft_port *port = NULL;
	int r;

	EXPECT(weft_port_open(&opts, &port), 0);
	if (first) {
		hear();
		EXPECT(weft_port_close(port, SOON), 0);
		EXPECT(weft_port_open(&opts, &port), 0);
		EXPECT(weft_recv(port, other, WANTED, mem, LEN, SOON, &st), 0);
		EXPECT(st.len, LEN);
		say();
		hear();
	} else {
		for (uint32_t i = 0; i <= MANY; i++)
			EXPECT(weft_send_start(port, other, i < MANY ? OTHERS + i : WANTED, bytes, LEN, WEFT_RENDEZVOUS, &reqs[i]), 0);
		say();
		hear();
		EXPECT(weft_req_wait(&reqs[MANY], SOON, NULL), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			weft_req_cancel(reqs[i]);
			r = weft_req_wait(&reqs[i], SOON, NULL);
			EXPECT(r == -ECANCELED || r == -ECONNRESET || r == -ESRCH, 1);          /* some were there when it was closed */
		}
		say();
	}
	EXPECT(weft_port_close(port, SOON), 0);
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	bool first;

	if (!n || n >= sizeof(reqs) / sizeof(reqs[0]) || weft_init(NULL) < 0) {
		fprintf(stderr, "seek: %s\n", n ? weft_last_error() : "usage: seek RECEIVES");
		return 1;
	}
	first = getenv("WEFT_RANK")[0] == '0';
	other = weft_at(first);
	bytes[LEN - 1] = 99;
	for (int sent = 0; sent < 2 && !faults; sent++) {
		if (first)
			receive(n, sent);
		else
			send(sent);
	}
	if (!faults)
		reopen(first);
	if (first)
		printf("seek: %s\n", faults ? "failed" : "ok");
	return faults || weft_fini(SOON) < 0;
}
