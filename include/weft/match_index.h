/* weft/match_index.h - what all matchers of weft/match.h share: the entries they link, and the indexes that find them.
 *
 * Private to match.h, which includes it; it is a file of its own because it is the same for every header type, while
 * match.h is a template. struct weft_match_entry is what programs embed.
 */
#ifndef WEFT_MATCH_INDEX_H
#define WEFT_MATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#ifdef __cplusplus
#define WEFT_MATCH_ASSERT(cond, words) static_assert(cond, words)
#else
#define WEFT_MATCH_ASSERT(cond, words) _Static_assert(cond, words)
#endif

#ifndef WEFT_MATCH_ALLOC
#define WEFT_MATCH_ALLOC(n) malloc(n)
#define WEFT_MATCH_FREE(p) free(p)
#endif

#define WEFT_MATCH_HEAD_MAX 32

enum { WEFT_MATCH_NOWHERE, WEFT_MATCH_WANTS, WEFT_MATCH_ARRIVALS };     /* the sides: where an entry is */

struct weft_match_link {
	struct weft_match_link *next, *prev;
};

/* A member of a group: entries of one hash (or equal by less-than), in a ring, oldest first. The oldest
 * leads: it alone is linked into the index, and hands its place on when it leaves. */
struct weft_match_node {
	union {
		uint64_t hash;
		struct weft_match_node *right;          /* tree: the greater ones */
	};
	union {
		uint64_t chain;                         /* hash: the next group of the bucket (see weft_match_word) */
		struct weft_match_node *left;           /* tree: the lesser ones */
	};
	struct weft_match_node *next, *prev;
};

struct weft_match_rec;

/* What is held. Embed it in your own object; zero it (or at least side) before its first use. The matcher's
 * from insertion to removal. What a search reads comes first: one cache line, if the object is aligned so. */
struct weft_match_entry {
	union {
		unsigned char head[WEFT_MATCH_HEAD_MAX];
		uint64_t align;
	};
	uint64_t number;                        /* of insertion: rises from 1, over both sides */
	uint32_t weight;                        /* tree: parents weigh more */
	uint8_t side, slot;                     /* WEFT_MATCH_*; which index node is in */
	uint16_t zero;
	struct weft_match_node node;
	struct weft_match_link order;           /* all of its side, by number */
	union {
		struct weft_match_rec *more;    /* arrivals: places in further indexes */
		struct weft_match_entry *up;    /* tree: the parent */
	};
};
WEFT_MATCH_ASSERT(sizeof(struct weft_match_entry) <= 112, "an entry fits beside a request");

/*
 * Shape   Each side is a list in order of insertion. A search compares the first few of it directly and
 *         is mostly over then. Only one that goes farther uses indexes, and brings them up to date first:
 *         an index covers the entries up to a number and none after it, so inserting costs nothing but
 *         the list, and what leaves early was never indexed. An index that cannot be brought up to date
 *         (no memory) covers fewer: as they are the earliest, a find among them is right, and after a miss
 *         the rest of the list is walked.
 *         order  e1 <-> e2 <-> e3 <-> e4 <-> e5
 *                |-- indexed up to e3 --|          table[bucket of hash] -> group -> group
 *                                                                            ring: e1 <-> e3
 * Wants   are each in the one index of their shape; an arriving head is looked up in every shape in use and
 *         the smallest number wins.
 * Arrivals are in an index per shape that has been asked for: the first of them uses the entry's own node,
 *         the others a record each. When the side runs empty its indexes are forgotten.
 */
#define WEFT_MATCH_SLOTS 8              /* indexes of a side */
#define WEFT_MATCH_REST 8               /* slot: wants of further shapes, in one ring */
#define WEFT_MATCH_LOOSE 9              /* slot: in no index */
#define WEFT_MATCH_NEAR 2               /* so many are compared before an index is used */
#define WEFT_MATCH_BITS 4               /* a table starts with 16 buckets, and */
#define WEFT_MATCH_BITS_KEPT 8          /* is kept when its side is empty up to 256 */
#define WEFT_MATCH_FAR __attribute__((unused, noinline)) static        /* rarer: not in callers' code */

struct weft_match_rec {                 /* an arrival's place in a further index */
	struct weft_match_node node;
	struct weft_match_entry *entry;
	struct weft_match_rec *more;    /* of the same arrival; or the next spare one */
	uint64_t slot;
};

