/* station.c - `weft agent`: a host of a job on several, as the launcher reaches it.
 *
 * It is started there by the launcher's template (ssh, or whatever --launcher says) and talks with it through its standard input and output. It forks the
 * agent as a launcher does, and stands between the two: what concerns the agent goes on to it, what the processes print goes back, as far as the launcher
 * keeps up with printing. If either is gone, everything here is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "brief.h"
#include "control.h"
#include "hosted.h"
#include "outputs.h"
#include "run.h"
#include "tree.h"

#define KILL_MS 5000

struct station {
	struct run run;
	struct talk talk;
	uint8_t *brief;                 /* what run points into */
	int control, signals;
	pid_t agent;                    /* 0: ended, or not begun */
	bool begun;
	uint32_t code;
	bool refused;                   /* it cannot do what it is to do, and has said why */

	struct outputs outputs;         /* of each process two: standard output, standard error */

	int feed;                       /* to rank 0; -1: it is not here, or its input has ended */
	uint8_t *input;
	size_t input_at, input_n;
	bool input_over;
};

/* Ending */

static _Noreturn void give_up(void)
{
	tree_kill(KILL_MS);
	_exit(CODE_FAULT);
}

static void say_line(struct station *s, const char *text)
{
	talk_say(&s->talk, CONTROL_LINE, text, strlen(text));
}

/* Where this host is reached, if nobody has said it: the address of an adapter that is up, rather not of the loopback. */
void station_adapter(char *ret_text, size_t n)
{
	struct ifaddrs *all, *i;
	int best = 0;

	snprintf(ret_text, n, "127.0.0.1");
	if (getifaddrs(&all) < 0)
		return;
	for (i = all; i; i = i->ifa_next) {
		bool four = i->ifa_addr && i->ifa_addr->sa_family == AF_INET, six = i->ifa_addr && i->ifa_addr->sa_family == AF_INET6;
		const struct sockaddr_in6 *a6 = (const void *)i->ifa_addr;
		int worth = four ? 2 : 1;

		if ((!four && !six) || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK || (six && IN6_IS_ADDR_LINKLOCAL(&a6->sin6_addr)))
			continue;
		/* Bridges that containers and virtual machines have among themselves. */
		if (strncmp(i->ifa_name, "docker", 6) != 0 && strncmp(i->ifa_name, "virbr", 5) != 0)
			worth += 2;
		if (worth <= best)
			continue;
		if (inet_ntop(i->ifa_addr->sa_family, four ? (const void *)&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr : &a6->sin6_addr, ret_text, (socklen_t)n))
			best = worth;
	}
	freeifaddrs(all);
}

/* Beginning */

static int make_pipes(struct station *s)
{
	struct run *run = &s->run;
	int pair[2];

	s->outputs.alone = run->total == 1;
	run->out_fds = calloc(run->count + 1, sizeof(int));
	run->err_fds = calloc(run->count + 1, sizeof(int));
	if (!run->out_fds || !run->err_fds)
		return -1;
	for (unsigned i = 0; i < 2 * run->count; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0 || outputs_add(&s->outputs, pair[0], run->ranks[i / 2], i % 2 + 1) < 0)
			return -1;
		*(i % 2 ? &run->err_fds[i / 2] : &run->out_fds[i / 2]) = pair[1];
	}
	run->stdin_fd = STDIN_FILENO;
	if (run->count == 0 || run->ranks[0] != 0)
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	run->stdin_fd = pair[0];
	s->feed = pair[1];
	return fcntl(s->feed, F_SETFL, O_NONBLOCK);
}

static void pipes_split(struct station *s)
{
	for (unsigned i = 0; i < s->run.count; i++) {
		close(s->run.out_fds[i]);
		close(s->run.err_fds[i]);
	}
	if (s->feed >= 0)
		close(s->run.stdin_fd);
}

static bool begin_agent(struct station *s)
{
	s->agent = make_pipes(s) < 0 ? -1 : run_agent(&s->run, s->signals, &s->control);
	if (s->agent < 0) {
		char text[CONTROL_LINE_ROOM];

		snprintf(text, sizeof(text), "cannot start: %s%s", strerror(errno), errno == EMFILE ? " (ulimit -n)" : "");
		say_line(s, text);
		return false;
	}
	if (s->agent == 0) {
		outputs_close(&s->outputs);
		if (s->feed >= 0)
			close(s->feed);
		close(s->talk.in);
		close(s->talk.out);
		agent_main(&s->run);
	}
	pipes_split(s);
	s->begun = true;
	return true;
}

