/* test_context.c - a context is a space of messages: what is sent from a port of context c reaches
 * the peer's port of context c and no other; members are addresses within it.
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

TEST(members_are_addresses_of_the_port_used)
{
	struct weft_port *ours = NULL, *mine = NULL, *alike = NULL;
	struct weft_port_info info = { .size = sizeof(info) };
	uint64_t v = 3, got;
	struct weft_status st;

	job_begin(0);
	weft_id members[3] = { weft_process(), 0, weft_self() };
	struct weft_port_opts opts = {
		.size = sizeof(opts), .context = weft_ctx_new(), .members = members, .count = 3
	};
	MUST_OK(weft_port_open(&opts, &ours));
	opts.flags = WEFT_PORT_OWNED;
	opts.index = 2;
	MUST_OK(weft_port_open(&opts, &mine));
	/* The table was copied. */
	members[0] = 0;
	CHECK(weft_port_member(ours, 0) == weft_process());
	CHECK(weft_port_member(ours, 1) == 0);
	CHECK(weft_port_member(ours, 2) == weft_self());
	CHECK(weft_port_member(ours, 3) == 0);
	CHECK_EQ(weft_port_index(ours, weft_self()), 2);
	CHECK_EQ(weft_port_index(ours, weft_self() + 1), -ENOENT);
	MUST_OK(weft_port_stat(mine, &info));
	CHECK(info.id == weft_self());
	CHECK_EQ(info.context, opts.context);
	CHECK_EQ(info.count, 3);
	CHECK_EQ(info.index, 2);
	CHECK_EQ(info.dead, 0);

	CHECK_OK(weft_send(ours, weft_at(2), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(mine, weft_at(0), 1, &got, 8, SOON, &st));
	CHECK_EQ(st.index, 0);
	CHECK(st.from == weft_process());
	CHECK_OK(weft_send(mine, weft_at(0), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(ours, WEFT_ANY, 1, &got, 8, SOON, &st));
	CHECK_EQ(st.index, 2);

	/* Another context with the members and the index of that port. */
	MUST_OK(weft_port_open(
		WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = weft_ctx_new(), .like = mine), &alike));
	info.size = sizeof(info);
	MUST_OK(weft_port_stat(alike, &info));
	CHECK_EQ(info.count, 3);
	CHECK_EQ(info.index, 2);
	CHECK_OK(weft_port_close(mine, SOON));
	CHECK(weft_port_member(alike, 2) == weft_self());
	ports_close(alike, ours);
	job_end();
}

TEST(one_who_is_no_member_has_no_index)
{
	uint64_t v = 3, got;
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0);
	CHECK_OK(weft_send(from, weft_self(), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(NULL, WEFT_ANY, 1, &got, 8, SOON, &st));
	CHECK_EQ(st.index, WEFT_NOBODY);
	CHECK_OK(weft_port_close(from, SOON));
	job_end();
}

struct hearer {
	weft_ctx ctx;
	const weft_id *members;
	uint32_t flags;
	int result, later;
};

static void hearer_main(void *arg)
{
	struct hearer *h = arg;
	struct weft_port *port = NULL;
	uint64_t v;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | h->flags, .context = h->ctx,
				    .members = h->members, .count = 3, .index = 2), &port));
	h->result = weft_recv(port, WEFT_ANY, 1, &v, 8, WEFT_FOREVER, NULL);
	h->later = weft_recv(port, WEFT_ANY, 1, &v, 8, WEFT_NOW, NULL);
	CHECK_OK(weft_port_close(port, SOON));
}

