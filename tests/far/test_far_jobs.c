/* test_far_jobs.c - messages between processes of jobs that are attached to each other. See jobs.h for who is who. */
#include "jobs.h"

enum { LARGE = 4 << 20 };

static const size_t sizes[] = { 0, 1, 8, 96, 97, 1000, 4096, 4097, 65536, 65537, 300000, 1 << 20, LARGE };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static char memory_of_all[200000];

/* Does a sample of this process say so of @whom? */
static bool state_tells(weft_id whom, const char *text)
{
	struct weft_state_item item = { .size = sizeof(item) };
	struct weft_state *s = NULL;
	bool told = false;

	MUST_OK(weft_state_open(0, &s));
	while (weft_state_next(s, &item) == 0)
		told |= item.kind == WEFT_STATE_PEER && item.whom == whom && !strcmp(item.text, text);
	weft_state_close(s);
	return told;
}

FAR(messages_of_every_size_go_both_ways_between_processes_of_the_same_number, 3)
{
	unsigned char *mem = memory(LARGE);
	struct weft_status st;

	jobs_join_attached();
	for (unsigned i = 0; far_rank != 1 && i < 2 * SIZES; i++) {
		size_t len = sizes[i / 2];
		weft_id peer = jobs_thread(2 - far_rank);

		if (i % 2 == (far_rank != 0)) {
			pattern_put(mem, len, i);
			CHECK_OK(weft_send(NULL, peer, 100 + i, mem, len, SOON));
		} else {
			memset(mem, 0xdd, len);
			CHECK_OK(weft_recv(NULL, peer, WEFT_ANY_TAG, mem, len, SOON, &st));
			CHECK_EQ(st.tag, 100 + i);
			CHECK_EQ(st.len, len);
			CHECK(st.from == peer);
			CHECK(pattern_ok(mem, len, i));
		}
	}
	CHECK(weft_id_distance(jobs_thread(far_rank ? 0 : 2)) == 3);
	CHECK(far_rank == 1 || state_tells(jobs_process(2 - far_rank), "of another job, reached"));
	far_leave();
	free(mem);
}

/* Everybody to everybody, of three jobs at once: six processes with two numbers. */
FAR(whoever_receives_from_anyone_learns_who_sent_and_can_answer, 6)
{
	uint64_t seen = 0, v;
	struct weft_status st;

	jobs_join_attached();
	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank)
			CHECK_OK(weft_send(NULL, jobs_thread(i), 1, &(uint64_t){ far_rank }, 8, SOON));
	for (uint32_t i = 1; i < far_count; i++) {
		MUST_OK(weft_recv(NULL, WEFT_ANY, 1, &v, 8, SOON, &st));
		MUST(v < far_count);
		CHECK(st.from == jobs_thread((uint32_t)v));
		seen |= UINT64_C(1) << v;
		v = 10 * v + far_rank;
		CHECK_OK(weft_send(NULL, st.from, 2, &v, 8, SOON));
	}
	CHECK_EQ(seen, ((UINT64_C(1) << far_count) - 1) & ~(UINT64_C(1) << far_rank));
	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank)
			CHECK_NEXT(NULL, jobs_thread(i), 2, 10 * far_rank + i);
	far_leave();
}

FAR(process_ports_opened_ports_and_named_contexts_are_reached_as_in_one_job, 3)
{
	struct weft_port *port = NULL, *channel = NULL;
	uint32_t other = 2 - far_rank;

	jobs_join_attached();
	if (far_rank != 1) {
		port = port_new(0);
		MUST_OK(weft_port_open(WEFT(port_opts, .channel = "between jobs"), &channel));
		far_tell((int)far_rank, port_id(port));
	}
	far_meet();
	if (far_rank != 1) {
		weft_id peer = jobs_id(other, far_told((int)other));

		CHECK_OK(weft_send(weft_port_world(), jobs_process(other), 1, &(uint64_t){ 1 }, 8, SOON));
		CHECK_OK(weft_send(port, peer, 2, &(uint64_t){ 2 }, 8, SOON));
		CHECK_OK(weft_send(channel, jobs_process(other), 3, &(uint64_t){ 3 }, 8, SOON));
		CHECK_NEXT(weft_port_world(), jobs_process(other), 1, 1);
		CHECK_NEXT(port, peer, 2, 2);
		CHECK_NEXT(channel, jobs_process(other), 3, 3);
	}
	far_meet();
	if (far_rank != 1)
		ports_close(port, channel);
	far_leave();
}

