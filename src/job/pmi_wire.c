/* pmi_wire.c - PMI's messages, written and read. See pmi_wire.h. */
#include "job/pmi_wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HEAD 6                  /* the length of a counted message, in decimal, padded with spaces at either side */

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || *text == '=' || *text == ';')
			return false;
	return true;
}

/* Adds name=value and what ends a field. False: no room. */
static bool add(char *out, size_t *at, const char *name, const char *value, char end)
{
	size_t room = WF_PMI_ASK - *at;
	int n = snprintf(out + *at, room, "%s=%s%c", name, value, end);

	if (n < 0 || (size_t)n >= room)
		return false;
	*at += (size_t)n;
	return true;
}

long wf_pmi_write(enum wf_pmi_form form, char ret[WF_PMI_ASK], const char *command, ...)
{
	char out[WF_PMI_ASK], end = form == WF_PMI_LINE ? ' ' : ';', head[16];
	size_t at = form == WF_PMI_LINE ? 0 : HEAD;
	const char *name;
	bool fits = add(out, &at, "cmd", command, end), plain = is_plain(command);
	va_list fields;

	va_start(fields, command);
	while ((name = va_arg(fields, const char *))) {
		const char *value = va_arg(fields, const char *);

		plain = plain && is_plain(name) && is_plain(value);
		fits = fits && add(out, &at, name, value, end);
	}
	va_end(fields);
	if (!plain)
		return -EINVAL;
	if (!fits)
		return -EMSGSIZE;
	if (form == WF_PMI_LINE) {
		out[at - 1] = '\n';
	} else {
		snprintf(head, sizeof(head), "%6zu", at - HEAD);
		memcpy(out, head, HEAD);
	}
	memcpy(ret, out, at);
	return (long)at;
}

/* The six characters. -1: they are no length. */
static long length_of(const char *head)
{
	size_t at = 0;
	long n = 0, digits = 0;

	while (at < HEAD && head[at] == ' ')
		at++;
	for (; at < HEAD && head[at] >= '0' && head[at] <= '9'; at++, digits++)
		n = 10 * n + (head[at] - '0');
	while (at < HEAD && head[at] == ' ')
		at++;
	return at == HEAD && digits ? n : -1;
}

long wf_pmi_whole(enum wf_pmi_form form, const char *bytes, size_t n)
{
	long body;

	if (form == WF_PMI_LINE) {
		const char *end = memchr(bytes, '\n', n < WF_PMI_MOST ? n : WF_PMI_MOST);

		if (end)
			return end - bytes + 1;
		return n < WF_PMI_MOST ? 0 : -EPROTO;
	}
	if (n < HEAD)
		return 0;
	body = length_of(bytes);
	if (body <= 0 || body > WF_PMI_MOST - HEAD)
		return -EPROTO;
	return n - HEAD < (size_t)body ? 0 : HEAD + body;
}

/* Cuts @text at @end, in place. A doubled end is one character of a value where @doubled says so, and nothing otherwise. */
static int cut(char *text, size_t n, char end, bool doubled, struct wf_pmi_reply *reply)
{
	size_t at = 0;

	while (at < n) {
		char *name = text + at, *to = name, *value = NULL;

		for (; at < n; at++) {
			if (text[at] == end && !(doubled && at + 1 < n && text[at + 1] == end))
				break;
			at += text[at] == end;          /* the first of two */
			if (text[at] == '=' && !value) {
				*to++ = '\0';
				value = to;
			} else {
				*to++ = text[at];
			}
		}
		at++;                                   /* the end itself; after the last field there need be none */
		if (to == name)
			continue;
		*to = '\0';                             /* at most where the end was, or the byte after the text */
		if (!value || reply->count == WF_PMI_FIELDS)
			return -EPROTO;
		reply->field[reply->count].name = name;
		reply->field[reply->count++].value = value;
	}
	return 0;
}

int wf_pmi_read(enum wf_pmi_form form, const char *bytes, size_t n, struct wf_pmi_reply *ret_reply)
{
	size_t head = form == WF_PMI_LINE ? 0 : HEAD, tail = form == WF_PMI_LINE;

	ret_reply->count = 0;
	if (n > WF_PMI_MOST || n <= head + tail)
		return -EPROTO;
	n -= head + tail;
	for (size_t i = 0; i < n; i++) {
		ret_reply->text[i] = bytes[head + i];
		if (ret_reply->text[i] < ' ' || ret_reply->text[i] > '~')
			return -EPROTO;
	}
	ret_reply->text[n] = '\0';
	return cut(ret_reply->text, n, form == WF_PMI_LINE ? ' ' : ';', form == WF_PMI_COUNTED, ret_reply);
}

const char *wf_pmi_field(const struct wf_pmi_reply *reply, const char *name)
{
	for (unsigned i = 0; i < reply->count; i++)
		if (strcmp(reply->field[i].name, name) == 0)
			return reply->field[i].value;
	return NULL;
}

int wf_pmi_digits(const char *text, uint32_t most, uint32_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return -EPROTO;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EPROTO;
		n = 10 * n + (uint64_t)(*text - '0');
		if (n > most)
			return -EPROTO;
	}
	*ret = (uint32_t)n;
	return 0;
}

int wf_pmi_number(const struct wf_pmi_reply *reply, const char *name, uint32_t most, uint32_t *ret)
{
	const char *text = wf_pmi_field(reply, name);

	return text ? wf_pmi_digits(text, most, ret) : -EPROTO;
}
