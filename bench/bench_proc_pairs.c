/* bench_proc_pairs.c - 1, 4 and 16 pairs of threads between two processes on two cores, all at once
 * (pairs-16): 8 B one way, windows of 64 and an answer, thousands per second over all pairs.
 * usage: weft run -n 2 bench_proc_pairs
 *
 * The threads of a process share its core. Timed is a whole run of about 100 ms, from the first start to the
 * last end: what the scheduler takes and whom it forgets is in the figure. The median of 3 runs counts.
 */
#include "proc.h"

#define MOST_PAIRS 16
#define RUN_NS 100000000u
#define RUNS 3
#define WARM_WINDOWS 64u

struct pairs {
	int n, side;
	uint64_t windows;
	weft_id mine[MOST_PAIRS], his[MOST_PAIRS];
	pthread_barrier_t ready, go, through, leave;
};

struct pairs_thread {
	struct pairs *x;
	int index;
	uint64_t start, end;
};

static void *pairs_main(void *arg)
{
	struct pairs_thread *t = arg;
	struct pairs *x = t->x;
	struct weft_link l;
	uint64_t word = 0;

	x->mine[t->index] = weft_self();
	pthread_barrier_wait(&x->ready);
	pthread_barrier_wait(&x->go);
	l = weft_link_blocking(x->his[t->index]);
	t->start = clock_ns();
	window_steps(&l.l, x->side, &word, sizeof(word), x->windows);
	t->end = clock_ns();
	pthread_barrier_wait(&x->through);
	pthread_barrier_wait(&x->leave);
	return NULL;
}

/* How long @n pairs take for @windows windows each, ns. */
static uint64_t pairs_ns(struct procs *p, int n, uint64_t windows)
{
	struct pairs x = { .n = n, .side = p->rank, .windows = windows };
	struct pairs_thread t[MOST_PAIRS];
	pthread_barrier_t *all[] = { &x.ready, &x.go, &x.through, &x.leave };
	uint64_t start = UINT64_MAX, end = 0;
	pthread_t id[MOST_PAIRS];

	for (size_t i = 0; i < COUNT(all); i++)
		pthread_barrier_init(all[i], NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		t[i] = (struct pairs_thread){ .x = &x, .index = i };
		id[i] = thread_start(pairs_main, &t[i]);
	}
	pthread_barrier_wait(&x.ready);
	procs_swap(p, !p->rank, x.mine, x.his, sizeof(x.mine));
	pthread_barrier_wait(&x.go);
	pthread_barrier_wait(&x.through);
	procs_meet(p);
	pthread_barrier_wait(&x.leave);
	for (int i = 0; i < n; i++) {
		pthread_join(id[i], NULL);
		start = t[i].start < start ? t[i].start : start;
		end = t[i].end > end ? t[i].end : end;
	}
	for (size_t i = 0; i < COUNT(all); i++)
		pthread_barrier_destroy(all[i]);
	return end - start;
}

/* What process 0 says. */
static uint64_t agreed(struct procs *p, uint64_t windows)
{
	if (p->rank == 0)
		procs_send(p, 1, &windows, sizeof(windows));
	else
		procs_recv(p, 0, &windows, sizeof(windows));
	return windows;
}

/* How many windows of each pair take RUN_NS. By runs that become longer: in the first, short one threads begin, and memory is touched for the first time, which takes longer than all the rest. */
static uint64_t windows_of(struct procs *p, int n)
{
	uint64_t windows = WARM_WINDOWS, asked;

	do {
		uint64_t t = pairs_ns(p, n, windows);

		asked = windows;
		windows = agreed(p, windows * (uint64_t)RUN_NS / t + 1);
	} while (windows > 2 * asked);
	return windows;
}

static void pairs_sample(struct procs *p, int n)
{
	uint64_t windows = windows_of(p, n);
	double ns[RUNS];
	char series[32];

	for (int i = 0; i < RUNS; i++)
		ns[i] = (double)pairs_ns(p, n, windows);
	snprintf(series, sizeof(series), "weft/pairs-%d", n);
	if (p->rank == 0)
		sample(series, "rate", 8, (double)windows * WINDOW * n * 1e6 / median(ns, RUNS));
}

int main(void)
{
	struct procs p = procs_start(2);

	if (procs_skip(&p, "pairs-16"))
		return 0;
	cpu_pin(p.rank);
	for (int r = 0; r < repeats(); r++)
		for (int n = 1; n <= MOST_PAIRS; n *= 4)
			pairs_sample(&p, n);
	procs_end(&p);
	return 0;
}
