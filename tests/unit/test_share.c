/* test_share.c - buffers in other processes' hands: given, taken, lent, sent on, returned; death; and processes that lie. */
#include "unit/kin.h"

#include <sys/stat.h>

#include "base/life.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

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

static void chains(void)
{
	struct weft_buf *b[20];

	if (kin_me == 1) {
		for (int i = 0; i < 20; i++)
			MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 0);
		kin_step(2);
		kin_wait(3);
		CHECK_EQ(wf_share_collect(), 8);
		CHECK_EQ(wf_share_collect(), 0);
		kin_step(4);
		kin_wait(5);
		CHECK_EQ(wf_share_collect(), 12);
		CHECK_EQ(kin_away(), 0);
	} else {
		for (int i = 0; i < 20; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < 7; i++)
			CHECK_OK(weft_buf_put(b[i]));
		kin_step(1);
		kin_wait(2);
		CHECK_OK(weft_buf_put(b[7]));
		kin_step(3);
		kin_wait(4);
		for (int i = 8; i < 20; i++)
			CHECK_OK(weft_buf_put(b[i]));
		wf_share_flush();
		wf_share_flush();
		kin_step(5);
	}
}

TEST(returns_go_in_chains_of_eight_and_the_rest_when_told)
{
	kin_run(2, chains);
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

static void holder_dies(void)
{
	struct weft_buf *b[30], *lent;

	if (kin_me == 2) {
		for (int i = 0; i < 25; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < 11; i++)                    /* eight go home, three wait in a chain */
			CHECK_OK(weft_buf_put(b[i]));
		kin_take(1);                                    /* a view, and a big one */
		kin_take(1);
		kin_step(1);
		raise(SIGKILL);
	}
	for (int i = 0; i < 25; i++)
		MUST_OK(kin_send(kin_get(100), 2, false));
	lent = kin_get(100);
	MUST_OK(kin_send(lent, 2, true));
	MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
	for (int i = 0; i < 3; i++)
		MUST_OK(kin_send(kin_get(5000), 2, false));     /* never taken */
	kin_wait(1);
	wf_share_collect();
	CHECK_EQ(kin_away(), 22);
	wf_share_dead(2);
	CHECK_EQ(kin_away(), 3);
	CHECK_EQ(weft_buf_state(lent), WEFT_BUF_IDLE);
	wf_share_settled(2);
	CHECK_EQ(kin_away(), 0);
	CHECK_EQ(wf_share_collect(), 0);
}

TEST(what_a_dead_process_held_comes_home_at_once_and_what_flew_to_it_when_settled)
{
	kin_run_dying(2, holder_dies, 1 << 2);
}

static void flyer_dies(void)
{
	struct wf_flight flight;
	struct weft_buf *carry, *b;

	switch (kin_me) {
	case 1:
		for (int i = 0; i < 3; i++)
			MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(2);
		wf_share_dead(2);
		CHECK_EQ(kin_away(), 2);        /* he held one; one is on its way for good, one is lost on it */
		kin_step(3);
		kin_wait(4);                    /* 3 has taken what there was, and acted */
		wf_share_settled(2);
		CHECK_EQ(kin_away(), 1);
		kin_step(5);
		kin_wait(6);
		CHECK_EQ(wf_share_collect(), 1);
		CHECK_EQ(kin_away(), 0);
		break;
	case 2:
		kin_take(1);
		MUST_OK(kin_send(kin_take(1), 3, false));
		b = kin_take(1);
		MUST_OK(wf_buf_send_begin(b, false, &carry));
		MUST_OK(wf_buf_fly(carry, 3, &flight));
		kin_step(1);
		raise(SIGKILL);
		break;
	case 3:
		kin_wait(1);
		kin_step(2);
		kin_wait(3);
		b = kin_take(2);
		kin_step(4);
		kin_wait(5);
		memset(b->data, 1, b->cap);
		CHECK_OK(weft_buf_put(b));
		wf_share_flush();
		kin_step(6);
		break;
	}
}

TEST(what_a_dead_process_had_sent_on_is_not_taken_back_before_its_death_is_settled)
{
	kin_run_dying(3, flyer_dies, 1 << 2);
}

static void maker_dies(void)
{
	struct weft_buf *b, *big;

	if (kin_me == 1) {
		b = kin_get(100000);
		kin_fill(b, 1);
		MUST_OK(kin_send(b, 2, false));
		b = kin_get(64 * MIB);
		kin_fill(b, 2);
		MUST_OK(kin_send(b, 2, false));
		kin_wait(1);
		raise(SIGKILL);
	}
	b = kin_take(1);
	big = kin_take(1);
	kin_step(1);
	wf_share_dead(1);
	wf_share_settled(1);
	kin_check(b, 1);
	kin_check(big, 2);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(big));
	wf_share_flush();
	CHECK_EQ(kin_here(), 0);
}

