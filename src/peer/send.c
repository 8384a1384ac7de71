/* send.c - a send: from the call into its stream, or to where it waits; and its end.
 *
 *     WAITS ----room----> EAGER ------acknowledged, answered-----> OVER        (small and not SYNC: done when it is in the stream)
 *       |   \-----------> ANNOUNCED --GRANT--> GRANTED --ENDED---> OVER        (INVITED: an ANNOUNCED one whose chunks go already)
 *       \--> BACKLOG <--> OFFERED -----/
 *
 * Order is that of the stream, which is the order of the calls: what waits for room waits in line, and what waits for its destination is
 * followed by all later ones to it (announce.c). A send that is OVER is told when no lane writes from its memory.
 *
 * Cancel  WAITS, BACKLOG, and what is in the stream but was not sent: here and now; the frame becomes VOID. Sent: CANCEL goes behind the message
 *         on its stream, and the receiver answers ENDED or LATE, if need be after the lane's recovery. OFFERED: the receiver takes it or gives
 *         it back at once, and given back it is cancelled. GRANTED: too late.
 */
#include <errno.h>

#include "peer/inner.h"

/* ---- into the stream ---- */

static struct wf_rmsg header(const struct wf_rsend *s, uint8_t type, uint8_t flags)
{
	struct wf_rmsg m = { .to = s->to, .from = s->from, .index = s->index, .tag = s->tag, .context = s->context, .send = s->number,
			     .len = s->len, .token = s->token, .head = s->head, .head_len = s->head_len, .type = type, .flags = flags };

	if (s->context)
		m.flags |= WF_WIRE_CONTEXT;
	if (s->head_len)
		m.flags |= WF_WIRE_HEAD;
	if (s->number)
		m.flags |= WF_WIRE_SEND;
	if (s->flags & WF_SEND_SYNC)
		m.flags |= WF_WIRE_SYNC;
	return m;
}

static void put_payload(struct wf_remote *r, struct wf_retain *rt, uint64_t at, const struct wf_rsend *s)
{
	for (uint64_t done = 0; done < s->len;) {
		struct iovec iov[8];
		int n = r->conf.ops->send_pieces(s, done, iov, 8);

		for (int i = 0; i < n && done < s->len; i++) {
			size_t len = iov[i].iov_len < s->len - done ? iov[i].iov_len : (size_t)(s->len - done);

			wf_retain_put(rt, at + done, iov[i].iov_base, len);
			done += len;
		}
	}
}

/* The frame of @s, with its payload if it is @with. Room is there. */
static void put(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s, uint8_t type, uint8_t flags, bool with)
{
	static const unsigned char none[8];
	unsigned char head[WF_WIRE_MSG_HEAD];
	struct wf_rmsg m = header(s, type, flags);
	size_t payload = with ? (size_t)s->len : 0, len = wf_wire_put_msg(head, &m, payload);

	s->start = out->rt.tail;
	s->end = s->start + WF_WIRE_PAD(len + payload);
	wf_retain_put(&out->rt, s->start, head, len);
	if (with)
		put_payload(r, &out->rt, s->start + len, s);
	wf_retain_put(&out->rt, s->start + len + payload, none, (size_t)(s->end - s->start) - len - payload);   /* padding: nothing of ours */
	if (out->id == WF_STREAM_PLAIN)
		wf_invite_last(r, s->to, s->context, s->end);
	wf_out_appended(r, out, (size_t)(s->end - s->start));
}

static size_t frame_most(const struct wf_rsend *s)
{
	return WF_WIRE_PAD(24 + 4 * 8 + WF_WIRE_PAD(1 + s->head_len));
}

static int number(struct wf_remote *r, struct wf_rsend *s)
{
	return s->number ? 0 : wf_numbers_add(&r->sends, s, &s->number);
}

static int launch_eager(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s)
{
	bool with = s->len <= WF_INLINE_MOST;
	int rc;

	if (s->flags & WF_SEND_NOW && (!with || s->flags & WF_SEND_SYNC))
		return -EAGAIN;
	if (!wf_retain_room(&out->rt, frame_most(s) + (with ? WF_WIRE_PAD((size_t)s->len) : 0), WF_SPARE))
		return -EAGAIN;
	rc = with && !(s->flags & WF_SEND_SYNC) ? 0 : number(r, s);
	if (rc)
		return rc;
	r->used += wf_credit_cost(s->len);
	put(r, out, s, WF_WIRE_MSG, with ? 0 : WF_WIRE_BODY | WF_WIRE_LENGTH, with);
	if (!s->number)
		return WEFT_DONE;
	s->state = WF_S_EAGER;
	s->acked = with;
	if (!with) {
		wf_list_add(&out->bodies, &s->node);
		if (out->body == &out->bodies)
			out->body = &s->node;
	}
	return 0;
}

