/* deliver.h - one message to one receive: what is in a cell, a record or an announced send, and how it gets
 * into memory or a buffer. */
#ifndef WF_PORT_DELIVER_H
#define WF_PORT_DELIVER_H

#include <string.h>

#include "mem/share.h"
#include "port/drain.h"
#include "port/far.h"
#include "port/proto.h"
#include "port/request.h"
#include "port/route.h"
#include "port/table.h"

#define WF_HEAD_ROOM 32u        /* a foreign header stands before the payload of its cell */

/* A cell's message, read once and checked: the cell may be another process's, who may write there whenever it likes. */
struct wf_incoming {
	uint16_t kind, flags;
	uint32_t index;
	size_t len;
	weft_id src;
	uint64_t tag;
	unsigned char head[WF_HEAD_ROOM];       /* struct wf_head, or a foreign one */
	const unsigned char *payload;           /* INLINE, ARENA */
	uint32_t arena_next;                    /* where the arena goes on behind it */
	struct wf_inway *by;                    /* another process's ring it came by */
	union {
		struct weft_buf *buf;           /* POOLED, HANDED */
		struct weft_req *send;          /* ANNOUNCED */
		struct wf_flight flight;        /* FLOWN */
		struct wf_announcement far;     /* FAR; payload: what of it came with it */
	};
};

/* FLOWN: the buffer is taken, and the message POOLED. 0, -ENOMEM, -EBADMSG; all others: 0. */
int wf_incoming_land(struct wf_incoming *in);

/* What @rd's next cell @c says; @foreign: with a header of a foreign protocol. 0; -EBADMSG: nonsense from another process, to be skipped; 1: no message, and done with. */
int wf_cell_read(struct wf_reader *rd, const struct wf_cell *c, bool foreign, struct wf_incoming *in);

/* What @in says of itself, as wf_status_of. */
void wf_status_in(const struct weft_port *p, const struct wf_incoming *in, struct weft_status *ret_st);

/* [inside] Done with the cell. */
static inline void wf_cell_done(struct wf_reader *rd, const struct wf_incoming *in)
{
	wf_ring_advance_to(rd, in->arena_next);
}

struct wf_cell *wf_port_scan_locked(struct weft_port *p, struct wf_reader **ret_rd);    /* drain.c: the other readers */

#define WF_STREAK 64u           /* cells in a row from one process before the others are looked at: none starves them */

/* The next cell at @p, that of the reader last active first, and whose it is; NULL: none. */
static inline struct wf_cell *wf_port_next_locked(struct weft_port *p, struct wf_reader **ret_rd)
{
	struct wf_reader *r = atomic_load_explicit(&p->last, memory_order_relaxed), *other;
	struct wf_cell *c = wf_ring_next(r);

	if (!(wf_likely(!atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed)) || (c && ++p->streak % WF_STREAK))) {
		c = wf_port_scan_locked(p, &other);     /* not @ret_rd, which may then stay in a register */
		r = c ? other : r;
	}
	*ret_rd = r;
	return c;
}

static inline bool wf_matches(const struct wf_head *want, weft_id src, uint64_t tag)
{
	return (want->src == src || want->src == WEFT_ANY) && ((want->tag ^ tag) & ~want->ignore) == 0;
}

/* Two halves of @half bytes that may overlap, for @half to 2 * @half bytes. */
#define WF_COPY_HALVES(to, from, n, half) do { \
	char wf_first[half], wf_last[half]; \
	memcpy(wf_first, (from), half); \
	memcpy(wf_last, (const char *)(from) + (n) - (half), half); \
	memcpy((to), wf_first, half); \
	memcpy((char *)(to) + (n) - (half), wf_last, half); \
} while (0)

/* What fits into a cell. A call of memcpy costs more than a few bytes do; and where it knows that there are few gcc copies by `rep movs`, which takes x86-64 longer than the call. */
static inline void wf_copy_small(void *to, const void *from, size_t n)
{
	if (wf_likely(n == 8)) {
		memcpy(to, from, 8);
	} else if (n >= 16) {
		size_t i = 0;

		for (; i + 32 < n; i += 16)
			memcpy((char *)to + i, (const char *)from + i, 16);
		WF_COPY_HALVES((char *)to + i, (const char *)from + i, n - i, 16);
	} else if (n > 8) {
		WF_COPY_HALVES(to, from, n, 8);
	} else if (n >= 4) {
		WF_COPY_HALVES(to, from, n, 4);
	} else {                /* nothing may come with NULL */
		for (size_t i = 0; i < n; i++)
			((char *)to)[i] = ((const char *)from)[i];
	}
}

