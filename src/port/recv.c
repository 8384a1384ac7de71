/* recv.c - receiving: at once if the message is there, else posted.
 *
 * A thread that blocks at its own port first compares what arrives with what it wants, without posting: nobody
 * else receives there. Before it sleeps, and at ports that several threads share, the receive is posted, so that whoever
 * drains the mailbox can end it.
 */
#include "port/recv.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/shield.h"
#include "base/tsan.h"
#include "port/deliver.h"
#include "port/lead.h"
#include "port/listener.h"
#include "port/op.h"
#include "port/open.h"
#include "port/request.h"
#include "port/seek.h"
#include "port/wait.h"

/* The source a native receive names, or 0. */
static weft_id named(const struct weft_port *p, const void *want)
{
	struct wf_head h;

	memcpy(&h, want, sizeof(h));
	return p->proto || h.src == WEFT_ANY ? 0 : h.src;
}

/* A receive from anyone found nothing. */
static int wary(struct weft_port *p)
{
	return wf_wary(p, atomic_load_explicit(&p->dead_told, memory_order_relaxed));
}

/* What is there now: 1 taken, 0 nothing, or an error. */
static int take(struct weft_port *p, const void *want, const struct wf_target *t)
{
	struct wf_work work = { NULL };
	struct weft_req *send;
	int r;

	wf_port_enter(p);
	r = wf_unlikely(p->closing) ? weft_fail(-ECANCELED, "the port is being closed")
				    : wf_take_locked(p, want, t, &work, &send);
	wf_port_leave(p);
	if (work.copies)
		wf_work_do(p, &work);
	if (r == 1 && send) {
		r = wf_copy_send(p, send, t);
		r = r < 0 ? r : 1;
	}
	return r;
}

/* Posts @r if nothing is there: 0 posted; 1 or an error: over, nothing is posted. */
static int post_locked(struct weft_port *p, struct weft_req *r, const void *want, struct wf_work *work,
		       struct weft_req **ret_send)
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
	src = named(p, want);
	if (!src && (err = wary(p)) < 0)
		return err;
	if (src && wf_watch(src) < 0) {
		/* What it published before it ended comes first. */
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
		wf_hosts->seek_locked(p, want);
	return 0;
}

/* A receive of one's own that ends with this call. */
static int recv_posted(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until)
{
	struct wf_work work = { NULL };
	struct weft_req *send = NULL, *r = wf_req_own(WF_RECV);
	struct weft_status st = { .err = 0 };
	int err;

	r->at = p;
	r->mem = *t->mem;
	r->flags = t->flags;
	r->head_out = t->head_out;
	wf_port_enter(p);
	err = post_locked(p, r, want, &work, &send);
	wf_port_leave(p);
	wf_work_do(p, &work);
	if (err == 0) {
		err = wf_finish(r, until, &st);
	} else {
		if (err == 1) {
			struct wf_target mine = { .mem = t->mem, .flags = t->flags, .head_out = t->head_out, .st = &r->st };

			err = send ? wf_copy_send(p, send, &mine) : 0;
		}
		st = r->st;
		st.err = err;
		wf_req_put(r);
	}
	if (err == 0 || err == -EMSGSIZE)
		*t->st = st;
	return err;
}

/* Looks for the message for as long as it spins, without posting. 1: taken; 0: to be posted, or too late for that; or an error. */
static int look_for(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until, bool *ret_lived)
{
	struct wf_linger w;
	int r;

	wf_linger_init(&w);
	if (wf_self.spun)
		w.spins = 0;            /* the hot path has done that */
	wf_self.spun = false;
	*ret_lived = true;
	for (bool first = true;; first = false) {
		uint32_t drains = atomic_load_explicit(&p->drains, memory_order_relaxed);

		r = take(p, want, t);
		if (r)
			return r;
		if (first && named(p, want))
			*ret_lived = wf_lives(named(p, want));
		/* What comes from another host and is large is to land where it is wanted: that has to be posted. */
		if (until == WEFT_NOW || (p->shared && !wf_port_mine(p)) || !*ret_lived || (wf_hosts && t->mem->len > WF_BODY))
			return 0;
		do {
			if (!wf_linger(&w))
				return 0;
			if (wf_unlikely(wf_hosts != NULL) && wf_lead_look() > 0)
				break;
			/* relaxed: a hint that somebody else drained; the lock orders what he did. */
		} while (!wf_port_waiting(p) && atomic_load_explicit(&p->drains, memory_order_relaxed) == drains);
	}
}

