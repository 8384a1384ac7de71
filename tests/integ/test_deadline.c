/* test_deadline.c - a deadline takes back what the call itself began; a wait's deadline ends the
 * wait, not the operation; no wait outlives the death of all it could wait for. */
#include "crew.h"

enum { LARGE = 1 << 20 };

/* Deadlines that pass while the test waits for them, and ones that passed before. */
static weft_time brief(void)
{
	return weft_in(5 * WEFT_MS);
}

TEST(a_receives_deadline_takes_the_receive_back)
{
	uint64_t v = 1, got = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_EQ(weft_recv(to, WEFT_ANY, 1, &got, 8, WEFT_NOW, NULL), -EAGAIN);
	CHECK_EQ(weft_recv(to, WEFT_ANY, 1, &got, 8, weft_in(-1), NULL), -ETIMEDOUT);
	CHECK_EQ(weft_recv(to, WEFT_ANY, 1, &got, 8, brief(), NULL), -ETIMEDOUT);
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_EQ(got, 0);
	ports_close(from, to);
	job_end();
}

TEST(a_sends_deadline_takes_the_message_back)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 1000000;

	job_begin(64 << 10);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_EQ(weft_send(from, port_id(to), 1, mem, LARGE, WEFT_NOW), -EAGAIN);
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_EQ(weft_send(from, port_id(to), 1, mem, LARGE, brief()), -ETIMEDOUT);
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	/* Also a small one that found the budget used up. */
	uint64_t n = budget_fill(from, port_id(to), 1);
	CHECK_EQ(weft_send(from, port_id(to), 1, &v, 8, brief()), -ETIMEDOUT);
	CHECK_EQ(weft_send(from, port_id(to), 1, &v, 8, WEFT_NOW), -EAGAIN);
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	ports_close(from, to);
	job_end();
	free(mem);
}

TEST(a_large_send_that_must_not_wait_succeeds_when_its_receive_is_there)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, LARGE, 1);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, got, LARGE, &req));
	CHECK_OK(weft_send(from, port_id(to), 1, mem, LARGE, WEFT_NOW));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK(pattern_ok(got, LARGE, 1));
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(a_buffer_whose_send_was_taken_back_is_still_the_callers)
{
	struct weft_buf *buf = NULL;

	job_begin(64 << 10);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(weft_buf_get(100, 0, &buf));
	uint64_t n = budget_fill(from, port_id(to), 1);
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, buf, WEFT_NOW), -EAGAIN);
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, buf, brief()), -ETIMEDOUT);
	CHECK_OK(weft_buf_put(buf));
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	ports_close(from, to);
	job_end();
}

TEST(a_waits_deadline_ends_the_wait_not_the_operation)
{
	uint64_t v = 3, got = 0;
	struct weft_req *req = NULL, *sent = NULL, *both[2];
	int which[2];

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &req));
	MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 2, &v, 8, &sent));
	CHECK_EQ(weft_req_wait(&req, WEFT_NOW, NULL), -EAGAIN);
	CHECK_EQ(weft_req_wait(&req, brief(), NULL), -ETIMEDOUT);
	CHECK_EQ(weft_req_wait(&sent, brief(), NULL), -ETIMEDOUT);
	both[0] = req;
	both[1] = sent;
	CHECK_EQ(weft_req_wait_some(both, 2, 1, 2, WEFT_NOW, which, NULL), -EAGAIN);
	CHECK_EQ(weft_req_wait_some(both, 2, 1, 2, brief(), which, NULL), -ETIMEDOUT);
	CHECK(both[0] == req && both[1] == sent);
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_NEXT(to, WEFT_ANY, 2, 3);
	CHECK_EQ(weft_req_wait_some(both, 2, 2, 2, SOON, which, NULL), 2);
	CHECK_EQ(got, 3);
	ports_close(from, to);
	job_end();
}

struct late {
	struct weft_port *from;
	weft_id to;
	void *mem;
	int result;
	_Atomic bool taken;
};

