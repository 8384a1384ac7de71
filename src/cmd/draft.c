/* draft.c - treaties in the making: what is offered, and who attaches. See embassy.h.
 *
 * Attaching, from left to right:
 *
 *   process   its agent, an embassy then                       the embassy that has offered
 *   ATTACH -> tries out the url: a treaty of its secret
 *             KNOCK ======================================>    is there room? gets a number, makes a treaty,
 *             gets a number, makes the treaty, too        <=   tells all agents, WELCOME when they know
 *   number <- when all agents know it
 *
 * Whatever is in the making is a draft, here and there. The key of a treaty is made of the secret and the treaty's id by both, so it goes over no wire between them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <weft/weft.h>

#include "agent.h"
#include "embassy.h"
#include "job/url.h"
#include "mesh.h"
#include "post.h"
#include "secure/crypto.h"
#include "wire/places.h"
#include "wire/wire.h"

#define OFFERS 64u
#define ASKERS 32u
#define PASSED 128u
#define DRAFT_LIMIT (40 * SECOND)       /* longer than weft tries to reach somebody */
#define TICKET 0x40000000u              /* or'ed to a draft's slot: launches and guests have others */
#define HOST 1u                         /* what an offering embassy calls itself where it is tried out */

struct offer {
	bool used;
	uint32_t alias, by;             /* by: the process that made it */
	uint8_t secret[16], id[16];
	char *query;
};

/* A treaty in the making. */
struct draft {
	bool used;
	bool visiting;                  /* this job attaches; else it has offered */
	uint32_t turn;                  /* so that what comes late is not another's */
	uint32_t boot;                  /* the alias of what was offered, */
	weft_id peer;                   /* and who is at its other end */
	uint8_t secret[16], by[16], id[16];
	char at[WF_AT_TEXT];            /* where the other embassy is, */
	uint32_t other;                 /* and its number in its job */
	char *offer;                    /* NULL: visiting */
	bool asked;                     /* for a number */
	uint32_t alias;                 /* 0: not yet */
	bool knows[HOSTLIST_HOSTS];     /* which agents know it */
	int64_t deadline;
	unsigned askers;                /* visiting: who waits for it */
	struct wf_route asker[ASKERS];
};

/* What was asked here, and is attached by the agent that serves the directory: one for all, so that a job has one number. */
struct passed {
	bool used;
	uint32_t host;
	struct wf_route route;
};

static struct offer offers[OFFERS];
static struct draft drafts[DRAFTS];
static struct passed passed[PASSED];
static uint32_t boots = TREATY_ALIASES;         /* the next alias of an offer, or of a url that is tried out */

/* Keys */

/* What belongs to a secret: id and key of what was offered; with @id, the key of a treaty made by it. */
static bool derive(const uint8_t secret[16], const uint8_t *id, uint8_t ret_id[16], struct wf_key *ret_key)
{
	static const uint8_t salt[WF_SECRET] = "weft offer";
	uint8_t prk[WF_SECRET];
	bool ok = wf_hkdf_extract(salt, secret, 16, prk) == 0;

	if (id)
		ok = ok && wf_hkdf_expand(prk, "weft treaty key", id, 16, ret_key->bytes, sizeof(ret_key->bytes)) == 0;
	else
		ok = ok && wf_hkdf_expand(prk, "weft offer id", NULL, 0, ret_id, 16) == 0 &&
		     wf_hkdf_expand(prk, "weft offer key", NULL, 0, ret_key->bytes, sizeof(ret_key->bytes)) == 0;
	explicit_bzero(prk, sizeof(prk));
	return ok;
}

static bool random_bytes(void *room, size_t n)
{
	return getrandom(room, n, 0) == (ssize_t)n;
}

/* Drafts */

static uint32_t ticket_of(const struct draft *d)
{
	return TICKET | (d->turn << 8 & 0x3fffff00u) | (uint32_t)(d - drafts);
}

