/* host.h - the other processes of this host, as ports see them: frames from them, their deaths. */
#ifndef WF_PORT_HOST_H
#define WF_PORT_HOST_H

#include "net/local/peer.h"
#include "weft/port.h"

/* @meet, @near: as in struct wf_peer_hooks. */
const struct wf_peer_hooks *wf_host_hooks(int (*meet)(uint32_t process, int *ret_board_fd, int *ret_event_fd), int (*near)(uint32_t process));

/* [listener] Everything that came from others, and what goes on with them: how much. */
int wf_host_attend(void);
bool wf_host_waiting(void);             /* [listener] has something come? Exact behind a heavy fence */
int64_t wf_host_patience(void);         /* [listener] how long it may sleep without being rung, in ns */

/* [listener] What the agent says. */
void wf_host_joined(uint32_t process);
void wf_host_dead(uint32_t process);    /* it is dead, or has left: what it published is taken first, then whoever waits for it is told */

void wf_host_settled(uint32_t process); /* everybody has acted on that: what flew comes home, and its memory goes when nobody has any of it */

/* [any] @id, of this process, has ended, and another process watches it. */
void wf_host_tell_ended(weft_id id);
/* [any] A message of @src, of another process, was not received. */
void wf_host_tell_lost(weft_id src, weft_ctx context, weft_id by, size_t len);

#endif
