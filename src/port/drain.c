/* drain.c - see drain.h. Everything named _locked runs under the port's lock, in whichever thread holds it:
 * the receiver, a sender that waits for its announcement, a canceller, the listener. */
#include "port/drain.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "port/budget.h"
#include "port/deliver.h"
#include "port/host.h"
#include "port/listener.h"
#include "port/request.h"
#include "port/route.h"
#include "port/seek.h"
#include "port/wait.h"

/* Senders are told: those of this process by the tail, others by the face. Relaxed: one that misses it sends one more message eagerly. */
static void set_tight_locked(struct weft_port *p, bool tight)
{
	if (tight)
		atomic_fetch_or_explicit(&p->ring.tail, WF_TAIL_TIGHT, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&p->ring.tail, ~WF_TAIL_TIGHT, memory_order_relaxed);
	p->tight = tight;
	wf_gate_locked(p);
}

void wf_gate_locked(struct weft_port *p)
{
	atomic_store_explicit(&p->face->gate, (uint64_t)p->serial << 32 | WF_GATE_OPEN | (p->tight ? WF_GATE_TIGHT : 0),
			      memory_order_relaxed);
}

static void charge_locked(struct weft_port *p, size_t n)
{
	if (wf_budget_full(n))
		set_tight_locked(p, true);
	wf_budget_take(n);
	p->held += n;
}

void wf_uncharge_locked(struct weft_port *p, size_t n)
{
	wf_budget_give(n);
	p->held -= n;
	if ((p->held == 0 || !wf_budget_full(wf_budget.soft / 2)) &&
	    atomic_load_explicit(&p->ring.tail, memory_order_relaxed) & WF_TAIL_TIGHT)
		set_tight_locked(p, false);
}

/* A posted receive that is too short for the message it matches ends. */
static bool too_short_locked(struct weft_port *p, struct weft_req *r, const struct wf_arrival *facts)
{
	if (r->flags & (WEFT_ALLOC | WEFT_TRUNCATE) || facts->len <= r->mem.len)
		return false;
	wf_unmatch(p, &r->a.entry);
	p->told_wants -= r->told;
	wf_status_of(p, facts, &r->st);
	wf_req_end_locked(r, weft_fail(-EMSGSIZE, "the message has %zu bytes", facts->len));
	return true;
}

/* A posted receive that takes the message, or NULL. */
static struct weft_req *taker_locked(struct weft_port *p, const void *head, const struct wf_arrival *facts)
{
	struct weft_match_entry *e;

	while ((e = wf_find_want(p, head)) != NULL) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);

		if (!too_short_locked(p, r, facts))
			return r;
	}
	return NULL;
}

/* @r got its message (in r->st, with @err): it ends, or is told of and goes on. */
static void taken_locked(struct weft_port *p, struct weft_req *r, int err)
{
	bool rests = wf_req_rests(r), stays = r->flags & WEFT_REPEAT && err != -ENOMEM;

	if (!stays || rests) {          /* its memory is the callback's until that returns; posted again then */
		wf_unmatch(p, &r->a.entry);
		p->told_wants -= r->told;
	}
	if (stays) {
		r->where = rests ? WF_TELLING : WF_POSTED;
		r->st.err = err;
		r->st.flags |= WEFT_ST_MORE;
		if (wf_req_repeat_locked(r, &r->st, rests))
			return;
		if (!rests) {           /* no memory to go on */
			wf_unmatch(p, &r->a.entry);
			p->told_wants--;
		}
	}
	wf_req_end_locked(r, err);
}

static struct wf_target target_of(struct weft_req *r)
{
	return (struct wf_target){ .mem = &r->mem, .flags = r->flags, .head_out = r->head_out, .st = &r->st };
}

/* A receive and an announced send have met. What needs no copy of memory is over at once. False: the
 * receive could not take it (no memory) and has ended; the send has not. */
