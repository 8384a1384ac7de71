/* test_far_entry.c - threads spawned in another process: by whom, when, and what becomes of it when one of the two ends. */
#include "far.h"

#include "job/entry_room.h"

enum { ROOM = 1 << 20 };        /* most bytes of an argument */

static _Atomic int calls;

/* Says who it is, sends back what it gets, until that is nothing. */
static void talks(const void *arg, size_t len)
{
	weft_id to;
	uint64_t v;
	struct weft_status st = { .len = 1 };

	MUST(len == sizeof(to));
	memcpy(&to, arg, sizeof(to));
	v = weft_self();
	CHECK_OK(weft_send(NULL, to, 1, &v, sizeof(v), SOON));
	while (weft_recv(NULL, to, 2, &v, sizeof(v), SOON, &st) == 0 && st.len)
		CHECK_OK(weft_send(NULL, to, 3, &v, sizeof(v), SOON));
}

static void counts(const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	atomic_fetch_add(&calls, 1);
}

static void echo(const void *arg, size_t len)
{
	weft_id to;

	memcpy(&to, arg, sizeof(to));
	CHECK_OK(weft_send(NULL, to, 1, arg, len, SOON));
}

static void dies(const void *arg, size_t len)
{
	(void)arg;
	(void)len;
	far_die();
}

static void stays(const void *arg, size_t len)
{
	uint64_t v;

	(void)arg;
	(void)len;
	atomic_fetch_add(&calls, 1);
	weft_recv(NULL, WEFT_ANY, 7, &v, sizeof(v), SOON, NULL);        /* until then, or until its process has left */
}

/* Process @rank has all of these, or everybody has, before anyone spawns: one that is not there yet would be refused. */
static void begin(uint32_t rank)
{
	far_join(0);
	if (rank == WEFT_NOBODY || rank == far_rank) {
		MUST_OK(weft_entry_add("talks", talks));
		MUST_OK(weft_entry_add("counts", counts));
		MUST_OK(weft_entry_add("echo", echo));
		MUST_OK(weft_entry_add("dies", dies));
		MUST_OK(weft_entry_add("stays", stays));
	}
	far_meet();
}

static void stop_talking(weft_id id)
{
	CHECK_OK(weft_send(NULL, id, 2, NULL, 0, SOON));
}

FAR(a_thread_spawned_in_another_process_can_be_talked_with_at_once, 2)
{
	begin(1);
	if (far_rank == 0)
		for (uint64_t i = 0, n = test_scaled(20); i < n; i++) {
			struct weft_req *end = NULL;
			struct weft_status st;
			weft_id me = weft_self(), id = 0, said = 0;

			MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "talks", .in = far_process(1), .arg = &me, .arg_len = sizeof(me)), SOON, &id, &end), 1);
			CHECK(id >> 32 == 2 && (uint32_t)id);
			CHECK_OK(weft_send(NULL, id, 2, &i, sizeof(i), SOON));
			CHECK_OK(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, &said, sizeof(said), SOON, &st));      /* nothing of weft's own is seen */
			CHECK(said == id && st.tag == 1 && st.from == id);
			CHECK_NEXT(NULL, id, 3, i);
			CHECK_EQ(weft_req_peek(end, NULL), -EAGAIN);
			stop_talking(id);
			CHECK_OK(weft_req_wait(&end, SOON, &st));
			CHECK(st.from == id && st.err == 0);
			CHECK_EQ(weft_send(NULL, id, 2, NULL, 0, SOON), -ESRCH);
		}
	far_leave();
}

FAR(each_may_spawn_in_the_other_and_arguments_come_as_they_were, 2)
{
	static const size_t sizes[] = { 8, 96, 97, 8193, 100001, ROOM };
	unsigned char *mem, *got;

	begin(WEFT_NOBODY);
	mem = memory(ROOM + 1);
	got = memory(ROOM + 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		weft_id me = weft_self(), ids[2] = { 0 };
		struct weft_status st;

		pattern_put(mem, sizes[i], i + far_rank);
		memcpy(mem, &me, sizeof(me));
		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "echo", .count = 2, .in = far_process(1 - far_rank), .arg = mem, .arg_len = sizes[i]), SOON, ids, NULL), 2);
		for (int k = 0; k < 2; k++) {
			memset(got, 0, sizes[i]);
			CHECK_OK(weft_recv(NULL, ids[k], 1, got, ROOM + 1, SOON, &st));
			CHECK_EQ(st.len, sizes[i]);
			CHECK(memcmp(mem, got, sizes[i]) == 0);
		}
	}
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "echo", .in = far_process(1 - far_rank), .arg = mem, .arg_len = ROOM + 1), SOON, NULL, NULL), -E2BIG);
	far_leave();
	free(mem);
	free(got);
}

