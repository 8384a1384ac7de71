/* reserve.c - memory that the kernel sets aside for lanes that are busy.
 *
 * What a socket holds is counted, by the page, for the process's control group and for all of TCP, and is given back as soon as it is free: for every message anew, where it is sent and where it is read. What was
 * set aside for a socket (SO_RESERVE_MEM, since Linux 5.16) is counted once. (In turns, sixteen cores of x86-64: 8 B over lo 1.053 -> 1.035 of bare sockets, over a veth 1.042 -> 1.020; 16 KiB 1.001 ->
 * 0.938 and 1.057 -> 1.018; 64 KiB 0.848 -> 0.822 and 0.910 -> 0.877.)
 *
 * No page lies there until it is needed, but it is counted as if: so only a lane that has carried something has it, until it is closed, and only so many of a rail. Where the kernel has no such thing, or
 * the group no such room, all is as without.
 *
 * Any thread that may use the lane. `reserve` is changed once, by whoever is first, and by who closes the lane when nobody else uses it.
 */
#include <sys/socket.h>

#include "net/tcp/tcp.h"

#ifndef SO_RESERVE_MEM
#define SO_RESERVE_MEM 73
#endif

WF_SLOW void wf_tcp_reserve(struct tcp_lane *lane)
{
	struct tcp_rail *rail = lane->rail;
	uint32_t none = TCP_UNASKED;
	int bytes = TCP_RESERVE;

	/* relaxed, here and below: numbers that guard no memory. */
	if (atomic_load_explicit(&rail->reserves, memory_order_relaxed) >= TCP_RESERVES)
		return;                 /* perhaps later */
	if (!atomic_compare_exchange_strong_explicit(&lane->reserve, &none, TCP_RESERVED, memory_order_relaxed, memory_order_relaxed))
		return;
	if (atomic_fetch_add_explicit(&rail->reserves, 1, memory_order_relaxed) < TCP_RESERVES &&
	    setsockopt(lane->fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes, sizeof(bytes)) == 0)
		return;
	atomic_fetch_sub_explicit(&rail->reserves, 1, memory_order_relaxed);
	atomic_store_explicit(&lane->reserve, TCP_REFUSED, memory_order_relaxed);
}

void wf_tcp_reserve_end(struct tcp_lane *lane)
{
	if (atomic_load_explicit(&lane->reserve, memory_order_relaxed) == TCP_RESERVED)
		atomic_fetch_sub_explicit(&lane->rail->reserves, 1, memory_order_relaxed);
	atomic_store_explicit(&lane->reserve, TCP_UNASKED, memory_order_relaxed);
}
