/* atomic.h - two read-modify-writes of the hot path, without a call.
 *
 * Built for any aarch64, gcc calls a helper for each of them that asks whether the CPU has LSE; on the hot path
 * the call costs as much as the instruction. Here the question is asked in line. Elsewhere: C11.
 */
#ifndef WF_BASE_ATOMIC_H
#define WF_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fence.h"

#if defined(__aarch64__) && !defined(__ARM_FEATURE_ATOMICS) && !WF_TSAN && !defined(WF_STEP_TEST)
#define WF_ASK_LSE 1
extern bool wf_have_lse;                /* set when the library is loaded, then constant */
#else
#define WF_ASK_LSE 0
#endif

/* Relaxed; *expected is what was found when it answers false. */
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
	return atomic_compare_exchange_weak_explicit(word, expected, desired, memory_order_relaxed, memory_order_relaxed);
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
