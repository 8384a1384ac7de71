/* straight.h - the usual buffer's way in line: one in a chunk of its maker, who gives it to another process, where it lands.
 *
 * What buf.c and share.c do step by step, for any buffer and with the words for what is wrong. Here nothing is said: what is not as usual, or is misuse, is left
 * to them, and nothing has changed. A buffer costs one look at its handle, one swap of its word, and its share of the cell.
 *
 *   giver    wf_buf_giveable    may it go this way? in one look
 *            (a cell is claimed)
 *            wf_buf_give        HELD -> AWAY(to), by swap: of two who give or put it at once one succeeds
 *            (the cell is published)
 *   taker    wf_buf_land_straight
 *
 * Edges   E1 (buf.c)    by the release that publishes the cell: the swap stays behind it.
 *         W1 (share.c)  the entry of one of ours that is in our hands says 0, and has since wf_entry_clear: its fence comes before AWAY, in this thread or by whatever
 *                       brought the buffer from that thread to this one. Both CPU families keep such an order for third parties.
 */
#ifndef WF_MEM_STRAIGHT_H
#define WF_MEM_STRAIGHT_H

#include "base/cpu.h"
#include "base/tsan.h"
#include "mem/atlas.h"
#include "mem/ledger.h"
#include "mem/poison.h"
#include "mem/share.h"
#include "mem/word.h"

static inline bool wf_class_in_chunk(unsigned class)
{
	return class - WF_CLASS_MIN <= WF_CLASS_CHUNK - WF_CLASS_MIN;
}

struct wf_buf *wf_buf_look(const void *p);      /* space.c: wf_space_handle, remembered by the thread */

/* Does some tool follow what happens to memory? Then nothing goes straight. */
static inline bool wf_buf_watched(void)
{
#if WF_TSAN
	return wf_poison_on;
#else
	return wf_poison_on || wf_tsan_user;
#endif
}

/* [any] Does @p, a handle then, lie near the one that was looked for last? */
static inline bool wf_buf_is_near(const void *p)
{
	const struct wf_cache *c = wf_cache;

	return wf_likely(c && (uintptr_t)p - c->area < c->area_bytes && !((uintptr_t)p % sizeof(struct wf_buf)));
}

/* [any] As wf_space_handle; what lies near the last one is found by two comparisons. */
static inline struct wf_buf *wf_buf_near(const void *p)
{
	return wf_buf_is_near(p) ? (struct wf_buf *)(uintptr_t)p : wf_buf_look(p);
}

struct wf_chunk *wf_given_from(const struct wf_buf *b);        /* share.c: that of @b, one in a chunk, remembered by the thread; NULL: others cannot map it */

/* [any] Is @b, a handle, of a buffer of ours in a chunk, in its holder's hands, not lent, and as weft gave it to him? Then *@ret_len is its length. */
static inline bool wf_buf_as_got(const struct wf_buf *b, size_t *ret_len)
{
	size_t len;

	if (wf_unlikely(atomic_load_explicit(&b->word, memory_order_relaxed) != WF_BUF_HELD || !wf_class_in_chunk(b->class)))
		return false;
	len = b->pub.len;
	if (wf_unlikely(len > (size_t)1 << b->class || b->pub.data != b->home || wf_buf_watched()))
		return false;
	*ret_len = len;
	return true;
}

static inline void wf_flight_of(const struct wf_buf *b, const struct wf_chunk *c, struct wf_flight *ret_flight)
{
	ret_flight->maker = c->process;
	ret_flight->segment = c->segment;
	ret_flight->offset = (uintptr_t)b->home & (WF_CHUNK_BYTES - 1);
	ret_flight->index = wf_space_index_of(b);
	ret_flight->class = b->class;
	ret_flight->view = 0;
	ret_flight->number = wf_flight_number(b);
}

/* [any] The chunk that this thread gave from last, if @p is a handle of it; else NULL. */
static inline const struct wf_chunk *wf_given_near(const void *p)
{
	const struct wf_cache *c = wf_cache;

	return wf_likely(c && (uintptr_t)p - c->given < WF_ENTRIES * sizeof(struct wf_buf) && !((uintptr_t)p % sizeof(struct wf_buf))) ? c->given_from : NULL;
}

