/* test_proto.c - ports that speak a protocol of the user's: a header type of its own, matched by
 * its own equality; made at compile time, or at run time from functions; several at once. */
#include "crew.h"

#define ANYONE UINT32_MAX

struct parcel_head {
	uint32_t kind, owner;           /* ANYONE: free */
	uint64_t key;
};

static inline bool parcel_equal(const struct parcel_head *want, const struct parcel_head *got)
{
	return (want->kind == ANYONE || want->kind == got->kind) &&
	       (want->owner == ANYONE || want->owner == got->owner) && want->key == got->key;
}

static inline uint32_t parcel_shape(const struct parcel_head *want)
{
	return (want->kind == ANYONE) | (uint32_t)(want->owner == ANYONE) << 1;
}

static inline uint64_t parcel_hash(const struct parcel_head *head, uint32_t shape)
{
	return head->key * 31 + (shape & 1 ? 0 : head->kind) +
	       (shape & 2 ? 0 : head->owner * UINT64_C(1000003));
}

#define WEFT_MATCH parcel
#define WEFT_MATCH_HEAD struct parcel_head
#define WEFT_MATCH_EQ(want, got) parcel_equal(want, got)
#define WEFT_MATCH_SHAPE(want) parcel_shape(want)
#define WEFT_MATCH_HASH(head, shape) parcel_hash(head, shape)
#include <weft/match.h>

static int fn_equal(const void *want, const void *got)
{
	return parcel_equal(want, got);
}

static uint32_t fn_shape(const void *want)
{
	return parcel_shape(want);
}

static uint64_t fn_hash(const void *head, uint32_t shape)
{
	return parcel_hash(head, shape);
}

static int fn_less(const void *a, const void *b)
{
	const struct parcel_head *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key;
	return x->kind != y->kind ? x->kind < y->kind : x->owner < y->owner;
}

static const struct weft_match_fns by_hash = { sizeof(by_hash), sizeof(struct parcel_head),
					       fn_equal,	fn_shape,
					       fn_hash,		NULL };
static const struct weft_match_fns by_order = {
	sizeof(by_order), sizeof(struct parcel_head), fn_equal, fn_shape, NULL, fn_less
};

static struct weft_port *port_speaking(const struct weft_proto *proto)
{
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .proto = proto), &port));
	return port;
}

/* Sends a small number; its memory stays, whether the message goes at once or waits. */
static void parcel_send(struct weft_port *from, weft_id to, struct parcel_head head, uint64_t value)
{
	static uint64_t numbers[256];

	numbers[value] = value;
	int r = weft_send_post(from, WEFT(op, .peer = to, .head = &head, .data = &numbers[value], .len = 8),
			       NULL);
	CHECK(r == 0 || r == WEFT_DONE);
}

/* Receives by a pattern: the value, and the header that came. */
static uint64_t parcel_recv(struct weft_port *at, struct parcel_head *head)
{
	uint64_t got = 0;

	MUST_OK(recv_op(at, WEFT(op, .peer = WEFT_ANY, .head = head, .data = &got, .len = 8), NULL));
	return got;
}

