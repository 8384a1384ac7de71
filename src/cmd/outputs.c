/* outputs.c - see outputs.h. What is kept of an output is the beginning of its last line, for LINE_WAIT at most: a prompt is seen. */
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "run.h"

#define LINE_WAIT (100 * MS)            /* for the end of a line */

struct output {
	int fd;                         /* -1: ended */
	uint32_t rank, stream;
	uint8_t *kept;                  /* a line without its end; NULL: no room was needed yet */
	size_t n;
	int64_t since;                  /* when it began to be kept */
};

int outputs_add(struct outputs *o, int fd, uint32_t rank, uint32_t stream)
{
	if (o->count == o->room) {
		struct output *more = realloc(o->each, (2 * o->room + 8) * sizeof(*more));

		if (!more) {
			close(fd);
			return -1;
		}
		o->each = more;
		o->room = 2 * o->room + 8;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	o->each[o->count++] = (struct output){ .fd = fd, .rank = rank, .stream = stream };
	return 0;
}

void outputs_close(struct outputs *o)
{
	for (unsigned i = 0; i < o->count; i++) {
		if (o->each[i].fd >= 0)
			close(o->each[i].fd);
		free(o->each[i].kept);
	}
	free(o->each);
	*o = (struct outputs){ 0 };
}

/* The longest piece fits: whoever has kept much of a line is not passed over for that. */
static bool has_way(const struct outputs *o)
{
	return o->unprinted + OUTPUT_LINE + OUTPUT_PIECE <= CONTROL_OUTPUT_WAY;
}

static void say(struct outputs *o, struct talk *t, const struct output *p, const void *bytes, size_t n)
{
	uint8_t head[8];

	wf_put32(head, p->rank);
	wf_put32(head + 4, p->stream);
	talk_say_split(t, CONTROL_OUTPUT, head, sizeof(head), bytes, n);
	o->unprinted += n;
}

/* The first @n bytes of what is kept go. */
static void let_go(struct outputs *o, struct talk *t, struct output *p, size_t n, int64_t now)
{
	if (n == 0)
		return;
	say(o, t, p, p->kept, n);
	p->n -= n;
	memmove(p->kept, p->kept + n, p->n);
	p->since = now;
}

static void end(struct outputs *o, struct talk *t, struct output *p)
{
	let_go(o, t, p, p->n, 0);
	say(o, t, p, NULL, 0);
	close(p->fd);
	free(p->kept);
	p->fd = -1;
	p->kept = NULL;
}

/* What may go of what is kept: up to the last end of a line, or all of a line that is too long. */
static size_t goes(const struct outputs *o, const struct output *p)
{
	const uint8_t *newline = memrchr(p->kept, '\n', p->n);
	size_t lines = newline ? (size_t)(newline + 1 - p->kept) : 0;

	return o->alone || p->n - lines >= OUTPUT_LINE ? p->n : lines;
}

/* One piece. False: there is nothing, or no room for it on the way. */
static bool carry(struct outputs *o, struct talk *t, struct output *p, int64_t now)
{
	ssize_t n;

	if (p->fd < 0 || !has_way(o))
		return false;
	if (!p->kept)
		p->kept = malloc(OUTPUT_LINE + OUTPUT_PIECE);
	if (!p->kept) {
		end(o, t, p);
		return false;
	}
	n = read(p->fd, p->kept + p->n, OUTPUT_PIECE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		end(o, t, p);
		return false;
	}
	if (p->n == 0)
		p->since = now;
	p->n += (size_t)n;
	let_go(o, t, p, goes(o, p), now);
	return true;
}

static bool is_late(const struct output *p, int64_t now)
{
	return p->n && now - p->since >= LINE_WAIT;
}

static void forget_ended(struct outputs *o)
{
	unsigned left = 0;

	for (unsigned i = 0; i < o->count; i++)
		if (o->each[i].fd >= 0)
			o->each[left++] = o->each[i];
	o->count = left;
}

void outputs_carry(struct outputs *o, struct talk *t, int64_t now)
{
	for (unsigned i = 0; i < o->count; i++) {
		struct output *p = &o->each[(o->next + i) % o->count];

		if (!carry(o, t, p, now) && is_late(p, now) && has_way(o))
			let_go(o, t, p, p->n, now);
	}
	o->next++;
	forget_ended(o);
}

void outputs_fill(const struct outputs *o, struct pollfd *polls)
{
	for (unsigned i = 0; i < o->count; i++)
		polls[i] = (struct pollfd){ .fd = has_way(o) ? o->each[i].fd : -1, .events = POLLIN };
}

int outputs_wait(const struct outputs *o, int64_t now)
{
	int64_t least = -1;

	/* Without a way it is the launcher's word that is waited for. */
	for (unsigned i = 0; has_way(o) && i < o->count; i++)
		if (o->each[i].n) {
			int64_t left = o->each[i].since + LINE_WAIT - now;

			left = left < 0 ? 0 : left;
			least = least < 0 || left < least ? left : least;
		}
	return least < 0 ? -1 : (int)(least / MS) + (least > 0);
}

bool outputs_printed(struct outputs *o, uint32_t n)
{
	if (n > o->unprinted)
		return false;
	o->unprinted -= n;
	return true;
}

bool outputs_over(struct outputs *o, struct talk *t)
{
	for (unsigned i = 0; i < o->count; i++) {
		struct output *p = &o->each[i];

		while (carry(o, t, p, 0))
			continue;
		if (p->fd >= 0 && has_way(o))
			end(o, t, p);           /* somebody who cannot be killed has it open */
	}
	forget_ended(o);
	return o->count == 0;
}
