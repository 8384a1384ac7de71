/* wait.c - see wait.h.
 *
 * A waiter looks at its requests and makes progress at the ports where they wait: what has arrived there it
 * takes to its receives, whoever posted them. A send that was announced is matched by its receiver, or by the waiter
 * itself when the receiver computes. Before it sleeps a waiter names itself in its requests and in the
 * mailboxes, passes a heavy fence and looks again (park.h).
 */
#include "port/wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/shield.h"
#include "base/tsan.h"
#include "port/cancel.h"
#include "port/deliver.h"
#include "port/lead.h"
#include "port/push.h"
#include "port/listener.h"
#include "port/request.h"
#include "port/self.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/way.h"

#define PORTS_AT_HAND 8

static struct wf_parker *next_sleeper_locked(struct weft_port *p)
{
	if (!wf_list_empty(&p->waiters))
		return wf_of(p->waiters.next, struct wf_waiter, link)->parker;
	return p->told_wants ? &wf_listener_parker : NULL;
}

/* Names the mailbox's sleeper anew; true if that is another one, who has not looked since. */
static bool name_sleeper_locked(struct weft_port *p)
{
	struct wf_parker *now = next_sleeper_locked(p);

	if (now == atomic_load_explicit(&p->ring.sleeper, memory_order_relaxed))
		return false;
	/* relaxed: who sleeps passes a heavy fence before its last look. */
	atomic_store_explicit(&p->ring.sleeper, now, memory_order_relaxed);
	atomic_store_explicit(&p->face->sleeper, !now ? 0 : now == &wf_listener_parker ? WF_SLEEPS_LISTENER :
			      wf_port_of_parker(now)->number + 1, memory_order_relaxed);
	return now != NULL;
}

/* Other processes that send here learn how far we came, so that they know what was lost if we do not live to wake up. */
static void tell_progress_locked(struct weft_port *p)
{
	for (struct wf_reader *r = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed); r;
	     r = atomic_load_explicit(&r->next, memory_order_relaxed))
		if ((uint32_t)atomic_load_explicit(r->head, memory_order_relaxed) != atomic_load_explicit(&r->pos, memory_order_relaxed))
			wf_ring_told(r);
}

void wf_wait_at_locked(struct weft_port *p, struct wf_waiter *w)
{
	tell_progress_locked(p);
	w->port = p;
	wf_list_add(&p->waiters, &w->link);
	p->probing += w->probes != NULL;
	name_sleeper_locked(p);
}

void wf_sleeper_hand_over(struct weft_port *p)
{
	struct wf_parker *sleeper = atomic_load_explicit(&p->ring.sleeper, memory_order_relaxed);

	if (!sleeper)
		return;
	if (sleeper != &wf_listener_parker) {
		wf_wake(sleeper);
		return;
	}
	wf_fence_heavy_far();                                           /* F1, on the listener's behalf */
	if (wf_port_waiting(p))
		wf_listener_ring(p);
}

WF_HOT bool wf_unwait_locked(struct wf_waiter *w)
{
	struct weft_port *p = w->port;

	wf_list_del(&w->link);
	p->probing -= w->probes != NULL;
	if (p != wf_self.port || next_sleeper_locked(p) || atomic_load_explicit(&p->ring.sleeper, memory_order_relaxed) != w->parker)
		return name_sleeper_locked(p);
	wf_self.cold = WF_COLD_RECEIVES;        /* our name stays: the next sleep is cheaper */
	return false;
}

void wf_wake_probers_locked(struct weft_port *p)
{
	for (struct wf_node *n = p->waiters.next; p->probing && n && n != &p->waiters; n = n->next) {
		struct wf_waiter *w = wf_of(n, struct wf_waiter, link);

		if (w->probes)
			wf_wake(w->parker);
	}
}

WF_HOT void wf_unwait(struct wf_waiter *w)
{
	struct weft_port *p = w->port;
	bool another;

	wf_port_enter(p);
	another = wf_unwait_locked(w);
	wf_port_leave(p);
	if (another)
		wf_sleeper_hand_over(p);
}

WF_HOT void wf_get_up(void *waiter)
{
	struct wf_waiter *w = waiter;

	wf_park_end(w->parker);
	wf_unwait(w);
	wf_self.waiting = false;
}

void wf_warm_locked(void)
{
	wf_self.cold = 0;
	name_sleeper_locked(wf_self.port);
}

