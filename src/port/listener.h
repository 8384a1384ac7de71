/* listener.h - weft's own thread: it attends ports whose receives tell their end by callback or queue
 * while nobody waits there, runs callbacks, and ends what has expired. Started on first need. */
#ifndef WF_PORT_LISTENER_H
#define WF_PORT_LISTENER_H

#include "port/port.h"

extern struct wf_parker wf_listener_parker;     /* named as sleeper by the ports it attends */

int wf_listener_start(void);            /* 0 or why there is no thread */
/* [one thread, before it starts] There are other processes: it also wakes by @event_fd, and calls @notices when @notices_fd is readable. */
int wf_listener_far(int event_fd, int notices_fd, void (*notices)(void));
void wf_listener_unnoticed(void);        /* [listener] no notices will come any more */
void wf_listener_stop(void);            /* [weft_fini] joins it */
void wf_listener_wake(void);
void wf_listener_ring(struct weft_port *p);     /* [any] something arrived at @p */

int wf_timer_add(struct weft_req *r);           /* r->at and r->expires are set; -ENOMEM */
void wf_timer_remove(struct weft_req *r);       /* at's lock is held */

/* [any] Wakes @sleeper, who was named in @p's mailbox. */
void wf_bell(struct weft_port *p, struct wf_parker *sleeper);

/* [any] There is no memory for what is in a mailbox, where it stays: the ports that it attends are looked at again. */
void wf_listener_starved(void);

/* Drains the ports that rang: how many messages. Any waiting thread may. */
int wf_listener_attend(void);

#endif
