/* push.c - see push.h. Run by whoever waits for the send, or by the listener: one at a time for each, by its `busy`. */
#include "port/push.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "port/deliver.h"
#include "port/eager.h"
#include "port/request.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/way.h"

#define NUDGE 50000             /* ns: a receiver that looks has looked by then */

static struct wf_node pushes;                   /* under wf_user_lock */
static _Atomic uint32_t active;                 /* how many are in it; a hint */
static _Atomic uint32_t silent;                 /* of those, announced and neither taken nor nudged; a hint */
static struct wf_push *free_pushes;             /* under wf_user_lock */

struct wf_push *wf_push_new_locked(void)
{
	struct wf_push *u = free_pushes;

	if (u)
		free_pushes = u->next_free;
	else
		u = calloc(1, sizeof(*u));
	return u;
}

void wf_push_put_locked(struct wf_push *u)
{
	u->req = NULL;
	u->next_free = free_pushes;
	free_pushes = u;
}

static void say(struct wf_push *u, uint32_t ready)
{
	u->said = ready;
	atomic_store_explicit(&u->ticket->ready, ready, memory_order_release);                  /* K2 */
}

void wf_push_announced_locked(struct wf_push *u)
{
	u->nudged = false;
	u->since = 0;
	u->said = 0;
	if (u->lies.segment) {
		u->ticket->memory = u->lies;
		say(u, WF_READY_MEMORY);
	}
	atomic_fetch_add_explicit(&silent, 1, memory_order_relaxed);
	wf_list_add(&pushes, &u->link);
	atomic_fetch_add_explicit(&active, 1, memory_order_relaxed);
}

void wf_push_unticket_locked(struct wf_push *u)
{
	if (u->pipe)
		wf_pipe_put_locked(u->pipe, u->peer->process, u->early);
	u->pipe = NULL;
	u->early = false;
	wf_ticket_put_locked(u->peer->process, u->ticket, u->serial);
	u->ticket = NULL;
}

/* No longer announced: it was answered, or taken back. */
static void unannounce_locked(struct wf_push *u)
{
	wf_push_unticket_locked(u);
	if (!u->nudged)
		atomic_fetch_sub_explicit(&silent, 1, memory_order_relaxed);
	u->nudged = true;
	wf_list_del(&u->link);
	atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
}

/* The push is over, announced or not. */
static void retire_locked(struct wf_push *u)
{
	if (u->ticket)
		unannounce_locked(u);
	wf_push_put_locked(u);
}

/* The request's end; the push goes on without it if it was announced. */
static void finish_locked(struct wf_push *u, int err)
{
	struct weft_req *r = u->req;

	if (!r)
		return;
	u->req = NULL;
	r->push = NULL;
	wf_end_send_locked(r, err);
}

void wf_push_end_locked(struct weft_req *r, int err)
{
	struct wf_push *u = r->push;

	finish_locked(u, err);
	if (!u->ticket)
		wf_push_put_locked(u);
}

