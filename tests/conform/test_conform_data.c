/* test_conform_data.c - what is sent on a lane arrives: every byte, in order, wherever it was needed. */
#include <poll.h>

#include "conform.h"

TEST(a_lane_carries_bytes_both_ways)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	carry(e, 100000, 5000);
	carry(e->other, 100000, 5000);
	side_close(&a);
	side_close(&b);
}

TEST(every_size_arrives)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	for (size_t n = 1; n < 300; n++)
		carry(e, n, n);
	for (size_t n = 512; n <= 256 * KIB; n *= 2)
		for (int d = -1; d <= 1; d++)
			carry(e, n + (size_t)d, n + (size_t)d);
	CHECK_EQ(e->out, e->other->in);
	side_close(&a);
	side_close(&b);
}

/* Some drivers do so; of the others nothing else is asked than that it all arrives. */
TEST(bytes_may_be_read_to_where_they_might_belong)
{
	uint64_t random = test_seed, aheads = 0, again = 0;
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	e->other->eating = EAT_AHEAD;
	for (uint64_t i = 0; i < test_scaled(300); i++) {
		size_t n = 1 + test_random(&random) % (test_random(&random) % 2 ? 400 : 200000);

		carry(e, n, 1 + test_random(&random) % n);
	}
	aheads = e->other->aheads;
	again = e->other->again;
	printf("# read ahead %llu times, told again %llu times\n", (unsigned long long)aheads, (unsigned long long)again);
	CHECK(strcmp(e->side->rail->name, "tcp:lo") || (aheads > 20 && again > 5));
	side_close(&a);
	side_close(&b);
}

TEST(nothing_can_be_sent)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	CHECK_EQ(end_send(e, 0, 0), 0);
	carry(e, 10, 10);
	side_close(&a);
	side_close(&b);
}

TEST(random_chunks_arrive_byte_by_byte_wherever_they_are_needed)
{
	uint64_t random = test_seed;
	struct side a, b;

	pair_open(&a, &b);
	for (uint64_t i = 0; i < test_scaled(20); i++) {
		struct end *e = cable(&a, &b, i % 3 ? WEFT_LANE_BULK : WEFT_LANE_HEAD);

		e->eating = e->other->eating = EAT_RANDOM;
		e->other->need_size = (size_t)1 << (3 + test_random(&random) % 18);
		carry(e, 1 + test_random(&random) % (2 * MIB), 1 + test_random(&random) % (128 * KIB));
		carry(e->other, 1 + test_random(&random) % (256 * KIB), 1 + test_random(&random) % (128 * KIB));
		end_close(e->other);
		end_close(e);
	}
	side_close(&a);
	side_close(&b);
}

TEST(many_lanes_at_once_do_not_mix)
{
	enum { N = 16 };
	struct side a, b;
	struct end *e[N];
	bool open = true;
	weft_time late = weft_now() + 60 * WEFT_S;

	pair_open(&a, &b);
	for (int i = 0; i < N; i++) {
		e[i] = cable(&a, &b, i % 3);
		e[i]->other->eating = EAT_RANDOM;
		e[i]->other->expect = 300000;
	}
	while (open && weft_now() < late) {
		open = false;
		for (int i = 0; i < N; i++) {
			if (e[i]->out < 300000)
				end_send(e[i], (size_t)(300000 - e[i]->out) < 7777 ? (size_t)(300000 - e[i]->out) : 7777, 0);
			open |= e[i]->other->in < 300000;
		}
		pump(&a, &b);
	}
	for (int i = 0; i < N; i++) {
		CHECK_EQ(e[i]->other->in, 300000);
		CHECK_EQ(e[i]->other->wrong, 0);
	}
	side_close(&a);
	side_close(&b);
}

TEST(tiny_and_huge_needs_are_filled_straight)
{
	static const size_t sizes[] = { 1, 2, 7, 100, 4096, 65536, 1 << 20, 16 << 20 };
	struct side a, b;

	pair_open(&a, &b);
	if (!is_stream(&a)) {
		side_close(&a);
		side_close(&b);
		SKIP("lanes carry frames");
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct end *e = cable(&a, &b, WEFT_LANE_BULK);

		e->other->eating = EAT_NEED;
		e->other->need_size = sizes[i];
		carry(e, sizes[i] < 1000 ? 20 * sizes[i] + 1 : 2 * sizes[i] + 77, 256 * KIB);
		CHECK_EQ(e->other->needs, e->other->placed);
		CHECK(e->other->needs >= 2);
		end_close(e->other);
		end_close(e);
	}
	side_close(&a);
	side_close(&b);
}

