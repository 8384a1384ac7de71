/* state.c - `weft state PID`: what goes on in a process, printed. The sample is the library's (port/state_far.c). */
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/state.h>

#include "port/sample.h"
#include "run.h"

#define RECEIVES_AT "receives at "
#define PROBES_AT "probes at "
#define LINES_MOST 4                    /* that tell what one thread waits for */

static void usage(FILE *to)
{
	fputs("weft state PID   ports, queues and who waits for whom in that process\n", to);
}

/* An id in words: a member of the job by its number, and what it is there. */
static const char *name(weft_id id, char *text, size_t n)
{
	unsigned process = (unsigned)(id >> 32) & 0xfffff, generation = (unsigned)(id >> 20) & 0xfff, local = (unsigned)id & 0xfffff;

	if (id == WEFT_ANY)
		snprintf(text, n, "anyone");
	else if (!local && id >> 52)
		snprintf(text, n, "process %u of job %u", process, (unsigned)(id >> 52));
	else if (!local)
		snprintf(text, n, "process %u", process);
	else
		snprintf(text, n, "%u.%u.%u.%u", (unsigned)(id >> 52), process, generation, local);
	return text;
}

static void print_tag(uint64_t tag)
{
	if (tag == UINT64_MAX)
		printf(", any tag");
	else
		printf(", tag %" PRIu64, tag);
}

static void print_queued(const struct weft_state_item *i)
{
	char whom[WEFT_ID_TEXT];

	name(i->whom, whom, sizeof(whom));
	if (!strcmp(i->text, "expected"))
		printf("    expected from %s", whom);
	else if (!strcmp(i->text, "to be sent"))
		printf("    to be sent to %s", whom);
	else
		printf("    %s from %s", i->text, whom);
	print_tag(i->tag);
	printf(", %" PRIu64 " bytes\n", i->len);
}

/* What @port expects, as the reason why somebody waits there: how many receives. */
static int print_reasons(const struct weft_state *s, weft_id port)
{
	char whom[WEFT_ID_TEXT];
	int n = 0;

	for (size_t k = 0; k < s->count; k++) {
		const struct weft_state_item *i = &s->items[k];

		if (i->kind != WEFT_STATE_QUEUED || i->who != port || strcmp(i->text, "expected") != 0)
			continue;
		if (++n > 4)
			continue;
		printf("%s%s", n > 1 ? "; or " : " for a message from ", name(i->whom, whom, sizeof(whom)));
		print_tag(i->tag);
	}
	if (n > 4)
		printf("; or %d more", n - 4);
	return n;
}

/* Where a thread waits, by the text of an id. */
static void print_place(const struct weft_state_item *i, const char *port)
{
	char who[WEFT_ID_TEXT];

	name(i->who, who, sizeof(who));
	printf("%s waits at %s", who, strcmp(who, port) != 0 ? port : "its own port");
}

static void print_waiter(const struct weft_state *s, const struct weft_state_item *i)
{
	bool probes = !strncmp(i->text, "probes", 6);
	char who[WEFT_ID_TEXT], whom[WEFT_ID_TEXT];

	name(i->who, who, sizeof(who));
	name(i->whom, whom, sizeof(whom));
	if (!strcmp(i->text, "sends")) {
		printf("%s waits in a send to %s", who, whom);
		print_tag(i->tag);
		printf(", %" PRIu64 " bytes", i->len);
	} else if (!strncmp(i->text, RECEIVES_AT, strlen(RECEIVES_AT)) || !strncmp(i->text, PROBES_AT, strlen(PROBES_AT))) {
		print_place(i, i->text + strlen(probes ? PROBES_AT : RECEIVES_AT));
		printf(" for a message from %s", whom);
		print_tag(i->tag);
	} else if (!strcmp(i->text, "receives from anyone") || !strcmp(i->text, "probes for anyone")) {
		print_place(i, whom);
		printf(" for a message from anyone");
		print_tag(i->tag);
	} else {
		print_place(i, whom);
		if (!probes)
			print_reasons(s, i->whom);
	}
	printf("%s\n", probes ? " (it probes)" : "");
}

