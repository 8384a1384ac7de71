/* client.c - see client.h: what goes out and what comes in, and the look-ups between. */
#include "dir/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dir/server.h"

#define MOST_ORPHANS 64u

struct parcel {
	struct wf_node all;
	size_t len;
	uint8_t msg[];
};

static void outbox_clear(struct wf_dir_client *c)
{
	struct wf_node *n;

	while ((n = wf_list_pop(&c->outbox)) != NULL)
		free(wf_of(n, struct parcel, all));
	c->outbox_bytes = 0;
}

int wf_dir_client_init(struct wf_dir_client *c, weft_id process, const struct wf_dir_client_hooks *hooks)
{
	memset(c, 0, sizeof(*c));
	c->hooks = *hooks;
	c->process = process;
	wf_list_init(&c->mine_order);
	wf_list_init(&c->kept_order);
	wf_list_init(&c->outbox);
	for (unsigned i = 0; i <= WF_DIR_USE_WATCH; i++)
		wf_list_init(&c->uses[i]);
	if (wf_hash_init(&c->mine) && wf_hash_init(&c->kept) && wf_hash_init(&c->kept_finds) && wf_hash_init(&c->numbers))
		return 0;
	wf_dir_client_fini(c);
	return -ENOMEM;
}

/* Everything open ends. */
static void end_all(struct wf_dir_client *c, int err)
{
	struct wf_node *n;

	for (int use = WF_DIR_USE_GET; use <= WF_DIR_USE_FIND; use++)
		while (!wf_list_empty(&c->uses[use])) {
			struct wf_dir_ask *ask;

			n = c->uses[use].next;
			ask = wf_of(n, struct wf_dir_ask, n.all);
			wf_dir_client_unask(c, ask);
			ask->err = err;
			c->hooks.answered(c->hooks.ctx, ask);
		}
	while (!wf_list_empty(&c->uses[WF_DIR_USE_WATCH]))
		wf_dir_watch_end(c, wf_of(c->uses[WF_DIR_USE_WATCH].next, struct wf_dir_watching, n.all), err);
}

static void drop_orphans(struct wf_dir_client *c);

void wf_dir_client_fini(struct wf_dir_client *c)
{
	c->lost = c->broken = true;     /* nothing is sent any more */
	drop_orphans(c);
	end_all(c, -ECANCELED);
	wf_dir_kept_forget(c);
	wf_dir_client_mine_fini(c);
	outbox_clear(c);
	wf_hash_fini(&c->mine);
	wf_hash_fini(&c->kept);
	wf_hash_fini(&c->kept_finds);
	wf_hash_fini(&c->numbers);
}

/* Out */

static void parcel_add(struct wf_dir_client *c, const void *msg, size_t len)
{
	struct parcel *p = malloc(sizeof(*p) + len);

	if (!p) {
		c->broken = true;       /* what cannot be said is lost, and what follows it would be wrong */
		return;
	}
	p->len = len;
	memcpy(p->msg, msg, len);
	wf_list_add(&c->outbox, &p->all);
	c->outbox_bytes += len;
}

void wf_dir_client_flush(struct wf_dir_client *c)
{
	while (!c->broken && !wf_list_empty(&c->outbox)) {
		struct parcel *p = wf_of(c->outbox.next, struct parcel, all);
		int r = c->hooks.send(c->hooks.ctx, p->msg, p->len);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			c->broken = true;
			break;
		}
		c->messages++;
		wf_list_del(&p->all);
		c->outbox_bytes -= p->len;
		free(p);
	}
	if (c->broken)
		wf_dir_client_lost(c);
}

void wf_dir_client_send(struct wf_dir_client *c, const struct wf_dir_msg *m)
{
	size_t len;
	int r = -EAGAIN;

	if (c->broken)
		return;
	len = wf_dir_put(m, c->out);
	if (wf_list_empty(&c->outbox))
		r = c->hooks.send(c->hooks.ctx, c->out, len);
	if (r == 0)
		c->messages++;
	else if (r == -EAGAIN)
		parcel_add(c, c->out, len);
	else
		c->broken = true;       /* whoever called is in the middle of something: the next flush ends it all */
}

