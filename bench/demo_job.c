/* demo_job.c - three processes of one job: they talk, 64 MiB change hands, one is killed in the middle.
 * usage: weft run -n 3 demo_job
 *
 * Threads of different processes tell each other their ids over the world port and then write to each
 * other as threads of one process do. A buffer filled by the first process is handed to the second: the
 * same pages, in another address space; the second time the receiver has them mapped already. Last the
 * third process sends numbers to both others until the first one kills it: everything it had sent arrives,
 * in order, then both are told, and go on with each other.
 * weft run ends with 137, the code of the process that was killed; that the rest went well is said by the
 * last line, which is printed by the first process when all of it has.
 */
#include "demo_large.h"
#include "proc.h"
#include <signal.h>

#define ROUNDS 100000
#define BEFORE_THE_KILL 100000

enum { TAG_GREETING = 10, TAG_READY, TAG_LARGE, TAG_RECEIPT, TAG_NUMBER, TAG_TOLD, TAG_ROUND };

static const char *const names[] = { "ada", "ben", "cleo" };

static weft_time soon(void)
{
	return weft_in(20 * WEFT_S);
}

static void send_to(weft_id to, uint64_t tag, const void *data, size_t len)
{
	must(weft_send(NULL, to, tag, data, len, soon()), "weft_send");
}

static void recv_from(weft_id from, uint64_t tag, void *data, size_t cap)
{
	must(weft_recv(NULL, from, tag, data, cap, soon(), NULL), "weft_recv");
}

/* The ids of all three main threads, by rank. */
static void exchange_ids(struct procs *p, weft_id ids[3])
{
	ids[p->rank] = weft_self();
	for (int i = 0; i < p->count; i++)
		if (i != p->rank)
			procs_send(p, i, &ids[p->rank], sizeof(weft_id));
	for (int i = 0; i < p->count; i++)
		if (i != p->rank)
			procs_recv(p, i, &ids[i], sizeof(weft_id));
}

static void talk(struct procs *p, const weft_id ids[3])
{
	int next = (p->rank + 1) % 3, last = (p->rank + 2) % 3;
	char text[128], id[WEFT_ID_TEXT];

	if (p->rank == 0)
		printf("three processes exchange ids and talk:\n");
	procs_meet(p);
	snprintf(text, sizeof(text), "hello %s, this is %s, thread %s of process %ld", names[next], names[p->rank],
		 weft_id_print(weft_self(), id, sizeof(id)), (long)getpid());
	send_to(ids[next], TAG_GREETING, text, sizeof(text));
	recv_from(ids[last], TAG_GREETING, text, sizeof(text));
	printf("  %-4s <- \"%s\"\n", names[p->rank], text);
	procs_meet(p);
}

/* ---- 64 MiB ---- */

struct receipt {
	uint64_t when, sum; /* when the buffer was in hand; what is in it */
};

/* From the send to the moment when the other process has it in hand: the clock is the machine's. */
static double give(weft_id to, struct weft_buf *buf, uint64_t sum)
{
	struct receipt receipt;
	uint64_t start;

	recv_from(to, TAG_READY, NULL, 0);
	start = clock_ns();
	must(weft_buf_send(NULL, to, TAG_LARGE, buf, soon()), "weft_buf_send");
	recv_from(to, TAG_RECEIPT, &receipt, sizeof(receipt));
	if (receipt.sum != sum)
		die("the 64 MiB did not arrive as they were sent");
	return (double)(receipt.when - start);
}

static struct weft_buf *take(weft_id from)
{
	struct receipt receipt;
	struct weft_buf *buf;

	send_to(from, TAG_READY, NULL, 0);
	must(weft_buf_recv(NULL, from, TAG_LARGE, soon(), &buf, NULL), "weft_buf_recv");
	receipt.when = clock_ns();
	receipt.sum = sum_words(buf->data, buf->len);
	send_to(from, TAG_RECEIPT, &receipt, sizeof(receipt));
	return buf;
}

