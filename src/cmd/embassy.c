/* embassy.c - see embassy.h.
 *
 * Attaching, from left to right:
 *
 *   process   its agent, an embassy then                       the embassy that has offered
 *   ATTACH -> tries out the url: a treaty of its secret
 *             KNOCK ======================================>    is there room? gets a number, makes a treaty,
 *             gets a number, makes the treaty, too        <=   tells all agents, WELCOME when they know
 *   number <- when all agents know it
 *
 * Whatever is in the making is a draft, here and there. The key of a treaty is made of the secret and the treaty's id by both, so it goes over no wire between them; among the agents of a job it
 * goes under a pad made of the job's key, as what they say is not encrypted in every job.
 */
#include "embassy.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <weft/weft.h>

#include "agent.h"
#include "dir/query.h"
#include "job/url.h"
#include "mesh.h"
#include "post.h"
#include "secure/crypto.h"
#include "wire/wire.h"

#define OFFERS 64u
#define DRAFTS 32u
#define ASKERS 32u
#define PASSED 128u
#define DRAFT_LIMIT (40 * SECOND)       /* longer than weft tries to reach somebody */
#define TICKET 0x40000000u              /* or'ed to a draft's slot: launches and guests have others */
#define HOST 1u                         /* what an offering embassy calls itself where it is tried out */
#define ASKING_LOOK (50 * MS)
#define FAREWELL (300 * MS)
#define UNREAD_MOST (8u << 20)          /* bytes of answers for a process that does not read them */
#define ENDS 16

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

/* Where embassies of other jobs are: asked by weft's own thread. */
static pthread_mutex_t posts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint32_t process;               /* 0: none */
	char at[WF_AT_TEXT];
} posts[WF_TREATIES + DRAFTS];

static struct offer offers[OFFERS];
static struct draft drafts[DRAFTS];
static struct passed passed[PASSED];
static struct treaty treaties[WF_TREATIES];
static bool over[TREATY_ALIASES];
static uint32_t boots = TREATY_ALIASES;
static struct weft_queue *queue;
static int64_t next_beat;
static unsigned farewells;

/* A message on its way. */
struct sent {
	uint32_t ticket;                /* of a draft whose knock it is; 0: of none */
	bool farewell;
	uint8_t bytes[];
};

/* Where they are */

/* Who comes by an offer is not known before it has said something: what goes there waits, for it has come to stay until it is answered. */
int embassy_place(uint32_t process, char *ret_at, size_t n)
{
	int r = process >> WF_FOREIGN_SHIFT < TREATY_ALIASES ? -ESRCH : -EAGAIN;

	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts) && r < 0; i++)
		if (process && posts[i].process == process) {
			snprintf(ret_at, n, "%s", posts[i].at);
			r = 0;
		}
	pthread_mutex_unlock(&posts_lock);
	return r;
}

/* There is room: no more are in use than treaties and drafts. */
static void post_set(uint32_t process, const char *at)
{
	bool done = false;

	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts) && !done; i++)
		if (!posts[i].process) {
			posts[i].process = process;
			snprintf(posts[i].at, sizeof(posts[i].at), "%s", at);
			done = true;
		}
	pthread_mutex_unlock(&posts_lock);
}

static void post_clear(uint32_t process)
{
	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts); i++)
		if (posts[i].process == process)
			posts[i].process = 0;
	pthread_mutex_unlock(&posts_lock);
}

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

/* Under the pad, and out of it. An id is used once, so its pad is. */
static bool pad(const struct agent *a, const uint8_t id[16], const uint8_t key[32], uint8_t ret[32])
{
	if (wf_hkdf_expand(a->run->key.bytes, "weft treaty pad", id, 16, ret, 32) < 0)
		return false;
	for (size_t i = 0; i < 32; i++)
		ret[i] ^= key[i];
	return true;
}

static bool random_bytes(void *room, size_t n)
{
	return getrandom(room, n, 0) == (ssize_t)n;
}

/* Saying something */

static bool queue_ready(struct agent *a)
{
	if (queue)
		return true;
	if (weft_queue_open(&queue) < 0 || agent_watch(a, weft_queue_fd(queue), FROM_MESH, 0) < 0)
		return false;
	next_beat = now_ns() + a->run->silence_ms * MS / 5;
	return true;
}

