/* announce.c - the beginning of a push: a send is announced, or waits in its way's backlog. See push.h.
 *
 * Run by whoever sends; by who writes a backlog (way.c, seek.c).
 */
#include <errno.h>
#include <string.h>

#include "mem/atlas.h"
#include "port/eager.h"
#include "port/listener.h"
#include "port/outgoing.h"
#include "port/push.h"

/* Did the port say that it has enough of our announcements? The box of a way that has ended is somebody else's memory. */
static bool clogged(const struct outgoing *o)
{
	uint64_t t = atomic_load_explicit(&o->way->tail, memory_order_acquire);

	return WF_WAY_INCARNATION(t) == o->who && !(t & WF_WAY_SHUT) &&
	       atomic_load_explicit(&o->way->box->clogged, memory_order_relaxed);
}

_Static_assert(sizeof(struct wf_announcement) + WF_HEAD_ROOM <= WF_BODY - WF_HEAD_ROOM, "an offer, with what was asked for, fits a foreign cell");

/* [wf_user_lock] Announces @r through @w: 0, or as wf_way_refused. The cell tells of the ticket, and holds a short payload; or @asked, which is
 * answered with it. */
static int announce_locked(struct outgoing *o, struct weft_req *r, uint64_t allow, const void *asked)
{
	struct wf_push *u = r->push;
	struct wf_announcement a = { .len = o->len, .waits = u->sync || o->len > WF_CHUNKS * WF_CHUNK ? WF_A_WAITS : 0 };
	size_t room = wf_outgoing_room(o) - sizeof(a);
	unsigned char flat[WF_BODY], *body;
	struct wf_claimed c;
	struct wf_mem to = wf_mem_plain(flat, room);
	bool never;
	int claim;

	if (!asked && clogged(o))
		return WF_CLAIM_FULL;
	if (asked)
		a.waits |= WF_A_OFFER;
	if (o->buf) {
		a.with = WF_WITH_BUFFER;
	} else if (o->len <= room && !asked) {
		if (!wf_mem_copy(&to, &o->mem, o->len))
			return weft_fail(-EINVAL, "op.layout gave no pieces");
		a.with = (uint32_t)o->len;
	}
	if (!u->ticket && !(u->ticket = wf_ticket_get_locked(u->peer->process, u->name, &u->serial)))
		return weft_fail(-ENOMEM, "no memory for an announcement");
	if (!a.with && o->len && !asked && !u->lies.segment && (u->pipe = wf_pipe_get_locked(u->peer->process, false, &never)) != NULL) {
		u->early = true;
		u->base = u->pipe->written;
		a.with = WF_WITH_PIPE;
	}
	a.ticket = wf_f_place_of(u->ticket);
	a.serial = u->serial;
	claim = wf_way_claim(o->way, o->who, 0, allow, &c);
	if (claim != WF_CLAIMED) {
		wf_push_unticket_locked(u);
		return claim;
	}
	body = wf_outgoing_fill(c.cell, o, WF_FAR);
	memcpy(body, &a, sizeof(a));
	if (a.with == WF_WITH_PIPE) {
		struct wf_pipe_place at = wf_pipe_place(u->pipe, u->base);

		memcpy(body + sizeof(a), &at, sizeof(at));
	} else if (a.with && !o->buf) {
		memcpy(body + sizeof(a), flat, a.with);
		u->written = o->len;
	}
	if (asked)
		memcpy(body + sizeof(a), asked, WF_HEAD_ROOM);
	wf_push_announced_locked(u);
	wf_way_publish(o->way, &c);
	return 0;
}

/* A message in a request, as it was when it was posted. */
static void outgoing_of(struct wf_way *w, struct weft_req *r, struct outgoing *o)
{
	struct wf_head h;

	memcpy(&h, r->a.entry.head, sizeof(h));
	memset(o, 0, sizeof(*o));
	o->from = r->from;
	o->way = w;
	o->who = w->who;
	o->id = r->st.from;
	o->allow = r->from->proto ? WF_TAIL_FOREIGN : 0;
	o->tag = r->from->proto ? 0 : h.tag;
	o->head = r->a.entry.head;
	o->mem = r->mem;
	o->buf = r->buf;
	o->len = r->a.len;
	o->kind = r->a.kind;
	o->flags = r->a.flags & (WF_MSG_READY | WF_MSG_SHARED);
}

static bool goes_eagerly(const struct weft_req *r, const struct outgoing *o)
{
	return !(r->flags & (WEFT_SYNC | WEFT_RENDEZVOUS)) && (o->buf || wf_far_may_eager(o->mem.kind == WF_MEM_PLAIN ? o->mem.plain : NULL, o->len));
}

/* Announces, and where the flags of the port want more than room says so. */
static int announce(struct outgoing *o, struct weft_req *r, uint64_t allow)
{
	int err;

	do {
		err = announce_locked(o, r, allow, NULL);
		if (err > 0) {
			err = wf_way_refused(o->way, o->who, err);
			if (err == -ENOBUFS) {          /* no budget there: an announcement is what it wants */
				err = announce_locked(o, r, allow | WF_ALLOW_TIGHT, NULL);
				err = err > 0 ? wf_way_refused(o->way, o->who, err) : err;
				err = err == -ENOBUFS ? -EINTR : err;
			}
		}
	} while (err == -EINTR);
	return err;
}

