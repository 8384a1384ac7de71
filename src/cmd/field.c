/* field.c - `weft run` over several hosts: the launcher's side. See run.h for the whole.
 *
 * Nothing is started anywhere before every agent can be reached; then all begin. A site is over when it says so, or when its conversation breaks: a station ends everything on its host
 * when it hears nothing more of the launcher, so a broken one is as good as dead.
 *
 * The launcher alone decides which hosts are in (verdict.h): agents tell it whom they do not hear, and it has another way to each. The first host that is in serves the
 * directory.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "brief.h"
#include "control.h"
#include "embassy.h"
#include "field.h"
#include "growth.h"
#include "mem/segment.h"
#include "run.h"
#include "streams.h"
#include "tree.h"

#define START_LIMIT (60 * SECOND)       /* for a host to answer */
#define END_LIMIT (10 * SECOND)         /* for a host to end what it has, when it was told to */
#define SECOND_INT (5 * SECOND)
#define INPUT_MOST (64u << 10)          /* bytes on their way to rank 0 */
#define LINES_MOST (1u << 20)           /* bytes of lines that wait for their reader: what is told beyond that is left out */
#define KILL_MS 5000

/* Words */

static void say(struct field *f, const struct site *site, const char *text)
{
	size_t n = strlen(text) + (site ? strlen(site->host.name) + 2 : 0) + 1;

	if (f->lines_n > LINES_MOST)
		return;
	if (f->lines_n + n > f->lines_room) {
		char *more = realloc(f->lines, 2 * (f->lines_n + n));

		if (!more)
			return;
		f->lines = more;
		f->lines_room = 2 * (f->lines_n + n);
	}
	snprintf(f->lines + f->lines_n, n, "%s%s%s", site ? site->host.name : "", site ? ": " : "", text);
	f->lines_n += n;
}

static void lines_print(struct field *f)
{
	while (f->lines_at < f->lines_n && streams_line(f->streams, f->lines + f->lines_at))
		f->lines_at += strlen(f->lines + f->lines_at) + 1;
	if (f->lines_at == f->lines_n)
		f->lines_at = f->lines_n = 0;
}

/* All of them */

bool site_is_in(const struct site *s)
{
	return s->stage < SITE_DONE;
}

void field_tell_all(struct field *f, enum control kind, uint32_t value)
{
	for (unsigned i = 0; i < f->count; i++)
		if (site_is_in(f->sites[i]) && !(f->sites[i]->growth && f->sites[i]->stage < SITE_READY))
			talk_say32(&f->sites[i]->talk, kind, value);
}

static void fail(struct field *f, int code)
{
	if (f->failed)
		return;
	f->failed = true;
	f->code = code;
}

static void end_all(struct field *f, int code)
{
	if (code)
		fail(f, code);
	if (f->phase == ENDING)
		return;
	/* A station that has not got its brief has no agent to tell: it ends with the conversation. */
	for (unsigned i = 0; i < f->count; i++)
		if (site_is_in(f->sites[i]) && f->sites[i]->stage < SITE_READY) {
			talk_close(&f->sites[i]->talk);
			f->sites[i]->stage = SITE_DONE;
		}
	field_tell_all(f, CONTROL_END, (uint32_t)code);
	f->phase = ENDING;
	f->deadline = now_ns() + END_LIMIT;
}

/* Who serves the directory: the first that is in. */
void field_tell_server(const struct field *f, struct site *s)
{
	uint8_t words[8];

	wf_put32(words, f->server);
	wf_put32(words + 4, f->epoch);
	talk_say(&s->talk, CONTROL_SERVER, words, sizeof(words));
}

static void appoint(struct field *f)
{
	unsigned i = 0;

	while (i < f->count && f->sites[i]->stage != SITE_WORKING)
		i++;
	if (i == f->count)
		return;
	f->server = i;
	f->epoch++;
	verdict_server(&f->verdict, i);
	for (i = 0; i < f->count; i++)
		if (site_is_in(f->sites[i]) && f->sites[i]->stage >= SITE_JOINING)
			field_tell_server(f, f->sites[i]);
}

static void look_idle(struct field *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (site_is_in(f->sites[i]) && !f->sites[i]->growth && (f->sites[i]->stage != SITE_WORKING || f->sites[i]->running))
			return;
	if (f->phase == WORKING)
		end_all(f, 0);
}

