/* echo.c - short messages that are all alike, to and fro, which are told of later than they are read (wire/line_like.c). usage: weft run --hosts A:1,B:1 ... echo ROUNDS
 *
 * Process 0 sends numbers, process 1 sends each back: every number comes once, and behind the one before it. Every 64th time another message comes between. At the end process 1 takes two and then calls
 * nothing of weft's for a while: all that process 0 has sent is acknowledged meanwhile, and in one of a few times without being asked for. Says "echo: ok, N late" and exits 0; N: how many that process 0 read were told of later.
 */
#include <time.h>
#include <unistd.h>

#include "other.h"

enum { NUMBER = 1, BESIDE };
enum { TIMES = 4 };

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

static void say_all(uint64_t number)
{
	say(NUMBER, number);
	if (beside(number))
		say(BESIDE, ~number);
}

static void hear_all(uint64_t number)
{
	hear(NUMBER, number);
	if (beside(number))
		hear(BESIDE, ~number);
}

static void ask(uint64_t rounds)
{
	struct wf_trunk *t = wf_trunk_at((uint32_t)(other >> 32));
	bool unasked = false;

	for (uint64_t i = 0; i < rounds && !faults; i++) {
		say_all(i);
		hear_all(i);
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
		hear_all(i);
		say_all(i);
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
	return run_both(argc, argv, "rounds", ask, answer);
}
