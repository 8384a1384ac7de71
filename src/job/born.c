/* born.c - see born.h, and pact.h for the whole of it.
 *
 * Every rank goes through all fences, even one that has failed: what it did not put tells the others, who then fail at once and in words instead of waiting for it. Only
 * the first process of a host does more than to ask: it starts the host's agent and carries texts between that and the launcher's space (birth.h).
 */
#include "job/born.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/shield.h"
#include "job/birth.h"
#include "job/hatch.h"
#include "job/link.h"
#include "job/pact.h"
#include "job/pmi_space.h"
#include "mem/segment.h"

_Static_assert(WF_PACT_CARD <= WF_SPACE_VALUE && WF_PACT_SEALED <= WF_SPACE_VALUE && WF_PACT_MAP <= WF_SPACE_VALUE, "what every launcher has room for");

struct birth {
	struct wf_space space;
	struct wf_pact_place *places;   /* of each rank */
	uint32_t hosts;                 /* 0: not known yet */
	int64_t limit;
	weft_time until;
	int agent;                      /* a first's socket to it; -1: none */
	int r;                          /* the first failure; what follows is left out, but for fences */
	uint8_t room[WF_BIRTH_ROOM];
};

static bool is_first(const struct birth *b)
{
	return b->hosts && b->places[b->space.rank].first == b->space.rank;
}

static void step(struct birth *b, int (*what)(struct birth *b))
{
	if (b->r == 0)
		b->r = what(b);
}

static void fence(struct birth *b)
{
	int r;

	if (b->space.spoilt)
		return;
	r = wf_space_fence(&b->space, b->until);
	if (b->r == 0 && r == -ETIMEDOUT)
		r = weft_fail(r, "not all of the %u processes that the launcher started have called weft_init within %d s (WEFT_START_S)", b->space.size, (int)(b->limit / WEFT_S));
	if (b->r == 0)
		b->r = r;
}

/* The agent */

static int say(struct birth *b, enum wf_birth kind, uint32_t number, const char *first, const char *second)
{
	uint8_t room[4 + 2 * (WF_SPACE_VALUE + 4)];
	struct wf_body body = { .bytes = room, .n = sizeof(room) };

	if (kind == WF_BIRTH_SEAL || kind == WF_BIRTH_MEMBER)
		wf_body_u32(&body, number);
	if (first)
		wf_body_text(&body, first);
	if (second)
		wf_body_text(&body, second);
	return wf_birth_say(b->agent, kind, &body);
}

/* Its answer is to be @wanted, with a text or nothing. *@ret_text: in @b->room. */
static int hear(struct birth *b, enum wf_birth wanted, const char **ret_text)
{
	enum wf_birth kind;
	struct wf_body body;
	int r = wf_birth_hear(b->agent, b->until, &kind, &body, b->room);

	if (r < 0)
		return weft_fail(r, "the agent of this host says nothing: %s", r == -ETIMEDOUT ? "the time is over" : "it has ended");
	if (kind == WF_BIRTH_FAILED) {
		int err = -(int)wf_body_get32(&body);
		const char *words = wf_body_get_text(&body);

		if (!wf_body_whole(&body) || err >= 0 || err < -4095)
			return weft_fail(-EPROTO, "the agent of this host has failed, and makes no sense");
		if (!words)
			return weft_fail(err, "the weft command, which this host's agent is a part of, cannot be executed: %s", strerror(-err));
		return weft_fail(err, "the agent of this host: %s", words);
	}
	if (ret_text)
		*ret_text = wf_body_get_text(&body);
	if (kind != wanted || !wf_body_whole(&body) || (ret_text && !*ret_text))
		return weft_fail(-EPROTO, "the agent of this host answers what was not asked");
	return 0;
}

static int say_task(struct birth *b)
{
	struct wf_body body = { .bytes = b->room, .n = sizeof(b->room) };

	wf_body_u32(&body, b->space.rank);
	wf_body_text(&body, b->space.job);
	wf_body_u32(&body, b->space.size);
	for (uint32_t i = 0; i < b->space.size; i++)
		wf_body_u32(&body, b->places[i].host);
	return wf_birth_say(b->agent, WF_BIRTH_TASK, &body);
}

