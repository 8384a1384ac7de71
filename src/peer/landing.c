/* landing.c - where bodies go: the memory of a receive (or of a copy), which bytes of it are there, and its closing.
 *
 * Place   A thread asks where the next bytes of a body go, reads them there without the lock, and says so (wf_remote_place, _placed): the time
 *         between is a slice, and short. A span counts when its body's tag holds. What is filled is never written again: what comes a second
 *         time is dropped.
 * Claim   Two lanes may bring the same chunk, one of them late, and which one ends is anybody's guess. The first that began has the span, unless nothing has come by it for a while: then the other takes over.
 *         What the one without it brings is dropped, and counted as read, so its sender takes it for delivered: if the one that has it then breaks, or has, that is asked for AGAIN. An eager body belongs to the lane
 *         its stream rides on: that lane takes over. Who takes over asks again as long as a thread of the other is in a slice, which leaves soon or is made to (wf_remote_leaves): on a lane that is silent it
 *         would stay. So nobody writes where another has finished.
 * Close   Ends the landing's life: its token names nothing, lanes that were reading for it drop the rest. With a thread in a slice it is closed
 *         when that has left. A message's memory is not given back to the user before.
 * Full    means the spans, never a count. Their number is bounded; one too many is not counted, and its sender, who cuts no more than fit, has
 *         wronged itself.
 */
#include <errno.h>
#include <string.h>

#include "peer/inner.h"

#define SILENT (100 * WEFT_MS)          /* who has the span and was not heard of for so long loses it to who brings it, too */

enum { OPEN, TURNED, CLOSED };

void wf_landing_open(struct wf_remote *r, struct wf_landing *l)
{
	wf_expect(r);
	l->token = l->send = 0;
	l->nfilled = l->readers = 0;
	l->state = OPEN;
	l->invited = l->torn = false;
	l->err = 0;
	wf_list_add(&r->landings, &l->node);
}

struct wf_landing *wf_landing_find(struct wf_remote *r, uint64_t token)
{
	return wf_numbers_find(&r->tokens, token);
}

/* Adds [from, to), which overlaps nothing. False: no room in the set. */
static bool fill(struct wf_landing *l, uint64_t from, uint64_t to)
{
	unsigned i = 0, n = l->nfilled;

	while (i < n && l->filled[i].to < from)
		i++;
	if (i < n && l->filled[i].to == from) {
		l->filled[i].to = to;
		if (i + 1 < n && l->filled[i + 1].from == to) {
			l->filled[i].to = l->filled[i + 1].to;
			memmove(&l->filled[i + 1], &l->filled[i + 2], (n - i - 2) * sizeof(l->filled[0]));
			l->nfilled--;
		}
		return true;
	}
	if (i < n && l->filled[i].from == to) {
		l->filled[i].from = from;
		return true;
	}
	if (n == WF_SPANS)
		return false;
	memmove(&l->filled[i + 1], &l->filled[i], (n - i) * sizeof(l->filled[0]));
	l->filled[i] = (struct wf_span){ from, to };
	l->nfilled++;
	return true;
}

static bool touches(const struct wf_landing *l, uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < l->nfilled; i++)
		if (from < l->filled[i].to && l->filled[i].from < to)
			return true;
	return false;
}

static bool full(const struct wf_landing *l)
{
	return !l->len || (l->nfilled == 1 && !l->filled[0].from && l->filled[0].to == l->len);
}

/* Nothing more is expected for @l: told by LANDED. */
static void landed(struct wf_remote *r, struct wf_landing *l, int err)
{
	wf_list_del(&l->node);
	l->err = err;
	wf_list_add(&r->landed, &l->node);
	if (r->closing)
		r->dirty = true;
}

/* The beginning of what @l is for has come along with the announcement, and is about to be read: it goes there, and what comes behind it on that lane. *@ret_all: that is all of it. */
static bool lead_meets(struct wf_remote *r, struct wf_landing *l, bool *ret_all)
{
	for (struct wf_lane *o = r->lanes; o < r->lanes + WF_LANES; o++)
		if (o->up && o->body.kind == WF_BODY_CHUNK && o->body.lead == l->send && o->body.lead_len <= l->len) {
			o->body.lead = 0;
			o->body.landing = l;
			o->body.token = l->token;
			o->led = l->token;
			*ret_all = o->body.lead_len == l->len;
			return true;
		}
	return false;
}

