/* crc32c.h - the checksum of records that are sent plainly (Castagnoli's polynomial, as in iSCSI and SCTP).
 *
 * It finds damage, not malice. Both CPU families weft runs on have an instruction for it; where the CPU has not, a
 * table does.
 */
#ifndef WF_SECURE_CRC32C_H
#define WF_SECURE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

typedef uint32_t (*wf_crc32c_fn)(uint32_t crc, const void *data, size_t n);

/* Goes on from @crc, 0 at the beginning: crc(crc(0, a), b) is the checksum of a and b in a row. Any thread. */
uint32_t wf_crc32c(uint32_t crc, const void *data, size_t n);

/* The two it chooses from; the second is NULL where this CPU has no instruction. */
uint32_t wf_crc32c_table(uint32_t crc, const void *data, size_t n);
wf_crc32c_fn wf_crc32c_instruction(void);

/* The instruction for eight bytes, by its name: the headers that wrap it want the whole file compiled for a CPU that has it. @crc: inverted. */
#if defined(__aarch64__)
#define WF_CRC32C_STEP8(crc, v) __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r"(crc) : "r"(v))
#elif defined(__x86_64__)
#define WF_CRC32C_STEP8(crc, v) __asm__("crc32q %1, %q0" : "+r"(crc) : "r"(v))
#endif

#define WF_CRC32C_STEPS1(crc, p) do { uint64_t wf_v; memcpy(&wf_v, (p), 8); WF_CRC32C_STEP8(crc, wf_v); } while (0)
#define WF_CRC32C_STEPS2(crc, p) do { WF_CRC32C_STEPS1(crc, p); WF_CRC32C_STEPS1(crc, (p) + 8); } while (0)
#define WF_CRC32C_STEPS4(crc, p) do { WF_CRC32C_STEPS2(crc, p); WF_CRC32C_STEPS2(crc, (p) + 16); } while (0)

extern bool wf_crc32c_steps WF_HERE;    /* this CPU has it: set when the library is loaded, then constant */

#define WF_CRC32C_SHORT 256u

/* The same as wf_crc32c, quicker for a few whole words of 8 bytes. */
static inline uint32_t wf_crc32c_few(uint32_t crc, const void *data, size_t n)
{
#ifdef WF_CRC32C_STEP8
	if (wf_likely(wf_crc32c_steps && n <= WF_CRC32C_SHORT && n % 8 == 0)) {
		const uint8_t *p = data;
		uint64_t sum = (uint32_t)~crc;

		/* Behind a system call a jump costs as much as several steps. */
		for (; wf_unlikely(n >= 64); p += 32, n -= 32)
			WF_CRC32C_STEPS4(sum, p);
		if (wf_likely(n & 32)) {
			WF_CRC32C_STEPS4(sum, p);
			p += 32;
		}
		if (wf_likely(n & 16)) {
			WF_CRC32C_STEPS2(sum, p);
			p += 16;
		}
		if (n & 8)
			WF_CRC32C_STEPS1(sum, p);
		return ~(uint32_t)sum;
	}
#endif
	return wf_crc32c(crc, data, n);
}

/* The same for three that need not lie anywhere. */
static inline uint32_t wf_crc32c_three(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t words[3] = { a, b, c };

#ifdef WF_CRC32C_STEP8
	if (wf_likely(wf_crc32c_steps)) {
		uint64_t sum = UINT32_MAX;

		WF_CRC32C_STEP8(sum, a);
		WF_CRC32C_STEP8(sum, b);
		WF_CRC32C_STEP8(sum, c);
		return ~(uint32_t)sum;
	}
#endif
	return wf_crc32c(0, words, sizeof(words));
}

#endif
