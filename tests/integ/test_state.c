/* test_state.c - what goes on, seen from inside: counters, the four queues, and a walk over ports,
 * what is queued and who waits for whom. */
#include "crew.h"

enum { LARGE = 1 << 20 };

TEST(messages_and_bytes_are_counted_per_port_and_for_the_process)
{
	unsigned char mem[100] = { 0 };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct weft_stats before = stats_of(NULL);
	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_send(from, port_id(to), 1, mem, sizeof(mem), SOON));
	CHECK_EQ(stats_of(from).sent, 10);
	CHECK_EQ(stats_of(from).bytes_sent, 1000);
	CHECK_EQ(stats_of(from).received, 0);
	for (int i = 0; i < 6; i++)
		CHECK_OK(weft_recv(to, WEFT_ANY, 1, mem, sizeof(mem), SOON, NULL));
	CHECK_EQ(stats_of(to).received, 6);
	CHECK_EQ(stats_of(to).bytes_received, 600);
	CHECK_EQ(stats_of(to).sent, 0);
	CHECK_EQ(stats_of(NULL).sent - before.sent, 10);
	CHECK_EQ(stats_of(NULL).received - before.received, 6);
	CHECK_EQ(stats_of(NULL).bytes_sent - before.bytes_sent, 1000);
	CHECK_EQ(stats_of(NULL).bytes_received - before.bytes_received, 600);
	/* What a port counted is not forgotten by the process when the port closes. */
	ports_close(from, to);
	CHECK_EQ(stats_of(NULL).sent - before.sent, 10);
	CHECK_EQ(stats_of(NULL).received - before.received, 6);
	job_end();
}

/* A layout whose pieces are made only when the test says so: a copy takes as long as it likes. */
struct slow {
	struct weft_layout layout;
	unsigned char *mem;
	_Atomic int *asked, *go;
};

static int slow_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	const struct slow *s = (const struct slow *)l;

	(void)max;
	atomic_store(s->asked, 1);
	EVENTUALLY(atomic_load(s->go));
	*ret_iov = (struct iovec){ s->mem + at, l->len - at };
	return 1;
}

struct taker {
	struct weft_port *at;
	unsigned char *mem;
};

static void taker_take(void *arg)
{
	struct taker *t = arg;

	CHECK_OK(weft_recv(t->at, WEFT_ANY, 3, t->mem, LARGE, SOON, NULL));
}

TEST(the_lengths_of_the_four_queues_are_told)
{
	_Atomic int asked = 0, go = 0;
	struct slow slow = { { LARGE, slow_pieces, NULL }, memory(LARGE), &asked, &go };
	struct weft_req *recv[2] = { NULL }, *send = NULL;
	struct mate mate;
	uint64_t v = 1, got;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct taker taker = { to, memory(LARGE) };
	struct weft_stats s = stats_of(NULL);
	CHECK(s.expected == 0 && s.unexpected == 0 && s.requested == 0 && s.unrequested == 0);
	/* Expected: receives nobody has sent to. */
	MUST_OK(recv_post(to, 0, WEFT_ANY, 8, &got, 8, &recv[0]));
	MUST_OK(recv_post(to, 0, WEFT_ANY, 9, &got, 8, &recv[1]));
	CHECK_EQ(stats_of(NULL).expected, 2);
	CHECK_EQ(stats_of(to).expected, 2);
	/* Unexpected: arrived, and nobody has asked. */
	for (int i = 0; i < 3; i++)
		CHECK_OK(weft_send(from, port_id(to), 1, &v, 8, SOON));
	CHECK_NOTHING(to, WEFT_ANY, 5);
	CHECK_EQ(stats_of(NULL).unexpected, 3);
	/* Unrequested: announced, and nobody has asked: still the sender's. */
	MUST_OK(weft_send_post(from, WEFT(op, .peer = port_id(to), .tag = 3, .layout = &slow.layout), &send));
	CHECK_NOTHING(to, WEFT_ANY, 5);
	CHECK_EQ(stats_of(NULL).unrequested, 1);
	CHECK_EQ(stats_of(NULL).requested, 0);
	/* Requested: asked for, and on its way. */
	mate_begin(&mate, taker_take, &taker);
	EVENTUALLY(atomic_load(&asked));
	CHECK_EQ(stats_of(NULL).requested, 1);
	CHECK_EQ(stats_of(NULL).unrequested, 0);
	atomic_store(&go, 1);
	mate_wait(&mate);
	CHECK_OK(weft_req_wait(&send, SOON, NULL));
	for (int i = 0; i < 3; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_req_cancel(recv[i]));
		CHECK_EQ(weft_req_wait(&recv[i], SOON, NULL), -ECANCELED);
	}
	s = stats_of(NULL);
	CHECK(s.expected == 0 && s.unexpected == 0 && s.requested == 0 && s.unrequested == 0);
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
	free(slow.mem);
	free(taker.mem);
}

