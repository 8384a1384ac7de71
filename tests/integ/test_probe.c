/* test_probe.c - waiting for a message without receiving it, and taking it out of matching. */
#include "crew.h"

enum { LARGE = 1 << 20 };

static int probe(struct weft_port *at, weft_id from, uint64_t tag, struct weft_msg **ret_msg,
		 struct weft_status *ret_st)
{
	return weft_probe(at, WEFT(op, .peer = from, .tag = tag), WEFT_NOW, ret_msg, ret_st);
}

TEST(a_probe_tells_of_the_first_message_that_matches_and_leaves_it)
{
	unsigned char mem[5000] = { 0 };
	struct weft_status st;

	job_begin(0);
	struct weft_port *a = port_new(0), *b = port_new(0), *to = port_new(0);
	CHECK_OK(weft_send(a, port_id(to), 1, mem, 10, SOON));
	CHECK_OK(weft_send(b, port_id(to), 2, mem, 5000, SOON));
	CHECK_OK(weft_send(a, port_id(to), 2, mem, 30, SOON));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(probe(to, WEFT_ANY, WEFT_ANY_TAG, NULL, &st));
		CHECK(st.from == port_id(a) && st.tag == 1 && st.len == 10);
		CHECK_OK(probe(to, WEFT_ANY, 2, NULL, &st));
		CHECK(st.from == port_id(b) && st.tag == 2 && st.len == 5000);
		CHECK_OK(probe(to, port_id(a), 2, NULL, &st));
		CHECK(st.from == port_id(a) && st.tag == 2 && st.len == 30);
		CHECK_OK(probe(to, port_id(b), WEFT_ANY_TAG, NULL, &st));
		CHECK(st.from == port_id(b) && st.len == 5000);
	}
	CHECK_EQ(probe(to, port_id(b), 1, NULL, &st), -EAGAIN);
	CHECK_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, mem, sizeof(mem), SOON, &st));
	CHECK_EQ(st.len, 10);
	CHECK_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, mem, sizeof(mem), SOON, &st));
	CHECK_EQ(st.len, 5000);
	CHECK_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, mem, sizeof(mem), SOON, &st));
	CHECK_EQ(st.len, 30);
	CHECK_OK(weft_port_close(a, SOON));
	CHECK_OK(weft_port_close(b, SOON));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
}

TEST(bits_set_in_ignore_do_not_matter_to_probe_and_receive)
{
	uint64_t v = 0xabcd, got = 0;
	struct weft_req *req = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct weft_op op = {
		.size = sizeof(op), .peer = WEFT_ANY, .tag = 0x1200, .ignore = 0xff, .data = &got, .len = 8
	};
	CHECK_OK(weft_send(from, port_id(to), 0x1301, &v, 8, SOON));
	CHECK_EQ(weft_probe(to, &op, WEFT_NOW, NULL, NULL), -EAGAIN);
	CHECK_OK(weft_send(from, port_id(to), 0x1234, &v, 8, SOON));
	CHECK_OK(weft_probe(to, &op, WEFT_NOW, NULL, &st));
	CHECK_EQ(st.tag, 0x1234);
	CHECK_OK(recv_op(to, &op, &st));
	CHECK_EQ(st.tag, 0x1234);
	/* Posted before the message, too. */
	MUST_OK(weft_recv_post(to, &op, &req, NULL));
	CHECK_OK(weft_send(from, port_id(to), 0x1302, &v, 8, SOON));
	CHECK_OK(weft_send(from, port_id(to), 0x12ff, &v, 8, SOON));
	CHECK_OK(weft_req_wait(&req, SOON, &st));
	CHECK_EQ(st.tag, 0x12ff);
	CHECK_NEXT(to, WEFT_ANY, 0x1301, v);
	CHECK_NEXT(to, WEFT_ANY, 0x1302, v);
	ports_close(from, to);
	job_end();
}

TEST(a_matched_probe_takes_the_message_out_of_matching_to_be_received_later)
{
	uint64_t v[3] = { 1, 2, 3 }, got = 0;
	struct weft_msg *msg = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 3; i++)
		CHECK_OK(weft_send(from, port_id(to), 1, &v[i], 8, SOON));
	CHECK_OK(probe(to, WEFT_ANY, 1, &msg, &st));
	MUST(msg != NULL);
	CHECK_EQ(st.len, 8);
	CHECK_NEXT(to, WEFT_ANY, 1, 2);
	CHECK_NEXT(to, WEFT_ANY, 1, 3);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .data = &got, .len = 8), &st));
	CHECK_EQ(got, 1);
	CHECK(st.from == port_id(from) && st.tag == 1 && st.len == 8);
	ports_close(from, to);
	job_end();
}