int wf_remote_take(struct wf_remote *r, uint64_t send, struct wf_landing *l)
{
	unsigned char frame[32];
	bool led, all = false;
	int rc;

	if (wf_ends(r))
		return wf_ends(r);
	wf_landing_open(r, l);
	rc = wf_numbers_add(&r->tokens, l, &l->token);
	if (rc) {
		wf_list_del(&l->node);
		return rc;
	}
	l->send = send;
	if (full(l)) {
		wf_remote_answer(r, send, 0);
		landed(r, l, 0);
		return 0;
	}
	led = lead_meets(r, l, &all);
	wf_wire_head(frame, WF_WIRE_GRANT, led ? WF_WIRE_LED : 0, sizeof(frame));
	wf_put32(frame + 4, 0);
	wf_put64(frame + 8, send);
	wf_put64(frame + 16, l->token);
	wf_put64(frame + 24, l->len);
	if (all && wf_control_may_wait(r))
		wf_control_later(r, frame, sizeof(frame));      /* nobody waits for it unless a lane breaks */
	else
		wf_control_put(r, frame, sizeof(frame));
	return 0;
}

int wf_remote_take_invited(struct wf_remote *r, uint64_t send, struct wf_landing *l, uint64_t len)
{
	if (l->torn)
		return -EAGAIN;
	l->invited = false;
	l->send = send;
	l->len = len;
	if (l->nfilled && l->filled[l->nfilled - 1].to > len) {         /* more than it announced */
		wf_remote_answer(r, send, -EPROTO);
		landed(r, l, -EPROTO);
	} else if (full(l)) {
		wf_remote_answer(r, send, 0);
		landed(r, l, 0);
	}
	return 0;
}

void wf_remote_body_into(struct wf_remote *r, struct wf_lane *lane, struct wf_landing *l)
{
	struct wf_in *in = &r->in[lane->body.stream];

	if (l)
		wf_landing_open(r, l);
	in->landing = lane->body.landing = l;
	if (l && r->err)
		landed(r, l, r->err);
}

static bool overlap(const struct wf_lane *lane, uint64_t from, uint64_t to)
{
	return from < lane->body.from + lane->body_len && lane->body.from < to;
}

bool wf_remote_leaves(const struct wf_lane *lane)
{
	return lane->body.in && lane->body.turned;
}

int wf_remote_place(struct wf_remote *r, struct wf_lane *lane, struct iovec *ret_iov, int max)
{
	struct wf_landing *l = lane->body.landing;
	int n;

	if (lane->body.kind == WF_BODY_EAGER && r->in[lane->body.stream].lane != lane)
		lane->body.turned = true;
	lane->body.lead = 0;            /* who comes later has missed it */
	if (!l || lane->body.turned || l->state != OPEN) {
		lane->body.landing = NULL;
		return 0;
	}
	for (struct wf_lane *o = r->lanes; o < r->lanes + WF_LANES; o++) {
		if (o == lane || !o->up || o->body.landing != l)
			continue;
		o->body.turned |= lane->body.kind == WF_BODY_EAGER;
		if (wf_remote_leaves(o) && overlap(lane, o->body.from, o->body.from + o->body_len))
			return -EAGAIN;
		if (o->body.turned && !o->body.in)
			o->body.landing = NULL;
	}
	n = r->conf.ops->land_pieces(l, lane->body.from + lane->body.at, ret_iov, max);
	for (uint64_t left = lane->body_len - lane->body.at, i = 0; (int)i < n; i++) {
		if (ret_iov[i].iov_len >= left) {
			ret_iov[i].iov_len = (size_t)left;
			n = (int)i + 1;
		}
		left -= ret_iov[i].iov_len;
	}
	lane->body.in = true;
	l->readers++;
	return n;
}

void wf_remote_placed(struct wf_remote *r, struct wf_lane *lane, uint32_t n)
{
	struct wf_landing *l = lane->body.landing;

	if (!lane->body.in)
		return;                 /* it was made to leave */
	lane->body.in = false;
	lane->body.at += n;
	l->readers--;
	if (lane->body.turned || l->state != OPEN)
		lane->body.landing = NULL;
	if (l->state == TURNED && !l->readers) {
		l->state = CLOSED;
		wf_list_add(&r->land_closed, &l->node);
	}
}

/* The lane that has what @l misses of [@from, @to), or a part of it; NULL: none has. */
static struct wf_lane *holder(struct wf_remote *r, const struct wf_landing *l, uint64_t from, uint64_t to)
{
	for (struct wf_lane *o = r->lanes; o < r->lanes + WF_LANES; o++)
		if (o->up && o->body.kind == WF_BODY_CHUNK && o->body.landing == l && !o->body.turned && overlap(o, from, to))
			return o;
	return NULL;
}

struct wf_landing *wf_landing_claim(struct wf_remote *r, struct wf_lane *lane, struct wf_landing *l, uint64_t from, uint64_t to)
{
	struct wf_lane *o;

