/* bench_rate.c - 8 B messages one way, windows of 64 and an answer: weft beside the raw ring
 * (thread-rate-8: blocking calls; thread-rate-8-window: 64 requests, one wait for all).
 * Thousands per second, between two threads on two cores.
 */
#include "raw_ring.h"
#include "weft_link.h"

struct rate {
	struct weft_meet meet;
	struct ring *rings;
};

static void rate_side(int side, void *arg)
{
	struct rate *x = arg;
	weft_id peer = meet_peer(&x->meet, side);
	struct ring_link ring = ring_link(x->rings, side);
	struct weft_link send = weft_link_blocking(peer), posted = weft_link_posted(peer);
	void *mem = page_memory(4096);

	window_check(&send.l, side);
	window_check(&posted.l, side);
	for (int r = 0; r < repeats(); r++) {
		rate_sample(&ring.l, side, mem, "raw/ring");
		rate_sample(&send.l, side, mem, "weft/send");
		rate_sample(&ring.l, side, mem, "raw/ring-again");
		rate_sample(&posted.l, side, mem, "weft/posted");
	}
	free(mem);
	meet_leave(&x->meet);
}

int main(void)
{
	struct rate x = { .rings = ring_pair_new() };

	bench_start();
	if (cpu_count() < 2) {
		puts("skip thread-rate-8 fewer than 2 cores\nskip thread-rate-8-window fewer than 2 cores");
		return 0;
	}
	must_init();
	meet_init(&x.meet);
	pair_run(rate_side, &x);
	must_fini();
	return 0;
}
