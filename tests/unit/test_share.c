/* test_share.c - buffers in other processes' hands: given, taken, lent, sent on, refused, returned. */
#include "unit/kin.h"

static const size_t lens[] = { 1, 256, 257, 4096, 8192, 65536, 1 * MIB, 1 * MIB + 1, 32 * MIB, 32 * MIB + 1 };
enum { LENS = sizeof(lens) / sizeof(*lens) };

static void give_and_return(void)
{
	if (kin_me == 1) {
		for (unsigned i = 0; i < LENS; i++) {
			struct weft_buf *b = kin_get(lens[i]);

			kin_fill(b, i);
			MUST_OK(kin_send(b, 2, false));
			CHECK_EQ(weft_buf_put(b), -EBUSY);
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);
			CHECK(weft_buf_of(b->data) == NULL);
		}
		CHECK_EQ(kin_away(), LENS);
		kin_step(1);
		kin_wait(2);
		kin_until_away(0);
	} else {
		kin_wait(1);
		for (unsigned i = 0; i < LENS; i++) {
			struct weft_buf *b = kin_take(1);

			kin_check(b, i);
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
			CHECK(weft_buf_of(b->data) == b);
			CHECK(weft_buf_of((char *)b->data + b->cap - 1) == b);
			CHECK(b->cap >= b->len && (b->cap & (b->cap - 1)) == 0);
			CHECK_EQ(kin_here(), 1);
			memset(b->data, 0, b->cap);             /* every byte is there to be written */
			CHECK_OK(weft_buf_put(b));
			CHECK_EQ(weft_buf_put(b), -EINVAL);
			CHECK(weft_buf_of(b->data) == NULL);
			CHECK_EQ(kin_here(), 0);
		}
		wf_share_flush();
		kin_step(2);
	}
}

TEST(a_buffer_of_every_class_is_given_to_another_process_and_comes_home)
{
	kin_run(2, give_and_return);
}

/* @most of them go together. */
static void chains_of(size_t len, int most, uint32_t step)
{
	struct weft_buf *b[20];

	if (kin_me == 1) {
		for (int i = 0; i < 20; i++)
			MUST_OK(kin_send(kin_get(len), 2, false));
		kin_wait(step + 1);
		CHECK_EQ(wf_share_collect(), 0);
		kin_step(step + 2);
		kin_wait(step + 3);
		CHECK_EQ(wf_share_collect(), most);
		CHECK_EQ(wf_share_collect(), 0);
		kin_step(step + 4);
		kin_wait(step + 5);
		CHECK_EQ(wf_share_collect(), 20 - most);
		CHECK_EQ(kin_away(), 0);
	} else {
		for (int i = 0; i < 20; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < most - 1; i++)
			CHECK_OK(weft_buf_put(b[i]));
		kin_step(step + 1);
		kin_wait(step + 2);
		CHECK_OK(weft_buf_put(b[most - 1]));
		kin_step(step + 3);
		kin_wait(step + 4);
		for (int i = most; i < 20; i++)
			CHECK_OK(weft_buf_put(b[i]));
		wf_share_flush();
		wf_share_flush();
		kin_step(step + 5);
	}
}

