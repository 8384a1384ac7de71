/* tags.c - (key, value) pairs, each kept once, with the list of who has it. See inner.h. */
#include <string.h>

#include "dir/inner.h"

static uint64_t hash_of(const char *key, size_t key_n, const char *value, size_t value_n)
{
	return wf_hash_bytes(wf_hash_bytes(1, key, key_n), value, value_n);
}

static struct tag *find(const struct wf_dir_server *s, uint64_t hash, const char *key, size_t key_n, const char *value, size_t value_n)
{
	for (struct wf_hnode *n = wf_hash_first(&s->tags, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct tag *t = wf_of(n, struct tag, by);

		if (t->bytes == sizeof(*t) + key_n + value_n + 2 && memcmp(t->text, key, key_n) == 0 && !t->text[key_n] &&
		    memcmp(t->value, value, value_n) == 0)
			return t;
	}
	return NULL;
}

struct tag *wf_dir_tag_find(const struct wf_dir_server *s, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value);

	return find(s, hash_of(key, k, value, v), key, k, value, v);
}

struct tag *wf_dir_tag_get(struct wf_dir_server *s, const char *key, size_t key_n, const char *value, size_t value_n)
{
	uint64_t hash = hash_of(key, key_n, value, value_n);
	struct tag *t = find(s, hash, key, key_n, value, value_n);
	size_t bytes = sizeof(*t) + key_n + value_n + 2;

	if (t) {
		t->refs++;
		return t;
	}
	t = wf_dir_alloc(s, bytes);
	if (!t)
		return NULL;
	memcpy(t->text, key, key_n);
	memcpy(t->text + key_n + 1, value, value_n);
	t->value = t->text + key_n + 1;
	t->bytes = bytes;
	t->refs = 1;
	wf_list_init(&t->links);
	wf_list_init(&t->watches);
	wf_hash_add(&s->tags, &t->by, hash);
	return t;
}

void wf_dir_tag_put(struct wf_dir_server *s, struct tag *t)
{
	if (--t->refs)
		return;
	wf_hash_del(&s->tags, &t->by);
	wf_dir_free(s, t, t->bytes);
}

void wf_dir_links_join(struct entity *e)
{
	for (uint32_t i = 0; i < e->nlinks; i++) {
		struct link *l = &e->links[i];

		l->of = e;
		wf_list_add(&l->tag->links, &l->in);
		l->tag->count++;
	}
}

/* Also of links that have not joined: a change that did not come about. */
void wf_dir_links_leave(struct wf_dir_server *s, struct entity *e)
{
	for (uint32_t i = 0; i < e->nlinks; i++) {
		struct link *l = &e->links[i];

		if (wf_list_has(&l->in)) {
			wf_list_del(&l->in);
			l->tag->count--;
		}
		wf_dir_tag_put(s, l->tag);
	}
	wf_dir_free(s, e->links, e->nlinks * sizeof(*e->links));
	e->links = NULL;
	e->nlinks = 0;
}

const char *wf_dir_value(const struct entity *e, const char *key)
{
	for (uint32_t i = 0; i < e->nlinks; i++)
		if (strcmp(e->links[i].tag->text, key) == 0)
			return e->links[i].tag->value;
	return NULL;
}