static bool meet_locked(struct weft_port *p, struct weft_req *r, struct weft_req *send, struct wf_work *work)
{
	struct wf_target t = target_of(r);

	wf_status_of(p, &send->a, &r->st);
	wf_head_out(p, &send->a.entry, r->head_out);
	if (send->buf || (send->a.kind != WF_FAR && send->a.kind != WF_WIRED && (r->flags & WEFT_REPEAT || send->a.len <= WF_BODY))) {
		int err = wf_deliver_send(p, send, &t);

		taken_locked(p, r, err);
		if (err != -ENOMEM)
			wf_req_end_locked(send, 0);
		return err != -ENOMEM;
	}
	wf_unmatch(p, &r->a.entry);
	p->told_wants -= r->told;
	r->where = send->where = WF_COPYING;
	r->dirty = true;                /* also one of the hot path: partner and link are to be cleaned */
	r->partner = send;
	r->spill.next = (struct wf_node *)(void *)work->copies;
	work->copies = r;
	p->copying++;
	return true;
}

struct weft_req *wf_claim_want_locked(struct weft_port *p, const struct wf_incoming *in)
{
	struct wf_arrival facts;
	struct weft_req *r;

	if (!wf_wants(p))
		return NULL;
	wf_facts_of(in, &facts);
	r = taker_locked(p, in->head, &facts);
	if (!r || r->flags & (WEFT_REPEAT | WEFT_ALLOC) || r->mem.kind != WF_MEM_PLAIN || r->mem.len < in->len)
		return NULL;
	wf_status_of(p, &facts, &r->st);
	wf_head_out(p, &facts.entry, r->head_out);
	wf_unmatch(p, &r->a.entry);
	p->told_wants -= r->told;
	r->where = WF_COPYING;
	r->dirty = true;
	p->copying++;
	return r;
}

/* READY was said, and no receive was posted. */
static void ready_missed(weft_id src)
{
	struct weft_port *from = wf_port_by_id(src);

	if (from)
		atomic_fetch_add_explicit(&from->ready_missed, 1, memory_order_relaxed);
	else
		wf_far_missed(src);
}

/* An announcement has arrived: to a posted receive, or into the unexpected queue. */
static void arrive_send_locked(struct weft_port *p, struct weft_req *send, struct wf_work *work)
{
	struct weft_req *r;

	wf_user_acquires(&p->ring);
	if (send->cancel) {
		wf_end_send_locked(send, send->cancel);
		return;
	}
	while ((r = taker_locked(p, send->a.entry.head, &send->a)) != NULL) {
		if (!wf_claim_send_locked(send)) {      /* taken back in that moment */
			wf_far_forget(send);
			return;
		}
		if (meet_locked(p, r, send, work))
			return;
		wf_unclaim_send_locked(send);
	}
	if (send->a.flags & WF_MSG_READY) {
		if (send->from)
			atomic_fetch_add_explicit(&send->from->ready_missed, 1, memory_order_relaxed);
		else
			ready_missed(send->a.src);
	}
	/* A copy sets the sender free; without budget the memory stays its. */
	if (!(send->flags & (WEFT_SYNC | WEFT_RENDEZVOUS)) && wf_keep_send_locked(p, send))
		return;
	send->where = WF_QUEUED;
	p->unrequested++;
	wf_add_arrival(p, send->a.entry.head, &send->a.entry);
	if (p->probing)
		wf_wake_probers_locked(p);
}

/* What its sender keeps and was asked for by the name @asked, to the earliest receive that it fits if that is one of that name; else it goes back (seek.h), and what that receive
 * wants is sought instead: at @by, a process of this host, or at those of others. */
static void arrive_offer_locked(struct weft_port *p, struct weft_req *send, uint64_t asked, struct wf_inway *by, struct wf_work *work)
{
	struct weft_match_entry *e;

	wf_user_acquires(&p->ring);
	while ((e = wf_find_want(p, send->a.entry.head)) != NULL && wf_seek_name(p, e->head) == asked) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);

		if (too_short_locked(p, r, &send->a))
			continue;
		if (!wf_claim_send_locked(send)) {      /* taken back in that moment */
			wf_far_forget(send);
			return;
		}
		if (meet_locked(p, r, send, work))
			return;
		wf_unclaim_send_locked(send);
	}
	wf_req_end_locked(send, -EAGAIN);
	if (e && by)
		wf_seek_instead_locked(by, e->head);
	else if (e)
		wf_hosts->seek_locked(p, e);
}

