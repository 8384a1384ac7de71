/* trace.c - see trace.h.
 *
 * One thread is traced; the rest of its process runs on freely until all of it is stopped or killed. On aarch64 a pair of
 * exclusive load and store never succeeds when stepped through. weft and libc use single atomic instructions where the CPU has
 * them; where it does not, what stays at one place for STUCK steps runs freely for a moment.
 */
#include "trace.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__aarch64__)
#define PC(regs) ((regs).pc)
#define MARK_BYTES 4                    /* of the breakpoint */
#define MARK_AFTER 0                    /* where the pc is when it was hit */
typedef struct user_regs_struct registers;
#elif defined(__x86_64__)
#define PC(regs) ((regs).rip)
#define MARK_BYTES 1
#define MARK_AFTER 1
typedef struct user_regs_struct registers;
#endif

#define PLACE 256                       /* bytes of code that count as one place */
#define STUCK 20000

static int registers_get(pid_t pid, registers *ret)
{
	struct iovec v = { ret, sizeof(*ret) };

	return ptrace(PTRACE_GETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

static void registers_set(pid_t pid, registers *regs)
{
	struct iovec v = { regs, sizeof(*regs) };

	ptrace(PTRACE_SETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &v);
}

static void look(struct traced *t)
{
	registers r;

	memset(&r, 0, sizeof(r));
	t->pc = registers_get(t->pid, &r) == 0 ? PC(r) : 0;
}

/* Behind the breakpoint of the mark it is at. */
static void pass_mark(struct traced *t)
{
	registers r;

	if (t->pc != t->mark || registers_get(t->pid, &r) < 0)
		return;
	PC(r) = t->mark + MARK_BYTES;
	registers_set(t->pid, &r);
	t->pc = PC(r);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

int trace_seize(struct traced *t)
{
	return ptrace(PTRACE_SEIZE, t->pid, NULL, NULL) < 0 ? -errno : 0;
}

/* The next stop: its signal, 0 for one that is to be forgotten; -1: look at *ret_end. */
static int next_stop(struct traced *t, enum trace_end *ret_end)
{
	if (waitpid(t->pid, &t->status, __WALL) < 0) {
		*ret_end = errno == EINTR ? TRACE_LATE : TRACE_GONE;
		return -1;
	}
	if (!WIFSTOPPED(t->status)) {
		*ret_end = TRACE_GONE;
		return -1;
	}
	if (t->status >> 16 || WSTOPSIG(t->status) == SIGCONT || WSTOPSIG(t->status) == SIGSTOP)
		return 0;
	return WSTOPSIG(t->status);
}

enum trace_end trace_to_mark(struct traced *t)
{
	enum trace_end end;
	int sig;

	while ((sig = next_stop(t, &end)) >= 0) {
		if (sig == SIGTRAP) {
			look(t);
			t->pc -= t->pc == t->mark + MARK_AFTER ? MARK_AFTER : 0;
			t->steps = 0;
			return TRACE_MARK;
		}
		ptrace(PTRACE_CONT, t->pid, NULL, (void *)(intptr_t)sig);
	}
	return end;
}

/* A step goes from here to the traced thread and back. On one CPU that is a switch; from one to another it wakes each, which takes several times as
 * long in a virtual machine. True: both run on one now; *@ret_before is where this thread ran. */
static bool come_together(struct traced *t, cpu_set_t *ret_before)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(*ret_before), ret_before) < 0)
		return false;
	CPU_SET(cpu, &one);
	if (sched_setaffinity(t->pid, sizeof(one), &one) < 0)
		return false;
	sched_setaffinity(0, sizeof(one), &one);
	return true;
}

static void part(struct traced *t, const cpu_set_t *before)
{
	sched_setaffinity(t->pid, sizeof(*before), before);     /* of one job with this program: it may run where that may */
	sched_setaffinity(0, sizeof(*before), before);
}

static enum trace_end step_on(struct traced *t, unsigned step)
{
	enum trace_end end;
	unsigned stuck = 0;
	uint64_t here = 0;
	int sig = 0;

