/* request.h - the life of a request, and what its end sets off.
 *
 * Every change of a request that is under way happens under the lock of the port it waits at (of a
 * program's own request: under wf_user_lock). Its end is one release store of over (Q1), the last touch;
 * who then finds a waiter named in it may look at a recycled request, and wakes somebody for nothing.
 */
#ifndef WF_PORT_REQUEST_H
#define WF_PORT_REQUEST_H

#include "base/tsan.h"
#include "port/port.h"
#include "port/self.h"

extern struct wf_lock wf_user_lock;
extern _Atomic uint32_t wf_cancelling WF_HERE;  /* cancellers at work: who releases a request lets them finish */
extern struct wf_lock wf_cancel_lock;

/* [any] A fresh request, nowhere, nobody's; NULL: no memory (weft_fail said so). */
struct weft_req *wf_req_new(enum wf_what what);
struct weft_req *wf_req_own(enum wf_what what); /* the calling thread's, for an operation that ends with the call */

/* As nobody's and nowhere's: all but what, over, st and what the operation brings. In the slab every request is like this (a new
 * one is all zero, but for the slab's own words, the first 16 bytes): the hot path needs to set only what it uses. */
static inline void wf_req_clean(struct weft_req *r)
{
	r->a.entry.side = 0;
	r->a.flags = 0;
	r->where = WF_NOWHERE;
	r->dirty = r->detached = r->told = r->limited = r->rests = false;
	r->prio = 0;
	r->cancel = 0;
	r->flags = 0;
	atomic_store_explicit(&r->waiter, NULL, memory_order_relaxed);
	r->at = r->from = NULL;
	r->mine.next = r->spill.next = NULL;
	r->buf = NULL;
	r->partner = r->carrier = NULL;
	r->head_out = NULL;
	r->done = NULL;
	r->queue = NULL;
	atomic_store_explicit(&r->timer, 0, memory_order_relaxed);
	r->expires = 0;
}

/* Sets up telling by done or queue from @op, the handle, expiry and the limit of @limiter (NULL: none). -EAGAIN: limit. */
int wf_req_observe(struct weft_req *r, const struct weft_op *op, bool handle, struct weft_port *limiter);
void wf_req_unobserve(struct weft_req *r);      /* the post failed: undo that, and put it */

/* Its end, with st filled but for err. at's lock is held; r is not to be touched after. */
void wf_req_end_locked(struct weft_req *r, int err);

/* A repeating receive whose one memory cannot take the next message before its callback has returned. */
static inline bool wf_req_rests(const struct weft_req *r)
{
	return r->flags & WEFT_REPEAT && !(r->flags & WEFT_ALLOC) && r->mem.len;
}

/* A repeating receive got a message: tell @st, the receive stays. @rests: not posted until the callback has returned with its
 * memory, when wf_recv_resume gets it; the port is pinned until then. False: it had to end (no memory). */
bool wf_req_repeat_locked(struct weft_req *r, const struct weft_status *st, bool rests);

/* The end itself, for one with a handle: st is complete. @r is not to be touched after. */
static inline void wf_req_over_locked(struct weft_req *r)
{
	struct weft_port *at = r->at;
	struct wf_parker *waiter;

	r->where = WF_NOWHERE;
	wf_user_releases(r);
	atomic_store_explicit(&r->over, 1, memory_order_release);       /* Q1 */
	if (wf_likely(at == wf_self.port || (at && !at->thread_port)))
		wf_fence_light();                                       /* F1: who else waits here passes a heavy one */
	else
		wf_fence_slow();                                        /* F1: a thread may sleep cold at its own port */
	waiter = atomic_load_explicit(&r->waiter, memory_order_relaxed);
	if (wf_unlikely(waiter != NULL))
		wf_wake(waiter);
}

static inline bool wf_req_over(struct weft_req *r)
{
	return wf_acquire32(&r->over);                                  /* Q1 */
}

/* Back to the slab; one's own: nothing to do. */
static inline void wf_req_put(struct weft_req *r)
{
	if (r->dirty) {
		wf_req_clean(r);
		if (wf_self.port && r == &wf_self.port->own)
			return;
	}
	r->flags = 0;                   /* the hot path's may say TRUNCATE */
	wf_slab_put(WF_SLAB_REQ, r);
}

void wf_req_say(const struct weft_req *r);      /* it has failed: the words, for who collects it */

/* [any] Takes an ended request's result and releases it. Answers st.err. */
static inline int wf_req_collect(struct weft_req *r, struct weft_status *ret_st)
{
	int err = r->st.err;

	if (wf_unlikely(err < 0))
		wf_req_say(r);
	wf_user_acquires(r);
	if (ret_st)
		*ret_st = r->st;
	else if (wf_unlikely(r->st.buf && r->what == WF_RECV))
		wf_buf_release(r->st.buf);      /* nobody will */
	wf_fence_light();                                               /* F1 with weft_req_cancel */
	if (wf_unlikely(atomic_load_explicit(&wf_cancelling, memory_order_relaxed))) {
		wf_lock(&wf_cancel_lock);       /* a canceller may be looking at it */
		wf_unlock(&wf_cancel_lock);
	}
	wf_req_put(r);
	return err;
}

/* In and out of what covers requests at @at; NULL: the program's own, and sends to other processes. */
static inline void wf_cover_enter(struct weft_port *at)
{
	if (at)
		wf_port_enter(at);
	else
		wf_lock(&wf_user_lock);
}

/* Of @r while it is under way. Out: what in answered, as @r may be gone by then. */
static inline struct weft_port *wf_req_enter(struct weft_req *r)
{
	struct weft_port *at = r->at;

	wf_cover_enter(at);
	return at;
}

static inline void wf_req_leave(struct weft_port *at)
{
	if (at)
		wf_port_leave(at);
	else
		wf_unlock(&wf_user_lock);
}

#endif
