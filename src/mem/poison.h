/* poison.h - memory in the pool is out of bounds for AddressSanitizer and valgrind.
 *
 * The sanitizer is the program's: its two calls are weak symbols, so that a weft built without it
 * serves a program built with it. Decided once at init; without either tool a buffer pays one
 * predictable branch.
 */
#ifndef WF_MEM_POISON_H
#define WF_MEM_POISON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpu.h"

extern bool wf_poison_on;               /* set by wf_poison_init, then constant */

void wf_poison_init(void);
void wf_poison_slow(void *mem, size_t bytes);
void wf_unpoison_slow(void *mem, size_t bytes);
void wf_poison_root(const void *mem, size_t bytes);     /* pages of our own that point into the heap: what they point to has not leaked */

static inline void wf_poison(void *mem, size_t bytes)
{
	if (wf_unlikely(wf_poison_on))
		wf_poison_slow(mem, bytes);
}

static inline void wf_unpoison(void *mem, size_t bytes)
{
	if (wf_unlikely(wf_poison_on))
		wf_unpoison_slow(mem, bytes);
}

#endif
