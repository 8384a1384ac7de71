/* test_nonsense.c - every public call refuses what makes no sense, with the code its header names.
 *
 * A refusal leaves words, leaves the outputs alone, and loses nothing: after each test a good
 * message still goes from one port to the other, and all queues are empty.
 */
#include <sys/wait.h>
#include <weft/match.h>
#include <weft/weft.h>

#include "../test.h"

/* The call answers @err, and its words are its own: those of an earlier failure are gone. */
#define REFUSED(err, call)                                                                         \
	do {                                                                                       \
		weft_fail(-EXDEV, "stale words");                                                  \
		CHECK_EQ(call, err);                                                               \
		if (!*weft_last_error() || !strcmp(weft_last_error(), "stale words"))              \
			test_check(false, __FILE__, __LINE__, "has words: " #call, 0, 0, false);   \
	} while (0)

static struct weft_port *a, *b;
static weft_id a_id, b_id;

/* Outputs are filled with this, and must still be after a failure. */
static void *const canary = &a;
static struct weft_req *req;
static struct weft_msg *msg;
static struct weft_buf *out_buf;
static struct weft_status st;

static void outputs_arm(void)
{
	req = canary;
	msg = canary;
	out_buf = canary;
	memset(&st, 0xa5, sizeof(st));
}

static bool outputs_untouched(void)
{
	struct weft_status poison;

	memset(&poison, 0xa5, sizeof(poison));
	return (void *)req == canary && (void *)msg == canary && (void *)out_buf == canary &&
	       !memcmp(&st, &poison, sizeof(st));
}

static weft_id port_id(struct weft_port *port)
{
	struct weft_port_info info = { .size = sizeof(info) };

	MUST_OK(weft_port_stat(port, &info));
	return info.id;
}

static void setup(void)
{
	MUST_OK(weft_init(NULL));
	MUST_OK(weft_port_open(NULL, &a));
	MUST_OK(weft_port_open(NULL, &b));
	a_id = port_id(a);
	b_id = port_id(b);
	outputs_arm();
}

/* Nothing came of the nonsense, and sense still works. */
static void teardown(void)
{
	struct weft_stats stats = { .size = sizeof(stats) };
	struct weft_status good;
	int x = 42, y = 0;

	CHECK(outputs_untouched());
	CHECK_EQ(weft_probe(b, WEFT(op, .peer = WEFT_ANY, .tag = WEFT_ANY_TAG), WEFT_NOW, NULL, NULL),
		 -EAGAIN);
	CHECK_OK(weft_send(a, b_id, 7, &x, sizeof(x), WEFT_FOREVER));
	CHECK_OK(weft_recv(b, a_id, 7, &y, sizeof(y), weft_in(10 * WEFT_S), &good));
	CHECK_EQ(y, 42);
	CHECK_EQ(good.from, a_id);
	CHECK_OK(weft_stats_get(NULL, &stats));
	CHECK_EQ(stats.expected + stats.unexpected + stats.requested + stats.unrequested, 0);
	CHECK_OK(weft_port_close(a, WEFT_FOREVER));
	CHECK_OK(weft_port_close(b, WEFT_FOREVER));
	CHECK_OK(weft_fini(WEFT_FOREVER));
}

/* Option structs of a weft that does not exist yet: the fields here, and some more. */
#define LATER(what)                                                                                \
	struct {                                                                                   \
		struct weft_##what now;                                                            \
		uint64_t more[4];                                                                  \
	}

/* Before weft_init, and after the last weft_fini */

static void all_answer_without_a_job(int err)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_stats stats = { .size = sizeof(stats) };
	struct weft_port *port = canary;
	struct weft_queue *queue = canary;
	struct weft_state *state = canary;
	int x = 0;

	outputs_arm();
	CHECK_EQ(weft_self(), 0);
	CHECK_EQ(weft_process(), 0);
	CHECK_EQ(weft_ctx_new(), 0);
	CHECK(!weft_port_world());
	REFUSED(err, weft_fini(WEFT_FOREVER));
	REFUSED(err, weft_poll(WEFT_FOREVER));
	REFUSED(err, weft_thread_enter("me"));
	REFUSED(err, weft_thread_leave());
	REFUSED(err, weft_buf_get(10, 0, &out_buf));
	REFUSED(err, weft_port_open(NULL, &port));
	REFUSED(err, weft_port_stat(NULL, &info));
	REFUSED(err, weft_queue_open(&queue));
	REFUSED(err, weft_req_new(NULL, NULL, NULL, &req));
	REFUSED(err, weft_send(NULL, 1, 1, &x, sizeof(x), WEFT_FOREVER));
	REFUSED(err, weft_recv(NULL, WEFT_ANY, 1, &x, sizeof(x), WEFT_FOREVER, &st));
	REFUSED(err, weft_buf_recv(NULL, WEFT_ANY, 1, WEFT_FOREVER, &out_buf, &st));
	REFUSED(err, weft_send_post(NULL, WEFT(op, .peer = 1, .data = &x, .len = sizeof(x)), &req));
	REFUSED(err,
		weft_recv_post(NULL, WEFT(op, .peer = WEFT_ANY, .data = &x, .len = sizeof(x)), &req, &st));
	REFUSED(err, weft_probe(NULL, WEFT(op, .peer = WEFT_ANY), WEFT_FOREVER, &msg, &st));
	REFUSED(err, weft_stats_get(NULL, &stats));
	REFUSED(err, weft_state_open(getpid(), &state));
	CHECK((void *)port == canary && (void *)queue == canary && (void *)state == canary);
	CHECK(outputs_untouched());
}

