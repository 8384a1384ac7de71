/* job.c - see job.h.
 *
 * Actors call in over a socket and do what they are told, one order at a time. Nothing here blocks for ever: a timer interrupts
 * whatever waits.
 */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ORDER_MS 20000                  /* one order */
#define LISTENER_MS 50                  /* a listener asleep for so long has nothing to do */

static int door = -1;                   /* where actors come in */
static volatile sig_atomic_t late;
static timer_t watch;

static void on_watch(int sig)
{
	(void)sig;
	late = 1;
}

/* From now on so many milliseconds for whatever blocks here; 0: for ever. After that it is interrupted, again and again. */
static void watch_set(int ms)
{
	struct itimerspec t = { .it_value = { ms / 1000, ms % 1000 * 1000000L }, .it_interval.tv_sec = 1 };

	late = 0;
	timer_settime(watch, 0, &t, NULL);
}

void jobs_open(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct sigaction act = { .sa_handler = on_watch };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	char name[64];
	size_t n = (size_t)snprintf(name, sizeof(name), "weft-sweep-%d", (int)getpid());

	if (door >= 0)
		return;
	memcpy(at.sun_path + 1, name, n);
	door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	sigaction(SIGUSR1, &act, NULL);
	if (door < 0 || bind(door, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
	    listen(door, ACTORS) < 0 || timer_create(CLOCK_MONOTONIC, &event, &watch) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		printf("Bail out! %s\n", strerror(errno));
		exit(1);
	}
	setenv(SWEEP_ADDRESS, name, 1);
	setenv("WEFT_POOL", "8m", 1);
}

const char *act_name(uint32_t act)
{
	static const char *const names[] = {
#define ACT(name) #name,
		SWEEP_ACTS(ACT)
#undef ACT
	};

	return names[act];
}

bool act_plays_once(uint32_t act)
{
	return act == ACT_first_send || act == ACT_first_large_send || act == ACT_first_buffer_send || act == ACT_first_shared_send ||
	       act == ACT_first_buffer || act == ACT_listener || act == ACT_init || act == ACT_fini;
}

bool job_failed(struct job *j, const char *what, const char *detail)
{
	struct traced *v = &j->victim;
	char line[512];

	printf("# %s, step %u: %s%s%s\n", act_name(j->order.act), v->steps, what, *detail ? ": " : "", detail);
	if (j->seized && v->pc >= v->text && v->pc < v->text_end) {
		/* Linked to be loaded anywhere: addresses in the file begin at 0. */
		snprintf(line, sizeof(line), "addr2line -ifpse '%s' %#llx 2>&1 | sed 's/^/#   at /'", getenv("SWEEP_ACTOR"),
			 (unsigned long long)(v->pc - v->text));
		fflush(stdout);
		if (system(line) != 0)
			printf("#   at %#llx\n", (unsigned long long)(v->pc - v->text));
	}
	if (getenv("SWEEP_HOLD")) {
		printf("# held: weft run %d, actors %d %d %d\n", (int)j->weft, (int)j->actor[FIRST].pid, (int)j->actor[SECOND].pid,
		       (int)j->actor[VICTIM].pid);
		alarm(0);
		for (;;)
			pause();
	}
	return false;
}

/* Orders and answers */

static bool answered(struct job *j, int who)
{
	struct answer a;
	char text[256];
	ssize_t n;

	do
		n = recv(j->sock[who], &a, sizeof(a), 0);
	while (n < 0 && errno == EINTR && !late);
	if (n != (ssize_t)sizeof(a)) {
		snprintf(text, sizeof(text), "actor %d %s order %u", who, n < 0 ? "does not answer to" : "ended at", j->order.what);
		return job_failed(j, text, "");
	}
	if (a.line) {
		snprintf(text, sizeof(text), "actor %d, order %u: %.24s:%d: %d", who, j->order.what, a.file, a.line, a.result);
		return job_failed(j, text, a.said);
	}
	if (a.id)
		j->order.id[who] = a.id;
	return true;
}

static bool tell(struct job *j, int who, enum sweep_order what)
{
	watch_set(ORDER_MS);
	j->order.what = what;
	return send(j->sock[who], &j->order, sizeof(j->order), MSG_NOSIGNAL) == (ssize_t)sizeof(j->order) ||
	       job_failed(j, "an actor has ended", "");
}

static bool order_victim(struct job *j, enum sweep_order what)
{
	return tell(j, VICTIM, what) && answered(j, VICTIM);
}

bool job_tell(struct job *j, enum sweep_order what)
{
	return tell(j, FIRST, what) && tell(j, SECOND, what);
}

bool job_told(struct job *j)
{
	watch_set(ORDER_MS);
	return answered(j, FIRST) && answered(j, SECOND);
}

bool job_order(struct job *j, enum sweep_order what)
{
	return job_tell(j, what) && job_told(j);
}

/* Its beginning */

static bool accept_all(struct job *j)
{
	for (int i = 0; i < ACTORS; i++) {
		struct answer a;
		int s = accept4(door, NULL, NULL, SOCK_CLOEXEC);

		if (s < 0 || recv(s, &a, sizeof(a), 0) != (ssize_t)sizeof(a) || a.rank >= ACTORS)
			return job_failed(j, "an actor did not come", "");
		j->sock[a.rank] = s;
		j->actor[a.rank] = a;
	}
	return true;
}

/* The other thread of @pid: weft's own. */
static pid_t thread_of(pid_t pid)
{
	char path[64];
	struct dirent *e;
	pid_t tid = pid;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (atoi(e->d_name) > 0 && atoi(e->d_name) != pid)
			tid = atoi(e->d_name);
	if (d)
		closedir(d);
	return tid;
}

static bool trace(struct job *j)
{
	const struct answer *a = &j->actor[VICTIM];
	int r;

	j->victim = (struct traced){ .pid = a->pid, .mark = a->mark, .text = a->text, .text_end = a->text_end };
	if (j->order.act == ACT_listener)
		j->victim.pid = thread_of(a->pid);
	r = trace_seize(&j->victim);
	j->seized = r == 0;
	return r == 0 || job_failed(j, "cannot trace", strerror(-r));
}

bool job_start(struct job *j, uint32_t act, uint32_t seed)
{
	memset(j, 0, sizeof(*j));
	j->order.act = act;
	j->order.round = seed;
	j->errors = memfd_create("errors", MFD_CLOEXEC);
	fflush(stdout);
	j->weft = fork();
	if (j->weft == 0) {
		dup2(j->errors, STDERR_FILENO);
		execl(getenv("SWEEP_WEFT"), "weft", "run", "-n", "3", getenv("SWEEP_ACTOR"), (char *)NULL);
		_exit(127);
	}
	watch_set(ORDER_MS);
	return j->weft > 0 && accept_all(j) && job_order(j, DO_JOIN) && (act == ACT_init || order_victim(j, DO_JOIN)) &&
	       job_order(j, DO_TALK) && job_order(j, DO_COUNT) && trace(j);
}

/* The act. That of the listener begins when it stands still, and ends when it sleeps for a while. */

bool job_begin(struct job *j)
{
	j->order.round++;
	j->victim.steps = 0;
	if (j->order.act == ACT_listener)
		return order_victim(j, DO_SET) &&
		       (trace_interrupt(&j->victim) == TRACE_STEP || job_failed(j, "the listener does not stop", "")) &&
		       job_order(j, DO_SET);
	return job_order(j, DO_SET) && order_victim(j, DO_SET) && tell(j, VICTIM, DO_ACT) &&
	       (trace_to_mark(&j->victim) == TRACE_MARK || job_failed(j, "it did not begin", ""));
}

enum trace_end job_steps(struct job *j, unsigned step)
{
	enum trace_end at;

	watch_set(ORDER_MS);
	if (j->order.act != ACT_listener)
		return trace_steps(&j->victim, step);
	do {
		watch_set(LISTENER_MS);
		at = trace_steps(&j->victim, step);
	} while (at == TRACE_LATE && !trace_sleeps(&j->victim));
	return at == TRACE_LATE ? TRACE_ASLEEP : at;
}

static bool listener_finish(struct job *j, enum trace_end at)
{
	if (at == TRACE_ASLEEP && (at = trace_interrupt(&j->victim)) == TRACE_STEP)
		at = trace_steps(&j->victim, j->victim.steps + 2);      /* the step it slept in ends, too */
	if (at != TRACE_STEP || trace_leave(&j->victim) < 0)
		return job_failed(j, "the listener has gone", "");
	return order_victim(j, DO_ACT) && job_order(j, DO_END);
}

bool job_finish(struct job *j, enum trace_end at)
{
	watch_set(ORDER_MS);
	if (j->order.act == ACT_listener)
		return listener_finish(j, at);
	if (at == TRACE_STEP) {
		trace_run(&j->victim);
		at = trace_to_mark(&j->victim);
	}
	if (at != TRACE_MARK)
		return job_failed(j, at == TRACE_LATE ? "the act does not end" : "it died by itself", "");
	trace_run(&j->victim);
	return answered(j, VICTIM) && job_order(j, DO_END);
}

/* Its end */

/* The launcher may say who was killed. Nobody else says anything: a survivor that complains of what it read has read what was not
 * there. */
static bool silent(struct job *j)
{
	char line[512];
	FILE *f = fdopen(j->errors, "r");
	bool good = f != NULL;

	if (!f)
		close(j->errors);
	for (rewind(f); f && fgets(line, sizeof(line), f);) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "weft run: process 3 ", 20) != 0)
			good = job_failed(j, "it was said", line);
	}
	if (f)
		fclose(f);
	return good;
}

