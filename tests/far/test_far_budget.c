/* test_far_budget.c - what nobody asked for, between processes: the receiver stays within its budget, the sender keeps
 * the rest, and what is asked for is found.
 */
#include "pair.h"

enum { BUDGET = 1 << 20, LARGE = 1 << 20 };

/* Memory of this process, in KiB. */
static long resident(void)
{
	return (long)(proc_resident() / KIB);
}

/* Takes what has come to its queue, for a while: something else is looked for. */
static void look_around(weft_id from)
{
	for (int i = 0; i < 50; i++) {
		CHECK_NOTHING(NULL, from, 999999);
		crew_nap();
	}
}

/* @theirs: the memory of what waits is its sender's (buffers). */
static void check_within(long before, const char *what, bool theirs)
{
	struct weft_stats s = stats_of(NULL);
	long grown = resident() - before;

	printf("# %s: %llu messages, %llu bytes held, budget %llu; grown by %ld KiB\n", what, (unsigned long long)s.unexpected,
	       (unsigned long long)s.unexpected_bytes, (unsigned long long)s.budget, grown);
	CHECK(theirs || s.unexpected_bytes <= s.budget);
	/* The budget, the rings that were mapped, and some slack; a sanitizer keeps books of its own. */
	CHECK(TEST_ASAN || TEST_TSAN || grown < 8 * 1024);
}