TEST(what_take_leaves_comes_again_in_front_of_the_rest)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	if (!is_stream(&a)) {
		side_close(&a);
		side_close(&b);
		SKIP("lanes carry frames");
	}
	e = cable(&a, &b, WEFT_LANE_HEAD);
	e->other->eating = EAT_NOTHING;
	for (size_t sum = 0; sum < 64 * KIB; sum += 4096) {
		size_t at = 0;

		while (at < 4096) {
			ssize_t r = end_send(e, 4096 - at, 0);

			MUST(r > 0 || r == -EAGAIN);
			at += r > 0 ? (size_t)r : 0;
			pump(&a, &b);
		}
		PUMP_UNTIL(&a, &b, e->other->left == sum + 4096);
	}
	e->other->eating = EAT_ALL;
	carry(e, 1, 1);
	CHECK_EQ(e->other->in, 64 * KIB + 1);
	side_close(&a);
	side_close(&b);
}

TEST(who_leaves_more_than_can_be_held_loses_the_lane)
{
	struct side a, b;
	struct end *e;
	weft_time late = weft_now() + 20 * WEFT_S;

	pair_open(&a, &b);
	if (!is_stream(&a)) {
		side_close(&a);
		side_close(&b);
		SKIP("lanes carry frames");
	}
	CHECK(a.rail->info.hold >= 68 * KIB);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	e->other->eating = EAT_NOTHING;
	while (!e->other->downs && weft_now() < late) {
		end_send(e, 8192, 0);
		pump(&a, &b);
	}
	CHECK_EQ(e->other->downs, 1);
	CHECK_EQ(e->other->err, -EMSGSIZE);
	side_close(&a);
	side_close(&b);
}

TEST(a_need_that_is_dropped_tells_what_had_come)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	if (!is_stream(&a)) {
		side_close(&a);
		side_close(&b);
		SKIP("lanes carry frames");
	}
	e = cable(&a, &b, WEFT_LANE_BULK);
	e->other->eating = EAT_NEED;
	e->other->need_size = 1 * MIB;
	e->other->expect = UINT64_MAX;
	send_all(e, 1);
	PUMP_UNTIL(&a, &b, e->other->needs == 1);
	for (int i = 0; i < 50; i++) {
		uint64_t placed = e->other->placed, told;

		send_all(e, 1 + (size_t)i * 500);
		PUMP_UNTIL(&a, &b, arrived(&b) >= e->out + HELLO);
		told = e->out;
		wf_lane_need_drop(b.rail, e->other->lane);
		CHECK_EQ(e->other->placed, placed);                     /* only a poll tells */
		send_all(e, 1);
		PUMP_UNTIL(&a, &b, e->other->placed > placed);
		CHECK_EQ(e->other->placed, placed + 1);
		CHECK_EQ(e->other->in, told);
	}
	wf_lane_need_drop(b.rail, e->other->lane);
	CHECK_EQ(e->other->wrong, 0);
	e->other->eating = EAT_ALL;
	e->other->expect = 0;
	carry(e, 5000, 1000);
	side_close(&a);
	side_close(&b);
}

TEST(a_reader_that_does_not_read_stops_the_writer_until_it_does)
{
	struct side a, b;
	struct end *e;
	weft_time late = weft_now() + 30 * WEFT_S;
	uint64_t before;
	ssize_t r = 0;

	pair_open(&a, &b);
	if (!(a.rail->driver->slots.caps & WEFT_DRIVER_PROGRESS)) {
		side_close(&a);
		side_close(&b);
		SKIP("moves on by polls only");
	}
	e = cable(&a, &b, WEFT_LANE_BULK);
	do {                                    /* until the first send that is short; nobody asks again after that */
		before = e->out;
		r = end_send(e, 256 * KIB, 0);
	} while (r > 0 && (!is_stream(&a) || e->out - before == 256 * KIB) && weft_now() < late);
	CHECK(r > 0 || r == -EAGAIN);
	CHECK(e->out < 64 * MIB);               /* bounded, by whatever the kernel gives a socket */
	e->other->expect = e->out;
	PUMP_UNTIL(&a, &b, e->writables > 0);
	PUMP_UNTIL(&a, &b, e->other->in == e->out);
	carry(e, 1 * MIB, 128 * KIB);
	side_close(&a);
	side_close(&b);
}

