/* test_far_close.c - ports, threads and processes that end in an orderly way while others talk to them. */
#include "pair.h"

enum { LARGE = 1 << 20 };

FAR(what_waits_at_a_port_that_closes_fails_at_its_senders, 2)
{
	static const size_t len[] = { 8, 500, 100000, LARGE };
	unsigned char *mem = memory(LARGE);

	far_join(0);
	for (int seen = 0; seen < 2; seen++)            /* does the receiver know of them when it closes? */
		EACH_WAY(sends) {
			if (!sends) {
				struct weft_port *port = port_new(0);

				far_tell(1, port_id(port));
				far_meet();
				far_meet();
				if (seen)
					CHECK_OK(weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 7), SOON, NULL, NULL));
				CHECK_OK(weft_port_close(port, SOON));
			} else {
				struct weft_req *req[5] = { NULL };
				struct weft_buf *buf = NULL;
				struct weft_status st;
				weft_id to;

				far_meet();
				to = far_told(1);
				for (int i = 0; i < 4; i++)
					MUST_OK(send_post(NULL, i < 3 ? WEFT_SYNC : 0, to, 1, mem, len[i], &req[i]));
				MUST_OK(weft_buf_get(1000, 0, &buf));
				MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = to, .tag = 7, .buf = buf),
						&req[4]));
				far_meet();
				for (int i = 0; i < 5; i++) {
					int r = weft_req_wait(&req[i], SOON, &st);

					CHECK(r == -ECONNRESET || r == -ESRCH);
				}
				CHECK(st.buf == buf);
				CHECK_OK(weft_buf_put(buf));
				CHECK_EQ(weft_send(NULL, to, 1, mem, 8, SOON), -ESRCH);
			}
			far_meet();
		}
	far_leave();
	free(mem);
}

/* The port's process has no buffer for what came with an announcement, nor for more than a cell holds. */
FAR(what_waits_at_a_port_that_closes_fails_at_its_senders_though_there_is_no_buffer_for_it, 2)
{
	uint64_t v = 1;

	far_join_with(WEFT(init_opts, .knobs = "pool=1048576"));
	if (far_rank == 0) {
		struct weft_port *port = port_new(0);
		struct weft_buf *all;

		far_tell(1, port_id(port));
		far_meet();
		CHECK_NEXT(port, WEFT_ANY, 1, 1);
		all = pool_emptied();
		far_meet();
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
		far_meet();
		pool_filled(all);
	} else {
		static unsigned char mem[500];
		struct weft_req *req[3] = { NULL };
		weft_id to;

		far_meet();
		to = far_told(1);
		CHECK_OK(weft_send(NULL, to, 1, &v, 8, SOON));
		far_meet();
		CHECK_OK(weft_send(NULL, to, 2, mem, sizeof(mem), SOON));
		MUST_OK(send_post(NULL, WEFT_SYNC, to, 1, &v, 8, &req[0]));
		MUST_OK(send_post(NULL, WEFT_SYNC, to, 1, mem, 0, &req[1]));
		MUST_OK(send_post(NULL, WEFT_SYNC, to, 1, mem, sizeof(mem), &req[2]));
		far_meet();
		for (int i = 0; i < 3; i++)
			CHECK_EQ(weft_req_wait(&req[i], 10 * WEFT_S + weft_now(), NULL), -ECONNRESET);
		far_meet();
	}
	far_leave();
}

static void lost_event(const struct weft_status *st)
{
	_Atomic uint64_t *lost = st->user;

	if (st->tag == WEFT_LOST)
		atomic_fetch_add(lost, st->lost > 1 ? st->lost : 1);
}

