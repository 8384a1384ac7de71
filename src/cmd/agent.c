/* agent.c - the agent of a job: its loop, and how it ends.
 *
 * WORKING   until every started program has ended, or something ends the job.
 * ENDING    what is left was asked to end (SIGTERM) and has END_GRACE for it.
 * KILLING   what is left is killed, again every KILL_AGAIN, until nothing is. A process that aborts the job leads here
 *           at once.
 *
 * Processes are served in all three. If the launcher is gone there is nobody to be kind to: everything is killed at once.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "embassy.h"
#include "grow.h"
#include "guest.h"
#include "hosted.h"
#include "launch.h"
#include "mesh.h"
#include "outlet.h"
#include "post.h"
#include "relay.h"
#include "tree.h"

#define END_GRACE SECOND
#define KILL_AGAIN (5 * MS)
#define INTERRUPT_QUIET (5 * SECOND)
#define LAST_WORDS SECOND
#define KILL_LIMIT (5 * SECOND) /* what has another user by now, or waits for a dead device, cannot be killed */
#define PLACE_FILES 6           /* descriptors of a place: door, calls, notes, board, event, pidfd */
#define SPARE_FILES 64
#define MOST_FILES (1 << 30)
#define LINES_PER_PLACE 4       /* lines kept for a launcher that does not read, being stopped */

struct packet {
	struct packet *next;
	enum control kind;
	size_t n;
	uint8_t body[];
};

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What the launcher is told, and lines for the user. Whatever finds no room waits for it, in order: who is stopped for a while is not to miss that the last process has ended. */

static void packets_flush(struct agent *a)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)FROM_CONTROL << 32 };

	while (a->packets) {
		struct packet *p = a->packets;

		if (control_send(a->control, p->kind, p->body, p->n) < 0)
			break;
		a->packets = p->next;
		if (!a->packets)
			a->packets_end = &a->packets;
		a->line_count -= p->kind == CONTROL_LINE;
		free(p);
	}
	if (a->packets_wait == (a->packets != NULL))
		return;
	e.events |= a->packets ? EPOLLOUT : 0u;
	if (epoll_ctl(a->epoll, EPOLL_CTL_MOD, a->control, &e) == 0)
		a->packets_wait = !a->packets_wait;
}

void agent_tell(struct agent *a, enum control kind, const void *body, size_t n)
{
	struct packet *p;

	if (a->run->hosted || (!a->packets && control_send(a->control, kind, body, n) == 0))
		return;
	p = malloc(sizeof(*p) + n);
	if (!p)
		return;
	*p = (struct packet){ .kind = kind, .n = n };
	memcpy(p->body, body, n);
	*a->packets_end = p;
	a->packets_end = &p->next;
	a->line_count += kind == CONTROL_LINE;
	packets_flush(a);
}

void agent_tell32(struct agent *a, enum control kind, uint32_t value)
{
	uint8_t body[4];

	wf_put32(body, value);
	agent_tell(a, kind, body, sizeof(body));
}

static void say(struct agent *a, const char *fmt, va_list args)
{
	char text[CONTROL_LINE_ROOM];

	vsnprintf(text, sizeof(text), fmt, args);
	if (a->run->hosted)
		fprintf(stderr, "weft agent: %s\n", text);
	else if (a->line_count < a->count * LINES_PER_PLACE + 64)
		agent_tell(a, CONTROL_LINE, text, strlen(text));
}

void agent_say(struct agent *a, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(a, fmt, args);
	va_end(args);
}

void agent_remark(struct agent *a, const char *fmt, ...)
{
	va_list args;

	if (!a->run->verbose)
		return;
	va_start(args, fmt);
	say(a, fmt, args);
	va_end(args);
}

/* The end */

static _Noreturn void leave(struct agent *a)
{
	embassy_close(a);
	/* The launcher reads, unless it is stopped: then what it had no room for is not worth more than a moment. */
	for (int64_t until = now_ns() + LAST_WORDS; a->packets && now_ns() < until;) {
		struct pollfd p = { .fd = a->control, .events = POLLOUT };

		poll(&p, 1, (int)(LAST_WORDS / MS));
		packets_flush(a);
	}
	_exit(a->code);
}

/* Takes note of every child that has ended. True: there are no more. */
static bool reap(struct agent *a)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0)
			death_reaped(a, pid, status);
		else if (pid == 0)
			return false;
		else if (errno != EINTR)
			return true;
	}
}

