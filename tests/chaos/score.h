/* score.h - what the members of a chaos job and their nemesis know of each other, in a file they all map.
 *
 * weft itself is what is being judged, so nothing of the judging goes through it. A member writes its own row; the nemesis
 * sets `killed` before it kills, so that whoever is told of a death can see whether that is true.
 */
#ifndef CHAOS_SCORE_H
#define CHAOS_SCORE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMBERS 8
#define WORKERS 8
#define EVERYBODY (MEMBERS * WORKERS)
#define LARGEST (16u << 20)

enum { PHASE_NONE, PHASE_JOINING, PHASE_HELLO, PHASE_TRAFFIC, PHASE_LEAVING, PHASE_OVER };

struct score_row {
	_Alignas(128) _Atomic pid_t pid;
	_Atomic uint32_t phase;
	_Atomic uint32_t faults;
	_Atomic uint32_t left;                  /* bit per member of which WEFT_LEFT came */
	_Atomic uint64_t sent, received, bytes, refused, cancelled;
	_Atomic uint64_t beat[WORKERS];         /* turns of a worker's loop */
	_Atomic uint32_t where[WORKERS];        /* line of its last beat */
	char fault[256];                        /* the first one in words */
};

struct score {
	uint64_t seed;
	uint32_t traffic_ms;
	uint32_t patience_ms;                   /* how long the end of a round may take */
	_Atomic uint32_t killed;                /* bit per member; set before the kill */
	struct score_row row[MEMBERS];
};

#endif
