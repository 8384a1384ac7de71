/* test_far_crowd.c - many threads of several processes at once. */
#include "pair.h"

enum { PROCESSES = 3, THREADS = 4, ALL = PROCESSES * THREADS, LONG = 70000 };

/* A thread of the crowd: what every other one knows of it is its id, in the page. */
struct one {
	pthread_t thread;
	uint32_t number;                /* in the whole job */
	uint64_t rounds;
};

static weft_id id_of(uint32_t number)
{
	return far_hear((int)number);
}

static size_t len_of(uint64_t roll)
{
	return roll % 40 == 0 ? LONG : roll % 5 == 0 ? 2000 : roll % 2 ? 8 : 120;
}

static void *all_to_all(void *arg)
{
	struct one *me = arg;
	unsigned char *out = memory(LONG), *in = memory(LONG);
	uint64_t seed = me->number + 1;

	far_tell((int)me->number, weft_self());
	for (uint64_t i = 0; i < me->rounds; i++) {
		struct weft_req *req[ALL] = { NULL };
		size_t len = len_of(test_random(&seed));

		pattern_put(out, len, me->number * 1000 + i);
		for (uint32_t k = 0; k < ALL; k++)
			CHECK(send_post(NULL, i % 3 ? 0 : WEFT_SYNC, id_of(k), i, out, len, &req[k]) >= 0);
		for (uint32_t k = 0; k < ALL; k++) {
			struct weft_status st;

			MUST_OK(weft_recv(NULL, id_of(k), WEFT_ANY_TAG, in, LONG, SOON, &st));
			MUST_EQ(st.tag, i);
			CHECK(pattern_ok(in, st.len, k * 1000 + i));
		}
		for (uint32_t k = 0; k < ALL; k++)
			CHECK_OK(weft_req_wait(&req[k], SOON, NULL));
	}
	free(out);
	free(in);
	/* Its id lives until all are done: nobody's last answer is lost. */
	atomic_fetch_add(&far->word[FAR_WORDS - 4], 1);
	EVENTUALLY(far_told(FAR_WORDS - 4) == ALL);
	return NULL;
}

FAR(every_thread_of_every_process_sends_to_every_other_and_itself, PROCESSES)
{
	struct one one[THREADS];

	far_join(0);
	for (uint32_t i = 0; i < THREADS; i++) {
		one[i] = (struct one){ .number = far_rank * THREADS + i, .rounds = test_scaled(300) };
		one[i].thread = thread_start(all_to_all, &one[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		thread_join(one[i].thread);
	far_leave();
}

static _Atomic uint64_t taken, sum;
static _Atomic bool over;

static void *take_shared(void *arg)
{
	(void)arg;
	for (;;) {
		uint64_t v;
		int r = weft_recv(weft_port_world(), WEFT_ANY, 1, &v, 8, weft_in(20 * WEFT_MS), NULL);

		if (r == 0) {
			atomic_fetch_add(&sum, v);
			atomic_fetch_add(&taken, 1);
		} else {
			CHECK_EQ(r, -ETIMEDOUT);
			if (atomic_load(&over))
				return NULL;
		}
	}
}

FAR(of_several_threads_at_a_shared_port_each_message_of_another_process_wakes_one_who_gets_it, PROCESSES)
{
	uint64_t n = test_scaled(10000);

	far_join(0);
	if (far_rank == 0) {
		uint64_t want = (PROCESSES - 1) * n;
		pthread_t t[THREADS];

		for (int i = 0; i < THREADS; i++)
			t[i] = thread_start(take_shared, NULL);
		EVENTUALLY(atomic_load(&taken) == want);
		atomic_store(&over, true);
		for (int i = 0; i < THREADS; i++)
			thread_join(t[i]);
		CHECK_EQ(taken, want);
		CHECK_EQ(sum, (PROCESSES - 1) * (n * (n + 1) / 2));
	} else {
		for (uint64_t i = 1; i <= n; i++) {
			CHECK_OK(weft_send(NULL, far_process(0), 1, &i, 8, SOON));
			if (i % 64 == 0)
				crew_nap();
		}
	}
	far_leave();
}

struct visit {
	uint64_t number;
};

/* Lives for one exchange. */
static void *come_and_go(void *arg)
{
	struct visit *v = arg;
	uint64_t got = 0;
	weft_id me = weft_self(), peer = far_id(1 - far_rank);

	CHECK_OK(weft_send(NULL, peer, 1, &me, 8, SOON));
	CHECK_OK(weft_recv(NULL, peer, 2, &got, 8, SOON, NULL));
	CHECK(got == me);
	v->number++;
	return NULL;
}

FAR(threads_come_and_go_and_each_gets_its_answer_from_another_process, 2)
{
	uint64_t n = test_scaled(1000);

	far_join(0);
	EACH_WAY(comes) {
		for (uint64_t i = 0; i < n; i += 4) {
			if (comes) {
				struct visit v[4] = { { 0 } };
				pthread_t t[4];

				for (int k = 0; k < 4; k++)
					t[k] = thread_start(come_and_go, &v[k]);
				for (int k = 0; k < 4; k++)
					thread_join(t[k]);
			} else {
				for (int k = 0; k < 4; k++) {
					struct weft_status st;
					uint64_t id;

					MUST_OK(weft_recv(NULL, WEFT_ANY, 1, &id, 8, SOON, &st));
					CHECK(st.from == id);
					CHECK_OK(weft_send(NULL, id, 2, &id, 8, SOON));
				}
			}
		}
	}
	far_leave();
}

FAR(no_wake_up_is_lost_between_processes_that_both_sleep, 2)
{
	uint64_t n = test_scaled(5000), seed = 5 + far_rank;

	far_join(0);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v;

		if (far_rank == 0)
			MUST_OK(weft_send(NULL, far_id(1), 1, &i, 8, SOON));
		MUST_OK(weft_recv(NULL, far_id(1 - far_rank), 1, &v, 8, SOON, NULL));
		MUST_EQ(v, i);
		/* Sometimes long enough for the other to be asleep. */
		if (test_random(&seed) % 16 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = (long)(test_random(&seed) % 200000) }, NULL);
		if (far_rank == 1)
			MUST_OK(weft_send(NULL, far_id(0), 1, &i, 8, SOON));
	}
	far_leave();
}

FAR(jobs_of_one_process_and_of_many_join_and_leave, 8)
{
	uint64_t v;

	far_join(0);
	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank)
			CHECK_OK(weft_send(weft_port_world(), weft_at(i), 1, &(uint64_t){ far_rank }, 8, SOON));
	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank) {
			CHECK_OK(weft_recv(weft_port_world(), weft_at(i), 1, &v, 8, SOON, NULL));
			CHECK_EQ(v, i);
		}
	far_leave();
}

FAR_MAIN
