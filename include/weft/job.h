/* weft/job.h - the job as a whole. */
#ifndef WEFT_JOB_H
#define WEFT_JOB_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * weft_job_abort - end the whole job now: every process of it on this host is killed, and weft run
 * ends with @code & 0xff, or with 1 where that is 0. Processes of other hosts see that these are gone.
 * @why: words for the user, one line; NULL: none.
 * Does not return: if nobody ends this process within a second it does so itself. Nothing is drained,
 * no exit handler runs. Of several calls, in any processes, the first counts.
 * Returns -ENOTCONN: there was no weft_init; -ECHILD in a forked child. Threads: any, also in a callback.
 */
int weft_job_abort(int code, const char *why);

#ifdef __cplusplus
}
#endif
#endif
