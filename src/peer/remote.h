/* remote.h - a process of another host, as seen from this one. No sockets, no clock, no locks, no threads: logic alone.
 *
 *     port (sends, matching)            wf_remote_send, _take, _cancel ...                    acts: MSG, BODY, ANNOUNCE, SENT, LANDED ...
 *              \                                 |                                                  ^
 *               +--------------------- struct wf_remote ------------------------------------------+
 *              /                                 |                                                  v
 *     shell (lanes over drivers, sealing)  wf_remote_record, _fill, _lane_up ...              acts: OPEN, CLOSE, WRITE
 *
 * Calls   One lock per remote around every call, the caller's. Time is an argument. After each call, before the lock is left, wf_remote_acts
 *         gives what is to be done now, and r->wake says when it is to be called again if nothing happens. Acts are carried out outside the
 *         lock, in the order in which they were given: one thread at a time reads and delivers for a remote.
 * Sends   Small payloads are copied into the stream and done. Larger eager ones stay where they are until acknowledged. What has no credit, is
 *         larger than eager, or asked for it, is announced; the receiver's GRANT lets chunks go (bulk.c). Too many announcements: the rest waits
 *         at its destination's backlog here, and the receiver asks for what it wants (announce.c).
 * Streams A stream's frames are numbered by byte offset, acknowledged cumulatively, and ride on one lane at a time (stream.c). A lane that
 *         breaks loses nothing: MOVE says where the stream rides now, RESUME where it goes on.
 * Lanes   CONTROL, and HEAD and BULK for each rail (lane.c). Acknowledgements come back on the lane that brought what they are for.
 * Memory  The struct, the streams' rings (16 KiB - 1 MiB each, nothing at rest), tables that grow by doubling. Nothing per message.
 * Trust   Records come from a process that has the job's key and may still be wrong in everything: an error of the other end is -EPROTO, closes
 *         the lane and, repeated, ends the session. Never an assertion.
 */
#ifndef WF_PEER_REMOTE_H
#define WF_PEER_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <weft/base.h>

#include "base/cpu.h"
#include "base/list.h"
#include "peer/retain.h"
#include "peer/wire.h"

#define WF_RAILS 4u                                     /* of one remote */
#define WF_CLASSES 8u                                   /* priorities */
#define WF_STREAMS (1 + WF_CLASSES * (1 + WF_RAILS))    /* control; per priority: any rail, or a certain one */
#define WF_STREAM_PLAIN 4u                              /* priority 0, any rail */
#define WF_LANE_SLOTS (1 + 2 * WF_RAILS)                     /* control; head and bulk of each rail */
#define WF_LANES (2 * WF_LANE_SLOTS)                         /* one that goes and one that comes */
#define WF_INLINE_MOST 4096u                                 /* payload copied into the stream */
#define WF_EAGER (64u << 10)                            /* default of conf.eager */
#define WF_MOMENTS 4000u                                /* default of conf.moments */
#define WF_CHUNK_MOST (512u << 10)                      /* default of conf.chunk: of 1 MiB one half is opened while the other comes: encrypted, it takes longer in one piece */
#define WF_CREDIT_FLOOR (64u << 10)                     /* credit both ends know of without a word */
#define WF_COST 256u                                    /* what a message costs beside its bytes: what keeps one that nobody wants yet takes as much */
#define WF_CHUNKS_OUT 16u                               /* chunks of one send under way */
#define WF_SPANS (WF_CHUNKS_OUT + WF_LANES + 1)
#define WF_FLYING 64u                                   /* chunks of one lane under way */

struct wf_remote;
struct wf_rdest;
struct wf_bulk;
struct wf_flying;

enum wf_lane_kind { WF_LANE_CONTROL, WF_LANE_HEAD, WF_LANE_BULK };

/* A send that is not over when wf_remote_send returns. The caller's memory; it may lie on the stack until then. */
enum {
	WF_SEND_SYNC = 1,               /* done when matched */
	WF_SEND_RENDEZVOUS = 2,         /* only the header before it is asked for */
	WF_SEND_NOW = 4,                /* -EAGAIN if it is not done on the spot */
	WF_SEND_IDLE = 8,               /* nobody waits for its end */
};

