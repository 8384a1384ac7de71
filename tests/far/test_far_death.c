/* test_far_death.c - processes that die, stop, fork or become another program while others talk to them.
 *
 * Process 1 is the one that dies, unless a case says otherwise; 0 kills it and looks.
 */
#include "pair.h"
#include "witness.h"

#include <sys/resource.h>

enum { LARGE = 1 << 20 };

/* How long after the kill, in ms; a figure, and never a second (ten under a sanitizer). */
static void told_after(weft_time killed, const char *what)
{
	double ms = (double)(weft_now() - killed) / 1e6;

	printf("# figure death: %s after %.2f ms\n", what, ms);
	WITHIN(killed, WEFT_S * TEST_SLOW);
}

static weft_time kill_now(uint32_t rank)
{
	weft_time now;

	witness_call();
	now = weft_now();
	CHECK_OK(kill(far_pid(rank), SIGKILL));
	return now;
}

static void wait_to_die(void)
{
	far_may_die();
	far_step(100);
	for (;;)
		pause();
}

static void naps(int n)
{
	while (n-- > 0)
		crew_nap();
}

FAR(receives_and_probes_that_name_a_process_end_when_it_is_killed, 2)
{
	uint64_t got[8];
	weft_time at;

	far_join(0);
	if (far_rank == 1)
		wait_to_die();
	far_await(1, 100);
	struct weft_req *req[3] = { NULL }, *any = NULL;
	struct tally tally = { 0 };
	MUST_OK(recv_post(NULL, 0, far_id(1), 1, &got[0], 8, &req[0]));
	MUST_OK(recv_post(weft_port_world(), 0, far_process(1), 1, &got[1], 8, &req[1]));
	MUST_OK(recv_post(weft_port_world(), 0, weft_at(1), 1, &got[2], 8, &req[2]));
	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, &got[3], 8, &any));
	MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = far_id(1), .tag = 2, .data = &got[4], .len = 8, .done = tally_done,
			.user = &tally), NULL, NULL));
	at = kill_now(1);
	CHECK_EQ(weft_req_wait(&req[0], SOON, NULL), -ECONNRESET);
	told_after(at, "a posted receive ended");
	CHECK_EQ(weft_req_wait(&req[1], SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_req_wait(&req[2], SOON, NULL), -ECONNRESET);
	EVENTUALLY(tally.count);
	CHECK_EQ(tally.last.err, -ECONNRESET);
	CHECK_EQ(weft_recv(NULL, far_id(1), 1, &got[5], 8, SOON, NULL), -ESRCH);
	CHECK_EQ(weft_send(NULL, far_id(1), 1, &got[5], 8, SOON), -ESRCH);
	CHECK_EQ(weft_probe(NULL, WEFT(op, .peer = far_id(1), .tag = 1), SOON, NULL, NULL), -ESRCH);
	/* One from anyone goes on. */
	CHECK_EQ(weft_req_peek(any, NULL), -EAGAIN);
	CHECK_OK(weft_send(NULL, weft_self(), 1, &(uint64_t){ 4 }, 8, SOON));
	CHECK_OK(weft_req_wait(&any, SOON, NULL));
	CHECK_OK(weft_fini(SOON));
}

struct killer {
	uint32_t rank;
	bool sleeps;                    /* not before this process's first thread does */
	int naps;                       /* later than that */
	_Atomic int64_t at;
};

static void *killer_main(void *arg)
{
	struct killer *k = arg;

	if (k->sleeps)
		until_asleep();
	naps(k->naps);
	atomic_store(&k->at, kill_now(k->rank));
	return NULL;
}