static int recv_wait(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until)
{
	bool lived;
	int r;

	if (wf_unlikely(atomic_load_explicit(&p->broken, memory_order_relaxed)))
		return weft_fail(-ECONNRESET, "a member of the port has ended");
	if (wf_unlikely(wf_hosts != NULL)) {
		wf_shield();            /* once for all looks at the rails */
		r = look_for(p, want, t, until, &lived);
		wf_unshield();
	} else {
		r = look_for(p, want, t, until, &lived);
	}
	if (r)
		return r < 0 ? r : 0;
	if (until == WEFT_NOW && lived) {
		r = named(p, want) || p->proto ? 0 : wary(p);
		return r < 0 ? r : wf_late(until);
	}
	r = recv_posted(p, want, t, until);
	return r == -ESRCH && lived ? weft_fail(-ECONNRESET, "the one it named has ended") : r;
}

static inline int recv_prepare(struct weft_port **at, const char *call)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(wf_self.in_callback))
		return weft_fail(-EDEADLK, "%s inside a callback: use weft_recv_post", call);
	if (*at)
		return wf_may_receive(*at);
	*at = wf_self.port;
	return 0;
}

/* The hot path: a thread at its own port, nothing posted, nothing unexpected, and the next cell is the message.
 * Inside the door. True: taken. */
static inline __attribute__((always_inline)) bool take_hot_locked(struct weft_port *p, struct wf_reader *rd, struct wf_cell *c, const struct wf_head *want,
				   void *data, size_t cap, struct weft_status *ret_st)
{
	struct wf_cell_words w;

	if (wf_unlikely(!wf_cell_hot(rd, c, &w) || !wf_matches(want, w.src, w.tag) || w.len > cap))
		return false;
	wf_user_acquires(&p->ring);
	wf_copy_small(data, c->body, w.len);
	if (ret_st)
		*ret_st = (struct weft_status){ .from = w.src, .tag = w.tag, .len = w.len, .index = w.index };
	p->received++;
	p->received_bytes += w.len;
	p->copies++;
	rd->arena_last = false;
	wf_ring_advance(rd);
	return true;
}

/* The same for what another process put into its arena. */
static inline __attribute__((always_inline)) bool take_arena_locked(struct weft_port *p, struct wf_reader *rd, struct wf_cell *c, const struct wf_head *want, void *data,
			      size_t cap, struct weft_status *ret_st)
{
	struct wf_cell_words w;
	uint32_t off, next;

	wf_cell_hot(rd, c, &w);
	if (*(const volatile uint16_t *)&c->kind != WF_ARENA || !rd->arena || w.len > WF_ARENA_MOST || w.src >> 32 != rd->process ||
	    !wf_matches(want, w.src, w.tag) || w.len > cap)
		return false;
	wf_user_acquires(&p->ring);
	off = wf_arena_place(rd->arena_at, w.len, &next);
	memcpy(data, rd->arena + (size_t)off * WF_GRAIN, w.len);
	if (ret_st)
		*ret_st = (struct weft_status){ .from = w.src, .tag = w.tag, .len = w.len, .index = w.index };
	p->received++;
	p->received_bytes += w.len;
	p->copies++;
	rd->arena_at = next;
	rd->arena_last = true;
	wf_ring_advance(rd);
	return true;
}

/* Where the next message's payload will be, if it lies in an arena again: asked for before the cell is here. */
static inline const char *arena_ahead(const struct wf_reader *rd)
{
	return wf_unlikely(rd->arena_last) ? rd->arena + (size_t)(rd->arena_at % WF_ARENA_GRAINS) * WF_GRAIN : NULL;
}

/* [inside] The next cell, waited for as long as a waiter spins whatever the load; NULL: none came, or somebody
 * wants to come in. Waiting inside keeps the way in off the path from a message's arrival to its receiver; the loop is
 * nothing but the look, as all else delays it. */