TEST(before_init_and_after_fini_calls_answer_enotconn)
{
	all_answer_without_a_job(-ENOTCONN);
	setup();
	teardown();
	all_answer_without_a_job(-ENOTCONN);
	CHECK_OK(weft_init(NULL));              /* counted: one fini is not the last */
	CHECK_OK(weft_init(NULL));
	CHECK_OK(weft_fini(WEFT_FOREVER));
	CHECK(weft_self() != 0);
	CHECK_OK(weft_fini(WEFT_FOREVER));
	REFUSED(-ENOTCONN, weft_fini(WEFT_FOREVER));
}

TEST(what_needs_no_job_works_without_one)
{
	char text[WEFT_ID_TEXT];
	weft_id id;

	CHECK(weft_now() > 0);
	CHECK(weft_in(WEFT_S) > weft_now());
	CHECK_EQ(weft_in(INT64_MAX), WEFT_FOREVER);
	CHECK(weft_in(-WEFT_S) < weft_now());
	CHECK(weft_in(INT64_MIN) < weft_now());
	CHECK(*weft_version() >= '0' && *weft_version() <= '9');
	CHECK(*weft_strerror(-ESRCH) && *weft_strerror(0) && *weft_strerror(12345) && *weft_strerror(-12345));
	CHECK_OK(weft_id_parse(weft_id_print(UINT64_C(0x123456789abcdef), text, sizeof(text)), &id));
	CHECK_EQ(id, 0x123456789abcdef);
	CHECK_OK(weft_buf_put(NULL));
	CHECK(!weft_buf_of(NULL));
	CHECK_OK(weft_req_free(NULL));
	CHECK_OK(weft_queue_close(NULL));
	CHECK_OK(weft_port_close(NULL, WEFT_FOREVER));
	CHECK_OK(weft_state_close(NULL));
	CHECK_OK(weft_proto_free(NULL));
}

/* base.h and id.h */

TEST(init_refuses_options_that_make_no_sense)
{
	LATER(init_opts) later = { .now.size = sizeof(later) };

	REFUSED(-EINVAL, weft_init(&(struct weft_init_opts){ .size = 0 }));
	REFUSED(-EINVAL, weft_init(&(struct weft_init_opts){ .size = 3 }));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .flags = 1)));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "spin_ns")));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "spin_ns=often")));
	REFUSED(-ENOENT, weft_init(WEFT(init_opts, .knobs = "no_such_knob=1")));
	REFUSED(-ERANGE, weft_init(WEFT(init_opts, .knobs = "spin_ns=-1")));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "secure=ful")));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "secure=full+")));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "secure=1")));
	REFUSED(-EINVAL, weft_init(WEFT(init_opts, .knobs = "secure=")));
	later.more[3] = 1;
	REFUSED(-E2BIG, weft_init(&later.now));
	all_answer_without_a_job(-ENOTCONN);    /* none of these was counted */
	later.more[3] = 0;
	CHECK_OK(weft_init(&later.now));
	CHECK_OK(weft_fini(WEFT_FOREVER));
	setup();
	teardown();
}

TEST(knobs_that_are_words_or_texts_are_told_as_they_were_set)
{
	char text[16], long_text[200] = "rails=", was[160] = "x";

	CHECK_OK(weft_init(WEFT(init_opts, .knobs = "secure=sum rails=net:left")));
	CHECK_EQ(weft_knob_get("secure", text, sizeof(text)), 3);
	CHECK(!strcmp(text, "sum"));
	CHECK_EQ(weft_knob_get("rails", text, sizeof(text)), 8);
	CHECK(!strcmp(text, "net:left"));
	REFUSED(-EROFS, weft_knob_set("secure", "full"));
	REFUSED(-EROFS, weft_knob_set("rails", "net:right"));
	CHECK_OK(weft_fini(WEFT_FOREVER));
	CHECK_OK(weft_init(NULL));                      /* they are as at the beginning */
	CHECK_EQ(weft_knob_get("secure", text, sizeof(text)), 4);
	CHECK(!strcmp(text, "full"));
	CHECK_OK(weft_knob_get("rails", was, sizeof(was)));
	CHECK(!*was);
	CHECK_OK(weft_fini(WEFT_FOREVER));
	memset(long_text + 6, 'x', 127);
	CHECK_OK(weft_init(WEFT(init_opts, .knobs = long_text)));
	CHECK_EQ(weft_knob_get("rails", was, sizeof(was)), 127);
	CHECK(!strcmp(was, long_text + 6));
	CHECK_OK(weft_fini(WEFT_FOREVER));
	long_text[6 + 127] = 'x';
	REFUSED(-ERANGE, weft_init(WEFT(init_opts, .knobs = long_text)));
}

