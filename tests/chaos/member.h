/* member.h - one process of a chaos job: what its main thread and its workers share. */
#ifndef CHAOS_MEMBER_H
#define CHAOS_MEMBER_H

#include <stdbool.h>
#include <weft/weft.h>

#include "score.h"

extern struct score *score;
extern struct score_row *mine;
extern uint32_t rank;
extern weft_id everybody[EVERYBODY];            /* by rank * WORKERS + worker; 0: its process died before it said who it is */
extern _Atomic uint32_t dead;                   /* bit per member that is gone, as weft said */

/* Notes a fault, the first one in words. */
void fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* weft said that @member is gone (@err): is that so? */
void told_dead(uint32_t member, int err, const char *by);

/* [a worker, in its own thread] All its traffic, until everything is accounted for. */
void worker_run(uint32_t number);

#endif
