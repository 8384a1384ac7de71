/* test_close.c - closing a port while it is busy, for every operation there is; and leaving. */
#include <poll.h>
#include "crew.h"

enum { LARGE = 1 << 20 };

/* What another thread is doing when the port is closed under it. */
struct busy {
	struct weft_port *port;
	weft_id to;
	void *mem;
	int result;
};

static void busy_recv(void *arg)
{
	struct busy *b = arg;

	b->result = weft_recv(b->port, WEFT_ANY, 1, b->mem, LARGE, WEFT_FOREVER, NULL);
}

static void busy_buf_recv(void *arg)
{
	struct busy *b = arg;
	struct weft_buf *buf = NULL;

	b->result = weft_buf_recv(b->port, WEFT_ANY, 1, WEFT_FOREVER, &buf, NULL);
}

static void busy_probe(void *arg)
{
	struct busy *b = arg;

	b->result = weft_probe(b->port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, NULL, NULL);
}

static void busy_matched_probe(void *arg)
{
	struct busy *b = arg;
	struct weft_msg *msg = NULL;

	b->result = weft_probe(b->port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, &msg, NULL);
}

static void busy_send(void *arg)
{
	struct busy *b = arg;

	b->result = weft_send(b->port, b->to, 1, b->mem, LARGE, WEFT_FOREVER);
}

static void busy_small_send(void *arg)
{
	struct busy *b = arg;

	b->result = weft_send(b->port, b->to, 1, b->mem, 8, WEFT_FOREVER);
}

static void busy_buf_send(void *arg)
{
	struct busy *b = arg;
	struct weft_buf *buf = NULL;

	MUST_OK(weft_buf_get(100, 0, &buf));
	b->result = weft_buf_send(b->port, b->to, 1, buf, WEFT_FOREVER);
	CHECK_OK(weft_buf_put(buf));
}

static void close_under(void (*what)(void *), struct busy *b, struct weft_port *closed, int expected)
{
	struct mate mate;

	mate_start(&mate);
	uint32_t parked = stats_of(NULL).parked;
	b->mem = memory(LARGE);
	b->result = 1;
	mate_begin(&mate, what, b);
	EVENTUALLY(stats_of(NULL).parked > parked);
	CHECK_OK(weft_port_close(closed, SOON));
	mate_wait(&mate);
	CHECK_EQ(b->result, expected);
	mate_stop(&mate);
	free(b->mem);
}

TEST(a_blocked_receive_or_probe_ends_cancelled_when_its_port_closes)
{
	void (*const what[])(void *) = { busy_recv, busy_buf_recv, busy_probe, busy_matched_probe };

	job_begin(0);
	for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct busy b = { .port = port_new(0) };

		close_under(what[i], &b, b.port, -ECANCELED);
	}
	job_end();
}

TEST(a_blocked_send_ends_reset_when_the_port_it_goes_to_closes)
{
	void (*const what[])(void *) = { busy_send, busy_small_send, busy_buf_send };

	job_begin(64 << 10);
	for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct weft_port *to = port_new(0);
		struct busy b = { .port = port_new(0), .to = port_id(to) };

		if (i > 0)      /* what would go at once waits when the budget is used up */
			budget_fill(b.port, b.to, 2);
		close_under(what[i], &b, to, -ECONNRESET);
		CHECK_OK(weft_port_close(b.port, SOON));
	}
	job_end();
}

