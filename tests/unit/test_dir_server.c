/* test_dir_server.c - the server of the directory, client by client: what each is told, and what it is refused. */
#include <weft/req.h>

#include "dir/msg.h"
#include "dir/server.h"
#include "test.h"

#define HOST_A ((weft_id)1001 << 32)
#define HOST_B ((weft_id)1002 << 32)
#define P(n) ((weft_id)(n) << 32)

static struct wf_dir_server *s;

/* What was emitted, in order. */
#define HEARD 4096
static struct heard {
	weft_id to;
	size_t len;
	uint8_t msg[1024];
} heard[HEARD];
static size_t heard_n;

static void emit(void *ctx, weft_id process, const void *msg, size_t len)
{
	(void)ctx;
	MUST(heard_n < HEARD);
	heard[heard_n].to = process;
	heard[heard_n].len = len < 1024 ? len : 1024;
	memcpy(heard[heard_n++].msg, msg, len < 1024 ? len : 1024);
}

static void begin(bool gathering)
{
	heard_n = 0;
	s = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, gathering ? 2 : 1, gathering);
	MUST(s != NULL);
	MUST_OK(wf_dir_server_host(s, HOST_A, "a", "cores=4"));
	MUST_OK(wf_dir_server_host(s, HOST_B, "b", NULL));
}

static void end(void)
{
	wf_dir_server_free(s);
}

static int say(weft_id who, const struct wf_dir_msg *m)
{
	uint8_t bytes[WF_DIR_MESSAGE];

	return wf_dir_server_take(s, who, bytes, wf_dir_put(m, bytes));
}

static struct wf_dir_text text(const char *t)
{
	return (struct wf_dir_text){ t, strlen(t) };
}

/* "role=worker group=/pool": plain words. */
static int set_at(weft_id who, weft_id id, unsigned kind, const char *name, const char *attrs, uint32_t index)
{
	static uint32_t version;
	uint8_t list[4096];
	struct wf_dir_msg m = { .type = WF_DIR_SET, .id = id, .version = ++version, .kind = kind, .name = text(name), .list = list, .index = index,
				.member_index = index };
	struct wf_dir_word w;
	const char *why;

	while (wf_dir_next_word(&attrs, false, &w, &why) == 1) {
		m.list_bytes += wf_dir_attr_put(list + m.list_bytes, w.key, w.value);
		m.count++;
	}
	return say(who, &m);
}

static int set(weft_id who, weft_id id, unsigned kind, const char *name, const char *attrs)
{
	return set_at(who, id, kind, name, attrs, WF_DIR_NOWHERE);
}

static void process(unsigned n, weft_id host)
{
	MUST_OK(wf_dir_server_join(s, P(n), host));
	MUST_OK(set(P(n), P(n), WF_DIR_PROCESS, "prog", ""));
}

/* The next message of @type to @who, taken out of what was heard; false: none. */
static bool next(weft_id who, enum wf_dir_type type, struct wf_dir_msg *ret)
{
	for (size_t i = 0; i < heard_n; i++)
		if (heard[i].to == who && heard[i].msg[1] == type) {
			static uint8_t copy[1024];

			memcpy(copy, heard[i].msg, heard[i].len);
			MUST_OK(wf_dir_read(copy, heard[i].len, true, ret));
			memmove(&heard[i], &heard[i + 1], (--heard_n - i) * sizeof(heard[0]));
			return true;
		}
	return false;
}

static void add_id(void *arg, weft_id id)
{
	char *all = arg;

	sprintf(all + strlen(all), "%u.%u ", (unsigned)(id >> 32), (unsigned)id);
}

/* "1.2 1.3 ": process and local number. */
static const char *ids(const char *query)
{
	static char all[4096];

	all[0] = 0;
	if (wf_dir_server_each(s, query, add_id, all, NULL) < 0)
		return "error";
	return all;
}

#define CHECK_IDS(query, wanted)                                                                   \
	do {                                                                                       \
		const char *test_got = ids(query);                                                 \
		if (strcmp(test_got, wanted) != 0)                                                 \
			printf("# %s: %s\n", query, test_got);                                     \
		CHECK(strcmp(test_got, wanted) == 0);                                              \
	} while (0)

static const char *get(weft_id id, const char *key)
{
	static char value[1024];

	return wf_dir_server_get(s, id, key, value, sizeof(value)) < 0 ? "none" : value;
}