struct wf_rsend {
	/* the caller's, constant until its end */
	uint32_t to, from, index;       /* generation and local number */
	uint16_t flags;                 /* WF_SEND_* */
	int8_t prio;                    /* -4 .. 3 */
	uint8_t rail;                   /* 0: any */
	uint64_t tag, context, len;
	const void *head;
	uint32_t head_len;
	void *user;
	/* the remote's */
	uint8_t state;                  /* WF_S_* */
	uint8_t pins;                   /* lanes writing from its memory */
	bool acked, ended, asked;       /* its frame is acknowledged; the receiver has answered; its cancel was asked for */
	bool shown;                     /* its body has left, perhaps in part: the receiver may have matched it */
	bool cancel_due, offer_due;     /* frames that wait for room */
	int err;
	struct wf_node node;            /* by state: of a stream, a destination, the remote */
	struct wf_node ask;             /* in a stream's asks */
	uint64_t number;                /* by which the other end names it; 0: none yet */
	uint64_t start, end;            /* its frame in the stream */
	uint64_t token, limit;          /* granted: where its chunks go, and how many bytes are wanted; offered: token is the receive */
	struct wf_rdest *dest;          /* while it counts there */
	struct wf_bulk *bulk;           /* while chunks go */
};

enum wf_send_state {
	WF_S_NONE,
	WF_S_WAITS,                     /* for room in its stream */
	WF_S_BACKLOG,                   /* for its destination */
	WF_S_OFFERED,                   /* the same, and shown to the receiver */
	WF_S_EAGER,                     /* in the stream: until acknowledged, and answered if SYNC */
	WF_S_ANNOUNCED,                 /* until granted or refused */
	WF_S_INVITED,                   /* the same, and chunks go already: to an invitation, or its first ones, unasked */
	WF_S_GRANTED,                   /* chunks go, until answered */
	WF_S_OVER,                      /* to be told when nothing writes from it */
};

/* Where bytes of a message go. The caller's memory, from the match to LANDED or its closing. */
struct wf_span {
	uint64_t from, to;
};

struct wf_landing {
	/* the caller's */
	uint64_t len;
	void *user;
	/* the remote's */
	uint64_t token;                 /* 0: of an eager body */
	uint64_t send;                  /* whom to answer; 0: nobody */
	struct wf_span filled[WF_SPANS];
	uint8_t nfilled;
	uint8_t state;
	uint8_t readers;                /* lanes writing into it this moment */
	bool invited, torn;             /* chunks may come before it is known whether they are for it; and some were lost */
	int err;
	struct wf_node node;            /* open, or to be told */
};

/* A message of another host that nobody has received: announced, or a copy that its sender may take back. */
struct wf_held {
	uint64_t send;                  /* its number */
	struct wf_held *next;           /* in its bucket */
};

/* What is to be done. */
enum wf_act_kind {
	/* for the ports, in the order of arrival */
	WF_ACT_MSG = 1,                 /* msg with its payload in the record; @cost to be given back by wf_remote_freed */
	WF_ACT_BODY,                    /* msg whose payload follows: wf_remote_body_into, at once; @cost as well */
	WF_ACT_ANNOUNCE,                /* msg: wf_remote_hold, _take or _refuse */
	WF_ACT_CANCEL,                  /* send @number is to be taken back: wf_remote_held; _refuse or _late */
	WF_ACT_SEEK,                    /* want, for (to, context): wf_remote_seek_next, _offer or _sought */
	WF_ACT_BACKLOG,                 /* the other end keeps messages for (to, context): wf_remote_seek for what is posted. err -EAGAIN: for any, (to, context) is none: there is room for what wf_remote_seek refused */
	WF_ACT_CLEAR,                   /* no longer */
	WF_ACT_WATCH,                   /* id @number of this process is to be told gone when it is: wf_remote_say_gone */
	WF_ACT_GONE,                    /* id @number of the other process is no more, and all it sent was given; 0: wf_remote_watch for all anew */
	WF_ACT_SENT,                    /* send is over: err */
	WF_ACT_LANDED,                  /* landing is complete, or will never be: err. To be closed */
	WF_ACT_LAND_CLOSED,             /* nothing writes into landing any more */
	WF_ACT_DEAD,                    /* the session is over: err. -EHOSTUNREACH, -ECONNRESET, -EPROTO */
	WF_ACT_CLOSED,                  /* wf_remote_close has ended */
	/* for the shell */
	WF_ACT_OPEN,                    /* begin a lane for @slot, generation @gen */
	WF_ACT_CLOSE,                   /* stop using @lane; then wf_remote_lane_down */
	WF_ACT_WRITE,                   /* wf_remote_fill for @lane until it answers 0 */
};

struct wf_act {
	uint8_t kind;
	int err;
	union {
		struct {
			struct wf_rmsg msg;
			uint64_t cost;
		};
		struct {
			uint32_t to, want_len;
			uint64_t context;
			uint64_t name;          /* of the receive that wants */
			const void *want;
		};
		uint64_t number;
		struct wf_rsend *send;
		struct wf_landing *landing;
		struct {
			struct wf_lane *lane;
			uint32_t slot, gen;
		};
	};
};

