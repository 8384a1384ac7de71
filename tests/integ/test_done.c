/* test_done.c - when a send is done, what that tells, and what becomes of messages that do not
 * fit or were never received. */
#include "crew.h"

enum { LARGE = 1 << 20 };

TEST(a_send_is_done_when_its_memory_is_free_again)
{
	static const size_t len[] = { 0, 1, 8, 24, 88, 89, 1000, 8192 };
	unsigned char mem[8192], got[8192];
	struct weft_req *req = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		pattern_put(mem, sizeof(mem), i);
		CHECK_EQ(send_post(from, 0, port_id(to), i, mem, len[i], &req),
			 WEFT_DONE);
		CHECK(req == NULL);
		memset(mem, 0xee, sizeof(mem));
		memset(got, 0xdd, sizeof(got));
		CHECK_OK(weft_recv(to, WEFT_ANY, i, got, sizeof(got), SOON, &st));
		CHECK_EQ(st.len, len[i]);
		CHECK(pattern_ok(got, len[i], i));
		CHECK(len[i] == sizeof(got) || got[len[i]] == 0xdd);
	}
	ports_close(from, to);
	job_end();
}

TEST(a_large_send_from_plain_memory_is_done_when_it_was_received)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct weft_req *req = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, LARGE, 1);
	MUST_OK(send_post(from, 0, port_id(to), 5, mem, LARGE, &req));
	CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
	CHECK_OK(weft_recv(to, port_id(from), 5, got, LARGE, SOON, &st));
	CHECK_EQ(st.len, LARGE);
	CHECK_OK(weft_req_wait(&req, SOON, &st));
	CHECK(req == NULL);
	CHECK(st.from == port_id(to));
	memset(mem, 0, LARGE);
	CHECK(pattern_ok(got, LARGE, 1));
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(that_a_send_was_matched_is_known_only_from_one_with_sync)
{
	uint64_t v = 7, got = 0;
	struct weft_req *req = NULL, *recv = NULL;
	struct weft_op op = { .size = sizeof(op), .tag = 1, .data = &v, .len = 8 };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	op.peer = port_id(to);
	CHECK_EQ(weft_send_post(from, &op, &req), WEFT_DONE);
	op.flags = WEFT_SYNC;
	MUST_OK(weft_send_post(from, &op, &req));
	CHECK_NOTHING(to, WEFT_ANY, 2);
	CHECK_EQ(weft_req_wait(&req, WEFT_NOW, NULL), -EAGAIN);
	CHECK_NEXT(to, WEFT_ANY, 1, 7);
	/* Not the first one's receive but its own ends it. */
	CHECK_EQ(weft_req_wait(&req, WEFT_NOW, NULL), -EAGAIN);
	CHECK_NEXT(to, WEFT_ANY, 1, 7);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	/* With the receive posted before it is over as soon as somebody has matched the two. */
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &recv));
	int r = weft_send_post(from, &op, &req);
	CHECK(r == 0 || r == WEFT_DONE);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_OK(weft_req_wait(&recv, SOON, NULL));
	CHECK_EQ(got, 7);
	ports_close(from, to);
	job_end();
}

TEST(with_rendezvous_only_the_header_goes_before_it_is_asked_for)
{
	uint64_t v = 1;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(send_post(from, WEFT_RENDEZVOUS, port_id(to), 1, &v, 8, &req));
	CHECK_NOTHING(to, WEFT_ANY, 2);
	/* The memory was still the sender's: what is in it now is what arrives. */
	v = 2;
	CHECK_NEXT(to, WEFT_ANY, 1, 2);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	ports_close(from, to);
	job_end();
}

struct loss {
	_Atomic uint64_t messages;
	_Atomic uint64_t whose;
};

static void loss_event(const struct weft_status *st)
{
	struct loss *l = st->user;

	if (st->tag != WEFT_LOST)
		return;
	atomic_store(&l->whose, st->from);
	atomic_fetch_add(&l->messages, st->lost > 1 ? st->lost : 1);
}

