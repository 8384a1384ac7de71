/* recv.h - receives that go on. */
#ifndef WF_PORT_RECV_H
#define WF_PORT_RECV_H

#include "port/port.h"

/* A repeating receive takes what is there, each told on its own, and is then posted. */
void wf_recv_again(struct weft_req *r);
void wf_recv_resume(struct weft_req *r);        /* [callback runner] its memory is free again; its port was kept open */

/* A receive that names @src will wait: its end shall be told. -ESRCH: it has ended already. */
int wf_watch(weft_id src);

#endif