FAR(a_call_that_waits_for_a_process_ends_when_it_is_killed, 6)
{
	unsigned char *mem = memory(LARGE);
	uint64_t got;

	far_join(0);
	if (far_rank > 0)
		wait_to_die();
	for (uint32_t i = 1; i < 6; i++) {
		struct killer k = { .rank = i, .sleeps = true };
		struct weft_buf *buf = NULL;
		struct weft_req *req = NULL;
		const char *what = "";
		pthread_t t;
		int r = 0;

		far_await(i, 100);
		t = thread_start(killer_main, &k);
		switch (i) {
		case 1:
			r = weft_recv(NULL, far_id(i), 1, &got, 8, SOON, NULL);
			what = "a receive";
			break;
		case 2:
			r = weft_probe(NULL, WEFT(op, .peer = far_id(i), .tag = 1), SOON, NULL, NULL);
			what = "a probe";
			break;
		case 3:
			r = weft_send(NULL, far_id(i), 1, mem, LARGE, SOON);
			what = "a large send";
			break;
		case 4:
			MUST_OK(send_post(NULL, WEFT_SYNC, far_id(i), 1, mem, 8, &req));
			r = weft_req_wait(&req, SOON, NULL);
			what = "a synchronous send";
			break;
		case 5:
			r = weft_buf_recv(weft_port_world(), weft_at(i), 1, SOON, &buf, NULL);
			what = "a receive of a buffer at the world's port";
			break;
		}
		thread_join(t);
		told_after(atomic_load(&k.at), what);
		CHECK_EQ(r, -ECONNRESET);
	}
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

FAR(pending_sends_of_every_kind_end_when_their_receiver_is_killed, 2)
{
	enum { SMALL = 1000, ALL = SMALL + 4 };
	static uint64_t v[SMALL];
	struct weft_req *req[ALL] = { NULL };
	struct weft_status st;
	struct weft_buf *buf = NULL;
	unsigned char *mem = memory(4 * LARGE);
	struct tally tally = { 0 };
	weft_time at;

	far_join(0);
	if (far_rank == 1)
		wait_to_die();
	far_await(1, 100);
	for (int i = 0; i < SMALL; i++)
		CHECK(send_post(NULL, 0, far_id(1), 1, &v[i], 8, &req[i]) >= 0);
	MUST_OK(send_post(NULL, 0, far_id(1), 1, mem, 4 * LARGE, &req[SMALL]));
	MUST_OK(send_post(NULL, WEFT_SYNC, far_id(1), 1, mem, 8, &req[SMALL + 1]));
	MUST_OK(send_post(weft_port_world(), WEFT_SYNC, far_process(1), 1, mem, 100000, &req[SMALL + 2]));
	MUST_OK(weft_buf_get(LARGE, 0, &buf));
	MUST_OK(weft_send_post(weft_port_world(), WEFT(op, .flags = WEFT_SYNC, .peer = far_process(1), .tag = 1, .buf = buf),
			&req[SMALL + 3]));
	MUST_OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = far_id(1), .tag = 1, .data = mem, .len = 8,
			.done = tally_done, .user = &tally), NULL));
	at = kill_now(1);
	for (int i = 0; i < ALL; i++) {
		bool was = req[i] != NULL;
		int r = weft_req_wait(&req[i], SOON, &st);

		CHECK(r == -ECONNRESET || (i < SMALL && r == 0) || !was);
	}
	told_after(at, "a thousand pending sends ended");
	CHECK(st.buf == buf);
	CHECK_OK(weft_buf_put(buf));
	EVENTUALLY(tally.count);
	CHECK_EQ(tally.last.err, -ECONNRESET);
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