void wf_dir_say_number(struct wf_dir_client *c, enum wf_dir_type type, uint32_t number)
{
	struct wf_dir_msg m = { .type = type, .number = number };

	wf_dir_client_send(c, &m);
}

/* Numbers */

static struct wf_dir_numbered *number_find(const struct wf_dir_client *c, uint32_t number)
{
	struct wf_hnode *n = wf_hash_first(&c->numbers, wf_hash_number(number));

	while (n && wf_of(n, struct wf_dir_numbered, by)->number != number)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct wf_dir_numbered, by) : NULL;
}

static uint32_t number_new(struct wf_dir_client *c)
{
	do
		c->last_number++;
	while (!c->last_number || number_find(c, c->last_number));
	return c->last_number;
}

void wf_dir_number_give(struct wf_dir_client *c, struct wf_dir_numbered *n, enum wf_dir_use use)
{
	n->number = number_new(c);
	n->use = use;
	n->sent = false;
	wf_hash_add(&c->numbers, &n->by, wf_hash_number(n->number));
	wf_list_add(&c->uses[use], &n->all);
}

void wf_dir_number_take(struct wf_dir_client *c, struct wf_dir_numbered *n)
{
	wf_hash_del(&c->numbers, &n->by);
	wf_list_del(&n->all);
}

/* Another serves: what was said under the old number must not be mistaken for what is said now. */
static void renumber(struct wf_dir_client *c, struct wf_dir_numbered *n)
{
	wf_hash_del(&c->numbers, &n->by);
	n->number = number_new(c);
	n->sent = false;
	wf_hash_add(&c->numbers, &n->by, wf_hash_number(n->number));
}

/* Look-ups */

static void ask_say(struct wf_dir_client *c, struct wf_dir_ask *ask)
{
	struct wf_dir_msg m = { .number = ask->n.number, .type = WF_DIR_GET, .id = ask->id };

	if (ask->n.use == WF_DIR_USE_FIND) {
		m.type = WF_DIR_FIND;
		m.want = ask->want;
		m.max = ask->max < WF_DIR_MOST_IDS ? ask->max : WF_DIR_MOST_IDS;
		m.flags = WF_DIR_KEEP;
		m.query = (struct wf_dir_text){ ask->query, strlen(ask->query) };
	}
	ask->n.sent = true;
	ask->sets = c->sets;
	ask->got = 0;
	wf_dir_client_send(c, &m);
}

int wf_dir_client_ask(struct wf_dir_client *c, struct wf_dir_ask *ask)
{
	bool waits = ask->n.use == WF_DIR_USE_FIND && ask->want;

	if (c->lost)
		return -ECONNRESET;
	if (ask->orphan ? c->orphans >= MOST_ORPHANS || c->moving : waits && c->waits + c->watches >= WF_DIR_MOST_WATCHES)
		return -ENOBUFS;
	c->orphans += ask->orphan;
	c->waits += waits;
	wf_dir_number_give(c, &ask->n, ask->n.use);
	if (!c->moving)
		ask_say(c, ask);
	return 0;
}

static void ask_release(struct wf_dir_client *c, struct wf_dir_ask *ask)
{
	wf_dir_number_take(c, &ask->n);
	c->orphans -= ask->orphan;
	c->waits -= ask->n.use == WF_DIR_USE_FIND && ask->want;
	if (ask->orphan)
		return;
	free(ask->query);
	ask->query = NULL;
}

void wf_dir_client_unask(struct wf_dir_client *c, struct wf_dir_ask *ask)
{
	if (ask->n.sent && ask->n.use == WF_DIR_USE_FIND)
		wf_dir_say_number(c, WF_DIR_CANCEL, ask->n.number);
	ask_release(c, ask);
}

