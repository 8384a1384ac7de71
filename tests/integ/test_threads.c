/* test_threads.c - a thread is an address: it joins by its first use of weft and leaves when it
 * ends, owns its receive queue, and may be one of ten thousand. */
#include "crew.h"

enum { LARGE = 1 << 20 };

TEST(every_thread_has_an_id_of_its_own_and_keeps_it)
{
	struct mate a, b;

	job_begin(0);
	mate_start(&a);
	mate_start(&b);
	weft_id me = weft_self();
	CHECK(me && a.id && b.id && me != a.id && me != b.id && a.id != b.id);
	CHECK(weft_self() == me);
	CHECK_EQ(weft_id_distance(me), 0);
	CHECK_EQ(weft_id_distance(a.id), 1);
	CHECK_EQ(weft_id_distance(weft_process()), 1);
	CHECK(weft_id_split(a.id).process == weft_id_split(weft_process()).process);
	CHECK_EQ(weft_id_split(weft_process()).local, 0);
	mate_stop(&a);
	mate_stop(&b);
	job_end();
}

TEST(a_thread_may_send_to_itself)
{
	uint64_t v = 4;

	job_begin(0);
	CHECK_OK(weft_send(NULL, weft_self(), 1, &v, 8, SOON));
	CHECK_NEXT(NULL, weft_self(), 1, 4);
	job_end();
}

static void leave_and_come_back(void *arg)
{
	weft_id *ids = arg;

	CHECK_EQ(weft_thread_enter("late"), -EALREADY);
	CHECK_OK(weft_thread_leave());
	CHECK_EQ(weft_thread_leave(), -ENOTCONN);
	ids[0] = weft_self();
	CHECK_OK(weft_thread_leave());
	CHECK_OK(weft_thread_enter("named"));
	ids[1] = weft_self();
}

TEST(a_thread_that_left_joins_anew_under_a_new_id_and_the_old_one_is_gone)
{
	weft_id ids[2] = { 0 };
	uint64_t v = 1;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_run(&mate, leave_and_come_back, ids);
	CHECK(ids[0] && ids[1] && ids[0] != mate.id && ids[1] != ids[0] && ids[1] != mate.id);
	CHECK_EQ(weft_send(NULL, mate.id, 1, &v, 8, SOON), -ESRCH);
	CHECK_EQ(weft_send(NULL, ids[0], 1, &v, 8, SOON), -ESRCH);
	CHECK_OK(weft_send(NULL, ids[1], 1, &v, 8, SOON));
	mate_stop(&mate);
	CHECK_EQ(weft_send(NULL, ids[1], 1, &v, 8, SOON), -ESRCH);
	job_end();
}

struct visitor {
	struct weft_port *port;
	int recv, buf_recv, post, probe;
};

static void visitor_try(void *arg)
{
	struct visitor *v = arg;
	struct weft_buf *buf = NULL;
	struct weft_req *req = NULL;
	uint64_t got;

	v->recv = weft_recv(v->port, WEFT_ANY, 1, &got, 8, SOON, NULL);
	v->buf_recv = weft_buf_recv(v->port, WEFT_ANY, 1, SOON, &buf, NULL);
	v->post = recv_post(v->port, 0, WEFT_ANY, 1, &got, 8, &req);
	v->probe = weft_probe(v->port, WEFT(op, .peer = WEFT_ANY, .tag = 1), SOON, NULL, NULL);
	CHECK(req == NULL);
	/* Sending from it is everybody's right. */
	got = 8;
	CHECK_OK(weft_send(v->port, weft_process(), 1, &got, 8, SOON));
}

TEST(at_an_owned_port_only_its_thread_receives_and_probes)
{
	uint64_t v = 6;
	struct mate mate;
	struct visitor visitor = { 0 };

	job_begin(0);
	mate_start(&mate);
	visitor.port = port_new(WEFT_PORT_OWNED);
	CHECK_OK(weft_send(NULL, port_id(visitor.port), 1, &v, 8, SOON));
	mate_run(&mate, visitor_try, &visitor);
	CHECK_EQ(visitor.recv, -EPERM);
	CHECK_EQ(visitor.buf_recv, -EPERM);
	CHECK_EQ(visitor.post, -EPERM);
	CHECK_EQ(visitor.probe, -EPERM);
	CHECK_NEXT(visitor.port, WEFT_ANY, 1, 6);
	CHECK_NEXT(weft_port_world(), port_id(visitor.port), 1, 8);
	CHECK_OK(weft_port_close(visitor.port, SOON));
	mate_stop(&mate);
	job_end();
}