/* [wf_user_lock] If nobody has taken the message nobody will; the request is to end with @err. */
static bool cancel_ticket_locked(struct wf_push *u, int err)
{
	uint64_t open = wf_ticket_word(u->serial, WF_T_OPEN, 0);

	/* acq_rel: K1. */
	if (!atomic_compare_exchange_strong_explicit(&u->ticket->word, &open, wf_ticket_word(u->serial, WF_T_CANCELLED, 0),
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	u->req->cancel = err;
	return true;
}

static void wake_reader(struct wf_push *u)
{
	wf_peer_wake_named(u->peer, &u->ticket->reader);
}

/* [busy] It was taken and cannot be sent: both ends learn of it. */
static void give_up(struct wf_push *u)
{
	say(u, WF_READY_NEVER);
	wf_lock(&wf_user_lock);
	finish_locked(u, weft_fail(-ENOMEM, "no memory to send to another process"));
	wf_unlock(&wf_user_lock);
	wake_reader(u);
}

/* [busy] Where the bytes will be, to the receiver. */
static bool open_pipe(struct wf_push *u, bool taken)
{
	bool never;

	wf_lock(&wf_user_lock);
	u->pipe = wf_pipe_get_locked(u->peer->process, taken, &never);
	u->early = u->pipe && !taken;
	wf_unlock(&wf_user_lock);
	if (never && taken)
		give_up(u);
	if (!u->pipe)
		return false;
	u->base = u->pipe->written;
	u->ticket->pipe = wf_pipe_place(u->pipe, u->base);
	say(u, WF_READY_PIPE);
	return true;
}

/* [busy] Fills one chunk, if one is free: how many bytes. */
static size_t fill_chunk(struct wf_push *u)
{
	size_t n = u->len - u->written < WF_CHUNK ? u->len - u->written : WF_CHUNK;
	char *to = n ? wf_pipe_chunk(u->pipe) : NULL;

	if (!to)
		return 0;
	if (u->mem.kind == WF_MEM_PLAIN)
		memcpy(to, (const char *)u->mem.plain + u->written, n);
	else if (!wf_walk_out(&u->walk, to, n))
		memset(to, 0, n);               /* its length was promised: a layout that fails sends zeros */
	u->written += n;
	wf_pipe_filled(u->pipe);
	return n;
}

/* [busy] As many chunks as are free. True: some were. */
static bool fill(struct wf_push *u)
{
	bool moved = false;

	while (fill_chunk(u)) {
		wake_reader(u);
		moved = true;
	}
	return moved;
}

/* [busy] The buffer to who has taken the message. */
static void hand_over(struct wf_push *u)
{
	struct wf_take_off f;
	struct weft_buf *b;
	int r;

	wf_lock(&wf_user_lock);
	b = u->req ? u->req->buf : NULL;
	r = b ? wf_take_off(b, u->req->a.kind, u->peer->process, &f) : -ENOMEM;
	if (r == 0) {
		u->ticket->flight = u->flight = f.flight;
		u->req->buf = NULL;
		u->handed = true;
		wf_taken_off(b, &f);
		say(u, WF_READY_FLIGHT);
	}
	wf_unlock(&wf_user_lock);
	if (r < 0)
		give_up(u);
}

/* [busy] Nobody has taken it. If the receiver computes, its listener may have a receive to match it with; one that is about to look needs no telling. */
static void nudge(struct wf_push *u, bool taken)
{
	struct wf_f_word f;

	if (u->nudged)
		return;
	if (!taken && !u->since) {
		u->since = wf_now();
		return;
	}
	if (!taken && wf_now() - u->since < NUDGE)
		return;
	u->nudged = true;
	atomic_fetch_sub_explicit(&silent, 1, memory_order_relaxed);
	f.word = wf_face_number(wf_peer_board(u->peer), atomic_load_explicit(&u->way->face, memory_order_relaxed));
	if (!taken && f.word < WF_FACES)
		wf_frame_send(u->peer, WF_F_BELL, &f, sizeof(f));
}

void wf_push_leave_locked(struct weft_req *r, int err)
{
	wf_way_unqueue_locked(r->push->way, r);
	wf_push_end_locked(r, err);
}

/* [busy] What was offered out of a backlog was taken: it leaves that. Or it was not: it is back where it was, unless it was to be taken back meanwhile; true, and busy is gone. */
static bool offer_answered(struct wf_push *u, uint32_t state, int err)
{
	bool back = state == WF_T_REFUSED && err == -EAGAIN;

	if (state == WF_T_OPEN) {               /* not answered yet */
		wf_unlock(&u->busy);
		return true;
	}
	wf_lock(&wf_user_lock);
	if (!u->offered) {                      /* who takes it back was first, and it has left */
		wf_unlock(&wf_user_lock);
		return false;
	}
	back &= u->req != NULL;
	if (u->req && !back)
		wf_way_unqueue_locked(u->way, u->req);
	u->offered = false;
	if (back) {
		wf_unlock(&u->busy);
		unannounce_locked(u);
		if (u->req->cancel)
			wf_push_leave_locked(u->req, u->req->cancel);
	}
	wf_unlock(&wf_user_lock);
	return back;
}

bool wf_push_back_locked(struct wf_push *u)
{
	/* acquire: K1. */
	if (!u->offered || !u->req ||
	    atomic_load_explicit(&u->ticket->word, memory_order_acquire) != wf_ticket_word(u->serial, WF_T_REFUSED, -EAGAIN) ||
	    !wf_trylock(&u->busy))
		return false;           /* or somebody is just finding out */
	u->offered = false;
	wf_unlock(&u->busy);
	unannounce_locked(u);
	return true;
}

/* [busy] It was to be taken back while somebody had taken it, who could not keep it. */
static bool cancel_late(struct wf_push *u)
{
	bool done;

	wf_lock(&wf_user_lock);
	done = u->req && u->req->cancel && cancel_ticket_locked(u, u->req->cancel);
	wf_unlock(&wf_user_lock);
	return done;
}

/* [busy, wf_user_lock] Its sender has taken it back, and not ended it. */
static bool taken_back_locked(struct wf_push *u)
{
	return u->req && atomic_load_explicit(&u->ticket->word, memory_order_relaxed) == wf_ticket_word(u->serial, WF_T_CANCELLED, 0);
}

/* [busy, wf_user_lock; both go] The end of a push: with @err, or as its sender said. */
static void retire_with_locked(struct wf_push *u, int err)
{
	if (taken_back_locked(u))
		err = u->req->cancel;
	else if (u->handed)
		err = 0;                /* the buffer went to a receive that had matched it: what became of that is another matter */
	finish_locked(u, err);
	wf_unlock(&u->busy);            /* before others may have it */
	retire_locked(u);
	wf_unlock(&wf_user_lock);
}

/* [busy, which goes] The end of a push that was answered, or never will be. If it was done and nobody had taken it, it is lost. */
static void retire(struct wf_push *u, int err, bool taken)
{
	bool lost = u->done && err < 0 && !taken;
	weft_id src = u->src, to = u->to;
	uint64_t context = u->context;
	size_t len = u->len;

	wf_lock(&wf_user_lock);
	retire_with_locked(u, err);
	if (lost)
		wf_tell_lost(src, context, to, len, 1);
}

/* [busy, which goes] What could be done was. True: it is over. */
static bool settle(struct wf_push *u, bool *ret_moved)
{
	wf_lock(&wf_user_lock);         /* who cancels does so under it, and leaves the end to us while we copy from the memory */
	if (taken_back_locked(u)) {
		*ret_moved = true;
		retire_with_locked(u, 0);
		return true;
	}
	if (u->req && u->written == u->len && !u->sync) {       /* its memory is free */
		finish_locked(u, 0);
		u->done = true;
		*ret_moved = true;
	}
	wf_unlock(&u->busy);
	wf_unlock(&wf_user_lock);
	return false;
}

bool wf_push_go(struct wf_push *u, bool *ret_moved)
{
	uint64_t word = atomic_load_explicit(&u->ticket->word, memory_order_acquire);           /* K1 */
	uint32_t state = (uint32_t)word & 0xff;
	bool moved = false, taken = state == WF_T_TAKEN || state == WF_T_PIPED;
	int err = 0;

	if (word >> 32 != u->serial || !wf_ticket_state_is(state)) {
		state = WF_T_REFUSED;           /* written by who should not */
		err = -ECONNRESET;
	} else if (state == WF_T_REFUSED) {
		err = -(int)(word >> 8 & 0xffff);
		err = err < 0 && err > -4096 ? err : -ECONNRESET;
	}
	if ((state == WF_T_OPEN || taken) && wf_peer_died(u->peer->process)) {
		state = WF_T_REFUSED;
		err = -ECONNRESET;
	}
	nudge(u, state != WF_T_OPEN);
	if (wf_unlikely(atomic_load_explicit(&u->offered, memory_order_relaxed)) && offer_answered(u, state, err))
		return false;
	if (state == WF_T_OPEN && cancel_late(u))
		state = WF_T_CANCELLED;
	if (state == WF_T_OPEN || state == WF_T_TAKEN || state == WF_T_PIPED) {
		if (u->buffer) {
			if (taken && !u->said) {
				hand_over(u);
				wake_reader(u);
				moved = true;
			}
		} else if (u->written < u->len && (!u->lies.segment || state == WF_T_PIPED) && (u->pipe || open_pipe(u, taken))) {
			moved = fill(u);
		}
		*ret_moved |= moved;
		return settle(u, ret_moved);
	}
	*ret_moved = true;
	retire(u, err, taken);
	return true;
}

void wf_push_begin(struct wf_push *u)
{
	bool moved = false;

	if (u->pipe)
		fill(u);
	settle(u, &moved);
}

void wf_pushes_reap(void)
{
	struct wf_node *next;

	if (atomic_load_explicit(&active, memory_order_relaxed) <= 1)
		return;
	wf_lock(&wf_user_lock);
	for (struct wf_node *at = pushes.next; at && at != &pushes; at = next) {
		struct wf_push *u = wf_of(at, struct wf_push, link);

		next = at->next;
		/* acquire: K1. */
		if (!u->req && atomic_load_explicit(&u->ticket->word, memory_order_acquire) == wf_ticket_word(u->serial, WF_T_DONE, 0) &&
		    wf_trylock(&u->busy)) {
			wf_unlock(&u->busy);
			retire_locked(u);
		}
	}
	wf_unlock(&wf_user_lock);
}

int wf_push_cancel_locked(struct weft_req *r, int err)
{
	struct wf_push *u = r->push;

	bool taken_back = u->ticket && cancel_ticket_locked(u, err);

	if (!u->ticket || (!taken_back && wf_push_back_locked(u))) {
		wf_push_leave_locked(r, err);
		return 0;
	}
	if (!taken_back) {
		if (!r->cancel)
			r->cancel = err;        /* if it comes back */
		return -EALREADY;
	}
	if (u->offered) {
		wf_way_unqueue_locked(u->way, r);
		u->offered = false;
	}
	if (!wf_trylock(&u->busy))
		return 1;               /* somebody copies from its memory: its end is his */
	finish_locked(u, err);
	wf_unlock(&u->busy);
	retire_locked(u);
	return 0;
}

void wf_push_name_locked(struct weft_req *r, uint32_t name)
{
	struct wf_push *u = r->push;

	if (!u)
		return;
	u->name = name;
	if (u->ticket)
		atomic_store_explicit(&u->ticket->writer, name, memory_order_relaxed);  /* ordered by the sleeper's fence */
}

void wf_push_step(struct weft_req *r)
{
	struct wf_push *u;
	struct wf_way *backlogged = NULL;

	wf_lock(&wf_user_lock);
	u = r->push;
	if (u && !u->ticket) {
		backlogged = u->way;
		u = NULL;
	} else if (u && !wf_trylock(&u->busy)) {
		u = NULL;
	}
	wf_unlock(&wf_user_lock);
	if (backlogged)
		wf_way_flush(backlogged);
	if (u) {
		bool moved = false;

		wf_push_go(u, &moved);
	}
}

/* The first behind @n others that can be had, its busy taken. */
static struct wf_push *nth(uint32_t n)
{
	struct wf_push *u = NULL;
	uint32_t i = 0;

	wf_lock(&wf_user_lock);
	for (struct wf_node *at = pushes.next; at && at != &pushes && !u; at = at->next)
		if (i++ >= n) {
			u = wf_of(at, struct wf_push, link);
			if (!wf_trylock(&u->busy))
				u = NULL;
		}
	wf_unlock(&wf_user_lock);
	return u;
}

int wf_pushes_step(void)
{
	struct wf_push *u;
	uint32_t n = 0;
	int moved = 0;

	while (atomic_load_explicit(&active, memory_order_relaxed) && (u = nth(n)) != NULL) {
		bool m = false;

		if (!wf_push_go(u, &m))
			n++;
		moved += m;
	}
	return moved;
}

/* [busy] */
static void insist(struct wf_push *u)
{
	if (u->said == WF_READY_PIPE)
		u->ticket->pipe = wf_pipe_place(u->pipe, u->base);
	else if (u->said == WF_READY_FLIGHT)
		u->ticket->flight = u->flight;
	else if (u->said == WF_READY_MEMORY)
		u->ticket->memory = u->lies;
	if (u->pipe)
		wf_pipe_insist(u->pipe, u->base);
	atomic_store_explicit(&u->ticket->ready, u->said, memory_order_release);                /* K2, as before */
	wake_reader(u);
}

void wf_pushes_insist(void)
{
	struct wf_push *u;

	for (uint32_t n = 0; atomic_load_explicit(&active, memory_order_relaxed) && (u = nth(n)) != NULL; n++) {
		insist(u);
		wf_unlock(&u->busy);
	}
}

uint32_t wf_pushes_silent(void)
{
	return atomic_load_explicit(&silent, memory_order_relaxed);
}

bool wf_pushes_active(void)
{
	return atomic_load_explicit(&active, memory_order_relaxed) > 0;
}

/* Is one to @process left? */
static bool any_to(uint32_t process)
{
	bool any = false;

	wf_lock(&wf_user_lock);
	for (struct wf_node *at = pushes.next; at && at != &pushes && !any; at = at->next)
		any = wf_of(at, struct wf_push, link)->peer->process == process;
	wf_unlock(&wf_user_lock);
	return any;
}

void wf_pushes_dead(uint32_t process)
{
	/* Each step finds that the other is dead, or what it answered last. One that somebody is at is waited for: he may be handing over a buffer. */
	while (any_to(process)) {
		wf_pushes_step();
		sched_yield();
	}
}
