/* far.c - see far.h.
 *
 * Locks: the door of the port covers the request that stands for the far one, as any other. wf_user_lock covers the list of those being fetched, and
 * which receive each is for. `busy` is held by whoever copies, outside of both, and is only tried.
 */
#include "port/far.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mem/segment.h"
#include "port/budget.h"
#include "port/deliver.h"
#include "port/inway.h"
#include "port/listener.h"
#include "port/recv.h"
#include "port/request.h"
#include "port/seek.h"

struct wf_far {
	struct wf_node link;            /* under wf_user_lock: being fetched */
	struct wf_far *next_free;       /* under wf_user_lock */
	struct wf_lock busy;
	/* set when it is made, then constant */
	struct weft_req *send;
	struct wf_peer *peer;
	struct wf_ticket *ticket;
	struct weft_port *at;           /* that counts it */
	struct wf_inway *by;
	bool offer;                     /* asked for; if nobody takes it at once it stays with its sender */
	uint32_t serial;
	/* set when it is taken */
	struct weft_port *port;
	struct weft_req *into;          /* under wf_user_lock: the receive; NULL: of a thread that waits here, or over */
	struct wf_mem mem;
	struct weft_buf *buf;           /* WEFT_ALLOC's */
	size_t len, room;
	uint32_t flags;                 /* of the receive */
	struct weft_status *st;
	/* under busy */
	struct wf_walk walk;
	size_t got;
	struct wf_pipe_head *pipe;
	const char *data;
	uint32_t base;
	struct wf_pipe_place said;      /* as announced; segment 0: the ticket will say */
	bool waits;                     /* its sender is to be woken: constant */
	bool over;
	int err;
};

#define FEW 16                                  /* announcements that every ring may bring */
#define COST (sizeof(struct weft_req) + sizeof(struct wf_far))
static _Atomic size_t announced;                /* of all ports; a count */
static _Atomic uint32_t pulling[WF_PROCESSES];  /* threads that fetch for themselves, by whose it is */
static struct wf_node fetching;                 /* under wf_user_lock */
static _Atomic uint32_t active;                 /* a hint */
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
		memcpy(&in->flight, body, sizeof(in->flight));
		return 0;
	case WF_FAR:
		memcpy(&in->far, body, sizeof(in->far));
		in->len = in->far.len;
		in->payload = body + sizeof(in->far);
		if (in->far.with && in->far.with < WF_WITH_PIPE && (in->far.with != in->len || in->far.with > room - sizeof(in->far)))
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

struct weft_req *wf_far_send(struct weft_port *p, struct wf_incoming *in)
{
	struct wf_ticket *t = wf_f_place_map((uint32_t)(in->src >> 32), &in->far.ticket, sizeof(*t));
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
	f->peer = wf_peer_at((uint32_t)(in->src >> 32));
	f->ticket = t;                  /* NULL: nonsense; claiming it fails */
	f->serial = in->far.serial;
	f->waits = in->far.waits & WF_A_WAITS;
	if (in->far.with == WF_WITH_PIPE)
		memcpy(&f->said, in->payload, sizeof(f->said));
	else
		memset(&f->said, 0, sizeof(f->said));
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
	f->offer = in->far.waits & WF_A_OFFER;
	if (p && !f->offer)
		count_in_locked(p, in->by);
	return r;
undo:
	if (f)
		far_put(f);
	return NULL;
}

static void wake_writer(struct wf_far *f)
{
	uint32_t name;

	if (f->peer->strong)
		wf_fence_slow();                                                /* F1 */
	else
		wf_fence_light();                                               /* F1 */
	name = atomic_load_explicit(&f->ticket->writer, memory_order_relaxed);
	if (wf_unlikely(name))
		wf_peer_wake(f->peer, name);
}

bool wf_far_only_offered(struct weft_req *send)
{
	return send->a.flags & WF_MSG_TICKET && send->far->offer;
}

bool wf_far_claim(struct weft_req *send)
{
	struct wf_far *f = send->far;
	uint64_t open = wf_ticket_word(f->serial, WF_T_OPEN, 0);

	/* acq_rel: K1. */
	if (!f->ticket || !atomic_compare_exchange_strong_explicit(&f->ticket->word, &open, wf_ticket_word(f->serial, WF_T_TAKEN, 0),
								   memory_order_acq_rel, memory_order_relaxed))
		return false;
	if (!f->said.head.segment && send->a.kind == WF_FAR && !atomic_load_explicit(&f->ticket->ready, memory_order_relaxed))
		wake_writer(f);         /* it has waited for this */
	return true;
}

bool wf_far_offered(struct weft_req *send)
{
	struct wf_far *f = send->far;

	if (!(send->a.flags & WF_MSG_TICKET))
		return true;
	return f->ticket && atomic_load_explicit(&f->ticket->word, memory_order_acquire) == wf_ticket_word(f->serial, WF_T_OPEN, 0);   /* K1 */
}

