/* test_far_shared.c - plain memory that lies in a buffer: other processes can read it where it is, and copy it once.
 *
 * That nothing but the receiver's copy is made is seen from what happens without it: the message of a sender that stands still arrives whole,
 * though it is larger than any pipe; and what the sender writes after its call is what arrives, which it must not do and here does.
 */
#include "../integ/column.h"
#include "pair.h"

#include "mem/atlas.h"
#include "port/push.h"
#include "port/request.h"

enum { LARGE = 1 << 20, BIG = 40 << 20 /* beyond a chunk: a segment of its own */ };

static const size_t sizes[] = { 100, 8192, 8193, 16384, 65536, 100001, 262144, 262145, LARGE, 5 * LARGE + 3, BIG };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct weft_buf *buffer(size_t len)
{
	struct weft_buf *b = NULL;

	MUST_OK(weft_buf_get(len, 0, &b));
	return b;
}

/* [sender] The ticket of what was posted, once the other process is known. */
static struct wf_ticket *ticket_of(struct weft_req *req)
{
	for (;;) {
		struct wf_ticket *t;

		MUST(req && req->push);
		wf_lock(&wf_user_lock);
		t = req->push->ticket;
		CHECK(!req->push->pipe);
		wf_unlock(&wf_user_lock);
		if (t)
			return t;
		crew_nap();
	}
}

FAR(messages_out_of_a_buffer_arrive_whole_at_every_kind_of_port_in_both_directions, 2)
{
	struct weft_buf *b = NULL;
	unsigned char *got = memory(BIG);
	struct weft_status st;

	far_join(0);
	EACH_KIND(kind) {
		struct pair p = pair_open(kind);

		EACH_WAY(sends)
			for (unsigned i = 0; i < SIZES - (kind > 0); i++) {
				if (sends) {
					unsigned char *mem;

					b = buffer(sizes[i] + 13);
					mem = (unsigned char *)b->data + 13;
					pattern_put(mem, sizes[i], i);
					CHECK_OK(weft_send(p.port, p.peer, 100 + i, mem, sizes[i], SOON));
					memset(mem, 0xee, sizes[i]);
					CHECK_OK(weft_buf_put(b));
				} else {
					memset(got, 0xdd, sizes[i]);
					CHECK_OK(weft_recv(p.port, p.peer, WEFT_ANY_TAG, got, sizes[i], SOON, &st));
					CHECK_EQ(st.tag, 100 + i);
					CHECK_EQ(st.len, sizes[i]);
					CHECK(pattern_ok(got, sizes[i], i));
				}
			}
		pair_close(&p);
	}
	far_leave();
	free(got);
}

FAR(a_message_out_of_a_buffer_needs_no_help_of_its_sender, 2)
{
	far_join(0);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? BIG : LARGE;

		if (far_rank == 1) {
			struct weft_buf *b = buffer(len);
			struct weft_req *req = NULL;

			pattern_put(b->data, len, 3);
			MUST_OK(send_post(NULL, 0, far_id(0), 1, b->data, len, &req));
			ticket_of(req);
			far_step(1 + (uint32_t)i);
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
			CHECK_OK(weft_buf_put(b));
		} else {
			unsigned char *got = memory(len);

			far_await(1, 1 + (uint32_t)i);
			far_stop(1);
			CHECK_OK(weft_recv(NULL, far_id(1), 1, got, len, SOON, NULL));
			CHECK(pattern_ok(got, len, 3));
			far_go_on(1);
			free(got);
		}
		far_meet();
	}
	far_leave();
}

/* The other way is there beside it: what can be in a pipe already is not read again. */
FAR(memory_in_a_buffer_is_read_when_it_is_received_and_other_memory_when_it_is_sent, 2)
{
	enum { LEN = 100000 };

	far_join(0);
	for (int shared = 0; shared < 2; shared++) {
		if (far_rank == 1) {
			struct weft_buf *b = buffer(LEN);
			unsigned char *mem = shared ? b->data : memory(LEN);
			uint64_t hello = 0;
			struct weft_req *req = NULL;
			int r;

			CHECK_OK(weft_send(NULL, far_id(0), 9, &hello, 8, SOON));       /* from now on it is known that somebody reads */
			far_await(0, 1 + (uint32_t)shared * 2);
			pattern_put(mem, LEN, 1);
			r = send_post(NULL, 0, far_id(0), 1, mem, LEN, &req);
			CHECK(shared ? r == 0 && !wf_req_over(req) : r >= 0);
			pattern_put(mem, LEN, 2);
			far_step(1 + (uint32_t)shared);
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
			CHECK_OK(weft_buf_put(b));
			if (!shared)
				free(mem);
		} else {
			unsigned char *got = memory(LEN);
			uint64_t hello;

			CHECK_OK(weft_recv(NULL, far_id(1), 9, &hello, 8, SOON, NULL));
			far_step(1 + (uint32_t)shared * 2);
			far_await(1, 1 + (uint32_t)shared);
			CHECK_OK(weft_recv(NULL, far_id(1), 1, got, LEN, SOON, NULL));
			CHECK(pattern_ok(got, LEN, shared ? 2 : 1));
			free(got);
		}
		far_meet();
	}
	far_leave();
}

