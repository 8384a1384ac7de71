/* mpiexec.c - mpiexec and mpirun: `weft run` under the options that MPI users have in their fingers.
 *
 * The command line becomes one of `weft run`, which takes the place of this process. Whether a number makes sense is for it to
 * say. Options may have one dash or two, and their value behind a blank or a '='.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_FAULT = 1, CODE_USAGE = 2, CODE_NOTFOUND = 127 };

static const char usage[] =
	"mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n"
	"of the program that follows:\n"
	"  -n N, -np N, -c N          so many processes (1)\n"
	"  -env NAME VALUE            put this into their environment\n"
	"  -x NAME[=VALUE]            the same; without a value the one it has here\n"
	"  -wdir DIR, -wd DIR         start them in that directory\n"
	"of the whole job:\n"
	"  -genv NAME VALUE           put this into the environment of all\n"
	"  -genvall, -genvnone, -genvlist A,B   of the environment here they get all (the default), nothing, A and B\n"
	"  -host LIST, -hostfile FILE on these hosts, NAME:SLOTS each\n"
	"  --launcher WORDS           what starts a command on {host} (ssh -o BatchMode=yes {host})\n"
	"  --map-by node              one to each host in turn (fill a host, then the next)\n"
	"  --bind-to WHAT             none, core, numa or socket (none)\n"
	"  --oversubscribe            more processes than the hosts have slots\n"
	"  -l, -prepend-rank, --tag-output      put [rank] before every line of output\n"
	"  --timeout S                end it after S seconds\n"
	"  --kill-on-fail             end it when a process fails (the others go on)\n"
	"  -v, --verbose              say who joins, leaves and ends\n"
	"  --version, --help\n"
	"accepted, without effect: --allow-run-as-root, other words of --map-by and --bind-to, --rank-by X, -ppn N, --mca NAME VALUE\n";

enum what { COUNT, ENV, EXPORT, WDIR, GENV, GENVALL, GENVNONE, GENVLIST, HOSTS, HOSTFILE, JOB_FLAG, JOB_VALUE, BIND, MAP_BY, VERSION, HELP, IGNORED };

static const struct option {
	const char *name;
	enum what what;
	int values;
	const char *ours;               /* JOB_: what weft run calls it */
} options[] = {
	{ "n", COUNT, 1, NULL }, { "np", COUNT, 1, NULL }, { "c", COUNT, 1, NULL },
	{ "env", ENV, 2, NULL },
	{ "x", EXPORT, 1, NULL },
	{ "wdir", WDIR, 1, NULL }, { "wd", WDIR, 1, NULL },
	{ "genv", GENV, 2, NULL },
	{ "genvall", GENVALL, 0, NULL },
	{ "genvnone", GENVNONE, 0, NULL },
	{ "genvlist", GENVLIST, 1, NULL },
	{ "host", HOSTS, 1, NULL }, { "hosts", HOSTS, 1, NULL }, { "H", HOSTS, 1, NULL },
	{ "hostfile", HOSTFILE, 1, NULL }, { "machinefile", HOSTFILE, 1, NULL }, { "f", HOSTFILE, 1, NULL },
	{ "l", JOB_FLAG, 0, "--label" }, { "label", JOB_FLAG, 0, "--label" },
	{ "prepend-rank", JOB_FLAG, 0, "--label" }, { "tag-output", JOB_FLAG, 0, "--label" },
	{ "timeout", JOB_VALUE, 1, "--timeout" },
	{ "stop-limit", JOB_VALUE, 1, "--stop-limit" },
	{ "kill-on-fail", JOB_FLAG, 0, "--kill-on-fail" },
	{ "v", JOB_FLAG, 0, "--verbose" }, { "verbose", JOB_FLAG, 0, "--verbose" },
	{ "version", VERSION, 0, NULL }, { "V", VERSION, 0, NULL },
	{ "help", HELP, 0, NULL }, { "h", HELP, 0, NULL },
	{ "oversubscribe", JOB_FLAG, 0, "--oversubscribe" },
	{ "launcher", JOB_VALUE, 1, "--launcher" }, { "silence", JOB_VALUE, 1, "--silence" },
	{ "by-node", JOB_FLAG, 0, "--by-node" }, { "map", JOB_FLAG, 0, "--map" },
	{ "allow-run-as-root", IGNORED, 0, NULL },
	{ "bind-to", BIND, 1, NULL }, { "map-by", MAP_BY, 1, NULL }, { "rank-by", IGNORED, 1, NULL },
	{ "ppn", IGNORED, 1, NULL },
	{ "mca", IGNORED, 2, NULL },
};
#define OPTIONS (sizeof(options) / sizeof(*options))

