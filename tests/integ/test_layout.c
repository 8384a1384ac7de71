/* test_layout.c - memory that is not one block: lists of pieces and layouts that make their
 * pieces when asked, on either side, of any size, cut anywhere. */
#include "column.h"

enum { MOST = 300000 };

static bool column_ok(const struct column *c, size_t len, uint64_t seed)
{
	unsigned char *flat = memory(len + 1);
	bool ok;

	column_move(&c->layout, 0, flat, len, 0);
	ok = pattern_ok(flat, len, seed);
	/* What lies between the runs is nobody's and was not written. */
	for (size_t row = 0; row < len / c->width && ok; row++)
		for (size_t i = c->width; i < c->stride; i++)
			ok &= c->base[row * c->stride + i] == 0;
	free(flat);
	return ok;
}

static void column_fill(const struct column *c, uint64_t seed)
{
	unsigned char *flat = memory(c->layout.len + 1);

	pattern_put(flat, c->layout.len, seed);
	column_move(&c->layout, 0, flat, c->layout.len, 1);
	free(flat);
}

/* A list of pieces over one block, with empty ones and pieces of odd lengths. */
static uint32_t iov_cut(struct iovec *iov, uint32_t max, unsigned char *mem, size_t len, uint64_t *seed)
{
	uint32_t n = 0;
	size_t at = 0;

	while (at < len && n < max - 1) {
		size_t piece = test_random(seed) % (len / 8 + 2);

		if (piece > len - at)
			piece = len - at;
		iov[n++] = (struct iovec){ piece ? mem + at : NULL, piece };
		at += piece;
	}
	iov[n++] = (struct iovec){ mem + at, len - at };
	return n;
}

enum { PLAIN, LIST, LAYOUT, MOVED, KINDS };

/* One end of a transfer in one of the forms. */
struct end {
	struct weft_op op;
	unsigned char *mem;
	struct iovec iov[64];
	struct column column;
};

static void end_init(struct end *e, int kind, size_t len, uint64_t *seed)
{
	*e = (struct end){ .op = { .size = sizeof(e->op), .tag = 1 } };
	if (kind == PLAIN || kind == LIST)
		e->mem = memory(len + 1);
	if (kind == PLAIN) {
		e->op.data = e->mem;
		e->op.len = len;
	} else if (kind == LIST) {
		e->op.iov = e->iov;
		e->op.niov = iov_cut(e->iov, 64, e->mem, len, seed);
	} else {
		size_t width = 1 + test_random(seed) % 100;

		e->column = column_new(len, width, width + test_random(seed) % 30, kind == MOVED);
		e->op.layout = &e->column.layout;
	}
}

static void end_fill(struct end *e, size_t len, uint64_t seed)
{
	if (e->mem)
		pattern_put(e->mem, len, seed);
	else
		column_fill(&e->column, seed);
}

static bool end_ok(struct end *e, size_t len, uint64_t seed)
{
	return e->mem ? pattern_ok(e->mem, len, seed) : column_ok(&e->column, len, seed);
}

static void end_fini(struct end *e)
{
	free(e->mem);
	free(e->column.base);
}

/* Sends len bytes in one form and receives them, room bytes of space, in another. */
static void transfer(int out, int in, size_t len, size_t room, bool receive_first, uint64_t *seed)
{
	struct weft_req *sent = NULL, *recv = NULL;
	struct weft_status st = { .err = 1 };
	struct end from, to;
	uint32_t cut = len > room ? WEFT_TRUNCATE : 0;
	size_t n = len < room ? len : room;

	struct weft_port *a = port_new(0), *b = port_new(0);
	end_init(&from, out, len, seed);
	end_init(&to, in, room, seed);
	end_fill(&from, len, len);
	from.op.peer = port_id(b);
	to.op.peer = port_id(a);
	to.op.flags = cut;
	if (receive_first)
		MUST_OK(weft_recv_post(b, &to.op, &recv, NULL));
	int r = weft_send_post(a, &from.op, &sent);
	CHECK(r == 0 || r == WEFT_DONE);
	r = receive_first ? weft_req_wait(&recv, SOON, &st) : recv_op(b, &to.op, &st);
	CHECK_EQ(r, cut ? -EMSGSIZE : 0);
	CHECK_EQ(st.len, len);
	CHECK(end_ok(&to, n, len));
	CHECK_OK(weft_req_wait(&sent, SOON, NULL));
	end_fini(&from);
	end_fini(&to);
	ports_close(a, b);
}

