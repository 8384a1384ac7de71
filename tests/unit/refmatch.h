/* refmatch.h - the reference matcher: two lists and the obvious loops.
 *
 * What weft's matcher must agree with in every step, written to be seen right rather than fast. It knows
 * nothing of weft: heads are up to 32 bytes, an equality decides, and what is matched is a pointer.
 */
#ifndef REFMATCH_H
#define REFMATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct refmatch_item {
	struct refmatch_item *next;
	void *what;
	unsigned char head[32];
};

struct refmatch {
	int (*equal)(const void *want, const void *got);
	size_t len;                             /* of a head */
	struct refmatch_item *wants, *arrivals; /* each in the order in which they came */
	size_t nwants, narrivals;
};

static inline void refmatch_init(struct refmatch *r, int (*equal)(const void *want, const void *got),
				 size_t len)
{
	memset(r, 0, sizeof(*r));
	r->equal = equal;
	r->len = len;
}

static inline void refmatch_append(struct refmatch_item **list, const void *head, size_t len, void *what)
{
	struct refmatch_item *item = (struct refmatch_item *)calloc(1, sizeof(*item));

	if (!item)
		abort();
	item->what = what;
	memcpy(item->head, head, len);
	while (*list)
		list = &(*list)->next;
	*list = item;
}

static inline bool refmatch_drop(struct refmatch_item **list, const void *what)
{
	struct refmatch_item *item;

	for (; (item = *list); list = &item->next) {
		if (item->what == what) {
			*list = item->next;
			free(item);
			return true;
		}
	}
	return false;
}

static inline void refmatch_add_want(struct refmatch *r, const void *want, void *what)
{
	refmatch_append(&r->wants, want, r->len, what);
	r->nwants++;
}

static inline void refmatch_add_arrival(struct refmatch *r, const void *head, void *what)
{
	refmatch_append(&r->arrivals, head, r->len, what);
	r->narrivals++;
}

static inline bool refmatch_remove(struct refmatch *r, const void *what)
{
	if (refmatch_drop(&r->wants, what))
		return r->nwants--, true;
	if (refmatch_drop(&r->arrivals, what))
		return r->narrivals--, true;
	return false;
}

/* The earliest posted want that takes this head, the earliest arrival that suits this want; they stay in. */
static inline void *refmatch_find_want(struct refmatch *r, const void *head)
{
	for (struct refmatch_item *i = r->wants; i; i = i->next)
		if (r->equal(i->head, head))
			return i->what;
	return NULL;
}

static inline void *refmatch_look(struct refmatch *r, const void *want)
{
	for (struct refmatch_item *i = r->arrivals; i; i = i->next)
		if (r->equal(want, i->head))
			return i->what;
	return NULL;
}

/* The partner, taken out; or NULL, and @what is kept. */
static inline void *refmatch_arrive(struct refmatch *r, const void *head, void *what)
{
	void *partner = refmatch_find_want(r, head);

	if (partner)
		refmatch_remove(r, partner);
	else
		refmatch_add_arrival(r, head, what);
	return partner;
}

static inline void *refmatch_want(struct refmatch *r, const void *want, void *what)
{
	void *partner = refmatch_look(r, want);

	if (partner)
		refmatch_remove(r, partner);
	else
		refmatch_add_want(r, want, what);
	return partner;
}

static inline void refmatch_fini(struct refmatch *r)
{
	while (r->wants)
		refmatch_remove(r, r->wants->what);
	while (r->arrivals)
		refmatch_remove(r, r->arrivals->what);
}

#endif
