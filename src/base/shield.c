/* shield.c - see shield.h. */
#include "base/shield.h"

_Thread_local struct wf_shield wf_shielded;
