/* test_far_take.c - probing, taking back and being late, between processes. */
#include "pair.h"

enum { LARGE = 1 << 20 };

static const size_t sizes[] = { 0, 8, 500, 8192, 100000, LARGE };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

FAR(a_probe_tells_of_the_first_that_matches_and_leaves_it, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends)
			for (int sync = 0; sync < 2; sync++)
				for (unsigned i = 0; i < SIZES; i++) {
					struct weft_req *req = NULL;
					struct weft_status st;
					int r;

					if (sends) {
						pattern_put(mem, sizes[i], i);
						r = send_post(p.port, sync ? WEFT_SYNC : 0, p.peer, i, mem, sizes[i], &req);
						CHECK(r == 0 || r == WEFT_DONE);
						CHECK_OK(weft_req_wait(&req, SOON, NULL));
					} else {
						for (int twice = 0; twice < 2; twice++) {
							CHECK_OK(weft_probe(p.port, WEFT(op, .peer = p.peer, .tag = i), SOON,
									NULL, &st));
							CHECK_EQ(st.len, sizes[i]);
							CHECK_EQ(st.tag, i);
							CHECK(st.from == p.peer);
						}
						CHECK_NOTHING(p.port, p.peer, i + 1000);
						CHECK_OK(weft_recv(p.port, p.peer, i, mem, sizes[i], SOON, NULL));
						CHECK(pattern_ok(mem, sizes[i], i));
					}
				}
		pair_close(&p);
	}
	far_leave();
	free(mem);
}

enum { AS_PLAIN, AS_ALLOC, AS_CUT, AS_FORMS };

FAR(a_matched_message_of_every_kind_is_received_in_every_form_later, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends)
		for (int kind = 0; kind < 4; kind++)            /* plain, sync, buffer, sync buffer */
			for (unsigned i = 0; i < SIZES; i++)
				for (int form = 0; form < AS_FORMS; form++) {
					weft_id peer = far_id(1 - far_rank);
					struct weft_op op = { .size = sizeof(op), .peer = peer, .tag = 1 };
					struct weft_req *req = NULL;
					struct weft_msg *msg = NULL;
					struct weft_status st = { 0 };
					size_t room = form == AS_CUT ? sizes[i] / 2 : sizes[i];
					bool cut = room < sizes[i];
					int r;

					if (sends) {
						op.flags = kind & 1 ? WEFT_SYNC : 0;
						pattern_put(mem, sizes[i], i);
						if (kind & 2) {
							MUST_OK(weft_buf_get(sizes[i], 0, &op.buf));
							memcpy(op.buf->data, mem, sizes[i]);
						} else {
							op.data = mem;
							op.len = sizes[i];
						}
						r = weft_send_post(NULL, &op, &req);
						CHECK(r == 0 || r == WEFT_DONE);
						CHECK_OK(weft_req_wait(&req, SOON, NULL));
						far_meet();
						continue;
					}
					CHECK_OK(weft_probe(NULL, &op, SOON, &msg, &st));
					CHECK_EQ(st.len, sizes[i]);
					MUST(msg);
					CHECK_NOTHING(NULL, peer, 1);
					memset(mem, 0, sizes[i]);
					op = (struct weft_op){ .size = sizeof(op), .msg = msg, .data = mem, .len = room };
					if (cut) {      /* one that does not fit is still ours */
						CHECK_EQ(recv_op(NULL, &op, &st), -EMSGSIZE);
						op.flags = WEFT_TRUNCATE;
					}
					if (form == AS_ALLOC) {
						op.flags = WEFT_ALLOC;
						op.data = NULL;
						op.len = 0;
					}
					CHECK_EQ(recv_op(NULL, &op, &st), cut ? -EMSGSIZE : 0);
					CHECK_EQ(st.len, sizes[i]);
					CHECK(pattern_ok(form == AS_ALLOC ? st.buf->data : mem, room, i));
					if (form == AS_ALLOC)
						CHECK_OK(weft_buf_put(st.buf));
					far_meet();
				}
	far_leave();
	free(mem);
}

