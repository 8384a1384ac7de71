/* send.c - the way of a message into a mailbox.
 *
 *   <= 96 bytes     in the cell                                     done at once
 *   <= eager        in a buffer of the pool, the cell points to it  done at once
 *   a buffer        the cell points to it                           done at once
 *   else, or SYNC, RENDEZVOUS, or no budget: announced: the cell points to the request, the memory stays
 *   the mailbox is full: the request spills into the port's list, by priority
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "port/budget.h"
#include "port/cancel.h"
#include "port/context.h"
#include "port/deliver.h"
#include "port/eager.h"
#include "port/listener.h"
#include "port/op.h"
#include "port/open.h"
#include "port/outgoing.h"
#include "port/push.h"
#include "port/request.h"
#include "port/route.h"
#include "port/wait.h"

static inline void publish(struct weft_port *to, struct wf_cell *c, uint32_t pos)
{
	struct wf_parker *sleeper;

	wf_user_releases(&to->ring);
	wf_ring_publish(c, pos);
	sleeper = wf_ring_sleeper(&to->ring);
	if (wf_unlikely(sleeper != NULL))
		wf_bell(to, sleeper);
}

/* What a refused claim means: -ESRCH: nobody of that id; -EAGAIN: full, or behind what spilled; -ENOBUFS: no
 * budget; -EINTR: look again. */
static int refused(struct outgoing *o, enum wf_claim claim, uint64_t allow)
{
	uint64_t t = atomic_load_explicit(&o->to->ring.tail, memory_order_acquire);

	if (claim == WF_CLAIM_FULL) {
		if (!atomic_load_explicit(&o->to->big_wanted, memory_order_relaxed))
			atomic_store_explicit(&o->to->big_wanted, true, memory_order_relaxed);
		return -EAGAIN;
	}
	if (claim == WF_CLAIM_OTHER || t & WF_TAIL_CLOSED)
		return -ESRCH;
	if (t & WF_TAIL_FOREIGN && !(o->allow & WF_TAIL_FOREIGN))
		return weft_fail(-EPROTO, "the port there speaks %s", o->to->proto ? o->to->proto->name : "another protocol");
	if (t & WF_TAIL_SPILLED)
		return -EAGAIN;
	if (t & WF_TAIL_TIGHT & ~allow)
		return -ENOBUFS;
	wf_relax();                     /* frozen for a moment, or it has passed */
	return -EINTR;
}

/* Who @id is in @context now: a port of this process, or the way to one of another. */
static int find(struct outgoing *o)
{
	o->to = NULL;
	o->way = NULL;
	o->abroad = wf_unlikely(wf_abroad(o->id));
	if (wf_unlikely(o->abroad))
		return wf_hosts->lives(o->id);
	if (wf_unlikely(o->id >> 32 != wf_process_id >> 32) && wf_peers_on())
		return wf_way_find(o->id, o->context, o->from->proto, &o->way, &o->who);
	if (o->context)
		return wf_route(o->id, o->context, o->from->proto, &o->to, &o->who);
	o->to = wf_port_find(o->id, &o->who);
	return o->to ? 0 : wf_id_fail(-ESRCH, o->id);
}

/* The eager way to another process; a route that was stale is looked for once more. */
static int enter_far(struct outgoing *o)
{
	int r = wf_far_eager(o, 0);

	if (r != -ESRCH)
		return r;
	wf_way_stale(o->way, o->who);
	r = find(o);
	if (r == 0)
		r = wf_far_eager(o, 0);
	return r == -ESRCH || r == -EPROTO ? wf_id_fail(r, o->id) : r;
}

