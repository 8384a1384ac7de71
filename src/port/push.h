/* push.h - the sending end of what goes to another process and takes more than a cell: announced, handed over when taken, or copied bit by bit. */
#ifndef WF_PORT_PUSH_H
#define WF_PORT_PUSH_H

#include "port/port.h"
#include "port/ticket.h"

struct outgoing;
struct wf_way;

/* [any] Writes @o at once if it can go eagerly: 0; -EAGAIN: full; -ENOBUFS: not this way (announce it); -ESRCH; -EINVAL: a layout failed. A buffer
 * of @o has left with 0. */
int wf_far_eager(struct outgoing *o, uint64_t allow);

/* [any] The announced way for @r, which describes the message: announced, or in the backlog. 0; -ESRCH, -ENOMEM: nothing happened. */
int wf_push_start(struct outgoing *o, struct weft_req *r);

/* [wf_user_lock] The first of @w's backlog: written (and ended, unless announced). -EAGAIN: no room. -ESRCH: shut. 0. */
int wf_push_write_locked(struct wf_way *w, struct weft_req *r);

/* [wf_user_lock] The other process asks for something like @r of @w's backlog: shown to it. False: no room. */
bool wf_push_offer_locked(struct wf_way *w, struct weft_req *r);

/* [wf_user_lock] @r, in a backlog or refused, ends with @err: its buffer is the sender's again. */
void wf_push_end_locked(struct weft_req *r, int err);

/* [wf_user_lock] As wf_cancel_locked. */
int wf_push_cancel_locked(struct weft_req *r, int err);

/* [wf_user_lock] Who is to be woken when @r can go on: a face's number + 1, WF_SLEEPS_LISTENER, or 0: somebody looks. */
void wf_push_name_locked(struct weft_req *r, uint32_t name);

/* [any, no lock] Does what can be done for @r now. */
void wf_push_step(struct weft_req *r);
int wf_pushes_step(void);               /* [listener] for all: how many moved */
bool wf_pushes_active(void);
bool wf_pushes_silent(void);            /* some were announced that nobody has taken, and the other process not told to look */

/* [listener] Pushes to a dead process end. */
void wf_pushes_dead(uint32_t process);

#endif
