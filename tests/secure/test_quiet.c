/* test_quiet.c - one line per source and minute, the rest counted, in a memory that does not grow. */
#include "test.h"

#include <weft/weft.h>

#include "secure/quiet.h"

static struct wf_quiet q;
static weft_time now;

static bool tells(uint32_t number, uint64_t *ret_since)
{
	uint8_t source[WF_QUIET_NAME] = { 0 };

	memcpy(source, &number, sizeof(number));
	return wf_quiet_tell(&q, source, now, ret_since);
}

TEST(a_source_gets_one_line_a_minute_and_its_count)
{
	uint64_t since = 99;

	memset(&q, 0, sizeof(q));
	now = 5;
	CHECK(tells(1, &since) && since == 0);
	for (int i = 0; i < 1000; i++, now += WEFT_S / 20)
		CHECK(!tells(1, &since));
	CHECK(tells(2, &since) && since == 0);          /* another has its own */
	now = 5 + WF_QUIET_TIME - 1;
	CHECK(!tells(1, &since));
	now++;
	CHECK(tells(1, &since));
	CHECK_EQ(since, 1001);
	CHECK(!tells(1, &since));
	CHECK_EQ(q.all, 1005);
	CHECK_EQ(q.told, 3);
}

TEST(invented_sources_get_64_lines_a_minute)
{
	uint64_t since, lines = 0;

	memset(&q, 0, sizeof(q));
	now = 0;
	for (uint32_t i = 0; i < 10000; i++, now += WF_QUIET_TIME / 10000)
		lines += tells(i, &since);
	CHECK_EQ(lines, WF_QUIET_SOURCES);
	CHECK_EQ(q.all, 10000);
	now = 2 * WF_QUIET_TIME;
	for (uint32_t i = 0; i < 10000; i++)
		lines += tells(100000 + i, &since);
	CHECK_EQ(lines, 2 * WF_QUIET_SOURCES);
}

TEST_MAIN
