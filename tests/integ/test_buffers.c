/* test_buffers.c - memory that changes hands: the very same memory arrives, misuse is an error
 * code, and where bytes must be copied the thread that makes the match copies them, once. */
#include "crew.h"

enum { LARGE = 1 << 20 };

static struct weft_buf *buf_new(size_t len, uint64_t seed)
{
	struct weft_buf *buf = NULL;

	MUST_OK(weft_buf_get(len, 0, &buf));
	CHECK_EQ(buf->len, len);
	CHECK(buf->cap >= len);
	pattern_put(buf->data, len, seed);
	return buf;
}

TEST(a_buffer_sent_is_handed_over_and_the_very_same_memory_arrives)
{
	static const size_t len[] = { 0, 1, 100, 4096, 100000, LARGE, 8 * LARGE };
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		struct weft_buf *buf = buf_new(len[i], i), *got = NULL;
		void *data = buf->data;
		uint64_t copies = stats_of(NULL).copies;

		CHECK_OK(weft_buf_send(from, port_id(to), i, buf, SOON));
		CHECK_OK(weft_buf_recv(to, port_id(from), i, SOON, &got, &st));
		CHECK(got->data == data);
		CHECK_EQ(got->len, len[i]);
		CHECK_EQ(st.len, len[i]);
		CHECK(st.buf == got);
		CHECK(!(st.flags & WEFT_ST_SHARED));
		CHECK(pattern_ok(got->data, got->len, i));
		CHECK_EQ(stats_of(NULL).copies, copies);
		CHECK_OK(weft_buf_put(got));
	}
	ports_close(from, to);
	job_end();
}

TEST(buffers_of_any_size_go_at_once_while_the_budget_lasts)
{
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (size_t len = 1; len <= 16 * LARGE; len *= 16) {
		struct weft_buf *buf = buf_new(len, 0), *got = NULL;

		CHECK_EQ(weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .buf = buf), &req),
			 WEFT_DONE);
		CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &got, NULL));
		CHECK_EQ(got->len, len);
		CHECK_OK(weft_buf_put(got));
	}
	ports_close(from, to);
	job_end();
}

TEST(a_received_buffer_is_an_ordinary_one_and_may_be_sent_on)
{
	struct weft_buf *buf, *got = NULL;

	job_begin(0);
	struct weft_port *a = port_new(0), *b = port_new(0);
	buf = buf_new(5000, 1);
	void *data = buf->data;
	for (uint64_t i = 1; i <= 100; i++) {
		CHECK_OK(weft_buf_send(i % 2 ? a : b, port_id(i % 2 ? b : a), i, buf, SOON));
		CHECK_OK(weft_buf_recv(i % 2 ? b : a, WEFT_ANY, i, SOON, &got, NULL));
		CHECK(pattern_ok(got->data, got->len, i));
		buf = got;
		buf->len = 4000 + i;
		pattern_put(buf->data, buf->len, i + 1);
	}
	CHECK(buf->data == data);
	CHECK(weft_buf_of((char *)data + 10) == buf);
	CHECK_OK(weft_buf_put(buf));
	ports_close(a, b);
	job_end();
}

TEST(a_buffer_may_be_received_into_plain_memory_and_plain_memory_as_a_buffer)
{
	unsigned char *got = memory(LARGE), *mem = memory(LARGE);
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (size_t len = 0; len <= LARGE; len = len * 32 + 1) {
		struct weft_buf *buf = buf_new(len, len), *out = NULL;
		struct weft_req *req = NULL;

		CHECK_OK(weft_buf_send(from, port_id(to), 1, buf, SOON));
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, LARGE, SOON, &st));
		CHECK_EQ(st.len, len);
		CHECK(pattern_ok(got, len, len));

		pattern_put(mem, len, len + 1);
		int r = send_post(from, 0, port_id(to), 1, mem, len, &req);
		CHECK(r == 0 || r == WEFT_DONE);
		CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &out, &st));
		CHECK_EQ(out->len, len);
		CHECK(pattern_ok(out->data, len, len + 1));
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		CHECK_OK(weft_buf_put(out));
	}
	ports_close(from, to);
	job_end();
	free(got);
	free(mem);
}