/* A message of at most WF_BODY bytes; it is not published yet. */
static inline __attribute__((always_inline)) void wf_cell_fill(struct wf_cell *c, weft_id src, uint32_t index, uint64_t tag, const void *data, size_t len)
{
	c->kind = WF_INLINE;
	c->flags = 0;
	c->len = (uint32_t)len;
	c->index = index;
	c->src = src;
	c->tag = tag;
	wf_copy_small(c->body, data, len);
}

/* More than that: by a call. */
static inline void wf_copy_large(void *to, const void *from, size_t n)
{
	__asm__("" : "+r"(n));          /* it is not to know how many there may be */
	memcpy(to, from, n);
}

static inline bool wf_fits(const struct wf_target *t, size_t len)
{
	return t->flags & (WEFT_ALLOC | WEFT_TRUNCATE) || len <= t->mem->len;
}

/* The words of a cell that the hot paths need, each loaded once. */
struct wf_cell_words {
	uint32_t len, index;
	weft_id src;
	uint64_t tag;
};

/* True: a small message, from one of whom @rd may bring messages. False: not for the hot path. */
static inline bool wf_cell_hot(const struct wf_reader *rd, const struct wf_cell *c, struct wf_cell_words *w)
{
	w->len = *(const volatile uint32_t *)&c->len;
	w->index = *(const volatile uint32_t *)&c->index;
	w->src = *(const volatile uint64_t *)&c->src;
	w->tag = *(const volatile uint64_t *)&c->tag;
	/* Our own ring has what was read from other hosts, too: wf_drop_in. */
	return wf_likely(*(const volatile uint16_t *)&c->kind == WF_INLINE && w->len <= WF_BODY && (w->src >> 32 == rd->process || !rd->starved));
}

/* The usual case: a small message, a posted receive with plain memory and a handle. True: done. */
static inline __attribute__((always_inline)) bool wf_arrive_hot_locked(struct weft_port *p, struct wf_reader *rd, const struct wf_cell *c)
{
	struct weft_match_entry *e;
	struct wf_cell_words w;
	struct wf_head head;
	struct weft_req *r;

	if (wf_unlikely(!wf_cell_hot(rd, c, &w)))
		return false;
	head = (struct wf_head){ .src = w.src, .tag = w.tag };
	e = wf_native_match_find_want(&p->native, &head);
	r = e ? wf_of(e, struct weft_req, a.entry) : NULL;
	/* Not dirty: posted by the hot path, so plain memory, a handle, and nothing else asked for. */
	if (!r || r->dirty || w.len > r->mem.len)
		return false;
	wf_native_match_remove(&p->native, e);
	wf_copy_small(r->mem.plain, c->body, w.len);
	r->st.from = w.src;
	r->st.tag = w.tag;
	r->st.len = w.len;
	r->st.index = w.index;
	p->received++;
	p->received_bytes += w.len;
	p->copies++;
	wf_req_over_locked(r);
	return true;
}

/* Everything but the payload; the head goes into entry.head too. */
void wf_facts_of(const struct wf_incoming *in, struct wf_arrival *ret_a);
void wf_head_out(const struct weft_port *p, const struct weft_match_entry *e, void *head_out);

/* 0, -EMSGSIZE (cut off, and delivered), -ENOMEM (nothing happened), -EINVAL (a layout failed). */
/* -EBADMSG: a buffer of another process that does not exist: the message is none. */
int wf_deliver_cell(struct weft_port *p, struct wf_incoming *in, const struct wf_target *t);
int wf_deliver_send(struct weft_port *p, struct weft_req *send, const struct wf_target *t);
int wf_copy_memory(const struct wf_mem *from, size_t len, const struct wf_target *t);

/* An announced send that wants no SYNC, copied into a record: its sender is free. False: stays announced. */
bool wf_keep_send_locked(struct weft_port *p, struct weft_req *send);
void wf_keep_locked(struct weft_port *p, struct wf_record *rec, const void *head);      /* drain.c */

/* Ends a send that was not received: its buffer, if any, is the sender's again. */
void wf_end_send_locked(struct weft_req *send, int err);

extern _Atomic uint64_t wf_taken;       /* announced sends that probes have taken and nobody received yet; a count */

/* What a record is charged for beyond what its sender charged. */
static inline size_t wf_record_size(const struct wf_record *rec)
{
	return sizeof(*rec) + (rec->a.kind == WF_INLINE || rec->a.flags & WF_MSG_CHARGED ? 0 : rec->buf->cap);
}

struct wf_cell *wf_big_cells_get(void);         /* 256 cells or NULL */
void wf_big_cells_put(struct wf_cell *cells);

struct weft_req *wf_next_spilled_locked(struct weft_port *p);   /* drain.c */

#endif
