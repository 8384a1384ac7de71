/* timer.h - operations that end by themselves (op.expires): a heap by instant, served by the listener. */
#ifndef WF_PORT_TIMER_H
#define WF_PORT_TIMER_H

#include <weft/base.h>

weft_time wf_timers_run(void);          /* [listener] ends what has expired; the next instant or WEFT_FOREVER */
weft_time wf_timers_next(void);

#endif
