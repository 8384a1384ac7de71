/* test_budget.c - the budget counts what arrived unasked; what a sender has pending is the
 * sender's memory; so 10^6 unmatched sends neither grow the receiver nor hide a later matching one. */
#include "../proc.h"
#include "crew.h"

enum { BUDGET = 1 << 20, NOISE = 1, SIGNAL = 2 };

struct ear {
	weft_id from;
	_Atomic uint64_t heard;
	uint64_t drained;
};

/* Waits for the one message, and takes the others when told how many there are. */
static void ear_wait(void *arg)
{
	struct ear *e = arg;
	uint64_t v = 0;

	MUST_OK(weft_recv(NULL, e->from, SIGNAL, &v, 8, WEFT_FOREVER, NULL));
	atomic_store(&e->heard, v);
}

static void ear_drain(void *arg)
{
	struct ear *e = arg;

	for (uint64_t i = 0; i < e->drained; i++) {
		uint64_t v = ~i;

		MUST_OK(weft_recv(NULL, e->from, NOISE, &v, 8, SOON, NULL));
		MUST_EQ(v, i);
	}
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
}

TEST(a_million_posted_sends_that_nobody_asked_for_do_not_hide_one_that_is_waited_for)
{
	uint64_t n = test_scaled(1000000), signal = 77, most = 0;
	uint64_t *numbers = memory(n * sizeof(*numbers));
	struct mate mate;
	struct ear ear = { 0 };
	struct weft_req *req = NULL;

	job_begin(BUDGET);
	mate_start(&mate);
	ear.from = weft_self();
	for (uint64_t i = 0; i < n; i++)
		numbers[i] = i;
	size_t before = proc_resident();
	mate_begin(&mate, ear_wait, &ear);
	for (uint64_t i = 0; i < n; i++) {
		int r = send_post(NULL, 0, mate.id, NOISE, &numbers[i], 8, NULL);

		MUST_EQ(r < 0 ? r : 0, 0);
		if (i % 1024 == 0) {
			uint64_t held = stats_of(NULL).unexpected_bytes;

			most = held > most ? held : most;
		}
	}
	CHECK(send_post(NULL, 0, mate.id, SIGNAL, &signal, 8, &req) >= 0);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	mate_wait(&mate);
	CHECK_EQ(atomic_load(&ear.heard), 77);
	CHECK_EQ(stats_of(NULL).budget, BUDGET);
	CHECK(stats_of(NULL).unexpected_bytes <= BUDGET);
	CHECK(most <= BUDGET);
	/* All but the budget is the senders' own: a request each, of less than 1 KiB. */
	size_t grown = proc_resident() - before;
	printf("# %llu sends: %llu bytes held at most, resident memory grew by %llu\n", (unsigned long long)n,
	       (unsigned long long)most, (unsigned long long)grown);
	if (!TEST_TSAN && !TEST_ASAN)
		CHECK(grown <= n * 1024 + BUDGET + (16 << 20));
	ear.drained = n;
	mate_run(&mate, ear_drain, &ear);
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	mate_stop(&mate);
	job_end();
	free(numbers);
}