struct words {
	char **at;                      /* ended by NULL */
	size_t count;
};

static const char *self = "mpiexec";
static struct words job, parts;         /* the new command line: the job's options, then the programs with theirs */
static struct words genv, genvlist;     /* NAME=VALUE */
static bool bare;                       /* of the environment here only genvlist is kept */
static bool timed;

static _Noreturn void fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static _Noreturn void fail(int code, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", self);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

/* Lists of words. They live until the exec. */

static void add(struct words *w, const char *word)
{
	char **at = realloc(w->at, (w->count + 2) * sizeof(*at));
	char *copy = strdup(word);

	if (!at || !copy)
		fail(CODE_FAULT, "no memory");
	w->at = at;
	w->at[w->count++] = copy;
	w->at[w->count] = NULL;
}

static void add_pair(struct words *w, const char *name, const char *value)
{
	size_t n = strlen(name) + strlen(value) + 2;
	char *text = malloc(n);

	if (!text)
		fail(CODE_FAULT, "no memory");
	if (!*name || strchr(name, '='))
		fail(CODE_USAGE, "\"%s\" is no name of a variable", name);
	snprintf(text, n, "%s=%s", name, value);
	add(w, text);
	free(text);
}

/* Hosts */

static bool same(const char *text, size_t len, const char *other, size_t other_len)
{
	return len == other_len && !strncmp(text, other, len);
}

/* By its name, whole or up to the first dot on either side. */
static bool is_here(const char *name, size_t len)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "::1", "[::1]" };
	char own[256] = "";
	size_t label = strcspn(name, ".");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (same(name, len, names[i], strlen(names[i])))
			return true;
	gethostname(own, sizeof(own) - 1);
	return len && same(name, label < len ? label : len, own, strcspn(own, "."));
}

/* One host of a list; behind it may stand :N. */
static bool host_is_here(const char *text, size_t len)
{
	size_t name = len;

	if (is_here(text, len))
		return true;
	while (name && text[name - 1] >= '0' && text[name - 1] <= '9')
		name--;
	return name && text[name - 1] == ':' && is_here(text, name - 1);
}

/* Of a job on this host alone the list says no more than -n does; else it is weft run's to read. */
static void hosts_take(const char *list)
{
	bool here = true;

	for (const char *at = list; here && *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",");

		here = host_is_here(at, len);
		at += len;
	}
	if (here && *list)
		return;
	add(&job, "--hosts");
	add(&job, list);
}

static void hostfile_take(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	bool here = true;

	if (!f)
		fail(CODE_USAGE, "%s: %s", path, strerror(errno));
	while (here && fgets(line, sizeof(line), f)) {
		char *name = line + strspn(line, " \t");
		size_t len = strcspn(name, " \t\n#");

		here = !len || host_is_here(name, len);
	}
	fclose(f);
	if (here)
		return;
	add(&job, "--hostfile");
	add(&job, path);
}

/* What each process is to have for itself; what weft run has no word for is no reason not to start. */
static void bind_take(const char *what)
{
	static const char *const names[] = { "none", "core", "numa", "socket" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(what, names[i])) {
			add(&job, "--bind");
			add(&job, what);
		}
}

/* Options */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters have to be put in, taken out or changed. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64];
	size_t width = strlen(b);

	for (size_t j = 0; j <= width; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned before = row[0];

		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < width; j++) {
			unsigned above = row[j + 1];

			row[j + 1] = least(before + (a[i] != b[j]), 1 + least(row[j], above));
			before = above;
		}
	}
	return row[width];
}

static const char *nearest(const char *name)
{
	const char *best = options[0].name;

	for (size_t i = 1; i < OPTIONS; i++)
		if (distance(name, options[i].name) < distance(name, best))
			best = options[i].name;
	return best;
}

static const struct option *option_find(const char *word, size_t len)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (strlen(options[i].name) == len && !strncmp(word, options[i].name, len))
			return &options[i];
	return NULL;
}

static void export_value(const char *text)
{
	const char *value = getenv(text);

	if (strchr(text, '=')) {
		add(&parts, "--env");
		add(&parts, text);
	} else if (value) {
		add(&parts, "--env");
		add_pair(&parts, text, value);
	} else {
		fprintf(stderr, "%s: -x %s: not set here\n", self, text);
	}
}

static void keep(const char *list)
{
	char *copy = strdup(list), *rest = copy;

	if (!copy)
		fail(CODE_FAULT, "no memory");
	for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (getenv(name))
			add_pair(&genvlist, name, getenv(name));
	free(copy);
	bare = true;
}

