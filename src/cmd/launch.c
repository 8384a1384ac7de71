/* launch.c - see launch.h. What is known of a launch is kept to the job's end: there are no more of them than numbers of processes. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "embassy.h"
#include "guest.h"
#include "hosted.h"
#include "job/frames.h"
#include "mesh.h"
#include "outlet.h"
#include "post.h"
#include "relay.h"

#define WORDS 120u                      /* bytes of what goes with news of a process, a path of the user's it may be */

struct launch {
	struct launch *next;
	uint32_t ticket;                /* for who gives numbers */
	uint32_t base, count;
	struct wf_launch_spec spec;
	void *bytes;                    /* what the spec's texts lie in */
	size_t n;
	uint32_t origin;                /* host of who asked */
	/* at that host */
	uint32_t by, name;              /* who asked; what it calls it */
	uint32_t *hosts;                /* of each process */
	bool knows[HOSTLIST_HOSTS];     /* the plan */
	bool begun;
	bool guest;                     /* one process, which is there already */
	bool held;                      /* to be started here once this host has begun */
	int *outs;                      /* of each part, until it is begun: where its output goes; -1: where the job's does. NULL: of none */
};

static struct launch *launches;
static uint32_t tickets;

static struct launch *launch_of(uint32_t process)
{
	for (struct launch *l = launches; l; l = l->next)
		if (l->base && process > l->base && process <= l->base + l->count)
			return l;
	return NULL;
}

/* What becomes of process @number: @err 0 and not @over: it runs. */
static void tell(struct agent *a, struct launch *l, uint32_t number, int err, bool over, const char *words)
{
	uint8_t room[32 + WORDS];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };
	char start[WORDS] = "";

	if (words)
		snprintf(start, sizeof(start), "%s", words);
	wf_body_u32(&b, l->name);
	wf_body_u32(&b, number - l->base - 1);
	wf_body_u32(&b, number);
	wf_body_u32(&b, (uint32_t)err);
	wf_body_u32(&b, over);
	wf_body_text(&b, words ? start : NULL);
	if (l->origin != a->run->host)
		mesh_launch(a, l->origin, MESH_LAUNCH_NEWS, room, b.at);
	else if (l->by < WF_AGENTS && a->numbered[l->by])
		news_letter(a, a->numbered[l->by], WF_NOTE_LAUNCH, room, b.at);
}

static void guest_refused(struct agent *a, struct launch *l)
{
	struct launch **at = &launches;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	guest_number(a, l->ticket, 0);
	free(l->hosts);
	free(l);
}

static void outs_close(struct launch *l)
{
	for (uint32_t k = 0; l->outs && k < l->spec.parts; k++)
		fd_close(&l->outs[k]);
	free(l->outs);
	l->outs = NULL;
}

/* What came with it, each to its part. False: something else came. */
static bool outs_take(struct launch *l, struct wf_parcel *parcel)
{
	unsigned wanted = 0, next = 0;

	for (uint32_t k = 0; k < l->spec.parts; k++)
		wanted += l->spec.part[k].output;
	if (parcel->lost || parcel->count != wanted)
		return false;
	l->outs = wanted ? calloc(l->spec.parts, sizeof(*l->outs)) : NULL;
	if (wanted && !l->outs)
		return false;
	for (uint32_t k = 0; wanted && k < l->spec.parts; k++)
		l->outs[k] = l->spec.part[k].output ? parcel->fds[next++] : -1;
	parcel->count = 0;
	return true;
}

/* Those of this host have theirs; for those of others it is written here. */
static void outs_begin(struct agent *a, struct launch *l)
{
	uint32_t first = 0;

	for (uint32_t k = 0; l->outs && k < l->spec.parts; first += l->spec.part[k++].count)
		if (l->outs[k] >= 0) {
			outlet_open(a, l->outs[k], l->base + first + 1, l->hosts + first, l->spec.part[k].count);
			l->outs[k] = -1;
		}
	outs_close(l);
}

/* None of it starts. */
static void refuse(struct agent *a, struct launch *l, int err, const char *words)
{
	uint32_t base = l->base;

	if (l->guest) {
		guest_refused(a, l);
		return;
	}

	outs_close(l);
	for (uint32_t i = 1; i <= l->count; i++) {
		l->base = 0;
		tell(a, l, i, err, false, words);
	}
	l->base = base;
	l->begun = true;
}

/* Whether a host has, for its slots, less to do than another. */
static bool is_idler(const struct agent *a, const uint32_t *load, uint32_t host, uint32_t than)
{
	return (uint64_t)(load[host] + 1) * mesh_slots(a, than) < (uint64_t)(load[than] + 1) * mesh_slots(a, host);
}

