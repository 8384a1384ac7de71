/* inway.h - the reading end of another process's way to a port of this one. See way.h. */
#ifndef WF_PORT_INWAY_H
#define WF_PORT_INWAY_H

#include "port/frames.h"
#include "port/way.h"

struct wf_inway {
	struct wf_reader r;             /* first: at its port it is a reader like the port's own */
	/* constant while it is in use */
	struct wf_peer *peer;
	uint32_t key, who;
	struct wf_box *box;
	weft_id id;
	uint64_t context, proto;
	/* under the door of port, or, as long as it has none, under inways_lock */
	struct weft_port *_Atomic port; /* NULL: closed or not open yet */
	bool complained, clogged;       /* clogged: it has brought too many announcements, and its box says so */
	uint32_t announced;             /* by it, and not yet received */
	uint32_t asked;                 /* clogged: how many of the receives posted have been asked for, in this round of them (seek.c) */
	/* under inways_lock */
	uint32_t state, last;           /* WF_IN_*; the position at which it ends */
	struct wf_inway *next;          /* of the same peer; or free */
};

static inline struct wf_inway *wf_inway_of(struct wf_reader *r)
{
	return (struct wf_inway *)(void *)r;
}

int wf_inway_nonsense(struct wf_inway *w);                      /* says so once; -EBADMSG */
void wf_inway_grown(struct wf_inway *w, const unsigned char *body);

/* [in_lock of the peer] Frames from the other end. */
void wf_inway_ring(struct wf_peer *peer, const struct wf_f_ring *f);
void wf_inway_shut(struct wf_peer *peer, const struct wf_f_way *f);
void wf_way_attached(struct wf_peer *peer, const struct wf_f_attached *f);
void wf_way_told(struct wf_peer *peer, uint32_t what, const struct wf_f_way *f);

/* [no lock] @p of that context has opened: rings that wait for it. */
void wf_inways_opened(struct weft_port *p);
/* [no lock] @id has ended, and nobody finds it any more: rings that wait for a port of its are read to their end, and what is in them is lost. */
void wf_inways_ended(weft_id id);
/* [no lock] @p is closed, nothing enters: its rings are read to their end, and what is in them is lost. */
void wf_inways_closed(struct weft_port *p);
/* [listener] A dead process's rings: everything published is taken, then they are gone. */
void wf_inways_dead(struct wf_peer *peer);
int wf_inways_step(void);               /* [listener] closed ones whose end was not reached yet: how many are left */

#endif
