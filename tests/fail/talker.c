/* talker.c - two processes say to each other whatever can be said, and tell where it ended.
 *
 * The first call that fails ends the talk of its process: it leaves the job, and the other has to hear of that. Only
 * -ETIMEDOUT is never an answer to what is done here: somebody was not told. TALK_FAILS names the rank in which the
 * system refuses (failing.c).
 *
 * TALK_TIMES=N says everything N times; TALK_ALARM=US has a timer's signal come every so many microseconds;
 * TALK_EATS=RANK has that one take memory until it is killed, once it has met the other.
 *
 * Prints "RANK: whole" or "RANK: line N answered E words", and "RANK: left CODE, N descriptors". Ends with 0, or 3 where
 * an answer is wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <weft/weft.h>

#include "failing.h"

#define LONG_AGO weft_in(6 * WEFT_S)    /* later than that is never */
#define MOST (4u << 20)
#define BIG (40u << 20)
#define BURST 400

static unsigned me, rank_failing = UINT32_MAX;
static unsigned char out[MOST], in[MOST];
static weft_id peer;

#define DO(call)                                                                                   \
	do {                                                                                       \
		int r_ = (call);                                                                   \
		if (r_ < 0)                                                                        \
			leave(__LINE__, r_);                                                       \
	} while (0)

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -1;             /* its own */

	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static _Noreturn void end(int code)
{
	int r = weft_fini(weft_in(2 * WEFT_S));

	fail_disarm();
	printf("%u: left %d, %d descriptors\n", me, r, descriptors());
	if (me == rank_failing)
		fail_print(me);
	fflush(stdout);
	exit(code);
}

static _Noreturn void leave(int line, int err)
{
	printf("%u: line %d answered %d: %s\n", me, line, err, weft_last_error());
	end(err == -ETIMEDOUT ? 3 : 0);
}

static _Noreturn void wrong(int line, const char *what, size_t len)
{
	printf("%u: line %d: wrong %s of %zu\n", me, line, what, len);
	end(3);
}

static void fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

static bool filled(const unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i * 7 + (i >> 8) + seed))
			return false;
	return true;
}

static void meet(void)
{
	weft_id self = weft_self();
	struct weft_port *w = weft_port_world();

	if (!self)
		leave(__LINE__, -ENOMEM);
	DO(weft_send(w, weft_at(1 - me), 1, &self, sizeof(self), LONG_AGO));
	DO(weft_recv(w, weft_at(1 - me), 1, &peer, sizeof(peer), LONG_AGO, NULL));
}

/* Plain memory of every kind of size, there and back. */
static void plain(void)
{
	static const size_t sizes[] = { 0, 8, 96, 97, 1000, 8192, 16384, 16385, 65536, 300000, 1 << 20, MOST };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned turn = 0; turn < 2; turn++) {
			struct weft_status st;

			if (turn == me) {
				fill(out, sizes[i], i + turn);
				DO(weft_send(NULL, peer, i, out, sizes[i], LONG_AGO));
			} else {
				DO(weft_recv(NULL, peer, i, in, sizes[i], LONG_AGO, &st));
				if (st.len != sizes[i] || !filled(in, sizes[i], i + turn))
					wrong(__LINE__, "bytes", sizes[i]);
			}
		}
}

/* Memory in a buffer, which the other can read by itself: in a chunk, and in a segment of its own. */
static void shared(void)
{
	static const size_t sizes[] = { 16385, 1 << 20, MOST };

	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i / 2], all = i % 2 ? BIG : n;
		struct weft_buf *b;

		for (unsigned turn = 0; turn < 2; turn++) {
			if (turn == me) {
				DO(weft_buf_get(all, 0, &b));
				fill((unsigned char *)b->data + all - n, n, i + turn);
				DO(weft_send(NULL, peer, 55, (char *)b->data + all - n, n, LONG_AGO));
				DO(weft_buf_put(b));
			} else {
				DO(weft_recv(NULL, peer, 55, in, n, LONG_AGO, NULL));
				if (!filled(in, n, i + turn))
					wrong(__LINE__, "shared bytes", n);
			}
		}
	}
}

