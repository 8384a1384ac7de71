/* test_pmi_wire.c - PMI's texts, written and read. */
#include "job/pmi_wire.h"
#include "test.h"

static struct wf_pmi_reply reply;

static int read_line(const char *text)
{
	return wf_pmi_read(WF_PMI_LINE, text, strlen(text), &reply);
}

static int read_counted(const char *text)
{
	return wf_pmi_read(WF_PMI_COUNTED, text, strlen(text), &reply);
}

static bool field_is(const char *name, const char *value)
{
	const char *is = wf_pmi_field(&reply, name);

	return is && strcmp(is, value) == 0;
}

static bool wrote(enum wf_pmi_form form, const char *wanted, const char *value)
{
	char out[WF_PMI_ASK];
	long n = wf_pmi_write(form, out, "put", "key", "k", "value", value, NULL);

	return n == (long)strlen(wanted) && memcmp(out, wanted, (size_t)n) == 0;
}

TEST(commands_are_written_as_launchers_read_them)
{
	char out[WF_PMI_ASK];

	CHECK(wrote(WF_PMI_LINE, "cmd=put key=k value=v\n", "v"));
	CHECK(wrote(WF_PMI_COUNTED, "    22cmd=put;key=k;value=v;", "v"));
	CHECK_EQ(wf_pmi_write(WF_PMI_LINE, out, "finalize", NULL), 13);
	CHECK(memcmp(out, "cmd=finalize\n", 13) == 0);
}

TEST(a_text_that_would_be_read_as_more_is_not_written)
{
	static const char *const bad[] = { "a b", "a=b", "a;b", "a\nb", "a\tb", "\x7f", "\xc3\xa4", " " };
	char out[WF_PMI_ASK], wide[WF_PMI_ASK];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(wf_pmi_write(WF_PMI_LINE, out, "put", "value", bad[i], NULL), -EINVAL);
		CHECK_EQ(wf_pmi_write(WF_PMI_COUNTED, out, "put", bad[i], "v", NULL), -EINVAL);
		CHECK_EQ(wf_pmi_write(WF_PMI_COUNTED, out, bad[i], NULL), -EINVAL);
	}
	memset(wide, 'x', sizeof(wide));
	for (size_t n = sizeof(wide) - 40; n < sizeof(wide); n++) {
		long r;

		wide[n] = '\0';
		r = wf_pmi_write(WF_PMI_LINE, out, "put", "value", wide, NULL);
		CHECK_EQ(r, n + 15 < WF_PMI_ASK ? (long)n + 15 : -EMSGSIZE);
		wide[n] = 'x';
	}
}

TEST(the_first_message_is_found_when_all_of_it_is_there)
{
	static const char line[] = "cmd=a rc=0\ncmd=b\n", counted[] = "    11cmd=a;rc=0;    11cmd=b";

	for (size_t n = 0; n < sizeof(line); n++)
		CHECK_EQ(wf_pmi_whole(WF_PMI_LINE, line, n), n < 11 ? 0 : 11);
	for (size_t n = 0; n < sizeof(counted); n++)
		CHECK_EQ(wf_pmi_whole(WF_PMI_COUNTED, counted, n), n < 17 ? 0 : 17);
	CHECK_EQ(wf_pmi_whole(WF_PMI_COUNTED, "5     cmd=a", 11), 11);
	CHECK_EQ(wf_pmi_whole(WF_PMI_COUNTED, "  5   cmd=a", 11), 11);
}

TEST(a_length_that_is_none_is_refused_at_once)
{
	static const char *const bad[] = { "      ", "     0", "    -1", "  1 2 ", "0x0010", "  4091", "999999", "\0\0\0\0\0\0", "cmd=a;", "    1a" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(wf_pmi_whole(WF_PMI_COUNTED, bad[i], 6), -EPROTO);
	CHECK_EQ(wf_pmi_whole(WF_PMI_COUNTED, "  4090", 6), 0);
}

TEST(a_line_without_an_end_is_refused_when_it_is_too_long)
{
	static char bytes[WF_PMI_MOST + 1];

	memset(bytes, 'x', sizeof(bytes));
	CHECK_EQ(wf_pmi_whole(WF_PMI_LINE, bytes, WF_PMI_MOST - 1), 0);
	CHECK_EQ(wf_pmi_whole(WF_PMI_LINE, bytes, WF_PMI_MOST), -EPROTO);
	bytes[WF_PMI_MOST] = '\n';
	CHECK_EQ(wf_pmi_whole(WF_PMI_LINE, bytes, sizeof(bytes)), -EPROTO);
	bytes[WF_PMI_MOST - 1] = '\n';
	CHECK_EQ(wf_pmi_whole(WF_PMI_LINE, bytes, sizeof(bytes)), WF_PMI_MOST);
}

TEST(fields_are_found_by_name)
{
	uint32_t n = 7;

	CHECK_OK(read_line("cmd=maxes kvsname_max=256  keylen_max=64 empty= rc=0\n"));
	CHECK(field_is("cmd", "maxes") && field_is("kvsname_max", "256") && field_is("empty", "") && field_is("rc", "0"));
	CHECK(!wf_pmi_field(&reply, "keylen"));
	CHECK_OK(wf_pmi_number(&reply, "keylen_max", 64, &n));
	CHECK_EQ(n, 64);
	CHECK_EQ(wf_pmi_number(&reply, "keylen_max", 63, &n), -EPROTO);
	CHECK_EQ(wf_pmi_number(&reply, "empty", 63, &n), -EPROTO);
	CHECK_EQ(wf_pmi_number(&reply, "none", 63, &n), -EPROTO);
	CHECK_EQ(n, 64);
	CHECK_OK(read_line("cmd=a a=b=c\n"));
	CHECK(field_is("a", "b=c"));
	CHECK_OK(read_counted("    29cmd=kvs-get;value=a b;;c;rc=0;"));
	CHECK(field_is("value", "a b;c") && field_is("rc", "0"));
	CHECK_OK(read_counted("    12cmd=a;cmd=b;"));
	CHECK(field_is("cmd", "a"));
	CHECK_OK(read_counted("     5cmd=a"));
	CHECK(field_is("cmd", "a"));
}

TEST(what_is_no_message_is_refused)
{
	static const char *const bad[] = { "\n", "cmd\n", "cmd=a b\n", "cmd=a\x01\n", "cmd=\xff\n", "cmd=a\tb\n" };
	char many[WF_PMI_MOST] = "";

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(read_line(bad[i]), -EPROTO);
	CHECK_EQ(read_counted("     3cmd"), -EPROTO);
	CHECK_EQ(read_counted("      "), -EPROTO);
	for (int i = 0; i < WF_PMI_FIELDS; i++)
		strcat(many, "a=b ");
	strcat(many, "\n");
	CHECK_OK(read_line(many));
	strcpy(many + strlen(many) - 1, "a=b\n");
	CHECK_EQ(read_line(many), -EPROTO);
}

TEST(numbers_are_digits_and_nothing_else)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1x", "0x1", "4294967296", "99999999999999999999999" };
	uint32_t n = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(wf_pmi_digits(bad[i], UINT32_MAX, &n), -EPROTO);
	CHECK_EQ(n, 7);
	CHECK_OK(wf_pmi_digits("4294967295", UINT32_MAX, &n));
	CHECK_EQ(n, UINT32_MAX);
	CHECK_OK(wf_pmi_digits("0", 0, &n));
	CHECK_EQ(n, 0);
}

TEST_MAIN
