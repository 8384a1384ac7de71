/* depot.h - free objects of one kind: a cache in every thread over a depot they share.
 *
 * Shape   An object embeds a struct wf_link, used only while it is free. A thread's magazine for a
 *         kind is a stack (top, n <= batch) and a spare of exactly batch objects. The depot holds
 *         chains of exactly batch objects and one loose list of fewer. A whole chain changes
 *         between magazine and depot by two stores under the depot's lock, so of 2 * batch
 *         calls at least batch are answered by the thread alone, whatever the pattern.
 *
 *           magazine            depot
 *           top    o-o-o        chains  o-o-o-o
 *           spare  o-o-o-o        |     o-o-o-o
 *                               loose   o-o
 *
 * Edges   None here: a magazine is its thread's alone and everything else is under a lock, so what
 *         one thread did to an object before putting it happens before what the next one does.
 * Life    A thread's cache is made at its first use of any kind and emptied when the thread ends; other processes' buffers
 *         that wait in it for company on their way home leave then too.
 *         Objects put later still (by other thread-exit code) go straight to the depot.
 * Tested  tests/unit/test_slab.c, tests/stress/stress_pool.c.
 */
#ifndef WF_MEM_DEPOT_H
#define WF_MEM_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

enum {
	WF_DEPOT_REQ,                   /* slab kinds first: slab.h numbers them alike */
	WF_DEPOT_RECORD,
	WF_DEPOT_HANDLE,                /* buffer handles without memory of their own: views, big ones */
	WF_DEPOT_BUF,                   /* buffers of the smallest class; the other classes follow */
	WF_DEPOT_BUFS = 18,             /* 2^8 .. 2^25 */
	WF_DEPOTS = WF_DEPOT_BUF + WF_DEPOT_BUFS
};

struct wf_link {
	struct wf_link *next;           /* in its stack, chain or list */
	struct wf_link *chain;          /* first of a chain: the next chain in the depot */
};

struct wf_mag {                         /* its thread only */
	struct wf_link *top, *spare;
	unsigned n;                     /* objects in top */
	unsigned batch;                 /* 0: this thread may not keep any (more) of these */
};

enum { WF_CHAINS = 4, WF_BRIEFS = 15 };

struct wf_chain {                       /* buffers of one other process on their way home, its thread only (home.c) */
	uint32_t maker;
	unsigned briefs;                /* how many of them have a brief link, and will be a line of the strip */
	uint32_t brief[WF_BRIEFS];
	unsigned links;                 /* how many have one of their own, and will be on the return list */
	uint64_t first;
	struct wf_entry *last;
};

struct wf_cache {
	struct wf_mag mag[WF_DEPOTS];
	struct wf_chain chain[WF_CHAINS];
	uintptr_t area;                 /* handles that were asked for last lie from here on; what was one stays one (space.h) */
	size_t area_bytes;
	uintptr_t given;                /* the chunk of ours that was given from last: its handles lie from here on; others can map it */
	struct wf_chunk *given_from;
	uint64_t landed;                /* the chunk that was landed in last: its maker and, above, its segment */
	struct wf_chunk *landed_in;
	struct wf_buf *landed_on;       /* its handles */
};

struct wf_depot_kind {
	unsigned batch;                 /* objects that change hands at a time; 0: threads keep none */
	size_t bytes;                   /* per object, counted in what caches may hold; 0: not counted */
	/* [any] Make up to @max objects, at least 1, linked by next. Their number, or a negative errno. */
	int (*fill)(int which, unsigned max, struct wf_link **ret_list);
};

/* Initial-exec: one load from the thread register; 8 bytes fit any program's static TLS. */
extern _Thread_local struct wf_cache *wf_cache
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

int wf_depot_setup(int which, const struct wf_depot_kind *kind);        /* idempotent; -EAGAIN, -ENOMEM */
void wf_depot_quota(size_t bytes);      /* what the caches of all threads may hold of counted kinds, in all */
void wf_depot_flush(void);              /* the calling thread's cache goes to the depots */
struct wf_cache *wf_depot_cache(void);  /* the calling thread's, made if need be; NULL: it may have none (any more) */
bool wf_depot_take(int which, struct wf_link **ret_link);       /* as wf_depot_get, but nothing is made */

int wf_depot_get_slow(int which, struct wf_link **ret_link);
void wf_depot_put_slow(int which, struct wf_link *l);

size_t wf_depot_free(int which);        /* objects in the depot, caches not counted; stale at once */

/* Shows every object in the depot to @see, then takes out those of which @drop says so. Both run
 * under the depot's lock. Returns how many were taken out. */
size_t wf_depot_sift(int which, void (*see)(struct wf_link *l, void *arg),
		     bool (*drop)(struct wf_link *l, void *arg), void *arg);

/* [any] What the thread has at hand; NULL: nothing. */
static inline struct wf_link *wf_depot_pop(int which)
{
	struct wf_cache *c = wf_cache;
	struct wf_link *l;

	if (wf_unlikely(!c || !(l = c->mag[which].top)))
		return NULL;
	c->mag[which].top = l->next;
	c->mag[which].n--;
	return l;
}

/* [any] 0, or what fill said. */
static inline int wf_depot_get(int which, struct wf_link **ret_link)
{
	struct wf_link *l = wf_depot_pop(which);

	if (wf_unlikely(!l))
		return wf_depot_get_slow(which, ret_link);
	*ret_link = l;
	return 0;
}

/* [any] */
static inline void wf_depot_put(int which, struct wf_link *l)
{
	struct wf_cache *c = wf_cache;

	if (wf_unlikely(!c || c->mag[which].n >= c->mag[which].batch)) {
		wf_depot_put_slow(which, l);
		return;
	}
	l->next = c->mag[which].top;
	c->mag[which].top = l;
	c->mag[which].n++;
}

/* [any] @n that are linked by next, from @first to @last. */
static inline void wf_depot_put_list(int which, struct wf_link *first, struct wf_link *last, unsigned n)
{
	struct wf_cache *c = wf_cache;
	struct wf_link *next;

	if (wf_likely(c && c->mag[which].n + n <= c->mag[which].batch)) {
		last->next = c->mag[which].top;
		c->mag[which].top = first;
		c->mag[which].n += n;
		return;
	}
	for (; n > 0; n--, first = next) {
		next = first->next;
		wf_depot_put(which, first);
	}
}

#endif
