/* word.h - the two words that say who has a buffer.
 *
 * Private, in the handle: a state in the low bits; above it three counts of views that others have of it, by how far
 * each has come.
 *
 *   FREE --get--> HELD --send--> SENDING --> SENT --delivered--> HELD
 *    ^             | put            |                             |
 *    +-------------+------ put while lent: PUT, FREE with the last view
 *    |                              |
 *    +------ came home ---- AWAY <--+  one of ours in another process's hands; landed here again: HELD
 *
 * Another's is PUT, too, when nothing is lent, until all that its way home needs has been read from the handle; FREE is the last that is said there: once nobody
 * has a buffer of a dead process's chunk, its handles are blank at any moment (bury.c). One of ours is FREE at once.
 *
 * Shared, in the entry beside the data: HELD(p), or FLYING(p to q), or 0. It counts only while the handle says AWAY,
 * at its maker, and when it is landing, at the taker. 0 while AWAY: it is where its maker gave it, and that stands beside
 * AWAY in the private word; so who gets a buffer from its maker and puts it touches nothing of it that is shared but
 * its link home.
 */
#ifndef WF_MEM_WORD_H
#define WF_MEM_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/tsan.h"
#include "mem/space.h"

struct wf_ledger;

enum {
	WF_BUF_NONE, WF_BUF_FREE, WF_BUF_HELD, WF_BUF_SENDING, WF_BUF_SENT, WF_BUF_PUT, WF_BUF_AWAY,
	WF_BUF_STATE = 15               /* mask */
};
enum { WF_PHASE_SENDING, WF_PHASE_SENT, WF_PHASE_WITH, WF_COUNT_BITS = 20 };

#define WF_COUNT_MAX (((uint64_t)1 << WF_COUNT_BITS) - 1)

static inline uint64_t wf_count_one(unsigned phase)
{
	return (uint64_t)1 << (4 + WF_COUNT_BITS * phase);
}

static inline uint64_t wf_count(uint64_t word, unsigned phase)
{
	return word >> (4 + WF_COUNT_BITS * phase) & WF_COUNT_MAX;
}

static inline void wf_word_set(struct wf_buf *b, uint64_t state)
{
	atomic_store_explicit(&b->word, state, memory_order_relaxed);
}

/* From *@word to @next; if it is no longer *@word, that is told instead. */
static inline bool wf_word_swap(struct wf_buf *b, uint64_t *word, uint64_t next, memory_order order)
{
	return atomic_compare_exchange_strong_explicit(&b->word, word, next, order, memory_order_relaxed);
}

/* The same without order, for who publishes the buffer next by a release, behind which the swap then stays as well; ThreadSanitizer, which does not know that, gets
 * both. May fail for no reason: then *@word is as it was. */
static inline bool wf_word_swap_bare(struct wf_buf *b, uint64_t *word, uint64_t next)
{
#if WF_TSAN
	return wf_word_swap(b, word, next, memory_order_acq_rel);
#else
	return wf_cas64(&b->word, word, next);
#endif
}

/* Behind a bare swap, for who does not publish the buffer after all. */
static inline void wf_word_acquire(void)
{
#if !WF_TSAN
	atomic_thread_fence(memory_order_acquire);
#endif
}

/* The same with acquire, for the paths that are hot: by a fence behind it, as an acquiring instruction would wait on aarch64 for this thread's release
 * stores, that is for the last message to reach the other core (ring.h). */
static inline bool wf_word_swap_hot(struct wf_buf *b, uint64_t *word, uint64_t next)
{
	if (!wf_word_swap_bare(b, word, next))
		return false;
	wf_word_acquire();
	return true;
}

/* @v's buffer counts it by @phase from now on. Relaxed: only a view's end frees the memory. */
static inline void wf_view_move(struct wf_buf *v, unsigned phase)
{
	atomic_fetch_add_explicit(&v->view.of->word, wf_count_one(phase) - wf_count_one(v->phase), memory_order_relaxed);
	v->phase = (uint8_t)phase;
}

static inline unsigned wf_buf_class(const struct wf_buf *b)
{
	return b->class % WF_CLASS_FAR;
}

static inline bool wf_buf_far(const struct wf_buf *b)
{
	return b->class >= WF_CLASS_FAR;
}

/* Between two stays of another's buffer here its order is kept by other processes, of which a ThreadSanitizer knows
 * nothing: for it, what leaves releases the handle and what lands acquires it. */
#if WF_TSAN
#define WF_LEAVE memory_order_release
#define WF_LAND memory_order_acquire
#else
#define WF_LEAVE memory_order_relaxed
#define WF_LAND memory_order_relaxed
#endif

static inline void wf_far_leaves(struct wf_buf *b)
{
	wf_user_releases(b);
	atomic_signal_fence(memory_order_release);      /* nothing is read of it behind this: the compiler is not to, either */
	atomic_store_explicit(&b->word, WF_BUF_FREE, WF_LEAVE);
}

