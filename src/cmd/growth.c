/* growth.c - see growth.h. */
#include "growth.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"

#define COME_LIMIT (60 * SECOND)        /* for a host to come, however long who asked would wait */
#define JOIN_LIMIT (5 * SECOND)         /* for the others to hear it, once it is there: the next ones wait for that */

/* What one call asks for. It is there until all of its hosts have come, or will not. */
struct growth {
	struct growth *next;
	uint32_t by, process, name;     /* the host and process that asked, and what it calls it */
	int64_t deadline;
	bool hurried;                   /* the deadline is that of who asked */
	bool late;                      /* and was too short for one */
	unsigned left;
	uint32_t count, hosts[HOSTLIST_HOSTS];  /* that have joined */
	char words[CONTROL_LINE_ROOM];  /* why another has not */
};

/* The answer */

static void answer(struct field *f, const struct growth *g, int err)
{
	uint8_t room[16 + sizeof(g->hosts) + 8 + sizeof(g->words)];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, g->process);
	wf_body_u32(&b, g->name);
	wf_body_u32(&b, (uint32_t)err);
	wf_body_u32(&b, g->count);
	for (uint32_t i = 0; i < g->count; i++)
		wf_body_u32(&b, g->hosts[i]);
	wf_body_text(&b, g->words);
	if (site_is_in(f->sites[g->by]))
		talk_say(&f->sites[g->by]->talk, CONTROL_GROWN, room, b.at);
}

static void one_less(struct field *f, struct growth *g)
{
	struct growth **at = &f->growths;

	if (--g->left)
		return;
	answer(f, g, g->count ? 0 : g->late ? -ETIMEDOUT : -EHOSTUNREACH);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}

/* Joining */

static void tell_members(struct field *f, struct site *s)
{
	struct wf_body b = { .n = 4 + (size_t)(f->count + 1) * FIELD_MEMBER };
	uint32_t count = 1;

	b.bytes = malloc(b.n);
	if (!b.bytes) {
		s->talk.broken = true;
		return;
	}
	for (unsigned i = 0; i < f->count; i++)
		count += f->sites[i]->stage == SITE_WORKING;
	wf_body_u32(&b, count);
	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->stage == SITE_WORKING)
			field_member(&b, f->sites[i]);
	field_member(&b, s);
	field_tell_server(f, s);
	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->told && !site_is_in(f->sites[i]))
			talk_say32(&s->talk, CONTROL_LOST, i);
	talk_say(&s->talk, CONTROL_MEMBERS, b.bytes, b.at);
	free(b.bytes);
}

void growth_next_joins(struct field *f)
{
	for (unsigned i = 0; !f->joining && f->phase == WORKING && i < f->count; i++)
		if (f->sites[i]->growth && f->sites[i]->stage == SITE_READY) {
			f->joining = f->sites[i];
			f->join_deadline = now_ns() + JOIN_LIMIT;
			f->joining->stage = SITE_JOINING;
			tell_members(f, f->joining);
		}
}

static void tell_of(struct field *f, struct site *new)
{
	uint8_t room[4 + FIELD_MEMBER];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	new->told = true;
	wf_body_u32(&b, 1);
	field_member(&b, new);
	for (unsigned i = 0; i < f->count; i++) {
		f->sites[i]->knows = false;
		if (f->sites[i]->stage == SITE_WORKING)
			talk_say(&f->sites[i]->talk, CONTROL_MEMBERS, room, b.at);
	}
}

void growth_look_known(struct field *f)
{
	struct site *s = f->joining;
	struct growth *g;

	if (!s || !s->told || f->phase != WORKING)
		return;
	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->stage == SITE_WORKING && !f->sites[i]->knows)
			return;
	g = s->growth;
	f->joining = NULL;
	s->growth = NULL;
	s->stage = SITE_WORKING;
	verdict_in(&f->verdict, s->index, true);
	talk_say(&s->talk, CONTROL_BEGIN, NULL, 0);
	g->hosts[g->count++] = s->index;
	one_less(f, g);
	growth_next_joins(f);
}

void growth_known(struct field *f, struct site *by, uint32_t host)
{
	if (!f->joining || host != f->joining->index)
		return;
	if (by == f->joining && !by->told)
		tell_of(f, by);
	by->knows = true;
	growth_look_known(f);
}

