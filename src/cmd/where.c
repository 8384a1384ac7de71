/* where.c - which process is on which host, and where others reach it.
 *
 * The table is by number. What was not told to anybody yet (a process that has not joined) is not known here either; a job whose hosts are
 * started by hand (--host) needs no telling: there each process listens on the port that its place in the list gives it.
 */
#include "where.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/hosts.h"

struct spot *where_spot(struct where *w, uint32_t process)
{
	return process < WF_AGENTS ? &w->spots[process] : NULL;
}

/* By the list of hosts. */
void where_listed(struct where *w, const struct wf_hosts_map *map)
{
	for (uint32_t h = 0; h < map->hosts; h++)
		for (uint32_t i = map->host[h].first; i < map->host[h].first + map->host[h].count && i < WF_AGENTS; i++) {
			w->spots[i] = (struct spot){ .known = true, .host = h };
			wf_hosts_place(map, i, w->spots[i].at, sizeof(w->spots[i].at));
		}
}

void where_answer(struct where *w, uint32_t process, struct wf_frame_where *ret)
{
	struct spot *s = where_spot(w, process);

	memset(ret, 0, sizeof(*ret));
	ret->what = WF_CALL_WHERE;
	if (!s || !s->known || s->gone) {
		ret->result = -ESRCH;
		return;
	}
	ret->host = s->host;
	ret->near = s->host == w->host;
	for (ret->last = process; ret->last + 1 < WF_AGENTS && w->spots[ret->last + 1].known && w->spots[ret->last + 1].host == s->host; ret->last++)
		;
	if (ret->near)
		return;
	ret->result = s->at[0] ? 0 : -EAGAIN;
	memcpy(ret->at, s->at, sizeof(ret->at));
}