FAR(what_a_process_published_before_it_was_killed_comes_first, 2)
{
	enum { N = 100 };
	unsigned char *mem = memory(LARGE);
	uint64_t got = 0;

	far_join(0);
	if (far_rank == 1) {
		for (uint64_t i = 0; i < N; i++) {
			struct weft_buf *buf = NULL;

			CHECK_OK(weft_send(NULL, far_id(0), 1, &i, 8, SOON));
			pattern_put(mem, 3000, i);
			CHECK_OK(weft_send(NULL, far_id(0), 2, mem, 1000, SOON));
			MUST_OK(weft_buf_get(20000, 0, &buf));
			pattern_put(buf->data, 20000, i);
			if (i % 10 == 0)
				CHECK_OK(weft_buf_send(NULL, far_id(0), 3, buf, SOON));
			else
				CHECK_OK(weft_buf_put(buf));
		}
		/* Large, and all of it in shared memory: done is done. */
		pattern_put(mem, 200000, 7);
		CHECK_OK(weft_send(NULL, far_id(0), 4, mem, 200000, SOON));
		far_may_die();
		far_step(1);
		far_die();
	}
	far_await(1, 1);
	EVENTUALLY(weft_send(NULL, far_id(1), 1, &got, 8, SOON) == -ESRCH);
	for (uint64_t i = 0; i < N; i++)
		CHECK_NEXT(NULL, far_id(1), 1, i);
	for (uint64_t i = 0; i < N; i++) {
		CHECK_OK(weft_recv(NULL, far_id(1), 2, mem, 1000, SOON, NULL));
		CHECK(pattern_ok(mem, 1000, i));
	}
	for (uint64_t i = 0; i < N; i += 10) {
		struct weft_buf *buf = NULL;

		MUST_OK(weft_buf_recv(NULL, far_id(1), 3, SOON, &buf, NULL));
		CHECK(pattern_ok(buf->data, 20000, i));
		CHECK_OK(weft_buf_put(buf));
	}
	CHECK_OK(weft_recv(NULL, far_id(1), 4, mem, 200000, SOON, NULL));
	CHECK(pattern_ok(mem, 200000, 7));
	CHECK_EQ(weft_recv(NULL, far_id(1), WEFT_ANY_TAG, &got, 8, SOON, NULL), -ESRCH);
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

FAR(a_large_message_whose_sender_or_receiver_is_killed_half_way_ends_with_an_error, 9)
{
	enum { MUCH = 64 << 20 };
	unsigned char *mem = memory(MUCH);

	far_join(0);
	if (far_rank > 0) {
		far_may_die();
		far_step(100);
		if (far_rank % 2)
			weft_send(NULL, far_id(0), 1, mem, MUCH, SOON);
		else
			weft_recv(NULL, far_id(0), 1, mem, MUCH, SOON, NULL);
		wait_to_die();
	}
	for (uint32_t i = 1; i < 9; i++) {
		struct killer k = { .rank = i, .naps = (int)i / 2 };
		pthread_t t;
		int r;

		far_await(i, 100);
		t = thread_start(killer_main, &k);
		r = i % 2 ? weft_recv(NULL, far_id(i), 1, mem, MUCH, SOON, NULL) : weft_send(NULL, far_id(i), 1, mem, MUCH, SOON);
		thread_join(t);
		CHECK(r == -ECONNRESET || r == -ESRCH || r == 0);
		told_after(atomic_load(&k.at), r == 0 ? "(all was there)" : i % 2 ? "a receive half way" : "a send half way");
	}
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

FAR(buffers_that_the_dead_held_come_home, 2)
{
	enum { N = 100 };
	struct weft_buf *buf[N];
	weft_time at;
	int have = 0;

	far_join_with(WEFT(init_opts, .knobs = "pool=33554432"));
	if (far_rank == 1) {
		struct weft_buf *got;

		far_may_die();
		for (int i = 0; i < N; i++) {
			if (i < N / 2)
				MUST_OK(weft_buf_recv(NULL, far_id(0), 1, SOON, &got, NULL));
			if (i % 4 == 3)
				weft_buf_put(got);      /* some are on their way */
		}
		wait_to_die();
	}
	/* Half of them are received there, the rest lies in the mailbox; one is lent. */
	for (int i = 0; i < N; i++) {
		MUST_OK(weft_buf_get(200000, 0, &buf[i]));
		CHECK_OK(weft_buf_send(NULL, far_id(1), 1, buf[i], SOON));
	}
	struct weft_buf *lent = NULL;
	struct weft_req *req = NULL;
	MUST_OK(weft_buf_get(1000, 0, &lent));
	CHECK(weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP, .peer = far_id(1), .tag = 1, .buf = lent), &req) >= 0);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	far_await(1, 100);
	at = kill_now(1);
	while (have < N)
		if (weft_buf_get(200000, 0, &buf[have]) == 0)
			have++;
		else
			crew_nap();
	told_after(at, "a hundred buffers were home");
	while (have > 0)
		CHECK_OK(weft_buf_put(buf[--have]));
	EVENTUALLY(weft_buf_state(lent) == WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(lent));
	CHECK_OK(weft_fini(SOON));
}

