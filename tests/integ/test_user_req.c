/* test_user_req.c - requests that the program ends itself, and waiting for one, some or all of
 * several: with requests that end when the test says so, the waits are told apart exactly. */
#include <poll.h>
#include "crew.h"

enum { N = 6 };

static struct weft_req *req_new(void *user)
{
	struct weft_req *req = NULL;

	MUST_OK(weft_req_new(NULL, NULL, user, &req));
	return req;
}

TEST(a_request_of_the_program_ends_when_the_program_says_and_as_it_says)
{
	struct weft_status st = { .err = -EIO, .tag = 5, .len = 6, .from = 7 }, got;
	int mark;

	job_begin(0);
	struct weft_req *req = req_new(&mark);
	CHECK_EQ(weft_req_peek(req, &got), -EAGAIN);
	CHECK_EQ(weft_req_wait(&req, WEFT_NOW, &got), -EAGAIN);
	CHECK_OK(weft_req_complete(req, &st));
	CHECK_EQ(weft_req_peek(req, &got), WEFT_DONE);
	CHECK_EQ(got.err, -EIO);
	memset(&got, 0, sizeof(got));
	CHECK_EQ(weft_req_wait(&req, WEFT_NOW, &got), -EIO);
	CHECK(req == NULL);
	CHECK_EQ(got.err, -EIO);
	CHECK_EQ(got.tag, 5);
	CHECK_EQ(got.len, 6);
	CHECK_EQ(got.from, 7);
	CHECK(got.user == &mark);
	/* Without a status: all zero but the user's word. */
	req = req_new(&mark);
	CHECK_OK(weft_req_complete(req, NULL));
	CHECK_OK(weft_req_wait(&req, SOON, &got));
	CHECK_EQ(got.err, 0);
	CHECK_EQ(got.tag, 0);
	CHECK(got.user == &mark);
	job_end();
}

TEST(a_request_of_the_program_ends_once)
{
	struct weft_status st = { .err = -EIO };

	job_begin(0);
	struct weft_req *req = req_new(NULL);
	CHECK_OK(weft_req_complete(req, NULL));
	CHECK_EQ(weft_req_complete(req, &st), -EALREADY);
	CHECK_EQ(weft_req_cancel(req), -EALREADY);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	req = req_new(NULL);
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_req_complete(req, NULL), -EALREADY);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
	job_end();
}

TEST(the_request_of_a_message_is_not_the_programs_to_end)
{
	uint64_t v;
	struct weft_req *req = NULL;

	job_begin(0);
	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, &v, 8, &req));
	CHECK_EQ(weft_req_complete(req, NULL), -EINVAL);
	CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
	job_end();
}

TEST(its_end_goes_to_a_callback_or_a_queue_if_one_is_given)
{
	struct tally tally = { 0 };
	struct weft_queue *queue = NULL;
	struct weft_req *req = NULL;
	struct weft_status st = { .err = -EIO, .tag = 9 }, got;
	int mark;

	job_begin(0);
	MUST_OK(weft_req_new(tally_done, NULL, &tally, &req));
	CHECK_OK(weft_req_complete(req, &st));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(tally.last.err, -EIO);
	CHECK_EQ(tally.last.tag, 9);
	CHECK_OK(weft_req_free(req));

	MUST_OK(weft_queue_open(&queue));
	CHECK_EQ(weft_req_new(tally_done, queue, &tally, &req), -EINVAL);
	MUST_OK(weft_req_new(NULL, queue, &mark, &req));
	CHECK_EQ(weft_queue_close(queue), -EBUSY);
	CHECK_OK(weft_req_complete(req, &st));
	CHECK_EQ(poll(&(struct pollfd){ .fd = weft_queue_fd(queue), .events = POLLIN }, 1, 0), 1);
	CHECK_EQ(weft_queue_next(queue, SOON, &got, 1), 1);
	CHECK_EQ(got.err, -EIO);
	CHECK_EQ(got.tag, 9);
	CHECK(got.user == &mark);
	CHECK_OK(weft_req_free(req));
	CHECK_OK(weft_queue_close(queue));
	job_end();
	CHECK_EQ(tally.count, 1);
}

static void complete(void *arg)
{
	CHECK_OK(weft_req_complete(arg, &(struct weft_status){ .tag = 3 }));
}

TEST(any_thread_may_end_it_while_another_waits)
{
	struct mate mate;
	struct weft_status st;

	job_begin(0);
	mate_start(&mate);
	for (int i = 0; i < 1000; i++) {
		struct weft_req *req = req_new(NULL);

		mate_begin(&mate, complete, req);
		CHECK_OK(weft_req_wait(&req, WEFT_FOREVER, &st));
		CHECK_EQ(st.tag, 3);
		mate_wait(&mate);
	}
	mate_stop(&mate);
	job_end();
}

TEST(a_request_freed_before_its_end_ends_unobserved)
{
	struct weft_req *req = NULL;
	uint64_t v = 1, got = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &req));
	CHECK_OK(weft_req_free(req));
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_OK(weft_send(from, port_id(to), 2, &v, 8, SOON));
	CHECK_NEXT(to, WEFT_ANY, 2, 1);
	CHECK_EQ(got, 1);
	CHECK_OK(weft_req_free(NULL));
	ports_close(from, to);
	job_end();
}

static void req_set(struct weft_req **reqs, int n)
{
	for (int i = 0; i < n; i++)
		reqs[i] = req_new(NULL);
}

static void req_end(struct weft_req *req, int err, uint64_t tag)
{
	CHECK_OK(weft_req_complete(req, &(struct weft_status){ .err = err, .tag = tag }));
}

