/* context.c - see context.h. One lock for the registry; a thread's own cache stands before it. */
#include "port/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/open.h"
#include "port/self.h"
#include "port/table.h"

#define COUNTER (UINT64_C(1) << 40)     /* a context's number: maker's process above, its counter below */
#define ROUTES 64

static struct wf_lock registry_lock;
static struct {
	struct weft_port **bucket;
	size_t count, mask;
} registry;

/* Contexts of one maker that were closed under one id: ranges [lo, hi) of the counter, ascending. */
struct closed {
	struct closed *next;
	weft_id id;
	uint64_t maker;
	size_t count, room;
	struct { uint64_t lo, hi; } range[];
};
static struct closed *all_closed;

struct wf_routes {
	struct route {
		weft_id id;
		weft_ctx context;
		struct weft_port *port;
		uint16_t who;
	} route[ROUTES];
};

static uint64_t hash(weft_id id, weft_ctx context)
{
	uint64_t h = id * UINT64_C(0x9e3779b97f4a7c15) ^ context * UINT64_C(0xd6e8feb86659fd93);

	return h ^ h >> 32;
}

weft_ctx wf_ctx_of_text(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);      /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h | WF_CTX_TEXT;
}

weft_ctx weft_ctx_new(void)
{
	static _Atomic uint64_t counter = 1;

	if (wf_enter() < 0)
		return 0;
	/* relaxed: only that it is never given twice. */
	return (wf_process_id >> 32) * COUNTER | atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
}

static weft_id id_of(struct weft_port *p)
{
	return atomic_load_explicit(&p->id, memory_order_relaxed);
}

static weft_ctx context_of(struct weft_port *p)
{
	return atomic_load_explicit(&p->context, memory_order_relaxed);
}

static struct weft_port **place_locked(weft_id id, weft_ctx context)
{
	struct weft_port **at = &registry.bucket[hash(id, context) & registry.mask];

	while (*at && (id_of(*at) != id || context_of(*at) != context))
		at = &(*at)->next;
	return at;
}

static int grow_locked(void)
{
	size_t room = registry.bucket ? 2 * (registry.mask + 1) : 64;
	struct weft_port **old = registry.bucket, **bucket;

	if (old && registry.count <= registry.mask)
		return 0;
	bucket = calloc(room, sizeof(struct weft_port *));
	if (!bucket)
		return old ? 0 : weft_fail(-ENOMEM, "no memory for the registry of contexts");
	registry.bucket = bucket;
	for (size_t i = 0; old && i <= registry.mask; i++)
		for (struct weft_port *p = old[i], *next; p; p = next) {
			struct weft_port **at = &bucket[hash(id_of(p), context_of(p)) & (room - 1)];

			next = p->next;
			p->next = *at;
			*at = p;
		}
	registry.mask = room - 1;
	free(old);
	return 0;
}

static bool was_closed_locked(weft_id id, weft_ctx context)
{
	uint64_t n = context % COUNTER;

	if (context & WF_CTX_TEXT)
		return false;
	for (struct closed *c = all_closed; c; c = c->next)
		if (c->id == id && c->maker == context / COUNTER)
			for (size_t i = c->count; i-- > 0 && c->range[i].hi > n;)
				if (c->range[i].lo <= n)
					return true;
	return false;
}

/* Where no memory is left to remember it, the context looks as if it had never been opened: what is
 * sent there is held in limbo instead of refused. */
static void close_locked(weft_id id, weft_ctx context)
{
	uint64_t n = context % COUNTER, maker = context / COUNTER;
	struct closed **at = &all_closed, *c;
	size_t i;

	if (context & WF_CTX_TEXT)
		return;
	while (*at && ((*at)->id != id || (*at)->maker != maker))
		at = &(*at)->next;
	c = *at;
	if (!c || c->count == c->room) {
		size_t room = c ? 2 * c->room : 4;
		struct closed *bigger = realloc(c, sizeof(*c) + room * sizeof(c->range[0]));

		if (!bigger)
			return;
		if (!c)
			*bigger = (struct closed){ .id = id, .maker = maker };
		c = *at = bigger;
		c->room = room;
	}
	for (i = c->count; i > 0 && c->range[i - 1].lo > n; i--)
		continue;
	if (i > 0 && c->range[i - 1].hi == n) {
		c->range[i - 1].hi++;
		if (i < c->count && c->range[i].lo == n + 1) {
			c->range[i - 1].hi = c->range[i].hi;
			memmove(&c->range[i], &c->range[i + 1], (--c->count - i) * sizeof(c->range[0]));
		}
	} else if (i < c->count && c->range[i].lo == n + 1) {
		c->range[i].lo = n;
	} else {
		memmove(&c->range[i + 1], &c->range[i], (c->count++ - i) * sizeof(c->range[0]));
		c->range[i].lo = n;
		c->range[i].hi = n + 1;
	}
}

