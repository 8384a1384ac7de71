/* test_far_cancel.c - taking operations back between processes, where it is too late, where nobody answers, and where somebody waits. */
#include "pair.h"

enum { LARGE = 1 << 20 };

FAR(a_matched_receive_is_too_late_to_cancel, 2)
{
	static const size_t len[] = { 8, 500, 8192, LARGE };
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 4; i++) {
			weft_id peer = far_id(1 - far_rank);
			struct weft_req *req = NULL;

			if (sends) {
				far_meet();
				pattern_put(mem, len[i], 1);
				CHECK_OK(weft_send(NULL, peer, 1, mem, len[i], SOON));
			} else {
				memset(mem, 0, LARGE);
				MUST_OK(recv_post(NULL, 0, peer, 1, mem, LARGE, &req));
				far_meet();
				EVENTUALLY(weft_req_peek(req, NULL) == WEFT_DONE);
				CHECK_EQ(weft_req_cancel(req), -EALREADY);
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
				CHECK(pattern_ok(mem, len[i], 1));
			}
			far_meet();
		}
	far_leave();
	free(mem);
}

/* Memory in one piece that is there only when process 0 says so. */
struct gate {
	struct weft_layout layout;
	unsigned char *mem;
};

static int gate_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	const struct gate *g = (const struct gate *)l;

	(void)max;
	far_tell(1, 1);
	EVENTUALLY(far_told(2));
	*ret_iov = (struct iovec){ g->mem + at, l->len - at };
	return 1;
}

FAR(a_send_of_which_a_part_was_written_is_too_late_to_cancel, 2)
{
	unsigned char *mem = memory(LARGE);
	struct weft_req *req = NULL;

	far_join(0);
	if (far_rank == 0) {
		pattern_put(mem, LARGE, 2);
		MUST_OK(send_post(NULL, 0, far_id(1), 1, mem, LARGE, &req));
		far_hear(1);
		CHECK_EQ(weft_req_cancel(req), -EALREADY);
		CHECK_EQ(weft_req_wait(&req, WEFT_NOW, NULL), -EAGAIN);
		far_tell(2, 1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	} else {
		struct gate gate = { { LARGE, gate_pieces, NULL }, mem };

		CHECK_OK(recv_op(NULL, WEFT(op, .peer = far_id(0), .tag = 1, .layout = &gate.layout), NULL));
		CHECK(pattern_ok(mem, LARGE, 2));
	}
	far_leave();
	free(mem);
}

FAR(the_cancel_of_an_announced_send_is_answered_while_the_receiver_is_stopped, 2)
{
	static const struct {
		uint32_t flags;
		size_t len;
	} kind[] = { { WEFT_SYNC, 8 }, { WEFT_RENDEZVOUS, 20000 }, { 0, LARGE } };
	unsigned char *mem = memory(LARGE);

	far_join(0);
	if (far_rank == 0) {
		CHECK_OK(weft_send(NULL, far_id(1), 2, mem, 8, SOON));
		far_meet();
		for (int queued = 0; queued < 2; queued++)
			for (int i = 0; i < 3; i++) {
				struct weft_req *req = NULL;

				/* In the ring, or by now in the queue of who will be stopped. */
				if (!queued)
					far_stop(1);
				MUST_OK(send_post(NULL, kind[i].flags, far_id(1), 1, mem, kind[i].len, &req));
				if (queued) {
					far_tell(1, 1);
					EVENTUALLY(!far_told(1));
					far_stop(1);
				}
				CHECK_OK(weft_req_cancel(req));
				CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
				far_go_on(1);
			}
		far_tell(2, 1);
	} else {
		CHECK_NEXT(NULL, far_id(0), 2, 0);
		far_meet();
		while (!far_told(2)) {
			if (far_told(1)) {
				CHECK_OK(weft_probe(NULL, WEFT(op, .peer = far_id(0), .tag = 1), SOON, NULL, NULL));
				far_tell(1, 0);
			}
			crew_nap();
		}
		CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	}
	far_leave();
	free(mem);
}

FAR(cancelling_a_send_to_a_dead_process_gives_the_peers_error, 2)
{
	uint64_t v = 7;
	unsigned char *mem = memory(LARGE);
	struct weft_req *req[2] = { NULL }, *ended = NULL;

	far_join(0);
	if (far_rank == 1) {
		far_may_die();
		far_await(0, 1);
		far_die();
	}
	MUST_OK(send_post(NULL, WEFT_SYNC, far_id(1), 1, &v, 8, &req[0]));
	MUST_OK(send_post(NULL, 0, far_id(1), 1, mem, LARGE, &req[1]));
	MUST_OK(recv_post(NULL, 0, far_id(1), 1, &v, 8, &ended));
	far_step(1);
	CHECK_EQ(weft_req_wait(&ended, SOON, NULL), -ECONNRESET);
	for (int i = 0; i < 2; i++) {
		EVENTUALLY(weft_req_peek(req[i], NULL) == WEFT_DONE);
		CHECK_EQ(weft_req_cancel(req[i]), -EALREADY);
		CHECK_EQ(weft_req_wait(&req[i], SOON, NULL), -ECONNRESET);
	}
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

FAR(cancel_may_run_while_another_thread_waits_for_the_request, 2)
{
	uint64_t v = 1, got = 0;
	struct mate mate;

	far_join(0);
	mate_start(&mate);
	EACH_WAY(cancels)
		for (int i = 0; i < 40 && cancels; i++) {
			weft_id peer = far_id(1 - far_rank);
			struct waiter w = { NULL, 1 };
			struct weft_req *req;

			if (i % 2)
				MUST_OK(recv_post(NULL, 0, peer, 1, &got, 8, &w.req));
			else
				MUST_OK(send_post(NULL, WEFT_SYNC, peer, 1, &v, 8, &w.req));
			req = w.req;
			mate_begin(&mate, waiter_wait, &w);
			if (i % 4 < 2)
				until_asleep();
			CHECK_OK(weft_req_cancel(req));
			mate_wait(&mate);
			CHECK_EQ(w.result, -ECANCELED);
		}
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	mate_stop(&mate);
	far_leave();
}

FAR(a_call_that_can_no_longer_be_taken_back_ends_as_the_operation_ends, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		int r;

		far_tell(1, 0);
		far_meet();
		if (sends) {
			pattern_put(mem, LARGE, 4);
			do                      /* again, where nobody came to take it in time */
				r = weft_send(NULL, peer, 1, mem, LARGE, weft_in(100 * WEFT_MS));
			while (r == -ETIMEDOUT && !far_told(1));
			CHECK_OK(r);
		} else {
			struct weft_msg *msg = NULL;

			MUST_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 1), SOON, &msg, NULL));
			far_tell(1, 1);
			for (weft_time past = weft_in(200 * WEFT_MS); weft_now() < past;)
				crew_nap();
			memset(mem, 0, LARGE);
			CHECK_OK(recv_op(NULL, WEFT(op, .msg = msg, .data = mem, .len = LARGE), NULL));
			CHECK(pattern_ok(mem, LARGE, 4));
			CHECK_NOTHING(NULL, peer, WEFT_ANY_TAG);
		}
	}
	far_leave();
	free(mem);
}

