/* bench_proc_over.c - 8 processes on two cores take turns in 4 pairs (over-8).
 * usage: weft run -n 8 bench_proc_over
 *
 *   weft/procs-8        8 B messages
 *   raw/futex-8         the mark's raw limit: a word and a futex per pair, between 8 threads of one process, which
 *                       switch faster than processes do
 *   raw/futex-8-procs   the same between these 8 processes
 * lat: half a turn over the whole run, waiting for the others included, ns. p999: what 999 of 1000 whole
 * turns of all pairs stay below, ns; p50 likewise. Once as the system schedules programs, which is the mark,
 * once with real-time priority where it is granted (-fifo). A run between processes lasts about 300 ms, or the
 * scheduler would not have shown itself.
 */
#include "proc.h"
#include "weft_turn.h"

#define PROCS 8
#define PAIRS (PROCS / 2)
#define RUN_NS 300000000u
#define WARM_TURNS 500u
#define MOST_TURNS 1000000u
#define THREAD_TURNS 20000u
#define STEPS 16 /* of a histogram, per doubling */
#define BINS (40 * STEPS)

struct over { /* seen by all */
	struct turn turn[PAIRS];
	uint32_t turns;
	uint64_t start[PROCS], end[PROCS];
	uint32_t bin[PAIRS][BINS]; /* written by side 0 of the pair */
};

/* Steps are equal parts of a doubling; the first 16 ns have one bin each. */
static int bin_of(uint64_t ns)
{
	int log = ns < STEPS ? 0 : 60 - __builtin_clzll(ns);
	int bin = log == 0 ? (int)ns : (log - 1) * STEPS + (int)(ns >> (log - 1));

	return bin < BINS ? bin : BINS - 1;
}

static double bin_end(int bin)
{
	int log = bin < 2 * STEPS ? 0 : bin / STEPS - 1;

	return (double)((uint64_t)(bin - log * STEPS + 1) << log);
}

static double share_below(const struct over *x, double share)
{
	uint64_t all = 0, seen = 0;
	int bin = 0;

	for (int i = 0; i < PAIRS * BINS; i++)
		all += x->bin[i / BINS][i % BINS];
	for (; bin < BINS; bin++) {
		for (int pair = 0; pair < PAIRS; pair++)
			seen += x->bin[pair][bin];
		if ((double)seen >= share * (double)all)
			break;
	}
	return bin_end(bin);
}

static void take_turns(const struct turn_way *way, struct turn *t, int side, uint32_t turns, uint32_t *bin)
{
	uint64_t then = clock_ns(), now;

	for (uint32_t i = 1; i <= turns; i++) {
		if (side == 1) {
			way->take(t, 1, i);
			way->give(t, 1, i);
			continue;
		}
		way->give(t, 0, i);
		way->take(t, 0, i);
		now = clock_ns();
		bin[bin_of(now - then)]++;
		then = now;
	}
}

/* Half a turn, in ns. */
static double over_run(struct procs *p, struct over *x, const struct turn_way *way, uint32_t turns)
{
	int pair = p->rank / 2, side = p->rank % 2;
	uint64_t start = UINT64_MAX, end = 0;

	if (side == 0) { /* relaxed: meeting publishes both */
		atomic_store_explicit(&x->turn[pair].word0, 0, memory_order_relaxed);
		atomic_store_explicit(&x->turn[pair].word1, 0, memory_order_relaxed);
		memset(x->bin[pair], 0, sizeof(x->bin[pair]));
	}
	procs_meet(p);
	x->start[p->rank] = clock_ns();
	take_turns(way, &x->turn[pair], side, turns, x->bin[pair]);
	x->end[p->rank] = clock_ns();
	procs_meet(p);
	for (int i = 0; i < PROCS; i++) {
		start = x->start[i] < start ? x->start[i] : start;
		end = x->end[i] > end ? x->end[i] : end;
	}
	return (double)(end - start) / turns / 2;
}

static void over_sample(struct procs *p, struct over *x, const struct turn_way *way, const char *series)
{
	double ns = over_run(p, x, way, WARM_TURNS);

	if (p->rank == 0) {
		double turns = RUN_NS / (2 * ns);

		x->turns = turns > MOST_TURNS ? MOST_TURNS : (uint32_t)turns + 1;
	}
	procs_meet(p);
	ns = over_run(p, x, way, x->turns);
	if (p->rank != 0)
		return;
	sample(series, "lat", 8, ns);
	sample(series, "p50", 8, share_below(x, 0.5));
	sample(series, "p999", 8, share_below(x, 0.999));
}

/* While the other processes sleep. */
static void thread_sample(struct procs *p, const char *series)
{
	static const struct turn_way way = { .give = futex_give, .take = futex_take };

	if (p->rank == 0)
		sample(series, "lat", 8, turns_ns(&way, PAIRS, THREAD_TURNS, 100));
	procs_meet(p);
}

int main(void)
{
	static const struct turn_way futex_way = { .give = shared_futex_give, .take = shared_futex_take };
	struct procs p = procs_start(PROCS);
	int pair = p.rank / 2, side = p.rank % 2;
	struct over *x;

	if (procs_skip(&p, "over-8"))
		return 0;
	cpu_pin((side ^ pair) & 1);
	x = procs_memory(&p, sizeof(*x));
	message_prepare(&x->turn[pair], side);
	procs_meet(&p);
	for (int r = 0; r < repeats(); r++) {
		thread_sample(&p, "raw/futex-8");
		over_sample(&p, x, &message_way, "weft/procs-8");
		over_sample(&p, x, &futex_way, "raw/futex-8-procs");
		if (!sleeper_priority(true))
			continue;
		thread_sample(&p, "raw/futex-8-fifo");
		over_sample(&p, x, &message_way, "weft/procs-8-fifo");
		sleeper_priority(false);
	}
	procs_end(&p);
	return 0;
}
