/* demo_large.h - the 64 MiB of the demo: filled, looked at, and what copying them would take. */
#ifndef BENCH_DEMO_LARGE_H
#define BENCH_DEMO_LARGE_H
#include "measure.h"

#define LARGE ((size_t)64 << 20)

static inline void fill_words(void *mem, size_t n)
{
	uint64_t *word = mem;

	for (size_t i = 0; i < n / sizeof(*word); i++)
		word[i] = i * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t sum_words(const void *mem, size_t n)
{
	const uint64_t *word = mem;
	uint64_t sum = 0;

	for (size_t i = 0; i < n / sizeof(*word); i++)
		sum = (sum << 1 | sum >> 63) ^ word[i];
	return sum;
}

/* One copy of @n bytes between memory in use. */
static inline double copy_ns(size_t n)
{
	char *from = page_memory(n), *to = page_memory(n);
	double ns[5];

	for (size_t i = 0; i < COUNT(ns); i++) {
		uint64_t start = clock_ns();

		memcpy(to, from, n);
		__asm__ volatile("" ::"r"(to) : "memory");
		ns[i] = (double)(clock_ns() - start);
	}
	free(from);
	free(to);
	return median(ns, COUNT(ns));
}

#endif
