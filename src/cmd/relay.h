/* relay.h - output of processes here that goes to a descriptor of who asked for them, on another host (WEFT_SPAWN_OUTPUT). The other end is outlet.h.
 *
 *   process --pipe-- agent of its host -------- MESH_LAUNCH_OUTPUT --------> agent of who asked --descriptor-- whoever reads
 *                          relay       <------- MESH_LAUNCH_WRITTEN --------       outlet
 *
 * Of each process no more is on its way than RELAY_WAY: a reader that does not read stops the processes that write there, and nobody else. Its end is told to who asked when all
 * that it had printed was written; or when nothing was taken for RELAY_PATIENCE.
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "job/body.h"

#define RELAY_PIECE (16u << 10)         /* bytes of a message */
#define RELAY_WAY (2 * RELAY_PIECE)

struct agent;
struct place;

/* Before it is started: what @p prints goes to @host. 0, or a negative errno, and that host is told that nothing comes. */
int relay_open(struct agent *a, struct place *p, uint32_t host);
void relay_none(struct agent *a, uint32_t process, uint32_t host);      /* it will not even be tried to start it */
void relay_ready(struct agent *a, uint32_t process);                    /* there is something to read */
bool relay_ended(struct agent *a, const struct place *p, int status);   /* it has: true: launch_over will tell of it later */
void relay_heard(struct agent *a, uint32_t host, struct wf_body *b);    /* MESH_LAUNCH_WRITTEN */
void relay_host_gone(struct agent *a, uint32_t host);

int64_t relay_next(const struct agent *a);                              /* when to look again; 0: never */
void relay_look(struct agent *a, int64_t now);

#endif
