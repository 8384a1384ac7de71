/* test_far_buf.c - buffers between processes: handed over, lent, sent on, and all of them come home. */
#include "pair.h"

enum { LARGE = 1 << 20 };

static struct weft_buf *buf_new(size_t len, uint64_t seed)
{
	struct weft_buf *buf = NULL;

	MUST_OK(weft_buf_get(len, 0, &buf));
	CHECK_EQ(buf->len, len);
	pattern_put(buf->data, len, seed);
	return buf;
}

static struct weft_buf *buf_next(struct weft_port *at, weft_id from, uint64_t tag, size_t len, uint64_t seed)
{
	struct weft_buf *buf = NULL;
	struct weft_status st;

	MUST_OK(weft_buf_recv(at, from, tag, SOON, &buf, &st));
	CHECK_EQ(st.len, len);
	CHECK_EQ(buf->len, len);
	CHECK(pattern_ok(buf->data, len, seed));
	CHECK(!(st.flags & WEFT_ST_SHARED));
	return buf;
}

FAR(a_buffer_sent_is_handed_over_whole_at_every_kind_of_port_without_a_copy, 2)
{
	static const size_t len[] = { 0, 1, 100, 4096, 100000, LARGE, 8 * LARGE };

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends) {
			uint64_t copies = stats_of(NULL).copies;

			for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++)
				if (sends)
					CHECK_OK(weft_buf_send(p.port, p.peer, i, buf_new(len[i], i), SOON));
				else
					CHECK_OK(weft_buf_put(buf_next(p.port, p.peer, i, len[i], i)));
			CHECK_EQ(stats_of(NULL).copies, copies);
		}
		pair_close(&p);
	}
	far_leave();
}

FAR(a_received_buffer_may_be_filled_and_sent_back_again_and_again, 2)
{
	weft_id peer;
	uint64_t n = test_scaled(2000);

	far_join(0);
	peer = far_id(1 - far_rank);
	if (far_rank == 0) {
		struct weft_buf *buf = buf_new(5000, 1);

		for (uint64_t i = 1; i <= n; i++) {
			CHECK_OK(weft_buf_send(NULL, peer, i, buf, SOON));
			buf = buf_next(NULL, peer, i, 4000 + i % 1000, i + 1);
			buf->len = 5000;
			pattern_put(buf->data, 5000, i + 1);
		}
		CHECK_OK(weft_buf_put(buf));
	} else {
		for (uint64_t i = 1; i <= n; i++) {
			struct weft_buf *buf = buf_next(NULL, peer, i, 5000, i);

			buf->len = 4000 + i % 1000;
			pattern_put(buf->data, buf->len, i + 1);
			CHECK_OK(weft_buf_send(NULL, peer, i, buf, SOON));
		}
	}
	far_leave();
}

FAR(a_received_buffer_is_sent_on_to_a_third_process_and_back_home, 3)
{
	static const size_t len[] = { 100, 5000, 100000, 4 * LARGE };
	uint64_t n = test_scaled(300);

	far_join(0);
	for (uint64_t i = 0; i < n; i++)
		for (int k = 0; k < 4; k++) {
			weft_id prev = far_id((far_rank + 2) % 3), next = far_id((far_rank + 1) % 3);
			uint64_t seed = i * 4 + (uint64_t)k;

			if (far_rank == 0) {
				CHECK_OK(weft_buf_send(NULL, next, 1, buf_new(len[k], seed), SOON));
				CHECK_OK(weft_buf_put(buf_next(NULL, prev, 1, len[k], seed)));
			} else {
				CHECK_OK(weft_buf_send(NULL, next, 1, buf_next(NULL, prev, 1, len[k], seed), SOON));
			}
		}
	far_leave();
}

FAR(a_buffer_is_received_into_plain_memory_and_plain_memory_as_a_buffer, 2)
{
	unsigned char *mem = memory(LARGE);
	struct weft_status st;

	far_join(0);
	EACH_WAY(sends)
		for (size_t len = 0; len <= LARGE; len = len * 32 + 1) {
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				CHECK_OK(weft_buf_send(NULL, peer, 1, buf_new(len, len), SOON));
				pattern_put(mem, len, len + 1);
				CHECK_OK(weft_send(NULL, peer, 2, mem, len, SOON));
				/* Announced. */
				struct weft_req *req = NULL;
				int r = weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = peer, .tag = 3,
						.buf = buf_new(len, len + 2)), &req);
				CHECK(r == 0 || r == WEFT_DONE);
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			} else {
				CHECK_OK(weft_recv(NULL, peer, 1, mem, LARGE, SOON, &st));
				CHECK_EQ(st.len, len);
				CHECK(pattern_ok(mem, len, len));
				CHECK_OK(weft_buf_put(buf_next(NULL, peer, 2, len, len + 1)));
				CHECK_OK(weft_recv(NULL, peer, 3, mem, LARGE, SOON, &st));
				CHECK_EQ(st.len, len);
				CHECK(pattern_ok(mem, len, len + 2));
			}
		}
	far_leave();
	free(mem);
}

