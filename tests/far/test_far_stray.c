/* test_far_stray.c - somebody writes where he should not: into the words by which two processes pass a message. They do not wait for each other for ever.
 *
 * Process 1, who sends, plays that third one as well: the words lie in its memory.
 */
#include "pair.h"
#include "witness.h"

#include "port/push.h"
#include "port/request.h"
#include "port/ways.h"

enum { LEN = 1 << 20, LARGE = 64 << 20 };

static uint64_t word_at(size_t i)
{
	return i * 0x9e3779b97f4a7c15u;
}

static uint64_t *payload(size_t len)
{
	uint64_t *mem = malloc(len);

	MUST(mem);
	for (size_t i = 0; i < len / 8; i++)
		mem[i] = word_at(i);
	return mem;
}

/* Not asked for by weft, and nothing a sanitizer should look at. */
__attribute__((no_sanitize("thread"))) static void stray(void *mem, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile unsigned char *)mem)[i] = 0xee;
}

/* [process 0] */
static void receive(uint64_t tag, size_t len)
{
	uint64_t *mem = calloc(1, len);
	struct weft_status st;
	size_t wrong = 0;

	MUST(mem);
	CHECK_OK(weft_recv(NULL, far_id(1), tag, mem, len, SOON, &st));
	CHECK_EQ(st.len, len);
	for (size_t i = 0; i < len / 8; i++)
		wrong += mem[i] != word_at(i);
	CHECK_EQ(wrong, 0);
	free(mem);
}

/* What a send that has been announced shares with the other process. */
struct shared {
	struct wf_ticket *ticket;
	struct wf_pipe_head *head;      /* NULL: it has no pipe yet */
};

/* [process 1] */
static struct shared shared_of(struct weft_req *req)
{
	struct shared s = { NULL, NULL };

	for (;;) {
		MUST(req && req->push);
		wf_lock(&wf_user_lock);
		s.ticket = req->push->ticket;
		s.head = req->push->pipe ? req->push->pipe->head : NULL;
		wf_unlock(&wf_user_lock);
		if (s.ticket)
			return s;
		crew_nap();             /* the other process is not known yet */
	}
}

