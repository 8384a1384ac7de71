/* turns.h - any number of thread pairs that take turns, and the raw turn: a word and a futex.
 *
 * Pair p has its two threads on the first two cores, crossed over for every other pair, so that
 * both cores see as many givers as takers. All threads start together and stay until all are
 * through; each notes when it was, so that neither making nor ending threads is in the figure.
 *
 * Edges   T1  word, release -> acquire: the turn was given.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H
#include "measure.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

struct turn {
	_Alignas(LINE_BYTES) _Atomic uint32_t word0; /* written by side 0 */
	_Alignas(LINE_BYTES) _Atomic uint32_t word1; /* written by side 1 */
	_Alignas(LINE_BYTES) uint64_t name[2]; /* for a way that needs addresses */
};

struct turn_way {
	void (*prepare)(struct turn *t, int side); /* before the start; may be NULL */
	void (*give)(struct turn *t, int side, uint32_t i); /* the i-th turn, from 1 on */
	void (*take)(struct turn *t, int side, uint32_t i);
	uint32_t rest_ns; /* kept busy before each turn is given; not in the figure */
};

struct turn_run {
	const struct turn_way *way;
	uint32_t turns, batch;
	pthread_barrier_t ready, go, done;
};

struct turn_thread {
	struct turn_run *run;
	struct turn *t;
	int side, cpu;
	double *batch_ns; /* side 0: ns per round trip, one per batch */
	uint64_t end;
};

/* @local: FUTEX_PRIVATE_FLAG between threads, 0 between processes. */
static inline void word_give(struct turn *t, int side, uint32_t i, int local)
{
	_Atomic uint32_t *w = side == 0 ? &t->word0 : &t->word1;

	atomic_store_explicit(w, i, memory_order_release); /* T1 */
	syscall(SYS_futex, w, FUTEX_WAKE | local, 1, NULL, NULL, 0);
}

static inline void word_take(struct turn *t, int side, uint32_t i, int local)
{
	_Atomic uint32_t *w = side == 0 ? &t->word1 : &t->word0;
	uint32_t seen;

	while ((seen = atomic_load_explicit(w, memory_order_acquire)) != i) /* T1 */
		syscall(SYS_futex, w, FUTEX_WAIT | local, seen, NULL, NULL, 0);
}

static inline void futex_give(struct turn *t, int side, uint32_t i)
{
	word_give(t, side, i, FUTEX_PRIVATE_FLAG);
}

static inline void futex_take(struct turn *t, int side, uint32_t i)
{
	word_take(t, side, i, FUTEX_PRIVATE_FLAG);
}

/* Between processes, over memory that both have mapped. */
static inline void shared_futex_give(struct turn *t, int side, uint32_t i)
{
	word_give(t, side, i, 0);
}

static inline void shared_futex_take(struct turn *t, int side, uint32_t i)
{
	word_take(t, side, i, 0);
}

static inline void rest(uint32_t ns)
{
	uint64_t until = ns ? clock_ns() + ns : 0;

	while (ns && clock_ns() < until)
		cpu_relax();
}

static inline void *turn_main(void *arg)
{
	struct turn_thread *x = arg;
	struct turn_run *r = x->run;
	uint64_t then;

	cpu_pin(x->cpu);
	if (r->way->prepare)
		r->way->prepare(x->t, x->side);
	pthread_barrier_wait(&r->ready);
	pthread_barrier_wait(&r->go);
	then = clock_ns();
	for (uint32_t i = 1; i <= r->turns; i++) {
		if (x->side == 1) {
			r->way->take(x->t, 1, i);
			rest(r->way->rest_ns);
			r->way->give(x->t, 1, i);
			continue;
		}
		rest(r->way->rest_ns);
		r->way->give(x->t, 0, i);
		r->way->take(x->t, 0, i);
		if (i % r->batch == 0) {
			uint64_t now = clock_ns();

			x->batch_ns[i / r->batch - 1] =
				(double)(now - then) / r->batch - 2.0 * r->way->rest_ns;
			then = now;
		}
	}
	x->end = clock_ns();
	pthread_barrier_wait(&r->done);
	return NULL;
}

/* Half a turn in ns. One pair: the median batch. Several: the time until all are through, over the
 * turns of one pair, which is what a pair sees, waiting included. */
static inline double turns_ns(const struct turn_way *way, int pairs, uint32_t turns, uint32_t batch)
{
	struct turn_run run = { .way = way, .turns = turns, .batch = batch };
	struct turn *t = page_memory((size_t)pairs * sizeof(*t));
	struct turn_thread *x = calloc(2 * (size_t)pairs, sizeof(*x));
	pthread_t *id = calloc(2 * (size_t)pairs, sizeof(*id));
	double *ns = calloc((size_t)pairs * (turns / batch), sizeof(*ns)), result;
	uint64_t start, end = 0;

	if (!x || !id || !ns)
		die("no memory for %d pairs", pairs);
	memset(t, 0, (size_t)pairs * sizeof(*t));
	pthread_barrier_init(&run.ready, NULL, 2 * (unsigned)pairs + 1);
	pthread_barrier_init(&run.go, NULL, 2 * (unsigned)pairs + 1);
	pthread_barrier_init(&run.done, NULL, 2 * (unsigned)pairs);
	for (int i = 0; i < 2 * pairs; i++) {
		int pair = i / 2, side = i % 2;

		x[i] = (struct turn_thread){ .run = &run,
					     .t = &t[pair],
					     .side = side,
					     .cpu = (side ^ pair) & 1,
					     .batch_ns = &ns[(size_t)pair * (turns / batch)] };
		id[i] = thread_start(turn_main, &x[i]);
	}
	pthread_barrier_wait(&run.ready);
	start = clock_ns();
	pthread_barrier_wait(&run.go);
	for (int i = 0; i < 2 * pairs; i++) {
		pthread_join(id[i], NULL);
		end = x[i].end > end ? x[i].end : end;
	}
	result = pairs == 1 ? median(ns, turns / batch) : (double)(end - start) / turns;
	pthread_barrier_destroy(&run.ready);
	pthread_barrier_destroy(&run.go);
	pthread_barrier_destroy(&run.done);
	free(ns);
	free(id);
	free(x);
	free(t);
	return result / 2;
}

#endif