#define WF_ACTS 64
struct wf_acts {
	int n;
	struct wf_act a[WF_ACTS];
};

/* A record to write: the small part gathered from @small, then the body from wf_fill_body. */
struct wf_fill {
	struct iovec small[3 * 8 + 1];
	int nsmall;
	uint32_t small_len, body_len;
	struct wf_rsend *send;
	uint64_t body_at;               /* where in the send's memory */
	unsigned char room[4096];
};

struct wf_remote_ops {
	/* Pieces of the memory from byte @at on; at least one, none empty; pure, any thread. */
	int (*send_pieces)(const struct wf_rsend *s, uint64_t at, struct iovec *ret_iov, int max);
	int (*land_pieces)(const struct wf_landing *l, uint64_t at, struct iovec *ret_iov, int max);
	/* Would the receive that wants @want take @s? NULL: no invitations. */
	bool (*fits)(const struct wf_rsend *s, const void *want, size_t len);
};

struct wf_remote_conf {
	uint32_t me, them;              /* process numbers */
	uint32_t rails;                 /* 1 .. WF_RAILS */
	uint32_t cap;                   /* announcements the other end holds; 0: 256 */
	uint64_t eager;                 /* bytes that go unasked, credit permitting; 0: WF_EAGER */
	uint64_t eager_most;            /* the same where a lane carries them in a moment; 0: no more */
	uint32_t moments;               /* of a second; 0: WF_MOMENTS */
	uint32_t chunk;                 /* bytes of one, at most; 0: WF_CHUNK_MOST */
	uint32_t retain;                /* bytes a stream keeps, at most; a power of two, 0: WF_RETAIN_MOST */
	uint64_t window;                /* bytes of messages the other end may send unasked; 0: WF_CREDIT_FLOOR */
	weft_time deadline;             /* silence that ends the session; 0: 5 s */
	uint64_t seed;                  /* of the back-off's jitter */
	const struct wf_remote_ops *ops;
};

/* One low-level connection. The fields are lane.c's, fill.c's and record.c's. */
enum { WF_BODY_NONE, WF_BODY_DROP, WF_BODY_CHUNK, WF_BODY_EAGER };

struct wf_lane {
	uint8_t kind, rail, slot;
	bool up, closing, mine, suspect;        /* closing: CLOSE was given; only read, never filled */
	bool active;                            /* WRITE was given, and fill has not answered 0 since */
	bool writing;                           /* a record is being written */
	uint32_t gen;
	weft_time up_at, heard, since, suspect_at;      /* since: something is out, and this is when it last moved; 0: nothing is */
	weft_time ack_at;                       /* when acknowledgements go without company; 0: none owed */
	uint64_t bodies;                        /* bytes of eager ones that came since */
	/* masks of streams */
	uint64_t ready, moves, resumes, acks;
	bool ping_due, pong_due, ack_now, pinged;
	weft_time ping_at;
	uint64_t pong;
	/* chunks */
	uint64_t chunk_sent, chunk_acked, chunk_got, chunk_told;
	uint32_t chunks_untold;                 /* how many came since */
	weft_time chunk_at;                     /* when the last of them had come */
	weft_time acked_at;                     /* when the last that is was there; or, behind a pause, when the first left */
	struct wf_flying *flying;               /* chunks not acknowledged: a ring of WF_FLYING, made on first use */
	uint32_t fly_first, fly_count;
	uint64_t rate;                          /* bytes a second, measured; 0: not yet */
	weft_time rtt, rtt_least;
	/* what is being written */
	struct wf_rsend *pinned;
	uint64_t lent;                          /* streams whose ring it writes from */
	/* what is being read */
	const unsigned char *bytes;
	uint32_t len, at, body_len;
	int stream;                             /* whose frames follow; -1: nobody's, -2: of an old epoch */
	uint64_t led;                           /* token of the landing that the last beginning here was there for */
	struct {
		uint8_t kind, stream;
		bool in, turned;                /* a thread writes into the landing; its rest is to be dropped */
		bool doubled;                   /* CHUNK: another lane brought the same and dropped it */
		uint64_t token;                 /* CHUNK: of the landing that was its own; 0: none was */
		struct wf_landing *landing;
		uint64_t lead;                  /* CHUNK: the first of this send, which was not granted when it came; 0: it has a landing, or none will have it */
		uint32_t lead_len;              /* bytes that go unasked, with those */
		uint64_t from, at;              /* in the landing; in the body */
		uint32_t step;                  /* EAGER: bytes of the frame */
	} body;
};

