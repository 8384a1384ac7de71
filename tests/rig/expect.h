/* expect.h - what a program of a job on several hosts expects: EXPECT says on which line it is not so, and counts. */
#ifndef RIG_EXPECT_H
#define RIG_EXPECT_H

#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

#define SOON weft_in(20 * WEFT_S)

static _Atomic int faults;

static inline void expect(int line, long got, long wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s: line %d: %ld where %ld was expected: %s\n", program_invocation_short_name, line, got, wanted, weft_last_error());
	faults++;
}
#define EXPECT(got, wanted) expect(__LINE__, (long)(got), (long)(wanted))

#endif
