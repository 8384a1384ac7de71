/* treaty.h - other jobs that this one is attached to, and how processes of the two call each other.
 *
 * A treaty is what both jobs know of an attachment: a number of 16 random bytes and a key. In handshakes between them these two take the places of a job's own, so
 * neither job learns the other's key, and a process that has no treaty cannot be reached by it. What one job calls the other is its own affair: an alias, which is
 * the job part of ids here, never goes over the wire.
 *
 *     id of a process of the other job      alias 12 | process 20 | 0          `id >> 32`, as for any other: its number here
 *     what it calls itself in a handshake   side 1 | process 20                so both ends have numbers that differ, also where both are process 1
 *
 * Known here   The agent pushes treaties. One that is used before its notice was read is asked for; a stranger's HELLO is compared with what is known, and nobody is asked.
 * Reach        Any process of the other job that holds the treaty may send to any port of this one. Contexts are as in one job, but those that weft_ctx_new gives are given
 *              by each job for itself: only what was made from text, or told by the other, means the same there. Which processes are to be seen, and where they are, is
 *              the agents' to decide.
 * Bounds       WF_TREATIES at a time; a process keeps at most WF_FOREIGNERS of other jobs in its life, WF_FOREIGNERS_OF of one.
 * Life         An alias is used once in a job's life. What is dropped stays in memory until the process leaves: handshakes may be looking at it.
 * Locks        treaties_lock, a leaf.
 */
#ifndef WF_WIRE_TREATY_H
#define WF_WIRE_TREATY_H

#include <stddef.h>
#include <weft/id.h>

#include "secure/handshake.h"
#include "secure/key.h"

#define WF_ALIASES 2048u                /* above: ids of members that are gone (port.h) */
#define WF_TREATIES 256u
#define WF_FOREIGN_SHIFT 20u            /* a number above that is of another job */

struct wf_treaty {
	uint32_t alias;                 /* 1 .. WF_ALIASES - 1 */
	uint32_t me;                    /* what this process calls itself there; 0: its own number */
	uint32_t side;                  /* 0: the job that offered, 1: the one that attached */
	uint8_t id[WF_JOB_BYTES];
	struct wf_key key;
};

static inline bool wf_foreign(uint32_t process)
{
	return process >> WF_FOREIGN_SHIFT;
}

/* [any, no lock] 0, also if it is known already; -EINVAL; -EEXIST: that alias is another's, or was dropped; -ENOSPC; -EOPNOTSUPP: this process is reached by nobody. */
int wf_wire_treaty_add(const struct wf_treaty *t);
void wf_wire_treaty_drop(uint32_t alias);               /* [no lock] its processes are gone, -ECONNRESET, and the alias is over, known or not */
void wf_wire_treaties_drop(void);                       /* [no lock] all of them */

/* For the files of this room. */
void wf_treaties_open(int (*ask)(uint32_t alias, struct wf_treaty *ret));       /* NULL: nobody is asked */
void wf_treaties_close(void);                           /* [leaving] no handshake is left */

/* [any] How this process and @process of another job call each other. 0; else as wf_treaty_fail. */
int wf_treaty_meet(uint32_t process, const struct wf_endpoint **ret_me, uint32_t *ret_them);
int wf_treaty_fail(uint32_t process);                   /* [any] why not, in words: -ESRCH: no such job, or process; -ECONNRESET: no longer */
bool wf_treaty_holds(const struct wf_endpoint *me);     /* [any] it was not dropped */
const struct wf_endpoint *wf_treaty_of_tag(const uint8_t tag[WF_JOB_BYTES]);    /* [any] NULL: none */
uint32_t wf_treaty_caller(const struct wf_endpoint *me, uint32_t called);       /* [any] the number here of who calls itself so there; 0: nobody may */

#endif