/* [receiver] One of @len bytes into pieces, into a buffer of its own, and into less room than it needs. */
static void receive_into(int form, size_t len)
{
	struct weft_status st = { 0 };
	weft_id from = far_id(1);
	unsigned char *got = memory(len);

	if (form < 2) {
		struct column c = column_new(len, 100, 300, form);

		CHECK_OK(recv_op(NULL, WEFT(op, .peer = from, .tag = 1, .layout = &c.layout), &st));
		for (size_t i = 0; i < len; i++)
			got[i] = c.base[i / 100 * 300 + i % 100];
		free(c.base);
	} else if (form == 2) {
		struct iovec v[3] = { { got, 7 }, { got + 7, 0 }, { got + 7, len - 7 } };

		CHECK_OK(recv_op(NULL, WEFT(op, .peer = from, .tag = 1, .iov = v, .niov = 3), &st));
	} else if (form == 3) {
		struct weft_buf *b = NULL;

		MUST_OK(weft_buf_recv(NULL, from, 1, SOON, &b, &st));
		CHECK_EQ(b->len, len);
		memcpy(got, b->data, len);
		CHECK_OK(weft_buf_put(b));
	} else {
		CHECK_EQ(recv_op(NULL, WEFT(op, .peer = from, .tag = 1, .data = got, .len = len / 2, .flags = WEFT_TRUNCATE), &st), -EMSGSIZE);
		CHECK(got[len / 2] == 0);
		len /= 2;
	}
	CHECK(pattern_ok(got, len, (uint64_t)form));
	free(got);
}

FAR(memory_in_a_buffer_goes_into_pieces_and_buffers_and_what_does_not_fit_is_cut_off, 2)
{
	far_join(0);
	for (int form = 0; form < 5; form++)
		for (unsigned i = 2; i < SIZES - 1; i++) {
			if (far_rank == 1) {
				struct weft_buf *b = buffer(sizes[i]);

				pattern_put(b->data, sizes[i], (uint64_t)form);
				CHECK_OK(weft_send(NULL, far_id(0), 1, b->data, sizes[i], SOON));
				CHECK_OK(weft_buf_put(b));
			} else {
				receive_into(form, sizes[i]);
			}
		}
	far_leave();
}

FAR(what_is_taken_back_is_not_read_and_its_memory_is_free, 2)
{
	far_join(0);
	if (far_rank == 1) {
		struct weft_buf *b = buffer(LARGE);
		struct weft_req *req = NULL;

		MUST_OK(send_post(NULL, 0, far_id(0), 1, b->data, LARGE, &req));
		ticket_of(req);
		CHECK_OK(weft_req_cancel(req));
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
		CHECK_EQ(weft_send(NULL, far_id(0), 1, b->data, LARGE, weft_in(10 * WEFT_MS)), -ETIMEDOUT);
		pattern_put(b->data, LARGE, 5);
		far_step(1);
		CHECK_OK(weft_send(NULL, far_id(0), 2, b->data, LARGE, SOON));
		CHECK_OK(weft_buf_put(b));
	} else {
		unsigned char *got = memory(LARGE);

		far_await(1, 1);
		CHECK_NOTHING(NULL, far_id(1), 1);
		CHECK_OK(weft_recv(NULL, far_id(1), WEFT_ANY_TAG, got, LARGE, SOON, NULL));
		CHECK(pattern_ok(got, LARGE, 5));
		free(got);
	}
	far_leave();
}

