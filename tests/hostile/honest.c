/* honest.c - a process that does nothing wrong: some of its threads exchange checked messages with the other honest process,
 * one does its duty with the villain, whatever he answers.
 *
 * Among the honest every message is accounted for. With the villain a call may fail in any way; it must return in time, and
 * what it gives must be memory that can be used.
 */
#include "stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../chaos/payload.h"

#define LARGEST ((size_t)1 << 20)
#define IN_TIME (20 * WEFT_S)           /* between the honest, on a machine with more to do */
#define HELLO 1
#define LAST (UINT64_C(1) << 40)
#define WINDOW 4

static weft_id peers[PAIRS];            /* the other honest one's threads */
static pthread_barrier_t named, told;
static weft_id own[PAIRS];

static bool strict(void)
{
	return stage->mode == VILLAIN_LIES;
}

static size_t some_length(uint64_t *random)
{
	unsigned bits = (unsigned)(roll(random) % 21);

	return bits ? roll(random) % ((size_t)1 << bits) : 0;
}

/* Number @number to @peer, posted or not; the memory goes with the call, is read where it lies, or is waited for. 0: all is well. */
static int send_one(uint64_t *random, weft_id peer, uint64_t number, uint64_t tag)
{
	struct payload_name n = { .from = weft_self(), .to = peer, .number = number };
	struct weft_req *req = NULL;
	struct weft_buf *b = NULL;
	struct weft_status st;
	char *mem;
	int r;

	n.len = tag == LAST ? 0 : some_length(random);
	if (roll(random) % 3 == 0 && weft_buf_get(n.len, 0, &b) == 0) {
		payload_fill(b->data, &n);
		if (roll(random) % 2) {
			r = weft_send(NULL, peer, tag | number, b->data, n.len, weft_in(IN_TIME));
			weft_buf_put(b);
			return r;
		}
		r = weft_buf_send(NULL, peer, tag | number, b, weft_in(IN_TIME));
		if (r < 0)
			weft_buf_put(b);
		return r;
	}
	mem = malloc(n.len + 1);
	payload_fill(mem, &n);
	r = weft_send_post(NULL, WEFT(op, .peer = peer, .tag = tag | number, .data = mem, .len = n.len), &req);
	if (r == 0)
		r = weft_req_wait(&req, weft_in(IN_TIME), &st);
	r = r == WEFT_DONE ? 0 : r;
	if (req) {                      /* not over in time: nobody may write there any more */
		weft_req_cancel(req);
		weft_req_wait(&req, WEFT_FOREVER, &st);
	}
	free(mem);
	return r;
}

static int receive_one(uint64_t *random, weft_id peer, uint64_t number, char *room, bool *ret_last)
{
	struct payload_name n = { .from = peer, .to = weft_self(), .number = number };
	struct weft_buf *b = NULL;
	struct weft_status st;
	size_t wrong;
	int r;

	if (roll(random) % 2)
		r = weft_buf_recv(NULL, peer, WEFT_ANY_TAG, weft_in(IN_TIME), &b, &st);
	else
		r = weft_recv(NULL, peer, WEFT_ANY_TAG, room, LARGEST, weft_in(IN_TIME), &st);
	if (r < 0)
		return r;
	n.len = st.len;
	*ret_last = st.tag & LAST;
	if (st.from != peer || (st.tag & ~LAST) != number)
		r = -EBADMSG;
	else if ((wrong = payload_wrong(b ? b->data : room, &n)) < n.len)
		r = weft_fail(-EILSEQ, "byte %zu of %zu, %s", wrong, n.len, b ? "in a buffer" : "in memory");
	weft_buf_put(b);
	atomic_fetch_add(&mine->exchanged, 1);
	atomic_fetch_add(&mine->beat, 1);
	return r;
}

/* Rank 0 speaks first, a few at a time, and the other answers as many; until the time is over. */
static void converse(uint64_t random, weft_id peer)
{
	weft_time until = weft_in(stage->ms * WEFT_MS);
	char *room = malloc(LARGEST);
	uint64_t out = 0, in = 0;
	bool last = false, said = false;
	int r = 0;

	for (bool mine_to_say = rank == 0; !(said && last); mine_to_say = !mine_to_say) {
		for (int i = 0; i < WINDOW && r == 0; i++) {
			said = mine_to_say ? weft_now() > until || last : said;
			if (mine_to_say)
				r = send_one(&random, peer, out++, said ? LAST : 0);
			else
				r = receive_one(&random, peer, in++, room, &last);
			if (mine_to_say ? said : last)
				break;
		}
		if (r < 0)
			break;
	}
	if (r < 0 && strict())
		fault("%s number %llu: %d %s", r == -EBADMSG || r == -EILSEQ ? "wrong" : "no", (unsigned long long)(in + out), r,
		      weft_last_error());
	free(room);
}

