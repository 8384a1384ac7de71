/* consul.c - questions between attached jobs: where a process is, who is in the directory. See embassy.h.
 *
 * A question goes on with the route by which its answer comes back, so nobody keeps anything of it; but an agent knows which processes of the other job it has asked about,
 * and keeps where they are: a number of a process is used once. What the other job may see is decided at this job's directory, question by question, by what was offered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/bytes.h"
#include "dir/server.h"
#include "embassy.h"
#include "post.h"

#define ASK_AGAIN (100 * MS)
#define ASK_LOST (2 * SECOND)   /* after which a question counts as lost: an agent on its way may have ended */

static bool is_question(const struct wf_envoy *e)
{
	return e->kind == WF_ENVOY_WHERE || e->kind == WF_ENVOY_FIND || e->kind == WF_ENVOY_GET;
}

/* This job asks */

int consul_ask(struct agent *a, struct treaty *t, struct wf_envoy *e)
{
	if (!is_question(e))
		return -EBADMSG;
	e->route.host = a->run->host;
	if (t->host == a->run->host)
		embassy_send(a, t, e);
	else
		embassy_mesh(a, t->host, EMBASSY_ASK, t->wire.alias, NULL, e);
	return 0;
}

static void ask_where(struct agent *a, struct treaty *t, uint32_t process)
{
	struct wf_envoy e = { .kind = WF_ENVOY_WHERE, .process = process };

	if (!t->abodes[process].ask)
		t->asking++;
	t->abodes[process].ask = now_ns() + ASK_LOST;
	consul_ask(a, t, &e);
}

int consul_where(struct agent *a, struct treaty *t, uint32_t process, char *ret_at)
{
	struct abode *abode;

	if (!process || process >= WF_AGENTS)
		return -ESRCH;
	if (!t->abodes)
		t->abodes = calloc(WF_AGENTS, sizeof(*t->abodes));
	if (!t->abodes)
		return -ESRCH;
	abode = &t->abodes[process];
	if (abode->at[0]) {
		memcpy(ret_at, abode->at, sizeof(abode->at));
		return 0;
	}
	if (!abode->ask)
		ask_where(a, t, process);
	return -EAGAIN;
}

void consul_look(struct agent *a, struct treaty *t, int64_t now)
{
	for (uint32_t i = 1; t->asking && t->abodes && i < WF_AGENTS; i++)
		if (t->abodes[i].ask && t->abodes[i].ask <= now)
			ask_where(a, t, i);
}

/* An address is text that others have written: what no address has ends it. */
static void take_at(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	struct abode *abode = t->abodes && e->process < WF_AGENTS ? &t->abodes[e->process] : NULL;
	uint32_t what = WF_NOTE_DEAD;

	if (!abode || !abode->ask)
		return;
	if (e->error == -EAGAIN) {
		abode->ask = now_ns() + ASK_AGAIN;
		return;
	}
	abode->ask = 0;
	t->asking--;
	if (!e->error && e->text[0]) {
		for (size_t i = 0; i < sizeof(abode->at) - 1 && e->text[i] > ' ' && e->text[i] < 127; i++)
			abode->at[i] = e->text[i];
		if (abode->at[0])
			what = WF_NOTE_JOINED;
	}
	for (unsigned i = 0; i < a->count; i++)
		news_abroad(a, a->places[i], what, t->wire.alias << WF_FOREIGN_SHIFT | e->process);
}

void consul_told(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	if (e->kind == WF_ENVOY_AT && !e->route.process)
		take_at(a, t, e);
	else if (e->kind == WF_ENVOY_FOUND || e->kind == WF_ENVOY_GOT)
		embassy_answer(a, e->route.process, t->wire.alias, e);
}

/* The other job asks */

static struct wf_envoy answer_to(const struct wf_envoy *e, int err)
{
	struct wf_envoy answer = { .route = e->route, .error = err, .process = e->process, .id = e->id };

	answer.kind = e->kind == WF_ENVOY_WHERE ? WF_ENVOY_AT : e->kind == WF_ENVOY_FIND ? WF_ENVOY_FOUND : WF_ENVOY_GOT;
	return answer;
}

void consul_seen(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	struct wf_envoy answer = *e;
	struct spot *s;

	/* The directory says whether it may be known, the embassy where it is. */
	if (e->kind == WF_ENVOY_AT && !e->error) {
		s = where_spot(&a->where, e->process);
		if (!s || !s->known || s->gone)
			answer.error = -ESRCH;
		else if (!s->at[0])
			answer.error = -EAGAIN;
		else
			answer.text = s->at;
	}
	embassy_send(a, t, &answer);
}

static void seen(struct agent *a, uint32_t host, uint32_t alias, const struct wf_envoy *answer)
{
	struct treaty *t = embassy_find(alias);

	if (host != a->run->host)
		embassy_mesh(a, host, EMBASSY_SEEN, alias, NULL, answer);
	else if (t)
		consul_seen(a, t, answer);
}

static void look_up(struct wf_dir_server *s, const char *offer, const struct wf_envoy *e, struct wf_envoy *answer)
{
	static uint8_t ids[8 * WF_ENVOY_IDS];
	static weft_id found[WF_ENVOY_IDS];
	static char text[WF_ENVOY_TEXT];
	uint32_t most = e->number < WF_ENVOY_IDS ? e->number : WF_ENVOY_IDS;
	int r;

	if (e->kind == WF_ENVOY_WHERE) {
		r = wf_dir_offered_process(s, offer, (weft_id)e->process << 32);
		answer->error = r == 0 ? -ESRCH : r < 0 ? r : 0;
		return;
	}
	if (e->kind == WF_ENVOY_GET) {
		r = e->id >> 52 ? -ESRCH : wf_dir_offered_get(s, offer, e->id, e->text[0] ? e->text : NULL, text, sizeof(text));
		answer->error = r < 0 ? r : 0;
		answer->text = r < 0 ? "" : text;
		return;
	}
	r = wf_dir_offered_find(s, offer, e->text, found, most);
	answer->error = r < 0 ? r : 0;
	answer->number = r < 0 ? 0 : (uint32_t)r;
	answer->count = answer->number < most ? answer->number : most;
	for (uint32_t i = 0; i < answer->count; i++)
		wf_put64(ids + 8 * (size_t)i, found[i]);
	answer->ids = ids;
}

void consul_look_up(struct agent *a, uint32_t host, uint32_t alias, const char *offer, const struct wf_envoy *e)
{
	struct wf_envoy answer = answer_to(e, -EAGAIN);
	struct wf_dir_server *s = post_serves();

	if (s && is_question(e))
		look_up(s, offer, e, &answer);
	seen(a, host, alias, &answer);
}

void consul_asked(struct agent *a, struct treaty *t, const struct wf_envoy *e)
{
	struct wf_envoy answer;

	if (!is_question(e)) {
		if (e->route.host == a->run->host)
			consul_told(a, t, e);
		else
			embassy_mesh(a, e->route.host, EMBASSY_TELL, t->wire.alias, NULL, e);
		return;
	}
	/* Who attached has shown nothing, but wants to be answered: where its processes are may be known. */
	if (!t->offer) {
		answer = answer_to(e, e->kind == WF_ENVOY_GET ? -ESRCH : 0);
		consul_seen(a, t, &answer);
	} else if (post_serves()) {
		consul_look_up(a, a->run->host, t->wire.alias, t->offer, e);
	} else {
		embassy_mesh(a, post_serving(), EMBASSY_LOOK, t->wire.alias, t->offer, e);
	}
}
