/* test_far_msg.c - messages between processes: order, when a send is done, what does not fit, memory in pieces. */
#include "../integ/column.h"
#include "pair.h"

enum { LARGE = 1 << 20 };

static const size_t sizes[] = { 0, 1, 8, 96, 97, 256, 1000, 4096, 8192, 8193, 16384, 16385, 65536, 100000, 262144, 262145, LARGE,
		LARGE + 3, 5 * LARGE };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

FAR(messages_of_every_size_arrive_whole_in_order_at_every_kind_of_port_in_both_directions, 2)
{
	unsigned char *mem = memory(5 * LARGE), *got = memory(5 * LARGE);
	struct weft_status st;

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends)
			for (unsigned i = 0; i < SIZES; i++) {
				if (sends) {
					pattern_put(mem, sizes[i], i);
					CHECK_OK(weft_send(p.port, p.peer, 100 + i, mem, sizes[i], SOON));
					memset(mem, 0xee, sizes[i]);
				} else {
					memset(got, 0xdd, sizes[i]);
					CHECK_OK(weft_recv(p.port, p.peer, WEFT_ANY_TAG, got, sizes[i], SOON, &st));
					CHECK_EQ(st.tag, 100 + i);
					CHECK_EQ(st.len, sizes[i]);
					CHECK(st.from == p.peer);
					CHECK(pattern_ok(got, sizes[i], i));
				}
			}
		pair_close(&p);
	}
	far_leave();
	free(mem);
	free(got);
}

FAR(messages_of_mixed_sizes_keep_the_order_of_their_send_calls, 2)
{
	uint64_t n = test_scaled(20000), seed = 7;
	unsigned char *mem = memory(40000);

	far_join(0);
	EACH_WAY(sends)
		for (uint64_t i = 0; i < n; i++) {
			uint64_t roll = test_random(&seed);
			size_t len = roll % 64 == 0 ? 40000 : roll % 8 == 0 ? 3000 : roll % 3 == 0 ? 200 : 8;

			if (sends) {
				memcpy(mem, &i, 8);
				CHECK_OK(weft_send(NULL, far_id(1 - far_rank), i, mem, len, SOON));
			} else {
				struct weft_status st;
				uint64_t v;

				CHECK_OK(weft_recv(NULL, far_id(1 - far_rank), WEFT_ANY_TAG, mem, 40000, SOON, &st));
				memcpy(&v, mem, 8);
				MUST_EQ(v, i);
				CHECK_EQ(st.tag, i);
				CHECK_EQ(st.len, len);
			}
		}
	far_leave();
	free(mem);
}

FAR(posted_sends_that_wait_for_a_full_mailbox_keep_the_order_of_their_priority, 2)
{
	enum { N = 1000 };
	static uint64_t v[N];

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			struct weft_req *req[N] = { NULL };

			for (uint64_t i = 0; i < N; i++) {
				int r;

				v[i] = i;
				r = weft_send_post(NULL, WEFT(op, .peer = peer, .tag = i % 3, .data = &v[i], .len = 8,
						.prio = (int8_t)(i % 3)), &req[i]);
				CHECK(r == 0 || r == WEFT_DONE);
			}
			far_meet();
			for (int i = 0; i < N; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		} else {
			uint64_t next[3] = { 0, 1, 2 }, got;
			struct weft_status st;

			far_meet();
			for (int i = 0; i < N; i++) {
				CHECK_OK(weft_recv(NULL, peer, WEFT_ANY_TAG, &got, 8, SOON, &st));
				MUST(st.tag < 3);
				CHECK_EQ(got, next[st.tag]);
				next[st.tag] = got + 3;
			}
		}
	}
	far_leave();
}

FAR(a_receive_picks_by_tag_and_ignore_and_any_tag_takes_the_first, 2)
{
	uint64_t v;

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			for (v = 0; v < 6; v++)
				CHECK_OK(weft_send(NULL, peer, 0x10 + v, &v, 8, SOON));
			far_meet();
		} else {
			far_meet();
			CHECK_NEXT(NULL, peer, 0x14, 4);
			CHECK_OK(recv_op(NULL, WEFT(op, .peer = peer, .tag = 0x33, .ignore = 0x20, .data = &v, .len = 8), NULL));
			CHECK_EQ(v, 3);
			CHECK_NEXT(NULL, WEFT_ANY, WEFT_ANY_TAG, 0);
			CHECK_NEXT(NULL, peer, WEFT_ANY_TAG, 1);
			CHECK_NEXT(NULL, WEFT_ANY, 0x15, 5);
			CHECK_NEXT(NULL, peer, 0x12, 2);
			CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
		}
	}
	far_leave();
}

