/* test_dir_link.c - the directory over a link: this process is one client, an agent (a thread here) serves, and another process is played
 * by a client of its own inside that agent. Answers come later than the calls return; servers move; the link ends.
 */
#include <weft/dir.h>

#include "crew.h"
#include "witness.h"
#include "dir/client.h"
#include "dir/link.h"
#include "dir/server.h"

#define HOST ((weft_id)1000 << 32)
#define OTHER ((weft_id)2 << 32)

struct letter {
	struct letter *next;
	size_t len;
	uint8_t msg[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
/* under lock */
static struct letter *first, **last = &first;   /* from this process */
static struct letter *mail, **mail_last = &mail;        /* to it */
static struct letter *theirs, **theirs_last = &theirs;  /* to the other */
static struct wf_dir_server *server;
static struct wf_dir_client other;
static bool held;               /* the agent does nothing */
static bool stopped;
static int refuse;              /* what send answers; 0: takes it */
static pthread_t agent;

static void post(struct letter ***end, const void *msg, size_t len)
{
	struct letter *l = malloc(sizeof(*l) + len);

	MUST(l != NULL);
	l->next = NULL;
	l->len = len;
	memcpy(l->msg, msg, len);
	**end = l;
	*end = &l->next;
}

static struct letter *take(struct letter **from, struct letter ***end)
{
	struct letter *l = *from;

	if (l) {
		*from = l->next;
		if (!*from)
			*end = from;
	}
	return l;
}

static int link_send(const void *msg, size_t len)
{
	int r;

	pthread_mutex_lock(&lock);
	r = refuse;
	if (r == 0)
		post(&last, msg, len);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	return r;
}

static void emit(void *ctx, weft_id process, const void *msg, size_t len)
{
	(void)ctx;
	if (process == OTHER)
		post(&theirs_last, msg, len);
	else
		post(&mail_last, msg, len);
}

static int other_send(void *ctx, const void *msg, size_t len)
{
	(void)ctx;
	MUST_OK(wf_dir_server_take(server, OTHER, msg, len));
	return 0;
}

/* Everything of the other's that can be done is done. Under lock. */
static void other_turns(void)
{
	struct letter *l;

	while ((l = take(&theirs, &theirs_last)) != NULL) {
		MUST_OK(wf_dir_client_take(&other, l->msg, l->len));
		free(l);
	}
}

static void *serve(void *arg)
{
	struct letter *l;

	(void)arg;
	pthread_mutex_lock(&lock);
	while (!stopped) {
		if (!held && (l = take(&first, &last)) != NULL) {
			MUST_OK(wf_dir_server_take(server, weft_process(), l->msg, l->len));
			free(l);
			other_turns();
			continue;
		}
		if (!held && (l = take(&mail, &mail_last)) != NULL) {
			pthread_mutex_unlock(&lock);
			MUST_OK(wf_dir_take(l->msg, l->len));
			free(l);
			pthread_mutex_lock(&lock);
			continue;
		}
		pthread_cond_wait(&cond, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void no_answer(void *ctx, struct wf_dir_ask *ask)
{
	(void)ctx;
	(void)ask;
}

static void no_event(void *ctx, struct wf_dir_watching *w, int what, weft_id id)
{
	(void)ctx;
	(void)w;
	(void)what;
	(void)id;
}

static void no_end(void *ctx, struct wf_dir_watching *w, int err)
{
	(void)ctx;
	(void)w;
	(void)err;
}

static void hold(bool on)
{
	pthread_mutex_lock(&lock);
	held = on;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void other_sets(unsigned local, const char *attrs)
{
	const char *why;

	pthread_mutex_lock(&lock);
	MUST_OK(wf_dir_client_set(&other, OTHER + local, local ? WF_DIR_THREAD : WF_DIR_PROCESS, "far", attrs, &why));
	other_turns();
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void other_dies(void)
{
	pthread_mutex_lock(&lock);
	wf_dir_server_gone(server, OTHER);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void begin(void)
{
	static const struct wf_dir_link link = { .send = link_send };
	struct wf_dir_client_hooks hooks = { .send = other_send, .answered = no_answer, .event = no_event, .ended = no_end };

	job_begin(0);
	wf_dir_close();                 /* that of a job of one */
	held = stopped = false;
	refuse = 0;
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, 1, false);
	MUST(server != NULL);
	MUST_OK(wf_dir_server_host(server, HOST, "n1", NULL));
	MUST_OK(wf_dir_server_join(server, weft_process(), HOST));
	MUST_OK(wf_dir_server_join(server, OTHER, HOST));
	MUST_OK(wf_dir_client_init(&other, OTHER, &hooks));
	MUST_OK(wf_dir_open(&link, weft_process()));
	MUST_EQ(wf_dir_open(&link, weft_process()), -EALREADY);
	pthread_create(&agent, NULL, serve, NULL);
	other_sets(0, "");
}

static void end(void)
{
	struct letter *l;

	pthread_mutex_lock(&lock);
	stopped = true;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	pthread_join(agent, NULL);
	wf_dir_close();
	wf_dir_client_fini(&other);
	wf_dir_server_free(server);
	while ((l = take(&first, &last)) || (l = take(&mail, &mail_last)) || (l = take(&theirs, &theirs_last)))
		free(l);
	job_end();
}

/* Another serves; gathered when both have said all of theirs. */
static void take_over(bool finish)
{
	struct letter *l;

	wf_dir_moving();
	pthread_mutex_lock(&lock);
	wf_dir_server_free(server);
	while ((l = take(&first, &last)) != NULL)
		free(l);
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, 2, true);
	MUST(server != NULL);
	MUST_OK(wf_dir_server_host(server, HOST, "n1", NULL));
	MUST_OK(wf_dir_server_join(server, weft_process(), HOST));
	MUST_OK(wf_dir_server_join(server, OTHER, HOST));
	other_turns();
	while (finish && wf_dir_server_missing(server)) {
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&lock);
		usleep(1000);
		pthread_mutex_lock(&lock);
	}
	if (finish)
		wf_dir_server_gathered(server);
	other_turns();
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void gathered(void)
{
	pthread_mutex_lock(&lock);
	while (wf_dir_server_missing(server)) {
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&lock);
		usleep(1000);
		pthread_mutex_lock(&lock);
	}
	wf_dir_server_gathered(server);
	other_turns();
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

TEST(look_ups_are_answered_over_the_link_and_kept)
{
	uint64_t before;
	weft_id ids[4];
	char text[32];

	begin();
	other_sets(1, "role=worker");
	CHECK_EQ(weft_dir_find("role=worker", 1, SOON, ids, 4), 1);
	CHECK(ids[0] == OTHER + 1);
	CHECK_EQ(weft_dir_get(ids[0], "role", SOON, text, sizeof(text)), 6);
	CHECK_EQ(weft_dir_get(ids[0], "host", SOON, text, sizeof(text)), 2);
	before = wf_dir_messages();
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(weft_dir_find("role=worker", 1, SOON, ids, 4), 1);
		CHECK_EQ(weft_dir_get(ids[0], "role", WEFT_NOW, text, sizeof(text)), 6);
	}
	CHECK_EQ(wf_dir_messages(), before);
	CHECK_EQ(weft_dir_get(OTHER + 7, "role", SOON, text, sizeof(text)), -ESRCH);
	/* What we say ourselves is seen by whoever asks from here. */
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_EQ(weft_dir_find("role=worker", 0, SOON, ids, 4), 2);
	CHECK_OK(weft_dir_set(weft_self(), "load=1"));
	CHECK_EQ(weft_dir_get(weft_self(), "load", SOON, text, sizeof(text)), 1);
	CHECK_OK(weft_dir_set(weft_self(), "load=22"));
	CHECK_EQ(weft_dir_get(weft_self(), "load", SOON, text, sizeof(text)), 2);
	end();
}

TEST(what_was_kept_of_the_dead_is_not_told_for_a_second)
{
	weft_time died;
	char text[32];
	weft_id id;

	begin();
	other_sets(1, "role=worker");
	CHECK_EQ(weft_dir_get(OTHER + 1, "role", SOON, text, sizeof(text)), 6);
	CHECK_EQ(weft_dir_find("role=worker", 1, SOON, &id, 1), 1);
	witness_call();
	died = weft_now();
	other_dies();
	while (weft_dir_get(OTHER + 1, "role", SOON, text, sizeof(text)) > 0 || weft_dir_find("role=worker", 0, SOON, &id, 1))
		;
	WITHIN(died, WEFT_S);
	CHECK_EQ(weft_dir_get(OTHER + 1, "role", SOON, text, sizeof(text)), -ESRCH);
	end();
}

TEST(who_does_not_wait_is_answered_when_the_answer_has_come)
{
	char text[32];
	weft_id id;
	int r, tries = 0;

	begin();
	other_sets(1, "role=worker");
	CHECK_EQ(weft_dir_get(OTHER + 1, "role", WEFT_NOW, text, sizeof(text)), -EAGAIN);
	while ((r = weft_dir_get(OTHER + 1, "role", WEFT_NOW, text, sizeof(text))) == -EAGAIN && tries++ < 5000)
		usleep(1000);
	CHECK_EQ(r, 6);
	tries = 0;
	while ((r = weft_dir_find("role=worker", 1, WEFT_NOW, &id, 1)) == -EAGAIN && tries++ < 5000)
		usleep(1000);
	CHECK_EQ(r, 1);
	/* That there is nobody is an answer, too, and is not told for long. */
	tries = 0;
	while ((r = weft_dir_get(OTHER + 9, "role", WEFT_NOW, text, sizeof(text))) == -EAGAIN && tries++ < 5000)
		usleep(1000);
	CHECK_EQ(r, -ESRCH);
	CHECK_EQ(weft_dir_get(OTHER + 9, "role", WEFT_NOW, text, sizeof(text)), -EAGAIN);
	end();
}

TEST(who_does_not_wait_is_also_told_of_very_many)
{
	static weft_id ids[400];
	int r, tries = 0;

	begin();
	for (unsigned i = 1; i <= 400; i++)
		other_sets(i, "role=worker");
	while ((r = weft_dir_find("role=worker", 300, WEFT_NOW, ids, 400)) == -EAGAIN && tries++ < 5000)
		usleep(1000);
	CHECK_EQ(r, 400);
	CHECK(ids[0] == OTHER + 1 && ids[399] == OTHER + 400);
	end();
}

TEST(a_deadline_ends_a_look_up_that_nobody_answers)
{
	char text[32];
	weft_id id;

	begin();
	hold(true);
	CHECK_EQ(weft_dir_get(OTHER, "name", weft_in(20 * WEFT_MS), text, sizeof(text)), -ETIMEDOUT);
	CHECK_EQ(weft_dir_find("kind=process", 0, weft_in(20 * WEFT_MS), &id, 1), -ETIMEDOUT);
	hold(false);
	CHECK_EQ(weft_dir_get(OTHER, "name", SOON, text, sizeof(text)), 3);
	end();
}

TEST(while_the_directory_moves_look_ups_answer_eagain_and_then_go_on)
{
	struct weft_queue *queue;
	struct weft_req *watch;
	struct weft_status st;
	weft_id id;
	char text[64];

	begin();
	MUST_OK(weft_queue_open(&queue));
	other_sets(1, "role=worker");
	other_sets(2, "role=worker");
	CHECK_OK(weft_dir_set(weft_self(), "role=worker group=/pool"));
	MUST_OK(weft_dir_watch("role=worker", WEFT(op, .queue = queue), &watch));
	for (int i = 0; i < 3; i++)
		MUST_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(weft_dir_get(weft_self(), "path", SOON, text, sizeof(text)) > 0);
	/* While nobody serves one changes, one goes, one comes. */
	take_over(false);
	CHECK_EQ(weft_dir_find("role=worker", 1, WEFT_NOW, &id, 1), -EAGAIN);
	CHECK_EQ(weft_dir_find("role=worker", 1, weft_in(20 * WEFT_MS), &id, 1), -EAGAIN);
	CHECK_EQ(weft_dir_get(OTHER + 1, "role", weft_in(20 * WEFT_MS), text, sizeof(text)), -EAGAIN);
	other_sets(1, "load=1");
	pthread_mutex_lock(&lock);
	wf_dir_client_drop(&other, OTHER + 2);
	pthread_mutex_unlock(&lock);
	other_sets(3, "role=worker");
	gathered();
	int joined = 0, changed = 0, left = 0;
	for (int i = 0; i < 3; i++) {
		MUST_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
		joined += st.tag == WEFT_JOINED && st.from == OTHER + 3;
		changed += st.tag == WEFT_CHANGED && st.from == OTHER + 1;
		left += st.tag == WEFT_LEFT && st.from == OTHER + 2;
	}
	CHECK(joined == 1 && changed == 1 && left == 1);
	CHECK_EQ(weft_queue_next(queue, weft_in(20 * WEFT_MS), &st, 1), -ETIMEDOUT);
	CHECK_EQ(weft_dir_find("role=worker", 3, SOON, &id, 1), 3);
	CHECK_EQ(weft_dir_find("/pool/*", 1, SOON, &id, 1), 1);
	CHECK(id == weft_self());
	MUST_OK(weft_req_cancel(watch));
	MUST_OK(weft_req_free(watch));
	MUST_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	MUST_OK(weft_queue_close(queue));
	end();
}

static void *finds(void *arg)
{
	*(int *)arg = weft_dir_find("role=late", 1, SOON, NULL, 0);
	return NULL;
}

TEST(a_find_that_waits_survives_a_takeover)
{
	pthread_t t;
	int r = 0;

	begin();
	pthread_create(&t, NULL, finds, &r);
	usleep(20000);
	take_over(true);
	other_sets(1, "role=late");
	pthread_join(t, NULL);
	CHECK_EQ(r, 1);
	end();
}

TEST(a_link_without_room_is_waited_for)
{
	weft_id id;

	begin();
	CHECK_OK(weft_dir_set(weft_self(), "a=1"));
	pthread_mutex_lock(&lock);
	refuse = -EAGAIN;
	pthread_mutex_unlock(&lock);
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_EQ(weft_dir_find("role=worker", 1, weft_in(20 * WEFT_MS), &id, 1), -ETIMEDOUT);
	pthread_mutex_lock(&lock);
	refuse = 0;
	pthread_mutex_unlock(&lock);
	wf_dir_flush();
	CHECK_EQ(weft_dir_find("role=worker", 1, SOON, &id, 1), 1);
	/* What cannot go for long is not taken for ever. */
	pthread_mutex_lock(&lock);
	refuse = -EAGAIN;
	pthread_mutex_unlock(&lock);
	char attrs[300];
	int sets = 0, r;
	memset(attrs, 'x', sizeof(attrs));
	memcpy(attrs, "big=", 4);
	attrs[250] = 0;
	while ((r = weft_dir_set(weft_self(), attrs)) == 0 && sets++ < 100000)
		;
	CHECK_EQ(r, -EAGAIN);
	pthread_mutex_lock(&lock);
	refuse = 0;
	pthread_mutex_unlock(&lock);
	wf_dir_flush();
	CHECK_OK(weft_dir_set(weft_self(), "big="));
	end();
}

static void *waits_for_ever(void *arg)
{
	*(int *)arg = weft_dir_find("role=never", 1, WEFT_FOREVER, NULL, 0);
	return NULL;
}

TEST(a_link_that_is_gone_ends_everything)
{
	struct weft_queue *queue;
	struct weft_req *watch;
	struct weft_status st;
	pthread_t t;
	weft_id id;
	int r = 0;

	for (int way = 0; way < 2; way++) {
		begin();
		MUST_OK(weft_queue_open(&queue));
		MUST_OK(weft_dir_watch("role=never", WEFT(op, .queue = queue), &watch));
		pthread_create(&t, NULL, waits_for_ever, &r);
		usleep(20000);
		if (way) {
			wf_dir_lost();
		} else {
			pthread_mutex_lock(&lock);
			refuse = -ECONNRESET;
			pthread_mutex_unlock(&lock);
			weft_dir_set(weft_self(), "a=1");
		}
		pthread_join(t, NULL);
		CHECK_EQ(r, -ECONNRESET);
		CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
		CHECK_EQ(st.err, -ECONNRESET);
		CHECK_EQ(weft_req_wait(&watch, SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_dir_find("role=never", 1, SOON, &id, 1), -ECONNRESET);
		CHECK_EQ(weft_dir_watch("role=never", WEFT(op, .queue = queue), &watch), -ECONNRESET);
		MUST_OK(weft_queue_close(queue));
		end();
	}
}

TEST(leaving_ends_who_waits)
{
	pthread_t t;
	int r = 0;

	begin();
	pthread_create(&t, NULL, waits_for_ever, &r);
	usleep(20000);
	wf_dir_close();
	pthread_join(t, NULL);
	CHECK_EQ(r, -ECANCELED);
	CHECK_EQ(weft_dir_set(weft_self(), "a=1"), -ENOTCONN);
	end();
}

TEST_MAIN
