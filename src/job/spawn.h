/* spawn.h - processes this one has asked for. */
#ifndef WF_JOB_SPAWN_H
#define WF_JOB_SPAWN_H

#include <stddef.h>

void wf_spawn_news(const void *bytes, size_t n);        /* [listener] WF_NOTE_LAUNCH's */
void wf_spawns_close(void);                             /* [one thread, leaving] what is still to be told ends with -ECANCELED */

#endif
