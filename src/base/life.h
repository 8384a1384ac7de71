/* life.h - whether this process is in a job: what every call asks before anything else. */
#ifndef WF_BASE_LIFE_H
#define WF_BASE_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

enum wf_life { WF_OUT, WF_IN, WF_CHILD };

extern _Atomic int wf_life;     /* acquire where what weft_init set up is used next; else relaxed */

int wf_not_in(void);            /* -ENOTCONN or -ECHILD, with words */

/* A forked child has the words but neither the segments nor the other threads, and locks as they were: nothing of it is its own. */
static inline bool wf_is_child(void)
{
	return atomic_load_explicit(&wf_life, memory_order_relaxed) == WF_CHILD;
}

#endif