TEST(knobs_refuse_unknown_names_and_impossible_values)
{
	char text[8] = "before", two[2];

	setup();
	REFUSED(-ENOENT, weft_knob_set("no_such_knob", "1"));
	REFUSED(-EINVAL, weft_knob_set(NULL, "1"));
	REFUSED(-EINVAL, weft_knob_set("spin_ns", NULL));
	REFUSED(-EINVAL, weft_knob_set("spin_ns", ""));
	REFUSED(-EINVAL, weft_knob_set("spin_ns", "many"));
	REFUSED(-ERANGE, weft_knob_set("spin_ns", "-5"));
	REFUSED(-EROFS, weft_knob_set("budget", "1048576"));
	REFUSED(-ENOENT, weft_knob_get("no_such_knob", text, sizeof(text)));
	REFUSED(-EINVAL, weft_knob_get(NULL, text, sizeof(text)));
	REFUSED(-EINVAL, weft_knob_get("spin_ns", NULL, 8));
	CHECK(!strcmp(text, "before"));
	CHECK_OK(weft_knob_set("spin_ns", "750"));
	CHECK_EQ(weft_knob_get("spin_ns", text, sizeof(text)), 3);
	CHECK(!strcmp(text, "750"));
	CHECK_EQ(weft_knob_get("spin_ns", two, sizeof(two)), 3);
	CHECK(!strcmp(two, "7"));
	CHECK_EQ(weft_knob_get("spin_ns", NULL, 0), 3);
	CHECK_OK(weft_knob_set("spin_ns", "500"));
	teardown();
}

TEST(ids_refuse_text_that_is_none)
{
	static const char *const none[] = {
		"", " ", "hello", "1.2.3", "1.2.3.4.5", "-1.0.0.0", "99999.0.0.0", "0.0.0.0x",
	};
	char text[4] = "xyz", longer[80];
	weft_id id = 77;

	setup();
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		REFUSED(-EINVAL, weft_id_parse(none[i], &id));
	REFUSED(-EINVAL, weft_id_parse(NULL, &id));
	CHECK_EQ(id, 77);
	snprintf(longer, sizeof(longer), "%s ", weft_id_print(a_id, longer + 40, 40));
	REFUSED(-EINVAL, weft_id_parse(longer, &id));
	CHECK(weft_id_print(a_id, text, 2) == text);
	CHECK_EQ(text[1], 0);                   /* cut off, and ended */
	CHECK_EQ(text[2], 'z');
	CHECK(weft_id_print(a_id, NULL, 0) == NULL);
	CHECK_EQ(weft_id_distance(0), 3);
	CHECK_EQ(weft_id_distance(WEFT_ANY), 3);
	CHECK_EQ(weft_id_distance(weft_self()), 0);
	CHECK_EQ(weft_id_distance(b_id), 1);
	REFUSED(-EALREADY, weft_thread_enter("again"));
	CHECK_OK(weft_thread_leave());
	REFUSED(-ENOTCONN, weft_thread_leave());
	REFUSED(-EINVAL, weft_thread_enter(""));
	REFUSED(-EINVAL,
		weft_thread_enter("0123456789012345678901234567890123456789012345678901234567890123456789"));
	CHECK_OK(weft_thread_enter("fine"));
	teardown();
}

/* buf.h */

