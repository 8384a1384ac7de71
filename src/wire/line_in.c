/* line_in.c - what a line reads: bytes become frames, told to the remote, and bodies, read to where they belong. See line.h.
 *
 * All of it in upcalls of the driver, from the one thread that polls the rail. A record of frames is opened where it lies and its acts are carried out before the next
 * one is looked at; a body is read straight to where the remote wants it, and opened there.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/shield.h"
#include "port/expect.h"
#include "port/self.h"
#include "wire/hot.h"
#include "wire/line.h"

#define LANDING_TIME (5 * WEFT_MS)
#define OPENED_LEAST (16u << 10)                /* of a body are opened at a time */

/* Readers of several rails; who polls the only one is alone. What was read before is told before. */
static inline void reading_lock(struct wf_trunk *t)
{
	if (wf_unlikely(t->remote.conf.rails > 1))
		wf_lock(&t->reading);
	else if (wf_unlikely(t->late.name))
		wf_line_late_over(t);
}

static inline void reading_unlock(struct wf_trunk *t)
{
	if (wf_unlikely(t->remote.conf.rails > 1))
		wf_unlock(&t->reading);
}

/* What was read may have left something to do: when all that is here has been read. */
static void settle(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	bool due, news;

	wf_trunk_lock(t);
	due = wf_remote_due(&t->remote, t->remote.now);
	news = !due && wf_trunk_news_locked(t);
	wf_unlock(&t->lock);
	l->due |= due;
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
}

void wf_line_see_to(struct wf_line *l)
{
	if (!l->due)
		return;
	l->due = false;
	wf_trunk_turn(l->trunk);
}

/* [reading, trunk.lock] What messages cost that were read is given back. */
static void credit_locked(struct wf_trunk *t)
{
	wf_arrive_credit_locked(t, t->costs);
	t->costs = 0;
}

/* [reading] All acts of a record are done: what that has left, if it is more than can wait. What the remote has to do, in @due and @news. */
static WF_SLOW void stir(struct wf_trunk *t, weft_time now, bool *due, bool *news)
{
	t->stirred = false;
	wf_trunk_lock(t);
	credit_locked(t);
	*due = wf_remote_due(&t->remote, now);
	*news |= wf_trunk_news_locked(t);
	wf_unlock(&t->lock);
}

/* [reader] A record of short messages, as most are: told to the remote, and delivered. False: it is another, and nothing happened. */
WF_HOT static bool messages(struct wf_line *l, const void *bytes, uint32_t len)
{
	struct wf_trunk *t = l->trunk;
	weft_time now = wf_now_about();
	bool short_ones, due = false, news = false;
	struct wf_row row;

	reading_lock(t);
	wf_trunk_lock(t);
	if (wf_unlikely(t->costs > t->remote.conf.window / 16))          /* of the last times: as long as it is little it can wait */
		credit_locked(t);
	short_ones = wf_remote_record_row(&t->remote, l->of, bytes, len, now, &row);
	if (wf_likely(short_ones)) {
		due = wf_remote_due(&t->remote, now);
		news = wf_trunk_news_locked(t);
	}
	wf_unlock(&t->lock);
	if (wf_likely(short_ones)) {
		wf_arrive_row(t, &row);
		if (row.count == 1 && wf_self.expects && wf_self.expects->came)
			wf_line_liked(l, (const uint8_t *)bytes - WF_RECORD_HEAD, len);
		if (wf_unlikely(t->stirred || t->costs > t->remote.conf.window / 8))
			stir(t, now, &due, &news);
	}
	reading_unlock(t);
	l->due |= due;
	if (wf_unlikely(news))
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
	return short_ones;
}

/* [reader] The frames of a record, with its body if that is there: told to the remote, and done. A body that it does not take along is left, and is @w's no more, unless it was
 * @asked about that before: then it is wrong. */
static __attribute__((noinline)) int frames(struct wf_line *l, struct wf_whole *w, bool asked)
{
	struct wf_trunk *t = l->trunk;
	weft_time now = wf_now_about();
	struct wf_acts acts;
	bool due, news = false;
	int r;

	reading_lock(t);
	do {
		acts.n = 0;
		wf_trunk_lock(t);
		if (t->costs)
			credit_locked(t);
		r = 0;
		if ((w->body_len && !w->body) || !wf_remote_record_brisk(&t->remote, l->of, w, now, &acts, false)) {
			r = w->body && asked ? -ECONNABORTED : wf_remote_record(&t->remote, l->of, w->frames, w->len, w->body_len, now, &acts);
			w->body = NULL;
		}
		l->led = wf_remote_leads(l->of);
		due = wf_remote_due(&t->remote, now);
		news |= wf_trunk_news_locked(t);                /* an acknowledgement, in a while; whoever asks has to tell it */
		wf_unlock(&t->lock);
		wf_trunk_do(t, &acts, l);
		for (int i = 0; i < acts.n; i++)
			t->stirred |= acts.a[i].kind != WF_ACT_MSG && acts.a[i].kind != WF_ACT_SENT;
	} while (r == 1);
	if (wf_unlikely(t->stirred || t->costs > t->remote.conf.window / 8))
		stir(t, now, &due, &news);
	reading_unlock(t);
	l->due |= due;
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
	return r;
}