FAR(synchronous_and_announced_sends_probes_and_cancels_work_as_between_hosts, 3)
{
	unsigned char *mem = memory(LARGE);
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;
	struct weft_status st;

	jobs_join_attached();
	if (far_rank == 0) {
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 1, mem, 8, &req), 0);
		CHECK_EQ(weft_req_wait(&req, weft_in(20 * WEFT_MS), NULL), -ETIMEDOUT);
		far_step(1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		pattern_put(mem, LARGE, 5);
		MUST_EQ(send_post(NULL, WEFT_RENDEZVOUS, jobs_thread(2), 2, mem, LARGE, &req), 0);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 3, mem, LARGE, &req), 0);
		CHECK_OK(weft_req_cancel(req));
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECANCELED);
		far_step(2);
	} else if (far_rank == 2) {
		far_await(0, 1);
		CHECK_OK(weft_recv(NULL, WEFT_ANY, 1, mem, 8, SOON, &st));
		CHECK(st.from == jobs_thread(0));
		CHECK_OK(weft_probe(NULL, WEFT(op, .peer = jobs_thread(0), .tag = 2), SOON, &msg, &st));
		CHECK_EQ(st.len, LARGE);
		CHECK(st.from == jobs_thread(0));
		CHECK_OK(recv_op(NULL, WEFT(op, .msg = msg, .data = mem, .len = LARGE), &st));
		CHECK(pattern_ok(mem, LARGE, 5));
		far_await(0, 2);
		CHECK_NOTHING(NULL, WEFT_ANY, 3);
	}
	far_leave();
	free(mem);
}

/* More announcements than the other end takes: the rest stays with the sender, who is asked for what is wanted. */
FAR(what_a_sender_keeps_back_is_found_by_who_names_it, 6)
{
	enum { N = 700 };
	static struct weft_req *req[N];
	static uint64_t v[N];

	jobs_join_attached();
	for (uint64_t i = 0; (far_rank == 0 || far_rank == 4) && i < N; i++) {
		v[i] = 1000 * far_rank + i;
		MUST_EQ(send_post(NULL, WEFT_RENDEZVOUS, jobs_thread(2), i, &v[i], 8, &req[i]), 0);
	}
	far_meet();
	for (uint64_t i = N; far_rank == 2 && i-- > 0;) {
		CHECK_NEXT(NULL, jobs_thread(4), i, 4000 + i);
		CHECK_NEXT(NULL, i % 2 ? jobs_thread(0) : WEFT_ANY, i, i);
	}
	for (int i = 0; (far_rank == 0 || far_rank == 4) && i < N; i++)
		CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
	far_leave();
}

FAR(an_id_of_another_job_is_text_and_parts_like_any, 3)
{
	struct weft_id_parts p;
	char text[WEFT_ID_TEXT];
	weft_id id;

	jobs_join_attached();
	p = weft_id_split(jobs_thread(far_rank == 2 ? 0 : 2));
	CHECK_EQ(p.job, jobs_alias(far_rank == 2 ? 0 : 1));
	CHECK_EQ(p.process, WF_AGENTS);
	CHECK_OK(weft_id_parse(weft_id_print(jobs_thread(2), text, sizeof(text)), &id));
	CHECK(id == jobs_thread(2));
	far_leave();
}

