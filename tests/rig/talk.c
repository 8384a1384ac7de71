/* talk.c - a process of a job on several hosts: everybody sends to everybody, for a while, and looks at every byte.
 *
 * usage: weft run --hosts ... talk MS [THREADS [PATIENCE_MS]]
 * Each thread of each process sends numbered messages of random lengths to the thread of the same number in every other process, by blocking
 * calls, requests and buffers, and receives from each in order. At the end each says how many it sent, and all must have come. Prints
 * `talk: N sent, M bytes` and exits with 0, or says what was wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define LARGEST (2u << 20)
#define MOST 64                         /* processes */
#define LAST (UINT64_C(1) << 62)

static uint32_t rank, size;
static weft_time until;
static int64_t patience = 20 * WEFT_S;  /* for whatever is waited for */
static weft_id ids[MOST][64];           /* threads of all */
static _Atomic uint64_t sent, bytes;
static _Atomic int failed;

struct talker {
	uint32_t number;
	uint64_t random;
	uint64_t next_out[MOST], next_in[MOST], last[MOST];
	unsigned char *in;
	struct weft_req *req[MOST];
	void *out[MOST];                /* what is being sent */
};

static void wrong(const char *what, uint32_t peer, int r)
{
	fprintf(stderr, "talk: process %u: %s %u: %d %s\n", rank, what, peer, r, weft_last_error());
	atomic_store(&failed, 1);
}

