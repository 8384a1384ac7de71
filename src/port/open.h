/* open.h - making, opening and ending ports. */
#ifndef WF_PORT_OPEN_H
#define WF_PORT_OPEN_H

#include "port/port.h"

enum wf_make { WF_MAKE_PORT, WF_MAKE_THREAD /* of the calling thread, its own */, WF_MAKE_LIMBO };

/* A port that is open, and listed, so that others may look at it from now on: @id is its name (@context: in that context). */
int wf_port_make(weft_id id, weft_ctx context, const struct weft_proto *proto, enum wf_make as, struct weft_port **ret_port);

/* A context port that holds early messages until somebody opens it. The registry's lock is held. */
int wf_port_limbo(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port);

/* Ends a port: sends of it drain until @until, the rest is taken back; see weft_port_close. -ETIMEDOUT: some were. */
int wf_port_end(struct weft_port *p, weft_time until);

/* The page of a closed port goes back: at its end, or when the last message a probe took from it was received. */
void wf_port_finish(struct weft_port *p);

/* Ends every pending send of @p with @err, waiting for those that cannot be taken back any more: how many. */
int wf_sends_cancel(struct weft_port *p, int err);
bool wf_sends_pending(struct weft_port *p);

/* [no lock] @p is broken: each pending send of its that can be taken back ends with @err. One that cannot is not waited for, as who could end it may wait for the caller: it ends as
 * it ends, or with @err if it comes back. */
void wf_sends_break(struct weft_port *p, int err);

/* [any] The thread, process or port @id has ended: receives that name it, members that were it. @watcher: who waits for it, as port.watcher says. */
void wf_id_ended(weft_id id, uint32_t watcher);

void wf_process_ended(uint32_t process, int err);       /* [listener] another process, and all that was in it: receives that name it end with @err */
bool wf_process_named(uint32_t process);        /* [no lock] does a receive or a port wait for it, or one of it, in particular? */
void wf_ids_look(uint32_t process);             /* [listener] ids of another process, which lives: its board tells which have ended */

/* While none has members, an end concerns nobody but those who watch. */
extern _Atomic uint32_t wf_ports_with_members;

void wf_members_put(struct wf_members *m);

#endif
