/* push.h - the sending end of what goes to another process and takes more than a cell: announced, and when taken handed over, copied bit by bit, or
 * read by the receiver where it lies.
 *
 * announce.c begins a push, push.c brings it to its end.
 *
 * Locks: wf_user_lock covers requests, backlogs, the list of pushes, tickets and pipes that are free. A push's own `busy` is held, outside of it, by
 * whoever copies into its pipe; it is only ever tried, so nobody waits for a copy.
 */
#ifndef WF_PORT_PUSH_H
#define WF_PORT_PUSH_H

#include "port/pipe.h"
#include "port/port.h"
#include "port/ticket.h"

struct outgoing;
struct wf_way;

/* [any] The announced way for @r, which describes the message: announced, or in the backlog. 0; -ESRCH, -ENOMEM: nothing happened. */
int wf_push_start(struct outgoing *o, struct weft_req *r);

/* [wf_user_lock] The first of @w's backlog: written (and ended, unless announced). -EAGAIN: no room. -ESRCH: shut. 0. */
int wf_push_write_locked(struct wf_way *w, struct weft_req *r);

/* [wf_user_lock] The other process asks for @asked, and @r of @w's backlog is such: shown to it, if there is room and it is not already. False: it was to be taken
 * back, and has ended instead. */
bool wf_push_offer_locked(struct wf_way *w, struct weft_req *r, const void *asked);

/* [wf_user_lock] @r, in a backlog or refused, ends with @err: its buffer is the sender's again. */
void wf_push_end_locked(struct weft_req *r, int err);

/* [wf_user_lock] @r, not announced, leaves its way's backlog and ends with @err. */
void wf_push_leave_locked(struct weft_req *r, int err);

/* [wf_user_lock] As wf_cancel_locked. */
int wf_push_cancel_locked(struct weft_req *r, int err);

/* [wf_user_lock] Who is to be woken when @r can go on: a face's number + 1, WF_SLEEPS_LISTENER, or 0: somebody looks. */
void wf_push_name_locked(struct weft_req *r, uint32_t name);

/* [any, no lock] Does what can be done for @r now. */
void wf_push_step(struct weft_req *r);
int wf_pushes_step(void);               /* [listener] for all: how many moved */
bool wf_pushes_active(void);
void wf_pushes_insist(void);            /* [listener, now and then] what the other ends were told, once more */
uint32_t wf_pushes_silent(void);        /* how many were announced that nobody has taken, and the other process not told to look; a hint */

/* [listener] Pushes to a dead process end. */
void wf_pushes_dead(uint32_t process);

/* The rest is between announce.c and push.c. */

struct wf_push {
	struct wf_node link;
	struct wf_lock busy;
	/* under wf_user_lock */
	struct weft_req *req;           /* NULL: over, what it left in the pipe is being read */
	struct wf_way *way;             /* whose backlog it waits in, if not announced */
	uint32_t name;                  /* who is to be woken */
	struct wf_peer *peer;
	struct wf_ticket *ticket;       /* NULL: not announced yet */
	uint32_t serial;
	bool early;                     /* counts among those not taken */
	struct wf_push *next_free;
	/* under busy, once announced */
	struct wf_pipe *pipe;
	uint32_t base;                  /* the number of its first chunk there */
	uint32_t said;                  /* what the ticket's ready says, or should */
	struct wf_flight flight;
	struct wf_memory_place lies;    /* where others can read it; segment 0: nowhere. Constant */
	size_t len, written;
	struct wf_mem mem;
	struct wf_walk walk;
	bool sync, buffer;
	_Atomic bool offered;           /* under wf_user_lock: still in its way's backlog, and shown to who asked (seek.h) */
	bool handed;                    /* its buffer is with who took the message */
	bool done;                      /* its request has ended well, as its memory is free: nobody may have received it yet */
	weft_id src, to;                /* from whom, to whom */
	uint64_t context;
	bool nudged;                    /* the other's listener was told to look */
	weft_time since;                /* announced */
};

/* [wf_user_lock] Memory for one, never given back: a stale pointer may be looked at. NULL: none. */
struct wf_push *wf_push_new_locked(void);
void wf_push_put_locked(struct wf_push *u);

void wf_push_announced_locked(struct wf_push *u);       /* [wf_user_lock] about to be published: it is to be looked after */
void wf_push_unticket_locked(struct wf_push *u);        /* [wf_user_lock] its pipe and its ticket are free */
bool wf_push_back_locked(struct wf_push *u);            /* [wf_user_lock] Its offer was not taken: it can be offered anew. False: not that we know */
bool wf_push_go(struct wf_push *u, bool *ret_moved);    /* [busy, which goes] What can be done now. True: it is over */
/* [busy, which goes] It was announced a moment ago: its bytes go before anything is looked at. What came of it meanwhile is for the next step. */
void wf_push_begin(struct wf_push *u);
void wf_pushes_reap(void);                              /* [no lock] what was answered and nobody waits for: tickets and pipes to be used again */

#endif