TEST(queries_find_exactly_who_matches)
{
	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker load=3"));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=worker"));
	MUST_OK(set(P(2), P(2) + 1, WF_DIR_THREAD, "w", "role=worker load=7"));
	MUST_OK(set(P(2), P(2) + 2, WF_DIR_PORT, "viewer", ""));
	CHECK_IDS("kind=thread role=worker", "1.1 1.2 2.1 ");
	CHECK_IDS("kind=thread host=b role=worker", "2.1 ");
	CHECK_IDS("host=[ab] role=w* load=?", "1.1 2.1 ");
	CHECK_IDS("role=worker load=", "1.2 ");
	CHECK_IDS("role=* load=*", "1.1 2.1 ");
	CHECK_IDS("kind=port name=viewer", "2.2 ");
	CHECK_IDS("kind=host", "1001.0 1002.0 ");
	CHECK_IDS("cores=4", "1001.0 ");
	CHECK_IDS("kind=process host=a", "1.0 ");
	CHECK_IDS("parent=0.1.0.0", "1.1 1.2 ");
	CHECK_IDS("id=0.2.0.1", "2.1 ");
	CHECK_IDS("id=0.2.0.9", "");
	CHECK_IDS("id=0.2.* kind=thread", "2.1 ");
	CHECK_IDS("kind=thread index=1", "1.2 ");
	CHECK_IDS("role=nobody", "");
	CHECK(strcmp(get(P(1) + 2, "path"), "/a/prog/w[1]") == 0);
	CHECK(strcmp(get(P(1) + 2, "host"), "a") == 0);
	CHECK(strcmp(get(P(1) + 1, NULL), "kind=thread name=w index=0 parent=0.1.0.0 host=a id=0.1.0.1 path=/a/prog/w role=worker load=3") == 0);
	end();
}

TEST(paths_name_places_and_globs_many)
{
	begin(false);
	process(1, HOST_A);
	process(2, HOST_A);
	process(3, HOST_B);
	for (unsigned i = 1; i <= 3; i++)
		for (unsigned k = 1; k <= 3; k++)
			MUST_OK(set(P(i), P(i) + k, WF_DIR_THREAD, "w", ""));
	CHECK_IDS("/a", "1001.0 ");
	CHECK_IDS("/a/prog[1]", "2.0 ");
	CHECK_IDS("/a/prog", "1.0 ");
	CHECK_IDS("/a/prog[1]/w[2]", "2.3 ");
	CHECK_IDS("/a/prog[*]/w[2]", "1.3 2.3 ");
	CHECK_IDS("/*/prog/w[*]", "1.1 3.1 1.2 3.2 1.3 3.3 ");
	CHECK_IDS("/a/prog[1]/*", "2.1 2.2 2.3 ");
	CHECK_IDS("/?", "1001.0 1002.0 ");
	CHECK_IDS("/a/prog/w[2]/x", "");
	CHECK_IDS("/a/w", "");
	CHECK_IDS("/*/w[*]", "");
	CHECK_IDS("/*/*/*/w[*]", "");
	CHECK_IDS("path=/b/* kind=process", "3.0 ");
	end();
}

TEST(an_index_is_the_lowest_that_is_free)
{
	begin(false);
	process(1, HOST_A);
	for (unsigned k = 1; k <= 4; k++)
		MUST_OK(set(P(1), P(1) + k, WF_DIR_THREAD, "w", "group=/pool"));
	CHECK(strcmp(get(P(1) + 4, "index"), "3") == 0);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_DROP, .id = P(1) + 2 }));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_DROP, .id = P(1) + 3 }));
	MUST_OK(set(P(1), P(1) + 5, WF_DIR_THREAD, "w", "group=/pool"));
	MUST_OK(set(P(1), P(1) + 6, WF_DIR_THREAD, "v", "group=/pool"));
	CHECK(strcmp(get(P(1) + 5, "index"), "1") == 0);
	CHECK(strcmp(get(P(1) + 5, "member"), "/pool/w[1]") == 0);
	CHECK(strcmp(get(P(1) + 6, "member"), "/pool/v") == 0);
	CHECK_IDS("group=/pool name=w", "1.1 1.5 1.4 ");
	CHECK_IDS("/pool/w[*]", "1.1 1.5 1.4 ");
	CHECK_IDS("member=/pool/w[3]", "1.4 ");
	end();
}

