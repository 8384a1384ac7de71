/* test_far_order.c - the order of messages between processes: of threads that share a port, of priorities, of full mailboxes,
 * and of several senders.
 */
#include "../integ/turns.h"
#include "pair.h"

FAR(two_threads_taking_turns_through_one_source_port_keep_one_order, 2)
{
	uint64_t n = test_scaled(50000);

	far_join(0);
	EACH_WAY(sends)
		if (sends) {
			struct turns t = { .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER,
					   .from = port_new(0), .to = far_id(1 - far_rank), .end = n };

			turns_run(&t);
			far_meet();
			CHECK_OK(weft_port_close(t.from, SOON));
		} else {
			for (uint64_t i = 0; i < n; i++)
				CHECK_NEXT(NULL, WEFT_ANY, 1, i);
			far_meet();
		}
	far_leave();
}

FAR(two_threads_taking_turns_keep_one_order_also_with_a_full_mailbox, 2)
{
	enum { ROUND = 2000 };
	uint64_t rounds = test_scaled(20);

	far_join(0);
	EACH_WAY(sends) {
		struct turns t = { .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER,
				   .to = far_id(1 - far_rank), .numbers = memory(rounds * ROUND * sizeof(uint64_t)) };

		for (uint64_t i = 0; i < rounds * ROUND; i++)
			t.numbers[i] = i;
		t.from = port_new(0);
		for (uint64_t k = 0; k < rounds; k++) {
			/* Nobody receives while they send: most of it waits at the source. */
			if (sends) {
				t.end = (k + 1) * ROUND;
				turns_run(&t);
			}
			far_meet();
			for (uint64_t i = k * ROUND; i < (k + 1) * ROUND && !sends; i++)
				CHECK_NEXT(NULL, WEFT_ANY, 1, i);
			far_meet();
		}
		CHECK_OK(weft_port_close(t.from, SOON));
		free(t.numbers);
	}
	far_leave();
}

FAR(a_full_mailbox_delays_only_what_goes_there, 2)
{
	far_join(0);
	EACH_WAY(sends) {
		struct weft_port *full = port_new(0), *other = port_new(0), *from = port_new(0);
		struct weft_req *req = NULL;

		if (!sends) {
			far_tell(1, port_id(full));
			far_tell(2, port_id(other));
		}
		far_meet();
		if (sends) {
			uint64_t waits = 100000, passes = 5, n;

			/* "No room now" is an answer, also while the two have just met. */
			CHECK_OK(weft_send(from, far_told(1), 2, &passes, 8, SOON));
			n = mailbox_fill(from, far_told(1), 1);
			CHECK_EQ(send_post(from, 0, far_told(1), 1, &waits, 8, &req), 0);
			far_tell(3, n);
			CHECK_OK(weft_send(from, far_told(2), 1, &passes, 8, SOON));
			far_meet();             /* it was received there */
			CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
			far_meet();
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
		} else {
			CHECK_NEXT(other, WEFT_ANY, 1, 5);
			far_meet();
			far_meet();
			CHECK_NEXT(full, WEFT_ANY, 2, 5);
			for (uint64_t i = 0; i < far_told(3); i++)
				CHECK_NEXT(full, WEFT_ANY, 1, i);
			CHECK_NEXT(full, WEFT_ANY, 1, 100000);
		}
		far_meet();
		ports_close(full, other);
		CHECK_OK(weft_port_close(from, SOON));
	}
	far_leave();
}

static void prio_post(weft_id to, int8_t prio, uint64_t *number)
{
	int r = weft_send_post(NULL, WEFT(op, .peer = to, .tag = 1, .prio = prio, .data = number, .len = 8), NULL);

	CHECK(r == 0 || r == WEFT_DONE);
}

FAR(priority_never_orders_what_is_in_the_mailbox_and_never_matching, 2)
{
	static const int8_t prio[] = { -4, 3, 0, -1, 2 };
	static uint64_t number[] = { 0, 1, 2, 3, 4 };
	enum { N = sizeof(prio) };

	far_join(0);
	for (int posted = 0; posted < 2; posted++)
		EACH_WAY(sends) {
			weft_id peer = far_id(1 - far_rank);
			struct weft_req *req[N] = { NULL };
			uint64_t got[N], v = 9;

			for (int i = 0; i < N && posted && !sends; i++)
				MUST_OK(recv_post(NULL, 0, peer, 1, &got[i], 8, &req[i]));
			if (sends)              /* the way is there: what follows enters the mailbox at once */
				CHECK_OK(weft_send(NULL, peer, 2, &v, 8, SOON));
			else
				CHECK_NEXT(NULL, peer, 2, 9);
			far_meet();
			for (int i = 0; i < N && sends; i++)
				prio_post(peer, prio[i], &number[i]);
			far_meet();
			for (uint64_t i = 0; i < N && !sends; i++)
				if (posted) {
					CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
					CHECK_EQ(got[i], i);
				} else {
					CHECK_NEXT(NULL, peer, WEFT_ANY_TAG, i);
				}
			far_meet();
		}
	far_leave();
}

/* Process 1 sends without end; 2 sends one now and then. Of what was sent behind that one a turn of 64 of the ring that is
 * read may come before it; what was there already may lie before it in the receiver's queue. */
FAR(one_who_sends_without_end_does_not_hide_what_another_process_sends, 3)
{
	enum { FLOOD = 1, RARE = 2, MOST = 80 };
	enum { OVER, RARE_SENT, RARE_GOT, FLOOD_SENT, FLOOD_BEFORE };
	uint64_t n = test_scaled(300);

	far_join(0);
	if (far_rank == 1) {
		for (uint64_t i = 1; !far_told(OVER); i++) {
			CHECK_OK(weft_send(NULL, far_id(0), FLOOD, &i, 8, SOON));
			far_tell(FLOOD_SENT, i);
		}
		CHECK_OK(weft_send(NULL, far_id(0), RARE, &n, 8, SOON));
	} else if (far_rank == 2) {
		for (uint64_t i = 0; i < n; i++) {
			CHECK_OK(weft_send(NULL, far_id(0), RARE, &i, 8, SOON));
			far_tell(FLOOD_BEFORE, far_told(FLOOD_SENT));
			far_tell(RARE_SENT, i + 1);
			EVENTUALLY(far_told(RARE_GOT) == i + 1);
		}
	} else {
		uint64_t rare = 0, between = 0, most = 0, v;
		struct weft_status st;

		while (rare < n) {
			MUST_OK(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, &v, 8, SOON, &st));
			if (st.tag == FLOOD) {
				between += far_told(RARE_SENT) == rare + 1 && v > far_told(FLOOD_BEFORE);
				continue;
			}
			CHECK_EQ(v, rare);
			most = between > most ? between : most;
			between = 0;
			far_tell(RARE_GOT, ++rare);
		}
		printf("# at most %llu that were sent later came first\n", (unsigned long long)most);
		CHECK(most < MOST);
		far_tell(OVER, 1);
		do
			MUST_OK(weft_recv(NULL, far_id(1), WEFT_ANY_TAG, &v, 8, SOON, &st));
		while (st.tag != RARE);
	}
	far_leave();
}

FAR_MAIN
