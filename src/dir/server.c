/* server.c - clients come, say something, and go. See server.h for the face, inner.h for what lies behind it. */
#include "dir/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dir/describe.h"
#include "dir/inner.h"

void *wf_dir_alloc(struct wf_dir_server *s, size_t n)
{
	void *p = calloc(1, n);

	if (p)
		s->bytes += n;
	return p;
}

void wf_dir_free(struct wf_dir_server *s, void *p, size_t n)
{
	if (p)
		s->bytes -= n;
	free(p);
}

void wf_dir_emit(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	s->hooks.emit(s->hooks.ctx, c->id, s->out, wf_dir_put(m, s->out));
}

struct entity *wf_dir_entity(const struct wf_dir_server *s, weft_id id)
{
	struct wf_hnode *n = wf_hash_first(&s->entities, wf_hash_number(id));

	while (n && wf_of(n, struct entity, by_id)->id != id)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct entity, by_id) : NULL;
}

static struct client *client_find(const struct wf_dir_server *s, weft_id id)
{
	struct wf_hnode *n = wf_hash_first(&s->clients, wf_hash_number(id));

	while (n && wf_of(n, struct client, by)->id != id)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct client, by) : NULL;
}

/* The server itself */

static struct wf_hash *tables(struct wf_dir_server *s, unsigned i)
{
	struct wf_hash *const all[] = { &s->entities, &s->groups, &s->tags, &s->families, &s->places, &s->clients, &s->watches, &s->kept };

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

struct wf_dir_server *wf_dir_server_new(const struct wf_dir_hooks *hooks, uint32_t epoch, bool gathering)
{
	struct wf_dir_server *s = calloc(1, sizeof(*s));
	struct wf_hash *h;

