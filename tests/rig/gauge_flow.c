/* gauge_flow.c - measured traffic: a stream alone, streams beside one that nobody receives, urgent messages beside bulk, and none at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "gauge.h"

#define MESSAGE (64u << 10)
#define BULK (1u << 20)
#define LAST 2u                         /* tag of what ends a stream */
#define SLICE (500 * WEFT_MS)           /* what is counted together */
#define SLICES 400u
#define URGENT_EVERY WEFT_MS
#define URGENTS 100000u

static void send_plain(weft_id to, uint32_t len, int8_t prio)
{
	void *data = calloc(1, len);
	struct weft_op op = { .size = sizeof(op), .peer = to, .tag = 1, .data = data, .len = len, .prio = prio };

	while (weft_now() < began + period) {
		struct weft_req *req = NULL;
		int r = weft_send_post(NULL, &op, &req);

		must(r, "to send");
		if (r == 0)
			must(weft_req_wait(&req, WEFT_FOREVER, NULL), "to send");
	}
	must(weft_send(NULL, to, LAST, NULL, 0, WEFT_FOREVER), "to say that it was the last");
	free(data);
}

/* Receives until the last, and says how many megabytes came in each half second. */
static void receive(weft_id from, const char *name)
{
	void *data = malloc(BULK);
	uint64_t bytes[SLICES] = { 0 };
	char text[SLICES * 8] = "";
	size_t at = 0, n = (size_t)(period / SLICE);
	struct weft_status st;

	do {
		size_t i;

		must(weft_recv(NULL, from, WEFT_ANY_TAG, data, BULK, WEFT_FOREVER, &st), "to receive");
		i = (size_t)((weft_now() - began) / SLICE);
		if (i < SLICES)
			bytes[i] += st.len;
	} while (st.tag != LAST);
	for (size_t i = 0; i < n && i < SLICES && at + 8 < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %.1f", (double)bytes[i] / 1e6);
	say("%s began %lld:%s", name, (long long)began, text);
	free(data);
}

static void nap_until(weft_time when)
{
	int64_t ns = when - weft_now();

	if (ns > 0)
		nanosleep(&(struct timespec){ .tv_sec = ns / WEFT_S, .tv_nsec = ns % WEFT_S }, NULL);
}

/* stream: process 0 to process 1, with all there is. */
void gauge_stream(uint32_t thread)
{
	if (thread == 0 && rank == 0)
		send_plain(ids[1][0], MESSAGE, 0);
	if (thread == 0 && rank == 1)
		receive(ids[0][0], "stream");
}

/* stuck N: process 0 sends to 1 and to the first thread of 2; 1 sends to the second of 2. The first of 2 receives if N is 1, and never if N is 0. */

/* As much as there is room for, of lengths that are copied, sent whole and announced, each until one has to wait; no more than 20 MB/s. */
static void push(weft_id to)
{
	static const size_t lengths[] = { 1000, 30000, 200000 };
	char *data = calloc(1, lengths[2]);
	uint64_t sent = 0, late = 0;

	while (weft_now() < began + period) {
		size_t len = lengths[late % 3];
		int r = weft_send(NULL, to, 1, data, len, weft_in(200 * WEFT_MS));

		if (r == -ETIMEDOUT)
			late++;
		else
			must(r, "to push");
		sent += r == 0 ? len : 0;
		nap_until(began + (int64_t)((double)sent / 20e6 * WEFT_S));
	}
	if (arg)
		must(weft_send(NULL, to, LAST, NULL, 0, WEFT_FOREVER), "to end the push");
	say("pushed %llu late %llu", (unsigned long long)sent, (unsigned long long)late);
	free(data);
}

void gauge_stuck(uint32_t thread)
{
	switch (rank * 2 + thread) {
	case 0: send_plain(ids[1][0], MESSAGE, 0); break;
	case 1: push(ids[2][0]); break;
	case 2: receive(ids[0][0], "other"); break;
	case 3: send_plain(ids[2][1], MESSAGE, 0); break;
	case 4:
		if (arg)
			receive(ids[0][1], "pushed");
		else
			nap_until(began + period + WEFT_S);
		break;
	case 5: receive(ids[1][1], "beside"); break;
	default: break;
	}
}

/* urgent N: process 0 sends a little message to 1 every millisecond, with the highest priority; beside it bulk, if N is 1. All are of one machine and
 * thus of one clock, so each message tells how long it took. */
static void urgent_send(weft_id to)
{
	for (weft_time next = began; next < began + period; next += URGENT_EVERY) {
		int64_t now;
		struct weft_req *req = NULL;
		struct weft_op op = { .size = sizeof(op), .peer = to, .tag = 1, .data = &now, .len = sizeof(now), .prio = 3 };
		int r;

		nap_until(next);
		now = weft_now();
		r = weft_send_post(NULL, &op, &req);
		must(r, "to send urgently");
		if (r == 0)
			must(weft_req_wait(&req, WEFT_FOREVER, NULL), "to send urgently");
	}
	must(weft_send(NULL, to, LAST, NULL, 0, WEFT_FOREVER), "to end the urgent");
}

static void urgent_receive(weft_id from)
{
	double *us = calloc(URGENTS, sizeof(*us));
	struct weft_status st;
	size_t n = 0;
	int64_t sent;

	for (;;) {
		must(weft_recv(NULL, from, WEFT_ANY_TAG, &sent, sizeof(sent), WEFT_FOREVER, &st), "to receive urgently");
		if (st.tag == LAST)
			break;
		if (n < URGENTS)
			us[n++] = (double)(weft_now() - sent) / 1e3;
	}
	say("urgent %zu: p50 %.0f p99 %.0f most %.0f", n, part_of(us, n, 50), part_of(us, n, 99), part_of(us, n, 100));
	free(us);
}

void gauge_urgent(uint32_t thread)
{
	if (rank == 0 && thread == 0)
		urgent_send(ids[1][0]);
	if (rank == 0 && thread == 1 && arg)
		send_plain(ids[1][1], BULK, -4);
	if (rank == 1 && thread == 0)
		urgent_receive(ids[0][0]);
	if (rank == 1 && thread == 1 && arg)
		receive(ids[0][1], "bulk");
}

/* idle: all wait for what does not come. */
static double processor_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

void gauge_idle(uint32_t thread)
{
	double before;
	int r;

	if (thread)
		return;
	nap_until(began + WEFT_S);      /* what the meeting left to do is done */
	before = processor_ms();
	r = weft_recv(NULL, ids[(rank + 1) % size][0], 1, NULL, 0, began + WEFT_S + period, NULL);
	must(r == -ETIMEDOUT || r == -ECONNRESET ? 0 : r, "to wait for nothing");
	say("idle %d processor %.1f of %.0f", r, processor_ms() - before, (double)(weft_now() - began - WEFT_S) / 1e6);
}
