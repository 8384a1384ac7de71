/* atomic.c - does this aarch64 have LSE? See atomic.h. */
#include "base/atomic.h"

#if WF_ASK_LSE
#include <sys/auxv.h>

#define HWCAP_LSE (1ul << 8)            /* "atomics" in /proc/cpuinfo */

bool wf_have_lse;

__attribute__((constructor)) static void ask(void)
{
	wf_have_lse = getauxval(AT_HWCAP) & HWCAP_LSE;
}
#else
typedef int wf_atomic_nothing_here;
#endif