static void transfer_all(int out, int in)
{
	static const size_t sizes[] = { 0, 1, 7, 24, 25, 88, 89, 500, 4096, 8192, 8193, 70000, MOST };
	uint64_t seed = test_seed;

	job_begin(0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int first = 0; first < 2; first++) {
			transfer(out, in, sizes[i], sizes[i], first, &seed);
			transfer(out, in, sizes[i], sizes[i] + 100, first, &seed);
			if (sizes[i] > 1)
				transfer(out, in, sizes[i], sizes[i] - 1 - sizes[i] / 3, first, &seed);
		}
	job_end();
}

TEST(a_list_of_pieces_is_sent_as_one_message)
{
	transfer_all(LIST, PLAIN);
}

TEST(a_message_is_received_into_a_list_of_pieces)
{
	transfer_all(PLAIN, LIST);
}

TEST(a_list_is_received_into_a_list_cut_elsewhere)
{
	transfer_all(LIST, LIST);
}

TEST(a_layout_makes_its_pieces_when_asked_on_either_side)
{
	transfer_all(LAYOUT, PLAIN);
	transfer_all(PLAIN, LAYOUT);
	transfer_all(LAYOUT, LAYOUT);
}

TEST(a_layout_with_move_moves_its_bytes_itself)
{
	transfer_all(MOVED, PLAIN);
	transfer_all(PLAIN, MOVED);
	transfer_all(MOVED, MOVED);
}

TEST(every_form_meets_every_other)
{
	transfer_all(LIST, LAYOUT);
	transfer_all(LAYOUT, LIST);
	transfer_all(MOVED, LIST);
	transfer_all(LIST, MOVED);
	transfer_all(MOVED, LAYOUT);
	transfer_all(LAYOUT, MOVED);
}

TEST(a_list_may_have_more_pieces_than_the_system_takes_at_once)
{
	enum { PIECES = 5000 };
	struct iovec *iov = memory(PIECES * sizeof(*iov));
	unsigned char *mem = memory(3 * PIECES), *got = memory(2 * PIECES);
	struct weft_req *req = NULL;
	bool ok = true;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){ mem + 3 * i, 2 };
		mem[3 * i] = (unsigned char)i;
		mem[3 * i + 1] = (unsigned char)(i >> 8);
	}
	int r = weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .iov = iov, .niov = PIECES),
			       &req);
	CHECK(r == 0 || r == WEFT_DONE);
	CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, 2 * PIECES, SOON, NULL));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	for (int i = 0; i < PIECES; i++)
		ok &= got[2 * i] == (unsigned char)i && got[2 * i + 1] == (unsigned char)(i >> 8);
	CHECK(ok);
	ports_close(from, to);
	job_end();
	free(iov);
	free(mem);
	free(got);
}

TEST(a_buffer_is_received_into_a_layout_and_a_layout_as_a_buffer)
{
	struct weft_buf *buf = NULL, *got = NULL;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct column c = column_new(20000, 13, 17, false);
	MUST_OK(weft_buf_get(20000, 0, &buf));
	pattern_put(buf->data, 20000, 8);
	CHECK_OK(weft_buf_send(from, port_id(to), 1, buf, SOON));
	CHECK_OK(recv_op(to, WEFT(op, .peer = WEFT_ANY, .tag = 1, .layout = &c.layout), NULL));
	CHECK(column_ok(&c, 20000, 8));
	int r = weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .layout = &c.layout), &req);
	CHECK(r == 0 || r == WEFT_DONE);
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &got, NULL));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK(pattern_ok(got->data, 20000, 8));
	CHECK_OK(weft_buf_put(got));
	free(c.base);
	ports_close(from, to);
	job_end();
}

static int no_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	(void)l, (void)at, (void)ret_iov, (void)max;
	return 0;
}

TEST(a_layout_that_gives_no_pieces_is_refused_and_nothing_is_sent)
{
	static const size_t lens[] = { 8, 96, 4096 };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct weft_layout empty = { lens[i], no_pieces, NULL };

		CHECK_EQ(weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .layout = &empty), NULL), -EINVAL);
		CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	}
	ports_close(from, to);
	job_end();
}

TEST_MAIN
