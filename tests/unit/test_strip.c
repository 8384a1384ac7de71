/* test_strip.c - the short way home: lines written, read, full, false, and left by the dead. */
#include "unit/kin.h"

#include "mem/strip.h"

enum { WIDE = 4096, ALL = WF_STRIP_LINES * WF_BRIEFS };

static atomic_bool no_memory;           /* of this process: nothing is reserved any more */

int fallocate(int fd, int mode, off_t from, off_t bytes)
{
	if (mode == 0 && atomic_load(&no_memory)) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, from, bytes);
}

static struct wf_buf *inner(struct weft_buf *b)
{
	return (struct wf_buf *)(void *)b;
}

static struct wf_entry *entry_of(struct weft_buf *b)
{
	return wf_space_entry(wf_space_chunk_of(inner(b)), wf_buf_class(inner(b)), wf_space_index_of(inner(b)));
}

static void give(int n, uint32_t to)
{
	for (int i = 0; i < n; i++)
		MUST_OK(kin_send(kin_get(WIDE), to, false));
}

/* Takes all of them before it puts one. */
static void take_and_put(int n)
{
	static struct weft_buf *b[2 * ALL];

	MUST(n <= 2 * ALL);
	for (int i = 0; i < n; i++)
		b[i] = kin_take(1);
	for (int i = 0; i < n; i++)
		CHECK_OK(weft_buf_put(b[i]));
	wf_share_flush();
}

static bool is_open(uint32_t holder)
{
	return atomic_load(&wf_ledger_mine()->open[holder]);
}

static bool listed(void)
{
	return atomic_load(wf_ledger_mine()->head);
}

static struct wf_strip *strip_of(uint32_t holder)
{
	return &wf_ledger_mine()->strip[holder];
}

/* 1 has opened a strip for @holder, who has one at 1. Takes steps @step + 1 and 2. */
static void open_strip(uint32_t holder, uint32_t step)
{
	if (kin_me == 1) {
		give(1, holder);
		CHECK(!is_open(holder));
		kin_wait(step + 1);
		CHECK(listed());
		CHECK_EQ(wf_share_collect(), 1);
		CHECK(is_open(holder));
		kin_step(step + 2);
	} else if (kin_me == holder) {
		take_and_put(1);
		kin_step(step + 1);
	}
	kin_wait(step + 2);
}

static void untouched(void)
{
	struct weft_buf *b[WF_BRIEFS];
	struct wf_entry before[WF_BRIEFS][WF_WIDE];

	open_strip(2, 0);
	if (kin_me == 1) {
		for (int i = 0; i < WF_BRIEFS; i++)
			b[i] = kin_get(i % 3 ? WIDE : 64 * KIB);
		for (int i = 0; i < WF_BRIEFS; i++) {
			memset(entry_of(b[i]), 0, WF_LINE);
			atomic_store(&entry_of(b[i])->next, 77);
			memcpy(before[i], entry_of(b[i]), WF_LINE);
			MUST_OK(kin_send(b[i], 2, false));
		}
		kin_wait(3);
		CHECK(!listed());
		CHECK_EQ(wf_share_collect(), WF_BRIEFS);
		for (int i = 0; i < WF_BRIEFS; i++) {
			CHECK(memcmp(before[i], entry_of(b[i]), WF_LINE) == 0);
			CHECK_EQ(weft_buf_put(b[i]), -EINVAL);
		}
		CHECK_EQ(kin_away(), 0);
	} else {
		for (int i = 0; i < WF_BRIEFS; i++)
			CHECK_OK(weft_buf_put(kin_take(1)));
		kin_step(3);
	}
}

TEST(what_goes_by_strip_touches_no_entry_and_not_the_list)
{
	kin_run(2, untouched);
}

static void fills(void)
{
	enum { MORE = 40, ROUNDS = 5 };

	open_strip(2, 0);
	for (uint32_t r = 0; r < ROUNDS; r++) {
		if (kin_me == 1) {
			give(ALL + MORE, 2);
			kin_wait(2 * r + 3);
			CHECK(listed());
			CHECK_EQ(atomic_load(&strip_of(2)->line[WF_STRIP_LINES - 1].turn), (r + 1) * WF_STRIP_LINES);
			CHECK_EQ(wf_share_collect(), ALL + MORE);
			CHECK_EQ(wf_share_collect(), 0);
			CHECK_EQ(kin_away(), 0);
			kin_step(2 * r + 4);
		} else {
			take_and_put(ALL + MORE);
			kin_step(2 * r + 3);
			kin_wait(2 * r + 4);
		}
	}
}

