/* hot.h - what every short send passes, in line: may it wait for company, by which line does it leave. With the trunk's lock, but for the last. */
#ifndef WF_WIRE_HOT_H
#define WF_WIRE_HOT_H

#include "base/atomic.h"
#include "base/clock.h"
#include "base/shield.h"
#include "peer/brief.h"
#include "wire/trunk.h"

#define WF_ROW 4u                       /* short sends one upon the other: more are likely */
#define WF_ROW_GAP 2                    /* us between two of them, or about */
#define WF_HELD_HEAD 64u                /* bytes of one beside its payload, about */
#define WF_HELD_TIME 20                 /* us, while more come */

/* [trunk.lock] When it is to be looked at next has changed: wf_trunks_by(t->wake). */
static inline bool wf_trunk_news_locked(struct wf_trunk *t)
{
	bool news = atomic_load_explicit(&t->wake, memory_order_relaxed) != t->remote.wake;

	if (wf_unlikely(news))
		atomic_store_explicit(&t->wake, t->remote.wake, memory_order_relaxed);
	return news;
}

/* Of those that wait already one more may, by the clock, at which is looked now. The lessee asks, too (join.h): the words it needs are changed under the lock. */
static inline bool wf_trunk_waits(struct wf_trunk *t)
{
	uint64_t now = wf_ticks();

	if (wf_unlikely(now - t->written > WF_HELD_TIME * t->tick_us))
		return false;
	atomic_store_explicit(&t->sent, now, memory_order_relaxed);
	return true;
}

/* Who sends many short ones in a row pays one system call for all of them: they wait until there are WF_HELD_MOST bytes or WF_HELD_TIME is over, which one of the next finds out (WF_UNCLOCKED), or their
 * sender waits for something (wf_trunks_flush), or a tenth of a millisecond is over, which who watches the rails finds out. One that comes alone does not wait, nor
 * does the first of a row, unless the two rows before were long: then it is likely the first of a third. If it is not, that was a tenth of a millisecond once, and the next one leaves at once. */
static inline bool wf_trunk_holds(struct wf_trunk *t, size_t len, uint64_t now)
{
	if (wf_likely(now - atomic_load_explicit(&t->sent, memory_order_relaxed) > WF_ROW_GAP * t->tick_us)) {
		bool again = t->rows;

		t->rows = t->row >= 2 * WF_ROW;
		t->row = 0;
		if (wf_likely(!again || !t->rows))
			return false;
		if (!t->held)
			t->written = now;       /* it waits from now on */
	}
	t->unclocked = 0;
	if ((++t->row < WF_ROW && !t->rows) || t->held + len > WF_HELD_MOST || now - t->written > WF_HELD_TIME * t->tick_us)
		return false;
	t->held += (uint32_t)len;
	atomic_store_explicit(&t->sent, now, memory_order_relaxed);
	return true;
}

/* [trunk.lock] Of the short messages that were read meanwhile the remote is told. */
static inline void wf_trunk_late_locked(struct wf_trunk *t, weft_time now)
{
	uint32_t n = wf_acquire32(&t->late.came) - atomic_load_explicit(&t->late.told, memory_order_relaxed);     /* J1; relaxed: written under the lock */

	if (wf_likely(!n))
		return;
	atomic_store_explicit(&t->late.told, atomic_load_explicit(&t->late.told, memory_order_relaxed) + n, memory_order_relaxed);
	wf_brief_told(&t->remote, &t->late.row, n, now);
}

/* [trunk.lock] @l is ours to write to. */
static inline struct wf_line *wf_trunk_taken_locked(struct wf_trunk *t, struct wf_line *l, uint64_t ticks, bool *ret_news)
{
	wf_add32(&l->users, 1);
	t->held = 0;
	t->written = ticks;
	*ret_news = wf_trunk_news_locked(t);
	return l;
}

/* [trunk.lock] The line by which plain messages leave, if there is nothing else to do; NULL: there is. */
static inline struct wf_line *wf_trunk_plain_locked(const struct wf_trunk *t, weft_time now)
{
	const struct wf_remote *r = &t->remote;
	const struct wf_lane *lane = r->out[WF_STREAM_PLAIN] ? r->out[WF_STREAM_PLAIN]->lane : NULL;

	return wf_likely(lane && !wf_remote_due(r, now)) ? t->lines[lane - r->lanes] : NULL;
}

/* [trunk.lock] As wf_trunk_take_locked, and @b is in it; NULL: nothing happened. */
static inline struct wf_line *wf_trunk_brisk_locked(struct wf_trunk *t, const struct wf_brisk *b, uint64_t ticks, bool *ret_news)
{
	weft_time now = wf_now_at(ticks);
	struct wf_line *l;

	wf_trunk_late_locked(t, now);
	l = wf_trunk_plain_locked(t, now);
	return wf_likely(l != NULL) && wf_line_brisk_locked(l, b, now) ? wf_trunk_taken_locked(t, l, ticks, ret_news) : NULL;
}

/* The same for one with a body: wf_line_body_taken and so on. */
static inline struct wf_line *wf_trunk_body_locked(struct wf_trunk *t, struct wf_rsend *s, uint64_t ticks, bool *ret_news)
{
	weft_time now = wf_now_at(ticks);
	struct wf_line *l;

	wf_trunk_late_locked(t, now);
	l = wf_trunk_plain_locked(t, now);
	return wf_likely(l != NULL) && wf_line_body_locked(l, s, now) ? wf_trunk_taken_locked(t, l, ticks, ret_news) : NULL;
}

/* [no lock] What the former answered, or wf_trunk_take_locked, is written to. */
static inline void wf_trunk_taken(struct wf_trunk *t, struct wf_line *l, bool news)
{
	if (wf_unlikely(!wf_line_flat_taken(l))) {
		wf_shield();
		wf_line_taken(l);
		wf_unshield();
	}
	wf_trunk_let_go(t, l, news);
}

#endif