static void hand_over(int rank, weft_id other)
{
	struct weft_buf *buf;
	double first, again, copy;
	uint64_t sum;

	if (rank == 1) {
		buf = take(other);
		must(weft_buf_send(NULL, other, TAG_LARGE, buf, soon()), "weft_buf_send");
		must(weft_buf_put(take(other)), "weft_buf_put");
		return;
	}
	must(weft_buf_get(LARGE, WEFT_RAIL_ANY, &buf), "weft_buf_get");
	fill_words(buf->data, LARGE);
	sum = sum_words(buf->data, LARGE);
	first = give(other, buf, sum);
	must(weft_buf_recv(NULL, other, TAG_LARGE, soon(), &buf, NULL), "weft_buf_recv");
	again = give(other, buf, sum);
	copy = copy_ns(LARGE);
	printf("64 MiB change hands between processes:\n"
	       "  handed over in %.1f us the first time, when it is mapped there, and in %.1f us the next;\n"
	       "  checksum %016llx on both sides; one copy of as much takes %.0f us here: %.1f and %.0f times as long\n",
	       first / 1e3, again / 1e3, (unsigned long long)sum, copy / 1e3, copy / first, copy / again);
}

/* ---- one is killed ---- */

struct told {
	uint64_t when, got; /* when its death was told; how many of its numbers had come */
	int answer;
};

/* Numbers for both, from 1 on, without end. */
__attribute__((noreturn)) static void count_for(const weft_id ids[3])
{
	for (uint64_t n = 1;; n++)
		for (int i = 0; i < 2; i++)
			must(weft_send(NULL, ids[i], TAG_NUMBER, &n, sizeof(n), WEFT_FOREVER), "weft_send");
}

/* Until its sender is dead; @pid: who is to be killed on the way, or 0. */
static struct told numbers_until_death(weft_id from, pid_t pid, uint64_t *ret_killed)
{
	struct told t = { 0 };
	uint64_t n;

	while ((t.answer = weft_recv(NULL, from, TAG_NUMBER, &n, sizeof(n), soon(), NULL)) == 0) {
		if (n != ++t.got)
			die("number %llu came where %llu was due", (unsigned long long)n, (unsigned long long)t.got);
		if (pid && n == BEFORE_THE_KILL) {
			*ret_killed = clock_ns();
			if (kill(pid, SIGKILL) != 0)
				die("kill: %s", strerror(errno));
		}
	}
	t.when = clock_ns();
	if (t.answer != -ECONNRESET && t.answer != -ESRCH)
		must(t.answer, "weft_recv of a process that was killed");
	return t;
}

static void go_on(int rank, weft_id other)
{
	for (uint64_t i = 0, got = 0; i < ROUNDS; i++) {
		if (rank == 0)
			send_to(other, TAG_ROUND, &i, sizeof(i));
		recv_from(other, TAG_ROUND, &got, sizeof(got));
		if (got != i)
			die("a message was lost");
		if (rank == 1)
			send_to(other, TAG_ROUND, &i, sizeof(i));
	}
}

static void kill_one(struct procs *p, const weft_id ids[3])
{
	struct told mine, his;
	uint64_t killed = 0;
	long pid = getpid();

	if (p->rank == 2) {
		procs_send(p, 0, &pid, sizeof(pid));
		count_for(ids);
	}
	if (p->rank == 0) {
		printf("one of three processes is killed in the middle of sending:\n");
		procs_recv(p, 2, &pid, sizeof(pid));
		mine = numbers_until_death(ids[2], (pid_t)pid, &killed);
		recv_from(ids[1], TAG_TOLD, &his, sizeof(his));
		printf("  what it had sent came first: %llu and %llu numbers, none missing;\n"
		       "  the others were told %.1f and %.1f ms after the kill: %s\n",
		       (unsigned long long)mine.got, (unsigned long long)his.got, (double)(mine.when - killed) / 1e6,
		       (double)(his.when - killed) / 1e6, weft_strerror(mine.answer));
	} else {
		mine = numbers_until_death(ids[2], 0, NULL);
		send_to(ids[0], TAG_TOLD, &mine, sizeof(mine));
	}
	go_on(p->rank, ids[!p->rank]);
}

int main(void)
{
	struct procs p;
	weft_id ids[3];

	setvbuf(stdout, NULL, _IOLBF, 0);
	p = procs_start(3);
	exchange_ids(&p, ids);
	talk(&p, ids);
	if (p.rank < 2)
		hand_over(p.rank, ids[!p.rank]);
	procs_meet(&p);
	kill_one(&p, ids);
	must_fini();
	if (p.rank == 0)
		printf("  the two that are left went on: %d round trips\n", ROUNDS);
	return 0;
}