FAR(an_announced_buffer_is_being_sent_until_it_is_asked_for, 2)
{
	static const size_t len[] = { 10, 1000, LARGE };

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 3; i++) {
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				struct weft_buf *buf = buf_new(len[i], 3);
				struct weft_req *req = NULL;

				MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = peer, .tag = 1, .buf = buf),
						&req));
				CHECK_EQ(weft_buf_state(buf), WEFT_BUF_SENDING);
				CHECK_EQ(weft_buf_put(buf), -EBUSY);
				far_meet();
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			} else {
				far_meet();
				CHECK_OK(weft_buf_put(buf_next(NULL, peer, 1, len[i], 3)));
			}
		}
	far_leave();
}

FAR(a_lent_buffer_goes_through_its_states_and_comes_back, 2)
{
	static const size_t len[] = { 0, 10, 1000, LARGE };

	far_join(0);
	EACH_WAY(sends)
		for (int announced = 0; announced < 2; announced++)
			for (int i = 0; i < 4; i++) {
				weft_id peer = far_id(1 - far_rank);

				if (sends) {
					struct weft_buf *buf = buf_new(len[i], 4);
					struct weft_req *req = NULL;
					int r;

					CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
					r = weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP | (announced ? WEFT_SYNC : 0u),
							.peer = peer, .tag = 1, .buf = buf), &req);
					CHECK(r == 0 || r == WEFT_DONE);
					if (announced) {
						CHECK_EQ(weft_buf_state(buf), WEFT_BUF_SENDING);
					} else {
						CHECK_OK(weft_req_wait(&req, SOON, NULL));
						CHECK_EQ(weft_buf_state(buf), WEFT_BUF_SENT);
					}
					CHECK_EQ(weft_buf_send(NULL, peer, 2, buf, SOON), -EBUSY);
					far_meet();
					CHECK_OK(weft_req_wait(&req, SOON, NULL));
					far_meet();
					CHECK_EQ(weft_buf_state(buf), WEFT_BUF_WITH_RECEIVER);
					far_meet();
					EVENTUALLY(weft_buf_state(buf) == WEFT_BUF_IDLE);
					CHECK(pattern_ok(buf->data, len[i], 4));
					/* It is an ordinary one again. */
					CHECK_OK(weft_buf_send(NULL, peer, 3, buf, SOON));
				} else {
					struct weft_buf *buf = NULL;
					struct weft_status st;

					far_meet();
					MUST_OK(weft_buf_recv(NULL, peer, 1, SOON, &buf, &st));
					CHECK(st.flags & WEFT_ST_SHARED);
					CHECK_EQ(buf->len, len[i]);
					CHECK(pattern_ok(buf->data, len[i], 4));
					far_meet();
					far_meet();
					CHECK_OK(weft_buf_put(buf));
					CHECK_OK(weft_buf_put(buf_next(NULL, peer, 3, len[i], 4)));
				}
				far_meet();
			}
	far_leave();
}

FAR(a_buffer_is_lent_to_several_at_once_and_comes_back_when_all_have_put_it, 3)
{
	far_join(0);
	if (far_rank == 0) {
		struct weft_buf *buf = buf_new(50000, 5);

		for (uint32_t i = 1; i < 3; i++) {
			struct weft_req *req = NULL;
			int r = weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP, .peer = far_id(i), .tag = 1, .buf = buf), &req);

			CHECK(r == 0 || r == WEFT_DONE);
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
		}
		far_meet();
		CHECK(weft_buf_state(buf) != WEFT_BUF_IDLE);
		far_meet();
		EVENTUALLY(weft_buf_state(buf) == WEFT_BUF_IDLE);
		CHECK_OK(weft_buf_put(buf));
	} else {
		struct weft_buf *buf = NULL;
		struct weft_status st;

		MUST_OK(weft_buf_recv(NULL, far_id(0), 1, SOON, &buf, &st));
		CHECK(st.flags & WEFT_ST_SHARED);
		CHECK(pattern_ok(buf->data, 50000, 5));
		if (far_rank == 1)
			CHECK_OK(weft_buf_put(buf));
		far_meet();
		far_meet();
		if (far_rank == 2)
			CHECK_OK(weft_buf_put(buf));
	}
	far_leave();
}