static bool on_brief(struct station *s, const struct wf_body *b)
{
	static char adapter[64];
	struct wf_body copy = { .n = b->n };
	char **environment, text[CONTROL_LINE_ROOM];
	const char *directory;
	struct run kept = s->run;

	s->brief = malloc(b->n + 1);
	if (!s->brief)
		return false;
	memcpy(s->brief, b->bytes, b->n);
	copy.bytes = s->brief;
	if (s->begun || !brief_read(&copy, &s->run, &environment, &directory))
		return false;
	s->run.mask = kept.mask;
	s->run.pipe_ignored = kept.pipe_ignored;
	s->run.files = kept.files;
	for (char **e = environment; *e; e++)
		putenv(*e);
	if (directory && chdir(directory) < 0) {
		snprintf(text, sizeof(text), "%s: %s", directory, strerror(errno));
		say_line(s, text);
		s->code = CODE_NOEXEC;
		s->refused = true;
		return true;
	}
	if (!s->run.adapter) {
		station_adapter(adapter, sizeof(adapter));
		s->run.adapter = adapter;
	}
	return begin_agent(s);
}

/* Passing on */

static void on_input(struct station *s, struct wf_body *b)
{
	uint8_t *more;

	if (s->feed < 0) {
		talk_say32(&s->talk, CONTROL_TAKEN, (uint32_t)b->n);
		return;
	}
	if (b->n == 0) {
		s->input_over = true;
		return;
	}
	if (s->input_at)
		memmove(s->input, s->input + s->input_at, s->input_n - s->input_at);
	s->input_n -= s->input_at;
	s->input_at = 0;
	more = realloc(s->input, s->input_n + b->n);
	if (!more)
		give_up();
	s->input = more;
	memcpy(s->input + s->input_n, b->bytes, b->n);
	s->input_n += b->n;
}

static void feed(struct station *s)
{
	ssize_t n = 0;

	if (s->feed < 0)
		return;
	if (s->input_at < s->input_n) {
		n = write(s->feed, s->input + s->input_at, s->input_n - s->input_at);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			n = (ssize_t)(s->input_n - s->input_at);        /* nobody reads it any more */
			close(s->feed);
			s->feed = -1;
		}
	}
	if (n > 0) {
		s->input_at += (size_t)n;
		talk_say32(&s->talk, CONTROL_TAKEN, (uint32_t)n);
	}
	if (s->feed >= 0 && s->input_over && s->input_at == s->input_n) {
		close(s->feed);
		s->feed = -1;
	}
}

static void from_launcher(struct station *s)
{
	enum control kind;
	struct wf_body b;

	talk_read(&s->talk);
	while (talk_next(&s->talk, &kind, &b)) {
		switch (kind) {
		case CONTROL_BRIEF:
			if (!on_brief(s, &b))
				s->talk.broken = true;
			break;
		case CONTROL_INPUT:
			on_input(s, &b);
			break;
		case CONTROL_PRINTED:
			if (!outputs_printed(&s->outputs, wf_body_get32(&b)))
				s->talk.broken = true;
			break;
		case CONTROL_LOST:
			if (b.n == 4 && wf_get32(b.bytes) == s->run.host)
				give_up();      /* nobody heard of the agent: whatever it does, this host is out */
			/* fallthrough */
		default:
			/* If the agent does not read, being stopped by somebody, what its socket has no room for is lost. */
			if (s->agent)
				control_send(s->control, kind, b.bytes, b.n);
		}
	}
}

/* A process was started that this station has made no pipes for. */
static void on_stream(struct station *s, const uint8_t *body, int n, const int fds[2])
{
	bool lost = n != 4 || fds[0] < 0;

	s->outputs.alone = false;
	for (uint32_t i = 0; !lost && i < 2; i++)
		lost = outputs_add(&s->outputs, fds[i], wf_get32(body), i + 1) < 0;
	if (lost)
		say_line(s, "what a process prints is lost: no descriptors left (ulimit -n), or no memory");
}

