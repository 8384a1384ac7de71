/* test_members.c - ports with members: addresses, indexes, and what a member's end does. */
#include <sched.h>
#include "base/cpu.h"
#include "crew.h"
#include "port/open.h"

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

TEST(an_end_concerns_no_port_when_those_with_members_are_closed)
{
	struct weft_port *port[3] = { NULL };

	job_begin(0);
	weft_id members[2] = { weft_process(), weft_self() };
	uint32_t before = atomic_load(&wf_ports_with_members);
	struct weft_port_opts opts = { .size = sizeof(opts), .members = members, .count = 2 };
	MUST_OK(weft_port_open(&opts, &port[0]));
	opts.context = weft_ctx_new();
	MUST_OK(weft_port_open(&opts, &port[1]));
	opts.flags = WEFT_PORT_OWNED;
	MUST_OK(weft_port_open(&opts, &port[2]));
	CHECK_EQ(atomic_load(&wf_ports_with_members), before + 3);
	for (int i = 0; i < 3; i++)
		CHECK_OK(weft_port_close(port[i], SOON));
	CHECK_EQ(atomic_load(&wf_ports_with_members), before);
	job_end();
	CHECK_EQ(atomic_load(&wf_ports_with_members), 0);
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

/* Members: this thread and two that end one after the other. */
TEST(a_wary_port_tells_who_receives_from_anyone_that_a_member_has_ended)
{
	struct mate first, second;
	struct weft_port *p = NULL;
	struct weft_req *any = NULL, *named = NULL;
	uint64_t v = 7, got = 0;

	job_begin(0);
	mate_start(&first);
	mate_start(&second);
	weft_id members[3] = { weft_self(), first.id, second.id };
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | WEFT_PORT_WARY, .context = weft_ctx_new(),
				    .members = members, .count = 3), &p));
	MUST_OK(recv_post(p, 0, WEFT_ANY, 1, &got, 8, &any));
	MUST_OK(recv_post(p, 0, weft_at(2), 1, &got, 8, &named));
	mate_stop(&first);
	CHECK_EQ(weft_req_wait(&any, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_req_wait(&named, WEFT_NOW, NULL), -EAGAIN);
	CHECK_EQ(weft_recv(p, WEFT_ANY, 1, &got, 8, WEFT_NOW, NULL), -EAGAIN);          /* was told */
	CHECK_EQ(weft_probe(p, WEFT(op, .peer = WEFT_ANY, .tag = 1), weft_in(WEFT_MS), NULL, NULL), -ETIMEDOUT);
	CHECK_OK(weft_send(p, weft_at(0), 1, &v, 8, SOON));
	CHECK_OK(weft_recv(p, WEFT_ANY, 1, &got, 8, SOON, NULL));
	CHECK_EQ(got, 7);
	CHECK_OK(weft_send(p, weft_at(0), 2, &v, 8, SOON));
	mate_stop(&second);
	CHECK_EQ(weft_req_wait(&named, SOON, NULL), -ECONNRESET);
	CHECK_OK(weft_recv(p, WEFT_ANY, 2, &got, 8, WEFT_NOW, NULL));                    /* what is there comes first */
	CHECK_EQ(weft_recv(p, WEFT_ANY, 1, &got, 8, SOON, NULL), -ECONNRESET);
	CHECK_EQ(weft_recv(p, WEFT_ANY, 1, &got, 8, SOON, NULL), -ECONNRESET);           /* nobody else is left */
	CHECK_EQ(weft_probe(p, WEFT(op, .peer = WEFT_ANY, .tag = 1), SOON, NULL, NULL), -ECONNRESET);
	CHECK_OK(weft_port_close(p, SOON));
	CHECK_EQ(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_WARY), &p), -EINVAL);
	job_end();
}

static void *stop_mate(void *mate)
{
	mate_stop(mate);
	return NULL;
}

