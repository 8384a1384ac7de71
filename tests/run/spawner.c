/* spawner.c - a process of a job that has others started, or is one of them. See the file spawn.
 *
 * usage: spawner WORD...   Does what each word says, in order, and says what came of it, a line each.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

#define MOST 64

static weft_id ids[MOST];
static struct weft_req *ends[MOST];
static int started;
static char *self;
static int out = -1, in = -1;      /* where the output of the next goes, and is read; -1: where the job's goes */

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
	started = weft_spawn(WEFT(spawn_opts, .flags = out >= 0 ? WEFT_SPAWN_OUTPUT : 0, .out_fd = out, .count = (uint32_t)atoi(field[0]), .prog = field[5] && *field[5] ? field[5] : self, .argv = argv, .env = env,
				  .where = field[2] && *field[2] ? field[2] : NULL, .attrs = field[4] && *field[4] ? field[4] : NULL,
				  .dir = field[6] && *field[6] ? field[6] : NULL),
			     until, ids, watched ? ends : NULL);
	if (out >= 0)
		close(out);
	out = -1;
	if (started < 0)
		printf("spawned %d %s\n", started, weft_last_error());
	else
		printf("spawned %d\n", started);
}

static pthread_barrier_t cancelled;

static void *spawn_being_cancelled(void *how)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_barrier_wait(&cancelled);
	pthread_barrier_wait(&cancelled);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	if (strchr(how, '@'))
		printf("grown %d\n", weft_job_grow(strchr(how, '@') + 1, weft_in(20 * WEFT_S), NULL, 0));
	else
		spawn(how, true, weft_in(10 * WEFT_S));
	pthread_testcancel();
	printf("not cancelled\n");
	return NULL;
}

/* By a thread that has been cancelled and does not know it yet; with an @: not processes, but hosts that join. */
static void spawn_cancelled(char *how)
{
	pthread_t thread;

	pthread_barrier_init(&cancelled, NULL, 2);
	if (pthread_create(&thread, NULL, spawn_being_cancelled, how) != 0)
		abort();
	pthread_barrier_wait(&cancelled);
	pthread_cancel(thread);
	pthread_barrier_wait(&cancelled);
	pthread_join(thread, NULL);
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

/* Output */

static void make_pair(const char *kind)
{
	int pair[2];

	if ((!strcmp(kind, "pipe") ? pipe2(pair, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) < 0)
		abort();
	in = pair[0];
	out = pair[1];
}

/* "pipe", "socket", or the name of a file: there the output of the next goes. */
static void go_to(const char *where)
{
	if (strchr(where, '/'))
		out = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	else
		make_pair(where);
}

/* All that comes, with @pause microseconds between pieces; then how many bytes and lines, and what it was if that is not much. */
static void read_all(int fd, useconds_t pause)
{
	static char text[1024];
	size_t bytes = 0, lines = 0;
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (bytes + (size_t)i < sizeof(text) - 1)
				text[bytes + (size_t)i] = piece[i] == '\n' ? ' ' : piece[i];
			lines += piece[i] == '\n';
		}
		bytes += (size_t)n;
		usleep(pause);
	}
	text[bytes < sizeof(text) ? bytes : sizeof(text) - 1] = 0;
	printf("read %zu bytes, %zu lines%s%s\n", bytes, lines, bytes < sizeof(text) ? ": " : "", bytes < sizeof(text) ? text : "");
	close(fd);
}

/* Numbered lines. */
static void print_many(unsigned count)
{
	setvbuf(stdout, NULL, _IOFBF, 4096);
	for (unsigned i = 0; i < count; i++)
		printf("%u %s %060u\n", i, getenv("WEFT_RANK"), i);
	fflush(stdout);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* @count programs in one launch, each with an outlet of its own. */
static void spawn_parts(int count)
{
	struct weft_spawn_opts *parts = calloc((size_t)count, sizeof(*parts));
	char words[MOST][16];
	char *argv[MOST][3];
	int pipes[MOST][2];

	for (int i = 0; i < count && i < MOST; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			abort();
		snprintf(words[i], sizeof(words[i]), "say=%d", i);
		argv[i][0] = self;
		argv[i][1] = words[i];
		argv[i][2] = NULL;
		parts[i] = (struct weft_spawn_opts){ .size = sizeof(parts[i]), .count = 1, .prog = self, .argv = argv[i], .flags = WEFT_SPAWN_OUTPUT,
						      .out_fd = pipes[i][1], .next = i + 1 < count ? &parts[i + 1] : NULL };
	}
	started = weft_spawn(parts, weft_in(30 * WEFT_S), ids, ends);
	printf("spawned %d\n", started);
	for (int i = 0; i < count && i < MOST; i++) {
		close(pipes[i][1]);
		read_all(pipes[i][0], 0);
	}
	free(parts);
}

static int spawn_to(int fd)
{
	return weft_spawn(WEFT(spawn_opts, .prog = "true", .flags = WEFT_SPAWN_OUTPUT, .out_fd = fd), weft_in(10 * WEFT_S), NULL, NULL);
}

static void bad_outs(void)
{
	int closed = dup(1), reads = open("/dev/null", O_RDONLY), path = open("/", O_PATH), pair[2];

	if (pipe(pair) < 0)
		abort();
	close(closed);
	printf("bad outs %d %d %d %d %d", spawn_to(-1), spawn_to(closed), spawn_to(reads), spawn_to(path), spawn_to(pair[0]));
	printf(" %d", weft_spawn(WEFT(spawn_opts, .entry = "e", .flags = WEFT_SPAWN_OUTPUT, .out_fd = 1), WEFT_NOW, NULL, NULL));
	printf(" %d\n", weft_spawn(WEFT(spawn_opts, .prog = "true", .next = WEFT(spawn_opts, .prog = "true", .flags = WEFT_SPAWN_OUTPUT, .out_fd = 4095)), WEFT_NOW, NULL, NULL));
}

/* One after another, each to its end. */
static void churn(int count, const char *where)
{
	for (int i = 0; i < count; i++) {
		struct weft_req *end = NULL;
		int pair[2], far = i % 2;

		if (far && pipe2(pair, O_CLOEXEC) < 0)
			abort();
		if (weft_spawn(WEFT(spawn_opts, .prog = "echo", .where = where, .argv = (char *[]){ (char[]){ "echo" }, (char[]){ "churned" }, NULL },
				    .flags = far ? WEFT_SPAWN_OUTPUT : 0, .out_fd = far ? pair[1] : -1), weft_in(20 * WEFT_S), NULL, &end) != 1)
			printf("churn: %s\n", weft_last_error());
		else if (weft_req_wait(&end, weft_in(20 * WEFT_S), NULL) < 0)
			printf("churn: %s\n", weft_last_error());
		if (far) {
			char text[64];

			close(pair[1]);
			while (read(pair[0], text, sizeof(text)) > 0)
				continue;
			close(pair[0]);
		}
	}
}

static void await_file(const char *path)
{
	while (access(path, F_OK) < 0)
		usleep(5000);
}

static bool do_output_word(const char *word, char *value)
{
	if (!strcmp(word, "to"))
		go_to(value);
	else if (!strcmp(word, "read"))
		read_all(in, 0);
	else if (!strcmp(word, "read-slowly"))
		read_all(in, (useconds_t)atoi(value));
	else if (!strcmp(word, "deaf"))
		close(in);
	else if (!strcmp(word, "show"))
		read_all(open(value, O_RDONLY | O_CLOEXEC), 0);
	else if (!strcmp(word, "warn"))
		fprintf(stderr, "%s\n", value);
	else if (!strcmp(word, "many"))
		print_many((unsigned)atoi(value));
	else if (!strcmp(word, "bare"))
		printf("%s", value);
	else if (!strcmp(word, "parts"))
		spawn_parts(atoi(value));
	else if (!strcmp(word, "bad-outs"))
		bad_outs();
	else if (!strcmp(word, "churn"))
		churn(atoi(value), strchr(value, ':') ? strchr(value, ':') + 1 : NULL);
	else if (!strcmp(word, "await-file"))
		await_file(value);
	else if (!strcmp(word, "die"))
		raise(SIGKILL);
	else
		return false;
	return true;
}

static void do_word(char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = 0;
	if (do_output_word(word, value))
		;
	else if (!strcmp(word, "spawn"))
		spawn(value, true, weft_in(10 * WEFT_S));
	else if (!strcmp(word, "cancelled"))
		spawn_cancelled(value);
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
	else if (!strcmp(word, "mate"))         /* says nothing before it is gone */
		printf("mate %d\n", weft_recv(weft_port_world(), weft_at((uint32_t)atoi(value)), 98, (char[8]){ 0 }, 8, weft_in(10 * WEFT_S), NULL));
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