struct pending {
	struct weft_req *recv, *sync, *large;
	weft_id to;
	unsigned char *mem;
};

static void pending_post(void *arg)
{
	struct pending *p = arg;

	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, p->mem, 8, &p->recv));
	MUST_OK(send_post(NULL, WEFT_SYNC, p->to, 2, p->mem, 8, &p->sync));
	MUST_OK(send_post(NULL, 0, p->to, 3, p->mem, LARGE, &p->large));
}

TEST(a_request_may_be_waited_for_by_another_thread_than_the_one_that_posted_it)
{
	unsigned char *got = memory(LARGE);
	struct pending p = { .mem = memory(LARGE) };
	uint64_t v = 2, small;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	p.to = weft_self();
	mate_run(&mate, pending_post, &p);
	/* The poster computes while this thread sends to it, receives from it, and waits. */
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	CHECK_OK(weft_req_wait(&p.recv, WEFT_FOREVER, NULL));
	CHECK_OK(weft_recv(NULL, mate.id, 2, &small, 8, SOON, NULL));
	CHECK_OK(weft_req_wait(&p.sync, WEFT_FOREVER, NULL));
	CHECK_OK(weft_recv(NULL, mate.id, 3, got, LARGE, SOON, NULL));
	CHECK_OK(weft_req_wait(&p.large, WEFT_FOREVER, NULL));
	mate_stop(&mate);
	job_end();
	free(got);
	free(p.mem);
}

TEST(when_a_thread_ends_its_receives_and_its_announced_sends_are_cancelled)
{
	struct pending p = { .mem = memory(LARGE) };
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	p.to = weft_self();
	mate_run(&mate, pending_post, &p);
	mate_stop(&mate);
	CHECK_EQ(weft_req_wait(&p.recv, SOON, NULL), -ECANCELED);
	CHECK_EQ(weft_req_wait(&p.sync, SOON, NULL), -ECANCELED);
	CHECK_EQ(weft_req_wait(&p.large, SOON, NULL), -ECANCELED);
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	job_end();
	free(p.mem);
}