bool wf_send_announce(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s, uint8_t flags)
{
	if (!wf_retain_room(&out->rt, frame_most(s), flags & WF_WIRE_OFFER ? 0 : WF_SPARE) || number(r, s))
		return false;
	put(r, out, s, WF_WIRE_ANNOUNCE, flags | WF_WIRE_LENGTH, false);
	return true;
}

/* Does it go unasked? A long one only where that keeps what is sent after it waiting for a moment only: asking first costs a round trip. */
static bool unasked(const struct wf_remote *r, uint64_t len)
{
	if (len <= r->conf.eager || len > r->conf.eager_most)
		return len <= r->conf.eager;
	return len <= wf_bulk_moment(r);
}

/* Sends what was accepted or is about to be: WEFT_DONE: it is over; 0: in a state of its own; -EAGAIN: no room in the stream; -EBUSY: its
 * destination has enough; -ENOMEM. Nothing happened then. */
int wf_send_launch(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s, struct wf_rdest *d)
{
	uint64_t cost = wf_credit_cost(s->len);
	bool made = !d, invited = r->ninvites && wf_invite_used(r, s);

	if (unasked(r, s->len) && !(s->flags & WF_SEND_RENDEZVOUS) && cost <= r->limit - r->used && !(d && d->clogged))
		return launch_eager(r, out, s);
	if (s->flags & WF_SEND_NOW)
		return -EAGAIN;
	if (r->announced >= r->conf.cap && d && d->outstanding)
		return -EBUSY;
	d = d ? d : wf_dest_get(r, s->to, s->context);
	if (!d)
		return -ENOMEM;
	if (!wf_send_announce(r, out, s, invited ? WF_WIRE_INVITED : 0)) {
		if (made)
			wf_dest_put(r, d);
		return -EAGAIN;
	}
	d->outstanding++;
	r->announced++;
	s->dest = d;
	s->state = invited ? WF_S_INVITED : WF_S_ANNOUNCED;
	if (!invited && !(s->flags & WF_SEND_RENDEZVOUS) && !unasked(r, s->len) && !d->clogged)
		wf_bulk_may_lead(r, s);
	if (invited) {
		s->limit = s->len;
		r->counted_invited++;
		wf_bulk_add(r, s);
	}
	return 0;
}

/* As wf_send_launch, behind what waits for the same destination. */
static int start(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s)
{
	struct wf_rdest *d = r->ndests ? wf_dest_find(r, s->to, s->context) : NULL;
	int rc = d && !wf_list_empty(&d->queue[3 - s->prio]) ? -EBUSY : wf_send_launch(r, out, s, d);

	if (rc != -EBUSY)
		return rc;
	if (s->flags & WF_SEND_NOW)
		return -EAGAIN;
	wf_dest_queue(r, d, s);
	return 0;
}

int wf_remote_send(struct wf_remote *r, struct wf_rsend *s, weft_time now)
{
	struct wf_out *out;
	int rc = -EAGAIN;

	r->now = now;
	if (wf_ends(r) || r->closing)
		return wf_ends(r) ? wf_ends(r) : -ESHUTDOWN;
	wf_done_answered(r);
	if (s->head_len > WF_WIRE_HEAD_MOST || s->rail > r->conf.rails)
		return -EMSGSIZE;
	out = wf_out_get(r, wf_stream_of(s));
	if (!out)
		return -ENOMEM;
	s->state = WF_S_NONE;
	s->pins = 0;
	s->acked = s->ended = s->asked = s->shown = s->cancel_due = s->offer_due = false;
	s->err = 0;
	s->number = 0;
	s->node.next = s->ask.next = NULL;
	s->dest = NULL;
	s->bulk = NULL;
	if (wf_list_empty(&out->waiting))
		rc = start(r, out, s);
	if (rc == -EAGAIN && !(s->flags & WF_SEND_NOW)) {
		wf_expect(r);
		wf_list_add(&out->waiting, &s->node);
		s->state = WF_S_WAITS;
		r->stuck |= wf_bit(out->id);
		rc = 0;
	}
	if (!rc)
		r->live++;
	return rc;
}

bool wf_remote_keep(struct wf_rsend *s)
{
	if (s->state != WF_S_EAGER || s->acked || s->asked || s->flags & WF_SEND_SYNC)
		return false;
	s->pins++;
	return true;
}

