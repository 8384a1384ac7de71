/* template.c - see template.h.
 *
 * The words are made twice, first to count their bytes: they and what points to them are one piece of memory.
 */
#include "template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST "{host}"

/* A template in words, each with its end. */
struct split {
	char text[TEMPLATE_BYTES];
	uint16_t words[TEMPLATE_BYTES / 2];     /* where each begins */
	unsigned count;
};

static int wrong(char *words, size_t n, const char *why)
{
	snprintf(words, n, "%s", why);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* What a backslash in double quotes takes its meaning from; before anything else it is a backslash. */
static bool is_special(char c)
{
	return c == '"' || c == '\\' || c == '$' || c == '`';
}

/* One word, from *@text on, to @to; the end of what was written, NULL: a quote or a backslash that is not ended. */
static char *word_split(const char **text, char *to)
{
	const char *c = *text;
	char quote = 0;

	for (; *c && (quote || !is_blank(*c)); c++) {
		if (*c == quote) {
			quote = 0;
		} else if (!quote && (*c == '"' || *c == '\'')) {
			quote = *c;
		} else if (*c == '\\' && (!quote || (quote == '"' && is_special(c[1])))) {
			if (!*++c)
				return NULL;
			*to++ = *c;
		} else {
			*to++ = *c;
		}
	}
	*text = c;
	*to++ = 0;
	return quote ? NULL : to;
}

static int split(const char *text, struct split *s, char *words, size_t n)
{
	char *to = s->text;
	bool named = false;

	s->count = 0;
	if (strlen(text) >= sizeof(s->text))
		return wrong(words, n, "a launcher longer than 4095 characters");
	for (;;) {
		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		s->words[s->count++] = (uint16_t)(to - s->text);
		to = word_split(&text, to);
		if (!to)
			return wrong(words, n, "a launcher with a quote or a backslash that is not ended");
		named |= strstr(s->text + s->words[s->count - 1], HOST) != NULL;
	}
	if (!s->count)
		return wrong(words, n, "a launcher without words");
	return named ? 0 : wrong(words, n, "a launcher without " HOST ", so it cannot tell one host from another");
}

/* Where words are written; NULL: they are only counted. */
struct out {
	char *to, **argv;
	size_t bytes, words;
};

static void put(struct out *o, const char *text, size_t len)
{
	if (o->to)
		memcpy(o->to + o->bytes, text, len);
	o->bytes += len;
}

static void word_begin(struct out *o)
{
	if (o->to)
		o->argv[o->words] = o->to + o->bytes;
	o->words++;
}

static void word_end(struct out *o)
{
	put(o, "", 1);
}

static void put_template(struct out *o, const struct split *s, const char *host)
{
	for (unsigned i = 0; i < s->count; i++) {
		const char *c = s->text + s->words[i], *here;

		word_begin(o);
		for (; (here = strstr(c, HOST)); c = here + strlen(HOST)) {
			put(o, c, (size_t)(here - c));
			put(o, host, strlen(host));
		}
		put(o, c, strlen(c));
		word_end(o);
	}
}

/* Between single quotes a shell takes everything as it is but a single quote, which is therefore put in from outside: '\''. */
static void put_quoted(struct out *o, const char *word)
{
	put(o, "'", 1);
	for (; *word; word++)
		if (*word == '\'')
			put(o, "'\\''", 4);
		else
			put(o, word, 1);
	put(o, "'", 1);
}

static void put_command(struct out *o, char *const *command, bool as_text)
{
	if (as_text)
		word_begin(o);
	for (char *const *word = command; *word; word++) {
		if (as_text) {
			put(o, " ", word > command);
			put_quoted(o, *word);
			continue;
		}
		word_begin(o);
		put(o, *word, strlen(*word));
		word_end(o);
	}
	if (as_text)
		word_end(o);
}

/* Whether what follows is read by a shell at the other end. */
static bool is_remote_shell(const char *program)
{
	const char *slash = strrchr(program, '/'), *base = slash ? slash + 1 : program;

	return !strcmp(base, "ssh") || !strcmp(base, "rsh");
}

int template_check(const char *text, char *words, size_t n)
{
	struct split s;

	return split(text, &s, words, n);
}

int template_make(const char *text, const char *host, char *const *command, char ***ret_argv, char *words, size_t n)
{
	struct split s;
	struct out o = { 0 };
	bool as_text;
	int r = split(text ? text : TEMPLATE_SSH, &s, words, n);

	if (r < 0)
		return r;
	if (!*host || *host == '-')
		return wrong(words, n, "a host without a name, or with one that looks like an option");
	if (!*command)
		return wrong(words, n, "nothing to start");
	as_text = is_remote_shell(s.text);
	put_template(&o, &s, host);
	put_command(&o, command, as_text);
	o.argv = malloc((o.words + 1) * sizeof(*o.argv) + o.bytes);
	if (!o.argv) {
		snprintf(words, n, "no memory");
		return -ENOMEM;
	}
	o = (struct out){ .argv = o.argv, .to = (char *)(o.argv + o.words + 1) };
	put_template(&o, &s, host);
	put_command(&o, command, as_text);
	o.argv[o.words] = NULL;
	*ret_argv = o.argv;
	return 0;
}
