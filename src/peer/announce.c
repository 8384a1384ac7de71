/* announce.c - announced messages: how many the receiver holds, where the rest waits, and how it is asked for.
 *
 * Sending end. A destination (to, context) exists while announcements to it are out or a backlog waits for it. Announced are at most conf.cap at
 *   a time, and one more for a destination that has none out; the rest is the destination's backlog, by priority, and everything later to the same
 *   destination and priority waits behind it. Messages to other destinations do not. BACKLOG tells the receiver, CLEAR that it is over.
 * Asking. A receive that finds nothing where a backlog is known sends SEEK. The port looks through the backlog in order (wf_remote_seek_next) and
 *   offers the first that matches. It is for that receive and no other: another one that fits may have wanted something that waits before it. An
 *   offer is taken at once or given back to its old place (ENDED -EAGAIN), so order is kept; for the same reason there is one offer per
 *   destination at a time: with a second one out, the first may come back and would be overtaken. Nothing found: nothing of the want is
 *   remembered but that there was one (sought), and the next message that joins the backlog makes BACKLOG go again. So does the end of an offer
 *   while another was asked for.
 * Clogs. Credit is one sum for all ports of a process. So that one that does not receive leaves some to the others, the receiving process may
 *   say CLOG: all that is for that port is announced.
 * Receiving end. What nobody wants yet is held, by number, so that its sender can take it back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer/inner.h"

static struct wf_rdest **bucket(struct wf_remote *r, uint32_t to, uint64_t context)
{
	uint64_t h = (to ^ context * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return &r->dests[h >> 58];
}

_Static_assert(WF_RDESTS == 64, "six bits of the hash");

struct wf_rdest *wf_dest_find(struct wf_remote *r, uint32_t to, uint64_t context)
{
	for (struct wf_rdest *d = *bucket(r, to, context); d; d = d->next)
		if (d->to == to && d->context == context)
			return d;
	return NULL;
}

struct wf_rdest *wf_dest_get(struct wf_remote *r, uint32_t to, uint64_t context)
{
	struct wf_rdest **b = bucket(r, to, context), *d = wf_dest_find(r, to, context);

	if (d)
		return d;
	d = r->dest_free;
	if (d)
		r->dest_free = d->next;
	else
		d = malloc(sizeof(*d));
	if (!d)
		return NULL;
	memset(d, 0, sizeof(*d));
	d->to = to;
	d->context = context;
	for (unsigned c = 0; c < WF_CLASSES; c++)
		wf_list_init(&d->queue[c]);
	d->next = *b;
	*b = d;
	r->ndests++;
	return d;
}

void wf_dest_put(struct wf_remote *r, struct wf_rdest *d)
{
	struct wf_rdest **b = bucket(r, d->to, d->context);

	if (d->count || d->outstanding || d->clogged)
		return;
	while (*b != d)
		b = &(*b)->next;
	*b = d->next;
	d->next = r->dest_free;
	r->dest_free = d;
	r->ndests--;
}

void wf_dests_fini(struct wf_remote *r)
{
	for (unsigned i = 0; i <= WF_RDESTS; i++)
		for (struct wf_rdest *d = i < WF_RDESTS ? r->dests[i] : r->dest_free, *next; d; d = next) {
			next = d->next;
			free(d);
		}
}

static void tell(struct wf_remote *r, uint8_t type, uint32_t to, uint64_t context)
{
	wf_control(r, type, to, context);
}

void wf_dest_queue(struct wf_remote *r, struct wf_rdest *d, struct wf_rsend *s)
{
	wf_expect(r);
	s->state = WF_S_BACKLOG;
	s->dest = d;
	wf_list_add(&d->queue[3 - s->prio], &s->node);
	r->held_back++;
	if (!d->count++)
		wf_list_add(&r->backlogs, &d->node);
	if (d->count == 1 || d->sought)
		tell(r, WF_WIRE_BACKLOG, d->to, d->context);
	d->sought = false;
}

void wf_dest_unqueue(struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_rdest *d = s->dest;
	bool offered = d->offered == s;

	wf_list_del(&s->node);
	if (offered) {
		d->offered = NULL;
		if (d->sought && d->count > 1) {
			d->sought = false;
			tell(r, WF_WIRE_BACKLOG, d->to, d->context);
		}
	}
	s->dest = NULL;
	r->held_back--;
	if (!--d->count) {
		wf_list_del(&d->node);
		tell(r, WF_WIRE_CLEAR, d->to, d->context);
	}
	wf_dest_put(r, d);
	if (offered && !wf_ends(r))
		wf_backlogs_drain(r);           /* what stood behind it */
}

