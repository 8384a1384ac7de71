/* arrive.h - between the files about what comes: arrive.c, arrive_land.c, arrive_kept.c. */
#ifndef WF_WIRE_ARRIVE_H
#define WF_WIRE_ARRIVE_H

#include "port/deliver.h"
#include "wire/wire.h"

/* Stands for a message that was announced. */
struct wf_standin {
	struct wf_held held;
	struct wf_trunk *trunk;
	struct weft_req *send;
	uint64_t offer;                 /* the name of what was asked for; 0: it is none */
	size_t charged;                 /* to the budget, until it is answered */
	bool holds;                     /* under trunk.lock: in the remote's table */
};

/* arrive.c */
struct weft_port *wf_arrive_enter(const struct wf_rmsg *m);     /* the port that @m is for, entered; NULL: none */
bool wf_arrive_facts(const struct weft_port *p, uint32_t process, const struct wf_rmsg *m, struct wf_incoming *in);    /* what matching sees of @m at @p. False: the two ports speak different protocols */
bool wf_arrive_deliver(struct weft_port *p, struct wf_incoming *in);    /* @in, whose payload is here, to @p, which is left. False: no memory */
/* [inside @p, which is left] A request that stands for @m, to whoever wants it. Its payload is @buf, or in.payload, or stays with its sender. */
void wf_arrive_stand(struct wf_trunk *t, struct weft_port *p, struct wf_incoming *in, const struct wf_rmsg *m, struct weft_buf *buf);
void wf_standin_release(struct wf_standin *s);                  /* [trunk.lock] nobody finds it there any more */
void wf_arrive_say(struct wf_trunk *t, uint64_t send, int err); /* ends a send of the other end */
void wf_arrive_refuse(struct wf_trunk *t, const struct wf_rmsg *m, int err);
void wf_arrive_credit(struct wf_trunk *t, uint64_t cost);

/* arrive_land.c */
void wf_arrive_body(struct wf_trunk *t, const struct wf_act *a, struct wf_line *line);          /* a message whose payload follows its frame */
void wf_arrive_landed(struct wf_trunk *t, struct wf_landing *l, int err);                       /* WF_ACT_LANDED */
void wf_arrive_closed(struct wf_landing *l);                                                    /* WF_ACT_LAND_CLOSED */

/* arrive_kept.c: the other end keeps messages for a port (@more), or no longer: what is posted there is asked for, and so will be what is posted later. */
void wf_arrive_backlog(struct wf_trunk *t, const struct wf_act *a, bool more);

#endif
