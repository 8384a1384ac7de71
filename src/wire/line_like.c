/* line_like.c - a record like the one before. See line.h.
 *
 * Who asks and waits for the answer, again and again, gets one short message at a time, and each is as the last one but for its payload, its place in the stream and its checksum. So what the last one
 * was is kept, word by word, and the next compared with it: what is the same need not be looked at again. All else is asked as ever: is it whole, is it the next of its stream, has it been
 * paid for, does this thread wait for it, is nothing before it in the mailbox? If all of that is so it is delivered; if not nothing happened, and line_in.c goes about it from the beginning.
 *
 * The remote is told of it later (t->late): by who next sends there by the short way, which mostly is the answer; by who next looks at the rails; and before anything else of that trunk that was read is told,
 * or one of its lanes goes down. Until then it stands a few messages further back, which nobody but the other end can see: it acknowledges less than is here. So who reads takes no lock, and
 * who sends next tells under one that is taken there anyway.
 *
 * Edges   J1  late.came release (reader) -> acquire (who tells): the row that they are. It is changed under the trunk's lock, by the reader, when none of it is left to be told.
 */
#include "base/clock.h"
#include "port/expect.h"
#include "port/self.h"
#include "wire/hot.h"
#include "wire/line.h"

#define AT_STREAM WF_RECORD_HEAD
#define AT_MSG (AT_STREAM + 16)
#define MOST 256u                       /* bytes of frames */

static _Atomic(struct wf_trunk *) late_trunk;           /* where the last one came from; NULL: none did yet. Set inside the rail */
static uint64_t names;                                  /* the reader's: of what is alike */

static void tell_late(struct wf_trunk *t)
{
	bool news;

	/* relaxed: what is missed is seen by the next look */
	if (wf_likely(atomic_load_explicit(&t->late.came, memory_order_relaxed) == atomic_load_explicit(&t->late.told, memory_order_relaxed)))
		return;
	wf_trunk_lock(t);
	wf_trunk_late_locked(t, wf_now_about());
	news = wf_trunk_news_locked(t);
	wf_unlock(&t->lock);
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
}

void wf_line_late_over(struct wf_trunk *t)
{
	tell_late(t);
	t->late.name = 0;
}

void wf_line_late_look(void)
{
	struct wf_trunk *t = atomic_load_explicit(&late_trunk, memory_order_acquire);    /* set behind its count */

	if (wf_likely(t != NULL))
		tell_late(t);
}

void wf_line_late_forget(void)
{
	atomic_store_explicit(&late_trunk, NULL, memory_order_relaxed);
}

/* [trunk.lock] The next record of @l that is like this one, whose message costs @cost, may be told later. */
static bool may_be_late_locked(struct wf_line *l, const uint8_t *record, uint64_t cost)
{
	struct wf_trunk *t = l->trunk;
	uint64_t most = t->remote.conf.window / 16;
	uint32_t id = record[AT_STREAM + 1];

	if (id >= WF_STREAMS || !wf_brief_begins(&t->remote, l->of, id, wf_get32(record + AT_STREAM + 4), &l->like.at, &l->like.left) || t->costs >= most)
		return false;
	if (l->like.left > most - t->costs)
		l->like.left = most - t->costs;         /* then the others' credit is seen to */
	t->late.row = (struct wf_brief_row){ .lane = l->of, .id = id, .step = l->like.frames - 16, .cost = cost };
	t->late.name = l->like.name;
	return true;
}

