/* streams.c - standard streams of a job. Run by the launcher.
 *
 * Output goes straight from the processes to where the launcher's goes, unless it is to be labelled: then each process
 * writes into two pipes, and whole lines go from there into a sink, one for standard output and one for standard error. Of processes of other
 * hosts it comes in pieces, and goes there too; without labels each piece as it is, whole: whoever cut it has seen to its lines (outputs.h). A
 * sink that is full is not read for, so that a slow reader slows the processes down and nothing grows. A sink's own
 * descriptor may be shared with anybody, so it is not made non-blocking: no more than PIPE_BUF is written, and only when poll
 * says there is room.
 *
 * Input is inherited by process 1 as it is, unless it is a terminal: the processes are in another session. Then the launcher
 * reads, while it is in the foreground, and feeds a pipe.
 */
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_ROOM 4096          /* a longer line is printed in pieces of this size */
#define LABEL_ROOM 8            /* "[1023] " */
#define SINK_ROOM (4 * LINE_ROOM * (1 + LABEL_ROOM))
#define TERMINAL_LOOK 250       /* ms between looks whether the launcher is in the foreground again */

struct sink {
	int fd;
	bool broken;                    /* its reader is gone */
	size_t first, end;
	char bytes[SINK_ROOM];
};

struct source {
	int fd;                         /* -1: ended */
	unsigned rank;
	struct sink *sink;
	bool split;                     /* the last piece filled the room: a newline that follows has been printed already */
	size_t filled;
	struct source *next;            /* in late */
	char line[LINE_ROOM];
};

struct streams {
	struct sink out, err;
	bool label;
	struct source **sources;        /* two per process that has not closed them, or none */
	size_t source_count, source_room;
	struct source *late;            /* carried: of processes that the job did not begin with, as long as they print */

	int in;                         /* the terminal; -1: not fed, or ended */
	bool carries;                   /* from other hosts: sources have no descriptors */
	int carried;                    /* input that goes to another host */
	int feed;                       /* the pipe to process 1 */
	size_t fed_first, fed_end;
	char fed[4096];
};

/* Sinks */

static size_t sink_left(const struct sink *k)
{
	return SINK_ROOM - (k->end - k->first);
}

static void sink_put(struct sink *k, const char *bytes, size_t n)
{
	if (k->broken)
		return;
	if (k->end + n > SINK_ROOM) {
		memmove(k->bytes, k->bytes + k->first, k->end - k->first);
		k->end -= k->first;
		k->first = 0;
	}
	memcpy(k->bytes + k->end, bytes, n);
	k->end += n;
}

static void sink_write(struct sink *k)
{
	size_t n = k->end - k->first;
	ssize_t r = write(k->fd, k->bytes + k->first, n < PIPE_BUF ? n : PIPE_BUF);

	if (r > 0)
		k->first += (size_t)r;
	else if (r < 0 && errno != EAGAIN && errno != EINTR)
		k->broken = true;
	if (k->broken || k->first == k->end)
		k->first = k->end = 0;
}

bool streams_line(struct streams *s, const char *text)
{
	static const char name[] = "weft run: ";

	if (sink_left(&s->err) < strlen(text) + sizeof(name))
		return false;
	sink_put(&s->err, name, sizeof(name) - 1);
	sink_put(&s->err, text, strlen(text));
	sink_put(&s->err, "\n", 1);
	return true;
}

/* Sources */

static void source_print(struct source *f, const char *bytes, size_t n)
{
	char label[LABEL_ROOM];
	int len = snprintf(label, sizeof(label), "[%u] ", f->rank);

	sink_put(f->sink, label, (size_t)len);
	sink_put(f->sink, bytes, n);
	if (bytes[n - 1] != '\n')
		sink_put(f->sink, "\n", 1);
}

/* Whole lines of what was read, and a line that fills the room; @all: also what has no end yet. The sink has room
 * (source_wants). */
static void source_lines(struct source *f, bool all)
{
	size_t first = 0;

	while (first < f->filled) {
		char *end = memchr(f->line + first, '\n', f->filled - first);
		size_t n = end ? (size_t)(end + 1 - (f->line + first)) : f->filled - first;

		if (!end && !all && n < LINE_ROOM)
			break;
		if (!f->split || n > 1 || !end)
			source_print(f, f->line + first, n);
		f->split = !end;
		first += n;
	}
	memmove(f->line, f->line + first, f->filled - first);
	f->filled -= first;
}

/* In the worst case every byte is a line of its own and gets a label. */
static bool source_wants(const struct source *f)
{
	return f->fd >= 0 && sink_left(f->sink) >= LINE_ROOM * (1 + LABEL_ROOM);
}

static void source_read(struct source *f, bool last)
{
	ssize_t n = read(f->fd, f->line + f->filled, LINE_ROOM - f->filled);

	if (n > 0) {
		f->filled += (size_t)n;
		source_lines(f, false);
	} else if (n == 0 || last || (errno != EAGAIN && errno != EINTR)) {
		source_lines(f, true);
		close(f->fd);
		f->fd = -1;
	}
}

