/* early.h - what agents have said before this one was told that they are in: it cannot be answered yet, and is kept until then, in order. */
#ifndef EARLY_H
#define EARLY_H

#include <stddef.h>
#include <stdint.h>

#define EARLY_MOST (1u << 20)           /* bytes in all; what comes beyond that is not kept */

struct early {
	struct early *next;
	uint32_t host;
	uint64_t tag;
	size_t n;
	uint8_t bytes[];
};

void early_keep(uint32_t host, uint64_t tag, const void *bytes, size_t n);
struct early *early_take(uint32_t host);        /* the first of that host, to be freed; NULL: there is no more */

#endif
