/* far.c - see far.h: the request that stands for the far one, from its announcement to its answer. Fetching is in fetch.c. */
#include "port/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/budget.h"
#include "port/deliver.h"
#include "port/inway.h"
#include "port/request.h"
#include "port/seek.h"

#define FEW 16                                  /* announcements that every ring may bring */
#define COST (sizeof(struct weft_req) + sizeof(struct wf_far))
static _Atomic size_t announced;                /* of all ports; a count */
static _Atomic uint32_t standing[WF_PROCESSES]; /* those that are there, by whose they are */
static struct wf_far *free_fars;                /* under wf_user_lock; never given back */

int wf_cell_read_far(struct wf_reader *rd, const unsigned char *body, size_t room, struct wf_incoming *in)
{
	struct wf_inway *w = wf_inway_of(rd);
	uint32_t off;

	in->by = w;
	in->flags &= WF_MSG_READY | WF_MSG_SHARED;
	if (in->kind != WF_GROWN && in->kind != WF_VOID && in->src >> 32 != rd->process)
		return wf_inway_nonsense(w);
	switch (in->kind) {
	case WF_INLINE:
		return in->len <= room ? 0 : wf_inway_nonsense(w);
	case WF_ARENA:
		if (!rd->arena || in->len > WF_ARENA_MOST)
			return wf_inway_nonsense(w);
		off = wf_arena_place(rd->arena_at, in->len, &in->arena_next);
		in->payload = (const unsigned char *)rd->arena + (size_t)off * WF_GRAIN;
		return 0;
	case WF_FLOWN:
		wf_flight_get(body, &in->flight);
		return 0;
	case WF_FAR:
		memcpy(&in->far, body, sizeof(in->far));
		in->len = in->far.len;
		in->payload = body + sizeof(in->far);
		if (in->far.with && in->far.with < WF_WITH_PIPE && (in->far.with != in->len || in->far.with > room - sizeof(in->far)))
			return wf_inway_nonsense(w);
		if (in->far.waits & WF_A_WRITTEN && (in->far.with != WF_WITH_PIPE || in->far.waits != WF_A_WRITTEN || !in->len || in->len > WF_WRITTEN_MOST))
			return wf_inway_nonsense(w);
		return in->len <= PTRDIFF_MAX ? 0 : wf_inway_nonsense(w);
	case WF_GROWN:
		wf_inway_grown(w, body);
		return 1;
	case WF_VOID:
		return 1;
	default:
		return wf_inway_nonsense(w);
	}
}

static struct wf_far *far_get(void)
{
	struct wf_far *f;

	wf_lock(&wf_user_lock);
	f = free_fars;
	if (f)
		free_fars = f->next_free;
	wf_unlock(&wf_user_lock);
	return f ? f : calloc(1, sizeof(*f));
}

static void far_put(struct wf_far *f)
{
	wf_lock(&wf_user_lock);
	f->into = NULL;
	f->next_free = free_fars;
	free_fars = f;
	wf_unlock(&wf_user_lock);
}

/* The short payload that came with an announcement, in a buffer of ours. */
static bool keep_payload(struct weft_req *r, const struct wf_incoming *in)
{
	if (wf_buf_alloc(in->len, &r->buf) < 0)
		return false;
	memcpy(r->buf->data, in->payload, in->len);
	r->a.kind = WF_POOLED;
	return true;
}

/* Those whose senders have taken them back meanwhile leave the queue. */
static void sweep_locked(struct weft_port *p)
{
	struct weft_match_entry *e, *next;

	for (e = wf_first(p, WEFT_MATCH_ARRIVALS); e; e = next) {
		struct wf_arrival *a = wf_of(e, struct wf_arrival, entry);
		struct weft_req *send = wf_of(a, struct weft_req, a);

		next = wf_next(p, e);
		if (!(a->flags & WF_MSG_SENDS) || !(a->flags & WF_MSG_TICKET) || wf_far_offered(send))
			continue;
		wf_unmatch(p, e);
		p->unrequested--;
		wf_far_forget(send);
	}
}

/* Announcements are small, but what they stand for has no bound: beyond an eighth of the budget who has brought many keeps the rest, and is asked
 * for what is wanted (seek.h). */
