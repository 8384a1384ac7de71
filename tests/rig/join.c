/* join.c - rows of short messages from several threads to one of another host (wire/join.h). usage: weft run --hosts A:1,B:1 ... join ROWS
 *
 * Threads of process 0 send numbers, each its own, in rows of any length; between them one that is longer, one whose receipt is waited for, or a while in which its thread calls nothing of weft's. Its main
 * thread waits for answers meanwhile, and reads what comes: so what one thread has lent to itself is wanted by others. Process 1 takes all of them: every number once, behind the one before
 * it. Then the main thread sends a row and calls weft no more: it arrives all the same. Says "join: ok, N by lease" and exits 0; N: how many messages joined without the lock.
 */
#include <pthread.h>
#include <unistd.h>

#include "other.h"

enum { THREADS = 3, BESIDE = THREADS, ROW_MOST = 150, ANSWER_EACH = 4096 };
enum { LAST = 40 };             /* messages of the row after which nobody calls weft */

static uint64_t rows;

struct number {
	uint64_t n, end;        /* of a row: the first alone */
};

static void say_longer(uint64_t tag, uint64_t number, bool end)
{
	EXPECT(weft_send(NULL, other, tag, &(struct number){ number, end }, sizeof(struct number), SOON), 0);
}

static void say_and_wait(uint64_t tag, uint64_t number)
{
	struct weft_req *req = NULL;
	int r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = tag, .data = &number, .len = sizeof(number), .flags = WEFT_SYNC), &req);

	EXPECT(r == WEFT_DONE ? 0 : r ? r : weft_req_wait(&req, SOON, NULL), 0);
}

static void *talk(void *arg)
{
	uint64_t tag = (uintptr_t)arg, random = 0x9e3779b97f4a7c15 * (tag + 1), number = 0;

	for (uint64_t i = 0; i < rows && !faults; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		for (uint64_t k = random % ROW_MOST; k > 0; k--)
			say(tag, number++);
		switch (random >> 32 & 15) {
		case 0:
			say_longer(tag, number++, false);
			break;
		case 1:
			say_and_wait(tag, number++);
			break;
		case 2:
			usleep(300);    /* weft's own thread sees to what waits */
		}
	}
	say_longer(tag, number, true);
	return NULL;
}

static void send_all(uint64_t number)
{
	struct wf_trunk *trunk = wf_trunk_at((uint32_t)(other >> 32));
	uint64_t got = 0, answers = 0;
	pthread_t t[THREADS];
	weft_time asked;
	bool all = false;

	rows = number;
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&t[i], NULL, talk, (void *)i), 0);
	for (; got != UINT64_MAX && !faults; answers++)
		EXPECT(weft_recv(NULL, other, BESIDE, &got, sizeof(got), SOON, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (uint64_t i = 0; i < LAST; i++)
		say(BESIDE, i);
	for (int k = 0; k < 1000 && !all; k++) {
		usleep(10000);
		all = all_acknowledged(trunk, &asked);
	}
	EXPECT(all, true);
	say(BESIDE, LAST);
	if (!faults)
		printf("join: ok, %llu by lease\n", (unsigned long long)trunk->join.joined);
}

static void receive_all(uint64_t number)
{
	uint64_t next[THREADS + 1] = { 0 }, taken = 0, over = UINT64_MAX;

	(void)number;
	for (int ended = 0; ended < THREADS && !faults;) {
		struct number m = { 0, false };
		struct weft_status st;

		EXPECT(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, &m, sizeof(m), SOON, &st), 0);
		if (faults)
			return;
		EXPECT(m.n, next[st.tag % (THREADS + 1)]++);
		ended += m.end;
		if (++taken % ANSWER_EACH == 0)
			EXPECT(weft_send(NULL, other, BESIDE, &taken, sizeof(taken), SOON), 0);
	}
	EXPECT(weft_send(NULL, other, BESIDE, &over, sizeof(over), SOON), 0);
	for (uint64_t i = 0; i <= LAST && !faults; i++) {
		uint64_t n = UINT64_MAX;

		EXPECT(weft_recv(NULL, other, BESIDE, &n, sizeof(n), SOON, NULL), 0);
		EXPECT(n, i);
	}
}

int main(int argc, char **argv)
{
	return run_both(argc, argv, "rows", send_all, receive_all);
}