static void buffers(void)
{
	static const size_t sizes[] = { 1, 256, 8192, 65536, 1 << 20, MOST };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct weft_buf *b;
		struct weft_status st;

		if (me == 0) {
			DO(weft_buf_get(sizes[i], 0, &b));
			fill(b->data, sizes[i], i);
			DO(weft_buf_send(NULL, peer, 50, b, LONG_AGO));
		}
		DO(weft_buf_recv(NULL, peer, 50, LONG_AGO, &b, &st));
		if (b->len != sizes[i] || !filled(b->data, sizes[i], i))
			wrong(__LINE__, "buffer", sizes[i]);
		if (me == 1)
			DO(weft_buf_send(NULL, peer, 50, b, LONG_AGO));
		else
			DO(weft_buf_put(b));
	}
}

/* Posted both ways at once, with and without waiting for the match. */
static void posted(void)
{
	static const size_t sizes[] = { 8, 500, 8192, 20000, 1 << 20 };
	enum { N = sizeof(sizes) / sizeof(*sizes) };

	for (unsigned flags = 0; flags <= WEFT_SYNC; flags += WEFT_SYNC) {
		struct weft_req *reqs[2 * N] = { NULL };
		struct weft_status st[2 * N];
		int which[2 * N], n = 0;
		size_t at = 0;

		for (unsigned i = 0; i < N; at += sizes[i++]) {
			fill(out + at, sizes[i], i);
			DO(weft_recv_post(NULL, WEFT(op, .peer = peer, .tag = 60 + i, .data = in + at, .len = sizes[i]), &reqs[2 * i], NULL));
			DO(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = 60 + i, .data = out + at, .len = sizes[i], .flags = flags),
					  &reqs[2 * i + 1]));
		}
		for (int i = 0; i < 2 * N; i++)
			n += reqs[i] != NULL;
		DO(weft_req_wait_some(reqs, 2 * N, 2 * N, 2 * N, LONG_AGO, which, st));
		for (int i = 0; i < n; i++)
			DO(st[i].err);
		at = 0;
		for (unsigned i = 0; i < N; at += sizes[i++])
			if (!filled(in + at, sizes[i], i))
				wrong(__LINE__, "posted bytes", sizes[i]);
	}
}

/* More than a mailbox holds, before anybody looks. */
static void burst(void)
{
	static struct weft_req *reqs[BURST];
	static uint64_t value[BURST];
	uint64_t got;

	for (unsigned i = 0; i < BURST; i++) {
		value[i] = i;
		DO(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = 70, .data = &value[i], .len = 8), &reqs[i]));
	}
	for (unsigned i = 0; i < BURST; i++) {
		DO(weft_recv(NULL, peer, 70, &got, 8, LONG_AGO, NULL));
		if (got != i)
			wrong(__LINE__, "order", i);
	}
	for (unsigned i = 0; i < BURST; i++)
		DO(weft_req_wait(&reqs[i], LONG_AGO, NULL));
}

static void count_up(const struct weft_status *st)
{
	if (st->err == 0)
		atomic_fetch_add((_Atomic int *)st->user, 1);
}