FAR(a_sender_that_dies_while_its_memory_is_read_has_sent_it_whole, 2)
{
	far_join(0);
	if (far_rank == 1) {
		struct weft_buf *b = buffer(BIG);
		struct weft_req *req = NULL;
		struct wf_ticket *t;

		far_may_die();
		pattern_put(b->data, BIG, 4);
		MUST_OK(send_post(NULL, 0, far_id(0), 1, b->data, BIG, &req));
		t = ticket_of(req);
		while ((atomic_load(&t->word) & 0xff) == WF_T_OPEN)
			;
		far_die();
	} else {
		unsigned char *got = memory(BIG);

		CHECK_OK(weft_recv(NULL, far_id(1), 1, got, BIG, SOON, NULL));
		CHECK(pattern_ok(got, BIG, 4));
		EVENTUALLY(weft_send(NULL, far_id(1), 1, got, 8, WEFT_NOW) == -ESRCH);
		free(got);
		CHECK_OK(weft_fini(SOON));
	}
}

FAR(a_message_in_the_memory_of_one_that_died_before_it_was_taken_is_gone_or_whole, 2)
{
	far_join(0);
	if (far_rank == 1) {
		struct weft_buf *b = buffer(LARGE);
		struct weft_req *req = NULL;

		pattern_put(b->data, LARGE, 9);
		MUST_OK(send_post(NULL, 0, far_id(0), 1, b->data, LARGE, &req));
		ticket_of(req);
		far_die();
	} else {
		unsigned char *got = memory(LARGE);
		int r;

		EVENTUALLY(weft_send(NULL, far_id(1), 1, got, 8, WEFT_NOW) == -ESRCH);
		r = weft_recv(NULL, far_id(1), 1, got, LARGE, SOON, NULL);
		/* That it is dead is seen a moment before what it had announced goes: who receives in between gets it. */
		CHECK(r == -ECONNRESET || r == -ESRCH || (r == 0 && pattern_ok(got, LARGE, 9)));
		free(got);
		CHECK_OK(weft_fini(SOON));
	}
}

static _Atomic int refused;

static int refuse(uint32_t process, uint32_t segment)
{
	(void)process;
	(void)segment;
	atomic_fetch_add(&refused, 1);
	return -EMFILE;
}

FAR(memory_that_the_receiver_cannot_map_comes_through_a_pipe, 2)
{
	far_join(0);
	for (int form = 1; form < 5; form++) {
		bool mapped = form == 4;        /* from then on it is */

		if (far_rank == 1) {
			struct weft_buf *b = buffer(BIG);
			unsigned char *mem = memory(LARGE);

			pattern_put(mem, LARGE, 2);
			CHECK_OK(weft_send(NULL, far_id(0), 1, mem, LARGE, SOON));      /* there is a pipe from now on, and it is mapped */
			pattern_put(b->data, BIG, (uint64_t)form);
			far_meet();
			CHECK_OK(weft_send(NULL, far_id(0), 1, b->data, BIG, SOON));
			CHECK_OK(weft_buf_put(b));
			free(mem);
		} else {
			int (*give)(uint32_t, uint32_t) = wf_segments.hooks.give;

			receive_into(2, LARGE);
			if (!mapped)
				wf_segments.hooks.give = refuse;
			far_meet();
			receive_into(form, BIG);
			wf_segments.hooks.give = give;
			CHECK_EQ(atomic_exchange(&refused, 0) > 0, !mapped);
		}
		far_meet();
	}
	far_leave();
}

FAR(mappings_of_big_buffers_that_were_read_do_not_pile_up, 2)
{
	enum { LEN = 20000, TIMES = 40 };

	far_join(0);
	if (far_rank == 1)
		for (int i = 0; i < TIMES; i++) {
			struct weft_buf *b = buffer(BIG);
			unsigned char *mem = (unsigned char *)b->data + BIG - LEN;

			pattern_put(mem, LEN, (uint64_t)i);
			CHECK_OK(weft_send(NULL, far_id(0), 1, mem, LEN, SOON));
			CHECK_OK(weft_buf_put(b));
		}
	else
		for (int i = 0; i < TIMES; i++) {
			unsigned char got[LEN] = { 0 };

			CHECK_OK(weft_recv(NULL, far_id(1), 1, got, LEN, SOON, NULL));
			CHECK(pattern_ok(got, LEN, (uint64_t)i));
			CHECK(atomic_load(&wf_atlas[2])->nbigs <= 16);
		}
	far_meet();             /* who is buried has none: that is not to be looked at meanwhile */
	far_leave();
}

