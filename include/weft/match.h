/* weft/match.h - matching for header types of your own.
 *
 * A matcher holds two sides in order: receives that wait for a message (wants) and messages that
 * wait for a receive (arrivals). The partner of an arriving head is the earliest posted want that
 * matches it, that of a want the earliest arrival. Finding it costs the same whatever is held.
 *
 * Define these, then include, once per type; all are undefined again at the end:
 *
 *   WEFT_MATCH calc                  the prefix of what is made
 *   WEFT_MATCH_HEAD struct calc_head the header: flat (no pointers), at most 32 bytes
 *   WEFT_MATCH_EQ(want, got)         true if they match, wildcards included
 *   WEFT_MATCH_SHAPE(want)           uint32_t: which fields of this want are free; 0: none
 *   WEFT_MATCH_HASH(head, shape)     uint64_t over the fields that are not free in this shape, or over
 *                                    fewer: what matches must hash alike. Need not be a good hash. Or
 *   WEFT_MATCH_LESS(a, b)            instead: a strict order in which heads that match without
 *                                    wildcards are equal; wants with wildcards are tried one by one
 *   WEFT_MATCH_CTX                   if defined: each of these gets m->ctx as one more, first
 *                                    argument, and init takes it; calc_proto is not made
 *
 * Their arguments are pointers to const heads. Up to 8 shapes in use at a time are found by hash, what is of
 * further ones is tried one by one. Made is calc_proto for weft_port_opts; and, for use without ports:
 *
 *   struct calc_match m;                   m.wants, m.arrivals: how many are held
 *   calc_match_init(&m)                    and calc_match_fini(&m): lets go of all that is held
 *   calc_match_arrive(&m, &head, e)        a message: gives its partner, taken out, or keeps e: NULL
 *   calc_match_want(&m, &want, e)          a receive: likewise
 *   calc_match_find_want(&m, &head)        the partner, left in, or NULL
 *   calc_match_look(&m, &want)             likewise
 *   calc_match_add_arrival(&m, &head, e)   keeps e, without asking for a partner
 *   calc_match_add_want(&m, &want, e)      likewise
 *   calc_match_remove(&m, e)               takes e out wherever it is; false: on neither side
 *   calc_match_first(&m, side)             in order of insertion, with calc_match_next(&m, e)
 *
 * e is a struct weft_match_entry inside an object of yours; heads are copied into it, if they are not
 * there already (in e->head). A matcher is plain memory: its callers hold a lock. No call fails: where
 * memory is short, a search is slower instead.
 * WEFT_MATCH_ALLOC(n) and WEFT_MATCH_FREE(p), defined before the first inclusion, replace malloc and free.
 */
#ifndef WEFT_MATCH_H
#define WEFT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
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

/* A protocol as ports take it: what a matching header is and the matcher for it, behind pointers. Made
 * below as <prefix>_proto, or by weft_proto_new. Two ports speak the same protocol if name and head_len
 * are the same. The functions are those of the template, over a matcher of match_size bytes. */
struct weft_proto {
	uint32_t size, head_len;
	const char *name;
	uint32_t match_size, entry_size;        /* entry_size: of the entries it was compiled for */
	uint32_t flags, zero;                   /* flags: WEFT_PROTO_* */
	const void *ctx;                        /* for init */
	void (*init)(void *m, const void *ctx);
	void (*fini)(void *m);
	struct weft_match_entry *(*arrive)(void *m, const void *head, struct weft_match_entry *e);
	struct weft_match_entry *(*want)(void *m, const void *want, struct weft_match_entry *e);
	struct weft_match_entry *(*find_want)(void *m, const void *head);
	struct weft_match_entry *(*look)(void *m, const void *want);
	void (*add_want)(void *m, const void *want, struct weft_match_entry *e);
	void (*add_arrival)(void *m, const void *head, struct weft_match_entry *e);
	bool (*remove)(void *m, struct weft_match_entry *e);
	struct weft_match_entry *(*first)(void *m, int side);
	struct weft_match_entry *(*next)(void *m, struct weft_match_entry *e);
	size_t (*count)(const void *m, int side);
};
enum { WEFT_PROTO_MADE = 1 };                   /* by weft_proto_new: to be freed */

