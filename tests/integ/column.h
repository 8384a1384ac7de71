/* column.h - a layout for tests: every n-th run of width bytes out of a wider row, as in a matrix's column. */
#ifndef COLUMN_H
#define COLUMN_H
#include "crew.h"

struct column {
	struct weft_layout layout;
	unsigned char *base;
	size_t width, stride;
};

static inline int column_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	const struct column *c = (const struct column *)l;
	int n = 0;

	for (; n < max && at < l->len; n++) {
		size_t row = at / c->width, in = at % c->width, len = c->width - in;

		if (len > l->len - at)
			len = l->len - at;
		ret_iov[n] = (struct iovec){ c->base + row * c->stride + in, len };
		at += len;
	}
	return n;
}

static inline void column_move(const struct weft_layout *l, size_t at, void *bytes, size_t n, int in)
{
	const struct column *c = (const struct column *)l;
	unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++, at++) {
		unsigned char *place = c->base + at / c->width * c->stride + at % c->width;

		if (in)
			*place = b[i];
		else
			b[i] = *place;
	}
}

static inline struct column column_new(size_t len, size_t width, size_t stride, bool moves)
{
	struct column c = { { len, column_pieces, moves ? column_move : NULL }, NULL, width, stride };

	c.base = memory((len / width + 1) * stride);
	return c;
}
#endif