static void count_in_locked(struct weft_port *p, struct wf_inway *w)
{
	size_t cap = wf_budget.limit / 8;

	w->announced++;
	atomic_fetch_add_explicit(&announced, 1, memory_order_relaxed);
	if (w->clogged || w->announced < FEW || COST * atomic_load_explicit(&announced, memory_order_relaxed) <= cap)
		return;
	sweep_locked(p);
	if (w->announced >= FEW && COST * atomic_load_explicit(&announced, memory_order_relaxed) > cap / 2)
		wf_seek_clog_locked(p, w);
}

static void count_out_locked(struct weft_port *p, struct wf_inway *w)
{
	atomic_fetch_sub_explicit(&announced, 1, memory_order_relaxed);
	if (atomic_load_explicit(&w->port, memory_order_relaxed) != p || !w->announced)
		return;                 /* it has closed since, and is perhaps another's */
	w->announced--;
	if (w->clogged && (w->announced < FEW / 2 || COST * atomic_load_explicit(&announced, memory_order_relaxed) < wf_budget.limit / 16))
		wf_seek_unclog_locked(p, w);
}

/* What was announced. */
static void far_of(struct wf_far *f, const struct wf_incoming *in)
{
	uint32_t process = (uint32_t)(in->src >> 32);
	bool written = in->far.waits & WF_A_WRITTEN;

	f->peer = wf_peer_at(process);
	f->ticket = written ? NULL : wf_f_place_map(process, &in->far.ticket, sizeof(*f->ticket));     /* NULL: nonsense; claiming it fails */
	f->serial = in->far.serial;
	f->piped = false;
	f->waits = in->far.waits & WF_A_WAITS;
	f->offer = in->far.waits & WF_A_OFFER;
	if (in->far.with == WF_WITH_PIPE)
		memcpy(&f->said, in->payload, sizeof(f->said));
	else
		memset(&f->said, 0, sizeof(f->said));
	f->written = written ? wf_pipe_map(process, &f->said.head) : NULL;
	f->len = in->len;
}

struct weft_req *wf_far_send(struct weft_port *p, struct wf_incoming *in)
{
	struct wf_far *f = far_get();
	struct weft_req *r = f ? wf_req_new(WF_SEND) : NULL;

	if (!r)
		goto undo;
	r->a.kind = WF_FAR;
	if (in->far.with < WF_WITH_PIPE && in->far.with == in->len && !keep_payload(r, in)) {
		wf_req_put(r);
		goto undo;
	}
	f->send = r;
	far_of(f, in);
	r->far = f;
	r->detached = true;
	r->flags = WEFT_SYNC;           /* not to be copied before it is wanted */
	r->a.src = in->src;
	r->a.len = in->len;
	r->a.index = in->index;
	r->a.flags = in->flags | WF_MSG_SENDS | WF_MSG_TICKET;
	r->a.entry.side = 0;
	memcpy(r->a.entry.head, in->head, WF_HEAD_ROOM);
	f->at = p;
	f->by = in->by;
	if (!f->offer)
		count_in_locked(p, in->by);
	atomic_fetch_add_explicit(&standing[f->peer->process], 1, memory_order_relaxed);
	return r;
undo:
	if (f)
		far_put(f);
	return NULL;
}

void wf_far_wake(struct wf_far *f)
{
	if (f->ticket)
		wf_peer_wake_named(f->peer, &f->ticket->writer);
}