/* The same at run time: the template's macros as functions. */
struct weft_match_fns {
	uint32_t size, head_len;                        /* head_len: 1 to 32 */
	int (*equal)(const void *want, const void *got);
	uint32_t (*shape)(const void *want);
	uint64_t (*hash)(const void *head, uint32_t shape);     /* or */
	int (*less)(const void *a, const void *b);
};

/**
 * weft_proto_new - [nb] make a protocol from functions. They are called under a port's lock by any
 * thread: pure, short, and calling nothing of weft. A head they get is the caller's own or a copy,
 * aligned to 8.
 * @name: copied; the ends of a message compare it.
 * Returns 0; -EINVAL: a NULL, an empty name, a head_len out of range, both or neither of hash and
 * less; -E2BIG: functions of a newer weft; -ENOMEM.
 */
int weft_proto_new(const char *name, const struct weft_match_fns *fns,
		   const struct weft_proto **ret_proto WEFT_GIVES);

/* [nb] Returns 0; -EBUSY while a port speaks it; -EINVAL: not one that weft_proto_new made. NULL is fine. */
int weft_proto_free(const struct weft_proto *proto WEFT_TAKES);

/* No header and no matching: what arrives first goes to whoever receives first. */
extern const struct weft_proto weft_proto_raw;

#ifdef __cplusplus
}
#endif

/*
 * From here to the template: what all matchers share, private to this file.
 *
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

static inline void weft_match_side_init(struct weft_match_side *s)
{
	memset(s, 0, sizeof(*s));
	s->order.next = s->order.prev = &s->order;
}

#endif /* WEFT_MATCH_H */

/* The template. */
#ifdef WEFT_MATCH

#define WEFT_MATCH_PASTE2(a, b) a##b
#define WEFT_MATCH_PASTE(a, b) WEFT_MATCH_PASTE2(a, b)
#define WEFT_MATCH_TEXT2(a) #a
#define WEFT_MATCH_TEXT(a) WEFT_MATCH_TEXT2(a)
#define WEFT_MATCH_SELF struct WEFT_MATCH_PASTE(WEFT_MATCH, _match)
#define WEFT_MATCH_T WEFT_MATCH_PASTE(WEFT_MATCH, _match_head)
#define WEFT_MATCH_FN(verb) WEFT_MATCH_PASTE(WEFT_MATCH, _match_##verb)
#define WEFT_MATCH_FN_V(verb) WEFT_MATCH_PASTE(WEFT_MATCH, _match_v_##verb)
#ifdef WEFT_MATCH_CTX
#define WEFT_MATCH_CALL(what, m, ...) what((m)->ctx, __VA_ARGS__)
#else
#define WEFT_MATCH_CALL(what, m, ...) what(__VA_ARGS__)
#endif
#ifndef WEFT_MATCH_LEN
#define WEFT_MATCH_LEN(m) sizeof(WEFT_MATCH_T)  /* how much of a head callers have; weft's own use */
#endif

typedef WEFT_MATCH_HEAD WEFT_MATCH_T;
WEFT_MATCH_ASSERT(sizeof(WEFT_MATCH_T) <= WEFT_MATCH_HEAD_MAX, "a head has at most 32 bytes");

WEFT_MATCH_SELF {
	uint32_t wants, arrivals;               /* how many are held */
	uint64_t number;                        /* the last one given out */
	const void *ctx;
	struct weft_match_rec *spare;           /* records to use again */
	struct weft_match_side side[2];         /* wants, arrivals */
};

static inline bool WEFT_MATCH_FN(eq)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want,
				     const WEFT_MATCH_T *got)
{
	(void)m;
	return WEFT_MATCH_CALL(WEFT_MATCH_EQ, m, want, got);
}

