/* test_url.c - where a job can be joined: what is taken is printed as it was, and the rest refused in words. */
#include "job/url.h"

#include <sys/un.h>
#include <weft/base.h>

#include "test.h"

#define JOB "00112233445566778899aabbccddeeff"
#define SECRET "f0e1d2c3b4a5968778695a4b3c2d1e0f"

static void same(const char *text)
{
	struct wf_url url;
	char out[WF_URL_TEXT];

	if (wf_url_parse(text, &url) < 0)
		printf("# %s: %s\n", text, weft_last_error());
	CHECK_OK(wf_url_parse(text, &url));
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), strlen(text));
	CHECK(!strcmp(out, text));
}

static void refused(const char *text, const char *why)
{
	struct wf_url url, before;

	memset(&url, 7, sizeof(url));
	before = url;
	weft_fail(0, NULL);
	CHECK_EQ(wf_url_parse(text, &url), -EINVAL);
	CHECK(!memcmp(&url, &before, sizeof(url)));
	if (!strstr(weft_last_error(), why))
		printf("# %s: %s\n", text, weft_last_error());
	CHECK(strstr(weft_last_error(), why));
}

TEST(a_url_is_printed_as_it_was_read)
{
	same("weft://node1:7700/" JOB);
	same("weft://10.0.0.1:1/" JOB);
	same("weft://[fd00::1]:65535/" JOB);
	same("weft://[fe80::1%eth0]:65535/" JOB);
	same("weft://node1:7700/" JOB "#" SECRET);
	same("weft://[fd00::1]:65535/" JOB "#" SECRET);
	same("weft+unix:///run/user/1000/weft.sock");
	same("weft+unix:///..a/b..");
	same("weft+unix:@weft-1000-7");
}

TEST(the_parts_are_what_stands_there)
{
	struct wf_url url;
	char out[WF_URL_TEXT];

	MUST_OK(wf_url_parse("weft://[fd00::1]:7700/00112233445566778899AABBccddeeff", &url));
	CHECK_EQ(url.kind, WF_URL_NET);
	CHECK(!strcmp(url.host, "fd00::1"));
	CHECK_EQ(url.port, 7700);
	CHECK_EQ(url.job[1], 0x11);
	CHECK_EQ(url.job[15], 0xff);
	CHECK(!url.offered && url.secret[0] == 0);
	CHECK(wf_url_print(&url, out, sizeof(out)) > 0 && strstr(out, JOB));
	MUST_OK(wf_url_parse("weft://a:1/" JOB "#" SECRET, &url));
	CHECK(url.offered);
	CHECK_EQ(url.secret[0], 0xf0);
	CHECK_EQ(url.secret[15], 0x0f);
	MUST_OK(wf_url_parse("weft+unix:@x", &url));
	CHECK_EQ(url.kind, WF_URL_NAME);
	CHECK(!strcmp(url.path, "x"));
	MUST_OK(wf_url_parse("weft+unix:///x", &url));
	CHECK_EQ(url.kind, WF_URL_PATH);
	CHECK(!strcmp(url.path, "/x"));
	CHECK_EQ(sizeof(url.path), sizeof(((struct sockaddr_un *)NULL)->sun_path));
}