TEST(buffers_of_a_dead_process_stay_readable_until_they_are_put)
{
	kin_run_dying(2, maker_dies, 1 << 1);
}

/* Process 2 returns what is not its to return. */
static void false_returns(void)
{
	struct wf_ledger *l;
	struct wf_chunk *c;
	struct kin_letter letter;
	struct weft_buf *b;
	uint64_t link;

	if (kin_me == 1) {
		struct weft_buf *mine = kin_get(100);

		b = kin_get(100);
		kin_fill(mine, 1);
		MUST_OK(kin_send(b, 2, false));
		for (uint32_t s = 1; s <= 9; s++) {
			kin_wait(2 * s - 1);
			CHECK_EQ(wf_share_collect(), s == 9);
			CHECK_EQ(kin_away(), s < 9);
			kin_check(mine, 1);
			CHECK_EQ(weft_buf_state(mine), WEFT_BUF_IDLE);
			kin_step(2 * s);
		}
		CHECK_OK(weft_buf_put(mine));
		return;
	}
	letter = kin_letter(1);
	MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
	MUST_OK(wf_atlas_ledger(1, &l));
	MUST_OK(wf_atlas_chunk(1, letter.flight.segment, &c));
	link = wf_link_to(letter.flight.segment, letter.flight.index);
	for (uint32_t s = 1; s <= 8; s++) {
		/* A buffer that was never made, one in the maker's hands, and so on. */
		uint64_t lie = s == 1 ? wf_link_to(letter.flight.segment, WF_ENTRIES - 1) :
			       s == 2 ? wf_link_to(letter.flight.segment, letter.flight.index ^ 1) :
			       s == 3 ? wf_link_to(letter.flight.segment, WF_ENTRIES) :
			       s == 4 ? wf_link_to(4000, 1) :
			       s == 5 ? wf_link_to(WF_SEGMENT_LEDGER, 77) :
			       s == 6 ? UINT64_MAX : s == 7 ? 1 : wf_link_to(WF_SEGMENT_LEDGER, 0);

		atomic_store(l->head, lie);
		kin_step(2 * s - 1);
		kin_wait(2 * s);
	}
	/* A circle: the true one is taken home once. */
	atomic_store(&c->entries[letter.flight.index].next, link);
	atomic_store(l->head, link);
	kin_step(17);
	kin_wait(18);
}

TEST(a_return_list_of_nonsense_brings_home_only_what_is_away)
{
	kin_run(2, false_returns);
}

static void false_flights(void)
{
	uint64_t seed = test_seed;
	struct kin_letter letter;
	struct weft_buf *b, *c = NULL;
	struct wf_flight f;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 2);
		return;
	}
	for (int i = 0; i < 2; i++) {
		letter = kin_letter(1);
		CHECK_EQ(wf_buf_land(3, &letter.flight, letter.len, &b), -EBADMSG);     /* not from him */
		CHECK_EQ(wf_buf_land(1, &letter.flight, SIZE_MAX, &b), -EBADMSG);
		CHECK_EQ(wf_buf_land(1, &letter.flight, ((size_t)1 << letter.flight.class) + 1, &b), -EBADMSG);
		for (uint64_t n = test_scaled(20000); n > 0; n--) {
			uint64_t r = test_random(&seed);
			unsigned where = r % 6, bit = (unsigned)(r >> 8) % (where == 2 ? 64 : 32);

			f = letter.flight;
			f.maker ^= where == 0 ? 1u << bit : 0;
			f.segment ^= where == 1 ? 1u << bit : 0;
			f.offset ^= where == 2 ? (uint64_t)1 << bit : 0;
			f.class ^= where == 3 ? 1u << bit : 0;
			f.view ^= where == 4 ? 1u << bit : 0;
			f.index ^= where == 5 ? 1u << bit : 0;
			int got = wf_buf_land(1, &f, letter.len, &c);

			/* In a chunk the index is computed, what is said does not matter, and of two sizes at one
			 * place either may be true. A big one is as good as a view of it. */
			if (got == 0 && (i == 0 ? where == 5 || where == 3 : where == 4))
				goto landed;
			CHECK_EQ(got, -EBADMSG);
		}
		MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &c));
