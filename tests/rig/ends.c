/* ends.c - threads of one host end while those of another wait for them. usage: weft run --hosts A:1,B:1 ... ends
 *
 * Process 1 starts threads; each tells its id, sends what it has to send, of every priority, and ends. Process 0 waits for each of them by name: it gets all of that, in order, and then
 * an error, for a receive that was posted before, for one that is posted after, for a probe and for a send. Says "ends: ok" and exits 0.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "expect.h"

enum { THREADS = 8, MESSAGES = 40, TELL = 1, GO, OVER, SAY };

static weft_id zero;                    /* process 0 */

static size_t size_of(int i)
{
	return i % 10 == 7 ? 300000 : i % 10 == 5 ? 20000 : 8 + (size_t)i;
}

/* Its last words: short and long, some announced, in all priorities. Tags are numbers of the messages. */
static void *speak(void *arg)
{
	static unsigned char mem[300000];
	struct weft_req *req[MESSAGES] = { NULL };
	weft_id me = weft_self();

	EXPECT(weft_send(NULL, zero, TELL, &me, sizeof(me), SOON), 0);
	EXPECT(weft_recv(NULL, zero, GO, NULL, 0, SOON, NULL), 0);
	for (int i = 0; i < MESSAGES; i++) {
		struct weft_op op = { .size = sizeof(op), .peer = zero, .tag = SAY + (uint64_t)i, .data = mem, .len = size_of(i), .prio = (int8_t)(i / 5 % 8 - 4) };

		EXPECT(weft_send_post(NULL, &op, &req[i]) < 0, 0);
	}
	for (int i = 0; i < MESSAGES; i++)
		if (req[i])
			EXPECT(weft_req_wait(&req[i], SOON, NULL), 0);
	return arg;
}

static void speak_all(void)
{
	pthread_t thread[THREADS];
	struct weft_status st;

	EXPECT(weft_recv(weft_port_world(), weft_at(0), GO, NULL, 0, SOON, &st), 0);
	zero = st.from;
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&thread[i], NULL, speak, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT(weft_recv(weft_port_world(), weft_at(0), OVER, NULL, 0, SOON, NULL), 0);
}

/* Waits for @who by name: all it says, then its end. */
static void listen_to(weft_id who)
{
	struct weft_op any = { .size = sizeof(any), .peer = who, .tag = OVER };
	struct weft_port *world = weft_port_world();
	static unsigned char mem[300000];
	struct weft_req *before = NULL;
	struct weft_msg *msg = NULL;
	struct weft_status st;

	EXPECT(weft_recv_post(world, &any, &before, NULL), 0);
	EXPECT(weft_send(world, who, GO, NULL, 0, SOON), 0);
	for (int i = 0; i < MESSAGES; i++) {
		EXPECT(weft_recv(world, who, SAY + (uint64_t)i, mem, sizeof(mem), SOON, &st), 0);
		EXPECT(st.len, size_of(i));
	}
	EXPECT(weft_req_wait(&before, SOON, NULL), -ECONNRESET);
	EXPECT(weft_recv(world, who, OVER, mem, sizeof(mem), SOON, NULL), -ESRCH);
	EXPECT(weft_probe(world, &any, SOON, &msg, &st), -ESRCH);
	EXPECT(weft_send(world, who, GO, NULL, 0, SOON), -ESRCH);
}

int main(void)
{
	int r = weft_init(NULL);

	if (r < 0) {
		fprintf(stderr, "ends: %s\n", weft_last_error());
		return 1;
	}
	if (atoi(getenv("WEFT_RANK")) == 1) {
		speak_all();
	} else {
		weft_id who[THREADS] = { 0 };

		EXPECT(weft_send(weft_port_world(), weft_at(1), GO, NULL, 0, SOON), 0);
		for (int i = 0; i < THREADS; i++)
			EXPECT(weft_recv(weft_port_world(), WEFT_ANY, TELL, &who[i], sizeof(who[i]), SOON, NULL), 0);
		for (int i = 0; i < THREADS; i++)
			listen_to(who[i]);
		EXPECT(weft_send(weft_port_world(), weft_at(1), OVER, NULL, 0, SOON), 0);
	}
	EXPECT(weft_fini(SOON), 0);
	printf("ends: %s\n", faults ? "failed" : "ok");
	return faults != 0;
}
