/* test_verdict.c - which host is given up, of those that hear nothing of each other. */
#include "cmd/verdict.h"

#include "test.h"

#define SILENCE INT64_C(1000)
#define PUT_OFF VERDICT_PUT_OFF(SILENCE)
#define NOBODY UINT32_MAX

static struct verdict v;

/* Hosts 0 to @count - 1, of which 0 serves. */
static void begin(uint32_t count)
{
	memset(&v, 0, sizeof(v));
	v.put_off = PUT_OFF;
	for (uint32_t h = 0; h < count; h++)
		verdict_in(&v, h, true);
	verdict_server(&v, 0);
}

/* The one that serves and @host have heard each other. */
static void sound(uint32_t host, int64_t now)
{
	verdict_heard(&v, v.server, host, now);
	verdict_heard(&v, host, v.server, now);
}

static uint32_t given_up(int64_t now)
{
	uint32_t host = NOBODY;

	return verdict_look(&v, now, &host) ? host : NOBODY;
}

TEST(nobody_is_judged_when_nobody_complains)
{
	begin(4);
	CHECK_EQ(verdict_next(&v, 0), 0);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);
}

TEST(a_host_that_stays_silent_is_given_up_when_its_time_has_come_and_not_before)
{
	begin(4);
	CHECK(verdict_silent(&v, 0, 2, 100));
	CHECK(!verdict_silent(&v, 2, 0, 105));
	CHECK_EQ(verdict_next(&v, 0), 100 + PUT_OFF);
	sound(3, 110);
	CHECK_EQ(given_up(100 + PUT_OFF - 1), NOBODY);
	CHECK_EQ(given_up(100 + PUT_OFF), 2);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);
	CHECK_EQ(verdict_next(&v, 0), 0);
}

TEST(who_complains_of_the_serving_host_alone_is_the_one_to_go)
{
	begin(4);
	verdict_silent(&v, 3, 0, 100);
	sound(1, 130);
	CHECK_EQ(given_up(100 + PUT_OFF), 3);
}

TEST(one_that_was_heard_again_before_is_not_given_up)
{
	begin(4);
	verdict_silent(&v, 0, 2, 100);
	verdict_silent(&v, 3, 0, 110);
	verdict_heard(&v, 0, 2, 105);
	CHECK_EQ(verdict_next(&v, 0), 110 + PUT_OFF);
	verdict_heard(&v, 3, 0, 115);
	CHECK_EQ(verdict_next(&v, 0), 0);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);
	verdict_silent(&v, 0, 2, 1000);         /* and has all its time the next time */
	CHECK_EQ(verdict_next(&v, 0), 1000 + PUT_OFF);
}

TEST(one_way_that_works_again_is_not_enough)
{
	begin(4);
	verdict_silent(&v, 0, 2, 100);
	verdict_silent(&v, 2, 0, 120);
	verdict_heard(&v, 0, 2, 125);
	sound(1, 130);
	CHECK_EQ(given_up(100 + PUT_OFF), 2);
}

TEST(each_has_its_own_time)
{
	begin(4);
	verdict_silent(&v, 0, 2, 100);
	verdict_silent(&v, 0, 1, 200);
	sound(3, 205);
	CHECK_EQ(given_up(100 + PUT_OFF), 2);
	CHECK_EQ(given_up(100 + PUT_OFF), NOBODY);
	CHECK_EQ(verdict_next(&v, 0), 200 + PUT_OFF);
	verdict_heard(&v, 0, 1, 210);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);
}

TEST(a_serving_host_that_gets_on_with_nobody_is_given_up_itself)
{
	begin(4);
	verdict_silent(&v, 1, 0, 100);          /* stopped: it says nothing */
	verdict_silent(&v, 2, 0, 110);
	verdict_silent(&v, 3, 0, 120);
	CHECK_EQ(given_up(100 + PUT_OFF), 0);
	verdict_server(&v, 1);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);

	begin(4);
	verdict_silent(&v, 0, 1, 100);          /* unplugged: it says so of all, and they of it */
	verdict_silent(&v, 0, 2, 100);
	verdict_silent(&v, 3, 0, 150);
	CHECK_EQ(given_up(100 + PUT_OFF), 0);
}