/* Writes the message, or an announcement of it, into the mailbox: 0, or as refused(). */
static int enter(struct outgoing *o, uint16_t kind, const void *pointer, uint64_t allow)
{
	for (int again = 0;;) {
		struct wf_cell *c;
		uint32_t pos;
		enum wf_claim claim = wf_ring_claim(&o->to->ring, o->who, allow | o->allow, &pos, &c);
		int r;

		if (wf_likely(claim == WF_CLAIMED)) {
			unsigned char *body = wf_outgoing_fill(c, o, kind);

			/* @pointer: to the payload, if it goes into the cell; else what the cell points to. */
			if (kind != WF_INLINE)
				memcpy(body, &pointer, sizeof(pointer));
			else if (o->len)
				memcpy(body, pointer, o->len);
			publish(o->to, c, pos);
			return 0;
		}
		r = refused(o, claim, allow);
		/* The route was stale, or it has opened anew. (An announced one starts again from further up: its
		 * request names the port.) */
		if (r == -ESRCH && o->context && kind != WF_ANNOUNCED && again++ < 2) {
			r = find(o);
			if (r < 0)
				return r;
			continue;
		}
		if (r == -ESRCH)
			return weft_fail(r, "no thread, process or port of that id");
		if (r != -EINTR)
			return r;
	}
}

/* The request joins those that did not fit. -EINTR: there is room by now, or a moment's change. */
static int spill(struct outgoing *o, struct weft_req *r)
{
	struct weft_port *to = o->to;
	struct wf_ring *ring = &to->ring;
	struct wf_parker *sleeper;
	uint64_t t;

	wf_lock(&to->spill_lock);
	t = atomic_load_explicit(&ring->tail, memory_order_acquire);
	if (t & WF_TAIL_CLOSED || WF_TAIL_INCARNATION(t) != o->who) {
		wf_unlock(&to->spill_lock);
		return wf_id_fail(-ESRCH, o->id);
	}
	if (t & WF_TAIL_FROZEN ||
	    (!(t & WF_TAIL_SPILLED) &&
	     (uint32_t)t - atomic_load_explicit(&ring->head, memory_order_acquire) <= wf_tail_mask(t))) {
		wf_unlock(&to->spill_lock);
		wf_relax();
		return -EINTR;
	}
	wf_list_add(&to->spill[r->prio + WF_PRIOS / 2], &r->spill);
	to->spilled++;
	wf_user_releases(&to->ring);
	wf_ring_spill(ring);
	wf_unlock(&to->spill_lock);
	sleeper = wf_ring_sleeper(ring);
	if (sleeper)
		wf_bell(to, sleeper);
	return 0;
}

/* Announces @r; it may end, and be gone, before this returns. */
static int announce(struct outgoing *o, struct weft_req *r)
{
	int err;

	do {
		err = enter(o, WF_ANNOUNCED, r, WF_TAIL_TIGHT);
		if (err == -EAGAIN)
			err = spill(o, r);
	} while (err == -EINTR);
	return err;
}

/* What the request says, so that it can be matched without its sender. */
static void describe(struct weft_req *r, const struct outgoing *o, const struct weft_op *op)
{
	struct wf_head native = { .src = atomic_load_explicit(&o->from->id, memory_order_relaxed), .tag = o->tag };

	r->from = o->from;
	r->a.src = native.src;
	r->a.len = o->len;
	r->a.index = o->from->index;
	r->a.kind = o->buf ? o->kind : WF_ANNOUNCED;
	r->a.flags = o->flags | WF_MSG_SENDS;
	if (o->allow & WF_TAIL_FOREIGN) {
		memset(r->a.entry.head, 0, WF_HEAD_ROOM);
		if (o->head)
			memcpy(r->a.entry.head, o->head, o->from->proto->head_len);
	} else {
		memcpy(r->a.entry.head, &native, sizeof(native));
	}
	r->mem = o->mem;
	r->buf = o->buf;
	r->prio = op->prio;
	r->st.from = o->id;
	r->st.tag = o->tag;
	r->st.len = o->len;
}

static void join_sender(struct weft_req *r)
{
	wf_lock(&r->from->sends_lock);
	wf_list_add(&r->from->sends, &r->mine);
	wf_unlock(&r->from->sends_lock);
}

