/* text.c - see text.h. */
#include "dir/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[WF_DIR_KINDS] = { "", "host", "process", "thread", "port", "group" };
static const char *const key_names[WF_KEYS] = { "", "kind", "name", "index", "parent", "host", "id", "path", "group", "member", "job" };

const char *wf_dir_kind_name(unsigned kind)
{
	return kind < WF_DIR_KINDS ? kind_names[kind] : "";
}

const char *wf_dir_key_name(enum wf_dir_key key)
{
	return key_names[key];
}

enum wf_dir_key wf_dir_key_of(const char *text)
{
	for (unsigned i = 1; i < WF_KEYS; i++)
		if (strcmp(text, key_names[i]) == 0)
			return (enum wf_dir_key)i;
	return WF_KEY_OWN;
}

static bool printable(char c)
{
	return c >= ' ' && c <= '~';
}

static bool in_name(char c)
{
	return printable(c) && !strchr(" /[]*?\\\"", c);
}

static bool in_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

bool wf_dir_is_name(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!text[i] || !in_name(text[i]))
			return false;
	return n >= 1 && n <= WF_DIR_NAME;
}

bool wf_dir_is_key(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!in_key(text[i]))
			return false;
	return n >= 1 && n <= WF_DIR_KEY;
}

bool wf_dir_is_value(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!printable(text[i]))
			return false;
	return n >= 1 && n <= WF_DIR_VALUE;
}

bool wf_dir_is_group(const char *text, size_t n)
{
	unsigned parts = 0;

	if (n < 2 || n > WF_DIR_GROUP)
		return false;
	while (n) {
		const char *end = n > 1 ? memchr(text + 1, '/', n - 1) : NULL;
		size_t part = end ? (size_t)(end - text) : n;

		if (text[0] != '/' || !wf_dir_is_name(text + 1, part - 1) || ++parts == WF_DIR_PARTS)
			return false;
		text += part;
		n -= part;
	}
	return true;
}

void wf_dir_name_from(const char *text, const char *otherwise, char ret_name[WF_DIR_NAME + 1])
{
	size_t n = 0;

	if (!text || !*text)
		text = otherwise;
	for (; text[n] && n < WF_DIR_NAME; n++)
		ret_name[n] = in_name(text[n]) ? text[n] : '_';
	ret_name[n] = 0;
}

static int wrong(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

int wf_dir_next_word(const char **text, bool pattern, struct wf_dir_word *ret_word, const char **ret_why)
{
	const char *c = *text;
	size_t key = 0, n = 0, counted = 0;
	bool quoted = false;

	while (*c == ' ')
		c++;
	if (!*c) {
		*text = c;
		return 0;
	}
	while (in_key(c[key]))
		key++;
	if (c[key] != '=' || !key)
		return wrong(ret_why, "a word is key=text, the key of letters, digits, _, - and .");
	if (key > WF_DIR_KEY)
		return wrong(ret_why, "a key has at most 31 bytes");
	memcpy(ret_word->key, c, key);
	ret_word->key[key] = 0;
	for (c += key + 1; *c && (quoted || *c != ' '); c++) {
		if (*c == '"') {
			quoted = !quoted;
			continue;
		}
		if (*c == '\\' && pattern)
			ret_word->value[n++] = '\\';
		if (*c == '\\' && !*++c)
			return wrong(ret_why, "a backslash at the end takes nothing");
		if (!printable(*c))
			return wrong(ret_why, "a text has printable ASCII characters only");
		if (++counted > WF_DIR_VALUE)
			return wrong(ret_why, "a text has at most 255 bytes");
		ret_word->value[n++] = *c;
	}
	if (quoted)
		return wrong(ret_why, "a quote is not closed");
	ret_word->value[n] = 0;
	*text = c;
	return 1;
}

void wf_dir_write(struct wf_dir_writer *w, const char *text, size_t n)
{
	if (w->len < w->room) {
		size_t fits = w->room - w->len;

		memcpy(w->text + w->len, text, n < fits ? n : fits);
	}
	w->len += n;
}

void wf_dir_write_number(struct wf_dir_writer *w, uint64_t n)
{
	char digits[24];

	wf_dir_write(w, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n));
}

void wf_dir_write_word(struct wf_dir_writer *w, const char *key, const char *value)
{
	const char *quote = strpbrk(value, " \"\\") ? "\"" : "";

	if (w->len)
		wf_dir_write(w, " ", 1);
	wf_dir_write(w, key, strlen(key));
	wf_dir_write(w, "=", 1);
	wf_dir_write(w, quote, strlen(quote));
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			wf_dir_write(w, "\\", 1);
		wf_dir_write(w, value, 1);
	}
	wf_dir_write(w, quote, strlen(quote));
}

void wf_dir_write_step(struct wf_dir_writer *w, const char *name, uint32_t index)
{
	wf_dir_write(w, "/", 1);
	wf_dir_write(w, name, strlen(name));
	if (index) {
		wf_dir_write(w, "[", 1);
		wf_dir_write_number(w, index);
		wf_dir_write(w, "]", 1);
	}
}

size_t wf_dir_write_end(struct wf_dir_writer *w)
{
	if (w->room)
		w->text[w->len < w->room ? w->len : w->room - 1] = 0;
	return w->len;
}

void wf_dir_id_print(weft_id id, char ret_text[WEFT_ID_TEXT])
{
	snprintf(ret_text, WEFT_ID_TEXT, "%u.%u.%u.%u", (unsigned)(id >> 52), (unsigned)(id >> 32) & 0xfffff, (unsigned)(id >> 20) & 0xfff,
		 (unsigned)id & 0xfffff);
}

/* An id has one text: whatever is parsed is printed again and compared. */
bool wf_dir_id_parse(const char *text, weft_id *ret_id)
{
	static const unsigned bits[4] = { 12, 20, 12, 20 };
	char again[WEFT_ID_TEXT];
	const char *c = text;
	weft_id id = 0;

	for (int i = 0; i < 4; i++) {
		uint64_t part = 0;

		for (; *c >= '0' && *c <= '9'; c++) {
			part = part * 10 + (uint64_t)(*c - '0');
			if (part >> bits[i])
				return false;
		}
		id = id << bits[i] | part;
		if (*c++ != (i < 3 ? '.' : 0))
			return false;
	}
	wf_dir_id_print(id, again);
	if (strcmp(again, text) != 0)
		return false;
	*ret_id = id;
	return true;
}
