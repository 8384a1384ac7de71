/* weft/msg.h - messages: plain memory, scattered memory, buffers.
 *
 * The peer may be in this process or in another one of the job.
 * A send is done when its memory is free again; with WEFT_SYNC, when a receive has matched it. What
 * is done is received even if its sender's process dies then.
 * From one port to one port, with one priority, messages arrive exactly once and in the order
 * in which the send calls happened before one another, whichever threads made them.
 * Memory: everything that happened before a send happens before what follows the receive of it;
 * what happened before the match of a WEFT_SYNC send happens before what follows its end.
 * A user's ThreadSanitizer sees both, inside a process.
 */
#ifndef WEFT_MSG_H
#define WEFT_MSG_H

#include <sys/uio.h>
#include <weft/base.h>
#include <weft/buf.h>
#include <weft/id.h>
#include <weft/port.h>
#include <weft/req.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ANY_TAG UINT64_MAX         /* receive: any tag; may not be sent */

enum weft_flags {
	WEFT_SYNC = 1,                  /* send: done when a receive has matched */
	WEFT_READY = 2,                 /* send: I promise that a receive is posted. Broken: slower, counted */
	WEFT_RENDEZVOUS = 4,            /* send: only the header goes before it is asked for */
	WEFT_COPY = 8,                  /* send: data is free on return; no room: -EAGAIN */
	WEFT_KEEP = 16,                 /* send buf: lent (WEFT_ST_SHARED there), mine again when weft_buf_state says idle */
	WEFT_ALLOC = 32,                /* receive into a buffer that fits: status.buf */
	WEFT_TRUNCATE = 64,             /* receive what fits and drop the rest; still -EMSGSIZE */
	WEFT_REPEAT = 128               /* receive with done or queue: stays posted until cancelled; into a queue only with WEFT_ALLOC */
};

struct weft_layout {                    /* memory that is not one block: pure functions, any thread, any order of offsets */
	size_t len;                     /* in all; embed this struct in what describes your type */
	/* How many pieces were written, from byte @at on; at least 1 while at < len, none empty. */
	int (*pieces)(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max);
	/* Optional, for many tiny pieces: move bytes [at, at + n) in (from @bytes) or out. */
	void (*move)(const struct weft_layout *l, size_t at, void *bytes, size_t n, int in);
};

/* Aligned, so that a compiler clears a fresh one with aligned stores, from which the call can read at once: unaligned ones cost
 * a posted send half its time on some cores. */
struct __attribute__((aligned(16))) weft_op {   /* one transfer; weft does not change it, so it may be posted again and again */
	uint32_t size, flags;
	weft_id peer;                   /* to or from */
	uint64_t tag, ignore;           /* receive: bits set in ignore do not matter */
	void *data WEFT_HOLDS;          /* plain memory; or */
	size_t len;
	const struct iovec *iov WEFT_HOLDS;     /* a list (the list is held too); or */
	uint32_t niov;
	uint32_t npeers;                /* (send: to each of these instead of peer; not served yet) */
	const weft_id *peers;
	const struct weft_layout *layout WEFT_HOLDS;    /* a layout; or */
	struct weft_buf *buf WEFT_TAKES;        /* send: a buffer */
	struct weft_msg *msg WEFT_TAKES;        /* receive: this one, matched before */
	void *head WEFT_HOLDS;          /* header of the port's own protocol; receive: pattern in, header out */
	int rail;                       /* of this message; 0: any */
	int8_t prio;                    /* -4 bulk .. 3 urgent: orders what waits to enter a full mailbox */
	uint8_t elem;                   /* element size (2 4 8) where unlike machines shall convert; 0: none */
	uint16_t zero;
	weft_done_fn done;              /* done or queue set: the end always goes there, the answer is 0 */
	struct weft_queue *queue;
	void *user;                     /* in the status */
	weft_time expires;              /* ends by itself, -ETIMEDOUT; 0: never */
};

/**
 * weft_send - send @len bytes from port @from (NULL: my own) to @to; returns when @data is free again.
 * Returns 0; -ESRCH: @to is gone or never was; -ECONNRESET: its port closed, or its process died, under the operation;
 * -EHOSTUNREACH: its host is not reached any more;
 * -ETIMEDOUT, -EAGAIN (WEFT_NOW): taken back (a receive too short for it may have ended with -EMSGSIZE
 * meanwhile); -EINVAL: WEFT_ANY_TAG, NULL with a length, nobody as peer; -EPROTO: the two ports speak different protocols; -EDEADLK in a callback.
 */
int weft_send(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len, weft_time until);

/**
 * weft_recv - receive at @at (NULL: my own) the first message from @from (or WEFT_ANY) with @tag
 * (or WEFT_ANY_TAG) into @cap bytes at @data. Nobody else may use them meanwhile; behind the message
 * they are what they were.
 * Returns 0; -EMSGSIZE: longer than @cap (status.len tells), the message is still there;
 * -ESRCH: @from is gone or never was and has left nothing; -ECONNRESET: it ended while we waited, or
 * a process died whose message was being fetched (which is waited for whatever @until is); -EHOSTUNREACH: its host is not reached any more;
 * -ETIMEDOUT, -EAGAIN; -EPERM: not this thread's port; -EINVAL; -EDEADLK in a callback;
 * -ECANCELED: the port was closed.
 */