static int announce_once(struct outgoing *o, const struct weft_op *op, bool handle, struct weft_req **ret_req)
{
	struct weft_req *r = o->blocks ? wf_req_own(WF_SEND) : wf_req_new(WF_SEND);
	int err;

	if (!r)
		return -ENOMEM;
	r->from = o->from;
	err = wf_req_observe(r, op, handle, o->blocks ? NULL : o->from);
	if (err < 0) {
		wf_req_put(r);
		return err;
	}
	describe(r, o, op);
	r->at = o->to;
	r->where = WF_IN_RING;          /* or spilled; from here on others may look at it */
	join_sender(r);
	if (r->expires && !o->way && !o->abroad)
		err = wf_timer_add(r);
	if (err == 0)
		err = o->way ? wf_push_start(o, r) : o->abroad ? wf_hosts->start(o, r) : announce(o, r);
	if (err < 0) {
		wf_cover_enter(o->to);         /* a timer may be at it */
		wf_lock(&o->from->sends_lock);
		wf_list_del(&r->mine);
		wf_unlock(&o->from->sends_lock);
		wf_req_unobserve(r);
		wf_req_leave(o->to);
		return err;
	}
	wf_count_sent(o->from, o->len);
	*ret_req = handle ? r : NULL;
	return 0;
}

/* The announced way. @handle: the caller keeps @ret_req. */
static int start_announced(struct outgoing *o, const struct weft_op *op, bool handle, struct weft_req **ret_req)
{
	int r = announce_once(o, op, handle, ret_req);

	if (r == -ESRCH && o->way)
		wf_way_stale(o->way, o->who);
	if (r == -ESRCH && (o->context || o->way) && (r = find(o)) == 0)
		r = announce_once(o, op, handle, ret_req);
	return r;
}

/* The eager ways: 0 done; -EAGAIN, -ENOBUFS: not this way now. */
static int start_eager(struct outgoing *o)
{
	size_t room = o->allow & WF_TAIL_FOREIGN ? WF_BODY - WF_HEAD_ROOM : WF_BODY;
	struct weft_buf *copy;
	struct wf_mem to;
	int r;

	if (o->way)
		return enter_far(o);
	if (wf_unlikely(o->abroad))
		return wf_hosts->send(o);
	if (o->buf) {
		bool large = o->buf->cap > wf_budget.large;

		if (large && wf_budget_full(o->buf->cap))
			return -ENOBUFS;
		if (large) {
			wf_budget_take(o->buf->cap);
			o->flags |= WF_MSG_CHARGED;
		}
		if (o->kind == WF_HANDED)
			wf_buf_sent(o->buf);
		r = enter(o, o->kind, o->buf, 0);
		if (r < 0 && large) {
			wf_budget_give(o->buf->cap);
			o->flags &= (uint16_t)~WF_MSG_CHARGED;
		}
		return r;
	}
	if (o->len <= room) {
		unsigned char flat[WF_BODY];    /* a cell that is claimed must be filled: what may fail comes before */

		if (o->mem.kind == WF_MEM_PLAIN)
			return enter(o, WF_INLINE, o->mem.plain, 0);
		to = wf_mem_plain(flat, o->len);
		return wf_mem_copy(&to, &o->mem, o->len) ? enter(o, WF_INLINE, flat, 0)
							 : weft_fail(-EINVAL, "op.layout gave no pieces");
	}
	if (!(atomic_load_explicit(&o->to->ring.tail, memory_order_relaxed) & WF_TAIL_BIG) &&
	    !atomic_load_explicit(&o->to->big_wanted, memory_order_relaxed))
		atomic_store_explicit(&o->to->big_wanted, true, memory_order_relaxed);
	r = wf_buf_alloc(o->len, &copy);
	if (r < 0)
		return r == -ENOBUFS ? r : -EAGAIN;
	to = wf_mem_plain(copy->data, o->len);
	r = wf_mem_copy(&to, &o->mem, o->len) ? enter(o, WF_POOLED, copy, 0)
					      : weft_fail(-EINVAL, "op.layout gave no pieces");
	if (r < 0)
		wf_buf_release(copy);
	return r;
}

