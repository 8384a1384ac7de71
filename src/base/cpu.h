/* cpu.h - what the compiler does not say: how to wait in a loop, and how to ask for a line. */
#ifndef WF_BASE_CPU_H
#define WF_BASE_CPU_H

#include "base/step.h"

#define WF_LINE 64              /* cache line of both CPU families */
#define WF_PAIR 128             /* two lines: what adjacent-line prefetch moves at once */

/* The slow way of a call that has a hot one: apart, so that the hot one need not save registers for it. */
#define WF_SLOW __attribute__((noinline, cold))

/* What messages pass to and from other hosts, one behind the other, between two system calls: these functions lie together. */
#define WF_HOT __attribute__((hot))

/* A variable of this library alone, said where it is declared: reached without the table of addresses that one of another library would need. */
#define WF_HERE __attribute__((visibility("hidden")))

#define wf_likely(x) __builtin_expect(!!(x), 1)
#define wf_unlikely(x) __builtin_expect(!!(x), 0)

/* Between two looks at a word another core will write. `yield` is a nop on many aarch64 cores;
 * `isb` empties the pipeline and made the ring 1.35x faster (docs/performance.md). */
static inline void wf_relax(void)
{
	wf_step("relax");
#if defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#elif defined(__x86_64__)
	__asm__ volatile("pause" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* Ask for a line before it is written. On x86-64 the locked instruction on the tail waits for the
 * store buffer, which waits for the cell's line to come back from the reader: asking ahead doubles
 * the rate there. No effect on aarch64, so nothing is issued. */
static inline void wf_want_line(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	(void)p;
#endif
}

/* Ask for a line that another core is about to write, while looking at one that tells when it has: both then come at once. On x86-64 it makes the
 * writer wait (64 B between processes 2.4 of the raw ring instead of 1.5), so nothing is issued. */
static inline void wf_read_ahead(const void *p)
{
#if defined(__aarch64__)
	__builtin_prefetch(p);
#else
	(void)p;
#endif
}

#endif