TEST(what_was_done_and_not_received_when_the_port_closed_is_counted_and_told_to_a_source_that_asked)
{
	struct weft_port *told = NULL;
	uint64_t v = 1;
	struct loss loss = { 0 };

	job_begin(0);
	struct weft_port *untold = port_new(0), *to = port_new(0);
	weft_id gone = port_id(to);
	MUST_OK(weft_port_open(WEFT(port_opts, .event = loss_event, .user = &loss), &told));
	uint64_t before = stats_of(NULL).lost;
	for (int i = 0; i < 5; i++)
		CHECK_OK(weft_send(told, gone, 1, &v, 8, SOON));
	for (int i = 0; i < 3; i++)
		CHECK_OK(weft_send(untold, gone, 1, &v, 8, SOON));
	CHECK_NEXT(to, port_id(told), 1, 1);
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(stats_of(NULL).lost - before, 7);
	CHECK_EQ(stats_of(told).lost, 4);
	CHECK_EQ(stats_of(untold).lost, 3);
	EVENTUALLY(atomic_load(&loss.messages) >= 4);
	CHECK(atomic_load(&loss.whose) == gone);
	ports_close(told, untold);
	job_end();
	CHECK_EQ(loss.messages, 4);
}

TEST(a_send_that_finds_the_port_closed_fails)
{
	uint64_t v = 1;
	struct weft_buf *buf = NULL;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	weft_id gone = port_id(to);
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(weft_send(from, gone, 1, &v, 8, SOON), -ESRCH);
	CHECK(weft_last_error()[0] != 0);
	CHECK_EQ(weft_send_post(from, WEFT(op, .peer = gone, .data = &v, .len = 8), &req), -ESRCH);
	CHECK(req == NULL);
	/* The buffer is still the caller's. */
	MUST_OK(weft_buf_get(100, 0, &buf));
	CHECK_EQ(weft_buf_send(from, gone, 1, buf, SOON), -ESRCH);
	CHECK_OK(weft_buf_put(buf));
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

struct taker {
	struct weft_port *at;
	int count;
};

static void taker_take_and_close(void *arg)
{
	struct taker *t = arg;
	uint64_t v;

	for (int i = 0; i < t->count; i++)
		MUST_OK(weft_recv(t->at, WEFT_ANY, 1, &v, sizeof(v), SOON, NULL));
	CHECK_OK(weft_port_close(t->at, SOON));
}

TEST(an_operation_that_ends_with_a_peer_error_took_effect_at_most_once)
{
	enum { N = 40 };
	uint64_t v = 1, seed = test_seed;
	struct weft_req *req[N];
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0);
	for (uint64_t round = test_scaled(300); round > 0; round--) {
		struct taker t = { port_new(0), (int)(test_random(&seed) % N) };
		weft_id to = port_id(t.at);
		int matched = 0, reset = 0, refused = 0;

		mate_begin(&mate, taker_take_and_close, &t);
		for (int i = 0; i < N; i++) {
			int r = send_post(from, WEFT_SYNC, to, 1, &v, 8, &req[i]);

			matched += r == WEFT_DONE;
			refused += r == -ESRCH;
			if (r != 0)
				req[i] = NULL;
		}
		for (int i = 0; i < N; i++) {
			bool given = req[i] != NULL;
			int r = weft_req_wait(&req[i], SOON, NULL);

			matched += given && r == 0;
			reset += r == -ECONNRESET;
		}
		mate_wait(&mate);
		CHECK_EQ(matched, t.count);
		CHECK_EQ(matched + reset + refused, N);
	}
	CHECK_OK(weft_port_close(from, SOON));
	mate_stop(&mate);
	job_end();
}

TEST(a_send_is_always_accepted)
{
	enum { N = 20000 };
	uint64_t v = 1, at_once = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < N; i++) {
		int r = send_post(from, 0, port_id(to), 1, &v, 8, NULL);

		MUST(r == 0 || r == WEFT_DONE);
		at_once += r == WEFT_DONE;
	}
	/* Most of them wait: the mailbox has an end, the acceptance has not. */
	CHECK(at_once > 0 && at_once < N);
	for (int i = 0; i < N; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	ports_close(from, to);
	job_end();
}

TEST(beyond_a_ports_limit_a_send_answers_again_and_nothing_happened)
{
	uint64_t v = 1;
	struct weft_port *from = NULL;
	struct weft_req *req[3] = { NULL };

	job_begin(0);
	struct weft_port *to = port_new(0);
	MUST_OK(weft_port_open(WEFT(port_opts, .limit = 2), &from));
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_SYNC, .peer = port_id(to), .tag = 1,
			      .data = &v, .len = 8 };
	MUST_OK(weft_send_post(from, &op, &req[0]));
	MUST_OK(weft_send_post(from, &op, &req[1]));
	CHECK_EQ(weft_send_post(from, &op, &req[2]), -EAGAIN);
	CHECK(req[2] == NULL);
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_OK(weft_req_wait(&req[0], SOON, NULL));
	MUST_OK(weft_send_post(from, &op, &req[2]));
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	CHECK_OK(weft_req_wait(&req[1], SOON, NULL));
	CHECK_OK(weft_req_wait(&req[2], SOON, NULL));
	ports_close(from, to);
	job_end();
}

