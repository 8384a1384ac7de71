/* eager.c - see eager.h. Run by whoever sends, without a lock; by who writes a backlog, under wf_user_lock. */
#include "port/eager.h"

#include <errno.h>
#include <string.h>

#include "mem/atlas.h"
#include "mem/segment.h"
#include "port/budget.h"
#include "port/outgoing.h"

int wf_take_off(struct weft_buf *b, uint16_t kind, uint32_t to, struct wf_take_off *f)
{
	struct weft_buf *copy;
	int r;

	if (kind == WF_POOLED) {        /* weft's own: not under way yet */
		r = wf_buf_send_begin(b, false, &b);
		if (r < 0)
			return r;
	}
	f->carry = b;
	r = wf_buf_fly(b, to, &f->flight);
	/* A dead process's memory can no longer be had by who has not mapped it. */
	if (r == 0 && f->flight.maker != wf_process_id >> 32 && wf_peer_died(f->flight.maker)) {
		wf_buf_unfly(b);
		r = -EXDEV;
	}
	if (r < 0 && kind == WF_POOLED)
		wf_buf_send_undo(b);
	if (r != -EXDEV)
		return r;
	r = wf_buf_alloc(b->len, &copy);
	if (r < 0)
		return -ENOMEM;
	memcpy(copy->data, b->data, b->len);
	copy->len = b->len;
	r = wf_take_off(copy, WF_POOLED, to, f);
	if (r < 0)
		wf_buf_release(copy);
	return r;
}

void wf_taken_off(struct weft_buf *b, struct wf_take_off *f)
{
	if (f->carry != b && (b = wf_buf_send_undo(b)) != NULL)
		wf_buf_release(b);
	wf_buf_flown(&f->flight);
}

bool wf_far_may_eager(const void *data, size_t len)
{
	struct wf_place at;

	return len <= wf_budget.eager_far && len <= WF_ARENA_MOST && (len <= WF_READABLE_LEAST || !data || !wf_place_of_all(data, len, &at));
}

int wf_far_eager(struct outgoing *o, uint64_t allow)
{
	size_t room = wf_outgoing_room(o), arena = 0;
	unsigned char flat[WF_BODY], *body;
	struct wf_take_off f;
	struct wf_claimed c;
	struct wf_mem to;
	uint16_t kind = WF_INLINE;
	int claim, r = 0;

	if (!o->buf && o->len > WF_ARENA_MOST)
		return -ENOBUFS;
	if (o->buf) {
		kind = WF_FLOWN;
	} else if (o->len > room) {
		kind = WF_ARENA;
		arena = o->len;
	} else if (o->mem.kind != WF_MEM_PLAIN) {       /* a cell that is claimed must be filled: what may fail comes before */
		to = wf_mem_plain(flat, o->len);
		if (!wf_mem_copy(&to, &o->mem, o->len))
			return weft_fail(-EINVAL, "op.layout gave no pieces");
	}
	while ((claim = wf_way_claim(o->way, o->who, arena, allow, &c)) != WF_CLAIMED) {
		claim = wf_way_refused(o->way, o->who, claim);
		if (claim != -EINTR)
			return claim;
	}
	/* Behind the claim: a buffer that flies to a process is in a cell of its ring, or will be before this process says that it has acted on its
	 * death (wf_host_dead). */
	if (o->buf) {
		r = wf_take_off(o->buf, o->kind, o->way->peer->process, &f);
		kind = r < 0 ? WF_VOID : kind;
	}
	body = wf_outgoing_fill(c.cell, o, kind);
	if (kind == WF_FLOWN) {
		memcpy(body, &f.flight, sizeof(f.flight));
	} else if (kind == WF_ARENA) {
		to = wf_mem_plain(c.bytes, o->len);
		if (!wf_mem_copy(&to, &o->mem, o->len))
			memset(c.bytes, 0, o->len);     /* promised, and a cell cannot be taken back */
	} else if (kind == WF_INLINE && o->len) {
		wf_copy_small(body, o->mem.kind == WF_MEM_PLAIN ? o->mem.plain : flat, o->len);
	}
	wf_way_publish(o->way, &c);
	if (r < 0)
		return r == -ENOMEM ? -ENOBUFS : r;
	if (o->buf)
		wf_taken_off(o->buf, &f);
	return 0;
}
