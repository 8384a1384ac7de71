/* inway.c - see inway.h.
 *
 * Locks: inways_lock covers the lists and states; under it nothing but leaves is taken. A reader joins and leaves a port's chain inside the port's
 * door. Inways are never given back: who looks at a port without its lock may still see one that has left.
 */
#include "port/inway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "mem/segment.h"
#include "port/context.h"
#include "port/deliver.h"
#include "port/proto.h"
#include "port/request.h"
#include "port/seek.h"
#include "port/table.h"

/* ATTACHING: one thread has it, who looks for its port; who would free it waits (wf_inways_dead). OPEN: in its port's chain, as long as its process lives: state and chain change
 * together, under the door of the port and inways_lock. */
enum { WF_IN_FREE, WF_IN_ATTACHING, WF_IN_PENDING /* its port is not open */, WF_IN_OPEN, WF_IN_CLOSED /* CLOSED was said */, WF_IN_SHUT /* its end is known */ };

static struct wf_lock inways_lock;
static struct wf_inway *all[WF_PROCESSES];
static struct wf_inway *free_inways;
static _Atomic uint32_t ending;         /* in state SHUT; a hint */

int wf_inway_nonsense(struct wf_inway *w)
{
	if (!w->complained)
		wf_log(WF_WARN, "process %u wrote nonsense into a mailbox", w->peer->process);
	w->complained = true;
	return -EBADMSG;
}

void wf_inway_grown(struct wf_inway *w, const unsigned char *body)
{
	struct wf_f_place at;

	memcpy(&at, body, sizeof(at));
	w->r.arena = wf_f_place_map(w->peer->process, &at, WF_ARENA_BYTES);
	if (!w->r.arena)
		wf_inway_nonsense(w);
}

void wf_reader_room(struct wf_reader *r)
{
	struct wf_inway *w = wf_inway_of(r);
	struct wf_f_way f = { .key = w->key, .who = w->who };

	if (atomic_exchange_explicit(&w->box->starved, 0, memory_order_relaxed))
		wf_frame_send(w->peer, WF_F_ROOM, &f, sizeof(f));
}

static void say_closed(struct wf_inway *w)
{
	struct wf_f_way f = { .key = w->key, .who = w->who };

	wf_frame_send(w->peer, WF_F_CLOSED, &f, sizeof(f));
}

static struct wf_inway *find_locked(struct wf_peer *peer, uint32_t key, uint32_t who)
{
	struct wf_inway *w = all[peer->process];

	while (w && (w->key != key || w->who != who))
		w = w->next;
	return w;
}

/* Its maker uses a key again only when it was told that the ring is gone: more of one key are a lie, and would be without end. */
static bool has_key_locked(struct wf_peer *peer, uint32_t key)
{
	struct wf_inway *w = all[peer->process];

	while (w && w->key != key)
		w = w->next;
	return w;
}

static void unlist_locked(struct wf_inway *w)
{
	struct wf_inway **at = &all[w->peer->process];

	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
	w->state = WF_IN_FREE;
	w->next = free_inways;
	free_inways = w;
}

/* [no lock] @w is read at @p from now on. False: @p has closed. */
static bool attach(struct wf_inway *w, struct weft_port *p, weft_id id, weft_ctx context)
{
	struct wf_f_attached f = { .key = w->key, .who = w->who, .face = p->number };
	struct wf_work work = { NULL };
	bool open;

	wf_port_enter(p);
	open = p->open && !p->closing && atomic_load_explicit(&p->id, memory_order_relaxed) == id &&
	       atomic_load_explicit(&p->context, memory_order_relaxed) == context;
	if (open) {
		wf_lock(&inways_lock);
		atomic_store_explicit(&w->port, p, memory_order_relaxed);
		w->state = WF_IN_OPEN;
		wf_unlock(&inways_lock);
		atomic_store_explicit(&w->r.next, atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed), memory_order_relaxed);
		atomic_store_explicit(&p->ring.reader.next, &w->r, memory_order_release);
		f.gate = (uint64_t)p->serial << 32 | WF_GATE_OPEN;
		/* What is in it already (a port that opened late) was published without looking for our sleeper. */
		wf_drain_locked(p, &work);
		wf_frame_send(w->peer, WF_F_ATTACHED, &f, sizeof(f));
	}
	wf_port_leave(p);
	wf_work_do(p, &work);
	return open;
}