/* Contexts, probes, queues and callbacks. */
static void ports(void)
{
	weft_id members[2];
	struct weft_port *p;
	struct weft_queue *queue;
	struct weft_status st;
	struct weft_msg *msg;
	static _Atomic int called;
	uint64_t v = 5, got[2] = { 0 };
	weft_time until;

	members[0] = weft_port_member(weft_port_world(), 0);
	members[1] = weft_port_member(weft_port_world(), 1);
	DO(weft_port_open(WEFT(port_opts, .channel = "talk", .members = members, .count = 2, .index = me), &p));
	DO(weft_queue_open(&queue));
	DO(weft_recv_post(p, WEFT(op, .peer = weft_at(1 - me), .tag = 1, .data = &got[0], .len = 8, .queue = queue), NULL, NULL));
	DO(weft_recv_post(p, WEFT(op, .peer = weft_at(1 - me), .tag = 2, .data = &got[1], .len = 8, .done = count_up, .user = &called),
			  NULL, NULL));
	for (unsigned tag = 1; tag <= 3; tag++)
		DO(weft_send(p, weft_at(1 - me), tag, &v, 8, LONG_AGO));
	DO(weft_queue_next(queue, LONG_AGO, &st, 1));
	DO(st.err);
	until = LONG_AGO;
	while (!called) {
		int r = weft_poll(weft_in(10 * WEFT_MS));

		if (r < 0 && (r != -ETIMEDOUT || weft_now() > until))
			leave(__LINE__, r);
	}
	DO(weft_probe(p, WEFT(op, .peer = weft_at(1 - me), .tag = 3), LONG_AGO, &msg, &st));
	DO(weft_recv_post(p, WEFT(op, .msg = msg, .data = in, .len = 8), NULL, NULL));
	DO(weft_queue_close(queue));
	/* Both have received all before one closes. */
	DO(weft_send(p, weft_at(1 - me), 4, NULL, 0, LONG_AGO));
	DO(weft_recv(p, weft_at(1 - me), 4, NULL, 0, LONG_AGO, NULL));
	DO(weft_port_close(p, LONG_AGO));
}

static void *second(void *arg)
{
	weft_id self = weft_self(), other;
	int *ret = arg;

	*ret = self ? weft_send(NULL, peer, 80, &self, 8, LONG_AGO) : -ENOMEM;
	if (*ret == 0)
		*ret = weft_recv(NULL, WEFT_ANY, 81, &other, 8, LONG_AGO, NULL);
	return NULL;
}

/* A thread that comes and goes, known to the other process. */
static void threads(void)
{
	pthread_t t;
	weft_id theirs;
	int r = 0, mine;

	if (__real_pthread_create(&t, NULL, second, &r))
		wrong(__LINE__, "thread", 0);
	mine = weft_recv(NULL, peer, 80, &theirs, 8, WEFT_NOW, NULL);   /* not from this one: a look that finds nothing */
	if (mine != -EAGAIN)
		DO(mine);
	mine = weft_recv(NULL, WEFT_ANY, 80, &theirs, 8, LONG_AGO, NULL);
	if (mine == 0)
		mine = weft_send(NULL, theirs, 81, &theirs, 8, LONG_AGO);
	if (mine == 0) {
		pthread_join(t, NULL);
		DO(r);
	}
	DO(mine);
}

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static void alarmed(int sig)
{
	(void)sig;
}

/* Without SA_RESTART: what can be interrupted is. */
static void alarm_every(long us)
{
	struct sigaction act = { .sa_handler = alarmed };
	struct itimerval every = { .it_interval = { .tv_usec = us }, .it_value = { .tv_usec = us } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void eat(void)
{
	for (;;) {
		char *p = __real_malloc(1 << 20);

		if (p)
			memset(p, 1, 1 << 20);
	}
}

int main(void)
{
	const char *rank = getenv("WEFT_RANK"), *failing = getenv("TALK_FAILS");
	long times = number("TALK_TIMES", 1), eater = number("TALK_EATS", -1);
	int r;

	me = rank ? (unsigned)atoi(rank) : 0;
	rank_failing = failing ? (unsigned)atoi(failing) : UINT32_MAX;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (number("TALK_ALARM", 0))
		alarm_every(number("TALK_ALARM", 0));
	if (me == rank_failing)
		fail_arm();
	r = weft_init(NULL);
	if (r < 0) {
		fail_disarm();
		printf("%u: init answered %d: %s\n%u: left 0, %d descriptors\n", me, r, weft_last_error(), me, descriptors());
		if (me == rank_failing)
			fail_print(me);
		return 0;
	}
	meet();
	if (eater >= 0) {
		printf("%u: met\n", me);
		if (me == (unsigned)eater)
			eat();
		DO(weft_recv(NULL, peer, 99, in, 1, weft_in(60 * WEFT_S), NULL));
	}
	for (long i = 0; i < times; i++) {
		plain();
		shared();
		buffers();
		posted();
		burst();
		ports();
		threads();
	}
	printf("%u: whole\n", me);
	end(0);
}
