/* launch.h - what a process asks its agent to start: the words between the two (spawn.c, and the agent's launch.c). */
#ifndef WF_JOB_LAUNCH_H
#define WF_JOB_LAUNCH_H

#include "job/body.h"

#define WF_LAUNCH_PARTS 64u
#define WF_LAUNCH_BYTES 61440u          /* of a whole launch */

struct wf_launch_part {
	uint32_t count;
	uint32_t *hosts, hosts_count;   /* numbers of hosts; none: anywhere */
	const char *prog, *dir, *attrs; /* dir, attrs: NULL: none */
	char **argv, **env;             /* with a NULL behind them */
	size_t env_count;
	bool output;                    /* goes to a descriptor that comes along, one of each such part in their order */
};

struct wf_launch_spec {
	bool watched;                   /* who asks wants to know how they end, and whatever that is, it is no failure of the job */
	uint32_t parts, count;          /* count: of processes, over all parts */
	struct wf_launch_part part[WF_LAUNCH_PARTS];
};

void wf_launch_write(struct wf_body *b, const struct wf_launch_spec *spec);
/* Texts lie in the body. False: nonsense, or no memory. */
bool wf_launch_read(struct wf_body *b, struct wf_launch_spec *ret_spec);
void wf_launch_free(struct wf_launch_spec *spec);       /* what reading has taken */

#endif
