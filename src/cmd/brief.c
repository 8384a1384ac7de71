/* brief.c - see brief.h. */
#include "brief.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "hostlist.h"

#define STOP_MOST 4000000               /* seconds; who waits longer than a month is not in a hurry */

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

void hello_write(struct wf_body *b, const struct hello *h)
{
	wf_body_bytes(b, h, sizeof(*h));
}

bool hello_read(struct wf_body *b, struct hello *ret_hello)
{
	const void *bytes = wf_body_get_bytes(b, sizeof(*ret_hello));

	if (!bytes || !wf_body_whole(b))
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

/* The whole */

static void part_write(struct wf_body *b, const struct part *p)
{
	wf_body_u32(b, p->first);
	wf_body_u32(b, p->count);
	wf_body_list(b, p->argv, wf_list_count(p->argv));
	wf_body_list(b, p->env, p->env_count);
	wf_body_text(b, p->wdir);
}

static void part_read(struct wf_body *b, struct part *ret_part)
{
	size_t words = 0;

	ret_part->first = wf_body_get32(b);
	ret_part->count = wf_body_get32(b);
	ret_part->argv = wf_body_get_list(b, &words);
	ret_part->env = wf_body_get_list(b, &ret_part->env_count);
	ret_part->wdir = wf_body_get_text(b);
	b->bad |= !words;
}

void brief_write(struct wf_body *b, const struct run *run, unsigned host, const char *adapter, char *const *environment, const char *directory)
{
	wf_body_bytes(b, run->job, sizeof(run->job));
	wf_body_bytes(b, run->key.bytes, sizeof(run->key.bytes));
	wf_body_u32(b, host);
	wf_body_u32(b, run->hosts_count);
	wf_body_text(b, adapter);
	wf_body_u32(b, run->ports);
	wf_body_u32(b, run->ports_last);
	wf_body_u32(b, (uint32_t)(run->verbose | run->kill_on_fail << 1 | run->label << 2 | run->map_shown << 3));
	wf_body_u32(b, (uint32_t)(run->stop_limit < STOP_MOST ? run->stop_limit * 1000 + 0.5 : STOP_MOST * 1000.0));
	wf_body_u32(b, (uint32_t)run->silence_ms);
	wf_body_u32(b, run->bind);
	wf_body_u32(b, run->total);
	for (unsigned i = 0; i < run->total; i++)
		wf_body_u32(b, run->host_of[i]);
	wf_body_u32(b, run->part_count);
	for (unsigned i = 0; i < run->part_count; i++)
		part_write(b, &run->parts[i]);
	wf_body_text(b, directory);
	wf_body_list(b, environment, wf_list_count(environment));
}

static void ranks_read(struct wf_body *b, struct run *run)
{
	run->total = wf_body_get32(b);
	if (b->bad || run->total < 1 || run->total > RUN_MOST || run->host >= run->hosts_count) {
		b->bad = true;
		return;
	}
	run->host_of = calloc(run->total, sizeof(*run->host_of));
	run->ranks = calloc(run->total, sizeof(*run->ranks));
	b->bad |= !run->host_of || !run->ranks;
	for (unsigned i = 0; !b->bad && i < run->total; i++) {
		run->host_of[i] = wf_body_get32(b);
		if (run->host_of[i] == run->host)
			run->ranks[run->count++] = i;
		b->bad |= run->host_of[i] >= run->hosts_count;
	}
}

static void parts_read(struct wf_body *b, struct run *run)
{
	unsigned next = 0;

	run->part_count = wf_body_get32(b);
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

void brief_free(struct run *run, char **environment)
{
	for (unsigned i = 0; run->parts && i < run->part_count; i++) {
		free(run->parts[i].argv);
		free(run->parts[i].env);
	}
	free(run->parts);
	free(run->host_of);
	free(run->ranks);
	free(environment);
}

bool brief_read(struct wf_body *b, struct run *ret_run, char ***ret_environment, const char **ret_directory)
{
	const void *job = wf_body_get_bytes(b, sizeof(ret_run->job)), *key = wf_body_get_bytes(b, sizeof(ret_run->key.bytes));
	uint32_t flags, silence;
	size_t n;

	memset(ret_run, 0, sizeof(*ret_run));
	*ret_environment = NULL;
	if (b->bad)
		return false;
	memcpy(ret_run->job, job, sizeof(ret_run->job));
	memcpy(ret_run->key.bytes, key, sizeof(ret_run->key.bytes));
	ret_run->host = wf_body_get32(b);
	ret_run->hosts_count = wf_body_get32(b);
	ret_run->adapter = wf_body_get_text(b);
	ret_run->ports = wf_body_get32(b);
	ret_run->ports_last = wf_body_get32(b);
	flags = wf_body_get32(b);
	ret_run->verbose = flags & 1;
	ret_run->kill_on_fail = flags >> 1 & 1;
	ret_run->label = flags >> 2 & 1;
	ret_run->map_shown = flags >> 3 & 1;
	ret_run->stop_limit = wf_body_get32(b) / 1000.0;
	silence = wf_body_get32(b);
	ret_run->silence_ms = (int)(silence <= INT_MAX ? silence : 0);
	ret_run->bind = (enum bind)wf_body_get32(b);
	ranks_read(b, ret_run);
	parts_read(b, ret_run);
	*ret_directory = wf_body_get_text(b);
	*ret_environment = wf_body_get_list(b, &n);
	ret_run->meshed = true;
	if (wf_body_whole(b) && !(flags >> 4) && ret_run->silence_ms > 0 && ret_run->stop_limit <= STOP_MOST && ret_run->bind <= BIND_SOCKET && ret_run->hosts_count <= HOSTLIST_HOSTS &&
	    ret_run->ports <= ret_run->ports_last && ret_run->ports_last <= 65535)
		return true;
	brief_free(ret_run, *ret_environment);
	return false;
}
