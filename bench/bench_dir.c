/* bench_dir.c - the directory's server: 1,000 processes simulated, up to 100 published threads of each.
 *
 * The server's core is called as an agent calls it, with messages as they come over a link; nothing of sockets is in the figures. Lines:
 *   dir register/s       threads published (size: how many there are in the end)
 *   dir get/s, name/s    look-ups by id and by name, at 1,000 and at 100,000 entities: they must not grow with size
 *   dir path/s           by path, group/s by the index in a group
 *   dir query/s          two terms of which one is rare (100 of all match)
 *   dir event/s          events told, when 1,000 processes watch what changes
 *   dir change-idle/s    changes that none of 1,000 watches is about
 *   dir leave/s          entities that leave with their processes
 *   dir bytes            of the server's memory per entity
 * The answers are checked.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dir/msg.h"
#include "dir/server.h"
#include "measure.h"

#define PROCESSES 1000u
#define HOSTS 40u
#define LOOKUPS 200000u

static struct wf_dir_server *server;
static uint64_t emitted, events, found, got;

static void emit(void *ctx, weft_id process, const void *msg, size_t len)
{
	struct wf_dir_msg m;

	(void)ctx;
	(void)process;
	emitted++;
	if (wf_dir_read(msg, len, true, &m) < 0)
		die("a message that is none");
	if (m.type == WF_DIR_EVENTS && !(m.flags & WF_DIR_FIRST))
		events += m.count;
	if (m.type == WF_DIR_FOUND)
		found += m.total;
	if (m.type == WF_DIR_ENTITY)
		got += m.err == 0;
}

static weft_id process_id(unsigned p)
{
	return (weft_id)(p + 1) << 32;
}

static weft_id host_id(unsigned h)
{
	return (weft_id)(100000 + h) << 32;
}

static void say(unsigned p, const struct wf_dir_msg *m)
{
	uint8_t bytes[WF_DIR_MESSAGE];

	if (wf_dir_server_take(server, process_id(p), bytes, wf_dir_put(m, bytes)) < 0)
		die("a message that was not taken");
}

static struct wf_dir_text text(const char *t)
{
	return (struct wf_dir_text){ t, strlen(t) };
}

static void publish(unsigned p, unsigned local, const char *name, const char *load)
{
	uint8_t list[256];
	struct wf_dir_msg m = { .type = WF_DIR_SET, .id = process_id(p) + local, .version = 1, .index = WF_DIR_NOWHERE, .member_index = WF_DIR_NOWHERE,
				.kind = local ? WF_DIR_THREAD : WF_DIR_PROCESS, .name = text(name), .list = list };

	if (local) {
		m.list_bytes = wf_dir_attr_put(list, "role", "worker");
		m.list_bytes += wf_dir_attr_put(list + m.list_bytes, "load", load);
		m.count = 2;
		if (local == 1) {
			m.list_bytes += wf_dir_attr_put(list + m.list_bytes, "group", "/pool");
			m.count++;
		}
	}
	say(p, &m);
}

static void ask(unsigned p, uint32_t number, const char *query)
{
	say(p, &(struct wf_dir_msg){ .type = WF_DIR_FIND, .number = number, .max = 1, .query = text(query) });
}

static double rate(uint64_t n, uint64_t since)
{
	return (double)n * 1e9 / (double)(clock_ns() - since);
}

static void fill(unsigned threads)
{
	uint64_t since;
	char name[32], load[8];

	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, 1, false);
	if (!server)
		die("no server");
	for (unsigned h = 0; h < HOSTS; h++) {
		snprintf(name, sizeof(name), "n%u", h);
		if (wf_dir_server_host(server, host_id(h), name, NULL) < 0)
			die("no host");
	}
	for (unsigned p = 0; p < PROCESSES; p++) {
		if (wf_dir_server_join(server, process_id(p), host_id(p % HOSTS)) < 0)
			die("no process");
		snprintf(name, sizeof(name), "s%u", p);
		publish(p, 0, name, "");
	}
	since = clock_ns();
	for (unsigned t = 1; t <= threads / PROCESSES; t++)
		for (unsigned p = 0; p < PROCESSES; p++) {
			snprintf(name, sizeof(name), t == 1 ? "w" : "w%u.%u", p, t);
			snprintf(load, sizeof(load), "%u", p % 10 + 10 * (t % 100));
			publish(p, t, name, load);
		}
	sample("dir", "register/s", threads, rate(threads, since));
}

static void look_up(unsigned threads)
{
	unsigned per = threads / PROCESSES;
	char query[64];
	uint64_t since;

	got = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < LOOKUPS; i++)
		say(i % PROCESSES, &(struct wf_dir_msg){ .type = WF_DIR_GET, .number = i, .id = process_id(i * 7919u % PROCESSES) + 1 + i % per });
	sample("dir", "get/s", threads, rate(LOOKUPS, since));
	if (got != LOOKUPS)
		die("%ju of %u ids were found", (uintmax_t)got, LOOKUPS);
	found = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		snprintf(query, sizeof(query), "name=s%u", i * 7919u % PROCESSES);
		ask(i % PROCESSES, i, query);
	}
	sample("dir", "name/s", threads, rate(LOOKUPS, since));
	if (found != LOOKUPS)
		die("%ju of %u names were found", (uintmax_t)found, LOOKUPS);
	found = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		snprintf(query, sizeof(query), "/n%u/s%u/w", i % PROCESSES % HOSTS, i % PROCESSES);
		ask(i % PROCESSES, i, query);
	}
	sample("dir", "path/s", threads, rate(LOOKUPS, since));
	if (found != LOOKUPS)
		die("%ju of %u paths were found", (uintmax_t)found, LOOKUPS);
	found = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		snprintf(query, sizeof(query), "/pool/w[%u]", i * 7919u % PROCESSES);
		ask(i % PROCESSES, i, query);
	}
	sample("dir", "group/s", threads, rate(LOOKUPS, since));
	if (found != LOOKUPS)
		die("%ju of %u members were found", (uintmax_t)found, LOOKUPS);
}

static void query(unsigned threads)
{
	uint32_t times = 2000;
	uint64_t since;

	found = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < times; i++)
		ask(i % PROCESSES, i, threads > PROCESSES ? "kind=thread role=worker load=25" : "kind=thread role=worker load=15");
	sample("dir", "query/s", threads, rate(times, since));
	if (found != 100u * times)
		die("%ju found, not %u each", (uintmax_t)found, 100u);
}

static void watch(unsigned threads)
{
	uint64_t since;
	uint32_t changes = 200, idle = 20000;

	for (unsigned p = 0; p < PROCESSES; p++)
		say(p, &(struct wf_dir_msg){ .type = WF_DIR_WATCH, .number = 1, .query = text("role=worker load=burning") });
	since = clock_ns();
	for (uint32_t i = 0; i < idle; i++)
		publish(i % PROCESSES, 1, "w", i / PROCESSES % 2 ? "1" : "2");
	sample("dir", "change-idle/s", threads, rate(idle, since));
	events = 0;
	since = clock_ns();
	for (uint32_t i = 0; i < changes; i++)
		publish(i / 2, 1, "w", i % 2 ? "3" : "burning");
	sample("dir", "event/s", threads, rate(events, since));
	if (events != (uint64_t)changes * PROCESSES)
		die("%ju events", (uintmax_t)events);
}

int main(void)
{
	static const unsigned sizes[] = { 1000, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wf_dir_figures empty, full;
		uint64_t since;

		fill(sizes[i]);
		full = wf_dir_server_figures(server);
		sample("dir", "bytes", sizes[i], (double)full.bytes / (double)full.entities);
		look_up(sizes[i]);
		query(sizes[i]);
		watch(sizes[i]);
		since = clock_ns();
		for (unsigned p = 0; p < PROCESSES; p++)
			wf_dir_server_gone(server, process_id(p));
		sample("dir", "leave/s", sizes[i], rate(full.entities - HOSTS, since));
		empty = wf_dir_server_figures(server);
		if (empty.entities != HOSTS || empty.watches || empty.kept)
			die("something is left");
		wf_dir_server_free(server);
	}
	return 0;
}
