/* test_callbacks.c - callbacks run in whichever thread makes progress, one at a time, outside
 * locks, never inside the call that posted; they may post, and what would wait answers -EDEADLK. */
#include "crew.h"

static _Thread_local bool posting;

/* A callback's observer: who ran, when, and how many at once. */
static _Atomic int running, overlaps, inside_post, calls;

static void observe(const struct weft_status *st)
{
	struct tally *t = st->user;

	if (atomic_fetch_add(&running, 1) != 0)
		atomic_fetch_add(&overlaps, 1);
	if (posting)
		atomic_fetch_add(&inside_post, 1);
	atomic_fetch_add(&calls, 1);
	tally_done(&(struct weft_status){ .err = st->err, .user = t });
	atomic_fetch_sub(&running, 1);
}

TEST(the_end_always_goes_to_the_callback_and_never_inside_the_call_that_posted)
{
	struct tally tally = { 0 };
	uint64_t v = 1, got;

	atomic_store(&inside_post, 0);
	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 1; i <= 500; i++) {
		/* Over on the spot, and still answered 0: the message is there, the receive waits. */
		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
		posting = true;
		CHECK_EQ(weft_recv_post(to, WEFT(op, .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8,
						 .done = observe, .user = &tally), NULL, NULL), 0);
		CHECK_EQ(weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 2, .data = &v, .len = 8,
						   .done = observe, .user = &tally), NULL), 0);
		posting = false;
		CHECK_NEXT(to, WEFT_ANY, 2, 1);
		EVENTUALLY(atomic_load(&tally.count) == 2 * i);
	}
	CHECK_EQ(tally.failed, 0);
	CHECK_EQ(atomic_load(&inside_post), 0);
	ports_close(from, to);
	job_end();
	CHECK_EQ(tally.count, 1000);
}

