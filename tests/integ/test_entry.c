/* test_entry.c - threads spawned at entries, in the process itself. tests/far/test_far_entry.c has the same between processes. */
#include "crew.h"

#include <sched.h>

enum { ROOM = 1 << 20 };        /* most bytes of an argument */

static _Atomic int calls, inside, may_end;

/* Sends its argument to the thread whose id it begins with. */
static void echo(const void *arg, size_t len)
{
	weft_id to;

	MUST(len >= sizeof(to));
	memcpy(&to, arg, sizeof(to));
	CHECK_OK(weft_send(NULL, to, 1, arg, len, SOON));
}

static void counts(const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	atomic_fetch_add(&calls, 1);
}

/* Stays until it gets a message. */
static void stays(const void *arg, size_t len)
{
	uint64_t v;

	(void)arg;
	(void)len;
	atomic_fetch_add(&calls, 1);
	CHECK_OK(weft_recv(NULL, WEFT_ANY, 7, &v, sizeof(v), SOON, NULL));
}

/* Stays until the test says so, without weft. */
static void lingers(const void *arg, size_t len)
{
	atomic_fetch_add(&inside, 1);
	while (!atomic_load(&may_end))
		crew_nap();
	CHECK(pattern_ok(arg, len, 3));
	CHECK_EQ(weft_send(NULL, (weft_id)1 << 32 | 1, 1, NULL, 0, WEFT_NOW), -ENOTCONN);
	atomic_fetch_sub(&inside, 1);
}

static int spawn(const char *entry, const void *arg, size_t len, weft_id *ret_id, struct weft_req **ret_end)
{
	return weft_spawn(WEFT(spawn_opts, .entry = entry, .arg = arg, .arg_len = len), SOON, ret_id, ret_end);
}

static void let_go(weft_id id)
{
	CHECK_OK(weft_send(NULL, id, 7, &(uint64_t){ 0 }, 8, SOON));
}

static void begin(void)
{
	job_begin(0);
	atomic_store(&calls, 0);
	MUST_OK(weft_entry_add("echo", echo));
	MUST_OK(weft_entry_add("counts", counts));
	MUST_OK(weft_entry_add("stays", stays));
}

TEST(a_thread_spawned_here_gets_its_argument_and_has_the_id_that_was_told)
{
	struct weft_status st;
	weft_id me, id = 0, got = 0;

	begin();
	me = weft_self();
	MUST_EQ(spawn("echo", &me, sizeof(me), &id, NULL), 1);
	CHECK(id && id != me && id >> 32 == weft_process() >> 32);
	CHECK_OK(weft_recv(NULL, id, 1, &got, sizeof(got), SOON, &st));
	CHECK(got == me && st.from == id);
	job_end();
}

TEST(its_end_is_told_once_with_its_id_which_has_ended_then)
{
	struct weft_req *end = NULL;
	struct weft_status st;
	weft_id id = 0;

	begin();
	MUST_EQ(spawn("stays", NULL, 0, &id, &end), 1);
	MUST(end);
	CHECK_EQ(weft_req_peek(end, NULL), -EAGAIN);
	CHECK_EQ(weft_req_wait(&end, weft_in(20 * WEFT_MS), NULL), -ETIMEDOUT);
	let_go(id);
	CHECK_OK(weft_req_wait(&end, SOON, &st));
	CHECK(!end && st.from == id && st.err == 0);
	CHECK_EQ(weft_send(NULL, id, 7, NULL, 0, SOON), -ESRCH);
	job_end();
}

TEST(several_have_ids_of_their_own_and_ends_of_their_own)
{
	enum { MANY = 100 };
	weft_id ids[MANY] = { 0 };
	struct weft_req *ends[MANY] = { NULL };
	struct weft_status st[MANY];

	begin();
	MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "stays", .count = MANY, .in = weft_process()), SOON, ids, ends), MANY);
	for (int i = 0; i < MANY; i++)
		for (int j = 0; j < i; j++)
			CHECK(ids[i] != ids[j]);
	for (int i = MANY - 1; i >= 0; i--)
		let_go(ids[i]);
	CHECK_EQ(weft_req_wait_some(ends, MANY, MANY, MANY, SOON, NULL, st), MANY);
	for (int i = 0; i < MANY; i++)
		CHECK(st[i].from == ids[i] && st[i].err == 0);
	CHECK_EQ(atomic_load(&calls), MANY);
	job_end();
}

