/* tcp.h - the TCP driver from inside: rails, lanes, and who may touch what.
 *
 * A rail is a listener and an epoll set on one address of one interface. Its lanes are sockets; strangers, who have connected and said
 * nothing yet, are lanes too that the core does not know.
 *
 * Threads   one polls; others send, open, close and drop needs meanwhile. Lanes lie in memory that stays as long as the rail: a
 *           pointer and a generation (struct ref) may be kept by the poller, and are looked at as follows.
 *
 *     poller  in = lane; word == the generation I know and not CLOSED?  then use it        ...  in = NULL
 *     closer  word |= CLOSED; wait until in != lane; then free it: nobody looks there any more
 *
 * Edges   T1  F1 of base/fence.h on `in` and `word`: each stores its own and loads the other's, the poller over a light fence (it does so
 *             for every look), the closer over a heavy one; one of them sees the other. A poller that saw the old word is waited for, by
 *             an acquire of the release that left; one that comes later sees CLOSED or the next generation. The same for DROP and the
 *             need's memory.
 *         T2  word release (lane_open) -> word acquire (poller): all fields of the lane.
 */
#ifndef WF_NET_TCP_TCP_H
#define WF_NET_TCP_TCP_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/driver.h>

#include "base/cpu.h"
#include "base/list.h"
#include "base/lock.h"

#define TCP_HOLD ((size_t)68 << 10)     /* what take() may leave: a record of 64 KiB with what is around it */
#define TCP_STAGE ((size_t)120 << 10)   /* where bytes are read to that nobody needs elsewhere; below what malloc takes from mmap */
#define TCP_READ ((size_t)64 << 10)     /* bytes read there at once */
#define TCP_TAIL ((size_t)4 << 10)      /* ... behind a large need: what comes next is likely needed elsewhere, too */
#define TCP_FRONT ((size_t)1 << 10)     /* ... where the last bytes were needed elsewhere: most of the next will be, too */
#define TCP_LARGE ((size_t)32 << 10)    /* bytes needed elsewhere that make it worth another call */
#define TCP_HUGE ((size_t)256 << 10)    /* more than these are a part of something that was asked for, or is about to be */
#define TCP_SMALL ((size_t)256)         /* bytes that say nothing of what comes next: the end of something, acknowledgements */
#define TCP_STASH ((size_t)512)         /* up to this, what is left is copied aside; else the whole stage stays with the lane */
#define TCP_CONGESTION_NAME 16          /* with its end, as the kernel has it */
#define TCP_CHUNK 64u                   /* lanes allocated at once */
#define TCP_CHUNKS 4096u
#define TCP_EVENTS 64
#define TCP_HITS 64                     /* reads that found something before a busy lane leaves the epoll set */
#define TCP_BUSY 16                     /* a lane that has carried 2^this bytes one way is busy: reserve.c */
#define TCP_RESERVE (256 << 10)         /* bytes for each that is */
#define TCP_RESERVES 16u                /* for so many of a rail */
#define TCP_STRIDE 64                   /* while one lane is busy the others are looked at every so many polls */

enum tcp_state { TCP_CONNECTING = 1, TCP_STRANGER, TCP_UP, TCP_DEAD };

enum tcp_reserve { TCP_UNASKED, TCP_RESERVED, TCP_REFUSED };

/* Bits of lane.word below the generation. */
#define TCP_CLOSED UINT64_C(1)          /* its owner gave it back */
#define TCP_DROP UINT64_C(2)            /* its need is to be given up */
#define TCP_FLAGS 8

struct tcp_rail;

