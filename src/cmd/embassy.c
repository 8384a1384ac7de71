/* embassy.c - see embassy.h: treaties, and who knows of them. How they are made is in draft.c.
 *
 * Among the agents of a job the key of a treaty goes under a pad made of the job's key, as what they say is not encrypted in every job.
 */
#include "embassy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "agent.h"
#include "mesh.h"
#include "secure/crypto.h"

#define ASKING_LOOK (50 * MS)
#define UNREAD_MOST (8u << 20)          /* bytes of answers for a process that does not read them */

static struct treaty treaties[WF_TREATIES];
static bool over[TREATY_ALIASES];       /* numbers that were a job's */
static int64_t next_beat;

/* Saying something */

static weft_id other_end(const struct treaty *t)
{
	return (weft_id)(t->wire.alias << WF_FOREIGN_SHIFT | t->other) << 32;
}

void embassy_send(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	if (t->host == a->run->host)
		courier_say(a, other_end(t), e, 0, false);
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

void embassy_tell(struct agent *a, const struct wf_route *to, int err, uint32_t number, const char *text)
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

uint32_t embassy_last(void)
{
	uint32_t last = TREATY_ALIASES - 1;

	while (last && !over[last] && !embassy_find(last))
		last--;
	return last;
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
struct treaty *embassy_make(struct agent *a, const struct wf_treaty *wire, uint32_t host, const uint8_t by[16], char *offer)
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
void embassy_over(struct agent *a, struct treaty *t)
{
	uint32_t alias = t->wire.alias;

	agent_remark(a, "job %u is no longer attached", alias);
	t->up = false;
	over[alias] = true;
	if (t->host == a->run->host) {
		wf_wire_treaty_drop(alias);
		courier_forget(alias << WF_FOREIGN_SHIFT | t->other);
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

/* Among the agents */

/* Under the pad, and out of it. An id is used once, so its pad is. */
static bool pad(const struct agent *a, const uint8_t id[16], const uint8_t key[32], uint8_t ret[32])
{
	if (wf_hkdf_expand(a->run->key.bytes, "weft treaty pad", id, 16, ret, 32) < 0)
		return false;
	for (size_t i = 0; i < 32; i++)
		ret[i] ^= key[i];
	return true;
}

void embassy_spread(struct agent *a, uint32_t host, const struct treaty *t)
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

void embassy_said(struct agent *a, const struct weft_status *st)
{
	weft_id from = st->from & ~(weft_id)0xffffffff;
	struct wf_envoy e;
	struct treaty *t;

	if (wf_envoy_read(st->buf->data, st->len, &e) < 0)
		return;
	if (from >> 52 >= TREATY_ALIASES) {
		draft_said(a, from, &e);
		return;
	}
	t = embassy_find((uint32_t)(from >> 52));
	if (!t || t->host != a->run->host || other_end(t) != from)
		return;
	t->heard = now_ns();
	if (e.kind == WF_ENVOY_BYE)
		embassy_over(a, t);
	else if (e.kind >= WF_ENVOY_WHERE)
		consul_asked(a, t, &e);
}

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
	else if (embassy_make(a, &wire, host, by, offer))
		embassy_mesh(a, host, EMBASSY_KNOWN, alias, NULL, NULL);
	wf_key_wipe(&wire.key);
}

static void heard(struct agent *a, uint32_t host, uint32_t what, uint32_t alias, struct wf_body *b)
{
	struct treaty *t = embassy_find(alias);
	const char *offer = what == EMBASSY_LOOK ? wf_body_get_text(b) : NULL;
	struct wf_envoy e;

	if (what == EMBASSY_OVER && t && t->host == host)
		embassy_over(a, t);
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
		draft_passed(a, host, &e);
	else if (what == EMBASSY_ATTACH && e.kind == WF_ENVOY_ATTACH && e.route.host == host)
		draft_attach_here(a, &e.route, e.text);
}

void embassy_heard(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t what = wf_body_get32(b), alias = wf_body_get32(b);

	if (b->bad)
		return;
	if (what == EMBASSY_TREATY)
		learn(a, host, alias, b);
	else if (what == EMBASSY_KNOWN)
		draft_known(a, host, alias);
	else
		heard(a, host, what, alias, b);
}

void embassy_host(struct agent *a, uint32_t host)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host)
			embassy_spread(a, host, &treaties[i]);
}

void embassy_host_gone(struct agent *a, uint32_t host)
{
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == host)
			embassy_over(a, &treaties[i]);
	draft_host_gone(a, host);
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
		draft_offer(a, &e.route, e.text);
	else
		draft_attach(a, &e.route, &e);
	return 0;
}

int embassy_where(struct agent *a, uint32_t process, char *ret_at)
{
	struct treaty *t = embassy_find(process >> WF_FOREIGN_SHIFT);

	return t ? consul_where(a, t, process & ((1u << WF_FOREIGN_SHIFT) - 1), ret_at) : -ESRCH;
}

/* Time */

/* Agents that have nothing to do with it are not woken. */
int64_t embassy_next(const struct agent *a)
{
	bool busy = draft_busy(), asking = false;

	for (uint32_t i = 0; i < WF_TREATIES; i++) {
		busy |= treaties[i].up && treaties[i].host == a->run->host;
		asking |= treaties[i].up && treaties[i].asking;
	}
	if (asking)
		return now_ns() + ASKING_LOOK;
	return busy ? next_beat : 0;
}

static void beat(struct agent *a, struct treaty *t, int64_t now, int64_t every, int64_t late)
{
	struct wf_envoy e = { .kind = WF_ENVOY_BEAT };

	if (late > every)               /* who was stopped himself has heard nobody */
		t->heard = t->heard < now - late ? t->heard + late : now;
	if (now - t->heard > 5 * every)
		embassy_over(a, t);
	else
		embassy_send(a, t, &e);
}

void embassy_look(struct agent *a, int64_t now)
{
	int64_t every = a->run->silence_ms * MS / 5, late = next_beat ? now - next_beat : 0;

	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].asking)
			consul_look(a, &treaties[i], now);
	if (late < 0)
		return;
	next_beat = now + every;
	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host)
			beat(a, &treaties[i], now, every, late);
	draft_look(a, now);
}

void embassy_close(struct agent *a)
{
	struct wf_envoy e = { .kind = WF_ENVOY_BYE };

	for (uint32_t i = 0; i < WF_TREATIES; i++)
		if (treaties[i].up && treaties[i].host == a->run->host) {
			courier_say(a, other_end(&treaties[i]), &e, 0, true);
			treaties[i].up = false;
		}
	courier_close();
}
