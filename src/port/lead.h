/* lead.h - who watches the rails: whoever waits, else the listener.
 *
 * A thread that spins looks at them itself. Of those that sleep one leads: it sleeps on the rails' descriptor, so what arrives for it needs no second switch; the
 * others sleep on their own words. While somebody looks or leads the listener keeps out of the way: it only comes by, after an eighth of a millisecond and then ever more seldom,
 * once a millisecond at last, or, where it finds somebody there each time, after a fourth of the time that this has been so, 8 ms at most, to see whether that is still so. Who begins what goes on while he may compute calls it back then (wf_lead_soon). When nobody looks it watches them itself. A process at rest has nobody awake. While a thread is at the rails, which
 * may take it long if it writes much, nobody else watches them: their descriptor would tell again and again of what only that one can take.
 *
 * Who spins may take a busy lane out of what the descriptor tells of; it is put back before somebody sleeps there (arm). So nobody spins like that while another leads, and
 * who finds a leader after such a look wakes it, to arm again. The listener, too, is woken by the first who looks while it sleeps on the descriptor.
 *
 * Where that descriptor is an epoll set (WEFT_DRIVER_EPOLL) the leader's own one lies in it, and it sleeps there: one descriptor instead of two, and not by way of another set. What was rung for a
 * leader that had gone stays readable: the next leader reads it, or the listener before it watches (hush).
 * So lies a timer, which goes off when something is due at the latest: a leader sleeps without a limit of its own (alarm_by).
 *
 * What takes a while and need not be done by who brings it can be left to the listener (an errand); who waits meanwhile finds it due, and does it first.
 *
 * A leader's park word says 2 instead of 1: who wakes it writes to the leader's descriptor instead of the futex. Another process of this host cannot: it
 * rings the listener, which passes it on (wf_lead_listen).
 */
#ifndef WF_PORT_LEAD_H
#define WF_PORT_LEAD_H

#include "base/park.h"
#include "port/route.h"
#include "port/self.h"

int wf_lead_init(int set);              /* [one thread] @set: an epoll set of the rails to sleep in; -1: none */
void wf_lead_fini(void);

void wf_lead_soon(void);                /* [any] something is under way, or waits for company, and who began it may compute now: then it is to be seen to within a millisecond or two */
void wf_lead_hurry(weft_time when);     /* [any] route.h's next() says @when now, or did: who sleeps on the rails for longer looks again */

/* For wf_lead_look alone. */
extern _Atomic(struct wf_parker *) wf_leader WF_HERE;   /* asleep on the rails */
extern _Atomic bool wf_lead_attended WF_HERE;           /* somebody has looked since the listener did */
void wf_lead_attend(void);
void wf_lead_ring(void);

#define WF_LEAD_ABROAD 64               /* waits that look at the rails first, behind a look there that found something */

/* One look at the lane that spoke last, and at the others now and then. As poll of route.h. */
static inline int wf_lead_glance(void)
{
	bool spins = !atomic_load_explicit(&wf_leader, memory_order_relaxed);
	int n = wf_hosts->poll(spins);

	if (n > 0)
		wf_self.abroad = WF_LEAD_ABROAD;
	/* Who leads said so before it took the rail's lock to arm. If that was before our look took it we see it here; if behind it, it has put back what we took out. */
	if (wf_likely(spins) && wf_unlikely(atomic_load_explicit(&wf_leader, memory_order_relaxed) != NULL))
		wf_lead_ring();
	return n;
}

/* [any, no lock] What has come by the rails: how many things happened. */
static inline int wf_lead_look(void)
{
	if (wf_unlikely(!atomic_load_explicit(&wf_lead_attended, memory_order_relaxed)))
		wf_lead_attend();
	return wf_lead_glance();
}

/* [any] route.h's turn() has work that takes a while, and who brought it may have another use for its time: the listener does it now, unless somebody who waits is first. */
void wf_lead_errand(void);
bool wf_lead_helps(void);               /* [any] a hint: it would likely be first, and not take the caller's core for it */
bool wf_lead_sent_for(void);            /* [listener, about to sleep] it was given an errand */
bool wf_lead_unrung(void);               /* [listener, about to sleep] the leader is to be rung yet */

/* As wf_park, as the leader if there is none. */
int wf_lead_park(struct wf_parker *p, weft_time until, void (*cleanup)(void *), void *arg);

bool wf_lead_free(void);                /* [any] a hint: who parks now leads */

/* [listener] Its part: how many things happened; then what it sleeps on beside its own (-1: nothing) and for how long at most. */
int wf_lead_listen(void);
int wf_lead_watch(int64_t *patience);

#endif
