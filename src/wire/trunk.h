/* trunk.h - to a process of another host: its remote (peer/remote.h), and the lines that carry its lanes.
 *
 *     ports          depart.c  sends                       arrive.c  messages, announcements, ends
 *                        \                                    ^
 *     trunk.c             +---> struct wf_remote: logic  -----+     one lock, acts carried out outside of it
 *                                    |       ^
 *     line.h                    line_out     line_in               a lane: handshake, then sealed records over a rail's lane
 *                                    v       |
 *     net/rail.h                rails, polled by who waits (rails.c)
 *
 * Threads  Any thread sends: it takes the trunk's lock, and writes what is to be written itself unless another thread is at it. One thread at a time polls a
 *          rail and is thus the only reader of its lines; `reading` keeps readers of two rails apart, so that messages are delivered in order.
 *          Who sends many short ones in a row has what the lock guards lent for as long (join.h).
 * Locks    doors, wf_user_lock > trunk.lock > the leaves of mem. trunk.reading > all of them. line.writing is only tried by who holds another: all but reading may be taken under it.
 * Life     Made on first use or when the other calls; never unmapped before the process leaves the job.
 */
#ifndef WF_WIRE_TRUNK_H
#define WF_WIRE_TRUNK_H

#include <stdatomic.h>
#include <weft/id.h>

#include "base/lease.h"
#include "base/lock.h"
#include "base/roots.h"
#include "net/rail.h"
#include "peer/remote.h"
#include "port/drop.h"
#include "secure/record.h"
#include "wire/ids.h"
#include "wire/treaty.h"

#define WF_SESSIONS 2u                  /* one begun by each end */
#define WF_FOREIGNERS 4096u             /* processes of other jobs, in the life of this one */
#define WF_FOREIGNERS_OF 1280u          /* of one of them: it may call itself what it likes */

struct wf_trunk;

/* One lane, from its first byte on. Made and forgotten by rails.c and trunk.c; the rest is the lines' own (line.h). */
struct wf_line {
	struct wf_trunk *trunk;                 /* NULL: of a stranger, until he has proved who he is */
	struct wf_rail *rail;
	void *lane;                             /* the driver's */
	struct weft_addr from;                  /* of a stranger */
	uint32_t slot, gen;
	bool mine;                              /* begun here */
	bool refused;                           /* its rail works, and nobody listens there */
	struct wf_node all;                     /* under lines_lock */
	struct wf_node over;                    /* under lines_lock: to be buried */
	uint64_t round;                         /* under lines_lock: of wf_lines_retry */
	weft_time since;

	/* the reader's */
	struct wf_handshake *shake;             /* until it is done */
	struct wf_session old;                  /* what it was begun with */
	struct wf_lane *of;                     /* then: the remote's; constant until it is down. Also read by writers */
	struct wf_opener open;
	enum { WF_LINE_SHAKES, WF_LINE_RECORDS, WF_LINE_LED, WF_LINE_BODY, WF_LINE_TAIL, WF_LINE_OVER } stage;
	size_t body_left;
	uint32_t slice;                         /* of the memory that it reads into, a name; under trunk.lock */
	_Atomic bool evicted;                   /* that memory was taken from it: what it has read there can no more be opened, and the line ends */
	struct iovec into[WEFT_NEED_PIECES];    /* where the driver puts bytes now */
	uint32_t pieces;
	struct {
		uint32_t front, body;           /* of the last record with a body: bytes before it, and of it */
		uint32_t alike, wanted;         /* how many in a row were so, and were messages; how many it takes */
		uint32_t right;                 /* guesses */
		bool sure;                      /* the next one will be so, too */
		uint32_t step;                  /* of the last that was right: bytes of its message's frame; 0: none was, or it had other frames than most */
		uint64_t ack, limit, stream, msg[3];    /* of it, what the next has, too */
		uint32_t pad;
		struct wf_guest guest;
	} guess;
	struct {                                /* the last record that was one short message, for which its reader waited: line_like.c */
		uint32_t len;                   /* of it, in bytes; 0: there was none */
		uint32_t frames;                /* of them its frames */
		uint64_t stream, msg[3];        /* its frames but for the position in the stream, the context and the payload */
		uint64_t at;                    /* where in the stream the next one lies */
		uint64_t left;                  /* what more of them may cost before one of them is looked at as any other */
		uint64_t name;                  /* of this one, and of no other: for who has seen that it is meant */
		struct wf_guest guest;
	} like;
	bool due;                               /* what was read has left the trunk something to do */
	bool led;                               /* the body of the last record is the beginning of a message that nobody had matched before it was told */

