/* expect.h - a short message read from another host, straight to the thread that waits for it.
 *
 * Who waits at a port of its own and looks at the rails meanwhile says what it expects. If it then reads that very message itself it need not put it into the mailbox first to
 * find it there. Only what nothing came before: the mailbox has no message that is not looked at, nobody is posted and nothing waits to be received. All in one thread.
 */
#ifndef WF_PORT_EXPECT_H
#define WF_PORT_EXPECT_H

#include "port/drop.h"
#include "port/native.h"

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
	size_t lent;                    /* so many bytes of data may be written to by who reads, and are kept elsewhere */
};

/* The memory, lent to who reads before it is known what comes: [the thread, no door] */
bool wf_expect_lends(struct wf_expect *x, size_t n);                    /* true: its first @n bytes */
void wf_expect_restores(struct wf_expect *x, size_t n);                 /* they are what they were */
bool wf_expect_fits(const struct wf_expect *x, const struct wf_guest *g);       /* true: @g, which came there, is what was expected; then: */
void wf_expect_came(struct wf_expect *x, const struct wf_guest *g);
void wf_expect_forget(void);                                            /* [the thread ends] what was kept */

/* [reader] Messages of so many bytes may be read so; 0: none. */
void wf_expect_likely(size_t len);
bool wf_expect_may_come(size_t room);                                   /* [any] a hint: one of them, at most @room */

bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g);    /* [the thread, no door] true: @g is what was expected, and has come */

#endif