/* @why NULL: it has said so itself. */
static void lost(struct field *f, struct site *s, const char *why)
{
	if (!site_is_in(s))
		return;
	if (s->growth) {
		growth_failed(f, s, why ? why : "its agent was killed");
		return;
	}
	if (why && (f->phase != ENDING || s->stage >= SITE_READY))
		say(f, s, why);
	talk_close(&s->talk);
	s->stage = SITE_LOST;
	verdict_in(&f->verdict, s->index, false);
	fail(f, CODE_FAULT);
	if (f->phase == GATHERING || f->run->kill_on_fail) {
		end_all(f, CODE_FAULT);
		return;
	}
	field_tell_all(f, CONTROL_LOST, s->index);
	if (f->server == s->index)
		appoint(f);
	growth_look_known(f);
	look_idle(f);
}

/* Beginning */

static void on_hello(struct field *f, struct site *s, struct wf_body *b)
{
	struct hello mine;
	char words[256];

	hello_make(&mine);
	if (s->stage != SITE_STARTING || !hello_read(b, &s->hello)) {
		lost(f, s, "what answers there is no weft");
		return;
	}
	hello_compare(&mine, "this host", &s->hello, "that one", words, sizeof(words));
	if (words[0]) {
		lost(f, s, words);
		return;
	}
	s->stage = SITE_GREETED;
	if (!site_brief(f->run, s))
		lost(f, s, "what it is to do is too long to be told");
}

void field_member(struct wf_body *b, const struct site *s)
{
	wf_body_u32(b, s->index);
	wf_body_text(b, s->at);
	wf_body_text(b, s->host.name);
	wf_body_u32(b, s->host.slots);
}

/* Every agent can be reached: they are told of each other, and begin. */
static void begin_all(struct field *f)
{
	struct wf_body b = { .n = 4 + (size_t)f->count * FIELD_MEMBER };

	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->stage != SITE_READY)
			return;
	b.bytes = malloc(b.n);
	if (!b.bytes) {
		end_all(f, CODE_FAULT);
		return;
	}
	wf_body_u32(&b, f->count);
	for (unsigned i = 0; i < f->count; i++) {
		field_member(&b, f->sites[i]);
		f->sites[i]->stage = SITE_WORKING;
		f->sites[i]->running = 1;        /* until it says otherwise */
		f->sites[i]->told = true;
		verdict_in(&f->verdict, i, true);
	}
	f->phase = WORKING;
	f->deadline = 0;
	appoint(f);
	for (unsigned i = 0; i < f->count; i++) {
		talk_say(&f->sites[i]->talk, CONTROL_MEMBERS, b.bytes, b.at);
		talk_say(&f->sites[i]->talk, CONTROL_BEGIN, NULL, 0);
	}
	free(b.bytes);
}

static void on_at(struct field *f, struct site *s, const struct wf_body *b)
{
	if (s->stage != SITE_GREETED || b->n >= sizeof(s->at)) {
		lost(f, s, "it said nonsense");
		return;
	}
	memcpy(s->at, b->bytes, b->n);
	s->at[b->n] = 0;
	s->stage = SITE_READY;
	if (s->growth)
		growth_next_joins(f);
	else
		begin_all(f);
}

/* Going on */

static void judge(struct field *f, int64_t now)
{
	uint32_t host;

	while (f->phase == WORKING && verdict_look(&f->verdict, now, &host)) {
		talk_say32(&f->sites[host]->talk, CONTROL_LOST, host);
		lost(f, f->sites[host], "the other hosts hear nothing of it any more: it is given up");
	}
}

/* A number of a process is given once. */
static void on_numbers(struct field *f, struct site *s, struct wf_body *b)
{
	uint32_t ticket = wf_body_get32(b), count = wf_body_get32(b), base = 0;
	uint8_t room[8];

	if (b->bad)
		return;
	if (!f->numbers)
		f->numbers = f->run->total;
	if (!count)
		base = f->jobs < TREATY_ALIASES - 1 ? ++f->jobs : 0;
	else if (count < WF_AGENTS && f->numbers + count < WF_AGENTS) {
		base = f->numbers;
		f->numbers += count;
	}
	wf_put32(room, ticket);
	wf_put32(room + 4, base);
	talk_say(&s->talk, CONTROL_NUMBERS, room, sizeof(room));
}