TEST(a_strip_wraps_and_what_finds_it_full_goes_by_the_list)
{
	kin_run(2, fills);
}

/* Few at a time, so that it wraps with lines left on it, and each line is one that a flush cut short. */
static void parts(void)
{
	uint32_t step = 2;

	open_strip(2, 0);
	for (int r = 0; r < 3 * WF_STRIP_LINES; r++, step += 2) {
		int n = 1 + r % (2 * WF_BRIEFS);

		if (kin_me == 1) {
			give(n, 2);
			kin_wait(step + 1);
			CHECK(!listed());
			CHECK_EQ(wf_share_collect(), n);
			kin_step(step + 2);
		} else {
			take_and_put(n);
			kin_step(step + 1);
			kin_wait(step + 2);
		}
	}
}

TEST(what_a_flush_sends_home_is_a_line_of_fewer)
{
	kin_run(2, parts);
}

/* 1 gives to 2 and to 3; 2 sends on to 3, and has once said that it would. */
static void sent_on(void)
{
	struct wf_flight flight;
	struct weft_buf *b, *carry;

	open_strip(2, 0);
	open_strip(3, 2);
	switch (kin_me) {
	case 1:
		b = kin_get(WIDE);
		MUST_OK(kin_send(b, 2, false));
		kin_wait(5);
		CHECK(listed());                        /* from 3 */
		CHECK_EQ(wf_share_collect(), 1);
		CHECK_EQ(atomic_load(&entry_of(b)->holder), 0);
		CHECK(kin_get(WIDE) == b);
		MUST_OK(kin_send(b, 2, false));
		kin_step(6);
		kin_wait(7);
		CHECK(listed());                        /* from 2, which had put its name there */
		CHECK_EQ(wf_share_collect(), 1);
		CHECK_EQ(atomic_load(&entry_of(b)->holder), 0);
		break;
	case 2:
		MUST_OK(kin_send(kin_take(1), 3, false));
		kin_wait(6);
		b = kin_take(1);
		MUST_OK(wf_buf_send_begin(b, false, &carry));
		MUST_OK(wf_buf_fly(carry, 3, &flight));
		wf_buf_unfly(carry);
		CHECK(wf_buf_send_undo(carry) == b);
		CHECK_OK(weft_buf_put(b));
		wf_share_flush();
		kin_step(7);
		break;
	default:
		CHECK_OK(weft_buf_put(kin_take(2)));
		wf_share_flush();
		kin_step(5);
	}
}

TEST(what_has_a_word_in_its_entry_goes_by_the_list)
{
	kin_run(3, sent_on);
}