TEST(neither_ids_nor_ends_need_be_wanted)
{
	begin();
	MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 5), SOON, NULL, NULL), 5);
	EVENTUALLY(atomic_load(&calls) == 5);
	job_end();
}

TEST(an_argument_comes_as_it_was_up_to_a_mebibyte_and_no_longer_one_is_taken)
{
	static const size_t sizes[] = { 8, 9, 96, 97, 4096, 8192, 8193, 65536, 100001, ROOM - 1, ROOM };
	unsigned char *mem = memory(ROOM + 1), *got = memory(ROOM + 1);
	struct weft_status st;
	weft_id me, id;

	begin();
	me = weft_self();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pattern_put(mem, sizes[i], i);
		memcpy(mem, &me, sizeof(me));
		MUST_EQ(spawn("echo", mem, sizes[i], &id, NULL), 1);
		CHECK_OK(weft_recv(NULL, id, 1, got, ROOM + 1, SOON, &st));
		CHECK_EQ(st.len, sizes[i]);
		CHECK(memcmp(mem, got, sizes[i]) == 0);
	}
	CHECK_EQ(spawn("counts", NULL, 0, &id, NULL), 1);
	CHECK_EQ(spawn("counts", mem, 0, &id, NULL), 1);
	CHECK_EQ(spawn("echo", mem, ROOM + 1, &id, NULL), -E2BIG);
	CHECK_EQ(spawn("echo", mem, SIZE_MAX, &id, NULL), -E2BIG);
	job_end();
	free(mem);
	free(got);
}

TEST(what_is_published_of_it_is_found_until_it_ends)
{
	struct weft_req *end = NULL;
	weft_id id = 0, found = 0;
	char text[32];

	begin();
	MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "stays", .attrs = "role=\"night watch\" load=3"), SOON, &id, &end), 1);
	CHECK_EQ(weft_dir_find("kind=thread role=night*", 1, SOON, &found, 1), 1);
	CHECK(found == id);
	CHECK_EQ(weft_dir_get(id, "load", SOON, text, sizeof(text)), 1);
	let_go(id);
	CHECK_OK(weft_req_wait(&end, SOON, NULL));
	CHECK_EQ(weft_dir_find("kind=thread role=night*", 0, SOON, NULL, 0), 0);
	job_end();
}

TEST(attributes_that_may_not_be_set_are_refused_and_nothing_runs)
{
	weft_id id = 99;

	begin();
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 3, .attrs = "kind=host"), SOON, &id, NULL), -EPERM);
	CHECK(strlen(weft_last_error()) > 0);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .attrs = "no words"), SOON, &id, NULL), -EINVAL);
	CHECK_EQ(id, 99);
	job_end();
	CHECK_EQ(atomic_load(&calls), 0);
}

TEST(an_entry_that_is_not_there_is_named_at_once)
{
	struct weft_req *end = NULL;
	weft_id id = 99;

	begin();
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "nowhere"), WEFT_FOREVER, &id, &end), -ENOENT);
	CHECK(strstr(weft_last_error(), "nowhere"));
	CHECK(id == 99 && !end);
	job_end();
}

static void *adds_later(void *arg)
{
	(void)arg;
	until_asleep();
	CHECK_OK(weft_entry_add("counts", counts));
	return NULL;
}

TEST(without_any_entry_a_spawn_waits_for_the_first_until_its_deadline)
{
	pthread_t thread;

	job_begin(0);
	atomic_store(&calls, 0);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts"), weft_in(20 * WEFT_MS), NULL, NULL), -ETIMEDOUT);
	thread = thread_start(adds_later, NULL);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts"), WEFT_FOREVER, NULL, NULL), 1);
	thread_join(thread);
	EVENTUALLY(atomic_load(&calls) == 1);
	job_end();
	CHECK_EQ(atomic_load(&calls), 1);       /* the first has never come */
}