static void detach_locked(struct weft_port *p, struct wf_inway *w)
{
	struct wf_reader *at = &p->ring.reader;

	while (at && atomic_load_explicit(&at->next, memory_order_relaxed) != &w->r)
		at = atomic_load_explicit(&at->next, memory_order_relaxed);
	if (at)
		atomic_store_explicit(&at->next, atomic_load_explicit(&w->r.next, memory_order_relaxed), memory_order_relaxed);
	if (w->clogged)
		wf_seek_unclog_locked(p, w);
	if (atomic_load_explicit(&p->last, memory_order_relaxed) == &w->r)
		atomic_store_explicit(&p->last, &p->ring.reader, memory_order_relaxed);
	atomic_store_explicit(&w->port, NULL, memory_order_relaxed);
}

/* Which port a ring is for. 0; -EAGAIN: it has to wait for it; -ESRCH, -EPROTO, -ENOMEM. */
static int port_for(const struct wf_f_ring *f, struct weft_port **ret_port)
{
	const struct weft_proto *proto;
	uint16_t who;

	if (!f->context) {
		*ret_port = wf_port_by_id(f->id);
		if (!*ret_port)
			return -ESRCH;
	} else {
		if (!wf_id_lives(f->id))
			return -ESRCH;
		/* Early messages of weft's own protocol wait in a port in limbo; of a foreign one nobody here can match them yet. */
		if (!f->proto || wf_context_known(f->id, f->context)) {
			int r = wf_route(f->id, f->context, NULL, ret_port, &who);

			if (r < 0)
				return r;
		} else {
			return wf_context_closed(f->id, f->context) ? -ESRCH : -EAGAIN;
		}
	}
	proto = (*ret_port)->proto;
	if (f->proto != (proto ? wf_ctx_of_text(proto->name) : 0) || f->head_len != (proto ? proto->head_len : 0))
		return -EPROTO;
	return 0;
}

static struct wf_inway *inway_new(void)
{
	struct wf_inway *w = aligned_alloc(WF_LINE, (sizeof(*w) + WF_LINE - 1) & ~(size_t)(WF_LINE - 1));

	if (w)
		memset(w, 0, sizeof(*w));
	return w;
}

static struct wf_inway *take(struct wf_peer *peer, const struct wf_f_ring *f)
{
	struct wf_box *box = wf_f_place_map(peer->process, &f->box, sizeof(*box));
	struct wf_cell *cells = wf_f_place_map(peer->process, &f->cells, WF_WAY_CELLS * sizeof(*cells));
	struct wf_inway *w;
	bool used;

	if (!box || !cells)
		return NULL;
	wf_lock(&inways_lock);
	used = has_key_locked(peer, f->key);
	w = used ? NULL : free_inways;
	if (w)
		free_inways = w->next;
	else if (!used)
		w = inway_new();
	if (w) {
		/* Who looks at the port it was at before may still be looking at it: what he reads is stored atomically. */
		atomic_store_explicit(&w->r.next, NULL, memory_order_relaxed);
		atomic_store_explicit(&w->r.pos, 0, memory_order_relaxed);
		w->r.arena_at = 0;
		w->r.arena = NULL;
		w->r.arena_last = false;
		atomic_store_explicit(&w->port, NULL, memory_order_relaxed);
		w->complained = w->clogged = false;
		w->announced = w->asked = w->last = 0;
		atomic_store_explicit(&w->r.mask, WF_WAY_CELLS - 1, memory_order_relaxed);
		atomic_store_explicit(&w->r.cells, cells, memory_order_relaxed);
		w->r.head = &box->head;
		w->r.starved = &box->starved;
		w->r.strong = peer->strong;
		w->r.process = peer->process;
		w->peer = peer;
		w->key = f->key;
		w->who = f->who;
		w->box = box;
		w->id = f->id;
		w->context = f->context;
		w->proto = f->proto;
		w->state = WF_IN_ATTACHING;
		w->next = all[peer->process];
		all[peer->process] = w;
	}
	wf_unlock(&inways_lock);
	return w;
}

/* The last word about @w, which is free before it is said: whoever hears it may use the key again at once. */
static void end(struct wf_inway *w, uint32_t what, int err)
{
	struct wf_f_way f = { .key = w->key, .who = w->who, .err = err };
	struct wf_peer *peer = w->peer;

	wf_lock(&inways_lock);
	unlist_locked(w);
	wf_unlock(&inways_lock);
	wf_frame_send(peer, what, &f, sizeof(f));
}