void wf_far_unclaim(struct weft_req *send)
{
	struct wf_far *f = send->far;

	atomic_store_explicit(&f->ticket->word, wf_ticket_word(f->serial, WF_T_OPEN, 0), memory_order_release);        /* K1 */
	wake_writer(f);                 /* it may have wanted to take it back meanwhile */
}

void wf_far_forget(struct weft_req *send)
{
	struct weft_port *p = send->far->at;

	if (p && !send->far->offer)
		count_out_locked(p, send->far->by);
	if (send->buf)
		wf_buf_release(send->buf);
	send->buf = NULL;
	far_put(send->far);
	send->far = NULL;
	wf_req_put(send);
}

void wf_far_answer(struct weft_req *send, int err)
{
	struct wf_far *f = send->far;
	uint64_t open = wf_ticket_word(f->serial, WF_T_OPEN, 0), taken = wf_ticket_word(f->serial, WF_T_TAKEN, 0);
	uint64_t answer = wf_ticket_word(f->serial, err < 0 ? WF_T_REFUSED : WF_T_DONE, err < 0 ? err : 0);

	/* By CAS: it may have been taken back, and its ticket be another's by now. acq_rel: K1. */
	if (f->ticket && (atomic_compare_exchange_strong_explicit(&f->ticket->word, &taken, answer, memory_order_acq_rel,
								  memory_order_relaxed) ||
			  atomic_compare_exchange_strong_explicit(&f->ticket->word, &open, answer, memory_order_acq_rel,
								  memory_order_relaxed)) &&
	    (f->waits || f->offer || err < 0))
		wake_writer(f);
	wf_far_forget(send);
}

/* Where the pipe is, as far as the sender has said. */
static bool pipe_said(struct wf_far *f, struct wf_pipe_place *ret_at)
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
	if (!pipe_said(f, &at))
		return false;
	n = send->a.len / WF_CHUNK + (send->a.len % WF_CHUNK != 0);
	if (n > WF_CHUNKS)
		return false;
	pipe = wf_f_place_map(f->peer->process, &at.head, sizeof(*pipe));
	for (uint32_t i = 0; pipe && i < n; i++)
		if (atomic_load_explicit(&pipe->chunk[(at.base + i) % WF_CHUNKS].seq, memory_order_relaxed) != at.base + i + 1)
			return false;
	return pipe != NULL;
}

/* What the receive is to get, and where. -ENOMEM. */
static int prepare(struct wf_far *f, struct weft_port *p, const struct wf_target *t)
{
	f->port = p;
	f->len = f->send->a.len;
	f->flags = t->flags;
	f->st = t->st;
	f->got = 0;
	f->pipe = NULL;
	f->over = false;
	f->err = 0;
	f->buf = NULL;
	f->mem = *t->mem;
	f->room = t->mem->len;
	if (t->flags & WEFT_ALLOC) {
		f->room = f->len;
		f->mem = wf_mem_plain(NULL, f->len);
	}
	wf_walk_begin(&f->walk, &f->mem);
	return 0;
}

/* [busy] A buffer has come in the ticket: to the receive as it is, or out of it. */
static void land(struct wf_far *f)
{
	struct wf_flight flight = f->ticket->flight;
	struct weft_buf *b;
	size_t n = f->len < f->room ? f->len : f->room;
	int r = wf_buf_land(f->peer->process, &flight, f->len, &b);

	f->over = true;
	if (r < 0) {
		f->err = r == -ENOMEM ? r : -ECONNRESET;
		wf_buf_refuse(f->peer->process, &flight);
		return;
	}
	if (f->flags & WEFT_ALLOC) {
		f->buf = b;
		if (wf_buf_is_shared(b))
			f->st->flags |= WEFT_ST_SHARED;
		return;
	}
	if (!wf_walk_in(&f->walk, b->data, n))
		f->err = -EINVAL;
	else if (f->len > f->room)
		f->err = -EMSGSIZE;
	wf_buf_release(b);
}

/* [busy] Finds the pipe, once the sender has said where it is. */
static bool find_pipe(struct wf_far *f)
{
	struct wf_pipe_place at;

	if (!pipe_said(f, &at)) {
		uint32_t ready = atomic_load_explicit(&f->ticket->ready, memory_order_acquire);         /* K2 */

		if (ready == WF_READY_FLIGHT)
			land(f);
		if (ready == WF_READY_NEVER) {
			f->over = true;
			f->err = -ECONNRESET;
		}
		return false;
	}
	if (f->flags & WEFT_ALLOC && !f->buf) {
		if (wf_buf_alloc(f->len, &f->buf) < 0) {
			f->over = true;
			f->err = -ENOMEM;
			return false;
		}
		f->mem = wf_mem_plain(f->buf->data, f->len);
	}
	f->base = at.base;
	f->pipe = wf_f_place_map(f->peer->process, &at.head, sizeof(*f->pipe));
	f->data = wf_f_place_map(f->peer->process, &at.data, WF_CHUNKS * WF_CHUNK);
	if (!f->pipe || !f->data) {
		f->pipe = NULL;
		f->over = true;
		f->err = -ECONNRESET;
		return false;
	}
	return true;
}

