/* test_outputs.c - what processes print on its way through a station: in pieces of whole lines, each in its turn, and no more than there is a way for. */
#include "cmd/outputs.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "test.h"

#define TENTH INT64_C(100000000)

static struct outputs outputs;
static struct talk talk, launcher;
static int write_ends[4];

/* @count processes whose standard output is carried; what is said goes through a pipe that holds all of it. */
static void begin(int count)
{
	int way[2], pair[2];

	MUST_OK(pipe2(way, O_CLOEXEC));
	MUST(fcntl(way[1], F_SETPIPE_SZ, 1 << 20) > 0);
	talk_open(&talk, dup(way[0]), way[1]);
	talk_open(&launcher, way[0], dup(way[1]));
	for (int i = 0; i < count; i++) {
		MUST_OK(pipe2(pair, O_CLOEXEC));
		MUST(fcntl(pair[1], F_SETPIPE_SZ, 1 << 20) > 0);
		write_ends[i] = pair[1];
		MUST_OK(outputs_add(&outputs, pair[0], (uint32_t)i, 1));
	}
}

static void end(void)
{
	talk_close(&talk);
	talk_close(&launcher);
	outputs_close(&outputs);
	for (size_t i = 0; i < sizeof(write_ends) / sizeof(*write_ends); i++) {
		if (write_ends[i])
			close(write_ends[i]);
		write_ends[i] = 0;
	}
}

static void print(int who, const char *text, size_t n)
{
	MUST(write(write_ends[who], text, n) == (ssize_t)n);
}

/* The next piece: its rank, or -1: none. */
static int next_piece(const uint8_t **ret_bytes, size_t *ret_n)
{
	enum control kind;
	struct wf_body b;
	int rank;

	while (!talk_next(&launcher, &kind, &b)) {
		size_t was = launcher.got_n - launcher.got_at;

		talk_read(&launcher);
		if (launcher.got_n - launcher.got_at == was)
			return -1;
	}
	MUST(kind == CONTROL_OUTPUT);
	rank = (int)wf_body_get32(&b);
	CHECK_EQ(wf_body_get32(&b), 1);
	*ret_bytes = b.bytes + b.at;
	*ret_n = b.n - b.at;
	return rank;
}

static bool comes(int rank, const char *text)
{
	const uint8_t *bytes;
	size_t n;

	return next_piece(&bytes, &n) == rank && n == strlen(text) && !memcmp(bytes, text, n);
}

static bool nothing_comes(void)
{
	const uint8_t *bytes;
	size_t n;

	return next_piece(&bytes, &n) == -1;
}

TEST(lines_go_at_once_and_what_has_no_end_waits_for_it)
{
	begin(2);
	print(0, "one\ntwo\nthr", 11);
	print(1, "1\n", 2);
	CHECK_EQ(outputs_wait(&outputs, 0), -1);
	outputs_carry(&outputs, &talk, 0);
	CHECK(comes(0, "one\ntwo\n") && comes(1, "1\n") && nothing_comes());
	CHECK(outputs_wait(&outputs, 0) >= 100);
	print(0, "ee\n", 3);
	outputs_carry(&outputs, &talk, TENTH / 2);
	CHECK(comes(0, "three\n") && nothing_comes());
	CHECK_EQ(outputs_wait(&outputs, TENTH / 2), -1);
	end();
}

TEST(a_prompt_is_seen_a_tenth_of_a_second_later)
{
	begin(2);
	print(0, "name? ", 6);
	outputs_carry(&outputs, &talk, 5);
	outputs_carry(&outputs, &talk, TENTH + 4);
	CHECK(nothing_comes());
	CHECK_EQ(outputs_wait(&outputs, TENTH + 4), 1);
	CHECK_EQ(outputs_wait(&outputs, TENTH + 5), 0);
	outputs_carry(&outputs, &talk, TENTH + 5);
	CHECK(comes(0, "name? ") && nothing_comes());
	CHECK_EQ(outputs_wait(&outputs, TENTH + 5), -1);
	end();
}

