/* test_share_lies.c - buffers among processes that lie: false returns, false flights, garbage in every shared word. */
#include "unit/kin.h"

#include "mem/strip.h"

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

/* Process 2 has two wide ones and says on a slip that it returns more. */
static void false_slips(void)
{
	struct wf_ledger *l;
	struct wf_chunk *c;
	struct kin_letter a, b;
	struct weft_buf *ignore;
	struct wf_entry *e;

	if (kin_me == 1) {
		struct weft_buf *mine = kin_get(4096);

		kin_fill(mine, 1);
		MUST_OK(kin_send(kin_get(4096), 2, false));
		MUST_OK(kin_send(kin_get(4096), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 2);
		CHECK_EQ(kin_away(), 0);
		kin_check(mine, 1);
		CHECK_EQ(weft_buf_state(mine), WEFT_BUF_IDLE);
		CHECK_OK(weft_buf_put(mine));
		return;
	}
	a = kin_letter(1);
	b = kin_letter(1);
	MUST_OK(wf_buf_land(1, &a.flight, a.len, &ignore));
	MUST_OK(wf_buf_land(1, &b.flight, b.len, &ignore));
	MUST_OK(wf_atlas_ledger(1, &l));
	MUST_OK(wf_atlas_chunk(1, a.flight.segment, &c));
	e = wf_space_entry(c, a.flight.class, a.flight.index);
	atomic_store(&e->next, wf_link_to(a.flight.segment, a.flight.index));           /* a circle */
	atomic_store(&e[1].next, (uint64_t)wf_brief_to(a.flight.segment, a.flight.index) << 32 | UINT32_MAX);
	atomic_store(&e[2].next, (uint64_t)wf_brief_to(4000, 1) << 32 | wf_brief_to(b.flight.segment, b.flight.index));
	atomic_store(&e[3].next, (uint64_t)wf_brief_to(a.flight.segment, 0) << 32 | wf_brief_to(a.flight.segment, (1 << WF_BRIEF_BITS) - 1));
	atomic_store(l->head, wf_link_to(a.flight.segment, a.flight.index));
	kin_step(1);
}

TEST(a_slip_of_nonsense_brings_home_only_what_is_away)
{
	kin_run(2, false_slips);
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

static void fuzz_strip(struct wf_strip *s, uint64_t r, uint64_t value)
{
	static uint32_t turn;
	struct wf_strip_line *line = &s->line[turn % WF_STRIP_LINES];

	switch (r % 16) {
	case 0:
		atomic_store(&s->taken, (uint32_t)value);
		break;
	case 1:                         /* where its writer may be */
		turn = atomic_load(&s->line[value % WF_STRIP_LINES].turn);
		break;
	case 2:
	case 3:
		atomic_store(&line->turn, ++turn);
		break;
	default:
		atomic_store(&line->two[r / 16 % (WF_BRIEFS / 2)], value);
	}
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
		case 6:                 /* two of a slip */
			value = (uint64_t)wf_brief_to(WF_SEGMENT_CHUNK, (uint32_t)(value >> 40) % 4 * WF_UNIT_HANDLES + (value >> 44) % 16) << 32 |
				wf_brief_to(WF_SEGMENT_CHUNK + (uint32_t)(value >> 20) % 3, (uint32_t)(value % 4 * WF_UNIT_HANDLES + (value >> 9) % 16));
			break;
		}
		r >>= 8;
		uint32_t i = (uint32_t)(r >> 8 & 3) * WF_UNIT_HANDLES + (uint32_t)(r >> 16) % 64;

		switch (r % 10) {
		case 0:
			atomic_store(l->head, value);
			break;
		case 8:                 /* a strip, that of 3 above all: a line that is about to be read, or taken */
			fuzz_strip(&l->strip[1 + r / 10 % 3], r >> 8, value);
			break;
		case 9:
			atomic_store(&l->open[1 + r / 10 % 3], (uint8_t)(value % 2));
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
	static const size_t lens[] = { 1, 256, 257, 4096, 8192, 65536 };
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

TEST_MAIN