struct weft_match_index {
	union {
		uint64_t *table;                /* of 2^bits chains of groups; NULL: none yet */
		struct weft_match_node *root;   /* by less-than: a treap of groups */
	};
	uint64_t upto;                  /* arrivals: covers those numbered so far */
	uint32_t shape, groups;
};

struct weft_match_side {
	struct weft_match_link order;
	uint64_t upto;                  /* wants: indexed as far as this number */
	struct weft_match_node *rest;   /* wants of shapes that have no index */
	uint32_t used;                  /* a bit per index that has a shape; none when the side is empty */
	uint8_t bits[WEFT_MATCH_SLOTS]; /* of the tables */
	uint32_t idle;                  /* arrivals taken out of the indexes since one was last searched */
	struct weft_match_index index[WEFT_MATCH_SLOTS];
};

/* The entry that this node or this link of the order is in. */
#define WEFT_MATCH_OF(n, member) \
	((struct weft_match_entry *)(void *)((char *)(n) - offsetof(struct weft_match_entry, member)))
#define WEFT_MATCH_NODED(n) WEFT_MATCH_OF(n, node)
#define WEFT_MATCH_LINKED(l) WEFT_MATCH_OF(l, order)

static inline struct weft_match_entry *weft_match_last(const struct weft_match_side *s)
{
	return WEFT_MATCH_LINKED(s->order.prev);        /* only if not empty */
}

/* The first link of @s whose number is above @upto; the list's own if there is none. From the end: it
 * passes only those it is asked for. */
static inline struct weft_match_link *weft_match_after(struct weft_match_side *s, uint64_t upto)
{
	struct weft_match_link *l = s->order.prev;

	while (l != &s->order && WEFT_MATCH_LINKED(l)->number > upto)
		l = l->prev;
	return l->next;
}

/* Users' hashes may be poor: the upper bits, which choose the bucket, come to depend on all of them. One to
 * one, so that hashes stay as different as they were. */
