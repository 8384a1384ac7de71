/* send.c - the calls that send: the hot paths, and those that wait. The ways of a message are in outgoing.c. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "mem/straight.h"
#include "port/budget.h"
#include "port/context.h"
#include "port/eager.h"
#include "port/expect.h"
#include "port/op.h"
#include "port/open.h"
#include "port/outgoing.h"
#include "port/train.h"
#include "port/wait.h"

/* Nobody sleeps there who would see the announcement: if a receive is posted, match it ourselves. */
static void help(struct weft_port *to)
{
	if (to && !atomic_load_explicit(&to->ring.sleeper, memory_order_relaxed))
		wf_port_help(to);
}

#define WANT_MOST 1024                  /* bytes */

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

/* Where the next message's bytes will lie, if it is as long: its reader had those lines last, and a store has to wait for them. */
static inline void want_next(const char *bytes, size_t len)
{
	size_t n = len < WANT_MOST ? len : WANT_MOST;

	for (size_t at = (len + WF_GRAIN - 1) & ~(size_t)(WF_GRAIN - 1), end = at + n; at < end; at += WF_LINE)
		wf_want_line(bytes + at);
}

/* Into the mailbox of another process, by a way that this thread has used before. */
static inline __attribute__((always_inline)) bool send_by(struct wf_way *w, uint16_t who, weft_id src, uint32_t index, uint64_t tag, const void *data,
							  size_t len)
{
	struct wf_claimed at = { .cell = NULL };        /* for the compiler: it is set when claimed */

	if (wf_unlikely(!w))
		return false;
	if (wf_unlikely(len > wf_budget.eager_far || len > WF_READABLE_LEAST) && !wf_far_may_eager(data, len))
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
	if (len > WF_BODY)
		want_next(at.bytes, len);
	return true;
}

/* A short message by a way that is this thread's: most are, and this is all that most of them need. True: sent. */
static inline __attribute__((always_inline)) bool send_short(struct wf_way *w, uint16_t who, weft_id src, uint32_t index, uint64_t tag, const void *data,
							     size_t len)
{
	struct wf_cell *c;
	uint32_t pos;

	if (wf_unlikely(len > WF_BODY_NEAR || len > wf_budget.eager))
		return false;
	c = wf_way_claim_solo(w, who, &pos);
	if (wf_unlikely(!c))
		return false;
	wf_cell_fill(c, src, index, tag, data, len);
	wf_way_publish_solo(w, c, pos);
	return true;
}

static bool send_hot_far(weft_id to, uint64_t tag, const void *data, size_t len)
{
	uint16_t who;
	struct wf_way *w = wf_way_cached(to, &who);

	if (wf_unlikely(!w))
		return false;
	if (wf_unlikely(len > WF_ARENA_MOST) ? !wf_train_send(w, who, wf_self.id, WEFT_NOBODY, tag, data, len) :
					       !send_short(w, who, wf_self.id, WEFT_NOBODY, tag, data, len) &&
						       !send_by(w, who, wf_self.id, WEFT_NOBODY, tag, data, len))
		return false;
	wf_count_sent(wf_self.port, len);
	return true;
}

/* To a member that is of another host. */
WF_HOT static __attribute__((noinline)) bool send_hot_abroad_at(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	weft_id id;

	if (!from->members || to >> 32 != UINT64_C(0xfff) << 20 || (uint32_t)to >= from->members->count)
		return false;
	id = atomic_load_explicit(&from->members->ids[(uint32_t)to], memory_order_relaxed);
	return id && !(id & WF_MEMBER_GONE) && wf_abroad(id) && wf_hosts->brisk(from, id, tag, data, len);
}

static bool send_far_at(struct wf_way *w, uint16_t who, struct weft_port *from, uint64_t tag, const void *data, size_t len)
{
	weft_id id = atomic_load_explicit(&from->id, memory_order_relaxed);

	return send_by(w, who, id, from->index, tag, data, len) || (len > WF_ARENA_MOST && wf_train_send(w, who, id, from->index, tag, data, len));
}

/* From a context's port to a member of it in another process, or of another host. */
static __attribute__((noinline)) bool send_warm_at(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	struct wf_way *w;
	uint16_t who;

	if (wf_unlikely(tag == WEFT_ANY_TAG || from->proto || atomic_load_explicit(&from->broken, memory_order_relaxed)))
		return false;
	w = wf_way_cached_at(from, to, &who);
	if (wf_unlikely(!w) ? !wf_hosts || !send_hot_abroad_at(from, to, tag, data, len) :
			      !send_far_at(w, who, from, tag, data, len))
		return false;
	wf_count_sent(from, len);
	return true;
}