static void on_output(struct field *f, struct site *s, struct wf_body *b)
{
	uint32_t rank = wf_body_get32(b), stream = wf_body_get32(b);
	struct piece *p;

	if (!b->bad && b->n == b->at)
		s->ends++;
	p = !b->bad && rank < WF_AGENTS && s->ends <= 2 * WF_AGENTS && b->n - b->at <= CONTROL_OUTPUT_WAY - s->unprinted ? malloc(sizeof(*p) + (b->n - b->at)) : NULL;
	if (!p) {
		lost(f, s, "it said nonsense");
		return;
	}
	*p = (struct piece){ .rank = rank, .stream = stream, .n = b->n - b->at };
	memcpy(p->bytes, b->bytes + b->at, p->n);
	*s->pieces_end = p;
	s->pieces_end = &p->next;
	s->unprinted += p->n;
}

static void on_taken(struct field *f, struct site *s, uint32_t n)
{
	if (s != f->sites[f->run->host_of[0]] || n > f->input_way)
		lost(f, s, "it said nonsense");
	else
		f->input_way -= n;
}

static void print_pieces(struct field *f, struct site *s)
{
	while (s->pieces) {
		struct piece *p = s->pieces;
		size_t n = p->n ? streams_take(f->streams, p->rank, p->stream, p->bytes + p->at, p->n - p->at) : 0;

		if (p->n ? n == 0 : !streams_over(f->streams, p->rank, p->stream))
			return;
		p->at += n;
		s->unprinted -= n;
		if (n)
			talk_say32(&s->talk, CONTROL_PRINTED, (uint32_t)n);
		if (p->at < p->n)
			continue;
		s->ends -= p->n == 0;
		s->pieces = p->next;
		if (!s->pieces)
			s->pieces_end = &s->pieces;
		free(p);
	}
}

static void on_line(struct field *f, struct site *s, const struct wf_body *b)
{
	char text[CONTROL_LINE_ROOM];

	snprintf(text, sizeof(text), "%.*s", (int)(b->n < sizeof(text) ? b->n : sizeof(text) - 1), (const char *)b->bytes);
	if (s->growth)
		memcpy(s->line, text, sizeof(text));    /* for who has asked for it */
	else
		say(f, s, text);
}

/* An agent that ends by itself could not start what it had to, or was asked to end the job; one that was killed is that host's misfortune. */
static void on_done(struct field *f, struct site *s, uint32_t code)
{
	if (code == DONE_KILLED || s->growth) {
		lost(f, s, s->growth ? "its agent has ended" : NULL);
		return;
	}
	s->stage = SITE_DONE;
	if (code)
		fail(f, (int)code);
	if (f->phase != ENDING)
		end_all(f, (int)code);
}

/* Of one that is to join; whatever goes wrong there is nothing to the job. */
static bool may_say(const struct site *s, enum control kind)
{
	return !s->growth || kind == CONTROL_HELLO || kind == CONTROL_AT || kind == CONTROL_LINE || kind == CONTROL_KNOWN || kind == CONTROL_FAILED || kind == CONTROL_DONE;
}

static void on_packet(struct field *f, struct site *s, enum control kind, struct wf_body *b)
{
	if (!may_say(s, kind)) {
		lost(f, s, "it said nonsense");
		return;
	}
	switch (kind) {
	case CONTROL_HELLO:
		on_hello(f, s, b);
		break;
	case CONTROL_AT:
		on_at(f, s, b);
		break;
	case CONTROL_LINE:
		on_line(f, s, b);
		break;
	case CONTROL_OUTPUT:
		on_output(f, s, b);
		break;
	case CONTROL_TAKEN:
		on_taken(f, s, wf_body_get32(b));
		break;
	case CONTROL_FAILED:
		if (s->growth)
			break;
		fail(f, (int)wf_body_get32(b));
		if (f->run->kill_on_fail)
			end_all(f, f->code);
		break;
	case CONTROL_ABORTED:
		if (!f->failed || f->phase == WORKING)
			f->code = (int)wf_body_get32(b);
		f->failed = true;
		field_tell_all(f, CONTROL_KILL, (uint32_t)f->code);
		end_all(f, f->code);
		break;
	case CONTROL_IDLE:
		s->running = wf_body_get32(b);
		look_idle(f);
		break;
	case CONTROL_NUMBERS:
		on_numbers(f, s, b);
		break;
	case CONTROL_SILENT:
		if (verdict_silent(&f->verdict, s->index, wf_body_get32(b), now_ns()))
			field_tell_all(f, CONTROL_LISTEN, 0);
		break;
	case CONTROL_HEARD:
		verdict_heard(&f->verdict, s->index, wf_body_get32(b), now_ns());
		break;
	case CONTROL_KNOWN:
		growth_known(f, s, wf_body_get32(b));
		break;
	case CONTROL_GROW:
		if (!growth_asked(f, s, b))
			lost(f, s, "it said nonsense");
		break;
	case CONTROL_DONE:
		on_done(f, s, wf_body_get32(b));
		break;
	default:
		lost(f, s, "it said nonsense");
	}
}

