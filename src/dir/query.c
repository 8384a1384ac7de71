/* query.c - see query.h. The texts of a query are copied behind it, one after the other. */
#include "dir/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct draft {
	struct wf_dir_query *q;
	size_t used, room;              /* of q->text */
	const char *why;
};

static const char *keep(struct draft *d, const char *text, size_t n)
{
	char *place = d->q->text + d->used;

	if (n + 1 > d->room - d->used)
		return NULL;            /* cannot be: what is kept is no longer than what was read */
	memcpy(place, text, n);
	place[n] = 0;
	d->used += n + 1;
	return place;
}

static bool wrong(struct draft *d, const char *why)
{
	if (!d->why)
		d->why = why;
	return false;
}

/* The index at the end of a part: [3] or [*]. Answers how many bytes it has. */
static size_t index_at_end(const char *part, size_t n, uint32_t *ret_index)
{
	size_t at = n;
	uint64_t v = 0;

	if (n < 3 || part[n - 1] != ']')
		return 0;
	if (part[n - 2] == '*' && part[n - 3] == '[') {
		*ret_index = WF_DIR_INDEX_ANY;
		return 3;
	}
	for (at = n - 1; at > 0 && part[at - 1] >= '0' && part[at - 1] <= '9'; at--)
		;
	if (at == 0 || at == n - 1 || part[at - 1] != '[' || n - at > 10)
		return 0;
	for (size_t i = at; i < n - 1; i++)
		v = v * 10 + (uint64_t)(part[i] - '0');
	if (v >= WF_DIR_INDEX_ANY)
		return 0;
	*ret_index = (uint32_t)v;
	return n - at + 1;
}

static bool add_part(struct draft *d, const char *part, size_t n)
{
	char plain[2 * WF_DIR_VALUE + 1], pattern[2 * WF_DIR_VALUE + 1];
	struct wf_dir_part *p;
	uint32_t index = 0;
	size_t tail = index_at_end(part, n, &index);

	if (d->q->parts == WF_DIR_PARTS)
		return wrong(d, "a path has at most 8 parts");
	if (n - tail == 0 || n - tail >= sizeof(pattern))
		return wrong(d, "a part of a path is empty, or too long");
	memcpy(pattern, part, n - tail);
	pattern[n - tail] = 0;
	p = &d->q->part[d->q->parts++];
	p->plain = wf_glob_plain(pattern, plain);
	if (p->plain && !wf_dir_is_name(plain, strlen(plain)))
		return wrong(d, "a part of a path is no name");
	p->name = p->plain ? keep(d, plain, strlen(plain)) : keep(d, pattern, n - tail);
	p->index = tail ? index : p->plain ? 0 : WF_DIR_INDEX_ANY;
	return true;
}

/* A / inside a class or behind a backslash separates all the same: no name has one. */
static bool add_path(struct draft *d, const char *path)
{
	if (d->q->parts)
		return wrong(d, "a query has one path at most");
	if (*path != '/')
		return wrong(d, "a path begins with /");
	while (*path) {
		size_t n = strcspn(path + 1, "/");

		if (!add_part(d, path + 1, n))
			return false;
		path += n + 1;
	}
	return true;
}

/* A path alone, up to the space behind it. */
static bool read_path(struct draft *d, const char *text)
{
	size_t n = strcspn(text, " ");

	if (text[n + strspn(text + n, " ")])
		return wrong(d, "behind a path nothing follows");
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return wrong(d, "a path has printable ASCII characters only");
	return add_path(d, keep(d, text, n));
}

static bool add_term(struct draft *d, const struct wf_dir_word *w)
{
	char plain[2 * WF_DIR_VALUE + 1];
	struct wf_dir_term *t;
	enum wf_dir_key what = wf_dir_key_of(w->key);

	if ((what == WF_KEY_PATH || what == WF_KEY_MEMBER) && w->value[0]) {
		d->q->members_only = what == WF_KEY_MEMBER;
		return add_path(d, keep(d, w->value, strlen(w->value)));
	}
	if (d->q->terms == WF_DIR_TERMS)
		return wrong(d, "a query has at most 16 words");
	t = &d->q->term[d->q->terms++];
	t->what = what;
	t->plain = wf_glob_plain(w->value, plain);
	t->key = keep(d, w->key, strlen(w->key));
	t->value = t->plain ? keep(d, plain, strlen(plain)) : keep(d, w->value, strlen(w->value));
	if (t->plain && t->value[0] && what == WF_KEY_GROUP)
		d->q->group = t->value;
	if (t->plain && t->value[0] && what == WF_KEY_ID && !d->q->id && (!wf_dir_id_parse(t->value, &d->q->id) || !d->q->id))
		return wrong(d, "an id is four numbers: job.process.generation.local");
	return true;
}

static bool read_words(struct draft *d, const char *text)
{
	struct wf_dir_word w;
	int r;

	while ((r = wf_dir_next_word(&text, true, &w, &d->why)) == 1)
		if (!add_term(d, &w))
			return false;
	if (r == 0 && !d->q->terms && !d->q->parts)
		return wrong(d, "the query is empty");
	return r == 0;
}

struct wf_dir_query *wf_dir_query_new(const char *text, int *ret_err, const char **ret_why)
{
	struct draft d = { .why = NULL };
	size_t n = strnlen(text, WF_DIR_QUERY + 1);
	bool ok;

	*ret_err = -EINVAL;
	*ret_why = "a query has at most 1023 bytes";
	if (n > WF_DIR_QUERY)
		return NULL;
	/* A path is kept whole and in parts; every text ends with a 0, where there was a space, an = or a /. */
	d.room = 3 * n + 64;
	d.q = calloc(1, sizeof(*d.q) + d.room);
	*ret_why = "no memory for a query";
	*ret_err = -ENOMEM;
	if (!d.q)
		return NULL;
	d.q->bytes = sizeof(*d.q) + d.room;
	text += strspn(text, " ");
	ok = *text == '/' ? read_path(&d, text) : read_words(&d, text);
	*ret_err = ok ? 0 : -EINVAL;
	*ret_why = d.why;
	if (ok)
		return d.q;
	free(d.q);
	return NULL;
}
