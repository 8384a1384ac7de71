/* test_conform_names.c - drivers by name, and which rails a text chooses. Needs no network. */
#include "conform.h"

/* A driver that does nothing but have adapters. */
static int dummy_probe(const struct weft_driver *self, struct weft_found *ret_found, int max)
{
	static const char *const names[] = { "one", "two", "loop" };

	(void)self;
	for (int i = 0; i < 3 && i < max; i++) {
		memset(&ret_found[i], 0, sizeof(ret_found[i]));
		strcpy(ret_found[i].name, names[i]);
		ret_found[i].flags = i == 2 ? WEFT_FOUND_LOOP : 0;
		ret_found[i].rate = (uint64_t)(i + 1) * 100;
	}
	return 3;
}

static int dummy_rail_open(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
			  struct weft_rail_info *ret_info, void **ret_rail)
{
	(void)self, (void)conf, (void)up, (void)cookie, (void)ret_info, (void)ret_rail;
	return weft_fail(-ENODEV, "dummy");
}

static void dummy_close(void *state)
{
	(void)state;
}

static int dummy_lane_open(void *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	(void)rail, (void)to, (void)klass, (void)cookie, (void)ret_lane;
	return -ENODEV;
}

static ssize_t dummy_send(void *lane, const struct weft_out *out)
{
	(void)lane, (void)out;
	return -EPIPE;
}

static int dummy_poll(void *rail, int budget, unsigned flags)
{
	(void)rail, (void)budget, (void)flags;
	return 0;
}

static int dummy_provide(void *rail, struct weft_room *const *rooms, int n)
{
	(void)rail, (void)rooms;
	return n;
}

#define DUMMY(the_name)                                                                             \
	{                                                                                          \
		.abi = WEFT_DRIVER_ABI, .size = sizeof(struct weft_driver), .name = the_name, .caps = WEFT_DRIVER_RELIABLE, .probe = dummy_probe, \
		.rail_open = dummy_rail_open, .rail_close = dummy_close, .lane_open = dummy_lane_open, .lane_close = dummy_close, .send = dummy_send, \
		.poll = dummy_poll, .provide = dummy_provide,                                        \
	}

TEST(a_driver_that_lacks_something_is_refused_with_words)
{
	struct weft_driver d = DUMMY("lacking");

	CHECK_EQ(weft_driver_add(NULL), -EINVAL);
	d.abi = WEFT_DRIVER_ABI + 1;
	CHECK_EQ(weft_driver_add(&d), -EPROTO);
	CHECK(strstr(weft_last_error(), "ABI 2") && strstr(weft_last_error(), "has 1"));
	d = (struct weft_driver)DUMMY("lacking");
	d.size = 8;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	for (int i = 0; i < 4; i++) {
		d = (struct weft_driver)DUMMY("lacking");
		d.name = (const char *const[]){ "Upper", "", "has space", "muchtoolongforaname" }[i];
		CHECK_EQ(weft_driver_add(&d), -EINVAL);
	}
	d = (struct weft_driver)DUMMY("lacking");
	d.send = NULL;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	CHECK(strstr(weft_last_error(), "send"));
	d = (struct weft_driver)DUMMY("lacking");
	d.provide = NULL;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	CHECK(strstr(weft_last_error(), "provide"));
	d = (struct weft_driver)DUMMY("lacking");
	d.caps |= WEFT_DRIVER_STREAM;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	CHECK(strstr(weft_last_error(), "need_drop"));
	d = (struct weft_driver)DUMMY("lacking");
	d.caps |= WEFT_DRIVER_LOCAL_MEM;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	CHECK(strstr(weft_last_error(), "mem"));
	d = (struct weft_driver)DUMMY("lacking");
	d.caps |= WEFT_DRIVER_EPOLL;
	CHECK_EQ(weft_driver_add(&d), -EINVAL);
	CHECK(strstr(weft_last_error(), "epoll"));
}

