/* recv_post.c - receives that are posted: what is there goes to them at once, what comes when it comes. */
#include <errno.h>

#include "port/lead.h"
#include "port/listener.h"
#include "port/op.h"
#include "port/open.h"
#include "port/recv.h"
#include "port/seek.h"
#include "port/take.h"
#include "port/wait.h"

int wf_post_locked(struct weft_port *p, struct weft_req *r, const void *want, struct wf_work *work, struct weft_req **ret_send)
{
	struct wf_target t = { .mem = &r->mem, .flags = r->flags, .head_out = r->head_out, .st = &r->st };
	weft_id src;
	int err;

	if (p->closing)
		return weft_fail(-ECANCELED, "the port is being closed");
	if (atomic_load_explicit(&p->broken, memory_order_relaxed))
		return weft_fail(-ECONNRESET, "a member of the port has ended");
	err = wf_take_locked(p, want, &t, work, ret_send);
	if (err)
		return err;
	src = wf_named(p, want);
	if (!src && (err = wf_wary_now(p)) < 0)
		return err;
	if (src && wf_watch(p, src) < 0) {
		/* What it published before it ended comes first. */
		wf_drain_ended_locked(p, work);
		err = wf_take_locked(p, want, &t, work, ret_send);
		return err ? err : weft_fail(-ESRCH, "nobody of that id lives, and it has left nothing");
	}
	if (r->expires && !atomic_load_explicit(&r->timer, memory_order_relaxed) && (err = wf_timer_add(r)) < 0)
		return err;
	r->where = WF_POSTED;
	wf_user_releases(&p->ring);     /* another thread may write into our memory */
	wf_add_want(p, want, &r->a.entry);
	if (r->told) {
		p->told_wants++;
		wf_attend_locked(p);
	}
	if (wf_unlikely(p->clogs))
		wf_seek_locked(p, want);
	if (wf_unlikely(p->asks))
		wf_hosts->seek_locked(p, &r->a.entry);
	return 0;
}

/* A message that a probe took, to the memory of @op. */
static int take_msg(struct wf_arrival *a, const struct wf_target *t)
{
	struct weft_port *p = a->at;
	struct weft_req *send;
	bool last;
	int r;

	wf_port_enter(p);
	r = wf_take_arrival_locked(p, a, t, &send);
	wf_port_leave(p);
	if (r == 1 && send) {
		r = wf_copy_send(p, send, t);
		r = r < 0 ? r : 1;
	}
	if (r < 0 && r != -EINVAL && !(r == -EMSGSIZE && t->flags & WEFT_TRUNCATE))
		return r;               /* it is still there */
	wf_port_enter(p);
	last = --p->taken == 0 && !p->open;
	wf_port_leave(p);
	if (last)
		wf_port_finish(p);
	return r;
}

/* It is over on the spot: told if it asked for that, else the answer. */
static int over_at_once(struct weft_req *r, const struct weft_op *op, int err, struct weft_req **ret_req,
			struct weft_status *ret_st)
{
	bool taken = err == 0 || (err == -EMSGSIZE && op->flags & WEFT_TRUNCATE);

	r->st.err = err;
	if ((op->done || op->queue) && (taken || (err == -EMSGSIZE && !op->msg))) {
		if (ret_req)
			*ret_req = r;
		struct weft_port *at = r->at;   /* r may be gone when we leave */

		wf_port_enter(at);
		wf_req_end_locked(r, err);
		wf_port_leave(at);
		return 0;
	}
	if (ret_st && (taken || err == -EMSGSIZE))
		*ret_st = r->st;
	else if (taken && r->st.buf)
		wf_buf_release(r->st.buf);
	if (ret_req && err == 0)
		*ret_req = NULL;
	wf_req_unobserve(r);
	return err < 0 ? err : WEFT_DONE;
}

void wf_recv_fetch(struct weft_port *p, struct weft_req *r, struct weft_req *send)
{
	r->where = WF_COPYING;          /* taken, and nobody else knows of @r yet */
	r->partner = send;
	if (send->a.kind == WF_FAR)
		wf_far_start(p, r);
	else
		wf_hosts->fetch(p, r);
}

