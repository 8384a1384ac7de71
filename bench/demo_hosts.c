/* demo_hosts.c - two hosts: a process on each, the same calls as before, and TCP with encryption between them.
 * usage: weft run --hosts A:1,B:1 demo_hosts
 *
 * Threads of the two tell each other their ids and greet each other, as threads of one process do. Then 64 MiB
 * go over the network, and back a sum of what came; last, round trips of 8 bytes.
 */
#include "demo_large.h"
#include "proc.h"

#define ROUNDS 2000

enum { TAG_GREETING = 10, TAG_LARGE, TAG_SUM, TAG_ROUND };

static const char *const names[] = { "ada", "ben" };

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

static void talk(const struct procs *p, weft_id other)
{
	char text[128], id[WEFT_ID_TEXT];

	snprintf(text, sizeof(text), "hello %s, this is %s, thread %s, from another host", names[!p->rank], names[p->rank],
		 weft_id_print(weft_self(), id, sizeof(id)));
	send_to(other, TAG_GREETING, text, sizeof(text));
	recv_from(other, TAG_GREETING, text, sizeof(text));
	printf("  %-4s <- \"%s\"\n", names[p->rank], text);
}

static void carry(const struct procs *p, weft_id other)
{
	void *mem = page_memory(LARGE);
	uint64_t start, mine, his = 0;

	if (p->rank == 1) {
		recv_from(other, TAG_LARGE, mem, LARGE);
		mine = sum_words(mem, LARGE);
		send_to(other, TAG_SUM, &mine, sizeof(mine));
	} else {
		fill_words(mem, LARGE);
		mine = sum_words(mem, LARGE);
		start = clock_ns();
		send_to(other, TAG_LARGE, mem, LARGE);
		start = clock_ns() - start;
		recv_from(other, TAG_SUM, &his, sizeof(his));
		if (his != mine)
			die("the 64 MiB did not arrive as they were sent");
		printf("  64 MiB, encrypted: %.0f ms, %.2f GB/s, checksum %016llx on both sides\n", (double)start / 1e6, (double)LARGE / (double)start,
		       (unsigned long long)mine);
	}
	free(mem);
}

static void turn(const struct procs *p, weft_id other)
{
	static double ns[ROUNDS];

	for (uint64_t i = 0, got = 0; i < ROUNDS; i++) {
		uint64_t start = clock_ns();

		if (p->rank == 0)
			send_to(other, TAG_ROUND, &i, sizeof(i));
		recv_from(other, TAG_ROUND, &got, sizeof(got));
		if (got != i)
			die("a message was lost");
		if (p->rank == 1)
			send_to(other, TAG_ROUND, &i, sizeof(i));
		ns[i] = (double)(clock_ns() - start);
	}
	if (p->rank == 0)
		printf("  %d round trips of 8 bytes, all there: %.1f us the median one\n", ROUNDS, median(ns, ROUNDS) / 1e3);
}

int main(void)
{
	struct procs p;
	weft_id other;

	setvbuf(stdout, NULL, _IOLBF, 0);
	p = procs_start(2);
	other = procs_peer(&p, !p.rank);
	talk(&p, other);
	carry(&p, other);
	turn(&p, other);
	procs_end(&p);
	return 0;
}