FAR(what_is_published_of_it_is_found_by_others, 3)
{
	weft_id id = 0, found = 0;

	begin(WEFT_NOBODY);
	if (far_rank == 0) {
		struct weft_req *end = NULL;
		weft_id me = weft_self();

		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "talks", .in = far_process(1), .arg = &me, .arg_len = sizeof(me), .attrs = "role=scribe"), SOON, &id, &end), 1);
		far_tell(0, id);
		far_await(2, 1);
		stop_talking(id);
		CHECK_OK(weft_req_wait(&end, SOON, NULL));
	} else if (far_rank == 2) {
		id = far_hear(0);
		CHECK_EQ(weft_dir_find("kind=thread role=scribe", 1, SOON, &found, 1), 1);
		CHECK(found == id);
		far_step(1);
		EVENTUALLY(weft_dir_find("kind=thread role=scribe", 0, SOON, NULL, 0) == 0);
	}
	far_leave();
}

FAR(an_entry_that_is_not_there_is_named_and_one_that_comes_late_is_waited_for, 2)
{
	far_join(0);
	if (far_rank == 0) {
		/* No entry at all: until the deadline, and never after. */
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), weft_in(30 * WEFT_MS), NULL, NULL), -ETIMEDOUT);
		far_step(1);
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), SOON, NULL, NULL), 1);
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "nowhere", .in = far_process(1)), SOON, NULL, NULL), -ENOENT);
		CHECK(strstr(weft_last_error(), "nowhere") && strstr(weft_last_error(), "process 2"));
	} else {
		far_await(0, 1);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		CHECK_OK(weft_entry_add("counts", counts));
		EVENTUALLY(atomic_load(&calls) == 1);
	}
	far_leave();
	CHECK_EQ(atomic_load(&calls), far_rank == 1);
}

FAR(what_did_not_start_in_time_never_runs, 2)
{
	begin(WEFT_NOBODY);
	if (far_rank == 0) {
		uint64_t started = 0;

		for (uint64_t i = 0, n = test_scaled(300); i < n; i++) {
			int r = weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1), .count = 3),
					   weft_in((int64_t)(test_random(&test_seed) % (1000 * 1000))), NULL, NULL);

			CHECK(r == -ETIMEDOUT || (r >= 1 && r <= 3));
			started += r < 0 ? 0 : (uint64_t)r;
		}
		far_tell(0, started + 1);
	} else {
		uint64_t started = far_hear(0) - 1;

		EVENTUALLY((uint64_t)atomic_load(&calls) >= started);
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		CHECK_EQ(atomic_load(&calls), started);
	}
	far_leave();
}

FAR(a_process_that_stands_still_is_given_up_and_starts_nothing_afterwards, 2)
{
	begin(WEFT_NOBODY);
	if (far_rank == 0) {
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), SOON, NULL, NULL), 1);
		far_await(1, 1);
		far_stop(1);
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), weft_in(50 * WEFT_MS), NULL, NULL), -ETIMEDOUT);
		far_go_on(1);
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), SOON, NULL, NULL), 1);
	} else {
		EVENTUALLY(atomic_load(&calls) == 1);
		far_step(1);
		EVENTUALLY(atomic_load(&calls) == 2);
	}
	far_leave();
	CHECK_EQ(atomic_load(&calls), far_rank == 1 ? 2 : 0);
}

FAR(a_process_that_is_dead_or_never_was_is_gone, 2)
{
	far_join(0);
	if (far_rank == 1)
		far_die();
	EVENTUALLY(weft_send(NULL, far_id(1), 1, NULL, 0, SOON) == -ESRCH);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), SOON, NULL, NULL), -ESRCH);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(500)), SOON, NULL, NULL), -ESRCH);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_id(1)), SOON, NULL, NULL), -EINVAL);
	CHECK_OK(weft_fini(SOON));
}

