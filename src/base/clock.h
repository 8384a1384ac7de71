/* clock.h - CLOCK_MONOTONIC in ns, the only clock weft knows. */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdbool.h>
#include <time.h>
#include <weft/base.h>

#include "base/cpu.h"

static inline weft_time wf_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (weft_time)t.tv_sec * WEFT_S + t.tv_nsec;
}

/* How long ago something was, roughly and cheaply: differences of what the core counts. wf_ticks_us: a microsecond, or about. */
#if defined(__aarch64__)
static inline uint64_t wf_ticks(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}
static inline uint64_t wf_ticks_us(void)
{
	uint64_t hz;

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz / 1000000 + 1;
}
#elif defined(__x86_64__)
static inline uint64_t wf_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
static inline uint64_t wf_ticks_us(void)
{
	return 2500;
}
#endif

/* As wf_now, but for a microsecond or two: for time-outs, around which looking at the clock is a good part of the work. What a thread saw of the clock a millisecond ago at most, and
 * the ticks since, of which it has found out how long they are. */
struct wf_clock_seen {
	uint64_t at, keeps;             /* in ticks */
	uint64_t rate;                  /* ns of a tick, in 2^-WF_RATE_SHIFT; 0: not known yet */
	weft_time now;
	uint64_t first_at;              /* when the row of looks began from which the rate is known */
	weft_time first;
};
#define WF_RATE_SHIFT 20
extern _Thread_local struct wf_clock_seen wf_clock_seen;
weft_time wf_clock_look(void);          /* at the clock itself */

/* @ticks: wf_ticks() just now. */
static inline weft_time wf_now_at(uint64_t ticks)
{
	uint64_t since = ticks - wf_clock_seen.at;

	if (wf_unlikely(since >= wf_clock_seen.keeps))
		return wf_clock_look();
	return wf_clock_seen.now + (weft_time)(since * wf_clock_seen.rate >> WF_RATE_SHIFT);
}

static inline weft_time wf_now_about(void)
{
	return wf_now_at(wf_ticks());
}

/* Has @until come? WEFT_NOW always has, WEFT_FOREVER never; neither asks the clock. */
static inline bool wf_past(weft_time until)
{
	return until != WEFT_FOREVER && (until <= WEFT_NOW || wf_now() >= until);
}

/* Sleeps; unlike nanosleep(3) it is no cancellation point, so locks may be held. */
void wf_nap(int64_t ns);

/* The next pause of who waits for others that are at it and do not wait for him: he yields at first, and sleeps a little each time later. @times counts them, from 0. */
void wf_pause_for(unsigned *times);

/* What a call whose deadline has come answers. */
int wf_late(weft_time until);

#endif