struct tcp_lane {
	/* Any thread, atomic. */
	_Atomic uint64_t word;          /* generation << TCP_FLAGS | flags */
	_Atomic uint32_t state;         /* enum tcp_state. Poller writes; senders read */
	_Atomic int broken;             /* what send found wrong; 0: nothing. Told by down() */
	_Atomic uint64_t sent, received;        /* bytes; written by its sender, by the poller; 0 when it is closed */
	_Atomic uint32_t reserve;       /* enum tcp_reserve */
	/* Set at open, then constant. */
	struct tcp_rail *rail;
	uint32_t index;
	int fd;
	void *cookie;
	/* Under lock: what epoll looks for. */
	struct wf_lock lock;
	bool blocked;                   /* a send was short: EPOLLOUT too */
	bool watched;                   /* it is in the set */
	/* Under the rail's lock. */
	struct wf_node waiting;         /* among the connecting or the strangers, oldest first */
	weft_time deadline;
	/* Poller only. */
	struct weft_need need;
	uint32_t piece;                 /* first piece of the need that is not full */
	size_t got;                     /* bytes of the need that have come */
	size_t total;                   /* bytes of the need */
	unsigned char *block;           /* NULL, or a stash or a stage with what take() left */
	size_t at, rest;                /* where in it, and how much */
	size_t want;                    /* take() when that much is there */
	bool whole;                     /* block is a stage */
	bool later;                     /* no more is to be read in this poll */
	bool large, huge;               /* the last need was a large one; and such a one that what follows from it comes on other lanes */
};

struct tcp_ref {
	struct tcp_lane *lane;
	uint64_t word;
};

struct tcp_options {
	uint16_t port_first, port_last; /* 0: any */
	int family;                     /* AF_INET, AF_INET6; 0: what the interface has, IPv4 first */
	int connect_ms, silent_ms;      /* how long a connect may take; how long a stranger may say nothing */
	int strangers;                  /* how many there may be */
	char congestion[TCP_CONGESTION_NAME];   /* of all lanes; empty: congestion.c chooses */
};

struct tcp_rail {
	/* Set at open, then constant. */
	const struct weft_upcalls *up;
	void *cookie;
	struct tcp_options opt;
	struct sockaddr_in6 here;       /* or a sockaddr_in in its place: our address, with the listener's port */
	socklen_t here_len;
	uint32_t scope;                 /* number of the interface */
	const char *congestion;         /* the congestion control that lanes get; NULL: the system's */
	int epoll, listener, timer;
	/* Under lock. */
	struct wf_lock lock;
	struct tcp_lane *chunk[TCP_CHUNKS];     /* each of TCP_CHUNK lanes; written once */
	uint32_t made;                          /* lanes ever made */
	struct wf_node unused;                  /* through `waiting` */
	struct wf_node connecting, strangers;
	uint32_t lanes, stranger_count;
	uint64_t opened, accepted, refused;
	uint64_t sent, received;                /* of lanes that are gone */
	weft_time full_told;                    /* that there are no descriptors left was told then; poller's */
	weft_time deaf_until;                   /* no descriptors left: the listener is not looked at before; 0: it is. Poller writes */
	/* Poller only. */
	int spare;                      /* a descriptor kept so that one can be freed; -1: none */
	struct tcp_ref hot;             /* the last lane on which something came */
	bool failing;                   /* it could not be put back into the epoll set */
	int hits;                       /* how often since it is that, or since somebody slept */
	int looks, stride;              /* polls since epoll was asked; how many there may be */
	unsigned char *stage, *spare_stage;
	struct iovec guess;             /* what ahead() answered last */
	struct weft_need asked;         /* what take() did, where it was asked in read.c: wf_tcp_read */
	/* Any thread, atomic. */
	_Alignas(WF_LINE) _Atomic(struct tcp_lane *) in;        /* where the poller is */
	_Atomic uint32_t reserves;                              /* lanes that have one */
	_Atomic bool elsewhere;                                 /* a hint: much was sent, and what answers it may come on another lane than the hot one */
	_Atomic(void *) poller;                                 /* who polls: an address of its thread; NULL: nobody */
};

extern const struct weft_driver wf_tcp_driver;

/* address.c */
int wf_tcp_probe(const struct weft_driver *self, struct weft_found *ret_found, int max);
int wf_tcp_options(const char *text, struct tcp_options *ret_opt);
int wf_tcp_here(struct tcp_rail *rail, const char *adapter);            /* sets here, here_len, scope; -ENODEV */
uint64_t wf_tcp_rate(uint32_t scope);                                   /* bytes/s the interface claims; 0: not known */
void wf_tcp_addr_of(const struct sockaddr_in6 *sa, struct weft_addr *ret_addr);
int wf_tcp_addr_to(const struct tcp_rail *rail, const struct weft_addr *addr, struct sockaddr_in6 *ret_sa, socklen_t *ret_len);
int wf_tcp_addr_print(const struct weft_addr *addr, char *ret_text, size_t n);
int wf_tcp_addr_parse(const char *text, struct weft_addr *ret_addr);

