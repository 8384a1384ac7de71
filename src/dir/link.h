/* link.h - this process's place in the directory, and what carries its messages to whoever serves it.
 *
 *     calls.c --> here.c --> client.c ==messages==> link (the agent's socket) ==> the agent that serves --> server.c
 *                                     ==direct====================================================> server.c   (a job of one)
 *
 * The link is reliable and in order; a message is whole, WF_DIR_MESSAGE bytes at most (msg.h). The directory's messages come on it in order
 * with the news of deaths: so nobody answers from its cache for an entity after it was told that its process is gone.
 */
#ifndef WF_DIR_LINK_H
#define WF_DIR_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

struct wf_dir_link {
	/* [any, one at a time; a lock of the directory is held] 0: will arrive. -EAGAIN: no room now; wf_dir_flush is called when there is.
	 * -ECONNRESET: nobody will ever read it. Calls nothing of this room. */
	int (*send)(const void *msg, size_t len);
};

/* [one, after weft_init has set up the ports] This process is @process. @link NULL: a job of one; the directory is served here.
 * 0; -EALREADY: it is open; -ENOMEM. */
int wf_dir_open(const struct wf_dir_link *link, weft_id process);

/* [one] The entity of this process: its name (NULL: that of the program) and its attributes (NULL: none). The first call counts for the name.
 * -EINVAL: no such words. Without it the process is there under the program's name. */
int wf_dir_self(const char *name, const char *attrs);

/* [one at a time] What came by the link. -EBADMSG: it was no message of a directory, and nothing has happened. */
int wf_dir_take(const void *msg, size_t len);

/* [any] There is room on the link again. */
void wf_dir_flush(void);

/* [any] Whoever served is gone: until its successor says MOVED look-ups answer -EAGAIN, and nothing comes from the cache. */
void wf_dir_moving(void);

/* [any] The link is gone for good: what waits ends with -ECONNRESET, and so does every later call. */
void wf_dir_lost(void);

/* [one, while the process can still complete requests] Everything that waits or watches ends with -ECANCELED. */
void wf_dir_close(void);

/* [any] Messages to and from whoever serves, in a process's life. */
uint64_t wf_dir_messages(void);

#endif
