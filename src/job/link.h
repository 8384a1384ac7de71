/* link.h - this process's link to the agent of its host: joining, what it may ask for, what it is told.
 *
 * A process started by an agent inherits a socket, the door (WEFT_AGENT has its number). At weft_init it makes two socket pairs
 * of its own and passes an end of each through the door: one for calls, which the agent answers at once, and one for notices.
 * From then on the door is not used: whoever else inherited it does not keep this process alive in the agent's eyes.
 */
#ifndef WF_JOB_LINK_H
#define WF_JOB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

#include "secure/key.h"

struct wf_welcome {
	uint32_t process;               /* this one's number, base + 1 .. base + count */
	uint32_t base, count;           /* processes started together */
	unsigned char job[16];          /* random */
	uint32_t host, hosts;           /* hosts 0: there is one, and what follows is nothing */
	uint32_t ports, ports_last;     /* where to listen, */
	char adapter[96];               /* and on which adapter, or adapters */
	struct wf_key key;              /* the caller's to wipe */
};

enum { WF_NOTE_JOINED = 1, WF_NOTE_MEET, WF_NOTE_DEAD, WF_NOTE_SETTLED, WF_NOTE_DIR, WF_NOTE_DIR_MOVING, WF_NOTE_DIR_LOST, WF_NOTE_LAUNCH,
       WF_NOTE_TREATY, WF_NOTE_TREATY_OVER, WF_NOTE_ENVOY, WF_NOTE_GROW };

struct wf_note {
	uint32_t what;
	uint32_t process;               /* whom it is about; TREATY_OVER: the alias */
	int32_t status;                 /* DEAD: the wait status, as far as known */
	uint32_t left;                  /* DEAD: said farewell first */
};

/* [one thread] True: an agent started this process (or an ancestor of it), and nobody else has joined in its place yet. *@ret_base: the number before that of rank 0. */
bool wf_link_offered(uint32_t *ret_base);

/* [one thread] Comes to the agent at @url (url.h) by itself, for the place of @rank or, UINT32_MAX, any: from then on this process is offered a place as if it had been started by it. 0; -EINVAL: no url; -EACCES: refused;
 * -ECONNREFUSED: nobody is there; -EOPNOTSUPP: it is of another host. */
int wf_link_visit(const char *url, uint32_t rank, uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count);

/* [one thread] Joins with this process's board (@board_fd) and the descriptor that wakes it (@event_fd, an eventfd). The descriptors stay the
 * caller's. 0; -EACCES: refused, the words say why; -ECONNRESET: no agent answers. */
int wf_link_join(int board_fd, size_t board_bytes, int event_fd, struct wf_welcome *ret_welcome);

/* [any] Calls. Each is answered at once and takes no lock but its own; they may be made under any lock of weft's. All: -ECONNRESET: the agent is gone;
 * -ENOMEM: there was no memory to ask it, -EMFILE: no descriptors: nothing has happened. */

/* Another process's board and the descriptor that wakes it (both the caller's to close); that process gets WF_NOTE_MEET. -EAGAIN: has not
 * joined yet: WF_NOTE_JOINED or WF_NOTE_DEAD will come. -ESRCH: no such process, or gone before it joined. A dead one's board is still given. */
int wf_link_meet(uint32_t process, int *ret_board_fd, int *ret_event_fd);
int wf_link_tell(uint32_t segment, int fd);             /* my segment of that number, 1 or more: others may ask for it from now on */
int wf_link_untell(uint32_t segment);                   /* nobody needs it any more */
int wf_link_give(uint32_t process, uint32_t segment);   /* that segment's descriptor; -ESRCH: none of that number */
int wf_link_acted(uint32_t process);                    /* I have acted on its death */
int wf_link_at(const char *at);                         /* processes of other hosts reach me there */

/* Where @process is: 1: on this host; 0: on another, and *@ret_at is where; -EAGAIN: on another, and has not said where: WF_NOTE_JOINED or WF_NOTE_DEAD will come;
 * -ESRCH: no such process, or gone. */
int wf_link_where(uint32_t process, char *ret_at, size_t n);

/* The same of all from @process to *@ret_last. 1, 0 or -ESRCH. */
int wf_link_near(uint32_t process, uint32_t *ret_last);
int wf_link_dir(const void *msg, size_t len);           /* something for the directory */
int wf_link_launch(uint32_t name, const void *spec, size_t len, const int *fds, unsigned count);   /* launch.h; WF_NOTE_LAUNCH tells of it under @name */
int wf_link_kill(uint32_t process, int sig);            /* a signal; -ESRCH, -EINVAL, -EPERM */
int wf_link_grow(uint32_t name, uint32_t ms, const char *hosts);        /* hosts are to join; WF_NOTE_GROW tells of it under @name; -E2BIG: the list is too long */
struct wf_treaty;
int wf_link_treaty(uint32_t alias, struct wf_treaty *ret_treaty);        /* -ESRCH, -ECONNRESET */
/* A question: 0: WF_NOTE_ENVOY will come, or WF_NOTE_TREATY_OVER. -ESRCH: no job is attached as @alias; -ECONNRESET: no longer; -EOPNOTSUPP: this job cannot be. */
int wf_link_envoy(uint32_t alias, const void *msg, size_t len);
int wf_link_bye(void);                                  /* I leave; after this only closing */

/* [any] The agent is to end the whole job, with exit code @code and the words @why. 0: it has been told, and kills; or it could not be told until @until:
 * another call waits for it that long, or as above. */
int wf_link_abort(int code, const char *why, weft_time until);

/* [listener] Notices: what to poll for reading; the next one: 1, 0: none now, -ECONNRESET: the agent is gone. */
int wf_link_fd(void);
int wf_link_next(struct wf_note *ret_note, const void **ret_msg, size_t *ret_len);      /* DIR: *ret_msg holds until the next call */

void wf_link_close(void);       /* after bye: descriptors only */

#endif
