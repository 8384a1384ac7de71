/* test_far_train.c - what goes by a pipe without a ticket (port/train.h): whole, in order, whoever stops or dies meanwhile.
 *
 * That nothing is announced is seen at the sender: no push is under way there, though nobody has received anything.
 */
#include "pair.h"

#include "port/deliver.h"
#include "port/inway.h"
#include "port/push.h"
#include "port/self.h"

enum { LEN = 64 << 10, MOST = 128 << 10, TRAINS = 2 };

/* The way is known, and the other has read from it. */
static void greet(void)
{
	uint64_t v = 5;

	if (far_rank == 1)
		CHECK_OK(weft_send(NULL, far_id(0), 9, &v, 8, SOON));
	else if (far_rank == 0)
		CHECK_NEXT(NULL, WEFT_ANY, 9, 5);
	far_meet();
}

static void send_one(uint64_t tag, size_t len)
{
	unsigned char *mem = memory(len);

	pattern_put(mem, len, tag);
	CHECK_OK(weft_send(NULL, far_id(0), tag, mem, len, SOON));
	memset(mem, 0, len);            /* it is ours again */
	free(mem);
}

static void expect(weft_id from, uint64_t tag, size_t len)
{
	unsigned char *mem = memory(len);
	struct weft_status st = { 0 };

	CHECK_OK(weft_recv(NULL, from, tag, mem, len, SOON, &st));
	CHECK_EQ(st.len, len);
	CHECK_EQ(st.tag, tag);
	CHECK(pattern_ok(mem, len, tag));
	free(mem);
}

FAR(it_is_done_before_anybody_wants_it_and_nothing_is_announced, 2)
{
	far_join(0);
	greet();
	if (far_rank == 1) {
		for (uint64_t i = 0; i < TRAINS; i++)
			send_one(10 + i, LEN);
		CHECK(!wf_pushes_active());
		send_one(20, LEN);              /* that one is */
		CHECK(wf_pushes_active());
	}
	far_meet();
	if (far_rank == 0) {
		expect(far_id(1), 20, LEN);     /* from the last to the first */
		expect(far_id(1), 11, LEN);
		expect(WEFT_ANY, 10, LEN);
	}
	far_meet();
	if (far_rank == 1) {                    /* and there is room again */
		EVENTUALLY(!wf_pushes_active());
		send_one(30, LEN);
		CHECK(!wf_pushes_active());
	} else {
		expect(far_id(1), 30, LEN);
	}
	far_leave();
}

FAR(every_length_arrives_whole_with_its_receiver_there_or_not, 2)
{
	static const size_t len[] = { 16385, 20000, 22527, 22528, 22529, 30720, 65535, 65536, 65537, 100000, 120832, 120833, MOST - 1, MOST, MOST + 1 };

	far_join(0);
	greet();
	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < sizeof(len) / sizeof(*len); i++) {
			if (far_rank == 1)
				send_one(i, len[i]);
			if (late)
				far_meet();
			if (far_rank == 0)
				expect(late ? WEFT_ANY : far_id(1), i, len[i]);
			far_meet();
		}
	far_leave();
}

/* [process 0] Receive @tag as @op says, posted before or behind its arrival; its end. */
static int receive_posted(const struct weft_op *op, struct weft_status *ret_st)
{
	struct weft_req *req = NULL;
	int r = weft_recv_post(NULL, op, &req, ret_st);

	return r == 0 ? weft_req_wait(&req, SOON, ret_st) : r == WEFT_DONE ? ret_st->err : r;
}

