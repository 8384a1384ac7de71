/* retain.c - see retain.h. */
#include "peer/retain.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

void wf_retain_fini(struct wf_retain *rt)
{
	free(rt->mem);
	free(rt->old);
	rt->mem = rt->old = NULL;
	rt->size = 0;
}

/* From where on bytes must stay. */
static uint64_t floor_of(const struct wf_retain *rt)
{
	return rt->lent && rt->lent_low < rt->acked ? rt->lent_low : rt->acked;
}

static bool grow(struct wf_retain *rt, uint32_t size)
{
	unsigned char *mem = rt->old ? NULL : malloc(size);

	if (!mem)
		return false;
	for (uint64_t at = rt->acked; at < rt->tail;) {
		uint32_t from = (uint32_t)at & (rt->size - 1), to = (uint32_t)at & (size - 1);
		uint64_t n = rt->tail - at;

		if (n > rt->size - from)
			n = rt->size - from;
		if (n > size - to)
			n = size - to;
		memcpy(mem + to, rt->mem + from, (size_t)n);
		at += n;
	}
	if (rt->lent)
		rt->old = rt->mem;
	else
		free(rt->mem);
	rt->lent_low = UINT64_MAX;      /* nothing is lent from the new block */
	rt->mem = mem;
	rt->size = size;
	return true;
}

bool wf_retain_room(struct wf_retain *rt, size_t n, size_t spare)
{
	uint64_t used = rt->tail - floor_of(rt);
	uint32_t size = rt->size ? rt->size : WF_RETAIN_LEAST;

	if (n > rt->most - spare || used > rt->most - spare - n)
		return false;
	while (size < used + n)
		size *= 2;
	return size <= rt->size || grow(rt, size);
}

void wf_retain_put(struct wf_retain *rt, uint64_t at, const void *from, size_t n)
{
	uint32_t pos = (uint32_t)at & (rt->size - 1);
	size_t first = rt->size - pos < n ? rt->size - pos : n;

	if (!n)
		return;
	memcpy(rt->mem + pos, from, first);
	memcpy(rt->mem, (const char *)from + first, n - first);
}

int wf_retain_lend(struct wf_retain *rt, uint64_t from, uint64_t to, struct iovec ret_iov[2])
{
	uint32_t pos = (uint32_t)from & (rt->size - 1);
	uint64_t n = to - from;
	uint64_t first = rt->size - pos < n ? rt->size - pos : n;

	if (!rt->lent++ || from < rt->lent_low)
		rt->lent_low = from;
	ret_iov[0] = (struct iovec){ rt->mem + pos, (size_t)first };
	ret_iov[1] = (struct iovec){ rt->mem, (size_t)(n - first) };
	return n > first ? 2 : 1;
}

void wf_retain_back(struct wf_retain *rt)
{
	if (--rt->lent)
		return;
	free(rt->old);
	rt->old = NULL;
}

void wf_retain_rest(struct wf_retain *rt)
{
	if (rt->lent || rt->acked != rt->tail)
		return;
	wf_retain_fini(rt);
}
