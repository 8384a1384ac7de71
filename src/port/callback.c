/* callback.c - callbacks, one at a time, by whoever makes progress.
 *
 * Ends wait in one list; a waiting thread or the listener runs them, outside all locks and never inside
 * the call that posted. Only one thread runs callbacks at a time, so those of one port come in order.
 */
#include <errno.h>
#include <pthread.h>

#include "base/tsan.h"
#include "port/listener.h"
#include "port/recv.h"
#include "port/request.h"
#include "port/self.h"
#include "port/tell.h"

static struct wf_lock list_lock, runner_lock;
static struct wf_node list;
_Atomic uint32_t wf_callbacks_ran;
_Atomic(struct wf_parker *) wf_poller;
static _Atomic uint32_t waiting;        /* relaxed: a hint; the list's lock orders */

bool wf_poller_wake(void)
{
	struct wf_parker *p;

	wf_fence_light();                                               /* F1 */
	p = atomic_load_explicit(&wf_poller, memory_order_relaxed);
	return p && wf_wake(p);
}

void wf_callback_add(struct weft_req *r)
{
	wf_user_releases(r);
	wf_lock(&list_lock);
	wf_list_add(&list, &r->mine);
	atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
	wf_unlock(&list_lock);
	if (!wf_self.waiting && !wf_poller_wake())
		wf_listener_wake();
}

void wf_tell_event(weft_done_fn done, const struct weft_status *st)
{
	struct weft_req *r = wf_req_new(WF_USER);

	if (!r || wf_listener_start() < 0) {
		if (r)
			wf_req_put(r);
		return;
	}
	r->st = *st;
	r->done = done;
	r->told = r->detached = true;
	wf_callback_add(r);
}

bool wf_callbacks_pending(void)
{
	return atomic_load_explicit(&waiting, memory_order_relaxed) != 0;
}

static struct weft_req *pop(void)
{
	struct wf_node *n;

	wf_lock(&list_lock);
	n = wf_list_pop(&list);
	if (n)
		atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
	wf_unlock(&list_lock);
	return n ? wf_of(n, struct weft_req, mine) : NULL;
}

int wf_callbacks_run(void)
{
	struct weft_req *r;
	int cancel, n = 0;

	while (wf_callbacks_pending()) {
		if (!wf_trylock(&runner_lock))
			return n;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);        /* the callback may have cancellation points */
		while ((r = pop()) != NULL) {
			struct weft_req *again = r->partner;    /* a repeating receive that waits for its memory */

			wf_user_acquires(r);
			wf_self.in_callback = true;
			r->done(&r->st);
			wf_self.in_callback = false;
			wf_req_put(r);
			if (again)
				wf_recv_resume(again);
			n++;
		}
		/* relaxed: weft_poll looks whether it has changed. */
		atomic_fetch_add_explicit(&wf_callbacks_ran, (uint32_t)n, memory_order_relaxed);
		pthread_setcancelstate(cancel, NULL);
		wf_unlock(&runner_lock);
		wf_poller_wake();
	}
	return n;
}
