/* test_tsan_user.c - a program under ThreadSanitizer, on a weft that knows nothing of it.
 *
 * Threads write plain memory, hand it over by messages, and read what they got: in every way data
 * changes hands, and back. Everything before a send happens before what follows its receive, so the
 * sanitizer must stay silent. The same program with a race of its own must be reported: otherwise
 * the silence would say nothing.
 *
 * This file is built with -fsanitize=thread and linked against a libweft built without it. It runs
 * itself, as "clean" and as "race", and looks at how that ended.
 */
#include <sys/wait.h>
#include <weft/weft.h>

#include "../test.h"

enum { ROUNDS = 200, REPORTED = 66 };
enum { GO = 1, BACK, SMALL, MEDIUM, LARGE, BUFFER, SYNC, POSTED, QUEUED };

static weft_id ids[2];
static pthread_barrier_t met;

/* Plain words that change hands with the messages: written by one side before a send, read and
 * written by the other after the receive. Not one of them is atomic. */
static long turn, sync_word, posted_word, queued_word;
static char medium[2][4096], large[2][1 << 20];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, weft_last_error());
	_exit(3);
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail(#call);                                                               \
	} while (0)

/* Both sides write one plain word in turn; the message carries nothing but the right to do so. */
static void turns(int me, weft_id other)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2 == me) {
			turn++;
			OK(weft_send(NULL, other, GO, &i, sizeof(i), WEFT_FOREVER));
		} else {
			int got;

			OK(weft_recv(NULL, other, GO, &got, sizeof(got), WEFT_FOREVER, NULL));
			if (turn != i + 1)
				fail("turn");
		}
	}
}

/* The payload itself: written by plain stores, copied by weft, read by plain loads, written again. */
static void payloads(int me, weft_id other, char *mine, size_t len, uint64_t tag, uint32_t flags)
{
	for (int i = 0; i < ROUNDS / (len > 100000 ? 20 : 1); i++) {
		struct weft_req *req = NULL;

		if (me == 0) {
			memset(mine, i, len);
			OK(weft_send_post(
				NULL,
				WEFT(op, .flags = flags, .peer = other, .tag = tag, .data = mine, .len = len),
				&req));
			OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
			mine[0] = 100;          /* free again */
			OK(weft_recv(NULL, other, BACK, mine, len, WEFT_FOREVER, NULL));
			if (mine[len - 1] != (char)(i + 1))
				fail("payload back");
		} else {
			OK(weft_recv(NULL, other, tag, mine, len, WEFT_FOREVER, NULL));
			if (mine[0] != (char)i || mine[len - 1] != (char)i)
				fail("payload");
			memset(mine, i + 1, len);
			OK(weft_send(NULL, other, BACK, mine, len, WEFT_FOREVER));
			mine[0] = 101;
		}
	}
}

/* One buffer goes to and fro and is written by whoever has it. */
static void buffers(int me, weft_id other)
{
	struct weft_buf *buf = NULL;

	if (me == 0)
		OK(weft_buf_get(100000, 0, &buf));
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2 == me) {
			memset(buf->data, i, buf->len);
			OK(weft_buf_send(NULL, other, BUFFER, buf, WEFT_FOREVER));
		} else {
			OK(weft_buf_recv(NULL, other, BUFFER, WEFT_FOREVER, &buf, NULL));
			if (((char *)buf->data)[99999] != (char)i)
				fail("buffer");
		}
	}
	if (me == ROUNDS % 2)                   /* who received the last one */
		OK(weft_buf_put(buf));
}

/* The end of a SYNC send tells what the receiver did before it asked for the message. */
static void syncs(int me, weft_id other)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct weft_req *req = NULL;

		if (me == 0) {
			OK(weft_send_post(NULL, WEFT(op, .flags = WEFT_SYNC, .peer = other, .tag = SYNC),
					  &req));
			OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
			if (sync_word != i)
				fail("sync");
			sync_word = -1;
			OK(weft_send(NULL, other, BACK, NULL, 0, WEFT_FOREVER));
		} else {
			sync_word = i;
			OK(weft_recv(NULL, other, SYNC, NULL, 0, WEFT_FOREVER, NULL));
			OK(weft_recv(NULL, other, BACK, NULL, 0, WEFT_FOREVER, NULL));
		}
	}
}