	if (!t->running)
		pass_mark(t);
	while (t->steps < step) {
		if (!t->running && ptrace(PTRACE_SINGLESTEP, t->pid, NULL, (void *)(intptr_t)(sig == SIGTRAP ? 0 : sig)) < 0)
			return TRACE_GONE;
		t->running = true;
		sig = next_stop(t, &end);
		if (sig < 0)
			return end;
		t->running = false;
		if (sig != SIGTRAP)
			continue;
		look(t);
		if (t->pc == t->mark)
			return TRACE_MARK;
		t->steps += t->pc >= t->text && t->pc < t->text_end;
		if (t->pc - here >= PLACE) {
			here = t->pc - PLACE / 2;
			stuck = 0;
		}
		if (++stuck < STUCK)
			continue;
		stuck = 0;
		trace_run(t);
		nap();
		end = trace_interrupt(t);
		if (end != TRACE_STEP)
			return end;
	}
	return TRACE_STEP;
}

enum trace_end trace_steps(struct traced *t, unsigned step)
{
	cpu_set_t before;
	bool together = come_together(t, &before);
	enum trace_end end = step_on(t, step);

	if (together)
		part(t, &before);
	return end;
}

int trace_run(struct traced *t)
{
	pass_mark(t);
	return ptrace(PTRACE_CONT, t->pid, NULL, NULL) < 0 ? -errno : 0;
}

int trace_leave(struct traced *t)
{
	return ptrace(PTRACE_DETACH, t->pid, NULL, NULL) < 0 ? -errno : 0;
}

enum trace_end trace_interrupt(struct traced *t)
{
	enum trace_end end;
	int sig;

	if (ptrace(PTRACE_INTERRUPT, t->pid, NULL, NULL) < 0)
		return TRACE_GONE;
	sig = next_stop(t, &end);
	if (sig < 0)
		return end;
	look(t);
	/* It ran into the mark meanwhile, and stops twice: for that, and for us. */
	if (t->pc == t->mark + MARK_AFTER && (sig == SIGTRAP || MARK_AFTER > 0)) {
		ptrace(PTRACE_CONT, t->pid, NULL, NULL);
		if (next_stop(t, &end) < 0)
			return end;
		t->pc = t->mark;
	}
	t->running = false;
	return t->pc == t->mark ? TRACE_MARK : TRACE_STEP;
}

/* The letter of /proc/PID/task/TID/stat; 0: there is no such. */
static char state_of(pid_t pid, const char *task)
{
	char path[512], line[512], *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	f = fopen(path, "re");
	state = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return state ? state[2] : 0;
}

bool trace_sleeps(struct traced *t)
{
	char task[16];

	snprintf(task, sizeof(task), "%d", (int)t->pid);
	return state_of(t->pid, task) == 'S';
}

static bool all_stopped(pid_t pid)
{
	char path[64];
	struct dirent *e;
	bool all = true;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char state = e->d_name[0] == '.' ? 'T' : state_of(pid, e->d_name);

		all &= state == 'T' || state == 't';
	}
	if (d)
		closedir(d);
	return all;
}

bool trace_stop(struct traced *t)
{
	kill(t->pid, SIGSTOP);
	for (int i = 0; i < 10000; i++) {
		if (all_stopped(t->pid))
			return true;
		nap();
	}
	return false;
}

void trace_continue(struct traced *t)
{
	kill(t->pid, SIGCONT);
}

void trace_kill(struct traced *t)
{
	kill(t->pid, SIGKILL);
	while (waitpid(t->pid, &t->status, __WALL) < 0 ? errno == EINTR : WIFSTOPPED(t->status))
		;
}

bool trace_possible(void)
{
	struct traced t = { .pid = fork() };
	int r;

	if (t.pid == 0) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		pause();
		_exit(0);
	}
	r = trace_seize(&t);
	trace_kill(&t);
	return r == 0;
}