struct wf_lane_slot {
	struct wf_lane *lane;                   /* up and used, or NULL */
	uint32_t gen;                           /* the last that was up */
	bool opening;
	uint8_t tries;
	weft_time began;                        /* to be opened */
	weft_time retry_at;
};

/* Streams, both directions. */
struct wf_out {
	struct wf_retain rt;
	uint32_t epoch;
	uint8_t id;
	bool waits;                             /* for RESUME */
	struct wf_lane *lane;
	struct wf_node bodies;                  /* sends whose frame is in the ring and whose memory is still needed, by offset */
	struct wf_node *body;                   /* the first of them that has not been sent, or the list's head */
	struct wf_node waiting, asks;
	weft_time used;
};

struct wf_in {
	uint64_t next, told;                    /* expected; acknowledged */
	uint32_t epoch;
	struct wf_lane *lane;
	bool begun;                             /* the message at @next was shown by BODY: landing has its place */
	struct wf_landing *landing;             /* NULL with begun: it is dropped */
	uint64_t begun_len;
};

struct wf_number {
	void *what;
	uint32_t gen, next;
};

struct wf_numbers {                             /* what the other end names by index and generation */
	struct wf_number *slot;
	uint32_t size, free, used;
};

#define WF_RDESTS 64u
#define WF_CLOGS 256u                           /* ports the other end may clog */
#define WF_INVITES 8u                           /* kept of one remote */
#define WF_WANT_MOST 64u                        /* bytes that tell what a receive wants */

struct wf_invite {
	uint64_t token, limit, context;         /* token 0: free */
	uint32_t from, to;
	uint32_t want_len;
	unsigned char want[WF_WANT_MOST];
};

#define WF_PINGS 1000u                          /* round trips on a lane, at most */

struct wf_ping {                                /* how far it is: ping.c */
	uint32_t name;                          /* of the measurement: its asker's */
	uint32_t count;                         /* round trips on each lane */
	uint32_t slot;                          /* the lane that has its turn */
	bool over;
	weft_time since, until;
	uint32_t got[WF_LANE_SLOTS];
	uint32_t ns[WF_LANE_SLOTS][WF_PINGS];
};

struct wf_remote {
	struct wf_remote_conf conf;
	int err;                                /* the session is over */
	bool closing, bye_out, closed, bye_in;
	uint32_t errors;                        /* of the other end */
	int broken;                             /* the session is to be over: found out where a send may be in the middle of something, done by the next wf_remote_acts */
	uint64_t random;
	weft_time now, wake;                    /* of the call; when to call acts again */
	union {
		struct {
			bool dirty;             /* lanes, streams or what is wanted of them have changed */
			bool dead_due, closed_due, seek_again;
			bool gone_lost;         /* there was no memory for an id to be told gone */
		};
		uint64_t flags_due;             /* any of them? */
	};
	weft_time heard, busy_since;            /* busy_since 0: nothing is expected of the other end */
	weft_time doomed;                       /* it is dead, and this is how long what it sent before may take to arrive; 0: it is not */
	uint32_t cares;                         /* operations that wait for it and are not known here */
	struct wf_lane_slot slots[WF_LANE_SLOTS];
	struct wf_lane lanes[WF_LANES];
	uint32_t write_due, close_due, open_due;        /* masks */
	uint32_t ngone;                         /* of the ids in @gone */
	struct wf_out *out[WF_STREAMS];
	struct wf_in in[WF_STREAMS];
	uint64_t unacked;                       /* streams with bytes not acknowledged */
	uint64_t stuck;                         /* streams where something waits for room */
	/* credit: cumulative costs */
	uint64_t limit, used;                   /* towards them */
	uint64_t arrived, freed;                /* from them */
	uint64_t told, hinted, promised;        /* to them: by CREDIT, by LIMIT on lanes that are up; the highest of all there ever were */
	/* sends */
	struct wf_numbers sends;
	struct wf_node granted, ended;          /* sends whose chunks go; that are over and not told */
	struct wf_node spent;                   /* the same, and nobody waits for that (WF_SEND_IDLE) */
	struct wf_node leading;                 /* whose beginning went, and that wait for their GRANT */
	uint32_t live;                          /* sends that are not over */
	uint32_t announced;                     /* outstanding */
	uint32_t held_back;                     /* in backlogs */
	struct wf_rdest *dests[WF_RDESTS];
	struct wf_rdest *dest_free;
	struct wf_node backlogs;                /* destinations with a backlog */
	uint32_t ndests, nclogs;
	struct wf_bulk *bulk_free;
	bool seek_refused;
	struct wf_rsend *lead;                  /* its beginning, or the rest of that, is to go behind its announcement; NULL: nobody's */
	const struct wf_lane *lead_on;          /* that has the first of it; NULL: none */
	uint32_t lead_len;                      /* bytes of it, at most */
	uint32_t lead_misses, lead_rest;        /* beginnings in a row that nobody was there for; announcements that go without one for that */
	/* ends of theirs that wait for company: done.c */
	uint64_t done;                          /* the send; 0: none */
	weft_time done_at;                      /* when the last one was there; 0: a send has followed it */
	uint32_t done_run, done_len;            /* ends since we sent; the same before that */
	uint32_t done_habit;                    /* runs of that length in a row that were followed by a send at once */
	uint32_t done_misses, done_rest;        /* in a row that waited in vain; how many do not wait for that */
	struct {                                /* the last frame of the plain stream, if it is of short messages by the brisk way: more may join it until it leaves */
		uint64_t at, end;
		uint64_t tag, context;
		uint32_t to, from, index;
		uint32_t len;                   /* of each */
		uint32_t left;                  /* how many more may join it; 0: there is none such, or it is full */
		uint32_t head;                  /* its first word, once it is a row */
		uint64_t *last;                 /* of last_to */
	} row;
	struct wf_invite invites[WF_INVITES];
	uint32_t ninvites, invite_next;
	uint64_t last_to[WF_RDESTS];            /* by destination: where its last message ends in the plain stream */
	/* receives */
	struct wf_numbers tokens;
	struct wf_node landings, landed, land_closed;
	struct wf_held **held;                  /* by number */
	uint32_t nheld, held_size;
	uint32_t *gone;                         /* ids to be told gone, the first gone_marked of them when gone_mark is acknowledged */
	uint32_t gone_size, gone_marked;
	uint64_t gone_mark[WF_STREAMS];
	struct wf_ping *ping;                   /* the last measurement; NULL: there was none */
	/* for checks and state */
	uint64_t counted_moves, counted_resent, counted_chunks_again, counted_suspects, counted_dropped, counted_invited, counted_led, counted_done;
};

