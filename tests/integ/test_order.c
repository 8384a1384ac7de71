/* test_order.c - order belongs to the source port: from one port to one port, with one priority,
 * in the order in which the send calls happened before one another, whichever threads made them.
 */
#include <sched.h>
#include "turns.h"

enum { KINDS = 7, LARGE = 20000 };

struct item {
	struct weft_req *req;
	unsigned char *mem;
	size_t len;
};

/* Message i in one of the ways there are to send: inline, copied, announced, handed over. */
static void item_send(struct weft_port *from, weft_id to, struct item *it, uint64_t i)
{
	static const size_t len[KINDS] = { 8, 200, 8192, LARGE, 100000, 8, 64 };
	static const uint32_t flags[KINDS] = { 0, 0, 0, 0, 0, WEFT_SYNC, WEFT_RENDEZVOUS };
	unsigned kind = (unsigned)(i % KINDS);
	struct weft_buf *buf = NULL;
	int r;

	it->len = len[kind];
	if (kind == 4) {
		MUST_OK(weft_buf_get(it->len, 0, &buf));
		memcpy(buf->data, &i, sizeof(i));
		r = weft_send_post(from, WEFT(op, .peer = to, .tag = i, .buf = buf), &it->req);
	} else {
		it->mem = memory(it->len);
		memcpy(it->mem, &i, sizeof(i));
		r = weft_send_post(from, WEFT(op, .flags = flags[kind], .peer = to, .tag = i, .data = it->mem,
					      .len = it->len), &it->req);
	}
	MUST(r == 0 || r == WEFT_DONE);
	CHECK((r == WEFT_DONE) == (it->req == NULL));
}

TEST(from_one_port_to_one_port_messages_keep_their_order)
{
	uint64_t n = 100 * KINDS, got;
	unsigned char *mem = memory(100000);
	struct item *items = memory(n * sizeof(*items));
	struct weft_status st;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (uint64_t i = 0; i < n; i++)
		item_send(from, port_id(to), &items[i], i);
	for (uint64_t i = 0; i < n; i++) {
		MUST_OK(weft_recv(to, WEFT_ANY, WEFT_ANY_TAG, mem, 100000, SOON, &st));
		memcpy(&got, mem, sizeof(got));
		CHECK_EQ(got, i);
		CHECK_EQ(st.tag, i);
		CHECK_EQ(st.len, items[i].len);
		CHECK(st.from == port_id(from));
	}
	CHECK_NOTHING(to, WEFT_ANY, WEFT_ANY_TAG);
	for (uint64_t i = 0; i < n; i++) {
		CHECK_OK(weft_req_wait(&items[i].req, SOON, NULL));
		free(items[i].mem);
	}
	ports_close(from, to);
	job_end();
	free(items);
	free(mem);
}

TEST(two_threads_taking_turns_under_a_mutex_through_one_source_port_keep_one_order)
{
	uint64_t n = test_scaled(1000000);
	pthread_t thread[2];

	job_begin(0);
	struct turns t = { .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER,
			   .from = port_new(0), .to = weft_self(), .end = n };
	for (int i = 0; i < 2; i++)
		thread[i] = thread_start(turns_take, &t);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t got = n;

		MUST_OK(weft_recv(NULL, port_id(t.from), 1, &got, sizeof(got), SOON, NULL));
		MUST_EQ(got, i);
	}
	for (int i = 0; i < 2; i++)
		thread_join(thread[i]);
	CHECK_OK(weft_port_close(t.from, SOON));
	job_end();
}

TEST(two_threads_taking_turns_keep_one_order_also_with_a_full_mailbox)
{
	enum { ROUND = 20000 };
	uint64_t n = test_scaled(1000000);

	job_begin(0);
	struct turns t = { .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER,
			   .from = port_new(0), .to = weft_self() };
	t.numbers = memory(n * sizeof(uint64_t));
	for (uint64_t i = 0; i < n; i++)
		t.numbers[i] = i;
	for (uint64_t i = 0; i < n; ) {
		uint64_t end = i + ROUND < n ? i + ROUND : n;

		/* Nobody receives while they send: the mailbox is full for most of the round. */
		t.end = end;
		turns_run(&t);
		for (; i < end; i++) {
			uint64_t got = n;

			MUST_OK(weft_recv(NULL, WEFT_ANY, 1, &got, sizeof(got), SOON, NULL));
			MUST_EQ(got, i);
		}
	}
	CHECK_OK(weft_port_close(t.from, SOON));
	job_end();
	free(t.numbers);
}

