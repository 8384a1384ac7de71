/* look.c - `weft ps`, `weft ls`, `weft kill`, `weft grow`: who is in a job, signals to them, and more hosts for it.
 *
 * The command comes to a job of this user as a guest and asks as any program would. Jobs of this host are found by the names of their agents' sockets (guest.c).
 */
#include "look.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "hostlist.h"
#include "run.h"

#define JOBS 64
#define MOST 4096                       /* entities of one answer */
#define PATIENCE (5 * WEFT_S)
#define GROW_PATIENCE (70 * WEFT_S)     /* longer than the launcher's */

static const char usage[] =
	"weft ps [-j JOB]             the processes of a job\n"
	"weft ls [-j JOB] [QUERY]     who is in its directory: \"kind=thread role=worker\", \"/pool/w[3]\"; all of it\n"
	"weft kill [-j JOB] [-SIGNAL] ID...   a signal (TERM) to processes, by their numbers or ids, or to all of a host\n"
	"weft grow [-j JOB] HOSTS     hosts join a job that weft run --hosts has started: \"c:4,d:4\"; also weft grow JOB HOSTS\n"
	"  -j JOB                     which job, by the beginning of its name; not needed if there is one. A url is fine, too\n";

struct job {
	char url[160];
	char name[40];                  /* in hexadecimal digits */
};

/* Agents of this user: "@weft/USER/JOB/HOST". Of a job with several here, one is enough. */
static int jobs_find(struct job *jobs)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512], mine[32];
	int n = 0;

	if (!f)
		return 0;
	snprintf(mine, sizeof(mine), "@weft/%u/", (unsigned)geteuid());
	while (n < JOBS && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, mine), *job = at ? at + strlen(mine) : NULL;
		size_t len = job ? strspn(job, "0123456789abcdef") : 0;
		bool known = false;

		if (len != 32 || job[len] != '/')
			continue;
		at[strcspn(at, " \n")] = 0;
		for (int i = 0; i < n; i++)
			known |= !strncmp(jobs[i].name, job, len);
		if (known)
			continue;
		snprintf(jobs[n].name, sizeof(jobs[n].name), "%.*s", (int)len, job);
		snprintf(jobs[n++].url, sizeof(jobs[0].url), "weft+unix:%s", at);
	}
	fclose(f);
	return n;
}

/* The url of the job that @wanted means; NULL: none does, and that was said. */
static const char *job_choose(const char *self, const char *wanted)
{
	static struct job jobs[JOBS];
	int n, fit = 0, which = 0;

	if (wanted && !strncmp(wanted, "weft", 4))
		return wanted;
	n = jobs_find(jobs);
	for (int i = 0; i < n; i++)
		if (!wanted || !strncmp(jobs[i].name, wanted, strlen(wanted))) {
			fit++;
			which = i;
		}
	if (fit == 1)
		return jobs[which].url;
	fprintf(stderr, "weft %s: %s\n", self, n == 0 ? "no job of yours is on this host" : fit == 0 ? "no job's name begins so" : "there are several jobs; -j says which:");
	for (int i = 0; i < n; i++)
		fprintf(stderr, "  %s\n", jobs[i].name);
	return NULL;
}

/* Options up to the first word that is none; 0, or the exit code + 1. @ret_sig: NULL: signals are no options here. */
static int come_in(int argc, char **argv, int *ret_used, int *ret_sig)
{
	const char *wanted = NULL, *url;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return fputs(usage, stdout), 1;
		if (!strcmp(argv[i], "-j") && i + 1 < argc) {
			wanted = argv[++i];
		} else if (ret_sig && isdigit((unsigned char)argv[i][1])) {
			*ret_sig = atoi(argv[i] + 1);
		} else if (ret_sig && isalpha((unsigned char)argv[i][1])) {
			const char *name = !strncmp(argv[i] + 1, "SIG", 3) ? argv[i] + 4 : argv[i] + 1;

			for (*ret_sig = 1; *ret_sig < 65 && (!sigabbrev_np(*ret_sig) || strcmp(sigabbrev_np(*ret_sig), name) != 0); ++*ret_sig)
				;
			if (*ret_sig == 65)
				return fprintf(stderr, "weft %s: %s: no such signal\n", argv[0], argv[i]), 1 + CODE_USAGE;
		} else {
			return fputs(usage, stderr), 1 + CODE_USAGE;
		}
	}
	*ret_used = i;
	url = job_choose(argv[0], wanted);
	if (!url)
		return 1 + CODE_FAULT;
	if (weft_init(WEFT(init_opts, .join = url, .name = "weft")) == 0)
		return 0;
	fprintf(stderr, "weft %s: %s\n", argv[0], weft_last_error());
	return 1 + CODE_FAULT;
}

