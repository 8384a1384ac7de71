/* news.c - what each process is told of the others, and when a death is settled.
 *
 * A notice is queued at most once per receiver, kind and process it is about (struct place.marks), so a receiver that does
 * not read, being stopped, costs bounded memory and gets everything later. Notices go out in the order in which things
 * happened.
 *
 * A place that is gone is settled when everybody who is in has said that it acted on that: unacted counts those who have not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent.h"
#include "embassy.h"
#include "job/frames.h"
#include "mesh.h"
#include "post.h"

#define DIR_MOST (16u << 20)    /* bytes of the directory for one that does not read */

static unsigned char *mark(struct place *p, const struct place *about)
{
	return &p->marks[about->number];
}

/* DYING is in as well: until its end is certain it is waited for. */
static bool is_in(const struct place *p)
{
	return p->stage == STAGE_IN || p->stage == STAGE_DYING;
}

static bool is_gone(const struct place *p)
{
	return p->stage == STAGE_LEFT || p->stage == STAGE_DEAD;
}

static bool queue_add(struct place *p, const struct wf_note *note, const void *bytes, size_t n)
{
	void *copy = n ? malloc(n) : NULL;

	if (n && !copy)
		return false;
	if (p->queue_end == p->queue_room) {
		size_t room = p->queue_room ? 2 * p->queue_room : 16;
		struct letter *queue = realloc(p->queue, room * sizeof(*queue));

		if (!queue) {
			free(copy);
			return false;
		}
		p->queue = queue;
		p->queue_room = room;
	}
	if (n)
		memcpy(copy, bytes, n);
	p->dir_bytes += n;
	p->queue[p->queue_end++] = (struct letter){ .note = *note, .bytes = copy, .n = n };
	return true;
}

static void wait_for_room(struct agent *a, struct place *p, bool wait)
{
	struct epoll_event e = {
		.events = EPOLLIN | (wait ? EPOLLOUT : 0u), .data.u64 = (uint64_t)FROM_NOTES << 32 | p->number,
	};

	if (p->writing == wait)
		return;
	if (epoll_ctl(a->epoll, EPOLL_CTL_MOD, p->notes, &e) == 0)
		p->writing = wait;
}

static void queue_clear(struct place *p)
{
	for (; p->queue_first < p->queue_end; p->queue_first++)
		free(p->queue[p->queue_first].bytes);
	p->queue_first = p->queue_end = p->dir_bytes = 0;
}

void news_flush(struct agent *a, struct place *p)
{
	while (p->notes >= 0 && p->queue_first < p->queue_end) {
		struct letter *l = &p->queue[p->queue_first];
		int r = wf_letter_send(p->notes, &l->note, l->bytes, l->n);

		if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM) {
			wait_for_room(a, p, true);
			return;
		}
		if (r < 0)
			break;          /* closed: the loop hears of that as well */
		p->dir_bytes -= l->n;
		free(l->bytes);
		p->queue_first++;
	}
	queue_clear(p);
	if (p->notes >= 0)
		wait_for_room(a, p, false);
}

static void tell(struct agent *a, struct place *to, const struct wf_note *note)
{
	unsigned char bit = (unsigned char)(1u << (note->what - 1));

	if (to->stage != STAGE_IN || (to->marks[note->process] & bit))
		return;
	to->marks[note->process] |= bit;
	if (!queue_add(to, note, NULL, 0)) {
		agent_say(a, "no memory");
		agent_end(a, CODE_FAULT);
		return;
	}
	news_flush(a, to);
}

void news_tell(struct agent *a, struct place *to, uint32_t what, const struct place *about)
{
	struct wf_note note = { .what = what, .process = about->number };

	if (what == WF_NOTE_DEAD) {
		note.status = about->status;
		note.left = about->stage == STAGE_LEFT;
	}
	if (to != about)
		tell(a, to, &note);
}