/* Process 2 writes a line of its own, of which one word is true. */
static void false_lines(void)
{
	struct kin_letter letter[3];
	struct wf_strip_line *line;
	struct weft_buf *mine, *b;
	struct wf_ledger *l;
	uint32_t true_one;

	open_strip(2, 0);
	if (kin_me == 3) {
		b = kin_take(1);
		kin_check(b, 9);
		kin_wait(4);
		kin_check(b, 9);
		CHECK_OK(weft_buf_put(b));
		wf_share_flush();
		kin_step(5);
	} else if (kin_me == 1) {
		mine = kin_get(WIDE);
		kin_fill(mine, 1);
		b = kin_get(WIDE);
		kin_fill(b, 9);
		letter[0].flight.index = wf_space_index_of(inner(mine));
		letter[1].flight.index = wf_space_index_of(inner(b));
		kin_post(2, &letter[0].flight, 0);
		kin_post(2, &letter[1].flight, 0);
		give(1, 2);
		MUST_OK(kin_send(b, 3, false));
		kin_wait(3);
		CHECK_EQ(wf_share_collect(), 1);
		CHECK_EQ(wf_share_collect(), 0);
		CHECK_EQ(kin_away(), 1);                /* what 3 has */
		kin_check(mine, 1);
		CHECK_EQ(weft_buf_state(mine), WEFT_BUF_IDLE);
		kin_step(4);
		kin_wait(5);
		CHECK_EQ(wf_share_collect(), 1);
	} else {
		for (int i = 0; i < 3; i++)
			letter[i] = kin_letter(1);
		MUST_OK(wf_buf_land(1, &letter[2].flight, letter[2].len, &b));
		MUST_OK(wf_atlas_ledger(1, &l));
		line = &l->strip[2].line[0];
		true_one = wf_brief_to(letter[2].flight.segment, letter[2].flight.index);
		atomic_store(&line->two[0], wf_brief_to(letter[2].flight.segment, letter[0].flight.index) |             /* in its maker's hands */
						    (uint64_t)wf_brief_to(letter[2].flight.segment, letter[1].flight.index) << 32); /* in 3's */
		atomic_store(&line->two[1], UINT64_MAX);
		atomic_store(&line->two[2], 1 | (uint64_t)wf_brief_to(4000, 1) << 32);                                  /* no chunk */
		atomic_store(&line->two[3], true_one | (uint64_t)true_one << 32);
		atomic_store(&line->two[4], wf_brief_to(letter[2].flight.segment, (1 << WF_BRIEF_BITS) - 1) | (uint64_t)true_one << 32);
		atomic_store(&line->two[5], 0);         /* the end: what comes behind it does not count */
		atomic_store(&line->last, true_one);
		atomic_store(&line->turn, 1);
		atomic_store(&l->strip[2].line[1].turn, 3);     /* not its turn */
		atomic_store(&l->strip[2].line[2].turn, 3);     /* its turn, but for the one before */
		kin_step(3);
		kin_wait(5);
	}
}

TEST(a_line_of_nonsense_brings_home_only_what_its_holder_has)
{
	kin_run(3, false_lines);
}

/* The maker says of itself what cannot be. */
static void false_taken(void)
{
	static const uint32_t lies[] = { 12345, UINT32_MAX, ALL, 1u << 31 };
	uint32_t step = 2;

	open_strip(2, 0);
	for (int i = 0; i < 4; i++, step += 2) {
		if (kin_me == 1) {
			atomic_store(&strip_of(2)->taken, lies[i]);
			give(ALL + 100, 2);
			kin_wait(step + 1);
			CHECK(listed());
			CHECK_EQ(wf_share_collect(), ALL + 100);
			kin_step(step + 2);
		} else {
			take_and_put(ALL + 100);
			kin_step(step + 1);
			kin_wait(step + 2);
		}
	}
}

TEST(to_who_finds_nonsense_a_strip_is_full)
{
	kin_run(2, false_taken);
}

/* Its last words: a line, some in a chain, and a line that it was about to write. */
static void dies(void)
{
	enum { N = 40, PUT = 20 };
	static struct weft_buf *b[N];
	struct wf_strip_line *line;
	struct wf_ledger *l;

	open_strip(2, 0);
	if (kin_me == 2) {
		for (int i = 0; i < N; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < PUT; i++)
			CHECK_OK(weft_buf_put(b[i]));
		MUST_OK(wf_atlas_ledger(1, &l));
		line = &l->strip[2].line[1];
		CHECK_EQ(atomic_load(&l->strip[2].line[0].turn), 1);
		atomic_store(&line->two[0], inner(b[PUT])->far.brief | (uint64_t)inner(b[PUT + 1])->far.brief << 32);
		kin_step(3);
		raise(SIGKILL);
	}
	give(N, 2);
	kin_wait(3);
	wf_share_dead(2);
	CHECK_EQ(kin_away(), 0);
	for (int i = 0; i < N; i++) {           /* each came once */
		b[i] = kin_get(WIDE);
		for (int k = 0; k < i; k++)
			CHECK(b[k] != b[i]);
	}
	for (int i = 0; i < N; i++)
		CHECK_OK(weft_buf_put(b[i]));
	CHECK(is_open(2));
	wf_share_settled(2);
	CHECK(!is_open(2));
	CHECK_EQ(atomic_load(&strip_of(2)->line[0].turn), 0);           /* its page is given back */
	CHECK_EQ(wf_share_collect(), 0);
}

TEST(what_a_dying_holder_has_published_comes_home_once_and_what_it_has_not_as_well)
{
	kin_run_dying(2, dies, 1 << 2);
}

