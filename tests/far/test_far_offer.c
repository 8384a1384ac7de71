/* test_far_offer.c - what a sender keeps because its receiver has had enough: a receive asks for it, is offered it, and is gone or not the one when
 * the offer comes. Order holds all the same.
 *
 * Process 1 announces more than 0 takes in, and behind that some messages more: from then on 0 has to ask for those. 1 stands still while 0 asks, so
 * that everything is asked before anything is answered.
 */
#include "pair.h"

enum { CROWD = 300, CROWDED = 1000 };

struct kept {
	struct weft_port *port;         /* from which the messages go that are asked for */
	uint64_t v[CROWD];
	struct weft_req *req[CROWD];
};

/* [process 1] More than 0 takes in; what is sent after that is kept here. */
static void crowd(struct kept *k)
{
	k->port = port_new(0);
	far_tell(0, port_id(k->port));
	for (uint64_t i = 0; i < CROWD; i++) {
		k->v[i] = i;
		MUST_OK(send_post(NULL, WEFT_SYNC, far_id(0), CROWDED + i, &k->v[i], 8, &k->req[i]));
	}
}

static void crowd_end(struct kept *k)
{
	for (int i = 0; i < CROWD; i++)
		CHECK_OK(weft_req_wait(&k->req[i], SOON, NULL));
	CHECK_OK(weft_port_close(k->port, SOON));
}

/* [process 0] Takes in what it can of what 1 has announced. What 1 sends from the port it answers with is not among that. */
static weft_id take_in(void)
{
	weft_id from = (weft_id)far_hear(0);

	far_await(1, 1);
	for (int i = 0; i < 100; i++) {
		CHECK_NOTHING(NULL, far_id(1), CROWDED - 1);
		crew_nap();
	}
	CHECK_NOTHING(NULL, from, WEFT_ANY_TAG);
	return from;
}

static void take_crowd(void)
{
	for (uint64_t i = 0; i < CROWD; i++)
		CHECK_NEXT(NULL, far_id(1), CROWDED + i, i);
}

static void taken_back(struct weft_req *r)
{
	CHECK_OK(weft_req_cancel(r));
	CHECK_EQ(weft_req_wait(&r, SOON, NULL), -ECANCELED);
}

/* Process 1 sends @n messages of tags 1 to n and @len bytes, each with its tag in front, when the other has had enough. */
static void keep(int n, const size_t *len)
{
	unsigned char *mem[4] = { NULL };
	struct weft_req *req[4] = { NULL };
	struct kept k;

	crowd(&k);
	for (int i = 0; i < n; i++) {
		uint64_t tag = (uint64_t)i + 1;

		mem[i] = memory(len[i]);
		memcpy(mem[i], &tag, sizeof(tag));
		MUST_OK(send_post(k.port, WEFT_SYNC, far_id(0), tag, mem[i], len[i], &req[i]));
	}
	far_step(1);
	for (int i = 0; i < n; i++) {
		CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(mem[i]);
	}
	crowd_end(&k);
}

FAR(what_was_offered_to_a_receive_that_is_gone_does_not_overtake_for_another, 2)
{
	uint64_t rounds = test_scaled(20);

	far_join(65536);
	for (uint64_t k = 0; k < (rounds ? rounds : 1); k++) {
		if (far_rank == 1) {
			keep(3, (const size_t[]){ 8, 8, 8 });
			far_tell(0, 0);
			far_step(0);
		} else {
			weft_id from = take_in();
			struct weft_req *last = NULL, *any[3] = { NULL };
			uint64_t got[3] = { 0 }, none = 0;

			far_stop(1);
			MUST_OK(recv_post(NULL, 0, from, 3, &none, 8, &last));
			for (int i = 0; i < 3; i++)
				MUST_OK(recv_post(NULL, 0, from, WEFT_ANY_TAG, &got[i], 8, &any[i]));
			taken_back(last);
			far_go_on(1);
			for (uint64_t i = 0; i < 3; i++) {
				CHECK_OK(weft_req_wait(&any[i], SOON, NULL));
				CHECK_EQ(got[i], i + 1);
			}
			CHECK_EQ(none, 0);
			take_crowd();
		}
		far_meet();
	}
	far_leave();
}

FAR(what_was_offered_to_a_receive_that_is_gone_does_not_end_one_that_is_too_short_for_it, 2)
{
	far_join(65536);
	if (far_rank == 1) {
		keep(2, (const size_t[]){ 8, 20000 });
	} else {
		weft_id from = take_in();
		struct weft_req *longer = NULL, *first = NULL;
		unsigned char *mem = memory(20000);
		uint64_t got = 0;

		far_stop(1);
		MUST_OK(recv_post(NULL, 0, from, 2, mem, 20000, &longer));
		MUST_OK(recv_post(NULL, 0, from, WEFT_ANY_TAG, &got, 8, &first));
		taken_back(longer);
		far_go_on(1);
		CHECK_OK(weft_req_wait(&first, SOON, NULL));
		CHECK_EQ(got, 1);
		/* This one is too short for what it wants, and told so; the message is still there. */
		MUST_OK(recv_post(NULL, 0, from, 2, &got, 8, &first));
		CHECK_EQ(weft_req_wait(&first, SOON, NULL), -EMSGSIZE);
		CHECK_OK(weft_recv(NULL, from, 2, mem, 20000, SOON, NULL));
		memcpy(&got, mem, sizeof(got));
		CHECK_EQ(got, 2);
		free(mem);
		take_crowd();
	}
	far_leave();
}

