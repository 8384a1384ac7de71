/* test_fork.c - in a forked child every call fails cleanly, and the parent is unharmed; a process
 * that ends without weft_fini drains on its way out. The first tests fork before weft is used. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "crew.h"

enum { LARGE = 1 << 20 };

static bool in_child;

#if TEST_ASAN
/* A child ends in the middle of things on purpose: what it did not free is no leak. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return in_child;
}
#endif

/* A child that dies with its parent; 0 in the child. */
static pid_t child_start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	in_child = pid == 0;
	return pid;
}

static void child_end(void)
{
	_exit(atomic_load(&test_failures) ? 1 : 0);
}

static int child_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		MUST_EQ(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static void self_talk(void)
{
	uint64_t v = 3;

	CHECK_OK(weft_send(NULL, weft_self(), 1, &v, 8, SOON));
	CHECK_NEXT(NULL, weft_self(), 1, 3);
}

TEST(a_process_that_forks_before_it_joins_may_join_in_both)
{
	pid_t pid = child_start();

	job_begin(0);
	self_talk();
	job_end();
	if (pid == 0)
		child_end();
	CHECK_OK(child_status(pid));
}

struct late {
	unsigned char *got;
	weft_id from;
};

static _Atomic bool exiting;

static void exit_begins(void)
{
	atomic_store(&exiting, true);
}

static void *late_main(void *arg)
{
	struct late *l = arg;
	uint64_t ready = 1;

	MUST_OK(weft_send(NULL, l->from, 1, &ready, 8, SOON));
	EVENTUALLY(atomic_load(&exiting));
	weft_recv(NULL, l->from, 2, l->got, LARGE, SOON, NULL);
	pause();
	return NULL;
}

TEST(a_process_that_ends_without_leaving_drains_what_is_under_way)
{
	unsigned char *mem = memory(LARGE);
	unsigned char *seen = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(seen != MAP_FAILED);
	pattern_put(mem, LARGE, 4);
	pid_t pid = child_start();
	if (pid == 0) {
		struct weft_status st;
		struct late late = { .got = seen };
		uint64_t ready;

		MUST_OK(weft_init(NULL));
		MUST_OK(atexit(exit_begins));
		late.from = weft_self();
		thread_start(late_main, &late);
		MUST_OK(weft_recv(NULL, WEFT_ANY, 1, &ready, 8, SOON, &st));
		CHECK(send_post(NULL, 0, st.from, 2, mem, LARGE, NULL) >= 0);
		exit(atomic_load(&test_failures) ? 1 : 7);
	}
	CHECK_EQ(child_status(pid), 7);
	CHECK(pattern_ok(seen, LARGE, 4));
	munmap(seen, LARGE);
	free(mem);
}

TEST(a_process_that_ends_without_leaving_does_not_wait_for_ever)
{
	pid_t pid = child_start();

	if (pid == 0) {
		uint64_t v = 1, got;

		MUST_OK(weft_init(NULL));
		struct weft_port *to = port_new(0);
		CHECK(send_post(NULL, WEFT_SYNC, port_id(to), 2, &v, 8, NULL) >= 0);
		CHECK_OK(recv_post(to, 0, WEFT_ANY, 3, &got, 8, NULL));
		exit(atomic_load(&test_failures) ? 1 : 7);
	}
	CHECK_EQ(child_status(pid), 7);
}

static void hearer_recv(void *arg)
{
	uint64_t v = 0;

	CHECK_OK(weft_recv(NULL, *(weft_id *)arg, 1, &v, 8, WEFT_FOREVER, NULL));
	CHECK_EQ(v, 5);
}

struct held {
	struct weft_port *port;
	struct weft_req *req;
	struct weft_queue *queue;
	struct weft_buf *buf;
	weft_id me;
};

static void every_call_in_the_child(const struct held *h)
{
	struct weft_req *req = h->req, *fresh = NULL;
	struct weft_status st;
	struct weft_buf *buf = NULL;
	struct weft_port *port = NULL;
	struct weft_queue *queue = NULL;
	struct weft_state *state = NULL;
	struct weft_stats stats = { .size = sizeof(stats) };
	uint64_t v = 1;
	int which;

	CHECK_EQ(weft_init(NULL), -ECHILD);
	CHECK(weft_last_error()[0] != 0);
	CHECK(weft_self() == 0);
	CHECK_EQ(weft_thread_enter("child"), -ECHILD);
	CHECK_EQ(weft_send(NULL, h->me, 1, &v, 8, SOON), -ECHILD);
	CHECK_EQ(weft_send(h->port, h->me, 1, &v, 8, SOON), -ECHILD);
	CHECK_EQ(weft_recv(NULL, WEFT_ANY, 1, &v, 8, SOON, NULL), -ECHILD);
	CHECK_EQ(weft_recv(h->port, WEFT_ANY, 1, &v, 8, SOON, NULL), -ECHILD);
	CHECK_EQ(send_post(h->port, 0, h->me, 1, &v, 8, &fresh), -ECHILD);
	CHECK_EQ(recv_post(h->port, 0, WEFT_ANY, 1, &v, 8, &fresh), -ECHILD);
	CHECK_EQ(weft_probe(h->port, WEFT(op, .peer = WEFT_ANY, .tag = 1), WEFT_NOW, NULL, NULL), -ECHILD);
	CHECK_EQ(weft_buf_send(h->port, h->me, 1, h->buf, SOON), -ECHILD);
	CHECK_EQ(weft_buf_recv(h->port, WEFT_ANY, 1, SOON, &buf, NULL), -ECHILD);
	CHECK_EQ(weft_buf_get(100, 0, &buf), -ECHILD);
	CHECK_EQ(weft_port_open(NULL, &port), -ECHILD);
	CHECK_EQ(weft_port_close(h->port, SOON), -ECHILD);
	CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECHILD);
	CHECK_EQ(weft_req_wait_some(&req, 1, 1, 1, SOON, &which, &st), -ECHILD);
	CHECK_EQ(weft_req_cancel(req), -ECHILD);
	CHECK_EQ(weft_req_new(NULL, NULL, NULL, &fresh), -ECHILD);
	CHECK_EQ(weft_queue_open(&queue), -ECHILD);
	CHECK_EQ(weft_queue_next(h->queue, SOON, &st, 1), -ECHILD);
	CHECK_EQ(weft_poll(WEFT_NOW), -ECHILD);
	CHECK_EQ(weft_stats_get(NULL, &stats), -ECHILD);
	CHECK_EQ(weft_state_open(getpid(), &state), -ECHILD);
	CHECK_EQ(weft_fini(SOON), -ECHILD);
	CHECK(weft_now() > 0 && weft_ctx_new() == 0);
}

