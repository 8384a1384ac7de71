/* run.c - `weft run`: the launcher. What the user started and the terminal knows; see run.h for the whole.
 *
 * It forwards signals, carries the streams that have to be carried, prints what the agent says and ends with the job's
 * exit code. If the agent ends without having cleaned up it does that itself.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "control.h"
#include "job/frames.h"
#include "streams.h"
#include "tree.h"

#define SECOND_INT (5 * SECOND) /* a second SIGINT within this time kills */
#define KILL_MS 5000

static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT,
};

struct launcher {
	struct run run;
	struct streams *streams;
	int control, signals;
	pid_t agent;                    /* 0: ended */
	int code;
	int64_t interrupted;            /* when the last SIGINT came; 0: none */
	char line[CONTROL_LINE_ROOM];   /* what the agent said and is not yet printed */
	bool line_full;
	char last[CONTROL_LINE_ROOM];   /* what to print when it has said everything */
};

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

void files_raise(struct rlimit *ret_was)
{
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, ret_was);
	most = *ret_was;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

/* The agent is gone or must go: nothing may be left. */
static void clean_up(struct launcher *l)
{
	if (!tree_kill(KILL_MS)) {
		l->code = CODE_FAULT;
		fprintf(stderr, "weft run: processes are left that cannot be killed\n");
	}
}

static void agent_ended(struct launcher *l, int status)
{
	l->agent = 0;
	if (WIFEXITED(status)) {
		l->code = WEXITSTATUS(status);
	} else {
		l->code = CODE_FAULT;
		snprintf(l->last, sizeof(l->last), "the agent was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	}
	clean_up(l);
}

/* Children are the agent, and what is left of the job if that was killed. */
static void reap(struct launcher *l)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == l->agent)
			agent_ended(l, status);
}

static void forward(struct launcher *l, int sig)
{
	/* If the agent does not read, being stopped by somebody, a signal is lost once the socket is full. */
	control_send32(l->control, CONTROL_SIGNAL, (uint32_t)sig);
}