/* More than the receiver takes in, and the last first: all but a few are asked for, and offered. */
FAR(memory_in_a_buffer_that_waits_with_its_sender_is_found_and_read_there, 2)
{
	enum { SENDS = 300, LEN = 10000 };
	struct weft_req *req[SENDS] = { NULL };

	far_join(65536);
	if (far_rank == 1) {
		struct weft_buf *b = buffer(SENDS * LEN);

		for (uint64_t i = 0; i < SENDS; i++) {
			pattern_put((char *)b->data + i * LEN, LEN, i);
			MUST_OK(send_post(NULL, 0, far_id(0), i, (char *)b->data + i * LEN, LEN, &req[i]));
		}
		far_meet();
		for (uint64_t i = 0; i < SENDS; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		CHECK_OK(weft_buf_put(b));
	} else {
		unsigned char got[LEN];

		far_meet();
		for (uint64_t i = SENDS; i-- > 0;) {
			CHECK_OK(weft_recv(NULL, far_id(1), i, got, LEN, SOON, NULL));
			CHECK(pattern_ok(got, LEN, i));
		}
	}
	far_leave();
}

/* [sender] Numbers that mean something, almost, or nothing at all. */
static struct wf_memory_place wild(struct wf_memory_place at, uint64_t *seed)
{
	uint64_t r = test_random(seed);

	switch (r % 4) {
	case 0:
		at.offset = test_random(seed) >> (r >> 8) % 64;
		break;
	case 1:
		at.offset = 0 - (uint64_t)(r >> 8) % 200000;
		break;
	case 2:
		at.segment = (uint32_t)test_random(seed) >> (r >> 8) % 32;
		break;
	default:
		at.offset = WF_CHUNK_BYTES - (r >> 8) % 200000;
	}
	return at;
}

FAR(a_place_that_is_none_breaks_nothing_and_both_ends_end, 2)
{
	enum { LEN = 100000 };
	uint64_t n = test_scaled(300), seed = test_seed;

	far_join(0);
	if (far_rank == 1) {
		struct weft_buf *b = buffer(LEN);

		for (uint64_t i = 0; i < n; i++) {
			struct weft_req *req = NULL;
			struct wf_ticket *t;
			int r;

			MUST_OK(send_post(NULL, 0, far_id(0), 1, b->data, LEN, &req));
			t = ticket_of(req);
			t->memory = wild(t->memory, &seed);
			far_meet();
			r = weft_req_wait(&req, SOON, NULL);
			CHECK(r == 0 || r == -ECONNRESET);
			far_tell(0, far_told(0) + (r < 0));
			far_meet();
		}
		CHECK(far_told(0) > n / 4);     /* who was refused knows it */
		CHECK_OK(weft_buf_put(b));
	} else {
		unsigned char *got = memory(LEN);

		for (uint64_t i = 0; i < n; i++) {
			int r;

			far_meet();
			r = weft_recv(NULL, far_id(1), 1, got, LEN, SOON, NULL);
			CHECK(r == 0 || r == -ECONNRESET);
			far_meet();
		}
		free(got);
	}
	far_leave();
}

struct talk {
	weft_id to;
	uint64_t n;
};

static void *talks(void *arg)
{
	struct talk *t = arg;
	struct weft_buf *out = buffer(LARGE), *in = buffer(LARGE);
	uint64_t seed = 11;

	for (uint64_t i = 0; i < t->n; i++) {
		size_t len = 8000 + test_random(&seed) % 100000;
		struct weft_req *req = NULL;

		pattern_put(out->data, len, i + far_rank);
		MUST(recv_post(weft_port_world(), 0, far_process(1 - far_rank), t->to, in->data, len, &req) >= 0);
		CHECK_OK(weft_send(weft_port_world(), far_process(1 - far_rank), t->to, out->data, len, SOON));
		memset(out->data, 0xee, len);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		MUST(pattern_ok(in->data, len, i + 1 - far_rank));
	}
	CHECK_OK(weft_buf_put(out));
	CHECK_OK(weft_buf_put(in));
	return NULL;
}

FAR(threads_of_two_processes_read_each_others_buffers_at_once, 2)
{
	enum { THREADS = 4 };
	struct talk t[THREADS];
	pthread_t id[THREADS];

	far_join(0);
	for (uint64_t i = 0; i < THREADS; i++) {
		t[i] = (struct talk){ .to = i + 1, .n = test_scaled(1000) };
		id[i] = thread_start(talks, &t[i]);
	}
	for (int i = 0; i < THREADS; i++)
		thread_join(id[i]);
	far_leave();
}

FAR_MAIN