static bool say(struct agent *a, weft_id to, const struct wf_envoy *e, uint32_t ticket, bool farewell)
{
	struct sent *s = queue_ready(a) ? malloc(sizeof(*s) + WF_ENVOY_BYTES) : NULL;
	size_t n = s ? wf_envoy_write(e, s->bytes, WF_ENVOY_BYTES) : 0;
	struct sent *smaller = n ? realloc(s, sizeof(*s) + n) : NULL;

	if (!smaller) {
		free(s);
		return false;
	}
	smaller->ticket = ticket;
	smaller->farewell = farewell;
	if (weft_send_post(weft_port_world(), WEFT(op, .peer = to, .tag = 1, .data = smaller->bytes, .len = n, .queue = queue, .user = smaller,
		.flags = ticket || farewell ? WEFT_SYNC : 0), NULL) == 0)
		return true;
	free(smaller);
	return false;
}

static weft_id other_end(const struct treaty *t)
{
	return (weft_id)(t->wire.alias << WF_FOREIGN_SHIFT | t->other) << 32;
}

void embassy_send(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	if (t->host == a->run->host)
		say(a, other_end(t), e, 0, false);
}

void embassy_answer(struct agent *a, uint32_t process, uint32_t alias, const struct wf_envoy *e)
{
	struct place *p = process < WF_AGENTS ? a->numbered[process] : NULL;
	uint8_t room[4 + WF_ENVOY_BYTES];
	struct wf_body b = { .bytes = room, .n = 4 };
	size_t n = wf_envoy_write(e, room + 4, WF_ENVOY_BYTES);

	wf_body_u32(&b, alias);
	if (p && n && p->dir_bytes <= UNREAD_MOST)
		news_letter(a, p, WF_NOTE_ENVOY, room, 4 + n);
}

void embassy_mesh(struct agent *a, uint32_t host, enum embassy what, uint32_t alias, const char *offer, const struct wf_envoy *e)
{
	size_t room = 16 + (offer ? strlen(offer) + 8 : 0) + (e ? WF_ENVOY_BYTES : 0), n = 0;
	struct wf_body b = { .bytes = malloc(room), .n = room };

	if (!b.bytes)
		return;
	wf_body_u32(&b, what);
	wf_body_u32(&b, alias);
	if (offer)
		wf_body_text(&b, offer);
	if (e)
		n = wf_envoy_write(e, b.bytes + b.at, b.n - b.at);
	if (!e || n)
		mesh_launch(a, host, MESH_EMBASSY, b.bytes, b.at + n);
	free(b.bytes);
}

static void answer(struct agent *a, const struct wf_route *to, int err, uint32_t number, const char *text)
{
	struct wf_envoy e = { .kind = WF_ENVOY_ANSWER, .route = *to, .error = err, .number = number, .text = text };

	if (to->host == a->run->host)
		embassy_answer(a, to->process, 0, &e);
	else
		embassy_mesh(a, to->host, EMBASSY_TELL, 0, NULL, &e);
}

/* Treaties */

struct treaty *embassy_find(uint32_t alias)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].wire.alias == alias)
			return &treaties[i];
	return NULL;
}

struct treaty *embassy_each(uint32_t *at)
{
	while (*at < WF_TREATIES)
		if (treaties[(*at)++].up)
			return &treaties[*at - 1];
	return NULL;
}

static void push(struct agent *a, struct place *p, const struct treaty *t)
{
	uint8_t room[64];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, t->wire.alias);
	wf_body_u32(&b, t->wire.side);
	wf_body_bytes(&b, t->wire.id, sizeof(t->wire.id));
	wf_body_bytes(&b, t->wire.key.bytes, sizeof(t->wire.key.bytes));
	news_letter(a, p, WF_NOTE_TREATY, room, b.at);
	explicit_bzero(room, sizeof(room));
}

void embassy_joined(struct agent *a, struct place *p)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up)
			push(a, p, &treaties[i]);
}

void embassy_treaty(uint32_t alias, struct wf_frame_treaty *ret)
{
	const struct treaty *t = embassy_find(alias);

	memset(ret, 0, sizeof(*ret));
	ret->what = WF_CALL_TREATY;
	ret->result = t ? 0 : alias && alias < TREATY_ALIASES && over[alias] ? -ECONNRESET : -ESRCH;
	if (!t)
		return;
	ret->alias = alias;
	ret->side = t->wire.side;
	memcpy(ret->id, t->wire.id, sizeof(ret->id));
	memcpy(ret->key, t->wire.key.bytes, sizeof(ret->key));
}