static int start_recv(struct weft_port *p, const struct weft_op *op, struct weft_req *r, struct weft_req **ret_req,
		      struct weft_status *ret_st)
{
	struct wf_target t = { .mem = &r->mem, .flags = r->flags, .head_out = r->head_out, .st = &r->st };
	unsigned char want[WEFT_MATCH_HEAD_MAX];
	struct wf_work work = { NULL };
	struct weft_req *send = NULL;
	int err;

	if (op->msg) {
		err = take_msg((struct wf_arrival *)(void *)op->msg, &t);
		return over_at_once(r, op, err == 1 ? 0 : err, ret_req, ret_st);
	}
	err = wf_want_of(p, op, want);
	if (err < 0) {
		wf_req_unobserve(r);
		return err;
	}
	if (ret_req)
		*ret_req = r;           /* it may be over, and told, as soon as the lock is free */
	wf_port_enter(p);
	err = wf_post_locked(p, r, want, &work, &send);
	wf_port_leave(p);
	if (work.copies)
		wf_work_do(p, &work);
	if (err == 0) {
		if (wf_unlikely(wf_hosts != NULL))
			wf_lead_soon();
		return 0;
	}
	if (err == 1 && send && (send->a.kind == WF_FAR || send->a.kind == WF_WIRED)) {
		wf_recv_fetch(p, r, send);
		if (wf_unlikely(wf_hosts != NULL))
			wf_lead_soon();         /* the rest of it comes while the program may compute */
		return 0;
	}
	if (err == 1)
		err = send ? wf_copy_send(p, send, &t) : 0;
	return over_at_once(r, op, err, ret_req, ret_st);
}

/* A repeating receive takes what is there already, then stays. Each message is told on its own. */
static int start_repeat(struct weft_port *p, const struct weft_op *op, struct weft_req *r, struct weft_req **ret_req)
{
	int err = wf_want_of(p, op, r->a.entry.head);

	if (err < 0) {
		wf_req_unobserve(r);
		return err;
	}
	if (ret_req)
		*ret_req = r;
	r->where = WF_TELLING;          /* not posted: wf_recv_again does that */
	wf_recv_again(r);
	if (wf_unlikely(wf_hosts != NULL))
		wf_lead_soon();
	return 0;
}

/* [inside] Posts a receive of plain memory with a handle: nothing is there for it. NULL: no memory, or the one it names is gone. What it gets comes in
 * registers, and every word is stored by itself: what was put together in memory and is then moved as a whole is moved by wider loads than the stores
 * were, which wait until those have left the core (5 ns on x86-64). */
static inline __attribute__((always_inline)) struct weft_req *post_plain_locked(struct weft_port *p, weft_id src, uint64_t tag, uint64_t ignore,
										void *data, size_t cap, uint32_t flags, void *user)
{
	struct weft_match_entry *e;
	struct weft_req *r;

	if (src != WEFT_ANY ? wf_unlikely(wf_watch(p, src) < 0) : wf_unlikely(p->flags & WEFT_PORT_WARY))
		return NULL;
	r = wf_slab_get(WF_SLAB_REQ);
	if (wf_unlikely(!r))
		return NULL;
	atomic_store_explicit(&r->over, 0, memory_order_relaxed);       /* nobody else knows it yet */
	r->what = WF_RECV;
	r->where = WF_POSTED;
	r->at = p;
	r->flags = flags;
	r->mem.len = cap;
	r->mem.plain = data;
	r->mem.count = 0;
	r->mem.kind = WF_MEM_PLAIN;
	r->st.err = 0;
	r->st.flags = 0;
	r->st.from = 0;
	r->st.tag = 0;
	r->st.len = 0;
	r->st.index = WEFT_NOBODY;
	r->st.lost = 0;
	r->st.buf = NULL;
	r->st.user = user;
	r->st.reserved = 0;
	wf_user_releases(&p->ring);     /* another thread may write into our memory */
	e = &r->a.entry;
	memcpy(e->head + offsetof(struct wf_head, src), &src, sizeof(src));
	memcpy(e->head + offsetof(struct wf_head, tag), &tag, sizeof(tag));
	memcpy(e->head + offsetof(struct wf_head, ignore), &ignore, sizeof(ignore));
	wf_native_match_add_want(&p->native, (const struct wf_head *)(const void *)e->head, e);
	if (wf_unlikely(p->clogs))
		wf_seek_locked(p, e->head);
	if (wf_unlikely(p->asks))
		wf_hosts->seek_locked(p, e);
	if (wf_unlikely(wf_hosts != NULL))
		wf_lead_soon();
	return r;
}

