/* early.c - see early.h. */
#include "early.h"

#include <stdlib.h>
#include <string.h>

static struct early *first, **end = &first;
static size_t kept;

static size_t weight(size_t n)
{
	return sizeof(struct early) + n;
}

void early_keep(uint32_t host, uint64_t tag, const void *bytes, size_t n)
{
	struct early *e = n <= EARLY_MOST && kept + weight(n) <= EARLY_MOST ? malloc(weight(n)) : NULL;

	if (!e)
		return;
	*e = (struct early){ .host = host, .tag = tag, .n = n };
	if (n)
		memcpy(e->bytes, bytes, n);
	kept += weight(n);
	*end = e;
	end = &e->next;
}

struct early *early_take(uint32_t host)
{
	for (struct early **at = &first; *at; at = &(*at)->next)
		if ((*at)->host == host) {
			struct early *e = *at;

			*at = e->next;
			if (end == &e->next)
				end = at;
			kept -= weight(e->n);
			return e;
		}
	return NULL;
}