/* [any] True: @buf, any pointer at all, is one of ours as wf_buf_as_got says, and others can map its chunk. *@ret_flight is what
 * is to be put into the cell. Another thread may change that at once, if it has no right to; wf_buf_give tells. */
static inline bool wf_buf_giveable(const struct weft_buf *buf, struct wf_flight *ret_flight, size_t *ret_len)
{
	const struct wf_chunk *c = wf_given_near(buf);
	const struct wf_buf *b = wf_likely(c != NULL) ? (const struct wf_buf *)(const void *)buf : wf_buf_near(buf);

	if (wf_unlikely(!b || !wf_buf_as_got(b, ret_len) || (!c && !(c = wf_given_from(b)))))
		return false;
	wf_flight_of(b, c, ret_flight);
	return true;
}

/* [any] The same without a call; false: or it is not near the last one. */
static inline bool wf_buf_giveable_near(const struct weft_buf *buf, struct wf_flight *ret_flight, size_t *ret_len)
{
	const struct wf_buf *b = (const struct wf_buf *)(const void *)buf;
	const struct wf_chunk *c = wf_given_near(buf);

	if (wf_unlikely(!c || !wf_buf_as_got(b, ret_len)))
		return false;
	wf_flight_of(b, c, ret_flight);
	return true;
}

/* [any] @buf, giveable a moment ago, goes to process @to, in a cell that is claimed already (wf_buf_fly says why). False: it was not, and does not. */
static inline bool wf_buf_give(struct weft_buf *buf, uint32_t to)
{
	struct wf_buf *b = (struct wf_buf *)(void *)buf;
	uint64_t word = WF_BUF_HELD;

	return wf_likely(wf_word_swap_bare(b, &word, wf_away(to)));             /* E1, W1 */
}

static inline void wf_hand_over(struct wf_buf *b, size_t len, size_t cap, struct weft_buf **ret_buf)
{
	wf_user_acquires(b);
	b->pub.data = b->home;
	b->pub.len = len;
	b->pub.cap = cap;
	*ret_buf = &b->pub;
}

/* The number of the buffer of 2^@class bytes at @offset of a chunk. False: there can be none. */
static inline bool wf_chunk_index(uint64_t offset, unsigned class, uint32_t *ret_index)
{
	uint32_t unit = (uint32_t)(offset >> WF_CLASS_UNIT);

	if (!wf_class_in_chunk(class) || offset >= WF_CHUNK_BYTES || offset & (((uint64_t)1 << class) - 1))
		return false;
	*ret_index = unit * WF_UNIT_HANDLES;
	if (class <= WF_CLASS_UNIT)
		*ret_index += (uint32_t)(offset & (((uint32_t)1 << WF_CLASS_UNIT) - 1)) >> class;
	return true;
}

/* May another's buffer land on @b? If it is in somebody's hands here, its sender gave away what was not his. */
static inline bool wf_handle_open(const struct wf_buf *b)
{
	uint64_t word = atomic_load_explicit(&b->word, WF_LAND);        /* only landing leaves these states */

	return word == WF_BUF_FREE || word == WF_BUF_NONE;
}

/* Is the flight of @f, from its maker, one that @b has not been on yet? Then it is from now on. relaxed: what another thread here wrote at the last one is behind us
 * by way of the maker, the return list and the mailbox; nobody needs more of it. A maker that sends one flight twice at once could have given his memory to two anyway. */