static uint64_t roll(struct talker *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

/* Bytes that tell who sent them, to whom, and which message it was. */
static unsigned char byte_at(uint32_t from, uint32_t to, uint64_t n, size_t i)
{
	return (unsigned char)((i * 131) ^ (i >> 8) ^ (n * 31) ^ (from * 17) ^ to);
}

static size_t some_length(struct talker *t)
{
	switch (roll(t) % 8) {
	case 0: return roll(t) % LARGEST;
	case 1: return roll(t) % 100000;
	case 2: case 3: return roll(t) % 9000;
	default: return roll(t) % 200;
	}
}

static void fill(struct talker *t, uint32_t to, unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(rank, to, t->next_out[to], i);
}

static void send_one(struct talker *t, uint32_t to, uint64_t tag, size_t len)
{
	struct weft_op op = { .size = sizeof(op), .peer = ids[to][t->number], .tag = tag };
	int r;

	if (roll(t) % 4 == 0 && weft_buf_get(len, 0, &op.buf) == 0) {
		fill(t, to, op.buf->data, len);
	} else {
		op.data = t->out[to] = malloc(len + 1);
		op.len = len;
		fill(t, to, op.data, len);
	}
	if (roll(t) % 4 == 0)
		op.flags = roll(t) % 2 ? WEFT_SYNC : WEFT_RENDEZVOUS;
	r = weft_send_post(NULL, &op, &t->req[to]);
	if (r < 0) {
		wrong("a send to", to, r);
		return;
	}
	t->next_out[to]++;
	atomic_fetch_add(&sent, 1);
	atomic_fetch_add(&bytes, len);
}

static void end_sends(struct talker *t)
{
	for (uint32_t to = 0; to < size; to++) {
		struct weft_status st;
		int r = t->req[to] ? weft_req_wait(&t->req[to], weft_in(patience), &st) : 0;

		if (r < 0)
			wrong("the end of a send to", to, r);
		free(t->out[to]);
		t->out[to] = NULL;
	}
}

static void got(struct talker *t, uint32_t from, const struct weft_status *st, const unsigned char *p)
{
	if (st->tag & LAST) {
		t->last[from] = st->tag;
		if ((st->tag & ~LAST) != t->next_in[from])
			wrong("messages are missing from", from, (int)t->next_in[from]);
		return;
	}
	if (st->tag != t->next_in[from])
		wrong("out of order from", from, (int)st->tag);
	for (size_t i = 0; i < st->len; i++)
		if (p[i] != byte_at(from, rank, st->tag, i)) {
			wrong("wrong bytes from", from, (int)i);
			break;
		}
	t->next_in[from]++;
}

/* The next of each, half of them by a posted receive. */
static void receive_all(struct talker *t)
{
	for (uint32_t from = 0; from < size && !atomic_load(&failed); from++) {
		struct weft_status st;
		struct weft_req *req = NULL;
		int r;

		if (from == rank || t->last[from])
			continue;
		if (roll(t) % 2) {
			r = weft_recv(NULL, ids[from][t->number], WEFT_ANY_TAG, t->in, LARGEST, weft_in(patience), &st);
		} else {
			r = weft_recv_post(NULL, WEFT(op, .peer = ids[from][t->number], .tag = WEFT_ANY_TAG, .data = t->in, .len = LARGEST), &req, &st);
			if (r == 0)
				r = weft_req_wait(&req, weft_in(patience), &st);
		}
		if (r < 0)
			wrong("a receive from", from, r);
		else
			got(t, from, &st, t->in);
	}
}

static void *talk(void *arg)
{
	struct talker *t = arg;
	bool more = true;

	t->in = malloc(LARGEST);
	t->random = (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + t->number * 77 + 1;
	while (more && !atomic_load(&failed)) {
		more = weft_now() < until;
		for (uint32_t i = 1; i < size; i++) {
			uint32_t to = (rank + i) % size;

			send_one(t, to, more ? t->next_out[to] : LAST | t->next_out[to], more ? some_length(t) : 0);
		}
		receive_all(t);
		if (!atomic_load(&failed))
			end_sends(t);
	}
	for (bool left = true; left && !atomic_load(&failed);) {
		left = false;
		for (uint32_t i = 0; i < size; i++)
			left |= i != rank && !t->last[i];
		if (left)
			receive_all(t);
	}
	free(t->in);
	return NULL;
}

static pthread_barrier_t named, told;
static struct talker talkers[64];

static void *thread(void *arg)
{
	struct talker *t = arg;

	ids[rank][t->number] = weft_self();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	talk(t);
	return NULL;
}

/* Each tells each who its threads are; at the end, that it has everything. */
static int meet(uint64_t tag, uint32_t threads)
{
	struct weft_port *world = weft_port_world();
	struct weft_status st;
	int r = 0;

	for (uint32_t i = 0; i < size && r == 0; i++)
		if (i != rank)
			r = weft_send(world, weft_at(i), tag, ids[rank], threads * sizeof(weft_id), weft_in(patience));
	for (uint32_t i = 0; i < size && r == 0; i++)
		if (i != rank)
			r = weft_recv(world, weft_at(i), tag, ids[i], sizeof(ids[i]), weft_in(patience), &st);
	return r;
}

int main(int argc, char **argv)
{
	uint32_t threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	pthread_t of[64];
	int r = weft_init(NULL);

	if (r < 0 || argc < 2 || threads > 64 || !getenv("WEFT_SIZE"))
		return fprintf(stderr, "talk: %s\n", r < 0 ? weft_last_error() : "usage: weft run --hosts ... talk MS [THREADS [PATIENCE_MS]]"), 2;
	rank = (uint32_t)atoi(getenv("WEFT_RANK"));
	size = (uint32_t)atoi(getenv("WEFT_SIZE"));
	if (argc > 3)
		patience = atoi(argv[3]) * WEFT_MS;
	pthread_barrier_init(&named, NULL, threads + 1);
	pthread_barrier_init(&told, NULL, threads + 1);
	for (uint32_t i = 0; i < threads; i++) {
		talkers[i].number = i;
		if (pthread_create(&of[i], NULL, thread, &talkers[i]))
			return 2;
	}
	pthread_barrier_wait(&named);
	r = meet(1, threads);
	if (r < 0)
		return fprintf(stderr, "talk: process %u meets not: %d %s\n", rank, r, weft_last_error()), 1;
	until = weft_in(atoi(argv[1]) * WEFT_MS);
	pthread_barrier_wait(&told);
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(of[i], NULL);
	if (!atomic_load(&failed) && (r = meet(2, threads)) < 0)
		wrong("the end with", size, r);
	r = weft_fini(weft_in(5 * WEFT_S));
	printf("talk: %llu sent, %llu bytes, fini %d\n", (unsigned long long)sent, (unsigned long long)bytes, r);
	return atomic_load(&failed);
}
