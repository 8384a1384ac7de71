/* outgoing.c - the way of a message into a mailbox.
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
#include "port/budget.h"
#include "port/context.h"
#include "port/eager.h"
#include "port/op.h"
#include "port/outgoing.h"
#include "port/push.h"

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
			wf_publish_cell(o->to, c, pos);
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
	/* Its timer may have marked it before it was in the ring. */
	if (wf_unlikely(op->expires) && o->to) {
		wf_fence_light();                                               /* F1 with wf_timers_run: it finds this one in the ring, or we find its instant past */
		if (wf_past(op->expires))
			wf_port_progress(o->to);
	}
	wf_count_sent(o->from, o->len);
	*ret_req = handle ? r : NULL;
	return 0;
}

int wf_outgoing_announce(struct outgoing *o, const struct weft_op *op, bool handle, struct weft_req **ret_req)
{
	int r = announce_once(o, op, handle, ret_req);

	if (r == -ESRCH && o->way)
		wf_way_stale(o->way, o->who);
	if (r == -ESRCH && (o->context || o->way) && (r = find(o)) == 0)
		r = announce_once(o, op, handle, ret_req);
	return r;
}

int wf_outgoing_eager(struct outgoing *o)
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

bool wf_outgoing_may_eager(const struct outgoing *o, const struct weft_op *op)
{
	if (op->flags & (WEFT_SYNC | WEFT_RENDEZVOUS))
		return false;
	if (o->way && !o->buf && !(op->flags & WEFT_COPY))
		return wf_far_may_eager(o->mem.kind == WF_MEM_PLAIN ? o->mem.plain : NULL, o->len);
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
	err = wf_outgoing_eager(o);
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

int wf_outgoing_start(struct outgoing *o, const struct weft_op *op, struct weft_req **ret_req)
{
	struct weft_req *unwanted;
	bool tells = op->done || op->queue;
	int r;

	if (op->flags & WEFT_COPY && (op->flags & (WEFT_SYNC | WEFT_RENDEZVOUS) || o->len > wf_budget.eager)) {
		r = copy_now(o);
		if (r < 0)
			return r;
	}
	if (!wf_outgoing_may_eager(o, op))
		return wf_outgoing_announce(o, op, ret_req != NULL, ret_req ? ret_req : &unwanted);
	if (o->from->limit && atomic_load_explicit(&o->from->under_way, memory_order_relaxed) >= o->from->limit)
		return weft_fail(-EAGAIN, "the port's limit of %u operations is reached", o->from->limit);
	r = tells ? start_told(o, op, ret_req) : wf_outgoing_eager(o);
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
	return wf_outgoing_announce(o, op, ret_req != NULL, ret_req ? ret_req : &unwanted);
}

int wf_outgoing_prepare(struct outgoing *o, struct weft_port *from, const struct weft_op *op)
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

void wf_outgoing_undo(struct outgoing *o)
{
	if (!o->buf)
		return;
	if (o->kind == WF_HANDED)
		wf_buf_send_undo(o->buf);
	else
		wf_buf_release(o->buf);
}