TEST(a_callback_runs_also_when_no_thread_of_the_program_waits_in_weft)
{
	struct tally tally = { 0 };
	uint64_t v = 1, got = 0;

	job_begin(0);
	MUST_OK(weft_recv_post(NULL,
			       WEFT(op, .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8,
				    .done = tally_done, .user = &tally),
			       NULL, NULL));
	struct weft_port *from = port_new(0);
	CHECK_OK(weft_send(from, weft_self(), 1, &v, 8, SOON));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(got, 1);
	CHECK_EQ(tally.last.err, 0);
	CHECK_EQ(tally.last.len, 8);
	CHECK_EQ(tally.last.tag, 1);
	CHECK(tally.last.from == port_id(from));
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

struct source {
	weft_id to;
	uint64_t count;
};

static void *source_main(void *arg)
{
	const struct source *s = arg;

	for (uint64_t i = 0; i < s->count; i++)
		MUST_OK(weft_send(NULL, s->to, 1, &i, 8, SOON));
	return NULL;
}

TEST(callbacks_run_one_at_a_time_in_the_whole_process)
{
	enum { PORTS = 4 };
	struct tally tally[PORTS] = { 0 };
	struct source source[PORTS];
	struct weft_port *to[PORTS];
	pthread_t thread[PORTS];
	uint64_t n = test_scaled(5000), got[PORTS];

	atomic_store(&overlaps, 0);
	job_begin(0);
	for (int i = 0; i < PORTS; i++) {
		to[i] = port_new(0);
		MUST_OK(weft_recv_post(to[i],
				       WEFT(op, .flags = WEFT_REPEAT, .peer = WEFT_ANY, .tag = 1,
					    .data = &got[i], .len = 8, .done = observe, .user = &tally[i]),
				       NULL, NULL));
		source[i] = (struct source){ port_id(to[i]), n };
		thread[i] = thread_start(source_main, &source[i]);
	}
	for (int i = 0; i < PORTS; i++) {
		thread_join(thread[i]);
		EVENTUALLY((uint64_t)atomic_load(&tally[i].count) == n);
		CHECK_OK(weft_port_close(to[i], SOON));
	}
	job_end();
	CHECK_EQ(atomic_load(&overlaps), 0);
	/* And one more each, for the end of the repeating receive. */
	for (int i = 0; i < PORTS; i++)
		CHECK_EQ(tally[i].count, n + 1);
}

/* A relay made of callbacks only: each message received is counted down and sent on. */
struct relay {
	struct weft_port *port;
	weft_id other;
	uint64_t word, in;
	_Atomic int *turns;
};

static void relay_post(struct relay *r);

static void relay_done(const struct weft_status *st)
{
	struct relay *r = st->user;

	CHECK_OK(st->err);
	atomic_fetch_add(r->turns, 1);
	r->word = r->in - 1;
	if (r->in > 1)
		relay_post(r);
	if (r->in > 0)
		CHECK(send_post(r->port, 0, r->other, 1, &r->word, 8, NULL) >= 0);
}

static void relay_post(struct relay *r)
{
	CHECK_OK(weft_recv_post(r->port, WEFT(op, .peer = r->other, .tag = 1, .data = &r->in, .len = 8,
					      .done = relay_done, .user = r), NULL, NULL));
}

TEST(callbacks_may_post)
{
	_Atomic int turns = 0;
	uint64_t n = test_scaled(2000) * 2;

	job_begin(0);
	struct weft_port *a = port_new(0), *b = port_new(0);
	struct relay left = { a, port_id(b), 0, 0, &turns }, right = { b, port_id(a), 0, 0, &turns };
	relay_post(&left);
	relay_post(&right);
	CHECK_OK(weft_send(a, port_id(b), 1, &n, 8, SOON));
	/* n, n - 1, ... 1, 0: the last is received and not sent on. */
	EVENTUALLY((uint64_t)atomic_load(&turns) == n + 1);
	ports_close(a, b);
	job_end();
}

struct caller {
	struct weft_port *port, *opened;
	struct weft_req *req, *user_req;
	struct weft_queue *queue;
	_Atomic int done;
};

static void call_what_waits(const struct weft_status *st)
{
	struct caller *c = st->user;
	weft_id me = port_id(c->port);
	struct weft_status got;
	struct weft_buf *buf = NULL, *in = NULL;
	struct weft_req *req = c->req;
	uint64_t v = 1;
	int which;

	CHECK_EQ(weft_send(c->port, me, 1, &v, 8, WEFT_FOREVER), -EDEADLK);
	CHECK_EQ(weft_recv(c->port, WEFT_ANY, 1, &v, 8, WEFT_FOREVER, NULL), -EDEADLK);
	CHECK_EQ(weft_probe(c->port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, NULL, NULL),
		 -EDEADLK);
	CHECK_EQ(weft_req_wait(&req, WEFT_FOREVER, NULL), -EDEADLK);
	CHECK(req == c->req);
	CHECK_EQ(weft_req_wait_some(&req, 1, 1, 1, WEFT_FOREVER, &which, &got), -EDEADLK);
	CHECK_EQ(weft_queue_next(c->queue, WEFT_FOREVER, &got, 1), -EDEADLK);
	CHECK_EQ(weft_poll(WEFT_FOREVER), -EDEADLK);
	CHECK_EQ(weft_port_close(c->port, WEFT_FOREVER), -EDEADLK);
	CHECK_EQ(weft_fini(WEFT_FOREVER), -EDEADLK);
	CHECK_OK(weft_buf_get(100, 0, &buf));
	CHECK_EQ(weft_buf_send(c->port, me, 1, buf, WEFT_FOREVER), -EDEADLK);
	CHECK_EQ(weft_buf_recv(c->port, WEFT_ANY, 1, WEFT_FOREVER, &in, NULL), -EDEADLK);
	CHECK_OK(weft_buf_put(buf));
	atomic_fetch_add(&c->done, 1);
}

static void call_what_does_not_wait(const struct weft_status *st)
{
	struct caller *c = st->user;
	struct weft_stats stats = { .size = sizeof(stats) };
	char text[WEFT_ID_TEXT];

	CHECK(weft_now() > 0);
	CHECK_EQ(weft_req_peek(c->req, NULL), -EAGAIN);
	CHECK_OK(weft_req_cancel(c->req));
	CHECK_OK(weft_req_complete(c->user_req, NULL));
	CHECK(weft_ctx_new() != 0);
	CHECK_OK(weft_port_open(NULL, &c->opened));
	CHECK_OK(weft_stats_get(c->port, &stats));
	CHECK(weft_process() != 0);
	CHECK(weft_id_print(weft_process(), text, sizeof(text)) == text);
	CHECK(weft_queue_fd(c->queue) >= 0);
	atomic_fetch_add(&c->done, 1);
}

static void with_caller(weft_done_fn fn)
{
	struct caller c = { 0 };
	struct weft_req *trigger = NULL;
	uint64_t got;

	job_begin(0);
	c.port = port_new(0);
	MUST_OK(weft_queue_open(&c.queue));
	MUST_OK(recv_post(c.port, 0, WEFT_ANY, 7, &got, 8, &c.req));
	MUST_OK(weft_req_new(NULL, NULL, NULL, &c.user_req));
	MUST_OK(weft_req_new(fn, NULL, &c, &trigger));
	CHECK_OK(weft_req_complete(trigger, NULL));
	EVENTUALLY(atomic_load(&c.done) == 1);
	weft_req_cancel(c.req);
	CHECK_EQ(weft_req_wait(&c.req, SOON, NULL), -ECANCELED);
	weft_req_complete(c.user_req, NULL);
	CHECK_OK(weft_req_wait(&c.user_req, SOON, NULL));
	CHECK_OK(weft_req_free(trigger));
	CHECK_OK(weft_queue_close(c.queue));
	CHECK_OK(weft_port_close(c.opened, SOON));
	CHECK_OK(weft_port_close(c.port, SOON));
	job_end();
}

TEST(what_would_wait_answers_deadlock_in_a_callback)
{
	with_caller(call_what_waits);
}

TEST(what_never_waits_may_be_called_in_a_callback)
{
	with_caller(call_what_does_not_wait);
}

static _Thread_local bool this_thread;

static void who_runs(const struct weft_status *st)
{
	struct tally *t = st->user;

	tally_done(&(struct weft_status){ .err = this_thread ? 0 : -ENOENT, .user = t });
}

TEST(poll_makes_progress_and_says_how_much)
{
	struct tally tally = { 0 };
	uint64_t got;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	this_thread = true;
	for (uint64_t i = 1; i <= 200; i++) {
		MUST_OK(weft_recv_post(to,
				       WEFT(op, .peer = WEFT_ANY, .tag = 1, .data = &got, .len = 8,
					    .done = who_runs, .user = &tally),
				       NULL, NULL));
		CHECK_OK(weft_send(from, port_id(to), 1, &i, 8, SOON));
		/* Another thread of weft's may be faster: then there is nothing left. */
		while ((uint64_t)atomic_load(&tally.count) < i) {
			int r = weft_poll(weft_in(WEFT_MS));

			CHECK(r > 0 || r == -ETIMEDOUT);
		}
		CHECK_EQ(got, i);
	}
	printf("# %d of 200 callbacks ran in the thread that polled\n", 200 - atomic_load(&tally.failed));
	this_thread = false;
	ports_close(from, to);
	job_end();
}

TEST_MAIN