	if (!s)
		return NULL;
	s->hooks = *hooks;
	s->epoch = epoch;
	s->gathering = gathering;
	s->bytes = sizeof(*s);
	wf_list_init(&s->hosts);
	wf_list_init(&s->general);
	for (unsigned i = 0; (h = tables(s, i)) != NULL; i++)
		if (!wf_hash_init(h)) {
			wf_dir_server_free(s);
			return NULL;
		}
	return s;
}

static void nobody(void *ctx, weft_id process, const void *msg, size_t len)
{
	(void)ctx;
	(void)process;
	(void)msg;
	(void)len;
}

void wf_dir_server_free(struct wf_dir_server *s)
{
	struct wf_hash *h;

	if (!s)
		return;
	s->hooks.emit = nobody;
	while (!wf_list_empty(&s->hosts))
		wf_dir_server_host_gone(s, wf_of(s->hosts.next, struct entity, mine)->id);
	for (unsigned i = 0; (h = tables(s, i)) != NULL; i++)
		wf_hash_fini(h);
	free(s);
}

/* Hosts */

/* @attrs as a list for an entity; how many bytes, -EINVAL. */
static int read_attrs(const char *attrs, uint8_t *list, uint32_t *ret_count)
{
	struct wf_dir_word w;
	const char *why;
	size_t n = 0;
	int r;

	*ret_count = 0;
	while (attrs && (r = wf_dir_next_word(&attrs, false, &w, &why)) != 0) {
		if (r < 0 || wf_dir_key_of(w.key) != WF_KEY_OWN || !w.value[0] || *ret_count == WF_DIR_ATTRS)
			return -EINVAL;
		n += wf_dir_attr_put(list + n, w.key, w.value);
		(*ret_count)++;
	}
	return (int)n;
}

int wf_dir_server_host(struct wf_dir_server *s, weft_id host, const char *name, const char *attrs)
{
	uint8_t list[sizeof(s->list)];
	struct wf_dir_wish w = { .list = list, .index = WF_DIR_NOWHERE, .member_index = WF_DIR_NOWHERE, .version = 1 };
	char own[WF_DIR_NAME + 1];
	int r = read_attrs(attrs, list, &w.count);

	if (r < 0 || !(host >> 32))
		return -EINVAL;
	if (wf_dir_entity(s, host))
		return -EEXIST;
	wf_dir_name_from(name, "host", own);
	return wf_dir_entity_set(s, NULL, host, WF_DIR_HOST, (struct wf_dir_text){ own, strlen(own) }, &w);
}

void wf_dir_server_host_gone(struct wf_dir_server *s, weft_id host)
{
	struct entity *e = wf_dir_entity(s, host);

	if (!e || e->kind != WF_DIR_HOST)
		return;
	while (!wf_list_empty(&e->clients))
		wf_dir_server_gone(s, wf_of(e->clients.next, struct client, on_host)->id);
	wf_dir_entity_gone(s, e);
}

/* Clients */

int wf_dir_server_join(struct wf_dir_server *s, weft_id process, weft_id host)
{
	struct entity *h = wf_dir_entity(s, host);
	struct client *c;

	if (!h || h->kind != WF_DIR_HOST)
		return -ESRCH;
	if (client_find(s, process))
		return -EEXIST;
	c = wf_dir_alloc(s, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->id = process;
	c->host = h;
	wf_list_init(&c->entities);
	wf_list_init(&c->watches);
	wf_list_init(&c->kept);
	wf_list_init(&c->kept_finds);
	wf_list_init(&c->later);
	wf_list_add(&h->clients, &c->on_host);
	wf_hash_add(&s->clients, &c->by, wf_hash_number(process));
	/* Who is heard of when all has been gathered may have waited for that as the others have. Of such a one nothing is known from before. */
	c->held = !s->gathering;
	if (s->epoch > 1)
		wf_dir_emit(s, c, &(struct wf_dir_msg){ .type = WF_DIR_MOVED, .epoch = s->epoch });
	if (s->epoch > 1 && !s->gathering)
		wf_dir_emit(s, c, &(struct wf_dir_msg){ .type = WF_DIR_READY, .epoch = s->epoch });
	return 0;
}

static void later_free(struct wf_dir_server *s, struct client *c, struct later *l)
{
	wf_list_del(&l->mine);
	c->bytes -= sizeof(*l) + l->len;
	wf_dir_free(s, l, sizeof(*l) + l->len);
}

/* Whatever it has published: the process last. */
static void forget_all(struct wf_dir_server *s, struct client *c)
{
	struct entity *self = c->self;

	while (!wf_list_empty(&c->later))
		later_free(s, c, wf_of(c->later.next, struct later, mine));
	if (self) {
		wf_list_del(&self->mine);
		wf_list_add(&c->entities, &self->mine);
	}
	while (!wf_list_empty(&c->entities))
		wf_dir_entity_gone(s, wf_of(c->entities.next, struct entity, mine));
}

void wf_dir_server_gone(struct wf_dir_server *s, weft_id process)
{
	struct client *c = client_find(s, process);

	if (!c)
		return;
	/* First that nothing is told to it any more. */
	wf_dir_watches_drop(s, c);
	wf_dir_kept_drop(s, c);
	forget_all(s, c);
	wf_list_del(&c->on_host);
	wf_hash_del(&s->clients, &c->by);
	wf_dir_free(s, c, sizeof(*c));
}

/* 0, or why @m is refused. */
static int may_set(const struct wf_dir_server *s, const struct client *c, const struct wf_dir_msg *m)
{
	const struct entity *e = wf_dir_entity(s, m->id);
	size_t cost = wf_dir_cost(m->name.n, m->list_bytes);
	bool renamed = e && (strlen(wf_dir_name(e)) != m->name.n || memcmp(wf_dir_name(e), m->name.at, m->name.n) != 0);

	if (m->id >> 32 != c->id >> 32 || !(m->id & UINT32_MAX) != (m->kind == WF_DIR_PROCESS))
		return -EPERM;
	if (e && (e->kind != m->kind || e->owner != c || (renamed && e->kind != WF_DIR_THREAD)))
		return -EPERM;
	if (!c->self && m->kind != WF_DIR_PROCESS)
		return -ESRCH;
	if (!e && c->entity_count == WF_DIR_MOST_ENTITIES)
		return -ENOBUFS;
	return c->bytes - (e ? e->cost : 0) + cost > WF_DIR_MOST_BYTES ? -ENOBUFS : 0;
}

static void refuse(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m, int err)
{
	struct wf_dir_msg no = { .type = WF_DIR_REFUSED, .id = m->id, .version = m->version, .err = err };

	wf_dir_emit(s, c, &no);
}

static void take_set(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct wf_dir_wish w = { .list = m->list, .count = m->count, .version = m->version, .index = WF_DIR_NOWHERE,
			      .member_index = WF_DIR_NOWHERE, .cost = wf_dir_cost(m->name.n, m->list_bytes) };
	int r = may_set(s, c, m);

	if (s->gathering) {             /* as it was before */
		w.index = m->index;
		w.member_index = m->member_index;
	}
	if (r == 0)
		r = wf_dir_entity_set(s, c, m->id, m->kind, m->name, &w);
	if (r < 0)
		refuse(s, c, m, r);
}

static void take_drop(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct entity *e = wf_dir_entity(s, m->id);

	if (e && e->owner == c && e != c->self)         /* a process leaves by wf_dir_server_gone */
		wf_dir_entity_gone(s, e);
}

/* Whatever it has asked or keeps is of before: it asks again. Of one that is here since all was gathered others may have heard: what it does not say again leaves
 * when it has said all. */
static void take_again(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	if (m->epoch != s->epoch)
		return;
	wf_dir_watches_drop(s, c);
	wf_dir_kept_drop(s, c);
	if (!c->held)
		forget_all(s, c);
	for (struct wf_node *n = c->entities.next; n != &c->entities; n = n->next)
		wf_of(n, struct entity, mine)->doubted = true;
}

static void take_held(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	if (m->epoch != s->epoch)
		return;
	c->held = true;
	if (c->self && c->self->doubted)
		forget_all(s, c);
	for (struct wf_node *n = c->entities.next, *next; n != &c->entities; n = next) {
		next = n->next;
		if (wf_of(n, struct entity, mine)->doubted)
			wf_dir_entity_gone(s, wf_of(n, struct entity, mine));
	}
}

/* Gathering */

static bool waits(const struct client *c, weft_id id)
{
	for (struct wf_node *n = c->later.next; n != &c->later; n = n->next)
		if (wf_of(n, struct later, mine)->id == id)
			return true;
	return false;
}

/* Who has no index yet waits for those who had one; and what is said of it after that waits, too. */
static bool comes_later(const struct wf_dir_server *s, const struct client *c, const struct wf_dir_msg *m)
{
	if (!s->gathering || (m->type != WF_DIR_SET && m->type != WF_DIR_DROP))
		return false;
	if (waits(c, m->id) || (!c->self && waits(c, c->id)))
		return true;
	return m->type == WF_DIR_SET && (m->index == WF_DIR_NOWHERE || (m->member_index == WF_DIR_NOWHERE && wf_dir_list_group(m).n));
}

/* It has a place under its parent, and none in its group yet: it takes the first at once, without the group. */
static void take_half(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct wf_dir_text group = wf_dir_list_group(m);
	struct wf_dir_msg half = *m;
	uint8_t list[sizeof(s->list)];
	size_t from, to;

	if (!group.n || m->type != WF_DIR_SET || m->index == WF_DIR_NOWHERE || wf_dir_entity(s, m->id) || (!c->self && m->kind != WF_DIR_PROCESS))
		return;
	from = (size_t)((const uint8_t *)group.at - m->list) - 7;       /* two lengths and "group" */
	to = from + 7 + group.n;
	memcpy(list, m->list, from);
	memcpy(list + from, m->list + to, m->list_bytes - to);
	half.list = list;
	half.list_bytes -= to - from;
	half.count--;
	take_set(s, c, &half);
}

static void keep_for_later(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m, const void *msg, size_t len)
{
	struct later *l = NULL;
	bool fits = c->bytes + len + sizeof(*l) <= WF_DIR_MOST_BYTES;

	take_half(s, c, m);
	if (fits)
		l = wf_dir_alloc(s, sizeof(*l) + len);
	if (!l) {
		refuse(s, c, m, fits ? -ENOMEM : -ENOBUFS);
		return;
	}
	l->len = len;
	l->id = m->id;
	memcpy(l->msg, msg, len);
	c->bytes += sizeof(*l) + len;
	wf_list_add(&c->later, &l->mine);
}

uint32_t wf_dir_server_missing(const struct wf_dir_server *s)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i <= s->clients.mask; i++)
		for (struct wf_hnode *x = s->clients.slots[i]; x; x = x->next)
			n += !wf_of(x, struct client, by)->held;
	return n;
}