/* Again, where nobody came to take it in time. */
static void late_send(void *arg)
{
	struct late *l = arg;

	do
		l->result = weft_send(l->from, l->to, 1, l->mem, LARGE, weft_in(100 * WEFT_MS));
	while (l->result == -ETIMEDOUT && !atomic_load(&l->taken));
}

TEST(a_call_that_can_no_longer_be_taken_back_ends_as_the_operation_ends)
{
	unsigned char *got = memory(LARGE);
	struct weft_msg *msg = NULL;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *to = port_new(0);
	struct late late = { port_new(0), port_id(to), memory(LARGE), 1, false };
	pattern_put(late.mem, LARGE, 2);
	mate_begin(&mate, late_send, &late);
	MUST_OK(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .tag = 1), SOON, &msg, NULL));
	atomic_store(&late.taken, true);
	/* Taken by a matched probe: the sender's deadline passes and it has to go on waiting. */
	for (weft_time past = weft_in(200 * WEFT_MS); weft_now() < past; )
		crew_nap();
	CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .data = got, .len = LARGE), NULL));
	mate_wait(&mate);
	CHECK_OK(late.result);
	CHECK(pattern_ok(got, LARGE, 2));
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_OK(weft_port_close(late.from, SOON));
	CHECK_OK(weft_port_close(to, SOON));
	mate_stop(&mate);
	job_end();
	free(late.mem);
	free(got);
}

TEST(probe_poll_and_queue_keep_their_deadlines)
{
	struct weft_queue *queue = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *to = port_new(0);
	MUST_OK(weft_queue_open(&queue));
	CHECK_EQ(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_NOW, NULL, NULL), -EAGAIN);
	CHECK_EQ(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .tag = 1), brief(), NULL, NULL), -ETIMEDOUT);
	CHECK_EQ(weft_queue_next(queue, WEFT_NOW, &st, 1), -EAGAIN);
	CHECK_EQ(weft_queue_next(queue, brief(), &st, 1), -ETIMEDOUT);
	CHECK_EQ(weft_poll(WEFT_NOW), -EAGAIN);
	CHECK_EQ(weft_poll(brief()), -ETIMEDOUT);
	CHECK_OK(weft_queue_close(queue));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
}

TEST(an_operation_that_expires_ends_by_itself)
{
	uint64_t v = 1, got = 0;
	struct weft_req *recv = NULL, *send = NULL;
	struct tally tally = { 0 };
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct weft_op rop = { .size = sizeof(rop), .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8,
			       .expires = brief() };
	struct weft_op sop = { .size = sizeof(sop),
			       .flags = WEFT_SYNC,
			       .peer = port_id(to),
			       .tag = 2,
			       .data = &v,
			       .len = 8,
			       .expires = brief() };
	MUST_OK(weft_recv_post(to, &rop, &recv, NULL));
	MUST_OK(weft_send_post(from, &sop, &send));
	CHECK_EQ(weft_req_wait(&recv, WEFT_FOREVER, &st), -ETIMEDOUT);
	CHECK_EQ(st.err, -ETIMEDOUT);
	CHECK_EQ(weft_req_wait(&send, WEFT_FOREVER, NULL), -ETIMEDOUT);
	/* Nobody waits for this one: it ends all the same. */
	rop.expires = brief();
	rop.done = tally_done;
	rop.user = &tally;
	MUST_OK(weft_recv_post(to, &rop, NULL, NULL));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(tally.last.err, -ETIMEDOUT);
	CHECK_NOTHING(to, WEFT_ANY, 2);
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_EQ(got, 0);
	ports_close(from, to);
	job_end();
}

TEST(a_send_expires_also_while_its_receiver_computes)
{
	uint64_t v = 1;
	struct weft_req *send = NULL;
	struct tally tally = { 0 };
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_SYNC, .peer = mate.id, .tag = 2, .data = &v, .len = 8 };
	/* The last has expired before it is posted. */
	for (int i = 0; i < 3; i++) {
		op.expires = i < 2 ? brief() : weft_in(-1);
		MUST_OK(weft_send_post(NULL, &op, &send));
		CHECK_EQ(weft_req_wait(&send, SOON, NULL), -ETIMEDOUT);
		MUST(!send);
	}
	/* Nobody waits for this one, neither. */
	op.expires = brief();
	op.done = tally_done;
	op.user = &tally;
	MUST_OK(weft_send_post(NULL, &op, NULL));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(tally.last.err, -ETIMEDOUT);
	mate_stop(&mate);
	job_end();
}

