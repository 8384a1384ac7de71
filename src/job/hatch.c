/* hatch.c - see hatch.h.
 *
 * The program may have threads, handlers of fork and of SIGCHLD, and children that it waits for. None of them is to notice. So there are two steps: a child whose end sends no signal and
 * that no ordinary wait sees (clone without a signal), which at once starts the agent and ends; the agent then belongs to whoever takes orphans. Both are copies of a thread
 * among others that may hold any lock, so until the agent is executed only the kernel is called, past the C library and what may stand before it.
 *
 * Nothing but the streams stays open in the agent: a launcher that watches a socket of its process must see its end when the process ends.
 */
#include "job/hatch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/bytes.h"
#include "job/birth.h"

#define FILES_MOST 65536        /* where the kernel cannot close a range */
#define FAILED_BYTES 12         /* kind, errno, no text */

/* What the new process needs, made before there is one. */
struct egg {
	char path[PATH_MAX];
	char *argv[4];
	int sock;
	sigset_t mask;                  /* the program's */
	unsigned files;
	uint8_t failed[FAILED_BYTES];
};

/* Finding the command */

static bool is_there(char *ret_path, const char *folder, size_t len, const char *rest)
{
	int n = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)len, folder, rest);

	return n > 0 && n < PATH_MAX && access(ret_path, X_OK) == 0;
}

/* Installed together, or as it was built. */
static bool beside_library(char *ret_path)
{
	static const char *const from_there[] = { "../bin/weft", "../../bin/weft", "cmd/weft" };
	const char *slash;
	Dl_info info;

	if (!dladdr((const void *)from_there, &info) || !info.dli_fname || info.dli_fname[0] != '/')
		return false;
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; i < sizeof(from_there) / sizeof(*from_there); i++)
		if (is_there(ret_path, info.dli_fname, (size_t)(slash - info.dli_fname), from_there[i]))
			return true;
	return false;
}

static bool on_path(char *ret_path)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t n = strcspn(at, ":");

		if (*at == '/' && is_there(ret_path, at, n, "weft"))
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static int find_command(char ret_path[PATH_MAX])
{
	const char *told = getenv("WEFT_COMMAND");

	if (told && *told) {
		if (strlen(told) >= PATH_MAX)
			return weft_fail(-ENAMETOOLONG, "WEFT_COMMAND is longer than a path");
		memcpy(ret_path, told, strlen(told) + 1);
		return 0;
	}
	if (beside_library(ret_path) || is_there(ret_path, WF_BINDIR, strlen(WF_BINDIR), "weft") || on_path(ret_path))
		return 0;
	return weft_fail(-ENOENT, "the weft command, which this host's agent is a part of, is neither beside the library, in " WF_BINDIR " nor on PATH: WEFT_COMMAND may say where it is");
}

/* Starting it */

static void close_others(const struct egg *e)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
		return;
#endif
	for (unsigned fd = 3; fd < e->files; fd++)
		syscall(SYS_close, fd);
}

static void become_agent(struct egg *e)
{
	syscall(SYS_dup3, e->sock, STDIN_FILENO, 0);
	close_others(e);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &e->mask, NULL, (size_t)_NSIG / 8);
	syscall(SYS_execve, e->path, e->argv, environ);
	wf_put32(e->failed + 4, (uint32_t)errno);
	syscall(SYS_write, STDIN_FILENO, e->failed, sizeof(e->failed));
}

static pid_t split(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
}

/* Signals to the program's group are not the agent's. A session of its own only where there is a terminal, as in cmd/run.c. */
static void part(void)
{
	long terminal = syscall(SYS_openat, AT_FDCWD, "/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (terminal < 0) {
		syscall(SYS_setpgid, 0, 0);
		return;
	}
	syscall(SYS_close, terminal);
	syscall(SYS_setsid);
}

static int start(struct egg *e)
{
	sigset_t all;
	int err, status;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &e->mask);
	pid = split();
	if (pid == 0) {
		part();
		if (split() == 0)
			become_agent(e);
		syscall(SYS_exit_group, 0);
	}
	err = errno;
	pthread_sigmask(SIG_SETMASK, &e->mask, NULL);
	if (pid < 0)
		return weft_fail(-err, "the agent of this host cannot be started: %s", strerror(err));
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		continue;
	return 0;
}

int wf_hatch(int *ret_sock)
{
	static char name[] = "weft", agent[] = "agent", pact[] = "--pact";
	static struct egg e;
	struct rlimit files = { .rlim_cur = FILES_MOST };
	int pair[2], r = find_command(e.path);

	if (r < 0)
		return r;
	memcpy(e.argv, (char *[]){ name, agent, pact, NULL }, sizeof(e.argv));
	getrlimit(RLIMIT_NOFILE, &files);
	e.files = files.rlim_cur < FILES_MOST ? (unsigned)files.rlim_cur : FILES_MOST;
	wf_put32(e.failed, WF_BIRTH_FAILED);
	wf_put32(e.failed + 8, UINT32_MAX);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return weft_fail(-errno, "socketpair: %s", strerror(errno));
	e.sock = fcntl(pair[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);     /* a program may have closed its streams */
	r = e.sock < 0 ? weft_fail(-errno, "no descriptor for the agent: %s", strerror(errno)) : start(&e);
	close(pair[1]);
	if (e.sock >= 0)
		close(e.sock);
	if (r < 0)
		close(pair[0]);
	else
		*ret_sock = pair[0];
	return r;
}