TEST(in_a_forked_child_every_call_fails_and_the_parent_is_unharmed)
{
	struct held h = { 0 };
	struct tally tally = { 0 };
	uint64_t v = 5, got = 0, in = 0;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	h.me = weft_self();
	h.port = port_new(0);
	MUST_OK(weft_queue_open(&h.queue));
	MUST_OK(weft_buf_get(100, 0, &h.buf));
	MUST_OK(recv_post(h.port, 0, WEFT_ANY, 1, &got, 8, &h.req));
	/* A callback, so that weft's own thread runs, and a thread asleep in weft. */
	MUST_OK(weft_recv_post(h.port, WEFT(op, .peer = WEFT_ANY, .tag = 2, .data = &in, .len = 8,
					    .done = tally_done, .user = &tally), NULL, NULL));
	uint32_t parked = stats_of(NULL).parked;
	mate_begin(&mate, hearer_recv, &h.me);
	EVENTUALLY(stats_of(NULL).parked > parked);
	for (int ends = 0; ends < 2; ends++) {
		pid_t pid = child_start();

		if (pid == 0) {
			every_call_in_the_child(&h);
			if (ends)       /* through the exit handler, which must leave all alone */
				exit(atomic_load(&test_failures) ? 1 : 0);
			child_end();
		}
		CHECK_OK(child_status(pid));
		self_talk();
	}
	CHECK_OK(weft_send(NULL, mate.id, 1, &v, 8, SOON));
	mate_wait(&mate);
	CHECK_OK(weft_send(NULL, port_id(h.port), 1, &v, 8, SOON));
	CHECK_OK(weft_req_wait(&h.req, SOON, NULL));
	CHECK_EQ(got, 5);
	CHECK_OK(weft_send(NULL, port_id(h.port), 2, &v, 8, SOON));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_EQ(in, 5);
	mate_stop(&mate);
	CHECK_OK(weft_buf_put(h.buf));
	CHECK_OK(weft_queue_close(h.queue));
	CHECK_OK(weft_port_close(h.port, SOON));
	job_end();
}

static void pool_busy(void *arg)
{
	struct weft_buf *b;

	while (!atomic_load((_Atomic bool *)arg)) {
		MUST_OK(weft_buf_get(4 * LARGE, 0, &b));
		CHECK_OK(weft_buf_put(b));
	}
}

/* Of buffers this large threads keep none, so each put is one to what all threads share. */
TEST(a_forked_child_puts_buffers_whatever_other_threads_did_when_it_was_made)
{
	_Atomic bool stop = false;
	struct weft_buf *buf = NULL;
	struct mate mate;

	job_begin(0);
	mate_start(&mate);
	MUST_OK(weft_buf_get(4 * LARGE, 0, &buf));
	mate_begin(&mate, pool_busy, &stop);
	for (int i = 0; i < 100 && !atomic_load(&test_failures); i++) {
		pid_t pid = child_start();

		if (pid == 0) {
			alarm(20);
			CHECK_OK(weft_buf_put(buf));
			child_end();
		}
		CHECK_OK(child_status(pid));
	}
	atomic_store(&stop, true);
	mate_wait(&mate);
	mate_stop(&mate);
	CHECK_OK(weft_buf_put(buf));
	job_end();
}

TEST(every_descriptor_of_weft_is_closed_on_exec)
{
	struct weft_queue *queue = NULL;
	struct tally tally = { 0 };
	struct weft_req *req = NULL;
	struct dirent *e;
	DIR *dir;

	job_begin(0);
	MUST_OK(weft_queue_open(&queue));
	MUST(weft_queue_fd(queue) >= 0);
	MUST_OK(weft_req_new(tally_done, NULL, &tally, &req));
	CHECK_OK(weft_req_complete(req, NULL));
	EVENTUALLY(atomic_load(&tally.count) == 1);
	CHECK_OK(weft_req_free(req));
	CHECK(fcntl(weft_queue_fd(queue), F_GETFD) & FD_CLOEXEC);
	dir = opendir("/proc/self/fd");
	MUST(dir);
	while ((e = readdir(dir))) {
		char path[64], target[256];
		int fd = atoi(e->d_name);
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 || fd <= 2)
			continue;
		target[n] = 0;
		/* What whoever started the test left open is theirs: weft's are of these kinds. */
		if (strstr(target, "anon_inode") || strstr(target, "memfd"))
			CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	closedir(dir);
	CHECK_OK(weft_queue_close(queue));
	job_end();
}

TEST_MAIN
