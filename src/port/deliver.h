/* deliver.h - one message to one receive: what is in a cell, a record or an announced send, and how it gets
 * into memory or a buffer. */
#ifndef WF_PORT_DELIVER_H
#define WF_PORT_DELIVER_H

#include <string.h>

#include "port/drain.h"
#include "port/proto.h"
#include "port/request.h"
#include "port/table.h"

#define WF_HEAD_ROOM 32u        /* a foreign header stands before the payload of its cell */

static inline const unsigned char *wf_cell_payload(const struct weft_port *p, const struct wf_cell *c)
{
	return wf_likely(!p->proto) ? c->body : c->body + WF_HEAD_ROOM;
}

/* The buffer or request a cell stands for. */
static inline void *wf_cell_pointer(const struct weft_port *p, const struct wf_cell *c)
{
	void *ptr;

	memcpy(&ptr, wf_cell_payload(p, c), sizeof(ptr));
	return ptr;
}

static inline const void *wf_cell_head(const struct weft_port *p, const struct wf_cell *c, struct wf_head *native)
{
	if (wf_unlikely(p->proto != NULL))
		return c->body;
	*native = (struct wf_head){ .src = c->src, .tag = c->tag };
	return native;
}

static inline bool wf_cell_matches(const struct wf_head *want, const struct wf_cell *c)
{
	return (want->src == c->src || want->src == WEFT_ANY) && ((want->tag ^ c->tag) & ~want->ignore) == 0;
}

/* A call of memcpy costs more than eight bytes do. */
static inline void wf_copy_small(void *to, const void *from, size_t n)
{
	if (wf_likely(n == 8))
		memcpy(to, from, 8);
	else if (n)             /* nothing may come with NULL */
		memcpy(to, from, n);
}

static inline bool wf_fits(const struct wf_target *t, size_t len)
{
	return t->flags & (WEFT_ALLOC | WEFT_TRUNCATE) || len <= t->mem->len;
}

/* The usual case: a small message, a posted receive with plain memory and a handle. True: done. */
static inline bool wf_arrive_hot_locked(struct weft_port *p, const struct wf_cell *c)
{
	struct wf_head head = { .src = c->src, .tag = c->tag };
	struct weft_match_entry *e = wf_native_match_find_want(&p->native, &head);
	struct weft_req *r = e ? wf_of(e, struct weft_req, a.entry) : NULL;

	/* Not dirty: posted by the hot path, so plain memory, a handle, and nothing else asked for. */
	if (!r || r->dirty || c->len > r->mem.len)
		return false;
	wf_native_match_remove(&p->native, e);
	wf_copy_small(r->mem.plain, c->body, c->len);
	r->st.from = c->src;
	r->st.tag = c->tag;
	r->st.len = c->len;
	r->st.index = c->index;
	p->received++;
	p->received_bytes += c->len;
	p->copies++;
	wf_req_over_locked(r);
	return true;
}

/* Everything but the payload; the head goes into entry.head too. */
void wf_facts_of_cell(const struct weft_port *p, const struct wf_cell *c, struct wf_arrival *ret_a);
void wf_head_out(const struct weft_port *p, const struct weft_match_entry *e, void *head_out);

/* 0, -EMSGSIZE (cut off, and delivered), -ENOMEM (nothing happened), -EINVAL (a layout failed). */
int wf_deliver_cell(struct weft_port *p, const struct wf_cell *c, const struct wf_target *t);
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
