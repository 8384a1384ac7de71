/* numbers.c - index and generation for what the other end has to name: sends, landings. A name that is over is never mistaken for a later one
 * (until its generation has gone round 2^32 times), and a made-up one finds nothing.
 *
 *     number = generation << 32 | index          generation from 1, so no number is 0
 */
#include <errno.h>
#include <stdlib.h>

#include "peer/inner.h"

#define NONE UINT32_MAX

int wf_numbers_grow(struct wf_numbers *t)
{
	uint32_t size = t->size ? 2 * t->size : 16;
	struct wf_number *slot = size > t->size ? realloc(t->slot, size * sizeof(*slot)) : NULL;

	if (!slot)
		return -ENOMEM;
	t->slot = slot;
	t->free = t->size;
	for (uint32_t i = t->size; i < size; i++)
		slot[i] = (struct wf_number){ .gen = 1, .next = i + 1 < size ? i + 1 : NONE };
	t->size = size;
	return 0;
}

void *wf_numbers_find(const struct wf_numbers *t, uint64_t number)
{
	uint32_t i = (uint32_t)number;

	return i < t->size && t->slot[i].gen == number >> 32 ? t->slot[i].what : NULL;
}

void wf_numbers_fini(struct wf_numbers *t)
{
	free(t->slot);
	*t = (struct wf_numbers){ 0 };
}
