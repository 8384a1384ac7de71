/* test_queue.c - ends arrive in a queue, each goes to one caller, and its descriptor is readable
 * exactly while something is there. */
#include <poll.h>
#include <sys/epoll.h>
#include "crew.h"

static struct weft_queue *queue_new(void)
{
	struct weft_queue *queue = NULL;

	MUST_OK(weft_queue_open(&queue));
	return queue;
}

static bool readable(struct weft_queue *queue)
{
	struct pollfd p = { .fd = weft_queue_fd(queue), .events = POLLIN };

	MUST(p.fd >= 0);
	return poll(&p, 1, 0) == 1;
}

static void recv_into(struct weft_port *at, struct weft_queue *queue, uint64_t tag, uint64_t *got)
{
	MUST_OK(weft_recv_post(
		at,
		WEFT(op, .peer = WEFT_ANY, .tag = tag, .data = got, .len = 8, .queue = queue, .user = got),
		NULL, NULL));
}

TEST(ends_of_receives_sends_and_the_programs_requests_arrive_in_a_queue)
{
	uint64_t v = 1, got = 0;
	struct weft_status st;
	struct weft_req *req = NULL;
	int mark;

	job_begin(0);
	struct weft_queue *queue = queue_new();
	struct weft_port *from = port_new(0), *to = port_new(0);
	recv_into(to, queue, 1, &got);
	CHECK_EQ(weft_queue_next(queue, WEFT_NOW, &st, 1), -EAGAIN);
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK_OK(st.err);
	CHECK(st.user == &got);
	CHECK(st.from == port_id(from));
	CHECK_EQ(st.len, 8);
	CHECK_EQ(got, 1);
	/* A send over on the spot, too: answered 0, its end in the queue. */
	CHECK_EQ(weft_send_post(from,
				WEFT(op, .peer = port_id(to), .tag = 2, .data = &v, .len = 8, .queue = queue,
				     .user = &mark),
				NULL),
		 0);
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.user == &mark);
	CHECK_NEXT(to, WEFT_ANY, 2, 1);
	MUST_OK(weft_req_new(NULL, queue, &req, &req));
	CHECK_OK(weft_req_complete(req, NULL));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.user == &req);
	CHECK_OK(weft_req_free(req));
	ports_close(from, to);
	CHECK_OK(weft_queue_close(queue));
	job_end();
}

TEST(a_queues_descriptor_is_readable_exactly_while_something_is_there)
{
	struct weft_req *req[3];
	struct weft_status st[3];

	job_begin(0);
	struct weft_queue *queue = queue_new();
	CHECK(weft_queue_fd(queue) == weft_queue_fd(queue));
	for (int round = 0; round < 100; round++) {
		CHECK(!readable(queue));
		for (int i = 0; i < 3; i++)
			MUST_OK(weft_req_new(NULL, queue, NULL, &req[i]));
		CHECK(!readable(queue));
		for (int i = 0; i < 3; i++) {
			CHECK_OK(weft_req_complete(req[i], NULL));
			CHECK(readable(queue));
		}
		CHECK_EQ(weft_queue_next(queue, WEFT_NOW, st, 1), 1);
		CHECK(readable(queue));
		CHECK_EQ(weft_queue_next(queue, WEFT_NOW, st, 3), 2);
		CHECK(!readable(queue));
		CHECK_EQ(weft_queue_next(queue, WEFT_NOW, st, 3), -EAGAIN);
		for (int i = 0; i < 3; i++)
			CHECK_OK(weft_req_free(req[i]));
	}
	CHECK_OK(weft_queue_close(queue));
	job_end();
}

