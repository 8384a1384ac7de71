/* bench_lat.c - latency over size: weft beside the raw limits (thread-lat-8, thread-lat-8-posted,
 * handover-1m).
 * usage: bench_lat [SIZE...]     without a size: 1 B to 16 MiB
 *
 * Half a round trip between two threads on two cores, in ns:
 *   raw/ring      two copies through shared memory      raw/one-copy   one copy
 *   raw/touch     a raw ring, and the first line of every page written and read
 *   weft/send     weft_send and weft_recv               weft/posted    requests (8 B only)
 *   weft/buf      a buffer handed over, its pages touched as in raw/touch
 * raw/touch and weft/buf touch the same memory, a buffer of weft's, one after the other.
 */
#include "raw_ring.h"
#include "touch.h"
#include "weft_link.h"

struct lat {
	struct weft_meet meet;
	struct ring *rings, *touch_rings;
	struct box *boxes;
	struct weft_buf *buf; /* side 0 sets it while side 1 waits */
	struct sizes sizes;
};

struct lat_side {
	struct lat *x;
	int side;
	struct ring_link ring;
	struct touch_link touch;
	struct box_link box;
	struct weft_link send, posted;
	void *mem;
};

static void lat_size(struct lat_side *s, size_t n)
{
	struct lat *x = s->x;

	lat_sample(&s->ring.l, s->side, s->mem, n, "raw/ring");
	lat_sample(&s->send.l, s->side, s->mem, n, "weft/send");
	if (n == 8) {
		lat_sample(&s->ring.l, s->side, s->mem, n, "raw/ring-again");
		lat_sample(&s->posted.l, s->side, s->mem, n, "weft/posted");
	}
	lat_sample(&s->box.l, s->side, s->mem, n, "raw/one-copy");
	if (n < sizeof(uint64_t))
		return;
	if (s->side == 0 && weft_buf_get(n, WEFT_RAIL_ANY, &x->buf) < 0)
		die("weft_buf_get of %zu bytes: %s", n, weft_last_error());
	pthread_barrier_wait(&x->meet.both);
	touch_sample(&s->touch, &s->ring.l, s->side, x->buf->data, n, "raw/touch");
	buf_sample(&s->send, s->side, &x->buf, n, "weft/buf");
	pthread_barrier_wait(&x->meet.both);
	if (s->side == 0)
		must(weft_buf_put(x->buf), "weft_buf_put");
}

static void lat_side(int side, void *arg)
{
	struct lat *x = arg;
	weft_id peer = meet_peer(&x->meet, side);
	struct lat_side s = { .x = x,
			      .side = side,
			      .ring = ring_link(x->rings, side),
			      .touch = touch_link(x->touch_rings, side),
			      .box = box_link(x->boxes, side),
			      .send = weft_link_blocking(peer),
			      .posted = weft_link_posted(peer),
			      .mem = page_memory(x->sizes.largest) };

	for (int r = 0; r < repeats(); r++)
		for (size_t i = 0; i < x->sizes.count; i++)
			lat_size(&s, x->sizes.n[i]);
	free(s.mem);
	meet_leave(&x->meet);
}

int main(int argc, char **argv)
{
	struct lat x = { .rings = ring_pair_new(),
			 .touch_rings = ring_pair_new(),
			 .boxes = shared_memory(2 * sizeof(struct box)),
			 .sizes = sizes_of(argc, argv) };

	bench_start();
	if (cpu_count() < 2) {
		puts("skip thread-lat-8 fewer than 2 cores\nskip thread-lat-8-posted fewer than 2 cores\n"
		     "skip handover-1m fewer than 2 cores");
		return 0;
	}
	must_init();
	meet_init(&x.meet);
	pair_run(lat_side, &x);
	must_fini();
	return 0;
}