FAR(of_receives_posted_before_the_earlier_gets_the_earlier_message_of_any_size, 2)
{
	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends) {
			struct weft_req *req[SIZES] = { NULL };
			unsigned char *mem[SIZES];

			for (unsigned i = 0; i < SIZES; i++) {
				mem[i] = memory(sizes[i] + 1);
				if (!sends)
					MUST_OK(recv_post(p.port, 0, i % 2 ? p.peer : WEFT_ANY, 5, mem[i], sizes[i], &req[i]));
			}
			far_meet();
			for (unsigned i = 0; i < SIZES && sends; i++) {
				int r;

				pattern_put(mem[i], sizes[i], i);
				r = send_post(p.port, i % 3 ? 0 : WEFT_SYNC, p.peer, 5, mem[i], sizes[i], &req[i]);
				CHECK(r == 0 || r == WEFT_DONE);
			}
			for (unsigned i = 0; i < SIZES; i++) {
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
				CHECK(pattern_ok(mem[i], sizes[i], i));
				free(mem[i]);
			}
		}
		pair_close(&p);
	}
	far_leave();
}

FAR(a_synchronous_send_ends_when_a_receive_has_matched_and_not_before, 2)
{
	static const size_t len[] = { 0, 8, 500, 100000 };
	unsigned char *mem = memory(100000);

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends)
			for (int i = 0; i < 4; i++) {
				struct weft_req *req = NULL;

				if (sends) {
					MUST_OK(send_post(p.port, WEFT_SYNC, p.peer, 1, mem, len[i], &req));
					far_meet();
					far_meet();     /* the other has looked for another one meanwhile */
					CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
					far_meet();
					CHECK_OK(weft_req_wait(&req, SOON, NULL));
				} else {
					far_meet();
					EVENTUALLY(weft_probe(p.port, WEFT(op, .peer = p.peer, .tag = 1), WEFT_NOW, NULL,
							NULL) == 0);
					CHECK_NOTHING(p.port, p.peer, 2);
					far_meet();
					far_meet();
					CHECK_OK(weft_recv(p.port, p.peer, 1, mem, len[i], SOON, NULL));
				}
			}
		pair_close(&p);
	}
	far_leave();
	free(mem);
}

FAR(with_rendezvous_only_the_header_goes_before_it_is_asked_for, 2)
{
	static const size_t len[] = { 8, 500, 100000 };
	unsigned char *mem = memory(100000);

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 3; i++) {
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				struct weft_req *req = NULL;

				pattern_put(mem, len[i], 1);
				MUST_OK(send_post(NULL, WEFT_RENDEZVOUS, peer, 1, mem, len[i], &req));
				far_meet();
				CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
				far_meet();
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			} else {
				struct weft_status st;

				far_meet();
				CHECK_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 1), SOON, NULL, &st));
				CHECK_EQ(st.len, len[i]);
				far_meet();
				CHECK_OK(weft_recv(NULL, peer, 1, mem, len[i], SOON, NULL));
				CHECK(pattern_ok(mem, len[i], 1));
			}
		}
	far_leave();
	free(mem);
}

