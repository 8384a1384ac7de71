/* line_ahead.c - a body that is read to where it is wanted before it is known whose it is. See line.h.
 *
 * Who spins for a message at its own port and looks at the rails itself has memory for it, and nobody else writes there (port/expect.h). Where the last two records of a line were
 * alike, one message with a body, the next one likely is, too: so the driver is asked to read what comes behind as many bytes as their heads had straight there, in one call. If it is
 * that message all is done. If not its bytes go to where the driver would have read them, the memory gets back what it had, and all takes its usual way; then nothing is guessed
 * until more of them are alike again.
 *
 * Nothing counts before its checksum was looked at; until then the bytes are in memory that its owner has lent, and is told of only if they stay.
 */
#include <string.h>

#include "base/clock.h"
#include "peer/brief_body.h"
#include "port/expect.h"
#include "port/self.h"
#include "wire/hot.h"
#include "wire/line.h"

#define ALIKE_LEAST 1u          /* records like the one before */
#define ALIKE_MOST 64u          /* the same behind guesses that were wrong: twice as many each time */
#define RIGHT 16u               /* guesses that make up for a wrong one */

/* Nothing is guessed until some are alike again. */
static void unsure(struct wf_line *l)
{
	l->guess.sure = false;
	l->guess.step = 0;
	l->guess.alike = 0;
	wf_expect_likely(0);
}

void wf_line_bodied(struct wf_line *l, const struct wf_whole *w, size_t front)
{
	struct wf_brisk m;
	bool alike = l->guess.front == front && l->guess.body == w->body_len && wf_remote_body_where(w, &m);

	l->guess.front = (uint32_t)front;
	l->guess.body = w->body_len;
	if (!alike || l->open.end.mode != WF_MODE_AUTH || w->body_len > WF_EXPECT_LONGEST || l->trunk->remote.conf.rails > 1) {
		unsure(l);
		return;
	}
	if (++l->guess.alike <= l->guess.wanted)
		return;
	l->guess.sure = true;
	wf_expect_likely(w->body_len);
}

WF_HOT size_t wf_line_ahead(void *cookie, struct iovec *ret_piece)
{
	const struct wf_line *l = cookie;
	struct wf_expect *x = wf_self.expects;

	if (x && wf_unlikely(x->meant != l->like.name) && l->like.len && wf_expect_meant(x, &l->like.guest))
		x->meant = l->like.name;
	if (wf_likely(!l->guess.sure || !x || l->stage != WF_LINE_RECORDS) || !wf_expect_lends(x, l->guess.body))
		return 0;
	*ret_piece = (struct iovec){ x->data, l->guess.body };
	return l->guess.front;
}

/* [inside, reader] What is told of @w, the record that was guessed: to the remote, and to who expects it. @where: of its frames, the message; NULL: they are as the last one's. False: nothing
 * happened. */
static inline __attribute__((always_inline)) bool told_locked(struct wf_line *l, struct wf_expect *x, const struct wf_whole *w, const unsigned char *where, const struct wf_guest *g, bool *ret_news)
{
	struct wf_trunk *t = l->trunk;
	weft_time now = wf_now_about();
	struct wf_brief b;
	bool so;

	if (wf_unlikely(!wf_expect_first_locked(x->at)))
		return false;
	wf_trunk_lock(t);
	if (!where) {
		so = wf_body_one(&t->remote, l->of, w->frames, l->guess.step, w->body_len, now);
	} else {
		so = wf_remote_body_looked(&t->remote, l->of, w, where, &b);
		if (so)
			wf_remote_body_told(&t->remote, l->of, &b, w->body_len, now);
	}
	if (wf_likely(so)) {
		t->costs += wf_credit_cost(w->body_len);
		if (wf_unlikely(t->costs > t->remote.conf.window / 16)) {
			wf_arrive_credit_locked(t, t->costs);
			t->costs = 0;
		}
		l->due |= wf_remote_due(&t->remote, now);
		*ret_news = wf_trunk_news_locked(t);
	}
	wf_unlock(&t->lock);
	if (wf_unlikely(!so))
		return false;
	wf_opener_passed(&l->open, w->body_len);
	wf_expect_told_locked(x, g);
	return true;
}

/* [reader] The same where nobody is inside yet. */
static inline __attribute__((always_inline)) bool told(struct wf_line *l, struct wf_expect *x, const struct wf_whole *w, const unsigned char *where, const struct wf_guest *g)
{
	bool so, news = false;

	if (wf_unlikely(l->trunk->late.name))
		wf_line_late_over(l->trunk);
	wf_door_enter_owner(&x->at->door);
	so = told_locked(l, x, w, where, g, &news);
	wf_door_leave_owner(&x->at->door);
	if (wf_unlikely(news))
		wf_trunks_by(atomic_load_explicit(&l->trunk->wake, memory_order_relaxed));
	return wf_likely(so);
}