FAR(a_waiting_probe_is_woken_by_its_message, 2)
{
	uint64_t n = test_scaled(200);

	far_join(0);
	EACH_WAY(sends)
		for (uint64_t i = 0; i < n; i++) {
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				if (i % 4 == 0)
					EVENTUALLY(far_told(1) == i + 1);
				if (i % 8 == 0)
					crew_nap();
				CHECK_OK(weft_send(NULL, peer, 9, &i, 8, SOON));
				CHECK_OK(weft_send(NULL, peer, i, &i, 8, SOON));
			} else {
				far_tell(1, i + 1);
				CHECK_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = i), SOON, NULL, NULL));
				CHECK_NEXT(NULL, peer, i, i == 9 ? 9 : i);
				CHECK_NEXT(NULL, peer, 9, i);
			}
		}
	far_leave();
}

FAR(a_posted_receive_is_cancelled_and_takes_no_message, 2)
{
	uint64_t got = 7;

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		struct weft_req *req = NULL;

		if (!sends) {
			MUST_OK(recv_post(NULL, 0, peer, 1, &got, 8, &req));
			CHECK_OK(weft_req_cancel(req));
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
			CHECK_EQ(got, 7);
			far_meet();
			CHECK_NEXT(NULL, peer, 1, 5);
		} else {
			far_meet();
			CHECK_OK(weft_send(NULL, peer, 1, &(uint64_t){ 5 }, 8, SOON));
		}
	}
	far_leave();
}

FAR(an_announced_send_is_cancelled_and_never_arrives, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends)
		for (int seen = 0; seen < 3; seen++)            /* in the ring, in the receiver's queue, passed by a receive */
			for (unsigned i = 0; i < SIZES; i++) {
				weft_id peer = far_id(1 - far_rank);
				struct weft_req *req = NULL;
				uint64_t v = 4;

				if (sends) {
					MUST_OK(send_post(NULL, WEFT_SYNC, peer, 1, mem, sizes[i], &req));
					far_meet();
					far_meet();
					CHECK_OK(weft_req_cancel(req));
					CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
					memset(mem, 1, sizes[i]);
					CHECK_OK(weft_send(NULL, peer, 2, &v, 8, SOON));
				} else {
					far_meet();
					if (seen == 1)
						CHECK_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 1), SOON, NULL, NULL));
					if (seen == 2 && sizes[i])
						CHECK_EQ(weft_recv(NULL, peer, 1, mem, sizes[i] - 1, SOON, NULL), -EMSGSIZE);
					far_meet();
					CHECK_NEXT(NULL, peer, 2, 4);
					CHECK_NOTHING(NULL, peer, 1);
				}
				far_meet();
			}
	far_leave();
	free(mem);
}

FAR(what_a_matched_probe_has_taken_is_too_late_to_cancel, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends)
		for (unsigned i = 0; i < SIZES; i++) {
			weft_id peer = far_id(1 - far_rank);
			struct weft_req *req = NULL;
			struct weft_msg *msg = NULL;

			if (sends) {
				pattern_put(mem, sizes[i], i);
				MUST_OK(send_post(NULL, WEFT_SYNC, peer, 1, mem, sizes[i], &req));
				far_meet();
				far_meet();
				CHECK_EQ(weft_req_cancel(req), -EALREADY);
				far_meet();
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			} else {
				far_meet();
				MUST_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 1), SOON, &msg, NULL));
				far_meet();
				far_meet();
				CHECK_OK(recv_op(NULL, WEFT(op, .msg = msg, .data = mem, .len = sizes[i]), NULL));
				CHECK(pattern_ok(mem, sizes[i], i));
			}
			far_meet();
		}
	far_leave();
	free(mem);
}