TEST(a_matched_message_of_every_kind_is_received_in_every_form)
{
	static const size_t sizes[] = { 0, 8, 500, 8192, 20000, LARGE };
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 6 * 2 * 2; i++) {
		size_t len = sizes[i / 4];
		struct weft_buf *buf = NULL;
		struct weft_req *req = NULL;
		struct weft_msg *msg = NULL;
		int r;

		if (i & 1) {
			MUST_OK(weft_buf_get(len, 0, &buf));
			pattern_put(buf->data, len, len);
			r = weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .buf = buf), &req);
		} else {
			pattern_put(mem, len, len);
			r = send_post(from, 0, port_id(to), 1, mem, len, &req);
		}
		CHECK(r == 0 || r == WEFT_DONE);
		MUST_OK(probe(to, WEFT_ANY, 1, &msg, &st));
		CHECK_EQ(st.len, len);
		if (i & 2) {
			CHECK_OK(recv_op(to, WEFT(op, .flags = WEFT_ALLOC, .msg = msg), &st));
			CHECK(pattern_ok(st.buf->data, len, len));
			CHECK_OK(weft_buf_put(st.buf));
		} else {
			CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .data = got, .len = LARGE), &st));
			CHECK(pattern_ok(got, len, len));
		}
		CHECK_EQ(st.len, len);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	}
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(a_matched_message_that_does_not_fit_is_still_the_callers)
{
	unsigned char mem[100], got[100], small[8];
	struct weft_msg *msg = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, 100, 1);
	CHECK_OK(weft_send(from, port_id(to), 1, mem, 100, SOON));
	MUST_OK(probe(to, WEFT_ANY, 1, &msg, NULL));
	CHECK_EQ(recv_op(to, WEFT(op, .msg = msg, .data = small, .len = 8), &st), -EMSGSIZE);
	CHECK_EQ(st.len, 100);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .data = got, .len = 100), &st));
	CHECK(pattern_ok(got, 100, 1));
	CHECK_OK(weft_send(from, port_id(to), 1, mem, 100, SOON));
	MUST_OK(probe(to, WEFT_ANY, 1, &msg, NULL));
	CHECK_EQ(recv_op(to, WEFT(op, .flags = WEFT_TRUNCATE, .msg = msg, .data = small, .len = 8), &st),
		 -EMSGSIZE);
	CHECK(pattern_ok(small, 8, 1));
	ports_close(from, to);
	job_end();
}

struct other {
	struct weft_port *at;
	struct weft_msg *msg;
	uint64_t got;
	struct weft_status st;
	int result;
};

static void other_receives(void *arg)
{
	struct other *o = arg;

	o->result = recv_op(o->at, WEFT(op, .msg = o->msg, .data = &o->got, .len = 8), NULL);
}

TEST(a_matched_message_is_received_by_any_thread)
{
	uint64_t v = 12;
	struct mate mate;
	struct other o = { 0 };

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0);
	CHECK_OK(weft_send(from, weft_self(), 1, &v, 8, SOON));
	MUST_OK(probe(NULL, WEFT_ANY, 1, &o.msg, NULL));
	mate_run(&mate, other_receives, &o);
	CHECK_OK(o.result);
	CHECK_EQ(o.got, 12);
	CHECK_OK(weft_port_close(from, SOON));
	mate_stop(&mate);
	job_end();
}

static void other_probes(void *arg)
{
	struct other *o = arg;

	o->result = weft_probe(o->at, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, &o->msg, &o->st);
}

TEST(a_waiting_probe_is_woken_by_its_message_and_by_no_other)
{
	uint64_t v = 12, got = 0;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 20; i++) {
		struct other o = { .at = to };
		uint32_t parked = stats_of(NULL).parked;

		mate_begin(&mate, other_probes, &o);
		EVENTUALLY(stats_of(NULL).parked > parked);
		CHECK_OK(weft_send(from, port_id(to), 2, &v, 8, SOON));
		CHECK_NEXT(to, WEFT_ANY, 2, 12);
		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
		mate_wait(&mate);
		CHECK_OK(o.result);
		CHECK_EQ(o.st.tag, 1);
		CHECK_OK(recv_op(to, WEFT(op, .msg = o.msg, .data = &got, .len = 8), NULL));
	}
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
}

TEST(of_several_threads_that_probe_a_shared_port_each_message_goes_to_one)
{
	enum { MATES = 3 };
	struct mate mates[MATES];
	struct other o[MATES];
	uint64_t sum = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < MATES; i++)
		mate_start(&mates[i]);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < MATES; i++) {
			o[i] = (struct other){ .at = to };
			mate_begin(&mates[i], other_probes, &o[i]);
		}
		for (uint64_t i = 1; i <= MATES; i++)
			CHECK_OK(weft_send(from, port_id(to), 1, &i, 8, SOON));
		for (int i = 0; i < MATES; i++) {
			uint64_t got = 0;

			mate_wait(&mates[i]);
			CHECK_OK(o[i].result);
			CHECK_OK(recv_op(to, WEFT(op, .msg = o[i].msg, .data = &got, .len = 8), NULL));
			sum += got;
		}
	}
	CHECK_EQ(sum, 300 * (1 + 2 + 3));
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	for (int i = 0; i < MATES; i++)
		mate_stop(&mates[i]);
	ports_close(from, to);
	job_end();
}

TEST_MAIN
