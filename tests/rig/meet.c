/* meet.c - short messages of another host come while their receiver waits for them. usage: weft run --hosts A:1,B:1 ... meet ROUNDS
 *
 * Process 0 asks for a group of messages and waits for one of them at once: its only one, the second of two, one that is too long for the memory, and has one behind it that is not, one that comes before or behind a large one;
 * then for the others. At its thread's own port and at the world's, with memory of every length around those that take different ways. Some wait in vain, or are cancelled while
 * they wait. At last it receives from threads of
 * its own process and from process 1 at once: each one's in order. Says "meet: ok" and exits 0.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

#include "expect.h"

enum { ONE, BACKWARDS, TWO, TOO_LONG, LONGER_FIRST, BEFORE_LARGE, BEHIND_LARGE, ANYBODY, GROUPS, KEPT = GROUPS, END };
enum { ASK = 1, FIRST, SECOND, LARGE, NUMBER };
enum { NEIGHBOURS = 5, LONGEST = 4200, LARGE_BYTES = 70000, MANY = 300 };       /* more than are announced to one port */

struct asked {
	uint32_t group, len;
	weft_id to;                     /* 0: at the world's port */
};

static unsigned char mem[LARGE_BYTES], bytes[LARGE_BYTES];

/* ---- process 1 ---- */

static void say(const struct asked *a, uint64_t tag, size_t len)
{
	bytes[0] = (unsigned char)tag;
	EXPECT(a->to ? weft_send(NULL, a->to, tag, bytes, len, SOON) : weft_send(weft_port_world(), weft_at(0), tag, bytes, len, SOON), 0);
}

static void answer(const struct asked *a)
{
	static unsigned char large[LARGE_BYTES];
	struct weft_req *req = NULL;
	struct weft_op op = { .size = sizeof(op), .peer = a->to ? a->to : weft_at(0), .tag = LARGE, .data = large, .len = LARGE_BYTES };

	switch (a->group) {
	case BACKWARDS:
		say(a, SECOND, a->len);
		break;
	case TWO:
	case BEFORE_LARGE:
		say(a, FIRST, a->len);
		break;
	case LONGER_FIRST:
		say(a, FIRST, a->len + 1);
		break;
	case BEHIND_LARGE:              /* by a request: it may have to wait for its receive, which comes last */
		memcpy(large, bytes, LARGE_BYTES);
		large[0] = LARGE;
		EXPECT(weft_send_post(a->to ? NULL : weft_port_world(), &op, &req) < 0, 0);
		break;
	}
	say(a, a->group == BEFORE_LARGE ? LARGE : FIRST, a->group == BEFORE_LARGE ? LARGE_BYTES : a->len);
	if (req)
		EXPECT(weft_req_wait(&req, SOON, NULL), 0);
}

/* So many large ones that the last of them, and what follows, are kept here until they are asked for. */
static void answer_kept(const struct asked *a)
{
	struct weft_op op = { .size = sizeof(op), .peer = a->to, .tag = LARGE, .data = bytes, .len = LARGE_BYTES, .flags = WEFT_RENDEZVOUS };
	struct weft_req *req[MANY + 1];

	for (int i = 0; i <= MANY; i++) {
		if (i == MANY) {
			op.tag = FIRST;
			op.len = a->len;
			op.flags = 0;
		}
		req[i] = NULL;
		EXPECT(weft_send_post(NULL, &op, &req[i]) < 0, 0);
	}
	for (int i = 0; i <= MANY; i++)
		if (req[i])
			EXPECT(weft_req_wait(&req[i], SOON, NULL), 0);
}

static void answer_all(void)
{
	struct asked a;

	for (;;) {
		EXPECT(weft_recv(weft_port_world(), weft_at(0), ASK, &a, sizeof(a), SOON, NULL), 0);
		if (faults || a.group == END)
			break;
		if (a.group == KEPT)
			answer_kept(&a);
		else
			answer(&a);
	}
	for (uint64_t i = 0; i < a.len && !faults; i++)
		EXPECT(weft_send(NULL, a.to, NUMBER, &i, sizeof(i), SOON), 0);
}

/* ---- process 0 ---- */

static void get(const struct asked *a, uint64_t tag, size_t room, size_t len)
{
	struct weft_port *at = a->to ? NULL : weft_port_world();
	weft_id from = a->group == ANYBODY ? WEFT_ANY : a->to ? a->to : weft_at(1);
	struct weft_status st;

	if (from == a->to)
		from = WEFT_ANY;        /* the other's thread is not known by name */
	memset(mem, 0xee, room);
	EXPECT(weft_recv(at, from, tag, mem, room, SOON, &st), room < len ? -EMSGSIZE : 0);
	EXPECT(st.len, len);
	EXPECT(st.tag, tag);
	if (room < len)
		return;
	bytes[0] = (unsigned char)tag;
	EXPECT(len ? memcmp(mem, bytes, len) : 0, 0);
}

static void ask(const struct asked *a)
{
	EXPECT(weft_send(weft_port_world(), weft_at(1), ASK, a, sizeof(*a), SOON), 0);
	switch (a->group) {
	case BACKWARDS:
		get(a, FIRST, a->len, a->len);
		get(a, SECOND, a->len, a->len);
		break;
	case TWO:
		get(a, FIRST, a->len, a->len);
		get(a, FIRST, LONGEST, a->len);
		break;
	case TOO_LONG:
		if (a->len)
			get(a, FIRST, a->len - 1, a->len);
		get(a, FIRST, a->len, a->len);
		break;
	case LONGER_FIRST:
		get(a, FIRST, a->len, a->len + 1);
		get(a, FIRST, a->len + 1, a->len + 1);
		get(a, FIRST, a->len, a->len);
		break;
	case BEFORE_LARGE:
	case BEHIND_LARGE:
		get(a, FIRST, a->len, a->len);
		get(a, LARGE, LARGE_BYTES, LARGE_BYTES);
		break;
	default:
		get(a, FIRST, a->len + 1, a->len);
	}
}