WF_HOT bool wf_remote_kept(struct wf_remote *r, struct wf_rsend *s)
{
	bool still = s->state == WF_S_EAGER && s->pins == 1;

	wf_send_unpin(r, s);
	return still;
}

/* Frames about sends that found no room. False: still none. */
static bool put_asks(struct wf_remote *r, struct wf_out *out)
{
	while (!wf_list_empty(&out->asks)) {
		struct wf_rsend *s = wf_of(out->asks.next, struct wf_rsend, ask);

		if (s->offer_due) {
			if (!wf_send_announce(r, out, s, WF_WIRE_OFFER))
				return false;
			s->offer_due = false;
		}
		if (s->cancel_due) {
			unsigned char frame[16];

			if (!wf_retain_room(&out->rt, sizeof(frame), 0))
				return false;
			wf_wire_put(frame, WF_WIRE_CANCEL, 0, 0, s->number);
			wf_retain_put(&out->rt, out->rt.tail, frame, sizeof(frame));
			wf_out_appended(r, out, sizeof(frame));
			s->cancel_due = false;
		}
		wf_list_del(&s->ask);
	}
	return true;
}

void wf_send_ask(struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_out *out = r->out[wf_stream_of(s)];

	if (!wf_list_has(&s->ask))
		wf_list_add(&out->asks, &s->ask);
	if (!put_asks(r, out))
		r->stuck |= wf_bit(out->id);
}

/* There is room in @out. */
void wf_send_retry(struct wf_remote *r, struct wf_out *out)
{
	r->stuck &= ~wf_bit(out->id);
	if (!put_asks(r, out)) {
		r->stuck |= wf_bit(out->id);
		return;
	}
	wf_backlogs_drain(r);
	while (!wf_list_empty(&out->waiting)) {
		struct wf_rsend *s = wf_of(out->waiting.next, struct wf_rsend, node);
		int rc;

		wf_list_del(&s->node);
		rc = start(r, out, s);
		if (rc == -EAGAIN) {
			s->node = (struct wf_node){ out->waiting.next, &out->waiting };         /* the first again */
			s->node.next->prev = out->waiting.next = &s->node;
			r->stuck |= wf_bit(out->id);
			return;
		}
		if (rc) {
			s->state = WF_S_NONE;
			wf_send_over(r, s, rc == WEFT_DONE ? 0 : rc);
		}
	}
}

/* ---- its end ---- */

static void leave(struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_out *out = r->out[wf_stream_of(s)];

	if (wf_list_has(&s->ask))
		wf_list_del(&s->ask);
	if (r->lead == s)
		wf_bulk_lead_over(r);
	switch (s->state) {
	case WF_S_WAITS:
		wf_list_del(&s->node);
		break;
	case WF_S_BACKLOG:
	case WF_S_OFFERED:
		wf_dest_unqueue(r, s);
		break;
	case WF_S_EAGER:
		if (!wf_list_has(&s->node))
			break;
		if (out->body == &s->node)
			out->body = s->node.next;
		wf_list_del(&s->node);
		break;
	case WF_S_ANNOUNCED:
		wf_dest_answered(r, s);
		break;
	case WF_S_INVITED:
		wf_dest_answered(r, s);
		wf_bulk_forget(r, s);
		break;
	case WF_S_GRANTED:
		wf_bulk_forget(r, s);
		break;
	default:
		break;
	}
}

static void told_later(struct wf_remote *r, struct wf_rsend *s)
{
	wf_list_add(s->flags & WF_SEND_IDLE ? &r->spent : &r->ended, &s->node);
}

WF_HOT void wf_send_over(struct wf_remote *r, struct wf_rsend *s, int err)
{
	leave(r, s);
	if (s->number)
		wf_numbers_del(&r->sends, s->number);
	s->number = 0;
	s->state = WF_S_OVER;
	s->err = err;
	r->live--;
	if (!s->pins)
		told_later(r, s);
	if (s->pins || r->closing)
		r->dirty = true;
}

WF_HOT void wf_send_unpin(struct wf_remote *r, struct wf_rsend *s)
{
	if (!--s->pins && s->state == WF_S_OVER)
		told_later(r, s);
}

WF_HOT void wf_send_check(struct wf_remote *r, struct wf_rsend *s)
{
	bool answer = s->flags & WF_SEND_SYNC || s->asked;

	if (s->acked && (!answer || s->ended))
		wf_send_over(r, s, s->err);
}

