/* line_like.c - a record like the one before. See line.h.
 *
 * Who asks and waits for the answer, again and again, gets one short message at a time, and each is as the last one but for its payload, its place in the stream and its checksum. So what the last one
 * was is kept, word by word, and the next compared with it: what is the same need not be looked at again. All else is asked as ever: is it whole, is it the next of its stream, has it been
 * paid for, does this thread wait for it, is nothing before it in the mailbox? If all of that is so it is delivered; if not nothing happened, and line_in.c goes about it from the beginning.
 * 8 bytes were 730 instructions here by way of line_in.c (aarch64), and are 385.
 */
#include "base/clock.h"
#include "peer/brief.h"
#include "port/expect.h"
#include "port/self.h"
#include "wire/hot.h"
#include "wire/line.h"

#define AT_STREAM WF_RECORD_HEAD
#define AT_MSG (AT_STREAM + 16)
#define MOST 256u                       /* bytes of frames */

void wf_line_liked(struct wf_line *l, const uint8_t *record, uint32_t frames)
{
	const uint8_t *msg = record + AT_MSG;
	size_t head = WF_WIRE_MSG_LEAST + (msg[1] & WF_WIRE_CONTEXT ? 8 : 0);

	l->like.len = 0;
	if (l->open.end.mode == WF_MODE_FULL || frames > MOST || wf_get16(record + 8) || record[AT_STREAM] != WF_WIRE_STREAM || msg[0] != WF_WIRE_MSG || l->trunk->remote.conf.rails > 1)
		return;
	l->like.frames = frames;
	l->like.stream = wf_get64(record + AT_STREAM);
	for (int i = 0; i < 3; i++)
		l->like.msg[i] = wf_get64(msg + 8 * i);
	l->like.guest = (struct wf_guest){ .to = (wf_process_id >> 32) << 32 | wf_get32(msg + 4), .src = (weft_id)l->trunk->process << 32 | wf_get32(msg + 8), .tag = wf_get64(msg + 16),
					   .context = head > WF_WIRE_MSG_LEAST ? wf_get64(msg + WF_WIRE_MSG_LEAST) : 0, .payload = NULL, .len = wf_get16(msg + 2) - head, .index = wf_get32(msg + 12) };
	l->like.len = WF_RECORD_HEAD + frames + 4;
}

/* By what it says, is it alike? And does somebody wait for such a one, who is us? */
static inline bool alike(const struct wf_line *l, const struct wf_expect *x, const uint8_t *record)
{
	const uint8_t *msg = record + AT_MSG;
	uint64_t other;

	other = (wf_get64(record) ^ l->like.frames) | wf_get16(record + 8) | (wf_get64(record + AT_STREAM) ^ l->like.stream);
	other |= (wf_get64(msg) ^ l->like.msg[0]) | (wf_get64(msg + 8) ^ l->like.msg[1]) | (wf_get64(msg + 16) ^ l->like.msg[2]);
	if (wf_unlikely(l->like.guest.context))
		other |= wf_get64(msg + WF_WIRE_MSG_LEAST) ^ l->like.guest.context;
	return wf_likely(!other && x && l->stage == WF_LINE_RECORDS) && wf_likely(wf_expect_meant(x, &l->like.guest));
}

/* [inside, reader] It is: told to the remote, and delivered. False: nothing happened. */
static inline bool come_locked(struct wf_line *l, struct wf_expect *x, const uint8_t *record, bool *ret_news)
{
	uint64_t cost = wf_credit_cost(l->like.guest.len);
	struct wf_trunk *t = l->trunk;
	weft_time now = wf_now_about();
	bool so;

	if (wf_unlikely(!wf_expect_first_locked(x->at) || t->costs > t->remote.conf.window / 16 || t->stirred))
		return false;
	wf_lock(&t->lock);
	so = wf_brief_one(&t->remote, l->of, record[AT_STREAM + 1], wf_get32(record + AT_STREAM + 4), wf_get64(record + AT_STREAM + 8), l->like.frames - 16, cost, now);
	if (wf_likely(so)) {
		l->due |= wf_remote_due(&t->remote, now);
		*ret_news = wf_trunk_news_locked(t);
	}
	wf_unlock(&t->lock);
	if (wf_unlikely(!so))
		return false;
	wf_opener_passed(&l->open, 0);
	t->costs += cost;
	l->like.guest.payload = record + AT_MSG + WF_WIRE_MSG_LEAST + (l->like.guest.context ? 8 : 0);
	wf_expect_come_locked(x, &l->like.guest);
	return true;
}

/* [reader, no lock] l->like.len bytes, all there are. False: nothing happened. */
static inline bool like(struct wf_line *l, const uint8_t *record)
{
	struct wf_expect *x = wf_self.expects;
	bool came, news = false;

	if (wf_unlikely(!alike(l, x, record) || !wf_opener_holds(&l->open, record, l->like.frames, 0)))
		return false;
	wf_door_enter_owner(&x->at->door);
	came = come_locked(l, x, record, &news);
	wf_door_leave_owner(&x->at->door);
	if (wf_unlikely(news))
		wf_trunks_by(atomic_load_explicit(&l->trunk->wake, memory_order_relaxed));
	if (wf_unlikely(l->due))
		wf_line_see_to(l);
	return wf_likely(came);
}

WF_HOT ssize_t wf_line_bytes(void *cookie, void *bytes, size_t len, struct weft_need *need)
{
	struct wf_line *l = cookie;

	return wf_likely(len == l->like.len && like(l, bytes)) ? (ssize_t)len : wf_line_records(l, bytes, len, need);
}
