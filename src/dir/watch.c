/* watch.c - who waits to be told: watches, finds that wait for enough, and finds whose answers a client keeps.
 *
 * All three are queries that stay. Each lies with a tag that whatever it is about must have, so that a change looks only at those
 * that it might concern; what names no such tag lies in one list, looked at with every change.
 */
#include <errno.h>
#include <string.h>
#include <weft/req.h>

#include "dir/inner.h"

#define MOST_KEPT_FINDS 256u            /* of one client */

static uint64_t watch_hash(const struct client *c, uint32_t number)
{
	return wf_hash_number(c->id ^ (uint64_t)number << 8);
}

static struct watch *watch_find(const struct wf_dir_server *s, const struct client *c, uint32_t number)
{
	uint64_t hash = watch_hash(c, number);

	for (struct wf_hnode *n = wf_hash_first(&s->watches, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct watch *w = wf_of(n, struct watch, by);

		if (w->c == c && w->number == number)
			return w;
	}
	return NULL;
}

bool wf_dir_number_used(const struct wf_dir_server *s, const struct client *c, uint32_t number)
{
	return watch_find(s, c, number) != NULL;
}

/* How much a term narrows things down, by its key; 0: not at all. */
static int worth(const struct wf_dir_term *t)
{
	static const int by_key[WF_KEYS] = { [WF_KEY_NAME] = 6, [WF_KEY_OWN] = 5, [WF_KEY_GROUP] = 4, [WF_KEY_PARENT] = 3, [WF_KEY_HOST] = 2,
					     [WF_KEY_KIND] = 1 };

	return t->plain && t->value[0] ? by_key[t->what] : 0;
}

static uint64_t how_many(const struct wf_dir_server *s, const struct wf_dir_term *t)
{
	const struct tag *tag = wf_dir_tag_find(s, t->key, t->value);

	return tag ? tag->count : 0;
}

/* The term that fewest have now, and of those the one that promises to stay so. NULL: none is of use. */
static const struct wf_dir_term *rarest(const struct wf_dir_server *s, const struct wf_dir_query *q)
{
	const struct wf_dir_term *best = NULL;
	uint64_t fewest = 0;

	for (uint32_t i = 0; i < q->terms; i++) {
		const struct wf_dir_term *t = &q->term[i];
		uint64_t n = worth(t) ? how_many(s, t) : 0;

		if (!worth(t) || (best && (n > fewest || (n == fewest && worth(t) <= worth(best)))))
			continue;
		best = t;
		fewest = n;
	}
	return best;
}

/* False: no memory. */
static bool watch_hang(struct wf_dir_server *s, struct watch *w)
{
	const struct wf_dir_query *q = w->query;
	const struct wf_dir_part *last = q->parts ? &q->part[q->parts - 1] : NULL;
	const struct wf_dir_term *best = rarest(s, q);
	const char *key = NULL, *value = NULL;

	if (best) {
		key = best->key;
		value = best->value;
	} else if (last && last->plain) {
		key = wf_dir_key_name(WF_KEY_NAME);
		value = last->name;
	}
	if (key)
		w->tag = wf_dir_tag_get(s, key, strlen(key), value, strlen(value));
	if (key && !w->tag)
		return false;
	wf_list_add(w->tag ? &w->tag->watches : &s->general, &w->in_tag);
	return true;
}

/* It goes while others are being told of a change, and was to be told, too. */
static void untouch(struct wf_dir_server *s, const struct watch *w)
{
	struct watch **p = &s->touched;

	while (*p && *p != w)
		p = &(*p)->next_touched;
	if (*p)
		*p = w->next_touched;
}

static void watch_free(struct wf_dir_server *s, struct watch *w)
{
	if (w->touched == s->changes)
		untouch(s, w);
	if (wf_list_has(&w->mine)) {
		wf_list_del(&w->mine);
		wf_hash_del(&s->watches, &w->by);
		if (w->mode == MODE_KEPT)
			w->c->kept_find_count--;
		else
			w->c->watch_count--;
	}
	if (wf_list_has(&w->in_tag))
		wf_list_del(&w->in_tag);
	if (w->tag)
		wf_dir_tag_put(s, w->tag);
	if (w->query) {
		s->bytes -= w->query->bytes;
		free(w->query);
	}
	wf_dir_free(s, w, sizeof(*w));
}

/* A find or watch as its client has sent it, not in its lists yet. NULL: *@ret_err. */
static struct watch *watch_new(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m, int *ret_err)
{
	char text[WF_DIR_QUERY + 1];
	struct watch *w;
	const char *why;

