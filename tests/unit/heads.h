/* heads.h - a head like weft's own for tests of the matcher, and a matcher of it whose work and memory are counted. */
#ifndef HEADS_H
#define HEADS_H

#include "test.h"

/* Memory as the matchers here get it: counted, and refused when a test says so. */
static long alloc_live, alloc_calls, alloc_bytes, alloc_fail_at, alloc_fail_every;

static inline void *alloc_counted(size_t n)
{
	alloc_calls++;
	if (alloc_calls == alloc_fail_at || (alloc_fail_every && alloc_calls % alloc_fail_every == 0))
		return NULL;
	alloc_live++;
	alloc_bytes += (long)n;
	return malloc(n);
}

static inline void free_counted(void *p)
{
	alloc_live -= p != NULL;
	free(p);
}

static inline void alloc_reset(void)
{
	alloc_live = alloc_calls = alloc_bytes = alloc_fail_at = alloc_fail_every = 0;
}

#define WEFT_MATCH_ALLOC(n) alloc_counted(n)
#define WEFT_MATCH_FREE(p) free_counted(p)
#include "port/proto.h"

#define ANY UINT64_MAX

/* A head like weft's own: source, tag, and in a want the bits of the tag that do not matter. */
struct plain_head {
	uint64_t src, tag, ignore;
};

static long compared, hashed, ordered;  /* by plain heads, in all */

static inline int plain_equal(const void *want, const void *got)
{
	const struct plain_head *w = want, *g = got;

	compared++;
	return (w->src == ANY || w->src == g->src) && !((w->tag ^ g->tag) & ~w->ignore);
}

static inline uint32_t plain_shape(const void *want)
{
	const struct plain_head *w = want;

	return (w->src == ANY) | (uint32_t)(w->ignore != 0) << 1;
}

static inline uint64_t plain_hash(const void *head, uint32_t shape)
{
	const struct plain_head *h = head;

	hashed++;
	return (shape & 1 ? 0 : h->src) + (shape & 2 ? 0 : h->tag);
}

static inline int plain_less(const void *a, const void *b)
{
	const struct plain_head *x = a, *y = b;

	ordered++;
	return x->tag != y->tag ? x->tag < y->tag : x->src < y->src;
}

#define WEFT_MATCH plain
#define WEFT_MATCH_HEAD struct plain_head
#define WEFT_MATCH_EQ(want, got) plain_equal(want, got)
#define WEFT_MATCH_SHAPE(want) plain_shape(want)
#define WEFT_MATCH_HASH(head, shape) plain_hash(head, shape)
#include <weft/match.h>

/* Heads at random; @spread: how many values a field has. */
static inline void plain_got(uint64_t *seed, unsigned spread, void *head)
{
	struct plain_head h = { test_random(seed) % (spread / 2 + 1), test_random(seed) % spread, 0 };

	memcpy(head, &h, sizeof(h));
}

#endif
