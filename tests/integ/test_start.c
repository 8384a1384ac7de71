/* test_start.c - posting without an op: what the calls with one do, and the same whether or not the compiler sees the op. */
#include "crew.h"

#include <weft/msg.h>

/* An op that no compiler can see being written. */
static struct weft_op *hidden(struct weft_op *op)
{
	__asm__ volatile("" : "+r"(op) : : "memory");
	return op;
}

TEST(a_start_is_over_at_once_or_gives_a_request)
{
	uint64_t v = 7, got = 0;
	struct weft_req *send = NULL, *recv = NULL;
	struct weft_status st = { .err = 1 };

	job_begin(0);
	CHECK_EQ(weft_send_start(NULL, weft_self(), 5, &v, 8, 0, &send), WEFT_DONE);
	CHECK(send == NULL);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 5, 0, &got, 8, 0, &recv, &st), WEFT_DONE);
	CHECK(recv == NULL);
	CHECK_EQ(got, 7);
	CHECK_EQ(st.err, 0);
	CHECK_EQ(st.len, 8);
	CHECK_EQ(st.tag, 5);
	CHECK(st.from == weft_self());
	got = 0;
	MUST_OK(weft_recv_start(NULL, WEFT_ANY, WEFT_ANY_TAG, 0, &got, 8, 0, &recv, NULL));
	CHECK(recv != NULL);
	CHECK_EQ(weft_req_wait(&recv, WEFT_NOW, NULL), -EAGAIN);
	CHECK_EQ(weft_send_start(NULL, weft_self(), 6, &v, 8, 0, &send), WEFT_DONE);
	CHECK_OK(weft_req_wait(&recv, SOON, &st));
	CHECK_EQ(got, 7);
	CHECK_EQ(st.tag, 6);
	CHECK(st.user == NULL);
	job_end();
}

TEST(a_start_at_other_ports_and_with_bits_of_the_tag_that_do_not_matter)
{
	uint64_t v = 1, got = 0;
	struct weft_req *req = NULL, *low = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(weft_recv_start(to, port_id(from), 0x100, 0xff, &got, 8, 0, &low, NULL));
	CHECK_EQ(weft_send_start(from, port_id(to), 0x200, &v, 8, 0, &req), WEFT_DONE);
	CHECK_EQ(weft_req_wait(&low, WEFT_NOW, NULL), -EAGAIN);
	v = 2;
	CHECK_EQ(weft_send_start(from, port_id(to), 0x123, &v, 8, 0, &req), WEFT_DONE);
	CHECK_OK(weft_req_wait(&low, SOON, &st));
	CHECK_EQ(got, 2);
	CHECK_EQ(st.tag, 0x123);
	CHECK_EQ(weft_recv_start(to, WEFT_ANY, 0, UINT64_MAX, &got, 8, 0, &low, &st), WEFT_DONE);
	CHECK_EQ(got, 1);
	ports_close(from, to);
	job_end();
}

TEST(flags_of_a_start_are_those_of_an_op)
{
	uint64_t v[2] = { 1, 2 }, got = 0;
	struct weft_req *send = NULL, *recv = NULL;
	struct weft_status st = { .err = 0 };

	job_begin(0);
	MUST_OK(weft_send_start(NULL, weft_self(), 5, v, 8, WEFT_SYNC, &send));
	CHECK_EQ(weft_req_wait(&send, WEFT_NOW, NULL), -EAGAIN);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 5, 0, &got, 8, 0, &recv, NULL), WEFT_DONE);
	CHECK_OK(weft_req_wait(&send, SOON, NULL));
	/* too long: cut off if that was asked for */
	MUST_OK(weft_recv_start(NULL, weft_self(), 6, 0, &got, 8, WEFT_TRUNCATE, &recv, NULL));
	CHECK_EQ(weft_send_start(NULL, weft_self(), 6, v, 16, 0, &send), WEFT_DONE);
	CHECK_EQ(weft_req_wait(&recv, SOON, &st), -EMSGSIZE);
	CHECK_EQ(st.len, 16);
	CHECK_EQ(got, 1);
	CHECK_NOTHING(NULL, WEFT_ANY, 6);
	MUST_OK(weft_recv_start(NULL, weft_self(), 7, 0, &got, 8, 0, &recv, NULL));
	CHECK_EQ(weft_send_start(NULL, weft_self(), 7, v, 16, 0, &send), WEFT_DONE);
	CHECK_EQ(weft_req_wait(&recv, SOON, &st), -EMSGSIZE);
	CHECK_OK(weft_recv(NULL, weft_self(), 7, v, 16, SOON, NULL));
	/* into a buffer, which names no memory */
	CHECK_EQ(weft_send_start(NULL, weft_self(), 8, v, 16, 0, &send), WEFT_DONE);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 8, 0, NULL, 0, WEFT_ALLOC, &recv, &st), WEFT_DONE);
	MUST(st.buf != NULL);
	CHECK_EQ(st.buf->len, 16);
	CHECK_OK(weft_buf_put(st.buf));
	job_end();
}

