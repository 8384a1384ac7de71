/* test_template.c - a command for another host, word by word, and back through a real shell. */
#include "cmd/template.h"

#include "test.h"

static char words[256];
static const char *const command[] = { "weft", "it's a \"test\"", "", "$HOME `x` \\ *\n", NULL };

/* As execv wants them. */
static char *const *plain(const char *const *cmd)
{
	static char *all[8];

	int i = 0;

	do
		memcpy(&all[i], &cmd[i], sizeof(*all));
	while (all[i++]);
	return all;
}

/* The words with | between them, or what was wrong. */
static const char *made(const char *text, const char *host, const char *const *cmd)
{
	static char all[65536];
	char **argv = NULL;
	size_t n = 0;
	int r = template_make(text, host, plain(cmd), &argv, words, sizeof(words));

	if (r < 0) {
		CHECK_EQ(r, -EINVAL);
		CHECK(!argv && *words);
		if (*host && *host != '-' && *cmd)
			CHECK_EQ(template_check(text, words, sizeof(words)), -EINVAL);
		return words;
	}
	CHECK_OK(template_check(text ? text : TEMPLATE_SSH, words, sizeof(words)));
	all[0] = 0;
	for (char **word = argv; *word; word++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", word > argv ? "|" : "", *word);
	free(argv);
	return all;
}

#define CHECK_TEXT(got, want)                                                                      \
	do {                                                                                       \
		const char *text_got = (got);                                                      \
		if (strcmp(text_got, want))                                                        \
			printf("# got '%s', want '%s'\n", text_got, want);                         \
		CHECK(!strcmp(text_got, want));                                                    \
	} while (0)

TEST(a_template_is_split_like_a_shell_does_and_nothing_is_expanded)
{
	const char *const x[] = { "x", NULL };

	CHECK_TEXT(made("ip netns exec {host}", "a", x), "ip|netns|exec|a|x");
	CHECK_TEXT(made("  a\t'b c'\n\"d e\"f\\ g {host} ''  ", "h", x), "a|b c|d ef g|h||x");
	CHECK_TEXT(made("a '\"' \"'\" \"\\\"\" '\\' \\' \\\\ \"\\x\" {host}", "h", x), "a|\"|'|\"|\\|'|\\|\\x|h|x");
	CHECK_TEXT(made("a $HOME `ls` * ; | > ~ {host} {other}", "h", x), "a|$HOME|`ls`|*|;|||>|~|h|{other}|x");
}

TEST(the_host_is_put_in_wherever_it_is_asked_for)
{
	const char *const x[] = { "{host}", NULL };

	CHECK_TEXT(made("run-{host} -h '{host}' user@{host}:{host} {hos}", "fd00::1", x), "run-fd00::1|-h|fd00::1|user@fd00::1:fd00::1|{hos}|{host}");
	CHECK_TEXT(made("{host}", "h", x), "h|{host}");
}

TEST(a_template_that_makes_no_sense_is_refused_in_words)
{
	static char text[TEMPLATE_BYTES + 1];
	const char *const x[] = { "x", NULL }, *const none[] = { NULL };

	CHECK_TEXT(made("ssh", "h", x), "a launcher without {host}, so it cannot tell one host from another");
	CHECK_TEXT(made("ssh { host }", "h", x), "a launcher without {host}, so it cannot tell one host from another");
	CHECK_TEXT(made("", "h", x), "a launcher without words");
	CHECK_TEXT(made(" \n\t ", "h", x), "a launcher without words");
	CHECK_TEXT(made("a {host} 'b", "h", x), "a launcher with a quote or a backslash that is not ended");
	CHECK_TEXT(made("a {host} \"b\\\"", "h", x), "a launcher with a quote or a backslash that is not ended");
	CHECK_TEXT(made("a {host} \\", "h", x), "a launcher with a quote or a backslash that is not ended");
	CHECK_TEXT(made("a {host}", "-h", x), "a host without a name, or with one that looks like an option");
	CHECK_TEXT(made("a {host}", "", x), "a host without a name, or with one that looks like an option");
	CHECK_TEXT(made("a {host}", "h", none), "nothing to start");
	memset(text, 'x', TEMPLATE_BYTES);
	CHECK_TEXT(made(text, "h", x), "a launcher longer than 4095 characters");
}

TEST(the_longest_template_and_the_most_words_fit)
{
	static char text[TEMPLATE_BYTES];
	const char *const x[] = { "x", NULL };
	char **argv;
	unsigned n = 0;

	for (size_t i = 0; i < TEMPLATE_BYTES - 1; i++)
		text[i] = i % 2 ? ' ' : 'x';
	memcpy(text + 100, "{host}", 6);
	MUST_OK(template_make(text, "h", plain(x), &argv, words, sizeof(words)));
	while (argv[n])
		n++;
	CHECK_EQ(n, 2048 - 3 + 1);      /* the host has taken the place of three words; the command is one more */
	free(argv);
}

TEST(without_a_template_it_is_ssh_and_the_command_is_one_text)
{
	const char *const x[] = { "weft", "agent", NULL };

	CHECK_TEXT(made(NULL, "node1", x), "ssh|-o|BatchMode=yes|node1|'weft' 'agent'");
	CHECK_TEXT(made("/usr/bin/rsh {host}", "h", x), "/usr/bin/rsh|h|'weft' 'agent'");
	CHECK_TEXT(made("ssh/x {host}", "h", x), "ssh/x|h|weft|agent");
	CHECK_TEXT(made("myssh {host}", "h", x), "myssh|h|weft|agent");
}

TEST(a_shell_makes_the_same_words_of_the_text)
{
	char **argv, line[4096], all[4096] = "";
	size_t n;
	FILE *shell;

	MUST_OK(template_make("ssh {host}", "h", plain(command), &argv, words, sizeof(words)));
	snprintf(line, sizeof(line), "words() { printf '%%s|' \"$@\"; }; words %s", argv[2]);
	CHECK(!argv[3]);
	free(argv);
	shell = popen(line, "r");
	MUST(shell);
	n = fread(all, 1, sizeof(all) - 1, shell);
	all[n] = 0;
	CHECK_EQ(pclose(shell), 0);
	CHECK_TEXT(all, "weft|it's a \"test\"||$HOME `x` \\ *\n|");
}

TEST_MAIN
