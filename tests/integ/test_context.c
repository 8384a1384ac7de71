/* test_context.c - a context is a space of messages: what is sent from a port of context c reaches
 * the peer's port of context c and no other.
 *
 * Ports of a context are found under the thread (OWNED) or the process, so that one thread can
 * play both ends: the process's port of the context, and its own.
 */
#include "crew.h"

#include <sched.h>

enum { LARGE = 1 << 20 };

static struct weft_port *ctx_open(weft_ctx ctx, uint32_t flags)
{
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = flags, .context = ctx), &port));
	return port;
}

TEST(what_is_sent_from_a_port_of_a_context_reaches_the_peers_port_of_that_context_and_no_other)
{
	struct weft_port *mine[2], *ours[2];
	uint64_t v[2] = { 41, 42 }, plain = 43;

	job_begin(0);
	for (int i = 0; i < 2; i++) {
		weft_ctx ctx = weft_ctx_new();

		mine[i] = ctx_open(ctx, WEFT_PORT_OWNED);
		ours[i] = ctx_open(ctx, 0);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_send(ours[i], weft_self(), 1, &v[i], 8, SOON));
		CHECK_OK(weft_send(mine[i], weft_process(), 1, &v[i], 8, SOON));
	}
	CHECK_OK(weft_send(NULL, weft_self(), 1, &plain, 8, SOON));
	for (int i = 1; i >= 0; i--) {
		CHECK_NEXT(mine[i], WEFT_ANY, WEFT_ANY_TAG, v[i]);
		CHECK_NOTHING(mine[i], WEFT_ANY, WEFT_ANY_TAG);
		CHECK_NEXT(ours[i], WEFT_ANY, WEFT_ANY_TAG, v[i]);
		CHECK_NOTHING(ours[i], WEFT_ANY, WEFT_ANY_TAG);
	}
	CHECK_NEXT(NULL, WEFT_ANY, WEFT_ANY_TAG, plain);
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_port_close(mine[i], SOON));
		CHECK_OK(weft_port_close(ours[i], SOON));
	}
	job_end();
}

