/* expect.h - a short message read from another host, straight to the thread that waits for it.
 *
 * Who waits at a port of its own and looks at the rails meanwhile says what it expects. If it then reads that very message itself it need not put it into the mailbox first to
 * find it there. Only what nothing came before: the mailbox has no message that is not looked at, nobody is posted and nothing waits to be received. All in one thread.
 */
#ifndef WF_PORT_EXPECT_H
#define WF_PORT_EXPECT_H

#include "port/drop.h"
#include "port/native.h"

#define WF_EXPECT_MOST 4096u            /* bytes of the messages that come with their heads (peer/remote.h): larger ones are to land, for which a receive has to be posted */

struct wf_expect {
	struct weft_port *at;           /* native, and the thread's own */
	const struct wf_head *want;
	void *data;
	size_t room;
	struct weft_status *st;
	bool came;                      /* it is in data, and st says what */
};

bool wf_expect_meets(struct wf_expect *x, const struct wf_guest *g);    /* [the thread, no door] true: @g is what was expected, and has come */

#endif