/* Messages of len and 8 bytes with one tag, in that order, from one port. */
static struct weft_req *long_then_short(struct weft_port *from, weft_id to, void *mem, size_t len,
					uint64_t *v)
{
	struct weft_req *req = NULL;
	int r = send_post(from, 0, to, 1, mem, len, &req);

	MUST(r == 0 || r == WEFT_DONE);
	MUST_OK(weft_send(from, to, 1, v, 8, SOON));
	return req;
}

TEST(a_message_that_does_not_fit_its_receive_goes_back_to_its_old_place)
{
	static const size_t len[] = { 100, 5000, LARGE };
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	uint64_t v = 9, small[2] = { 0, 77 };
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 3; i++) {
		struct weft_req *req = NULL, *recv = NULL;

		pattern_put(mem, len[i], 3);
		/* An unexpected message and a receive that comes after it. */
		req = long_then_short(from, port_id(to), mem, len[i], &v);
		CHECK_EQ(weft_recv(to, WEFT_ANY, 1, small, 8, SOON, &st), -EMSGSIZE);
		CHECK_EQ(st.len, len[i]);
		CHECK_EQ(small[1], 77);
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, LARGE, SOON, &st));
		CHECK_EQ(st.len, len[i]);
		CHECK(pattern_ok(got, len[i], 3));
		CHECK_NEXT(to, WEFT_ANY, 1, 9);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		/* A receive posted before the message. */
		MUST_OK(recv_post(to, 0, WEFT_ANY, 1, small, 8, &recv));
		req = long_then_short(from, port_id(to), mem, len[i], &v);
		CHECK_EQ(weft_req_wait(&recv, SOON, &st), -EMSGSIZE);
		CHECK_EQ(st.err, -EMSGSIZE);
		CHECK_EQ(st.len, len[i]);
		CHECK_EQ(small[1], 77);
		memset(got, 0, len[i]);
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, LARGE, SOON, NULL));
		CHECK(pattern_ok(got, len[i], 3));
		CHECK_NEXT(to, WEFT_ANY, 1, 9);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	}
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(a_message_that_went_back_meets_the_receives_posted_behind_the_one_it_did_not_fit)
{
	unsigned char mem[100], small[8], got[100];
	struct weft_req *first = NULL, *second = NULL;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	pattern_put(mem, sizeof(mem), 4);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, small, 8, &first));
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, got, 100, &second));
	CHECK_OK(weft_send(from, port_id(to), 1, mem, sizeof(mem), SOON));
	CHECK_EQ(weft_req_wait(&first, SOON, NULL), -EMSGSIZE);
	CHECK_OK(weft_req_wait(&second, SOON, &st));
	CHECK_EQ(st.len, 100);
	CHECK(pattern_ok(got, 100, 4));
	ports_close(from, to);
	job_end();
}

TEST(a_message_that_does_not_fit_is_cut_off_if_asked)
{
	static const size_t len[] = { 100, 5000, LARGE };
	unsigned char *mem = memory(LARGE), small[16];
	uint64_t v = 9;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct weft_op cut = { .size = sizeof(cut), .flags = WEFT_TRUNCATE, .peer = WEFT_ANY, .tag = 1,
			       .data = small, .len = 8 };
	for (int i = 0; i < 6; i++) {
		struct weft_req *req = NULL, *recv = NULL;

		pattern_put(mem, len[i / 2], 5);
		memset(small, 0xdd, sizeof(small));
		if (i % 2)      /* posted before */
			MUST_OK(weft_recv_post(to, &cut, &recv, NULL));
		req = long_then_short(from, port_id(to), mem, len[i / 2], &v);
		int r = i % 2 ? weft_req_wait(&recv, SOON, &st) : recv_op(to, &cut, &st);
		CHECK_EQ(r, -EMSGSIZE);
		CHECK_EQ(st.len, len[i / 2]);
		CHECK(pattern_ok(small, 8, 5));
		CHECK_EQ(small[8], 0xdd);
		/* Cut off is received: the sender is done, and the rest does not come again. */
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		CHECK_NEXT(to, WEFT_ANY, 1, 9);
		CHECK_NOTHING(to, WEFT_ANY, 1);
	}
	ports_close(from, to);
	job_end();
	free(mem);
}

TEST_MAIN