/* An announcement of another process. False: no memory. */
static bool arrive_far_locked(struct weft_port *p, struct wf_incoming *in, struct wf_work *work)
{
	struct weft_req *send = wf_far_send(p, in);

	if (!send)
		return false;
	if (wf_unlikely(in->far.waits & WF_A_OFFER))
		arrive_offer_locked(p, send, wf_seek_name(p, in->payload), in->by, work);
	else
		arrive_send_locked(p, send, work);
	return true;
}

void wf_keep_locked(struct weft_port *p, struct wf_record *rec, const void *head)
{
	charge_locked(p, wf_record_size(rec));
	wf_add_arrival(p, head, &rec->a.entry);
	if (p->probing)
		wf_wake_probers_locked(p);
}

/* The payload of what no cell holds any more. 0; -ENOMEM: nothing happened; -EBADMSG. */
static int keep_payload(struct wf_record *rec, struct wf_incoming *in)
{
	int r = wf_incoming_land(in);

	if (r < 0)
		return r;
	rec->a.kind = in->kind;
	rec->a.flags = in->flags;
	if (in->kind == WF_INLINE || (in->kind == WF_ARENA && in->len <= WF_BODY)) {
		rec->a.kind = WF_INLINE;
		memcpy(rec->body, in->payload, in->len);
	} else if (in->kind == WF_ARENA) {
		if (wf_buf_alloc(in->len, &rec->buf) < 0)
			return -ENOMEM;
		rec->a.kind = WF_POOLED;
		memcpy(rec->buf->data, in->payload, in->len);
	} else {
		rec->buf = in->buf;
	}
	return 0;
}

/* A buffer of another process that is not to be had (its maker has died): its sender is told. */
static void lost_locked(struct weft_port *p, const struct wf_incoming *in)
{
	atomic_fetch_add_explicit(&p->lost, 1, memory_order_relaxed);
	wf_host_tell_lost(in->src, atomic_load_explicit(&p->context, memory_order_relaxed),
			  atomic_load_explicit(&p->id, memory_order_relaxed), in->len);
}

/* The message into the unexpected queue. False: no memory; it stays in the ring. */
static bool keep_cell_locked(struct weft_port *p, struct wf_incoming *in)
{
	struct wf_record *rec = wf_slab_get(WF_SLAB_RECORD);
	int r;

	if (!rec)
		return false;
	wf_facts_of(in, &rec->a);
	rec->a.entry.side = 0;
	r = keep_payload(rec, in);
	if (r < 0) {
		wf_slab_put(WF_SLAB_RECORD, rec);
		if (r == -EBADMSG)
			lost_locked(p, in);
		return r == -EBADMSG;           /* of which nothing is left to keep */
	}
	if (in->flags & WF_MSG_READY)
		ready_missed(in->src);
	wf_keep_locked(p, rec, rec->a.entry.head);
	return true;
}

/* A message that was read goes to whoever wants it. False: it must stay (no memory). */
bool wf_arrive_locked(struct weft_port *p, struct wf_incoming *in, struct wf_work *work)
{
	struct wf_arrival facts;
	struct weft_req *r;
	uint64_t asked;

	if (in->kind == WF_ANNOUNCED) {
		asked = wf_unlikely(in->send->a.flags & WF_MSG_STANDS) ? wf_hosts->offered(in->send) : 0;
		if (asked)
			arrive_offer_locked(p, in->send, asked, NULL, work);
		else
			arrive_send_locked(p, in->send, work);
		return true;
	}
	if (in->kind == WF_FAR)
		return arrive_far_locked(p, in, work);
	if (wf_wants(p)) {
		wf_facts_of(in, &facts);
		while ((r = taker_locked(p, in->head, &facts)) != NULL) {
			struct wf_target t = target_of(r);
			int err = wf_deliver_cell(p, in, &t);

			if (err == -EBADMSG) {
				lost_locked(p, in);
				return true;
			}
			taken_locked(p, r, err);
			if (err != -ENOMEM)
				return true;
		}
	}
	return keep_cell_locked(p, in);
}

