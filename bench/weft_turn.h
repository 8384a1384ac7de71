/* weft_turn.h - a turn given by a weft message of 8 B, which says the how manieth it is. */
#ifndef BENCH_WEFT_TURN_H
#define BENCH_WEFT_TURN_H
#include "turns.h"
#include "weft_link.h"

static inline void message_prepare(struct turn *t, int side)
{
	t->name[side] = weft_self();
	if (!t->name[side])
		die("weft_self: %s", weft_last_error());
}

static inline void message_give(struct turn *t, int side, uint32_t i)
{
	uint64_t number = i;

	must(weft_send(NULL, t->name[!side], LINK_TAG, &number, sizeof(number), WEFT_FOREVER), "weft_send");
}

static inline void message_take(struct turn *t, int side, uint32_t i)
{
	uint64_t number = 0;

	must(weft_recv(NULL, t->name[!side], LINK_TAG, &number, sizeof(number), WEFT_FOREVER, NULL),
	     "weft_recv");
	if (number != i)
		die("message %u arrived as %llu", i, (unsigned long long)number);
}

static const struct turn_way message_way = { .prepare = message_prepare,
					     .give = message_give,
					     .take = message_take };

#endif