	/* under writing */
	struct wf_lock writing;
	_Atomic uint32_t wanted;                /* somebody found another writing */
	struct wf_sealer seal;
	struct wf_fill fill;
	struct iovec iov[64];                   /* what is being sent */
	uint32_t iovs, iov_at;
	bool filled;                            /* fill is under way */
	uint32_t body_sent;                     /* bytes of its body that are sealed */
	uint8_t head[WF_RECORD_HEAD], tails[2][WF_AEAD_TAG];
	uint8_t *sealed;                        /* room for what is encrypted */
	uint8_t flat[WF_INLINE_MOST + 512];     /* a short record in one piece: a message with all that may come with it */
	size_t flat_n, flat_heads;              /* bytes of frames in it that are not sealed yet; those behind the heads are a payload */
	bool more;                              /* the remote has more to write behind them */
	struct {                                /* the last record in it, if it was one short message and nothing else: the next one may be as that, but for its payload */
		uint32_t frames;                /* its bytes; 0: it was not */
		bool now;                       /* it is, and to be sealed */
		struct wf_brisk msg;            /* changed under trunk.lock, too */
		uint64_t *last_to;              /* of the remote */
	} again;
	uint8_t said[WF_HS_FRAME_MAX];             /* handshake bytes that are not sent yet */
	uint32_t said_n, said_at;

	_Atomic bool shakes;                    /* its handshake is not done */
	_Atomic bool silent;                    /* begun by another, who has not said yet who he is */
	_Atomic bool down;                      /* the driver has said so, or we gave it up */
	_Atomic uint32_t users;                 /* threads that write, found by the trunk: it is freed when none is left */
};

/* Short messages that wait are joined by others like them without the trunk's lock: join.h. */
struct wf_join {
	struct wf_lease lease;
	/* the lessee's while it is inside */
	const struct weft_port *from;           /* whose these are; its thread's own */
	uint64_t tag;
	unsigned char *place;                   /* of the next payload */
	uint32_t to, len;
	uint32_t left;                          /* how many more may join */
	uint32_t n;                             /* how many have, of which the remote knows nothing yet */
	/* under lock */
	uint64_t joined;                        /* all there ever were; for checks */
	uint32_t wary, rest;                    /* others wanted the lock: so many messages are not lent to next time, and still */
};

