/* quitter.c - a job in which some end the whole of it, and the others are busy.
 *
 *   quitter RANKS CODE WHY HOW...   the comma-separated RANKS call weft_job_abort(CODE, WHY), the first of them with CODE, the next with
 *                                   CODE + 1 ...; rank r of the others spends its time as HOW number r (modulo their count) says:
 *     sleep, spin, recv (waits for a message), wait (for a posted receive), stop (stops itself), tree (has children in other sessions),
 *     exit=N (ends with N at once)
 *   HOW number 0 may be threads: who aborts does it with 8 threads; or signal: when a SIGUSR1 comes, which the others ignore
 *   quitter outside                 calls it where it must return, and prints the answers
 *
 * Who aborts waits until all others are busy, and prints the instant.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#define THREADS 8

static int code;
static const char *why;

/* The place of @rank in the list, or -1. */
static int place_in(const char *list, long rank)
{
	int place = 0;
	char *end;

	for (;; place++) {
		if (strtol(list, &end, 10) == rank && end != list)
			return place;
		if (*end != ',')
			return -1;
		list = end + 1;
	}
}

static void *abort_here(void *barrier)
{
	if (barrier)
		pthread_barrier_wait(barrier);
	weft_job_abort(code, why);
	puts("it came back");
	return NULL;
}

static void abort_by_threads(void)
{
	pthread_barrier_t barrier;
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, abort_here, &barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void await_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	puts("waits");
	fflush(stdout);
	sigwait(&set, &sig);
}

static int be_busy(const char *how)
{
	char text[8];
	struct weft_req *req;
	volatile unsigned turns = 0;

	if (!strcmp(how, "recv"))
		return weft_recv(NULL, WEFT_ANY, 99, text, sizeof(text), WEFT_FOREVER, NULL);
	if (!strcmp(how, "wait") &&
	    weft_recv_post(NULL, WEFT(op, .peer = WEFT_ANY, .tag = 99, .data = text, .len = sizeof(text)), &req, NULL) == 0)
		return weft_req_wait(&req, WEFT_FOREVER, NULL);
	if (!strcmp(how, "stop"))
		raise(SIGSTOP);
	if (!strcmp(how, "tree") && system("setsid sleep 3600 & (setsid sleep 3600 & sleep 3600) &") < 0)
		return 1;
	for (;;)
		if (!strcmp(how, "spin"))
			turns++;
		else
			pause();
}

/* Where there is no job to end. */
static int outside(void)
{
	pid_t child;

	printf("before: %d\n", weft_job_abort(5, "early"));
	if (weft_init(NULL) < 0)
		return 98;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		printf("in a child: %d\n", weft_job_abort(5, "child"));
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	weft_fini(WEFT_FOREVER);
	printf("after: %d, %s\n", weft_job_abort(5, "late"), *weft_last_error() ? "in words" : "no words");
	return 0;
}

int main(int argc, char **argv)
{
	const char *rank_text = getenv("WEFT_RANK"), *size_text = getenv("WEFT_SIZE");
	long rank = rank_text ? atol(rank_text) : 0, size = size_text ? atol(size_text) : 1;
	int mine;
	sigset_t set;
	const char *how;

	if (argc == 2 && !strcmp(argv[1], "outside"))
		return outside();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (argc < 5 || weft_init(NULL) < 0)
		return 99;
	mine = place_in(argv[1], rank);
	how = argv[4 + rank % (argc - 4)];
	code = atoi(argv[2]) + mine;
	why = strcmp(argv[3], "NULL") ? argv[3] : NULL;
	if (mine < 0) {
		if (!strncmp(how, "exit=", 5))
			_exit(atoi(how + 5));
		for (long r = 0; r < size; r++)
			if (place_in(argv[1], r) >= 0)
				weft_send(weft_port_world(), weft_at((uint32_t)r), 1, NULL, 0, WEFT_FOREVER);
		return be_busy(how);
	}
	for (long r = 0; r < size; r++)
		if (place_in(argv[1], r) < 0)           /* or it has ended */
			weft_recv(weft_port_world(), weft_at((uint32_t)r), 1, NULL, 0, WEFT_FOREVER, NULL);
	if (!strcmp(argv[4], "signal"))
		await_signal();
	printf("abort at %" PRId64 "\n", weft_now());
	fflush(stdout);
	if (!strcmp(argv[4], "threads"))
		abort_by_threads();
	else
		abort_here(NULL);
	return 97;
}