struct one_send {
	struct weft_port *from;
	weft_id to;
	uint64_t *number;
};

static void one_send_post(void *arg)
{
	struct one_send *s = arg;
	int r = send_post(s->from, 0, s->to, 1, s->number, 8, NULL);

	MUST(r == 0 || r == WEFT_DONE);
}

TEST(the_order_is_that_of_the_send_calls_whichever_threads_made_them)
{
	enum { MATES = 4, N = 2000 };
	uint64_t numbers[N];
	struct mate mates[MATES];
	uint64_t seed = test_seed;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < MATES; i++)
		mate_start(&mates[i]);
	for (uint64_t i = 0; i < N; i++) {
		struct one_send s = { from, port_id(to), &numbers[i] };

		numbers[i] = i;
		mate_run(&mates[test_random(&seed) % MATES], one_send_post, &s);
	}
	for (uint64_t i = 0; i < N; i++)
		CHECK_NEXT(to, port_id(from), 1, i);
	for (int i = 0; i < MATES; i++)
		mate_stop(&mates[i]);
	ports_close(from, to);
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
		MUST_OK(weft_send(NULL, s->to, i % 3, &i, sizeof(i), SOON));
	/* Its own port must outlive what it sent. */
	uint64_t enough;
	CHECK_OK(weft_recv(NULL, s->to, 9, &enough, sizeof(enough), SOON, NULL));
	return NULL;
}

TEST(each_of_several_sources_keeps_its_own_order_and_every_message_arrives_once)
{
	enum { SOURCES = 4 };
	struct source s = { .count = test_scaled(50000) };
	pthread_t thread[SOURCES];
	weft_id who[SOURCES] = { 0 };
	uint64_t next[SOURCES] = { 0 }, got, zero = 0;
	struct weft_status st;

	job_begin(0);
	s.to = weft_self();
	for (int i = 0; i < SOURCES; i++)
		thread[i] = thread_start(source_main, &s);
	for (uint64_t i = 0; i < s.count * SOURCES; i++) {
		int k = 0;

		MUST_OK(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, &got, sizeof(got), SOON, &st));
		while (k < SOURCES && who[k] && who[k] != st.from)
			k++;
		MUST(k < SOURCES);
		who[k] = st.from;
		CHECK_EQ(got, next[k]);
		CHECK_EQ(st.tag, got % 3);
		next[k]++;
	}
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	for (int i = 0; i < SOURCES; i++)
		CHECK_OK(weft_send(NULL, who[i], 9, &zero, sizeof(zero), SOON));
	for (int i = 0; i < SOURCES; i++)
		thread_join(thread[i]);
	job_end();
}