FAR(a_received_buffer_may_itself_be_lent, 3)
{
	far_join(0);
	if (far_rank == 0) {
		CHECK_OK(weft_buf_send(NULL, far_id(1), 1, buf_new(3000, 6), SOON));
	} else if (far_rank == 1) {
		struct weft_buf *buf = buf_next(NULL, far_id(0), 1, 3000, 6);
		struct weft_req *req = NULL;
		int r = weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP, .peer = far_id(2), .tag = 1, .buf = buf), &req);

		CHECK(r == 0 || r == WEFT_DONE);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		EVENTUALLY(weft_buf_state(buf) == WEFT_BUF_IDLE);
		CHECK(pattern_ok(buf->data, 3000, 6));
		CHECK_OK(weft_buf_put(buf));
	} else {
		struct weft_buf *buf = NULL;

		MUST_OK(weft_buf_recv(NULL, far_id(1), 1, SOON, &buf, NULL));
		CHECK(pattern_ok(buf->data, 3000, 6));
		CHECK_OK(weft_buf_put(buf));
	}
	far_leave();
}

FAR(a_view_of_a_lent_buffer_may_be_sent_on, 3)
{
	far_join(0);
	if (far_rank == 0) {
		struct weft_buf *buf = buf_new(3000, 7);
		struct weft_req *req = NULL;
		int r = weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP, .peer = far_id(1), .tag = 1, .buf = buf), &req);

		CHECK(r == 0 || r == WEFT_DONE);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		EVENTUALLY(weft_buf_state(buf) == WEFT_BUF_IDLE);
		CHECK_OK(weft_buf_put(buf));
	} else {
		struct weft_buf *buf = NULL;

		MUST_OK(weft_buf_recv(NULL, far_id(far_rank - 1), 1, SOON, &buf, NULL));
		CHECK(pattern_ok(buf->data, 3000, 7));
		if (far_rank == 1)
			CHECK_OK(weft_buf_send(NULL, far_id(2), 1, buf, SOON));
		else
			CHECK_OK(weft_buf_put(buf));
	}
	far_leave();
}

FAR(all_buffers_of_a_pool_given_away_and_put_there_come_home, 2)
{
	enum { N = 64 };

	/* The pool: 32 MiB, of which 16 go round at once. */
	far_join_with(WEFT(init_opts, .knobs = "pool=33554432"));
	EACH_WAY(sends)
		for (uint64_t k = 0; k < test_scaled(50); k++) {
			weft_id peer = far_id(1 - far_rank);
			struct weft_buf *buf[N];

			for (unsigned i = 0; i < N; i++) {
				if (sends) {
					while (weft_buf_get(256 << 10, 0, &buf[i]) == -EAGAIN)
						crew_nap();     /* the other is putting them */
					pattern_put(buf[i]->data, 64, i);
					buf[i]->len = 64;
					CHECK_OK(weft_buf_send(NULL, peer, i, buf[i], SOON));
				} else {
					buf[i] = buf_next(NULL, peer, i, 64, i);
				}
			}
			for (unsigned i = 0; i < N && !sends; i++)
				CHECK_OK(weft_buf_put(buf[i]));
		}
	far_leave();
}

FAR(a_failed_send_gives_the_buffer_back, 2)
{
	weft_id gone;

	far_join(0);
	EACH_WAY(sends) {
		if (!sends) {
			struct weft_port *port = port_new(0);

			far_tell(0, port_id(port));
			far_meet();
			CHECK_OK(weft_port_close(port, SOON));
			far_meet();
		} else {
			struct weft_buf *buf = buf_new(1000, 8);

			far_meet();
			gone = far_told(0);
			far_meet();
			CHECK_EQ(weft_buf_send(NULL, gone, 1, buf, SOON), -ESRCH);
			CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);
			CHECK(pattern_ok(buf->data, 1000, 8));
			CHECK_OK(weft_buf_put(buf));
		}
	}
	far_leave();
}

