/* keep.c - what clients are told of one entity, and may keep until they are told that it has changed. See inner.h. */
#include <errno.h>
#include <string.h>

#include "dir/inner.h"

static uint64_t kept_hash(const struct client *c, const struct entity *e)
{
	return wf_hash_mix(wf_hash_number(c->id), e->id);
}

static bool is_kept(const struct wf_dir_server *s, const struct client *c, const struct entity *e)
{
	uint64_t hash = kept_hash(c, e);

	for (struct wf_hnode *n = wf_hash_first(&s->kept, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct kept *k = wf_of(n, struct kept, by);

		if (k->c == c && k->e == e)
			return true;
	}
	return false;
}

static void kept_free(struct wf_dir_server *s, struct kept *k)
{
	wf_hash_del(&s->kept, &k->by);
	wf_list_del(&k->of_entity);
	wf_list_del(&k->of_client);
	k->c->kept_count--;
	wf_dir_free(s, k, sizeof(*k));
}

static void call_back_one(struct wf_dir_server *s, struct kept *k)
{
	struct wf_dir_msg m = { .type = WF_DIR_INVALID, .id = k->e->id };

	wf_dir_emit(s, k->c, &m);
	kept_free(s, k);
}

/* False: no memory to remember it. */
static bool keep(struct wf_dir_server *s, struct client *c, struct entity *e)
{
	struct kept *k;

	if (is_kept(s, c, e))
		return true;
	if (c->kept_count == WF_DIR_MOST_KEPT)
		call_back_one(s, wf_of(c->kept.next, struct kept, of_client));
	k = wf_dir_alloc(s, sizeof(*k));
	if (!k)
		return false;
	k->c = c;
	k->e = e;
	wf_hash_add(&s->kept, &k->by, kept_hash(c, e));
	wf_list_add(&e->kept, &k->of_entity);
	wf_list_add(&c->kept, &k->of_client);
	c->kept_count++;
	return true;
}

static struct wf_dir_text text_of(const char *text)
{
	return text ? (struct wf_dir_text){ text, strlen(text) } : (struct wf_dir_text){ "", 0 };
}

void wf_dir_show(struct wf_dir_server *s, const struct entity *e, struct wf_dir_msg *ret_msg)
{
	struct wf_dir_writer w = { .text = s->path, .room = sizeof(s->path) };
	struct wf_dir_msg m = { .type = WF_DIR_ENTITY, .id = e->id, .parent = e->parent ? e->parent->id : 0, .version = e->version,
				.kind = e->kind, .index = e->under.index, .list = s->list,
				.member_index = e->group ? e->in.index : WF_DIR_NOWHERE };

	m.name = text_of(wf_dir_name(e));
	m.host = text_of(wf_dir_value(e, "host"));
	m.group = text_of(e->group ? e->group->path : NULL);
	wf_dir_path(e, &w);
	m.path = (struct wf_dir_text){ s->path, wf_dir_write_end(&w) };
	for (uint32_t i = 0; i < e->nlinks; i++) {
		const struct tag *t = e->links[i].tag;

		if (wf_dir_key_of(t->text) != WF_KEY_OWN)
			continue;
		m.list_bytes += wf_dir_attr_put(s->list + m.list_bytes, t->text, t->value);
		m.count++;
	}
	*ret_msg = m;
}

void wf_dir_take_get(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m)
{
	struct wf_dir_msg a = { .type = WF_DIR_ENTITY, .err = -ESRCH };
	struct entity *e = wf_dir_entity(s, m->id);

	if (e) {
		wf_dir_show(s, e, &a);
		a.flags = keep(s, c, e) ? WF_DIR_KEEP : 0;
	}
	a.number = m->number;
	wf_dir_emit(s, c, &a);
}

void wf_dir_call_back(struct wf_dir_server *s, struct entity *e)
{
	while (!wf_list_empty(&e->kept))
		call_back_one(s, wf_of(e->kept.next, struct kept, of_entity));
}

void wf_dir_kept_drop(struct wf_dir_server *s, struct client *c)
{
	while (!wf_list_empty(&c->kept))
		kept_free(s, wf_of(c->kept.next, struct kept, of_client));
}
