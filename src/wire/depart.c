/* depart.c - sends to processes of other hosts: from a port's request to the remote's, and its end.
 *
 * Short payloads are copied into the stream and are done (send_now). Else the remote keeps a struct wf_rsend, which lies in a departure beside the
 * request; both are covered by wf_user_lock. The remote wants the payload in pieces that stay: what is not one block is copied into one first.
 *
 * What is sent unasked goes from where it lies, and is copied when it has been written: then its sender is done, while the other end still reads. The copy stays until the
 * other end has acknowledged it, at most as much as its window. A buffer that was handed over needs no copy; one that is lent is copied, as who lent it waits for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "peer/brief.h"
#include "port/context.h"
#include "port/lead.h"
#include "port/listener.h"
#include "wire/depart.h"
#include "wire/hot.h"
#include "wire/join.h"
#include "wire/line_again.h"

#define LEFT_LEAST (32u << 10)          /* bytes whose encryption takes 10 us and more */

static struct wf_departure *free_departures;    /* under wf_user_lock; never given back */

int wf_depart_pieces(const struct wf_rsend *s, uint64_t at, struct iovec *ret_iov, int max)
{
	const struct wf_departure *d = s->user;

	(void)max;
	ret_iov->iov_base = (void *)(uintptr_t)(d->data + at);
	ret_iov->iov_len = s->len - at;
	return 1;
}

static int trunk_of(weft_id id, struct wf_trunk **ret_trunk)
{
	struct wf_trunk *t = wf_trunk_get((uint32_t)(id >> 32));
	int err;

	if (!t)
		return wf_trunk_fail((uint32_t)(id >> 32));
	err = atomic_load_explicit(&t->err, memory_order_acquire);
	if (err)
		return weft_fail(err, "process %s, of another host, is gone or cannot be reached", t->name);
	*ret_trunk = t;
	return 0;
}

int wf_depart_lives(weft_id id)
{
	struct wf_trunk *t;
	int r = trunk_of(id, &t);

	if (r == 0 && wf_unlikely(wf_watch_over(t, (uint32_t)id)))
		return wf_id_fail(-ESRCH, id);

	if (r == 0 && !atomic_load_explicit(&t->cared, memory_order_relaxed)) {
		bool news;

		wf_trunk_lock(t);
		news = !atomic_exchange_explicit(&t->cared, true, memory_order_relaxed);
		if (news)
			wf_remote_care(&t->remote, 1);
		wf_unlock(&t->lock);
		if (news)
			wf_trunk_kick(t);
	}
	return r;
}

/* What the frame says; @d->data is set by the caller. */
static void describe(struct wf_departure *d, struct wf_trunk *t, const struct outgoing *o)
{
	struct wf_rsend *s = &d->s;

	d->trunk = t;
	d->req = NULL;
	d->flat = NULL;
	d->room = 0;
	d->kind = WF_POOLED;
	memset(s, 0, sizeof(*s));
	s->to = (uint32_t)o->id;
	s->from = (uint32_t)atomic_load_explicit(&o->from->id, memory_order_relaxed);
	s->index = o->from->index;
	s->tag = o->tag;
	s->context = o->context;
	s->len = o->len;
	s->prio = o->prio;
	s->user = d;
	if (o->allow & WF_TAIL_FOREIGN) {
		uint64_t proto = wf_ctx_of_text(o->from->proto->name);

		memcpy(d->head, &proto, WF_WIRE_PROTO);
		if (o->head)
			memcpy(d->head + WF_WIRE_PROTO, o->head, o->from->proto->head_len);
		s->head = d->head;
		s->head_len = WF_WIRE_PROTO + o->from->proto->head_len;
	}
}

/* The bytes are away, or copied: the buffer goes as if its receiver had put it. */
static void buffer_done(struct weft_buf *b, uint16_t kind)
{
	if (kind == WF_HANDED)
		wf_buf_delivered(b);
	wf_buf_release(b);
}

/* A short send is in its stream: goes out, or waits a little for the next one. */
struct going {
	struct wf_line *line;           /* ours to write to */
	enum { GOES, HELD, HELD_FIRST } held;
	bool news;
};

/* [trunk.lock] */
static void go_locked(struct wf_trunk *t, struct going *g, size_t len)
{
	if (wf_trunk_holds(t, len + WF_HELD_HEAD, wf_ticks()))
		g->held = t->held == len + WF_HELD_HEAD ? HELD_FIRST : HELD;
	else
		g->line = wf_trunk_take_locked(t, wf_now_about(), &g->news);
}

static inline void go(struct wf_trunk *t, const struct going *g)
{
	if (wf_likely(g->line != NULL))
		wf_trunk_taken(t, g->line, g->news);
	else if (g->held == HELD_FIRST)
		wf_trunk_held(t);
	else if (!g->held)
		wf_trunk_turn(t);
	if (!g->held)
		atomic_store_explicit(&t->sent, wf_ticks(), memory_order_relaxed);
}

