/* test_far_quiet.c - what a process of a job does not do: use the processor while it waits, keep what it no longer needs, touch
 * what is the program's.
 */
#include "pair.h"

#include <sys/resource.h>

#include "mem/share.h"

enum { FILES = 256 };

/* All have exchanged a message with all. */
static void meet_all(void)
{
	uint64_t v;

	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank)
			CHECK_OK(weft_send(NULL, far_id(i), 1, &(uint64_t){ far_rank }, 8, SOON));
	for (uint32_t i = 0; i < far_count; i++)
		if (i != far_rank) {
			CHECK_OK(weft_recv(NULL, far_id(i), 1, &v, 8, SOON, NULL));
			CHECK_EQ(v, i);
		}
	far_meet();
}

static long processor_us(void)
{
	struct rusage u;

	MUST_OK(getrusage(RUSAGE_SELF, &u));
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

FAR(a_process_that_waits_for_others_uses_no_processor, 3)
{
	uint64_t v;
	long us;

	far_join(0);
	meet_all();
	us = processor_us();
	CHECK_EQ(weft_recv(NULL, far_id((far_rank + 1) % 3), 2, &v, 8, weft_in(1500 * WEFT_MS), NULL), -ETIMEDOUT);
	us = processor_us() - us;
	printf("# %ld us of processor in 1500000 us of waiting\n", us);
	CHECK(us < 150000);
	far_leave();
}

/* What each descriptor is; "": not open. */
static void files_look(char (*ret_what)[64])
{
	for (int fd = 0; fd < FILES; fd++) {
		char path[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, ret_what[fd], sizeof(*ret_what) - 1);
		ret_what[fd][n > 0 ? n : 0] = 0;
	}
}

FAR(every_descriptor_of_weft_in_a_job_is_closed_on_exec, 3)
{
	static char before[FILES][64], now[FILES][64];
	struct weft_queue *queue = NULL;
	struct weft_buf *buf = NULL;
	int ours = 0;

	files_look(before);             /* what whoever started this left open is theirs */
	far_join(0);
	meet_all();
	MUST_OK(weft_queue_open(&queue));
	MUST(weft_queue_fd(queue) >= 0);
	MUST_OK(weft_buf_get(64 * MIB, 0, &buf));
	files_look(now);
	for (int fd = 3; fd < FILES; fd++)
		if (now[fd][0] && strcmp(now[fd], before[fd]) != 0) {
			CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			ours++;
		}
	CHECK(ours >= 3);
	CHECK_OK(weft_buf_put(buf));
	CHECK_OK(weft_queue_close(queue));
	far_leave();
}

FAR(weft_installs_no_signal_handler_and_changes_no_mask, 2)
{
	struct sigaction before[65], after;
	sigset_t mask, now;

	for (int sig = 1; sig < 65; sig++)
		if (sigaction(sig, NULL, &before[sig]) < 0)
			before[sig].sa_handler = SIG_ERR;
	MUST_OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
	far_join(0);
	meet_all();
	for (int left = 0; left < 2; left++) {
		for (int sig = 1; sig < 65; sig++)
			if (before[sig].sa_handler != SIG_ERR) {
				MUST_OK(sigaction(sig, NULL, &after));
				CHECK(after.sa_handler == before[sig].sa_handler && after.sa_flags == before[sig].sa_flags);
			}
		MUST_OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
		for (int sig = 1; sig < 65; sig++)
			CHECK_EQ(sigismember(&now, sig), sigismember(&mask, sig));
		if (!left)
			far_leave();
	}
}

static bool all_home(void)
{
	size_t away, here;

	wf_share_collect();
	wf_share_count(&away, &here);
	return away == 0;
}

/* Fewer than a chain of them: they go home because the one who put them goes to sleep. */
FAR(buffers_that_were_put_are_home_while_the_one_who_put_them_sleeps, 2)
{
	enum { N = 3 };
	struct weft_buf *buf = NULL;
	uint64_t v = 1;

	far_join(0);
	EACH_WAY(gives) {
		weft_id peer = far_id(1 - far_rank);

		for (int i = 0; i < N; i++)
			if (gives) {
				MUST_OK(weft_buf_get(5000, 0, &buf));
				CHECK_OK(weft_buf_send(NULL, peer, 1, buf, SOON));
			} else {
				MUST_OK(weft_buf_recv(NULL, peer, 1, SOON, &buf, NULL));
				CHECK_OK(weft_buf_put(buf));
			}
		if (gives) {
			EVENTUALLY(all_home());
			CHECK_OK(weft_send(NULL, peer, 2, &v, 8, SOON));
		} else {
			CHECK_NEXT(NULL, peer, 2, 1);
		}
	}
	far_leave();
}

struct held_back {
	struct weft_layout layout;
	char *mem;
};

/* What lies behind the middle is not to be had before all buffers are home. */
static int held_back_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	const struct held_back *h = (const struct held_back *)(const void *)l;

	(void)max;
	if (at >= l->len / 2)
		EVENTUALLY(all_home());
	*ret_iov = (struct iovec){ h->mem + at, l->len - at < 4096 ? l->len - at : 4096 };
	return 1;
}