/* The same where it is as most are: short, and to whom the one before went. */
static inline __attribute__((always_inline)) bool send_hot_at(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	if (wf_unlikely(tag == WEFT_ANY_TAG || from->proto || atomic_load_explicit(&from->broken, memory_order_relaxed)))
		return false;
	if (wf_likely(wf_self.last_at.to == to && wf_self.last_at.from == from &&
		      wf_self.last_at.context == atomic_load_explicit(&from->context, memory_order_relaxed)) &&
	    send_short(wf_self.last_at.way, wf_self.last_at.who, atomic_load_explicit(&from->id, memory_order_relaxed), from->index, tag, data, len)) {
		wf_count_sent(from, len);
		return true;
	}
	return send_warm_at(from, to, tag, data, len);
}

/* From a thread's own port to another host. */
WF_HOT static __attribute__((noinline)) bool send_hot_abroad(weft_id to, uint64_t tag, const void *data, size_t len)
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
	wf_cell_fill(c, wf_self.id, WEFT_NOBODY, tag, data, len);
	wf_publish_cell(p, c, pos);
	wf_count_sent(wf_self.port, len);
	return true;
}

/* A send is pending. Whoever breaks a FRAGILE port takes back what is pending there then; if that was before this one was, and after wf_outgoing_prepare() looked,
 * it is ours to do. Both walk the list under its lock, behind whom the flag is seen. */
static void broke_meanwhile(struct weft_port *from)
{
	wf_fence_light();                                               /* F1 with wf_sends_break: it finds this one where it can be taken back, or we see the flag */
	if (wf_unlikely(atomic_load_explicit(&from->broken, memory_order_relaxed)))
		wf_sends_break(from, -ECONNRESET);
}

WF_SLOW static int send_post_slow(struct weft_port *from, const struct weft_op *theirs, struct weft_req **ret_req)
{
	struct outgoing o;
	struct weft_op op;
	int r = wf_op_read_send(from, theirs, &op);

	if (r == 0)
		r = wf_outgoing_prepare(&o, from, &op);
	if (r < 0)
		return r;
	r = wf_outgoing_start(&o, &op, ret_req);
	if (r < 0) {
		wf_outgoing_undo(&o);
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

/* As an op, which is read and checked like any other. */
WF_SLOW static int send_start_slow(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, uint32_t flags, struct weft_req **ret_req)
{
	struct weft_op op = wf_blank_op;

	op.flags = flags;
	op.peer = to;
	op.tag = tag;
	memcpy(&op.data, &data, sizeof(data));  /* only read */
	op.len = len;
	return send_post_slow(from, &op, ret_req);
}

static __attribute__((noinline)) int send_start_from(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, uint32_t flags,
						     struct weft_req **ret_req)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_likely(data && !flags && to >> 52 == 0xfff) && send_hot_at(from, to, tag, data, len)) {
		if (ret_req)
			*ret_req = NULL;
		return WEFT_DONE;
	}
	return send_start_slow(from, to, tag, data, len, flags, ret_req);
}

int weft_send_start(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, uint32_t flags, struct weft_req **ret_req)
{
	int r;

	if (from)
		return send_start_from(from, to, tag, data, len, flags, ret_req);
	r = wf_enter();
	if (wf_unlikely(r < 0))
		return r;
	if (wf_likely(data && !flags) && send_hot(to, tag, data, len)) {
		if (ret_req)
			*ret_req = NULL;
		return WEFT_DONE;
	}
	return send_start_slow(wf_self.port, to, tag, data, len, flags, ret_req);
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
		r = wf_outgoing_eager(o);
	} while (r == -EAGAIN && until != WEFT_NOW && !queued(o) && wf_linger(&w));
	return r;
}