TEST(what_is_no_url_is_refused_with_the_reason)
{
	static char text[4096];

	refused("weft://a:1/" JOB "#", "a secret is");
	refused("weft://a:1/" JOB "#0011", "a secret is");
	refused("weft://a:1/" JOB "#" SECRET "0", "something follows");
	refused("weft://a:1/" JOB "##" SECRET, "a secret is");
	refused("weft://a:1/#" SECRET, "a job is");
	refused("", "begins with none");
	refused("http://a:1/" JOB, "begins with none");
	refused("WEFT://a:1/" JOB, "begins with none");
	refused(" weft://a:1/" JOB, "begins with none");
	refused("weft://", "not weft://HOST");
	refused("weft://a", "not weft://HOST");
	refused("weft://:1/" JOB, "not weft://HOST");
	refused("weft://[]:1/" JOB, "not weft://HOST");
	refused("weft://[fd00::1:1/" JOB, "not weft://HOST");
	refused("weft://[a]:1/" JOB, "no IPv6");
	refused("weft://[fd00::1%]:1/" JOB, "neither");
	refused("weft://[fd00::1%a/b]:1/" JOB, "neither");
	refused("weft://[fd00::zz]:1/" JOB, "neither");
	refused("weft://-a:1/" JOB, "neither");
	refused("weft://.:1/" JOB, "neither");
	refused("weft://a b:1/" JOB, "neither");
	refused("weft://a@b:1/" JOB, "neither");
	refused("weft://../x:1/" JOB, "neither");
	refused("weft://\xc3\xa4:1/" JOB, "neither");
	refused("weft://a:/" JOB, "a port from");
	refused("weft://a:0/" JOB, "a port from");
	refused("weft://a:01/" JOB, "a port from");
	refused("weft://a:-1/" JOB, "a port from");
	refused("weft://a:65536/" JOB, "a port from");
	refused("weft://a:4294967297/" JOB, "a port from");
	refused("weft://a:1", "a port from");
	refused("weft://a:1?" JOB, "a port from");
	refused("weft://[fd00::1]1/" JOB, "a port from");
	refused("weft://a:1/", "hexadecimal");
	refused("weft://a:1/0011", "hexadecimal");
	refused("weft://a:1/g0112233445566778899aabbccddeeff", "hexadecimal");
	refused("weft://a:1/" JOB "0", "follows");
	refused("weft://a:1/" JOB "/", "follows");
	refused("weft://a:1/" JOB "\n", "follows");
	refused("weft+unix:", "begins with none");
	refused("weft+unix:/x", "begins with none");
	refused("weft+unix://", "begins with a /");
	refused("weft+unix://x", "begins with a /");
	refused("weft+unix:///", "begins with a /");
	refused("weft+unix:///x/", "begins with a /");
	refused("weft+unix:///x/../y", "/../");
	refused("weft+unix:///x/..", "/../");
	refused("weft+unix:///x y", "blanks");
	refused("weft+unix:///\x1b[2J", "blanks");
	refused("weft+unix:@", "no name");
	refused("weft+unix:@\xff", "blanks");
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "weft://", 7);
	refused(text, "not weft://HOST");
	memcpy(text + 300, ":1/" JOB, 3 + 32 + 1);
	refused(text, "not weft://HOST");
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "weft+unix:///", 13);
	refused(text, "107 characters");
}

TEST(the_longest_fit_and_one_more_does_not)
{
	char text[512];
	struct wf_url url;

	memset(text, 'a', sizeof(text));
	memcpy(text, "weft://", 7);
	strcpy(text + 7 + 255, ":65535/" JOB);
	same(text);
	memset(text, 'a', sizeof(text));
	memcpy(text, "weft+unix:@", 11);
	text[11 + 107] = 0;
	same(text);
	text[11 + 107] = 'a';
	text[11 + 108] = 0;
	CHECK_EQ(wf_url_parse(text, &url), -EINVAL);
}

TEST(nonsense_is_not_printed)
{
	struct wf_url url = { .kind = WF_URL_NET, .host = "a", .port = 1 };
	char out[WF_URL_TEXT] = "untouched";

	CHECK_EQ(wf_url_print(&url, out, 10), -ENOSPC);
	CHECK_EQ(wf_url_print(&url, NULL, 0), -ENOSPC);
	url.port = 0;
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	url.port = 1;
	strcpy(url.host, "a/b");
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	memset(url.host, 'a', sizeof(url.host));
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	url = (struct wf_url){ .kind = WF_URL_PATH, .path = "x" };
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	memset(url.path, 'a', sizeof(url.path));
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	url.kind = (enum wf_url_kind)9;
	CHECK_EQ(wf_url_print(&url, out, sizeof(out)), -EINVAL);
	CHECK(!strcmp(out, "untouched"));
}

TEST_MAIN