static struct draft *draft_of(uint32_t ticket)
{
	struct draft *d = &drafts[ticket % DRAFTS];

	return (ticket & TICKET) && d->used && ticket == ticket_of(d) ? d : NULL;
}

static struct draft *draft_new(void)
{
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (!d->used) {
			*d = (struct draft){ .used = true, .turn = d->turn + 1, .deadline = now_ns() + DRAFT_LIMIT };
			return d;
		}
	return NULL;
}

static void draft_free(struct draft *d)
{
	if (d->visiting)
		wf_wire_treaty_drop(d->boot);
	courier_forget((uint32_t)(d->peer >> 32));
	free(d->offer);
	explicit_bzero(d->secret, sizeof(d->secret));
	d->used = false;
}

static void refuse(struct agent *a, weft_id to, int err, const char *words)
{
	struct wf_envoy e = { .kind = WF_ENVOY_REFUSED, .error = err, .text = words };

	courier_say(a, to, &e, 0, false);
}

/* Nothing becomes of it. */
static void draft_fail(struct agent *a, struct draft *d, int err, const char *words)
{
	struct treaty *t = d->alias ? embassy_find(d->alias) : NULL;

	for (unsigned i = 0; i < d->askers; i++)
		embassy_tell(a, &d->asker[i], err, 0, words);
	if (t)
		embassy_over(a, t);
	if (!d->visiting)
		refuse(a, d->peer, err, words);
	draft_free(d);
}

/* All agents know it. */
static void draft_done(struct agent *a, struct draft *d)
{
	struct wf_envoy e = { .kind = WF_ENVOY_WELCOME, .process = WF_AGENTS + a->run->host };

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (!d->knows[h] && mesh_name(a, h))
			return;
	agent_remark(a, "another job is attached, as number %u", d->alias);
	for (unsigned i = 0; i < d->askers; i++)
		embassy_tell(a, &d->asker[i], 0, d->alias, NULL);
	if (!d->visiting) {
		memcpy(e.job, a->job, sizeof(e.job));
		memcpy(e.treaty, d->id, sizeof(e.treaty));
		courier_say(a, d->peer, &e, 0, false);
	}
	draft_free(d);
}

/* It has its number. */
static void draft_numbered(struct agent *a, struct draft *d, uint32_t alias)
{
	struct wf_treaty wire = { .alias = alias, .side = d->visiting };
	struct wf_envoy beat = { .kind = WF_ENVOY_BEAT };
	struct treaty *t = NULL;

	memcpy(wire.id, d->id, sizeof(wire.id));
	courier_place(alias << WF_FOREIGN_SHIFT | d->other, d->at);
	if (alias && derive(d->secret, d->id, NULL, &wire.key) && wf_wire_treaty_add(&wire) == 0) {
		t = embassy_make(a, &wire, a->run->host, d->by, d->offer);
		d->offer = NULL;
		if (!t)
			wf_wire_treaty_drop(alias);
	}
	wf_key_wipe(&wire.key);
	if (!t) {
		courier_forget(alias << WF_FOREIGN_SHIFT | d->other);
		draft_fail(a, d, -ENOSPC, "too many jobs are attached");
		return;
	}
	t->other = d->other;
	d->alias = alias;
	d->knows[a->run->host] = true;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h))
			embassy_spread(a, h, t);
	if (d->visiting)
		embassy_send(a, t, &beat);
	draft_done(a, d);
}

bool embassy_number(struct agent *a, uint32_t ticket, uint32_t number)
{
	struct draft *d = draft_of(ticket);

	if (d && d->asked && !d->alias)
		draft_numbered(a, d, number);
	return (ticket & (TICKET | 0x80000000u)) == TICKET;
}

/* Offering */

static uint32_t boot_next(void)
{
	return boots < WF_ALIASES ? boots++ : 0;
}