void wf_attend_locked(struct weft_port *p)
{
	if (name_sleeper_locked(p))
		wf_sleeper_hand_over(p);
}

/* What a wait has set up in order to sleep; cleanup of a cancelled thread takes it down. */
struct sleep {
	struct weft_req **reqs;
	int n;
	bool cold;                      /* waits at its own port alone, where its name has stood since before */
	struct wf_parker *parker;
	struct wf_waiter hand[PORTS_AT_HAND], *at;
	int ports, room;
};

static bool knows(const struct sleep *s, const struct weft_port *p)
{
	for (int i = 0; i < s->ports; i++)
		if (s->at[i].port == p)
			return true;
	return false;
}

/* False: no memory to name another mailbox; then sleep is short. */
static bool wait_at(struct sleep *s, struct weft_port *p)
{
	if (knows(s, p))
		return true;
	if (s->ports == s->room)
		return false;
	s->at[s->ports] = (struct wf_waiter){ .parker = s->parker };
	wf_port_enter(p);
	wf_wait_at_locked(p, &s->at[s->ports++]);
	wf_port_leave(p);
	return true;
}

/* 1: sleep as long as you like; 0: not too long (no memory to name every mailbox); -EBUSY: another waits for one of them. */
static int lie_down(struct sleep *s)
{
	bool all = true;

	s->at = s->hand;
	s->room = PORTS_AT_HAND;
	s->ports = 0;
	s->cold = wf_self.cold && atomic_load_explicit(&wf_self.port->ring.sleeper, memory_order_relaxed) == s->parker;
	if (s->n > PORTS_AT_HAND) {
		struct wf_waiter *more = malloc((size_t)s->n * sizeof(*more));

		if (more) {
			s->at = more;
			s->room = s->n;
		}
	}
	wf_park_begin(s->parker);
	for (int i = 0; i < s->n; i++) {
		struct weft_req *r = s->reqs[i];
		struct wf_parker *nobody = NULL;

		if (!r || wf_req_over(r))
			continue;
		/* relaxed: ordered by the heavy fence that follows. */
		if (!atomic_compare_exchange_strong_explicit(&r->waiter, &nobody, s->parker, memory_order_relaxed,
							     memory_order_relaxed))
			return -EBUSY;
		s->cold &= r->what == WF_RECV && r->at == wf_self.port;
		if (r->what == WF_RECV && r->at)
			all &= wait_at(s, r->at);
	}
	return all;
}

static void get_up(void *arg)
{
	struct sleep *s = arg;

	wf_park_end(s->parker);
	for (int i = 0; i < s->ports; i++)
		wf_unwait(&s->at[i]);
	s->ports = 0;
	for (int i = 0; i < s->n; i++) {
		struct wf_parker *me = s->parker;

		if (s->reqs[i])
			atomic_compare_exchange_strong_explicit(&s->reqs[i]->waiter, &me, NULL, memory_order_relaxed,
								memory_order_relaxed);
	}
	if (s->at != s->hand)
		free(s->at);
	s->at = s->hand;
	wf_self.waiting = false;
}

static int count_over(struct weft_req **reqs, int n)
{
	int over = 0;

	for (int i = 0; i < n; i++)
		over += reqs[i] && wf_req_over(reqs[i]);
	return over;
}

/* What goes to or comes from another process bit by bit goes on in whoever waits for it. */
static void step_far(struct weft_req *r)
{
	if (r->what == WF_SEND && !r->at && !(r->a.flags & WF_MSG_WIRE))
		wf_push_step(r);
	else if (r->what == WF_RECV && wf_unlikely(wf_fars_active()))
		wf_far_step(r);
}

/* Who is to be woken when one of them can go on: a face's number + 1; 0: we look; the listener: nobody here any more. */
static void name_far(struct weft_req **reqs, int n, uint32_t name)
{
	if (!wf_peers_on() || (!wf_pushes_active() && !wf_fars_active() && !wf_ways_owe()))
		return;
	wf_lock(&wf_user_lock);
	for (int i = 0; i < n; i++) {
		struct weft_req *r = reqs[i];

		if (!r || wf_req_over(r))
			continue;
		if (r->what == WF_SEND && !r->at && !(r->a.flags & WF_MSG_WIRE))
			wf_push_name_locked(r, name);
		else if (r->what == WF_RECV)
			wf_far_name_locked(r, name);
	}
	wf_unlock(&wf_user_lock);
}