/* Groups first: that needs no /proc, and nobody in them can slip away. A group whose first process was reaped may
 * be another's. */
static void signal_groups(struct agent *a, int sig)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->places[i]->main)
			kill(-a->places[i]->main, sig);
}

static void signal_all(struct agent *a, int sig)
{
	signal_groups(a, sig);
	tree_signal(sig);
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void agent_failed(struct agent *a, int code)
{
	if (a->failed)
		return;
	a->failed = true;
	a->code = code;
	if (a->run->meshed)
		agent_tell32(a, CONTROL_FAILED, (uint32_t)code);
}

/* The only host has nothing to wait for; of several each stays until the launcher says that none has. A hosted one looks for itself. */
void agent_idle(struct agent *a)
{
	if (a->run->hosted)
		return;
	if (a->run->meshed)
		agent_tell32(a, CONTROL_IDLE, a->running + a->draining);
	else if (a->running == 0)
		agent_end(a, 0);
}

void agent_end(struct agent *a, int code)
{
	if (code)
		agent_failed(a, code);
	if (a->phase != WORKING)
		return;
	a->phase = ENDING;
	a->deadline = now_ns() + END_GRACE;
	if (!has_children())
		return;         /* the loop leaves */
	signal_all(a, SIGTERM);
	signal_all(a, SIGCONT);
}

static void kill_again(struct agent *a, int64_t now)
{
	if (a->phase == ENDING) {
		a->phase = KILLING;
		a->give_up = now + KILL_LIMIT;
	}
	if (now >= a->give_up) {
		agent_say(a, "processes are left that cannot be killed");
		a->code = CODE_FAULT;
		leave(a);
	}
	a->deadline = now + KILL_AGAIN;
	signal_all(a, SIGKILL);
}

static void kill_now(struct agent *a, int code)
{
	if (a->phase == WORKING) {
		a->failed = true;
		a->code = code;
		a->phase = ENDING;
	}
	if (a->phase == ENDING)
		kill_again(a, now_ns());
}

/* What the process says of how the job ends counts more than who has failed before. A job that is ending already is
 * ended faster. */
void agent_abort(struct agent *a, const struct place *by, int code, const char *why)
{
	if (a->aborted)
		return;
	a->aborted = true;
	agent_say(a, "rank %u ended the job with %d%s%s", by->rank, code, *why ? ": " : "", why);
	if (a->run->meshed)
		agent_tell32(a, CONTROL_ABORTED, (uint32_t)code);
	if (a->run->hosted)
		hosted_abort(a);
	else
		kill_now(a, code);
}

static void begin(struct agent *a);

static _Noreturn void launcher_gone(void)
{
	tree_kill((int)(KILL_LIMIT / MS));
	_exit(CODE_FAULT);
}

/* The loop */

int agent_rewatch(struct agent *a, int fd, enum source from, uint32_t number)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)from << 32 | number };

	return epoll_ctl(a->epoll, EPOLL_CTL_MOD, fd, &e);
}

int agent_watch(struct agent *a, int fd, enum source from, uint32_t number)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)from << 32 | number };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void forward(struct agent *a, int sig)
{
	if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT)
		a->interrupted = now_ns() + INTERRUPT_QUIET;
	if (sig == SIGTSTP || sig == SIGCONT)
		a->stopped = sig == SIGTSTP;
	signal_groups(a, sig);
}

/* All know this host, and it knows them. */
static void on_begin(struct agent *a)
{
	if (a->begun)
		return;
	a->begun = true;
	begin(a);
	launch_begun(a);
}

static void on_control(struct agent *a)
{
	static uint8_t bytes[CONTROL_PACKET];
	struct wf_body b = { .bytes = bytes };
	enum control kind;
	int n = control_recv(a->control, &kind, bytes);

	if (n == -EAGAIN)
		return;
	if (n < 0)
		launcher_gone();
	b.n = (size_t)n;
	switch (kind) {
	case CONTROL_SIGNAL:
		forward(a, (int)wf_body_get32(&b));
		break;
	case CONTROL_MEMBERS:
		mesh_members(a, &b);
		break;
	case CONTROL_BEGIN:
		on_begin(a);
		break;
	case CONTROL_GROWN:
		grow_told(a, &b);
		break;
	case CONTROL_LOST:
		mesh_lost(a, wf_body_get32(&b));
		break;
	case CONTROL_NUMBERS: {
		uint32_t ticket = wf_body_get32(&b);

		launch_numbers(a, ticket, wf_body_get32(&b));
		break;
	}
	case CONTROL_LISTEN:
		mesh_listen(a);
		break;
	case CONTROL_SERVER:
		mesh_server(a, &b);
		break;
	case CONTROL_END:
		agent_end(a, (int)wf_body_get32(&b));
		break;
	case CONTROL_KILL:
		kill_now(a, (int)wf_body_get32(&b));
		break;
	default:
		break;
	}
}