static void refuse(struct wf_inway *w, int err)
{
	end(w, WF_F_REFUSED, err);
}

/* A port that is not open yet and whose protocol nobody here knows: the other may write; it will be read when the port opens. False: refused. */
static bool wait_for_port(struct wf_inway *w)
{
	struct weft_port *world = wf_port_by_id(wf_process_id);
	struct wf_f_attached f = { .key = w->key, .who = w->who };

	if (!world) {
		refuse(w, -ESRCH);
		return false;
	}
	f.face = world->number;         /* a face that says open, whose sleepers look in vain */
	f.gate = (uint64_t)world->serial << 32 | WF_GATE_OPEN;
	wf_lock(&inways_lock);
	w->state = WF_IN_PENDING;
	wf_frame_send(w->peer, WF_F_ATTACHED, &f, sizeof(f));   /* under the lock: before what the port says that opens now */
	wf_unlock(&inways_lock);
	return true;
}

/* One that waits for its port is the caller's. False: it waits no more, somebody else has it. */
static bool unwait(struct wf_inway *w)
{
	bool waits;

	wf_lock(&inways_lock);
	waits = w->state == WF_IN_PENDING;
	if (waits)
		w->state = WF_IN_ATTACHING;
	wf_unlock(&inways_lock);
	return waits;
}

/* One that was let in and gets no port: there may be messages in it, so it ends as if its port had closed. */
static void turn_away(struct wf_inway *w)
{
	wf_lock(&inways_lock);
	w->state = WF_IN_CLOSED;
	say_closed(w);
	wf_unlock(&inways_lock);
}

void wf_inway_ring(struct wf_peer *peer, const struct wf_f_ring *f)
{
	struct wf_f_way no = { .key = f->key, .who = f->who };
	struct wf_inway *w;
	struct weft_port *p = NULL;
	bool let_in = false;
	int r = -ESRCH;

	if (f->key >= WF_WAYS_MOST)             /* no way of any honest process: not worth an answer */
		return;
	w = take(peer, f);
	if (!w) {
		no.err = -ENOMEM;
		wf_frame_send(peer, WF_F_REFUSED, &no, sizeof(no));
		return;
	}
	for (int i = 0; i < 3; i++) {           /* it may close while we look */
		r = port_for(f, &p);
		if (r == -EAGAIN) {
			if (!wait_for_port(w))
				return;
			let_in = true;
			/* Once more: who opened the port, or ended whom it is for, before it was seen to wait is seen now. */
			r = port_for(f, &p);
			if (r == -EAGAIN || !unwait(w))
				return;
		}
		if (r < 0)
			break;
		if (attach(w, p, f->id, f->context))
			return;
		r = -ESRCH;
	}
	if (let_in)
		turn_away(w);
	else
		refuse(w, r);
}

/* One that waits for a port of @id, of @context (0: of any), and is the caller's now; NULL: none. */
static struct wf_inway *waiting_for(weft_id id, weft_ctx context)
{
	struct wf_inway *w = NULL;

	wf_lock(&inways_lock);
	for (uint32_t i = 1; i <= wf_peers_count() && !w; i++)
		for (w = all[i]; w && (w->state != WF_IN_PENDING || w->id != id || (context && w->context != context)); w = w->next)
			continue;
	if (w)
		w->state = WF_IN_ATTACHING;
	wf_unlock(&inways_lock);
	return w;
}

void wf_inways_opened(struct weft_port *p)
{
	weft_id id = atomic_load_explicit(&p->id, memory_order_relaxed);
	weft_ctx context = atomic_load_explicit(&p->context, memory_order_relaxed);
	uint64_t proto = p->proto ? wf_ctx_of_text(p->proto->name) : 0;
	struct wf_inway *w;

	if (!wf_peers_on() || !context)
		return;
	while ((w = waiting_for(id, context)) != NULL)
		if (w->proto != proto || !attach(w, p, id, context))
			turn_away(w);
}

void wf_inways_ended(weft_id id)
{
	struct wf_inway *w;

	while ((w = waiting_for(id, 0)) != NULL)
		turn_away(w);
}

