/* push.c - see push.h.
 *
 * Locks: wf_user_lock covers requests, backlogs, the list of pushes, tickets and pipes that are free. A push's own `busy` is held, outside of it, by
 * whoever copies into its pipe; it is only ever tried, so nobody waits for a copy.
 */
#include "port/push.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mem/segment.h"
#include "port/cancel.h"
#include "port/listener.h"
#include "port/outgoing.h"
#include "port/request.h"
#include "port/table.h"

#define EARLY 2                 /* pipes to one process that hold what nobody has taken yet */
#define PIPES 8                 /* pipes to one process in all */
#define NUDGE 50000             /* ns: a receiver that looks has looked by then */
#define TICKETS_AT_ONCE 32

struct pipe {
	struct pipe *next;
	struct weft_buf *head_buf, *data_buf;
	struct wf_pipe_head *head;
	char *data;
	uint32_t written;               /* chunks filled so far, in all its life */
	uint32_t read;                  /* as last seen: of those, emptied */
};

struct wf_push {
	struct wf_node link;
	struct wf_lock busy;
	/* under wf_user_lock */
	struct weft_req *req;           /* NULL: over, what it left in the pipe is being read */
	struct wf_way *way;             /* whose backlog it waits in, if not announced */
	uint32_t name;                  /* who is to be woken */
	struct wf_peer *peer;
	struct wf_ticket *ticket;       /* NULL: not announced yet */
	uint32_t serial;
	bool early;                     /* counts among those not taken */
	struct wf_push *next_free;
	/* under busy, once announced */
	struct pipe *pipe;
	size_t len, written;
	struct wf_mem mem;
	struct wf_walk walk;
	bool sync, buffer;
	bool offered;                   /* under wf_user_lock: still in its way's backlog, and shown to who asked (seek.h) */
	bool handed;                    /* its buffer is with who took the message */
	bool nudged;                    /* the other's listener was told to look */
	weft_time since;                /* announced */
};

static struct wf_node pushes;                   /* under wf_user_lock */
static _Atomic uint32_t active;                 /* how many are in it; a hint */
static _Atomic uint32_t silent;                 /* of those, announced and neither taken nor nudged; a hint */
static struct wf_push *free_pushes;             /* under wf_user_lock; never given back: a stale pointer may be looked at */
static struct pipe *free_pipes;
static struct { uint16_t all, early; } pipes_to[WF_PROCESSES];

/* A ticket that is free holds, in its own words, nothing the other process could still use: its serial has moved on. */
struct ticket_room {
	struct ticket_room *next;
	struct wf_ticket *ticket;
	uint32_t serial;
};
static struct ticket_room *free_tickets, *spare_rooms;

static void more_tickets_locked(void)
{
	struct ticket_room *rooms = calloc(TICKETS_AT_ONCE, sizeof(*rooms));
	struct weft_buf *b;

	if (!rooms || wf_buf_alloc(TICKETS_AT_ONCE * sizeof(struct wf_ticket), &b) < 0) {
		free(rooms);
		return;
	}
	memset(b->data, 0, b->len);
	for (int i = 0; i < TICKETS_AT_ONCE; i++) {
		rooms[i].ticket = (struct wf_ticket *)b->data + i;
		rooms[i].next = free_tickets;
		free_tickets = &rooms[i];
	}
}

static bool ticket_get_locked(struct wf_push *u)
{
	struct ticket_room *room;

	if (!free_tickets)
		more_tickets_locked();
	room = free_tickets;
	if (!room)
		return false;
	free_tickets = room->next;
	u->ticket = room->ticket;
	u->serial = ++room->serial;
	room->next = spare_rooms;
	spare_rooms = room;
	atomic_store_explicit(&u->ticket->writer, u->name, memory_order_relaxed);
	atomic_store_explicit(&u->ticket->reader, 0, memory_order_relaxed);
	atomic_store_explicit(&u->ticket->ready, 0, memory_order_relaxed);
	atomic_store_explicit(&u->ticket->word, wf_ticket_word(u->serial, WF_T_OPEN, 0), memory_order_release);        /* K1 */
	return true;
}

