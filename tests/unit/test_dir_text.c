/* test_dir_text.c - words, names, patterns and queries of the directory. */
#include <fnmatch.h>

#include "dir/query.h"
#include "test.h"

static int words(const char *text, bool pattern, char *ret_all, const char **ret_why)
{
	struct wf_dir_word w;
	int n = 0, r;

	ret_all[0] = 0;
	while ((r = wf_dir_next_word(&text, pattern, &w, ret_why)) == 1) {
		sprintf(ret_all + strlen(ret_all), "<%s|%s>", w.key, w.value);
		n++;
	}
	return r < 0 ? r : n;
}

TEST(words_are_keys_and_texts_with_quotes_and_backslashes)
{
	char all[2048];
	const char *why;

	CHECK_EQ(words("role=worker load=", false, all, &why), 2);
	CHECK(strcmp(all, "<role|worker><load|>") == 0);
	CHECK_EQ(words("  a=\"x y\"z   b=\\\"q\\ r ", false, all, &why), 2);
	CHECK(strcmp(all, "<a|x yz><b|\"q r>") == 0);
	CHECK_EQ(words("a=\"x \\\" y\" b==", false, all, &why), 2);
	CHECK(strcmp(all, "<a|x \" y><b|=>") == 0);
	CHECK_EQ(words("a=\\*\\\\*", true, all, &why), 1);
	CHECK(strcmp(all, "<a|\\*\\\\*>") == 0);
	CHECK_EQ(words("", false, all, &why), 0);
	CHECK_EQ(words("   ", false, all, &why), 0);
}

TEST(what_are_no_words_is_refused_with_a_reason)
{
	static const char *const wrong[] = { "role", "=x", "a=\"x", "a=\\", "a b=c", "a=\x01", "a=\xc3\xa9", "k*=1", "a=1 b" };
	char all[2048], text[600];
	const char *why;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		why = NULL;
		CHECK_EQ(words(wrong[i], false, all, &why), -EINVAL);
		CHECK(why && *why);
	}
	memset(text, 'k', sizeof(text));
	strcpy(text + WF_DIR_KEY, "=1");
	CHECK_EQ(words(text, false, all, &why), 1);
	memset(text, 'k', sizeof(text));
	strcpy(text + WF_DIR_KEY + 1, "=1");
	CHECK_EQ(words(text, false, all, &why), -EINVAL);
	memset(text, 'v', sizeof(text));
	memcpy(text, "a=", 2);
	text[2 + WF_DIR_VALUE] = 0;
	CHECK_EQ(words(text, true, all, &why), 1);
	text[2 + WF_DIR_VALUE] = 'v';
	text[3 + WF_DIR_VALUE] = 0;
	CHECK_EQ(words(text, true, all, &why), -EINVAL);
}

TEST(what_is_written_as_words_is_read_again)
{
	static const char *const values[] = { "x", "a b", "\"", "\\", "a\"b\\c d", "*?[", "=", "/a/b" };
	struct wf_dir_word w;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char text[256];
		const char *at = text, *why;
		struct wf_dir_writer to = { .text = text, .room = sizeof(text) };

		wf_dir_write_word(&to, "key", values[i]);
		CHECK_EQ(wf_dir_write_end(&to), strlen(text));
		MUST_EQ(wf_dir_next_word(&at, false, &w, &why), 1);
		CHECK(strcmp(w.value, values[i]) == 0);
		CHECK(!*at);
	}
}

TEST(names_and_groups_are_checked)
{
	char name[WF_DIR_NAME + 1], text[200];

	CHECK(wf_dir_is_name("w-1.x=", 6));
	CHECK(!wf_dir_is_name("", 0));
	CHECK(!wf_dir_is_name("a b", 3));
	CHECK(!wf_dir_is_name("a/b", 3));
	CHECK(!wf_dir_is_name("a[1]", 4));
	CHECK(!wf_dir_is_name("a\0b", 3));
	memset(text, 'n', sizeof(text));
	CHECK(wf_dir_is_name(text, 63));
	CHECK(!wf_dir_is_name(text, 64));
	CHECK(wf_dir_is_group("/pool", 5));
	CHECK(wf_dir_is_group("/a/b/c", 6));
	CHECK(!wf_dir_is_group("/", 1));
	CHECK(!wf_dir_is_group("pool", 4));
	CHECK(!wf_dir_is_group("/a/", 3));
	CHECK(!wf_dir_is_group("//a", 3));
	CHECK(!wf_dir_is_group("/a*", 3));
	CHECK(wf_dir_is_group("/1/2/3/4/5/6/7", 14));
	CHECK(!wf_dir_is_group("/1/2/3/4/5/6/7/8", 16));
	wf_dir_name_from("my port [1]", "port", name);
	CHECK(strcmp(name, "my_port__1_") == 0);
	wf_dir_name_from("", "port", name);
	CHECK(strcmp(name, "port") == 0);
	memset(text, 'n', sizeof(text));
	text[199] = 0;
	wf_dir_name_from(text, "port", name);
	CHECK_EQ(strlen(name), 63);
}

TEST(an_id_has_one_text)
{
	char text[WEFT_ID_TEXT];
	weft_id id;

	wf_dir_id_print(UINT64_C(0xfffffffffffffffe), text);
	CHECK(wf_dir_id_parse(text, &id) && id == UINT64_C(0xfffffffffffffffe));
	CHECK(wf_dir_id_parse("0.1.0.2", &id) && id == ((weft_id)1 << 32 | 2));
	CHECK(!wf_dir_id_parse("0.1.0", &id));
	CHECK(!wf_dir_id_parse("0.01.0.2", &id));
	CHECK(!wf_dir_id_parse("0.1.0.2 ", &id));
	CHECK(!wf_dir_id_parse("0.1.0.1048576", &id));
	CHECK(!wf_dir_id_parse("...", &id));
}