static bool eager_allowed(const struct outgoing *o, const struct weft_op *op)
{
	if (op->flags & (WEFT_SYNC | WEFT_RENDEZVOUS))
		return false;
	return o->buf || op->flags & WEFT_COPY || o->len <= wf_budget.eager;
}

/* WEFT_COPY: the data is free on return. What a cell cannot hold travels with a copy of weft's own. */
static int copy_now(struct outgoing *o)
{
	struct weft_buf *copy;
	struct wf_mem to;
	int r;

	if (o->len > wf_budget.limit)
		return weft_fail(-ENOBUFS, "a copy of %zu bytes is larger than the budget", o->len);
	r = wf_buf_alloc(o->len, &copy);
	if (r < 0)
		return r;
	to = wf_mem_plain(copy->data, o->len);
	if (!wf_mem_copy(&to, &o->mem, o->len)) {
		wf_buf_release(copy);
		return weft_fail(-EINVAL, "op.layout gave no pieces");
	}
	o->buf = copy;
	o->kind = WF_POOLED;
	return 0;
}

/* Starts what goes eagerly and is to be told of: 0, with the handle if one is wanted; or as start_eager. */
static int start_told(struct outgoing *o, const struct weft_op *op, struct weft_req **ret_req)
{
	struct weft_req *r = wf_req_new(WF_SEND);
	int err;

	if (!r)
		return -ENOMEM;
	r->from = o->from;
	err = wf_req_observe(r, op, ret_req != NULL, o->from);
	if (err < 0) {
		wf_req_put(r);
		return err;
	}
	err = start_eager(o);
	if (err < 0) {
		wf_req_unobserve(r);
		return err;
	}
	r->st.from = o->id;
	r->st.tag = o->tag;
	r->st.len = o->len;
	if (ret_req)
		*ret_req = r;
	wf_lock(&wf_user_lock);
	wf_req_end_locked(r, 0);
	wf_unlock(&wf_user_lock);
	return 0;
}

/* Starts a send: WEFT_DONE, 0 (*ret_req if asked for), or an error: then nothing happened. */
static int start(struct outgoing *o, const struct weft_op *op, struct weft_req **ret_req)
{
	struct weft_req *unwanted;
	bool tells = op->done || op->queue;
	int r;

	if (op->flags & WEFT_COPY && (op->flags & (WEFT_SYNC | WEFT_RENDEZVOUS) || o->len > wf_budget.eager)) {
		r = copy_now(o);
		if (r < 0)
			return r;
	}
	if (!eager_allowed(o, op))
		return start_announced(o, op, ret_req != NULL, ret_req ? ret_req : &unwanted);
	if (o->from->limit && atomic_load_explicit(&o->from->under_way, memory_order_relaxed) >= o->from->limit)
		return weft_fail(-EAGAIN, "the port's limit of %u operations is reached", o->from->limit);
	r = tells ? start_told(o, op, ret_req) : start_eager(o);
	if (r == 0) {
		wf_count_sent(o->from, o->len);
		return tells ? 0 : WEFT_DONE;
	}
	if (r != -EAGAIN && r != -ENOBUFS)
		return r;
	if (op->flags & WEFT_COPY && o->way && atomic_load_explicit(&o->way->tail, memory_order_relaxed) & WF_WAY_WAITS)
		r = o->buf ? 0 : copy_now(o);           /* the first to a port of another process: nobody reads its ring yet */
	else if (op->flags & WEFT_COPY && o->abroad)
		r = o->buf ? 0 : copy_now(o);           /* its sender has what is not acknowledged */
	else if (op->flags & WEFT_COPY)
		return weft_fail(-EAGAIN, "no room for a copy now");
	else
		r = 0;
	if (r < 0)
		return r;
	return start_announced(o, op, ret_req != NULL, ret_req ? ret_req : &unwanted);
}

