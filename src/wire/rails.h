/* rails.h - the rails of this process: one for each adapter that the job or the knob names, numbered in that order. Rail i of one process calls rail i of another: so all of a job name the same networks in
 * the same order. One that this host does not have is left out, and its number stays: the others call it in vain, and use those that work.
 *
 *     rails_open.c    which, and how each is opened
 *     rails.c         who looks at them
 */
#ifndef WF_WIRE_RAILS_H
#define WF_WIRE_RAILS_H

#include "net/rail.h"
#include "peer/remote.h"
#include "wire/wire.h"

struct wf_rails {
	uint32_t n;                             /* numbers that there are: 0 .. n - 1 */
	struct wf_rail *at[WF_RAILS];           /* NULL: not of this host */
	struct wf_rail *first;                  /* the first there is */
	int fd;                                 /* to sleep on: the only one's, or: */
	int set;                                /* an epoll set of all; -1: there is one rail */
	bool epoll;                             /* @fd is an epoll set */
	bool uncancelled;                       /* WEFT_DRIVER_UNCANCELLED: all of them */
};

/* [one thread] *@ret_at: where this process is (places.h). 0, or why not, and nothing is left behind. */
int wf_rails_open(const struct wf_wire_self *self, struct wf_rails *ret_rails, char *ret_at, size_t n);
void wf_rails_close(struct wf_rails *rails);

#endif
