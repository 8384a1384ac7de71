/* atomic.h - what the hot path needs of an aarch64 newer than the library is built for.
 *
 * Built for any aarch64, gcc calls a helper for each read-modify-write that asks whether the CPU has LSE, and makes an
 * acquire load an ldar, which waits for this thread's own release stores (on the way to another core). Here the question is
 * asked in line: cas, swpa and stadd of LSE, ldapr of RCPC. Elsewhere: C11.
 */
#ifndef WF_BASE_ATOMIC_H
#define WF_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fence.h"

#if defined(__aarch64__) && !defined(__ARM_FEATURE_ATOMICS) && !WF_TSAN && !defined(WF_STEP_TEST)
#define WF_ASK_LSE 1
extern bool wf_have_lse WF_HERE, wf_have_rcpc WF_HERE;  /* set when the library is loaded, then constant */
#else
#define WF_ASK_LSE 0
#endif

/* Does wf_cas64 call nothing? */
static inline bool wf_cas_in_line(void)
{
#if WF_ASK_LSE
	return wf_have_lse;
#else
	return true;
#endif
}

/* Relaxed; *expected is what was found when it answers false, and what is looked up by it is ordered behind it. (By dependency; ThreadSanitizer gets acquire.) */
static inline bool wf_cas64(_Atomic uint64_t *word, uint64_t *expected, uint64_t desired)
{
#if WF_ASK_LSE
	if (__builtin_expect(wf_have_lse, 1)) {
		uint64_t found = *expected;

		__asm__ volatile(".arch_extension lse\n\tcas %0, %2, %1"
				 : "+&r"(found), "+Q"(*(uint64_t *)(uintptr_t)word)
				 : "r"(desired));
		if (found == *expected)
			return true;
		*expected = found;
		return false;
	}
#endif
	return atomic_compare_exchange_weak_explicit(word, expected, desired, WF_TSAN ? memory_order_acquire : memory_order_relaxed,
						     WF_TSAN ? memory_order_acquire : memory_order_relaxed);
}

/* Acquires what a release store of *@word published. */
#if WF_ASK_LSE
#define WF_ACQUIRE(name, kind, load) \
	static inline kind name(const _Atomic kind *word) \
	{ \
		kind v; \
 \
		if (__builtin_expect(wf_have_rcpc, 1)) { \
			__asm__ volatile(".arch_extension rcpc\n\t" load ", %1" : "=r"(v) : "Q"(*(const kind *)(uintptr_t)word) : "memory"); \
			return v; \
		} \
		v = atomic_load_explicit(word, memory_order_relaxed); \
		__asm__ volatile("dmb ishld" ::: "memory"); \
		return v; \
	}
#else
#define WF_ACQUIRE(name, kind, load) \
	static inline kind name(const _Atomic kind *word) \
	{ \
		return atomic_load_explicit(word, memory_order_acquire); \
	}
#endif
WF_ACQUIRE(wf_acquire32, uint32_t, "ldapr %w0")
WF_ACQUIRE(wf_acquire64, uint64_t, "ldapr %0")
#undef WF_ACQUIRE

/* The same for a pointer: @word is an _Atomic one. */
#if WF_ASK_LSE
static inline void *wf_acquire_pointer(const void *word)
{
	return (void *)(uintptr_t)wf_acquire64(word);
}
#else
#define wf_acquire_pointer(word) atomic_load_explicit(word, memory_order_acquire)
#endif

/* Relaxed. */
static inline void wf_add32(_Atomic uint32_t *word, uint32_t n)
{
#if WF_ASK_LSE
	if (__builtin_expect(wf_have_lse, 1)) {
		__asm__ volatile(".arch_extension lse\n\tstadd %w1, %0" : "+Q"(*(uint32_t *)(uintptr_t)word) : "r"(n));
		return;
	}
#endif
	atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}

/* Acquire. */
static inline uint32_t wf_swap32(_Atomic uint32_t *word, uint32_t desired)
{
#if WF_ASK_LSE
	if (__builtin_expect(wf_have_lse, 1)) {
		uint32_t found;

		__asm__ volatile(".arch_extension lse\n\tswpa %w2, %w0, %1"
				 : "=&r"(found), "+Q"(*(uint32_t *)(uintptr_t)word)
				 : "r"(desired)
				 : "memory");
		return found;
	}
#endif
	return atomic_exchange_explicit(word, desired, memory_order_acquire);
}

#endif