static bool from_agent(struct station *s)
{
	static uint8_t body[CONTROL_PACKET];
	enum control kind;
	int fds[2], n = control_recv_stream(s->control, &kind, body, fds);

	if (n < 0)
		return false;
	if (kind == CONTROL_STREAM)
		on_stream(s, body, n, fds);
	else
		talk_say(&s->talk, kind, body, (size_t)n);
	return true;
}

static void reap(struct station *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		char text[CONTROL_LINE_ROOM];

		if (pid != s->agent)
			continue;
		while (from_agent(s))
			continue;
		s->agent = 0;
		s->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : DONE_KILLED;
		if (WIFSIGNALED(status)) {
			snprintf(text, sizeof(text), "the agent was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
			say_line(s, text);
		}
		if (!tree_kill(KILL_MS))
			s->code = CODE_FAULT;
	}
}

/* Signals for the processes come by way of the launcher. One that is to end the station ends this host, and so does the launcher's death: of both the station must
 * not die itself before that is done. */
static void on_signals(struct station *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT)
			give_up();
}

/* Everything has been said: what the processes printed, and how it ended. */
static bool is_over(struct station *s)
{
	return s->begun && !s->agent ? outputs_over(&s->outputs, &s->talk) : s->refused;
}

static void loop(struct station *s)
{
	struct pollfd *polls = NULL;
	bool done = false;

	while (!done || talk_owes(&s->talk)) {
		unsigned n = 4;
		struct pollfd *more = realloc(polls, (5 + s->outputs.count) * sizeof(*polls));

		if (!more || s->talk.broken)
			give_up();
		polls = more;
		polls[0] = (struct pollfd){ .fd = s->talk.in, .events = POLLIN };
		polls[1] = (struct pollfd){ .fd = talk_owes(&s->talk) ? s->talk.out : -1, .events = POLLOUT };
		polls[2] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		polls[3] = (struct pollfd){ .fd = s->feed >= 0 && s->input_at < s->input_n ? s->feed : -1, .events = POLLOUT };
		outputs_fill(&s->outputs, polls + n);
		n += s->outputs.count;
		if (s->agent)
			polls[n++] = (struct pollfd){ .fd = s->control, .events = POLLIN };
		if (poll(polls, n, outputs_wait(&s->outputs, now_ns())) < 0 && errno != EINTR)
			give_up();
		if (polls[0].revents)
			from_launcher(s);
		talk_write(&s->talk);
		if (polls[2].revents)
			on_signals(s);
		feed(s);
		if (s->agent)
			while (from_agent(s))
				continue;
		if (s->begun)
			outputs_carry(&s->outputs, &s->talk, now_ns());
		reap(s);
		if (!done && is_over(s)) {
			talk_say32(&s->talk, CONTROL_DONE, s->code);
			done = true;
		}
	}
}

/* Its own input and output are the conversation: nothing else may read or write there. */
static int take_streams(struct station *s)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	close(null);
	talk_open(&s->talk, in, out);
	return 0;
}

int station_main(int argc, char **argv)
{
	static struct station s = { .feed = -1 };
	uint8_t room[sizeof(struct hello)];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };
	struct hello hello;

	if (argc == 2 && strcmp(argv[1], "--pact") == 0)
		return hosted_main();
	if (argc > 1) {
		fprintf(stderr, "weft agent: %s: it takes no arguments, and is started by weft run\n", argv[1]);
		return CODE_USAGE;
	}
	if (isatty(STDIN_FILENO)) {
		fprintf(stderr, "weft agent: is started by weft run on other hosts\n");
		return CODE_USAGE;
	}
	if (run_descriptors() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || run_signals(&s.run, true, &s.signals) < 0 || take_streams(&s) < 0) {
		fprintf(stderr, "weft agent: cannot start: %s\n", strerror(errno));
		return CODE_FAULT;
	}
	files_raise(&s.run.files);
	if (write(s.talk.out, TALK_MAGIC, TALK_MAGIC_BYTES) != (ssize_t)TALK_MAGIC_BYTES)
		return CODE_FAULT;
	hello_make(&hello);
	hello_write(&b, &hello);
	talk_say(&s.talk, CONTROL_HELLO, room, b.at);
	loop(&s);
	return 0;
}