int weft_recv(struct weft_port *at, weft_id from, uint64_t tag, void *data, size_t cap, weft_time until,
	      struct weft_status *ret_st);

int weft_buf_send(struct weft_port *from, weft_id to, uint64_t tag, struct weft_buf *buf WEFT_TAKES,
		  weft_time until);     /* the receiver's then; on error still yours */
int weft_buf_recv(struct weft_port *at, weft_id from, uint64_t tag, weft_time until,
		  struct weft_buf **ret_buf WEFT_GIVES, struct weft_status *ret_st);

/**
 * weft_send_post - start sending; the immediate form of weft_send, with every option of @op.
 * Borrows @op; the memory it names is held, its buffer taken when the call succeeds. Asked for
 * neither a request nor done nor queue, the operation ends unobserved.
 * Returns 0: accepted, the request (or done, or queue) tells the end; WEFT_DONE: already over, the
 * memory is free and no request is given; -EAGAIN: a limit or WEFT_COPY, no room now, nothing
 * happened; -ENOBUFS: a copy larger than it can ever be; else as weft_send; -E2BIG, -EOPNOTSUPP.
 */
int weft_send_post(struct weft_port *from, const struct weft_op *op, struct weft_req **ret_req WEFT_GIVES);

/* The immediate form of weft_recv; fills @ret_st if it answers WEFT_DONE (or fails on the spot). */
int weft_recv_post(struct weft_port *at, const struct weft_op *op, struct weft_req **ret_req WEFT_GIVES,
		   struct weft_status *ret_st);

/* The same for one block of memory and no options but @flags: without an op, which costs more to write than a short message to send. */
int weft_send_start(struct weft_port *from, weft_id to, uint64_t tag, const void *data WEFT_HOLDS, size_t len, uint32_t flags,
		    struct weft_req **ret_req WEFT_GIVES);
int weft_recv_start(struct weft_port *at, weft_id from, uint64_t tag, uint64_t ignore, void *data WEFT_HOLDS, size_t cap, uint32_t flags,
		    struct weft_req **ret_req WEFT_GIVES, struct weft_status *ret_st);

/**
 * weft_probe - wait for a message by peer, tag, ignore or head, without receiving it.
 * With @ret_msg it is taken out of matching, to be received through op.msg (once, by any thread);
 * a matched message must be received. Returns 0; -EAGAIN, -ETIMEDOUT and the rest as weft_recv.
 */
int weft_probe(struct weft_port *at, const struct weft_op *what, weft_time until, struct weft_msg **ret_msg WEFT_GIVES,
	       struct weft_status *ret_st);

/* An op that the compiler sees being written, as it does in weft_send_post(NULL, WEFT(op, .peer = id, .data = p, .len = n), &req), and that says
 * no more than the calls without one can: it goes by those, and is never written. (clang decides that too late to make use of it.) */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__cplusplus)
int weft_send_post_op(struct weft_port *from, const struct weft_op *op, struct weft_req **ret_req) __asm__("weft_send_post");
int weft_recv_post_op(struct weft_port *at, const struct weft_op *op, struct weft_req **ret_req, struct weft_status *ret_st) __asm__("weft_recv_post");

/* One expression: what it has of branches the compiler may decide too late. */
extern inline __attribute__((gnu_inline, always_inline)) int weft_op_bare(const struct weft_op *op)
{
	return !((op->size ^ sizeof(*op)) | (uintptr_t)op->iov | op->niov | op->npeers | (uintptr_t)op->peers | (uintptr_t)op->layout |
		 (uintptr_t)op->buf | (uintptr_t)op->msg | (uintptr_t)op->head | (uint32_t)op->rail | (uint8_t)op->prio | op->elem | op->zero |
		 (uintptr_t)op->done | (uintptr_t)op->queue | (uintptr_t)op->user | (uint64_t)op->expires);
}

extern inline __attribute__((gnu_inline, always_inline)) int weft_send_post(struct weft_port *from, const struct weft_op *op, struct weft_req **ret_req)
{
	int bare = op && weft_op_bare(op) && !op->ignore;

	if (__builtin_constant_p(bare) && bare)
		return weft_send_start(from, op->peer, op->tag, op->data, op->len, op->flags, ret_req);
	return weft_send_post_op(from, op, ret_req);
}

extern inline __attribute__((gnu_inline, always_inline)) int weft_recv_post(struct weft_port *at, const struct weft_op *op, struct weft_req **ret_req,
									    struct weft_status *ret_st)
{
	int bare = op && weft_op_bare(op);

	if (__builtin_constant_p(bare) && bare)
		return weft_recv_start(at, op->peer, op->tag, op->ignore, op->data, op->len, op->flags, ret_req, ret_st);
	return weft_recv_post_op(at, op, ret_req, ret_st);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
