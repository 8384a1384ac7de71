/* slab.h - private objects of fixed size: requests, message records.
 *
 * Taken and given back by any thread, through the caller's own cache (depot.h): no lock, no
 * allocation in the usual case. The memory of a kind stays that kind's while the process lives, so a
 * stale pointer may be looked at (an atomic generation, say) though the object has gone. While
 * an object is free its first 16 bytes are the slab's; the rest is left as it was, also for the next
 * who gets it.
 */
#ifndef WF_MEM_SLAB_H
#define WF_MEM_SLAB_H

#include <stddef.h>

#include "mem/depot.h"

enum { WF_SLAB_REQ = WF_DEPOT_REQ, WF_SLAB_RECORD = WF_DEPOT_RECORD, WF_SLAB_KINDS };

#define WF_SLAB_ALIGN 64

/* Before the first get of @kind; again with the same size: nothing happens.
 * -EINVAL: no such kind, no size or another one; -ENOMEM. */
int wf_slab_setup(int kind, size_t size);

/* [any] An object, not zeroed (zero when it is new), 64-byte aligned; NULL: no memory. */
static inline void *wf_slab_get(int kind)
{
	struct wf_link *l;

	return wf_depot_get(kind, &l) < 0 ? NULL : (void *)l;
}

/* [any] @obj came from wf_slab_get(kind) and is not used any more. NULL is fine. */
static inline void wf_slab_put(int kind, void *obj)
{
	if (obj)
		wf_depot_put(kind, obj);
}

#endif