/* A thread that sends to another process while that one sends to it: what comes for it goes on here, too, else both leave that to their
 * listeners. 64 KiB both ways at once took three times as long as one way and the other. */
static void look_behind(const struct weft_req *r)
{
	if (r->from && wf_port_mine(r->from))
		wf_port_progress(r->from);
	if (wf_fars_active())
		wf_fars_step();
}

/* Makes progress where something may have arrived: how many are over. */
static int look_here(struct weft_req **reqs, int n, bool help)
{
	struct weft_port *last = NULL;
	int over = 0;

	for (int i = 0; i < n; i++) {
		struct weft_req *r = reqs[i];

		if (!r)
			continue;
		if (!wf_req_over(r)) {
			step_far(r);
			if (r->what == WF_SEND && !r->at && wf_peers_on())
				look_behind(r);
		}
		if (!wf_req_over(r) && r->at && r->at != last && (help || r->what == WF_RECV)) {
			last = r->at;
			if (r->what == WF_RECV)
				wf_port_progress(last);
			else
				wf_port_help(last);
		}
		over += wf_req_over(r);
	}
	return over;
}

/* The same, and on the rails before. */
static int look(struct weft_req **reqs, int n, bool help)
{
	if (wf_unlikely(wf_hosts != NULL))
		wf_lead_look();
	return look_here(reqs, n, help);
}

static bool anything(const struct sleep *s)
{
	for (int i = 0; i < s->ports; i++)
		if (wf_port_waiting(s->at[i].port))
			return true;
	return wf_callbacks_pending();
}

/* Returns 0 after the sleep: woken, late or not needed. -EBUSY: did not sleep. @shielded: we are, and asleep we need not be. */
static int sleep_once(struct weft_req **reqs, int n, int min, weft_time until, bool shielded)
{
	struct sleep s = { .reqs = reqs, .n = n, .parker = &wf_self.port->face->parker };
	weft_time soon = weft_in(WEFT_MS);
	int r = lie_down(&s);

	name_far(reqs, n, wf_self.port->number + 1);
	if (s.cold)
		wf_fence_slow();                                        /* F1: who finds our name passes one, too */
	else
		wf_fence_heavy_far();                                   /* F1 */
	for (int i = 0; wf_peers_on() && i < n; i++)
		if (reqs[i] && !wf_req_over(reqs[i]))
			step_far(reqs[i]);
	if (r >= 0 && count_over(reqs, n) < min && !anything(&s)) {
		if (shielded)
			wf_unshield();
		wf_lead_park(s.parker, r || until < soon ? until : soon, get_up, &s);
		if (shielded)
			wf_shield();
	}
	get_up(&s);
	name_far(reqs, n, 0);
	wf_self.waiting = true;
	return r < 0 ? r : 0;
}

static int await(struct weft_req **reqs, int n, int min, weft_time until, bool shielded)
{
	struct wf_linger w;
	int over = look(reqs, n, until == WEFT_NOW), r = 0;

	if (over >= min)
		return 0;
	if (until == WEFT_NOW)
		return -EAGAIN;
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "waiting inside a callback");
	wf_self.waiting = true;
	name_far(reqs, n, 0);
	wf_linger_init(&w);
	if (wf_self.spun)
		w.spins = 0;            /* the hot path has done that */
	wf_self.spun = false;
	for (;;) {
		if (wf_unlikely(wf_callbacks_pending()))
			wf_callbacks_run();
		if ((over = look(reqs, n, false)) >= min)
			break;
		if (wf_linger(&w))
			continue;
		if (wf_past(until)) {
			r = -ETIMEDOUT;
			break;
		}
		/* Nobody may be looking where our sends wait. */
		if ((over = look(reqs, n, true)) >= min)
			break;
		r = sleep_once(reqs, n, min, until, shielded);
		if (r < 0) {
			weft_fail(r, "another thread is waiting for it");
			break;
		}
		w.spins = 1;                    /* woken: look, and if it was for nothing sleep again soon */
		w.yields = UINT32_MAX / 2;
		w.began = 1;
		if (wf_unlikely(wf_hosts != NULL) && look_here(reqs, n, false) >= min)
			break;                  /* who sleeps on the rails has read it: looking there again takes a system call */
	}
	wf_self.waiting = false;
	if (wf_peers_on() && (wf_pushes_active() || wf_fars_active())) {
		name_far(reqs, n, WF_SLEEPS_LISTENER);
		wf_listener_wake();             /* he goes on with what is left */
	}
	if (wf_unlikely(wf_callbacks_pending()))
		wf_listener_wake();             /* what came in the last moment */
	return r;
}