static void on_signal(struct agent *a)
{
	struct signalfd_siginfo s;

	if (read(a->signals, &s, sizeof(s)) != (ssize_t)sizeof(s) || s.ssi_signo == SIGCHLD)
		return;         /* children are looked after in every turn */
	agent_say(a, "the agent got signal %u (%s) and ends the job", s.ssi_signo, strsignal((int)s.ssi_signo));
	agent_end(a, 128 + (int)s.ssi_signo);
}

static void on_event(struct agent *a, const struct epoll_event *e)
{
	uint32_t number = (uint32_t)e->data.u64;
	enum source from = (enum source)(e->data.u64 >> 32);
	struct place *p = number && from != FROM_GUEST ? a->numbered[number] : NULL;

	/* What was closed while this event waited for its turn is -1 by now. */
	switch (from) {
	case FROM_CONTROL:
		if (a->run->hosted)
			hosted_control(a);
		else
			on_control(a);
		break;
	case FROM_SIGNALS:
		on_signal(a);
		break;
	case FROM_DOOR:
		if (p->door >= 0)
			desk_door(a, p);
		break;
	case FROM_CALLS:
		if (p->calls >= 0)
			desk_call(a, p);
		break;
	case FROM_NOTES:
		if (p->notes < 0)
			break;
		if (e->events & (EPOLLHUP | EPOLLERR))
			death_link(a, p);
		else if (e->events & EPOLLIN)
			death_nonsense(a, p, "something where it only has to listen");
		else
			news_flush(a, p);
		break;
	case FROM_PIDFD:
		if (p->pidfd >= 0)
			death_pidfd(a, p);
		break;
	case FROM_MESH:
		mesh_event(a);
		break;
	case FROM_EXEC:
		if (p->exec >= 0)
			start_known(a, p);
		break;
	case FROM_GUESTS:
		guest_arrives(a);
		break;
	case FROM_GUEST:
		guest_knocks(a, number);
		break;
	case FROM_RELAY:
		relay_ready(a, number);
		break;
	case FROM_OUTLET:
		outlet_ready(a, number);
		break;
	}
}

static void sooner(int64_t *until, int64_t other)
{
	if (other && (!*until || other < *until))
		*until = other;
}

static int wait_ms(const struct agent *a)
{
	int64_t until = 0, left;

	if (a->phase != WORKING)
		sooner(&until, a->deadline);
	else
		sooner(&until, a->timeout);
	sooner(&until, a->stop_look);
	sooner(&until, mesh_next(a));
	sooner(&until, post_next(a));
	sooner(&until, relay_next(a));
	sooner(&until, embassy_next(a));
	sooner(&until, hosted_next(a));
	if (!until)
		return -1;
	left = until - now_ns();
	return left <= 0 ? 0 : (int)(left / MS < 3600000 ? left / MS + 1 : 3600000);
}

static void on_time(struct agent *a)
{
	int64_t now = now_ns();

	if (a->phase == WORKING && a->timeout && now >= a->timeout) {
		agent_say(a, "the time is over: %g s", a->run->timeout);
		agent_end(a, CODE_TIMEOUT);
	} else if (a->phase != WORKING && now >= a->deadline) {
		kill_again(a, now);
	}
	mesh_look(a, now);
	post_look(a, now);
	relay_look(a, now);
	embassy_look(a, now);
	if (a->run->hosted)
		hosted_look(a, now);
	if (a->stop_look && now >= a->stop_look) {
		death_stopped(a);
		a->stop_look = now + (int64_t)(a->run->stop_limit * (double)SECOND / 10) + 1;
	}
}