FAR(numbers_of_jobs_that_are_not_attached_mean_nobody, 3)
{
	static const uint32_t strange[] = { 1, 999, 2047, 2048, 4094 };
	uint64_t v = 0;

	jobs_join_attached();
	for (unsigned i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		weft_id id = (weft_id)strange[i] << 52 | (weft_id)WF_AGENTS << 32 | 5;

		CHECK_EQ(weft_send(NULL, id, 1, &v, 8, SOON), -ESRCH);
		CHECK_EQ(weft_recv(NULL, id, 1, &v, 8, SOON, NULL), -ESRCH);
		CHECK_EQ(weft_send(NULL, id, 1, &v, 8, WEFT_NOW), -ESRCH);
	}
	/* nor a process that is not there, nor number 0 */
	CHECK_EQ(weft_send(NULL, (weft_id)jobs_alias(far_rank == 2 ? 0 : 1) << 52 | UINT64_C(77) << 32, 1, &v, 8, SOON), -ESRCH);
	CHECK_EQ(weft_send(NULL, (weft_id)jobs_alias(far_rank == 2 ? 0 : 1) << 52, 1, &v, 8, SOON), -ESRCH);
	far_leave();
}

FAR(one_that_is_not_offered_is_nobody_until_it_is, 3)
{
	uint64_t v = 6;

	atomic_store(&jobs_hidden, 3);
	jobs_join_attached();
	if (far_rank == 0) {
		CHECK_EQ(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON), -ESRCH);
		CHECK(strstr(weft_last_error(), "does not offer"));
		atomic_store(&jobs_hidden, 0);
		CHECK_OK(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON));
		far_step(1);
	} else if (far_rank == 2) {
		far_await(0, 1);        /* who asks for it would call */
		CHECK_NEXT(NULL, jobs_thread(0), 1, 6);
	}
	far_leave();
}

FAR(one_that_is_not_offered_is_answered_when_it_calls, 3)
{
	unsigned char *mem = memory(LARGE);
	struct weft_status st;

	atomic_store(&jobs_hidden, far_rank == 0 ? 3 : 0);
	jobs_join_attached();
	for (unsigned i = 0; far_rank != 1 && i < SIZES; i++) {
		if (far_rank == 2) {
			CHECK_OK(weft_send(NULL, jobs_thread(0), i, mem, sizes[i], SOON));
			CHECK_OK(weft_recv(NULL, jobs_thread(0), i, mem, LARGE, SOON, &st));
			CHECK(pattern_ok(mem, sizes[i], i));
		} else {
			CHECK_OK(weft_recv(NULL, WEFT_ANY, i, mem, LARGE, SOON, &st));
			pattern_put(mem, sizes[i], i);
			CHECK_OK(weft_send(NULL, st.from, i, mem, sizes[i], SOON));
		}
	}
	far_leave();
	free(mem);
}

FAR(messages_wait_while_the_agents_find_out_where_a_process_is, 4)
{
	struct weft_req *r[2] = { NULL };
	uint64_t v = 6;

	atomic_store(&jobs_sought, 3);
	jobs_join_attached();
	if (far_rank == 0) {
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 1, &v, 8, &r[0]), 0);
		CHECK_EQ(weft_req_wait(&r[0], weft_in(50 * WEFT_MS), NULL), -ETIMEDOUT);
		atomic_store(&jobs_sought, 4);
		wf_wire_joined((uint32_t)(jobs_process(2) >> 32));
		CHECK_OK(weft_req_wait(&r[0], SOON, NULL));
		/* the other is not offered, as it turns out */
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(3), 1, &v, 8, &r[1]), 0);
		atomic_store(&jobs_hidden, 4);
		CHECK_EQ(weft_req_wait(&r[1], SOON, NULL), -ESRCH);
	} else if (far_rank == 2) {
		CHECK_NEXT(NULL, WEFT_ANY, 1, 6);
	}
	far_leave();
}

FAR(an_attachment_that_was_not_told_yet_is_asked_for_by_who_uses_it, 3)
{
	uint64_t v = 4;

	jobs_join();
	if (far_rank == 2)
		MUST_OK(jobs_attach(0));
	far_meet();
	if (far_rank == 0) {
		CHECK_EQ(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON), -ESRCH);
		CHECK(atomic_load(&jobs_asked) > 0);
		jobs_answer = true;
		CHECK_OK(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON));
	} else if (far_rank == 2) {
		CHECK_NEXT(NULL, WEFT_ANY, 1, 4);
	}
	CHECK(far_rank == 0 || !atomic_load(&jobs_asked));
	far_leave();
}