bool wf_far_claim(struct weft_req *send)
{
	struct wf_far *f = send->far;
	uint64_t open = wf_ticket_word(f->serial, WF_T_OPEN, 0);

	if (f->written)
		return true;            /* its sender cannot take it back */
	/* acq_rel: K1. */
	if (!f->ticket || !atomic_compare_exchange_strong_explicit(&f->ticket->word, &open, wf_ticket_word(f->serial, WF_T_TAKEN, 0),
								   memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (!f->said.head.segment && send->a.kind == WF_FAR && !atomic_load_explicit(&f->ticket->ready, memory_order_relaxed))
		wf_far_wake(f);         /* it has waited for this */
	return true;
}

bool wf_far_offered(struct weft_req *send)
{
	struct wf_far *f = send->far;

	if (!(send->a.flags & WF_MSG_TICKET))
		return true;
	return f->written ||
	       (f->ticket && atomic_load_explicit(&f->ticket->word, memory_order_acquire) == wf_ticket_word(f->serial, WF_T_OPEN, 0));  /* K1 */
}

void wf_far_unclaim(struct weft_req *send)
{
	struct wf_far *f = send->far;

	if (!f->ticket)
		return;
	atomic_store_explicit(&f->ticket->word, wf_ticket_word(f->serial, WF_T_OPEN, 0), memory_order_release);        /* K1 */
	wf_far_wake(f);                 /* it may have wanted to take it back meanwhile */
}

void wf_far_forget(struct weft_req *send)
{
	struct weft_port *p = send->far->at;

	if (!send->far->offer)
		count_out_locked(p, send->far->by);
	if (send->buf)
		wf_buf_release(send->buf);
	send->buf = NULL;
	atomic_fetch_sub_explicit(&standing[send->far->peer->process], 1, memory_order_release);        /* nobody looks at its ticket any more */
	far_put(send->far);
	send->far = NULL;
	wf_req_put(send);
}

uint64_t wf_far_taken(const struct wf_far *f)
{
	return wf_ticket_word(f->serial, f->piped ? WF_T_PIPED : WF_T_TAKEN, 0);
}

void wf_far_emptied(struct wf_far *f)
{
	atomic_store_explicit(&f->written->reader, 0, memory_order_relaxed);
	atomic_store_explicit(&f->written->read, f->said.base + wf_pieces_of(f->len), memory_order_release);      /* K4 */
}

static void answer(struct wf_far *f, int err)
{
	uint64_t open = wf_ticket_word(f->serial, WF_T_OPEN, 0), taken = wf_far_taken(f);
	uint64_t said = wf_ticket_word(f->serial, err < 0 ? WF_T_REFUSED : WF_T_DONE, err < 0 ? err : 0);

	if (f->written)
		wf_far_emptied(f);
	/* By CAS: it may have been taken back, and its ticket be another's by now. acq_rel: K1. */
	if (f->ticket && (atomic_compare_exchange_strong_explicit(&f->ticket->word, &taken, said, memory_order_acq_rel,
								  memory_order_relaxed) ||
			  atomic_compare_exchange_strong_explicit(&f->ticket->word, &open, said, memory_order_acq_rel,
								  memory_order_relaxed)) &&
	    (f->waits || f->offer || err < 0))
		wf_far_wake(f);
}

void wf_far_answer(struct weft_req *send, int err)
{
	answer(send->far, err);
	wf_far_forget(send);
}

void wf_far_turn_away(const struct wf_incoming *in, int err)
{
	struct wf_far f;

	far_of(&f, in);
	answer(&f, err);
}

bool wf_far_pipe(struct wf_far *f, struct wf_pipe_place *ret_at)
{
	*ret_at = f->said;
	if (ret_at->head.segment)
		return true;
	if (!f->ticket || atomic_load_explicit(&f->ticket->ready, memory_order_acquire) != WF_READY_PIPE)        /* K2 */
		return false;
	*ret_at = f->ticket->pipe;
	return true;
}

bool wf_far_whole(struct weft_req *send)
{
	struct wf_far *f = send->far;
	struct wf_pipe_head *pipe;
	struct wf_pipe_place at;
	size_t n;

	if (send->buf)
		return true;
	if (!wf_far_pipe(f, &at))
		return false;
	n = f->written ? wf_pieces_of(send->a.len) : send->a.len / WF_CHUNK + (send->a.len % WF_CHUNK != 0);
	if (n > WF_CHUNKS)
		return false;
	pipe = wf_pipe_map(f->peer->process, &at.head);
	for (uint32_t i = 0; pipe && i < n; i++)
		if (atomic_load_explicit(&pipe->chunk[(at.base + i) % WF_CHUNKS].seq, memory_order_relaxed) != at.base + i + 1)
			return false;
	return pipe != NULL;
}

bool wf_fars_of(uint32_t process)
{
	return atomic_load_explicit(&standing[process], memory_order_acquire) > 0;
}

void wf_far_missed(weft_id src)
{
	struct wf_peer *peer = wf_peer_at((uint32_t)(src >> 32));
	struct wf_f_missed f = { .src = src, .times = 1 };

	if (peer)
		wf_frame_send(peer, WF_F_MISSED, &f, sizeof(f));
}