static inline uint64_t weft_match_mix(uint64_t h)
{
	return (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline void weft_match_ring_add(struct weft_match_node *lead, struct weft_match_node *n)
{
	n->next = lead;
	n->prev = lead->prev;
	lead->prev->next = n;
	lead->prev = n;
}

static inline void weft_match_ring_remove(struct weft_match_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
}

/* A link of a chain, in a bucket or a group's leader, is one word: the group it leads to, whether others follow that, and 15
 * bits of its hash, so that most searches for something else end without touching an entry that has been out of the cache for
 * long. (That others follow may be an old truth; then one is touched for nothing.) */
#define WEFT_MATCH_MORE (UINT64_C(1) << 48)

static inline uint64_t *weft_match_bucket(const struct weft_match_side *s, unsigned i, uint64_t hash)
{
	return &s->index[i].table[hash >> (64 - s->bits[i])];
}

static inline struct weft_match_node *weft_match_lead(uint64_t word)
{
	return (struct weft_match_node *)(uintptr_t)(word & (WEFT_MATCH_MORE - 1));
}

/* To @g, whose chain is set. */
static inline uint64_t weft_match_word(struct weft_match_node *g, uint64_t hash)
{
	return (uint64_t)(uintptr_t)g | hash << 49 | (g->chain ? WEFT_MATCH_MORE : 0);
}

/* The group of @hash in index @i, or NULL. */
static inline struct weft_match_node *weft_match_group(const struct weft_match_side *s, unsigned i, uint64_t hash)
{
	struct weft_match_node *g;
	uint64_t word;

	if (!s->index[i].groups)
		return NULL;
	for (word = *weft_match_bucket(s, i, hash); word; word = g->chain) {
		g = weft_match_lead(word);
		if (word >> 49 == (hash & 0x7fff) && g->hash == hash)
			return g;
		if (!(word & WEFT_MATCH_MORE))
			break;
	}
	return NULL;
}

/* Gives index @i a table of 2^@bits buckets. False: no memory, nothing changed. */
WEFT_MATCH_FAR bool weft_match_resize(struct weft_match_side *s, unsigned i, unsigned bits)
{
	size_t old = s->index[i].table ? (size_t)1 << s->bits[i] : 0, bytes = sizeof(uint64_t) << bits;
	uint64_t *from = s->index[i].table, *to = (uint64_t *)WEFT_MATCH_ALLOC(bytes), *b, word, next;
	struct weft_match_node *g;

	if (!to)
		return false;
	memset(to, 0, bytes);
	s->index[i].table = to;
	s->bits[i] = (uint8_t)bits;
	for (size_t k = 0; k < old; k++) {
		for (word = from[k]; word; word = next) {
			g = weft_match_lead(word);
			next = g->chain;
			b = weft_match_bucket(s, i, g->hash);
			g->chain = *b;
			*b = weft_match_word(g, g->hash);
		}
	}
	WEFT_MATCH_FREE(from);
	return true;
}

/* False: there is no table and no memory for one. */
static inline bool weft_match_hash_add(struct weft_match_side *s, unsigned i, struct weft_match_node *n,
				       uint64_t hash)
{
	struct weft_match_index *x = &s->index[i];
	struct weft_match_node *g;
	uint64_t *b;

	if (!x->table && !weft_match_resize(s, i, WEFT_MATCH_BITS))
		return false;
	n->hash = hash;
	g = weft_match_group(s, i, hash);
	if (g) {
		weft_match_ring_add(g, n);
		return true;
	}
	/* At most half as many groups as buckets; refused memory only makes the chains longer. */
	if (++x->groups > (uint32_t)1 << (s->bits[i] - 1) && s->bits[i] < 31)
		weft_match_resize(s, i, s->bits[i] + 1u);
	b = weft_match_bucket(s, i, hash);
	n->next = n->prev = n;
	n->chain = *b;
	*b = weft_match_word(n, hash);
	return true;
}

static inline void weft_match_hash_remove(struct weft_match_side *s, unsigned i, struct weft_match_node *n)
{
	uint64_t *at = weft_match_bucket(s, i, n->hash);
	struct weft_match_node *g;

	for (g = weft_match_lead(*at); g != n && (*at >> 49 != (n->hash & 0x7fff) || g->hash != n->hash);
	     g = weft_match_lead(*at))
		at = &g->chain;
	if (g == n) {
		if (n->next == n) {
			*at = n->chain;
			s->index[i].groups--;
			return;
		}
		n->next->chain = n->chain;
		*at = weft_match_word(n->next, n->hash);
	}
	weft_match_ring_remove(n);
}

/* The place in the tree that holds @e, if any does: only leaders have one. */
static inline struct weft_match_node **weft_match_tree_place(struct weft_match_side *s,
							     struct weft_match_entry *e)
{
	struct weft_match_node **p = &s->index[0].root;

	if (e->up)
		p = e->up->node.left == &e->node ? &e->up->node.left : &e->up->node.right;
	return *p == &e->node ? p : NULL;
}

static inline void weft_match_tree_hang(struct weft_match_node **p, struct weft_match_entry *up,
					struct weft_match_node *n)
{
	*p = n;
	if (n)
		WEFT_MATCH_NODED(n)->up = up;
}

/* Needs no less-than, so that a wrong one cannot lose its way here. */
WEFT_MATCH_FAR void weft_match_tree_remove(struct weft_match_side *s, struct weft_match_entry *e)
{
	struct weft_match_node **p = weft_match_tree_place(s, e), *a = e->node.left, *b = e->node.right;
	struct weft_match_entry *up = e->up, *heir = WEFT_MATCH_NODED(e->node.next);

	weft_match_ring_remove(&e->node);
	if (!p)
		return;
	if (heir != e) {
		heir->weight = e->weight;
		weft_match_tree_hang(p, up, &heir->node);
		weft_match_tree_hang(&heir->node.left, heir, a);
		weft_match_tree_hang(&heir->node.right, heir, b);
		return;
	}
	while (a && b) {        /* the heavier of the two comes up, the other goes into it */
		if (WEFT_MATCH_NODED(a)->weight >= WEFT_MATCH_NODED(b)->weight) {
			weft_match_tree_hang(p, up, a);
			up = WEFT_MATCH_NODED(a);
			p = &a->right;
			a = *p;
		} else {
			weft_match_tree_hang(p, up, b);
			up = WEFT_MATCH_NODED(b);
			p = &b->left;
			b = *p;
		}
	}
	weft_match_tree_hang(p, up, a ? a : b);
}

static inline void weft_match_rest_add(struct weft_match_side *s, struct weft_match_node *n)
{
	if (s->rest) {
		weft_match_ring_add(s->rest, n);
	} else {
		n->next = n->prev = n;
		s->rest = n;
	}
}

static inline void weft_match_rest_remove(struct weft_match_side *s, struct weft_match_node *n)
{
	weft_match_ring_remove(n);
	if (s->rest == n)
		s->rest = n->next == n ? NULL : n->next;
}

/* The index of @shape, or one without a shape made its own, or WEFT_MATCH_REST. */
static inline unsigned weft_match_slot(struct weft_match_side *s, uint32_t shape)
{
	uint32_t left = s->used, vacant = ~s->used & ((1u << WEFT_MATCH_SLOTS) - 1);
	unsigned i;

	for (; left; left &= left - 1) {
		i = (unsigned)__builtin_ctz(left);
		if (s->index[i].shape == shape)
			return i;
	}
	if (!vacant)
		return WEFT_MATCH_REST;
	i = (unsigned)__builtin_ctz(vacant);
	s->used |= 1u << i;
	s->index[i].shape = shape;
	s->index[i].upto = 0;
	return i;
}

/* Takes the shapes from indexes that hold nothing: others may want them. */
static inline void weft_match_slots_vacate(struct weft_match_side *s)
{
	for (unsigned i = 0; i < WEFT_MATCH_SLOTS; i++)
		if (!s->index[i].groups)
			s->used &= ~(1u << i);
}

static inline void weft_match_order_add(struct weft_match_side *s, struct weft_match_entry *e)
{
	e->order.next = &s->order;
	e->order.prev = s->order.prev;
	s->order.prev->next = &e->order;
	s->order.prev = &e->order;
}

static inline void weft_match_order_remove(struct weft_match_entry *e)
{
	e->order.prev->next = e->order.next;
	e->order.next->prev = e->order.prev;
}

static inline struct weft_match_rec *weft_match_rec_get(struct weft_match_rec **spare)
{
	struct weft_match_rec *r = *spare;

	if (!r)
		return (struct weft_match_rec *)WEFT_MATCH_ALLOC(sizeof(*r));
	*spare = r->more;
	return r;
}

static inline void weft_match_rec_put(struct weft_match_rec **spare, struct weft_match_rec *r)
{
	r->more = *spare;
	*spare = r;
}

static inline void weft_match_spares_free(struct weft_match_rec **spare)
{
	struct weft_match_rec *r;

	while ((r = *spare)) {
		*spare = r->more;
		WEFT_MATCH_FREE(r);
	}
}

/* Frees the tables larger than 2^@bits; for an empty side. */
static inline void weft_match_tables_free(struct weft_match_side *s, int bits)
{
	for (unsigned i = 0; i < WEFT_MATCH_SLOTS; i++) {
		if (s->index[i].table && s->bits[i] > bits) {
			WEFT_MATCH_FREE(s->index[i].table);
			s->index[i].table = NULL;
		}
	}
}

/* A side that used indexes has run empty. */
WEFT_MATCH_FAR void weft_match_side_idle(struct weft_match_side *s, struct weft_match_rec **spare)
{
	s->used = 0;
	weft_match_tables_free(s, WEFT_MATCH_BITS_KEPT);
	weft_match_spares_free(spare);
}

/* The arrivals' indexes are not searched any more, and taking arrivals out of them costs: forgets them all. A search that needs
 * one makes it anew. */
WEFT_MATCH_FAR void weft_match_forget(struct weft_match_side *s, struct weft_match_rec **spare)
{
	struct weft_match_link *l;
	struct weft_match_entry *e;
	struct weft_match_rec *r;

	for (l = s->order.next; l != &s->order; l = l->next) {
		e = WEFT_MATCH_LINKED(l);
		e->slot = WEFT_MATCH_LOOSE;
		while ((r = e->more)) {
			e->more = r->more;
			weft_match_rec_put(spare, r);
		}
	}
	for (unsigned i = 0; i < WEFT_MATCH_SLOTS; i++) {
		s->index[i].groups = 0;
		s->index[i].upto = 0;
	}
	s->used = 0;
	s->idle = 0;
	weft_match_tables_free(s, -1);
	weft_match_spares_free(spare);
}

static inline void weft_match_side_init(struct weft_match_side *s)
{
	memset(s, 0, sizeof(*s));
	s->order.next = s->order.prev = &s->order;
}

#endif