bool wf_dir_client_asked(struct wf_dir_client *c, const struct wf_dir_ask *like)
{
	for (struct wf_node *n = c->uses[like->n.use].next; n != &c->uses[like->n.use]; n = n->next) {
		struct wf_dir_ask *a = wf_of(n, struct wf_dir_ask, n.all);

		if (a->orphan && (like->n.use == WF_DIR_USE_GET ? a->id == like->id : strcmp(a->query, like->query) == 0))
			return true;
	}
	return false;
}

void wf_dir_orphan_free(struct wf_dir_ask *ask)
{
	free(ask->query);
	free(ask->ids);
	free(ask);
}

static void drop_orphans(struct wf_dir_client *c)
{
	for (int use = WF_DIR_USE_GET; use <= WF_DIR_USE_FIND; use++)
		for (struct wf_node *n = c->uses[use].next, *next; n != &c->uses[use]; n = next) {
			struct wf_dir_ask *ask = wf_of(n, struct wf_dir_ask, n.all);

			next = n->next;
			if (!ask->orphan)
				continue;
			wf_dir_client_unask(c, ask);
			wf_dir_orphan_free(ask);
		}
}

/* The answer is there. */
static void answered(struct wf_dir_client *c, struct wf_dir_ask *ask, bool kept)
{
	ask_release(c, ask);
	if (!ask->orphan)
		c->hooks.answered(c->hooks.ctx, ask);
	else if (kept || !c->hooks.orphan)
		wf_dir_orphan_free(ask);
	else
		c->hooks.orphan(c->hooks.ctx, ask);
}

static void take_entity(struct wf_dir_client *c, struct wf_dir_ask *ask, const struct wf_dir_msg *m, const void *msg, size_t len)
{
	if (m->err == -EAGAIN) {        /* READY will come */
		ask->n.sent = false;
		return;
	}
	if (!m->err && m->flags & WF_DIR_KEEP)
		wf_dir_keep_entity(c, m, msg, len);
	ask->err = m->err;
	ask->entity = m->err ? NULL : m;
	answered(c, ask, !m->err);
}

static int take_found(struct wf_dir_client *c, struct wf_dir_ask *ask, const struct wf_dir_msg *m)
{
	uint32_t most = ask->max > WF_DIR_KEPT_IDS ? ask->max : WF_DIR_KEPT_IDS;
	weft_id *ids = ask->ids;
	bool keep = false;

	if (m->err == -EAGAIN) {
		ask->n.sent = false;
		return 0;
	}
	if (m->count > most - ask->got)
		return -EBADMSG;
	if (m->count) {
		ids = realloc(ask->ids, (ask->got + m->count) * sizeof(*ids));
		if (!ids) {
			wf_dir_say_number(c, WF_DIR_CANCEL, ask->n.number);
			ask->err = -ENOMEM;
			answered(c, ask, false);
			return 0;
		}
	}
	for (uint32_t i = 0; i < m->count; i++)
		ids[ask->got++] = wf_get64(m->list + 8 * (size_t)i);
	ask->ids = ids;
	ask->total = m->total;
	ask->err = m->err;
	if (m->flags & WF_DIR_MORE)
		return 0;
	if (m->flags & WF_DIR_KEEP && ask->sets == c->sets && ask->got == ask->total) {
		uint32_t number = ask->n.number;

		renumber(c, &ask->n);           /* its number is what is kept's from now on */
		wf_dir_keep_find(c, ask, number);
		keep = true;
	} else if (m->flags & WF_DIR_KEEP) {
		wf_dir_say_number(c, WF_DIR_CANCEL, ask->n.number);
	}
	answered(c, ask, keep);
	return 0;
}

/* Another serves */