/* Where: the hosts that were asked for, in turn; else each where fewest are, for its slots. */
static bool choose_hosts(struct agent *a, struct launch *l)
{
	uint32_t load[HOSTLIST_HOSTS] = { 0 }, i = 0;

	l->hosts = calloc(l->count, sizeof(*l->hosts));
	if (!l->hosts)
		return false;
	for (uint32_t p = 1; p < WF_AGENTS; p++)
		if (a->where.spots[p].known && !a->where.spots[p].gone && a->where.spots[p].host < HOSTLIST_HOSTS)
			load[a->where.spots[p].host]++;
	for (uint32_t k = 0; k < l->spec.parts; k++)
		for (uint32_t n = 0; n < l->spec.part[k].count; n++, i++) {
			const struct wf_launch_part *part = &l->spec.part[k];
			uint32_t best = HOSTLIST_HOSTS;

			for (uint32_t h = 0; !part->hosts_count && h < HOSTLIST_HOSTS; h++)
				if (mesh_name(a, h) && (best == HOSTLIST_HOSTS || is_idler(a, load, h, best)))
					best = h;
			if (part->hosts_count)
				best = part->hosts[n % part->hosts_count];
			if (!mesh_name(a, best))
				return false;
			load[best]++;
			l->hosts[i] = best;
		}
	return true;
}

static struct launch *launch_new(const void *spec, size_t n)
{
	struct launch *l = calloc(1, sizeof(*l));
	struct wf_body b = { .n = n };

	if (!l)
		return NULL;
	l->bytes = malloc(n + 1);
	if (l->bytes) {
		memcpy(l->bytes, spec, n);
		b.bytes = l->bytes;
		l->n = n;
		if (wf_launch_read(&b, &l->spec)) {
			l->count = l->spec.count;
			l->ticket = ++tickets;
			l->next = launches;
			launches = l;
			return l;
		}
	}
	free(l->bytes);
	free(l);
	return NULL;
}

void launch_asked(struct agent *a, struct place *by, uint32_t name, const void *spec, size_t n, struct wf_parcel *parcel)
{
	struct launch *l = launch_new(spec, n);

	if (!l || !outs_take(l, parcel)) {
		if (l)
			l->begun = true;        /* it comes to nothing */
		wf_parcel_drop(parcel);
		death_nonsense(a, by, "what is no launch");
		return;
	}
	l->origin = a->run->host;
	l->by = by->number;
	l->name = name;
	if (a->phase != WORKING)
		refuse(a, l, -ESHUTDOWN, "the job is ending");
	else if (!choose_hosts(a, l))
		refuse(a, l, -ENOENT, "no such host is in the job");
	else
		numbers_ask(a, l->ticket, l->count);
}

void launch_guest(struct agent *a, uint32_t ticket)
{
	struct launch *l = calloc(1, sizeof(*l));

	if (l)
		l->hosts = calloc(1, sizeof(*l->hosts));
	if (!l || !l->hosts) {
		free(l);
		guest_number(a, ticket, 0);
		return;
	}
	l->guest = true;
	l->ticket = ticket;
	l->count = 1;
	l->hosts[0] = l->origin = a->run->host;
	l->next = launches;
	launches = l;
	numbers_ask(a, ticket, 1);
}

/* Numbers are given once in a job's life. */
uint32_t numbers_take(struct agent *a, uint32_t count)
{
	uint32_t base;

	if (!count)
		return a->next_job < TREATY_ALIASES - 1 ? ++a->next_job : 0;
	if (!a->next_number)
		a->next_number = a->run->total;
	base = a->next_number;
	if (count >= WF_AGENTS || base + count >= WF_AGENTS)
		return 0;
	a->next_number += count;
	return base;
}

void numbers_ask(struct agent *a, uint32_t ticket, uint32_t count)
{
	uint8_t room[8];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	if (a->run->meshed && a->run->hosted) {
		hosted_numbers(a, ticket, count);
	} else if (a->run->meshed) {
		wf_body_u32(&b, ticket);
		wf_body_u32(&b, count);
		agent_tell(a, CONTROL_NUMBERS, room, b.at);
	} else {
		launch_numbers(a, ticket, numbers_take(a, count));
	}
}

void numbers_ask_again(struct agent *a)
{
	for (struct launch *l = launches, *next; l; l = next) {
		next = l->next;
		if (l->origin == a->run->host && !l->base && !l->begun)
			numbers_ask(a, l->ticket, l->count);
	}
	draft_numbers_ask(a);
}

/* Starting */

static const struct wf_launch_part *part_of(const struct launch *l, uint32_t rank, uint32_t *ret_app)
{
	uint32_t k = 0;

	for (; rank >= l->spec.part[k].count; k++)
		rank -= l->spec.part[k].count;
	*ret_app = k;
	return &l->spec.part[k];
}