/* The other end refuses without a word; when it knows the treaty the message comes. */
FAR(a_message_waits_until_the_other_process_knows_of_the_attachment, 3)
{
	struct weft_req *req = NULL;
	uint64_t v = 4;

	jobs_join();
	if (far_rank == 0) {
		MUST_OK(jobs_attach(1));
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 1, &v, 8, &req), 0);
		CHECK_EQ(weft_req_wait(&req, weft_in(200 * WEFT_MS), NULL), -ETIMEDOUT);
		far_step(1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	} else if (far_rank == 2) {
		far_await(0, 1);
		MUST_OK(jobs_attach(0));
		CHECK_NEXT(NULL, WEFT_ANY, 1, 4);
		CHECK_EQ(atomic_load(&jobs_asked), 0);
	}
	far_leave();
}

FAR(who_has_another_key_gets_nothing_through, 3)
{
	struct weft_req *req = NULL;
	uint64_t v = 4;

	setenv("WEFT_SILENCE_MS", "1500", 1);
	jobs_wrong_key = far_rank == 2;
	jobs_join_attached();
	if (far_rank == 0) {
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 1, &v, 8, &req), 0);
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -EACCES);
		CHECK_EQ(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON), -EACCES);
	}
	far_meet();
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	far_leave();
}

FAR(what_is_under_way_ends_when_the_attachment_is_dropped_and_the_rest_goes_on, 6)
{
	uint32_t other = far_rank == 0 ? 2 : 0;
	struct weft_req *r[3] = { NULL };
	uint64_t v = 4, w, x;

	setenv("WEFT_SILENCE_MS", "1500", 1);
	jobs_join_attached();
	if (far_rank == 0 || far_rank == 2) {
		CHECK_OK(weft_send(NULL, jobs_thread(other), 1, &v, 8, SOON));
		CHECK_NEXT(NULL, jobs_thread(other), 1, 4);
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(other), 2, &v, 8, &r[0]), 0);
		MUST_EQ(recv_post(NULL, 0, jobs_thread(other), 3, &w, 8, &r[1]), 0);
		MUST_EQ(recv_post(NULL, 0, jobs_thread(4), 3, &x, 8, &r[2]), 0);
		far_step(1);
		far_await(other, 1);
	}
	if (far_rank == 0) {
		wf_wire_treaty_drop(jobs_alias(1));
		CHECK_EQ(weft_req_wait(&r[0], SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_req_wait(&r[1], SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON), -ECONNRESET);
		CHECK_EQ(weft_send(NULL, jobs_process(3), 1, &v, 8, SOON), -ECONNRESET);         /* nobody spoke to that one */
		CHECK_EQ(jobs_attach(1), -EEXIST);
	} else if (far_rank == 2) {
		int r0 = weft_req_wait(&r[0], SOON, NULL), r1 = weft_req_wait(&r[1], SOON, NULL);

		CHECK(r0 == -ECONNRESET || r0 == -EHOSTUNREACH);
		CHECK(r1 == -ECONNRESET || r1 == -EHOSTUNREACH);
	}
	far_meet();
	if (far_rank == 4) {
		CHECK_OK(weft_send(NULL, jobs_thread(0), 3, &v, 8, SOON));
		CHECK_OK(weft_send(NULL, jobs_thread(2), 3, &v, 8, SOON));
	} else if (r[2]) {
		CHECK_OK(weft_req_wait(&r[2], SOON, NULL));
	}
	far_leave();
}

