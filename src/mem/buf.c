/* buf.c - who has a buffer: the public calls, and lending and handing over for the core. See buf.h.
 *
 * Shape   One word per handle says everything: a state, and counts of views (word.h).
 *         A view is a handle without memory of its own. It goes through the same states; when it
 *         becomes free its buffer's count goes down. A view may be lent again: views form a tree.
 *         Whoever changes the state does it by compare-and-swap where misuse may race with it (put,
 *         send), so of two puts at once one succeeds. Where the word is one thread's by right (a free buffer
 *         taken out of the pool, a carry on its way) it is stored.
 * Edges   E1  a view's end (release, in view_end) -> whoever finds the buffer idle or its last view gone
 *             (acquire, in weft_buf_state, buf_drop, send_begin, view_end; where it goes to another process next, home or straight.h, the release that
 *             publishes it is enough): the reader's loads of the memory come before the next writer's stores.
 *         E2  put while lent (release) -> the last view's end (acquire): what the holder did to the
 *             memory comes before the buffer's next life.
 *         Everything else is ordered by how the buffer changes hands: the mailbox, the depot's lock, or
 *         the user's own means. Those stores and loads are relaxed, and say so by naming no edge.
 * Tested  tests/unit/test_buf.c, tests/stress/stress_pool.c, also built with -fsanitize=thread.
 */
#include "mem/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <weft/weft.h>

#include "base/tsan.h"
#include "mem/poison.h"
#include "mem/pool.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "mem/straight.h"
#include "mem/word.h"

static uint64_t lent(uint64_t word)
{
	return wf_count(word, WF_PHASE_SENDING) + wf_count(word, WF_PHASE_SENT) + wf_count(word, WF_PHASE_WITH);
}

static struct wf_buf *inner(struct weft_buf *buf)
{
	return (struct wf_buf *)(void *)buf;
}

static size_t room(const struct wf_buf *b)
{
	if (wf_likely(wf_buf_class(b)))
		return (size_t)1 << wf_buf_class(b);
	return wf_buf_far(b) ? b->far.room : b->view.room;
}

static inline void buf_begin(struct wf_buf *b, size_t len, struct weft_buf **ret_buf)
{
	b->pub.data = b->home;
	b->pub.len = len;
	b->pub.cap = (size_t)1 << b->class;
	wf_word_set(b, WF_BUF_HELD);
	*ret_buf = &b->pub;
}

/* Not at hand, or to be unpoisoned. */
static __attribute__((noinline)) int alloc_any(size_t len, unsigned class, struct weft_buf **ret_buf)
{
	struct wf_buf *b;
	int r = wf_pool_take(class, &b);

	if (wf_unlikely(r < 0))
		return r;
	buf_begin(b, len, ret_buf);
	wf_unpoison(b->home, b->pub.cap);
	return 0;
}

/* Each call is the last thing done, so that no register is saved for it. */
static inline int buf_alloc(size_t len, struct weft_buf **ret_buf)
{
	struct wf_link *l;
	unsigned class;

	if (wf_unlikely(len >= atomic_load_explicit(&wf_pool_bound, memory_order_relaxed)))
		return wf_pool_refuse(len);
	class = wf_pool_class(len);
	if (wf_unlikely(class > WF_CLASS_CHUNK || wf_poison_on || !(l = wf_depot_pop(WF_DEPOT_BUF + (int)class - WF_CLASS_MIN))))
		return alloc_any(len, class, ret_buf);
	buf_begin(wf_pool_buf(l), len, ret_buf);
	return 0;
}

int wf_buf_alloc(size_t len, struct weft_buf **ret_buf)
{
	return buf_alloc(len, ret_buf);
}

/* Takes @phase's count of one view off @b. True: it was put meanwhile and this was the last. */
static bool view_end(struct wf_buf *b, unsigned phase)
{
	uint64_t w;

	wf_user_releases(b);
	w = atomic_fetch_sub_explicit(&b->word, wf_count_one(phase), memory_order_acq_rel);   /* E1, E2 */
	if (w - wf_count_one(phase) != WF_BUF_PUT)
		return false;
	wf_user_acquires(b);
	wf_word_set(b, wf_word_done(b));        /* a put, unlent buffer is nobody's but ours */
	return true;
}

static inline void memory_home(struct wf_buf *b)
{
	wf_poison(b->home, (size_t)1 << b->class);
	wf_pool_home(b);
}

/* View @v has ended, and with it, perhaps, what it was a view of: that, if it is done now. */
static struct wf_buf *view_home(struct wf_buf *v)
{
	while (!v->class) {
		struct wf_buf *of = v->view.of;
		unsigned phase = v->phase;

		wf_depot_put(WF_DEPOT_HANDLE, &v->link);
		if (!view_end(of, phase))
			return NULL;
		v = of;
	}
	return v;
}

/* Kept out of the way of plain buffers: views, others' buffers, big ones. */
static __attribute__((noinline)) void odd_home(struct wf_buf *b)
{
	if (!b->class)
		b = view_home(b);
	if (!b)
		return;
	if (wf_buf_far(b))
		wf_share_return(b);
	else
		memory_home(b);
}