void wf_dir_client_moving(struct wf_dir_client *c)
{
	c->moving = true;
	wf_dir_kept_forget(c);
	drop_orphans(c);
	for (int use = WF_DIR_USE_GET; use <= WF_DIR_USE_WATCH; use++)
		for (struct wf_node *n = c->uses[use].next; n != &c->uses[use]; n = n->next)
			renumber(c, wf_of(n, struct wf_dir_numbered, all));
}

static void moved(struct wf_dir_client *c, uint32_t epoch)
{
	if (epoch <= c->epoch)
		return;
	c->epoch = epoch;
	wf_dir_client_moving(c);
	outbox_clear(c);                /* all of it is said again, or asked */
	wf_dir_client_say_all(c);
}

static void ready(struct wf_dir_client *c, uint32_t epoch)
{
	if (epoch != c->epoch)
		return;
	c->moving = false;
	for (int use = WF_DIR_USE_GET; use <= WF_DIR_USE_WATCH; use++)
		for (struct wf_node *n = c->uses[use].next, *next; n != &c->uses[use]; n = next) {
			struct wf_dir_numbered *x = wf_of(n, struct wf_dir_numbered, all);

			next = n->next;
			if (x->sent || use == WF_DIR_USE_KEPT)
				continue;
			if (use == WF_DIR_USE_WATCH)
				wf_dir_watch_say(c, wf_of(x, struct wf_dir_watching, n));
			else
				ask_say(c, wf_of(x, struct wf_dir_ask, n));
		}
}

void wf_dir_client_lost(struct wf_dir_client *c)
{
	if (c->lost)
		return;
	c->lost = c->broken = true;
	outbox_clear(c);
	wf_dir_kept_forget(c);
	drop_orphans(c);
	end_all(c, -ECONNRESET);
}

/* In */

static int take_numbered(struct wf_dir_client *c, const struct wf_dir_msg *m, const void *msg, size_t len)
{
	struct wf_dir_numbered *n = number_find(c, m->number);

	if (!n)
		return 0;               /* it was taken back while this was on its way */
	switch (m->type) {
	case WF_DIR_ENTITY:
		if (n->use != WF_DIR_USE_GET)
			return -EBADMSG;
		take_entity(c, wf_of(n, struct wf_dir_ask, n), m, msg, len);
		return 0;
	case WF_DIR_FOUND:
		return n->use == WF_DIR_USE_FIND ? take_found(c, wf_of(n, struct wf_dir_ask, n), m) : -EBADMSG;
	case WF_DIR_STALE:
		if (n->use != WF_DIR_USE_KEPT)
			return -EBADMSG;
		wf_dir_kept_stale(c, n);
		return 0;
	case WF_DIR_EVENTS:
		if (n->use != WF_DIR_USE_WATCH)
			return -EBADMSG;
		wf_dir_watch_events(c, wf_of(n, struct wf_dir_watching, n), m);
		return 0;
	default:                        /* ENDED */
		if (n->use != WF_DIR_USE_WATCH)
			return -EBADMSG;
		if (m->err == -EAGAIN)
			n->sent = false;
		else
			wf_dir_watch_end(c, wf_of(n, struct wf_dir_watching, n), m->err);
		return 0;
	}
}

int wf_dir_client_take(struct wf_dir_client *c, const void *msg, size_t len)
{
	struct wf_dir_msg m;

	if (wf_dir_read(msg, len, true, &m) < 0)
		return -EBADMSG;
	if (c->lost)
		return 0;
	c->messages++;
	switch (m.type) {
	case WF_DIR_INVALID:
		wf_dir_kept_invalid(c, m.id);
		return 0;
	case WF_DIR_PLACED:
		wf_dir_client_placed(c, &m);
		return 0;
	case WF_DIR_REFUSED:
		wf_dir_client_refused(c, &m);
		return 0;
	case WF_DIR_MOVED:
		moved(c, m.epoch);
		return 0;
	case WF_DIR_READY:
		ready(c, m.epoch);
		return 0;
	default:
		return take_numbered(c, &m, msg, len);
	}
}
