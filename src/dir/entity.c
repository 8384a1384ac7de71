/* entity.c - entities come, change and leave; groups with their first and last member. See inner.h. */
#include <errno.h>
#include <string.h>

#include "dir/inner.h"

struct links {
	struct link *all;
	uint32_t n, room;
};

static bool link_add(struct wf_dir_server *s, struct links *l, const char *key, size_t key_n, const char *value, size_t value_n)
{
	struct tag *t = wf_dir_tag_get(s, key, key_n, value, value_n);

	if (!t)
		return false;
	l->all[l->n++].tag = t;
	return true;
}

static bool link_key(struct wf_dir_server *s, struct links *l, enum wf_dir_key key, const char *value)
{
	return link_add(s, l, wf_dir_key_name(key), strlen(wf_dir_key_name(key)), value, strlen(value));
}

/* Undo: an entity that has only these. */
static void links_free(struct wf_dir_server *s, struct links *l)
{
	struct entity none = { .links = l->all, .nlinks = (uint16_t)l->n };

	wf_dir_links_leave(s, &none);
	s->bytes -= (l->room - l->n) * sizeof(struct link);
}

/* What an entity says of itself, as tags. @host, @parent: NULL where it has none. */
static int links_make(struct wf_dir_server *s, struct links *l, unsigned kind, struct wf_dir_text name, const char *host,
		      const struct entity *parent, const struct wf_dir_wish *w)
{
	const uint8_t *at = w->list;
	struct wf_dir_attr a;
	char id[WEFT_ID_TEXT];
	bool ok;

	*l = (struct links){ .room = 2 + (host != NULL) + (parent != NULL) + w->count };
	l->all = wf_dir_alloc(s, l->room * sizeof(*l->all));
	if (!l->all)
		return -ENOMEM;
	ok = link_key(s, l, WF_KEY_KIND, wf_dir_kind_name(kind)) && link_add(s, l, "name", 4, name.at, name.n);
	if (host)
		ok = ok && link_key(s, l, WF_KEY_HOST, host);
	if (parent) {
		wf_dir_id_print(parent->id, id);
		ok = ok && link_key(s, l, WF_KEY_PARENT, id);
	}
	for (uint32_t i = 0; i < w->count && ok; i++) {
		wf_dir_attr_next(&at, &a);
		ok = link_add(s, l, a.key.at, a.key.n, a.value.at, a.value.n);
	}
	if (ok)
		return 0;
	links_free(s, l);
	return -ENOMEM;
}

/* Groups */

/* The same in every server: hosts that take over give it again. No process has number 0. */
static weft_id group_id(const struct wf_dir_server *s, const char *path)
{
	uint32_t id = 2166136261u;

	for (; *path; path++)
		id = (id ^ (unsigned char)*path) * 16777619u;
	while (!id || wf_dir_entity(s, id))
		id++;
	return id;
}

static struct entity *group_get(struct wf_dir_server *s, const char *path)
{
	static const struct wf_dir_wish none;
	struct wf_dir_text name = { strrchr(path, '/') + 1, 0 };
	struct entity *g = wf_dir_group_find(s, path, strlen(path));
	struct links l;

	if (g)
		return g;
	g = wf_dir_alloc(s, sizeof(*g) + strlen(path) + 1);
	if (!g)
		return NULL;
	name.n = strlen(name.at);
	if (links_make(s, &l, WF_DIR_GROUPS, name, NULL, NULL, &none) < 0) {
		wf_dir_free(s, g, sizeof(*g) + strlen(path) + 1);
		return NULL;
	}
	strcpy(g->path, path);
	g->kind = WF_DIR_GROUPS;
	g->id = group_id(s, path);
	g->links = l.all;
	g->nlinks = (uint16_t)l.n;
	wf_list_init(&g->kept);
	wf_dir_touch_begin(s);
	wf_dir_touch(s, g->links, g->nlinks);
	wf_dir_touch_before(s, NULL);
	wf_dir_links_join(g);
	wf_hash_add(&s->entities, &g->by_id, wf_hash_number(g->id));
	wf_hash_add(&s->groups, &g->by_path, wf_hash_bytes(2, path, strlen(path)));
	wf_dir_touch_after(s, g, true);
	return g;
}

static void group_put(struct wf_dir_server *s, struct entity *g)
{
	if (g && !g->members)
		wf_dir_entity_gone(s, g);
}

static void group_leave(struct wf_dir_server *s, struct entity *e)
{
	struct entity *g = e->group;

	if (!g)
		return;
	e->group = NULL;
	g->members--;
	group_put(s, g);
}

/* Coming and changing */

static struct entity *entity_new(struct wf_dir_server *s, struct client *owner, weft_id id, unsigned kind)
{
	struct entity *e = wf_dir_alloc(s, sizeof(*e));

	if (!e)
		return NULL;
	e->id = id;
	e->kind = (uint8_t)kind;
	e->owner = owner;
	e->parent = !owner ? NULL : kind == WF_DIR_PROCESS ? owner->host : owner->self;
	e->in.member = true;
	wf_list_init(&e->kept);
	wf_list_init(&e->clients);
	wf_list_add(owner ? &owner->entities : &s->hosts, &e->mine);
	wf_hash_add(&s->entities, &e->by_id, wf_hash_number(id));
	if (owner)
		owner->entity_count++;
	if (kind == WF_DIR_PROCESS)
		owner->self = e;
	return e;
}

