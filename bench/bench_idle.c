/* bench_idle.c - what waiting costs: per cent of a core while a thread waits 10 s in weft_recv for
 * a message that does not come (idle-cpu). BENCH_IDLE_S: other than 10 s. The whole process is
 * counted, weft's own threads included, from before the thread starts until it has its time-out.
 */
#include "weft_link.h"
#include <sys/resource.h>

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void *idle_main(void *arg)
{
	long seconds = *(const long *)arg;
	uint64_t word;
	int r = weft_recv(NULL, WEFT_ANY, LINK_TAG, &word, sizeof(word), weft_in(seconds * WEFT_S), NULL);

	if (r != -ETIMEDOUT)
		die("weft_recv of nothing: %s", weft_strerror(r));
	return NULL;
}

int main(void)
{
	long seconds = env_number("BENCH_IDLE_S", 10);
	uint64_t start;
	double cpu;

	bench_start();
	must_init();
	cpu = cpu_seconds();
	start = clock_ns();
	pthread_join(thread_start(idle_main, &seconds), NULL);
	cpu = cpu_seconds() - cpu;
	sample("weft/idle", "cpu", 0, 100 * cpu / ((double)(clock_ns() - start) / 1e9));
	must_fini();
	return 0;
}
