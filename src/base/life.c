/* life.c - see life.h. */
#include "base/life.h"

#include <errno.h>
#include <weft/base.h>

_Atomic int wf_life;

int wf_not_in(void)
{
	if (wf_is_child())
		return weft_fail(-ECHILD, "weft does not work in a forked child");
	return weft_fail(-ENOTCONN, "weft_init was not called, or weft_fini was");
}