static void add_locked(struct weft_port *p)
{
	struct weft_port **at = place_locked(id_of(p), context_of(p));

	p->next = NULL;
	*at = p;
	registry.count++;
}

static int find_locked(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port)
{
	struct weft_port *p;
	int r = grow_locked();

	if (r < 0)
		return r;
	p = *place_locked(id, context);
	if (!p) {
		if (!wf_id_lives(id))
			return weft_fail(-ESRCH, "no thread or process of that id lives");
		if (was_closed_locked(id, context))
			return weft_fail(-ESRCH, "that context was closed there");
		r = wf_port_limbo(id, context, proto, &p);
		if (r < 0)
			return r;
		add_locked(p);
	}
	*ret_port = p;
	return 0;
}

int wf_route(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port, uint16_t *ret_who)
{
	struct route *r;
	int err;

	if (!wf_self.routes)
		wf_self.routes = calloc(1, sizeof(*wf_self.routes));
	r = wf_self.routes ? &wf_self.routes->route[hash(id, context) % ROUTES] : NULL;
	/* A stale route leads to a port of another incarnation: the claim says so, and we come again. */
	if (r && r->id == id && r->context == context && id_of(r->port) == id && context_of(r->port) == context) {
		*ret_port = r->port;
		*ret_who = r->who;
		return 0;
	}
	wf_lock(&registry_lock);
	err = find_locked(id, context, proto, ret_port);
	if (err == 0)
		*ret_who = (*ret_port)->incarnation;
	wf_unlock(&registry_lock);
	if (err == 0 && r)
		*r = (struct route){ id, context, *ret_port, *ret_who };
	return err;
}

void wf_routes_free(struct wf_routes *routes)
{
	free(routes);
}

int wf_context_adopt(weft_id id, weft_ctx context, struct weft_port **ret_port)
{
	struct weft_port *p;
	int r;

	wf_lock(&registry_lock);
	r = grow_locked();
	p = r < 0 ? NULL : *place_locked(id, context);
	if (p && !p->limbo)
		r = weft_fail(-EEXIST, "that context is open here already");
	else if (r == 0 && was_closed_locked(id, context))
		r = weft_fail(-ESTALE, "that context was closed here before");
	if (r == 0 && p)
		p->limbo = false;
	wf_unlock(&registry_lock);
	if (r == 0)
		*ret_port = p;
	return r;
}

void wf_context_abandon(struct weft_port *p)
{
	wf_lock(&registry_lock);
	p->limbo = true;
	wf_unlock(&registry_lock);
}

static void unlink_locked(struct weft_port *p)
{
	struct weft_port **at = place_locked(id_of(p), context_of(p));

	if (*at == p) {
		*at = p->next;
		registry.count--;
	}
}

void wf_context_remove(struct weft_port *p)
{
	wf_lock(&registry_lock);
	unlink_locked(p);
	close_locked(id_of(p), context_of(p));
	wf_unlock(&registry_lock);
}

bool wf_context_known(weft_id id, weft_ctx context)
{
	bool known;

	wf_lock(&registry_lock);
	known = registry.bucket && *place_locked(id, context);
	wf_unlock(&registry_lock);
	return known;
}

bool wf_context_closed(weft_id id, weft_ctx context)
{
	bool closed;

	wf_lock(&registry_lock);
	closed = was_closed_locked(id, context);
	wf_unlock(&registry_lock);
	return closed;
}

struct weft_port *wf_context_orphan(weft_id id)
{
	struct weft_port *found = NULL;

	wf_lock(&registry_lock);
	for (size_t i = 0; registry.bucket && registry.count && i <= registry.mask && !found; i++)
		for (struct weft_port *p = registry.bucket[i]; p && !found; p = p->next)
			if (id_of(p) == id)
				found = p;
	if (found)
		unlink_locked(found);
	for (struct closed **at = &all_closed; *at && !found;) {
		struct closed *c = *at;

		if (c->id == id) {
			*at = c->next;
			free(c);
		} else {
			at = &c->next;
		}
	}
	wf_unlock(&registry_lock);
	return found;
}
