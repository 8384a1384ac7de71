/* recv.c - receiving: at once if the message is there, else posted (recv_post.c).
 *
 * A thread that blocks at its own port first compares what arrives with what it wants, without posting: nobody
 * else receives there. Short ones sleep so, too (sleep_for). Others are posted before they sleep, and so are those at ports that several threads share, so that whoever
 * drains the mailbox can end them.
 */
#include "port/recv.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/shield.h"
#include "mem/share.h"
#include "mem/straight.h"
#include "port/expect.h"
#include "port/lead.h"
#include "port/op.h"
#include "port/take.h"
#include "port/tell.h"
#include "port/wait.h"

/* What is there now: 1 taken, 0 nothing, or an error. */
static int take(struct weft_port *p, const void *want, const struct wf_target *t)
{
	struct wf_work work = { NULL };
	struct weft_req *send;
	struct wf_far f;
	bool rides = false;
	int r = 0;

	wf_port_enter(p);
	if (wf_unlikely(p->closing))
		r = weft_fail(-ECANCELED, "the port is being closed");
	else if (!(rides = wf_board_locked(p, want, t, &f)))
		r = wf_take_locked(p, want, t, &work, &send);
	wf_port_leave(p);
	if (rides) {
		r = wf_far_ride(p, &f, t);
		return r < 0 ? r : 1;
	}
	if (work.copies)
		wf_work_do(p, &work);
	if (r == 1 && send) {
		r = wf_copy_send(p, send, t);
		r = r < 0 ? r : 1;
	}
	return r;
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
	err = wf_post_locked(p, r, want, &work, &send);
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

/* A look at the rails: true: something came by them. x->came: what is expected, too. */
static inline bool look_abroad(struct wf_expect *x)
{
	bool came;

	wf_self.expects = x;
	came = wf_lead_look() > 0;
	wf_self.expects = NULL;
	return came;
}

/* Looks for the message for as long as it spins, without posting. 1: taken; 0: to be posted, or too late for that; or an error. */
static inline __attribute__((always_inline)) int look_for(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until, bool *ret_lived)
{
	bool plain = !t->flags && !t->head_out && !p->proto && t->mem->kind == WF_MEM_PLAIN && wf_port_mine(p);
	struct wf_expect x = { .at = p, .data = t->mem->plain, .room = t->mem->len, .st = t->st };
	struct wf_linger w;
	struct wf_head head;
	int r;

	memcpy(&head, want, sizeof(head));
	x.want = &head;
	wf_linger_init(&w);
	if (wf_self.spun)
		w.spins = 0;            /* the hot path has done that */
	wf_self.spun = false;
	*ret_lived = true;
	if (wf_unlikely(wf_hosts != NULL) && until != WEFT_NOW)
		wf_hosts->flush();      /* what it waits for may be the answer to that */
	for (bool first = true;; first = false) {
		uint32_t drains = atomic_load_explicit(&p->drains, memory_order_relaxed);

		r = take(p, want, t);
		if (r)
			return r;
		if (first && wf_named(p, want))
			*ret_lived = wf_lives(wf_named(p, want));
		/* What comes from another host and is large is to land where it is wanted: that has to be posted. */
		if (until == WEFT_NOW || (p->shared && !wf_port_mine(p)) || !*ret_lived || (wf_hosts && x.room > (plain ? WF_EXPECT_MOST : WF_BODY) && !(plain && wf_expect_may_come(x.room))))
			return 0;
		do {
			if (!wf_linger(&w))
				return 0;
			if (wf_unlikely(wf_hosts != NULL) && look_abroad(plain ? &x : NULL)) {
				if (wf_likely(x.came))
					return 1;
				if (x.post)
					return 0;
				break;
			}
			/* relaxed: a hint that somebody else drained; the lock orders what he did. */
		} while (!wf_port_waiting(p) && atomic_load_explicit(&p->drains, memory_order_relaxed) == drains);
	}
}

/* [own port] Takes what is there, or joins the waiters, whom it leaves first if it is @down. 1: taken; 0: down; or an error; -EINTR: it has to be posted. */
static int take_or_lie_down(struct weft_port *p, const struct wf_head *want, const struct wf_target *t, struct wf_waiter *w, bool down)
{
	struct wf_work work = { NULL };
	struct weft_req *send = NULL;
	bool another;
	int r = 0;

	wf_door_enter_owner(&p->door);
	another = down && wf_unwait_locked(w);
	if (wf_likely(!p->native.wants && !p->native.arrivals && !wf_ring_spilled(&p->ring))) {
		struct wf_reader *rd;
		struct wf_cell *c = wf_port_next_locked(p, &rd);

		r = c && wf_take_hot_locked(p, rd, c, want, t->mem->plain, t->mem->len, t->st);
	}
	if (wf_unlikely(!r))
		r = p->closing ? weft_fail(-ECANCELED, "the port is being closed") : wf_take_locked(p, want, t, &work, &send);
	/* What its sender keeps is asked for when it is posted; and where others are posted, who drains the mailbox is to find it among them. */
	if (r == 0 && wf_unlikely(p->clogs || p->asks || p->native.wants))
		r = -EINTR;
	if (r == 0) {
		wf_park_begin(w->parker);
		wf_wait_at_locked(p, w);
	}
	wf_door_leave_owner(&p->door);
	if (wf_unlikely(another))
		wf_sleeper_hand_over(p);
	if (wf_unlikely(work.copies != NULL))
		wf_work_do(p, &work);
	if (wf_unlikely(r == 1 && send)) {
		r = wf_copy_send(p, send, t);
		r = r < 0 ? r : 1;
	}
	return r;
}

/* May this receive sleep without being posted? At a thread's own port, which has no members and no protocol; not where a message is to land by pieces, or by another thread. (Nothing
 * of the port is looked at: who leaves the job may be closing it.) */
static bool sleeps_bare(const struct weft_port *p, const struct wf_target *t)
{
	return p == wf_self.port && t->mem->kind == WF_MEM_PLAIN && t->mem->len <= WF_BODY && !t->flags && !t->head_out && (!wf_hosts || wf_lead_free());
}

/* A thread that is cancelled in its sleep expects nothing any more. */
static void expect_none(void *waiter)
{
	wf_self.expects = NULL;
	wf_get_up(waiter);
}

/* Sleeps without being posted: to be posted, found and told takes a thread about 150 ns behind its waking (aarch64). Whatever comes wakes it, as it would a probe, and it looks
 * itself. Where hosts are it leads: what it then reads from the rails, and waits for, it gets straight. Another who leads would have to keep it first.
 * 1: taken; 0: to be posted, or too late for that; or an error. */
static int sleep_for(struct weft_port *p, const struct wf_head *want, const struct wf_target *t, weft_time until)
{
	struct wf_expect x = { .at = p, .want = want, .data = t->mem->plain, .room = t->mem->len, .st = t->st };
	struct wf_waiter w = { .parker = &p->face->parker, .probes = want, .receives = true, .room = (uint32_t)t->mem->len };
	bool down = false;
	int r = 0;

	wf_self.waiting = true;
	for (;;) {
		bool cold = wf_self.cold && atomic_load_explicit(&p->ring.sleeper, memory_order_relaxed) == w.parker;

		r = take_or_lie_down(p, want, t, &w, down);
		if (r)
			break;
		if (cold)
			wf_fence_slow();                                /* F1: who finds our name passes one, too */
		else
			wf_fence_heavy_far();                           /* F1 */
		if ((want->src != WEFT_ANY && wf_watch(p, want->src) < 0) || wf_past(until)) {
			wf_get_up(&w);
			break;
		}
		if (wf_unlikely(wf_callbacks_pending())) {
			wf_get_up(&w);
			wf_callbacks_run();
			wf_self.waiting = true;
			down = false;
			continue;
		}
		if (wf_unlikely(wf_hosts != NULL) && !wf_lead_free()) {
			wf_get_up(&w);
			break;
		}
		if (!wf_port_waiting(p)) {
			wf_self.expects = &x;
			wf_lead_park(w.parker, until, expect_none, &w);
			wf_self.expects = NULL;
		}
		if (x.came) {
			wf_get_up(&w);
			r = 1;
			break;
		}
		down = true;
	}
	wf_self.waiting = false;
	return r == -EINTR ? 0 : r;
}

/* What remains to be done where nothing came while it looked, which @lived says about. */
static __attribute__((noinline)) int recv_asleep(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until, bool lived)
{
	int r;

	if (until == WEFT_NOW && lived) {
		r = wf_named(p, want) || p->proto ? 0 : wf_wary_now(p);
		return r < 0 ? r : wf_late(until);
	}
	if (lived && sleeps_bare(p, t)) {
		r = sleep_for(p, want, t, until);
		if (r)
			return r < 0 ? r : 0;
	}
	r = recv_posted(p, want, t, until);
	return r == -ESRCH && lived ? weft_fail(-ECONNRESET, "the one it named has ended") : r;
}

/* In line, with all that is looked at, in each call that receives: behind the system call that brought the message returns are dear, likely as what the CPU has written down of where to return to is the kernel's by then. With three
 * more of them 154 cycles lay between the look and the caller's next send instead of 54 (x86-64). */
static inline __attribute__((always_inline)) int recv_wait(struct weft_port *p, const void *want, const struct wf_target *t, weft_time until)
{
	bool lived, shields;
	int r;

	if (wf_unlikely(atomic_load_explicit(&p->broken, memory_order_relaxed)))
		return weft_fail(-ECONNRESET, "a member of the port has ended");
	shields = wf_hosts != NULL && !wf_hosts->uncancelled;
	if (wf_unlikely(shields))
		wf_shield();            /* once for all looks at the rails */
	r = look_for(p, want, t, until, &lived);
	if (wf_unlikely(shields))
		wf_unshield();
	if (wf_likely(r > 0))
		return 0;
	if (r < 0)
		return r;
	return recv_asleep(p, want, t, until, lived);
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
	wf_copy_large(data, rd->arena + (size_t)off * WF_GRAIN, w.len);
	if (ret_st)
		wf_told(ret_st, &w);
	p->received++;
	p->received_bytes += w.len;
	p->copies++;
	rd->arena_last = true;
	wf_ring_advance_to(rd, next);
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
static inline __attribute__((always_inline)) struct wf_cell *next_hot_locked(struct weft_port *p, bool mine, weft_time until, struct wf_reader **ret_rd)
{
	struct wf_reader *r = atomic_load_explicit(&p->last, memory_order_relaxed);
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];
	bool others = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed);
	const char *ahead = arena_ahead(r);

	*ret_rd = r;
	if (wf_acquire32(&c->seq) == pos + 1) {                         /* R1 */
		wf_ring_ahead(r);
		return wf_likely(!others || ++p->streak % WF_STREAK) ? c : wf_port_scan_locked(p, ret_rd);
	}
	if (until == WEFT_NOW)
		return NULL;
	if (wf_unlikely(wf_self.abroad)) {
		wf_self.abroad--;
		return NULL;
	}
	/* One that is waited for counts, too: or who sends just as fast as it is received from would hide the others for ever. */
	if (others && ++p->streak % WF_STREAK == 0) {
		struct wf_cell *other = wf_port_scan_locked(p, ret_rd);

		if (other)
			return other;
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
		if (wf_unlikely(wf_port_wanted(p, mine)))
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

struct next {
	struct wf_cell *cell;           /* NULL: none */
	struct wf_reader *rd;
};

static __attribute__((noinline)) struct next next_awaited_locked(struct weft_port *p, weft_time until)
{
	struct next n;

	n.cell = next_hot_locked(p, true, until, &n.rd);
	return n;
}

/* [inside, own port] The same for buffers, which come in streams: who need not wait does not save registers for who must. */
static inline struct next next_there_locked(struct weft_port *p, weft_time until)
{
	struct wf_reader *r = atomic_load_explicit(&p->last, memory_order_relaxed);
	uint32_t pos = atomic_load_explicit(&r->pos, memory_order_relaxed);
	struct wf_cell *cells = atomic_load_explicit(&r->cells, memory_order_relaxed);
	struct wf_cell *c = &cells[pos & atomic_load_explicit(&r->mask, memory_order_relaxed)];
	bool others = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed);

	if (wf_unlikely(wf_acquire32(&c->seq) != pos + 1 || (others && (p->streak + 1) % WF_STREAK == 0)))      /* R1 */
		return next_awaited_locked(p, until);
	p->streak += others;
	wf_ring_ahead(r);
	return (struct next){ c, r };
}

/* True: taken. False: not this way; nothing has changed. @own: at this thread's own port. */
static inline __attribute__((always_inline)) bool recv_hot(struct weft_port *p, bool own, const struct wf_head *want, void *data, size_t cap,
							   weft_time until, struct weft_status *ret_st)
{
	bool taken = false, mine = own || wf_port_mine(p);
	struct wf_reader *rd;
	struct wf_cell *c;

	wf_port_enter_hot(p, mine);
	if (own)
		wf_cool_locked();
	if (wf_likely(!(p->native.wants | p->native.arrivals) && (own || wf_usable_locked(p)))) {
		c = next_hot_locked(p, mine, until, &rd);
		taken = c && (wf_take_hot_locked(p, rd, c, want, data, cap, ret_st) ||
			      (rd->starved && take_arena_locked(p, rd, c, want, data, cap, ret_st)));
	}
	wf_port_leave_hot(p, mine);
	return taken;
}

/* Its arguments are those of the calls that come here, so that they end by a jump. */
WF_HOT static __attribute__((noinline)) int recv_slow(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until, struct weft_status *ret_st)
{
	struct wf_head want = { .src = from, .tag = tag, .ignore = tag == WEFT_ANY_TAG ? UINT64_MAX : 0 };
	unsigned char pattern[WEFT_MATCH_HEAD_MAX];
	struct wf_target t;
	struct weft_status st;
	struct wf_mem mem;
	int r;

	if (!at)
		at = wf_self.port;
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
	if (wf_unlikely(ret_st != NULL) && (r == 0 || r == -EMSGSIZE)) {
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
	if (wf_likely(own ? from && (from >> 52 != 0xfff || from == WEFT_ANY) : wf_recv_hot_at(at, from, &want.src)) &&
	    recv_hot(at, own, &want, data, cap, until, ret_st))
		return 0;
	return recv_slow(at, from, tag, data, cap, until, ret_st);
}

/* Apart, so that one's own port pays nothing for it: neither registers nor branches. */
static __attribute__((noinline)) int recv_there(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
						struct weft_status *ret_st)
{
	return recv_at(at, false, from, tag, data, cap, until, ret_st);
}

WF_HOT int weft_recv(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
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

/* From the cell anew, so that what most buffers need of a flight stays in registers: what it says now is looked at from the beginning, and what it said before
 * has had no effect. */
static WF_SLOW bool land_odd(uint32_t from, const struct wf_cell *c, size_t len, struct weft_buf **ret_buf)
{
	struct wf_flight f;

	wf_flight_get(c->body, &f);
	return wf_buf_land(from, &f, len, ret_buf) == 0;
}

static __attribute__((noinline)) void buf_told(struct weft_status *ret_st, struct weft_buf *buf, uint32_t index, weft_id from, uint64_t tag)
{
	*ret_st = (struct weft_status){ .flags = wf_buf_is_shared(buf) ? WEFT_ST_SHARED : 0, .from = from, .tag = tag, .len = buf->len, .index = index, .buf = buf };
}

/* The hot path for buffers: a thread at its own port, and the next cell brings one. True: taken. */
static inline bool recv_buf_hot(struct weft_port *p, const struct wf_head *want, weft_time until, struct weft_buf **ret_buf,
				struct weft_status *ret_st)
{
	struct next n = { .cell = NULL };
	struct wf_cell_words w;
	struct wf_flight f;
	bool taken = false;

	wf_door_enter_owner(&p->door);
	wf_cool_locked();
	if (wf_likely(!(p->native.wants | p->native.arrivals)))
		n = next_there_locked(p, until);
	if (n.cell && cell_flown(n.rd, n.cell, &w, &f) && wf_matches(want, w.src, w.tag) &&
	    (wf_likely(wf_buf_land_straight(n.rd->process, &f, w.len, ret_buf)) || land_odd(n.rd->process, n.cell, w.len, ret_buf))) {
		wf_user_acquires(&p->ring);
		if (ret_st)
			buf_told(ret_st, *ret_buf, w.index, w.src, w.tag);
		p->received++;
		p->received_bytes += w.len;
		wf_ring_advance(n.rd);
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
