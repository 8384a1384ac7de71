/* clock.c - time for programs, and the two ways of being late. */
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct wf_clock_seen wf_clock_seen;

weft_time weft_now(void)
{
	return wf_now();
}

weft_time weft_in(int64_t ns)
{
	weft_time now = wf_now(), then;

	if (ns <= 0 && ns > INT64_MIN && -ns >= now)
		return 1;       /* gone by, but not WEFT_NOW: a deadline that has passed answers -ETIMEDOUT */
	if (__builtin_add_overflow(now, ns, &then))
		return ns < 0 ? 1 : WEFT_FOREVER;
	return then < 1 ? 1 : then;
}

void wf_nap(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / WEFT_S, .tv_nsec = ns % WEFT_S };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

void wf_pause_for(unsigned *times)
{
	if ((*times)++ < 20)
		sched_yield();
	else
		wf_nap(50000);
}

int wf_late(weft_time until)
{
	return until == WEFT_NOW ? weft_fail(-EAGAIN, "nothing yet, and the call was not to wait")
				 : weft_fail(-ETIMEDOUT, "the deadline came first");
}
