/* bench_scale.c - eight pairs of threads on sixteen cores, all at once (scale-16).
 *
 * Rates of 8 B, windows of 64, thousands per second: one raw ring and one weft pair alone, then
 * eight raw rings together and eight weft pairs together. Pair p has cores 2p and 2p + 1 of those
 * the program was given. The sum of the pairs is the figure.
 */
#include "raw_ring.h"
#include "weft_link.h"

#define PAIRS 8

struct scale_pair {
	struct weft_meet meet;
	struct ring *rings;
	double ring_rate, weft_rate;
};

static struct scale_pair pair[PAIRS];
static pthread_barrier_t everyone;

static double sum_ring(void)
{
	double sum = 0;

	for (int p = 0; p < PAIRS; p++)
		sum += pair[p].ring_rate;
	return sum;
}

static double sum_weft(void)
{
	double sum = 0;

	for (int p = 0; p < PAIRS; p++)
		sum += pair[p].weft_rate;
	return sum;
}

static void pair_rate(double *rate, struct link *l, int side, void *mem)
{
	double v = measure_rate(l, side, mem);

	if (side == 0)
		*rate = v;
}

/* All sixteen threads run this; those not in the measurement sleep at the next barrier. */
static void scale_side(int side, void *arg)
{
	struct scale_pair *p = arg;
	struct ring_link ring = ring_link(p->rings, side);
	struct weft_link weft = weft_link_blocking(meet_peer(&p->meet, side));
	bool first = p == &pair[0], tells = first && side == 0;
	void *mem = page_memory(4096);

	for (int r = 0; r < repeats(); r++) {
		if (first) {
			double raw = measure_rate(&ring.l, side, mem), own = measure_rate(&weft.l, side, mem);

			if (tells) {
				sample("raw/ring-1of8", "rate", 8, raw);
				sample("weft/send-1of8", "rate", 8, own);
			}
		}
		pthread_barrier_wait(&everyone);
		pair_rate(&p->ring_rate, &ring.l, side, mem);
		pthread_barrier_wait(&everyone);
		if (tells)
			sample("raw/ring-8pairs", "rate", 8, sum_ring());
		pair_rate(&p->weft_rate, &weft.l, side, mem);
		pthread_barrier_wait(&everyone);
		if (tells)
			sample("weft/send-8pairs", "rate", 8, sum_weft());
	}
	free(mem);
	meet_leave(&p->meet);
}

int main(void)
{
	struct pair_side s[2 * PAIRS];
	pthread_t t[2 * PAIRS];

	bench_start();
	if (cpu_count() < 2 * PAIRS) {
		printf("skip scale-16 fewer than %d cores: %d\n", 2 * PAIRS, cpu_count());
		return 0;
	}
	must_init();
	pthread_barrier_init(&everyone, NULL, 2 * PAIRS);
	for (int i = 0; i < 2 * PAIRS; i++) {
		struct scale_pair *p = &pair[i / 2];

		if (i % 2 == 0) {
			p->rings = ring_pair_new();
			meet_init(&p->meet);
		}
		s[i] = (struct pair_side){ scale_side, p, i % 2, i };
	}
	for (int i = 0; i < 2 * PAIRS; i++)
		t[i] = thread_start(pair_main, &s[i]);
	for (int i = 0; i < 2 * PAIRS; i++)
		pthread_join(t[i], NULL);
	must_fini();
	return 0;
}