static void take_laters(struct wf_dir_server *s, struct client *c)
{
	struct wf_dir_msg m;

	while (!wf_list_empty(&c->later)) {
		struct later *l = wf_of(c->later.next, struct later, mine);

		wf_dir_read(l->msg, l->len, false, &m);         /* it was sound when it came */
		if (m.type == WF_DIR_SET)
			take_set(s, c, &m);
		else
			take_drop(s, c, &m);
		later_free(s, c, l);
	}
}

void wf_dir_server_gathered(struct wf_dir_server *s)
{
	if (!s->gathering)
		return;
	for (int step = 0; step < 2; step++) {
		for (uint64_t i = 0; i <= s->clients.mask; i++)
			for (struct wf_hnode *x = s->clients.slots[i]; x; x = x->next) {
				struct client *c = wf_of(x, struct client, by);

				if (step == 0)
					take_laters(s, c);
				else
					wf_dir_emit(s, c, &(struct wf_dir_msg){ .type = WF_DIR_READY, .epoch = s->epoch });
			}
		s->gathering = false;
	}
}

/* While gathering nothing is looked up. */
static bool put_off(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct wf_dir_msg a = { .number = m->number, .err = -EAGAIN };

	if (!s->gathering)
		return false;
	if (m->type == WF_DIR_GET)
		a.type = WF_DIR_ENTITY;
	else if (m->type == WF_DIR_FIND)
		a.type = WF_DIR_FOUND;
	else if (m->type == WF_DIR_WATCH)
		a.type = WF_DIR_ENDED;
	else
		return false;
	wf_dir_emit(s, c, &a);
	return true;
}

