/* test_dir.c - the public calls of the directory, in a job of one process, which serves it itself. */
#include <weft/dir.h>

#include "crew.h"
#include "dir/link.h"

static void begin(void)
{
	job_begin(0);
	wf_dir_close();                 /* a fresh one, whatever weft_init has published */
	MUST_OK(wf_dir_open(NULL, weft_process()));
	CHECK_EQ(wf_dir_open(NULL, weft_process()), -EALREADY);
}

static void end(void)
{
	wf_dir_close();
	job_end();
}

static const char *get(weft_id id, const char *key)
{
	static char text[512];
	int r = weft_dir_get(id, key, SOON, text, sizeof(text));

	if (r >= 0)
		CHECK_EQ(r, strlen(text));
	return r < 0 ? "none" : text;
}

#define CHECK_TEXT(got, wanted)                                                                    \
	do {                                                                                       \
		const char *test_got = (got);                                                      \
		if (strcmp(test_got, wanted) != 0)                                                 \
			printf("# %s, not %s\n", test_got, wanted);                                \
		CHECK(strcmp(test_got, wanted) == 0);                                              \
	} while (0)

TEST(what_a_thread_publishes_is_found_and_read)
{
	weft_id ids[4], me;

	begin();
	me = weft_self();
	CHECK_EQ(weft_dir_find("kind=thread", 0, SOON, ids, 4), 0);
	CHECK_OK(weft_dir_set(me, "role=worker title=\"big one\" load=3"));
	CHECK_EQ(weft_dir_find("kind=thread role=worker", 1, SOON, ids, 4), 1);
	CHECK(ids[0] == me);
	CHECK_EQ(weft_dir_find("title=big\\ o*", 1, SOON, ids, 4), 1);
	CHECK_TEXT(get(me, "role"), "worker");
	CHECK_TEXT(get(me, "kind"), "thread");
	CHECK_TEXT(get(me, "title"), "big one");
	CHECK_OK(weft_dir_set(me, "load= role=boss"));
	CHECK_TEXT(get(me, "role"), "boss");
	CHECK_EQ(weft_dir_get(me, "load", SOON, NULL, 0), -ENOENT);
	CHECK(strstr(get(me, NULL), "role=boss") && strstr(get(me, NULL), "title=\"big one\""));
	CHECK_EQ(weft_dir_find("role=worker", 0, SOON, ids, 4), 0);
	CHECK_EQ(weft_dir_find("kind=process", 1, SOON, ids, 4), 1);
	CHECK(ids[0] == weft_process());
	end();
}

TEST(a_text_that_does_not_fit_is_cut_off_and_its_length_told)
{
	char text[4] = "xyz";

	begin();
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_EQ(weft_dir_get(weft_self(), "role", SOON, text, sizeof(text)), 6);
	CHECK_TEXT(text, "wor");
	CHECK_EQ(weft_dir_get(weft_self(), "role", SOON, NULL, 0), 6);
	end();
}

TEST(the_process_has_the_name_it_was_given)
{
	weft_id id;

	begin();
	CHECK_EQ(wf_dir_self("solver one", "version=\"1"), -EINVAL);
	CHECK_OK(wf_dir_self("solver one", "version=1"));
	CHECK_EQ(weft_dir_find("kind=process name=solver_one version=1", 1, SOON, &id, 1), 1);
	CHECK(id == weft_process());
	CHECK_EQ(weft_dir_set(weft_process(), "name=other"), -EPERM);
	CHECK_OK(weft_dir_set(weft_process(), "version=2"));
	CHECK_EQ(weft_dir_find("/*/solver_one", 1, SOON, &id, 1), 1);
	end();
}

static void *named_thread(void *arg)
{
	weft_id id;

	(void)arg;
	MUST_OK(weft_thread_enter("helper"));
	CHECK_EQ(weft_dir_find("kind=thread name=helper", 1, SOON, &id, 1), 1);
	CHECK(id == weft_self());
	return NULL;
}