/* Posted ahead, and ended by a wait, or by a queue. */
static void posted(int me, weft_id other)
{
	struct weft_queue *queue = NULL;

	OK(weft_queue_open(&queue));
	for (int i = 0; i < ROUNDS; i++) {
		struct weft_req *req = NULL;
		struct weft_status st;
		long got[2] = { 0 };

		if (me == 0) {
			OK(weft_recv(NULL, other, GO, NULL, 0, WEFT_FOREVER, NULL));
			posted_word = i;
			OK(weft_send(NULL, other, POSTED, &posted_word, sizeof(long), WEFT_FOREVER));
			queued_word = i;
			OK(weft_send(NULL, other, QUEUED, &queued_word, sizeof(long), WEFT_FOREVER));
			OK(weft_recv(NULL, other, BACK, NULL, 0, WEFT_FOREVER, NULL));
			continue;
		}
		OK(weft_recv_post(
			NULL, WEFT(op, .peer = other, .tag = POSTED, .data = &got[0], .len = sizeof(long)),
			&req, NULL));
		OK(weft_recv_post(NULL,
				  WEFT(op, .peer = other, .tag = QUEUED, .data = &got[1], .len = sizeof(long),
				       .queue = queue),
				  NULL, NULL));
		OK(weft_send(NULL, other, GO, NULL, 0, WEFT_FOREVER));
		OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
		if (got[0] != i || posted_word != i)
			fail("posted");
		OK(weft_queue_next(queue, WEFT_FOREVER, &st, 1));
		if (got[1] != i || queued_word != i)
			fail("queued");
		posted_word = queued_word = -1;
		OK(weft_send(NULL, other, BACK, NULL, 0, WEFT_FOREVER));
	}
	OK(weft_queue_close(queue));
}

/* The receiver writes its memory, posts it and computes; the sender, given time for that, makes the match
 * and writes there. It hears nothing of the receiver but through the match. */
static void posted_first(int me, weft_id other)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		struct weft_req *req = NULL;

		if (me == 0) {
			memset(large[0], i, sizeof(large[0]));
			OK(weft_recv(NULL, other, GO, NULL, 0, WEFT_FOREVER, NULL));
			usleep(2000);
			OK(weft_send(NULL, other, LARGE, large[0], sizeof(large[0]), WEFT_FOREVER));
		} else {
			OK(weft_send(NULL, other, GO, NULL, 0, WEFT_FOREVER));
			memset(large[1], 77, sizeof(large[1]));
			OK(weft_recv_post(NULL, WEFT(op, .peer = other, .tag = LARGE, .data = large[1],
						     .len = sizeof(large[1])), &req, NULL));
			usleep(4000);
			OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
			if (large[1][0] != (char)i || large[1][sizeof(large[1]) - 1] != (char)i)
				fail("posted first");
		}
	}
}

/* What the sanitizer is there for: a word written after the right to it was given away. */
static void race(int me, weft_id other)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (me == 0) {
			OK(weft_send(NULL, other, GO, NULL, 0, WEFT_FOREVER));
			turn++;
			OK(weft_recv(NULL, other, BACK, NULL, 0, WEFT_FOREVER, NULL));
		} else {
			OK(weft_recv(NULL, other, GO, NULL, 0, WEFT_FOREVER, NULL));
			turn++;
			OK(weft_send(NULL, other, BACK, NULL, 0, WEFT_FOREVER));
		}
	}
}

static bool racing;

static void *side(void *arg)
{
	int me = *(int *)arg;
	weft_id other;

	ids[me] = weft_self();
	pthread_barrier_wait(&met);
	other = ids[1 - me];
	if (racing) {
		race(me, other);
	} else {
		turns(me, other);
		payloads(me, other, medium[me], 8, SMALL, 0);
		payloads(me, other, medium[me], sizeof(medium[me]), MEDIUM, 0);
		payloads(me, other, large[me], sizeof(large[me]), LARGE, 0);
		payloads(me, other, large[me], sizeof(large[me]), LARGE, WEFT_RENDEZVOUS);
		payloads(me, other, medium[me], sizeof(medium[me]), MEDIUM, WEFT_SYNC);
		buffers(me, other);
		syncs(me, other);
		posted(me, other);
		posted_first(me, other);
	}
	pthread_barrier_wait(&met);
	return NULL;
}

static int run_sides(void)
{
	static int numbers[2] = { 0, 1 };
	pthread_t threads[2];

	OK(weft_init(NULL));
	pthread_barrier_init(&met, NULL, 2);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, side, &numbers[i]) != 0)
			fail("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	OK(weft_fini(WEFT_FOREVER));
	return 0;
}

/* Runs this program as @how and answers its exit status; -1: it did not exit by itself. */
static int run_as(const char *how)
{
	char *argv[] = { (char[]){ "test_tsan_user" }, NULL, NULL };
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (!strcmp(how, "race") && !freopen("/dev/null", "w", stderr))
			_exit(126);             /* its report is no alarm */
		argv[1] = strdup(how);
		setenv("TSAN_OPTIONS", "exitcode=66 halt_on_error=1", 1);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_program_that_hands_data_over_by_messages_is_free_of_races_for_its_sanitizer)
{
#if !TEST_TSAN
	SKIP("not built with -fsanitize=thread");
#endif
	CHECK_EQ(run_as("clean"), 0);
}

TEST(and_a_race_of_its_own_is_still_seen)
{
#if !TEST_TSAN
	SKIP("not built with -fsanitize=thread");
#endif
	CHECK_EQ(run_as("race"), REPORTED);
}

int main(int argc, char **argv)
{
	racing = argc > 1 && !strcmp(argv[1], "race");
	if (racing || (argc > 1 && !strcmp(argv[1], "clean")))
		return run_sides();
	return test_main(argc, argv);
}