FAR(chunks_that_a_stray_write_has_hidden_are_shown_again, 2)
{
	far_join(0);
	if (far_rank == 0) {
		far_await(1, 1);
		receive(1, LEN);
	} else {
		uint64_t *mem = payload(LEN);
		struct wf_pipe_head *head;
		struct weft_req *req;

		MUST_OK(send_post(NULL, 0, far_id(0), 1, mem, LEN, &req));
		head = shared_of(req).head;
		for (int i = 0; i < 16; i++)
			atomic_store(&head->chunk[i].seq, 12345u);
		far_step(1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		free(mem);
	}
	far_leave();
}

FAR(room_that_a_stray_write_has_hidden_is_found_again, 2)
{
	far_join(0);
	if (far_rank == 0) {
		far_await(1, 1);
		receive(1, LARGE);
	} else {
		uint64_t *mem = payload(LARGE);
		struct wf_pipe_head *head;
		struct weft_req *req;

		MUST_OK(send_post(NULL, 0, far_id(0), 1, mem, LARGE, &req));
		head = shared_of(req).head;
		far_step(1);
		for (weft_time until = weft_in(50 * WEFT_MS); weft_now() < until;)
			atomic_store(&head->read, 0x77777777u);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
		free(mem);
	}
	far_leave();
}

/* Waits until it is taken. False: weft's own thread was faster, and it is past that: nothing to be shown this time. */
static bool taken(struct wf_ticket *ticket)
{
	for (weft_time until = weft_in(2 * WEFT_S); weft_now() < until;)
		if ((atomic_load(&ticket->word) & 0xff) == WF_T_TAKEN)
			return true;
	printf("# was over before it could be stopped\n");
	return false;
}

FAR(a_pipe_that_a_stray_write_has_hidden_is_told_again, 2)
{
	far_join(0);
	if (far_rank == 0) {
		far_await(1, 1);
		receive(3, LEN);
		receive(1, LEN);
		receive(2, LEN);
	} else {
		uint64_t *mem = payload(LEN);
		struct weft_req *req[3];
		struct wf_ticket *ticket;

		for (int i = 0; i < 3; i++)     /* the third finds no pipe before it is taken */
			MUST_OK(send_post(NULL, 0, far_id(0), (uint64_t)i + 1, mem, LEN, &req[i]));
		ticket = shared_of(req[2]).ticket;
		CHECK(!shared_of(req[2]).head);
		far_step(1);
		if (taken(ticket)) {
			far_stop(0);
			for (int i = 0; i < 100 && !atomic_load(&ticket->ready); i++) {
				weft_req_wait(&req[2], WEFT_NOW, NULL);
				crew_nap();
			}
			CHECK_EQ(atomic_load(&ticket->ready), WF_READY_PIPE);
			atomic_store(&ticket->ready, 77u);
			stray(&ticket->pipe, sizeof(ticket->pipe));
			far_go_on(0);
		}
		for (int i = 0; i < 3; i++)
			CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		free(mem);
	}
	far_leave();
}

FAR(a_message_whose_ticket_a_stray_write_has_broken_ends_at_both_ends, 2)
{
	far_join(0);
	if (far_rank == 0) {
		uint64_t *mem = malloc(LARGE);

		MUST(mem);
		far_await(1, 1);
		CHECK_EQ(weft_recv(NULL, far_id(1), 1, mem, LARGE, SOON, NULL), -ECONNRESET);
		free(mem);
	} else {
		uint64_t *mem = payload(LARGE);
		struct wf_ticket *ticket;
		struct weft_req *req;

		MUST_OK(send_post(NULL, WEFT_SYNC, far_id(0), 1, mem, LARGE, &req));
		ticket = shared_of(req).ticket;
		far_step(1);
		while ((atomic_load(&ticket->word) & 0xff) != WF_T_TAKEN)
			;
		atomic_fetch_xor(&ticket->word, 2u);
		CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
		free(mem);
	}
	far_leave();
}

/* [process 1] Its way to @id. */
static struct wf_way *way_to(weft_id id)
{
	struct wf_way *w;

	for (uint32_t i = 0; (w = atomic_load(&wf_ways_by_key[i])) != NULL; i++)
		if (atomic_load(&w->id) == id)
			return w;
	MUST(false);
	return NULL;
}

static void send_one(void *arg)
{
	uint64_t v = 2;

	(void)arg;
	CHECK_OK(weft_send(NULL, far_id(0), 2, &v, 8, SOON));
}

FAR(a_port_closes_though_a_stray_write_has_hidden_what_threads_have_sent, 2)
{
	uint64_t v = 1;

	far_join(0);
	if (far_rank == 0) {
		CHECK_NEXT(NULL, far_id(1), 1, 1);
		far_step(1);
		far_await(1, 1);
		CHECK_NEXT(NULL, WEFT_ANY, 2, 2);
	} else {
		struct weft_port *port = port_new(0), *another = port_new(0);
		struct wf_cell *last;
		struct mate mate;
		weft_time began;
		struct wf_way *w;
		uint32_t end;

		CHECK_OK(weft_send(NULL, far_id(0), 1, &v, 8, SOON));
		far_await(0, 1);
		mate_start(&mate);
		mate_run(&mate, send_one, NULL);        /* the second who sends there */
		w = way_to(far_id(0));
		end = (uint32_t)atomic_load(&w->tail);
		last = &w->cells[(end - 1) % WF_WAY_CELLS];
		CHECK_EQ(atomic_load(&last->seq), end);
		atomic_store(&last->seq, 0);
		CHECK_OK(weft_port_close(port, SOON));
		witness_call();
		began = weft_now();
		CHECK_OK(weft_port_close(another, SOON));       /* that is waited for once */
		WITHIN(began, 3 * WEFT_S * TEST_SLOW);
		atomic_store(&last->seq, end);
		far_step(1);
		mate_stop(&mate);
	}
	far_leave();
}

FAR_MAIN
