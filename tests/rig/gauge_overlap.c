/* gauge_overlap.c - does a message go on while its sender or its receiver computes?
 *
 *   overlap MS SIDE      side 0: the sender computes, 1: the receiver does, 2: both
 *   left MS N            the sender posts, N times each length, and has nothing to do with weft for MS: when did it come? Both are of one clock
 *
 * For each length: the time of a transfer, the time of a computation about as long, and of both at once; then 1 - (both - the longer) / the
 * shorter, which is 1 if one hides the other and 0 if they follow one another. Medians. Each round begins with a word from the receiver, whose
 * receive is posted. The send is done when it was received: else a short one's transfer would be the copy that the call makes, which nothing can hide.
 * Last, both once more where the two have been busy with one another for a while: weft's own threads have kept out of the way, and are to find out that somebody computes now.
 */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gauge.h"

#define LEAST (64u << 10)
#define MOST (16u << 20)
#define ROUNDS 15
#define CHAT (50 * WEFT_MS)

enum { TRANSFER, COMPUTE, BOTH, AFTER };

static volatile uint64_t sink;
static char *data;

static void compute(uint64_t turns)
{
	uint64_t x = turns;

	while (turns--)
		x = x * UINT64_C(6364136223846793005) + 1;
	sink = x;
}

static double turns_in(weft_time *ret_took, uint64_t turns)
{
	weft_time from = weft_now();

	compute(turns);
	*ret_took = weft_now() - from;
	return (double)turns / (double)*ret_took;
}

/* Turns in a nanosecond: the best of some, as whatever disturbs makes them fewer. */
static double speed(void)
{
	double best = 0;
	weft_time took;

	for (int i = 0; i < 10; i++) {
		double now = turns_in(&took, 2000000);

		best = now > best ? now : best;
	}
	return best;
}

/* Words to and fro for a while. */
static void chat(void)
{
	weft_time end = weft_now() + CHAT;
	uint32_t more = 1;

	while (more) {
		if (rank == 0) {
			more = weft_now() < end;
			must(weft_send(NULL, ids[1][0], 3, &more, sizeof(more), WEFT_FOREVER), "to chat");
		}
		must(weft_recv(NULL, ids[!rank][0], 3, &more, sizeof(more), WEFT_FOREVER, NULL), "to chat");
		if (rank == 1)
			must(weft_send(NULL, ids[0][0], 3, &more, sizeof(more), WEFT_FOREVER), "to chat");
	}
}

/* One round as its sender or receiver: how long it took here. */
static double round_of(size_t len, int what, uint64_t turns)
{
	struct weft_op op = { .size = sizeof(op), .peer = ids[!rank][0], .tag = 1, .data = data, .len = len, .flags = rank == 0 ? WEFT_SYNC : 0 };
	bool computes = arg == 2 || arg == (int)rank;
	struct weft_req *req = NULL;
	struct weft_status st;
	weft_time from;
	int r = 0;

	if (what == COMPUTE) {
		turns_in(&from, computes ? turns : 0);
		return (double)from;
	}
	if (what == AFTER)
		chat();
	if (rank == 0)
		must(weft_recv(NULL, op.peer, 2, NULL, 0, WEFT_FOREVER, NULL), "to begin");
	from = weft_now();
	if (rank == 0) {
		r = weft_send_post(NULL, &op, &req);
	} else {
		r = weft_recv_post(NULL, &op, &req, &st);
		must(weft_send(NULL, op.peer, 2, NULL, 0, WEFT_FOREVER), "to begin");
	}
	must(r, "to post");
	if (what >= BOTH && computes)
		compute(turns);
	if (r == 0)
		must(weft_req_wait(&req, WEFT_FOREVER, &st), "to transfer");
	return (double)(weft_now() - from);
}

static double median_of(size_t len, int what, uint64_t turns)
{
	double took[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		took[i] = round_of(len, what, turns);
	return part_of(took, ROUNDS, 50);
}

/* The core of @all that is number @want, of those there are. */
static cpu_set_t core(const cpu_set_t *all, uint32_t want)
{
	uint32_t n = 0;
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && n++ == want % (uint32_t)CPU_COUNT(all))
			CPU_SET(i, &one);
	return one;
}

/* Two hosts share no core, and these do: who sends a packet would wake who waits for it on his own core, and then compute there. So each thread that computes has a core of its own; and those of weft
 * another one, as a host has: what they do cannot be hidden on the core that computes. */
static void own_core(void)
{
	cpu_set_t all, mine, others;
	DIR *d = opendir("/proc/self/task");
	int self = (int)syscall(SYS_gettid);

	must(d && sched_getaffinity(0, sizeof(all), &all) == 0 ? 0 : -1, "to find out where this runs");
	mine = core(&all, rank);
	others = core(&all, rank + 1);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (atoi(e->d_name) && atoi(e->d_name) != self)
			sched_setaffinity(atoi(e->d_name), sizeof(others), &others);
	sched_setaffinity(0, sizeof(mine), &mine);
	closedir(d);
}

void gauge_overlap(uint32_t thread)
{
	double per_ns;

	if (thread)
		return;
	own_core();
	data = calloc(1, MOST);
	per_ns = speed();
	for (size_t len = LEAST; len <= MOST; len *= 4) {
		double transfer, alone, both, after, longer, shorter;
		uint64_t turns;

		median_of(len, TRANSFER, 0);            /* all is warm */
		transfer = median_of(len, TRANSFER, 0);
		turns = (uint64_t)(transfer * per_ns);
		alone = median_of(len, COMPUTE, turns);
		both = median_of(len, BOTH, turns);
		after = median_of(len, AFTER, turns);
		longer = transfer > alone ? transfer : alone;
		shorter = transfer > alone ? alone : transfer;
		if (arg == 2 || arg == (int)rank)
			say("overlap %zu: transfer %.0f compute %.0f both %.0f us: %.2f, after a chat %.0f", len, transfer / 1e3, alone / 1e3, both / 1e3,
			    1 - (both - longer) / shorter, after / 1e3);
	}
	free(data);
}

void gauge_left(uint32_t thread)
{
	static const size_t lengths[] = { 4096, 64u << 10, 1u << 20 };
	struct timespec away = { .tv_sec = period / WEFT_S, .tv_nsec = period % WEFT_S };

	if (thread)
		return;
	own_core();
	data = calloc(1, lengths[2]);
	for (int i = 0; i < 3 * arg; i++) {
		struct weft_op op = { .size = sizeof(op), .peer = ids[!rank][0], .tag = 1, .data = data, .len = lengths[i % 3] };
		struct weft_req *req = NULL;
		weft_time back;
		int r;

		if (rank == 0) {
			must(weft_recv(NULL, op.peer, 2, NULL, 0, WEFT_FOREVER, NULL), "to begin");
			r = weft_send_post(NULL, &op, &req);
			must(r, "to post");
			nanosleep(&away, NULL);
			back = weft_now();
			if (r == 0)
				must(weft_req_wait(&req, WEFT_FOREVER, NULL), "to send");
			say("left %d %zu back %lld", i, op.len, (long long)back);
		} else {
			must(weft_send(NULL, op.peer, 2, NULL, 0, WEFT_FOREVER), "to begin");
			must(weft_recv(NULL, op.peer, 1, data, op.len, WEFT_FOREVER, NULL), "to receive");
			say("left %d %zu came %lld", i, op.len, (long long)weft_now());
		}
	}
	free(data);
}