static void *worker_thread(void *arg)
{
	weft_id me = weft_self();

	CHECK_OK(weft_dir_set(me, "role=worker group=/pool"));
	*(weft_id *)arg = me;
	return NULL;
}

TEST(who_ends_is_out_of_the_directory)
{
	pthread_t t;
	weft_id id = 0, ids[2];

	begin();
	pthread_create(&t, NULL, named_thread, NULL);
	pthread_join(t, NULL);
	CHECK_EQ(weft_dir_find("name=helper", 0, SOON, ids, 2), 0);
	pthread_create(&t, NULL, worker_thread, &id);
	pthread_join(t, NULL);
	CHECK_EQ(weft_dir_find("role=worker", 0, SOON, ids, 2), 0);
	CHECK_EQ(weft_dir_find("kind=group", 0, SOON, ids, 2), 0);
	CHECK_EQ(weft_dir_get(id, "role", SOON, NULL, 0), -ESRCH);
	CHECK_EQ(weft_dir_set(id, "role=ghost"), -ESRCH);
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_OK(weft_thread_leave());
	CHECK_EQ(weft_dir_find("role=worker", 0, SOON, ids, 2), 0);
	end();
}

TEST(a_port_with_a_name_is_found_by_it_until_it_closes)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *port, *quiet;
	weft_id id = 0;

	begin();
	MUST_OK(weft_port_open(WEFT(port_opts, .name = "viewer"), &port));
	MUST_OK(weft_port_open(WEFT(port_opts, .name = "context", .context = weft_ctx_new()), &quiet));
	MUST_OK(weft_port_stat(port, &info));
	CHECK_EQ(weft_dir_find("kind=port", 1, SOON, &id, 1), 1);       /* one of a context has no id of its own */
	CHECK_EQ(weft_dir_find("kind=port name=viewer", 1, SOON, &id, 1), 1);
	CHECK(id == info.id);
	CHECK_OK(weft_dir_set(id, "codec=raw"));
	CHECK_TEXT(get(id, "codec"), "raw");
	MUST_OK(weft_port_close(port, SOON));
	MUST_OK(weft_port_close(quiet, SOON));
	CHECK_EQ(weft_dir_find("kind=port", 0, SOON, &id, 1), 0);
	end();
}

TEST(members_of_a_group_have_the_lowest_free_index)
{
	struct weft_port *port[4];
	struct weft_port_info info = { .size = sizeof(info) };
	weft_id id[4], got[4];

	begin();
	for (int i = 0; i < 4; i++) {
		MUST_OK(weft_port_open(WEFT(port_opts, .name = "w"), &port[i]));
		MUST_OK(weft_port_stat(port[i], &info));
		id[i] = info.id;
		MUST_OK(weft_dir_set(id[i], "group=/pool"));
	}
	CHECK_EQ(weft_dir_find("/pool/w[2]", 1, SOON, got, 4), 1);
	CHECK(got[0] == id[2]);
	MUST_OK(weft_dir_set(id[1], "group="));
	CHECK_EQ(weft_dir_find("/pool/w[1]", 0, SOON, got, 4), 0);
	MUST_OK(weft_dir_set(id[1], "group=/pool"));
	CHECK_EQ(weft_dir_find("/pool/w", 1, SOON, got, 4), 1);
	CHECK(got[0] == id[0]);
	MUST_OK(weft_dir_set(id[0], "group="));
	MUST_OK(weft_dir_set(id[1], "group="));
	MUST_OK(weft_dir_set(id[1], "group=/pool"));
	CHECK_TEXT(get(id[1], "member"), "/pool/w");
	CHECK_EQ(weft_dir_find("group=/pool", 3, SOON, got, 4), 3);
	CHECK(got[0] == id[1] && got[1] == id[2] && got[2] == id[3]);
	CHECK_EQ(weft_dir_find("group=/pool", 3, SOON, got, 1), 3);
	for (int i = 0; i < 4; i++)
		MUST_OK(weft_port_close(port[i], SOON));
	end();
}

