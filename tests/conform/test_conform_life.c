/* test_conform_life.c - rails and lanes open and end; each end is told once; nothing is left behind. */
#include <malloc.h>
#include <sys/resource.h>

#include "conform.h"

TEST(a_rail_opens_says_what_it_is_and_closes)
{
	int before = descriptors();
	struct side a;

	side_open(&a);
	CHECK(a.rail->info.addr.len > 0 && a.rail->info.addr.len <= WEFT_ADDR_BYTES);
	CHECK(a.rail->info.pieces >= 1);
	if (is_stream(&a))
		CHECK(a.rail->info.hold >= 68 * KIB);
	else
		CHECK(a.rail->info.frame >= 1024 && a.rail->info.rooms > 0);
	CHECK(a.rail->fd >= 0 || a.rail->info.poll_ns > 0);
	CHECK_EQ(wf_rail_poll(a.rail, 64, 0), 0);
	side_close(&a);
	CHECK_EQ(descriptors(), before);
}

TEST(options_that_make_no_sense_are_refused_and_leave_nothing)
{
	char options[64], name[32];
	const char *driver = strrchr(conform_name(), '/');
	int before = descriptors();
	struct side a;

	snprintf(name, sizeof(name), "%s", driver ? driver + 1 : conform_name());
	*strchrnul(name, ':') = 0;
	snprintf(options, sizeof(options), "%s.nonsense=1", name);
	CHECK_EQ(wf_rail_open(conform_name(), options, &conform_upcalls, conform_retry, &a, &a.rail), -EINVAL);
	CHECK(strstr(weft_last_error(), "nonsense"));
	MUST_OK(wf_rail_open(conform_name(), "stranger.nonsense=1", &conform_upcalls, conform_retry, &a, &a.rail));
	wf_rail_close(a.rail);
	CHECK_EQ(descriptors(), before);
}

TEST(an_address_that_is_none_is_refused)
{
	struct weft_addr bad = { .len = 3, .bytes = { 9, 9, 9 } };
	struct side a;
	void *lane = &a;

	side_open(&a);
	CHECK_EQ(wf_lane_open(a.rail, &bad, WEFT_LANE_HEAD, NULL, &lane), -EINVAL);
	bad.len = WEFT_ADDR_BYTES;
	CHECK_EQ(wf_lane_open(a.rail, &bad, WEFT_LANE_HEAD, NULL, &lane), -EINVAL);
	CHECK(lane == &a);
	side_close(&a);
}

TEST(a_lane_to_nobody_ends_with_an_error_once)
{
	struct side a, b;
	struct weft_addr gone;
	struct end *e;
	int r;

	side_open(&a);
	side_open(&b);
	gone = b.rail->info.addr;
	side_close(&b);
	a.other = &a;
	e = end_new(&a);
	r = wf_lane_open(a.rail, &gone, WEFT_LANE_HEAD, e, &e->lane);
	if (r < 0) {
		CHECK_EQ(r, -ECONNREFUSED);
		e->closing = true;
	} else {
		PUMP_UNTIL(&a, NULL, e->downs);
		CHECK_EQ(e->err, -ECONNREFUSED);
		CHECK_EQ(e->ups, 0);
		CHECK(end_send(e, 1, 0) < 0);
		for (int i = 0; i < 50; i++)
			pump(&a, NULL);
	}
	side_close(&a);
}

TEST(nothing_can_be_sent_before_up)
{
	struct side a, b;
	struct end *e;
	ssize_t r;

	pair_open(&a, &b);
	e = end_new(&a);
	e->opener = true;
	MUST_OK(wf_lane_open(a.rail, &b.rail->info.addr, WEFT_LANE_HEAD, e, &e->lane));
	r = end_write(e, "x", 1, 0);
	CHECK(e->ups ? r == 1 : r == -EAGAIN);
	PUMP_UNTIL(&a, &b, e->ups == 1);
	side_close(&a);
	side_close(&b);
}

