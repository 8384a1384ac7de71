/* crc32c.c - by the CPU's instruction, and by its multiplication without carries if there are enough bytes; or half a byte at a time by a table small enough to be read over.
 *
 * Every x86-64 since 2008 and every aarch64 since ARMv8.1 has the instruction, so the table is for correctness, not
 * for speed. A step of it takes a cycle on a Neoverse-V1, which can multiply meanwhile: 4 KiB take 0.62 of the time if each has a half of them. On
 * Intel's it waits three cycles for the one before, and multiplying alone is the faster (4 KiB: a third of the time).
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

#define STEP8 WF_CRC32C_STEP8
#if defined(__aarch64__)
#define STEP1(crc, v) __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(v))
#define MULTIPLY(low, high, a, b) \
	__asm__(".arch_extension aes\n\tpmull %0.1q, %2.1d, %3.1d\n\tpmull2 %1.1q, %2.2d, %3.2d" : "=&w"(low), "=w"(high) : "w"(a), "w"(b))
static bool cpu_has_crc(void)
{
	return getauxval(AT_HWCAP) & 1ul << 7;          /* HWCAP_CRC32 */
}

static bool cpu_multiplies(void)
{
	return getauxval(AT_HWCAP) & 1ul << 4;          /* HWCAP_PMULL */
}
#elif defined(__x86_64__)
#define STEP1(crc, v) __asm__("crc32b %b1, %k0" : "+r"(crc) : "q"(v))
#define MULTIPLY(low, high, a, b) \
	do { \
		low = high = a; \
		__asm__("pclmulqdq $0x00, %1, %0" : "+x"(low) : "x"(b)); \
		__asm__("pclmulqdq $0x11, %1, %0" : "+x"(high) : "x"(b)); \
	} while (0)
static bool cpu_has_crc(void)
{
	return __builtin_cpu_supports("sse4.2");
}

static bool cpu_multiplies(void)
{
	return __builtin_cpu_supports("pclmul");
}
#endif

#ifdef WF_CRC32C_STEP8
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

/* Bytes are a polynomial, and what is left of it divided by another one is the sum. Sixteen bytes may be moved over those that follow them and added to what is there: each half
 * of them times x to the power of the distance, modulo the divisor, of which 33 are left out: 32 are what the instruction itself multiplies by, and one, that the product of two words with their
 * lowest bits first lies one bit too low. The half that lies further away needs 64 more. */
typedef uint64_t pair __attribute__((vector_size(16)));
#define OVER_16 ((pair){ 0xf20c0dfe, 0x493c7d27 })
#define OVER_64 ((pair){ 0x740eef02, 0x9e4addf8 })

static inline pair pair_at(const uint8_t *p)
{
	pair v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline pair moved(pair a, pair over)
{
	pair low, high;

	MULTIPLY(low, high, a, over);
	return low ^ high;
}

/* Four in a row are moved over the next four, and so on; at last they become one, of which the sum is taken. */
struct four {
	pair a, b, c, d;
};

static inline struct four four_begin(const uint8_t *p)
{
	return (struct four){ pair_at(p), pair_at(p + 16), pair_at(p + 32), pair_at(p + 48) };
}

static inline void four_next(struct four *f, const uint8_t *p)
{
	f->a = moved(f->a, OVER_64) ^ pair_at(p);
	f->b = moved(f->b, OVER_64) ^ pair_at(p + 16);
	f->c = moved(f->c, OVER_64) ^ pair_at(p + 32);
	f->d = moved(f->d, OVER_64) ^ pair_at(p + 48);
}

static inline uint64_t four_end(const struct four *f)
{
	pair one = moved(moved(moved(f->a, OVER_16) ^ f->b, OVER_16) ^ f->c, OVER_16) ^ f->d;
	uint64_t crc = 0;

	STEP8(crc, one[0]);
	STEP8(crc, one[1]);
	return crc;
}

#if defined(__aarch64__)
/* Eight steps, without a loop around each. */
static inline uint64_t eight(uint64_t crc, const uint8_t *p)
{
	uint64_t v[8];

	memcpy(v, p, sizeof(v));
	STEP8(crc, v[0]);
	STEP8(crc, v[1]);
	STEP8(crc, v[2]);
	STEP8(crc, v[3]);
	STEP8(crc, v[4]);
	STEP8(crc, v[5]);
	STEP8(crc, v[6]);
	STEP8(crc, v[7]);
	return crc;
}

/* The first half by the instruction, the second by multiplying, side by side: the CPU does both at once. @over: half a way. */
static inline __attribute__((always_inline)) uint64_t halves(uint64_t crc, const uint8_t *p, size_t half, uint32_t over)
{
	struct four f = four_begin(p + half);
	uint64_t sum = 0;

	crc = eight(crc, p);
	for (size_t i = 64; i < half; i += 64) {
		four_next(&f, p + half + i);
		crc = eight(crc, p + i);
	}
	crc = moved((pair){ crc, 0 }, (pair){ over, 0 })[0];
	STEP8(sum, crc);
	return sum ^ four_end(&f);
}

static uint32_t by_multiplying(uint32_t before, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t crc = (uint32_t)~before;

	for (; n >= 2048; p += 2048, n -= 2048)
		crc = halves(crc, p, 1024, 0x170076fa);
	for (; n >= 512; p += 512, n -= 512)
		crc = halves(crc, p, 256, 0xb9e02b86);
	return by_instruction(~(uint32_t)crc, p, n);
}
#else
static uint32_t by_multiplying(uint32_t before, const void *data, size_t n)
{
	const uint8_t *p = data;
	struct four f;

	if (n < 128)
		return by_instruction(before, data, n);
	f = four_begin(p);
	f.a[0] ^= (uint32_t)~before;
	for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
		four_next(&f, p);
	return by_instruction(~(uint32_t)four_end(&f), p, n);
}
#endif
#endif
#undef STEP8
#undef STEP1
#undef MULTIPLY

bool wf_crc32c_steps;

__attribute__((constructor)) static void ask(void)
{
	wf_crc32c_steps = wf_crc32c_instruction() != NULL;
}

wf_crc32c_fn wf_crc32c_instruction(void)
{
#if defined(__aarch64__) || defined(__x86_64__)
	return !cpu_has_crc() ? NULL : cpu_multiplies() ? by_multiplying : by_instruction;
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