FAR(buffers_of_the_dead_stay_readable_until_they_are_put_and_may_be_sent_on, 3)
{
	struct weft_buf *buf[3] = { NULL };

	far_join(0);
	if (far_rank == 1) {
		for (int i = 0; i < 3; i++) {
			struct weft_req *req = NULL;

			MUST_OK(weft_buf_get(i ? 100000 : 4 * LARGE, 0, &buf[i]));
			pattern_put(buf[i]->data, buf[i]->len, (uint64_t)i);
			CHECK(weft_send_post(NULL, WEFT(op, .flags = i == 1 ? WEFT_KEEP : 0, .peer = far_id(0), .tag = 1,
					.buf = buf[i]), &req) >= 0);
			CHECK_OK(weft_req_wait(&req, SOON, NULL));
		}
		wait_to_die();
	}
	if (far_rank == 0) {
		for (int i = 0; i < 3; i++)
			MUST_OK(weft_buf_recv(NULL, far_id(1), 1, SOON, &buf[i], NULL));
		far_await(1, 100);
		kill_now(1);
		EVENTUALLY(weft_send(NULL, far_id(1), 1, &(uint64_t){ 0 }, 8, SOON) == -ESRCH);
		naps(100);
		for (int i = 0; i < 3; i++)
			CHECK(pattern_ok(buf[i]->data, i ? 100000 : 4 * LARGE, (uint64_t)i));
		CHECK_OK(weft_buf_put(buf[0]));
		CHECK_OK(weft_buf_put(buf[1]));
		/* It may be filled anew and go on; or it may not, and is still ours. */
		pattern_put(buf[2]->data, 100000, 9);
		int r = weft_buf_send(NULL, far_id(2), 2, buf[2], SOON);
		printf("# sending on a buffer of a dead process: %d\n", r);
		if (r < 0)
			CHECK_OK(weft_buf_put(buf[2]));
		CHECK_OK(weft_send(NULL, far_id(2), 3, &r, sizeof(r), SOON));
	} else {
		int r;

		CHECK_OK(weft_recv(NULL, far_id(0), 3, &r, sizeof(r), SOON, NULL));
		if (r == 0) {
			MUST_OK(weft_buf_recv(NULL, far_id(0), 2, SOON, &buf[0], NULL));
			CHECK(pattern_ok(buf[0]->data, 100000, 9));
			CHECK_OK(weft_buf_put(buf[0]));
		}
	}
	far_step(1);
	far_await(2 - far_rank, 1);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_death_breaks_a_fragile_port_of_the_living_and_is_an_event, 3)
{
	weft_id members[3];
	uint64_t got;

	far_join(0);
	if (far_rank == 1)
		wait_to_die();
	for (uint32_t i = 0; i < 3; i++)
		members[i] = far_process(i);
	struct weft_port *fragile = NULL, *tough = NULL;
	struct weft_req *req = NULL, *send = NULL;
	struct tally left = { 0 };
	weft_id peer = far_process(2 - far_rank);
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_FRAGILE, .channel = "fragile", .members = members,
			.count = 3, .index = far_rank), &fragile));
	MUST_OK(weft_port_open(WEFT(port_opts, .channel = "tough", .members = members, .count = 3, .index = far_rank,
			.event = tally_done, .user = &left), &tough));
	MUST_OK(recv_post(fragile, 0, WEFT_ANY, 1, &got, 8, &req));
	MUST_OK(send_post(fragile, WEFT_SYNC, peer, 7, members, 8, &send));
	far_step(1);
	far_await(2 - far_rank, 1);
	far_await(1, 100);
	weft_time at = weft_now();
	if (far_rank == 0)
		kill_now(1);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	told_after(at, "a fragile port broke");
	CHECK_EQ(weft_req_wait(&send, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_send(fragile, peer, 1, &got, 8, SOON), -ECONNRESET);
	EVENTUALLY(left.count);
	CHECK_EQ(left.last.tag, WEFT_LEFT);
	CHECK_EQ(left.last.index, 1);
	/* The other port goes on among the living. */
	CHECK_OK(weft_send(tough, peer, 2, &(uint64_t){ far_rank }, 8, SOON));
	CHECK_NEXT(tough, peer, 2, 2 - far_rank);
	far_step(2);
	far_await(2 - far_rank, 2);
	ports_close(fragile, tough);
	CHECK_OK(weft_fini(SOON));
}

