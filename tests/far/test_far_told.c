/* test_far_told.c - ends told by callback and queue, and receives that stay posted, between processes. */
#include <poll.h>
#include "pair.h"

enum { LARGE = 1 << 20 };

static const size_t sizes[] = { 0, 8, 500, 8192, 100000, LARGE };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

FAR(a_receives_callback_runs_also_when_no_thread_waits_in_weft, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends)
			for (unsigned i = 0; i < SIZES; i++) {
				struct tally tally = { 0 };

				if (!sends) {
					MUST_OK(weft_recv_post(p.port, WEFT(op, .peer = p.peer, .tag = 1, .data = mem,
							.len = LARGE, .done = tally_done,
									    .user = &tally), NULL, NULL));
					far_meet();
					EVENTUALLY(tally.count);
					CHECK_OK(tally.last.err);
					CHECK_EQ(tally.last.len, sizes[i]);
					CHECK(pattern_ok(mem, sizes[i], i));
				} else {
					far_meet();
					pattern_put(mem, sizes[i], i);
					/* Posted, and then this side computes, too. */
					MUST_OK(weft_send_post(p.port, WEFT(op, .flags = i % 2 ? WEFT_SYNC : 0,
							.peer = p.peer, .tag = 1, .data = mem,
									.len = sizes[i], .done = tally_done, .user = &tally),
											NULL));
					EVENTUALLY(tally.count);
					CHECK_OK(tally.last.err);
				}
				far_meet();
			}
		pair_close(&p);
	}
	far_leave();
	free(mem);
}

FAR(ends_arrive_in_a_queue_and_its_descriptor_is_readable, 2)
{
	unsigned char *mem[SIZES];

	far_join(0);
	for (unsigned i = 0; i < SIZES; i++)
		mem[i] = memory(sizes[i] + 1);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		struct weft_queue *queue = NULL;
		unsigned n = 0;

		MUST_OK(weft_queue_open(&queue));
		for (unsigned i = 0; i < SIZES && !sends; i++)
			MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = peer, .tag = i, .data = mem[i], .len = sizes[i],
					.queue = queue, .user = mem[i]),
					       NULL, NULL));
		far_meet();
		for (unsigned i = 0; i < SIZES && sends; i++) {
			pattern_put(mem[i], sizes[i], i);
			MUST_OK(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = i, .data = mem[i], .len = sizes[i],
					.queue = queue, .user = mem[i]), NULL));
		}
		while (n < SIZES) {
			struct pollfd fd = { .fd = weft_queue_fd(queue), .events = POLLIN };
			struct weft_status st[4];
			int got;

			CHECK_EQ(poll(&fd, 1, 20000), 1);
			got = weft_queue_next(queue, WEFT_NOW, st, 4);
			if (got == -EAGAIN)
				continue;
			MUST(got > 0);
			for (int k = 0; k < got; k++, n++) {
				CHECK_OK(st[k].err);
				MUST(st[k].tag < SIZES);
				CHECK(st[k].user == mem[st[k].tag]);
				CHECK(pattern_ok(mem[st[k].tag], sizes[st[k].tag], st[k].tag));
			}
		}
		CHECK_OK(weft_queue_close(queue));
	}
	far_leave();
	for (unsigned i = 0; i < SIZES; i++)
		free(mem[i]);
}

struct stream {
	_Atomic uint64_t next, wrong, last;
	unsigned char *mem;
};

static void stream_done(const struct weft_status *st)
{
	struct stream *s = st->user;
	uint64_t i = atomic_load(&s->next);

	if (st->err) {
		atomic_store(&s->last, 1);
		return;
	}
	if (st->tag != i || !pattern_ok(s->mem, st->len, i))
		atomic_fetch_add(&s->wrong, 1);
	atomic_store(&s->next, i + 1);
}