/* From whom, to whom, what: all that is checked before anything happens. A buffer is under way after this. */
static int prepare(struct outgoing *o, struct weft_port *from, const struct weft_op *op)
{
	int r;

	memset(o, 0, sizeof(*o));
	o->from = from;
	o->context = atomic_load_explicit(&from->context, memory_order_relaxed);
	o->allow = from->proto ? WF_TAIL_FOREIGN : 0;
	o->tag = from->proto ? 0 : op->tag;
	o->head = op->head;
	o->prio = op->prio;
	o->flags = op->flags & WEFT_READY ? WF_MSG_READY : 0;
	if (wf_unlikely(atomic_load_explicit(&from->broken, memory_order_relaxed)))
		return weft_fail(-ECONNRESET, "a member of the port has ended");
	r = wf_peer_id(from, op->peer, &o->id);
	if (r == 0)
		r = find(o);
	if (r < 0)
		return r;
	if (wf_unlikely(o->to && o->to->proto != from->proto) && !wf_proto_same(o->to->proto, from->proto))
		return weft_fail(-EPROTO, "the ports speak different protocols");
	if (!op->buf) {
		r = wf_mem_of(op, &o->mem);
		o->len = o->mem.len;
		return r;
	}
	r = wf_buf_send_begin(op->buf, op->flags & WEFT_KEEP, &o->buf);
	if (r < 0)
		return r;
	o->kind = WF_HANDED;
	o->len = o->buf->len;
	if (wf_buf_is_shared(o->buf))
		o->flags |= WF_MSG_SHARED;
	return 0;
}

/* The send came to nothing: the buffer is its user's again, a copy goes home. */
static void unprepare(struct outgoing *o)
{
	if (!o->buf)
		return;
	if (o->kind == WF_HANDED)
		wf_buf_send_undo(o->buf);
	else
		wf_buf_release(o->buf);
}

/* Nobody sleeps there who would see the announcement: if a receive is posted, match it ourselves. */
static void help(struct weft_port *to)
{
	if (to && !atomic_load_explicit(&to->ring.sleeper, memory_order_relaxed))
		wf_port_help(to);
}

/* What does not lie in the cell's first line, before anything is written to that. Its reader looks at that line all the time: after a store into it
 * the line is fetched away, and if the stores to the others had still to be waited for, that of seq must fetch it back. x86-64 shows stores in
 * their order: 64 bytes took 2.0 of the raw ring with the first line written first, 1.25 so. */
static inline void fill_apart(const struct wf_claimed *at, const void *data, size_t len)
{
	if (len > WF_BODY)
		memcpy(at->bytes, data, len);
	else
		memcpy(at->cell->body + WF_BODY_NEAR, (const char *)data + WF_BODY_NEAR, len - WF_BODY_NEAR);
	atomic_signal_fence(memory_order_seq_cst);      /* for the compiler: nothing depends on it but time */
}

/* Into the mailbox of another process, by a way that this thread has used before. */
static inline __attribute__((always_inline)) bool send_by(struct wf_way *w, uint16_t who, weft_id src, uint32_t index, uint64_t tag, const void *data,
							  size_t len)
{
	struct wf_claimed at;

	if (wf_unlikely(!w || len > wf_budget.eager || len > WF_ARENA_MOST))
		return false;
	if (wf_unlikely(!atomic_load_explicit(&w->solo, memory_order_relaxed)) && ++wf_self.claims % 256 == 0)
		wf_way_solo(w);
	if (wf_unlikely(wf_way_claim(w, who, len > WF_BODY ? len : 0, 0, &at) != WF_CLAIMED))
		return false;
	if (wf_unlikely(len > WF_BODY_NEAR))
		fill_apart(&at, data, len);
	at.cell->kind = len > WF_BODY ? WF_ARENA : WF_INLINE;
	at.cell->flags = 0;
	at.cell->len = (uint32_t)len;
	at.cell->index = index;
	at.cell->src = src;
	at.cell->tag = tag;
	if (wf_likely(len <= WF_BODY_NEAR))
		wf_copy_small(at.cell->body, data, len);
	else if (len <= WF_BODY)
		memcpy(at.cell->body, data, WF_BODY_NEAR);
	wf_way_publish(w, &at);
	return true;
}