static inline uint32_t WEFT_MATCH_FN(shape)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want)
{
	(void)m;
	(void)want;
	return WEFT_MATCH_CALL(WEFT_MATCH_SHAPE, m, want);
}

/* Entries keep heads as bytes; a copy of fixed size is how C reads them back. It costs nothing. */
static inline bool WEFT_MATCH_FN(takes)(const WEFT_MATCH_SELF *m, const struct weft_match_entry *want,
					const WEFT_MATCH_T *got)
{
	WEFT_MATCH_T w;

	memcpy(&w, want->head, sizeof(w));
	return WEFT_MATCH_FN(eq)(m, &w, got);
}

static inline bool WEFT_MATCH_FN(suits)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want,
					const struct weft_match_entry *got)
{
	WEFT_MATCH_T g;

	memcpy(&g, got->head, sizeof(g));
	return WEFT_MATCH_FN(eq)(m, want, &g);
}

#ifdef WEFT_MATCH_HASH

static inline uint64_t WEFT_MATCH_FN(hash)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head,
					   uint32_t shape)
{
	(void)m;
	(void)head;
	(void)shape;
	return weft_match_mix(WEFT_MATCH_CALL(WEFT_MATCH_HASH, m, head, shape));
}

/* Puts a want into the index of its shape. False: no memory. */
static inline bool WEFT_MATCH_FN(index_want)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	struct weft_match_side *s = &m->side[0];
	WEFT_MATCH_T w;
	uint32_t shape;
	unsigned i;

	memcpy(&w, e->head, sizeof(w));
	shape = WEFT_MATCH_FN(shape)(m, &w);
	i = weft_match_slot(s, shape);
	if (i == WEFT_MATCH_REST) {
		weft_match_slots_vacate(s);
		i = weft_match_slot(s, shape);
	}
	if (i == WEFT_MATCH_REST)
		weft_match_rest_add(s, &e->node);
	else if (!weft_match_hash_add(s, i, &e->node, WEFT_MATCH_FN(hash)(m, &w, shape)))
		return false;
	e->slot = (uint8_t)i;
	return true;
}

WEFT_MATCH_FAR void WEFT_MATCH_FN(unindex)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	struct weft_match_side *s = &m->side[e->side - 1];
	struct weft_match_rec *r;

	for (r = e->more; r; r = r->more)       /* ask for all before the first is needed */
		__builtin_prefetch(weft_match_bucket(s, (unsigned)r->slot, r->node.hash));
	if (e->slot == WEFT_MATCH_REST)
		weft_match_rest_remove(s, &e->node);
	else if (e->slot != WEFT_MATCH_LOOSE)
		weft_match_hash_remove(s, e->slot, &e->node);
	while ((r = e->more)) {
		weft_match_hash_remove(s, (unsigned)r->slot, &r->node);
		e->more = r->more;
		weft_match_rec_put(&m->spare, r);
	}
}

/* A head is looked up once per shape in use: ask for all the buckets before the first is needed. */
static inline void WEFT_MATCH_FN(ask)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	const struct weft_match_side *s = &m->side[0];
	uint32_t left;
	unsigned i;

	for (left = s->used; left; left &= left - 1) {
		i = (unsigned)__builtin_ctz(left);
		if (s->index[i].groups)
			__builtin_prefetch(weft_match_bucket(s, i, WEFT_MATCH_FN(hash)(m, head, s->index[i].shape)));
	}
}

/* The earliest indexed want that takes @head, or NULL. */
static inline struct weft_match_entry *
WEFT_MATCH_FN(indexed_want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	struct weft_match_side *s = &m->side[0];
	struct weft_match_entry *e, *best = NULL;
	struct weft_match_node *lead, *n;
	uint32_t left = s->used | (uint32_t)1 << WEFT_MATCH_REST;
	unsigned i;

	for (; left; left &= left - 1) {
		i = (unsigned)__builtin_ctz(left);
		if (i == WEFT_MATCH_REST)
			lead = s->rest;
		else if (!s->index[i].groups)
			continue;
		else
			lead = weft_match_group(s, i, WEFT_MATCH_FN(hash)(m, head, s->index[i].shape));
		for (n = lead; n; n = n->next == lead ? NULL : n->next) {
			e = WEFT_MATCH_NODED(n);
			if (best && best->number < e->number)
				break;
			if (WEFT_MATCH_FN(takes)(m, e, head)) {
				best = e;
				break;
			}
		}
	}
	return best;
}