/* Input */

static void feed_end(struct streams *s)
{
	if (s->feed >= 0)
		close(s->feed);
	s->feed = s->in = -1;
}

static void feed_write(struct streams *s)
{
	ssize_t n = write(s->feed, s->fed + s->fed_first, s->fed_end - s->fed_first);

	if (n > 0)
		s->fed_first += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		feed_end(s);            /* process 1 does not read any more */
}

/* A terminal is read in the foreground only; in the background that would stop the launcher. */
static bool in_foreground(int terminal)
{
	pid_t group = tcgetpgrp(terminal);

	return group < 0 || group == getpgrp();
}

static void feed_read(struct streams *s)
{
	ssize_t n = read(s->in, s->fed, sizeof(s->fed));

	s->fed_first = 0;
	s->fed_end = n > 0 ? (size_t)n : 0;
	/* EIO: the terminal is gone, or this process was sent to the background a moment ago. */
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && (errno != EIO || in_foreground(s->in))))
		feed_end(s);
}

/* The whole */

/* @fd -1: what it prints is carried here. */
static struct source *source_new(struct streams *s, int fd, unsigned rank, bool err)
{
	struct source *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = fd;
	f->rank = rank;
	f->sink = err ? &s->err : &s->out;
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	return f;
}

/* Takes @fd, if it is any. -1: no memory. */
static int source_add(struct streams *s, int fd, unsigned rank, bool err)
{
	struct source *f = source_new(s, fd, rank, err), **more = s->sources;

	if (f && s->source_count == s->source_room)
		more = realloc(s->sources, (2 * s->source_room + 8) * sizeof(*more));
	if (!f || !more) {
		free(f);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (s->source_count == s->source_room)
		s->source_room = 2 * s->source_room + 8;
	s->sources = more;
	s->sources[s->source_count++] = f;
	return 0;
}

static void sources_forget_ended(struct streams *s)
{
	size_t left = 0;

	for (size_t i = 0; i < s->source_count; i++)
		if (s->sources[i]->fd >= 0)
			s->sources[left++] = s->sources[i];
		else
			free(s->sources[i]);
	s->source_count = left;
}

static int label_pipes(struct streams *s, struct run *run)
{
	run->out_fds = calloc(run->count, sizeof(int));
	run->err_fds = calloc(run->count, sizeof(int));
	if (!run->out_fds || !run->err_fds)
		return -1;
	for (unsigned i = 0; i < 2 * run->count; i++) {
		int pair[2];

		if (pipe2(pair, O_CLOEXEC) < 0 || source_add(s, pair[0], run->ranks[i / 2], i % 2) < 0)
			return -1;
		*(i % 2 ? &run->err_fds[i / 2] : &run->out_fds[i / 2]) = pair[1];
	}
	return 0;
}

int streams_add(struct streams *s, uint32_t rank, const int fds[2])
{
	int r = source_add(s, fds[0], rank, false);

	return source_add(s, fds[1], rank, true) < 0 ? -1 : r;
}

struct streams *streams_open(struct run *run)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->out.fd = STDOUT_FILENO;
	s->err.fd = STDERR_FILENO;
	s->in = s->feed = -1;
	run->stdin_fd = STDIN_FILENO;
	if (isatty(STDIN_FILENO)) {
		int pair[2];

		if (pipe2(pair, O_CLOEXEC) < 0)
			return NULL;
		run->stdin_fd = pair[0];
		s->in = STDIN_FILENO;
		s->feed = pair[1];
		fcntl(s->feed, F_SETFL, O_NONBLOCK);
	}
	s->label = run->label;
	return run->label && label_pipes(s, run) < 0 ? NULL : s;
}

void streams_split(struct streams *s, struct run *run)
{
	if (s->feed >= 0)
		close(run->stdin_fd);
	for (unsigned i = 0; run->out_fds && i < run->count; i++) {
		close(run->out_fds[i]);
		close(run->err_fds[i]);
	}
}

void streams_leave(struct streams *s)
{
	if (s->feed >= 0)
		close(s->feed);
	for (size_t i = 0; i < s->source_count; i++) {
		close(s->sources[i]->fd);
		free(s->sources[i]);
	}
	free(s->sources);
	free(s);
}

/* Carried from other hosts */

struct streams *streams_carried(const struct run *run)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->out.fd = STDOUT_FILENO;
	s->err.fd = STDERR_FILENO;
	s->feed = s->in = -1;
	s->carries = true;
	s->carried = STDIN_FILENO;
	s->label = run->label;
	for (size_t i = 0; s->label && i < 2 * (size_t)run->total; i++)
		if (source_add(s, -1, (unsigned)i / 2, i % 2) < 0)
			return NULL;
	return s;
}

/* Of @rank; one of a process that the job did not begin with is made when it is first asked for. NULL: no memory. */
static struct source *carried_source(struct streams *s, uint32_t rank, uint32_t stream)
{
	struct source *f = s->late;

