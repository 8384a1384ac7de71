/* weft/port.h - where messages leave from and arrive: mailbox, matcher, waiters; and the
 * context they belong to.
 *
 * Every thread has a port of its own (written NULL), a process has one (weft_port_world), and
 * more are opened here. What is sent from a port of context c reaches the peer's port of
 * context c and no other. A context's number is made by one member and told to the others;
 * messages that come before the port is open are held and come first when it opens.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#include <weft/base.h>
#include <weft/id.h>
#include <weft/req.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_port;
struct weft_proto;

typedef uint64_t weft_ctx;              /* 0: none; never used twice */

enum {
	WEFT_PORT_OWNED = 1,            /* only the opener receives */
	WEFT_PORT_OBSERVE = 2,          /* groups: see and send, be no member */
	WEFT_PORT_FRAGILE = 4,          /* a member's end (or its process's) ends every pending and later operation on the port: -ECONNRESET */
	WEFT_PORT_WARY = 8              /* it ends receives and probes from anyone: those that wait, else the next that finds nothing; -ECONNRESET.
					   Later ones wait again, unless every other member has ended. Matched by source and tag only */
};

struct weft_port_opts {
	uint32_t size, flags;
	const char *name;               /* shown in state; found in the directory */
	weft_ctx context;               /* by number; or */
	const char *channel;            /* by text: the same text is the same context in the whole job */
	const weft_id *members;         /* what weft_at(i) means here: processes or threads; copied */
	uint32_t count, index;          /* how many; what the others call me (their table need not be mine) */
	const struct weft_port *like;   /* members and index of that port instead; the table is shared */
	int rail;                       /* for all its traffic; 0: any */
	uint32_t limit;                 /* posted operations under way before -EAGAIN; 0: no limit */
	const struct weft_proto *proto; /* see match.h; NULL: matched by source and tag */
	const char *cast;               /* how WEFT_ALL goes; not served yet */
	weft_done_fn event;             /* told of WEFT_LEFT: a member or its process ended; WEFT_LOST: a done send was not received */
	void *user;                     /* in the events' status */
};

struct weft_port_info {
	uint32_t size, flags;
	weft_id id;
	weft_ctx context;
	uint32_t count, index, epoch, dead;     /* members; mine; membership changes; members that ended */
	int rail;
};

weft_ctx weft_ctx_new(void);            /* [nb] (this process, a counter): no traffic; telling the others is up to you. 0: failed */

/**
 * weft_port_open - [nb] open a port. Local; nobody else needs to be told but who shall send to it.
 * Without a context it has an id of its own; with one it is found under its opener's id (the
 * thread's if WEFT_PORT_OWNED, else the process's). Early messages of its context come first.
 * Returns 0; -EEXIST: (id, context) is open; -ESTALE: that context was closed here before;
 * -EPROTO: early messages of another protocol wait in that context; -EINVAL, -E2BIG, -EOPNOTSUPP for options;
 * -ENOMEM; -ENOSPC: no local number is left.
 */
int weft_port_open(const struct weft_port_opts *opts, struct weft_port **ret_port WEFT_GIVES);

/**
 * weft_port_close - close a port: sends from it drain until @until, everything else pending on
 * it ends with -ECANCELED, sends to it that were not received end with -ECONNRESET, and what
 * was done at its sender and not received is lost and counted. NULL is fine (not: "my own port").
 * Returns 0; -ETIMEDOUT (-EAGAIN with WEFT_NOW): closed all the same, but sends of it had to be cancelled;
 * -EPERM: a thread's own or the process's, or OWNED and not the opener's; -EDEADLK in a callback.
 */
int weft_port_close(struct weft_port *port WEFT_TAKES, weft_time until);

struct weft_port *weft_port_world(void);        /* [nb] the process's own; members: the processes started together, by rank. NULL: not joined */
int weft_port_stat(const struct weft_port *port, struct weft_port_info *ret_info);      /* [nb] set its size. NULL port: my own */
weft_id weft_port_member(const struct weft_port *port, uint32_t index);                 /* [nb] 0 if vacant */
int weft_port_index(const struct weft_port *port, weft_id id);                          /* [nb] or -ENOENT */

#ifdef __cplusplus
}
#endif
#endif