FAR(a_ready_send_that_found_no_receive_is_counted_at_its_sender_and_arrives, 2)
{
	static const size_t len[] = { 8, 500, 100000 };
	unsigned char *mem = memory(100000);

	far_join(0);
	EACH_WAY(sends) {
		weft_id peer = far_id(1 - far_rank);

		if (sends) {
			uint64_t before = stats_of(NULL).ready_missed;

			for (int i = 0; i < 3; i++) {
				struct weft_req *req = NULL;
				int r = send_post(NULL, WEFT_READY, peer, 1, mem, len[i], &req);

				CHECK(r == 0 || r == WEFT_DONE);
				far_meet();
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			}
			EVENTUALLY(stats_of(NULL).ready_missed == before + 3);
			far_meet();
			/* One kept promise is none missed. */
			CHECK_OK(weft_send(NULL, peer, 2, mem, 0, SOON));
			far_meet();
			struct weft_req *req = NULL;
			int r = send_post(NULL, WEFT_READY, peer, 3, mem, 8, &req);
			CHECK(r == 0 || r == WEFT_DONE);
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
			far_meet();
			CHECK_EQ(stats_of(NULL).ready_missed, before + 3);
		} else {
			struct weft_req *req = NULL;

			for (int i = 0; i < 3; i++) {
				CHECK_OK(weft_probe(NULL, WEFT(op, .peer = peer, .tag = 1), SOON, NULL, NULL));
				far_meet();
				CHECK_OK(weft_recv(NULL, peer, 1, mem, len[i], SOON, NULL));
			}
			far_meet();
			MUST_OK(recv_post(NULL, 0, peer, 3, mem, 8, &req));
			CHECK_OK(weft_recv(NULL, peer, 2, mem, 0, SOON, NULL));
			far_meet();
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
			far_meet();
		}
	}
	far_leave();
	free(mem);
}

FAR(a_message_that_does_not_fit_stays_and_is_cut_off_if_asked, 2)
{
	static const size_t len[] = { 8, 80, 500, 8000, 100000, 500000 };
	unsigned char *mem = memory(500000);

	far_join(0);
	EACH_WAY(sends)
		for (int form = 0; form < 3; form++)    /* plain, synchronous, a buffer */
			for (int i = 0; i < 6; i++) {
				weft_id peer = far_id(1 - far_rank);

				if (sends) {
					struct weft_req *req[2] = { NULL };

					pattern_put(mem, len[i], (uint64_t)i);
					for (int k = 0; k < 2; k++) {
						struct weft_op op = { .size = sizeof(op), .peer = peer, .tag = 1 };
						int r;

						if (form == 2) {
							MUST_OK(weft_buf_get(len[i], 0, &op.buf));
							memcpy(op.buf->data, mem, len[i]);
						} else {
							op.flags = form ? WEFT_SYNC : 0;
							op.data = mem;
							op.len = len[i];
						}
						r = weft_send_post(NULL, &op, &req[k]);
						CHECK(r == 0 || r == WEFT_DONE);
					}
					for (int k = 0; k < 2; k++)
						CHECK_OK(weft_req_wait(&req[k], SOON, NULL));
				} else {
					struct weft_status st = { 0 };

					CHECK_EQ(weft_recv(NULL, peer, 1, mem, len[i] / 2, SOON, &st), -EMSGSIZE);
					CHECK_EQ(st.len, len[i]);
					memset(mem, 0, len[i]);
					CHECK_OK(weft_recv(NULL, peer, 1, mem, len[i], SOON, &st));
					CHECK_EQ(st.len, len[i]);
					CHECK(pattern_ok(mem, len[i], (uint64_t)i));
					memset(mem, 0xcc, len[i]);
					CHECK_EQ(recv_op(NULL, WEFT(op, .flags = WEFT_TRUNCATE, .peer = peer, .tag = 1,
							.data = mem, .len = len[i] / 2), &st),
						 -EMSGSIZE);
					CHECK_EQ(st.len, len[i]);
					CHECK(pattern_ok(mem, len[i] / 2, (uint64_t)i));
					CHECK_EQ(mem[len[i] / 2], 0xcc);
					CHECK_NOTHING(NULL, peer, 1);
				}
				far_meet();
			}
	far_leave();
	free(mem);
}

FAR(a_posted_receive_too_short_ends_and_the_message_meets_the_one_behind_it, 2)
{
	static const size_t len[] = { 8, 500, 100000 };
	unsigned char *mem = memory(100000), *small = memory(100000);

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 3; i++) {
			weft_id peer = far_id(1 - far_rank);
			struct weft_req *a = NULL, *b = NULL;

			if (!sends) {
				MUST_OK(recv_post(NULL, 0, peer, 1, small, len[i] - 1, &a));
				MUST_OK(recv_post(NULL, 0, peer, 1, mem, len[i], &b));
			}
			far_meet();
			if (sends) {
				pattern_put(mem, len[i], 3);
				CHECK_OK(weft_send(NULL, peer, 1, mem, len[i], SOON));
			} else {
				CHECK_EQ(weft_req_wait(&a, SOON, NULL), -EMSGSIZE);
				CHECK_OK(weft_req_wait(&b, SOON, NULL));
				CHECK(pattern_ok(mem, len[i], 3));
			}
			far_meet();
		}
	far_leave();
	free(mem);
	free(small);
}

