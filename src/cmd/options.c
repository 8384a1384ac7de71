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

#include "hostlist.h"
#include "run.h"
#include "template.h"
#include "wire/hosts.h"

static const char usage[] =
	"weft run [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n"
	"  -n N               so many processes, 1 to 1024 (1)\n"
	"  --env NAME=VALUE   put this into their environment; may be given several times\n"
	"  --wdir DIR         start them in that directory\n"
	"                     these three are for the program that follows, the others for the whole job\n"
	"  --hosts A:2,B:2    the job is on these hosts, up to so many processes on each (-n: as many as they have room for)\n"
	"  --hostfile FILE    likewise, a host on each line\n"
	"  --net              this host alone, with a network all the same: other jobs may attach (weft_job_offer)\n"
	"  --by-node          one process to each host in turn (fill a host, then the next)\n"
	"  --oversubscribe    more processes than the hosts have room for\n"
	"  --launcher WORDS   what starts a command on {host} (ssh -o BatchMode=yes {host})\n"
	"  --ports P[-Q]      where processes listen for those of other hosts (anywhere)\n"
	"  --silence S        a host that was not heard for so long is given up (5)\n"
	"  --bind WHAT        none, core, numa or socket: what each process has for itself (none)\n"
	"  --map              say where each process runs\n"
	"  --host I           this command starts only those of the host I of --hosts, counted from 0, and the others are started\n"
	"                     by hand likewise: the first process of a host on port P of --ports (7700), the next on P + 1 ...\n"
	"  --key FILE         with it: 64 hexadecimal digits, private to its owner, the same on all hosts\n"
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
	run->count = map.host[run->host].count;
	run->total = wf_hosts_count(&map);
	run->hosts_count = map.hosts;
	run->ranks = calloc(run->count, sizeof(*run->ranks));
	for (unsigned i = 0; run->ranks && i < run->count; i++)
		run->ranks[i] = map.host[run->host].first - 1 + i;
	return run->ranks != NULL;
}

/* The hosts that one launcher starts. */
static bool list_read(struct run *run)
{
	static struct hostlist list;
	char words[256];
	int r;

	if (run->hosts && run->hostfile) {
		fprintf(stderr, "weft run: --hosts or --hostfile, not both\n");
		return false;
	}
	r = run->hosts ? hostlist_commas(run->hosts, &list, words, sizeof(words)) : hostlist_read(run->hostfile, &list, words, sizeof(words));
	if (r == 0 && run->launcher)
		r = template_check(run->launcher, words, sizeof(words));
	if (r < 0) {
		fprintf(stderr, "weft run: %s\n", words);
		return false;
	}
	run->list = &list;
	return true;
}

/* Which rank is on which host. */
static bool list_lay(struct run *run)
{
	char words[256];

	run->host_of = calloc(run->total, sizeof(*run->host_of));
	if (!run->host_of)
		return false;
	if (hostlist_lay(run->list, run->total, run->by_node ? HOSTLIST_BY_NODE : HOSTLIST_BY_SLOT, run->oversubscribe, run->host_of, words, sizeof(words)) == 0)
		return true;
	fprintf(stderr, "weft run: %s\n", words);
	return false;
}

