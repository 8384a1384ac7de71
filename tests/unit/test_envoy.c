/* test_envoy.c - what is said of other jobs: every kind comes as it was said, and whatever is not exactly one is none. */
#include "job/envoy.h"

#include "base/bytes.h"
#include "dir/abroad.h"
#include "test.h"

static uint8_t room[WF_ENVOY_BYTES + 64];
static char long_text[WF_ENVOY_TEXT + 1];
static uint8_t long_ids[8 * (WF_ENVOY_IDS + 1)];

static struct wf_envoy full(enum wf_envoy_kind kind)
{
	static uint8_t ids[16];
	struct wf_envoy e = { .kind = kind, .route = { 1, 2, 3 }, .error = -2, .number = 70000, .process = 1025, .id = UINT64_C(0x0000000700100002), .text = "kind=process", .ids = ids, .count = 2 };

	wf_put64(ids, 5);
	wf_put64(ids + 8, UINT64_C(1) << 40);
	memset(e.job, 7, sizeof(e.job));
	memset(e.treaty, 9, sizeof(e.treaty));
	return e;
}

TEST(every_kind_is_written_as_it_was_read)
{
	uint8_t again[WF_ENVOY_BYTES];

	for (unsigned kind = 1; kind < WF_ENVOY_KINDS; kind++) {
		struct wf_envoy e = full((enum wf_envoy_kind)kind), got;
		size_t n = wf_envoy_write(&e, room, sizeof(room));

		CHECK(n >= 4);
		CHECK_OK(wf_envoy_read(room, n, &got));
		CHECK_EQ(got.kind, kind);
		CHECK_EQ(wf_envoy_write(&got, again, sizeof(again)), n);
		CHECK(!memcmp(room, again, n));
	}
}

TEST(the_fields_of_a_kind_are_what_was_said)
{
	struct wf_envoy e = full(WF_ENVOY_FOUND), got;

	CHECK_OK(wf_envoy_read(room, wf_envoy_write(&e, room, sizeof(room)), &got));
	CHECK_EQ(got.route.host, 1);
	CHECK_EQ(got.route.process, 2);
	CHECK_EQ(got.route.ticket, 3);
	CHECK_EQ(got.error, -2);
	CHECK_EQ(got.number, 70000);
	CHECK_EQ(got.count, 2);
	CHECK_EQ(wf_envoy_id(&got, 1), UINT64_C(1) << 40);
	e = full(WF_ENVOY_WELCOME);
	CHECK_OK(wf_envoy_read(room, wf_envoy_write(&e, room, sizeof(room)), &got));
	CHECK(got.job[15] == 7 && got.treaty[0] == 9 && got.process == 1025 && !got.text);
}

TEST(what_is_cut_off_or_goes_on_is_none)
{
	for (unsigned kind = 1; kind < WF_ENVOY_KINDS; kind++) {
		struct wf_envoy e = full((enum wf_envoy_kind)kind), got;
		size_t n = wf_envoy_write(&e, room, sizeof(room));

		for (size_t i = 0; i < n; i++)
			CHECK_EQ(wf_envoy_read(room, i, &got), -EBADMSG);
		CHECK_EQ(wf_envoy_read(room, n + 1, &got), -EBADMSG);
		for (size_t i = 0; i < n; i++)
			CHECK_EQ(wf_envoy_write(&e, room, i), 0);
	}
}

TEST(what_is_beyond_the_bounds_is_neither_read_nor_written)
{
	struct wf_envoy e = { .kind = WF_ENVOY_GOT, .text = long_text }, got;
	size_t n;

	memset(long_text, 'x', WF_ENVOY_TEXT);
	CHECK_EQ(wf_envoy_write(&e, room, sizeof(room)), 0);
	long_text[WF_ENVOY_TEXT - 1] = 0;
	CHECK_OK(wf_envoy_read(room, wf_envoy_write(&e, room, sizeof(room)), &got));
	e = (struct wf_envoy){ .kind = WF_ENVOY_FOUND, .ids = long_ids, .count = WF_ENVOY_IDS + 1 };
	CHECK_EQ(wf_envoy_write(&e, room, sizeof(room)), 0);
	e.count = WF_ENVOY_IDS;
	n = wf_envoy_write(&e, room, sizeof(room));
	CHECK_OK(wf_envoy_read(room, n, &got));
	wf_put32(room + 24, UINT32_MAX);        /* more ids than there are bytes */
	CHECK_EQ(wf_envoy_read(room, n, &got), -EBADMSG);
	e = (struct wf_envoy){ .kind = WF_ENVOY_REFUSED, .error = 1, .text = "" };
	CHECK_EQ(wf_envoy_read(room, wf_envoy_write(&e, room, sizeof(room)), &got), -EBADMSG);
	e.error = -4096;
	CHECK_EQ(wf_envoy_read(room, wf_envoy_write(&e, room, sizeof(room)), &got), -EBADMSG);
	wf_put32(room, 0);
	CHECK_EQ(wf_envoy_read(room, 4, &got), -EBADMSG);
	wf_put32(room, WF_ENVOY_KINDS);
	CHECK_EQ(wf_envoy_read(room, 4, &got), -EBADMSG);
}

static void job_is(const char *query, uint32_t wanted, const char *rest)
{
	char got[WF_DIR_QUERY + 1];
	uint32_t job = 77;

	CHECK_OK(wf_dir_job_of(query, &job, got));
	CHECK_EQ(job, wanted);
	if (strcmp(got, rest))
		printf("# %s: %s\n", query, got);
	CHECK(!strcmp(got, rest));
}

TEST(the_number_of_a_job_is_taken_out_of_a_query)
{
	job_is("kind=thread", 0, "kind=thread");
	job_is("job=3 kind=thread", 3, " kind=thread");
	job_is("kind=thread job=3 role=a", 3, "kind=thread role=a");
	job_is("kind=thread job=3", 3, "kind=thread");
	job_is("job=2047", 2047, "kind=*");
	job_is("job=0 name=\"job=7\"", 0, " name=\"job=7\"");
	job_is("/job=7/x", 0, "/job=7/x");
	job_is("my.job=7", 0, "my.job=7");
}

TEST(a_job_that_is_no_number_is_refused)
{
	static const char *const wrong[] = { "job=", "job=*", "job=-1", "job=x", "job=4096", "job=99999999999999999999", "job=1 job=1", "job=1 =", "job=\"1" };
	char rest[WF_DIR_QUERY + 1], text[2 * WF_DIR_QUERY];
	uint32_t job;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_EQ(wf_dir_job_of(wrong[i], &job, rest), -EINVAL);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 0;
	CHECK_EQ(wf_dir_job_of(text, &job, rest), -EINVAL);
}

TEST_MAIN
