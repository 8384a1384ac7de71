/* test_far_stopped.c - a process that stands still while others have much to tell it: what they keep for it stays small, and when it
 * goes on it is told everything.
 *
 * Process 1 stands still; 0 stops it, says the same many times, counts what it keeps for it (an inner look), and lets it go on.
 */
#include "net/local/peer.h"
#include "pair.h"

enum { RING = 16 };                     /* frames that are written, not kept */

/* How many frames this process keeps for that of @rank. */
static uint64_t kept(uint32_t rank)
{
	struct wf_peer *p = wf_peer_at(rank + 1);
	uint64_t n = 0;

	MUST(p);
	wf_lock(&p->out_lock);
	for (const struct wf_kept_frame *f = wf_kept_first(p->kept); f; f = f->next)
		n++;
	wf_unlock(&p->out_lock);
	return n;
}

FAR(a_search_repeated_for_a_stopped_sender_is_kept_once_and_found_when_it_goes_on, 2)
{
	enum { SENDS = 300, WANTS = 200, ABSENT = 7 };
	uint64_t n = test_scaled(100000), v[SENDS];
	struct weft_req *req[SENDS] = { NULL }, *want[WANTS] = { NULL };

	far_join(65536);
	if (far_rank == 1) {            /* announces more than the other takes in */
		for (uint64_t i = 0; i < SENDS; i++) {
			v[i] = i;
			MUST_OK(send_post(NULL, WEFT_SYNC, far_id(0), 1000 + i, &v[i], 8, &req[i]));
		}
		far_step(1);
		for (uint64_t i = 0; i < SENDS; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
	} else {
		uint64_t most = 0;

		far_await(1, 1);
		for (int i = 0; i < 100; i++) {         /* what it takes in; from then on it has to ask */
			CHECK_NOTHING(NULL, far_id(1), ABSENT);
			crew_nap();
		}
		far_stop(1);
		for (uint64_t i = 0; i < WANTS; i++)    /* more than are asked for at a time, and none of them is there */
			MUST_OK(recv_post(NULL, 0, far_id(1), 100000 + i, &v[0], 8, &want[i]));
		for (uint64_t i = 0; i < n; i++) {
			struct weft_req *r = NULL;

			MUST_OK(recv_post(NULL, 0, far_id(1), 200000 + i, &v[0], 8, &r));
			CHECK_OK(weft_req_cancel(r));
			CHECK_EQ(weft_req_wait(&r, SOON, NULL), -ECANCELED);
			most = kept(1) > most ? kept(1) : most;
		}
		printf("# %llu searches: %llu frames kept\n", (unsigned long long)n, (unsigned long long)most);
		CHECK(most > 0 && most < 100);
		far_go_on(1);
		/* From the last to the first: each has to be asked for, behind receives for what never comes. */
		for (uint64_t i = SENDS; i-- > 0;) {
			struct weft_req *r = NULL;
			uint64_t got = ~UINT64_C(0);
			int done = recv_post(NULL, 0, far_id(1), 1000 + i, &got, 8, &r);

			MUST(done >= 0);
			CHECK_OK(done == WEFT_DONE ? 0 : weft_req_wait(&r, SOON, NULL));
			CHECK_EQ(got, i);
		}
		for (uint64_t i = 0; i < WANTS; i++) {
			CHECK_OK(weft_req_cancel(want[i]));
			CHECK_EQ(weft_req_wait(&want[i], SOON, NULL), -ECANCELED);
		}
	}
	far_leave();
}

static void *probe_main(void *arg)
{
	CHECK_EQ(weft_probe(NULL, WEFT(op, .peer = *(weft_id *)arg, .tag = 5), SOON, NULL, NULL), -ECONNRESET);
	return NULL;
}

FAR(a_stopped_process_learns_of_all_ids_that_ended_meanwhile, 2)
{
	uint64_t n = test_scaled(2000), got = 0;
	weft_id *id;

	n = n < 200 ? 200 : n;
	id = memory(n * sizeof(*id));
	far_join(0);
	if (far_rank == 0) {
		struct weft_port **port = memory(n * sizeof(*port)), *stays = port_new(0);

		for (uint64_t i = 0; i < n; i++) {
			port[i] = port_new(0);
			id[i] = port_id(port[i]);
		}
		far_tell(0, port_id(stays));
		CHECK_OK(weft_send(NULL, far_id(1), 1, id, n * sizeof(*id), SOON));
		far_await(1, 1);
		far_stop(1);
		for (uint64_t i = 0; i < n; i++)
			CHECK_OK(weft_port_close(port[i], SOON));
		printf("# %llu ids ended: %llu frames kept\n", (unsigned long long)n, (unsigned long long)kept(1));
		/* Beside them that each port's mailbox is closed: none was written to, so there is no more to say. */
		CHECK(kept(1) > 0 && kept(1) <= 64 + 1);
		far_go_on(1);
		far_await(1, 2);
		CHECK_OK(weft_send(stays, far_id(1), 3, &(uint64_t){ 1 }, 8, SOON));
		far_await(1, 3);
		CHECK_OK(weft_port_close(stays, SOON));
		free(port);
	} else {
		struct weft_req **req = memory(n * sizeof(*req)), *other = NULL;
		pthread_t probe;

		MUST_OK(weft_recv(NULL, far_id(0), 1, id, n * sizeof(*id), SOON, NULL));
		for (uint64_t i = 0; i < n; i++)
			MUST_OK(recv_post(NULL, 0, id[i], 1, &got, 8, &req[i]));
		MUST_OK(recv_post(NULL, 0, (weft_id)far_hear(0), 3, &got, 8, &other));
		probe = thread_start(probe_main, &id[n - 1]);
		for (int i = 0; i < 30; i++)
			crew_nap();
		far_step(1);
		for (uint64_t i = 0; i < n; i++)
			CHECK_EQ(weft_req_wait(&req[i], SOON, NULL), -ECONNRESET);
		thread_join(probe);
		CHECK_EQ(weft_req_peek(other, NULL), -EAGAIN);          /* that one lives */
		far_step(2);
		CHECK_OK(weft_req_wait(&other, SOON, NULL));
		CHECK_EQ(got, 1);
		far_step(3);
		free(req);
	}
	far_leave();
	free(id);
}

FAR(a_stopped_process_learns_of_every_message_of_its_that_was_lost, 2)
{
	enum { PORTS = 4 };
	uint64_t n = test_scaled(4000);
	struct tally tally = { 0 };

	n = n < 200 ? 200 : n;
	far_join(0);
	if (far_rank == 0) {
		struct weft_port *port[PORTS];

		for (int i = 0; i < PORTS; i++) {
			port[i] = port_new(0);
			far_tell(i, port_id(port[i]));
		}
		while (far->step[1] < 1) {                      /* takes in what has come */
			for (int i = 0; i < PORTS; i++)
				CHECK_NOTHING(port[i], WEFT_ANY, 9);
			crew_nap();
		}
		far_stop(1);
		for (int i = 0; i < PORTS; i++)
			CHECK_OK(weft_port_close(port[i], SOON));
		printf("# %llu messages lost: %llu frames kept\n", (unsigned long long)n, (unsigned long long)kept(1));
		CHECK(kept(1) <= 3 * PORTS);
		far_go_on(1);
	} else {
		struct weft_port *from = NULL;

		MUST_OK(weft_port_open(WEFT(port_opts, .event = tally_done, .user = &tally), &from));
		for (uint64_t i = 0; i < n; i++)
			MUST_OK(weft_send(from, (weft_id)far_hear((int)(i % PORTS)), 1, &i, 8, SOON));
		far_step(1);
		EVENTUALLY((uint64_t)tally.count >= n);
		for (int i = 0; i < 20; i++)
			crew_nap();
		CHECK_EQ(tally.count, n);
		CHECK_EQ(tally.last.tag, WEFT_LOST);
		CHECK_EQ(tally.last.len, 8);
		CHECK_OK(weft_port_close(from, SOON));
	}
	far_leave();
}

FAR(a_stopped_process_learns_how_many_of_its_promises_were_broken, 2)
{
	enum { SENDS = 200 };

	far_join(0);
	if (far_rank == 0) {
		far_await(1, 1);
		far_stop(1);
		CHECK_NOTHING(NULL, far_id(1), 9);
		printf("# %d promises broken: %llu frames kept\n", SENDS, (unsigned long long)kept(1));
		CHECK(kept(1) <= 2);
		far_go_on(1);
		for (uint64_t i = 0; i < SENDS; i++)
			CHECK_NEXT(NULL, far_id(1), 1, i);
	} else {
		for (uint64_t i = 0; i < SENDS; i++) {
			struct weft_req *req = NULL;
			int r = send_post(NULL, WEFT_READY, far_id(0), 1, &i, 8, &req);

			MUST(r >= 0);
			if (r != WEFT_DONE)
				CHECK_OK(weft_req_wait(&req, SOON, NULL));
		}
		far_step(1);
		EVENTUALLY(stats_of(NULL).ready_missed >= SENDS);
		CHECK_EQ(stats_of(NULL).ready_missed, SENDS);
	}
	far_leave();
}

FAR_MAIN
