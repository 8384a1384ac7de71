/* bench_proc_rate.c - 8 B messages and buffers one way between two processes on two cores (rate-8,
 * rate-8-window, handover-stream). Windows of 64 and an answer, thousands per second.
 * usage: weft run -n 2 bench_proc_rate
 *
 *   raw/proc-ring   the raw ring
 *   weft/proc-send  blocking calls; weft/proc-posted  64 requests, one wait for all
 *   weft/stream     buffers: taken from the pool, handed over, put back by the receiver. Their memory is
 *                   touched in the check before, not while the clock runs: a message of 8 B has its bytes
 *                   in the mailbox, and it is the mailbox and the ways home that are compared
 */
#include "proc.h"
#include "raw_ring.h"

static const size_t stream_bytes[] = { 4096, 65536, 1u << 20 };

struct stream_link {
	struct weft_link w;
	size_t n;
	bool touch;
};

static void stream_send_window(struct link *l, void *mem, size_t n)
{
	struct stream_link *k = (struct stream_link *)l;

	(void)mem;
	(void)n;
	for (uint64_t i = 0; i < WINDOW; i++) {
		struct weft_buf *buf = NULL;

		must(weft_buf_get(k->n, WEFT_RAIL_ANY, &buf), "weft_buf_get");
		if (k->touch)
			memcpy(buf->data, &i, sizeof(i));
		must(weft_buf_send(NULL, k->w.peer, LINK_TAG, buf, WEFT_FOREVER), "weft_buf_send");
	}
}

static void stream_recv_window(struct link *l, void *mem, size_t n)
{
	struct stream_link *k = (struct stream_link *)l;

	(void)mem;
	(void)n;
	for (uint64_t i = 0, got = 0; i < WINDOW; i++) {
		struct weft_buf *buf = NULL;

		must(weft_buf_recv(NULL, k->w.peer, LINK_TAG, WEFT_FOREVER, &buf, NULL), "weft_buf_recv");
		if (buf->len != k->n)
			die("a buffer of %zu bytes arrived with %zu", k->n, buf->len);
		if (k->touch)
			memcpy(&got, buf->data, sizeof(got));
		if (k->touch && got != i)
			die("buffer %llu of a window arrived with wrong contents", (unsigned long long)i);
		must(weft_buf_put(buf), "weft_buf_put");
	}
}

/* The answers go as plain messages. */
static struct stream_link stream_link(weft_id peer, size_t n)
{
	struct stream_link k = { .w = weft_link_blocking(peer), .n = n };

	k.w.l.send_window = stream_send_window;
	k.w.l.recv_window = stream_recv_window;
	return k;
}

static void stream_sample(int side, weft_id peer, size_t n)
{
	struct stream_link k = stream_link(peer, n);
	double v;

	k.touch = true;
	window_steps(&k.w.l, side, NULL, n, 4);
	k.touch = false;
	v = WINDOW * 1e6 / measure(&k.w.l, side, NULL, n, true);
	if (side == 0)
		sample("weft/stream", "rate", n, v);
}

int main(void)
{
	struct procs p = procs_start(2);
	struct ring_link ring;
	struct weft_link send, posted;
	int side = p.rank;
	weft_id peer;
	void *mem;

	if (procs_skip(&p, "rate-8 rate-8-window handover-stream"))
		return 0;
	cpu_pin(side);
	ring = ring_link(procs_memory(&p, 2 * sizeof(struct ring)), side);
	peer = procs_peer(&p, !side);
	send = weft_link_blocking(peer);
	posted = weft_link_posted(peer);
	mem = page_memory(4096);
	window_check(&send.l, side);
	window_check(&posted.l, side);
	for (int r = 0; r < repeats(); r++) {
		rate_sample(&ring.l, side, mem, "raw/proc-ring");
		rate_sample(&send.l, side, mem, "weft/proc-send");
		for (size_t i = 0; i < COUNT(stream_bytes); i++)
			stream_sample(side, peer, stream_bytes[i]);
		rate_sample(&ring.l, side, mem, "raw/proc-ring-again");
		rate_sample(&posted.l, side, mem, "weft/proc-posted");
	}
	procs_end(&p);
	return 0;
}
