/* coll_even.c - members of a crowd (coll_crowd.c) lie evenly on the cores.
 *
 * Who waits in a crowd gives its core away and is back at once: to the kernel all of them always run. Uneven as the start has left them they may stay for a whole run of barriers, each of which takes as long
 * as those of the fullest core need in turn (8 ranks on 2 cores: up to 24.5 us; held to four on each, 20). At a barrier each tells where it runs. Now and then who collects that looks, and
 * asks one of the fullest core to go to the emptiest: it is held to that for a moment, which moves it, and then may run where it could before. One that may not run there, as it was bound, stays.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "coll.h"

#define EVERY 64                        /* barriers from look to look, each of which moves one at most */

wm_token wm_even_here(void)
{
	return (wm_token)sched_getcpu() + 1;
}

void wm_even_go(wm_token where)
{
	cpu_set_t before, one;

	if (!where || where > CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0 || !CPU_ISSET(where - 1, &before))
		return;
	CPU_ZERO(&one);
	CPU_SET(where - 1, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 || sched_setaffinity(0, sizeof(before), &before) == 0)
		return;
	memset(&one, 0xff, sizeof(one));        /* what it may use was changed meanwhile: all of that */
	sched_setaffinity(0, sizeof(one), &one);
}

int wm_even_look(const wm_token *here, int n, wm_token *ret_where)
{
	static atomic_uint barriers;
	unsigned short count[CPU_SETSIZE] = { 0 };
	int full = sched_getcpu(), empty = -1, who = -1;
	cpu_set_t mine;

	if (atomic_fetch_add_explicit(&barriers, 1, memory_order_relaxed) % EVERY || full < 0 || full >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(mine), &mine) < 0)
		return -1;
	count[full]++;
	for (int i = 0; i < n; i++) {
		if (!here[i] || here[i] > CPU_SETSIZE)
			return -1;
		count[here[i] - 1]++;
	}
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &mine))
			continue;
		if (count[i] > count[full])
			full = i;
		if (empty < 0 || count[i] < count[empty])
			empty = i;
	}
	if (empty < 0 || count[full] - count[empty] < 2)
		return -1;
	for (int i = 0; i < n; i++)
		if (here[i] - 1 == (wm_token)full)
			who = i;
	*ret_where = (wm_token)empty + 1;
	return who;
}
