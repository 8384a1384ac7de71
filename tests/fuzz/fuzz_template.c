/* fuzz_template.c - a launcher that anybody may have written, and a command.
 *
 * Input: texts with NULs between them: the launcher, the host, then the words of the command. What must hold: it is refused in words, or there are words with
 * nothing lost: those of the command stand at the end as they were, or are one text that, taken apart by the rules of quotes, gives them back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define WORDS 64

static void must(int truth)
{
	if (!truth)
		abort();
}

/* One word of a text as put together by single quotes and \' outside of them; what follows it. */
static const char *unquote(const char *text, char *ret_word)
{
	int inside = 0;

	for (; *text && (inside || *text != ' '); text++) {
		if (*text == '\'')
			inside = !inside;
		else if (!inside && *text == '\\')
			*ret_word++ = *++text;
		else if (inside)
			*ret_word++ = *text;
		else
			abort();                /* a shell would read it in its own way */
	}
	must(!inside);
	*ret_word = 0;
	return *text ? text + 1 : text;
}

static int is_remote_shell(const char *program)
{
	const char *slash = strrchr(program, '/'), *base = slash ? slash + 1 : program;

	return !strcmp(base, "ssh") || !strcmp(base, "rsh");
}

static void check(char **argv, char *const *command, unsigned count, size_t bytes)
{
	char *word = malloc(bytes + 1), **end = argv;

	must(word != NULL);
	while (*end)
		end++;
	if (is_remote_shell(argv[0])) {
		const char *text = end[-1];

		for (unsigned i = 0; i < count; i++) {
			text = unquote(text, word);
			must(!strcmp(word, command[i]));
		}
		must(!*text);
	} else {
		must(end - argv > (long)count);
		for (unsigned i = 0; i < count; i++)
			must(!strcmp(end[(long)i - (long)count], command[i]));
	}
	free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1), *texts[WORDS + 1] = { NULL }, **argv = NULL, words[200] = "";
	unsigned count = 0;
	int r;

	must(copy != NULL);
	memcpy(copy, data, n);
	copy[n] = 0;
	for (char *at = copy; at <= copy + n && count < WORDS; at += strlen(at) + 1)
		texts[count++] = at;
	if (count >= 2) {
		r = template_make(texts[0], texts[1], texts + 2, &argv, words, sizeof(words));
		must(r == 0 ? argv != NULL : !argv && *words);
		must(r < 0 || template_check(texts[0], words, sizeof(words)) == 0);
		/* Not where the host makes another program of the first word. */
		if (r == 0 && !strpbrk(texts[1], "rsh/"))
			check(argv, texts + 2, count - 2, n);
		free(argv);
	} else {
		template_check(texts[0], words, sizeof(words));
	}
	free(copy);
	return 0;
}