FAR(what_was_done_and_not_received_is_counted_there_and_told_to_its_source, 2)
{
	enum { N = 50 };
	unsigned char mem[1000] = { 0 };

	far_join(0);
	for (int seen = 0; seen < 2; seen++)
		EACH_WAY(sends) {
			if (!sends) {
				struct weft_port *port = port_new(0);
				uint64_t before = stats_of(NULL).lost;

				far_tell(1, port_id(port));
				far_meet();
				far_meet();
				if (seen)
					CHECK_OK(weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 2), SOON, NULL, NULL));
				CHECK_NEXT(port, WEFT_ANY, 3, 0);
				CHECK_OK(weft_port_close(port, SOON));
				EVENTUALLY(stats_of(NULL).lost == before + 2 * N + 1);
			} else {
				_Atomic uint64_t lost = 0;
				struct weft_port *port = NULL;
				weft_id to;

				MUST_OK(weft_port_open(WEFT(port_opts, .event = lost_event, .user = &lost), &port));
				far_meet();
				to = far_told(1);
				for (int i = 0; i < N; i++) {
					CHECK_OK(weft_send(port, to, 1, mem, i % 2 ? 8 : 1000, SOON));
					if (i % 2) {
						CHECK_OK(weft_send(port, to, 1, mem, 0, SOON));
					} else {
						struct weft_buf *buf = NULL;

						MUST_OK(weft_buf_get(20000, 0, &buf));
						CHECK_OK(weft_buf_send(port, to, 1, buf, SOON));
					}
				}
				CHECK_OK(weft_send(port, to, 3, mem, 8, SOON));
				CHECK_OK(weft_send(port, to, 2, mem, 8, SOON));
				far_meet();
				EVENTUALLY(atomic_load(&lost) == 2 * N + 1);
				CHECK_EQ(stats_of(port).lost, 2 * N + 1);
				CHECK_OK(weft_port_close(port, SOON));
			}
			far_meet();
		}
	far_leave();
}

FAR(sends_of_a_port_that_closes_drain, 2)
{
	enum { N = 800 };
	static uint64_t v[N];
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_port *port = port_new(0);

			for (uint64_t i = 0; i < N; i++) {
				v[i] = i;
				CHECK(send_post(port, 0, peer, 1, &v[i], 8, NULL) >= 0);
			}
			pattern_put(mem, LARGE, 3);
			CHECK(send_post(port, 0, peer, 2, mem, LARGE, NULL) >= 0);
			far_meet();
			CHECK_OK(weft_port_close(port, SOON));
		} else {
			far_meet();
			for (uint64_t i = 0; i < N; i++)
				CHECK_NEXT(NULL, WEFT_ANY, 1, i);
			CHECK_OK(weft_recv(NULL, WEFT_ANY, 2, mem, LARGE, SOON, NULL));
			CHECK(pattern_ok(mem, LARGE, 3));
		}
	}
	far_leave();
	free(mem);
}

FAR(sends_that_do_not_drain_in_time_are_cancelled_and_never_arrive, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_port *port = port_new(0);
			struct weft_req *req = NULL;

			MUST_OK(send_post(port, 0, peer, 2, mem, LARGE, &req));
			far_meet();
			CHECK_EQ(weft_port_close(port, weft_in(5 * WEFT_MS)), -ETIMEDOUT);
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
			far_meet();
		} else {
			far_meet();
			far_meet();
			CHECK_NOTHING(NULL, WEFT_ANY, 2);
		}
	}
	far_leave();
	free(mem);
}

static void mate_last_words(void *arg)
{
	uint64_t v = *(uint64_t *)arg + 1;

	CHECK_OK(weft_send(NULL, far_told(2), 1, arg, 8, SOON));
	CHECK_OK(weft_send(NULL, far_told(2), 4, &v, 8, SOON));
}

FAR(receives_that_name_a_thread_of_another_process_end_with_it, 2)
{
	uint64_t got[4];

	far_join(0);
	EACH_WAY(waits) {
		if (waits) {
			struct weft_req *req = NULL, *second = NULL;
			struct tally tally = { 0 };
			weft_id mate;

			far_meet();
			mate = far_told(1);
			MUST_OK(recv_post(NULL, 0, mate, 1, &got[0], 8, &req));
			MUST_OK(recv_post(NULL, 0, mate, 2, &got[1], 8, &second));
			MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = mate, .tag = 3, .data = &got[2], .len = 8,
					.done = tally_done, .user = &tally), NULL, NULL));
			far_meet();
			/* What it sent before comes first. */
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
			CHECK_EQ(got[0], 5);
			CHECK_EQ(weft_req_wait(&second, SOON, NULL), -ECONNRESET);
			EVENTUALLY(tally.count);
			CHECK_EQ(tally.last.err, -ECONNRESET);
			CHECK_NEXT(NULL, mate, 4, 6);
			CHECK_EQ(weft_recv(NULL, mate, 1, &got[0], 8, SOON, NULL), -ESRCH);
			CHECK_EQ(weft_probe(NULL, WEFT(op, .peer = mate, .tag = 1), SOON, NULL, NULL), -ESRCH);
			CHECK_EQ(weft_send(NULL, mate, 1, &got[0], 8, SOON), -ESRCH);
		} else {
			struct mate mate;
			uint64_t v = 5;

			mate_start(&mate);
			far_tell(1, mate.id);
			far_meet();
			far_meet();
			far_tell(2, far_id(1 - far_rank));
			mate_run(&mate, mate_last_words, &v);
			mate_stop(&mate);
		}
		far_meet();
	}
	far_leave();
}