TEST(buffers_refuse_what_is_none)
{
	struct weft_buf *buf, stray = { .data = &stray, .len = 1, .cap = 1 };
	int x;

	setup();
	REFUSED(-EINVAL, weft_buf_get(10, 0, NULL));
	REFUSED(-ENOBUFS, weft_buf_get(SIZE_MAX, 0, &out_buf));
	REFUSED(-ENOBUFS, weft_buf_get((size_t)1 << 45, 0, &out_buf));
	REFUSED(-EINVAL, weft_buf_put(&stray));
	REFUSED(-EINVAL, weft_buf_put((struct weft_buf *)(uintptr_t)16));
	REFUSED(-EINVAL, weft_buf_state(NULL));
	REFUSED(-EINVAL, weft_buf_state(&stray));
	CHECK(!weft_buf_of(&x));
	REFUSED(-EINVAL, weft_buf_send(a, b_id, 1, NULL, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_buf_send(a, b_id, 1, &stray, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_buf_recv(b, a_id, 1, WEFT_FOREVER, NULL, &st));

	MUST_OK(weft_buf_get(100, 0, &buf));
	CHECK(weft_buf_of((char *)buf->data + 99) == buf);
	buf->len = buf->cap + 1;
	REFUSED(-EINVAL, weft_buf_send(a, b_id, 1, buf, WEFT_FOREVER));
	buf->len = 100;
	REFUSED(-EINVAL, weft_buf_send(a, b_id, WEFT_ANY_TAG, buf, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_buf_send(a, 0, 1, buf, WEFT_FOREVER));
	CHECK_EQ(weft_buf_state(buf), WEFT_BUF_IDLE);           /* mine after every one of them */
	CHECK_OK(weft_buf_put(buf));
	REFUSED(-EINVAL, weft_buf_put(buf));
	REFUSED(-EINVAL, weft_buf_send(a, b_id, 1, buf, WEFT_FOREVER));
	teardown();
}

/* req.h */

static void count_end(const struct weft_status *end)
{
	atomic_fetch_add((_Atomic int *)end->user, 1);
}

TEST(requests_refuse_what_is_none)
{
	struct weft_req *mine = NULL, *some[3] = { NULL };
	struct weft_queue *queue;
	struct weft_status sts[3];
	int which[3] = { 7, 7, 7 };
	_Atomic int ends = 0;

	setup();
	MUST_OK(weft_queue_open(&queue));
	REFUSED(-EINVAL, weft_req_wait(NULL, WEFT_FOREVER, &st));
	REFUSED(-EINVAL, weft_req_cancel(NULL));
	REFUSED(-EINVAL, weft_req_complete(NULL, NULL));
	REFUSED(-EINVAL, weft_req_new(NULL, NULL, NULL, NULL));
	REFUSED(-EINVAL, weft_req_new(count_end, queue, &ends, &req));
	CHECK_OK(weft_req_free(NULL));

	REFUSED(-EINVAL, weft_req_wait_some(some, -1, 0, 1, WEFT_FOREVER, which, sts));
	REFUSED(-EINVAL, weft_req_wait_some(some, 3, -1, 1, WEFT_FOREVER, which, sts));
	REFUSED(-EINVAL, weft_req_wait_some(some, 3, 2, 1, WEFT_FOREVER, which, sts));
	REFUSED(-EINVAL, weft_req_wait_some(some, 3, 0, 0, WEFT_FOREVER, which, sts));
	REFUSED(-EINVAL, weft_req_wait_some(NULL, 3, 1, 1, WEFT_FOREVER, which, sts));
	CHECK_EQ(which[0], 7);
	CHECK_EQ(weft_req_wait_some(some, 3, 3, 3, WEFT_FOREVER, which, sts),
		 0); /* only NULLs: nothing to wait for */
	CHECK_EQ(weft_req_wait_some(NULL, 0, 0, 0, WEFT_FOREVER, NULL, NULL), 0);

	MUST_OK(weft_req_new(NULL, NULL, NULL, &mine));
	CHECK_EQ(weft_req_wait(&mine, WEFT_NOW, &st), -EAGAIN);
	CHECK_EQ(weft_req_wait(&mine, weft_in(-WEFT_S), &st), -ETIMEDOUT);
	CHECK_EQ(weft_req_peek(mine, &st), -EAGAIN);
	CHECK(outputs_untouched());
	CHECK_OK(weft_req_complete(mine, NULL));
	REFUSED(-EALREADY, weft_req_complete(mine, NULL));
	REFUSED(-EALREADY, weft_req_cancel(mine));
	CHECK_OK(weft_req_wait(&mine, WEFT_NOW, NULL));
	CHECK(!mine);
	CHECK_OK(weft_req_wait(&mine, WEFT_FOREVER, NULL));     /* NULL: no wait */

	MUST_EQ(weft_recv_post(b, WEFT(op, .peer = WEFT_ANY, .tag = 1), &mine, NULL), 0);
	REFUSED(-EINVAL, weft_req_complete(mine, NULL));        /* not the program's to end */
	CHECK_OK(weft_req_cancel(mine));
	CHECK_EQ(weft_req_wait(&mine, WEFT_FOREVER, NULL), -ECANCELED);
	CHECK_OK(weft_queue_close(queue));
	CHECK_EQ(ends, 0);
	teardown();
}

TEST(queues_refuse_what_is_none)
{
	struct weft_queue *queue;
	struct weft_req *mine = NULL;

	setup();
	REFUSED(-EINVAL, weft_queue_open(NULL));
	REFUSED(-EINVAL, weft_queue_fd(NULL));
	REFUSED(-EINVAL, weft_queue_next(NULL, WEFT_FOREVER, &st, 1));
	MUST_OK(weft_queue_open(&queue));
	REFUSED(-EINVAL, weft_queue_next(queue, WEFT_FOREVER, NULL, 1));
	REFUSED(-EINVAL, weft_queue_next(queue, WEFT_FOREVER, &st, 0));
	REFUSED(-EINVAL, weft_queue_next(queue, WEFT_FOREVER, &st, -1));
	CHECK_EQ(weft_queue_next(queue, WEFT_NOW, &st, 1), -EAGAIN);
	CHECK_EQ(weft_queue_next(queue, weft_in(WEFT_MS), &st, 1), -ETIMEDOUT);
	CHECK(outputs_untouched());
	MUST_EQ(weft_recv_post(b, WEFT(op, .peer = WEFT_ANY, .tag = 1, .queue = queue), &mine, NULL), 0);
	REFUSED(-EBUSY, weft_queue_close(queue));
	CHECK_OK(weft_req_cancel(mine));
	CHECK_OK(weft_req_free(mine));
	CHECK_EQ(weft_queue_next(queue, weft_in(10 * WEFT_S), &st, 1), 1);
	CHECK_EQ(st.err, -ECANCELED);
	CHECK_OK(weft_queue_close(queue));
	outputs_arm();
	teardown();
}

/* port.h */

TEST(ports_refuse_options_that_make_no_sense)
{
	struct weft_port *port = canary, *owned, *context;
	weft_ctx ctx;
	LATER(port_opts) later = { .now.size = sizeof(later) };

	setup();
	ctx = weft_ctx_new();
	CHECK(ctx != 0);
	REFUSED(-EINVAL, weft_port_open(NULL, NULL));
	REFUSED(-EINVAL, weft_port_open(&(struct weft_port_opts){ .size = 0 }, &port));
	REFUSED(-EINVAL, weft_port_open(&(struct weft_port_opts){ .size = 3 }, &port));
	REFUSED(-EINVAL, weft_port_open(WEFT(port_opts, .flags = 1u << 30), &port));
	REFUSED(-EINVAL, weft_port_open(WEFT(port_opts, .count = 2), &port));   /* of whom? */
	REFUSED(-EINVAL, weft_port_open(WEFT(port_opts, .members = &a_id, .count = 1, .like = a), &port));
	REFUSED(-EINVAL, weft_port_open(WEFT(port_opts, .context = ctx, .channel = "text"), &port));
	REFUSED(-EINVAL, weft_port_open(WEFT(port_opts, .channel = ""), &port));
	later.more[0] = 1;
	REFUSED(-E2BIG, weft_port_open(&later.now, &port));
	CHECK((void *)port == canary);
	later.more[0] = 0;
	MUST_OK(weft_port_open(&later.now, &port));
	CHECK_OK(weft_port_close(port, WEFT_FOREVER));

	MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .flags = WEFT_PORT_OWNED), &owned));
	REFUSED(-EEXIST, weft_port_open(WEFT(port_opts, .context = ctx, .flags = WEFT_PORT_OWNED), &port));
	MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx), &context)); /* the process's: another id */
	REFUSED(-EEXIST, weft_port_open(WEFT(port_opts, .context = ctx), &port));
	CHECK_OK(weft_port_close(owned, WEFT_FOREVER));
	CHECK_OK(weft_port_close(context, WEFT_FOREVER));
	REFUSED(-ESTALE, weft_port_open(WEFT(port_opts, .context = ctx), &port));
	teardown();
}

