/* bench_tcp_lat.c - latency over size between processes of two hosts, beside raw TCP (tcp-lat-8, -16k, -64k; on another network
 * veth-tcp-lat-...).
 * usage: bench/hosts [-v] BUILD_DIR bench_tcp_lat [SIZE...]     without a size: 1 B to 16 MiB
 *
 * Half a round trip between two processes on two cores, in ns; both sides spin:
 *   raw/tcp        send and recv with MSG_DONTWAIT
 *   weft/tcp-send  weft_send and weft_recv
 * One size after the other, best the smallest first: a connection that has carried large messages may be slower with small ones ever
 * after (16 KiB after 64 KiB over a veth: by a third), and both carriers are to have the same past.
 * wire: bytes on weft's TCP connections for each message, as the kernel counts them.
 */
#include "tcp.h"

static const char *const marks[] = { "-lat-8", "-lat-16k", "-lat-64k" };

int main(int argc, char **argv)
{
	struct sizes sizes = sizes_of(argc, argv);
	struct tcp_pair t = tcp_start();
	struct tcp_link raw = tcp_link(&t, true);
	struct rail_link send = rail_link(weft_link_blocking(t.peer));
	void *mem = page_memory(sizes.largest);

	if (tcp_skip(&t.p, marks, COUNT(marks)))
		return 0;
	cpu_pin(t.side);
	tcp_spin();
	for (size_t i = 0; i < sizes.count; i++) {
		for (int r = 0; r < repeats(); r++) {
			lat_sample(&raw.l, t.side, mem, sizes.n[i], tcp_series("raw", "").name);
			rail_lat_sample(&t, &send, mem, sizes.n[i], tcp_series("weft", "-send").name);
		}
	}
	tcp_end(&t);
	return 0;
}
