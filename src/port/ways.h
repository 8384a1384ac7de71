/* ways.h - all ways of this process, between way.c (made and found), backlog.c (what waits to be written) and wayend.c (their end).
 * Others use way.h. */
#ifndef WF_PORT_WAYS_H
#define WF_PORT_WAYS_H

#include "port/way.h"

extern struct wf_lock wf_ways_lock;
extern struct wf_way *_Atomic wf_ways_by_key[WF_WAYS_MOST];    /* set under wf_ways_lock, then constant; none is behind the first that is NULL */

/* [any] Before the tail is written by anybody but its solo user: S1. */
void wf_way_share(struct wf_way *w);

/* Of incarnation @who, by the tail @t: why it is no more; 0: it is. One that was renumbered and not used anew still knows. */
int wf_way_ended(struct wf_way *w, uint16_t who, uint64_t t);

/* The way a frame of @peer means, or NULL: no such, or no longer. */
struct wf_way *wf_way_of(struct wf_peer *peer, uint32_t key, uint32_t who);

void wf_way_unlist_locked(struct wf_way *w);    /* [wf_ways_lock] nobody finds it any more */
void wf_way_put_locked(struct wf_way *w);       /* [wf_ways_lock, unlisted] its buffers go back or wait for the next, and it may be made anew */

/* What was said of a process reaches who makes a way to it from now on; who was first has made it. */
static inline void wf_ways_pass_makers(void)
{
	wf_lock(&wf_ways_lock);
	wf_unlock(&wf_ways_lock);
}

#endif
