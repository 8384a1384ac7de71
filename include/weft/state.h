/* weft/state.h - what goes on, seen from inside the process or from outside. */
#ifndef WEFT_STATE_H
#define WEFT_STATE_H

#include <sys/types.h>
#include <weft/base.h>
#include <weft/id.h>
#include <weft/port.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_stats {
	uint32_t size, parked;          /* parked: threads asleep in weft now */
	uint64_t sent, received, bytes_sent, bytes_received;
	uint64_t copies;                /* payload copies made */
	uint64_t wakes;                 /* sleepers woken */
	uint64_t ready_missed;          /* WEFT_READY sends that found no receive posted */
	uint64_t lost;                  /* messages done at their sender and never received */
	uint64_t expected, unexpected, requested, unrequested;  /* length of the four queues now */
	uint64_t unexpected_bytes, budget;
	uint64_t dir_messages;
};

enum { WEFT_STATE_PORT = 1, WEFT_STATE_QUEUED, WEFT_STATE_RAIL, WEFT_STATE_PEER, WEFT_STATE_WAITER, WEFT_STATE_PROCESS };

struct weft_state_item {
	uint32_t size, kind;            /* WEFT_STATE_* */
	weft_id who, whom;
	uint64_t tag, len;
	int64_t age;                    /* ns; 0: not known */
	char text[64];
};

struct weft_state;

int weft_stats_get(const struct weft_port *port, struct weft_stats *ret_stats);         /* [nb] NULL: the whole process; set its size */

/**
 * weft_state_open - a sample of this process (@pid 0 or its own) or of another one, which takes no part in it: it may be stopped,
 * or hang. Another process needs no weft_init here.
 * Returns 0; -ESRCH: there is no such process; -EPERM: it may not be looked at; -ENOENT: it does not use weft;
 * -EPROTO: it runs another version of weft; -EINVAL; -ENOMEM; of this process as weft_stats_get.
 */
int weft_state_open(pid_t pid, struct weft_state **ret_state WEFT_GIVES);
int weft_state_next(struct weft_state *state, struct weft_state_item *ret_item);        /* set its size. 0: one item; WEFT_DONE: no more */
int weft_state_close(struct weft_state *state WEFT_TAKES);      /* [nb] */

#ifdef __cplusplus
}
#endif
#endif