/* The other is to know when this process's first thread waits. */
static void *tell_when_asleep(void *arg)
{
	until_asleep();
	far_tell(3, 1);
	return arg;
}

FAR(a_blocked_receive_or_probe_that_names_a_thread_ends_with_it, 2)
{
	far_join(0);
	for (int probes = 0; probes < 2; probes++)
		EACH_WAY(waits) {
			if (waits) {
				uint64_t got;
				pthread_t sees;
				weft_id mate;
				int r;

				far_meet();
				mate = far_told(1);
				sees = thread_start(tell_when_asleep, NULL);
				r = probes ? weft_probe(NULL, WEFT(op, .peer = mate, .tag = 1), SOON, NULL, NULL) :
					     weft_recv(NULL, mate, 1, &got, 8, SOON, NULL);
				thread_join(sees);
				CHECK_EQ(r, -ECONNRESET);
			} else {
				struct mate mate;

				mate_start(&mate);
				far_tell(1, mate.id);
				far_meet();
				far_hear(3);
				mate_stop(&mate);
				far_tell(3, 0);
			}
			far_meet();
		}
	far_leave();
}

FAR(an_opened_port_that_closed_is_never_mistaken_for_a_later_one, 2)
{
	uint64_t n = test_scaled(1000), v = 1;

	far_join(0);
	EACH_WAY(sends)
		for (uint64_t i = 0; i < n; i++) {
			if (!sends) {
				struct weft_port *port = port_new(0);

				far_tell(1, port_id(port));
				far_tell(2, i + 1);
				CHECK_NEXT(port, WEFT_ANY, 1, i);
				CHECK_OK(weft_port_close(port, SOON));
				/* Nobody has sent to the next one yet. */
				port = port_new(0);
				far_tell(3, i + 1);
				EVENTUALLY(far_told(4) == i + 1);
				CHECK_NOTHING(port, WEFT_ANY, WEFT_ANY_TAG);
				CHECK_OK(weft_port_close(port, SOON));
			} else {
				weft_id to;
				int r;

				EVENTUALLY(far_told(2) == i + 1);
				to = far_told(1);
				CHECK_OK(weft_send(NULL, to, 1, &i, 8, SOON));
				EVENTUALLY(far_told(3) == i + 1);
				r = weft_send(NULL, to, 2, &v, 8, SOON);
				CHECK(r == -ESRCH || r == -ECONNRESET);
				far_tell(4, i + 1);
			}
		}
	far_leave();
}

FAR(many_ports_are_opened_and_closed_while_others_send_to_them, 3)
{
	uint64_t n = test_scaled(10000);

	far_join(0);
	if (far_rank == 0) {
		uint64_t got = 0;

		for (uint64_t i = 1; i <= n; i++) {
			struct weft_port *port = port_new(0);
			uint64_t v;

			far_tell((int)(i % 8), port_id(port));
			if (i % 16 == 0 && weft_recv(port, WEFT_ANY, WEFT_ANY_TAG, &v, 8, weft_in(2 * WEFT_MS), NULL) == 0)
				got++;
			for (uint32_t k = 1; k < 3 && i == n; k++)      /* the last waits for both */
				CHECK_OK(weft_recv(port, far_id(k), WEFT_ANY_TAG, &v, 8, SOON, NULL));
			CHECK_OK(weft_port_close(port, SOON));
		}
		far_tell(9, 1);
		printf("# %llu of %llu ports were met by a message in their time\n", (unsigned long long)got,
				(unsigned long long)n / 16);
	} else {
		uint64_t seed = far_rank, done = 0, refused = 0;
		struct weft_req *req = NULL;

		while (!far_told(9) || !refused) {      /* in the end all are closed */
			weft_id to = far_told((int)(test_random(&seed) % 8));
			int r;

			if (!to)
				continue;
			r = send_post(NULL, test_random(&seed) % 4 ? 0 : WEFT_SYNC, to, 1, &done, 8, &req);
			if (req)
				r = weft_req_wait(&req, SOON, NULL);
			CHECK(r == WEFT_DONE || r == 0 || r == -ESRCH || r == -ECONNRESET);
			if (r < 0)
				refused++;
			else
				done++;
		}
		CHECK(done > 0);
	}
	far_meet();
	/* And the process is well. */
	if (far_rank == 0) {
		CHECK_NEXT(NULL, far_id(1), 5, 1);
		CHECK_NEXT(NULL, far_id(2), 5, 2);
	} else {
		CHECK_OK(weft_send(NULL, far_id(0), 5, &(uint64_t){ far_rank }, 8, SOON));
	}
	far_leave();
}

