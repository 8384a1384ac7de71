/* native.h - weft's own matching header: source and tag. An instance of weft/match.h like any other. */
#ifndef WF_PORT_NATIVE_H
#define WF_PORT_NATIVE_H

#include <weft/id.h>

struct wf_head {
	weft_id src;                            /* want: WEFT_ANY: anyone */
	uint64_t tag;
	uint64_t ignore;                        /* want: bits of the tag that do not matter; message: 0 */
};

/* Shapes: 1 any source, 2 any tag, 4 some bits of the tag free (hashed as if all were). */
static inline uint32_t wf_head_shape(const struct wf_head *want)
{
	return (want->src == WEFT_ANY) | (want->ignore == UINT64_MAX ? 2u : want->ignore ? 4u : 0u);
}

static inline uint64_t wf_head_hash(const struct wf_head *h, uint32_t shape)
{
	return (shape & 1 ? 0 : h->src * UINT64_C(0xff51afd7ed558ccd)) ^ (shape & 6 ? 0 : h->tag);
}

static inline int wf_head_equal(const struct wf_head *want, const struct wf_head *got)
{
	return (want->src == got->src || want->src == WEFT_ANY) && ((want->tag ^ got->tag) & ~want->ignore) == 0;
}

#define WEFT_MATCH wf_native
#define WEFT_MATCH_HEAD struct wf_head
#define WEFT_MATCH_EQ(want, got) wf_head_equal(want, got)
#define WEFT_MATCH_SHAPE(want) wf_head_shape(want)
#define WEFT_MATCH_HASH(head, shape) wf_head_hash(head, shape)
#include <weft/match.h>

#endif