TEST(repeated_look_ups_cost_no_message)
{
	uint64_t before;
	weft_id ids[4];
	char text[32];

	begin();
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_EQ(weft_dir_find("role=worker", 1, SOON, ids, 4), 1);
	CHECK_EQ(weft_dir_get(ids[0], "role", SOON, text, sizeof(text)), 6);
	before = wf_dir_messages();
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(weft_dir_find("role=worker", 1, SOON, ids, 4), 1);
		CHECK_EQ(weft_dir_get(ids[0], "role", SOON, text, sizeof(text)), 6);
		CHECK_EQ(weft_dir_get(ids[0], NULL, WEFT_NOW, text, sizeof(text)) > 6, 1);
		CHECK_EQ(weft_dir_get(ids[0], "path", SOON, text, sizeof(text)) > 0, 1);
	}
	CHECK_EQ(wf_dir_messages(), before);
	CHECK_OK(weft_dir_set(weft_self(), "role=boss"));
	CHECK(wf_dir_messages() > before);
	CHECK_TEXT(get(ids[0], "role"), "boss");
	end();
}

static weft_id waiter_found[4];

static void *waiter(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_dir_find("role=worker", 2, SOON, waiter_found, 4), 2);
	return NULL;
}

TEST(a_find_waits_for_enough_and_no_longer_than_its_deadline)
{
	struct weft_port *port;
	struct weft_port_info info = { .size = sizeof(info) };
	pthread_t t;
	weft_id id;

	begin();
	weft_time before = weft_now();
	CHECK_EQ(weft_dir_find("role=worker", 1, weft_in(30 * WEFT_MS), &id, 1), -ETIMEDOUT);
	CHECK(weft_now() - before >= 30 * WEFT_MS);
	CHECK_EQ(weft_dir_find("role=worker", 1, WEFT_NOW, &id, 1), -EAGAIN);
	CHECK_EQ(weft_dir_find("role=worker", 0, WEFT_NOW, &id, 1), 0);
	pthread_create(&t, NULL, waiter, NULL);
	usleep(20000);
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	usleep(20000);
	MUST_OK(weft_port_open(WEFT(port_opts, .name = "w"), &port));
	MUST_OK(weft_port_stat(port, &info));
	CHECK_OK(weft_dir_set(info.id, "role=worker"));
	pthread_join(t, NULL);
	CHECK((waiter_found[0] == weft_self()) != (waiter_found[1] == weft_self()));
	MUST_OK(weft_port_close(port, SOON));
	end();
}

static void *finds_for_ever(void *arg)
{
	weft_id id;

	(void)arg;
	weft_dir_find("role=never", 1, WEFT_FOREVER, &id, 1);
	CHECK(false);
	return NULL;
}

TEST(a_thread_that_waits_in_a_find_can_be_cancelled)
{
	pthread_t t;
	void *result;
	weft_id id;

	if (TEST_ASAN)
		SKIP("AddressSanitizer loses track of a cancelled thread's stack");
	begin();
	for (int i = 0; i < 20; i++) {
		pthread_create(&t, NULL, finds_for_ever, NULL);
		usleep(i * 300u);
		pthread_cancel(t);
		pthread_join(t, &result);
		CHECK(result == PTHREAD_CANCELED);
	}
	CHECK_EQ(weft_dir_find("role=never", 0, SOON, &id, 1), 0);
	CHECK_OK(weft_dir_set(weft_self(), "role=never"));
	CHECK_EQ(weft_dir_find("role=never", 1, SOON, &id, 1), 1);
	end();
}

