/* crowd.h - one process of a chaos job on several hosts: what its parts share, and what it shares with its nemesis (chaos).
 *
 * The score is a file that all map, whatever host they are on: weft is what is being judged, so nothing of the judging goes through it. It
 * consists of words of 64 bits; chaos counts them, so a change here is one there. Each writes its own row. The nemesis sets `killed` before it kills:
 * who is told of a death can see whether that is true.
 */
#ifndef RIG_CROWD_H
#define RIG_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weft/weft.h>

#define MEMBERS 8u
#define WORKERS 8u
#define EVERYBODY (MEMBERS * WORKERS)
#define LARGEST (8u << 20)

enum { PHASE_NONE, PHASE_JOINING, PHASE_HELLO, PHASE_TRAFFIC, PHASE_LEAVING, PHASE_OVER };

struct row {                                    /* 64 words */
	_Atomic uint64_t pid, phase, faults;
	_Atomic uint64_t sent, received, bytes, refused, cancelled;
	_Atomic uint64_t beat[WORKERS];         /* turns of a worker */
	_Atomic uint64_t line[WORKERS];         /* where it was last */
	char fault[320];                        /* the first one in words */
};

struct score {
	uint64_t seed, traffic_ms, patience_ms;
	_Atomic uint64_t killed;                /* bit per member; set before the kill */
	uint64_t most;                          /* bytes of a message */
	uint64_t unused[3];
	struct row row[MEMBERS];
};

extern struct score *score;
extern struct row *mine;
extern uint32_t rank;
extern weft_id everybody[EVERYBODY];            /* by rank * WORKERS + worker; 0: its process died before it said who it is */
extern _Atomic uint32_t dead;                   /* bit per member that is gone, as weft said */

/* Notes a fault, the first one in words. */
void fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* weft said that @member is gone (@err): is that so? */
void told_dead(uint32_t member, int err, const char *by);

bool means_dead(int err);

/* [a worker, in its own thread] All its traffic, until everything is accounted for. */
void worker_run(uint32_t number);

#endif
