/* fuzz_knob.c - knobs from a text and from the environment.
 *
 * Input: texts with NULs between them: weft_init's, then the variables. What must hold: it is refused in words, or every knob can be set to what it then says of
 * itself; whoever is a stranger is told in characters that can be seen.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/variables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define VARIABLES 32

static void must(int truth)
{
	if (!truth)
		abort();
}

static unsigned told;

static void tell(const char *name, const char *meant)
{
	told++;
	must(!strncmp(name, "WEFT_", 5) && strlen(name) < WF_VARIABLE && (!meant || !strncmp(meant, "WEFT_", 5)));
	for (; *name; name++)
		must(isgraph((unsigned char)*name));
}

static void quiet(int level, const char *line)
{
	(void)level;
	must(strlen(line) < 400);
}

/* Set to what it says, a knob is the same. */
static void check(void)
{
	for (int i = 0; i < WF_KNOBS; i++) {
		struct wf_knob_view v, again;
		char text[2 * WF_KNOB_TEXT];

		wf_knob_view((enum wf_knob)i, &v);
		if (!*v.value || strpbrk(v.value, " \t,"))
			continue;
		snprintf(text, sizeof(text), "%s=%s", v.name, v.value);
		must(wf_knob_init(text) == 0);
		wf_knob_view((enum wf_knob)i, &again);
		must(!strcmp(v.value, again.value) && again.origin == WF_BY_CALL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1), *none[1] = { NULL }, *variables[VARIABLES + 1] = { NULL }, **before = environ;
	unsigned count = 0, strangers;

	must(copy != NULL);
	memcpy(copy, data, n);
	copy[n] = 0;
	for (char *at = copy + strlen(copy) + 1; at <= copy + n && count < VARIABLES; at += strlen(at) + 1)
		variables[count++] = at;
	environ = variables;
	told = 0;
	weft_fail(0, NULL);
	wf_log_init(quiet);
	must(wf_knob_init(copy) == 0 || *weft_last_error());
	strangers = wf_variable_strangers(tell);
	must(told == (strangers < WF_STRANGERS ? strangers : WF_STRANGERS));
	environ = none;
	check();
	environ = before;
	free(copy);
	return 0;
}
