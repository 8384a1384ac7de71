/* fetch.c - the bytes of an announced message of another process: out of its pipe, its memory, or a buffer, to the receive that has claimed it. See far.h.
 *
 * Run by whoever waits for the receive, step by step; by the listener if nobody does. One at a time for each message, by its `busy`.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "mem/atlas.h"
#include "mem/share.h"
#include "port/deliver.h"
#include "port/far.h"
#include "port/inway.h"
#include "port/listener.h"
#include "port/recv.h"
#include "port/request.h"
#include "port/train.h"

#define AHEAD 2048              /* bytes: copied in about the time a line takes to come from another core */
#define PART ((size_t)4 << 20)  /* bytes copied out of another's memory before anything else has its turn: below a millisecond */

static _Atomic uint32_t pulling[WF_PROCESSES];  /* threads that fetch for themselves, by whose it is */
static struct wf_node fetching;                 /* under wf_user_lock */
static _Atomic uint32_t active;                 /* a hint */

/* What the receive is to get, and where. */
static void prepare(struct wf_far *f, struct weft_port *p, const struct wf_target *t)
{
	f->port = p;
	f->flags = t->flags;
	f->st = t->st;
	f->got = 0;
	f->pipe = NULL;
	f->lies = false;
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

/* [busy] It ends here; false. */
static bool fails(struct wf_far *f, int err)
{
	f->over = true;
	f->err = err;
	return false;
}

/* [busy] Bytes come: WEFT_ALLOC's buffer for them. */
static bool make_room(struct wf_far *f)
{
	if (!(f->flags & WEFT_ALLOC) || f->buf)
		return true;
	if (wf_buf_alloc(f->len, &f->buf) < 0)
		return fails(f, -ENOMEM);
	f->mem = wf_mem_plain(f->buf->data, f->len);
	return true;
}

static bool find_pipe(struct wf_far *f, const struct wf_pipe_place *at)
{
	f->base = at->base;
	f->pipe = wf_pipe_map(f->peer->process, &at->head);
	f->data = wf_f_place_map(f->peer->process, &at->data, WF_CHUNKS * WF_CHUNK);
	if (f->pipe && f->data && (!f->written || at->start <= WF_CHUNKS * WF_CHUNK - f->len))
		return true;
	f->pipe = NULL;
	return fails(f, -ECONNRESET);
}

/* [busy] Are there bytes to be had? Finds them, once the sender has said where. */
static bool find(struct wf_far *f)
{
	struct wf_pipe_place at;

	if (f->pipe || f->lies)
		return true;
	if (wf_far_pipe(f, &at))
		return make_room(f) && find_pipe(f, &at);
	if (!f->ticket)
		return fails(f, -ECONNRESET);           /* nonsense */
	switch (atomic_load_explicit(&f->ticket->ready, memory_order_acquire)) {        /* K2 */
	case WF_READY_FLIGHT:
		land(f);
		return false;
	case WF_READY_NEVER:
		return fails(f, -ECONNRESET);
	case WF_READY_MEMORY:
		f->place = f->ticket->memory;           /* once: it is checked whenever it is used */
		return f->lies = !f->piped && make_room(f);
	default:
		return false;
	}
}

/* Towards the end of a chunk the word of the next is asked for: more often than not that one is there by then, too. */
static void copy_chunk(char *to, const char *from, size_t n, const void *next)
{
	size_t most = n > AHEAD ? n - AHEAD : 0;

	memcpy(to, from, most);
	wf_read_ahead(next);
	memcpy(to + most, from + most, n - most);
}

/* [busy] Takes one chunk, if one is there. */
static bool take_chunk(struct wf_far *f)
{
	uint32_t i = f->base + (f->written ? wf_piece_number(f->got) : (uint32_t)(f->got / WF_CHUNK));
	const char *from = f->data + (f->written ? f->said.start + f->got : i % WF_CHUNKS * WF_CHUNK);
	size_t most = f->written ? wf_piece_bytes(f->got) : WF_CHUNK;
	size_t n = f->len - f->got < most ? f->len - f->got : most, fits = f->room > f->got ? f->room - f->got : 0;

	if (wf_acquire32(&f->pipe->chunk[i % WF_CHUNKS].seq) != i + 1)                          /* K3 */
		return false;
	fits = fits < n ? fits : n;
	if (f->mem.kind == WF_MEM_PLAIN)
		copy_chunk((char *)f->mem.plain + f->got, from, fits, &f->pipe->chunk[(i + 1) % WF_CHUNKS]);
	else if (!wf_walk_in(&f->walk, from, fits))
		f->err = -EINVAL;
	f->got += n;
	if (f->len > WF_CHUNKS * WF_CHUNK) {    /* else its end tells that all are free */
		atomic_store_explicit(&f->pipe->read, i + 1, memory_order_release);             /* K4 */
		wf_far_wake(f);
	}
	return true;
}

/* [busy] Its memory cannot be mapped, for lack of ours. It is to come as any other, from its beginning. */
static bool ask_for_pipe(struct wf_far *f)
{
	uint64_t taken = wf_far_taken(f);

	f->lies = false;
	f->got = 0;
	wf_walk_begin(&f->walk, &f->mem);
	/* acq_rel: K1. */
	f->piped = atomic_compare_exchange_strong_explicit(&f->ticket->word, &taken, wf_ticket_word(f->serial, WF_T_PIPED, 0),
							   memory_order_acq_rel, memory_order_relaxed);
	if (!f->piped)
		return fails(f, -ECONNRESET);           /* written by who should not */
	wf_far_wake(f);
	return false;
}

/* [busy] Copies the next part of what lies in its sender's memory. Where that is is looked up for each: a big buffer is mapped only while it is held. */
static bool take_part(struct wf_far *f)
{
	struct wf_place at = { .process = f->peer->process, .segment = f->place.segment, .offset = f->place.offset };
	size_t left = (f->len < f->room ? f->len : f->room) - f->got, n = left < PART ? left : PART;
	struct wf_big *hold;
	const char *from;
	int r = wf_place_hold(&at, f->len, &from, &hold);

	if (r < 0)
		return r == -ENOMEM ? ask_for_pipe(f) : fails(f, -ECONNRESET);
	if (f->mem.kind == WF_MEM_PLAIN)
		memcpy((char *)f->mem.plain + f->got, from + f->got, n);
	else if (!wf_walk_in(&f->walk, from + f->got, n))
		f->err = -EINVAL;
	wf_place_let(hold);
	f->got += n;
	return true;
}

static bool wants_more(const struct wf_far *f)
{
	return f->got < f->len && f->got < f->room;
}

/* [busy] What can be had now. */
static bool take(struct wf_far *f)
{
	bool moved = false;

	if (f->lies)
		return wants_more(f) && take_part(f);
	while (wants_more(f) && take_chunk(f))
		moved = true;
	return moved;
}

/* [busy] What the sender was told, once more; and has it given up, or lost count? Then it is over. */
static void insist(struct wf_far *f)
{
	if (f->over || !f->ticket)
		return;
	if (f->pipe && f->len > WF_CHUNKS * WF_CHUNK)
		atomic_store_explicit(&f->pipe->read, f->base + (uint32_t)(f->got / WF_CHUNK), memory_order_release);   /* K4, as before */
	if (atomic_load_explicit(&f->ticket->word, memory_order_acquire) != wf_far_taken(f))    /* K1 */
		fails(f, -ECONNRESET);
	wf_far_wake(f);
}

/* [busy] True: something was done. */
static bool step(struct wf_far *f)
{
	bool moved = false;

	if (f->over)
		return false;
	if (find(f)) {
		moved = take(f);
		if (!f->over && !wants_more(f)) {
			f->over = true;
			if (!f->err && f->len > f->room)
				f->err = -EMSGSIZE;
		}
	}
	if (!f->over && !moved && wf_peer_died(f->peer->process)) {
		/* What it wrote before it died is all there: look once more behind the news of its death. */
		if (!(find(f) && take(f)) && !f->over)
			fails(f, -ECONNRESET);
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
	_Atomic uint32_t *at = f->ticket ? &f->ticket->reader : f->written ? &f->written->reader : NULL;

	if (at)
		atomic_store_explicit(at, who, memory_order_relaxed);   /* ordered by the sleeper's fence */
}

static void nothing(void *arg)
{
	(void)arg;
}

static void sleep_for(struct wf_far *f)
{
	struct wf_parker *me = &wf_self.port->face->parker;

	wf_share_flush();               /* what we have put goes home before we sleep */
	wf_park_begin(me);
	name(f, wf_self.port->number + 1);
	wf_fence_heavy_far();                                                   /* F1 */
	if (!step(f))
		wf_park(me, weft_in(20 * WEFT_MS), nothing, NULL);      /* bounded: its sender's death is told to the listener */
	wf_park_end(me);
	name(f, 0);
}

/* [busy] All of @f, however long that takes. */
static void pull(struct wf_far *f)
{
	struct wf_linger w;
	int cancel, idle = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);        /* half a message is nobody's */
	wf_linger_init(&w);
	while (!f->over) {
		if (step(f)) {
			wf_linger_init(&w);
			idle = 0;
		} else if (!wf_linger(&w)) {
			sleep_for(f);
			if (++idle % 50 == 0)   /* a second, unless it was woken for nothing */
				insist(f);
		}
	}
	pthread_setcancelstate(cancel, NULL);
}

int wf_far_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *t)
{
	struct wf_far *f = send->far;
	int r;

	atomic_fetch_add_explicit(&pulling[f->peer->process], 1, memory_order_seq_cst); /* before it looks whether the sender lives: wf_fars_pulling */
	prepare(f, p, t);
	wf_lock(&f->busy);
	pull(f);
	wf_unlock(&f->busy);
	r = result(f);
	atomic_fetch_sub_explicit(&pulling[f->peer->process], 1, memory_order_release);
	return r;
}

