/* find.c - who matches a query: the rarest thing it names is looked up, and whoever has it is looked at. See inner.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dir/inner.h"

static bool holds(const struct wf_dir_term *t, const char *value)
{
	if (t->plain)
		return t->value[0] ? value && strcmp(value, t->value) == 0 : !value;
	return value && wf_glob(t->value, value);
}

static bool term_holds(const struct wf_dir_term *t, const struct entity *e)
{
	char number[WEFT_ID_TEXT];

	switch (t->what) {
	case WF_KEY_ID:
		wf_dir_id_print(e->id, number);
		return holds(t, number);
	case WF_KEY_INDEX:
		snprintf(number, sizeof(number), "%u", e->under.index);
		return holds(t, number);
	case WF_KEY_PATH:               /* path= and member= with a text are the query's path: here they are empty */
		return false;
	case WF_KEY_MEMBER:
		return !e->group;
	default:
		return holds(t, wf_dir_value(e, t->key));
	}
}

static bool step_holds(const struct wf_dir_part *p, const char *name, uint32_t index)
{
	if (p->index != WF_DIR_INDEX_ANY && p->index != index)
		return false;
	return p->plain ? strcmp(p->name, name) == 0 : wf_glob(p->name, name);
}

/* The first @n parts are the path of a group. */
static bool group_holds(const struct wf_dir_query *q, uint32_t n, const char *path)
{
	char name[WF_DIR_NAME + 1];
	uint32_t i = 0;

	for (; *path; i++) {
		size_t len = strcspn(path + 1, "/");

		memcpy(name, path + 1, len);
		name[len] = 0;
		if (i == n || !step_holds(&q->part[i], name, 0))
			return false;
		path += len + 1;
	}
	return i == n;
}

static bool member_holds(const struct wf_dir_query *q, const struct entity *e)
{
	return e->group && step_holds(&q->part[q->parts - 1], wf_dir_name(e), e->in.index) && group_holds(q, q->parts - 1, e->group->path);
}

static bool path_holds(const struct wf_dir_query *q, const struct entity *e)
{
	uint32_t i = q->parts;

	if (e->kind == WF_DIR_GROUPS)
		return group_holds(q, q->parts, e->path);
	for (; i && e; e = e->parent)
		if (!step_holds(&q->part[--i], wf_dir_name(e), e->under.index))
			return false;
	return !i && !e;
}

bool wf_dir_matches(const struct wf_dir_query *q, const struct entity *e)
{
	if (q->id && q->id != e->id)
		return false;
	for (uint32_t i = 0; i < q->terms; i++)
		if (!term_holds(&q->term[i], e))
			return false;
	return !q->parts || member_holds(q, e) || (!q->members_only && path_holds(q, e));
}

/* Where to look */

struct search {
	struct wf_dir_server *s;
	const struct wf_dir_query *q;
	struct found *found;
	bool full;                      /* no memory */
};

static void look_at(struct search *x, const struct entity *e)
{
	struct found *f = x->found;

	if (!e || !wf_dir_matches(x->q, e))
		return;
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 64;
		struct found_one *all = realloc(f->all, room * sizeof(*all));

		if (!all) {
			x->full = true;
			return;
		}
		f->all = all;
		f->room = room;
	}
	f->all[f->n++] = (struct found_one){ .id = e->id, .version = e->version, .order = x->q->group || (x->q->parts && member_holds(x->q, e)) ?
		e->in.index : x->q->parts ? e->under.index : 0 };
}

static void look_at_all(struct search *x, const struct tag *t)
{
	if (!t)
		return;
	for (struct wf_node *n = t->links.next; n != &t->links && !x->full; n = n->next)
		look_at(x, wf_of(n, struct link, in)->of);
}

static bool is_tag(enum wf_dir_key what)
{
	return what != WF_KEY_ID && what != WF_KEY_INDEX && what != WF_KEY_PATH && what != WF_KEY_MEMBER;
}

/* The rarest tag that all must have; NULL: there is none such, or (*@ret_nobody) nobody has it. */
static struct tag *rarest(struct search *x, bool *ret_nobody)
{
	const struct wf_dir_query *q = x->q;
	struct tag *best = NULL, *t;

	*ret_nobody = false;
	for (uint32_t i = 0; i <= q->terms; i++) {
		if (i < q->terms && (!q->term[i].plain || !q->term[i].value[0] || !is_tag(q->term[i].what)))
			continue;
		if (i == q->terms && (!q->parts || !q->part[q->parts - 1].plain))
			continue;
		t = i < q->terms ? wf_dir_tag_find(x->s, q->term[i].key, q->term[i].value) : wf_dir_tag_find(x->s, "name", q->part[q->parts - 1].name);
		*ret_nobody |= !t || !t->count;
		if (t && (!best || t->count < best->count))
			best = t;
	}
	return *ret_nobody ? NULL : best;
}

