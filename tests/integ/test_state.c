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
	uint64_t wakes = stats_of(NULL).wakes;
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_wait(&mate);
	CHECK(stats_of(NULL).wakes > wakes);
	CHECK_EQ(stats_of(NULL).parked, 0);
	CHECK_EQ(state_count(WEFT_STATE_WAITER, mate.id, 0, 0, 0, ""), 0);
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
