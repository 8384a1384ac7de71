/* expect.h - a short message read from another host, straight to the thread that waits for it.
 *
 * Who waits at a port of its own and looks at the rails meanwhile says what it expects. If it then reads that very message itself it need not put it into the mailbox first to
 * find it there. Only what nothing came before: the mailbox has no message that is not looked at, nobody is posted and nothing waits to be received. All in one thread.
 */
#ifndef WF_PORT_EXPECT_H
#define WF_PORT_EXPECT_H

#include "port/drop.h"
#include "port/native.h"
#include "port/take.h"

#define WF_EXPECT_MOST 4096u            /* bytes of the messages that come with their heads (peer/remote.h): larger ones are to land, for which a receive has to be posted, unless: */
#define WF_EXPECT_LONGEST (64u << 10)   /* ... one of at most these is likely to be read straight to where it is expected (wire/line_ahead.c) */

struct wf_expect {
	struct weft_port *at;           /* native, and the thread's own */
	const struct wf_head *want;
	void *data;
	size_t room;
	struct weft_status *st;
	bool came;                      /* it is in data, and st says what */
	bool post;                      /* a large one has begun to come: it is to be posted */
	bool looked;                    /* once, and nothing was there */
	uint64_t meant;                 /* 0, or the name of what it was found to expect: who reads sees to that before it comes */
	size_t lent;                    /* so many bytes of data may be written to by who reads, and are kept elsewhere */
};

/* The memory, lent to who reads before it is known what comes: [the thread, no door] */
bool wf_expect_lends(struct wf_expect *x, size_t n);                    /* true: its first @n bytes */
void wf_expect_restores(struct wf_expect *x, size_t n);                 /* they are what they were */
void wf_expect_forget(void);                                            /* [the thread ends] what was kept */

/* [reader] Messages of so many bytes may be read so; 0: none. */
void wf_expect_likely(size_t len);
bool wf_expect_may_come(size_t room);                                   /* [any] a hint: one of them, at most @room */

bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g);    /* [the thread, no door] true: @g is what was expected, and has come */

/* Its parts. Is it for this receive, by what it says? */
static inline bool wf_expect_meant(const struct wf_expect *x, const struct wf_guest *g)
{
	return wf_likely(!x->came && g->len <= x->room) && wf_likely(wf_matches(x->want, g->src, g->tag)) &&
	       wf_likely(g->to == atomic_load_explicit(&x->at->id, memory_order_relaxed)) && wf_likely(g->context == atomic_load_explicit(&x->at->context, memory_order_relaxed));
}

/* [inside] Has nothing come before it? Also not behind a cell whose sender has claimed it and is not done: what stands there may be of the same source. */
static inline bool wf_expect_first_locked(struct weft_port *p)
{
	return wf_likely(wf_usable_locked(p) && !(p->native.wants | p->native.arrivals) && !wf_ring_spilled(&p->ring) && wf_ring_unclaimed(&p->ring));
}

/* [inside] It is in its place. */
static inline void wf_expect_told_locked(struct wf_expect *x, const struct wf_guest *g)
{
	const struct wf_cell_words w = { .len = (uint32_t)g->len, .index = g->index, .src = g->src, .tag = g->tag };

	wf_told(x->st, &w);
	x->at->received++;
	x->at->received_bytes += g->len;
	x->came = true;
}

/* [inside] */
static inline void wf_expect_come_locked(struct wf_expect *x, const struct wf_guest *g)
{
	if (g->len <= WF_BODY)
		wf_copy_small(x->data, g->payload, g->len);
	else
		wf_copy_large(x->data, g->payload, g->len);
	x->at->copies++;
	wf_expect_told_locked(x, g);
}

#endif