static int offer_make(struct agent *a, struct offer *o, const char *query, char *ret_url, size_t n)
{
	struct wf_treaty wire = { .alias = boot_next(), .me = HOST };
	struct wf_url url;
	char text[WF_URL_TEXT + WF_AT_TEXT], at[WF_AT_TEXT];
	int r = wire.alias ? wf_places_first(mesh_at(), at, sizeof(at)) : -ENOBUFS;

	/* The address is as the driver writes it: the url takes it if it is one of a network. */
	if (r == 0) {
		snprintf(text, sizeof(text), "weft://%s/00000000000000000000000000000000", at);
		r = wf_url_parse(text, &url);
	}
	if (r == 0 && (!random_bytes(o->secret, sizeof(o->secret)) || !derive(o->secret, NULL, o->id, &wire.key)))
		r = -EIO;
	o->query = strdup(query);
	if (r == 0 && !o->query)
		r = -ENOMEM;
	if (r == 0) {
		memcpy(url.job, a->job, sizeof(url.job));
		memcpy(url.secret, o->secret, sizeof(url.secret));
		url.offered = true;
		memcpy(wire.id, o->id, sizeof(wire.id));
		r = wf_url_print(&url, ret_url, n);
	}
	if (r > 0)
		r = wf_wire_treaty_add(&wire);
	o->alias = wire.alias;
	wf_key_wipe(&wire.key);
	explicit_bzero(&url, sizeof(url));
	return r;
}

static void offer_end(struct offer *o)
{
	wf_wire_treaty_drop(o->alias);
	free(o->query);
	explicit_bzero(o, sizeof(*o));
}

void draft_offer(struct agent *a, const struct wf_route *by, const char *query)
{
	char url[WF_URL_TEXT];
	struct offer *o = offers;
	int r;

	while (o < offers + OFFERS && o->used)
		o++;
	if (o == offers + OFFERS || !courier_ready(a)) {
		embassy_tell(a, by, -ENOBUFS, 0, "this host has as many offers as it may");
		return;
	}
	*o = (struct offer){ .used = true, .by = by->process };
	r = offer_make(a, o, query, url, sizeof(url));
	if (r == 0) {
		embassy_tell(a, by, 0, 0, url);
		explicit_bzero(url, sizeof(url));
		return;
	}
	offer_end(o);
	embassy_tell(a, by, r == -EEXIST || r == -EINVAL ? -EIO : r == -ENOSPC ? -ENOBUFS : r, 0, r == -ENOBUFS ? "this host has made as many offers as it may" : weft_last_error());
}

void embassy_gone(struct agent *a, uint32_t process)
{
	(void)a;
	for (struct offer *o = offers; o < offers + OFFERS; o++)
		if (o->used && o->by == process)
			offer_end(o);
}

/* Somebody has the url of an offer. */
static void admit(struct agent *a, struct offer *o, weft_id from, const struct wf_envoy *e)
{
	struct draft *d;

	for (d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && !d->visiting && d->peer == from)
			return;         /* once is enough */
	if (e->number != WF_ENVOY_VERSION) {
		refuse(a, from, -EACCES, "the job that offers runs another version of weft");
		return;
	}
	if (!memcmp(e->job, a->job, sizeof(e->job))) {
		refuse(a, from, -EDEADLK, "that is this very job");
		return;
	}
	d = a->phase == WORKING && e->process - 1 < (1u << WF_FOREIGN_SHIFT) - 1 ? draft_new() : NULL;
	if (d)
		d->offer = strdup(o->query);
	if (!d || !d->offer || !random_bytes(d->id, sizeof(d->id))) {
		refuse(a, from, -ENOSPC, "too many attach there at a time");
		if (d)
			draft_free(d);
		return;
	}
	d->boot = o->alias;
	d->peer = from;
	d->other = e->process;
	memcpy(d->secret, o->secret, sizeof(d->secret));
	memcpy(d->by, o->id, sizeof(d->by));
	for (size_t i = 0; i < sizeof(d->at) - 1 && e->text[i] > ' ' && e->text[i] < 127; i++)
		d->at[i] = e->text[i];
	courier_place((uint32_t)(from >> 32), d->at);
	wf_wire_joined((uint32_t)(from >> 32));
	d->asked = true;
	numbers_ask(a, ticket_of(d), 0);
}

