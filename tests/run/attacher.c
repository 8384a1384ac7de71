/* attacher.c - a process of a job that offers something to others, or attaches to them. See the file attach.
 *
 * usage: attacher WORD...   Does what each word says, in order, and says what came of it, a line each. "R/WORD" is for the process of rank R alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#define MOST 256
#define LIMIT weft_in(40 * WEFT_S)
enum { CALL = 7, REPLY, STOP };

static weft_id ids[MOST];
static int found, job;
static uint32_t rank;
static char sent[4 << 20], got[4 << 20];

static char *url_in(const char *path)
{
	static char url[WEFT_URL_TEXT + 1];
	ssize_t n = 0;
	int fd = -1;

	for (int tries = 0; n <= 0 && tries < 4000; tries++) {
		fd = open(path, O_RDONLY);
		n = fd >= 0 ? read(fd, url, WEFT_URL_TEXT) : 0;
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			usleep(10000);
	}
	url[n > 0 ? n : 0] = 0;
	return url;
}

/* offer=FILE:QUERY: the url goes into the file, at once. */
static void offer(char *how)
{
	char *query = strchr(how, ':'), url[WEFT_URL_TEXT], made[512];
	int r, fd;

	*query++ = 0;
	r = weft_job_offer(query, url, sizeof(url));
	if (r < 0) {
		printf("offer %d %s\n", r, weft_last_error());
		return;
	}
	snprintf(made, sizeof(made), "%s.new", how);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (r != (int)strlen(url) || fd < 0 || write(fd, url, (size_t)r) != r || rename(made, how) < 0)
		printf("offer: length %d of %zu\n", r, strlen(url));
	else
		printf("offered\n");
	close(fd);
}

static void attach(const char *url, weft_time until)
{
	int r = weft_job_attach(url, until);

	if (r > 0)
		job = r;
	printf(r < 0 ? "attach %d %s\n" : "attached %d\n", r, weft_last_error());
}

/* find=WANT:QUERY, of the job that was attached last. */
static void find(char *how, bool own, weft_time until)
{
	char *query = strchr(how, ':'), text[1024];

	*query++ = 0;
	snprintf(text, sizeof(text), "job=%d %s", own ? 0 : job, query);
	found = weft_dir_find(text, atoi(how), until, ids, MOST);
	if (found < 0)
		printf("found %d %s\n", found, weft_last_error());
	else
		printf("found %d\n", found);
	for (int i = 0; !own && i < found && i < MOST; i++)
		if ((int)weft_id_split(ids[i]).job != job)
			printf("an id of job %u\n", weft_id_split(ids[i]).job);
}

static void get(const char *key)
{
	char text[256];
	int r = weft_dir_get(found > 0 ? ids[0] : (weft_id)job << 52 | (weft_id)1 << 32, *key ? key : NULL, LIMIT, text, sizeof(text));

	printf("%s is %s (%d)\n", key, r < 0 ? "none" : *key ? text : "all", r < 0 ? r : *key ? r : 0);
}

/* A message to each that was found, and its answer, of @size bytes. */
static void call(size_t size)
{
	int done = 0;

	for (size_t i = 0; i < size; i++)
		sent[i] = (char)(i * 7 + rank);
	for (int i = 0; i < found; i++) {
		struct weft_status st = { .err = 0 };
		int r = weft_send(weft_port_world(), ids[i], CALL, sent, size, LIMIT);

		memset(got, 0, size);
		if (r >= 0)
			r = weft_recv(weft_port_world(), ids[i], REPLY, got, sizeof(got), LIMIT, &st);
		if (r < 0)
			printf("call %d: %s\n", r, weft_last_error());
		else
			done += st.from == ids[i] && st.len == size && !memcmp(sent, got, size);
	}
	printf("called %d with %zu\n", done, size);
}

static void stop(void)
{
	for (int i = 0; i < found; i++)
		weft_send(weft_port_world(), ids[i], STOP, NULL, 0, LIMIT);
}

/* Answers whoever calls at @port until @stops have told it to stop; how many callers of this job there were, and of others. */
static void serve(struct weft_port *port, int stops, int calls[2])
{
	char *room = malloc(sizeof(got));

	calls[0] = calls[1] = 0;
	while (stops > 0) {
		struct weft_status st = { .err = 0 };
		int r = weft_recv(port, WEFT_ANY, WEFT_ANY_TAG, room, sizeof(got), LIMIT, &st);

		if (r < 0) {
			printf("serve %d %s\n", r, weft_last_error());
			break;
		}
		if (st.tag == STOP) {
			stops--;
			continue;
		}
		calls[weft_id_split(st.from).job != 0]++;
		r = weft_send(port, st.from, REPLY, room, st.len, LIMIT);
		if (r < 0)
			printf("reply %d %s\n", r, weft_last_error());
	}
	free(room);
}

static void *work(void *arg)
{
	int calls[2];

	weft_thread_enter("worker");
	weft_dir_set(weft_self(), "role=worker");
	serve(NULL, *(int *)arg, calls);
	return NULL;
}

/* workers=N:STOPS */
static void workers(const char *how)
{
	pthread_t threads[16];
	int n = atoi(how), stops = atoi(strchr(how, ':') + 1);

	for (int i = 0; i < n && i < 16; i++)
		pthread_create(&threads[i], NULL, work, &stops);
	for (int i = 0; i < n && i < 16; i++)
		pthread_join(threads[i], NULL);
	printf("worked\n");
}