void wf_line_liked(struct wf_line *l, const uint8_t *record, uint32_t frames)
{
	const uint8_t *msg = record + AT_MSG;
	size_t head = WF_WIRE_MSG_LEAST + (msg[1] & WF_WIRE_CONTEXT ? 8 : 0);
	bool so;

	l->like.len = 0;
	if (l->open.end.mode == WF_MODE_FULL || frames > MOST || wf_get16(record + 8) || record[AT_STREAM] != WF_WIRE_STREAM || msg[0] != WF_WIRE_MSG || l->trunk->remote.conf.rails > 1)
		return;
	l->like.frames = frames;
	l->like.stream = wf_get64(record + AT_STREAM);
	for (int i = 0; i < 3; i++)
		l->like.msg[i] = wf_get64(msg + 8 * i);
	l->like.guest = (struct wf_guest){ .to = (wf_process_id >> 32) << 32 | wf_get32(msg + 4), .src = (weft_id)l->trunk->process << 32 | wf_get32(msg + 8), .tag = wf_get64(msg + 16),
					   .context = head > WF_WIRE_MSG_LEAST ? wf_get64(msg + WF_WIRE_MSG_LEAST) : 0, .payload = NULL, .len = wf_get16(msg + 2) - head, .index = wf_get32(msg + 12) };
	l->like.name = ++names;
	wf_trunk_lock(l->trunk);
	so = may_be_late_locked(l, record, wf_credit_cost(l->like.guest.len));
	wf_unlock(&l->trunk->lock);
	if (so)
		l->like.len = WF_RECORD_HEAD + frames + 4;
}

/* By what it says, is it the next, and alike? And does somebody wait for such a one, who is us? */
static inline bool alike(const struct wf_line *l, const struct wf_expect *x, const uint8_t *record)
{
	const uint8_t *msg = record + AT_MSG;
	uint64_t other;

	other = (wf_get64(record) ^ l->like.frames) | wf_get16(record + 8) | (wf_get64(record + AT_STREAM) ^ l->like.stream) | (wf_get64(record + AT_STREAM + 8) ^ l->like.at);
	other |= (wf_get64(msg) ^ l->like.msg[0]) | (wf_get64(msg + 8) ^ l->like.msg[1]) | (wf_get64(msg + 16) ^ l->like.msg[2]);
	if (wf_unlikely(l->like.guest.context))
		other |= wf_get64(msg + WF_WIRE_MSG_LEAST) ^ l->like.guest.context;
	if (wf_unlikely(other || !x || l->stage != WF_LINE_RECORDS || l->like.name != l->trunk->late.name))
		return false;
	return wf_likely(x->meant == l->like.name && !x->came) || wf_expect_meant(x, &l->like.guest);
}

/* [inside, reader] It is: delivered. False: nothing happened. */
static inline bool come_locked(struct wf_line *l, struct wf_expect *x, const uint8_t *record)
{
	struct wf_trunk *t = l->trunk;
	uint64_t cost = t->late.row.cost;

	if (wf_unlikely(!wf_expect_first_locked(x->at) || cost > l->like.left || t->stirred || atomic_load_explicit(&t->err, memory_order_relaxed)))
		return false;
	l->like.left -= cost;
	l->like.at += t->late.row.step;
	t->costs += cost;
	wf_opener_passed(&l->open, 0);
	atomic_store_explicit(&t->late.came, atomic_load_explicit(&t->late.came, memory_order_relaxed) + 1, memory_order_release);     /* J1 */
	l->like.guest.payload = record + AT_MSG + WF_WIRE_MSG_LEAST + (l->like.guest.context ? 8 : 0);
	wf_expect_come_locked(x, &l->like.guest);
	return true;
}

/* [reader] @t is where the last one came from. */
static WF_SLOW void late_from(struct wf_trunk *t)
{
	struct wf_trunk *before = atomic_load_explicit(&late_trunk, memory_order_relaxed);      /* only the reader writes it */

	if (before)
		tell_late(before);
	atomic_store_explicit(&late_trunk, t, memory_order_release);
}

/* [reader, no lock] l->like.len bytes, all there are. False: nothing happened. */
static inline bool like(struct wf_line *l, const uint8_t *record)
{
	struct wf_expect *x = wf_self.expects;
	bool came;

	if (wf_unlikely(!alike(l, x, record) || !wf_opener_holds(&l->open, record, l->like.frames, 0)))
		return false;
	wf_door_enter_owner(&x->at->door);
	came = come_locked(l, x, record);
	wf_door_leave_owner(&x->at->door);
	if (wf_unlikely(l->trunk != atomic_load_explicit(&late_trunk, memory_order_relaxed)))
		late_from(l->trunk);
	return wf_likely(came);
}

WF_HOT ssize_t wf_line_bytes(void *cookie, void *bytes, size_t len, struct weft_need *need)
{
	struct wf_line *l = cookie;

	return wf_likely(len == l->like.len && like(l, bytes)) ? (ssize_t)len : wf_line_records(l, bytes, len, need);
}