/* Brings index @i of the arrivals up to date, as far as memory allows. */
WEFT_MATCH_FAR void WEFT_MATCH_FN(index_arrivals)(WEFT_MATCH_SELF *m, unsigned i)
{
	struct weft_match_side *s = &m->side[1];
	struct weft_match_link *l = weft_match_after(s, s->index[i].upto);
	struct weft_match_entry *e;
	struct weft_match_rec *r = NULL;
	struct weft_match_node *n;
	WEFT_MATCH_T g;

	for (; l != &s->order; l = l->next) {
		e = WEFT_MATCH_LINKED(l);
		if (i && !(r = weft_match_rec_get(&m->spare)))
			return;
		n = i ? &r->node : &e->node;
		memcpy(&g, e->head, sizeof(g));
		if (!weft_match_hash_add(s, i, n, WEFT_MATCH_FN(hash)(m, &g, s->index[i].shape))) {
			if (i)
				weft_match_rec_put(&m->spare, r);
			return;
		}
		if (i) {
			r->entry = e;
			r->slot = i;
			r->more = e->more;
			e->more = r;
		} else {
			e->slot = 0;
		}
		s->index[i].upto = e->number;
	}
}

/* The earliest arrival that suits @want, by index; *@upto: there is none but behind this number. */
static inline struct weft_match_entry *
WEFT_MATCH_FN(indexed_arrival)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want, uint64_t *upto)
{
	struct weft_match_side *s = &m->side[1];
	uint32_t shape = WEFT_MATCH_FN(shape)(m, want);
	unsigned i = weft_match_slot(s, shape);
	struct weft_match_node *lead, *n;
	struct weft_match_entry *e;

	if (i == WEFT_MATCH_REST)
		return NULL;
	if (s->index[i].upto < weft_match_last(s)->number)
		WEFT_MATCH_FN(index_arrivals)(m, i);
	lead = weft_match_group(s, i, WEFT_MATCH_FN(hash)(m, want, shape));
	for (n = lead; n; n = n->next == lead ? NULL : n->next) {
		e = i ? ((struct weft_match_rec *)(void *)n)->entry : WEFT_MATCH_NODED(n);
		if (WEFT_MATCH_FN(suits)(m, want, e))
			return e;
	}
	*upto = s->index[i].upto;
	return NULL;
}

#else /* WEFT_MATCH_LESS: one treap per side for entries without wildcards, in index[0] */

static inline bool WEFT_MATCH_FN(less)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *a,
				       const WEFT_MATCH_T *b)
{
	(void)m;
	return WEFT_MATCH_CALL(WEFT_MATCH_LESS, m, a, b);
}

/* The leader of the group equal to @head, or NULL. */
static inline struct weft_match_node *WEFT_MATCH_FN(tree_find)(const WEFT_MATCH_SELF *m,
							       const struct weft_match_side *s,
							       const WEFT_MATCH_T *head)
{
	struct weft_match_node *n = s->index[0].root;
	WEFT_MATCH_T h;

	while (n) {
		memcpy(&h, WEFT_MATCH_NODED(n)->head, sizeof(h));
		if (WEFT_MATCH_FN(less)(m, head, &h))
			n = n->left;
		else if (WEFT_MATCH_FN(less)(m, &h, head))
			n = n->right;
		else
			return n;
	}
	return NULL;
}

