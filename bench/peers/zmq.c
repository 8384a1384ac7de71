/* zmq.c - ZeroMQ PAIR sockets between two threads (inproc), measured as bench/measure.h says.
 * usage: zmq SERIES
 */
#include "../measure.h"
#include <zmq.h>

struct zmq_link {
	struct link l;
	void *socket;
};

static const char *series;
static void *context;
static pthread_barrier_t bound;

static void zmq_link_send(struct link *l, void *mem, size_t n)
{
	if (zmq_send(((struct zmq_link *)l)->socket, mem, n, 0) != (int)n)
		die("zmq_send: %s", zmq_strerror(errno));
}

static void zmq_link_recv(struct link *l, void *mem, size_t n)
{
	if (zmq_recv(((struct zmq_link *)l)->socket, mem, n, 0) != (int)n)
		die("zmq_recv: %s", zmq_strerror(errno));
}

static void zmq_side(int side, void *arg)
{
	static const size_t sizes[] = { 8, 4096, 65536, 1u << 20 };
	struct zmq_link k = { .l = { .send = zmq_link_send, .recv = zmq_link_recv },
			      .socket = zmq_socket(context, ZMQ_PAIR) };
	void *mem = page_memory(1u << 20);

	(void)arg;
	if (side == 0 && zmq_bind(k.socket, "inproc://pair"))
		die("zmq_bind: %s", zmq_strerror(errno));
	pthread_barrier_wait(&bound);
	if (side == 1 && zmq_connect(k.socket, "inproc://pair"))
		die("zmq_connect: %s", zmq_strerror(errno));
	for (size_t i = 0; i < COUNT(sizes); i++)
		lat_sample(&k.l, side, mem, sizes[i], series);
	rate_sample(&k.l, side, mem, series);
	free(mem);
	zmq_close(k.socket);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: zmq SERIES");
	bench_start();
	series = argv[1];
	sleeper_priority(true); /* its threads sleep at every turn: its best figures */
	context = zmq_ctx_new();
	pthread_barrier_init(&bound, NULL, 2);
	pair_run(zmq_side, NULL);
	zmq_ctx_term(context);
	return 0;
}