TEST(of_one_that_is_alone_nothing_waits)
{
	begin(1);
	outputs.alone = true;
	print(0, "name? ", 6);
	outputs_carry(&outputs, &talk, 0);
	CHECK(comes(0, "name? "));
	end();
}

TEST(a_line_is_kept_whole_up_to_its_bound_and_then_taken_apart)
{
	static char line[2 * OUTPUT_LINE];
	const uint8_t *bytes;
	size_t n, all = 0;

	memset(line, 'x', sizeof(line));
	begin(2);
	line[OUTPUT_LINE - 1] = '\n';
	print(0, line, OUTPUT_LINE);
	for (int i = 0; i < 8; i++)
		outputs_carry(&outputs, &talk, 0);
	CHECK_EQ(next_piece(&bytes, &n), 0);
	CHECK_EQ(n, OUTPUT_LINE);
	CHECK(nothing_comes());
	CHECK(outputs_printed(&outputs, OUTPUT_LINE));
	line[OUTPUT_LINE - 1] = 'x';
	print(0, line, sizeof(line));
	for (int i = 0; i < 16; i++)
		outputs_carry(&outputs, &talk, 0);
	while (next_piece(&bytes, &n) == 0) {
		CHECK(n >= OUTPUT_LINE);
		all += n;
	}
	CHECK_EQ(all, sizeof(line));
	end();
}

TEST(no_more_is_on_its_way_than_was_agreed_and_each_has_its_turn)
{
	static char lines[2 * CONTROL_OUTPUT_WAY];
	size_t n, all[2] = { 0, 0 };
	const uint8_t *bytes;
	int who;

	memset(lines, '\n', sizeof(lines));
	begin(2);
	print(0, lines, sizeof(lines));
	print(1, lines, sizeof(lines));
	for (int i = 0; i < 100; i++)
		outputs_carry(&outputs, &talk, 0);
	while ((who = next_piece(&bytes, &n)) >= 0)
		all[who] += n;
	CHECK(all[0] + all[1] <= CONTROL_OUTPUT_WAY && all[0] + all[1] > CONTROL_OUTPUT_WAY / 2);
	CHECK(all[0] && all[1] && (all[0] > all[1] ? all[0] - all[1] : all[1] - all[0]) <= OUTPUT_PIECE);
	CHECK_EQ(outputs.unprinted, all[0] + all[1]);
	CHECK(!outputs_printed(&outputs, (uint32_t)(all[0] + all[1] + 1)));
	CHECK(outputs_printed(&outputs, (uint32_t)(all[0] + all[1])));
	outputs_carry(&outputs, &talk, 0);
	CHECK(next_piece(&bytes, &n) >= 0);
	end();
}

TEST(an_end_is_told_behind_the_last_piece_and_leaves_no_descriptor)
{
	begin(3);
	print(1, "no end", 6);
	close(write_ends[1]);
	write_ends[1] = 0;
	outputs_carry(&outputs, &talk, 0);
	outputs_carry(&outputs, &talk, 0);
	CHECK(comes(1, "no end") && comes(1, "") && nothing_comes());
	CHECK_EQ(outputs.count, 2);
	print(2, "last", 4);
	CHECK(outputs_over(&outputs, &talk));
	CHECK(comes(0, "") && comes(2, "last") && comes(2, "") && nothing_comes());
	CHECK_EQ(outputs.count, 0);
	end();
}

TEST(it_is_not_over_before_there_was_a_way_for_all)
{
	static char lines[2 * CONTROL_OUTPUT_WAY];
	const uint8_t *bytes;
	size_t n, all = 0;

	memset(lines, '\n', sizeof(lines));
	begin(1);
	print(0, lines, sizeof(lines));
	for (int i = 0; i < 10 && !outputs_over(&outputs, &talk); i++)
		while (next_piece(&bytes, &n) == 0) {
			all += n;
			CHECK(outputs_printed(&outputs, (uint32_t)n));
		}
	while (next_piece(&bytes, &n) == 0)
		all += n;
	CHECK_EQ(all, sizeof(lines));
	CHECK_EQ(outputs.count, 0);
	end();
}

TEST_MAIN