static void check_parcels(const struct weft_proto *proto)
{
	struct weft_port *from = port_speaking(proto), *to = port_speaking(proto);
	struct parcel_head head, none = { 9, 9, 9 };
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;
	struct weft_status st;
	uint64_t got = 0;

	/* Unexpected messages: exact, one field free, both free, in order of arrival. */
	parcel_send(from, port_id(to), (struct parcel_head){ 1, 10, 100 }, 1);
	parcel_send(from, port_id(to), (struct parcel_head){ 2, 10, 100 }, 2);
	parcel_send(from, port_id(to), (struct parcel_head){ 2, 20, 100 }, 3);
	parcel_send(from, port_id(to), (struct parcel_head){ 1, 10, 200 }, 4);
	parcel_send(from, port_id(to), (struct parcel_head){ 1, 20, 100 }, 5);
	CHECK_EQ(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .head = &none), WEFT_NOW, NULL, NULL), -EAGAIN);
	head = (struct parcel_head){ 2, ANYONE, 100 };
	CHECK_OK(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .head = &head), WEFT_NOW, NULL, &st));
	CHECK_EQ(st.len, 8);
	CHECK(st.from == port_id(from));
	head = (struct parcel_head){ 1, 20, 100 };
	CHECK_EQ(parcel_recv(to, &head), 5);
	head = (struct parcel_head){ 2, ANYONE, 100 };
	CHECK_EQ(parcel_recv(to, &head), 2);
	CHECK(head.kind == 2 && head.owner == 10 && head.key == 100);
	head = (struct parcel_head){ ANYONE, ANYONE, 100 };
	MUST_OK(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .head = &head), WEFT_NOW, &msg, NULL));
	head = (struct parcel_head){ ANYONE, ANYONE, 100 };
	CHECK_EQ(parcel_recv(to, &head), 3);
	CHECK(head.kind == 2 && head.owner == 20);
	CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .head = &head, .data = &got, .len = 8), NULL));
	CHECK_EQ(got, 1);
	CHECK(head.kind == 1 && head.owner == 10 && head.key == 100);
	head = (struct parcel_head){ ANYONE, 10, 200 };
	CHECK_EQ(parcel_recv(to, &head), 4);

	/* Receives posted before: the earlier posted of those that match. */
	struct parcel_head wide = { ANYONE, ANYONE, 7 }, exact = { 3, 3, 7 };
	uint64_t in_wide = 0, in_exact = 0;
	struct weft_req *second = NULL;
	MUST_OK(weft_recv_post(to, WEFT(op, .peer = WEFT_ANY, .head = &exact, .data = &in_exact, .len = 8),
			       &req, NULL));
	MUST_OK(weft_recv_post(to, WEFT(op, .peer = WEFT_ANY, .head = &wide, .data = &in_wide, .len = 8),
			       &second, NULL));
	parcel_send(from, port_id(to), (struct parcel_head){ 3, 3, 7 }, 30);
	parcel_send(from, port_id(to), (struct parcel_head){ 3, 3, 7 }, 31);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_OK(weft_req_wait(&second, SOON, NULL));
	CHECK_EQ(in_exact, 30);
	CHECK_EQ(in_wide, 31);
	CHECK(wide.kind == 3 && wide.owner == 3 && wide.key == 7);
	ports_close(from, to);
}

TEST(a_port_speaks_a_protocol_made_at_compile_time)
{
	job_begin(0);
	check_parcels(&parcel_proto);
	job_end();
}

TEST(a_port_speaks_a_protocol_made_at_run_time_by_hash_or_by_order)
{
	const struct weft_proto *proto = NULL;

	job_begin(0);
	MUST_OK(weft_proto_new("parcel by hash", &by_hash, &proto));
	check_parcels(proto);
	CHECK_OK(weft_proto_free(proto));
	MUST_OK(weft_proto_new("parcel by order", &by_order, &proto));
	check_parcels(proto);
	CHECK_OK(weft_proto_free(proto));
	job_end();
}

TEST(a_protocol_lives_as_long_as_a_port_speaks_it)
{
	const struct weft_proto *proto = NULL;

	job_begin(0);
	MUST_OK(weft_proto_new("parcel", &by_hash, &proto));
	struct weft_port *port = port_speaking(proto);
	CHECK_EQ(weft_proto_free(proto), -EBUSY);
	CHECK_OK(weft_port_close(port, SOON));
	CHECK_OK(weft_proto_free(proto));
	job_end();
}

