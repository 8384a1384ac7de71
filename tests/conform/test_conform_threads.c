/* test_conform_threads.c - lanes are closed, written to and taken back by other threads than the one that polls. */
#include "conform.h"

struct poller {
	struct side *side;
	_Atomic bool stop;
	pthread_t thread;
};

static void *poll_on(void *arg)
{
	struct poller *p = arg;
	int r;

	while (!atomic_load(&p->stop)) {
		r = wf_rail_poll(p->side->rail, 64, 0);
		MUST(r >= 0 || r == -EBUSY);
		if (r <= 0)
			sched_yield();
	}
	return NULL;
}

static void poller_start(struct poller *p, struct side *side)
{
	p->side = side;
	atomic_store(&p->stop, false);
	MUST_OK(pthread_create(&p->thread, NULL, poll_on, p));
}

static void poller_stop(struct poller *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
}

/* Two rails, each with a thread that polls. */
struct rig {
	struct side a, b;
	struct poller at_a, at_b;
};

static void wait_for_int(_Atomic int *what)
{
	weft_time late = weft_now() + 20 * WEFT_S;

	while (!atomic_load(what) && weft_now() < late)
		sched_yield();
	CHECK(atomic_load(what));
}

static struct end *open_here(struct side *a, struct side *b)
{
	weft_time late = weft_now() + 20 * WEFT_S;
	struct end *e = end_new(a);
	int r;

	e->opener = true;
	do {                            /* a listener may be too busy for one more */
		r = wf_lane_open(a->rail, &b->rail->info.addr, WEFT_LANE_BULK, e, &e->lane);
		sched_yield();
	} while (r == -ECONNREFUSED && weft_now() < late);
	MUST_OK(r);
	return e;
}

TEST(a_lane_is_written_by_one_thread_while_another_polls)
{
	enum { TOTAL = 4 << 20 };
	struct side a, b;
	struct poller at_a, at_b;
	weft_time late = weft_now() + 60 * WEFT_S;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_BULK);
	e->other->eating = EAT_RANDOM;
	e->other->expect = TOTAL;
	poller_start(&at_a, &a);
	poller_start(&at_b, &b);
	while (e->out < TOTAL && weft_now() < late) {
		ssize_t r = end_send(e, TOTAL - e->out < 50000 ? (size_t)(TOTAL - e->out) : 50000, 0);

		MUST(r > 0 || r == -EAGAIN);
		if (r < 0) {
			int seen = e->writables, retries = a.retries;

			/* after -EAGAIN somebody says when to go on */
			while (e->writables == seen && a.retries == retries && !e->downs && weft_now() < late) {
				r = end_send(e, 1, 0);
				if (r == 1)
					break;
				sched_yield();
			}
		}
	}
	while (atomic_load(&e->other->in) < TOTAL && weft_now() < late)
		sched_yield();
	poller_stop(&at_a);
	poller_stop(&at_b);
	CHECK_EQ(e->other->in, TOTAL);
	CHECK_EQ(e->other->wrong, 0);
	side_close(&a);
	side_close(&b);
}

/* Bytes flow in both directions; in the middle one thread closes the lane: when it returns no upcall of it runs or comes (side_close looks). */
TEST(a_busy_lane_is_closed_by_another_thread)
{
	struct side a, b;
	struct poller at_a, at_b;

	pair_open(&a, &b);
	poller_start(&at_a, &a);
	poller_start(&at_b, &b);
	b.slow = true;
	for (uint64_t i = 0; i < test_scaled(200); i++) {
		uint64_t random = test_seed + i;
		struct end *e = open_here(&a, &b), *to;
		unsigned char hello[HELLO] = { 0 };

		wait_for_int(&e->ups);
		memcpy(hello, &e->number, sizeof(e->number));
		for (size_t at = 0; at < HELLO;) {
			ssize_t r = end_write(e, hello + at, HELLO - at, 0);

			at += r > 0 ? (size_t)r : 0;
		}
		for (uint64_t k = test_random(&random) % 60; k; k--)
			end_send(e, 1 + test_random(&random) % 20000, 0);
		to = e->other;
		if (to && i % 2)                /* it may be in the middle of take() */
			end_close(to);
		end_close(e);
		if (atomic_load(&a.ends) > ENDS - 8)
			break;
	}
	for (uint32_t i = 0; i < atomic_load(&b.ends); i++)
		if (i % 2)
			end_close(b.end[i]);
	b.slow = false;
	poller_stop(&at_a);
	poller_stop(&at_b);
	side_close(&a);
	side_close(&b);
}

static void *open_and_close(void *arg)
{
	struct rig *rig = arg;

	for (uint64_t i = 0; i < test_scaled(100); i++) {
		struct end *e = open_here(&rig->a, &rig->b);

		if (i % 2)
			wait_for_int(&e->ups);
		end_close(e);
	}
	return NULL;
}

TEST(threads_open_and_close_lanes_at_the_same_time)
{
	static struct rig rig;
	pthread_t thread[3];

	pair_open(&rig.a, &rig.b);
	poller_start(&rig.at_a, &rig.a);
	poller_start(&rig.at_b, &rig.b);
	for (int i = 0; i < 3; i++)
		MUST_OK(pthread_create(&thread[i], NULL, open_and_close, &rig));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	poller_stop(&rig.at_a);
	poller_stop(&rig.at_b);
	side_close(&rig.a);
	side_close(&rig.b);
}

/* When need_drop returns the memory is the caller's: it scribbles there, and nothing overwrites it before the next need is given. */
TEST(a_need_is_taken_back_by_another_thread)
{
	struct side a, b;
	struct poller at_b;
	struct end *e;
	weft_time late = weft_now() + 60 * WEFT_S;

	pair_open(&a, &b);
	if (!is_stream(&a)) {
		side_close(&a);
		side_close(&b);
		SKIP("lanes carry frames");
	}
	e = cable(&a, &b, WEFT_LANE_BULK);
	e->other->eating = EAT_NEED;
	e->other->need_size = 256 * KIB;
	poller_start(&at_b, &b);
	for (uint64_t i = 0; i < test_scaled(500) && weft_now() < late; i++) {
		for (int k = 0; k < 3; k++)
			end_send(e, 1 + (size_t)i * 37 % 30000, 0);
		wf_lane_need_drop(b.rail, e->other->lane);
		pump(&a, NULL);
	}
	while (arrived(&b) < e->out + HELLO && weft_now() < late)
		sched_yield();
	poller_stop(&at_b);
	wf_lane_need_drop(b.rail, e->other->lane);
	e->other->eating = EAT_ALL;
	carry(e, 1000, 100);
	CHECK(e->other->placed > 0);
	side_close(&a);
	side_close(&b);
}

CONFORM_MAIN
