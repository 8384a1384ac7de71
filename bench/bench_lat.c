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
	size_t size[32];
	size_t sizes, largest;
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

static void lat_link(struct lat_side *s, struct link *l, const char *series, size_t n)
{
	double v;

	link_check(l, s->side, s->mem, n);
	v = measure_lat(l, s->side, s->mem, n);
	if (s->side == 0)
		sample(series, "lat", n, v);
}

/* The two that touch pages check what arrives themselves. */
static void lat_touch(struct lat_side *s, size_t n)
{
	struct buf_link buf = buf_link(&s->send.l, s->send.peer, s->side == 0 ? s->x->buf : NULL, n);
	uint64_t word = 0;
	double v;

	touch_set(&s->touch, &s->ring.l, s->x->buf->data, n);
	v = measure_lat(&s->touch.ring.l, s->side, &word, sizeof(word));
	if (s->side == 0)
		sample("raw/touch", "lat", n, v);
	v = measure_lat(&buf.w.l, s->side, s->mem, n);
	if (s->side == 0) {
		sample("weft/buf", "lat", n, v);
		s->x->buf = buf.w.buf;
	}
}

static void lat_size(struct lat_side *s, size_t n)
{
	struct lat *x = s->x;

	lat_link(s, &s->ring.l, "raw/ring", n);
	lat_link(s, &s->send.l, "weft/send", n);
	if (n == 8) {
		lat_link(s, &s->ring.l, "raw/ring-again", n);
		lat_link(s, &s->posted.l, "weft/posted", n);
	}
	lat_link(s, &s->box.l, "raw/one-copy", n);
	if (n < sizeof(uint64_t))
		return;
	if (s->side == 0 && weft_buf_get(n, WEFT_RAIL_ANY, &x->buf) < 0)
		die("weft_buf_get of %zu bytes: %s", n, weft_last_error());
	pthread_barrier_wait(&x->meet.both);
	lat_touch(s, n);
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
			      .mem = page_memory(x->largest) };

	for (int r = 0; r < repeats(); r++)
		for (size_t i = 0; i < x->sizes; i++)
			lat_size(&s, x->size[i]);
	free(s.mem);
	meet_leave(&x->meet);
}

int main(int argc, char **argv)
{
	static const size_t all[] = { 1,     8,	    64,	    256,      1024,	4096,
				      16384, 65536, 262144, 1u << 20, 4u << 20, 16u << 20 };
	struct lat x = { .rings = ring_pair_new(),
			 .touch_rings = ring_pair_new(),
			 .boxes = shared_memory(2 * sizeof(struct box)) };

	bench_start();
	if (cpu_count() < 2) {
		puts("skip thread-lat-8 fewer than 2 cores\nskip thread-lat-8-posted fewer than 2 cores\n"
		     "skip handover-1m fewer than 2 cores");
		return 0;
	}
	for (int i = 1; i < argc && x.sizes < COUNT(x.size); i++)
		x.size[x.sizes++] = strtoul(argv[i], NULL, 0);
	for (size_t i = 0; argc < 2 && i < COUNT(all); i++)
		x.size[x.sizes++] = all[i];
	for (size_t i = 0; i < x.sizes; i++) {
		if (!x.size[i])
			die("usage: bench_lat [SIZE...]");
		x.largest = x.size[i] > x.largest ? x.size[i] : x.largest;
	}
	must_init();
	meet_init(&x.meet);
	pair_run(lat_side, &x);
	must_fini();
	return 0;
}
