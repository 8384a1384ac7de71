/* test_early.c - what was said too early, in order, and not without bounds. */
#include "cmd/early.h"

#include "test.h"

/* What host @host said next: its tag; 0: nothing. */
static uint64_t next(uint32_t host)
{
	struct early *e = early_take(host);
	uint64_t tag = e ? e->tag : 0;

	if (e)
		CHECK(e->host == host && e->n == tag && (!e->n || (e->bytes[0] == (uint8_t)tag && e->bytes[e->n - 1] == (uint8_t)tag)));
	free(e);
	return tag;
}

static void keep(uint32_t host, uint64_t tag)
{
	static uint8_t bytes[EARLY_MOST + 1];

	memset(bytes, (int)tag, tag);
	early_keep(host, tag, bytes, tag);
}

TEST(what_a_host_said_comes_in_order_whatever_others_say)
{
	CHECK_EQ(next(1), 0);
	keep(1, 10);
	keep(2, 20);
	keep(1, 11);
	keep(2, 21);
	CHECK_EQ(next(1), 10);
	CHECK_EQ(next(1), 11);
	CHECK_EQ(next(1), 0);
	keep(1, 12);
	CHECK_EQ(next(2), 20);
	CHECK_EQ(next(2), 21);
	CHECK_EQ(next(2), 0);
	CHECK_EQ(next(1), 12);
	keep(3, 30);
	CHECK_EQ(next(3), 30);
	CHECK_EQ(next(3), 0);
}

TEST(what_is_too_much_is_not_kept_and_room_comes_back)
{
	unsigned kept = 0;

	keep(1, EARLY_MOST);
	keep(1, EARLY_MOST + 1);
	CHECK_EQ(next(1), 0);
	for (int i = 0; i < 5000; i++)
		keep(1, 1000);
	while (next(1))
		kept++;
	CHECK(kept > 500 && kept <= EARLY_MOST / 1000);
	keep(1, EARLY_MOST / 2);
	CHECK_EQ(next(1), EARLY_MOST / 2);
}

TEST_MAIN