static int start_agent(struct birth *b)
{
	const char *version;
	int r;

	if (!is_first(b))
		return 0;
	r = wf_hatch(&b->agent);
	if (r == 0)
		r = hear(b, WF_BIRTH_HELLO, &version);
	if (r == 0 && strcmp(version, WF_VERSION) != 0)
		return weft_fail(-EACCES, "this program has weft " WF_VERSION ", the weft command %.32s (WEFT_COMMAND may say where another is)", version);
	return r < 0 ? r : say_task(b);
}

/* Who is where */

static int put_host(struct birth *b)
{
	char host[WF_PACT_HOST];
	int r = wf_pact_host_here(host);

	return r < 0 ? r : wf_space_put(&b->space, "host", host);
}

static int group(struct birth *b, char (*texts)[WF_PACT_HOST])
{
	long r = 0;

	for (uint32_t i = 0; r == 0 && i < b->space.size; i++) {
		r = wf_space_get(&b->space, i, "host", texts[i], sizeof(texts[i]));
		if (r == -ENOENT)
			return weft_fail(-ECONNREFUSED, "rank %u has not said which host it is on", i);
	}
	return r < 0 ? (int)r : (int)wf_pact_group((const char (*)[WF_PACT_HOST])texts, b->space.size, b->places);
}

static int put_map(struct birth *b)
{
	char (*texts)[WF_PACT_HOST], key[WF_SPACE_KEY], text[WF_PACT_MAP];
	uint32_t next = 0;
	int r = 0;

	if (b->space.rank != 0)
		return 0;
	texts = calloc(b->space.size, sizeof(*texts));
	if (!texts)
		return weft_fail(-ENOMEM, "no memory");
	r = group(b, texts);
	free(texts);
	for (int part = 0; r >= 0 && next < b->space.size; part++) {
		next = wf_pact_map_write(b->places, b->space.size, next, text);
		snprintf(key, sizeof(key), "map.%d", part);
		r = wf_space_put(&b->space, key, text);
	}
	return r < 0 ? r : 0;
}

static int get_map(struct birth *b)
{
	char key[WF_SPACE_KEY], text[WF_PACT_MAP];
	uint32_t hosts = 0;
	long next = 0;

	for (int part = 0; next < b->space.size; part++) {
		int r;

		snprintf(key, sizeof(key), "map.%d", part);
		r = wf_space_get(&b->space, 0, key, text, sizeof(text));
		if (r == -ENOENT)
			return weft_fail(-ECONNREFUSED, "rank 0 has not said who is on which host");
		next = r < 0 ? r : wf_pact_map_read(text, b->space.size, (uint32_t)next, b->places);
		if (next < 0)
			return (int)next;
	}
	for (uint32_t i = 0; i < b->space.size; i++)
		hosts += b->places[i].first == i;
	b->hosts = hosts;
	return 0;
}

/* Of several hosts: the key */

static int get_of(struct birth *b, uint32_t rank, const char *key, char ret_text[WF_SPACE_VALUE])
{
	int r = wf_space_get(&b->space, rank, key, ret_text, WF_SPACE_VALUE);

	return r == -ENOENT ? weft_fail(-ECONNREFUSED, "rank %u could not start the agent of its host", b->places[rank].first) : r;
}

static int put_card(struct birth *b)
{
	const char *card;
	int r;

	if (!is_first(b))
		return 0;
	r = hear(b, WF_BIRTH_CARD, &card);
	return r < 0 ? r : wf_space_put(&b->space, "card", card);
}

static int put_sealed(struct birth *b)
{
	char key[WF_SPACE_KEY], card[WF_SPACE_VALUE];
	const char *sealed;
	int r = 0;

	for (uint32_t i = 1; r == 0 && b->space.rank == 0 && i < b->space.size; i++) {
		if (b->places[i].first != i)
			continue;
		r = get_of(b, i, "card", card);
		if (r == 0)
			r = say(b, WF_BIRTH_SEAL, i, card, NULL);
		if (r == 0)
			r = hear(b, WF_BIRTH_SEALED, &sealed);
		snprintf(key, sizeof(key), "sealed.%u", i);
		if (r == 0)
			r = wf_space_put(&b->space, key, sealed);
	}
	return r;
}

