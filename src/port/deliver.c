/* deliver.c - see deliver.h. */
#include "port/deliver.h"

#include <errno.h>
#include <sys/mman.h>

#include "port/budget.h"
#include "port/request.h"

int wf_cell_read(struct wf_reader *rd, const struct wf_cell *c, bool foreign, struct wf_incoming *in)
{
	const unsigned char *body = c->body;
	size_t room = WF_BODY;

	in->kind = *(const volatile uint16_t *)&c->kind;
	in->flags = *(const volatile uint16_t *)&c->flags;
	in->index = *(const volatile uint32_t *)&c->index;
	in->len = *(const volatile uint32_t *)&c->len;
	in->src = *(const volatile uint64_t *)&c->src;
	in->tag = *(const volatile uint64_t *)&c->tag;
	in->arena_next = rd->arena_at;
	if (foreign) {
		memcpy(in->head, body, WF_HEAD_ROOM);
		body += WF_HEAD_ROOM;
		room -= WF_HEAD_ROOM;
	} else {
		struct wf_head native = { .src = in->src, .tag = in->tag };

		memcpy(in->head, &native, sizeof(native));
	}
	in->payload = body;
	if (rd->starved)                /* another process's */
		return wf_cell_read_far(rd, body, room, in);
	if (in->kind != WF_INLINE)
		memcpy(&in->buf, body, sizeof(in->buf));
	return 0;
}

void wf_facts_of(const struct wf_incoming *in, struct wf_arrival *ret_a)
{
	ret_a->src = in->src;
	ret_a->len = in->len;
	ret_a->index = in->index;
	ret_a->kind = in->kind;
	ret_a->flags = in->flags;
	memcpy(ret_a->entry.head, in->head, WF_HEAD_ROOM);
}

void wf_status_of(const struct weft_port *p, const struct wf_arrival *a, struct weft_status *ret_st)
{
	struct wf_head h;

	memcpy(&h, a->entry.head, sizeof(h));
	ret_st->err = 0;
	ret_st->flags = a->flags & WF_MSG_SHARED ? WEFT_ST_SHARED : 0;
	ret_st->from = a->src;
	ret_st->tag = p->proto ? 0 : h.tag;
	ret_st->len = a->len;
	ret_st->index = a->index;
	ret_st->lost = 0;
	ret_st->buf = NULL;
	ret_st->reserved = 0;
}

void wf_head_out(const struct weft_port *p, const struct weft_match_entry *e, void *head_out)
{
	if (head_out && p->proto)
		memcpy(head_out, e->head, p->proto->head_len);
}

static void count(struct weft_port *p, size_t len, bool copied)
{
	p->received++;
	p->received_bytes += len;
	p->copies += copied;
}

int wf_copy_memory(const struct wf_mem *from, size_t len, const struct wf_target *t)
{
	size_t room = t->mem->len, n = len < room ? len : room;

	if (t->flags & WEFT_ALLOC) {
		struct weft_buf *b;
		struct wf_mem to;

		if (wf_buf_alloc(len, &b) < 0)
			return -ENOMEM;
		to = wf_mem_plain(b->data, len);
		if (!wf_mem_copy(&to, from, len)) {
			wf_buf_release(b);
			return -EINVAL;
		}
		t->st->buf = b;
		return 0;
	}
	if (!wf_mem_copy(t->mem, from, n))
		return -EINVAL;
	return len > room ? -EMSGSIZE : 0;
}

static int deliver_bytes(struct weft_port *p, const void *bytes, size_t len, const struct wf_target *t)
{
	int r;

	if (wf_likely(!(t->flags & (WEFT_ALLOC | WEFT_TRUNCATE)) && t->mem->kind == WF_MEM_PLAIN)) {
		if (len)
			memcpy(t->mem->plain, bytes, len);
		r = 0;
	} else {
		/* The memory behind bytes is only read. */
		struct wf_mem from = { .len = len, .kind = WF_MEM_LIST, .count = 1 };
		struct iovec v = { .iov_len = len };

		memcpy(&v.iov_base, &bytes, sizeof(bytes));
		from.list = &v;
		r = wf_copy_memory(&from, len, t);
	}
	if (r != -ENOMEM)
		count(p, len, len > 0);
	return r;
}

/* A buffer that travels: to a receive that takes buffers it goes itself. */
static int deliver_buf(struct weft_port *p, struct weft_buf *b, size_t len, bool handed, const struct wf_target *t)
{
	int r;

	if (t->flags & WEFT_ALLOC) {
		if (handed)
			wf_buf_delivered(b);
		b->len = len;
		t->st->buf = b;
		count(p, len, false);
		return 0;
	}
	r = deliver_bytes(p, b->data, len, t);
	if (handed)
		wf_buf_delivered(b);
	wf_buf_release(b);
	return r;
}