static _Noreturn void loop(struct agent *a)
{
	for (;;) {
		struct epoll_event events[64];
		int n;

		on_time(a);
		if (reap(a) && a->phase != WORKING)
			leave(a);
		n = epoll_wait(a->epoll, events, sizeof(events) / sizeof(*events), wait_ms(a));
		for (int i = 0; i < n; i++)
			on_event(a, &events[i]);
		packets_flush(a);
	}
}

/* The beginning */

struct place *place_add(struct agent *a, uint32_t number, uint32_t base, uint32_t size)
{
	struct place *p = calloc(1, sizeof(*p)), **all = realloc(a->places, (a->count + 1) * sizeof(*all));

	if (all)
		a->places = all;
	if (p)
		p->marks = calloc(WF_AGENTS, 1);
	if (!all || !p || !p->marks) {
		free(p);
		return NULL;
	}
	p->number = number;
	p->base = base;
	p->size = size;
	p->rank = number - base - 1;
	p->index = a->count;
	p->pidfd = p->door = p->calls = p->notes = p->board = p->event = p->exec = p->out = p->err = -1;
	a->places[a->count++] = p;
	a->numbered[number] = p;
	a->where.spots[number] = (struct spot){ .known = true, .host = a->run->host };
	return p;
}

static int places_make(struct agent *a)
{
	for (unsigned i = 0; i < a->run->count; i++) {
		struct place *p = place_add(a, a->run->ranks[i] + 1, 0, a->run->total);

		if (!p)
			return -1;
		p->part = a->run->parts ? start_part(a->run, p->rank, &p->app) : NULL;
	}
	return 0;
}

/* Who is where, as far as it was decided before anything was started. */
static void where_planned(struct agent *a)
{
	const struct run *run = a->run;

	a->where.host = run->host;
	if (run->map)
		where_listed(&a->where, run->map);
	for (unsigned i = 0; run->host_of && i < run->total; i++)
		a->where.spots[i + 1] = (struct spot){ .known = true, .host = run->host_of[i] };
}

static int agent_init(struct agent *a)
{
	struct rlimit files;
	sigset_t all;

	prctl(PR_SET_NAME, "weft-agent");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGINT);
	sigaddset(&all, SIGHUP);
	sigaddset(&all, SIGQUIT);
	a->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	where_planned(a);
	if (a->signals < 0 || a->epoll < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || places_make(a) < 0 || post_open(a) < 0)
		return -1;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_cur < MOST_FILES ? files.rlim_cur : MOST_FILES;
	if (files.rlim_cur > a->run->count * PLACE_FILES + SPARE_FILES)
		a->segments_most = (unsigned)files.rlim_cur - a->run->count * PLACE_FILES - SPARE_FILES;
	if (a->run->meshed)
		memcpy(a->job, a->run->job, sizeof(a->job));
	else if (getrandom(a->job, sizeof(a->job), 0) != (ssize_t)sizeof(a->job))
		return -1;
	guest_open(a);
	if (agent_watch(a, a->control, FROM_CONTROL, 0) < 0 || agent_watch(a, a->signals, FROM_SIGNALS, 0) < 0)
		return -1;
	return 0;
}

/* What only processes have a use for. */
static void streams_drop(const struct run *run)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (null > STDERR_FILENO)
		close(null);
	if (run->stdin_fd > STDERR_FILENO)
		close(run->stdin_fd);
	for (unsigned i = 0; run->out_fds && i < run->count; i++) {
		close(run->out_fds[i]);
		close(run->err_fds[i]);
	}
}

static void begin(struct agent *a)
{
	if (!start_all(a))
		agent_end(a, CODE_FAULT);
	streams_drop(a->run);
	if (a->run->meshed)
		agent_idle(a);
}

_Noreturn void agent_main(const struct run *run)
{
	static struct agent a;

	a.run = run;
	a.control = run->control;
	a.exec_errors = -1;
	a.packets_end = &a.packets;
	if (agent_init(&a) < 0) {
		agent_say(&a, "the agent cannot start: %s", strerror(errno));
		a.code = CODE_FAULT;
		leave(&a);
	}
	if (run->timeout > 0)
		a.timeout = now_ns() + (int64_t)(run->timeout * (double)SECOND);
	if (run->stop_limit > 0)
		a.stop_look = now_ns();
	if (run->hosted)
		hosted_begin(&a);
	else if (!run->meshed)
		begin(&a);
	else if (mesh_open(&a) < 0)
		agent_end(&a, CODE_FAULT);
	loop(&a);
}