/* Nobody tells: that nobody listens any more where it was is enough, and quick. */
FAR(a_killed_process_of_another_job_is_missed_soon, 4)
{
	struct weft_req *r[2] = { NULL };
	uint64_t v = 4, w;

	jobs_join_attached();
	if (far_rank == 2) {
		CHECK_NEXT(NULL, jobs_thread(0), 1, 4);
		far_await(0, 1);
		far_die();
	}
	if (far_rank == 0) {
		weft_time began = weft_now();

		CHECK_OK(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON));
		MUST_EQ(recv_post(NULL, 0, jobs_thread(2), 3, &w, 8, &r[0]), 0);
		MUST_EQ(send_post(NULL, WEFT_SYNC, jobs_thread(2), 2, &v, 8, &r[1]), 0);
		far_step(1);
		CHECK_EQ(weft_req_wait(&r[0], SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_req_wait(&r[1], SOON, NULL), -ECONNRESET);
		CHECK_EQ(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON), -ECONNRESET);
		printf("# after %lld ms\n", (long long)(weft_now() - began) / WEFT_MS);
		CHECK_OK(weft_send(NULL, jobs_thread(3), 1, &v, 8, SOON));
		far_step(2);
	} else if (far_rank == 3) {
		CHECK_NEXT(NULL, jobs_thread(0), 1, 4);
	}
	far_await(0, 2);
	CHECK_OK(weft_fini(SOON));
}

FAR(one_that_leaves_its_job_is_missed_by_the_other, 3)
{
	struct weft_req *req = NULL;
	uint64_t v = 4, w;
	int r;

	jobs_join_attached();
	if (far_rank == 2) {
		CHECK_NEXT(NULL, jobs_thread(0), 1, 4);
		far_await(0, 1);
		CHECK_OK(weft_send(NULL, jobs_thread(0), 2, &v, 8, SOON));
		CHECK_OK(weft_fini(SOON));
	} else {
		if (far_rank == 0) {
			CHECK_OK(weft_send(NULL, jobs_thread(2), 1, &v, 8, SOON));
			MUST_EQ(recv_post(NULL, 0, jobs_thread(2), 3, &w, 8, &req), 0);
			far_step(1);
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
			CHECK_NEXT(NULL, jobs_thread(2), 2, 4);         /* what it had sent before */
			while ((r = weft_send(NULL, jobs_process(2), 1, &v, 8, SOON)) == 0)
				crew_nap();
			CHECK_EQ(r, -ECONNRESET);
		}
		CHECK_OK(weft_fini(SOON));
	}
}

/* Of a thread that sends and receives until the other job is no longer attached. */
static void *trade(void *arg)
{
	static const size_t lens[] = { 8, 300, 5000, 70000, 200000 };
	_Atomic int *ended = arg;
	char *mem = memory(200000);
	int r = 0;

	for (unsigned i = 0; r == 0; i++) {
		struct weft_req *req = NULL;

		r = recv_post(weft_port_world(), 0, WEFT_ANY, WEFT_ANY_TAG, mem, 200000, &req);
		MUST(r == 0 || r == WEFT_DONE);
		if (r == 0) {
			r = weft_send(NULL, jobs_process(2 - far_rank), i, memory_of_all, lens[i % 5], weft_in(10 * WEFT_MS));
			weft_req_cancel(req);
			weft_req_wait(&req, SOON, NULL);
		}
		if (r == WEFT_DONE || r == -ETIMEDOUT)          /* all may send long ones at once, and nobody receive */
			r = 0;
		if (r == 0 && i == 50)
			far_step(1);
	}
	CHECK(r == -ECONNRESET || r == -EHOSTUNREACH);
	free(mem);
	atomic_fetch_add(ended, 1);
	return NULL;
}

FAR(an_attachment_can_be_dropped_while_threads_of_both_jobs_trade, 3)
{
	_Atomic int ended = 0;
	pthread_t t[2];

	setenv("WEFT_SILENCE_MS", "1500", 1);
	jobs_join_attached();
	for (int i = 0; far_rank != 1 && i < 2; i++)
		t[i] = thread_start(trade, &ended);
	if (far_rank == 0) {
		far_await(0, 1);
		wf_wire_treaty_drop(jobs_alias(1));
	}
	for (int i = 0; far_rank != 1 && i < 2; i++)
		thread_join(t[i]);
	far_leave();
}

static void leave_at_once(void *arg)
{
	(void)arg;
	weft_thread_leave();
}