FAR(a_process_that_dies_while_it_is_waited_for_is_gone, 2)
{
	far_join(0);
	if (far_rank == 1) {
		far_await(0, 1);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		far_die();
	}
	far_step(1);
	CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), WEFT_FOREVER, NULL, NULL), -ESRCH);
	CHECK_OK(weft_fini(SOON));
}

FAR(ends_are_reset_when_the_process_dies_with_the_threads_in_it, 3)
{
	if (far_rank == 1)
		far_may_die();
	begin(1);
	if (far_rank != 1) {
		enum { MANY = 10 };
		struct weft_req *ends[MANY] = { NULL }, *last = NULL;
		struct weft_status st[MANY];
		weft_id ids[MANY];

		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "stays", .count = MANY, .in = far_process(1)), SOON, ids, ends), MANY);
		far_step(1);
		if (far_rank == 0) {
			int r;

			far_await(2, 1);
			r = weft_spawn(WEFT(spawn_opts, .entry = "dies", .in = far_process(1)), SOON, NULL, &last);
			CHECK(r == 1 || r == -ESRCH);
			CHECK(r < 0 || weft_req_wait(&last, SOON, NULL) == -ECONNRESET);
		}
		CHECK_EQ(weft_req_wait_some(ends, MANY, MANY, MANY, SOON, NULL, st), MANY);
		for (int i = 0; i < MANY; i++)
			CHECK(st[i].err == -ECONNRESET && st[i].from == ids[i]);
		CHECK_OK(weft_fini(SOON));
	} else {
		for (;;)
			pause();
	}
}

FAR(a_process_that_leaves_ends_what_is_pending_there, 2)
{
	begin(1);
	if (far_rank == 1) {
		far_await(0, 1);
		EVENTUALLY(atomic_load(&calls) >= 3);
		CHECK_OK(weft_fini(SOON));
	} else {
		struct weft_req *ends[3] = { NULL };
		struct weft_status st[3];
		int r;

		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "stays", .count = 3, .in = far_process(1)), SOON, NULL, ends), 3);
		far_step(1);
		/* Some of these begin, until it leaves. */
		while ((r = weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 2, .in = far_process(1)), SOON, NULL, NULL)) > 0)
			continue;
		CHECK_EQ(r, -ESRCH);
		CHECK_EQ(weft_req_wait_some(ends, 3, 3, 3, SOON, NULL, st), 3);
		for (int i = 0; i < 3; i++)
			CHECK(st[i].err == -ECONNRESET || st[i].err == 0);      /* its receive ended, and it was quick */
		CHECK_OK(weft_fini(SOON));
	}
}

FAR(who_spawned_may_leave_or_die_and_the_threads_go_on, 3)
{
	begin(2);
	if (far_rank == 2) {
		weft_id id;

		for (int i = 0; i < 2; i++) {
			id = far_hear(i);
			EVENTUALLY(atomic_load(&far->verdict[i]) != FAR_NONE || atomic_load(&far->may_die[i]));
			CHECK_OK(weft_send(NULL, id, 7, &(uint64_t){ 1 }, 8, SOON));
			EVENTUALLY(weft_send(NULL, id, 7, NULL, 0, SOON) == -ESRCH);
		}
		CHECK_OK(weft_fini(SOON));
	} else {
		struct weft_req *end = NULL;
		weft_id id = 0;

		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "stays", .in = far_process(2)), SOON, &id, &end), 1);
		far_tell((int)far_rank, id);
		if (far_rank == 0)
			far_die();
		CHECK_OK(weft_fini(SOON));
	}
}

static void *kills_soon(void *arg)
{
	(void)arg;
	far_await(1, 2);
	nanosleep(&(struct timespec){ .tv_nsec = (long)(test_random(&test_seed) % 10000000) }, NULL);
	far_die();
	return NULL;
}

FAR(a_spawner_that_dies_in_the_middle_leaves_no_thread_waiting_there, 2)
{
	int before;

	begin(1);
	if (far_rank == 1) {
		before = proc_entries("/proc/self/task");
		far_step(1);
		EVENTUALLY(atomic_load(&calls));
		far_step(2);
		EVENTUALLY(weft_send(NULL, far_id(0), 1, NULL, 0, SOON) == -ESRCH);
		EVENTUALLY(proc_entries("/proc/self/task") <= before + 1);      /* the last is joined by the next that ends, or at the end */
		CHECK_OK(weft_fini(SOON));
	} else {
		far_await(1, 1);
		far_may_die();
		thread_start(kills_soon, NULL);
		for (;;)
			weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 8, .in = far_process(1)), SOON, NULL, NULL);
	}
}