/* Out of every table; its links and places are gone already. */
static void entity_free(struct wf_dir_server *s, struct entity *e)
{
	wf_hash_del(&s->entities, &e->by_id);
	if (e->kind == WF_DIR_GROUPS) {
		wf_hash_del(&s->groups, &e->by_path);
		wf_dir_free(s, e, sizeof(*e) + strlen(e->path) + 1);
		return;
	}
	wf_list_del(&e->mine);
	if (e->owner) {
		e->owner->entity_count--;
		e->owner->bytes -= e->cost;
		if (e->owner->self == e)
			e->owner->self = NULL;
	}
	wf_dir_free(s, e, sizeof(*e));
}

/* Its places. *@ret_moved: they are others now. */
static int settle(struct wf_dir_server *s, struct entity *e, struct entity *group, const struct wf_dir_wish *w, bool *ret_moved)
{
	const struct family *under = e->under.family, *in = e->in.family;
	int r = wf_dir_place_take(s, &e->under, e->parent ? (const void *)e->parent : s, wf_dir_name(e), w->index);

	if (r == 0 && group)
		r = wf_dir_place_take(s, &e->in, group, wf_dir_name(e), w->member_index);
	else
		wf_dir_place_leave(s, &e->in);
	*ret_moved = under != e->under.family || in != e->in.family;
	return r;
}

static void tell_place(struct wf_dir_server *s, const struct entity *e)
{
	struct wf_dir_msg m = { .type = WF_DIR_PLACED, .id = e->id, .version = e->version, .index = e->under.index,
				.member_index = e->group ? e->in.index : WF_DIR_NOWHERE };

	if (e->owner)
		wf_dir_emit(s, e->owner, &m);
}

static const char *group_of(const struct links *l)
{
	for (uint32_t i = 2; i < l->n; i++)
		if (strcmp(l->all[i].tag->text, "group") == 0)
			return l->all[i].tag->value;
	return NULL;
}

/* @e, new or not, becomes what @l says. */
static int change(struct wf_dir_server *s, struct entity *e, bool is_new, struct links *l, struct entity *group, const struct wf_dir_wish *w)
{
	struct entity *left = e->group;
	struct entity old = { .links = e->links, .nlinks = e->nlinks };
	bool moved;
	int r;

	wf_dir_touch_begin(s);
	wf_dir_touch(s, e->links, e->nlinks);
	wf_dir_touch(s, l->all, l->n);
	wf_dir_touch_before(s, is_new ? NULL : e);
	e->links = l->all;
	e->nlinks = (uint16_t)l->n;
	wf_dir_links_join(e);
	wf_dir_links_leave(s, &old);
	r = settle(s, e, group, w, &moved);
	if (group && group != left)
		group->members++;
	if (left && group != left)
		left->members--;
	e->group = group;
	e->doubted = false;
	e->version = w->version;
	if (e->owner)
		e->owner->bytes += w->cost - e->cost;
	e->cost = w->cost;
	wf_dir_touch_after(s, e, true);
	wf_dir_call_back(s, e);
	if (r == 0 && moved)
		tell_place(s, e);
	if (r < 0)
		wf_dir_entity_gone(s, e);          /* it has no place, so it cannot stay */
	group_put(s, left != group ? left : NULL);
	return r;
}

int wf_dir_entity_set(struct wf_dir_server *s, struct client *owner, weft_id id, unsigned kind, struct wf_dir_text name, const struct wf_dir_wish *w)
{
	struct entity *e = wf_dir_entity(s, id), *group = NULL;
	bool is_new = !e;
	const struct entity *parent = !owner ? NULL : kind == WF_DIR_PROCESS ? owner->host : owner->self;
	char own[WF_DIR_NAME + 1];
	const char *path, *host = own;
	struct links l;
	int r;

	memcpy(own, name.at, name.n);
	own[name.n] = 0;
	if (owner)
		host = wf_dir_name(owner->host);
	r = links_make(s, &l, kind, name, host, parent, w);
	if (r < 0)
		return r;
	path = group_of(&l);
	if (path && !(group = group_get(s, path))) {
		links_free(s, &l);
		return -ENOMEM;
	}
	if (is_new && !(e = entity_new(s, owner, id, kind))) {
		links_free(s, &l);
		group_put(s, group);
		return -ENOMEM;
	}
	return change(s, e, is_new, &l, group, w);
}

void wf_dir_entity_gone(struct wf_dir_server *s, struct entity *e)
{
	wf_dir_touch_begin(s);
	wf_dir_touch(s, e->links, e->nlinks);
	wf_dir_touch_before(s, e);
	wf_dir_call_back(s, e);
	wf_dir_place_leave(s, &e->under);
	wf_dir_place_leave(s, &e->in);
	wf_dir_links_leave(s, e);
	wf_dir_touch_after(s, e, false);
	group_leave(s, e);
	entity_free(s, e);
}
