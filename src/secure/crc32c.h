/* crc32c.h - the checksum of records that are sent plainly (Castagnoli's polynomial, as in iSCSI and SCTP).
 *
 * It finds damage, not malice. Both CPU families weft runs on have an instruction for it; where the CPU has not, a
 * table does.
 */
#ifndef WF_SECURE_CRC32C_H
#define WF_SECURE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*wf_crc32c_fn)(uint32_t crc, const void *data, size_t n);

/* Goes on from @crc, 0 at the beginning: crc(crc(0, a), b) is the checksum of a and b in a row. Any thread. */
uint32_t wf_crc32c(uint32_t crc, const void *data, size_t n);

/* The two it chooses from; the second is NULL where this CPU has no instruction. */
uint32_t wf_crc32c_table(uint32_t crc, const void *data, size_t n);
wf_crc32c_fn wf_crc32c_instruction(void);

#endif