TEST(a_million_sends_that_must_not_wait_leave_the_receiver_within_its_budget)
{
	uint64_t n = test_scaled(1000000), accepted = 0, most = 0, signal = 78;
	struct mate mate;
	struct ear ear = { 0 };

	job_begin(BUDGET);
	mate_start(&mate);
	ear.from = weft_self();
	size_t before = proc_resident();
	mate_begin(&mate, ear_wait, &ear);
	for (uint64_t i = 0; i < n; i++) {
		int r = weft_send(NULL, mate.id, NOISE, &accepted, 8, WEFT_NOW);

		MUST(r == 0 || r == -EAGAIN);
		accepted += r == 0;
		if (i % 1024 == 0) {
			if (r < 0)      /* the receiver wants a processor too */
				crew_nap();
			uint64_t held = stats_of(NULL).unexpected_bytes;

			most = held > most ? held : most;
		}
	}
	CHECK_OK(weft_send(NULL, mate.id, SIGNAL, &signal, 8, SOON));
	mate_wait(&mate);
	CHECK_EQ(atomic_load(&ear.heard), 78);
	/* It was used, and it was kept. */
	CHECK(most > BUDGET / 2 || test_scale() < 1);
	CHECK(most <= BUDGET);
	size_t after = proc_resident(), grown = after > before ? after - before : 0;
	printf("# %llu of %llu sends accepted: %llu bytes held at most, resident memory grew by %llu\n",
	       (unsigned long long)accepted, (unsigned long long)n, (unsigned long long)most,
	       (unsigned long long)grown);
	if (!TEST_TSAN && !TEST_ASAN)
		CHECK(grown <= BUDGET + (16 << 20));
	ear.drained = accepted;
	mate_run(&mate, ear_drain, &ear);
	mate_stop(&mate);
	job_end();
}

TEST(what_arrived_unasked_counts_with_payload_and_record_until_it_is_received)
{
	unsigned char mem[4000] = { 0 };

	job_begin(BUDGET);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_send(from, port_id(to), 1, mem, sizeof(mem), SOON));
	CHECK_NOTHING(to, WEFT_ANY, 2);
	CHECK(stats_of(NULL).unexpected_bytes > 10 * sizeof(mem));
	CHECK(stats_of(to).unexpected_bytes > 10 * sizeof(mem));
	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, mem, sizeof(mem), SOON, NULL));
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	ports_close(from, to);
	job_end();
}

TEST(what_a_closed_port_held_no_longer_counts)
{
	unsigned char mem[4000] = { 0 };

	job_begin(BUDGET);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_send(from, port_id(to), 1, mem, sizeof(mem), SOON));
	CHECK_NOTHING(to, WEFT_ANY, 2);
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

/* Sends buffers of a size until one does not go at once; how many did. */
static int buffers_until_announced(struct weft_port *from, weft_id to, size_t len, struct weft_req **ret_req)
{
	for (int n = 0; ; n++) {
		struct weft_buf *buf = NULL;

		MUST(n < 10000);
		MUST_OK(weft_buf_get(len, 0, &buf));
		int r = weft_send_post(from, WEFT(op, .peer = to, .tag = 1, .buf = buf), ret_req);
		MUST(r == 0 || r == WEFT_DONE);
		if (r == 0)
			return n;
	}
}

TEST(with_the_budget_used_up_buffers_are_announced_and_go_at_once_again_when_there_is_room)
{
	struct weft_buf *buf = NULL;
	struct weft_req *req = NULL, *more = NULL;
	size_t len = BUDGET / 8;

	job_begin(BUDGET);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int round = 0; round < 3; round++) {
		int n = buffers_until_announced(from, port_id(to), len, &req);

		CHECK(n >= 1 && n <= 8);
		CHECK(stats_of(NULL).unexpected_bytes <= BUDGET);
		CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
		for (int i = 0; i <= n; i++) {
			CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &buf, NULL));
			CHECK_EQ(buf->len, len);
			CHECK_OK(weft_buf_put(buf));
		}
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	}
	/* One larger than the whole budget is announced, too: it is the sender's memory. */
	MUST_OK(weft_buf_get(2 * BUDGET, 0, &buf));
	MUST_OK(weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 1, .buf = buf), &more));
	CHECK_OK(weft_buf_recv(to, WEFT_ANY, 1, SOON, &buf, NULL));
	CHECK_OK(weft_req_wait(&more, SOON, NULL));
	CHECK_OK(weft_buf_put(buf));
	ports_close(from, to);
	job_end();
}

