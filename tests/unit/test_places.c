/* test_places.c - texts with one thing for each rail, and the list of hosts that is made of such. */
#include <errno.h>
#include <string.h>

#include "test.h"
#include "wire/hosts.h"
#include "wire/places.h"

#define CHECK_TEXT(text, wanted) CHECK(strcmp(text, wanted) == 0)

TEST(things_are_found_by_their_numbers_and_what_is_not_there_is_told)
{
	char place[16];

	CHECK_EQ(wf_places_count(""), 0);
	CHECK_EQ(wf_places_count("a"), 1);
	CHECK_EQ(wf_places_count("+a+"), 3);
	CHECK_OK(wf_places_nth("a:1+b:2", 1, place, sizeof(place)));
	CHECK_TEXT(place, "b:2");
	CHECK_OK(wf_places_nth("a:1+b:2", 0, place, sizeof(place)));
	CHECK_TEXT(place, "a:1");
	CHECK_EQ(wf_places_nth("a:1+b:2", 2, place, sizeof(place)), -EADDRNOTAVAIL);
	CHECK_EQ(wf_places_nth("+b:2", 0, place, sizeof(place)), -EADDRNOTAVAIL);
	CHECK_EQ(wf_places_nth("", 0, place, sizeof(place)), -EADDRNOTAVAIL);
	CHECK_EQ(wf_places_nth("a+0123456789abcdef", 1, place, sizeof(place)), -ENAMETOOLONG);
	CHECK_OK(wf_places_nth("a+0123456789abcde", 1, place, sizeof(place)));
	CHECK_OK(wf_places_first("++c+d", place, sizeof(place)));
	CHECK_TEXT(place, "c");
	CHECK_EQ(wf_places_first("++", place, sizeof(place)), -EADDRNOTAVAIL);
}

TEST(what_does_not_fit_changes_nothing)
{
	char text[8] = "rubbish";

	CHECK_OK(wf_places_add(text, sizeof(text), 0, ""));
	CHECK_OK(wf_places_add(text, sizeof(text), 1, "abc"));
	CHECK_EQ(wf_places_add(text, sizeof(text), 2, "abc"), -ENAMETOOLONG);
	CHECK_TEXT(text, "+abc");
	CHECK_OK(wf_places_add(text, sizeof(text), 2, "ab"));
	CHECK_TEXT(text, "+abc+ab");
	CHECK_EQ(wf_places_add(text, sizeof(text), 3, ""), -ENAMETOOLONG);
	CHECK_TEXT(text, "+abc+ab");
}

TEST(a_host_of_several_networks_is_in_each_under_the_same_port)
{
	static struct wf_hosts_map map;
	char text[96];

	MUST_OK(wf_hosts_parse("10.0.0.1+10.1.0.1:2,[fd00::2+fd01::2]:1,+10.1.0.3:1", 7700, &map));
	CHECK_EQ(wf_hosts_count(&map), 4);
	CHECK_OK(wf_hosts_place(&map, 2, text, sizeof(text)));
	CHECK_TEXT(text, "10.0.0.1:7701+10.1.0.1:7701");
	CHECK_TEXT(wf_hosts_adapter(&map, 2), "10.0.0.1+10.1.0.1");
	CHECK_OK(wf_hosts_place(&map, 3, text, sizeof(text)));
	CHECK_TEXT(text, "[fd00::2]:7700+[fd01::2]:7700");
	CHECK_OK(wf_hosts_place(&map, 4, text, sizeof(text)));
	CHECK_TEXT(text, "+10.1.0.3:7700");
	CHECK_EQ(wf_hosts_place(&map, 2, text, 20), -ENAMETOOLONG);
	CHECK_EQ(wf_hosts_place(&map, 5, text, sizeof(text)), -ESRCH);
	CHECK_EQ(wf_hosts_parse("10.0.0.1+fd00::2:2", 7700, &map), -EINVAL);    /* IPv6 stands in brackets */
}

TEST_MAIN