/* Where the output of @p goes, if that is not where the job's does. */
static int set_output(struct agent *a, const struct launch *l, struct place *p, const struct wf_launch_part *part)
{
	if (!part->output)
		return 0;
	if (l->origin != a->run->host)
		return relay_open(a, p, l->origin);
	p->out = fcntl(l->outs[p->app], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	p->err = fcntl(l->outs[p->app], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return p->out < 0 || p->err < 0 ? -errno : 0;
}

static void start_here(struct agent *a, struct launch *l, uint32_t number)
{
	struct place *p = place_add(a, number, l->base, l->count);
	const struct wf_launch_part *part;
	struct part *own;
	int r = -ENOMEM;
	uint32_t app;

	own = p ? calloc(1, sizeof(*own)) : NULL;
	if (own) {
		part = part_of(l, p->rank, &p->app);
		own->argv = part->argv;
		own->env = part->env;
		own->env_count = part->env_count;
		own->wdir = part->dir;
		own->program = part->prog;
		p->part = own;
		p->attrs = part->attrs;
		p->launched = true;
		p->watched = l->spec.watched;
		r = set_output(a, l, p, part);
		if (r == 0)
			r = start_place(a, p);
		fd_close(&p->out);
		fd_close(&p->err);
	} else if (part_of(l, number - l->base - 1, &app)->output && l->origin != a->run->host) {
		relay_none(a, number, l->origin);
	}
	if (r < 0)
		tell(a, l, number, r, false, strerror(-r));
	if (r < 0 && p)
		news_gone(a, p, STATUS_UNKNOWN, false);
	agent_idle(a);
}

static void start_all_here(struct agent *a, struct launch *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->hosts[i] == a->run->host && a->phase == WORKING)
			start_here(a, l, l->base + i + 1);
}

static void plan_body(struct launch *l, struct wf_body *b)
{
	wf_body_u32(b, l->base);
	wf_body_u32(b, l->count);
	for (uint32_t i = 0; i < l->count; i++)
		wf_body_u32(b, l->hosts[i]);
}

/* All know where they will be. */
static void begin(struct agent *a, struct launch *l)
{
	struct wf_body b = { .n = 16 + 4 * (size_t)l->count + l->n };
	uint8_t *room;

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (mesh_name(a, h) && !l->knows[h])
			return;
	if (l->begun)
		return;
	l->begun = true;
	if (l->guest) {
		guest_number(a, l->ticket, l->base);
		return;
	}
	room = malloc(b.n);
	b.bytes = room;
	if (!room) {
		refuse(a, l, -ENOMEM, "no memory");
		return;
	}
	plan_body(l, &b);
	wf_body_bytes(&b, l->bytes, l->n);
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h))
			mesh_launch(a, h, MESH_LAUNCH_START, room, b.at);
	free(room);
	for (uint32_t i = 0; i < l->count; i++)
		if (l->hosts[i] == a->run->host)
			start_here(a, l, l->base + i + 1);
		else if (!mesh_name(a, l->hosts[i]))
			tell(a, l, l->base + i + 1, -EHOSTUNREACH, false, "its host is gone");
	outs_begin(a, l);
}

static bool note_plan(struct agent *a, uint32_t base, uint32_t count, const uint32_t *hosts)
{
	for (uint32_t i = 0; i < count; i++) {
		struct spot *s = where_spot(&a->where, base + i + 1);

		if (!s || (s->known && s->host != hosts[i]))
			return false;
		s->known = true;
		s->host = hosts[i];
		s->gone |= mesh_is_lost(hosts[i]);      /* who plans has not heard of that yet, and who is told of lost hosts was told of this one before */
	}
	return true;
}

static uint8_t *plan_bytes(struct launch *l, size_t *ret_n)
{
	struct wf_body b = { .n = 8 + 4 * (size_t)l->count };

	b.bytes = malloc(b.n);
	if (b.bytes)
		plan_body(l, &b);
	*ret_n = b.at;
	return b.bytes;
}

void launch_numbers(struct agent *a, uint32_t ticket, uint32_t base)
{
	struct launch *l = launches;
	uint8_t *room;
	size_t n;

	if (embassy_number(a, ticket, base))
		return;
	while (l && l->ticket != ticket)
		l = l->next;
	if (!l || l->base || l->begun)
		return;
	if (!base) {
		refuse(a, l, -ENOBUFS, "the job has used up its numbers of processes");
		return;
	}
	l->base = base;
	note_plan(a, base, l->count, l->hosts);
	l->knows[a->run->host] = true;
	room = plan_bytes(l, &n);
	if (!room) {
		refuse(a, l, -ENOMEM, "no memory");
		return;
	}
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h))
			mesh_launch(a, h, MESH_LAUNCH_PLAN, room, n);
	free(room);
	begin(a, l);
}

