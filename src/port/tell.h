/* tell.h - ends that go to a callback or into a queue. */
#ifndef WF_PORT_TELL_H
#define WF_PORT_TELL_H

#include "port/port.h"

/* [any; a port's lock may be held] The end in r->st goes to r->queue or r->done; r is then theirs. */
void wf_tell(struct weft_req *r);

/* What tells a request of the program's own (WF_USER) again and again, by wf_req_repeat_locked: r->source. */
struct wf_source {
	void (*ended)(struct wf_source *s);     /* [wf_user_lock is held] the request ends, by whomever: it is not to be looked at any more */
};

/* An event of a port: @done(@st) as a callback. Nothing if memory is short: counters tell it too. */
void wf_tell_event(weft_done_fn done, const struct weft_status *st);

void wf_callback_add(struct weft_req *r);       /* r->done will be called */
bool wf_callbacks_pending(void);
extern _Atomic uint32_t wf_callbacks_ran;       /* by any thread, ever */
extern _Atomic(struct wf_parker *) wf_poller;   /* one who sleeps in weft_poll: for him to run, or to be told that they ran */
bool wf_poller_wake(void);
int wf_callbacks_run(void);             /* runs what is there unless another thread does: how many */

void wf_queue_name(struct weft_queue *q);       /* an operation will end there */
void wf_queue_unname(struct weft_queue *q);

/* [any] @times messages of @len that @src counts as sent were not received by @by. */
void wf_tell_lost(weft_id src, weft_ctx context, weft_id by, size_t len, uint64_t times);

#endif