/* The other job ends while this one looks, and calls. */
static void await_end(void)
{
	char text[64];
	int r = 0;

	snprintf(text, sizeof(text), "job=%d kind=process", job);
	for (int i = 0; i < 4000 && r >= 0; i++) {
		r = weft_dir_find(text, 0, weft_in(20 * WEFT_S), NULL, 0);
		usleep(10000);
	}
	printf("find %d\n", r);
	r = 0;
	for (int i = 0; found > 0 && i < 4000 && r >= 0; i++) {
		r = weft_send_post(weft_port_world(), WEFT(op, .peer = ids[0], .tag = CALL, .data = sent, .len = 8, .flags = WEFT_COPY), NULL);
		usleep(1000);
	}
	printf("send %d\n", r);
}

static void told(const struct weft_status *st)
{
	(void)st;
}

static void nonsense(void)
{
	char url[WEFT_URL_TEXT], cut[8];
	weft_id id;

	printf("offer %d %d %d %d %d %d\n", weft_job_offer(NULL, url, sizeof(url)), weft_job_offer("x", url, sizeof(url)), weft_job_offer("", url, sizeof(url)),
	       weft_job_offer("job=3 kind=process", url, sizeof(url)), weft_job_offer("kind=process", NULL, 8), weft_job_offer("kind=process", cut, sizeof(cut)));
	printf("attach %d %d %d %d\n", weft_job_attach(NULL, LIMIT), weft_job_attach("", LIMIT), weft_job_attach("weft://a:1/00112233445566778899aabbccddeeff", LIMIT),
	       weft_job_attach("weft+unix:@x", LIMIT));
	printf("find %d %d %d %d %d\n", weft_dir_find("job=9 kind=process", 0, LIMIT, &id, 1), weft_dir_find("job=x kind=process", 0, LIMIT, &id, 1),
	       weft_dir_find("job=1 job=2", 0, LIMIT, &id, 1), weft_dir_find("job=9", 0, WEFT_NOW, &id, 1), weft_dir_find("job=0 kind=host", 0, LIMIT, &id, 1));
	printf("get %d %d\n", weft_dir_get((weft_id)9 << 52 | (weft_id)1 << 32, "name", LIMIT, cut, sizeof(cut)), weft_dir_set(weft_process(), "job=3"));
	printf("watch %d\n", weft_dir_watch("job=9 kind=process", WEFT(op, .done = told), NULL));
	printf("send %d\n", weft_send(NULL, (weft_id)9 << 52 | (weft_id)1 << 32, 1, NULL, 0, LIMIT));
}

/* Process 2 of the other job, whose id is known and was not offered: it cannot be asked about, nor reached. */
static void hidden(void)
{
	weft_id id = (weft_id)job << 52 | (weft_id)2 << 32;
	char text[64];
	int r = weft_dir_get(id, "name", LIMIT, text, sizeof(text));

	printf("hidden: get %d, send %d\n", r, weft_send(weft_port_world(), id, CALL, sent, 100000, LIMIT));
}

static bool begins(const char *word, const char *what)
{
	return !strncmp(word, what, strlen(what));
}

static void act(char *word)
{
	char *value = strchr(word, '=');
	int calls[2];

	value = value ? value + 1 : word + strlen(word);
	if (begins(word, "offer="))
		offer(value);
	else if (begins(word, "attach="))
		attach(value, LIMIT);
	else if (begins(word, "attach-soon="))
		attach(url_in(value), weft_in(300 * WEFT_MS));
	else if (begins(word, "attach-in="))
		attach(url_in(value), LIMIT);
	else if (begins(word, "find="))
		find(value, false, LIMIT);
	else if (begins(word, "find-soon="))
		find(value, false, weft_in(500 * WEFT_MS));
	else if (begins(word, "find-own="))
		find(value, true, LIMIT);
	else if (begins(word, "job="))
		job = atoi(value);
	else if (begins(word, "get="))
		get(value);
	else if (begins(word, "call="))
		call((size_t)atol(value));
	else if (begins(word, "stop"))
		stop();
	else if (begins(word, "serve=")) {
		serve(weft_port_world(), atoi(value), calls);
		printf("served %d own, %d others\n", calls[0], calls[1]);
	} else if (begins(word, "workers="))
		workers(value);
	else if (begins(word, "set="))
		printf("set %d\n", weft_dir_set(weft_process(), value));
	else if (begins(word, "await-end"))
		await_end();
	else if (begins(word, "await="))
		while (access(value, F_OK) < 0)
			usleep(10000);
	else if (begins(word, "hidden"))
		hidden();
	else if (begins(word, "nonsense"))
		nonsense();
	else if (begins(word, "say="))
		printf("%s\n", value);
	else if (begins(word, "sleep="))
		usleep(1000u * (unsigned)atoi(value));
	else
		printf("%s?\n", word);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *mine = getenv("WEFT_RANK");

	rank = mine ? (uint32_t)atoi(mine) : 0;
	if (weft_init(NULL) < 0) {
		fprintf(stderr, "%s\n", weft_last_error());
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		char *slash = argv[i] + strspn(argv[i], "0123456789");

		if (*slash != '/' || slash == argv[i])
			act(argv[i]);
		else if ((uint32_t)atoi(argv[i]) == rank)
			act(slash + 1);
	}
	return weft_fini(weft_in(10 * WEFT_S)) < 0;
}
