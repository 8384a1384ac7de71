/* poison.c - the calls of AddressSanitizer and valgrind, where either is present. See poison.h. */
#include "mem/poison.h"

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define HAVE_MEMCHECK 1
#endif
#endif
#ifndef HAVE_MEMCHECK
#define HAVE_MEMCHECK 0
#endif

#pragma GCC visibility push(default)
extern void __asan_poison_memory_region(void const volatile *mem, size_t bytes) __attribute__((weak));
extern void __asan_unpoison_memory_region(void const volatile *mem, size_t bytes) __attribute__((weak));
extern void __lsan_register_root_region(const void *mem, size_t bytes) __attribute__((weak));
#pragma GCC visibility pop

bool wf_poison_on;

void wf_poison_init(void)
{
	bool on = __asan_poison_memory_region && __asan_unpoison_memory_region;

#if HAVE_MEMCHECK
	on |= RUNNING_ON_VALGRIND != 0;
#endif
	wf_poison_on = on;
}

void wf_poison_slow(void *mem, size_t bytes)
{
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(mem, bytes);
#if HAVE_MEMCHECK
	(void)VALGRIND_MAKE_MEM_NOACCESS(mem, bytes);
#endif
}

void wf_unpoison_slow(void *mem, size_t bytes)
{
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(mem, bytes);
#if HAVE_MEMCHECK
	(void)VALGRIND_MAKE_MEM_UNDEFINED(mem, bytes);
#endif
}

void wf_poison_root(const void *mem, size_t bytes)
{
	if (__lsan_register_root_region)
		__lsan_register_root_region(mem, bytes);
}