/* @b is done by its word (word.h): its memory goes to the pool, home to another process, or back to the buffer it is a view of. */
static inline void buf_home(struct wf_buf *b)
{
	if (wf_likely(b->class - 1u < WF_CLASS_CHUNK))
		memory_home(b);
	else
		odd_home(b);
}

void wf_buf_home(struct wf_buf *b)
{
	buf_home(b);
}

static int drop_refuse(uint64_t word)
{
	switch (word & WF_BUF_STATE) {
	case WF_BUF_PUT:
		return weft_fail(-EBUSY, "this buffer was put before; others still have it");
	case WF_BUF_SENDING:
	case WF_BUF_SENT:
		return weft_fail(-EBUSY, "this buffer is being sent");
	case WF_BUF_AWAY:
		return weft_fail(-EBUSY, "this buffer was handed to another process");
	default:
		return weft_fail(-EINVAL, "this buffer is in the pool: it was put before");
	}
}

/* Not simply held: @word was found. Lent, or misused. */
static __attribute__((noinline)) int drop_slow(struct wf_buf *b, uint64_t word)
{
	uint64_t next;

	wf_user_releases(b);
	do {
		if ((word & WF_BUF_STATE) != WF_BUF_HELD)
			return drop_refuse(word);
		next = word == WF_BUF_HELD ? wf_word_done(b) : word - WF_BUF_HELD + WF_BUF_PUT; /* views may end while we try */
	} while (!wf_word_swap(b, &word, next, memory_order_acq_rel));  /* E1, E2 */
	if (word == WF_BUF_HELD) {
		wf_user_acquires(b);
		buf_home(b);
	}
	return 0;
}

/* Done by our swap, and not simply another's that joins others. */
static __attribute__((noinline)) int drop_home(struct wf_buf *b)
{
	if (wf_class_in_chunk(b->class - (unsigned)WF_CLASS_FAR)) {             /* E1 by W2: what is pushed is released */
		wf_user_acquires(b);
		wf_user_releases(b);
		wf_share_return(b);
		return 0;
	}
	wf_word_acquire();                                              /* E1 */
	wf_user_acquires(b);
	buf_home(b);
	return 0;
}

/* The holder is done with @b. */
static inline int buf_drop(struct wf_buf *b)
{
	uint64_t word = WF_BUF_HELD;
	struct wf_chain *chain;

	if (wf_unlikely(!wf_word_swap_bare(b, &word, wf_word_done(b))))
		return drop_slow(b, word);
	if (wf_class_in_chunk(b->class - (unsigned)WF_CLASS_FAR) && !wf_user_watched() && (chain = wf_buf_chain(b)) != NULL)
		return wf_buf_joins(chain, b);                          /* E1 by W3, or by W2 */
	return drop_home(b);
}

void wf_buf_release(struct weft_buf *buf)
{
	int r = buf_drop(inner(buf));

	assert(r == 0);
	(void)r;
}

/* May @b be sent, as far as its word and what its holder wrote go? */
static int send_check(const struct wf_buf *b, uint64_t word, bool keep)
{
	switch (word & WF_BUF_STATE) {
	case WF_BUF_HELD:
		break;
	case WF_BUF_PUT:
		return weft_fail(-EBUSY, "this buffer was put before; others still have it");
	case WF_BUF_SENDING:
	case WF_BUF_SENT:
		return weft_fail(-EBUSY, "this buffer is being sent already");
	case WF_BUF_AWAY:
		return weft_fail(-EBUSY, "this buffer was handed to another process");
	default:
		return weft_fail(-EINVAL, "this buffer is in the pool");
	}
	if (!keep && word != WF_BUF_HELD)
		return weft_fail(-EBUSY, "this buffer is lent: only WEFT_KEEP may send it");
	if (b->pub.len > room(b))
		return weft_fail(-EINVAL, "a length of %zu in a buffer of %zu", b->pub.len, room(b));
	if (b->pub.data != b->home)
		return weft_fail(-EINVAL, "the data pointer of a buffer was changed");
	if (keep && lent(word) >= WF_COUNT_MAX)
		return weft_fail(-EAGAIN, "this buffer is lent %llu times", (unsigned long long)WF_COUNT_MAX);
	return 0;
}

/* @b is counted as lent once more; the view that travels for it. */
static int view_new(struct wf_buf *b, struct weft_buf **ret_carry)
{
	struct wf_link *l;
	struct wf_buf *v;
	int r = wf_depot_get(WF_DEPOT_HANDLE, &l);

	if (r < 0) {
		view_end(b, WF_PHASE_SENDING);
		return weft_fail(r, "no memory to lend a buffer");
	}
	v = wf_pool_buf(l);
	v->view.of = b;
	v->view.room = b->pub.len;
	v->home = b->home;
	v->class = 0;
	v->phase = WF_PHASE_SENDING;
	v->pub.data = b->home;
	v->pub.len = v->pub.cap = b->pub.len;
	wf_word_set(v, WF_BUF_SENDING);
	*ret_carry = &v->pub;
	return 0;
}