static inline __attribute__((always_inline)) struct wf_cell *next_hot_locked(struct weft_port *p, bool own, weft_time until, struct wf_reader **ret_rd)
{
	struct wf_reader *r = atomic_load_explicit(&p->last, memory_order_relaxed);
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];
	bool others = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed);
	const char *ahead = arena_ahead(r);

	*ret_rd = r;
	if (wf_acquire32(&c->seq) == pos + 1)                           /* R1 */
		return wf_likely(!others || ++p->streak % WF_STREAK) ? c : wf_port_scan_locked(p, ret_rd);
	if (until == WEFT_NOW)
		return NULL;
	if (wf_unlikely(wf_self.abroad)) {
		wf_self.abroad--;
		return NULL;
	}
	wf_self.spun = true;
	/* Where other processes send, whatever the crowd: two that run at once answer each other in 0.1 us until one is preempted; going away ends that. */
	for (unsigned spins = others ? atomic_load_explicit(&wf_spins, memory_order_relaxed) : wf_spin_budget(); spins; spins--) {
		if (atomic_load_explicit(&c->seq, memory_order_relaxed) == pos + 1) {
			wf_read_ahead((const char *)c + WF_LINE);               /* its sender is done with it: it comes while the first is looked at */
			return wf_acquire32(&c->seq) == pos + 1 ? c : NULL;     /* R1; for certain */
		}
		wf_read_ahead((const char *)c + WF_LINE);  /* a message of more than 32 bytes: both lines at once */
		if (ahead) {
			wf_read_ahead(ahead);
			wf_read_ahead(ahead + WF_LINE);
			wf_read_ahead(ahead + 2 * WF_LINE);
			wf_read_ahead(ahead + 3 * WF_LINE);
		}
		if (wf_unlikely(wf_port_wanted(p, own)))
			return NULL;
		if (wf_unlikely(others) && (spins & 7) == 0) {
			struct wf_cell *other = wf_port_scan_locked(p, ret_rd);

			if (other)
				return other;
		}
		wf_relax();
	}
	return NULL;
}

/* [inside] A port of a context: asked here, as who closes or breaks it ends what is posted then, and nothing after. */
static inline bool usable_locked(const struct weft_port *p)
{
	return !p->closing && !atomic_load_explicit(&p->broken, memory_order_relaxed);
}

/* True: taken. False: not this way; nothing has changed. @own: at this thread's own port. */
static inline __attribute__((always_inline)) bool recv_hot(struct weft_port *p, bool own, const struct wf_head *want, void *data, size_t cap,
							   weft_time until, struct weft_status *ret_st)
{
	struct wf_reader *rd;
	struct wf_cell *c;
	bool taken = false;

	wf_port_enter_hot(p, own);
	if (own)
		wf_cool_locked();
	if (wf_likely(!(p->native.wants | p->native.arrivals) && (own || usable_locked(p)))) {
		c = next_hot_locked(p, own, until, &rd);
		taken = c && (take_hot_locked(p, rd, c, want, data, cap, ret_st) ||
			      (rd->starved && take_arena_locked(p, rd, c, want, data, cap, ret_st)));
	}
	wf_port_leave_hot(p, own);
	return taken;
}

/* A receive at a context's port from a member, or from anyone, that the hot path can try; then @src is an id, or WEFT_ANY. */
static inline bool recv_hot_at(const struct weft_port *p, weft_id from, weft_id *ret_src)
{
	if (p->proto || !p->members)
		return false;
	if (from == WEFT_ANY)
		return true;
	if (from >> 32 != UINT64_C(0xfff) << 20 || (uint32_t)from >= p->members->count)
		return false;
	*ret_src = atomic_load_explicit(&p->members->ids[(uint32_t)from], memory_order_relaxed);
	return !(*ret_src & WF_MEMBER_GONE);
}


WF_SLOW static int recv_slow(struct weft_port *at, weft_id from, struct wf_head want, void *data, size_t cap, weft_time until,
			     struct weft_status *ret_st)
{
	unsigned char pattern[WEFT_MATCH_HEAD_MAX];
	struct wf_target t;
	struct weft_status st;
	struct wf_mem mem;
	int r;

