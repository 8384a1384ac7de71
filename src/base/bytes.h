/* bytes.h - numbers as they stand on the wire: little-endian, at any address. */
#ifndef WF_BASE_BYTES_H
#define WF_BASE_BYTES_H

#include <stdint.h>

static inline void wf_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void wf_put32(uint8_t *p, uint32_t v)
{
	wf_put16(p, (uint16_t)v);
	wf_put16(p + 2, (uint16_t)(v >> 16));
}

static inline void wf_put64(uint8_t *p, uint64_t v)
{
	wf_put32(p, (uint32_t)v);
	wf_put32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t wf_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t wf_get32(const uint8_t *p)
{
	return wf_get16(p) | (uint32_t)wf_get16(p + 2) << 16;
}

static inline uint64_t wf_get64(const uint8_t *p)
{
	return wf_get32(p) | (uint64_t)wf_get32(p + 4) << 32;
}

#endif