	if (2 * (size_t)rank < s->source_count)
		return s->sources[2 * rank + (stream == 2)];
	while (f && (f->rank != rank || f->sink != (stream == 2 ? &s->err : &s->out)))
		f = f->next;
	if (f)
		return f;
	f = source_new(s, -1, rank, stream == 2);
	if (f) {
		f->next = s->late;
		s->late = f;
	}
	return f;
}

static bool sink_has_lines(const struct sink *k)
{
	return sink_left(k) >= LINE_ROOM * (1 + LABEL_ROOM);
}

size_t streams_take(struct streams *s, uint32_t rank, uint32_t stream, const char *bytes, size_t n)
{
	struct sink *k = stream == 2 ? &s->err : &s->out;
	struct source *f;

	if (k->broken)
		return n;
	if (!s->label) {
		n = n < SINK_ROOM ? n : SINK_ROOM;
		if (sink_left(k) < n)
			return 0;
		sink_put(k, bytes, n);
		return n;
	}
	if (!sink_has_lines(k))
		return 0;
	f = carried_source(s, rank, stream);
	if (!f)
		return n;
	n = n < LINE_ROOM - f->filled ? n : LINE_ROOM - f->filled;
	memcpy(f->line + f->filled, bytes, n);
	f->filled += n;
	source_lines(f, false);
	return n;
}

bool streams_over(struct streams *s, uint32_t rank, uint32_t stream)
{
	struct sink *k = stream == 2 ? &s->err : &s->out;
	struct source **at = &s->late, *f;

	if (!s->label)
		return true;
	if (!k->broken && !sink_has_lines(k))
		return false;
	if (2 * (size_t)rank < s->source_count) {
		source_lines(s->sources[2 * rank + (stream == 2)], true);
		return true;
	}
	while (*at && ((*at)->rank != rank || (*at)->sink != k))
		at = &(*at)->next;
	f = *at;
	if (f) {
		source_lines(f, true);
		*at = f->next;
		free(f);
	}
	return true;
}

static void carried_end(struct source *f)
{
	while (!sink_has_lines(f->sink) && !f->sink->broken)
		sink_write(f->sink);
	source_lines(f, true);
}

void streams_end(struct streams *s)
{
	for (size_t i = 0; i < s->source_count; i++)
		carried_end(s->sources[i]);
	for (struct source *f = s->late; f; f = f->next)
		carried_end(f);
}

int streams_input(struct streams *s, int *ret_ms)
{
	if (in_foreground(s->carried))
		return s->carried;
	*ret_ms = TERMINAL_LOOK;
	return -1;
}

size_t streams_polls(const struct streams *s)
{
	return s->source_count + 4;
}

static size_t add_poll(struct pollfd *polls, size_t n, int fd, short events)
{
	polls[n] = (struct pollfd){ .fd = fd, .events = events };
	return n + 1;
}

size_t streams_fill(struct streams *s, struct pollfd *polls, int *ret_ms)
{
	size_t n = 0;

	n = add_poll(polls, n, s->out.first < s->out.end ? s->out.fd : -1, POLLOUT);
	n = add_poll(polls, n, s->err.first < s->err.end ? s->err.fd : -1, POLLOUT);
	n = add_poll(polls, n, s->feed, s->fed_first < s->fed_end ? POLLOUT : 0);
	n = add_poll(polls, n, -1, POLLIN);
	if (s->in >= 0 && s->fed_first == s->fed_end) {
		if (in_foreground(s->in))
			polls[n - 1].fd = s->in;
		else
			*ret_ms = TERMINAL_LOOK;
	}
	for (size_t i = 0; i < s->source_count; i++)
		n = add_poll(polls, n, source_wants(s->sources[i]) ? s->sources[i]->fd : -1, POLLIN);
	return n;
}

void streams_act(struct streams *s, const struct pollfd *polls, size_t count)
{
	if (polls[0].revents)
		sink_write(&s->out);
	if (polls[1].revents)
		sink_write(&s->err);
	if (polls[2].revents & (POLLERR | POLLNVAL))
		feed_end(s);
	else if (polls[2].revents)
		feed_write(s);
	if (polls[3].revents && s->in >= 0)
		feed_read(s);
	for (size_t i = 4; i < count; i++) {
		struct source *f = s->sources[i - 4];

		if (f->sink->broken && f->fd >= 0) {
			close(f->fd);           /* as if it had written to the closed pipe itself */
			f->fd = -1;
		}
		/* Others of this round may have filled the sink. */
		if (polls[i].revents && source_wants(f))
			source_read(f, false);
	}
	if (!s->carries)
		sources_forget_ended(s);
}

bool streams_done(struct streams *s, bool last)
{
	bool open = false;

	for (size_t i = 0; i < s->source_count; i++) {
		if (last && source_wants(s->sources[i]))
			source_read(s->sources[i], true);
		open |= s->sources[i]->fd >= 0;
	}
	return !open && s->out.first == s->out.end && s->err.first == s->err.end;
}