/* By the list, and, from the second time on, the middling ones by strip. */
static void chains(void)
{
	static const struct {
		size_t len;
		int most;
	} some[] = { { 100, 7 }, { 1024, 15 }, { 1024, 15 }, { 65536, 15 }, { 65537, 7 }, { 1 * MIB, 7 }, { 2 * MIB, 7 } };

	for (uint32_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		chains_of(some[i].len, some[i].most, 5 * i);
}

TEST(returns_go_by_seven_or_fifteen_and_the_rest_when_told)
{
	kin_run(2, chains);
}

/* How many of the lines of @b, ours, somebody has written a link to. */
static int lines_written(struct weft_buf *const *b, int n)
{
	int written = 0;

	for (int i = 0; i < n; i++) {
		const struct wf_buf *in = (const struct wf_buf *)(const void *)b[i];
		const struct wf_entry *e = wf_space_entry(wf_space_chunk_of(in), in->class, wf_space_index_of(in));

		written += atomic_load(&e[0].next) || atomic_load(&e[1].next) || atomic_load(&e[2].next) || atomic_load(&e[3].next);
	}
	return written;
}

static void slips(void)
{
	struct weft_buf *b[14];

	if (kin_me == 1) {
		for (int i = 0; i < 14; i++) {
			b[i] = kin_get(4096);
			MUST_OK(kin_send(b[i], 2, false));
		}
		kin_wait(1);
		CHECK_EQ(lines_written(b, 14), 2);
		CHECK_EQ(wf_share_collect(), 14);
		CHECK_EQ(kin_away(), 0);
	} else {
		for (int i = 0; i < 14; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < 14; i++)
			CHECK_OK(weft_buf_put(b[i]));
		wf_share_flush();
		kin_step(1);
	}
}

TEST(of_seven_wide_ones_on_the_list_one_has_its_line_written)
{
	kin_run(2, slips);
}

/* What has no slip, what has one, and what is in no chunk, in one chain. */
static void mixed(void)
{
	static const size_t mix[] = { 100, 4096, 100, 2048, 65536, 40 * MIB, 1024 };
	enum { MIX = sizeof(mix) / sizeof(*mix) };

	for (uint32_t step = 1; step < 40; step += 2) {
		for (uint32_t i = 0; i < MIX; i++) {
			if (kin_me == 1)
				MUST_OK(kin_send(kin_get(mix[(i + step / 2) % MIX]), 2, false));
			else
				CHECK_OK(weft_buf_put(kin_take(1)));
		}
		if (kin_me == 1) {
			kin_wait(step);
			wf_share_collect();
			CHECK_EQ(kin_away(), 0);
			kin_step(step + 1);
		} else {
			wf_share_flush();
			kin_step(step);
			kin_wait(step + 1);
		}
	}
}

TEST(buffers_of_all_kinds_go_home_in_one_chain)
{
	kin_run(2, mixed);
}

static void a_few(void)
{
	enum { MANY = 100 };

	if (kin_me == 1) {
		int n;

		for (int i = 0; i < MANY; i++)
			MUST_OK(kin_send(kin_get(i % 2 ? 100 : 4096), 2, false));
		kin_step(1);
		kin_wait(2);
		n = wf_share_collect_some();
		CHECK(n > 0 && n < MANY);
		CHECK_EQ(kin_away(), MANY - n);
		n += wf_share_collect_some();
		CHECK_EQ(kin_away(), MANY - n);
		wf_share_dead(3);               /* who scans has all of them first: none is taken back twice */
		CHECK_EQ(kin_away(), 0);
		CHECK_EQ(wf_share_collect(), 0);
		CHECK_EQ(wf_share_collect_some(), 0);
	} else {
		kin_wait(1);
		for (int i = 0; i < MANY; i++)
			CHECK_OK(weft_buf_put(kin_take(1)));
		wf_share_flush();
		kin_step(2);
	}
}

TEST(a_few_come_home_at_a_time_and_the_rest_is_not_lost)
{
	kin_run(2, a_few);
}

static void *put_one(void *arg)
{
	CHECK_OK(weft_buf_put(arg));
	return NULL;
}

static void thread_end(void)
{
	pthread_t t;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 1);
	} else {
		MUST_OK(pthread_create(&t, NULL, put_one, kin_take(1)));
		MUST_OK(pthread_join(t, NULL));
		kin_step(1);
	}
}

TEST(a_thread_that_ends_pushes_what_it_has_in_chains)
{
	kin_run(2, thread_end);
}

static void send_on(void)
{
	struct weft_buf *b;

	for (unsigned i = 0; i < LENS; i++)
		switch (kin_me) {
		case 1:
			b = kin_get(lens[i]);
			kin_fill(b, i);
			MUST_OK(kin_send(b, 2, false));
			break;
		case 2:
			b = kin_take(1);
			kin_check(b, i);
			kin_fill(b, i + 100);
			MUST_OK(kin_send(b, 3, false));
			CHECK_EQ(weft_buf_put(b), -EINVAL);
			CHECK_EQ(kin_here(), 0);
			break;
		case 3:
			b = kin_take(2);
			kin_check(b, i + 100);
			CHECK_OK(weft_buf_put(b));
			wf_share_flush();
			break;
		}
	if (kin_me == 3)
		kin_step(1);
	kin_wait(1);
	if (kin_me == 1) {
		wf_share_collect();
		CHECK_EQ(kin_away(), 0);
	}
}