TEST(a_name_is_given_once_and_found_wrapped_too)
{
	static const struct weft_driver d = DUMMY("twice");
	const struct wf_driver *plain, *lossy, *again, *both;

	CHECK_OK(weft_driver_add(&d));
	CHECK_EQ(weft_driver_add(&d), -EEXIST);
	MUST_OK(wf_driver_find("twice", &plain));
	CHECK(plain->self == &d);
	MUST_OK(wf_driver_find("lossy/twice", &lossy));
	MUST_OK(wf_driver_find("lossy/twice", &again));
	CHECK(lossy == again && lossy != plain);
	CHECK(!(lossy->slots.caps & WEFT_DRIVER_RELIABLE));
	MUST_OK(wf_driver_find("trace/lossy/twice", &both));
	CHECK_EQ(wf_driver_find("nobody", &both), -ENODEV);
	CHECK(strstr(weft_last_error(), "nobody"));
	CHECK_EQ(wf_driver_find("nobody/twice", &both), -ENODEV);
	CHECK_EQ(wf_driver_find("lossy/nobody", &both), -ENODEV);
	CHECK_EQ(wf_driver_find("lossy/", &both), -ENODEV);
	CHECK_EQ(wf_driver_find("mrstrict/twice", &both), -EOPNOTSUPP);
}

TEST(what_cannot_be_loaded_says_why)
{
	CHECK_EQ(weft_driver_load(NULL), -EINVAL);
	CHECK_EQ(weft_driver_load("/nowhere/driver.so"), -ENOENT);
	CHECK(strstr(weft_last_error(), "/nowhere/driver.so"));
	CHECK_EQ(weft_driver_load("libc.so.6"), -ENOSYS);
	CHECK(strstr(weft_last_error(), "weft_driver_main"));
}

/* "driver:adapter driver:adapter" of what a text chooses, without the rails of others than dummy and lossy/dummy. */
static const char *chosen(const char *text)
{
	static char out[512];
	struct wf_choice c[64];
	int n = wf_rails_choose(text, c, 64);

	out[0] = 0;
	if (n < 0)
		return weft_strerror(n);
	for (int i = 0; i < n && i < 64; i++)
		if (strstr(c[i].driver->name, "dummy"))
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s:%s", *out ? " " : "", c[i].driver->name, c[i].adapter);
	return out;
}

TEST(a_text_chooses_rails)
{
	static const struct weft_driver dummy = DUMMY("dummy");
	static const struct { const char *text, *rails; } cases[] = {
		{ "", "dummy:one dummy:two" },
		{ NULL, "dummy:one dummy:two" },
		{ "dummy", "dummy:one dummy:two" },
		{ "dummy:one", "dummy:one" },
		{ "dummy:loop", "dummy:loop" },
		{ "dummy,dummy:loop", "dummy:one dummy:two dummy:loop" },
		{ " dummy:two , dummy:one ", "dummy:two dummy:one" },
		{ "-dummy:one", "dummy:two" },
		{ "-dummy", "" },
		{ "dummy -dummy:two", "dummy:one" },
		{ "-dummy:two dummy", "dummy:one dummy:two" },              /* the later word counts */
		{ "dummy:one dummy:one", "dummy:one" },
		{ "dummy:10.1.0.0/16", "dummy:10.1.0.0/16" },             /* not found: its driver may know */
		{ "lossy/dummy:one", "lossy/dummy:one" },
		{ "lossy/dummy:one dummy:one", "lossy/dummy:one dummy:one" },
		{ "tcp:lo", "" },
	};

	MUST_OK(weft_driver_add(&dummy));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *got = chosen(cases[i].text);

		if (strcmp(got, cases[i].rails))
			printf("# '%s' chooses '%s', not '%s'\n", cases[i].text ? cases[i].text : "NULL", got, cases[i].rails);
		CHECK(!strcmp(got, cases[i].rails));
	}
}

TEST(a_text_that_makes_no_sense_is_refused)
{
	static const struct { const char *text; int err; } cases[] = {
		{ "nobody", -ENODEV }, { "nobody:one", -ENODEV }, { "-nobody", -ENODEV }, { "tcp:", -EINVAL }, { "-", -EINVAL }, { ":one", -ENODEV },
		{ "tcp nobody", -ENODEV },
		{ "tcp:muchtoolongforthenameofanadaptermuchtoolongforthenameofanadapter", -EINVAL },
	};
	struct wf_choice c[4];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_EQ(wf_rails_choose(cases[i].text, c, 4), cases[i].err);
		CHECK(*weft_last_error());
	}
}

TEST(a_chosen_rail_has_the_hints_of_probing)
{
	struct wf_choice c[4];

	MUST_EQ(wf_rails_choose("dummy:two", c, 4), 1);
	CHECK_EQ(c[0].rate, 200);
	CHECK_EQ(wf_rails_choose("dummy", c, 1), 2);     /* how many there are, whatever fits */
}

TEST_MAIN