TEST(the_other_end_closes_and_all_its_bytes_come_first)
{
	for (int how = 0; how < 4; how++) {
		struct side a, b;
		struct end *e;

		pair_open(&a, &b);
		e = cable(&a, &b, how % 2 ? WEFT_LANE_BULK : WEFT_LANE_HEAD);
		e->close_in_down = e->other->close_in_down = how >= 2;
		e->other->expect = 50000;
		while (e->out < 50000) {
			MUST(end_send(e, 50000 - (size_t)e->out, 0) != 0);
			pump(&a, &b);
		}
		if (!is_stream(&a))
			PUMP_UNTIL(&a, &b, e->other->in == 50000);
		end_close(e);
		PUMP_UNTIL(&a, &b, e->other->downs);
		CHECK_EQ(e->other->in, 50000);
		CHECK_EQ(e->other->err, 0);
		for (int i = 0; i < 20; i++)
			pump(&a, &b);
		CHECK_EQ(e->other->downs, 1);
		CHECK_EQ(e->downs, 0);          /* who closes is not told */
		side_close(&a);
		side_close(&b);
	}
}

TEST(a_lane_closed_with_bytes_unread_is_down_once_at_the_other_end)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	for (int i = 0; i < 100; i++)
		end_send(e, 1000, 0);
	end_close(e->other);                    /* never looked at them */
	PUMP_UNTIL(&a, &b, e->downs);
	CHECK_EQ(e->downs, 1);
	CHECK(end_send(e, 1, 0) < 0);
	for (int i = 0; i < 20; i++)
		pump(&a, &b);
	CHECK_EQ(e->downs, 1);
	side_close(&a);
	side_close(&b);
}

TEST(sending_to_a_closed_end_fails_and_down_still_comes_once)
{
	struct side a, b;
	struct end *e;
	weft_time late = weft_now() + 20 * WEFT_S;
	ssize_t r = 0;

	pair_open(&a, &b);
	e = cable(&a, &b, WEFT_LANE_HEAD);
	end_close(e->other);
	while ((r >= 0 || r == -EAGAIN) && weft_now() < late)
		r = end_send(e, 1000, 0);       /* without a poll that could tell */
	CHECK(r == -EPIPE || r == -ECONNRESET);
	PUMP_UNTIL(&a, &b, e->downs);
	for (int i = 0; i < 20; i++)
		pump(&a, &b);
	CHECK_EQ(e->downs, 1);
	side_close(&a);
	side_close(&b);
}

TEST(what_take_refuses_ends_the_lane_with_its_error)
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
	e->other->refuse = -EBADMSG;
	send_all(e, 1);
	PUMP_UNTIL(&a, &b, e->other->downs);
	CHECK_EQ(e->other->err, -EBADMSG);
	end_close(e->other);
	PUMP_UNTIL(&a, &b, e->downs);
	CHECK_EQ(e->downs, 1);
	side_close(&a);
	side_close(&b);
}

TEST(a_lane_may_be_closed_inside_its_own_upcall)
{
	struct side a, b;

	pair_open(&a, &b);
	for (int i = 0; i < 20 && is_stream(&a); i++) {
		struct end *e = cable(&a, &b, WEFT_LANE_HEAD);

		e->other->close_in_take = true;
		e->close_in_down = true;
		send_all(e, 1);
		PUMP_UNTIL(&a, &b, e->downs);
		CHECK(e->closed && e->other->closed);
	}
	side_close(&a);
	side_close(&b);
}

TEST(an_incoming_lane_may_be_refused)
{
	struct side a, b;
	struct end *e;

	pair_open(&a, &b);
	b.refuse_incoming = -EACCES;
	e = end_new(&a);
	e->opener = true;
	MUST_OK(wf_lane_open(a.rail, &b.rail->info.addr, WEFT_LANE_HEAD, e, &e->lane));
	PUMP_UNTIL(&a, &b, e->ups || e->downs);
	say_hello(e);
	PUMP_UNTIL(&a, &b, e->downs);
	CHECK_EQ(b.incomings, 1);
	CHECK_EQ(e->downs, 1);
	side_close(&a);
	side_close(&b);
}