	memcpy(text, m->query.at, m->query.n);
	text[m->query.n] = 0;
	w = wf_dir_alloc(s, sizeof(*w));
	*ret_err = -ENOMEM;
	if (!w)
		return NULL;
	w->query = wf_dir_query_new(text, ret_err, &why);
	if (!w->query) {
		wf_dir_free(s, w, sizeof(*w));
		return NULL;
	}
	s->bytes += w->query->bytes;
	w->c = c;
	w->number = m->number;
	w->want = m->want;
	w->max = m->max;
	w->flags = m->flags;
	return w;
}

/* From now on it hears of changes. -ENOBUFS, -ENOMEM: it is gone. */
static int watch_stay(struct wf_dir_server *s, struct watch *w, enum mode mode)
{
	struct client *c = w->c;

	if (mode != MODE_KEPT && c->watch_count == WF_DIR_MOST_WATCHES) {
		watch_free(s, w);
		return -ENOBUFS;
	}
	if (!watch_hang(s, w)) {
		watch_free(s, w);
		return -ENOMEM;
	}
	w->mode = mode;
	wf_list_add(mode == MODE_KEPT ? &c->kept_finds : &c->watches, &w->mine);
	if (mode == MODE_KEPT)
		c->kept_find_count++;
	else
		c->watch_count++;
	wf_hash_add(&s->watches, &w->by, watch_hash(c, w->number));
	return 0;
}

/* Answers */

static void say_err(struct wf_dir_server *s, struct client *c, enum wf_dir_type type, uint32_t number, int err)
{
	struct wf_dir_msg m = { .type = type, .number = number, .err = err };

	wf_dir_emit(s, c, &m);
}

static void say_found(struct wf_dir_server *s, const struct watch *w, const struct found *f, bool keep)
{
	uint8_t *page = s->page;
	size_t n = f->n < w->max ? f->n : w->max, at = 0;
	struct wf_dir_msg m = { .type = WF_DIR_FOUND, .number = w->number, .list = page, .total = (uint32_t)f->n };

	if (keep)
		n = f->n;
	do {
		for (m.count = 0; m.count < WF_DIR_PAGE && at < n; m.count++, at++)
			wf_put64(page + 8 * m.count, f->all[at].id);
		m.list_bytes = 8u * m.count;
		m.flags = (at < n ? WF_DIR_MORE : 0) | (keep ? WF_DIR_KEEP : 0);
		wf_dir_emit(s, w->c, &m);
	} while (at < n);
}

/* The client may keep the answer: the oldest it has kept makes room. */
static void keep_find(struct wf_dir_server *s, struct watch *w)
{
	struct client *c = w->c;
	uint32_t number = w->number;

	if (c->kept_find_count == MOST_KEPT_FINDS) {
		struct watch *oldest = wf_of(c->kept_finds.next, struct watch, mine);

		say_err(s, c, WF_DIR_STALE, oldest->number, 0);
		watch_free(s, oldest);
	}
	if (watch_stay(s, w, MODE_KEPT) < 0)
		say_err(s, c, WF_DIR_STALE, number, 0);
}

/* @w is in no list, and is gone afterwards, or kept. */
static void answer(struct wf_dir_server *s, struct watch *w, const struct found *f)
{
	bool keep = w->flags & WF_DIR_KEEP && f->n <= WF_DIR_KEPT_IDS;

	say_found(s, w, f, keep);
	if (keep)
		keep_find(s, w);
	else
		watch_free(s, w);
}

void wf_dir_take_find(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct found f = { .all = NULL };
	struct watch *w;
	int err;

	w = watch_new(s, c, m, &err);
	if (!w) {
		say_err(s, c, WF_DIR_FOUND, m->number, err);
		return;
	}
	err = wf_dir_find(s, w->query, &f);
	if (err < 0) {
		watch_free(s, w);
	} else if (f.n >= w->want) {
		answer(s, w, &f);
	} else {
		w->count = f.n;
		err = watch_stay(s, w, MODE_WAIT);
	}
	free(f.all);
	if (err < 0)
		say_err(s, c, WF_DIR_FOUND, m->number, err);
}

/* Those who are there, in as many messages as it takes, be it one without any: then the client knows that it has them all. */
static void say_first(struct wf_dir_server *s, const struct watch *w, const struct found *f)
{
	uint8_t *page = s->page;
	struct wf_dir_msg m = { .type = WF_DIR_EVENTS, .number = w->number, .list = page };
	size_t at = 0;

	do {
		for (m.count = 0; m.count < WF_DIR_BATCH && at < f->n; m.count++, at++)
			wf_dir_event_put(page + m.count * WF_DIR_EVENT_BYTES,
					 &(struct wf_dir_event){ .what = WEFT_JOINED, .version = f->all[at].version, .id = f->all[at].id });
		m.list_bytes = m.count * WF_DIR_EVENT_BYTES;
		m.flags = WF_DIR_FIRST | (at < f->n ? WF_DIR_MORE : 0);
		wf_dir_emit(s, w->c, &m);
	} while (at < f->n);
}

void wf_dir_take_watch(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct found f = { .all = NULL };
	struct watch *w;
	int err;

	w = watch_new(s, c, m, &err);
	if (w) {
		err = watch_stay(s, w, MODE_WATCH);
		if (err == 0) {
			err = wf_dir_find(s, w->query, &f);
			if (err < 0)
				watch_free(s, w);
		}
	}
	if (err == 0)
		say_first(s, w, &f);
	else
		say_err(s, c, WF_DIR_ENDED, m->number, err);
	free(f.all);
}

void wf_dir_take_cancel(struct wf_dir_server *s, struct client *c, uint32_t number)
{
	struct watch *w = watch_find(s, c, number);

	if (w)                          /* else it was answered, or called back, at the same time */
		watch_free(s, w);
}

void wf_dir_watches_drop(struct wf_dir_server *s, struct client *c)
{
	while (!wf_list_empty(&c->watches))
		watch_free(s, wf_of(c->watches.next, struct watch, mine));
	while (!wf_list_empty(&c->kept_finds))
		watch_free(s, wf_of(c->kept_finds.next, struct watch, mine));
}

/* Changes */

static void touch_list(struct wf_dir_server *s, const struct wf_node *list)
{
	for (struct wf_node *n = list->next; n != list; n = n->next) {
		struct watch *w = wf_of(n, struct watch, in_tag);

		if (w->touched == s->changes)
			continue;
		w->touched = s->changes;
		w->next_touched = s->touched;
		s->touched = w;
	}
}

void wf_dir_touch_begin(struct wf_dir_server *s)
{
	s->changes++;
	s->touched = NULL;
	touch_list(s, &s->general);
}

void wf_dir_touch(struct wf_dir_server *s, const struct link *links, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!wf_list_empty(&links[i].tag->watches))
			touch_list(s, &links[i].tag->watches);
}

