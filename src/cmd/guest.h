/* guest.h - processes that come to the job by themselves: who listens for them, and their places. */
#ifndef GUEST_H
#define GUEST_H

#include <stdint.h>

struct agent;

int guest_open(struct agent *a);                        /* listens; where is in a->url. Without it nobody can come: -1, and the job goes on */
void guest_arrives(struct agent *a);                    /* somebody is at the socket */
void guest_knocks(struct agent *a, uint32_t slot);      /* one of them says something, or has gone */
void guest_number(struct agent *a, uint32_t ticket, uint32_t base);     /* for one of them, if the ticket is */

#endif