FAR(the_others_go_on_while_processes_are_killed_one_after_another, 6)
{
	uint64_t n = test_scaled(20000), v;
	unsigned char *mem = memory(100000);

	far_join(0);
	if (far_rank >= 2) {            /* talk with 0 and 1 until death */
		far_may_die();
		for (uint64_t i = 0;; i++) {
			weft_send(NULL, far_id(i % 2), 2, mem, i % 5 ? 8 : 50000, weft_in(WEFT_MS));
			weft_recv(NULL, far_id(i % 2), 3, mem, 100000, WEFT_NOW, NULL);
		}
	}
	weft_id peer = far_id(1 - far_rank);
	for (uint64_t i = 0; i < n; i++) {
		if (far_rank == 0 && i % (n / 5) == n / 10 && i / (n / 5) < 4)
			kill_now(2 + (uint32_t)(i / (n / 5)));
		size_t len = i % 100 == 0 ? 60000 : 8;
		memcpy(mem, &i, 8);
		if (far_rank == 0)
			MUST_OK(weft_send(NULL, peer, 1, mem, len, SOON));
		MUST_OK(weft_recv(NULL, peer, 1, mem, len, SOON, NULL));
		memcpy(&v, mem, 8);
		MUST_EQ(v, i);
		if (far_rank == 1)
			MUST_OK(weft_send(NULL, peer, 1, mem, len, SOON));
		if (i % 10 == 0)                /* what the others sent, and something for them */
			while (weft_recv(NULL, WEFT_ANY, 2, mem, 100000, WEFT_NOW, NULL) == 0)
				continue;
		if (i % 10 == 5) {
			int r = weft_send(NULL, far_id(2 + i % 4), 3, mem, 8, WEFT_NOW);

			CHECK(r == 0 || r == -EAGAIN || r == -ESRCH || r == -ECONNRESET);
		}
	}
	far_step(1);
	far_await(1 - far_rank, 1);
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

static void stop_for(int ms)
{
	unsigned char *mem = memory(LARGE);
	uint64_t got, rounds = 0;

	far_join(0);
	if (far_rank == 1) {
		far_step(1);
		/* Computes, stopped or not; then everything is there. */
		far_await(0, 2);
		for (uint64_t i = 0; i < 1000; i++)
			CHECK_NEXT(NULL, far_id(0), 1, i);
		CHECK_OK(weft_recv(NULL, far_id(0), 2, mem, LARGE, SOON, NULL));
		CHECK(pattern_ok(mem, LARGE, 8));
		CHECK_NEXT(NULL, far_id(0), 3, 1);
	} else if (far_rank == 0) {
		static uint64_t v[1000];
		struct weft_req *req[1002] = { NULL }, *want = NULL;
		weft_time until;

		far_await(1, 1);
		CHECK_OK(kill(far_pid(1), SIGSTOP));
		until = weft_in(ms * WEFT_MS);
		for (uint64_t i = 0; i < 1000; i++) {
			v[i] = i;
			CHECK(send_post(NULL, 0, far_id(1), 1, &v[i], 8, &req[i]) >= 0);
		}
		pattern_put(mem, LARGE, 8);
		MUST_OK(send_post(NULL, 0, far_id(1), 2, mem, LARGE, &req[1000]));
		MUST_OK(send_post(NULL, WEFT_SYNC, far_id(1), 3, &v[1], 8, &req[1001]));
		MUST_OK(recv_post(NULL, 0, far_id(1), 9, &got, 8, &want));
		/* Meanwhile the two others talk. */
		while (weft_now() < until || rounds < 10) {
			MUST_OK(weft_send(NULL, far_id(2), 5, &rounds, 8, SOON));
			CHECK_NEXT(NULL, far_id(2), 5, rounds);
			rounds++;
		}
		printf("# %llu round trips of the others while one was stopped for %d ms\n", (unsigned long long)rounds, ms);
		CHECK_EQ(weft_req_peek(req[1001], NULL), -EAGAIN);
		CHECK_EQ(weft_req_peek(want, NULL), -EAGAIN);
		CHECK_OK(weft_send(NULL, far_id(2), 6, &rounds, 8, SOON));
		CHECK_OK(kill(far_pid(1), SIGCONT));
		far_step(2);
		for (int i = 0; i < 1002; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		CHECK_OK(weft_req_cancel(want));
		CHECK_EQ(weft_req_wait(&want, SOON, NULL), -ECANCELED);
	} else {
		struct weft_status st;

		do {
			MUST_OK(weft_recv(NULL, far_id(0), WEFT_ANY_TAG, &got, 8, SOON, &st));
			if (st.tag == 5)
				MUST_OK(weft_send(NULL, far_id(0), 5, &got, 8, SOON));
		} while (st.tag == 5);
	}
	far_leave();
	free(mem);
}

FAR(a_process_that_is_stopped_is_not_dead_and_nothing_is_lost, 3)
{
	stop_for(test_scale() < 1 ? 200 : 1000);
}

FAR(a_process_that_is_stopped_for_long_is_not_dead_either, 3)
{
	stop_for(test_scale() < 1 ? 1000 : 3000);
}

FAR(a_process_stopped_in_the_middle_of_a_large_transfer_goes_on_with_it, 2)
{
	enum { MUCH = 32 << 20 };
	unsigned char *mem = memory(MUCH);

	far_join(0);
	for (int k = 0; k < 6; k++) {
		if (far_rank == 1) {
			pattern_put(mem, MUCH, (uint64_t)k);
			CHECK_OK(weft_send(NULL, far_id(0), 1, mem, MUCH, SOON));
		} else {
			struct weft_req *req = NULL;

			MUST(recv_post(NULL, 0, far_id(1), 1, mem, MUCH, &req) >= 0);
			while (weft_req_wait(&req, weft_in((1 + k) * WEFT_MS), NULL) == -ETIMEDOUT) {
				CHECK_OK(kill(far_pid(1), SIGSTOP));
				naps(10);
				CHECK_OK(kill(far_pid(1), SIGCONT));
			}
			CHECK(pattern_ok(mem, MUCH, (uint64_t)k));
		}
		far_meet();
	}
	far_leave();
	free(mem);
}

FAR(a_forked_child_is_no_process_of_the_job_and_its_end_is_nobodys_death, 2)
{
	uint64_t n = 200;

	far_join(0);
	for (uint64_t i = 0; i < n; i++) {
		if (far_rank == 1) {
			CHECK_OK(weft_send(NULL, far_id(0), 1, &i, 8, SOON));
			if (i % 50 == 10) {
				int status;
				pid_t child = fork();

				MUST(child >= 0);
				if (child == 0) {
					int r = weft_send(NULL, far_id(0), 1, &i, 8, SOON);

					_exit(r == -ECHILD ? 0 : 3);
				}
				CHECK_EQ(waitpid(child, &status, 0), child);
				CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			}
			if (i % 50 == 20) {     /* one that exits by the usual way */
				int status;
				pid_t child = fork();

				MUST(child >= 0);
				if (child == 0)
					exit(0);
				CHECK_EQ(waitpid(child, &status, 0), child);
				CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			}
			CHECK_NEXT(NULL, far_id(0), 2, i);
		} else {
			CHECK_NEXT(NULL, far_id(1), 1, i);
			CHECK_OK(weft_send(NULL, far_id(1), 2, &i, 8, SOON));
		}
	}
	far_leave();
}

FAR(a_child_of_a_process_that_has_left_puts_what_that_has_of_others, 2)
{
	enum { N = 20 };
	struct weft_buf *buf[N] = { NULL };
	int status;
	pid_t child;

	far_join(0);
	for (int i = 0; i < N; i++)
		if (far_rank == 0) {
			MUST_OK(weft_buf_get(100, 0, &buf[i]));
			CHECK_OK(weft_buf_send(NULL, far_id(1), 1, buf[i], SOON));
		} else {
			MUST_OK(weft_buf_recv(NULL, far_id(0), 1, SOON, &buf[i], NULL));
		}
	far_leave();
	if (far_rank == 0)
		return;
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		for (int i = 0; i < N; i++)
			CHECK_OK(weft_buf_put(buf[i]));
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	for (int i = 0; i < N; i++)
		CHECK_OK(weft_buf_put(buf[i]));
}

FAR(a_process_whose_child_lives_on_is_dead_when_it_is_killed, 2)
{
	uint64_t got;

	far_join(0);
	if (far_rank == 1) {
		pid_t child = fork();

		MUST(child >= 0);
		if (child == 0) {
			nanosleep(&(struct timespec){ .tv_sec = 30 }, NULL);
			_exit(0);
		}
		far_tell(1, (uint64_t)child);
		wait_to_die();
	}
	far_await(1, 100);
	struct weft_req *req = NULL;
	MUST_OK(recv_post(NULL, 0, far_id(1), 1, &got, 8, &req));
	weft_time at = kill_now(1);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	told_after(at, "one with a child that lives on");
	kill((pid_t)far_hear(1), SIGKILL);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_process_that_becomes_another_program_has_left, 2)
{
	uint64_t got;

	far_join(0);
	if (far_rank == 1) {
		CHECK_OK(weft_send(NULL, far_id(0), 1, &(uint64_t){ 6 }, 8, SOON));
		far_may_die();
		far_await(0, 1);
		execl("/bin/sleep", "sleep", "1", (char *)NULL);
		_exit(9);
	}
	struct weft_req *req = NULL;
	MUST_OK(recv_post(NULL, 0, far_id(1), 2, &got, 8, &req));
	weft_time at = weft_now();
	far_step(1);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	told_after(at, "one that called exec");
	CHECK_NEXT(NULL, far_id(1), 1, 6);
	CHECK_EQ(weft_send(NULL, far_id(1), 1, &got, 8, SOON), -ESRCH);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_process_that_calls_underscore_exit_is_dead_and_what_it_published_comes_first, 2)
{
	uint64_t got;

	far_join(0);
	if (far_rank == 1) {
		CHECK_OK(weft_send(NULL, far_id(0), 1, &(uint64_t){ 6 }, 8, SOON));
		far_may_die();
		_exit(0);
	}
	CHECK_NEXT(NULL, far_id(1), 1, 6);
	int r = weft_recv(NULL, far_id(1), 2, &got, 8, SOON, NULL);
	CHECK(r == -ECONNRESET || r == -ESRCH);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_matched_message_of_the_dead_ends_its_receive_and_one_matched_by_the_dead_its_send, 3)
{
	unsigned char *mem = memory(4 * LARGE);

	far_join(0);
	if (far_rank == 1) {            /* has sent, and dies before it is fetched */
		CHECK(send_post(NULL, 0, far_id(0), 1, mem, 4 * LARGE, NULL) >= 0);
		wait_to_die();
	}
	if (far_rank == 2) {            /* has taken, and dies before it fetched */
		struct weft_msg *msg = NULL;

		MUST_OK(weft_probe(NULL, WEFT(op, .peer = far_id(0), .tag = 1), SOON, &msg, NULL));
		wait_to_die();
	}
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;
	int r;
	MUST_OK(send_post(NULL, WEFT_SYNC, far_id(2), 1, mem, 8, &req));
	MUST_OK(weft_probe(NULL, WEFT(op, .peer = far_id(1), .tag = 1), SOON, &msg, NULL));
	far_await(1, 100);
	far_await(2, 100);
	weft_time at = kill_now(2);
	kill_now(1);
	r = weft_req_wait(&req, SOON, NULL);
	told_after(at, "a send that the dead had matched");
	CHECK(r == -ECONNRESET || r == 0);
	r = recv_op(NULL, WEFT(op, .msg = msg, .data = mem, .len = 4 * LARGE), NULL);
	told_after(at, "a receive of what the dead had sent");
	CHECK_EQ(r, -ECONNRESET);
	CHECK_OK(weft_fini(SOON));
	free(mem);
}

/* A member's death breaks the port; the send cannot be taken back, and its receiver dies after. */
FAR(a_send_of_a_broken_port_that_its_receiver_has_matched_ends_when_that_dies_too, 3)
{
	weft_id members[3];
	struct weft_port *port = NULL;
	struct weft_req *req = NULL;
	uint64_t v = 1, got;

	far_join(0);
	for (uint32_t i = 0; i < 3; i++)
		members[i] = far_process(i);
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_FRAGILE, .channel = "fragile", .members = members, .count = 3, .index = far_rank), &port));
	far_meet();
	if (far_rank) {
		struct weft_msg *msg = NULL;

		if (far_rank == 1)
			MUST_OK(weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 7), SOON, &msg, NULL));
		wait_to_die();
	}
	MUST_OK(send_post(port, WEFT_SYNC, members[1], 7, &v, 8, &req));
	far_await(1, 100);
	far_await(2, 100);
	kill_now(2);
	CHECK_EQ(weft_recv(port, WEFT_ANY, 1, &got, 8, SOON, NULL), -ECONNRESET);       /* it is broken */
	CHECK_EQ(weft_req_wait(&req, weft_in(100 * WEFT_MS), NULL), -ETIMEDOUT);
	kill_now(1);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	MUST(!req);
	CHECK_OK(weft_port_close(port, SOON));
	CHECK_OK(weft_fini(SOON));
}

FAR_MAIN
