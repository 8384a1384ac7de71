/* buf.c - who has a buffer: the public calls, and lending and handing over for the core. See buf.h.
 *
 * Shape   One word per handle says everything. Its low bits are a state; above them three counts of
 *         views that others have of it, by how far each has come.
 *
 *           FREE --get--> HELD --send--> SENDING --> SENT --delivered--> HELD
 *            ^             | put                                          |
 *            +-------------+------ put while lent: PUT, FREE with the last view
 *
 *         A view is a handle without memory of its own. It goes through the same states; when it
 *         becomes free its buffer's count goes down. A view may be lent again: views form a tree.
 *         Whoever changes the state does it by compare-and-swap where misuse may race with it (put,
 *         send), so of two puts at once one succeeds. Where the word is one thread's by right (a free buffer
 *         taken out of the pool, a carry on its way) it is stored.
 * Edges   E1  a view's end (release, in view_end) -> whoever finds the buffer idle or its last view gone
 *             (acquire, in weft_buf_state, buf_drop, send_begin, view_end): the reader's loads of the
 *             memory come before the next writer's stores.
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

enum { NONE, FREE, HELD, SENDING, SENT, PUT, STATE_MASK = 15 };
enum { PHASE_SENDING, PHASE_SENT, PHASE_WITH, COUNT_BITS = 20 };

#define COUNT_MAX (((uint64_t)1 << COUNT_BITS) - 1)

static uint64_t one(unsigned phase)
{
	return (uint64_t)1 << (4 + COUNT_BITS * phase);
}

static uint64_t count(uint64_t word, unsigned phase)
{
	return word >> (4 + COUNT_BITS * phase) & COUNT_MAX;
}

static uint64_t lent(uint64_t word)
{
	return count(word, PHASE_SENDING) + count(word, PHASE_SENT) + count(word, PHASE_WITH);
}

static struct wf_buf *inner(struct weft_buf *buf)
{
	return (struct wf_buf *)(void *)buf;
}

static size_t room(const struct wf_buf *b)
{
	return b->class ? (size_t)1 << b->class : b->view.room;
}

static void state_set(struct wf_buf *b, uint64_t state)
{
	atomic_store_explicit(&b->word, state, memory_order_relaxed);
}

/* From *@word to @next; if it is no longer *@word, that is told instead. */
static inline bool word_swap(struct wf_buf *b, uint64_t *word, uint64_t next, memory_order order)
{
	return atomic_compare_exchange_strong_explicit(&b->word, word, next, order, memory_order_relaxed);
}

int wf_buf_alloc(size_t len, struct weft_buf **ret_buf)
{
	struct wf_buf *b;
	int r;

	if (wf_unlikely(len >= atomic_load_explicit(&wf_pool_bound, memory_order_relaxed)))
		return wf_pool_refuse(len);
	r = wf_pool_take(wf_pool_class(len), &b);
	if (wf_unlikely(r < 0))
		return r;
	b->pub.data = b->home;
	b->pub.len = len;
	b->pub.cap = (size_t)1 << b->class;
	state_set(b, HELD);
	wf_unpoison(b->home, b->pub.cap);
	*ret_buf = &b->pub;
	return 0;
}

/* Takes @phase's count of one view off @b. True: it was put meanwhile and this was the last. */
static bool view_end(struct wf_buf *b, unsigned phase)
{
	uint64_t w;

	wf_user_releases(b);
	w = atomic_fetch_sub_explicit(&b->word, one(phase), memory_order_acq_rel);      /* E1, E2 */
	if (w - one(phase) != PUT)
		return false;
	wf_user_acquires(b);
	state_set(b, FREE);             /* a put, unlent buffer is nobody's but ours */
	return true;
}

static inline void memory_home(struct wf_buf *b)
{
	wf_poison(b->home, (size_t)1 << b->class);
	wf_pool_home(b);
}

/* View @v has ended, and with it, perhaps, what it was a view of. Kept out of the way of plain buffers. */
static __attribute__((noinline)) void view_home(struct wf_buf *v)
{
	while (!v->class) {
		struct wf_buf *of = v->view.of;
		unsigned phase = v->phase;

		wf_depot_put(WF_DEPOT_HANDLE, &v->link);
		if (!view_end(of, phase))
			return;
		v = of;
	}
	memory_home(v);
}

/* @b is free by its word: its memory goes to the pool, or back to the buffer it is a view of. */
static inline void buf_home(struct wf_buf *b)
{
	if (wf_likely(b->class))
		memory_home(b);
	else
		view_home(b);
}

static int drop_refuse(uint64_t word)
{
	switch (word & STATE_MASK) {
	case PUT:
		return weft_fail(-EBUSY, "this buffer was put before; others still have it");
	case SENDING:
	case SENT:
		return weft_fail(-EBUSY, "this buffer is being sent");
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
		if ((word & STATE_MASK) != HELD)
			return drop_refuse(word);
		next = word == HELD ? FREE : word - HELD + PUT;         /* views may end while we try */
	} while (!word_swap(b, &word, next, memory_order_acq_rel));     /* E1, E2 */
	if (next == FREE) {
		wf_user_acquires(b);
		buf_home(b);
	}
	return 0;
}

