/* life.c - see life.h. */
#include "base/life.h"

#include <errno.h>
#include <stdatomic.h>
#include <weft/base.h>

_Atomic int wf_life;

int wf_not_in(void)
{
	if (atomic_load_explicit(&wf_life, memory_order_relaxed) == WF_CHILD)
		return weft_fail(-ECHILD, "weft does not work in a forked child");
	return weft_fail(-ENOTCONN, "weft_init was not called, or weft_fini was");
}