FAR(a_receive_that_was_satisfied_by_another_process_leaves_the_offer_to_the_next_that_wants_it, 3)
{
	uint64_t v = 99;

	far_join(65536);
	if (far_rank == 1) {
		keep(2, (const size_t[]){ 8, 8 });
	} else if (far_rank == 2) {
		far_await(0, 1);
		CHECK_OK(weft_send(NULL, far_id(0), 2, &v, 8, SOON));
	} else {
		weft_id from = take_in();
		struct weft_req *tagged = NULL, *any[2] = { NULL };
		uint64_t got[3] = { 0 };

		far_stop(1);
		MUST_OK(recv_post(NULL, 0, WEFT_ANY, 2, &got[0], 8, &tagged));
		for (int i = 0; i < 2; i++)
			MUST_OK(recv_post(NULL, 0, from, WEFT_ANY_TAG, &got[1 + i], 8, &any[i]));
		far_step(1);
		CHECK_OK(weft_req_wait(&tagged, SOON, NULL));
		CHECK_EQ(got[0], 99);
		far_go_on(1);
		for (uint64_t i = 0; i < 2; i++) {
			CHECK_OK(weft_req_wait(&any[i], SOON, NULL));
			CHECK_EQ(got[1 + i], i + 1);
		}
		take_crowd();
	}
	far_leave();
}

/* Each receive is taken back before it can be answered, and the like of it is posted again. */
FAR(a_receive_that_is_taken_back_and_posted_again_is_answered, 2)
{
	far_join(65536);
	if (far_rank == 1) {
		keep(2, (const size_t[]){ 8, 20000 });
	} else {
		weft_id from = take_in();
		unsigned char *mem = memory(20000);
		uint64_t got = 0;

		for (int i = 0; i < 100; i++) {
			struct weft_req *r = NULL;

			MUST_OK(recv_post(NULL, 0, from, 2, mem, 20000, &r));
			if (i % 10 == 0)
				crew_nap();
			if (weft_req_cancel(r) == 0) {
				CHECK_EQ(weft_req_wait(&r, SOON, NULL), -ECANCELED);
			} else {
				CHECK_OK(weft_req_wait(&r, SOON, NULL));
				memcpy(&got, mem, sizeof(got));
				break;
			}
		}
		if (!got) {
			CHECK_OK(weft_recv(NULL, from, 2, mem, 20000, SOON, NULL));
			memcpy(&got, mem, sizeof(got));
		}
		CHECK_EQ(got, 2);
		CHECK_NEXT(NULL, from, WEFT_ANY_TAG, 1);
		free(mem);
		take_crowd();
	}
	far_leave();
}

/* A receive asks for it and goes: when it is to be taken back, or expires, it is on offer, or on its way back. Nobody asks again. */
FAR(a_send_that_is_taken_back_while_it_is_on_offer_ends, 2)
{
	uint64_t rounds = test_scaled(1000);

	far_join(65536);
	if (far_rank == 1) {
		struct kept k;

		crowd(&k);
		far_step(1);
		for (uint64_t i = 1; i <= rounds; i++) {
			struct weft_op op = { .size = sizeof(op), .flags = WEFT_SYNC, .peer = far_id(0), .tag = 1, .data = &i, .len = 8 };
			int64_t later = (int64_t)(i * 7919 % 100) * 1000;
			struct weft_req *req = NULL;
			int r, over = i % 3 ? -ECANCELED : -ETIMEDOUT;

			op.expires = i % 3 ? 0 : weft_in(later);
			MUST_OK(weft_send_post(k.port, &op, &req));
			far_tell(2, i);
			while (far_told(3) != i)
				continue;
			if (i % 3) {
				for (weft_time then = weft_in(later); weft_now() < then; )
					continue;
				weft_req_cancel(req);   /* taken back, or taken: either way it ends now */
			}
			r = weft_req_wait(&req, SOON, NULL);
			MUST(!req);
			CHECK(r == 0 || r == over);
			far_tell(4, i);
		}
		crowd_end(&k);
	} else {
		weft_id from = take_in();

		for (uint64_t i = 1; i <= rounds; i++) {
			struct weft_req *r = NULL;
			uint64_t got;

			while (far_told(2) != i)
				continue;
			MUST_OK(recv_post(NULL, 0, from, 1, &got, 8, &r));
			if (weft_req_cancel(r) == 0)
				CHECK_EQ(weft_req_wait(&r, SOON, NULL), -ECANCELED);
			else
				CHECK_OK(weft_req_wait(&r, SOON, NULL));
			far_tell(3, i);
			while (far_told(4) != i)
				CHECK_NOTHING(NULL, far_id(1), CROWDED - 1);
		}
		take_crowd();
	}
	far_leave();
}

FAR_MAIN
