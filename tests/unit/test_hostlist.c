/* test_hostlist.c - hosts as people write them, as nobody should, and which process is where. */
#include "cmd/hostlist.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "cmd/run.h"
#include "test.h"

static char words[256];

/* "name:slots@address name:slots@address", or what was wrong. */
static const char *told(int r, struct hostlist *list)
{
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	if (r < 0) {
		CHECK_EQ(r, -EINVAL);
		CHECK(*words && !strchr(words, '\n') && strlen(words) < sizeof(words) - 1);
		return words;
	}
	for (unsigned i = 0; i < list->count && n < sizeof(text) - 400; i++)
		n += (size_t)sprintf(text + n, "%s%s:%u%s%s", i ? " " : "", list->hosts[i].name, list->hosts[i].slots, *list->hosts[i].address ? "@" : "",
				     list->hosts[i].address);
	hostlist_free(list);
	return text;
}

static const char *file(const char *text)
{
	struct hostlist list = { 0 };

	return told(hostlist_parse(text, strlen(text), &list, words, sizeof(words)), &list);
}

static const char *commas(const char *text)
{
	struct hostlist list = { 0 };

	return told(hostlist_commas(text, &list, words, sizeof(words)), &list);
}

#define CHECK_TEXT(got, want)                                                                      \
	do {                                                                                       \
		const char *text_got = (got);                                                      \
		if (strcmp(text_got, want))                                                        \
			printf("# got '%s', want '%s'\n", text_got, want);                         \
		CHECK(!strcmp(text_got, want));                                                    \
	} while (0)

TEST(names_between_commas_have_one_slot_or_as_many_as_they_say)
{
	CHECK_TEXT(commas("a:4,b:4,[fd00::1]:2"), "a:4 b:4 fd00::1:2@fd00::1");
	CHECK_TEXT(commas("a,b"), "a:1 b:1");
	CHECK_TEXT(commas("10.0.0.1:2 , node_7.x-y:4096"), "10.0.0.1:2@10.0.0.1 node_7.x-y:4096");
	CHECK_TEXT(commas("[fe80::1%eth0]"), "fe80::1%eth0:1@fe80::1%eth0");
}

TEST(a_hostfile_is_read_in_the_spellings_other_launchers_take)
{
	CHECK_TEXT(file("# hosts\n\n  node1\nnode2:4   # four\n\tnode3 slots=4\nnode4 slots = 2\r\nnode5 count=3\nnode6 cpus=3"),
		   "node1:1 node2:4 node3:4 node4:2 node5:3 node6:3");
	CHECK_TEXT(file("a address=10.0.0.1 slots=2\nb:3 address=fd00::2\nc address=[fd00::3]\n[fd00::4]:2"),
		   "a:2@10.0.0.1 b:3@fd00::2 c:1@fd00::3 fd00::4:2@fd00::4");
	CHECK_TEXT(file("a"), "a:1");
}

TEST(a_host_that_is_named_again_has_the_slots_of_both)
{
	CHECK_TEXT(file("a\nb:2\na\na slots=3\n"), "a:5 b:2");
	CHECK_TEXT(commas("a,a,a,A"), "a:3 A:1");
	CHECK_TEXT(file("a\na address=10.0.0.1\na"), "a:3@10.0.0.1");
	CHECK_TEXT(file("a address=10.0.0.2\na address=10.0.0.1\na"), "line 2: a had another address before");
	CHECK_TEXT(commas("a:4096,a"), "host 2: with those before, a has more than 4096 slots");
}

