/* grow.h - hosts this process has asked for. */
#ifndef WF_JOB_GROW_H
#define WF_JOB_GROW_H

#include <stddef.h>

void wf_grow_news(const void *bytes, size_t n);         /* [listener] WF_NOTE_GROW's */
void wf_grows_close(void);                              /* [one thread, leaving; listener] who still waits is told -ECANCELED */

#endif