struct race {                           /* two threads that send one buffer at once */
	weft_id to;
	uint64_t rounds;
	pthread_barrier_t line;
	struct weft_buf *buf;
	_Atomic int sent, refused;
	_Atomic uint64_t ready, done;   /* rounds */
};

static void *race(void *arg)
{
	struct race *r = arg;

	for (uint64_t i = 0; i < r->rounds; i++) {
		int err;

		if (pthread_barrier_wait(&r->line) == PTHREAD_BARRIER_SERIAL_THREAD)
			r->buf = buf_new(i % 2 ? 100 : 5000, i);
		pthread_barrier_wait(&r->line);
		err = weft_buf_send(NULL, r->to, i, r->buf, SOON);
		CHECK(err == 0 || err == -EBUSY || err == -EINVAL);     /* under way, or home already */
		atomic_fetch_add(err ? &r->refused : &r->sent, 1);
	}
	return NULL;
}

FAR(of_two_sends_of_one_buffer_at_once_one_succeeds, 2)
{
	uint64_t n = test_scaled(20000);

	far_join(0);
	if (far_rank == 0) {
		struct race r = { .to = far_id(1), .rounds = n };
		pthread_t t;

		MUST_OK(pthread_barrier_init(&r.line, NULL, 2));
		t = thread_start(race, &r);
		race(&r);
		MUST_OK(pthread_join(t, NULL));
		CHECK_EQ(r.sent, n);
		CHECK_EQ(r.refused, n);
		pthread_barrier_destroy(&r.line);
	} else {
		for (uint64_t i = 0; i < n; i++)
			CHECK_OK(weft_buf_put(buf_next(NULL, WEFT_ANY, i, i % 2 ? 100 : 5000, i)));
	}
	far_meet();
	far_leave();
}

static void await_turn(_Atomic uint64_t *turn, uint64_t n)
{
	for (int i = 1; atomic_load(turn) < n; i++)             /* no sleep: the two are to be at it within nanoseconds */
		if (i % 1000 == 0)
			sched_yield();
}

static void *race_put(void *arg)
{
	struct race *r = arg;

	for (uint64_t i = 1; i <= r->rounds; i++) {
		int err;

		await_turn(&r->ready, i);
		err = weft_buf_put(r->buf);
		CHECK(err == 0 || err == -EBUSY || err == -EINVAL);
		atomic_fetch_add(err ? &r->refused : &r->sent, 1);
		atomic_store(&r->done, i);
	}
	return NULL;
}

/* The sender is the only user of its way, which it comes to claim without asking others. */
FAR(of_a_send_and_a_put_of_one_buffer_at_once_one_succeeds, 2)
{
	enum { RACED = 1, OVER = 2 };
	uint64_t n = test_scaled(20000);

	far_join(0);
	if (far_rank == 0) {
		struct race r = { .to = far_id(1), .rounds = n };
		uint64_t sent = 0;
		pthread_t t;

		t = thread_start(race_put, &r);
		for (uint64_t i = 1; i <= n; i++) {
			int err;

			r.buf = buf_new(5000, i);
			atomic_store(&r.ready, i);
			for (uint64_t late = i % 2048; late > 0; late--)         /* who is first varies */
				atomic_signal_fence(memory_order_seq_cst);
			err = weft_buf_send(NULL, r.to, RACED, r.buf, SOON);
			CHECK(err == 0 || err == -EBUSY || err == -EINVAL);
			sent += !err;
			await_turn(&r.done, i);
		}
		MUST_OK(pthread_join(t, NULL));
		CHECK_EQ(sent + (uint64_t)r.sent, n);
		printf("# %llu sent, %d put\n", (unsigned long long)sent, r.sent);
		CHECK_OK(weft_send(NULL, r.to, OVER, &sent, 8, SOON));
	} else {
		uint64_t got = 0, sent = 0;
		struct weft_status st;
		struct weft_buf *buf;

		for (;;) {
			MUST_OK(weft_buf_recv(NULL, far_id(0), WEFT_ANY_TAG, SOON, &buf, &st));
			if (st.tag == OVER)
				break;
			CHECK_EQ(buf->len, 5000);
			CHECK_OK(weft_buf_put(buf));
			got++;
		}
		memcpy(&sent, buf->data, 8);
		CHECK_OK(weft_buf_put(buf));
		CHECK_EQ(got, sent);
	}
	far_meet();
	far_leave();
}

FAR_MAIN