/* NULL: there is no room. Takes @offer in any case. */
static struct treaty *treaty_make(struct agent *a, const struct wf_treaty *wire, uint32_t host, const uint8_t by[16], char *offer)
{
	struct treaty *t = NULL;

	for (uint32_t i = 0; i < WF_TREATIES && !t; i++)
		if (!treaties[i].up)
			t = &treaties[i];
	if (!t || !wire->alias || wire->alias >= TREATY_ALIASES || over[wire->alias] || embassy_find(wire->alias)) {
		free(offer);
		return NULL;
	}
	*t = (struct treaty){ .up = true, .wire = *wire, .host = host, .offer = offer, .heard = now_ns() };
	memcpy(t->by, by, sizeof(t->by));
	for (unsigned i = 0; i < a->count; i++)
		push(a, a->places[i], t);
	return t;
}

/* No longer attached. */
static void treaty_over(struct agent *a, struct treaty *t)
{
	uint32_t alias = t->wire.alias;

	agent_remark(a, "job %u is no longer attached", alias);
	t->up = false;
	over[alias] = true;
	if (t->host == a->run->host) {
		wf_wire_treaty_drop(alias);
		post_clear(alias << WF_FOREIGN_SHIFT | t->other);
		for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
			if (h != a->run->host && mesh_name(a, h))
				embassy_mesh(a, h, EMBASSY_OVER, alias, NULL, NULL);
	}
	for (unsigned i = 0; i < a->count; i++)
		news_abroad(a, a->places[i], WF_NOTE_TREATY_OVER, alias);
	free(t->offer);
	free(t->abodes);
	wf_key_wipe(&t->wire.key);
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
	post_clear((uint32_t)(d->peer >> 32));
	free(d->offer);
	explicit_bzero(d->secret, sizeof(d->secret));
	d->used = false;
}

static void refuse(struct agent *a, weft_id to, int err, const char *words)
{
	struct wf_envoy e = { .kind = WF_ENVOY_REFUSED, .error = err, .text = words };

	say(a, to, &e, 0, false);
}

/* Nothing becomes of it. */
static void draft_fail(struct agent *a, struct draft *d, int err, const char *words)
{
	for (unsigned i = 0; i < d->askers; i++)
		answer(a, &d->asker[i], err, 0, words);
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
		answer(a, &d->asker[i], 0, d->alias, NULL);
	if (!d->visiting) {
		memcpy(e.job, a->job, sizeof(e.job));
		memcpy(e.treaty, d->id, sizeof(e.treaty));
		say(a, d->peer, &e, 0, false);
	}
	draft_free(d);
}

static void tell_treaty(struct agent *a, uint32_t host, const struct treaty *t)
{
	size_t n = 96 + (t->offer ? strlen(t->offer) : 0);
	struct wf_body b = { .bytes = malloc(n), .n = n };
	uint8_t key[32];

	if (!b.bytes || !pad(a, t->wire.id, t->wire.key.bytes, key)) {
		free(b.bytes);
		return;
	}
	wf_body_u32(&b, EMBASSY_TREATY);
	wf_body_u32(&b, t->wire.alias);
	wf_body_u32(&b, t->wire.side);
	wf_body_bytes(&b, t->wire.id, sizeof(t->wire.id));
	wf_body_bytes(&b, key, sizeof(key));
	wf_body_bytes(&b, t->by, sizeof(t->by));
	wf_body_text(&b, t->offer);
	mesh_launch(a, host, MESH_EMBASSY, b.bytes, b.at);
	free(b.bytes);
}

/* It has its number. */
static void draft_numbered(struct agent *a, struct draft *d, uint32_t alias)
{
	struct wf_treaty wire = { .alias = alias, .side = d->visiting };
	struct wf_envoy beat = { .kind = WF_ENVOY_BEAT };
	struct treaty *t = NULL;

	memcpy(wire.id, d->id, sizeof(wire.id));
	post_set(alias << WF_FOREIGN_SHIFT | d->other, d->at);
	if (alias && derive(d->secret, d->id, NULL, &wire.key) && wf_wire_treaty_add(&wire) == 0) {
		t = treaty_make(a, &wire, a->run->host, d->by, d->offer);
		d->offer = NULL;
		if (!t)
			wf_wire_treaty_drop(alias);
	}
	wf_key_wipe(&wire.key);
	if (!t) {
		post_clear(alias << WF_FOREIGN_SHIFT | d->other);
		draft_fail(a, d, -ENOSPC, "too many jobs are attached");
		return;
	}
	t->other = d->other;
	d->alias = alias;
	d->knows[a->run->host] = true;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h))
			tell_treaty(a, h, t);
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
	char text[WF_URL_TEXT + WF_AT_TEXT];
	int r = wire.alias ? 0 : -ENOBUFS;

	/* The address is as the driver writes it: the url takes it if it is one of a network. */
	snprintf(text, sizeof(text), "weft://%s/00000000000000000000000000000000", mesh_at());
	if (r == 0)
		r = wf_url_parse(text, &url);
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