/* lane.c */
int wf_tcp_lane_make(struct tcp_rail *rail, int fd, int state, void *cookie, struct tcp_lane **ret_lane);      /* takes fd on success */
int wf_tcp_lane_open(void *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane);
void wf_tcp_lane_close(void *lane);
void wf_tcp_lane_tune(void *lane, int klass, size_t unsent);
void wf_tcp_need_drop(void *lane);
void wf_tcp_lane_settle(struct tcp_lane *lane);         /* neither connecting nor a stranger any more */
struct tcp_lane *wf_tcp_lane_at(struct tcp_rail *rail, uint64_t event, struct tcp_ref *ret_ref);
uint64_t wf_tcp_lane_event(const struct tcp_lane *lane);
void wf_tcp_tick(struct tcp_rail *rail);                /* sets the timer for the earliest deadline */

extern _Thread_local char wf_tcp_myself;                /* its address is this thread's name */

/* relaxed: only our own name matters, and that nobody else writes. */
static inline bool wf_tcp_poller_is_me(struct tcp_rail *rail)
{
	return atomic_load_explicit(&rail->poller, memory_order_relaxed) == &wf_tcp_myself;
}

static inline void wf_tcp_poller_set(struct tcp_rail *rail, bool here)
{
	atomic_store_explicit(&rail->poller, here ? &wf_tcp_myself : NULL, memory_order_relaxed);
}

/* read.c: poller only. True: the lane is still what @ref says after the upcalls that were made */
bool wf_tcp_read(struct tcp_ref ref, int *ret_events);
bool wf_tcp_fail(struct tcp_ref ref, int err);          /* down(); always false */
bool wf_tcp_same(struct tcp_ref ref);
void wf_tcp_unblock(struct tcp_lane *lane);             /* forgets what take() left */

/* send.c */
ssize_t wf_tcp_send(void *lane, const struct weft_out *out);

/* reserve.c */
void wf_tcp_reserve(struct tcp_lane *lane);             /* it is busy */
void wf_tcp_reserve_end(struct tcp_lane *lane);         /* [closing it] */

/* @n more bytes have gone by @lane, which @count counts, one of its own. */
static inline void wf_tcp_count(struct tcp_lane *lane, _Atomic uint64_t *count, ssize_t n)
{
	uint64_t before = atomic_load_explicit(count, memory_order_relaxed), now = before + (uint64_t)n;

	atomic_store_explicit(count, now, memory_order_relaxed);
	if (wf_unlikely((before ^ now) >> TCP_BUSY) && wf_unlikely(atomic_load_explicit(&lane->reserve, memory_order_relaxed) == TCP_UNASKED))
		wf_tcp_reserve(lane);
}

/* congestion.c */
int wf_tcp_congestion_begin(struct tcp_rail *rail, int listener);       /* who is let in has it from there; -E: what was asked for cannot be had */
void wf_tcp_congestion_set(const struct tcp_rail *rail, int fd);        /* of a socket that is not connected yet */

/* watch.c */
void wf_tcp_block(struct tcp_lane *lane);               /* the socket is full: the poller is to hear when it is not */
bool wf_tcp_writable(struct tcp_lane *lane);            /* epoll says so. True: somebody waits for it */
void wf_tcp_unwatch(struct tcp_lane *lane);             /* poller only: it looks there itself */
int wf_tcp_watch(struct tcp_lane *lane);                /* poller only; 0 or -E: epoll cannot have it */

/* listen.c */
int wf_tcp_listen(struct tcp_rail *rail);               /* a descriptor, or -E */
int wf_tcp_accept(struct tcp_rail *rail);               /* poller only; how many came */
void wf_tcp_hear(struct tcp_rail *rail, weft_time now); /* poller only: the listener again, if its pause is over */

/* poll.c */
int wf_tcp_arm(void *rail);
int wf_tcp_poll(void *rail, int budget, unsigned flags);

#endif