TEST(posted_receives_end_cancelled_by_request_callback_and_queue_when_their_port_closes)
{
	struct weft_queue *queue = NULL;
	struct tally tally[2] = { 0 };
	struct weft_req *req = NULL, *alloc = NULL;
	struct weft_status st[3];
	uint64_t got;

	job_begin(0);
	struct weft_port *to = port_new(0);
	struct weft_op op = { .size = sizeof(op), .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8 };
	MUST_OK(weft_queue_open(&queue));
	MUST_OK(weft_recv_post(to, &op, &req, NULL));
	MUST_OK(weft_recv_post(to, WEFT(op, .flags = WEFT_ALLOC, .peer = WEFT_ANY, .tag = 2), &alloc, NULL));
	/* An unobserved one too. */
	MUST_OK(weft_recv_post(to, &op, NULL, NULL));
	for (uint32_t repeat = 0; repeat < 2; repeat++) {
		op.flags = repeat ? WEFT_REPEAT : 0;
		op.done = tally_done;
		op.user = &tally[repeat];
		MUST_OK(weft_recv_post(to, &op, NULL, NULL));
		/* Into a queue a repeating one needs a buffer each time. */
		MUST_OK(weft_recv_post(to,
				       WEFT(op, .flags = repeat ? WEFT_REPEAT | WEFT_ALLOC : 0,
					    .peer = WEFT_ANY, .tag = 1, .queue = queue),
				       NULL, NULL));
	}
	CHECK_EQ(weft_queue_close(queue), -EBUSY);
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(weft_req_wait(&req, SOON, &st[0]), -ECANCELED);
	CHECK_EQ(st[0].err, -ECANCELED);
	CHECK_EQ(weft_req_wait(&alloc, SOON, NULL), -ECANCELED);
	for (int i = 0; i < 2; i++) {
		EVENTUALLY(atomic_load(&tally[i].count) == 1);
		CHECK_EQ(tally[i].last.err, -ECANCELED);
		CHECK(!(tally[i].last.flags & WEFT_ST_MORE));
		CHECK_EQ(weft_queue_next(queue, SOON, st, 1), 1);
		CHECK_EQ(st[0].err, -ECANCELED);
		CHECK(!(st[0].flags & WEFT_ST_MORE));
	}
	CHECK_EQ(weft_queue_next(queue, WEFT_NOW, st, 1), -EAGAIN);
	CHECK_OK(weft_queue_close(queue));
	job_end();
	CHECK_EQ(tally[0].count + tally[1].count, 2);
}

TEST(posted_sends_that_were_not_received_end_reset_when_the_port_they_go_to_closes)
{
	unsigned char *mem = memory(LARGE);
	struct weft_req *req[6] = { NULL };
	struct weft_buf *buf = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	weft_id gone = port_id(to);
	MUST_OK(send_post(from, 0, gone, 1, mem, LARGE, &req[0]));
	MUST_OK(send_post(from, WEFT_SYNC, gone, 1, mem, 8, &req[1]));
	/* One in the queue of the receiver, one still in its mailbox ... */
	CHECK_NOTHING(to, WEFT_ANY, 9);
	MUST_OK(send_post(from, WEFT_RENDEZVOUS, gone, 1, mem, 8, &req[2]));
	MUST_OK(weft_buf_get(1000, 0, &buf));
	MUST_OK(weft_send_post(from, WEFT(op, .flags = WEFT_SYNC, .peer = gone, .tag = 1, .buf = buf),
			       &req[3]));
	/* ... and two that wait to enter it. */
	uint64_t n = mailbox_fill(from, gone, 1), before = stats_of(NULL).lost;
	MUST_OK(send_post(from, 0, gone, 1, mem, 8, &req[4]));
	MUST_OK(send_post(from, WEFT_SYNC, gone, 1, mem, 8, &req[5]));
	CHECK_OK(weft_port_close(to, SOON));
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(weft_req_wait(&req[i], SOON, &st), -ECONNRESET);
		CHECK_EQ(st.err, -ECONNRESET);
		CHECK(st.from == gone);
	}
	/* What was done and not received is lost and counted; what was not done has told so. */
	CHECK_EQ(stats_of(NULL).lost - before, n);
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
	free(mem);
}

struct slow {
	weft_id from;
	unsigned char *got;
};

static void slow_recv(void *arg)
{
	struct slow *s = arg;

	for (weft_time past = weft_in(30 * WEFT_MS); weft_now() < past; )
		crew_nap();
	CHECK_OK(weft_recv(NULL, s->from, 1, s->got, LARGE, SOON, NULL));
}

TEST(sends_of_a_port_that_closes_drain)
{
	unsigned char *mem = memory(LARGE);
	struct weft_req *req = NULL;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0);
	struct slow slow = { port_id(from), memory(LARGE) };
	pattern_put(mem, LARGE, 3);
	MUST_OK(send_post(from, 0, mate.id, 1, mem, LARGE, &req));
	mate_begin(&mate, slow_recv, &slow);
	CHECK_OK(weft_port_close(from, WEFT_FOREVER));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	mate_wait(&mate);
	CHECK(pattern_ok(slow.got, LARGE, 3));
	mate_stop(&mate);
	job_end();
	free(mem);
	free(slow.got);
}