/* [busy] Takes one chunk, if one is there. */
static bool take_chunk(struct wf_far *f)
{
	uint32_t i = f->base + (uint32_t)(f->got / WF_CHUNK);
	const char *from = f->data + i % WF_CHUNKS * WF_CHUNK;
	size_t n = f->len - f->got < WF_CHUNK ? f->len - f->got : WF_CHUNK, fits = f->room > f->got ? f->room - f->got : 0;

	if (wf_acquire32(&f->pipe->chunk[i % WF_CHUNKS].seq) != i + 1)                          /* K3 */
		return false;
	fits = fits < n ? fits : n;
	if (f->mem.kind == WF_MEM_PLAIN)
		memcpy((char *)f->mem.plain + f->got, from, fits);
	else if (!wf_walk_in(&f->walk, from, fits))
		f->err = -EINVAL;
	f->got += n;
	if (f->len > WF_CHUNKS * WF_CHUNK) {    /* else its end tells that all are free */
		atomic_store_explicit(&f->pipe->read, i + 1, memory_order_release);             /* K4 */
		wake_writer(f);
	}
	return true;
}

/* [busy] True: something was done. */
static bool step(struct wf_far *f)
{
	bool moved = false;

	if (f->over)
		return false;
	if (f->pipe || find_pipe(f)) {
		while (f->got < f->len && f->got < f->room && take_chunk(f))
			moved = true;
		if (f->got >= f->len || f->got >= f->room) {
			f->over = true;
			if (!f->err && f->len > f->room)
				f->err = -EMSGSIZE;
		}
	}
	if (!f->over && !moved && wf_peer_died(f->peer->process)) {
		/* What it wrote before it died is all there: look once more behind the news of its death. */
		if (!((f->pipe || find_pipe(f)) && f->got < f->len && take_chunk(f)) && !f->over) {
			f->over = true;
			f->err = -ECONNRESET;
		}
		moved = true;
	}
	return moved || f->over;
}

/* Fetched, or not: the buffer to the status, or home. */
static int result(struct wf_far *f)
{
	bool good = f->err == 0 || f->err == -EMSGSIZE;

	if (f->buf && good)
		f->st->buf = f->buf;
	else if (f->buf)
		wf_buf_release(f->buf);
	f->buf = NULL;
	return f->err;
}

static void name(struct wf_far *f, uint32_t who)
{
	atomic_store_explicit(&f->ticket->reader, who, memory_order_relaxed);   /* ordered by the sleeper's fence */
}

static void nothing(void *arg)
{
	(void)arg;
}

static void sleep_for(struct wf_far *f)
{
	struct wf_parker *me = &wf_self.port->face->parker;

	wf_park_begin(me);
	name(f, wf_self.port->number + 1);
	wf_fence_heavy_far();                                                   /* F1 */
	if (!step(f))
		wf_park(me, weft_in(20 * WEFT_MS), nothing, NULL);      /* bounded: its sender's death is told to the listener */
	wf_park_end(me);
	name(f, 0);
}

int wf_far_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *t)
{
	struct wf_far *f = send->far;
	struct wf_linger w;
	int cancel, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);        /* half a message is nobody's */
	atomic_fetch_add_explicit(&pulling[f->peer->process], 1, memory_order_seq_cst); /* before it looks whether the sender lives: wf_fars_pulling */
	prepare(f, p, t);
	wf_lock(&f->busy);
	wf_linger_init(&w);
	while (!f->over) {
		if (step(f))
			wf_linger_init(&w);
		else if (!wf_linger(&w))
			sleep_for(f);
	}
	wf_unlock(&f->busy);
	r = result(f);
	atomic_fetch_sub_explicit(&pulling[f->peer->process], 1, memory_order_release);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* [no lock, busy] All is there, or never will be: both ends learn of it. */
