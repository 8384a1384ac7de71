/* slab.c - memory for private objects: blocks of 64 KiB, cut up and never given back. See slab.h.
 *
 * Blocks come from the heap rather than from mmap, so that a leak checker follows the pointers in
 * them. They are kept in a list for the same reason.
 */
#include "mem/slab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#define BLOCK_BYTES ((size_t)65536)

struct block {                          /* the first bytes of its memory */
	struct block *next;
};

static struct slab {
	size_t size;                    /* under lock until set up, then constant */
	struct block *blocks;           /* under lock */
	char *at, *end;                 /* under lock; what of the newest block is not yet cut */
} slabs[WF_SLAB_KINDS];

static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;

static int block_new_locked(struct slab *s)
{
	size_t bytes = BLOCK_BYTES;
	struct block *b;

	while (bytes < WF_SLAB_ALIGN + 8 * s->size)
		bytes *= 2;
	b = aligned_alloc(WF_SLAB_ALIGN, bytes);
	if (!b)
		return weft_fail(-ENOMEM, "no memory for %zu bytes of requests and records", bytes);
	memset(b, 0, bytes);
	b->next = s->blocks;
	s->blocks = b;
	s->at = (char *)b + WF_SLAB_ALIGN;
	s->end = (char *)b + bytes;
	return 0;
}

static int slab_fill(int which, unsigned max, struct wf_link **ret_list)
{
	struct slab *s = &slabs[which];
	struct wf_link *list = NULL;
	unsigned n = 0;
	int r = 0;

	pthread_mutex_lock(&slab_lock);
	if ((size_t)(s->end - s->at) < s->size)
		r = block_new_locked(s);
	while (r == 0 && n < max && (size_t)(s->end - s->at) >= s->size) {
		struct wf_link *l = (struct wf_link *)(void *)s->at;

		l->next = list;
		list = l;
		s->at += s->size;
		n++;
	}
	pthread_mutex_unlock(&slab_lock);
	if (r < 0)
		return r;
	*ret_list = list;
	return (int)n;
}

int wf_slab_setup(int kind, size_t size)
{
	static const struct wf_depot_kind depot = { .batch = 32, .bytes = 0, .fill = slab_fill };
	int r = 0;

	if (kind < 0 || kind >= WF_SLAB_KINDS || !size || size > BLOCK_BYTES)
		return weft_fail(-EINVAL, "no slab of kind %d with objects of %zu bytes", kind, size);
	size = (size + WF_SLAB_ALIGN - 1) & ~(size_t)(WF_SLAB_ALIGN - 1);
	pthread_mutex_lock(&slab_lock);
	if (!slabs[kind].size)
		slabs[kind].size = size;
	else if (slabs[kind].size != size)
		r = weft_fail(-EINVAL, "slab %d has objects of another size than %zu", kind, size);
	pthread_mutex_unlock(&slab_lock);
	return r < 0 ? r : wf_depot_setup(kind, &depot);
}
