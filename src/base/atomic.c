/* atomic.c - what does this aarch64 have? See atomic.h. */
#include "base/atomic.h"

#if WF_ASK_LSE
#include <sys/auxv.h>

#define HWCAP_LSE (1ul << 8)            /* "atomics" in /proc/cpuinfo */
#define HWCAP_RCPC (1ul << 15)          /* "lrcpc" */

bool wf_have_lse, wf_have_rcpc;

__attribute__((constructor)) static void ask(void)
{
	wf_have_lse = getauxval(AT_HWCAP) & HWCAP_LSE;
	wf_have_rcpc = getauxval(AT_HWCAP) & HWCAP_RCPC;
}
#else
typedef int wf_atomic_nothing_here;
#endif