WEFT_MATCH_FAR void WEFT_MATCH_FN(tree_add)(WEFT_MATCH_SELF *m, struct weft_match_side *s,
					    struct weft_match_entry *e)
{
	struct weft_match_node **p = &s->index[0].root, **half[2] = { &e->node.left, &e->node.right }, *n;
	struct weft_match_entry *up = NULL, *ups[2] = { e, e };
	WEFT_MATCH_T head, h;
	int greater;

	memcpy(&head, e->head, sizeof(head));
	e->slot = 0;
	e->up = NULL;
	n = WEFT_MATCH_FN(tree_find)(m, s, &head);
	if (n) {
		weft_match_ring_add(n, &e->node);
		return;
	}
	e->node.next = e->node.prev = &e->node;
	e->weight = (uint32_t)(weft_match_mix(weft_match_mix(e->number)) >> 32);
	while (*p && WEFT_MATCH_NODED(*p)->weight >= e->weight) {
		up = WEFT_MATCH_NODED(*p);
		memcpy(&h, up->head, sizeof(h));
		p = WEFT_MATCH_FN(less)(m, &head, &h) ? &up->node.left : &up->node.right;
	}
	n = *p;
	*p = &e->node;
	e->up = up;
	while (n) {     /* split what hung there: the lesser to our left, the greater to our right */
		up = WEFT_MATCH_NODED(n);
		memcpy(&h, up->head, sizeof(h));
		greater = WEFT_MATCH_FN(less)(m, &head, &h);
		*half[greater] = n;
		up->up = ups[greater];
		ups[greater] = up;
		half[greater] = greater ? &n->left : &n->right;
		n = *half[greater];
	}
	*half[0] = *half[1] = NULL;
}

static inline bool WEFT_MATCH_FN(index_want)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	WEFT_MATCH_T w;

	memcpy(&w, e->head, sizeof(w));
	if (WEFT_MATCH_FN(shape)(m, &w)) {
		weft_match_rest_add(&m->side[0], &e->node);
		e->slot = WEFT_MATCH_REST;
	} else {
		WEFT_MATCH_FN(tree_add)(m, &m->side[0], e);
	}
	return true;
}

static inline void WEFT_MATCH_FN(unindex)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	struct weft_match_side *s = &m->side[e->side - 1];

	if (e->slot == WEFT_MATCH_REST)
		weft_match_rest_remove(s, &e->node);
	else if (e->slot != WEFT_MATCH_LOOSE)
		weft_match_tree_remove(s, e);
}

static inline void WEFT_MATCH_FN(ask)(const WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	(void)m;
	(void)head;     /* a tree's way is not known beforehand */
}

static inline struct weft_match_entry *
WEFT_MATCH_FN(indexed_want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	struct weft_match_side *s = &m->side[0];
	struct weft_match_node *lead = WEFT_MATCH_FN(tree_find)(m, s, head), *n;
	struct weft_match_entry *e, *best = NULL;

	for (int pass = 0; pass < 2; pass++, lead = s->rest) {
		for (n = lead; n; n = n->next == lead ? NULL : n->next) {
			e = WEFT_MATCH_NODED(n);
			if (best && best->number < e->number)
				break;
			if (WEFT_MATCH_FN(takes)(m, e, head)) {
				best = e;
				break;
			}
		}
	}
	return best;
}

static inline struct weft_match_entry *
WEFT_MATCH_FN(indexed_arrival)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want, uint64_t *upto)
{
	struct weft_match_side *s = &m->side[1];
	struct weft_match_link *l;
	struct weft_match_node *lead, *n;

	if (WEFT_MATCH_FN(shape)(m, want))
		return NULL;
	for (l = weft_match_after(s, s->upto); l != &s->order; l = l->next)
		WEFT_MATCH_FN(tree_add)(m, s, WEFT_MATCH_LINKED(l));
	s->upto = *upto = weft_match_last(s)->number;
	lead = WEFT_MATCH_FN(tree_find)(m, s, want);
	for (n = lead; n; n = n->next == lead ? NULL : n->next)
		if (WEFT_MATCH_FN(suits)(m, want, WEFT_MATCH_NODED(n)))
			return WEFT_MATCH_NODED(n);
	return NULL;
}