bool wf_far_board_locked(struct weft_port *p, const struct wf_incoming *in, struct wf_far *f)
{
	if (!(in->far.waits & WF_A_WRITTEN))
		return false;
	memcpy(&f->said, in->payload, sizeof(f->said));
	f->peer = in->by->peer;
	f->written = wf_pipe_map(f->peer->process, &f->said.head);
	if (!f->written)
		return false;
	f->len = in->len;
	f->ticket = NULL;
	f->waits = f->piped = false;
	atomic_fetch_add_explicit(&pulling[f->peer->process], 1, memory_order_seq_cst); /* as above */
	p->copying++;
	return true;
}

/* As pull, of what has no ticket, for as long as its pieces come one after another; into plain memory that has room for all. Nothing else is done between two of them: at 64 KiB
 * that took 4 % (aarch64). */
static void hurry(struct wf_far *f)
{
	const char *from = f->data + f->said.start;
	uint32_t i = f->base;
	struct wf_linger w;

	wf_linger_init(&w);
	while (f->got < f->len) {
		size_t left = f->len - f->got, most = wf_piece_bytes(f->got), n = left < most ? left : most;

		while (wf_acquire32(&f->pipe->chunk[i % WF_CHUNKS].seq) != i + 1)               /* K3 */
			if (!wf_linger(&w))
				return;
		memcpy((char *)f->mem.plain + f->got, from + f->got, n);
		f->got += n;
		i++;
	}
	f->over = true;
}

int wf_far_ride(struct weft_port *p, struct wf_far *f, const struct wf_target *t)
{
	int r;

	prepare(f, p, t);
	wf_train_ahead(f->peer->process);       /* who receives answers, more often than not */
	if (f->mem.kind == WF_MEM_PLAIN && f->len <= f->room && !(f->flags & WEFT_ALLOC) && find(f))
		hurry(f);
	if (!f->over)
		pull(f);
	wf_far_emptied(f);
	r = result(f);
	atomic_fetch_sub_explicit(&pulling[f->peer->process], 1, memory_order_release);
	wf_port_enter(p);
	p->copying--;
	if (r == 0 || r == -EMSGSIZE) {
		p->received++;
		p->received_bytes += f->len;
		p->copies++;
	}
	wf_port_leave(p);
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

void wf_fars_insist(void)
{
	struct wf_far *f;

	for (uint32_t n = 0; atomic_load_explicit(&active, memory_order_relaxed) && (f = nth(n)) != NULL; n++) {
		insist(f);
		step_taken(f);
	}
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
