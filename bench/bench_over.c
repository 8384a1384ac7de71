/* bench_over.c - threads that share cores and threads that sleep (over-1000, park-8).
 * usage: bench_over [over | park]     without a name: both
 *
 * over  1000 threads in 500 pairs take turns with 8 B messages on two cores; the raw limit is a
 *       word and a futex per pair. Half a turn over the whole run, ns. Once as the system schedules
 *       programs (-other), once with real-time priority where it is granted, as the raw futex is
 *       at its best there.
 * park  one pair on two cores that goes to sleep at once whenever it waits: knob spin_ns 0 against
 *       the raw futex. Each side is busy for 20 us before it gives the turn, so that the other has
 *       really gone to sleep by then; the 20 us are not in the figure. `sleeps` is voluntary
 *       switches per message: below 1, not every receiver slept. Then the same without these 20 us
 *       (-turn), and what weft's own choice, to spin first, makes of it (-default).
 */
#include "weft_turn.h"
#include <sys/resource.h>

#define REST_NS 20000

static const struct turn_way futex_way = { .give = futex_give, .take = futex_take };
static const struct turn_way futex_rested = { .give = futex_give, .take = futex_take, .rest_ns = REST_NS };
static const struct turn_way message_rested = { .prepare = message_prepare,
						.give = message_give,
						.take = message_take,
						.rest_ns = REST_NS };

#define OVER_PAIRS 500
#define OVER_TURNS 50

static void over(void)
{
	sample("raw/futex-500-other", "lat", 8, turns_ns(&futex_way, OVER_PAIRS, OVER_TURNS, 10));
	sample("weft/pairs-500-other", "lat", 8, turns_ns(&message_way, OVER_PAIRS, OVER_TURNS, 10));
	sleeper_priority(true);
	sample("raw/futex-500", "lat", 8, turns_ns(&futex_way, OVER_PAIRS, OVER_TURNS, 10));
	sample("weft/pairs-500", "lat", 8, turns_ns(&message_way, OVER_PAIRS, OVER_TURNS, 10));
	sleeper_priority(false);
}

#define PARK_TURNS 2000

/* How often threads of this process, ended ones included, have gone to sleep. */
static double sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_nvcsw;
}

static void park(void)
{
	char spin[32] = "";
	double before, v;

	must(weft_knob_get("spin_ns", spin, sizeof(spin)), "weft_knob_get spin_ns");
	sleeper_priority(true);
	sample("raw/futex", "lat", 8, turns_ns(&futex_rested, 1, PARK_TURNS, 10));
	must(weft_knob_set("spin_ns", "0"), "weft_knob_set spin_ns");
	before = sleeps();
	v = turns_ns(&message_rested, 1, PARK_TURNS, 10);
	sample("weft/park", "sleeps", 8, (sleeps() - before) / (2.0 * PARK_TURNS));
	sample("weft/park", "lat", 8, v);
	sample("raw/futex-turn", "lat", 8, turns_ns(&futex_way, 1, PARK_TURNS, 10));
	sample("weft/park-turn", "lat", 8, turns_ns(&message_way, 1, PARK_TURNS, 10));
	must(weft_knob_set("spin_ns", spin), "weft_knob_set spin_ns");
	sleeper_priority(false);
	sample("weft/park-default", "lat", 8, turns_ns(&message_way, 1, 50 * PARK_TURNS, 500));
}

int main(int argc, char **argv)
{
	bool all = argc < 2;

	bench_start();
	if (cpu_count() < 2) {
		puts("skip over-1000 fewer than 2 cores\nskip park-8 fewer than 2 cores");
		return 0;
	}
	must_init();
	for (int r = 0; r < repeats(); r++) {
		if (all || !strcmp(argv[1], "over"))
			over();
		if (all || !strcmp(argv[1], "park"))
			park();
	}
	must_fini();
	return 0;
}