static void *pair(void *arg)
{
	uintptr_t i = (uintptr_t)arg;

	own[i] = weft_self();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	converse(stage->seed + i, peers[i]);
	return NULL;
}

/* Everything a program may ask of the villain. Answers are taken as they come, memory is given back. */
static void deal_with_villain(uint64_t *random, weft_id villain, char *room)
{
	weft_time until = weft_in((int64_t)(roll(random) % 3) * WEFT_MS), before = weft_now();
	struct weft_req *req = NULL;
	struct weft_status st = { .err = 0 };
	struct weft_buf *b = NULL;
	size_t len = some_length(random);
	int r;

	switch (roll(random) % 7) {
	case 0:
		r = weft_send(NULL, villain, roll(random) % 8, room, len, until);
		break;
	case 1:
		if (weft_buf_get(len, 0, &b) < 0)
			return;
		r = weft_buf_send(NULL, villain, 1, b, until);
		if (r < 0)
			weft_buf_put(b);
		break;
	case 2:
		r = weft_recv(NULL, roll(random) % 2 ? villain : WEFT_ANY, WEFT_ANY_TAG, room, LARGEST, until, &st);
		break;
	case 3:
		r = weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, until, &b, &st);
		if (r == 0 && b) {
			volatile char *p = b->data;     /* it is there */

			for (size_t i = 0; i < b->len; i += 512)
				(void)p[i];
			weft_buf_put(b);
		}
		break;
	case 4:
		if (weft_buf_get(len, 0, &b) < 0)
			return;
		r = weft_send(NULL, villain, 1, b->data, len, until);
		weft_buf_put(b);
		break;
	default:
		r = weft_send_post(NULL, WEFT(op, .flags = roll(random) % 2 ? WEFT_SYNC : 0, .peer = villain, .tag = 2,
					      .data = room, .len = len), &req);
		if (r == 0 && weft_req_wait(&req, until, &st) == -ETIMEDOUT) {
			weft_req_cancel(req);
			weft_req_wait(&req, WEFT_FOREVER, &st);
		}
	}
	atomic_fetch_add(r < 0 ? &mine->refused : &mine->with_villain, 1);
	atomic_fetch_add(&mine->beat, 1);
	if (weft_now() - before > IN_TIME)
		fault("a call that was to take %lld ns took %lld", (long long)(until - before), (long long)(weft_now() - before));
}

static void *duty(void *arg)
{
	uint64_t random = stage->seed * 31 + rank;
	weft_time until = weft_in(stage->ms * WEFT_MS);
	char *room = calloc(1, LARGEST);

	atomic_store(&mine->duty, weft_self());
	while (weft_now() < until) {
		weft_id villain = atomic_load(&stage->villain);

		if (villain)
			deal_with_villain(&random, villain, room);
	}
	free(room);
	return arg;
}

void honest_run(void)
{
	weft_id other = (weft_id)(2 - rank) << 32;
	pthread_t thread[PAIRS + 1];
	int r;

	pthread_barrier_init(&named, NULL, PAIRS + 1);
	pthread_barrier_init(&told, NULL, PAIRS + 1);
	for (uintptr_t i = 0; i < PAIRS; i++)
		if (pthread_create(&thread[i], NULL, pair, (void *)i))
			abort();
	pthread_barrier_wait(&named);
	r = weft_send(weft_port_world(), other, HELLO, own, sizeof(own), weft_in(IN_TIME));
	if (r == 0)
		r = weft_recv(weft_port_world(), other, HELLO, peers, sizeof(peers), weft_in(IN_TIME), NULL);
	if (r < 0 && strict())
		fault("hello: %d %s", r, weft_last_error());
	if (pthread_create(&thread[PAIRS], NULL, duty, NULL))
		abort();
	pthread_barrier_wait(&told);
	for (uint32_t i = 0; i < PAIRS + 1; i++)
		pthread_join(thread[i], NULL);
}
