/* linger.c - how long who closes a port, and leaves, is held up by one who reads nothing. usage: weft run --hosts A:1,B:1 ... linger stopped|deaf
 *
 * Process 1 says who it is and receives nothing any more; with `stopped` it does not even run, until somebody lets it go on. Process 0 posts to it more than fits anywhere, short, long
 * and urgent, from a port of its own and from the process's, closes that port with 300 ms to spare and leaves with 300 ms more. It says
 * "linger: closed R after T ms, N of M over, left R after T ms" and exits 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

enum { SENDS = 800, LONG = 1 << 20, SPARE = 300, HERE = 1 };

#define SOON weft_in(20 * WEFT_S)

static const size_t lengths[] = { 8, 3000, 40000, LONG };
static char memory[LONG];

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "linger: %s: %s\n", what, weft_last_error());
	exit(1);
}

static int post(struct weft_port *from, weft_id to, struct weft_req **req)
{
	int n = 0;

	for (size_t i = 0; i < SENDS; i++) {
		struct weft_op op = { .size = sizeof(op), .peer = to, .tag = 2, .data = memory, .len = lengths[i % 4], .prio = i % 16 == 5 ? 3 : 0,
				      .flags = i % 8 == 7 ? WEFT_SYNC : 0 };
		int r = weft_send_post(from, &op, &req[i]);

		must(r, "weft_send_post");
		n += req[i] != NULL;
	}
	return n;
}

/* How many of them are over; what is not is left to weft_fini. */
static int over(struct weft_req **req)
{
	int n = 0;

	for (size_t i = 0; i < SENDS; i++)
		n += req[i] && weft_req_wait(&req[i], WEFT_NOW, NULL) != -EAGAIN;
	return n;
}

static int64_t ms_since(weft_time began)
{
	return (weft_now() - began) / WEFT_MS;
}

static void hear_nothing(bool stopped)
{
	must(weft_send(weft_port_world(), weft_at(0), HERE, NULL, 0, SOON), "to say who it is");
	must(weft_recv(weft_port_world(), weft_at(0), HERE, NULL, 0, SOON, NULL), "the answer");
	printf("ready\n");
	fflush(stdout);
	if (stopped)
		raise(SIGSTOP);
	nanosleep(&(struct timespec){ .tv_sec = 60 }, NULL);    /* it is killed when the other has gone */
}

static void leave(void)
{
	struct weft_req *of_port[SENDS] = { NULL }, *of_world[SENDS] = { NULL };
	struct weft_port_opts opts = { .size = sizeof(opts) };
	struct weft_port *port;
	struct weft_status st;
	int closed, left, posted, ended;
	int64_t close_ms;
	weft_time began;

	must(weft_port_open(&opts, &port), "weft_port_open");
	must(weft_recv(weft_port_world(), weft_at(1), HERE, NULL, 0, SOON, &st), "the other");
	must(weft_send(weft_port_world(), st.from, HERE, NULL, 0, SOON), "to answer");
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	posted = post(port, st.from, of_port);
	post(weft_port_world(), st.from, of_world);
	began = weft_now();
	closed = weft_port_close(port, weft_in(SPARE * WEFT_MS));
	close_ms = ms_since(began);
	ended = over(of_port);
	began = weft_now();
	left = weft_fini(weft_in(SPARE * WEFT_MS));
	printf("linger: closed %d after %lld ms, %d of %d over, left %d after %lld ms\n", closed, (long long)close_ms, ended, posted, left,
	       (long long)ms_since(began));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return fprintf(stderr, "usage: linger stopped|deaf\n"), 2;
	must(weft_init(NULL), "weft_init");
	if (atoi(getenv("WEFT_RANK")) == 1)
		hear_nothing(!strcmp(argv[1], "stopped"));
	else
		leave();
	return 0;
}
