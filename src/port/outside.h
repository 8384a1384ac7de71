/* outside.h - another process as it is read from outside: its board, its roots, its memory.
 *
 * The process takes no part and pays nothing: its board is found in its map, the board tells where its roots are
 * (base/roots.h), and from there its private memory is read, whether it runs, sleeps, computes or is stopped. Nothing is
 * trusted: an address that cannot be read is a false answer of the kernel's.
 *
 * Whoever may debug a process may read it (ptrace(2), "access mode").
 */
#ifndef WF_PORT_OUTSIDE_H
#define WF_PORT_OUTSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/roots.h"

struct wf_outside {
	pid_t pid;
	int mem;                                /* /proc/PID/mem, where process_vm_readv is refused; else -1 */
	struct wf_roots roots;                  /* as they were when it was opened; checked to be of this build */
};

/* 0; -ESRCH; -EPERM; -ENOENT: no weft in it; -EPROTO: of another make. Needs no weft_init. */
int wf_outside_open(struct wf_outside *o, pid_t pid);
void wf_outside_close(struct wf_outside *o);

/* [@arg is a struct wf_outside] @n bytes at @at into @to. False: there is nothing. */
bool wf_outside_read(void *arg, uint64_t at, void *to, size_t n);

#endif