/* A view's own handle may be another's next time: it takes that of the buffer it shows, in the same memory. */
static inline void wf_far_view_leaves(struct wf_buf *v)
{
	struct wf_buf *of = wf_space_buf_of(v->home);

	wf_user_releases(of);
#if WF_TSAN
	atomic_fetch_or_explicit(&of->word, 0, WF_LEAVE);
#endif
	wf_word_set(v, WF_BUF_FREE);
}

static inline void wf_far_view_lands(struct wf_buf *v)
{
	struct wf_buf *of = wf_space_buf_of(v->home);

	wf_user_acquires(of);
#if WF_TSAN
	atomic_load_explicit(&of->word, WF_LAND);
#endif
}

/* The number of the next flight of @b, one of ours in a chunk, from here: by how often it has come back. Who has it counts then (came, land_own), so that giving
 * writes nothing but the word. Another's keep there that of the last one. */
static inline uint32_t wf_flight_number(const struct wf_buf *b)
{
	return b->slot + 1;
}

/* How often it came back. Atomic for wf_share_landed only. */
static inline uint32_t wf_came_back(const struct wf_buf *b)
{
	return __atomic_load_n(&b->slot, __ATOMIC_RELAXED);
}

static inline void wf_comes_back(struct wf_buf *b)
{
	__atomic_store_n(&b->slot, b->slot + 1, __ATOMIC_RELAXED);
}

/* The word of one of ours that is given to process @to; 0: of a view or a big one, whose entry always says where it is. */
static inline uint64_t wf_away(uint32_t to)
{
	return WF_BUF_AWAY | (uint64_t)to << 4;
}

static inline bool wf_is_away(uint64_t word)
{
	return (word & WF_BUF_STATE) == WF_BUF_AWAY;
}

static inline uint32_t wf_away_to(uint64_t word)
{
	return (uint32_t)(word >> 4);
}

/* The shared word. Its low bits are a kind, then come two processes of 31 bits each. */
enum { WF_HOLDER_HELD = 1, WF_HOLDER_FLYING = 2, WF_HOLDER_KIND = 3 };

static inline uint64_t wf_held(uint32_t by)
{
	return WF_HOLDER_HELD | (uint64_t)by << 2;
}

static inline uint64_t wf_flying(uint32_t from, uint32_t to)
{
	return WF_HOLDER_FLYING | (uint64_t)from << 2 | (uint64_t)to << 33;
}

static inline uint32_t wf_holder_from(uint64_t holder)
{
	return (uint32_t)(holder >> 2) & INT32_MAX;
}

static inline uint32_t wf_holder_to(uint64_t holder)
{
	return (uint32_t)(holder >> 33);
}

/* @e, of one of ours that is in our hands again, says nothing any more; and that is seen by who sees it AWAY the next time (W1, share.c), however it leaves. */
static inline void wf_entry_clear(struct wf_entry *e)
{
	atomic_store_explicit(&e->holder, 0, memory_order_relaxed);
#if !WF_TSAN
	atomic_thread_fence(memory_order_release);      /* it does not know fences: there the swap to AWAY releases */
#endif
}

/* What the word says of @b when its holder has put it and nothing of it is lent. */
static inline uint64_t wf_word_done(const struct wf_buf *b)
{
	return wf_buf_far(b) ? WF_BUF_PUT : WF_BUF_FREE;
}

/* buf.c: @b, done by its word, goes where it belongs. */
void wf_buf_home(struct wf_buf *b);

/* home.c: one of another process's, done by its word, begins its way home; it is free then. */
void wf_share_return(struct wf_buf *b);

/* home.c: the buffer of @class, number @index of another's chunk @c, in our hands, without a handle, likewise. @straight: its entry says nothing. */
void wf_share_send_home(const struct wf_chunk *c, unsigned class, uint32_t index, bool straight);

/* home.c: and what has entry @slot in the ledger of @maker. */
void wf_share_send_home_odd(uint32_t maker, struct wf_ledger *l, uint32_t slot);

/* home.c: @b, one of ours that is away, is nobody's who got it from another: free again; @e: its entry. */
void wf_share_refused(struct wf_buf *b, struct wf_entry *e);

/* home.c: @b, one of ours, of which @word said that it was away, does so no more since our swap; and it had come back @times. False: somebody returned
 * it at that moment, too, who lied, and it is not ours to touch. */
bool wf_share_landed(const struct wf_buf *b, uint64_t word, uint32_t times);

/* home.c: of the views of @b lent to other processes, how many have been taken there. */
uint64_t wf_share_taken(const struct wf_buf *b);

/* home.c: view @v did not leave after all: being sent, as before. */
void wf_share_unlend(struct wf_buf *v);

/* home.c: so many views of others' buffers more are in our hands. */
void wf_share_views(int more);

/* home.c: at the limit: what has come home, and what was in the hands of the dead. */
void wf_share_reclaim(void);

#endif