static void offer(struct agent *a, const struct wf_route *by, const char *query)
{
	char url[WF_URL_TEXT];
	struct offer *o = offers;
	int r;

	while (o < offers + OFFERS && o->used)
		o++;
	if (o == offers + OFFERS || !queue_ready(a)) {
		answer(a, by, -ENOBUFS, 0, "this host has as many offers as it may");
		return;
	}
	*o = (struct offer){ .used = true, .by = by->process };
	r = offer_make(a, o, query, url, sizeof(url));
	if (r == 0) {
		answer(a, by, 0, 0, url);
		explicit_bzero(url, sizeof(url));
		return;
	}
	offer_end(o);
	answer(a, by, r == -EEXIST || r == -EINVAL ? -EIO : r == -ENOSPC ? -ENOBUFS : r, 0, r == -ENOBUFS ? "this host has made as many offers as it may" : weft_last_error());
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
	post_set((uint32_t)(from >> 32), d->at);
	wf_wire_joined((uint32_t)(from >> 32));
	d->asked = true;
	numbers_ask(a, ticket_of(d), 0);
}

/* Attaching */

static bool is_done(struct agent *a, const uint8_t by[16], const struct wf_route *asker)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].wire.side == 1 && !memcmp(treaties[i].by, by, 16)) {
			bool known = true;

			/* One that other agents may not know yet is waited for as the first one does. */
			for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
				known &= !d->used || d->alias != treaties[i].wire.alias;
			if (known)
				answer(a, asker, 0, treaties[i].wire.alias, NULL);
			return known;
		}
	return false;
}

static void draft_ask(struct agent *a, struct draft *d, const struct wf_route *asker)
{
	if (d->askers == ASKERS) {
		answer(a, asker, -ENOSPC, 0, "too many attach at a time");
		return;
	}
	d->asker[d->askers++] = *asker;
}

static bool knock(struct agent *a, struct draft *d, const struct wf_treaty *wire)
{
	struct wf_envoy e = { .kind = WF_ENVOY_KNOCK, .number = WF_ENVOY_VERSION, .process = WF_AGENTS + a->run->host, .text = mesh_at() };

	memcpy(e.job, a->job, sizeof(e.job));
	d->boot = wire->alias;
	d->peer = (weft_id)(d->boot << WF_FOREIGN_SHIFT | HOST) << 32;
	post_set(d->boot << WF_FOREIGN_SHIFT | HOST, d->at);
	return queue_ready(a) && wf_wire_treaty_add(wire) == 0 && say(a, d->peer, &e, ticket_of(d), false);
}

static void attach(struct agent *a, const struct wf_route *by, const char *text)
{
	struct wf_treaty wire = { .side = 1 };
	struct draft *d;
	struct wf_url url;

	if (wf_url_parse(text, &url) < 0 || url.kind != WF_URL_NET || !url.offered || !derive(url.secret, NULL, wire.id, &wire.key)) {
		answer(a, by, -EINVAL, 0, "no such url");
		return;
	}
	if (!memcmp(url.job, a->job, sizeof(url.job))) {
		answer(a, by, -EDEADLK, 0, "that is this very job");
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
		answer(a, by, -ENOSPC, 0, d ? "this host has tried as many urls as it may" : "too many attach at a time");
		return;
	}
	wire.me = wire.me % ((1u << WF_FOREIGN_SHIFT) - 2) + 2;
	d->visiting = true;
	memcpy(d->secret, url.secret, sizeof(d->secret));
	memcpy(d->by, wire.id, sizeof(d->by));
	snprintf(d->at, sizeof(d->at), strchr(url.host, ':') ? "[%.64s]:%u" : "%.64s:%u", url.host, url.port);
	draft_ask(a, d, by);
	if (!knock(a, d, &wire))
		draft_fail(a, d, -EHOSTUNREACH, weft_last_error());
	wf_key_wipe(&wire.key);
	explicit_bzero(&url, sizeof(url));
}