TEST(at_most_as_many_as_asked_for_are_taken_in_the_order_they_ended)
{
	enum { N = 100 };
	struct weft_status st[N];
	uint64_t numbers[N], got = 0;

	job_begin(0);
	struct weft_queue *queue = queue_new();
	for (uint64_t i = 0; i < N; i++) {
		struct weft_req *req = NULL;

		numbers[i] = i;
		MUST_OK(weft_req_new(NULL, queue, &numbers[i], &req));
		CHECK_OK(weft_req_complete(req, NULL));
		CHECK_OK(weft_req_free(req));
	}
	while (got < N) {
		int max = (int)(got % 7) + 1, n = weft_queue_next(queue, WEFT_NOW, st, max);

		MUST(n > 0 && n <= max);
		for (int i = 0; i < n; i++)
			CHECK(st[i].user == &numbers[got++]);
	}
	CHECK_OK(weft_queue_close(queue));
	job_end();
}

/* A thread that computes does not receive; the descriptor must tell all the same. */
static void send_one(void *arg)
{
	uint64_t v = 9;

	CHECK_OK(weft_send(NULL, *(weft_id *)arg, 1, &v, 8, SOON));
}

TEST(a_thread_asleep_in_epoll_is_woken_by_a_message)
{
	struct epoll_event event = { .events = EPOLLIN };
	uint64_t got = 0;
	struct weft_status st;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	weft_id me = weft_self();
	struct weft_queue *queue = queue_new();
	int ep = epoll_create1(EPOLL_CLOEXEC);
	MUST(ep >= 0);
	MUST_OK(epoll_ctl(ep, EPOLL_CTL_ADD, weft_queue_fd(queue), &event));
	for (int i = 0; i < 300; i++) {
		recv_into(NULL, queue, 1, &got);
		mate_begin(&mate, send_one, &me);
		int r = epoll_wait(ep, &event, 1, -1);
		CHECK_EQ(r, 1);
		CHECK_EQ(weft_queue_next(queue, WEFT_NOW, &st, 1), 1);
		CHECK_EQ(got, 9);
		got = 0;
		mate_wait(&mate);
	}
	close(ep);
	CHECK_OK(weft_queue_close(queue));
	mate_stop(&mate);
	job_end();
}

struct takers {
	struct weft_queue *queue;
	_Atomic int taken[4000];
	_Atomic int total;
	int end;
};

static void *taker_main(void *arg)
{
	struct takers *t = arg;
	struct weft_status st[8];

	while (atomic_load(&t->total) < t->end) {
		int n = weft_queue_next(t->queue, weft_in(20 * WEFT_MS), st, 8);

		for (int i = 0; i < n; i++)
			atomic_fetch_add((_Atomic int *)st[i].user, 1);
		if (n > 0)
			atomic_fetch_add(&t->total, n);
		else
			CHECK_EQ(n, -ETIMEDOUT);
	}
	return NULL;
}

TEST(each_end_goes_to_one_caller)
{
	static struct takers t;
	pthread_t thread[4];

	job_begin(0);
	t.end = 4000;
	t.queue = queue_new();
	for (int i = 0; i < 4; i++)
		thread[i] = thread_start(taker_main, &t);
	for (int i = 0; i < t.end; i++) {
		struct weft_req *req = NULL;

		MUST_OK(weft_req_new(NULL, t.queue, &t.taken[i], &req));
		CHECK_OK(weft_req_complete(req, NULL));
		CHECK_OK(weft_req_free(req));
	}
	for (int i = 0; i < 4; i++)
		thread_join(thread[i]);
	for (int i = 0; i < t.end; i++)
		CHECK_EQ(atomic_load(&t.taken[i]), 1);
	CHECK(!readable(t.queue));
	CHECK_OK(weft_queue_close(t.queue));
	job_end();
}

struct sleeper {
	struct weft_queue *queue;
	int n;
	struct weft_status st;
};

static void sleeper_next(void *arg)
{
	struct sleeper *s = arg;

	s->n = weft_queue_next(s->queue, WEFT_FOREVER, &s->st, 1);
}