TEST(a_receive_with_alloc_gets_a_buffer_that_fits)
{
	unsigned char *mem = memory(LARGE);
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int posted_before = 0; posted_before < 2; posted_before++)
		for (size_t len = 0; len <= LARGE; len = len * 20 + 1) {
			struct weft_req *recv = NULL, *sent = NULL;
			struct weft_op op = {
				.size = sizeof(op), .flags = WEFT_ALLOC, .peer = WEFT_ANY, .tag = 1
			};

			if (posted_before)
				MUST_OK(weft_recv_post(to, &op, &recv, NULL));
			pattern_put(mem, len, len);
			int r = send_post(from, 0, port_id(to), 1, mem, len, &sent);
			CHECK(r == 0 || r == WEFT_DONE);
			CHECK_OK(posted_before ? weft_req_wait(&recv, SOON, &st) : recv_op(to, &op, &st));
			MUST(st.buf != NULL);
			CHECK_EQ(st.buf->len, len);
			CHECK(pattern_ok(st.buf->data, len, len));
			CHECK_OK(weft_buf_put(st.buf));
			CHECK_OK(weft_req_wait(&sent, SOON, NULL));
		}
	ports_close(from, to);
	job_end();
	free(mem);
}

TEST(a_buffer_sent_with_keep_is_lent_and_comes_back)
{
	struct weft_buf *buf, *got = NULL;
	struct weft_req *req = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	buf = buf_new(1000, 3);
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
	struct weft_op op = {
		.size = sizeof(op), .flags = WEFT_KEEP, .peer = port_id(to), .tag = 1, .buf = buf
	};
	int r = weft_send_post(from, &op, &req);
	CHECK(r == 0 || r == WEFT_DONE);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_SENT);
	/* Lent is not to be given away. */
	CHECK_EQ(weft_buf_send(from, port_id(to), 2, buf, SOON), -EBUSY);
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &got, &st));
	CHECK(st.flags & WEFT_ST_SHARED);
	CHECK(got->data == buf->data);
	CHECK(pattern_ok(got->data, got->len, 3));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_WITH_RECEIVER);
	CHECK_OK(weft_buf_put(got));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_send(from, port_id(to), 2, buf, SOON));
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 2, SOON, &got, &st));
	CHECK(!(st.flags & WEFT_ST_SHARED));
	CHECK_OK(weft_buf_put(got));
	ports_close(from, to);
	job_end();
}

TEST(an_announced_buffer_is_being_sent_until_it_is_asked_for)
{
	struct weft_buf *buf, *got = NULL;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	buf = buf_new(1000, 3);
	MUST_OK(weft_send_post(
		from, WEFT(op, .flags = WEFT_KEEP | WEFT_SYNC, .peer = port_id(to), .tag = 1, .buf = buf),
		&req));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_SENDING);
	CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &got, NULL));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_WITH_RECEIVER);
	CHECK_OK(weft_buf_put(got));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(buf));
	ports_close(from, to);
	job_end();
}

TEST(a_lent_buffer_comes_back_also_when_its_send_is_cancelled_or_its_receiver_is_gone)
{
	struct weft_buf *buf;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	buf = buf_new(1000, 3);
	struct weft_op op = { .size = sizeof(op), .peer = port_id(to), .tag = 1, .buf = buf };
	op.flags = WEFT_KEEP | WEFT_SYNC;
	MUST_OK(weft_send_post(from, &op, &req));
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
	/* Announced and lying in the mailbox when the receiver's port closes. */
	MUST_OK(weft_send_post(from, &op, &req));
	op.flags = WEFT_KEEP;
	int r = weft_send_post(from, &op, NULL);
	CHECK(r == 0 || r == WEFT_DONE);
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(buf));
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

