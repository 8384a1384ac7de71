/* bench_proc_lat.c - latency between two processes over size: weft beside the raw limits (proc-lat-8,
 * -64, -256, -4k, -64k, -1m, proc-lat-8-posted, handover-1m-procs).
 * usage: weft run -n 2 bench_proc_lat [SIZE...]     without a size: 1 B to 16 MiB
 *
 * Half a round trip between two processes on two cores, in ns:
 *   raw/proc-ring    two copies through shared memory
 *   raw/proc-touch   a raw ring, and the first line of every page of shared memory written and read
 *   weft/proc-send   weft_send and weft_recv      weft/proc-posted   requests (8 B only)
 *   weft/proc-buf    a buffer handed over, its pages touched as in raw/proc-touch
 */
#include "proc.h"
#include "raw_ring.h"
#include "touch.h"

struct lat {
	int side;
	struct ring_link ring;
	struct touch_link touch;
	struct weft_link send, posted;
	void *mem, *pages; /* pages: seen by both processes */
};

static void lat_size(struct lat *x, size_t n)
{
	struct weft_buf *buf = NULL;

	lat_sample(&x->ring.l, x->side, x->mem, n, "raw/proc-ring");
	lat_sample(&x->send.l, x->side, x->mem, n, "weft/proc-send");
	if (n == 8) {
		lat_sample(&x->ring.l, x->side, x->mem, n, "raw/proc-ring-again");
		lat_sample(&x->posted.l, x->side, x->mem, n, "weft/proc-posted");
	}
	if (n < sizeof(uint64_t))
		return;
	if (x->side == 0)
		must(weft_buf_get(n, WEFT_RAIL_ANY, &buf), "weft_buf_get");
	touch_sample(&x->touch, &x->ring.l, x->side, x->pages, n, "raw/proc-touch");
	buf_sample(&x->send, x->side, &buf, n, "weft/proc-buf");
	if (x->side == 0)
		must(weft_buf_put(buf), "weft_buf_put");
}

int main(int argc, char **argv)
{
	struct sizes sizes = sizes_of(argc, argv);
	struct procs p = procs_start(2);
	struct ring *rings;
	weft_id peer;
	struct lat x;

	if (procs_skip(&p, "proc-lat-8 proc-lat-8-posted proc-lat-64 proc-lat-256 proc-lat-4k proc-lat-64k "
			   "proc-lat-1m handover-1m-procs"))
		return 0;
	cpu_pin(p.rank);
	rings = procs_memory(&p, 4 * sizeof(*rings));
	peer = procs_peer(&p, !p.rank);
	x = (struct lat){ .side = p.rank,
			  .ring = ring_link(rings, p.rank),
			  .touch = touch_link(rings + 2, p.rank),
			  .send = weft_link_blocking(peer),
			  .posted = weft_link_posted(peer),
			  .mem = page_memory(sizes.largest),
			  .pages = procs_memory(&p, sizes.largest) };
	for (int r = 0; r < repeats(); r++)
		for (size_t i = 0; i < sizes.count; i++)
			lat_size(&x, sizes.n[i]);
	procs_end(&p);
	return 0;
}