/* [reader] Are the frames of the record at @p as those of the last one, but for what differs each time? And is what was expected then expected now? */
static inline bool like_last(const struct wf_line *l, const struct wf_expect *x, const uint8_t *p)
{
	const unsigned char *frames = p + WF_RECORD_HEAD, *stream = frames + wf_body_stream(l->guess.step), *msg = stream + 16, *end = frames + WF_BODY_FRAMES;
	uint64_t other;

	if (wf_unlikely(!l->guess.step))
		return false;
	other = (wf_get64(p) ^ ((uint64_t)l->guess.body << 32 | WF_BODY_FRAMES)) | wf_get16(p + 8) | (wf_get64(frames) ^ l->guess.ack) | (wf_get64(frames + 16) ^ l->guess.limit) |
		(wf_get32(frames + 32) ^ l->guess.pad);
	other |= (wf_get64(stream) ^ l->guess.stream) | (wf_get64(msg) ^ l->guess.msg[0]) | (wf_get64(msg + 8) ^ l->guess.msg[1]) | (wf_get64(msg + 16) ^ l->guess.msg[2]);
	other |= wf_get64(end - 8) ^ l->guess.body;
	if (wf_unlikely(l->guess.guest.context))
		other |= wf_get64(msg + WF_WIRE_MSG_LEAST) ^ l->guess.guest.context;
	return wf_likely(!other && wf_get64(end - 16)) && wf_likely(wf_expect_meant(x, &l->guess.guest));
}

/* [reader] @w was right, and says @g: the next may have such frames, too. */
static void remember(struct wf_line *l, const struct wf_whole *w, const struct wf_guest *g)
{
	const unsigned char *frames = w->frames, *stream;
	size_t step = wf_body_step(g->context);

	l->guess.step = 0;
	if (w->len != WF_BODY_FRAMES || !wf_body_like(frames, step))
		return;
	stream = frames + wf_body_stream(step);
	l->guess.ack = wf_get64(frames);
	l->guess.limit = wf_get64(frames + 16);
	l->guess.pad = wf_get32(frames + 32);
	l->guess.stream = wf_get64(stream);
	for (int i = 0; i < 3; i++)
		l->guess.msg[i] = wf_get64(stream + 16 + 8 * i);
	l->guess.guest = *g;
	l->guess.step = (uint32_t)step;
}

/* [reader] Any other. False: nothing happened. */
static __attribute__((noinline)) bool came_otherwise(struct wf_line *l, struct wf_expect *x, const uint8_t *p)
{
	struct wf_whole w = { .frames = p + WF_RECORD_HEAD, .len = l->guess.front - WF_RECORD_HEAD - 4, .body_len = l->guess.body, .body = x->data };
	const unsigned char *where;
	struct wf_brisk m;
	struct wf_guest g;

	if (wf_get32(p) != w.len || wf_get32(p + 4) != w.body_len || wf_get16(p + 8) || !(where = wf_remote_body_where(&w, &m)))
		return false;
	g = (struct wf_guest){ .to = (wf_process_id >> 32) << 32 | m.to, .src = (weft_id)l->trunk->process << 32 | m.from, .tag = m.tag, .context = m.context, .payload = m.payload, .len = m.len,
			       .index = m.index };
	if (!wf_expect_meant(x, &g) || !wf_opener_holds(&l->open, p, w.len, w.body_len) || !told(l, x, &w, where, &g))
		return false;
	remember(l, &w, &g);
	return true;
}

/* [reader] The record whose frames are at @p and whose body is where it was expected: is it that message? Then it has come; else nothing happened. */
static inline bool came(struct wf_line *l, struct wf_expect *x, const uint8_t *p)
{
	struct wf_whole w = { .frames = p + WF_RECORD_HEAD, .len = WF_BODY_FRAMES, .body_len = l->guess.body, .body = x->data };

	if (wf_likely(like_last(l, x, p) && wf_opener_holds(&l->open, p, WF_BODY_FRAMES, w.body_len) && told(l, x, &w, NULL, &l->guess.guest)))
		return true;
	return came_otherwise(l, x, p);
}

WF_HOT int wf_line_came_ahead(void *cookie, void *bytes, size_t front, size_t got)
{
	struct wf_line *l = cookie;
	struct wf_expect *x = wf_self.expects;

	if (wf_likely(got == l->guess.body && came(l, x, bytes))) {
		if (wf_unlikely(l->guess.wanted > 0) && ++l->guess.right % RIGHT == 0)
			l->guess.wanted /= 2;
		wf_line_see_to(l);
		return 1;
	}
	memcpy((uint8_t *)bytes + front, x->data, got);
	wf_expect_restores(x, got);
	l->guess.wanted = l->guess.wanted ? l->guess.wanted < ALIKE_MOST ? 2 * l->guess.wanted : ALIKE_MOST : ALIKE_LEAST;
	unsure(l);
	return 0;
}