static void act(const struct option *o, char **values)
{
	switch (o->what) {
	case COUNT:
		add(&parts, "-n");
		add(&parts, values[0]);
		break;
	case ENV:
		add(&parts, "--env");
		add_pair(&parts, values[0], values[1]);
		break;
	case EXPORT:
		export_value(values[0]);
		break;
	case WDIR:
		add(&parts, "--wdir");
		add(&parts, values[0]);
		break;
	case GENV:
		add_pair(&genv, values[0], values[1]);
		break;
	case GENVALL:
		bare = false;
		break;
	case GENVNONE:
		bare = true;
		break;
	case GENVLIST:
		keep(values[0]);
		break;
	case HOSTS:
		hosts_take(values[0]);
		break;
	case HOSTFILE:
		hostfile_take(values[0]);
		break;
	case JOB_VALUE:
		timed |= !strcmp(o->name, "timeout");
		add(&job, o->ours);
		add(&job, values[0]);
		break;
	case JOB_FLAG:
		add(&job, o->ours);
		break;
	case VERSION:
		printf("%s (weft) %s\n", self, WF_VERSION);
		exit(0);
	case HELP:
		fputs(usage, stdout);
		exit(0);
	case BIND:
		bind_take(values[0]);
		break;
	case MAP_BY:
		if (!strcmp(values[0], "node"))
			add(&job, "--by-node");
		break;
	case IGNORED:
		break;
	}
}

/* One option at argv[0]; how many words it took. */
static int option_read(int argc, char **argv)
{
	const char *name = argv[0] + strspn(argv[0], "-");
	size_t len = strcspn(name, "=");
	const struct option *o = option_find(name, len);
	char *value = argv[0] + (name - argv[0]) + len + 1;

	if (!o || (name[len] && o->values != 1) || name - argv[0] > 2)
		fail(CODE_USAGE, "%s: no such option; the nearest is %s%s (%s --help)", argv[0], strlen(nearest(name)) > 1 ? "--" : "-",
		     nearest(name), self);
	if (name[len]) {
		act(o, &value);
		return 1;
	}
	if (argc <= o->values)
		fail(CODE_USAGE, "%s wants %s (%s --help)", argv[0], o->values == 1 ? "a value" : "a name and a value", self);
	act(o, argv + 1);
	return 1 + o->values;
}

static bool is_colon(const char *word)
{
	return !strcmp(word, ":");
}

/* One program with its options, up to a colon; how many words that were. */
static int part_read(int argc, char **argv)
{
	int i = 0;

	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		i += option_read(argc - i, argv + i);
	}
	if (i >= argc || is_colon(argv[i]))
		fail(CODE_USAGE, "which program%s? (%s --help)", i < argc ? " before the :" : "", self);
	add(&parts, "--");
	for (; i < argc && !is_colon(argv[i]); i++)
		add(&parts, argv[i]);
	return i;
}

/* The end */

/* weft is beside this program where both are installed, and has its place in a build directory; else the shell would know. */
static const char *weft_find(void)
{
	static const char *const places[] = { "weft", "../../cmd/weft" };
	static char path[4096];
	char here[sizeof(path) - 32];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

	while (n > 0 && here[n - 1] != '/')
		n--;
	here[n > 0 ? n : 0] = 0;
	for (size_t i = 0; n > 0 && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s%s", here, places[i]);
		if (access(path, X_OK) == 0)
			return path;
	}
	return "weft";
}

static void environment_set(void)
{
	if (bare)
		clearenv();
	for (size_t i = 0; bare && i < genvlist.count; i++)
		putenv(genvlist.at[i]);
	for (size_t i = 0; i < genv.count; i++)
		putenv(genv.at[i]);
}

int main(int argc, char **argv)
{
	const char *limit = getenv("MPIEXEC_TIMEOUT"), *weft = weft_find();
	struct words command = { NULL, 0 };

	if (argc > 0 && strrchr(argv[0], '/'))
		self = strrchr(argv[0], '/') + 1;
	else if (argc > 0)
		self = argv[0];
	for (int i = 1; i == 1 || i < argc; i++) {
		if (i > 1)
			add(&parts, ":");
		i += part_read(argc - i, argv + i);
		if (i + 1 == argc)
			fail(CODE_USAGE, "which program after the :? (%s --help)", self);
	}
	if (limit && atof(limit) > 0 && !timed) {
		add(&job, "--timeout");
		add(&job, limit);
	}
	add(&command, weft);
	add(&command, "run");
	for (size_t i = 0; i < job.count; i++)
		add(&command, job.at[i]);
	for (size_t i = 0; i < parts.count; i++)
		add(&command, parts.at[i]);
	environment_set();
	execvp(weft, command.at);
	fail(CODE_NOTFOUND, "%s: %s", weft, strerror(errno));
}