/* Process 0 speaks for itself what weft would, and not well. */
static void say(struct weft_port *port, uint64_t tag, const void *bytes, size_t n)
{
	CHECK_OK(weft_send(port, far_process(1), tag, bytes, n, SOON));
}

static int answer_to(struct weft_port *port, uint64_t ticket)
{
	uint8_t bytes[WF_ENTRY_ANSWER];
	struct wf_entry_answer a;
	struct weft_status st;

	MUST_OK(weft_recv(port, far_process(1), wf_entry_tag(WF_ENTRY_ANSWERS, ticket, 0), bytes, sizeof(bytes), SOON, &st));
	MUST(wf_entry_answer_read(bytes, st.len, &a));
	CHECK(a.err == 0 || strlen(a.words) > 0);
	return a.err;
}

FAR(nonsense_of_a_neighbour_is_refused_and_does_no_harm, 2)
{
	begin(1);
	if (far_rank == 0) {
		uint8_t *call = memory(WF_ENTRY_CALL + 1), answer[WF_ENTRY_ANSWER];
		struct wf_entry_call good = { .count = 1, .ends = true, .name = "counts", .attrs = "a=b", .arg = "xyz", .len = 3 };
		struct weft_port *port = NULL;
		size_t n = wf_entry_call_write(&good, call, WF_ENTRY_CALL);
		uint64_t ticket = 1000;

		MUST_OK(weft_port_open(WEFT(port_opts, .channel = WF_ENTRY_CHANNEL), &port));
		for (size_t i = 0; i < n; i++) {        /* cut off anywhere */
			say(port, wf_entry_tag(WF_ENTRY_CALLS, ++ticket, 0), call, i);
			CHECK_EQ(answer_to(port, ticket), -EBADMSG);
		}
		say(port, wf_entry_tag(WF_ENTRY_CALLS, ++ticket, 0), call, n + 1);
		CHECK_EQ(answer_to(port, ticket), -EBADMSG);
		say(port, wf_entry_tag(WF_ENTRY_CALLS, ++ticket, 0), call, WF_ENTRY_CALL + 1);
		CHECK_EQ(answer_to(port, ticket), -EMSGSIZE);
		/* Answers, ends and verdicts that nobody waits for. */
		for (uint32_t index = 0; index < 20; index++) {
			size_t len = wf_entry_answer_write(&(struct wf_entry_answer){ .id = far_id(0) }, answer, sizeof(answer));

			say(port, wf_entry_tag(WF_ENTRY_ANSWERS, index, index), answer, len);
			say(port, wf_entry_tag(WF_ENTRY_ENDS, index, index), answer, index);
			say(port, wf_entry_tag(WF_ENTRY_VERDICTS, index, index), answer, 4);
		}
		/* The same ticket twice, and a word that is too long for the first. */
		for (int i = 0; i < 2; i++)
			say(port, wf_entry_tag(WF_ENTRY_CALLS, 7000, 0), call, n);
		CHECK_OK(answer_to(port, 7000));
		CHECK_OK(answer_to(port, 7000));
		say(port, wf_entry_tag(WF_ENTRY_VERDICTS, 7000, 0), answer, sizeof(answer));
		say(port, wf_entry_tag(WF_ENTRY_VERDICTS, 7000, 0), &(uint32_t){ 1 }, 4);
		CHECK_OK(weft_recv(port, far_process(1), wf_entry_tag(WF_ENTRY_ENDS, 7000, 0), NULL, 0, SOON, NULL));
		CHECK_OK(weft_port_close(port, SOON));
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .in = far_process(1)), SOON, NULL, NULL), 1);
		free(call);
	}
	far_leave();
}