/* It has not slept before the message was there. */
FAR(buffers_that_were_put_are_home_while_the_one_who_put_them_sleeps_in_the_middle_of_a_message, 2)
{
	enum { N = 3, LARGE = 1 << 20 };
	struct held_back h = { { LARGE, held_back_pieces, NULL }, memory(LARGE) };
	struct weft_buf *buf[N] = { NULL };
	struct weft_req *req = NULL;

	far_join(0);
	if (far_rank == 0) {
		for (int i = 0; i < N; i++) {
			MUST_OK(weft_buf_get(5000, 0, &buf[i]));
			CHECK_OK(weft_buf_send(NULL, far_id(1), 1, buf[i], SOON));
		}
		pattern_put(h.mem, LARGE, 1);
		CHECK_OK(weft_send_post(NULL, WEFT(op, .peer = far_id(1), .tag = 2, .layout = &h.layout), &req));
		far_step(1);
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	} else {
		for (int i = 0; i < N; i++)
			MUST_OK(weft_buf_recv(NULL, far_id(0), 1, SOON, &buf[i], NULL));
		far_await(0, 1);
		for (int i = 0; i < N; i++)
			CHECK_OK(weft_buf_put(buf[i]));
		CHECK_OK(weft_recv(NULL, far_id(0), 2, h.mem, LARGE, SOON, NULL));
		CHECK(pattern_ok(h.mem, LARGE, 1));
	}
	far_leave();
	free(h.mem);
}

struct gate {
	struct weft_layout layout;
	char *mem;
	_Atomic bool reached, open;
};

static int gate_pieces(const struct weft_layout *l, size_t at, struct iovec *ret_iov, int max)
{
	struct gate *g = (struct gate *)(uintptr_t)l;

	(void)max;
	if (at >= l->len / 2) {
		atomic_store(&g->reached, true);
		EVENTUALLY(atomic_load(&g->open));
	}
	*ret_iov = (struct iovec){ g->mem + at, l->len - at < 4096 ? l->len - at : 4096 };
	return 1;
}

enum { PUTS = 3 };

struct puts {
	struct gate gate;
	struct weft_buf *buf[PUTS];
	weft_id sleeper;
	_Atomic bool done;
};

static void puts_done(const struct weft_status *st)
{
	struct puts *u = st->user;

	for (int i = 0; i < PUTS; i++)
		CHECK_OK(weft_buf_put(u->buf[i]));
	atomic_store(&u->done, true);
}

/* While weft's own thread is in the middle of a message, a callback is left to who is woken next. */
static void puts_by_callback(void *arg)
{
	struct puts *u = arg;
	struct weft_req *send = NULL, *req = NULL;
	uint64_t v = 1;

	CHECK_OK(weft_send_post(NULL, WEFT(op, .peer = (weft_id)far_told(0), .tag = 3, .layout = &u->gate.layout), &send));
	EVENTUALLY(atomic_load(&u->gate.reached));
	for (int i = 0; i < 100; i++)
		crew_nap();             /* the other sleeps by now */
	MUST_OK(weft_req_new(puts_done, NULL, u, &req));
	CHECK_OK(weft_req_complete(req, NULL));
	CHECK_OK(weft_send(NULL, u->sleeper, 9, &v, 8, SOON));
	EVENTUALLY(atomic_load(&u->done));
	CHECK_OK(weft_req_free(req));
	far_step(1);
	far_await(0, 2);
	atomic_store(&u->gate.open, true);
	CHECK_OK(weft_req_wait(&send, SOON, NULL));
}

static void half_taken(void *arg)
{
	CHECK_OK(weft_recv(NULL, WEFT_ANY, 3, arg, 1 << 20, SOON, NULL));
}

FAR(buffers_that_a_callback_has_put_are_home_while_the_one_who_ran_it_sleeps_on, 2)
{
	struct puts u = { .gate = { .layout = { 1 << 20, gate_pieces, NULL }, .mem = memory(1 << 20) } };
	struct mate mate;
	uint64_t v = 2;

	far_join(0);
	mate_start(&mate);
	far_tell((int)far_rank, mate.id);
	far_meet();
	if (far_rank == 0) {
		struct weft_buf *buf = NULL;

		mate_begin(&mate, half_taken, u.gate.mem);
		for (int i = 0; i < PUTS; i++) {
			MUST_OK(weft_buf_get(5000, 0, &buf));
			CHECK_OK(weft_buf_send(NULL, far_id(1), 1, buf, SOON));
		}
		far_await(1, 1);
		EVENTUALLY(all_home());
		CHECK_OK(weft_send(NULL, far_id(1), 2, &v, 8, SOON));
		far_step(2);
	} else {
		for (int i = 0; i < PUTS; i++)
			MUST_OK(weft_buf_recv(NULL, far_id(0), 1, SOON, &u.buf[i], NULL));
		u.sleeper = weft_self();
		mate_begin(&mate, puts_by_callback, &u);
		CHECK_NEXT(NULL, far_id(0), 2, 2);
		CHECK_NEXT(NULL, mate.id, 9, 1);
	}
	mate_wait(&mate);
	mate_stop(&mate);
	far_leave();
	free(u.gate.mem);
}

/* A mailbox between processes is 32 KiB of the sender's pool. */
FAR(mailboxes_of_ports_that_have_closed_cost_their_senders_no_memory, 2)
{
	uint64_t n = test_scaled(1000) < 300 ? 300 : test_scaled(1000);

	far_join_with(WEFT(init_opts, .knobs = "pool=4194304"));
	EACH_WAY(sends)
		for (uint64_t i = 1; i <= n; i++)
			if (sends) {
				EVENTUALLY(far_told(2) == i);
				CHECK_OK(weft_send(NULL, far_told(1), 1, &i, 8, SOON));
				EVENTUALLY(far_told(3) == i);
			} else {
				struct weft_port *port = port_new(0);

				far_tell(1, port_id(port));
				far_tell(2, i);
				CHECK_NEXT(port, WEFT_ANY, 1, i);
				CHECK_OK(weft_port_close(port, SOON));
				far_tell(3, i);
			}
	far_leave();
}

FAR_MAIN
