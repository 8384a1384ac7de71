/* post.h - the directory at an agent: what its processes say goes to the agent that serves, what that tells them comes back.
 *
 * The only agent serves; of several the one whom the launcher names. What a process says to the directory and hears from it is dir/msg.h's, and none of
 * anybody's business on the way.
 */
#ifndef POST_H
#define POST_H

#include <stddef.h>
#include <stdint.h>

struct agent;
struct place;
struct wf_dir_server;

int post_open(struct agent *a);                                         /* -1: no memory */
void post_server(struct agent *a, uint32_t host, uint32_t epoch);       /* that host's agent serves from now on */
void post_host(struct agent *a, uint32_t host);                         /* an agent is there */
void post_host_gone(struct agent *a, uint32_t host);

/* Processes of this host. */
void post_joined(struct agent *a, uint32_t process);
void post_said(struct agent *a, struct place *p, const void *msg, size_t len);
void post_gone(struct agent *a, uint32_t process);

/* From other agents: of a process of @host. */
void post_far_joined(struct agent *a, uint32_t host, uint32_t process);
void post_far_all(struct agent *a, uint32_t host);                      /* those were all: a new server knows who is there */
void post_asked(struct agent *a, uint32_t host);                       /* that one serves, and wants to know who is here */
void post_far_said(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len);
void post_told(struct agent *a, uint32_t process, const void *msg, size_t len);         /* for a process of this host, by who serves */

struct wf_dir_server *post_serves(void);                                /* NULL: another agent does */
uint32_t post_serving(void);                                            /* its host */

int64_t post_next(const struct agent *a);                               /* when to look again; 0: never */
void post_look(struct agent *a, int64_t now);

#endif
