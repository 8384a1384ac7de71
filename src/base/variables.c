/* variables.c - see variables.h. */
#include "base/variables.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"

#define PREFIX "WEFT_"

/* Those that are no knobs: what processes of a job are told, and what the compilers' wrappers are. */
static const char *const ours[] = {
	"WEFT_AGENT", "WEFT_APPNUM", "WEFT_ATTRS", "WEFT_CC", "WEFT_COMMAND", "WEFT_CORES", "WEFT_CXX", "WEFT_HOST", "WEFT_JOIN", "WEFT_PMI", "WEFT_RANK", "WEFT_SIZE", "WEFT_START_S",
	"WEFT_URL",
};
#define OURS (sizeof(ours) / sizeof(*ours))

void wf_variable_name(const char *knob, char ret_name[WF_VARIABLE])
{
	size_t n = strlen(PREFIX);

	memcpy(ret_name, PREFIX, n);
	for (; *knob && n < WF_VARIABLE - 1; knob++)
		ret_name[n++] = (char)toupper((unsigned char)*knob);
	ret_name[n] = 0;
}

/* All names there are, by number; false: there are fewer. */
static bool name_at(size_t i, char ret_name[WF_VARIABLE])
{
	if (i < WF_KNOBS)
		wf_variable_name(wf_knob_name((enum wf_knob)i), ret_name);
	else if (i - WF_KNOBS < OURS)
		memcpy(ret_name, ours[i - WF_KNOBS], strlen(ours[i - WF_KNOBS]) + 1);
	else
		return false;
	return true;
}

/* How many letters have to be put in, left out or changed to make one of the other. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WF_VARIABLE], left = 0;
	size_t len = strlen(b);

	for (unsigned i = 0; i <= len; i++)
		row[i] = i;
	for (; *a; a++) {
		unsigned corner = row[0];

		left = ++row[0];
		for (size_t i = 1; i <= len; i++) {
			unsigned same = corner + (*a != b[i - 1]), least = left < row[i] ? left + 1 : row[i] + 1;

			corner = row[i];
			row[i] = left = same < least ? same : least;
		}
	}
	return row[len];
}

/* Whether one is only the beginning of the other, as in WEFT_SPIN. */
static bool begins(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;

	return n >= strlen(PREFIX) + 3 && !memcmp(a, b, n);
}

/* The name most like @name, if that could be a slip: in about one letter of three of what follows the prefix. */
static bool nearest(const char *name, char ret_name[WF_VARIABLE])
{
	unsigned best = (unsigned)(strlen(name) - strlen(PREFIX)) / 3 + 1;
	char one[WF_VARIABLE];
	bool any = false;

	for (size_t i = 0; name_at(i, one); i++) {
		unsigned d = begins(name, one) ? 1 : distance(name, one);

		if (d < best + !any) {
			best = d;
			any = true;
			memcpy(ret_name, one, sizeof(one));
		}
	}
	return any;
}

static bool is_known(const char *name, size_t len)
{
	char one[WF_VARIABLE];

	for (size_t i = 0; name_at(i, one); i++)
		if (strlen(one) == len && !memcmp(one, name, len))
			return true;
	return false;
}

unsigned wf_variable_strangers(void (*tell)(const char *name, const char *meant))
{
	unsigned count = 0;

	for (char **variable = environ; variable && *variable; variable++) {
		char name[WF_VARIABLE], meant[WF_VARIABLE];
		size_t len = strcspn(*variable, "=");

		if (strncmp(*variable, PREFIX, strlen(PREFIX)) || is_known(*variable, len) || count++ >= WF_STRANGERS)
			continue;
		if (len > sizeof(name) - 1)
			len = sizeof(name) - 1;
		for (size_t i = 0; i < len; i++)
			name[i] = (*variable)[i] > ' ' && (*variable)[i] < 127 ? (*variable)[i] : '?';
		name[len] = 0;
		tell(name, nearest(name, meant) ? meant : NULL);
	}
	return count;
}
