/* echo.c - short messages that are all alike, to and fro, which are told of later than they are read (wire/line_like.c). usage: weft run --hosts A:1,B:1 ... echo ROUNDS
 *
 * Process 0 sends numbers, process 1 sends each back: every number comes once, and behind the one before it. Every 64th time another message comes between. At the end process 1 takes two and then calls
 * nothing of weft's for a while: all that process 0 has sent is acknowledged meanwhile, and in one of a few times without being asked for. Says "echo: ok, N late" and exits 0; N: how many that process 0 read were told of later.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "wire/trunk.h"

enum { NUMBER = 1, BESIDE };
enum { TIMES = 4 };

static weft_id other;

static void say(uint64_t tag, uint64_t number)
{
	EXPECT(weft_send(NULL, other, tag, &number, sizeof(number), SOON), 0);
}

static void hear(uint64_t tag, uint64_t number)
{
	uint64_t got = 0;

	EXPECT(weft_recv(NULL, other, tag, &got, sizeof(got), SOON, NULL), 0);
	EXPECT(got, number);
}

/* Another between them: told of at once, behind those before it. */
static bool beside(uint64_t number)
{
	return number % 64 == 63;
}

/* What process 0 has sent: is all of it acknowledged? And when was the other end asked last? */
static bool all_acknowledged(struct wf_trunk *t, weft_time *ret_asked)
{
	struct wf_out *out;
	bool all;

	wf_trunk_lock(t);
	out = t->remote.out[WF_STREAM_PLAIN];
	all = out && out->rt.acked == out->rt.tail;
	*ret_asked = out && out->lane ? out->lane->ping_at : 0;
	wf_unlock(&t->lock);
	return all;
}

static void ask(uint64_t rounds)
{
	struct wf_trunk *t = wf_trunk_at((uint32_t)(other >> 32));
	bool unasked = false;

	for (uint64_t i = 0; i < rounds && !faults; i++) {
		say(NUMBER, i);
		if (beside(i))
			say(BESIDE, ~i);
		hear(NUMBER, i);
		if (beside(i))
			hear(BESIDE, ~i);
	}
	for (uint64_t i = rounds; i < rounds + TIMES && !faults; i++) {
		weft_time before, asked = 0;
		bool all = false;

		usleep(50000);          /* what is owed here has gone: or that would have the other end see to what it owes */
		say(NUMBER, i);
		usleep(1000);
		say(NUMBER, i);         /* like the one before it, and nothing came between */
		all_acknowledged(t, &before);
		for (int k = 0; k < 10000 && !(all = all_acknowledged(t, &asked)); k++)
			usleep(100);
		EXPECT(all, true);
		unasked |= asked == before;
		hear(NUMBER, i);
	}
	EXPECT(unasked, true);
	if (!faults)
		printf("echo: ok, %u late\n", atomic_load(&t->late.came));
}

static void compute(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * WEFT_S + now.tv_nsec < begin.tv_sec * WEFT_S + begin.tv_nsec + WEFT_S / 2);
}

static void answer(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds && !faults; i++) {
		hear(NUMBER, i);
		if (beside(i))
			hear(BESIDE, ~i);
		say(NUMBER, i);
		if (beside(i))
			say(BESIDE, ~i);
	}
	for (uint64_t i = rounds; i < rounds + TIMES && !faults; i++) {
		hear(NUMBER, i);
		hear(NUMBER, i);
		compute();
		say(NUMBER, i);
	}
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	weft_id me;
	bool first;

	if (!rounds || weft_init(NULL) < 0) {
		fprintf(stderr, "echo: %s\n", rounds ? weft_last_error() : "usage: echo ROUNDS");
		return 1;
	}
	first = getenv("WEFT_RANK")[0] == '0';
	me = weft_self();
	EXPECT(weft_send(weft_port_world(), weft_at(first), 0, &me, sizeof(me), SOON), 0);
	EXPECT(weft_recv(weft_port_world(), weft_at(first), 0, &other, sizeof(other), SOON, NULL), 0);
	if (first)
		ask(rounds);
	else
		answer(rounds);
	EXPECT(weft_fini(SOON), 0);
	return faults != 0;
}
