/* port.h - the central object: mailbox, matcher, waiters; and what moves through it.
 *
 * A port is less than a page: the ring's words, what its lock covers, and the 16 cells of the small ring.
 * Ports, requests and records are never unmapped (type-stable), so a stale pointer may be looked at and
 * found stale; see ring.h for how a stale sender loses.
 *
 *     senders -> ring (or spill, when it was full) -> drain -> wants     a receive was posted: it ends
 *                                                           -> arrivals  nobody asked yet: unexpected
 *
 * Locks, in order: context registry > table > port.door > port.spill_lock, port.sends_lock, queue, callbacks, timers (leaves).
 * Two ports' locks are never held at once.
 */
#ifndef WF_PORT_PORT_H
#define WF_PORT_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weft/msg.h>
#include <weft/state.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/park.h"
#include "mem/buf.h"
#include "mem/slab.h"
#include "net/local/board.h"
#include "port/door.h"
#include "port/memory.h"
#include "port/native.h"
#include "port/ring.h"

/* How a message's payload travels. */
enum wf_kind {
	WF_INLINE,              /* in the cell, then in the record */
	WF_POOLED,              /* weft's own copy, in a buffer of the pool */
	WF_HANDED,              /* the user's buffer, changing hands */
	WF_ANNOUNCED,           /* stays with the sender's request until it is matched */
	/* from another process (way.h) */
	WF_ARENA,               /* beside the cells */
	WF_FLOWN,               /* a buffer in shared memory, changing hands */
	WF_FAR,                 /* announced: stays with its sender, who has a ticket for it */
	WF_GROWN,               /* no message: where the arena is */
	WF_WIRED,               /* announced by a process of another host (route.h) */
	WF_VOID                 /* no message: its sender could not do what it had claimed the cell for */
};
enum {
	WF_MSG_READY = 1,
	WF_MSG_SHARED = 2,      /* the buffer is a view: read-only */
	WF_MSG_CHARGED = 4,     /* its buffer was charged to the budget when it was sent */
	WF_MSG_TAKEN = 16,      /* by a probe: its port no longer accounts for it, and may close */
	WF_MSG_SENDS = 8,       /* the arrival is part of a request, not of a record */
	WF_MSG_TICKET = 32,     /* that request stands for one in another process (far.h) */
	WF_MSG_STANDS = 64,     /* or of another host (route.h) */
	WF_MSG_WIRE = 128       /* a send to another host */
};

/* A message that a port knows and nobody has received: a record or an announced send. */
struct wf_arrival {
	struct weft_match_entry entry;
	weft_id src;
	size_t len;
	uint32_t index;
	uint16_t kind, flags;
	struct weft_port *at;
};

struct wf_record {
	struct wf_arrival a;
	union {
		unsigned char body[WF_BODY];
		struct weft_buf *buf;
	};
};

/* Who waits at a port: on the waiter's stack, in the port's list under its lock. */
struct wf_waiter {
	struct wf_node link;
	struct wf_parker *parker;
	struct weft_port *port;
	const void *probes;                     /* what it looks for itself, woken by every arrival; NULL: it sleeps for its requests' ends */
	bool receives;                          /* that is no probe but a receive of so many bytes at most, which is not posted (recv.c) */
	uint32_t room;
};

_Static_assert(sizeof(struct wf_record) <= WF_BUF_SMALLEST, "a record, header included, fits the smallest class of buffers");

enum wf_what { WF_SEND, WF_RECV, WF_USER };
enum wf_where { WF_NOWHERE, WF_IN_RING /* or spilled */, WF_QUEUED, WF_POSTED, WF_TAKEN, WF_COPYING, WF_TELLING };

/* What a short message to a posted receive touches comes first, in four lines of the cache; six with what lies between made a window of 64 fill it. */
struct weft_req {
	struct wf_arrival a;                    /* send: the announcement; receive: a.entry is the want */
	_Atomic uint32_t over;                  /* Q1: release by who ends it, acquire by who looks: st and the memory */
	uint8_t what, where;                    /* where: under at's lock */
	bool detached;                          /* nobody will look: free it at its end. Under the lock */
	bool dirty;                             /* to be cleaned before the slab gets it: all but the hot path's */
	uint32_t flags;                         /* of the op */
	bool rests;                             /* repeating: the callback told of next has its memory */
	bool limited;                           /* counts against its port's limit */
	bool told;                              /* its end goes to done or queue */
	int8_t prio;
	_Atomic(struct wf_parker *) waiter;     /* who sleeps for it */
	struct weft_port *at;                   /* where it waits to be matched */
	struct wf_mem mem;
	struct weft_status st;
	struct weft_port *from;                 /* send: from where */
	struct wf_node mine;                    /* send: in from's list. told: in the callbacks' or queue's list */
	struct wf_node spill;                   /* send: in at's spill. Else: in the work list */
	union {
		struct weft_buf *buf;           /* send: what travels */
		struct wf_far *pull;            /* receive: what it is copied from, bit by bit (far.h) */
	};
	union {
		struct weft_req *partner;       /* receive: the send it is copied from */
		struct wf_far *far;             /* send announced by another process: what stands for it here (far.h) */
		struct wf_push *push;           /* send announced to another process (push.h) */
		struct wf_departure *away;      /* send to another host, WF_MSG_WIRE (wire/depart.c) */
		struct wf_standin *stands;      /* send that stands for one of another host, WF_MSG_STANDS (wire/arrive.c) */
		struct wf_source *source;       /* of the program's own: who tells it again and again (tell.h) */
	};
	struct weft_req *carrier;               /* told: what carries the end, if this must live on */
	void *head_out;                         /* receive: where the header goes */
	weft_done_fn done;
	struct weft_queue *queue;
	weft_time expires;
	int cancel;                             /* asked to end with this; under the lock */
	_Atomic uint32_t timer;                 /* place among the timers + 1; under their lock, but read as a hint by at's holder */
};