int wf_incoming_land(struct wf_incoming *in)
{
	struct weft_buf *b;
	int r;

	if (in->kind != WF_FLOWN)
		return 0;
	r = wf_buf_land((uint32_t)(in->src >> 32), &in->flight, in->len, &b);
	if (r < 0)
		return r;
	in->kind = WF_POOLED;           /* in our hands already: nothing changes any more */
	in->flags = (uint16_t)(in->flags & ~WF_MSG_SHARED) | (wf_buf_is_shared(b) ? WF_MSG_SHARED : 0);
	in->buf = b;
	return 0;
}

void wf_status_in(const struct weft_port *p, const struct wf_incoming *in, struct weft_status *ret_st)
{
	ret_st->err = 0;
	ret_st->flags = in->flags & WF_MSG_SHARED ? WEFT_ST_SHARED : 0;
	ret_st->from = in->src;
	ret_st->tag = p->proto ? 0 : in->tag;
	ret_st->len = in->len;
	ret_st->index = in->index;
	ret_st->lost = 0;
	ret_st->buf = NULL;
	ret_st->reserved = 0;
}

int wf_deliver_cell(struct weft_port *p, struct wf_incoming *in, const struct wf_target *t)
{
	struct weft_status *st = t->st;
	int r = wf_incoming_land(in);

	if (wf_unlikely(r < 0))
		return r;
	if (wf_unlikely(t->head_out && p->proto))
		memcpy(t->head_out, in->head, p->proto->head_len);
	if (st)
		wf_status_in(p, in, st);
	if (wf_likely(in->kind == WF_INLINE || in->kind == WF_ARENA))
		return deliver_bytes(p, in->payload, in->len, t);
	if (in->flags & WF_MSG_CHARGED)
		wf_budget_give(in->buf->cap);
	return deliver_buf(p, in->buf, in->len, in->kind == WF_HANDED, t);
}

int wf_deliver_send(struct weft_port *p, struct weft_req *send, const struct wf_target *t)
{
	int r;

	if (send->buf) {
		struct weft_buf *b = send->buf;

		r = deliver_buf(p, b, send->a.len, send->a.kind == WF_HANDED, t);
		send->buf = NULL;
		return r;
	}
	r = wf_copy_memory(&send->mem, send->a.len, t);
	if (r != -ENOMEM)
		count(p, send->a.len, send->a.len > 0);
	return r;
}

/* What waits longest is what is received next, more often than not, and it has been out of the cache for long. */
static void fetch_ahead(struct weft_port *p)
{
	const char *next = (const char *)wf_first(p, WEFT_MATCH_ARRIVALS);

	for (size_t at = 0; next && at < sizeof(struct wf_record); at += WF_LINE)
		__builtin_prefetch(next + at);
}

static int deliver_record(struct weft_port *p, struct wf_record *rec, const struct wf_target *t)
{
	size_t n = wf_record_size(rec), charged = rec->a.flags & WF_MSG_CHARGED ? rec->buf->cap : 0;
	int r;

	if (rec->a.kind == WF_INLINE)
		r = deliver_bytes(p, rec->body, rec->a.len, t);
	else
		r = deliver_buf(p, rec->buf, rec->a.len, rec->a.kind == WF_HANDED, t);
	if (r == -ENOMEM)
		return r;
	if (charged)
		wf_budget_give(charged);
	if (rec->a.flags & WF_MSG_TAKEN) {
		wf_budget_give(n);
	} else {
		wf_unmatch(p, &rec->a.entry);
		wf_uncharge_locked(p, n);
		fetch_ahead(p);
	}
	wf_slab_put(WF_SLAB_RECORD, rec);
	return r;
}

int wf_take_arrival_locked(struct weft_port *p, struct wf_arrival *a, const struct wf_target *t, struct weft_req **ret_send)
{
	struct weft_req *send;
	int r;

	*ret_send = NULL;
	wf_status_of(p, a, t->st);
	if (!wf_fits(t, a->len))
		return weft_fail(-EMSGSIZE, "the message has %zu bytes", a->len);
	if (a->flags & WF_MSG_SENDS && !(a->flags & WF_MSG_TAKEN) && !wf_claim_send_locked(wf_of(a, struct weft_req, a))) {
		wf_unmatch(p, &a->entry);       /* taken back by its sender, in another process */
		p->unrequested--;
		wf_far_forget(wf_of(a, struct weft_req, a));
		return 0;
	}
	wf_head_out(p, &a->entry, t->head_out);
	if (!(a->flags & WF_MSG_SENDS)) {
		r = deliver_record(p, wf_of(a, struct wf_record, a), t);
		return r < 0 ? r : 1;
	}
	send = wf_of(a, struct weft_req, a);
	if (send->buf || (a->len <= WF_BODY && a->kind != WF_FAR && a->kind != WF_WIRED)) {
		r = wf_deliver_send(p, send, t);
		if (r == -ENOMEM) {
			if (!(a->flags & WF_MSG_TAKEN))
				wf_unclaim_send_locked(send);
			return r;
		}
	} else {
		send->where = WF_COPYING;
		p->copying++;
		*ret_send = send;
		r = 1;
	}
	if (a->flags & WF_MSG_TAKEN) {
		atomic_fetch_sub_explicit(&wf_taken, 1, memory_order_relaxed);
	} else {
		wf_unmatch(p, &a->entry);
		p->unrequested--;
	}
	if (!*ret_send)
		wf_req_end_locked(send, 0);
	return r < 0 ? r : 1;
}

