/* job.h - one job of three actors, one of them traced. What goes wrong is printed where it is found, and the answer is false. */
#ifndef SWEEP_JOB_H
#define SWEEP_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "script.h"
#include "trace.h"

struct job {
	pid_t weft;                     /* the launcher */
	int sock[ACTORS];
	struct answer actor[ACTORS];
	struct traced victim;
	bool seized;
	struct order order;
	int errors;                     /* what the job says on its standard error */
};

void jobs_open(void);                   /* once, before the first */
const char *act_name(uint32_t act);
bool act_plays_once(uint32_t act);

/* All have joined, and the victim is traced. job_end follows, also if it failed. */
bool job_start(struct job *j, uint32_t act, uint32_t seed);
bool job_begin(struct job *j);          /* the victim is at the beginning of its act */
enum trace_end job_steps(struct job *j, unsigned step);
bool job_finish(struct job *j, enum trace_end at);              /* what remains of the act, and what the others see of it */
bool job_end(struct job *j, bool good, int code);               /* everything ends; @code is what the launcher must say */

bool job_tell(struct job *j, enum sweep_order what);            /* the survivors; they answer later */
bool job_told(struct job *j);
bool job_order(struct job *j, enum sweep_order what);           /* both */
bool job_failed(struct job *j, const char *what, const char *detail);   /* says so, and where the victim was */

#endif
