/* watching.c - a client's watches: whom each has told as there, so that after a takeover it tells what has changed and nothing else.
 * See client.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/req.h>

#include "dir/client.h"
#include "dir/server.h"

struct known {
	struct wf_hnode by;
	weft_id id;
	uint32_t version;
	uint32_t round;                 /* the last server that has named it */
};

static struct known *find(const struct wf_dir_watching *w, weft_id id)
{
	struct wf_hnode *n = wf_hash_first(&w->known, wf_hash_number(id));

	while (n && wf_of(n, struct known, by)->id != id)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct known, by) : NULL;
}

static void forget_all(struct wf_dir_watching *w)
{
	struct wf_hnode *n;
	uint64_t at = 0;

	while ((n = wf_hash_any(&w->known, &at)) != NULL) {
		wf_hash_del(&w->known, n);
		free(wf_of(n, struct known, by));
	}
	wf_hash_fini(&w->known);
}

void wf_dir_watch_say(struct wf_dir_client *c, struct wf_dir_watching *w)
{
	struct wf_dir_msg m = { .type = WF_DIR_WATCH, .number = w->n.number, .query = { w->query, strlen(w->query) } };

	w->n.sent = true;
	w->round++;
	wf_dir_client_send(c, &m);
}

int wf_dir_client_watch(struct wf_dir_client *c, struct wf_dir_watching *w)
{
	if (c->lost)
		return -ECONNRESET;
	if (c->watches + c->waits >= WF_DIR_MOST_WATCHES)
		return -ENOBUFS;
	if (!wf_hash_init(&w->known))
		return -ENOMEM;
	w->round = 0;
	c->watches++;
	wf_dir_number_give(c, &w->n, WF_DIR_USE_WATCH);
	if (!c->moving)
		wf_dir_watch_say(c, w);
	return 0;
}

static void release(struct wf_dir_client *c, struct wf_dir_watching *w)
{
	wf_dir_number_take(c, &w->n);
	c->watches--;
	forget_all(w);
	free(w->query);
	w->query = NULL;
}

void wf_dir_client_unwatch(struct wf_dir_client *c, struct wf_dir_watching *w)
{
	if (w->n.sent)
		wf_dir_say_number(c, WF_DIR_CANCEL, w->n.number);
	release(c, w);
}

void wf_dir_watch_end(struct wf_dir_client *c, struct wf_dir_watching *w, int err)
{
	release(c, w);
	c->hooks.ended(c->hooks.ctx, w, err);
}

/* It is there. False: no memory to remember it. */
static bool there(struct wf_dir_client *c, struct wf_dir_watching *w, const struct wf_dir_event *e)
{
	struct known *k = find(w, e->id);
	int what = k ? WEFT_CHANGED : WEFT_JOINED;

	if (!k) {
		k = malloc(sizeof(*k));
		if (!k)
			return false;
		*k = (struct known){ .id = e->id };
		wf_hash_add(&w->known, &k->by, wf_hash_number(e->id));
	} else if (k->version == e->version) {
		what = 0;               /* said by the next server, too */
	}
	k->version = e->version;
	k->round = w->round;
	if (what)
		c->hooks.event(c->hooks.ctx, w, what, e->id);
	return true;
}

static void left(struct wf_dir_client *c, struct wf_dir_watching *w, struct known *k)
{
	weft_id id = k->id;

	wf_hash_del(&w->known, &k->by);
	free(k);
	c->hooks.event(c->hooks.ctx, w, WEFT_LEFT, id);
}

/* Those whom the server that took over has not named. */
static void sweep(struct wf_dir_client *c, struct wf_dir_watching *w)
{
	for (uint64_t i = 0; i <= w->known.mask; i++)
		for (struct wf_hnode *n = w->known.slots[i], *next; n; n = next) {
			struct known *k = wf_of(n, struct known, by);

			next = n->next;
			if (k->round != w->round)
				left(c, w, k);
		}
}

void wf_dir_watch_events(struct wf_dir_client *c, struct wf_dir_watching *w, const struct wf_dir_msg *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		struct wf_dir_event e = wf_dir_event_at(m, i);
		struct known *k;

		if (e.what == WEFT_LEFT) {
			k = find(w, e.id);
			if (k)
				left(c, w, k);
		} else if (!there(c, w, &e)) {
			wf_dir_say_number(c, WF_DIR_CANCEL, w->n.number);
			wf_dir_watch_end(c, w, -ENOMEM);
			return;
		}
	}
	if (m->flags & WF_DIR_FIRST && !(m->flags & WF_DIR_MORE))
		sweep(c, w);
}
