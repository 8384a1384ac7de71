/* seek.h - a receiver that has too many announcements of one process asks it for what it wants.
 *
 * A process that brings announcements nobody receives is told to keep the rest (box.clogged): they wait in its backlog, in its memory. Whoever receives
 * at such a port then sends SEEK with what it wants; the other looks through its backlog in order and offers the first that matches. The offer says
 * what was asked for, by name. It is taken at once or goes back to its old place. Nothing is remembered there: as long as a ring is clogged the listener here
 * asks again now and then for what is posted. So a million sends nobody wants neither grow the receiver nor hide a later one that is wanted.
 *
 * Order   When an offer comes the receive that asked may be gone, and others may be posted. It is taken by R if and only if R is the earliest posted
 *         that fits the message, and wants exactly what was asked for. The first is what holds for every message. The second keeps messages of one
 *         sender in order: M was offered as the first of the backlog that fits what was asked for, so none that waits before it fits R.
 *             Before M in the backlog: what is on offer stays in its place until it was taken, and may come back; so the search stops at one that
 *             fits and is on offer, and nothing behind it is offered for the same. Nothing is put into the backlog before M but what is more
 *             urgent, and was sent later.
 *             Before the backlog: what is in the ring already is read before the offer.
 *         A receive R that wants something else may fit a message before M that did not fit what was asked for: M goes back, and R is asked for in
 *         its stead. Two receives that want the same are as good as one: so one that is taken back and posted again, over and over, gets its message.
 */
#ifndef WF_PORT_SEEK_H
#define WF_PORT_SEEK_H

#include "port/inway.h"

void wf_seek_clog_locked(struct weft_port *p, struct wf_inway *w);
void wf_seek_unclog_locked(struct weft_port *p, struct wf_inway *w);

/* [inside @p] A receive was posted that found nothing. */
void wf_seek_locked(struct weft_port *p, const void *want);
/* [inside @p] One that fits what @w's process offered for another. */
void wf_seek_instead_locked(struct wf_inway *w, const void *want);
uint64_t wf_seek_name(const struct weft_port *p, const void *want);    /* the same for those that do, not 0; of others another, but for one in 2^63 */
void wf_seek_again(void);               /* [listener] for all that is posted where something is clogged */
bool wf_seeks(void);

/* [in_lock] The other end: what is asked for, offered if there is such. */
void wf_way_seek(struct wf_peer *peer, const struct wf_f_seek *f);
struct weft_req *wf_seek(struct wf_way *w, const void *want);    /* [wf_user_lock] the first in @w's backlog that matches, be it on offer already; NULL */

#endif
