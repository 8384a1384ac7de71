/* bench_senders.c - 1, 2, 4 and 8 threads send 8 B messages into one port, which receives from
 * anyone: thousands per second over all of them.
 *
 * The receiver has a core of its own; the senders share the others. Each sends windows of 64 and
 * waits for the receiver's answer; the receiver takes the time of every 4096 messages.
 */
#include "weft_link.h"

#define MOST_SENDERS 8
#define BATCH_MESSAGES 4096u
#define RUN_BATCHES 192u

struct senders {
	int n;
	weft_id receiver, sender[MOST_SENDERS];
	pthread_barrier_t ready, done;
	double rate;
};

struct sender {
	struct senders *x;
	int index;
};

static void *sender_main(void *arg)
{
	struct sender *s = arg;
	struct senders *x = s->x;
	uint64_t me = (uint64_t)s->index, answer;
	uint32_t windows = RUN_BATCHES * BATCH_MESSAGES / WINDOW / (uint32_t)x->n;

	cpu_pin(cpu_count() > 1 ? 1 + s->index % (cpu_count() - 1) : 0);
	x->sender[s->index] = weft_self();
	pthread_barrier_wait(&x->ready);
	for (; windows; windows--) {
		for (int i = 0; i < WINDOW; i++)
			must(weft_send(NULL, x->receiver, LINK_TAG, &me, sizeof(me), WEFT_FOREVER),
			     "weft_send");
		must(weft_recv(NULL, x->receiver, LINK_TAG, &answer, sizeof(answer), WEFT_FOREVER, NULL),
		     "weft_recv");
	}
	pthread_barrier_wait(&x->done);
	return NULL;
}

static void *receiver_main(void *arg)
{
	struct senders *x = arg;
	uint32_t got[MOST_SENDERS] = { 0 };
	double ns[RUN_BATCHES];
	uint64_t then, now, who;

	cpu_pin(0);
	x->receiver = weft_self();
	pthread_barrier_wait(&x->ready);
	then = clock_ns();
	for (uint32_t b = 0; b < RUN_BATCHES; b++) {
		for (uint32_t i = 0; i < BATCH_MESSAGES; i++) {
			must(weft_recv(NULL, WEFT_ANY, LINK_TAG, &who, sizeof(who), WEFT_FOREVER, NULL),
			     "weft_recv");
			if (who >= (uint64_t)x->n)
				die("a message arrived wrong");
			if (++got[who] % WINDOW == 0)
				must(weft_send(NULL, x->sender[who], LINK_TAG, &who, sizeof(who),
					       WEFT_FOREVER),
				     "weft_send");
		}
		now = clock_ns();
		ns[b] = (double)(now - then);
		then = now;
	}
	x->rate = BATCH_MESSAGES * 1e6 / median(ns, RUN_BATCHES);
	pthread_barrier_wait(&x->done);
	return NULL;
}

static double senders_rate(int n)
{
	struct senders x = { .n = n };
	struct sender s[MOST_SENDERS];
	pthread_t t[MOST_SENDERS + 1];

	pthread_barrier_init(&x.ready, NULL, (unsigned)n + 1);
	pthread_barrier_init(&x.done, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		s[i] = (struct sender){ &x, i };
		t[i] = thread_start(sender_main, &s[i]);
	}
	t[n] = thread_start(receiver_main, &x);
	for (int i = 0; i <= n; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&x.ready);
	pthread_barrier_destroy(&x.done);
	return x.rate;
}

int main(void)
{
	bench_start();
	must_init();
	for (int r = 0; r < repeats(); r++)
		for (int n = 1; n <= MOST_SENDERS; n *= 2) {
			char series[32];

			snprintf(series, sizeof(series), "weft/senders-%d", n);
			sample(series, "rate", 8, senders_rate(n));
		}
	must_fini();
	return 0;
}