/* @n bytes one by one, the receiver looking all the time. */
static void look_for(struct end *e, int n, unsigned flags)
{
	weft_time late = weft_now() + 30 * WEFT_S;
	struct side *to = e->other->side;

	while (n--) {
		send_all(e, 1);
		while (e->other->in < e->out && weft_now() < late)
			CHECK(wf_rail_poll(to->rail, 64, flags) >= 0);
	}
	CHECK_EQ(e->other->in, e->out);
}

static void spin(struct end *e, int n)
{
	look_for(e, n, WEFT_POLL_SPIN);
}

/* A pair whose rails have descriptors. False: they have none, and it is closed again. */
static bool pair_sleeps(struct side *a, struct side *b)
{
	pair_open(a, b);
	if (b->rail->fd >= 0)
		return true;
	side_close(a);
	side_close(b);
	return false;
}

/* A driver may look at a busy lane by other means than at the rest: what comes is heard all the same, also by who sleeps, and writing goes on. */
TEST(a_thread_that_spun_on_a_lane_can_sleep_and_others_are_heard)
{
	struct side a, b;
	struct end *e, *f;
	weft_time late = weft_now() + 30 * WEFT_S;

	if (!pair_sleeps(&a, &b))
		SKIP("no descriptor to sleep on");
	e = cable(&a, &b, WEFT_LANE_HEAD);
	f = cable(&a, &b, WEFT_LANE_HEAD);
	for (int round = 0; round < 3; round++) {
		spin(e, 300);
		spin(f, round);                         /* another one in between */
		spin(e, 100);
		while (wf_rail_arm(b.rail) == 1)
			pump(&b, NULL);
		send_byte(round % 2 ? e : f);
		while ((e->other->in < e->out || f->other->in < f->out) && weft_now() < late) {
			CHECK_EQ(poll(&(struct pollfd){ .fd = b.rail->fd, .events = POLLIN }, 1, 2000), 1);   /* the byte is there already */
			pump(&b, NULL);
		}
		spin(e, 200);
		end_close(round == 1 ? e : NULL);       /* the busy one goes */
		if (round == 1) {
			PUMP_UNTIL(&a, &b, e->other->downs == 1);
			e = cable(&a, &b, WEFT_LANE_HEAD);
		}
	}
	spin(e, 200);
	for (int quiet = 0; quiet < 50 && weft_now() < late;) { /* and now the other way, until it is full */
		quiet = end_send(e->other, 64 * KIB, 0) > 0 ? 0 : quiet + 1;
		CHECK(wf_rail_poll(b.rail, 64, WEFT_POLL_SPIN) >= 0);
		usleep(quiet ? 200 : 0);
	}
	e->expect = e->other->out;
	PUMP_UNTIL(&a, &b, e->in == e->other->out && (e->other->writables > 0));
	CHECK_EQ(e->wrong, 0);
	side_close(&a);
	side_close(&b);
}

/* One thread sleeps on the descriptor, armed, and others look now and then: it hears what comes after. */
TEST(looks_that_do_not_spin_leave_the_descriptor_armed)
{
	struct side a, b;
	struct end *e, *f;

	if (!pair_sleeps(&a, &b))
		SKIP("no descriptor to sleep on");
	e = cable(&a, &b, WEFT_LANE_HEAD);
	f = cable(&a, &b, WEFT_LANE_HEAD);
	for (int round = 0; round < 4; round++) {
		spin(e, 100 * (round / 2));
		while (wf_rail_arm(b.rail) == 1)
			pump(&b, NULL);
		look_for(e, 300, 0);
		look_for(f, round % 2, 0);
		look_for(e, 100 * (round % 2), 0);
		send_byte(e);
		CHECK_EQ(poll(&(struct pollfd){ .fd = b.rail->fd, .events = POLLIN }, 1, 2000), 1);
		PUMP_UNTIL(&a, &b, e->other->in == e->out && f->other->in == f->out);
	}
	side_close(&a);
	side_close(&b);
}

CONFORM_MAIN
