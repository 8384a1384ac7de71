/* start.c - starting the processes of the job.
 *
 * Each gets its own process group, its door, and what the launcher found of limits and signals. It dies with the agent: the
 * kernel kills it when its parent ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "job/frames.h"
#include "launch.h"

/* Why a program could not be executed, through a pipe that the exec would have closed. */
struct exec_error {
	uint32_t number;
	int error;
	bool wdir;              /* its directory is why */
};

const struct part *start_part(const struct run *run, uint32_t rank, uint32_t *ret_app)
{
	const struct part *part = run->parts;

	while (rank >= part->first + part->count)
		part++;
	*ret_app = (uint32_t)(part - run->parts);
	return part;
}

static int set_streams(const struct run *run, const struct place *p)
{
	int out = p->launched ? p->out : run->out_fds ? run->out_fds[p->index] : -1, err = p->launched ? p->err : run->err_fds ? run->err_fds[p->index] : -1;
	int in = !p->launched && p->rank == 0 ? run->stdin_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* dup2 onto itself would leave close-on-exec set; the launcher has seen to it that 0, 1 and 2 were taken before. */
	if (in < 0 || (in != STDIN_FILENO && dup2(in, STDIN_FILENO) < 0))
		return -1;
	if ((out >= 0 && dup2(out, STDOUT_FILENO) < 0) || (err >= 0 && dup2(err, STDERR_FILENO) < 0))
		return -1;
	return 0;
}

/* What the job may use of this host: every process is told the same, whatever it is bound to later. */
static unsigned cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

/* What a process is told, made before the fork: in the child nothing may be allocated, another thread of the agent having been in the midst of that. */
struct surroundings {
	char **list;                    /* NULL: no memory */
	size_t n;
	char rank[32], size[32], app[32], cores[32], door[96], url[160];
	char *attrs;
};

static void drop_variable(struct surroundings *s, const char *name, size_t len)
{
	size_t left = 0;

	for (size_t i = 0; i < s->n; i++)
		if (strncmp(s->list[i], name, len) != 0 || s->list[i][len] != '=')
			s->list[left++] = s->list[i];
	s->n = left;
	s->list[left] = NULL;
}

static void put_variable(struct surroundings *s, char *text)
{
	drop_variable(s, text, strcspn(text, "="));
	s->list[s->n++] = text;
	s->list[s->n] = NULL;
}

static void put_number(struct surroundings *s, char room[32], const char *name, unsigned value)
{
	snprintf(room, 32, "%s=%u", name, value);
	put_variable(s, room);
}

/* What the user asked for first: it does not get in the way of what weft needs. @s->list is NULL: no memory. */
static void surroundings_make(struct surroundings *s, const struct agent *a, const struct place *p, int door)
{
	extern char **environ;
	size_t count = 0;
	struct stat st;

	memset(s, 0, sizeof(*s));
	while (environ[count])
		count++;
	if ((p->attrs && asprintf(&s->attrs, "WEFT_ATTRS=%s", p->attrs) < 0) || fstat(door, &st) < 0)
		return;
	s->list = calloc(count + p->part->env_count + 8, sizeof(*s->list));
	if (!s->list)
		return;
	memcpy(s->list, environ, count * sizeof(*s->list));
	s->n = count;
	for (size_t i = 0; i < p->part->env_count; i++)
		put_variable(s, p->part->env[i]);
	put_number(s, s->rank, "WEFT_RANK", p->rank);
	put_number(s, s->size, "WEFT_SIZE", p->size);
	put_number(s, s->app, "WEFT_APPNUM", p->app);
	put_number(s, s->cores, "WEFT_CORES", a->cpus && !p->launched ? (unsigned)CPU_COUNT(&a->cpus[p->index]) : cores());
	drop_variable(s, "WEFT_ATTRS", strlen("WEFT_ATTRS"));
	if (s->attrs)
		put_variable(s, s->attrs);
	snprintf(s->url, sizeof(s->url), "WEFT_URL=%s", a->url);
	if (a->url[0])
		put_variable(s, s->url);
	snprintf(s->door, sizeof(s->door), WF_AGENT_ENV "=%d:%llu:%u", door, (unsigned long long)st.st_ino, p->base);
	put_variable(s, s->door);
}

static void surroundings_free(struct surroundings *s)
{
	free(s->list);
	free(s->attrs);
}

