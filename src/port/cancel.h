/* cancel.h - taking back what is under way. */
#ifndef WF_PORT_CANCEL_H
#define WF_PORT_CANCEL_H

#include "port/port.h"

/* Ends @r with @err if that can still be: 0: it has ended; 1: marked, it ends as soon as its announcement comes out of the
 * ring (or its callback returns); -EALREADY: too late, it ends as it ends. at's lock is held. */
int wf_cancel_locked(struct weft_req *r, int err);

#endif