	if (wf_unlikely(from >> 52 == 0xfff || from == 0 || at->proto)) {
		if (at->proto && at->proto->head_len)
			return weft_fail(-EINVAL, "the port speaks %s: its header goes by weft_recv_post", at->proto->name);
		if (from != WEFT_ANY && (r = wf_source_id(at, from, &want.src)) < 0)
			return r;
	}
	memset(&st, 0, sizeof(st));
	mem = wf_mem_plain(data, cap);
	t = (struct wf_target){ .mem = &mem, .st = &st };
	memcpy(pattern, &want, sizeof(want));
	r = recv_wait(at, pattern, &t, until);
	if (ret_st && (r == 0 || r == -EMSGSIZE)) {
		*ret_st = st;
		ret_st->err = r;
	}
	return r;
}

static inline __attribute__((always_inline)) int recv_at(struct weft_port *at, bool own, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
							  struct weft_status *ret_st)
{
	struct wf_head want = { .src = from, .tag = tag, .ignore = tag == WEFT_ANY_TAG ? UINT64_MAX : 0 };
	int r = recv_prepare(&at, "weft_recv");

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(!data && cap))
		return weft_fail(-EINVAL, "data is NULL with a length");
	if (wf_likely(own ? from && (from >> 52 != 0xfff || from == WEFT_ANY) : recv_hot_at(at, from, &want.src)) &&
	    recv_hot(at, own, &want, data, cap, until, ret_st))
		return 0;
	return recv_slow(at, from, want, data, cap, until, ret_st);
}

/* Apart, so that one's own port pays nothing for it: neither registers nor branches. */
static __attribute__((noinline)) int recv_there(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
						struct weft_status *ret_st)
{
	return recv_at(at, false, from, tag, data, cap, until, ret_st);
}

int weft_recv(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
	      struct weft_status *ret_st)
{
	if (at && at != wf_self.port)
		return recv_there(at, from, tag, data, cap, until, ret_st);
	return recv_at(NULL, true, from, tag, data, cap, until, ret_st);
}

/* A cell that brings a buffer of another process: what it says, each word loaded once. False: something else. */
static inline bool cell_flown(const struct wf_reader *rd, const struct wf_cell *c, struct wf_cell_words *w, struct wf_flight *f)
{
	wf_cell_hot(rd, c, w);
	wf_flight_get(c->body, f);
	return *(const volatile uint16_t *)&c->kind == WF_FLOWN && rd->starved && w->src >> 32 == rd->process;
}

/* The hot path for buffers: a thread at its own port, and the next cell brings one. True: taken. */
static inline bool recv_buf_hot(struct weft_port *p, const struct wf_head *want, weft_time until, struct weft_buf **ret_buf,
				struct weft_status *ret_st)
{
	struct wf_cell_words w;
	struct wf_reader *rd;
	struct wf_flight f;
	struct wf_cell *c;
	bool taken = false;

	wf_door_enter_owner(&p->door);
	wf_cool_locked();
	c = p->native.wants | p->native.arrivals ? NULL : next_hot_locked(p, true, until, &rd);
	if (c && cell_flown(rd, c, &w, &f) && wf_matches(want, w.src, w.tag) && wf_buf_land(rd->process, &f, w.len, ret_buf) == 0) {
		wf_user_acquires(&p->ring);
		if (ret_st)
			*ret_st = (struct weft_status){ .flags = wf_buf_is_shared(*ret_buf) ? WEFT_ST_SHARED : 0, .from = w.src, .tag = w.tag,
							.len = w.len, .index = w.index, .buf = *ret_buf };
		p->received++;
		p->received_bytes += w.len;
		wf_ring_advance(rd);
		taken = true;
	}
	wf_door_leave_owner(&p->door);
	return taken;
}

