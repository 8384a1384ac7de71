/* line_again.h - a short message that leaves as the last one did, in line: what most sends are that somebody waits for. See line.h.
 *
 * The last record of a line lies where it was sealed (l->flat). One like it needs another payload, another place in its stream, and another checksum; all else that is asked is whether anything has come between, or
 * is due. If so nothing has happened, and depart.c goes about it from the beginning. It stands here, and not where lines write, as behind a system call each jump costs more than what it jumps over.
 */
#ifndef WF_WIRE_LINE_AGAIN_H
#define WF_WIRE_LINE_AGAIN_H

#include "wire/hot.h"

/* [trunk.lock, writing] Nothing is on its way there, and it is not over? relaxed: that it is not down orders nothing. */
static inline bool wf_line_idle_locked(const struct wf_line *l)
{
	return wf_likely(!atomic_load_explicit(&l->down, memory_order_relaxed) && l->of && l->said_at == l->said_n && l->iov_at == l->iovs && !l->filled);
}

/* [trunk.lock] Nobody writes there, and @b is as the message in the last record: it is put there in its place, and `writing` is held until wf_line_again_sent. False: nothing happened. */
static inline __attribute__((always_inline)) bool wf_line_again_locked(struct wf_line *l, const struct wf_brisk *b, weft_time now)
{
	const struct wf_brisk *m = &l->again.msg;
	uint64_t other = (m->tag ^ b->tag) | (m->context ^ b->context) | (m->to ^ b->to) | (m->from ^ b->from) | (m->index ^ b->index) | (m->len ^ b->len);

	if (wf_unlikely(other || !wf_trylock(&l->writing)))
		return false;
	if (wf_likely(wf_line_idle_locked(l) && l->again.frames) && wf_likely(wf_brief_again(&l->trunk->remote, l->of, b, l->flat + WF_RECORD_HEAD, l->again.frames - 16, l->again.last_to, now)))
		return true;
	wf_line_leave_locked(l);
	return false;
}

/* [trunk.lock] The line by which @b leaves as the last one did, at once, as it comes alone and nothing else is due; NULL: nothing happened. */
static inline __attribute__((always_inline)) struct wf_line *wf_trunk_again_locked(struct wf_trunk *t, const struct wf_brisk *b, uint64_t ticks, weft_time now)
{
	struct wf_line *l = t->again;

	if (wf_unlikely(!l || t->held || t->rows || t->row >= 2 * WF_ROW || ticks - atomic_load_explicit(&t->sent, memory_order_relaxed) <= WF_ROW_GAP * t->tick_us))
		return NULL;
	if (wf_unlikely(wf_remote_due(&t->remote, now) || !wf_line_again_locked(l, b, now)))
		return NULL;
	t->row = 0;
	t->written = ticks;
	return l;
}

/* [no lock] It is sealed and sent. */
static inline __attribute__((always_inline)) void wf_line_again_sent(struct wf_line *l)
{
	long n = wf_sealer_again(&l->seal, l->again.frames, 0, l->flat);
	ssize_t sent;

	l->iov[0] = (struct iovec){ l->flat, (size_t)n };
	sent = wf_likely(n > 0) ? wf_lane_send(l->rail, l->lane, &(struct weft_out){ .piece = l->iov, .pieces = 1 }) : n;
	wf_add32(&l->users, 1);         /* as long as `writing` is held it stays, too: line.c, alone */
	wf_line_again_over(l, n, sent);
}

#endif
