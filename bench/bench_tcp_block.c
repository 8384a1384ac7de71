/* bench_tcp_block.c - a receiver that sleeps, between processes of two hosts (tcp-block-8; on another network veth-tcp-block-8).
 * usage: bench/hosts [-v] BUILD_DIR bench_tcp_block
 *
 * Half a round trip of 8 B between two processes on two cores, in ns; both sides have real-time priority where it is granted:
 *   raw/tcp-block      send and recv of a blocking socket
 *   weft/tcp-block     weft_send and weft_recv that sleep at once when they wait (spin_ns=0). `sleeps`: voluntary context switches
 *                      of the thread per receive; near 1, or nobody slept
 *   weft/tcp-default   the same as the default settings have it: it spins first
 */
#include "tcp.h"
#include <sys/resource.h>

static const char *const marks[] = { "-block-8" };

static double sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (double)u.ru_nvcsw;
}

int main(void)
{
	struct tcp_pair t = tcp_start();
	struct tcp_link raw = tcp_link(&t, false);
	struct rail_link send = rail_link(weft_link_blocking(t.peer));
	void *mem = page_memory(4096);
	char spin[32] = "";

	if (tcp_skip(&t.p, marks, COUNT(marks)))
		return 0;
	cpu_pin(t.side);
	must(weft_knob_get("spin_ns", spin, sizeof(spin)), "weft_knob_get spin_ns");
	for (int r = 0; r < repeats(); r++) {
		double before;

		sleeper_priority(true);
		must(weft_knob_set("spin_ns", "0"), "weft_knob_set spin_ns");
		lat_sample(&raw.l, t.side, mem, 8, tcp_series("raw", "-block").name);
		before = sleeps();
		rail_lat_sample(&t, &send, mem, 8, tcp_series("weft", "-block").name);
		if (t.side == 0)
			sample(tcp_series("weft", "-block").name, "sleeps", 8, (sleeps() - before) / ((double)send.w.l.carried.in / 8));
		sleeper_priority(false);
		must(weft_knob_set("spin_ns", spin), "weft_knob_set spin_ns");
		rail_lat_sample(&t, &send, mem, 8, tcp_series("weft", "-default").name);
	}
	tcp_end(&t);
	return 0;
}