static bool send_hot_far(weft_id to, uint64_t tag, const void *data, size_t len)
{
	uint16_t who;
	struct wf_way *w = wf_way_cached(to, &who);

	if (!send_by(w, who, wf_self.id, WEFT_NOBODY, tag, data, len))
		return false;
	wf_count_sent(wf_self.port, len);
	return true;
}

/* To a member that is of another host. */
static __attribute__((noinline)) bool send_hot_abroad_at(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	weft_id id;

	if (!from->members || to >> 32 != UINT64_C(0xfff) << 20 || (uint32_t)to >= from->members->count)
		return false;
	id = atomic_load_explicit(&from->members->ids[(uint32_t)to], memory_order_relaxed);
	return id && !(id & WF_MEMBER_GONE) && wf_abroad(id) && wf_hosts->brisk(from, id, tag, data, len);
}

/* From a context's port to a member of it in another process. */
static bool send_hot_at(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	struct wf_way *w;
	uint16_t who;

	if (wf_unlikely(tag == WEFT_ANY_TAG || from->proto || atomic_load_explicit(&from->broken, memory_order_relaxed)))
		return false;
	w = wf_way_cached_at(from, to, &who);
	if (wf_unlikely(!w) ? !wf_hosts || !send_hot_abroad_at(from, to, tag, data, len) :
			      !send_by(w, who, atomic_load_explicit(&from->id, memory_order_relaxed), from->index, tag, data, len))
		return false;
	wf_count_sent(from, len);
	return true;
}

/* The same to another host. */
static __attribute__((noinline)) bool send_hot_abroad(weft_id to, uint64_t tag, const void *data, size_t len)
{
	if (!wf_hosts->brisk(wf_self.port, to, tag, data, len))
		return false;
	wf_count_sent(wf_self.port, len);
	return true;
}

/* The hot path: from a thread's own port, into a cell. True: sent. */
static inline __attribute__((always_inline)) bool send_hot(weft_id to, uint64_t tag, const void *data, size_t len)
{
	struct weft_port *p;
	struct wf_cell *c;
	uint32_t pos;
	uint16_t who;

	if (wf_unlikely(tag == WEFT_ANY_TAG))
		return false;
	p = wf_port_find(to, &who);
	if (!p)
		return wf_unlikely(wf_abroad(to)) ? send_hot_abroad(to, tag, data, len) : send_hot_far(to, tag, data, len);
	if (wf_unlikely(len > WF_BODY))
		return false;
	if (wf_unlikely(wf_ring_claim(&p->ring, who, 0, &pos, &c) != WF_CLAIMED))
		return false;
	c->kind = WF_INLINE;
	c->flags = 0;
	c->len = (uint32_t)len;
	c->index = WEFT_NOBODY;
	c->src = wf_self.id;
	c->tag = tag;
	wf_copy_small(c->body, data, len);
	publish(p, c, pos);
	wf_count_sent(wf_self.port, len);
	return true;
}

bool wf_drop_in(const struct wf_guest *g)
{
	struct weft_port *p;
	struct wf_cell *c;
	uint32_t pos;
	uint16_t who;

	if (g->len > WF_BODY || !wf_self.port)
		return false;
	if (g->context) {
		if (wf_route(g->to, g->context, NULL, &p, &who) < 0 || !wf_port_mine(p))
			return false;
	} else {
		p = wf_port_find(g->to, &who);
		if (p != wf_self.port)
			return false;
	}
	switch (wf_ring_claim(&p->ring, who, 0, &pos, &c)) {
	case WF_CLAIMED:
		break;
	case WF_CLAIM_FULL:
		if (!atomic_load_explicit(&p->big_wanted, memory_order_relaxed))
			atomic_store_explicit(&p->big_wanted, true, memory_order_relaxed);
		return false;
	default:
		return false;
	}
	c->kind = WF_INLINE;
	c->flags = 0;
	c->len = (uint32_t)g->len;
	c->index = g->index;
	c->src = g->src;
	c->tag = g->tag;
	wf_copy_small(c->body, g->payload, g->len);
	publish(p, c, pos);
	return true;
}