landed:
		CHECK_EQ(wf_buf_land(1, &letter.flight, letter.len, &b), -EBADMSG);     /* once */
		CHECK_OK(weft_buf_put(c));
	}
	wf_share_flush();
	kin_step(1);
}

TEST(a_flight_that_does_not_fit_is_nonsense_whatever_it_says)
{
	kin_run(2, false_flights);
}

/* Process 1 works with 3; process 2 writes garbage into all shared words of 1 meanwhile, most of it nearly right. */
static void fuzz_words(void)
{
	uint64_t seed = test_seed + kin_me;
	struct wf_ledger *l;
	struct wf_chunk *c;

	MUST_OK(wf_atlas_ledger(1, &l));
	while (!atomic_load(&kin->count[0])) {
		uint64_t r = test_random(&seed), value = test_random(&seed);

		if (wf_atlas_chunk(1, WF_SEGMENT_CHUNK + r % 2, &c) < 0)
			continue;
		r >>= 8;
		switch (r % 8) {
		case 0:
			value = 0;
			break;
		case 1:
			value = wf_link_to(WF_SEGMENT_CHUNK, (uint32_t)(value % WF_ENTRIES));
			break;
		case 2:
			value = wf_link_to(WF_SEGMENT_LEDGER, (uint32_t)(value % 16));
			break;
		case 3:
			value = wf_flying(1 + value % 3, 1 + (value >> 8) % 3);
			break;
		case 4:
			value = wf_held(1 + value % 3);
			break;
		case 5:
			value = wf_link_to(WF_SEGMENT_CHUNK, (uint32_t)(value % 4 * WF_UNIT_HANDLES + (value >> 9) % 64));
			break;
		}
		r >>= 8;
		uint32_t i = (uint32_t)(r >> 8 & 3) * WF_UNIT_HANDLES + (uint32_t)(r >> 16) % 64;

		switch (r % 8) {
		case 0:
			atomic_store(l->head, value);
			break;
		case 1:
			atomic_store(&l->entry[(r >> 8) % 16].holder, value);
			break;
		case 2:
			atomic_store(&l->entry[(r >> 8) % 16].next, value);
			break;
		case 3:
		case 4:
			atomic_store(&c->entries[i].next, value);
			break;
		default:
			atomic_store(&c->entries[i].holder, value);
		}
		if (r % 64 == 0)
			sched_yield();
	}
}

/* Process 3: takes what it can, puts it or sends it back. */
static void fuzzed_taker(void)
{
	struct kin_letter letter;
	struct weft_buf *b;

	while (!atomic_load(&kin->count[0])) {
		if (!kin_next(1, &letter)) {
			sched_yield();
			continue;
		}
		int r = wf_buf_land(1, &letter.flight, letter.len, &b);

		if (r < 0) {
			CHECK_EQ(r, -EBADMSG);
			wf_buf_refuse(1, &letter.flight);
			continue;
		}
		memset(b->data, 3, b->len);
		if (b->cap > b->len || kin_send(b, 1, false) < 0)
			CHECK_OK(weft_buf_put(b));
	}
}

static void fuzzed_maker(void)
{
	uint64_t rounds = test_scaled(20000);
	struct kin_letter letter;
	struct weft_buf *b;

	CHECK_OK(weft_buf_put(kin_get(10)));
	kin_step(1);
	for (uint64_t i = 0; i < rounds; i++) {
		int r = weft_buf_get(lens[i % 6], WEFT_RAIL_ANY, &b);

		if (r == -EAGAIN)       /* words overwritten may keep a buffer away for good */
			break;
		MUST_OK(r);
		memset(b->data, 1, b->len);
		MUST_OK(kin_send(b, 3, i % 4 == 0));
		if (i % 4 == 0) {
			weft_buf_state(b);
			CHECK_OK(weft_buf_put(b));
		}
		wf_share_collect();
		if (i % 100 == 0)
			wf_share_settled(4);
		while (kin_next(3, &letter))
			if (wf_buf_land(3, &letter.flight, letter.len, &b) == 0) {
				memset(b->data, 2, b->len);
				CHECK_OK(weft_buf_put(b));
			} else {
				wf_buf_refuse(3, &letter.flight);
			}
	}
	atomic_store(&kin->count[0], 1);
}

