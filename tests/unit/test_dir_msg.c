/* test_dir_msg.c - messages of the directory: what is written is read again, and nothing else is taken. */
#include <weft/req.h>

#include "dir/msg.h"
#include "test.h"

static uint8_t room[WF_DIR_MESSAGE], list[WF_DIR_MESSAGE];

static struct wf_dir_text text(const char *t)
{
	return (struct wf_dir_text){ t, strlen(t) };
}

static size_t attrs(void)
{
	size_t n = wf_dir_attr_put(list, "role", "worker");

	n += wf_dir_attr_put(list + n, "group", "/pool");
	return n + wf_dir_attr_put(list + n, "title", "big \"one\"");
}

static bool same_text(struct wf_dir_text a, struct wf_dir_text b)
{
	return a.n == b.n && (!a.n || memcmp(a.at, b.at, a.n) == 0);
}

static bool same(const struct wf_dir_msg *a, const struct wf_dir_msg *b)
{
	return a->type == b->type && a->number == b->number && a->id == b->id && a->parent == b->parent && a->version == b->version &&
	       a->epoch == b->epoch && a->err == b->err && a->flags == b->flags && a->kind == b->kind && a->index == b->index &&
	       a->member_index == b->member_index && a->want == b->want && a->max == b->max && a->total == b->total && a->count == b->count &&
	       same_text(a->name, b->name) && same_text(a->host, b->host) && same_text(a->path, b->path) && same_text(a->group, b->group) &&
	       same_text(a->query, b->query) && a->list_bytes == b->list_bytes &&
	       (!a->list_bytes || memcmp(a->list, b->list, a->list_bytes) == 0);
}

/* One of each type. */
static int each(struct wf_dir_msg *all)
{
	int n = 0;

	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_SET, .id = 7, .version = 3, .index = 1, .member_index = WF_DIR_NOWHERE, .kind = WF_DIR_THREAD,
					.name = text("w"), .count = 3, .list = list, .list_bytes = attrs() };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_DROP, .id = 7 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_GET, .number = 4, .id = 7 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 5, .want = 2, .max = 100, .flags = WF_DIR_KEEP, .query = text("role=w*") };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 6, .query = text("/pool/w[*]") };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_CANCEL, .number = 6 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_AGAIN, .epoch = 2 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_HELD, .epoch = 2 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_ENTITY, .number = 4, .id = 7, .parent = 9, .version = 3, .index = 1, .member_index = 2,
					.flags = WF_DIR_KEEP, .kind = WF_DIR_THREAD, .name = text("w"), .host = text("n1"), .group = text("/pool"),
					.path = text("/n1/p/w[1]"), .count = 3, .list = list, .list_bytes = attrs() };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_ENTITY, .number = 4, .err = -ESRCH };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_FOUND, .number = 5, .total = 9, .flags = WF_DIR_MORE, .count = 3, .list = list, .list_bytes = 24 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_INVALID, .id = 7 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_STALE, .number = 5 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_ENDED, .number = 5, .err = -ENOBUFS };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_REFUSED, .id = 7, .version = 3, .err = -ENOMEM };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_PLACED, .id = 7, .version = 2, .index = 3, .member_index = 4 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_MOVED, .epoch = 2 };
	all[n++] = (struct wf_dir_msg){ .type = WF_DIR_READY, .epoch = 2 };
	return n;
}

TEST(what_is_written_is_read_again_and_by_the_right_side_only)
{
	struct wf_dir_msg all[32], got;
	int n = each(all);

	for (int i = 0; i < n; i++) {
		size_t len = wf_dir_put(&all[i], room);
		bool server = all[i].type >= WF_DIR_ENTITY;

		MUST_OK(wf_dir_read(room, len, server, &got));
		CHECK(same(&all[i], &got));
		CHECK_EQ(wf_dir_read(room, len, !server, &got), -EBADMSG);
	}
}

