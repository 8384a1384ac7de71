/* outgoing.h - a message on its way: what the cell and the request will say. */
#ifndef WF_PORT_OUTGOING_H
#define WF_PORT_OUTGOING_H

#include <string.h>

#include "base/tsan.h"
#include "port/deliver.h"
#include "port/listener.h"
#include "port/way.h"

struct outgoing {
	struct weft_port *from, *to;    /* to: of this process, or */
	struct wf_way *way;             /* the way to a port of another */
	weft_id id;
	uint16_t who;                   /* incarnation of to, of way */
	uint64_t context, allow;
	uint64_t tag;
	const void *head;               /* of a foreign protocol */
	struct wf_mem mem;
	struct weft_buf *buf;           /* what travels */
	size_t len;
	uint16_t kind, flags;
	int8_t prio;
	bool abroad;                    /* to a process of another host */
	bool blocks;                    /* the call waits for its end */
};

static inline void wf_count_sent(struct weft_port *from, size_t len)
{
	/* What the thread whose port it is sends it counts by itself: no locked instruction. */
	if (wf_likely(wf_port_mine(from))) {
		atomic_store_explicit(&from->own_sent, atomic_load_explicit(&from->own_sent, memory_order_relaxed) + 1, memory_order_relaxed);
		atomic_store_explicit(&from->own_sent_bytes, atomic_load_explicit(&from->own_sent_bytes, memory_order_relaxed) + len,
				      memory_order_relaxed);
		return;
	}
	atomic_fetch_add_explicit(&from->sent, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&from->sent_bytes, len, memory_order_relaxed);
}

/* How much payload a cell of @o holds, and everything of it but that; where the payload goes. */
static inline size_t wf_outgoing_room(const struct outgoing *o)
{
	return o->allow & WF_TAIL_FOREIGN ? WF_BODY - WF_HEAD_ROOM : WF_BODY;
}

static inline unsigned char *wf_outgoing_fill(struct wf_cell *c, const struct outgoing *o, uint16_t kind)
{
	unsigned char *body = c->body;

	c->kind = kind;
	c->flags = o->flags;
	c->len = (uint32_t)o->len;      /* an announced one's length is in its request or announcement */
	c->index = o->from->index;
	c->src = atomic_load_explicit(&o->from->id, memory_order_relaxed);
	c->tag = o->tag;
	if (o->allow & WF_TAIL_FOREIGN) {
		memset(body, 0, WF_HEAD_ROOM);
		if (o->head)
			memcpy(body, o->head, o->from->proto->head_len);
		body += WF_HEAD_ROOM;
	}
	return body;
}

/* A cell of this process's own is filled: shown, and who sleeps for it woken. */
static inline void wf_publish_cell(struct weft_port *to, struct wf_cell *c, uint32_t pos)
{
	struct wf_parker *sleeper;

	wf_user_releases(&to->ring);
	wf_ring_publish(c, pos);
	sleeper = wf_ring_sleeper(&to->ring);
	if (wf_unlikely(sleeper != NULL))
		wf_bell(to, sleeper);
}

/* From whom, to whom, what: all that is checked before anything happens. A buffer is under way after this. */
int wf_outgoing_prepare(struct outgoing *o, struct weft_port *from, const struct weft_op *op);
void wf_outgoing_undo(struct outgoing *o);              /* the send came to nothing: the buffer is its user's again, a copy goes home */

bool wf_outgoing_may_eager(const struct outgoing *o, const struct weft_op *op);
int wf_outgoing_eager(struct outgoing *o);              /* the eager ways: 0 done; -EAGAIN, -ENOBUFS: not this way now */
int wf_outgoing_announce(struct outgoing *o, const struct weft_op *op, bool handle, struct weft_req **ret_req); /* the announced way. @handle: the caller keeps @ret_req */
int wf_outgoing_start(struct outgoing *o, const struct weft_op *op, struct weft_req **ret_req);         /* whichever: WEFT_DONE, 0 (*ret_req if asked for), or an error: then nothing happened */

#endif