int wf_dir_server_take(struct wf_dir_server *s, weft_id process, const void *msg, size_t len)
{
	struct client *c = client_find(s, process);
	struct wf_dir_msg m;

	if (!c)
		return -ESRCH;
	if (wf_dir_read(msg, len, false, &m) < 0)
		return -EBADMSG;
	if ((m.type == WF_DIR_FIND || m.type == WF_DIR_WATCH) && wf_dir_number_used(s, c, m.number))
		return -EBADMSG;
	if (comes_later(s, c, &m)) {
		keep_for_later(s, c, &m, msg, len);
		return 0;
	}
	if (put_off(s, c, &m))
		return 0;
	switch (m.type) {
	case WF_DIR_SET:
		take_set(s, c, &m);
		break;
	case WF_DIR_DROP:
		take_drop(s, c, &m);
		break;
	case WF_DIR_GET:
		wf_dir_take_get(s, c, &m);
		break;
	case WF_DIR_FIND:
		wf_dir_take_find(s, c, &m);
		break;
	case WF_DIR_WATCH:
		wf_dir_take_watch(s, c, &m);
		break;
	case WF_DIR_CANCEL:
		wf_dir_take_cancel(s, c, m.number);
		break;
	case WF_DIR_AGAIN:
		take_again(s, c, &m);
		break;
	case WF_DIR_HELD:
		take_held(s, c, &m);
		break;
	default:
		break;
	}
	return 0;
}

/* Beside the server */

int wf_dir_server_each(struct wf_dir_server *s, const char *query, void (*fn)(void *arg, weft_id id), void *arg, const char **ret_why)
{
	struct wf_dir_query *q;
	struct found f;
	const char *why = NULL;
	int r;

	if (s->gathering)
		return -EAGAIN;
	q = wf_dir_query_new(query, &r, &why);
	if (ret_why)
		*ret_why = why;
	if (!q)
		return r;
	r = wf_dir_find(s, q, &f);
	free(q);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f.n; i++)
		fn(arg, f.all[i].id);
	r = (int)f.n;
	free(f.all);
	return r;
}

int wf_dir_server_get(struct wf_dir_server *s, weft_id id, const char *key, char *ret_text, size_t n)
{
	const struct entity *e = wf_dir_entity(s, id);
	struct wf_dir_msg m;

	if (!e)
		return -ESRCH;
	wf_dir_show(s, e, &m);
	return wf_dir_describe(&m, key, ret_text, n);
}

struct wf_dir_figures wf_dir_server_figures(struct wf_dir_server *s)
{
	struct wf_dir_figures f = { .clients = s->clients.count, .entities = s->entities.count, .tags = s->tags.count,
				    .watches = s->watches.count, .kept = s->kept.count, .bytes = s->bytes };
	const struct wf_hash *h;

	for (unsigned i = 0; (h = tables(s, i)) != NULL; i++)
		f.bytes += (h->mask + 1) * sizeof(*h->slots);
	return f;
}