/* The next cell to whoever wants it, and on. False: it must stay (no memory). */
static bool arrive_cell_locked(struct weft_port *p, struct wf_reader *rd, const struct wf_cell *c, struct wf_work *work)
{
	struct wf_incoming in;

	wf_user_acquires(&p->ring);
	if (wf_likely(!p->proto && p->native.wants) && wf_arrive_hot_locked(p, rd, c)) {
		wf_ring_advance(rd);
		return true;
	}
	if (wf_cell_read(rd, c, p->proto, &in) == 0 && !wf_arrive_locked(p, &in, work))
		return false;
	wf_cell_done(rd, &in);
	return true;
}

struct wf_cell *wf_port_scan_locked(struct weft_port *p, struct wf_reader **ret_rd)
{
	struct wf_reader *last = atomic_load_explicit(&p->last, memory_order_relaxed), *r = last;
	struct wf_cell *c;

	do {                            /* from the next on, round to the last */
		r = atomic_load_explicit(&r->next, memory_order_relaxed);
		if (!r)
			r = &p->ring.reader;
		c = wf_ring_next(r);
	} while (!c && r != last);
	if (c) {
		atomic_store_explicit(&p->last, r, memory_order_relaxed);
		*ret_rd = r;
	}
	return c;
}

/* Spilled sends follow what was in the ring, urgent ones first. NULL: none; the way into the ring is free. */
static struct weft_req *spilled_locked(struct weft_port *p)
{
	struct wf_node *n = NULL;

	wf_lock(&p->spill_lock);
	/* Since the look without the lock the ring may have filled, and a message spilled behind what is in it. */
	if (!wf_ring_drained(&p->ring)) {
		wf_unlock(&p->spill_lock);
		return NULL;
	}
	for (int i = WF_PRIOS; i-- > 0 && !n;)
		n = wf_list_pop(&p->spill[i]);
	if (n)
		p->spilled--;
	else
		wf_ring_unspill(&p->ring);
	wf_unlock(&p->spill_lock);
	return n ? wf_of(n, struct weft_req, spill) : NULL;
}

struct weft_req *wf_next_spilled_locked(struct weft_port *p)
{
	if (wf_likely(!wf_ring_spilled(&p->ring)) || !wf_ring_drained(&p->ring))
		return NULL;
	return spilled_locked(p);
}

/* The ring was full once, or got more than a cell holds: from now on 256 cells, if the budget allows. */
static void enlarge_locked(struct weft_port *p, struct wf_work *work)
{
	struct wf_ring *ring = &p->ring;
	struct wf_cell *cells, *c;
	uint32_t pos;

	atomic_store_explicit(&p->big_wanted, false, memory_order_relaxed);
	if (!wf_budget.big || ring->reader.mask != WF_CELLS_SMALL - 1)
		return;
	cells = wf_big_cells_get();
	if (!cells)
		return;
	atomic_fetch_or_explicit(&ring->tail, WF_TAIL_FROZEN, memory_order_acquire);
	while (!wf_ring_drained(ring)) {        /* what is claimed will be published: its sender is at it */
		c = wf_ring_next(&ring->reader);
		if (!c) {
			sched_yield();
			continue;
		}
		if (!arrive_cell_locked(p, &ring->reader, c, work))
			break;
	}
	pos = atomic_load_explicit(&ring->reader.pos, memory_order_relaxed);
	if (wf_ring_drained(ring)) {
		for (uint32_t i = 0; i < WF_CELLS_BIG; i++)
			atomic_store_explicit(&cells[i].seq, pos, memory_order_relaxed);        /* looks old */
		wf_ring_use(ring, cells, WF_CELLS_BIG);
		atomic_store_explicit(&ring->head, pos, memory_order_release);
	} else {
		wf_big_cells_put(cells);
	}
	/* The flag goes and, if the cells are new, the tail says so: one release for both (R3). Nobody claims meanwhile. */
	atomic_fetch_xor_explicit(&ring->tail, WF_TAIL_FROZEN | (ring->reader.mask == WF_CELLS_BIG - 1 ? WF_TAIL_BIG : 0),
				  memory_order_release);
}