FAR(a_receive_with_alloc_gets_a_buffer_that_fits_posted_before_or_after, 2)
{
	unsigned char *mem = memory(LARGE);

	far_join(0);
	for (int posted = 0; posted < 2; posted++)
		EACH_WAY(sends)
			for (size_t len = 0; len <= LARGE; len = len * 20 + 1) {
				weft_id peer = far_id(1 - far_rank);
				struct weft_req *req = NULL;
				struct weft_status st;
				struct weft_op op = { .size = sizeof(op), .flags = WEFT_ALLOC, .peer = peer, .tag = 1 };

				if (!sends && posted)
					MUST_OK(weft_recv_post(NULL, &op, &req, NULL));
				far_meet();
				if (sends) {
					pattern_put(mem, len, len);
					CHECK_OK(weft_send(NULL, peer, 1, mem, len, SOON));
				} else {
					CHECK_OK(posted ? weft_req_wait(&req, SOON, &st) : recv_op(NULL, &op, &st));
					MUST(st.buf != NULL);
					CHECK_EQ(st.buf->len, len);
					CHECK(pattern_ok(st.buf->data, len, len));
					CHECK_OK(weft_buf_put(st.buf));
				}
			}
	far_leave();
	free(mem);
}

/* Ones that fill a sixteenth of the arena each, and do not end where it does: a reader that told of them by their number only would let it run full. */
FAR(who_reads_what_comes_leaves_room_for_the_next_however_large, 2)
{
	enum { LARGEST = 16384, TIMES = 200 };
	unsigned char *mem = memory(LARGEST);

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < TIMES; i++) {
			size_t len = i ? LARGEST : 97;
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				pattern_put(mem, len, (uint64_t)i);
				CHECK_OK(weft_send(NULL, peer, 1, mem, len, i ? WEFT_NOW : SOON));
				CHECK_OK(weft_recv(NULL, peer, 2, NULL, 0, SOON, NULL));
			} else {
				CHECK_OK(weft_recv(NULL, peer, 1, mem, len, SOON, NULL));
				CHECK(pattern_ok(mem, len, (uint64_t)i));
				CHECK_OK(weft_send(NULL, peer, 2, NULL, 0, SOON));
			}
		}
	far_leave();
	free(mem);
}

FAR(a_copy_is_free_on_return, 2)
{
	static const size_t len[] = { 0, 8, 500, 8192, 20000 };
	unsigned char *mem = memory(20000);

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 5; i++) {
			weft_id peer = far_id(1 - far_rank);

			if (sends) {
				struct weft_req *req = NULL;
				int r;

				pattern_put(mem, len[i], 9);
				/* "No room now" is an answer, also while the two have just met. */
				while ((r = send_post(NULL, WEFT_COPY, peer, 1, mem, len[i], &req)) == -EAGAIN)
					crew_nap();
				CHECK(r == 0 || r == WEFT_DONE);
				memset(mem, 0, len[i]);
				far_meet();
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
			} else {
				far_meet();
				CHECK_OK(weft_recv(NULL, peer, 1, mem, len[i], SOON, NULL));
				CHECK(pattern_ok(mem, len[i], 9));
			}
			far_meet();
		}
	far_leave();
	free(mem);
}

enum { PLAIN, LIST, LAYOUT, MOVED, FORMS };
enum { PIECES = 3000 };

struct form {
	struct weft_op op;
	unsigned char *mem;             /* the bytes in a row: what is sent, what was received */
	struct iovec iov[PIECES];
	struct column column;
};

static void form_make(struct form *f, int kind, size_t len, weft_id peer, uint64_t *seed)
{
	size_t at = 0;

	memset(f, 0, sizeof(*f));
	f->op = (struct weft_op){ .size = sizeof(f->op), .peer = peer, .tag = 1 };
	f->mem = memory(len + 1);
	if (kind == PLAIN) {
		f->op.data = f->mem;
		f->op.len = len;
	} else if (kind == LIST) {
		while (at < len && f->op.niov < PIECES - 1) {
			size_t n = test_random(seed) % (len / 50 + 2);

			n = n > len - at ? len - at : n;
			f->iov[f->op.niov++] = (struct iovec){ n ? f->mem + at : NULL, n };
			at += n;
		}
		f->iov[f->op.niov++] = (struct iovec){ f->mem + at, len - at };
		f->op.iov = f->iov;
	} else {
		f->column = column_new(len, 13, 29, kind == MOVED);
		f->op.layout = &f->column.layout;
	}
}