TEST(what_makes_no_sense_is_refused_with_its_line_and_the_reason)
{
	static const struct {
		const char *text, *words;
	} wrong[] = {
		{ "", "there is no host in it" },
		{ "# nothing\n\n", "there is no host in it" },
		{ "a\n\n-oProxyCommand=x", "line 3: '=' cannot be in a name" },
		{ "-a", "line 1: a name does not begin with '-'" },
		{ "..", "line 1: a name does not begin with '.'" },
		{ "../../etc/passwd", "line 1: '/' cannot be in a name" },
		{ "a\nb;reboot", "line 2: ';' cannot be in a name" },
		{ "a\n\xff\xfe", "line 2: byte 0xff cannot be in a name" },
		{ "\x1b[2J", "line 1: byte 0x1b cannot be in a name" },
		{ "a:0", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:-1", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:+1", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:4097", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:18446744073709551617", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ "a:2x", "line 1: what follows the colon is not 1 to 4096 slots" },
		{ ":2", "line 1: there is no name" },
		{ "fd00::1", "line 1: a second colon: an IPv6 address stands in brackets" },
		{ "[fd00::1", "line 1: there is no ] to the [" },
		{ "[]:2", "line 1: there is no name" },
		{ "[a]:2", "line 1: what stands in brackets is no IPv6 address" },
		{ "[10.0.0.1]", "line 1: what stands in brackets is no IPv6 address" },
		{ "[::1]2", "line 1: behind the ] comes nothing, or a colon and the slots" },
		{ "a slots=2 slots=2", "line 1: the slots are said twice" },
		{ "a:2 slots=2", "line 1: the slots are said twice" },
		{ "a slots", "line 1: what follows a host has the form NAME=VALUE" },
		{ "a slots=", "line 1: what follows the = is not 1 to 4096 slots" },
		{ "a slots=two", "line 1: what follows the = is not 1 to 4096 slots" },
		{ "a max_slots=2", "line 1: only slots= and address= can follow a host" },
		{ "a address=b", "line 1: address= wants an IPv4 or IPv6 address, or up to 4 with + between" },
		{ "a address=", "line 1: address= wants an IPv4 or IPv6 address, or up to 4 with + between" },
		{ "a address=[]", "line 1: address= wants an IPv4 or IPv6 address, or up to 4 with + between" },
		{ "a address=fd00::1de1 address=fd00::1", "line 1: the address is said twice" },
		{ "a address=1.2.3", "line 1: address= wants an IPv4 or IPv6 address, or up to 4 with + between" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_TEXT(file(wrong[i].text), wrong[i].words);
	CHECK_TEXT(commas(""), "there is no host in it");
	CHECK_TEXT(commas("a,,b"), "host 2: there is no name");
	CHECK_TEXT(commas("a,"), "host 2: there is no name");
	CHECK_TEXT(commas("a slots=2"), "host 1: byte 0x20 cannot be in a name");
	CHECK_TEXT(commas("a\n"), "host 1: byte 0x0a cannot be in a name");
}

TEST(nuls_are_refused_and_in_a_comment_nobody_cares)
{
	struct hostlist list = { 0 };
	static const char in_name[] = "a\nb\0c", in_value[] = "a slots=2\0", in_key[] = "a \0=2", in_address[] = "a address=1.2.3.4\0", comment[] = "a # \0\xff\n";

	CHECK_TEXT(told(hostlist_parse(in_name, sizeof(in_name) - 1, &list, words, sizeof(words)), &list), "line 2: byte 0x00 cannot be in a name");
	CHECK_EQ(hostlist_parse(in_value, sizeof(in_value) - 1, &list, words, sizeof(words)), -EINVAL);
	CHECK_EQ(hostlist_parse(in_key, sizeof(in_key) - 1, &list, words, sizeof(words)), -EINVAL);
	CHECK_EQ(hostlist_parse(in_address, sizeof(in_address) - 1, &list, words, sizeof(words)), -EINVAL);
	CHECK(!list.hosts && !list.count);
	CHECK_TEXT(told(hostlist_parse(comment, sizeof(comment) - 1, &list, words, sizeof(words)), &list), "a:1");
}

TEST(a_very_long_line_name_or_list_is_refused)
{
	static char text[MIB + 2];
	struct hostlist list = { 0 };
	size_t n = 0;

	memset(text, 'a', MIB);
	CHECK_TEXT(file(text), "line 1: longer than 4096 bytes");
	CHECK_TEXT(commas(text), "host 1: a name of 1048576 characters, and the longest are 255");
	text[256] = 0;
	CHECK_TEXT(file(text), "line 1: a name of 256 characters, and the longest are 255");
	text[255] = 0;
	CHECK_OK(hostlist_parse(text, 255, &list, words, sizeof(words)));
	CHECK_EQ(strlen(list.hosts[0].name), 255);
	hostlist_free(&list);
	for (unsigned i = 0; i < 257; i++)
		n += (size_t)sprintf(text + n, "h%u\n", i);
	CHECK_TEXT(file(text), "line 257: more than 256 hosts");
	text[n - strlen("h256\n")] = 0;
	CHECK_OK(hostlist_parse(text, strlen(text), &list, words, sizeof(words)));
	CHECK_EQ(list.count, 256);
	CHECK_EQ(hostlist_slots(&list), 256);
	hostlist_free(&list);
}

TEST(words_that_do_not_fit_are_cut_off)
{
	struct hostlist list = { 0 };
	char few[8] = "1234567";

	CHECK_EQ(hostlist_parse("a:0", 3, &list, few, 5), -EINVAL);
	CHECK_TEXT(few, "line");
	CHECK_EQ(few[5], '6');
	CHECK_EQ(hostlist_parse("a:0", 3, &list, NULL, 0), -EINVAL);
}

TEST(a_hostfile_is_read_from_a_file_that_can_be_read)
{
	char path[] = "/tmp/weft-hostlist-XXXXXX", long_path[6000];
	struct hostlist list = { 0 };
	int fd = mkstemp(path);

	MUST(fd >= 0);
	MUST(write(fd, "a:2\nb:0\n", 8) == 8);
	CHECK_EQ(hostlist_read(path, &list, words, sizeof(words)), -EINVAL);
	CHECK(strstr(words, path) == words && strstr(words, ": line 2: what follows"));
	MUST(ftruncate(fd, 4) == 0);
	CHECK_OK(hostlist_read(path, &list, words, sizeof(words)));
	CHECK_EQ(list.count, 1);
	CHECK_EQ(list.hosts[0].slots, 2);
	hostlist_free(&list);
	MUST(ftruncate(fd, HOSTLIST_FILE + 1) == 0);
	CHECK_EQ(hostlist_read(path, &list, words, sizeof(words)), -EINVAL);
	CHECK(strstr(words, "longer than 1048576 bytes"));
	close(fd);
	unlink(path);
	CHECK_EQ(hostlist_read(path, &list, words, sizeof(words)), -ENOENT);
	CHECK(strstr(words, "No such file"));
	CHECK_EQ(hostlist_read("/tmp", &list, words, sizeof(words)), -EISDIR);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	CHECK_EQ(hostlist_read(long_path, &list, words, sizeof(words)), -ENAMETOOLONG);
	CHECK(!list.hosts);
}

static const char *laid(const char *hosts, unsigned count, enum hostlist_by by, bool over)
{
	static char text[RUN_MOST + 1];
	unsigned at[RUN_MOST];
	struct hostlist list;
	int r;

	MUST_OK(hostlist_commas(hosts, &list, words, sizeof(words)));
	r = hostlist_lay(&list, count, by, over, at, words, sizeof(words));
	for (unsigned i = 0; r == 0 && i < count; i++)
		text[i] = list.hosts[at[i]].name[0];
	text[r == 0 ? count : 0] = 0;
	hostlist_free(&list);
	return r < 0 ? words : text;
}

TEST(processes_fill_host_after_host_or_go_round)
{
	CHECK_TEXT(laid("a:2,b:3", 5, HOSTLIST_BY_SLOT, false), "aabbb");
	CHECK_TEXT(laid("a:2,b:3", 3, HOSTLIST_BY_SLOT, false), "aab");
	CHECK_TEXT(laid("a:2,b:3", 5, HOSTLIST_BY_NODE, false), "ababb");
	CHECK_TEXT(laid("a,b:4,c:2", 7, HOSTLIST_BY_NODE, false), "abcbcbb");
	CHECK_TEXT(laid("a:4,b", 2, HOSTLIST_BY_NODE, false), "ab");
	CHECK_TEXT(laid("a", 1, HOSTLIST_BY_NODE, false), "a");
}

TEST(more_processes_than_slots_are_refused_unless_asked_for)
{
	CHECK_TEXT(laid("a:2,b", 4, HOSTLIST_BY_SLOT, false), "4 processes, and the hosts have 3 slots (--oversubscribe puts more on them)");
	CHECK_TEXT(laid("a:2,b", 7, HOSTLIST_BY_SLOT, true), "aaaaabb");
	CHECK_TEXT(laid("a:2,b", 8, HOSTLIST_BY_SLOT, true), "aaaaaabb");
	CHECK_TEXT(laid("a:2,b", 7, HOSTLIST_BY_NODE, true), "abaabaa");
	CHECK_TEXT(laid("a:4096", 1025, HOSTLIST_BY_SLOT, true), "1025 processes, and a job has 1 to 1024");
	CHECK_TEXT(laid("a", 0, HOSTLIST_BY_SLOT, true), "0 processes, and a job has 1 to 1024");
	CHECK_EQ(strlen(laid("a:4096", 1024, HOSTLIST_BY_SLOT, false)), 1024);
	CHECK_EQ(strlen(laid("a,b,c", 1024, HOSTLIST_BY_NODE, true)), 1024);
	CHECK_TEXT(laid("a:2,b:2", 6, HOSTLIST_BY_SLOT, true), "aaabbb");
	CHECK_TEXT(laid("a:2,b:2", 5, HOSTLIST_BY_SLOT, true), "aaabb");
	CHECK_TEXT(laid("a:2,b:2", 4, HOSTLIST_BY_SLOT, true), "aabb");
	CHECK_TEXT(laid("a:2,b:2", 3, HOSTLIST_BY_SLOT, true), "aab");
	CHECK_TEXT(laid("a:2,b:2,c:2", 8, HOSTLIST_BY_SLOT, true), "aaabbbcc");
	CHECK_TEXT(laid("a,b:3", 5, HOSTLIST_BY_SLOT, true), "abbbb");
	CHECK_TEXT(laid("a,b,c", 5, HOSTLIST_BY_SLOT, true), "aabbc");
	CHECK_EQ(hostlist_lay(&(struct hostlist){ 0 }, 1, HOSTLIST_BY_NODE, true, NULL, words, sizeof(words)), -EINVAL);
}

TEST_MAIN