FAR(a_send_in_the_backlog_is_cancelled_and_never_arrives, 2)
{
	enum { N = 600 };
	static uint64_t v[N];

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_req *req[N] = { NULL };
			uint64_t first = N, cancelled = 0;

			for (uint64_t i = 0; i < N; i++) {
				int r;

				v[i] = i;
				r = send_post(NULL, 0, peer, 1, &v[i], 8, &req[i]);
				CHECK(r == 0 || r == WEFT_DONE);
				if (r == 0 && first == N)
					first = i;
			}
			/* Every other of those that wait. */
			for (uint64_t i = 0; i < N; i++)
				if (req[i] && i % 2) {
					struct weft_req *r = req[i];
					int e = weft_req_cancel(r);

					CHECK(e == 0 || e == -EALREADY);
					e = weft_req_wait(&req[i], SOON, NULL);
					CHECK(e == 0 || e == -ECANCELED);
					if (e == -ECANCELED) {
						v[i] = N;
						cancelled++;
					}
				}
			CHECK(cancelled > 0);
			printf("# of %d sends %llu were in the own queue and cancelled\n", N, (unsigned long long)cancelled);
			far_tell(2, N - cancelled);
			far_meet();
			for (int i = 0; i < N; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
			CHECK_OK(weft_send(NULL, peer, 2, v, 8, SOON));
		} else {
			uint64_t last = 0, got, n;

			far_meet();
			n = far_told(2);
			for (uint64_t i = 0; i < n; i++) {
				MUST_OK(weft_recv(NULL, peer, 1, &got, 8, SOON, NULL));
				CHECK(got < N && (i == 0 || got > last));
				last = got;
			}
			CHECK_NEXT(NULL, peer, 2, 0);
			CHECK_NOTHING(NULL, peer, 1);
		}
	}
	far_leave();
}

FAR(a_send_cancelled_at_random_was_received_or_was_not, 2)
{
	uint64_t n = test_scaled(2000), seed = 11;
	unsigned char *mem = memory(100000), *got = memory(100000);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		uint64_t sent = 0, arrived = 0;

		for (uint64_t i = 0; i < n && sends; i++) {
			size_t len = test_random(&seed) % 3 ? 8 : 60000;
			struct weft_req *req = NULL;
			int r;

			pattern_put(mem, len, i);
			r = send_post(NULL, WEFT_SYNC, peer, i, mem, len, &req);
			CHECK(r == 0 || r == WEFT_DONE);
			for (uint64_t k = test_random(&seed) % 2000; k > 0; k--)
				__asm__ volatile("");
			if (req)
				weft_req_cancel(req);
			r = weft_req_wait(&req, SOON, NULL);
			CHECK(r == 0 || r == -ECANCELED);
			memset(mem, 0xff, len);
			sent += r == 0;
		}
		if (sends) {
			far_tell(3, sent);
			CHECK_OK(weft_send(NULL, peer, n, mem, 0, SOON));
		}
		while (!sends) {
			struct weft_status st;

			MUST_OK(weft_recv(NULL, peer, WEFT_ANY_TAG, got, 100000, SOON, &st));
			if (st.tag == n)
				break;
			arrived++;
			CHECK(pattern_ok(got, st.len, st.tag));
		}
		far_meet();
		if (!sends)
			CHECK_EQ(arrived, far_told(3));
	}
	far_leave();
	free(mem);
	free(got);
}