/* The holder is done with @b. */
static inline int buf_drop(struct wf_buf *b)
{
	uint64_t word = HELD;

	if (wf_unlikely(!word_swap(b, &word, FREE, memory_order_acquire)))      /* E1 */
		return drop_slow(b, word);
	wf_user_acquires(b);
	buf_home(b);
	return 0;
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
	switch (word & STATE_MASK) {
	case HELD:
		break;
	case PUT:
		return weft_fail(-EBUSY, "this buffer was put before; others still have it");
	case SENDING:
	case SENT:
		return weft_fail(-EBUSY, "this buffer is being sent already");
	default:
		return weft_fail(-EINVAL, "this buffer is in the pool");
	}
	if (!keep && word != HELD)
		return weft_fail(-EBUSY, "this buffer is lent: only WEFT_KEEP may send it");
	if (b->pub.len > room(b))
		return weft_fail(-EINVAL, "a length of %zu in a buffer of %zu", b->pub.len, room(b));
	if (b->pub.data != b->home)
		return weft_fail(-EINVAL, "the data pointer of a buffer was changed");
	if (keep && lent(word) >= COUNT_MAX)
		return weft_fail(-EAGAIN, "this buffer is lent %llu times", (unsigned long long)COUNT_MAX);
	return 0;
}

/* @b is counted as lent once more; the view that travels for it. */
static int view_new(struct wf_buf *b, struct weft_buf **ret_carry)
{
	struct wf_link *l;
	struct wf_buf *v;
	int r = wf_depot_get(WF_DEPOT_HANDLE, &l);

	if (r < 0) {
		view_end(b, PHASE_SENDING);
		return weft_fail(r, "no memory to lend a buffer");
	}
	v = wf_pool_buf(l);
	v->view.of = b;
	v->view.room = b->pub.len;
	v->home = b->home;
	v->class = 0;
	v->phase = PHASE_SENDING;
	v->pub.data = b->home;
	v->pub.len = v->pub.cap = b->pub.len;
	state_set(v, SENDING);
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
		next = keep ? word + one(PHASE_SENDING) : SENDING;
	} while (!word_swap(b, &word, next, memory_order_acquire));     /* E1 */
	wf_user_acquires(b);
	if (keep)
		return view_new(b, ret_carry);
	b->pub.cap = room(b);           /* weft's to say, whatever its holder wrote there */
	*ret_carry = &b->pub;
	return 0;
}

/* @v's buffer counts it by @phase from now on. Relaxed: only a view's end frees the memory. */
static void view_move(struct wf_buf *v, unsigned phase)
{
	atomic_fetch_add_explicit(&v->view.of->word, one(phase) - one(v->phase), memory_order_relaxed);
	v->phase = (uint8_t)phase;
}

struct weft_buf *wf_buf_send_undo(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	/* A view that had been with a receiver before stays his. */
	if (b->class || b->phase == PHASE_WITH) {
		state_set(b, HELD);
		return carry;
	}
	state_set(b, FREE);
	buf_home(b);
	return NULL;
}

void wf_buf_sent(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	state_set(b, SENT);
	if (!b->class && b->phase == PHASE_SENDING)
		view_move(b, PHASE_SENT);
}

void wf_buf_delivered(struct weft_buf *carry)
{
	struct wf_buf *b = inner(carry);

	state_set(b, HELD);
	if (!b->class && b->phase != PHASE_WITH)
		view_move(b, PHASE_WITH);
}

bool wf_buf_is_shared(const struct weft_buf *carry)
{
	return !((const struct wf_buf *)(const void *)carry)->class;
}

int weft_buf_get(size_t len, int rail, struct weft_buf **ret_buf)
{
	if (wf_unlikely(!ret_buf))
		return weft_fail(-EINVAL, "nowhere to put the buffer");
	if (wf_unlikely(rail != WEFT_RAIL_ANY && rail != WEFT_RAIL_FASTEST))
		return weft_fail(-EOPNOTSUPP, "buffers of rail %d are not served yet", rail);
	return wf_buf_alloc(len, ret_buf);
}

int weft_buf_put(struct weft_buf *buf)
{
	struct wf_buf *b;

	if (!buf)
		return 0;
	b = wf_space_handle(buf);
	if (wf_unlikely(!b))
		return weft_fail(-EINVAL, "not a buffer of weft's");
	return buf_drop(b);
}

int weft_buf_state(const struct weft_buf *buf)
{
	struct wf_buf *b = wf_space_handle(buf);
	uint64_t word = b ? atomic_load_explicit(&b->word, memory_order_acquire) : NONE;        /* E1 */

	switch (word & STATE_MASK) {
	case SENDING:
		return WEFT_BUF_SENDING;
	case SENT:
		return WEFT_BUF_SENT;
	case HELD:
	case PUT:
		break;
	default:
		return weft_fail(-EINVAL, b ? "this buffer is in the pool" : "not a buffer of weft's");
	}
	/* Lent several times: as far as the slowest. */
	if (count(word, PHASE_SENDING))
		return WEFT_BUF_SENDING;
	if (count(word, PHASE_SENT))
		return WEFT_BUF_SENT;
	if (count(word, PHASE_WITH))
		return WEFT_BUF_WITH_RECEIVER;
	wf_user_acquires(b);
	return WEFT_BUF_IDLE;
}

struct weft_buf *weft_buf_of(const void *mem)
{
	struct wf_buf *b = wf_space_buf_of(mem);
	uint64_t state;

	if (!b)
		return NULL;
	state = atomic_load_explicit(&b->word, memory_order_relaxed) & STATE_MASK;
	return state == NONE || state == FREE ? NULL : &b->pub;
}