TEST(of_two_the_one_that_does_not_serve_goes_unless_the_other_says_nothing)
{
	begin(2);
	verdict_silent(&v, 0, 1, 100);
	verdict_silent(&v, 1, 0, 110);
	CHECK_EQ(given_up(110 + PUT_OFF), 1);

	begin(2);
	verdict_silent(&v, 1, 0, 100);
	CHECK_EQ(given_up(100 + PUT_OFF), 0);
}

TEST(nobody_is_given_up_before_a_third_vouches_for_the_serving_host)
{
	begin(4);
	sound(3, 90);                           /* that was before */
	verdict_silent(&v, 0, 2, 100);          /* unplugged itself, and the others are slow to notice */
	CHECK_EQ(given_up(100 + PUT_OFF), NOBODY);
	CHECK_EQ(verdict_next(&v, 100 + PUT_OFF), 100 + VERDICT_UNVOUCHED * PUT_OFF);
	verdict_heard(&v, 0, 1, 300);           /* one way is not enough */
	CHECK_EQ(given_up(400 + PUT_OFF), NOBODY);
	verdict_silent(&v, 1, 0, 900);
	verdict_silent(&v, 0, 3, 950);
	CHECK_EQ(given_up(960), 0);

	begin(4);
	verdict_silent(&v, 0, 2, 100);
	CHECK_EQ(given_up(99 + VERDICT_UNVOUCHED * PUT_OFF), NOBODY);
	CHECK_EQ(given_up(100 + VERDICT_UNVOUCHED * PUT_OFF), 2);
}

TEST(a_lost_host_does_not_count_as_one_that_hears_the_serving_one)
{
	begin(3);
	verdict_silent(&v, 1, 0, 100);
	verdict_in(&v, 2, false);
	CHECK_EQ(given_up(100 + PUT_OFF), 0);
}

TEST(two_that_do_not_serve_have_nothing_to_say_of_each_other)
{
	begin(4);
	verdict_silent(&v, 2, 3, 100);
	CHECK_EQ(verdict_next(&v, 0), 0);
	verdict_silent(&v, 0, 2, 100);
	verdict_heard(&v, 3, 2, 105);
	sound(1, 110);
	CHECK_EQ(given_up(100 + PUT_OFF), 2);
}

TEST(nonsense_is_not_taken)
{
	begin(4);
	verdict_silent(&v, 0, 4, 100);
	verdict_silent(&v, 4, 0, 100);
	verdict_silent(&v, 0, 0, 100);
	verdict_silent(&v, 0, UINT32_MAX, 100);
	verdict_heard(&v, 0, HOSTLIST_HOSTS, 100);
	verdict_in(&v, 2, false);
	verdict_silent(&v, 0, 2, 100);
	verdict_silent(&v, 2, 0, 100);
	CHECK_EQ(verdict_next(&v, 0), 0);
	CHECK_EQ(given_up(INT64_MAX), NOBODY);
}

TEST(whom_the_last_serving_host_did_not_hear_begins_anew_with_the_next)
{
	begin(4);
	verdict_silent(&v, 0, 2, 100);
	verdict_in(&v, 0, false);
	verdict_server(&v, 1);
	CHECK_EQ(verdict_next(&v, 0), 0);
	verdict_silent(&v, 1, 2, 500);
	sound(3, 510);
	CHECK_EQ(given_up(500 + PUT_OFF), 2);
}

TEST(all_of_it_falls_within_the_time_that_was_asked_for)
{
	CHECK(VERDICT_COMPLAIN(SILENCE) * 20 >= SILENCE * 12 - 20);
	CHECK(VERDICT_COMPLAIN(SILENCE) + VERDICT_PUT_OFF(SILENCE) <= SILENCE);
	CHECK(VERDICT_PUT_OFF(SILENCE) > 2 * VERDICT_BEAT(SILENCE));    /* those who notice do so within one */
	CHECK(VERDICT_ALONE(SILENCE) > SILENCE * 12 / 20 + VERDICT_BEAT(SILENCE));      /* who was stopped for three fifths was last heard a beat before */
	CHECK_EQ(VERDICT_ALONE(SILENCE), VERDICT_COMPLAIN(SILENCE) + VERDICT_PUT_OFF(SILENCE));
}

TEST_MAIN