FAR(a_message_to_a_process_that_has_not_joined_yet_waits_for_it, 2)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 1, got;

	if (far_rank == 0) {
		struct weft_req *req[4] = { NULL };

		MUST_OK(weft_init(NULL));
		MUST(send_post(weft_port_world(), 0, weft_at(1), 1, &v, 8, &req[0]) >= 0);
		pattern_put(mem, LARGE, 2);
		MUST_OK(send_post(weft_port_world(), 0, weft_at(1), 2, mem, LARGE, &req[1]));
		MUST_OK(send_post(weft_port_world(), WEFT_SYNC, weft_at(1), 3, &v, 8, &req[2]));
		MUST_OK(recv_post(weft_port_world(), 0, weft_at(1), 4, &got, 8, &req[3]));
		CHECK_EQ(weft_send(weft_port_world(), weft_at(1), 9, &v, 8, WEFT_NOW), -EAGAIN);
		CHECK_EQ(weft_req_wait(&req[2], weft_in(20 * WEFT_MS), NULL), -ETIMEDOUT);
		far_step(1);
		for (int i = 0; i < 4; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		CHECK_EQ(got, 7);
	} else {
		far_await(0, 1);
		MUST_OK(weft_init(NULL));
		CHECK_NEXT(weft_port_world(), weft_at(0), WEFT_ANY_TAG, 1);
		CHECK_OK(weft_recv(weft_port_world(), weft_at(0), WEFT_ANY_TAG, mem, LARGE, SOON, NULL));
		CHECK(pattern_ok(mem, LARGE, 2));
		CHECK_NEXT(weft_port_world(), weft_at(0), WEFT_ANY_TAG, 1);
		CHECK_NOTHING(weft_port_world(), weft_at(0), WEFT_ANY_TAG);
		CHECK_OK(weft_send(weft_port_world(), weft_at(0), 4, &(uint64_t){ 7 }, 8, SOON));
	}
	far_leave();
	free(mem);
}

FAR(a_process_that_never_joins_is_gone_when_it_ends, 2)
{
	uint64_t v = 1;

	if (far_rank == 0) {
		struct weft_req *req = NULL, *want = NULL;

		MUST_OK(weft_init(NULL));
		MUST_OK(send_post(weft_port_world(), WEFT_SYNC, weft_at(1), 1, &v, 8, &req));
		MUST_OK(recv_post(weft_port_world(), 0, weft_at(1), 1, &v, 8, &want));
		far_step(1);
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_req_wait(&want, SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_send(weft_port_world(), far_process(1), 1, &v, 8, SOON), -ESRCH);
		CHECK_OK(weft_fini(SOON));
	} else {
		far_await(0, 1);
	}
}

FAR(what_a_process_sent_before_it_left_arrives_and_then_it_is_gone, 2)
{
	enum { N = 200 };
	unsigned char *mem = memory(LARGE);
	uint64_t got = 0;

	far_join(0);
	if (far_rank == 1) {
		struct weft_buf *buf = NULL;

		for (uint64_t i = 0; i < N; i++)
			CHECK_OK(weft_send(NULL, far_id(0), 1, &i, 8, SOON));
		pattern_put(mem, 5000, 4);
		CHECK_OK(weft_send(NULL, far_id(0), 2, mem, 5000, SOON));
		MUST_OK(weft_buf_get(LARGE, 0, &buf));
		pattern_put(buf->data, LARGE, 5);
		CHECK_OK(weft_buf_send(NULL, far_id(0), 3, buf, SOON));
		CHECK_OK(weft_fini(SOON));
		far_step(1);
	} else {
		struct weft_buf *buf = NULL;

		far_await(1, 1);
		EVENTUALLY(weft_send(NULL, far_id(1), 1, &got, 8, SOON) == -ESRCH);
		for (uint64_t i = 0; i < N; i++)
			CHECK_NEXT(NULL, far_id(1), 1, i);
		CHECK_OK(weft_recv(NULL, far_id(1), 2, mem, 5000, SOON, NULL));
		CHECK(pattern_ok(mem, 5000, 4));
		CHECK_OK(weft_buf_recv(NULL, far_id(1), 3, SOON, &buf, NULL));
		if (buf) {
			CHECK(pattern_ok(buf->data, LARGE, 5));
			CHECK_OK(weft_buf_put(buf));
		}
		CHECK_EQ(weft_recv(NULL, far_id(1), 1, &got, 8, SOON, NULL), -ESRCH);
		CHECK_EQ(weft_send(NULL, far_id(1), 1, &got, 8, SOON), -ESRCH);
		CHECK_EQ(weft_send(weft_port_world(), weft_at(1), 1, &got, 8, SOON), -ESRCH);
		CHECK_OK(weft_fini(SOON));
	}
	free(mem);
}