struct wf_trunk {
	uint32_t process;                       /* id >> 32: of another job, with that job's alias above */
	uint32_t them;                          /* what it calls itself in handshakes */
	const struct wf_endpoint *me;           /* what this process is to it */
	struct wf_trunk *same;                  /* of another job: the next of its bucket; constant */
	char name[16];                          /* for words: PROCESS, or JOB.PROCESS */
	struct weft_addr addr;                  /* of its rail 0, once it is placed; then constant */
	_Atomic bool placed;                    /* release: with addr */
	uint64_t tick_us;                       /* ticks of a microsecond, or about; constant */
	struct wf_lock lock;                    /* taken by wf_trunk_lock */
	struct wf_join join;
	struct wf_lock reading;
	struct wf_lock evicting;                /* only tried */
	/* under lock */
	struct wf_remote remote;
	struct wf_line *lines[WF_LANES];        /* by the remote's lane */
	uint32_t control;                       /* number of the rail by which the next lane of control is tried */
	uint32_t useless;                       /* rails that do not lead there, as was said in the log */
	struct wf_line *again;                  /* of them the one whose last record was a short message: line_again.h; NULL: none */
	uint64_t owed;                          /* credit, when the budget has room again */
	uint64_t costs;                         /* [reading, not lock] of messages just read, to be given back */
	bool stirred;                           /* [reading, not lock] what was just read may have left the remote something to do */
	struct {                                /* short messages that were read and delivered, and of which the remote is told later: line_like.c */
		_Atomic uint32_t came;          /* [reader] how many; release (J1): with the row */
		_Atomic uint32_t told;          /* of how many it was told */
		struct wf_brief_row row;        /* what is the same of all of them */
		uint64_t name;                  /* [reader] line.like.name of what they are like; 0: the next one is to be told at once */
	} late;
	uint32_t row;                           /* short sends that came one upon the other */
	bool rows;                              /* the last row was a long one */
	uint32_t held;                          /* bytes of them that were not written yet, to go with the next */
	uint32_t unclocked;                     /* how many of those since somebody looked at the clock */
	uint64_t written;                       /* when the last of them was, in ticks */
	struct wf_session sessions[WF_SESSIONS];
	uint32_t nsessions;
	uint8_t incarnation[16];
	bool known;                             /* its incarnation is */
	uint32_t shut;                          /* how often it has closed a lane instead of answering, since: */
	weft_time shut_since;
	struct wf_ids watched, asked;           /* ids of theirs, of ours, whose ends are to be told: watch.c */
	struct wf_ids keeping;                  /* hashes of our ports for which they keep messages: arrive_kept.c */
	const struct weft_port *refused;        /* [lock of the ports' table] the last whose receives found no room to ask; a hint */
	/* any, atomic */
	_Atomic weft_time wake;
	_Atomic int err;                        /* its session is over */
	_Atomic bool due;                       /* acts wait to be carried out */
	_Atomic uint64_t sent;                  /* when the last short send returned, in ticks; a hint */
	_Atomic bool closed;                    /* all was said, and BYE */
	_Atomic bool cared;                     /* somebody here waits for it, or did a second ago: its death is to be found out. Changed under lock */
	_Atomic uint32_t gones;                 /* how many of theirs were told gone; release: with watched */
	_Atomic uint32_t keeps;                 /* ports for which the other end keeps messages */
};

void wf_join_begin_locked(struct wf_trunk *t, const struct wf_brisk *b);        /* [thread, trunk.lock] @b, from this thread's own port, waits: the row is lent, if more may join it */
void wf_join_over_locked(struct wf_trunk *t);           /* [trunk.lock] what is lent is taken back, and what joined is told */

/* [any] Nobody else is at what the lock guards, also not by a lease. */
static inline void wf_trunk_lock(struct wf_trunk *t)
{
	wf_lock(&t->lock);
	if (wf_unlikely(wf_lease_name(&t->join.lease) != 0))
		wf_join_over_locked(t);
}

/* [any] The trunk to @process, made if it is not there. NULL: no such process, or no memory. */
struct wf_trunk *wf_trunk_get(uint32_t process);
struct wf_trunk *wf_trunk_caller(const struct wf_endpoint *me, uint32_t called);        /* [any] the same for one that has proved itself to @me, and calls itself so */
int wf_trunk_fail(uint32_t process);                    /* [any] why there is none, in words */
struct wf_trunk *wf_trunk_foreign(uint32_t process);    /* [any] of another job; NULL: none was made */
extern _Atomic(struct wf_trunk *) wf_trunk_table[WF_PROCESSES + WF_FOREIGNERS] WF_HERE; /* by number; behind those the processes of other jobs, as they came */

