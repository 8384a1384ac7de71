/* hash.h - things found by a hash: chains in a table that doubles. What lies in it has a struct wf_hnode.
 *
 * The hash is salted by what the kernel gave this process at its start: names come from outside, and nobody there knows which of them collide.
 */
#ifndef WF_DIR_HASH_H
#define WF_DIR_HASH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct wf_hnode {
	struct wf_hnode *next;
	uint64_t hash;
};

struct wf_hash {
	struct wf_hnode **slots;
	uint64_t mask;
	uint64_t count;
};

static inline uint64_t wf_hash_mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide x = (wide)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd1b54a32d192ed03));

	return (uint64_t)x ^ (uint64_t)(x >> 64);
}

static inline uint64_t wf_hash_salt(void)
{
	static uint64_t salt;
	uint64_t s = __atomic_load_n(&salt, __ATOMIC_RELAXED);  /* every thread finds the same */
	const void *given;

	if (s)
		return s;
	given = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	if (given)
		memcpy(&s, given, sizeof(s));
	s |= 1;
	__atomic_store_n(&salt, s, __ATOMIC_RELAXED);
	return s;
}

static inline uint64_t wf_hash_bytes(uint64_t seed, const void *bytes, size_t n)
{
	const char *p = bytes;
	uint64_t h = wf_hash_mix(seed ^ wf_hash_salt(), n), word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = wf_hash_mix(h, word);
	}
	word = 0;
	memcpy(&word, p, n);
	return wf_hash_mix(h, word);
}

static inline uint64_t wf_hash_number(uint64_t n)
{
	return wf_hash_mix(n, wf_hash_salt());
}

/* False: no memory. */
static inline bool wf_hash_init(struct wf_hash *h)
{
	h->slots = calloc(16, sizeof(struct wf_hnode *));
	h->mask = 15;
	h->count = 0;
	return h->slots != NULL;
}

static inline void wf_hash_fini(struct wf_hash *h)
{
	free(h->slots);
	h->slots = NULL;
	h->count = 0;
}

static inline struct wf_hnode *wf_hash_skip(struct wf_hnode *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

/* All that have this hash: first, then wf_hash_skip(n->next, hash). */
static inline struct wf_hnode *wf_hash_first(const struct wf_hash *h, uint64_t hash)
{
	return h->slots ? wf_hash_skip(h->slots[hash & h->mask], hash) : NULL;
}

/* Longer chains are all that comes of lack of memory. */
static inline void wf_hash_grow(struct wf_hash *h)
{
	uint64_t mask = 2 * h->mask + 1;
	struct wf_hnode **slots = calloc(mask + 1, sizeof(struct wf_hnode *));

	if (!slots)
		return;
	for (uint64_t i = 0; i <= h->mask; i++)
		for (struct wf_hnode *n = h->slots[i], *next; n; n = next) {
			next = n->next;
			n->next = slots[n->hash & mask];
			slots[n->hash & mask] = n;
		}
	free(h->slots);
	h->slots = slots;
	h->mask = mask;
}

static inline void wf_hash_add(struct wf_hash *h, struct wf_hnode *n, uint64_t hash)
{
	if (h->count > h->mask)
		wf_hash_grow(h);
	n->hash = hash;
	n->next = h->slots[hash & h->mask];
	h->slots[hash & h->mask] = n;
	h->count++;
}

static inline void wf_hash_del(struct wf_hash *h, struct wf_hnode *n)
{
	struct wf_hnode **p = &h->slots[n->hash & h->mask];

	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	h->count--;
}

/* Any of them, for who empties it; NULL: empty. *@at: where to look on, 0 at first. */
static inline struct wf_hnode *wf_hash_any(const struct wf_hash *h, uint64_t *at)
{
	for (; h->slots && *at <= h->mask; (*at)++)
		if (h->slots[*at])
			return h->slots[*at];
	return NULL;
}

#endif