/* [trunk.lock] Others wait already: @b does, too. False: nothing happened. */
static inline __attribute__((always_inline)) bool joins_locked(struct wf_trunk *t, const struct weft_port *from, struct wf_brisk b)
{
	uint32_t held = t->held + (uint32_t)b.len + WF_HELD_HEAD;

	if (!t->held || t->unclocked == WF_UNCLOCKED || held > WF_HELD_MOST || !wf_row_joined(&t->remote, b))
		return false;
	t->held = held;
	t->unclocked++;
	t->row++;
	wf_join_lend_locked(t, from, &b);
	return true;
}

/* [trunk.lock] @b leaves by the short way, or waits for company; false: nothing happened. */
static inline bool brisk_locked(struct wf_trunk *t, const struct weft_port *from, const struct wf_brisk *b, struct going *g)
{
	uint32_t cost = (uint32_t)b->len + WF_HELD_HEAD;
	uint64_t now = wf_ticks();

	if (wf_trunk_holds(t, cost, now)) {
		if (wf_unlikely(!wf_remote_brisk(&t->remote, b))) {
			t->held -= cost;
			return false;
		}
		g->held = t->held == cost ? HELD_FIRST : HELD;
		wf_join_lend_locked(t, from, b);
		return true;
	}
	g->line = wf_trunk_brisk_locked(t, b, now, &g->news);
	if (wf_likely(g->line != NULL))
		return true;
	if (!wf_remote_brisk(&t->remote, b))
		return false;
	g->line = wf_trunk_take_locked(t, wf_now_at(now), &g->news);
	return true;
}

static inline struct wf_brisk brisk_of(const struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	return (struct wf_brisk){ .to = (uint32_t)to, .from = (uint32_t)atomic_load_explicit(&from->id, memory_order_relaxed), .index = from->index, .tag = tag,
				  .context = atomic_load_explicit(&from->context, memory_order_relaxed), .payload = data, .len = len };
}

/* [trunk.lock] @b leaves as the last one did, without the lock. False: nothing happened, it is still held. */
static inline __attribute__((always_inline)) bool again(struct wf_trunk *t, struct wf_brisk b)
{
	uint64_t ticks = wf_ticks();
	weft_time now = wf_now_at(ticks);
	struct wf_line *l;
	bool news;

	wf_trunk_late_locked(t, now);
	l = wf_trunk_again_locked(t, &b, ticks, now);
	if (wf_unlikely(!l))
		return false;
	news = wf_trunk_news_locked(t);
	wf_unlock(&t->lock);
	wf_line_again_sent(l);
	wf_trunk_let_go(t, l, news);
	atomic_store_explicit(&t->sent, wf_ticks(), memory_order_relaxed);
	return true;
}

WF_HOT static __attribute__((noinline)) bool brisk(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	struct wf_trunk *t = wf_trunk_at((uint32_t)(to >> 32));
	struct going g = { .line = NULL };
	struct wf_brisk b;
	bool sent;

	if (wf_unlikely(!t || len > WF_EAGER || !atomic_load_explicit(&t->cared, memory_order_relaxed)))
		return false;
	/* relaxed: nothing is read that goes with it */
	if (wf_unlikely(atomic_load_explicit(&t->err, memory_order_relaxed) || (atomic_load_explicit(&t->gones, memory_order_relaxed) && wf_watch_over(t, (uint32_t)to))))
		return false;
	if (wf_unlikely(len > WF_INLINE_MOST))
		return wf_depart_body(t, from, (uint32_t)to, tag, data, len);
	wf_trunk_lock(t);
	if (joins_locked(t, from, brisk_of(from, to, tag, data, len))) {
		wf_unlock(&t->lock);
		return true;
	}
	if (wf_likely(again(t, brisk_of(from, to, tag, data, len))))
		return true;
	b = brisk_of(from, to, tag, data, len);
	sent = brisk_locked(t, from, &b, &g);
	wf_unlock(&t->lock);
	if (wf_likely(sent))
		go(t, &g);
	return sent;
}

/* Processes of other jobs are looked up by a call, and then all registers would be saved for what joins a row, too. */
WF_HOT bool wf_depart_brisk(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len)
{
	uint32_t process = (uint32_t)(to >> 32);
	struct wf_trunk *t = wf_likely(process < WF_PROCESSES) ? wf_trunk_at(process) : NULL;

	return (wf_likely(t != NULL) && wf_joins(t, from, (uint32_t)to, tag, data, len)) || brisk(from, to, tag, data, len);
}

