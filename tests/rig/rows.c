/* rows.c - short messages sent one upon the other, and one alone. usage: weft run --hosts A:1,B:1 ... rows FILE
 *
 * Process 0 sends rows of short messages and waits for an answer after each: they are to share system calls. Behind two long rows it sends one alone and calls weft no more until
 * process 1, which has received it, has made FILE: it is not kept back until somebody happens to look. Says "rows: N messages in M segments" and exits 0.
 */
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

enum { ROWS = 200, ROW = 64, SAY = 1, ANSWER, ALONE };

#define SOON weft_in(20 * WEFT_S)

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "rows: %s: %s\n", what, weft_last_error());
	exit(1);
}

/* Segments with bytes in them that this process has sent over its connections. */
static long segments(void)
{
	DIR *all = opendir("/proc/self/fd");
	long sum = 0;

	for (struct dirent *d; all && (d = readdir(all)) != NULL;) {
		struct tcp_info info = { 0 };
		socklen_t n = sizeof(info);

		if (getsockopt(atoi(d->d_name), IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
			sum += info.tcpi_data_segs_out;
	}
	if (all)
		closedir(all);
	return sum;
}

/* Whether somebody has made @file, within twenty seconds; weft is not called. */
static int made(const char *file)
{
	for (int i = 0; i < 2000; i++) {
		if (access(file, F_OK) == 0)
			return 1;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return 0;
}

static int send_all(const char *file)
{
	struct weft_port *world = weft_port_world();
	long before = 0, n;

	for (int i = 0; i < ROWS; i++) {
		for (long k = 0; k < ROW; k++)
			must(weft_send(world, weft_at(1), SAY, &k, sizeof(k), SOON), "weft_send");
		must(weft_recv(world, weft_at(1), ANSWER, NULL, 0, SOON, NULL), "the answer");
		if (i == 0)
			before = segments();
	}
	n = segments() - before;
	must(weft_send(world, weft_at(1), ALONE, NULL, 0, SOON), "weft_send");
	if (!made(file)) {
		fprintf(stderr, "rows: one that was sent alone has not arrived\n");
		return 1;
	}
	printf("rows: %d messages in %ld segments\n", (ROWS - 1) * ROW, n);
	return 0;
}

static int receive_all(const char *file)
{
	struct weft_port *world = weft_port_world();
	FILE *f;

	for (int i = 0; i < ROWS; i++) {
		for (long k = 0, got = -1; k < ROW; k++) {
			must(weft_recv(world, weft_at(0), SAY, &got, sizeof(got), SOON, NULL), "weft_recv");
			if (got != k) {
				fprintf(stderr, "rows: %ld where %ld was next\n", got, k);
				return 1;
			}
		}
		must(weft_send(world, weft_at(0), ANSWER, NULL, 0, SOON), "the answer");
	}
	must(weft_recv(world, weft_at(0), ALONE, NULL, 0, SOON, NULL), "the one alone");
	f = fopen(file, "w");
	return !f || fclose(f);
}

int main(int argc, char **argv)
{
	int failed;

	if (argc != 2)
		return fprintf(stderr, "usage: rows FILE\n"), 2;
	must(weft_init(NULL), "weft_init");
	failed = atoi(getenv("WEFT_RANK")) == 0 ? send_all(argv[1]) : receive_all(argv[1]);
	must(weft_fini(SOON), "weft_fini");
	return failed;
}
