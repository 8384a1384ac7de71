/* outlet.h - a descriptor of a process here, to which output of processes of other hosts goes that it has asked for (WEFT_SPAWN_OUTPUT). The other ends are relays: relay.h.
 *
 * It is open as long as one of them may still print. What cannot be written, nobody reading any more or the disk being full, is thrown away, and the processes do not notice.
 */
#ifndef OUTLET_H
#define OUTLET_H

#include <stdint.h>

#include "job/body.h"

struct agent;

/* Takes @fd, for the processes from number @first on, of which each is on one of @hosts; those of this host write for themselves. */
void outlet_open(struct agent *a, int fd, uint32_t first, const uint32_t *hosts, uint32_t count);
void outlet_heard(struct agent *a, uint32_t host, struct wf_body *b);   /* MESH_LAUNCH_OUTPUT */
void outlet_ready(struct agent *a, uint32_t first);                     /* there is room to write */
void outlet_host_gone(struct agent *a, uint32_t host);

#endif
