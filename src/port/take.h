/* take.h - the hot path of a receive: what recv.c and recv_post.c do alike, inside the door of the port. */
#ifndef WF_PORT_TAKE_H
#define WF_PORT_TAKE_H

#include "base/tsan.h"
#include "port/deliver.h"

/* The status of a short message. Word by word: as a whole gcc clears it first, by `rep stos`, which takes x86-64 longer. */
static inline void wf_told(struct weft_status *st, const struct wf_cell_words *w)
{
	st->err = 0;
	st->flags = 0;
	st->from = w->src;
	st->tag = w->tag;
	st->len = w->len;
	st->index = w->index;
	st->lost = 0;
	st->buf = NULL;
	st->user = NULL;
	st->reserved = 0;
}

/* A thread at its own port, nothing posted, nothing unexpected, and the next cell is the message.
 * Inside the door. True: taken. */
static inline __attribute__((always_inline)) bool wf_take_hot_locked(struct weft_port *p, struct wf_reader *rd, struct wf_cell *c, const struct wf_head *want,
				   void *data, size_t cap, struct weft_status *ret_st)
{
	struct wf_cell_words w;

	if (wf_unlikely(!wf_cell_hot(rd, c, &w) || !wf_matches(want, w.src, w.tag) || w.len > cap))
		return false;
	wf_user_acquires(&p->ring);
	wf_copy_small(data, c->body, w.len);
	if (ret_st)
		wf_told(ret_st, &w);
	p->received++;
	p->received_bytes += w.len;
	p->copies++;
	rd->arena_last = false;
	wf_ring_advance(rd);
	return true;
}

/* [inside] A port of a context: asked here, as who closes or breaks it ends what is posted then, and nothing after. */
static inline bool wf_usable_locked(const struct weft_port *p)
{
	return wf_likely(!p->closing) && wf_likely(!atomic_load_explicit(&p->broken, memory_order_relaxed));
}

/* A receive at a context's port from a member, or from anyone, that the hot path can try; then @src is an id, or WEFT_ANY. */
static inline bool wf_recv_hot_at(const struct weft_port *p, weft_id from, weft_id *ret_src)
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

#endif