#endif

/* What follows is for use. */

#ifdef WEFT_MATCH_CTX
static inline void WEFT_MATCH_FN(init)(WEFT_MATCH_SELF *m, const void *ctx)
#else
static inline void WEFT_MATCH_FN(init)(WEFT_MATCH_SELF *m)
#endif
{
	m->wants = m->arrivals = 0;
	m->number = 0;
	m->spare = NULL;
#ifdef WEFT_MATCH_CTX
	m->ctx = ctx;
#else
	m->ctx = NULL;
#endif
	weft_match_side_init(&m->side[0]);
	weft_match_side_init(&m->side[1]);
}

/* The first entry of a side (WEFT_MATCH_WANTS or WEFT_MATCH_ARRIVALS) in order of insertion, or NULL. */
static inline struct weft_match_entry *WEFT_MATCH_FN(first)(WEFT_MATCH_SELF *m, int side)
{
	struct weft_match_side *s = &m->side[side - 1];

	return s->order.next == &s->order ? NULL : WEFT_MATCH_LINKED(s->order.next);
}

/* The one inserted after @e on its side, or NULL. */
static inline struct weft_match_entry *WEFT_MATCH_FN(next)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	return e->order.next == &m->side[e->side - 1].order ? NULL : WEFT_MATCH_LINKED(e->order.next);
}

static inline void WEFT_MATCH_FN(add)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head,
				      struct weft_match_entry *e, int side)
{
	size_t len = WEFT_MATCH_LEN(m);

	e->more = NULL;
	e->number = ++m->number;
	e->side = (uint8_t)side;
	e->slot = WEFT_MATCH_LOOSE;
	if (len && (const void *)head != (const void *)e->head)
		memcpy(e->head, head, len);
	weft_match_order_add(&m->side[side - 1], e);
}

/* Holds @e as a want or an arrival with a copy of this head, whether or not a partner is there. */
static inline void WEFT_MATCH_FN(add_want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want,
					   struct weft_match_entry *e)
{
	WEFT_MATCH_FN(add)(m, want, e, WEFT_MATCH_WANTS);
	m->wants++;
}

static inline void WEFT_MATCH_FN(add_arrival)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head,
					      struct weft_match_entry *e)
{
	WEFT_MATCH_FN(add)(m, head, e, WEFT_MATCH_ARRIVALS);
	m->arrivals++;
}

/* Takes @e out again, wherever it is. False: it is on neither side. */
static inline bool WEFT_MATCH_FN(remove)(WEFT_MATCH_SELF *m, struct weft_match_entry *e)
{
	struct weft_match_side *s;

	if (e->side == WEFT_MATCH_NOWHERE)
		return false;
	s = &m->side[e->side - 1];
	if (e->slot != WEFT_MATCH_LOOSE || e->more)
		WEFT_MATCH_FN(unindex)(m, e);
	weft_match_order_remove(e);
	if (!(e->side == WEFT_MATCH_WANTS ? --m->wants : --m->arrivals) && s->used)
		weft_match_side_idle(s, &m->spare);
	e->side = WEFT_MATCH_NOWHERE;
	return true;
}

/* What a direct comparison with the first few did not find. */
WEFT_MATCH_FAR struct weft_match_entry *WEFT_MATCH_FN(far_want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	struct weft_match_side *s = &m->side[0];
	struct weft_match_link *l = weft_match_after(s, s->upto);
	struct weft_match_entry *e;

	WEFT_MATCH_FN(ask)(m, head);
	for (; l != &s->order; l = l->next) {
		e = WEFT_MATCH_LINKED(l);
		if (!WEFT_MATCH_FN(index_want)(m, e))
			break;
		s->upto = e->number;
	}
	e = WEFT_MATCH_FN(indexed_want)(m, head);
	for (; !e && l != &s->order; l = l->next)
		if (WEFT_MATCH_FN(takes)(m, WEFT_MATCH_LINKED(l), head))
			e = WEFT_MATCH_LINKED(l);
	return e;
}