/* In the child, between fork and exec. */
static _Noreturn void become(struct agent *a, struct place *p, int door, char **surroundings, pid_t agent, int report)
{
	extern char **environ;
	const struct run *run = a->run;
	const struct part *part = p->part;
	struct exec_error e = { .number = p->index + 1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(CODE_FAULT);      /* it ended before the kernel was asked */
	setpgid(0, 0);
	if (a->cpus && !p->launched)
		sched_setaffinity(0, sizeof(*a->cpus), &a->cpus[p->index]);
	e.wdir = part->wdir && chdir(part->wdir) < 0;
	if (!e.wdir && fcntl(door, F_SETFD, 0) == 0 && set_streams(run, p) == 0) {
		environ = surroundings;
		setrlimit(RLIMIT_NOFILE, &run->files);
		signal(SIGPIPE, run->pipe_ignored ? SIG_IGN : SIG_DFL);
		sigprocmask(SIG_SETMASK, &run->mask, NULL);
		execvp(part->program ? part->program : part->argv[0], part->argv);
	}
	e.error = errno;
	if (write(report, &e, sizeof(e)) < 0)
		_exit(CODE_FAULT);
	_exit(e.error == ENOENT && !e.wdir ? CODE_NOTFOUND : CODE_NOEXEC);
}

static int start_one(struct agent *a, struct place *p, int report)
{
	struct surroundings surroundings;
	int pair[2], one = 1, r = 0;
	pid_t agent = getpid(), pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	p->door = pair[0];
	if (setsockopt(p->door, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0 ||
	    agent_watch(a, p->door, FROM_DOOR, p->number) < 0) {
		r = -errno;
		close(pair[1]);
		return r;
	}
	surroundings_make(&surroundings, a, p, pair[1]);
	errno = ENOMEM;
	pid = surroundings.list ? fork() : -1;
	if (pid == 0)
		become(a, p, pair[1], surroundings.list, agent, report);
	if (pid < 0)
		r = -errno;
	close(pair[1]);
	surroundings_free(&surroundings);
	if (r < 0)
		return r;
	setpgid(pid, pid);      /* here as well: a signal may have to be forwarded before the child came to it */
	p->main = pid;
	a->running++;
	agent_remark(a, "process %u is pid %d", p->number, (int)pid);
	return 0;
}

/* Where the output of the first processes is carried, that of a later one is as well: whoever does it gets the reading ends. It is called by
 * what would be its rank if it had been there from the beginning. */
static int carry_output(struct agent *a, struct place *p)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		r = -errno;
	else
		r = control_send_stream(a->control, p->number - 1, (int[]){ out[0], err[0] });
	fd_close(&out[0]);
	fd_close(&err[0]);
	p->out = out[1];
	p->err = err[1];
	/* The launcher, or station, is stopped or has too much to do with what it was told before. */
	return r == -EAGAIN || r == -ETOOMANYREFS ? -ENOBUFS : r;
}

static int start_watched(struct agent *a, struct place *p)
{
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	p->exec = pair[0];
	r = agent_watch(a, p->exec, FROM_EXEC, p->number) < 0 ? -errno : start_one(a, p, pair[1]);
	close(pair[1]);
	if (r < 0)
		fd_close(&p->exec);
	return r;
}

int start_place(struct agent *a, struct place *p)
{
	int r = p->out < 0 && a->run->out_fds ? carry_output(a, p) : 0;

	if (r == 0)
		r = start_watched(a, p);
	fd_close(&p->out);
	fd_close(&p->err);
	return r;
}

static void not_executed(struct place *p, const struct exec_error *e)
{
	p->exec_error = e->error;
	p->exec_what = e->wdir ? p->part->wdir : p->part->program ? p->part->program : p->part->argv[0];
}

/* Closed: it was executed. */
void start_known(struct agent *a, struct place *p)
{
	struct exec_error e;
	ssize_t n = read(p->exec, &e, sizeof(e));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(e))
		not_executed(p, &e);
	fd_close(&p->exec);
	launch_exec(a, p);
}

/* Where each is to run, and the map for who wants to see it. */
static bool plan(struct agent *a)
{
	const struct run *run = a->run;
	char words[CONTROL_LINE_ROOM], name[64] = "here";

	if (a->count == 0 || (run->bind == BIND_NONE && !run->map_shown))
		return true;
	a->cpus = calloc(a->count, sizeof(*a->cpus));
	if (!a->cpus || bind_plan(run->bind, a->count, a->cpus, words, sizeof(words)) < 0) {
		agent_say(a, "%s", a->cpus ? words : "no memory");
		return false;
	}
	gethostname(name, sizeof(name) - 1);
	for (unsigned i = 0; run->map_shown && i < a->count; i++) {
		bind_line(run->ranks[i], name, &a->cpus[i], words, sizeof(words));
		agent_say(a, "%s", words);
	}
	if (run->bind == BIND_NONE) {
		free(a->cpus);
		a->cpus = NULL;
	}
	return true;
}

bool start_all(struct agent *a)
{
	int pair[2], r = 0;

	if (!plan(a))
		return false;

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0) {
		agent_say(a, "pipe: %s", strerror(errno));
		return false;
	}
	a->exec_errors = pair[0];
	for (unsigned i = 0; r == 0 && i < a->count; i++) {
		r = start_one(a, a->places[i], pair[1]);
		if (r < 0)
			agent_say(a, "process %u of %u cannot be started: %s%s", a->places[i]->number, a->run->total, strerror(-r),
				  r == -EMFILE ? " (ulimit -n)" : r == -EAGAIN ? " (ulimit -u)" : "");
	}
	close(pair[1]);
	return r == 0;
}

void start_errors(struct agent *a)
{
	struct exec_error e;

	while (read(a->exec_errors, &e, sizeof(e)) == (ssize_t)sizeof(e))
		if (e.number >= 1 && e.number <= a->count)
			not_executed(a->places[e.number - 1], &e);
}