static void ticket_put_locked(struct wf_push *u)
{
	struct ticket_room *room = spare_rooms;

	spare_rooms = room->next;
	room->ticket = u->ticket;
	room->serial = u->serial;
	/* Whoever still has the announcement finds that it is over. */
	atomic_store_explicit(&u->ticket->word, wf_ticket_word(u->serial, WF_T_CANCELLED, 0), memory_order_relaxed);
	room->next = free_tickets;
	free_tickets = room;
	u->ticket = NULL;
}

static struct pipe *pipe_new(void)
{
	struct pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (wf_buf_alloc(sizeof(struct wf_pipe_head), &p->head_buf) < 0)
		goto undo;
	if (wf_buf_alloc(WF_CHUNKS * WF_CHUNK, &p->data_buf) < 0) {
		wf_buf_release(p->head_buf);
		goto undo;
	}
	p->head = p->head_buf->data;
	p->data = p->data_buf->data;
	memset(p->head, 0, sizeof(*p->head));
	return p;
undo:
	free(p);
	return NULL;
}

/* A pipe for @u, whose message was @taken or not; NULL: not now; *ret_never: nor later, as there is no memory and none comes back. */
static struct pipe *pipe_get_locked(struct wf_push *u, bool taken, bool *ret_never)
{
	uint32_t process = u->peer->process;
	struct pipe *p = NULL;

	*ret_never = false;
	if (pipes_to[process].all < PIPES && (taken || pipes_to[process].early < EARLY)) {
		p = free_pipes;
		if (p)
			free_pipes = p->next;
		else
			p = pipe_new();
		*ret_never = !p && !pipes_to[process].all;
	}
	if (p) {
		pipes_to[process].all++;
		pipes_to[process].early += !taken;
		u->early = !taken;
	}
	return p;
}

static void pipe_put_locked(struct wf_push *u)
{
	struct pipe *p = u->pipe;

	pipes_to[u->peer->process].all--;
	pipes_to[u->peer->process].early -= u->early;
	u->early = false;
	/* relaxed: nobody reads it now; the next message goes on from here. */
	atomic_store_explicit(&p->head->read, p->written, memory_order_relaxed);
	p->read = p->written;
	p->next = free_pipes;
	free_pipes = p;
	u->pipe = NULL;
}

static struct wf_push *push_new_locked(void)
{
	struct wf_push *u = free_pushes;

	if (u)
		free_pushes = u->next_free;
	else
		u = calloc(1, sizeof(*u));
	return u;
}

static void push_put_locked(struct wf_push *u)
{
	u->req = NULL;
	u->next_free = free_pushes;
	free_pushes = u;
}

/* The push is over, announced or not. */
static void retire_locked(struct wf_push *u)
{
	if (u->pipe)
		pipe_put_locked(u);
	if (u->ticket) {
		ticket_put_locked(u);
		if (!u->nudged)
			atomic_fetch_sub_explicit(&silent, 1, memory_order_relaxed);
		u->nudged = true;
		wf_list_del(&u->link);
		atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
	}
	push_put_locked(u);
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
		push_put_locked(u);
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
	uint32_t name;

	if (u->peer->strong)
		wf_fence_slow();                                                /* F1 */
	else
		wf_fence_light();                                               /* F1 */
	name = atomic_load_explicit(&u->ticket->reader, memory_order_relaxed);
	if (wf_unlikely(name))
		wf_peer_wake(u->peer, name);
}

static struct wf_pipe_place pipe_place(const struct pipe *p)
{
	return (struct wf_pipe_place){ .head = wf_f_place_of(p->head), .data = wf_f_place_of(p->data), .base = p->written };
}

/* [busy] It was taken and cannot be sent: both ends learn of it. */
static void give_up(struct wf_push *u)
{
	atomic_store_explicit(&u->ticket->ready, WF_READY_NEVER, memory_order_release);         /* K2 */
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
	u->pipe = pipe_get_locked(u, taken, &never);
	wf_unlock(&wf_user_lock);
	if (never && taken)
		give_up(u);
	if (!u->pipe)
		return false;
	u->ticket->pipe = pipe_place(u->pipe);
	atomic_store_explicit(&u->ticket->ready, WF_READY_PIPE, memory_order_release);          /* K2 */
	return true;
}

