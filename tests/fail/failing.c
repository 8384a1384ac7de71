/* failing.c - the system under weft, refusing when it is told to.
 *
 * Linked with --wrap, so that every call the library makes comes by here, and none of anybody else. FAIL=call:errno:n:m
 * asks for the n-th to the n+m-1-th call of that name, counted from fail_arm on, to fail with that errno; m = 0: and all
 * that follow.
 */
#include "failing.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum call {
	MALLOC, CALLOC, REALLOC, ALIGNED, MMAP, MPROTECT, MADVISE, MEMFD, FALLOCATE, FTRUNCATE, FCNTL, SOCKETPAIR, EVENTFD, THREAD,
	SENDMSG, RECVMSG, MEMBARRIER, PPOLL, FUTEX, READ, WRITE, PIDFD, CALLS
};

static const char *const names[CALLS] = {
	"malloc", "calloc", "realloc", "aligned_alloc", "mmap", "mprotect", "madvise", "memfd_create", "fallocate", "ftruncate", "fcntl",
	"socketpair", "eventfd", "pthread_create", "sendmsg", "recvmsg", "membarrier", "ppoll", "futex", "read", "write", "pidfd_open",
};

static _Atomic bool armed;
static _Atomic long count[CALLS], failed;
static int wanted = -1, error;
static long first, many;

/* True: this one fails, errno is set. */
static bool fails(enum call call)
{
	long n;

	if (!atomic_load(&armed))
		return false;
	n = atomic_fetch_add(&count[call], 1) + 1;
	if ((int)call != wanted || n < first || (many && n >= first + many))
		return false;
	atomic_fetch_add(&failed, 1);
	errno = error;
	return true;
}

void fail_arm(void)
{
	const char *plan = getenv("FAIL");
	char name[32];

	if (plan && sscanf(plan, "%31[^:]:%d:%ld:%ld", name, &error, &first, &many) == 4)
		for (int i = 0; i < CALLS; i++)
			if (!strcmp(names[i], name))
				wanted = i;
	atomic_store(&armed, true);
}

void fail_disarm(void)
{
	atomic_store(&armed, false);
}

void fail_print(unsigned rank)
{
	printf("%u: failed %ld:", rank, atomic_load(&failed));
	for (int i = 0; i < CALLS; i++)
		printf(" %s=%ld", names[i], atomic_load(&count[i]));
	printf("\n");
}

/* The calls: the linker names ours __wrap_X and the system's __real_X. */
#define WRAPPED(type, name, refusal, call, params, args)                                           \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails(call) ? (refusal) : __real_##name args;                               \
	}

WRAPPED(void *, malloc, NULL, MALLOC, (size_t n), (n))
WRAPPED(void *, calloc, NULL, CALLOC, (size_t n, size_t size), (n, size))
WRAPPED(void *, realloc, NULL, REALLOC, (void *p, size_t n), (p, n))
WRAPPED(void *, aligned_alloc, NULL, ALIGNED, (size_t align, size_t n), (align, n))
WRAPPED(void *, mmap64, MAP_FAILED, MMAP, (void *at, size_t n, int prot, int flags, int fd, off_t from),
	(at, n, prot, flags, fd, from))
WRAPPED(int, mprotect, -1, MPROTECT, (void *at, size_t n, int prot), (at, n, prot))
WRAPPED(int, madvise, -1, MADVISE, (void *at, size_t n, int advice), (at, n, advice))
WRAPPED(int, memfd_create, -1, MEMFD, (const char *name, unsigned flags), (name, flags))
WRAPPED(int, fallocate64, -1, FALLOCATE, (int fd, int mode, off_t from, off_t n), (fd, mode, from, n))
WRAPPED(int, ftruncate64, -1, FTRUNCATE, (int fd, off_t n), (fd, n))
WRAPPED(int, socketpair, -1, SOCKETPAIR, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair))
WRAPPED(int, eventfd, -1, EVENTFD, (unsigned n, int flags), (n, flags))
WRAPPED(int, pthread_create, errno, THREAD, (pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
	(t, attr, fn, arg))

int __real_fcntl64(int fd, int what, long arg);
int __wrap_fcntl64(int fd, int what, long arg);
int __wrap_fcntl64(int fd, int what, long arg)
{
	return fails(FCNTL) ? -1 : __real_fcntl64(fd, what, arg);
}

static int call_of(long number)
{
	switch (number) {
	case SYS_sendmsg:
		return SENDMSG;
	case SYS_recvmsg:
		return RECVMSG;
	case SYS_membarrier:
		return MEMBARRIER;
	case SYS_ppoll:
		return PPOLL;
	case SYS_futex:
		return FUTEX;
	case SYS_read:
		return READ;
	case SYS_write:
		return WRITE;
	case SYS_pidfd_open:
		return PIDFD;
	default:
		return -1;
	}
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list list;
	int call = call_of(number);

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (call == FUTEX && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
		call = -1;              /* which does not fail */
	if (call >= 0 && fails((enum call)call))
		return -1;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
