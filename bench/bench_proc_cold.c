/* bench_proc_cold.c - 64 MiB to another process for the first time (handover-64m-cold).
 * usage: weft run -n 2 bench_proc_cold
 *
 * From the send to an answer of 8 B, in ns, on two cores:
 *   raw/proc-cold   the raw ring: two copies into memory that the receiver has in use
 *   weft/proc-cold  a weft buffer, got and filled before the clock starts; the receiver has never seen
 *                   its memory, maps it and reads the first line of every page
 * The receiver keeps every buffer until the end, so that each is new to it.
 */
#include "proc.h"
#include "raw_ring.h"
#include "touch.h"

#define COLD_BYTES ((size_t)64 << 20)
#define COLD_TIMES 3

static double ring_once(struct ring_link *ring, int side, void *mem)
{
	uint64_t answer = 0, start = clock_ns();

	if (side == 0) {
		ring_send(&ring->l, mem, COLD_BYTES);
		ring_recv(&ring->l, &answer, sizeof(answer));
	} else {
		ring_recv(&ring->l, mem, COLD_BYTES);
		ring_send(&ring->l, &answer, sizeof(answer));
	}
	return (double)(clock_ns() - start);
}

/* Gives the buffer that side 1 has then. */
static struct weft_buf *buf_once(struct procs *p, weft_id peer, double *ns)
{
	struct touch t = touch_of(COLD_BYTES);
	struct weft_buf *buf = NULL;
	uint64_t answer = 0, start;

	if (p->rank == 0) {
		must(weft_buf_get(COLD_BYTES, WEFT_RAIL_ANY, &buf), "weft_buf_get of 64 MiB");
		memset(buf->data, 1, COLD_BYTES);
		touch_write(&t, buf->data);
	}
	procs_meet(p);
	start = clock_ns();
	if (p->rank == 0) {
		must(weft_buf_send(NULL, peer, LINK_TAG, buf, WEFT_FOREVER), "weft_buf_send");
		must(weft_recv(NULL, peer, LINK_TAG, &answer, sizeof(answer), WEFT_FOREVER, NULL),
		     "weft_recv");
	} else {
		must(weft_buf_recv(NULL, peer, LINK_TAG, WEFT_FOREVER, &buf, NULL), "weft_buf_recv");
		touch_read(&t, buf->data);
		must(weft_send(NULL, peer, LINK_TAG, &answer, sizeof(answer), WEFT_FOREVER), "weft_send");
	}
	*ns = (double)(clock_ns() - start);
	return p->rank == 1 ? buf : NULL;
}

int main(void)
{
	struct procs p = procs_start(2);
	struct weft_buf *kept[COLD_TIMES];
	struct ring_link ring;
	weft_id peer;
	void *mem;

	if (procs_skip(&p, "handover-64m-cold"))
		return 0;
	cpu_pin(p.rank);
	ring = ring_link(procs_memory(&p, 2 * sizeof(struct ring)), p.rank);
	peer = procs_peer(&p, !p.rank);
	mem = page_memory(COLD_BYTES);
	ring_once(&ring, p.rank, mem);
	for (int i = 0; i < COLD_TIMES; i++) {
		double raw, own;

		procs_meet(&p);
		raw = ring_once(&ring, p.rank, mem);
		kept[i] = buf_once(&p, peer, &own);
		if (p.rank == 0) {
			sample("raw/proc-cold", "lat", COLD_BYTES, raw);
			sample("weft/proc-cold", "lat", COLD_BYTES, own);
		}
	}
	for (int i = 0; i < COLD_TIMES; i++)
		must(weft_buf_put(kept[i]), "weft_buf_put");
	procs_end(&p);
	return 0;
}
