/* join.h - short messages that wait for company are joined by others like them, without the trunk's lock.
 *
 * Who sends many in a row, each like the last but for its payload, passes the same questions each time, under a lock that nobody else wants: a call takes 90 cycles, and 55 without (x86-64,
 * in turns; the exchange that takes it has to wait for all that was stored before). So behind one of them that waits the row is lent to its thread (base/lease.h), with how many more may follow and where: then each is a comparison and a copy.
 * What the remote counts is told for all of them at once, by whoever takes the lock next, before he looks at anything. That takes a heavy fence if it is another thread; so where that happens the next ones
 * are sent by the lock for a while, each time longer.
 */
#ifndef WF_WIRE_JOIN_H
#define WF_WIRE_JOIN_H

#include "peer/brief.h"
#include "port/self.h"
#include "wire/hot.h"

/* [thread] True: it waits with those before it. False: nothing happened. */
static inline __attribute__((always_inline)) bool wf_joins(struct wf_trunk *t, const struct weft_port *from, uint32_t to, uint64_t tag, const void *data, size_t len)
{
	struct wf_join *j = &t->join;
	bool so;

	if (wf_likely(wf_lease_name(&j->lease) != wf_self.id) || !wf_lease_enter(&j->lease, wf_self.id, &wf_self.port->joins))
		return false;
	so = wf_likely(j->from == from && !((j->tag ^ tag) | (j->to ^ to) | (j->len ^ len)) && j->left) && wf_likely(--j->left % (WF_UNCLOCKED + 1) || wf_trunk_waits(t));
	if (wf_likely(so)) {
		wf_copy_words(j->place, data, len);
		j->place += len;
		j->n++;
	}
	wf_lease_leave(&wf_self.port->joins);
	return so;
}

/* [thread, trunk.lock] @b, which is from @from and waits, may be joined by more. */
static inline void wf_join_lend_locked(struct wf_trunk *t, const struct weft_port *from, const struct wf_brisk *b)
{
	if (wf_unlikely(t->join.rest))
		t->join.rest--;
	else if (wf_likely(from == wf_self.port && !b->context))
		wf_join_begin_locked(t, b);
}

#endif