int wf_drain_locked(struct weft_port *p, struct wf_work *work)
{
	struct weft_req *send;
	struct wf_reader *rd;
	struct wf_cell *c;
	int n = 0;

	wf_assert_inside(p);
	for (;;) {
		while ((c = wf_port_next_locked(p, &rd)) != NULL) {
			if (wf_unlikely(!arrive_cell_locked(p, rd, c, work))) {
				wf_listener_starved();
				return n;
			}
			n++;
		}
		send = wf_next_spilled_locked(p);
		if (!send)
			break;
		arrive_send_locked(p, send, work);
		n++;
	}
	if (wf_unlikely(atomic_load_explicit(&p->big_wanted, memory_order_relaxed)))
		enlarge_locked(p, work);
	if (n && wf_self.port != p)
		atomic_fetch_add_explicit(&p->drains, 1, memory_order_relaxed);
	return n;
}

void wf_drain_ended_locked(struct weft_port *p, struct wf_work *work)
{
	struct wf_reader *rd = &p->ring.reader;
	unsigned pauses = 0;
	uint32_t end;

	atomic_thread_fence(memory_order_acquire);      /* pairs with the release of his id: behind it his claims are in the tail */
	end = (uint32_t)atomic_load_explicit(&p->ring.tail, memory_order_relaxed);
	for (;;) {
		/* relaxed: the reader's own word */
		uint32_t from = atomic_load_explicit(&rd->pos, memory_order_relaxed), to;
		bool there = wf_ring_next(rd);

		wf_drain_locked(p, work);
		to = atomic_load_explicit(&rd->pos, memory_order_relaxed);
		/* A cell that was there before, and stays, is one for which there is no memory. One that is there only now may have come meanwhile. */
		if ((int32_t)(end - to) <= 0 || (there && to == from))
			return;
		if (to == from)
			wf_pause_for(&pauses);
	}
}

void wf_drain_claimed_locked(struct weft_port *p, struct wf_work *work)
{
	wf_drain_locked(p, work);
	if (wf_unlikely(!wf_ring_unclaimed(&p->ring)))
		wf_drain_ended_locked(p, work);
}

int wf_port_progress(struct weft_port *p)
{
	struct wf_work work = { NULL };
	int n;

	if (!wf_port_waiting(p))
		return 0;
	wf_port_enter(p);
	n = wf_drain_locked(p, &work);
	wf_port_leave(p);
	wf_work_do(p, &work);
	return n;
}

void wf_port_help(struct weft_port *p)
{
	struct wf_work work = { NULL };

	wf_port_enter(p);
	if (wf_wants(p))
		wf_drain_locked(p, &work);
	wf_port_leave(p);
	wf_work_do(p, &work);
}

void wf_work_do(struct weft_port *p, struct wf_work *work)
{
	struct weft_req *r, *next;

	for (r = work->copies; r; r = next) {
		struct weft_req *send = r->partner;
		struct wf_target t = target_of(r);
		int err;

		next = (struct weft_req *)(void *)r->spill.next;
		if (wf_unlikely(send->a.kind == WF_FAR || send->a.kind == WF_WIRED)) {
			if (send->a.kind == WF_FAR)
				wf_far_start(p, r);
			else
				wf_hosts->fetch(p, r);
			continue;
		}
		err = wf_copy_memory(&send->mem, send->a.len, &t);
		wf_port_enter(p);
		p->copying--;
		p->received++;
		p->received_bytes += send->a.len;
		p->copies++;
		wf_req_end_locked(send, err == -EINVAL ? err : 0);
		wf_req_end_locked(r, err);
		wf_port_leave(p);
	}
	work->copies = NULL;
}