/* All that was planned here: also of what is there already the new one has to know whose it is. */
void launch_host_new(struct agent *a, uint32_t host)
{
	for (struct launch *l = launches; l; l = l->next) {
		uint8_t *room;
		size_t n;

		if (!l->base || !l->hosts || l->origin != a->run->host)
			continue;
		room = plan_bytes(l, &n);
		if (room)
			mesh_launch(a, host, MESH_LAUNCH_PLAN, room, n);
		else
			l->knows[host] = true;
		free(room);
	}
}

/* From other agents */

static uint32_t *plan_read(struct wf_body *b, uint32_t *ret_base, uint32_t *ret_count)
{
	uint32_t *hosts = NULL;

	*ret_base = wf_body_get32(b);
	*ret_count = wf_body_get32(b);
	if (!b->bad && *ret_count <= (b->n - b->at) / 4 && *ret_count && *ret_base < WF_AGENTS && *ret_count < WF_AGENTS - *ret_base)
		hosts = calloc(*ret_count, sizeof(*hosts));
	for (uint32_t i = 0; hosts && i < *ret_count; i++)
		hosts[i] = wf_body_get32(b);
	return hosts;
}

void launch_planned(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t base, count, *hosts = plan_read(b, &base, &count);
	uint8_t room[4];
	struct wf_body answer = { .bytes = room, .n = sizeof(room) };

	if (hosts && wf_body_whole(b) && note_plan(a, base, count, hosts)) {
		wf_body_u32(&answer, base);
		mesh_launch(a, host, MESH_LAUNCH_KNOWN, room, answer.at);
	}
	free(hosts);
}

void launch_plan_known(struct agent *a, uint32_t host, uint32_t base)
{
	for (struct launch *l = launches; l; l = l->next)
		if (l->base == base && l->origin == a->run->host && !l->begun && host < HOSTLIST_HOSTS) {
			l->knows[host] = true;
			begin(a, l);
			return;
		}
}

void launch_start(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t base, count, *hosts = plan_read(b, &base, &count);
	struct launch *l = hosts && !b->bad ? launch_new(b->bytes + b->at, b->n - b->at) : NULL;

	if (!l || l->count != count) {
		free(hosts);
		return;
	}
	l->base = base;
	l->origin = host;
	l->begun = true;
	l->hosts = hosts;
	l->held = !a->begun;
	if (a->begun)
		start_all_here(a, l);
}

void launch_begun(struct agent *a)
{
	for (struct launch *l = launches; l; l = l->next)
		if (l->held) {
			l->held = false;
			start_all_here(a, l);
		}
}

/* For who asked, with its own name for it. */
void launch_news(struct agent *a, uint32_t host, struct wf_body *b)
{
	struct launch *l;
	uint32_t number, err, over;
	const char *words;

	wf_body_get32(b);
	wf_body_get32(b);
	number = wf_body_get32(b);
	err = wf_body_get32(b);
	over = wf_body_get32(b);
	words = wf_body_get_text(b);
	l = wf_body_whole(b) ? launch_of(number) : NULL;
	if (l && l->origin == a->run->host && l->hosts[number - l->base - 1] == host)
		tell(a, l, number, (int)err, over != 0, words);
}

void launch_host_gone(struct agent *a, uint32_t host)
{
	outlet_host_gone(a, host);
	relay_host_gone(a, host);
	for (struct launch *l = launches; l; l = l->next) {
		if (l->origin != a->run->host)
			continue;
		if (!l->begun) {
			if (l->base)
				begin(a, l);
			continue;
		}
		for (uint32_t i = 0; l->hosts && l->base && i < l->count; i++)
			if (l->hosts[i] == host)
				tell(a, l, l->base + i + 1, -ECONNRESET, true, "its host is gone");
	}
}

/* Processes of this host */

void launch_exec(struct agent *a, struct place *p)
{
	struct launch *l = launch_of(p->number);

	if (l)
		tell(a, l, p->number, -p->exec_error, false, p->exec_error ? p->exec_what : NULL);
}

void launch_ended(struct agent *a, struct place *p, int status)
{
	struct launch *l = launch_of(p->number);

	if (l && !p->exec_error && !relay_ended(a, p, status))
		tell(a, l, p->number, status, true, NULL);
}

void launch_over(struct agent *a, uint32_t process, int status)
{
	struct launch *l = launch_of(process);

	if (l)
		tell(a, l, process, status, true, NULL);
}
