/* bench_memory.c - memory of 10,000 idle thread ports, bytes each (port-memory).
 *
 * Three children, each with 10,000 threads of 64 KiB stack: they wait for each other only; each has
 * joined weft and then waits as before; each waits in weft_recv, which is the mark. What they take
 * more than the first, divided by their number, are the figures. Counted: anonymous memory, and
 * shared memory whether touched here or only reserved (charged.h). All threads
 * first touch the same depth of stack, so that stacks cancel out.
 */
#include "charged.h"
#include "weft_link.h"
#include <sys/wait.h>

#define THREADS 10000
#define STACK_BYTES 65536
#define STACK_DEPTH 8192

enum kind { BARE, JOINED, RECEIVING };

struct waiting {
	pthread_barrier_t ready, over;
	enum kind kind;
	weft_id id[THREADS];
};

static struct waiting w;

__attribute__((noinline)) static void touch_stack(void)
{
	volatile char deep[STACK_DEPTH];

	for (size_t i = 0; i < sizeof(deep); i += 256)
		deep[i] = 1;
}

static void *waiting_main(void *arg)
{
	size_t me = (size_t)(uintptr_t)arg;
	uint64_t word;

	touch_stack();
	if (w.kind != BARE) {
		w.id[me] = weft_self();
		if (!w.id[me])
			die("weft_self of thread %zu: %s", me, weft_last_error());
	}
	pthread_barrier_wait(&w.ready);
	if (w.kind == RECEIVING)
		must(weft_recv(NULL, WEFT_ANY, LINK_TAG, &word, sizeof(word), WEFT_FOREVER, NULL),
		     "weft_recv");
	else
		pthread_barrier_wait(&w.over);
	return NULL;
}

/* Wait until all are asleep in weft, or the figure would lack what going to sleep takes. */
static void until_parked(void)
{
	struct weft_stats s = { .size = sizeof(s) };

	for (int i = 0; i < 3000 && s.parked < THREADS; i++) {
		must(weft_stats_get(NULL, &s), "weft_stats_get");
		usleep(10000);
	}
	if (s.parked < THREADS)
		die("only %u of %d threads are asleep in weft", s.parked, THREADS);
}

/* The threads go on and end. */
static void release(pthread_t *t)
{
	uint64_t word = 0;

	if (w.kind == RECEIVING)
		for (size_t i = 0; i < THREADS; i++)
			must(weft_send(NULL, w.id[i], LINK_TAG, &word, sizeof(word), WEFT_FOREVER),
			     "weft_send");
	else
		pthread_barrier_wait(&w.over);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* The memory that THREADS waiting threads add; negative: they could not be made. */
static double waiting_bytes(enum kind kind)
{
	static pthread_t t[THREADS];
	pthread_attr_t attr;
	double before, after;

	w.kind = kind;
	pthread_barrier_init(&w.ready, NULL, THREADS + 1);
	pthread_barrier_init(&w.over, NULL, THREADS + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (kind != BARE) {
		must_init();
		weft_self();
	}
	before = private_bytes();
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], &attr, waiting_main, (void *)(uintptr_t)i))
			return -1;
	pthread_barrier_wait(&w.ready);
	if (kind == RECEIVING)
		until_parked();
	after = private_bytes();
	release(t);
	if (kind != BARE)
		must_fini();
	return after - before;
}

static double in_child(enum kind kind)
{
	double bytes = -1;
	int pipes[2], status;
	pid_t child;

	if (pipe(pipes))
		die("pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		bytes = waiting_bytes(kind);
		_exit(write(pipes[1], &bytes, sizeof(bytes)) != sizeof(bytes));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("the child with %d threads broke (kind %d)", THREADS, kind);
	if (read(pipes[0], &bytes, sizeof(bytes)) != sizeof(bytes))
		die("the child did not tell its figure");
	close(pipes[0]);
	close(pipes[1]);
	return bytes;
}

int main(void)
{
	double bare, joined, receiving;

	bench_start();
	bare = in_child(BARE);
	joined = bare < 0 ? -1 : in_child(JOINED);
	receiving = joined < 0 ? -1 : in_child(RECEIVING);
	if (receiving < 0) {
		printf("skip port-memory cannot have %d threads here\n", THREADS);
		return 0;
	}
	sample("raw/thread", "bytes", THREADS, bare / THREADS);
	sample("weft/port-joined", "bytes", THREADS, (joined - bare) / THREADS);
	sample("weft/port", "bytes", THREADS, (receiving - bare) / THREADS);
	return 0;
}
