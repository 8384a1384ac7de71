/* throw.h - what tests share that throw buffers about: that none is had by two, and that all come home.
 *
 * A stamp is a word at both ends and in the middle of a buffer, written by whoever has it: a second holder would break it.
 */
#ifndef THROW_H
#define THROW_H
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

/* Everything is home: all of the pool's @limit can be had, in one class and in another. */
static inline void check_whole(size_t limit)
{
	static struct weft_buf *b[1024];

	MUST(limit / 65536 < 1024);
	for (size_t len = 65536; len <= 4 * MIB; len *= 64) {
		size_t n = 0;
		int r;

		while ((r = weft_buf_get(len, WEFT_RAIL_ANY, &b[n])) == 0)
			n++;
		CHECK_EQ(r, -EAGAIN);
		CHECK_EQ(n, limit / len);
		while (n > 0)
			CHECK_OK(weft_buf_put(b[--n]));
	}
}
#endif