FAR(unmatched_small_sends_leave_the_receiver_within_its_budget_and_what_is_asked_for_is_found, 3)
{
	enum { LATE = 7 };
	uint64_t n = test_scaled(100000);

	far_join(BUDGET);
	if (far_rank == 1) {            /* sends without end */
		struct weft_req **req = memory((n + 1) * sizeof(*req));
		uint64_t *v = memory((n + 1) * sizeof(*v));

		for (uint64_t i = 0; i <= n; i++) {
			v[i] = i;
			CHECK(send_post(NULL, 0, far_id(0), i == n ? LATE : 1000 + i, &v[i], 8, &req[i]) >= 0);
		}
		far_step(1);
		far_await(0, 2);
		for (uint64_t i = 0; i <= n; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(req);
		free(v);
	} else if (far_rank == 0) {
		long before = resident();
		uint64_t v;

		far_await(1, 1);
		look_around(far_id(1));
		check_within(before, "small sends", false);
		/* The other sender is not blocked by it. */
		far_step(1);
		for (uint64_t i = 0; i < 100; i++)
			CHECK_NEXT(NULL, far_id(2), 5, i);
		/* The last of all is found behind everything. */
		CHECK_NEXT(NULL, far_id(1), LATE, n);
		/* So is one in the middle. */
		CHECK_NEXT(NULL, far_id(1), 1000 + n / 2, n / 2);
		check_within(before, "small sends, searched", false);
		far_step(2);
		for (uint64_t i = 0; i < n; i++) {
			if (i == n / 2)
				continue;
			MUST_OK(weft_recv(NULL, far_id(1), WEFT_ANY_TAG, &v, 8, SOON, NULL));
			MUST_EQ(v, i);
		}
	} else {
		far_await(0, 1);
		for (uint64_t i = 0; i < 100; i++)
			CHECK_OK(weft_send(NULL, far_id(0), 5, &i, 8, SOON));
	}
	far_leave();
}

FAR(unmatched_large_sends_leave_the_receiver_within_its_budget_and_what_is_asked_for_is_found, 3)
{
	uint64_t n = test_scaled(5000);
	unsigned char *mem = memory(100000);

	far_join(BUDGET);
	if (far_rank == 1) {
		struct weft_req **req = memory((n + 1) * sizeof(*req));

		pattern_put(mem, 100000, 1);
		for (uint64_t i = 0; i <= n; i++)
			CHECK(send_post(NULL, 0, far_id(0), 1000 + i, mem, 50000 + i, &req[i]) >= 0);
		far_step(1);
		far_await(0, 2);
		for (uint64_t i = 0; i <= n; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(req);
	} else if (far_rank == 0) {
		long before = resident();
		struct weft_status st;

		far_await(1, 1);
		look_around(far_id(1));
		check_within(before, "large sends", false);
		far_step(1);
		for (uint64_t i = 0; i < 100; i++)
			CHECK_NEXT(NULL, far_id(2), 5, i);
		CHECK_OK(weft_recv(NULL, far_id(1), 1000 + n, mem, 100000, SOON, &st));
		CHECK_EQ(st.len, 50000 + n);
		CHECK(pattern_ok(mem, st.len, 1));
		far_step(2);
		for (uint64_t i = 0; i < n; i++) {
			MUST_OK(weft_recv(NULL, far_id(1), WEFT_ANY_TAG, mem, 100000, SOON, &st));
			MUST_EQ(st.tag, 1000 + i);
			CHECK_EQ(st.len, 50000 + i);
		}
	} else {
		far_await(0, 1);
		for (uint64_t i = 0; i < 100; i++)
			CHECK_OK(weft_send(NULL, far_id(0), 5, &i, 8, SOON));
	}
	far_leave();
	free(mem);
}

FAR(unmatched_buffers_leave_the_receiver_within_its_budget_and_keep_their_order, 2)
{
	uint64_t n = test_scaled(2000);

	far_join(BUDGET);
	if (far_rank == 1) {
		struct weft_req **req = memory(n * sizeof(*req));

		for (uint64_t i = 0; i < n; i++) {
			struct weft_buf *buf = NULL;

			MUST_OK(weft_buf_get(5000, 0, &buf));
			pattern_put(buf->data, 5000, i);
			CHECK(weft_send_post(NULL, WEFT(op, .peer = far_id(0), .tag = i, .buf = buf), &req[i]) >= 0);
		}
		far_step(1);
		for (uint64_t i = 0; i < n; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(req);
	} else {
		long before = resident();

		far_await(1, 1);
		look_around(far_id(1));
		check_within(before, "buffers", true);
		for (uint64_t i = 0; i < n; i++) {
			struct weft_buf *buf = NULL;
			struct weft_status st;

			MUST_OK(weft_buf_recv(NULL, far_id(1), WEFT_ANY_TAG, SOON, &buf, &st));
			MUST_EQ(st.tag, i);
			CHECK(pattern_ok(buf->data, 5000, i));
			CHECK_OK(weft_buf_put(buf));
		}
	}
	far_leave();
}

FAR(announced_sends_that_were_cancelled_leave_nothing_that_blocks_later_ones, 2)
{
	uint64_t n = test_scaled(50000), v = 6;

	far_join(BUDGET);
	if (far_rank == 1) {
		for (uint64_t i = 0; i < n; i++) {
			struct weft_req *req = NULL;

			MUST_OK(send_post(NULL, WEFT_SYNC, far_id(0), 1, &v, 8, &req));
			CHECK_OK(weft_req_cancel(req));
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
		}
		far_step(1);
		/* The mailbox may be full of what is no more; the receiver looks. */
		CHECK_OK(weft_send(NULL, far_id(0), 2, &v, 8, SOON));
		struct weft_req *req = NULL;
		CHECK(send_post(NULL, WEFT_SYNC, far_id(0), 3, &v, 8, &req) >= 0);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	} else {
		long before = resident();

		/* Looks for another tag all the while, so that what arrives is queued. */
		while (far->step[1] < 1) {
			CHECK_NOTHING(NULL, far_id(1), 9);
			crew_nap();
		}
		check_within(before, "cancelled sends", false);
		CHECK_NEXT(NULL, far_id(1), 2, 6);
		CHECK_NEXT(NULL, far_id(1), 3, 6);
		CHECK_NOTHING(NULL, far_id(1), WEFT_ANY_TAG);
	}
	far_leave();
}

FAR(a_peer_that_never_reads_blocks_nobody_else, 3)
{
	uint64_t n = test_scaled(20000);
	unsigned char *mem = memory(LARGE);

	far_join(BUDGET);
	if (far_rank == 1) {            /* never reads */
		far_await(0, 1);
		far_await(2, 1);
	} else {
		uint64_t accepted = 0;
		weft_id peer = far_id(2 - far_rank);

		for (uint64_t i = 0; i < n; i++) {
			uint64_t v;

			if (weft_send(NULL, far_id(1), 1, mem, i % 100 == 0 ? 5000 : 8, WEFT_NOW) == 0)
				accepted++;
			CHECK_OK(weft_send(NULL, peer, 2, &i, 8, SOON));
			MUST_OK(weft_recv(NULL, peer, 2, &v, 8, SOON, NULL));
			MUST_EQ(v, i);
		}
		printf("# it took %llu of %llu\n", (unsigned long long)accepted, (unsigned long long)n);
		CHECK_EQ(weft_send(NULL, far_id(1), 1, mem, LARGE, weft_in(10 * WEFT_MS)), -ETIMEDOUT);
		far_step(1);
	}
	far_leave();
	free(mem);
}

FAR(messages_of_every_size_arrive_in_order_with_the_budget_used_up, 2)
{
	static const size_t sizes[] = { 0, 8, 97, 1000, 8192, 20000, 300000 };
	uint64_t n = test_scaled(2000);
	unsigned char *mem = memory(300000);

	far_join(65536);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_req **req = memory(n * sizeof(*req));
			unsigned char *big = memory(300000);

			pattern_put(big, 300000, 5);
			for (uint64_t i = 0; i < n; i++)
				CHECK(send_post(NULL, 0, peer, i, big, sizes[i % 7], &req[i]) >= 0);
			far_meet();
			for (uint64_t i = 0; i < n; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
			free(req);
			free(big);
		} else {
			struct weft_status st;

			far_meet();
			look_around(peer);
			for (uint64_t i = 0; i < n; i++) {
				MUST_OK(weft_recv(NULL, peer, WEFT_ANY_TAG, mem, 300000, SOON, &st));
				MUST_EQ(st.tag, i);
				CHECK_EQ(st.len, sizes[i % 7]);
				CHECK(pattern_ok(mem, st.len, 5));
			}
		}
	}
	far_leave();
	free(mem);
}

FAR(early_messages_of_a_context_are_held_within_the_budget, 2)
{
	uint64_t n = test_scaled(20000);

	far_join(BUDGET);
	EACH_WAY(sends) {
		struct weft_port *port = NULL;
		weft_id peer = far_process(1 - far_rank);
		char name[32];

		snprintf(name, sizeof(name), "early %u", sends ? far_rank : 1 - far_rank);
		if (sends) {
			struct weft_req **req = memory(n * sizeof(*req));
			uint64_t *v = memory(n * sizeof(*v));

			MUST_OK(weft_port_open(WEFT(port_opts, .channel = name), &port));
			for (uint64_t i = 0; i < n; i++) {
				v[i] = i;
				CHECK(send_post(port, 0, peer, 1, &v[i], 8, &req[i]) >= 0);
			}
			far_meet();
			for (uint64_t i = 0; i < n; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
			free(req);
			free(v);
		} else {
			long before = resident();

			far_meet();
			for (int i = 0; i < 50; i++)
				crew_nap();
			check_within(before, "early messages", false);
			MUST_OK(weft_port_open(WEFT(port_opts, .channel = name), &port));
			for (uint64_t i = 0; i < n; i++)
				CHECK_NEXT(port, peer, 1, i);
		}
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

/* Nobody but weft's own thread looks there. */
FAR(a_message_that_found_no_buffer_is_received_when_there_are_some, 2)
{
	uint64_t v = 1, in = 0;

	far_join_with(WEFT(init_opts, .knobs = "pool=1048576"));
	if (far_rank == 0) {
		struct weft_port *port = port_new(0);
		struct tally tally = { 0 };
		struct weft_buf *all;

		far_tell(1, port_id(port));
		far_meet();
		CHECK_NEXT(port, WEFT_ANY, 1, 1);
		MUST_OK(weft_recv_post(port, WEFT(op, .peer = WEFT_ANY, .tag = 2, .data = &in, .len = 8, .done = tally_done, .user = &tally),
				NULL, NULL));
		all = pool_emptied();
		far_step(1);
		far_await(1, 1);
		for (int i = 0; i < 100; i++)
			crew_nap();
		pool_filled(all);
		EVENTUALLY(atomic_load(&tally.count) == 1);
		CHECK_EQ(in, 2);
		CHECK_EQ(tally.failed, 0);
		CHECK_OK(weft_port_close(port, SOON));
	} else {
		struct weft_req *req = NULL;
		weft_id to;

		far_meet();
		to = far_told(1);
		CHECK_OK(weft_send(NULL, to, 1, &v, 8, SOON));
		far_await(0, 1);
		v = 2;
		MUST_OK(send_post(NULL, WEFT_SYNC, to, 2, &v, 8, &req));
		far_step(1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	}
	far_leave();
}

FAR_MAIN