TEST(a_group_is_there_from_its_first_member_to_its_last)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("kind=group") }));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK_EQ(m.count, 0);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "group=/job/pool"));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK_EQ(wf_dir_event_at(&m, 0).what, WEFT_JOINED);
	weft_id group = wf_dir_event_at(&m, 0).id;
	CHECK(strcmp(get(group, "path"), "/job/pool") == 0);
	CHECK(strcmp(get(group, "name"), "pool") == 0);
	CHECK(strstr(ids("/job/pool"), ".") != NULL);
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "group=/job/pool"));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", ""));
	CHECK(!next(P(2), WF_DIR_EVENTS, &m));
	wf_dir_server_gone(s, P(1));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK_EQ(wf_dir_event_at(&m, 0).what, WEFT_LEFT);
	CHECK(wf_dir_event_at(&m, 0).id == group);
	CHECK_IDS("kind=group", "");
	end();
}

TEST(a_watch_tells_joined_changed_and_left)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker"));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("role=worker") }));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK(m.flags == WF_DIR_FIRST && m.count == 1 && wf_dir_event_at(&m, 0).id == P(1) + 1);
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=worker"));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK(!m.flags && wf_dir_event_at(&m, 0).what == WEFT_JOINED);
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=worker load=2"));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK_EQ(wf_dir_event_at(&m, 0).what, WEFT_CHANGED);
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=boss load=2"));
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK_EQ(wf_dir_event_at(&m, 0).what, WEFT_LEFT);
	wf_dir_server_host_gone(s, HOST_A);
	MUST(next(P(2), WF_DIR_EVENTS, &m));
	CHECK(wf_dir_event_at(&m, 0).what == WEFT_LEFT && wf_dir_event_at(&m, 0).id == P(1) + 1);
	CHECK(!next(P(2), WF_DIR_EVENTS, &m));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_CANCEL, .number = 1 }));
	CHECK_EQ(wf_dir_server_figures(s).watches, 0);
	end();
}

TEST(a_find_waits_until_enough_match)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 1, .want = 2, .max = 8, .query = text("role=worker") }));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 2, .want = 1, .max = 8, .query = text("role=boss") }));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker"));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker load=1"));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=idle"));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=worker"));
	CHECK(!next(P(2), WF_DIR_FOUND, &m));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker"));
	MUST(next(P(2), WF_DIR_FOUND, &m));
	CHECK(m.number == 1 && m.total == 2 && m.count == 2 && wf_get64(m.list) == P(1) + 1);
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_CANCEL, .number = 2 }));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=boss"));
	CHECK(!next(P(2), WF_DIR_FOUND, &m));
	CHECK_EQ(wf_dir_server_figures(s).watches, 0);
	end();
}

TEST(kept_answers_are_called_back_once_when_they_are_no_longer_true)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker"));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = 1, .id = P(1) + 1 }));
	MUST(next(P(2), WF_DIR_ENTITY, &m));
	CHECK(m.flags & WF_DIR_KEEP);
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 2, .max = 1, .flags = WF_DIR_KEEP, .query = text("role=worker") }));
	MUST(next(P(2), WF_DIR_FOUND, &m));
	CHECK(m.flags & WF_DIR_KEEP && m.count == 1);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker load=1"));
	CHECK(next(P(2), WF_DIR_INVALID, &m) && m.id == P(1) + 1);
	CHECK(!next(P(2), WF_DIR_STALE, &m));           /* who they are has not changed */
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker load=2"));
	CHECK(!next(P(2), WF_DIR_INVALID, &m));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", "role=worker"));
	CHECK(next(P(2), WF_DIR_STALE, &m) && m.number == 2);
	MUST_OK(set(P(1), P(1) + 3, WF_DIR_THREAD, "w", "role=worker"));
	CHECK(!next(P(2), WF_DIR_STALE, &m));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = 3, .id = P(1) + 1 }));
	wf_dir_server_gone(s, P(1));
	CHECK(next(P(2), WF_DIR_INVALID, &m));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = 4, .id = P(1) + 1 }));
	next(P(2), WF_DIR_ENTITY, &m);
	MUST(next(P(2), WF_DIR_ENTITY, &m));
	CHECK_EQ(m.err, -ESRCH);
	CHECK_EQ(wf_dir_server_figures(s).kept, 0);
	end();
}

