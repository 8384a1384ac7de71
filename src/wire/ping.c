/* ping.c - see ping.h. */
#include "wire/ping.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/wire.h"

void wf_ping_asked(void)
{
	static uint64_t last;                   /* the listener's */
	uint64_t word = atomic_load_explicit(&wf_board->asked, memory_order_relaxed);   /* one word tells all */
	struct wf_trunk *t;
	int r;

	if (wf_likely(word == last))
		return;
	last = word;
	t = wf_trunk_get((uint32_t)word & 0xffffff);
	if (!t || atomic_load_explicit(&t->err, memory_order_relaxed))
		return;
	wf_trunk_lock(t);
	r = wf_remote_ping(&t->remote, (uint32_t)(word >> 40), (uint32_t)(word >> 24) & 0xffff, wf_now());
	wf_unlock(&t->lock);
	if (r == 0)
		wf_trunk_turn(t);
	else
		wf_log(WF_INFO, "process %s is not measured: %d", t->name, r);
}
