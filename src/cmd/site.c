/* site.c - a host as the launcher of several sees it: the command that starts a station there, and what that is told first. See field.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "field.h"
#include "template.h"

struct site *site_new(unsigned index, const struct host *host)
{
	struct site *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->index = index;
	s->host = *host;
	s->pieces_end = &s->pieces;
	s->talk.in = s->talk.out = -1;
	return s;
}

/* Starting what starts it */

static _Noreturn void become_starter(const struct run *run, char **argv, int in, int out)
{
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	setpgid(0, 0);          /* signals of the terminal are the launcher's to forward */
	setrlimit(RLIMIT_NOFILE, &run->files);
	signal(SIGPIPE, run->pipe_ignored ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, &run->mask, NULL);
	execvp(argv[0], argv);
	fprintf(stderr, "weft run: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC);
}

static bool is_here(const struct run *run, const char *name)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	return !run->launcher && (!strcmp(name, "localhost") || !strcmp(name, own) || !strncmp(name, "127.", 4) || !strcmp(name, "::1"));
}

int site_start(const struct run *run, struct site *s, char *words, size_t n)
{
	static char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *command[] = { self, (char *)(uintptr_t)"agent", NULL }, **argv = command;
	int to[2], from[2];
	pid_t launcher = getpid();

	self[len > 0 ? len : 0] = 0;
	if (!is_here(run, s->host.name) && template_make(run->launcher, s->host.name, command, &argv, words, n) < 0)
		return -1;
	snprintf(words, n, "cannot start");
	if (len <= 0 || pipe2(to, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(from, O_CLOEXEC) < 0) {
		close(to[0]);
		close(to[1]);
		return -1;
	}
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);       /* should the pipe not be enough for whatever it is */
		if (getppid() != launcher)
			_exit(CODE_FAULT);
		become_starter(run, argv, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	if (argv != command)
		free(argv);
	talk_open(&s->talk, from[0], to[1]);
	if (s->pid > 0)
		return 0;
	snprintf(words, n, "cannot start: %s", strerror(errno));
	s->pid = 0;
	return -1;
}

/* What it is told */

/* Variables that are the host's own, or of the session there. */
static bool is_local(const char *variable)
{
	static const char *const names[] = { "SSH_", "XDG_", "DBUS_", "DISPLAY=", "HOSTNAME=", "PWD=", "OLDPWD=", "SHLVL=", "_=", "WEFT_AGENT=", "WEFT_RANK=", "WEFT_SIZE=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

bool site_brief(const struct run *run, struct site *s)
{
	extern char **environ;
	size_t n = 0;
	bool told;
	char **kept, *directory = getcwd(NULL, 0);
	struct wf_body b = { .bytes = malloc(CONTROL_BODY), .n = CONTROL_BODY };

	while (environ[n])
		n++;
	kept = calloc(n + 1, sizeof(*kept));
	if (b.bytes && kept) {
		n = 0;
		for (char **e = environ; *e; e++)
			if (!is_local(*e))
				kept[n++] = *e;
		brief_write(&b, run, s->index, s->host.address[0] ? s->host.address : NULL, kept, directory);
	}
	told = b.bytes && kept && !b.bad;
	if (told)
		talk_say(&s->talk, CONTROL_BRIEF, b.bytes, b.at);
	if (b.bytes)
		explicit_bzero(b.bytes, b.at);
	free(b.bytes);
	free(kept);
	free(directory);
	return told;
}