TEST(ports_that_speak_different_protocols_do_not_talk)
{
	const struct weft_proto *proto = NULL;
	struct parcel_head head = { 1, 1, 1 };
	uint64_t v = 1;

	job_begin(0);
	MUST_OK(weft_proto_new("letters", &by_hash, &proto));
	struct weft_port *native = port_new(0), *parcels = port_speaking(&parcel_proto),
			 *letters = port_speaking(proto);
	struct weft_op op = { .size = sizeof(op), .head = &head, .data = &v, .len = 8 };
	op.peer = port_id(letters);
	CHECK_EQ(weft_send_post(parcels, &op, NULL), -EPROTO);
	CHECK_EQ(weft_send(native, port_id(parcels), 1, &v, 8, SOON), -EPROTO);
	op.peer = port_id(native);
	CHECK_EQ(weft_send_post(letters, &op, NULL), -EPROTO);
	CHECK_NOTHING(native, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_OK(weft_port_close(native, SOON));
	CHECK_OK(weft_port_close(parcels, SOON));
	CHECK_OK(weft_port_close(letters, SOON));
	CHECK_OK(weft_proto_free(proto));
	job_end();
}

TEST(several_protocols_live_at_once_in_a_process)
{
	const struct weft_proto *proto = NULL;

	job_begin(0);
	MUST_OK(weft_proto_new("ordered parcels", &by_order, &proto));
	struct weft_port *from[2] = { port_speaking(&parcel_proto), port_speaking(proto) };
	struct weft_port *to[2] = { port_speaking(&parcel_proto), port_speaking(proto) };
	for (uint64_t i = 0; i < 200; i++) {
		parcel_send(from[i % 2], port_id(to[i % 2]), (struct parcel_head){ 1, 2, i / 2 }, i);
		CHECK_OK(weft_send(NULL, weft_self(), i, &i, 8, SOON));
		CHECK_NEXT(NULL, weft_self(), i, i);
	}
	for (uint64_t i = 200; i-- > 0; ) {
		struct parcel_head head = { 1, ANYONE, i / 2 };

		CHECK_EQ(parcel_recv(to[i % 2], &head), i);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_port_close(from[i], SOON));
		CHECK_OK(weft_port_close(to[i], SOON));
	}
	CHECK_OK(weft_proto_free(proto));
	job_end();
}

TEST(a_large_message_of_a_foreign_protocol_is_announced_and_can_be_cancelled)
{
	enum { LARGE = 1 << 20 };
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct parcel_head head = { 1, 2, 3 }, want = { ANYONE, 2, 3 };
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_speaking(&parcel_proto), *to = port_speaking(&parcel_proto);
	struct weft_op op = {
		.size = sizeof(op), .peer = port_id(to), .head = &head, .data = mem, .len = LARGE
	};
	pattern_put(mem, LARGE, 6);
	MUST_OK(weft_send_post(from, &op, &req));
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
	CHECK_EQ(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .head = &want), WEFT_NOW, NULL, NULL), -EAGAIN);
	MUST_OK(weft_send_post(from, &op, &req));
	CHECK_OK(recv_op(to, WEFT(op, .peer = WEFT_ANY, .head = &want, .data = got, .len = LARGE), NULL));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK(pattern_ok(got, LARGE, 6));
	CHECK_EQ(want.kind, 1);
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(with_the_raw_protocol_messages_come_in_order_of_arrival)
{
	uint64_t numbers[100];

	job_begin(0);
	struct weft_port *a = port_speaking(&weft_proto_raw), *b = port_speaking(&weft_proto_raw),
			 *to = port_speaking(&weft_proto_raw);
	for (uint64_t i = 0; i < 100; i++) {
		numbers[i] = i;
		CHECK(send_post(i % 3 ? a : b, 0, port_id(to), 100 - i, &numbers[i], 8, NULL) >= 0);
	}
	for (uint64_t i = 0; i < 100; i++) {
		struct weft_status st;
		uint64_t got = 0;

		CHECK_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, &got, 8, SOON, &st));
		CHECK_EQ(got, i);
		CHECK(st.from == port_id(i % 3 ? a : b));
	}
	CHECK_OK(weft_port_close(a, SOON));
	CHECK_OK(weft_port_close(b, SOON));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
}

TEST_MAIN
