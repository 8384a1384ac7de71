/* test_cancel.c - cancel marks; the outcome comes with the request's end. One test per line of
 * what can be under way. */
#include <sched.h>
#include "crew.h"

enum { LARGE = 1 << 20 };

/* Asked and granted. */
static void check_cancelled(struct weft_req **req)
{
	struct weft_status st = { .err = 0 };

	CHECK_OK(weft_req_cancel(*req));
	CHECK_EQ(weft_req_wait(req, SOON, &st), -ECANCELED);
	CHECK_EQ(st.err, -ECANCELED);
	CHECK(*req == NULL);
}

TEST(a_posted_unmatched_receive_is_cancelled_and_takes_no_message)
{
	uint64_t v = 1, dropped = 0, kept = 0;
	struct weft_req *req = NULL, *behind = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &dropped, 8, &req));
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &kept, 8, &behind));
	check_cancelled(&req);
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_OK(weft_req_wait(&behind, SOON, NULL));
	CHECK_EQ(kept, 1);
	CHECK_EQ(dropped, 0);
	ports_close(from, to);
	job_end();
}

TEST(a_matched_receive_is_too_late_to_cancel)
{
	uint64_t v = 1, got = 0;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &req));
	CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	/* peek makes progress: now it is matched. */
	EVENTUALLY(weft_req_peek(req, NULL) == WEFT_DONE);
	CHECK_EQ(weft_req_cancel(req), -EALREADY);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(got, 1);
	ports_close(from, to);
	job_end();
}

TEST(a_send_in_the_own_queue_is_cancelled_and_never_arrives)
{
	uint64_t first = 1000, dropped = 1001, last = 1002;
	struct weft_req *req[3] = { NULL };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	uint64_t n = mailbox_fill(from, port_id(to), 1);
	MUST_OK(send_post(from, 0, port_id(to), 1, &first, 8, &req[0]));
	MUST_OK(send_post(from, 0, port_id(to), 1, &dropped, 8, &req[1]));
	MUST_OK(send_post(from, 0, port_id(to), 1, &last, 8, &req[2]));
	check_cancelled(&req[1]);
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK_NEXT(to, WEFT_ANY, 1, first);
	CHECK_NEXT(to, WEFT_ANY, 1, last);
	CHECK_NOTHING(to, WEFT_ANY, 1);
	CHECK_OK(weft_req_wait(&req[0], SOON, NULL));
	CHECK_OK(weft_req_wait(&req[2], SOON, NULL));
	ports_close(from, to);
	job_end();
}

/* The three ways to be announced, cancelled while still in the ring or after the receiver has
 * taken the announcement into its queue. */
static void announced_cancel(bool taken)
{
	unsigned char *mem = memory(LARGE);
	uint64_t v = 5;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int kind = 0; kind < 3; kind++) {
		static const uint32_t flags[] = { 0, WEFT_SYNC, WEFT_RENDEZVOUS };
		struct weft_req *req = NULL;

		MUST_OK(send_post(from, flags[kind], port_id(to), 1, mem, kind ? 8 : LARGE, &req));
		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
		if (taken)
			CHECK_NOTHING(to, WEFT_ANY, 2);
		check_cancelled(&req);
		/* Nothing of it is left, and what came behind it is not harmed. */
		CHECK_NEXT(to, WEFT_ANY, 1, 5);
		CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	}
	ports_close(from, to);
	job_end();
	free(mem);
}

TEST(an_announced_send_in_a_ring_is_cancelled)
{
	announced_cancel(false);
}

TEST(an_announced_send_in_the_receivers_queue_is_cancelled)
{
	announced_cancel(true);
}

static void nothing(void *arg)
{
	(void)arg;
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
}

TEST(the_cancel_of_an_announced_send_is_answered_without_waiting_for_the_owner)
{
	uint64_t v = 1;
	struct weft_req *req = NULL;
	struct mate owner;

	job_begin(0);
	mate_start(&owner);
	/* The owner computes all the while. */
	MUST_OK(send_post(NULL, WEFT_SYNC, owner.id, 1, &v, 8, &req));
	check_cancelled(&req);
	mate_run(&owner, nothing, NULL);
	mate_stop(&owner);
	job_end();
}

TEST(what_a_matched_probe_has_taken_is_too_late_to_cancel)
{
	uint64_t v = 7, got = 0;
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 1, &v, 8, &req));
	MUST_OK(weft_probe(to, WEFT(op, .peer = WEFT_ANY, .tag = 1), SOON, &msg, NULL));
	int r = weft_req_cancel(req);
	CHECK(r == 0 || r == -EALREADY);
	CHECK_OK(recv_op(to, WEFT(op, .msg = msg, .data = &got, .len = 8), NULL));
	CHECK_EQ(got, 7);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	ports_close(from, to);
	job_end();
}

TEST(cancelling_a_send_to_a_dead_peer_gives_the_peers_error)
{
	uint64_t v = 7;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 1, &v, 8, &req));
	CHECK_OK(weft_port_close(to, SOON));
	CHECK_EQ(weft_req_cancel(req), -EALREADY);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

TEST(cancel_may_run_while_another_thread_waits_for_the_request)
{
	uint64_t v = 1, got = 0;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 2; i++) {
		struct waiter w = { NULL, 1 };

		if (i == 0)
			MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &w.req));
		else
			MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 2, &v, 8, &w.req));
		struct weft_req *req = w.req;
		uint32_t parked = stats_of(NULL).parked;
		mate_begin(&mate, waiter_wait, &w);
		EVENTUALLY(stats_of(NULL).parked > parked);
		CHECK_OK(weft_req_cancel(req));
		mate_wait(&mate);
		CHECK_EQ(w.result, -ECANCELED);
	}
	CHECK_NOTHING(to, WEFT_ANY, 2);
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
}