TEST(sends_that_do_not_drain_in_time_are_cancelled_and_the_port_is_closed_all_the_same)
{
	unsigned char *mem = memory(LARGE);

	job_begin(0);
	struct weft_port *to = port_new(0);
	for (int i = 0; i < 2; i++) {
		struct weft_port *from = port_new(0);
		struct weft_req *large = NULL, *waits = NULL;
		weft_id id = port_id(from);
		uint64_t v = 1000, n;

		MUST_OK(send_post(from, 0, port_id(to), 2, mem, LARGE, &large));
		n = mailbox_fill(from, port_id(to), 1);
		MUST_OK(send_post(from, 0, port_id(to), 1, &v, 8, &waits));
		CHECK_EQ(weft_port_close(from, i ? WEFT_NOW : weft_in(5 * WEFT_MS)),
			 i ? -EAGAIN : -ETIMEDOUT);
		CHECK_EQ(weft_req_wait(&large, SOON, NULL), -ECANCELED);
		/* One that could still enter the mailbox is there like those that had. */
		int r = weft_req_wait(&waits, SOON, NULL);
		CHECK(r == 0 || r == -ECANCELED);
		CHECK_EQ(weft_send(NULL, id, 1, &v, 8, SOON), -ESRCH);
		for (uint64_t k = 0; k < n; k++)
			CHECK_NEXT(to, WEFT_ANY, 1, k);
		if (r == 0)
			CHECK_NEXT(to, WEFT_ANY, 1, v);
		CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	}
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
	free(mem);
}

TEST(a_message_taken_by_a_matched_probe_survives_the_close_of_the_port_it_came_to)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, LARGE, 3);
	MUST_OK(send_post(from, 0, port_id(to), 1, mem, LARGE, &req));
	MUST_OK(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .tag = 1), SOON, &msg, NULL));
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_OK(recv_op(NULL, WEFT(op, .msg = msg, .data = got, .len = LARGE), NULL));
	CHECK(pattern_ok(got, LARGE, 3));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
	free(mem);
	free(got);
}

static int closed_by_another;

static void other_closes(void *arg)
{
	closed_by_another = weft_port_close(arg, SOON);
}

TEST(only_an_opened_port_is_closed_and_an_owned_one_only_by_its_opener)
{
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	CHECK_OK(weft_port_close(NULL, SOON));
	CHECK_EQ(weft_port_close(weft_port_world(), SOON), -EPERM);
	struct weft_port *owned = port_new(WEFT_PORT_OWNED), *shared = port_new(0);
	mate_run(&mate, other_closes, owned);
	CHECK_EQ(closed_by_another, -EPERM);
	mate_run(&mate, other_closes, shared);
	CHECK_EQ(closed_by_another, 0);
	CHECK_OK(weft_port_close(owned, SOON));
	mate_stop(&mate);
	job_end();
}

TEST(an_id_that_has_ended_is_never_mistaken_for_a_later_one)
{
	enum { N = 3000 };
	static weft_id ids[N];
	uint64_t v = 1;

	job_begin(0);
	for (int i = 0; i < N; i++) {
		struct weft_port *port = port_new(0);

		ids[i] = port_id(port);
		CHECK(i == 0 || ids[i] != ids[i - 1]);
		CHECK_OK(weft_port_close(port, SOON));
	}
	struct weft_port *last = port_new(0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(weft_send(NULL, ids[i], 1, &v, 8, SOON), -ESRCH);
	CHECK_NOTHING(last, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_OK(weft_port_close(last, SOON));
	job_end();
}

TEST(leaving_the_job_cancels_what_does_not_drain_and_says_so)
{
	struct weft_req *recv = NULL, *send = NULL;
	uint64_t v = 1, got;

	MUST_OK(weft_init(NULL));
	MUST_OK(weft_init(NULL));
	struct weft_port *to = port_new(0);
	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, &got, 8, &recv));
	MUST_OK(send_post(NULL, WEFT_SYNC, port_id(to), 1, &v, 8, &send));
	/* Counted: the first of two leaves nothing. */
	CHECK_OK(weft_fini(SOON));
	CHECK_EQ(weft_req_peek(recv, NULL), -EAGAIN);
	CHECK_EQ(weft_fini(weft_in(5 * WEFT_MS)), -ETIMEDOUT);
	CHECK_EQ(weft_fini(SOON), -ENOTCONN);
	CHECK_EQ(weft_send(NULL, 1, 1, &v, 8, SOON), -ENOTCONN);
	/* And joining again begins anew. */
	job_begin(0);
	CHECK_OK(weft_send(NULL, weft_self(), 1, &v, 8, SOON));
	CHECK_NEXT(NULL, weft_self(), 1, 1);
	job_end();
}

TEST_MAIN
