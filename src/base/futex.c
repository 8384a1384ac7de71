/* futex.c - futex(2) with an absolute CLOCK_MONOTONIC deadline. A step test brings its own two. */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef WF_STEP_TEST

static int wait_on(_Atomic uint32_t *word, int op, uint32_t while_equal, weft_time until)
{
	struct timespec at = { .tv_sec = until / WEFT_S, .tv_nsec = until % WEFT_S };

	if (until != WEFT_FOREVER && until <= 0)
		return -ETIMEDOUT;
	if (syscall(SYS_futex, word, op, while_equal, until == WEFT_FOREVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY) < 0 &&
	    errno == ETIMEDOUT)
		return -ETIMEDOUT;
	return 0;
}

int wf_futex_wait(_Atomic uint32_t *word, uint32_t while_equal, weft_time until)
{
	return wait_on(word, FUTEX_WAIT_BITSET_PRIVATE, while_equal, until);
}

void wf_futex_wake(_Atomic uint32_t *word, int how_many)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, how_many, NULL, NULL, 0);
}

int wf_futex_wait_far(_Atomic uint32_t *word, uint32_t while_equal, weft_time until)
{
	return wait_on(word, FUTEX_WAIT_BITSET, while_equal, until);
}

void wf_futex_wake_far(_Atomic uint32_t *word, int how_many)
{
	syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

#endif