/* [inside] @c and what follows it, to the receives posted before. The first cell that is left, NULL: none; as long as there are receives it is one for
 * which this is not the way. */
static __attribute__((noinline)) struct wf_cell *earlier_first_locked(struct weft_port *p, struct wf_cell *c, struct wf_reader **rd)
{
	do {
		wf_ring_ahead(*rd);
		wf_user_acquires(&p->ring);
		if (!wf_arrive_hot_locked(p, *rd, c))
			break;
		wf_ring_advance(*rd);
		c = wf_port_next_locked(p, rd);
	} while (c && p->native.wants);
	return c;
}

/* The hot path: what has arrived goes to the receives posted before, the first cell they do not take is compared with this
 * one. (Posting without that look, where others wait already, was slower: the work is then all left for the wait.) WEFT_DONE: that was it; 0: posted;
 * -EINTR: not this way. Most find their message there and nobody before them: that is in line, the rest is apart. */
static inline __attribute__((always_inline)) int post_hot(struct weft_port *p, bool own, weft_id from, uint64_t tag, uint64_t ignore, void *data,
							  size_t cap, uint32_t flags, void *user, struct weft_req **ret_req, struct weft_status *ret_st)
{
	struct wf_head want = { .src = from, .tag = tag, .ignore = tag == WEFT_ANY_TAG ? UINT64_MAX : ignore };
	bool taken = false, mine = own || wf_port_mine(p);
	struct weft_req *r = NULL;
	struct wf_reader *rd;
	struct wf_cell *c;

	if (wf_unlikely(p->limit || (own ? !from || (from >> 52 == 0xfff && from != WEFT_ANY) : !wf_recv_hot_at(p, from, &want.src))))
		return -EINTR;
	wf_port_enter_hot(p, mine);
	if (wf_likely(!p->native.arrivals && !wf_ring_spilled(&p->ring) && (own || wf_usable_locked(p)))) {
		c = wf_port_next_locked(p, &rd);
		if (c && wf_unlikely(p->native.wants)) {
			struct wf_reader *last = rd;    /* @rd itself stays in a register */

			c = earlier_first_locked(p, c, &last);
			rd = last;
		}
		if (!c) {
			r = post_plain_locked(p, want.src, want.tag, want.ignore, data, cap, flags, user);
		} else if (wf_likely(!p->native.wants)) {
			wf_ring_ahead(rd);
			taken = wf_take_hot_locked(p, rd, c, &want, data, cap, ret_st);
		}
	}
	wf_port_leave_hot(p, mine);
	if (!taken && !r)
		return -EINTR;
	*ret_req = r;
	return taken ? WEFT_DONE : 0;
}

static inline __attribute__((always_inline)) int post_op_hot(struct weft_port *p, bool own, const struct weft_op *op, struct weft_req **ret_req,
							     struct weft_status *ret_st)
{
	return post_hot(p, own, op->peer, op->tag, op->ignore, op->data, op->len, op->flags, op->user, ret_req, ret_st);
}

WF_SLOW static int recv_post_slow(struct weft_port *at, const struct weft_op *theirs, struct weft_req **ret_req,
				  struct weft_status *ret_st)
{
	struct weft_req *r, *old = ret_req ? *ret_req : NULL;
	struct weft_op op;
	struct wf_mem mem;
	int err = wf_op_read_recv(at, theirs, &op);