int wf_buf_send_begin(struct weft_buf *buf, bool keep, struct weft_buf **ret_carry)
{
	struct wf_buf *b = wf_space_handle(buf);
	uint64_t word, next;
	int r;

	if (wf_unlikely(!b))
		return weft_fail(-EINVAL, "not a buffer of weft's");
	word = atomic_load_explicit(&b->word, memory_order_relaxed);
	do {
		r = send_check(b, word, keep);
		if (wf_unlikely(r < 0))
			return r;
		next = keep ? word + wf_count_one(WF_PHASE_SENDING) : WF_BUF_SENDING;
	} while (!wf_word_swap_hot(b, &word, next));                    /* E1 */
	wf_user_acquires(b);
	if (keep)
		return view_new(b, ret_carry);
	b->pub.cap = room(b);           /* weft's to say, whatever its holder wrote there */
	*ret_carry = &b->pub;
	return 0;
}

struct weft_buf *wf_buf_send_undo(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	/* A view that had been with a receiver before stays his. */
	if (b->class || b->phase == WF_PHASE_WITH) {
		wf_word_set(b, WF_BUF_HELD);
		return carry;
	}
	wf_word_set(b, WF_BUF_FREE);
	buf_home(b);
	return NULL;
}

void wf_buf_sent(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	wf_word_set(b, WF_BUF_SENT);
	if (!b->class && b->phase == WF_PHASE_SENDING)
		wf_view_move(b, WF_PHASE_SENT);
}

void wf_buf_delivered(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	wf_word_set(b, WF_BUF_HELD);
	if (!b->class && b->phase != WF_PHASE_WITH)
		wf_view_move(b, WF_PHASE_WITH);
}

bool wf_buf_is_shared(const struct weft_buf *carry)
{
	return !wf_buf_class((const struct wf_buf *)(const void *)carry);
}

int weft_buf_get(size_t len, int rail, struct weft_buf **ret_buf)
{
	if (wf_unlikely(!ret_buf))
		return weft_fail(-EINVAL, "nowhere to put the buffer");
	if (wf_unlikely(rail != WEFT_RAIL_ANY && rail != WEFT_RAIL_FASTEST))
		return weft_fail(-EOPNOTSUPP, "buffers of rail %d are not served yet", rail);
	return buf_alloc(len, ret_buf);
}

static __attribute__((noinline)) int put_any(struct weft_buf *buf)
{
	struct wf_buf *b = wf_buf_near(buf);

	if (wf_unlikely(!b))
		return weft_fail(-EINVAL, "not a buffer of weft's");
	return buf_drop(b);
}

/* What another process handed over goes the whole way here, mostly without a call; each call is the last thing done, so that no register is saved for it. */
int weft_buf_put(struct weft_buf *buf)
{
	if (!buf)
		return 0;
	if (wf_unlikely(!wf_buf_is_near(buf) || !wf_cas_in_line()))
		return put_any(buf);
	return buf_drop(inner(buf));
}

/* How far the slowest of its views is. @taken: of those that count as sent, how many are known to be further. */
static int lent_state(uint64_t word, uint64_t taken)
{
	if (wf_count(word, WF_PHASE_SENDING))
		return WEFT_BUF_SENDING;
	if (wf_count(word, WF_PHASE_SENT) > taken)
		return WEFT_BUF_SENT;
	return lent(word) ? WEFT_BUF_WITH_RECEIVER : WEFT_BUF_IDLE;
}

int weft_buf_state(const struct weft_buf *buf)
{
	struct wf_buf *b = wf_space_handle(buf);
	uint64_t word = b ? atomic_load_explicit(&b->word, memory_order_acquire) : WF_BUF_NONE, taken = 0;      /* E1 */

	/* What happens to views in other processes is not told: it has to be looked at. */
	if (wf_unlikely(!wf_is_away(word) && lent(word) && wf_segments_shared())) {
		wf_share_collect();
		taken = wf_share_taken(b);
		word = atomic_load_explicit(&b->word, memory_order_acquire);                    /* E1 */
	}
	switch (word & WF_BUF_STATE) {
	case WF_BUF_SENDING:
		return WEFT_BUF_SENDING;
	case WF_BUF_SENT:
	case WF_BUF_AWAY:
		return WEFT_BUF_SENT;
	case WF_BUF_HELD:
	case WF_BUF_PUT:
		break;
	default:
		return weft_fail(-EINVAL, b ? "this buffer is in the pool" : "not a buffer of weft's");
	}
	if (!lent(word))
		wf_user_acquires(b);
	return lent_state(word, taken);
}

struct weft_buf *weft_buf_of(const void *mem)
{
	struct wf_buf *b = wf_space_buf_of(mem);
	uint64_t state;

	if (!b)
		return NULL;
	state = atomic_load_explicit(&b->word, memory_order_relaxed) & WF_BUF_STATE;
	return state == WF_BUF_NONE || state == WF_BUF_FREE || state == WF_BUF_AWAY ? NULL : &b->pub;
}
