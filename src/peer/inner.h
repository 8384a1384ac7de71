/* inner.h - what the files of this room ask of one another. All of it runs under the remote's lock. */
#ifndef WF_PEER_INNER_H
#define WF_PEER_INNER_H

#include <errno.h>

#include "peer/remote.h"

#define WF_ACK_BYTES (32u << 10)        /* of a stream that came, at the latest, are acknowledged */
#define WF_BODIES_MOST (128u << 10)     /* of eager messages' payload not acknowledged: their sender keeps it */
#define WF_SPARE 4096u                  /* of a ring, for frames that must not wait behind messages */

/* A destination with announcements out or a backlog; it exists no longer than that. */
struct wf_rdest {
	struct wf_rdest *next;          /* in its bucket, or free */
	struct wf_node node;            /* in backlogs while count > 0 */
	struct wf_node queue[WF_CLASSES];
	struct wf_rsend *offered;       /* the one shown to the receiver, in its place of the queue */
	uint64_t context;
	uint32_t to;
	uint32_t count, outstanding;    /* in the queues; announced and not answered */
	bool sought;                    /* the receiver looked in vain: tell it of the next */
	bool clogged;                   /* the receiver has enough of it: everything is announced */
};

/* Chunks of one send. */
struct wf_bulk {
	struct wf_bulk *next;           /* free */
	uint64_t cut;                   /* all before was given to a lane, but for what is again to go: */
	struct wf_span again[WF_CHUNKS_OUT + WF_LANES];
	uint32_t nagain, nout;          /* together at most WF_CHUNKS_OUT, but for what the receiver asks for */
};

struct wf_flying {
	struct wf_rsend *send;          /* NULL: over meanwhile */
	struct wf_span span;
	uint64_t end;                   /* the lane's count behind it */
	uint64_t acked;                 /* the lane's acknowledged count when it left, */
	weft_time acked_at;             /* ... and since when it was that */
	weft_time at;
};

static inline uint64_t wf_bit(unsigned i)
{
	return UINT64_C(1) << i;
}

/* Why it is over, or is about to be: nothing more is begun. 0: it goes on. */
static inline int wf_ends(const struct wf_remote *r)
{
	return r->err ? r->err : r->broken;
}

static inline void wf_arm(struct wf_remote *r, weft_time t)
{
	if (t < r->wake)
		r->wake = t;
}

static inline bool wf_busy(const struct wf_remote *r)
{
	return wf_likely(r->unacked != 0) || r->live || r->cares || !wf_list_empty(&r->landings) || r->closing;
}

/* Something is about to be expected of the other end, from now on. */
static inline void wf_expect(struct wf_remote *r)
{
	if (!wf_busy(r))
		r->busy_since = 0;      /* by wf_remote_acts: not every call knows the time */
}

/* numbers.c */
int wf_numbers_grow(struct wf_numbers *t);
void *wf_numbers_find(const struct wf_numbers *t, uint64_t number);

/* 0, -ENOMEM */
static inline int wf_numbers_add(struct wf_numbers *t, void *what, uint64_t *ret_number)
{
	uint32_t i;

	if (wf_unlikely(t->used == t->size) && wf_numbers_grow(t) < 0)
		return -ENOMEM;
	i = t->free;
	t->free = t->slot[i].next;
	t->slot[i].what = what;
	t->used++;
	*ret_number = (uint64_t)t->slot[i].gen << 32 | i;
	return 0;
}

static inline void wf_numbers_del(struct wf_numbers *t, uint64_t number)
{
	struct wf_number *n = &t->slot[(uint32_t)number];

	n->what = NULL;
	if (wf_unlikely(!++n->gen))
		n->gen = 1;
	n->next = t->free;
	t->free = (uint32_t)number;
	t->used--;
}
void wf_numbers_fini(struct wf_numbers *t);

/* stream.c */
unsigned wf_stream_of(const struct wf_rsend *s);
unsigned wf_stream_home(const struct wf_remote *r, unsigned stream);            /* slot */
struct wf_out *wf_out_get(struct wf_remote *r, unsigned stream);                /* NULL: no memory */
void wf_out_appended(struct wf_remote *r, struct wf_out *out, size_t n);        /* @n padded bytes were put at the tail */
void wf_out_move(struct wf_remote *r, struct wf_out *out, struct wf_lane *lane);
int wf_out_acked(struct wf_remote *r, struct wf_out *out, uint64_t next);       /* 0 or -EPROTO */
int wf_out_resume(struct wf_remote *r, struct wf_out *out, uint64_t next);
void wf_streams_place(struct wf_remote *r);
void wf_control(struct wf_remote *r, uint8_t type, uint32_t a, uint64_t b);     /* a frame of 16 bytes on stream 0 */
void wf_control_put(struct wf_remote *r, const unsigned char *frame, size_t len);
#define WF_CONTROL_HELD (WEFT_MS / 4)                                                   /* as chunks are acknowledged at the latest: no further timer */
bool wf_control_may_wait(const struct wf_remote *r);                                    /* the stream rides on a lane of its own */
void wf_control_later(struct wf_remote *r, const unsigned char *frame, size_t len);     /* [it may wait] as wf_control_put, with whatever leaves there next, or WF_CONTROL_HELD from now */