/* A send is pending. Whoever breaks a FRAGILE port takes back what is pending there then; if that was before this one was, and after prepare() looked,
 * it is ours to do. Both walk the list under its lock, behind whom the flag is seen. */
static void broke_meanwhile(struct weft_port *from)
{
	if (wf_unlikely(atomic_load_explicit(&from->broken, memory_order_relaxed)))
		wf_sends_cancel(from, -ECONNRESET);
}

WF_SLOW static int send_post_slow(struct weft_port *from, const struct weft_op *theirs, struct weft_req **ret_req)
{
	struct outgoing o;
	struct weft_op op;
	int r = wf_op_read_send(from, theirs, &op);

	if (r == 0)
		r = prepare(&o, from, &op);
	if (r < 0)
		return r;
	r = start(&o, &op, ret_req);
	if (r < 0) {
		unprepare(&o);
		return r;
	}
	if (r == WEFT_DONE) {
		if (ret_req)
			*ret_req = NULL;
		return r;
	}
	help(o.to);
	broke_meanwhile(from);
	if (ret_req && !op.done && !op.queue && wf_req_over(*ret_req) && (*ret_req)->st.err == 0) {
		wf_req_collect(*ret_req, NULL);
		*ret_req = NULL;
		return WEFT_DONE;
	}
	return 0;
}

/* From a context's port; apart, so that one's own pays nothing for it. */
static __attribute__((noinline)) int send_post_from(struct weft_port *from, const struct weft_op *theirs, struct weft_req **ret_req)
{
	if (wf_likely(wf_op_plain(theirs, 0) && theirs->peer >> 52 == 0xfff) && send_hot_at(from, theirs->peer, theirs->tag, theirs->data, theirs->len)) {
		if (ret_req)
			*ret_req = NULL;
		return WEFT_DONE;
	}
	return send_post_slow(from, theirs, ret_req);
}

int weft_send_post(struct weft_port *from, const struct weft_op *theirs, struct weft_req **ret_req)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(from != NULL))
		return send_post_from(from, theirs, ret_req);
	if (wf_likely(wf_op_plain(theirs, 0)) && send_hot(theirs->peer, theirs->tag, theirs->data, theirs->len)) {
		if (ret_req)
			*ret_req = NULL;
		return WEFT_DONE;
	}
	return send_post_slow(wf_self.port, theirs, ret_req);
}

/* Others wait already. */
static bool queued(const struct outgoing *o)
{
	if (o->way)
		return atomic_load_explicit(&o->way->tail, memory_order_relaxed) & WF_WAY_STOPS;
	return o->to && atomic_load_explicit(&o->to->ring.tail, memory_order_relaxed) & WF_TAIL_SPILLED;
}

/* Full mailbox: room may come in a moment; spilling costs a request. */
static int linger_for_room(struct outgoing *o, weft_time until)
{
	struct wf_linger w;
	int r;

	wf_linger_init(&w);
	do {
		r = start_eager(o);
	} while (r == -EAGAIN && until != WEFT_NOW && !queued(o) && wf_linger(&w));
	return r;
}