TEST(a_send_with_ready_that_finds_no_receive_posted_is_slower_and_counted)
{
	struct weft_req *recv = NULL, *sent = NULL;
	uint64_t v = 1, got = 0;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &got, 8, &recv));
	CHECK(send_post(from, WEFT_READY, port_id(to), 1, &v, 8, &sent) >= 0);
	CHECK_OK(weft_req_wait(&recv, SOON, NULL));
	CHECK_OK(weft_req_wait(&sent, SOON, NULL));
	CHECK_EQ(stats_of(NULL).ready_missed, 0);
	CHECK(send_post(from, WEFT_READY, port_id(to), 1, &v, 8, &sent) >= 0);
	CHECK_NOTHING(to, WEFT_ANY, 2);
	CHECK_NEXT(to, WEFT_ANY, 1, 1);
	CHECK_OK(weft_req_wait(&sent, SOON, NULL));
	CHECK_EQ(stats_of(NULL).ready_missed, 1);
	ports_close(from, to);
	job_end();
}

TEST(a_smaller_struct_of_an_older_program_is_filled_as_far_as_it_goes)
{
	struct weft_stats stats;
	struct weft_port_info info;

	job_begin(0);
	memset(&stats, 0xee, sizeof(stats));
	stats.size = offsetof(struct weft_stats, wakes);
	CHECK_OK(weft_stats_get(NULL, &stats));
	CHECK(stats.sent != UINT64_C(0xeeeeeeeeeeeeeeee));
	CHECK(stats.wakes == UINT64_C(0xeeeeeeeeeeeeeeee));
	CHECK(stats.dir_messages == UINT64_C(0xeeeeeeeeeeeeeeee));
	memset(&info, 0xee, sizeof(info));
	info.size = offsetof(struct weft_port_info, context);
	CHECK_OK(weft_port_stat(NULL, &info));
	CHECK(info.id == weft_self());
	CHECK(info.context == UINT64_C(0xeeeeeeeeeeeeeeee));
	job_end();
}

/* Walks over what goes on and counts the items that are like this one; 0 and "": any. */
static int state_count(uint32_t kind, weft_id who, weft_id whom, uint64_t tag, uint64_t len, const char *text)
{
	struct weft_state *state = NULL;
	struct weft_state_item item = { .size = sizeof(item) };
	int n = 0, r;

	MUST_OK(weft_state_open(getpid(), &state));
	while ((r = weft_state_next(state, &item)) == 0) {
		CHECK(item.kind >= WEFT_STATE_PORT && item.kind <= WEFT_STATE_PROCESS);
		CHECK(memchr(item.text, 0, sizeof(item.text)) != NULL);
		n += item.kind == kind && (!who || item.who == who) && (!whom || item.whom == whom) &&
		     (!tag || item.tag == tag) && (!len || item.len == len) &&
		     (!*text || strstr(item.text, text));
	}
	CHECK_EQ(r, WEFT_DONE);
	CHECK_OK(weft_state_close(state));
	return n;
}

static void enter_named(void *arg)
{
	CHECK_OK(weft_thread_leave());
	CHECK_OK(weft_thread_enter("baker"));
	*(weft_id *)arg = weft_self();
}

TEST(a_walk_shows_the_ports_with_their_names)
{
	struct weft_port *port = NULL;
	struct mate mate;
	weft_id baker = 0;

	job_begin(0);
	mate_start(&mate);
	mate_run(&mate, enter_named, &baker);
	MUST_OK(weft_port_open(WEFT(port_opts, .name = "counter"), &port));
	CHECK_EQ(state_count(WEFT_STATE_PORT, port_id(port), 0, 0, 0, "counter"), 1);
	CHECK_EQ(state_count(WEFT_STATE_PORT, baker, 0, 0, 0, "baker"), 1);
	CHECK(state_count(WEFT_STATE_PORT, weft_self(), 0, 0, 0, "") == 1);
	CHECK(state_count(WEFT_STATE_PORT, weft_process(), 0, 0, 0, "") == 1);
	weft_id gone = port_id(port);
	CHECK_OK(weft_port_close(port, SOON));
	CHECK_EQ(state_count(WEFT_STATE_PORT, gone, 0, 0, 0, ""), 0);
	mate_stop(&mate);
	job_end();
}

