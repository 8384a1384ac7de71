/* route.h - how ports reach processes of other hosts, without knowing how they are reached: the room above (src/wire) gives a table.
 *
 * To a port such a process is a place where sends go and where stand-ins come from: a message that was announced there is a send request here (WF_WIRED),
 * as one of another process of this host is (far.h). It is matched, probed and dropped as any other; its bytes are fetched when it is matched,
 * and its end is answered.
 */
#ifndef WF_PORT_ROUTE_H
#define WF_PORT_ROUTE_H

#include "net/local/peer.h"
#include "port/table.h"

struct outgoing;
struct wf_target;

struct wf_route_ops {
	/* [any] 0: as far as known @id can be reached; -ESRCH: no such process; -EHOSTUNREACH, -ECONNRESET. */
	int (*lives)(weft_id id);

	/* [any, a door may be held] As lives, and its end is told: wf_id_ended. */
	int (*watch)(weft_id id);
	void (*ended)(weft_id id);                              /* [no lock] one of this process is no more: who watches it is told */

	/* [thread] A short plain message of this thread's own port. True: it has left; false: nothing happened, and the other ways say why. */
	bool (*brisk)(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len);
	/* [any] @o goes at once: 0, its buffer has left; -ENOBUFS: not this way; or as lives. */
	int (*send)(struct outgoing *o);
	/* [any] The slower way for @r, which describes it. 0, or nothing happened. */
	int (*start)(struct outgoing *o, struct weft_req *r);
	int (*cancel_locked)(struct weft_req *r, int err);      /* [wf_user_lock] as wf_cancel_locked */

	/* [no lock] r->partner, a stand-in, was matched with @r: fetched, then both end. */
	void (*fetch)(struct weft_port *p, struct weft_req *r);
	/* [no lock] The same for a call that waits: as wf_copy_memory; -ECONNRESET. */
	int (*pull)(struct weft_port *p, struct weft_req *send, const struct wf_target *t);
	void (*answer)(struct weft_req *send, int err);         /* [door] a stand-in's end; it is gone then */
	uint64_t (*offered)(struct weft_req *send);             /* [door] to be taken at once by who wants what has this name (seek.h), or left to its sender: -EAGAIN; 0: not so */
	void (*seek_locked)(struct weft_port *p, const struct weft_match_entry *e);     /* [door] that receive was posted, and found nothing */
	uint32_t (*keepers)(weft_id id, weft_ctx context);      /* [any] how many processes keep messages for that port, which is being made */
	void (*abort)(struct weft_port *p);                     /* [no lock] @p closes: what is fetched for it is not awaited */

	void (*flush)(void);                                    /* [any, no door] what was sent and waits for company goes: the caller is about to wait */
	int (*poll)(bool spins);                                /* [any, no lock] progress on the rails: how many things happened; -EBUSY: nothing here, and another
								 * thread is at it. @spins: the next look comes at once, and nobody sleeps on fd */
	int (*arm)(void);                                       /* [any] before sleeping on fd: 0, or 1: poll first */
	weft_time (*next)(void);                                /* [any] poll then at the latest */
	void (*turn)(void);                                     /* [any, no lock] what is due is done, without a look at the rails */
	void (*asked)(void);                                    /* [listener] was something asked from outside (board.h)? */
	int fd;
	bool uncancelled;                                       /* a poll that spins is no place where a thread is cancelled: it need not be shielded (base/shield.h) */
};

/* NULL: all of the job is on this host. Set before the first message, then constant. */
extern const struct wf_route_ops *wf_hosts WF_HERE;

static inline bool wf_abroad(weft_id id)
{
	return wf_hosts && !wf_peer_near((uint32_t)(id >> 32));
}

#endif