/* A death is told to all who are in: who has never heard of the dead one may do so any moment. Who joins later learns of it by asking where it is. */
void news_far(struct agent *a, uint32_t what, uint32_t process, int status, bool left)
{
	struct wf_note note = { .what = what, .process = process, .status = status, .left = left };

	for (unsigned i = 0; i < a->count; i++)
		if (what == WF_NOTE_DEAD || (a->places[i]->marks[process] & MARK_ASKED))
			tell(a, a->places[i], &note);
}

/* One that does not read, being stopped, is kept for, up to a bound; beyond it the directory is lost to it. */
void news_dir(struct agent *a, struct place *to, uint32_t what, const void *bytes, size_t n)
{
	struct wf_note note = { .what = what };

	if (to->stage != STAGE_IN || to->dir_lost)
		return;
	if (to->dir_bytes + n > DIR_MOST || !queue_add(to, &note, bytes, n)) {
		to->dir_lost = true;
		post_gone(a, to->number);
		note.what = WF_NOTE_DIR_LOST;
		queue_add(to, &note, NULL, 0);
	}
	news_flush(a, to);
}

void news_letter(struct agent *a, struct place *to, uint32_t what, const void *bytes, size_t n)
{
	struct wf_note note = { .what = what };

	if (to->stage != STAGE_IN)
		return;
	if (!queue_add(to, &note, bytes, n)) {
		agent_say(a, "no memory");
		agent_end(a, CODE_FAULT);
		return;
	}
	news_flush(a, to);
}

void news_abroad(struct agent *a, struct place *to, uint32_t what, uint32_t number)
{
	struct wf_note note = { .what = what, .process = number };

	if (to->stage != STAGE_IN)
		return;
	if (!queue_add(to, &note, NULL, 0)) {
		agent_say(a, "no memory");
		agent_end(a, CODE_FAULT);
		return;
	}
	news_flush(a, to);
}

void news_asked(struct place *p, uint32_t about)
{
	p->marks[about] |= MARK_ASKED;
}

static void settle(struct agent *a, struct place *gone)
{
	if (gone->settled || gone->unacted)
		return;
	gone->settled = true;
	for (size_t i = 0; i < gone->segment_count; i++)
		close(gone->segments[i].fd);
	a->segments -= (unsigned)gone->segment_count;
	gone->segment_count = 0;
	for (unsigned i = 0; i < a->count; i++)
		news_tell(a, a->places[i], WF_NOTE_SETTLED, gone);
}

void news_joined(struct agent *a, struct place *p)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct place *q = a->places[i];

		if (q->marks && (*mark(q, p) & MARK_ASKED))
			news_tell(a, q, WF_NOTE_JOINED, p);
		if (!is_gone(q))
			continue;
		news_tell(a, p, WF_NOTE_DEAD, q);
		if (q->settled)
			news_tell(a, p, WF_NOTE_SETTLED, q);
		else
			q->unacted++;
	}
}

void news_acted(struct agent *a, struct place *p, struct place *gone)
{
	if (*mark(p, gone) & MARK_ACTED)
		return;
	*mark(p, gone) |= MARK_ACTED;
	if (gone->settled)
		return;
	gone->unacted--;
	settle(a, gone);
}

void news_gone(struct agent *a, struct place *p, int status, bool left)
{
	bool was_in = is_in(p);

	p->stage = left ? STAGE_LEFT : STAGE_DEAD;
	p->status = status;
	queue_clear(p);
	mesh_gone(a, p->number, status, left);
	post_gone(a, p->number);
	embassy_gone(a, p->number);
	for (unsigned i = 0; i < a->count; i++) {
		struct place *q = a->places[i];

		if (q != p && is_in(q)) {
			p->unacted++;
			news_tell(a, q, WF_NOTE_DEAD, p);
		} else if (q != p && is_gone(q) && !q->settled && was_in && !(*mark(p, q) & MARK_ACTED)) {
			q->unacted--;           /* the one that has just gone need not act any more */
			settle(a, q);
		}
	}
	settle(a, p);
}