static void kill_all(struct job *j)
{
	for (int i = 0; i < ACTORS; i++)
		if (j->actor[i].pid > 0)
			kill(j->actor[i].pid, SIGKILL);
	if (j->weft > 0)
		kill(j->weft, SIGKILL);
}

/* What the job left is a child of this process now. */
static bool reap(struct job *j, bool good)
{
	int status;

	while (waitpid(-1, &status, __WALL | (good ? WNOHANG : 0)) > 0)
		good = good && job_failed(j, "a process was left", "");
	if (good && errno != ECHILD)
		good = job_failed(j, "a process was left, and runs", "");
	return good;
}

bool job_end(struct job *j, bool good, int code)
{
	int status = 0;

	good = good && job_order(j, DO_LEAVE);
	if (good && !code) {
		good = order_victim(j, DO_LEAVE);
		while (good && waitpid(j->victim.pid, &status, __WALL) > 0 && WIFSTOPPED(status))
			;
	}
	for (int i = 0; i < ACTORS; i++)
		if (j->sock[i] > 0)
			close(j->sock[i]);
	if (!good)
		kill_all(j);
	watch_set(ORDER_MS);
	while (waitpid(j->weft, &status, 0) < 0 && errno == EINTR && !late)
		;
	if (good && late)
		good = job_failed(j, "weft run does not end", "");
	else if (good && (!WIFEXITED(status) || WEXITSTATUS(status) != code))
		good = job_failed(j, "weft run ended otherwise", strsignal(WIFSIGNALED(status) ? WTERMSIG(status) : 0));
	good = reap(j, good);
	watch_set(0);
	return silent(j) && good;
}
