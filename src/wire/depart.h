/* depart.h - what the files of departures have in common: depart.c, depart_body.c. What others call is in wire.h and trunk.h. */
#ifndef WF_WIRE_DEPART_H
#define WF_WIRE_DEPART_H

#include "port/outgoing.h"
#include "wire/wire.h"

struct wf_departure {
	struct wf_rsend s;
	struct weft_req *req;           /* under wf_user_lock */
	struct wf_trunk *trunk;
	const char *data;
	struct weft_buf *flat;          /* a copy, or a buffer that was handed over */
	size_t room;                    /* bytes it has for copies; 0: not ours to use again */
	uint16_t kind;                  /* what it is done with: as that one's, if its request is over before */
	struct wf_departure *next_free;
	unsigned char head[WF_WIRE_PROTO + WF_HEAD_ROOM];
};

struct wf_departure *wf_departure_get_locked(void);             /* [wf_user_lock] NULL: no memory */
void wf_departure_put_locked(struct wf_departure *d);           /* [wf_user_lock] with what it has */

bool wf_depart_body(struct wf_trunk *t, struct weft_port *from, uint32_t to, uint64_t tag, const void *data, size_t len);       /* [no lock] true: sent; false: nothing happened */

#endif