static int find(const char *self, const char *query, weft_id *ids)
{
	int n = weft_dir_find(query, 0, weft_in(PATIENCE), ids, MOST);

	if (n < 0)
		fprintf(stderr, "weft %s: %s\n", self, weft_last_error());
	return n < MOST ? n : MOST;
}

static const char *text_of(weft_id id, const char *key, char *room, size_t n)
{
	return weft_dir_get(id, key, weft_in(PATIENCE), room, n) < 0 ? "-" : room;
}

int ps_main(int argc, char **argv)
{
	static weft_id ids[MOST];
	char host[128], name[128], pid[32];
	int used, r = come_in(argc, argv, &used, NULL), n;

	if (r)
		return r - 1;
	n = used < argc ? (fputs(usage, stderr), -1) : find(argv[0], "kind=process", ids);
	if (n >= 0)
		printf("%7s  %-20s %8s  %s\n", "process", "host", "pid", "program");
	for (int i = 0; i < n; i++)
		if (ids[i] != weft_process())
			printf("%7u  %-20s %8s  %s\n", weft_id_split(ids[i]).process, text_of(ids[i], "host", host, sizeof(host)),
			       text_of(ids[i], "pid", pid, sizeof(pid)), text_of(ids[i], "name", name, sizeof(name)));
	weft_fini(weft_in(WEFT_S));
	return n < 0 ? CODE_FAULT : 0;
}

int ls_main(int argc, char **argv)
{
	static weft_id ids[MOST];
	static char text[16384];
	int used, r = come_in(argc, argv, &used, NULL), n;

	if (r)
		return r - 1;
	n = argc - used > 1 ? (fputs(usage, stderr), -1) : find(argv[0], used < argc ? argv[used] : "kind=*", ids);
	for (int i = 0; i < n; i++)
		if (weft_id_split(ids[i]).process != weft_id_split(weft_process()).process &&
		    weft_dir_get(ids[i], NULL, weft_in(PATIENCE), text, sizeof(text)) >= 0)
			puts(text);
	weft_fini(weft_in(WEFT_S));
	return n < 0 ? CODE_FAULT : 0;
}

/* A process's number, or an id. */
static bool id_read(const char *text, weft_id *ret_id)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (isdigit((unsigned char)*text) && !*end && n > 0 && n < 1u << 20) {
		*ret_id = (weft_id)n << 32;
		return true;
	}
	return weft_id_parse(text, ret_id) == 0;
}

int kill_main(int argc, char **argv)
{
	int used, sig = SIGTERM, code = 0, r = come_in(argc, argv, &used, &sig);

	if (r)
		return r - 1;
	if (used == argc)
		code = (fputs(usage, stderr), CODE_USAGE);
	for (int i = used; i < argc; i++) {
		weft_id id = 0;

		if (id_read(argv[i], &id) && weft_kill(id, sig) == 0)
			continue;
		fprintf(stderr, "weft kill: %s: %s\n", argv[i], id ? weft_last_error() : "neither a number nor an id");
		code = CODE_FAULT;
	}
	weft_fini(weft_in(WEFT_S));
	return code;
}

/* How many hosts @text asks for; less than 0: it is no list, which was said. */
static int hosts_asked(const char *text)
{
	struct hostlist list;
	char words[256];
	int n;

	if (hostlist_commas(text, &list, words, sizeof(words)) < 0)
		return fprintf(stderr, "weft grow: %s\n", words), -1;
	n = (int)list.count;
	hostlist_free(&list);
	return n;
}

int grow_main(int argc, char **argv)
{
	static char text[16384], option[] = "-j";
	weft_id ids[HOSTLIST_HOSTS];
	char *named[] = { argv[0], option, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL, NULL };
	int used, asked, r, n;

	if (argc == 3 && argv[1][0] != '-') {
		argc = 4;
		argv = named;
	}
	r = come_in(argc, argv, &used, NULL);
	if (r)
		return r - 1;
	asked = argc - used == 1 ? hosts_asked(argv[used]) : (fputs(usage, stderr), -1);
	n = asked < 0 ? 0 : weft_job_grow(argv[used], weft_in(GROW_PATIENCE), ids, HOSTLIST_HOSTS);
	if (n < asked)
		fprintf(stderr, "weft grow: %s\n", weft_last_error());
	for (int i = 0; i < n; i++)
		if (weft_dir_get(ids[i], NULL, weft_in(PATIENCE), text, sizeof(text)) >= 0)
			puts(text);
	weft_fini(weft_in(WEFT_S));
	return asked < 0 ? CODE_USAGE : n < asked ? CODE_FAULT : 0;
}