int wf_remote_init(struct wf_remote *r, const struct wf_remote_conf *conf, weft_time now);
void wf_remote_fini(struct wf_remote *r);       /* its session is over (wf_remote_gone, if need be), or nothing is under way */

/* What is to be done now. Called again if the array came back full. */
void wf_remote_acts(struct wf_remote *r, weft_time now, struct wf_acts *acts);

/* Would it give anything? */
static inline bool wf_remote_due(const struct wf_remote *r, weft_time now)
{
	/* One question of most of it: mostly the answer is no. */
	if (wf_unlikely((r->write_due | r->close_due | r->open_due | r->ngone | r->flags_due) || now >= r->wake))
		return true;
	if (wf_unlikely(r->ended.next != &r->ended || r->landed.next != &r->landed || r->land_closed.next != &r->land_closed))
		return true;
	return wf_unlikely(!r->busy_since) && !r->err && (r->unacked || r->live || r->cares || r->closing || !wf_list_empty(&r->landings));
}

/* WRITE for @lane is among them, whatever there is to write: whoever was about to was kept from it. */
void wf_remote_write(struct wf_remote *r, struct wf_lane *lane);

/* ---- sending ---- */

/* A short message of priority 0 to a port of the native protocol. True: it is in the stream, and over; false: nothing happened, by wf_remote_send it goes. */
struct wf_brisk {
	uint32_t to, from, index;
	uint64_t tag, context;          /* context 0: none */
	const void *payload;
	size_t len;                     /* at most WF_INLINE_MOST */
};
bool wf_remote_brisk(struct wf_remote *r, const struct wf_brisk *b);   /* where it matters what time it is: false */
/* The same, and as nothing else waits there it is in the next record of @lane, as by wf_remote_fill_flat, whose answers it has; 0: nothing happened. */
size_t wf_remote_brisk_flat(struct wf_remote *r, struct wf_lane *lane, const struct wf_brisk *b, unsigned char *to, size_t room, weft_time now, size_t *ret_heads, bool *ret_more);

/* One whose payload is a body, the same way: in the next record of @lane, which is nothing but that, and @s as by wf_remote_send and wf_remote_keep: its body is for the caller to write,
 * and wf_remote_kept is to follow. Its end is not urgent: it is told along with others, or asked for (wf_remote_spent). 0: nothing happened. */
size_t wf_remote_body_flat(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s, unsigned char *to, size_t room, weft_time now, bool *ret_more);
void wf_remote_body_rest(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s);       /* instead of wf_remote_kept: not all was written; the rest is, before wf_remote_wrote */
struct wf_rsend *wf_remote_spent(struct wf_remote *r);                 /* one that is over; NULL: none */

