/* turns.h - two threads send the numbers of one sequence in turn, from one port: what they send has one order. */
#ifndef TURNS_H
#define TURNS_H
#include "crew.h"

struct turns {
	pthread_mutex_t lock;
	pthread_cond_t passed;
	struct weft_port *from;
	weft_id to;
	uint64_t *numbers;              /* posted sends hold their place in it; NULL: blocking sends */
	uint64_t next, end;
	_Atomic int names;
};

static inline void *turns_take(void *arg)
{
	struct turns *t = arg;
	uint64_t me = (uint64_t)atomic_fetch_add(&t->names, 1);

	pthread_mutex_lock(&t->lock);
	while (t->next < t->end) {
		uint64_t n = t->next;
		int r;

		if (n / 16 % 2 != me) {
			pthread_cond_wait(&t->passed, &t->lock);
			continue;
		}
		if (t->numbers)
			r = weft_send_post(t->from, WEFT(op, .peer = t->to, .tag = 1, .data = &t->numbers[n],
							 .len = sizeof(uint64_t)), NULL);
		else
			r = weft_send(t->from, t->to, 1, &n, sizeof(n), SOON);
		MUST(r == 0 || r == WEFT_DONE);
		if (++t->next % 16 == 0 || t->next == t->end)
			pthread_cond_broadcast(&t->passed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Both, until the end of the sequence. */
static inline void turns_run(struct turns *t)
{
	pthread_t thread[2];

	atomic_store(&t->names, 0);
	for (int i = 0; i < 2; i++)
		thread[i] = thread_start(turns_take, t);
	for (int i = 0; i < 2; i++)
		thread_join(thread[i]);
}
#endif