struct sleeper {
	weft_id peer;
	unsigned char *mem;
	bool sends;
};

static void *sleep_in_call(void *arg)
{
	struct sleeper *s = arg;

	if (s->sends)
		weft_send(weft_port_world(), s->peer, 1, s->mem, LARGE, WEFT_FOREVER);
	else
		weft_recv(weft_port_world(), s->peer, 2, s->mem, LARGE, WEFT_FOREVER, NULL);
	return NULL;
}

FAR(a_thread_cancelled_while_it_waits_for_another_process_takes_its_operation_along, 2)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 3;

	far_join(0);
	EACH_WAY(waits) {
		weft_id peer = far_process(1 - far_rank);

		if (TEST_ASAN)
			printf("# skipped: AddressSanitizer loses track of a cancelled thread's stack\n");
		for (int i = 0; i < 20 && waits && !TEST_ASAN; i++) {
			struct sleeper s = { peer, mem, i % 2 };
			pthread_t t = thread_start(sleep_in_call, &s);
			void *how;

			until_asleep();
			MUST_OK(pthread_cancel(t));
			MUST_OK(pthread_join(t, &how));
			CHECK(how == PTHREAD_CANCELED);
		}
		far_meet();
		if (waits) {
			CHECK_NEXT(weft_port_world(), peer, 2, 3);
		} else {
			CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
			CHECK_OK(weft_send(weft_port_world(), peer, 2, &v, 8, SOON));
		}
		CHECK_EQ(stats_of(NULL).expected, 0);
	}
	far_leave();
	free(mem);
}

FAR_MAIN
