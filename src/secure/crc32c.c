/* crc32c.c - by the CPU's instruction, or half a byte at a time by a table small enough to be read over.
 *
 * Every x86-64 since 2008 and every aarch64 since ARMv8.1 has the instruction, so the table is for correctness, not
 * for speed.
 */
#include "secure/crc32c.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* What the lower four bits do to the rest when they are shifted out (polynomial 0x82f63b78, lowest bit first). */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t wf_crc32c_table(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; n; n--) {
		crc ^= *p++;
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}

/* The instruction, by its name: the headers that wrap it want the whole file compiled for a CPU that has it. */
#if defined(__aarch64__)
#define STEP8(crc, v) __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r"(crc) : "r"(v))
#define STEP1(crc, v) __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(v))
static bool cpu_has_crc(void)
{
	return getauxval(AT_HWCAP) & 1ul << 7;          /* HWCAP_CRC32 */
}
#elif defined(__x86_64__)
#define STEP8(crc, v) __asm__("crc32q %1, %q0" : "+r"(crc) : "r"(v))
#define STEP1(crc, v) __asm__("crc32b %b1, %k0" : "+r"(crc) : "q"(v))
static bool cpu_has_crc(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#endif

#ifdef STEP8
static uint32_t by_instruction(uint32_t before, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t crc = (uint32_t)~before, v;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		STEP8(crc, v);
	}
	for (; n; p++, n--) {
		uint32_t b = *p;

		STEP1(crc, b);
	}
	return ~(uint32_t)crc;
}
#endif
#undef STEP8
#undef STEP1

wf_crc32c_fn wf_crc32c_instruction(void)
{
#if defined(__aarch64__) || defined(__x86_64__)
	return cpu_has_crc() ? by_instruction : NULL;
#else
	return NULL;
#endif
}

uint32_t wf_crc32c(uint32_t crc, const void *data, size_t n)
{
	static _Atomic(wf_crc32c_fn) chosen;
	/* relaxed: whoever finds NULL chooses the same function once more. */
	wf_crc32c_fn fn = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!fn) {
		fn = wf_crc32c_instruction();
		if (!fn)
			fn = wf_crc32c_table;
		atomic_store_explicit(&chosen, fn, memory_order_relaxed);
	}
	return fn(crc, data, n);
}
