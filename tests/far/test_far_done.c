/* test_far_done.c - when a send to another process is done, what is refused, and what is lost. */
#include "pair.h"

enum { LARGE = 1 << 20, BUDGET = 1 << 20 };

FAR(a_send_is_done_when_its_memory_is_free_again, 2)
{
	static const size_t len[] = { 8, 96, 97, 500, 8192, 8193, 16384, 16385, 100000, LARGE };
	enum { N = sizeof(len) / sizeof(len[0]) };
	unsigned char *mem = memory(LARGE);

	far_join(0);
	for (int posted = 0; posted < 2; posted++)
		EACH_WAY(sends)
			for (uint64_t i = 0; i < N; i++) {
				weft_id peer = far_id(1 - far_rank);
				struct weft_req *req = NULL;

				if (sends) {
					pattern_put(mem, len[i], i);
					if (posted) {
						CHECK(send_post(NULL, 0, peer, i, mem, len[i], &req) >= 0);
						CHECK_OK(weft_req_wait(&req, SOON, NULL));
					} else {
						CHECK_OK(weft_send(NULL, peer, i, mem, len[i], SOON));
					}
					memset(mem, 0xee, len[i]);
					far_tell(1, i + 1);
				} else {
					/* What fits in shared memory is done before anybody asks for it. */
					if (len[i] <= 100000)
						EVENTUALLY(far_told(1) == i + 1);
					CHECK_OK(weft_recv(NULL, peer, i, mem, len[i], SOON, NULL));
					CHECK(pattern_ok(mem, len[i], i));
				}
				far_meet();
			}
	far_leave();
	free(mem);
}

FAR(beyond_a_ports_limit_a_send_answers_again_and_nothing_happened, 2)
{
	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			uint64_t v = 1;
			struct weft_port *from = NULL;
			struct weft_req *req[3] = { NULL };
			struct weft_op op = { .size = sizeof(op), .flags = WEFT_SYNC, .peer = peer, .tag = 1, .data = &v, .len = 8 };

			MUST_OK(weft_port_open(WEFT(port_opts, .limit = 2), &from));
			MUST_OK(weft_send_post(from, &op, &req[0]));
			MUST_OK(weft_send_post(from, &op, &req[1]));
			CHECK_EQ(weft_send_post(from, &op, &req[2]), -EAGAIN);
			CHECK(req[2] == NULL);
			far_meet();
			CHECK_OK(weft_req_wait(&req[0], SOON, NULL));
			MUST_OK(weft_send_post(from, &op, &req[2]));
			far_meet();
			for (int i = 1; i < 3; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
			far_meet();
			CHECK_OK(weft_port_close(from, SOON));
		} else {
			far_meet();
			CHECK_NEXT(NULL, WEFT_ANY, 1, 1);
			far_meet();
			CHECK_NEXT(NULL, WEFT_ANY, 1, 1);
			CHECK_NEXT(NULL, WEFT_ANY, 1, 1);
			CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
			far_meet();
		}
	}
	far_leave();
}

FAR(what_is_larger_than_the_budget_or_the_largest_class_will_never_fit, 2)
{
	unsigned char *mem = memory(2 * BUDGET);
	struct weft_buf *buf = NULL;

	far_join(BUDGET);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			CHECK_EQ(send_post(NULL, WEFT_COPY, peer, 1, mem, 2 * BUDGET, NULL), -ENOBUFS);
			CHECK_EQ(weft_buf_get(((size_t)1 << 30) + 1, 0, &buf), -ENOBUFS);
			/* Without a copy it is accepted, as everything is. */
			pattern_put(mem, 2 * BUDGET, 6);
			CHECK_OK(weft_send(NULL, peer, 2, mem, 2 * BUDGET, SOON));
		} else {
			CHECK_OK(weft_recv(NULL, peer, WEFT_ANY_TAG, mem, 2 * BUDGET, SOON, NULL));
			CHECK(pattern_ok(mem, 2 * BUDGET, 6));
			CHECK_NOTHING(NULL, peer, WEFT_ANY_TAG);
		}
	}
	far_leave();
	free(mem);
}

/* The receiver takes some and closes; every send knows whether it was one of those. */
FAR(an_operation_that_ends_with_a_peer_error_took_effect_at_most_once, 2)
{
	enum { N = 40 };
	uint64_t rounds = test_scaled(300), seed = 3;
	unsigned char *mem = memory(50000);

	far_join(0);
	for (uint64_t k = 1; k <= rounds; k++)
		if (far_rank == 1) {
			uint64_t n = test_random(&seed) % N;
			struct weft_port *port = port_new(0);

			far_tell(1, port_id(port));
			far_tell(2, k);
			for (uint64_t i = 0; i < n; i++) {
				struct weft_status st;

				CHECK_OK(weft_recv(port, WEFT_ANY, WEFT_ANY_TAG, mem, 50000, SOON, &st));
				CHECK_EQ(st.tag, i);
			}
			CHECK_OK(weft_port_close(port, SOON));
			far_tell(3, n);
			far_tell(4, k);
			EVENTUALLY(far_told(5) == k);
		} else {
			struct weft_req *req[N] = { NULL };
			uint64_t matched = 0, reset = 0, refused = 0;

			EVENTUALLY(far_told(2) == k);
			for (uint64_t i = 0; i < N; i++) {
				int r = send_post(NULL, WEFT_SYNC, far_told(1), i, mem, i % 8 == 5 ? 50000 : 8, &req[i]);

				CHECK(r == 0 || r == WEFT_DONE || r == -ESRCH || r == -ECONNRESET);
				matched += r == WEFT_DONE;
				refused += r < 0;
			}
			for (int i = 0; i < N; i++)
				if (req[i]) {
					int r = weft_req_wait(&req[i], SOON, NULL);

					matched += r == 0;
					reset += r == -ECONNRESET;
				}
			EVENTUALLY(far_told(4) == k);
			CHECK_EQ(matched, far_told(3));
			CHECK_EQ(matched + reset + refused, N);
			far_tell(5, k);
		}
	far_leave();
	free(mem);
}

FAR_MAIN
