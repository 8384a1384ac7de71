/* body.c - see body.h. */
#include "job/body.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define NULL_TEXT UINT32_MAX
#define LIST_MOST 65536u                /* texts of a list */

static uint8_t *take(struct wf_body *b, size_t n)
{
	uint8_t *at = b->bytes + b->at;

	if (b->bad || n > b->n - b->at) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	return at;
}

void wf_body_bytes(struct wf_body *b, const void *bytes, size_t n)
{
	uint8_t *at = take(b, n);

	if (at && n)
		memcpy(at, bytes, n);
}

void wf_body_u32(struct wf_body *b, uint32_t value)
{
	uint8_t *at = take(b, sizeof(value));

	if (at)
		wf_put32(at, value);
}

void wf_body_text(struct wf_body *b, const char *text)
{
	wf_body_u32(b, text ? (uint32_t)strlen(text) : NULL_TEXT);
	if (text)
		wf_body_bytes(b, text, strlen(text) + 1);
}

uint32_t wf_body_get32(struct wf_body *b)
{
	uint8_t *at = take(b, sizeof(uint32_t));

	return at ? wf_get32(at) : 0;
}

const void *wf_body_get_bytes(struct wf_body *b, size_t n)
{
	return take(b, n);
}

const char *wf_body_get_text(struct wf_body *b)
{
	uint32_t n = wf_body_get32(b);
	const char *text;

	if (b->bad || n == NULL_TEXT)
		return NULL;
	text = n < b->n - b->at ? (const char *)take(b, (size_t)n + 1) : NULL;
	if (!text || text[n] || strlen(text) != n) {
		b->bad = true;
		return NULL;
	}
	return text;
}

bool wf_body_whole(const struct wf_body *b)
{
	return !b->bad && b->at == b->n;
}

/* Lists of texts */

void wf_body_list(struct wf_body *b, char *const *list, size_t count)
{
	wf_body_u32(b, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		wf_body_text(b, list[i]);
}

size_t wf_list_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* With a NULL behind it. */
char **wf_body_get_list(struct wf_body *b, size_t *ret_count)
{
	uint32_t n = wf_body_get32(b);
	char **list;

	if (b->bad || n > LIST_MOST || n > (b->n - b->at) / 5) {        /* each has a length and an end */
		b->bad = true;
		return NULL;
	}
	list = calloc((size_t)n + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < n; i++) {
		list[i] = (char *)(uintptr_t)wf_body_get_text(b);
		b->bad |= !list[i];
	}
	b->bad |= !list;
	*ret_count = n;
	if (!b->bad)
		return list;
	free(list);
	return NULL;
}
