/* weft/req.h - what is under way, and how its end is told: by handle, callback, queue, or the
 * queue's descriptor.
 *
 * A request may be waited for, cancelled and freed by any thread of the process, one at a time
 * (cancelling may also run while another thread waits for it). Wait for or free each one given.
 */
#ifndef WEFT_REQ_H
#define WEFT_REQ_H

#include <weft/base.h>
#include <weft/buf.h>
#include <weft/id.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_req;
struct weft_queue;
struct weft_msg;

#define WEFT_NOBODY UINT32_MAX

struct weft_status {                    /* 64 bytes, fixed; the same for messages, events and exits */
	int err;                        /* 0 or why it failed */
	uint32_t flags;                 /* WEFT_ST_* */
	weft_id from;                   /* the port that sent; of a send: that was to receive; of an event: whose */
	uint64_t tag;                   /* of an event: which */
	size_t len;                     /* bytes of the message, also when it did not fit */
	uint32_t index;                 /* sender's index among the members or WEFT_NOBODY */
	uint32_t lost;                  /* messages lost before it (links) */
	union {
		struct weft_buf *buf;   /* yours: WEFT_ALLOC's buffer; or that of a send that failed */
		struct weft_msg *msg;   /* yours: a posted call's reply */
	};
	void *user;                     /* as given in the op */
	uint64_t reserved;
};

enum { WEFT_JOINED = 1, WEFT_CHANGED, WEFT_LEFT, WEFT_LOST };   /* events, in status.tag */
enum {
	WEFT_ST_SHARED = 1,             /* buf is read-only: others have it too */
	WEFT_ST_PARTIAL = 2,            /* has holes */
	WEFT_ST_PACKED = 4,
	WEFT_ST_MORE = 8,               /* a repeating one goes on */
	WEFT_ST_UNLIKE = 16             /* the sender's byte order is another, and nobody converted */
};

typedef void (*weft_done_fn)(const struct weft_status *st);

/**
 * weft_req_wait - wait until *@req is over, release it and set *@req to NULL.
 * Returns the operation's result (0 or its error), also in @ret_st; 0 at once for a NULL *@req;
 * -ETIMEDOUT, -EAGAIN (WEFT_NOW): not over yet, the request lives on; -EDEADLK in a callback;
 * -EBUSY: another thread is waiting for it.
 */
int weft_req_wait(struct weft_req **req, weft_time until, struct weft_status *ret_st);

/**
 * weft_req_wait_some - wait until @min of @n are over; takes at most @max.
 * 1,1: any; 1,n: some; n,n: all. Answers how many, their places in @ret_which, how they ended
 * in @ret_st, both in that order; those are released and set to NULL. Fewer than min by the
 * deadline: -ETIMEDOUT or -EAGAIN, and none is touched. NULLs do not count, and min is at most
 * the rest: only NULLs gives 0. An operation's error is in its status, not in the answer.
 * -EINVAL: n < 0, min < 0, max < min, or max < 1 with n > 0.
 */
int weft_req_wait_some(struct weft_req **reqs, int n, int min, int max, weft_time until, int *ret_which,
		       struct weft_status *ret_st);

int weft_req_peek(struct weft_req *req, struct weft_status *ret_st);    /* [nb] WEFT_DONE or -EAGAIN; makes progress, releases nothing */

/* [nb] Asks; the request's end tells the truth: -ECANCELED, or how it ended. 0: asked; -EALREADY:
 * over, or too late and about to be. */
int weft_req_cancel(struct weft_req *req);

int weft_req_free(struct weft_req *req WEFT_TAKES);             /* [nb] not over: it ends unobserved. NULL is fine */

/* [nb] A request that the program ends itself with weft_req_complete; its end goes to @done or
 * @queue if one is given (not both). @user is put into the status. */
int weft_req_new(weft_done_fn done, struct weft_queue *queue, void *user, struct weft_req **ret_req WEFT_GIVES);

/* [nb] Ends it; once, any thread. @st NULL: all zero. -EALREADY: was ended or cancelled before;
 * -EINVAL: not one of weft_req_new. */
int weft_req_complete(struct weft_req *req, const struct weft_status *st);

int weft_queue_open(struct weft_queue **ret_queue WEFT_GIVES);  /* [nb] ends arrive in it */
int weft_queue_close(struct weft_queue *queue WEFT_TAKES);      /* [nb] -EBUSY while operations name it; ends not taken are dropped */

/* Takes up to @max ends, waiting for the first: how many; each goes to one caller. */
int weft_queue_next(struct weft_queue *queue, weft_time until, struct weft_status *ret_st, int max);

int weft_queue_fd(struct weft_queue *queue);                    /* [nb] readable when there is something; stays the queue's */

#ifdef __cplusplus
}
#endif
#endif