TEST(a_receive_that_is_posted_while_a_member_ends_ends_too)
{
	job_begin(0);
	for (uint64_t i = test_scaled(300); i > 0; i--) {
		struct mate ends;
		struct weft_port *p = NULL;
		struct weft_req *r = NULL;
		uint64_t got;
		int answer = 0;

		mate_start(&ends);
		weft_id members[2] = { weft_self(), ends.id };
		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_FRAGILE, .context = weft_ctx_new(), .members = members, .count = 2), &p));
		pthread_t stopper;
		MUST_OK(pthread_create(&stopper, NULL, stop_mate, &ends));
		for (uint64_t n = i * 7 % 4000; n > 0; n--)
			wf_relax();
		answer = recv_post(p, 0, weft_at(0), 1, &got, 8, &r);   /* from ourselves: nobody's end but the port's ends it */
		if (answer == 0)
			answer = weft_req_wait(&r, SOON, NULL);
		CHECK_EQ(answer, -ECONNRESET);
		MUST_OK(pthread_join(stopper, NULL));
		CHECK_OK(weft_port_close(p, SOON));
	}
	job_end();
}

static void probe_anyone(void *arg)
{
	struct hearer *h = arg;
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | WEFT_PORT_WARY, .context = h->ctx,
				    .members = h->members, .count = 3, .index = 2), &port));
	h->result = weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, NULL, NULL);
	h->later = weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_NOW, NULL, NULL);
	CHECK_OK(weft_port_close(port, SOON));
}

TEST(a_wary_port_tells_a_sleeping_probe_too)
{
	struct mate ends, waits;

	job_begin(0);
	mate_start(&ends);
	mate_start(&waits);
	weft_id members[3] = { weft_self(), ends.id, waits.id };
	struct hearer h = { weft_ctx_new(), members, 0, 1, 1 };
	uint32_t parked = stats_of(NULL).parked;
	mate_begin(&waits, probe_anyone, &h);
	EVENTUALLY(stats_of(NULL).parked > parked);
	mate_stop(&ends);
	mate_wait(&waits);
	CHECK_EQ(h.result, -ECONNRESET);
	CHECK_EQ(h.later, -EAGAIN);
	mate_stop(&waits);
	job_end();
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

struct brief {
	_Atomic weft_id id;
	uint64_t yields;
};

static void *live_briefly(void *arg)
{
	struct brief *b = arg;

	atomic_store(&b->id, weft_self());
	for (uint64_t i = 0; i < b->yields; i++)
		sched_yield();
	return NULL;
}

static _Atomic bool enough;

/* Opens and closes ports whose only member is itself. */
static void *open_and_close(void *arg)
{
	weft_id self = weft_self();

	while (!atomic_load(&enough)) {
		struct weft_port *port = NULL;

		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .context = weft_ctx_new(), .members = &self, .count = 1),
				       &port));
		CHECK_OK(weft_port_close(port, SOON));
	}
	return arg;
}

TEST(a_member_that_ends_while_a_fragile_port_is_opened_breaks_it)
{
	uint64_t v = 1, seed = test_seed;
	pthread_t other;

	job_begin(0);
	other = thread_start(open_and_close, NULL);
	for (uint64_t i = test_scaled(2000); i > 0; i--) {
		struct weft_port_info info = { .size = sizeof(info) };
		struct brief b = { .yields = test_random(&seed) % 8 };
		pthread_t t = thread_start(live_briefly, &b);
		struct weft_port *port = NULL;
		weft_id members[2] = { weft_self() };

		while (!(members[1] = atomic_load(&b.id)))
			sched_yield();
		MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED | WEFT_PORT_FRAGILE, .context = weft_ctx_new(),
					    .members = members, .count = 2), &port));
		thread_join(t);
		CHECK_OK(weft_port_stat(port, &info));
		CHECK_EQ(info.dead, 1);
		CHECK_EQ(weft_send(port, weft_at(0), 1, &v, 8, SOON), -ECONNRESET);
		CHECK_OK(weft_port_close(port, SOON));
	}
	atomic_store(&enough, true);
	thread_join(other);
	job_end();
}

TEST_MAIN
