/* stage.h - what a villain, two honest processes and the test that watches them share, in a file they all map. */
#ifndef HOSTILE_STAGE_H
#define HOSTILE_STAGE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <weft/weft.h>

#define HONEST 2u                       /* ranks 0 and 1; the villain is rank 2 */
#define PAIRS 2u                        /* threads of an honest process that speak with the other honest one */
#define DEEDS_MOST 16

/* What the villain may lay hands on: what is his own, and those words of others that he has to write in honest traffic (where
 * the honest must lose nothing among themselves); or everything of others that is mapped (where nothing is promised but that
 * nobody breaks). */
enum { VILLAIN_LIES, VILLAIN_RAGES };

struct stage_row {
	_Alignas(128) _Atomic pid_t pid;
	_Atomic weft_id duty;           /* the thread that speaks with the villain */
	_Atomic uint32_t faults, over;
	_Atomic uint64_t beat, exchanged, with_villain, refused;
	char fault[256];
};

struct stage {
	uint64_t seed;
	uint32_t ms, mode;
	_Atomic uint64_t deeds[DEEDS_MOST];     /* by kind */
	_Atomic weft_id villain;
	struct stage_row row[HONEST + 1];
};

extern struct stage *stage;
extern struct stage_row *mine;
extern uint32_t rank;

void fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void honest_run(void);
void villain_run(void);

static inline uint64_t roll(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif
