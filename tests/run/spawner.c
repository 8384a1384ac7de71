/* spawner.c - a process of a job that has others started, or is one of them. See the file spawn.
 *
 * usage: spawner WORD...   Does what each word says, in order, and says what came of it, a line each.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#define MOST 64

static weft_id ids[MOST];
static struct weft_req *ends[MOST];
static int started;
static char *self;

/* "spawn:COUNT:WORDS with commas:WHERE:NAME=VALUE:ATTRS:PROG:DIR"; what is empty is not said. @watched: ends are wanted. */
static void spawn(char *how, bool watched, weft_time until)
{
	char *field[8] = { 0 }, *argv[16] = { self }, *env[2] = { 0 };
	int n = 0, words = 1;

	for (char *at = how; at && n < 8; n++)
		field[n] = strsep(&at, ":");
	for (char *at = field[1]; at && *at && words < 15;)
		argv[words++] = strsep(&at, ",");
	env[0] = field[3] && *field[3] ? field[3] : NULL;
	memset(ends, 0, sizeof(ends));
	started = weft_spawn(WEFT(spawn_opts, .count = (uint32_t)atoi(field[0]), .prog = field[5] && *field[5] ? field[5] : self, .argv = argv, .env = env,
				  .where = field[2] && *field[2] ? field[2] : NULL, .attrs = field[4] && *field[4] ? field[4] : NULL,
				  .dir = field[6] && *field[6] ? field[6] : NULL),
			     until, ids, watched ? ends : NULL);
	if (started < 0)
		printf("spawned %d %s\n", started, weft_last_error());
	else
		printf("spawned %d\n", started);
}

static void wait_ends(void)
{
	struct weft_status st;

	for (int i = 0; i < MOST; i++)
		if (ends[i]) {
			int r = weft_req_wait(&ends[i], weft_in(10 * WEFT_S), &st);

			printf("end %d: %d status %d, %s\n", i, r, (int)st.len, st.from == ids[i] ? "that one" : "another");
		}
}

/* A word to each that was spawned, and its answer. */
static void talk(void)
{
	char text[64];

	for (int i = 0; i < started; i++) {
		int r = weft_send(weft_port_world(), ids[i], 5, "hello", 6, weft_in(10 * WEFT_S));

		if (r == 0)
			r = weft_recv(weft_port_world(), ids[i], 6, text, sizeof(text), weft_in(10 * WEFT_S), NULL);
		printf("talk %d: %s\n", i, r == 0 ? text : weft_last_error());
	}
}

/* Answers one word of anybody. */
static void answer(void)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_status st;
	char text[64];

	weft_port_stat(weft_port_world(), &info);
	if (weft_recv(weft_port_world(), WEFT_ANY, 5, text, sizeof(text), weft_in(10 * WEFT_S), &st) < 0) {
		printf("answer: %s\n", weft_last_error());
		return;
	}
	snprintf(text, sizeof(text), "%u of %u", info.index, info.count);
	weft_send(weft_port_world(), st.from, 6, text, strlen(text) + 1, weft_in(10 * WEFT_S));
}

/* Greets whoever "who=" finds in the directory; the directory must know @want of them. */
static void greet(const char *query)
{
	weft_id who[MOST];
	char text[64];
	int n = weft_dir_find(query, 1, weft_in(10 * WEFT_S), who, MOST), r = n < 0 ? n : 0;

	if (r == 0)
		r = weft_send(weft_port_world(), who[0], 5, "hello", 6, weft_in(10 * WEFT_S));
	if (r == 0)
		r = weft_recv(weft_port_world(), who[0], 6, text, sizeof(text), weft_in(10 * WEFT_S), NULL);
	printf("greet: %s\n", r == 0 ? text : weft_last_error());
}

static void await_end(const char *query)
{
	weft_id who[MOST];
	char text[8];
	int r = weft_dir_find(query, 1, weft_in(10 * WEFT_S), who, MOST);

	if (r > 0) {
		printf("waits\n");
		fflush(stdout);
		r = weft_recv(weft_port_world(), who[0], 99, text, sizeof(text), weft_in(20 * WEFT_S), NULL);
	}
	printf("awaited: %d\n", r);
}

/* "MS@HOSTS": they are to join within so many milliseconds; 0: at once, without: within a minute. */
static void grow(char *how)
{
	char *hosts = strchr(how, '@'), name[64], words[256];
	weft_id hosts_ids[MOST];
	weft_time until = weft_in(60 * WEFT_S);
	int n;

	*hosts++ = 0;
	if (*how)
		until = atoi(how) ? weft_in(atoi(how) * WEFT_MS) : WEFT_NOW;
	weft_fail(-EAGAIN, "%s", "");           /* what other calls have said is not meant */
	n = weft_job_grow(hosts, until, hosts_ids, MOST);
	printf("grown %d", n);
	snprintf(words, sizeof(words), "%s", weft_last_error());
	for (int i = 0; i < n; i++)
		printf(" %s", weft_dir_get(hosts_ids[i], "name", weft_in(10 * WEFT_S), name, sizeof(name)) < 0 ? "?" : name);
	printf(", %s\n", words);
	if (n > 0)
		ids[0] = hosts_ids[0];
}

/* Whose id the directory has for a host of that name; signals go there next. */
static void host(char *name)
{
	char query[128];

	snprintf(query, sizeof(query), "kind=host name=%s", name);
	printf("host %d\n", weft_dir_find(query, 1, weft_in(10 * WEFT_S), ids, 1));
}

static void do_word(char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = 0;
	if (!strcmp(word, "spawn"))
		spawn(value, true, weft_in(10 * WEFT_S));
	else if (!strcmp(word, "spawn-unwatched"))
		spawn(value, false, weft_in(10 * WEFT_S));
	else if (!strcmp(word, "spawn-now"))
		spawn(value, false, WEFT_NOW);
	else if (!strcmp(word, "ends"))
		wait_ends();
	else if (!strcmp(word, "talk"))
		talk();
	else if (!strcmp(word, "answer"))
		answer();
	else if (!strcmp(word, "greet"))
		greet(value);
	else if (!strcmp(word, "await"))
		await_end(value);
	else if (!strcmp(word, "exit"))
		exit(atoi(value));
	else if (!strcmp(word, "abort"))
		abort();
	else if (!strcmp(word, "sleep"))
		usleep((useconds_t)atoi(value) * 1000);
	else if (!strcmp(word, "say"))
		printf("%s\n", value);
	else if (!strcmp(word, "env"))
		printf("%s=%s\n", value, getenv(value) ? getenv(value) : "");
	else if (!strcmp(word, "dir"))
		printf("%s\n", getcwd((char[256]){ 0 }, 256));
	else if (!strcmp(word, "url"))
		printf("%s\n", getenv("WEFT_URL"));
	else if (!strcmp(word, "find"))
		printf("found %d\n", weft_dir_find(value, 1, weft_in(10 * WEFT_S), NULL, 0));
	else if (!strcmp(word, "grow"))
		grow(value);
	else if (!strcmp(word, "host"))
		host(value);
	else if (!strcmp(word, "grow-nonsense"))
		printf("grow-nonsense %d %d %d %d %d %d\n", weft_job_grow(NULL, weft_in(WEFT_S), NULL, 0), weft_job_grow("", weft_in(WEFT_S), NULL, 0),
		       weft_job_grow("a b", weft_in(WEFT_S), NULL, 0), weft_job_grow("-x:1", weft_in(WEFT_S), NULL, 0), weft_job_grow("a", weft_in(WEFT_S), NULL, 1), weft_job_grow("a", weft_in(WEFT_S), ids, -1));
	else if (!strcmp(word, "kill"))
		printf("kill %d\n", weft_kill(ids[0], atoi(value)));
	else if (!strcmp(word, "kill-id"))
		printf("kill %d\n", weft_kill((weft_id)atoi(value) << 32, 0));
	else if (!strcmp(word, "nonsense"))
		printf("nonsense %d %d %d %d %d %d %d\n", weft_spawn(NULL, WEFT_NOW, NULL, NULL), weft_spawn(WEFT(spawn_opts, .count = 1), WEFT_NOW, NULL, NULL),
		       weft_spawn(WEFT(spawn_opts, .prog = "x", .count = 5000), WEFT_NOW, NULL, NULL), weft_spawn(WEFT(spawn_opts, .prog = "x", .flags = 64), WEFT_NOW, NULL, NULL),
		       weft_kill(0, 0), weft_kill(weft_self(), 0), weft_kill(weft_process(), 1000));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	self = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (weft_init(NULL) < 0)
		return fprintf(stderr, "spawner: %s\n", weft_last_error()), 1;
	for (int i = 1; i < argc; i++)
		do_word(argv[i]);
	return weft_fini(weft_in(5 * WEFT_S)) < 0;
}