/* A thread may wait for thousands at once: the first few tell what for. */
static void print_waiters(const struct weft_state *s)
{
	char who[WEFT_ID_TEXT];
	weft_id last = 0;
	int n = 0;

	for (size_t k = 0; k < s->count; k++) {
		if (s->items[k].kind != WEFT_STATE_WAITER)
			continue;
		if (s->items[k].who != last && n > LINES_MOST)
			printf("%s waits for %d more\n", name(last, who, sizeof(who)), n - LINES_MOST);
		n = s->items[k].who == last ? n + 1 : 1;
		last = s->items[k].who;
		if (n <= LINES_MOST)
			print_waiter(s, &s->items[k]);
	}
	if (n > LINES_MOST)
		printf("%s waits for %d more\n", name(last, who, sizeof(who)), n - LINES_MOST);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* A process of another host. */
static void print_abroad(const struct weft_state_item *i)
{
	char whom[WEFT_ID_TEXT];

	printf("%s: %s", name(i->whom, whom, sizeof(whom)), i->text);
	if (i->tag || i->len)
		printf("; not acknowledged %" PRIu64 " bytes, credit %" PRIu64 " bytes", i->len, i->tag);
	if (i->age)
		printf(", heard of %.3f s ago", (double)i->age / 1e9);
	printf("\n");
}

static void print_peer(const struct weft_state_item *i)
{
	char whom[WEFT_ID_TEXT];

	if (begins(i->text, "backlog"))
		printf("%s to %s: %" PRIu64 " messages\n", i->text, name(i->whom, whom, sizeof(whom)), i->len);
	else if (begins(i->text, "sends ") || begins(i->text, "landing "))
		printf("    %s\n", i->text);
	else if (begins(i->text, "of another host"))
		print_abroad(i);
	else
		printf("%s: %s\n", name(i->whom, whom, sizeof(whom)), i->text);
}

/* A lane to a process of another host. */
static void print_lane(const struct weft_state_item *i)
{
	printf("    lane %u.%u: %s", (unsigned)(i->tag >> 32), (unsigned)i->tag, i->text);
	if (i->age)
		printf(", up for %.3f s", (double)i->age / 1e9);
	if (i->len)
		printf(", %" PRIu64 " bytes of chunks under way", i->len);
	printf("\n");
}

static void print_port(const struct weft_state_item *i)
{
	char who[WEFT_ID_TEXT];

	printf("port %s \"%s\"", name(i->who, who, sizeof(who)), i->text);
	if (i->tag)
		printf(", context %#" PRIx64, i->tag);
	if (i->len)
		printf(", holds %" PRIu64 " bytes", i->len);
	printf("\n");
}

static void print_all(const struct weft_state *s)
{
	char who[WEFT_ID_TEXT];

	for (size_t k = 0; k < s->count; k++)
		if (s->items[k].kind == WEFT_STATE_PROCESS)
			printf("%s: %s\n", name(s->items[k].who, who, sizeof(who)), s->items[k].text);
	for (size_t k = 0; k < s->count; k++)
		if (s->items[k].kind == WEFT_STATE_PORT)
			print_port(&s->items[k]);
		else if (s->items[k].kind == WEFT_STATE_QUEUED)
			print_queued(&s->items[k]);
	print_waiters(s);
	for (size_t k = 0; k < s->count; k++)
		if (s->items[k].kind == WEFT_STATE_PEER)
			print_peer(&s->items[k]);
		else if (s->items[k].kind == WEFT_STATE_RAIL)
			print_lane(&s->items[k]);
}

int state_main(int argc, char **argv)
{
	struct weft_state *s;
	char *end = NULL;
	long pid;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return 0;
	}
	errno = 0;
	pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
	if (argc != 2 || end == argv[1] || *end || errno || pid <= 0 || pid > INT32_MAX) {
		usage(stderr);
		return CODE_USAGE;
	}
	if (wf_sample_far((pid_t)pid, &s) < 0) {
		fprintf(stderr, "weft state: %s\n", weft_last_error());
		return CODE_FAULT;
	}
	print_all(s);
	weft_state_close(s);
	return fflush(stdout) == 0 ? 0 : CODE_FAULT;
}
