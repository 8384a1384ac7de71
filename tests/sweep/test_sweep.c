/* test_sweep.c - a process is killed, or stopped, at every step of an operation, and the others go on.
 *
 * A job of three (actor.c) is started by `weft run`. The victim plays one act between two marks; this program traces it, runs it
 * instruction by instruction to a step inside weft's code, and there
 *
 *     kills it    then the two others must exchange messages of all kinds within 5 s, get an error for what names it within 1 s,
 *                 have all their buffers, leave with 0, and nothing may be left: no process, no descriptor;
 *     stops it    all of it; then the two others must exchange messages while it is stopped, and when it goes on, what it was at
 *                 must come to its proper end: nothing lost, nothing twice, no buffer away.
 *
 * A kill takes a job per step, a stop does not, but for acts that can be played once. Steps tried: evenly spread from a random
 * one on (TEST_SEED), their number by TEST_SCALE; with 10 or more, every step, of more than EVERY that many, evenly spread. What
 * was tried is printed. SWEEP_STEP=N tries that step alone; SWEEP_HOLD=1 leaves a job that failed as it is, and waits.
 */
#include "proc.h"
#include "test.h"

#include "job.h"

#define EVERY 2000
#define KILLS 30                        /* steps tried at scale 1 */
#define STOPS 80
#define FAILURES 3                      /* of an act: it is given up */

/* Joined, and everything the act needs again and again made by playing it once, unless it can be played but once. */
static bool prepare(struct job *j, uint32_t act)
{
	return job_start(j, act, (uint32_t)test_seed) && (act_plays_once(act) || (job_begin(j) && job_finish(j, TRACE_STEP)));
}

/* How many steps the act has, by playing it without harm. */
static unsigned steps_of(uint32_t act)
{
	static unsigned known[ACTS];
	unsigned n = 0;
	struct job j;
	bool good;

	if (known[act])
		return known[act];
	good = prepare(&j, act) && job_begin(&j);
	if (good) {
		enum trace_end at = job_steps(&j, UINT32_MAX);

		n = j.victim.steps;
		good = job_finish(&j, at);
	}
	good = job_end(&j, good, 0);
	CHECK(good);
	known[act] = good ? n : 0;
	return known[act];
}

/* Step number @i of @tries among @all. */
static unsigned step_at(unsigned i, unsigned tries, unsigned all)
{
	long only = test_env("SWEEP_STEP", 0);

	if (only)
		return (unsigned)only;
	return 1 + (unsigned)((test_seed % all + (uint64_t)i * all / tries) % all);
}

static unsigned tries_of(unsigned count, unsigned all)
{
	unsigned tries = test_scale() >= 10 ? EVERY : (unsigned)test_scaled(count);

#ifdef __x86_64__
	if (test_scale() < 10)
		tries = 1 + tries * 2 / 5;      /* a step takes longer there, and a copy is a step for every byte: the same share of time */
#endif
	if (test_env("SWEEP_STEP", 0))
		return 1;
	return tries < all ? tries : all;
}

/* True if it came to that step, and all was well. At every second step the others are at it already when the victim dies. */
static bool kill_at(uint32_t act, unsigned step)
{
	bool good, early = step % 2;
	enum trace_end at = TRACE_GONE;
	struct job j;

	good = prepare(&j, act) && job_begin(&j) && (!early || job_tell(&j, DO_TALK));
	if (good) {
		at = job_steps(&j, step);
		if (at == TRACE_GONE || at == TRACE_LATE)
			good = job_failed(&j, at == TRACE_GONE ? "it died by itself" : "it hangs", "");
		trace_kill(&j.victim);
		good = good && (early ? job_told(&j) : job_order(&j, DO_TALK)) && job_order(&j, DO_BURY) && job_order(&j, DO_TALK);
	}
	good = job_end(&j, good, 128 + SIGKILL);
	CHECK(good);
	return good && at == TRACE_STEP;
}

/* *@ret_stopped: it came to that step. */
static bool stop_at(struct job *j, unsigned step, bool *ret_stopped)
{
	enum trace_end at;

	if (!job_begin(j))
		return false;
	at = job_steps(j, step);
	*ret_stopped = at == TRACE_STEP;
	if (at == TRACE_STEP) {
		if (!trace_stop(&j->victim))
			return job_failed(j, "it does not stop", "");
		if (!job_order(j, DO_TALK))
			return false;
		trace_continue(&j->victim);
	}
	return job_finish(j, at);
}

/* An act that waits takes fewer steps at one time than at another. One that did not come to its step is tried once more with an earlier one: halved so often. */
static unsigned earlier(unsigned less, bool reached)
{
	return reached || less == 4 ? 0 : less + 1;
}

static void sweep_kill(uint32_t act)
{
	unsigned all = steps_of(act), tries = all ? tries_of(KILLS, all) : 0, done = 0;

	for (unsigned i = 0, less = 0; i < tries && test_failures < FAILURES; i += !less) {
		bool reached = kill_at(act, 1 + ((step_at(i, tries, all) - 1) >> less));

		done += reached;
		less = earlier(less, reached);
	}
	printf("# %s killed: %u of %u steps\n", act_name(act), done, all);
	CHECK(done > 0);
}

static void sweep_stop(uint32_t act)
{
	unsigned all = steps_of(act), tries = all ? tries_of(act_plays_once(act) ? KILLS : STOPS, all) : 0, done = 0;
	bool good = true, open = false;
	struct job j;

	for (unsigned i = 0, less = 0; i < tries && test_failures < FAILURES; i += !less) {
		bool stopped = false;

		good = (open || prepare(&j, act)) && stop_at(&j, 1 + ((step_at(i, tries, all) - 1) >> less), &stopped);
		done += good && stopped;
		less = earlier(less, stopped);
		open = good && !act_plays_once(act);
		if (!open)
			CHECK(job_end(&j, good, 0));
	}
	if (open)
		CHECK(job_end(&j, true, 0));
	printf("# %s stopped: %u of %u steps\n", act_name(act), done, all);
	CHECK(done > 0);
}

static void sweep(uint32_t act, void (*how)(uint32_t act))
{
	int before;

	if (!getenv("SWEEP_WEFT") || !getenv("SWEEP_ACTOR"))
		SKIP("SWEEP_WEFT and SWEEP_ACTOR do not say what to run");
	if (!trace_possible())
		SKIP("ptrace is refused here");
	jobs_open();
	before = proc_descriptors();
	how(act);
	CHECK_EQ(proc_descriptors(), before);
}

#define ACT(name)                                                                                  \
	TEST(killed_at_any_step_of_##name) { sweep(ACT_##name, sweep_kill); }                      \
	TEST(stopped_at_any_step_of_##name) { sweep(ACT_##name, sweep_stop); }
SWEEP_ACTS(ACT)
#undef ACT

TEST_MAIN