FAR(the_end_of_a_thread_of_another_job_is_told_to_who_waits_for_it, 3)
{
	uint64_t v;

	jobs_join_attached();
	if (far_rank == 2) {
		struct mate m;

		mate_start(&m);
		far_tell(0, m.id);
		far_await(0, 1);
		mate_run(&m, leave_at_once, NULL);
		mate_stop(&m);
	} else if (far_rank == 0) {
		struct weft_req *req = NULL;

		MUST_EQ(recv_post(NULL, 0, jobs_id(2, far_hear(0)), 1, &v, 8, &req), 0);
		far_step(1);
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
	}
	far_leave();
}

FAR(attachments_that_make_no_sense_are_refused_and_there_are_so_many_at_a_time, 1)
{
	struct wf_treaty t = { .alias = 5 }, u;

	CHECK_EQ(wf_wire_treaty_add(&t), -EOPNOTSUPP);
	jobs_join();
	memset(t.id, 1, sizeof(t.id));
	u = t, u.alias = 0;
	CHECK_EQ(wf_wire_treaty_add(&u), -EINVAL);
	u.alias = WF_ALIASES;
	CHECK_EQ(wf_wire_treaty_add(&u), -EINVAL);
	u = t, u.side = 2;
	CHECK_EQ(wf_wire_treaty_add(&u), -EINVAL);
	u = t, u.me = 1 << 20;
	CHECK_EQ(wf_wire_treaty_add(&u), -EINVAL);
	CHECK_OK(wf_wire_treaty_add(&t));
	CHECK_OK(wf_wire_treaty_add(&t));
	u = t, u.id[0] = 9;
	CHECK_EQ(wf_wire_treaty_add(&u), -EEXIST);      /* that alias for another */
	u = t, u.alias = 6;
	CHECK_EQ(wf_wire_treaty_add(&u), -EEXIST);      /* another alias for that */
	wf_wire_treaty_drop(0);
	wf_wire_treaty_drop(UINT32_MAX);
	wf_wire_treaty_drop(7);                         /* before it was known */
	u.alias = 7, u.id[0] = 10;
	CHECK_EQ(wf_wire_treaty_add(&u), -EEXIST);
	for (uint32_t i = 1; i < WF_TREATIES; i++) {
		u.alias = 100 + i, u.id[1] = (uint8_t)i;
		CHECK_OK(wf_wire_treaty_add(&u));
	}
	u.alias = 1000, u.id[2] = 7;
	CHECK_EQ(wf_wire_treaty_add(&u), -ENOSPC);
	wf_wire_treaty_drop(101);
	CHECK_OK(wf_wire_treaty_add(&u));
	wf_wire_treaties_drop();
	u.alias = 1001, u.id[2] = 8;
	CHECK_OK(wf_wire_treaty_add(&u));
	far_leave();
}

/* Who has the own job's key, or the treaty's, is believed what he may be. */
FAR(nobody_passes_for_a_process_of_another_job_or_side, 3)
{
	const struct wf_endpoint *me;
	uint32_t them;

	jobs_join_attached();
	if (far_rank == 0) {
		MUST_OK(wf_treaty_meet(jobs_alias(1) << 20 | WF_AGENTS, &me, &them));
		CHECK(!wf_trunk_caller(&wf_endpoint, jobs_alias(1) << 20 | WF_AGENTS));
		CHECK(!wf_trunk_caller(me, WF_AGENTS));                 /* one of our own side */
		CHECK(!wf_trunk_caller(me, 1u << 20));                  /* number 0 */
		CHECK(!wf_trunk_caller(me, 2u << 20 | WF_AGENTS));
		MUST(wf_trunk_caller(me, 1u << 20 | WF_AGENTS));
		CHECK_EQ(wf_trunk_caller(me, 1u << 20 | WF_AGENTS)->process, jobs_alias(1) << 20 | WF_AGENTS);
		for (uint32_t i = 1; i < WF_FOREIGNERS_OF; i++)         /* nor for any number of them */
			MUST(wf_trunk_caller(me, 1u << 20 | (WF_AGENTS + i)));
		CHECK(!wf_trunk_caller(me, 1u << 20 | 1));
	}
	far_leave();
}

JOBS_MAIN
