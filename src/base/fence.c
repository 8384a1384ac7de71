/* fence.c - membarrier(2), or plain fences where it is refused. See fence.h. */
#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool wf_fence_free;
bool wf_fence_global;

void wf_fence_init(bool try_membarrier)
{
	wf_fence_free = !WF_TSAN && try_membarrier &&
			syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

WF_HOT void wf_fence_slow(void)
{
#if WF_TSAN
	static _Atomic unsigned word;

	atomic_fetch_add_explicit(&word, 1, memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void wf_fence_heavy(void)
{
	if (!wf_fence_free || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0)
		wf_fence_slow();
}

void wf_fence_init_global(void)
{
	wf_fence_global = wf_fence_free && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void wf_fence_heavy_far(void)
{
	if (!wf_fence_global)
		wf_fence_heavy();
	else if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) < 0)
		wf_fence_slow();
}