static void on_site(struct field *f, struct site *s)
{
	enum control kind;
	struct wf_body b;

	talk_read(&s->talk);
	if (!s->begun)
		s->begun = talk_begun(&s->talk);
	while (s->begun && site_is_in(s) && talk_next(&s->talk, &kind, &b))
		on_packet(f, s, kind, &b);
	if (s->talk.broken && site_is_in(s))
		lost(f, s, s->begun ? "the connection to it broke" : "it could not be started");
}

/* Starting all */

static int start_all(struct field *f)
{
	char words[256];

	for (unsigned i = 0; i < f->run->list->count; i++) {
		struct site *s = site_new(i, &f->run->list->hosts[i]);

		if (!s)
			return -1;
		f->sites[f->count++] = s;
		if (site_start(f->run, s, words, sizeof(words)) < 0) {
			fprintf(stderr, "weft run: %s: %s\n", s->host.name, words);
			return -1;
		}
	}
	return 0;
}

/* Signals */

/* At once: the stations end everything when they hear nothing more. */
static _Noreturn void leave_at_once(struct field *f, int code)
{
	int64_t until = now_ns() + KILL_MS * MS;
	bool any = true;

	for (unsigned i = 0; i < f->count; i++) {
		talk_close(&f->sites[i]->talk);
		/* Of what has not said that it is a station nobody knows whether it listens. */
		if (!f->sites[i]->hello.version[0] && f->sites[i]->pid > 0)
			kill(-f->sites[i]->pid, SIGTERM);
	}
	while (any && now_ns() < until) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		any = pid >= 0;
		if (pid == 0)
			poll(NULL, 0, 5);
	}
	tree_kill(KILL_MS);
	exit(code);
}

static void stop(struct field *f)
{
	field_tell_all(f, CONTROL_SIGNAL, SIGTSTP);
	if (run_stop())
		field_tell_all(f, CONTROL_SIGNAL, SIGCONT);
}

static void on_signal(struct field *f)
{
	struct signalfd_siginfo info;
	int64_t now = now_ns();

	while (read(f->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;
		bool ends = sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;

		if (sig == SIGCHLD)
			continue;
		if (sig == SIGTSTP) {
			stop(f);
			continue;
		}
		if (ends && (f->phase == GATHERING || (sig == SIGINT && f->interrupted && now - f->interrupted < SECOND_INT)))
			leave_at_once(f, 128 + sig);
		if (sig == SIGINT)
			f->interrupted = now;
		field_tell_all(f, CONTROL_SIGNAL, (uint32_t)sig);
	}
}

static void reap(struct field *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < f->count; i++)
			if (f->sites[i]->pid == pid)
				f->sites[i]->pid = 0;
}

/* Time */

static void on_time(struct field *f, int64_t now)
{
	char text[64];

	if (f->timeout && now >= f->timeout && f->phase != ENDING) {
		snprintf(text, sizeof(text), "the time is over: %g s", f->run->timeout);
		say(f, NULL, text);
		end_all(f, CODE_TIMEOUT);
	}
	judge(f, now);
	growth_look(f, now);
	if (!f->deadline || now < f->deadline)
		return;
	if (f->phase == GATHERING) {
		for (unsigned i = 0; i < f->count; i++)
			if (site_is_in(f->sites[i]) && f->sites[i]->stage < SITE_READY)
				say(f, f->sites[i], "it does not answer");
		end_all(f, CODE_FAULT);
		return;
	}
	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->pieces)
			f->deadline = now + END_LIMIT;          /* it waits for whoever reads what it prints */
		else if (site_is_in(f->sites[i]))
			lost(f, f->sites[i], "it has not ended in time");
}

