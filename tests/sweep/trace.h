/* trace.h - one thread of another process, run instruction by instruction. */
#ifndef SWEEP_TRACE_H
#define SWEEP_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct traced {
	pid_t pid;
	uint64_t mark;                  /* a function that is a breakpoint and a return */
	uint64_t text, text_end;        /* steps are counted in here */
	uint64_t pc;
	unsigned steps;                 /* so far, since the mark */
	int status;                     /* of the last wait */
	bool running;                   /* a step was begun and its end not waited for */
};

enum trace_end {
	TRACE_STEP,                     /* the step asked for */
	TRACE_MARK,                     /* at a mark */
	TRACE_ASLEEP,                   /* by trace_sleeps: it waits in the kernel */
	TRACE_GONE,                     /* it ended, status tells how */
	TRACE_LATE                      /* interrupted by a signal */
};

bool trace_possible(void);                                      /* not refused here */
int trace_seize(struct traced *t);                              /* 0, or -errno */
enum trace_end trace_to_mark(struct traced *t);                 /* running, until it comes to a mark */
enum trace_end trace_steps(struct traced *t, unsigned step);    /* at a mark or a step: on to step number @step */
int trace_run(struct traced *t);                                /* at a mark or a step: runs on */
int trace_leave(struct traced *t);                              /* at a step: runs on, and is traced no more */
enum trace_end trace_interrupt(struct traced *t);               /* running: TRACE_STEP, if it is stopped now */
bool trace_sleeps(struct traced *t);
bool trace_stop(struct traced *t);                              /* at a step: all its threads are stopped; false: they are not */
void trace_continue(struct traced *t);                          /* the opposite; this thread stays at its step */
void trace_kill(struct traced *t);                              /* and reaped */

#endif
