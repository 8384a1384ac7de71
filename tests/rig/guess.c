/* guess.c - messages of some kilobytes are read to where they are expected before they are known. usage: weft run --hosts A:1,B:1 ... guess ROUNDS
 *
 * Process 0 asks for messages that are all alike and waits for each, then for something else: another tag first, a shorter one, one that is too long, one that is short, two at
 * once, one behind a large one, one for another port, one of its own process, none, or one that is not waited for. Whatever comes, its memory has that message and behind it what was there before; or what was there before.
 * Says "guess: ok" and exits 0.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "expect.h"

enum { SAME, OTHER_TAG, SHORTER, TOO_LONG, SHORT, TWO, BEHIND_LARGE, ELSEWHERE, LOCAL, NONE, ASIDE, BESIDE_SHORT, KINDS, END };
enum { ASK = 1, THIS, THAT };
enum { LARGE = 70000, MOST = 65536 };

struct asked {
	uint32_t kind, len;
	weft_id to;
	uint64_t number;
};

static unsigned char mem[MOST], before[MOST], large[LARGE];
static uint64_t numbers;

static void fill(unsigned char *p, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (unsigned char)(number * 37 + i * 11 + (i >> 8));
}

/* ---- process 1 ---- */

static void say(weft_id to, uint64_t tag, size_t len, uint64_t number)
{
	static unsigned char bytes[LARGE];

	fill(bytes, len, number);
	if (to)
		EXPECT(weft_send(NULL, to, tag, bytes, len, SOON), 0);
	else
		EXPECT(weft_send(weft_port_world(), weft_at(0), tag, bytes, len, SOON), 0);
	memset(bytes, 0, len);          /* ours again */
}

static void answer(const struct asked *a)
{
	struct weft_op op = { .size = sizeof(op), .tag = THAT, .data = large, .len = LARGE };
	struct weft_req *req = NULL;

	switch (a->kind) {
	case OTHER_TAG:
	case BESIDE_SHORT:
		say(a->to, THAT, a->len, a->number + 1);
		break;
	case ASIDE:
		say(a->to, THAT, a->len, a->number + 1);
		return;
	case TWO:
		say(a->to, THIS, a->len, a->number);
		say(a->to, THIS, a->len, a->number + 1);
		return;
	case BEHIND_LARGE:              /* by a request: it may have to wait for its receive, which comes last */
		fill(large, LARGE, a->number + 1);
		op.peer = a->to;
		EXPECT(weft_send_post(NULL, &op, &req) < 0, 0);
		break;
	case ELSEWHERE:
		say(0, THIS, a->len, a->number + 1);
		break;
	case NONE:
		return;
	}
	say(a->to, THIS, a->kind == SHORTER ? a->len - a->number % 100 : a->kind == TOO_LONG ? a->len + 1 : a->kind == SHORT || a->kind == BESIDE_SHORT ? 8 : a->len, a->number);
	if (req)
		EXPECT(weft_req_wait(&req, SOON, NULL), 0);
}

/* ---- process 0 ---- */

/* Into the first @room bytes of our memory, whose contents nobody else knows. */
static int get_at(struct weft_port *at, uint64_t tag, size_t room, weft_time until, struct weft_status *ret_st)
{
	fill(before, MOST, ++numbers * 5);
	memcpy(mem, before, MOST);
	return weft_recv(at, WEFT_ANY, tag, mem, room, until, ret_st);
}

static void kept(size_t from)
{
	EXPECT(memcmp(mem + from, before + from, MOST - from), 0);
}

static void get(struct weft_port *at, uint64_t tag, size_t room, size_t len, uint64_t number)
{
	static unsigned char right[MOST];
	struct weft_status st;

	EXPECT(get_at(at, tag, room, SOON, &st), room < len ? -EMSGSIZE : 0);
	EXPECT(st.len, len);
	EXPECT(st.tag, tag);
	kept(room < len ? room : len);
	fill(right, len < MOST ? len : MOST, number);
	if (room >= len)
		EXPECT(memcmp(mem, right, len), 0);
}