void wf_dir_touch_before(struct wf_dir_server *s, const struct entity *e)
{
	for (struct watch *w = s->touched; w; w = w->next_touched)
		w->before = e && wf_dir_matches(w->query, e);
}

static void say_event(struct wf_dir_server *s, const struct watch *w, int what, const struct entity *e)
{
	uint8_t one[WF_DIR_EVENT_BYTES];
	struct wf_dir_msg m = { .type = WF_DIR_EVENTS, .number = w->number, .count = 1, .list = one, .list_bytes = sizeof(one) };

	wf_dir_event_put(one, &(struct wf_dir_event){ .what = (uint8_t)what, .version = e->version, .id = e->id });
	wf_dir_emit(s, w->c, &m);
}

/* A find that waits has enough. */
static void enough(struct wf_dir_server *s, struct watch *w)
{
	struct client *c = w->c;
	uint32_t number = w->number;
	struct found f = { .all = NULL };
	int err;

	wf_list_del(&w->mine);
	wf_hash_del(&s->watches, &w->by);
	wf_list_del(&w->in_tag);
	if (w->tag)
		wf_dir_tag_put(s, w->tag);
	w->tag = NULL;
	c->watch_count--;
	err = wf_dir_find(s, w->query, &f);
	if (err == 0) {
		answer(s, w, &f);
	} else {
		watch_free(s, w);
		say_err(s, c, WF_DIR_FOUND, number, err);
	}
	free(f.all);
}

/* @w may be gone afterwards. */
static void tell(struct wf_dir_server *s, struct watch *w, int what, const struct entity *e)
{
	switch (w->mode) {
	case MODE_WATCH:
		say_event(s, w, what, e);
		break;
	case MODE_WAIT:
		w->count += what == WEFT_JOINED;
		w->count -= what == WEFT_LEFT;
		if (w->count >= w->want)
			enough(s, w);
		break;
	case MODE_KEPT:
		if (what == WEFT_CHANGED && !w->query->group && !w->query->parts)
			break;          /* who they are has not changed, nor their order */
		say_err(s, w->c, WF_DIR_STALE, w->number, 0);
		watch_free(s, w);
		break;
	}
}

void wf_dir_touch_after(struct wf_dir_server *s, const struct entity *e, bool there)
{
	struct watch *w;

	while ((w = s->touched) != NULL) {
		bool after = there && wf_dir_matches(w->query, e);

		s->touched = w->next_touched;
		w->touched = 0;
		if (w->before || after)
			tell(s, w, !w->before ? WEFT_JOINED : after ? WEFT_CHANGED : WEFT_LEFT, e);
	}
}
