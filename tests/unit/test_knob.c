/* test_knob.c - who has set a knob, and variables that set none. */
#include "base/knob.h"

#include <weft/base.h>

#include "base/log.h"
#include "base/variables.h"
#include "test.h"

static char told[4096];
static unsigned lines;

static void tell(const char *name, const char *meant)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s%s>%s", n ? " " : "", name, meant ? meant : "");
	lines++;
}

static void log_line(int level, const char *line)
{
	size_t n = strlen(told);

	if (level == WF_WARN)
		snprintf(told + n, sizeof(told) - n, "%s|", line);
}

/* With these variables and no others. */
static unsigned strangers(const char *const *variables)
{
	char **before = environ;
	unsigned n;

	told[0] = 0;
	lines = 0;
	memcpy(&environ, &variables, sizeof(environ));
	n = wf_variable_strangers(tell);
	environ = before;
	return n;
}

#define WITH(...) (const char *[]){ __VA_ARGS__, NULL }

static struct wf_knob_view view(enum wf_knob k)
{
	struct wf_knob_view v;

	wf_knob_view(k, &v);
	return v;
}

/* The first of the program: what was told once is not told again. */
TEST(the_log_is_told_of_strangers_once)
{
	struct weft_init_opts opts = { .size = sizeof(opts), .log = log_line };

	setenv("WEFT_EAGRE", "1", 1);
	setenv("WEFT_LOG", "warn", 1);
	for (int i = 0; i < 2; i++) {
		told[0] = 0;
		MUST_OK(weft_init(&opts));
		CHECK_OK(weft_fini(WEFT_FOREVER));
		CHECK_EQ(strstr(told, "nothing is set by WEFT_EAGRE (is WEFT_EAGER meant?)") != NULL, i == 0);
	}
	unsetenv("WEFT_EAGRE");
	unsetenv("WEFT_LOG");
}

TEST(a_knob_says_what_has_set_it)
{
	setenv("WEFT_EAGER", "4k", 1);
	unsetenv("WEFT_BUDGET");
	MUST_OK(wf_knob_init("budget=1m secure=auth"));
	CHECK_EQ(view(WF_KNOB_EAGER).origin, WF_BY_ENVIRONMENT);
	CHECK(!strcmp(view(WF_KNOB_EAGER).value, "4096") && !strcmp(view(WF_KNOB_EAGER).otherwise, "8192"));
	CHECK_EQ(view(WF_KNOB_BUDGET).origin, WF_BY_CALL);
	CHECK(!strcmp(view(WF_KNOB_BUDGET).value, "1048576") && view(WF_KNOB_BUDGET).fixed);
	CHECK_EQ(view(WF_KNOB_POOL).origin, WF_BY_DEFAULT);
	CHECK(!strcmp(view(WF_KNOB_SECURE).value, "auth") && !strcmp(view(WF_KNOB_SECURE).otherwise, "full"));
	CHECK(!strcmp(view(WF_KNOB_RAILS).value, "") && !strcmp(view(WF_KNOB_RAILS).otherwise, ""));
	MUST_OK(wf_knob_init("eager=1"));
	CHECK_EQ(view(WF_KNOB_EAGER).origin, WF_BY_CALL);
	CHECK_EQ(view(WF_KNOB_BUDGET).origin, WF_BY_DEFAULT);
	unsetenv("WEFT_EAGER");
}

TEST(a_value_that_is_refused_changes_neither_value_nor_origin)
{
	MUST_OK(wf_knob_init(NULL));
	CHECK_EQ(wf_knob_init("yields=2 eager=nonsense"), -EINVAL);
	CHECK_EQ(view(WF_KNOB_YIELDS).origin, WF_BY_CALL);
	CHECK_EQ(view(WF_KNOB_EAGER).origin, WF_BY_DEFAULT);
	CHECK_EQ(wf_knob(WF_KNOB_EAGER), 8192);
	setenv("WEFT_POOL", "18446744073709551616", 1);
	CHECK_EQ(wf_knob_init(NULL), -ERANGE);
	setenv("WEFT_POOL", "\x1b[2J", 1);
	CHECK_EQ(wf_knob_init(NULL), -EINVAL);
	CHECK(!strchr(weft_last_error(), '\x1b') && strstr(weft_last_error(), "?[2J"));
	unsetenv("WEFT_POOL");
	CHECK_EQ(wf_knob_init("\x1b=1"), -ENOENT);
	CHECK(!strchr(weft_last_error(), '\x1b'));
	CHECK_EQ(wf_knob_init("\x1b"), -EINVAL);
	CHECK(!strchr(weft_last_error(), '\x1b'));
	CHECK_EQ(wf_knob_init("secure=\x1b"), -EINVAL);
	CHECK(!strchr(weft_last_error(), '\x1b'));
	MUST_OK(wf_knob_init(NULL));
}

TEST(every_knob_and_what_weft_sets_itself_is_known)
{
	CHECK_EQ(strangers(WITH("WEFT_RANK=0", "WEFT_SIZE=1", "WEFT_AGENT=3:4", "WEFT_APPNUM=0", "WEFT_CORES=2", "WEFT_ATTRS=", "WEFT_JOIN=x", "WEFT_URL=1",
				"WEFT_HOST=1", "WEFT_CC=gcc", "WEFT_CXX", "PATH=/bin", "weft_x=1", "WEFTX=1")), 0);
	for (int i = 0; i < WF_KNOBS; i++) {
		char variable[WF_VARIABLE];

		wf_variable_name(wf_knob_name((enum wf_knob)i), variable);
		CHECK(strlen(variable) < WF_VARIABLE - 1);
		CHECK_EQ(strangers(WITH(variable)), 0);
	}
	CHECK_EQ(lines, 0);
}

TEST(a_stranger_is_told_with_the_name_that_was_meant)
{
	CHECK_EQ(strangers(WITH("WEFT_SPIN=0", "WEFT_SECUR=full", "WEFT_BUGDET=1", "WEFT_SILENCE_NS=5", "WEFT_ELEPHANT=1", "WEFT_=1")), 6);
	if (strcmp(told, "WEFT_SPIN>WEFT_SPIN_NS WEFT_SECUR>WEFT_SECURE WEFT_BUGDET>WEFT_BUDGET WEFT_SILENCE_NS>WEFT_SILENCE_MS WEFT_ELEPHANT> WEFT_>")) {
		printf("# %s\n", told);
		CHECK(!"the names that were meant");
	}
}

TEST(hostile_names_are_told_short_and_plain_and_not_too_many)
{
	static char big[MIB];
	static const char *many[1000];

	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "WEFT_", 5);
	CHECK_EQ(strangers(WITH(big, "WEFT_\x1b[2J\xff=1")), 2);
	CHECK(strstr(told, "WEFT_xxx") == told && strlen(told) < 100 && !strchr(told, '\x1b') && strstr(told, " WEFT_?[2J?>"));
	for (int i = 0; i < 999; i++)
		many[i] = big;
	CHECK_EQ(strangers(many), 999);
	CHECK_EQ(lines, WF_STRANGERS);
	CHECK_EQ(strangers(NULL), 0);
}

TEST_MAIN
