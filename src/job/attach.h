/* attach.h - other jobs, as a process has to do with them: offering, attaching, and asking their directories. */
#ifndef WF_JOB_ATTACH_H
#define WF_JOB_ATTACH_H

#include <stddef.h>
#include <stdint.h>

void wf_attach_open(void);                              /* [one thread, joining] there is an agent to be asked */
void wf_attach_close(int err);                          /* [any] whatever waits for an answer ends with @err */

/* [listener] */
void wf_attach_treaty(const void *bytes, size_t n);     /* WF_NOTE_TREATY: u32 alias, u32 side, 16 bytes id, 32 bytes key */
void wf_attach_news(const void *bytes, size_t n);       /* WF_NOTE_ENVOY */
void wf_attach_over(uint32_t alias);                    /* what was asked there is not answered any more */

#endif
