/* options.c - the command line of `weft run`.
 *
 *   OPTIONS PROGRAM ARGUMENTS : OPTIONS PROGRAM ARGUMENTS ...
 *
 * Between two colons stands a part: a program, how many processes run it, and what is theirs alone. All other options are
 * the job's, wherever they stand.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#include "run.h"
#include "wire/hosts.h"

static const char usage[] =
	"weft run [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n"
	"  -n N               so many processes, 1 to 1024 (1)\n"
	"  --env NAME=VALUE   put this into their environment; may be given several times\n"
	"  --wdir DIR         start them in that directory\n"
	"                     these three are for the program that follows, the others for the whole job\n"
	"  --hosts A:2,B:2    the job is on several hosts, so many processes on each; this command starts those\n"
	"  --host I           of one of them, counted from 0; the others are started there likewise\n"
	"  --ports P[-Q]      where they listen: the first process of a host on port P, the next on P + 1 ..., none beyond Q (7700)\n"
	"  --key FILE         64 hexadecimal digits, private to its owner, the same on all hosts\n"
	"  -l, --label        put [rank] before every line of output\n"
	"  --timeout S        end the job after S seconds\n"
	"  --stop-limit S     kill a process that was stopped for S seconds (never)\n"
	"  --kill-on-fail     end the job when a process fails (the others go on)\n"
	"  -v, --verbose      say who joins, leaves and ends\n"
	"  -h, --help         this\n";

/* Seconds above 0; a negative number: that is none. */
static double seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	return *text && !*end && s > 0 && s <= 1e9 ? s : -1;
}

static bool count_read(const char *text, unsigned *ret_count)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (!*text || *end || errno || n < 1 || n > RUN_MOST)
		return false;
	*ret_count = (unsigned)n;
	return true;
}

/* A port, or the first and the last of several. */
static bool ports_read(const char *text, struct run *run)
{
	char *end = NULL;
	unsigned long first = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0, last = 65535;

	if (end && *end == '-' && isdigit((unsigned char)end[1]))
		last = strtoul(end + 1, &end, 10);
	if (!end || *end || first < 1 || first > last || last > 65535)
		return false;
	run->ports = (unsigned)first;
	run->ports_last = (unsigned)last;
	return true;
}

static bool host_read(const char *text, unsigned *ret_host)
{
	char *end = NULL;
	unsigned long n = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

	*ret_host = (unsigned)n;
	return end && !*end && n < RUN_MOST;
}

/* Which of the job's processes are this host's. */
static bool hosts_read(struct run *run)
{
	static struct wf_hosts_map map;

	if (wf_hosts_parse(run->hosts, run->ports, &map) < 0) {
		fprintf(stderr, "weft run: %s\n", weft_last_error());
		return false;
	}
	for (unsigned i = 0; i < map.hosts; i++)
		if (map.host[i].count > run->ports_last - run->ports + 1) {
			fprintf(stderr, "weft run: --ports: there are %u, and %s has %u processes\n", run->ports_last - run->ports + 1, map.host[i].address,
				map.host[i].count);
			return false;
		}
	if (run->host >= map.hosts || wf_hosts_count(&map) > RUN_MOST || !run->key_path) {
		fprintf(stderr, "weft run: %s\n", !run->key_path ? "--hosts wants --key too" :
					       run->host >= map.hosts ? "--host: there are not so many" : "too many processes");
		return false;
	}
	run->map = &map;
	run->first = map.host[run->host].first - 1;
	run->count = map.host[run->host].count;
	run->total = wf_hosts_count(&map);
	return true;
}

