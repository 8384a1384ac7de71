/* wait.h - waiting for requests: look, make progress, linger, sleep. */
#ifndef WF_PORT_WAIT_H
#define WF_PORT_WAIT_H

#include "port/self.h"

/* Waits until @min of the @n requests that are not NULL are over: 0, -ETIMEDOUT, -EAGAIN. Makes progress where
 * they wait and runs callbacks. */
int wf_await(struct weft_req **reqs, int n, int min, weft_time until);

/* Spins for the end of all of them inside this thread's own door, as long as a waiter does at first. True: all are over. */
bool wf_await_hot(struct weft_req **reqs, int n);

/* A blocking call's own operation: waits for it and collects it; past @until takes it back, and if that is too late
 * waits for its end all the same. The operation's result, or -ETIMEDOUT, -EAGAIN. */
int wf_finish(struct weft_req *r, weft_time until, struct weft_status *ret_st);

/* Joins and leaves the waiters of a port. The first of them is the mailbox's sleeper; then the listener, if receives
 * there tell their end; else nobody. */
void wf_wait_at_locked(struct weft_port *p, struct wf_waiter *w);
void wf_unwait(struct wf_waiter *w);            /* takes the lock; passes the sleeper's part on */
bool wf_unwait_locked(struct wf_waiter *w);     /* true: wf_sleeper_hand_over when the lock is free */
void wf_sleeper_hand_over(struct weft_port *p); /* [no lock] somebody else takes over: he must look once, as we may have left something */
void wf_get_up(void *waiter);                   /* [no lock] one that has slept, or is cancelled in its sleep, waits no more */
void wf_attend_locked(struct weft_port *p);     /* told_wants has changed */
void wf_wake_probers_locked(struct weft_port *p);       /* those who sleep there without a posted receive look again */

/* [owner, inside] A receive begins. After enough without sleep our name goes from our mailbox (park.h, Cold). */
void wf_warm_locked(void);
static inline void wf_cool_locked(void)
{
	if (wf_unlikely(wf_self.cold) && --wf_self.cold == 0)
		wf_warm_locked();
}

#endif