TEST(messages_of_every_size_arrive_in_order_with_the_budget_used_up)
{
	static const size_t sizes[] = { 8, 100, 4000, 8192, 20000 };
	enum { N = 400 };
	struct weft_req *req[N] = { NULL };
	unsigned char *mem[N], got[20000];
	struct weft_status st;

	job_begin(64 << 10);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < N; i++) {
		mem[i] = memory(sizes[i % 5]);
		pattern_put(mem[i], sizes[i % 5], (uint64_t)i);
		int r = send_post(from, 0, port_id(to), (uint64_t)i, mem[i], sizes[i % 5], &req[i]);
		CHECK(r == 0 || r == WEFT_DONE);
	}
	CHECK_NOTHING(to, WEFT_ANY, N);
	CHECK(stats_of(NULL).unexpected_bytes <= 64 << 10);
	for (int i = 0; i < N; i++) {
		MUST_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, got, sizeof(got), SOON, &st));
		CHECK_EQ(st.tag, i);
		CHECK_EQ(st.len, sizes[i % 5]);
		CHECK(pattern_ok(got, st.len, (uint64_t)i));
	}
	for (int i = 0; i < N; i++) {
		CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(mem[i]);
	}
	ports_close(from, to);
	job_end();
}

TEST(a_copy_is_free_on_return_or_answers_again_and_nothing_happened)
{
	unsigned char *mem = memory(BUDGET / 4), *got = memory(BUDGET / 4);
	uint64_t sent = 0;
	int r;

	job_begin(BUDGET);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (;;) {
		pattern_put(mem, BUDGET / 4, sent);
		r = send_post(from, WEFT_COPY, port_id(to), 1, mem, BUDGET / 4, NULL);
		if (r < 0)
			break;
		memset(mem, 0xee, BUDGET / 4);
		MUST(++sent < 1000);
	}
	CHECK_EQ(r, -EAGAIN);
	CHECK(sent >= 1);
	for (uint64_t i = 0; i < sent; i++) {
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, BUDGET / 4, SOON, NULL));
		CHECK(pattern_ok(got, BUDGET / 4, i));
	}
	CHECK_NOTHING(to, WEFT_ANY, 1);
	/* There is room again. */
	CHECK(send_post(from, WEFT_COPY, port_id(to), 1, mem, BUDGET / 4, NULL) >= 0);
	CHECK_OK(weft_recv(to, WEFT_ANY, 1, got, BUDGET / 4, SOON, NULL));
	ports_close(from, to);
	job_end();
	free(mem);
	free(got);
}

TEST(what_is_larger_than_the_budget_or_the_largest_class_will_never_fit)
{
	unsigned char *mem = memory(2 * BUDGET);
	struct weft_buf *buf = NULL;

	job_begin(BUDGET);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_EQ(send_post(from, WEFT_COPY, port_id(to), 1, mem, 2 * BUDGET, NULL), -ENOBUFS);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	CHECK_EQ(weft_buf_get((size_t)1 << 60, 0, &buf), -ENOBUFS);
	CHECK(buf == NULL);
	ports_close(from, to);
	job_end();
	free(mem);
}

TEST(early_messages_of_a_context_are_held_under_the_budget_and_announced_beyond_it)
{
	enum { N = 2000, LEN = 2000 };
	unsigned char *mem = memory(N * LEN), got[LEN];
	struct weft_port *ours = NULL, *mine = NULL;
	weft_ctx ctx;

	job_begin(BUDGET);
	ctx = weft_ctx_new();
	MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx), &ours));
	for (size_t i = 0; i < N; i++) {
		pattern_put(mem + i * LEN, LEN, i);
		CHECK(send_post(ours, 0, weft_self(), 1, mem + i * LEN, LEN, NULL) >= 0);
	}
	CHECK(stats_of(NULL).unexpected_bytes <= BUDGET);
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = ctx), &mine));
	for (size_t i = 0; i < N; i++) {
		MUST_OK(weft_recv(mine, WEFT_ANY, 1, got, LEN, SOON, NULL));
		CHECK(pattern_ok(got, LEN, i));
	}
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	ports_close(mine, ours);
	job_end();
	free(mem);
}

TEST_MAIN