TEST(a_waiting_caller_sleeps_until_an_end_arrives)
{
	struct mate mate;
	uint64_t v = 5, got = 0;

	job_begin(0);
	mate_start(&mate);
	struct sleeper s = { .queue = queue_new() };
	struct weft_port *to = port_new(0);
	for (int i = 0; i < 50; i++) {
		uint32_t parked = stats_of(NULL).parked;

		recv_into(to, s.queue, 1, &got);
		mate_begin(&mate, sleeper_next, &s);
		EVENTUALLY(stats_of(NULL).parked > parked);
		CHECK_OK(weft_send(NULL, port_id(to), 1, &v, 8, SOON));
		mate_wait(&mate);
		CHECK_EQ(s.n, 1);
		CHECK(s.st.user == &got);
		CHECK_EQ(got, 5);
	}
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_OK(weft_queue_close(s.queue));
	mate_stop(&mate);
	job_end();
}

TEST(a_queue_named_by_operations_stays_open_and_ends_not_taken_are_dropped)
{
	uint64_t v = 1, got[2] = { 0 };

	job_begin(0);
	struct weft_queue *queue = queue_new();
	struct weft_port *to = port_new(0);
	recv_into(to, queue, 1, &got[0]);
	recv_into(to, queue, 1, &got[1]);
	CHECK_EQ(weft_queue_close(queue), -EBUSY);
	CHECK_OK(weft_send(NULL, port_id(to), 1, &v, 8, SOON));
	CHECK_EQ(weft_queue_close(queue), -EBUSY);
	CHECK_OK(weft_send(NULL, port_id(to), 1, &v, 8, SOON));
	EVENTUALLY(weft_queue_close(queue) == 0);
	CHECK_EQ(got[0] + got[1], 2);
	CHECK_OK(weft_queue_close(NULL));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
}

TEST(a_repeating_receive_with_alloc_gives_a_buffer_each_time)
{
	struct weft_req *req = NULL;
	struct weft_status st;
	unsigned char mem[300];

	job_begin(0);
	struct weft_queue *queue = queue_new();
	struct weft_port *to = port_new(0);
	MUST_OK(weft_recv_post(to, WEFT(op, .flags = WEFT_REPEAT | WEFT_ALLOC, .peer = WEFT_ANY, .tag = 1,
					.queue = queue), &req, NULL));
	/* All of them at once: each has memory of its own. */
	for (size_t i = 0; i < 200; i++) {
		pattern_put(mem, i, i);
		CHECK_OK(weft_send(NULL, port_id(to), 1, mem, i, SOON));
	}
	for (size_t i = 0; i < 200; i++) {
		MUST_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
		CHECK(st.flags & WEFT_ST_MORE);
		CHECK_EQ(st.len, i);
		MUST(st.buf != NULL);
		CHECK_EQ(st.buf->len, i);
		CHECK(pattern_ok(st.buf->data, i, i));
		CHECK_OK(weft_buf_put(st.buf));
	}
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK_EQ(st.err, -ECANCELED);
	CHECK_OK(weft_req_free(req));
	CHECK_OK(weft_queue_close(queue));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
}

/* The end goes into a queue whose descriptor somebody asked for: that is a system call under the queue's lock. */
static void *post_with_a_cancellation_pending(void *arg)
{
	struct sleeper *s = arg;
	static uint64_t v = 6;

	pthread_cancel(pthread_self());
	s->n = weft_send_post(NULL, WEFT(op, .peer = weft_process(), .tag = 1, .data = &v, .len = 8, .queue = s->queue), NULL);
	pthread_testcancel();
	return NULL;
}

TEST(a_post_is_no_cancellation_point_and_leaves_the_queue_usable)
{
	struct weft_status st;
	uint64_t got = 0;

	job_begin(0);
	struct sleeper s = { .queue = queue_new(), .n = -1 };
	MUST(weft_queue_fd(s.queue) >= 0);
	thread_join(thread_start(post_with_a_cancellation_pending, &s));
	CHECK_EQ(s.n, 0);
	CHECK_EQ(weft_queue_next(s.queue, SOON, &st, 1), 1);
	CHECK_OK(weft_recv(weft_port_world(), WEFT_ANY, 1, &got, 8, SOON, NULL));
	CHECK_EQ(got, 6);
	CHECK_OK(weft_queue_close(s.queue));
	job_end();
}

TEST_MAIN