static int send_wait(struct weft_port *from, const struct weft_op *op, weft_time until)
{
	struct weft_req *req;
	struct outgoing o;
	int r = prepare(&o, from, op);

	if (r < 0)
		return r;
	if (eager_allowed(&o, op)) {
		r = linger_for_room(&o, until);
		if (r == -EAGAIN && until != WEFT_NOW && o.to) {
			/* Before it waits a sender empties the mailbox into the receiver's queue, within the budget: who
			 * sends first and receives later does not hang on the size of a ring. */
			wf_port_progress(o.to);
			r = start_eager(&o);
		}
		if (r == 0) {
			wf_count_sent(from, o.len);
			return 0;
		}
		if (r == -EAGAIN && until == WEFT_NOW)
			r = wf_late(until);
		else if (r == -EAGAIN || r == -ENOBUFS)
			r = 0;
	}
	o.blocks = true;
	if (r == 0)
		r = start_announced(&o, op, true, &req);
	if (r < 0) {
		unprepare(&o);
		return r;
	}
	broke_meanwhile(from);
	return wf_finish(req, until, NULL);
}

WF_SLOW static int send_slow(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, weft_time until)
{
	struct weft_op op;

	memset(&op, 0, sizeof(op));
	op.peer = to;
	op.tag = tag;
	memcpy(&op.data, &data, sizeof(data));  /* only read */
	op.len = len;
	if (to == WEFT_ALL)
		return weft_fail(-EOPNOTSUPP, "sending to WEFT_ALL is not served yet");
	if (tag == WEFT_ANY_TAG && !from->proto)
		return weft_fail(-EINVAL, "WEFT_ANY_TAG may not be sent");
	if (from->proto && from->proto->head_len)
		return weft_fail(-EINVAL, "the port speaks %s: its header goes by weft_send_post", from->proto->name);
	return send_wait(from, &op, until);
}

static __attribute__((noinline)) int send_from(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, weft_time until)
{
	if (wf_likely(data && to >> 52 == 0xfff) && send_hot_at(from, to, tag, data, len))
		return 0;
	return send_slow(from, to, tag, data, len, until);
}

int weft_send(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, weft_time until)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(wf_self.in_callback))
		return weft_fail(-EDEADLK, "weft_send inside a callback: use weft_send_post");
	if (wf_unlikely(from != NULL))
		return send_from(from, to, tag, data, len, until);
	if (wf_likely(data != NULL) && send_hot(to, tag, data, len))
		return 0;
	return send_slow(wf_self.port, to, tag, data, len, until);
}

/* The hot path for buffers: from a thread's own port to another process, by a way that it has used before. 1: sent; 0: not this way. */
static int buf_send_hot(weft_id to, uint64_t tag, struct weft_buf *buf)
{
	struct outgoing o;
	struct wf_way *w;
	uint16_t who;
	int r;

	if (tag == WEFT_ANY_TAG || wf_port_find(to, &who) || !(w = wf_way_cached(to, &who)))
		return 0;
	o = (struct outgoing){ .from = wf_self.port, .way = w, .who = who, .id = to, .tag = tag, .kind = WF_HANDED };
	r = wf_buf_send_begin(buf, false, &o.buf);
	if (r < 0)
		return r;
	o.len = o.buf->len;
	o.flags = wf_buf_is_shared(o.buf) ? WF_MSG_SHARED : 0;
	if (wf_far_eager(&o, 0) < 0) {
		wf_buf_send_undo(o.buf);
		return 0;
	}
	wf_count_sent(wf_self.port, o.len);
	return 1;
}

int weft_buf_send(struct weft_port *from, weft_id to, uint64_t tag, struct weft_buf *buf, weft_time until)
{
	struct weft_op op;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_buf_send inside a callback: use weft_send_post");
	if (!from && buf && wf_peers_on() && (r = buf_send_hot(to, tag, buf)) != 0)
		return r < 0 ? r : 0;
	from = from ? from : wf_self.port;
	memset(&op, 0, sizeof(op));
	op.size = sizeof(op);
	op.peer = to;
	op.tag = tag;
	op.buf = buf;
	if (!buf)
		return weft_fail(-EINVAL, "buf is NULL");
	r = wf_op_read_send(from, &op, &op);
	return r < 0 ? r : send_wait(from, &op, until);
}
