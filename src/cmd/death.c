/* death.c - what has become of a process: it left, it exec'ed, it is dead, it has to be killed.
 *
 * The agent says that a process is dead when it is: whatever goes wrong with a process, it is killed first and its end
 * awaited. A process that is merely stopped is nobody's business here unless --stop-limit made it so.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "job/frames.h"
#include "launch.h"
#include "mesh.h"

/* False: it cannot be killed, or nobody would tell of its end. Numbers of processes are used only while they cannot
 * mean another. */
static bool kill_joined(struct place *p)
{
	if (p->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0) == 0 || errno == ESRCH;
	return p->main && p->main == p->pid && kill(p->main, SIGKILL) == 0;
}

static void link_close(struct agent *a, struct place *p)
{
	if (p->stage == STAGE_IN)
		desk_last_words(a, p);
	fd_close(&p->calls);
	fd_close(&p->notes);
	p->writing = false;
}

static void begin_dying(struct agent *a, struct place *p)
{
	p->stage = STAGE_DYING;
	if (!kill_joined(p))
		news_gone(a, p, STATUS_UNKNOWN, false);
}

/* Does @p, which closed its link, still have its board? If it has not, and has any memory, it has exec'ed. A process
 * on its way out has none. */
static bool has_execed(const struct place *p)
{
	char line[512];
	bool any = false, board = false;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)p->pid);
	f = fopen(line, "re");
	if (!f)
		return false;
	while (!board && fgets(line, sizeof(line), f)) {
		any = true;
		board = strstr(line, "/memfd:" WF_BOARD_NAME) != NULL;
	}
	board |= ferror(f) != 0;
	fclose(f);
	return any && !board;
}

void death_link(struct agent *a, struct place *p)
{
	link_close(a, p);
	if (p->stage != STAGE_IN)
		return;
	if (has_execed(p)) {
		agent_remark(a, "process %u (pid %d) has become another program", p->number, (int)p->pid);
		news_gone(a, p, 0, true);
		return;
	}
	begin_dying(a, p);
}

void death_nonsense(struct agent *a, struct place *p, const char *what)
{
	if (p->stage != STAGE_IN)
		return;
	agent_say(a, "process %u (pid %d) sent %s and is killed", p->number, (int)p->pid, what);
	link_close(a, p);
	begin_dying(a, p);
}

static void joined_ended(struct agent *a, struct place *p, int status)
{
	fd_close(&p->pidfd);
	link_close(a, p);
	if (p->stage == STAGE_IN || p->stage == STAGE_DYING)
		news_gone(a, p, status, false);
}

void death_pidfd(struct agent *a, struct place *p)
{
	int status;

	/* Its parent has its status, unless that ended and the agent has inherited the child. */
	if (waitpid(p->pid, &status, WNOHANG) != p->pid)
		status = STATUS_UNKNOWN;
	joined_ended(a, p, status);
}

/* What was started has ended: the exit code, and who is told of it. */
static void main_failed(struct agent *a, struct place *p, pid_t pid, int status)
{
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	bool news = !a->failed || (a->phase == WORKING && now_ns() >= a->interrupted);

	if (p->launched && (p->watched || p->exec_error)) {
		agent_remark(a, "process %u (pid %d) ended with status %#x", p->number, (int)pid, (unsigned)status);
		return;
	}
	if (p->exec_error) {
		if (!a->failed)
			agent_say(a, "%s: %s", p->exec_what, strerror(p->exec_error));
		agent_end(a, code);
		return;
	}
	if (news && WIFSIGNALED(status))
		agent_say(a, "process %u (pid %d) was killed by signal %d (%s)%s", p->number, (int)pid, WTERMSIG(status),
			  strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else if (news)
		agent_say(a, "process %u (pid %d) ended with exit code %d", p->number, (int)pid, code);
	agent_failed(a, code);
	if (a->run->kill_on_fail)
		agent_end(a, code);
}

static void main_ended(struct agent *a, struct place *p, int status)
{
	pid_t pid = p->main;

	p->main = 0;
	a->running--;
	start_errors(a);
	if (p->exec >= 0)
		start_known(a, p);
	if (p->launched)
		launch_ended(a, p, status);
	if (p->stage == STAGE_EMPTY) {
		fd_close(&p->door);
		news_gone(a, p, status, false);
	} else if (p->pid == pid) {
		joined_ended(a, p, status);
	}
	if (status != 0)
		main_failed(a, p, pid, status);
	else
		agent_remark(a, "process %u (pid %d) ended", p->number, (int)pid);
	if (a->running == 0)
		agent_idle(a);
}

void death_reaped(struct agent *a, pid_t pid, int status)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct place *p = a->places[i];

		if (p->main == pid) {
			main_ended(a, p, status);
			return;
		}
		if (p->pid == pid && p->pidfd >= 0) {
			joined_ended(a, p, status);
			return;
		}
	}
}

int death_signal(struct agent *a, uint32_t process, int sig)
{
	struct spot *s = where_spot(&a->where, process);
	struct place *p = process < WF_AGENTS ? a->numbered[process] : NULL;

	if (sig < 0 || sig > SIGRTMAX)
		return -EINVAL;
	if (process >= WF_AGENTS) {
		if (process - WF_AGENTS != a->run->host)
			return mesh_kill(a, process - WF_AGENTS, process, sig);
		for (unsigned i = 0; i < a->count; i++)
			death_signal(a, a->places[i]->number, sig);
		return 0;
	}
	if (!s || !s->known || s->gone)
		return -ESRCH;
	if (!p)
		return mesh_kill(a, s->host, process, sig);
	if (p->stage == STAGE_DEAD || p->stage == STAGE_LEFT)
		return -ESRCH;
	if (p->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, p->pidfd, sig, NULL, 0) == 0 ? 0 : -errno;
	return p->main && kill(p->main, sig) == 0 ? 0 : -ESRCH;
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[512], *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

void death_stopped(struct agent *a)
{
	int64_t now = now_ns();

	for (unsigned i = 0; i < a->count; i++) {
		struct place *p = a->places[i];
		bool in = p->stage == STAGE_IN;
		pid_t pid = in ? p->pid : p->main;

		if (a->stopped || !pid || !is_stopped(pid)) {
			p->stopped_since = 0;
			continue;
		}
		if (!p->stopped_since)
			p->stopped_since = now;
		if ((double)(now - p->stopped_since) < a->run->stop_limit * (double)SECOND)
			continue;
		agent_say(a, "process %u (pid %d) was stopped for %g s and is killed", p->number, (int)pid, a->run->stop_limit);
		if (in)
			begin_dying(a, p);
		else
			kill(pid, SIGKILL);
		p->stopped_since = 0;
	}
}