void wf_dest_answered(struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_rdest *d = s->dest;

	s->dest = NULL;
	d->outstanding--;
	r->announced--;
	wf_dest_put(r, d);
	if (!wf_list_empty(&r->backlogs) && !wf_ends(r))
		wf_backlogs_drain(r);
}

/* The first of each priority goes as far as its destination and its stream let it. True: one went. */
static bool drain(struct wf_remote *r, struct wf_rdest *d)
{
	for (unsigned c = 0; c < WF_CLASSES; c++) {
		struct wf_rsend *s = wf_of(d->queue[c].next, struct wf_rsend, node);
		struct wf_out *out;
		int rc;

		if (wf_list_empty(&d->queue[c]) || s->state == WF_S_OFFERED)
			continue;
		out = r->out[wf_stream_of(s)];
		d->count++;                                     /* keeps it */
		wf_dest_unqueue(r, s);
		d->count--;
		rc = wf_send_launch(r, out, s, d);
		if (rc == -EAGAIN || rc == -EBUSY) {
			s->node = (struct wf_node){ d->queue[c].next, &d->queue[c] };
			s->node.next->prev = d->queue[c].next = &s->node;
			d->count++;
			r->held_back++;
			s->dest = d;
			if (rc == -EAGAIN)
				r->stuck |= wf_bit(out->id);
			continue;
		}
		if (rc) {
			s->state = WF_S_NONE;
			wf_send_over(r, s, rc == WEFT_DONE ? 0 : rc);
		}
		if (!d->count) {
			wf_list_del(&d->node);
			tell(r, WF_WIRE_CLEAR, d->to, d->context);
			wf_dest_put(r, d);
		}
		return true;
	}
	return false;
}

void wf_backlogs_drain(struct wf_remote *r)
{
	bool went = true;

	while (went && !wf_ends(r)) {
		struct wf_node *l = r->backlogs.next, *next;

		went = false;
		for (; l != &r->backlogs; l = next) {
			next = l->next;
			went |= drain(r, wf_of(l, struct wf_rdest, node));
		}
	}
}

/* ---- ports that take too much ---- */

int wf_dest_clog(struct wf_remote *r, uint32_t to, uint64_t context, bool on)
{
	struct wf_rdest *d = wf_dest_find(r, to, context);

	if (on == (d && d->clogged) || (on && r->nclogs == WF_CLOGS))
		return 0;
	d = d ? d : wf_dest_get(r, to, context);
	if (!d)
		return 0;                       /* its messages cost credit as before */
	d->clogged = on;
	r->nclogs += on ? 1u : -1u;
	wf_dest_put(r, d);
	return 0;
}

void wf_remote_clog(struct wf_remote *r, uint32_t to, uint64_t context, bool on)
{
	unsigned char frame[16];

	wf_wire_put(frame, WF_WIRE_CLOG, on, to, context);
	wf_control_put(r, frame, sizeof(frame));
}

/* ---- asking ---- */

struct wf_rsend *wf_remote_seek_next(struct wf_remote *r, uint32_t to, uint64_t context, struct wf_rsend *prev)
{
	struct wf_rdest *d = prev ? prev->dest : wf_dest_find(r, to, context);
	unsigned c = prev ? (unsigned)(3 - prev->prio) : 0;

	if (prev && prev->node.next != &d->queue[c])
		return wf_of(prev->node.next, struct wf_rsend, node);
	for (c = prev ? c + 1 : 0; d && c < WF_CLASSES; c++)
		if (!wf_list_empty(&d->queue[c]))
			return wf_of(d->queue[c].next, struct wf_rsend, node);
	return NULL;
}