#define WF_PRIOS 8

#define WF_MEMBER_GONE (UINT64_C(1) << 63)      /* no id of a job has it */

struct wf_members {
	_Atomic uint32_t refs;
	uint32_t count;
	_Atomic(weft_id) ids[];                 /* with WF_MEMBER_GONE: has ended */
};

#define WF_WATCHED_BY_ANY UINT32_MAX     /* several ports, or one where several threads wait */

struct weft_port {
	/* Set when the page was made: its line on the board, with the park word of the thread whose port this is. */
	_Alignas(WF_LINE) struct wf_face *face;
	uint32_t number;                        /* of the face */
	uint32_t serial;                        /* counts openings, as in face.gate */

	/* Set at open, then constant. They come first: behind the cells of a port lies the next port, and a core that writes
	 * cell after cell asks ahead for what follows them. */
	const struct weft_proto *proto;         /* NULL: native */
	_Atomic(weft_id) id;                    /* as in the ring, whose line belongs to the senders; 0: ended */
	_Atomic uint64_t context;
	uint16_t incarnation;                   /* as in the tail */
	bool thread_port;
	bool shared;                            /* any thread may receive */
	_Atomic uint32_t watcher;               /* who waits for this port in particular, and is to be told of its end: as watches_as; 0: nobody yet */
	void *match;                            /* of a foreign protocol */
	struct wf_members *members;
	uint32_t index, limit, flags;
	uint32_t watches_as;                    /* number + 1, if only its owner waits here; else WF_WATCHED_BY_ANY */
	weft_id owner;                          /* who may receive, unless shared */
	weft_done_fn event;
	void *user;
	char name[64];

	struct weft_req own;                    /* of the thread's blocking calls: an idle thread needs no other */

	/* any thread, atomic */
	_Atomic bool big_wanted;                /* found full, or got more than a cell holds */
	_Atomic bool broken;                    /* FRAGILE, and a member has ended */
	_Atomic uint32_t under_way;             /* operations, if there is a limit */
	_Atomic bool with_members;              /* an end may concern it: said before it looks whether they live */
	_Atomic uint32_t epoch, dead;
	_Atomic uint32_t dead_told;             /* WARY: so many ends were told to those who wait for anyone */
	_Atomic uint32_t drains;                /* counts drains by others than the owner */
	_Atomic uint64_t sent, sent_bytes, ready_missed;
	_Atomic uint64_t own_sent, own_sent_bytes;      /* of these apart: by the thread whose port it is */
	_Atomic uint64_t lost, sent_lost;       /* not received here when it closed; of what left from here */
	_Atomic uint64_t wakes;

	struct wf_ring ring;


	/* The locks outlive incarnations: a stale pointer may still take one. They stand beside what they cover, far from
	 * the lines that senders read: a core that prefetches around those would take the owner's. */
	_Alignas(WF_LINE) struct wf_door door;
	struct wf_lock spill_lock, sends_lock;
	_Atomic uint32_t joins;                 /* its thread is inside what a lease lends it (base/lease.h) */
	_Atomic uint32_t rung;                  /* in the listener's list; a late sender may put a reused port there, too */
	struct weft_port *_Atomic next_rung;

	/* under door; last also read by who looks without it */
	_Atomic(struct wf_reader *) last;       /* of the readers (ring.reader and those behind it) the one that was last active */
	bool open;
	bool closing;
	bool tight;                             /* no budget for messages */
	uint32_t asks;                          /* processes of other hosts that keep messages for it: receives ask for them */
	uint32_t clogs;                         /* rings of other processes that brought too many announcements (seek.h) */
	uint32_t streak;                        /* cells in a row from one reader */
	uint32_t copying;                       /* matched, and being copied outside the lock */
	uint32_t taken;                         /* messages that probes took and nobody has received: the page waits for them */
	weft_id ended;                          /* closed under this id, and waits for those */
	uint32_t pins;                          /* repeating receives whose callback has their memory */
	uint32_t told_wants;                    /* receives whose end goes to a callback or queue */
	uint32_t probing;                       /* waiters that probe */
	struct wf_node waiters;
	uint64_t received, received_bytes, copies;
	size_t held;                            /* bytes charged to the budget */
	uint64_t unrequested;                   /* announced sends in arrivals */
	struct wf_native_match native;

	/* under spill_lock */
	uint32_t spilled;
	struct wf_node spill[WF_PRIOS];

	/* under sends_lock */
	struct wf_node sends;

	/* registry and free list */
	struct weft_port *next;                 /* context registry's lock */
	struct wf_node all;                     /* table's lock */
	bool limbo;                             /* a context port that nobody has opened yet */

	struct wf_cell cells[WF_CELLS_SMALL];
};
_Static_assert(sizeof(struct weft_port) <= 4096 - 128, "an idle port, and its share of the tables, costs less than a page");
_Static_assert(sizeof(struct weft_port) % WF_PAIR == 0, "ports lie side by side");

/* [any] Is there something at @p for whoever is inside? A hint; exact behind a heavy fence. */
static inline bool wf_port_waiting(struct weft_port *p)
{
	for (struct wf_reader *r = &p->ring.reader; r; r = atomic_load_explicit(&r->next, WF_DEPENDS))
		if (wf_reader_waiting(r))
			return true;
	return wf_ring_spilled(&p->ring);
}

/* What is left to do when the port's lock is free again: copies between memories. */
struct wf_work {
	struct weft_req *copies;
};

#endif
