/* brief.c - see brief.h. */
#include "brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LIST_MOST 65536u                /* words of a list: arguments, variables */

void hello_make(struct hello *ret_hello)
{
	struct utsname u;

	memset(ret_hello, 0, sizeof(*ret_hello));
	if (uname(&u) == 0) {
		snprintf(ret_hello->machine, sizeof(ret_hello->machine), "%.*s", (int)sizeof(ret_hello->machine) - 1, u.machine);
		snprintf(ret_hello->name, sizeof(ret_hello->name), "%.*s", (int)sizeof(ret_hello->name) - 1, u.nodename);
	}
	snprintf(ret_hello->version, sizeof(ret_hello->version), "%s", WF_VERSION);
	ret_hello->order = HELLO_ORDER;
	ret_hello->page = (uint32_t)sysconf(_SC_PAGESIZE);
}

void hello_write(struct body *b, const struct hello *h)
{
	body_bytes(b, h, sizeof(*h));
}

bool hello_read(struct body *b, struct hello *ret_hello)
{
	const void *bytes = body_get_bytes(b, sizeof(*ret_hello));

	if (!bytes || !body_whole(b))
		return false;
	memcpy(ret_hello, bytes, sizeof(*ret_hello));
	ret_hello->version[sizeof(ret_hello->version) - 1] = ret_hello->machine[sizeof(ret_hello->machine) - 1] = ret_hello->name[sizeof(ret_hello->name) - 1] = 0;
	return true;
}

void hello_compare(const struct hello *a, const char *a_name, const struct hello *b, const char *b_name, char *words, size_t n)
{
	words[0] = 0;
	if (strcmp(a->version, b->version) != 0)
		snprintf(words, n, "%s has weft %s, %s has weft %s", a_name, a->version, b_name, b->version);
	else if (a->order != b->order)
		snprintf(words, n, "%s (%s) and %s (%s) do not write numbers in the same byte order, which is not supported yet", a_name, a->machine, b_name, b->machine);
	else if (a->page != b->page)
		snprintf(words, n, "%s has pages of %u bytes, %s of %u, which is not supported yet", a_name, a->page, b_name, b->page);
}

/* Lists of texts */

static void list_write(struct body *b, char *const *list, size_t count)
{
	body_u32(b, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		body_text(b, list[i]);
}

static size_t list_count(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* With a NULL behind it. */
static char **list_read(struct body *b, size_t *ret_count)
{
	uint32_t n = body_get32(b);
	char **list;

	if (b->bad || n > LIST_MOST || n > (b->n - b->at) / 5) {        /* each has a length and an end */
		b->bad = true;
		return NULL;
	}
	list = calloc((size_t)n + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < n; i++) {
		list[i] = (char *)(uintptr_t)body_get_text(b);
		b->bad |= !list[i];
	}
	b->bad |= !list;
	*ret_count = n;
	return list;
}

/* The whole */

static void part_write(struct body *b, const struct part *p)
{
	body_u32(b, p->first);
	body_u32(b, p->count);
	list_write(b, p->argv, list_count(p->argv));
	list_write(b, p->env, p->env_count);
	body_text(b, p->wdir);
}

static void part_read(struct body *b, struct part *ret_part)
{
	size_t words = 0;

	ret_part->first = body_get32(b);
	ret_part->count = body_get32(b);
	ret_part->argv = list_read(b, &words);
	ret_part->env = list_read(b, &ret_part->env_count);
	ret_part->wdir = body_get_text(b);
	b->bad |= !words;
}

void brief_write(struct body *b, const struct run *run, unsigned host, const char *adapter, char *const *environment, const char *directory)
{
	body_bytes(b, run->job, sizeof(run->job));
	body_bytes(b, run->key.bytes, sizeof(run->key.bytes));
	body_u32(b, host);
	body_u32(b, run->hosts_count);
	body_text(b, adapter);
	body_u32(b, run->ports);
	body_u32(b, run->ports_last);
	body_u32(b, (uint32_t)(run->verbose | run->kill_on_fail << 1 | run->label << 2 | run->map_shown << 3));
	body_u32(b, (uint32_t)(run->stop_limit * 1000));
	body_u32(b, (uint32_t)run->silence_ms);
	body_u32(b, run->bind);
	body_u32(b, run->total);
	for (unsigned i = 0; i < run->total; i++)
		body_u32(b, run->host_of[i]);
	body_u32(b, run->part_count);
	for (unsigned i = 0; i < run->part_count; i++)
		part_write(b, &run->parts[i]);
	body_text(b, directory);
	list_write(b, environment, list_count(environment));
}

static void ranks_read(struct body *b, struct run *run)
{
	run->total = body_get32(b);
	if (b->bad || run->total < 1 || run->total > RUN_MOST || run->host >= run->hosts_count) {
		b->bad = true;
		return;
	}
	run->host_of = calloc(run->total, sizeof(*run->host_of));
	run->ranks = calloc(run->total, sizeof(*run->ranks));
	b->bad |= !run->host_of || !run->ranks;
	for (unsigned i = 0; !b->bad && i < run->total; i++) {
		run->host_of[i] = body_get32(b);
		if (run->host_of[i] == run->host)
			run->ranks[run->count++] = i;
		b->bad |= run->host_of[i] >= run->hosts_count;
	}
}

static void parts_read(struct body *b, struct run *run)
{
	unsigned next = 0;

	run->part_count = body_get32(b);
	if (b->bad || run->part_count < 1 || run->part_count > RUN_MOST) {
		b->bad = true;
		return;
	}
	run->parts = calloc(run->part_count, sizeof(*run->parts));
	b->bad |= !run->parts;
	for (unsigned i = 0; !b->bad && i < run->part_count; i++) {
		part_read(b, &run->parts[i]);
		b->bad |= run->parts[i].first != next || run->parts[i].count < 1 || run->parts[i].count > run->total - next;
		next += run->parts[i].count;
	}
	b->bad |= next != run->total;
}

bool brief_read(struct body *b, struct run *ret_run, char ***ret_environment, const char **ret_directory)
{
	const void *job = body_get_bytes(b, sizeof(ret_run->job)), *key = body_get_bytes(b, sizeof(ret_run->key.bytes));
	uint32_t flags;
	size_t n;

	memset(ret_run, 0, sizeof(*ret_run));
	if (b->bad)
		return false;
	memcpy(ret_run->job, job, sizeof(ret_run->job));
	memcpy(ret_run->key.bytes, key, sizeof(ret_run->key.bytes));
	ret_run->host = body_get32(b);
	ret_run->hosts_count = body_get32(b);
	ret_run->adapter = body_get_text(b);
	ret_run->ports = body_get32(b);
	ret_run->ports_last = body_get32(b);
	flags = body_get32(b);
	ret_run->verbose = flags & 1;
	ret_run->kill_on_fail = flags >> 1 & 1;
	ret_run->label = flags >> 2 & 1;
	ret_run->map_shown = flags >> 3 & 1;
	ret_run->stop_limit = body_get32(b) / 1000.0;
	ret_run->silence_ms = (int)body_get32(b);
	ret_run->bind = (enum bind)body_get32(b);
	ranks_read(b, ret_run);
	parts_read(b, ret_run);
	*ret_directory = body_get_text(b);
	*ret_environment = list_read(b, &n);
	ret_run->meshed = true;
	return body_whole(b) && ret_run->bind <= BIND_SOCKET && ret_run->ports <= ret_run->ports_last && ret_run->ports_last <= 65535;
}