int wf_await(struct weft_req **reqs, int n, int min, weft_time until)
{
	int r;

	if (wf_likely(!wf_hosts))
		return await(reqs, n, min, until, false);
	if (min && count_over(reqs, n) >= min)
		return 0;               /* a look takes a system call there. Who waits for none wants just that */
	wf_shield();                    /* once for all looks at the rails */
	r = await(reqs, n, min, until, true);
	wf_unshield();
	return r;
}

/* [inside] The next cell to its receive. False: nothing came, and it is not worth waiting longer here. */
static inline __attribute__((always_inline)) bool next_hot_locked(struct weft_port *p, bool mine, struct wf_work *work, unsigned *spins)
{
	struct wf_reader *rd;
	struct wf_cell *c = wf_port_next_locked(p, &rd);

	if (wf_likely(c != NULL)) {
		wf_ring_ahead(rd);
		wf_user_acquires(&p->ring);
		if (wf_likely(wf_arrive_hot_locked(p, rd, c))) {
			wf_ring_advance(rd);
			return true;
		}
	}
	if (wf_unlikely(c || wf_ring_spilled(&p->ring)))
		return wf_drain_locked(p, work) && !work->copies;
	if (!*spins || wf_port_wanted(p, mine))
		return false;
	--*spins;
	wf_relax();
	return true;
}

/* All of @reqs that are received at @p, which is this thread's own port (@own) or one of a context: true if that is all, and they are over. */
static inline __attribute__((always_inline)) bool await_at(struct weft_port *p, bool own, struct weft_req **reqs, int n)
{
	struct wf_work work = { NULL };
	unsigned spins = wf_self.abroad ? 0 : wf_spin_budget();
	bool mine = own || wf_port_mine(p);
	int i = 0;

	if (wf_unlikely(wf_self.abroad))
		wf_self.abroad--;
	wf_self.spun = true;
	wf_port_enter_hot(p, mine);
	if (own)
		wf_cool_locked();
	for (; i < n; i++) {
		struct weft_req *r = reqs[i];

		if (!r)
			continue;
		/* relaxed: whoever ends a request here is inside the door, as we are now: D1, D2. */
		while (!atomic_load_explicit(&r->over, memory_order_relaxed))
			if (r->what != WF_RECV || r->at != p || !next_hot_locked(p, mine, &work, &spins))
				goto out;
	}
out:
	wf_port_leave_hot(p, mine);
	if (wf_unlikely(work.copies != NULL))
		wf_work_do(p, &work);
	return i == n;
}

/* Where the first of these is received, if it is at a native port of a context. A request that is not over keeps its port open; one that is tells of
 * one that may be another's by now, which can be visited and has nothing of ours. */
static __attribute__((noinline)) bool await_there(struct weft_req **reqs, int n)
{
	struct weft_req *r = reqs[0];

	return r->what == WF_RECV && r->at && !r->at->proto && await_at(r->at, false, reqs, n);
}

bool wf_await_hot(struct weft_req **reqs, int n)
{
	if (wf_unlikely(reqs[0] && reqs[0]->at != wf_self.port))
		return await_there(reqs, n);
	return await_at(wf_self.port, true, reqs, n);
}

/* A cancelled thread's operation ends with it. */
static void abandon(void *arg)
{
	struct weft_req *r = arg;

	wf_self.waiting = false;
	weft_req_cancel(r);
	wf_await(&r, 1, 1, WEFT_FOREVER);       /* too late to cancel: our memory is being written */
	wf_req_collect(r, NULL);
}

static int await_one(struct weft_req *r, weft_time until)
{
	int err;

	pthread_cleanup_push(abandon, r);
	err = wf_await(&r, 1, 1, until);
	pthread_cleanup_pop(0);
	return err;
}

int wf_finish(struct weft_req *r, weft_time until, struct weft_status *ret_st)
{
	int late = await_one(r, until), err;

	if (late) {
		weft_req_cancel(r);
		await_one(r, WEFT_FOREVER);
	}
	err = wf_req_collect(r, ret_st);
	if (late && err == -ECANCELED)
		return wf_late(until);
	return err;
}