	if (err == 0 && !op.msg)
		err = wf_may_receive(at);
	if (err == 0)
		err = wf_mem_of(&op, &mem);
	if (err < 0)
		return err;
	if (op.msg)
		at = ((struct wf_arrival *)(void *)op.msg)->at;
	r = wf_req_new(WF_RECV);
	if (!r)
		return -ENOMEM;
	r->at = at;
	r->mem = mem;
	r->head_out = op.head;
	err = wf_req_observe(r, &op, ret_req != NULL, at);
	if (err < 0) {
		wf_req_put(r);
		return err;
	}
	err = op.flags & WEFT_REPEAT ? start_repeat(at, &op, r, ret_req) : start_recv(at, &op, r, ret_req, ret_st);
	if (err < 0 && ret_req)
		*ret_req = old;         /* untouched on error */
	return err;
}

static __attribute__((noinline)) int post_there(struct weft_port *at, const struct weft_op *theirs, struct weft_req **ret_req, struct weft_status *ret_st)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_likely(ret_req && wf_op_plain(theirs, WEFT_TRUNCATE)) && wf_may_receive(at) == 0) {
		r = post_op_hot(at, false, theirs, ret_req, ret_st);
		if (wf_likely(r != -EINTR))
			return r;
	}
	return recv_post_slow(at, theirs, ret_req, ret_st);
}

int weft_recv_post(struct weft_port *at, const struct weft_op *theirs, struct weft_req **ret_req, struct weft_status *ret_st)
{
	int r;

	if (at)
		return post_there(at, theirs, ret_req, ret_st);
	r = wf_enter();
	if (wf_unlikely(r < 0))
		return r;
	if (wf_likely(ret_req && wf_op_plain(theirs, WEFT_TRUNCATE))) {
		r = post_op_hot(wf_self.port, true, theirs, ret_req, ret_st);
		if (wf_likely(r != -EINTR))
			return r;
	}
	return recv_post_slow(wf_self.port, theirs, ret_req, ret_st);
}

/* As an op, which is read and checked like any other. */
WF_SLOW static int start_slow(struct weft_port *at, weft_id from, uint64_t tag, uint64_t ignore, void *data, size_t cap, uint32_t flags,
			      struct weft_req **ret_req, struct weft_status *ret_st)
{
	struct weft_op op = wf_blank_op;

	op.flags = flags;
	op.peer = from;
	op.tag = tag;
	op.ignore = ignore;
	op.data = data;
	op.len = cap;
	return recv_post_slow(at, &op, ret_req, ret_st);
}

static inline __attribute__((always_inline)) int start_at(struct weft_port *at, bool own, weft_id from, uint64_t tag, uint64_t ignore, void *data,
							  size_t cap, uint32_t flags, struct weft_req **ret_req, struct weft_status *ret_st)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (own)
		at = wf_self.port;
	if (wf_likely(data && ret_req && !(flags & ~(uint32_t)WEFT_TRUNCATE)) && (own || wf_may_receive(at) == 0)) {
		r = post_hot(at, own, from, tag, ignore, data, cap, flags, NULL, ret_req, ret_st);
		if (wf_likely(r != -EINTR))
			return r;
	}
	return start_slow(at, from, tag, ignore, data, cap, flags, ret_req, ret_st);
}

static __attribute__((noinline)) int start_there(struct weft_port *at, weft_id from, uint64_t tag, uint64_t ignore, void *data, size_t cap,
						 uint32_t flags, struct weft_req **ret_req, struct weft_status *ret_st)
{
	return start_at(at, false, from, tag, ignore, data, cap, flags, ret_req, ret_st);
}

int weft_recv_start(struct weft_port *at, weft_id from, uint64_t tag, uint64_t ignore, void *data, size_t cap, uint32_t flags,
		    struct weft_req **ret_req, struct weft_status *ret_st)
{
	if (at)
		return start_there(at, from, tag, ignore, data, cap, flags, ret_req, ret_st);
	return start_at(NULL, true, from, tag, ignore, data, cap, flags, ret_req, ret_st);
}