TEST(what_is_cut_off_or_goes_on_is_no_message)
{
	struct wf_dir_msg all[32], got;
	int n = each(all);

	for (int i = 0; i < n; i++) {
		size_t len = wf_dir_put(&all[i], room);
		uint8_t *exact;

		for (size_t cut = 0; cut < len; cut++) {
			exact = malloc(cut + 1);
			MUST(exact != NULL);
			memcpy(exact, room, cut);
			CHECK_EQ(wf_dir_read(exact, cut, all[i].type >= WF_DIR_ENTITY, &got), -EBADMSG);
			free(exact);
		}
		room[len] = 0;
		CHECK_EQ(wf_dir_read(room, len + 1, all[i].type >= WF_DIR_ENTITY, &got), -EBADMSG);
	}
}

TEST(events_are_read_one_by_one)
{
	struct wf_dir_event a = { WEFT_JOINED, 5, 77 }, b = { WEFT_LEFT, 6, 78 }, got;
	struct wf_dir_msg m = { .type = WF_DIR_EVENTS, .number = 3, .flags = WF_DIR_FIRST, .count = 2, .list = list, .list_bytes = 32 }, r;
	size_t len;

	wf_dir_event_put(list, &a);
	wf_dir_event_put(list + 16, &b);
	len = wf_dir_put(&m, room);
	MUST_OK(wf_dir_read(room, len, true, &r));
	CHECK_EQ(r.count, 2);
	got = wf_dir_event_at(&r, 1);
	CHECK(got.what == WEFT_LEFT && got.version == 6 && got.id == 78);
	room[4 + 8 + 16] = 9;           /* what happened to the second */
	CHECK_EQ(wf_dir_read(room, len, true, &r), -EBADMSG);
}

static int read_set(const char *name, const char *key, const char *value, unsigned kind, int twice)
{
	struct wf_dir_msg m = { .type = WF_DIR_SET, .id = 7, .version = 3, .kind = kind, .name = text(name), .count = 1, .list = list }, got;

	m.list_bytes = wf_dir_attr_put(list, key, value);
	if (twice) {
		m.list_bytes += wf_dir_attr_put(list + m.list_bytes, key, value);
		m.count = 2;
	}
	return wf_dir_read(room, wf_dir_put(&m, room), false, &got);
}

TEST(names_keys_and_values_out_of_bounds_are_refused)
{
	char long_name[70];

	memset(long_name, 'n', sizeof(long_name));
	long_name[64] = 0;
	CHECK_EQ(read_set("w", "role", "x", WF_DIR_THREAD, 0), 0);
	CHECK_EQ(read_set("w", "role", "x", WF_DIR_THREAD, 1), -EBADMSG);
	CHECK_EQ(read_set("w", "kind", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "name", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "group", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "group", "/x", WF_DIR_THREAD, 0), 0);
	CHECK_EQ(read_set("w", "ro le", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "role", "", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "role", "\x1b[2J", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("", "role", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("a/b", "role", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set(long_name, "role", "x", WF_DIR_THREAD, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "role", "x", WF_DIR_HOST, 0), -EBADMSG);
	CHECK_EQ(read_set("w", "role", "x", WF_DIR_GROUPS, 0), -EBADMSG);
}

TEST(bytes_at_random_do_no_harm)
{
	struct wf_dir_msg all[32], got;
	uint64_t seed = test_seed;
	int n = each(all);

	for (uint64_t i = 0, most = test_scaled(200000); i < most; i++) {
		const struct wf_dir_msg *m = &all[test_random(&seed) % (uint64_t)n];
		size_t len = wf_dir_put(m, room);
		uint8_t *exact = malloc(len);

		MUST(exact != NULL);
		memcpy(exact, room, len);
		for (int k = 0; k < 3; k++)
			exact[test_random(&seed) % len] = (uint8_t)test_random(&seed);
		wf_dir_read(exact, len, m->type >= WF_DIR_ENTITY, &got);
		free(exact);
	}
}

TEST_MAIN
