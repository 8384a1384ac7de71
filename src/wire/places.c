/* places.c - see places.h. */
#include "wire/places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <weft/base.h>

#define BETWEEN '+'

/* One of them, which begins at @text. */
static int take(const char *text, char *ret_place, size_t room)
{
	size_t len = (size_t)(strchrnul(text, BETWEEN) - text);

	if (len == 0)
		return -EADDRNOTAVAIL;
	if (len >= room)
		return -ENAMETOOLONG;
	memcpy(ret_place, text, len);
	ret_place[len] = '\0';
	return 0;
}

int wf_places_nth(const char *text, uint32_t n, char *ret_place, size_t room)
{
	for (; n && (text = strchr(text, BETWEEN)) != NULL; n--)
		text++;
	return text ? take(text, ret_place, room) : -EADDRNOTAVAIL;
}

int wf_places_first(const char *text, char *ret_place, size_t room)
{
	return take(text + strspn(text, (char[]){ BETWEEN, '\0' }), ret_place, room);
}

uint32_t wf_places_count(const char *text)
{
	uint32_t n = *text != '\0';

	while (*text)
		n += *text++ == BETWEEN;
	return n;
}

int wf_places_add(char *text, size_t room, uint32_t n, const char *place)
{
	size_t len = n ? strlen(text) : 0, more = strlen(place);

	if (len + (n != 0) + more >= room)
		return weft_fail(-ENAMETOOLONG, "the addresses of %u rails take more than %zu characters", n + 1, room - 1);
	if (n)
		text[len++] = BETWEEN;
	memcpy(text + len, place, more + 1);
	return 0;
}