TEST(a_watch_tells_its_queue_of_those_who_are_there_and_of_all_that_follows)
{
	struct weft_queue *queue;
	struct weft_req *watch;
	struct weft_status st;
	pthread_t t;
	weft_id id = 0;
	int mark;

	begin();
	MUST_OK(weft_queue_open(&queue));
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_OK(weft_dir_watch("role=worker", WEFT(op, .queue = queue, .user = &mark), &watch));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.err == 0 && st.from == weft_self() && st.tag == WEFT_JOINED && st.flags == WEFT_ST_MORE && st.user == &mark && st.index == WEFT_NOBODY);
	CHECK_OK(weft_dir_set(weft_self(), "role=worker load=1"));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.tag == WEFT_CHANGED && st.from == weft_self());
	pthread_create(&t, NULL, worker_thread, &id);
	pthread_join(t, NULL);
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.tag == WEFT_JOINED && st.from == id);
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.tag == WEFT_LEFT && st.from == id);
	CHECK_OK(weft_dir_set(weft_self(), "role="));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.tag == WEFT_LEFT && st.from == weft_self());
	CHECK_EQ(weft_queue_close(queue), -EBUSY);
	CHECK_OK(weft_req_cancel(watch));
	CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
	CHECK(st.err == -ECANCELED && !(st.flags & WEFT_ST_MORE));
	CHECK_EQ(weft_req_wait(&watch, SOON, &st), -ECANCELED);
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	CHECK_EQ(weft_queue_next(queue, WEFT_NOW, &st, 1), -EAGAIN);
	CHECK_OK(weft_queue_close(queue));
	end();
}

static _Atomic int called[5];

static void on_event(const struct weft_status *st)
{
	weft_id id;

	if (st->err) {
		called[4]++;
		return;
	}
	CHECK_EQ(weft_dir_find("role=never", 1, weft_in(WEFT_S), &id, 1), -EDEADLK);
	CHECK_EQ(weft_dir_find("role=never", 0, WEFT_NOW, &id, 1), 0);
	CHECK_OK(weft_dir_set(weft_process(), "seen=1"));
	called[st->tag]++;              /* behind them: who waits for it may close the directory */
}

static void wait_called(int which, int times)
{
	for (int i = 0; called[which] < times && i < 5000; i++)
		usleep(1000);
	CHECK_EQ(called[which], times);
}

TEST(a_watch_calls_back_and_what_would_wait_there_does_not)
{
	struct weft_req *watch;

	begin();
	memset(called, 0, sizeof(called));
	CHECK_OK(weft_dir_watch("kind=thread", WEFT(op, .done = on_event), &watch));
	CHECK_OK(weft_dir_set(weft_self(), "role=worker"));
	wait_called(WEFT_JOINED, 1);
	CHECK_OK(weft_dir_set(weft_self(), "role=boss"));
	wait_called(WEFT_CHANGED, 1);
	CHECK_OK(weft_req_cancel(watch));
	wait_called(4, 1);
	CHECK_OK(weft_req_free(watch));
	/* Without a handle it goes on until the process leaves. */
	CHECK_OK(weft_dir_watch("kind=thread", WEFT(op, .done = on_event), NULL));
	wait_called(WEFT_JOINED, 2);
	CHECK_OK(weft_dir_watch("kind=thread", WEFT(op, .done = on_event), &watch));
	CHECK_OK(weft_req_free(watch));
	wait_called(WEFT_JOINED, 3);
	wf_dir_close();
	wait_called(4, 3);
	job_end();
}

TEST(cancelled_watches_make_room_for_others)
{
	struct weft_queue *queue;
	struct weft_req *watch[1200];
	struct weft_status st;
	int n = 0, r = 0;

	begin();
	MUST_OK(weft_queue_open(&queue));
	for (int round = 0; round < 3; round++) {
		for (n = 0; n < 1200; n++) {
			r = weft_dir_watch("role=never", WEFT(op, .queue = queue), &watch[n]);
			if (r < 0)
				break;
		}
		CHECK(n == 1024 && r == -ENOBUFS);
		for (int i = 0; i < n; i++) {
			CHECK_OK(weft_req_cancel(watch[i]));
			CHECK_OK(weft_req_free(watch[i]));
			CHECK_EQ(weft_queue_next(queue, SOON, &st, 1), 1);
		}
	}
	CHECK_OK(weft_queue_close(queue));
	end();
}