TEST(what_makes_no_sense_is_refused_and_nothing_is_at_no_memory)
{
	uint64_t v = 1;
	struct weft_req *req = NULL;
	struct weft_status st = { .len = 1 };

	job_begin(0);
	CHECK_EQ(weft_send_start(NULL, weft_self(), 5, NULL, 8, 0, &req), -EINVAL);
	CHECK_EQ(weft_send_start(NULL, weft_self(), WEFT_ANY_TAG, &v, 8, 0, &req), -EINVAL);
	CHECK_EQ(weft_send_start(NULL, 0, 5, &v, 8, 0, &req), -EINVAL);
	CHECK_EQ(weft_send_start(NULL, weft_self(), 5, &v, 8, WEFT_ALLOC, &req), -EINVAL);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 5, 0, NULL, 8, 0, &req, NULL), -EINVAL);
	CHECK_EQ(weft_recv_start(NULL, 0, 5, 0, &v, 8, 0, &req, NULL), -EINVAL);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 5, 0, &v, 8, WEFT_SYNC, &req, NULL), -EINVAL);
	CHECK_EQ(weft_send_post(NULL, NULL, &req), -EINVAL);
	CHECK_EQ(weft_recv_post(NULL, NULL, &req, NULL), -EINVAL);
	CHECK(req == NULL);
	CHECK_EQ(weft_send_start(NULL, weft_self(), 5, NULL, 0, 0, NULL), WEFT_DONE);
	CHECK_EQ(weft_recv_start(NULL, weft_self(), 5, 0, NULL, 0, 0, &req, &st), WEFT_DONE);
	CHECK_EQ(st.len, 0);
	job_end();
}

/* One message both ways of posting it, with @user and without; what differs between an op that is seen and one that is not? Nothing. */
TEST(an_op_that_the_compiler_sees_is_like_any_other)
{
	uint64_t v = 3, got[4] = { 0 };
	struct weft_req *req[4] = { NULL };
	struct weft_status st[4];
	struct weft_op op = { .size = sizeof(op), .tag = 1, .data = &got[1], .len = 8 };

	job_begin(0);
	op.peer = weft_self();
	MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = weft_self(), .tag = 1, .data = &got[0], .len = 8), &req[0], NULL));
	MUST_OK(weft_recv_post(NULL, hidden(&op), &req[1], NULL));
	MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = WEFT_ANY, .ignore = UINT64_MAX, .data = &got[2], .len = 8), &req[2], NULL));
	MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = weft_self(), .tag = 1, .data = &got[3], .len = 8, .user = &v), &req[3], NULL));
	op.data = &v;
	for (int i = 0; i < 4; i++) {
		struct weft_req *send = NULL;

		CHECK_EQ(i % 2 ? weft_send_post(NULL, hidden(&op), &send) :
				 weft_send_post(NULL, WEFT(op, .peer = weft_self(), .tag = 1, .data = &v, .len = 8), &send),
			 WEFT_DONE);
		CHECK(send == NULL);
	}
	CHECK_EQ(weft_req_wait_some(req, 4, 4, 4, SOON, NULL, st), 4);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(got[i], 3);
		CHECK_EQ(st[i].err, 0);
		CHECK_EQ(st[i].len, 8);
		CHECK_EQ(st[i].tag, 1);
		CHECK(st[i].from == weft_self());
		CHECK(st[i].user == (i == 3 ? (void *)&v : NULL));
	}
	CHECK_EQ(weft_send_post(NULL, &(struct weft_op){ .size = 8, .peer = weft_self(), .data = &v, .len = 8 }, &req[0]), -EINVAL);
	CHECK_EQ(weft_recv_post(NULL, &(struct weft_op){ .peer = weft_self(), .data = &v, .len = 8 }, &req[0], NULL), -EINVAL);
	job_end();
}

TEST_MAIN