WEFT_MATCH_FAR struct weft_match_entry *
WEFT_MATCH_FN(far_arrival)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want)
{
	struct weft_match_side *s = &m->side[1];
	uint64_t upto = 0;
	struct weft_match_entry *e = WEFT_MATCH_FN(indexed_arrival)(m, want, &upto);
	struct weft_match_link *l;

	if (e)
		return e;
	for (l = upto ? weft_match_after(s, upto) : s->order.next; l != &s->order; l = l->next)
		if (WEFT_MATCH_FN(suits)(m, want, WEFT_MATCH_LINKED(l)))
			return WEFT_MATCH_LINKED(l);
	return NULL;
}

/* The earliest posted want that matches @head, or NULL; it stays in. */
static inline struct weft_match_entry *WEFT_MATCH_FN(find_want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head)
{
	struct weft_match_link *end = &m->side[0].order, *l = end->next;

	for (int i = 0; i < WEFT_MATCH_NEAR; i++, l = l->next) {
		if (l == end)
			return NULL;
		if (WEFT_MATCH_FN(takes)(m, WEFT_MATCH_LINKED(l), head))
			return WEFT_MATCH_LINKED(l);
	}
	return l == end ? NULL : WEFT_MATCH_FN(far_want)(m, head);
}

/* The earliest arrival that matches @want, or NULL; it stays in. */
static inline struct weft_match_entry *WEFT_MATCH_FN(look)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want)
{
	struct weft_match_link *end = &m->side[1].order, *l = end->next;

	for (int i = 0; i < WEFT_MATCH_NEAR; i++, l = l->next) {
		if (l == end)
			return NULL;
		if (WEFT_MATCH_FN(suits)(m, want, WEFT_MATCH_LINKED(l)))
			return WEFT_MATCH_LINKED(l);
	}
	return l == end ? NULL : WEFT_MATCH_FN(far_arrival)(m, want);
}

/* A message with this head comes: gives the want that takes it, out of the matcher, or NULL after
 * keeping @e as an arrival. */
static inline struct weft_match_entry *WEFT_MATCH_FN(arrive)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *head,
							     struct weft_match_entry *e)
{
	struct weft_match_entry *partner = WEFT_MATCH_FN(find_want)(m, head);

	if (partner)
		WEFT_MATCH_FN(remove)(m, partner);
	else
		WEFT_MATCH_FN(add_arrival)(m, head, e);
	return partner;
}

/* A receive is posted: gives the arrival it takes, out of the matcher, or NULL after keeping @e as a want. */
static inline struct weft_match_entry *WEFT_MATCH_FN(want)(WEFT_MATCH_SELF *m, const WEFT_MATCH_T *want,
							   struct weft_match_entry *e)
{
	struct weft_match_entry *partner = WEFT_MATCH_FN(look)(m, want);

	if (partner)
		WEFT_MATCH_FN(remove)(m, partner);
	else
		WEFT_MATCH_FN(add_want)(m, want, e);
	return partner;
}

/* Lets go of everything held and frees what the matcher had allocated. */
static inline void WEFT_MATCH_FN(fini)(WEFT_MATCH_SELF *m)
{
	struct weft_match_entry *e;

	for (int side = WEFT_MATCH_WANTS; side <= WEFT_MATCH_ARRIVALS; side++) {
		while ((e = WEFT_MATCH_FN(first)(m, side)))
			WEFT_MATCH_FN(remove)(m, e);
		weft_match_tables_free(&m->side[side - 1], -1);
	}
	weft_match_spares_free(&m->spare);
}

/* The same over pointers, for struct weft_proto. */
static inline void WEFT_MATCH_FN_V(init)(void *m, const void *ctx)
{
#ifdef WEFT_MATCH_CTX
	WEFT_MATCH_FN(init)((WEFT_MATCH_SELF *)m, ctx);
#else
	(void)ctx;
	WEFT_MATCH_FN(init)((WEFT_MATCH_SELF *)m);
#endif
}