FAR(answers_of_a_neighbour_that_lies_do_no_harm, 2)
{
	far_join(0);
	if (far_rank == 0) {
		weft_id ids[3] = { 0 };
		struct weft_req *ends[3] = { NULL };
		struct weft_status st[3];

		far_meet();
		CHECK_EQ(weft_spawn(WEFT(spawn_opts, .entry = "counts", .count = 3, .in = far_process(1)), SOON, ids, ends), 1);
		CHECK(!ids[0] && ids[1] == far_id(1) && !ids[2] && !ends[0] && ends[1] && !ends[2]);
		CHECK(strstr(weft_last_error(), "for no reason"));
		CHECK_EQ(weft_req_wait_some(ends, 3, 1, 1, SOON, NULL, st), 1);
		CHECK(st[0].from == far_id(1) && st[0].err == 0);
	} else {
		struct wf_entry_answer fine = { .id = far_id(1) }, foreign = { .id = far_id(0) }, no = { .err = -EDOM, .words = "for no reason" };
		struct weft_port *port = NULL;
		uint8_t call[200], a[WF_ENTRY_ANSWER + 100] = { 0 };
		struct weft_status st;
		uint64_t ticket;

		MUST_OK(weft_port_open(WEFT(port_opts, .channel = WF_ENTRY_CHANNEL), &port));
		far_meet();
		MUST_OK(weft_recv(port, far_process(0), WEFT_ANY_TAG, call, sizeof(call), SOON, &st));
		ticket = wf_entry_tag_ticket(st.tag);
#define SAY(kind, index, n) CHECK_OK(weft_send(port, far_process(0), wf_entry_tag(kind, ticket, index), a, n, SOON))
		SAY(WF_ENTRY_ANSWERS, 3, wf_entry_answer_write(&fine, a, sizeof(a)));   /* there is no such thread */
		SAY(WF_ENTRY_ANSWERS, 65535, wf_entry_answer_write(&fine, a, sizeof(a)));
		SAY(WF_ENTRY_ANSWERS, 0, wf_entry_answer_write(&foreign, a, sizeof(a)));
		SAY(WF_ENTRY_ANSWERS, 0, 5);
		SAY(WF_ENTRY_ANSWERS, 0, sizeof(a));
		SAY(WF_ENTRY_ENDS, 0, 0);               /* before it has begun */
		SAY(WF_ENTRY_ENDS, 4, 0);
		SAY(WF_ENTRY_ANSWERS, 1, wf_entry_answer_write(&fine, a, sizeof(a)));
		SAY(WF_ENTRY_ANSWERS, 1, wf_entry_answer_write(&fine, a, sizeof(a)));
		SAY(WF_ENTRY_ANSWERS, 0, wf_entry_answer_write(&no, a, sizeof(a)));
		SAY(WF_ENTRY_ANSWERS, 2, wf_entry_answer_write(&no, a, sizeof(a)));
		SAY(WF_ENTRY_ENDS, 2, 0);
		SAY(WF_ENTRY_ENDS, 1, sizeof(a));
		SAY(WF_ENTRY_ENDS, 1, 0);
#undef SAY
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

static void *spawns(void *arg)
{
	uint32_t other = (far_rank + 1) % far_count;

	(void)arg;
	for (int i = 0; i < 3; i++) {
		weft_id me = weft_self(), ids[2] = { 0 }, got = 0;
		struct weft_req *ends[2] = { NULL };
		struct weft_status st[2];

		MUST_EQ(weft_spawn(WEFT(spawn_opts, .entry = "echo", .count = 2, .in = far_process(other), .arg = &me, .arg_len = sizeof(me)), SOON, ids, ends), 2);
		CHECK_OK(weft_recv(NULL, ids[1], 1, &got, sizeof(got), SOON, NULL));
		CHECK_OK(weft_recv(NULL, ids[0], 1, &got, sizeof(got), SOON, NULL));
		CHECK_EQ(weft_req_wait_some(ends, 2, 2, 2, SOON, NULL, st), 2);
		CHECK(st[0].from == ids[0] && st[1].from == ids[1] && !st[0].err && !st[1].err);
		CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	}
	return NULL;
}

FAR(a_hundred_threads_of_two_processes_spawn_at_once, 2)
{
	enum { SPAWNERS = 50 };
	pthread_t thread[SPAWNERS];

	begin(WEFT_NOBODY);
	for (int i = 0; i < SPAWNERS; i++)
		thread[i] = thread_start(spawns, NULL);
	for (int i = 0; i < SPAWNERS; i++)
		thread_join(thread[i]);
	CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
	far_leave();
}

FAR_MAIN
