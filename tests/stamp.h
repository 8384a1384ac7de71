/* stamp.h - a word at both ends and in the middle of a buffer, written by whoever has it: a second holder would break it. */
#ifndef STAMP_H
#define STAMP_H
#include "test.h"

#include <weft/weft.h>

static inline void stamp(struct weft_buf *b, uint64_t value)
{
	memcpy(b->data, &value, sizeof(value));
	memcpy((char *)b->data + b->len / 2, &value, sizeof(value));
	memcpy((char *)b->data + b->len - sizeof(value), &value, sizeof(value));
}

static inline void stamp_check(const struct weft_buf *b)
{
	uint64_t first, mid, last;

	memcpy(&first, b->data, sizeof(first));
	memcpy(&mid, (const char *)b->data + b->len / 2, sizeof(mid));
	memcpy(&last, (const char *)b->data + b->len - sizeof(last), sizeof(last));
	CHECK_EQ(first, mid);
	CHECK_EQ(first, last);
}
#endif
