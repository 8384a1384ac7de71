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
#include <string.h>
#include <weft/base.h>
#include <weft/match_index.h>

#ifdef __cplusplus
extern "C" {
#endif

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

	/* So seldom that forgetting costs each of them no more than it saves. */
	if (e->side == WEFT_MATCH_ARRIVALS && ++s->idle > m->arrivals / 8 + 1024) {
		weft_match_forget(s, &m->spare);
		return;
	}
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

	s->idle = 0;
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