/* What is encrypted is opened while the rest is on its way: else all of it would be read first, and the sender be done before the reader begins. 0: all of it. */
static size_t least(const struct wf_line *l)
{
	size_t n = 0;

	if (l->open.end.mode != WF_MODE_FULL)
		return 0;
	for (uint32_t i = 0; i < l->pieces; i++)
		n += l->into[i].iov_len;
	return n < OPENED_LEAST ? n : OPENED_LEAST;
}

/* [trunk.lock] Lines that are to leave memory which they read into, and that @l waits for: kept until they are let go. How many. */
static unsigned leaving_locked(struct wf_line *l, struct wf_line **ret_lines, uint32_t *ret_slices)
{
	struct wf_trunk *t = l->trunk;
	unsigned n = 0;

	for (unsigned i = 0; i < WF_LANES; i++) {
		struct wf_line *o = t->lines[i];

		if (!o || o == l || !wf_remote_leaves(&t->remote.lanes[i]))
			continue;
		atomic_fetch_add_explicit(&o->users, 1, memory_order_relaxed);
		ret_lines[n] = o;
		ret_slices[n++] = o->slice;
	}
	return n;
}

/* [reader, no lock] They are made to leave: a line that is silent would not for ever. One thread at a time: two that wait for each other to leave an upcall would do so for good; who is second does not wait.
 * Edges   E1  evicted, before need_drop -> acquire (placed): need_drop waits for an upcall that runs, and so who comes later sees it. */
static void evict(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	struct wf_line *others[WF_LANES];
	uint32_t slices[WF_LANES];
	unsigned n;

	if (!wf_trylock(&t->evicting))
		return;
	wf_trunk_lock(t);
	n = leaving_locked(l, others, slices);
	wf_unlock(&t->lock);
	for (unsigned i = 0; i < n; i++) {
		struct wf_line *o = others[i];

		atomic_store_explicit(&o->evicted, true, memory_order_release);         /* E1 */
		wf_lane_need_drop(o->rail, o->lane);
		wf_trunk_lock(t);
		if (o->slice == slices[i])
			wf_remote_placed(&t->remote, o->of, 0);
		else
			atomic_store_explicit(&o->evicted, false, memory_order_relaxed);        /* it has left by itself, and may be elsewhere by now */
		wf_unlock(&t->lock);
		atomic_fetch_sub_explicit(&o->users, 1, memory_order_release);
		l->due = true;          /* a landing that waited for that may be closed now */
	}
	wf_unlock(&t->evicting);
}

/* [reader] Where the body goes on; the driver is told by @need. Bytes nobody wants go by wf_line_bytes.
 * Another line may be there yet: then it is made to leave. Where that takes too long this line ends instead, and what it carried comes again by the next one. */
static int body_goes(struct wf_line *l, struct weft_need *need)
{
	struct wf_trunk *t = l->trunk;
	weft_time since = 0;
	int n;

	for (;;) {
		wf_trunk_lock(t);
		n = wf_remote_place(&t->remote, l->of, l->into, WEFT_NEED_PIECES);
		l->slice += n > 0;
		wf_unlock(&t->lock);
		if (n != -EAGAIN)
			break;
		evict(l);
		if (!since)
			since = wf_now();
		else if (wf_now() - since > LANDING_TIME)
			return weft_fail(-EBUSY, "another lane does not leave the place of this one's bytes");
		sched_yield();
	}
	if (n < 0)
		return n;
	l->pieces = (uint32_t)n;
	memcpy(need->piece, l->into, (size_t)n * sizeof(l->into[0]));
	need->pieces = (uint32_t)n;
	need->min = least(l);
	if (n == 0)
		need->want = 1;
	return 0;
}

void wf_line_body_came(struct wf_line *l, size_t n)
{
	l->pieces = 0;
	wf_trunk_lock(l->trunk);
	wf_remote_placed(&l->trunk->remote, l->of, (uint32_t)n);
	l->slice++;
	wf_unlock(&l->trunk->lock);
	l->body_left -= n;
}