TEST(a_received_buffer_is_sent_on_to_a_third_process_and_comes_home_from_there)
{
	kin_run(3, send_on);
}

static void round_trip(void)
{
	for (int again = 0; again < 3; again++)
		for (unsigned i = 0; i < LENS; i++) {
			struct weft_buf *b, *back;

			if (kin_me == 1) {
				b = kin_get(lens[i]);
				kin_fill(b, i);
				MUST_OK(kin_send(b, 2, false));
				back = kin_take(2);
				CHECK(back == b);
				kin_check(b, i + 1);
				CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
				CHECK(weft_buf_of(b->data) == b);
				CHECK_EQ(kin_away(), 0);
				CHECK_OK(weft_buf_put(b));
			} else {
				b = kin_take(1);
				kin_check(b, i);
				kin_fill(b, i + 1);
				MUST_OK(kin_send(b, 1, false));
			}
		}
	if (kin_me == 2)
		CHECK_EQ(kin_here(), 0);
}

TEST(a_buffer_sent_back_to_its_maker_is_the_very_same_there)
{
	kin_run(2, round_trip);
}

static void within(void)
{
	struct weft_buf *b, *v, *w, *carry;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 1);
		return;
	}
	b = kin_take(1);
	MUST_OK(wf_buf_send_begin(b, false, &carry));           /* to a thread of this process */
	CHECK_EQ(weft_buf_put(b), -EBUSY);
	wf_buf_sent(carry);
	wf_buf_delivered(carry);
	MUST_OK(wf_buf_send_begin(b, true, &v));                /* lent within this process */
	wf_buf_sent(v);
	wf_buf_delivered(v);
	MUST_OK(wf_buf_send_begin(v, true, &w));
	wf_buf_delivered(w);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(v));
	CHECK_EQ(kin_here(), 1);
	CHECK_OK(weft_buf_put(w));
	CHECK_EQ(kin_here(), 0);
	wf_share_flush();
	kin_step(1);
}

TEST(anothers_buffer_is_handed_on_and_lent_within_a_process_like_its_own)
{
	kin_run(2, within);
}

static void lending(void)
{
	static const size_t some[] = { 100, 8000, 3 * MIB, 64 * MIB };

	for (unsigned i = 0; i < 4; i++) {
		struct weft_buf *b, *v;

		if (kin_me == 1) {
			b = kin_get(some[i]);
			kin_fill(b, i);
			MUST_OK(kin_send(b, 2, true));
			MUST_OK(kin_send(b, 2, true));
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);
			CHECK_EQ(wf_buf_send_begin(b, false, &v), -EBUSY);
			kin_step(6 * i + 1);
			kin_wait(6 * i + 2);
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);             /* one taken, one not */
			kin_step(6 * i + 3);
			kin_wait(6 * i + 4);
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
			kin_check(b, i);
			if (i % 2)
				CHECK_OK(weft_buf_put(b));
			kin_step(6 * i + 5);
			kin_wait(6 * i + 6);
			if (i % 2) {
				CHECK_EQ(weft_buf_put(b), -EBUSY);      /* lent yet, as far as known */
				CHECK_EQ(wf_share_collect(), 2);
			} else {
				CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
				CHECK_OK(weft_buf_put(b));
			}
			CHECK_EQ(weft_buf_put(b), -EINVAL);
			CHECK_EQ(kin_away(), 0);
		} else {
			struct weft_buf *w;

			kin_wait(6 * i + 1);
			v = kin_take(1);
			CHECK(wf_buf_is_shared(v));
			CHECK_EQ(v->cap, some[i]);
			kin_check(v, i);
			kin_step(6 * i + 2);
			kin_wait(6 * i + 3);
			w = kin_take(1);
			CHECK(w != v && w->data == v->data);
			CHECK_EQ(kin_here(), 2);
			kin_step(6 * i + 4);
			kin_wait(6 * i + 5);
			CHECK_OK(weft_buf_put(v));
			kin_check(w, i);
			CHECK_OK(weft_buf_put(w));
			CHECK_EQ(weft_buf_put(w), -EINVAL);
			CHECK_EQ(kin_here(), 0);
			wf_share_flush();
			kin_step(6 * i + 6);
		}
	}
}