static int send_wait(struct weft_port *from, const struct weft_op *op, weft_time until)
{
	struct weft_req *req;
	struct outgoing o;
	int r = wf_outgoing_prepare(&o, from, op);

	if (r < 0)
		return r;
	if (wf_outgoing_may_eager(&o, op)) {
		r = linger_for_room(&o, until);
		if (r == -EAGAIN && until != WEFT_NOW && o.to) {
			/* Before it waits a sender empties the mailbox into the receiver's queue, within the budget: who
			 * sends first and receives later does not hang on the size of a ring. */
			wf_port_progress(o.to);
			r = wf_outgoing_eager(&o);
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
		r = wf_outgoing_announce(&o, op, true, &req);
	if (r < 0) {
		wf_outgoing_undo(&o);
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

WF_HOT int weft_send(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, weft_time until)
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

/* What cannot go straight, or needs more than a few words to be described. 1: sent; 0: not this way; or what is wrong with it. */
static __attribute__((noinline)) int buf_send_odd(struct wf_way *w, uint16_t who, weft_id to, uint64_t tag, struct weft_buf *buf)
{
	struct outgoing o = { .from = wf_self.port, .way = w, .who = who, .id = to, .tag = tag, .kind = WF_HANDED };
	int r = wf_buf_send_begin(buf, false, &o.buf);

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

/* As wf_far_eager; the cell is filled in place. */
static inline bool buf_send_straight(struct wf_way *w, uint16_t who, uint64_t tag, struct weft_buf *buf, const struct wf_flight *flight, size_t len)
{
	struct wf_claimed at = { .cell = NULL };        /* for the compiler: it is set when claimed */
	bool given;

	if (wf_unlikely(!atomic_load_explicit(&w->solo, memory_order_relaxed)) && ++wf_self.claims % 256 == 0)
		wf_way_solo(w);
	if (wf_unlikely(wf_way_claim(w, who, 0, 0, &at) != WF_CLAIMED))
		return false;
	given = wf_buf_give(buf, w->peer->process);
	at.cell->kind = wf_likely(given) ? WF_FLOWN : WF_VOID;          /* another thread was faster: one of the two had no right to */
	at.cell->flags = 0;
	at.cell->len = (uint32_t)len;
	at.cell->index = wf_self.port->index;
	at.cell->src = wf_self.id;
	at.cell->tag = tag;
	wf_flight_put(at.cell->body, flight);
	wf_way_publish(w, &at);
	if (wf_unlikely(!given))
		return false;
	wf_count_sent(wf_self.port, len);
	return true;
}

/* The hot path for buffers: from a thread's own port to another process, by a way that it has used before. 1: sent; 0: not this way; or what is wrong with it. */
static inline int buf_send_hot(weft_id to, uint64_t tag, struct weft_buf *buf)
{
	struct wf_flight flight;
	struct wf_way *w;
	uint16_t who;
	size_t len;

	if (tag == WEFT_ANY_TAG || wf_port_find(to, &who) || !(w = wf_way_cached(to, &who)))
		return 0;
	if (wf_likely(wf_buf_giveable(buf, &flight, &len)))
		return buf_send_straight(w, who, tag, buf, &flight, len);
	return buf_send_odd(w, who, to, tag, buf);
}

WF_SLOW static int buf_send_slow(struct weft_port *from, weft_id to, uint64_t tag, struct weft_buf *buf, weft_time until)
{
	struct weft_op op;
	int r;

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

static __attribute__((noinline)) int buf_send_any(struct weft_port *from, weft_id to, uint64_t tag, struct weft_buf *buf, weft_time until)
{
	int r = wf_enter();

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(wf_self.in_callback))
		return weft_fail(-EDEADLK, "weft_buf_send inside a callback: use weft_send_post");
	if (!from && buf && wf_peers_on() && (r = buf_send_hot(to, tag, buf)) != 0)
		return r < 0 ? r : 0;
	return buf_send_slow(from ? from : wf_self.port, to, tag, buf, until);
}

/* The cell was claimed, and then another thread was faster: one of the two had no right to. */
static WF_SLOW int buf_send_beaten(struct wf_way *w, struct wf_cell *c, uint32_t pos, weft_id to, uint64_t tag, struct weft_buf *buf, weft_time until)
{
	c->kind = WF_VOID;
	c->flags = 0;
	c->len = 0;
	c->index = wf_self.port->index;
	c->src = wf_self.id;
	c->tag = tag;
	wf_way_publish_solo(w, c, pos);
	return buf_send_slow(wf_self.port, to, tag, buf, until);
}

static WF_SLOW int buf_send_bell(struct wf_way *w, uint32_t sleeper)
{
	wf_way_bell(w, sleeper);
	return 0;
}

/* As most are that come in streams: from a thread's own port to whom its last message went, in another process, by a way that is the thread's, a buffer in the chunk that the
 * last one was in. Each call is the last thing done, so that no register is saved for it. */
int weft_buf_send(struct weft_port *from, weft_id to, uint64_t tag, struct weft_buf *buf, weft_time until)
{
	struct wf_way *w = wf_self.last_way;
	struct wf_flight flight;
	struct wf_cell *c;
	uint32_t pos, sleeper;
	size_t len;

	if (wf_unlikely(from || !wf_entered() || wf_self.in_callback || wf_self.last_to != to || !w || tag == WEFT_ANY_TAG ||
			!wf_buf_giveable_near(buf, &flight, &len) || !(c = wf_way_claim_solo(w, wf_self.last_who, &pos))))
		return buf_send_any(from, to, tag, buf, until);
	if (wf_unlikely(!wf_buf_give(buf, w->peer->process)))
		return buf_send_beaten(w, c, pos, to, tag, buf, until);
	c->kind = WF_FLOWN;
	c->flags = 0;
	c->len = (uint32_t)len;
	c->index = wf_self.port->index;
	c->src = wf_self.id;
	c->tag = tag;
	wf_flight_put(c->body, &flight);
	sleeper = wf_way_published_solo(w, c, pos);
	wf_count_sent(wf_self.port, len);
	return wf_unlikely(sleeper) ? buf_send_bell(w, sleeper) : 0;
}