/* Attaching */

static bool is_done(struct agent *a, const uint8_t by[16], const struct wf_route *asker)
{
	const struct treaty *t;

	for (uint32_t at = 0; (t = embassy_each(&at)) != NULL;) {
		if (t->wire.side != 1 || memcmp(t->by, by, 16) != 0)
			continue;
		/* One that other agents may not know yet is waited for as the first one does. */
		for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
			if (d->used && d->alias == t->wire.alias)
				return false;
		embassy_tell(a, asker, 0, t->wire.alias, NULL);
		return true;
	}
	return false;
}

static void draft_ask(struct agent *a, struct draft *d, const struct wf_route *asker)
{
	if (d->askers == ASKERS) {
		embassy_tell(a, asker, -ENOSPC, 0, "too many attach at a time");
		return;
	}
	d->asker[d->askers++] = *asker;
}

static int knock(struct agent *a, struct draft *d, const struct wf_treaty *wire)
{
	struct wf_envoy e = { .kind = WF_ENVOY_KNOCK, .number = WF_ENVOY_VERSION, .process = WF_AGENTS + a->run->host, .text = mesh_at() };
	int r;

	memcpy(e.job, a->job, sizeof(e.job));
	d->boot = wire->alias;
	d->peer = (weft_id)(d->boot << WF_FOREIGN_SHIFT | HOST) << 32;
	courier_place(d->boot << WF_FOREIGN_SHIFT | HOST, d->at);
	r = courier_ready(a) ? wf_wire_treaty_add(wire) : -ENOMEM;
	return r < 0 ? r : courier_say(a, d->peer, &e, ticket_of(d), false);
}

void draft_attach_here(struct agent *a, const struct wf_route *by, const char *text)
{
	struct wf_treaty wire = { .side = 1 };
	struct draft *d;
	struct wf_url url;
	int r;

	if (wf_url_parse(text, &url) < 0 || url.kind != WF_URL_NET || !url.offered || !derive(url.secret, NULL, wire.id, &wire.key)) {
		embassy_tell(a, by, -EINVAL, 0, "no such url");
		return;
	}
	if (!memcmp(url.job, a->job, sizeof(url.job))) {
		embassy_tell(a, by, -EDEADLK, 0, "that is this very job");
		return;
	}
	if (is_done(a, wire.id, by))
		return;
	for (d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->visiting && !memcmp(d->by, wire.id, 16)) {
			draft_ask(a, d, by);
			return;
		}
	d = a->phase == WORKING ? draft_new() : NULL;
	wire.alias = d ? boot_next() : 0;
	if (!wire.alias || !random_bytes(&wire.me, sizeof(wire.me))) {
		if (d)
			d->used = false;
		embassy_tell(a, by, -ENOSPC, 0, d ? "this host has tried as many urls as it may" : "too many attach at a time");
		return;
	}
	wire.me = wire.me % ((1u << WF_FOREIGN_SHIFT) - 2) + 2;
	d->visiting = true;
	memcpy(d->secret, url.secret, sizeof(d->secret));
	memcpy(d->by, wire.id, sizeof(d->by));
	snprintf(d->at, sizeof(d->at), strchr(url.host, ':') ? "[%.64s]:%u" : "%.64s:%u", url.host, url.port);
	draft_ask(a, d, by);
	r = knock(a, d, &wire);
	if (r == -ENOMEM || r == -ENOSPC)
		draft_fail(a, d, r, weft_last_error());
	else
		draft_knocked(a, ticket_of(d), r);
	wf_key_wipe(&wire.key);
	explicit_bzero(&url, sizeof(url));
}