/* WEFT_DONE: over, @s is free; 0: SENT will tell; -EAGAIN (WF_SEND_NOW), -ENOMEM, -EMSGSIZE (head), the session's error: nothing happened. */
int wf_remote_send(struct wf_remote *r, struct wf_rsend *s, weft_time now);

/* An eager one has been written once and is kept only in case it has to go again: its bytes may as well lie elsewhere. True: until wf_remote_kept
 * it is not told to be over. Which answers true: nobody writes from it now, so ops->send_pieces may answer otherwise from here on. */
bool wf_remote_keep(struct wf_rsend *s);
bool wf_remote_kept(struct wf_remote *r, struct wf_rsend *s);

/* Asks; SENT tells: -ECANCELED or not. -EALREADY: over. */
int wf_remote_cancel(struct wf_remote *r, struct wf_rsend *s, weft_time now);

/* SEEK: the next of the backlog for (to, context) behind @prev (NULL: the first); the one that matches is offered, or nothing is. A send that is on
 * offer already comes too: to choose it is to choose nothing new. */
struct wf_rsend *wf_remote_seek_next(struct wf_remote *r, uint32_t to, uint64_t context, struct wf_rsend *prev);
void wf_remote_offer(struct wf_remote *r, struct wf_rsend *s, uint64_t name, weft_time now);
void wf_remote_sought(struct wf_remote *r, uint32_t to, uint64_t context);      /* and nothing was found */

/* ---- receiving ---- */

void wf_remote_hold(struct wf_remote *r, struct wf_held *h);            /* nobody wants it yet; h->send is set */
struct wf_held *wf_remote_held(struct wf_remote *r, uint64_t send);
void wf_remote_release(struct wf_remote *r, struct wf_held *h);         /* matched, and nobody is to be told */

/* An announced message is matched: its bytes come into @l, LANDED tells. l->len: as many as are wanted. -ENOMEM: nothing happened. */
int wf_remote_take(struct wf_remote *r, uint64_t send, struct wf_landing *l);
void wf_remote_answer(struct wf_remote *r, uint64_t send, int err);     /* ends a send there: 0 matched; -ECANCELED, -ESRCH, -EAGAIN (an offer) */
void wf_remote_late(struct wf_remote *r, uint64_t send);                /* CANCEL came too late */
/* Receives that found nothing ask in the order in which they were posted. What is offered to one (msg.token is its @name) is not for another,
 * which may want something earlier. -EAGAIN: BACKLOG will come again. */
int wf_remote_seek(struct wf_remote *r, uint32_t to, uint64_t context, uint64_t name, const void *want, size_t len);

/* A receive at @to that names its source and has no compatible one before it, and for which nothing is there: its memory is told to the source
 * ahead of the message. @from 0: any port of that process. Whatever it is matched with, but for the message whose msg.token is l->token, the
 * landing is closed first. -EAGAIN, -ENOMEM: not now. */
int wf_remote_invite(struct wf_remote *r, struct wf_landing *l, uint32_t from, uint32_t to, uint64_t context, const void *want, size_t len);
/* That message has come and was matched with that receive: @len bytes of it are wanted. 0: LANDED tells; -EAGAIN: of what came ahead of it
 * something was lost: the landing is to be closed and the message taken as any other. */
int wf_remote_take_invited(struct wf_remote *r, uint64_t send, struct wf_landing *l, uint64_t len);

/* BODY: where it goes (as long as the message), or NULL: nowhere. */
void wf_remote_body_into(struct wf_remote *r, struct wf_lane *lane, struct wf_landing *l);

/* Ends @l: 0: nothing writes there; -EINPROGRESS: a thread is in it, LAND_CLOSED follows. Not complete: its sender is told @err. */
int wf_landing_close(struct wf_remote *r, struct wf_landing *l, int err);

void wf_remote_freed(struct wf_remote *r, uint64_t cost);               /* of MSG and BODY: the memory is free, or was never taken */
void wf_remote_window(struct wf_remote *r, uint64_t bytes);             /* another share; what was promised holds */
void wf_remote_clog(struct wf_remote *r, uint32_t to, uint64_t context, bool on);       /* one port keeps too much of the window; no longer */
void wf_remote_care(struct wf_remote *r, int more);                     /* operations that wait for this process: +1, -1 */

/* Short messages that were read from @lane and are all alike, of which nothing was told yet: who reads them takes them one by one, as long as each lies behind the one before and all of them do not
 * cost more than is left (brief.h: wf_brief_begins), and tells of them together, before anything that was read behind them is told (wf_brief_told). */