/* What the parts before the last name: as a place in the tree, and as a group's path. */
struct domain {
	const struct entity *parent;
	char group[WF_DIR_GROUP + 1];   /* "": cannot be one */
	bool known;                     /* they have no signs */
};

static struct domain domain_of(struct search *x, uint32_t parts)
{
	struct wf_dir_writer w;
	struct domain d = { .known = true };
	const void *domain = x->s;

	w = (struct wf_dir_writer){ .text = d.group, .room = sizeof(d.group) };
	for (uint32_t i = 0; i < parts; i++) {
		const struct wf_dir_part *p = &x->q->part[i];

		if (!p->plain || p->index == WF_DIR_INDEX_ANY) {
			d.known = false;
			return d;
		}
		wf_dir_write_step(&w, p->name, p->index);
		d.parent = domain ? wf_dir_place_find(x->s, domain, p->name, p->index) : NULL;
		domain = d.parent;
	}
	if (wf_dir_write_end(&w) >= sizeof(d.group))
		d.group[0] = 0;
	return d;
}

/* A path without signs: at most three can be meant. */
static bool look_by_path(struct search *x)
{
	const struct wf_dir_query *q = x->q;
	struct domain whole = domain_of(x, q->parts), up;
	const struct wf_dir_part *last = &q->part[q->parts - 1];
	const struct entity *g;

	if (!whole.known)
		return false;
	up = domain_of(x, q->parts - 1);
	look_at(x, whole.parent);
	if (whole.group[0])
		look_at(x, wf_dir_group_find(x->s, whole.group, strlen(whole.group)));
	g = up.group[0] ? wf_dir_group_find(x->s, up.group, strlen(up.group)) : NULL;
	if (g)
		look_at(x, wf_dir_place_find(x->s, g, last->name, last->index));
	return true;
}

/* A path whose last part alone has signs: the children of one, and the members of one. */
static bool look_below(struct search *x, const struct tag *best)
{
	struct domain up = domain_of(x, x->q->parts - 1);
	struct tag *members = NULL, *children = NULL;
	char id[WEFT_ID_TEXT];

	if (!up.known)
		return false;
	if (x->q->parts == 1) {
		children = wf_dir_tag_find(x->s, "kind", "host");
		members = wf_dir_tag_find(x->s, "kind", "group");
	} else {
		if (up.parent) {
			wf_dir_id_print(up.parent->id, id);
			children = wf_dir_tag_find(x->s, "parent", id);
		}
		members = up.group[0] ? wf_dir_tag_find(x->s, "group", up.group) : NULL;
	}
	if (best && best->count <= (members ? members->count : 0) + (children ? children->count : 0))
		return false;
	look_at_all(x, members);
	look_at_all(x, children);
	/* Groups below it lie in no list. */
	look_at_all(x, x->q->parts > 1 ? wf_dir_tag_find(x->s, "kind", "group") : NULL);
	return true;
}

static void look(struct search *x)
{
	struct tag *best;
	bool nobody;

	if (x->q->id) {
		look_at(x, wf_dir_entity(x->s, x->q->id));
		return;
	}
	best = rarest(x, &nobody);
	if (nobody || (x->q->parts && (look_by_path(x) || look_below(x, best))))
		return;
	if (best) {
		look_at_all(x, best);
		return;
	}
	for (unsigned kind = WF_DIR_HOST; kind < WF_DIR_KINDS; kind++)
		look_at_all(x, wf_dir_tag_find(x->s, "kind", wf_dir_kind_name(kind)));
}

static int by_order(const void *a, const void *b)
{
	const struct found_one *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int wf_dir_find(struct wf_dir_server *s, const struct wf_dir_query *q, struct found *ret_found)
{
	struct found f = { .all = NULL };
	struct search x = { .s = s, .q = q, .found = &f };
	size_t n = 0;

	look(&x);
	if (x.full) {
		free(f.all);
		return -ENOMEM;
	}
	if (f.n > 1)
		qsort(f.all, f.n, sizeof(*f.all), by_order);
	for (size_t i = 0; i < f.n; i++)        /* one may have been met in two lists */
		if (!n || f.all[n - 1].id != f.all[i].id)
			f.all[n++] = f.all[i];
	f.n = n;
	*ret_found = f;
	return 0;
}