/* By whom it may be. */
void draft_attach(struct agent *a, const struct wf_route *by, const struct wf_envoy *e)
{
	struct passed *s = passed;

	if (post_serving() == a->run->host) {
		draft_attach_here(a, by, e->text);
		return;
	}
	while (s < passed + PASSED && s->used)
		s++;
	if (s == passed + PASSED) {
		embassy_tell(a, by, -ENOSPC, 0, "too many attach at a time");
		return;
	}
	*s = (struct passed){ .used = true, .host = post_serving(), .route = *by };
	embassy_mesh(a, s->host, EMBASSY_ATTACH, 0, NULL, e);
}

/* What became of it; @host: who says so. */
void draft_passed(struct agent *a, uint32_t host, const struct wf_envoy *e)
{
	for (struct passed *s = passed; s < passed + PASSED; s++)
		if (s->used && s->host == host && s->route.process == e->route.process && s->route.ticket == e->route.ticket) {
			s->used = false;
			embassy_answer(a, e->route.process, 0, e);
			return;
		}
}

/* A knock has been heard, or has not. */
void draft_knocked(struct agent *a, uint32_t ticket, int err)
{
	struct draft *d = draft_of(ticket);

	if (!d || d->asked)
		return;
	if (err == -ECONNREFUSED || err == -ECONNRESET)
		draft_fail(a, d, -ECONNREFUSED, "nobody listens at that url");
	else if (err < 0)
		draft_fail(a, d, err == -EACCES ? -EACCES : -EHOSTUNREACH, "nobody answers at that url, or none who knows its secret");
}

/* Words of another job may end up on a terminal. */
static void refused(struct agent *a, struct draft *d, const struct wf_envoy *e)
{
	char words[160];
	size_t i;

	for (i = 0; i < sizeof(words) - 1 && e->text[i]; i++)
		words[i] = e->text[i] >= ' ' && e->text[i] < 127 ? e->text[i] : '?';
	words[i] = 0;
	draft_fail(a, d, e->error == -EDEADLK || e->error == -ENOSPC ? e->error : -EACCES, words);
}

/* What comes, and what does not */

void draft_said(struct agent *a, weft_id from, const struct wf_envoy *e)
{
	uint32_t alias = (uint32_t)(from >> 52);

	for (struct offer *o = offers; o < offers + OFFERS; o++)
		if (o->used && o->alias == alias && e->kind == WF_ENVOY_KNOCK)
			admit(a, o, from, e);
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++) {
		if (!d->used || !d->visiting || d->peer != from || d->asked)
			continue;
		if (e->kind == WF_ENVOY_REFUSED)
			refused(a, d, e);
		else if (e->kind == WF_ENVOY_WELCOME && e->process - 1 < (1u << WF_FOREIGN_SHIFT) - 1) {
			memcpy(d->id, e->treaty, sizeof(d->id));
			d->other = e->process;
			d->asked = true;
			numbers_ask(a, ticket_of(d), 0);
		}
	}
}

void draft_known(struct agent *a, uint32_t host, uint32_t alias)
{
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->alias == alias && alias) {
			d->knows[host] = true;
			draft_done(a, d);
			return;
		}
}

void draft_host_gone(struct agent *a, uint32_t host)
{
	for (struct passed *s = passed; s < passed + PASSED; s++)
		if (s->used && s->host == host) {
			s->used = false;
			embassy_tell(a, &s->route, -EAGAIN, 0, "the host that was to attach is gone: try again");
		}
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->alias)
			draft_done(a, d);
}

void draft_numbers_ask(struct agent *a)
{
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->asked && !d->alias)
			numbers_ask(a, ticket_of(d), 0);
}

bool draft_busy(void)
{
	for (const struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used)
			return true;
	return false;
}

void draft_look(struct agent *a, int64_t now)
{
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && now > d->deadline)
			draft_fail(a, d, -EHOSTUNREACH, "the other job has begun to answer, and did not go on");
}