TEST(a_client_speaks_only_for_itself)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	MUST_OK(set(P(2), P(1) + 1, WF_DIR_THREAD, "w", ""));
	CHECK(next(P(2), WF_DIR_REFUSED, &m) && m.err == -EPERM);
	MUST_OK(set(P(2), P(2), WF_DIR_THREAD, "w", ""));
	CHECK(next(P(2), WF_DIR_REFUSED, &m) && m.err == -EPERM);
	MUST_OK(set(P(2), P(2), WF_DIR_PROCESS, "other", ""));
	CHECK(next(P(2), WF_DIR_REFUSED, &m) && m.err == -EPERM);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_PORT, "v", ""));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_PORT, "v2", ""));
	CHECK(next(P(1), WF_DIR_REFUSED, &m) && m.err == -EPERM);
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", ""));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "x", ""));
	CHECK(!next(P(1), WF_DIR_REFUSED, &m));
	CHECK_IDS("name=x", "1.2 ");
	CHECK_IDS("name=w", "");
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_DROP, .id = P(1) + 1 }));
	CHECK_IDS("kind=port", "1.1 ");
	MUST_OK(wf_dir_server_join(s, P(3), HOST_A));
	MUST_OK(set(P(3), P(3) + 1, WF_DIR_THREAD, "w", ""));
	CHECK(next(P(3), WF_DIR_REFUSED, &m) && m.err == -ESRCH);
	CHECK_EQ(set(P(9), P(9), WF_DIR_PROCESS, "w", ""), -ESRCH);
	CHECK_EQ(wf_dir_server_take(s, P(1), "nonsense", 8), -EBADMSG);
	CHECK_EQ(wf_dir_server_join(s, P(1), HOST_A), -EEXIST);
	CHECK_EQ(wf_dir_server_join(s, P(4), P(1)), -ESRCH);
	CHECK_EQ(wf_dir_server_host(s, HOST_A, "a", NULL), -EEXIST);
	CHECK_EQ(wf_dir_server_host(s, P(77), "a", "kind=x"), -EINVAL);
	CHECK_EQ(wf_dir_server_each(s, "nonsense", add_id, NULL, NULL), -EINVAL);
	end();
}

TEST(who_floods_the_directory_is_refused_and_nobody_else)
{
	struct wf_dir_msg m;
	char value[256];

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	for (uint32_t i = 1; i < WF_DIR_MOST_ENTITIES; i++) {
		MUST_OK(set(P(1), P(1) + i, WF_DIR_THREAD, "w", ""));
		heard_n = 0;
	}
	MUST_OK(set(P(1), P(1) + WF_DIR_MOST_ENTITIES, WF_DIR_THREAD, "w", ""));
	CHECK(next(P(1), WF_DIR_REFUSED, &m) && m.err == -ENOBUFS);
	MUST_OK(set(P(2), P(2) + 1, WF_DIR_THREAD, "w", "role=worker"));
	CHECK(!next(P(2), WF_DIR_REFUSED, &m));
	wf_dir_server_gone(s, P(1));
	process(1, HOST_A);
	memset(value, 'x', 200);
	value[200] = 0;
	for (uint32_t i = 1;; i++) {
		char attrs[2048] = "";

		for (int k = 0; k < 8; k++)
			sprintf(attrs + strlen(attrs), "k%d=%s%u ", k, value, i);
		heard_n = 0;
		MUST_OK(set(P(1), P(1) + i, WF_DIR_THREAD, "w", attrs));
		if (next(P(1), WF_DIR_REFUSED, &m)) {
			CHECK_EQ(m.err, -ENOBUFS);
			CHECK(i > 1000 && wf_dir_server_figures(s).bytes < 4 * (uint64_t)WF_DIR_MOST_BYTES);
			break;
		}
	}
	for (uint32_t i = 1; i <= WF_DIR_MOST_WATCHES; i++) {
		heard_n = 0;
		MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = i, .query = text("role=nobody") }));
		MUST(next(P(1), WF_DIR_EVENTS, &m));
	}
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 9999, .query = text("role=nobody") }));
	CHECK(next(P(1), WF_DIR_ENDED, &m) && m.err == -ENOBUFS);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 9999, .want = 1, .query = text("role=nobody") }));
	CHECK(next(P(1), WF_DIR_FOUND, &m) && m.err == -ENOBUFS);
	CHECK_EQ(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 5, .query = text("role=nobody") }), -EBADMSG);
	end();
}