static void fuzzed(void)
{
	if (kin_me == 1) {
		fuzzed_maker();
		return;
	}
	kin_wait(1);
	if (kin_me == 2)
		fuzz_words();
	else
		fuzzed_taker();
}

TEST(garbage_in_every_shared_word_breaks_nothing)
{
	kin_run(3, fuzzed);
}

static void bigs(void)
{
	enum { N = 24 };
	struct weft_buf *b[N];
	int maps;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init((size_t)4 << 30));
		for (int i = 0; i < N; i++) {
			b[i] = kin_get(64 * MIB);
			memset(b[i]->data, i, 1);
			MUST_OK(kin_send(b[i], 2, false));
		}
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), N);
		wf_pool_fini();
		kin_step(2);
		return;
	}
	for (int i = 0; i < N; i++) {
		b[i] = kin_take(1);
		CHECK_EQ(*(char *)b[i]->data, i);
	}
	maps = kin_maps();
	CHECK(maps >= N);
	for (int i = 0; i < N; i++)
		CHECK_OK(weft_buf_put(b[i]));
	CHECK(kin_maps() <= maps - 8);          /* not all are kept */
	wf_share_flush();
	kin_step(1);
	kin_wait(2);
}

TEST(mappings_of_big_buffers_that_nobody_uses_do_not_pile_up)
{
	kin_run(2, bigs);
}

static void limit_returns(void)
{
	size_t n = 0;
	struct weft_buf *b;
	int r;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init(1 * MIB));
		for (int turn = 0; turn < 3; turn++) {
			for (n = 0; (r = weft_buf_get(4096, WEFT_RAIL_ANY, &b)) == 0; n++)
				MUST_OK(kin_send(b, 2, false));
			CHECK_EQ(r, -EAGAIN);
			CHECK_EQ(n, 256);
			atomic_store(&kin->count[0], n);
			kin_step((uint32_t)(2 * turn + 1));
			kin_wait((uint32_t)(2 * turn + 2));     /* they are on the list; getting them is the pool's affair */
		}
		return;
	}
	for (uint32_t turn = 0; turn < 3; turn++) {
		kin_wait(2 * turn + 1);
		for (n = atomic_load(&kin->count[0]); n > 0; n--)
			CHECK_OK(weft_buf_put(kin_take(1)));
		wf_share_flush();
		kin_step(2 * turn + 2);
	}
}

TEST(at_the_limit_what_others_have_given_back_is_there_again)
{
	kin_run(2, limit_returns);
}

static void other_class(void)
{
	struct weft_buf *b;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init(1 * MIB));
		for (int i = 0; i < 256; i++)
			MUST_OK(kin_send(kin_get(4096), 2, false));
		kin_wait(1);
		b = kin_get(1 * MIB);           /* the very memory, as one buffer */
		kin_fill(b, 3);
		MUST_OK(kin_send(b, 2, false));
		kin_wait(2);
		CHECK_EQ(weft_buf_get(256, WEFT_RAIL_ANY, &b), 0);
		MUST_OK(kin_send(b, 2, false));
		return;
	}
	for (int i = 0; i < 256; i++)
		CHECK_OK(weft_buf_put(kin_take(1)));
	wf_share_flush();
	kin_step(1);
	b = kin_take(1);
	kin_check(b, 3);
	CHECK(weft_buf_of((char *)b->data + 500000) == b);
	CHECK_OK(weft_buf_put(b));
	wf_share_flush();
	kin_step(2);
	b = kin_take(1);
	CHECK_EQ(b->cap, 256);
	CHECK(weft_buf_of(b->data) == b);
}

TEST(memory_turned_over_to_another_class_lands_as_that)
{
	kin_run(2, other_class);
}

