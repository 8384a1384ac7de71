/* where.h - which process is on which host, as an agent knows it. */
#ifndef WHERE_H
#define WHERE_H

#include <stdbool.h>
#include <stdint.h>

#include "job/frames.h"
#include "mem/segment.h"

struct wf_hosts_map;

struct spot {
	bool known, gone;
	uint32_t host;
	char at[WF_AT_TEXT];            /* "": it has not said */
};

struct where {
	uint32_t host;                  /* this one */
	struct spot spots[WF_AGENTS];   /* by number of process */
};

struct spot *where_spot(struct where *w, uint32_t process);             /* NULL: no number of a process */
void where_listed(struct where *w, const struct wf_hosts_map *map);
void where_answer(struct where *w, uint32_t process, struct wf_frame_where *ret);

#endif