TEST(when_a_thread_ends_announced_sends_to_it_are_reset_and_what_it_had_not_received_is_lost)
{
	unsigned char *mem = memory(LARGE);
	struct weft_req *sync = NULL, *large = NULL;
	uint64_t v = 1;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	uint64_t before = stats_of(NULL).lost;
	MUST_OK(send_post(NULL, WEFT_SYNC, mate.id, 1, &v, 8, &sync));
	MUST_OK(send_post(NULL, 0, mate.id, 1, mem, LARGE, &large));
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_stop(&mate);
	CHECK_EQ(weft_req_wait(&sync, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_req_wait(&large, SOON, NULL), -ECONNRESET);
	CHECK_EQ(stats_of(NULL).lost - before, 1);
	job_end();
	free(mem);
}

static void *open_and_end(void *arg)
{
	weft_id *id = arg;

	*id = port_id(port_new(WEFT_PORT_OWNED));
	return NULL;
}

TEST(when_a_thread_ends_the_ports_only_it_could_receive_at_are_closed)
{
	weft_id id = 0;
	uint64_t v = 1;

	job_begin(0);
	thread_join(thread_start(open_and_end, &id));
	CHECK_EQ(weft_send(NULL, id, 1, &v, 8, SOON), -ESRCH);
	job_end();
}

static void *hello_and_end(void *arg)
{
	uint64_t v = 1;

	CHECK_OK(weft_send(NULL, *(weft_id *)arg, 1, &v, 8, SOON));
	return NULL;
}

TEST(threads_come_and_go_at_any_time_and_what_they_sent_arrives)
{
	uint64_t n = test_scaled(3000), got;

	job_begin(0);
	weft_id me = weft_self();
	for (uint64_t i = 0; i < n; i += 4) {
		pthread_t thread[4];

		for (int k = 0; k < 4; k++)
			thread[k] = thread_start(hello_and_end, &me);
		for (int k = 0; k < 4; k++)
			CHECK_OK(weft_recv(NULL, WEFT_ANY, 1, &got, 8, SOON, NULL));
		for (int k = 0; k < 4; k++)
			thread_join(thread[k]);
	}
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	job_end();
}

/* One of very many: tells the first who it is, is told its neighbour, passes a word on, and stays
 * until all have. */
struct one {
	weft_id first;
	uint64_t number;
};

enum { HERE = 1, NEIGHBOUR, WORD, REPORT, GO };

static void *one_main(void *arg)
{
	struct one *one = arg;
	weft_id neighbour = 0;
	uint64_t word = one->number, heard = 0;

	MUST_OK(weft_send(NULL, one->first, HERE, &one->number, 8, WEFT_FOREVER));
	MUST_OK(weft_recv(NULL, one->first, NEIGHBOUR, &neighbour, 8, WEFT_FOREVER, NULL));
	MUST_OK(weft_send(NULL, neighbour, WORD, &word, 8, WEFT_FOREVER));
	MUST_OK(weft_recv(NULL, WEFT_ANY, WORD, &heard, 8, WEFT_FOREVER, NULL));
	MUST_OK(weft_send(NULL, one->first, REPORT, &heard, 8, WEFT_FOREVER));
	MUST_OK(weft_recv(NULL, one->first, GO, &word, 8, WEFT_FOREVER, NULL));
	return NULL;
}

TEST(ten_thousand_threads_each_with_a_port_exchange_messages)
{
	uint64_t n = TEST_TSAN || TEST_ASAN ? 2000 : 10000, number, sum = 0;
	pthread_t *thread = memory(n * sizeof(*thread));
	struct one *ones = memory(n * sizeof(*ones));
	weft_id *ids = memory(n * sizeof(*ids));
	pthread_attr_t attr;
	struct weft_status st;

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
	SKIP("the ThreadSanitizer of gcc has no room for the traces of 2,000 threads");
#endif
	job_begin(0);
	MUST_OK(pthread_attr_init(&attr));
	MUST_OK(pthread_attr_setstacksize(&attr, 256 << 10));
	for (uint64_t i = 0; i < n; i++) {
		ones[i] = (struct one){ weft_self(), i };
		int r = pthread_create(&thread[i], &attr, one_main, &ones[i]);

		if (r) {
			printf("# only %d threads: %s\n", (int)i, strerror(r));
			MUST(i >= 1000);
			n = i;
		}
	}
	for (uint64_t i = 0; i < n; i++) {
		MUST_OK(weft_recv(NULL, WEFT_ANY, HERE, &number, 8, SOON, &st));
		MUST(number < n && ids[number] == 0);
		ids[number] = st.from;
	}
	for (uint64_t i = 0; i < n; i++)
		MUST_OK(weft_send(NULL, ids[i], NEIGHBOUR, &ids[(i + 1) % n], 8, SOON));
	for (uint64_t i = 0; i < n; i++) {
		MUST_OK(weft_recv(NULL, ids[i], REPORT, &number, 8, SOON, &st));
		CHECK_EQ(number, (i + n - 1) % n);
		sum += number;
	}
	CHECK_EQ(sum, n * (n - 1) / 2);
	for (uint64_t i = 0; i < n; i++)
		MUST_OK(weft_send(NULL, ids[i], GO, &number, 8, SOON));
	for (uint64_t i = 0; i < n; i++)
		thread_join(thread[i]);
	for (uint64_t i = 0; i < n; i += 97)
		CHECK_EQ(weft_send(NULL, ids[i], 1, &number, 8, SOON), -ESRCH);
	pthread_attr_destroy(&attr);
	job_end();
	printf("# %d threads\n", (int)n);
	free(thread);
	free(ones);
	free(ids);
}

static _Atomic int in_line, gun;

static void *ends_soon(void *arg)
{
	weft_self();
	atomic_fetch_add(&in_line, 1);
	while (!atomic_load(&gun))
		sched_yield();          /* where cores are few, who is to fire waits for one */
	for (volatile int i = 0; i < (int)(intptr_t)arg * 700; i++)
		continue;
	return NULL;
}

TEST(threads_may_end_while_the_process_leaves)
{
	for (unsigned round = 0; round < test_scaled(1000); round++) {
		pthread_t thread[3];

		job_begin(0);
		atomic_store(&in_line, 0);
		atomic_store(&gun, 0);
		for (intptr_t i = 0; i < 3; i++)
			MUST(pthread_create(&thread[i], NULL, ends_soon, (void *)i) == 0);
		while (atomic_load(&in_line) < 3)
			sched_yield();
		atomic_store(&gun, 1);
		CHECK_OK(weft_fini(SOON));
		for (int i = 0; i < 3; i++)
			thread_join(thread[i]);
	}
}

TEST_MAIN