static void *close_and_receive_elsewhere(void *port)
{
	int x;

	REFUSED(-EPERM, weft_port_close(port, WEFT_FOREVER));
	REFUSED(-EPERM, weft_recv(port, WEFT_ANY, 1, &x, sizeof(x), WEFT_FOREVER, &st));
	REFUSED(-EPERM, weft_buf_recv(port, WEFT_ANY, 1, WEFT_FOREVER, &out_buf, &st));
	REFUSED(-EPERM, weft_recv_post(port, WEFT(op, .peer = WEFT_ANY, .tag = 1), &req, &st));
	REFUSED(-EPERM, weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_FOREVER, &msg, &st));
	return NULL;
}

TEST(an_owned_port_refuses_receivers_and_closers_that_are_not_its_owner)
{
	struct weft_port *owned;
	pthread_t thread;

	setup();
	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED), &owned));
	MUST_OK(pthread_create(&thread, NULL, close_and_receive_elsewhere, owned));
	pthread_join(thread, NULL);
	CHECK_OK(weft_port_close(owned, WEFT_FOREVER));
	REFUSED(-EPERM, weft_port_close(weft_port_world(), WEFT_FOREVER));
	teardown();
}

TEST(questions_about_ports_have_an_answer_for_nonsense)
{
	struct weft_port_info info = { .size = sizeof(info) }, none = { .size = 0 };
	LATER(port_info) later = { .now.size = sizeof(later) };
	struct weft_port *group;
	weft_id members[2] = { a_id, 0 };

	setup();
	members[0] = a_id, members[1] = b_id;
	REFUSED(-EINVAL, weft_port_stat(a, NULL));
	REFUSED(-EINVAL, weft_port_stat(a, &none));
	CHECK_OK(weft_port_stat(a, &later.now));
	CHECK_EQ(later.now.id, a_id);
	CHECK_OK(weft_port_stat(NULL, &info));
	CHECK_EQ(info.id, weft_self());
	MUST_OK(weft_port_open(WEFT(port_opts, .members = members, .count = 2, .index = 1), &group));
	CHECK_EQ(weft_port_member(group, 1), b_id);
	CHECK_EQ(weft_port_member(group, 2), 0);
	CHECK_EQ(weft_port_member(group, WEFT_NOBODY), 0);
	CHECK_EQ(weft_port_member(a, 0), 0);
	CHECK_EQ(weft_port_index(group, b_id), 1);
	REFUSED(-ENOENT, weft_port_index(group, 0));
	REFUSED(-ENOENT, weft_port_index(group, WEFT_ANY));
	REFUSED(-ENOENT, weft_port_index(a, b_id));
	REFUSED(-EINVAL, weft_send(group, weft_at(2), 1, NULL, 0, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_send(group, weft_at(WEFT_NOBODY), 1, NULL, 0, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_recv(group, weft_at(2), 1, NULL, 0, WEFT_FOREVER, &st));
	REFUSED(-EINVAL, weft_send(a, weft_at(0), 1, NULL, 0, WEFT_FOREVER));
	CHECK_OK(weft_port_close(group, WEFT_FOREVER));
	teardown();
}

/* msg.h */

#define OP(to, ...) (&(struct weft_op){ .size = sizeof(struct weft_op), .peer = (to), __VA_ARGS__ })
#define SEND_REFUSED(err, ...) REFUSED(err, weft_send_post(a, OP(b_id, __VA_ARGS__), &req))
#define RECV_REFUSED(err, ...) REFUSED(err, weft_recv_post(b, OP(a_id, __VA_ARGS__), &req, &st))
#define BOTH_REFUSED(err, ...)                                                                     \
	do {                                                                                       \
		SEND_REFUSED(err, __VA_ARGS__);                                                    \
		RECV_REFUSED(err, __VA_ARGS__);                                                    \
	} while (0)

TEST(sends_and_receives_refuse_ops_that_make_no_sense)
{
	static char x[8];
	struct iovec hole[2] = { { x, 4 }, { NULL, 4 } }, endless[2] = { { x, SIZE_MAX }, { x, 8 } };
	struct weft_layout no_pieces = { .len = 4 };
	struct weft_queue *queue;
	LATER(op) later = { .now = { .size = sizeof(later) } };

	setup();
	MUST_OK(weft_queue_open(&queue));
	REFUSED(-EINVAL, weft_send_post(a, NULL, &req));
	REFUSED(-EINVAL, weft_recv_post(b, NULL, &req, &st));
	REFUSED(-EINVAL, weft_probe(b, NULL, WEFT_FOREVER, &msg, &st));
	REFUSED(-EINVAL, weft_send_post(a, &(struct weft_op){ .size = 0, .peer = b_id }, &req));
	REFUSED(-EINVAL, weft_recv_post(b, &(struct weft_op){ .size = 3, .peer = a_id }, &req, &st));
	REFUSED(-EINVAL,
		weft_probe(b, &(struct weft_op){ .size = 3, .peer = a_id }, WEFT_FOREVER, &msg, &st));
	later.now.peer = b_id;
	later.more[2] = 1;
	REFUSED(-E2BIG, weft_send_post(a, &later.now, &req));
	REFUSED(-E2BIG, weft_recv_post(b, &later.now, &req, &st));
	REFUSED(-E2BIG, weft_probe(b, &later.now, WEFT_FOREVER, &msg, &st));
	BOTH_REFUSED(-EINVAL, .flags = 1u << 30);
	BOTH_REFUSED(-EINVAL, .data = NULL, .len = 4);
	BOTH_REFUSED(-EINVAL, .data = x, .len = 4, .iov = hole, .niov = 1);
	BOTH_REFUSED(-EINVAL, .niov = 2);
	BOTH_REFUSED(-EINVAL, .iov = hole, .niov = 2);
	BOTH_REFUSED(-EINVAL, .iov = endless, .niov = 2);
	BOTH_REFUSED(-EINVAL, .layout = &no_pieces);
	BOTH_REFUSED(-EINVAL, .prio = 4);
	BOTH_REFUSED(-EINVAL, .prio = -5);
	BOTH_REFUSED(-EINVAL, .elem = 3);
	BOTH_REFUSED(-EINVAL, .elem = 16);
	BOTH_REFUSED(-EINVAL, .zero = 1);
	BOTH_REFUSED(-EINVAL, .done = count_end, .queue = queue);
	CHECK_OK(weft_queue_close(queue));
	teardown();
}

TEST(sends_refuse_what_only_a_receive_may_say_and_the_reverse)
{
	static char x[8];
	struct weft_buf *buf;

	setup();
	MUST_OK(weft_buf_get(8, 0, &buf));
	SEND_REFUSED(-EINVAL, .tag = WEFT_ANY_TAG);
	SEND_REFUSED(-EINVAL, .flags = WEFT_ALLOC);
	SEND_REFUSED(-EINVAL, .flags = WEFT_TRUNCATE);
	SEND_REFUSED(-EINVAL, .flags = WEFT_REPEAT, .done = count_end);
	SEND_REFUSED(-EINVAL, .flags = WEFT_KEEP, .data = x, .len = 8);         /* keep what? */
	SEND_REFUSED(-EINVAL, .buf = buf, .data = x, .len = 8);
	SEND_REFUSED(-EINVAL, .msg = canary);
	RECV_REFUSED(-EINVAL, .flags = WEFT_SYNC);
	RECV_REFUSED(-EINVAL, .flags = WEFT_READY);
	RECV_REFUSED(-EINVAL, .flags = WEFT_RENDEZVOUS);
	RECV_REFUSED(-EINVAL, .flags = WEFT_COPY);
	RECV_REFUSED(-EINVAL, .flags = WEFT_KEEP);
	RECV_REFUSED(-EINVAL, .flags = WEFT_REPEAT);                            /* nobody would be told */
	RECV_REFUSED(-EINVAL, .flags = WEFT_ALLOC, .data = x, .len = 8);
	RECV_REFUSED(-EINVAL, .buf = buf);
	CHECK_OK(weft_buf_put(buf));
	teardown();
}

TEST(messages_go_to_and_come_from_somebody)
{
	weft_id never, before;
	char x[8] = "";

	setup();
	never = a_id + 1000;                    /* a slot that nobody had */
	before = a_id ^ (UINT64_C(1) << 20);    /* another generation of a's */
	REFUSED(-EINVAL, weft_send(a, 0, 1, x, 8, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_send_post(a, OP(0, .data = x, .len = 8), &req));
	REFUSED(-EINVAL, weft_recv(b, 0, 1, x, 8, WEFT_FOREVER, &st));
	REFUSED(-EINVAL, weft_buf_recv(b, 0, 1, WEFT_FOREVER, &out_buf, &st));
	REFUSED(-EINVAL, weft_recv_post(b, OP(0, .data = x, .len = 8), &req, &st));
	REFUSED(-EINVAL, weft_probe(b, OP(0, .tag = 1), WEFT_FOREVER, &msg, &st));
	REFUSED(-EINVAL, weft_send(a, b_id, WEFT_ANY_TAG, x, 8, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_send(a, b_id, 1, NULL, 8, WEFT_FOREVER));
	REFUSED(-EINVAL, weft_recv(b, a_id, 1, NULL, 8, WEFT_FOREVER, &st));
	for (int i = 0; i < 2; i++, never = before) {
		REFUSED(-ESRCH, weft_send(a, never, 1, x, 8, WEFT_FOREVER));
		REFUSED(-ESRCH, weft_send_post(a, OP(never, .data = x, .len = 8), &req));
		REFUSED(-ESRCH, weft_send_post(a, OP(never, .flags = WEFT_SYNC), &req));
		REFUSED(-ESRCH, weft_recv(b, never, 1, x, 8, WEFT_FOREVER, &st));
		REFUSED(-ESRCH, weft_buf_recv(b, never, 1, WEFT_FOREVER, &out_buf, &st));
		REFUSED(-ESRCH, weft_recv_post(b, OP(never, .data = x, .len = 8), &req, &st));
		REFUSED(-ESRCH, weft_probe(b, OP(never, .tag = 1), WEFT_FOREVER, &msg, &st));
	}
	CHECK_EQ(weft_recv(b, a_id, 1, x, 8, weft_in(-WEFT_S), &st), -ETIMEDOUT); /* a deadline gone by */
	CHECK_EQ(weft_recv(b, a_id, 1, x, 8, WEFT_NOW, &st), -EAGAIN);
	CHECK_EQ(weft_poll(WEFT_NOW), -EAGAIN);
	teardown();
}

TEST(a_length_of_nothing_is_a_message)
{
	struct weft_status got;

	setup();
	CHECK_OK(weft_send(a, b_id, 1, NULL, 0, WEFT_FOREVER));
	CHECK_OK(weft_recv(b, a_id, 1, NULL, 0, WEFT_FOREVER, &got));
	CHECK_EQ(got.len, 0);
	teardown();
}

/* state.h and match.h */

TEST(state_refuses_what_is_none)
{
	struct weft_stats none = { .size = 0 };
	struct weft_state_item item = { .size = sizeof(item) }, no_size = { .size = 0 };
	struct weft_state *state;
	LATER(stats) later = { .now.size = sizeof(later) };

	setup();
	REFUSED(-EINVAL, weft_stats_get(NULL, NULL));
	REFUSED(-EINVAL, weft_stats_get(NULL, &none));
	CHECK_OK(weft_stats_get(a, &later.now));
	REFUSED(-EINVAL, weft_state_open(getpid(), NULL));
	REFUSED(-EINVAL, weft_state_next(NULL, &item));
	MUST_OK(weft_state_open(getpid(), &state));
	REFUSED(-EINVAL, weft_state_next(state, NULL));
	REFUSED(-EINVAL, weft_state_next(state, &no_size));
	CHECK_OK(weft_state_close(state));
	teardown();
}

static int equal(const void *want, const void *got)
{
	return *(const char *)want == *(const char *)got;
}

static uint32_t shape(const void *want)
{
	(void)want;
	return 0;
}

static uint64_t hash(const void *head, uint32_t of)
{
	return *(const unsigned char *)head + of;
}

static int less(const void *x, const void *y)
{
	return *(const char *)x < *(const char *)y;
}

TEST(protocols_refuse_functions_that_make_no_sense)
{
	struct weft_match_fns fns = { sizeof(fns), 1, equal, shape, hash, NULL }, bad;
	const struct weft_proto *proto = canary;
	struct weft_port *port;
	LATER(match_fns) later = { .now = fns };

	setup();
	REFUSED(-EINVAL, weft_proto_new(NULL, &fns, &proto));
	REFUSED(-EINVAL, weft_proto_new("", &fns, &proto));
	REFUSED(-EINVAL, weft_proto_new("odd", NULL, &proto));
	REFUSED(-EINVAL, weft_proto_new("odd", &fns, NULL));
	bad = fns, bad.size = 0;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.head_len = 0;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.head_len = 33;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.equal = NULL;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.shape = NULL;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.hash = NULL;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	bad = fns, bad.less = less;
	REFUSED(-EINVAL, weft_proto_new("odd", &bad, &proto));
	later.now.size = sizeof(later), later.more[0] = 1;
	REFUSED(-E2BIG, weft_proto_new("odd", &later.now, &proto));
	CHECK((const void *)proto == canary);
	MUST_OK(weft_proto_new("odd", &fns, &proto));
	MUST_OK(weft_port_open(WEFT(port_opts, .proto = proto), &port));
	REFUSED(-EBUSY, weft_proto_free(proto));
	REFUSED(-EINVAL, weft_proto_free(&weft_proto_raw));
	REFUSED(-EINVAL, weft_send_post(port, OP(port_id(port), .tag = 1), &req));      /* no header */
	REFUSED(-EPROTO, weft_send_post(port, OP(b_id, .head = &fns), &req));
	REFUSED(-EPROTO, weft_send(a, port_id(port), 1, NULL, 0, WEFT_FOREVER));
	CHECK_OK(weft_port_close(port, WEFT_FOREVER));
	CHECK_OK(weft_proto_free(proto));
	teardown();
}

/* In a callback, and in a forked child */

struct inside {
	struct weft_queue *queue;
	struct weft_buf *buf;
	struct weft_req *other;
	_Atomic int ran;
};

static _Thread_local bool completing;

static void wait_in_callback(const struct weft_status *end)
{
	struct inside *in = end->user;
	int x, which;

	outputs_arm();
	CHECK(!completing);                     /* never inside the call that ended it */
	REFUSED(-EDEADLK, weft_send(a, b_id, 1, &x, sizeof(x), WEFT_FOREVER));
	REFUSED(-EDEADLK, weft_buf_send(a, b_id, 1, in->buf, WEFT_FOREVER));
	REFUSED(-EDEADLK, weft_recv(b, a_id, 1, &x, sizeof(x), WEFT_FOREVER, &st));
	REFUSED(-EDEADLK, weft_buf_recv(b, a_id, 1, WEFT_FOREVER, &out_buf, &st));
	REFUSED(-EDEADLK, weft_probe(b, OP(a_id, .tag = 1), WEFT_FOREVER, &msg, &st));
	REFUSED(-EDEADLK, weft_req_wait(&in->other, WEFT_FOREVER, &st));
	REFUSED(-EDEADLK, weft_req_wait_some(&in->other, 1, 1, 1, WEFT_FOREVER, &which, &st));
	REFUSED(-EDEADLK, weft_queue_next(in->queue, WEFT_FOREVER, &st, 1));
	REFUSED(-EDEADLK, weft_port_close(a, WEFT_FOREVER));
	REFUSED(-EDEADLK, weft_poll(WEFT_FOREVER));
	REFUSED(-EDEADLK, weft_fini(WEFT_FOREVER));
	CHECK(outputs_untouched());
	CHECK(in->other != NULL);
	atomic_store(&in->ran, 1);
}

TEST(in_a_callback_what_would_wait_answers_edeadlk)
{
	struct inside in = { .ran = 0 };
	struct weft_req *mine;

	setup();
	MUST_OK(weft_queue_open(&in.queue));
	MUST_OK(weft_buf_get(8, 0, &in.buf));
	MUST_OK(weft_req_new(NULL, NULL, NULL, &in.other));
	MUST_OK(weft_req_new(wait_in_callback, NULL, &in, &mine));
	completing = true;
	CHECK_OK(weft_req_complete(mine, NULL));
	completing = false;
	while (!atomic_load(&in.ran))
		weft_poll(weft_in(10 * WEFT_MS));
	CHECK_OK(weft_req_free(mine));
	CHECK_OK(weft_req_complete(in.other, NULL));
	CHECK_OK(weft_req_free(in.other));
	CHECK_OK(weft_buf_put(in.buf));
	CHECK_OK(weft_queue_close(in.queue));
	teardown();
}

TEST(in_a_forked_child_calls_answer_echild)
{
	int status = -1;
	pid_t child;

	setup();
	CHECK(weft_self() != 0);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		all_answer_without_a_job(-ECHILD);
		REFUSED(-ECHILD, weft_init(NULL));
		REFUSED(-ECHILD, weft_send(a, b_id, 1, NULL, 0, WEFT_FOREVER));
		REFUSED(-ECHILD, weft_recv(b, WEFT_ANY, 1, NULL, 0, WEFT_FOREVER, NULL));
		REFUSED(-ECHILD, weft_port_close(a, WEFT_FOREVER));
		fflush(stdout);
		_exit(test_failures ? 1 : 0);
	}
	MUST(child > 0);
	MUST_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	teardown();
}

TEST_MAIN
