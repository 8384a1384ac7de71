/* gauge.c - a process of a job on several hosts that measures something: joins, starts two threads, tells the others who they are, lets them do
 * what was asked for, leaves.
 *
 *   weft run --hosts ... gauge WHAT MS [NUMBER]
 *
 * Prints lines of words and numbers, which promises reads; what they should be is not known here.
 */
#include "gauge.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PATIENCE (60 * WEFT_S)

uint32_t rank, size;
weft_id ids[PROCESSES][THREADS];
int64_t period;
int arg;
weft_time began;

static pthread_barrier_t named, told;

static const struct {
	const char *name;
	void (*run)(uint32_t thread);
} what[] = {
	{ "stream", gauge_stream }, { "stuck", gauge_stuck }, { "urgent", gauge_urgent }, { "idle", gauge_idle }, { "overlap", gauge_overlap },
	{ "left", gauge_left },
};
static void (*chosen)(uint32_t thread);

void say(const char *fmt, ...)
{
	char text[4000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("gauge %u: %s\n", rank, text);
}

void must(int r, const char *did)
{
	if (r >= 0)
		return;
	fprintf(stderr, "gauge: process %u: %s: %d %s\n", rank, did, r, weft_last_error());
	exit(1);
}

static int rising(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

double part_of(double *of, size_t n, double percent)
{
	if (n == 0)
		return 0;
	qsort(of, n, sizeof(*of), rising);
	return of[(size_t)((double)(n - 1) * percent / 100)];
}

static void *thread(void *number)
{
	uint32_t i = (uint32_t)(uintptr_t)number;

	ids[rank][i] = weft_self();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	chosen(i);
	return NULL;
}

/* Each tells each who its threads are; at the end, that it is done. */
static void meet(uint64_t tag)
{
	struct weft_port *world = weft_port_world();
	struct weft_status st;

	for (uint32_t i = 0; i < size; i++)
		if (i != rank)
			must(weft_send(world, weft_at(i), tag, ids[rank], sizeof(ids[rank]), weft_in(PATIENCE)), "to meet");
	for (uint32_t i = 0; i < size; i++)
		if (i != rank)
			must(weft_recv(world, weft_at(i), tag, ids[i], sizeof(ids[i]), weft_in(PATIENCE), &st), "to be met");
}

static void run(void)
{
	pthread_t of[THREADS];

	pthread_barrier_init(&named, NULL, THREADS + 1);
	pthread_barrier_init(&told, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&of[i], NULL, thread, (void *)i))
			abort();
	pthread_barrier_wait(&named);
	meet(1);
	meet(2);                /* all have met: now all begin */
	began = weft_now();
	pthread_barrier_wait(&told);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(of[i], NULL);
	meet(3);
}

int main(int argc, char **argv)
{
	struct rusage u;

	if (argc < 3 || !getenv("WEFT_SIZE") || (size = (uint32_t)atoi(getenv("WEFT_SIZE"))) > PROCESSES)
		return fprintf(stderr, "usage: weft run --hosts ... gauge WHAT MS [NUMBER]\n"), 2;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++)
		if (!strcmp(argv[1], what[i].name))
			chosen = what[i].run;
	if (!chosen)
		return fprintf(stderr, "gauge: what is %s?\n", argv[1]), 2;
	rank = (uint32_t)atoi(getenv("WEFT_RANK"));
	period = atoi(argv[2]) * WEFT_MS;
	arg = argc > 3 ? atoi(argv[3]) : 0;
	must(weft_init(NULL), "to join");
	run();
	getrusage(RUSAGE_SELF, &u);
	say("peak %ld", u.ru_maxrss);
	must(weft_fini(weft_in(5 * WEFT_S)), "to leave");
	return 0;
}