/* By whom it may be. */
static void attach_somewhere(struct agent *a, const struct wf_route *by, const struct wf_envoy *e)
{
	struct passed *s = passed;

	if (post_serving() == a->run->host) {
		attach(a, by, e->text);
		return;
	}
	while (s < passed + PASSED && s->used)
		s++;
	if (s == passed + PASSED) {
		answer(a, by, -ENOSPC, 0, "too many attach at a time");
		return;
	}
	*s = (struct passed){ .used = true, .host = post_serving(), .route = *by };
	embassy_mesh(a, s->host, EMBASSY_ATTACH, 0, NULL, e);
}

/* What became of it; @host: who says so. */
static void passed_over(struct agent *a, uint32_t host, const struct wf_envoy *e)
{
	for (struct passed *s = passed; s < passed + PASSED; s++)
		if (s->used && s->host == host && s->route.process == e->route.process && s->route.ticket == e->route.ticket) {
			s->used = false;
			embassy_answer(a, e->route.process, 0, e);
			return;
		}
}

/* A knock has been heard, or has not. */
static void knock_over(struct agent *a, struct draft *d, int err)
{
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

/* What comes */

static void boot_said(struct agent *a, weft_id from, const struct wf_envoy *e)
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

void embassy_said(struct agent *a, const struct weft_status *st)
{
	weft_id from = st->from & ~(weft_id)0xffffffff;
	struct wf_envoy e;
	struct treaty *t;

	if (wf_envoy_read(st->buf->data, st->len, &e) < 0)
		return;
	if (from >> 52 >= TREATY_ALIASES) {
		boot_said(a, from, &e);
		return;
	}
	t = embassy_find((uint32_t)(from >> 52));
	if (!t || t->host != a->run->host || other_end(t) != from)
		return;
	t->heard = now_ns();
	if (e.kind == WF_ENVOY_BYE)
		treaty_over(a, t);
	else if (e.kind >= WF_ENVOY_WHERE)
		consul_asked(a, t, &e);
}

void embassy_event(struct agent *a)
{
	struct weft_status st[ENDS];
	int n = queue ? weft_queue_next(queue, WEFT_NOW, st, ENDS) : 0;

	for (int i = 0; i < n; i++) {
		struct sent *s = st[i].user;
		struct draft *d = draft_of(s->ticket);

		if (d && !d->asked)
			knock_over(a, d, st[i].err);
		farewells -= s->farewell;
		free(s);
	}
}

/* Other agents */

static void learn(struct agent *a, uint32_t host, uint32_t alias, struct wf_body *b)
{
	struct wf_treaty wire = { .alias = alias, .side = wf_body_get32(b) };
	const uint8_t *id = wf_body_get_bytes(b, 16), *key = wf_body_get_bytes(b, 32), *by = wf_body_get_bytes(b, 16);
	const char *text = wf_body_get_text(b);
	char *offer = text ? strdup(text) : NULL;

	if (!wf_body_whole(b)) {
		free(offer);
		return;
	}
	memcpy(wire.id, id, 16);
	if (!pad(a, id, key, wire.key.bytes))
		free(offer);
	else if (treaty_make(a, &wire, host, by, offer))
		embassy_mesh(a, host, EMBASSY_KNOWN, alias, NULL, NULL);
	wf_key_wipe(&wire.key);
}

static void known(struct agent *a, uint32_t host, uint32_t alias)
{
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->alias == alias && alias) {
			d->knows[host] = true;
			draft_done(a, d);
			return;
		}
}

static void heard(struct agent *a, uint32_t host, uint32_t what, uint32_t alias, struct wf_body *b)
{
	struct treaty *t = embassy_find(alias);
	const char *offer = what == EMBASSY_LOOK ? wf_body_get_text(b) : NULL;
	struct wf_envoy e;

	if (what == EMBASSY_OVER && t && t->host == host)
		treaty_over(a, t);
	if (what < EMBASSY_ASK || b->bad || wf_envoy_read(b->bytes + b->at, b->n - b->at, &e) < 0)
		return;
	if (what == EMBASSY_LOOK && offer)
		consul_look_up(a, host, alias, offer, &e);
	else if (what == EMBASSY_ASK && t)
		embassy_send(a, t, &e);
	else if (what == EMBASSY_SEEN && t)
		consul_seen(a, t, &e);
	else if (what == EMBASSY_TELL && t && t->host == host)
		consul_told(a, t, &e);
	else if (what == EMBASSY_TELL && !alias && e.kind == WF_ENVOY_ANSWER)
		passed_over(a, host, &e);
	else if (what == EMBASSY_ATTACH && e.kind == WF_ENVOY_ATTACH && e.route.host == host)
		attach(a, &e.route, e.text);
}

