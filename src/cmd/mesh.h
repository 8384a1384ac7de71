/* mesh.h - the agents of a job among themselves.
 *
 * Each is a process of the job with a number of its own (WF_AGENTS + host) and speaks weft, over the rails and records that processes have. They tell each
 * other which process is where and which is gone, and that they are there. Who they are is the launcher's to say.
 */
#ifndef MESH_H
#define MESH_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct body;

int mesh_open(struct agent *a);                         /* this agent can be reached, and the launcher is told where; -1: it was said why not */
void mesh_members(struct agent *a, struct body *b);     /* CONTROL_MEMBERS; false: nonsense */
void mesh_lost(struct agent *a, uint32_t host);         /* CONTROL_LOST: all of it is dead */
void mesh_server(struct agent *a, uint32_t host);       /* CONTROL_SERVER */
void mesh_event(struct agent *a);                       /* something came, or went */

/* News of this host for the others. */
void mesh_here(struct agent *a, uint32_t process);
void mesh_gone(struct agent *a, uint32_t process, int status, bool left);

int64_t mesh_next(const struct agent *a);               /* when to look again; 0: never */
void mesh_look(struct agent *a, int64_t now);

#endif
