/* mails.h - what upper.c asks of mails.c. */
#ifndef MAILS_H
#define MAILS_H

#include "sim.h"

uint64_t mail_context(uint32_t port);                   /* of messages to that port */
uint8_t *mail_memory(uint64_t len);
bool mail_holds(const uint8_t *mem, uint64_t len, uint32_t id);         /* are these the bytes of message @id? */
void mail_shut(struct world *w, uint8_t *mem, uint64_t len);            /* nobody is to write there any more */
struct mail *mail_of(struct proc *p, uint32_t other, const struct wf_rmsg *m);         /* whose header came; NULL: nobody has sent it, and the run has failed */

#endif