void growth_failed(struct field *f, struct site *s, const char *why)
{
	struct growth *g = s->growth;

	s->growth = NULL;
	s->stage = SITE_LOST;
	talk_close(&s->talk);
	/* Of what has not said that it is a station nobody knows whether it listens. */
	if (!s->hello.version[0] && s->pid > 0 && kill(-s->pid, SIGTERM) < 0)
		kill(s->pid, SIGTERM);
	if (s->told)
		field_tell_all(f, CONTROL_LOST, s->index);
	if (!g->words[0])
		snprintf(g->words, sizeof(g->words), "%.*s: %.*s", (int)sizeof(s->host.name), s->host.name, CONTROL_LINE_ROOM / 2 - 8, s->line[0] ? s->line : why);
	one_less(f, g);
	if (f->joining != s)
		return;
	f->joining = NULL;
	growth_next_joins(f);
}

/* Asking */

/* A number of a host: a new one, or that of one that nobody has heard of; HOSTLIST_HOSTS: there are no more. */
static unsigned number_free(struct field *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->sites[i]->stage == SITE_LOST && !f->sites[i]->told && !f->sites[i]->pieces)
			return i;
	return f->count;
}

static unsigned numbers_left(const struct field *f)
{
	unsigned left = HOSTLIST_HOSTS - f->count;

	for (unsigned i = 0; i < f->count; i++)
		left += f->sites[i]->stage == SITE_LOST && !f->sites[i]->told && !f->sites[i]->pieces;
	return left;
}

static int refused(struct field *f, const struct hostlist *list, char *words, size_t n)
{
	for (unsigned h = 0; h < list->count; h++)
		for (unsigned i = 0; i < f->count; i++)
			if (site_is_in(f->sites[i]) && !strcmp(f->sites[i]->host.name, list->hosts[h].name)) {
				snprintf(words, n, "%s is in the job already", list->hosts[h].name);
				return -EEXIST;
			}
	if (list->count <= numbers_left(f))
		return 0;
	snprintf(words, n, "a job has %u hosts at most, in all its life", HOSTLIST_HOSTS);
	return -ENOSPC;
}

static void start(struct field *f, struct growth *g, const struct host *host)
{
	unsigned i = number_free(f);
	struct site *s = site_new(i, host);
	char words[256];

	if (!s) {
		snprintf(g->words, sizeof(g->words), "no memory");
		one_less(f, g);
		return;
	}
	if (i == f->count)
		f->count++;
	else
		free(f->sites[i]);
	f->sites[i] = s;
	f->run->hosts_count = f->count;
	s->growth = g;
	if (site_start(f->run, s, words, sizeof(words)) < 0)
		growth_failed(f, s, words);
}

bool growth_asked(struct field *f, struct site *by, struct wf_body *b)
{
	struct growth *g, unheard = { .by = by->index };
	const char *text;
	struct hostlist list;
	uint32_t ms;
	int r = -ESHUTDOWN;

	unheard.process = wf_body_get32(b);
	unheard.name = wf_body_get32(b);
	ms = wf_body_get32(b);
	text = wf_body_get_text(b);
	if (!wf_body_whole(b) || !text)
		return false;
	snprintf(unheard.words, sizeof(unheard.words), "the job is ending");
	if (f->phase == WORKING)
		r = hostlist_commas(text, &list, unheard.words, sizeof(unheard.words));
	if (r < 0) {
		answer(f, &unheard, r);
		return true;
	}
	r = refused(f, &list, unheard.words, sizeof(unheard.words));
	g = r == 0 ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		answer(f, &unheard, r < 0 ? r : -ENOMEM);
		hostlist_free(&list);
		return true;
	}
	*g = unheard;
	g->words[0] = 0;
	g->hurried = ms < COME_LIMIT / MS;
	g->deadline = now_ns() + (g->hurried ? ms * MS : COME_LIMIT);
	g->next = f->growths;
	f->growths = g;
	g->left = list.count + 1;       /* it has to outlast the last that fails at once */
	for (unsigned h = 0; h < list.count; h++)
		start(f, g, &list.hosts[h]);
	hostlist_free(&list);
	one_less(f, g);
	return true;
}

/* Time */

int64_t growth_next(const struct field *f)
{
	int64_t next = f->joining ? f->join_deadline : 0;

	if (f->phase != WORKING)
		return 0;
	for (const struct growth *g = f->growths; g; g = g->next)
		if (!next || g->deadline < next)
			next = g->deadline;
	return next;
}

void growth_look(struct field *f, int64_t now)
{
	if (f->phase == WORKING && f->joining && now >= f->join_deadline)
		growth_failed(f, f->joining, "not all hosts of the job hear it");
	for (unsigned i = 0; f->phase == WORKING && i < f->count; i++) {
		struct site *s = f->sites[i];

		if (!s->growth || now < s->growth->deadline)
			continue;
		s->growth->late = s->growth->hurried;
		growth_failed(f, s, s->growth->hurried ? "it has not come in time" : "it does not answer");
	}
}