TEST(an_answer_to_the_port_that_sent_gets_there)
{
	uint64_t v = 1, got;
	struct weft_status st;

	job_begin(0);
	weft_ctx ctx = weft_ctx_new();
	struct weft_port *mine = ctx_open(ctx, WEFT_PORT_OWNED), *ours = ctx_open(ctx, 0),
			 *single = port_new(0);
	CHECK_OK(weft_send(mine, weft_process(), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(ours, WEFT_ANY, 1, &got, 8, SOON, &st));
	CHECK_OK(weft_send(ours, st.from, 2, &v, 8, SOON));
	CHECK_NEXT(mine, weft_process(), 2, 1);
	CHECK_OK(weft_send(single, weft_self(), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(NULL, WEFT_ANY, 1, &got, 8, SOON, &st));
	CHECK(st.from == port_id(single));
	CHECK_OK(weft_send(NULL, st.from, 2, &v, 8, SOON));
	CHECK_NEXT(single, weft_self(), 2, 1);
	CHECK_OK(weft_port_close(mine, SOON));
	CHECK_OK(weft_port_close(ours, SOON));
	CHECK_OK(weft_port_close(single, SOON));
	job_end();
}

TEST(messages_for_a_context_that_is_not_open_yet_are_held_and_come_first)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	struct weft_buf *buf = NULL, *out = NULL;
	struct weft_req *large = NULL, *sync = NULL;
	uint64_t small = 1, last = 5;

	job_begin(0);
	weft_ctx ctx = weft_ctx_new();
	struct weft_port *ours = ctx_open(ctx, 0);
	pattern_put(mem, LARGE, 2);
	CHECK_OK(weft_send(ours, weft_self(), 1, &small, 8, SOON));
	MUST_OK(send_post(ours, 0, weft_self(), 2, mem, LARGE, &large));
	MUST_OK(weft_buf_get(100, 0, &buf));
	pattern_put(buf->data, 100, 3);
	CHECK_OK(weft_buf_send(ours, weft_self(), 3, buf, SOON));
	MUST_OK(send_post(ours, WEFT_SYNC, weft_self(), 4, &small, 8, &sync));
	CHECK_EQ(weft_req_peek(sync, NULL), -EAGAIN);
	/* Nobody else's port sees them. */
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	struct weft_port *mine = ctx_open(ctx, WEFT_PORT_OWNED);
	CHECK_OK(weft_send(ours, weft_self(), 5, &last, 8, SOON));
	CHECK_NEXT(mine, WEFT_ANY, WEFT_ANY_TAG, 1);
	CHECK_OK(weft_recv(mine, WEFT_ANY, WEFT_ANY_TAG, got, LARGE, SOON, NULL));
	CHECK(pattern_ok(got, LARGE, 2));
	CHECK_OK(weft_buf_recv(mine, WEFT_ANY, WEFT_ANY_TAG, SOON, &out, NULL));
	CHECK(out == buf && pattern_ok(out->data, 100, 3));
	CHECK_OK(weft_buf_put(out));
	CHECK_NEXT(mine, WEFT_ANY, WEFT_ANY_TAG, 1);
	CHECK_NEXT(mine, WEFT_ANY, WEFT_ANY_TAG, 5);
	CHECK_OK(weft_req_wait(&large, SOON, NULL));
	CHECK_OK(weft_req_wait(&sync, SOON, NULL));
	ports_close(mine, ours);
	job_end();
	free(mem);
	free(got);
}

TEST(early_messages_of_a_thread_that_ends_without_opening_are_lost_and_announced_ones_reset)
{
	uint64_t v = 1;
	struct weft_req *req = NULL, *cancelled = NULL;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *ours = ctx_open(weft_ctx_new(), 0);
	uint64_t before = stats_of(NULL).lost;
	CHECK_OK(weft_send(ours, mate.id, 1, &v, 8, SOON));
	MUST_OK(send_post(ours, WEFT_SYNC, mate.id, 1, &v, 8, &req));
	MUST_OK(send_post(ours, WEFT_SYNC, mate.id, 1, &v, 8, &cancelled));
	CHECK_OK(weft_req_cancel(cancelled));
	CHECK_EQ(weft_req_wait(&cancelled, SOON, NULL), -ECANCELED);
	mate_stop(&mate);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	CHECK_EQ(stats_of(NULL).lost - before, 1);
	CHECK_EQ(weft_send(ours, mate.id, 1, &v, 8, SOON), -ESRCH);
	CHECK_OK(weft_port_close(ours, SOON));
	job_end();
}

/* One that sends to it all the time, while it ends, too. */
struct hammer {
	struct weft_port *port;
	weft_id to;
	_Atomic bool ended;
	int last;
};

static void *hammer(void *arg)
{
	struct hammer *h = arg;
	uint64_t v = 1;
	int left = 2000;                /* once it has ended: more than a mailbox takes */

	do {
		h->last = weft_send(h->port, h->to, 1, &v, 8, WEFT_NOW);
		left -= atomic_load(&h->ended);
	} while (h->last != -ESRCH && left > 0);
	return NULL;
}

TEST(a_thread_that_ends_while_its_context_is_sent_to_is_gone_for_who_sends)
{
	struct hammer h = { .port = NULL };

	job_begin(0);
	for (uint64_t i = test_scaled(200); i > 0; i--) {
		pthread_t thread;
		struct mate mate;

		MUST_OK(weft_port_open(WEFT(port_opts, .context = weft_ctx_new()), &h.port));
		mate_start(&mate);
		h.to = mate.id;
		atomic_store(&h.ended, false);
		thread = thread_start(hammer, &h);
		mate_stop(&mate);
		atomic_store(&h.ended, true);
		pthread_join(thread, NULL);
		CHECK_EQ(h.last, -ESRCH);
		CHECK_OK(weft_port_close(h.port, SOON));
	}
	job_end();
}

TEST(messages_for_a_context_already_closed_are_refused)
{
	uint64_t v = 1;

	job_begin(0);
	weft_ctx ctx = weft_ctx_new();
	struct weft_port *ours = ctx_open(ctx, 0), *mine = ctx_open(ctx, WEFT_PORT_OWNED);
	CHECK_OK(weft_port_close(mine, SOON));
	CHECK_EQ(weft_send(ours, weft_self(), 1, &v, 8, SOON), -ESRCH);
	CHECK_EQ(send_post(ours, WEFT_SYNC, weft_self(), 1, &v, 8, NULL), -ESRCH);
	CHECK_OK(weft_port_close(ours, SOON));
	job_end();
}

struct opening {
	weft_ctx ctx;
	struct weft_port *port;
	int result;
};

static void opening_open(void *arg)
{
	struct opening *o = arg;

	o->result = weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = o->ctx), &o->port);
}