TEST(an_operation_over_before_it_expires_ends_well_and_once)
{
	uint64_t v = 1, got = 0;
	struct tally tally = { 0 };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct weft_op op = { .size = sizeof(op),
			      .peer = WEFT_ANY,
			      .tag = 1,
			      .data = &got,
			      .len = 8,
			      .done = tally_done,
			      .user = &tally,
			      .expires = weft_in(60 * WEFT_S) };
	for (int i = 1; i <= 100; i++) {
		MUST_OK(weft_recv_post(to, &op, NULL, NULL));
		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
		EVENTUALLY(atomic_load(&tally.count) == i);
	}
	CHECK_EQ(tally.failed, 0);
	ports_close(from, to);
	job_end();
}

static void parting_word(void *arg)
{
	uint64_t v = 11;

	CHECK_OK(weft_send(NULL, *(weft_id *)arg, 1, &v, 8, SOON));
}

TEST(a_receive_from_one_who_is_gone_gets_what_was_left_and_then_an_error)
{
	uint64_t got;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	weft_id gone = mate.id, me = weft_self();
	mate_run(&mate, parting_word, &me);
	mate_stop(&mate);
	CHECK_NEXT(NULL, gone, 1, 11);
	CHECK_EQ(weft_recv(NULL, gone, 1, &got, 8, WEFT_FOREVER, NULL), -ESRCH);
	CHECK_EQ(weft_probe(NULL, WEFT(op, .peer = gone, .tag = 1), WEFT_FOREVER, NULL, NULL), -ESRCH);
	job_end();
}

struct hearer {
	weft_id from;
	int result;
};

static void hearer_recv(void *arg)
{
	struct hearer *h = arg;
	uint64_t v;

	h->result = weft_recv(NULL, h->from, 1, &v, 8, WEFT_FOREVER, NULL);
}

static void hearer_probe(void *arg)
{
	struct hearer *h = arg;

	h->result = weft_probe(NULL, WEFT(op, .peer = h->from, .tag = 1), WEFT_FOREVER, NULL, NULL);
}

TEST(no_wait_outlives_the_death_of_all_it_could_wait_for)
{
	struct mate hearers[2], talker;
	struct hearer h[2];
	struct weft_req *req = NULL;
	uint64_t got;

	job_begin(0);
	mate_start(&talker);
	for (int i = 0; i < 2; i++) {
		uint32_t parked = stats_of(NULL).parked;

		mate_start(&hearers[i]);
		h[i] = (struct hearer){ talker.id, 1 };
		mate_begin(&hearers[i], i ? hearer_probe : hearer_recv, &h[i]);
		EVENTUALLY(stats_of(NULL).parked > parked);
	}
	MUST_OK(recv_post(NULL, 0, talker.id, 1, &got, 8, &req));
	mate_stop(&talker);
	CHECK_EQ(weft_req_wait(&req, WEFT_FOREVER, NULL), -ECONNRESET);
	for (int i = 0; i < 2; i++) {
		mate_stop(&hearers[i]);
		CHECK_EQ(h[i].result, -ECONNRESET);
	}
	job_end();
}

TEST(a_receive_from_anyone_goes_on_when_a_thread_ends)
{
	struct mate first, second;
	struct weft_req *req = NULL;
	uint64_t got = 0;

	job_begin(0);
	weft_id me = weft_self();
	mate_start(&first);
	mate_start(&second);
	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, &got, 8, &req));
	mate_stop(&first);
	CHECK_EQ(weft_req_wait(&req, brief(), NULL), -ETIMEDOUT);
	mate_run(&second, parting_word, &me);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(got, 11);
	mate_stop(&second);
	job_end();
}

TEST_MAIN