/* What was matched is all there, and so is what lies before it in its stream: as by an ACK up to its end, which has no hurry otherwise. */
static int matched(struct wf_remote *r, const struct wf_rsend *s)
{
	return s->acked ? 0 : wf_out_acked(r, r->out[wf_stream_of(s)], s->end);
}

int wf_send_ended(struct wf_remote *r, uint64_t number, int err)
{
	struct wf_rsend *s = wf_numbers_find(&r->sends, number);

	if (!s)
		return 0;
	switch (s->state) {
	case WF_S_EAGER:
		if (s->ended)
			return 0;               /* answered before: it waits for its acknowledgement only, which the match would bring, and end it here */
		if (!err && s->flags & WF_SEND_SYNC && (err = matched(r, s)) < 0)
			return err;
		s->ended = true;
		s->err = err;
		wf_send_check(r, s);
		return 0;
	case WF_S_OFFERED:
		if (err == -EAGAIN)
			wf_offer_back(r, s);
		else
			wf_send_over(r, s, err);
		return 0;
	case WF_S_INVITED:
		wf_bulk_ended(r, s, err);
		wf_send_over(r, s, err);
		return 0;
	case WF_S_ANNOUNCED:
	case WF_S_GRANTED:
		wf_send_over(r, s, err);
		return 0;
	default:
		return -EPROTO;
	}
}

int wf_send_done(struct wf_remote *r, uint64_t number)
{
	const struct wf_rsend *s = wf_numbers_find(&r->sends, number);

	if (s && s->state != WF_S_GRANTED && s->state != WF_S_INVITED && s->state != WF_S_ANNOUNCED)
		return -EPROTO;
	return wf_send_ended(r, number, 0);
}

void wf_send_late(struct wf_remote *r, uint64_t number)
{
	struct wf_rsend *s = wf_numbers_find(&r->sends, number);

	if (!s || s->state != WF_S_EAGER || s->flags & WF_SEND_SYNC)
		return;
	s->ended = true;
	wf_send_check(r, s);
}

static void fail_list(struct wf_remote *r, struct wf_node *list, int err)
{
	while (!wf_list_empty(list))
		wf_send_over(r, wf_of(list->next, struct wf_rsend, node), err);
}

void wf_sends_fail(struct wf_remote *r, int err)
{
	for (unsigned i = 0; i < WF_STREAMS; i++)
		if (r->out[i])
			fail_list(r, &r->out[i]->waiting, err);
	while (!wf_list_empty(&r->backlogs)) {
		struct wf_rdest *d = wf_of(r->backlogs.next, struct wf_rdest, node);

		for (unsigned c = 0; c < WF_CLASSES; c++)
			while (!wf_list_empty(&d->queue[c])) {
				bool last = d->count == 1;

				wf_send_over(r, wf_of(d->queue[c].next, struct wf_rsend, node), err);
				if (last)
					goto next;      /* d may be gone */
			}
next:;
	}
	for (uint32_t i = 0; i < r->sends.size; i++)
		if (r->sends.slot[i].what)
			wf_send_over(r, r->sends.slot[i].what, err);
}

/* ---- cancel ---- */

/* Its frame has not left and will not: as if it had never been. */
static void unsend(struct wf_remote *r, struct wf_rsend *s, struct wf_out *out)
{
	unsigned char *head = wf_retain_head(&out->rt, s->start);

	head[0] = WF_WIRE_VOID;
	head[1] = 0;
	if (s->state == WF_S_EAGER)
		r->used -= wf_credit_cost(s->len);
	wf_send_over(r, s, -ECANCELED);
}

int wf_remote_cancel(struct wf_remote *r, struct wf_rsend *s, weft_time now)
{
	struct wf_out *out = r->out[wf_stream_of(s)];

	r->now = now;
	switch (s->state) {
	case WF_S_WAITS:
	case WF_S_BACKLOG:
		wf_send_over(r, s, -ECANCELED);
		return 0;
	case WF_S_OFFERED:
		s->asked = true;
		return 0;
	case WF_S_EAGER:
	case WF_S_ANNOUNCED:
	case WF_S_INVITED:
		if (s->asked)
			return 0;
		if (s->state != WF_S_INVITED && s->start >= out->rt.sent && !out->waits && !s->shown) {
			unsend(r, s, out);
			return 0;
		}
		s->asked = s->cancel_due = true;
		wf_send_ask(r, s);
		return 0;
	case WF_S_GRANTED:
		return 0;
	default:
		return -EALREADY;
	}
}