TEST(more_kept_answers_than_a_client_may_have_call_the_oldest_back)
{
	struct wf_dir_msg m;

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	for (uint32_t i = 1; i <= WF_DIR_MOST_KEPT + 1; i++) {
		heard_n = 0;
		MUST_OK(set(P(1), P(1) + i, WF_DIR_THREAD, "w", ""));
		MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = i, .id = P(1) + i }));
		MUST(next(P(2), WF_DIR_ENTITY, &m));
	}
	CHECK(next(P(2), WF_DIR_INVALID, &m) && m.id == P(1) + 1);
	CHECK_EQ(wf_dir_server_figures(s).kept, WF_DIR_MOST_KEPT);
	end();
}

TEST(who_takes_over_gathers_first_and_gives_everyone_its_old_index)
{
	struct wf_dir_msg m;

	begin(true);
	MUST_OK(wf_dir_server_join(s, P(1), HOST_A));
	MUST(next(P(1), WF_DIR_MOVED, &m));
	CHECK_EQ(m.epoch, 2);
	CHECK_EQ(wf_dir_server_missing(s), 1);
	MUST_OK(set_at(P(1), P(1), WF_DIR_PROCESS, "prog", "", 1));
	MUST_OK(set(P(1), P(1) + 9, WF_DIR_THREAD, "w", "group=/pool"));           /* is new: whoever was there before goes first */
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = 1, .id = P(1) }));
	CHECK(next(P(1), WF_DIR_ENTITY, &m) && m.err == -EAGAIN);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 1, .query = text("kind=thread") }));
	CHECK(next(P(1), WF_DIR_FOUND, &m) && m.err == -EAGAIN);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("kind=thread") }));
	CHECK(next(P(1), WF_DIR_ENDED, &m) && m.err == -EAGAIN);
	CHECK_EQ(wf_dir_server_each(s, "kind=thread", add_id, NULL, NULL), -EAGAIN);
	MUST_OK(wf_dir_server_join(s, P(2), HOST_A));
	MUST_OK(set_at(P(2), P(2), WF_DIR_PROCESS, "prog", "", 0));
	MUST_OK(set_at(P(2), P(2) + 1, WF_DIR_THREAD, "w", "group=/pool", 1));
	MUST_OK(set_at(P(2), P(2) + 2, WF_DIR_THREAD, "w", "group=/pool", 0));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_HELD, .epoch = 1 }));
	CHECK_EQ(wf_dir_server_missing(s), 2);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_HELD, .epoch = 2 }));
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_HELD, .epoch = 2 }));
	CHECK_EQ(wf_dir_server_missing(s), 0);
	wf_dir_server_gathered(s);
	CHECK(next(P(1), WF_DIR_READY, &m) && next(P(2), WF_DIR_READY, &m));
	CHECK(strcmp(get(P(1), "path"), "/a/prog[1]") == 0);
	CHECK(strcmp(get(P(2) + 1, "member"), "/pool/w[1]") == 0);
	CHECK(strcmp(get(P(1) + 9, "member"), "/pool/w[2]") == 0);
	end();
}