TEST(a_walk_shows_what_is_queued)
{
	unsigned char mem[64] = { 0 };
	struct weft_req *recv = NULL, *send = NULL;
	unsigned char got[64];

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	CHECK_OK(weft_send(from, port_id(to), 1001, mem, 40, SOON));
	MUST_OK(send_post(from, WEFT_SYNC, port_id(to), 1002, mem, 41, &send));
	MUST_OK(recv_post(to, 0, port_id(from), 1003, got, 42, &recv));
	CHECK_NOTHING(to, WEFT_ANY, 5);
	CHECK_EQ(state_count(WEFT_STATE_QUEUED, 0, 0, 1001, 40, ""), 1);
	CHECK_EQ(state_count(WEFT_STATE_QUEUED, 0, 0, 1002, 41, ""), 1);
	CHECK_EQ(state_count(WEFT_STATE_QUEUED, 0, 0, 1003, 0, ""), 1);
	CHECK_OK(weft_recv(to, WEFT_ANY, 1001, got, 64, SOON, NULL));
	CHECK_OK(weft_recv(to, WEFT_ANY, 1002, got, 64, SOON, NULL));
	CHECK_OK(weft_req_wait(&send, SOON, NULL));
	CHECK_OK(weft_send(from, port_id(to), 1003, mem, 42, SOON));
	CHECK_OK(weft_req_wait(&recv, SOON, NULL));
	for (uint64_t tag = 1001; tag <= 1003; tag++)
		CHECK_EQ(state_count(WEFT_STATE_QUEUED, 0, 0, tag, 0, ""), 0);
	ports_close(from, to);
	job_end();
}

static void wait_for(void *arg)
{
	uint64_t v;

	CHECK_OK(weft_recv(NULL, *(weft_id *)arg, 1, &v, 8, WEFT_FOREVER, NULL));
}

TEST(a_walk_shows_who_waits_and_the_process_how_many_are_asleep)
{
	struct mate mate;
	uint64_t v = 1;

	job_begin(0);
	mate_start(&mate);
	weft_id me = weft_self();
	CHECK_EQ(stats_of(NULL).parked, 0);
	mate_begin(&mate, wait_for, &me);
	EVENTUALLY(stats_of(NULL).parked == 1);
	CHECK_EQ(state_count(WEFT_STATE_WAITER, mate.id, 0, 0, 0, ""), 1);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, me, 1, 8, "receives at ") == 1);
	uint64_t wakes = stats_of(NULL).wakes;
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_wait(&mate);
	CHECK(stats_of(NULL).wakes > wakes);
	CHECK_EQ(stats_of(NULL).parked, 0);
	CHECK_EQ(state_count(WEFT_STATE_WAITER, mate.id, 0, 0, 0, ""), 0);
	mate_stop(&mate);
	job_end();
}

/* A mate's call that sleeps, and how a sample is to show it. */
struct sleeper {
	struct weft_port *from;
	weft_id whom;
	struct weft_req *reqs[2];
	uint64_t v[2];
};

static void send_and_wait(void *arg)
{
	struct sleeper *s = arg;

	CHECK_OK(weft_send(s->from, s->whom, 2001, &s->v[0], 8, WEFT_FOREVER));
}

static void wait_for_posted(void *arg)
{
	struct sleeper *s = arg;

	MUST_OK(send_post(s->from, WEFT_SYNC, s->whom, 2002, &s->v[0], 8, &s->reqs[0]));
	CHECK_OK(weft_req_wait(&s->reqs[0], WEFT_FOREVER, NULL));
}

static void wait_for_both(void *arg)
{
	struct sleeper *s = arg;
	struct weft_status st[2];
	int which[2];

	MUST_OK(send_post(NULL, WEFT_SYNC, s->whom, 2003, &s->v[0], 8, &s->reqs[0]));
	MUST_OK(recv_post(NULL, 0, s->whom, 2004, &s->v[1], 8, &s->reqs[1]));
	CHECK_EQ(weft_req_wait_some(s->reqs, 2, 2, 2, WEFT_FOREVER, which, st), 2);
}

TEST(a_thread_asleep_in_a_send_is_shown_with_whom_it_sends_to)
{
	struct mate mate;

	job_begin(65536);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct sleeper s = { .from = from, .whom = port_id(to), .v = { 7 } };
	/* No room: it waits until somebody takes what is there. */
	uint64_t n = budget_fill(from, s.whom, 1);
	mate_begin(&mate, send_and_wait, &s);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, s.whom, 2001, 8, "sends") == 1);
	CHECK(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, "") <= 1);
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK_NEXT(to, WEFT_ANY, 2001, 7);
	mate_wait(&mate);
	CHECK_EQ(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, ""), 0);
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
}