void embassy_heard(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t what = wf_body_get32(b), alias = wf_body_get32(b);

	if (b->bad)
		return;
	if (what == EMBASSY_TREATY)
		learn(a, host, alias, b);
	else if (what == EMBASSY_KNOWN)
		known(a, host, alias);
	else
		heard(a, host, what, alias, b);
}

void embassy_host(struct agent *a, uint32_t host)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host)
			tell_treaty(a, host, &treaties[i]);
}

void embassy_host_gone(struct agent *a, uint32_t host)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == host)
			treaty_over(a, &treaties[i]);
	for (struct passed *s = passed; s < passed + PASSED; s++)
		if (s->used && s->host == host) {
			s->used = false;
			answer(a, &s->route, -EAGAIN, 0, "the host that was to attach is gone: try again");
		}
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && d->alias)
			draft_done(a, d);
}

/* Processes of this host */

int embassy_asked(struct agent *a, struct place *p, uint32_t alias, const void *msg, size_t n)
{
	struct treaty *t = embassy_find(alias);
	struct wf_envoy e;

	if (wf_envoy_read(msg, n, &e) < 0)
		return -EBADMSG;
	if (!alias && e.kind != WF_ENVOY_OFFER && e.kind != WF_ENVOY_ATTACH)
		return -EBADMSG;
	if (!alias && !a->run->meshed)
		return -EOPNOTSUPP;
	if (alias && !t)
		return alias < TREATY_ALIASES && over[alias] ? -ECONNRESET : -ESRCH;
	e.route.host = a->run->host;
	e.route.process = p->number;
	if (alias)
		return consul_ask(a, t, &e);
	if (e.kind == WF_ENVOY_OFFER)
		offer(a, &e.route, e.text);
	else
		attach_somewhere(a, &e.route, &e);
	return 0;
}

int embassy_where(struct agent *a, uint32_t process, char *ret_at)
{
	struct treaty *t = embassy_find(process >> WF_FOREIGN_SHIFT);

	return t ? consul_where(a, t, process & ((1u << WF_FOREIGN_SHIFT) - 1), ret_at) : -ESRCH;
}

/* Time */

int64_t embassy_next(const struct agent *a)
{
	bool busy = false, asking = false;

	(void)a;
	for (uint32_t i = 0; i < WF_TREATIES; i++) {
		busy |= treaties[i].up && treaties[i].other;
		asking |= treaties[i].up && treaties[i].asking;
	}
	for (uint32_t i = 0; i < DRAFTS; i++)
		busy |= drafts[i].used;
	return asking ? now_ns() + ASKING_LOOK : busy ? next_beat : 0;
}

static void beat(struct agent *a, struct treaty *t, int64_t now, int64_t every, int64_t late)
{
	struct wf_envoy e = { .kind = WF_ENVOY_BEAT };

	if (late > every)
		t->heard += late;       /* who was stopped himself has heard nobody */
	if (now - t->heard > 5 * every)
		treaty_over(a, t);
	else
		embassy_send(a, t, &e);
}

void embassy_look(struct agent *a, int64_t now)
{
	int64_t every = a->run->silence_ms * MS / 5, late = now - next_beat;

	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].asking)
			consul_look(a, &treaties[i], now);
	if (!queue || late < 0)
		return;
	next_beat = now + every;
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host)
			beat(a, &treaties[i], now, every, late);
	for (struct draft *d = drafts; d < drafts + DRAFTS; d++)
		if (d->used && now > d->deadline)
			draft_fail(a, d, -EHOSTUNREACH, "the other job has begun to answer, and did not go on");
}

/* The others hear it within a moment, or find out by themselves. */
void embassy_close(struct agent *a)
{
	struct wf_envoy e = { .kind = WF_ENVOY_BYE };
	int64_t until = now_ns() + FAREWELL;

	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host) {
			farewells += say(a, other_end(&treaties[i]), &e, 0, true);
			treaties[i].up = false;
		}
	while (farewells && now_ns() < until) {
		struct weft_status st;

		if (weft_queue_next(queue, until, &st, 1) != 1)
			break;
		farewells -= ((struct sent *)st.user)->farewell;
		free(st.user);
	}
}