static int get_sealed(struct birth *b)
{
	char key[WF_SPACE_KEY], card[WF_SPACE_VALUE], sealed[WF_SPACE_VALUE];
	int r;

	if (!is_first(b) || b->space.rank == 0)
		return 0;
	snprintf(key, sizeof(key), "sealed.%u", b->space.rank);
	r = get_of(b, 0, "card", card);
	if (r == 0)
		r = get_of(b, 0, key, sealed);
	return r < 0 ? r : say(b, WF_BIRTH_OPEN, 0, card, sealed);
}

/* Doors */

static int put_door(struct birth *b)
{
	const char *door;
	int r;

	if (!is_first(b))
		return 0;
	r = say(b, WF_BIRTH_BEGIN, 0, NULL, NULL);
	if (r == 0)
		r = hear(b, WF_BIRTH_DOOR, &door);
	return r < 0 ? r : wf_space_put(&b->space, "door", door);
}

/* Each agent is told of all before anybody joins: none of them hears of a process from an agent that it does not know. */
static int tell_members(struct birth *b)
{
	char door[WF_SPACE_VALUE];
	int r = 0;

	if (!is_first(b))
		return 0;
	for (uint32_t i = 0; r == 0 && i < b->space.size; i++) {
		if (b->places[i].first != i)
			continue;
		r = get_of(b, i, "door", door);
		if (r == 0)
			r = say(b, WF_BIRTH_MEMBER, i, door, NULL);
	}
	if (r == 0)
		r = say(b, WF_BIRTH_START, 0, NULL, NULL);
	return r < 0 ? r : hear(b, WF_BIRTH_STARTED, NULL);
}

static int sit_down(struct birth *b)
{
	char text[WF_SPACE_VALUE], url[WF_PACT_DOOR + 16];
	uint32_t process, base, count;
	struct wf_pact_card card;
	int r = get_of(b, b->places[b->space.rank].first, "door", text);

	if (r == 0)
		r = wf_pact_card_read(text, &card);
	if (r < 0)
		return r;
	snprintf(url, sizeof(url), "weft+unix:@%s", card.door);
	r = wf_link_visit(url, b->space.rank, &process, &base, &count);
	if (r == 0 && (process != b->space.rank + 1 || base != 0 || count != b->space.size))
		return weft_fail(-EPROTO, "the agent calls this process %u of %u, the launcher rank %u of %u", process, count, b->space.rank, b->space.size);
	return r;
}

/* The whole */

static void play(struct birth *b)
{
	step(b, put_host);
	fence(b);
	step(b, put_map);
	fence(b);
	step(b, get_map);
	step(b, start_agent);
	if (b->hosts > 1) {
		step(b, put_card);
		fence(b);
		step(b, put_sealed);
		fence(b);
		step(b, get_sealed);
	}
	step(b, put_door);
	fence(b);
	if (b->hosts > 1) {
		step(b, tell_members);
		fence(b);
	}
	step(b, sit_down);
}

static int become_job(struct birth *b)
{
	if (b->space.size >= WF_AGENTS)
		return weft_fail(-E2BIG, "the launcher has started %u processes, and a job has %u at most", b->space.size, WF_AGENTS - 1);
	b->limit = wf_birth_limit();
	if (b->limit < 0)
		return (int)b->limit;
	b->until = wf_now() + b->limit;
	b->places = calloc(b->space.size, sizeof(*b->places));
	if (!b->places)
		return weft_fail(-ENOMEM, "no memory");
	play(b);
	if (b->agent >= 0)
		close(b->agent);
	free(b->places);
	return b->r;
}

int wf_born(uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count)
{
	static bool alone;              /* the launcher's space is entered once, and has nobody else in it */
	const char *wish = getenv("WEFT_PMI");
	struct birth b = { .agent = -1 };
	int r;

	if (alone || (wish && strcmp(wish, "off") == 0))
		return 0;
	r = wf_space_open(&b.space);
	if (r <= 0)
		return r;
	wf_shield();
	alone = b.space.size == 1;
	r = alone ? 0 : become_job(&b);
	if (r == 0 && !alone) {
		*ret_process = b.space.rank + 1;
		*ret_base = 0;
		*ret_count = b.space.size;
		r = 1;
	}
	if (wf_space_close(&b.space) < 0 && r >= 0)
		wf_log(WF_INFO, "the launcher's space could not be left: %s", weft_last_error());
	wf_unshield();
	return r;
}