void wf_remote_offer(struct wf_remote *r, struct wf_rsend *s, uint64_t name, weft_time now)
{
	struct wf_rdest *d = s->dest;

	r->now = now;
	if (d->offered) {
		d->sought = true;
		return;
	}
	d->offered = s;
	s->token = name;
	s->state = WF_S_OFFERED;
	s->offer_due = true;
	wf_send_ask(r, s);
}

void wf_remote_sought(struct wf_remote *r, uint32_t to, uint64_t context)
{
	struct wf_rdest *d = wf_dest_find(r, to, context);

	if (d && d->count)
		d->sought = true;
	else if (!r->err)
		tell(r, WF_WIRE_CLEAR, to, context);
}

void wf_offer_back(struct wf_remote *r, struct wf_rsend *s)
{
	struct wf_rdest *d = s->dest;

	if (s->asked) {
		wf_send_over(r, s, -ECANCELED);
		return;
	}
	s->state = WF_S_BACKLOG;
	wf_numbers_del(&r->sends, s->number);
	s->number = 0;                  /* an answer to this offer that is still on its way names nothing */
	d->offered = NULL;
	if (d->sought) {
		d->sought = false;
		tell(r, WF_WIRE_BACKLOG, d->to, d->context);
	}
	wf_backlogs_drain(r);
}

int wf_remote_seek(struct wf_remote *r, uint32_t to, uint64_t context, uint64_t name, const void *want, size_t len)
{
	unsigned char frame[512];
	struct wf_out *out = r->out[0];

	if (wf_ends(r))
		return wf_ends(r);
	if (len > sizeof(frame) - 24)
		return -EMSGSIZE;
	if (r->seek_refused || (out && out->rt.tail - out->rt.acked > WF_RETAIN_MOST / 4)) {
		r->seek_refused = true;
		return -EAGAIN;
	}
	wf_wire_put(frame, WF_WIRE_SEEK, 0, to, context);
	wf_wire_head(frame, WF_WIRE_SEEK, 0, 24 + len);
	wf_put64(frame + 16, name);
	memcpy(frame + 24, want, len);
	wf_control_put(r, frame, 24 + len);
	return 0;
}

/* ---- the receiving end ---- */

static struct wf_held **held_bucket(struct wf_remote *r, uint64_t send)
{
	return &r->held[(send ^ send >> 32) & (r->held_size - 1)];
}

/* Twice the buckets, if there is memory; else the chains are longer. */
static void held_grow(struct wf_remote *r)
{
	uint32_t size = 2 * r->held_size;
	struct wf_held **old = r->held, **held = calloc(size, sizeof(*held));

	if (!held)
		return;
	uint32_t n = r->held_size;

	r->held = held;
	r->held_size = size;
	for (uint32_t i = 0; i < n; i++)
		for (struct wf_held *h = old[i], *next; h; h = next) {
			struct wf_held **b = held_bucket(r, h->send);

			next = h->next;
			h->next = *b;
			*b = h;
		}
	free(old);
}

void wf_remote_hold(struct wf_remote *r, struct wf_held *h)
{
	struct wf_held **b;

	if (r->nheld >= r->held_size)
		held_grow(r);
	b = held_bucket(r, h->send);
	h->next = *b;
	*b = h;
	r->nheld++;
}

struct wf_held *wf_remote_held(struct wf_remote *r, uint64_t send)
{
	struct wf_held *h = *held_bucket(r, send);

	while (h && h->send != send)
		h = h->next;
	return h;
}

void wf_remote_release(struct wf_remote *r, struct wf_held *h)
{
	struct wf_held **b = held_bucket(r, h->send);

	while (*b && *b != h)
		b = &(*b)->next;
	if (!*b)
		return;
	*b = h->next;
	r->nheld--;
}

void wf_remote_answer(struct wf_remote *r, uint64_t send, int err)
{
	if (send)
		wf_control(r, WF_WIRE_ENDED, (uint32_t)-err, send);
}

void wf_remote_late(struct wf_remote *r, uint64_t send)
{
	wf_control(r, WF_WIRE_LATE, 0, send);
}
