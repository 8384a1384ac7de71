/* depart_body.c - a message that goes unasked with its payload as a body, from a call that waits, by the short way.
 *
 * Nobody is told of its end: it is written from where it lies, copied, and its sender is done, as by depart.c, but without a request. The copy's memory is that of the last one that
 * was acknowledged, as the answer to it mostly does that: so two that talk to each other need neither allocate nor lock anything but the trunk.
 *
 * If not all of it was taken by the rail the copy is made first, and the rest is written from there.
 */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/shield.h"
#include "port/context.h"
#include "wire/depart.h"
#include "wire/hot.h"

#define NAP 50                  /* us */

/* [trunk.lock] One that is over and can be used again for @len bytes; NULL: none. One that has less room is over for good. */
static struct wf_departure *again_locked(struct wf_trunk *t, size_t len, struct wf_departure **ret_small)
{
	struct wf_rsend *s = wf_remote_spent(&t->remote);
	struct wf_departure *d = s ? wf_of(s, struct wf_departure, s) : NULL;

	if (wf_likely(d && d->room >= len))
		return d;
	*ret_small = d;
	return NULL;
}

static void forget(struct wf_departure *d)
{
	wf_lock(&wf_user_lock);
	wf_departure_put_locked(d);
	wf_unlock(&wf_user_lock);
}

static WF_SLOW struct wf_departure *make(size_t len)
{
	struct wf_departure *d;

	wf_lock(&wf_user_lock);
	d = wf_departure_get_locked();
	wf_unlock(&wf_user_lock);
	if (!d)
		return NULL;
	d->kind = WF_POOLED;
	d->room = 0;
	d->flat = NULL;
	if (wf_buf_alloc(len, &d->flat) < 0) {
		d->flat = NULL;
		forget(d);
		return NULL;
	}
	d->room = len;
	return d;
}

static inline void describe(struct wf_departure *d, struct wf_trunk *t, const struct weft_port *from, uint32_t to, uint64_t tag, const void *data, size_t len)
{
	struct wf_rsend *s = &d->s;

	d->req = NULL;
	d->trunk = t;
	d->data = data;
	s->to = to;
	s->from = (uint32_t)atomic_load_explicit(&from->id, memory_order_relaxed);
	s->index = from->index;
	s->flags = WF_SEND_IDLE;
	s->prio = 0;
	s->rail = 0;
	s->tag = tag;
	s->context = atomic_load_explicit(&from->context, memory_order_relaxed);
	s->len = len;
	s->head = NULL;
	s->head_len = 0;
	s->user = d;
}

/* [trunk.lock] Nobody writes from the sender's memory now? Then from the copy from here on. */
static inline bool moved_locked(struct wf_departure *d)
{
	if (wf_unlikely(d->s.pins > 1))
		return false;
	d->data = d->flat->data;
	return true;
}

/* Its lane broke while we were at it, and another one writes it again, from memory that its sender is about to have back: that one ends soon, or its lane does. */
static WF_SLOW void wait_for_others(struct wf_trunk *t, struct wf_departure *d)
{
	bool moved = false;

	wf_shield();
	while (!moved) {
		nanosleep(&(struct timespec){ .tv_nsec = NAP * 1000 }, NULL);
		wf_trunk_lock(t);
		moved = moved_locked(d);
		wf_unlock(&t->lock);
	}
	wf_unshield();
}

/* All of it was written, or will be written again: from now on from the copy. */
static inline void keep(struct wf_trunk *t, struct wf_departure *d)
{
	memcpy(d->flat->data, d->data, d->s.len);
	wf_trunk_lock(t);
	if (wf_unlikely(!moved_locked(d))) {
		wf_unlock(&t->lock);
		wait_for_others(t, d);
		wf_trunk_lock(t);
	}
	wf_remote_kept(&t->remote, &d->s);      /* it may be over from here on */
	wf_unlock(&t->lock);
}

/* [line.writing] The rail took only some of it. */
static WF_SLOW void keep_rest(struct wf_trunk *t, struct wf_departure *d, struct wf_line *l)
{
	bool moved;

	memcpy(d->flat->data, d->data, d->s.len);
	wf_trunk_lock(t);
	moved = moved_locked(d);
	wf_unlock(&t->lock);
	if (!moved)
		wait_for_others(t, d);
	wf_line_body_rest(l, &d->s, d->flat->data);
}

WF_HOT bool wf_depart_body(struct wf_trunk *t, struct weft_port *from, uint32_t to, uint64_t tag, const void *data, size_t len)
{
	struct wf_departure *d, *small = NULL;
	struct wf_line *line = NULL;
	bool news = false;
	int r;

	wf_trunk_lock(t);
	d = again_locked(t, len, &small);
	if (wf_unlikely(!d)) {
		bool idle = wf_trunk_idle_locked(t);

		wf_unlock(&t->lock);
		if (small)
			forget(small);
		d = idle ? make(len) : NULL;
		if (!d)
			return false;
		wf_trunk_lock(t);
	}
	describe(d, t, from, to, tag, data, len);
	line = wf_trunk_body_locked(t, &d->s, wf_ticks(), &news);
	wf_unlock(&t->lock);
	if (wf_unlikely(!line)) {
		forget(d);
		return false;
	}
	r = wf_line_body_taken(line, data, len);
	if (wf_unlikely(r == 0))
		keep_rest(t, d, line);
	wf_line_body_over(line, r);
	wf_trunk_let_go(t, line, news);
	if (wf_likely(r != 0))
		keep(t, d);
	return true;
}