int wf_push_write_locked(struct wf_way *w, struct weft_req *r)
{
	struct outgoing o;
	int err = -ENOBUFS;

	if (r->push->ticket)
		return -EAGAIN;         /* on offer: what is behind it waits for the answer */
	outgoing_of(w, r, &o);
	if (goes_eagerly(r, &o)) {
		err = wf_far_eager(&o, WF_WAY_BACKLOG);
		if (err == 0) {
			r->buf = NULL;
			wf_way_unqueue_locked(w, r);
			wf_push_end_locked(r, 0);
			return 0;
		}
	}
	if (err == -ENOBUFS)
		err = announce(&o, r, WF_WAY_BACKLOG);
	if (err == -EAGAIN || err == -ENOMEM)
		return -EAGAIN;
	wf_way_unqueue_locked(w, r);
	if (err < 0)
		wf_push_end_locked(r, err == -ESRCH ? -ECONNRESET : err);
	return 0;
}

/* Where the receiver can read the message by itself; segment 0: nowhere, it goes through a pipe. Looked for from 8 KiB on: shorter ones, and up
 * to 16 KiB what cannot be read, are copied beside the mailbox, and done. There is no size at which two copies, made by both ends at once, would be faster. Half a round trip on two cores of a Neoverse-V1, us:
 *
 *            16 KiB  64 KiB  256 KiB  1 MiB  16 MiB
 *   pipe       1.60    3.29     12.0   53.1     951
 *   memory     0.92    1.92      5.9   28.6     662      and with both processes on one core less than half at 256 KiB and more
 */
static struct wf_memory_place lies_at(const struct outgoing *o)
{
	struct wf_place at;

	if (o->buf || o->len <= WF_READABLE_LEAST || o->mem.kind != WF_MEM_PLAIN || !wf_place_of_all(o->mem.plain, o->len, &at))
		return (struct wf_memory_place){ 0 };
	return (struct wf_memory_place){ .segment = at.segment, .offset = at.offset };
}

int wf_push_start(struct outgoing *o, struct weft_req *r)
{
	struct wf_push *u;
	int err = -EAGAIN;
	bool announced, busy = false;

	wf_lock(&wf_user_lock);
	u = wf_push_new_locked();
	if (!u) {
		wf_unlock(&wf_user_lock);
		return weft_fail(-ENOMEM, "no memory for a send to another process");
	}
	r->push = u;
	u->req = r;
	u->way = o->way;
	u->peer = o->way->peer;
	u->ticket = NULL;
	u->pipe = NULL;
	u->offered = false;
	u->handed = u->done = false;
	u->src = atomic_load_explicit(&o->from->id, memory_order_relaxed);
	u->to = o->id;
	u->context = o->context;
	u->name = o->blocks ? 0 : WF_SLEEPS_LISTENER;
	u->len = o->len;
	u->written = 0;
	u->mem = o->buf ? wf_mem_plain(NULL, 0) : o->mem;
	u->buffer = o->buf;
	u->lies = lies_at(o);
	u->sync = r->flags & (WEFT_SYNC | WEFT_RENDEZVOUS) || u->buffer || u->lies.segment;     /* its end is the receiver's to tell */
	wf_walk_begin(&u->walk, &u->mem);
	/* Under the lock: when it expires it is announced or queued, or it would not be found. */
	if (r->expires && wf_timer_add(r) < 0) {
		r->push = NULL;
		wf_push_put_locked(u);
		wf_unlock(&wf_user_lock);
		return -ENOMEM;
	}
	/* What can go eagerly does, as soon as it can: a buffer that was announced would wait for a receive. */
	if (!o->way->backlogged && !goes_eagerly(r, o)) {
		busy = wf_trylock(&u->busy);    /* before: behind the publication an acquire would wait until the cell is with the other core */
		err = announce(o, r, 0);
	}
	if (err == -EAGAIN || err == -ENOMEM)
		err = wf_way_queue_locked(o->way, o->who, r);
	announced = err == 0 && u->ticket;
	if (busy && !announced)
		wf_unlock(&u->busy);
	if (err < 0) {
		r->push = NULL;
		wf_push_put_locked(u);
	}
	wf_unlock(&wf_user_lock);
	if (busy && announced)
		wf_push_begin(u);
	wf_pushes_reap();               /* behind what is sent now: looking at answers costs a line each */
	if (err == 0 && !announced)
		wf_way_flush(o->way);
	if (err == 0 && !o->blocks && wf_pushes_silent() == 1)
		wf_listener_wake();             /* the first in a while: it is to look after it soon */
	return err == -ESRCH || err == -EPROTO ? wf_id_fail(err, o->id) : err;
}

bool wf_push_offer_locked(struct wf_way *w, struct weft_req *r, const void *asked)
{
	struct outgoing o;

	if (r->push->ticket && !wf_push_back_locked(r->push))
		return true;            /* is on offer */
	if (r->cancel) {                /* and was to be taken back while it was */
		wf_push_leave_locked(r, r->cancel);
		return false;
	}
	outgoing_of(w, r, &o);
	if (announce_locked(&o, r, WF_WAY_BACKLOG | WF_ALLOW_TIGHT, asked) == 0)
		r->push->offered = true;        /* else it will be asked for again */
	return true;
}