struct wf_brief_row {
	struct wf_lane *lane;
	uint32_t id;                    /* of the stream */
	uint64_t step, cost;            /* of each */
};

/* ---- ids ---- */

void wf_remote_watch(struct wf_remote *r, uint32_t id);                 /* its end, there, is to be told: GONE */
void wf_remote_say_gone(struct wf_remote *r, uint32_t id);              /* one of this process is no more; told behind everything that was sent before */

/* ---- lanes ---- */

/* A lane for @slot is there, begun here (@mine) or there. NULL: refused, close it. */
struct wf_lane *wf_remote_lane_up(struct wf_remote *r, uint32_t slot, uint32_t gen, bool mine, weft_time now);
void wf_remote_open_failed(struct wf_remote *r, uint32_t slot, weft_time now);

/* No thread reads or writes there any more. */
void wf_remote_lane_down(struct wf_remote *r, struct wf_lane *lane, weft_time now);

/* 1: @f is a record to write, and wf_remote_wrote follows when all of it is; 0: nothing now. */
int wf_remote_fill(struct wf_remote *r, struct wf_lane *lane, struct wf_fill *f, weft_time now);
void wf_remote_wrote(struct wf_remote *r, struct wf_lane *lane, weft_time now);
/* The same for a short record, copied to @to: its bytes, and wf_remote_wrote is not called; 0: nothing happened, by wf_remote_fill it goes. *ret_heads: behind so many
 * of them there is nothing but a payload, or nothing. *ret_more: fill has more. */
size_t wf_remote_fill_flat(struct wf_remote *r, struct wf_lane *lane, unsigned char *to, size_t room, weft_time now, size_t *ret_heads, bool *ret_more);
int wf_fill_body(const struct wf_remote *r, const struct wf_fill *f, uint64_t at, struct iovec *ret_iov, int max);      /* [any, no lock] */

/* The same as wf_remote_record for one of short messages that is there as a whole. True: @acts says which, and all of it was read; false: nothing happened, by that it goes.
 * @only_ask: nothing happens anyway. */
struct wf_whole {
	const void *frames;
	uint32_t len, body_len;
	const void *body;               /* NULL: it is not there, or there is none */
};
bool wf_remote_record_brisk(struct wf_remote *r, struct wf_lane *lane, const struct wf_whole *w, weft_time now, struct wf_acts *acts, bool only_ask);

/* The same for nothing but short messages without bodies, as most are: they are read by who gets them, one after the other (wf_row_begin). Ends of sends wait for wf_remote_acts. */
struct wf_row {
	const unsigned char *first, *end;
	uint64_t cost;                  /* of all of them, to be given back by wf_remote_freed */
	uint32_t count;
	uint32_t longest;               /* bytes of a payload, at most */
	bool alike;                     /* all to the same, without a context */
};
bool wf_remote_record_row(struct wf_remote *r, struct wf_lane *lane, const void *frames, uint32_t len, weft_time now, struct wf_row *ret_row);

/* The same for one message with its body, as its sender left it by wf_remote_body_flat: first it is looked at, then, if all else holds, told, under one lock. Ends of sends wait for wf_remote_acts. */
struct wf_brief {                       /* of a record that is read a short way: ACK or not, LIMIT or not, padding or not, STREAM, messages */
	struct wf_out *acked;           /* NULL: no ACK */
	uint64_t upto, limit;
	struct wf_in *in;
	uint32_t id;                    /* of that stream */
	uint64_t step, cost;            /* of all messages */
};
const unsigned char *wf_remote_body_where(const struct wf_whole *w, struct wf_brisk *ret_msg);         /* [no lock] what it says, if it is one; NULL: it is not */
bool wf_remote_body_looked(struct wf_remote *r, const struct wf_lane *lane, const struct wf_whole *w, const unsigned char *where, struct wf_brief *ret_b);      /* false: by wf_remote_record it goes */
void wf_remote_body_told(struct wf_remote *r, struct wf_lane *lane, const struct wf_brief *b, uint32_t body_len, weft_time now);

/* What a frame of a message, or of several, says of each; the payload begins where it answers. */
static inline const unsigned char *wf_msg_head(const unsigned char *p, struct wf_brisk *ret_msg)
{
	ret_msg->to = wf_get32(p + 4);
	ret_msg->from = wf_get32(p + 8);
	ret_msg->index = wf_get32(p + 12);
	ret_msg->tag = wf_get64(p + 16);
	ret_msg->context = 0;
	if (wf_likely(!(p[1] & WF_WIRE_CONTEXT)))
		return p + WF_WIRE_MSG_LEAST;
	ret_msg->context = wf_get64(p + WF_WIRE_MSG_LEAST);
	return p + WF_WIRE_MSG_LEAST + 8;
}