/* [any] NULL: none was made. */
static inline struct wf_trunk *wf_trunk_at(uint32_t process)
{
	return wf_likely(process < WF_PROCESSES) ? wf_acquire_pointer(&wf_trunk_table[process]) : wf_trunk_foreign(process);
}

struct wf_trunk *wf_trunk_next(uint32_t *at);           /* [any] all of them, one after the other: *@at is 0 at first. NULL: that was the last */
void wf_trunk_refused(struct wf_trunk *t);              /* [no lock] nobody listens where it was: if it is of another job it is gone; else farewells are over */
void wf_trunk_elsewhere_locked(struct wf_trunk *t, uint32_t slot, const struct wf_rail *rail);          /* [trunk.lock] a lane of that slot came to nothing, or to an end, by @rail */
bool wf_trunk_useless(struct wf_trunk *t, const struct wf_rail *rail);         /* [no lock] a lane by @rail that never was up is over. Is that to be told? Of the first rail always, of others once */
void wf_trunk_shut(struct wf_trunk *t);                 /* [no lock] it closed a lane instead of answering the first frame: after a while one of another job that was never met is gone, -EACCES */
void wf_trunks_drop(uint32_t alias);                    /* [no lock] all of that job are gone */

/* [any, no lock of weft's held that an act takes] Carries out what is to be done. */
void wf_trunk_turn(struct wf_trunk *t);

/* As wf_trunk_turn with fewer locks, where there is one line to write to and nothing else to do: [trunk.lock] that line, or NULL; [no lock] written to by wf_trunk_taken (hot.h). */
struct wf_line *wf_trunk_take_locked(struct wf_trunk *t, weft_time now, bool *ret_news);
bool wf_trunk_idle_locked(const struct wf_trunk *t);                           /* a hint: the next of these may answer a line */
void wf_trunk_let_go(struct wf_trunk *t, struct wf_line *l, bool news);        /* [no lock] a line that one of these answered was written to */
bool wf_trunk_do(struct wf_trunk *t, struct wf_acts *acts, struct wf_line *line);      /* @line: they came by it. True: the remote may want more done */

extern _Atomic weft_time wf_trunks_wake WF_HERE;        /* the earliest of all their wakes, or earlier */

/* When one of them is to be looked at. */
static inline weft_time wf_trunks_next(void)
{
	return atomic_load_explicit(&wf_trunks_wake, memory_order_relaxed);
}

#define WF_HELD_MOST (8u << 10)         /* bytes that wait for company */
#define WF_UNCLOCKED 7u                 /* of those that wait already the next few need not ask what time it is: that takes 7 ns of 30 (aarch64) */
void wf_trunk_held(struct wf_trunk *t);                 /* [any, no lock] it does: somebody sees to it */
void wf_trunks_flush(void);                             /* [any, no lock] what waits for company goes */
void wf_trunks_by(weft_time when);                      /* [any] then at the latest; who sleeps longer is woken */
void wf_trunks_turn(weft_time now);                     /* those whose time has come */
bool wf_trunks_close(bool begin);                       /* [leaving] false: some have not ended yet */
void wf_trunks_free(void);
void wf_trunks_show(struct wf_roots *roots);            /* where they are, for who looks from outside */
void wf_trunks_forget(void);                            /* [leaving] the table is empty */