TEST(nonsense_has_an_answer)
{
	weft_id id = 0, other = (weft_id)77 << 32 | 5;
	struct weft_queue *queue;
	struct weft_req *req = NULL;
	char text[8];

	CHECK_EQ(weft_dir_set(1, "a=1"), -ENOTCONN);
	CHECK_EQ(weft_dir_get(1, "a", WEFT_NOW, text, 8), -ENOTCONN);
	CHECK_EQ(weft_dir_find("a=1", 1, WEFT_NOW, &id, 1), -ENOTCONN);
	CHECK_EQ(weft_dir_watch("a=1", WEFT(op, .done = on_event), &req), -ENOTCONN);
	begin();
	MUST_OK(weft_queue_open(&queue));
	CHECK_EQ(weft_dir_set(0, "a=1"), -EINVAL);
	CHECK_EQ(weft_dir_set(weft_self(), NULL), -EINVAL);
	CHECK_EQ(weft_dir_set(weft_self(), "worker"), -EINVAL);
	CHECK_EQ(weft_dir_set(weft_self(), "kind=port"), -EPERM);
	CHECK_EQ(weft_dir_set(weft_self(), "path=/x"), -EPERM);
	CHECK_EQ(weft_dir_set(weft_self(), "group=pool"), -EINVAL);
	CHECK_EQ(weft_dir_set(weft_self(), "name=\"a b\""), -EINVAL);
	CHECK_EQ(weft_dir_set(weft_self(), "name="), -EINVAL);
	CHECK_EQ(weft_dir_set(other, "a=1"), -EPERM);
	CHECK_EQ(weft_dir_set(weft_process() + 9999, "a=1"), -ESRCH);
	CHECK(weft_last_error()[0]);
	CHECK_OK(weft_dir_set(weft_self(), ""));
	CHECK_EQ(weft_dir_get(0, "a", SOON, text, 8), -EINVAL);
	CHECK_EQ(weft_dir_get(weft_self(), "a b", SOON, text, 8), -EINVAL);
	CHECK_EQ(weft_dir_get(weft_self(), "", SOON, text, 8), -EINVAL);
	CHECK_EQ(weft_dir_get(weft_self(), "a", SOON, NULL, 8), -EINVAL);
	CHECK_EQ(weft_dir_get(weft_self(), "a", SOON, text, 8), -ENOENT);
	CHECK_EQ(weft_dir_get(other, "a", SOON, text, 8), -ESRCH);
	CHECK_EQ(weft_dir_find(NULL, 1, SOON, &id, 1), -EINVAL);
	CHECK_EQ(weft_dir_find("worker", 1, SOON, &id, 1), -EINVAL);
	CHECK_EQ(weft_dir_find("", 1, SOON, &id, 1), -EINVAL);
	CHECK_EQ(weft_dir_find("a=1", -1, SOON, &id, 1), -EINVAL);
	CHECK_EQ(weft_dir_find("a=1", 0, SOON, &id, -1), -EINVAL);
	CHECK_EQ(weft_dir_find("a=1", 0, SOON, NULL, 1), -EINVAL);
	CHECK_EQ(weft_dir_find("a=1", 0, SOON, NULL, 0), 0);
	CHECK_EQ(weft_dir_watch(NULL, WEFT(op, .queue = queue), &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("worker", WEFT(op, .queue = queue), &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("a=1", NULL, &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("a=1", WEFT(op, .tag = 0), &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("a=1", WEFT(op, .queue = queue, .done = on_event), &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("a=1", WEFT(op, .queue = queue, .tag = 1), &req), -EINVAL);
	CHECK_EQ(weft_dir_watch("a=1", WEFT(op, .queue = queue, .expires = 1), &req), -EOPNOTSUPP);
	CHECK_EQ(weft_dir_watch("a=1", &(struct weft_op){ .size = 4, .queue = queue }, &req), -EINVAL);
	CHECK(req == NULL);
	CHECK_OK(weft_queue_close(queue));
	end();
}

TEST(a_process_that_publishes_too_much_is_refused_here_already)
{
	char attrs[3000];
	int r = 0, n = 0;
	struct weft_port *port[64];
	struct weft_port_info info = { .size = sizeof(info) };

	begin();
	attrs[0] = 0;
	for (int k = 0; k < 33; k++)
		sprintf(attrs + strlen(attrs), "k%d=1 ", k);
	CHECK_EQ(weft_dir_set(weft_self(), attrs), -EINVAL);
	for (n = 0; n < 64; n++) {
		MUST_OK(weft_port_open(NULL, &port[n]));
		MUST_OK(weft_port_stat(port[n], &info));
		attrs[0] = 0;
		for (int k = 0; k < 10; k++)
			sprintf(attrs + strlen(attrs), "k%d=%0250d ", k, n);
		r = weft_dir_set(info.id, attrs);
		CHECK_OK(r);
	}
	while (n--)
		MUST_OK(weft_port_close(port[n], SOON));
	end();
}

static void *churn(void *arg)
{
	uint64_t seed = test_seed + (uintptr_t)arg;
	weft_id ids[64];
	char text[64];

	for (int i = 0, n = (int)test_scaled(300); i < n; i++) {
		switch (test_random(&seed) % 5) {
		case 0:
			CHECK_OK(weft_dir_set(weft_self(), test_random(&seed) % 2 ? "role=worker" : "role=boss group=/pool"));
			break;
		case 1:
			CHECK(weft_dir_find("role=*", 0, SOON, ids, 64) >= 0);
			break;
		case 2: {
			int found = weft_dir_find("group=/pool", 0, SOON, ids, 64), r;

			for (int k = 0; k < found && k < 64; k++) {
				r = weft_dir_get(ids[k], "role", SOON, text, sizeof(text));
				CHECK(r > 0 || r == -ESRCH || r == -ENOENT);
			}
			break;
		}
		case 3:
			CHECK_OK(weft_dir_set(weft_self(), "group= load=1"));
			break;
		default:
			if (test_random(&seed) % 8 == 0)
				weft_thread_leave();            /* -ENOTCONN: it has not come back since */
		}
	}
	return NULL;
}

TEST(many_threads_publish_and_look_up_at_once)
{
	struct weft_queue *queue;
	struct weft_req *watch;
	struct weft_status st[16];
	pthread_t t[6];
	weft_id ids[64], there[64];
	int n, there_n = 0, joined = 0;

	begin();
	MUST_OK(weft_queue_open(&queue));
	MUST_OK(weft_dir_watch("role=*", WEFT(op, .queue = queue), &watch));
	for (uintptr_t i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, churn, (void *)i);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(weft_dir_find("kind=thread", 0, SOON, ids, 64), 0);
	while ((n = weft_queue_next(queue, WEFT_NOW, st, 16)) > 0)
		for (int i = 0; i < n; i++) {
			int at = 0;

			while (at < there_n && there[at] != st[i].from)
				at++;
			CHECK((st[i].tag == WEFT_JOINED) == (at == there_n));
			if (st[i].tag == WEFT_JOINED && there_n < 64)
				there[there_n++] = st[i].from, joined++;
			else if (st[i].tag == WEFT_LEFT && at < there_n)
				there[at] = there[--there_n];
		}
	CHECK_EQ(there_n, 0);
	CHECK(joined >= 1);
	MUST_OK(weft_req_cancel(watch));
	MUST_OK(weft_req_free(watch));
	MUST_EQ(weft_queue_next(queue, SOON, st, 1), 1);
	MUST_OK(weft_queue_close(queue));
	end();
}

TEST_MAIN