TEST(with_a_deadline_gone_by_nothing_is_begun)
{
	begin();
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts"), WEFT_NOW, NULL, NULL), -EAGAIN);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts"), weft_in(-1), NULL, NULL), -ETIMEDOUT);
	job_end();
	CHECK_EQ(atomic_load(&calls), 0);
}

/* However short the time was: who was told that none started sees none, and of others as many as he was told. */
TEST(what_did_not_start_in_time_never_runs)
{
	uint64_t started = 0;

	begin();
	for (uint64_t i = 0, n = test_scaled(300); i < n; i++) {
		weft_id ids[4] = { 0 };
		int r = weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 4), weft_in((int64_t)(test_random(&test_seed) % (600 * 1000))), ids, NULL), told = 0;

		CHECK(r == -ETIMEDOUT || (r >= 1 && r <= 4));
		for (int k = 0; k < 4; k++)
			told += ids[k] != 0;
		CHECK_EQ(told, r < 0 ? 0 : r);
		started += r < 0 ? 0 : (uint64_t)r;
	}
	EVENTUALLY((uint64_t)atomic_load(&calls) >= started);
	job_end();
	CHECK_EQ(atomic_load(&calls), started);
}

TEST(a_cancelled_end_is_not_told_and_the_thread_goes_on)
{
	struct weft_req *end = NULL, *other = NULL;
	weft_id id = 0;

	begin();
	MUST_EQ(spawn("stays", NULL, 0, &id, &end), 1);
	CHECK_OK(weft_req_cancel(end));
	CHECK_EQ(weft_req_wait(&end, SOON, NULL), -ECANCELED);
	MUST_OK(weft_req_new(NULL, NULL, NULL, &other));        /* may well lie where that one was */
	let_go(id);
	EVENTUALLY(weft_send(NULL, id, 7, NULL, 0, SOON) == -ESRCH);
	CHECK_EQ(weft_req_wait(&other, weft_in(20 * WEFT_MS), NULL), -ETIMEDOUT);
	CHECK_OK(weft_req_complete(other, NULL));
	CHECK_OK(weft_req_wait(&other, SOON, NULL));
	MUST_EQ(spawn("stays", NULL, 0, &id, &end), 1);
	CHECK_OK(weft_req_free(end));
	let_go(id);
	EVENTUALLY(weft_send(NULL, id, 7, NULL, 0, SOON) == -ESRCH);
	job_end();
}

static void *spawns(void *arg)
{
	_Atomic int *failed = arg;

	for (int i = 0; i < 5; i++) {
		weft_id me = weft_self(), ids[2] = { 0 }, got = 0;
		struct weft_req *ends[2] = { NULL };
		struct weft_status st[2];

		if (weft_spawn(WEFT(spawn_opts, .entry = "echo", .count = 2, .arg = &me, .arg_len = sizeof(me)), SOON, ids, ends) != 2) {
			atomic_fetch_add(failed, 1);
			continue;
		}
		CHECK_OK(weft_recv(NULL, ids[1], 1, &got, sizeof(got), SOON, NULL));
		CHECK_OK(weft_recv(NULL, ids[0], 1, &got, sizeof(got), SOON, NULL));
		CHECK_EQ(weft_req_wait_some(ends, 2, 2, 2, SOON, NULL, st), 2);
		CHECK(st[0].from == ids[0] && st[1].from == ids[1] && !st[0].err && !st[1].err);
		CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	}
	return NULL;
}

TEST(a_hundred_threads_spawn_at_once_and_see_nothing_that_is_not_theirs)
{
	enum { SPAWNERS = 100 };
	pthread_t thread[SPAWNERS];
	_Atomic int failed = 0;

	begin();
	for (int i = 0; i < SPAWNERS; i++)
		thread[i] = thread_start(spawns, &failed);
	for (int i = 0; i < SPAWNERS; i++)
		thread_join(thread[i]);
	CHECK_EQ(failed, 0);
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
	job_end();
}

static sigset_t seen_mask;
static cpu_set_t seen_cores;

static void looks(const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	pthread_sigmask(SIG_SETMASK, NULL, &seen_mask);
	CHECK_OK(pthread_getaffinity_np(pthread_self(), sizeof(seen_cores), &seen_cores));
}