static void opening_close(void *arg)
{
	struct opening *o = arg;

	CHECK_OK(weft_port_close(o->port, SOON));
}

TEST(the_same_pair_of_id_and_context_is_open_once_and_not_again)
{
	struct weft_port *again = NULL;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	struct opening o = { .ctx = weft_ctx_new() };
	struct weft_port *mine = ctx_open(o.ctx, WEFT_PORT_OWNED);
	CHECK_EQ(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = o.ctx), &again),
		 -EEXIST);
	CHECK(again == NULL);
	CHECK_OK(weft_port_close(mine, SOON));
	CHECK_EQ(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = o.ctx), &again),
		 -ESTALE);
	/* Other openers are other ids: another thread, the process. */
	mate_run(&mate, opening_open, &o);
	CHECK_OK(o.result);
	struct weft_port *ours = ctx_open(o.ctx, 0);
	CHECK_EQ(weft_port_open(WEFT(port_opts, .context = o.ctx), &again), -EEXIST);
	mate_run(&mate, opening_close, &o);
	CHECK_OK(weft_port_close(ours, SOON));
	mate_stop(&mate);
	job_end();
}

TEST(a_context_number_is_never_used_twice)
{
	enum { N = 10000 };
	weft_ctx last = 0;

	job_begin(0);
	for (int i = 0; i < N; i++) {
		weft_ctx ctx = weft_ctx_new();

		/* A counter: each larger than the one before is never the same as any before. */
		CHECK(ctx > last);
		last = ctx;
	}
	job_end();
}

TEST(a_channel_is_a_context_by_text)
{
	struct weft_port *mine = NULL, *ours = NULL, *other = NULL, *again = NULL;
	uint64_t v = 3;

	job_begin(0);
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .channel = "weather"), &mine));
	MUST_OK(weft_port_open(WEFT(port_opts, .channel = "weather"), &ours));
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .channel = "traffic"), &other));
	CHECK_EQ(weft_port_open(WEFT(port_opts, .channel = "weather"), &again), -EEXIST);
	CHECK_OK(weft_send(ours, weft_self(), 1, &v, 8, SOON));
	CHECK_NOTHING(other, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_NEXT(mine, weft_process(), 1, 3);
	CHECK_OK(weft_port_close(mine, SOON));
	CHECK_OK(weft_port_close(ours, SOON));
	CHECK_OK(weft_port_close(other, SOON));
	job_end();
}

/* One side opens its port of a new context while the other's first message for it is on its way. */
struct early {
	weft_id peer;
	_Atomic(weft_ctx) context;
	uint64_t rounds;
};

static void *send_early(void *arg)
{
	struct early *o = arg;
	struct weft_port *from;
	weft_ctx context, last = 0;

	for (uint64_t i = 0; i < o->rounds; i++) {
		while ((context = atomic_load(&o->context)) == last)
			sched_yield();
		last = context;
		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = context), &from));
		MUST_OK(weft_send(from, o->peer, 1, &i, 8, SOON));
		MUST_OK(weft_port_close(from, SOON));
	}
	return NULL;
}

TEST(opening_a_context_does_not_race_its_first_early_message)
{
	struct early o = { .rounds = test_scaled(3000) };
	struct weft_port *port;
	pthread_t thread;
	uint64_t got;

	job_begin(0);
	o.peer = weft_self();
	thread = thread_start(send_early, &o);
	for (uint64_t i = 0; i < o.rounds; i++) {
		weft_ctx context = weft_ctx_new();

		atomic_store(&o.context, context);
		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = context), &port));
		MUST_OK(weft_recv(port, WEFT_ANY, 1, &got, 8, SOON, NULL));
		MUST_EQ(got, i);
		MUST_OK(weft_port_close(port, SOON));
	}
	thread_join(thread);
	job_end();
}

TEST_MAIN