TEST(the_end_of_a_cancelled_operation_goes_to_its_callback_or_queue)
{
	struct tally tally = { 0 };
	struct weft_queue *queue = NULL;
	struct weft_req *req = NULL;
	struct weft_status st;
	uint64_t got = 0;
	int mark;

	job_begin(0);
	struct weft_port *to = port_new(0);
	MUST_OK(weft_queue_open(&queue));
	struct weft_op op = { .size = sizeof(op), .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8 };
	op.done = tally_done;
	op.user = &tally;
	MUST_OK(weft_recv_post(to, &op, &req, NULL));
	CHECK_OK(weft_req_cancel(req));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(tally.last.err, -ECANCELED);
	CHECK_OK(weft_req_free(req));
	op.done = NULL;
	op.queue = queue;
	op.user = &mark;
	req = NULL;
	MUST_OK(weft_recv_post(to, &op, &req, NULL));
	CHECK_OK(weft_req_cancel(req));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK_EQ(st.err, -ECANCELED);
	CHECK(st.user == &mark);
	CHECK_OK(weft_req_free(req));
	CHECK_OK(weft_queue_close(queue));
	CHECK_OK(weft_port_close(to, SOON));
	job_end();
	CHECK_EQ(tally.count, 1);
}

TEST(a_repeating_receive_stays_posted_until_cancelled)
{
	struct tally tally = { 0 };
	struct weft_req *req = NULL;
	uint64_t got = 0, late = 100;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(weft_recv_post(to, WEFT(op, .flags = WEFT_REPEAT, .peer = WEFT_ANY, .tag = 1, .data = &got,
					.len = 8, .done = tally_done, .user = &tally), &req, NULL));
	for (int i = 0; i < 100; i++) {
		uint64_t v = (uint64_t)i;

		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
		EVENTUALLY(atomic_load(&tally.count) == i + 1);
		CHECK_EQ(tally.last.err, 0);
		CHECK(tally.last.flags & WEFT_ST_MORE);
		CHECK_EQ(got, i);
	}
	CHECK_OK(weft_req_cancel(req));
	EVENTUALLY(atomic_load(&tally.count) == 101);
	CHECK_EQ(tally.last.err, -ECANCELED);
	CHECK(!(tally.last.flags & WEFT_ST_MORE));
	CHECK_OK(weft_req_free(req));
	CHECK_OK(weft_send(from, port_id(to), 1, &late, 8, SOON));
	CHECK_NEXT(to, WEFT_ANY, 1, 100);
	ports_close(from, to);
	job_end();
	CHECK_EQ(tally.count, 101);
	CHECK_EQ(got, 99);
}

struct race {
	struct weft_port *at;
	struct weft_req *req;
	_Atomic int ready, go;
	uint64_t got;
	int received;
};

static void *race_receive(void *arg)
{
	struct race *r = arg;

	MUST(weft_self() != 0);         /* joining takes longer than all the rest */
	atomic_store(&r->ready, 1);
	while (!atomic_load(&r->go))
		sched_yield();
	r->received = weft_recv(r->at, WEFT_ANY, 1, &r->got, 8, WEFT_NOW, NULL) == 0;
	return NULL;
}

TEST(a_cancelled_send_was_received_by_nobody_and_one_that_ended_well_by_somebody)
{
	int cancelled = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (uint64_t i = test_scaled(2000); i > 0; i--) {
		struct race race = { .at = to };
		uint64_t v = i;

		MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 1, &v, 8, &race.req));
		pthread_t t = thread_start(race_receive, &race);
		while (!atomic_load(&race.ready))
			sched_yield();
		atomic_store(&race.go, 1);
		for (unsigned k = (unsigned)(i % 64) * 128; k > 0; k--)
			atomic_load(&race.go);
		weft_req_cancel(race.req);
		int r = weft_req_wait(&race.req, SOON, NULL);
		thread_join(t);
		CHECK(r == 0 || r == -ECANCELED);
		CHECK_EQ(race.received, r == 0);
		if (r == 0)
			CHECK_EQ(race.got, i);
		cancelled += r != 0;
		CHECK_NOTHING(to, WEFT_ANY, 1);
	}
	printf("# %d cancelled\n", cancelled);
	ports_close(from, to);
	job_end();
}

struct sending {
	struct weft_port *from;
	weft_id to;
	uint64_t number;
};

static void sending_send(void *arg)
{
	struct sending *s = arg;

	CHECK_OK(weft_send(s->from, s->to, 1, &s->number, 8, SOON));
}

TEST(a_cancelled_receive_lost_no_message)
{
	int cancelled = 0;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (uint64_t i = test_scaled(3000); i > 0; i--) {
		struct sending s = { from, port_id(to), i };
		struct weft_req *req = NULL;
		uint64_t got = 0;

		MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &req));
		mate_begin(&mate, sending_send, &s);
		for (unsigned k = (unsigned)(i % 64) * 16; k > 0; k--)
			weft_req_peek(req, NULL);
		weft_req_cancel(req);
		int r = weft_req_wait(&req, SOON, NULL);
		mate_wait(&mate);
		CHECK(r == 0 || r == -ECANCELED);
		cancelled += r != 0;
		if (r == 0)
			CHECK_EQ(got, i);
		else
			CHECK_NEXT(to, WEFT_ANY, 1, i);
		CHECK_NOTHING(to, WEFT_ANY, 1);
	}
	printf("# %d cancelled\n", cancelled);
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
}

TEST_MAIN
