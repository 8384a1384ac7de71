/* test_far_lost.c - what was done at its sender and never received: by a process that is killed, or at a port that closes. The port it left from
 * counts it, and is told.
 *
 * Process 0 sends, from a port that is told of events. Process 1 stands still while it is sent to, so that nobody takes anything out of its
 * mailbox, and is killed like that.
 */
#include "pair.h"

/* Whatever comes is told soon; more than @n would have come by the end of a while. */
static void told(struct weft_port *from, struct tally *t, uint64_t n)
{
	EVENTUALLY((uint64_t)t->count >= n);
	for (int i = 0; i < 20; i++)
		crew_nap();
	CHECK_EQ(t->count, n);
	CHECK_EQ(stats_of(from).lost, n);
	if (n)
		CHECK_EQ(t->last.tag, WEFT_LOST);
}

static struct weft_port *source(struct tally *t)
{
	struct weft_port *from = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .event = tally_done, .user = t), &from));
	return from;
}

/* [process 0] Ends it; its death is known here. */
static void kill_one(void)
{
	uint64_t v;
	int r;

	MUST_OK(kill(far_pid(1), SIGKILL));
	r = weft_recv(NULL, far_id(1), 99, &v, 8, SOON, NULL);
	CHECK(r == -ECONNRESET || r == -ESRCH);
}

/* [process 0, process 1] Messages that are received, as many as a reader takes before it says how far it came. */
static void some_sent(struct weft_port *from)
{
	for (uint64_t i = 0; i < 16; i++)
		CHECK_OK(weft_send(from, far_id(1), 1, &i, 8, SOON));
	far_await(1, 1);
}

static void some_received(void)
{
	for (uint64_t i = 0; i < 16; i++)
		CHECK_NEXT(NULL, WEFT_ANY, 1, i);
	far_step(1);
}

FAR(what_a_killed_process_had_not_taken_from_its_mailbox_is_counted_and_told, 2)
{
	enum { SMALL = 20, MIDDLE = 10, BUFFERS = 5 };
	static unsigned char mem[1000];
	struct tally t = { 0 };

	far_join(0);
	if (far_rank == 1) {
		far_may_die();
		some_received();
		for (;;)
			pause();
	} else {
		struct weft_port *from = source(&t);

		some_sent(from);
		far_stop(1);
		for (int i = 0; i < SMALL; i++)
			CHECK_OK(weft_send(from, far_id(1), 3, mem, 8, SOON));
		for (int i = 0; i < MIDDLE; i++)
			CHECK_OK(weft_send(from, far_id(1), 4, mem, sizeof(mem), SOON));
		for (int i = 0; i < BUFFERS; i++) {
			struct weft_buf *b = NULL;

			MUST_OK(weft_buf_get(5000, 0, &b));
			CHECK_OK(weft_buf_send(from, far_id(1), 5, b, SOON));
		}
		CHECK_EQ(t.count, 0);
		kill_one();
		told(from, &t, SMALL + MIDDLE + BUFFERS);
		CHECK_EQ(t.last.from, far_id(1));
		CHECK_EQ(t.last.len, 5000);
		CHECK_OK(weft_port_close(from, SOON));
		CHECK_OK(weft_fini(SOON));
	}
}

enum { LARGE = 50000, ANNOUNCED = 2 };        /* so many to a process are done before anybody takes them */

/* Done, as what has to be sent of them waits for who will fetch it. */
static void send_announced(struct weft_port *from, weft_id to, int n)
{
	unsigned char *mem = memory(LARGE);

	for (int i = 0; i < n; i++)
		CHECK_OK(weft_send(from, to, 6, mem, LARGE, SOON));
	free(mem);
}

FAR(what_was_announced_and_done_and_not_taken_by_a_killed_process_is_counted_and_told, 2)
{
	struct tally t = { 0 };

	far_join(0);
	if (far_rank == 1) {
		unsigned char *mem = memory(LARGE);

		far_may_die();
		some_received();
		CHECK_OK(weft_recv(NULL, WEFT_ANY, 6, mem, LARGE, SOON, NULL));
		far_step(2);
		for (;;)
			pause();
	} else {
		struct weft_port *from = source(&t);

		some_sent(from);
		send_announced(from, far_id(1), ANNOUNCED);
		far_await(1, 2);
		far_stop(1);
		send_announced(from, far_id(1), 1);
		kill_one();
		told(from, &t, ANNOUNCED);
		CHECK_EQ(t.last.len, LARGE);
		CHECK_OK(weft_port_close(from, SOON));
		CHECK_OK(weft_fini(SOON));
	}
}

FAR(what_was_announced_and_done_and_not_taken_at_a_port_that_closes_is_counted_and_told, 2)
{
	struct tally t = { 0 };

	far_join(0);
	EACH_WAY(sends) {
		struct weft_port *port = sends ? source(&t) : port_new(0);

		far_tell(1 + (int)far_rank, port_id(port));
		far_meet();
		if (sends) {
			send_announced(port, (weft_id)far_told(2 - (int)far_rank), ANNOUNCED);
			far_meet();
			told(port, &t, ANNOUNCED);
		} else {
			far_meet();
		}
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

/* In weft, or anywhere. */
static bool sleeps(pid_t pid)
{
	char path[64], text[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	MUST(proc_read(path, text, sizeof(text)) > 0);
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'S';
}

FAR(a_process_that_is_killed_asleep_had_received_what_it_received, 2)
{
	struct tally t = { 0 };

	far_join(0);
	if (far_rank == 1) {
		uint64_t v;

		far_may_die();
		some_received();
		for (uint64_t i = 0; i < 5; i++)
			CHECK_NEXT(NULL, WEFT_ANY, 2, i);
		far_step(2);
		weft_recv(NULL, far_id(0), 50, &v, 8, WEFT_FOREVER, NULL);
	} else {
		struct weft_port *from = source(&t);

		some_sent(from);
		for (uint64_t i = 0; i < 5; i++)
			CHECK_OK(weft_send(from, far_id(1), 2, &i, 8, SOON));
		far_await(1, 2);
		EVENTUALLY(sleeps(far_pid(1)));
		kill_one();
		told(from, &t, 0);
		CHECK_OK(weft_port_close(from, SOON));
		CHECK_OK(weft_fini(SOON));
	}
}

FAR_MAIN
