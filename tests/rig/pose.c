/* pose.c - two processes of a job on two hosts that hold still, to be looked at from outside.
 *
 * usage: weft run --hosts A:1,B:1 ... pose [COUNT [WORD]]
 * They meet, process 1 has COUNT messages announced to process 0, which nobody receives, and each says what it sees of the other and
 * `pose: ready`. SIGUSR2: process 0 posts receives for all of them. SIGUSR1: all is awaited, and both end. While it waits for signals no
 * thread of the program is in weft.
 * With COUNT -1 they do not even meet. With a second word each has posted a receive from the other, so that it finds out when that is gone.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/driver.h>
#include <weft/weft.h>

#define MOST 1000
#define LEN 100000
#define PATIENCE (30 * WEFT_S)

static int rank, other, count;
static struct weft_req *reqs[MOST], *death;
static char payload[LEN], room[MOST][LEN];

static int wrong(const char *what, int r)
{
	fprintf(stderr, "pose: process %d: %s: %d %s\n", rank, what, r, weft_last_error());
	return 1;
}

static int meet(void)
{
	struct weft_port *world = weft_port_world();
	int r = weft_send(world, weft_at((uint32_t)other), 1, "", 1, weft_in(PATIENCE));

	return r < 0 ? r : weft_recv(world, weft_at((uint32_t)other), 1, payload, sizeof(payload), weft_in(PATIENCE), NULL);
}

static int announce(void)
{
	for (int i = 0; i < count; i++) {
		int r = weft_send_post(weft_port_world(), WEFT(op, .peer = weft_at((uint32_t)other), .tag = 2, .data = payload, .len = LEN,
							       .flags = WEFT_RENDEZVOUS), &reqs[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int receive(void)
{
	for (int i = 0; i < count; i++) {
		int r = weft_recv_post(weft_port_world(), WEFT(op, .peer = weft_at((uint32_t)other), .tag = 2, .data = room[i], .len = LEN),
				       &reqs[i], NULL);

		if (r < 0)
			return r;
	}
	return 0;
}

static int await(void)
{
	for (int i = 0; i < count; i++) {
		int r = reqs[i] ? weft_req_wait(&reqs[i], weft_in(PATIENCE), NULL) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* What this process itself can see of the other: whether it is reached, and the lanes. */
static int look(void)
{
	struct weft_state_item item = { .size = sizeof(item) };
	struct weft_state *state;
	int r = weft_state_open(0, &state), lanes = 0, reached = 0;

	if (r < 0)
		return r;
	while (weft_state_next(state, &item) == 0) {
		lanes += item.kind == WEFT_STATE_RAIL && item.age > 0;
		reached += item.kind == WEFT_STATE_PEER && !strcmp(item.text, "of another host, reached");
	}
	weft_state_close(state);
	printf("pose: reached %d, lanes %s\n", reached, lanes ? "some" : "none");
	return 0;
}

int main(int argc, char **argv)
{
	sigset_t set;
	int sig, r;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (getenv("POSE_DRIVER") && (r = weft_driver_load(getenv("POSE_DRIVER"))) < 0)
		return wrong("weft_driver_load", r);
	r = weft_init(NULL);
	if (r < 0)
		return wrong("weft_init", r);
	rank = getenv("WEFT_RANK") ? atoi(getenv("WEFT_RANK")) : 0;
	other = !rank;
	count = argc > 1 ? atoi(argv[1]) : 0;
	if (count > MOST || (count >= 0 && (r = meet()) < 0))
		return wrong("it meets nobody", r);
	if (rank == 1 && (r = announce()) < 0)
		return wrong("a send", r);
	if (argc > 2 && (r = weft_recv_post(weft_port_world(), WEFT(op, .peer = weft_at((uint32_t)other), .tag = 3), &death, NULL)) < 0)
		return wrong("a receive", r);
	r = look();
	if (r < 0)
		return wrong("a look at itself", r);
	printf("pose: ready\n");
	fflush(stdout);
	while (sigwait(&set, &sig) == 0 && sig == SIGUSR2)
		if (rank == 0 && (r = receive()) < 0)
			return wrong("a receive", r);
	if (death)
		weft_req_cancel(death);
	r = await();
	if (r < 0)
		return wrong("the end of a message", r);
	r = weft_fini(weft_in(PATIENCE));
	return r < 0 ? wrong("weft_fini", r) : 0;
}