/* The options of one part, which begins at argv[1]; *@ret_used: argv's place of the program. -1: go on; else the exit code. */
static int part_options(struct run *run, struct part *part, int argc, char **argv, int *ret_used)
{
	enum { TIMEOUT = 256, STOP_LIMIT, KILL_ON_FAIL, HOSTS, HOST, PORTS, KEY, ENV, WDIR };
	static const struct option known[] = {
		{ "env", required_argument, NULL, ENV },
		{ "wdir", required_argument, NULL, WDIR },
		{ "hosts", required_argument, NULL, HOSTS },
		{ "host", required_argument, NULL, HOST },
		{ "ports", required_argument, NULL, PORTS },
		{ "key", required_argument, NULL, KEY },
		{ "label", no_argument, NULL, 'l' },
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "stop-limit", required_argument, NULL, STOP_LIMIT },
		{ "kill-on-fail", no_argument, NULL, KILL_ON_FAIL },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	opterr = 0;
	optind = 0;     /* anew for every part */
	while ((option = getopt_long(argc, argv, "+:n:lvh", known, NULL)) >= 0) {
		switch (option) {
		case 'n':
			if (count_read(optarg, &part->count))
				break;
			fprintf(stderr, "weft run: -n %s: a job has 1 to %d processes\n", optarg, RUN_MOST);
			return CODE_USAGE;
		case ENV:
			part->env[part->env_count++] = optarg;
			if (*optarg != '=' && strchr(optarg, '='))
				break;
			fprintf(stderr, "weft run: --env %s: not NAME=VALUE\n", optarg);
			return CODE_USAGE;
		case WDIR:
			part->wdir = optarg;
			break;
		case HOSTS:
			run->hosts = optarg;
			break;
		case HOST:
			if (host_read(optarg, &run->host))
				break;
			fprintf(stderr, "weft run: --host %s: not a number of a host\n", optarg);
			return CODE_USAGE;
		case PORTS:
			if (ports_read(optarg, run))
				break;
			fprintf(stderr, "weft run: --ports %s: not a port number, nor two of them as in 7700-7799\n", optarg);
			return CODE_USAGE;
		case KEY:
			run->key_path = optarg;
			break;
		case 'l':
			run->label = true;
			break;
		case 'v':
			run->verbose = true;
			break;
		case KILL_ON_FAIL:
			run->kill_on_fail = true;
			break;
		case TIMEOUT:
		case STOP_LIMIT: {
			double s = seconds(optarg);

			*(option == TIMEOUT ? &run->timeout : &run->stop_limit) = s;
			if (s > 0)
				break;
			fprintf(stderr, "weft run: %s: not a time in seconds\n", optarg);
			return CODE_USAGE;
		}
		case 'h':
			fputs(usage, stdout);
			return 0;
		case ':':
			fprintf(stderr, "weft run: %s wants a value (weft run --help)\n", argv[optind - 1]);
			return CODE_USAGE;
		default:
			fprintf(stderr, "weft run: %s: no such option (weft run --help)\n", argv[optind - 1]);
			return CODE_USAGE;
		}
	}
	*ret_used = optind;
	return -1;
}

static bool is_colon(const char *word)
{
	return !strcmp(word, ":");
}

/* All parts; those of the colons that divide them become the ends of lists of arguments. As part_options. */
static int parts_read(struct run *run, int argc, char **argv)
{
	char **env = calloc((size_t)argc, sizeof(*env));
	int r, used;

	run->parts = calloc((size_t)argc + 1, sizeof(*run->parts));
	if (!env || !run->parts) {
		fprintf(stderr, "weft run: no memory\n");
		return CODE_FAULT;
	}
	for (;;) {
		struct part *part = &run->parts[run->part_count++];

		part->count = 1;
		part->env = env;
		r = part_options(run, part, argc, argv, &used);
		if (r >= 0)
			return r;
		if (used == argc || is_colon(argv[used])) {
			fprintf(stderr, "weft run: which program%s? (weft run --help)\n",
				used < argc ? " before the :" : run->part_count > 1 ? " after the :" : "");
			return CODE_USAGE;
		}
		env += part->env_count;
		part->argv = argv + used;
		while (used < argc && !is_colon(argv[used]))
			used++;
		if (used == argc)
			return -1;
		argv[used] = NULL;
		argc -= used;
		argv += used;
	}
}

/* Which ranks are whose. */
static bool parts_number(struct run *run)
{
	unsigned total = 0;

	if (run->hosts && run->part_count == 1)
		run->parts[0].count = run->total;
	for (unsigned i = 0; i < run->part_count; i++) {
		run->parts[i].first = total;
		total += run->parts[i].count;
		if (total > RUN_MOST) {
			fprintf(stderr, "weft run: a job has 1 to %d processes\n", RUN_MOST);
			return false;
		}
	}
	if (!run->hosts)
		run->count = run->total = total;
	if (run->total == total)
		return true;
	fprintf(stderr, "weft run: the programs are %u processes, --hosts has room for %u\n", total, run->total);
	return false;
}

int run_options(struct run *run, int argc, char **argv)
{
	int r;

	memset(run, 0, sizeof(*run));
	run->ports = 7700;
	run->ports_last = 65535;
	r = parts_read(run, argc, argv);
	if (r >= 0)
		return r;
	if ((run->hosts && !hosts_read(run)) || !parts_number(run))
		return CODE_USAGE;
	if (!run->hosts || wf_key_read(run->key_path, &run->key) == 0)
		return -1;
	fprintf(stderr, "weft run: %s\n", weft_last_error());
	return CODE_USAGE;
}