static void no_strip(void)
{
	if (kin_me == 1) {
		give(50, 2);
		atomic_store(&no_memory, true);
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 50);
		CHECK(!is_open(2));
		atomic_store(&no_memory, false);
		give(50, 2);
		kin_step(2);
		kin_wait(3);
		CHECK(listed());
		CHECK_EQ(wf_share_collect(), 50);
		CHECK(!is_open(2));             /* it is not tried for ever */
	} else {
		take_and_put(50);
		kin_step(1);
		kin_wait(2);
		take_and_put(50);
		kin_step(3);
	}
}

TEST(without_memory_for_a_strip_all_goes_by_the_list)
{
	kin_run(2, no_strip);
}

/* A buffer that comes home by strip and is sent home at the same time: one of the two is true. */
static void both_ways(void)
{
	struct kin_letter letter;
	struct weft_buf *b, *back;

	open_strip(2, 0);
	for (uint32_t step = 2; step < 10; step += 2) {
		if (kin_me == 1) {
			b = kin_get(WIDE);
			MUST_OK(kin_send(b, 2, false));
			kin_wait(step + 1);
			letter = kin_letter(2);
			if (step % 4) {
				CHECK_EQ(wf_share_collect(), 1);
				CHECK_EQ(wf_buf_land(2, &letter.flight, letter.len, &back), -EBADMSG);
				CHECK_EQ(weft_buf_put(b), -EINVAL);
			} else {
				MUST_OK(wf_buf_land(2, &letter.flight, letter.len, &back));
				CHECK(back == b);
				CHECK_EQ(wf_share_collect(), 0);
				CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
				CHECK_OK(weft_buf_put(b));
			}
			kin_step(step + 2);
		} else {
			uint32_t brief[WF_BRIEFS] = { 0 };

			b = kin_take(1);
			brief[0] = inner(b)->far.brief;
			MUST_OK(kin_send(b, 1, false));
			CHECK(wf_strip_put(1, brief));
			kin_step(step + 1);
			kin_wait(step + 2);
		}
	}
}

TEST(a_buffer_returned_both_ways_is_taken_one_way)
{
	kin_run(2, both_ways);
}

static _Atomic uint32_t round_begun, round_collected;

static void *collector(void *arg)
{
	for (uint32_t r = 1; r <= *(uint32_t *)arg; r++) {
		int n;

		while (atomic_load(&round_begun) < r)
			;
		n = wf_share_collect();
		atomic_store(&round_collected, 2 * r + (uint32_t)n);
	}
	return NULL;
}

/* The same at once, in two threads. */
static void race(void)
{
	uint32_t rounds = (uint32_t)test_scaled(20000), landed = 0;
	struct kin_letter letter;
	struct weft_buf *b, *back;
	pthread_t t;

	open_strip(2, 0);
	if (kin_me == 1)
		MUST_OK(pthread_create(&t, NULL, collector, &rounds));
	for (uint32_t r = 1; r <= rounds; r++) {
		if (kin_me == 1) {
			uint32_t n, delay = r % 512;

			b = kin_get(WIDE);
			MUST_OK(kin_send(b, 2, false));
			letter = kin_letter(2);
			atomic_store(&round_begun, r);
			while (delay--)
				atomic_signal_fence(memory_order_seq_cst);
			n = wf_buf_land(2, &letter.flight, letter.len, &back) == 0;
			while (atomic_load(&round_collected) < 2 * r)
				;
			CHECK_EQ(atomic_load(&round_collected) - 2 * r + n, 1);
			landed += n;
			if (n)
				CHECK_OK(weft_buf_put(back));
			else
				CHECK_EQ(weft_buf_put(b), -EINVAL);
		} else {
			uint32_t brief[WF_BRIEFS] = { 0 };
			struct wf_flight flight;
			struct weft_buf *carry;
			size_t len;

			b = kin_take(1);
			brief[0] = inner(b)->far.brief;
			len = b->len;
			MUST_OK(wf_buf_send_begin(b, false, &carry));
			MUST_OK(wf_buf_fly(carry, 1, &flight));
			CHECK(wf_strip_put(1, brief));
			kin_post(1, &flight, len);
		}
	}
	if (kin_me == 1) {
		MUST_OK(pthread_join(t, NULL));
		printf("# landed %u of %u\n", landed, rounds);
	}
}

TEST(nor_two_ways_by_two_threads_at_once)
{
	kin_run(2, race);
}

TEST_MAIN