TEST(misuse_of_a_buffer_is_an_error_code)
{
	char mine[64] = { 0 };
	struct weft_buf *buf, *got = NULL, *foreign = (struct weft_buf *)(void *)mine;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_EQ(weft_buf_put(foreign), -EINVAL);
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, foreign, SOON), -EINVAL);
	CHECK_EQ(weft_buf_state(foreign), -EINVAL);
	CHECK(weft_buf_of(mine) == NULL);
	buf = buf_new(100, 0);
	MUST_OK(weft_send_post(from, WEFT(op, .flags = WEFT_SYNC, .peer = port_id(to), .tag = 1, .buf = buf),
			       &req));
	CHECK_EQ(weft_buf_put(buf), -EBUSY);
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, buf, SOON), -EBUSY);
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &got, NULL));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_OK(weft_buf_put(got));
	CHECK_EQ(weft_buf_put(got), -EINVAL);
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, got, SOON), -EINVAL);
	buf = buf_new(100, 0);
	buf->len = buf->cap + 1;
	CHECK_EQ(weft_buf_send(from, port_id(to), 1, buf, SOON), -EINVAL);
	buf->len = 10;
	CHECK_OK(weft_buf_put(buf));
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	ports_close(from, to);
	job_end();
}

TEST(a_large_message_from_plain_memory_is_copied_once_whichever_side_came_first)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, LARGE, 1);
	for (int receive_first = 0; receive_first < 2; receive_first++) {
		uint64_t copies = stats_of(NULL).copies;
		struct weft_req *recv = NULL, *sent = NULL;

		if (receive_first)
			MUST_OK(recv_post(to, 0, WEFT_ANY, 1, got, LARGE, &recv));
		int r = send_post(from, 0, port_id(to), 1, mem, LARGE, &sent);
		CHECK(r == 0 || r == WEFT_DONE);
		if (receive_first)
			CHECK_OK(weft_req_wait(&recv, SOON, NULL));
		else
			CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, LARGE, SOON, NULL));
		CHECK_OK(weft_req_wait(&sent, SOON, NULL));
		CHECK_EQ(stats_of(NULL).copies - copies, 1);
		CHECK(pattern_ok(got, LARGE, 1));
		memset(got, 0, LARGE);
	}
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

struct computing {
	unsigned char *got;
	size_t len;
	struct weft_req *req;
	int result;
};

static void computing_post(void *arg)
{
	struct computing *c = arg;

	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, c->got, c->len, &c->req));
}

static void computing_wait(void *arg)
{
	struct computing *c = arg;

	c->result = weft_req_wait(&c->req, WEFT_NOW, NULL);
}

TEST(the_sender_makes_the_match_and_copies_while_the_owner_of_the_receive_computes)
{
	unsigned char *mem = memory(LARGE);
	struct computing c = { .got = memory(LARGE), .len = LARGE };
	struct weft_req *req = NULL;
	struct mate owner;

	job_begin(0);
	mate_start(&owner);
	for (int small = 0; small < 2; small++) {
		c.len = small ? 8 : LARGE;
		pattern_put(mem, c.len, 7);
		mate_run(&owner, computing_post, &c);
		/* The owner makes no call: this ends only if the sender itself may match there. */
		int r = send_post(NULL, small ? WEFT_SYNC : 0, owner.id, 1, mem, c.len, &req);
		CHECK(r == 0 || r == WEFT_DONE);
		CHECK_OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
		memset(mem, 0, c.len);
		mate_run(&owner, computing_wait, &c);
		CHECK_OK(c.result);
		CHECK(pattern_ok(c.got, c.len, 7));
	}
	mate_stop(&owner);
	job_end();
	free(mem);
	free(c.got);
}

TEST_MAIN
