/* others.h - joining the other processes of a job on this host, and leaving them. */
#ifndef WF_JOB_OTHERS_H
#define WF_JOB_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

/* [one thread] Did an agent start this process? Then it is number *@ret_process, one of *@ret_count above *@ret_base. @url: where it is to ask for a place itself; NULL: it does not. 1, 0: no; -EACCES: the environment says so and
 * makes no sense, or this process has left its job before. */
int wf_others_offered(const char *url, uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count);

/* [one thread] Before memory is taken: it will be shared. -ENOSYS: the kernel gives no memory that can be. */
int wf_others_prepare(uint32_t process);

/* [one thread] The process's port is open: others may come. */
int wf_others_join(uint32_t process, uint32_t base, uint32_t count);
struct wf_wire_self;
struct wf_dir_link;

const struct wf_dir_link *wf_others_dir(void);   /* how the directory is reached, in a job with an agent */
bool wf_others_listed(void);                     /* this process is in the directory: it is no agent */

/* [one thread, before weft_init] This process is an agent: nobody of its host is its peer, and the other agents are reached as @self says, which stays the caller's. weft_init sets *@ret_at
 * to where this one is. */
void wf_others_agent(const struct wf_wire_self *self, char *ret_at, size_t n);

bool wf_others_leave(weft_time until);          /* false: what was on its way to another host then is lost */

#endif
