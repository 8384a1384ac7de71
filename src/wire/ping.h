/* ping.h - a measurement that somebody asks for from outside (cmd/ping.c): how it is asked.
 *
 * The question is one word on this process's board (board.h), and whoever writes it rings the listener. The answer lies in this process's
 * memory, in the remote of that process (peer/remote.h, struct wf_ping), to be read from outside (port/outside.h). Who may write the one may
 * read the other. A question is bounded, whatever it says, so a neighbour that asks without end costs some round trips and no more.
 *
 *     word = name << 40 | round trips << 24 | process          name: the asker's, to know the answer by; not 0
 */
#ifndef WF_WIRE_PING_H
#define WF_WIRE_PING_H

#include <stdint.h>

static inline uint64_t wf_ping_word(uint32_t name, uint32_t count, uint32_t process)
{
	return (uint64_t)(name & 0xffffff) << 40 | (uint64_t)(count & 0xffff) << 24 | (process & 0xffffff);
}

void wf_ping_asked(void);               /* [listener] */

#endif