static inline bool wf_flies_anew(struct wf_buf *b, uint32_t index, const struct wf_flight *f)
{
	if (f->index != index || f->number == __atomic_load_n(&b->slot, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&b->slot, f->number, __ATOMIC_RELAXED);
	return true;
}

void wf_chunk_note_class(struct wf_chunk *c, uint64_t offset, unsigned class);  /* share.c: weft_buf_of finds the handle by it */

/* May a buffer of @class go home by strip, where its entry does not stand against it? Below, it shares the line of its entry; above, few are too much to wait for others. */
static inline bool wf_class_brief(unsigned class)
{
	return class - WF_CLASS_WIDE <= (unsigned)WF_CLASS_UNIT - WF_CLASS_WIDE;
}

/* @b, of @c, is in this process's hands. @straight: from its maker, and its entry says nothing. */
static inline void wf_land_at(struct wf_chunk *c, struct wf_buf *b, uint32_t index, unsigned class, uint64_t offset, size_t len, bool straight, struct weft_buf **ret_buf)
{
	/* Mostly it says so since the last time. */
	if (wf_unlikely(b->class != (class | WF_CLASS_FAR))) {
		b->home = c->data + offset;
		b->class = (uint8_t)(class | WF_CLASS_FAR);
		b->far.maker = c->process;
	}
	b->far.brief = straight && wf_class_brief(class) ? wf_brief_to(c->segment, index) : 0;
	/* relaxed: as one's own, space.c. */
	if (wf_unlikely(atomic_load_explicit(&c->class[index / WF_UNIT_HANDLES], memory_order_relaxed) != class))
		wf_chunk_note_class(c, offset, class);
	wf_hand_over(b, len, (size_t)1 << class, ret_buf);
	wf_word_set(b, WF_BUF_HELD);
}

struct wf_chunk *wf_landed_in(uint32_t process, uint32_t segment);      /* share.c: a chunk that is mapped, remembered by the thread; NULL: none */

/* [any] As wf_buf_land of what comes from its maker, @from, and has no more than a unit. False: not so, and nothing happened. */
static inline bool wf_buf_land_straight(uint32_t from, const struct wf_flight *f, size_t len, struct weft_buf **ret_buf)
{
	uint64_t where = (uint64_t)f->segment << 32 | f->maker;
	uint32_t in_unit = f->index % WF_UNIT_HANDLES << f->class % 32;
	struct wf_cache *cache = wf_cache;
	struct wf_chunk *c;
	struct wf_buf *b;

	if (wf_unlikely(f->maker != from || f->view || f->class - WF_CLASS_MIN > WF_CLASS_UNIT - WF_CLASS_MIN || f->index >= WF_ENTRIES ||
			in_unit >> WF_CLASS_UNIT || len > (size_t)1 << f->class))
		return false;
	if (wf_likely(cache && cache->landed == where)) {
		c = cache->landed_in;
		b = &cache->landed_on[f->index];
	} else {
		c = wf_landed_in(f->maker, f->segment);
		b = c ? &c->handles[f->index] : NULL;
	}
	if (wf_unlikely(!c || atomic_load_explicit(&c->dead, memory_order_relaxed)))
		return false;
	if (wf_unlikely(!wf_handle_open(b) || !wf_flies_anew(b, f->index, f)))
		return false;
	wf_land_at(c, b, f->index, f->class, (uint64_t)(f->index / WF_UNIT_HANDLES) << WF_CLASS_UNIT | in_unit, len, true, ret_buf);
	return true;
}

/* How many of @class go home together at most: of large ones it is the memory that waits. */
static inline unsigned wf_briefs_most(unsigned class)
{
	return class <= WF_CLASS_WAITS ? WF_BRIEFS : WF_BRIEFS / 2;
}

int wf_chain_full(struct wf_chain *chain);      /* home.c: goes home; 0, for who has nothing else to say */

/* [its holder] Where @b, another's, can wait for a line of the strip: this thread's chain. NULL: it may not go that way, or is not of the maker of those there. */
static inline struct wf_chain *wf_buf_chain(const struct wf_buf *b)
{
	struct wf_cache *c = wf_cache;

	return wf_likely(c && c->chain[0].maker == b->far.maker && b->far.brief) ? &c->chain[0] : NULL;
}

/* [its holder] @b, done by its word (word.h), joins those of @chain, and is free. 0 */
static inline int wf_buf_joins(struct wf_chain *chain, struct wf_buf *b)
{
	unsigned n = chain->briefs, most = wf_briefs_most(wf_buf_class(b));

	chain->brief[n++] = b->far.brief;
	chain->briefs = n;
	wf_far_leaves(b);
	return wf_unlikely(n >= most) ? wf_chain_full(chain) : 0;
}

#endif