/* [busy] Fills one chunk, if one is free: how many bytes. */
static size_t fill_chunk(struct wf_push *u)
{
	struct pipe *p = u->pipe;
	size_t n = u->len - u->written < WF_CHUNK ? u->len - u->written : WF_CHUNK;
	char *to = p->data + p->written % WF_CHUNKS * WF_CHUNK;

	if (!n)
		return 0;
	if (p->written - p->read >= WF_CHUNKS) {
		uint32_t read = atomic_load_explicit(&p->head->read, memory_order_acquire);    /* K4 */

		if (p->written - read >= WF_CHUNKS)     /* full, or a lie */
			return 0;
		p->read = read;
	}
	if (u->mem.kind == WF_MEM_PLAIN)
		memcpy(to, (const char *)u->mem.plain + u->written, n);
	else if (!wf_walk_out(&u->walk, to, n))
		memset(to, 0, n);               /* its length was promised: a layout that fails sends zeros */
	u->written += n;
	atomic_store_explicit(&p->head->chunk[p->written % WF_CHUNKS].seq, p->written + 1, memory_order_release);       /* K3 */
	p->written++;
	return n;
}

/* What flies for a buffer: itself, or a copy where it cannot (a view of another process's buffer). */
struct take_off {
	struct wf_flight flight;
	struct weft_buf *carry;
};

static int take_off(struct weft_buf *b, uint16_t kind, uint32_t to, struct take_off *f)
{
	struct weft_buf *copy;
	int r;

	if (kind == WF_POOLED) {        /* weft's own: not under way yet */
		r = wf_buf_send_begin(b, false, &b);
		if (r < 0)
			return r;
	}
	f->carry = b;
	r = wf_buf_fly(b, to, &f->flight);
	/* A dead process's memory can no longer be had by who has not mapped it. */
	if (r == 0 && f->flight.maker != wf_process_id >> 32 && wf_peer_died(f->flight.maker)) {
		wf_buf_unfly(b);
		r = -EXDEV;
	}
	if (r < 0 && kind == WF_POOLED)
		wf_buf_send_undo(b);
	if (r != -EXDEV)
		return r;
	r = wf_buf_alloc(b->len, &copy);
	if (r < 0)
		return -ENOMEM;
	memcpy(copy->data, b->data, b->len);
	copy->len = b->len;
	r = take_off(copy, WF_POOLED, to, f);
	if (r < 0)
		wf_buf_release(copy);
	return r;
}

/* It was published. @b: what take_off was given. */
static void taken_off(struct weft_buf *b, struct take_off *f)
{
	if (f->carry != b && (b = wf_buf_send_undo(b)) != NULL)
		wf_buf_release(b);
	wf_buf_flown(&f->flight);
}