TEST(a_buffer_lent_to_another_process_is_idle_or_home_when_all_views_were_put)
{
	kin_run(2, lending);
}

static void no_lending_on(void)
{
	struct weft_buf *b, *v, *c;

	if (kin_me == 1) {
		b = kin_get(100);
		MUST_OK(kin_send(b, 2, true));
		MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
		CHECK_EQ(kin_away(), 0);
		return;
	}
	v = kin_take(1);
	c = kin_take(1);
	CHECK_EQ(kin_send(v, 3, false), -EXDEV);
	CHECK_EQ(kin_send(v, 1, false), -EXDEV);
	CHECK_EQ(kin_send(v, 3, true), -EXDEV);
	CHECK_EQ(kin_send(c, 3, true), -EXDEV);
	CHECK_EQ(weft_buf_state(v), WEFT_BUF_IDLE);
	CHECK_EQ(weft_buf_state(c), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(v));
	CHECK_OK(weft_buf_put(c));
	wf_share_flush();
	kin_step(1);
}

TEST(views_of_anothers_buffer_do_not_travel_to_a_third)
{
	kin_run(2, no_lending_on);
}

/* Each kind of carry, taken back after wf_buf_fly; then it still does what it can do. */
static void fly_and_stay(struct weft_buf *b, bool keep)
{
	struct wf_flight flight;
	struct weft_buf *carry;

	for (int i = 0; i < 2; i++) {
		MUST_OK(wf_buf_send_begin(b, keep, &carry));
		MUST_OK(wf_buf_fly(carry, 3, &flight));
		wf_buf_unfly(carry);
		CHECK_EQ(weft_buf_state(carry), WEFT_BUF_SENDING);
		CHECK_EQ(weft_buf_put(carry), -EBUSY);
		MUST_OK(wf_buf_fly(carry, 3, &flight));
		wf_buf_unfly(carry);
		CHECK(wf_buf_send_undo(carry) == (keep ? NULL : b));
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
		memset(b->data, 1, b->len);
	}
}

static void unfly(void)
{
	for (unsigned i = 0; i < LENS; i++) {
		struct weft_buf *b;

		if (kin_me == 1) {
			b = kin_get(lens[i]);
			fly_and_stay(b, false);
			fly_and_stay(b, true);
			MUST_OK(kin_send(b, 2, false));
		} else {
			b = kin_take(1);
			fly_and_stay(b, false);
			CHECK_OK(weft_buf_put(b));
		}
	}
	if (kin_me == 2) {
		wf_share_flush();
		kin_step(1);
	}
	kin_wait(1);
	if (kin_me == 1) {
		wf_share_collect();
		CHECK_EQ(kin_away(), 0);
	}
}

TEST(what_was_not_published_is_as_before)
{
	kin_run(2, unfly);
}

static void refuse(void)
{
	struct kin_letter letter;
	struct weft_buf *b;

	if (kin_me == 1) {
		for (unsigned i = 0; i < LENS; i++)
			MUST_OK(kin_send(kin_get(lens[i]), 2, false));
		b = kin_get(100);
		MUST_OK(kin_send(b, 2, true));
		kin_wait(1);
		wf_share_collect();
		CHECK_EQ(kin_away(), 0);
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
		MUST_OK(kin_send(b, 2, false));                 /* comes back, and is refused here */
		letter = kin_letter(2);
		wf_buf_refuse(2, &letter.flight);
		CHECK_EQ(kin_away(), 0);
		CHECK_EQ(weft_buf_put(b), -EINVAL);
		wf_buf_refuse(2, &letter.flight);
		return;
	}
	for (unsigned i = 0; i < LENS + 1; i++) {
		letter = kin_letter(1);
		wf_buf_refuse(1, &letter.flight);
		wf_buf_refuse(1, &letter.flight);               /* a second time it is not ours to refuse */
		CHECK_EQ(wf_buf_land(1, &letter.flight, letter.len, &b), -EBADMSG);
	}
	wf_share_flush();
	kin_step(1);
	MUST_OK(kin_send(kin_take(1), 1, false));
}

TEST(a_refused_buffer_goes_home)
{
	kin_run(2, refuse);
}

TEST_MAIN
