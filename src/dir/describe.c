/* describe.c - see describe.h. */
#include "dir/describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void set(char *value, size_t room, struct wf_dir_text t)
{
	size_t n = t.n < room ? t.n : room - 1;

	memcpy(value, t.at, n);
	value[n] = 0;
}

/* What every entity has. False: this one has not. */
static bool built_in(const struct wf_dir_msg *m, enum wf_dir_key key, char value[WF_DIR_PATH + 1])
{
	struct wf_dir_writer w = { .text = value, .room = WF_DIR_PATH + 1 };
	char name[WF_DIR_NAME + 1];

	value[0] = 0;
	switch (key) {
	case WF_KEY_KIND:
		strcpy(value, wf_dir_kind_name(m->kind));
		break;
	case WF_KEY_NAME:
		set(value, WF_DIR_PATH, m->name);
		break;
	case WF_KEY_INDEX:
		snprintf(value, WF_DIR_PATH, "%u", m->index);
		break;
	case WF_KEY_PARENT:
		if (m->parent)
			wf_dir_id_print(m->parent, value);
		break;
	case WF_KEY_HOST:
		set(value, WF_DIR_PATH, m->host);
		break;
	case WF_KEY_ID:
		wf_dir_id_print(m->id, value);
		break;
	case WF_KEY_PATH:
		set(value, WF_DIR_PATH + 1, m->path);
		break;
	case WF_KEY_GROUP:
		set(value, WF_DIR_PATH, m->group);
		break;
	case WF_KEY_MEMBER:
		if (!m->group.n)
			break;
		set(name, sizeof(name), m->name);
		wf_dir_write(&w, m->group.at, m->group.n);
		wf_dir_write_step(&w, name, m->member_index);
		wf_dir_write_end(&w);
		break;
	default:
		break;
	}
	return value[0] != 0;
}

static void attr_texts(const struct wf_dir_attr *a, char key[WF_DIR_KEY + 1], char value[WF_DIR_VALUE + 1])
{
	set(key, WF_DIR_KEY + 1, a->key);
	set(value, WF_DIR_VALUE + 1, a->value);
}

static void all(const struct wf_dir_msg *m, struct wf_dir_writer *w)
{
	char own[WF_DIR_KEY + 1], value[WF_DIR_PATH + 1];
	const uint8_t *at = m->list;
	struct wf_dir_attr a;

	for (unsigned key = 1; key < WF_KEYS; key++)
		if (built_in(m, (enum wf_dir_key)key, value))
			wf_dir_write_word(w, wf_dir_key_name((enum wf_dir_key)key), value);
	for (uint32_t i = 0; i < m->count; i++) {
		wf_dir_attr_next(&at, &a);
		attr_texts(&a, own, value);
		wf_dir_write_word(w, own, value);
	}
}

static bool one(const struct wf_dir_msg *m, const char *key, struct wf_dir_writer *w)
{
	enum wf_dir_key what = wf_dir_key_of(key);
	char value[WF_DIR_PATH + 1];
	const uint8_t *at = m->list;
	struct wf_dir_attr a;

	if (what != WF_KEY_OWN) {
		if (!built_in(m, what, value))
			return false;
		wf_dir_write(w, value, strlen(value));
		return true;
	}
	for (uint32_t i = 0; i < m->count; i++) {
		wf_dir_attr_next(&at, &a);
		if (a.key.n == strlen(key) && memcmp(a.key.at, key, a.key.n) == 0) {
			wf_dir_write(w, a.value.at, a.value.n);
			return true;
		}
	}
	return false;
}

int wf_dir_describe(const struct wf_dir_msg *m, const char *key, char *ret_text, size_t n)
{
	struct wf_dir_writer w = { .text = ret_text, .room = n };

	if (!key)
		all(m, &w);
	else if (!one(m, key, &w))
		return -ENOENT;
	return (int)wf_dir_write_end(&w);
}