/* One of a row as an act would have it. */
static inline struct wf_rmsg wf_brisk_msg(const struct wf_brisk *m)
{
	return (struct wf_rmsg){ .type = WF_WIRE_MSG, .flags = m->context ? WF_WIRE_CONTEXT : 0, .to = m->to, .from = m->from, .index = m->index, .tag = m->tag, .context = m->context,
				 .payload = m->payload, .len = m->len };
}

/* One message of a row after the other, as long as there are more. */
struct wf_row_at {
	const unsigned char *next, *end;        /* frame */
	uint32_t left;                          /* messages of the last one that are still to come */
	struct wf_brisk m;                      /* the last one */
};

static inline struct wf_row_at wf_row_begin(const struct wf_row *row)
{
	struct wf_row_at at;

	at.next = row->first;
	at.end = row->end;
	at.left = 0;
	return at;
}

static inline bool wf_row_more(const struct wf_row_at *at)
{
	return at->left || at->next < at->end;
}

static inline void wf_row_next(struct wf_row_at *at)
{
	const unsigned char *p = at->next, *payload;
	size_t all;

	if (at->left) {
		at->left--;
		at->m.payload = (const unsigned char *)at->m.payload + at->m.len;
		return;
	}
	all = wf_get16(p + 2);
	payload = wf_msg_head(p, &at->m);
	at->m.payload = payload;
	at->m.len = all - (size_t)(payload - p);
	if (wf_unlikely(p[0] == WF_WIRE_ROW)) {
		size_t each = (size_t)(p[1] >> WF_WIRE_ROW_SHIFT) * 8;

		at->left = (uint32_t)(at->m.len / each) - 1;
		at->m.len = each;
	}
	at->next = p + WF_WIRE_PAD(all);
}

/* Of those that are as the last one but for their payloads, which lie one behind the other, with itself, as many as @most: it is the last of them now. */
static inline uint32_t wf_row_alike(struct wf_row_at *at, uint32_t most)
{
	uint32_t more = at->left < most ? at->left : most - 1;

	at->left -= more;
	at->m.payload = (const unsigned char *)at->m.payload + more * at->m.len;
	return 1 + more;
}

/* A record's frames have come; @bytes stay until it answers 0 and the acts, which point into them, are carried out. 1: @acts is full, call
 * again with the same. -EPROTO: close the lane. */
int wf_remote_record(struct wf_remote *r, struct wf_lane *lane, const void *bytes, uint32_t len, uint32_t body_len, weft_time now,
		     struct wf_acts *acts);

/* Has the beginning of a message come that nobody has matched? Then whoever is about to may be let do so first: until wf_remote_place it is not too late. */
static inline bool wf_remote_leads(const struct wf_lane *lane)
{
	return lane->body.lead != 0;
}

/* Where the body goes on: the pieces; 0: drop it; -EAGAIN: another lane's thread is there, ask again. After pieces: wf_remote_placed, with how many
 * bytes came (0 is fine); after the last byte wf_remote_body; @ok: its tag holds (else lane_down follows). */
int wf_remote_place(struct wf_remote *r, struct wf_lane *lane, struct iovec *ret_iov, int max);
void wf_remote_placed(struct wf_remote *r, struct wf_lane *lane, uint32_t n);

/* Is a thread in a slice of @lane where it has nothing to do any more, and another waits for that? Once nothing writes there wf_remote_placed may be called in its stead, with 0. */
bool wf_remote_leaves(const struct wf_lane *lane);
void wf_remote_body(struct wf_remote *r, struct wf_lane *lane, bool ok, weft_time now);

/* ---- life ---- */

/* Measures @count round trips on each lane, in r->ping; one that was under way is forgotten. -ENOMEM, the session's error. */
int wf_remote_ping(struct wf_remote *r, uint32_t name, uint32_t count, weft_time now);
void wf_remote_alive(struct wf_remote *r, weft_time now);               /* somebody who knows says so: silence counts anew */
void wf_remote_gone(struct wf_remote *r, int err, weft_time now);       /* dead, or its session unknown there */
void wf_remote_doomed(struct wf_remote *r, weft_time now);              /* dead, by who knows: what it sent before is read first, and no lane opened any more */
void wf_remote_found(struct wf_remote *r, weft_time now);               /* where it is is known by now: lanes that could not be opened are tried at once */
void wf_remote_close(struct wf_remote *r, weft_time now);               /* drains, says BYE; CLOSED tells. New sends: -ESHUTDOWN */
void wf_remote_left(struct wf_remote *r, weft_time now);                /* the other end is there no more: a BYE that was said needs no answer */

#endif
