/* life.h - whether this process is in a job: what every call asks before anything else. */
#ifndef WF_BASE_LIFE_H
#define WF_BASE_LIFE_H

enum wf_life { WF_OUT, WF_IN, WF_CHILD };

extern _Atomic int wf_life;     /* acquire where what weft_init set up is used next; else relaxed */

int wf_not_in(void);            /* -ENOTCONN or -ECHILD, with words */

#endif
