/* call.c - what an MPI call costs over weft's own (mpi-over): the same ping-pong of 8 B between the same two processes, by
 * MPI_Send and MPI_Recv, and by weft_send and weft_recv on a port of a context, in turns.
 * usage: weft run -n 2 call
 */
#include "link.h"
#include "../weft_link.h"

#define TURNS 6

struct port_link {
	struct link l;
	struct weft_port *port;
	weft_id peer;
};

static void port_send(struct link *l, void *mem, size_t n)
{
	struct port_link *k = (struct port_link *)l;

	must(weft_send(k->port, k->peer, LINK_TAG, mem, n, WEFT_FOREVER), "weft_send");
}

static void port_recv(struct link *l, void *mem, size_t n)
{
	struct port_link *k = (struct port_link *)l;

	must(weft_recv(k->port, k->peer, LINK_TAG, mem, n, WEFT_FOREVER, NULL), "weft_recv");
}

int main(int argc, char **argv)
{
	int rank = mpi_start(&argc, &argv, false);
	struct mpi_link mpi = mpi_link(MPI_COMM_WORLD, !rank, 1, 1);
	struct port_link own = { .l = { .send = port_send, .recv = port_recv }, .peer = weft_at((uint32_t)!rank) };
	uint64_t word = 0;

	must(weft_port_open(WEFT(port_opts, .channel = "bench", .like = weft_port_world()), &own.port), "weft_port_open");
	cpu_pin(rank);
	for (int i = 0; i < TURNS; i++) {
		lat_sample(&own.l, rank, &word, sizeof(word), "weft/port");
		lat_sample(&mpi.l, rank, &word, sizeof(word), "weft/mpi-call");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	weft_port_close(own.port, weft_in(5 * WEFT_S));
	MPI_Finalize();
	return 0;
}