static int wait_ms(const struct field *f, int64_t now)
{
	int64_t until = f->deadline, verdict = f->phase == WORKING ? verdict_next(&f->verdict, now) : 0, growth = growth_next(f);

	if (f->timeout && f->phase != ENDING && (!until || f->timeout < until))
		until = f->timeout;
	if (verdict && (!until || verdict < until))
		until = verdict;
	if (growth && (!until || growth < until))
		until = growth;
	if (!until)
		return -1;
	return until <= now ? 0 : (int)((until - now) / MS < 3600000 ? (until - now) / MS + 1 : 3600000);
}

/* Input */

static struct site *first_site(struct field *f)
{
	struct site *s = f->sites[f->run->host_of[0]];

	return s->stage == SITE_WORKING && f->phase == WORKING ? s : NULL;
}

static void read_input(struct field *f, struct site *s, int input)
{
	char bytes[16384];
	ssize_t n = read(input, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && streams_input(f->streams, &(int){ 0 }) < 0)))
		return;
	f->input_over = n <= 0;
	talk_say(&s->talk, CONTROL_INPUT, bytes, n > 0 ? (size_t)n : 0);
	f->input_way += n > 0 ? (size_t)n : 0;
}

/* The loop */

static bool is_over(struct field *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (site_is_in(f->sites[i]) || f->sites[i]->pieces)
			return false;
	return f->lines_at == f->lines_n;
}

static bool turn(struct field *f, struct pollfd *polls)
{
	struct site *first = first_site(f);
	unsigned count = f->count;      /* more may come in this turn */
	int ms = wait_ms(f, now_ns()), later = -1, input = first && !f->input_over && f->input_way < INPUT_MOST ? streams_input(f->streams, &later) : -1;
	size_t n = 2;

	if (later >= 0 && (ms < 0 || later < ms))
		ms = later;

	polls[0] = (struct pollfd){ .fd = f->signals, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = input, .events = POLLIN };
	for (unsigned i = 0; i < count; i++) {
		struct talk *t = &f->sites[i]->talk;

		polls[n++] = (struct pollfd){ .fd = t->broken || !site_is_in(f->sites[i]) ? -1 : t->in, .events = POLLIN };
		polls[n++] = (struct pollfd){ .fd = talk_owes(t) ? t->out : -1, .events = POLLOUT };
	}
	n += streams_fill(f->streams, polls + n, &(int){ 0 });
	if (poll(polls, n, ms) < 0 && errno != EINTR)
		return false;
	if (polls[0].revents)
		on_signal(f);
	if (polls[1].revents && first)
		read_input(f, first, input);
	streams_act(f->streams, polls + 2 + 2 * count, n - 2 - 2 * count);
	for (unsigned i = 0; i < count; i++) {
		struct site *s = f->sites[i];

		if (polls[2 + 2 * i].revents && site_is_in(s))
			on_site(f, s);
		talk_write(&s->talk);
		print_pieces(f, s);
	}
	reap(f);
	on_time(f, now_ns());
	lines_print(f);
	return true;
}

static int loop(struct field *f)
{
	struct pollfd *polls = calloc(2 + 2 * HOSTLIST_HOSTS + streams_polls(f->streams), sizeof(*polls));
	bool ended = false;

	f->deadline = now_ns() + START_LIMIT;
	if (f->run->timeout > 0)
		f->timeout = now_ns() + (int64_t)(f->run->timeout * (double)SECOND);
	while (polls && turn(f, polls)) {
		if (!is_over(f))
			continue;
		if (!ended)
			streams_end(f->streams);
		ended = true;
		if (streams_done(f->streams, true))
			break;
	}
	free(polls);
	return f->code;
}

int field_main(struct run *run)
{
	static struct field f;

	f.run = run;
	f.verdict.put_off = VERDICT_PUT_OFF(run->silence_ms * MS);
	run->hosts_count = run->list->count;
	if (run_descriptors() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || run_signals(run, true, &f.signals) < 0)
		return fprintf(stderr, "weft run: cannot start: %s\n", strerror(errno)), CODE_FAULT;
	files_raise(&run->files);
	f.streams = streams_carried(run);
	if (!f.streams || getrandom(run->key.bytes, sizeof(run->key.bytes), 0) != (ssize_t)sizeof(run->key.bytes) ||
	    getrandom(run->job, sizeof(run->job), 0) != (ssize_t)sizeof(run->job) || start_all(&f) < 0) {
		fprintf(stderr, "weft run: cannot start: %s\n", strerror(errno));
		leave_at_once(&f, CODE_FAULT);
	}
	leave_at_once(&f, loop(&f));
}