FAR(leaving_drains_posted_sends, 2)
{
	enum { N = 1000 };
	static uint64_t v[N];
	unsigned char *mem = memory(LARGE);

	far_join(0);
	if (far_rank == 1) {
		for (uint64_t i = 0; i < N; i++) {
			v[i] = i;
			CHECK(send_post(NULL, 0, far_id(0), 1, &v[i], 8, NULL) >= 0);
		}
		pattern_put(mem, LARGE, 5);
		CHECK(send_post(NULL, 0, far_id(0), 2, mem, LARGE, NULL) >= 0);
		far_step(1);
		CHECK_OK(weft_fini(SOON));
	} else {
		far_await(1, 1);
		for (uint64_t i = 0; i < N; i++)
			CHECK_NEXT(NULL, far_id(1), 1, i);
		CHECK_OK(weft_recv(NULL, far_id(1), 2, mem, LARGE, SOON, NULL));
		CHECK(pattern_ok(mem, LARGE, 5));
		CHECK_OK(weft_fini(SOON));
	}
	free(mem);
}

FAR(a_process_that_ends_without_leaving_has_drained_and_is_gone, 2)
{
	uint64_t v = 3, got;

	far_join(0);
	if (far_rank == 1) {
		CHECK_OK(weft_send(NULL, far_id(0), 1, &v, 8, SOON));
		CHECK(send_post(NULL, WEFT_SYNC, far_id(0), 2, &v, 8, NULL) >= 0);
		static uint64_t kept = 4;
		CHECK(send_post(NULL, WEFT_SYNC, far_id(0), 3, &kept, 8, NULL) >= 0);
		far_step(1);
		return;                 /* main returns: no weft_fini */
	}
	far_await(1, 1);
	CHECK_NEXT(NULL, far_id(1), 2, 3);
	CHECK_NEXT(NULL, far_id(1), 3, 4);
	CHECK_NEXT(NULL, far_id(1), 1, 3);
	int r = weft_recv(NULL, far_id(1), 1, &got, 8, SOON, NULL);
	CHECK(r == -ECONNRESET || r == -ESRCH);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_process_leaves_while_others_send_to_it, 3)
{
	unsigned char *mem = memory(100000);

	far_join(0);
	if (far_rank == 0) {
		for (int i = 0; i < 100; i++) {
			struct weft_status st;

			CHECK_OK(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, mem, 100000, SOON, &st));
		}
		CHECK_OK(weft_fini(SOON));
	} else {
		uint64_t sent = 0;
		int r;

		do {
			size_t len = sent % 7 == 0 ? 100000 : sent % 3 == 0 ? 1000 : 8;

			r = weft_send(NULL, far_id(0), sent, mem, len, SOON);
			sent += r == 0;
		} while (r == 0);
		CHECK(r == -ESRCH || r == -ECONNRESET);
		CHECK_EQ(weft_send(NULL, far_id(0), 1, mem, 8, SOON), -ESRCH);
		/* These two go on. */
		r = weft_send(NULL, far_id(3 - far_rank), 9, &sent, 8, SOON);
		CHECK_OK(r);
		CHECK_OK(weft_recv(NULL, far_id(3 - far_rank), 9, mem, 8, SOON, NULL));
		/* Nobody leaves before the other has heard. */
		far_step(1);
		far_await(3 - far_rank, 1);
		CHECK_OK(weft_fini(SOON));
	}
	free(mem);
}

FAR_MAIN