WF_SLOW static int recv_buf_slow(struct weft_port *at, weft_id from, uint64_t tag, weft_time until, struct weft_buf **ret_buf,
				 struct weft_status *ret_st)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_ALLOC, .peer = from, .tag = tag };
	unsigned char want[WEFT_MATCH_HEAD_MAX];
	struct wf_mem mem = wf_mem_plain(NULL, 0);
	struct weft_status st = { .err = 0 };
	struct wf_target t = { .mem = &mem, .flags = WEFT_ALLOC, .st = &st };
	int r;

	if (at->proto && at->proto->head_len)
		return weft_fail(-EINVAL, "the port speaks %s: its header goes by weft_recv_post", at->proto->name);
	r = wf_want_of(at, &op, want);
	if (r == 0)
		r = recv_wait(at, want, &t, until);
	if (r < 0)
		return r;
	*ret_buf = st.buf;
	if (ret_st)
		*ret_st = st;
	return 0;
}

int weft_buf_recv(struct weft_port *at, weft_id from, uint64_t tag, weft_time until, struct weft_buf **ret_buf,
		  struct weft_status *ret_st)
{
	struct wf_head want = { .src = from, .tag = tag, .ignore = tag == WEFT_ANY_TAG ? UINT64_MAX : 0 };
	int r;

	if (wf_unlikely(!ret_buf))
		return weft_fail(-EINVAL, "ret_buf is NULL");
	r = recv_prepare(&at, "weft_buf_recv");
	if (wf_unlikely(r < 0))
		return r;
	if (wf_likely(at == wf_self.port && from && (from >> 52 != 0xfff || from == WEFT_ANY)) && wf_peers_on() &&
	    recv_buf_hot(at, &want, until, ret_buf, ret_st))
		return 0;
	return recv_buf_slow(at, from, tag, until, ret_buf, ret_st);
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

/* @send, of another process, is @r's: it is fetched by and by, and nobody waits for that here. */
static void fetch(struct weft_port *p, struct weft_req *r, struct weft_req *send)
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
	err = post_locked(p, r, want, &work, &send);
	wf_port_leave(p);
	if (work.copies)
		wf_work_do(p, &work);
	if (err == 0)
		return 0;
	if (err == 1 && send && (send->a.kind == WF_FAR || send->a.kind == WF_WIRED)) {
		fetch(p, r, send);
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
	return 0;
}

/* [inside] Posts a receive of plain memory with a handle: nothing is there for it. NULL: no memory, or the one it
 * names is gone. */
static inline __attribute__((always_inline)) struct weft_req *post_plain_locked(struct weft_port *p, const struct weft_op *op, const struct wf_head *want)
{
	struct weft_req *r;

	if (want->src != WEFT_ANY ? wf_unlikely(wf_watch(want->src) < 0) : wf_unlikely(p->flags & WEFT_PORT_WARY))
		return NULL;
	r = wf_slab_get(WF_SLAB_REQ);
	if (wf_unlikely(!r))
		return NULL;
	atomic_store_explicit(&r->over, 0, memory_order_relaxed);       /* nobody else knows it yet */
	r->what = WF_RECV;
	r->at = p;
	r->mem = wf_mem_plain(op->data, op->len);
	r->flags = op->flags;
	r->st = (struct weft_status){ .index = WEFT_NOBODY, .user = op->user };
	r->where = WF_POSTED;
	wf_user_releases(&p->ring);     /* another thread may write into our memory */
	wf_native_match_add_want(&p->native, want, &r->a.entry);
	if (wf_unlikely(p->clogs))
		wf_seek_locked(p, r->a.entry.head);
	if (wf_unlikely(p->asks))
		wf_hosts->seek_locked(p, want);
	return r;
}

/* The hot path: plain memory, a handle. What has arrived goes to the receives posted before, the first cell they do not take is compared with this
 * one. (Posting without that look, where others wait already, was slower: the work is then all left for the wait.) WEFT_DONE: that was it; 0: posted;
 * -EINTR: not this way. */
static inline __attribute__((always_inline)) int post_hot(struct weft_port *p, bool own, const struct weft_op *op, struct weft_req **ret_req,
							  struct weft_status *ret_st)
{
	struct wf_head want = { .src = op->peer, .tag = op->tag, .ignore = op->tag == WEFT_ANY_TAG ? UINT64_MAX : op->ignore };
	struct weft_req *r = NULL;
	struct wf_reader *rd;
	struct wf_cell *c;
	bool taken = false;