/* One that gives up gets nothing later, and what comes then is for the next. */
static void in_vain(void)
{
	unsigned char early[8];

	memset(early, 0xee, sizeof(early));
	EXPECT(weft_recv(NULL, WEFT_ANY, FIRST, early, sizeof(early), weft_in(2 * WEFT_MS), NULL), -ETIMEDOUT);
	ask(&(struct asked){ .group = ONE, .len = 8, .to = weft_self() });
	for (size_t i = 0; i < sizeof(early); i++)
		EXPECT(early[i], 0xee);
}

static void *wait_for_ever(void *arg)
{
	unsigned char room[8];

	(void)arg;
	weft_recv(NULL, WEFT_ANY, FIRST, room, sizeof(room), WEFT_FOREVER, NULL);
	return NULL;
}

/* A thread that is cancelled while it waits at the rails leaves them to others. */
static void cancelled(void)
{
	void *end = NULL;
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	EXPECT(pthread_cancel(thread), 0);
	EXPECT(pthread_join(thread, &end), 0);
	EXPECT(end == PTHREAD_CANCELED, 1);
	ask(&(struct asked){ .group = TWO, .len = 8, .to = weft_self() });
}

static _Atomic bool looks;

static void *look(void *arg)
{
	(void)arg;
	while (looks)
		weft_poll(WEFT_NOW);
	return NULL;
}

/* Another thread reads what comes from the other host while we wait for one that its sender keeps behind many. */
static void kept(void)
{
	struct asked a = { .group = KEPT, .len = 8, .to = weft_self() };
	pthread_t thread;

	looks = true;
	EXPECT(pthread_create(&thread, NULL, look, NULL), 0);
	EXPECT(weft_send(weft_port_world(), weft_at(1), ASK, &a, sizeof(a), SOON), 0);
	EXPECT(weft_recv(NULL, WEFT_ANY, FIRST, mem, 8, SOON, NULL), 0);
	for (int i = 0; i < MANY && !faults; i++)
		EXPECT(weft_recv(NULL, WEFT_ANY, LARGE, mem, LARGE_BYTES, SOON, NULL), 0);
	looks = false;
	EXPECT(pthread_join(thread, NULL), 0);
}

struct neighbour {
	weft_id to;
	uint64_t count;
};

static void *count_up(void *arg)
{
	struct neighbour *n = arg;

	for (uint64_t i = 0; i < n->count; i++)
		if (weft_send(NULL, n->to, NUMBER, &i, sizeof(i), SOON) < 0)
			break;
	return NULL;
}

/* More threads than cores: some are preempted between a claim to a place in the mailbox and the message in it, and others' messages stand behind that. */
static void from_both(uint64_t count)
{
	struct asked a = { .group = END, .len = (uint32_t)count, .to = weft_self() };
	struct neighbour n = { weft_self(), count };
	uint64_t next[NEIGHBOURS + 1] = { 0 }, got;
	weft_id known[NEIGHBOURS + 1] = { 0 };
	pthread_t thread[NEIGHBOURS];
	struct weft_status st;

	for (int i = 0; i < NEIGHBOURS; i++)
		EXPECT(pthread_create(&thread[i], NULL, count_up, &n), 0);
	EXPECT(weft_send(weft_port_world(), weft_at(1), ASK, &a, sizeof(a), SOON), 0);
	for (uint64_t i = 0; i < (NEIGHBOURS + 1) * count && !faults; i++) {
		int who = 0;

		EXPECT(weft_recv(NULL, WEFT_ANY, NUMBER, &got, sizeof(got), SOON, &st), 0);
		while (who < NEIGHBOURS && known[who] && known[who] != st.from)
			who++;
		known[who] = st.from;
		EXPECT(got, next[who]++);
	}
	for (int i = 0; i < NEIGHBOURS; i++)
		EXPECT(pthread_join(thread[i], NULL), 0);
}

int main(int argc, char **argv)
{
	static const uint32_t lengths[] = { 0, 1, 8, 31, 96, 97, 128, 255, 256, 1000, 4095, 4096, 4097, LONGEST };
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;

	if (!rounds || weft_init(NULL) < 0) {
		fprintf(stderr, "meet: %s\n", rounds ? weft_last_error() : "usage: meet ROUNDS");
		return 1;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i ^ i >> 7);
	if (atoi(getenv("WEFT_RANK")) == 1) {
		answer_all();
	} else {
		for (uint32_t i = 0; i < rounds * GROUPS * 2 && !faults; i++)
			ask(&(struct asked){ .group = i / 2 % GROUPS, .len = lengths[i / (2 * GROUPS) % (sizeof(lengths) / sizeof(lengths[0]))], .to = i % 2 ? weft_self() : 0 });
		for (int i = 0; i < 5 && !faults; i++) {
			in_vain();
			cancelled();
			kept();
		}
		from_both(rounds * 10);
		printf("meet: %s\n", faults ? "failed" : "ok");
	}
	return faults || weft_fini(SOON) < 0;
}