static void get_large(uint64_t number)
{
	static unsigned char right[LARGE];

	fill(right, LARGE, number);
	EXPECT(weft_recv(NULL, WEFT_ANY, THAT, large, LARGE, SOON, NULL), 0);
	EXPECT(memcmp(large, right, LARGE), 0);
}

static void *say_here(void *arg)
{
	const struct asked *a = arg;

	say(a->to, THIS, a->len, a->number);
	return NULL;
}

/* One comes from a thread of this process, one from the other: either may be the first. */
static void get_both(struct asked *a, size_t room)
{
	static unsigned char right[MOST];
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, say_here, a), 0);
	fill(right, a->len, a->number);
	for (int i = 0; i < 2; i++) {
		EXPECT(get_at(NULL, THIS, room, SOON, NULL), 0);
		EXPECT(memcmp(mem, right, a->len), 0);
		kept(a->len);
	}
	EXPECT(pthread_join(thread, NULL), 0);
}

static void ask(uint32_t kind, uint32_t len, size_t room)
{
	struct asked a = { .kind = kind, .len = len, .to = weft_self(), .number = numbers += 3 };

	EXPECT(weft_send(weft_port_world(), weft_at(1), ASK, &a, sizeof(a), SOON), 0);
	switch (kind) {
	case OTHER_TAG:
		get(NULL, THIS, room, len, a.number);
		get(NULL, THAT, room, len, a.number + 1);
		break;
	case SHORTER:
		get(NULL, THIS, room, len - a.number % 100, a.number);
		break;
	case TOO_LONG:
		get(NULL, THIS, len, len + 1, a.number);
		if (len < MOST)
			get(NULL, THIS, MOST, len + 1, a.number);
		else
			EXPECT(weft_recv(NULL, WEFT_ANY, THIS, large, LARGE, SOON, NULL), 0);
		break;
	case SHORT:
		get(NULL, THIS, room, 8, a.number);
		break;
	case BESIDE_SHORT:
		get(NULL, THIS, room, 8, a.number);
		get(NULL, THAT, room, len, a.number + 1);
		break;
	case ASIDE:
		EXPECT(get_at(NULL, THIS, room, weft_in(WEFT_MS), NULL), -ETIMEDOUT);
		kept(0);
		get(NULL, THAT, room, len, a.number + 1);
		break;
	case TWO:
		get(NULL, THIS, room, len, a.number);
		get(NULL, THIS, room, len, a.number + 1);
		break;
	case BEHIND_LARGE:
		get(NULL, THIS, room, len, a.number);
		get_large(a.number + 1);
		break;
	case ELSEWHERE:
		get(NULL, THIS, room, len, a.number);
		get(weft_port_world(), THIS, room, len, a.number + 1);
		break;
	case LOCAL:
		get_both(&a, room);
		break;
	case END:
		break;
	case NONE:
		EXPECT(get_at(NULL, THIS, room, weft_in(WEFT_MS / 5), NULL), -ETIMEDOUT);
		kept(0);
		break;
	default:
		get(NULL, THIS, room, len, a.number);
	}
}

static void answer_all(void)
{
	struct asked a = { .kind = SAME };

	while (!faults) {
		EXPECT(weft_recv(weft_port_world(), weft_at(0), ASK, &a, sizeof(a), SOON, NULL), 0);
		if (a.kind == END)
			return;
		answer(&a);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t lengths[] = { 4097, 5000, 16384, 40000, 65535, 65536 };
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;

	if (!rounds || weft_init(NULL) < 0) {
		fprintf(stderr, "guess: %s\n", rounds ? weft_last_error() : "usage: guess ROUNDS");
		return 1;
	}
	if (atoi(getenv("WEFT_RANK")) == 1) {
		answer_all();
	} else {
		for (uint32_t i = 0; i < rounds * KINDS && !faults; i++) {
			uint32_t len = lengths[i / KINDS % (sizeof(lengths) / sizeof(lengths[0]))];
			size_t room = i % 3 ? len : MOST;

			for (uint32_t k = 0; k < 4 + i % 40 && !faults; k++)
				ask(SAME, len, room);
			ask(i % KINDS, len, room);
		}
		ask(END, 0, 0);
		printf("guess: %s\n", faults ? "failed" : "ok");
	}
	return faults || weft_fini(SOON) < 0;
}