/* The options of one part, which begins at argv[1]; *@ret_used: argv's place of the program. -1: go on; else the exit code. */
static int part_options(struct run *run, struct part *part, int argc, char **argv, int *ret_used)
{
	enum { TIMEOUT = 256, STOP_LIMIT, SILENCE, KILL_ON_FAIL, HOSTS, HOSTFILE, HOST, PORTS, KEY, ENV, WDIR, LAUNCHER, BY_NODE, OVERSUBSCRIBE, BIND, MAP, NET };
	static const struct option known[] = {
		{ "env", required_argument, NULL, ENV },
		{ "wdir", required_argument, NULL, WDIR },
		{ "hosts", required_argument, NULL, HOSTS },
		{ "hostfile", required_argument, NULL, HOSTFILE },
		{ "launcher", required_argument, NULL, LAUNCHER },
		{ "net", no_argument, NULL, NET },
		{ "by-node", no_argument, NULL, BY_NODE },
		{ "oversubscribe", no_argument, NULL, OVERSUBSCRIBE },
		{ "silence", required_argument, NULL, SILENCE },
		{ "bind", required_argument, NULL, BIND },
		{ "map", no_argument, NULL, MAP },
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
			part->counted = true;
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
			run->by_hand = true;
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
			run->by_hand = true;
			run->key_path = optarg;
			break;
		case HOSTFILE:
			run->hostfile = optarg;
			break;
		case LAUNCHER:
			run->launcher = optarg;
			break;
		case BY_NODE:
			run->by_node = true;
			break;
		case OVERSUBSCRIBE:
			run->oversubscribe = true;
			break;
		case NET:
			run->net = true;
			break;
		case MAP:
			run->map_shown = true;
			break;
		case BIND:
			if (bind_read(optarg, &run->bind))
				break;
			fprintf(stderr, "weft run: --bind %s: none, core, numa or socket\n", optarg);
			return CODE_USAGE;
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
		case SILENCE:
		case STOP_LIMIT: {
			double s = seconds(optarg);

			*(option == TIMEOUT ? &run->timeout : option == SILENCE ? &run->silence : &run->stop_limit) = s;
			if (s > 0 && (option != SILENCE || (s >= 0.1 && s <= 86400)))
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

	if (run->map && run->part_count == 1)
		run->parts[0].count = run->total;
	if (run->list && run->part_count == 1 && !run->parts[0].counted)
		run->parts[0].count = hostlist_slots(run->list);
	for (unsigned i = 0; i < run->part_count; i++) {
		run->parts[i].first = total;
		total += run->parts[i].count;
		if (total > RUN_MOST) {
			fprintf(stderr, "weft run: a job has 1 to %d processes\n", RUN_MOST);
			return false;
		}
	}
	if (run->map && run->total != total) {
		fprintf(stderr, "weft run: the programs are %u processes, --hosts has room for %u\n", total, run->total);
		return false;
	}
	run->total = total;
	if (run->map || run->list)
		return true;
	run->count = total;
	run->ranks = calloc(total, sizeof(*run->ranks));
	for (unsigned i = 0; run->ranks && i < total; i++)
		run->ranks[i] = i;
	return run->ranks != NULL;
}

/* One host among several, as far as it knows. */
static bool net_list(struct run *run)
{
	static char hosts[32];
	unsigned total = 0;

	if (run->by_hand) {
		fprintf(stderr, "weft run: --net is for a job that one command starts, not for --host and --key\n");
		return false;
	}
	for (unsigned i = 0; i < run->part_count; i++)
		total += run->parts[i].count;
	snprintf(hosts, sizeof(hosts), "localhost:%u", total < RUN_MOST ? total : RUN_MOST);
	if (!run->hosts && !run->hostfile)
		run->hosts = hosts;
	return true;
}

int run_options(struct run *run, int argc, char **argv)
{
	int r;

	memset(run, 0, sizeof(*run));
	run->ports_last = 65535;
	run->silence = 5;
	r = parts_read(run, argc, argv);
	if (r >= 0)
		return r;
	run->silence_ms = (int)(run->silence * 1000);
	if (run->net && !net_list(run))
		return CODE_USAGE;
	if (run->by_hand && !run->ports)
		run->ports = 7700;
	if (run->by_hand ? run->hosts && !hosts_read(run) : (run->hosts || run->hostfile) && !list_read(run))
		return CODE_USAGE;
	if (!parts_number(run) || (run->list && !list_lay(run)))
		return CODE_USAGE;
	if (!run->map || wf_key_read(run->key_path, &run->key) == 0)
		return -1;
	fprintf(stderr, "weft run: %s\n", weft_last_error());
	return CODE_USAGE;
}
