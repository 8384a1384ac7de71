/* pool.h - buffers of every class, up to a limit.
 *
 * A class is the log2 of a buffer's bytes. Buffers up to 32 MiB are carved from pieces (space.h) and go
 * through caches and depots (depot.h); larger ones have a mapping each. Every buffer made counts
 * against the limit with its class's bytes, free or not, until its piece or mapping is given back.
 */
#ifndef WF_MEM_POOL_H
#define WF_MEM_POOL_H

#include <stdatomic.h>
#include <stddef.h>

#include "mem/depot.h"
#include "mem/space.h"

/* One more than the largest length that can be had: 0 while the pool is closed. Any thread; it only
 * tells early what the slow path would. */
extern _Atomic size_t wf_pool_bound;

int wf_pool_refuse(size_t len);         /* the words and the code for a length beyond the bound */
int wf_pool_take_big(unsigned class, struct wf_buf **ret_buf);
void wf_pool_home_big(struct wf_buf *b);

static inline unsigned wf_pool_class(size_t len)
{
	if (len <= (size_t)1 << WF_CLASS_MIN)
		return WF_CLASS_MIN;
	return (unsigned)(8 * sizeof(unsigned long) - (unsigned)__builtin_clzl(len - 1));
}

static inline struct wf_buf *wf_pool_buf(struct wf_link *l)
{
	return (struct wf_buf *)(void *)((char *)l - offsetof(struct wf_buf, link));
}

/* [any] A free buffer of @class, its memory still poisoned. -EAGAIN, -ENOMEM, with the words said. */
static inline int wf_pool_take(unsigned class, struct wf_buf **ret_buf)
{
	struct wf_link *l;
	int r;

	if (wf_unlikely(class > WF_CLASS_CHUNK))
		return wf_pool_take_big(class, ret_buf);
	r = wf_depot_get(WF_DEPOT_BUF + (int)class - WF_CLASS_MIN, &l);
	if (wf_likely(r == 0))
		*ret_buf = wf_pool_buf(l);
	return r;
}

/* [any] @b, in a state that says free, goes back. */
static inline void wf_pool_home(struct wf_buf *b)
{
	if (wf_unlikely(b->class > WF_CLASS_CHUNK))
		wf_pool_home_big(b);
	else
		wf_depot_put(WF_DEPOT_BUF + b->class - WF_CLASS_MIN, &b->link);
}

#endif