TEST(it_has_the_signals_and_the_processors_of_the_thread_that_added_the_entry)
{
	struct weft_req *end = NULL;
	sigset_t set, before;
	cpu_set_t cores;

	begin();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &set, &before));
	CHECK_OK(pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores));
	CHECK_OK(weft_entry_add("looks", looks));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
	MUST_EQ(spawn("looks", NULL, 0, NULL, &end), 1);
	CHECK_OK(weft_req_wait(&end, SOON, NULL));
	CHECK(sigismember(&seen_mask, SIGUSR2) && !sigismember(&seen_mask, SIGTERM) && !sigismember(&seen_mask, SIGALRM));
	CHECK(CPU_EQUAL(&seen_cores, &cores));
	job_end();
}

static void exits(const void *arg, size_t len)
{
	(void)arg;
	if (len)
		pthread_exit(NULL);
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

TEST(one_that_exits_or_is_cancelled_in_its_function_has_ended_like_others)
{
	begin();
	CHECK_OK(weft_entry_add("exits", exits));
	for (size_t i = 0; i < 2; i++) {
		struct weft_req *end = NULL;
		struct weft_status st;
		weft_id id = 0;

		MUST_EQ(spawn("exits", "x", i, &id, &end), 1);
		CHECK_OK(weft_req_wait(&end, SOON, &st));
		CHECK(st.from == id);
	}
	job_end();
}

static void spawns_on(const void *arg, size_t len)
{
	unsigned char depth = *(const unsigned char *)arg;

	(void)len;
	atomic_fetch_add(&calls, 1);
	if (depth) {
		struct weft_req *end = NULL;

		depth--;
		MUST_EQ(spawn("spawns_on", &depth, 1, NULL, &end), 1);
		CHECK_OK(weft_req_wait(&end, SOON, NULL));
	}
}

TEST(a_spawned_thread_may_spawn)
{
	struct weft_req *end = NULL;

	begin();
	CHECK_OK(weft_entry_add("spawns_on", spawns_on));
	MUST_EQ(spawn("spawns_on", &(unsigned char){ 10 }, 1, NULL, &end), 1);
	CHECK_OK(weft_req_wait(&end, SOON, NULL));
	CHECK_EQ(atomic_load(&calls), 11);
	job_end();
}

TEST(a_process_may_leave_while_spawned_threads_run_and_join_again)
{
	static unsigned char arg[5000];

	pattern_put(arg, sizeof(arg), 3);
	atomic_store(&inside, 0);
	for (int i = 0; i < 3; i++) {
		struct weft_req *ends[3] = { NULL };

		begin();
		atomic_store(&may_end, 0);
		MUST_OK(weft_entry_add("lingers", lingers));
		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "lingers", .count = 3, .arg = arg, .arg_len = sizeof(arg)), SOON, NULL, ends), 3);
		EVENTUALLY(atomic_load(&inside) == 3);
		job_end();
		atomic_store(&may_end, 1);
		EVENTUALLY(atomic_load(&inside) == 0);
	}
	begin();
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "lingers"), SOON, NULL, NULL), -ENOENT);     /* entries are of one life */
	CHECK_EQ(spawn("counts", NULL, 0, NULL, NULL), 1);
	EVENTUALLY(atomic_load(&calls));
	job_end();
}

static void *spawns_for_ever(void *arg)
{
	int *ret = arg;

	*ret = weft_spawn(WEFT(spawn_opts, .entry = "counts"), WEFT_FOREVER, NULL, NULL);
	return NULL;
}

TEST(who_waits_for_a_spawn_is_told_when_the_process_leaves)
{
	pthread_t thread;
	int answer = 0;

	job_begin(0);
	thread = thread_start(spawns_for_ever, &answer);
	until_asleep();
	weft_fini(weft_in(10 * WEFT_MS));
	thread_join(thread);
	CHECK_EQ(answer, -ECANCELED);
}

static void in_callback(const struct weft_status *st)
{
	int *ret = st->user;

	ret[1] = weft_entry_add("late", counts);
	ret[0] = weft_spawn(WEFT(spawn_opts, .entry = "counts"), SOON, NULL, NULL);
}

