/* drain.h - from the mailbox to the receives, or into the unexpected queue. */
#ifndef WF_PORT_DRAIN_H
#define WF_PORT_DRAIN_H

#include "port/port.h"
#include "port/self.h"

/* A receive's side of a delivery: posted (of a request) or waiting in the call itself. */
struct wf_target {
	const struct wf_mem *mem;
	uint32_t flags;                         /* of the op */
	void *head_out;
	struct weft_status *st;
};

/* Takes everything the mailbox has to the matcher: how many messages. Copies of announced memory are
 * left in @work, to be done by wf_work_do when the lock is free. */
int wf_drain_locked(struct weft_port *p, struct wf_work *work);

/* The same of somebody who has ended: all he sent is out of the ring then, also what he published behind a cell that another thread has claimed and not
 * yet published, for which this waits. */
void wf_drain_ended_locked(struct weft_port *p, struct wf_work *work);

/* wf_drain_locked for who puts a message behind what is there, and not into the mailbox: nothing of what was claimed there before stays, or it would be overtaken. */
void wf_drain_claimed_locked(struct weft_port *p, struct wf_work *work);

/* One message that was read. False: it must stay where it is (no memory). */
struct wf_incoming;
bool wf_arrive_locked(struct weft_port *p, struct wf_incoming *in, struct wf_work *work);

/* [inside] The posted receive that gets the message whose first bytes @in tells of, if those can be put straight into its memory: its own no more, but of who calls, who ends it
 * (and counts copying down). NULL: none, or it is to be had by wf_arrive_locked when all is there. */
struct weft_req *wf_claim_want_locked(struct weft_port *p, const struct wf_incoming *in);

/* tight has changed: the face says so. */
void wf_gate_locked(struct weft_port *p);

/* The same for whoever does not hold the lock: takes it if there is something. [any] */
int wf_port_progress(struct weft_port *p);

/* [any] The same on behalf of a send that waits there: only if a receive is posted, as it may be the one. */
void wf_port_help(struct weft_port *p);

/* [any, no lock] Does what wf_drain_locked left. */
void wf_work_do(struct weft_port *p, struct wf_work *work);

/* The earliest message for @want, taken at once: 1; 0: none yet; -EMSGSIZE (it stays unless cut off), -ENOMEM,
 * -EINVAL. If *ret_send is set (1), the message is that announced send: WF_COPYING, to be copied from when the lock
 * is free, then wf_copied. */
int wf_take_locked(struct weft_port *p, const void *want, const struct wf_target *t, struct wf_work *work,
		   struct weft_req **ret_send);

/* The same of a message that its sender is writing (train.h), if it is the next and @want is for it: @f's, to be fetched by wf_far_ride when the lock is free. */
struct wf_far;
bool wf_board_locked(struct weft_port *p, const void *want, const struct wf_target *t, struct wf_far *f);

/* A message taken out of matching (matched probe), or an arrival, goes to @t. As wf_take_locked. */
int wf_take_arrival_locked(struct weft_port *p, struct wf_arrival *a, const struct wf_target *t, struct weft_req **ret_send);

/* [no lock] Copies @send's memory to @t and ends it: 0, -EMSGSIZE (cut off), -EINVAL (a layout failed). */
int wf_copy_send(struct weft_port *p, struct weft_req *send, const struct wf_target *t);

/* Drops an arrival that nobody will receive: its sender gets -ECONNRESET (false), or it was done there: lost. */
bool wf_drop_arrival_locked(struct weft_port *p, struct wf_arrival *a);

/* What @a says of itself. */
void wf_status_of(const struct weft_port *p, const struct wf_arrival *a, struct weft_status *ret_st);

/* The record or request behind an arrival leaves the unexpected queue's account. */
void wf_uncharge_locked(struct weft_port *p, size_t n);

/* The matcher of @p, native or foreign. */
static inline struct weft_match_entry *wf_find_want(struct weft_port *p, const void *head)
{
	return wf_likely(!p->proto) ? wf_native_match_find_want(&p->native, head) : p->proto->find_want(p->match, head);
}

static inline struct weft_match_entry *wf_look(struct weft_port *p, const void *want)
{
	return wf_likely(!p->proto) ? wf_native_match_look(&p->native, want) : p->proto->look(p->match, want);
}

static inline void wf_add_want(struct weft_port *p, const void *want, struct weft_match_entry *e)
{
	if (wf_likely(!p->proto))
		wf_native_match_add_want(&p->native, want, e);
	else
		p->proto->add_want(p->match, want, e);
}

static inline void wf_add_arrival(struct weft_port *p, const void *head, struct weft_match_entry *e)
{
	if (wf_likely(!p->proto))
		wf_native_match_add_arrival(&p->native, head, e);
	else
		p->proto->add_arrival(p->match, head, e);
}

static inline bool wf_unmatch(struct weft_port *p, struct weft_match_entry *e)
{
	return wf_likely(!p->proto) ? wf_native_match_remove(&p->native, e) : p->proto->remove(p->match, e);
}

static inline size_t wf_wants(const struct weft_port *p)
{
	return wf_likely(!p->proto) ? p->native.wants : p->proto->count(p->match, WEFT_MATCH_WANTS);
}

static inline size_t wf_arrivals(const struct weft_port *p)
{
	return wf_likely(!p->proto) ? p->native.arrivals : p->proto->count(p->match, WEFT_MATCH_ARRIVALS);
}

static inline struct weft_match_entry *wf_first(struct weft_port *p, int side)
{
	return wf_likely(!p->proto) ? wf_native_match_first(&p->native, side) : p->proto->first(p->match, side);
}

static inline struct weft_match_entry *wf_next(struct weft_port *p, struct weft_match_entry *e)
{
	return wf_likely(!p->proto) ? wf_native_match_next(&p->native, e) : p->proto->next(p->match, e);
}

#endif