TEST(patterns_match_as_those_of_the_shell)
{
	static const char letters[] = "ab-]!*?[c\\";
	uint64_t seed = test_seed;
	char pattern[12], text[12], plain[24];

	CHECK(wf_glob("*", ""));
	CHECK(wf_glob("n*", "node7"));
	CHECK(!wf_glob("n*7", "node"));
	CHECK(wf_glob("a\\*b", "a*b") && !wf_glob("a\\*b", "axb"));
	CHECK(wf_glob("[!a-c]x", "dx") && !wf_glob("[!a-c]x", "bx"));
	CHECK(wf_glob("[]]", "]") && wf_glob("[a", "[a"));
	CHECK(wf_glob_plain("a\\*b", plain) && strcmp(plain, "a*b") == 0);
	CHECK(!wf_glob_plain("a*", plain) && !wf_glob_plain("[a]", plain) && wf_glob_plain("[a", plain));
	for (uint64_t i = 0, n = test_scaled(200000); i < n; i++) {
		int p = (int)(test_random(&seed) % 10), t = (int)(test_random(&seed) % 10);

		for (int k = 0; k < p; k++)
			pattern[k] = letters[test_random(&seed) % 9];
		for (int k = 0; k < t; k++)
			text[k] = letters[test_random(&seed) % 9];
		pattern[p] = text[t] = 0;
		if (strstr(pattern, "["))       /* of classes that are written oddly the standard leaves much open */
			continue;
		if (wf_glob(pattern, text) != (fnmatch(pattern, text, 0) == 0)) {
			printf("# %s %s\n", pattern, text);
			CHECK(false);
		}
		if (wf_glob_plain(pattern, plain))
			CHECK(wf_glob(pattern, plain));
	}
}

TEST(a_pattern_made_to_take_for_ever_does_not)
{
	char pattern[WF_DIR_VALUE + 1], text[WF_DIR_VALUE + 1];

	for (int i = 0; i < WF_DIR_VALUE; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[WF_DIR_VALUE - 1] = 'b';
	pattern[WF_DIR_VALUE] = 0;
	memset(text, 'a', WF_DIR_VALUE);
	text[WF_DIR_VALUE] = 0;
	for (int i = 0; i < 1000; i++)
		CHECK(!wf_glob(pattern, text));
}

static struct wf_dir_query *query(const char *text)
{
	const char *why = NULL;
	int err = 0;
	struct wf_dir_query *q = wf_dir_query_new(text, &err, &why);

	if (!q)
		CHECK(err == -EINVAL && why && *why);
	return q;
}

TEST(queries_are_terms_or_a_path)
{
	struct wf_dir_query *q = query("kind=thread host=n* role=worker x=");

	MUST(q != NULL);
	CHECK_EQ(q->terms, 4);
	CHECK_EQ(q->parts, 0);
	CHECK(q->term[0].what == WF_KEY_KIND && q->term[0].plain);
	CHECK(q->term[1].what == WF_KEY_HOST && !q->term[1].plain);
	CHECK(q->term[2].what == WF_KEY_OWN && strcmp(q->term[2].key, "role") == 0 && strcmp(q->term[2].value, "worker") == 0);
	CHECK(q->term[3].plain && !q->term[3].value[0]);
	free(q);
	q = query(" /pool/w[3] ");
	MUST(q != NULL);
	CHECK_EQ(q->parts, 2);
	CHECK(q->part[0].plain && q->part[0].index == 0 && strcmp(q->part[0].name, "pool") == 0);
	CHECK(q->part[1].plain && q->part[1].index == 3 && strcmp(q->part[1].name, "w") == 0);
	free(q);
	q = query("/n*/w[*]/x[0-9]");
	MUST(q != NULL);
	CHECK(!q->part[0].plain && q->part[0].index == WF_DIR_INDEX_ANY);
	CHECK(q->part[1].plain && q->part[1].index == WF_DIR_INDEX_ANY);
	CHECK(!q->part[2].plain && strcmp(q->part[2].name, "x[0-9]") == 0);
	free(q);
	q = query("path=/a/b role=x member=");
	MUST(q != NULL);
	CHECK(q->parts == 2 && q->terms == 2 && !q->members_only);
	free(q);
	q = query("group=/pool id=0.1.0.2");
	MUST(q != NULL);
	CHECK(strcmp(q->group, "/pool") == 0 && q->id == ((weft_id)1 << 32 | 2));
	free(q);
}

TEST(what_is_no_query_is_refused)
{
	static const char *const wrong[] = { "", "  ", "worker", "/", "//", "/a//b", "/a/", "path=a", "path=/a path=/b", "id=7", "/a b=c", "/a\tb",
					     "/1/2/3/4/5/6/7/8/9", "a=1 a=2 a=3 a=4 a=5 a=6 a=7 a=8 a=9 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1", "/[3]", "/a]b",
					     "member=x", "id=0.0.0.0" };
	char text[WF_DIR_QUERY + 2];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wf_dir_query *q = query(wrong[i]);

		if (q)
			printf("# taken: %s\n", wrong[i]);
		CHECK(!q);
		free(q);
	}
	memset(text, ' ', sizeof(text));
	memcpy(text, "a=1", 3);
	text[WF_DIR_QUERY + 1] = 0;
	CHECK(!query(text));
	text[WF_DIR_QUERY] = 0;
	struct wf_dir_query *q = query(text);
	CHECK(q);
	free(q);
}

TEST_MAIN