int wf_copy_send(struct weft_port *p, struct weft_req *send, const struct wf_target *t)
{
	int r = send->a.kind == WF_FAR	 ? wf_far_pull(p, send, t)
		: send->a.kind == WF_WIRED ? wf_hosts->pull(p, send, t)
					   : wf_copy_memory(&send->mem, send->a.len, t);

	wf_port_enter(p);
	p->copying--;
	if (r == -ENOMEM || r == -ECONNRESET) {
		/* Its place among the arrivals is gone; the sender learns that it was not received. */
		wf_end_send_locked(send, -ECONNRESET);
	} else {
		count(p, send->a.len, true);
		wf_req_end_locked(send, r == -EINVAL ? r : 0);
	}
	wf_port_leave(p);
	return r;
}

bool wf_keep_send_locked(struct weft_port *p, struct weft_req *send)
{
	struct wf_mem to;
	struct wf_record *rec;
	size_t len = send->a.len;

	if (send->a.kind == WF_FAR || send->a.flags & (WF_MSG_TICKET | WF_MSG_STANDS))
		return false;           /* its sender is not here: copying takes both */
	if (send->buf ? wf_budget_full(sizeof(*rec) + send->buf->cap)
		      : len > wf_budget.eager || wf_budget_full(sizeof(*rec) + len))
		return false;
	rec = wf_slab_get(WF_SLAB_RECORD);
	if (!rec)
		return false;
	rec->a = send->a;
	rec->a.entry.side = 0;
	rec->a.flags &= (uint16_t)~WF_MSG_SENDS;
	if (send->buf) {
		rec->buf = send->buf;
		if (send->a.kind == WF_HANDED)
			wf_buf_sent(send->buf);
	} else if (len <= WF_BODY) {
		rec->a.kind = WF_INLINE;
		to = wf_mem_plain(rec->body, len);
	} else {
		rec->a.kind = WF_POOLED;
		if (wf_buf_alloc(len, &rec->buf) < 0) {
			wf_slab_put(WF_SLAB_RECORD, rec);
			return false;
		}
		to = wf_mem_plain(rec->buf->data, len);
	}
	if (!send->buf && !wf_mem_copy(&to, &send->mem, len)) {
		if (rec->a.kind == WF_POOLED)
			wf_buf_release(rec->buf);
		wf_slab_put(WF_SLAB_RECORD, rec);
		return false;
	}
	p->copies += !send->buf && len;
	send->buf = NULL;
	wf_keep_locked(p, rec, rec->a.entry.head);
	wf_req_end_locked(send, 0);
	return true;
}

void wf_end_send_locked(struct weft_req *send, int err)
{
	if (send->buf) {
		if (send->a.kind == WF_HANDED) {
			send->st.buf = wf_buf_send_undo(send->buf);
		} else {
			wf_buf_release(send->buf);
		}
		send->buf = NULL;
	}
	wf_req_end_locked(send, err);
}

bool wf_drop_arrival_locked(struct weft_port *p, struct wf_arrival *a)
{
	struct wf_record *rec = wf_of(a, struct wf_record, a);
	size_t n;

	if (a->flags & WF_MSG_SENDS) {
		bool done = a->flags & WF_MSG_TICKET && wf_of(a, struct weft_req, a)->far->written;     /* its sender is, and is not told otherwise */

		wf_end_send_locked(wf_of(a, struct weft_req, a), weft_fail(-ECONNRESET, "the port was closed"));
		return done;
	}
	n = wf_record_size(rec);
	if (a->kind != WF_INLINE) {
		if (a->flags & WF_MSG_CHARGED)
			wf_budget_give(rec->buf->cap);
		if (a->kind == WF_HANDED)
			wf_buf_delivered(rec->buf);
		wf_buf_release(rec->buf);
	}
	wf_uncharge_locked(p, n);
	wf_slab_put(WF_SLAB_RECORD, rec);
	return true;
}

static struct wf_lock big_lock;
static struct wf_cell *big_free;        /* linked through the cells' own memory; given back by nobody */

struct wf_cell *wf_big_cells_get(void)
{
	const size_t size = WF_CELLS_BIG * sizeof(struct wf_cell);
	struct wf_cell *cells;

	wf_lock(&big_lock);
	cells = big_free;
	if (cells)
		memcpy(&big_free, cells->body, sizeof(big_free));
	wf_unlock(&big_lock);
	if (cells)
		return cells;
	cells = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cells == MAP_FAILED)
		return NULL;
	madvise(cells, size, MADV_DONTDUMP);
	return cells;
}

void wf_big_cells_put(struct wf_cell *cells)
{
	wf_lock(&big_lock);
	memcpy(cells->body, &big_free, sizeof(big_free));
	big_free = cells;
	wf_unlock(&big_lock);
}
