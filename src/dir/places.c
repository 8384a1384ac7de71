/* places.c - where entities are: under a parent and in a group, by name and index. See inner.h. */
#include <errno.h>
#include <string.h>

#include "dir/inner.h"

static uint64_t family_hash(const void *domain, const char *name)
{
	return wf_hash_bytes((uintptr_t)domain, name, strlen(name));
}

static struct family *family_find(const struct wf_dir_server *s, const void *domain, const char *name)
{
	uint64_t hash = family_hash(domain, name);

	for (struct wf_hnode *n = wf_hash_first(&s->families, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct family *f = wf_of(n, struct family, by);

		if (f->domain == domain && strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

static struct family *family_get(struct wf_dir_server *s, const void *domain, const char *name)
{
	struct family *f = family_find(s, domain, name);

	if (f)
		return f;
	f = wf_dir_alloc(s, sizeof(*f) + strlen(name) + 1);
	if (!f)
		return NULL;
	f->domain = domain;
	strcpy(f->name, name);
	wf_hash_add(&s->families, &f->by, family_hash(domain, name));
	return f;
}

static uint64_t place_hash(const struct family *f, uint32_t index)
{
	return wf_hash_number((uintptr_t)f ^ (uint64_t)index << 40);
}

static struct place *place_at(const struct wf_dir_server *s, const struct family *f, uint32_t index)
{
	uint64_t hash = place_hash(f, index);

	for (struct wf_hnode *n = wf_hash_first(&s->places, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct place *p = wf_of(n, struct place, by);

		if (p->family == f && p->index == index)
			return p;
	}
	return NULL;
}

void wf_dir_place_leave(struct wf_dir_server *s, struct place *p)
{
	struct family *f = p->family;

	if (!f)
		return;
	wf_hash_del(&s->places, &p->by);
	p->family = NULL;
	if (p->index < f->low)
		f->low = p->index;
	if (--f->count)
		return;
	wf_hash_del(&s->families, &f->by);
	wf_dir_free(s, f, sizeof(*f) + strlen(f->name) + 1);
}

int wf_dir_place_take(struct wf_dir_server *s, struct place *p, const void *domain, const char *name, uint32_t wish)
{
	struct family *f = family_get(s, domain, name);
	uint32_t index = wish;

	if (!f)
		return -ENOMEM;
	if (p->family == f)
		return 0;
	wf_dir_place_leave(s, p);
	if (wish == WF_DIR_NOWHERE || place_at(s, f, wish)) {
		while (place_at(s, f, f->low))
			f->low++;
		index = f->low++;
	}
	p->family = f;
	p->index = index;
	f->count++;
	wf_hash_add(&s->places, &p->by, place_hash(f, index));
	return 0;
}

struct entity *wf_dir_place_find(const struct wf_dir_server *s, const void *domain, const char *name, uint32_t index)
{
	struct family *f = family_find(s, domain, name);
	struct place *p = f ? place_at(s, f, index) : NULL;

	if (!p)
		return NULL;
	return p->member ? wf_of(p, struct entity, in) : wf_of(p, struct entity, under);
}

struct entity *wf_dir_group_find(const struct wf_dir_server *s, const char *path, size_t n)
{
	uint64_t hash = wf_hash_bytes(2, path, n);

	for (struct wf_hnode *x = wf_hash_first(&s->groups, hash); x; x = wf_hash_skip(x->next, hash)) {
		struct entity *e = wf_of(x, struct entity, by_path);

		if (strncmp(e->path, path, n) == 0 && !e->path[n])
			return e;
	}
	return NULL;
}

void wf_dir_path(const struct entity *e, struct wf_dir_writer *w)
{
	const struct entity *up[WF_DIR_PARTS];
	int n = 0;

	if (e->kind == WF_DIR_GROUPS) {
		wf_dir_write(w, e->path, strlen(e->path));
		return;
	}
	for (; e && n < WF_DIR_PARTS; e = e->parent)
		up[n++] = e;
	while (n--)
		wf_dir_write_step(w, wf_dir_name(up[n]), up[n]->under.index);
}