FAR(it_is_probed_cut_off_taken_as_a_buffer_and_in_pieces, 2)
{
	unsigned char *mem = memory(LEN), *half = memory(LEN / 2);
	struct iovec halves[2] = { { mem, LEN / 2 }, { half, LEN / 2 } };
	struct weft_status st = { 0 };
	struct weft_buf *buf = NULL;

	far_join(0);
	greet();
	for (int late = 0; late < 2; late++) {
		if (late && far_rank == 0)
			far_meet();
		for (uint64_t i = 0; i < 4; i++) {
			if (far_rank == 1) {
				send_one(i, LEN);
				if (late && i == 0)
					far_meet();
				far_meet();
				continue;
			}
			if (i == 0) {
				CHECK_OK(weft_probe(NULL, WEFT(op, .peer = far_id(1), .tag = 0), SOON, NULL, &st));
				CHECK_EQ(st.len, LEN);
				CHECK_EQ(weft_recv(NULL, far_id(1), 0, mem, 1000, SOON, &st), -EMSGSIZE);
				expect(far_id(1), 0, LEN);
			} else if (i == 1) {
				CHECK_OK(weft_buf_recv(NULL, far_id(1), 1, SOON, &buf, &st));
				MUST(buf);
				CHECK_EQ(buf->len, LEN);
				CHECK(pattern_ok(buf->data, LEN, 1));
				CHECK_OK(weft_buf_put(buf));
			} else if (i == 2) {
				memset(mem, 0xaa, LEN);
				CHECK_EQ(receive_posted(WEFT(op, .peer = far_id(1), .tag = 2, .data = mem, .len = 20000, .flags = WEFT_TRUNCATE), &st), -EMSGSIZE);
				CHECK_EQ(st.len, LEN);
				CHECK(pattern_ok(mem, 20000, 2));
				CHECK_EQ(mem[20000], 0xaa);
			} else {
				CHECK_OK(receive_posted(WEFT(op, .peer = far_id(1), .tag = 3, .iov = halves, .niov = 2), &st));
				memcpy(mem + LEN / 2, half, LEN / 2);
				CHECK(pattern_ok(mem, LEN, 3));
			}
			far_meet();
		}
	}
	free(half);
	free(mem);
	far_leave();
}

/* What has come by the ring of process 1 next, and was not read: where its pipe's head is. */
static struct wf_pipe_head *pipe_of_next(void)
{
	struct wf_reader *rd = atomic_load(&wf_self.port->ring.reader.next);
	struct wf_pipe_place at;
	struct wf_announcement a;
	struct wf_cell *c;

	MUST(rd);
	EVENTUALLY((c = wf_ring_next(rd)) != NULL);
	MUST_EQ(c->kind, WF_FAR);
	memcpy(&a, c->body, sizeof(a));
	MUST_EQ(a.waits, WF_A_WRITTEN);
	memcpy(&at, c->body + sizeof(a), sizeof(at));
	return wf_pipe_map(rd->process, &at.head);
}

FAR(pieces_that_a_stray_write_has_hidden_are_shown_again, 2)
{
	far_join(0);
	greet();
	if (far_rank == 1)
		send_one(1, LEN);
	far_meet();
	if (far_rank == 0) {
		struct wf_pipe_head *head = pipe_of_next();

		MUST(head);
		for (unsigned i = 0; i < WF_CHUNKS; i++)
			atomic_store(&head->chunk[i].seq, 12345u);
		expect(far_id(1), 1, LEN);
	}
	far_leave();
}

FAR(a_pipe_that_never_seems_empty_is_done_without, 2)
{
	far_join(0);
	greet();
	for (uint64_t i = 0; i < 6; i++) {
		if (far_rank == 1)
			send_one(i, LEN);
		else
			expect(far_id(1), i, LEN);
		far_meet();
		if (far_rank == 1 && i < TRAINS)        /* the next one begins with it */
			send_one(100 + i, LEN);
		far_meet();
		if (far_rank == 0 && i < TRAINS) {
			struct wf_pipe_head *head = pipe_of_next();

			expect(far_id(1), 100 + i, LEN);
			atomic_store(&head->read, 0x77777777u);
		}
		far_meet();
	}
	far_leave();
}

FAR(one_that_is_stopped_again_and_again_loses_nothing_and_holds_up_nobody_else, 3)
{
	uint64_t n = test_scaled(3000), v = 0;

	far_join(0);
	greet();
	if (far_rank == 1) {
		for (uint64_t i = 0; i < n; i++)
			send_one(i % 7, 20000 + i % 100000);
		far_step(1);
	} else if (far_rank == 0) {
		for (uint64_t i = 0; i < n; i++)
			expect(far_id(1), i % 7, 20000 + i % 100000);
		far_step(1);
	} else {
		while (atomic_load(&far->step[1]) < 1) {
			far_stop(1);
			for (int i = 0; i < 20; i++)            /* to one who waits for the other */
				CHECK_OK(weft_send(NULL, far_id(0), 50, &v, 8, SOON));
			far_go_on(1);
			for (uint64_t i = test_random(&test_seed) % 20; i > 0; i--)
				crew_nap();
		}
	}
	far_leave();
}

