/* haul.c - two processes of a job on two hosts: much goes from the first to the second, every byte of it is looked at, and beside it a short message goes to and fro.
 *
 * usage: weft run --hosts ... haul BYTES COUNT [MS]
 * COUNT messages of BYTES, two of them posted at a time; with MS as many as it takes for so long, and COUNT is a bound. The second process prints
 * `haul: N messages, M ms, longest wait W ms, longest answer A ms`: between two messages, and between a short one and its answer; then `rates` in MB/s, by tenths of a second.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

#define AHEAD 2u
#define SLICE (100 * WEFT_MS)
#define SLICES 600u
#define ASK_EVERY (1000 * 1000)         /* ns */

enum { DATA = 1, LAST, ASK, NAME };

static size_t bytes;
static uint64_t count;
static int64_t period;
static uint64_t *data[AHEAD];
static _Atomic bool over;
static int64_t longest_answer;

static uint64_t word(uint64_t n, uint64_t i)
{
	return (n << 40 ^ i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(uint64_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		p[i] = word(n, i);
}

static bool right(const uint64_t *p, uint64_t n)
{
	uint64_t other = 0;

	for (uint64_t i = 0; i < bytes / 8; i++)
		other |= p[i] ^ word(n, i);
	return !other;
}

/* Process 0, to @to. */
static void send_all(weft_id to)
{
	weft_time began = weft_now(), until = period ? weft_in(period) : WEFT_FOREVER;
	struct weft_req *req[AHEAD] = { NULL };
	uint64_t n;

	for (n = 0; n < count && weft_now() < until && !faults; n++) {
		struct weft_req **r = &req[n % AHEAD];

		if (*r)
			EXPECT(weft_req_wait(r, SOON, NULL), 0);
		fill(data[n % AHEAD], n);
		EXPECT(weft_send_start(weft_port_world(), to, DATA, data[n % AHEAD], bytes, WEFT_SYNC, r) >= 0, 1);
	}
	for (uint32_t i = 0; i < AHEAD; i++)
		if (req[i])
			EXPECT(weft_req_wait(&req[i], SOON, NULL), 0);
	printf("haul: sent %.1f MB/s\n", (double)(n * bytes) / 1e6 / ((double)(weft_now() - began) / 1e9));
	EXPECT(weft_send(weft_port_world(), to, LAST, NULL, 0, SOON), 0);
}

/* What came when, and how long nothing did. */
struct log {
	weft_time began, last;
	int64_t longest;
	uint64_t n, slices[SLICES];
};

static void note(struct log *log, weft_time now)
{
	if (!log->n++)
		log->began = log->last = now;
	if (now - log->last > log->longest)
		log->longest = now - log->last;
	log->last = now;
	if ((now - log->began) / SLICE < SLICES)
		log->slices[(now - log->began) / SLICE] += bytes;
}

static void tell(const struct log *log)
{
	int64_t all = log->last - log->began;

	printf("haul: %llu messages, %lld ms, longest wait %lld ms, longest answer %lld ms\nrates", (unsigned long long)log->n, (long long)(all / WEFT_MS), (long long)(log->longest / WEFT_MS),
	       (long long)(longest_answer / WEFT_MS));
	for (int64_t i = 0; i <= all / SLICE && i < SLICES; i++)
		printf(" %.0f", (double)log->slices[i] / 1e6 / ((double)SLICE / 1e9));
	printf("\n");
}

/* A receive that is under way, or over: then without a request. */
static struct {
	struct weft_req *req;
	struct weft_status st;
} posted[AHEAD];

static void post(weft_id from, uint32_t i)
{
	struct weft_op op = { .size = sizeof(op), .peer = from, .tag = WEFT_ANY_TAG, .data = data[i], .len = bytes };

	EXPECT(weft_recv_post(weft_port_world(), &op, &posted[i].req, &posted[i].st) >= 0, 1);
}

/* Process 1. Receives are posted ahead; what is behind the last message ends the first of them. */
static void receive_all(weft_id from)
{
	static struct log log;

	for (uint32_t i = 0; i < AHEAD; i++)
		post(from, i);
	for (uint64_t n = 0; !faults; n++) {
		uint32_t i = n % AHEAD;

		if (posted[i].req)
			EXPECT(weft_req_wait(&posted[i].req, SOON, &posted[i].st), 0);
		if (posted[i].st.tag != DATA)
			break;
		note(&log, weft_now());
		EXPECT(posted[i].st.len, bytes);
		EXPECT(right(data[i], n), 1);
		post(from, i);
	}
	for (uint32_t i = 0; i < AHEAD; i++)
		if (posted[i].req)
			EXPECT(weft_req_cancel(posted[i].req), 0);
	over = true;
	tell(&log);
}

static pthread_barrier_t named, told;
static weft_id me, other;               /* the threads that ask and answer */

/* A thread of process 1 asks, one of process 0 answers, until all is hauled. */
static void *ask(void *rank)
{
	uint64_t n = 0, answer;
	struct weft_status st = { 0 };

	me = weft_self();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	while (!rank && st.tag != LAST && !faults) {
		EXPECT(weft_recv(NULL, other, WEFT_ANY_TAG, &answer, sizeof(answer), SOON, &st), 0);
		if (st.tag == ASK)
			EXPECT(weft_send(NULL, other, ASK, &answer, sizeof(answer), SOON), 0);
	}
	while (rank && !over && !faults) {
		weft_time asked = weft_now();

		EXPECT(weft_send(NULL, other, ASK, &n, sizeof(n), SOON), 0);
		EXPECT(weft_recv(NULL, other, ASK, &answer, sizeof(answer), SOON, NULL), 0);
		EXPECT(answer, n++);
		if (weft_now() - asked > longest_answer)
			longest_answer = weft_now() - asked;
		nanosleep(&(struct timespec){ .tv_nsec = ASK_EVERY }, NULL);
	}
	if (rank)
		EXPECT(weft_send(NULL, other, LAST, NULL, 0, SOON), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	struct weft_port_info info = { .size = sizeof(info) };
	pthread_t thread;
	weft_id mate;

	if (argc < 3 || weft_init(NULL) < 0 || weft_port_stat(weft_port_world(), &info) < 0 || info.count != 2) {
		fprintf(stderr, "haul: %s\n", argc < 3 ? "haul BYTES COUNT [MS]" : weft_last_error());
		return 1;
	}
	bytes = strtoull(argv[1], NULL, 10) & ~(size_t)7;
	count = strtoull(argv[2], NULL, 10);
	period = argc > 3 ? strtoll(argv[3], NULL, 10) * WEFT_MS : 0;
	mate = weft_at(!info.index);
	for (uint32_t i = 0; i < AHEAD; i++)
		data[i] = calloc(1, bytes);
	pthread_barrier_init(&named, NULL, 2);
	pthread_barrier_init(&told, NULL, 2);
	pthread_create(&thread, NULL, ask, info.index ? &thread : NULL);
	pthread_barrier_wait(&named);
	EXPECT(weft_send(weft_port_world(), mate, NAME, &me, sizeof(me), SOON), 0);
	EXPECT(weft_recv(weft_port_world(), mate, NAME, &other, sizeof(other), SOON, NULL), 0);
	pthread_barrier_wait(&told);
	if (info.index)
		receive_all(mate);
	else
		send_all(mate);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < AHEAD; i++)
		free(data[i]);
	EXPECT(weft_fini(SOON), 0);
	return faults != 0;
}
