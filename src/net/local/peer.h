/* peer.h - the other processes of this host: their boards, and rare frames to and from each of them.
 *
 * A peer is met on first use: the agent gives its board and the descriptor that wakes it, and tells it, so that it meets us. From then on each
 * writes frames for the other into a ring on its own board (control apart from data), and the other's listener reads them. A frame that finds
 * the ring full waits in this process's memory, one for all that say the same (kept.h). Frames are rare: rings made and closed, ids that ended,
 * messages lost, searches.
 *
 * Edges   C1  frame.seq release -> acquire: the frame.
 *         C2  control.head release -> acquire: the frames below it have been read.
 *         C3  peer.state release (MET), and peer.board release -> acquire: its board and descriptor.
 * Trust   A frame is copied, then handed up; what is in it is checked there.
 */
#ifndef WF_NET_LOCAL_PEER_H
#define WF_NET_LOCAL_PEER_H

#include "base/lock.h"
#include "base/roots.h"
#include "net/local/board.h"
#include "net/local/kept.h"

enum { WF_PEER_UNKNOWN, WF_PEER_ASKED /* has not joined yet */, WF_PEER_MET, WF_PEER_DEAD };

struct wf_peer {
	/* set before state says MET, then constant */
	uint32_t process;
	int event_fd;
	_Atomic(struct wf_board *) board;       /* through wf_peer_board */
	bool strong;                            /* to be found by its sleepers we pass a full fence */
	/* any thread, atomic */
	_Atomic uint32_t state;
	/* under out_lock */
	struct wf_lock out_lock;
	uint32_t out_pos;
	struct wf_kept *kept;
	/* under in_lock */
	struct wf_lock in_lock;
	uint32_t in_pos;
};

/* [any] NULL until it is met; stays when it dies. */
static inline struct wf_board *wf_peer_board(struct wf_peer *p)
{
	return atomic_load_explicit(&p->board, memory_order_acquire);           /* C3 */
}

struct wf_peer_hooks {
	int (*meet)(uint32_t process, int *ret_board_fd, int *ret_event_fd);    /* as wf_link_meet */
	int (*near)(uint32_t process);          /* 1: of this host, 0: of another; -ESRCH: nobody knows it. NULL: all are of this host. Any lock may be held */
	/* [in_lock] A frame has come; @body has WF_FRAME_BYTES. */
	void (*frame)(struct wf_peer *peer, uint32_t what, const unsigned char *body);
	const struct wf_frame_rule *rules;      /* by kind, WF_FRAME_KINDS of them */
};

/* [one thread] This process is number @process; those above @base were started with it, @count of them. -ENOMEM. */
int wf_peers_init(uint32_t process, uint32_t base, uint32_t count, const struct wf_peer_hooks *hooks);

/* Of which host a process is never changes, so it is asked for once. */
enum { WF_SOMEWHERE, WF_ON_HOST, WF_OFF_HOST };
extern _Atomic uint8_t wf_whereabouts[WF_PROCESSES];
bool wf_peer_find(uint32_t process);
static inline bool wf_peer_near(uint32_t process)       /* [any] of this host, or nobody's */
{
	/* Beyond its own a job has nobody; but then come the numbers of processes of other jobs, and above those what is no process. */
	uint8_t where = wf_likely(process < WF_PROCESSES) ? atomic_load_explicit(&wf_whereabouts[process], memory_order_relaxed) :
			process - (1u << 20) < 0xffeu << 20 ? WF_OFF_HOST : WF_ON_HOST;

	return wf_likely(where != WF_SOMEWHERE) ? where == WF_ON_HOST : wf_peer_find(process);
}

bool wf_peers_on(void);                 /* [any] there may be others */
uint32_t wf_peers_count(void);          /* [any] the highest number that was heard of */

/* [any] Process @process, met: 0; -EAGAIN: has not joined yet; -ESRCH: there is none of that number, or it is dead; -ENOMEM and others: cannot
 * be met. *ret_peer is set with 0 and -EAGAIN, and if it is dead but was met. */
int wf_peer_get(uint32_t process, struct wf_peer **ret_peer);
struct wf_peer *wf_peer_at(uint32_t process);   /* [any] what is known of it, or NULL: no such number */
bool wf_peer_died(uint32_t process);            /* [any] no such number counts as dead */
void wf_peer_set_dead(uint32_t process);        /* [listener] */

/* [any] @len <= WF_FRAME_BYTES. Never waits; false: no memory to keep it, enough of that kind are kept, or nobody is there to read it. */
bool wf_frame_send(struct wf_peer *peer, uint32_t what, const void *body, size_t len);

/* [any] Wakes @peer's listener, if it sleeps. */
void wf_peer_ring(struct wf_peer *peer);

/* [any] Wakes who was found named in one of @peer's faces or tickets: a face's number + 1, or WF_SLEEPS_LISTENER. */
void wf_peer_wake(struct wf_peer *peer, uint32_t name);

/* [any] What it waits for was stored: wakes who is named in @name, if somebody is. */
static inline void wf_peer_wake_named(struct wf_peer *peer, const _Atomic uint32_t *name)
{
	uint32_t who;

	if (peer->strong)
		wf_fence_slow();                                                /* F1 */
	else
		wf_fence_light();                                               /* F1 */
	who = atomic_load_explicit(name, memory_order_relaxed);
	if (wf_unlikely(who))
		wf_peer_wake(peer, who);
}

/* [any, no lock] Reads and hands up the frames of all, unless another thread is at it, and writes what waited: how many came. */
int wf_peers_poll(void);
int wf_peer_poll(struct wf_peer *peer);         /* [listener] of one, for certain */
bool wf_peers_waiting(void);                    /* [any] have frames come? Exact behind a heavy fence */
bool wf_peers_owe(void);                        /* [any] do frames wait to be written? */

void wf_peers_close(void);                      /* [one thread] the descriptors */

void wf_peers_show(struct wf_roots *roots);

#endif