static void conclude(struct wf_far *f)
{
	struct weft_port *p = f->port;
	struct weft_req *r, *send = f->send;
	int err = result(f);

	wf_lock(&wf_user_lock);
	r = f->into;
	f->into = NULL;
	wf_list_del(&f->link);
	atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
	r->pull = NULL;
	wf_unlock(&wf_user_lock);
	wf_unlock(&f->busy);
	wf_port_enter(p);
	p->copying--;
	if (err == 0 || err == -EMSGSIZE) {
		p->received++;
		p->received_bytes += send->a.len;
		p->copies++;
	}
	wf_req_end_locked(send, err == -ENOMEM ? -ECONNRESET : err == -EMSGSIZE ? 0 : err);     /* f goes with it */
	r->partner = NULL;
	if (!(r->flags & WEFT_REPEAT)) {
		wf_req_end_locked(r, err);
		wf_port_leave(p);
		return;
	}
	p->pins++;
	wf_port_leave(p);
	wf_recv_landed(r, err);
}

/* [busy, which goes] */
static bool step_taken(struct wf_far *f)
{
	bool moved = step(f);

	if (f->over)
		conclude(f);
	else
		wf_unlock(&f->busy);
	return moved;
}

void wf_far_start(struct weft_port *p, struct weft_req *r)
{
	struct wf_target t = { .mem = &r->mem, .flags = r->flags, .st = &r->st };
	struct wf_far *f = r->partner->far;

	prepare(f, p, &t);
	wf_lock(&f->busy);
	wf_lock(&wf_user_lock);
	f->into = r;
	r->pull = f;
	wf_list_add(&fetching, &f->link);
	atomic_fetch_add_explicit(&active, 1, memory_order_relaxed);
	/* Without a fence: the listener, if nobody else waits, looks again soon by itself. */
	if (!wf_self.waiting)
		name(f, WF_SLEEPS_LISTENER);
	wf_unlock(&wf_user_lock);
	step(f);
	if (f->over) {
		conclude(f);
		return;
	}
	wf_unlock(&f->busy);
	if (!wf_self.waiting)
		wf_listener_wake();
}

void wf_far_step(struct weft_req *r)
{
	struct wf_far *f;

	wf_lock(&wf_user_lock);
	f = r->pull;
	if (f && (f->into != r || !wf_trylock(&f->busy)))
		f = NULL;
	wf_unlock(&wf_user_lock);
	if (f)
		step_taken(f);
}

void wf_far_name_locked(struct weft_req *r, uint32_t who)
{
	struct wf_far *f = r->pull;

	if (f && f->into == r)
		name(f, who);
}

/* The first behind @n others that can be had, its busy taken. Under the lock, as conclude takes it out: one found outside of it may be over, or be
 * another's by now. */
static struct wf_far *nth(uint32_t n)
{
	struct wf_far *f = NULL;
	uint32_t i = 0;

	wf_lock(&wf_user_lock);
	for (struct wf_node *at = fetching.next; at && at != &fetching && !f; at = at->next)
		if (i++ >= n) {
			f = wf_of(at, struct wf_far, link);
			if (!wf_trylock(&f->busy))
				f = NULL;
		}
	wf_unlock(&wf_user_lock);
	return f;
}

int wf_fars_step(void)
{
	struct wf_far *f;
	int moved = 0;

	for (uint32_t n = 0; atomic_load_explicit(&active, memory_order_relaxed) && (f = nth(n)) != NULL; n++)
		moved += step_taken(f);
	return moved;
}

bool wf_fars_pulling(uint32_t process)
{
	return atomic_load_explicit(&pulling[process], memory_order_acquire) > 0;
}

bool wf_fars_active(void)
{
	return atomic_load_explicit(&active, memory_order_relaxed) > 0;
}

static bool any_from(uint32_t process)
{
	bool any = false;

	wf_lock(&wf_user_lock);
	for (struct wf_node *at = fetching.next; at && at != &fetching && !any; at = at->next)
		any = wf_of(at, struct wf_far, link)->peer->process == process;
	wf_unlock(&wf_user_lock);
	return any;
}

void wf_fars_dead(uint32_t process)
{
	struct wf_far *f;

	/* Each step finds that its sender is dead. One that somebody is at is stepped by him, or met again here. */
	while (any_from(process)) {
		for (uint32_t n = 0; (f = nth(n)) != NULL; n++) {
			if (f->peer->process == process)
				step_taken(f);
			else
				wf_unlock(&f->busy);
		}
		sched_yield();
	}
}

void wf_fars_abort(struct weft_port *p)
{
	struct wf_far *f;

	for (uint32_t n = 0; (f = nth(n)) != NULL;) {
		if (f->port == p) {
			f->over = true;
			f->err = -ECANCELED;
			conclude(f);
		} else {
			wf_unlock(&f->busy);
			n++;
		}
	}
}

void wf_far_missed(weft_id src)
{
	struct wf_peer *peer = wf_peer_at((uint32_t)(src >> 32));
	struct wf_f_word f = { .word = src };

	if (peer)
		wf_frame_send(peer, WF_F_MISSED, &f, sizeof(f));
}
