/* test_share_memory.c - the memory of buffers that other processes have or had: limits, classes, mappings, pages. */
#include "unit/kin.h"

#include <sys/stat.h>

static void bigs(void)
{
	enum { N = 24 };
	struct weft_buf *b[N];
	int maps;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init((size_t)4 << 30));
		for (int i = 0; i < N; i++) {
			b[i] = kin_get(64 * MIB);
			memset(b[i]->data, i, 1);
			MUST_OK(kin_send(b[i], 2, false));
		}
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), N);
		wf_pool_fini();
		kin_step(2);
		return;
	}
	for (int i = 0; i < N; i++) {
		b[i] = kin_take(1);
		CHECK_EQ(*(char *)b[i]->data, i);
	}
	maps = proc_mappings();
	CHECK(maps >= N);
	for (int i = 0; i < N; i++)
		CHECK_OK(weft_buf_put(b[i]));
	CHECK(proc_mappings() <= maps - 8);          /* not all are kept */
	wf_share_flush();
	kin_step(1);
	kin_wait(2);
}

TEST(mappings_of_big_buffers_that_nobody_uses_do_not_pile_up)
{
	kin_run(2, bigs);
}

static void limit_returns(void)
{
	size_t n = 0;
	struct weft_buf *b;
	int r;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init(1 * MIB));
		for (int turn = 0; turn < 3; turn++) {
			for (n = 0; (r = weft_buf_get(4096, WEFT_RAIL_ANY, &b)) == 0; n++)
				MUST_OK(kin_send(b, 2, false));
			CHECK_EQ(r, -EAGAIN);
			CHECK_EQ(n, 256);
			atomic_store(&kin->count[0], n);
			kin_step((uint32_t)(2 * turn + 1));
			kin_wait((uint32_t)(2 * turn + 2));     /* they are on the list; getting them is the pool's affair */
		}
		return;
	}
	for (uint32_t turn = 0; turn < 3; turn++) {
		kin_wait(2 * turn + 1);
		for (n = atomic_load(&kin->count[0]); n > 0; n--)
			CHECK_OK(weft_buf_put(kin_take(1)));
		wf_share_flush();
		kin_step(2 * turn + 2);
	}
}

TEST(at_the_limit_what_others_have_given_back_is_there_again)
{
	kin_run(2, limit_returns);
}

static void other_class(void)
{
	struct weft_buf *b;

	if (kin_me == 1) {
		wf_pool_fini();
		MUST_OK(wf_pool_init(1 * MIB));
		for (int i = 0; i < 256; i++)
			MUST_OK(kin_send(kin_get(4096), 2, false));
		kin_wait(1);
		b = kin_get(1 * MIB);           /* the very memory, as one buffer */
		kin_fill(b, 3);
		MUST_OK(kin_send(b, 2, false));
		kin_wait(2);
		CHECK_EQ(weft_buf_get(256, WEFT_RAIL_ANY, &b), 0);
		MUST_OK(kin_send(b, 2, false));
		return;
	}
	for (int i = 0; i < 256; i++)
		CHECK_OK(weft_buf_put(kin_take(1)));
	wf_share_flush();
	kin_step(1);
	b = kin_take(1);
	kin_check(b, 3);
	CHECK(weft_buf_of((char *)b->data + 500000) == b);
	CHECK_OK(weft_buf_put(b));
	wf_share_flush();
	kin_step(2);
	b = kin_take(1);
	CHECK_EQ(b->cap, 256);
	CHECK(weft_buf_of(b->data) == b);
}

TEST(memory_turned_over_to_another_class_lands_as_that)
{
	kin_run(2, other_class);
}

static void *cancelled_get(void *arg)
{
	struct weft_buf *b = NULL, *big = NULL;

	(void)arg;
	pthread_cancel(pthread_self());
	MUST_OK(weft_buf_get(100, WEFT_RAIL_ANY, &b));
	MUST_OK(weft_buf_get(64 * MIB, WEFT_RAIL_ANY, &big));
	MUST_OK(kin_send(b, 2, false));
	weft_buf_put(big);
	wf_pool_fini();
	atomic_store(&kin->count[0], 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void *cancelled_take(void *arg)
{
	struct kin_letter letter = kin_letter(1);
	struct weft_buf *b;

	(void)arg;
	pthread_cancel(pthread_self());
	MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
	CHECK_OK(weft_buf_put(b));
	wf_share_flush();
	atomic_store(&kin->count[1], 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void cancelled(void)
{
	pthread_t t;
	void *how;

	MUST_OK(pthread_create(&t, NULL, kin_me == 1 ? cancelled_get : cancelled_take, NULL));
	MUST_OK(pthread_join(t, &how));
	CHECK(how == NULL);
	CHECK_EQ(atomic_load(&kin->count[kin_me - 1]), 1);
	if (kin_me == 2)
		kin_step(1);
	kin_wait(1);
}

TEST(making_and_mapping_segments_is_no_cancellation_point)
{
	kin_run(2, cancelled);
}

static size_t pages_of(int fd)
{
	struct stat st;

	MUST_OK(fstat(fd, &st));
	return (size_t)st.st_blocks * 512;
}

static void big_pages(void)
{
	struct kin_letter letter;
	struct weft_buf *b;
	int fd;

	if (kin_me == 1) {
		MUST_OK(kin_send(kin_get(64 * MIB), 2, false));
		kin_wait(1);
		CHECK_EQ(wf_share_collect(), 1);
		wf_pool_fini();
		kin_step(2);
		return;
	}
	letter = kin_letter(1);
	MUST_OK(wf_buf_land(1, &letter.flight, letter.len, &b));
	fd = kin_give(1, letter.flight.segment);
	MUST(fd >= 0);
	CHECK_EQ(pages_of(fd), 64 * MIB);
	CHECK_OK(weft_buf_put(b));              /* the mapping is kept */
	wf_share_flush();
	kin_step(1);
	kin_wait(2);
	CHECK_EQ(pages_of(fd), 0);
}

TEST(the_pages_of_a_big_buffer_are_free_though_others_still_map_it)
{
	kin_run(2, big_pages);
}

TEST_MAIN