FAR(a_repeating_receive_with_a_callback_takes_small_and_large_messages_in_order, 2)
{
	uint64_t n = test_scaled(2000);
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		struct stream s = { .mem = mem };
		struct weft_req *req = NULL;
		uint64_t seed = 3;

		if (!sends)
			MUST_OK(weft_recv_post(NULL, WEFT(op, .flags = WEFT_REPEAT, .peer = peer, .tag = WEFT_ANY_TAG,
					.data = mem, .len = LARGE,
							  .done = stream_done, .user = &s), &req, NULL));
		far_meet();
		for (uint64_t i = 0; i < n && sends; i++) {
			size_t len = test_random(&seed) % 16 ? sizes[i % 4] : sizes[i % SIZES];

			pattern_put(mem, len, i);
			CHECK_OK(weft_send(NULL, peer, i, mem, len, SOON));
		}
		if (!sends) {
			EVENTUALLY(atomic_load(&s.next) == n);
			CHECK_EQ(s.wrong, 0);
			CHECK_OK(weft_req_cancel(req));
			EVENTUALLY(atomic_load(&s.last));
			CHECK_OK(weft_req_free(req));
		}
		far_meet();
	}
	far_leave();
	free(mem);
}

FAR(a_repeating_receive_into_a_queue_gives_a_buffer_each_time, 2)
{
	uint64_t n = test_scaled(2000);
	unsigned char *mem = memory(LARGE);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);
		struct weft_queue *queue = NULL;
		struct weft_req *req = NULL;
		struct weft_status st;
		uint64_t seed = 3;

		if (!sends) {
			MUST_OK(weft_queue_open(&queue));
			MUST_OK(weft_recv_post(NULL, WEFT(op, .flags = WEFT_REPEAT | WEFT_ALLOC, .peer = peer,
					.tag = WEFT_ANY_TAG, .queue = queue), &req, NULL));
		}
		far_meet();
		for (uint64_t i = 0; i < n; i++) {
			size_t len = test_random(&seed) % 16 ? sizes[i % 4] : sizes[i % SIZES];

			if (sends && i % 3 == 0) {
				struct weft_buf *buf = NULL;

				MUST_OK(weft_buf_get(len, 0, &buf));
				pattern_put(buf->data, len, i);
				CHECK_OK(weft_buf_send(NULL, peer, i, buf, SOON));
			} else if (sends) {
				pattern_put(mem, len, i);
				CHECK_OK(weft_send(NULL, peer, i, mem, len, SOON));
			} else {
				MUST_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
				MUST_OK(st.err);
				MUST_EQ(st.tag, i);
				CHECK_EQ(st.len, len);
				CHECK(st.flags & WEFT_ST_MORE);
				CHECK(pattern_ok(st.buf->data, len, i));
				CHECK_OK(weft_buf_put(st.buf));
			}
		}
		if (!sends) {
			CHECK_OK(weft_req_cancel(req));
			CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
			CHECK_EQ(st.err, -ECANCELED);
			CHECK_OK(weft_req_free(req));
			CHECK_OK(weft_queue_close(queue));
		}
	}
	far_leave();
	free(mem);
}

struct echo {
	weft_id peer;
	_Atomic uint64_t left;
	uint64_t in;
};

static void echo_done(const struct weft_status *st)
{
	struct echo *e = st->user;

	if (st->err)
		return;
	int r = weft_send_post(weft_port_world(), WEFT(op, .peer = e->peer, .tag = 1, .data = &e->in, .len = 8), NULL);
	CHECK(r >= 0);
	if (atomic_fetch_sub(&e->left, 1) > 1)
		CHECK(weft_recv_post(weft_port_world(), WEFT(op, .peer = e->peer, .tag = 1, .data = &e->in, .len = 8,
				.done = echo_done, .user = e),
				     NULL, NULL) >= 0);
}

FAR(callbacks_may_post_and_two_processes_talk_by_callbacks_alone, 2)
{
	uint64_t n = test_scaled(2000);
	struct echo e = { .left = n };

	far_join(0);
	e.peer = far_process(1 - far_rank);
	CHECK(weft_recv_post(weft_port_world(), WEFT(op, .peer = e.peer, .tag = 1, .data = &e.in, .len = 8, .done = echo_done,
			.user = &e), NULL, NULL) >= 0);
	far_meet();
	if (far_rank == 0)
		CHECK_OK(weft_send(weft_port_world(), e.peer, 1, &n, 8, SOON));
	EVENTUALLY(atomic_load(&e.left) == 0);
	far_leave();
}

FAR_MAIN
