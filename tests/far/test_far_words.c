/* test_far_words.c - what weft_last_error says of a send that did not reach another process: to whom, and why. */
#include "pair.h"

static bool says(const char *what)
{
	return strstr(weft_last_error(), what) != NULL;
}

/* The last call that failed was about @id, for the reason @why. */
static void check_words(weft_id id, const char *why)
{
	char text[64];

	weft_id_print(id, text, sizeof(text));
	if (!says(text) || !says(why))
		printf("# of %s, because \"%s\", it says: %s\n", text, why, weft_last_error());
	CHECK(says(text));
	CHECK(says(why));
}

/* 0 sends. 1 closes a port, ends a thread, and is killed in the end. */
static void serve(void)
{
	struct weft_port *port = port_new(0), *channel = NULL;
	struct mate mate;

	mate_start(&mate);
	MUST_OK(weft_port_open(WEFT(port_opts, .channel = "words"), &channel));
	far_tell(0, port_id(port));
	far_tell(1, mate.id);
	far_step(1);
	far_await(0, 1);
	CHECK_OK(weft_port_close(port, SOON));
	CHECK_OK(weft_port_close(channel, SOON));
	mate_stop(&mate);
	far_may_die();
	far_step(2);
	for (;;)
		pause();
}

enum { SENDS = 3 };

struct pending {
	struct weft_req *req;
	weft_id to;
	const char *why;
};

static void post(struct weft_port *from, struct pending *p, weft_id to, const char *why)
{
	static uint64_t v;

	p->to = to;
	p->why = why;
	MUST_OK(send_post(from, WEFT_SYNC, to, 1, &v, 8, &p->req));
}

static void check_ends(struct pending *p, int n)
{
	for (int i = 0; i < n; i++) {
		weft_send(NULL, weft_self() ^ 1 << 20, 1, NULL, 0, WEFT_NOW);   /* words of another failure */
		CHECK_EQ(weft_req_wait(&p[i].req, SOON, NULL), -ECONNRESET);
		check_words(p[i].to, p[i].why);
	}
}

FAR(a_send_that_failed_says_to_whom_and_why, 2)
{
	struct weft_port *channel = NULL;
	struct pending p[SENDS];
	weft_id port, thread, nobody;
	uint64_t v = 0;

	far_join(0);
	if (far_rank == 1)
		serve();
	port = (weft_id)far_hear(0);
	thread = (weft_id)far_hear(1);
	nobody = far_id(1) ^ (weft_id)1 << 20;          /* another generation */
	MUST_OK(weft_port_open(WEFT(port_opts, .channel = "words"), &channel));
	CHECK_EQ(weft_send(NULL, far_process(40), 1, &v, 8, SOON), -ESRCH);
	check_words(far_process(40), "the job has no process 41");
	CHECK_EQ(weft_send(NULL, nobody, 1, &v, 8, SOON), -ESRCH);
	check_words(nobody, "nobody of that id");
	/* Pending when a port closes and a thread ends there: both know of the mailbox by then. */
	MUST_OK(weft_send(NULL, port, 2, &v, 8, SOON));
	MUST_OK(weft_send(NULL, thread, 2, &v, 8, SOON));
	MUST_OK(weft_send(channel, far_process(1), 2, &v, 8, SOON));
	post(NULL, &p[0], port, "nobody of that id");
	post(NULL, &p[1], thread, "nobody of that id");
	post(channel, &p[2], far_process(1), "port was closed");
	far_step(1);
	check_ends(p, 3);
	far_await(1, 2);
	CHECK_EQ(weft_send(NULL, port, 1, &v, 8, SOON), -ESRCH);
	check_words(port, "nobody of that id");
	CHECK_EQ(weft_send(NULL, thread, 1, &v, 8, SOON), -ESRCH);
	check_words(thread, "nobody of that id");
	/* Pending when the process is killed; and after. */
	MUST_OK(weft_send(NULL, far_id(1), 2, &v, 8, SOON));
	MUST_OK(weft_send(weft_port_world(), far_process(1), 2, &v, 8, SOON));
	post(NULL, &p[0], far_id(1), "process 2 is gone");
	post(weft_port_world(), &p[1], far_process(1), "process 2 is gone");
	CHECK_OK(kill(far_pid(1), SIGKILL));
	check_ends(p, 2);
	CHECK_EQ(weft_send(NULL, far_id(1), 1, &v, 8, SOON), -ESRCH);
	check_words(far_id(1), "process 2 is gone");
	CHECK_EQ(weft_send(NULL, port, 1, &v, 8, SOON), -ESRCH);
	check_words(port, "process 2 is gone");
	CHECK_OK(weft_port_close(channel, SOON));
	CHECK_OK(weft_fini(SOON));
}

static weft_id to_other_process;

static void *send_main(void *arg)
{
	uint64_t v = 0;

	(void)arg;
	CHECK_EQ(weft_send(NULL, to_other_process, 1, &v, (size_t)0, weft_in(WEFT_MS)), -ESRCH);
	check_words(to_other_process, "nobody of that id");
	return NULL;
}

FAR(the_words_are_those_of_the_thread_that_asks, 2)
{
	uint64_t v = 0;

	far_join(0);
	if (far_rank == 0) {
		to_other_process = far_id(1) ^ (weft_id)1 << 20;
		CHECK_EQ(weft_send(NULL, far_process(9), 1, &v, 8, SOON), -ESRCH);
		thread_join(thread_start(send_main, NULL));
		check_words(far_process(9), "the job has no process 10");
	}
	far_leave();
}

FAR_MAIN