/* The earliest that waits in the queue: 1, 0: none, or an error. */
static int take_queued_locked(struct weft_port *p, const void *want, const struct wf_target *t, struct weft_req **ret_send)
{
	struct weft_match_entry *e;
	int r;

	while (wf_arrivals(p) && (e = wf_look(p, want)) != NULL) {
		r = wf_take_arrival_locked(p, wf_of(e, struct wf_arrival, entry), t, ret_send);
		if (r)
			return r;               /* else its sender took it back in that moment */
	}
	return 0;
}

/* The next cell: to this receive (1, or its error), or to whoever wants it (0). */
static int take_cell_locked(struct weft_port *p, struct wf_reader *rd, struct wf_cell *c, const void *want,
			    const struct wf_target *t, struct wf_work *work)
{
	struct wf_incoming in;
	int r = 0;

	if (p->proto || wf_wants(p))
		return arrive_cell_locked(p, rd, c, work) ? 0 : weft_fail(-ENOMEM, "no memory to keep a message");
	wf_user_acquires(&p->ring);
	if (wf_cell_read(rd, c, p->proto, &in) == 0) {
		if (in.kind != WF_ANNOUNCED && in.kind != WF_FAR && wf_matches(want, in.src, in.tag) && wf_fits(t, in.len)) {
			r = wf_deliver_cell(p, &in, t);
			if (r == -ENOMEM)
				return r;
			if (r == -EBADMSG)
				lost_locked(p, &in);
			r = r == -EBADMSG ? 0 : r < 0 ? r : 1;
		} else if (!wf_arrive_locked(p, &in, work)) {
			return weft_fail(-ENOMEM, "no memory to keep a message");
		}
	}
	wf_cell_done(rd, &in);
	/* Senders wait to enter: a receive makes room for all of them, within the budget. */
	if (r && wf_unlikely(wf_ring_spilled(&p->ring)))
		wf_drain_locked(p, work);
	return r;
}

bool wf_board_locked(struct weft_port *p, const void *want, const struct wf_target *t, struct wf_far *f)
{
	struct wf_incoming in;
	struct wf_reader *rd;
	struct wf_cell *c;

	if (p->proto || p->native.wants || p->native.arrivals || wf_ring_spilled(&p->ring))
		return false;
	c = wf_port_next_locked(p, &rd);
	if (!c || !rd->starved || *(const volatile uint16_t *)&c->kind != WF_FAR || wf_cell_read(rd, c, false, &in) < 0 || in.kind != WF_FAR ||
	    !wf_matches(want, in.src, in.tag) || !wf_fits(t, in.len) || !wf_far_board_locked(p, &in, f))
		return false;
	wf_user_acquires(&p->ring);
	if (t->st)
		wf_status_in(p, &in, t->st);
	wf_cell_done(rd, &in);
	return true;
}

/* What a receive does first: the unexpected queue, then the mailbox cell by cell. As long as nothing is posted a
 * cell is compared with the receive itself, and no queue is touched. */
int wf_take_locked(struct weft_port *p, const void *want, const struct wf_target *t, struct wf_work *work,
		   struct weft_req **ret_send)
{
	struct weft_req *send;
	struct wf_reader *rd;
	struct wf_cell *c;
	int r;

	wf_assert_inside(p);
	*ret_send = NULL;
	r = take_queued_locked(p, want, t, ret_send);
	if (r)
		return r;
	for (;;) {
		while ((c = wf_port_next_locked(p, &rd)) != NULL) {
			r = take_cell_locked(p, rd, c, want, t, work);
			if (r)
				return r;
			r = take_queued_locked(p, want, t, ret_send);
			if (r)
				return r;
		}
		send = wf_next_spilled_locked(p);
		if (!send)
			break;
		arrive_send_locked(p, send, work);
		r = take_queued_locked(p, want, t, ret_send);
		if (r)
			return r;
	}
	if (wf_unlikely(atomic_load_explicit(&p->big_wanted, memory_order_relaxed))) {
		enlarge_locked(p, work);
		return take_queued_locked(p, want, t, ret_send);
	}
	return 0;
}