/* Three members: this thread, one that ends, one that waits in a receive. */
static void member_ends(uint32_t flags, struct tally *tally)
{
	struct weft_port *mine = NULL;
	struct weft_port_info info = { .size = sizeof(info) };
	struct mate ends, waits;
	struct weft_req *recv = NULL, *send = NULL;
	uint64_t v = 1, got;
	int over = flags ? -ECONNRESET : -EAGAIN;

	mate_start(&ends);
	mate_start(&waits);
	weft_id members[3] = { weft_self(), ends.id, waits.id };
	struct hearer h = { weft_ctx_new(), members, flags, 1, 1 };
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | flags, .context = h.ctx,
				    .members = members, .count = 3, .event = tally_done, .user = tally),
			       &mine));
	uint32_t parked = stats_of(NULL).parked;
	mate_begin(&waits, hearer_main, &h);
	EVENTUALLY(stats_of(NULL).parked > parked);
	MUST_OK(recv_post(mine, 0, weft_at(2), 1, &got, 8, &recv));
	MUST_OK(send_post(mine, WEFT_SYNC, weft_at(2), 2, &v, 8, &send));
	mate_stop(&ends);
	EVENTUALLY(atomic_load(&tally->count) == 1);
	CHECK_EQ(weft_req_wait(&recv, WEFT_NOW, NULL), over);
	CHECK_EQ(weft_req_wait(&send, WEFT_NOW, NULL), over);
	CHECK_EQ(weft_recv(mine, WEFT_ANY, 1, &got, 8, WEFT_NOW, NULL), over);
	CHECK_EQ(weft_probe(mine, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_NOW, NULL, NULL), over);
	CHECK_OK(weft_port_stat(mine, &info));
	CHECK_EQ(info.dead, 1);
	CHECK(info.epoch > 0);
	if (!flags) {
		CHECK_OK(weft_req_cancel(recv));
		CHECK_EQ(weft_req_wait(&recv, SOON, NULL), -ECANCELED);
	}
	CHECK_EQ(weft_send(mine, weft_at(2), 1, &v, 8, SOON), flags ? -ECONNRESET : 0);
	mate_wait(&waits);
	CHECK_EQ(h.result, flags ? -ECONNRESET : 0);
	CHECK_EQ(h.later, over);
	if (!flags)             /* the one that waited has closed its port since */
		CHECK_EQ(weft_req_wait(&send, SOON, NULL), -ECONNRESET);
	CHECK_OK(weft_port_close(mine, SOON));
	mate_stop(&waits);
	CHECK_EQ(tally->last.tag, WEFT_LEFT);
	CHECK(tally->last.from == members[1]);
	CHECK_EQ(tally->last.index, 1);
}

TEST(a_members_end_ends_every_pending_and_every_later_operation_on_a_fragile_port)
{
	struct tally tally = { 0 };

	job_begin(0);
	member_ends(WEFT_PORT_FRAGILE, &tally);
	job_end();
	CHECK_EQ(tally.count, 1);
}

TEST(a_members_end_is_told_as_an_event_and_harms_nothing_else_on_another_port)
{
	struct tally tally = { 0 };

	job_begin(0);
	member_ends(0, &tally);
	job_end();
	CHECK_EQ(tally.count, 1);
}

static void *tell_id_and_end(void *arg)
{
	*(weft_id *)arg = weft_self();
	return NULL;
}

TEST(a_fragile_port_opened_after_a_member_has_ended_is_broken_from_the_beginning)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *port;
	weft_id members[2];
	uint64_t v = 1;

	job_begin(0);
	members[0] = weft_self();
	thread_join(thread_start(tell_id_and_end, &members[1]));
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | WEFT_PORT_FRAGILE, .context = weft_ctx_new(),
				    .members = members, .count = 2), &port));
	CHECK_OK(weft_port_stat(port, &info));
	CHECK_EQ(info.dead, 1);
	CHECK_EQ(weft_recv(port, WEFT_ANY, 1, &v, 8, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_send(port, weft_at(0), 1, &v, 8, SOON), -ECONNRESET);
	CHECK_OK(weft_port_close(port, SOON));
	job_end();
}

static void *wait_for_go(void *arg)
{
	weft_id *ids = arg;
	uint64_t v;

	ids[1] = weft_self();
	MUST_OK(weft_send(NULL, ids[0], 1, &ids[1], 8, SOON));
	MUST_OK(weft_recv(NULL, ids[0], 2, &v, 8, SOON, NULL));
	return NULL;
}

TEST(a_members_end_ends_the_sends_of_every_fragile_port_however_many)
{
	enum { PORTS = 40 };
	struct weft_port *port[PORTS], *to;
	struct weft_req *req[PORTS];
	weft_id ids[2];
	pthread_t thread;
	uint64_t v = 1;

	job_begin(0);
	ids[0] = weft_self();
	to = port_new(0);
	thread = thread_start(wait_for_go, ids);
	MUST_OK(weft_recv(NULL, WEFT_ANY, 1, &v, 8, SOON, NULL));
	for (int i = 0; i < PORTS; i++) {
		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_FRAGILE, .members = ids, .count = 2), &port[i]));
		MUST_OK(send_post(port[i], WEFT_SYNC, port_id(to), 1, &v, 8, &req[i]));
	}
	MUST_OK(weft_send(NULL, ids[1], 2, &v, 8, SOON));
	thread_join(thread);
	for (int i = 0; i < PORTS; i++) {
		CHECK_EQ(weft_req_wait(&req[i], SOON, NULL), -ECONNRESET);
		CHECK_OK(weft_port_close(port[i], SOON));
	}
	CHECK_OK(weft_port_close(to, SOON));
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