static void form_fill(struct form *f, size_t len, uint64_t seed)
{
	pattern_put(f->mem, len, seed);
	if (f->op.layout)
		column_move(&f->column.layout, 0, f->mem, len, 1);
}

static bool form_ok(struct form *f, size_t len, uint64_t seed)
{
	if (f->op.layout)
		column_move(&f->column.layout, 0, f->mem, len, 0);
	return pattern_ok(f->mem, len, seed);
}

static void form_free(struct form *f)
{
	free(f->mem);
	free(f->column.base);
}

FAR(lists_and_layouts_meet_each_other_on_both_sides_at_every_size, 2)
{
	static const size_t len[] = { 1, 90, 97, 5000, 8193, 16384, 70001, 700001 };
	static struct form f;
	uint64_t seed = 5 + far_rank;

	far_join(0);
	EACH_WAY(sends)
		for (int i = 0; i < 8; i++)
			for (int a = 0; a < FORMS; a++)
				for (int b = 0; b < FORMS; b++) {
					struct weft_req *req = NULL;
					struct weft_status st = { 0 };
					int r;

					form_make(&f, sends ? a : b, len[i], far_id(1 - far_rank), &seed);
					if (sends) {
						form_fill(&f, len[i], (uint64_t)(a * 8 + b));
						r = weft_send_post(NULL, &f.op, &req);
						CHECK(r == 0 || r == WEFT_DONE);
						CHECK_OK(weft_req_wait(&req, SOON, NULL));
					} else {
						CHECK_OK(recv_op(NULL, &f.op, &st));
						CHECK_EQ(st.len, len[i]);
						CHECK(form_ok(&f, len[i], (uint64_t)(a * 8 + b)));
					}
					form_free(&f);
				}
	far_leave();
}

FAR(members_of_the_world_and_of_opened_ports_are_addresses, 3)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *port = NULL;
	struct weft_status st;
	weft_id members[3];
	uint64_t v = far_rank;

	far_join(0);
	MUST_OK(weft_port_stat(weft_port_world(), &info));
	CHECK_EQ(info.count, 3);
	CHECK_EQ(info.index, far_rank);
	for (uint32_t i = 0; i < 3; i++) {
		members[i] = far_process(2 - i);
		CHECK(weft_port_member(weft_port_world(), i) == far_process(i));
		CHECK_EQ(weft_port_index(weft_port_world(), far_process(i)), i);
	}
	for (uint32_t i = 0; i < 3; i++)
		CHECK_OK(weft_send(weft_port_world(), weft_at(i), 1, &v, 8, SOON));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_OK(weft_recv(weft_port_world(), weft_at(i), 1, &v, 8, SOON, &st));
		CHECK_EQ(v, i);
		CHECK_EQ(st.index, i);
		CHECK(st.from == far_process(i));
	}
	MUST_OK(weft_port_open(WEFT(port_opts, .channel = "upside down", .members = members, .count = 3,
			.index = 2 - far_rank), &port));
	v = far_rank;
	for (uint32_t i = 0; i < 3; i++)
		CHECK_OK(weft_send(port, weft_at(i), 1, &v, 8, SOON));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_OK(weft_recv(port, weft_at(i), 1, &v, 8, SOON, &st));
		CHECK_EQ(v, 2 - i);
		CHECK_EQ(st.index, i);
	}
	far_meet();
	CHECK_OK(weft_port_close(port, SOON));
	far_leave();
}

FAR(an_answer_to_the_port_that_sent_gets_there, 2)
{
	struct weft_status st;
	uint64_t v = 3;

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends) {
			if (sends) {
				CHECK_OK(weft_send(p.port, p.peer, 1, &v, 8, SOON));
				CHECK_NEXT(p.port, p.peer, 2, 3);
			} else {
				CHECK_OK(weft_recv(p.port, WEFT_ANY, 1, &v, 8, SOON, &st));
				CHECK_OK(weft_send(p.port, st.from, 2, &v, 8, SOON));
			}
		}
		pair_close(&p);
	}
	far_leave();
}

FAR_MAIN