TEST(who_joins_after_a_takeover_is_told_of_it_and_watchers_hear_of_it_once)
{
	struct wf_dir_msg m;
	int heard_of = 0;

	begin(true);
	wf_dir_server_gathered(s);
	MUST_OK(wf_dir_server_join(s, P(1), HOST_A));
	CHECK(next(P(1), WF_DIR_MOVED, &m) && m.epoch == 2);
	CHECK(next(P(1), WF_DIR_READY, &m) && m.epoch == 2);
	CHECK_EQ(wf_dir_server_missing(s), 0);
	process(2, HOST_B);
	MUST_OK(say(P(2), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("host=a kind=[pt]*") }));
	CHECK(next(P(2), WF_DIR_EVENTS, &m) && m.count == 0);
	MUST_OK(set(P(1), P(1), WF_DIR_PROCESS, "prog", ""));
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", ""));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", ""));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("kind=process") }));
	heard_n = 0;
	/* It says all of that once more, as it was told, but for a thread that has ended meanwhile. */
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_AGAIN, .epoch = 2 }));
	CHECK_EQ(wf_dir_server_figures(s).watches, 1);
	MUST_OK(set(P(1), P(1), WF_DIR_PROCESS, "prog", ""));
	MUST_OK(set(P(1), P(1) + 2, WF_DIR_THREAD, "w", ""));
	CHECK_EQ(wf_dir_server_figures(s).entities, 2 + 1 + 3);
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_HELD, .epoch = 2 }));
	CHECK_EQ(wf_dir_server_figures(s).entities, 2 + 1 + 2);
	for (; next(P(2), WF_DIR_EVENTS, &m); heard_of++) {
		struct wf_dir_event e = wf_dir_event_at(&m, 0);

		CHECK(e.id == P(1) + 1 ? e.what == WEFT_LEFT : e.what == WEFT_CHANGED);
	}
	CHECK_EQ(heard_of, 3);
	end();
}

TEST(another_job_sees_what_is_offered_and_nothing_else)
{
	char text[64];
	weft_id found[2];

	begin(false);
	process(1, HOST_A);
	process(2, HOST_B);
	process(3, HOST_B);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker load=1"));
	MUST_OK(set(P(2), P(2) + 1, WF_DIR_THREAD, "w", "role=worker load=2"));
	MUST_OK(set(P(2), P(2) + 2, WF_DIR_THREAD, "x", "role=other load=2"));
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "kind=*", found, 2), 2);
	CHECK(found[0] == P(1) + 1 && found[1] == P(2) + 1);
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "load=2", found, 1), 1);
	CHECK_EQ(found[0], P(2) + 1);
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "role=other", found, 2), 0);
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "kind=*", NULL, 0), 2);
	CHECK_EQ(wf_dir_offered_get(s, "role=worker", P(1) + 1, "load", text, sizeof(text)), 1);
	CHECK(!strcmp(text, "1"));
	CHECK_EQ(wf_dir_offered_get(s, "role=worker", P(1) + 1, "colour", text, sizeof(text)), -ENOENT);
	CHECK_EQ(wf_dir_offered_get(s, "role=worker", P(2) + 2, "load", text, sizeof(text)), -ESRCH);
	CHECK_EQ(wf_dir_offered_get(s, "role=worker", P(1), "name", text, sizeof(text)), -ESRCH);
	CHECK_EQ(wf_dir_offered_get(s, "role=worker", P(9), "name", text, sizeof(text)), -ESRCH);
	CHECK_EQ(wf_dir_offered_process(s, "role=worker", P(1)), 1);
	CHECK_EQ(wf_dir_offered_process(s, "role=worker", P(3)), 0);
	CHECK_EQ(wf_dir_offered_process(s, "role=worker", P(9)), 0);
	CHECK_EQ(wf_dir_offered_process(s, "role=worker", HOST_A), 0);
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "=", found, 2), -EINVAL);
	CHECK_EQ(wf_dir_offered_find(s, "=", "kind=*", found, 2), -EINVAL);
	end();
	begin(true);
	CHECK_EQ(wf_dir_offered_find(s, "role=worker", "kind=*", found, 2), -EAGAIN);
	CHECK_EQ(wf_dir_offered_process(s, "role=worker", P(1)), -EAGAIN);
	end();
}

TEST(nothing_is_left_when_all_have_gone)
{
	struct wf_dir_figures before, after;

	begin(false);
	before = wf_dir_server_figures(s);
	process(1, HOST_A);
	MUST_OK(set(P(1), P(1) + 1, WF_DIR_THREAD, "w", "role=worker group=/pool"));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = 1, .id = P(1) + 1 }));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 2, .max = 1, .flags = WF_DIR_KEEP, .query = text("role=worker") }));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 3, .query = text("kind=thread") }));
	MUST_OK(say(P(1), &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = 4, .want = 9, .query = text("/pool/*") }));
	wf_dir_server_gone(s, P(1));
	after = wf_dir_server_figures(s);
	CHECK_EQ(after.bytes, before.bytes);
	CHECK(after.entities == 2 && after.clients == 0 && after.watches == 0 && after.kept == 0);
	CHECK_EQ(after.tags, before.tags);
	end();
}

TEST_MAIN