/* fill.c */
/* All that @lane owes is in the record that leaves. */
static inline void wf_acks_put(struct wf_lane *lane)
{
	lane->chunk_told = lane->chunk_got;
	lane->chunks_untold = 0;
	lane->resumes = lane->acks = 0;
	lane->ack_now = false;
	lane->ack_at = 0;
	lane->bodies = 0;
}
unsigned char *wf_put_acks(struct wf_remote *r, struct wf_lane *lane, unsigned char *to);      /* all that @lane owes; where it ends */

/* lane.c */
void wf_lane_wake(struct wf_remote *r, struct wf_lane *lane);
void wf_lane_drop(struct wf_remote *r, struct wf_lane *lane);
void wf_lane_expect(struct wf_remote *r, struct wf_lane *lane);                 /* an answer, from now on */
void wf_lane_moved(struct wf_remote *r, struct wf_lane *lane);                  /* one came */
void wf_lane_probe(struct wf_remote *r, struct wf_lane *lane);                  /* a PING, unless one is under way: what answers it takes along what is to be acknowledged */
void wf_lane_home(struct wf_remote *r, struct wf_lane *lane);                   /* it is good again */
void wf_lane_speaks(struct wf_remote *r, struct wf_lane *lane, weft_time now);  /* it was suspected, and something came by it */
void wf_lanes_run(struct wf_remote *r);
bool wf_lane_good(const struct wf_lane *lane);

/* send.c */
int wf_send_launch(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s, struct wf_rdest *d);
void wf_send_retry(struct wf_remote *r, struct wf_out *out);
void wf_send_over(struct wf_remote *r, struct wf_rsend *s, int err);
void wf_send_check(struct wf_remote *r, struct wf_rsend *s);                    /* EAGER: over if all is there */
void wf_send_unpin(struct wf_remote *r, struct wf_rsend *s);
void wf_sends_fail(struct wf_remote *r, int err);
int wf_send_ended(struct wf_remote *r, uint64_t number, int err);
int wf_send_done(struct wf_remote *r, uint64_t number);                         /* likewise, of one that was announced */
void wf_send_late(struct wf_remote *r, uint64_t number);
void wf_send_ask(struct wf_remote *r, struct wf_rsend *s);
bool wf_send_announce(struct wf_remote *r, struct wf_out *out, struct wf_rsend *s, uint8_t flags);      /* false: no room or no memory */

/* announce.c */
struct wf_rdest *wf_dest_find(struct wf_remote *r, uint32_t to, uint64_t context);
struct wf_rdest *wf_dest_get(struct wf_remote *r, uint32_t to, uint64_t context);
void wf_dest_put(struct wf_remote *r, struct wf_rdest *d);                      /* gone if nothing keeps it */
void wf_dest_queue(struct wf_remote *r, struct wf_rdest *d, struct wf_rsend *s);
void wf_dest_unqueue(struct wf_remote *r, struct wf_rsend *s);
void wf_dest_answered(struct wf_remote *r, struct wf_rsend *s);                 /* an announcement is no longer outstanding */
int wf_dest_clog(struct wf_remote *r, uint32_t to, uint64_t context, bool on);
void wf_offer_back(struct wf_remote *r, struct wf_rsend *s);
void wf_backlogs_drain(struct wf_remote *r);
void wf_dests_fini(struct wf_remote *r);

/* invite.c */
bool wf_invite_used(struct wf_remote *r, struct wf_rsend *s);                   /* is @s invited? What it could have used is gone */
uint64_t *wf_invite_at(struct wf_remote *r, uint32_t to, uint64_t context);      /* where it is noted */
void wf_invite_last(struct wf_remote *r, uint32_t to, uint64_t context, uint64_t end);  /* the last frame for it in the plain stream ends there */
int wf_invite_got(struct wf_remote *r, const unsigned char *p);
void wf_invite_revoked(struct wf_remote *r, uint64_t token);

/* done.c */
void wf_done_tell(struct wf_remote *r, uint64_t send, bool last);               /* all of their @send is there; @last: nothing else of theirs is waited for, so an answer may follow */
void wf_done_answered(struct wf_remote *r);                                     /* a send begins */
unsigned char *wf_done_along(struct wf_remote *r, const struct wf_lane *lane, unsigned char *to);       /* a record leaves on @lane: DONE at @to, if one waits; where the next frame goes */