FAR(a_cancel_that_meets_a_short_receive_ends_the_send_all_the_same, 2)
{
	uint64_t n = test_scaled(20000), got;

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		for (uint64_t i = 0; i < n && sends; i++) {
			unsigned char mem[200] = { 0 };
			struct weft_req *req = NULL;
			int r;

			/* Nobody has room for it: only the cancel can end it. */
			MUST_OK(send_post(NULL, WEFT_SYNC, peer, 1, mem, i % 2 ? 200 : 20, &req));
			far_tell(5, i + 1);
			if (i % 4 == 0)
				EVENTUALLY(far_told(6) > i);
			for (uint64_t k = i % 1000; k > 0; k--)
				__asm__ volatile("");
			r = weft_req_cancel(req);
			CHECK(r == 0 || r == -EALREADY);
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
		}
		if (sends)
			far_tell(5, UINT64_MAX);
		while (!sends && far_told(5) != UINT64_MAX) {
			int r = weft_recv(NULL, peer, 1, &got, 8, WEFT_NOW, NULL);

			CHECK(r == -EAGAIN || r == -EMSGSIZE);
			far_tell(6, far_told(5));
		}
		far_meet();
		far_tell(5, 0);
		far_tell(6, 0);
	}
	far_leave();
}

FAR(a_deadline_takes_a_receive_or_a_send_back, 2)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 1;

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_buf *buf = NULL;

			CHECK_EQ(weft_send(NULL, peer, 1, mem, LARGE, weft_in(5 * WEFT_MS)), -ETIMEDOUT);
			CHECK_EQ(weft_send(NULL, peer, 1, mem, LARGE, WEFT_NOW), -EAGAIN);
			MUST_OK(weft_buf_get(1000, 0, &buf));
			struct weft_req *req = NULL;
			MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = peer, .tag = 1, .buf = buf), &req));
			CHECK_EQ(weft_req_wait(&req, weft_in(5 * WEFT_MS), NULL), -ETIMEDOUT);
			MUST(req);
			CHECK_OK(weft_req_cancel(req));
			struct weft_status st;
			CHECK_EQ(weft_req_wait(&req, SOON, &st), -ECANCELED);
			CHECK(st.buf == buf);
			CHECK_OK(weft_buf_put(buf));
			CHECK_OK(weft_send(NULL, peer, 2, &v, 8, SOON));
		} else {
			CHECK_EQ(weft_recv(NULL, peer, 3, mem, 8, weft_in(5 * WEFT_MS), NULL), -ETIMEDOUT);
			CHECK_EQ(weft_recv(NULL, peer, 3, mem, 8, WEFT_NOW, NULL), -EAGAIN);
			CHECK_EQ(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 3), weft_in(5 * WEFT_MS), NULL, NULL),
					-ETIMEDOUT);
			CHECK_NEXT(NULL, peer, 2, 1);
			CHECK_NOTHING(NULL, peer, WEFT_ANY_TAG);
		}
	}
	far_leave();
	free(mem);
}

FAR(an_operation_that_expires_ends_by_itself, 2)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 1;

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		struct weft_req *req = NULL;
		struct tally tally = { 0 };

		if (sends) {
			MUST_OK(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = 1, .data = mem, .len = LARGE,
					.expires = weft_in(10 * WEFT_MS)), &req));
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ETIMEDOUT);
			MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = peer, .tag = 1, .data = mem,
					.len = 8, .expires = weft_in(10 * WEFT_MS),
							  .done = tally_done, .user = &tally), NULL));
			EVENTUALLY(tally.count);
			CHECK_EQ(tally.last.err, -ETIMEDOUT);
			/* An instant gone by: it has expired before it is under way. */
			for (int i = 0; i < 200; i++) {
				MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = peer, .tag = 1, .data = mem,
						.len = 8, .expires = 1), &req));
				CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ETIMEDOUT);
			}
			CHECK_OK(weft_send(NULL, peer, 2, &v, 8, SOON));
		} else {
			MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = peer, .tag = 3, .data = mem, .len = 8,
					.expires = weft_in(10 * WEFT_MS)), &req, NULL));
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ETIMEDOUT);
			CHECK_NEXT(NULL, peer, 2, 1);
			CHECK_NOTHING(NULL, peer, WEFT_ANY_TAG);
		}
		far_meet();
	}
	far_leave();
	free(mem);
}

FAR_MAIN
