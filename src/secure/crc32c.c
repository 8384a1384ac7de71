/* crc32c.c - by the CPU's instruction, three stretches at once if there are enough bytes; or half a byte at a time by a table small enough to be read over.
 *
 * Every x86-64 since 2008 and every aarch64 since ARMv8.1 has the instruction, so the table is for correctness, not
 * for speed. One step of it waits three cycles for the one before, and another could begin in each: so three stretches are summed
 * side by side and then put together, for which the CPU multiplies without carries (4 KiB take two fifths of the time).
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
#define MULTIPLY(a, b) __asm__(".arch_extension aes\n\tpmull %0.1q, %0.1d, %1.1d" : "+w"(a) : "w"(b))
static bool cpu_has_crc(void)
{
	return getauxval(AT_HWCAP) & 1ul << 7;          /* HWCAP_CRC32 */
}

static bool cpu_multiplies(void)
{
	return getauxval(AT_HWCAP) & 1ul << 4;          /* HWCAP_PMULL */
}
#elif defined(__x86_64__)
#define STEP8(crc, v) __asm__("crc32q %1, %q0" : "+r"(crc) : "r"(v))
#define STEP1(crc, v) __asm__("crc32b %b1, %k0" : "+r"(crc) : "q"(v))
#define MULTIPLY(a, b) __asm__("pclmulqdq $0, %1, %0" : "+x"(a) : "x"(b))
static bool cpu_has_crc(void)
{
	return __builtin_cpu_supports("sse4.2");
}

static bool cpu_multiplies(void)
{
	return __builtin_cpu_supports("pclmul");
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

/* How a stretch is moved over the bytes that follow it: x to the power of 8 * bytes - 33, modulo the polynomial. 32 of the 33 are what the instruction itself multiplies by; one, that
 * the product of two words with their lowest bits first lies one bit too low. */
#define OVER_64 0x9e4addf8u
#define OVER_128 0x0d3b6092u
#define OVER_256 0xb9e02b86u
#define OVER_512 0xdd7e3b0cu

static inline uint64_t multiply(uint64_t a, uint32_t b)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	pair x = { a, 0 }, y = { b, 0 };

	MULTIPLY(x, y);
	return x[0];
}

/* Three stretches of @each bytes in a row; @crc is not inverted. */
static inline __attribute__((always_inline)) uint64_t three(uint64_t crc, const uint8_t *p, size_t each, uint32_t over_one, uint32_t over_two)
{
	uint64_t a = crc, b = 0, c = 0, v, together;

	for (size_t i = 0; i < each; i += 8) {
		memcpy(&v, p + i, 8);
		STEP8(a, v);
		memcpy(&v, p + each + i, 8);
		STEP8(b, v);
		memcpy(&v, p + 2 * each + i, 8);
		STEP8(c, v);
	}
	together = multiply(a, over_two) ^ multiply(b, over_one);
	a = 0;
	STEP8(a, together);
	return a ^ c;
}

static uint32_t by_three(uint32_t before, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t crc = (uint32_t)~before;

	for (; n >= 768; p += 768, n -= 768)
		crc = three(crc, p, 256, OVER_256, OVER_512);
	for (; n >= 192; p += 192, n -= 192)
		crc = three(crc, p, 64, OVER_64, OVER_128);
	return by_instruction(~(uint32_t)crc, p, n);
}
#endif
#undef STEP8
#undef STEP1
#undef MULTIPLY

wf_crc32c_fn wf_crc32c_instruction(void)
{
#if defined(__aarch64__) || defined(__x86_64__)
	return !cpu_has_crc() ? NULL : cpu_multiplies() ? by_three : by_instruction;
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