	if (touches(l, from, to))
		return NULL;
	o = holder(r, l, from, to);
	if (!o)
		return l;
	if (r->now - o->heard < SILENT || from != o->body.from || to != o->body.from + o->body_len) {
		o->body.doubled = true;
		return NULL;
	}
	lane->body.doubled = o->body.doubled;
	o->body.turned = true;
	if (!o->body.in)
		o->body.landing = NULL;
	return l;
}

/* Bytes that were counted and are not there are to come once more. */
static void again(struct wf_remote *r, struct wf_landing *l, uint64_t from, uint64_t to)
{
	unsigned char frame[32];

	if (l->invited) {
		l->torn = true;                 /* whom to ask is not known yet */
		return;
	}
	wf_wire_head(frame, WF_WIRE_AGAIN, 0, sizeof(frame));
	wf_put32(frame + 4, 0);
	wf_put64(frame + 8, l->send);
	wf_put64(frame + 16, from);
	wf_put64(frame + 24, to);
	wf_control_put(r, frame, sizeof(frame));
}

void wf_landing_unclaim(struct wf_remote *r, struct wf_lane *lane)
{
	struct wf_landing *l = lane->body.landing;

	lane->body.landing = NULL;
	if (l && l->state == OPEN && lane->body.kind == WF_BODY_CHUNK && lane->body.doubled && !lane->body.turned)
		again(r, l, lane->body.from, lane->body.from + lane->body_len);
}

/* All of a chunk has come by @lane, which another has taken the place from: its sender takes the bytes for delivered. */
static void wasted(struct wf_remote *r, const struct wf_lane *lane)
{
	uint64_t from = lane->body.from, to = from + lane->body_len;
	struct wf_landing *l = lane->body.token ? wf_landing_find(r, lane->body.token) : NULL;
	struct wf_lane *o;

	if (!l || l->state != OPEN || touches(l, from, to))
		return;
	o = holder(r, l, from, to);
	if (o)
		o->body.doubled = true;
	else
		again(r, l, from, to);
}

/* @lane's body is all there. */
static void filled(struct wf_remote *r, struct wf_lane *lane)
{
	struct wf_landing *l = lane->body.landing;
	uint64_t from = lane->body.from, to = from + lane->body_len;

	lane->body.landing = NULL;
	if (!l || l->state != OPEN || lane->body.turned || touches(l, from, to) || !fill(l, from, to)) {
		r->counted_dropped++;
		if (lane->body.turned)
			wasted(r, lane);
		return;
	}
	if (l->invited || !full(l))
		return;
	if (l->token)
		wf_done_tell(r, l->send, r->landings.next == &l->node && r->landings.prev == &l->node);
	landed(r, l, 0);
}

void wf_remote_body(struct wf_remote *r, struct wf_lane *lane, bool ok, weft_time now)
{
	struct wf_in *in = &r->in[lane->body.stream];
	uint8_t kind = lane->body.kind;

	r->now = lane->heard = r->heard = now;
	if (!ok || r->err)
		return;
	lane->body.kind = WF_BODY_NONE;
	if (kind == WF_BODY_CHUNK) {
		lane->chunk_got += lane->body_len;
		filled(r, lane);
	}
	if (kind == WF_BODY_EAGER && in->lane == lane) {        /* else the message comes, or has come, elsewhere */
		in->begun = false;
		in->landing = NULL;
		in->next += lane->body.step;
		filled(r, lane);
		lane->acks |= wf_bit(lane->body.stream);
		lane->bodies += lane->body_len;
	}
	if (kind == WF_BODY_EAGER)
		wf_ack_later(r, lane, lane->bodies >= WF_BODIES_MOST);
	else
		wf_ack_chunk(r, lane);
}

int wf_landing_close(struct wf_remote *r, struct wf_landing *l, int err)
{
	if (wf_list_has(&l->node))
		wf_list_del(&l->node);
	if (l->token) {
		wf_numbers_del(&r->tokens, l->token);
		if (l->invited)
			wf_control(r, WF_WIRE_REVOKE, 0, l->token);
		else if (!full(l))
			wf_remote_answer(r, l->send, err ? err : -ECANCELED);
	}
	l->token = 0;
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		if (lane->up && lane->body.landing == l && !lane->body.in)
			lane->body.landing = NULL;
	for (unsigned i = 0; i < WF_STREAMS; i++)
		if (r->in[i].landing == l)
			r->in[i].landing = NULL;
	l->state = l->readers ? TURNED : CLOSED;
	return l->readers ? -EINPROGRESS : 0;
}

void wf_landings_fail(struct wf_remote *r, int err)
{
	while (!wf_list_empty(&r->landings))
		landed(r, wf_of(r->landings.next, struct wf_landing, node), err);
}