	if (wf_unlikely(p->limit || (own ? !op->peer || (op->peer >> 52 == 0xfff && op->peer != WEFT_ANY) : !recv_hot_at(p, op->peer, &want.src))))
		return -EINTR;
	wf_port_enter_hot(p, own);
	if (wf_likely(!p->native.arrivals && !wf_ring_spilled(&p->ring) && (own || usable_locked(p)))) {
		while ((c = wf_port_next_locked(p, &rd)) != NULL) {
			if (!p->native.wants) {
				taken = take_hot_locked(p, rd, c, &want, op->data, op->len, ret_st);
				break;
			}
			wf_user_acquires(&p->ring);
			if (!wf_arrive_hot_locked(p, rd, c))
				break;
			wf_ring_advance(rd);
		}
		if (!c)
			r = post_plain_locked(p, op, &want);
	}
	wf_port_leave_hot(p, own);
	if (!taken && !r)
		return -EINTR;
	*ret_req = r;
	return taken ? WEFT_DONE : 0;
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
		r = post_hot(at, false, theirs, ret_req, ret_st);
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
		r = post_hot(wf_self.port, true, theirs, ret_req, ret_st);
		if (wf_likely(r != -EINTR))
			return r;
	}
	return recv_post_slow(wf_self.port, theirs, ret_req, ret_st);
}

/* A message went to @r: told by a carrier. False: @r has ended or waits until its memory is free again. */
static bool tell_one_locked(struct weft_req *r, int err)
{
	bool rests = wf_req_rests(r);

	r->st.err = err;
	r->st.flags |= WEFT_ST_MORE;
	if (!wf_req_repeat_locked(r, &r->st, rests)) {
		wf_req_end_locked(r, err);
		return false;
	}
	if (rests)
		return false;           /* the callback runner may have it already */
	r->st.buf = NULL;
	return true;
}

/* Takes one message for @r, or posts it. False: no more to be done here. */
static bool again_once(struct weft_port *p, struct weft_req *r)
{
	struct wf_target t = { .mem = &r->mem, .flags = r->flags, .head_out = r->head_out, .st = &r->st };
	unsigned char want[WEFT_MATCH_HEAD_MAX];
	struct wf_work work = { NULL };
	struct weft_req *send = NULL;
	bool more = false;
	int err;

	memcpy(want, r->a.entry.head, sizeof(want));
	wf_port_enter(p);
	err = r->cancel ? r->cancel : post_locked(p, r, want, &work, &send);
	if (err == 1 && send && (send->a.kind == WF_FAR || send->a.kind == WF_WIRED)) {
		wf_port_leave(p);
		wf_work_do(p, &work);
		fetch(p, r, send);      /* goes on with wf_recv_landed */
		return false;
	}
	if (err == 1 && send) {
		p->pins++;
		wf_port_leave(p);
		err = wf_copy_send(p, send, &t);
		wf_port_enter(p);
		p->pins--;
		err = err < 0 ? err : 1;
	}
	if (err == 1 || (err == -EMSGSIZE && r->flags & WEFT_TRUNCATE))
		more = tell_one_locked(r, err == 1 ? 0 : err);
	else if (err < 0)
		wf_req_end_locked(r, err);
	wf_port_leave(p);
	wf_work_do(p, &work);
	return more;
}

void wf_recv_again(struct weft_req *r)
{
	struct weft_port *p = r->at;

	while (again_once(p, r))
		continue;
}

void wf_recv_resume(struct weft_req *r)
{
	struct weft_port *p = r->at;

	wf_recv_again(r);
	wf_port_enter(p);
	p->pins--;
	wf_port_leave(p);
}

void wf_recv_landed(struct weft_req *r, int err)
{
	struct weft_port *p = r->at;
	bool more = false;

	wf_port_enter(p);
	r->where = WF_TELLING;
	if (err == 0 || err == -EMSGSIZE)
		more = tell_one_locked(r, err);
	else
		wf_req_end_locked(r, err);
	wf_port_leave(p);
	if (more)
		wf_recv_again(r);
	wf_port_enter(p);
	p->pins--;
	wf_port_leave(p);
}
