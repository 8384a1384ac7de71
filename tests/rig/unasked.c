/* unasked.c - what another host sends and nobody receives stays within the budget. usage: weft run --hosts A:1,B:1 ... unasked COUNT
 *
 * Process 1 sends COUNT messages of one kind after the other, and process 0 receives none until it has looked at what it holds: no more than its budget (WEFT_BUDGET, a small one) and
 * what stands for 256 that were announced, a fourth more where each takes more than a message usually does (SYNC: a request that stands for it), and its memory has not grown by much more. Then it receives them, in order; and those that come behind are again received as they come. Says "unasked: ok" and exits 0.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { MOST = 8192, COUNTS = 1 << 20, FIRST = 1000, WORD = 8, GROWTH = 6 << 20, ANNOUNCED = 256 * 512, TURNS = 200 };

static const struct kind {
	uint32_t len, flags, share;             /* of COUNT, in hundredths */
} kinds[] = { { 8, 0, 100 }, { 600, 0, 25 }, { 5000, 0, 5 }, { 8, WEFT_SYNC, 100 }, { 1000, WEFT_SYNC, 25 }, { 0, WEFT_SYNC, 100 } };

static struct weft_req *reqs[COUNTS];
static unsigned char bytes[MOST], mem[MOST];
static weft_id other;

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	EXPECT(f && fscanf(f, "%*u %lu", &pages) == 1, 1);
	if (f)
		fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void say(void)
{
	struct weft_op op = { .size = sizeof(op), .peer = other, .tag = WORD, .data = bytes, .len = 1, .prio = 1 };

	EXPECT(weft_send_post(weft_port_world(), &op, NULL) >= 0, 1);
}

static void hear(void)
{
	EXPECT(weft_recv(weft_port_world(), other, WORD, mem, sizeof(mem), SOON, NULL), 0);
}

static void send(const struct kind *k, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		EXPECT(weft_send_start(weft_port_world(), other, FIRST + i, bytes, k->len, k->flags, &reqs[i]) >= 0, 1);
	say();
	for (uint32_t i = 0; i < n && !faults; i++)
		if (reqs[i])
			EXPECT(weft_req_wait(&reqs[i], SOON, NULL), 0);
}

static void receive(const struct kind *k, uint32_t n)
{
	struct weft_stats s = { .size = sizeof(s) };
	struct weft_status st = { 0 };
	size_t before = resident(), grown;

	hear();
	usleep(200000);                         /* for what is on its way */
	EXPECT(weft_stats_get(NULL, &s), 0);
	grown = resident() > before ? resident() - before : 0;
	fprintf(stderr, "# %u of %u bytes, flags %u: %llu here, %llu bytes held, budget %llu; grown by %zu KiB\n", n, k->len, k->flags, (unsigned long long)s.unexpected,
		(unsigned long long)s.unexpected_bytes, (unsigned long long)s.budget, grown >> 10);
	EXPECT(s.unexpected_bytes <= s.budget + ANNOUNCED + (k->flags & WEFT_SYNC ? s.budget / 4 : 0), 1);
	EXPECT(grown < s.budget + GROWTH, 1);
	EXPECT(s.unexpected > 0 && s.unexpected < n, 1);        /* else it tried nothing */
	for (uint32_t i = 0; i < n && !faults; i++) {
		EXPECT(weft_recv(weft_port_world(), other, WEFT_ANY_TAG, mem, sizeof(mem), SOON, &st), 0);
		EXPECT(st.tag, FIRST + i);
		EXPECT(st.len, k->len);
		EXPECT(memcmp(mem, bytes, k->len), 0);
	}
}

/* What was owed has been given back: short ones come at once again. */
static void take_turns(bool first)
{
	for (int i = 0; i < TURNS && !faults; i++) {
		if (first)
			hear();
		EXPECT(weft_send(weft_port_world(), other, WORD, bytes, 8, SOON), 0);
		if (!first)
			hear();
	}
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	bool first;

	if (n < 100 || n > COUNTS || weft_init(NULL) < 0) {
		fprintf(stderr, "unasked: %s\n", n < 100 || n > COUNTS ? "usage: unasked COUNT" : weft_last_error());
		return 1;
	}
	first = getenv("WEFT_RANK")[0] == '0';
	other = weft_at(first);
	for (uint32_t i = 0; i < MOST; i++)
		bytes[i] = (unsigned char)(i * 7 + (i >> 8));
	take_turns(first);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !faults; i++) {
		uint32_t count = (uint32_t)((uint64_t)n * kinds[i].share / 100);

		if (first)
			receive(&kinds[i], count);
		else
			send(&kinds[i], count);
		take_turns(first);
	}
	if (first)
		printf("unasked: %s\n", faults ? "failed" : "ok");
	return faults || weft_fini(SOON) < 0;
}
