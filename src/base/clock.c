/* clock.c - time for programs, and the two ways of being late. */
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RATE_LEAST WEFT_MS              /* a row of looks that tells how long a tick is; reading the clock takes some 50 ns */
#define RATE_MOST WEFT_S                /* a longer one may have slept through a change */

_Thread_local struct wf_clock_seen wf_clock_seen;

/* So many ticks in @time ns: may that be? What they are called is about right; who lost the core between the two looks believes anything. */
static bool plausible(uint64_t ticks, weft_time time)
{
	uint64_t about = (uint64_t)time * wf_ticks_us() / 1000;

	return ticks > about / 4 && ticks < about * 4;
}

weft_time wf_clock_look(void)
{
	struct wf_clock_seen *s = &wf_clock_seen;
	uint64_t at = wf_ticks();
	weft_time now = wf_now(), time = now - s->first;

	if (wf_ticks() - at > 2 * wf_ticks_us())
		return now;             /* the two do not belong together: as if nobody had looked, so that the next one looks again */
	if (!s->first || time < 0 || time > RATE_MOST || (time >= RATE_LEAST && !plausible(at - s->first_at, time))) {
		s->rate = 0;
		s->keeps = wf_ticks_us();
		s->first_at = at;
		s->first = now;
	} else if (time >= RATE_LEAST) {
		s->rate = ((uint64_t)time << WF_RATE_SHIFT) / (at - s->first_at);
		s->keeps = wf_ticks_us() * (WEFT_MS / 1000);
		s->first_at = s->at;
		s->first = s->now;
	}
	s->at = at;
	s->now = now;
	return now;
}

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