/* [reader] All of the record is here, and the body at @body a message's: it need not be placed anywhere, but goes the way of the short ones. */
static bool message_whole(struct wf_line *l, struct wf_whole *w, const uint8_t *body)
{
	struct wf_acts acts;
	bool so;

	w->body = body;
	wf_trunk_lock(l->trunk);
	so = wf_remote_record_brisk(&l->trunk->remote, l->of, w, 0, &acts, true);
	wf_unlock(&l->trunk->lock);
	if (!so)
		w->body = NULL;
	return so;
}

/* [reader] The body is the beginning of a message that nobody has matched. One who waits here may be about to: what ended just now was perhaps what it waited for. */
static bool may_wait(struct wf_line *l)
{
	if (!l->led)
		return false;
	wf_trunk_lock(l->trunk);
	l->led = wf_remote_leads(l->of);        /* since its announcement was told */
	wf_unlock(&l->trunk->lock);
	return l->led;
}

/* [reader] A record that begins at @p, and whose frames, opened, took @took of @n bytes, is not one of short messages: how many bytes it took. */
static ssize_t opened(struct wf_line *l, uint8_t *p, size_t n, size_t took, struct wf_whole *w, struct weft_need *need)
{
	size_t body = w->body_len, end = wf_record_body_tail(l->open.end.mode);
	int r = 0;

	if (body)
		wf_line_bodied(l, w, took);
	if (body && n - took >= body + end) {
		bool sure = l->open.end.mode == WF_MODE_AUTH;           /* nothing is to be opened or checked first */

		if (sure)
			w->body = p + took;
		else if (message_whole(l, w, p + took))
			r = wf_opener_body(&l->open, p + took, body);
		if (r == 0)
			r = frames(l, w, !sure);
		if (r == 0 && w->body && sure)
			r = wf_opener_body(&l->open, p + took, body);
		if (r < 0 || w->body)
			return r < 0 ? r : (ssize_t)(took + body + end);
	} else {
		r = frames(l, w, false);
	}
	if (r == 0 && body) {
		l->body_left = body;
		if (n - took < body + end && may_wait(l)) {     /* more is to come on this lane: it is looked at again */
			l->stage = WF_LINE_LED;
			need->later = 1;
		} else {
			l->stage = WF_LINE_BODY;
			r = body_goes(l, need);
		}
	}
	return r < 0 ? r : (ssize_t)took;
}

/* [reader] @n bytes of a record at @p, whose body is not all there: does this thread wait for a message that it might be, without having said so? Then it is to do that first. */
static bool to_be_posted(const uint8_t *p, size_t n)
{
	struct wf_expect *x = wf_self.expects;

	if (wf_likely(!x || x->room <= WF_EXPECT_MOST) || x->post || n < WF_RECORD_HEAD)
		return false;
	if (!wf_get32(p + 4) || wf_get32(p + 4) > WF_EXPECT_LONGEST || n >= WF_RECORD_HEAD + 4 + (size_t)wf_get32(p) + wf_get32(p + 4))
		return false;
	x->post = true;
	return true;
}

/* [reader] A record's beginning at @p: how many bytes it took; 0: not all of it is there; need.want says how much is. */
static inline ssize_t record(struct wf_line *l, uint8_t *p, size_t n, struct weft_need *need)
{
	size_t length, body;
	struct wf_whole w;
	long took;
	ssize_t r;

	if (wf_unlikely(to_be_posted(p, n))) {
		need->later = 1;
		return 0;
	}
	took = wf_opener_frames(&l->open, p, n, &length, &body);
	if (wf_unlikely(took <= 0)) {
		if (took == 0)
			need->want = n < WF_RECORD_HEAD ? WF_RECORD_HEAD : WF_RECORD_HEAD + wf_get32(p) + wf_record_tail(l->open.end.mode);
		return took;
	}
	if (wf_likely(!body) && wf_likely(messages(l, p + WF_RECORD_HEAD, (uint32_t)length)))
		return took;
	w = (struct wf_whole){ .frames = p + WF_RECORD_HEAD, .len = (uint32_t)length, .body_len = (uint32_t)body };
	wf_shield();
	r = opened(l, p, n, (size_t)took, &w, need);
	wf_unshield();
	return r;
}

/* [reader] What is left of the body and cannot be placed: opened and forgotten. */
static ssize_t body_dropped(struct wf_line *l, uint8_t *p, size_t n)
{
	size_t len = n < l->body_left ? n : l->body_left;
	int r = wf_opener_piece(&l->open, p, p, len);

	if (r < 0)
		return r;
	l->body_left -= len;
	return (ssize_t)len;
}