/* [no lock] What nobody will receive any more. */
static void lose(struct wf_inway *w, const struct wf_cell *c, weft_id by)
{
	struct wf_incoming in;

	if (wf_cell_read(&w->r, c, w->proto, &in) == 0) {
		struct wf_f_lost f = { .src = in.src, .by = by, .context = w->context, .len = in.len, .times = 1 };

		if (in.kind == WF_FAR)
			wf_far_turn_away(&in, -ECONNRESET);
		if (in.kind != WF_FAR || in.far.waits & WF_A_WRITTEN) {
			if (in.kind == WF_FLOWN)
				wf_buf_refuse(w->peer->process, &in.flight);
			wf_gone_lost();
			wf_frame_send(w->peer, WF_F_LOST, &f, sizeof(f));
		}
	}
	wf_cell_done(&w->r, &in);
}

/* Reads @w on: true when its end is reached. */
static bool read_out(struct wf_inway *w)
{
	struct wf_cell *c;

	while (atomic_load_explicit(&w->r.pos, memory_order_relaxed) != w->last && (c = wf_ring_next(&w->r)) != NULL)
		lose(w, c, w->id);
	return atomic_load_explicit(&w->r.pos, memory_order_relaxed) == w->last;
}

static void finish(struct wf_inway *w)
{
	end(w, WF_F_GONE, 0);
	atomic_fetch_sub_explicit(&ending, 1, memory_order_relaxed);
}

void wf_inway_shut(struct wf_peer *peer, const struct wf_f_way *f)
{
	struct wf_inway *w;

	wf_lock(&inways_lock);
	w = find_locked(peer, f->key, f->who);
	if (w && w->state == WF_IN_CLOSED && f->pos - atomic_load_explicit(&w->r.pos, memory_order_relaxed) <= WF_WAY_CELLS) {
		w->state = WF_IN_SHUT;
		w->last = f->pos;
		atomic_fetch_add_explicit(&ending, 1, memory_order_relaxed);
	} else {
		w = NULL;
	}
	wf_unlock(&inways_lock);
	if (w && read_out(w))
		finish(w);
}

int wf_inways_step(void)
{
	struct wf_inway *w;
	int left = 0;

	if (!atomic_load_explicit(&ending, memory_order_relaxed))
		return 0;
	for (uint32_t i = 1; i <= wf_peers_count(); i++) {
		wf_lock(&inways_lock);
		for (w = all[i]; w && w->state != WF_IN_SHUT; w = w->next)
			continue;
		wf_unlock(&inways_lock);
		if (w && read_out(w))
			finish(w);
		left += w != NULL;
	}
	return left;
}

void wf_inways_closed(struct weft_port *p)
{
	struct wf_reader *r;

	for (;;) {
		wf_port_enter(p);
		r = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed);
		if (r) {
			struct wf_inway *w = wf_inway_of(r);

			/* At once: when it is out of the chain nobody but us keeps wf_inways_dead from freeing it, for another ring of another process. */
			wf_lock(&inways_lock);
			w->state = WF_IN_CLOSED;
			say_closed(w);
			detach_locked(p, w);
			wf_unlock(&inways_lock);
		}
		wf_port_leave(p);
		if (!r)
			return;
	}
}

/* Of an OPEN one only its port is entered: it stays listed, and it is freed when it has none. */
void wf_inways_dead(struct wf_peer *peer)
{
	unsigned pauses = 0;
	struct wf_inway *w;

	for (;;) {
		struct weft_port *p = NULL;
		bool attaching = false;

		wf_lock(&inways_lock);
		w = all[peer->process];
		if (w) {
			p = atomic_load_explicit(&w->port, memory_order_relaxed);
			attaching = w->state == WF_IN_ATTACHING;        /* by a thread that opens its port: soon it is in the chain, or turned away */
		}
		if (w && !attaching && !p) {
			if (w->state == WF_IN_SHUT)
				atomic_fetch_sub_explicit(&ending, 1, memory_order_relaxed);
			unlist_locked(w);
		}
		wf_unlock(&inways_lock);
		if (!w)
			return;
		if (attaching)
			wf_pause_for(&pauses);
		if (p) {
			struct wf_work work = { NULL };

			wf_port_enter(p);
			/* An unpublished cell of a dead process will never be published: it is the end. */
			if (atomic_load_explicit(&w->port, memory_order_relaxed) == p) {
				wf_drain_locked(p, &work);
				detach_locked(p, w);
			}
			wf_port_leave(p);
			wf_work_do(p, &work);
		}
	}
}