/* [busy] The buffer to who has taken the message. */
static void hand_over(struct wf_push *u)
{
	struct take_off f;
	struct weft_buf *b;
	int r;

	wf_lock(&wf_user_lock);
	b = u->req ? u->req->buf : NULL;
	r = b ? take_off(b, u->req->a.kind, u->peer->process, &f) : -ENOMEM;
	if (r == 0) {
		u->ticket->flight = f.flight;
		u->req->buf = NULL;
		u->handed = true;
		taken_off(b, &f);
		atomic_store_explicit(&u->ticket->ready, WF_READY_FLIGHT, memory_order_release);        /* K2 */
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

/* [busy] What was offered out of a backlog was taken: it leaves that. Or it was not: it is back where it was; true, and busy is gone. */
static bool offer_answered(struct wf_push *u, uint32_t state, int err)
{
	bool back = state == WF_T_REFUSED && err == -EAGAIN;

	if (state == WF_T_OPEN) {               /* not answered yet */
		wf_unlock(&u->busy);
		return true;
	}
	wf_lock(&wf_user_lock);
	back &= u->req != NULL;
	if (u->req && !back)
		wf_way_unqueue_locked(u->way, u->req);
	u->offered = false;
	if (back) {
		wf_unlock(&u->busy);
		ticket_put_locked(u);
		if (!u->nudged)
			atomic_fetch_sub_explicit(&silent, 1, memory_order_relaxed);
		wf_list_del(&u->link);
		atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
	}
	wf_unlock(&wf_user_lock);
	return back;
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

/* [busy] What can be done now. True: it is over, and busy is gone with it. */
static bool step(struct wf_push *u, bool *ret_moved)
{
	uint64_t word = atomic_load_explicit(&u->ticket->word, memory_order_acquire);           /* K1 */
	uint32_t state = (uint32_t)word & 0xff;
	bool moved = false, taken = state == WF_T_TAKEN, over;
	int err = 0;

	if (word >> 32 != u->serial || state < WF_T_OPEN || state > WF_T_REFUSED) {
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
	if (wf_unlikely(u->offered) && offer_answered(u, state, err))
		return false;
	if (state == WF_T_OPEN && cancel_late(u))
		state = WF_T_CANCELLED;
	if (state == WF_T_OPEN || state == WF_T_TAKEN) {
		if (u->buffer) {
			if (taken && !atomic_load_explicit(&u->ticket->ready, memory_order_relaxed)) {
				hand_over(u);
				moved = true;
			}
		} else if (u->len && u->written < u->len && (u->pipe || open_pipe(u, taken))) {
			while (fill_chunk(u)) {
				wake_reader(u);
				moved = true;
			}
		}
		if (moved)
			wake_reader(u);
		*ret_moved |= moved;
		wf_lock(&wf_user_lock);         /* who cancels does so under it, and leaves the end to us while we copy from the memory */
		over = taken_back_locked(u);
		if (!over && u->req && u->written == u->len && !u->sync) {      /* its memory is free */
			finish_locked(u, 0);
			*ret_moved = true;
		}
		if (!over) {
			wf_unlock(&u->busy);
			wf_unlock(&wf_user_lock);
			return false;
		}
	} else {
		wf_lock(&wf_user_lock);
	}
	*ret_moved = true;
	if (u->req && taken_back_locked(u))
		err = u->req->cancel;
	else if (u->handed)
		err = 0;                /* the buffer went to a receive that had matched it: what became of that is another matter */
	finish_locked(u, err);
	wf_unlock(&u->busy);            /* before others may have it */
	retire_locked(u);
	wf_unlock(&wf_user_lock);
	return true;
}

/* Did the port say that it has enough of our announcements? The box of a way that has ended is somebody else's memory. */
static bool clogged(const struct outgoing *o)
{
	uint64_t t = atomic_load_explicit(&o->way->tail, memory_order_acquire);

	return WF_WAY_INCARNATION(t) == o->who && !(t & WF_WAY_SHUT) &&
	       atomic_load_explicit(&o->way->box->clogged, memory_order_relaxed);
}

/* [wf_user_lock] Announces @r through @w: 0, or as wf_way_refused. The cell tells of the ticket, and holds a short payload. */
static int announce_locked(struct outgoing *o, struct weft_req *r, uint64_t allow, bool offer)
{
	struct wf_push *u = r->push;
	struct wf_announcement a = { .len = o->len, .waits = u->sync || o->len > WF_CHUNKS * WF_CHUNK ? WF_A_WAITS : 0 };
	size_t room = wf_outgoing_room(o) - sizeof(a);
	unsigned char flat[WF_BODY], *body;
	struct wf_claimed c;
	struct wf_mem to = wf_mem_plain(flat, room);
	bool never;
	int claim;

	if (!offer && clogged(o))
		return WF_CLAIM_FULL;
	if (offer)
		a.waits |= WF_A_OFFER;
	if (o->buf) {
		a.with = WF_WITH_BUFFER;
	} else if (o->len <= room && !offer) {
		if (!wf_mem_copy(&to, &o->mem, o->len))
			return weft_fail(-EINVAL, "op.layout gave no pieces");
		a.with = (uint32_t)o->len;
	}
	if (!u->ticket && !ticket_get_locked(u))
		return weft_fail(-ENOMEM, "no memory for an announcement");
	if (!a.with && o->len && !offer && (u->pipe = pipe_get_locked(u, false, &never)) != NULL)
		a.with = WF_WITH_PIPE;
	a.ticket = wf_f_place_of(u->ticket);
	a.serial = u->serial;
	claim = wf_way_claim(o->way, o->who, 0, allow, &c);
	if (claim != WF_CLAIMED) {
		if (u->pipe)
			pipe_put_locked(u);
		ticket_put_locked(u);
		return claim;
	}
	body = wf_outgoing_fill(c.cell, o, WF_FAR);
	memcpy(body, &a, sizeof(a));
	if (a.with == WF_WITH_PIPE) {
		struct wf_pipe_place at = pipe_place(u->pipe);

		memcpy(body + sizeof(a), &at, sizeof(at));
	} else if (a.with && !o->buf) {
		memcpy(body + sizeof(a), flat, a.with);
		u->written = o->len;
	}
	u->nudged = false;
	u->since = 0;
	atomic_fetch_add_explicit(&silent, 1, memory_order_relaxed);
	wf_list_add(&pushes, &u->link);
	atomic_fetch_add_explicit(&active, 1, memory_order_relaxed);
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

static bool goes_eagerly(const struct weft_req *r)
{
	return !(r->flags & (WEFT_SYNC | WEFT_RENDEZVOUS)) && (r->buf || r->a.len <= WF_ARENA_MOST);
}

/* Announces, and where the flags of the port want more than room says so. */
static int announce(struct outgoing *o, struct weft_req *r, uint64_t allow)
{
	int err;

	do {
		err = announce_locked(o, r, allow, false);
		if (err > 0) {
			err = wf_way_refused(o->way, o->who, err);
			if (err == -ENOBUFS) {          /* no budget there: an announcement is what it wants */
				err = announce_locked(o, r, allow | WF_ALLOW_TIGHT, false);
				err = err > 0 ? wf_way_refused(o->way, o->who, err) : err;
				err = err == -ENOBUFS ? -EINTR : err;
			}
		}
	} while (err == -EINTR);
	return err;
}

int wf_far_eager(struct outgoing *o, uint64_t allow)
{
	size_t room = wf_outgoing_room(o), arena = 0;
	unsigned char flat[WF_BODY], *body;
	struct take_off f;
	struct wf_claimed c;
	struct wf_mem to;
	uint16_t kind = WF_INLINE;
	int r;

	if (!o->buf && o->len > WF_ARENA_MOST)
		return -ENOBUFS;
	if (o->buf) {
		kind = WF_FLOWN;
	} else if (o->len > room) {
		kind = WF_ARENA;
		arena = o->len;
	} else if (o->mem.kind != WF_MEM_PLAIN) {       /* a cell that is claimed must be filled: what may fail comes before */
		to = wf_mem_plain(flat, o->len);
		if (!wf_mem_copy(&to, &o->mem, o->len))
			return weft_fail(-EINVAL, "op.layout gave no pieces");
	}
	do {
		r = wf_way_claim(o->way, o->who, arena, allow, &c);
		r = r == WF_CLAIMED ? 0 : wf_way_refused(o->way, o->who, r);
	} while (r == -EINTR);
	if (r < 0)
		return r;
	/* Behind the claim: a buffer that flies to a process is in a cell of its ring, or will be before this process says that it has acted on its
	 * death (wf_host_dead). */
	if (o->buf) {
		r = take_off(o->buf, o->kind, o->way->peer->process, &f);
		kind = r < 0 ? WF_VOID : kind;
	}
	body = wf_outgoing_fill(c.cell, o, kind);
	if (kind == WF_FLOWN) {
		memcpy(body, &f.flight, sizeof(f.flight));
	} else if (kind == WF_ARENA) {
		to = wf_mem_plain(c.bytes, o->len);
		if (!wf_mem_copy(&to, &o->mem, o->len))
			memset(c.bytes, 0, o->len);     /* promised, and a cell cannot be taken back */
	} else if (kind == WF_INLINE && o->len) {
		wf_copy_small(body, o->mem.kind == WF_MEM_PLAIN ? o->mem.plain : flat, o->len);
	}
	wf_way_publish(o->way, &c);
	if (r < 0)
		return r == -ENOMEM ? -ENOBUFS : r;
	if (o->buf)
		taken_off(o->buf, &f);
	return 0;
}

int wf_push_write_locked(struct wf_way *w, struct weft_req *r)
{
	struct outgoing o;
	int err = -ENOBUFS;

	if (r->push->ticket)
		return -EAGAIN;         /* on offer: what is behind it waits for the answer */
	outgoing_of(w, r, &o);
	if (goes_eagerly(r)) {
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

/* What was answered meanwhile and nobody waits for: tickets and pipes to be used again. */
static void reap_locked(void)
{
	struct wf_node *next;

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
}

int wf_push_start(struct outgoing *o, struct weft_req *r)
{
	struct wf_push *u;
	int err = -EAGAIN;
	bool announced, stepping, moved = false;

	wf_lock(&wf_user_lock);
	u = push_new_locked();
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
	u->offered = u->handed = false;
	u->name = o->blocks ? 0 : WF_SLEEPS_LISTENER;
	u->len = o->len;
	u->written = 0;
	u->mem = o->buf ? wf_mem_plain(NULL, 0) : o->mem;
	u->buffer = o->buf;
	u->sync = r->flags & (WEFT_SYNC | WEFT_RENDEZVOUS) || u->buffer;
	wf_walk_begin(&u->walk, &u->mem);
	/* Under the lock: when it expires it is announced or queued, or it would not be found. */
	if (r->expires && wf_timer_add(r) < 0) {
		r->push = NULL;
		push_put_locked(u);
		wf_unlock(&wf_user_lock);
		return -ENOMEM;
	}
	/* What can go eagerly does, as soon as it can: a buffer that was announced would wait for a receive. */
	if (!o->way->backlogged && !goes_eagerly(r))
		err = announce(o, r, 0);
	if (err == -EAGAIN || err == -ENOMEM)
		err = wf_way_queue_locked(o->way, o->who, r);
	announced = err == 0 && u->ticket;
	stepping = announced && wf_trylock(&u->busy);   /* while it is certainly this one */
	if (err < 0) {
		r->push = NULL;
		push_put_locked(u);
	}
	wf_unlock(&wf_user_lock);
	if (stepping)
		step(u, &moved);
	if (atomic_load_explicit(&active, memory_order_relaxed) > 1) {
		wf_lock(&wf_user_lock);
		reap_locked();          /* behind what is sent now: looking at answers costs a line each */
		wf_unlock(&wf_user_lock);
	}
	if (err == 0 && !announced)
		wf_way_flush(o->way);
	if (err == 0 && !o->blocks && atomic_load_explicit(&silent, memory_order_relaxed) == 1)
		wf_listener_wake();             /* the first in a while: it is to look after it soon */
	return err == -ESRCH ? weft_fail(err, "no thread, process or port of that id") : err;
}

bool wf_push_offer_locked(struct wf_way *w, struct weft_req *r)
{
	struct outgoing o;

	if (r->push->ticket)
		return true;            /* is on offer */
	outgoing_of(w, r, &o);
	if (announce_locked(&o, r, WF_WAY_BACKLOG | WF_ALLOW_TIGHT, true) != 0)
		return false;           /* it will be asked for again */
	r->push->offered = true;
	return true;
}

int wf_push_cancel_locked(struct weft_req *r, int err)
{
	struct wf_push *u = r->push;

	if (!u->ticket) {
		wf_way_unqueue_locked(u->way, r);
		wf_push_end_locked(r, err);
		return 0;
	}
	if (u->offered && atomic_load_explicit(&u->ticket->word, memory_order_relaxed) == wf_ticket_word(u->serial, WF_T_OPEN, 0)) {
		wf_way_unqueue_locked(u->way, r);
		u->offered = false;
	}
	if (!cancel_ticket_locked(u, err)) {
		if (!r->cancel)
			r->cancel = err;        /* if it comes back */
		return -EALREADY;
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

		step(u, &moved);
	}
}

/* The first push behind those of @after visited so far that can be had, its busy taken. */
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

		if (!step(u, &m))
			n++;
		moved += m;
	}
	return moved;
}

bool wf_pushes_silent(void)
{
	return atomic_load_explicit(&silent, memory_order_relaxed) > 0;
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