FAR(one_that_is_killed_leaves_whole_messages_or_none, 8)
{
	far_join(0);
	if (far_rank > 0) {
		far_may_die();
		for (uint64_t i = 0;; i++)
			send_one(i, LEN);
	}
	for (uint32_t k = 1; k < far_count; k++) {
		unsigned char *mem = memory(LEN);
		uint64_t got = 0, dies = 20 + test_random(&test_seed) % 200;
		int r;

		while ((r = weft_recv(NULL, far_id(k), got, mem, LEN, SOON, NULL)) == 0) {
			CHECK(pattern_ok(mem, LEN, got));
			if (++got == dies)
				MUST_OK(kill(far_pid(k), SIGKILL));
		}
		CHECK(r == -ECONNRESET || r == -ESRCH);
		CHECK(got >= dies);
		free(mem);
	}
	CHECK_OK(weft_fini(SOON));
}

FAR(what_one_that_is_killed_has_not_received_is_counted_as_lost, 2)
{
	enum { BEFORE = 14 };           /* with two others 16 are received: a reader then says how far it came */

	far_join(0);
	greet();
	if (far_rank == 0) {
		far_may_die();
		for (uint64_t i = 0; i < BEFORE; i++)
			CHECK_NEXT(NULL, far_id(1), 8, i);
		expect(far_id(1), 1, LEN);
		far_step(1);
		for (;;)
			pause();
	} else {
		unsigned char mem[8];
		int r;

		for (uint64_t i = 0; i < BEFORE; i++)
			CHECK_OK(weft_send(NULL, far_id(0), 8, &i, 8, SOON));
		send_one(1, LEN);
		far_await(0, 1);
		far_stop(0);
		for (uint64_t i = 0; i < TRAINS; i++)
			send_one(2, LEN);
		CHECK_EQ(stats_of(wf_self.port).lost, 0);
		MUST_OK(kill(far_pid(0), SIGKILL));
		r = weft_recv(NULL, far_id(0), 99, mem, 8, SOON, NULL);
		CHECK(r == -ECONNRESET || r == -ESRCH);
		EVENTUALLY(stats_of(wf_self.port).lost == TRAINS);
		CHECK_OK(weft_fini(SOON));
	}
}

static void *leaves(void *arg)
{
	(void)arg;
	far_tell(0, weft_self());
	far_await(1, 1);
	if (far_told(1))
		CHECK_NOTHING(NULL, WEFT_ANY, 77);      /* what is in its mailbox goes into its queue */
	return NULL;
}

/* A thread of process 0 ends, and has not received them. */
FAR(what_a_port_that_closes_has_not_received_is_counted_as_lost_and_sets_its_pipe_free, 2)
{
	far_join(0);
	greet();
	for (uint32_t queued = 0; queued < 2; queued++) {
		far_tell(0, 0);
		far_tell(1, queued);
		far_step(0);
		far_meet();
		if (far_rank == 0) {
			thread_join(thread_start(leaves, NULL));
		} else {
			uint64_t v = 1;
			weft_id to = far_hear(0);

			MUST_OK(weft_send(NULL, to, 9, &v, 8, SOON));
			for (uint64_t i = 0; i < TRAINS; i++) {
				unsigned char *mem = memory(LEN);

				CHECK_OK(weft_send(NULL, to, 2, mem, LEN, SOON));
				free(mem);
			}
			CHECK(!wf_pushes_active());
			far_step(1);
			EVENTUALLY(stats_of(wf_self.port).lost == (queued + 1) * (1 + TRAINS));
			for (uint64_t i = 0; i < TRAINS; i++)
				send_one(3 + i, LEN);
			CHECK(!wf_pushes_active());
		}
		far_meet();
		if (far_rank == 0)
			for (uint64_t i = 0; i < TRAINS; i++)
				expect(far_id(1), 3 + i, LEN);
		far_meet();
	}
	far_leave();
}

FAR_MAIN
