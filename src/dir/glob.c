/* glob.c - patterns, without recursion: of all stars passed only the last can be worth stretching. */
#include <string.h>

#include "dir/text.h"

/* The ] that ends the class which begins at @p, or NULL: then the [ is an ordinary character. */
static const char *class_end(const char *p)
{
	p++;
	if (*p == '!')
		p++;
	if (*p == ']')
		p++;
	while (*p && *p != ']')
		p += *p == '\\' && p[1] ? 2 : 1;
	return *p ? p : NULL;
}

static bool in_class(const char *p, const char *end, char c)
{
	bool none_of = p[1] == '!', in = false;
	unsigned char x = (unsigned char)c;

	for (p += none_of ? 2 : 1; p < end; p++) {
		unsigned char low, high;

		if (*p == '\\')
			p++;
		low = high = (unsigned char)*p;
		if (p[1] == '-' && p + 2 < end) {
			p += p[2] == '\\' && p + 3 < end ? 3 : 2;
			high = (unsigned char)*p;
		}
		in |= x >= low && x <= high;
	}
	return in != none_of;
}

/* Does the one sign or character at *@p match @c? Moves behind it. */
static bool one_matches(const char **p, char c)
{
	const char *end;
	bool yes;

	if (**p == '?') {
		(*p)++;
		return true;
	}
	if (**p == '[' && (end = class_end(*p)) != NULL) {
		yes = in_class(*p, end, c);
		*p = end + 1;
		return yes;
	}
	if (**p == '\\' && (*p)[1])
		(*p)++;
	return *(*p)++ == c;
}

bool wf_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *stretched = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			stretched = text;
			continue;
		}
		if (*pattern && one_matches(&pattern, *text)) {
			text++;
			continue;
		}
		if (!star)
			return false;
		pattern = star;
		text = ++stretched;
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool wf_glob_plain(const char *pattern, char *ret_text)
{
	for (; *pattern; pattern++) {
		if (*pattern == '*' || *pattern == '?' || (*pattern == '[' && class_end(pattern)))
			return false;
		if (*pattern == '\\' && pattern[1])
			pattern++;
		*ret_text++ = *pattern;
	}
	*ret_text = 0;
	return true;
}