static bool same_place(const struct weft_addr *x, const struct weft_addr *y)
{
	return x->len == y->len && memcmp(x->bytes, y->bytes, x->len) == 0;
}

/* Whichever rail of it they begin at, and of whichever class they are: else one that connects again and again is as many strangers as it likes. */
TEST(all_lanes_of_one_host_come_from_one_address)
{
	struct side at[3], *b = &at[2];         /* all of them on this host */
	struct weft_addr first;

	for (int i = 0; i < 3; i++)
		side_open(&at[i]);
	for (int i = 0; i < 12; i++) {
		struct side *a = &at[i % 3];
		struct end *e;

		a->other = b;
		b->other = a;
		e = cable(a, b, i / 3 % 3);
		MUST_EQ(b->incomings, i + 1);
		if (i == 0)
			first = b->from;
		CHECK(same_place(&b->from, &first));
		if (i % 2) {                    /* one that was there before is no other */
			end_close(e);
			PUMP_UNTIL(a, b, e->other->downs);
		}
	}
	b->refuse_incoming = -EACCES;           /* nor is one that is sent away */
	for (int i = 0; i < 2; i++) {
		struct end *e = end_new(&at[i]);

		memset(&b->from, 0, sizeof(b->from));
		e->opener = true;
		at[i].other = b;
		MUST_OK(wf_lane_open(at[i].rail, &b->rail->info.addr, WEFT_LANE_HEAD, e, &e->lane));
		PUMP_UNTIL(&at[i], b, e->ups || e->downs);
		say_hello(e);
		PUMP_UNTIL(&at[i], b, e->downs);
		CHECK(same_place(&b->from, &first));
	}
	for (int i = 0; i < 3; i++)
		side_close(&at[i]);
}

TEST(both_sides_may_open_at_the_same_moment)
{
	struct side a, b;

	pair_open(&a, &b);
	for (int i = 0; i < 10; i++) {
		struct end *x = end_new(&a), *y = end_new(&b);

		x->opener = y->opener = true;
		MUST_OK(wf_lane_open(a.rail, &b.rail->info.addr, WEFT_LANE_HEAD, x, &x->lane));
		MUST_OK(wf_lane_open(b.rail, &a.rail->info.addr, WEFT_LANE_HEAD, y, &y->lane));
		PUMP_UNTIL(&a, &b, x->ups && y->ups);
		say_hello(x);
		say_hello(y);
		PUMP_UNTIL(&a, &b, x->other && y->other);
		carry(x, 1000, 100);
		carry(y, 1000, 100);
		carry(x->other, 1000, 100);
	}
	side_close(&a);
	side_close(&b);
}

TEST(a_rail_can_reach_itself)
{
	struct side a;
	struct end *e;

	side_open(&a);
	a.other = &a;
	e = cable(&a, &a, WEFT_LANE_HEAD);
	carry(e, 10000, 1000);
	carry(e->other, 10000, 1000);
	side_close(&a);
}

/* As many as the machine lets us, up to a thousand. */
TEST(a_thousand_lanes_are_there_at_once)
{
	struct rlimit was, more;
	int before = descriptors(), n = 1000;
	struct side a, b;
	struct end **e;

	MUST_OK(getrlimit(RLIMIT_NOFILE, &was));
	more = was;
	more.rlim_cur = was.rlim_max < 4096 ? was.rlim_max : 4096;
	MUST_OK(setrlimit(RLIMIT_NOFILE, &more));
	if (more.rlim_cur < 2200)
		n = ((int)more.rlim_cur - 200) / 2;
	printf("# %d lanes\n", n);
	e = calloc((size_t)n, sizeof(struct end *));
	MUST(e);
	pair_open(&a, &b);
	for (int i = 0; i < n; i++)
		e[i] = cable(&a, &b, i % 3);
	for (int i = 0; i < n; i += 7)
		carry(e[i], 3000, 1000);
	for (int i = 0; i < n; i++)
		end_close(e[i]);
	for (int i = 0; i < n; i++)
		PUMP_UNTIL(&a, &b, e[i]->other->downs == 1);
	side_close(&a);
	side_close(&b);
	free(e);
	CHECK_EQ(descriptors(), before);
	MUST_OK(setrlimit(RLIMIT_NOFILE, &was));
}