/* record.c */
void wf_ack_now(struct wf_remote *r, struct wf_lane *lane);                     /* what came by @lane is to be acknowledged */
void wf_ack_by(struct wf_remote *r, struct wf_lane *lane, weft_time at);        /* at the latest */
void wf_ack_later(struct wf_remote *r, struct wf_lane *lane, bool much);        /* the same, with the next record that leaves; @much: its sender keeps much for it */
void wf_ack_chunk(struct wf_remote *r, struct wf_lane *lane);   /* a chunk has come: of several at once, or with the next record that leaves */

/* credit.c */
static inline uint64_t wf_credit_cost(uint64_t len)
{
	return len + WF_COST;
}
/* What the other end has been told. */
static inline uint64_t wf_credit_known(const struct wf_remote *r)
{
	return r->hinted > r->told ? r->hinted : r->told;
}

/* Is the limit, which is not told yet, @step higher than that, or more? (Sums of bytes: they do not overflow.) */
static inline bool wf_credit_risen(const struct wf_remote *r, uint64_t step)
{
	return wf_unlikely(r->freed + r->conf.window >= wf_credit_known(r) + step);
}
static inline void wf_credit_promise(struct wf_remote *r, uint64_t limit)
{
	if (limit > r->promised)
		r->promised = limit;
}

/* The limit, which goes along with a record that leaves. */
static inline uint64_t wf_credit_hinted(struct wf_remote *r)
{
	uint64_t limit = r->freed + r->conf.window;

	if (limit > r->hinted)          /* less than before, where the window has become smaller: what was said holds */
		r->hinted = limit;
	wf_credit_promise(r, limit);
	return limit;
}

void wf_credit_tell(struct wf_remote *r);
unsigned char *wf_credit_along(struct wf_remote *r, unsigned char *to);         /* a record leaves: LIMIT at @to, if there is news; where the next frame goes */
void wf_credit_lost(struct wf_remote *r);                                       /* a lane is over, and maybe what it said */
int wf_credit_got(struct wf_remote *r, uint64_t limit);

/* bulk.c */
int wf_bulk_grant(struct wf_remote *r, uint64_t number, uint64_t token, uint64_t limit, bool led);      /* @led: its beginning has landed there, or is about to */
uint64_t wf_bulk_moment(const struct wf_remote *r);                             /* bytes that the fastest lane carries in a moment */
void wf_bulk_ended(struct wf_remote *r, const struct wf_rsend *s, int err);      /* it is about to be over, and was not granted */
void wf_bulk_may_lead(struct wf_remote *r, struct wf_rsend *s);                 /* it was announced, as it is long */
bool wf_bulk_lead(struct wf_remote *r, struct wf_lane *lane, struct wf_flying *ret_chunk);      /* as wf_bulk_cut: of the beginning of r->lead, if that was announced on @lane */
static inline void wf_bulk_lead_over(struct wf_remote *r)                       /* no more of it goes unasked */
{
	r->lead = NULL;
	r->lead_on = NULL;
}
bool wf_bulk_cut(struct wf_remote *r, struct wf_lane *lane, struct wf_flying *ret_chunk);
static inline bool wf_bulk_wanted(const struct wf_remote *r)
{
	return !wf_list_empty(&r->granted);
}
int wf_bulk_acked(struct wf_remote *r, struct wf_lane *lane, uint64_t count, weft_time waited);       /* so long ago the last of them was there */
void wf_bulk_again(struct wf_remote *r, struct wf_lane *lane);                  /* what flies on @lane is cut again */
int wf_bulk_asked(struct wf_remote *r, uint64_t number, uint64_t from, uint64_t to);
void wf_bulk_forget(struct wf_remote *r, struct wf_rsend *s);
void wf_bulk_add(struct wf_remote *r, struct wf_rsend *s);                      /* chunks of it may go */
void wf_bulk_kick(struct wf_remote *r);
void wf_bulk_fini(struct wf_remote *r);

/* ping.c */
void wf_ping_run(struct wf_remote *r);
void wf_ping_answered(struct wf_remote *r, struct wf_lane *lane, weft_time sent);       /* PONG: @sent is when the PING was */
uint32_t wf_ping_wants(const struct wf_remote *r);                              /* slots, as a mask */

/* gone.c */
void wf_gones_run(struct wf_remote *r);

/* landing.c */
void wf_landing_open(struct wf_remote *r, struct wf_landing *l);
struct wf_landing *wf_landing_find(struct wf_remote *r, uint64_t token);
struct wf_landing *wf_landing_claim(struct wf_remote *r, struct wf_lane *lane, struct wf_landing *l, uint64_t from, uint64_t to);     /* NULL: what comes is to be dropped */
void wf_landing_unclaim(struct wf_remote *r, struct wf_lane *lane);             /* @lane is down */
void wf_landings_fail(struct wf_remote *r, int err);

/* remote.c */
void wf_remote_end(struct wf_remote *r, int err);                               /* the session is over */
void wf_tell_sent(struct wf_remote *r, struct wf_acts *acts);                   /* sends that are over, as many as there is room for */

#endif