int wf_depart_now(struct outgoing *o)
{
	unsigned char flat[WF_INLINE_MOST];
	struct going g = { .line = NULL };
	struct wf_departure d;
	struct wf_trunk *t;
	int r;

	if (o->len > sizeof(flat))
		return -ENOBUFS;
	r = trunk_of(o->id, &t);
	if (r < 0)
		return r;
	describe(&d, t, o);
	d.s.flags = WF_SEND_NOW;
	d.data = o->buf ? o->buf->data : o->mem.plain;
	if (!o->buf && o->mem.kind != WF_MEM_PLAIN) {
		struct wf_mem to = wf_mem_plain(flat, o->len);

		if (!wf_mem_copy(&to, &o->mem, o->len))
			return weft_fail(-EINVAL, "op.layout gave no pieces");
		d.data = (char *)flat;
	}
	wf_trunk_lock(t);
	r = wf_remote_send(&t->remote, &d.s, wf_now());
	if (r == WEFT_DONE)
		go_locked(t, &g, o->len);
	wf_unlock(&t->lock);
	go(t, &g);
	if (r != WEFT_DONE)
		return r == -EAGAIN ? -ENOBUFS : r;
	if (o->buf)
		buffer_done(o->buf, o->kind);
	return 0;
}

struct wf_departure *wf_departure_get_locked(void)
{
	struct wf_departure *d = free_departures;

	if (d)
		free_departures = d->next_free;
	return d ? d : malloc(sizeof(*d));
}

void wf_departure_put_locked(struct wf_departure *d)
{
	if (d->flat)
		buffer_done(d->flat, d->kind);
	d->flat = NULL;
	d->next_free = free_departures;
	free_departures = d;
}

/* [wf_user_lock] @r is over; its departure is the remote's no more. */
static void end_locked(struct weft_req *r, int err)
{
	r->away = NULL;
	if (err == -ECANCELED && r->cancel)
		err = r->cancel;
	if (err == 0 && r->buf) {
		buffer_done(r->buf, r->a.kind);
		r->buf = NULL;
	}
	wf_end_send_locked(r, err);
}

static int flatten(struct wf_departure *d, const struct wf_mem *mem)
{
	struct wf_mem to;
	int r = wf_buf_alloc(mem->len, &d->flat);

	if (r < 0)
		return r;
	to = wf_mem_plain(d->flat->data, mem->len);
	d->data = d->flat->data;
	return wf_mem_copy(&to, mem, mem->len) ? 0 : weft_fail(-EINVAL, "op.layout gave no pieces");
}

static uint16_t flags_of(const struct weft_req *r)
{
	uint16_t f = 0;

	if (r->flags & WEFT_SYNC)
		f |= WF_SEND_SYNC;
	if (r->flags & WEFT_RENDEZVOUS)
		f |= WF_SEND_RENDEZVOUS;
	return f;
}

/* Who posts a message that is to be encrypted has another use for that time; or it waits at once, and then finds it to be done. (64 KiB: 35 us of the call, of which 20 are the encryption.) A longer one
 * is announced, and written when it is asked for. */
static bool left_to_others(const struct wf_trunk *t, const struct outgoing *o)
{
	return !o->blocks && o->len >= LEFT_LEAST && o->len <= t->remote.conf.eager && wf_endpoint.mode == WF_MODE_FULL && wf_lead_helps();
}

int wf_depart(struct outgoing *o, struct weft_req *r)
{
	struct wf_line *line = NULL;
	struct wf_departure *d;
	struct wf_trunk *t;
	bool news = false, left = false;
	weft_time now;
	int err = trunk_of(o->id, &t);

	if (err < 0)
		return err;
	wf_lock(&wf_user_lock);
	d = wf_departure_get_locked();
	if (!d) {
		wf_unlock(&wf_user_lock);
		return weft_fail(-ENOMEM, "no memory for a send to another host");
	}
	describe(d, t, o);
	d->s.flags = flags_of(r);
	d->data = o->buf ? o->buf->data : o->mem.plain;
	if (!o->buf && o->mem.kind != WF_MEM_PLAIN)
		err = flatten(d, &o->mem);
	if (err == 0 && r->expires)
		err = wf_timer_add(r);
	if (err == 0) {
		d->req = r;
		r->away = d;
		r->a.flags |= WF_MSG_WIRE;
		wf_trunk_lock(t);
		now = wf_now();
		err = wf_remote_send(&t->remote, &d->s, now);
		left = err == 0 && left_to_others(t, o);
		if (!left)
			line = wf_trunk_take_locked(t, now, &news);
		wf_unlock(&t->lock);
		if (err == WEFT_DONE) {
			wf_departure_put_locked(d);
			end_locked(r, 0);
		}
	}
	if (err < 0) {
		r->away = NULL;
		r->a.flags &= (uint16_t)~WF_MSG_WIRE;
		wf_departure_put_locked(d);
	}
	wf_unlock(&wf_user_lock);
	if (!o->blocks)
		wf_lead_soon();
	if (left) {
		wf_trunk_kick(t);
		wf_lead_errand();
	} else if (line) {
		wf_trunk_taken(t, line, news);
	} else {
		wf_trunk_turn(t);
	}
	return err < 0 ? err : 0;
}

