/* seek.h - a receiver that has too many announcements of one process asks it for what it wants.
 *
 * A process that brings announcements nobody receives is told to keep the rest (box.clogged): they wait in its backlog, in its memory. Whoever receives
 * at such a port then sends SEEK with what it wants; the other looks through its backlog in order and offers the first that matches; an offer that
 * nobody takes at once goes back to its old place, so order is kept. Nothing is remembered there: as long as a ring is clogged the listener here
 * asks again now and then for what is posted. So a million sends nobody wants neither grow the receiver nor hide a later one that is wanted.
 */
#ifndef WF_PORT_SEEK_H
#define WF_PORT_SEEK_H

#include "port/inway.h"

void wf_seek_clog_locked(struct weft_port *p, struct wf_inway *w);
void wf_seek_unclog_locked(struct weft_port *p, struct wf_inway *w);

/* [inside @p] A receive was posted that found nothing. */
void wf_seek_locked(struct weft_port *p, const void *want);
void wf_seek_again(void);               /* [listener] for all that is posted where something is clogged */
bool wf_seeks(void);

/* [in_lock] The other end: what is asked for, offered if there is such. */
void wf_way_seek(struct wf_peer *peer, const struct wf_f_seek *f);
struct weft_req *wf_seek(struct wf_way *w, const void *want);    /* [wf_user_lock] the first in @w's backlog that matches, be it on offer already; NULL */

#endif
