/* test_share_death.c - buffers whose maker, holder or sender is killed or forks: what comes home, and when. */
#include "unit/kin.h"

#include "base/life.h"
#include "mem/pool.h"

/* Of 17 that it has put @home are on their way, the others wait in a chain. */
static void holder_of_dies(size_t len, size_t home)
{
	struct weft_buf *b[30], *lent;

	if (kin_me == 2) {
		for (int i = 0; i < 25; i++)
			b[i] = kin_take(1);
		for (int i = 0; i < 17; i++)
			CHECK_OK(weft_buf_put(b[i]));
		kin_take(1);                                    /* a view, and a big one */
		kin_take(1);
		kin_step(1);
		raise(SIGKILL);
	}
	for (int i = 0; i < 25; i++)
		MUST_OK(kin_send(kin_get(len), 2, false));
	lent = kin_get(100);
	MUST_OK(kin_send(lent, 2, true));
	MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
	for (int i = 0; i < 3; i++)
		MUST_OK(kin_send(kin_get(5000), 2, false));     /* never taken */
	kin_wait(1);
	wf_share_collect();
	CHECK_EQ(kin_away(), 30 - home);
	wf_share_dead(2);
	CHECK_EQ(kin_away(), 0);
	CHECK_EQ(weft_buf_state(lent), WEFT_BUF_IDLE);
	wf_share_settled(2);
	CHECK_EQ(kin_away(), 0);
	CHECK_EQ(wf_share_collect(), 0);
}

static void holder_dies(void)
{
	holder_of_dies(100, 14);
}

static void holder_of_wide_dies(void)
{
	holder_of_dies(4096, 15);
}

TEST(what_a_dead_process_held_comes_home_at_once_and_what_its_maker_had_sent_to_it)
{
	kin_run_dying(2, holder_dies, 1 << 2);
	kin_run_dying(2, holder_of_wide_dies, 1 << 2);
}

static void flyer_dies(void)
{
	struct wf_flight flight;
	struct weft_buf *carry, *b;

	switch (kin_me) {
	case 1:
		for (int i = 0; i < 3; i++)
			MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(2);
		wf_share_dead(2);
		CHECK_EQ(kin_away(), 2);        /* he held one; one is on its way for good, one is lost on it */
		kin_step(3);
		kin_wait(4);                    /* 3 has taken what there was, and acted */
		wf_share_settled(2);
		CHECK_EQ(kin_away(), 1);
		kin_step(5);
		kin_wait(6);
		CHECK_EQ(wf_share_collect(), 1);
		CHECK_EQ(kin_away(), 0);
		break;
	case 2:
		kin_take(1);
		MUST_OK(kin_send(kin_take(1), 3, false));
		b = kin_take(1);
		MUST_OK(wf_buf_send_begin(b, false, &carry));
		MUST_OK(wf_buf_fly(carry, 3, &flight));
		kin_step(1);
		raise(SIGKILL);
		break;
	case 3:
		kin_wait(1);
		kin_step(2);
		kin_wait(3);
		b = kin_take(2);
		kin_step(4);
		kin_wait(5);
		memset(b->data, 1, b->cap);
		CHECK_OK(weft_buf_put(b));
		wf_share_flush();
		kin_step(6);
		break;
	}
}

TEST(what_a_dead_process_had_sent_on_is_not_taken_back_before_its_death_is_settled)
{
	kin_run_dying(3, flyer_dies, 1 << 2);
}

static void maker_dies(void)
{
	struct weft_buf *b, *big;

	if (kin_me == 1) {
		b = kin_get(100000);
		kin_fill(b, 1);
		MUST_OK(kin_send(b, 2, false));
		b = kin_get(64 * MIB);
		kin_fill(b, 2);
		MUST_OK(kin_send(b, 2, false));
		kin_wait(1);
		raise(SIGKILL);
	}
	b = kin_take(1);
	big = kin_take(1);
	kin_step(1);
	wf_share_dead(1);
	wf_share_settled(1);
	kin_check(b, 1);
	kin_check(big, 2);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(big));
	wf_share_flush();
	CHECK_EQ(kin_here(), 0);
}

TEST(buffers_of_a_dead_process_stay_readable_until_they_are_put)
{
	kin_run_dying(2, maker_dies, 1 << 1);
}

static void forked(void)
{
	struct weft_buf *b, *mine;
	int status = -1;
	pid_t pid;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(100), 2, false));
		MUST_OK(kin_send(kin_get(100), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 2);
		return;
	}
	mine = kin_get(100);
	CHECK_OK(weft_buf_put(kin_take(1)));    /* in a chain */
	b = kin_take(1);
	pid = fork();
	if (pid == 0) {
		atomic_store(&wf_life, WF_CHILD);       /* as the fork handler does */
		CHECK_EQ(proc_mappings(), 0);
		CHECK_OK(weft_buf_put(b));
		CHECK_OK(weft_buf_put(mine));
		wf_share_flush();
		wf_share_collect();
		wf_share_dead(1);
		weft_buf_state(b);
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(mine));
	wf_share_flush();
	kin_step(1);
}

TEST(a_forked_child_has_no_segment_and_returns_nothing)
{
	kin_run(2, forked);
}

/* A big one has a segment of its own, which goes when the pool is closed, as it is in a child. */
static void forked_with_big(void)
{
	struct weft_buf *big;
	int status = -1;
	pid_t pid;

	if (kin_me == 2) {
		big = kin_take(1);
		kin_check(big, 5);
		CHECK_OK(weft_buf_put(big));
		return;
	}
	big = kin_get(64 * MIB);
	kin_fill(big, 5);
	pid = fork();
	if (pid == 0) {
		atomic_store(&wf_life, WF_CHILD);
		atomic_store(&wf_pool_bound, 0);
		CHECK_OK(weft_buf_put(big));
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	kin_check(big, 5);
	MUST_OK(kin_send(big, 2, false));
}

TEST(a_forked_child_that_puts_a_big_buffer_leaves_that_of_its_parent_alone)
{
	kin_run(2, forked_with_big);
}

TEST_MAIN