static inline void WEFT_MATCH_FN_V(fini)(void *m)
{
	WEFT_MATCH_FN(fini)((WEFT_MATCH_SELF *)m);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(arrive)(void *m, const void *head,
							       struct weft_match_entry *e)
{
	return WEFT_MATCH_FN(arrive)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)head, e);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(want)(void *m, const void *want,
							     struct weft_match_entry *e)
{
	return WEFT_MATCH_FN(want)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)want, e);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(find_want)(void *m, const void *head)
{
	return WEFT_MATCH_FN(find_want)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)head);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(look)(void *m, const void *want)
{
	return WEFT_MATCH_FN(look)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)want);
}

static inline void WEFT_MATCH_FN_V(add_want)(void *m, const void *want, struct weft_match_entry *e)
{
	WEFT_MATCH_FN(add_want)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)want, e);
}

static inline void WEFT_MATCH_FN_V(add_arrival)(void *m, const void *head, struct weft_match_entry *e)
{
	WEFT_MATCH_FN(add_arrival)((WEFT_MATCH_SELF *)m, (const WEFT_MATCH_T *)head, e);
}

static inline bool WEFT_MATCH_FN_V(remove)(void *m, struct weft_match_entry *e)
{
	return WEFT_MATCH_FN(remove)((WEFT_MATCH_SELF *)m, e);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(first)(void *m, int side)
{
	return WEFT_MATCH_FN(first)((WEFT_MATCH_SELF *)m, side);
}

static inline struct weft_match_entry *WEFT_MATCH_FN_V(next)(void *m, struct weft_match_entry *e)
{
	return WEFT_MATCH_FN(next)((WEFT_MATCH_SELF *)m, e);
}

static inline size_t WEFT_MATCH_FN_V(count)(const void *m, int side)
{
	const WEFT_MATCH_SELF *x = (const WEFT_MATCH_SELF *)m;

	return side == WEFT_MATCH_WANTS ? x->wants : x->arrivals;
}

#ifndef WEFT_MATCH_CTX
__attribute__((unused)) static const struct weft_proto WEFT_MATCH_PASTE(WEFT_MATCH, _proto) = {
	sizeof(struct weft_proto), sizeof(WEFT_MATCH_T), WEFT_MATCH_TEXT(WEFT_MATCH),
	sizeof(WEFT_MATCH_SELF), sizeof(struct weft_match_entry), 0, 0, NULL,
	WEFT_MATCH_FN_V(init), WEFT_MATCH_FN_V(fini), WEFT_MATCH_FN_V(arrive), WEFT_MATCH_FN_V(want),
	WEFT_MATCH_FN_V(find_want), WEFT_MATCH_FN_V(look), WEFT_MATCH_FN_V(add_want),
	WEFT_MATCH_FN_V(add_arrival), WEFT_MATCH_FN_V(remove), WEFT_MATCH_FN_V(first),
	WEFT_MATCH_FN_V(next), WEFT_MATCH_FN_V(count),
};
#endif

#undef WEFT_MATCH
#undef WEFT_MATCH_HEAD
#undef WEFT_MATCH_EQ
#undef WEFT_MATCH_SHAPE
#undef WEFT_MATCH_HASH
#undef WEFT_MATCH_LESS
#undef WEFT_MATCH_CTX
#undef WEFT_MATCH_LEN
#undef WEFT_MATCH_CALL
#undef WEFT_MATCH_FN_V
#undef WEFT_MATCH_FN
#undef WEFT_MATCH_T
#undef WEFT_MATCH_SELF
#undef WEFT_MATCH_TEXT
#undef WEFT_MATCH_TEXT2
#undef WEFT_MATCH_PASTE
#undef WEFT_MATCH_PASTE2
#endif /* WEFT_MATCH */