bool run_stop(void)
{
	sigset_t one, pending;

	sigemptyset(&one);
	sigaddset(&one, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
	sigpending(&pending);
	return !sigismember(&pending, SIGCONT);
}

/* The job stops first, then the launcher the way it would have without us, which is not at all if no shell could continue it. */
static void stop(struct launcher *l)
{
	forward(l, SIGTSTP);
	if (run_stop())
		forward(l, SIGCONT);
}

static void on_signal(struct launcher *l)
{
	struct signalfd_siginfo s;
	int64_t now = now_ns();

	while (read(l->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		int sig = (int)s.ssi_signo;

		if (sig == SIGCHLD)
			continue;
		if (sig == SIGTSTP) {
			stop(l);
			continue;
		}
		if (sig == SIGINT && l->interrupted && now - l->interrupted < SECOND_INT) {
			clean_up(l);
			exit(128 + SIGINT);
		}
		if (sig == SIGINT)
			l->interrupted = now;
		forward(l, sig);
	}
}

/* A process was started that this launcher has made no pipes for. False: what it prints is lost. */
static bool on_stream(struct launcher *l, const uint8_t *body, int n, const int fds[2])
{
	return n == 4 && fds[0] >= 0 && streams_add(l->streams, wf_get32(body), fds) == 0;
}

/* What the agent says, one line at a time: the next is taken when the last is printed. */
static void on_line(struct launcher *l)
{
	static uint8_t body[CONTROL_PACKET];
	enum control kind;
	int n, fds[2];

	if (!l->line_full) {
		n = control_recv_stream(l->control, &kind, body, fds);
		if (n < 0) {
			memcpy(l->line, l->last, sizeof(l->line));
			l->last[0] = 0;
		} else if (kind == CONTROL_STREAM) {
			if (on_stream(l, body, n, fds))
				return;
			snprintf(l->line, sizeof(l->line), "what a process prints is lost: no descriptors left (ulimit -n), or no memory");
		} else {
			snprintf(l->line, sizeof(l->line), "%.*s", n, (const char *)body);
		}
		l->line_full = true;
	}
	if (streams_line(l->streams, l->line))
		l->line_full = false;
}

static bool line_waits(const struct launcher *l)
{
	char c;

	return l->line_full || l->last[0] || recv(l->control, &c, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

/* Polls grow with what there is to poll for. */
static bool polls_room(const struct launcher *l, struct pollfd **polls)
{
	struct pollfd *more = realloc(*polls, (streams_polls(l->streams) + 2) * sizeof(*more));

	if (more)
		*polls = more;
	return more != NULL;
}

static int loop(struct launcher *l)
{
	struct pollfd *polls = NULL;

	for (;;) {
		int ms = -1;
		size_t n;

		reap(l);
		if (line_waits(l))
			on_line(l);
		if (!l->agent && streams_done(l->streams, true) && !line_waits(l))
			break;
		if (!polls_room(l, &polls)) {
			fprintf(stderr, "weft run: no memory\n");
			clean_up(l);
			l->code = CODE_FAULT;
			break;
		}
		polls[0] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
		/* A line that finds no room waits for the sink, not for the agent. */
		polls[1] = (struct pollfd){ .fd = l->line_full || !l->agent ? -1 : l->control, .events = POLLIN };
		n = streams_fill(l->streams, polls + 2, &ms);
		if (!l->agent && !l->line_full && line_waits(l))
			ms = 0;
		if (poll(polls, n + 2, ms) < 0)
			continue;
		if (polls[0].revents)
			on_signal(l);
		streams_act(l->streams, polls + 2, n);
	}
	free(polls);
	return l->code;
}

/* 0, 1 and 2 are something, so that nothing else gets their numbers. An outer job's door is not the inner processes'. */
int run_descriptors(void)
{
	const char *door = getenv(WF_AGENT_ENV);
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -1;
	} while (fd <= STDERR_FILENO);
	close(fd);
	if (door && atoi(door) > STDERR_FILENO)
		fcntl(atoi(door), F_SETFD, FD_CLOEXEC);
	unsetenv(WF_AGENT_ENV);
	return 0;
}

/* A signal that was ignored when we started stays so: it is not taken. */
int run_signals(struct run *run, bool forwards, int *ret_signals)
{
	struct sigaction was;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; forwards && i < sizeof(forwarded) / sizeof(*forwarded); i++)
		if (sigaction(forwarded[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaddset(&set, forwarded[i]);
	sigaction(SIGPIPE, NULL, &was);
	run->pipe_ignored = was.sa_handler == SIG_IGN;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &set, &run->mask) < 0)
		return -1;
	*ret_signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_signals < 0 ? -1 : 0;
}

/* Signals of the terminal and to the launcher's group are the launcher's to forward, and the terminal is the launcher's to read. Without one a group of its own will do:
 * the kernel shares out its cores by sessions first (autogroups), and there are kernels where a session waits for seconds while those of others are busy. */
static void part(void)
{
	int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (terminal < 0) {
		setpgid(0, 0);
		return;
	}
	close(terminal);
	setsid();
}

pid_t run_agent(struct run *run, int signals, int *ret_control)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		close(signals);
		run->control = pair[1];
		part();
		return 0;
	}
	close(pair[1]);
	*ret_control = pair[0];
	return pid;
}

static int launch(struct launcher *l)
{
	if (run_descriptors() < 0)
		return -1;
	files_raise(&l->run.files);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || run_signals(&l->run, true, &l->signals) < 0)
		return -1;
	l->streams = streams_open(&l->run);
	if (!l->streams)
		return -1;
	l->agent = run_agent(&l->run, l->signals, &l->control);
	if (l->agent < 0)
		return -1;
	if (l->agent == 0) {
		streams_leave(l->streams);
		agent_main(&l->run);
	}
	streams_split(l->streams, &l->run);
	return 0;
}

int run_main(int argc, char **argv)
{
	static struct launcher l;
	int r = run_options(&l.run, argc, argv);

	if (r >= 0)
		return r;
	if (l.run.list)
		return field_main(&l.run);
	if (launch(&l) < 0) {
		fprintf(stderr, "weft run: cannot start: %s%s\n", strerror(errno), errno == EMFILE ? " (ulimit -n)" : "");
		return CODE_FAULT;
	}
	return loop(&l);
}
