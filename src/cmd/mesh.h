/* mesh.h - the agents of a job among themselves.
 *
 * Each is a process of the job with a number of its own (WF_AGENTS + host) and speaks weft, over the rails and records that processes have. They tell each
 * other which process is where and which is gone, and that they are there. Who they are is the launcher's to say.
 */
#ifndef MESH_H
#define MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct wf_body;

int mesh_open(struct agent *a);                         /* this agent can be reached, and the launcher is told where; -1: it was said why not */
void mesh_close(void);                                  /* this agent ends; what it has said is heard first, within a moment */
void mesh_members(struct agent *a, struct wf_body *b);      /* CONTROL_MEMBERS; the last of them is told of by CONTROL_KNOWN */
void mesh_lost(struct agent *a, uint32_t host);         /* CONTROL_LOST: all of it is dead */
void mesh_server(struct agent *a, struct wf_body *b);      /* CONTROL_SERVER */
void mesh_listen(const struct agent *a);                  /* CONTROL_LISTEN */
const char *mesh_name(const struct agent *a, uint32_t host);            /* NULL: it is not in */
bool mesh_is_lost(uint32_t host);                                        /* it was in, and will not be again */
uint32_t mesh_slots(const struct agent *a, uint32_t host);              /* of a host that is in */
const char *mesh_at(void);                              /* where this agent is, as its driver writes it */
void mesh_event(struct agent *a);                       /* something came, or went */

/* News of this host for the others. */
void mesh_here(struct agent *a, uint32_t process);
void mesh_gone(struct agent *a, uint32_t process, int status, bool left);

/* The directory's (post.h): to who serves, of processes of this host; and to the agent of a process. */
void mesh_joined(struct agent *a, uint32_t host, uint32_t process);
void mesh_all(struct agent *a, uint32_t host);
void mesh_ask_all(struct agent *a);
void mesh_said(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len);
void mesh_told(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len);

/* What launch.h and weft_kill have for other agents. */
enum mesh {
	MESH_BEAT = 1,
	MESH_HERE,                      /* u32 process, text where; "": it has not said */
	MESH_GONE,                      /* u32 process, u32 status, u32 left */
	MESH_JOINED,                    /* u32 process: of the directory, and so are the next three: post.h */
	MESH_ALL,
	MESH_SAID,                      /* u32 process, bytes */
	MESH_TOLD,                      /* u32 process, bytes */
	MESH_KILL,                      /* u32 process, u32 signal */
	MESH_LAUNCH_PLAN,               /* u32 base, u32 count, u32 host of each */
	MESH_LAUNCH_KNOWN,              /* u32 base */
	MESH_LAUNCH_START,              /* as PLAN, and the spec */
	MESH_LAUNCH_NEWS,               /* as WF_NOTE_LAUNCH */
	MESH_LAUNCH_OUTPUT,             /* u32 process, bytes that it has printed, for who asked for it; none: that was all */
	MESH_LAUNCH_WRITTEN,            /* u32 process, u32 how many of them were written */

	/* among those without a launcher above them (hosted.h): two numbers each */
	MESH_IDLE,                      /* whether all of this host are gone */
	MESH_OVER,                      /* those of all hosts are */
	MESH_LOST,                      /* host: it is no more */
	MESH_ABORT,                     /* a process has ended the job */
	MESH_NUMBERS,                   /* ticket, how many */
	MESH_NUMBERED,                  /* ticket, the number before the first; 0: there are no more */

	MESH_EMBASSY,                   /* of other jobs: embassy.h */
	MESH_WHO,                       /* who serves from now on asks for JOINED and ALL */
};
void mesh_launch(struct agent *a, uint32_t host, enum mesh what, const void *bytes, size_t n);
int mesh_kill(struct agent *a, uint32_t host, uint32_t process, int sig);       /* 0: it was told; -ESRCH: that host is not in */

int64_t mesh_next(const struct agent *a);               /* when to look again; 0: never */
void mesh_look(struct agent *a, int64_t now);

#endif
