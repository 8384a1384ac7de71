/* test_sweep_bury.c - a buffer of a dead process is put, and at every step of that its memory is buried by another thread.
 *
 * Three processes (kin.h): the first makes a buffer, gives it to the second and dies; the second lets go of it between two marks; the third traces that, and at one
 * step holds the thread, has another thread of the second process bury the dead one, and lets it go on. Whatever the step: it comes to its end, nothing is left in
 * hands, and then all of the dead one is buried.
 *
 * A step takes three processes. Steps tried: evenly spread from a random one on, their number by TEST_SCALE; with 10 or more, every step.
 */
#include "unit/kin.h"

#include "mem/bury.h"
#include "trace.h"

#define TRIES 60
#define MAKER 1
#define HOLDER 2
#define TRACER 3

enum { HOLDERS_PID, BURY, BURIED, STEPS, HELD };        /* of kin->count: who is traced; asked for, and done; how many steps it took; it came to the one asked for */

void sweep_mark(void);
extern char __executable_start, etext;

static unsigned step;                   /* at which it is buried; 0: at none, they are counted */
static struct weft_buf *(*take)(void);  /* what the holder lets go of between the marks */

static void *burier(void *arg)
{
	(void)arg;
	while (!atomic_load(&kin->count[BURY]))
		sched_yield();
	wf_bury(MAKER);
	atomic_store(&kin->count[BURIED], 1);
	return NULL;
}

static void maker(void)
{
	MUST_OK(kin_send(kin_get(100), HOLDER, false));
	for (int i = 0; i < 2; i++)
		MUST_OK(kin_send(kin_get(4096), HOLDER, false));
	kin_wait(1);
	raise(SIGKILL);
}

static void holder(void)
{
	struct weft_buf *b = take();
	pthread_t thread;

	MUST_OK(pthread_create(&thread, NULL, burier, NULL));
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	kin_step(1);
	while (!(atomic_load(&kin->dead) >> MAKER & 1))
		sched_yield();
	wf_share_dead(MAKER);
	wf_bury_begin(MAKER);
	wf_bury_name(MAKER);
	wf_share_settled(MAKER);
	atomic_store(&kin->count[HOLDERS_PID], (uint64_t)getpid());
	kin_step(2);
	kin_wait(3);
	sweep_mark();
	weft_buf_put(b);
	sweep_mark();
	wf_share_flush();
	CHECK_EQ(kin_here(), 0);
	atomic_store(&kin->count[BURY], 1);
	pthread_join(thread, NULL);
	CHECK(wf_bury(MAKER));
}

/* It stands at the step asked for, or has come to the second mark. */
static void bury_now(void)
{
	atomic_store(&kin->count[HELD], 1);
	atomic_store(&kin->count[BURY], 1);
	while (!atomic_load(&kin->count[BURIED]))
		sched_yield();
}

static void tracer(void)
{
	struct traced t = { .mark = (uintptr_t)sweep_mark, .text = (uintptr_t)&__executable_start, .text_end = (uintptr_t)&etext };
	enum trace_end end;

	kin_wait(2);
	t.pid = (pid_t)atomic_load(&kin->count[HOLDERS_PID]);
	MUST_OK(trace_seize(&t));
	kin_step(3);
	MUST(trace_to_mark(&t) == TRACE_MARK);
	end = trace_steps(&t, step ? step : UINT32_MAX);
	atomic_store(&kin->count[STEPS], t.steps);
	if (end == TRACE_STEP) {
		bury_now();
		MUST_OK(trace_run(&t));
		end = trace_to_mark(&t);
	}
	CHECK_EQ(end, TRACE_MARK);
	if (end != TRACE_MARK)
		return;
	MUST_OK(trace_run(&t));
	CHECK_EQ(trace_to_mark(&t), TRACE_GONE);
	CHECK_EQ(t.status, 0);
}

static void story(void)
{
	switch (kin_me) {
	case MAKER:
		maker();
		break;
	case HOLDER:
		holder();
		break;
	default:
		tracer();
	}
}

/* How many steps it took; *@ret_held: it came to step number @at. */
static unsigned play(unsigned at, bool *ret_held)
{
	unsigned steps;

	step = at;
	kin_fresh();
	kin_join(3, story, 1 << MAKER);
	steps = (unsigned)atomic_load(&kin->count[STEPS]);
	*ret_held = atomic_load(&kin->count[HELD]);
	kin_end();
	return steps;
}

static void sweep(struct weft_buf *(*what)(void))
{
	unsigned all, tries, held = 0;
	bool came;

	if (!trace_possible())
		SKIP("ptrace is refused here");
	take = what;
	all = play(0, &came);
	CHECK(all > 0 && !came);
	tries = test_scale() >= 10 || all < (unsigned)test_scaled(TRIES) ? all : (unsigned)test_scaled(TRIES);
	for (unsigned i = 0; i < tries && !atomic_load(&test_failures); i++) {
		unsigned at = 1 + (unsigned)((test_seed % all + (uint64_t)i * all / tries) % all);

		play(at, &came);
		held += came;
		if (atomic_load(&test_failures))
			printf("# at step %u of %u\n", at, all);
	}
	printf("# buried at %u of %u steps\n", held, all);
	CHECK(held > 0);
}

static struct weft_buf *small(void)
{
	struct weft_buf *b = kin_take(MAKER);

	for (int i = 0; i < 2; i++)
		MUST_OK(weft_buf_put(kin_take(MAKER)));
	return b;
}

TEST(at_any_step_of_a_put_of_a_small_one)
{
	sweep(small);
}

/* The one before it waits in this thread's chain, and it joins that. */
static struct weft_buf *wide(void)
{
	for (int i = 0; i < 2; i++)
		MUST_OK(weft_buf_put(kin_take(MAKER)));
	return kin_take(MAKER);
}

TEST(at_any_step_of_a_put_of_one_that_joins_others)
{
	sweep(wide);
}

static void *put_one(void *b)
{
	MUST_OK(weft_buf_put(b));
	wf_share_flush();
	return NULL;
}

/* Another thread has put the others: this one has no chain of that maker's yet. */
static struct weft_buf *first(void)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		MUST_OK(pthread_create(&thread, NULL, put_one, kin_take(MAKER)));
		MUST_OK(pthread_join(thread, NULL));
	}
	return kin_take(MAKER);
}

TEST(at_any_step_of_a_put_of_the_first_of_a_chain)
{
	sweep(first);
}

/* It was put before, while lent: its last view's end lets go of it. */
static struct weft_buf *view(void)
{
	struct weft_buf *b = wide(), *carry;

	MUST_OK(wf_buf_send_begin(b, true, &carry));
	wf_buf_delivered(carry);
	MUST_OK(weft_buf_put(b));
	return carry;
}

TEST(at_any_step_of_the_end_of_the_last_view_of_one)
{
	sweep(view);
}

TEST_MAIN