TEST(any_of_several_one_is_taken_and_the_others_live_on)
{
	struct weft_req *reqs[N];
	struct weft_status st[N];
	int which[N] = { -1 };

	job_begin(0);
	req_set(reqs, N);
	req_end(reqs[3], 0, 33);
	req_end(reqs[4], 0, 44);
	CHECK_EQ(weft_req_wait_some(reqs, N, 1, 1, SOON, which, st), 1);
	CHECK(which[0] == 3 || which[0] == 4);
	CHECK(reqs[which[0]] == NULL);
	CHECK_EQ(st[0].tag, which[0] * 11);
	CHECK_EQ(weft_req_wait_some(reqs, N, 1, 1, SOON, which, st), 1);
	CHECK(reqs[3] == NULL && reqs[4] == NULL);
	CHECK_EQ(weft_req_wait_some(reqs, N, 1, 1, WEFT_NOW, which, st), -EAGAIN);
	for (int i = 0; i < N; i++)
		if (reqs[i])
			req_end(reqs[i], 0, (uint64_t)i);
	CHECK_EQ(weft_req_wait_some(reqs, N, 4, N, SOON, NULL, NULL), 4);
	job_end();
}

TEST(some_of_several_all_that_are_over_are_taken_in_the_order_told)
{
	struct weft_req *reqs[N];
	struct weft_status st[N];
	int which[N];

	job_begin(0);
	req_set(reqs, N);
	req_end(reqs[5], 0, 5);
	req_end(reqs[0], -EIO, 0);
	req_end(reqs[2], 0, 2);
	/* An operation's error is in its status, not in the answer. */
	CHECK_EQ(weft_req_wait_some(reqs, N, 1, N, SOON, which, st), 3);
	for (int i = 0; i < 3; i++) {
		CHECK(which[i] == 0 || which[i] == 2 || which[i] == 5);
		CHECK_EQ(st[i].tag, which[i]);
		CHECK_EQ(st[i].err, which[i] ? 0 : -EIO);
		CHECK(reqs[which[i]] == NULL);
	}
	CHECK(which[0] != which[1] && which[1] != which[2] && which[0] != which[2]);
	CHECK(reqs[1] && reqs[3] && reqs[4]);
	req_end(reqs[1], 0, 1);
	req_end(reqs[3], 0, 3);
	/* Two are over, at most one is taken. */
	CHECK_EQ(weft_req_wait_some(reqs, N, 1, 1, SOON, which, st), 1);
	CHECK_EQ((reqs[1] != NULL) + (reqs[3] != NULL), 1);
	req_end(reqs[4], 0, 4);
	CHECK_EQ(weft_req_wait_some(reqs, N, N, N, SOON, which, st), 2);
	job_end();
}

TEST(fewer_than_asked_for_by_the_deadline_and_none_is_touched)
{
	struct weft_req *reqs[N], *before[N];
	struct weft_status st[N];
	int which[N] = { -7 };

	job_begin(0);
	req_set(reqs, N);
	memcpy(before, reqs, sizeof(reqs));
	req_end(reqs[1], 0, 1);
	CHECK_EQ(weft_req_wait_some(reqs, N, 2, N, WEFT_NOW, which, st), -EAGAIN);
	CHECK_EQ(weft_req_wait_some(reqs, N, N, N, weft_in(WEFT_MS), which, st), -ETIMEDOUT);
	CHECK(memcmp(before, reqs, sizeof(reqs)) == 0);
	CHECK_EQ(which[0], -7);
	CHECK_EQ(weft_req_peek(reqs[1], NULL), WEFT_DONE);
	for (int i = 0; i < N; i++)
		if (i != 1)
			req_end(reqs[i], 0, 0);
	CHECK_EQ(weft_req_wait_some(reqs, N, N, N, SOON, which, st), N);
	job_end();
}

TEST(nulls_do_not_count_and_only_nulls_gives_none)
{
	struct weft_req *reqs[N] = { NULL };
	struct weft_status st[N];
	int which[N];

	job_begin(0);
	CHECK_EQ(weft_req_wait_some(reqs, N, N, N, WEFT_FOREVER, which, st), 0);
	CHECK_EQ(weft_req_wait_some(NULL, 0, 0, 0, WEFT_FOREVER, NULL, NULL), 0);
	reqs[2] = req_new(NULL);
	req_end(reqs[2], 0, 2);
	CHECK_EQ(weft_req_wait_some(reqs, N, N, N, WEFT_FOREVER, which, st), 1);
	CHECK_EQ(which[0], 2);
	CHECK_OK(weft_req_wait(&reqs[2], WEFT_FOREVER, NULL));
	job_end();
}

static void complete_all(void *arg)
{
	struct weft_req **reqs = arg;

	for (int i = N - 1; i >= 0; i--)
		req_end(reqs[i], 0, (uint64_t)i);
}

TEST(all_of_several_are_waited_for_while_another_thread_ends_them)
{
	struct weft_req *reqs[N], *copy[N];
	struct weft_status st[N];
	int which[N];
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	for (int round = 0; round < 500; round++) {
		req_set(reqs, N);
		memcpy(copy, reqs, sizeof(copy));
		mate_begin(&mate, complete_all, copy);
		CHECK_EQ(weft_req_wait_some(reqs, N, N, N, WEFT_FOREVER, which, st), N);
		for (int i = 0; i < N; i++)
			CHECK_EQ(st[i].tag, which[i]);
		mate_wait(&mate);
	}
	mate_stop(&mate);
	job_end();
}

TEST_MAIN
