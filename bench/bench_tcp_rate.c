/* bench_tcp_rate.c - 8 B messages one way between processes of two hosts (tcp-rate-8; on another network veth-tcp-rate-8).
 * usage: bench/hosts [-v] BUILD_DIR bench_tcp_rate
 *
 * Windows of 64 and an answer, thousands per second; both sides spin:
 *   raw/tcp-packed   a window is one send, received with as few recv as it takes
 *   weft/tcp-send    blocking calls; weft/tcp-posted  64 requests, one wait for all
 */
#include "tcp.h"

static const char *const marks[] = { "-rate-8" };

static void rail_rate_sample(struct tcp_pair *t, struct rail_link *k, void *mem, const char *series)
{
	double v;

	rail_begin(t, k);
	window_check(&k->w.l, t->side);
	v = measure_rate(&k->w.l, t->side, mem);
	rail_end(t, k);
	if (t->side == 0)
		sample(series, "rate", 8, v);
}

int main(void)
{
	struct tcp_pair t = tcp_start();
	struct tcp_link raw = packed_link(&t);
	struct rail_link send = rail_link(weft_link_blocking(t.peer));
	struct rail_link posted = rail_link(weft_link_posted(t.peer));
	void *mem = page_memory(4096);

	if (tcp_skip(&t.p, marks, COUNT(marks)))
		return 0;
	cpu_pin(t.side);
	tcp_spin();
	link_check(&raw.l, t.side, mem, WINDOW * 8);
	for (int r = 0; r < repeats(); r++) {
		rate_sample(&raw.l, t.side, mem, tcp_series("raw", "-packed").name);
		rail_rate_sample(&t, &send, mem, tcp_series("weft", "-send").name);
		rate_sample(&raw.l, t.side, mem, tcp_series("raw", "-packed-again").name);
		rail_rate_sample(&t, &posted, mem, tcp_series("weft", "-posted").name);
	}
	tcp_end(&t);
	return 0;
}