/* Does @r have its memory for good? */
static bool handed(const struct weft_req *r)
{
	return r->buf && !wf_buf_is_shared(r->buf);
}

/* [wf_user_lock, trunk.lock] Nobody reads from its memory now, and from @copy's from now on: the request, which is over; NULL: it was before. */
static struct weft_req *move_locked(struct wf_departure *d, struct weft_buf *copy)
{
	struct weft_req *r = d->req;

	if (!r)
		return NULL;
	if (handed(r)) {
		d->flat = r->buf;
		d->kind = r->a.kind;
		r->buf = NULL;
	} else if (!d->flat) {
		d->flat = copy;
		d->data = copy->data;
	}
	d->req = NULL;
	return r;
}

void wf_depart_written(struct wf_trunk *t, struct wf_rsend *s)
{
	struct wf_departure *d = wf_of(s, struct wf_departure, s);
	struct weft_buf *copy = NULL;
	struct weft_req *r = d->req;            /* pinned, it is not told to be over: nobody else changes d->req */
	bool ours = !r || handed(r) || d->flat, over;

	if (!ours && wf_buf_alloc(s->len, &copy) == 0)
		memcpy(copy->data, d->data, s->len);
	wf_lock(&wf_user_lock);
	wf_trunk_lock(t);
	r = wf_remote_kept(&t->remote, s) && (ours || copy) ? move_locked(d, copy) : NULL;
	over = s->state == WF_S_OVER;
	wf_unlock(&t->lock);
	if (r && !ours)
		copy = NULL;
	if (r)
		end_locked(r, 0);
	wf_unlock(&wf_user_lock);
	if (copy)
		wf_buf_release(copy);
	if (over)
		wf_trunk_kick(t);               /* SENT waits to be told */
}

void wf_depart_sent(struct wf_rsend *s, int err)
{
	struct wf_departure *d = wf_of(s, struct wf_departure, s);
	struct weft_req *r;

	wf_lock(&wf_user_lock);
	r = d->req;
	wf_departure_put_locked(d);
	if (r)
		end_locked(r, err);
	wf_unlock(&wf_user_lock);
}

int wf_depart_cancel_locked(struct weft_req *r, int err)
{
	struct wf_trunk *t = r->away->trunk;
	int answer;

	wf_trunk_lock(t);
	answer = wf_remote_cancel(&t->remote, &r->away->s, wf_now());
	wf_unlock(&t->lock);
	if (answer < 0)
		return -EALREADY;
	r->cancel = err;
	wf_trunk_kick(t);
	return 1;
}

/* SEEK: does @s fit what is wanted? */
static bool fits(const struct wf_rsend *s, const unsigned char *want, void *m)
{
	const struct wf_departure *d = s->user;
	const struct weft_req *r = d->req;
	struct wf_head w, h;

	if (!r)
		return false;
	if (r->from->proto)
		return m && r->from->proto->find_want(m, r->a.entry.head) != NULL;
	memcpy(&w, want, sizeof(w));
	memcpy(&h, r->a.entry.head, sizeof(h));
	if (wf_foreign(d->trunk->process))
		h.src = (uint32_t)h.src;        /* as another job names us: arrive.c */
	return wf_matches(&w, h.src, h.tag);
}

void wf_depart_sought(struct wf_trunk *t, const struct wf_act *a)
{
	unsigned char want[WF_HEAD_ROOM] = { 0 };
	const struct weft_proto *proto = NULL;
	struct weft_match_entry e = { .side = 0 };
	struct wf_rsend *s = NULL;
	void *m = NULL;

	if (a->want_len != sizeof(want))
		return;
	memcpy(want, a->want, sizeof(want));
	wf_lock(&wf_user_lock);
	wf_trunk_lock(t);
	while ((s = wf_remote_seek_next(&t->remote, a->to, a->context, s)) != NULL) {
		const struct weft_req *r = ((const struct wf_departure *)s->user)->req;

		if (r && r->from->proto && !m) {
			proto = r->from->proto;
			m = malloc(proto->match_size);
			if (!m)
				break;
			proto->init(m, proto->ctx);
			proto->add_want(m, want, &e);
		}
		if (fits(s, want, m))
			break;
	}
	if (s)
		wf_remote_offer(&t->remote, s, a->name, wf_now());
	else
		wf_remote_sought(&t->remote, a->to, a->context);
	wf_unlock(&t->lock);
	wf_unlock(&wf_user_lock);
	if (m) {
		proto->remove(m, &e);
		proto->fini(m);
		free(m);
	}
}