static void forked(void)
{
	struct weft_buf *b, *mine;
	int status = -1;
	pid_t pid;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 2);
		return;
	}
	mine = kin_get(100);
	CHECK_OK(weft_buf_put(kin_take(1)));    /* in a chain */
	b = kin_take(1);
	pid = fork();
	if (pid == 0) {
		atomic_store(&wf_life, WF_CHILD);       /* as the fork handler does */
		CHECK_EQ(kin_maps(), 0);
		CHECK_OK(weft_buf_put(b));
		CHECK_OK(weft_buf_put(mine));
		wf_share_flush();
		wf_share_collect();
		wf_share_dead(1);
		weft_buf_state(b);
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(mine));
	wf_share_flush();
	kin_step(1);
}

TEST(a_forked_child_has_no_segment_and_returns_nothing)
{
	kin_run(2, forked);
}

static void *cancelled_get(void *arg)
{
	struct weft_buf *b = NULL, *big = NULL;

	(void)arg;
	pthread_cancel(pthread_self());
	MUST_OK(weft_buf_get(100, WEFT_RAIL_ANY, &b));
	MUST_OK(weft_buf_get(64 * MIB, WEFT_RAIL_ANY, &big));
	MUST_OK(kin_send(b, 2, false));
	weft_buf_put(big);
	wf_pool_fini();
	atomic_store(&kin->count[0], 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void *cancelled_take(void *arg)
{
	struct kin_letter letter = kin_letter(1);
	struct weft_buf *b;

	(void)arg;
	pthread_cancel(pthread_self());
	MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
	CHECK_OK(weft_buf_put(b));
	wf_share_flush();
	atomic_store(&kin->count[1], 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void cancelled(void)
{
	pthread_t t;
	void *how;

	MUST_OK(pthread_create(&t, NULL, kin_me == 1 ? cancelled_get : cancelled_take, NULL));
	MUST_OK(pthread_join(t, &how));
	CHECK(how == NULL);
	CHECK_EQ(atomic_load(&kin->count[kin_me - 1]), 1);
	if (kin_me == 2)
		kin_step(1);
	kin_wait(1);
}

TEST(making_and_mapping_segments_is_no_cancellation_point)
{
	kin_run(2, cancelled);
}

/* Process 1 says of a buffer that 2 holds that it flies there once more. */
static void twice(void)
{
	struct kin_letter letter;
	struct weft_buf *b, *again = NULL;
	struct wf_chunk *c;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
		kin_wait(1);
		return;
	}
	for (int i = 0; i < 2; i++) {
		letter = kin_letter(1);
		MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
		if (i == 0) {
			MUST_OK(wf_atlas_chunk(1, letter.flight.segment, &c));
			atomic_store(&c->entries[letter.flight.index].holder, wf_flying(1, 2));
		} else {
			struct wf_ledger *l;

			MUST_OK(wf_atlas_ledger(1, &l));
			atomic_store(&l->entry[letter.flight.index].holder, wf_flying(1, 2));
		}
		CHECK_EQ(wf_buf_land(1, &letter.flight, letter.len, &again), -EBADMSG);
		CHECK(again == NULL);
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
		memset(b->data, 1, b->len);
		CHECK_OK(weft_buf_put(b));
	}
	kin_step(1);
}

TEST(what_somebody_holds_here_does_not_land_again)
{
	kin_run(2, twice);
}

static size_t pages_of(int fd)
{
	struct stat st;

	MUST_OK(fstat(fd, &st));
	return (size_t)st.st_blocks * 512;
}

static void big_pages(void)
{
	struct kin_letter letter;
	struct weft_buf *b;
	int fd;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 1);
		wf_pool_fini();
		kin_step(2);
		return;
	}
	letter = kin_letter(1);
	MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
	fd = kin_give(1, letter.flight.segment);
	MUST(fd >= 0);
	CHECK_EQ(pages_of(fd), 64 * MIB);
	CHECK_OK(weft_buf_put(b));              /* the mapping is kept */
	wf_share_flush();
	kin_step(1);
	kin_wait(2);
	CHECK_EQ(pages_of(fd), 0);
}

TEST(the_pages_of_a_big_buffer_are_free_though_others_still_map_it)
{
	kin_run(2, big_pages);
}

TEST_MAIN
