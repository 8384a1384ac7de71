/* tsan.c - the weak symbols of a ThreadSanitizer that the program may have brought. See tsan.h. */
#include "base/tsan.h"

#if !WF_TSAN

#pragma GCC visibility push(default)
extern void __tsan_acquire(void *at) __attribute__((weak));
extern void __tsan_release(void *at) __attribute__((weak));
#pragma GCC visibility pop

_Bool wf_tsan_user;

void wf_tsan_init(void)
{
	wf_tsan_user = __tsan_acquire && __tsan_release;
}

void wf_tsan_release(void *at)
{
	__tsan_release(at);
}

void wf_tsan_acquire(void *at)
{
	__tsan_acquire(at);
}

#else
typedef int wf_tsan_nothing_here;
#endif