/* [reader] The end of a body: does its tag hold? */
static ssize_t tail(struct wf_line *l, const uint8_t *p, size_t n, struct weft_need *need)
{
	size_t len = wf_record_body_tail(l->open.end.mode);
	struct wf_trunk *t = l->trunk;
	struct wf_acts acts = { .n = 0 };
	int r;

	if (n < len) {
		need->want = len;
		return 0;
	}
	r = wf_opener_end(&l->open, p);
	/* In one go, so that nobody else gets the message that is whole now: it is to be delivered before what follows it is read. */
	reading_lock(t);
	wf_trunk_lock(t);
	wf_remote_body(&t->remote, l->of, r == 0, wf_now());
	wf_remote_acts(&t->remote, wf_now(), &acts);
	wf_unlock(&t->lock);
	wf_trunk_do(t, &acts, l);
	reading_unlock(t);
	l->stage = WF_LINE_RECORDS;
	settle(l);
	return r < 0 ? r : (ssize_t)len;
}

/* [reader] All bytes of a body are there. */
static int body_whole(struct wf_line *l)
{
	struct weft_need none;

	l->stage = WF_LINE_TAIL;
	return wf_record_body_tail(l->open.end.mode) ? 0 : (int)tail(l, NULL, 0, &none);
}

/* [reader, shielded] As wf_line_records, without what follows from it. */
static WF_SLOW ssize_t read_bytes(struct wf_line *l, uint8_t *p, size_t len, struct weft_need *need)
{
	size_t at = 0;

	while (at < len && !need->pieces && !need->want && !need->later) {
		ssize_t n = 0;
		int r = 0;

		switch (l->stage) {
		case WF_LINE_SHAKES:
			n = (ssize_t)wf_handshake_input(l->shake, p + at, len - at);
			r = wf_line_shake(l);
			if (r == 0 && n == 0 && l->stage == WF_LINE_SHAKES)
				return weft_fail(-EPROTO, "bytes before it was their turn");
			break;
		case WF_LINE_RECORDS:
			n = record(l, p + at, len - at, need);
			break;
		case WF_LINE_LED:
			l->stage = WF_LINE_BODY;
			r = body_goes(l, need);
			need->want = 0;         /* what is here is dropped, if need be */
			break;
		case WF_LINE_BODY:
			n = body_dropped(l, p + at, len - at);
			if (n >= 0)
				r = l->body_left ? body_goes(l, need) : body_whole(l);
			break;
		case WF_LINE_TAIL:
			n = tail(l, p + at, len - at, need);
			break;
		case WF_LINE_OVER:
			return -ECONNABORTED;
		}
		if (n < 0 || r < 0)
			return n < 0 ? n : r;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

WF_HOT ssize_t wf_line_records(struct wf_line *l, uint8_t *p, size_t len, struct weft_need *need)
{
	size_t at = 0;
	ssize_t n = 0;

	/* Records, as mostly, and nothing to be read elsewhere. */
	while (at < len && l->stage == WF_LINE_RECORDS && !(need->pieces | need->want | need->later)) {
		n = record(l, p + at, len - at, need);
		if (wf_unlikely(n <= 0))
			break;
		at += (size_t)n;
	}
	if (wf_unlikely(n >= 0 && at < len && !(need->pieces | need->want | need->later))) {
		wf_shield();
		n = read_bytes(l, p + at, len - at, need);
		wf_unshield();
		at += n < 0 ? 0 : (size_t)n;
	}
	wf_line_see_to(l);
	return n < 0 ? n : (ssize_t)at;
}

int wf_line_placed(void *cookie, size_t got, struct weft_need *need)
{
	struct wf_line *l = cookie;
	size_t left = got;
	int r = 0;

	if (wf_unlikely(atomic_load_explicit(&l->evicted, memory_order_acquire))) {      /* E1 */
		l->pieces = 0;
		return weft_fail(-ECONNABORTED, "another lane has brought what this one had begun to");
	}
	wf_shield();
	for (uint32_t i = 0; i < l->pieces && left && r == 0; i++) {
		size_t n = l->into[i].iov_len < left ? l->into[i].iov_len : left;

		r = wf_opener_piece(&l->open, l->into[i].iov_base, l->into[i].iov_base, n);
		left -= n;
	}
	wf_line_body_came(l, got);
	if (r == 0)
		r = l->body_left ? body_goes(l, need) : body_whole(l);
	wf_line_see_to(l);
	wf_unshield();
	return r;
}