/* line.c, line_shake.c, line_out.c */
struct wf_line *wf_line_new(struct wf_rail *rail, bool mine);   /* @mine: begun here. NULL: no memory */
void wf_line_free(struct wf_line *l);
void wf_line_late_over(struct wf_trunk *t);             /* [reader] what is read next is told at once, what came before it now */
void wf_line_late_look(void);                           /* [polls, no lock] what came and was not told of yet is told now */
void wf_line_late_forget(void);                         /* [leaving] */
int wf_line_call(struct wf_line *l);                    /* its lane is up: begin the handshake */
void wf_line_listen(struct wf_line *l);
void wf_line_write(struct wf_line *l);                  /* [any] */
bool wf_line_take_locked(struct wf_line *l, weft_time now);     /* [trunk.lock] nobody writes there: its next record is filled, and is for who calls to send: */
bool wf_line_brisk_locked(struct wf_line *l, const struct wf_brisk *b, weft_time now);  /* [trunk.lock] the same with @b in it, if there is nothing else */
bool wf_line_flat_taken(struct wf_line *l);             /* [no lock] by this, if that is easy */
void wf_line_leave_locked(struct wf_line *l);           /* [trunk.lock, writing] not ours to write to after all */
void wf_line_again_over(struct wf_line *l, long n, ssize_t sent);               /* [no lock] of the @n bytes of its record so many were sent; or what went wrong. Done with it */
void wf_line_taken(struct wf_line *l);                  /* [no lock, shielded] else by this */
bool wf_line_body_locked(struct wf_line *l, struct wf_rsend *s, weft_time now);         /* [trunk.lock] the same for @s with its body: */
int wf_line_body_taken(struct wf_line *l, const void *body, size_t len);               /* [no lock] 1: both are written; 0: not all of them: wf_line_body_rest; <0: the line is over */
void wf_line_body_rest(struct wf_line *l, struct wf_rsend *s, const void *body);       /* [no lock] the body is there from now on */
void wf_line_body_over(struct wf_line *l, int r);       /* [no lock] what wf_line_body_taken answered: done with it */
void wf_line_end(struct wf_line *l);                    /* [any] its lane is over or given up; buried later, by who polls */
void wf_lines_retry(void *cookie);                      /* [polls, no lock] writers found the rail busy: all lines once more */
int wf_lines_bury(void);                                /* [polls, no lock] how many */
void wf_lines_look(weft_time now);                      /* [polls] handshakes that take too long end */
uint64_t wf_lines_hung_up(void);                        /* [any] how many strangers' handshakes came to nothing */
bool wf_lines_end_all(void);                            /* [leaving] false: there are none */
extern const struct weft_upcalls wf_line_upcalls;

/* watch.c */
bool wf_watch_over(struct wf_trunk *t, uint32_t id);    /* [any] was that told to be no more? */
void wf_watch_gone(struct wf_trunk *t, uint32_t id);
void wf_watch_asked(struct wf_trunk *t, uint32_t id);
void wf_watch_look(void);                               /* [polls, no lock] processes that nobody waits for any more need not be probed */

/* arrive.c, arrive_land.c */
void wf_arrive_row(struct wf_trunk *t, const struct wf_row *row);       /* [reading] short ones */
void wf_arrive_act(struct wf_trunk *t, struct wf_act *a, struct wf_line *line);
void wf_arrive_credit_locked(struct wf_trunk *t, uint64_t cost);        /* [trunk.lock] memory for as much is free, if the budget has room */

/* depart.c */
void wf_depart_sent(struct wf_rsend *s, int err);
void wf_depart_written(struct wf_trunk *t, struct wf_rsend *s);         /* [no trunk.lock] wf_remote_keep said so: done, as far as its sender is concerned */
int wf_depart_pieces(const struct wf_rsend *s, uint64_t at, struct iovec *ret_iov, int max);
int wf_arrive_pieces(const struct wf_landing *l, uint64_t at, struct iovec *ret_iov, int max);

/* rails.c */
extern struct wf_endpoint wf_endpoint;                  /* this process, as its handshakes say */
struct wf_rail *wf_rail_to(uint32_t n);                 /* by number; NULL: there is none */
uint32_t wf_rails_count(void);
bool wf_rail_is_first(const struct wf_rail *rail);      /* by which who is gone is found out */
int wf_host_addr(uint32_t process, uint32_t n, struct weft_addr *ret_addr);     /* of another process, by rail @n; -ESRCH: it is not there at all */
uint32_t wf_hosts_abroad(void);                         /* how many processes are on other hosts; 1 at least */

#endif