TEST(what_comes_behind_a_waiting_message_waits_behind_it_even_when_there_is_room_again)
{
	uint64_t waits = 1000, behind = 1001;

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	uint64_t n = mailbox_fill(from, port_id(to), 1);
	CHECK_EQ(send_post(from, 0, port_id(to), 1, &waits, 8, NULL), 0);
	/* Half of it is taken: there is room again. */
	for (uint64_t i = 0; i < n / 2; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK(send_post(from, 0, port_id(to), 1, &behind, 8, NULL) >= 0);
	for (uint64_t i = n / 2; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	CHECK_NEXT(to, WEFT_ANY, 1, waits);
	CHECK_NEXT(to, WEFT_ANY, 1, behind);
	ports_close(from, to);
	job_end();
}

TEST(a_full_mailbox_delays_only_what_goes_there)
{
	uint64_t waits = 1000, passes = 1001;
	struct weft_req *req = NULL;

	job_begin(0);
	struct weft_port *from = port_new(0), *full = port_new(0), *other = port_new(0);
	uint64_t n = mailbox_fill(from, port_id(full), 1);
	CHECK_EQ(send_post(from, 0, port_id(full), 1, &waits, 8, &req), 0);
	CHECK_EQ(send_post(from, 0, port_id(other), 1, &passes, 8, NULL),
		 WEFT_DONE);
	CHECK_NEXT(other, WEFT_ANY, 1, passes);
	CHECK_EQ(weft_req_peek(req, NULL), -EAGAIN);
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(full, WEFT_ANY, 1, i);
	CHECK_NEXT(full, WEFT_ANY, 1, waits);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_OK(weft_port_close(from, SOON));
	CHECK_OK(weft_port_close(full, SOON));
	CHECK_OK(weft_port_close(other, SOON));
	job_end();
}

static void prio_post(struct weft_port *from, weft_id to, int8_t prio, uint64_t *number)
{
	struct weft_op op = {
		.size = sizeof(op), .peer = to, .tag = 1, .prio = prio, .data = number, .len = 8
	};
	int r = weft_send_post(from, &op, NULL);

	CHECK(r == 0 || r == WEFT_DONE);
}

TEST(priority_orders_what_waits_to_enter_a_full_mailbox)
{
	static const int8_t prio[] = { -4, -4, 0, 3, 0, -1, 3, -4, 1, 0, 3 };
	enum { N = sizeof(prio) };
	uint64_t numbers[N];

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	uint64_t n = mailbox_fill(from, port_id(to), 1);
	for (uint64_t i = 0; i < N; i++) {
		numbers[i] = 1000 + i;
		prio_post(from, port_id(to), prio[i], &numbers[i]);
	}
	/* What is in the mailbox already stays first; then the urgent, each class in its order. */
	for (uint64_t i = 0; i < n; i++)
		CHECK_NEXT(to, WEFT_ANY, 1, i);
	for (int class = 3; class >= -4; class--)
		for (int i = 0; i < N; i++)
			if (prio[i] == class)
				CHECK_NEXT(to, WEFT_ANY, 1, numbers[i]);
	ports_close(from, to);
	job_end();
}

TEST(priority_never_orders_what_is_in_the_mailbox)
{
	static const int8_t prio[] = { -4, 3, 0, -1, 2 };
	uint64_t numbers[] = { 0, 1, 2, 3, 4 };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int i = 0; i < 5; i++)
		prio_post(from, port_id(to), prio[i], &numbers[i]);
	for (uint64_t i = 0; i < 5; i++)
		CHECK_NEXT(to, WEFT_ANY, WEFT_ANY_TAG, i);
	ports_close(from, to);
	job_end();
}

TEST(priority_never_orders_matching)
{
	uint64_t low = 1, high = 2, first = 0, second = 0;
	struct weft_req *req[2] = { NULL };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	/* Receives are served in the order they were posted ... */
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &first, 8, &req[0]));
	MUST_OK(recv_post(to, 0, WEFT_ANY, 1, &second, 8, &req[1]));
	prio_post(from, port_id(to), -4, &low);
	prio_post(from, port_id(to), 3, &high);
	CHECK_OK(weft_req_wait(&req[0], SOON, NULL));
	CHECK_OK(weft_req_wait(&req[1], SOON, NULL));
	CHECK_EQ(first, low);
	CHECK_EQ(second, high);
	/* ... and unexpected messages in the order they came. */
	prio_post(from, port_id(to), -4, &low);
	prio_post(from, port_id(to), 3, &high);
	CHECK_NOTHING(to, WEFT_ANY, 7);
	CHECK_NEXT(to, WEFT_ANY, 1, low);
	CHECK_NEXT(to, WEFT_ANY, 1, high);
	ports_close(from, to);
	job_end();
}

TEST(the_earlier_posted_of_two_matching_receives_gets_the_message_wildcard_or_not)
{
	uint64_t a = 1, b = 2, any = 0, exact = 0;
	struct weft_req *req[2] = { NULL };

	job_begin(0);
	struct weft_port *from = port_new(0), *to = port_new(0);
	for (int wild_first = 0; wild_first < 2; wild_first++) {
		for (int i = 0; i < 2; i++)
			if (i == !wild_first)
				MUST_OK(recv_post(to, 0, WEFT_ANY, WEFT_ANY_TAG, &any, 8, &req[0]));
			else
				MUST_OK(recv_post(to, 0, port_id(from), 1, &exact, 8, &req[1]));
		CHECK_OK(weft_send(from, port_id(to), 1, &a, 8, SOON));
		CHECK_OK(weft_send(from, port_id(to), 1, &b, 8, SOON));
		CHECK_OK(weft_req_wait(&req[0], SOON, NULL));
		CHECK_OK(weft_req_wait(&req[1], SOON, NULL));
		CHECK_EQ(any, wild_first ? a : b);
		CHECK_EQ(exact, wild_first ? b : a);
	}
	ports_close(from, to);
	job_end();
}

TEST_MAIN