TEST(a_callback_may_add_entries_and_not_spawn)
{
	struct weft_req *req = NULL;
	int ret[2] = { 0, 1 };

	begin();
	MUST_OK(weft_req_new(in_callback, NULL, ret, &req));
	CHECK_OK(weft_req_complete(req, NULL));
	while (ret[1])
		weft_poll(weft_in(WEFT_MS));
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(ret[0], -EDEADLK);
	CHECK_EQ(spawn("late", NULL, 0, NULL, NULL), 1);
	job_end();
}

TEST(nonsense_is_refused_and_nothing_is_touched)
{
	char many[16000], *argv[] = { NULL };
	struct weft_req *end = NULL;
	struct weft_spawn_opts o;
	weft_id id = 99;

	CHECK_EQ(weft_entry_add("counts", counts), -ENOTCONN);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts"), SOON, &id, &end), -ENOTCONN);
	begin();
	CHECK_EQ(weft_entry_add(NULL, counts), -EINVAL);
	CHECK_EQ(weft_entry_add("", counts), -EINVAL);
	CHECK_EQ(weft_entry_add("a b", counts), -EINVAL);
	CHECK_EQ(weft_entry_add("a/b", counts), -EINVAL);
	CHECK_EQ(weft_entry_add("0123456789012345678901234567890123456789012345678901234567890123", counts), -EINVAL);
	CHECK_OK(weft_entry_add("012345678901234567890123456789012345678901234567890123456789012", counts));
	CHECK_EQ(weft_entry_add("x", NULL), -EINVAL);
	CHECK_EQ(weft_entry_add("counts", echo), -EEXIST);
	CHECK_OK(weft_entry_add("counts", counts));
	memset(many, 'x', sizeof(many));
	many[sizeof(many) - 1] = 0;
	CHECK_EQ(weft_spawn(NULL, SOON, &id, &end), -EINVAL);
	o = (struct weft_spawn_opts){ .entry = "counts" };
	CHECK_EQ(weft_spawn(&o, SOON, &id, &end), -EINVAL);
	o.size = sizeof(o) - 1;
	CHECK_EQ(weft_spawn(&o, SOON, &id, &end), -EINVAL);
#define NONSENSE(err, ...) CHECK_EQ(weft_spawn(WEFT(spawn_opts, __VA_ARGS__), SOON, &id, &end), err)
	NONSENSE(-EINVAL, .entry = "");
	NONSENSE(-EINVAL, .entry = "a b");
	NONSENSE(-EINVAL, .entry = many);
	NONSENSE(-EINVAL, .entry = "counts", .flags = 1u << 31);
	NONSENSE(-EINVAL, .entry = "counts", .flags = WEFT_SPAWN_OUTPUT);
	NONSENSE(-EINVAL, .entry = "counts", .prog = "true");
	NONSENSE(-EINVAL, .entry = "counts", .dir = "/");
	NONSENSE(-EINVAL, .entry = "counts", .where = "*");
	NONSENSE(-EINVAL, .entry = "counts", .argv = argv);
	NONSENSE(-EINVAL, .entry = "counts", .env = argv);
	NONSENSE(-EINVAL, .entry = "counts", .count = 65537);
	NONSENSE(-EINVAL, .entry = "counts", .count = UINT32_MAX);
	NONSENSE(-EINVAL, .entry = "counts", .in = weft_self());
	NONSENSE(-EINVAL, .entry = "counts", .in = 1);
	NONSENSE(-EINVAL, .entry = "counts", .in = WEFT_ANY);
	NONSENSE(-EINVAL, .entry = "counts", .in = weft_at(0));
	NONSENSE(-ESRCH, .entry = "counts", .in = (weft_id)77 << 32);
	NONSENSE(-EINVAL, .entry = "counts", .arg_len = 1);
	NONSENSE(-EINVAL, .entry = "counts", .attrs = many);
	NONSENSE(-EINVAL, .entry = "counts", .attrs = "=");
	NONSENSE(-EINVAL, .entry = "counts", .next = WEFT(spawn_opts, .entry = "counts"));
#undef NONSENSE
	CHECK(id == 99 && !end);
	job_end();
	CHECK_EQ(atomic_load(&calls), 0);
}

TEST_MAIN
