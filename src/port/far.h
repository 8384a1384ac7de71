/* far.h - the receiving end of what another process has announced.
 *
 * An announcement becomes a send request of this process that stands for the far one: it waits among the arrivals, is probed, matched and dropped as any
 * other. What differs: matching has to claim it (its sender may take it back), its bytes are fetched through the ticket's pipe or out of its sender's
 * memory, and its end is written into the ticket (far.c). Fetching goes on step by step in whatever thread waits for it, and in the listener when none does (fetch.c).
 *
 * Locks: the door of the port covers the request that stands for the far one, as any other. wf_user_lock covers the list of those being fetched, and
 * which receive each is for. `busy` is held by whoever copies, outside of both, and is only tried.
 */
#ifndef WF_PORT_FAR_H
#define WF_PORT_FAR_H

#include "port/port.h"
#include "port/ticket.h"

struct wf_incoming;
struct wf_target;
struct wf_reader;

/* The rest of wf_cell_read for a cell of another process: @body behind the head has @room bytes. */
int wf_cell_read_far(struct wf_reader *rd, const unsigned char *body, size_t room, struct wf_incoming *in);

/* A request that stands for the announcement; NULL: no memory. */
struct weft_req *wf_far_send(struct weft_port *p, struct wf_incoming *in);     /* @p: to which, inside */

/* Nobody is to have it, which its sender is told: that needs no memory. */
void wf_far_turn_away(const struct wf_incoming *in, int err);

bool wf_far_claim(struct weft_req *send);
bool wf_far_offered(struct weft_req *send);              /* [door] not taken back; a hint. True of one of this process */
void wf_far_unclaim(struct weft_req *send);

/* Before a send is matched: false: its sender has taken it back; then it is to be forgotten. Always true inside a process. */
static inline bool wf_claim_send_locked(struct weft_req *send)
{
	return wf_likely(!(send->a.flags & WF_MSG_TICKET)) || wf_far_claim(send);
}

static inline void wf_unclaim_send_locked(struct weft_req *send)
{
	if (wf_unlikely(send->a.flags & WF_MSG_TICKET))
		wf_far_unclaim(send);
}

void wf_far_forget(struct weft_req *send);              /* nobody has it in a queue any more, and nobody is answered */
void wf_far_answer(struct weft_req *send, int err);     /* its end, by wf_req_end_locked: told to its sender; it is gone */

/* [no lock] Fetches a claimed one, waiting as long as its sender takes: as wf_copy_memory; -ECONNRESET: the sender died. */
int wf_far_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *t);

/* [inside] What @in tells of, sent as train.h says, is @f's from now on, for a thread that fetches it at once: no request stands for it. False: it is not such, or nonsense. */
bool wf_far_board_locked(struct weft_port *p, const struct wf_incoming *in, struct wf_far *f);
int wf_far_ride(struct weft_port *p, struct wf_far *f, const struct wf_target *t);     /* [no lock] as wf_far_pull */

/* [no lock] Fetches r->partner for the posted @r, which ends when all is there. */
void wf_far_start(struct weft_port *p, struct weft_req *r);
void wf_far_step(struct weft_req *r);                   /* [any, no lock] what can be done for receive @r now */
void wf_far_name_locked(struct weft_req *r, uint32_t name);     /* [wf_user_lock] as wf_push_name_locked */
int wf_fars_step(void);                                 /* [any, no lock] for all: how many moved */
bool wf_fars_active(void);
void wf_fars_insist(void);                              /* [listener, now and then] as wf_pushes_insist */
bool wf_fars_pulling(uint32_t process);                 /* does a thread fetch for itself something of that process? */

/* [listener] @process is dead: fetching what it has not written ends with -ECONNRESET. */
void wf_fars_dead(uint32_t process);
bool wf_far_whole(struct weft_req *send);               /* an arrival of a dead process: is everything there? */

void wf_fars_abort(struct weft_port *p);                 /* [no lock] @p closes: what is being fetched for it is not awaited */

bool wf_fars_of(uint32_t process);                      /* is there anything announced by that process that stands here? */

void wf_far_missed(weft_id src);                        /* READY found no receive: @src, of another process, counts it */

/* The rest is between far.c and fetch.c. */

struct wf_far {
	struct wf_node link;            /* under wf_user_lock: being fetched */
	struct wf_far *next_free;       /* under wf_user_lock */
	struct wf_lock busy;
	/* set when it is made, then constant */
	struct weft_req *send;
	struct wf_peer *peer;
	struct wf_ticket *ticket;       /* NULL: none, or nonsense */
	struct weft_port *at;           /* that counts it */
	struct wf_inway *by;
	bool offer;                     /* asked for; if nobody takes it at once it stays with its sender */
	struct wf_pipe_head *written;   /* it has no ticket but this pipe, and its sender is done with it (train.h); else NULL */
	uint32_t serial;
	/* set when it is taken */
	struct weft_port *port;
	struct weft_req *into;          /* under wf_user_lock: the receive; NULL: of a thread that waits here, or over */
	struct wf_mem mem;
	struct weft_buf *buf;           /* WEFT_ALLOC's */
	size_t len, room;
	uint32_t flags;                 /* of the receive */
	struct weft_status *st;
	/* under busy */
	struct wf_walk walk;
	size_t got;
	struct wf_pipe_head *pipe;
	const char *data;
	uint32_t base;
	struct wf_pipe_place said;      /* as announced; segment 0: the ticket will say */
	bool lies;                      /* it is read where it lies: in its sender's memory, there: */
	struct wf_memory_place place;
	bool piped;                     /* that cannot be mapped: the sender was asked to send it through a pipe */
	bool waits;                     /* its sender is to be woken: constant */
	bool over;
	int err;
};

void wf_far_emptied(struct wf_far *f);                                  /* of one without a ticket: its pipe is its sender's again */
void wf_far_wake(struct wf_far *f);                                     /* its sender, if that sleeps for the ticket */
bool wf_far_pipe(struct wf_far *f, struct wf_pipe_place *ret_at);       /* where the pipe is, as far as the sender has said */
uint64_t wf_far_taken(const struct wf_far *f);                          /* what the ticket's word says while we have it */

#endif
