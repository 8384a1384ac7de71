/* object.c - memory for the layer's objects, kept by kind.
 *
 * What was freed is only used for objects of its kind again and its kind is cleared, so that a stale handle is
 * recognised by a plain look: the memory is there for ever and says that it is nothing.
 * Requests come and go with every message: each thread keeps some (request.c).
 */
#include <stdlib.h>
#include <string.h>

#include "inner.h"

union spare {
	struct wm_object obj;
	struct {
		uint32_t none, size;
		union spare *next;
	};
};

static struct {
	pthread_mutex_t lock;
	union spare *first;
} spares[WM_KINDS - WM_COMM];

__attribute__((constructor)) static void spares_init(void)
{
	for (size_t i = 0; i < sizeof(spares) / sizeof(*spares); i++)
		pthread_mutex_init(&spares[i].lock, NULL);
}

void *wm_object_new(uint32_t kind, size_t size)
{
	union spare *s;

	pthread_mutex_lock(&spares[kind - WM_COMM].lock);
	s = spares[kind - WM_COMM].first;
	if (s)
		spares[kind - WM_COMM].first = s->next;
	pthread_mutex_unlock(&spares[kind - WM_COMM].lock);
	if (!s)
		s = calloc(1, size > sizeof(*s) ? size : sizeof(*s));
	else
		memset(s, 0, size);
	if (!s)
		return NULL;
	atomic_store_explicit(&s->obj.refs, 1, memory_order_relaxed);
	atomic_store_explicit(&s->obj.kind, kind, memory_order_relaxed);
	return s;
}

void wm_object_free(void *object)
{
	union spare *s = object;
	uint32_t kind = atomic_load_explicit(&s->obj.kind, memory_order_relaxed);

	atomic_store_explicit(&s->obj.kind, 0, memory_order_relaxed);
	pthread_mutex_lock(&spares[kind - WM_COMM].lock);
	s->next = spares[kind - WM_COMM].first;
	spares[kind - WM_COMM].first = s;
	pthread_mutex_unlock(&spares[kind - WM_COMM].lock);
}