TEST(a_thread_that_waits_for_a_posted_send_is_shown_with_whom_it_goes_to)
{
	struct weft_req *req = NULL;
	struct mate mate;
	uint64_t v = 8;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *from = port_new(0), *to = port_new(0);
	struct sleeper s = { .from = from, .whom = port_id(to), .v = { 8 } };
	/* One that nobody waits for is no waiter. */
	MUST_OK(send_post(from, WEFT_SYNC, s.whom, 1, &v, 8, &req));
	mate_begin(&mate, wait_for_posted, &s);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, s.whom, 2002, 8, "sends") == 1);
	CHECK(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, "") <= 1);
	CHECK_NEXT(to, WEFT_ANY, 2002, 8);
	CHECK_NEXT(to, WEFT_ANY, 1, 8);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	mate_wait(&mate);
	CHECK_EQ(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, ""), 0);
	ports_close(from, to);
	mate_stop(&mate);
	job_end();
}

TEST(a_thread_that_waits_for_several_is_shown_once_for_each)
{
	struct mate mate;
	uint64_t v = 9;

	job_begin(0);
	mate_start(&mate);
	struct weft_port *to = port_new(0);
	struct sleeper s = { .whom = port_id(to), .v = { 9 } };
	mate_begin(&mate, wait_for_both, &s);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, 0, 0, 0, "") == 2);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, s.whom, 2003, 8, "sends") == 1);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, s.whom, 2004, 8, "receives at ") == 1);
	CHECK_NEXT(to, mate.id, 2003, 9);
	CHECK_OK(weft_send(to, mate.id, 2004, &v, 8, SOON));
	mate_wait(&mate);
	CHECK_OK(weft_port_close(to, SOON));
	mate_stop(&mate);
	job_end();
}

static void probe_for(void *arg)
{
	CHECK_OK(weft_probe(NULL, WEFT(op, .peer = *(weft_id *)arg, .tag = 1), WEFT_FOREVER, NULL, NULL));
}

TEST(who_probes_is_shown_with_whom_and_which_tag_it_names)
{
	weft_id whom[2];
	struct mate mate;
	uint64_t v = 1;

	job_begin(0);
	whom[0] = weft_self();
	whom[1] = WEFT_ANY;
	mate_start(&mate);
	for (int any = 0; any < 2; any++) {
		mate_begin(&mate, probe_for, &whom[any]);
		if (any)
			EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, mate.id, 1, 0, "probes for anyone") == 1);
		else
			EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, whom[0], 1, 0, "probes at ") == 1);
		CHECK(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, "") <= 1);
		CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
		mate_wait(&mate);
		mate_begin(&mate, wait_for, &whom[any]);
		mate_wait(&mate);
	}
	mate_stop(&mate);
	job_end();
}

TEST(who_receives_from_anyone_is_shown_with_the_port_it_sleeps_at)
{
	weft_id anyone = WEFT_ANY;
	struct mate mate;
	uint64_t v = 1;

	job_begin(0);
	mate_start(&mate);
	mate_begin(&mate, wait_for, &anyone);
	EVENTUALLY(state_count(WEFT_STATE_WAITER, mate.id, mate.id, 1, 8, "receives from anyone") == 1);
	CHECK(state_count(WEFT_STATE_WAITER, 0, 0, 0, 0, "") <= 1);
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_wait(&mate);
	mate_stop(&mate);
	job_end();
}

static _Atomic bool stop;

static void *stir(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		struct weft_port *port = port_new(0);
		uint64_t v = 1;

		CHECK_OK(weft_send(NULL, port_id(port), 1, &v, 8, SOON));
		CHECK_NEXT(port, WEFT_ANY, 1, 1);
		CHECK_OK(weft_port_close(port, SOON));
	}
	return NULL;
}

TEST(a_walk_may_be_made_while_everything_changes)
{
	pthread_t thread[2];

	atomic_store(&stop, false);
	job_begin(0);
	for (int i = 0; i < 2; i++)
		thread[i] = thread_start(stir, NULL);
	for (uint64_t i = test_scaled(300); i > 0; i--)
		CHECK_EQ(state_count(WEFT_STATE_PORT, weft_self(), 0, 0, 0, ""), 1);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		thread_join(thread[i]);
	job_end();
}

TEST_MAIN