TEST(lanes_opened_and_closed_many_times_leave_nothing)
{
	int before = descriptors();
	struct side a, b;

	pair_open(&a, &b);
	for (uint64_t i = 0; i < test_scaled(1000); i++) {
		struct end *e = cable(&a, &b, WEFT_LANE_HEAD);

		if (i % 3 == 0)
			end_send(e, 500, 0);
		if (i % 2)
			end_close(e->other);
		end_close(e);
		if (i % 2 == 0)
			end_close(e->other);
		if (a.ends > ENDS - 8 || b.ends > ENDS - 8) {
			side_close(&a);
			side_close(&b);
			pair_open(&a, &b);
		}
	}
	side_close(&a);
	side_close(&b);
	CHECK_EQ(descriptors(), before);
}

/* @n lanes come and go, each carries something, and is closed by either end first. */
static void churn(struct side *a, struct side *b, int n)
{
	for (int i = 0; i < n; i++) {
		struct end *e = cable(a, b, i % 3);

		carry(e, 2000, 700);
		end_close(i % 2 ? e->other : e);
		end_close(i % 2 ? e : e->other);
	}
}

TEST(lanes_that_come_and_go_leave_a_rail_as_large_as_it_was)
{
	enum { WARM = 100, MANY = 1000, REST = 16 << 10 };
	size_t ours = 2 * (sizeof(struct end) + 32);            /* both ends, until their sides are closed */
	struct side a, b;
	size_t before, after;
	int open;

	pair_open(&a, &b);
	churn(&a, &b, WARM);
	before = mallinfo2().uordblks;
	open = descriptors();
	churn(&a, &b, MANY);
	after = mallinfo2().uordblks;
	printf("# %zu bytes more, of which at most %zu are the ends'\n", after - before, MANY * ours);
	CHECK(after <= before + MANY * ours + REST);
	CHECK(descriptors() <= open + 4);                       /* lanes that are just ending */
	side_close(&a);
	side_close(&b);
}

/* From too few for anything upward: a rail opens or says why not, a lane comes or says why not, nothing is left. */
TEST(every_descriptor_limit_gives_an_answer)
{
	struct rlimit was, less;
	int before = descriptors(), opened = 0, carried = 0;

	MUST_OK(getrlimit(RLIMIT_NOFILE, &was));
	for (int limit = before - 6; limit < before + 24; limit++) {
		struct side a;
		struct end *e;
		int r;

		less = was;
		less.rlim_cur = (rlim_t)limit;
		MUST_OK(setrlimit(RLIMIT_NOFILE, &less));
		r = side_try(&a, conform_options());
		if (r < 0) {
			CHECK(r == -EMFILE || r == -ENODEV || r == -ENOMEM);
			MUST_OK(setrlimit(RLIMIT_NOFILE, &was));
			CHECK_EQ(descriptors(), before);
			continue;
		}
		opened++;
		a.other = &a;
		e = end_new(&a);
		e->opener = true;
			r = wf_lane_open(a.rail, &a.rail->info.addr, WEFT_LANE_HEAD, e, &e->lane);
		if (r < 0) {
			CHECK_EQ(r, -EMFILE);
			e->closing = true;
		} else {
			weft_time late = weft_now() + 300 * WEFT_MS;

			while (!e->downs && !e->other && weft_now() < late) {
				if (e->ups && !e->greeting_sent)
					say_hello(e);
				pump(&a, NULL);
			}
			carried += e->other != NULL;
		}
		MUST_OK(setrlimit(RLIMIT_NOFILE, &was));
		side_close(&a);
		CHECK_EQ(descriptors(), before);
	}
	printf("# reached %d limits with a rail, %d with a lane\n", opened, carried);
	CHECK(opened > 0 && carried > 0);
}

CONFORM_MAIN
